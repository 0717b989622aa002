//! What is typed is what the daemon is asked.

use std::process::{Child, Stdio};
use std::sync::Mutex;

use busbar::live::job::{After, JobRequest, Scope};
use busbar::live::server::socket::Limits;
use busbar::live::wire::finished::{Finished, FinishedQuery};
use busbar::live::wire::{BudgetChange, ForecastRequest, Reply, Request, State};
use busbar::units::Span;

use super::canned::{Daemon, canned};
use super::write_script;

#[test]
fn what_is_asked_about_the_past_is_what_was_typed() {
    let daemon = Daemon::new(|request| match request {
        Request::Finished(_) => Reply::Finished(Finished::default()),
        request => canned(request),
    });
    let asked = |arguments: &str| -> FinishedQuery {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        daemon.prints(&[&["history", "jobs"], &arguments[..]].concat());
        match daemon.last() {
            Request::Finished(query) => *query,
            other => panic!("{other:?}"),
        }
    };
    // By default, those of today, of whoever asks.
    let usual = asked("");
    let since = usual.since.unwrap();
    let now = jiff::Timestamp::now().as_second();
    assert!(since % 86_400 == 0 && (now - 2 * 86_400..=now).contains(&since), "{since}");
    let expected =
        FinishedQuery { since: usual.since, limit: Some(1000), ..FinishedQuery::default() };
    assert_eq!(usual, expected);
    let query = asked(
        "-u root -A physics -s failed,timed-out --state lost -S 2026-01-02 -E 2026-01-02T03:04:05 -n 7",
    );
    let expected = FinishedQuery {
        user: Some(0),
        account: Some("physics".to_owned()),
        states: vec![State::Failed, State::TimedOut, State::Lost],
        since: Some(1_767_312_000),
        until: Some(1_767_323_045),
        limit: Some(7),
        ..FinishedQuery::default()
    };
    assert_eq!(query, expected);
    // Who names a job means it, whenever it ended.
    let expected =
        FinishedQuery { all: true, job: Some(12), limit: Some(1000), ..FinishedQuery::default() };
    assert_eq!(asked("--job 12"), expected);
    assert_eq!(
        daemon.prints(&["history", "jobs"]),
        "no finished jobs match; 'busbar queue' lists those that wait or run\n"
    );
    for (wrong, said) in [
        (&["--since", "lately"][..], "'lately' is not a time; write today"),
        (&["--state", "running"], "invalid value 'running'"),
        (&["--user", "nobody-at-all"], "there is no user 'nobody-at-all'"),
        (&["--limit", "0"], "0 is not in 1..=100000"),
    ] {
        let (code, text) = daemon.fails(&[&["history", "jobs"], wrong].concat());
        assert!(code == 2 && text.contains(said), "{code}: {text}");
    }
    // Options of the one are not taken for those of the other.
    assert_eq!(daemon.fails(&["history", "--follow", "jobs"]).0, 2);
}

