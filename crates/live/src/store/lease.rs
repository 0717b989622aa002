//! Who leads: of several daemons with the same state, the one that has its lock and has given a sign of life lately.
//!
//! A lock alone does not tell whether its holder can act: the holder may be stopped, or its host may be gone without the file
//! system noticing. So the holder counts up in the lock file, and acts only as long as its last count is younger than the length
//! of its lease. A daemon that stands by waits for half as long again before it takes over. A leader that was away for longer
//! looks whether somebody has done that before it does anything else, and ends on the spot if so.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use busbar_trust::TrustedFolder;
use rustix::time::{ClockId, clock_gettime};

use super::lock_file::{self, file_at};
use crate::host::file_identity::FileIdentity;
use crate::host::process::Process;

/// How long a daemon may act without a sign of life, if the configuration does not say.
pub(super) const USUAL: Duration = Duration::from_secs(30);

/// So many signs of life are given within the length of a lease.
const SIGNS: u32 = 10;

/// The right to lead, which several threads may look at.
#[derive(Clone, Debug)]
pub struct Lease(Arc<Inside>);

#[derive(Debug)]
struct Inside {
    folder: TrustedFolder,
    identity: Option<FileIdentity>,
    length: Duration,
    /// When the next sign of life is due, and until when this daemon may act, in milliseconds since the host was switched on,
    /// sleep included.
    next: AtomicU64,
    until: AtomicU64,
    sign: Mutex<Sign>,
}

/// What is written into the lock file.
#[derive(Debug)]
struct Sign {
    file: File,
    count: u64,
}

/// The holder of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    process: Process,
    /// The boot and the name space of processes in which that process is.
    place: String,
    /// The name of the host, for people.
    pub(super) host: String,
}

impl Holder {
    /// This process.
    fn this() -> Self {
        let process =
            Process::this().unwrap_or(Process { number: std::process::id() as i32, began: 0 });
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Holder { process, place: place(), host }
    }

    /// Reads what [`Sign`]s say; `None` if an older version has written it.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let number = lines.next()?.trim().parse().ok()?;
        let began = lines.next()?.parse().ok()?;
        let place = lines.next()?.to_owned();
        let host = lines.next()?.to_owned();
        Some(Holder { process: Process { number, began }, place, host })
    }

    /// Its process, if that is on this host and exists.
    pub(super) fn process_here(&self) -> Option<Process> {
        let is_here =
            self.place == place() && self.process.is_there().is_ok_and(|is_there| is_there);
        is_here.then_some(self.process)
    }
}

/// Where process numbers mean the same processes: in one boot of a host, and in one name space of processes.
fn place() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), space.display())
}

/// Milliseconds since the host was switched on, sleep included.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

impl Lease {
    /// The lease of whoever has locked this file.
    pub(super) fn begin(folder: &TrustedFolder, file: File, length: Duration) -> Self {
        let identity = lock_file::identity(folder, &file).ok();
        let lease = Lease(Arc::new(Inside {
            folder: folder.clone(),
            identity,
            length,
            next: AtomicU64::new(0),
            until: AtomicU64::new(0),
            sign: Mutex::new(Sign { file, count: 0 }),
        }));
        let inside = &lease.0;
        let mut sign = inside.sign.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = sign.file.set_len(0);
        inside.give(&mut sign);
        drop(sign);
        lease
    }

    /// How long a daemon with nothing to do may rest before it has to [look](Self::ensure) again: until its next sign of life.
    pub(crate) fn longest_rest(&self) -> Duration {
        self.0.length / SIGNS
    }

    /// Gives signs of life in a thread until what it returns is dropped: for work that may take longer than the lease, and that
    /// does nothing another daemon must not do as well, such as reading a large state.
    pub fn keep(&self) -> Keeper {
        let (stop, stopped) = channel::<()>();
        let lease = self.clone();
        let keep = move || {
            while stopped.recv_timeout(lease.longest_rest()) == Err(RecvTimeoutError::Timeout) {
                lease.ensure();
            }
        };
        // Without a thread there are no signs, and that is no reason not to begin.
        let thread = thread::Builder::new().name("lease".to_owned()).spawn(keep).ok();
        Keeper { stop: Some(stop), thread }
    }

    /// Returns if this daemon leads, with a sign of life if one is due. **If another daemon has taken over, this process ends
    /// here**: whatever it would do from now on, also while it ends in an orderly way, could be against what the other one does.
    pub(crate) fn ensure(&self) {
        if !self.0.may_lead() {
            tracing::error!(
                "another daemon has taken over, because this one did not renew its lease; it ends"
            );
            std::process::exit(1);
        }
    }
}

