//! Random stories, in which the daemon may die at any moment.

use super::*;

/// What happens in a random story.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Submit {
        nodes: u32,
        seconds: u32,
        held: bool,
        after: Option<u64>,
    },
    /// One of those that run ends.
    End(usize, i32),
    Cancel(u64),
    Hold(u64),
    Release(u64),
    Budget(u32),
    /// Another limit of a feed, if there are feeds.
    Feed(usize, u32),
    /// The daemon dies after so many acts of its next cycle, and another one begins.
    Die(usize),
    /// It dies before it has written anything of its next cycle.
    DieUnwritten,
    /// Another policy is to decide from now on, where the machine is like others.
    Policy(usize),
    Wait(u32),
}

/// Policies that a daemon may be told to go on with.
const OTHERS: [&str; 5] = ["easy", "easy-power", "parm", "conservative", "share"];

pub(super) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..=4u32, 1..100u32, any::<bool>(), proptest::option::weighted(0.2, 1..20u64))
            .prop_map(|(nodes, seconds, held, after)| Step::Submit {
                nodes, seconds, held: held && after.is_none(), after
            }),
        4 => (0..4usize, 0..2i32).prop_map(|(which, code)| Step::End(which, code)),
        1 => (1..20u64).prop_map(Step::Cancel),
        1 => (1..20u64).prop_map(Step::Hold),
        2 => (1..20u64).prop_map(Step::Release),
        2 => (0..=8u32).prop_map(|fifties| Step::Budget(50 * fifties + 20)),
        2 => (0..3usize, 0..=8u32).prop_map(|(feed, fifties)| Step::Feed(feed, 50 * fifties + 80)),
        2 => (0..6usize).prop_map(Step::Die),
        1 => Just(Step::DieUnwritten),
        1 => (0..OTHERS.len()).prop_map(Step::Policy),
        3 => (1..60u32).prop_map(Step::Wait),
    ]
}

/// A story must not lose a job, start an attempt twice, or draw more than the limit at any step, unless
/// the limit has fallen and what runs is at its floor.
fn tell(policy: &str, last_resort: LastResort, steps: &[Step]) {
    tell_with(Setup { last_resort, ..setup(policy) }, steps);
}

pub(super) fn tell_with(setup: Setup, steps: &[Step]) {
    let last_resort = setup.last_resort;
    // Applications with profiles run on eight nodes at least.
    let is_profiled = setup.decider.spec().name().starts_with("rmap");
    let scale = if is_profiled { 20 } else { 1 };
    let application = setup.decider.applications().first().cloned();
    let unlimited = feeds::limits(&setup.machine);
    let mut world = World::new(setup, Budget::constant(watts(400 * scale)).with_feeds(unlimited));
    let mut now = at(0);
    let mut accepted = 0;
    for step in steps {
        now = now + Span::from_millis(10);
        // What the daemon hears now it may forget, if it dies.
        world.arrive(now);
        match step.clone() {
            Step::Submit { nodes, seconds, held, after } => {
                let mut submission = submission(nodes, seconds);
                submission.request.held = held;
                submission.request.application.clone_from(&application);
                if world.controller.setup.machine.kinds.is_some() {
                    parts::ask(&mut submission.request);
                } else if world.controller.setup.decider.spec().wants().has(Freedom::Sizes) {
                    submission.request.moldable = Some((1, world.controller.setup.machine.nodes));
                }
                submission.request.after =
                    after.map(|job| After { job, any: job % 2 == 0 }).into_iter().collect();
                let file = world.file.clone();
                let over = |job| match &file.get(&job)?.phase {
                    Phase::Over(outcome) => Some(outcome.succeeded()),
                    _ => None,
                };
                accepted +=
                    u64::from(world.controller.submit(now, ALICE, submission, &over).is_ok());
            }
            Step::End(which, code) => {
                let attempt = world.running.keys().nth(which).copied();
                if let Some(attempt) = attempt {
                    world.end(now, attempt, End::Exited(code));
                }
            }
            Step::Cancel(job) => drop(world.controller.cancel(now, Full(ALICE), job)),
            Step::Hold(job) => drop(world.controller.hold(now, Full(ALICE), job)),
            Step::Release(job) => drop(world.controller.release(now, Full(ALICE), job)),
            Step::Budget(power) => {
                let feeds = world.controller.budget.feeds().map(|feeds| feeds.to_vec());
                let budget = Budget::constant(watts(power * scale));
                world.controller.set_budget(budget.with_feeds(feeds.unwrap_or_default()), true);
            }
            Step::Feed(feed, power) => feeds::set(&mut world, feed, watts(power)),
            Step::Policy(which) => {
                let setup = world.controller.setup.clone();
                let has_feeds = setup.machine.feeds.is_some() || setup.machine.kinds.is_some();
                match setup.decided_by(OTHERS[which].parse().unwrap()) {
                    Ok(setup) => {
                        let budget = world.controller.budget.clone();
                        world.controller.set_up(setup, budget, now).unwrap();
                    }
                    // Some do not know feeds.
                    Err(error) => assert!(has_feeds, "{error}"),
                }
            }
            Step::Wait(seconds) => now = now + Span::from_secs(seconds),
            Step::DieUnwritten => {
                world.controller.turn(now).unwrap();
                let unwritten = world.controller.take(now, 0).batch.submitted.len() as u64;
                accepted -= unwritten;
                world.restart(now);
            }
            Step::Die(most) => {
                world.controller.turn(now).unwrap();
                let Turn { batch, acts } = world.controller.take(now, 0);
                world.write(batch);
                let limit = world.controller.budget.at(now);
                world.act(&acts, most, limit);
                world.restart(now);
            }
        }
        world.cycle(now);
        // Whoever is asked to end does so at once.
        let ending = world.controller.jobs.values().filter_map(|entry| match &entry.phase {
            Phase::Running(run) if run.ending.is_some() => {
                Some(Attempt { job: entry.number, number: entry.attempts })
            }
            _ => None,
        });
        for attempt in ending.collect::<Vec<_>>() {
            world.end(now, attempt, End::Signalled(15));
        }
        world.cycle(now);
        world.controller.scheduler.ledger().check().unwrap();
        let limit = world.controller.budget.at(now);
        let held: Watts = world.controller.scheduler.ledger().held();
        assert_eq!(world.power(), held, "what is drawn is what the ledger says");
        world.check_nodes();
        world.check_parts();
        assert!(
            held <= limit
                || last_resort == LastResort::Hold && world.controller.shortage().is_some(),
            "{held} over {limit}"
        );
        let limits = world.feed_limits();
        for (feed, power) in world.below_feeds().into_iter().enumerate() {
            let is_said = world.controller.shortage_below(feed).is_some();
            assert!(
                power <= limits[feed] || last_resort == LastResort::Hold && is_said,
                "{power} below feed {feed}, over {}",
                limits[feed]
            );
        }
        assert!(world.started.values().all(|times| *times == 1), "an attempt starts once");
        for (number, entry) in &world.controller.jobs {
            // That a change was confirmed is written with whatever is written next.
            let known = world.file.get(number).cloned().map(|mut known| {
                if let (Phase::Running(known), Phase::Running(run)) =
                    (&mut known.phase, &entry.phase)
                    && run.before.is_none()
                {
                    known.before = None;
                }
                known
            });
            assert_eq!(known.as_ref(), Some(entry), "the file knows it all");
        }
    }
    assert_eq!(world.file.len() as u64, accepted, "no job is lost");
    let refused = |what: &&EventKind| matches!(what, EventKind::Notice { text, .. } if text.contains("decision of the policy was refused"));
    assert_eq!(world.events.iter().find(refused), None, "policies decide what can be");
}

