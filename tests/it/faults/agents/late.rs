//! What a controller asked for before it went, when the agent comes to it too late.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use rustix::process::{Pid, Signal, kill_process};

use super::Cluster;
use crate::patience::wait_for;

/// A controller of node 0 that asks in plain lines.
struct Controller(BufReader<UnixStream>);

impl Controller {
    fn admitted(cluster: &Cluster) -> Self {
        let socket = cluster.folder(0).join("socket");
        let stream = wait_for("an agent that listens", || UnixStream::connect(&socket).ok());
        let mut controller = Controller(BufReader::new(stream));
        let hello = r#"{"hello":{"protocol":"1.0","client":"late","control":true}}"#;
        let welcome = controller.ask(hello);
        assert!(welcome.contains("welcome"), "{welcome}");
        controller
    }

    fn say(&mut self, request: &str) {
        let line = format!("{{\"id\":0,\"request\":{request}}}\n");
        self.0.get_mut().write_all(line.as_bytes()).unwrap();
    }

    fn ask(&mut self, request: &str) -> String {
        self.say(request);
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line
    }
}

/// An agent is stopped while its controller asks for a higher cap, does not wait for the answer, and goes. It counts on
/// the lower cap then, and the agent must not raise it when it goes on.
#[test]
fn what_somebody_asked_who_has_gone_is_not_done() {
    let cluster = Cluster::new("easy-power", "");
    let mut controller = Controller::admitted(&cluster);
    let answer = controller.ask(r#"{"set":{"node":{"cap":120000}}}"#);
    assert!(answer.contains("confirmed"), "{answer}");
    assert_eq!(cluster.nodes()[0].0, 120);
    let agent = cluster.agents[0].as_ref().unwrap().id();
    let signal = |signal| kill_process(Pid::from_raw(agent as i32).unwrap(), signal).unwrap();
    signal(Signal::STOP);
    wait_for("an agent that stands still", || {
        let stat = fs::read_to_string(format!("/proc/{agent}/stat")).unwrap();
        stat.rsplit(") ").next()?.starts_with('T').then_some(())
    });
    controller.say(r#"{"set":{"node":{"cap":200000}}}"#);
    // A process that another test has just forked may hold the socket for a moment longer than this one.
    controller.0.get_ref().shutdown(Shutdown::Both).unwrap();
    drop(controller);
    signal(Signal::CONT);
    // The next one is admitted when the agent has looked at all that came before.
    Controller::admitted(&cluster);
    assert_eq!(cluster.nodes()[0].0, 120);
}
