//! A daemon with agents begins again while jobs run: what it says of them is what their nodes have.

use std::fs;

use busbar::live::job::{EventKind, NodeState};
use busbar::live::wire::Request;

use super::Cluster;
use crate::patience::wait_for;

/// A job that runs until there is a file of its name, and writes down that it has seen it.
fn until_told(name: &str) -> String {
    format!(
        ": > began-{name}; while [ ! -e go-{name} ]; do sleep 0.05; done; echo {name} >> $RECORD"
    )
}

impl Cluster {
    /// How often the agent of a node was asked for so many watts, for each of its two packages.
    fn asked_for(&self, number: usize, watts: u64) -> usize {
        let log = fs::read_to_string(self.folder(number).join("state/changes.log")).unwrap();
        let asked = format!("\"requested_mw\":{}", watts * 1000 / 2);
        log.lines().filter(|line| line.contains("\"set\"") && line.contains(&asked)).count()
    }

    /// Waits until jobs have begun.
    fn begun(&self, names: &[&str]) {
        let has_begun = |name: &&str| self.served.path(&format!("began-{name}")).exists();
        wait_for("jobs that have begun", || names.iter().all(has_begun).then_some(()));
    }

    fn allow(&self, name: &str) {
        fs::write(self.served.path(&format!("go-{name}")), "").unwrap();
    }
}

/// A job runs at full speed on three nodes while the daemon is killed, and while it stops. Its nodes are never told
/// anything else, whether their agents were there or came later.
#[test]
fn a_restart_does_not_slow_jobs_down() {
    let mut cluster = Cluster::new("easy-power", "");
    cluster.served.begin_and_answer();
    let job = cluster.submit(3, &until_told("one"));
    cluster.begun(&["one"]);
    let caps = wait_for("a job at full speed", || {
        let caps = cluster.settled();
        (caps.iter().sum::<u64>() == 3 * 200 + 13 * 80).then_some(caps)
    });
    let nodes: Vec<usize> = (0..caps.len()).filter(|node| caps[*node] == 200).collect();
    let lowest = |cluster: &Cluster| -> Vec<usize> {
        nodes.iter().map(|node| cluster.asked_for(*node, 80)).collect()
    };
    let before = lowest(&cluster);
    for round in 0..3 {
        match round {
            0 => cluster.served.stop(),
            1 => cluster.served.kill(),
            // The agent of one of its nodes is away when the daemon begins.
            _ => {
                cluster.served.kill();
                cluster.kill_agent(nodes[0]);
            }
        }
        cluster.served.begin_and_answer();
        if round == 2 {
            wait_for("a node that is down", || {
                let state = &cluster.lines()[nodes[0]].state;
                matches!(state, NodeState::Down { .. }).then_some(())
            });
            cluster.begin_agent(nodes[0]);
        }
        assert_eq!(cluster.settled(), caps, "round {round}\n{}", cluster.served.log());
        assert_eq!(lowest(&cluster), before, "round {round}\n{}", cluster.served.log());
    }
    cluster.allow("one");
    cluster.served.drain();
    let ended = |kind: &EventKind| matches!(kind, EventKind::Ended { job: of, .. } if *of == job);
    assert!(cluster.served.history().iter().any(|line| ended(&line.event.kind)));
}

/// The limit falls so far that the younger of two jobs is suspended. The daemon is killed, the older job ends, and the
/// next daemon lets the younger one go on: in its books, and in the kernel.
#[test]
fn a_suspended_job_goes_on_after_a_restart() {
    let mut cluster = Cluster::new("easy-power", "last_resort = \"suspend\"");
    cluster.served.begin_and_answer();
    cluster.submit(4, &until_told("older"));
    let younger = cluster.submit(4, &until_told("younger"));
    cluster.begun(&["older", "younger"]);
    wait_for("both at full speed", || {
        (cluster.settled().iter().sum::<u64>() == 8 * 200 + 8 * 80).then_some(())
    });
    // 16 idle nodes draw 320 W, and four that work at their lowest cap 240 W more.
    cluster.served.ask(&Request::Budget { set: Some("600W".to_owned()) });
    let is_stopped = |cluster: &Cluster| {
        cluster.served.jobs_processes().iter().any(|number| {
            let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
        })
    };
    wait_for("a job that is suspended", || is_stopped(&cluster).then_some(()));
    cluster.served.kill();
    cluster.allow("older");
    wait_for("the end of the older job", || {
        let record = fs::read_to_string(cluster.served.record()).unwrap_or_default();
        record.contains("older").then_some(())
    });
    cluster.served.begin_and_answer();
    wait_for("a job that goes on", || (!is_stopped(&cluster)).then_some(()));
    cluster.allow("younger");
    cluster.served.drain();
    let record = fs::read_to_string(cluster.served.record()).unwrap();
    assert_eq!(record, "older\nyounger\n");
    let history = cluster.served.history();
    let resumed =
        history.iter().filter(|line| line.event.kind == EventKind::Resumed { job: younger });
    assert_eq!(resumed.count(), 1);
}

/// The limit falls, and jobs are slowed down. A daemon that begins after a kill says of them what they have, and its
/// history tells of no change that nobody made.
#[test]
fn slowed_jobs_stay_as_they_are_after_a_restart() {
    let mut cluster = Cluster::new("easy-power", "");
    cluster.served.begin_and_answer();
    for name in ["one", "two"] {
        cluster.submit(4, &until_told(name));
    }
    cluster.begun(&["one", "two"]);
    wait_for("both at full speed", || {
        (cluster.settled().iter().sum::<u64>() == 8 * 200 + 8 * 80).then_some(())
    });
    let changes = |cluster: &Cluster| {
        let history = cluster.served.history();
        let kinds = history.into_iter().map(|line| line.event.kind);
        kinds.filter(|kind| matches!(kind, EventKind::Changed { .. })).count()
    };
    cluster.served.ask(&Request::Budget { set: Some("1400W".to_owned()) });
    wait_for("slowed jobs", || (changes(&cluster) > 0).then_some(()));
    let (caps, before) = (cluster.settled(), changes(&cluster));
    for round in 0..3 {
        cluster.served.kill();
        cluster.served.begin_and_answer();
        assert_eq!(cluster.settled(), caps, "round {round}\n{}", cluster.served.log());
        assert_eq!(changes(&cluster), before, "round {round}\n{}", cluster.served.log());
    }
    for name in ["one", "two"] {
        cluster.allow(name);
    }
    cluster.served.drain();
}
