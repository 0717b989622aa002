//! Processes of a lab: started in sessions of their own, and known by number and start time, so that a number that was given
//! to somebody else meanwhile is never signalled.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::LabError;
use super::layout;

/// The variable by which a process and what it started are known to belong to a lab.
pub const MARK: &str = "BUSBAR_LAB";

/// How long a process may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(20);

/// A process that a lab should have.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Variables that it gets.
    pub environment: Vec<(String, OsString)>,
    /// Where its output goes.
    pub log: PathBuf,
    /// A file that is there once it is ready; `None` if nobody has to wait.
    pub ready: Option<PathBuf>,
}

/// A process by its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    pid: u32,
    /// When it started, in the kernel's ticks since the machine did.
    start: u64,
}

/// The processes that were started, as a file knows them.
#[derive(Debug)]
pub struct Processes {
    path: PathBuf,
    known: BTreeMap<String, Identity>,
}

impl Processes {
    /// Reads the file; there are none without one.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => "{}".to_owned(),
            text => text.map_err(|source| LabError::File {
                what: "read",
                path: path.to_owned(),
                source,
            })?,
        };
        let known = serde_json::from_str(&text).map_err(|error| {
            LabError::Unsuitable(format!("{} cannot be understood: {error}", path.display()))
        })?;
        Ok(Processes { path: path.to_owned(), known })
    }

    fn write(&self) -> Result<(), LabError> {
        layout::write_file(
            &self.path,
            &serde_json::to_string_pretty(&self.known).unwrap_or_default(),
            0o644,
        )
    }

    /// The number of a process, if it runs.
    pub fn running(&self, name: &str) -> Option<u32> {
        let identity = self.known.get(name)?;
        (start_time(identity.pid) == Some(identity.start)).then_some(identity.pid)
    }

    /// Starts a process, and waits until it is ready.
    pub fn start(&mut self, wanted: &Wanted) -> Result<(), LabError> {
        let failed =
            |what, path: &Path, source| LabError::File { what, path: path.to_owned(), source };
        if let Some(ready) = &wanted.ready {
            layout::remove_file(ready)?;
        }
        let log = fs::File::options().create(true).append(true).open(&wanted.log);
        let log = log.map_err(|source| failed("write", &wanted.log, source))?;
        let error = log.try_clone().map_err(|source| failed("write", &wanted.log, source))?;
        // `setsid` becomes the program, so that the number is the program's.
        let mut command = Command::new("setsid");
        command.args(&wanted.command).env_clear().env("PATH", path()).env("LC_ALL", "C");
        command.envs(wanted.environment.iter().cloned()).current_dir("/");
        command.stdin(Stdio::null()).stdout(log).stderr(error);
        let mut child =
            command.spawn().map_err(|source| failed("run setsid for", &wanted.log, source))?;
        let pid = child.id();
        let Some(start) = start_time(pid) else {
            let _ = child.wait();
            return Err(self::failed(wanted, "ended at once"));
        };
        self.known.insert(wanted.name.clone(), Identity { pid, start });
        self.write()?;
        let deadline = Instant::now() + PATIENCE;
        while let Some(ready) = &wanted.ready
            && !ready.exists()
        {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(self::failed(wanted, &format!("ended at once ({status})")));
            }
            if Instant::now() >= deadline {
                return Err(self::failed(wanted, "did not become ready"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        reap(child);
        Ok(())
    }

    /// Asks processes to end, waits until they are gone, and kills those that stay.
    pub fn stop(&mut self, names: &[String]) -> Result<(), LabError> {
        for signal in [Signal::TERM, Signal::KILL] {
            let live: Vec<u32> = names.iter().filter_map(|name| self.running(name)).collect();
            for pid in &live {
                send(*pid, signal);
            }
            self.await_end(names);
        }
        if let Some(name) = names.iter().find(|name| self.running(name).is_some()) {
            return Err(LabError::Unsuitable(format!("{name} cannot be stopped")));
        }
        self.known.retain(|name, _| !names.contains(name));
        self.write()
    }

    /// Kills a process as a crash would.
    pub fn kill(&mut self, name: &str) -> Result<(), LabError> {
        if let Some(pid) = self.running(name) {
            send(pid, Signal::KILL);
            self.await_end(&[name.to_owned()]);
        }
        Ok(())
    }

    fn await_end(&self, names: &[String]) {
        let deadline = Instant::now() + PATIENCE;
        while names.iter().any(|name| self.running(name).is_some()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Waits for a child in a thread, so that it does not stay as a zombie while this process lives.
fn reap(mut child: std::process::Child) {
    std::thread::spawn(move || {
        let _ = child.wait();
    });
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid as i32) {
        // Who has ended meanwhile needs no signal.
        let _ = kill_process(pid, signal);
    }
}

/// When a process started; `None` if it does not run.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    if ["Z", "X"].contains(&state) {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Kills what the processes of a lab started and left behind: those whose environment carries the lab's mark.
pub fn end_strays(folder: &Path) {
    let mark = [MARK.as_bytes(), b"=", folder.as_os_str().as_encoded_bytes()].concat();
    let own = std::process::id();
    for _ in 0..50 {
        let Ok(entries) = fs::read_dir("/proc") else { return };
        let ids =
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let is_ours = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            *pid != own
                && environment.split(|byte| *byte == 0).any(|variable| variable == mark)
                && start_time(*pid).is_some()
        };
        let strays: Vec<u32> = ids.filter(is_ours).collect();
        if strays.is_empty() {
            return;
        }
        for pid in strays {
            send(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Where programs are looked for: also in the folders for root, which not every root has in its path.
pub fn path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin");
    path
}

/// That something is wrong with a process, with the end of its log.
pub fn failed(wanted: &Wanted, what: &str) -> LabError {
    let log = wanted.log.clone();
    LabError::Process { name: wanted.name.clone(), what: what.to_owned(), tail: tail(&log), log }
}

/// The last lines of a log.
fn tail(path: &Path) -> String {
    let read = || -> io::Result<String> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(2000)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].iter().map(|line| format!("  {line}\n")).collect()
}
