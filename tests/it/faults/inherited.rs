//! What a job gets from whoever started the daemon: nothing.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use busbar_needs::needs;

use super::served::{BUSBAR, Served};

/// The files that a process has open.
fn open_files(process: u32) -> Vec<PathBuf> {
    let links = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    // The one by which they are listed is gone by now, if it is one of them.
    links.filter_map(|link| fs::read_link(link.unwrap().path()).ok()).collect()
}

/// Descriptors, umask and resource limits of the shell that starts the daemon reach nobody.
#[test]
fn nothing_of_the_shell_reaches_a_job() {
    let mut served = Served::new("easy", "");
    let secret = served.path("secret");
    fs::write(&secret, "a secret\n").unwrap();
    // What is opened as 9 was readable in every job.
    served.begin_after(&format!(
        "exec 9<'{}'\numask 077\nulimit -S -n 333\nulimit -S -s 4321\n",
        secret.display()
    ));
    served.wait_for_answer();
    let daemons = open_files(served.process());
    assert!(!daemons.contains(&secret), "the daemon keeps it: {daemons:?}");

    // The fourth descriptor is that of the folder which is listed.
    served.submit(
        "{ ls /proc/self/fd; umask; ulimit -S -n; ulimit -S -s; } > told
         ls -l /proc/$PPID/fd > wardens; mv told $RECORD",
    );
    served.drain();
    let told = fs::read_to_string(served.record()).unwrap();
    assert_eq!(told, "0\n1\n2\n3\n0022\n1024\n8192\n");
    assert_eq!(fs::metadata(served.record()).unwrap().mode() & 0o777, 0o644);
    let wardens = fs::read_to_string(served.path("wardens")).unwrap();
    assert!(!wardens.contains("secret"), "the warden keeps it: {wardens}");
    served.stop();
}

/// A site says which umask and limits jobs have.
#[test]
fn what_is_configured_is_what_jobs_have() {
    let jobs = "[jobs]\numask = \"027\"\nulimits = { nofile = 200, core = \"0\", cpu = \"77:88\" }";
    let mut served = Served::new("easy", jobs);
    served.begin_and_answer();
    served.submit(
        "{ umask; ulimit -n; ulimit -H -n; ulimit -H -c; ulimit -S -t; ulimit -H -t; } > told
         mv told $RECORD",
    );
    served.drain();
    assert_eq!(fs::read_to_string(served.record()).unwrap(), "0027\n200\n200\n0\n77\n88\n");
    served.stop();
}

/// A job has all groups of its owner, so it can be submitted from a folder that is open to one of them. Only
/// root can try that: the daemon sees an `/etc/group` of its own, in which `nobody` has a second group.
#[needs(mounts)]
#[test]
fn a_job_has_all_groups_of_its_owner() {
    const NOBODY: u32 = 65534;
    const GROUP: u32 = 47_110;
    let mut served = Served::new("easy", "");
    let groups = format!("root:x:0:\nnogroup:x:{NOBODY}:\nproject:x:{GROUP}:nobody\n");
    fs::write(served.path("group"), groups).unwrap();
    fs::set_permissions(served.path(""), Permissions::from_mode(0o755)).unwrap();
    let shared = served.path("shared");
    fs::create_dir(&shared).unwrap();
    chown(&shared, Some(0), Some(GROUP)).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o770)).unwrap();
    // Wherever the program is, somebody else may not get there.
    let program = served.path("busbar");
    fs::copy(BUSBAR, &program).unwrap();

    let mut command = Command::new("unshare");
    let script = "mount --bind \"$0\" /etc/group && exec \"$@\"";
    command.args(["-m", "sh", "-c", script]).arg(served.path("group")).arg(BUSBAR);
    served.begin_by(command);
    served.wait_for_answer();
    let submitted = Command::new(&program)
        .args(["submit", "-o", "told", "--socket"])
        .arg(served.socket())
        .arg("--folder")
        .arg(&shared)
        .args(["--", "id", "-G"])
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert!(submitted.status.success(), "{submitted:?}");
    served.drain();
    let told = fs::read_to_string(shared.join("told")).expect("it got into the folder");
    assert_eq!(told, format!("{NOBODY} {GROUP}\n"));
    served.stop();
}
