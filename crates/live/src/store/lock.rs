//! One daemon per state: a file that is locked as long as the daemon runs. The system releases the lock
//! when the process ends for any reason. If a daemon is killed while it starts a process, that process
//! holds the lock until it executes its program.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::thread::sleep;
use std::time::Duration;

use busbar_trust::TrustedFolder;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::StoreError;

/// The name of the lock file.
const NAME: &str = "lock";

/// The number of tries to take the lock and the pause between them, so that a daemon can start
/// right after another one was killed.
const TRIES: u32 = 100;
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
        let mut locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
        for _ in 1..TRIES {
            if locked != Err(Errno::WOULDBLOCK) {
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
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
