//! What is so when `busbar stop` returns, and when somebody removes the socket.

use std::fs::{self, File};
use std::process::Command;

use busbar::live::server::socket::Client;
use busbar::live::wire::Request;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

use super::served::{BUSBAR, Served};
use crate::patience::wait_for;

/// Runs a command that must end well.
#[track_caller]
fn run(served: &Served, arguments: &[&str]) {
    let output = Command::new(BUSBAR)
        .args(arguments)
        .env("BUSBAR_SOCKET", served.socket())
        .current_dir(served.path(""))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
}

#[test]
fn after_a_stop_the_next_can_begin() {
    let served = Served::new("easy", "");
    for round in 0..20 {
        run(&served, &["serve", "--background", "--config", "busbar.toml"]);
        run(&served, &["submit", "--", "true"]);
        // Somebody who just stays there is in nobody's way.
        let mut idle = Client::connect(&served.socket()).unwrap();
        idle.ask(&Request::Status).unwrap();
        run(&served, &["stop"]);
        assert!(!served.socket().exists(), "round {round}: the socket is there");
        for lock in [served.state().join("lock"), served.path("socket.lock")] {
            let file = File::open(&lock).unwrap();
            let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
            assert!(locked.is_ok(), "round {round}: {} is locked", lock.display());
        }
    }
}

#[test]
fn a_removed_socket_comes_back() {
    let mut served = Served::new("easy", "");
    served.begin_and_answer();
    let mut before = Client::connect(&served.socket()).unwrap();
    let hang_up = || {
        let process = Pid::from_raw(served.process() as i32).unwrap();
        kill_process(process, Signal::HUP).unwrap();
    };
    fs::remove_file(served.socket()).unwrap();
    hang_up();
    assert_eq!(served.status().process, served.process());
    // By itself, too.
    fs::remove_file(served.socket()).unwrap();
    assert_eq!(served.status().process, served.process());
    // Whoever was there is served on.
    before.ask(&Request::Status).unwrap();
    // Something else is not removed, and does not end the daemon. It comes at once, since the daemon may listen again at any time.
    let beside = served.socket().with_extension("other");
    fs::write(&beside, "precious").unwrap();
    fs::rename(&beside, served.socket()).unwrap();
    hang_up();
    wait_for("that it is said", || served.log().contains("is not a socket").then_some(()));
    assert_eq!(fs::read_to_string(served.socket()).unwrap(), "precious");
    fs::remove_file(served.socket()).unwrap();
    assert_eq!(served.status().process, served.process());
    served.stop();
    assert!(!served.socket().exists());
}
