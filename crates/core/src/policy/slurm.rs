//! Slurm's own scheduler: the main loop, the backfill plugin and the choice of nodes (`sched/backfill`, `select/cons_tres`
//! and `priority/multifactor` of Slurm 22.05, by its documentation and its source).
//!
//! Rule: the main loop runs when a job ends, soon after jobs were submitted, and once in each `sched_interval`. It goes through
//! the queue by priority and starts what fits. The first job of a partition that does not fit blocks the partition and its
//! nodes until the loop is over. Every `bf_interval`, a backfill pass goes through the queue by priority, too: each job starts
//! if it fits now without taking nodes that were promised to jobs before it, and else is promised the nodes and the time that
//! it would get. Nodes are chosen by weight, then from the row of neighbours that fits best.
//!
//! Priorities are those of the site's file, partition tiers first; without such a file, jobs are in the order of submission.
//! Power is one more resource, as licences are with `bf_licenses`: what is free of it over time is planned in backfill passes,
//! and a job that lacks nothing else ends the main loop.
//!
//! A pass that would come to the same as the last one is left out: nothing happened since, nobody passed anybody, and no time
//! has come by which the pass went. What it would have done to Slurm's clocks is done.
//!
//! What it deliberately does not do: take time. A pass is over at the instant at which it begins, so `bf_continue`,
//! `bf_max_time` and what else cuts a long pass short mean nothing here. It starts jobs as they were asked for, and knows no
//! topology, no burst buffers, no jobs for several partitions and none of several parts. Slurm's clock is that of the
//! simulation: times that Slurm rounds to whole minutes of the day are rounded to whole minutes from its start.

mod ahead;
mod backfill;
mod clock;
mod floor;
mod main_loop;
mod nodes;
mod power;
mod select;
mod slots;
mod spec;

use crate::limits::Reservation;
use crate::policy::{Decision, Order, PastJob, Policy, View};
use crate::priority::{Scheduler, Standing};
use crate::units::{Instant, JobId};
use clock::{Clock, Due};
use floor::Floor;
use main_loop::Cut;
use power::Power;

pub use spec::SlurmSpec;

/// Slurm's scheduler.
#[derive(Clone, Debug)]
struct Slurm<O> {
    rules: Scheduler,
    order: O,
    floor: Floor,
    clock: Option<Clock>,
    /// Whether somebody waits.
    waits: bool,
    /// When jobs may pass each other next.
    moves_at: Option<Instant>,
    /// Jobs that were to start in the turn before.
    started: Vec<JobId>,
    main: Loop,
    /// Until when a backfill pass would come to the same as the last one.
    backfill_holds: Instant,
}

/// What is known of the last main loop.
#[derive(Clone, Copy, Debug)]
struct Loop {
    /// Until when it would come to the same.
    holds: Instant,
    /// The same of one over the whole queue.
    whole_holds: Instant,
    /// Whether it passed over somebody.
    passes_over: bool,
}

impl<O> Slurm<O> {
    fn new(rules: Scheduler, order: O, reserved: &[Reservation]) -> Self {
        let never = Instant::ZERO;
        Slurm {
            rules,
            order,
            floor: Floor::with(reserved),
            clock: None,
            waits: false,
            moves_at: None,
            started: Vec::new(),
            main: Loop { holds: never, whole_holds: never, passes_over: false },
            backfill_holds: never,
        }
    }

    /// Whether the main loop runs as soon as a job has ended.
    fn runs_at_ends(&self) -> bool {
        self.rules.epilog && !self.rules.defer
    }

    /// Whatever was found out may be otherwise now.
    fn forget(&mut self) {
        self.main.holds = Instant::ZERO;
        self.main.whole_holds = Instant::ZERO;
        self.backfill_holds = Instant::ZERO;
    }
}

impl<O: Order> Slurm<O> {
    /// Takes in what happened since the turn before.
    fn follow(&mut self, view: &View<'_>, clock: &mut Clock) {
        let changes = &view.changes;
        clock.catch_up(view.now, &self.rules, self.waits && self.main.passes_over);
        let has_ended = !changes.nothing_freed() || !changes.adopted.is_empty();
        let has_come = !changes.arrived.is_empty() || (has_ended && !self.runs_at_ends());
        if has_come {
            clock.want(view.now);
        }
        if has_come || has_ended {
            clock.note_update(view.now);
        }
        let has_moved = self.moves_at.is_some_and(|at| at <= view.now);
        if has_come || has_ended || has_moved || self.floor.reserves_at(view.now) {
            self.forget();
        }
        let started = std::mem::take(&mut self.started);
        self.floor.follow(view, &started);
    }

