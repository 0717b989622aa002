//! Which users could change a file or folder, by its owner and its permissions.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FileType, Stat, lgetxattr};
use rustix::io::Errno;

use crate::error::TrustError;
use crate::groups;
use crate::setting::Setting;

/// The role of a file or folder.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Busbar's own file or folder.
    Own,
    /// The same in a folder that others cannot enter, where permissions mean nothing to them.
    OutOfReach,
    /// A folder that contains something of Busbar.
    Around,
}

/// What the system says of a file or folder.
#[derive(Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) kind: FileType,
    owner: u32,
    group: u32,
    mode: u32,
    links: u64,
}

impl From<&Metadata> for Facts {
    fn from(found: &Metadata) -> Self {
        Facts {
            kind: FileType::from_raw_mode(found.mode()),
            owner: found.uid(),
            group: found.gid(),
            mode: found.mode() & 0o7777,
            links: found.nlink(),
        }
    }
}

impl From<Stat> for Facts {
    #[allow(
        clippy::useless_conversion,
        reason = "the width of the number of links differs between processors"
    )]
    fn from(found: Stat) -> Self {
        Facts {
            kind: FileType::from_raw_mode(found.st_mode),
            owner: found.st_uid,
            group: found.st_gid,
            mode: found.st_mode & 0o7777,
            links: found.st_nlink.into(),
        }
    }
}

impl Facts {
    pub(crate) fn is_folder(&self) -> bool {
        self.kind == FileType::Directory
    }

    /// Whether other users could open what is in a folder.
    pub(crate) fn is_open_to_others(&self) -> bool {
        self.mode & 0o011 != 0
    }

    /// Refuses what another user could change.
    pub(crate) fn judge(
        &self,
        path: &Path,
        role: Role,
        setting: Setting,
    ) -> Result<(), TrustError> {
        let user = rustix::process::geteuid().as_raw();
        let Facts { owner, group, mode, .. } = *self;
        // As a umask of 002 leaves it, for systems where each user has a group.
        let is_among_friends = |path: &Path| {
            mode & 0o002 == 0 && groups::has_only(group, user) && !has_access_list(path)
        };
        let path = path.to_owned();
        if owner != 0 && owner != user {
            return Err(match role {
                Role::Own | Role::OutOfReach => {
                    TrustError::Owner { path, owner, group, user, setting }
                }
                Role::Around => TrustError::OwnerAbove { path, owner, setting },
            });
        }
        // The permissions of a link mean nothing, and a socket is meant for others.
        let has_permissions = matches!(self.kind, FileType::Directory | FileType::RegularFile);
        let is_closed = mode & 0o022 == 0 || !has_permissions;
        let is_sticky = mode & 0o1000 != 0;
        match role {
            _ if is_closed => Ok(()),
            Role::OutOfReach => Ok(()),
            Role::Around if is_sticky => Ok(()),
            Role::Own | Role::Around if is_among_friends(&path) => Ok(()),
            Role::Own => Err(TrustError::Writable { path, mode, setting }),
            Role::Around => Err(TrustError::WritableAbove { path, mode, setting }),
        }
    }

    /// The same for an entry of a folder, which may also be another name of something elsewhere.
    pub(crate) fn judge_entry(
        &self,
        path: &Path,
        role: Role,
        setting: Setting,
    ) -> Result<(), TrustError> {
        let what = match self.kind {
            FileType::Symlink => return Err(TrustError::Link { path: path.to_owned(), setting }),
            FileType::RegularFile | FileType::Directory | FileType::Socket => None,
            FileType::Fifo => Some("a pipe"),
            _ => Some("a device"),
        };
        if let Some(what) = what {
            return Err(TrustError::Kind { path: path.to_owned(), what, setting });
        }
        self.judge(path, role, setting)?;
        if self.kind == FileType::RegularFile && self.links > 1 {
            return Err(TrustError::HardLink { path: path.to_owned(), setting });
        }
        Ok(())
    }

    /// The same for an entry that is to be a file.
    pub(crate) fn judge_file(&self, path: &Path, setting: Setting) -> Result<(), TrustError> {
        self.judge_entry(path, Role::Own, setting)?;
        let what = match self.kind {
            FileType::RegularFile => return Ok(()),
            FileType::Directory => "a folder",
            _ => "a socket",
        };
        Err(TrustError::Kind { path: path.to_owned(), what, setting })
    }
}

/// Whether there may be an access control list (POSIX), with which the permissions of the group are the most that any
/// user or group of the list may have, and say nothing about the group itself.
fn has_access_list(path: &Path) -> bool {
    let found = lgetxattr(path, "system.posix_acl_access", &mut [0_u8; 0][..]);
    !matches!(found, Err(Errno::NODATA | Errno::OPNOTSUPP))
}
