//! Jobs on nodes of several kinds that they share: EASY beside a plain loop, and all policies within nodes and watts.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use busbar::budget::BudgetSpec;
use busbar::freedom::Freedoms;
use busbar::job::Job;
use busbar::machine::{Machine, check_text};
use busbar::metrics::energy_totals;
use busbar::policy::{Believe, PolicySpec};
use busbar::prepared::{PreparedWorkload, Rules, SharedWorld};
use busbar::priority::SiteFile;
use busbar::sim::State;
use busbar::units::{Instant, Joules, Span, Watts};
use busbar::workload::{Partitions, Placed, Workload};
use busbar::world::Repertoire;
use proptest::prelude::*;
use serde_json::Value;

mod slurm;

use crate::plain::kinds::{
    Asked, PlainFeed, PlainKind, PlainPartition, conservative_starts, starts,
};
use crate::program::busbar;

/// Nodes: how many, what each has, and what each of its processors adds in milliwatts; and the idle power in watts.
const KINDS: [(PlainKind, u64); 3] = [
    (PlainKind { nodes: 5, size: [8, 32 << 10, 0], each: 12_500 }, 50),
    (PlainKind { nodes: 2, size: [16, 128 << 10, 0], each: 10_000 }, 80),
    (PlainKind { nodes: 3, size: [4, 16 << 10, 2], each: 50_000 }, 100),
];

/// The partitions whose own nodes these are, and those that have the nodes of others.
const OWN: [&str; 3] = ["short", "fat", "gpu"];
const OVER: [(&str, &[usize], bool); 2] = [("any", &[0, 1], true), ("whole", &[0], false)];

fn partitions() -> Vec<PlainPartition> {
    let own = (0..OWN.len()).map(|kind| PlainPartition { kinds: vec![kind], shared: true });
    let over =
        OVER.iter().map(|(_, of, shared)| PlainPartition { kinds: of.to_vec(), shared: *shared });
    own.chain(over).collect()
}

/// The idle power of all nodes, in milliwatts.
fn floor() -> u64 {
    KINDS.iter().map(|(kind, idle)| kind.nodes as u64 * idle * 1000).sum()
}

/// Feeds, as the machine file names their nodes, and all nodes below each: a rack in a row that has nodes of two kinds, and the
/// feed of the nodes with GPUs.
const FEEDS: [(&str, &str, Option<&str>, &[usize]); 3] = [
    ("row", "short[2-3], fat[0]", None, &[0, 1, 2, 3, 5]),
    ("rack", "short[0-1]", Some("row"), &[0, 1]),
    ("gpus", "gpu", None, &[7, 8, 9]),
];

/// What jobs may add below each feed, in milliwatts.
type Limits = [u64; 3];

fn feeds(limits: &Limits) -> Vec<PlainFeed> {
    let feeds = FEEDS.iter().zip(limits);
    feeds.map(|((.., nodes), &for_jobs)| PlainFeed { nodes: nodes.to_vec(), for_jobs }).collect()
}

/// Feeds that leave much or little to jobs, or none.
fn limits() -> impl Strategy<Value = Option<Limits>> {
    let limit = || prop_oneof![Just(5_000_000u64), 20_000u64..700_000];
    prop::option::weighted(0.7, [limit(), limit(), limit()])
}

/// What the nodes of a feed draw when they are idle, in milliwatts.
fn idle(nodes: &[usize]) -> u64 {
    let all = KINDS.iter().flat_map(|(kind, idle)| vec![idle * 1000; kind.nodes]);
    let all: Vec<u64> = all.collect();
    nodes.iter().map(|node| all[*node]).sum()
}

