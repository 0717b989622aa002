//! Runs in order, the best first.

use crate::metrics::Summary;

/// The places of these runs in order: those that completed more jobs come first, as a policy that turns
/// jobs away makes it easy for the others; then the lower mean turnaround, then the order in which
/// they were given.
pub fn ranking(summaries: &[&Summary]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..summaries.len()).collect();
    let turnaround = |summary: &Summary| summary.mean_turnaround_s.unwrap_or(f64::INFINITY);
    places.sort_by(|&a, &b| {
        let (a, b) = (summaries[a], summaries[b]);
        undone(a).cmp(&undone(b)).then(turnaround(a).total_cmp(&turnaround(b)))
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
    use crate::scenario::Scenario;
    use crate::workload::demo::demo;

    #[test]
    fn who_turns_jobs_away_comes_last() {
        let machine = Machine::of_processors(256).unwrap();
        let mut workload = demo();
        workload.slice(0..10);
        let scenario = Scenario::new(&machine, &workload, "easy".parse().unwrap());
        let plain = scenario.run().summary;
        let with = |completed, mean_turnaround_s| Summary {
            completed,
            mean_turnaround_s,
            ..plain.clone()
        };
        let runs = [with(9, Some(1.0)), with(10, None), with(10, Some(7.5)), with(10, Some(2.0))];
        let runs: Vec<&Summary> = runs.iter().collect();
        assert_eq!(ranking(&runs), [3, 2, 1, 0]);
        assert_eq!(comparable(&runs), [false, true, true, true]);
        assert_eq!(ranking(&[]), [0; 0]);
    }
}
