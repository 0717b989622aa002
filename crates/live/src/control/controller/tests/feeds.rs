//! Limits of feeds that fall and rise: who gives up power, who waits, and who goes on.

use std::path::Path;

use super::random::{Step, last_resort, step, tell_with};
use super::*;
use busbar_core::machine::check_text;

/// Four nodes of 100 W, 20 W idle: a row of three, the first two of which are a rack.
const NESTED: &str = "nodes = 4\n[power]\nnode = '100W'\nidle = '20W'\n\
    [[feed]]\nname = 'row'\nlimit = 'none'\nnodes = '2'\n\
    [[feed]]\nname = 'rack'\nlimit = 'none'\nparent = 'row'\nnodes = '0-1'\n";

/// The same nodes in two racks.
const TWO: &str = "nodes = 4\n[power]\nnode = '100W'\nidle = '20W'\n\
    [[feed]]\nname = 'a'\nlimit = 'none'\nnodes = '0-1'\n\
    [[feed]]\nname = 'b'\nlimit = 'none'\nnodes = '2-3'\n";

fn on(machine: &str, policy: &str) -> Setup {
    thread_local!(static KNOWN: RefCell<BTreeMap<String, Setup>> = RefCell::default());
    KNOWN.with_borrow_mut(|known| {
        let new = || {
            let machine = check_text(machine, "m", Path::new("")).unwrap().choose(&[]).unwrap();
            Setup::new(&machine, Repertoire::of(&[]), policy.parse().unwrap()).unwrap()
        };
        known.entry(format!("{policy} {machine}")).or_insert_with(new).clone()
    })
}

/// No limit of any feed of a machine.
pub(super) fn limits(machine: &Machine) -> Vec<Budget> {
    let feeds = machine.feeds.iter().flat_map(|feeds| feeds.all());
    feeds.map(|_| Budget::unlimited()).collect()
}

/// Another limit of a feed, if there is such a feed.
pub(super) fn set(world: &mut World, feed: usize, limit: Watts) {
    let budget = world.controller.budget.clone();
    let mut feeds = budget.feeds().map(|feeds| feeds.to_vec()).unwrap_or_default();
    if let Some(of_feed) = feeds.get_mut(feed) {
        *of_feed = Budget::constant(limit);
        world.controller.set_budget(budget.with_feeds(feeds), true);
    }
}

/// Two jobs on the racks 'a' and 'b'; an idle node draws 20 W, a busy one 100 W.
fn two_racks(setup: Setup) -> World {
    let budget = Budget::unlimited().with_feeds(limits(&setup.machine));
    let mut world = World::new(setup, budget);
    for second in 0..2 {
        world.submit(at(second), submission(2, 600));
        world.cycle(at(second));
    }
    assert_eq!(world.on.values().cloned().collect::<Vec<_>>(), [vec![0, 1], vec![2, 3]]);
    assert_eq!(world.below_feeds(), [watts(200), watts(200)]);
    world
}

#[test]
fn a_falling_limit_slows_the_jobs_below_it_alone() {
    let mut world = two_racks(on(TWO, "easy-power"));
    set(&mut world, 0, watts(140));
    let acts = world.cycle(at(60));
    let lowered = |act: &Act| {
        matches!(act, Act::Set { attempt, allotment, before, .. }
        if attempt.job == 1 && allotment.power < before.allotment.power)
    };
    assert!(!acts.is_empty() && acts.iter().all(lowered), "{acts:?}");
    let [a, b] = world.below_feeds()[..] else { panic!() };
    assert!(a <= watts(140) && b == watts(200), "{a} and {b}");
    let said = |kind: &EventKind| {
        matches!(kind, EventKind::Notice { text, limit: Some(limit) }
        if text == "feed 'a' may carry 140W"
            && *limit == ScopedLimit { of: Scope::Feed("a".to_owned()), power: Some(watts(140)) })
    };
    assert!(world.events.iter().any(said), "{:?}", world.events);
    set(&mut world, 0, watts(200));
    world.cycle(at(120));
    assert_eq!(world.below_feeds(), [watts(200), watts(200)], "it has what it had");
}

/// Who is below a feed of feeds loses least where it helps both.
#[test]
fn a_feed_comes_before_the_one_above_it() {
    let setup = on(NESTED, "easy-power");
    let budget = Budget::unlimited().with_feeds(limits(&setup.machine));
    let mut world = World::new(setup, budget);
    for _ in 0..4 {
        world.submit(at(0), submission(1, 600));
    }
    world.cycle(at(0));
    assert_eq!(world.below_feeds(), [watts(300), watts(200)]);
    // The row needs 30 W less, and the rack 60 W: the third node of the row can stay as it is.
    set(&mut world, 0, watts(270));
    set(&mut world, 1, watts(140));
    world.cycle(at(1));
    let [row, rack] = world.below_feeds()[..] else { panic!() };
    assert!(rack <= watts(140), "{rack}");
    assert_eq!(row - rack, watts(100), "nobody outside the rack gave up any");
}

