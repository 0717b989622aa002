//! Changes of running jobs that the engine cannot carry out.

use busbar::live::control::setup::LastResort;
use busbar::live::engine::Signal;
use busbar::units::Watts;

use super::by_hand::{ByHand, Done, daily, first, o_clock};

fn powers(day: &mut ByHand) -> Vec<Option<Watts>> {
    day.queue().iter().map(|line| line.power).collect()
}

/// A job that was slowed by a falling budget gets back what it had, also if the first try fails.
#[test]
fn a_raise_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let mut day = ByHand::new(
        folder.path(),
        "easy-power",
        &daily(&[(0, "400W"), (12, "300W"), (18, "400W")]),
    );
    day.hand.set_wall(o_clock(6));
    day.begin();
    day.submit(2, 7200).unwrap();
    day.submit(2, 7200).unwrap();
    let all = Some(Watts::from_watts(200));
    assert_eq!(powers(&mut day), [all, all]);
    // Nobody can know beforehand that the clock on the wall will be set.
    day.hand.set_wall(o_clock(13));
    day.pass(1);
    let squeezed = powers(&mut day);
    assert!(squeezed.iter().flatten().copied().sum::<Watts>() <= Watts::from_watts(300));
    for _ in 0..4 {
        day.engine.fail_set("no hand to turn it up");
    }
    day.hand.set_wall(o_clock(19));
    day.pass(1);
    assert_eq!(powers(&mut day), squeezed, "it is known to have what it had");
    for _ in 0..10 {
        day.pass(1);
    }
    assert_eq!(powers(&mut day), [all, all]);
    // The same if the daemon dies before it is done: the next one is told again, in vain at first.
    day.hand.set_wall(o_clock(13));
    day.pass(1);
    day.hand.set_wall(o_clock(19));
    day.pass(1);
    day.daemon = None;
    for _ in 0..8 {
        day.engine.fail_set("no hand to turn it up");
    }
    day.begin();
    for _ in 0..20 {
        day.pass(1);
    }
    assert_eq!(powers(&mut day), [all, all]);
    let mut done = Done::default();
    done.take(&day.engine);
    assert_eq!(done.drawn(&day.engine), Watts::from_watts(400));
    day.end();
}

/// A daemon dies after it has written down that jobs have less, and the next one cannot make it so: they
/// are known to draw what they drew, and nobody gets what they did not give back.
#[test]
fn a_lowering_that_fails_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut day = ByHand::new(
        folder.path(),
        "easy-power",
        &daily(&[(0, "400W"), (12, "230W"), (18, "330W")]),
    );
    day.hand.set_wall(o_clock(6));
    day.begin();
    day.submit(2, 7200).unwrap();
    day.submit(1, 7200).unwrap();
    let mut done = Done::default();
    done.take(&day.engine);
    assert_eq!(done.drawn(&day.engine), Watts::from_watts(300));
    day.hand.set_wall(o_clock(13));
    let waiting = day.submit(1, 7200).unwrap();
    assert!(!day.engine.running().contains(&first(waiting)), "there is no power for it");
    let lowered: Watts = powers(&mut day).into_iter().flatten().sum();
    assert!(lowered <= Watts::from_watts(230), "{lowered}");
    // That it was done would be written with what is written next, and nothing is.
    day.daemon = None;
    done.take(&day.engine);
    // There is power for it now if the others really have less.
    day.hand.set_wall(o_clock(19));
    for _ in 0..2 {
        day.engine.fail_set("no hand to turn it down");
    }
    day.begin();
    done.take(&day.engine);
    assert_eq!(done.starts, 0, "{done:?}");
    let held: Watts = powers(&mut day).into_iter().flatten().sum();
    assert_eq!(held, Watts::from_watts(300), "what was not confirmed counts as before");
    // It is tried again, and then all goes its way within the limit.
    for _ in 0..10 {
        day.pass(1);
        let held: Watts = powers(&mut day).into_iter().flatten().sum();
        assert!(held <= Watts::from_watts(330), "{held}");
    }
    done.take(&day.engine);
    assert!(done.drawn(&day.engine) <= Watts::from_watts(330), "{done:?}");
    day.end();
}

/// Two jobs on a machine whose limit falls at noon below what both need, and rises in the evening. Nobody can know
/// beforehand that the clock on the wall will be set.
fn two_jobs_at_noon(day: &mut ByHand) -> u64 {
    day.hand.set_wall(o_clock(6));
    day.begin();
    day.submit(2, 7200).unwrap();
    let younger = day.submit(2, 7200).unwrap();
    assert_eq!(day.engine.running().len(), 2);
    day.engine.take_calls();
    day.hand.set_wall(o_clock(13));
    younger
}

/// A job that could not be suspended runs on, and counts as one that does, until it is suspended.
#[test]
fn a_suspension_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let limits = daily(&[(0, "400W"), (12, "300W"), (18, "400W")]);
    let mut day = ByHand::new(folder.path(), "easy", &limits).last_resort(LastResort::Suspend);
    day.engine.fail_signal("no hand to stop it");
    let younger = two_jobs_at_noon(&mut day);
    day.pass(1);
    assert_eq!(day.status().power.held, Watts::from_watts(400), "it draws what it drew");
    for _ in 0..3 {
        day.pass(1);
    }
    assert_eq!(day.status().power.held, Watts::from_watts(200));
    let mut done = Done::default();
    done.take(&day.engine);
    assert_eq!(done.signals, [(first(younger), Signal::Suspend); 2]);
    day.end();
}

/// A job that could not be resumed is told again, as long as it takes.
#[test]
fn a_resumption_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let limits = daily(&[(0, "400W"), (12, "300W"), (18, "400W")]);
    let mut day = ByHand::new(folder.path(), "easy", &limits).last_resort(LastResort::Suspend);
    let younger = two_jobs_at_noon(&mut day);
    day.pass(1);
    let mut done = Done::default();
    done.take(&day.engine);
    assert_eq!(done.signals, [(first(younger), Signal::Suspend)]);
    for _ in 0..3 {
        day.engine.fail_signal("no hand to let it go");
    }
    day.hand.set_wall(o_clock(19));
    for _ in 0..10 {
        day.pass(1);
    }
    assert_eq!(day.status().power.held, Watts::from_watts(400));
    done.take(&day.engine);
    assert_eq!(done.signals, [(first(younger), Signal::Resume); 4]);
    day.end();
}

/// A daemon dies after it has written down that a job has less, and the next one cannot make it so. Jobs that run go on
/// counting as such, although they were told again to go on.
#[test]
fn running_jobs_count_when_a_lowering_fails_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let limits = daily(&[(0, "400W"), (12, "300W")]);
    let mut day = ByHand::new(folder.path(), "easy-power", &limits);
    two_jobs_at_noon(&mut day);
    day.pass(1);
    let squeezed: Watts = powers(&mut day).into_iter().flatten().sum();
    assert!(squeezed <= Watts::from_watts(300), "{squeezed}");
    // That it was done would be written with what is written next, and nothing is.
    day.daemon = None;
    for _ in 0..2 {
        day.engine.fail_set("no hand to turn it down");
    }
    day.begin();
    assert!(day.queue().iter().all(|line| line.power.is_some()), "nobody is suspended");
    assert!(day.status().power.held >= squeezed);
    for _ in 0..10 {
        day.pass(1);
    }
    let mut done = Done::default();
    done.take(&day.engine);
    assert!(done.suspended.is_empty());
    assert!(day.status().power.held <= Watts::from_watts(300));
    day.end();
}
