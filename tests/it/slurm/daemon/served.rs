//! A daemon on a lab, and a client that looks at both.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use busbar::live::job::JobRequest;
use busbar::live::socket::Client;
use busbar::live::wire::{HistoryLine, JobLine, Reply, Request, Status};
use busbar::slurm::lab::CONTROLLER;
use busbar::units::{self, Span};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use crate::live_order::workload::Planned;
use crate::slurm::{Running, busbar, text};

/// Short jobs on one to four nodes, the same for the same seed.
pub(super) fn jobs(count: u32, seed: u64) -> Vec<Planned> {
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed);
    let job = |_| Planned {
        submit: units::Instant::ZERO,
        request: JobRequest {
            name: "wrap".to_owned(),
            nodes: numbers.random_range(1..=4),
            moldable: None,
            time: Span::from_secs(300),
            application: None,
            slowdown: None,
            after: Vec::new(),
            held: false,
        },
        run_time: Span::from_millis(100 * numbers.random_range(2..20)),
    };
    (0..count).map(job).collect()
}

/// A lab with a daemon.
pub(super) struct Served {
    pub(super) running: Running,
    pub(super) nodes: u32,
    mode: &'static str,
    daemon: Option<Child>,
}

impl Served {
    /// A lab with agents, a daemon under 70 % of the power, and what else is asked for.
    pub(super) fn new(nodes: u32, mode: &'static str, policy: &str) -> Option<Self> {
        let mut served = Served::idle(nodes, mode, policy, &[])?;
        served.begin();
        Some(served)
    }

    /// The same with extras of the lab, and with a daemon that does not run yet.
    pub(super) fn idle(
        nodes: u32,
        mode: &'static str,
        policy: &str,
        extras: &[&str],
    ) -> Option<Self> {
        let running = Running::start(&nodes.to_string(), mode, extras)?;
        let served = Served { running, nodes, mode, daemon: None };
        served.configure("policy = \"share\"", &format!("policy = \"{policy}\""));
        served.configure("budget = \"67%\"", "budget = \"70%\"");
        Some(served)
    }

    pub(super) fn config(&self) -> PathBuf {
        self.running.place().join("busbar.toml")
    }

    /// Changes the daemon's configuration.
    pub(super) fn configure(&self, before: &str, after: &str) {
        let config = fs::read_to_string(self.config()).unwrap();
        assert!(config.contains(before), "{before}: {config}");
        fs::write(self.config(), config.replace(before, after)).unwrap();
    }

    pub(super) fn begin(&mut self) {
        let log = self.running.place().join("daemon.log");
        let log = File::options().create(true).append(true).open(log).unwrap();
        let daemon = Command::new(env!("CARGO_BIN_EXE_busbar"))
            .args(["serve", "--config"])
            .arg(self.config())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.daemon = Some(daemon.unwrap());
    }

    pub(super) fn kill(&mut self) {
        let mut daemon = self.daemon.take().unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// Lets the daemon read its configuration again.
    pub(super) fn reload(&self) {
        let pid = self.daemon.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-1", &pid]).status().unwrap().success());
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.running.place().join("daemon.log")).unwrap_or_default()
    }

    pub(super) fn ask(&self, request: &Request) -> Reply {
        let socket = self.running.place().join("busbar.sock");
        self.wait("an answer", || Client::connect(&socket).ok()?.ask(request).ok())
    }

    pub(super) fn queue(&self) -> Vec<JobLine> {
        match self.ask(&Request::Queue) {
            Reply::Queue(lines) => lines,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn wait<T>(&self, what: &str, seen: impl FnMut() -> Option<T>) -> T {
        self.wait_for(Duration::from_secs(60), what, seen)
    }

    pub(super) fn wait_for<T>(
        &self,
        patience: Duration,
        what: &str,
        mut seen: impl FnMut() -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + patience;
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
    pub(super) fn nodes(&self) -> Vec<(u64, u64)> {
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
    pub(super) fn drawn(&self) -> Option<u64> {
        let nodes = self.nodes();
        let draw = |(cap, demand): &(u64, u64)| (*demand).clamp(20, (*cap).max(20));
        (self.nodes() == nodes).then(|| nodes.iter().map(draw).sum())
    }

    pub(super) fn status(&self) -> Status {
        match self.ask(&Request::Status) {
            Reply::Status(status) => *status,
            other => panic!("{other:?}"),
        }
    }

    /// All that the daemon has written down.
    pub(super) fn history(&self) -> Vec<HistoryLine> {
        let mut history = Vec::new();
        loop {
            let after = Some(history.last().map_or(0, |line: &HistoryLine| line.line));
            match self.ask(&Request::History { job: None, after, limit: None }) {
                Reply::History(lines) if lines.is_empty() => return history,
                Reply::History(lines) => history.extend(lines),
                reply => panic!("{reply:?}"),
            }
        }
    }

    /// Submits jobs that write down when they begin and end.
    pub(super) fn submit(&self, jobs: &[Planned]) -> Vec<u32> {
        let record = self.running.place().join("record");
        let submit = |job: &Planned| {
            let script = format!(
                "echo $SLURM_JOB_ID begins >> {record}; sleep {}; echo $SLURM_JOB_ID ends >> {record}",
                job.run_time.secs_f64(),
                record = record.display()
            );
            let nodes = format!("-N{}", job.request.nodes);
            self.running.submit(&[&nodes, "-t5", "--wrap", &script], None)
        };
        jobs.iter().map(submit).collect()
    }

    /// How many jobs have run to their ends.
    pub(super) fn ended(&self) -> usize {
        let record = fs::read_to_string(self.running.place().join("record")).unwrap_or_default();
        record.lines().filter(|line| line.ends_with("ends")).count()
    }

    /// Asserts that every job ran once, from its beginning to its end.
    pub(super) fn assert_once(&self, jobs: &[u32]) {
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
    pub(super) fn disturb(&self, name: &str) {
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
        let up =
            busbar(&["lab", "up", "--nodes", &nodes, "--mode", self.mode], &self.running.place());
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
