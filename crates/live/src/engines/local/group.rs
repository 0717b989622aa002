//! Control groups (version 2): one for each attempt, where the daemon may create them.
//!
//! The warden of an attempt is in its group, and the job in the subgroup `job`. A process cannot leave
//! a group by forking, by a new session or by clearing its environment, so all processes of a job can
//! be found and ended, with or without its warden. Since these groups are not below the daemon's own,
//! unless that was delegated, jobs survive when a service manager ends the daemon's group.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::engine::Signal;
use crate::host::file_identity::file_identity;
use crate::host::process::Process;
use crate::job::Attempt;

/// The place where control groups of attempts are created.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    base: PathBuf,
    /// The daemon's process, which makes the names unique.
    maker: Process,
    /// What the names of all groups of the same folder of attempts end with.
    mark: String,
}

impl Groups {
    /// The place where this process may create groups for the attempts in a folder; `None` if it may not.
    pub(crate) fn find(folder: &Path) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        // A running systemd owns all groups that it has not delegated.
        let has_owner = Path::new("/run/systemd/system").is_dir();
        let base = base(&mounts, &own, has_owner, is_delegated)?;
        let (device, number) = file_identity(folder)?;
        let mark = format!("{device:x}.{number:x}");
        let groups = Groups { base, maker: Process::this().ok()?, mark };
        // Tries whether that is permitted.
        let tried = groups.of(Attempt { job: 0, number: 0 });
        let made = tried.make();
        tried.remove().and(made).ok()?;
        Some(groups)
    }

    /// The parent group.
    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// The group of an attempt. Its warden creates it, since that may take a while.
    pub(super) fn of(&self, attempt: Attempt) -> Group {
        let Process { number, began } = self.maker;
        let name = format!("busbar-{number}-{began}-{attempt}-{}", self.mark);
        Group { path: self.base.join(name) }
    }

    /// Removes empty groups of attempts in the same folder that none of these folders has. A warden or a daemon that was
    /// killed may have left them. A group with processes in it is nobody's to remove.
    pub(super) fn remove_others(&self, kept: &[Group]) -> io::Result<()> {
        let ending = format!("-{}", self.mark);
        for path in subgroups(&self.base)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_ours = name.starts_with("busbar-") && name.ends_with(&ending);
            let group = Group { path };
            if is_ours && !kept.contains(&group) && !group.has_anybody()? {
                group.remove()?;
            }
        }
        Ok(())
    }
}

/// The parent for groups of attempts, from the kernel's list of mounts and the group of this
/// process: its own group or the one above if that was delegated, or else the one above if nobody
/// else manages it.
fn base(
    mounts: &str,
    own: &str,
    has_owner: bool,
    is_delegated: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let mut fields = mount.split(' ').skip(3);
    let (root, top) = (fields.next()?, Path::new(fields.next()?));
    let own = Path::new(own.lines().find_map(|line| line.strip_prefix("0::"))?);
    let inside = own.strip_prefix(root).ok()?;
    if inside.components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
        // The group is outside of the mounted hierarchy.
        return None;
    }
    let own = top.join(inside);
    let above = own.parent().filter(|_| own != top).unwrap_or(top);
    if is_delegated(&own) {
        return Some(own);
    }
    (is_delegated(above) || !has_owner).then(|| above.to_owned())
}

/// Whether systemd has delegated a group.
fn is_delegated(group: &Path) -> bool {
    ["user.delegate", "trusted.delegate"].iter().any(|name| {
        let mut value = [0_u8; 8];
        rustix::fs::getxattr(group, *name, &mut value) == Ok(1) && value[0] == b'1'
    })
}

/// The control group of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Group {
    path: PathBuf,
}

impl Group {
    fn job(&self) -> PathBuf {
        self.path.join("job")
    }

    /// Creates the group.
    pub(super) fn make(&self) -> io::Result<()> {
        fs::create_dir(&self.path)?;
        fs::create_dir(self.job())
    }

