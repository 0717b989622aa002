//! Whether the files of a state are still where they were opened. Whoever has a file open can write to it
//! although it was removed, and nothing of that is there after a restart.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::StoreError;
use super::file::beside;

/// The files of a state by their identities.
#[derive(Debug)]
pub(super) struct OpenedFiles(Vec<(PathBuf, Identity)>);

/// The device of a file, and its number there.
type Identity = (u64, u64);

fn identity(path: &Path) -> Option<Identity> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

impl OpenedFiles {
    /// All that is there now: the folder, the lock, the database, and what SQLite keeps beside it.
    pub(super) fn now(folder: &Path, database: &Path) -> Self {
        let files = [
            folder.to_owned(),
            folder.join("lock"),
            database.to_owned(),
            beside(database, "-wal"),
            beside(database, "-shm"),
        ];
        let known = |path: PathBuf| identity(&path).map(|identity| (path, identity));
        OpenedFiles(files.into_iter().filter_map(known).collect())
    }

    /// An error if something was removed, or is something else now.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        for (path, before) in &self.0 {
            let what = match identity(path) {
                Some(now) if now == *before => continue,
                Some(_) => "replaced",
                None => "removed",
            };
            return Err(StoreError::Gone { path: path.clone(), what });
        }
        Ok(())
    }
}
