//! The commands around the daemon, against a daemon that has its answers ready: what is asked of it, what
//! is shown to people, and what to programs.

mod canned;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use busbar::live::job::{After, Element, End, EndReason, JobRequest};
use busbar::live::server::socket::Limits;
use busbar::live::wire::finished::{Finished, FinishedQuery};
use busbar::live::wire::{
    Answer, ArrayDetails, BudgetChange, ForecastRequest, HistoryLine, JobDetails, JobLine,
    RefusalKind, Reply, Request, State,
};
use busbar::units::Span;
use serde_json::{Value, json};

use canned::{Daemon, canned, details, history, refusal};

/// Lines without the blanks at their ends, as editors like them.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).collect()
}

#[track_caller]
fn assert_prints(daemon: &Daemon, arguments: &[&str], expected: &str) {
    let printed = daemon.prints(arguments);
    assert_eq!(lines(&printed), lines(expected.trim_start_matches('\n')), "{arguments:?}");
}

#[test]
fn people_get_tables() {
    let daemon = Daemon::new(canned);
    // What would steer the terminal is not passed on.
    assert_prints(
        &daemon,
        &["queue"],
        "
  JOB  NAME       USER        STATE      TIME/LIMIT  NODES  ON       POWER  REASON
    7  solve\u{fffd}[2J  root        running  1:05/1:00:00      3  0-1,5  290.0 W  at 85 % of its speed
   12  sweep      4000000000  waiting    1-01:00:00      4                  for power
",
    );
    assert_prints(
        &daemon,
        &["queue", "-u", "4000000000"],
        "
  JOB  NAME   USER        STATE    TIME/LIMIT  NODES  ON  POWER  REASON
   12  sweep  4000000000  waiting  1-01:00:00      4             for power
",
    );
    assert_prints(&daemon, &["queue", "-u", "77"], "no jobs");
    assert_prints(
        &daemon,
        &["show", "7"],
        "
         job  7
        name  solve\u{fffd}[2J
        user  root
       state  running
   submitted  2026-01-02 03:04:05
     started  2026-01-02 03:04:06
        time  1:05 of 1:00:00
       nodes  3: 0-1,5 (requests 2; can use 1 to 4)
       power  290.0 W, at 85.0 % of its speed
      energy  1.50 kJ, predicted
 application  CoMD
    slowdown  10%
       after  3, 4 (even if it fails)
     command  sh -c 'sleep 1; true'
      folder  /home/ada
      output  /home/ada/busbar-7.out
",
    );
    assert_prints(
        &daemon,
        &["nodes"],
        "
  NODES  STATE      CAP  WHICH
      3  job 7  100.0 W  0-1,4
      2  idle            2-3
",
    );
    assert_prints(
        &daemon,
        &["budget"],
        "
       limit  1.00 kW, set by an operator
        held  290.0 W by jobs, 100.0 W by the machine itself, emulated: power is neither measured nor capped
        free  610.0 W
              [███████████████·························] 39.0 %
     to come  2026-01-02 04:04:05  800.0 W
     to come  2026-01-02 05:04:05  none
",
    );
    assert_prints(
        &daemon,
        &["history"],
        "
2026-01-02 03:04:05  the daemon started, version 0.1.0, policy easy
2026-01-02 03:04:06  the limit is 1.00 kW, of which the machine itself draws 100.0 W
2026-01-02 03:04:07  job 7 was submitted
2026-01-02 03:04:08  job 7 starts on nodes 0-1 with 200.0 W
2026-01-02 03:04:09  job 7 now runs on nodes 0-1 with 150.0 W at 71.2 % of its speed (a lower budget)
2026-01-02 03:04:10  job 7 is asked to end: time limit reached
2026-01-02 03:04:11  job 7 is over: time limit reached, ended by signal 15
2026-01-02 03:04:12  job 8 is held by root
2026-01-02 03:04:13  job 8 is released by 4000000000
2026-01-02 03:04:14  job 8 is held
2026-01-02 03:04:15  job 8 is over: cancelled by root
2026-01-02 03:04:16  job 9 is asked to end: cancelled by root
",
    );
    assert_prints(
        &daemon,
        &["forecast"],
        "
  JOB  NAME                    START                  END  NODES    POWER  REASON
    7  solve     2026-01-02 03:04:05  2026-01-02 04:04:05      2  200.0 W
   12  sweep                       -                    -      2           more power than the limit
  new  this job  2026-01-02 04:04:05  2026-01-02 04:34:05      2  200.0 W
all jobs end by 2026-01-02 04:34:05; peak power 400.0 W
assumed: jobs take all of the time they ask for
",
    );
    assert_prints(
        &daemon,
        &["status"],
        "
      daemon  version 0.1.0, process 4711 on atlas, since 2026-01-02 03:04:05
      policy  easy
      engine  local
     machine  demo, 6 nodes, 3 of them idle
        jobs  1 running, 1 waiting
        page  http://127.0.0.1:7411/
       limit  1.00 kW, set by an operator
        held  290.0 W by jobs, 100.0 W by the machine itself, emulated: power is neither measured nor capped
        free  610.0 W
              [███████████████·························] 39.0 %
     to come  2026-01-02 04:04:05  800.0 W
     to come  2026-01-02 05:04:05  none
      cycles  1234; the longest recent one took 12.3 ms
       looks  17 of the engine; the longest recent one took 234.6 ms, 8.9 ms of it in Busbar; actions 456.7 ms, 1.2 ms of it in Busbar
      notice  the disk is nearly full
",
    );
    assert_prints(&daemon, &["stop"], "the daemon has stopped; jobs continue");
}

/// The jobs that are over and what they took, as people know them from sacct and sreport.
#[test]
fn people_get_tables_of_the_past() {
    let daemon = Daemon::new(canned);
    // The daemon answers in parts, the latest first; the latest stand last.
    assert_prints(
        &daemon,
        &["history", "jobs"],
        "
  JOB  NAME       USER        ACCOUNT  STATE      EXIT               SUBMIT                START                  END  ELAPSED  NODES   ENERGY
    7  solve\u{fffd}[2J  root        physics  completed   0:0  2026-01-02 03:04:05  2026-01-02 03:04:06  2026-01-02 04:04:06  1:00:00      3  1.50 MJ
    8  -          4000000000  -        cancelled  0:15  2026-01-02 03:04:05  2026-01-02 03:04:06  2026-01-02 04:05:45     1:01      3    0.0 J
",
    );
    assert_prints(
        &daemon,
        &["history", "users"],
        "
  USER        JOBS  NODE TIME   ENERGY    SHARE
  root           3    2:00:00  3.00 kJ   75.0 %
  4000000000     1    2:00:00  1.00 kJ   25.0 %
  all            4    4:00:00  4.00 kJ  100.0 %
jobs that ended from 2026-01-01 to 2026-01-02; energy as predicted
",
    );
    assert_prints(
        &daemon,
        &["history", "accounts"],
        "
  ACCOUNT  JOBS  NODE TIME   ENERGY    SHARE
  physics     3    2:00:00  3.00 kJ   75.0 %
  -           1    2:00:00  1.00 kJ   25.0 %
  all         4    4:00:00  4.00 kJ  100.0 %
jobs that ended from 2026-01-01 to 2026-01-02; energy as predicted
",
    );
    // For programs, units stand in the names.
    let printed = daemon.prints(&["history", "jobs", "--json"]);
    let jobs: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&jobs[0]["job"], &jobs[1]["job"]), (&json!(7), &json!(8)));
    let first = &jobs[0];
    assert_eq!((&first["energy_j"], &first["elapsed_s"]), (&json!(1_500_000), &json!(3600)));
    assert_eq!((&first["user"], &first["user_name"]), (&json!(0), &json!("root")));
    assert_eq!((jobs[1].get("user_name"), jobs[1].get("name")), (None, None));
    let usage: Value =
        serde_json::from_str(&daemon.prints(&["history", "users", "--json"])).unwrap();
    assert_eq!(usage["sums"][0]["node_s"], json!(7200));
    assert_eq!(usage["last_day"], "2026-01-02");
}

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

/// Whatever is shown in tables is given to programs as the daemon said it.
#[test]
fn programs_get_what_the_daemon_said() {
    let daemon = Daemon::new(canned);
    let commands: &[&[&str]] = &[
        &["queue"],
        &["show", "7"],
        &["cancel", "7"],
        &["hold", "7"],
        &["release", "7"],
        &["nodes"],
        &["budget"],
        &["history"],
        &["forecast"],
        &["status"],
        &["submit", "--", "true"],
        &["stop"],
    ];
    for command in commands {
        let printed = daemon.prints(&[&command[..1], &["--json"], &command[1..]].concat());
        let printed: Value = serde_json::from_str(&printed).unwrap();
        let said = serde_json::to_value(canned(&daemon.last())).unwrap();
        // An answer is named by its kind, but for one that has nothing to say.
        let content = match &said {
            Value::Object(kinds) => kinds.values().next().unwrap().clone(),
            plain => plain.clone(),
        };
        assert_eq!(printed, content, "{command:?}");
    }
}

/// Every number is a count, or its key says what it is: watts, seconds or joules.
#[test]
fn quantities_say_their_units() {
    /// Keys of numbers that have no unit: names of things, counts, and a share of the full speed.
    const PLAIN: &[&str] = &[
        "after",
        "attempt",
        "attempts",
        "by",
        "cores",
        "cycles",
        "group",
        "job",
        "line",
        "looks",
        "moldable",
        "node",
        "nodes",
        "on",
        "process",
        "running",
        "signalled",
        "speed",
        "switched",
        "unconfirmed",
        "user",
        "waiting",
    ];
    fn look(key: &str, value: &Value) {
        let has_unit = ["_w", "_s", "_j"].iter().any(|unit| key.ends_with(unit));
        match value {
            Value::Number(_) => assert!(has_unit || PLAIN.contains(&key), "{key}: {value}"),
            Value::Array(parts) => parts.iter().for_each(|part| look(key, part)),
            Value::Object(fields) => fields.iter().for_each(|(key, value)| look(key, value)),
            _ => (),
        }
    }
    let daemon = Daemon::new(canned);
    for command in ["queue", "nodes", "budget", "history", "forecast", "status"] {
        look(command, &serde_json::from_str(&daemon.prints(&[command, "--json"])).unwrap());
    }
    let shown: Value = serde_json::from_str(&daemon.prints(&["show", "7", "--json"])).unwrap();
    look("show", &shown);
    assert_eq!((&shown["energy_j"], &shown["wish"]["time_s"]), (&1500.into(), &3600.into()));
    let history: Value = serde_json::from_str(&daemon.prints(&["history", "--json"])).unwrap();
    assert_eq!(history[1]["what"]["limit"], serde_json::json!({"power_w": 1000, "base_w": 100}));
    assert_eq!(history[4]["what"]["changed"]["allotment"]["speed"], 0.712);
    let status: Value = serde_json::from_str(&daemon.prints(&["status", "--json"])).unwrap();
    assert_eq!(status["longest_cycle_s"], 0.012345);
}

/// A daemon of version 1 does not understand this program, and this one does not understand programs of version 1.
/// Both hear what to do.
#[test]
fn another_version_of_the_protocol_is_named() {
    let daemon = Daemon::new(canned);
    // What that daemon answered to a request of another major version.
    let old = r#"{"error":{"kind":"malformed","message":"the request is of protocol 2.0, and this daemon speaks 1.1; use the busbar that is installed with the daemon"}}"#;
    let listener = std::os::unix::net::UnixListener::bind(daemon.path("old")).unwrap();
    let answering = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut asked = String::new();
        BufReader::new(&stream).read_line(&mut asked).unwrap();
        writeln!(&stream, "{old}").unwrap();
        asked
    });
    let (code, said) = daemon.fails(&["queue", "--socket", "old"]);
    assert!(answering.join().unwrap().starts_with(r#"{"protocol":"2.0","#));
    assert!(code == 2 && said.contains("this daemon speaks 1.1; use the busbar"), "{said}");

    let stream = std::os::unix::net::UnixStream::connect(daemon.path("socket")).unwrap();
    writeln!(&stream, "\"queue\"").unwrap();
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("the client is older than the daemon: use the busbar"), "{message}");
}

