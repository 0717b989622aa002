//! The way of a job: written down, started, waited for, ended.

use super::*;

#[test]
fn a_job_is_written_down_before_it_starts_and_ends_well() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let job = world.submit(at(1), submission(2, 60));
    world.controller.turn(at(1)).unwrap();
    let Turn { batch, acts } = world.controller.take(at(1), 0);
    let (entry, _) = &batch.submitted[0];
    let Phase::Running(run) = &entry.phase else { panic!("{entry:?}") };
    assert_eq!(run.allotment.nodes, [(0, watts(100)), (1, watts(100))]);
    assert_eq!(run.until, at(61));
    assert!(matches!(&acts[..], [Act::Start { attempt, .. }] if *attempt == first(job)));
    world.write(batch);
    world.act(&acts, 1, Watts::UNLIMITED);
    world.end(at(31), first(job), End::Exited(0));
    let acts = world.cycle(at(31));
    assert_eq!(acts, [Act::Forget { attempt: first(job) }]);
    let Phase::Over(outcome) = &world.file[&job].phase else { panic!() };
    assert!(outcome.succeeded());
    // Two nodes of 100 W for 30 s.
    assert_eq!(outcome.energy, Joules::from_joules(6000));
}

/// A daemon that was away for a while charges a job until it ended, not until somebody looked; and never for less than no
/// time, whatever a clock that was set says.
#[test]
fn a_job_is_charged_until_it_ended() {
    for (ago, end, joules) in [(0, 100, 18_000), (60, 40, 6_000), (90, 10, 0), (1_000, 10, 0)] {
        let mut world = World::new(setup("easy"), Budget::unlimited());
        let job = world.submit(at(10), submission(2, 600));
        world.cycle(at(10));
        let found = Found::Ended { end: End::Exited(0), ago: Span::from_secs(ago) };
        world.controller.found(at(100), first(job), found);
        world.cycle(at(100));
        let Phase::Over(outcome) = &world.file[&job].phase else { panic!() };
        assert_eq!((outcome.end, outcome.energy), (at(end), Joules::from_joules(joules)));
    }
}

/// A job whose time is over is asked to end, and its nodes go to the one that waits for them, not to a third
/// one that would fit if the job stayed for as long as it may. If it does stay, that one starts a moment later.
#[test]
fn a_job_at_its_limit_is_waited_for_before_others_pass() {
    for ends in [true, false] {
        let mut world = World::new(setup("easy"), Budget::unlimited());
        let [_, waits] = [3, 4].map(|nodes| world.submit(at(0), submission(nodes, 60)));
        world.cycle(at(0));
        let short = world.submit(at(50), submission(1, 20));
        assert_eq!(world.cycle(at(50)), []);
        let asked = Act::Signal { attempt: first(1), signal: Signal::Terminate };
        assert_eq!(world.cycle(at(60)), [asked]);
        let moment = at(60) + SETTLING;
        assert_eq!(world.controller.next_deadline(), Some(moment));
        if ends {
            let soon = at(60) + Span::from_millis(20);
            world.end(soon, first(1), End::Signalled(15));
            world.cycle(soon);
            assert!(world.running.contains_key(&first(waits)));
        } else {
            world.cycle(moment);
            assert!(world.running.contains_key(&first(short)));
        }
    }
}

#[test]
fn a_job_whose_time_is_over_is_asked_to_end_and_then_made_to() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let job = world.submit(at(0), submission(1, 60));
    world.cycle(at(0));
    assert_eq!(world.controller.next_deadline(), Some(at(60)));
    assert_eq!(world.cycle(at(59)), []);
    let attempt = first(job);
    assert_eq!(world.cycle(at(60)), [Act::Signal { attempt, signal: Signal::Terminate }]);
    assert_eq!(world.cycle(at(61)), []);
    assert_eq!(world.controller.next_deadline(), Some(at(90)));
    assert_eq!(world.cycle(at(90)), [Act::Signal { attempt, signal: Signal::Kill }]);
    assert_eq!(world.cycle(at(120)), [Act::Signal { attempt, signal: Signal::Kill }], "again");
    assert_eq!(world.power(), watts(100), "it holds its power until it has ended");
    world.end(at(121), attempt, End::Signalled(9));
    world.cycle(at(121));
    assert_eq!(world.state(job, at(121)).0, State::TimedOut);
}

