//! A month of a large site as sites are: 10 000 nodes of four kinds, and 100 000 jobs, half of them on nodes that jobs share.

use std::path::Path;

use busbar::budget::Budget;
use busbar::job::Job;
use busbar::machine::{Machine, check_text};
use busbar::policy::PolicySpec;
use busbar::prepared::{PreparedWorkload, Rules, SharedWorld};
use busbar::units::{Share, Span};
use busbar::workload::lublin::Lublin;
use busbar::workload::{Partitions, Placed, Workload};
use busbar::world::Repertoire;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use super::bench::{Bench, timed};
use super::table::{Table, grouped, met};

/// The partitions: their nodes, what each node has (processors, memory in GiB, GPUs), and whether jobs share it.
const PARTITIONS: [(&str, u32, [u32; 3], bool); 4] = [
    ("whole", 5_000, [64, 256, 0], false),
    ("small", 3_400, [16, 64, 0], true),
    ("fat", 600, [32, 512, 0], true),
    ("gpu", 1_000, [8, 64, 4], true),
];
/// Jobs are those of a machine of so many nodes: with larger ones, so many jobs would take years.
const LARGEST: u32 = 256;
/// The load of the nodes that nobody shares; that of the others is about the same.
const LOAD: f64 = 0.9;
/// Jobs a second.
const GOAL: f64 = 200_000.0;

/// What is said of each job: its partition, its nodes, and all memory and GPUs that it has on them.
type Asked = (u32, Placed);

pub(super) fn kinds(bench: &Bench) {
    let mut table = Table::new("policy | budget | jobs | turns | seconds | jobs/s | goal | met");
    let repertoire = Repertoire::BuiltIn;
    let machine = repertoire.filled_in(&machine()).expect("a machine that suits");
    let workload = workload(if bench.quick { 5_000 } else { 100_000 });
    let prepared = PreparedWorkload::new(machine, workload, true);
    let PreparedWorkload { machine, workload, .. } = &prepared;
    let shared = SharedWorld::new(machine, workload, &repertoire, &Rules::default(), 1);
    let shared = shared.expect("a world");
    for (name, percent) in [("easy", 100), ("easy", 80), ("easy-power", 80), ("pb-guided", 80)] {
        let policy: PolicySpec = name.parse().expect("a policy");
        let belief = shared.belief(&policy, machine, workload.jobs()).expect("a belief");
        let budget = match percent {
            100 => Budget::unlimited(),
            percent => Budget::constant(Share::percent(percent).of(machine.max_power())),
        };
        let scenario = prepared.in_shared_world(policy, budget, &shared, belief.as_ref());
        let (seconds, simulated) = timed(|| scenario.simulate());
        assert_eq!(simulated.run.violations, 0);
        let jobs = simulated.run.records.len();
        let speed = jobs as f64 / seconds;
        table.row(vec![
            name.to_owned(),
            if percent == 100 { "none".to_owned() } else { format!("{percent} %") },
            grouped(jobs as u64),
            grouped(simulated.run.turns),
            format!("{seconds:.2}"),
            grouped(speed as u64),
            if name == "easy" { format!("≥ {}", grouped(GOAL as u64)) } else { String::new() },
            if name == "easy" { met(speed >= GOAL) } else { String::new() },
        ]);
    }
    table.print();
}

fn machine() -> Machine {
    let partition = |(name, nodes, [processors, memory, gpus], shared): (
        &str,
        u32,
        [u32; 3],
        bool,
    )| {
        let watts = 100 + 8 * processors + 300 * gpus;
        format!(
            "[[partition]]\nname = '{name}'\nnodes = {nodes}\nprocessors_per_node = {processors}\nmemory = '{memory}GiB'\n\
             gpus = {gpus}\nshared = {shared}\npower.node = '{watts}W'\npower.idle = '80W'\n"
        )
    };
    let text: String = PARTITIONS.into_iter().map(partition).collect();
    let checked = check_text(&text, "site", Path::new("")).expect("a machine");
    checked.choose(&[]).expect("all partitions")
}

/// Half the jobs have whole nodes, and half of them processors, drawn so that the load of all nodes is alike.
fn workload(jobs: u32) -> Workload {
    let load = LOAD * f64::from(PARTITIONS[0].1) / f64::from(LARGEST);
    let of = |seed| {
        let lublin =
            Lublin { jobs: jobs / 2, load, processors: LARGEST, seed, ..Lublin::default() };
        lublin.generate().expect("valid parameters")
    };
    let (whole, shared) = (of(1), of(2));
    let mut rng = Pcg64Dxsm::seed_from_u64(1);
    let mut drawn: Vec<(Job, Span, Asked)> = Vec::new();
    for (job, time) in whole.jobs().iter().zip(whole.run_times()) {
        let processors = job.processors * PARTITIONS[0].2[0];
        let placed = Placed { nodes: job.processors, ..Placed::default() };
        drawn.push((Job { processors, nodes: processors, ..*job }, *time, (1, placed)));
    }
    for (job, time) in shared.jobs().iter().zip(shared.run_times()) {
        let processors = job.processors * rng.random_range(1..=31);
        let partition = match rng.random_range(1..=100) {
            1..=67 => 2,
            68..=90 => 3,
            _ => 4,
        };
        let (_, _, [most, memory, gpus], _) = PARTITIONS[partition - 1];
        let mib = u64::from(processors) * u64::from(memory << 10) / u64::from(most);
        let memory_mib = mib * rng.random_range(1..=4) / 4;
        let gpus = processors * gpus / most;
        let placed = Placed { memory_mib, gpus, ..Placed::default() };
        drawn.push((
            Job { processors, nodes: processors, ..*job },
            *time,
            (partition as u32, placed),
        ));
    }
    drawn.sort_by_key(|(job, ..)| job.submit);
    let numbered = drawn.iter().zip(0..).map(|((job, ..), number)| Job { number, ..*job });
    let jobs: Vec<Job> = numbered.collect();
    let times = drawn.iter().map(|drawn| drawn.1).collect();
    let names = (1..).zip(PARTITIONS.map(|partition| partition.0.to_owned())).collect();
    let partitions = Partitions::new(drawn.iter().map(|drawn| drawn.2.0).collect(), names);
    let mut workload = Workload::from_parts("site".to_owned(), jobs, times, Vec::new(), partitions);
    workload.set_placed(Vec::new(), |job| drawn[job.number as usize].2.1);
    workload
}