    /// Moves this process into the group, as the warden.
    pub(super) fn enter(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), "0")
    }

    /// Moves this process into the subgroup of the job.
    pub(super) fn enter_job(&self) -> io::Result<()> {
        fs::write(self.job().join("cgroup.procs"), "0")
    }

    /// Kills the whole job at once, but not its warden.
    pub(super) fn kill_job(&self) -> io::Result<()> {
        kill(&self.job())
    }

    /// Kills all processes in the group.
    pub(super) fn kill_all(&self) -> io::Result<()> {
        kill(&self.path)
    }

    /// Whether a process of the job is alive.
    pub(super) fn has_job(&self) -> io::Result<bool> {
        is_populated(&self.job())
    }

    /// Whether a process in the group is alive.
    pub(super) fn has_anybody(&self) -> io::Result<bool> {
        is_populated(&self.path)
    }

    /// Removes the group. Fails as long as it has processes.
    pub(super) fn remove(&self) -> io::Result<()> {
        remove(&self.path)
    }
}

/// A group that is gone has no processes.
fn unless_gone<T: Default>(result: io::Result<T>) -> io::Result<T> {
    match result {
        // Reading a file of a removed group gives ENODEV.
        Err(error) if error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(19) => {
            Ok(T::default())
        }
        result => result,
    }
}

fn kill(group: &Path) -> io::Result<()> {
    let by_kernel = group.join("cgroup.kill");
    if by_kernel.exists() {
        return unless_gone(fs::write(by_kernel, "1"));
    }
    // Kernels before 5.14 need one signal per process. New children are reached the next time.
    for inner in subgroups(group)? {
        kill(&inner)?;
    }
    let members = unless_gone(fs::read_to_string(group.join("cgroup.procs")))?;
    for number in members.lines().filter_map(|line| line.parse().ok()) {
        if let Some(process) = Process::of(number)? {
            process.signal(Signal::Kill)?;
        }
    }
    Ok(())
}

fn is_populated(group: &Path) -> io::Result<bool> {
    let events = unless_gone(fs::read_to_string(group.join("cgroup.events")))?;
    Ok(events.lines().any(|line| line == "populated 1"))
}

fn subgroups(group: &Path) -> io::Result<Vec<PathBuf>> {
    let mut inner = Vec::new();
    match fs::read_dir(group) {
        Ok(entries) => {
            for entry in entries {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    inner.push(entry.path());
                }
            }
        }
        Err(error) => unless_gone(Err(error))?,
    }
    Ok(inner)
}

/// Jobs may have created groups below theirs.
fn remove(group: &Path) -> io::Result<()> {
    for inner in subgroups(group)? {
        remove(&inner)?;
    }
    unless_gone(fs::remove_dir(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "30 23 0:26 / /sys rw - sysfs sysfs rw\n\
                          41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";
    const OWN: &str = "9:name=systemd:/\n0::/system.slice/busbar.service\n";

    fn found(own: &str, has_owner: bool, delegated: &str) -> Option<String> {
        let is_delegated = |path: &Path| path == Path::new(delegated);
        base(MOUNTS, own, has_owner, is_delegated).map(|path| path.to_str().unwrap().to_owned())
    }

    #[test]
    fn groups_are_where_they_may_be() {
        let unit = "/sys/fs/cgroup/system.slice/busbar.service";
        assert_eq!(found(OWN, true, unit).as_deref(), Some(unit), "delegated");
        let inner = "0::/system.slice/busbar.service/daemon\n";
        assert_eq!(found(inner, true, unit).as_deref(), Some(unit), "the one above is");
        let deeper = "0::/system.slice/busbar.service/a/b\n";
        assert_eq!(found(deeper, true, unit), None, "that of somebody else");
        assert_eq!(found(OWN, true, ""), None, "systemd's");
        let beside = Some("/sys/fs/cgroup/system.slice");
        assert_eq!(found(OWN, false, "").as_deref(), beside, "nobody's");
        assert_eq!(found("0::/\n", false, "").as_deref(), Some("/sys/fs/cgroup"));
        assert_eq!(found("0::/../other\n", false, ""), None);
        assert_eq!(found("1:cpu:/\n", false, ""), None, "the first version only");
        assert_eq!(base("", OWN, false, |_| true), None);
    }

    #[test]
    fn a_group_that_is_gone_has_nobody() {
        let place = tempfile::tempdir().unwrap();
        let group = Group { path: place.path().join("gone") };
        assert!(!group.has_anybody().unwrap() && !group.has_job().unwrap());
        group.kill_all().unwrap();
        group.remove().unwrap();
        assert!(group.enter().is_err());
    }
}