/// What is not told of somebody else's job is a dash for people, and left out for programs.
#[test]
fn what_is_hidden_is_a_dash() {
    let hidden = |line: &JobLine| JobLine { name: None, ..line.clone() };
    let daemon = Daemon::new(move |request| match canned(request) {
        Reply::Queue(lines) => Reply::Queue(lines.iter().map(hidden).collect()),
        Reply::Show(details) => {
            let line = hidden(&details.line);
            Reply::Show(Box::new(JobDetails { line, private: None, ..*details }))
        }
        Reply::Forecast(mut forecast) => {
            forecast.jobs.iter_mut().for_each(|line| line.name = None);
            Reply::Forecast(forecast)
        }
        reply => reply,
    });
    assert_prints(
        &daemon,
        &["queue", "-u", "4000000000"],
        "
  JOB  NAME  USER        STATE    TIME/LIMIT  NODES  ON  POWER  REASON
   12  -     4000000000  waiting  1-01:00:00      4             for power
",
    );
    assert_prints(
        &daemon,
        &["show", "7"],
        "
         job  7
        name  -
        user  root
       state  running
   submitted  2026-01-02 03:04:05
     started  2026-01-02 03:04:06
        time  1:05 of 1:00:00
       nodes  3: 0-1,5
       power  290.0 W, at 85.0 % of its speed
      energy  1.50 kJ, predicted
     command  -
      folder  -
      output  -
",
    );
    assert!(daemon.prints(&["forecast"]).contains("\n    7  -    "));
    let shown: Value = serde_json::from_str(&daemon.prints(&["show", "7", "--json"])).unwrap();
    for key in ["name", "wish", "command", "folder", "output", "errors"] {
        assert_eq!(shown.get(key), None, "{key}");
    }
    assert_eq!((&shown["job"], &shown["user"]), (&Value::from(7), &Value::from(0)));
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
fn refusals_and_absent_daemons_have_exit_codes() {
    let daemon = Daemon::new(canned);
    assert_eq!(daemon.fails(&["show", "8"]), (2, "error: there is no job 8\n".to_owned()));
    let output = daemon.run(&["cancel", "7", "9"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "cancelled job 7\n");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(errors, "error: job 9: it belongs to another user\n");
    let (code, said) = daemon.fails(&["queue", "--socket", "nowhere"]);
    assert_eq!(code, 1);
    let expected = "error: no daemon listens on nowhere; start one with: busbar serve --background";
    assert!(said.starts_with(expected), "{said}");
    // A daemon that goes away without an answer; the exit code is not that of a closed pipe.
    let socket = daemon.path("silent");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let silent = std::thread::spawn(move || drop(listener.accept()));
    let (code, said) = daemon.fails(&["queue", "--socket", "silent"]);
    silent.join().unwrap();
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("did not answer") && said.contains("closed the connection"), "{said}");
    for wrong in [&["budget", "lots"][..], &["budget", "-5W"], &["forecast", "--budget", "5kW@1h"]]
    {
        assert_eq!(daemon.fails(wrong).0, 2, "{wrong:?}");
    }
    assert!(daemon.fails(&["queue", "-u", "nobody-at-all"]).1.contains("no user"));
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
        }
    );
    assert_eq!(job.program.folder, folder.join("sub"));
    assert_eq!(job.program.output, folder.join("sub/o"));
    assert_eq!(job.program.errors, Some(folder.join("sub/e")));

    daemon.prints(&["budget", "configured"]);
    assert_eq!(daemon.last(), Request::Budget { set: Some("configured".to_owned()) });
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

