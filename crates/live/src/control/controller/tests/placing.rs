//! The engine chooses the nodes of jobs.

use super::*;
use crate::engine::{Arrival, Underway};
use crate::job::ChangeReason;

fn world() -> World {
    let mut world = World::new(setup("easy-power"), Budget::constant(watts(1000)));
    world.controller.let_engine_choose(true);
    world
}

/// The nodes that a job is written down with, and whether they are its own.
fn nodes(world: &World, job: u64) -> (Vec<u32>, bool) {
    let run = world.file[&job].run().unwrap();
    (run.allotment.node_numbers(), !run.unplaced)
}

/// The nodes that acts give caps.
fn capped(acts: &[Act]) -> Vec<Vec<u32>> {
    let nodes = |act: &Act| match act {
        Act::Set { allotment, .. } => Some(allotment.node_numbers()),
        _ => None,
    };
    acts.iter().filter_map(nodes).collect()
}

/// Job 1 gets what was set aside for job 2, which gets what job 1 leaves; and whoever is killed in between finds it so.
#[test]
fn jobs_exchange_what_was_set_aside_for_them() {
    let mut world = world();
    world.submit(at(0), submission(2, 100));
    world.submit(at(0), submission(1, 100));
    let acts = world.cycle(at(0));
    assert!(capped(&acts).is_empty(), "nobody knows where they are");
    assert_eq!((nodes(&world, 1), nodes(&world, 2)), ((vec![0, 1], false), (vec![2], false)));
    assert_eq!(world.state(1, at(1)).0, State::Starting);
    assert!(world.controller.nodes().iter().all(|line| line.job.is_none()));
    let held = world.controller.scheduler.ledger().held();
    assert!(world.controller.placed(at(1), first(1), &[1, 2]));
    assert!(!world.controller.placed(at(1), first(1), &[1, 2]), "once");
    assert_eq!(capped(&world.cycle(at(1))), [[1, 2]]);
    assert_eq!((nodes(&world, 1), nodes(&world, 2)), ((vec![1, 2], true), (vec![0], false)));
    assert_eq!(world.state(1, at(1)).0, State::Running);
    assert_eq!(world.controller.scheduler.ledger().held(), held);
    let is_placed = |kind: &EventKind| {
        matches!(kind, EventKind::Changed { job: 1, reason: ChangeReason::Placed, .. })
    };
    assert!(world.events.iter().any(is_placed));
    world.restart(at(2));
    world.controller.let_engine_choose(true);
    assert_eq!(capped(&world.cycle(at(2))), [[1, 2]], "job 2 has no nodes yet");
    assert!(world.controller.may_have(first(2)).is_empty());
    assert!(world.controller.placed(at(3), first(2), &[3]));
    world.cycle(at(3));
    assert_eq!(nodes(&world, 2), (vec![3], true));
    assert_eq!(world.controller.nodes()[3].job, Some(2));
}

/// What a job needs for more nodes than it was given waits for what others give up, like any other raise.
#[test]
fn a_job_on_more_nodes_than_it_was_given_waits_for_its_caps() {
    let mut world = world();
    world.submit(at(0), submission(1, 100));
    world.cycle(at(0));
    let held = world.controller.scheduler.ledger().held();
    assert!(world.controller.placed(at(1), first(1), &[1, 2]));
    let acts = world.cycle(at(1));
    let raise = acts.iter().find(|act| matches!(act, Act::Set { .. })).unwrap();
    assert!(raise.takes() && world.controller.scheduler.ledger().held() > held);
    assert_eq!(capped(&acts), [[1, 2]]);
}

