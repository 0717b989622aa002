//! Forecasts: when jobs will start and end, by simulating from the live state on.
//!
//! The same [`Controller`] that decides live decides about a copy of the jobs, under the same policy
//! and rules, including dependencies and falling limits. Nothing is written or carried out, and time
//! jumps from event to event. Jobs are assumed to use all of their time limit, or a share of it, and to
//! succeed.

use std::collections::BTreeMap;

use super::active_budget;
use super::controller::{Act, Controller, ControllerError, Memory, SETTLING, Turn};
use super::schedule::{Schedule, timestamp};
use super::setup::{Setup, Viewer};
use crate::engine::Power;
use crate::job::{Allotment, Attempt, End, Entry, EventKind, Owner, Phase, Run};
use crate::store::{Batch, Saved};
use crate::wire::{
    BudgetChange, Forecast, ForecastLine, ForecastRequest, LimitFrom, PowerFrom, Refusal,
    RefusalKind,
};
use busbar_core::budget::Budget;
use busbar_core::ledger::SwitchState;
use busbar_core::model::Work;
use busbar_core::policy::PolicySpec;
use busbar_core::units::{Instant, Span, Watts};
use jiff::tz::TimeZone;

mod running;

pub(crate) use running::Cancellation;
pub(super) use running::RunningForecasts;

/// The number of turns in a row without an event after which a forecast ends.
const PATIENCE: u32 = 10_000;

/// The live state that a forecast starts from.
pub(crate) struct Outlook {
    setup: Setup,
    budget: Budget,
    entries: Vec<Entry>,
    /// The nodes that are not on.
    nodes: BTreeMap<u32, SwitchState>,
    /// The controller's further state; without it, the policy starts afresh.
    memory: Option<Memory>,
    viewer: Viewer,
    now: Instant,
    /// The time `now` by the wall clock, in milliseconds since 1970.
    wall: i64,
}

impl Outlook {
    /// The current state of a controller, for a viewer.
    pub(crate) fn of(controller: &Controller, viewer: Viewer, now: Instant, wall: i64) -> Self {
        Outlook {
            setup: controller.setup().clone(),
            budget: controller.budget().clone(),
            entries: controller.jobs().values().cloned().collect(),
            nodes: controller.switched_nodes().collect(),
            memory: controller.memory(),
            viewer,
            now,
            wall,
        }
    }

    /// Works out the forecast, unless it is cancelled meanwhile.
    pub(crate) fn forecast(
        mut self,
        question: &ForecastRequest,
        wanted: &Cancellation,
    ) -> Result<Forecast, Refusal> {
        let percent = question.percent.unwrap_or(100);
        if !(1..=100).contains(&percent) {
            return Err(malformed(format!("--percent {percent}: write 1 to 100")));
        }
        let mut assumptions = vec![match percent {
            100 => "every job takes its whole time limit; real jobs may end sooner".to_owned(),
            _ => format!("every job takes {percent} % of its time limit"),
        }];
        if let Some(policy) = question.assumed_policy()? {
            self.assume_policy(policy, &mut assumptions)?;
        }
        let next = self.entries.iter().map(|entry| entry.number).max().unwrap_or(0) + 1;
        let mut future = Future::new(&mut self, percent, next + 1).map_err(|error| Refusal {
            kind: RefusalKind::Impossible,
            message: error.to_string(),
        })?;
        if !question.budget.is_empty() {
            let budget = self.assumed_budget(question, &mut assumptions)?;
            future.controller.set_budget(budget, false);
        }
        if let Some(request) = &question.job {
            let owner = Owner { user: 0, group: 0 };
            let (submit, request, phase) = (self.now, request.clone(), Phase::Waiting);
            let array = None;
            let handle = None;
            let entry =
                Entry { number: next, owner, request, submit, attempts: 0, phase, array, handle };
            // A job that could not be submitted is refused here, too.
            future.controller.enter(entry.clone())?;
            self.entries.push(entry);
            assumptions.push("the new job is submitted now".to_owned());
        }
        future.pass(wanted)?;
        assumptions.extend(match future.fates.values().filter(|fate| fate.is_slowed).count() {
            0 => None,
            1 => Some("1 job is slowed down, and takes longer, as the model predicts".to_owned()),
            slowed => Some(format!(
                "{slowed} jobs are slowed down, and take longer, as the model predicts"
            )),
        });
        let lines = self.entries.iter().map(|entry| ForecastLine {
            job: (entry.number != next).then_some(entry.number),
            name: (entry.number == next || self.viewer.sees(entry.owner))
                .then(|| entry.request.name.clone()),
            ..self.line(entry, &future)
        });
        Ok(Forecast {
            jobs: lines.collect(),
            peak: future.peak,
            power: future
                .power
                .iter()
                .map(|&(at, power)| PowerFrom { at: self.seconds(at), power })
                .collect(),
            limits: self.limits(&future),
            all_over: self.seconds(future.last_end),
            assumptions,
        })
    }

