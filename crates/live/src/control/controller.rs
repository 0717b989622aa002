//! The daemon's state machine: it decides what to do, without a clock, files or processes.
//!
//! The driver reports what happened and what clients ask for, calls [`turn`], and then
//! [takes](Controller::take) the result: a [batch](Turn::batch) to be written to the store and a list
//! of [`Act`]s. The acts may be carried out, in order, only after the batch has been written. Acts that
//! reduce power come before acts that raise it, so that the draw is within the budget at every step,
//! even if the driver dies between two of them.
//!
//! [`turn`]: Controller::turn

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::limited::Limited;
use super::scheduler::{Effect, Scheduler};
use super::setup::Setup;
use crate::job::{
    ChangeReason, EndReason, Entry, EventKind, NodeState, Phase, Run, Scope, ScopedLimit,
};
use crate::store::Saved;
use busbar_core::budget::Budget;
use busbar_core::dispatch::Rejection;
use busbar_core::ledger::SwitchState;
use busbar_core::policy::{DropReason, Held, PastJob};
use busbar_core::switching::Switcher;
use busbar_core::units::{Instant, Span, Watts};

mod arrays;
mod arrivals;
mod endings;
mod memory;
mod nodes;
mod outcome;
mod parts;
mod placing;
mod recovery;
mod requests;
mod shortage;
mod switching;
#[cfg(test)]
mod tests;

use arrays::Arrays;
pub(super) use memory::Memory;
use outcome::Unwritten;
pub use outcome::{Act, Turn};
use recovery::Failure;

/// How long the policy waits for jobs to end that have just been asked to because of their time
/// limit.
pub(super) const SETTLING: Span = Span::from_millis(500);

/// The jobs of a daemon and the policy that decides about them.
pub struct Controller {
    setup: Setup,
    /// The machine's budget; the policy may be given less.
    budget: Budget,
    is_budget_overridden: bool,
    /// Jobs that are not over.
    jobs: BTreeMap<u64, Entry>,
    /// The numbers of those that came through the engine, by how it knows them.
    by_handle: HashMap<String, u64>,
    /// The numbers of the running jobs among them.
    running: BTreeSet<u64>,
    /// Jobs and bytes of each user.
    of_user: HashMap<u32, Share>,
    /// The size of each job as JSON.
    bytes: HashMap<u64, u64>,
    next: u64,
    /// Arrays that have elements which are not over.
    arrays: Arrays,
    /// The jobs that wait for the end of a job or an array, by its number.
    dependents: BTreeMap<u64, BTreeSet<u64>>,
    /// Jobs that cannot be queued at present, with the reason.
    stuck: BTreeMap<u64, &'static str>,
    /// Jobs for which the engine has no nodes now, with the reason; they are not queued before it offers them again.
    aside: BTreeMap<u64, String>,
    /// Whether the engine chooses the nodes of jobs where the policy does not.
    engine_chooses_nodes: bool,
    /// Jobs that the engine has placed on nodes which another job has, as far as is known; the operator has been told.
    misplaced: BTreeMap<u64, Vec<u32>>,
    /// Work of others whose nodes are to get their caps.
    uncapped: Vec<u64>,
    /// Running jobs that the policy cannot handle, since another policy started them. They keep
    /// what they have.
    unmanaged: BTreeSet<u64>,
    /// Nodes of which the engine says that they are not up.
    nodes: BTreeMap<u32, NodeState>,
    /// Nodes that the daemon has switched off, or is switching.
    switched: BTreeMap<u32, SwitchState>,
    /// Those of them that are still to be asked to go on.
    unsent: BTreeSet<u32>,
    /// The rule by which nodes are switched, if there is one.
    switcher: Option<Switcher>,
    /// Jobs whose last change failed.
    failures: BTreeMap<u64, Failure>,
    /// The last jobs that ended, for policies that learn from them.
    past: VecDeque<PastJob>,
    scheduler: Scheduler,
    /// Whether the policy knows what users have used, or it does not matter.
    knows_use: bool,
    /// The scheduler no longer matches the jobs.
    must_rebuild: bool,
    /// Something happened since the policy was last asked.
    must_ask: bool,
    /// Since when asking the policy has been put off because jobs are about to end.
    put_off: Option<Instant>,
    /// Whether it is not clear when power that counts as free will be.
    is_engine_stuck: bool,
    /// The limit in force, and what the machine draws without any job, as they were last recorded.
    limit: Option<(Watts, Watts)>,
    /// By what is short, a message as long as jobs hold more than its limit allows.
    shortages: BTreeMap<Limited, String>,
    /// By feed: the limit in force, as it was last recorded.
    feed_limits: Option<Vec<Watts>>,
    /// Decisions of the policy that were refused the last time.
    refusals: BTreeSet<String>,
    unwritten: Unwritten,
}

