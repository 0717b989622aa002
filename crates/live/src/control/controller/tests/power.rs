//! Budgets that fall and rise, and what is done where power is short.

use super::*;

#[test]
fn the_budget_decides_who_runs() {
    let mut world = World::new(setup("easy"), Budget::constant(watts(250)));
    for _ in 0..3 {
        world.submit(at(0), submission(1, 60));
    }
    world.cycle(at(0));
    assert_eq!(world.power(), watts(200));
    assert_eq!(world.state(3, at(0)), (State::Waiting, Some("for power".to_owned())));
    world.controller.set_budget(Budget::constant(watts(300)), true);
    world.cycle(at(1));
    assert_eq!(world.power(), watts(300), "new watts are used at once");
}

#[test]
fn a_falling_budget_slows_jobs_down_and_a_rising_one_speeds_them_up_again() {
    let mut world = World::new(setup("easy-power"), Budget::constant(watts(400)));
    for _ in 0..2 {
        world.submit(at(0), submission(2, 600));
    }
    world.cycle(at(0));
    assert_eq!(world.power(), watts(400));
    world.controller.set_budget(Budget::constant(watts(300)), true);
    let acts = world.cycle(at(60));
    assert!(world.power() <= watts(300), "{}", world.power());
    assert!(acts.iter().all(|act| matches!(act, Act::Set { allotment, before, .. }
        if allotment.power < before.allotment.power && allotment.speed < 1_000_000)));
    // Who is slower may take longer.
    let slowed = world.file.values().filter_map(|entry| match &entry.phase {
        Phase::Running(run) if run.squeezed_from.is_some() => Some(run.until),
        _ => None,
    });
    assert!(slowed.into_iter().all(|until| until > at(600)));
    world.controller.set_budget(Budget::constant(watts(400)), true);
    world.cycle(at(120));
    assert_eq!(world.power(), watts(400), "everybody has what he had");
}

fn short_of_power(last_resort: LastResort) -> World {
    let mut world =
        World::new(Setup { last_resort, ..setup("easy") }, Budget::constant(watts(400)));
    for second in 0..3 {
        world.submit(at(second), submission(1, 600));
        world.cycle(at(second));
    }
    world.controller.set_budget(Budget::constant(watts(250)), true);
    world
}

#[test]
fn the_last_resort_can_be_to_wait() {
    let mut world = short_of_power(LastResort::Hold);
    assert_eq!(world.cycle(at(10)), []);
    assert!(world.controller.shortage().unwrap().contains("50W more than the limit of 250W"));
    let job = world.submit(at(11), submission(1, 1));
    world.cycle(at(11));
    assert_eq!(world.state(job, at(11)), (State::Waiting, Some("power is short".to_owned())));
    world.end(at(12), first(1), End::Exited(0));
    world.cycle(at(12));
    assert_eq!(world.controller.shortage(), None);
    let notices = world.events.iter().filter(|what| matches!(what, EventKind::Notice { .. }));
    assert_eq!(notices.count(), 1, "it is said once");
}

#[test]
fn the_last_resort_can_be_to_suspend_the_youngest() {
    let mut world = short_of_power(LastResort::Suspend);
    let acts = world.cycle(at(10));
    assert_eq!(acts, [Act::Signal { attempt: first(3), signal: Signal::Suspend }]);
    assert_eq!(world.power(), watts(200));
    assert_eq!(world.state(3, at(10)).0, State::Suspended);
    // Its time stands still as well: it has run for 8 of 600 s.
    world.controller.set_budget(Budget::constant(watts(400)), true);
    let acts = world.cycle(at(1000 - 408));
    assert_eq!(acts, [Act::Signal { attempt: first(3), signal: Signal::Resume }]);
    let Phase::Running(run) = &world.file[&3].phase else { panic!() };
    assert_eq!((run.until, run.suspended), (at(592 + 592), false));
    assert_eq!(run.energy, Joules::from_joules(800));
}

