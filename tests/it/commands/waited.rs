//! Commands that wait, through restarts of the daemon, too.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use busbar::live::job::{End, EndReason};
use busbar::live::server::socket::Limits;
use busbar::live::wire::{HistoryLine, RefusalKind, Reply, Request, State};
use serde_json::Value;

use super::canned::{Daemon, canned, details, history, refusal};

#[test]
fn waiting_ends_as_the_job_does() {
    let ends = [
        (State::Completed, Some(End::Exited(0)), None, 0, "job 12 completed"),
        (State::Failed, Some(End::Exited(3)), None, 3, "job 12 failed: exit code 3"),
        (
            State::TimedOut,
            Some(End::Signalled(15)),
            Some(EndReason::TimeLimit),
            143,
            "job 12 timed out: time limit reached, ended by signal 15",
        ),
        (
            State::TimedOut,
            Some(End::Exited(0)),
            Some(EndReason::TimeLimit),
            1,
            "job 12 timed out: time limit reached",
        ),
        (State::Cancelled, None, Some(EndReason::Cancelled), 1, "job 12 cancelled: by root"),
        (
            State::Failed,
            Some(End::Failed("no such file".to_owned())),
            None,
            127,
            "job 12 failed: could not be run: no such file",
        ),
        (State::Lost, Some(End::Lost), None, 1, "job 12 lost: its exit code is unknown"),
    ];
    for (state, end, why, code, said) in ends {
        let looks = Mutex::new(0);
        let daemon = Daemon::new(move |request| match request {
            Request::Show { job: 12 } => {
                let mut looks = looks.lock().unwrap();
                *looks += 1;
                let mut details = match *looks {
                    // It waits and runs first, and then the daemon is about to be started again.
                    1 => details(State::Waiting, None, None),
                    2 => details(State::Running, None, None),
                    3 => return Reply::Error(refusal(RefusalKind::Stopping, "later")),
                    _ => details(state, end.clone(), why),
                };
                details.line.job = 12;
                Reply::Show(Box::new(details))
            }
            other => canned(other),
        });
        let output = daemon.run(&["submit", "--wait", "--", "true"]);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(printed, format!("submitted job 12\n{said}\n"));
        assert_eq!(output.status.code(), Some(code), "{said}");
    }
}

/// What comes is shown as it comes, each line once, whatever becomes of the daemon meanwhile: it says that
/// it stops, goes away without a word, and is back.
#[test]
fn history_can_be_followed_through_a_restart() {
    let looks = Mutex::new(0);
    let daemon = Daemon::new(move |request| match request {
        Request::History { after: None, .. } => Reply::History(history()[..2].to_vec()),
        Request::History { after: Some(1), .. } => {
            let mut looks = looks.lock().unwrap();
            *looks += 1;
            match *looks {
                1..=2 => Reply::Error(refusal(RefusalKind::Stopping, "about to stop")),
                _ => Reply::History(history()[2..].to_vec()),
            }
        }
        Request::History { after: Some(11), .. } => {
            Reply::Error(refusal(RefusalKind::Unwritten, "enough"))
        }
        other => panic!("{other:?}"),
    });
    let output = daemon.run(&["history", "--follow", "--json", "-n", "2"]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<HistoryLine> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, history());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said[0], "warning: about to stop; waiting for the daemon");
    assert_eq!(said[1], "warning: the daemon is back");
    // What is no restart ends it.
    assert_eq!((said.len(), output.status.code()), (3, Some(2)), "{said:?}");
}

/// Two daemons one after the other on one socket, with nobody there in between.
#[test]
fn the_queue_can_be_watched_through_a_restart() {
    let first = Daemon::new(canned);
    let mut command = first.command(&["queue", "--watch", "1", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap());
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut table = || {
        let mut text = String::new();
        while !text.ends_with("\n]\n") && !text.ends_with("[]\n") {
            assert_ne!(printed.read_line(&mut text).unwrap(), 0, "it ended: {text}");
        }
        serde_json::from_str::<Value>(&text).unwrap()
    };
    assert_eq!(table().as_array().unwrap().len(), 2);
    let folder = first.stop();
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(
        line.starts_with("warning: ") && line.ends_with("; waiting for the daemon\n"),
        "{line}"
    );
    let _second = Daemon::at(folder, Limits::default(), |_| Reply::Queue(Vec::new()));
    // What was asked before it went away may still be shown.
    while !table().as_array().unwrap().is_empty() {}
    line.clear();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "warning: the daemon is back\n");
    child.kill().unwrap();
    child.wait().unwrap();
    // Nobody waits for a daemon that was never there.
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("none");
    let output = Command::new(env!("CARGO_BIN_EXE_busbar"))
        .args(["queue", "--watch", "--socket"])
        .arg(socket)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
}
