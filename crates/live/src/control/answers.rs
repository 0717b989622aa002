//! What the daemon tells its clients about jobs, nodes and power.
//!
//! The name of a job, its command and request, and the reason why it could not be run (which may
//! contain paths) are shown to its owner and to operators only (`Viewer`).

use std::collections::BTreeMap;

use super::controller::Controller;
use super::setup::Viewer;
use crate::engine::Wait;
use crate::job::{End, EndReason, Entry, EventKind, JobOutcome, Phase, Program};
use crate::store::WallTimes;
use crate::wire::finished::FinishedJob;
use crate::wire::{
    FeedPower, JobDetails, JobLine, LimitFrom, NodeLine, NodePart, PowerState, Priority, Private,
    State,
};
use busbar_core::budget::Budget;
use busbar_core::machine::Feed;
use busbar_core::units::{Instant, NodeId, Span, Watts};

/// Converts a time of the daemon's clock to seconds since 1970.
pub(crate) type Wall<'a> = &'a dyn Fn(Instant) -> i64;

/// What other users see instead of the reason why a job could not be run.
const REASON_FOR_OTHERS: &str = "shown to its owner only";

impl Controller {
    /// The jobs that wait or run, as a viewer may see them.
    pub(crate) fn queue(&mut self, viewer: Viewer, now: Instant, wall: Wall<'_>) -> Vec<JobLine> {
        let line = |entry: &Entry| line_for(viewer, self.line(entry, now, wall), entry);
        let mut lines: Vec<JobLine> = self.jobs().values().map(line).collect();
        for line in &mut lines {
            line.priority = self.scheduler_mut().standing(line.job, now).as_ref().map(Priority::of);
        }
        lines
    }

    /// The line of a job in a list.
    pub(crate) fn line(&self, entry: &Entry, now: Instant, wall: Wall<'_>) -> JobLine {
        let mut line = line(entry, now, wall);
        if entry.phase == Phase::Waiting {
            let (state, reason) = self.waits(entry);
            (line.state, line.reason) = (state, Some(reason));
            line.needs = self.scheduler().nominal_power(entry.number);
        }
        line
    }

    /// Why the jobs wait that came through the engine, by what it calls them.
    pub(crate) fn waits_elsewhere(
        &self,
        expected: impl Fn(u64) -> Option<i64>,
    ) -> BTreeMap<String, Wait> {
        let waiting = self.jobs().values().filter(|entry| entry.phase == Phase::Waiting);
        let wait = |entry: &Entry| {
            let handle = entry.handle.clone()?;
            let (reason, expected) = (self.waits(entry).1, expected(entry.number));
            Some((handle, Wait { reason, expected }))
        };
        waiting.filter_map(wait).collect()
    }

    /// The state of a waiting job, and why it waits.
    fn waits(&self, entry: &Entry) -> (State, String) {
        if entry.request.held {
            return (State::Held, "until it is released".to_owned());
        }
        let before = entry.request.after.iter().find(|after| self.is_present(after.job));
        if let Some(after) = before {
            return (State::Blocked, format!("after {}", after.job));
        }
        if self.waits_for_place(entry) {
            let most = entry.array.and_then(|element| element.at_once).unwrap_or_default();
            return (State::Blocked, format!("at most {most} of its array at once"));
        }
        if let Some(reason) = self.remark(entry.number) {
            return (State::Waiting, reason.to_owned());
        }
        let ledger = self.scheduler().ledger();
        let reason = if self.is_machine_short() {
            "power is short"
        } else if self.scheduler().lacks_nodes(entry.number, entry.request.nodes) {
            "for nodes"
        } else if self.scheduler().nominal_power(entry.number) > Some(ledger.free_power()) {
            "for power"
        } else if self.scheduler().is_unfed(entry.number) {
            "for power of its feeds"
        } else {
            "for its turn"
        };
        (State::Waiting, reason.to_owned())
    }