#[test]
fn the_last_resort_can_be_to_end_the_youngest() {
    let mut world = short_of_power(LastResort::Cancel);
    let acts = world.cycle(at(10));
    assert_eq!(acts, [Act::Signal { attempt: first(3), signal: Signal::Terminate }]);
    assert_eq!(world.cycle(at(11)), [], "one is enough, as soon as it has ended");
    world.end(at(12), first(3), End::Signalled(15));
    world.cycle(at(12));
    assert_eq!(world.state(3, at(12)), (State::Cancelled, Some("no power left for it".to_owned())));
    assert_eq!(world.controller.shortage(), None);
}

#[test]
fn a_job_that_cannot_be_fed_now_waits_and_says_why() {
    let mut world = World::new(setup("easy"), Budget::constant(watts(150)));
    let job = world.submit(at(0), submission(2, 60));
    assert_eq!(world.controller.remark(job), Some("needs more power than the budget allows"));
    world.cycle(at(0));
    assert_eq!(world.running.len(), 0);
    world.controller.set_budget(Budget::constant(watts(200)), true);
    world.cycle(at(1));
    assert_eq!(world.state(job, at(1)).0, State::Running);
}

#[test]
fn what_could_not_be_lowered_gives_nobody_more() {
    let mut world = World::new(setup("easy-power"), Budget::constant(watts(400)));
    for _ in 0..2 {
        world.submit(at(0), submission(2, 600));
    }
    world.cycle(at(0));
    world.controller.set_budget(Budget::constant(watts(300)), true);
    world.controller.turn(at(1)).unwrap();
    let Turn { batch, acts } = world.controller.take(at(1), 0);
    world.write(batch);
    // The very first act fails.
    world.controller.undo(at(1), &acts.iter().collect::<Vec<_>>(), "no hand to turn it down");
    let Turn { batch, acts } = world.controller.take(at(1), 0);
    world.write(batch);
    assert_eq!(acts, []);
    let held: Watts = world
        .file
        .values()
        .map(|entry| match &entry.phase {
            Phase::Running(run) => run.allotment.power,
            _ => Watts::ZERO,
        })
        .sum();
    assert_eq!(held, watts(400), "it is known to draw what it drew");
    world.cycle(at(2));
    assert!(world.power() <= watts(300), "and is tried again");
}

/// A limit that falls tomorrow is no reason to stand still today.
#[test]
fn who_stands_still_goes_on_although_a_limit_will_fall() {
    let mut world = short_of_power(LastResort::Suspend);
    world.cycle(at(10));
    assert_eq!(world.state(3, at(10)).0, State::Suspended);
    let steps = vec![(at(0), watts(400)), (at(100), watts(250))];
    world.controller.set_budget(Budget::from_steps(steps).unwrap(), false);
    world.cycle(at(11));
    assert_eq!(world.state(3, at(11)).0, State::Running);
    world.cycle(at(100));
    assert_eq!(world.state(3, at(100)).0, State::Suspended, "when it falls, it falls");
    assert!(world.controller.shortage().is_some());
    let later = world.submit(at(101), submission(1, 1));
    world.cycle(at(101));
    assert_eq!(world.state(later, at(101)).0, State::Waiting, "nobody takes its power");
    assert!(world.controller.shortage().is_some(), "and that is said as long as it lasts");
}

#[test]
fn who_stands_still_is_ended_by_force() {
    let mut world = short_of_power(LastResort::Suspend);
    world.cycle(at(10));
    world.controller.cancel(at(11), Full(ALICE), 3).unwrap();
    let acts = world.cycle(at(11));
    assert_eq!(acts, [Act::Signal { attempt: first(3), signal: Signal::Kill }], "it gets no power");
    world.end(at(12), first(3), End::Signalled(9));
    world.cycle(at(12));
    assert_eq!(world.state(3, at(12)).0, State::Cancelled);
}
