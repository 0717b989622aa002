//! How many nodes for these watts, and how many watts for these nodes.
//!
//! A feed that can run some nodes at full power can run more of them at less each. Whether that pays is
//! the question of overprovisioning (T. Patki and others, "Exploring hardware overprovisioning in
//! power-constrained, high performance computing", ICS 2013). A plan tries the same jobs under the same
//! watts on more and more nodes, and then on the machine as it is under more and more watts. Both are
//! experiments like any other; what comes of them is two [curves](Curve).

use crate::budget::{Allowance, BudgetSpec, Limit};
use crate::experiment::curve::{Curve, CurvePoint, TOLERANCE};
use crate::experiment::ranking::{Row, rankings};
use crate::experiment::run::Results;
use crate::experiment::{Experiment, Figure, Named, Place};
use crate::machine::Machine;
use crate::report::{human_power, human_time};
use crate::units::{Share, Watts};

pub mod map;

/// Numbers of nodes to try, in hundredths of what the feed runs at full power.
const NODES: [u64; 9] = [100, 125, 150, 175, 200, 250, 300, 400, 500];

/// Budgets to try, in per cent of what the machine draws at most.
const BUDGETS: [u32; 8] = [30, 40, 50, 60, 70, 80, 90, 100];

/// The question: a machine and a feed.
#[derive(Clone, Debug)]
pub struct Question {
    /// The machine as it is.
    pub machine: Machine,
    /// What it may draw.
    pub limit: Watts,
}

impl Question {
    /// As many nodes as the feed runs at full power; at least one.
    pub fn fed(&self) -> u32 {
        let left = self.limit.saturating_sub(self.machine.base_power).milliwatts();
        let fed = left / self.machine.node_power.milliwatts().max(1);
        u32::try_from(fed).unwrap_or(u32::MAX).clamp(1, Machine::MOST_NODES)
    }

    /// The numbers of nodes to try: from those that are fed at full power to five times as many,
    /// and those of the machine.
    pub fn sizes(&self) -> Vec<u32> {
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
    pub fn limits(&self) -> Vec<Watts> {
        let share = |percent| Limit::Share(Share::percent(percent)).on(&self.machine).ok();
        let mut limits: Vec<Watts> = BUDGETS.into_iter().filter_map(share).collect();
        limits.push(self.limit);
        limits.sort_unstable();
        limits.dedup();
        limits
    }

    /// The experiment that asks about nodes; `jobs` says all the rest.
    pub fn by_nodes(&self, jobs: &Experiment) -> Experiment {
        let named = |value| Named { value, place: Place::Default };
        Experiment {
            nodes: self.sizes().into_iter().map(named).collect(),
            budgets: vec![budget(self.limit)],
            ..jobs.clone()
        }
    }

    /// The experiment that asks about the budget.
    pub fn by_budget(&self, jobs: &Experiment) -> Experiment {
        let budgets = self.limits().into_iter().map(budget).collect();
        Experiment { nodes: Vec::new(), budgets, ..jobs.clone() }
    }

    /// The answer about nodes in one sentence.
    pub fn recommendation(&self, curve: &Curve) -> String {
        let limit = human_power(self.limit.as_f64());
        let shown = |place: usize| {
            let figure = curve.points[place].figure;
            figure.map_or_else(|| "-".to_owned(), |figure| human_time(figure.mean))
        };
        let Some(chosen) = curve.recommended() else {
            return format!("Under {limit} no job ever runs, on however many nodes.");
        };
        let (nodes, fed) = (curve.points[chosen].at, f64::from(self.fed()));
        let least = match curve.points.iter().position(|point| point.at == fed) {
            Some(place) if place == chosen => String::new(),
            Some(place) if curve.is_comparable(place) => {
                format!(
                    " instead of {} on the {fed} nodes that it feeds at full power",
                    shown(place)
                )
            }
            Some(place) => format!(
                ", while the {fed} nodes that it feeds at full power would leave {:.0} jobs undone",
                curve.points[place].undone
            ),
            None => String::new(),
        };
        let last = (0..curve.points.len()).rev().find(|place| curve.is_comparable(*place));
        let most = last.map_or(nodes, |place| curve.points[place].at);
        let more = match curve.enough.filter(|enough| *enough > chosen) {
            Some(enough) => {
                let many = curve.points[enough].at;
                format!("; each node more gains less, down to {} on {many}", shown(enough))
            }
            None if most > nodes && !curve.gains_after(chosen) => {
                "; more nodes gain nothing".to_owned()
            }
            None if most > nodes => {
                format!("; up to {most} nodes gain less than {:.0} % more", TOLERANCE * 100.0)
            }
            None if curve.points.last().is_some_and(|point| point.at > nodes) => {
                "; on more nodes fewer jobs are completed, as the power of idle nodes is missing"
                    .to_owned()
            }
            None => "; still more of them may gain more".to_owned(),
        };
        let turnaround = shown(chosen);
        format!(
            "Under {limit}, take {nodes} nodes: the mean turnaround is {turnaround}{least}{more}."
        )
    }
}

fn budget(limit: Watts) -> Named<BudgetSpec> {
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

/// Where a point of a curve is among the cells.
pub struct Cellwise {
    /// Which number of nodes.
    pub size: usize,
    /// The place of the budget in the experiment's list.
    pub budget: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::ranking::Spread;

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

    #[test]
    fn the_sentence_says_what_it_rests_on() {
        let point = |at, hours: f64, undone| {
            let figure = Some(Spread { mean: hours * 3600.0, deviation: None });
            CurvePoint { at, figure, undone }
        };
        let question = question();
        let curve = Curve::through(vec![
            point(153.0, 30.0, 0.0),
            point(256.0, 20.5, 0.0),
            point(459.0, 20.0, 0.0),
        ]);
        assert_eq!((curve.knee, curve.enough), (Some(1), Some(1)));
        assert_eq!(
            question.recommendation(&curve),
            "Under 16.36 kW, take 256 nodes: the mean turnaround is 20.5 h instead of 30.0 h on the \
             153 nodes that it feeds at full power; up to 459 nodes gain less than 5 % more."
        );
        let falling = Curve::through(vec![
            point(153.0, 30.0, 0.0),
            point(256.0, 12.0, 0.0),
            point(459.0, 8.0, 0.0),
        ]);
        let sentence = question.recommendation(&falling);
        assert!(sentence.contains("each node more gains less, down to 8.0 h on 459"), "{sentence}");
        let undone = Curve::through(vec![point(153.0, 3.0, 43.0), point(256.0, 20.5, 0.0)]);
        let sentence = question.recommendation(&undone);
        assert!(sentence.contains("would leave 43 jobs undone; still more"), "{sentence}");
        let nobody = question.recommendation(&Curve::through(Vec::new()));
        assert!(nobody.contains("no job ever runs"), "{nobody}");
    }
}
