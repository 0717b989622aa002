//! EASY on nodes of several kinds that jobs share, beside a plain loop over lists of nodes.

use std::path::Path;

use proptest::prelude::*;

use crate::budget::Budget;
use crate::job::Job;
use crate::machine::{Machine, check_text};
use crate::policy::PolicySpec;
use crate::prepared::{PreparedWorkload, Rules, SharedWorld};
use crate::sim::State;
use crate::units::{Instant, JobId, Span, Watts};
use crate::workload::{Partitions, Placed, Workload};
use crate::world::Repertoire;

/// What is free of a node, or what a job takes of it: processors, memory and GPUs.
type Amounts = [u32; 3];

/// A kind of nodes: how many, what each has, and what each of its processors adds, in milliwatts.
struct Kind {
    nodes: usize,
    size: Amounts,
    each: u64,
}

const KINDS: [Kind; 3] = [
    Kind { nodes: 5, size: [8, 32 << 10, 0], each: 12_500 },
    Kind { nodes: 2, size: [16, 128 << 10, 0], each: 10_000 },
    Kind { nodes: 3, size: [4, 16 << 10, 2], each: 50_000 },
];

/// By partition: its kinds in the order in which the file names them, and whether its nodes are shared.
const PARTITIONS: [(&str, &[usize], bool); 5] = [
    ("short", &[0], true),
    ("fat", &[1], true),
    ("gpu", &[2], true),
    ("any", &[0, 1], true),
    ("whole", &[0], false),
];

/// The idle power of all nodes, in milliwatts.
const FLOOR: u64 = (5 * 50 + 2 * 80 + 3 * 100) * 1000;

/// What caps can reach is a milliwatt of each node, so that all applications draw what the nodes do.
fn machine() -> Machine {
    let part = |name: &str, kind: &Kind, idle: u64| {
        let [processors, memory, gpus] = kind.size;
        let busy = idle * 1000 + kind.each * u64::from(processors);
        format!(
            "[[partition]]\nname = '{name}'\nnodes = {}\nprocessors_per_node = {processors}\nmemory = '{memory}MiB'\n\
             gpus = {gpus}\nshared = true\npower.node = '{}.{:03}W'\npower.idle = '{idle}W'\npower.rest = '{}.{:03}W'\n\
             caps.levels = ['0.001W']\n",
            kind.nodes,
            busy / 1000,
            busy % 1000,
            (busy - 1) / 1000,
            (busy - 1) % 1000,
        )
    };
    let text = [
        part("short", &KINDS[0], 50),
        part("fat", &KINDS[1], 80),
        part("gpu", &KINDS[2], 100),
        "[[partition]]\nname = 'any'\nof = ['short', 'fat']\nshared = true\n".to_owned(),
        "[[partition]]\nname = 'whole'\nof = ['short']\n".to_owned(),
    ];
    check_text(&text.concat(), "site", Path::new("")).unwrap().choose(&[]).unwrap()
}

/// A job, as a log has it.
#[derive(Clone, Debug)]
struct Asked {
    gap: u32,
    partition: usize,
    processors: u32,
    nodes: u32,
    memory: u64,
    gpus: u32,
    run: u32,
    over: u32,
}

fn asked() -> impl Strategy<Value = Asked> {
    let sizes = (1u32..40, 0u32..4, 0u64..40_000, 0u32..4);
    let times = (0u32..60, 1u32..300, 0u32..300);
    (0usize..5, sizes, times).prop_map(|(partition, (processors, nodes, memory, gpus), (gap, run, over))| {
        let gpus = if partition == 2 { gpus } else { 0 };
        Asked { gap, partition, processors, nodes, memory, gpus, run, over }
    })
}

fn workload(asked: &[Asked]) -> Workload {
    let mut now = 0;
    let jobs = asked.iter().zip(1..).map(|(job, number)| {
        now += job.gap;
        Job::new(number, Instant::from_secs(now), job.processors, Span::from_secs(job.run + job.over))
    });
    let jobs: Vec<Job> = jobs.collect();
    let times = asked.iter().map(|job| Span::from_secs(job.run)).collect();
    let names = (1..).zip(PARTITIONS.iter().map(|known| known.0.to_owned())).collect();
    let of_jobs = asked.iter().map(|job| job.partition as u32 + 1).collect();
    let partitions = Partitions::new(of_jobs, names);
    let mut workload = Workload::from_parts("log".to_owned(), jobs, times, Vec::new(), partitions);
    workload.set_placed(Vec::new(), |job| {
        let asked = &asked[job.number as usize - 1];
        let (nodes, memory_mib, gpus) = (asked.nodes, asked.memory, asked.gpus);
        Placed { nodes, list: None, memory_mib, gpus }
    });
    workload
}

