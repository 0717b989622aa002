//! A process by its identity: its number, and when it began. Numbers are used again after a while; with
//! the time at which it began, in ticks since the machine was switched on, there is only one.
//!
//! The one line of `/proc` that is read here is read by hand: the crate `procfs` would read all of it into types that nobody
//! needs, for each process of the machine and several times a second.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, kill_process, kill_process_group, pidfd_open, pidfd_send_signal,
};
use serde::{Deserialize, Serialize};

use crate::engine::Signal;

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Process {
    /// The process ID.
    pub number: i32,
    /// The start time in the kernel's clock ticks since boot.
    pub began: u64,
}

impl Process {
    /// The process that has this number now; `None` if there is none.
    pub fn of(number: i32) -> io::Result<Option<Self>> {
        Ok(Stat::of(number)?.map(|stat| stat.process))
    }

    /// This process.
    pub(crate) fn this() -> io::Result<Self> {
        let number = std::process::id() as i32;
        Process::of(number)?.ok_or_else(|| io::Error::other("/proc does not show this process"))
    }

    /// Whether the process still exists, perhaps as a zombie.
    pub fn is_there(&self) -> io::Result<bool> {
        Ok(Process::of(self.number)? == Some(*self))
    }

    /// Sends a signal; does nothing if the process is gone.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let Some(number) = Pid::from_raw(self.number) else { return Ok(()) };
        // An open descriptor means this process even if its ID is reused. Kernels before 5.3 cannot
        // do that.
        let opened = pidfd_open(number, PidfdFlags::empty());
        if opened.as_ref().is_err_and(|error| *error == Errno::SRCH) || !self.is_there()? {
            return Ok(());
        }
        let sent = match opened {
            Ok(opened) => pidfd_send_signal(opened, signal.into()),
            Err(_) => kill_process(number, signal.into()),
        };
        match sent {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a signal to all of the process group that it leads; does nothing if that is gone.
    pub(crate) fn signal_group(&self, signal: Signal) -> io::Result<()> {
        let Some(group) = Pid::from_raw(self.number) else { return Ok(()) };
        if !self.is_there()? {
            return Ok(());
        }
        match kill_process_group(group, signal.into()) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl From<Signal> for rustix::process::Signal {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
            Signal::Suspend => rustix::process::Signal::STOP,
            Signal::Resume => rustix::process::Signal::CONT,
        }
    }
}

/// The kernel's information about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) process: Process,
    /// The process ID of its parent.
    pub(crate) parent: i32,
    /// The ID of its process group.
    pub(crate) group: i32,
    /// Whether it is a zombie.
    pub(crate) is_over: bool,
    /// Whether it is stopped.
    pub(crate) is_stopped: bool,
}

impl Stat {
    /// The information about the process with this ID.
    pub(crate) fn of(number: i32) -> io::Result<Option<Self>> {
        match fs::read(format!("/proc/{number}/stat")) {
            Ok(line) => Ok(Stat::read(number, &line)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // The process ended while it was read.
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Parses `/proc/…/stat`. The second field is a name in parentheses that may contain anything,
    /// so fields are counted from its end.
    fn read(number: i32, line: &[u8]) -> Option<Self> {
        let end = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&line[end + 1..]).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        let (is_over, is_stopped) = (matches!(state, "Z" | "X"), matches!(state, "T" | "t"));
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        // From the sixth field to the 22nd.
        let began = fields.nth(22 - 6)?.parse().ok()?;
        Some(Stat { process: Process { number, began }, parent, group, is_over, is_stopped })
    }
}

/// The ID of the current boot; processes of other boots are gone.
pub(crate) fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_anything() {
        let line = b"7 (a) b (c\xff) S 5 6 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let process = Process { number: 7, began: 4711 };
        assert_eq!(
            Stat::read(7, line),
            Some(Stat { process, parent: 5, group: 6, is_over: false, is_stopped: false })
        );
        let line = b"7 (sh) Z 5 6 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        assert_eq!(
            Stat::read(7, line),
            Some(Stat { process, parent: 5, group: 6, is_over: true, is_stopped: false })
        );
        assert_eq!(Stat::read(7, b"7 (sh) S 1"), None);
        assert_eq!(Stat::read(7, b""), None);
    }

    #[test]
    fn one_is_oneself() {
        let this = Process::this().unwrap();
        assert!(this.is_there().unwrap());
        let other = Process { began: this.began + 1, ..this };
        assert!(!other.is_there().unwrap(), "the same number, another process");
        // Whoever has the number now is not meant.
        other.signal(Signal::Kill).unwrap();
        other.signal_group(Signal::Kill).unwrap();
        assert_eq!(Process::of(i32::MAX).unwrap(), None);
        Process { number: i32::MAX, began: 0 }.signal(Signal::Kill).unwrap();
    }
}
