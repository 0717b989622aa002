//! Observe, decide, and say what is to be done: the part of a daemon that has no clock, no files and no
//! processes.
//!
//! Whoever drives it tells it what happened and what clients ask for, lets it take a [turn], and
//! [takes](Controller::take) what came of all that: a [batch](Turn::batch) to be written down and a list of
//! [`Act`]s. Only when the batch is written may the acts be carried out, in their order: what becomes
//! less comes before what becomes more. So what is drawn is within the budget at every step, also if the
//! driver dies between two of them.
//!
//! [turn]: Controller::turn

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::engine::{Attempt, End, Signal};
use super::job::{ChangeReason, EndReason, Ending, Entry, EventKind, JobOutcome, Phase, Run};
use super::scheduler::{Effect, Scheduler};
use super::setup::Setup;
use super::store::Saved;
use busbar_core::budget::Budget;
use busbar_core::dispatch::Rejection;
use busbar_core::model::OperatingPoint;
use busbar_core::policy::DropReason;
use busbar_core::units::{Instant, Joules, Span, Watts};

mod arrays;
mod memory;
mod outcome;
mod recovery;
mod requests;
mod shortage;
#[cfg(test)]
mod tests;

use arrays::Arrays;
pub(super) use memory::Memory;
use outcome::Unwritten;
pub use outcome::{Act, Turn};
use recovery::Failure;
pub use requests::WasGood;

/// How long jobs whose time is over, and who have been asked to end, are waited for before anybody else is
/// given anything.
pub(super) const SETTLING: Span = Span::from_millis(500);

/// The jobs of a daemon, and who decides about them.
pub struct Controller {
    setup: Setup,
    /// What the machine may draw, as it was set; the policy may be given less.
    budget: Budget,
    is_budget_overridden: bool,
    /// Jobs that are not over.
    jobs: BTreeMap<u64, Entry>,
    /// Of those, the ones that run.
    running: BTreeSet<u64>,
    /// How many of them each user has.
    of_user: HashMap<u32, Share>,
    /// How many bytes are kept of each of them.
    bytes: HashMap<u64, u64>,
    next: u64,
    /// Arrays of which elements are not over.
    arrays: Arrays,
    /// Who waits for the end of whom, or of which array.
    followers: BTreeMap<u64, BTreeSet<u64>>,
    /// Jobs that have to wait although they are not in the queue, and why.
    stuck: BTreeMap<u64, &'static str>,
    /// Jobs that run and that the policy knows nothing of, as another one started them: they keep what they
    /// have.
    strangers: BTreeSet<u64>,
    /// Jobs whose last change failed.
    failures: BTreeMap<u64, Failure>,
    scheduler: Scheduler,
    /// The scheduler does not fit the jobs any more.
    must_rebuild: bool,
    /// Something happened that the policy has not been asked about.
    must_ask: bool,
    /// Since when it has not been, as jobs are about to end.
    put_off: Option<Instant>,
    /// What was last written down as the limit in force.
    limit: Option<Watts>,
    /// That more is held than the limit allows.
    shortage: Option<String>,
    /// What was refused of the last decisions.
    refusals: BTreeSet<String>,
    unwritten: Unwritten,
}

/// What one user has.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    jobs: usize,
    bytes: u64,
}

/// Why a daemon cannot go on with its jobs.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// A job runs where the machine has no such node.
    #[error(
        "job {job} runs on nodes that this machine does not have, or that another job has; start the daemon \
         with the machine that it had, let the job end or cancel it, and change the machine then"
    )]
    NoSuchNode {
        /// Which.
        job: u64,
    },
}