fn write_script(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
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

#[test]
fn an_environment_that_is_too_large_is_refused_before_it_is_sent() {
    let daemon = Daemon::new(canned);
    let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
    // The kernel allows a single variable 128 KiB.
    for number in 0..9 {
        command.env(format!("LARGE_{number}"), "x".repeat(120 << 10));
    }
    let output =
        command.args(["submit", "--", "true"]).env("BUSBAR_SOCKET", daemon.path("socket")).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("because of its environment") && said.contains("env -i"), "{said}");
    assert!(daemon.asked.lock().unwrap().is_empty());
}

#[test]
fn waiting_ends_as_the_job_does() {
    let ends = [
        (State::Completed, Some(End::Exited(0)), None, 0, "job 12 completed"),
        (State::Failed, Some(End::Exited(3)), None, 3, "job 12 failed: exit code 3"),
        (
            State::TimedOut,
            Some(End::Signalled(15)),
            Some(EndReason::TimeLimit),
            143,
            "job 12 timed out: time limit reached, ended by signal 15",
        ),
        (
            State::TimedOut,
            Some(End::Exited(0)),
            Some(EndReason::TimeLimit),
            1,
            "job 12 timed out: time limit reached",
        ),
        (State::Cancelled, None, Some(EndReason::Cancelled), 1, "job 12 cancelled: by root"),
        (
            State::Failed,
            Some(End::Failed("no such file".to_owned())),
            None,
            127,
            "job 12 failed: could not be run: no such file",
        ),
        (State::Lost, Some(End::Lost), None, 1, "job 12 lost: its exit code is unknown"),
    ];
    for (state, end, why, code, said) in ends {
        let looks = Mutex::new(0);
        let daemon = Daemon::new(move |request| match request {
            Request::Show { job: 12 } => {
                let mut looks = looks.lock().unwrap();
                *looks += 1;
                let mut details = match *looks {
                    // It waits and runs first, and then the daemon is about to be started again.
                    1 => details(State::Waiting, None, None),
                    2 => details(State::Running, None, None),
                    3 => return Reply::Error(refusal(RefusalKind::Stopping, "later")),
                    _ => details(state, end.clone(), why),
                };
                details.line.job = 12;
                Reply::Show(Box::new(details))
            }
            other => canned(other),
        });
        let output = daemon.run(&["submit", "--wait", "--", "true"]);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(printed, format!("submitted job 12\n{said}\n"));
        assert_eq!(output.status.code(), Some(code), "{said}");
    }
}

