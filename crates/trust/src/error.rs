//! Why something is not trusted, with advice.

use std::io;
use std::path::PathBuf;

use crate::setting::Setting;

/// Why a folder or a file is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// Another user owns it.
    #[error(
        "{} belongs to user {owner}, who could control Busbar, which runs as user {user}. Files that they left \
        there stay theirs, even if you change the folder's owner; run Busbar as that user, or {setting}",
        path.display()
    )]
    Owner {
        /// The path.
        path: PathBuf,
        /// The owner's user ID.
        owner: u32,
        /// The ID of its group.
        group: u32,
        /// The user ID of this process.
        user: u32,
        /// What names the folder.
        setting: Setting,
    },
    /// Other users can write to it.
    #[error(
        "{} is writable by others (mode {mode:04o}), who could control Busbar. Files that they left there stay \
        theirs, even if you change its permissions; {setting}",
        path.display()
    )]
    Writable {
        /// The path.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// What names the folder.
        setting: Setting,
    },
    /// Another user owns a folder above it, or one that it shares with others.
    #[error(
        "{} belongs to user {owner}, who could replace Busbar's files there; {setting}",
        path.display()
    )]
    OwnerAbove {
        /// The path.
        path: PathBuf,
        /// The owner's user ID.
        owner: u32,
        /// What names the folder.
        setting: Setting,
    },
    /// Other users can write to a folder above it, or to one that it shares with others.
    #[error(
        "{path} is writable by others (mode {mode:04o}), who could replace Busbar's files there; {setting}, or, \
        if it has no files of Busbar yet: chmod go-w {path}",
        path = path.display()
    )]
    WritableAbove {
        /// The path.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// What names the folder.
        setting: Setting,
    },
    /// It is a symbolic link.
    #[error(
        "{} is a symbolic link, and Busbar follows none within its folders; if you made it, remove it; if not, {setting}",
        path.display()
    )]
    Link {
        /// The path.
        path: PathBuf,
        /// What names the folder.
        setting: Setting,
    },
    /// It is a file with several hard links.
    #[error(
        "{} is the same file as another one (a hard link), which Busbar would read and overwrite; if you made it, remove \
         it; if not, {setting}",
        path.display()
    )]
    HardLink {
        /// The path.
        path: PathBuf,
        /// What names the folder.
        setting: Setting,
    },
    /// It is a device, a pipe, or a folder in the place of a file.
    #[error("{} is {what}, which is not a file of Busbar; if you made it, remove it; if not, {setting}", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
        /// The quantity in question.
        what: &'static str,
        /// What names the folder.
        setting: Setting,
    },
    /// It cannot be created or opened.
    #[error("cannot {what} {}", path.display())]
    File {
        /// The operation, to be read after "cannot".
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl From<TrustError> for io::Error {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::File { what, path, source } => {
                let text = format!("cannot {what} {}: {source}", path.display());
                io::Error::new(source.kind(), text)
            }
            untrusted => io::Error::new(io::ErrorKind::PermissionDenied, untrusted.to_string()),
        }
    }
}
