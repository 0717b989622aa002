//! Removes the files of attempts in the background, so that nobody waits for the disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
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
            let work = move || folders.iter().for_each(|folder| remove(&folder));
            let thread = Builder::new().name("removal".to_owned()).spawn(work);
            self.at_work = thread.ok().map(|thread| (sender, thread));
        }
        let unsent = match &self.at_work {
            Some((sender, _)) => sender.send(folder).err().map(|unsent| unsent.0),
            None => Some(folder),
        };
        if let Some(folder) = unsent {
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

/// The number of tries to remove a control group whose warden is about to end.
const TRIES: u32 = 200;

/// Files that cannot be removed do no harm; the next daemon tries again.
fn remove(folder: &Path) {
    if let Ok(Some(group)) = Folder::at(folder).read_whole::<Group>(GROUP) {
        let is_gone = (0..TRIES).any(|_| {
            let removed = group.remove();
            removed.is_ok() || {
                sleep(Duration::from_millis(10));
                false
            }
        });
        if !is_gone {
            return;
        }
    }
    speed::remove(&speed::file_of(folder));
    let _ = fs::remove_dir_all(folder);
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
