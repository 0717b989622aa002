//! Daemons and wardens that die without a word.

use std::process::Command;
use std::time::SystemTime;

use super::*;

/// A daemon that is gone without a word, and another that comes: one job runs on, one has ended
/// meanwhile.
#[test]
fn jobs_are_found_again() {
    let place = Place::new();
    let mut before = place.engine_on(vec![vec![0]]);
    let (gate, speed) = (place.path("gate"), place.path("speed"));
    let waits = format!(
        "while [ ! -e {} ]; do sleep 0.01; done; cp $BUSBAR_SPEED_FILE {}; exit 7",
        gate.display(),
        speed.display()
    );
    let (runs, ended) = (place.shell(1, &waits), place.shell(2, "exit 4"));
    before.start(&runs).unwrap();
    before.start(&ended).unwrap();
    until("a start", || place.attempt(&runs).join("started.json").exists());
    until("an end", || place.attempt(&ended).join("ended.json").exists());
    std::mem::forget(before);

    let mut after = place.engine_on(vec![vec![0]]);
    assert_eq!(after.find(runs.attempt).unwrap(), Found::Running);
    assert_eq!(after.find(runs.attempt).unwrap(), Found::Running, "and again");
    assert!(matches!(after.find(ended.attempt).unwrap(), Found::Ended { end: End::Exited(4), .. }));
    // It ended when its warden said so, not when somebody asks.
    let file =
        fs::File::options().write(true).open(place.attempt(&ended).join("ended.json")).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
    let found = after.find(ended.attempt).unwrap();
    assert!(matches!(found, Found::Ended { ago, .. } if ago >= Span::from_secs(3600)), "{found:?}");
    file.set_modified(SystemTime::now() + Duration::from_secs(3600)).unwrap();
    let found = after.find(ended.attempt).unwrap();
    assert!(
        matches!(found, Found::Ended { ago: Span::ZERO, .. }),
        "a clock that was set: {found:?}"
    );
    let unknown = Attempt { job: 77, number: 1 };
    assert_eq!(after.find(unknown).unwrap(), Found::NeverStarted);
    // It can be steered as before.
    after.signal(runs.attempt, Signal::Suspend).unwrap();
    meet_everybody(&mut after);
    place.until_all_stand_still();
    fs::write(&gate, "").unwrap();
    while_others_work();
    assert_eq!(after.ended(), []);
    after.set(runs.attempt, &on(&[0], 250_000), Span::ZERO).unwrap();
    after.signal(runs.attempt, Signal::Resume).unwrap();
    assert_eq!(end(&mut after), (runs.attempt, End::Exited(7)));
    assert_eq!(fs::read_to_string(speed).unwrap(), "0.250000\n");
    after.forget(runs.attempt);
    drop(after);
    assert!(!place.attempt(&runs).exists());
}

/// What a daemon had no time to forget is forgotten by the next.
#[test]
fn what_is_left_over_is_forgotten() {
    let place = Place::new();
    let mut before = place.engine();
    let jobs = [1, 2, 3].map(|job| place.shell(job, "true"));
    for job in &jobs {
        before.start(job).unwrap();
        assert_eq!(end(&mut before).1, End::Exited(0));
    }
    let waits = place.shell(4, "sleep infinity");
    before.start(&waits).unwrap();
    until("a start", || place.attempt(&waits).join("started.json").exists());
    // Speeds that a daemon was writing when it was killed, with the rest of the attempt and alone.
    for name in ["not an attempt", "1.1.speed.unfinished", "9.1.speed.unfinished"] {
        fs::write(place.path("jobs").join(name), "").unwrap();
    }
    std::mem::forget(before);

    let mut after = place.engine();
    assert_eq!(after.find(waits.attempt).unwrap(), Found::Running);
    after.forget_others(&[jobs[1].attempt].into()).unwrap();
    after.signal(waits.attempt, Signal::Kill).unwrap();
    assert_eq!(end(&mut after), (waits.attempt, End::Signalled(9)));
    assert!(matches!(
        after.find(jobs[1].attempt).unwrap(),
        Found::Ended { end: End::Exited(0), .. }
    ));
    drop(after);
    let names = fs::read_dir(place.path("jobs")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["2.1", "2.1.speed", "4.1", "4.1.speed", "not an attempt"]);
}

