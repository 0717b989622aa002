//! A file that holds space for SQLite's files beside the database. Without them the database cannot even be read, and
//! on a full disk they could not be created: then no daemon could start to look after the jobs that run.
//!
//! The reserve is given up when the database cannot be opened, and made again when there is plenty of space. What is
//! written later is not written at its cost.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use busbar_trust::{TrustError, TrustedFolder};
use rustix::fs::statvfs;

/// The name of the file.
const NAME: &str = "reserve";

/// Its size: several times what SQLite needs before anything is written.
const BYTES: usize = 256 << 10;

/// How many times as much must be free for it to be made while the daemon runs.
const PLENTY: u64 = 4;

/// The reserve of a state.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    is_whole: bool,
}

impl Reserve {
    /// The reserve in a folder, whether it is there or not.
    pub(super) fn of(folder: &TrustedFolder) -> Result<Self, TrustError> {
        folder.check(NAME)?;
        let path = folder.path().join(NAME);
        let is_whole = path.symlink_metadata().is_ok_and(|found| found.len() >= BYTES as u64);
        Ok(Reserve { path, is_whole })
    }

    /// Frees the space; returns whether there was any.
    pub(super) fn give_up(&mut self) -> bool {
        self.is_whole = false;
        fs::remove_file(&self.path).is_ok()
    }

    /// Makes the reserve whole, if there is plenty of space.
    pub(super) fn restore(&mut self) {
        if self.is_whole {
            return;
        }
        let disk = self.path.parent().map(statvfs).and_then(Result::ok);
        let free = disk.map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        if free >= PLENTY * BYTES as u64 {
            self.fill();
            if !self.is_whole {
                // A quota may allow less than the disk has.
                self.give_up();
            }
        }
    }

    /// Takes what there is, since the daemon will write no more. What SQLite has just freed is enough to begin again.
    pub(super) fn take_what_is_there(&mut self) {
        if !self.is_whole {
            self.fill();
        }
    }

    /// Writes as much as can be written. It is not all the same byte, since some disks would make little of that.
    fn fill(&mut self) {
        self.give_up();
        let file = File::options().write(true).create_new(true).mode(0o600).open(&self.path);
        let Ok(mut file) = file else { return };
        let mut number = 1_u64;
        let mut next = || {
            number ^= number << 13;
            number ^= number >> 7;
            number ^= number << 17;
            number.to_le_bytes()
        };
        let bytes: Vec<u8> = (0..BYTES / 8).flat_map(|_| next()).collect();
        // Once there is an error there is nothing more to be had.
        let written = bytes.chunks(4096).try_for_each(|chunk| file.write_all(chunk));
        self.is_whole = written.is_ok();
    }
}
