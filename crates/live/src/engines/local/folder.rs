//! The folder of an attempt, through which daemon and warden communicate.
//!
//! | file | written by | means |
//! |---|---|---|
//! | `group.json` | daemon | the control group to run in, if it has one |
//! | `cpus.json` | daemon | the processors to run on, if it is pinned |
//! | `ticket` | daemon | what to run, and that it may begin; renaming it decides |
//! | `claimed` | warden | the ticket: it has begun, or will; locked as long as the warden lives, and empty once it is over |
//! | `revoked` | daemon | the ticket: it has not begun and never will |
//! | `suspended` | daemon | it is suspended, even if it has not begun yet |
//! | `started.json` | warden | the processes of the warden and the command |
//! | `seen.json` | daemon | the processes it had, if it has no control group |
//! | `ended.json` | warden | how it ended, or why it was not begun |
//!
//! A ticket can be renamed once, so an attempt runs once or never. Only the daemon's user can look into
//! the folder, since commands may contain secrets.
//!
//! The warden syncs its claim to disk before it starts the command, so that the attempt is not started
//! again after a crash of the machine; the daemon itself waits for no disk here. The end is not synced:
//! a daemon that reads it records it, and if the machine crashes before that, it is lost.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::group::Group;
use super::inheritance::Inheritance;
use crate::engine::Launch;
use crate::host::process::{Process, boot};

pub(super) const GROUP: &str = "group.json";
pub(super) const CPUS: &str = "cpus.json";
pub(super) const TICKET: &str = "ticket";
pub(super) const CLAIMED: &str = "claimed";
pub(super) const REVOKED: &str = "revoked";
pub(super) const SUSPENDED: &str = "suspended";
pub(super) const STARTED: &str = "started.json";
pub(super) const SEEN: &str = "seen.json";
pub(super) const ENDED: &str = "ended.json";

/// The folder of an attempt.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
}

/// What to run, and with which settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ticket {
    #[serde(flatten)]
    pub(super) launch: Launch,
    #[serde(default)]
    pub(super) inheritance: Inheritance,
    /// The control group of its warden, once there is one.
    #[serde(default)]
    pub(super) group: Option<Group>,
}

/// The processes that run an attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Started {
    /// The boot in which they were started; after another boot they are gone.
    pub(super) boot: String,
    pub(super) warden: Process,
    pub(super) command: Process,
}

/// The holder of the lock of an attempt.
pub(super) enum Lock {
    /// The caller, as long as the file is open.
    Own(File),
    /// Another process.
    Others,
    /// There is no file to lock.
    NoFile,
}

impl Folder {
    /// A folder that may exist.
    pub(super) fn at(path: &Path) -> Self {
        Folder { path: path.to_owned() }
    }

    /// Creates a folder.
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Folder { path })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn has(&self, name: &str) -> io::Result<bool> {
        self.file(name).try_exists()
    }

    /// Creates an empty file.
    pub(super) fn put(&self, name: &str) -> io::Result<()> {
        File::create(self.file(name)).map(|_| ())
    }

    /// Frees the space of a file, which stays.
    pub(super) fn empty(&self, name: &str) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.file(name))?.set_len(0)
    }

    /// Removes a file, if it exists.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.file(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes a file atomically.
    pub(super) fn write(&self, name: &str, content: &impl Serialize) -> io::Result<()> {
        let beside = self.file(&format!("{name}.unfinished"));
        fs::write(&beside, serde_json::to_vec(content)?)?;
        fs::rename(&beside, self.file(name))
    }

    /// Syncs the folder to disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()?;
        // The entry of the folder itself as well.
        self.path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    }

    /// Reads a file, if it exists.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        match fs::read(self.file(name)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
                let message = format!("{}: {error}", self.file(name).display());
                io::Error::new(io::ErrorKind::InvalidData, message)
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The same, but an incomplete file, as a crash of the machine may leave, counts as missing.
    pub(super) fn read_whole<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        match self.read(name) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
            read => read,
        }
    }

    /// Renames a file; returns whether it existed.
    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<bool> {
        match fs::rename(self.file(from), self.file(to)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Locks a file, and with it the attempt: the lock stays with a renamed file.
    pub(super) fn lock(&self, name: &str) -> io::Result<Lock> {
        let file = match OpenOptions::new().write(true).open(self.file(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Lock::NoFile),
            Err(error) => return Err(error),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Lock::Own(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(Lock::Others),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a claimed attempt is over: its warden has reported the end, or is gone.
    pub(super) fn is_over(&self) -> io::Result<bool> {
        Ok(self.has(ENDED)? || !matches!(self.lock(CLAIMED)?, Lock::Others))
    }

    /// When the warden reported the end, by the wall clock.
    pub(super) fn ended(&self) -> io::Result<SystemTime> {
        fs::metadata(self.file(ENDED))?.modified()
    }

    /// The processes that run the attempt, if they are known and of the current boot.
    pub(super) fn started(&self) -> io::Result<Option<Started>> {
        let here = boot()?;
        Ok(self.read::<Started>(STARTED)?.filter(|started| started.boot == here))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::create(place.path().join("1.1")).unwrap();
        (place, folder)
    }

    #[test]
    fn a_ticket_is_renamed_once() {
        let (_place, folder) = folder();
        folder.put(TICKET).unwrap();
        assert!(folder.rename(TICKET, CLAIMED).unwrap());
        assert!(!folder.rename(TICKET, REVOKED).unwrap());
        assert!(folder.has(CLAIMED).unwrap() && !folder.has(REVOKED).unwrap());
    }

    #[test]
    fn what_is_garbled_is_said_with_its_place() {
        let (_place, folder) = folder();
        assert_eq!(folder.read::<u32>(CPUS).unwrap(), None);
        fs::write(folder.file(CPUS), "[1,").unwrap();
        let error = folder.read::<Vec<u32>>(CPUS).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains("cpus.json"), "{error}");
    }

    /// A process of another boot may have the number and the beginning of one of this.
    #[test]
    fn who_ran_before_the_machine_was_switched_on_is_nobody() {
        let (_place, folder) = folder();
        let this = Process::this().unwrap();
        let mut started = Started { boot: boot().unwrap(), warden: this, command: this };
        folder.write(STARTED, &started).unwrap();
        assert_eq!(folder.started().unwrap().map(|started| started.warden), Some(this));
        started.boot = "another".to_owned();
        folder.write(STARTED, &started).unwrap();
        assert!(folder.started().unwrap().is_none());
    }

    #[test]
    fn one_has_the_lock() {
        let (_place, folder) = folder();
        assert!(matches!(folder.lock(TICKET).unwrap(), Lock::NoFile));
        folder.put(TICKET).unwrap();
        let held = folder.lock(TICKET).unwrap();
        assert!(matches!(held, Lock::Own(_)));
        folder.rename(TICKET, CLAIMED).unwrap();
        assert!(matches!(folder.lock(CLAIMED).unwrap(), Lock::Others));
        assert!(!folder.is_over().unwrap());
        drop(held);
        assert!(folder.is_over().unwrap());
    }
}