/// The folder of an attempt as a daemon leaves it that dies after each of its steps; then what another
/// finds, and what becomes of a warden that comes late.
#[test]
fn an_attempt_runs_at_most_once() {
    let place = Place::new();
    let mut engine = place.engine();
    let launch = |job| place.shell(job, &format!("echo {job} >> {}", place.path("ran").display()));
    let put = |job, files: &[&str]| {
        let launch = launch(job);
        fs::create_dir(place.attempt(&launch)).unwrap();
        for file in files {
            let content = match *file {
                "ticket" | "claimed" | "revoked" => serde_json::to_vec(&launch).unwrap(),
                "cpus.json" => b"[]".to_vec(),
                "ended.json" => br#"{"exited":5}"#.to_vec(),
                _ => Vec::new(),
            };
            fs::write(place.attempt(&launch).join(file), content).unwrap();
        }
        launch
    };
    let never: Vec<Launch> = vec![
        put(1, &[]),
        put(2, &["cpus.json"]),
        put(3, &["cpus.json", "ticket.unfinished"]),
        put(4, &["cpus.json", "ticket"]),
        put(5, &["ticket"]),
        put(6, &["cpus.json", "revoked"]),
    ];
    for launch in &never {
        for _ in 0..2 {
            let found = engine.find(launch.attempt).unwrap();
            assert_eq!(found, Found::NeverStarted, "{}", launch.attempt);
        }
    }
    let claimed = ["cpus.json", "claimed"];
    let lost = put(7, &claimed);
    let half = put(8, &[&claimed[..], &["ended.json.unfinished"]].concat());
    let ended = put(9, &[&claimed[..], &["ended.json"]].concat());
    // Somebody may still be left of these; when nobody is, they are lost.
    for launch in [&lost, &half] {
        assert_eq!(engine.find(launch.attempt).unwrap(), Found::Running);
        assert_eq!(end(&mut engine), (launch.attempt, End::Lost));
    }
    assert!(matches!(
        engine.find(ended.attempt).unwrap(),
        Found::Ended { end: End::Exited(5), .. }
    ));

    // Wardens that come too late find that they have nothing to do.
    for launch in never.iter().chain([&lost, &half, &ended]) {
        let late = Command::new(BUSBAR).arg("warden").arg(place.attempt(launch)).status();
        assert!(late.unwrap().success());
    }
    assert!(!place.path("ran").exists(), "nobody must have run");

    // A warden that comes in time runs it once; a second one does nothing, then or later.
    let once = put(10, &["cpus.json", "ticket"]);
    let warden = || Command::new(BUSBAR).arg("warden").arg(place.attempt(&once)).spawn().unwrap();
    let mut wardens = [warden(), warden(), warden()];
    for warden in &mut wardens {
        assert!(warden.wait().unwrap().success());
    }
    assert!(warden().wait().unwrap().success());
    assert!(matches!(engine.find(once.attempt).unwrap(), Found::Ended { end: End::Exited(0), .. }));
    assert_eq!(fs::read_to_string(place.path("ran")).unwrap(), "10\n");
}

/// An end that was half written when the machine went down is as good as none.
#[test]
fn a_garbled_end_is_no_end() {
    let place = Place::new();
    let mut engine = place.engine();
    let job = place.shell(1, "exit 0");
    engine.start(&job).unwrap();
    assert_eq!(end(&mut engine).1, End::Exited(0));
    fs::write(place.attempt(&job).join("ended.json"), "{\"exi").unwrap();
    assert_eq!(engine.find(job.attempt).unwrap(), Found::Running);
    assert_eq!(end(&mut engine).1, End::Lost);
}

/// If its warden is killed, a job is lost, and what is left of it is ended: the command, what has left
/// the session, and what has forgotten its environment.
#[test]
fn a_job_without_its_warden_is_lost() {
    for is_found_again in [false, true] {
        let place = Place::new();
        let mut engine = place.engine();
        let files = ["own", "stray", "child", "parent"].map(|name| place.path(name));
        let [own, stray, child, parent] = &files;
        let script = format!(
            "(setsid sh -c 'echo $$ > {}; sleep infinity' &)
             env -i sh -c 'echo $$ > {}; sleep infinity' &
             echo $PPID > {}; echo $$ > {}; sleep infinity",
            stray.display(),
            child.display(),
            parent.display(),
            own.display()
        );
        let job = place.shell(1, &script);
        engine.start(&job).unwrap();
        let left = [own, stray, child].map(|file| process(file));
        let warden = process(parent);
        if is_found_again {
            std::mem::forget(engine);
            engine = place.engine();
            assert_eq!(engine.find(job.attempt).unwrap(), Found::Running);
        }
        kill(warden.number);
        assert_eq!(end(&mut engine), (job.attempt, End::Lost));
        for process in left {
            assert!(!process.is_there().unwrap() || is_zombie(process), "{process:?}");
        }
        place.assert_nobody_is_left();
    }
}

/// A warden that is killed at any moment after it was started: the job is ended, lost or never began, and
/// nobody is left.
#[test]
fn a_warden_may_die_at_any_moment() {
    let place = Place::new();
    let mut engine = place.engine();
    for job in 1..=20 {
        let launch = place.shell(job, "sleep infinity");
        let before = children();
        engine.start(&launch).unwrap();
        let mark = format!("BUSBAR_SPEED_FILE={}.speed", place.attempt(&launch).display());
        let warden =
            children().into_iter().find(|child| !before.contains(child) && is_of(*child, &mark));
        let warden = warden.and_then(|number| Process::of(number).unwrap());
        sleep(Duration::from_micros(500 * job));
        let mut ended = Vec::new();
        until("an end", || {
            match warden {
                Some(warden) => warden.signal(Signal::Kill).unwrap(),
                // It was not yet to be recognised.
                None => engine.signal(launch.attempt, Signal::Kill).unwrap(),
            }
            ended.extend(engine.ended().into_iter().map(|(_, end)| Some(end)));
            // One that was killed before it could begin has begun nothing.
            ended.extend(engine.not_begun().into_iter().map(|_| None));
            !ended.is_empty()
        });
        let is_possible = matches!(ended[..], [None | Some(End::Lost | End::Signalled(9))]);
        assert!(is_possible, "{ended:?}");
    }
    place.assert_nobody_is_left();
}

/// The children of this process.
fn children() -> Vec<i32> {
    let own = std::process::id().to_string();
    let numbers = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let number: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(')')?;
        (rest.split_ascii_whitespace().nth(1)? == own).then_some(number)
    });
    numbers.collect()
}

fn is_of(number: i32, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
}