/// A job as the plain loop knows it.
struct Plain {
    submit: u64,
    limit: u64,
    run: u64,
    nodes: usize,
    each: Amounts,
    places: std::ops::Range<usize>,
    power: u64,
}

/// The same request on the first kind of its partition that has so much; nothing if none has.
fn plain(job: &Asked, submit: u64) -> Option<Plain> {
    let (_, kinds, shared) = PARTITIONS[job.partition];
    kinds.iter().find_map(|kind| {
        let Kind { nodes: count, size, each: watts } = KINDS[*kind];
        let least = job.processors.div_ceil(size[0]);
        let nodes = if job.nodes == 0 { least } else { job.nodes.clamp(least, job.processors) };
        let memory = job.memory.div_ceil(u64::from(nodes)) as u32;
        let each = [job.processors.div_ceil(nodes), memory, job.gpus.div_ceil(nodes)];
        let fits = (0..3).all(|what| each[what] <= size[what]) && nodes as usize <= count;
        let each = if !shared || each[0] == size[0] { size } else { each };
        let first: usize = KINDS[..*kind].iter().map(|kind| kind.nodes).sum();
        fits.then(|| Plain {
            submit,
            limit: u64::from(job.run + job.over),
            run: u64::from(job.run),
            nodes: nodes as usize,
            each,
            places: first..first + count,
            power: u64::from(nodes * each[0]) * watts,
        })
    })
}

fn first_nodes(job: &Plain, free: &[Amounts], is_good: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
    let enough = |node: &usize| (0..3).all(|what| free[*node][what] >= job.each[what]) && is_good(*node);
    let found: Vec<usize> = job.places.clone().filter(enough).take(job.nodes).collect();
    (found.len() == job.nodes).then_some(found)
}

fn take(job: &Plain, free: &mut [Amounts], nodes: &[usize]) {
    nodes.iter().for_each(|node| (0..3).for_each(|what| free[*node][what] -= job.each[what]));
}

fn give(job: &Plain, free: &mut [Amounts], nodes: &[usize]) {
    nodes.iter().for_each(|node| (0..3).for_each(|what| free[*node][what] += job.each[what]));
}

/// Who runs on which nodes, since when.
type Running = Vec<(usize, Vec<usize>, u64)>;

/// One turn of EASY: who starts on which nodes.
fn turn(
    jobs: &[Option<Plain>],
    now: u64,
    waiting: &[usize],
    running: &Running,
    mut free: Vec<Amounts>,
    mut power: u64,
) -> Vec<(usize, Vec<usize>)> {
    let of = |job: usize| jobs[job].as_ref().unwrap();
    let mut starts: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut rest = waiting.iter().copied().peekable();
    while let Some(job) = rest.peek().copied() {
        let nodes = first_nodes(of(job), &free, |_| true).filter(|_| of(job).power <= power);
        let Some(nodes) = nodes else { break };
        take(of(job), &mut free, &nodes);
        power -= of(job).power;
        starts.push((job, nodes));
        rest.next();
    }
    let Some(head) = rest.next() else { return starts };
    // The head's time: those that run give back what they have when they said.
    let mut ends: Vec<(u64, usize, Vec<usize>)> = running
        .iter()
        .map(|(job, nodes, since)| ((since + of(*job).limit).max(now), *job, nodes.clone()))
        .chain(starts.iter().map(|(job, nodes)| (now + of(*job).limit, *job, nodes.clone())))
        .collect();
    ends.sort();
    let (mut then, mut power_then, mut at, mut next) = (free.clone(), power, now, 0);
    let promised = loop {
        let nodes = first_nodes(of(head), &then, |_| true);
        if let Some(nodes) = nodes.filter(|_| of(head).power <= power_then) {
            break nodes;
        }
        at = ends[next].0;
        while next < ends.len() && ends[next].0 == at {
            let (_, job, nodes) = &ends[next];
            give(of(*job), &mut then, nodes);
            power_then += of(*job).power;
            next += 1;
        }
    };
    take(of(head), &mut then, &promised);
    let mut extra = power_then - of(head).power;
    for job in rest {
        let this = of(job);
        let stays = now + this.limit > at;
        let is_good = |node: usize| {
            !stays
                || !promised.contains(&node)
                || (0..3).all(|what| then[node][what] >= this.each[what])
        };
        let nodes = first_nodes(this, &free, is_good);
        let is_fed = this.power <= power && (!stays || this.power <= extra);
        let Some(nodes) = nodes.filter(|_| is_fed) else { continue };
        take(this, &mut free, &nodes);
        power -= this.power;
        if stays {
            extra -= this.power;
            for node in nodes.iter().filter(|node| promised.contains(node)) {
                (0..3).for_each(|what| then[*node][what] -= this.each[what]);
            }
        }
        starts.push((job, nodes));
    }
    starts
}

