//! Real measurements of power, where the environment variable `BUSBAR_POWER` names a folder of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use busbar::solve::ptune::Tuner;
use busbar::units::Watts;
use busbar::variation::{Curve, Ips, Knot};

/// A file of that folder; says so if there is none.
fn measured(file: &str) -> Option<String> {
    let folder = std::env::var_os("BUSBAR_POWER").map(PathBuf::from);
    let Some(path) = folder.map(|folder| folder.join(file)).filter(|path| path.exists()) else {
        eprintln!("skipped: BUSBAR_POWER does not name a folder with {file}");
        return None;
    };
    Some(std::fs::read_to_string(path).unwrap())
}

/// 392 GPUs of one model, all at their limit of 300 W: they tie in what they draw and in nothing else.
/// 15 kW feed fifty of them, and those must be the fifty fastest, whatever the order of the file.
#[test]
fn gpus_that_tie_in_power_are_chosen_by_speed() {
    let Some(text) = measured("v100_sgemm_runs.csv") else { return };
    let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        times.entry(fields[1]).or_default().push(fields[5].parse().unwrap());
    }
    let limit = Watts::from_watts(300);
    // Two operations for each of 25536³ steps, over the median of the runs.
    let speed = |times: &Vec<f64>| {
        let mut sorted = times.clone();
        sorted.sort_by(f64::total_cmp);
        (2.0 * 25536f64.powi(3) / (sorted[sorted.len() / 2] / 1000.0) / 1000.0) as u64
    };
    let mut speeds: Vec<u64> = times.values().map(speed).collect();
    let curve = |ips: &u64| {
        let knot = Knot { power: limit, ips: Ips::from_ips(*ips) };
        Curve::new(limit, vec![knot]).unwrap()
    };
    let curves: Vec<Curve> = speeds.iter().map(curve).collect();
    assert_eq!(curves.len(), 392);
    let curves: Vec<&Curve> = curves.iter().collect();
    let first_fifty: u64 = speeds[..50].iter().sum();
    speeds.sort_unstable_by(|a, b| b.cmp(a));
    let fastest: u64 = speeds[..50].iter().sum();
    assert!(fastest > first_fifty);
    for count in [50, 392] {
        let chosen = Tuner::new().choose(&curves, count, limit * 50).unwrap();
        assert_eq!((chosen.ips.ips(), chosen.bound.ips()), (fastest, fastest));
    }
    let mut tuner = Tuner::new();
    assert_eq!(tuner.tune(&curves, limit * 50).unwrap().ips.ips(), fastest);
}
