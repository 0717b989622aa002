//! One daemon per state: a file that is locked as long as the daemon runs. The system releases the lock
//! when the process ends for any reason. If a daemon is killed while it starts a process, that process
//! holds the lock until it executes its program.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

use busbar_trust::TrustedFolder;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::StoreError;

/// The name of the lock file.
const NAME: &str = "lock";

/// How long to wait for a lock whose daemon still runs, since it may be about to end.
const ENDING: Duration = Duration::from_secs(2);

/// How long to wait for a lock whose daemon is gone. What it was starting gives the lock back as soon
/// as it gets to run, which takes a while on a busy machine.
const STARTING: Duration = Duration::from_secs(60);

/// The pause between two tries.
const REST: Duration = Duration::from_millis(20);

/// The lock, as long as it is held.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of a folder, and writes the ID of this process to it.
    pub(super) fn take(folder: &TrustedFolder) -> Result<Self, StoreError> {
        // Anyone who can open the file could lock it, so only its owner may.
        let mut file = folder.file(NAME, OFlags::RDWR)?;
        let begun = Instant::now();
        let mut locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
        while locked == Err(Errno::WOULDBLOCK) {
            let patience = if process(&mut file).is_none_or(runs) { ENDING } else { STARTING };
            if begun.elapsed() >= patience {
                break;
            }
            sleep(REST);
            locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
        }
        match locked {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(StoreError::InUse {
                    folder: folder.path().to_owned(),
                    process: process(&mut file),
                });
            }
            Err(errno) => {
                let path = folder.path().join(NAME);
                return Err(StoreError::Unwritable { path, source: errno.into() });
            }
        }
        // The process ID is only for information, so a full disk does not matter.
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Lock { _file: file })
    }
}

/// The process that holds the lock, if it is known.
fn process(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Whether there is a process with this ID.
fn runs(process: u32) -> bool {
    let id = i32::try_from(process).ok().and_then(Pid::from_raw);
    id.is_some_and(|id| test_kill_process(id) != Err(Errno::SRCH))
}