impl Controller {
    /// A daemon's jobs as they were written down.
    pub fn new(
        setup: Setup,
        budget: Budget,
        saved: Saved,
        now: Instant,
    ) -> Result<Self, ControllerError> {
        let scheduler = Scheduler::new(&setup, setup.handed_out(&budget), now);
        let programs = saved.program_bytes.into_iter().chain(std::iter::repeat(0));
        let kept = saved.jobs.iter().zip(programs);
        let bytes = kept.map(|(entry, program)| (entry.number, entry.request.bytes() + program));
        let mut controller = Controller {
            bytes: bytes.collect(),
            setup,
            budget,
            is_budget_overridden: saved.budget.is_some(),
            jobs: saved.jobs.into_iter().map(|entry| (entry.number, entry)).collect(),
            running: BTreeSet::new(),
            of_user: HashMap::new(),
            next: saved.next.max(1),
            arrays: Arrays::default(),
            followers: BTreeMap::new(),
            stuck: BTreeMap::new(),
            strangers: BTreeSet::new(),
            failures: BTreeMap::new(),
            scheduler,
            must_rebuild: true,
            must_ask: true,
            put_off: None,
            limit: None,
            shortage: None,
            refusals: BTreeSet::new(),
            unwritten: Unwritten::default(),
        };
        for entry in controller.jobs.values() {
            let share = controller.of_user.entry(entry.owner.user).or_default();
            share.jobs += 1;
            share.bytes += controller.bytes.get(&entry.number).copied().unwrap_or_default();
        }
        controller.rebuild(now)?;
        Ok(controller)
    }

    /// Makes the scheduler anew from the jobs.
    fn rebuild(&mut self, now: Instant) -> Result<(), ControllerError> {
        let mut scheduler = Scheduler::new(&self.setup, self.setup.handed_out(&self.budget), now);
        self.arrays = Arrays::of(self.jobs.values());
        self.followers.clear();
        self.stuck.clear();
        self.strangers.clear();
        for entry in self.jobs.values() {
            match self.setup.job(entry) {
                Ok(job) => scheduler.add(job),
                // Under another policy it was fine. If it runs, it draws what it draws.
                Err(_) if matches!(entry.phase, Phase::Running(_)) => {
                    scheduler.add(self.setup.stand_in(entry));
                    self.strangers.insert(entry.number);
                }
                Err(_) => {
                    self.stuck.insert(entry.number, "the policy does not know its application");
                    continue;
                }
            }
            if let Phase::Running(run) = &entry.phase {
                let until =
                    run.ending.map_or(run.until, |ending| ending.asked + self.setup.kill_after);
                // Who is over his time is asked to end in this turn, and may take so long.
                let until = if until <= now { now + self.setup.kill_after } else { until };
                scheduler
                    .restore(entry.number, run, until, now)
                    .map_err(|_| ControllerError::NoSuchNode { job: entry.number })?;
            }
        }
        self.scheduler = scheduler;
        let runs = |entry: &&Entry| matches!(entry.phase, Phase::Running(_));
        self.running = self.jobs.values().filter(runs).map(|entry| entry.number).collect();
        let waiting: Vec<u64> = self
            .jobs
            .values()
            .filter(|entry| entry.phase == Phase::Waiting)
            .map(|entry| entry.number)
            .collect();
        for number in waiting {
            self.line_up(number);
        }
        self.must_rebuild = false;
        self.must_ask = true;
        Ok(())
    }

    /// A job that may start gets into the queue; others wait for whatever they wait for.
    fn line_up(&mut self, number: u64) {
        let Some(entry) = self.jobs.get(&number) else { return };
        let mut is_free = !entry.request.held && !self.stuck.contains_key(&number);
        for after in &entry.request.after {
            if self.is_present(after.job) {
                self.followers.entry(after.job).or_default().insert(number);
                is_free = false;
            }
        }
        let element = entry.array;
        if !is_free || self.scheduler.waits(number) || !self.arrays.place(element, number) {
            return;
        }
        let why = match self.scheduler.arrive(number) {
            Ok(()) => {
                self.must_ask = true;
                return;
            }
            Err(Rejection::TooManyNodes) => "needs more nodes than the machine has",
            Err(Rejection::TooMuchPower) => "needs more power than the budget allows",
        };
        self.stuck.insert(number, why);
        // Who cannot get into the queue is in nobody's way.
        if let Some(element) = element {
            self.arrays.leave(element, number);
        }
    }

