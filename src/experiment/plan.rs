//! How many nodes for these watts, and how many watts for these nodes.
//!
//! A feed that can run some nodes at full power can run more of them at less each. Whether that pays is
//! the question of overprovisioning (T. Patki and others, "Exploring hardware overprovisioning in
//! power-constrained, high performance computing", ICS 2013). A plan tries the same jobs under the same
//! watts on more and more nodes, and then on the machine as it is under more and more watts. Both are
//! experiments like any other; what comes of them is two [curves](Curve) and one answer.

use crate::budget::{Allowance, BudgetSpec, Limit};
use crate::experiment::curve::{Curve, CurvePoint};
use crate::experiment::ranking::{Row, rankings};
use crate::experiment::run::{Results, Tried};
use crate::experiment::{Experiment, Figure, Named, Place};
use crate::machine::Machine;
use crate::units::{Share, Watts};

pub(crate) mod advice;
pub mod cost;
pub mod map;

/// Numbers of nodes to try, in hundredths of what the feed runs at full power.
const NODES: [u64; 9] = [100, 125, 150, 175, 200, 250, 300, 400, 500];

/// Budgets to try, in per cent of what the machine draws at most.
const BUDGETS: [u32; 8] = [30, 40, 50, 60, 70, 80, 90, 100];

/// The question: a machine and a feed.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// The machine as it is.
    pub(crate) machine: Machine,
    /// What it may draw.
    pub(crate) limit: Watts,
}

impl Question {
    /// As many nodes as the feed runs at full power; at least one.
    pub(crate) fn fed(&self) -> u32 {
        let left = self.limit.saturating_sub(self.machine.base_power).milliwatts();
        let fed = left / self.machine.node_power.milliwatts().max(1);
        u32::try_from(fed).unwrap_or(u32::MAX).clamp(1, Machine::MOST_NODES)
    }

    /// The numbers of nodes to try: from those that are fed at full power to five times as many,
    /// and those of the machine.
    pub(crate) fn sizes(&self) -> Vec<u32> {
        let most = u64::from(Machine::MOST_NODES);
        let scaled = |part: u64| (u64::from(self.fed()) * part / 100).clamp(1, most) as u32;
        let mut sizes: Vec<u32> = NODES.into_iter().map(scaled).collect();
        sizes.push(self.machine.nodes);
        sizes.sort_unstable();
        sizes.dedup();
        // Nodes so many that together they draw more than can be counted are none.
        // Nor are those that draw all of the feed when they run nothing.
        let is_some = |nodes: &u32| {
            self.machine.with_nodes(*nodes).is_ok_and(|machine| machine.floor() < self.limit)
        };
        sizes.retain(is_some);
        sizes
    }

    /// The budgets to try: shares of what the machine draws at most, and the one that was asked
    /// about. Those that leave nothing for jobs are none.
    pub(crate) fn limits(&self) -> Vec<Watts> {
        let share = |percent| Limit::Share(Share::percent(percent)).on(&self.machine).ok();
        let mut limits: Vec<Watts> = BUDGETS.into_iter().filter_map(share).collect();
        limits.push(self.limit);
        limits.sort_unstable();
        limits.dedup();
        limits
    }

    /// The experiment that asks about nodes; `jobs` says all the rest.
    pub(crate) fn by_nodes(&self, jobs: &Experiment) -> Experiment {
        let named = |value| Named { value, place: Place::Default };
        Experiment {
            nodes: self.sizes().into_iter().map(named).collect(),
            budgets: vec![budget(self.limit)],
            ..jobs.clone()
        }
    }

    /// The experiment that asks about the budget.
    pub(crate) fn by_budget(&self, jobs: &Experiment) -> Experiment {
        let budgets = self.limits().into_iter().map(budget).collect();
        Experiment { nodes: Vec::new(), budgets, ..jobs.clone() }
    }
}

pub(crate) fn budget(limit: Watts) -> Named<BudgetSpec> {
    let value = BudgetSpec::Constant(Allowance::Limited(Limit::Power(limit)));
    Named { value, place: Place::Default }
}

/// The curve of the mean turnaround over what `at` says of a row of the results: the number of nodes,
/// or the budget. Points at which the policy cannot run are left out, and the first reason is told.
pub fn curve(results: &Results, at: impl Fn(&Cellwise) -> f64) -> (Curve, Option<String>) {
    let mut points = Vec::new();
    let mut reason = None;
    for ranking in rankings(&results.tried, Figure::Turnaround) {
        let place = Cellwise { size: ranking.cell.size, budget: ranking.cell.budget };
        if let Some((_, why)) = ranking.cannot.first() {
            reason.get_or_insert_with(|| why.clone());
        }
        let row: Option<&Row> = ranking.rows.first();
        points.extend(row.map(|row| CurvePoint {
            at: at(&place),
            figure: row.figure(Figure::Turnaround).map(|(spread, _)| spread),
            undone: row.undone.mean,
        }));
    }
    (Curve::through(points), reason)
}

/// What power costs for a year at each point of the curve over the nodes of an experiment: the mean over seeds, where
/// it is known.
pub(crate) fn power_costs(
    experiment: &Experiment,
    results: &Results,
    curve: &Curve,
) -> Vec<Option<f64>> {
    let cost = |tried: &Tried| cost::power_of_year(tried.outcome.summary()?, &experiment.tariff);
    let of_point = |point: &CurvePoint| {
        let size = experiment.nodes.iter().position(|nodes| f64::from(nodes.value) == point.at)?;
        let runs = results.tried.iter().filter(|tried| tried.cell.size == size);
        cost::mean(runs.map(cost))
    };
    curve.points.iter().map(of_point).collect()
}

/// Where a point of a curve is among the cells.
pub struct Cellwise {
    /// Which number of nodes.
    pub(crate) size: usize,
    /// The place of the budget in the experiment's list.
    pub(crate) budget: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 256 nodes of 100 W and 1 kW of base power, under 16.36 kW.
    fn question() -> Question {
        let machine = Machine::of_processors(256).unwrap();
        let machine = Machine { base_power: Watts::from_watts(1000), ..machine };
        Question { machine, limit: Watts::from_watts(16_360) }
    }

    #[test]
    fn points_begin_where_all_nodes_have_full_power() {
        let question = question();
        assert_eq!(question.fed(), 153);
        assert_eq!(question.sizes(), [153, 191, 229, 256, 267, 306, 382, 459, 612, 765]);
        let limits = question.limits();
        // From 30 % of 26.6 kW to all of it, and the one that was asked about.
        assert_eq!(limits.len(), 9);
        assert_eq!(limits.first(), Some(&Watts::from_watts(7980)));
        assert_eq!(limits.last(), Some(&Watts::from_watts(26_600)));
        assert!(limits.contains(&Watts::from_watts(16_360)));
        let starved = Question { limit: Watts::from_watts(1001), ..question };
        assert_eq!(starved.fed(), 1);
        assert_eq!(starved.sizes(), [1, 2, 3, 4, 5, 256]);
    }
}
