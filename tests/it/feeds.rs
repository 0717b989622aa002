//! Feeds: their limits held at every time under several policies, added up again from the files of a run, and what is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::busbar;

/// 128 nodes: two rows, of which the first has three racks, one of them with a limit by the clock; 16 nodes have no feed.
const MACHINE: &str = "nodes = 128\n[power]\nnode = '400W'\nidle = '90W'\n\
    [[feed]]\nname = 'hall'\nlimit = '36kW'\n\
    [[feed]]\nname = 'row 1'\nparent = 'hall'\nlimit = '17kW'\n\
    [[feed]]\nname = 'rack 1'\nparent = 'row 1'\nlimit = '60%'\nnodes = '0-23,104-111'\n\
    [[feed]]\nname = 'rack 2'\nparent = 'row 1'\nlimit = '06:00-20:00: 4kW, else 80%'\nnodes = '24-47'\n\
    [[feed]]\nname = 'rack 3'\nparent = 'row 1'\nlimit = '6.5kW'\nnodes = '48-63'\n\
    [[feed]]\nname = 'row 2'\nparent = 'hall'\nlimit = '13kW'\nnodes = '64-103'\n";

const IDLE: f64 = 90.0;

/// By feed: its nodes.
fn nodes_of(feed: &str) -> Vec<u32> {
    let rack1 = || (0..24).chain(104..112);
    match feed {
        "hall" => (0..112).collect(),
        "row 1" => (0..64).chain(104..112).collect(),
        "rack 1" => rack1().collect(),
        "rack 2" => (24..48).collect(),
        "rack 3" => (48..64).collect(),
        "row 2" => (64..104).collect(),
        other => panic!("there is no feed {other}"),
    }
}

/// Rows of a table without quoted cells but the last.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap();
    let cells = |line: &str| match line.split_once('"') {
        Some((before, quoted)) => {
            let before = before.trim_end_matches(',').split(',');
            before.chain([quoted.trim_end_matches('"')]).map(str::to_owned).collect()
        }
        None => line.split(',').map(str::to_owned).collect(),
    };
    text.lines().skip(1).map(cells).collect()
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap_or_else(|_| panic!("'{cell}' is no number"))
}

fn nodes(text: &str) -> Vec<u32> {
    let stretches = text.split(',').map(|part| part.split_once('-').unwrap_or((part, part)));
    stretches.flat_map(|(first, last)| first.parse().unwrap()..=last.parse().unwrap()).collect()
}

/// A job that ran under one setting: from when until when, what each of its nodes draws beyond an idle one, and which they are.
struct Ran {
    start: f64,
    end: f64,
    each: f64,
    nodes: Vec<u32>,
}

fn ran(folder: &Path) -> Vec<Ran> {
    let placed = rows(&folder.join("nodes.csv"));
    let placed: BTreeMap<&str, Vec<u32>> =
        placed.iter().map(|row| (row[1].as_str(), nodes(&row[2]))).collect();
    // By job: when it got another setting, and what it draws from then on.
    let mut changes: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    if folder.join("changes.csv").exists() {
        for row in rows(&folder.join("changes.csv")) {
            let change = (number(&row[0]), number(&row[4]));
            changes.entry(row[1].clone()).or_default().push(change);
        }
    }
    let jobs = rows(&folder.join("jobs.csv"));
    let jobs = jobs.iter().filter(|row| !row[2].is_empty()).flat_map(|row| {
        let nodes = placed[row[0].as_str()].clone();
        assert_eq!(nodes.len(), row[4].parse::<usize>().unwrap(), "job {}", row[0]);
        let (start, end) = (number(&row[2]), number(&row[3]));
        let settings = changes.get(&row[0]).cloned().unwrap_or(vec![(start, number(&row[6]))]);
        assert_eq!((settings[0].0, settings[settings.len() - 1].1), (start, number(&row[6])));
        let ends = settings.iter().skip(1).map(|one| one.0).chain([end]).collect::<Vec<f64>>();
        let each = |power: f64| power / nodes.len() as f64;
        let ran = settings.iter().zip(ends).map(|((start, power), end)| Ran {
            start: *start,
            end,
            each: each(*power),
            nodes: nodes.clone(),
        });
        ran.collect::<Vec<Ran>>()
    });
    jobs.collect()
}

/// The steps of a feed or of the machine: from when, what is drawn, and the limit.
type Steps = Vec<(f64, f64, f64)>;

fn at(steps: &Steps, time: f64) -> (f64, f64) {
    let step = steps.partition_point(|step| step.0 <= time);
    (steps[step - 1].1, steps[step - 1].2)
}