/// What comes is shown as it comes, each line once, whatever becomes of the daemon meanwhile: it says that
/// it stops, goes away without a word, and is back.
#[test]
fn history_can_be_followed_through_a_restart() {
    let looks = Mutex::new(0);
    let daemon = Daemon::new(move |request| match request {
        Request::History { after: None, .. } => Reply::History(history()[..2].to_vec()),
        Request::History { after: Some(1), .. } => {
            let mut looks = looks.lock().unwrap();
            *looks += 1;
            match *looks {
                1..=2 => Reply::Error(refusal(RefusalKind::Stopping, "about to stop")),
                _ => Reply::History(history()[2..].to_vec()),
            }
        }
        Request::History { after: Some(11), .. } => {
            Reply::Error(refusal(RefusalKind::Unwritten, "enough"))
        }
        other => panic!("{other:?}"),
    });
    let output = daemon.run(&["history", "--follow", "--json", "-n", "2"]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<HistoryLine> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, history());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said[0], "warning: about to stop; waiting for the daemon");
    assert_eq!(said[1], "warning: the daemon is back");
    // What is no restart ends it.
    assert_eq!((said.len(), output.status.code()), (3, Some(2)), "{said:?}");
}

/// Two daemons one after the other on one socket, with nobody there in between.
#[test]
fn the_queue_can_be_watched_through_a_restart() {
    let first = Daemon::new(canned);
    let mut command = first.command(&["queue", "--watch", "1", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap());
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut table = || {
        let mut text = String::new();
        while !text.ends_with("\n]\n") && !text.ends_with("[]\n") {
            assert_ne!(printed.read_line(&mut text).unwrap(), 0, "it ended: {text}");
        }
        serde_json::from_str::<Value>(&text).unwrap()
    };
    assert_eq!(table().as_array().unwrap().len(), 2);
    let folder = first.stop();
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(
        line.starts_with("warning: ") && line.ends_with("; waiting for the daemon\n"),
        "{line}"
    );
    let _second = Daemon::at(folder, Limits::default(), |_| Reply::Queue(Vec::new()));
    // What was asked before it went away may still be shown.
    while !table().as_array().unwrap().is_empty() {}
    line.clear();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "warning: the daemon is back\n");
    child.kill().unwrap();
    child.wait().unwrap();
    // Nobody waits for a daemon that was never there.
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("none");
    let output = Command::new(env!("CARGO_BIN_EXE_busbar"))
        .args(["queue", "--watch", "--socket"])
        .arg(socket)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
}

