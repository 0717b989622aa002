//! A daemon on a real Slurm with agents: jobs come by `sbatch`, Busbar keeps the cluster within its budget, and daemon,
//! slurmctld and agents are killed meanwhile.
//!
//! With BUSBAR_SLURM=1 the lab is larger and more policies are tried, which takes some minutes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use busbar::live::socket::Client;
use busbar::live::wire::{JobLine, Reply, Request};
use busbar::slurm::cluster::Cluster;
use busbar::slurm::lab::CONTROLLER;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use super::{Running, busbar, text};

fn is_in_full() -> bool {
    std::env::var_os("BUSBAR_SLURM").is_some_and(|value| value == "1")
}

/// A lab with a daemon.
struct Served {
    running: Running,
    nodes: u32,
    daemon: Option<Child>,
}

impl Served {
    fn new(nodes: u32, mode: &str, policy: &str) -> Option<Self> {
        let running = Running::start(&nodes.to_string(), mode, &[])?;
        let path = running.place().join("busbar.toml");
        let config = fs::read_to_string(&path).unwrap();
        let config = config.replace("policy = \"share\"", &format!("policy = \"{policy}\""));
        fs::write(path, config.replace("budget = \"67%\"", "budget = \"70%\"")).unwrap();
        let mut served = Served { running, nodes, daemon: None };
        served.begin();
        Some(served)
    }