    /// An attempt has ended. What is not the present attempt of a job changes nothing.
    pub fn ended(&mut self, now: Instant, attempt: Attempt, end: End) {
        let Some(entry) = self.jobs.get(&attempt.job) else {
            self.unwritten.acts.push(Act::Forget { attempt });
            return;
        };
        let Phase::Running(run) = &entry.phase else { return };
        if entry.attempts != attempt.number {
            return;
        }
        let outcome = JobOutcome {
            start: Some(run.start),
            end: now.max(run.start),
            how: Some(end),
            reason: run.ending.map(|ending| ending.reason),
            energy: run.energy_at(now),
            nodes: run.allotment.nodes.iter().map(|(node, _)| *node).collect(),
            by: run.ending.and_then(|ending| ending.by),
        };
        self.scheduler.end(attempt.job);
        self.running.remove(&attempt.job);
        self.must_ask = true;
        self.finish(now, attempt.job, outcome);
        self.unwritten.acts.push(Act::Forget { attempt });
    }

    /// A job is over; whoever waits for it goes on or is dropped.
    fn finish(&mut self, now: Instant, number: u64, outcome: JobOutcome) {
        let Some(mut entry) = self.jobs.remove(&number) else { return };
        let bytes = self.bytes.remove(&number).unwrap_or_default();
        if let Some(own) = self.of_user.get_mut(&entry.owner.user) {
            own.jobs = own.jobs.saturating_sub(1);
            own.bytes = own.bytes.saturating_sub(bytes);
        }
        self.unwritten.changed.remove(&number);
        self.failures.remove(&number);
        self.stuck.remove(&number);
        self.strangers.remove(&number);
        let is_good = outcome.succeeded();
        self.note(now, EventKind::Ended { job: number, outcome: outcome.clone() });
        entry.phase = Phase::Over(outcome);
        let element = entry.array;
        self.unwritten.over.push(entry);
        self.tell_followers(now, number, is_good);
        if let Some(element) = element {
            self.arrays.remove(element, number);
            self.fill_places(element.array);
            self.tell_followers(now, element.array, is_good);
        }
    }

    /// A job is over, or an element of an array: whoever waits for it goes on, if nothing of it is left, or
    /// is dropped.
    fn tell_followers(&mut self, now: Instant, needed: u64, is_good: bool) {
        let is_over = !self.is_present(needed);
        let followers = match (is_over, is_good) {
            (true, _) => self.followers.remove(&needed),
            (false, true) => None,
            (false, false) => self.followers.get(&needed).cloned(),
        };
        for follower in followers.unwrap_or_default() {
            let Some(entry) = self.jobs.get(&follower) else { continue };
            let mut needs = entry.request.after.iter().filter(|after| after.job == needed);
            if !is_good && !needs.all(|after| after.any) {
                self.give_up(now, follower, EndReason::Dependency, None);
            } else if is_over {
                self.line_up(follower);
            }
        }
    }

    /// Takes a job out of the queue, if it is there.
    fn withdraw(&mut self, number: u64) {
        self.must_rebuild |= !self.scheduler.withdraw(number);
        self.must_ask = true;
        self.leave_place(number);
    }

    /// A job that waits never runs, perhaps because somebody wants that.
    fn give_up(&mut self, now: Instant, number: u64, why: EndReason, by: Option<u32>) {
        self.withdraw(number);
        self.scheduler.strike(number);
        let outcome = JobOutcome {
            start: None,
            end: now,
            how: None,
            reason: Some(why),
            energy: Joules::ZERO,
            nodes: Vec::new(),
            by,
        };
        self.finish(now, number, outcome);
    }

    /// Another budget from now on. `by_operator` is what an operator wrote, if it was one.
    pub fn set_budget(&mut self, budget: Budget, by_operator: bool) {
        if budget == self.budget && by_operator == self.is_budget_overridden {
            return;
        }
        self.budget = budget;
        self.is_budget_overridden = by_operator;
        self.scheduler.set_budget(self.setup.handed_out(&self.budget));
        self.must_ask = true;
        // Who could not be fed may be now.
        self.must_rebuild |= !self.stuck.is_empty();
    }

    /// Another policy, machine or rules from now on. If they cannot be, everything is as it was.
    pub fn set_up(
        &mut self,
        setup: Setup,
        budget: Budget,
        now: Instant,
    ) -> Result<(), ControllerError> {
        let before = (
            std::mem::replace(&mut self.setup, setup),
            std::mem::replace(&mut self.budget, budget),
        );
        let rebuilt = self.rebuild(now);
        if rebuilt.is_err() {
            (self.setup, self.budget) = before;
            self.rebuild(now)?;
        }
        rebuilt
    }

