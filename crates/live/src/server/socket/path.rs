//! The socket's file: one daemon has it, and that of a dead one is replaced.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use busbar_trust::{Setting, TrustError, TrustedFolder};
use rustix::fs::{FlockOperation, OFlags, flock};

use crate::host::file_identity::{FileIdentity, file_identity};

/// What names the socket.
const SOCKET: Setting = Setting("'socket = …' in the configuration, or --socket");

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another daemon listens there.
    #[error("another daemon listens on {}; stop it with 'busbar stop', or name another socket", path.display())]
    Another {
        /// The path of the socket.
        path: PathBuf,
    },
    /// There is a file that is not a socket.
    #[error("{} exists and is not a socket; remove it, or name another socket", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The path is too long for a socket.
    #[error("the path of the socket, {}, is too long; a socket's path has at most 107 bytes", path.display())]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// Another user could replace the socket.
    #[error(transparent)]
    Untrusted(#[from] TrustError),
    /// A file or folder cannot be used.
    #[error("cannot {what} {}", path.display())]
    File {
        /// The operation, to be read after "cannot".
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A socket's file, and the lock beside it, which is held as long as this exists, so that two daemons that start together do
/// not replace each other's socket.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: FileIdentity,
    lock: File,
}

impl SocketFile {
    /// Listens on a socket of this name. The socket of a dead daemon is replaced.
    pub(super) fn new(path: &Path) -> Result<(Self, UnixListener), BindError> {
        // Other users must reach the socket, but must not be able to replace it.
        let folder = TrustedFolder::around(folder_of(path), 0o755, SOCKET)?;
        let lock = lock(path, &folder)?;
        let (listener, identity) = listen(path)?;
        Ok((SocketFile { path: path.to_owned(), identity, lock }, listener))
    }

    /// An error about the file; `what` is to be read after "cannot".
    pub(super) fn failed(&self, what: &'static str, source: io::Error) -> BindError {
        BindError::File { what, path: self.path.clone(), source }
    }

    /// Whether the file is still there.
    fn is_there(&self) -> bool {
        file_identity(&self.path) == Some(self.identity)
    }

    /// Listens again if the file was removed. The folder is created again only if `may_make_folder`.
    pub(super) fn restore(
        &mut self,
        may_make_folder: bool,
    ) -> Result<Option<UnixListener>, BindError> {
        if self.is_there() {
            return Ok(None);
        }
        let failed = |source| self.failed("listen again on", source);
        let folder = folder_of(&self.path);
        if !may_make_folder && !folder.exists() {
            return Err(failed(io::Error::new(io::ErrorKind::NotFound, "its folder is gone")));
        }
        let folder = TrustedFolder::around(folder, 0o755, SOCKET)?;
        let held = self.lock.metadata().map_err(failed)?;
        if file_identity(&folder.path().join(lock_of(&self.path))) != Some((held.dev(), held.ino()))
        {
            self.lock = lock(&self.path, &folder)?;
        }
        let (listener, identity) = listen(&self.path)?;
        self.identity = identity;
        Ok(Some(listener))
    }

    /// Removes the file, if it is still this one.
    pub(super) fn remove(&self) {
        if self.is_there() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The folder of a socket.
fn folder_of(path: &Path) -> &Path {
    let named = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    named.unwrap_or(Path::new("."))
}

/// Creates a socket of this name that all users may use.
fn listen(path: &Path) -> Result<(UnixListener, FileIdentity), BindError> {
    let failed = |what| move |source| BindError::File { what, path: path.to_owned(), source };
    make_way(path)?;
    let listener = UnixListener::bind(path).map_err(|source| match source.kind() {
        io::ErrorKind::InvalidInput => BindError::TooLong { path: path.to_owned() },
        _ => failed("listen on")(source),
    })?;
    fs::set_permissions(path, Permissions::from_mode(0o666)).map_err(failed("let others use"))?;
    let gone = || failed("listen on")(io::ErrorKind::NotFound.into());
    let identity = file_identity(path).ok_or_else(gone)?;
    Ok((listener, identity))
}

/// The name of the lock beside a socket.
fn lock_of(path: &Path) -> OsString {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    name
}

/// Takes the lock beside the socket. Its file is never removed, since a lock on a removed file
/// excludes nobody.
fn lock(path: &Path, folder: &TrustedFolder) -> Result<File, BindError> {
    let name = lock_of(path);
    let failed = |source| BindError::File { what: "lock", path: folder.path().join(&name), source };
    let file = folder.file(&name, OFlags::WRONLY)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(BindError::Another { path: path.to_owned() }),
        Err(error) => Err(failed(error.into())),
    }
}

/// Removes the socket of a dead daemon.
fn make_way(path: &Path) -> Result<(), BindError> {
    let failed = |what| move |source| BindError::File { what, path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            Err(BindError::NotASocket { path: path.to_owned() })
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            Err(BindError::Another { path: path.to_owned() })
        }
        Ok(_) => fs::remove_file(path).map_err(failed("replace")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("look at")(error)),
    }
}