/// A thread that gives signs of life until this is dropped.
#[derive(Debug)]
pub struct Keeper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been reported already.
            let _ = thread.join();
        }
    }
}

impl Inside {
    fn may_lead(&self) -> bool {
        let now = now();
        if now < self.next.load(Ordering::Relaxed) {
            return true;
        }
        let mut sign = self.sign.lock().unwrap_or_else(PoisonError::into_inner);
        if now < self.until.load(Ordering::Relaxed) {
            self.give(&mut sign);
            return true;
        }
        // Somebody may be taking over right now. Who cannot find that out, as where the file system is out of reach, leads no
        // more.
        let turn = lock_file::turn(&self.folder);
        let is_ours = match (file_at(&self.folder), &turn) {
            (Ok(Some(identity)), Ok(_)) => self.identity == Some(identity),
            // The state is gone, and nobody leads by it.
            (Ok(None), _) => true,
            (Ok(Some(_)), Err(_)) | (Err(_), _) => false,
        };
        if is_ours {
            self.give(&mut sign);
        }
        drop(turn);
        is_ours
    }

    /// Gives a sign of life. It takes no room that is not taken already, so a full disk does not matter.
    fn give(&self, sign: &mut Sign) {
        let begun = now();
        let Holder { process, place, host } = Holder::this();
        let Process { number, began } = process;
        sign.count += 1;
        let text = format!("{number}\n{began}\n{place}\n{host}\n{:020}\n", sign.count);
        let length = self.length.as_millis() as u64;
        self.next.store(begun + length / u64::from(SIGNS), Ordering::Relaxed);
        // What is not on the disk yet is not seen by other hosts, and on a file system that is out of reach it never gets there.
        let written = sign.file.rewind().and_then(|()| sign.file.write_all(text.as_bytes()));
        match written.and_then(|()| sign.file.sync_data()) {
            Ok(()) => self.until.store(begun + length, Ordering::Relaxed),
            Err(error) => {
                tracing::warn!(%error, "the lease cannot be renewed for the standby daemon")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{FlockOperation, flock};

    use super::super::{lock, lock_file};
    use super::*;
    use crate::patience::wait_until;
    use crate::store::STATE;

    const SHORT: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_secs(3600);

    fn folder(place: &tempfile::TempDir) -> TrustedFolder {
        TrustedFolder::of(place.path(), 0o700, STATE).unwrap()
    }

    /// As if a daemon on another host had written the file.
    fn written_elsewhere(folder: &TrustedFolder) {
        let path = folder.path().join(lock_file::NAME);
        let text = fs::read_to_string(&path).unwrap().replace(&place(), "elsewhere");
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_lock_that_is_given_back_is_taken_at_once() {
        let place = tempfile::tempdir().unwrap();
        let first = lock::take(&folder(&place), LONG).unwrap();
        let (sender, tries) = channel();
        thread::scope(|scope| {
            let folder = folder(&place);
            let second =
                scope.spawn(move || lock::stand_by(&folder, LONG, |_| _ = sender.send(())));
            tries.recv().unwrap();
            assert!(first.0.may_lead());
            drop(first);
            second.join().unwrap().unwrap();
        });
    }

    /// A leader on another host that gives signs of life keeps the lock. One that gives none loses it, and finds out.
    #[test]
    fn a_leader_without_a_sign_of_life_is_replaced_and_ends() {
        let place = tempfile::tempdir().unwrap();
        let first = lock::take(&folder(&place), SHORT).unwrap();
        written_elsewhere(&folder(&place));
        let mut tries = 0;
        let second = lock::stand_by(&folder(&place), SHORT, |_| {
            tries += 1;
            if tries < 4 {
                first.0.give(&mut first.0.sign.lock().unwrap());
                assert!(first.0.may_lead(), "nobody has taken over yet");
                written_elsewhere(&folder(&place));
            }
        });
        let second = second.unwrap();
        assert!(tries >= 4);
        // It wakes up.
        wait_until("the end of the lease", || now() >= first.0.until.load(Ordering::Relaxed));
        assert!(!first.0.may_lead());
        assert!(second.0.may_lead());
        assert!(lock::take(&folder(&place), SHORT).is_err(), "the second one has the lock");
    }

    /// Nobody stands by: a leader that was away goes on.
    #[test]
    fn a_leader_that_was_away_goes_on_if_nobody_took_over() {
        let place = tempfile::tempdir().unwrap();
        let lease = lock::take(&folder(&place), Duration::ZERO).unwrap();
        assert!(lease.0.may_lead() && lease.0.may_lead());
        // Also if the state is gone, which the store finds out.
        fs::remove_file(place.path().join(lock_file::NAME)).unwrap();
        assert!(lease.0.may_lead());
        assert_eq!(lock::take(&folder(&place), LONG).unwrap().0.length, LONG);
        assert!(!lease.0.may_lead(), "it is somebody else's now");
    }

    /// It looks again before a daemon that stands by could miss it, however seldom it has something to do.
    #[test]
    fn a_leader_with_nothing_to_do_gives_signs() {
        let place = tempfile::tempdir().unwrap();
        let lease = lock::take(&folder(&place), SHORT).unwrap();
        let said = || fs::read_to_string(place.path().join(lock_file::NAME)).unwrap();
        let first = said();
        wait_until("another sign of life", || {
            lease.ensure();
            first != said()
        });
        assert_eq!(lease.longest_rest() * SIGNS, SHORT);
    }

    /// Also while it opens a state that is large, before its loop has begun.
    #[test]
    fn signs_are_given_while_a_daemon_begins() {
        let place = tempfile::tempdir().unwrap();
        let lease = lock::take(&folder(&place), SHORT).unwrap();
        let said = || lock::last_sign(&folder(&place)).unwrap();
        let first = said();
        let keeper = lease.keep();
        wait_until("another sign of life", || first != said());
        drop(keeper);
        assert!(lease.0.may_lead());
    }

    /// Whoever stands in takes the lock of a daemon that is gone, and not that of one that has begun meanwhile.
    #[test]
    fn who_stands_in_leaves_the_lock_to_a_daemon() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        assert_eq!(lock::last_sign(&folder).unwrap(), "", "nobody was ever there");
        drop(lock::take(&folder, LONG).unwrap());
        let last = lock::last_sign(&folder).unwrap();
        assert!(lock::take_after(&folder, LONG, "another sign", true).unwrap().is_none());
        let lease = lock::take_after(&folder, LONG, &last, false).unwrap().unwrap();
        drop(lease);
        let own = lock::last_sign(&folder).unwrap();
        // A daemon has the lock, and has said nothing yet; this is the process of the test.
        let file = File::open(place.path().join(lock_file::NAME)).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(lock::take_after(&folder, LONG, &own, false).unwrap().is_none());
        drop(file);
        assert!(lock::take_after(&folder, LONG, &own, false).unwrap().is_some());
    }

    /// A leader that was away and cannot find out whether somebody took over does not act.
    #[test]
    fn who_cannot_tell_whether_it_leads_does_not() {
        let place = tempfile::tempdir().unwrap();
        let lease = lock::take(&folder(&place), Duration::ZERO).unwrap();
        assert!(lease.0.may_lead());
        let (turn, aside) = (place.path().join(lock_file::TURN), place.path().join("aside"));
        fs::rename(&turn, &aside).unwrap();
        // Neither it nor the lock file itself can be opened.
        fs::create_dir(&turn).unwrap();
        assert!(!lease.0.may_lead());
        fs::remove_dir(&turn).unwrap();
        fs::rename(&aside, &turn).unwrap();
        assert!(lease.0.may_lead());
        let path = place.path().join(lock_file::NAME);
        fs::rename(&path, &aside).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(!lease.0.may_lead());
    }

    /// The lock of a file that was replaced after it was opened is no lock.
    #[test]
    fn a_lock_on_a_file_that_was_replaced_is_none() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        drop(lock::take(&folder, LONG).unwrap());
        let file = File::open(place.path().join(lock_file::NAME)).unwrap();
        assert!(lock_file::is_at_its_place(&folder, &file).unwrap());
        fs::write(place.path().join("other"), "").unwrap();
        fs::rename(place.path().join("other"), place.path().join(lock_file::NAME)).unwrap();
        assert!(!lock_file::is_at_its_place(&folder, &file).unwrap());
        assert!(lock::take(&folder, LONG).is_ok());
    }

    /// A holder that says nothing of itself has an older version, and is only waited for.
    #[test]
    fn who_gives_no_signs_is_not_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(lock_file::NAME);
        drop(lock::take(&folder(&place), SHORT).unwrap());
        fs::write(&path, "77\n").unwrap();
        let file = File::open(&path).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        let mut file = Some(file);
        let mut tries = 0;
        let lease = lock::stand_by(&folder(&place), SHORT, |said| {
            assert!(file.is_some() && Holder::read(said).is_none());
            tries += 1;
            if tries == 3 {
                file = None;
            }
        });
        assert!(lease.is_ok() && file.is_none());
    }
}
