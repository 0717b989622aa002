//! Arrays: who of them may run, and what is done to all of them.

use super::*;
use crate::wire::Refusal;

/// An array of jobs that each take a node for a minute.
fn array(indices: &str) -> Submission {
    Submission { array: Some(indices.parse().unwrap()), ..submission(1, 60) }
}

fn running(world: &World) -> Vec<u64> {
    world.running.keys().map(|attempt| attempt.job).collect()
}

/// How many times each job was started in all.
fn starts(world: &World) -> BTreeMap<u64, u32> {
    let mut starts = BTreeMap::new();
    for (attempt, count) in &world.started {
        *starts.entry(attempt.job).or_default() += count;
    }
    starts
}

#[test]
fn at_most_so_many_run_at_once_and_all_of_them_once() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let number = world.submit(at(0), array("1,3,10-14:2%2"));
    assert_eq!(number, 1, "the array has a number of its own");
    world.cycle(at(0));
    assert_eq!(running(&world), [2, 3], "although there are four nodes");
    let blocked = (State::Blocked, Some("at most 2 of its array at once".to_owned()));
    assert_eq!(world.state(4, at(0)), blocked);
    // It does not keep others from starting, and its numbers are its own.
    assert_eq!(world.submit(at(1), submission(1, 60)), 7);
    world.cycle(at(1));
    assert_eq!(running(&world), [2, 3, 7]);
    for (second, ends, expected) in
        [(2, 3, vec![2, 4, 7]), (3, 2, vec![4, 5, 7]), (4, 4, vec![5, 6, 7])]
    {
        // Who may run is worked out again from what was written down.
        world.restart(at(second));
        world.cycle(at(second));
        world.end(at(second), first(ends), End::Exited(0));
        world.cycle(at(second));
        assert_eq!(running(&world), expected);
    }
    let indices = world.file.values().filter_map(|entry| Some(entry.array?.to_string()));
    assert_eq!(indices.collect::<Vec<_>>(), ["1_1", "1_3", "1_10", "1_12", "1_14"]);
    for job in [5, 6, 7] {
        world.end(at(5), first(job), End::Exited(0));
    }
    world.cycle(at(5));
    assert!(world.controller.jobs.is_empty() && !world.controller.arrays.contains(1));
    assert!(starts(&world).values().all(|count| *count == 1));
    assert_eq!(world.submit(at(6), submission(1, 60)), 8);
}

#[test]
fn whole_arrays_and_single_elements_are_held_released_and_cancelled() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let number = world.submit(at(0), array("1-6%2"));
    world.cycle(at(0));
    assert_eq!(running(&world), [2, 3]);
    let controller = &mut world.controller;
    let kind = |answer: Result<(), Refusal>| answer.map_err(|refusal| refusal.kind);
    assert_eq!(kind(controller.hold(at(1), Full(BOB), number)), Err(RefusalKind::Forbidden));
    assert_eq!(kind(controller.release(at(1), Full(ALICE), number)), Err(RefusalKind::Impossible));
    // Those that run go on.
    controller.hold(at(1), Full(ALICE), number).unwrap();
    world.end(at(1), first(2), End::Exited(0));
    world.cycle(at(1));
    assert_eq!(running(&world), [3]);
    assert_eq!(world.state(7, at(1)).0, State::Held);
    // One of them alone, not the first.
    world.controller.release(at(2), Full(ALICE), 5).unwrap();
    world.cycle(at(2));
    assert_eq!(running(&world), [3, 5]);
    world.controller.release(at(3), Full(ROOT), number).unwrap();
    world.cycle(at(3));
    assert_eq!(running(&world), [3, 5], "there is no place for others");
    // Who has a place in the queue and is held leaves it to the next.
    world.end(at(4), first(3), End::Exited(0));
    world.controller.hold(at(4), Full(ALICE), 4).unwrap();
    world.cycle(at(4));
    assert_eq!(running(&world), [5, 6]);
    world.controller.cancel(at(5), Full(ALICE), number).unwrap();
    world.cycle(at(5));
    assert_eq!(starts(&world).len(), 4, "nobody starts who is about to be cancelled");
    for job in [5, 6] {
        world.end(at(5), first(job), End::Signalled(15));
    }
    world.cycle(at(5));
    assert!(world.controller.jobs.is_empty());
    assert_eq!(
        kind(world.controller.cancel(at(6), Full(ALICE), number)),
        Err(RefusalKind::Unknown)
    );
    let by = |job: u64| match &world.file[&job].phase {
        Phase::Over(outcome) => outcome.by,
        _ => None,
    };
    assert_eq!((by(2), by(4), by(7)), (None, Some(ALICE.user), Some(ALICE.user)));
}

