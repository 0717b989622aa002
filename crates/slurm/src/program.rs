//! Runs one program of Slurm within a time, and returns what it printed.
//!
//! A program gets a clean environment, since variables such as `SQUEUE_FORMAT` or `SLURM_CLUSTERS` would
//! change what it prints. It is the leader of a process group of its own. When its time is over the whole
//! group is killed and waited for, so that nothing is left behind.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::time::Timespec;

use crate::calls::{Call, describe};
use crate::error::SlurmError;

/// How long a program may take by default.
pub const USUAL_PATIENCE: Duration = Duration::from_secs(20);

/// The most that a program may print; more is not what was asked for.
const MOST_OUTPUT: usize = 512 << 20;

/// Variables that a program of Slurm may need, and that do not change what it prints.
const KEPT: [&str; 7] =
    ["HOME", "LD_LIBRARY_PATH", "PATH", "SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "USER"];

/// Where Slurm's programs are, and what they are told.
#[derive(Clone, Debug)]
pub struct Programs {
    folder: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    patience: Duration,
}

impl Default for Programs {
    /// The programs that are found by `PATH`, with this process's own `SLURM_CONF`.
    fn default() -> Self {
        Programs { folder: None, environment: Vec::new(), patience: USUAL_PATIENCE }
    }
}

/// What a program printed and how it ended.
#[derive(Clone, Debug)]
pub struct Printed {
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub error: String,
    /// How it ended.
    pub status: ExitStatus,
}

impl Programs {
    /// The programs in a folder, such as `/opt/slurm/bin`.
    pub fn in_folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// The same with the configuration file of a particular cluster.
    pub fn with_conf(self, path: &Path) -> Self {
        self.with_variable("SLURM_CONF", path.as_os_str().to_owned())
    }

    /// The same with a variable of the environment.
    pub(crate) fn with_variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.retain(|(other, _)| other != name);
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The same with another time that a program may take.
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How long a program may take.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Makes a call that must succeed, and returns what it printed.
    pub(crate) fn make(&self, call: &Call) -> Result<String, SlurmError> {
        succeeded(call, self.try_to(call)?)
    }

    /// Makes a call, however it ends.
    pub(crate) fn try_to(&self, call: &Call) -> Result<Printed, SlurmError> {
        let arguments: Vec<&str> = call.arguments.iter().map(String::as_str).collect();
        self.run(&call.program, &arguments)
    }

    /// Runs a program and returns what it printed, however it ended.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<Printed, SlurmError> {
        self.run_as(program, arguments, None)
    }

    /// The same as another user and group, for whom root may act.
    pub fn run_as(
        &self,
        program: &str,
        arguments: &[&str],
        user: Option<(u32, u32)>,
    ) -> Result<Printed, SlurmError> {
        let path =
            self.folder.as_ref().map_or_else(|| program.into(), |folder| folder.join(program));
        let failed = |source| SlurmError::Program { program: path.display().to_string(), source };
        let mut command = Command::new(&path);
        command.args(arguments).env_clear();
        command.envs(KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.env("LC_ALL", "C").env("SLURM_TIME_FORMAT", "%s").env("SLURM_BITSTR_LEN", "0");
        command.envs(self.environment.iter().cloned()).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some((user, group)) = user {
            command.uid(user).gid(group);
        }
        let mut child = command.spawn().map_err(failed)?;
        let deadline = Instant::now() + self.patience;
        let finished = follow(&mut child, deadline);
        if !matches!(finished, Ok(Some(_))) {
            end(&mut child);
        }
        match finished.map_err(failed)? {
            Some(printed) => Ok(printed),
            None => Err(SlurmError::Timeout {
                what: describe(program, arguments),
                within: self.patience,
            }),
        }
    }
}

/// The standard output of a call that succeeded.
fn succeeded(call: &Call, printed: Printed) -> Result<String, SlurmError> {
    match printed.status.success() {
        true => Ok(printed.out),
        false => {
            let text = if printed.error.trim().is_empty() { printed.out } else { printed.error };
            Err(SlurmError::from_text(&call.to_string(), &text))
        }
    }
}

/// Reads what a child prints until it has ended. `None` if the time is over before.
fn follow(child: &mut Child, deadline: Instant) -> io::Result<Option<Printed>> {
    let (Some(mut out), Some(mut error)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(io::Error::other("the program has no output"));
    };
    let (mut printed, mut said) = (Vec::new(), Vec::new());
    let (mut is_open, mut is_error_open) = (true, true);
    while is_open || is_error_open {
        let Some((has_out, has_error)) =
            wait(is_open.then(|| out.as_fd()), is_error_open.then(|| error.as_fd()), deadline)?
        else {
            return Ok(None);
        };
        if has_out {
            is_open = read_some(&mut out, &mut printed)?;
        }
        if has_error {
            is_error_open = read_some(&mut error, &mut said)?;
        }
    }
    // It has closed its output, so that it is about to end.
    loop {
        if let Some(status) = child.try_wait()? {
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            return Ok(Some(Printed { out: text(printed), error: text(said), status }));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Waits until one of two pipes can be read, and says which. `None` if the time is over.
fn wait(
    first: Option<BorrowedFd<'_>>,
    second: Option<BorrowedFd<'_>>,
    deadline: Instant,
) -> io::Result<Option<(bool, bool)>> {
    let mut polled: Vec<PollFd<'_>> =
        first.iter().chain(&second).map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(None);
    }
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    match poll(&mut polled, Some(&left)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => (),
        Err(error) => return Err(error.into()),
    }
    let mut ready = polled.iter().map(|fd| !fd.revents().is_empty());
    let has_first = first.is_some() && ready.next().unwrap_or(false);
    let has_second = second.is_some() && ready.next().unwrap_or(false);
    Ok(Some((has_first, has_second)))
}

/// Reads what is there. False if there will be no more.
fn read_some(pipe: &mut impl Read, into: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 64 << 10];
    let count = pipe.read(&mut buffer)?;
    if into.len() + count > MOST_OUTPUT {
        return Err(io::Error::other("its output is too long"));
    }
    into.extend_from_slice(&buffer[..count]);
    Ok(count > 0)
}

/// Kills a child with its group, and waits for it.
fn end(child: &mut Child) {
    // A child that has ended by itself is only waited for; its number is its own until then.
    if let Some(group) = Pid::from_raw(child.id() as i32) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Call {
        let arguments = ["-c", script].map(str::to_owned).to_vec();
        Call { program: "sh".to_owned(), arguments }
    }

    #[test]
    fn output_and_errors_are_read() {
        let programs = Programs::default().with_variable("SLURM_CONF", "/x");
        let printed = programs.run("sh", &["-c", "echo $SLURM_CONF; echo no >&2; exit 3"]).unwrap();
        assert_eq!((printed.out.as_str(), printed.error.as_str()), ("/x\n", "no\n"));
        let error = programs.make(&shell("echo Invalid job id specified >&2; exit 1"));
        assert!(matches!(error, Err(SlurmError::NoSuchJob { .. })), "{error:?}");
        let much = programs.make(&shell("head -c 3000000 /dev/zero; echo >&2")).unwrap();
        assert_eq!(much.len(), 3_000_000);
        let none = programs.in_folder(Path::new("/nowhere")).run("squeue", &[]).unwrap_err();
        assert!(none.to_string().starts_with("cannot run /nowhere/squeue"), "{none}");
    }

    #[test]
    fn a_program_that_takes_too_long_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pids");
        let script = format!("sleep infinity & echo $$ $! > {}; wait", file.display());
        // On a busy machine the time may be over before the script has written anything.
        let mut patience = Duration::from_millis(100);
        let text = loop {
            let programs = Programs::default().with_patience(patience);
            let error = programs.run("sh", &["-c", &script]).unwrap_err();
            assert!(matches!(error, SlurmError::Timeout { .. }), "{error}");
            assert!(error.is_uncertain());
            match std::fs::read_to_string(&file) {
                Ok(text) if text.ends_with('\n') => break text,
                _ => patience *= 2,
            }
        };
        let (shell, sleep) = text.trim().split_once(' ').unwrap();
        let runs = |id: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z")
        };
        assert!(!runs(shell));
        // Whoever inherits it here may be slow to notice that it has ended.
        while runs(sleep) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
