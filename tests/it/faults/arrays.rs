//! A job array under a daemon that is killed in the middle: each element runs once, and never more of them
//! at the same time than may.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use busbar::live::job::EventKind;
use busbar::live::wire::{HistoryLine, Reply, Request, State};

use super::books::Books;
use super::served::{BUSBAR, Served};
use crate::patience::wait_for;

const ELEMENTS: usize = 50;
const AT_ONCE: usize = 4;

/// Runs a command against the daemon, and returns what it prints.
fn busbar(served: &Served, arguments: &[&str]) -> String {
    let output = Command::new(BUSBAR)
        .args(arguments)
        .current_dir(served.path(""))
        .env("BUSBAR_SOCKET", served.socket())
        .env("RECORD", served.record())
        // As if it was typed in an element of another array.
        .env("BUSBAR_ARRAY_INDEX", "99")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The most jobs of these that ran at the same time, according to the history, and how many were started.
fn at_once(lines: &[HistoryLine], of: impl Fn(u64) -> bool) -> (usize, usize) {
    let (mut running, mut most, mut starts) = (BTreeSet::new(), 0, 0);
    for line in lines {
        match &line.event.kind {
            EventKind::Started { job, .. } if of(*job) => {
                assert!(running.insert(*job), "{job} runs twice");
                starts += 1;
            }
            EventKind::Withdrawn { job, .. } | EventKind::Ended { job, .. } => {
                running.remove(job);
            }
            _ => (),
        }
        most = most.max(running.len());
    }
    (most, starts)
}

#[test]
fn an_array_runs_once_each_and_four_at_once_through_kills() {
    let mut served = Served::new("easy", "period = \"200ms\"");
    served.begin_and_answer();
    let script = "echo begins $BUSBAR_ARRAY_JOB $BUSBAR_ARRAY_INDEX $BUSBAR_ARRAY_COUNT \
                  $BUSBAR_ARRAY_MIN $BUSBAR_ARRAY_MAX >> $RECORD; echo $BUSBAR_ARRAY_INDEX; sleep 0.1";
    let printed = busbar(&served, &["submit", "--array", "1-50%4", "--", "sh", "-c", script]);
    assert_eq!(printed, "submitted array 1 of 50 jobs\n");
    let printed = busbar(
        &served,
        &["submit", "--after", "1", "--", "sh", "-c", "echo after $BUSBAR_ARRAY_INDEX >> $RECORD"],
    );
    assert_eq!(printed, "submitted job 52\n");
    let begun =
        |served: &Served| fs::read_to_string(served.record()).unwrap_or_default().lines().count();
    for kills in 1..=4 {
        wait_for("that some began", || (begun(&served) >= 9 * kills).then_some(()));
        served.kill();
        served.begin_and_answer();
    }
    served.drain();

    let record = fs::read_to_string(served.record()).unwrap();
    let mut lines: Vec<&str> = record.lines().collect();
    // Nobody is told to be an element who is none, and who waits for the array is the last.
    assert_eq!(lines.pop(), Some("after"));
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    for line in lines {
        *times.entry(line.to_owned()).or_default() += 1;
    }
    let expected = (1..=ELEMENTS).map(|index| (format!("begins 1 {index} 50 1 50"), 1));
    assert_eq!(times, expected.collect());
    for index in 1..=ELEMENTS {
        let output = fs::read_to_string(served.path(&format!("busbar-1_{index}.out"))).unwrap();
        assert_eq!(output, format!("{index}\n"));
    }
    let history = served.history();
    let books = Books::add_up(&history, 8).unwrap();
    assert_eq!(books.jobs.len(), ELEMENTS + 1);
    assert!(books.jobs.values().all(|job| job.outcome.as_ref().unwrap().succeeded()));
    let is_element = |job| (2..=51).contains(&job);
    let (most, starts) = at_once(&history, is_element);
    assert_eq!(most, AT_ONCE, "there is power for five");
    // A start that was decided and not begun when the daemon was killed is decided again.
    assert_eq!(starts, ELEMENTS + books.withdrawn as usize);

    let Reply::Array(array) = served.ask(&Request::Show { job: 1 }) else { panic!("no array") };
    assert_eq!((array.array, array.elements.len()), (1, ELEMENTS));
    assert!(array.elements.iter().all(|line| line.state == State::Completed));
    assert!(busbar(&served, &["show", "1_50"]).contains("job  51, which is 1_50"));
    assert!(busbar(&served, &["history", "--job", "1_7"]).contains("job 8 starts on node"));
    served.assert_nothing_is_left();
    served.stop();
}
