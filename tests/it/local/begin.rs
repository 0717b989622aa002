//! How jobs begin and end, and what they find.

use std::os::unix::fs::PermissionsExt;

use busbar::live::engine::EngineError;
use busbar_needs::needs;
use serde_json::Value;

use super::*;

#[test]
fn jobs_end_as_they_end() {
    let place = Place::new();
    let mut engine = place.engine();
    let one = place.shell(1, "echo $PWD $0; echo oops >&2; exit 3");
    engine.start(&one).unwrap();
    assert_eq!(end(&mut engine), (one.attempt, End::Exited(3)));
    assert_eq!(place.said().trim_end(), format!("{} sh", place.folder.path().display()));
    assert_eq!(fs::read_to_string(place.path("err")).unwrap(), "oops\n");

    engine.start(&place.shell(2, "kill -9 $$")).unwrap();
    assert_eq!(end(&mut engine).1, End::Signalled(9));

    assert!(matches!(engine.start(&one), Err(EngineError::Again { .. })), "an attempt runs once");
    let unknown = engine.signal(Attempt { job: 9, number: 1 }, Signal::Kill);
    assert!(matches!(unknown, Err(EngineError::Unknown { .. })));
    engine.forget(one.attempt);
    engine.forget(one.attempt);
    drop(engine);
    assert!(!place.attempt(&one).exists());
}

#[test]
fn what_cannot_be_run_says_why() {
    let place = Place::new();
    let mut engine = place.engine();
    let job = |number| place.shell(number, "true");
    let (no, folder) = ("/no/such/thing".to_owned(), place.folder.path().to_owned());
    let wrong = [
        (Launch { command: vec![no.clone()], ..job(1) }, "cannot run /no/such/thing: "),
        (Launch { command: Vec::new(), ..job(2) }, "there is no command"),
        (Launch { folder: no.into(), ..job(3) }, "cannot enter /no/such/thing: "),
        (Launch { output: folder.clone(), ..job(4) }, "cannot write to "),
        (Launch { errors: folder, ..job(5) }, "cannot write to "),
    ];
    for (launch, message) in wrong {
        engine.start(&launch).unwrap();
        let (_, why) = end(&mut engine);
        assert!(matches!(&why, End::Failed(why) if why.contains(message)), "{why:?}");
    }
}

/// A name without a folder is looked for in the job's own PATH, a relative one in the job's folder, and
/// what is there already stays.
#[test]
fn commands_are_found_where_the_job_is() {
    let place = Place::new();
    let mut engine = place.engine();
    let own = place.path("bin");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("hello"), "#!/bin/sh\necho hello\n").unwrap();
    fs::set_permissions(own.join("hello"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(place.path("out"), "before\n").unwrap();
    for (job, command, path) in [(1, "hello", own.to_str().unwrap()), (2, "bin/hello", "")] {
        let environment = vec![("PATH".to_owned(), path.to_owned())];
        let launch = Launch {
            environment,
            output: "out".into(),
            errors: "out".into(),
            ..place.command(job, &[command])
        };
        engine.start(&launch).unwrap();
        assert_eq!(end(&mut engine).1, End::Exited(0));
    }
    assert_eq!(place.said(), "before\nhello\nhello\n");
}

#[test]
fn jobs_are_told_what_they_have() {
    let place = Place::new();
    let mut engine = place.engine();
    let mut job = place.shell(7, "env | grep ^BUSBAR_ | sort; cat $BUSBAR_SPEED_FILE");
    job.allotment = on(&[0, 1, 5], 850_000);
    job.allotment.cap = Watts::from_milliwatts(62_500);
    // What the user says of it does not count.
    job.environment.push(("BUSBAR_JOB".to_owned(), "8".to_owned()));
    engine.start(&job).unwrap();
    assert_eq!(end(&mut engine).1, End::Exited(0));
    let file = place.path("jobs").canonicalize().unwrap().join("7.1.speed");
    let expected = format!(
        "BUSBAR_ATTEMPT=1\nBUSBAR_CAP_WATTS=62.5\nBUSBAR_CORES=1\nBUSBAR_JOB=7\nBUSBAR_NODES=3\n\
         BUSBAR_NODE_LIST=0,1,5\nBUSBAR_POWER_WATTS=300\nBUSBAR_SPEED_FILE={}\n0.850000\n",
        file.display()
    );
    assert_eq!(place.said(), expected);
    engine.forget(job.attempt);
    drop(engine);
    assert_eq!(fs::read_dir(place.path("jobs")).unwrap().count(), 0);
}

/// Nobody else can read what is to be run.
#[test]
fn what_is_to_be_run_is_private() {
    let place = Place::new();
    let mut engine = place.engine();
    let job = place.shell(1, "true");
    engine.start(&job).unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(place.attempt(&job)), 0o700);
    assert_eq!(mode(place.path("jobs")), 0o711);
    end(&mut engine);
}