#[test]
fn the_last_resort_suspends_below_the_feed_alone_and_others_start_elsewhere() {
    let setup = Setup { last_resort: LastResort::Suspend, ..on(TWO, "easy") };
    let mut world = two_racks(setup);
    set(&mut world, 0, watts(150));
    let acts = world.cycle(at(10));
    assert_eq!(acts, [Act::Signal { attempt: first(1), signal: Signal::Suspend }]);
    // The other rack is free soon. What comes now and fits below 'a' does not get what the suspended job will claim.
    let small = world.submit(at(11), submission(1, 60));
    world.end(at(12), first(2), End::Exited(0));
    world.cycle(at(12));
    assert_eq!(world.on[&first(small)], [2]);
    set(&mut world, 0, watts(199));
    assert_eq!(world.cycle(at(13)), []);
    set(&mut world, 0, watts(200));
    let acts = world.cycle(at(14));
    assert_eq!(acts, [Act::Signal { attempt: first(1), signal: Signal::Resume }]);
    assert_eq!(world.below_feeds(), [watts(200), watts(120)]);
}

#[test]
fn the_last_resort_may_be_to_wait_for_jobs_below_the_feed() {
    let mut world = two_racks(on(TWO, "easy"));
    set(&mut world, 0, watts(150));
    assert_eq!(world.cycle(at(10)), []);
    let text = world.controller.shortage_below(0).unwrap().to_owned();
    assert!(
        text.contains("50W more than the limit of feed 'a', 150W: no job starts below it"),
        "{text}"
    );
    assert_eq!(world.controller.shortage(), None, "the machine has enough");
    world.end(at(11), first(1), End::Exited(0));
    world.cycle(at(11));
    assert_eq!(world.controller.shortage_below(0), None);
}

/// Of 150 W below each rack, 40 W are those of idle nodes: one busy node fits.
#[test]
fn jobs_wait_for_feeds_and_say_so() {
    let setup = on(TWO, "easy");
    let feeds = vec![Budget::constant(watts(150)); 2];
    let mut world = World::new(setup, Budget::unlimited().with_feeds(feeds));
    let jobs: Vec<u64> = (0..3).map(|_| world.submit(at(0), submission(1, 60))).collect();
    world.cycle(at(0));
    assert_eq!(world.below_feeds(), [watts(120), watts(120)]);
    let waits = (State::Waiting, Some("for power of its feeds".to_owned()));
    assert_eq!(world.state(jobs[2], at(0)), waits);
    let three = world.submit(at(1), submission(3, 60));
    let never = "needs more power than the feeds of its nodes carry";
    assert_eq!(world.controller.remark(three), Some(never));
    world.end(at(2), first(jobs[0]), End::Exited(0));
    world.cycle(at(2));
    assert_eq!(world.state(jobs[2], at(2)).0, State::Running);
    // What could never be fed may start when a feed may carry more.
    for feed in 0..2 {
        set(&mut world, feed, watts(200));
    }
    world.cycle(at(3));
    assert_eq!(world.controller.remark(three), None);
}

/// A limit that is known to fall keeps jobs from starting that would not have ended by then.
#[test]
fn known_limits_are_looked_ahead_at() {
    let setup = on(TWO, "easy");
    let falls = Budget::from_steps(vec![(at(0), watts(200)), (at(100), watts(60))]).unwrap();
    let mut world = World::new(setup, Budget::unlimited().with_feeds(vec![falls.clone(), falls]));
    let (long, short) =
        (world.submit(at(0), submission(1, 200)), world.submit(at(0), submission(1, 90)));
    world.cycle(at(0));
    assert_eq!(world.state(long, at(0)).0, State::Waiting);
    assert_eq!(world.state(short, at(0)).0, State::Running);
    assert_eq!(world.controller.next_deadline(), Some(at(90)), "the job's, and then the limit's");
    world.end(at(90), first(short), End::Exited(0));
    world.cycle(at(90));
    assert_eq!(world.controller.next_deadline(), Some(at(100)));
}

/// The program would give the job more than its feed carries, and must not ask for it.
#[test]
fn the_program_knows_what_a_feed_carries() {
    let steps = [
        Step::Feed(0, 130),
        Step::Submit { nodes: 4, seconds: 1, held: false, after: None },
        Step::Policy(4),
        Step::Die(0),
    ];
    tell_with(Setup { last_resort: LastResort::Hold, ..on(TWO, "share(use=caps)") }, &steps);
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn stories_below_feeds_under_every_policy(
        machine in prop_oneof![Just(NESTED), Just(TWO)],
        policy in prop_oneof![
            Just("fcfs"), Just("easy"), Just("conservative"), Just("easy-power"),
            Just("pb-guided(bsld_lower=5)"), Just("share(use=caps)"), Just("uniform"),
            Just("uniform(cap=min)"),
        ],
        last_resort in last_resort(),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        tell_with(Setup { last_resort, ..on(machine, policy) }, &steps);
    }
}
