//! Jobs start on Slurm in the order in which the simulator starts them.
//!
//! Slurm takes a moment to start a job, and its end is seen at the next look. That is all that differs from a simulation, so
//! the simulator is given the same jobs, coming at the instants and running for the times that the daemon has seen. Then all
//! decisions have to be equal, in order and to the millisecond.

use busbar::budget::BudgetSpec;
use busbar::live::job::{EventKind, Owner};
use busbar::live::server::config::Config;
use busbar::model::Rigid;
use busbar_needs::needs;

use super::is_in_full;
use super::served::{Served, jobs};
use crate::live_order::expected::{simulated, workload};
use crate::live_order::real::{seen, swapped, turned_twice};
use crate::live_order::{Told, assert_same};

/// How often a run is made again in which the loop turned twice within a millisecond.
const TRIES: usize = 10;

#[needs(slurm)]
#[test]
fn jobs_start_in_the_order_of_the_simulation() {
    let (nodes, count, policies) = match is_in_full() {
        true => {
            (64, 200, &["easy", "rmap-adaptive", "pb-guided", "parm", "ppartition", "share"][..])
        }
        false => (16, 40, &["easy-power"][..]),
    };
    for policy in policies {
        let is_told = |_: &usize| compare(nodes, count, policy);
        assert!((0..TRIES).any(|tries| is_told(&tries)), "{policy}: two turns in a millisecond");
    }
}

/// Compares the decisions of a daemon with those of the simulator. False if the history does not tell which of two turns
/// came with which event.
fn compare(nodes: u32, count: u32, policy: &str) -> bool {
    let mut served = Served::idle(nodes, "steer", policy, &[]);
    let planned = jobs(count, 3);
    // They wait already when the daemon begins, so that the order is the policy's.
    served.submit(&planned);
    served.begin();
    served.wait("the jobs", || (served.status().waiting > 0).then_some(()));
    served.wait("all jobs", || {
        (served.ended() >= planned.len() && served.queue().is_empty()).then_some(())
    });
    let history = served.history();
    if turned_twice(&history) {
        return false;
    }
    let is_odd = |kind: &EventKind| matches!(kind, EventKind::Withdrawn { .. });
    assert!(!history.iter().any(|line| is_odd(&line.event.kind)), "{}", served.log());
    let resolved = Config::load(&served.config()).unwrap().resolve().unwrap();
    let setup = resolved.setup;
    let told = Told::of(&history, setup.decider.policy().names_nodes());
    let owner = Owner { user: 0, group: 0 };
    let known = workload(&seen(&planned, &history), owner, &setup);
    let budget = "70%".parse::<BudgetSpec>().unwrap().resolve(&setup.machine).unwrap();
    let expected = simulated(&setup, &budget, &known, &Rigid::on(&setup.machine));
    assert_same(&told, &expected, policy);
    assert_eq!(told.order().len(), planned.len());
    let submitted: Vec<u64> = (1..=u64::from(count)).collect();
    println!(
        "{policy}: {count} jobs on {nodes} nodes of Slurm, {} changes, {} of {} pairs not in the order of submission; order \
         and instants as in the simulation",
        told.changes(),
        swapped(&told.order(), &submitted),
        count * (count - 1) / 2
    );
    true
}