#[test]
fn jobs_wait_for_others_and_for_their_release() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let before = world.submit(at(0), submission(1, 60));
    let mut well = submission(1, 60);
    well.request.after = vec![After { job: before, any: false }];
    let well = world.submit(at(0), well);
    let mut any = submission(1, 60);
    any.request.after = vec![After { job: before, any: true }];
    any.request.held = true;
    let any = world.submit(at(0), any);
    world.cycle(at(0));
    assert_eq!(world.running.len(), 1);
    assert_eq!(world.state(well, at(0)), (State::Blocked, Some("after 1".to_owned())));
    world.end(at(5), first(before), End::Exited(3));
    world.cycle(at(5));
    let reason = Some("a job it depends on failed".to_owned());
    assert_eq!(world.state(well, at(5)), (State::Cancelled, reason));
    assert_eq!(world.state(any, at(5)).0, State::Held);
    world.controller.release(at(6), Full(ALICE), any).unwrap();
    assert!(world.controller.release(at(6), Full(ALICE), any).is_err(), "it is not held any more");
    world.cycle(at(6));
    assert_eq!(world.state(any, at(6)).0, State::Running);
    let mut late = submission(1, 60);
    late.request.after = vec![After { job: before, any: false }];
    let ended = |job| (job == before).then_some(false);
    let refusal = world.controller.submit(at(7), ALICE, late.clone(), &ended).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Impossible);
    let refusal = world.controller.submit(at(7), ALICE, late, &|_| None).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Unknown);
}

#[test]
fn a_running_job_that_a_new_policy_does_not_know_holds_what_it_holds() {
    let cab = setup("rmap-adaptive");
    let machine = Machine { details: Details::ideal(), ..Machine::cab() };
    let easy = Setup::new(&machine, Repertoire::BuiltIn, "easy-power".parse().unwrap()).unwrap();
    let limit = Budget::constant(watts(3000));
    let mut world = World::new(easy, limit.clone());
    let mut job = submission(8, 600);
    job.request.application = Some("one that has no profile".to_owned());
    world.submit(at(0), job);
    world.cycle(at(0));
    let drawn = world.power();
    assert!(drawn > Watts::ZERO);
    world.controller.set_up(cab, limit, at(1)).unwrap();
    let ledger = world.controller.scheduler.ledger();
    assert_eq!((ledger.held(), ledger.free_nodes()), (drawn, 64 - 8));
    // A lower limit cannot slow it, as nobody knows how; but nobody else starts.
    world.controller.set_budget(Budget::constant(watts(500)), true);
    world.cycle(at(2));
    assert_eq!(world.power(), drawn);
    assert!(world.controller.shortage().is_some());
    world.end(at(3), first(1), End::Exited(0));
    world.cycle(at(3));
    assert_eq!(world.controller.scheduler.ledger().held(), Watts::ZERO);
}

#[test]
fn a_job_may_wait_for_many() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let mut last = submission(1, 60);
    last.request.after = (1..=200).map(|job| After { job, any: true }).collect();
    for _ in 0..200 {
        let mut held = submission(1, 60);
        held.request.held = true;
        world.submit(at(0), held);
    }
    let last = world.submit(at(0), last);
    for job in 1..=200 {
        assert_eq!(world.state(last, at(1)).0, State::Blocked);
        world.controller.cancel(at(1), Full(ALICE), job).unwrap();
        world.cycle(at(1));
    }
    assert_eq!(world.state(last, at(1)).0, State::Running);
    let mut too_many = submission(1, 60);
    too_many.request.after = vec![After { job: last, any: true }; 1001];
    assert!(world.controller.submit(at(2), ALICE, too_many, &|_| None).is_err());
}