/// Jobs and bytes of one user.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    jobs: usize,
    bytes: u64,
}

/// Why a daemon cannot manage its jobs.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// A job runs on a node that the machine does not have.
    #[error(
        "job {job} runs on nodes that this machine does not have, or that another job has; start the daemon with \
        its previous machine, let the job end or cancel it, and then change the machine"
    )]
    NoSuchNode {
        /// The job's number.
        job: u64,
    },
}

impl Controller {
    /// A controller for the jobs in the store.
    pub fn new(
        setup: Setup,
        budget: Budget,
        saved: Saved,
        now: Instant,
    ) -> Result<Self, ControllerError> {
        let past: VecDeque<PastJob> =
            saved.past.iter().filter_map(|entry| setup.past(entry)).collect();
        let mut scheduler = Scheduler::new(&setup, setup.handed_out(&budget), now);
        // Who did not start soon had to wait, until it started.
        let ended = saved.past.iter().chain(&saved.jobs).filter_map(Entry::waited_until);
        scheduler.remember_wait(ended.max());
        let programs = saved.program_bytes.into_iter().chain(std::iter::repeat(0));
        let kept = saved.jobs.iter().zip(programs);
        let bytes = kept.map(|(entry, program)| (entry.number, entry.request.bytes() + program));
        let bytes = bytes.collect();
        let handle = |entry: &Entry| Some((entry.handle.clone()?, entry.number));
        let mut controller = Controller {
            bytes,
            setup,
            budget,
            is_budget_overridden: saved.budget.is_some(),
            by_handle: saved.jobs.iter().filter_map(handle).collect(),
            jobs: saved.jobs.into_iter().map(|entry| (entry.number, entry)).collect(),
            running: BTreeSet::new(),
            of_user: HashMap::new(),
            next: saved.next.max(1),
            arrays: Arrays::default(),
            dependents: BTreeMap::new(),
            stuck: BTreeMap::new(),
            aside: BTreeMap::new(),
            engine_chooses_nodes: false,
            misplaced: BTreeMap::new(),
            uncapped: Vec::new(),
            unmanaged: BTreeSet::new(),
            nodes: BTreeMap::new(),
            switched: saved.nodes,
            unsent: BTreeSet::new(),
            switcher: None,
            failures: BTreeMap::new(),
            past,
            scheduler,
            knows_use: false,
            must_rebuild: true,
            must_ask: true,
            put_off: None,
            is_engine_stuck: false,
            limit: None,
            shortages: BTreeMap::new(),
            feed_limits: None,
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

    /// Rebuilds the scheduler from the jobs.
    fn rebuild(&mut self, now: Instant) -> Result<(), ControllerError> {
        self.follow_rule();
        let mut scheduler = Scheduler::new(&self.setup, self.setup.handed_out(&self.budget), now);
        scheduler.recall(self.past.make_contiguous());
        scheduler.remember_wait(self.scheduler.waited());
        self.knows_use &= scheduler.go_on_from(&mut self.scheduler);
        self.arrays = Arrays::of(self.jobs.values());
        self.dependents.clear();
        self.stuck.clear();
        self.unmanaged.clear();
        for entry in self.jobs.values() {
            match self.setup.job(entry) {
                Ok(job) => scheduler.add(job, self.setup.seat_of(entry)),
                // A job that runs under another policy is kept as it is.
                Err(_) if entry.run().is_some() => {
                    scheduler.add(self.setup.stand_in(entry), self.setup.seat_of(entry));
                    self.unmanaged.insert(entry.number);
                }
                Err(_) => {
                    self.stuck.insert(entry.number, "the policy does not know its application");
                    continue;
                }
            }
            if let Some(run) = entry.run() {
                let until =
                    run.ending.map_or(run.until, |ending| ending.asked + self.setup.kill_after);
                // A job past its time limit is asked to end in this turn, and may take this long.
                let until = if until <= now { now + self.setup.kill_after } else { until };
                scheduler
                    .restore(entry.number, run, until, now)
                    .map_err(|_| ControllerError::NoSuchNode { job: entry.number })?;
            }
        }
        self.count_switched(&mut scheduler);
        self.scheduler = scheduler;
        self.keep_out();
        let running = self.jobs.values().filter(|entry| entry.run().is_some());
        self.running = running.map(|entry| entry.number).collect();
        let waiting: Vec<u64> = self
            .jobs
            .values()
            .filter(|entry| entry.phase == Phase::Waiting)
            .map(|entry| entry.number)
            .collect();
        for number in waiting {
            self.enqueue(number);
        }
        self.must_rebuild = false;
        self.must_ask = true;
        Ok(())
    }

    /// Whether the policy has to be told what users have used.
    pub(crate) fn wants_use(&mut self) -> bool {
        !self.knows_use && self.scheduler.keeps_use()
    }

    /// Tells the policy what users have used: with jobs that are over, and with those that run.
    pub(crate) fn recall_use(&mut self, now: Instant, over: &[Entry]) {
        let all = over.iter().chain(self.jobs.values());
        let held: Vec<Held> = all.filter_map(|entry| self.setup.held(entry, now)).collect();
        self.scheduler.has_held(&held);
        self.knows_use = true;
    }

    /// Queues a job if it may start; otherwise notes what it waits for.
    fn enqueue(&mut self, number: u64) {
        let Some(entry) = self.jobs.get(&number) else { return };
        let is_aside = self.stuck.contains_key(&number) || self.aside.contains_key(&number);
        let mut is_free = !entry.request.held && !is_aside;
        for after in &entry.request.after {
            if self.is_present(after.job) {
                self.dependents.entry(after.job).or_default().insert(number);
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
            Err(Rejection::NoNode(missing)) => missing.reason(),
            Err(why @ (Rejection::OverLimit(_) | Rejection::NeverEligible)) => why.reason(),
            Err(Rejection::TooMuchPower) => "needs more power than the budget allows",
            Err(Rejection::FeedTooSmall { .. }) => {
                "needs more power than the feeds of its nodes carry"
            }
        };
        self.stuck.insert(number, why);
        // A job that cannot be queued must not block the other elements.
        if let Some(element) = element {
            self.arrays.leave(element, number);
        }
    }

    /// Sets another budget; `by_operator` says whether an operator set it rather than the
    /// configuration.
    pub(crate) fn set_budget(&mut self, budget: Budget, by_operator: bool) {
        if budget == self.budget && by_operator == self.is_budget_overridden {
            return;
        }
        self.budget = budget;
        self.is_budget_overridden = by_operator;
        self.scheduler.set_budget(self.setup.handed_out(&self.budget));
        self.must_ask = true;
        // A job that needed more power than the old budget may fit now.
        self.must_rebuild |= !self.stuck.is_empty();
    }

    /// Sets another policy, machine and rules. If that fails, nothing has changed.
    pub(crate) fn set_up(
        &mut self,
        setup: Setup,
        budget: Budget,
        now: Instant,
    ) -> Result<(), ControllerError> {
        let site = setup.decider.site().or_before(self.setup.decider.site());
        let setup = Setup { decider: setup.decider.clone().at_site(site), ..setup };
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

    /// The next time at which a turn is due even if nothing happens: a limit changes, a time limit
    /// is reached, a failed change is tried again, nodes have been idle for long enough, or the policy asked to be woken.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let limit = self.scheduler.ledger().next_limit();
        let running = self.running.iter().filter_map(|number| self.jobs.get(number));
        let over = running.filter_map(|entry| self.due(entry));
        // The policy's own wake-up is put off as well.
        let ask = match self.put_off {
            Some(since) => Some(since + SETTLING),
            None => self.scheduler.wake(),
        };
        let again = self.failures.values().filter_map(|failure| failure.again);
        limit.into_iter().chain(over).chain(again).chain(ask).chain(self.next_switch()).min()
    }

    /// Says whether it is not clear when power that counts as free will be, because nodes that are to draw less cannot be
    /// reached. Until then nothing starts or gets more: a job's time would pass while it waits for its power.
    pub(crate) fn set_engine_stuck(&mut self, is_stuck: bool) {
        self.is_engine_stuck = is_stuck;
    }

    /// Moves the clock, so that jobs submitted from now on are checked against the current limits.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.scheduler.advance(now);
    }

    /// Does what is due, and asks the policy if anything has happened.
    pub fn turn(&mut self, now: Instant) -> Result<(), ControllerError> {
        if self.must_rebuild || self.scheduler.is_stale() {
            self.rebuild(now)?;
        }
        self.scheduler.advance(now);
        self.place_again(now);
        self.note_limit(now);
        self.enforce_times(now);
        self.must_ask |= self.scheduler.wake().is_some_and(|at| at <= now);
        self.try_again(now);
        if !self.is_engine_stuck {
            self.give_back(now);
        }
        // The policy would repeat the change that has just failed.
        let may_adjust = self.scheduler.adjusts() && !self.is_about_to_try_again();
        if self.is_short() && may_adjust {
            // A policy that adjusts jobs knows best where to save.
            self.ask(now);
        }
        self.reduce_power(now);
        // No job starts while another is suspended for lack of power.
        let may_ask = match self.scheduler.adjusts() {
            true => may_adjust,
            false => !self.scheduler.has_suspended_for_machine(),
        };
        let may_ask = may_ask && !self.is_engine_stuck;
        let is_put_off = self.must_ask && may_ask && self.settles(now);
        if self.must_ask && may_ask && !is_put_off {
            self.ask(now);
        }
        if !is_put_off {
            self.switch_nodes(now);
            self.note_limit(now);
        }
        self.cap_others();
        Ok(())
    }

    /// Whether to ask the policy a moment later, because a job has just been asked to end at its
    /// time limit. Nearly all such jobs end at once. If the policy were asked now, it would assume
    /// that the job stays for a while, and start others on nodes that are about to become free for
    /// the next in line. The delay is bounded, however many such jobs there are.
    fn settles(&mut self, now: Instant) -> bool {
        let is_about_to_end = |number: &u64| {
            self.run_of(*number).and_then(|run| run.ending).is_some_and(|ending| {
                let is_at_limit = ending.reason == EndReason::TimeLimit && !ending.forced;
                is_at_limit && now < ending.asked + SETTLING
            })
        };
        let settles = self.running.iter().any(is_about_to_end);
        let since = *self.put_off.get_or_insert(now);
        if settles && now < since + SETTLING {
            return true;
        }
        self.put_off = None;
        false
    }

    /// Whether jobs hold more power than a limit allows.
    pub(super) fn is_short(&self) -> bool {
        !self.scheduler.over().is_empty()
    }

    /// Whether that is the limit of the machine.
    pub(super) fn is_machine_short(&self) -> bool {
        self.scheduler.excess(Limited::Machine) > Watts::ZERO
    }

    /// The name of a feed.
    fn feed_name(&self, feed: usize) -> String {
        self.setup.machine.feeds.as_ref().map_or("", |feeds| feeds.name(feed)).to_owned()
    }

    /// Records the limit in force and what the machine draws without any job, if one of them has changed.
    fn note_limit(&mut self, now: Instant) {
        let (limit, base) = (self.budget.at(now), self.base_power());
        let before = self.limit.replace((limit, base));
        if before != Some((limit, base)) {
            self.must_ask |= before.is_none_or(|before| before.0 != limit);
            self.note(now, EventKind::Limit { power: limit.limited(), base });
        }
        self.note_feeds(now);
    }

    /// Records the limits of feeds in force, if they have changed.
    fn note_feeds(&mut self, now: Instant) {
        let Some(feeds) = self.budget.feeds() else { return };
        let limits: Vec<Watts> = feeds.iter().map(|limit| limit.at(now)).collect();
        let before = self.feed_limits.replace(limits.clone()).unwrap_or_default();
        for (feed, limit) in limits.into_iter().enumerate() {
            if before.get(feed) == Some(&limit) {
                continue;
            }
            let (name, power) = (self.feed_name(feed), limit.limited());
            let text = match power {
                Some(limit) => format!("feed '{name}' may carry {limit}"),
                None => format!("feed '{name}' has no limit"),
            };
            let limit = Some(ScopedLimit { of: Scope::Feed(name), power });
            self.note(now, EventKind::Notice { text, limit });
            self.must_ask = true;
        }
    }

    /// Asks the policy and applies its decisions.
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
                    self.abandon(now, number, EndReason::Dropped, None)
                }
            }
        }
        let refusals: BTreeSet<String> =
            refused.iter().map(|no| self.scheduler.describe(no)).collect();
        for refusal in &refusals {
            // Each refusal is reported once.
            if !self.refusals.contains(refusal) {
                let text = format!("a decision of the policy was refused: {refusal}");
                self.note(now, EventKind::notice(text));
            }
        }
        self.refusals = refusals;
    }

    /// The machine, policy and rules in use.
    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Jobs that are not over, by their numbers.
    pub(crate) fn jobs(&self) -> &BTreeMap<u64, Entry> {
        &self.jobs
    }

    pub(super) fn scheduler_mut(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }

    /// The jobs as the policy sees them.
    pub(super) fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// The machine's budget.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Whether an operator has set the budget.
    pub(crate) fn is_budget_overridden(&self) -> bool {
        self.is_budget_overridden
    }

    /// What the machine draws without any job, as its nodes are now.
    pub(crate) fn base_power(&self) -> Watts {
        self.scheduler.ledger().base_power()
    }

    /// A message if jobs hold more than the limit allows, saying what is done about it.
    pub(crate) fn shortage(&self) -> Option<&str> {
        self.shortages.get(&Limited::Machine).map(String::as_str)
    }

    /// The same of a feed.
    pub(crate) fn shortage_below(&self, feed: usize) -> Option<&str> {
        self.shortages.get(&Limited::Feed(feed)).map(String::as_str)
    }

    /// All of these messages.
    pub(crate) fn shortages(&self) -> impl Iterator<Item = &str> {
        self.shortages.values().map(String::as_str)
    }

    /// The run of a job, if the job is running.
    fn run_of(&self, number: u64) -> Option<&Run> {
        self.jobs.get(&number)?.run()
    }

    /// How many nodes there are, and how many of them nobody has anything of.
    pub(crate) fn node_counts(&self) -> (u32, u32) {
        self.scheduler.nodes()
    }

    /// The number of waiting jobs, including held and blocked ones.
    pub(crate) fn waiting(&self) -> usize {
        self.jobs.len().saturating_sub(self.running.len())
    }

    /// Whether a job is running.
    pub(crate) fn is_running(&self, number: u64) -> bool {
        self.running.contains(&number)
    }

    /// The number of running jobs.
    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }
}