    /// The nodes, with the jobs on them.
    pub(crate) fn nodes(&self) -> Vec<NodeLine> {
        let holders = self.scheduler().holders();
        let free = self.scheduler().free_parts();
        let kinds = self.setup().machine.kinds.as_deref();
        let line = |node: u32| {
            // A job that is not placed is not on the nodes that are set aside for it.
            let is_there = |job: &u64| {
                !self.jobs().get(job).and_then(Entry::run).is_some_and(|run| run.unplaced)
            };
            let jobs: Vec<u64> = holders[node as usize].iter().copied().filter(is_there).collect();
            let job = jobs.first().copied();
            let cap = job.and_then(|job| {
                let mut nodes = self.jobs().get(&job)?.run()?.allotment.nodes.iter();
                nodes.find(|(other, _)| *other == node).map(|(_, cap)| *cap)
            });
            let state = self.node_state(node);
            let switched = self.node_switched(node);
            let part = free.as_ref().zip(kinds).and_then(|(free, kinds)| {
                let kind = kinds.kind_of_node(NodeId(node))?;
                let group = kinds.groups().iter().find(|group| group.nodes.contains(&node))?;
                let (size, free) = (kinds.kinds()[kind].size, free[node as usize]);
                Some(NodePart {
                    partition: group.name.clone(),
                    jobs: jobs.clone(),
                    processors: size.processors,
                    free_processors: free.processors,
                    memory_mib: Some(size.memory_mib).filter(|memory| *memory != u32::MAX),
                    free_memory_mib: Some(free.memory_mib).filter(|_| size.memory_mib != u32::MAX),
                    gpus: size.gpus,
                    free_gpus: free.gpus,
                })
            });
            // The cap of a node that jobs share is nobody's alone.
            let cap = cap.filter(|_| jobs.len() == 1);
            NodeLine { node, name: None, job, cap, state, switched, measured: None, part }
        };
        (0..self.setup().machine.node_count()).map(line).collect()
    }

    /// The state of power: limits and what jobs hold.
    pub(crate) fn power(&self, wall: Wall<'_>) -> PowerState {
        let ledger = self.scheduler().ledger();
        let to_come = self.budget().changes_after(ledger.now());
        let limit = self.budget().at(ledger.now()).limited();
        PowerState {
            limit,
            base: self.base_power(),
            held: ledger.held(),
            free: limit.map(|limit| limit.saturating_sub(ledger.power())),
            set_by_operator: self.is_budget_overridden(),
            to_come: to_come
                .iter()
                .map(|&(at, limit)| LimitFrom { at: wall(at), limit: limit.limited() })
                .collect(),
            emulated: true,
            measured: None,
            notice: self.shortage().map(str::to_owned),
            feeds: self.feeds(wall),
        }
    }

    /// What is drawn through feeds.
    fn feeds(&self, wall: Wall<'_>) -> Vec<FeedPower> {
        let machine = &self.setup().machine;
        let (Some(tree), Some(limits)) = (&machine.feeds, self.budget().feeds()) else {
            return Vec::new();
        };
        let now = self.scheduler().ledger().now();
        let line = |(place, (feed, limits)): (usize, (&Feed, &Budget))| {
            let below = self.scheduler().below(place)?;
            let limit = limits.at(now).limited();
            let to_come = limits.changes_after(now).iter();
            let drawn = below.base + below.held;
            Some(FeedPower {
                name: feed.name.clone(),
                parent: feed.parent.map(|parent| tree.name(parent).to_owned()),
                nodes: feed.nodes,
                limit,
                base: below.base,
                held: below.held,
                free: limit.map(|limit| limit.saturating_sub(drawn)),
                measured: None,
                set_by_operator: false,
                to_come: to_come
                    .map(|&(at, limit)| LimitFrom { at: wall(at), limit: limit.limited() })
                    .collect(),
                notice: self.shortage_below(place).map(str::to_owned),
            })
        };
        tree.all().iter().zip(limits.iter()).enumerate().filter_map(line).collect()
    }
}