/// What running jobs give up when the limit falls is not there for others.
#[test]
fn nobody_starts_with_watts_that_are_missing() {
    let submit = |nodes| Step::Submit { nodes, seconds: 1, held: false, after: None };
    tell(
        "share(use=recaps)",
        LastResort::Hold,
        &[submit(1), submit(4), submit(1), Step::Budget(20)],
    );
}

pub(super) fn last_resort() -> impl Strategy<Value = LastResort> {
    prop_oneof![Just(LastResort::Hold), Just(LastResort::Suspend), Just(LastResort::Cancel)]
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn stories_under_every_policy(
        policy in prop_oneof![
            Just("fcfs"), Just("easy"), Just("conservative"), Just("easy-power"),
            Just("pb-guided(bsld_lower=5)"), Just("parm"), Just("parm(flex=moldable)"), Just("share"),
            Just("share(use=caps, order=history)"), Just("share(use=recaps)"), Just("share(use=sizes)"),
            Just("rmap-traditional"), Just("rmap-adaptive"), Just("rmap-adaptive(guard=10%)"),
            Just("ppartition"), Just("uniform"), Just("uniform(cap=min)"),
        ],
        last_resort in last_resort(),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        tell(policy, last_resort, &steps);
    }

    /// A policy that forgets who was withdrawn decides as a new one does, which never knew of them.
    #[test]
    fn to_forget_is_to_begin_anew(
        policy in prop_oneof![
            Just("fcfs"), Just("easy"), Just("easy-power"), Just("pb-guided(bsld_lower=5)"),
        ],
        steps in proptest::collection::vec((0..5_u32, 1..=4_u32, 1..60_u32), 1..60),
    ) {
        let world = || World::new(setup(policy), Budget::constant(watts(250)));
        let mut worlds = [world(), world()];
        let mut now = at(0);
        for (kind, nodes, seconds) in steps {
            now = now + Span::from_secs(seconds);
            for (place, world) in worlds.iter_mut().enumerate() {
                let waits = |entry: &&Entry| entry.phase == Phase::Waiting;
                let waiting: Vec<u64> =
                    world.controller.jobs.values().filter(waits).map(|job| job.number).collect();
                let chosen = waiting.get(nodes as usize % waiting.len().max(1)).copied();
                match (kind, chosen) {
                    (0 | 1, _) => {
                        world.submit(now, submission(nodes, 20 * seconds));
                    }
                    (2, Some(job)) => world.controller.cancel(now, Full(ALICE), job).unwrap(),
                    (3, Some(job)) => {
                        let held = world.controller.jobs[&job].request.held;
                        world.controller.set_held(now, job, !held, None);
                    }
                    _ => {
                        if let Some(first) = world.controller.attempts().first() {
                            world.end(now, *first, End::Exited(0));
                        }
                    }
                }
                prop_assert!(!world.controller.must_rebuild);
                world.controller.must_rebuild = place == 1 && matches!(kind, 2 | 3);
                world.controller.must_ask |= matches!(kind, 2 | 3);
                world.cycle(now);
            }
            prop_assert_eq!(&worlds[0].controller.jobs, &worlds[1].controller.jobs);
        }
    }
}
