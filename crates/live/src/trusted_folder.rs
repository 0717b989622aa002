//! Folders and files that a daemon can trust, because only its own user and root can change them.
//!
//! The state folder decides what a daemon does: its database contains the commands that are run,
//! perhaps as root. So a folder that another user could change or replace is refused, with the reason
//! and advice. Symbolic links on the way to a folder are followed if they belong to the same users;
//! within the folder none is followed.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, fchmod, mkdirat, openat};

mod groups;
#[cfg(test)]
mod tests;

/// The largest number of symbolic links on the way to a folder, as in the kernel.
const MOST_LINKS: u32 = 40;

/// A folder that only the daemon's user and root can change, held open.
#[derive(Debug)]
pub struct TrustedFolder {
    /// The path without symbolic links.
    path: PathBuf,
    folder: File,
}

/// Why a folder or a file is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// Another user owns it.
    #[error(
        "{path} belongs to user {owner}, who could make the daemon, which runs as user {user}, do anything; \
         name another folder, or if you trust everything in this one: chown -R {user} {path}",
        path = path.display()
    )]
    Owner {
        /// The path.
        path: PathBuf,
        /// The owner's user ID.
        owner: u32,
        /// The daemon's user ID.
        user: u32,
    },
    /// Other users can write to it.
    #[error(
        "{path} can be written to by others (mode {mode:04o}), who could make the daemon do anything; if you \
         trust everything in it: chmod go-w {path}",
        path = path.display()
    )]
    Writable {
        /// The path.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Another user owns a folder above it, or one that it shares with others.
    #[error(
        "{} belongs to user {owner}, who could put something else in the place of what the daemon keeps \
         there; name a folder elsewhere",
        path.display()
    )]
    OwnerAbove {
        /// The path.
        path: PathBuf,
        /// The owner's user ID.
        owner: u32,
    },
    /// Other users can write to a folder above it, or to one that it shares with others.
    #[error(
        "{path} can be written to by others (mode {mode:04o}), who could put something else in the place of \
         what the daemon keeps there; name a folder elsewhere, or: chmod go-w {path}",
        path = path.display()
    )]
    WritableAbove {
        /// The path.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It is a symbolic link.
    #[error(
        "{} is a symbolic link, and a daemon follows none within its folders; remove it, or put what it \
         names in its place",
        path.display()
    )]
    Link {
        /// The path.
        path: PathBuf,
    },
    /// It is a file with several hard links.
    #[error(
        "{} is the same file as another one (a hard link), which the daemon would overwrite; remove it",
        path.display()
    )]
    HardLink {
        /// The path.
        path: PathBuf,
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

/// The role of a file or folder for a daemon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The daemon's own file or folder.
    Own,
    /// A folder that contains something of the daemon.
    Around,
}

impl TrustedFolder {
    /// Opens the daemon's own folder. It is created, with those above it, if it does not exist.
    pub fn of(path: &Path, mode: u32) -> Result<Self, TrustError> {
        TrustedFolder::enter(path, mode, Role::Own)
    }

    /// Opens a folder that a daemon shares with others, such as `/tmp`, where nobody can replace
    /// another user's files. It is created, with those above it, if it does not exist.
    pub fn around(path: &Path, mode: u32) -> Result<Self, TrustError> {
        TrustedFolder::enter(path, mode, Role::Around)
    }

