//! The local engine with real processes: they run once, end as they should, leave nothing behind, and
//! are found again by a daemon that comes back.
//!
//! `begin` is about how jobs begin, `load` about many at once, `steer` about what can be done to them while they run, `restart`
//! about daemons and wardens that die, `wardens` about those that others kill or stop.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use busbar::live::engine::{Found, Immediate, Launch, Signal};
use busbar::live::engines::local::Local;
use busbar::live::host::process::Process;
use busbar::live::job::{Allotment, Attempt, End};
use busbar::units::{Span, Watts};
use rustix::process::{Pid, Signal as Raw, kill_process};
use tempfile::TempDir;

use crate::patience::{wait_for, wait_until as until};

mod begin;
mod load;
mod restart;
mod steer;
mod wardens;

const BUSBAR: &str = env!("CARGO_BIN_EXE_busbar");

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn engine(&self) -> Local {
        self.engine_on(Vec::new())
    }

    fn engine_on(&self, cpus: Vec<Vec<u32>>) -> Local {
        Local::new(self.path("jobs"), PathBuf::from(BUSBAR), cpus).unwrap()
    }

    /// The folder of an attempt.
    fn attempt(&self, launch: &Launch) -> PathBuf {
        self.path("jobs").join(launch.attempt.to_string())
    }

    fn command(&self, job: u64, command: &[&str]) -> Launch {
        Launch {
            attempt: Attempt { job, number: 1 },
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            folder: self.folder.path().to_owned(),
            environment: vec![("PATH".to_owned(), std::env::var("PATH").unwrap())],
            output: self.path("out"),
            errors: self.path("err"),
            owner: None,
            allotment: on(&[0], 1_000_000),
            handle: None,
            is_free: false,
        }
    }

    fn shell(&self, job: u64, script: &str) -> Launch {
        self.command(job, &["sh", "-c", script])
    }

    fn said(&self) -> String {
        fs::read_to_string(self.path("out")).unwrap_or_default()
    }

    /// The processes of all attempts.
    fn processes(&self) -> Vec<i32> {
        let jobs = self.path("jobs").canonicalize().unwrap();
        marked(&format!("BUSBAR_SPEED_FILE={}/", jobs.display()))
    }

    /// Waits until all processes of attempts stand still, but for wardens.
    fn until_all_stand_still(&self) {
        until("that all stand still", || {
            self.processes().into_iter().all(|number| is_warden(number) || state(number) == "T")
        });
    }

    /// Waits until a process of an attempt without a control group was seen, and written down.
    fn until_seen(&self, engine: &mut Local, launch: &Launch, process: Process) {
        until("a look", || {
            assert_eq!(engine.ended(), []);
            let seen = fs::read(self.attempt(launch).join("seen.json")).unwrap_or_default();
            let seen: Vec<Process> = serde_json::from_slice(&seen).unwrap_or_default();
            seen.contains(&process)
        });
    }

    /// Asserts that no process of any attempt is left.
    fn assert_nobody_is_left(&self) {
        until("that nobody is left", || self.processes().is_empty());
    }
}

/// Lets time pass in which whoever should stand still could do something: as long as somebody else needs to do it a few times.
/// That takes longer on a busy machine.
fn while_others_work() {
    let others = tempfile::tempdir().unwrap();
    let count = others.path().join("count");
    let mut worker = Command::new("sh")
        .args(["-c", "while :; do echo x >> count; sleep 0.01; done"])
        .current_dir(others.path())
        .spawn()
        .unwrap();
    until("others to work", || fs::read(&count).is_ok_and(|lines| lines.len() > 20));
    worker.kill().unwrap();
    worker.wait().unwrap();
}

/// A test that fails leaves nobody, either.
impl Drop for Place {
    fn drop(&mut self) {
        for number in self.processes() {
            kill(number);
        }
    }
}

fn kill(number: i32) {
    // Whoever has ended meanwhile need not be killed.
    let _ = kill_process(Pid::from_raw(number).unwrap(), Raw::KILL);
}

fn on(nodes: &[u32], speed: u32) -> Allotment {
    let cap = Watts::from_watts(100);
    Allotment {
        nodes: nodes.iter().map(|node| (*node, cap)).collect(),
        cores: 1,
        cap,
        time: Span::from_secs(60),
        power: cap * nodes.len() as u32,
        speed,
        part: None,
    }
}

/// The numbers of processes in whose environment a variable begins like this.
fn marked(mark: &str) -> Vec<i32> {
    let numbers = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let number: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(format!("/proc/{number}/environ")).ok()?;
        let mut entries = environment.split(|byte| *byte == 0);
        entries.any(|entry| entry.starts_with(mark.as_bytes())).then_some(number)
    });
    numbers.collect()
}

fn end(engine: &mut Local) -> (Attempt, End) {
    let mut ended = Vec::new();
    until("an end", || {
        ended.extend(engine.ended());
        !ended.is_empty()
    });
    assert_eq!(ended.len(), 1);
    ended.remove(0)
}

/// Asks who has ended, until everybody who left the process group of a job was met.
fn meet_everybody(engine: &mut Local) {
    for _ in 0..3 {
        assert_eq!(engine.ended(), []);
    }
}

/// The number that a script wrote into a file.
fn number(path: &Path) -> i32 {
    wait_for("a number in a file", || fs::read_to_string(path).ok()?.trim().parse().ok())
}

/// The process whose number a script wrote into a file.
fn process(path: &Path) -> Process {
    Process::of(number(path)).unwrap().expect("it is there")
}

/// The state of a process, as the kernel writes it: `T` stands still. Nothing if it is gone.
fn state(number: i32) -> String {
    fields(number).into_iter().next().unwrap_or_default()
}

/// What the kernel says of a process, from the third field on.
fn fields(number: i32) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Whether a process watches over a job.
fn is_warden(number: i32) -> bool {
    let command = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
    command.split(|byte| *byte == 0).nth(1) == Some(b"warden".as_slice())
}

/// Whether a process has ended and is not waited for; whoever inherits orphans here may be slow.
fn is_zombie(process: Process) -> bool {
    ["", "Z"].contains(&state(process.number).as_str())
}
