//! Notices if a file of the state is removed or replaced while it is open. Writing to a removed file
//! succeeds, but nothing of it is there after a restart.

use std::path::{Path, PathBuf};

use super::StoreError;
use super::connection::beside;
use crate::host::file_identity::{FileIdentity, file_identity};

/// The files of a state with their identities.
#[derive(Debug)]
pub(super) struct OpenedFiles(Vec<(PathBuf, FileIdentity)>);

impl OpenedFiles {
    /// The folder, the lock, the database, and SQLite's files beside it, as far as they exist.
    pub(super) fn now(folder: &Path, database: &Path) -> Self {
        let files = [
            folder.to_owned(),
            folder.join("lock"),
            database.to_owned(),
            beside(database, "-wal"),
            beside(database, "-shm"),
        ];
        let known = |path: PathBuf| file_identity(&path).map(|identity| (path, identity));
        OpenedFiles(files.into_iter().filter_map(known).collect())
    }

    /// An error if one of them was removed or replaced.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        for (path, before) in &self.0 {
            let what = match file_identity(path) {
                Some(now) if now == *before => continue,
                Some(_) => "replaced",
                None => "removed",
            };
            return Err(StoreError::Gone { path: path.clone(), what });
        }
        Ok(())
    }
}
