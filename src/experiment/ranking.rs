//! Who is best: the policies of an experiment in order, for each workload and budget.
//!
//! A run that leaves jobs undone has an easier time with the others, and its mean wait is no gain. So a
//! policy that completes more jobs stands before one that completes fewer, whatever their other
//! figures are, and only among those that complete the most is any figure called the best. Over seeds
//! the mean counts; the deviation is that of a sample.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::experiment::{Cell, CellOutcome, CheckedExperiment, Tried};
use crate::metrics::Summary;
use crate::report::RankedBy;

/// A value over several seeds.
pub(crate) use crate::report::OverSeeds as Spread;

/// A figure by which policies can be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Figure {
    /// The mean time from submission to end: what users wait for, and it can be compared between
    /// policies that slow jobs down and policies that do not.
    #[default]
    Turnaround,
    /// The mean time from submission to start.
    Wait,
    /// The 99th percentile of the waits.
    P99Wait,
    /// The longest wait.
    MaxWait,
    /// The mean bounded slowdown.
    Slowdown,
    /// From the first submission to the last end.
    Makespan,
    /// The energy drawn.
    Energy,
    /// The share of node time that jobs used.
    Utilisation,
    /// What it cost, where energy has a price.
    Cost,
    /// The carbon dioxide that was emitted for it, where that is counted.
    Carbon,
}

impl Figure {
    /// All of them.
    pub(crate) const ALL: [Figure; 10] = [
        Figure::Turnaround,
        Figure::Wait,
        Figure::P99Wait,
        Figure::MaxWait,
        Figure::Slowdown,
        Figure::Makespan,
        Figure::Energy,
        Figure::Utilisation,
        Figure::Cost,
        Figure::Carbon,
    ];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Figure::Turnaround => "turnaround",
            Figure::Wait => "wait",
            Figure::P99Wait => "p99_wait",
            Figure::MaxWait => "max_wait",
            Figure::Slowdown => "slowdown",
            Figure::Makespan => "makespan",
            Figure::Energy => "energy",
            Figure::Utilisation => "utilisation",
            Figure::Cost => "cost",
            Figure::Carbon => "carbon",
        }
    }

    /// The figure of a run, if it has one.
    pub(crate) fn of(self, summary: &Summary) -> Option<f64> {
        match self {
            Figure::Turnaround => summary.mean_turnaround_s,
            Figure::Wait => summary.mean_wait_s,
            Figure::P99Wait => summary.p99_wait_s,
            Figure::MaxWait => summary.max_wait_s,
            Figure::Slowdown => summary.mean_bsld,
            Figure::Makespan => Some(summary.makespan_s),
            Figure::Energy => Some(summary.energy_j),
            Figure::Utilisation => summary.utilisation,
            Figure::Cost => summary.cost,
            Figure::Carbon => summary.carbon_kg,
        }
    }

    /// As what a page ranks by: less is better.
    pub(crate) fn ranked_by(self) -> RankedBy {
        let cost: fn(&Summary) -> Option<f64> = match self {
            Figure::Turnaround => |summary| Figure::Turnaround.of(summary),
            Figure::Wait => |summary| Figure::Wait.of(summary),
            Figure::P99Wait => |summary| Figure::P99Wait.of(summary),
            Figure::MaxWait => |summary| Figure::MaxWait.of(summary),
            Figure::Slowdown => |summary| Figure::Slowdown.of(summary),
            Figure::Makespan => |summary| Figure::Makespan.of(summary),
            Figure::Energy => |summary| Figure::Energy.of(summary),
            Figure::Utilisation => |summary| Figure::Utilisation.of(summary).map(|share| -share),
            Figure::Cost => |summary| Figure::Cost.of(summary),
            Figure::Carbon => |summary| Figure::Carbon.of(summary),
        };
        RankedBy { name: self.name(), cost }
    }

    /// The better of two values comes first.
    pub(crate) fn order(self, one: f64, other: f64) -> Ordering {
        match self {
            Figure::Utilisation => other.total_cmp(&one),
            _ => one.total_cmp(&other),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Figure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Figure::ALL.into_iter().find(|figure| figure.name() == text);
        let valid = || Figure::ALL.map(Figure::name).join(", ");
        found.ok_or_else(|| format!("unknown metric '{text}'; valid: {}", valid()))
    }
}

