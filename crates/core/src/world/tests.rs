use std::num::NonZeroU32;
use std::ops::Range;

use proptest::prelude::*;

use super::assignment::{Mix, NotAMix};
use super::law::{Gears, Which};
use super::*;
use crate::job::{ApplicationId, UserId};
use crate::machine::{Gearbox, Machine};
use crate::model::{Beta, Dvfs, Knowledge, Model, NodeCap, Oversized};
use crate::units::{Instant, Share};
use crate::variation::{self, Curve, Ips, Knot};

const SECOND: Span = Span::from_secs(1);

/// Takes 1/share times as long, on n nodes n times as fast; draws all of its cap.
#[derive(Debug)]
struct Proportional;

impl Law for Proportional {
    fn pace(&self, ask: Ask, at: Conditions) -> Option<Pace> {
        let size = f64::from(at.nodes) / f64::from(ask.nodes);
        (at.share > 0.1).then(|| Pace::Times(Factor::new(1.0 / (at.share.min(1.0) * size))))
    }

    fn draw(&self, _: Ask, at: Conditions) -> f64 {
        at.share.min(1.0)
    }
}

fn node() -> Node {
    Node { rest: Watts::from_watts(20), highest: Watts::from_watts(80), idle: Watts::ZERO }
}

fn world(parts: Parts, coupling: Coupling) -> World {
    let application = Application::new("p", Proportional, coupling);
    World::new(node(), parts, vec![application], Assignment::one())
}

fn job(nodes: u32) -> Job {
    Job::new(1, Instant::ZERO, nodes, SECOND)
}

fn point(nodes: u32, cap_watts: u32) -> OperatingPoint {
    OperatingPoint {
        nodes,
        cores: 1,
        cap: Watts::from_watts(cap_watts),
        time: SECOND,
        power: Watts::from_watts(cap_watts * nodes),
    }
}

#[test]
fn as_asked_a_job_takes_its_run_time() {
    let world = world(Parts::Alike, Coupling::Lockstep);
    let outcome = world.outcome(JobId(0), &job(4), SECOND, &point(4, 100), Held::Any);
    assert_eq!((outcome.run_time, outcome.power), (SECOND, Watts::from_watts(400)));
    // 60 W a node leave 40 W of 80 W for the capped part: half the speed, on twice the nodes.
    let outcome = world.outcome(JobId(0), &job(4), SECOND, &point(8, 60), Held::Any);
    assert_eq!((outcome.run_time, outcome.power), (SECOND, Watts::from_watts(480)));
    // What is drawn anyway is not the job's.
    let node = Node { idle: Watts::from_watts(15), ..node() };
    let application = Application::new("p", Proportional, Coupling::Lockstep);
    let idle = World::new(node, Parts::Alike, vec![application], Assignment::one());
    let outcome = idle.outcome(JobId(0), &job(4), SECOND, &point(4, 85), Held::Any);
    assert_eq!(outcome.power, Watts::from_watts(4 * 85));
    // Less than a tenth of the cap: it does not go on.
    let outcome = world.outcome(JobId(0), &job(4), SECOND, &point(4, 25), Held::Any);
    assert_eq!(outcome.run_time, Span::FOREVER);
}

/// Takes two seconds, whatever the workload says.
#[derive(Debug)]
struct TwoSeconds;

impl Law for TwoSeconds {
    fn pace(&self, _: Ask, _: Conditions) -> Option<Pace> {
        Some(Pace::Fixed(Span::from_secs(2)))
    }

    fn draw(&self, _: Ask, _: Conditions) -> f64 {
        0.5
    }
}

#[test]
fn an_absolute_law_does_not_mind_the_workload() {
    let application = Application::new("t", TwoSeconds, Coupling::Lockstep);
    let world = World::new(node(), Parts::Alike, vec![application], Assignment::one());
    let outcome = world.outcome(JobId(0), &job(4), SECOND, &point(4, 100), Held::Any);
    assert_eq!((outcome.run_time, outcome.power), (Span::from_secs(2), Watts::from_watts(240)));
}

