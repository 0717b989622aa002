//! Nodes that are switched off and on while the daemon is killed now and then.

use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use busbar::live::job::EventKind;
use busbar::live::wire::{HistoryLine, Reply, Request};
use busbar::units::Watts;
use busbar_core::ledger::SwitchState;

use super::books::Books;
use super::served::Served;
use crate::patience::wait_for;

/// Eight nodes of 100 W, 20 W idle and 2 W off, which stop and start within fifths of a second.
const MACHINE: &str = "nodes = 8\n[power]\nnode = \"100W\"\nidle = \"20W\"\nrest = \"0W\"\n[off]\npower = \"2W\"\n\
                       stop = { time = \"200ms\", power = \"30W\" }\nstart = { time = \"200ms\", power = \"60W\" }\n";

fn states(served: &Served) -> Vec<Option<SwitchState>> {
    match served.ask(&Request::Nodes) {
        Reply::Nodes(nodes) => nodes.into_iter().map(|node| node.switched).collect(),
        other => panic!("{other:?}"),
    }
}

fn wait_for_seven_off(served: &Served) {
    wait_for("that seven nodes are off", || {
        let off = states(served).into_iter().filter(|state| *state == Some(SwitchState::Off));
        (off.count() == 7).then_some(())
    });
}

/// A node goes from one state to the next, whoever the daemon is: on, stopping, off, starting, on.
fn check_order(history: &[HistoryLine]) -> usize {
    let mut states = BTreeMap::new();
    let mut switches = 0;
    for line in history {
        let EventKind::Node { node, switched, .. } = &line.event.kind else { continue };
        let next = match states.insert(*node, *switched).flatten() {
            None => Some(SwitchState::Stopping),
            Some(SwitchState::Stopping) => Some(SwitchState::Off),
            Some(SwitchState::Off) => Some(SwitchState::Starting),
            Some(SwitchState::Starting) => None,
        };
        assert_eq!(*switched, next, "node {node} in line {}", line.line);
        switches += 1;
    }
    switches
}

#[test]
fn a_daemon_that_is_killed_knows_which_nodes_are_off() {
    let rule = "switch_off = \"idle for 300ms, keep 1 spare\"\nperiod = \"100ms\"";
    let mut served = Served::new("easy", rule);
    fs::write(served.path("machine.toml"), MACHINE).unwrap();
    served.begin_and_answer();
    wait_for_seven_off(&served);
    let status = served.status();
    assert_eq!((status.nodes, status.switched), ((8, 1), 7));
    assert_eq!(status.power.base, Watts::from_watts(20 + 7 * 2));
    served.kill();
    served.begin_and_answer();
    assert_eq!(served.status().power.base, Watts::from_watts(20 + 7 * 2), "off is off");
    for round in 0..8 {
        match served.ask(&served.job(3, "sleep 0.1")) {
            Reply::Submitted { .. } => (),
            other => panic!("{other:?}"),
        }
        // In the middle of a start, of a job, of the time that nodes are idle, of a stop.
        sleep(Duration::from_millis(100 * round));
        served.kill();
        served.begin_and_answer();
    }
    served.drain();
    wait_for_seven_off(&served);
    let history = served.history();
    let books = Books::add_up(&history, 8).unwrap();
    assert_eq!((books.jobs.len(), books.shortages), (8, 0));
    let mut outcomes = books.jobs.values().map(|account| account.outcome.as_ref().unwrap());
    assert!(outcomes.all(|outcome| outcome.succeeded()));
    // Seven nodes twice, and at least two of them on and off again for a job.
    let switches = check_order(&history);
    assert!(switches >= 7 * 2 + 2 * 4, "{switches}");
    served.stop();
}
