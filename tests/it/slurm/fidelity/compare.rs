//! How near a simulation came to what Slurm did, by the waits of all jobs in the `jobs.csv` of `busbar whatif`.

/// A job that ran, both in the lab and in the simulation. All times are in seconds.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    /// What Slurm calls it.
    pub(crate) job: String,
    pub(crate) partition: String,
    pub(crate) submit: f64,
    /// How long it waited in the lab.
    pub(crate) real: f64,
    /// How long it waited in the simulation.
    pub(crate) simulated: f64,
}

impl Pair {
    pub(crate) fn started(&self) -> (f64, f64) {
        (self.submit + self.real, self.submit + self.simulated)
    }
}

/// What a comparison says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Compared {
    /// Jobs that ran in both.
    pub(crate) jobs: usize,
    /// Jobs that ran in one of both alone.
    pub(crate) alone: usize,
    /// Percent of the jobs that started within an interval of when they really did.
    pub(crate) near: f64,
    /// The same of those that had to wait for longer than an interval in the lab or in the simulation.
    pub(crate) near_of_late: f64,
    /// Percent of the pairs of jobs that started in the order in which they really did.
    pub(crate) in_order: f64,
    /// The same of the pairs of a partition that waited at the same time.
    pub(crate) in_order_of_rivals: f64,
    /// The mean waits.
    pub(crate) real_mean: f64,
    pub(crate) simulated_mean: f64,
}

/// The jobs of a `jobs.csv`, by a column of simulated waits, and how many there are that ran in one of both alone.
pub(crate) fn read(text: &str, column: &str) -> (Vec<Pair>, usize) {
    let mut lines = text.lines();
    let heading: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let place = |name: &str| {
        let found = heading.iter().position(|column| column.trim_matches('"') == name);
        found.unwrap_or_else(|| panic!("jobs.csv has no column '{name}': {heading:?}"))
    };
    let [job, partition, submit, real, simulated] =
        ["job", "partition", "submit_s", "wait_as_recorded_s", column].map(place);
    let (mut pairs, mut alone) = (Vec::new(), 0);
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let seconds = |place: usize| fields[place].parse::<f64>().ok();
        match (seconds(submit), seconds(real), seconds(simulated)) {
            (Some(submit), Some(real), Some(simulated)) => pairs.push(Pair {
                job: fields[job].to_owned(),
                partition: fields[partition].to_owned(),
                submit,
                real,
                simulated,
            }),
            _ => alone += 1,
        }
    }
    (pairs, alone)
}

fn percent(part: usize, all: usize) -> f64 {
    if all == 0 { 100.0 } else { 100.0 * part as f64 / all as f64 }
}

/// Compares all jobs, with a scheduling interval of so many seconds.
pub(crate) fn compare(pairs: &[Pair], alone: usize, interval: f64) -> Compared {
    let is_near = |pair: &&Pair| (pair.real - pair.simulated).abs() <= interval;
    let late = || pairs.iter().filter(|pair| pair.real > interval || pair.simulated > interval);
    let (mut all, mut right, mut rivals, mut right_rivals) = (0, 0, 0, 0);
    for (place, one) in pairs.iter().enumerate() {
        for other in &pairs[place + 1..] {
            let (one_at, other_at) = (one.started(), other.started());
            // Who started at the same time has no order.
            if one_at.0 == other_at.0 {
                continue;
            }
            let is_right =
                (one_at.0 < other_at.0) == (one_at.1 < other_at.1) || one_at.1 == other_at.1;
            let waited_together = one.submit < other_at.0 && other.submit < one_at.0;
            all += 1;
            right += usize::from(is_right);
            if waited_together && one.partition == other.partition {
                rivals += 1;
                right_rivals += usize::from(is_right);
            }
        }
    }
    let mean =
        |wait: fn(&Pair) -> f64| pairs.iter().map(wait).sum::<f64>() / pairs.len().max(1) as f64;
    Compared {
        jobs: pairs.len(),
        alone,
        near: percent(pairs.iter().filter(is_near).count(), pairs.len()),
        near_of_late: percent(late().filter(is_near).count(), late().count()),
        in_order: percent(right, all),
        in_order_of_rivals: percent(right_rivals, rivals),
        real_mean: mean(|pair| pair.real),
        simulated_mean: mean(|pair| pair.simulated),
    }
}

impl Compared {
    /// The headings of [`Compared::row`].
    pub(crate) const HEADINGS: &str = "| run | policy | jobs | only in one | within an interval | of those that waited | pairs in order | of rivals | mean wait, lab | simulated | difference |\n\
        |---|---|---|---|---|---|---|---|---|---|---|";

    /// A row of the table.
    pub(crate) fn row(&self, run: &str, policy: &str) -> String {
        format!(
            "| {run} | `{policy}` | {} | {} | {:.1} % | {:.1} % | {:.2} % | {:.1} % | {:.1} s | {:.1} s | {:+.1} % |",
            self.jobs,
            self.alone,
            self.near,
            self.near_of_late,
            self.in_order,
            self.in_order_of_rivals,
            self.real_mean,
            self.simulated_mean,
            100.0 * (self.simulated_mean / self.real_mean - 1.0)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: three jobs, of which the second starts too late by 11 s and after the third.
    #[test]
    fn a_comparison_counts_jobs_and_pairs() {
        let text = "job,partition,submit_s,wait_as_recorded_s,wait_no_budget_s\n\
                    1,p,0,0,1\n2,p,5,10,21\n3,p,6,14,12\n4,q,7,3,\n";
        let (pairs, alone) = read(text, "wait_no_budget_s");
        let found = compare(&pairs, alone, 10.0);
        assert_eq!((found.jobs, found.alone, pairs[2].job.as_str()), (3, 1, "3"));
        // The first waited for less than an interval.
        assert!(
            (found.near - 200.0 / 3.0).abs() < 1e-9 && (found.near_of_late - 50.0).abs() < 1e-9
        );
        // Of (1, 2), (1, 3) and (2, 3), the last is wrong, and the only one whose jobs waited together.
        assert!((found.in_order - 200.0 / 3.0).abs() < 1e-9 && found.in_order_of_rivals == 0.0);
        assert_eq!((found.real_mean, found.simulated_mean), (8.0, 34.0 / 3.0));
    }
}