/// How the elements of an array ended, as the file has it.
fn over(file: &BTreeMap<u64, Entry>, number: u64) -> Option<bool> {
    let ended = file.values().filter_map(|entry| match &entry.phase {
        Phase::Over(outcome)
            if entry.number == number || entry.array.is_some_and(|of| of.array == number) =>
        {
            Some(outcome.succeeded())
        }
        _ => None,
    });
    ended.reduce(|one, other| one && other)
}

#[test]
fn who_waits_for_an_array_waits_for_all_of_it() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let number = world.submit(at(0), array("1-3%1"));
    let after = |any| {
        let mut job = submission(1, 60);
        job.request.after = vec![After { job: number, any }];
        job
    };
    let good = world.submit(at(0), after(false));
    let any = world.submit(at(0), after(true));
    world.cycle(at(0));
    assert_eq!(world.state(good, at(0)), (State::Blocked, Some("after 1".to_owned())));
    world.end(at(1), first(2), End::Exited(0));
    world.cycle(at(1));
    world.restart(at(1));
    world.cycle(at(1));
    assert_eq!(running(&world), [3]);
    // One that fails is enough for those that need them all, and nothing to the others.
    world.end(at(2), first(3), End::Exited(1));
    world.cycle(at(2));
    assert_eq!(world.state(good, at(2)).0, State::Cancelled);
    assert_eq!(world.state(any, at(2)).0, State::Blocked);
    assert_eq!(running(&world), [4]);
    // Who comes too late is told.
    let file = world.file.clone();
    let late = world.controller.submit(at(2), ALICE, after(false), &|job| over(&file, job));
    assert_eq!(late.unwrap_err().kind, RefusalKind::Impossible);
    let late = world.controller.submit(at(2), ALICE, after(true), &|job| over(&file, job)).unwrap();
    world.end(at(3), first(4), End::Exited(0));
    world.cycle(at(3));
    assert_eq!(running(&world), [any, late]);
    let mut unknown = submission(1, 60);
    unknown.request.after = vec![After { job: 99, any: false }];
    let unknown = world.controller.submit(at(3), ALICE, unknown, &|_| None).unwrap_err();
    assert_eq!(unknown.kind, RefusalKind::Unknown);
}

#[test]
fn arrays_have_bounds_and_each_element_counts() {
    let setup = Setup { most_elements: 5, most_jobs_per_user: 8, ..setup("easy") };
    let mut world = World::new(setup, Budget::unlimited());
    let refused =
        |world: &mut World, job| world.controller.submit(at(0), ALICE, job, &|_| None).unwrap_err();
    let refusal = refused(&mut world, array("1-6"));
    assert_eq!(refusal.kind, RefusalKind::TooMuch);
    assert!(refusal.message.contains("6 elements") && refusal.message.contains("limits.array"));
    assert!(world.controller.is_clean(), "nothing is left of it");
    assert_eq!(world.submit(at(0), array("1-5")), 1);
    let refusal = refused(&mut world, array("1-4"));
    assert_eq!(refusal.kind, RefusalKind::Full);
    assert_eq!(refusal.message, "you have 5 jobs, and 4 more are over 8; try later");
    assert_eq!(world.submit(at(0), array("1-3")), 7);
    assert_eq!(refused(&mut world, submission(1, 60)).kind, RefusalKind::Full);
    world.cycle(at(0));
    world.controller.cancel(at(1), Full(ALICE), 7).unwrap();
    world.cycle(at(1));
    assert_eq!(world.submit(at(1), submission(1, 60)), 11);
}

/// All elements need more power than there is: they wait until there is, and then run.
#[test]
fn an_array_that_cannot_be_fed_waits_for_power() {
    let mut world = World::new(setup("easy"), Budget::constant(watts(50)));
    let number = world.submit(at(0), array("1-3%1"));
    assert!(world.controller.advice(number).unwrap().contains("more power"));
    world.cycle(at(0));
    assert!(running(&world).is_empty());
    world.controller.set_budget(Budget::constant(watts(400)), true);
    world.cycle(at(1));
    assert_eq!(running(&world), [2]);
}

