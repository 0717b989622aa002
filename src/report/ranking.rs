//! Runs in order, the best first.

use crate::metrics::Summary;

/// What runs are ranked by.
#[derive(Clone, Copy, Debug)]
pub struct RankedBy {
    /// What it is called.
    pub name: &'static str,
    /// What it is of a run: less is better.
    pub cost: fn(&Summary) -> Option<f64>,
}

/// Policies are ranked by turnaround unless something else is asked for.
impl Default for RankedBy {
    fn default() -> Self {
        RankedBy { name: "turnaround", cost: |summary| summary.mean_turnaround_s }
    }
}

/// The places of these runs in order: those that completed more jobs come first, as a policy that turns
/// jobs away makes it easy for the others; then the better figure, then the order in which they were
/// given.
pub fn ranking(summaries: &[&Summary], by: RankedBy) -> Vec<usize> {
    let mut places: Vec<usize> = (0..summaries.len()).collect();
    let cost = |summary: &Summary| (by.cost)(summary).unwrap_or(f64::INFINITY);
    places.sort_by(|&a, &b| {
        let (a, b) = (summaries[a], summaries[b]);
        undone(a).cmp(&undone(b)).then(cost(a).total_cmp(&cost(b)))
    });
    places
}

/// How many jobs did not complete: turned away, killed, given up or left waiting.
pub(super) fn undone(summary: &Summary) -> u64 {
    summary.jobs.saturating_sub(summary.completed)
}

/// Which of these runs may be compared: those that left no more jobs undone than any.
pub(super) fn comparable(summaries: &[&Summary]) -> Vec<bool> {
    let fewest = summaries.iter().map(|summary| undone(summary)).min();
    summaries.iter().map(|summary| Some(undone(summary)) == fewest).collect()
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
        let runs: Vec<&Summary> = runs.iter().collect();
        assert_eq!(ranking(&runs, RankedBy::default()), [3, 2, 1, 0]);
        assert_eq!(comparable(&runs), [false, true, true, true]);
        assert_eq!(ranking(&[], RankedBy::default()), [0; 0]);
    }
}
