//! Two kinds of nodes, GPUs, and nodes that jobs share, below feeds whose limits move.

use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use busbar::live::job::Scope;
use busbar::live::wire::{Reply, Request};
use busbar::slurm::cluster::Cluster;
use busbar::slurm::model::{Job, JobState};
use busbar_needs::needs;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use super::served::Served;
use crate::patience::PATIENCE;

/// What a node of the lab has: processors, memory, GPUs, and what it draws when idle and at most, in watts.
#[derive(Clone, Copy)]
struct Kind {
    cpus: u32,
    memory_mib: u32,
    gpus: u32,
    idle: u64,
    most: u64,
}

const PLAIN: Kind = Kind { cpus: 4, memory_mib: 1000, gpus: 0, idle: 20, most: 200 };
const WITH_GPUS: Kind = Kind { cpus: 8, memory_mib: 2000, gpus: 4, idle: 120, most: 1400 };

/// Four plain nodes, and two with GPUs.
static NODES: [(&str, Kind); 6] = [
    ("n1", PLAIN),
    ("n2", PLAIN),
    ("n3", PLAIN),
    ("n4", PLAIN),
    ("n5", WITH_GPUS),
    ("n6", WITH_GPUS),
];

/// Half of each kind is below each of two feeds.
static ROWS: [(&str, [usize; 3], &str); 2] = [
    ("row1", [0, 1, 4], "cpu-nodes[0-1], gpu-nodes[0]"),
    ("row2", [2, 3, 5], "cpu-nodes[2-3], gpu-nodes[1]"),
];

/// What jobs have of each node.
type Held = BTreeMap<&'static str, (u32, u32, u32)>;

/// What Slurm says that jobs have of each node now, those that stand still apart.
fn held(jobs: &[Job]) -> (Held, Held) {
    let (mut all, mut drawing) = (Held::new(), Held::new());
    for job in jobs.iter().filter(|job| job.has_nodes()) {
        for part in job.held.iter().flatten() {
            let add = |sums: &mut Held| {
                let (name, _) = NODES.iter().find(|(name, _)| *name == part.node).unwrap();
                let sum = sums.entry(*name).or_default();
                *sum = (sum.0 + part.cpus, sum.1 + part.memory_mib, sum.2 + part.gpus);
            };
            add(&mut all);
            if job.state != JobState::Suspended {
                add(&mut drawing);
            }
        }
    }
    (all, drawing)
}

/// What the nodes of a row draw in milliwatts, if each job draws its processors' part of what a node adds at most.
fn drawn(held: &Held, row: usize) -> u64 {
    let of = |place: &usize| {
        let (name, kind) = NODES[*place];
        let cpus = held.get(name).map_or(0, |held| held.0);
        1000 * kind.idle + 1000 * (kind.most - kind.idle) * u64::from(cpus) / u64::from(kind.cpus)
    };
    ROWS[row].1.iter().map(of).sum()
}

/// Submits so many jobs of every kind, the same for the same seed. Each writes down when it begins and ends.
fn submit(served: &Served, count: usize, seed: u64) {
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed);
    let record = served.running.place().join("record");
    let mut submitted = 0;
    while submitted < count {
        let script = format!(
            "me=$SLURM_JOB_ID; echo $me begins \"$SLURM_JOB_NODELIST\" >> {record}; sleep {}; echo $me ends >> {record}",
            f64::from(numbers.random_range(2..20_u32)) / 10.0,
            record = record.display()
        );
        let memory = format!("--mem-per-cpu={}", 50 * numbers.random_range(1..=4));
        let mut options: Vec<String> = vec!["-t5".to_owned(), memory];
        let mut elements = 1;
        match numbers.random_range(0..100) {
            0..50 => {
                options.extend(["-N1".to_owned(), format!("-n{}", numbers.random_range(1..=4))])
            }
            50..60 => {
                options.extend(["-N2".to_owned(), format!("-n{}", numbers.random_range(2..=7))])
            }
            60..80 => options.extend([
                "-pgpu".to_owned(),
                "-N1".to_owned(),
                format!("-n{}", numbers.random_range(1..=4)),
                format!("--gres=gpu:{}", numbers.random_range(1..=3)),
            ]),
            80..85 => {
                options.extend(["-pgpu", "-N1", "-n2", "--gpus-per-task=1"].map(str::to_owned))
            }
            85..90 => options.extend(["-N1", "--exclusive"].map(str::to_owned)),
            90..95 => options.extend(["-pall".to_owned(), "-N1".to_owned(), "-n3".to_owned()]),
            _ => {
                elements = (count - submitted).min(5);
                options.extend([
                    "-N1".to_owned(),
                    "-n1".to_owned(),
                    format!("--array=1-{elements}"),
                ]);
            }
        }
        options.extend(["--wrap".to_owned(), script]);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        served.running.submit(&options, None);
        submitted += elements;
    }
}

