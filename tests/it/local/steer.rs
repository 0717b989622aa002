//! What can be done to jobs while they run: signals, processors, speed.

use std::process::Command;

use busbar_needs::needs;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::*;

/// A job that leaves a process in a session of its own, which does not listen to TERM: it is ended before
/// the job counts as ended.
#[test]
fn nothing_is_left_behind() {
    let place = Place::new();
    let mut engine = place.engine();
    let (stray, go) = (place.path("stray"), place.path("go"));
    // Twice removed, without parent, in a session of its own.
    let script = format!(
        "(setsid sh -c 'trap \"\" TERM; echo $$ > {}; while :; do sleep 0.1; done' &)
         while [ ! -e {} ]; do sleep 0.01; done",
        stray.display(),
        go.display()
    );
    engine.start(&place.shell(1, &script)).unwrap();
    let stray = process(&stray);
    fs::write(go, "").unwrap();
    assert_eq!(end(&mut engine).1, End::Exited(0));
    assert!(!stray.is_there().unwrap());
    place.assert_nobody_is_left();
}

#[test]
fn jobs_are_ended_and_suspended() {
    let place = Place::new();
    let mut engine = place.engine();
    let count = place.path("count");
    // What counts has left the session of the job, and its parent.
    let script = format!(
        "(setsid sh -c 'while :; do echo x >> {}; sleep 0.01; done' &); sleep infinity",
        count.display()
    );
    let job = place.shell(1, &script);
    engine.start(&job).unwrap();
    let lines = || fs::read_to_string(&count).unwrap_or_default().lines().count();
    until("some work", || lines() > 3);
    engine.signal(job.attempt, Signal::Suspend).unwrap();
    meet_everybody(&mut engine);
    place.until_all_stand_still();
    let before = lines();
    while_others_work();
    assert_eq!(lines(), before);
    engine.signal(job.attempt, Signal::Resume).unwrap();
    meet_everybody(&mut engine);
    until("more work", || lines() > before);
    engine.signal(job.attempt, Signal::Terminate).unwrap();
    assert_eq!(end(&mut engine).1, End::Signalled(15));
    place.assert_nobody_is_left();
}

