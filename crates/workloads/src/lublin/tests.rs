//! Tests of the model as a whole, and what the tests of its parts share.

use std::collections::HashMap;

use statrs::function::gamma::gamma_lr;

use super::*;

pub(super) const KINDS: [JobKind; 3] = [JobKind::Batch, JobKind::Interactive, JobKind::Typeless];
pub(super) const SIZES: [Sizes; 3] = [Sizes::Mixed, Sizes::PowersOfTwo, Sizes::Any];

/// Four standard errors of a share among `jobs`: a right model fails once in 16 000 times.
pub(super) fn tolerance(share: f64, jobs: u32) -> f64 {
    4.0 * (share * (1.0 - share) / f64::from(jobs)).sqrt()
}

/// The mean of a gamma variable where it is at most `limit`, times how likely that is, and how
/// likely that is.
pub(super) fn truncated_gamma((shape, scale): (f64, f64), limit: f64) -> (f64, f64) {
    let mean = shape * scale * gamma_lr(shape + 1.0, limit / scale);
    (mean, gamma_lr(shape, limit / scale))
}

#[test]
fn the_load_moves_submissions_and_nothing_else() {
    let light = Lublin { load: 0.5, ..Lublin::default() }.generate().unwrap();
    let heavy = Lublin { load: 1.5, ..Lublin::default() }.generate().unwrap();
    assert_eq!(light.run_times(), heavy.run_times());
    for (a, b) in light.jobs().iter().zip(heavy.jobs()) {
        assert_eq!(Job { submit: a.submit, ..*b }, *a);
    }
}

#[test]
fn a_longer_workload_starts_with_the_jobs_of_the_shorter_one() {
    let short = Lublin { jobs: 100, ..Lublin::default() }.generate().unwrap();
    let long = Lublin { jobs: 1000, ..Lublin::default() }.generate().unwrap();
    assert_eq!(short.run_times(), &long.run_times()[..100]);
    for (a, b) in short.jobs().iter().zip(long.jobs()) {
        assert_eq!((a.number, a.nodes, a.requested), (b.number, b.nodes, b.requested));
    }
}

#[test]
fn the_seed_decides() {
    let parameters = Lublin { jobs: 1000, ..Lublin::default() };
    let first = parameters.generate().unwrap();
    let again = parameters.generate().unwrap();
    assert_eq!((first.jobs(), first.run_times()), (again.jobs(), again.run_times()));
    for seed in [0, 2, u64::MAX] {
        let other = Lublin { seed, ..parameters }.generate().unwrap();
        assert_ne!(first.run_times(), other.run_times());
        let same = first.jobs().iter().zip(other.jobs()).filter(|(a, b)| a.nodes == b.nodes);
        // Two unrelated jobs often have the same small size, but not most of them.
        assert!(same.count() < 250, "seed {seed}");
    }
}

#[test]
fn estimates_are_popular_values_and_never_too_short() {
    let jobs = 50_000;
    let workload = Lublin { jobs, ..Lublin::default() }.generate().unwrap();
    let mut counts = HashMap::new();
    for (job, &run_time) in workload.jobs().iter().zip(workload.run_times()) {
        assert!(job.requested >= run_time, "{job:?} runs {run_time}");
        *counts.entry(job.requested).or_insert(0u32) += 1;
    }
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let share = f64::from(counts[..20].iter().sum::<u32>()) / f64::from(jobs);
    // Sampling makes for 0.0014 at one standard error. Where run times are long some odd value
    // may be used more than the least popular round one, which adds to the twenty.
    assert!((share - 0.89).abs() < 0.01, "{share}");
}

#[test]
fn the_name_is_the_call() {
    let name = |parameters: Lublin| parameters.to_string();
    assert_eq!(name(Lublin::default()), "lublin(jobs=10000, load=0.85)");
    let every = Lublin {
        jobs: 5,
        processors: 64,
        load: 2.0,
        seed: 9,
        kind: JobKind::Batch,
        sizes: Sizes::PowersOfTwo,
    };
    let call = "lublin(jobs=5, load=2, processors=64, seed=9, kind=batch, sizes=powers-of-two)";
    assert_eq!(name(every), call);
    assert_eq!(every.generate().unwrap().name(), call);
    for kind in KINDS {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    for sizes in SIZES {
        assert_eq!(sizes.to_string().parse(), Ok(sizes));
    }
}

#[test]
fn bad_parameters_are_named_with_what_is_valid() {
    let check = |parameters: Lublin, message: &str| {
        assert_eq!(parameters.generate().unwrap_err().to_string(), message);
    };
    let good = Lublin::default();
    check(Lublin { jobs: 0, ..good }, "jobs=0 is out of range; valid: 1 to 100000000");
    check(
        Lublin { jobs: u32::MAX, ..good },
        "jobs=4294967295 is out of range; valid: 1 to 100000000",
    );
    check(Lublin { processors: 0, ..good }, "processors=0 is out of range; valid: 1 or more");
    for (load, written) in [
        (0.0, "0"),
        (-1.0, "-1"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
        (0.0001, "0.0001"),
        (2000.0, "2000"),
    ] {
        let message = format!("load={written} is out of range; valid: 0.001 to 1000");
        check(Lublin { load, ..good }, &message);
    }
    assert_eq!(
        "night".parse::<JobKind>().unwrap_err().to_string(),
        "kind=night is unknown; valid: batch, interactive, typeless"
    );
    assert_eq!(
        "odd".parse::<Sizes>().unwrap_err().to_string(),
        "sizes=odd is unknown; valid: mixed, powers-of-two, any"
    );
}
