//! The settings that a job starts with, however the daemon was started: its owner's groups, a fixed
//! umask, fixed resource limits, and only the three standard file descriptors.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io;
use std::str::FromStr;

use nix::unistd::{Gid, Uid, User, close, initgroups, setgid, setgroups, setuid};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getegid, geteuid, getrlimit, setrlimit, umask};
use serde::{Deserialize, Serialize};

/// The umask of jobs, and their resource limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inheritance {
    /// Permissions that new files do not get.
    pub(crate) umask: Umask,
    /// All resource limits, by name.
    pub(crate) ulimits: BTreeMap<Ulimit, Bounds>,
}

impl Inheritance {
    /// The kernel's default limits, except for those given.
    pub(crate) fn new(umask: Umask, given: &BTreeMap<Ulimit, Bounds>) -> Self {
        let mut ulimits: BTreeMap<_, _> =
            Ulimit::ALL.iter().map(|ulimit| (*ulimit, ulimit.usual())).collect();
        ulimits.extend(given);
        Inheritance { umask, ulimits }
    }

    /// Applies the settings to this process. A hard limit that may not be raised stays as it is.
    pub(super) fn apply(&self) -> io::Result<()> {
        umask(Mode::from_raw_mode(self.umask.0));
        for (ulimit, bounds) in &self.ulimits {
            let resource = Resource::from(*ulimit);
            let set = setrlimit(resource, bounds.within(None));
            if set == Err(Errno::PERM) {
                setrlimit(resource, bounds.within(getrlimit(resource).maximum))?;
            } else {
                set?;
            }
        }
        Ok(())
    }
}

impl Default for Inheritance {
    fn default() -> Self {
        Inheritance::new(Umask::default(), &BTreeMap::new())
    }
}

/// Permissions that new files do not get, written in octal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Umask(pub u32);

impl Default for Umask {
    fn default() -> Self {
        Umask(0o022)
    }
}

impl FromStr for Umask {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_octal =
            (1..=4).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit());
        let number =
            u32::from_str_radix(text, 8).ok().filter(|number| is_octal && *number <= 0o777);
        number.map(Umask).ok_or_else(|| {
            format!("'{text}' is not a umask; write three octal digits, such as \"022\" or \"077\"")
        })
    }
}

impl std::fmt::Display for Umask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:03o}", self.0)
    }
}

/// A resource limit, by the name that it has in `/etc/security/limits.conf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Ulimit {
    As,
    Core,
    Cpu,
    Data,
    Fsize,
    Locks,
    Memlock,
    Msgqueue,
    Nice,
    Nofile,
    Nproc,
    Rss,
    Rtprio,
    Rttime,
    Sigpending,
    Stack,
}

impl Ulimit {
    const ALL: [Ulimit; 16] = [
        Ulimit::As,
        Ulimit::Core,
        Ulimit::Cpu,
        Ulimit::Data,
        Ulimit::Fsize,
        Ulimit::Locks,
        Ulimit::Memlock,
        Ulimit::Msgqueue,
        Ulimit::Nice,
        Ulimit::Nofile,
        Ulimit::Nproc,
        Ulimit::Rss,
        Ulimit::Rtprio,
        Ulimit::Rttime,
        Ulimit::Sigpending,
        Ulimit::Stack,
    ];

    /// The kernel's default; for open files that of service managers.
    fn usual(self) -> Bounds {
        let both = |value| Bounds { soft: value, hard: value };
        match self {
            Ulimit::Core => Bounds { soft: Some(0), hard: None },
            Ulimit::Stack => Bounds { soft: Some(8 << 20), hard: None },
            Ulimit::Memlock => both(Some(8 << 20)),
            Ulimit::Msgqueue => both(Some(819_200)),
            Ulimit::Nice | Ulimit::Rtprio => both(Some(0)),
            Ulimit::Nofile => {
                let most = setting("/proc/sys/fs/nr_open").unwrap_or(u64::MAX);
                Bounds { soft: Some(1024.min(most)), hard: Some(524_288.min(most)) }
            }
            Ulimit::Nproc | Ulimit::Sigpending => {
                both(setting("/proc/sys/kernel/threads-max").map(|threads| threads / 2))
            }
            Ulimit::As
            | Ulimit::Cpu
            | Ulimit::Data
            | Ulimit::Fsize
            | Ulimit::Locks
            | Ulimit::Rss
            | Ulimit::Rttime => both(None),
        }
    }
}