/// Processor time of a process, in ticks.
fn processor_time(process: Process) -> u64 {
    let fields = fields(process.number);
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn who_is_suspended_takes_no_processor_time() {
    let place = Place::new();
    let mut engine = place.engine();
    let own = place.path("own");
    let script = format!("echo $$ > {}; exec {BUSBAR} work 600s --burn", own.display());
    let job = place.shell(1, &script);
    engine.start(&job).unwrap();
    let process = process(&own);
    until("some work", || processor_time(process) > 5);
    engine.signal(job.attempt, Signal::Suspend).unwrap();
    place.until_all_stand_still();
    let before = processor_time(process);
    while_others_work();
    assert_eq!(processor_time(process), before);
    engine.signal(job.attempt, Signal::Resume).unwrap();
    until("more work", || processor_time(process) > before + 5);
    // One that stands still hears of its end later, and is ended by force at once.
    engine.signal(job.attempt, Signal::Suspend).unwrap();
    place.until_all_stand_still();
    engine.signal(job.attempt, Signal::Terminate).unwrap();
    while_others_work();
    assert_eq!(engine.ended(), []);
    engine.signal(job.attempt, Signal::Kill).unwrap();
    assert_eq!(end(&mut engine).1, End::Signalled(9));
}

/// From the moment at which it is started a job can be suspended, resumed and ended, whether or not it
/// has begun.
#[test]
fn signals_reach_who_is_about_to_begin() {
    let place = Place::new();
    let mut engine = place.engine();
    // At several moments of a beginning, of which a busy machine sees others than an idle one.
    for job in 1..=10 {
        let ran = place.path(&format!("ran-{job}"));
        let launch = place.shell(job, &format!("echo > {}; sleep infinity", ran.display()));
        engine.start(&launch).unwrap();
        sleep(Duration::from_millis(job - 1));
        engine.signal(launch.attempt, Signal::Suspend).unwrap();
        // Whoever is about to begin is stopped by its warden, and nobody else may have begun by then.
        until("its start", || place.attempt(&launch).join("started.json").exists());
        place.until_all_stand_still();
        let before = ran.exists();
        while_others_work();
        assert_eq!(ran.exists(), before, "it stands still");
        engine.signal(launch.attempt, Signal::Resume).unwrap();
        until("that it runs", || ran.exists());
        engine.signal(launch.attempt, Signal::Kill).unwrap();
        assert_eq!(end(&mut engine), (launch.attempt, End::Signalled(9)));
    }
    // However early it is asked to end, once is enough here, though not of all engines.
    for job in 11..=20 {
        let launch = place.shell(job, "sleep infinity");
        engine.start(&launch).unwrap();
        sleep(Duration::from_millis(job - 11));
        engine.signal(launch.attempt, Signal::Terminate).unwrap();
        assert_eq!(end(&mut engine), (launch.attempt, End::Signalled(15)));
    }
    place.assert_nobody_is_left();
}

/// The processors that a process may use.
fn allowed(process: Process) -> String {
    let status = fs::read_to_string(format!("/proc/{}/status", process.number)).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().to_owned()
}

/// All processors of the machine, also if the tests are bound to one of them. Those of the calling thread, and of whom it starts.
fn use_all_processors() -> String {
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    sched_setaffinity(None, &all).unwrap();
    allowed(Process::of(rustix::thread::gettid().as_raw_nonzero().get()).unwrap().unwrap())
}

#[needs(processors)]
#[test]
fn jobs_are_kept_to_their_processors() {
    let there = use_all_processors();
    let place = Place::new();
    let mut engine = place.engine_on(vec![vec![0], vec![1], vec![4711]]);
    assert_eq!(engine.notices().len(), 1);
    assert!(engine.notices()[0].starts_with("node 2 "), "{:?}", engine.notices());
    let (own, stray) = (place.path("own"), place.path("stray"));
    let script = format!(
        "(setsid sh -c 'echo $$ > {}; sleep infinity' &); echo $$ > {}; sleep infinity",
        stray.display(),
        own.display()
    );
    let mut job = place.shell(1, &script);
    job.allotment = on(&[1], 1_000_000);
    engine.start(&job).unwrap();
    let all = [process(&own), process(&stray)];
    let is = |expected: &str| all.iter().all(|process| allowed(*process) == expected);
    assert!(is("1"));
    // The list begins again: node 3 is as node 0.
    for (nodes, expected) in [(&[3][..], "0"), (&[0, 1], "0-1"), (&[1], "1"), (&[2], &there)] {
        engine.set(job.attempt, &on(nodes, 1_000_000), Span::ZERO).unwrap();
        meet_everybody(&mut engine);
        assert!(is(expected), "{nodes:?}: {}, {}", allowed(all[0]), allowed(all[1]));
    }
    engine.signal(job.attempt, Signal::Kill).unwrap();
    assert_eq!(end(&mut engine).1, End::Signalled(9));
    place.assert_nobody_is_left();
}

/// However early its nodes change, a job ends up on the right ones.
#[needs(processors)]
#[test]
fn nodes_may_change_while_a_job_is_about_to_begin() {
    use_all_processors();
    let place = Place::new();
    let mut engine = place.engine_on(vec![vec![0], vec![1]]);
    assert_eq!(engine.notices().len(), 0);
    for job in 1..=10 {
        let own = place.path(&format!("own-{job}"));
        let launch = place.shell(job, &format!("echo $$ > {}; sleep infinity", own.display()));
        engine.start(&launch).unwrap();
        sleep(Duration::from_millis(job - 1));
        engine.set(launch.attempt, &on(&[1], 1_000_000), Span::ZERO).unwrap();
        let process = process(&own);
        meet_everybody(&mut engine);
        assert_eq!(allowed(process), "1");
        engine.signal(launch.attempt, Signal::Kill).unwrap();
        assert_eq!(end(&mut engine).1, End::Signalled(9));
    }
}

/// 0.4 s of work, first at a millionth of the speed, at which it would take days, then at full speed. It may take longer
/// than that, but not less.
#[test]
fn emulated_work_follows_its_speed() {
    const WORK: Duration = Duration::from_millis(400);
    // What can be done of it before the job has heard of another speed is next to nothing.
    let at_least = WORK - Duration::from_millis(20);
    let place = Place::new();
    let mut engine = place.engine();
    let job = |number| Launch {
        allotment: on(&[0], 1),
        ..place.command(number, &[BUSBAR, "work", "400ms"])
    };
    let first = job(1);
    engine.start(&first).unwrap();
    until("its start", || place.attempt(&first).join("started.json").exists());
    let began = Instant::now();
    engine.set(first.attempt, &on(&[0], 1_000_000), Span::ZERO).unwrap();
    assert_eq!(end(&mut engine).1, End::Exited(0));
    assert!(began.elapsed() >= at_least, "{:?}", began.elapsed());

    // Who stands still does no work, however long that is.
    let second = job(2);
    engine.start(&second).unwrap();
    until("its start", || place.attempt(&second).join("started.json").exists());
    engine.signal(second.attempt, Signal::Suspend).unwrap();
    place.until_all_stand_still();
    engine.set(second.attempt, &on(&[0], 1_000_000), Span::ZERO).unwrap();
    // As much as would be needed is done by somebody else.
    let done = Command::new(BUSBAR).args(["work", "400ms"]).status().unwrap();
    assert!(done.success());
    assert_eq!(engine.ended(), []);
    let resumed = Instant::now();
    engine.signal(second.attempt, Signal::Resume).unwrap();
    assert_eq!(end(&mut engine).1, End::Exited(0));
    assert!(resumed.elapsed() >= at_least, "{:?}", resumed.elapsed());
    assert_eq!(fs::read_to_string(place.path("err")).unwrap(), "", "nothing to complain about");
}
