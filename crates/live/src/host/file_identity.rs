//! Tells a file from another one that has taken its place.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The device of a file, and its inode number there.
pub(crate) type FileIdentity = (u64, u64);

/// The identity of a file, if it exists; a symbolic link is not followed.
pub(crate) fn file_identity(path: &Path) -> Option<FileIdentity> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}
