//! A month of a large site as sites are: 10 000 nodes of four kinds, and 100 000 jobs, half of them on nodes that jobs share.

use std::io::{self, Write};
use std::path::Path;

use busbar::budget::Budget;
use busbar::job::Job;
use busbar::machine::{Machine, check_text};
use busbar::policy::PolicySpec;
use busbar::prepared::{PreparedWorkload, Rules, SharedWorld};
use busbar::report::write_whole;
use busbar::units::{Share, Span};
use busbar::workload::lublin::Lublin;
use busbar::workload::{Partitions, Placed, Workload};
use busbar::world::Repertoire;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use super::bench::{Bench, timed};
use super::command::simulate;
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
/// The load of the nodes that nobody shares; that of the others is about the same. Hardly anybody waits at the first, and at the
/// last the queue grows all the time.
const LOADS: [f64; 3] = [0.6, USUAL, 1.2];
const USUAL: f64 = 0.9;
/// Jobs a second.
const GOAL: f64 = 200_000.0;

/// What is said of each job: its partition, its nodes, and all memory and GPUs that it has on them.
type Asked = (u32, Placed);

pub(super) fn kinds(bench: &Bench) {
    let mut table =
        Table::new("load | policy | budget | jobs | turns | seconds | jobs/s | goal | met");
    let repertoire = Repertoire::BuiltIn;
    let machine = repertoire.filled_in(&machine()).expect("a machine that suits");
    let jobs = if bench.quick { 5_000 } else { 100_000 };
    for load in LOADS {
        let prepared = PreparedWorkload::new(machine.clone(), workload(jobs, load).0, true);
        let PreparedWorkload { machine, workload, .. } = &prepared;
        let shared = SharedWorld::new(machine, workload, &repertoire, &Rules::default(), 1);
        let shared = shared.expect("a world");
        let limited = [("easy", 80), ("easy-power", 80), ("pb-guided", 80)];
        let limited = limited.into_iter().filter(|_| load == USUAL);
        for (name, percent) in [("easy", 100)].into_iter().chain(limited) {
            let policy: PolicySpec = name.parse().expect("a policy");
            let belief = shared.belief(&policy, machine, workload.jobs()).expect("a belief");
            let budget = match percent {
                100 => Budget::unlimited(),
                percent => Budget::constant(Share::percent(percent).of(machine.max_power())),
            };
            let scenario = prepared.in_shared_world(policy, budget, &shared, belief.as_ref());
            let mut best = f64::MAX;
            let mut turns = 0;
            for _ in 0..if bench.quick || percent < 100 { 1 } else { 5 } {
                let (seconds, simulated) = timed(|| scenario.simulate());
                assert_eq!(simulated.run.violations, 0);
                (best, turns) = (best.min(seconds), simulated.run.turns);
            }
            let speed = f64::from(jobs) / best;
            let goal = name == "easy" && percent == 100 && load == USUAL;
            table.row(vec![
                load.to_string(),
                name.to_owned(),
                if percent == 100 { "none".to_owned() } else { format!("{percent} %") },
                grouped(jobs.into()),
                grouped(turns),
                format!("{best:.2}"),
                grouped(speed as u64),
                if goal { format!("≥ {}", grouped(GOAL as u64)) } else { String::new() },
                if goal { met(speed >= GOAL) } else { String::new() },
            ]);
        }
    }
    table.print();
    println!("\nThe command, with the same jobs as records of Slurm:\n");
    by_command(bench, jobs);
}

/// `busbar simulate RECORDS --machine FILE --policy easy`, with the jobs a second that it reports itself.
fn by_command(bench: &Bench, jobs: u32) {
    let mut table = Table::new("load | jobs | jobs/s | goal | met");
    let (records, file) =
        (bench.folder.path().join("site.txt"), bench.folder.path().join("site.toml"));
    write_whole(&file, &|out| out.write_all(machine_file().as_bytes())).expect("a machine file");
    for load in LOADS {
        let (workload, asked) = workload(jobs, load);
        write_whole(&records, &|out| write_records(out, &workload, &asked)).expect("records");
        let file = file.to_str().expect("a plain path");
        let arguments = ["--machine", file, "--policy", "easy"];
        let best = simulate(&records, &arguments, if bench.quick { 1 } else { 5 });
        let goal = load == USUAL;
        table.row(vec![
            load.to_string(),
            grouped(best.jobs),
            grouped(best.speed() as u64),
            if goal { format!("≥ {}", grouped(GOAL as u64)) } else { String::new() },
            if goal { met(best.speed() >= GOAL) } else { String::new() },
        ]);
    }
    table.print();
}

/// The jobs as `sacct` lists them, with times in seconds since 1970.
fn write_records(out: &mut dyn Write, workload: &Workload, asked: &[Asked]) -> io::Result<()> {
    const BEGIN: u64 = 1_704_067_200;
    let header =
        "JobIDRaw|User|Partition|State|Submit|Start|End|Timelimit|NNodes|AllocCPUS|AllocTRES";
    writeln!(out, "{header}")?;
    let jobs = workload.jobs().iter().zip(workload.run_times()).zip(asked);
    for ((job, time), (partition, placed)) in jobs {
        let (name, _, [most, ..], _) = PARTITIONS[*partition as usize - 1];
        let submit = BEGIN + job.submit.millis() / 1000;
        let end = submit + time.millis() / 1000;
        let minutes = job.requested.millis().div_ceil(60_000);
        let (days, hours) = (minutes / 1440, minutes / 60 % 24);
        let (cpus, nodes) = (job.processors, job.processors.div_ceil(most));
        let Placed { memory_mib, gpus, .. } = placed;
        let (number, user) = (1000 + job.number, job.number % 400);
        write!(out, "{number}|user{user}|{name}|COMPLETED|{submit}|{submit}|{end}|")?;
        write!(out, "{days}-{hours:02}:{:02}:00|{nodes}|{cpus}|", minutes % 60)?;
        writeln!(out, "cpu={cpus},gres/gpu={gpus},mem={memory_mib}M,node={nodes}")?;
    }
    Ok(())
}

fn machine() -> Machine {
    let checked = check_text(&machine_file(), "site", Path::new("")).expect("a machine");
    checked.choose(&[]).expect("all partitions")
}

fn machine_file() -> String {
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
    PARTITIONS.into_iter().map(partition).collect()
}

/// Half the jobs have whole nodes, and half of them processors, drawn so that the load of all nodes is alike.
fn workload(jobs: u32, load: f64) -> (Workload, Vec<Asked>) {
    let load = load * f64::from(PARTITIONS[0].1) / f64::from(LARGEST);
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
    (workload, drawn.into_iter().map(|drawn| drawn.2).collect())
}