#[test]
fn long_lists_of_jobs_go_in_several_requests() {
    let daemon = Daemon::new(canned);
    let numbers: Vec<String> = vec!["7".to_owned(); 2500];
    let arguments: Vec<&str> =
        std::iter::once("hold").chain(numbers.iter().map(String::as_str)).collect();
    assert_eq!(daemon.prints(&arguments).lines().count(), 2500);
    let asked = daemon.asked.lock().unwrap();
    let lengths = asked.iter().map(|request| match request {
        Request::Hold { jobs } => jobs.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(lengths.collect::<Vec<_>>(), [1000, 1000, 500]);
}

#[test]
fn what_is_typed_is_what_is_asked() {
    let daemon = Daemon::new(canned);
    assert_eq!(daemon.prints(&["submit", "--", "echo", "-N", "x y"]), "submitted job 12\n");
    let job = daemon.last_submission();
    let folder = daemon.folder.path().canonicalize().unwrap();
    assert_eq!(job.program.command, ["echo", "-N", "x y"]);
    assert_eq!(job.program.folder, folder);
    assert_eq!(job.program.output, folder.join("busbar-%j.out"));
    assert_eq!(job.program.errors, None);
    let variable = ("ONE_VARIABLE".to_owned(), "of many".to_owned());
    assert!(job.program.environment.contains(&variable));
    let plain = JobRequest {
        name: "echo".to_owned(),
        nodes: 1,
        moldable: None,
        time: Span::from_secs(3600),
        application: None,
        slowdown: None,
        after: Vec::new(),
        held: false,
        account: None,
        part: Default::default(),
    };
    assert_eq!(job.request, plain);

    let all = "submit -t 1-12:30 -J name --app CoMD --slowdown unbounded --moldable 2-8 -A physics --after 3 \
               --after-any 5 --after 4 --hold -o o -e e -D sub -- a";
    daemon.prints(&all.split_whitespace().collect::<Vec<_>>());
    let job = daemon.last_submission();
    let after = |job, any| After { job, any };
    assert_eq!(
        job.request,
        JobRequest {
            name: "name".to_owned(),
            nodes: 2,
            moldable: Some((2, 8)),
            time: Span::from_secs(131_400),
            application: Some("CoMD".to_owned()),
            slowdown: Some("unbounded".to_owned()),
            after: vec![after(3, false), after(4, false), after(5, true)],
            held: true,
            account: Some("physics".to_owned()),
            part: Default::default(),
        }
    );
    assert_eq!(job.program.folder, folder.join("sub"));
    assert_eq!(job.program.output, folder.join("sub/o"));
    assert_eq!(job.program.errors, Some(folder.join("sub/e")));

    daemon.prints(&["budget", "configured"]);
    assert_eq!(daemon.last(), Request::Budget { set: Some("configured".to_owned()) });
    daemon.prints(&["budget", "--feed", "row2", "300kW"]);
    let (of, to) = (Scope::Feed("row2".to_owned()), "300kW".to_owned());
    assert_eq!(daemon.last(), Request::Limit { of, to });
    daemon.prints(&["history", "--job", "7", "-n", "3"]);
    assert_eq!(daemon.last(), Request::History { job: Some(7), after: None, limit: Some(3) });
    let change = |after, limit: &str| BudgetChange {
        after: Span::from_secs(after),
        limit: limit.to_owned(),
    };
    daemon.prints(&["forecast", "--budget", "5kW@+1h", "--percent", "50"]);
    let mut question = ForecastRequest {
        budget: vec![change(3600, "5kW")],
        job: None,
        policy: None,
        percent: Some(50),
    };
    assert_eq!(daemon.last(), Request::Forecast(Box::new(question.clone())));
    daemon.prints(&["forecast", "--budget", "1.6kW"]);
    let now = ForecastRequest { budget: vec![change(0, "1.6kW")], ..ForecastRequest::default() };
    assert_eq!(daemon.last(), Request::Forecast(Box::new(now)));
    daemon.prints(&["forecast", "-N", "4"]);
    question.job = Some(JobRequest { name: "this job".to_owned(), nodes: 4, ..plain });
    (question.budget, question.percent) = (Vec::new(), None);
    assert_eq!(daemon.last(), Request::Forecast(Box::new(question)));
}

#[test]
fn scripts_say_what_they_need() {
    let daemon = Daemon::new(canned);
    let script = daemon.path("job.sh");
    let text = "#!/bin/sh\n#BUSBAR -N 2 -t 10m\n#BUSBAR -J 'two words' -o out-%j\necho\n";
    write_script(&script, text, 0o755);
    daemon.prints(&["submit", "-N", "3", "job.sh", "-t", "argument"]);
    let job = daemon.last_submission();
    let folder = daemon.folder.path().canonicalize().unwrap();
    let (name, nodes, time) = (job.request.name.as_str(), job.request.nodes, job.request.time);
    assert_eq!((name, nodes, time), ("two words", 3, Span::from_secs(600)));
    let path = folder.join("job.sh").to_str().unwrap().to_owned();
    assert_eq!(job.program.command, [&path, "-t", "argument"]);
    assert_eq!(job.program.output, folder.join("out-%j"));

    write_script(&script, "echo\n", 0o644);
    daemon.prints(&["submit", "job.sh"]);
    let job = daemon.last_submission();
    assert_eq!(job.program.command, ["sh", &path]);
    assert_eq!(job.request.name, "job.sh");

    write_script(&script, "#!/bin/sh\n\n#BUSBAR -N many\n", 0o755);
    let (code, said) = daemon.fails(&["submit", "job.sh"]);
    assert_eq!(code, 2);
    assert!(said.starts_with("error: job.sh, line 3: invalid value 'many'"), "{said}");
    let (code, said) = daemon.fails(&["submit", "none.sh"]);
    assert_eq!(code, 1);
    assert!(said.starts_with("error: cannot read the script none.sh; write a command"), "{said}");
    assert_eq!(daemon.fails(&["submit"]).0, 2);
}

/// More submit at once than a daemon has connections for: all of them get in, each of them once.
#[test]
fn many_submit_at_the_same_time() {
    const MANY: usize = 60;
    let next = Mutex::new(0);
    let limits = Limits { connections: 3, ..Limits::default() };
    let daemon = Daemon::with(limits, move |_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let mut next = next.lock().unwrap();
        *next += 1;
        Reply::Submitted { job: *next, remark: None }
    });
    let submit = |_| {
        let mut command = daemon.command(&["submit", "--", "true"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..MANY).map(submit).collect();
    let mut printed: Vec<String> = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        printed.push(String::from_utf8(output.stdout).unwrap());
    }
    let mut expected: Vec<String> =
        (1..=MANY).map(|job| format!("submitted job {job}\n")).collect();
    printed.sort();
    expected.sort();
    assert_eq!(printed, expected);
    assert_eq!(daemon.asked.lock().unwrap().len(), MANY);
}
