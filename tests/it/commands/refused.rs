//! What goes wrong: what is said of it, and with which exit code.

use std::io::{BufRead, BufReader, Write};
use std::process::Command;

use serde_json::{Value, json};

use super::canned::{Daemon, canned};

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
    assert!(answering.join().unwrap().starts_with(r#"{"protocol":"2.1","#));
    assert!(code == 2 && said.contains("this daemon speaks 1.1; use the busbar"), "{said}");

    let stream = std::os::unix::net::UnixStream::connect(daemon.path("socket")).unwrap();
    writeln!(&stream, "\"queue\"").unwrap();
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("the client is older than the daemon: use the busbar"), "{message}");
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