    /// When there will be something to do although nothing happens: a limit comes into force, the time
    /// of a job is over, what failed is tried again, or the policy wants to be asked.
    pub fn next_deadline(&self) -> Option<Instant> {
        let limit = self.scheduler.ledger().limits_to_come().first().map(|change| change.0);
        let running =
            self.running.iter().filter_map(|number| match &self.jobs.get(number)?.phase {
                Phase::Running(run) => Some(run),
                _ => None,
            });
        let over = running.map(|run| match run.ending {
            None => run.until,
            Some(ending) => ending.asked + self.setup.kill_after,
        });
        // What the policy wants to be asked then is put off as well.
        let ask = match self.put_off {
            Some(since) => Some(since + SETTLING),
            None => self.scheduler.wake(),
        };
        let again = self.failures.values().filter_map(|failure| failure.again);
        limit.into_iter().chain(over).chain(again).chain(ask).min()
    }

    /// It is so late. Whoever is submitted from now on meets the limits from now on.
    pub fn advance(&mut self, now: Instant) {
        self.scheduler.advance(now);
    }

    /// Does what is due, and lets the policy decide if anything has happened.
    pub fn turn(&mut self, now: Instant) -> Result<(), ControllerError> {
        if self.must_rebuild || self.scheduler.is_stale() {
            self.rebuild(now)?;
        }
        self.scheduler.advance(now);
        self.note_limit(now);
        self.enforce_times(now);
        self.must_ask |= self.scheduler.wake().is_some_and(|at| at <= now);
        self.try_again(now);
        self.give_back(now);
        // It would decide once more what failed a moment ago.
        let may_adjust = self.scheduler.adjusts() && !self.is_about_to_try_again();
        if self.is_short() && may_adjust {
            // It knows best where to save.
            self.ask(now);
        }
        self.squeeze(now);
        // While somebody stands still for lack of power, nobody else gets it.
        let may_ask = match self.scheduler.adjusts() {
            true => may_adjust,
            false => !self.scheduler.ledger().has_suspended(),
        };
        if self.must_ask && may_ask && !self.settles(now) {
            self.ask(now);
        }
        Ok(())
    }

    /// Whether the policy is better asked a moment later, as a job whose time is over has just been asked to
    /// end. It nearly always does so at once, and what the policy decided on would not be so any more: it would
    /// take the job to stay for a while, and let others pass whom the job's nodes are meant for. Nobody waits
    /// for longer than that moment, however many such jobs there are.
    fn settles(&mut self, now: Instant) -> bool {
        let is_about_to_end = |number: &u64| match self.jobs.get(number).map(|entry| &entry.phase) {
            Some(Phase::Running(Run { ending: Some(ending), .. })) => {
                ending.reason == EndReason::TimeLimit
                    && !ending.forced
                    && now < ending.asked + SETTLING
            }
            _ => false,
        };
        let settles = self.running.iter().any(is_about_to_end);
        let since = *self.put_off.get_or_insert(now);
        if settles && now < since + SETTLING {
            return true;
        }
        self.put_off = None;
        false
    }

    /// Whether jobs hold more than they may.
    pub(super) fn is_short(&self) -> bool {
        self.scheduler.ledger().power() > self.scheduler.ledger().limit()
    }

    /// Writes down which limit is in force, if that is another than before.
    fn note_limit(&mut self, now: Instant) {
        let limit = self.budget.at(now);
        if self.limit != Some(limit) {
            self.limit = Some(limit);
            self.must_ask = true;
            let power = (limit != Watts::UNLIMITED).then(|| limit.milliwatts());
            let base = self.setup.machine.floor().milliwatts();
            self.note(now, EventKind::Limit { power, base });
        }
    }