    /// Lets another policy decide from now on. It knows nothing of what the present one remembers.
    fn assume_policy(
        &mut self,
        policy: PolicySpec,
        assumptions: &mut Vec<String>,
    ) -> Result<(), Refusal> {
        let other = self.setup.clone().decided_by(policy.clone());
        self.setup = other.map_err(|error| malformed(format!("policy '{policy}': {error}")))?;
        self.memory = None;
        assumptions.push(format!("the policy is {policy} from now on"));
        Ok(())
    }

    /// The limits from now until the last job ends.
    fn limits(&self, future: &Future) -> Vec<LimitFrom> {
        let budget = future.controller.budget();
        let later = budget.changes_after(self.now).iter().copied();
        let steps = std::iter::once((self.now, budget.at(self.now)))
            .chain(later.take_while(|(at, _)| *at <= future.last_end));
        steps
            .map(|(at, limit)| LimitFrom { at: self.seconds(at), limit: limit.limited() })
            .collect()
    }

    /// The budget under the assumptions of the request.
    fn assumed_budget(
        &self,
        question: &ForecastRequest,
        assumptions: &mut Vec<String>,
    ) -> Result<Budget, Refusal> {
        let mut steps = vec![(self.now, self.budget.at(self.now))];
        steps.extend(self.budget.changes_after(self.now));
        let mut asked = question.budget.clone();
        asked.sort_by_key(|change| change.after);
        for BudgetChange { after, limit: text } in asked {
            let zone = TimeZone::system();
            let limits = active_budget::limits(&text, &self.setup.machine, &zone);
            let from = self.now + after;
            let wall =
                i64::try_from(after.millis()).map_or(i64::MAX, |ms| self.wall.saturating_add(ms));
            let limits =
                limits.map_err(malformed)?.budget(timestamp(wall), from, Schedule::HORIZON);
            steps.retain(|step| step.0 < from);
            steps.push((from, limits.at(from)));
            steps.extend(limits.changes_after(from));
            assumptions.push(match after {
                Span::ZERO => format!("the budget is {text}"),
                _ => format!("the budget is {text} from {:.0} s from now on", after.secs_f64()),
            });
        }
        let budget = Budget::from_steps(steps).map_err(|error| malformed(error.to_string()))?;
        let feeds = self.budget.feeds().map(|feeds| feeds.to_vec());
        Ok(budget.with_feeds(feeds.unwrap_or_default()))
    }

    fn line(&self, entry: &Entry, future: &Future) -> ForecastLine {
        let fate = future.fates.get(&entry.number);
        let waits = future.controller.jobs().get(&entry.number);
        let reason = waits.filter(|_| fate.is_none_or(|fate| fate.end.is_none())).map(|entry| {
            let line = future.controller.line(entry, future.now, &|_| 0);
            line.reason.unwrap_or_else(|| "its end cannot be predicted".to_owned())
        });
        ForecastLine {
            job: None,
            name: None,
            start: fate.map(|fate| self.seconds(fate.start)),
            end: fate.and_then(|fate| fate.end).map(|end| self.seconds(end)),
            nodes: fate.map_or(entry.request.nodes, |fate| fate.nodes),
            power: fate.map(|fate| fate.power),
            reason: reason.or_else(|| fate.and_then(|fate| fate.reason.clone())),
            array: entry.array,
        }
    }

    /// A time as seconds since 1970.
    fn seconds(&self, at: Instant) -> i64 {
        let signed = |instant: Instant| i64::try_from(instant.millis()).unwrap_or(i64::MAX);
        let ahead = signed(at).saturating_sub(signed(self.now));
        self.wall.saturating_add(ahead).div_euclid(1000)
    }
}

/// The simulated future.
struct Future {
    controller: Controller,
    now: Instant,
    /// What nodes are being switched to, and when they are there.
    switches: BTreeMap<u32, (Power, Instant)>,
    percent: u32,
    fates: BTreeMap<u64, Fate>,
    peak: Watts,
    /// The power from each time on.
    power: Vec<(Instant, Watts)>,
    last_end: Instant,
}

/// The predicted run of a job.
struct Fate {
    start: Instant,
    end: Option<Instant>,
    nodes: u32,
    power: Watts,
    /// Whether the job is ever slower than on the nodes it asks for without a cap.
    is_slowed: bool,
    /// Why the job is ended, if it does not end by itself.
    reason: Option<String>,
}

impl Future {
    fn new(outlook: &mut Outlook, percent: u32, next: u64) -> Result<Self, ControllerError> {
        let (jobs, nodes) = (outlook.entries.clone(), outlook.nodes.clone());
        let saved = Saved { jobs, nodes, next, ..Saved::default() };
        let (setup, budget, now) = (outlook.setup.clone(), outlook.budget.clone(), outlook.now);
        let running = outlook.entries.iter();
        let running = running.filter_map(|entry| Some((entry.number, Fate::of(entry.run()?))));
        let mut controller = Controller::new(setup, budget, saved, now)?;
        if let Some(memory) = outlook.memory.take() {
            controller.recall(memory);
        }
        // How far nodes are that are being switched is not known.
        let switches = controller.switches_under_way().filter_map(|act| switch(&act, now));
        Ok(Future {
            fates: running.collect(),
            switches: switches.collect(),
            controller,
            now,
            percent,
            peak: Watts::ZERO,
            power: Vec::new(),
            last_end: now,
        })
    }

