//! Nodes that nobody needs: switched off by the rule of the site, and never counted with less than they may draw.

use super::random::{last_resort, step, tell_with};
use super::*;
use busbar_core::machine::{Off, Transition};

/// Four nodes of 100 W, 20 W idle and 2 W off; they stop within 10 s and start within 60 s at 80 W.
fn switching(policy: &str, stopping: u32, rule: &str) -> Setup {
    type Known = BTreeMap<(String, u32), Setup>;
    thread_local!(static KNOWN: RefCell<Known> = RefCell::default());
    let setup = KNOWN.with_borrow_mut(|known| {
        let setup = || with_starts(policy, stopping, 80);
        known.entry((policy.to_owned(), stopping)).or_insert_with(setup).clone()
    });
    Setup { switch_off: Some(rule.parse().unwrap()), ..setup }
}

/// The same with what a node draws that starts.
fn with_starts(policy: &str, stopping: u32, starting: u32) -> Setup {
    let off = Off {
        power: watts(2),
        stop: Transition { time: Span::from_secs(10), power: watts(stopping) },
        start: Transition { time: Span::from_secs(60), power: watts(starting) },
    };
    let details = Details { idle: Some(watts(20)), off: Some(off), ..Details::ideal() };
    let machine = Machine { details, ..Machine::of_processors(4).unwrap() };
    Setup::new(&machine, Repertoire::BuiltIn, policy.parse().unwrap()).unwrap()
}

/// The rule of most stories.
const RULE: &str = "idle for 100s, keep 1 spare";

fn switch(node: u32, to: Power, again: bool) -> Act {
    let seconds = if to == Power::Off { 10 } else { 60 };
    Act::Switch { node, to, expected: Span::from_secs(seconds), again }
}

impl World {
    /// What is switched is what is written down and what is counted, and nothing draws more than it counts with.
    pub(super) fn check_nodes(&self) {
        let ledger = self.controller.scheduler.ledger();
        let counted = ledger.switched_nodes().map(|(node, state)| (node.0, state));
        assert_eq!(counted.collect::<BTreeMap<_, _>>(), self.controller.switched);
        assert_eq!(self.nodes_in_file, self.controller.switched, "the file knows it all");
        let (drawn, base) = (self.base(), ledger.base_power());
        assert!(drawn <= base, "nodes draw {drawn}, and count with {base}");
        for (node, state) in &self.controller.switched {
            if *state == SwitchState::Off {
                assert_eq!(self.nodes.get(node).map(|(state, _)| state), Some(state));
            }
        }
    }

    fn base_watts(&self) -> u64 {
        self.controller.base_power().milliwatts() / 1000
    }

    fn node_states(&self) -> Vec<Option<SwitchState>> {
        self.controller.nodes().into_iter().map(|line| line.switched).collect()
    }

    /// A daemon that has three of its four nodes off, at 160 s.
    fn asleep(setup: Setup, budget: Budget) -> Self {
        let mut world = World::new(setup, budget);
        world.cycle(at(0));
        world.cycle(at(100));
        world.cycle(at(160));
        assert_eq!(world.nodes_in_file.len(), 3);
        world.check_nodes();
        world
    }
}

