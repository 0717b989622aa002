//! Real measurements of power, where the environment variable `BUSBAR_POWER` names a folder of them.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

use busbar::profile::Origin;
use busbar::profile::csv::{Layout, Sheet};
use busbar::reproduce::{ptune, rmap};
use busbar::solve::ptune::Tuner;
use busbar::units::Watts;
use busbar::variation::csv::{Table, write_relative};
use busbar::variation::runs::Runs;
use busbar::variation::{Curve, Ips, Knot};
use busbar_needs::needs;

/// A file of that folder.
fn measured(file: &str) -> String {
    let folder = std::env::var("BUSBAR_POWER").expect("BUSBAR_POWER names a folder");
    let path = Path::new(&folder).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// 392 GPUs of one model, all at their limit of 300 W: they tie in what they draw and in nothing else.
/// 15 kW feed fifty of them, and those must be the fifty fastest, whatever the order of the file.
#[needs(power)]
#[test]
fn gpus_that_tie_in_power_are_chosen_by_speed() {
    let text = measured("v100_sgemm_runs.csv");
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

/// A layout as the options of `busbar profile import` make it.
fn layout(columns: &[&str], constants: &[&str], sockets: u32) -> Layout {
    let columns = columns.iter().map(|text| text.parse().unwrap()).collect();
    let constants = constants.iter().map(|text| text.parse().unwrap()).collect();
    let mut layout = Layout::new(columns, constants).unwrap();
    layout.sockets = NonZeroU32::new(sockets);
    layout
}

fn read_sheet(file: &str, layout: &Layout) -> Sheet {
    Sheet::parse(&measured(file), Path::new(file), layout).unwrap()
}

/// Rows as policies see them, applications, and runs.
fn counts(sheet: &Sheet) -> (usize, usize, usize) {
    let rows = sheet.profiles().iter().map(|profile| profile.rows.len()).sum();
    let settings = sheet.measured.iter().flat_map(|measured| &measured.settings);
    (rows, sheet.measured.len(), settings.map(|sampled| sampled.runs.len()).sum())
}

/// Every published table as it is. The numbers are those of lines and distinct keys in the files, counted apart.
#[needs(power)]
#[test]
fn published_tables_are_read_as_they_are() {
    let sheet = read_sheet("haswell_8_nodes_configurations.csv", &layout(&[], &[], 2));
    // 112 settings, no two of which have the same sum of caps.
    assert_eq!(counts(&sheet), (112, 6, 446));
    assert!(sheet.notes.iter().any(|note| note.contains("209 rows without a cap")));
    let sheet = read_sheet("haswell_1_node_cores_and_caps.csv", &layout(&[], &[], 2));
    assert_eq!(counts(&sheet), (80, 2, 80));
    let sheet = read_sheet("cluster_configurations_time_only.csv", &layout(&[], &[], 2));
    assert_eq!(counts(&sheet), (153, 5, 3175));
    let profiles = sheet.profiles();
    let mut rows = profiles.iter().flat_map(|profile| &profile.rows);
    assert!(rows.all(|row| row.origin == Origin::Bound));
    let of_one_node = ["nodes=1", "cores=24"];
    let power = ["power=mean_pkg_W+mean_dram_W"];
    let sheet = read_sheet("npb_ecp_cpu_cap_sweep.csv", &layout(&power, &of_one_node, 2));
    assert_eq!(counts(&sheet), (220, 22, 220));
    let columns = ["cap=cpu_cap_w", "size=suite", "energy=cpu_energy_j+gpu_energy_j"];
    let sheet = read_sheet("rtx6000_cpu_and_gpu_caps.csv", &layout(&columns, &of_one_node, 1));
    // 38 codes with 81 pairs of caps, which have 42 different sums.
    assert_eq!(counts(&sheet), (38 * 42, 38, 7772));
    let settings: usize = sheet.measured.iter().map(|measured| measured.settings.len()).sum();
    assert_eq!(settings, 38 * 81);
}

/// On eight real nodes RMAP's policy must not be slower than the traditional one in the mean, and all jobs count.
#[needs(power)]
#[test]
fn rmap_runs_on_real_tables() {
    let sheet = read_sheet("haswell_8_nodes_configurations.csv", &layout(&[], &[], 2));
    let options = rmap::OnTables {
        profiles: sheet.profiles(),
        name: "haswell".to_owned(),
        nodes: None,
        seeds: 2,
        first_seed: 1,
    };
    let done = rmap::reproduce_on(&options, &|_, _| ()).unwrap();
    let gain = done.findings.iter().find(|finding| {
        finding.metric == "random: adaptive(0 %) over traditional: mean of the bounds"
    });
    assert!(gain.unwrap().measured.unwrap() > 0.0);
    assert!(
        done.notes[0].starts_with("haswell: 112 measured rows; a machine of 8 nodes"),
        "{}",
        done.notes[0]
    );
}

/// Of real GPUs only one cap was measured: quartiles differ, and nothing is claimed of tuning.
#[needs(power)]
#[test]
fn ptune_says_what_real_gpus_support() {
    let text = measured("v100_sgemm_runs.csv");
    let cap = ["cap=300W".parse().unwrap()];
    let runs = Runs::parse(&text, Path::new("v100.csv"), &[], &cap).unwrap();
    let mut curves = Vec::new();
    write_relative(&mut curves, runs.measurements()).unwrap();
    let table = Table::parse(&String::from_utf8(curves).unwrap(), Path::new("v100.csv")).unwrap();
    assert_eq!((table.processors.names().len(), table.repeated.unwrap().runs), (392, 8795));
    let options = ptune::OnCurves {
        processors: table.processors,
        name: "v100".to_owned(),
        seeds: 5,
        first_seed: 1,
    };
    let done = ptune::reproduce_on(&options).unwrap();
    let of = |metric: &str| {
        let found = done.findings.iter().find(|finding| finding.metric == metric);
        found.unwrap().measured.unwrap()
    };
    assert!(of("Q2, sum of speeds") < of("Q3, sum of speeds"));
    assert!(of("Q3, sum of speeds") < of("Q4, sum of speeds"));
    assert!(done.notes.iter().any(|note| note.contains("under one cap")));
}
