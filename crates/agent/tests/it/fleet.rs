//! A controller with many agents.

use std::collections::BTreeSet;
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use busbar_agent::fleet::{AgentId, Fleet, Options, Report, Target};
use busbar_agent::wire::{Answer, Caps, Event, Request};

use crate::node::{Node, PATIENCE, watts};

pub(crate) fn target(node: &Node) -> Target {
    Target { node: node.config.node.clone(), address: node.address() }
}

pub(crate) fn start(targets: Vec<Target>, options: Options) -> (Fleet, Receiver<Report>) {
    let (sender, reports) = channel();
    let fleet = Fleet::start(targets, options, move |report| {
        let _ = sender.send(report);
    });
    (fleet.unwrap(), reports)
}

/// The next report of a kind.
pub(crate) fn wait_for<T>(
    reports: &Receiver<Report>,
    mut pick: impl FnMut(Report) -> Option<T>,
) -> T {
    let begin = Instant::now();
    loop {
        let report = reports.recv_timeout(PATIENCE).unwrap();
        if let Some(found) = pick(report) {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE);
    }
}

/// A controller that waits for whoever is only slow.
pub(crate) fn options(name: &str) -> Options {
    Options { watch: None, connect_within: PATIENCE, ..Options::controller(name) }
}

fn set(cap: u32) -> Request {
    Request::Set(Caps::Node { cap: watts(cap) })
}

#[test]
fn many_nodes_are_set_at_once() {
    let nodes: Vec<Node> = (0..16).map(|number| Node::start(&format!("n{number}"))).collect();
    let (fleet, reports) = start(nodes.iter().map(target).collect(), options("test"));
    let mut up = BTreeSet::new();
    while up.len() < nodes.len() {
        up.insert(wait_for(&reports, |report| match report {
            Report::Up { agent, inventory } => {
                assert_eq!(inventory.node, nodes[agent.0].config.node);
                Some(agent)
            }
            _ => None,
        }));
    }
    let requests = (0..nodes.len()).map(|place| (AgentId(place), set(120)));
    let mut tickets = fleet.ask_all(requests, PATIENCE);
    while !tickets.is_empty() {
        let (agent, ticket) = wait_for(&reports, |report| match report {
            Report::Answered { agent, ticket, answer: Answer::Set(report) } => {
                assert!(report.is_confirmed());
                Some((agent, ticket))
            }
            Report::Failed { reason, .. } => panic!("{reason}"),
            _ => None,
        });
        assert_eq!(tickets.remove(&ticket), Some(agent));
    }
    assert!(nodes.iter().all(|node| node.limits() == [60, 60]));
}

#[test]
fn an_agent_that_goes_is_down_and_comes_up_with_what_holds() {
    let mut node = Node::start("n1");
    let (fleet, reports) = start(vec![target(&node)], options("test"));
    let is_up = |report| match report {
        Report::Up { inventory, .. } => Some(inventory),
        _ => None,
    };
    wait_for(&reports, is_up);
    fleet.ask(AgentId(0), set(120), PATIENCE);
    wait_for(&reports, |report| matches!(report, Report::Answered { .. }).then_some(()));
    node.stop();
    wait_for(&reports, |report| matches!(report, Report::Down { .. }).then_some(()));
    // What is asked meanwhile fails at once, and was surely not done.
    let asked = fleet.ask(AgentId(0), set(200), PATIENCE);
    let unsent = wait_for(&reports, |report| match report {
        Report::Failed { ticket, unsent, .. } if ticket == asked => Some(unsent),
        _ => None,
    });
    assert!(unsent);
    node.run();
    let inventory = wait_for(&reports, is_up);
    assert_eq!(inventory.counted, watts(120), "the caps were kept");
}

#[test]
fn a_peer_that_does_not_answer_is_given_up_in_time() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let address = busbar_agent::client::Address::Unix(path);
    let mut options = options("test");
    options.connect_within = Duration::from_millis(200);
    let targets = vec![Target { node: "n1".to_owned(), address }];
    let (_fleet, reports) = start(targets, options);
    // It takes the connection, and says nothing.
    let _half_open = listener.accept().unwrap();
    let reason = wait_for(&reports, |report| match report {
        Report::Down { reason, .. } => Some(reason),
        _ => None,
    });
    assert!(reason.contains("did not answer within 0.2 s"), "{reason}");
}