/// The story that the simulator tells: four nodes run a job until 50 s. After 100 s three of them are switched off. At
/// 1000 s a job wants three: two are started, and the job begins when they are ready.
#[test]
fn nodes_are_switched_when_the_simulator_would() {
    let mut world = World::new(switching("easy", 30, RULE), Budget::unlimited());
    world.submit(at(0), submission(4, 60));
    world.cycle(at(0));
    world.end(at(50), first(1), End::Exited(0));
    world.cycle(at(50));
    assert_eq!(world.controller.next_deadline(), Some(at(150)));
    assert_eq!((world.cycle(at(149)), world.base_watts()), (vec![], 80));
    let stops = [1, 2, 3].map(|node| switch(node, Power::Off, false));
    assert_eq!((world.cycle(at(150)), world.base_watts()), (stops.into(), 20 + 3 * 30));
    assert_eq!((world.cycle(at(159)), world.base_watts()), (vec![], 20 + 3 * 30));
    assert_eq!((world.cycle(at(160)), world.base_watts()), (vec![], 20 + 3 * 2));
    assert_eq!(world.controller.next_deadline(), None, "the spare one stays on");
    let job = world.submit(at(1000), submission(3, 100));
    let starts = [1, 2].map(|node| switch(node, Power::On, false));
    assert_eq!((world.cycle(at(1000)), world.base_watts()), (starts.into(), 20 + 2 * 80 + 2));
    let (starting, off) = (Some(SwitchState::Starting), Some(SwitchState::Off));
    assert_eq!(world.node_states(), [None, starting, starting, off]);
    let drained = NodeState::Drained { reason: "it is being started".to_owned() };
    assert_eq!(world.controller.node_state(1), drained);
    assert_eq!(world.state(job, at(1000)), (State::Waiting, Some("for nodes".to_owned())));
    assert_eq!(world.cycle(at(1059)), []);
    let acts = world.cycle(at(1060));
    let [Act::Start { attempt, allotment }] = &acts[..] else { panic!("{acts:?}") };
    assert_eq!((*attempt, allotment.node_numbers()), (first(job), vec![0, 1, 2]));
    assert_eq!(world.node_states(), [None, None, None, off]);
    assert_eq!(world.controller.node_state(1), NodeState::Up);
    world.check_nodes();
    let told = |what: &EventKind| match what {
        EventKind::Node { node: 1, switched, .. } => Some(*switched),
        _ => None,
    };
    let told: Vec<Option<SwitchState>> = world.events.iter().filter_map(told).collect();
    assert_eq!(
        told,
        [Some(SwitchState::Stopping), off, starting, None],
        "each switch is in the history"
    );
}

/// A node that has not confirmed that it is off may still be idle, whatever a node draws that is stopping.
#[test]
fn a_node_is_off_when_that_is_confirmed_and_not_before() {
    // 250 W are 170 W for jobs with all nodes idle, and 224 W with three of them off.
    let mut world = World::new(switching("easy", 5, RULE), Budget::constant(watts(250)));
    world.cycle(at(0));
    let stops = world.cycle(at(100));
    assert_eq!((stops.len(), world.base_watts()), (3, 80), "they count as idle");
    assert_eq!(world.controller.power(&|_| 0).base, watts(80));
    // Nobody says that they are off: they never are.
    world.nodes.clear();
    world.cycle(at(10_000));
    assert_eq!(world.base_watts(), 80);
    let off = world.nodes_in_file.values().filter(|state| **state == SwitchState::Off);
    assert_eq!(off.count(), 0);
}

/// A start takes 150 W here. Of 320 W, two busy nodes and two that are off leave 116 W; without the job there are 276 W.
#[test]
fn no_node_is_started_without_room() {
    let switch_off = Some("idle for 100s".parse().unwrap());
    let setup = Setup { switch_off, ..with_starts("easy", 20, 150) };
    let mut world = World::new(setup, Budget::constant(watts(320)));
    let one = world.submit(at(0), submission(2, 1000));
    world.cycle(at(0));
    world.cycle(at(100));
    world.cycle(at(110));
    assert_eq!((world.base_watts(), world.power()), (2 * 20 + 2 * 2, watts(2 * 80)));
    let two = world.submit(at(200), submission(3, 100));
    assert_eq!(world.cycle(at(200)), []);
    world.end(at(230), first(one), End::Exited(0));
    let acts = world.cycle(at(230));
    assert_eq!(acts[1..], [switch(2, Power::On, false)]);
    assert_eq!(world.base_watts(), 2 * 20 + 150 + 2);
    world.cycle(at(290));
    assert!(world.running.contains_key(&first(two)));
    world.check_nodes();
}