/// Where there are no caps, what they can reach is a milliwatt of each node, so that all applications draw what the nodes do.
fn machine(limits: Option<&Limits>, caps: bool) -> Machine {
    let watts = |milliwatts: u64| format!("{}.{:03}W", milliwatts / 1000, milliwatts % 1000);
    let own = OWN.iter().zip(&KINDS).map(|(name, (kind, idle))| {
        let [processors, memory, gpus] = kind.size;
        let busy = idle * 1000 + kind.each * u64::from(processors);
        format!(
            "[[partition]]\nname = '{name}'\nnodes = {}\nprocessors_per_node = {processors}\nmemory = '{memory}MiB'\n\
             gpus = {gpus}\nshared = true\npower.node = '{}'\npower.idle = '{idle}W'\n{}",
            kind.nodes,
            watts(busy),
            match caps {
                true => String::new(),
                false => {
                    format!("power.rest = '{}'\ncaps.levels = ['0.001W']\n", watts(busy - 1))
                }
            },
        )
    });
    let over = OVER.iter().map(|(name, of, shared)| {
        let of: Vec<String> = of.iter().map(|kind| format!("'{}'", OWN[*kind])).collect();
        format!("[[partition]]\nname = '{name}'\nof = [{}]\nshared = {shared}\n", of.join(", "))
    });
    let fed = FEEDS.iter().zip(limits.into_iter().flatten()).map(|(feed, limit)| {
        let (name, nodes, parent, below) = feed;
        let parent = parent.map_or(String::new(), |above| format!("parent = '{above}'\n"));
        let limit = watts(limit + idle(below));
        format!("[[feed]]\nname = '{name}'\nlimit = '{limit}'\nnodes = '{nodes}'\n{parent}")
    });
    let text: String = own.chain(over).chain(fed).collect();
    check_text(&text, "site", Path::new("")).unwrap().choose(&[]).unwrap()
}

fn jobs() -> impl Strategy<Value = Vec<Asked>> {
    let sizes = (1u32..40, 0u32..4, 0u64..40_000, 0u32..4);
    let job = (0usize..5, sizes, (0u64..60, 1u64..300, 0u64..300));
    prop::collection::vec(job, 1..60).prop_map(|drawn| {
        let mut submit = 0;
        let asked = drawn.into_iter().map(|(partition, sizes, (gap, run, over))| {
            let (processors, nodes, memory, gpus) = sizes;
            submit += gap;
            let gpus = if partition == 2 { gpus } else { 0 };
            Asked { submit, partition, processors, nodes, memory, gpus, run, limit: run + over }
        });
        asked.collect()
    })
}

fn workload(asked: &[Asked]) -> Workload {
    let secs = |secs: u64| Span::from_millis(secs * 1000);
    let job = |(job, number): (&Asked, u64)| {
        let submit = Instant::from_millis(job.submit * 1000);
        Job::new(number, submit, job.processors, secs(job.limit))
    };
    let jobs: Vec<Job> = asked.iter().zip(1..).map(job).collect();
    let times = asked.iter().map(|job| secs(job.run)).collect();
    let names = OWN.iter().copied().chain(OVER.iter().map(|over| over.0));
    let names = (1..).zip(names.map(str::to_owned)).collect();
    let of_jobs = asked.iter().map(|job| job.partition as u32 + 1).collect();
    let partitions = Partitions::new(of_jobs, names);
    let mut workload = Workload::from_parts("log".to_owned(), jobs, times, Vec::new(), partitions);
    workload.set_placed(Vec::new(), |job| {
        let Asked { nodes, memory, gpus, .. } = asked[job.number as usize - 1];
        Placed { nodes, list: None, memory_mib: memory, gpus }
    });
    workload
}

/// When each job starts under a policy. Whatever it decides, nothing of it is refused, and no more than the limit is drawn, also
/// below feeds.
fn by_policy(
    asked: &[Asked],
    limit: u64,
    limits: Option<&Limits>,
    policy: &str,
) -> Vec<Option<u64>> {
    by_policy_where(asked, limit, limits, policy, false, None)
}

