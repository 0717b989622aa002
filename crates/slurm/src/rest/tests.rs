use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use super::*;
use crate::program::Programs;

/// A slurmrestd that knows one data parser and answers by path, and what it was asked.
fn server(
    parser: u16,
    answers: &'static [(&'static str, u16, &'static str)],
) -> (Address, Arc<Mutex<Vec<String>>>) {
    use std::io::{Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap().to_string());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).unwrap();
            let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
            told.lock().unwrap().push(text.clone());
            let first = text.lines().next().unwrap().to_owned();
            let place = format!("/slurm/v0.0.{parser}/");
            let found =
                answers.iter().find(|(path, _, _)| first.contains(&format!("{place}{path} ")));
            let (status, body) =
                found.map_or((404, "not found"), |(_, status, body)| (*status, *body));
            write!(stream, "HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                .unwrap();
        }
    });
    (address, heard)
}

const PING: &str = r#"{"meta": {"slurm": {"release": "26.05.3"}}, "errors": []}"#;

/// A cluster with a token in a file of a folder.
fn rest(folder: &tempfile::TempDir, address: Address) -> Rest {
    let file = folder.path().join("token");
    std::fs::write(&file, "SLURM_JWT=abc\n").unwrap();
    let commands = Commands::new(Programs::default());
    Rest::new(address, Some(Credentials::new("root", Some(file))), commands)
}

#[test]
fn the_newest_parser_that_both_know_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let (address, heard) = server(43, &[("ping", 200, PING)]);
    let rest = rest(&folder, address);
    assert_eq!(
        (rest.parser().unwrap(), rest.version().unwrap().to_string().as_str()),
        (43, "26.05.3")
    );
    let asked = heard.lock().unwrap();
    assert!(asked[0].starts_with("GET /slurm/v0.0.45/ping HTTP/1.1\r\n"));
    assert!(asked[0].contains("X-SLURM-USER-NAME: root\r\nX-SLURM-USER-TOKEN: abc\r\n"));
    let (address, _) = server(9, &[("ping", 200, PING)]);
    let error = super::tests::rest(&folder, address).version().unwrap_err().to_string();
    assert!(error.contains("none of the data parsers v0.0.38 to v0.0.45"), "{error}");
}

#[test]
fn refusals_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    const DENIED: &str = r#"{"errors": [{"error": "Invalid user id", "error_number": 2010}]}"#;
    const JOB: &str = r#"{"errors": [], "jobs": [{"job_id": 7, "job_state": ["PENDING"], "comment": "old",
        "priority": {"set": true, "number": 5}}]}"#;
    let (address, heard) = server(
        45,
        &[("ping", 200, PING), ("job/1", 422, DENIED), ("job/7", 200, JOB), ("nodes", 401, "")],
    );
    let rest = rest(&folder, address);
    let update =
        JobUpdate { comment: Some("new".to_owned()), nodes: Some((2, 2)), ..JobUpdate::default() };
    let error = rest.update(JobRef::whole(1), &update).unwrap_err();
    assert!(matches!(error, SlurmError::Denied { .. }), "{error}");
    // It reports success, and did nothing.
    let error = rest.update(JobRef::whole(7), &update).unwrap_err();
    assert!(matches!(error, SlurmError::NotDone { .. }), "{error}");
    assert!(matches!(rest.jobs(), Err(SlurmError::NotFound { .. })));
    assert!(matches!(rest.nodes(), Err(SlurmError::Denied { .. })));
    let asked = heard.lock().unwrap();
    assert!(
        asked.iter().any(|text| text.ends_with(r#"{"comment":"new","nodes":"2-2"}"#)),
        "{asked:?}"
    );
}

#[test]
fn nobody_and_silence_are_uncertain() {
    let folder = tempfile::tempdir().unwrap();
    let error = rest(&folder, Address::Unix("/nowhere/socket".into())).jobs().unwrap_err();
    assert!(matches!(error, SlurmError::Unreachable { .. }), "{error}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap().to_string());
    let patience = Duration::from_millis(100);
    let error = http::ask(&address, None, Method::Get, "/", None, patience).unwrap_err();
    assert!(matches!(error, SlurmError::Timeout { .. }), "{error}");
}

/// The parser v0.0.38 refuses all of an update with a key that it does not know.
#[test]
fn marks_are_given_to_parsers_that_take_them() {
    let (admin_comment, comment) = (Some("busbar".to_owned()), Some("mine".to_owned()));
    let update = JobUpdate { admin_comment, comment, ..JobUpdate::default() };
    let names =
        |parser| keys(&update, parser).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(38), ["comment"]);
    assert_eq!(names(39), ["admin_comment", "comment"]);
}
