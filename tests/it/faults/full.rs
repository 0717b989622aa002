//! The real program on a disk that fills while jobs start, and on one that is full when it starts itself. Each story
//! is told in a process of its own that has a small disk ([`disk`](super::disk)).

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use busbar::live::engine::{Found, Immediate, Launch};
use busbar::live::engines::local::Local;
use busbar::live::job::{Allotment, Attempt, End, EventKind};
use busbar::live::wire::{JobLine, RefusalKind, Reply, Request, State};
use busbar::units::{Span, Watts};
use busbar_needs::needs;

use super::disk::{Disk, folder_of_story, tell_on_a_small_disk};
use super::served::{BUSBAR, Served};
use crate::patience::wait_for;

#[needs(mounts)]
#[test]
fn the_disk_fills_before_a_job_begins() {
    tell_on_a_small_disk("faults::full::an_attempt_without_room");
}

/// The warden of an attempt fills the disk before it does anything else. The command does not begin, which is told at
/// once, and is nobody's fault.
#[test]
#[ignore = "run by the test above, in a process of its own"]
fn an_attempt_without_room() {
    let Some(folder) = folder_of_story() else { return };
    let disk = Disk::Small(folder.join("ballast"));
    let program = folder.join("fills");
    let script = "#!/bin/sh\ncat /dev/zero > \"$(dirname \"$0\")/ballast\" 2> /dev/null\nexec \"$(dirname \"$0\")/busbar\" \"$@\"\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(BUSBAR, folder.join("busbar")).unwrap();
    let launch = |number| launch(&folder, number);

    let mut engine = Local::new(folder.join("jobs"), program, Vec::new()).unwrap();
    engine.start(&launch(1)).unwrap();
    let not_begun = wait_for("that it has not begun", || {
        assert_eq!(engine.ended(), []);
        let not_begun = engine.not_begun();
        (!not_begun.is_empty()).then_some(not_begun)
    });
    let [(attempt, reason)] = &not_begun[..] else { panic!("{not_begun:?}") };
    assert_eq!(*attempt, launch(1).attempt);
    assert!(reason.contains("No space left on device"), "{reason}");
    assert_eq!((engine.not_begun(), engine.ended()), (vec![], vec![]), "it is told once");
    // Whoever asks after a restart hears the same.
    let mut next = Local::new(folder.join("jobs"), BUSBAR.into(), Vec::new()).unwrap();
    assert_eq!(next.find(launch(1).attempt).unwrap(), Found::NotBegun(reason.clone()));
    assert!(!folder.join("ran").exists());

    disk.make_room();
    next.start(&launch(2)).unwrap();
    let ended = wait_for("an end", || next.ended().pop());
    assert_eq!(ended, (launch(2).attempt, End::Exited(0)));
    assert!(folder.join("ran").exists());
}

fn launch(folder: &Path, number: u32) -> Launch {
    let cap = Watts::from_watts(100);
    Launch {
        attempt: Attempt { job: 1, number },
        command: ["sh", "-c", "echo > ran"].map(str::to_owned).to_vec(),
        folder: folder.to_owned(),
        environment: vec![("PATH".to_owned(), std::env::var("PATH").unwrap())],
        output: "/dev/null".into(),
        errors: "/dev/null".into(),
        owner: None,
        allotment: Allotment {
            nodes: vec![(0, cap)],
            cores: 1,
            cap,
            time: Span::from_secs(60),
            power: cap,
            speed: Allotment::FULL_SPEED,
            part: None,
        },
        handle: None,
        is_free: false,
    }
}

#[needs(mounts)]
#[test]
fn the_disk_of_a_user_is_full() {
    tell_on_a_small_disk("faults::full::an_output_without_room");
}

