//! The same jobs under several runs: who waits longer in one than in another, and by how much.
//!
//! A difference is over jobs that ran in both runs. A run that turns jobs away would else look better than it is.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metrics::WaitFigures;
use crate::report::digest::{Digest, RAN};

/// Runs of the same jobs, each by a name, of which one is what the others are compared with.
pub(crate) struct Runs<'a> {
    /// The runs.
    pub(crate) all: Vec<(&'a str, &'a Digest)>,
    /// The place of the run that the others are compared with.
    pub(crate) before: usize,
    /// The place of the run that is asked about, if it is there.
    pub(crate) after: Option<usize>,
}

/// How long some jobs wait in each run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Compared {
    /// What the jobs have in common.
    pub(crate) name: String,
    /// Their number.
    pub(crate) jobs: u64,
    /// Of those, jobs that ran both before and after: the next three figures are theirs.
    pub(crate) compared: u64,
    /// Their mean wait before.
    pub(crate) before_mean_wait_s: Option<f64>,
    /// Their mean wait after.
    pub(crate) after_mean_wait_s: Option<f64>,
    /// By how much that is longer.
    pub(crate) difference_s: Option<f64>,
    /// Jobs that ran before, and not after.
    pub(crate) not_run: u64,
    /// The same jobs in each run.
    pub runs: Vec<InRun>,
}

/// How long some jobs wait in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct InRun {
    /// Which run.
    pub(crate) what: String,
    /// How many of them ran.
    pub(crate) ran: u64,
    /// Their mean wait.
    pub(crate) mean_wait_s: Option<f64>,
    /// The shortest wait that no more than five of a hundred exceed.
    p95_wait_s: Option<f64>,
    /// By how much those that also ran before wait longer in the mean.
    pub(crate) difference_s: Option<f64>,
}

/// The waits of jobs that ran in two runs, in milliseconds.
#[derive(Clone, Copy, Default)]
struct Pairs {
    jobs: u64,
    before: i128,
    after: i128,
}

impl Pairs {
    fn mean(self, sum: i128) -> Option<f64> {
        (self.jobs > 0).then(|| sum as f64 / self.jobs as f64 / 1000.0)
    }

    fn difference(self) -> Option<f64> {
        self.mean(self.after - self.before)
    }
}

impl Runs<'_> {
    /// How long a job waited, in milliseconds, if it ran.
    fn wait(&self, run: usize, job: usize) -> Option<u64> {
        let jobs = &self.all[run].1.jobs;
        let has_run = jobs.state.values().get(job).is_some_and(|state| RAN.contains(state));
        has_run.then(|| jobs.wait.values()[job])
    }

    fn pairs(&self, run: usize, jobs: &[usize]) -> Pairs {
        let mut pairs = Pairs::default();
        for &job in jobs {
            if let Some((before, after)) = self.wait(self.before, job).zip(self.wait(run, job)) {
                pairs.jobs += 1;
                pairs.before += i128::from(before);
                pairs.after += i128::from(after);
            }
        }
        pairs
    }

    /// Some jobs in all runs, by their places.
    pub(crate) fn compare(&self, name: String, jobs: &[usize]) -> Compared {
        let pairs = self.after.map(|after| self.pairs(after, jobs)).unwrap_or_default();
        let ran_before = jobs.iter().filter(|job| self.wait(self.before, **job).is_some()).count();
        let in_run = |(run, (what, _)): (usize, &(&str, &Digest))| {
            let mut waits: Vec<u64> = jobs.iter().filter_map(|job| self.wait(run, *job)).collect();
            let WaitFigures { ran, mean_s, p95_s, .. } = WaitFigures::of(&mut waits);
            InRun {
                what: (*what).to_owned(),
                ran,
                mean_wait_s: mean_s,
                p95_wait_s: p95_s,
                difference_s: match run == self.before {
                    true => None,
                    false => self.pairs(run, jobs).difference(),
                },
            }
        };
        Compared {
            name,
            jobs: jobs.len() as u64,
            compared: pairs.jobs,
            before_mean_wait_s: pairs.mean(pairs.before),
            after_mean_wait_s: pairs.mean(pairs.after),
            difference_s: pairs.difference(),
            not_run: self.after.map_or(0, |_| ran_before as u64 - pairs.jobs),
            runs: self.all.iter().enumerate().map(in_run).collect(),
        }
    }

    /// Jobs by the number of what they have in common, those first who wait longest because of it, all of them
    /// together; the jobs that are in none come last.
    pub(crate) fn compare_by(
        &self,
        of_jobs: &[Option<u32>],
        name: impl Fn(Option<u32>) -> String,
    ) -> Vec<(Compared, Vec<usize>)> {
        let mut classes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut none = Vec::new();
        for (job, number) in of_jobs.iter().enumerate() {
            match number {
                Some(number) => classes.entry(*number).or_default().push(job),
                None => none.push(job),
            }
        }
        let mut classes: Vec<(i128, (Compared, Vec<usize>))> = classes
            .into_iter()
            .map(|(number, jobs)| {
                let pairs = self.after.map(|after| self.pairs(after, &jobs)).unwrap_or_default();
                let compared = self.compare(name(Some(number)), &jobs);
                (pairs.after - pairs.before, (compared, jobs))
            })
            .collect();
        classes.sort_by(|(one, (a, _)), (other, (b, _))| {
            other.cmp(one).then(b.jobs.cmp(&a.jobs)).then_with(|| a.name.cmp(&b.name))
        });
        let mut sorted: Vec<(Compared, Vec<usize>)> =
            classes.into_iter().map(|(_, class)| class).collect();
        if !none.is_empty() {
            sorted.push((self.compare(name(None), &none), none));
        }
        sorted
    }
}