/// The same, with caps or without, and with a site file.
fn by_policy_where(
    asked: &[Asked],
    limit: u64,
    limits: Option<&Limits>,
    policy: &str,
    caps: bool,
    site: Option<&str>,
) -> Vec<Option<u64>> {
    let repertoire = Repertoire::BuiltIn;
    let machine = repertoire.filled_in(&machine(limits, caps)).unwrap();
    let prepared = PreparedWorkload::new(machine, workload(asked), true);
    let PreparedWorkload { machine, workload, .. } = &prepared;
    let site = site.map(|text| SiteFile::from_text(Path::new("site.toml"), text.to_owned()));
    let rules = Rules {
        allow: Freedoms::ALL,
        believe: caps.then_some(Believe::Exact),
        site: site.map(|site| Arc::new(site.unwrap())),
        ..Rules::default()
    };
    let shared = SharedWorld::new(machine, workload, &repertoire, &rules, 1).unwrap();
    let policy: PolicySpec = policy.parse().unwrap();
    let belief = shared.belief(&policy, machine, workload.jobs()).unwrap();
    let limit = Watts::from_milliwatts(limit);
    let budget: BudgetSpec = limit.to_string().parse().unwrap();
    let budget = budget.resolve(machine).unwrap();
    let mut scenario = prepared.in_shared_world(policy, budget, &shared, belief.as_ref());
    scenario.keep_power = true;
    let run = scenario.simulate().run;
    assert_eq!(run.violations, 0);
    assert!(run.peak <= limit, "{} were drawn under {limit}", run.peak);
    assert_eq!(run.feed_power.is_empty(), limits.is_none());
    run.feed_power.iter().for_each(|fed| assert!(fed.power <= fed.limit, "{fed:?}"));
    // Jobs share the idle power of their nodes, and together they have all of it.
    let totals = energy_totals(&scenario.context("any"), &run);
    assert_eq!(totals.into_iter().flatten().sum::<Joules>(), run.energy_by_state.running);
    let start = |record: &busbar::sim::Record| {
        let is_rejected = matches!(record.state, State::Rejected(_));
        (!is_rejected).then(|| record.start.millis() / 1000)
    };
    run.records.iter().map(start).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The same jobs start at the same times, with much power and with little, and below feeds.
    #[test]
    fn easy_starts_whom_a_plain_loop_starts(
        asked in jobs(),
        limit in prop_oneof![Just(100_000_000u64), 900_000u64..2_000_000],
        limits in limits(),
    ) {
        let kinds = KINDS.map(|(kind, _)| kind);
        let feeds = limits.iter().flat_map(feeds).collect::<Vec<_>>();
        let expected = starts(&kinds, &partitions(), &feeds, &asked, limit - floor());
        prop_assert_eq!(by_policy(&asked, limit, limits.as_ref(), "easy"), expected);
    }

    /// The same with a promise to everybody.
    #[test]
    fn conservative_starts_whom_a_plain_loop_starts(
        asked in jobs(),
        limit in prop_oneof![Just(100_000_000u64), 900_000u64..2_000_000],
        limits in limits(),
    ) {
        let kinds = KINDS.map(|(kind, _)| kind);
        let feeds = limits.iter().flat_map(feeds).collect::<Vec<_>>();
        let expected =
            conservative_starts(&kinds, &partitions(), &feeds, &asked, limit - floor());
        prop_assert_eq!(by_policy(&asked, limit, limits.as_ref(), "conservative"), expected);
    }

    /// Nobody is given what is not there, under any policy that runs here.
    #[test]
    fn every_policy_stays_within_nodes_and_watts(
        asked in jobs(),
        limit in 1_300_000u64..2_000_000,
        limits in limits(),
        policy in prop::sample::select(vec![
            "fcfs", "easy(order=history)", "easy-power", "pb-guided", "rmap-traditional", "rmap-naive",
            "rmap-adaptive(slowdown=20%)", "share", "share(use=caps)", "share(use=sizes)",
            "share(use=recaps, order=aged)", "share(use=resizes)", "share(use=resizes)", "parm", "parm(alpha=1)",
            "ppartition", "ppartition(dispatch=stop)", "uniform(cap=50W)", "uniform(cap=share)",
            "utility", "utility(heuristic=max-utility)",
        ]),
        caps in any::<bool>(),
    ) {
        by_policy_where(&asked, limit, limits.as_ref(), policy, caps, None);
    }
}

