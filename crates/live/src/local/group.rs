//! Control groups of the second version: one for each attempt, where the daemon may make them.
//!
//! The warden of an attempt is in its group, and all of the job in the group `job` below it. Nobody leaves
//! a group by forking, by a session of its own or by forgetting its environment, so all of it can be found
//! and ended, with its warden or without. And since these groups are not below the daemon's own, unless
//! that was delegated to it, jobs live on if a service manager ends everything in the daemon's group.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::process::Process;
use crate::engine::{Attempt, Signal};

/// Where the control groups of attempts are made.
#[derive(Clone, Debug)]
pub struct Groups {
    base: PathBuf,
    /// By which their names differ from those of other daemons.
    maker: Process,
}

impl Groups {
    /// Where this process may make them; `None` if it may not, or should not.
    pub fn find() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        // A running systemd owns all groups that it has not delegated.
        let has_owner = Path::new("/run/systemd/system").is_dir();
        let base = base(&mounts, &own, has_owner, is_delegated)?;
        let groups = Groups { base, maker: Process::this().ok()? };
        // Whether it may is seen when it tries.
        let tried = groups.of(Attempt { job: 0, number: 0 });
        tried.make().and_then(|()| tried.remove()).ok()?;
        Some(groups)
    }

    /// Where they are made.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// That of an attempt, which is still to be made: by its warden, since that may take its time.
    pub(super) fn of(&self, attempt: Attempt) -> Group {
        let Process { number, began } = self.maker;
        Group { path: self.base.join(format!("busbar-{number}-{began}-{attempt}")) }
    }
}

/// The group below which those of attempts may be, by what the kernel says of mounts and of the group
/// that this process is in: its own or the one above if it was delegated, else beside its own if nobody
/// else owns that.
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
        // It is outside of what can be seen here.
        return None;
    }
    let own = top.join(inside);
    let above = own.parent().filter(|_| own != top).unwrap_or(top);
    if is_delegated(&own) {
        return Some(own);
    }
    (is_delegated(above) || !has_owner).then(|| above.to_owned())
}

/// Whether systemd says that a group is not its own business.
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

    /// Makes it.
    pub(super) fn make(&self) -> io::Result<()> {
        fs::create_dir(&self.path)?;
        fs::create_dir(self.job())
    }

    /// Puts this process into it, as the warden.
    pub(super) fn enter(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), "0")
    }

    /// Puts this process into it, as the first of the job.
    pub(super) fn enter_job(&self) -> io::Result<()> {
        fs::write(self.job().join("cgroup.procs"), "0")
    }

    /// Ends the whole job at once. Its warden is there to see it.
    pub(super) fn kill_job(&self) -> io::Result<()> {
        kill(&self.job())
    }

    /// Ends everybody in it.
    pub(super) fn kill_all(&self) -> io::Result<()> {
        kill(&self.path)
    }

    /// Whether anything of the job is alive.
    pub(super) fn has_job(&self) -> io::Result<bool> {
        is_populated(&self.job())
    }

    /// Whether anybody in it is alive.
    pub(super) fn has_anybody(&self) -> io::Result<bool> {
        is_populated(&self.path)
    }

    /// Removes it. Fails as long as anybody is in it.
    pub(super) fn remove(&self) -> io::Result<()> {
        remove(&self.path)
    }
}

/// Nothing is lost where a group is gone: nobody was in it.
fn unless_gone<T: Default>(result: io::Result<T>) -> io::Result<T> {
    match result {
        // A group that is removed while one of its files is open says that there is no such device.
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
    // Kernels before 5.14: one by one. Whoever forks meanwhile is met the next time.
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

/// Jobs of those who may have made groups of their own below theirs.
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