/// Node 0 is another job's, as far as is known; when that one ends, the node changes hands.
#[test]
fn what_a_job_really_has_stays_its_own() {
    let mut world = world();
    world.submit(at(0), submission(1, 100));
    world.submit(at(0), submission(1, 100));
    world.cycle(at(0));
    assert!(world.controller.placed(at(1), first(1), &[0]));
    assert!(!world.controller.placed(at(1), first(2), &[0]));
    assert!(capped(&world.cycle(at(1))).iter().all(|nodes| *nodes == [0]));
    assert_eq!(nodes(&world, 2), (vec![1], false));
    let notices = |world: &World| {
        world.events.iter().filter(|kind| matches!(kind, EventKind::Notice { .. })).count()
    };
    world.cycle(at(2));
    assert_eq!(notices(&world), 1, "it is said once");
    world.end(at(3), first(1), End::Exited(0));
    assert_eq!(capped(&world.cycle(at(3))), [[0]]);
    assert_eq!(nodes(&world, 2), (vec![0], true));
}

/// A job for which there are no nodes gives its power back, and is not started again before the engine offers it.
#[test]
fn a_job_that_is_set_aside_holds_nothing() {
    let mut world = world();
    let job = world.submit(at(0), submission(2, 100));
    world.controller.jobs.get_mut(&job).unwrap().handle = Some("7@1".to_owned());
    world.controller.by_handle.insert("7@1".to_owned(), job);
    world.cycle(at(0));
    world.controller.set_aside(at(1), first(job), "Slurm did not place it: Resources".to_owned());
    assert!(!world.cycle(at(1)).iter().any(|act| matches!(act, Act::Start { .. })));
    assert_eq!(world.controller.scheduler.ledger().held(), Watts::ZERO);
    let why = "Slurm did not place it: Resources".to_owned();
    assert_eq!(world.state(job, at(1)), (State::Waiting, Some(why)));
    world.controller.offered("7@1");
    assert!(world.cycle(at(2)).iter().any(|act| matches!(act, Act::Start { .. })));
}

/// Slurm has started others' work on nodes that were set aside: what is not placed moves, or waits again if there is no room. The
/// work counts before its nodes get more.
#[test]
fn work_of_others_takes_the_nodes_it_is_on() {
    let mut world = world();
    world.submit(at(0), submission(2, 100));
    world.submit(at(0), submission(1, 100));
    world.cycle(at(0));
    let arrival = |handle: &str, nodes: &[u32]| Arrival {
        handle: handle.to_owned(),
        owner: BOB,
        request: JobRequest { nodes: nodes.len() as u32, ..submission(1, 100).request },
        running: Some(Underway {
            nodes: nodes.to_vec(),
            ran: Span::ZERO,
            of_others: true,
            node_power: None,
        }),
    };
    let held = world.controller.scheduler.ledger().held();
    let others = world.controller.arrived(at(1), arrival("others:5@1:n3", &[2])).unwrap();
    let acts = world.cycle(at(1));
    assert_eq!(nodes(&world, 2), (vec![3], false));
    assert_eq!((nodes(&world, others), capped(&acts)), ((vec![2], true), vec![vec![2]]));
    assert!(acts.iter().all(|act| !matches!(act, Act::Set { .. }) || act.takes()));
    assert!(world.controller.scheduler.ledger().held() > held);
    world.controller.arrived(at(2), arrival("others:6@1:n4", &[3])).unwrap();
    let acts = world.cycle(at(2));
    let place = |wanted: &Act| acts.iter().position(|act| act == wanted);
    // The engine is to say that it does not start any more before others get its power.
    let withdrawn = Act::Signal { attempt: first(2), signal: Signal::Suspend };
    let forgotten = Act::Forget { attempt: first(2) };
    assert!(withdrawn.frees() && place(&withdrawn).unwrap() < place(&forgotten).unwrap());
    assert_eq!(world.state(2, at(2)).0, State::Waiting);
    // Nobody ends it at a time limit that the daemon believes in.
    assert!(
        !world
            .cycle(at(5000))
            .iter()
            .any(|act| { matches!(act, Act::Signal { attempt, .. } if *attempt == first(others)) })
    );
}
