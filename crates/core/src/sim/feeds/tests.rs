use std::path::Path;

use super::*;
use crate::budget::BudgetSpec;
use crate::job::Job;
use crate::machine::check_text;
use crate::policy::{Easy, Policy};
use crate::sim::{Run, Simulation, State};
use crate::workload::Workload;

const SECOND: fn(u32) -> Instant = Instant::from_secs;

/// Jobs that all come at the beginning: their nodes, and their seconds.
fn run(machine: &str, budget: &str, jobs: &[(u32, u32)], policy: &mut dyn Policy) -> Run {
    let machine = check_text(machine, "m", Path::new("")).unwrap().choose(&[]).unwrap();
    let budget = budget.parse::<BudgetSpec>().unwrap().resolve(&machine).unwrap();
    let jobs = jobs.iter().zip(1..).map(|(&(nodes, seconds), number)| {
        let time = Span::from_secs(seconds);
        (Job::new(number, Instant::ZERO, nodes, time), time)
    });
    let workload = Workload::new("hand", jobs);
    Simulation::new(&machine, &workload).budget(budget).keep_power(true).run(policy)
}

/// Four nodes of 100 W, two of them below a feed of 150 W.
const HALF: &str =
    "nodes = 4\n[power]\nnode = '100W'\n[[feed]]\nname = 'a'\nlimit = '150W'\nnodes = '0-1'\n";

/// Three of five jobs run at once: the feed keeps 50 W from its second node for 100 s. Then nobody waits.
#[test]
fn what_is_stranded_by_hand() {
    let run = run(HALF, "none", &[(1, 100); 5], &mut Easy::default());
    let first = run.placed.iter().map(|placed| placed.nodes[0].start);
    assert_eq!(first.collect::<Vec<u32>>(), [0, 2, 3, 0, 2]);
    let expected = FeedUse {
        peak: Watts::from_watts(100),
        energy: Joules::from_microjoules(20_000_000_000),
        bound: Span::from_secs(100),
        stranded: Joules::from_microjoules(5_000_000_000),
        ..FeedUse::default()
    };
    assert_eq!(run.feeds, [expected]);
    let samples: Vec<(Instant, u64)> =
        run.feed_power.iter().map(|sample| (sample.at, sample.power.milliwatts() / 1000)).collect();
    assert_eq!(samples, [(SECOND(0), 100), (SECOND(200), 0)]);
    assert_eq!(run.violations, 0);
}

/// Under a budget of 250 W, the other nodes draw all that the machine has left, and nothing is stranded.
#[test]
fn the_budget_comes_first() {
    let run = run(HALF, "250W", &[(1, 100); 5], &mut Easy::default());
    assert_eq!((run.feeds[0].bound, run.feeds[0].stranded), (Span::ZERO, Joules::ZERO));
    assert_eq!(run.violations, 0);
}

/// The head of the queue asks for three nodes, and has to wait for the one below the feed that can be fed. The short job behind it
/// may pass; the long one would take power below the feed that is promised to the head.
#[test]
fn nobody_delays_the_head_below_a_feed() {
    let jobs = [(1, 100), (1, 300), (3, 50), (1, 100), (1, 300)];
    let run = run(HALF, "none", &jobs, &mut Easy::default());
    let starts: Vec<Instant> = run.records.iter().map(|record| record.start).collect();
    // At 100 s, there are nodes for the last job, but until 400 s, and the head needs them at 300 s.
    assert_eq!(starts, [0, 0, 300, 0, 350].map(SECOND));
    assert_eq!(run.violations, 0);
    assert!(run.records.iter().all(|record| record.state == State::Completed));
}

/// Two feeds, neither of which carries more than one busy node: a job of three nodes can never run.
#[test]
fn who_cannot_be_carried_is_turned_away() {
    let machine = "nodes = 4\n[power]\nnode = '100W'\n[[feed]]\nname = 'a'\nlimit = '150W'\nnodes = '0-1'\n\
        [[feed]]\nname = 'b'\nlimit = '130W'\nnodes = '2-3'\n";
    let run = run(machine, "none", &[(3, 100), (2, 100)], &mut Easy::default());
    assert_eq!(
        run.records[0].state,
        State::Rejected(crate::dispatch::Rejection::FeedTooSmall { feed: 0 })
    );
    assert_eq!((run.records[1].state, run.records[1].start), (State::Completed, Instant::ZERO));
}
