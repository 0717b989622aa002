//! Removes the files of attempts in the background, so that nobody waits for the disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

use super::folder::{Folder, GROUP};
use super::group::Group;
use super::speed;

/// Removes folders of attempts. Dropping it waits until all are removed.
#[derive(Default)]
pub(super) struct Removal {
    at_work: Option<(Sender<PathBuf>, JoinHandle<()>)>,
}

impl Removal {
    /// Schedules the folder of an attempt, and the files beside it, for removal.
    pub(super) fn remove(&mut self, folder: PathBuf) {
        if self.at_work.is_none() {
            let (sender, folders) = channel::<PathBuf>();
            let thread = Builder::new().name("removal".to_owned()).spawn(move || work(&folders));
            self.at_work = thread.ok().map(|thread| (sender, thread));
        }
        let unsent = match &self.at_work {
            Some((sender, _)) => sender.send(folder).err().map(|unsent| unsent.0),
            None => Some(folder),
        };
        if let Some(folder) = unsent {
            // What is left of it is the next daemon's.
            remove(&folder);
        }
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.at_work.take() {
            drop(sender);
            // Leftover files do no harm.
            let _ = thread.join();
        }
    }
}

/// The pauses between tries to remove a control group: its warden is about to end most of the time, but may take a while.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The number of tries, with the shortest pause, once no more folders come.
const LAST_TRIES: u32 = 200;

/// Removes folders until no more come. Those whose control group still has processes are tried again and again, and
/// hold up nobody else.
fn work(folders: &Receiver<PathBuf>) {
    let mut left: Vec<PathBuf> = Vec::new();
    let mut pause = SHORTEST_PAUSE;
    loop {
        let next = match left.is_empty() {
            true => folders.recv().map_err(RecvTimeoutError::from),
            false => folders.recv_timeout(pause),
        };
        match next {
            Ok(folder) if remove(&folder) => {}
            Ok(folder) => {
                left.push(folder);
                pause = SHORTEST_PAUSE;
            }
            Err(RecvTimeoutError::Timeout) => {
                left.retain(|folder| !remove(folder));
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    for _ in 0..LAST_TRIES {
        left.retain(|folder| !remove(folder));
        if left.is_empty() {
            break;
        }
        sleep(SHORTEST_PAUSE);
    }
}

/// Removes a folder; returns whether that need not be tried again. Files that cannot be removed do no harm; the next
/// daemon tries again.
fn remove(folder: &Path) -> bool {
    if let Ok(Some(group)) = Folder::at(folder).read_whole::<Group>(GROUP)
        && group.remove().is_err()
    {
        return false;
    }
    speed::remove(&speed::file_of(folder));
    let _ = fs::remove_dir_all(folder);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::wait_until;

    #[test]
    fn what_was_given_is_gone_in_the_end() {
        let place = tempfile::tempdir().unwrap();
        let mut removal = Removal::default();
        for number in 0..20 {
            let folder = place.path().join(format!("{number}.1"));
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("ended.json"), "").unwrap();
            speed::write(&speed::file_of(&folder), speed::FULL).unwrap();
            // A daemon was killed while it wrote another.
            fs::write(place.path().join(format!("{number}.1.speed.unfinished")), "0.").unwrap();
            removal.remove(folder);
        }
        removal.remove(place.path().join("never there"));
        drop(removal);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    fn wait_for_the_end_of(path: &Path) {
        wait_until(&format!("{} is to go", path.display()), || !path.exists());
    }

    /// Where a process is in the way of a group's removal, here it is a file.
    #[test]
    fn a_group_with_processes_is_removed_later_and_holds_up_nobody() {
        let place = tempfile::tempdir().unwrap();
        let folder = |name: &str| Folder::create(place.path().join(name)).unwrap();
        let group = place.path().join("group");
        fs::create_dir(&group).unwrap();
        fs::write(group.join("process"), "").unwrap();
        let (first, second) = (folder("1.1"), folder("2.1"));
        first.write(GROUP, &serde_json::json!({ "path": group })).unwrap();
        let mut removal = Removal::default();
        removal.remove(first.path.clone());
        removal.remove(second.path.clone());
        wait_for_the_end_of(&second.path);
        assert!(first.path.exists() && group.exists());
        fs::remove_file(group.join("process")).unwrap();
        wait_for_the_end_of(&first.path);
        assert!(!group.exists());
    }
}
