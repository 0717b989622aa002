//! What a daemon tells its clients of jobs, nodes and power.
//!
//! What a job is called, does and asks for, and why it could not be run, which may name paths, is told to its
//! owner and to operators alone ([`Viewer`]).

use super::controller::Controller;
use super::engine::End;
use super::job::{EndReason, Entry, EventKind, JobOutcome, Phase, Program};
use super::setup::Viewer;
use super::wire::{JobDetails, JobLine, NodeLine, PowerState, Private, State};
use busbar_core::units::{Instant, NodeId, Watts};

/// Seconds since 1970 at an instant of the daemon's clock.
pub type Wall<'a> = &'a dyn Fn(Instant) -> i64;

/// What others are told instead of the reason why a job could not be run.
const REASON_FOR_OTHERS: &str = "its owner sees why";

/// A limit that may be none.
fn limited(limit: Watts) -> Option<Watts> {
    (limit != Watts::UNLIMITED).then_some(limit)
}

impl Controller {
    /// The jobs that wait or run, as somebody may see them.
    pub fn queue(&self, viewer: Viewer, now: Instant, wall: Wall<'_>) -> Vec<JobLine> {
        let line = |entry: &Entry| line_for(viewer, self.line(entry, now, wall), entry);
        self.jobs().values().map(line).collect()
    }

    /// A job in a list.
    pub fn line(&self, entry: &Entry, now: Instant, wall: Wall<'_>) -> JobLine {
        let mut line = line(entry, now, wall);
        if entry.phase == Phase::Waiting {
            let (state, reason) = self.waits(entry);
            (line.state, line.reason) = (state, Some(reason));
        }
        line
    }

    /// Why a job waits.
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
        let reason = if self.is_short() {
            "power is short"
        } else if entry.request.nodes > ledger.free_nodes() {
            "for nodes"
        } else if self.scheduler().nominal_power(entry.number) > Some(ledger.free_power()) {
            "for power"
        } else {
            "for its turn"
        };
        (State::Waiting, reason.to_owned())
    }

    /// The nodes.
    pub fn nodes(&self) -> Vec<NodeLine> {
        let line = |node: u32| {
            let job = self.scheduler().holder(NodeId(node));
            let cap = job.and_then(|job| match &self.jobs().get(&job)?.phase {
                Phase::Running(run) => {
                    let mut nodes = run.allotment.nodes.iter();
                    nodes.find(|(other, _)| *other == node).map(|(_, cap)| *cap)
                }
                _ => None,
            });
            NodeLine { node, job, cap }
        };
        (0..self.setup().machine.nodes).map(line).collect()
    }

    /// Power.
    pub fn power(&self, wall: Wall<'_>) -> PowerState {
        let ledger = self.scheduler().ledger();
        let to_come = self.budget().changes_after(ledger.now());
        let limit = limited(self.budget().at(ledger.now()));
        PowerState {
            limit,
            base: self.setup().machine.floor(),
            held: ledger.held(),
            free: limit.map(|limit| limit.saturating_sub(ledger.power())),
            set_by_operator: self.is_budget_overridden(),
            to_come: to_come.iter().map(|&(at, limit)| (wall(at), limited(limit))).collect(),
            emulated: true,
            notice: self.shortage().map(str::to_owned),
        }
    }
}

/// What a list says of a job that may be over.
pub fn line(entry: &Entry, now: Instant, wall: Wall<'_>) -> JobLine {
    let mut line = JobLine {
        job: entry.number,
        name: Some(entry.request.name.clone()),
        user: entry.owner.user,
        state: State::Waiting,
        reason: None,
        nodes: entry.request.nodes,
        on: Vec::new(),
        power: None,
        speed: None,
        submitted: wall(entry.submit),
        started: None,
        ran: None,
        time: entry.request.time,
        array: entry.array,
    };
    match &entry.phase {
        Phase::Waiting => (),
        Phase::Running(run) => {
            let allotment = &run.allotment;
            (line.state, line.reason) = match (&run.ending, run.suspended) {
                (Some(ending), _) => (State::Ending, Some(ending.reason.to_string())),
                (None, true) => (State::Suspended, Some("power is short".to_owned())),
                (None, false) => (State::Running, None),
            };
            line.nodes = allotment.nodes.len() as u32;
            line.on = allotment.nodes.iter().map(|(node, _)| *node).collect();
            line.power = Some(if run.suspended { Watts::ZERO } else { allotment.power });
            line.speed = Some(allotment.speed);
            line.started = Some(wall(run.start));
            line.ran = Some(now.since(run.start));
            // What is left of its time goes with its speed.
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

/// A line about a job, as somebody may see it.
pub fn line_for(viewer: Viewer, line: JobLine, entry: &Entry) -> JobLine {
    if viewer.sees(entry.owner) { line } else { line_for_others(line, entry) }
}

/// A line about a job, for those who may not see all of it.
fn line_for_others(line: JobLine, entry: &Entry) -> JobLine {
    let reason = match &entry.phase {
        Phase::Over(outcome) => reason(&outcome_for_others(outcome.clone())),
        _ => line.reason,
    };
    JobLine { name: None, reason, ..line }
}

/// How a job ended, for those who may not see all of it.
fn end_for_others(end: End) -> End {
    match end {
        End::Failed(_) => End::Failed(REASON_FOR_OTHERS.to_owned()),
        end => end,
    }
}

fn outcome_for_others(outcome: JobOutcome) -> JobOutcome {
    JobOutcome { how: outcome.how.map(end_for_others), ..outcome }
}

/// Whether some who may not see all of a job are told less of this.
pub fn is_private(what: &EventKind) -> bool {
    match what {
        EventKind::Ended { outcome, .. } => matches!(outcome.how, Some(End::Failed(_))),
        what => matches!(what, EventKind::Withdrawn { .. }),
    }
}

/// What happened to a job, for those who may not see all of it.
pub fn happening_for_others(what: EventKind) -> EventKind {
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

/// All that somebody may know of a job.
pub fn details(
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

/// All that is known of a job.
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
        ended: outcome.map(|outcome| wall(outcome.end)),
        energy,
    }
}

fn state(outcome: &JobOutcome) -> State {
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
        End::Lost => Some("nobody saw it end".to_owned()),
    }
}
