//! A daemon under a service manager, and jobs in control groups.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use busbar::live::job::{End, EndReason};
use busbar::live::wire::{Reply, Request, State};
use busbar_needs::needs;
use rustix::fs::XattrFlags;
use rustix::process::{Pid, Signal, kill_process};

use super::books::Books;
use super::served::{BUSBAR, Served, kill};
use crate::patience::{PATIENCE, wait_for};

/// All that a manager hears at this path. It listens all the time, so that the daemon never finds its mailbox full.
fn manager(path: &Path) -> Receiver<String> {
    let socket = UnixDatagram::bind(path).unwrap();
    let (sender, heard) = channel();
    thread::spawn(move || {
        let mut buffer = [0; 1024];
        while let Ok(length) = socket.recv(&mut buffer) {
            let text = String::from_utf8(buffer[..length].to_vec()).unwrap();
            if sender.send(text).is_err() {
                return;
            }
        }
    });
    heard
}

/// What the manager hears next that has a line which begins like this.
fn heard(manager: &Receiver<String>, wanted: &str) -> String {
    loop {
        let text = manager.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("in vain: {wanted}"));
        if text.lines().any(|line| line.starts_with(wanted)) {
            return text;
        }
    }
}

/// The manager hears when the daemon is ready, that it turns, that it reads its configuration, and that it
/// stops.
#[test]
fn a_service_manager_is_told() {
    let mut served = Served::new("easy", "period = \"1min\"");
    let path = served.path("notify");
    let manager = manager(&path);
    let mut command = Command::new(BUSBAR);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "2000000");
    served.begin_by(command);
    heard(&manager, "READY=1");
    // From now on clients are served.
    assert!(served.socket().exists());
    // More often than twice in two seconds, though nothing happens for a minute.
    for _ in 0..3 {
        assert!(heard(&manager, "WATCHDOG=1").contains("STATUS=0 jobs run, 0 wait"));
    }
    let process = Pid::from_raw(served.process() as i32).unwrap();
    kill_process(process, Signal::HUP).unwrap();
    assert!(heard(&manager, "RELOADING=1").contains("\nMONOTONIC_USEC="));
    heard(&manager, "READY=1");
    served.stop();
    heard(&manager, "STOPPING=1");
}

/// A control group for a test, as a service manager makes one for a service. What is left in it is ended
/// with the test.
struct Group(PathBuf);

