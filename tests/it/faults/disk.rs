//! A disk that takes nothing more: nothing is decided that cannot be written down, but what makes jobs draw
//! less is done all the same. When there is room again all goes on, and nothing is lost or doubled.
//!
//! Disks cannot be filled for a part of a process, so the story is told in a process of its own. There, no
//! file may have any bytes written to it (`RLIMIT_FSIZE`), which is a write that fails for everybody who may
//! run tests. Who may mount a disk also has a small one that is really full.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use busbar::live::control::setup::LastResort;
use busbar::live::engine::Signal;
use busbar::live::job::{End, EventKind};
use busbar::live::wire::{RefusalKind, Reply, Request, State};
use busbar::units::Watts;
use busbar_needs::needs;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::books::Books;
use super::by_hand::{ByHand, Done, daily, first, o_clock};

/// In which folder the story is told, and whether that is a small disk.
const FOLDER: &str = "BUSBAR_FAULTS_FOLDER";
const IS_SMALL: &str = "BUSBAR_FAULTS_SMALL_DISK";

/// Runs a story in a process of its own: the words come before its own.
fn tell(story: &str, folder: &Path, before: &[&str], is_small: bool) -> std::process::Output {
    let mut command = Command::new(before[0]);
    command
        .args(&before[1..])
        .arg(std::env::current_exe().unwrap())
        .args([story, "--exact", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        // What is made for a short time is made there, too.
        .env("TMPDIR", folder);
    if is_small {
        command.env(IS_SMALL, "1");
    }
    command.output().unwrap()
}

/// Tells a story on a small disk.
pub(super) fn tell_on_a_small_disk(story: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=2m none \"$BUSBAR_FAULTS_FOLDER\" && exec \"$@\"";
    let mounted = ["unshare", "--mount", "sh", "-c", mount, "sh"];
    assert_told(&tell(story, folder.path(), &mounted, true));
}

/// The folder of the story that is told in this process; nothing if none is.
pub(super) fn folder_of_story() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

#[track_caller]
fn assert_told(output: &std::process::Output) {
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{complained}");
}

#[test]
fn a_disk_that_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // Who is not ready for the signal would be ended by it.
    let output = tell(
        "faults::disk::story",
        folder.path(),
        &["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"],
        false,
    );
    assert_told(&output);
}

#[needs(mounts)]
#[test]
fn a_disk_that_is_full() {
    tell_on_a_small_disk("faults::disk::story");
}

/// A disk, with room or without.
pub(super) enum Disk {
    /// No file of this process gets anything.
    Limited(Rlimit),
    /// This file takes all the room.
    Small(PathBuf),
}

impl Disk {
    pub(super) fn fill(&self) {
        match self {
            Disk::Limited(before) => {
                setrlimit(Resource::Fsize, Rlimit { current: Some(0), ..*before }).unwrap();
            }
            Disk::Small(ballast) => {
                let mut file = File::create(ballast).unwrap();
                // To the last byte.
                for size in [1024, 1] {
                    while file.write_all(&vec![1; size]).is_ok() {}
                }
            }
        }
    }

    pub(super) fn make_room(&self) {
        match self {
            Disk::Limited(before) => setrlimit(Resource::Fsize, *before).unwrap(),
            Disk::Small(ballast) => fs::remove_file(ballast).unwrap(),
        }
    }
}

#[test]
#[ignore = "run by the tests above, in a process of its own"]
fn story() {
    let Some(folder) = folder_of_story() else { return };
    let disk = match std::env::var_os(IS_SMALL) {
        Some(_) => Disk::Small(folder.join("ballast")),
        None => Disk::Limited(getrlimit(Resource::Fsize)),
    };
    // Four nodes of 100 W. Nobody can know beforehand that the clock on the wall will be set, so it is what
    // makes the limit fall while jobs run: to 250 W at noon, and below what they need at least in the
    // evening.
    let schedule = daily(&[(0, "400W"), (12, "250W"), (18, "80W")]);
    let mut day = ByHand::new(&folder.join("state"), "easy-power", &schedule)
        .last_resort(LastResort::Suspend);
    day.hand.set_wall(o_clock(6));
    day.begin();
    for nodes in [1, 1, 2, 1] {
        day.submit(nodes, 7200).unwrap();
    }
    let mut done = Done::default();
    done.take(&day.engine);
    assert_eq!((done.starts, done.drawn(&day.engine)), (3, Watts::from_watts(400)));

    disk.fill();
    for _ in 0..3 {
        let refusal = day.submit(1, 60).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Unwritten, "{refusal}");
        assert!(refusal.message.contains("try again later"), "{refusal}");
    }
    // One job ends, and another one has to wait all the same.
    assert!(day.engine.end(first(1), End::Exited(0)));
    day.pass(1);
    day.pass(1);
    let unwritten = |reply| matches!(reply, Reply::Error(no) if no.kind == RefusalKind::Unwritten);
    assert!(unwritten(day.ask(Request::Cancel { jobs: vec![2] })));
    assert!(unwritten(day.ask(Request::Hold { jobs: vec![4] })));
    let states: Vec<_> = day.queue().iter().map(|line| (line.job, line.state)).collect();
    assert_eq!(
        states[states.len() - 3..],
        [(2, State::Running), (3, State::Running), (4, State::Waiting)]
    );
    let notices = day.status().notices;
    assert!(notices.iter().any(|notice| notice.contains("cannot be written")), "{notices:?}");
    done.take(&day.engine);
    // Who may fill the disk can be ended although that cannot be written.
    assert_eq!((done.starts, &done.signals[..]), (0, &[(first(2), Signal::Terminate)][..]));

    // Whoever runs can be made to draw less: because an operator wants it, and by the clock.
    assert!(unwritten(day.ask(Request::Budget { set: Some("200W".to_owned()) })));
    done.take(&day.engine);
    assert!(done.drawn(&day.engine) <= Watts::from_watts(200), "{done:?}");
    for (hour, watts) in [(12, 250), (18, 80), (12, 250)] {
        day.hand.set_wall(o_clock(hour));
        day.pass(1);
        done.take(&day.engine);
        assert!(done.drawn(&day.engine) <= Watts::from_watts(watts), "{hour}: {done:?}");
        assert_eq!(done.starts, 0);
        let ends = |signal: &Signal| matches!(signal, Signal::Terminate | Signal::Kill);
        assert!(!done.signals.iter().any(|(_, signal)| ends(signal)), "{done:?}");
    }
    day.hand.set_wall(o_clock(7));
    day.pass(1);

    disk.make_room();
    for _ in 0..3 {
        day.pass(1);
    }
    done.take(&day.engine);
    assert_eq!((done.starts, done.has.len()), (1, 4), "the one that waited starts: {done:?}");
    assert_eq!(done.drawn(&day.engine), Watts::from_watts(400), "{done:?}");
    assert!(done.suspended.is_empty(), "{done:?}");
    assert_eq!(day.status().notices, [""; 0]);
    assert_eq!(day.submit(1, 60).unwrap(), 5, "those that were refused have no numbers");
    for job in [2, 3, 4, 5] {
        assert!(day.engine.end(first(job), End::Exited(0)), "job {job} runs");
        day.pass(1);
    }
    let lines = day.history();
    let books = Books::add_up(&lines, 4).unwrap();
    assert_eq!(books.jobs.len(), 5);
    for (job, account) in &books.jobs {
        let is_good = account.outcome.as_ref().is_some_and(|outcome| outcome.succeeded());
        assert_eq!((is_good, account.attempts), (true, 1), "job {job}");
    }
    let held = lines.iter().filter(|line| matches!(line.event.kind, EventKind::Held { .. }));
    assert_eq!(held.count(), 0, "what was refused was not done");
    day.end();
}
