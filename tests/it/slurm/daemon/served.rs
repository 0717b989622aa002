//! A daemon on a lab, and a client that looks at both.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use busbar::live::job::JobRequest;
use busbar::live::server::socket::Client;
use busbar::live::wire::{HistoryLine, JobLine, Reply, Request, Status};
use busbar::slurm::cluster::Cluster;
use busbar::slurm::hosts::HostList;
use busbar::slurm::lab::CONTROLLER;
use busbar::units::{self, Span, Watts};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use crate::live_order::workload::Planned;
use crate::patience::wait_or;
use crate::slurm::{Running, busbar, text};

/// Short jobs on one to four nodes, the same for the same seed.
pub(super) fn jobs(count: u32, seed: u64) -> Vec<Planned> {
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed);
    let job = |_| Planned {
        by: None,
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
            account: None,
            part: Default::default(),
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
    pub(super) fn new(nodes: u32, mode: &'static str, policy: &str) -> Self {
        let mut served = Served::idle(nodes, mode, policy, &[]);
        served.begin();
        served
    }

    /// The same with extras of the lab, and with a daemon that does not run yet.
    pub(super) fn idle(nodes: u32, mode: &'static str, policy: &str, extras: &[&str]) -> Self {
        let running = Running::start(&nodes.to_string(), mode, extras);
        let served = Served { running, nodes, mode, daemon: None };
        served.configure("policy = \"share\"", &format!("policy = \"{policy}\""));
        served.configure("budget = \"67%\"", "budget = \"70%\"");
        // Whoever is only slow is waited for.
        served.configure("deadline = \"15s\"", "deadline = \"15min\"");
        if !extras.contains(&"--no-agents") {
            let patient = "lease = \"60s\"\nwithin = \"15min\"";
            served.configure("lease = \"10s\"\nwithin = \"3s\"", patient);
        }
        served.configure("conf = \"slurm.conf\"", "conf = \"slurm.conf\"\nwithin = \"15min\"");
        served
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

    /// Another daemon has taken the place of the former one, which has ended.
    pub(super) fn take(&mut self, daemon: Child) {
        if let Some(mut former) = self.daemon.replace(daemon) {
            former.wait().unwrap();
        }
    }

    /// Sends a signal to the daemon, which may be gone.
    pub(super) fn signal(&self, signal: &str) {
        let pid = self.daemon.as_ref().unwrap().id().to_string();
        let _ = Command::new("kill").args([signal, &pid]).status().unwrap();
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
        wait_or(seen, || format!("{what}\n{}", self.log()))
    }

    fn tree(&self, node: u32) -> PathBuf {
        self.running.place().join(format!("nodes/n{node}/tree"))
    }

    /// The cap of each node in watts, and whether a job runs there. What a job has left to Slurm's epilogs draws nothing.
    pub(super) fn nodes(&self) -> Vec<(u64, bool)> {
        let read = |path: PathBuf| -> u64 {
            let text = fs::read_to_string(path).unwrap_or_default();
            text.trim().parse::<u64>().unwrap_or(0) / 1_000_000
        };
        let record = self.record();
        let mut busy: BTreeMap<&str, HostList> = BTreeMap::new();
        for line in record.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                [job, "begins", nodes] => _ = busy.insert(job, nodes.parse().unwrap()),
                [job, "ends"] => _ = busy.remove(job),
                _ => panic!("{line}"),
            }
        }
        let node = |number: u32| {
            let (name, tree) = (format!("n{number}"), self.tree(number));
            let zone = |zone: u32| {
                read(tree.join(format!("intel-rapl:{zone}/constraint_0_power_limit_uw")))
            };
            let is_busy = busy.values().any(|nodes| nodes.names().contains(&name));
            (zone(0) + zone(1), is_busy)
        };
        (1..=self.nodes).map(node).collect()
    }

    /// What jobs have written down: when they began, on which nodes, and when they ended.
    fn record(&self) -> String {
        let record = fs::read_to_string(self.running.place().join("record")).unwrap_or_default();
        // The last line may be half written.
        record.rsplit_once('\n').map_or(String::new(), |(lines, _)| lines.to_owned() + "\n")
    }

    /// What all nodes draw, if nothing changed while this was read.
    pub(super) fn drawn(&self) -> Option<u64> {
        let nodes = self.nodes();
        let draw = |(cap, is_busy): &(u64, bool)| if *is_busy { (*cap).min(180) } else { 20 };
        (self.nodes() == nodes).then(|| nodes.iter().map(draw).sum())
    }

    /// Lowers the budget, and waits until it holds: nobody is started under the former one any more, and whoever was
    /// has been seen and capped.
    pub(super) fn lower_budget(&self, watts: u64) {
        let before = self.reserved();
        self.ask(&Request::Budget { set: Some(format!("{watts}W")) });
        if self.mode == "admit" {
            self.wait("a larger reservation", || (self.reserved() > before).then_some(()));
        }
        let looks = self.looks();
        self.wait("lower caps", || {
            let power = self.status().power;
            let is_low = power.base + power.held <= Watts::from_milliwatts(1000 * watts);
            (self.looks() > looks + 2 && is_low && self.drawn()? <= watts).then_some(())
        });
    }

    /// The watts that Slurm must not give to jobs.
    pub(super) fn reserved(&self) -> u64 {
        let licences = self.wait("licences", || self.running.cluster.licences().ok());
        licences.iter().filter(|one| one.name == "power").map(|one| one.reserved).sum()
    }

    /// How often the daemon has looked at the cluster.
    pub(super) fn looks(&self) -> u64 {
        self.status().engine_pace.map_or(0, |pace| pace.looks)
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
                "echo $SLURM_JOB_ID begins \"$SLURM_JOB_NODELIST\" >> {record}; sleep {}
                 echo $SLURM_JOB_ID ends >> {record}",
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
        self.record().lines().filter(|line| line.ends_with(" ends")).count()
    }

    /// How often Slurm lost a job that it had just started, as a controller does that is killed before it has saved that.
    /// It starts the job again by itself, and nobody can keep it from that.
    fn lost_by_slurm(&self, job: &str) -> u32 {
        let (attempt, log) = (format!("ended attempt={job}."), self.log());
        let is_lost = |line: &&str| line.contains(&attempt) && line.ends_with("end=Lost");
        log.lines().filter(is_lost).count() as u32
    }

    /// Asserts that every job ran once, from its beginning to its end; one that Slurm lost may have begun more often.
    pub(super) fn assert_once(&self, jobs: &[u32]) {
        let ran = self.assert_each_once(jobs.len());
        let all = jobs.iter().map(u32::to_string).collect();
        assert_eq!(ran, all);
    }

    /// The same of so many jobs, whichever they are. Returns their numbers.
    pub(super) fn assert_each_once(&self, count: usize) -> BTreeSet<String> {
        let record = self.record();
        let mut jobs: BTreeMap<&str, [u32; 2]> = BTreeMap::new();
        for line in record.lines() {
            let mut words = line.split(' ');
            let (job, word) = (words.next().unwrap(), words.next().unwrap());
            jobs.entry(job).or_default()[usize::from(word == "ends")] += 1;
        }
        for (job, [begins, ends]) in &jobs {
            assert_eq!(*ends, 1, "{job} ends\n{}", self.log());
            let most = 1 + self.lost_by_slurm(job);
            assert!((1..=most).contains(begins), "{job} begins\n{}", self.log());
        }
        assert_eq!(jobs.len(), count);
        jobs.into_keys().map(str::to_owned).collect()
    }

    /// Ends a process of the lab, which is then started again, and waits until the lab is as before.
    pub(super) fn disturb(&self, name: &str) {
        self.end(name);
        let nodes = self.nodes.to_string();
        let up =
            busbar(&["lab", "up", "--nodes", &nodes, "--mode", self.mode], &self.running.place());
        assert!(text(&up).contains("up again"), "{}", text(&up));
    }

    /// The same without waiting for all nodes.
    pub(super) fn restart(&self, name: &str) {
        self.end(name);
        self.running.lab.start(name).unwrap();
    }

    /// Ends a process of the lab. A controller is told to stop, since one that is killed forgets what happened in the last
    /// seconds, and takes minutes to find out what has ended meanwhile.
    fn end(&self, name: &str) {
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