    /// Asks jobs to end whose time is over, and ends those by force that were asked in vain.
    fn enforce_times(&mut self, now: Instant) {
        let wait = self.setup.kill_after;
        let is_due = |number: &&u64| match self.jobs.get(number).map(|entry| &entry.phase) {
            Some(Phase::Running(Run { ending: None, until, .. })) => *until <= now,
            Some(Phase::Running(Run { ending: Some(ending), .. })) => ending.asked + wait <= now,
            _ => false,
        };
        let due: Vec<u64> = self.running.iter().filter(is_due).copied().collect();
        for number in due {
            self.ask_to_end(now, number, EndReason::TimeLimit, None);
        }
    }

    /// Asks a running job to end; by force if it was asked before, long enough ago, or if it stands still:
    /// it would need power to hear it.
    fn ask_to_end(&mut self, now: Instant, number: u64, why: EndReason, by: Option<u32>) {
        let Some(entry) = self.jobs.get_mut(&number) else { return };
        let attempt = Attempt { job: number, number: entry.attempts };
        let Phase::Running(run) = &mut entry.phase else { return };
        let is_overdue = |before: Ending| before.asked + self.setup.kill_after <= now;
        if run.ending.is_some_and(|before| !is_overdue(before)) {
            return;
        }
        let forced = run.ending.is_some() || run.suspended;
        let (why, by) = run.ending.map_or((why, by), |ending| (ending.reason, ending.by));
        run.ending = Some(Ending { reason: why, asked: now, forced, by });
        self.unwritten.changed.insert(number);
        self.must_ask = true;
        let signal = if forced { Signal::Kill } else { Signal::Terminate };
        self.unwritten.acts.push(Act::Signal { attempt, signal });
        self.note(now, EventKind::Ending { job: number, reason: why, forced, by });
    }

    /// Policies take it that whoever runs will end later than now.
    fn extend_overdue(&mut self, now: Instant) {
        for number in self.scheduler.overdue() {
            let ending = self.jobs.get(&number).and_then(|entry| match &entry.phase {
                Phase::Running(run) => run.ending,
                _ => None,
            });
            let asked = ending.map_or(now, |ending| ending.asked);
            let until = (asked + self.setup.kill_after).max(now + OperatingPoint::SHORTEST);
            self.scheduler.extend(number, until);
        }
    }

    /// Lets the policy decide.
    fn ask(&mut self, now: Instant) {
        self.must_ask = false;
        self.put_off = None;
        self.extend_overdue(now);
        let mut done = Vec::new();
        let mut refused = Vec::new();
        self.scheduler.decide(|result| match result {
            Ok(what) => done.push(what),
            Err(violation) => refused.push(violation),
        });
        for what in done {
            match what {
                Effect::Started { number, allotment } => self.start(now, number, allotment),
                Effect::Changed { number, allotment, pause } => {
                    self.change(now, number, allotment, pause, ChangeReason::Policy);
                }
                Effect::Dropped { number, reason: DropReason::NeverFed } => {
                    self.stuck.insert(number, "needs more power than the budget allows");
                    self.leave_place(number);
                }
                Effect::Dropped { number, .. } => {
                    self.give_up(now, number, EndReason::Dropped, None)
                }
            }
        }
        let refusals: BTreeSet<String> = refused.iter().map(|no| self.scheduler.tell(no)).collect();
        for refusal in &refusals {
            // Once is enough.
            if !self.refusals.contains(refusal) {
                let text = format!("the policy decided what cannot be: {refusal}");
                self.note(now, EventKind::Notice { text });
            }
        }
        self.refusals = refusals;
    }

    /// What it works with.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Jobs that are not over, by their numbers.
    pub fn jobs(&self) -> &BTreeMap<u64, Entry> {
        &self.jobs
    }

    pub(super) fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// What the machine may draw.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Whether an operator has set the budget.
    pub fn is_budget_overridden(&self) -> bool {
        self.is_budget_overridden
    }

    /// That more is held than may be, and what is done about it.
    pub fn shortage(&self) -> Option<&str> {
        self.shortage.as_deref()
    }

    /// How many jobs wait, in whatever state.
    pub fn waiting(&self) -> usize {
        self.jobs.len().saturating_sub(self.running.len())
    }

    /// Whether a job runs.
    pub fn is_running(&self, number: u64) -> bool {
        self.running.contains(&number)
    }

    /// How many jobs run.
    pub fn running(&self) -> usize {
        self.running.len()
    }
}