/// The policies on one workload, one number of nodes and one budget.
#[derive(Clone, Debug)]
pub(crate) struct Ranking {
    /// Where: the cell of any of them.
    pub(crate) cell: Cell,
    /// Those that ran, the best first.
    pub(crate) rows: Vec<Row>,
    /// Those that cannot run there, and why.
    pub(crate) cannot: Vec<(usize, String)>,
}

/// A policy over all seeds.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The place of the policy in the experiment's list.
    pub(crate) policy: usize,
    /// How often it ran.
    pub(crate) runs: usize,
    /// How many jobs there were.
    pub jobs: Spread,
    /// How many of them did not complete: turned away, killed, given up or left waiting.
    pub undone: Spread,
    /// How many jobs were killed because the policy believed that they would take less time; the mean.
    pub(crate) killed_by_belief: f64,
    /// The share of the time in which more was drawn than the budget allows; the mean.
    pub(crate) over_budget: f64,
    /// Each figure of [`Figure::ALL`], and whether it is the best.
    pub figures: [Option<(Spread, bool)>; Figure::ALL.len()],
}

impl Row {
    /// One of its figures.
    pub(crate) fn figure(&self, figure: Figure) -> Option<(Spread, bool)> {
        let place = Figure::ALL.iter().position(|other| *other == figure)?;
        self.figures[place]
    }

    fn of(policy: usize, summaries: &[&Summary]) -> Option<Self> {
        let spread = |of: &dyn Fn(&Summary) -> Option<f64>| {
            let values: Vec<f64> = summaries.iter().filter_map(|summary| of(summary)).collect();
            Spread::of(&values)
        };
        Some(Row {
            policy,
            runs: summaries.len(),
            jobs: spread(&|summary| Some(summary.jobs as f64))?,
            undone: spread(&|summary| Some((summary.jobs - summary.completed) as f64))?,
            killed_by_belief: spread(&|summary| Some(summary.killed_by_belief as f64))?.mean,
            over_budget: spread(&|summary| {
                Some(summary.over_budget_s / summary.makespan_s.max(f64::MIN_POSITIVE))
            })?
            .mean,
            figures: Figure::ALL
                .map(|figure| spread(&|summary| figure.of(summary)).map(|spread| (spread, false))),
        })
    }
}

/// The rankings of all workloads, numbers of nodes and budgets, in this order, by a figure.
pub(crate) fn rankings(tried: &[Tried], by: Figure) -> Vec<Ranking> {
    let place = |cell: &Cell| (cell.workload, cell.size, cell.budget);
    let mut sorted: Vec<&Tried> = tried.iter().collect();
    sorted.sort_by_key(|tried| (place(&tried.cell), tried.cell.policy, tried.cell.seed));
    let groups = sorted.chunk_by(|one, other| place(&one.cell) == place(&other.cell));
    groups.map(|group| ranking(group, by)).collect()
}

fn ranking(group: &[&Tried], by: Figure) -> Ranking {
    let (mut rows, mut cannot) = (Vec::new(), Vec::new());
    for of_policy in group.chunk_by(|one, other| one.cell.policy == other.cell.policy) {
        let policy = of_policy[0].cell.policy;
        let summaries: Vec<_> = of_policy.iter().filter_map(|t| t.outcome.summary()).collect();
        rows.extend(Row::of(policy, &summaries));
        let reason = of_policy.iter().find_map(|tried| match &tried.outcome {
            CellOutcome::CannotRun(why) => Some((policy, why.clone())),
            CellOutcome::Ran(_) => None,
        });
        cannot.extend(reason);
    }
    sort(&mut rows, by);
    mark_best(&mut rows);
    Ranking { cell: group[0].cell, rows, cannot }
}

/// The best first. Equals stay in the order of the experiment.
fn sort(rows: &mut [Row], by: Figure) {
    rows.sort_by(|one: &Row, other: &Row| {
        let value = |row: &Row| row.figure(by).map(|(spread, _)| spread.mean);
        let figures = match (value(one), value(other)) {
            (Some(one), Some(other)) => by.order(one, other),
            (one, other) => other.is_some().cmp(&one.is_some()),
        };
        one.undone.mean.total_cmp(&other.undone.mean).then(figures)
    });
}

