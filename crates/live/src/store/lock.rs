//! One daemon per state: a file that is locked as long as the daemon runs. The system releases the lock
//! when the process ends for any reason. If a daemon is killed while it starts a process, that process
//! holds the lock until it executes its program.
//!
//! The file says who that is, with a count that grows while the daemon lives: see [`Lease`].

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::thread::sleep;
use std::time::{Duration, Instant};

use busbar_trust::TrustedFolder;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::StoreError;
use super::lease::{Holder, Lease};
use super::lock_file::{NAME, is_at_its_place, turn, unwritable};
use crate::engine::Signal;

/// A daemon that takes the place of one on another host makes the new lock file here.
const NEW: &str = "lock.new";

/// How long to wait for a lock whose daemon still runs, since it may be about to end.
const ENDING: Duration = Duration::from_secs(2);

/// How long to wait for a lock whose daemon is gone. What it was starting gives the lock back as soon
/// as it gets to run, which takes a while on a busy machine.
const STARTING: Duration = Duration::from_secs(60);

/// The pause between two tries.
const REST: Duration = Duration::from_millis(20);

/// The pause between two tries of a daemon that stands by.
const STANDBY_REST: Duration = Duration::from_millis(200);

/// What came of a try.
enum Attempt {
    Locked(File),
    /// Somebody else has it, who has written this.
    Held(String),
}

/// Takes the lock of a folder for a daemon whose lease is so long.
pub(super) fn take(folder: &TrustedFolder, length: Duration) -> Result<Lease, StoreError> {
    let begun = Instant::now();
    loop {
        let text = match attempt(folder)? {
            Attempt::Locked(file) => return Ok(Lease::begin(folder, file, length)),
            Attempt::Held(text) => text,
        };
        let process = process(&text);
        let patience = if process.is_none_or(runs) { ENDING } else { STARTING };
        if begun.elapsed() >= patience {
            return Err(StoreError::InUse { folder: folder.path().to_owned(), process });
        }
        sleep(REST);
    }
}

/// Waits until nobody leads any more, and takes the lock: it is given back, or its holder has given no sign of life for half
/// as long again as it may act without one. A holder on this host is killed, so that it does not wake up again. From one on
/// another host the lock is taken away, and it ends as soon as it wakes up. `rest` is called at each try, with what the holder
/// has written.
pub(super) fn stand_by(
    folder: &TrustedFolder,
    length: Duration,
    mut rest: impl FnMut(&str),
) -> Result<Lease, StoreError> {
    let (mut seen, mut since) = (String::new(), Instant::now());
    loop {
        let text = match attempt(folder)? {
            Attempt::Locked(file) => return Ok(Lease::begin(folder, file, length)),
            Attempt::Held(text) => text,
        };
        if text != seen {
            (seen, since) = (text, Instant::now());
        }
        if since.elapsed() >= length * 3 / 2
            && let Some(lease) = displace(folder, length, &seen)?
        {
            return Ok(lease);
        }
        rest(&seen);
        sleep(STANDBY_REST);
    }
}

/// The last sign of life that somebody has given who leads, or has led; nothing if nobody ever has.
pub(super) fn last_sign(folder: &TrustedFolder) -> Result<String, StoreError> {
    let file = folder.existing_file(NAME)?;
    Ok(file.map_or(String::new(), |mut file| text_of(&mut file)))
}

/// Takes the lock if this is still the last sign of life, which was given long ago. Nothing if somebody leads after all, or has to
/// end first, which whoever holds the lock is made to do if `may_end` says so.
pub(super) fn take_after(
    folder: &TrustedFolder,
    length: Duration,
    last: &str,
    may_end: bool,
) -> Result<Option<Lease>, StoreError> {
    match attempt(folder)? {
        Attempt::Locked(mut file) => {
            let is_meant = text_of(&mut file) == last;
            Ok(is_meant.then(|| Lease::begin(folder, file, length)))
        }
        Attempt::Held(text) if may_end && text == last => displace(folder, length, last),
        Attempt::Held(_) => Ok(None),
    }
}

/// Ends the holder of a lock that has given no sign of life since this one, or takes the lock away from it.
fn displace(
    folder: &TrustedFolder,
    length: Duration,
    seen: &str,
) -> Result<Option<Lease>, StoreError> {
    // Older versions give no sign of life.
    let Some(holder) = Holder::read(seen) else { return Ok(None) };
    let Some(process) = holder.process_here() else { return seize(folder, length, seen) };
    tracing::warn!(process = process.number, "the daemon gives no sign of life; it is killed");
    if let Err(error) = process.signal(Signal::Kill) {
        tracing::error!(%error, "the daemon cannot be killed");
    }
    Ok(None)
}

/// Takes the lock away from a daemon on another host, unless it has given a sign of life after all.
fn seize(
    folder: &TrustedFolder,
    length: Duration,
    seen: &str,
) -> Result<Option<Lease>, StoreError> {
    let _turn = turn(folder)?;
    let mut present = folder.file(NAME, OFlags::RDWR)?;
    if text_of(&mut present) != seen {
        return Ok(None);
    }
    tracing::warn!("the daemon on another host has not renewed its lease; this daemon takes over");
    let file = folder.file(NEW, OFlags::RDWR)?;
    let unwritable = |errno: Errno| unwritable(folder.path(), errno);
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(unwritable)?;
    let lease = Lease::begin(folder, file, length);
    let renamed = fs::rename(folder.path().join(NEW), folder.path().join(NAME));
    renamed.map_err(|source| StoreError::Unwritable { path: folder.path().join(NAME), source })?;
    Ok(Some(lease))
}

fn attempt(folder: &TrustedFolder) -> Result<Attempt, StoreError> {
    // Anyone who can open the file could lock it, so only its owner may.
    let mut file = folder.file(NAME, OFlags::RDWR)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        // A daemon on another host may have put its own in this place before the lock was free.
        Ok(()) if !is_at_its_place(folder, &file)? => Ok(Attempt::Held(String::new())),
        Ok(()) => Ok(Attempt::Locked(file)),
        Err(Errno::WOULDBLOCK) => Ok(Attempt::Held(text_of(&mut file))),
        Err(errno) => Err(unwritable(folder.path(), errno)),
    }
}

/// What the holder of a lock has written; nothing if that cannot be read.
fn text_of(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.take(1024).read_to_string(&mut text));
    if read.is_ok() { text } else { String::new() }
}

/// The process that holds the lock, if it is known.
fn process(text: &str) -> Option<u32> {
    text.lines().next()?.trim().parse().ok()
}

/// Whether there is a process with this ID.
fn runs(process: u32) -> bool {
    let id = i32::try_from(process).ok().and_then(Pid::from_raw);
    id.is_some_and(|id| test_kill_process(id) != Err(Errno::SRCH))
}
