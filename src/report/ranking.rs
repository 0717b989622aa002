//! Runs in order, the best first.

use std::cmp::Reverse;

use crate::metrics::Summary;

/// The places of these runs in order: those that ran more jobs come first, as a policy that turns jobs away
/// makes it easy for the others; then the lower mean bounded slowdown, then the lower mean wait, then
/// the order in which they were given.
pub fn ranking(summaries: &[&Summary]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..summaries.len()).collect();
    let last = |figure: Option<f64>| figure.unwrap_or(f64::INFINITY);
    places.sort_by(|&a, &b| {
        let (a, b) = (summaries[a], summaries[b]);
        Reverse(jobs_run(a))
            .cmp(&Reverse(jobs_run(b)))
            .then(last(a.mean_bsld).total_cmp(&last(b.mean_bsld)))
            .then(last(a.mean_wait_s).total_cmp(&last(b.mean_wait_s)))
    });
    places
}

/// How many jobs ran to some end.
pub(super) fn jobs_run(summary: &Summary) -> u64 {
    summary.completed + summary.killed
}

/// Which of these runs may be compared: those that ran as many jobs as any.
pub(super) fn comparable(summaries: &[&Summary]) -> Vec<bool> {
    let most = summaries.iter().map(|summary| jobs_run(summary)).max();
    summaries.iter().map(|summary| Some(jobs_run(summary)) == most).collect()
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
        let with = |completed, mean_bsld| Summary { completed, mean_bsld, ..plain.clone() };
        let runs = [with(9, Some(1.0)), with(10, None), with(10, Some(7.5)), with(10, Some(2.0))];
        let runs: Vec<&Summary> = runs.iter().collect();
        assert_eq!(ranking(&runs), [3, 2, 1, 0]);
        assert_eq!(comparable(&runs), [false, true, true, true]);
        assert_eq!(ranking(&[]), [0; 0]);
    }
}
