//! A made-up site whose jobs share nodes: three kinds of nodes, partitions that overlap, GPUs. Its records are made here
//! with what is true of them: what happened is known to the second and the joule, because nothing is left to chance
//! after the jobs were placed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Output};

use busbar::policy::PolicySpec;
use serde_json::Value;
use tempfile::TempDir;

use crate::plain::kinds::{Asked, PlainKind, PlainPartition, starts};

/// Nodes that are alike.
struct Pool {
    name: char,
    nodes: usize,
    processors: u32,
    gpus: u32,
    /// What a node draws, in watts: idle, and what each processor in use adds.
    idle: u64,
    added: u64,
    /// All its nodes are in each of them.
    partitions: &'static [&'static str],
    jobs: usize,
}

const POOLS: [Pool; 3] = [
    Pool {
        name: 'c',
        nodes: 100,
        processors: 64,
        gpus: 0,
        idle: 100,
        added: 5,
        partitions: &["short", "long"],
        jobs: 13_000,
    },
    Pool {
        name: 'f',
        nodes: 20,
        processors: 128,
        gpus: 0,
        idle: 160,
        added: 3,
        partitions: &["fat"],
        jobs: 4_000,
    },
    Pool {
        name: 'g',
        nodes: 10,
        processors: 64,
        gpus: 4,
        idle: 300,
        added: 20,
        partitions: &["gpu"],
        jobs: 3_000,
    },
];

impl Pool {
    fn busy(&self) -> u64 {
        self.idle + self.added * u64::from(self.processors)
    }

    fn host(&self, node: usize) -> String {
        format!("{}{:03}", self.name, node + 1)
    }
}

/// What is true of the jobs of a pool.
#[derive(Debug, Default)]
struct Truth {
    jobs: u64,
    on_parts: u64,
    wait: u64,
    begin: u64,
    end: u64,
    /// Joules that jobs added to the idle power of nodes.
    added: u64,
    /// Seconds in which a node had a job, of all nodes.
    busy: u64,
    /// Processors times seconds.
    processor_time: u64,
    /// The largest power of a job on each of its nodes, of those that were measured.
    floor: u64,
}

/// A job, as its record has it.
#[derive(Clone, Copy)]
struct Line {
    number: u64,
    submit: u64,
    wait: u64,
    partition: &'static str,
    count: usize,
    processors: u64,
    gpus: u32,
    time: u64,
    limit: u64,
}

/// Numbers that look like chance, and are the same everywhere.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A node while jobs are placed.
#[derive(Clone, Default)]
struct Node {
    /// Who is there until when, with so many processors.
    jobs: Vec<(u64, u32)>,
    busy_until: u64,
}

/// Noon on 5 January 2026.
const NOON: u64 = 1_767_614_400;

