//! The state folder is removed or replaced while a daemon runs.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use busbar::live::wire::{RefusalKind, Reply, Request};

use super::served::Served;
use crate::patience::wait_for;

/// A job that runs until it is asked to end, and says who it is.
const LONG_JOB: &str = "echo $$ >> \"$RECORD\"; exec sleep infinity";

/// The process of the job that has begun.
fn process(served: &Served) -> u32 {
    wait_for("a job that has begun", || {
        let text = fs::read_to_string(served.record()).ok()?;
        text.ends_with('\n').then(|| text.trim().parse().unwrap())
    })
}

fn is_there(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // One that was not waited for yet is no job any more.
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[track_caller]
fn assert_refused(served: &Served, request: &Request) {
    match served.ask(request) {
        Reply::Error(refusal) => {
            assert_eq!(refusal.kind, RefusalKind::Unwritten, "{refusal}");
            assert!(refusal.message.contains("while the daemon ran"), "{refusal}");
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_says_so(served: &Served, what: &str) {
    let notices = served.status().notices;
    let said =
        |notice: &String| notice.contains("no job is started or accepted") && notice.contains(what);
    assert!(notices.iter().any(said), "{notices:?}");
}

#[test]
fn a_removed_state_folder() {
    let mut served = Served::new("easy", "period = \"100ms\"");
    served.begin_and_answer();
    let job = served.submit(LONG_JOB);
    let process = process(&served);
    // This daemon did not start the job itself.
    served.kill();
    served.begin_and_answer();
    fs::remove_dir_all(served.state()).unwrap();
    assert_says_so(&served, "state was removed");
    assert_refused(&served, &served.job(1, "exit 0"));
    for _ in 0..10 {
        assert_eq!(served.status().running, 1);
        sleep(Duration::from_millis(50));
    }
    assert!(is_there(process), "it runs on");
    // Whoever runs can still be ended.
    assert_refused(&served, &Request::Cancel { jobs: vec![job] });
    wait_for("the end of the job", || (!is_there(process)).then_some(()));
    assert_refused(&served, &served.job(1, "exit 0"));
    assert!(!served.state().exists(), "it does not come back by itself");
    assert!(served.log().contains("was removed while the daemon ran"), "{}", served.log());
    served.stop();
    assert!(!served.state().exists());
}

#[test]
fn a_replaced_state_folder() {
    let mut served = Served::new("easy", "");
    served.begin_and_answer();
    let (state, aside) = (served.state(), served.path("aside"));
    assert_eq!(served.submit("exit 0"), 1);
    served.drain();
    // A copy has the same content, and is another one.
    fs::rename(&state, &aside).unwrap();
    fs::create_dir(&state).unwrap();
    for name in ["lock", "busbar.db", "busbar.db-wal", "busbar.db-shm"] {
        fs::copy(aside.join(name), state.join(name)).unwrap();
    }
    assert_refused(&served, &served.job(1, "exit 0"));
    assert_says_so(&served, "was replaced");
    // What was there is put back, and all goes on.
    fs::remove_dir_all(&state).unwrap();
    fs::rename(&aside, &state).unwrap();
    assert_eq!(served.submit("exit 0"), 2);
    served.drain();
    assert_eq!(served.status().notices, [""; 0]);
    for name in ["lock", "busbar.db", "busbar.db-wal"] {
        fs::rename(state.join(name), state.join("aside")).unwrap();
        assert_refused(&served, &served.job(1, "exit 0"));
        assert_says_so(&served, &format!("{name} was removed"));
        fs::rename(state.join("aside"), state.join(name)).unwrap();
    }
    assert_eq!(served.submit("exit 0"), 3);
    served.drain();
    served.stop();
}
