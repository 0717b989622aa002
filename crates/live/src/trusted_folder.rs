//! Folders and files that a daemon relies on: nobody but its own user and root can change them.
//!
//! What is in the state folder decides what a daemon does. Its database names the commands that are run,
//! as root if root runs the daemon. So a folder that somebody else could change, or could put something
//! in the place of, is refused, with the reason and what to do about it. Symbolic links on the way to a
//! folder are followed if they belong to the same users; within the folder none is followed.

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

/// The most symbolic links on the way to a folder, as in the kernel.
const MOST_LINKS: u32 = 40;

/// A folder that only the daemon's user and root can change, held open.
#[derive(Debug)]
pub struct TrustedFolder {
    /// Without symbolic links.
    path: PathBuf,
    folder: File,
}

/// Why a folder or a file is not relied on.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It is somebody else's.
    #[error(
        "{path} belongs to user {owner}, who could make the daemon, which runs as user {user}, do anything; \
         name another folder, or if you trust everything in this one: chown -R {user} {path}",
        path = path.display()
    )]
    Owner {
        /// What.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// As whom the daemon runs.
        user: u32,
    },
    /// Others can write to it.
    #[error(
        "{path} can be written to by others (mode {mode:04o}), who could make the daemon do anything; if you \
         trust everything in it: chmod go-w {path}",
        path = path.display()
    )]
    Writable {
        /// What.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A folder above it, or one that it shares with others, is somebody else's.
    #[error(
        "{} belongs to user {owner}, who could put something else in the place of what the daemon keeps \
         there; name a folder elsewhere",
        path.display()
    )]
    OwnerAbove {
        /// Which.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// Others can write to a folder above it, or to one that it shares with others.
    #[error(
        "{path} can be written to by others (mode {mode:04o}), who could put something else in the place of \
         what the daemon keeps there; name a folder elsewhere, or: chmod go-w {path}",
        path = path.display()
    )]
    WritableAbove {
        /// Which.
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
        /// What.
        path: PathBuf,
    },
    /// It is a file that has other names as well.
    #[error(
        "{} is the same file as another one (a hard link), which the daemon would overwrite; remove it",
        path.display()
    )]
    HardLink {
        /// What.
        path: PathBuf,
    },
    /// It cannot be made or opened.
    #[error("cannot {what} {}", path.display())]
    File {
        /// What was to be done.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// What a file or folder is to a daemon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Its own.
    Own,
    /// A folder in which it has something of its own.
    Around,
}

impl TrustedFolder {
    /// The daemon's own folder. If it is not there it is made, with those above it.
    pub fn of(path: &Path, mode: u32) -> Result<Self, TrustError> {
        TrustedFolder::enter(path, mode, Role::Own)
    }

    /// A folder in which a daemon has something beside others, such as `/tmp`, where nobody can replace
    /// what is another's. If it is not there it is made, with those above it.
    pub fn around(path: &Path, mode: u32) -> Result<Self, TrustError> {
        TrustedFolder::enter(path, mode, Role::Around)
    }

    /// Goes to a folder step by step. Each step is judged before the next is taken, so that what is made is
    /// made where nobody else could have done so.
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
            // Only a folder is above anything.
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
                            // Whatever the umask says.
                            made.allow(mode)?;
                            return Ok(made);
                        }
                        Ok(()) => here = next,
                        // Somebody was faster; what they made is looked at.
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

    /// Where it is, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder in it, with these permissions; it is made if it is not there.
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

    /// Opens a file in it that only the daemon writes to; it is made if it is not there, for nobody else to
    /// read.
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

    /// Whether something in it can be relied on, if it is there.
    pub fn check(&self, name: impl AsRef<Path>) -> Result<(), TrustError> {
        let path = self.path.join(name);
        match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => Err(TrustError::Link { path }),
            Ok(found) => judge(&path, &found, Role::Own),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(TrustError::File { what: "look at", path, source }),
        }
    }

    /// Whether everything that is directly in it can be relied on.
    pub fn check_all(&self) -> Result<(), TrustError> {
        let failed =
            |source| TrustError::File { what: "look into", path: self.path.clone(), source };
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            self.check(entry.map_err(failed)?.file_name())?;
        }
        Ok(())
    }
}

/// The steps of a path, one after another.
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

/// Refuses what somebody else could change.
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
    // The permissions of a link mean nothing, and a socket is there for others.
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