/// Marks the best of each figure among the policies that left the fewest jobs undone. Nobody is the
/// best alone.
fn mark_best(rows: &mut [Row]) {
    let fewest = rows.first().map_or(0.0, |row| row.undone.mean);
    let compared = rows.iter().take_while(|row| row.undone.mean == fewest).count();
    if compared < 2 {
        return;
    }
    for (place, figure) in Figure::ALL.into_iter().enumerate() {
        let means = rows[..compared].iter().filter_map(|row| row.figures[place]);
        let best = means.map(|(spread, _)| spread.mean).min_by(|a, b| figure.order(*a, *b));
        for (spread, is_best) in rows[..compared].iter_mut().flat_map(|row| &mut row.figures[place])
        {
            *is_best = Some(spread.mean) == best;
        }
    }
}

impl CheckedExperiment<'_> {
    /// The policies in order, for each workload, number of nodes and budget.
    pub(crate) fn rankings(&self, tried: &[Tried]) -> Vec<Ranking> {
        rankings(tried, self.experiment.rank_by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::run::Finished;
    use crate::machine::Machine;
    use crate::model::Rigid;
    use crate::policy::PolicySpec;
    use crate::scenario::Scenario;
    use crate::workload::Workload;

    fn tried(policy: usize, seed: u64, completed: u64, turnaround: f64, energy: f64) -> Tried {
        let machine = Machine::of_processors(1).unwrap();
        let nothing = Workload::default();
        let model = Rigid::on(&machine);
        let empty = Scenario::new(&machine, &nothing, PolicySpec::easy(), &model).run().summary;
        let summary = Summary {
            jobs: 10,
            completed,
            mean_turnaround_s: Some(turnaround),
            energy_j: energy,
            ..empty
        };
        Tried {
            cell: Cell { workload: 0, size: 0, budget: 0, policy, seed },
            outcome: CellOutcome::Ran(Finished::Figures(Box::new(summary))),
            reused: false,
        }
    }

    /// Policy 0 is fast and leaves a job undone. 1 takes 30 s, 2 takes 20 s and 28 s, by two seeds.
    #[test]
    fn those_who_do_all_come_first() {
        let cannot = Tried {
            outcome: CellOutcome::CannotRun("no profiles".to_owned()),
            ..tried(3, 1, 0, 0.0, 0.0)
        };
        let all = [
            tried(0, 1, 9, 1.0, 1.0),
            tried(1, 1, 10, 30.0, 5.0),
            tried(2, 1, 10, 20.0, 9.0),
            cannot,
            tried(2, 2, 10, 28.0, 7.0),
        ];
        let rankings = rankings(&all, Figure::Turnaround);
        let [ranking] = &rankings[..] else { panic!("{rankings:?}") };
        assert_eq!(ranking.cannot, [(3, "no profiles".to_owned())]);
        let order: Vec<usize> = ranking.rows.iter().map(|row| row.policy).collect();
        assert_eq!(order, [2, 1, 0]);
        let [first, second, last] = &ranking.rows[..] else { panic!() };
        // Deviations from the mean of 24 are 4 and 4, so the variance is 32 by one degree.
        let deviation = Some(32f64.sqrt());
        assert_eq!((first.runs, second.runs), (2, 1));
        assert_eq!(
            first.figure(Figure::Turnaround),
            Some((Spread { mean: 24.0, deviation }, true))
        );
        let energy = Spread { mean: 5.0, deviation: None };
        assert_eq!(second.figure(Figure::Energy), Some((energy, true)));
        assert_eq!(last.undone.mean, 1.0);
        assert!(last.figures.iter().flatten().all(|(_, is_best)| !is_best));
        // By energy the other one leads.
        let by_energy = super::rankings(&all, Figure::Energy);
        assert_eq!(by_energy[0].rows[0].policy, 1);
    }

    #[test]
    fn figures_have_names() {
        for figure in Figure::ALL {
            assert_eq!(figure.name().parse(), Ok(figure));
        }
        assert!("speed".parse::<Figure>().unwrap_err().contains("valid: turnaround, wait"));
        assert_eq!(Figure::Utilisation.order(0.9, 0.5), Ordering::Less);
        assert_eq!(Figure::Energy.order(0.9, 0.5), Ordering::Greater);
    }
}