/// The line of a job in a list, without the reason why it waits.
pub(crate) fn line(entry: &Entry, now: Instant, wall: Wall<'_>) -> JobLine {
    let mut line = JobLine {
        job: entry.number,
        name: Some(entry.request.name.clone()),
        user: entry.owner.user,
        user_name: None,
        state: State::Waiting,
        reason: None,
        nodes: entry.request.nodes,
        on: Vec::new(),
        power: None,
        needs: None,
        speed: None,
        submitted: wall(entry.submit),
        started: None,
        ran: None,
        time: entry.request.time,
        array: entry.array,
        handle: entry.handle.clone(),
        priority: None,
        partition: entry.request.part.partition.clone(),
        part: None,
    };
    match &entry.phase {
        Phase::Waiting => (),
        Phase::Running(run) => {
            let allotment = &run.allotment;
            (line.state, line.reason) = match (&run.ending, run.suspended) {
                (Some(ending), _) => (State::Ending, Some(ending.reason.to_string())),
                (None, true) => (State::Suspended, Some("power is short".to_owned())),
                (None, false) if run.unplaced => {
                    (State::Starting, Some("its nodes are being chosen".to_owned()))
                }
                (None, false) => (State::Running, None),
            };
            line.nodes = allotment.nodes.len() as u32;
            line.on = if run.unplaced { Vec::new() } else { allotment.node_numbers() };
            line.part.clone_from(&allotment.part);
            line.power = Some(if run.suspended { Watts::ZERO } else { allotment.power });
            line.speed = Some(allotment.speed);
            line.started = Some(wall(run.start));
            line.ran = Some(now.since(run.start));
            // The remaining time depends on the job's speed.
            line.time = match run.suspended {
                true => allotment.time,
                false => run.until.since(run.start),
            };
        }
        Phase::Over(outcome) => {
            line.state = state(outcome);
            line.reason = reason(outcome);
            line.on = outcome.nodes.clone();
            line.started = outcome.start.map(wall);
            line.ran = outcome.start.map(|start| outcome.end.since(start));
        }
    }
    line
}

/// The line of a job as a viewer may see it.
pub(crate) fn line_for(viewer: Viewer, line: JobLine, entry: &Entry) -> JobLine {
    if viewer.sees(entry.owner) { line } else { line_for_others(line, entry) }
}

/// The line of a job without its private parts.
fn line_for_others(line: JobLine, entry: &Entry) -> JobLine {
    let reason = match &entry.phase {
        Phase::Over(outcome) => reason(&outcome_for_others(outcome.clone())),
        _ => line.reason,
    };
    JobLine { name: None, reason, ..line }
}

/// The end of a job without its private parts.
fn end_for_others(end: End) -> End {
    match end {
        End::Failed(_) => End::Failed(REASON_FOR_OTHERS.to_owned()),
        end => end,
    }
}

fn outcome_for_others(outcome: JobOutcome) -> JobOutcome {
    JobOutcome { how: outcome.how.map(end_for_others), ..outcome }
}

/// Whether an event has private parts.
pub(crate) fn is_private(what: &EventKind) -> bool {
    match what {
        EventKind::Ended { outcome, .. } => matches!(outcome.how, Some(End::Failed(_))),
        what => matches!(what, EventKind::Withdrawn { .. }),
    }
}

/// An event without its private parts.
pub(crate) fn event_for_others(what: EventKind) -> EventKind {
    match what {
        EventKind::Ended { job, outcome } => {
            EventKind::Ended { job, outcome: outcome_for_others(outcome) }
        }
        EventKind::Withdrawn { job, .. } => {
            EventKind::Withdrawn { job, reason: REASON_FOR_OTHERS.to_owned() }
        }
        what => what,
    }
}

