//! Who gets in, and what becomes of a node when its agent stops.

use std::fs;
use std::os::unix::fs::chown;
use std::time::{Duration, Instant};

use busbar_agent::Stopped;
use busbar_agent::client::ClientError;
use busbar_agent::wire::{Answer, Caps, Event, Message, RefusalKind, Request};
use busbar_needs::needs;

use crate::node::{Node, PATIENCE, watts};

fn set(cap: u32) -> Request {
    Request::Set(Caps::Node { cap: watts(cap) })
}

#[test]
fn a_controller_sets_caps_and_gives_the_node_back() {
    let node = Node::start("n1");
    let mut client = node.connect(true).unwrap();
    assert_eq!(client.inventory().node, "n1");
    assert!(client.inventory().emulated);
    let Answer::Set(report) = client.ask(set(120)).unwrap() else { panic!() };
    assert!(report.is_confirmed());
    assert_eq!(node.limits(), [60, 60]);
    let Answer::Set(report) = client.ask(Request::Release).unwrap() else { panic!() };
    assert!(report.is_confirmed());
    assert_eq!(node.limits(), [100, 100]);
}

#[test]
fn who_came_to_look_changes_nothing() {
    let node = Node::start("n1");
    let mut client = node.connect(false).unwrap();
    let Err(ClientError::Refused(refusal)) = client.ask(set(120)) else { panic!() };
    assert_eq!(refusal.kind, RefusalKind::Forbidden);
    assert!(matches!(client.ask(Request::Read).unwrap(), Answer::Sample(_)));
    assert_eq!(node.limits(), [100, 100]);
}

#[test]
fn a_new_connection_of_a_controller_ends_the_older_one() {
    let node = Node::start("n1");
    let mut old = node.connect(true).unwrap();
    old.ask(set(160)).unwrap();
    let mut new = node.connect(true).unwrap();
    new.ask(set(120)).unwrap();
    assert!(matches!(old.ask(set(200)), Err(ClientError::Broken { .. })));
    assert_eq!(node.limits(), [60, 60]);
}

#[test]
fn there_are_only_so_many_connections() {
    let node = Node::with("n1", |config| config.connections = 2);
    let first = node.connect(false).unwrap();
    let _second = node.connect(false).unwrap();
    // A client that is admitted first, and then told that it is one too many, sees its connection end.
    let third = node.connect(false).and_then(|mut client| client.ask(Request::Read));
    assert!(third.is_err());
    drop(first);
    let begin = Instant::now();
    while node.connect(false).and_then(|mut client| client.ask(Request::Read)).is_err() {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_agent_that_stops_restores_what_nobody_counts_on() {
    let mut node = Node::start("n1");
    let mut client = node.connect(true).unwrap();
    client.ask(set(120)).unwrap();
    client.ask(Request::Release).unwrap();
    assert!(matches!(node.stop(), Stopped::Restored(_)));
    assert_eq!(node.limits(), [100, 100]);
    assert!(!node.socket().exists());
}

#[test]
fn an_agent_that_stops_keeps_what_an_absent_controller_counts_on() {
    let mut node = Node::start("n1");
    let mut client = node.connect(true).unwrap();
    client.ask(set(120)).unwrap();
    drop(client);
    assert!(matches!(node.stop(), Stopped::Kept { .. }));
    assert_eq!(node.limits(), [60, 60]);
    // The next one knows them, and an operator can restore them.
    node.run();
    let client = node.connect(false).unwrap();
    assert_eq!(client.inventory().counted, watts(120));
    drop(client);
    node.stop();
    busbar_agent::server::restore(node.config.clone()).unwrap();
    assert_eq!(node.limits(), [100, 100]);
}

/// A new folder would take the caps for the site's limits.
#[test]
fn limits_are_restored_only_from_what_an_agent_saved() {
    let mut node = Node::start("n1");
    let mut client = node.connect(true).unwrap();
    client.ask(set(120)).unwrap();
    drop(client);
    node.stop();
    let mut elsewhere = node.config.clone();
    elsewhere.state = elsewhere.state.with_file_name("new");
    let restore = |config: &busbar_agent::config::Config| {
        busbar_agent::server::restore(config.clone()).map_err(|error| error.to_string())
    };
    let said = restore(&elsewhere).unwrap_err();
    assert!(said.contains("no agent has saved the site's limits"), "{said}");
    assert!(!elsewhere.state.exists());
    fs::create_dir(&elsewhere.state).unwrap();
    let said = restore(&elsewhere).unwrap_err();
    assert!(said.contains("no agent has saved the site's limits"), "{said}");
    assert_eq!(fs::read_dir(&elsewhere.state).unwrap().count(), 0, "nothing is left in it");
    assert_eq!(node.limits(), [60, 60]);
    restore(&node.config).unwrap();
    assert_eq!(node.limits(), [100, 100]);
}

/// The agent of the package has a user of its own, who alone may restore what it saved.
#[needs(root)]
#[test]
fn limits_of_another_users_agent_are_restored_as_that_user() {
    let mut node = Node::start("n1");
    let mut client = node.connect(true).unwrap();
    client.ask(set(120)).unwrap();
    drop(client);
    node.stop();
    chown(&node.config.state, Some(65_533), Some(65_532)).unwrap();
    let error = busbar_agent::server::restore(node.config.clone()).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("setpriv --reuid 65533 --regid 65532"), "{said}");
    assert!(!said.contains("new folder"), "{said}");
    assert_eq!(node.limits(), [60, 60]);
}

#[test]
fn a_controller_that_is_told_may_release_a_node_that_stops() {
    let mut node = Node::start("n1");
    let mut client = node.connect(true).unwrap();
    client.ask(set(120)).unwrap();
    client.ask(Request::Watch { period: 1000 }).unwrap();
    let answering = std::thread::spawn(move || {
        loop {
            if let Message::Event { event: Event::Stopping, .. } = client.next(PATIENCE).unwrap() {
                return client.ask(Request::Release).unwrap();
            }
        }
    });
    assert!(matches!(node.stop(), Stopped::Restored(_)));
    assert!(matches!(answering.join().unwrap(), Answer::Set(_)));
    assert_eq!(node.limits(), [100, 100]);
}

#[test]
fn those_who_watch_hear_of_samples_and_events() {
    let node = Node::start("n1");
    let mut client = node.connect(true).unwrap();
    client.ask(Request::Watch { period: 100 }).unwrap();
    client.ask(set(120)).unwrap();
    let limit = node.config.hardware.powercap.join("intel-rapl:0/constraint_0_power_limit_uw");
    fs::write(limit, "90000000\n").unwrap();
    let (mut samples, mut changed) = (0, false);
    let begin = Instant::now();
    while samples < 3 || !changed {
        assert!(begin.elapsed() < PATIENCE);
        match client.next(PATIENCE).unwrap() {
            Message::Sample(sample) => {
                samples += 1;
                assert_eq!(sample.domains.len(), 2);
            }
            Message::Event { event: Event::Changed { .. }, .. } => changed = true,
            _ => (),
        }
    }
    assert_eq!(node.limits(), [60, 60]);
}

#[test]
fn two_agents_do_not_share_a_node() {
    let node = Node::start("n1");
    let error = busbar_agent::server::Server::start(node.config.clone()).err().unwrap();
    assert!(error.to_string().contains("another agent uses"), "{error}");
}
