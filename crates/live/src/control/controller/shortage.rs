//! Shortage: running jobs hold more power than a lower limit allows, of the machine or of a feed.
//!
//! Feeds come before those above them, and the machine last: what is saved below a feed counts above it, too. For each of them,
//! only jobs on its nodes give power up. First, these jobs are given less power on the nodes they have, starting with those that lose least speed
//! per watt saved. If all jobs are at their minimum and that is not enough, the last resort acts. When
//! power is available again, the oldest jobs get back first what they had.

use std::collections::BTreeSet;

use super::{Act, Controller};
use crate::control::limited::Limited;
use crate::control::scheduler::{Alternative, Effect};
use crate::control::setup::LastResort;
use crate::engine::Signal;
use crate::job::{ChangeReason, EndReason, EventKind, Run};
use busbar_core::units::{Instant, Span, Watts};

/// A possible reduction of a job's power.
struct Saving {
    number: u64,
    to: Alternative,
    /// What that saves where power is short.
    saved: Watts,
    /// Lost speed, in nodes, for each milliwatt saved.
    loss: f64,
}

impl Controller {
    /// Brings the power that running jobs hold within the limit, as far as possible.
    pub(super) fn reduce_power(&mut self, now: Instant) {
        for at in self.scheduler.over() {
            self.reduce_at(now, at);
            self.must_ask = true;
        }
        // As long as jobs are suspended, power is short.
        if !self.shortages.is_empty() && !self.scheduler.ledger().has_suspended() {
            let still: BTreeSet<Limited> = self.scheduler.over().into_iter().collect();
            self.shortages.retain(|at, _| still.contains(at));
        }
    }

