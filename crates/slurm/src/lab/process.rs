//! Processes of a lab: started in sessions of their own, and known by number and start time, so that a
//! number that was given to somebody else meanwhile is never signalled.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::LabError;
use super::files;

/// The variable by which a process and what it started are known to belong to a lab.
pub(crate) const MARK: &str = "BUSBAR_LAB";

/// How long a process may take to become ready, and to end when it is asked to, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process that a lab should have.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Its name.
    pub(crate) name: String,
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
    /// Variables that it gets.
    pub(crate) environment: Vec<(String, OsString)>,
    /// Where its output goes.
    pub(crate) log: PathBuf,
    /// How it is known to be ready; `None` if nobody has to wait.
    pub(crate) ready: Option<Ready>,
}

/// The sign that a process is ready.
#[derive(Clone, Debug)]
pub(crate) enum Ready {
    /// A file is there.
    File(PathBuf),
    /// A port of this machine takes connections.
    Port(u16),
}

impl Ready {
    fn is_so(&self) -> bool {
        match self {
            Ready::File(path) => path.exists(),
            Ready::Port(port) => TcpStream::connect(("127.0.0.1", *port)).is_ok(),
        }
    }
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
pub(crate) struct Processes {
    path: PathBuf,
    known: BTreeMap<String, Identity>,
}

impl Processes {
    /// Reads the file; there are none without one.
    pub(crate) fn read(path: &Path) -> Result<Self, LabError> {
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
        files::write_file(
            &self.path,
            &serde_json::to_string_pretty(&self.known).unwrap_or_default(),
            0o644,
        )
    }

    /// The number of a process, if it runs.
    pub(crate) fn running(&self, name: &str) -> Option<u32> {
        let identity = self.known.get(name)?;
        (start_time(identity.pid) == Some(identity.start)).then_some(identity.pid)
    }

    /// Starts a process, and waits until it is ready.
    pub(crate) fn start(&mut self, wanted: &Wanted) -> Result<(), LabError> {
        let failed =
            |what, path: &Path, source| LabError::File { what, path: path.to_owned(), source };
        if let Some(Ready::File(path)) = &wanted.ready {
            files::remove_file(path)?;
        }
        let log = fs::File::options().create(true).append(true).open(&wanted.log);
        let log = log.map_err(|source| failed("write", &wanted.log, source))?;
        let error = log.try_clone().map_err(|source| failed("write", &wanted.log, source))?;
        // `setsid` becomes the program, so that the number is the program's.
        let mut command = Command::new("setsid");
        command.args(&wanted.command).env_clear().env("PATH", path(None)).env("LC_ALL", "C");
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
            && !ready.is_so()
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
    pub(crate) fn stop(&mut self, names: &[String]) -> Result<(), LabError> {
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
    pub(crate) fn kill(&mut self, name: &str) -> Result<(), LabError> {
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

/// Kills what the processes of a lab started and left behind, with all their descendants.
///
/// They are known by the lab's mark in their environment. A slurmstepd overwrites its environment, so it
/// is known by its name and by an open file in the lab's folder.
pub(crate) fn end_strays(folder: &Path) {
    let mark = [MARK.as_bytes(), b"=", folder.as_os_str().as_encoded_bytes()].concat();
    for _ in 0..50 {
        let all = all_processes();
        let is_ours = |pid: u32| has_mark(pid, &mark) || is_step_of(pid, folder);
        let mut strays: Vec<u32> = all.keys().copied().filter(|pid| is_ours(*pid)).collect();
        let mut place = 0;
        while let Some(parent) = strays.get(place).copied() {
            strays.extend(all.iter().filter(|(_, of)| **of == parent).map(|(pid, _)| *pid));
            place += 1;
        }
        strays.retain(|pid| *pid != std::process::id());
        if strays.is_empty() {
            return;
        }
        for pid in strays {
            send(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// All processes that live, each with its parent.
fn all_processes() -> BTreeMap<u32, u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let with_parent = |pid: u32| {
        start_time(pid)?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?))
    };
    ids.filter_map(with_parent).collect()
}

fn has_mark(pid: u32, mark: &[u8]) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == mark)
}

/// Whether a process is a slurmstepd that has a file of the folder open.
fn is_step_of(pid: u32, folder: &Path) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let files = || fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    name.trim() == "slurmstepd"
        && files()
            .any(|file| fs::read_link(file.path()).is_ok_and(|target| target.starts_with(folder)))
}

/// Where the programs of a Slurm are that was installed in a folder.
pub(crate) fn folders(programs: &Path) -> [PathBuf; 2] {
    ["bin", "sbin"].map(|folder| programs.join(folder))
}

/// Where programs are looked for: first where another Slurm is, and also in the folders for root, which not every root has
/// in its path.
pub(crate) fn path(programs: Option<&Path>) -> OsString {
    let mut path = OsString::new();
    for folder in programs.iter().flat_map(|folder| folders(folder)) {
        path.push(folder);
        path.push(":");
    }
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path.push(":/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin");
    path
}

/// That something is wrong with a process, with the end of its log.
pub(crate) fn failed(wanted: &Wanted, what: &str) -> LabError {
    // What a daemon of Slurm writes goes to a log of its own.
    let own = wanted.log.with_extension("log");
    let log = if own.exists() { own } else { wanted.log.clone() };
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