/// All of them, by their names: nobody is refused because a machine has two kinds of nodes, or feeds, but Slurm itself,
/// which knows no feeds.
#[test]
fn every_built_in_policy_runs() {
    let asked: Vec<Asked> = (0..200)
        .map(|job: u32| Asked {
            submit: u64::from(job) * 10,
            partition: job as usize % 5,
            processors: 1 + job * 7 % 20,
            nodes: 0,
            memory: 0,
            gpus: 0,
            run: 50 + u64::from(job * 13 % 300),
            limit: 400,
        })
        .collect();
    let limits = [300_000, 150_000, 500_000];
    for policy in PolicySpec::all() {
        // It needs its program.
        if policy.name() == "external" {
            continue;
        }
        let below_feeds = (policy.name() != "slurm").then_some(&limits);
        for limits in [None].into_iter().chain(below_feeds.map(Some)) {
            let policy = policy.to_string();
            let started = by_policy_where(&asked, 1_500_000, limits, &policy, true, None);
            let started = started.iter().flatten().count();
            assert!(started > 120, "{policy}: {started}");
        }
    }
}

/// A plan sizes each kind by itself: nodes that nobody needs are not taken, and where jobs wait for nodes of a kind, more of that
/// kind are.
#[test]
fn a_plan_sizes_each_kind() {
    let folder = tempfile::tempdir().unwrap();
    let machine = "processors_per_node = 8\n[power]\nnode = '400W'\nidle = '90W'\n\
        [[partition]]\nname = 'cpu'\nnodes = 20\n[[partition]]\nname = 'gpu'\nnodes = 2\npower.node = '1000W'\n";
    fs::write(folder.path().join("site.toml"), machine).unwrap();
    // Every ten minutes a job of an hour on a node with GPUs, which is three times as much as two nodes can do; and now and then
    // one on four of the others.
    let mut log = "; MaxProcs: 176\n; Partition: 1 cpu\n; Partition: 2 gpu\n".to_owned();
    for job in 0..200 {
        let (processors, partition) = if job % 10 == 9 { (32, 1) } else { (8, 2) };
        writeln!(
            log,
            "{} {} 0 3600 {processors} -1 -1 {processors} 3600 -1 1 1 1 1 1 {partition} -1 -1",
            job + 1,
            job * 600
        )
        .unwrap();
    }
    fs::write(folder.path().join("log.swf"), log).unwrap();
    let ask = |budget: &str, more: &[&str]| {
        let plan =
            ["plan", "log.swf", "--machine", "site.toml", "--policy", "easy", "--seeds", "1"];
        busbar(&[&plan[..], &["--budget", budget], more].concat(), folder.path())
    };
    let printed = ask("100%", &["--json"]).unwrap();
    let answer: Value = serde_json::from_str(&printed).unwrap();
    let [cpu, gpu] = [0, 1].map(|kind| &answer["kinds"][kind]);
    assert_eq!((&cpu["partition"], &cpu["nodes"]), (&"cpu".into(), &20.into()));
    assert_eq!(cpu["recommended_nodes"], 10, "half of them are never needed: {cpu}");
    assert_eq!(gpu["recommended_nodes"], 4, "the most that is tried: {gpu}");
    let turnaround = |whole: &Value| whole["mean_turnaround_s"].as_f64().unwrap();
    assert!(turnaround(&answer["recommended"]) < turnaround(&answer["now"]), "{answer}");
    let text = ask("100%", &[]).unwrap();
    assert!(text.contains("take 10 of cpu instead of 20, 4 of gpu instead of 2: "), "{text}");
    let why = ask("100%", &["--map"]).unwrap_err();
    assert!(why.contains("nodes are of one kind"), "{why}");
    // Below what idle nodes draw, nothing runs.
    let why = ask("1kW", &[]).unwrap_err();
    assert!(why.contains("leaves no power for jobs"), "{why}");
}