    /// Walks to a folder step by step. Each step is checked before the next, so that folders are
    /// created only where nobody else could interfere.
    fn enter(path: &Path, mode: u32, role: Role) -> Result<Self, TrustError> {
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| TrustError::File { what, path, source }
        };
        let whole = std::path::absolute(path).map_err(failed("find", path))?;
        let mut rest = steps(&whole);
        let mut here = PathBuf::from("/");
        let mut links = 0;
        while let Some(step) = rest.pop_front() {
            if step == ".." {
                here.pop();
                continue;
            }
            // `here` is always a folder.
            let above = here.symlink_metadata().map_err(failed("look at", &here))?;
            judge(&here, &above, Role::Around)?;
            let next = here.join(&step);
            match next.symlink_metadata() {
                Ok(found) if found.is_symlink() => {
                    judge(&next, &found, Role::Around)?;
                    links += 1;
                    if links > MOST_LINKS {
                        let source = io::Error::other("there are too many symbolic links");
                        return Err(failed("find", path)(source));
                    }
                    let target = fs::read_link(&next).map_err(failed("look at", &next))?;
                    if target.is_absolute() {
                        here = PathBuf::from("/");
                    }
                    for step in steps(&target).into_iter().rev() {
                        rest.push_front(step);
                    }
                }
                Ok(_) => here = next,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match DirBuilder::new().mode(mode).create(&next) {
                        Ok(()) if rest.is_empty() => {
                            let made = TrustedFolder::open(next, role)?;
                            // Independent of the umask.
                            made.allow(mode)?;
                            return Ok(made);
                        }
                        Ok(()) => here = next,
                        // Another process created it; it is checked now.
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                            rest.push_front(step);
                        }
                        Err(error) => return Err(failed("make the folder", &next)(error)),
                    }
                }
                Err(error) => return Err(failed("look at", &next)(error)),
            }
        }
        TrustedFolder::open(here, role)
    }

    fn open(path: PathBuf, role: Role) -> Result<Self, TrustError> {
        let folder = open_folder(CWD, &path, &path)?;
        let found = folder.metadata().map_err(|source| {
            let path = path.clone();
            TrustError::File { what: "look at", path, source }
        })?;
        judge(&path, &found, role)?;
        Ok(TrustedFolder { path, folder })
    }

    fn allow(&self, mode: u32) -> Result<(), TrustError> {
        fchmod(&self.folder, Mode::from_raw_mode(mode)).map_err(|error| {
            let path = self.path.clone();
            TrustError::File { what: "set the permissions of", path, source: error.into() }
        })
    }

    /// The path without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a subfolder with these permissions; it is created if it does not exist.
    pub fn folder(&self, name: &str, mode: u32) -> Result<TrustedFolder, TrustError> {
        let path = self.path.join(name);
        match mkdirat(&self.folder, name, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => {
                let (what, source) = ("make the folder", error.into());
                return Err(TrustError::File { what, path, source });
            }
        }
        self.check(name)?;
        let folder = open_folder(&self.folder, Path::new(name), &path)?;
        let custody = TrustedFolder { path, folder };
        custody.allow(mode)?;
        Ok(custody)
    }

    /// Opens a file that only the daemon writes to; it is created if it does not exist, readable by
    /// the owner only.
    pub fn file(&self, name: impl AsRef<Path>, how: OFlags) -> Result<File, TrustError> {
        let name = name.as_ref();
        let path = self.path.join(name);
        let failed = |source| TrustError::File { what: "write to", path: path.clone(), source };
        self.check(name)?;
        let how = how | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, name, how, Mode::RUSR | Mode::WUSR);
        let file = File::from(file.map_err(|error| failed(error.into()))?);
        let found = file.metadata().map_err(failed)?;
        judge(&path, &found, Role::Own)?;
        match found.nlink() {
            0 | 1 => Ok(file),
            _ => Err(TrustError::HardLink { path }),
        }
    }

    /// Checks whether an entry can be trusted, if it exists.
    pub fn check(&self, name: impl AsRef<Path>) -> Result<(), TrustError> {
        let path = self.path.join(name);
        match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => Err(TrustError::Link { path }),
            Ok(found) => judge(&path, &found, Role::Own),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(TrustError::File { what: "look at", path, source }),
        }
    }

    /// Checks whether all entries can be trusted.
    pub fn check_all(&self) -> Result<(), TrustError> {
        let failed =
            |source| TrustError::File { what: "look into", path: self.path.clone(), source };
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            self.check(entry.map_err(failed)?.file_name())?;
        }
        Ok(())
    }
}

/// The device of a file, and its inode number there.
pub(crate) type FileIdentity = (u64, u64);

/// The identity of a file, if it exists; a symbolic link is not followed.
pub(crate) fn file_identity(path: &Path) -> Option<FileIdentity> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// The steps of a path.
fn steps(path: &Path) -> VecDeque<OsString> {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().filter_map(step).collect()
}

fn open_folder(at: impl std::os::fd::AsFd, name: &Path, path: &Path) -> Result<File, TrustError> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, how, Mode::empty()).map(File::from).map_err(|error| {
        let path = path.to_owned();
        TrustError::File { what: "open the folder", path, source: error.into() }
    })
}

/// Refuses what another user could change.
fn judge(path: &Path, found: &Metadata, role: Role) -> Result<(), TrustError> {
    let user = rustix::process::geteuid().as_raw();
    let (owner, mode) = (found.uid(), found.mode() & 0o7777);
    let path = path.to_owned();
    if owner != 0 && owner != user {
        return Err(match role {
            Role::Own => TrustError::Owner { path, owner, user },
            Role::Around => TrustError::OwnerAbove { path, owner },
        });
    }
    // The permissions of a link mean nothing, and a socket is meant for others.
    let is_closed = mode & 0o022 == 0 || !(found.is_dir() || found.is_file());
    let is_sticky = mode & 0o1000 != 0;
    let is_among_friends = || mode & 0o002 == 0 && groups::has_only(found.gid(), user);
    match role {
        _ if is_closed => Ok(()),
        Role::Own => Err(TrustError::Writable { path, mode }),
        Role::Around if is_sticky || is_among_friends() => Ok(()),
        Role::Around => Err(TrustError::WritableAbove { path, mode }),
    }
}