/// Places the jobs of a pool one after another, and writes their records.
fn place(
    pool: &Pool,
    number: &mut usize,
    records: &mut Vec<(u64, String)>,
    asked: &mut Vec<Line>,
) -> Truth {
    let mut chance = Chance(pool.nodes as u64);
    let mut truth = Truth { begin: u64::MAX, ..Truth::default() };
    let mut nodes = vec![Node::default(); pool.nodes];
    let mut now = NOON;
    for _ in 0..pool.jobs {
        now += chance.below(60);
        // Two of three jobs take a part of one node.
        let is_part = chance.below(3) > 0;
        let (count, held) = match is_part {
            true => (1, [1, 4, 8, 16][chance.below(4) as usize]),
            false => ([1, 1, 2, 3][chance.below(4) as usize], pool.processors),
        };
        let chosen = loop {
            for node in &mut nodes {
                node.jobs.retain(|(end, _)| *end > now);
            }
            let used = |node: &Node| node.jobs.iter().map(|(_, held)| held).sum::<u32>();
            let free = (0..pool.nodes).filter(|node| used(&nodes[*node]) + held <= pool.processors);
            let chosen: Vec<usize> = free.take(count).collect();
            if chosen.len() == count {
                break chosen;
            }
            now = nodes.iter().flat_map(|node| &node.jobs).map(|(end, _)| *end).min().unwrap();
        };
        let (wait, time) = (chance.below(540), 60 + chance.below(7200));
        let (submit, end) = (now - wait, now + time);
        for node in &chosen {
            let node = &mut nodes[*node];
            node.jobs.push((end, held));
            truth.busy += end.saturating_sub(now.max(node.busy_until));
            node.busy_until = node.busy_until.max(end);
        }
        let processors = u64::from(held) * count as u64;
        // Every other job on whole nodes was measured. What was measured on shared nodes is not the job's alone.
        let whole_power = pool.idle + 1 + chance.below(pool.busy() - pool.idle);
        let is_measured = chance.below(2) == 0;
        let added = match is_measured && !is_part {
            true => {
                truth.floor = truth.floor.max(whole_power);
                (whole_power - pool.idle) * count as u64
            }
            false => pool.added * processors,
        };
        let energy = if is_measured {
            (whole_power * count as u64 * time).to_string()
        } else {
            String::new()
        };
        truth.jobs += 1;
        truth.on_parts += u64::from(is_part);
        truth.wait += wait;
        truth.begin = truth.begin.min(submit);
        truth.end = truth.end.max(end);
        truth.added += added * time;
        truth.processor_time += processors * time;
        let hosts = match &chosen[..] {
            [only] => pool.host(*only),
            several => {
                let numbers: Vec<String> =
                    several.iter().map(|node| pool.host(*node)[1..].to_owned()).collect();
                format!("{}[{}]", pool.name, numbers.join(","))
            }
        };
        // A job has as many of the GPUs as of the processors, rounded down.
        let gpus = count as u32 * (held * pool.gpus / pool.processors);
        let partition = pool.partitions[chance.below(pool.partitions.len() as u64) as usize];
        let user = chance.below(20);
        *number += 1;
        let limit = time + chance.below(7200);
        asked.push(Line {
            number: *number as u64,
            submit,
            wait,
            partition,
            count,
            processors,
            gpus,
            time,
            limit,
        });
        let (hours, minutes, seconds) = (limit / 3600, limit / 60 % 60, limit % 60);
        let gpus = if gpus > 0 { format!(",gres/gpu={gpus}") } else { String::new() };
        let line = format!(
            "{number}|u{user}|{partition}|COMPLETED|{submit}|{now}|{end}|{hours:02}:{minutes:02}:{seconds:02}|{count}|{processors}|\
             cpu={processors},mem={processors}G,node={count}{gpus}|{hosts}||{energy}|job"
        );
        records.push((submit, line));
    }
    truth
}

/// The site in a folder, with what is true of each pool, and all jobs in the order of their records.
fn site() -> (TempDir, Vec<Truth>, Vec<Line>) {
    let folder = tempfile::tempdir().unwrap();
    let (mut records, mut number, mut asked) = (Vec::new(), 0, Vec::new());
    let truths: Vec<Truth> =
        POOLS.iter().map(|pool| place(pool, &mut number, &mut records, &mut asked)).collect();
    records.sort();
    // Of jobs of the same second, those that started first come first.
    asked.sort_by_key(|line| (line.submit, line.wait, line.number));
    let heading = "JobID|User|Partition|State|Submit|Start|End|Timelimit|NNodes|AllocCPUS|AllocTRES|NodeList|Reservation|\
                   ConsumedEnergyRaw|JobName";
    let lines: Vec<&str> = records.iter().map(|(_, line)| line.as_str()).collect();
    fs::write(folder.path().join("records.txt"), format!("{heading}\n{}\n", lines.join("\n")))
        .unwrap();
    let (mut nodes, mut partitions) = (String::new(), BTreeMap::new());
    for pool in &POOLS {
        let gres = if pool.gpus > 0 {
            format!("gpu:a100:{}(S:0-1)", pool.gpus)
        } else {
            "(null)".to_owned()
        };
        let names = pool.partitions.join(",");
        for node in 0..pool.nodes {
            let (host, processors) = (pool.host(node), pool.processors);
            writeln!(
                nodes,
                "NodeName={host} CPUAlloc=0 CPUTot={processors} AvailableFeatures=(null) Gres={gres} OS=Linux 5.15 #1 SMP \
                 RealMemory={} Sockets=2 Boards=1 State=IDLE ThreadsPerCore=1 Partitions={names}",
                processors * 4000
            )
            .unwrap();
        }
        for name in pool.partitions {
            partitions.insert(
                *name,
                format!("Nodes={}[001-{:03}] TotalNodes={}", pool.name, pool.nodes, pool.nodes),
            );
        }
    }
    let partitions: Vec<String> =
        partitions.iter().map(|(name, rest)| format!("PartitionName={name} {rest}")).collect();
    fs::write(folder.path().join("nodes.txt"), nodes).unwrap();
    fs::write(folder.path().join("partitions.txt"), partitions.join("\n") + "\n").unwrap();
    (folder, truths, asked)
}

