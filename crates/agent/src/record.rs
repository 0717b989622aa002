//! The state that an agent keeps for a restart: the site's own limits, and the caps that a controller set.
//!
//! It is one file, replaced as a whole. The site's limits are on disk before the first limit is changed.
//! Later changes of caps are written without waiting for the disk: after a power failure the hardware has
//! forgotten them as well.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use busbar_core::units::Watts;
use busbar_trust::{Durability, Setting, TrustError, TrustedFolder};
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use crate::control::Limit;
use crate::domain::DomainName;
use crate::instance::Instance;

/// What names the folder.
pub(crate) const STATE: Setting = Setting("'state = …' in the agent's configuration");

/// The name of the file.
const FILE: &str = "limits.json";

/// The version of the file's format.
const FORMAT: u32 = 1;

/// What is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    format: u32,
    /// The boot in which it was written.
    pub(crate) boot: String,
    /// The limits that the site had.
    pub(crate) limits: BTreeMap<DomainName, SiteLimit>,
    /// The caps that a controller set, and that must not be exceeded.
    pub(crate) caps: BTreeMap<DomainName, Watts>,
    /// The controller that relies on the caps.
    pub(crate) controller: Option<Controller>,
}

/// A limit that the site had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SiteLimit {
    /// The hardware that it belongs to.
    pub(crate) source: String,
    /// The limit.
    pub(crate) limit: Limit,
}

/// The controller that relies on the caps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Controller {
    /// The user or certificate.
    pub(crate) name: String,
    /// Which of several controllers of that name, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instance: Option<Instance>,
    /// The lease.
    pub(crate) lease: Duration,
    /// When it got the lease, in milliseconds since 1970.
    #[serde(default)]
    pub(crate) since: u64,
}

/// Why an agent cannot keep its record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The folder or a file in it cannot be made or opened, or another user could have changed it.
    #[error(transparent)]
    Folder(#[from] TrustError),
    /// A file cannot be read or written.
    #[error("cannot {what} {}", path.display())]
    File {
        /// The attempted action.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error that caused it.
        source: io::Error,
    },
    /// Another user's agent has saved limits, and this process is to restore them.
    #[error(
        "{} belongs to user {owner}, and this is user {user}. If that is the agent's user, root restores the limits in its \
         name: setpriv --reuid {owner} --regid {group} --clear-groups --inh-caps +dac_override --ambient-caps +dac_override \
         busbar agent restore",
        path.display()
    )]
    OfAnother {
        /// The folder.
        path: PathBuf,
        /// The owner's user ID.
        owner: u32,
        /// The ID of its group.
        group: u32,
        /// The user ID of this process.
        user: u32,
    },
    /// No agent has saved limits that could be restored.
    #[error(
        "no agent has saved the site's limits in {}; name the folder that the node's agent used with 'state', or \
        restart the node, which restores them",
        path.display()
    )]
    NothingSaved {
        /// The folder.
        path: PathBuf,
    },
    /// Another agent uses the folder.
    #[error("another agent uses {}; stop it first, or name another folder with 'state'", path.display())]
    Taken {
        /// The folder.
        path: PathBuf,
    },
    /// The file cannot be understood.
    #[error(
        "{} cannot be read: {reason}. It holds the site's own limits. If you know them, or the node was restarted \
        since, remove the file; the agent then takes the current limits as the site's",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// The file, and the folder that this agent alone uses.
#[derive(Debug)]
pub(crate) struct RecordFile {
    folder: TrustedFolder,
    _lock: File,
}

impl RecordFile {
    /// Takes the folder for this agent, and reads what is kept in it.
    pub(crate) fn open(folder: &Path) -> Result<(Self, Option<Record>), RecordError> {
        RecordFile::take(TrustedFolder::of(folder, 0o700, STATE)?)
    }

    /// The same for a folder in which an agent has saved limits. A new record would take the caps that are in force for
    /// the site's limits.
    pub(crate) fn existing(folder: &Path) -> Result<(Self, Record), RecordError> {
        let nothing = || RecordError::NothingSaved { path: folder.to_owned() };
        let trusted = TrustedFolder::existing(folder, STATE).map_err(|error| match error {
            TrustError::Owner { path, owner, group, user, .. } => {
                RecordError::OfAnother { path, owner, group, user }
            }
            TrustError::File { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                nothing()
            }
            error => error.into(),
        })?;
        // Before anything is written to a folder that is perhaps not an agent's.
        trusted.existing_file(FILE)?.ok_or_else(nothing)?;
        let (file, record) = RecordFile::take(trusted)?;
        Ok((file, record.ok_or_else(nothing)?))
    }

    fn take(folder: TrustedFolder) -> Result<(Self, Option<Record>), RecordError> {
        folder.check_all()?;
        let lock = folder.file("lock", OFlags::WRONLY)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => (),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(RecordError::Taken { path: folder.path().to_owned() });
            }
            Err(error) => {
                let path = folder.path().join("lock");
                return Err(RecordError::File { what: "lock", path, source: error.into() });
            }
        }
        let file = RecordFile { folder, _lock: lock };
        let record = file.read()?;
        Ok((file, record))
    }

    /// The folder, for what else the agent keeps in it.
    pub(crate) fn folder(&self) -> &TrustedFolder {
        &self.folder
    }

    fn read(&self) -> Result<Option<Record>, RecordError> {
        let path = self.folder.path().join(FILE);
        let Some(mut file) = self.folder.existing_file(FILE)? else { return Ok(None) };
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|source| RecordError::File {
            what: "read",
            path: path.clone(),
            source,
        })?;
        let damaged = |reason: String| RecordError::Damaged { path: path.clone(), reason };
        let record: Record =
            serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        match record.format {
            FORMAT => Ok(Some(record)),
            other => Err(damaged(format!("it has format {other}, and this agent knows {FORMAT}"))),
        }
    }

    /// Replaces what is kept.
    pub(crate) fn write(&self, record: &Record, durability: Durability) -> Result<(), RecordError> {
        let text = serde_json::to_vec_pretty(record).map_err(|error| {
            let path = self.folder.path().join(FILE);
            RecordError::File { what: "write", path, source: error.into() }
        })?;
        Ok(self.folder.replace(FILE, &text, 0o600, durability)?)
    }
}

impl Record {
    /// An empty record of this boot.
    pub(crate) fn new() -> Self {
        let (limits, caps) = (BTreeMap::new(), BTreeMap::new());
        Record { format: FORMAT, boot: this_boot(), limits, caps, controller: None }
    }
}

/// What tells one boot of this machine from another.
pub(crate) fn this_boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map_or_else(|_| String::new(), |id| id.trim().to_owned())
}
