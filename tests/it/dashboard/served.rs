//! The real daemon with its web page, in a folder of its own.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use busbar::live::server::socket::Client;
use busbar::live::wire::{NodeLine, PowerState, Reply, Request, Status};
use tempfile::TempDir;

use crate::patience::wait_for;

const BUSBAR: &str = env!("CARGO_BIN_EXE_busbar");

/// A daemon that ends when this is dropped.
pub(super) struct Served {
    folder: TempDir,
    nodes: u32,
    process: Child,
    /// Where its page is.
    pub(super) page: String,
}

impl Served {
    /// Nodes of 100 W that draw nothing when idle, and power for all of them.
    pub(super) fn new(nodes: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let machine = format!(
            "name = \"lab\"\nnodes = {nodes}\n[power]\nnode = \"100W\"\nidle = \"0W\"\nrest = \"0W\"\n"
        );
        fs::write(folder.path().join("lab.toml"), machine).unwrap();
        let process = begin(&folder, "127.0.0.1:0");
        let mut served = Served { folder, nodes, process, page: String::new() };
        served.page = served.wait_for_page(1);
        served
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Waits until the log names the page for the n-th time, and the daemon answers.
    fn wait_for_page(&self, times: usize) -> String {
        let page = wait_for("the web page", || {
            let log = fs::read_to_string(self.path("log")).ok()?;
            let line =
                log.lines().filter(|line| line.contains("the web page is at")).nth(times - 1)?;
            Some(line.split_once("http://")?.1.trim_end_matches('/').to_owned())
        });
        wait_for("an answer", || {
            Client::connect(&self.path("socket")).ok()?.ask(&Request::Status).ok()
        });
        format!("http://{page}/")
    }

    /// The daemon is killed.
    pub(super) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Another daemon takes over, at the same address.
    pub(super) fn begin_again(&mut self) {
        let address = self.page.trim_start_matches("http://").trim_end_matches('/').to_owned();
        self.process = begin(&self.folder, &address);
        self.wait_for_page(2);
    }

    /// What a command of the program answers.
    pub(super) fn command(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = Command::new(BUSBAR)
            .args(arguments)
            .env("BUSBAR_SOCKET", self.path("socket"))
            .current_dir(self.folder.path())
            .output()
            .unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    pub(super) fn token(&self, role: &str) -> String {
        let state = self.path("state");
        let made =
            self.command(&["token", "create", "--role", role, "--state", state.to_str().unwrap()]);
        made.trim().to_owned()
    }

    fn ask(&self, request: &Request) -> Reply {
        Client::connect(&self.path("socket")).unwrap().ask(request).unwrap()
    }

    pub(super) fn status(&self) -> Status {
        match self.ask(&Request::Status) {
            Reply::Status(status) => *status,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn power(&self) -> PowerState {
        self.status().power
    }

    pub(super) fn nodes(&self) -> Vec<NodeLine> {
        match self.ask(&Request::Nodes) {
            Reply::Nodes(nodes) => nodes,
            other => panic!("{other:?}"),
        }
    }

    /// How many jobs wait or run.
    pub(super) fn jobs(&self) -> usize {
        match self.ask(&Request::Queue) {
            Reply::Queue(jobs) => jobs.len(),
            other => panic!("{other:?}"),
        }
    }
}

fn begin(folder: &TempDir, address: &str) -> Child {
    let log = File::options().create(true).append(true).open(folder.path().join("log")).unwrap();
    Command::new(BUSBAR)
        .args(["serve", "--machine", "lab.toml", "--budget", "100%", "--policy", "easy-power"])
        .args(["--state", "state", "--socket", "socket", &format!("--web={address}")])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            println!(
                "{} nodes: {}",
                self.nodes,
                fs::read_to_string(self.path("log")).unwrap_or_default()
            );
        }
    }
}