/// The details of a job as a viewer may see them.
pub(crate) fn details(
    viewer: Viewer,
    entry: &Entry,
    line: JobLine,
    program: Program,
    now: Instant,
    wall: Wall<'_>,
) -> JobDetails {
    let details = whole(entry, line, program, now, wall);
    if viewer.sees(entry.owner) {
        return details;
    }
    let end = details.end.map(end_for_others);
    JobDetails { line: line_for_others(details.line, entry), private: None, end, ..details }
}

/// All details of a job.
fn whole(
    entry: &Entry,
    line: JobLine,
    program: Program,
    now: Instant,
    wall: Wall<'_>,
) -> JobDetails {
    let outcome = match &entry.phase {
        Phase::Over(outcome) => Some(outcome),
        _ => None,
    };
    let energy = match &entry.phase {
        Phase::Running(run) => Some(run.energy_at(now)),
        Phase::Over(outcome) => Some(outcome.energy),
        Phase::Waiting => None,
    };
    let (output, errors) = program.files(entry);
    JobDetails {
        line,
        owner: entry.owner,
        private: Some(Private {
            request: entry.request.clone(),
            command: program.command,
            folder: program.folder,
            output,
            errors,
        }),
        attempts: entry.attempts,
        end: outcome.and_then(|outcome| outcome.how.clone()),
        end_reason: outcome.and_then(|outcome| outcome.reason),
        by: outcome.and_then(|outcome| outcome.by),
        by_name: None,
        ended: outcome.map(|outcome| wall(outcome.end)),
        energy,
    }
}

/// A job that is over as a viewer may see it; nothing if it is not over.
pub(crate) fn finished(viewer: Viewer, entry: &Entry, walls: WallTimes) -> Option<FinishedJob> {
    let Phase::Over(outcome) = &entry.phase else { return None };
    let is_seen = viewer.sees(entry.owner);
    let outcome = if is_seen { outcome.clone() } else { outcome_for_others(outcome.clone()) };
    let (exit_code, signal) = match outcome.how {
        Some(End::Exited(code)) => (Some(code), None),
        Some(End::Signalled(signal)) => (None, Some(signal)),
        _ => (None, None),
    };
    let seconds = |millis: i64| millis.div_euclid(1000);
    Some(FinishedJob {
        job: entry.number,
        array: entry.array,
        handle: entry.handle.clone(),
        name: Some(entry.request.name.clone()).filter(|_| is_seen),
        user: entry.owner.user,
        user_name: None,
        account: entry.request.account.clone().filter(|_| is_seen),
        state: state(&outcome),
        reason: reason(&outcome),
        exit_code,
        signal,
        submitted: seconds(walls.submit),
        started: walls.start.map(seconds),
        ended: seconds(walls.end.unwrap_or(walls.submit)),
        elapsed: outcome.start.map_or(Span::ZERO, |start| outcome.end.since(start)),
        nodes: match outcome.nodes.len() {
            0 => entry.request.nodes,
            nodes => nodes as u32,
        },
        on: outcome.nodes,
        energy: outcome.energy,
        measured: None,
        emulated: false,
    })
}

/// The state of a job that is over.
pub fn state(outcome: &JobOutcome) -> State {
    match (outcome.reason, &outcome.how) {
        (Some(EndReason::TimeLimit), _) => State::TimedOut,
        (Some(_), _) => State::Cancelled,
        (None, Some(End::Exited(0))) => State::Completed,
        (None, Some(End::Lost) | None) => State::Lost,
        (None, Some(_)) => State::Failed,
    }
}

fn reason(outcome: &JobOutcome) -> Option<String> {
    if let Some(reason) = outcome.reason {
        return Some(reason.to_string());
    }
    match outcome.how.as_ref()? {
        End::Exited(0) => None,
        End::Exited(code) => Some(format!("exit code {code}")),
        End::Signalled(signal) => Some(format!("signal {signal}")),
        End::Failed(why) => Some(why.clone()),
        End::Lost => Some("its end was not observed".to_owned()),
    }
}
