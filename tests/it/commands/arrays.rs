//! Arrays of jobs: submitted, named and waited for.

use std::sync::Mutex;

use busbar::live::job::{After, Element};
use busbar::live::wire::{Answer, ArrayDetails, JobLine, Reply, Request, State};

use super::canned::{Daemon, canned, details};
use super::{assert_prints, write_script};

/// An array of three, of which the first has run, and a job besides.
fn with_array(request: &Request) -> Reply {
    let element =
        |index| Element { array: 12, index, count: 4, least: 1, most: 9, at_once: Some(1) };
    let line = |job, index, state, reason: Option<&str>| JobLine {
        job,
        state,
        reason: reason.map(str::to_owned),
        array: Some(element(index)),
        on: Vec::new(),
        power: None,
        speed: None,
        ran: None,
        name: Some("sweep".to_owned()),
        ..details(State::Waiting, None, None).line
    };
    let wait = Some("at most 1 of its array at once");
    let elements = vec![
        line(13, 1, State::Completed, None),
        line(14, 3, State::Waiting, Some("for power")),
        line(15, 4, State::Blocked, wait),
        line(16, 9, State::Blocked, wait),
    ];
    match request {
        Request::Show { job: 12 } => Reply::Array(ArrayDetails { array: 12, elements }),
        Request::Show { job: 14 } => {
            let mut details = details(State::Waiting, None, None);
            details.line = elements[1].clone();
            Reply::Show(Box::new(details))
        }
        Request::Queue => Reply::Queue(elements[1..].to_vec()),
        Request::Cancel { jobs } => Reply::Done(
            jobs.iter().map(|job| Answer { job: *job, refusal: None, asked: false }).collect(),
        ),
        other => canned(other),
    }
}

#[test]
fn arrays_are_submitted_and_named() {
    let daemon = Daemon::new(with_array);
    let printed = daemon.prints(&["submit", "--array", "1-9:4,2%2", "--", "true"]);
    assert_eq!(printed, "submitted array 12 of 4 jobs\n");
    let job = daemon.last_submission();
    assert_eq!(job.array.map(String::from), Some("1-9:4,2%2".to_owned()));
    let folder = daemon.folder.path().canonicalize().unwrap();
    assert_eq!(job.program.output, folder.join("busbar-%A_%a.out"));
    // A script may say so, too, and what is typed wins.
    write_script(&daemon.path("job.sh"), "#!/bin/sh\n#BUSBAR --array 1-3\ntrue\n", 0o755);
    daemon.prints(&["submit", "job.sh"]);
    assert_eq!(daemon.last_submission().array.map(String::from), Some("1-3".to_owned()));
    daemon.prints(&["submit", "--array", "7", "job.sh"]);
    assert_eq!(daemon.last_submission().array.map(String::from), Some("7".to_owned()));
    let (code, said) = daemon.fails(&["submit", "--array", "9-1", "--", "true"]);
    assert!(code == 2 && said.contains("'9-1' goes down"), "{said}");
    let (code, said) = daemon.fails(&["submit", "--array", "1-3", "-o", "out", "--", "true"]);
    assert_eq!(
        (code, said.lines().next()),
        (
            0,
            Some(
                "warning: all elements of the array write to the same file; %a in its name is the index"
            )
        )
    );
    // Elements are found by their array.
    daemon.prints(&["submit", "--after", "12_9", "--after-any", "12", "--", "true"]);
    let after = |job, any| After { job, any };
    assert_eq!(daemon.last_submission().request.after, [after(16, false), after(12, true)]);
    assert_eq!(daemon.prints(&["cancel", "12_3", "12"]), "cancelled job 12_3\ncancelled job 12\n");
    assert_eq!(daemon.last(), Request::Cancel { jobs: vec![14, 12] });
    daemon.prints(&["history", "--job", "12_4", "-n", "12"]);
    assert_eq!(daemon.last(), Request::History { job: Some(15), after: None, limit: Some(12) });
    assert_eq!(
        daemon.fails(&["cancel", "12_2"]),
        (2, "error: array 12 has no element 2\n".to_owned())
    );
    let (_, said) = daemon.fails(&["show", "7_1"]);
    assert_eq!(said, "error: job 7 is not an array, and has no element 1\n");
    assert_prints(
        &daemon,
        &["queue"],
        "
       JOB  NAME   USER  STATE    TIME/LIMIT  NODES  ON  POWER  REASON
      12_3  sweep  root  waiting     1:00:00      3             for power
  12_[4,9]  sweep  root  blocked     1:00:00      3             at most 1 of its array at once
",
    );
    let shown = daemon.prints(&["show", "12"]);
    assert!(shown.starts_with("array 12: 1 completed, 1 waiting, 2 blocked\n"), "{shown}");
    assert!(daemon.prints(&["show", "12_3"]).starts_with("         job  14, which is 12_3\n"));
}

/// Waiting for an array is waiting for all of it.
#[test]
fn waiting_for_an_array_ends_when_all_are_over() {
    for (last, code) in [(State::Completed, 0), (State::Failed, 1)] {
        let looks = Mutex::new(0);
        let daemon = Daemon::new(move |request| match with_array(request) {
            Reply::Array(mut array) => {
                let mut looks = looks.lock().unwrap();
                *looks += 1;
                if *looks > 2 {
                    array.elements.iter_mut().for_each(|line| line.state = State::Completed);
                    array.elements[3].state = last;
                }
                Reply::Array(array)
            }
            other => other,
        });
        let output = daemon.run(&["submit", "--wait", "--array", "1,3,4,9", "--", "true"]);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let states = if code == 0 { "4 completed" } else { "3 completed, 1 failed" };
        assert_eq!(printed, format!("submitted array 12 of 4 jobs\narray 12: {states}\n"));
        assert_eq!(output.status.code(), Some(code));
    }
}
