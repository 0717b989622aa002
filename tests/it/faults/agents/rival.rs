//! Two daemons with the same agents, and the same right to control them.

use std::fs;

use busbar::live::job::NodeState;
use busbar::live::wire::{Reply, Request};

use super::super::served::Served;
use super::{Cluster, NODES};
use crate::patience::wait_for;

/// A daemon with a folder of its own, and with the agents of a cluster.
fn rival_of(cluster: &Cluster) -> Served {
    let rival = Served::new("easy", "");
    let agents = cluster.served.path("");
    let config = fs::read_to_string(cluster.served.path("busbar.toml")).unwrap();
    let config = (0..NODES).fold(config, |config, number| {
        let there = format!("\"{}/n{number}/", agents.display());
        config.replace(&format!("\"n{number}/"), &there)
    });
    fs::write(rival.path("busbar.toml"), config).unwrap();
    fs::copy(cluster.served.path("machine.toml"), rival.path("machine.toml")).unwrap();
    rival
}

/// Why nodes are down, if all of them are.
fn all_down(served: &Served) -> Option<Vec<String>> {
    let Reply::Nodes(lines) = served.ask(&Request::Nodes) else { panic!("no nodes") };
    let reason = |state| match state {
        NodeState::Down { reason } => Some(reason),
        _ => None,
    };
    lines.into_iter().map(|line| reason(line.state)).collect()
}

#[test]
fn a_second_daemon_is_refused_and_both_sides_say_so() {
    let mut cluster = Cluster::new("easy", "");
    cluster.served.begin_and_answer();
    cluster.settled();
    let mut rival = rival_of(&cluster);
    rival.begin_and_answer();
    let reasons = wait_for("nodes that are down", || all_down(&rival));
    let instance = fs::read_to_string(cluster.served.state().join("instance")).unwrap();
    let holder = format!(", instance {}, since 20", instance.trim());
    for reason in &reasons {
        assert!(reason.starts_with("another controller holds the lease: user "), "{reason}");
        assert!(reason.contains(&holder), "{reason}");
    }
    assert!(rival.log().contains("another controller holds the lease"), "{}", rival.log());
    // The first daemon begins again, has its agents at once, and the second one still has not.
    cluster.served.kill();
    cluster.served.begin_and_answer();
    cluster.settled();
    assert_eq!(all_down(&rival), Some(reasons));
    for number in 0..NODES {
        let log = fs::read_to_string(cluster.folder(number).join("log")).unwrap();
        assert_eq!(log.matches("is refused: another controller").count(), 1, "{log}");
    }
    rival.stop();
}
