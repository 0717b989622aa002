//! A daemon as a process of its own, and a client that submits jobs to it.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use busbar::live::control::setup::Setup;
use busbar::live::job::Program;
use busbar::live::server::socket::Client;
use busbar::live::wire::{HistoryLine, Reply, Request};
use tempfile::TempDir;

use super::workload::Planned;
use crate::patience::wait_or;

const BUSBAR: &str = env!("CARGO_BIN_EXE_busbar");

/// A daemon and its folder.
pub(super) struct Daemon {
    folder: TempDir,
    process: Child,
}

impl Daemon {
    /// Begins a daemon on a machine of this name, under a budget, with all its files in a folder.
    pub(super) fn begin(setup: &Setup, machine: &str, budget: &str, folder: TempDir) -> Self {
        let log = File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(BUSBAR);
        command.args(["serve", "--machine", machine, "--budget", budget, "--policy"]);
        command.arg(setup.decider.spec().to_string());
        if setup.decider.spec().name().starts_with("rmap") {
            command.args(["--profiles", "cab"]);
        }
        command.arg("--state").arg(folder.path().join("state"));
        command.arg("--socket").arg(folder.path().join("socket"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = command.spawn().unwrap();
        Daemon { folder, process }
    }

    fn client(&mut self) -> Client {
        let (socket, log) = (self.folder.path().join("socket"), self.folder.path().join("log"));
        let log = || fs::read_to_string(&log).unwrap_or_default();
        let connect = || {
            let ended = self.process.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", log());
            Client::connect(&socket).ok()
        };
        wait_or(connect, || format!("a daemon that listens: {}", log()))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Runs jobs, all of them submitted at once, one after another.
    pub(super) fn run(&mut self, jobs: &[Planned]) -> Vec<HistoryLine> {
        let mut client = self.client();
        for (number, job) in (1..).zip(jobs) {
            let program = Program {
                command: [BUSBAR, "work", &format!("{}ms", job.run_time.millis())]
                    .map(str::to_owned)
                    .into(),
                folder: self.folder.path().to_owned(),
                environment: Vec::new(),
                output: "out".into(),
                errors: None,
            };
            let submission = Box::new(job.submission(program));
            match client.ask(&Request::Submit(submission)).unwrap() {
                Reply::Submitted { job, remark: None } => assert_eq!(job, number),
                reply => panic!("{reply:?}"),
            }
            // No two of them within a millisecond.
            sleep(Duration::from_millis(2));
        }
        let is_over = || match client.ask(&Request::Status).unwrap() {
            Reply::Status(status) => (status.waiting + status.running == 0).then_some(()),
            reply => panic!("{reply:?}"),
        };
        wait_or(is_over, || format!("an empty queue: {}", self.log()));
        let mut history = Vec::new();
        loop {
            let after = Some(history.last().map_or(0, |line: &HistoryLine| line.line));
            match client.ask(&Request::History { job: None, after, limit: None }).unwrap() {
                Reply::History(lines) if lines.is_empty() => return history,
                Reply::History(lines) => history.extend(lines),
                reply => panic!("{reply:?}"),
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