/// The daemon dies before it has asked for what it has written down, or before it has written down what it heard. The next
/// one asks again, and nothing counts with less than it draws meanwhile.
#[test]
fn whatever_is_under_way_when_the_daemon_dies_is_asked_for_again() {
    let mut world = World::new(switching("easy", 5, RULE), Budget::unlimited());
    world.cycle(at(0));
    world.controller.turn(at(100)).unwrap();
    let Turn { batch, acts } = world.controller.take(at(100), 0);
    world.write(batch);
    world.act(&acts, 1, Watts::UNLIMITED);
    world.restart(at(101));
    let again = [1, 2, 3].map(|node| switch(node, Power::Off, true));
    assert_eq!((world.cycle(at(101)), world.base_watts()), (again.clone().into(), 80));
    world.check_nodes();
    // It hears that they are off, and dies before that is written.
    world.arrive(at(111));
    assert_eq!(world.base_watts(), 26);
    world.restart(at(111));
    assert_eq!((world.cycle(at(111)), world.base_watts()), (again.into(), 80));
    world.cycle(at(121));
    assert_eq!((world.base_watts(), world.nodes.len()), (26, 3));
    // What is off stays off, and is asked for nothing.
    world.restart(at(130));
    assert_eq!((world.cycle(at(130)), world.base_watts()), (vec![], 26));
    let job = world.submit(at(200), submission(4, 100));
    world.controller.turn(at(200)).unwrap();
    let Turn { batch, .. } = world.controller.take(at(200), 0);
    world.write(batch);
    world.restart(at(201));
    assert_eq!(world.base_watts(), 20 + 3 * 80, "they may be starting");
    assert_eq!(world.cycle(at(201)), [1, 2, 3].map(|node| switch(node, Power::On, true)));
    world.cycle(at(261));
    assert!(world.running.contains_key(&first(job)));
    world.check_nodes();
}

/// A start that was not asked for, because nothing was freed for it, is taken back. If it may have been asked for before a
/// restart it counts, and is asked for again.
#[test]
fn what_was_not_asked_for_is_taken_back_unless_it_may_have_been() {
    let mut world = World::asleep(switching("easy", 20, RULE), Budget::unlimited());
    world.submit(at(200), submission(2, 100));
    world.controller.turn(at(200)).unwrap();
    let Turn { batch, acts } = world.controller.take(at(200), 0);
    world.write(batch);
    assert_eq!(acts, [switch(1, Power::On, false)]);
    world.controller.undo(at(200), &[&acts[0]], "no hand to turn others down");
    assert!(!world.controller.is_to_be(1, Power::On));
    let acts = world.cycle(at(201));
    assert_eq!((acts, world.base_watts()), (vec![switch(1, Power::On, false)], 20 + 80 + 4));
    world.restart(at(202));
    world.controller.turn(at(202)).unwrap();
    let Turn { batch, acts } = world.controller.take(at(202), 0);
    world.write(batch);
    assert_eq!(acts, [switch(1, Power::On, true)]);
    world.controller.undo(at(202), &[&acts[0]], "no hand to turn others down");
    assert_eq!(world.base_watts(), 20 + 80 + 4);
    assert_eq!(world.cycle(at(203)), acts);
    world.check_nodes();
}

/// Without the rule all nodes are started, as there is room. An engine that cannot switch has all of them on.
#[test]
fn nodes_come_back_when_nobody_switches_them_any_more() {
    let budget = Budget::constant(watts(200));
    let mut world = World::asleep(switching("easy", 20, RULE), budget.clone());
    let setup = Setup { switch_off: None, ..world.controller.setup.clone() };
    world.controller.set_up(setup, budget, at(200)).unwrap();
    // 26 W are drawn, and a start takes 78 W more.
    assert_eq!(world.cycle(at(200)), [1, 2].map(|node| switch(node, Power::On, false)));
    assert_eq!(world.cycle(at(260)), [switch(3, Power::On, false)]);
    world.cycle(at(320));
    assert_eq!((world.base_watts(), world.controller.switched.len()), (80, 0));

    let mut world = World::asleep(switching("easy", 20, RULE), Budget::unlimited());
    world.controller.all_nodes_are_on(at(200));
    let setup = Setup { switch_off: None, ..world.controller.setup.clone() };
    world.controller.set_up(setup, Budget::unlimited(), at(200)).unwrap();
    assert_eq!((world.cycle(at(200)), world.base_watts()), (vec![], 80));
    assert!(world.nodes_in_file.is_empty());
}