fn busbar(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
    command.args(arguments).current_dir(folder).env("XDG_CACHE_HOME", folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn said(arguments: &[&str], folder: &Path) -> String {
    String::from_utf8(busbar(arguments, folder).stdout).unwrap()
}

/// The description of the site becomes a machine file, and with what its nodes draw, what happened is what the records
/// say: the waits, the energy and the use of each kind of nodes. None of it could be simulated on whole nodes.
#[test]
fn what_happened_on_shared_nodes_is_what_the_records_say() {
    let (folder, truths, _) = site();
    let folder = folder.path();
    assert_eq!(truths.iter().map(|truth| truth.jobs).sum::<u64>(), 20_000);
    let on_parts: u64 = truths.iter().map(|truth| truth.on_parts).sum();
    assert!((13_000..13_700).contains(&on_parts), "two of three: {on_parts}");
    for (pool, truth) in POOLS.iter().zip(&truths) {
        let partitions = pool.partitions.join(",");
        let import = [
            "machine",
            "import",
            "--slurm",
            "nodes.txt",
            "partitions.txt",
            "--partition",
            &partitions,
            "--records",
            "records.txt",
        ];
        let text = said(&import, folder);
        assert!(text.contains(&format!("power.node = \"{}W\"", truth.floor)), "{text}");
        // What caps can reach is a milliwatt, so that every application draws what the node does.
        let answers = format!(
            "power.node = \"{}W\"\npower.idle = \"{}W\"\npower.rest = \"{}.999W\"\ncaps.levels = [\"0.001W\"]\n\
             parts.spread = \"0%\"\n",
            pool.busy(),
            pool.idle,
            pool.busy() - 1
        );
        // As if each job had whole nodes, so that simulations say that it is not so.
        let is_said = |line: &&str| !line.starts_with("power") && !line.starts_with("shared");
        let known: Vec<&str> = text.lines().filter(is_said).collect();
        // The partitions may be tables, each with its own nodes.
        let (head, tables) = match known.iter().position(|line| *line == "[[partition]]") {
            Some(place) => known.split_at(place),
            None => (&known[..], &[][..]),
        };
        let machine = format!("{}\n{answers}{}\n", head.join("\n"), tables.join("\n"));
        fs::write(folder.join("machine.toml"), machine).unwrap();
        busbar(&["machine", "check", "machine.toml"], folder);
        let whatif = [
            "whatif",
            "records.txt",
            "--machine",
            "machine.toml",
            "--partition",
            &partitions,
            "--budget",
            "100%",
            "--policy",
            "easy",
            "--no-cache",
            "--json",
        ];
        let answer: Value = serde_json::from_str(&said(&whatif, folder)).unwrap();
        let recorded = &answer["rows"][0];
        assert_eq!(recorded["what"], "as recorded");
        let makespan = truth.end - truth.begin;
        let energy = truth.added + pool.idle * pool.nodes as u64 * makespan;
        let running = truth.added + pool.idle * truth.busy;
        let processors = u64::from(pool.processors) * pool.nodes as u64;
        let exact = [
            ("jobs", truth.jobs as f64),
            ("completed", truth.jobs as f64),
            ("mean_wait_s", truth.wait as f64 * 1000.0 / truth.jobs as f64 / 1000.0),
            ("makespan_s", makespan as f64),
            ("energy_j", energy as f64),
            (
                "utilisation",
                (truth.processor_time * 1000) as f64 / (processors * makespan * 1000) as f64,
            ),
        ];
        for (key, expected) in exact {
            assert_eq!(recorded[key].as_f64(), Some(expected), "{partitions}: {key}");
        }
        let states = &recorded["energy_by_state"];
        assert_eq!(states["running_j"].as_f64(), Some(running as f64), "{states}");
        assert_eq!(states["idle_j"].as_f64(), Some((energy - running) as f64), "{states}");
        assert_eq!(answer["jobs_on_parts_of_nodes"], truth.on_parts);
        assert_eq!(answer["records"]["with_node_names"], 20_000);
        let lead = answer["lead"].as_str().unwrap();
        assert!(lead.contains("of the jobs ran on parts of nodes"), "{lead}");
    }
}

/// All of the site in one machine file: partitions that overlap become kinds of nodes.
#[test]
fn a_site_becomes_a_machine_file() {
    let (folder, truths, _) = site();
    let folder = folder.path();
    let import =
        ["machine", "import", "--slurm", "partitions.txt", "nodes.txt", "--out", "site.toml"];
    let done = said(&import, folder);
    assert!(done.starts_with("site.toml: 130 nodes of 3 kinds;"), "{done}");
    let text = fs::read_to_string(folder.join("site.toml")).unwrap();
    for line in [
        "name = \"cpu\"\nnodes = 100  # c[001-100]\nprocessors_per_node = 64",
        "# Each node has 256000 MiB of memory.\n# Partitions of Slurm: long, short.",
        "memory = \"256000MiB\"\nshared = true  #",
        "name = \"fat\"\nnodes = 20  # f[001-020]\nprocessors_per_node = 128",
        "name = \"gpu\"\nnodes = 10  # g[001-010]",
        "# Each node has 256000 MiB of memory, 4 GPUs of type a100.",
        "# ? power.gpus = 4\n",
        "memory = \"256000MiB\"\ngpus = 4\nshared = true  #",
        "[[partition]]\nname = \"short\"\nof = [\"cpu\"]\nshared = true",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let shown = said(&["machine", "check", "site.toml"], folder);
    assert!(shown.contains("130 nodes in the partitions cpu, fat, gpu, long, short"), "{shown}");
    let with_floor = said(&[&import[..5], &["--records", "records.txt"]].concat(), folder);
    for truth in &truths {
        assert!(
            with_floor.contains(&format!("\npower.node = \"{}W\"\n", truth.floor)),
            "{with_floor}"
        );
    }
}

/// The machine file of the whole site, with what its nodes draw and so many per cent of them; says how many these are.
fn whole_site(folder: &Path, percent: usize) -> Vec<usize> {
    let import = ["machine", "import", "--slurm", "partitions.txt", "nodes.txt"];
    let text = said(&import, folder);
    let mut machine: String = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .fold(String::new(), |text, line| text + line + "\n");
    let mut counts = Vec::new();
    for (pool, name) in POOLS.iter().zip(["cpu", "fat", "gpu"]) {
        let count = pool.nodes * percent / 100;
        let from = format!("name = \"{name}\"\nnodes = {}", pool.nodes);
        assert!(machine.contains(&from), "{machine}");
        // What caps can reach is a milliwatt, so that every application draws what the node does.
        let to = format!(
            "name = \"{name}\"\npower.node = \"{}W\"\npower.idle = \"{}W\"\npower.rest = \"{}.999W\"\n\
             caps.levels = [\"0.001W\"]\nnodes = {count}",
            pool.busy(),
            pool.idle,
            pool.busy() - 1
        );
        machine = machine.replace(&from, &to);
        counts.push(count);
    }
    fs::write(folder.join("site.toml"), machine).unwrap();
    busbar(&["machine", "check", "site.toml"], folder);
    counts
}

/// All of the site together: what happened is what the records say, and nothing is said about whole nodes.
#[test]
fn what_happened_on_the_whole_site_is_what_the_records_say() {
    let (folder, truths, _) = site();
    let folder = folder.path();
    whole_site(folder, 100);
    let whatif = [
        "whatif",
        "records.txt",
        "--machine",
        "site.toml",
        "--budget",
        "100%",
        "--policy",
        "easy",
        "--no-cache",
        "--json",
    ];
    let answer: Value = serde_json::from_str(&said(&whatif, folder)).unwrap();
    let recorded = &answer["rows"][0];
    let sum = |of: fn(&Truth) -> u64| truths.iter().map(of).sum::<u64>();
    let begin = truths.iter().map(|truth| truth.begin).min().unwrap();
    let makespan = truths.iter().map(|truth| truth.end).max().unwrap() - begin;
    let pools = || POOLS.iter().map(|pool| pool.nodes as u64);
    let idle: u64 = POOLS.iter().zip(pools()).map(|(pool, nodes)| pool.idle * nodes).sum();
    let processors: u64 =
        POOLS.iter().zip(pools()).map(|(pool, nodes)| u64::from(pool.processors) * nodes).sum();
    let (jobs, energy) = (sum(|truth| truth.jobs), sum(|truth| truth.added) + idle * makespan);
    let exact = [
        ("jobs", jobs as f64),
        ("mean_wait_s", sum(|truth| truth.wait) as f64 * 1000.0 / jobs as f64 / 1000.0),
        ("makespan_s", makespan as f64),
        ("energy_j", energy as f64),
        (
            "utilisation",
            (sum(|truth| truth.processor_time) * 1000) as f64
                / (processors * makespan * 1000) as f64,
        ),
    ];
    for (key, expected) in exact {
        assert_eq!(recorded[key].as_f64(), Some(expected), "{key}");
    }
    let running: u64 =
        truths.iter().zip(&POOLS).map(|(truth, pool)| truth.added + pool.idle * truth.busy).sum();
    let states = &recorded["energy_by_state"];
    assert_eq!(states["running_j"].as_f64(), Some(running as f64), "{states}");
    assert_eq!(answer["jobs_on_parts_of_nodes"], sum(|truth| truth.on_parts));
    let lead = answer["lead"].as_str().unwrap();
    assert!(!lead.contains("whole nodes"), "{lead}");
    // The same jobs, on the same nodes, by another rule: hardly anybody has to wait.
    let free = &answer["rows"][1];
    assert_eq!(free["jobs"], 20_000);
    assert!(free["mean_wait_s"].as_f64().unwrap() < 600.0, "{free}");
}

/// A row of a table that the program wrote: its cells by their headings.
fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let headings: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| {
        let (cells, nodes) = match line.split_once('"') {
            Some((cells, nodes)) => (cells, nodes.trim_end_matches('"')),
            None => (line, ""),
        };
        let mut cells: Vec<&str> = cells.split(',').collect();
        if !nodes.is_empty() {
            cells.pop();
            cells.push(nodes);
        }
        headings
            .iter()
            .zip(cells)
            .map(|(name, cell)| ((*name).to_owned(), cell.to_owned()))
            .collect()
    };
    lines.map(row).collect()
}

/// Seven of ten nodes for all 20 000 jobs, under a limit below what these can draw: a plain loop starts the same jobs at
/// the same times.
#[test]
fn easy_on_the_whole_site_starts_whom_a_plain_loop_starts() {
    let (folder, _, asked) = site();
    let folder = folder.path();
    let counts = whole_site(folder, 70);
    let idle: u64 = POOLS.iter().zip(&counts).map(|(pool, count)| pool.idle * *count as u64).sum();
    let added: u64 = POOLS
        .iter()
        .zip(&counts)
        .map(|(pool, count)| (pool.busy() - pool.idle) * *count as u64)
        .sum();
    let budget = idle + added * 8 / 10;
    let budget_text = format!("{budget}W");
    busbar(
        &[
            "simulate",
            "records.txt",
            "--machine",
            "site.toml",
            "--budget",
            &budget_text,
            "--believe",
            "rated",
            "--out",
            "out",
        ],
        folder,
    );
    let kinds: Vec<PlainKind> = POOLS
        .iter()
        .zip(&counts)
        .map(|(pool, count)| PlainKind {
            nodes: *count,
            size: [pool.processors, pool.processors * 4000, pool.gpus],
            each: pool.added * 1000,
        })
        .collect();
    let partitions: Vec<PlainPartition> =
        (0..POOLS.len()).map(|kind| PlainPartition { kinds: vec![kind], shared: true }).collect();
    let first = asked[0].submit;
    let plain: Vec<Asked> = asked
        .iter()
        .map(|line| Asked {
            submit: line.submit - first,
            partition: POOLS
                .iter()
                .position(|pool| pool.partitions.contains(&line.partition))
                .unwrap(),
            processors: line.processors as u32,
            nodes: line.count as u32,
            memory: line.processors * 1024,
            gpus: line.gpus,
            run: line.time,
            limit: line.limit,
        })
        .collect();
    let expected = starts(&kinds, &partitions, &[], &plain, (budget - idle) * 1000);
    let jobs = rows(&folder.join("out/jobs.csv"));
    assert_eq!(jobs.len(), expected.len());
    let mut waited = 0;
    for (line, (job, expected)) in asked.iter().zip(jobs.iter().zip(&expected)) {
        assert_eq!(job["id"], line.number.to_string());
        assert_eq!(job["start"].parse().ok(), *expected, "job {}", line.number);
        waited += u64::from(*expected != Some(line.submit - first));
    }
    assert!(waited > 5_000, "only {waited} jobs had to wait");
}

/// Feeds of seven tenths of the site, as its machine file has them, and all nodes below each.
const FEEDS: &str = "[[feed]]\nname = 'hall'\nlimit = '22kW'\n\
    [[feed]]\nname = 'row 1'\nparent = 'hall'\nlimit = '45%'\nnodes = 'cpu[0-34]'\n\
    [[feed]]\nname = 'row 2'\nparent = 'hall'\nlimit = '70%'\nnodes = 'cpu[35-69], fat'\n\
    [[feed]]\nname = 'gpus'\nlimit = '40%'\nnodes = 'gpu'\n";
const BELOW: [(&str, Range<usize>); 4] =
    [("hall", 0..84), ("row 1", 0..35), ("row 2", 35..84), ("gpus", 84..91)];

/// What jobs hold, added up again from the files of all policies: no node has more than it has, the machine draws no more than the
/// budget, and no feed more than its limit. The energies of jobs are what busy nodes drew.
#[test]
fn what_jobs_hold_fits_onto_the_nodes_of_the_site() {
    let (folder, _, asked) = site();
    let folder = folder.path();
    let counts = whole_site(folder, 70);
    let all: Vec<&Pool> =
        POOLS.iter().zip(&counts).flat_map(|(pool, count)| vec![pool; *count]).collect();
    // From here on caps matter, and what applications draw.
    let machine = fs::read_to_string(folder.join("site.toml")).unwrap();
    let is_kept = |line: &&str| !line.starts_with("power.rest") && !line.starts_with("caps.levels");
    let machine: Vec<&str> = machine.lines().filter(is_kept).collect();
    let machine = machine.join("\n") + "\n";
    for feeds in [false, true] {
        let (text, feeds) = if feeds { (FEEDS, &BELOW[..]) } else { ("", &[][..]) };
        fs::write(folder.join("site.toml"), format!("{machine}{text}")).unwrap();
        busbar(&["machine", "check", "site.toml"], folder);
        for policy in PolicySpec::all().iter().map(PolicySpec::to_string).chain(
            ["share(use=caps)", "share(use=sizes)", "share(use=recaps)", "share(use=resizes)"]
                .map(str::to_owned),
        ) {
            // The one needs its program, the other knows no feeds.
            let is_left_out =
                policy.starts_with("external") || (policy == "slurm" && !feeds.is_empty());
            if !is_left_out {
                adds_up(folder, &asked, &all, &policy, feeds);
            }
        }
    }
}

/// What begins or ends on nodes at an instant: processors and GPUs of each, and milliwatts of all.
struct Change {
    nodes: Vec<usize>,
    processors: i64,
    gpus: i64,
    power: i64,
}

/// Simulates the first jobs under a policy, and adds up what its files say of nodes and feeds.
fn adds_up(
    folder: &Path,
    asked: &[Line],
    all: &[&Pool],
    policy: &str,
    feeds: &[(&str, Range<usize>)],
) {
    let line_of: BTreeMap<String, Line> =
        asked.iter().map(|line| (line.number.to_string(), *line)).collect();
    let arguments = ["simulate", "records.txt", "--machine", "site.toml", "--budget", "60%"];
    let more = ["--believe", "exact", "--allow", "all", "--jobs", "..1000", "--policy", policy];
    let out = folder.join("out");
    _ = fs::remove_dir_all(&out);
    busbar(&[&arguments[..], &more, &["--out", "out"]].concat(), folder);
    let summary: Value =
        serde_json::from_str(&fs::read_to_string(out.join("summary.json")).unwrap()).unwrap();
    let budget = summary["budget_w"].as_f64().unwrap() * 1000.0;
    assert_eq!(summary["violations"], 0, "{policy}");
    let table = rows(&out.join("jobs.csv"));
    let energies: f64 =
        table.iter().filter_map(|row| row["energy_total"].parse::<f64>().ok()).sum();
    let running = summary["energy_by_state"]["running_j"].as_f64().unwrap();
    // Each is rounded to a thousandth.
    assert!((energies - running).abs() < 1.0, "{policy}: {energies} J of {running} J");
    let jobs: BTreeMap<String, BTreeMap<String, String>> =
        table.into_iter().map(|row| (row["id"].clone(), row)).collect();
    let millis = |cell: &str| (cell.parse::<f64>().unwrap() * 1000.0).round() as i64;
    // By job: when it got a setting, and its power from then on.
    let mut settings: BTreeMap<String, Vec<(i64, i64)>> = BTreeMap::new();
    if out.join("changes.csv").exists() {
        for row in rows(&out.join("changes.csv")) {
            let setting = (millis(&row["time"]), millis(&row["power"]));
            settings.entry(row["job"].clone()).or_default().push(setting);
        }
    }
    let mut changes: BTreeMap<i64, Vec<Change>> = BTreeMap::new();
    let mut ran = 0;
    for row in rows(&out.join("nodes.csv")) {
        let (job, line) = (&jobs[&row["job"]], &line_of[&row["job"]]);
        let nodes: Vec<usize> = row["nodes"]
            .split(',')
            .flat_map(|stretch| {
                let (first, last) = stretch.split_once('-').unwrap_or((stretch, stretch));
                first.parse::<usize>().unwrap()..=last.parse().unwrap()
            })
            .collect();
        assert_eq!(nodes.len(), line.count, "{policy}: {row:?}");
        let processors = (line.processors / line.count as u64) as i64;
        let gpus = i64::from(line.gpus) / line.count as i64;
        let (start, end, power) =
            (millis(&job["start"]), millis(&job["end"]), millis(&job["power"]));
        let settings = settings.remove(&row["job"]).unwrap_or(vec![(start, power)]);
        let mut change = |at: i64, sign: i64, power: i64| {
            let (processors, gpus) = (sign * processors, sign * gpus);
            changes.entry(at).or_default().push(Change {
                nodes: nodes.clone(),
                processors,
                gpus,
                power,
            });
        };
        assert_eq!(settings[0].0, start, "{policy}: {row:?}");
        change(start, 1, settings[0].1);
        settings.windows(2).for_each(|pair| change(pair[1].0, 0, pair[1].1 - pair[0].1));
        change(end, -1, -settings[settings.len() - 1].1);
        ran += 1;
    }
    // Some give up jobs that are worth too little by the time that there is power for them.
    assert!(ran > 900 || policy.starts_with("utility") && ran > 500, "{policy}: {ran}");
    let limits: Vec<f64> = feeds.iter().map(|(name, _)| feed_limit(&summary, name)).collect();
    let idle_of = |nodes: &[&Pool]| nodes.iter().map(|pool| pool.idle * 1000).sum::<u64>() as f64;
    let (mut held, mut drawn) = (vec![(0i64, 0i64); all.len()], idle_of(all));
    let mut of_nodes: Vec<f64> = all.iter().map(|pool| (pool.idle * 1000) as f64).collect();
    for (at, changes) in changes {
        for Change { nodes, processors, gpus, power } in &changes {
            for node in nodes {
                held[*node] = (held[*node].0 + processors, held[*node].1 + gpus);
                of_nodes[*node] += *power as f64 / nodes.len() as f64;
            }
            drawn += *power as f64;
        }
        for node in changes.iter().flat_map(|change| &change.nodes) {
            let (pool, (processors, gpus)) = (all[*node], held[*node]);
            assert!(processors <= i64::from(pool.processors), "{policy}: node {node} at {at}");
            assert!(gpus <= i64::from(pool.gpus), "{policy}: node {node} at {at}");
            let most = (pool.busy() * 1000) as f64 + 100.0;
            assert!(of_nodes[*node] <= most, "{policy}: node {node} at {at}");
        }
        assert!(drawn <= budget + 0.5, "{policy}: {drawn} of {budget} mW at {at}");
        for ((name, nodes), limit) in feeds.iter().zip(&limits) {
            let below: f64 = of_nodes[nodes.clone()].iter().sum();
            assert!(below <= limit + 0.5, "{policy}: {name} has {below} mW of {limit} at {at}");
        }
    }
    assert_eq!(summary["over_budget_s"], 0.0, "{policy}");
    // The limits are not so high that nobody is kept back by them.
    let bound = |feed: &Value| feed["bound_s"].as_f64().unwrap() > 0.0;
    let of_feeds = summary["feeds"].as_array().into_iter().flatten();
    assert_eq!(of_feeds.filter(|feed| bound(feed)).count() > 0, !feeds.is_empty(), "{policy}");
}

/// The limit of a feed in milliwatts, as the summary has it.
fn feed_limit(summary: &Value, name: &str) -> f64 {
    let feeds = summary["feeds"].as_array().unwrap();
    let feed = feeds.iter().find(|feed| feed["name"] == name).unwrap();
    feed["limit_w"].as_f64().unwrap() * 1000.0
}
