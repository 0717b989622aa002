//! What can be done to jobs while they run: signals, processors, speed.

use super::*;

/// A job that leaves a process in a session of its own, which does not listen to TERM: it is ended before
/// the job counts as ended.
#[test]
fn nothing_is_left_behind() {
    let place = Place::new();
    let mut engine = place.engine();
    let stray = place.path("stray");
    // Twice removed, without parent, in a session of its own.
    let script = format!(
        "(setsid sh -c 'trap \"\" TERM; echo $$ > {}; while :; do sleep 0.1; done' &) ; sleep 0.3",
        stray.display()
    );
    engine.start(&place.shell(1, &script)).unwrap();
    let stray = process(&stray);
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
        "(setsid sh -c 'while :; do echo x >> {}; sleep 0.01; done' &); sleep 600",
        count.display()
    );
    let job = place.shell(1, &script);
    engine.start(&job).unwrap();
    let lines = || fs::read_to_string(&count).unwrap_or_default().lines().count();
    until("some work", || lines() > 3);
    engine.signal(job.attempt, Signal::Suspend).unwrap();
    meet_everybody(&mut engine);
    // What was under way when the signal came may still be written.
    sleep(Duration::from_millis(200));
    let before = lines();
    sleep(Duration::from_millis(300));
    assert_eq!(lines(), before);
    engine.signal(job.attempt, Signal::Resume).unwrap();
    meet_everybody(&mut engine);
    until("more work", || lines() > before);
    engine.signal(job.attempt, Signal::Terminate).unwrap();
    assert_eq!(end(&mut engine).1, End::Signalled(15));
    place.assert_nobody_is_left();
}

/// What the kernel says of a process, from the third field on.
fn fields(process: Process) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.number)).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    rest.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Processor time of a process, in ticks.
fn processor_time(process: Process) -> u64 {
    let fields = fields(process);
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn state(process: Process) -> String {
    fields(process).swap_remove(0)
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
    sleep(Duration::from_millis(50));
    let before = processor_time(process);
    sleep(Duration::from_millis(500));
    assert_eq!(processor_time(process), before);
    engine.signal(job.attempt, Signal::Resume).unwrap();
    until("more work", || processor_time(process) > before + 5);
    // One that stands still hears of its end later, and is ended by force at once.
    engine.signal(job.attempt, Signal::Suspend).unwrap();
    until("that it stands still", || state(process) == "T");
    engine.signal(job.attempt, Signal::Terminate).unwrap();
    sleep(Duration::from_millis(100));
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
    for job in 1..=10 {
        let ran = place.path(&format!("ran-{job}"));
        let launch = place.shell(job, &format!("echo > {}; sleep 600", ran.display()));
        engine.start(&launch).unwrap();
        sleep(Duration::from_millis(job - 1));
        engine.signal(launch.attempt, Signal::Suspend).unwrap();
        sleep(Duration::from_millis(100));
        let before = ran.exists();
        sleep(Duration::from_millis(100));
        assert_eq!(ran.exists(), before, "it stands still");
        engine.signal(launch.attempt, Signal::Resume).unwrap();
        until("that it runs", || ran.exists());
        engine.signal(launch.attempt, Signal::Kill).unwrap();
        assert_eq!(end(&mut engine), (launch.attempt, End::Signalled(9)));
    }
    // However early it is asked to end, once is enough here, though not of all engines.
    for job in 11..=20 {
        let launch = place.shell(job, "sleep 600");
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

#[test]
fn jobs_are_kept_to_their_processors() {
    let there = allowed(Process::of(std::process::id() as i32).unwrap().unwrap());
    if !there.starts_with("0-") {
        eprintln!("skipped: needs processors 0 and 1, has {there}");
        return;
    }
    let place = Place::new();
    let mut engine = place.engine_on(vec![vec![0], vec![1], vec![4711]]);
    assert_eq!(engine.notices().len(), 1);
    assert!(engine.notices()[0].starts_with("node 2 "), "{:?}", engine.notices());
    let (own, stray) = (place.path("own"), place.path("stray"));
    let script = format!(
        "(setsid sh -c 'echo $$ > {}; sleep 600' &); echo $$ > {}; sleep 600",
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
#[test]
fn nodes_may_change_while_a_job_is_about_to_begin() {
    let place = Place::new();
    let mut engine = place.engine_on(vec![vec![0], vec![1]]);
    if !engine.notices().is_empty() {
        eprintln!("skipped: needs processors 0 and 1");
        return;
    }
    for job in 1..=10 {
        let own = place.path(&format!("own-{job}"));
        let launch = place.shell(job, &format!("echo $$ > {}; sleep 600", own.display()));
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

/// 1 s of work, first at a tenth of the speed, then at full speed: after 1 s there are 0.9 s left.
#[test]
fn emulated_work_follows_its_speed() {
    let place = Place::new();
    let mut engine = place.engine();
    let mut job = place.command(1, &[BUSBAR, "work", "1s"]);
    job.allotment = on(&[0], 100_000);
    let began = Instant::now();
    engine.start(&job).unwrap();
    sleep(Duration::from_secs(1));
    engine.set(job.attempt, &on(&[0], 1_000_000), Span::ZERO).unwrap();
    assert_eq!(end(&mut engine).1, End::Exited(0));
    let took = began.elapsed();
    // Never less than it has to; more if the machine is busy.
    assert!(took >= Duration::from_millis(1900), "{took:?}");
    assert!(took < Duration::from_secs(6), "10 s if it had not followed: {took:?}");

    // Who stands still does no work: 0.4 s of work, and 1 s of standing still.
    let job = place.command(2, &[BUSBAR, "work", "400ms"]);
    let began = Instant::now();
    engine.start(&job).unwrap();
    until("its start", || place.attempt(&job).join("started.json").exists());
    sleep(Duration::from_millis(100));
    engine.signal(job.attempt, Signal::Suspend).unwrap();
    sleep(Duration::from_secs(1));
    assert_eq!(engine.ended(), []);
    engine.signal(job.attempt, Signal::Resume).unwrap();
    assert_eq!(end(&mut engine).1, End::Exited(0));
    assert!(began.elapsed() >= Duration::from_millis(1380), "{:?}", began.elapsed());
    assert_eq!(fs::read_to_string(place.path("err")).unwrap(), "", "nothing to complain about");
}