/// Adds up the power of a run again, by node and feed, at every instant at which anything changes.
fn add_up(folder: &Path, policy: &str) {
    let limit = |cell: &str| if cell.is_empty() { f64::INFINITY } else { number(cell) };
    let mut feeds: BTreeMap<String, Steps> = BTreeMap::new();
    for row in rows(&folder.join("feeds.csv")) {
        let step = (number(&row[0]), number(&row[2]), limit(&row[3]));
        feeds.entry(row[1].clone()).or_default().push(step);
    }
    assert_eq!(feeds.len(), 6);
    let power: Steps = rows(&folder.join("power.csv"))
        .iter()
        .map(|row| (number(&row[0]), number(&row[1]), limit(&row[2])))
        .collect();
    let ran = ran(folder);
    let mut times: Vec<f64> = ran.iter().flat_map(|job| [job.start, job.end]).collect();
    times.extend(feeds.values().flatten().map(|step| step.0));
    times.sort_by(f64::total_cmp);
    times.dedup();
    let begin = power[0].0;
    for time in times.into_iter().filter(|time| *time >= begin) {
        let mut drawn = [IDLE; 128];
        let mut busy = BTreeSet::new();
        for job in ran.iter().filter(|job| job.start <= time && time < job.end) {
            for node in &job.nodes {
                assert!(busy.insert(*node), "{policy}: node {node} has two jobs at {time}");
                drawn[*node as usize] += job.each;
            }
        }
        let (all, budget) = at(&power, time);
        let sum: f64 = drawn.iter().sum();
        assert!((sum - all).abs() < 0.1, "{policy}: {sum}, but {all} W at {time}");
        assert!(all <= budget + 1e-6, "{policy}: {all} of {budget} W at {time}");
        for (feed, steps) in &feeds {
            let (measured, limit) = at(steps, time);
            assert!(
                measured <= limit + 1e-6,
                "{policy}: {feed}, {measured} of {limit} W at {time}"
            );
            // What nodes of a job draw is not alike, but no node draws more than was believed of each.
            let sum: f64 = nodes_of(feed).iter().map(|node| drawn[*node as usize]).sum();
            assert!(sum <= limit + 0.1, "{policy}: {feed}, {sum} of {limit} W at {time}");
            assert!(
                (sum - measured).abs() < 0.1 * sum,
                "{policy}: {feed}, {sum} or {measured} W at {time}"
            );
        }
        let parts =
            |names: &[&str]| names.iter().map(|name| at(&feeds[*name], time).0).sum::<f64>();
        let rows = parts(&["row 1", "row 2"]);
        assert!((rows - parts(&["hall"])).abs() < 0.01, "{policy}: the rows are the hall");
        let racks = parts(&["rack 1", "rack 2", "rack 3"]);
        assert!((racks - parts(&["row 1"])).abs() < 0.01, "{policy}: the racks are the row");
    }
}