/// When each job starts; nothing for those that no node can hold, or no limit feeds.
fn by_plain_loop(asked: &[Asked], limit: u64) -> Vec<Option<u64>> {
    let mut now = 0;
    let jobs = asked.iter().map(|job| {
        now += u64::from(job.gap);
        plain(job, now)
    });
    let jobs: Vec<Option<Plain>> =
        jobs.map(|job| job.filter(|job| job.power <= limit - FLOOR)).collect();
    let mut free: Vec<Amounts> =
        KINDS.iter().flat_map(|kind| vec![kind.size; kind.nodes]).collect();
    let mut power = limit - FLOOR;
    let (mut waiting, mut running): (Vec<usize>, Running) = (Vec::new(), Vec::new());
    let mut starts = vec![None; jobs.len()];
    let of = |job: usize| jobs[job].as_ref().unwrap();
    let mut arrivals = (0..jobs.len()).filter(|job| jobs[*job].is_some()).peekable();
    loop {
        let next_end = running.iter().map(|(job, _, since)| since + of(*job).run).min();
        let next_arrival = arrivals.peek().map(|job| of(*job).submit);
        let Some(now) = next_end.into_iter().chain(next_arrival).min() else { return starts };
        running.retain(|(job, nodes, since)| {
            let goes_on = since + of(*job).run > now;
            if !goes_on {
                give(of(*job), &mut free, nodes);
                power += of(*job).power;
            }
            goes_on
        });
        while let Some(job) = arrivals.next_if(|job| of(*job).submit == now) {
            waiting.push(job);
        }
        for (job, nodes) in turn(&jobs, now, &waiting, &running, free.clone(), power) {
            take(of(job), &mut free, &nodes);
            power -= of(job).power;
            starts[job] = Some(now);
            waiting.retain(|other| *other != job);
            running.push((job, nodes, now));
        }
    }
}

fn by_policy(asked: &[Asked], limit: u64, policy: &str) -> Vec<Option<u64>> {
    let repertoire = Repertoire::BuiltIn;
    let machine = repertoire.filled_in(&machine()).unwrap();
    let prepared = PreparedWorkload::new(machine, workload(asked), true);
    let shared =
        SharedWorld::new(&prepared.machine, &prepared.workload, &repertoire, &Rules::default(), 1).unwrap();
    let policy: PolicySpec = policy.parse().unwrap();
    let belief = shared.belief(&policy, &prepared.machine, prepared.workload.jobs()).unwrap();
    let budget = Budget::constant(Watts::from_milliwatts(limit));
    let run = prepared.in_shared_world(policy, budget, &shared, &*belief).simulate().run;
    assert_eq!(run.violations, 0);
    assert!(run.peak <= Watts::from_milliwatts(limit), "{} were drawn", run.peak);
    let start = |job: u32| {
        let record = &run.records[JobId(job).index()];
        let rejected = matches!(record.state, State::Rejected(_));
        (!rejected).then(|| record.start.millis() / 1000)
    };
    (0..asked.len() as u32).map(start).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The same jobs start at the same times, with much power and with little.
    #[test]
    fn easy_starts_whom_a_plain_loop_starts(
        asked in prop::collection::vec(asked(), 1..60),
        limit in prop_oneof![Just(100_000_000u64), 900_000u64..2_000_000],
    ) {
        prop_assert_eq!(by_policy(&asked, limit, "easy"), by_plain_loop(&asked, limit));
    }

    /// Nobody is given what is not there, under any policy that runs here.
    #[test]
    fn every_policy_stays_within_nodes_and_watts(
        asked in prop::collection::vec(asked(), 1..60),
        limit in 1_300_000u64..2_000_000,
        policy in prop::sample::select(vec![
            "fcfs", "easy(order=history)", "easy-power", "pb-guided", "rmap-traditional", "rmap-naive",
            "rmap-adaptive(slowdown=20%)", "share", "share(use=caps)", "share(use=recaps, order=aged)",
        ]),
    ) {
        by_policy(&asked, limit, policy);
    }
}