/// A daemon tells only so many lines at once; whoever asked for more is told that, and how to get the rest.
#[test]
fn a_history_that_is_cut_says_so() {
    let daemon = Daemon::new(|request| {
        let Request::History { after, limit, .. } = request else { panic!("{request:?}") };
        let most = limit.unwrap().min(3) as usize;
        let all: Vec<HistoryLine> =
            history().into_iter().map(|line| HistoryLine { line: line.line + 1, ..line }).collect();
        Reply::History(match after {
            Some(after) => all.into_iter().filter(|line| line.line > *after).take(most).collect(),
            None => all[all.len() - most..].to_vec(),
        })
    });
    let run = |arguments: &[&str]| {
        let output = daemon.run(&[&["history"], arguments].concat());
        assert!(output.status.success());
        let (printed, said) = (output.stdout, output.stderr);
        let count = String::from_utf8(printed).unwrap().lines().count();
        (count, String::from_utf8(said).unwrap())
    };
    let (count, said) = run(&["-n", "20000"]);
    assert_eq!(count, 3);
    assert_eq!(
        said,
        "warning: only the last 3 lines are shown, from line 10 on; 'busbar history --after 0 -n 3' shows earlier \
        ones\n"
    );
    assert_eq!(run(&["-n", "3"]), (3, String::new()));
    assert_eq!(run(&["--after", "0", "-n", "3"]), (3, String::new()));
    let more = "warning: there are more lines; --after 3 shows them\n".to_owned();
    assert_eq!(run(&["--after", "0", "-n", "4"]), (3, more));
    assert_eq!(run(&["--after", "10", "-n", "10"]), (2, String::new()));
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

/// Whoever asks for JSON gets errors as JSON, too: one line on standard error, and nothing else.
#[test]
fn programs_get_errors_as_json() {
    let daemon = Daemon::new(canned);
    let fails = |arguments: &[&str]| {
        let output = daemon.run(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        let said: Value = serde_json::from_str(&said).unwrap();
        let error = said["error"].clone();
        assert_eq!(error["exit_code"].as_i64(), output.status.code().map(i64::from), "{error}");
        (String::from_utf8(output.stdout).unwrap(), error)
    };
    let (printed, error) = fails(&["show", "8", "--json"]);
    assert_eq!(printed, "");
    let expected = json!({
        "message": "there is no job 8", "causes": [], "kind": "unknown", "exit_code": 2
    });
    assert_eq!(error, expected);
    let (printed, error) = fails(&["queue", "--json", "--socket", "nowhere"]);
    assert_eq!((printed.as_str(), error["exit_code"].as_i64()), ("", Some(1)));
    assert!(error["message"].as_str().unwrap().starts_with("no daemon listens on nowhere"));
    assert_eq!(error["causes"].as_array().unwrap().len(), 1, "{error}");
    // What was typed wrongly, to any command.
    for wrong in [
        &["queue", "--json", "--wach"][..],
        &["simulate", "--json", "--budget"],
        &["simulate", "--budget", "lots", "--json"],
        &["compare", "--json", "--policy", "eazy"],
        &["simulate", "--json", "--workload", "none.swf"],
        &["config", "check", "none.toml", "--json"],
        &["tune", "--json", "--machine", "none.csv"],
    ] {
        let (printed, error) = fails(wrong);
        assert_eq!(printed, "", "{wrong:?}");
        let message = error["message"].as_str().unwrap();
        assert!(!message.is_empty() && !message.contains("Usage:"), "{message}");
        assert!(!message.starts_with("error"), "{message}");
    }
    // What was done is on standard output, and what was not is an error.
    let (printed, error) = fails(&["cancel", "--json", "7", "9"]);
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap().as_array().unwrap().len(), 2);
    assert_eq!(error["message"], "1 of 2 jobs could not be cancelled");
    assert_eq!(error["causes"], json!(["job 9: it belongs to another user"]));
    // What is for the job is not for busbar; and help is no error.
    let output = daemon.run(&["submit", "none.sh", "--json"]);
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: cannot read the script"));
    assert!(daemon.prints(&["queue", "--json", "--help"]).starts_with("List the jobs"));
}

/// An array of three, of which the first has run, and a job besides.
fn with_array(request: &Request) -> Reply {
    let element =
        |index| Element { array: 12, index, count: 4, least: 1, most: 9, at_once: Some(1) };
    let line = |job, index, state, reason: Option<&str>| JobLine {
        job,
        state,
        reason: reason.map(str::to_owned),
        array: Some(element(index)),
        on: Vec::new(),
        power: None,
        speed: None,
        ran: None,
        name: Some("sweep".to_owned()),
        ..details(State::Waiting, None, None).line
    };
    let wait = Some("at most 1 of its array at once");
    let elements = vec![
        line(13, 1, State::Completed, None),
        line(14, 3, State::Waiting, Some("for power")),
        line(15, 4, State::Blocked, wait),
        line(16, 9, State::Blocked, wait),
    ];
    match request {
        Request::Show { job: 12 } => Reply::Array(ArrayDetails { array: 12, elements }),
        Request::Show { job: 14 } => {
            let mut details = details(State::Waiting, None, None);
            details.line = elements[1].clone();
            Reply::Show(Box::new(details))
        }
        Request::Queue => Reply::Queue(elements[1..].to_vec()),
        Request::Cancel { jobs } => Reply::Done(
            jobs.iter().map(|job| Answer { job: *job, refusal: None, asked: false }).collect(),
        ),
        other => canned(other),
    }
}

#[test]
fn arrays_are_submitted_and_named() {
    let daemon = Daemon::new(with_array);
    let printed = daemon.prints(&["submit", "--array", "1-9:4,2%2", "--", "true"]);
    assert_eq!(printed, "submitted array 12 of 4 jobs\n");
    let job = daemon.last_submission();
    assert_eq!(job.array.map(String::from), Some("1-9:4,2%2".to_owned()));
    let folder = daemon.folder.path().canonicalize().unwrap();
    assert_eq!(job.program.output, folder.join("busbar-%A_%a.out"));
    // A script may say so, too, and what is typed wins.
    write_script(&daemon.path("job.sh"), "#!/bin/sh\n#BUSBAR --array 1-3\ntrue\n", 0o755);
    daemon.prints(&["submit", "job.sh"]);
    assert_eq!(daemon.last_submission().array.map(String::from), Some("1-3".to_owned()));
    daemon.prints(&["submit", "--array", "7", "job.sh"]);
    assert_eq!(daemon.last_submission().array.map(String::from), Some("7".to_owned()));
    let (code, said) = daemon.fails(&["submit", "--array", "9-1", "--", "true"]);
    assert!(code == 2 && said.contains("'9-1' goes down"), "{said}");
    let (code, said) = daemon.fails(&["submit", "--array", "1-3", "-o", "out", "--", "true"]);
    assert_eq!(
        (code, said.lines().next()),
        (
            0,
            Some(
                "warning: all elements of the array write to the same file; %a in its name is the index"
            )
        )
    );
    // Elements are found by their array.
    daemon.prints(&["submit", "--after", "12_9", "--after-any", "12", "--", "true"]);
    let after = |job, any| After { job, any };
    assert_eq!(daemon.last_submission().request.after, [after(16, false), after(12, true)]);
    assert_eq!(daemon.prints(&["cancel", "12_3", "12"]), "cancelled job 12_3\ncancelled job 12\n");
    assert_eq!(daemon.last(), Request::Cancel { jobs: vec![14, 12] });
    daemon.prints(&["history", "--job", "12_4", "-n", "12"]);
    assert_eq!(daemon.last(), Request::History { job: Some(15), after: None, limit: Some(12) });
    assert_eq!(
        daemon.fails(&["cancel", "12_2"]),
        (2, "error: array 12 has no element 2\n".to_owned())
    );
    let (_, said) = daemon.fails(&["show", "7_1"]);
    assert_eq!(said, "error: job 7 is not an array, and has no element 1\n");
    assert_prints(
        &daemon,
        &["queue"],
        "
       JOB  NAME   USER  STATE    TIME/LIMIT  NODES  ON  POWER  REASON
      12_3  sweep  root  waiting     1:00:00      3             for power
  12_[4,9]  sweep  root  blocked     1:00:00      3             at most 1 of its array at once
",
    );
    let shown = daemon.prints(&["show", "12"]);
    assert!(shown.starts_with("array 12: 1 completed, 1 waiting, 2 blocked\n"), "{shown}");
    assert!(daemon.prints(&["show", "12_3"]).starts_with("         job  14, which is 12_3\n"));
}

/// Waiting for an array is waiting for all of it.
#[test]
fn waiting_for_an_array_ends_when_all_are_over() {
    for (last, code) in [(State::Completed, 0), (State::Failed, 1)] {
        let looks = Mutex::new(0);
        let daemon = Daemon::new(move |request| match with_array(request) {
            Reply::Array(mut array) => {
                let mut looks = looks.lock().unwrap();
                *looks += 1;
                if *looks > 2 {
                    array.elements.iter_mut().for_each(|line| line.state = State::Completed);
                    array.elements[3].state = last;
                }
                Reply::Array(array)
            }
            other => other,
        });
        let output = daemon.run(&["submit", "--wait", "--array", "1,3,4,9", "--", "true"]);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let states = if code == 0 { "4 completed" } else { "3 completed, 1 failed" };
        assert_eq!(printed, format!("submitted array 12 of 4 jobs\narray 12: {states}\n"));
        assert_eq!(output.status.code(), Some(code));
    }
}