impl Group {
    fn new(name: &str) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 ")).unwrap();
        let top = mount.split(' ').nth(4).unwrap();
        let path = Path::new(top).join(format!("busbar-test-{}-{name}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Group(path)
    }

    /// What a shell does to enter it.
    fn enter(&self) -> String {
        format!("echo $$ > '{}/cgroup.procs'", self.0.display())
    }

    fn kill(&self) {
        fs::write(self.0.join("cgroup.kill"), "1").unwrap();
    }

    /// Whether somebody is in it, or below it.
    fn has_anybody(&self) -> bool {
        let events = fs::read_to_string(self.0.join("cgroup.events")).unwrap();
        !events.lines().any(|line| line == "populated 0")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        fn remove(path: &Path) -> std::io::Result<()> {
            for entry in fs::read_dir(path)?.flatten().filter(|entry| entry.path().is_dir()) {
                remove(&entry.path())?;
            }
            fs::remove_dir(path)
        }
        self.kill();
        let path = &self.0;
        wait_for("an empty control group", || remove(path).ok());
    }
}

/// The groups of attempts of this daemon that are there.
fn groups_of_attempts(below: &Path, daemons: &[u32]) -> Vec<PathBuf> {
    let entries = fs::read_dir(below).unwrap().flatten().map(|entry| entry.path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        daemons.iter().any(|daemon| name.starts_with(&format!("busbar-{daemon}-")))
    };
    entries.filter(is_ours).collect()
}

/// All groups of attempts that are there.
fn attempts_below(below: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(below).unwrap().flatten().map(|entry| entry.path());
    let is_one =
        |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("busbar-");
    entries.filter(|path| path.is_dir()).filter(is_one).collect()
}

/// A daemon or a warden may have been killed between making a group and anything else. The next daemon removes what
/// is empty and was made for the same state, and nothing else.
#[needs(cgroups)]
#[test]
fn groups_that_are_left_over_are_removed() {
    let group = Group::new("left");
    rustix::fs::setxattr(&group.0, "user.delegate", b"1", XattrFlags::empty()).unwrap();
    let mut served = Served::new("easy", "");
    served.begin_after(&group.enter());
    served.wait_for_answer();
    let job = served.submit("echo $$ > $RECORD; sleep infinity");
    wait_for("that it runs", || {
        fs::read_to_string(served.record()).ok()?.trim().parse::<i32>().ok()
    });
    let of_job = attempts_below(&group.0);
    let [of_job] = &of_job[..] else { panic!("{of_job:?}") };
    let name = of_job.file_name().unwrap().to_str().unwrap();
    let (own, mark) = name.split_once("-1.1-").unwrap();
    served.kill();
    let left: Vec<PathBuf> = [
        format!("{own}-0.0-{mark}"),
        format!("{own}-7.3-{mark}"),
        format!("busbar-1-1-8.1-{mark}"),
    ]
    .iter()
    .map(|name| group.0.join(name))
    .collect();
    left.iter().for_each(|path| fs::create_dir_all(path.join("job/of the job")).unwrap());
    let others = [format!("{own}-7.3-0.0"), format!("other-{mark}")].map(|name| group.0.join(name));
    others.iter().for_each(|path| fs::create_dir(path).unwrap());
    served.begin_after(&group.enter());
    served.wait_for_answer();
    assert!(left.iter().all(|path| !path.exists()), "{:?}", attempts_below(&group.0));
    assert!(others.iter().all(|path| path.exists()), "those of somebody else");
    assert!(of_job.exists() && outcome(&served, job).0 == State::Running);
    served.ask(&Request::Cancel { jobs: vec![job] });
    served.drain();
    served.assert_nothing_is_left();
    wait_for("that its group is gone", || (!of_job.exists()).then_some(()));
    served.stop();
}

/// The state of a job, when it is not `Running`.
fn outcome(served: &Served, job: u64) -> (State, Option<End>, Option<EndReason>) {
    let Reply::Show(shown) = served.ask(&Request::Show { job }) else { panic!("it is kept") };
    (shown.line.state, shown.end, shown.end_reason)
}

/// A service manager ends everything in the daemon's control group when it stops the service. Jobs run on:
/// they are not in it.
#[needs(cgroups)]
#[test]
fn jobs_outlive_the_control_group_of_the_daemon() {
    let group = Group::new("outlived");
    let mut served = Served::new("easy", "");
    served.begin_after(&group.enter());
    served.wait_for_answer();
    let first = served.process();
    let job = served.submit("echo $$ > $RECORD; sleep infinity");
    wait_for("that it runs", || {
        fs::read_to_string(served.record()).ok()?.trim().parse::<i32>().ok()
    });
    served.stop();
    group.kill();
    wait_for("that nobody is in the group", || (!group.has_anybody()).then_some(()));
    served.begin_after(&group.enter());
    served.wait_for_answer();
    assert_eq!(outcome(&served, job).0, State::Running, "it was ended with the daemon");
    let second = served.process();
    served.ask(&Request::Cancel { jobs: vec![job] });
    served.drain();
    assert_eq!(outcome(&served, job).0, State::Cancelled);
    served.assert_nothing_is_left();
    let beside = group.0.parent().unwrap();
    wait_for("that no group is left", || {
        groups_of_attempts(beside, &[first, second]).is_empty().then_some(())
    });
    served.stop();
}

/// The daemon and the warden of a job are killed at once, and the job has left a process behind that has a
/// session of its own and no environment. The next daemon ends it, and until then the node is taken.
fn killed_with_a_stray(more: &str, group: Option<&Group>) {
    let mut served = Served::new("easy", more);
    let enter = group.map_or(String::new(), Group::enter);
    served.begin_after(&enter);
    served.wait_for_answer();
    let script = "(env -i setsid sh -c 'echo $$ > stray; exec sleep infinity' &)
                  echo $PPID > warden; sleep infinity";
    let job = served.submit(script);
    let number = |name: &str| {
        let read = || fs::read_to_string(served.path(name)).ok()?.trim().parse::<i32>().ok();
        wait_for("a number", read)
    };
    let (stray, warden) = (number("stray"), number("warden"));
    if let Some(Group(path)) = group {
        let name = path.file_name().unwrap().to_str().unwrap();
        let own = fs::read_to_string(format!("/proc/{stray}/cgroup")).unwrap();
        assert!(
            own.contains(&format!("/{name}/busbar-")),
            "it is not in what was delegated: {own}"
        );
    }
    if group.is_none() {
        // Then it has to be seen once.
        let seen = format!("\"number\":{stray},");
        wait_for("that it was seen", || {
            let notes = served.attempts().into_iter().map(|attempt| attempt.join("seen.json"));
            let mut notes = notes.filter_map(|note| fs::read_to_string(note).ok());
            notes.any(|note| note.contains(&seen)).then_some(())
        });
    }
    served.kill();
    kill(warden);
    served.begin_after(&enter);
    served.wait_for_answer();
    served.drain();
    let is_left = is_sleeping(stray);
    kill(stray);
    assert!(!is_left, "it is still there, and nobody counts it");
    assert_eq!(outcome(&served, job), (State::Lost, Some(End::Lost), None));
    served.assert_nothing_is_left();
    if let Some(Group(path)) = group {
        // That of this daemon is itself.
        wait_for("that no group is left", || attempts_below(path).is_empty().then_some(()));
    }
    Books::add_up(&served.history(), 8).unwrap();
    served.stop();
}

/// Whether a process runs `sleep`.
fn is_sleeping(number: i32) -> bool {
    super::served::words(number).first().is_some_and(|word| word == "sleep")
}

#[test]
fn killed_with_a_stray_that_was_seen() {
    killed_with_a_stray("[local]\ncgroups = false", None);
}

#[needs(cgroups)]
#[test]
fn killed_with_a_stray_in_a_delegated_group() {
    let group = Group::new("delegated");
    rustix::fs::setxattr(&group.0, "user.delegate", b"1", XattrFlags::empty()).unwrap();
    killed_with_a_stray("", Some(&group));
}

/// A job that leaves such a process behind and kills its own warden in the same moment: nobody has seen it,
/// but it becomes a child of the daemon, or is in the job's group.
fn kills_its_own_warden(more: &str) {
    let mut served = Served::new("easy", more);
    served.begin_and_answer();
    let script = "(env -i setsid sh -c 'echo $$ > stray; exec sleep infinity' &)
                  while [ ! -s stray ]; do :; done; kill -9 $PPID; sleep infinity";
    let job = served.submit(script);
    served.drain();
    let stray = fs::read_to_string(served.path("stray")).unwrap().trim().parse().unwrap();
    let is_left = is_sleeping(stray);
    kill(stray);
    assert!(!is_left, "it is still there, and nobody counts it");
    assert_eq!(outcome(&served, job).0, State::Lost);
    served.assert_nothing_is_left();
    served.stop();
}

#[test]
fn a_job_that_kills_its_own_warden() {
    kills_its_own_warden("");
}

#[test]
fn a_job_that_kills_its_own_warden_without_groups() {
    kills_its_own_warden("[local]\ncgroups = false");
}

/// A job that stops its warden can be cancelled, and the client is told what is so: that the job was asked.
#[test]
fn cancelled_with_a_stopped_warden() {
    for more in ["", "[local]\ncgroups = false"] {
        let mut served = Served::new("easy", more);
        served.begin_and_answer();
        let job = served.submit("kill -STOP $PPID; echo > $RECORD; sleep infinity");
        wait_for("that it runs", || served.record().exists().then_some(()));
        let cancel = |job: u64| {
            let socket = served.socket();
            let mut command = Command::new(BUSBAR);
            let done = command.args(["cancel", &job.to_string(), "--socket"]).arg(socket).output();
            String::from_utf8(done.unwrap().stdout).unwrap()
        };
        assert_eq!(cancel(job), format!("asked job {job} to end\n"));
        served.drain();
        let (state, _, why) = outcome(&served, job);
        assert_eq!((state, why), (State::Cancelled, Some(EndReason::Cancelled)));
        served.assert_nothing_is_left();
        served.stop();
    }
}
