//! Who may do what, and what is refused.

use super::*;

#[test]
fn nobody_has_more_jobs_than_one_user_may() {
    let setup = Setup { most_jobs_per_user: 2, ..setup("easy") };
    let mut world = World::new(setup, Budget::unlimited());
    let submit = |world: &mut World, who| {
        let answer = world.controller.submit(at(0), who, submission(4, 60), &|_| None);
        world.cycle(at(0));
        answer.map_err(|refusal| refusal.kind)
    };
    assert_eq!(submit(&mut world, ALICE), Ok(1));
    assert_eq!(submit(&mut world, ALICE), Ok(2));
    assert_eq!(submit(&mut world, ALICE), Err(RefusalKind::Full));
    assert_eq!(submit(&mut world, BOB), Ok(3));
    world.restart(at(0));
    assert_eq!(submit(&mut world, ALICE), Err(RefusalKind::Full));
    world.controller.cancel(at(0), Full(ALICE), 2).unwrap();
    assert_eq!(submit(&mut world, ALICE), Ok(4));
    assert_eq!(submit(&mut world, ALICE), Err(RefusalKind::Full));
}

/// What is kept of one user's jobs has a bound in bytes, also after a restart.
#[test]
fn nobody_has_more_bytes_than_one_user_may() {
    let with = |bytes: usize| {
        let mut submission = submission(4, 60);
        submission.program.environment.push(("LARGE".to_owned(), "x".repeat(bytes)));
        submission
    };
    let (small, large) = (with(1000), with(5000));
    let setup = Setup { most_bytes_per_user: 3 * small.bytes(), ..setup("easy") };
    let mut world = World::new(setup, Budget::unlimited());
    let submit = |world: &mut World, who, submission: &Submission| {
        let answer = world.controller.submit(at(0), who, submission.clone(), &|_| None);
        world.cycle(at(0));
        answer
    };
    for job in 1..=3 {
        assert_eq!(submit(&mut world, ALICE, &small), Ok(job));
    }
    let refusal = submit(&mut world, ALICE, &small).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Full);
    let most = format!("more than {}; try later", 3 * small.bytes());
    assert!(refusal.message.contains(&most), "{refusal}");
    assert_eq!(submit(&mut world, BOB, &large).unwrap_err().kind, RefusalKind::Full);
    assert_eq!(submit(&mut world, BOB, &small), Ok(4), "others have their own");
    world.controller.cancel(at(0), Full(ALICE), 2).unwrap();
    assert_eq!(submit(&mut world, ALICE, &small), Ok(5), "who goes makes room");
    assert!(submit(&mut world, ALICE, &small).is_err());
}

#[test]
fn who_cancels_holds_and_releases_is_written_down() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let (runs, waits) =
        (world.submit(at(0), submission(4, 60)), world.submit(at(0), submission(4, 60)));
    let late = world.submit(at(0), submission(4, 60));
    world.cycle(at(0));
    world.controller.hold(at(1), Full(ALICE), waits).unwrap();
    world.controller.release(at(2), Full(ROOT), waits).unwrap();
    world.controller.cancel(at(3), Full(ROOT), waits).unwrap();
    world.controller.cancel(at(3), Full(ALICE), runs).unwrap();
    world.cycle(at(3));
    // Who asks again, and a restart, change nothing.
    world.restart(at(40));
    world.controller.cancel(at(40), Full(ROOT), runs).unwrap();
    world.end(at(41), first(runs), End::Signalled(9));
    world.cycle(at(41));
    world.controller.turn(at(110)).unwrap();
    world.end(at(110), first(late), End::Signalled(15));
    world.cycle(at(110));
    let by = |what: &EventKind| match what {
        EventKind::Held { job, by, .. } | EventKind::Ending { job, by, .. } => Some((*job, *by)),
        EventKind::Ended { job, outcome } => Some((*job, outcome.by)),
        _ => None,
    };
    let (alice, root) = (Some(ALICE.user), Some(ROOT.user));
    let expected = [
        (waits, alice),
        (waits, root),
        (waits, root),
        (runs, alice),
        (runs, alice),
        (runs, alice),
        // Its time was over.
        (late, None),
        (late, None),
    ];
    assert_eq!(world.events.iter().filter_map(by).collect::<Vec<_>>(), expected);
    let Phase::Over(outcome) = &world.file[&runs].phase else { panic!() };
    assert_eq!((outcome.reason, outcome.by), (Some(EndReason::Cancelled), alice));
}