#[test]
fn a_request_that_is_late_fails_without_certainty() {
    // An agent that stops answering after its welcome: a relay that is cut.
    let node = Node::start("n1");
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let socket = node.socket();
    let relay = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut agent = std::os::unix::net::UnixStream::connect(socket).unwrap();
        let (mut there, mut back) = (client.try_clone().unwrap(), agent.try_clone().unwrap());
        // The first line in each direction, and then nothing any more.
        use std::io::{BufRead, BufReader, Write};
        let mut line = String::new();
        BufReader::new(&mut there).read_line(&mut line).unwrap();
        agent.write_all(line.as_bytes()).unwrap();
        line.clear();
        BufReader::new(&mut back).read_line(&mut line).unwrap();
        client.write_all(line.as_bytes()).unwrap();
        (client, agent)
    });
    let address = busbar_agent::client::Address::Unix(path);
    let targets = vec![Target { node: "n1".to_owned(), address }];
    let (fleet, reports) = start(targets, options("test"));
    wait_for(&reports, |report| matches!(report, Report::Up { .. }).then_some(()));
    let _cut = relay.join().unwrap();
    let asked = fleet.ask(AgentId(0), set(120), Duration::from_millis(100));
    let unsent = wait_for(&reports, |report| match report {
        Report::Failed { ticket, unsent, .. } if ticket == asked => Some(unsent),
        _ => None,
    });
    assert!(!unsent, "it was sent, so it may have been carried out");
    wait_for(&reports, |report| matches!(report, Report::Down { .. }).then_some(()));
}

/// An agent of version 1.0 refuses fields that it does not know.
#[test]
fn an_older_agent_is_greeted_in_its_own_words() {
    use std::io::{BufRead, BufReader, Write};
    let node = Node::start("n1");
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let socket = node.socket();
    let older = std::thread::spawn(move || {
        let line = |stream: &std::os::unix::net::UnixStream| {
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).unwrap();
            line
        };
        let (mut client, _) = listener.accept().unwrap();
        assert!(line(&client).contains("instance"));
        let refusal = r#"{"kind":"malformed","message":"unknown field `instance`"}"#;
        writeln!(client, r#"{{"answer":{{"id":0,"answer":{{"refused":{refusal}}}}}}}"#).unwrap();
        drop(client);
        let (mut client, _) = listener.accept().unwrap();
        let hello = line(&client);
        assert!(!hello.contains("instance"), "{hello}");
        let mut agent = std::os::unix::net::UnixStream::connect(socket).unwrap();
        agent.write_all(hello.as_bytes()).unwrap();
        client.write_all(line(&agent).as_bytes()).unwrap();
        (client, agent)
    });
    let address = busbar_agent::client::Address::Unix(path);
    let targets = vec![Target { node: "n1".to_owned(), address }];
    let options = Options { instance: "one".parse().ok(), ..options("busbar") };
    let (_fleet, reports) = start(targets, options);
    wait_for(&reports, |report| match report {
        Report::Up { .. } => Some(()),
        other => panic!("{other:?}"),
    });
    let _open = older.join().unwrap();
}

#[test]
fn an_agent_of_another_node_is_not_taken_for_this_one() {
    let node = Node::start("n1");
    let wrong = Target { node: "n2".to_owned(), address: node.address() };
    let (_fleet, reports) = start(vec![wrong], options("test"));
    let reason = wait_for(&reports, |report| match report {
        Report::Down { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(reason, "it is the agent of node 'n1', not of 'n2'");
}

#[test]
fn samples_and_leases_flow_until_the_controller_falls_silent() {
    let node = Node::with("n1", |config| config.caps.safe = Some(watts(90)));
    let options = Options { watch: Some(Duration::from_millis(100)), ..options("test") };
    let (fleet, reports) = start(vec![target(&node)], options);
    wait_for(&reports, |report| matches!(report, Report::Up { .. }).then_some(()));
    fleet.ask(AgentId(0), set(160), PATIENCE);
    fleet.renew(Duration::from_millis(500), PATIENCE);
    // In which order they come depends on how fast the machine is.
    let (mut has_sample, mut ended) = (false, None);
    let report = wait_for(&reports, |report| {
        match report {
            Report::Sample { .. } => has_sample = true,
            Report::Event { event: Event::LeaseEnded { report, .. }, .. } => ended = Some(report),
            _ => (),
        }
        ended.take_if(|_| has_sample)
    });
    assert_eq!(report.counted, watts(90));
    assert_eq!(node.limits(), [45, 45]);
}
