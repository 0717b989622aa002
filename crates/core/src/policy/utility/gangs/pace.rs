//! The pace of energy: how much of what is left a job may consume.
//!
//! This is the paper's [filter](crate::policy::utility::filter) with one change. There the average task is
//! one of all tasks, which are all of a size; here jobs differ so much in nodes and time that the large
//! ones would never pass. So a job is measured by the average of its own menu: the filter says how fast a
//! job may be, not how large. Where energy is not counted, or the period is over, there is no pace.

use crate::budget::EnergyBudget;
use crate::ledger::EnergyAccount;
use crate::model::{OperatingPoint, TimedPoints};
use crate::policy::View;
use crate::policy::utility::filter::{Filter, Limit};
use crate::units::{Instant, Joules, Span};

/// What may be consumed from now on.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    now: Instant,
    budget: EnergyBudget,
    /// What was consumed or promised when the turn began.
    committed: Joules,
    /// The energy that is not promised.
    left: Joules,
    /// The time from when each node is free to the end of the period, in milliseconds of all together.
    remaining: u128,
    nodes: u32,
    filters: bool,
    has_refused: bool,
}

impl Pace {
    /// The pace at the beginning of a turn, if there is any.
    pub(super) fn of(view: &View<'_>, filters: bool) -> Option<Self> {
        let account: &EnergyAccount = view.ledger.energy()?;
        let budget = *account.budget();
        if !budget.is_limited() || view.now >= budget.end {
            return None;
        }
        let from = |free: Instant| {
            u128::from(budget.end.since(free.max(view.now).max(budget.begin)).millis())
        };
        let held = view.ledger.running().iter();
        let held = held.map(|holding| u128::from(holding.nodes) * from(holding.until));
        let free = u128::from(view.ledger.free_nodes()) * from(view.now);
        Some(Pace {
            now: view.now,
            budget,
            committed: account.committed(),
            left: account.left(),
            remaining: free + held.sum::<u128>(),
            nodes: view.ledger.nodes_in_service(),
            filters,
            has_refused: false,
        })
    }

    /// Whether a job may start now at a place of its menu.
    pub(super) fn allows(&mut self, ways: &TimedPoints, place: usize) -> bool {
        let allowed = self.can_pay(&ways[place].point) && self.passes(ways, place);
        self.has_refused |= !allowed;
        allowed
    }

    fn charge(&self, point: &OperatingPoint) -> Joules {
        self.budget.charge(point.power, self.now, self.now + point.time)
    }

    fn can_pay(&self, point: &OperatingPoint) -> bool {
        self.charge(point) <= self.left
    }

    fn passes(&self, ways: &TimedPoints, place: usize) -> bool {
        if !self.filters {
            return true;
        }
        let time = |believed: Span| believed.max(OperatingPoint::SHORTEST);
        let energy = |place: usize| ways[place].point.power.over(time(ways[place].believed));
        let count = ways.len().max(1) as f64;
        let times =
            ways.iter().map(|way| f64::from(way.point.nodes) * time(way.believed).millis() as f64);
        let energies = (0..ways.len()).map(|place| energy(place).microjoules() as f64);
        let filter = Filter {
            mean_time: times.sum::<f64>() / count,
            mean_energy: energies.sum::<f64>() / count,
            machines: self.nodes,
        };
        match filter.limit(&self.budget, self.now, self.committed, self.remaining) {
            Limit::Nothing => false,
            Limit::AtMost(most) => energy(place) <= most,
            Limit::Unlimited => true,
        }
    }

    /// A job starts.
    pub(super) fn spend(&mut self, point: &OperatingPoint) {
        self.left = self.left.saturating_sub(self.charge(point));
    }

    /// Whether anybody was refused.
    pub(super) fn has_refused(&self) -> bool {
        self.has_refused
    }

    /// When to ask again for those who were refused: at the next mapping event, or when the period is over.
    pub(super) fn resumes(&self, every: Span) -> Instant {
        let every = every.millis().max(1);
        let next = (self.now.millis() / every + 1).saturating_mul(every);
        Instant::from_millis(next).min(self.budget.end)
    }
}