/// A machine with fewer nodes has none of the others, and a node that a job runs on is on.
#[test]
fn what_cannot_be_off_is_on() {
    let mut world = World::new(switching("easy", 20, RULE), Budget::unlimited());
    world.submit(at(0), submission(1, 1000));
    world.cycle(at(0));
    world.nodes_in_file = [0, 3, 7].map(|node| (node, SwitchState::Off)).into();
    world.restart(at(1));
    assert_eq!(world.base_watts(), 3 * 20 + 2);
    world.cycle(at(1));
    assert_eq!(world.nodes_in_file, BTreeMap::from([(3, SwitchState::Off)]));
}

/// Of 200 W, two nodes that are off and a job that is suspended leave 156 W, which is less than the job needs. A node that
/// could be started with that is not.
#[test]
fn no_node_is_started_while_a_job_is_suspended() {
    let setup = switching("easy", 20, "idle for 10s");
    let setup = Setup { last_resort: LastResort::Suspend, ..setup };
    let mut world = World::new(setup, Budget::constant(watts(400)));
    world.submit(at(0), submission(2, 1000));
    for second in [0, 10, 20] {
        world.cycle(at(second));
    }
    assert_eq!(world.drawn(), watts(44 + 160));
    world.controller.set_budget(Budget::constant(watts(200)), true);
    world.submit(at(30), submission(1, 10));
    let suspended = Act::Signal { attempt: first(1), signal: Signal::Suspend };
    assert_eq!(world.cycle(at(30)), [suspended]);
    assert_eq!(world.cycle(at(31)), []);
    world.controller.set_budget(Budget::constant(watts(400)), true);
    let resumed = Act::Signal { attempt: first(1), signal: Signal::Resume };
    assert_eq!(world.cycle(at(32)), [resumed, switch(2, Power::On, false)]);
    world.check_nodes();
}

/// A start that was written down and perhaps never asked for waits until the limit leaves room for it again.
#[test]
fn nothing_is_asked_for_again_over_the_limit() {
    let mut world = World::asleep(switching("easy", 45, RULE), Budget::constant(watts(400)));
    world.submit(at(200), submission(4, 100));
    world.controller.turn(at(200)).unwrap();
    let Turn { batch, .. } = world.controller.take(at(200), 0);
    world.write(batch);
    world.restart(at(201));
    world.controller.set_budget(Budget::constant(watts(100)), true);
    assert_eq!((world.cycle(at(201)), world.base_watts()), (vec![], 20 + 3 * 80));
    world.controller.set_budget(Budget::constant(watts(400)), true);
    assert_eq!(world.cycle(at(202)), [1, 2, 3].map(|node| switch(node, Power::On, true)));
    world.check_nodes();
}

proptest! {
    // With other policies and machines, most of the time would go into what they believe.
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::with_cases(64) })]

    /// Stories in which nodes are switched and the daemon may die at any moment: no node is lost or doubled, and at every
    /// step all of them draw no more than is counted, and no more than the limit unless it has fallen.
    #[test]
    fn stories_with_nodes_that_are_switched(
        policy in prop_oneof![
            Just("fcfs"), Just("easy"), Just("conservative"), Just("easy-power"), Just("parm"), Just("share"),
        ],
        stopping in prop_oneof![Just(5), Just(45)],
        rule in prop_oneof![
            Just("idle for 0s"), Just("idle for 5s, keep 1 spare"), Just("idle for 30s"),
        ],
        last_resort in last_resort(),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        tell_with(Setup { last_resort, ..switching(policy, stopping, rule) }, &steps);
    }
}