/// The file for the output of a job cannot be made. The job is held, and whoever looks is told why; once it is
/// released it runs.
#[test]
#[ignore = "run by the test above, in a process of its own"]
fn an_output_without_room() {
    let Some(folder) = folder_of_story() else { return };
    let full = folder.join("full");
    fs::create_dir(&full).unwrap();
    let mount = |options: &str| {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "none"]).arg(&full);
        assert!(command.status().unwrap().success(), "{options}");
    };
    // There is room for nothing but the folder itself.
    mount("nr_inodes=1");
    let mut served = Served::new("easy", "");
    served.begin_and_answer();
    let mut job = served.job(1, "echo ran");
    let Request::Submit(submission) = &mut job else { unreachable!() };
    submission.program.output = full.join("out");
    let Reply::Submitted { job, .. } = served.ask(&job) else { panic!("it is not submitted") };
    wait_for("that it is held", || (line(&served, job)?.state == State::Held).then_some(()));
    let reasons: Vec<String> = served
        .history()
        .into_iter()
        .filter_map(|line| match line.event.kind {
            EventKind::Withdrawn { reason, .. } => Some(reason),
            _ => None,
        })
        .collect();
    let [reason] = &reasons[..] else { panic!("{reasons:?}") };
    let expected = format!("cannot write to {}: No space left", full.join("out").display());
    assert!(reason.contains(&expected), "{reason}");

    mount("remount,nr_inodes=100");
    served.ask(&Request::Release { jobs: vec![job] });
    served.drain();
    let Reply::Show(shown) = served.ask(&Request::Show { job }) else { panic!("it is kept") };
    assert_eq!((shown.line.state, shown.end), (State::Completed, Some(End::Exited(0))));
    assert_eq!(fs::read_to_string(full.join("out")).unwrap(), "ran\n", "it ran once");
    served.assert_nothing_is_left();
    served.stop();
}

/// A job in the queue, if it is there.
fn line(served: &Served, job: u64) -> Option<JobLine> {
    let Reply::Queue(lines) = served.ask(&Request::Queue) else { panic!("there is no queue") };
    lines.into_iter().find(|line| line.job == job)
}

#[needs(mounts)]
#[test]
fn a_daemon_begins_on_a_full_disk() {
    tell_on_a_small_disk("faults::full::a_daemon_without_room");
}

/// A daemon that begins on a full disk watches over jobs and answers, and writes again as soon as it can: after one
/// that stopped as it should, after one that was killed, and again while the disk is still full.
#[test]
#[ignore = "run by the test above, in a process of its own"]
fn a_daemon_without_room() {
    let Some(folder) = folder_of_story() else { return };
    let disk = Disk::Small(folder.join("ballast"));
    let mut served = Served::new("easy", "");
    served.begin_and_answer();
    let job = served.submit("echo > $RECORD; exec sleep infinity");
    wait_for("that it runs", || served.record().exists().then_some(()));
    let submit = |served: &Served| match served.ask(&served.job(1, "true")) {
        Reply::Submitted { job, .. } => Ok(job),
        Reply::Error(refusal) => Err(refusal),
        other => panic!("{other:?}"),
    };
    for is_killed in [false, true] {
        match is_killed {
            true => served.kill(),
            false => served.stop(),
        }
        disk.fill();
        for is_again in [false, true] {
            if is_again {
                served.kill();
            }
            served.begin_and_answer();
            assert_eq!(line(&served, job).map(|line| line.state), Some(State::Running));
            // What it had kept for this is of use to others, too.
            disk.fill();
            let refusal = submit(&served).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::Unwritten, "{refusal}");
        }
        disk.make_room();
        let next = wait_for("that it writes again", || submit(&served).ok());
        wait_for("that it has run", || line(&served, next).is_none().then_some(()));
        assert_eq!(line(&served, job).map(|line| line.state), Some(State::Running));
    }
    // It can stop on a full disk, too, and loses nothing by that.
    disk.fill();
    served.stop();
    disk.make_room();
    served.begin_and_answer();
    served.ask(&Request::Cancel { jobs: vec![job] });
    served.drain();
    served.assert_nothing_is_left();
    served.stop();
}
