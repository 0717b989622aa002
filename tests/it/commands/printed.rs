//! What people and programs get to read.

use busbar::live::wire::{HistoryLine, JobDetails, JobLine, Reply, Request};
use serde_json::{Value, json};

use super::assert_prints;
use super::canned::{Daemon, canned, history};

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
