//! The energy filter: how much a choice may consume, so that the energy lasts.
//!
//! A choice passes that consumes no more than `λ·e_rem/n`. Here `e_rem` is what is left of the
//! energy, `n` is how many average tasks that energy or the time that is left would do for, and `λ`
//! compares the rate at which energy should be consumed with the rate at which it was.

use crate::budget::EnergyBudget;
use crate::heterogeneity::Tables;
use crate::units::{Instant, Joules};

/// What is known beforehand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filter {
    /// The mean time of all entries of the tables, in milliseconds.
    pub(crate) mean_time: f64,
    /// Their mean energy, in microjoules.
    pub(crate) mean_energy: f64,
    /// How many machines there are.
    pub(crate) machines: u32,
}

/// What the filter says at a mapping event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nothing is mapped: there is no energy, or no time.
    Nothing,
    /// Only choices that consume no more than this.
    AtMost(Joules),
    /// No choice is filtered out.
    Unlimited,
}

impl Filter {
    /// The filter of a site.
    pub fn of(tables: &Tables) -> Self {
        let (mut count, mut time, mut energy) = (0u64, 0.0, 0.0);
        for (_, _, state) in tables.entries() {
            count += 1;
            time += state.time.millis() as f64;
            energy += state.energy().microjoules() as f64;
        }
        let count = count.max(1) as f64;
        Filter { mean_time: time / count, mean_energy: energy / count, machines: tables.machines() }
    }

    /// The limit at a mapping event. `committed` is what was consumed and what is promised to tasks
    /// that are not moved any more; `remaining` is the time, in milliseconds of all machines
    /// together, from when each is available to the end of the period.
    pub fn limit(
        &self,
        budget: &EnergyBudget,
        now: Instant,
        committed: Joules,
        remaining: u128,
    ) -> Limit {
        if !budget.is_limited() {
            return Limit::Unlimited;
        }
        let left = budget.energy.saturating_sub(committed);
        if left == Joules::ZERO || remaining == 0 {
            return Limit::Nothing;
        }
        let whole = u128::from(self.machines) * u128::from(budget.length().millis());
        let passed = whole.saturating_sub(remaining);
        let (left, remaining) = (left.microjoules() as f64, remaining as f64);
        let count = (remaining / self.mean_time).min(left / self.mean_energy);
        let strictness = if now < budget.begin || passed == 0 {
            1.0
        } else if committed == Joules::ZERO {
            return Limit::Unlimited;
        } else {
            let target = budget.energy.microjoules() as f64 / whole as f64;
            let current = committed.microjoules() as f64 / passed as f64;
            target / current
        };
        // Rounded down: what fits is decided in integers.
        let most = strictness * left / count;
        Limit::AtMost(Joules::from_microjoules(most.min(1e30) as u128))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two machines, a period of 100 s from 10 s on, 1000 J; tasks take 10 s and 50 J on average.
    fn filter(now: u32, committed: u64, remaining_s: u32) -> Limit {
        let filter = Filter { mean_time: 10_000.0, mean_energy: 50e6, machines: 2 };
        let (begin, end) = (Instant::from_secs(10), Instant::from_secs(110));
        let budget = EnergyBudget { energy: Joules::from_joules(1000), begin, end };
        let remaining = u128::from(remaining_s) * 1000;
        filter.limit(&budget, Instant::from_secs(now), Joules::from_joules(committed), remaining)
    }

    fn at_most(joules: u64) -> Limit {
        Limit::AtMost(Joules::from_joules(joules))
    }

    /// Half of the time has passed and half of the energy is committed: the rates agree, λ is 1. Time
    /// is left for 10 average tasks and energy for 10 as well: 500 J / 10.
    #[test]
    fn on_target_a_task_may_have_its_share() {
        assert_eq!(filter(60, 500, 100), at_most(50));
    }

    /// A quarter of the energy in half of the time: λ is 2. 750 J would do for 15 tasks, but there
    /// is time for 10 only: 2·750/10.
    #[test]
    fn who_saved_may_spend() {
        assert_eq!(filter(60, 250, 100), at_most(150));
    }

    /// 800 J in half of the time: λ is 0.625. 200 J do for 4 tasks: 0.625·200/4 = 0.625·50.
    #[test]
    fn who_spent_must_save() {
        let limit = Limit::AtMost(Joules::from_microjoules(31_250_000));
        assert_eq!(filter(60, 800, 100), limit);
    }

    #[test]
    fn singular_points() {
        // In the warm-up λ is 1, whatever is committed: 1000 J, time for 20 tasks, energy for 20.
        assert_eq!(filter(0, 0, 200), at_most(50));
        assert_eq!(filter(9, 500, 200), at_most(50));
        // So it is when no time has passed on any machine.
        assert_eq!(filter(10, 0, 200), at_most(50));
        // Time has passed, but nothing was consumed: no limit.
        assert_eq!(filter(20, 0, 180), Limit::Unlimited);
        // No energy, or no time.
        assert_eq!(filter(60, 1000, 100), Limit::Nothing);
        assert_eq!(filter(60, 1001, 100), Limit::Nothing);
        assert_eq!(filter(60, 500, 0), Limit::Nothing);
        // Without a budget there is nothing to share.
        let filter = Filter { mean_time: 1.0, mean_energy: 1.0, machines: 1 };
        let (begin, end) = (Instant::ZERO, Instant::from_secs(1));
        let budget = EnergyBudget { energy: Joules::UNLIMITED, begin, end };
        assert_eq!(filter.limit(&budget, begin, Joules::ZERO, 1000), Limit::Unlimited);
    }
}