/// Nothing is over any limit with exact beliefs, no node has two jobs, nobody starves, and the report agrees with the files.
#[test]
fn every_limit_holds_at_every_time() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.toml"), MACHINE).unwrap();
    for (policy, allow) in [
        ("fcfs", ""),
        ("easy", ""),
        ("easy(order=history)", ""),
        ("conservative", ""),
        ("easy-power", ""),
        ("pb-guided", ""),
        ("rmap-naive", ""),
        ("rmap-adaptive", "caps,sizes"),
        ("share(use=caps)", "caps"),
        ("share(use=sizes)", "caps,sizes"),
        ("uniform(cap=200W)", "caps,nodes"),
        ("share(use=recaps)", "all"),
        ("share(use=resizes)", "all"),
        ("parm", "all"),
        ("ppartition", "all"),
        ("utility", "caps"),
    ] {
        let out = format!("out-{}", policy.replace(['(', ')', '='], "-"));
        let mut arguments = vec![
            "simulate",
            "-w",
            "lublin(jobs=400, load=0.9, processors=96)",
            "-m",
            "m.toml",
            "-b",
            "45kW",
            "--believe",
            "exact",
            "--start",
            "2026-01-05 00:00 Europe/Berlin",
            "-p",
            policy,
            "--json",
            "--out",
            &out,
        ];
        if !allow.is_empty() {
            arguments.extend(["--allow", allow]);
        }
        let printed =
            busbar(&arguments, folder.path()).unwrap_or_else(|why| panic!("{policy}: {why}"));
        let answer: Value = serde_json::from_str(&printed).unwrap();
        let count = |key: &str| answer[key].as_u64().unwrap();
        assert_eq!(
            (count("violations"), count("unfinished")),
            (0, 0),
            "{policy}: {}",
            answer["refused"]
        );
        assert!(count("completed") + count("killed") > 250, "{policy}: {answer}");
        add_up(&folder.path().join(&out), policy);
        let feeds = answer["feeds"].as_array().unwrap();
        let names: Vec<&str> = feeds.iter().map(|feed| feed["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["hall", "row 1", "row 2", "rack 1", "rack 2", "rack 3"]);
        let bound = |feed: &Value| feed["bound_s"].as_f64().unwrap();
        assert!(feeds.iter().any(|feed| bound(feed) > 0.0), "{policy}: no feed was bound");
        for feed in feeds {
            let stranded = feed["stranded_j"].as_f64().unwrap();
            assert_eq!(bound(feed) > 0.0, stranded > 0.0, "{policy}: {feed}");
            assert_eq!(feed["over_limit_s"], 0.0, "{policy}: {feed}");
        }
    }
}

/// A job that feeds could never carry is turned away, and the reason names a feed.
#[test]
fn who_never_fits_is_told_which_feed() {
    let folder = tempfile::tempdir().unwrap();
    let machine = "nodes = 4\n[power]\nnode = '100W'\nidle = '10W'\nrest = '10W'\n[parts]\nspread = '0%'\n\
        [[feed]]\nname = 'pdu 7'\nlimit = '120W'\nnodes = '0-1'\n";
    fs::write(folder.path().join("m.toml"), machine).unwrap();
    let log = "; MaxProcs: 4\n1 0 0 100 3 -1 -1 3 100 -1 1 1 1 1 1 1 -1 -1\n2 0 0 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1\n";
    fs::write(folder.path().join("log.swf"), log).unwrap();
    let arguments = ["simulate", "log.swf", "-m", "m.toml", "-p", "easy", "--out", "out"];
    let printed = busbar(&arguments, folder.path()).unwrap();
    assert!(printed.contains("1 completed, 1 rejected: more power than feeds carry"), "{printed}");
    let jobs = fs::read_to_string(folder.path().join("out/jobs.csv")).unwrap();
    assert!(jobs.contains("needs more power on its nodes than feed 'pdu 7' carries"), "{jobs}");
}

/// On a machine with partitions, feeds name nodes as the partitions do.
#[test]
fn feeds_of_partitions_name_their_nodes() {
    const MACHINE: &str = "[power]\nnode = '100W'\nidle = '10W'\n[[partition]]\nname = 'cpu'\nnodes = 4\n\
        [[partition]]\nname = 'gpu'\nnodes = 2\npower.node = '900W'\n";
    let folder = tempfile::tempdir().unwrap();
    let with = |feeds: &str| {
        fs::write(folder.path().join("m.toml"), format!("{MACHINE}{feeds}")).unwrap();
        busbar(&["machine", "show", "m.toml"], folder.path())
    };
    let feed = |name: &str, limit: &str, nodes: &str| {
        format!("[[feed]]\nname = '{name}'\nlimit = '{limit}'\nnodes = '{nodes}'\n")
    };
    let shown =
        with(&(feed("a", "60%", "cpu[1-3], gpu[0]") + &feed("b", "none", "gpu[1]"))).unwrap();
    // Three nodes of 100 W and one of 900 W.
    assert!(shown.contains("a: 720.0 W for 4 nodes (40.0 W idle)"), "{shown}");
    for (nodes, said) in [
        ("1-3", "feed 'a': 'nodes' has '1-3', which is no partition with nodes of its own"),
        ("gpus", "did you mean 'gpu'"),
        ("cpu[0-4]", "node 4 ('nodes') is not in partition 'cpu': its 4 nodes are 0-3"),
        ("cpu[0-1", "which has no ']'"),
        ("cpu[0-1] gpu", "write a comma"),
        ("cpu[x]", "write node numbers"),
    ] {
        let why = with(&feed("a", "60%", nodes)).unwrap_err();
        assert!(why.contains(said), "{nodes}: {why}");
    }
    let why = with(&(feed("a", "60%", "cpu") + &feed("b", "50%", "gpu, cpu[2]"))).unwrap_err();
    assert!(why.contains("node cpu[2] is also in feed 'a'"), "{why}");
    with(&feed("a", "60%", "cpu")).unwrap();
    let one = ["simulate", "-m", "m.toml", "--partition", "gpu"];
    let why = busbar(&one, folder.path()).unwrap_err();
    assert!(why.contains("its other partitions draw through them"), "{why}");
}

#[test]
fn what_does_not_know_feeds_says_so() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.toml"), MACHINE).unwrap();
    let start = ["--start", "2026-01-05 00:00 Europe/Berlin"];
    for (words, said) in [
        (
            &["simulate", "-p", "easy", "--switch-off", "idle for 10min, keep 0 spare"][..],
            "machine with feeds",
        ),
        (&["simulate", "-p", "easy", "--enlarge", "10%"], "machine with feeds"),
        (&["simulate", "-p", "pb-guided", "--world", "paper"], "has no feeds"),
    ] {
        let machine = ["-m", "m.toml", "-b", "45kW"];
        let why = busbar(&[words, &machine, &start].concat(), folder.path()).unwrap_err();
        assert!(why.contains(said), "{words:?}: {why}");
    }
    // Rules by the clock need dates.
    let why = busbar(&["simulate", "-m", "m.toml"], folder.path()).unwrap_err();
    assert!(why.contains("--start"), "{why}");
}