/// Two nodes under 40 and 80 W: half the speed and all of it.
#[test]
fn coupling_says_who_waits_for_whom() {
    let caps = [(0, 60), (1, 100)]
        .map(|(node, watts)| NodeCap { node: NodeId(node), cap: Watts::from_watts(watts) });
    let caps = Caps::new(caps.to_vec()).unwrap();
    let time = |coupling| {
        let held = Held::Capped(&caps);
        world(Parts::Alike, coupling).outcome(JobId(0), &job(2), SECOND, &point(2, 100), held)
    };
    let lockstep = time(Coupling::Lockstep);
    assert_eq!((lockstep.run_time, lockstep.power), (Span::from_secs(2), Watts::from_watts(160)));
    // Three quarters of the speed.
    assert_eq!(time(Coupling::Balanced).run_time, Span::from_millis(1334));
}

/// Single nodes as stretches.
fn single(nodes: &[u32]) -> Vec<Range<u32>> {
    nodes.iter().map(|node| *node..node + 1).collect()
}

#[test]
fn greedy_nodes_are_slower_under_a_cap() {
    let parts = Parts::Unlike { spread: Share::percent(8), seed: 7 };
    let world = world(parts, Coupling::Lockstep);
    let table = world.node_table(500);
    let class = |node: u32| parts.class(NodeId(node));
    let greediest = (0..500).max_by_key(|node| class(*node)).unwrap();
    let thriftiest = (0..500).min_by_key(|node| class(*node)).unwrap();
    let on = |nodes: &[u32], cap| {
        let (nodes, count) = (single(nodes), nodes.len() as u32);
        let held = Held::These(&nodes, &table);
        world.outcome(JobId(0), &job(count), SECOND, &point(count, cap), held)
    };
    assert!(on(&[greediest], 60).run_time > on(&[thriftiest], 60).run_time);
    assert_eq!(on(&[greediest, thriftiest], 60).run_time, on(&[greediest], 60).run_time);
    // Both draw their caps and nothing more.
    assert_eq!(on(&[greediest, thriftiest], 60).power, Watts::from_watts(120));
    // Without a cap the time is the same, by definition.
    assert_eq!(on(&[greediest], 100).run_time, SECOND);
}

#[test]
fn most_nodes_are_in_the_middle_and_stay_who_they_are() {
    let parts = Parts::Unlike { spread: Share::percent(8), seed: 1 };
    let greeds: Vec<f64> = (0..10_000).map(|node| parts.greed(parts.class(NodeId(node)))).collect();
    let mean = greeds.iter().sum::<f64>() / greeds.len() as f64;
    assert!((mean - 1.0).abs() < 0.003, "{mean}");
    assert!(greeds.iter().all(|greed| (0.92..=1.08).contains(greed)));
    let near = greeds.iter().filter(|greed| (**greed - 1.0).abs() < 0.04).count();
    assert!((7000..8000).contains(&near), "three quarters are within half the spread: {near}");
    assert_eq!(parts.greed(parts.middle()), 1.0);
}

#[test]
fn a_program_is_always_the_same_application() {
    let mix = Mix::new(vec![(0, 1), (1, 2), (2, 1)], 3).unwrap();
    let named = |number: u32, nodes: u32| Job {
        application: NonZeroU32::new(number).map(ApplicationId),
        user: NonZeroU32::new(nodes).map(UserId),
        ..job(nodes)
    };
    let jobs: Vec<Job> = (0..20_000).map(|place| named(place % 5000, 1 + place % 7)).collect();
    let assigned = Assignment::drawn(&jobs, &mix, 1);
    let mut counts = [0; 3];
    for (place, job) in jobs.iter().enumerate() {
        let application = assigned.application(JobId(place as u32));
        counts[application] += 1;
        if let Some(ApplicationId(number)) = job.application {
            let first = number.get() as usize;
            assert_eq!(application, assigned.application(JobId(first as u32)));
        }
    }
    assert!((9500..10_500).contains(&counts[1]), "half of them: {counts:?}");
    assert_ne!(assigned, Assignment::drawn(&jobs, &mix, 2));
    assert_eq!(Mix::new(vec![(3, 1)], 3), Err(NotAMix::Unknown { number: 3, count: 3 }));
    assert_eq!(Mix::new(vec![(0, 0)], 3), Err(NotAMix::Nothing));
}

