//! What machines of several sizes can do under several limits, and what that costs.
//!
//! The jobs of a log come when they come: a machine that is larger than they need is idle, and its turnaround says
//! little of what it could do. So the map gives every machine all jobs at once, and asks how long it takes. What was
//! done is counted as the jobs were asked for, in nodes at full speed: a job that ran slowly under a cap is worth no
//! more for that.

use serde::Serialize;

use super::cost::{NodePrice, mean, power_of_year};
use super::{Question, budget};
use crate::experiment::run::Results;
use crate::experiment::{CellOutcome, Experiment, Named, Place};
use crate::prepared::Demand;
use crate::report::undone;
use crate::units::{Share, Watts};

/// Limits to try, in per cent of the one that was asked about.
const LIMITS: [u32; 5] = [60, 80, 100, 125, 150];

/// A machine of this many nodes under such a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct MapPlace {
    /// How many nodes.
    pub(crate) nodes: u32,
    /// The limit.
    pub(crate) budget_w: f64,
    /// How many nodes at full speed would do as much, of the jobs that can run.
    pub(crate) work_nodes: Option<f64>,
    /// Jobs that cannot run there, the mean over seeds.
    pub(crate) undone: f64,
    /// What was drawn in the mean.
    pub(crate) mean_power_w: Option<f64>,
    /// The work of the log over that: above one, the machine cannot keep up with it.
    pub(crate) load: Option<f64>,
    /// Nodes and power for a year, if both have a price.
    pub(crate) cost_per_year: Option<f64>,
}

/// All of them, and the best under any of the limits of those that leave the fewest jobs undone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Map {
    /// How many nodes at full speed the log keeps busy in the mean.
    pub(crate) offered_nodes: Option<f64>,
    /// The places, by limit and then by nodes.
    pub(crate) places: Vec<MapPlace>,
    /// The place with the most work for each watt of the limit.
    pub(crate) best_per_watt: Option<usize>,
    /// The place with the most work for each unit of money.
    pub(crate) best_per_cost: Option<usize>,
    /// The place that is recommended, under the limit that was asked about.
    pub(crate) recommended: Option<usize>,
}

impl Question {
    /// The limits of the map.
    pub(crate) fn map_limits(&self) -> Vec<Watts> {
        LIMITS.into_iter().map(|percent| Share::percent(percent).of(self.limit)).collect()
    }

    /// The experiment that asks what machines can do under one of these limits; nothing if none can be fed at all.
    pub(crate) fn at_once(&self, limit: Watts, jobs: &Experiment) -> Option<Experiment> {
        let fed = |nodes: &u32| {
            self.machine.with_nodes(*nodes).is_ok_and(|machine| machine.floor() < limit)
        };
        let named = |value| Named { value, place: Place::Default };
        let nodes: Vec<Named<u32>> = self.sizes().into_iter().filter(fed).map(named).collect();
        (!nodes.is_empty()).then(|| Experiment {
            nodes,
            budgets: vec![budget(limit)],
            at_once: true,
            // One look at each place is enough to compare them: the differences are large.
            seeds: jobs.seeds.iter().take(1).copied().collect(),
            ..jobs.clone()
        })
    }
}

/// What came of one of these experiments.
pub(crate) fn places(
    experiment: &Experiment,
    limit: Watts,
    results: &Results,
    demand: &Demand,
    node: Option<NodePrice>,
) -> Vec<MapPlace> {
    let place = |(size, nodes): (usize, &Named<u32>)| {
        let of_size = results.tried.iter().filter(|tried| tried.cell.size == size);
        let runs: Vec<_> = of_size
            .filter_map(|tried| match &tried.outcome {
                CellOutcome::Ran(finished) => Some(finished.summary()),
                CellOutcome::CannotRun(_) => None,
            })
            .collect();
        let left = mean(runs.iter().map(|run| Some(undone(run) as f64)))?;
        let rate = runs.iter().filter(|run| run.makespan_s > 0.0);
        let rate = rate.map(|run| Some(run.work_node_s / run.makespan_s));
        let work_nodes = mean(rate).filter(|work| *work > 0.0);
        let power = mean(runs.iter().map(|run| power_of_year(run, &experiment.tariff)));
        let bought = node.map(|node| node.of_year(nodes.value));
        Some(MapPlace {
            nodes: nodes.value,
            budget_w: limit.as_f64(),
            work_nodes,
            undone: left,
            mean_power_w: mean(runs.iter().map(|run| run.mean_power_w)),
            load: work_nodes.and_then(|work| Some(demand.mean_nodes()? / work)),
            cost_per_year: power.zip(bought).map(|(power, bought)| power + bought),
        })
    };
    experiment.nodes.iter().enumerate().filter_map(place).collect()
}

