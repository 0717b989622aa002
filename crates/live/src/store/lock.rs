//! One daemon for each state: a file that is locked as long as its daemon lives. The system gives the lock
//! back when the process ends, however it ends, so none is ever left behind. A daemon that is killed while
//! it starts a process leaves the lock to that one, but only until it becomes another program.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::StoreError;
use crate::trusted_folder::TrustedFolder;

/// What the file is called.
const NAME: &str = "lock";

/// How often one tries to take the lock, and how long one waits in between: whoever comes right after a
/// daemon that was killed gets it.
const TRIES: u32 = 100;
const REST: Duration = Duration::from_millis(20);

/// The lock, held.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of a folder, and leaves the number of this process there.
    pub(super) fn take(folder: &TrustedFolder) -> Result<Self, StoreError> {
        // Whoever may open it could lock it, so nobody else may.
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
        // A full disk is no reason not to hold a lock; the number is only for people.
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Lock { _file: file })
    }
}

/// Who has the lock, if that was written down.
fn process(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