    fn begin(&mut self) {
        let log = self.running.place().join("daemon.log");
        let log = File::options().create(true).append(true).open(log).unwrap();
        let daemon = Command::new(env!("CARGO_BIN_EXE_busbar"))
            .args(["serve", "--config"])
            .arg(self.running.place().join("busbar.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.daemon = Some(daemon.unwrap());
    }

    fn kill(&mut self) {
        let mut daemon = self.daemon.take().unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    fn log(&self) -> String {
        fs::read_to_string(self.running.place().join("daemon.log")).unwrap_or_default()
    }

    fn ask(&self, request: &Request) -> Reply {
        let socket = self.running.place().join("busbar.sock");
        self.wait("an answer", || Client::connect(&socket).ok()?.ask(request).ok())
    }

    fn queue(&self) -> Vec<JobLine> {
        match self.ask(&Request::Queue) {
            Reply::Queue(lines) => lines,
            other => panic!("{other:?}"),
        }
    }

    fn wait<T>(&self, what: &str, mut seen: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(seen) = seen() {
                return seen;
            }
            assert!(Instant::now() < deadline, "in vain: {what}\n{}", self.log());
            sleep(Duration::from_millis(50));
        }
    }

    fn tree(&self, node: u32) -> PathBuf {
        self.running.place().join(format!("nodes/n{node}/tree"))
    }

    /// The cap of each node, and what its job would draw, in watts.
    fn nodes(&self) -> Vec<(u64, u64)> {
        let read = |path: PathBuf| -> u64 {
            let text = fs::read_to_string(path).unwrap_or_default();
            text.trim().parse::<u64>().unwrap_or(0) / 1_000_000
        };
        let node = |number: u32| {
            let tree = self.tree(number);
            let zone = |zone: u32| {
                read(tree.join(format!("intel-rapl:{zone}/constraint_0_power_limit_uw")))
            };
            (zone(0) + zone(1), read(tree.join("demand_uw")))
        };
        (1..=self.nodes).map(node).collect()
    }

    /// What all nodes draw, if nothing changed while this was read.
    fn drawn(&self) -> Option<u64> {
        let nodes = self.nodes();
        let draw = |(cap, demand): &(u64, u64)| (*demand).clamp(20, (*cap).max(20));
        (self.nodes() == nodes).then(|| nodes.iter().map(draw).sum())
    }

    /// Submits jobs that write down when they begin and end.
    fn submit(&self, count: u32, numbers: &mut Pcg64Dxsm) -> Vec<u32> {
        let record = self.running.place().join("record");
        let job = |_| {
            let (nodes, tenths) = (numbers.random_range(1..=4), numbers.random_range(2..20));
            let script = format!(
                "echo $SLURM_JOB_ID begins >> {record}; sleep {}.{}; echo $SLURM_JOB_ID ends >> {record}",
                tenths / 10,
                tenths % 10,
                record = record.display()
            );
            self.running.submit(&[&format!("-N{nodes}"), "-t5", "--wrap", &script], None)
        };
        (0..count).map(job).collect()
    }

    /// Asserts that every job ran once, from its beginning to its end.
    fn assert_once(&self, jobs: &[u32]) {
        let record = fs::read_to_string(self.running.place().join("record")).unwrap();
        let mut lines: BTreeMap<&str, u32> = BTreeMap::new();
        record.lines().for_each(|line| *lines.entry(line).or_default() += 1);
        for job in jobs {
            for word in ["begins", "ends"] {
                let line = format!("{job} {word}");
                assert_eq!(lines.get(line.as_str()), Some(&1), "{line}\n{}", self.log());
            }
        }
        assert_eq!(lines.len(), 2 * jobs.len());
    }

    /// Ends a process of the lab, which is then started again. A controller is told to stop, since one that is killed forgets
    /// what happened in the last seconds, and takes minutes to find out what has ended meanwhile.
    fn disturb(&self, name: &str) {
        let members = self.running.lab.members().unwrap();
        let member = members.iter().find(|member| member.name == name).unwrap();
        let pid = member.pid.unwrap().to_string();
        let signal = if name == CONTROLLER { "-15" } else { "-9" };
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let status = PathBuf::from(format!("/proc/{pid}/status"));
        self.wait("a process that is gone", || {
            let status = fs::read_to_string(&status).unwrap_or_default();
            (status.is_empty() || status.contains("State:\tZ")).then_some(())
        });
        let nodes = self.nodes.to_string();
        let mode = if self.log().contains("which starts jobs") { "admit" } else { "steer" };
        let up = busbar(&["lab", "up", "--nodes", &nodes, "--mode", mode], &self.running.place());
        assert!(text(&up).contains("up again"), "{}", text(&up));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Many jobs under a policy: what all nodes draw is within the limit at every look, also after it fell to 60 % and while
/// daemon, slurmctld and an agent were killed; every job runs once.
fn steered(nodes: u32, count: u32, policy: &str) {
    let Some(mut served) = Served::new(nodes, "steer", policy) else { return };
    let mut numbers = Pcg64Dxsm::seed_from_u64(1);
    let jobs = served.submit(count, &mut numbers);
    let full = u64::from(nodes) * 200 * 70 / 100;
    let (mut limit, mut looks, begun) = (full, 0, Instant::now());
    let mut step = 0;
    loop {
        step += 1;
        match step {
            20 => {
                served.ask(&Request::Budget { set: Some(format!("{}W", full * 60 / 100)) });
                // What is to be lowered is lowered within a control period.
                sleep(Duration::from_secs(2));
                limit = full * 60 / 100;
            }
            30 => {
                served.kill();
                served.begin();
            }
            40 => served.disturb(CONTROLLER),
            50 => served.disturb("agent.n2"),
            _ => (),
        }
        if let Some(drawn) = served.drawn() {
            looks += 1;
            assert!(
                drawn <= limit,
                "{drawn} W of {limit} W: {:?}\n{}",
                served.nodes(),
                served.log()
            );
        }
        let record = fs::read_to_string(served.running.place().join("record")).unwrap_or_default();
        if step > 50 && record.lines().filter(|line| line.ends_with("ends")).count() >= jobs.len() {
            break;
        }
        let most = Duration::from_secs(120 + u64::from(count) * 3);
        assert!(begun.elapsed() < most, "{:?}\n{}", served.queue(), served.log());
        sleep(Duration::from_millis(100));
    }
    served.wait("an empty queue", || served.queue().is_empty().then_some(()));
    served.assert_once(&jobs);
    println!(
        "{policy}: {count} jobs on {nodes} nodes in {:.0} s, within the limit at {looks} looks",
        begun.elapsed().as_secs_f64()
    );
    assert!(looks > 20, "{looks}");
}

#[test]
fn share_steers_slurm() {
    match is_in_full() {
        true => ["rmap-adaptive", "pb-guided", "parm", "ppartition", "share"]
            .iter()
            .for_each(|policy| steered(64, 500, policy)),
        false => steered(16, 40, "share"),
    }
}

/// The dry run: what Slurm did, and what each policy would have made of it, with nothing changed on the cluster.
#[test]
fn a_cluster_is_watched() {
    let Some(running) = Running::start("8", "watch", &[]) else { return };
    for number in 0..24 {
        let nodes = format!("-N{}", 1 + number % 3);
        running.submit(&[&nodes, "-t5", "--wrap", "sleep 1.1"], None);
    }
    let watched = Command::new(env!("CARGO_BIN_EXE_busbar"))
        .args(["slurm", "watch", "--budget", "60%", "--for", "20s", "--every", "500ms", "--json"])
        .args(["--policy", "easy-power,share", "--machine"])
        .arg(running.place().join("machine.toml"))
        .arg("--conf")
        .arg(running.place().join("slurm.conf"))
        .output()
        .unwrap();
    assert!(watched.status.success(), "{}", text(&watched));
    let answer: serde_json::Value = serde_json::from_slice(&watched.stdout).unwrap();
    // Slurm may need a moment longer than we watch for the last of them.
    assert!((20..=24).contains(&answer["jobs"].as_u64().unwrap()), "{answer}");
    let happened = &answer["happened"];
    assert!((1..=8).contains(&happened["peak_nodes"].as_u64().unwrap()), "{answer}");
    let policies: Vec<&str> = answer["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["policy"].as_str().unwrap())
        .collect();
    assert_eq!(policies.len(), 2, "{answer}");
    assert!(policies.contains(&"share") && policies.contains(&"easy-power"), "{answer}");
    running.down();
}

/// The same comparison here and as a job array: the same files, byte for byte.
#[test]
fn a_sweep_on_slurm_gives_the_same_bytes() {
    let Some(running) = Running::start("4", "watch", &[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let compare = |name: &str, more: &[&str]| {
        let made = Command::new(env!("CARGO_BIN_EXE_busbar"))
            .args(["compare", "--policy", "easy,easy-power", "--budget", "60%,80%", "--seeds", "2"])
            .args(["--brief", "--workload", "lublin(jobs=200)", "--machine", "64"])
            .args(["--out", &format!("out-{name}"), "--cache", &format!("cache-{name}")])
            .args(more)
            .env("SLURM_CONF", running.place().join("slurm.conf"))
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", text(&made));
        text(&made)
    };
    compare("here", &[]);
    let said = compare("there", &["--slurm", "--tasks", "3"]);
    assert!(said.contains("makes the runs on Slurm"), "{said}");
    assert!(!said.contains("failed"), "{said}");
    for file in ["results.csv", "report.html", "experiment.toml"] {
        let read = |name: &str| fs::read(folder.path().join(format!("out-{name}/{file}"))).unwrap();
        assert!(read("here") == read("there"), "{file}");
    }
    // All of them were made there: two policies under two budgets, twice.
    let again = compare("there", &["--json"]);
    assert!(again.contains("\"reused\": 8"), "{again}");
    running.down();
}

/// Slurm starts jobs by itself, with as many licences as watts: the budget is moved by a reservation, caps follow, and no
/// job is queued again.
#[test]
fn slurm_admits_within_a_budget_that_falls() {
    let nodes = if is_in_full() { 64 } else { 16 };
    let Some(mut served) = Served::new(nodes, "admit", "easy-power") else { return };
    let full = u64::from(nodes) * 200 * 70 / 100;
    // The reservation is there before the first job is.
    let licence = |served: &Served| {
        let licences = served.running.cluster.licences().unwrap();
        licences.into_iter().find(|licence| licence.name == "power").unwrap()
    };
    served.wait("a reservation", || (licence(&served).reserved > 0).then_some(()));
    let mut numbers = Pcg64Dxsm::seed_from_u64(2);
    let jobs = served.submit(if is_in_full() { 500 } else { 40 }, &mut numbers);
    let (mut limit, begun, mut step) = (full, Instant::now(), 0);
    loop {
        step += 1;
        if step == 10 {
            served.ask(&Request::Budget { set: Some(format!("{}W", full * 60 / 100)) });
            sleep(Duration::from_secs(4));
            limit = full * 60 / 100;
        }
        if step == 20 {
            served.kill();
            served.begin();
        }
        if let Some(drawn) = served.drawn() {
            assert!(
                drawn <= limit,
                "{drawn} W of {limit} W: {:?}\n{}",
                served.nodes(),
                served.log()
            );
        }
        let record = fs::read_to_string(served.running.place().join("record")).unwrap_or_default();
        if step > 20 && record.lines().filter(|line| line.ends_with("ends")).count() >= jobs.len() {
            break;
        }
        let most = Duration::from_secs(120 + jobs.len() as u64 * 3);
        assert!(begun.elapsed() < most, "{}", served.log());
        sleep(Duration::from_millis(100));
    }
    served.assert_once(&jobs);
    let all = served.running.cluster.jobs().unwrap();
    assert!(all.iter().all(|job| job.restarts == 0), "no job is queued again for lack of power");
}