impl Map {
    /// A map of these places.
    pub(crate) fn of(places: Vec<MapPlace>, demand: &Demand) -> Self {
        let fewest = places.iter().map(|place| place.undone).fold(f64::INFINITY, f64::min);
        let best = |worth: &dyn Fn(&MapPlace) -> Option<f64>| {
            let complete = places.iter().enumerate().filter(|(_, place)| place.undone <= fewest);
            let known = complete.filter_map(|(at, place)| Some((at, worth(place)?)));
            // The first of equals: the fewest nodes under the lowest limit.
            known
                .fold(None, |best: Option<(usize, f64)>, (at, value)| match best {
                    Some((_, most)) if most >= value => best,
                    _ => Some((at, value)),
                })
                .map(|(at, _)| at)
        };
        let best_per_watt = best(&|place| Some(place.work_nodes? / place.budget_w));
        let best_per_cost = best(&|place| Some(place.work_nodes? / place.cost_per_year?));
        let offered_nodes = demand.mean_nodes();
        Map { offered_nodes, places, best_per_watt, best_per_cost, recommended: None }
    }

    /// Whether more jobs can run elsewhere.
    pub(crate) fn lacks_jobs(&self, at: usize) -> bool {
        let fewest = self.places.iter().map(|place| place.undone).fold(f64::INFINITY, f64::min);
        self.places[at].undone > fewest
    }

    /// The numbers of nodes and the limits that there are, ascending.
    pub(crate) fn axes(&self) -> (Vec<u32>, Vec<f64>) {
        let mut nodes: Vec<u32> = self.places.iter().map(|place| place.nodes).collect();
        let mut limits: Vec<f64> = self.places.iter().map(|place| place.budget_w).collect();
        nodes.sort_unstable();
        nodes.dedup();
        limits.sort_by(f64::total_cmp);
        limits.dedup();
        (nodes, limits)
    }

    /// The number of a place.
    pub(crate) fn find(&self, nodes: u32, budget_w: f64) -> Option<usize> {
        self.places.iter().position(|place| place.nodes == nodes && place.budget_w == budget_w)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    fn place(nodes: u32, budget_w: f64, work: f64, undone: f64, cost: f64) -> MapPlace {
        MapPlace {
            nodes,
            budget_w,
            work_nodes: Some(work),
            undone,
            mean_power_w: None,
            load: None,
            cost_per_year: Some(cost),
        }
    }

    /// 10 nodes' work for 1 kW, 15 for 1 kW on more nodes at twice the cost, and one place where not all jobs run.
    #[test]
    fn the_best_are_found() {
        let demand =
            Demand { processors: None, nodes: 9, work: 5000, span: Span::from_millis(1000) };
        let map = Map::of(
            vec![
                place(10, 1000.0, 10.0, 0.0, 100.0),
                place(20, 1000.0, 15.0, 0.0, 200.0),
                place(40, 1000.0, 90.0, 3.0, 1.0),
                place(20, 2000.0, 20.0, 0.0, 220.0),
            ],
            &demand,
        );
        assert_eq!((map.best_per_watt, map.best_per_cost), (Some(1), Some(0)));
        assert_eq!(map.offered_nodes, Some(5.0));
        assert_eq!(map.axes(), (vec![10, 20, 40], vec![1000.0, 2000.0]));
        assert_eq!(map.find(20, 2000.0), Some(3));
        assert!(map.lacks_jobs(2) && !map.lacks_jobs(0));
    }
}