/// Where applications were described, a name that none has is a typing mistake.
#[test]
fn an_application_that_is_not_known_is_refused() {
    let named = |name: &str| {
        let mut job = submission(1, 60);
        job.request.application = Some(name.to_owned());
        job
    };
    for policy in ["ppartition", "rmap-adaptive"] {
        let mut world = World::new(setup(policy), Budget::unlimited());
        let known = world.controller.setup.decider.applications()[0].to_owned();
        let typed = format!("{known}x");
        let refusal = world.controller.submit(at(0), ALICE, named(&typed), &|_| None).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Impossible);
        let meant = format!("did you mean '{known}'?");
        assert!(refusal.message.contains(&meant), "{}", refusal.message);
        assert!(refusal.message.contains("Known applications: "), "{}", refusal.message);
        let far =
            world.controller.submit(at(0), ALICE, named("zzzzzzzzzz"), &|_| None).unwrap_err();
        assert!(!far.message.contains("did you mean"), "{}", far.message);
        let request = named(&typed).request;
        assert!(world.controller.check_request(&request).is_err(), "nor can it be foreseen");
    }
    // Without --app the worst is assumed, and a known one is fine.
    let mut world = World::new(setup("parm"), Budget::unlimited());
    world.submit(at(0), submission(1, 60));
    let known = world.controller.setup.decider.applications()[0].to_owned();
    let job = world.submit(at(0), named(&known));
    assert_eq!(world.controller.advice(job), None);
    // Where nobody described any, other names are taken, and it is said that they make no difference.
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let job = world.submit(at(0), named("CoMDD"));
    let advice = world.controller.advice(job).unwrap();
    let said = "names the application 'CoMDD', which has no profile, so the name has no effect";
    assert_eq!(advice, said);
    // Another policy takes over who was accepted.
    let budget = Budget::unlimited();
    world.controller.set_up(setup("parm"), budget, at(1)).unwrap();
    assert_eq!(world.controller.remark(job), None);
}

#[test]
fn only_owners_and_operators_touch_jobs() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let (runs, waits) =
        (world.submit(at(0), submission(4, 60)), world.submit(at(0), submission(4, 60)));
    world.cycle(at(0));
    let controller = &mut world.controller;
    let kind = |result: Result<(), crate::wire::Refusal>| result.unwrap_err().kind;
    assert_eq!(kind(controller.cancel(at(1), Full(BOB), runs)), RefusalKind::Forbidden);
    assert_eq!(kind(controller.hold(at(1), Full(BOB), waits)), RefusalKind::Forbidden);
    assert_eq!(kind(controller.hold(at(1), Full(ALICE), runs)), RefusalKind::Impossible);
    assert_eq!(kind(controller.cancel(at(1), Full(ALICE), 99)), RefusalKind::Unknown);
    // Root without the rights of an operator, and somebody who is no user, are like any other user.
    for other in [Ordinary(BOB), Ordinary(ROOT), Anybody] {
        assert_eq!(kind(controller.cancel(at(1), other, runs)), RefusalKind::Forbidden);
        assert_eq!(kind(controller.hold(at(1), other, waits)), RefusalKind::Forbidden);
        assert_eq!(kind(controller.release(at(1), other, waits)), RefusalKind::Forbidden);
    }
    controller.hold(at(1), Full(ROOT), waits).unwrap();
    controller.cancel(at(1), Ordinary(ALICE), runs).unwrap();
    let acts = world.cycle(at(1));
    assert_eq!(acts, [Act::Signal { attempt: first(runs), signal: Signal::Terminate }]);
    world.end(at(2), first(runs), End::Signalled(15));
    world.cycle(at(2));
    assert_eq!(world.state(waits, at(2)).0, State::Held);
    world.controller.cancel(at(3), Full(ALICE), waits).unwrap();
    world.cycle(at(3));
    assert_eq!(world.state(waits, at(3)), (State::Cancelled, Some("cancelled".to_owned())));
    assert!(world.controller.jobs.is_empty());
}

#[test]
fn wishes_that_cannot_be_are_refused() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let mut refused = |change: &dyn Fn(&mut Submission)| {
        let mut submission = submission(1, 60);
        change(&mut submission);
        world.controller.submit(at(0), ALICE, submission, &|_| None).unwrap_err().kind
    };
    assert_eq!(refused(&|s| s.request.nodes = 0), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.request.nodes = 5), RefusalKind::Impossible);
    assert_eq!(refused(&|s| s.request.time = Span::ZERO), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.request.time = Span::FOREVER), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.request.moldable = Some((2, 4))), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.request.moldable = Some((1, 0))), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.request.slowdown = Some("much".into())), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.request.name = "a\nb".into()), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.program.command.clear()), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.program.folder = "here".into()), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.program.command = vec!["a\0".into()]), RefusalKind::Malformed);
    assert!(world.controller.is_clean(), "what is refused leaves nothing");
}
