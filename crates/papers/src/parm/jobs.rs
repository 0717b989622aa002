//! Jobs that stand in for the paper's.

use std::path::Path;

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, StandardNormal};
use rand_pcg::Pcg64Dxsm;

use super::{Options, ReproduceError};
use busbar_core::job::Job;
use busbar_core::units::{Instant, Span};
use busbar_core::workload::Workload;

/// Jobs in a set of the testbed.
pub(super) const TESTBED_JOBS: u32 = 60;

/// Work that arrives in a testbed's set, against what 28 nodes can do meanwhile: they are busy, and
/// a queue builds up.
const TESTBED_LOAD: f64 = 1.2;
/// Nodes of the conventional testbed.
pub(super) const TESTBED_NODES: u32 = 28;

/// Nodes of Intrepid.
pub(super) const INTREPID_NODES: u32 = 40_960;
/// The load of Intrepid's log, before arrivals are made denser: about what the Parallel Workloads
/// Archive says of its utilisation.
const INTREPID_LOAD: f64 = 0.6;
/// Processors of one of its nodes, which the log counts.
const INTREPID_PROCESSORS: u32 = 4;

fn job(number: u32, at: f64, nodes: u32, seconds: f64) -> (Job, Span) {
    let time = Span::from_millis((seconds * 1000.0) as u64);
    let submit = Instant::from_millis((at * 1000.0) as u64);
    (Job::new(u64::from(number), submit, nodes, time), time)
}

/// Jobs with exponential gaps, so that their work is so much of what the nodes can do.
fn arriving(
    name: &str,
    shapes: &[(u32, f64)],
    nodes: u32,
    load: f64,
    numbers: &mut impl Rng,
) -> Workload {
    let work: f64 = shapes.iter().map(|(count, seconds)| f64::from(*count) * seconds).sum();
    let gap = work / f64::from(nodes) / load / shapes.len().max(1) as f64;
    let mut at = 0.0;
    let jobs = shapes.iter().zip(1..).map(|(&(nodes, seconds), number)| {
        let gap_here: f64 = Exp1.sample(numbers);
        at += gap * gap_here;
        job(number, at, nodes, seconds)
    });
    Workload::new(name, jobs.collect::<Vec<_>>())
}

/// A set of the testbed: 2 to 20 nodes for 2 to 20 minutes.
pub(super) fn testbed(seed: u64) -> Workload {
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed ^ 0x7061_726d_7465_7374);
    let shapes: Vec<(u32, f64)> = (0..TESTBED_JOBS)
        .map(|_| (numbers.random_range(2..=20), numbers.random_range(120.0..1200.0)))
        .collect();
    arriving("testbed", &shapes, TESTBED_NODES, TESTBED_LOAD, &mut numbers)
}

/// A set like those of the projection: powers of two from 64 to 4096 nodes, 500 on average, for a bit
/// more than an hour on average. The paper's tables have 453 to 632 nodes and 57 to 80 minutes.
pub(super) fn like_intrepid(options: &Options, set: u64) -> Workload {
    let seed = options.first_seed.wrapping_add(set);
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed ^ 0x696e_7472_6570_6964);
    let shapes: Vec<(u32, f64)> = (0..options.jobs)
        .map(|_| {
            let mut nodes = 64;
            while nodes < 4096 && numbers.random_bool(0.62) {
                nodes *= 2;
            }
            let deviation: f64 = StandardNormal.sample(&mut numbers);
            // A log-normal time: half an hour in the middle, 64 minutes on average, a day at most.
            (nodes, (1863.0 * libm::exp(1.2 * deviation)).clamp(60.0, 86_400.0))
        })
        .collect();
    let name = format!("set {}", set + 1);
    arriving(&name, &shapes, INTREPID_NODES, INTREPID_LOAD, &mut numbers)
}

/// Three sets from the log, each after a third of it.
pub(super) fn of_log(
    log: &Workload,
    path: &Path,
    wanted: u32,
) -> Result<[Workload; 3], ReproduceError> {
    let found = log.jobs().len();
    if found < 3 * wanted as usize {
        return Err(ReproduceError::Short { path: path.to_owned(), found, wanted });
    }
    Ok(std::array::from_fn(|set| {
        let first = found / 3 * set;
        let places = first..first + wanted as usize;
        let begin = log.jobs()[first].submit;
        let jobs = log.jobs()[places.clone()].iter().zip(&log.run_times()[places]);
        let jobs = jobs.map(|(asked, run_time)| {
            let submit = Instant::ZERO + asked.submit.since(begin);
            let nodes = asked.processors.div_ceil(INTREPID_PROCESSORS).min(INTREPID_NODES);
            (Job::new(asked.number, submit, nodes, *run_time), *run_time)
        });
        Workload::new(format!("set {}", set + 1), jobs.collect::<Vec<_>>())
    }))
}

/// The same jobs, arriving so many times as far apart.
pub(super) fn denser(workload: &Workload, gamma: f64) -> Workload {
    let jobs = workload.jobs().iter().zip(workload.run_times()).map(|(job, run_time)| {
        let submit = Instant::from_millis((job.submit.millis() as f64 * gamma) as u64);
        (Job { submit, ..*job }, *run_time)
    });
    Workload::new(workload.name(), jobs.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With q = 0.62: Σ_{k<6} 64·2^k·(1 − q)·q^k + 4096·q⁶ = 267.0 + 232.7 nodes. The mean of a
    /// log-normal time is its median times exp(1.2²/2): 1863 s · 2.054 = 63.8 min; the clamp takes
    /// a little.
    #[test]
    fn sets_have_the_mean_size_and_time_they_say() {
        let options = Options { jobs: 20_000, ..Options::default() };
        let set = like_intrepid(&options, 0);
        let count = set.jobs().len() as f64;
        let nodes: f64 = set.jobs().iter().map(|job| f64::from(job.nodes)).sum::<f64>() / count;
        let minutes =
            set.run_times().iter().map(|time| time.secs_f64()).sum::<f64>() / count / 60.0;
        assert!((nodes / 499.7 - 1.0).abs() < 0.05, "{nodes}");
        assert!((minutes / 63.8 - 1.0).abs() < 0.05, "{minutes}");
        let load = set.offered_load(INTREPID_NODES).unwrap();
        assert!((load / INTREPID_LOAD - 1.0).abs() < 0.05, "{load}");
        let dense = denser(&set, 0.5).offered_load(INTREPID_NODES).unwrap();
        assert!((dense / load - 2.0).abs() < 0.01);
    }
}