    /// Runs what is due.
    fn turn(&mut self, view: &View<'_>, clock: &mut Clock, decisions: &mut Vec<Decision>) {
        let (now, due) = (view.now, clock.due(view.now, &self.rules));
        if let Some(due) = due {
            clock.run(now, due);
        }
        // What is free of the power, once somebody asks.
        let mut power = None;
        if due.is_some() || (!view.changes.nothing_freed() && self.runs_at_ends()) {
            let is_whole = due == Some(Due::Whole);
            let holds = if is_whole { self.main.whole_holds } else { self.main.holds };
            if holds <= now {
                let power = power.get_or_insert_with(|| Power::of(view.ledger));
                self.run_main(view, power, is_whole, decisions);
            }
            if self.main.passes_over || !decisions.is_empty() {
                clock.note_update(now);
            }
        }
        if self.rules.backfill && clock.is_backfill_due(now, &self.rules) {
            clock.run_backfill(now);
            if self.backfill_holds <= now {
                let power = power.get_or_insert_with(|| Power::of(view.ledger));
                self.run_backfill(view, power, clock, decisions);
            }
        }
    }

    fn run_main(
        &mut self,
        view: &View<'_>,
        power: &mut Power,
        is_whole: bool,
        decisions: &mut Vec<Decision>,
    ) {
        let outcome = main_loop::run(
            view,
            &self.rules,
            &self.order,
            &mut self.floor,
            power,
            is_whole,
            decisions,
        );
        let holds = outcome.changes_at.unwrap_or(Instant::NEVER);
        let holds = holds.min(self.floor.next_reservation(view.now));
        let (holds, whole_holds) = match outcome.cut {
            None => (holds, holds),
            Some(Cut::Depth) => (holds, Instant::ZERO),
            Some(Cut::Starts) => (Instant::ZERO, Instant::ZERO),
        };
        self.main = Loop { holds, whole_holds, passes_over: outcome.passes_over };
        self.goes_on(view, decisions, 0);
        if !decisions.is_empty() {
            self.backfill_holds = Instant::ZERO;
        }
    }

    fn run_backfill(
        &mut self,
        view: &View<'_>,
        power: &mut Power,
        clock: &mut Clock,
        decisions: &mut Vec<Decision>,
    ) {
        let before = decisions.len();
        let holds =
            backfill::run(view, &self.rules, &self.order, &mut self.floor, power, decisions);
        self.goes_on(view, decisions, before);
        self.backfill_holds = holds.min(self.floor.next_reservation(view.now));
        if decisions.len() > before {
            self.forget();
            clock.note_update(view.now);
        }
    }

    /// These jobs run from now on.
    fn goes_on(&mut self, view: &View<'_>, decisions: &[Decision], from: usize) {
        for decision in &decisions[from..] {
            if let Decision::Start { job, point } | Decision::StartIn { job, point, .. } = decision
            {
                self.order.goes_on(view, *job, point, point.time);
                self.order.left(*job);
                self.started.push(*job);
            }
        }
    }

    /// When it has to be asked again, if somebody waits and nothing happens before.
    fn wakes_at(&self, view: &View<'_>, clock: &Clock) -> Instant {
        let rules = &self.rules;
        let batch = clock.next_batch(rules);
        let whole = match self.main.whole_holds {
            Instant::NEVER => None,
            holds => Some(clock.next_whole(rules).max(holds)),
        };
        let backfill = match self.backfill_holds {
            Instant::NEVER => None,
            _ if !rules.backfill => None,
            holds => clock.next_backfill(rules, self.main.passes_over).map(|next| next.max(holds)),
        };
        let all = [batch, whole, backfill, self.moves_at].into_iter().flatten();
        all.filter(|at| *at > view.now).min().unwrap_or(Instant::NEVER)
    }
}

impl<O> Policy for Slurm<O>
where
    O: Order + Clone + Send + 'static,
{
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        self.order.begin(view);
        let mut clock = self.clock.unwrap_or_else(|| Clock::new(view.now));
        self.follow(view, &mut clock);
        self.moves_at = self.order.moves_at();
        if !view.queue.is_empty() {
            self.turn(view, &mut clock, decisions);
        }
        self.waits = decisions.len() < view.queue.len();
        if self.waits {
            let at = self.wakes_at(view, &clock);
            decisions.extend((at != Instant::NEVER).then_some(Decision::WakeAt(at)));
        }
        self.clock = Some(clock);
    }

    fn recall(&mut self, past: &[PastJob]) {
        self.order.recall(past);
    }

    fn standings(&mut self) -> Vec<(JobId, Standing)> {
        self.order.standings()
    }

    fn forget(&mut self, job: JobId) -> bool {
        self.order.withdrawn(job);
        Slurm::forget(self);
        true
    }

    fn copy(&self) -> Option<Box<dyn Policy + Send>> {
        Some(Box::new(self.clone()))
    }
}