    fn reduce_at(&mut self, now: Instant, at: Limited) {
        let is_short = |controller: &Self| controller.scheduler.excess(at) > Watts::ZERO;
        // One reduction for each job at a time; then the remaining ones are rated again.
        while is_short(self) {
            let excess = self.scheduler.excess(at);
            let mut savings: Vec<Saving> =
                self.running.iter().filter_map(|number| self.best_saving(*number, at)).collect();
            if savings.is_empty() {
                break;
            }
            savings.sort_by(|one, other| {
                one.loss.total_cmp(&other.loss).then(one.number.cmp(&other.number))
            });
            let mut saved = Watts::ZERO;
            let mut changed = false;
            for saving in savings {
                if saved >= excess {
                    break;
                }
                if self.carry_out(now, saving.number, &saving.to, ChangeReason::Squeezed) {
                    saved += saving.saved;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        if !is_short(self) {
            self.shortages.remove(&at);
        } else if !self.may_still_succeed() {
            self.last_resort(now, at);
        }
    }

    /// A running job that may be changed: it is neither suspended nor about to end, and the policy
    /// can handle it.
    fn adjustable(&self, number: u64) -> Option<&Run> {
        let is_free = |run: &&Run| !run.suspended && run.ending.is_none();
        self.run_of(number).filter(is_free).filter(|_| !self.unmanaged.contains(&number))
    }

    /// The reduction of a job's power that loses least speed per watt.
    fn best_saving(&self, number: u64, at: Limited) -> Option<Saving> {
        let share = self.scheduler.share(number, at).filter(|share| share.0 > 0)?;
        let run = self.adjustable(number).filter(|_| !self.has_just_failed(number))?;
        let allotment = &run.allotment;
        let savings = self.scheduler.alternatives(number, allotment).into_iter().filter_map(|to| {
            let saved = part(allotment.power.saturating_sub(to.point.power), share);
            if saved == Watts::ZERO {
                return None;
            }
            let slowed = allotment.time.secs_f64() / to.point.time.secs_f64();
            let lost = (1.0 - slowed).max(0.0) * allotment.nodes.len() as f64;
            Some(Saving { number, saved, loss: lost / saved.milliwatts() as f64, to })
        });
        savings.min_by(|one, other| {
            one.loss.total_cmp(&other.loss).then(other.to.point.power.cmp(&one.to.point.power))
        })
    }

    /// Changes a job's power on the nodes it has; returns whether that was possible.
    fn carry_out(
        &mut self,
        now: Instant,
        number: u64,
        to: &Alternative,
        because: ChangeReason,
    ) -> bool {
        let Some(run) = self.adjustable(number) else { return false };
        let moving = run.moves_until.since(now);
        let left = moving + run.work_at(now).time(to.point.time);
        match self.scheduler.change(number, to, left.max(Span::from_millis(1))) {
            Ok(Some(Effect::Changed { number, allotment, pause })) => {
                self.change(now, number, allotment, pause, because);
                true
            }
            _ => false,
        }
    }

    /// Applies the last resort: all jobs are at their minimum, and they still hold too much.
    fn last_resort(&mut self, now: Instant, at: Limited) {
        // The youngest jobs have least to lose.
        let mut running: Vec<(Instant, u64)> = self
            .running
            .iter()
            .copied()
            .filter_map(|number| self.adjustable(number).map(|run| (run, number)))
            .filter(|(run, _)| !run.of_others)
            .filter(|(_, number)| self.scheduler.held_at(*number, at) > Watts::ZERO)
            .map(|(run, number)| (run.start, number))
            .collect();
        running.sort_unstable();
        let excess = self.scheduler.excess(at);
        let done = match self.setup.last_resort {
            LastResort::Hold => match at {
                Limited::Machine => "no job starts until enough jobs have ended",
                Limited::Feed(_) => "no job starts below it until enough jobs have ended",
            },
            LastResort::Suspend => {
                running.retain(|(_, number)| !self.is_unstoppable(*number));
                while self.scheduler.excess(at) > Watts::ZERO {
                    let Some((_, number)) = running.pop() else { break };
                    self.suspend(now, number);
                }
                "the youngest jobs are suspended"
            }
            LastResort::Cancel => {
                let is_ending =
                    |number: &&u64| self.run_of(**number).is_some_and(|run| run.ending.is_some());
                let ending = self.running.iter().filter(is_ending);
                let held = |number: u64| self.scheduler.held_at(number, at);
                let mut leaving: Watts = ending.map(|number| held(*number)).sum();
                while leaving < excess {
                    let Some((_, number)) = running.pop() else { break };
                    leaving += self.scheduler.held_at(number, at);
                    self.ask_to_end(now, number, EndReason::Budget, None);
                }
                "the youngest jobs are ended"
            }
        };
        let text = match at {
            Limited::Machine => {
                let limit = self.scheduler.ledger().limit();
                format!(
                    "jobs at their lowest power need {excess} more than the limit of {limit}: {done}"
                )
            }
            Limited::Feed(feed) => {
                let limit = self.scheduler.below(feed).map(|below| below.limit).unwrap_or_default();
                let name = self.feed_name(feed);
                format!(
                    "jobs at their lowest power need {excess} more than the limit of feed '{name}', {limit}: {done}"
                )
            }
        };
        if !self.shortages.contains_key(&at) {
            self.note(now, EventKind::notice(text.clone()));
        }
        self.shortages.insert(at, text);
    }

    fn suspend(&mut self, now: Instant, number: u64) {
        if self.scheduler.suspend(number).is_err() {
            return;
        }
        let Some(entry) = self.jobs.get_mut(&number) else { return };
        let attempt = entry.attempt();
        let Some(run) = entry.run_mut() else { return };
        run.suspend(now);
        self.unwritten.changed.insert(number);
        self.unwritten.acts.push(Act::Signal { attempt, signal: Signal::Suspend });
        self.note(now, EventKind::Suspended { job: number });
    }

    /// Gives back power that was taken, as far as there is any: suspended jobs before slowed ones,
    /// and the oldest first.
    pub(super) fn give_back(&mut self, now: Instant) {
        // Where a feed alone is short, the ledger gives nothing below it.
        if self.is_machine_short() {
            return;
        }
        let has_feeds = self.scheduler.ledger().has_feeds();
        let (mut suspended, mut slowed) = (Vec::new(), Vec::new());
        for number in &self.running {
            let Some(run) = self.run_of(*number).filter(|run| run.ending.is_none()) else {
                continue;
            };
            if run.suspended {
                suspended.push((run.start, *number));
            } else if run.squeezed_from.is_some() {
                slowed.push((run.start, *number));
            }
        }
        suspended.sort_unstable();
        slowed.sort_unstable();
        for (_, number) in suspended {
            // It may be its feed that has too little, and others may be below other feeds.
            if !self.resume(now, number) && !has_feeds {
                return;
            }
        }
        for (_, number) in slowed {
            if !self.restore(now, number) && !has_feeds {
                return;
            }
        }
    }

    fn resume(&mut self, now: Instant, number: u64) -> bool {
        let Some(entry) = self.jobs.get_mut(&number) else { return false };
        let attempt = entry.attempt();
        let Some(run) = entry.run_mut() else { return false };
        let mut resumed = run.clone();
        resumed.resume(now);
        if self.scheduler.resume(number, resumed.until).is_err() {
            return false;
        }
        *run = resumed;
        self.must_ask = true;
        self.unwritten.changed.insert(number);
        self.unwritten.acts.push(Act::Signal { attempt, signal: Signal::Resume });
        self.note(now, EventKind::Resumed { job: number });
        true
    }

    /// Gives a slowed job back what it had, or part of it; returns whether it got all.
    fn restore(&mut self, now: Instant, number: u64) -> bool {
        let run = self.adjustable(number).filter(|_| !self.has_just_failed(number));
        let Some(run) = run else { return true };
        let Some(wanted) = &run.squeezed_from else { return true };
        let all = Alternative::of(wanted, self.scheduler.names_nodes());
        let (has, most) = (run.allotment.power, wanted.power);
        let mut ways = self.scheduler.alternatives(number, &run.allotment);
        ways.retain(|way| way.point.power > has && way.point.power < most);
        ways.sort_by_key(|way| std::cmp::Reverse(way.point.power));
        if self.carry_out(now, number, &all, ChangeReason::Restored) {
            self.must_ask = true;
            return true;
        }
        for way in ways {
            if self.carry_out(now, number, &way, ChangeReason::Squeezed) {
                self.must_ask = true;
                break;
            }
        }
        false
    }
}

/// The part of a power that is drawn on so many nodes of as many, rounded down.
fn part(power: Watts, (some, all): (u32, u32)) -> Watts {
    if some >= all {
        return power;
    }
    let part = u128::from(power.milliwatts()) * u128::from(some) / u128::from(all.max(1));
    Watts::from_milliwatts(part as u64)
}