/// What happens to elements of two arrays.
#[derive(Clone, Copy, Debug)]
enum Move {
    EndWell,
    EndBadly,
    Hold,
    Release,
    Cancel,
    NeverStarted,
    Restart,
    Submit,
}

fn steps() -> impl Strategy<Value = Vec<(Move, usize)>> {
    use Move::{Cancel, EndBadly, EndWell, Hold, NeverStarted, Release, Restart, Submit};
    let step = prop::sample::select(vec![
        EndWell,
        EndWell,
        EndWell,
        EndBadly,
        Hold,
        Hold,
        Release,
        Release,
        Cancel,
        NeverStarted,
        Restart,
        Submit,
    ]);
    prop::collection::vec((step, any::<usize>()), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::default() })]

    /// Whatever happens: no more run than may, nobody waits for a place that is free, and everybody is over
    /// in the end, after one start at most that was not taken back.
    #[test]
    fn places_are_neither_exceeded_nor_lost(steps in steps(), bounds in (1usize..5, 1usize..5)) {
        let machine = Machine::of_processors(20).unwrap();
        let setup = Setup::new(&machine, Repertoire::BuiltIn, "easy".parse().unwrap()).unwrap();
        let mut world = World::new(setup, Budget::unlimited());
        let arrays = [
            (world.submit(at(0), array(&format!("1-7%{}", bounds.0))), bounds.0),
            (world.submit(at(0), array(&format!("0-8:2%{}", bounds.1))), bounds.1),
        ];
        let mut never = 0;
        world.cycle(at(0));
        for (second, (step, which)) in (1..).zip(steps.into_iter().chain([(Move::Restart, 0)])) {
            let now = at(second);
            let jobs: Vec<u64> = world.controller.jobs.keys().copied().collect();
            let job = jobs.get(which % jobs.len().max(1)).copied();
            let attempts = world.controller.attempts();
            let attempt = attempts.get(which % attempts.len().max(1)).copied();
            match (step, job, attempt) {
                (Move::EndWell, _, Some(attempt)) => world.end(now, attempt, End::Exited(0)),
                (Move::EndBadly, _, Some(attempt)) => world.end(now, attempt, End::Exited(1)),
                (Move::Hold, Some(job), _) => drop(world.controller.hold(now, Full(ALICE), job)),
                (Move::Release, Some(job), _) => drop(world.controller.release(now, Full(ALICE), job)),
                (Move::Cancel, Some(job), _) => drop(world.controller.cancel(now, Full(ALICE), job)),
                (Move::NeverStarted, _, Some(attempt)) => {
                    never += 1;
                    world.running.remove(&attempt);
                    world.controller.never_started(now, attempt, "no", which % 2 == 0);
                }
                (Move::Restart, ..) => world.restart(now),
                (Move::Submit, ..) => {
                    world.submit(now, submission(1, 60));
                }
                _ => (),
            }
            world.cycle(now);
            for (number, most) in arrays {
                let elements: Vec<&Entry> = world.controller.elements(number).collect();
                let runs = |entry: &&&Entry| matches!(entry.phase, Phase::Running(_));
                let waits = |entry: &&&Entry| entry.phase == Phase::Waiting && !entry.request.held;
                let (running, waiting) =
                    (elements.iter().filter(runs).count(), elements.iter().filter(waits).count());
                prop_assert!(running <= most, "{running} of {most} at once");
                let has_room = world.running.len() < 20;
                let is_full = running == most || waiting == 0;
                prop_assert!(is_full || !has_room, "{waiting} wait, {running} run");
            }
        }
        for number in arrays.map(|(number, _)| number) {
            drop(world.controller.release(at(1000), Full(ALICE), number));
        }
        for second in 1000.. {
            world.cycle(at(second));
            let attempts = world.controller.attempts();
            if attempts.is_empty() {
                break;
            }
            for attempt in attempts {
                world.end(at(second), attempt, End::Exited(0));
            }
        }
        let held = world.controller.jobs.values().all(|entry| entry.array.is_none());
        prop_assert!(held, "{:?}", world.controller.jobs);
        let more: u32 = starts(&world).values().map(|count| count - 1).sum();
        prop_assert!(more <= never, "{more} started again, {never} did not begin");
    }
}