/// Jobs of every kind below two feeds, one of which is lowered and raised a few times. At every look no node has more processors,
/// memory or GPUs than there are, and no feed carries more than its limit; in the end each job ran once.
fn run(count: usize) {
    let extras = ["--gpu-nodes", "2", "--shared", "--no-agents"];
    let mut served = Served::idle(4, "steer", "easy-power", &extras);
    served.configure("budget = \"70%\"", "budget = \"none\"\nlast_resort = \"suspend\"");
    let machine = served.running.place().join("machine.toml");
    let mut text = fs::read_to_string(&machine).unwrap();
    let full = 1_500;
    for (name, _, nodes) in &ROWS {
        text +=
            &format!("\n[[feed]]\nname = \"{name}\"\nlimit = \"{full}W\"\nnodes = \"{nodes}\"\n");
    }
    fs::write(machine, text).unwrap();
    served.begin();
    submit(&served, count, 42);
    let jobs = || served.wait("jobs", || served.running.cluster.jobs_with_parts().ok());
    let set = |row: usize, watts: u64| {
        let of = Scope::Feed(ROWS[row].0.to_owned());
        let reply = served.ask(&Request::Limit { of, to: format!("{watts}W") });
        assert!(matches!(reply, Reply::Budget(_)), "{reply:?}");
        let looks = served.looks();
        served.wait("less below the feed", || {
            let jobs = jobs();
            let (_, drawing) = held(&jobs);
            (served.looks() > looks + 2 && drawn(&drawing, row) <= 1000 * watts).then_some(())
        });
        watts
    };
    let mut limits = [full, full];
    let moves =
        [(10, 1, 700), (40, 1, 1_200), (60, 0, 500), (80, 1, 400), (100, 0, full), (110, 1, full)];
    let (mut looks, mut ended, mut since) = (0, 0, Instant::now());
    let (mut most, mut together) = ([0, 0], 0);
    let begun = Instant::now();
    for look in 1.. {
        for (_, row, watts) in moves.iter().filter(|(at, ..)| *at == look) {
            limits[*row] = set(*row, *watts);
        }
        let jobs = jobs();
        let (all, drawing) = held(&jobs);
        looks += 1;
        for (name, kind) in NODES {
            let (cpus, memory_mib, gpus) = all.get(name).copied().unwrap_or_default();
            let fits = cpus <= kind.cpus && memory_mib <= kind.memory_mib && gpus <= kind.gpus;
            assert!(fits, "{name} has {cpus} processors, {memory_mib} MiB and {gpus} GPUs of jobs");
            let here = jobs.iter().filter(|job| job.nodes.names().iter().any(|node| node == name));
            together = together.max(here.filter(|job| job.has_nodes()).count());
        }
        for row in [0, 1] {
            let drawn = drawn(&drawing, row);
            most[row] = most[row].max(drawn);
            let (limit, log) = (1000 * limits[row], || served.log());
            assert!(drawn <= limit, "{}: {drawn} mW of {limit} mW\n{}", ROWS[row].0, log());
        }
        if look > 110 && served.ended() >= count {
            break;
        }
        if served.ended() > ended {
            (ended, since) = (served.ended(), Instant::now());
        }
        assert!(since.elapsed() < PATIENCE, "{:?}\n{}", served.queue(), served.log());
        sleep(Duration::from_millis(100));
    }
    served.wait("an empty queue", || served.queue().is_empty().then_some(()));
    served.assert_each_once(count);
    println!(
        "{count} jobs in {:.0} s, {looks} looks; at most {:?} W of {full} W below feeds, and {together} jobs on a node",
        begun.elapsed().as_secs_f64(),
        most.map(|milliwatts| milliwatts / 1000)
    );
    assert!(together > 1, "nobody shared a node");
}

#[needs(slurm)]
#[test]
fn feeds_hold_for_jobs_that_share_nodes() {
    run(if super::is_in_full() { 200 } else { 60 });
}