impl std::fmt::Display for Ulimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// Reads a number from a kernel setting.
fn setting(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

impl From<Ulimit> for Resource {
    fn from(ulimit: Ulimit) -> Self {
        match ulimit {
            Ulimit::As => Resource::As,
            Ulimit::Core => Resource::Core,
            Ulimit::Cpu => Resource::Cpu,
            Ulimit::Data => Resource::Data,
            Ulimit::Fsize => Resource::Fsize,
            Ulimit::Locks => Resource::Locks,
            Ulimit::Memlock => Resource::Memlock,
            Ulimit::Msgqueue => Resource::Msgqueue,
            Ulimit::Nice => Resource::Nice,
            Ulimit::Nofile => Resource::Nofile,
            Ulimit::Nproc => Resource::Nproc,
            Ulimit::Rss => Resource::Rss,
            Ulimit::Rtprio => Resource::Rtprio,
            Ulimit::Rttime => Resource::Rttime,
            Ulimit::Sigpending => Resource::Sigpending,
            Ulimit::Stack => Resource::Stack,
        }
    }
}

/// A soft and a hard limit; `None` is without a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bounds {
    /// The soft limit, which is enforced.
    soft: Option<u64>,
    /// The hard limit, up to which the soft one may be raised.
    hard: Option<u64>,
}

impl Bounds {
    /// The limits, bounded by a hard limit that cannot be raised.
    fn within(self, most: Option<u64>) -> Rlimit {
        let maximum = least(self.hard, most);
        Rlimit { current: least(self.soft, maximum), maximum }
    }
}

/// The lower of two limits.
fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

impl FromStr for Bounds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}' is not a limit; write a number or \"unlimited\", or both limits, such as \
                 \"1024:524288\""
            )
        };
        let value = |text: &str| match text {
            "unlimited" => Ok(None),
            number => number.parse().map(Some).map_err(|_| wrong()),
        };
        let (soft, hard) = text.split_once(':').unwrap_or((text, text));
        let bounds = Bounds { soft: value(soft)?, hard: value(hard)? };
        match least(bounds.soft, bounds.hard) == bounds.soft {
            true => Ok(bounds),
            false => {
                Err(format!("'{text}': the soft limit, which is the first, is above the hard one"))
            }
        }
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value =
            |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
        match self.soft == self.hard {
            true => f.write_str(&value(self.soft)),
            false => write!(f, "{}:{}", value(self.soft), value(self.hard)),
        }
    }
}

/// Takes on the identity of another user, with all groups that the system's name service knows, so
/// also those of a directory. A process that has that user and group already stays as it is if it
/// may not change its groups.
pub(super) fn become_owner(user: u32, group: u32) -> io::Result<()> {
    let is_owner = (geteuid().as_raw(), getegid().as_raw()) == (user, group);
    let become_user = || -> nix::Result<()> {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        let name = User::from_uid(user)?.and_then(|entry| CString::new(entry.name).ok());
        match name {
            Some(name) => initgroups(&name, group)?,
            None => setgroups(&[group])?,
        }
        setgid(group)?;
        setuid(user)
    };
    let become_user = become_user();
    if is_owner && become_user == Err(nix::Error::EPERM) {
        return Ok(());
    }
    become_user.map_err(|error| {
        let error = io::Error::from(error);
        let message = format!("cannot run as user {user}, group {group}: {error}");
        io::Error::new(error.kind(), message)
    })
}

/// Closes all file descriptors but the three standard ones. Only for a process that needs no other.
pub fn close_descriptors() -> io::Result<()> {
    let mut open = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    // The descriptor used for listing is closed by now; that failure does not matter.
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        let _ = close(descriptor);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn umasks_are_octal() {
        assert_eq!("022".parse(), Ok(Umask(0o022)));
        assert_eq!("77".parse(), Ok(Umask(0o077)));
        assert_eq!(Umask(0o7).to_string(), "007");
        for wrong in ["", "8", "1777", "-22", "+22", "0o22", "rwx"] {
            assert!(wrong.parse::<Umask>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn bounds_are_read_as_they_are_written() {
        for text in ["0", "1024", "unlimited", "1024:524288", "0:unlimited"] {
            assert_eq!(text.parse::<Bounds>().unwrap().to_string(), text);
        }
        for wrong in ["", ":", "1:", "many", "-1", "2:1", "unlimited:1", "1:2:3"] {
            assert!(wrong.parse::<Bounds>().is_err(), "{wrong}");
        }
    }

    /// A limit that cannot be raised takes the soft one with it.
    #[test]
    fn what_cannot_be_raised_stays() {
        let bounds = Bounds { soft: Some(1024), hard: None };
        let within = |most| {
            let limit = bounds.within(most);
            (limit.current, limit.maximum)
        };
        assert_eq!(within(None), (Some(1024), None));
        assert_eq!(within(Some(4096)), (Some(1024), Some(4096)));
        assert_eq!(within(Some(100)), (Some(100), Some(100)));
    }

    #[test]
    fn every_limit_is_fixed() {
        let given = BTreeMap::from([(Ulimit::Nofile, "77".parse().unwrap())]);
        let inheritance = Inheritance::new(Umask(0o077), &given);
        assert_eq!(inheritance.ulimits.len(), Ulimit::ALL.len());
        assert_eq!(inheritance.ulimits[&Ulimit::Nofile].to_string(), "77");
        assert_eq!(inheritance.ulimits[&Ulimit::Core].to_string(), "0:unlimited");
        let text = serde_json::to_string(&inheritance).unwrap();
        assert_eq!(serde_json::from_str::<Inheritance>(&text).unwrap(), inheritance);
    }
}
