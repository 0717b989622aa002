//! Runs in order, the best first.

use crate::metrics::Summary;
use crate::report::OverSeeds;

/// What runs are ranked by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankedBy {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it is of a run: less is better.
    pub(crate) cost: fn(&Summary) -> Option<f64>,
}

/// Policies are ranked by turnaround unless something else is asked for.
impl Default for RankedBy {
    fn default() -> Self {
        RankedBy { name: "turnaround", cost: |summary| summary.mean_turnaround_s }
    }
}

/// The places of these runs in order: those that completed more jobs come first, as a policy that turns
/// jobs away makes it easy for the others; then the better figure, then the order in which they were
/// given. Each is a run over its seeds, whose means count.
pub(super) fn ranking_over_seeds(runs: &[Vec<&Summary>], by: RankedBy) -> Vec<usize> {
    let mut places: Vec<usize> = (0..runs.len()).collect();
    let cost = |run: &[&Summary]| over_seeds(run, by.cost).map_or(f64::INFINITY, |cost| cost.mean);
    places.sort_by(|&a, &b| {
        let (a, b) = (&runs[a], &runs[b]);
        mean_undone(a).total_cmp(&mean_undone(b)).then(cost(a).total_cmp(&cost(b)))
    });
    places
}

/// A figure of a run over its seeds, if it has one.
pub(super) fn over_seeds(
    seeds: &[&Summary],
    figure: impl Fn(&Summary) -> Option<f64>,
) -> Option<OverSeeds> {
    OverSeeds::of(&seeds.iter().filter_map(|summary| figure(summary)).collect::<Vec<f64>>())
}

/// How many jobs did not complete; the mean over seeds.
pub(super) fn mean_undone(seeds: &[&Summary]) -> f64 {
    over_seeds(seeds, |summary| Some(undone(summary) as f64)).map_or(0.0, |undone| undone.mean)
}

/// How many jobs did not complete: turned away, killed, given up or left waiting.
pub(crate) fn undone(summary: &Summary) -> u64 {
    summary.jobs.saturating_sub(summary.completed)
}

/// Which of these runs, each over its seeds, may be compared: those that left no more jobs undone than
/// any.
pub(super) fn comparable(runs: &[Vec<&Summary>]) -> Vec<bool> {
    let fewest = runs.iter().map(|run| mean_undone(run)).reduce(f64::min);
    runs.iter().map(|run| Some(mean_undone(run)) == fewest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::model::Rigid;
    use crate::scenario::Scenario;
    use crate::workload::demo::demo;

    #[test]
    fn who_turns_jobs_away_comes_last() {
        let machine = Machine::of_processors(256).unwrap();
        let mut workload = demo();
        workload.slice(0..10);
        let model = Rigid::on(&machine);
        let scenario = Scenario::new(&machine, &workload, "easy".parse().unwrap(), &model);
        let plain = scenario.run().summary;
        let with = |completed, mean_turnaround_s| Summary {
            completed,
            mean_turnaround_s,
            ..plain.clone()
        };
        let runs = [with(9, Some(1.0)), with(10, None), with(10, Some(7.5)), with(10, Some(2.0))];
        let runs: Vec<Vec<&Summary>> = runs.iter().map(|run| vec![run]).collect();
        assert_eq!(ranking_over_seeds(&runs, RankedBy::default()), [3, 2, 1, 0]);
        assert_eq!(comparable(&runs), [false, true, true, true]);
        assert_eq!(ranking_over_seeds(&[], RankedBy::default()), [0; 0]);
    }

    /// In the first seed the one is better, 2 s against 3 s; over two seeds the other, 4 s against 5 s.
    #[test]
    fn over_seeds_the_mean_counts() {
        let machine = Machine::of_processors(256).unwrap();
        let mut workload = demo();
        workload.slice(0..10);
        let model = Rigid::on(&machine);
        let scenario = Scenario::new(&machine, &workload, "easy".parse().unwrap(), &model);
        let plain = scenario.run().summary;
        let with = |seconds| Summary { mean_turnaround_s: Some(seconds), ..plain.clone() };
        let runs = [[with(2.0), with(8.0)], [with(3.0), with(5.0)]];
        let runs: Vec<Vec<&Summary>> = runs.iter().map(|run| run.iter().collect()).collect();
        assert_eq!(ranking_over_seeds(&runs, RankedBy::default()), [1, 0]);
        let spread = over_seeds(&runs[0], |summary| summary.mean_turnaround_s).unwrap();
        // The deviation of a sample: the root of 3² + 3².
        assert_eq!((spread.mean, spread.deviation), (5.0, Some(18f64.sqrt())));
    }
}