proptest! {
    /// Gears as a law say what gears as a model said: the same times, to the millisecond.
    #[test]
    fn gears_take_as_long_as_before(
        beta in 0.0f64..1.0,
        millis in 1u64..400_000_000,
        nodes in 1u32..500,
    ) {
        let machine = Machine::of_processors(500).unwrap();
        let (beta, job) = (Beta::new(beta), job(nodes));
        let model = Dvfs::with_betas(&machine, vec![beta], Knowledge::Known, Oversized::Slow);
        let law = Application::new("gears", Gears::of(&Gearbox::default(), machine.node_power), Coupling::Lockstep);
        let assigned = Assignment::one().with_betas(vec![beta]);
        let node = Node { rest: Watts::ZERO, highest: machine.node_power, idle: Watts::ZERO };
        let world = World::new(node, Parts::Alike, vec![law], assigned);
        let run_time = Span::from_millis(millis);
        for point in model.menu(JobId(0), &job).iter() {
            let before = model.outcome(JobId(0), &job, run_time, point);
            let now = world.outcome(JobId(0), &job, run_time, point, Held::Any);
            prop_assert_eq!(now, before, "{:?}", point);
        }
    }

    /// Whatever a job runs on whichever nodes, none of them draws more than its cap.
    #[test]
    fn no_node_draws_more_than_its_cap(
        application in 0usize..17,
        caps in prop::collection::vec((0u32..2000, 41u32..=100), 1..30),
        asked in 8u32..40,
    ) {
        let parts = Parts::Unlike { spread: Share::percent(8), seed: 3 };
        let assigned = Assignment::of(vec![application as u16]);
        let world = World::new(node(), parts, catalogue::applications(), assigned);
        let mut named: Vec<NodeCap> = caps
            .iter()
            .map(|&(node, watts)| NodeCap { node: NodeId(node), cap: Watts::from_watts(watts) })
            .collect();
        named.sort_by_key(|capped| capped.node);
        named.dedup_by_key(|capped| capped.node);
        let caps = Caps::new(named).unwrap();
        let point = OperatingPoint { nodes: caps.count(), ..point(1, 100) };
        let held = Held::Capped(&caps);
        let outcome = world.outcome(JobId(0), &job(asked), SECOND, &point, held);
        prop_assert!(outcome.power <= caps.total(), "{} of {}", outcome.power, caps.total());
        prop_assert!(outcome.power >= world.node().rest * caps.count());
        prop_assert!(outcome.run_time > Span::ZERO);
    }
}