    /// Simulates until nothing happens any more.
    fn pass(&mut self, wanted: &Cancellation) -> Result<(), Refusal> {
        let mut idle = 0;
        while idle < PATIENCE {
            wanted.check()?;
            self.controller.turn(self.now).map_err(|error| malformed(error.to_string()))?;
            let Turn { batch: Batch { events, .. }, acts } = self.controller.take(self.now, 0);
            self.switches.extend(acts.iter().filter_map(|act| switch(act, self.now)));
            idle = if events.is_empty() { idle + 1 } else { 0 };
            events.into_iter().for_each(|event| self.note(event.kind));
            self.note_power(self.controller.scheduler().ledger().power());
            let ends = self.ends();
            let end = ends.iter().map(|(_, end)| *end).min();
            let there = self.switches.values().map(|(_, at)| *at).min();
            let next = end.into_iter().chain(there).chain(self.controller.next_deadline()).min();
            let Some(next) = next.filter(|next| *next < Instant::LAST) else { return Ok(()) };
            // Anything due already is done in another turn, a millisecond later.
            self.now = next.max(self.now + Span::from_millis(1));
            self.controller.advance(self.now);
            for (attempt, _) in ends.into_iter().filter(|(_, end)| *end <= self.now) {
                self.controller.ended(self.now, attempt, End::Exited(0));
            }
            self.arrive();
        }
        Ok(())
    }

    /// Nodes are off or ready that have been switched for long enough.
    fn arrive(&mut self) {
        let Future { controller, now, switches, .. } = self;
        switches.retain(|node, (to, at)| {
            let is_there = *at <= *now;
            if is_there {
                controller.switched(*now, *node, None, *to);
            }
            !is_there
        });
    }

    fn note_power(&mut self, power: Watts) {
        self.peak = self.peak.max(power);
        match self.power.last_mut() {
            Some((_, last)) if *last == power => (),
            Some((at, last)) if *at == self.now => *last = power,
            _ => self.power.push((self.now, power)),
        }
    }

    /// When the running jobs will end, if nothing changes.
    fn ends(&self) -> Vec<(Attempt, Instant)> {
        let end = |attempt: Attempt| {
            let run = self.controller.jobs().get(&attempt.job)?.run()?;
            Some((attempt, self.end(run)?))
        };
        self.controller.attempts().into_iter().filter_map(end).collect()
    }

    fn end(&self, run: &Run) -> Option<Instant> {
        if run.suspended {
            return None;
        }
        if let Some(ending) = run.ending {
            // Most jobs end as soon as they are asked.
            let soon = Some(ending.asked + SETTLING).filter(|soon| *soon > self.now);
            return soon.or(Some(ending.asked + self.controller.setup().kill_after));
        }
        // The share of the time limit that is not needed.
        let spared = Work::ALL.to_bits() / 100 * u64::from(100 - self.percent);
        let left = Work::from_bits(run.work().to_bits().saturating_sub(spared))?;
        let since = run.since.max(run.moves_until);
        Some((since + left.time(run.allotment.time)).min(run.until))
    }

    fn note(&mut self, what: EventKind) {
        match what {
            EventKind::Started { job, allotment, .. } => {
                self.fates.insert(job, Fate::of(&Run::new(self.now, allotment)));
            }
            EventKind::Changed { job, allotment, .. } => {
                if let Some(fate) = self.fates.get_mut(&job) {
                    fate.nodes = allotment.nodes.len() as u32;
                    fate.is_slowed |= allotment.speed < Allotment::FULL_SPEED;
                }
            }
            EventKind::Suspended { job } => {
                if let Some(fate) = self.fates.get_mut(&job) {
                    fate.reason = Some("suspended for a while: power is short".to_owned());
                }
            }
            EventKind::Ending { job, .. } => {
                if let Some(fate) = self.fates.get_mut(&job) {
                    fate.reason = Some("made to end: power is short".to_owned());
                }
            }
            EventKind::Ended { job, outcome } => {
                if let Some(fate) = self.fates.get_mut(&job) {
                    fate.end = Some(outcome.end);
                    self.last_end = self.last_end.max(outcome.end);
                }
            }
            _ => (),
        }
    }
}

impl Fate {
    fn of(run: &Run) -> Self {
        Fate {
            start: run.start,
            end: None,
            nodes: run.allotment.nodes.len() as u32,
            power: run.allotment.power,
            is_slowed: run.allotment.speed < Allotment::FULL_SPEED,
            reason: None,
        }
    }
}

/// What a node is being switched to, and when it will be there.
fn switch(act: &Act, now: Instant) -> Option<(u32, (Power, Instant))> {
    match *act {
        Act::Switch { node, to, expected, .. } => Some((node, (to, now + expected))),
        _ => None,
    }
}

fn malformed(message: String) -> Refusal {
    Refusal { kind: RefusalKind::Malformed, message }
}

#[cfg(test)]
mod tests;
