//! Wardens that are killed or stopped by others, and processes that do all they can not to be found.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

/// A job that leaves a process behind which has a session of its own and no environment: nobody but the
/// warden has anything to do with it. It writes who is who into files.
fn with_a_stray(place: &Place) -> Launch {
    let script = format!(
        "(env -i setsid sh -c 'echo $$ > {}; exec sleep infinity' &); echo $PPID > {}; sleep infinity",
        place.path("stray").display(),
        place.path("warden").display(),
    );
    place.shell(1, &script)
}

/// Such a process is ended with the job if the warden is killed, by the daemon that has seen it, or by one
/// that comes later.
#[test]
fn who_has_forgotten_everything_is_ended_without_a_warden() {
    for is_found_again in [false, true] {
        let place = Place::new();
        let mut engine = place.engine();
        let job = with_a_stray(&place);
        engine.start(&job).unwrap();
        let (stray, warden) = (process(&place.path("stray")), process(&place.path("warden")));
        place.until_seen(&mut engine, &job, stray);
        if is_found_again {
            std::mem::forget(engine);
            engine = place.engine();
            kill(warden.number);
            assert_eq!(engine.find(job.attempt).unwrap(), Found::Running);
        } else {
            kill(warden.number);
        }
        let ended = end(&mut engine);
        let is_left = stray.is_there().unwrap() && !is_zombie(stray);
        kill(stray.number);
        assert_eq!(ended, (job.attempt, End::Lost));
        assert!(!is_left, "it is still there, and nobody counts it");
        place.assert_nobody_is_left();
    }
}

/// As long as something is left that was seen, the job has not ended: what it draws is still drawn.
#[test]
fn nothing_has_ended_before_everybody_has() {
    let place = Place::new();
    let mut engine = place.engine();
    let job = with_a_stray(&place);
    engine.start(&job).unwrap();
    let (stray, warden) = (process(&place.path("stray")), process(&place.path("warden")));
    place.until_seen(&mut engine, &job, stray);
    kill(warden.number);
    until("an end", || {
        let is_over = !engine.ended().is_empty();
        assert!(!is_over || !stray.is_there().unwrap() || is_zombie(stray));
        is_over
    });
}

/// A warden that a job stops is told to go on, and sees how the job ends.
#[test]
fn a_stopped_warden_goes_on() {
    let place = Place::new();
    let mut engine = place.engine();
    let job = place.shell(1, "kill -STOP $PPID; exit 3");
    engine.start(&job).unwrap();
    assert_eq!(end(&mut engine), (job.attempt, End::Exited(3)));
    // And one that stands still while the job is to end.
    let parent = place.path("warden");
    let job = place.shell(2, &format!("echo $PPID > {}; sleep infinity", parent.display()));
    engine.start(&job).unwrap();
    let warden = process(&parent);
    warden.signal(Signal::Suspend).unwrap();
    engine.signal(job.attempt, Signal::Terminate).unwrap();
    assert_eq!(end(&mut engine), (job.attempt, End::Signalled(15)));
    place.assert_nobody_is_left();
}

/// A warden that somebody keeps from saying that the job was ended by force is ended, too.
#[test]
fn a_warden_that_does_not_answer_is_ended() {
    let place = Place::new();
    let mut engine = place.engine();
    let parent = place.path("warden");
    let job = place.shell(1, &format!("echo $PPID > {}; sleep infinity", parent.display()));
    engine.start(&job).unwrap();
    let warden = process(&parent);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let stops = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = warden.signal(Signal::Suspend);
                stops.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                std::thread::yield_now();
            }
        });
        until("that it is kept from it", || stops.load(std::sync::atomic::Ordering::Relaxed) > 100);
        engine.signal(job.attempt, Signal::Kill).unwrap();
        let ended = catch_unwind(AssertUnwindSafe(|| end(&mut engine)));
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        // It may have been faster than who stopped it.
        assert_eq!(ended.unwrap(), (job.attempt, End::Signalled(9)));
    });
    place.assert_nobody_is_left();
}