/// A daemon that is root starts jobs as their owners, with their rights and no others. Only root can try
/// that.
#[needs(root)]
#[test]
fn jobs_have_the_rights_of_their_owners() {
    let place = Place::new();
    let mut engine = place.engine();
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    open(place.folder.path());
    let owner = Some((65534, 65534));
    let script = "id -u; id -g; id -G; cat $BUSBAR_SPEED_FILE";
    let job = Launch { owner, ..place.shell(1, script) };
    engine.start(&job).unwrap();
    assert_eq!(end(&mut engine).1, End::Exited(0));
    assert_eq!(place.said(), "65534\n65534\n65534\n1.000000\n");

    let secret = place.path("secret");
    fs::write(&secret, "mine\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let closed = place.path("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let theirs = |number| Launch { owner, ..place.shell(number, "echo theirs") };
    let wrong = [
        (Launch { output: secret.clone(), ..theirs(2) }, "cannot write to "),
        (Launch { errors: closed.join("new"), ..theirs(3) }, "cannot write to "),
        (Launch { folder: closed, ..theirs(4) }, "cannot enter "),
    ];
    for (launch, message) in wrong {
        engine.start(&launch).unwrap();
        let (_, why) = end(&mut engine);
        let is_said = matches!(&why, End::Failed(why) if why.contains(message) && why.contains("ermission denied"));
        assert!(is_said, "{why:?}");
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "mine\n");
}

/// Whoever is not root cannot become somebody else, and says so.
#[needs(ordinary)]
#[test]
fn nobody_becomes_somebody_else() {
    let place = Place::new();
    let mut engine = place.engine();
    engine.start(&Launch { owner: Some((1, 1)), ..place.shell(1, "true") }).unwrap();
    let (_, why) = end(&mut engine);
    assert!(matches!(&why, End::Failed(why) if why.contains("cannot run as user 1")), "{why:?}");
}

/// A hundred jobs at once: each ends once, and nothing is left of them, neither processes that nobody
/// waits for nor files.
#[test]
fn many_jobs_leave_nothing() {
    let place = Place::new();
    let mut engine = place.engine();
    for job in 1..=100 {
        engine.start(&place.shell(job, &format!("echo {job}; exit {}", job % 7))).unwrap();
    }
    let mut ended = Vec::new();
    until("all ends", || {
        ended.extend(engine.ended());
        ended.len() >= 100
    });
    ended.sort_by_key(|(attempt, _)| *attempt);
    for (job, (attempt, end)) in (1..).zip(&ended) {
        assert_eq!((attempt.job, end), (job, &End::Exited((job % 7) as i32)));
        let started = place.path("jobs").join(attempt.to_string()).join("started.json");
        let started: Value = serde_json::from_slice(&fs::read(started).unwrap()).unwrap();
        let warden = serde_json::from_value::<Process>(started["warden"].clone()).unwrap();
        assert!(!warden.is_there().unwrap(), "not even to be waited for");
        engine.forget(*attempt);
    }
    let mut said: Vec<u64> = place.said().lines().map(|line| line.parse().unwrap()).collect();
    said.sort_unstable();
    assert_eq!(said, (1..=100).collect::<Vec<_>>(), "each ran once");
    drop(engine);
    assert_eq!(fs::read_dir(place.path("jobs")).unwrap().count(), 0);
    place.assert_nobody_is_left();
}
