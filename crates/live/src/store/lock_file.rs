//! The files by which daemons with the same state agree on who leads.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use busbar_trust::TrustedFolder;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::StoreError;
use crate::host::file_identity::FileIdentity;

/// The name of the lock file.
pub(super) const NAME: &str = "lock";

/// The name of the file that is locked by whoever changes who leads.
pub(super) const TURN: &str = "takeover";

/// The right to change who leads. Whoever wants to take the place of a leader takes it first, and so does a leader who was away for
/// longer than it may be; so only one of them finds that it may lead.
pub(super) fn turn(folder: &TrustedFolder) -> Result<File, StoreError> {
    let file = folder.file(TURN, OFlags::RDWR)?;
    flock(&file, FlockOperation::LockExclusive)
        .map_err(|errno| unwritable(folder.path(), errno))?;
    Ok(file)
}

/// The identity of the lock file that is there now, if there is one. It is opened, as other hosts may have replaced it a moment
/// ago.
pub(super) fn file_at(folder: &TrustedFolder) -> Result<Option<FileIdentity>, StoreError> {
    let Some(file) = folder.existing_file(NAME)? else { return Ok(None) };
    identity(folder, &file).map(Some)
}

/// Whether a file that was opened as the lock file is still that.
pub(super) fn is_at_its_place(folder: &TrustedFolder, file: &File) -> Result<bool, StoreError> {
    Ok(file_at(folder)? == Some(identity(folder, file)?))
}

/// What tells a lock file from others.
pub(super) fn identity(folder: &TrustedFolder, file: &File) -> Result<FileIdentity, StoreError> {
    let path = || folder.path().join(NAME);
    let found =
        file.metadata().map_err(|source| StoreError::Unwritable { path: path(), source })?;
    Ok((found.dev(), found.ino()))
}

/// The system does not let the lock file be used.
pub(super) fn unwritable(folder: &Path, errno: Errno) -> StoreError {
    StoreError::Unwritable { path: folder.join(NAME), source: errno.into() }
}