/// Two processors: one does 10 at 50 W and 20 at 100 W, the other 20 at 75 W already. Full speed is 20.
#[test]
fn processors_that_were_measured_one_by_one() {
    let knot = |watts, ips| Knot { power: Watts::from_watts(watts), ips: Ips::from_ips(ips) };
    let curve = |most| {
        let knots = vec![knot(50, 10_000_000_000), knot(most, 20_000_000_000)];
        Curve::new(Watts::from_watts(50), knots).unwrap()
    };
    let application =
        variation::Application { name: "one".to_owned(), curves: vec![curve(100), curve(75)] };
    let names = vec!["a".to_owned(), "b".to_owned()];
    let processors = Processors::new(names, Watts::from_watts(50), vec![application]).unwrap();
    let node =
        Node { rest: Watts::ZERO, highest: Watts::from_watts(100), idle: Watts::from_watts(20) };
    let world = World::measured(node, &Arc::new(processors), Assignment::one());
    let (hour, table) = (Span::from_secs(3600), world.node_table(2));
    let run = |nodes: &[u32], watts: u32| {
        let nodes = single(nodes);
        let point = OperatingPoint {
            nodes: nodes.len() as u32,
            cores: 1,
            // What a node may add to what it draws anyway.
            cap: Watts::from_watts(watts - 20),
            time: hour,
            power: Watts::ZERO,
        };
        let held = Held::These(&nodes, &table);
        let outcome = world.outcome(JobId(0), &job(2), hour, &point, held);
        (outcome.run_time.secs_f64(), outcome.power)
    };
    assert_eq!(run(&[0, 1], 100), (3600.0, Watts::from_watts(100 + 75 - 40)));
    assert_eq!(run(&[0, 1], 50), (7200.0, Watts::from_watts(60)));
    // 15 and 20 of 20 each.
    let (time, power) = run(&[0, 1], 75);
    assert!((time - 3600.0 * 40.0 / 35.0).abs() < 0.01, "{time}");
    assert_eq!(power, Watts::from_watts(75 + 75 - 40));
    assert_eq!(run(&[0], 100).0, 7200.0, "half of the nodes it asks for");
    assert!(world.minds_nodes());
    // Whoever does not know which nodes a job gets expects the slower one, and what the other draws.
    let worst = world.curved()[0].on(Which::Worst);
    let (ask, at) =
        (Ask { nodes: 2, beta: Beta::FULL }, Conditions { nodes: 2, cores: None, share: 0.75 });
    assert_eq!(worst.pace(ask, at), Some(Pace::Times(Factor::new(20.0 / 15.0))));
    assert_eq!(worst.draw(ask, at), 0.75);
}

/// By hand: nodes add up to 85 W to the 15 W that they draw anyway. A job on two of them that was measured at 120 W adds
/// 90 W, whichever nodes it has; at 60 W a node the law says 60/85 of that, and on twice the nodes twice as much.
#[test]
fn measured_jobs_draw_what_was_measured() {
    let node = Node { idle: Watts::from_watts(15), ..node() };
    let spread = Share::percent(20);
    for parts in [Parts::Alike, Parts::Unlike { spread, seed: 3 }] {
        let application = Application::new("p", Proportional, Coupling::Lockstep);
        let world = World::new(node, parts, vec![application], Assignment::one()).with_drawn(vec![
            Some(Watts::from_watts(120)),
            Some(Watts::from_watts(999)),
            None,
        ]);
        let (nodes, table) = (single(&[3, 8]), world.node_table(9));
        let on = |id: u32, point: &OperatingPoint, held: Held<'_>| {
            world.outcome(JobId(id), &job(2), SECOND, point, held).power.milliwatts()
        };
        for held in [Held::Any, Held::These(&nodes, &table)] {
            assert_eq!(on(0, &point(2, 85), held), 90_000);
            // Nobody draws more than nodes can, or than caps let them.
            assert_eq!(on(1, &point(2, 85), held), 170_000);
            assert!(on(1, &point(2, 60), held) <= 120_000);
        }
        if matches!(world.parts, Parts::Alike) {
            assert_eq!(on(0, &point(2, 60), Held::Any), (90_000u64 * 60).div_ceil(85));
            assert_eq!(on(0, &point(4, 85), Held::Any), 180_000);
        }
        let caps = Caps::new(
            [3, 8].map(|node| NodeCap { node: NodeId(node), cap: Watts::from_watts(85) }).to_vec(),
        )
        .unwrap();
        assert_eq!(on(0, &point(2, 85), Held::Capped(&caps)), 90_000);
        // Below what nodes draw anyway there is nothing to add.
        let little = world.clone().with_drawn(vec![Some(Watts::from_watts(20))]);
        let power = little.outcome(JobId(0), &job(2), SECOND, &point(2, 85), Held::Any).power;
        assert_eq!(power, Watts::from_milliwatts(1));
        // Whoever was not measured does as the law says.
        assert_eq!(on(2, &point(2, 85), Held::Any), 170_000);
    }
}
