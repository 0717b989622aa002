//! Somebody takes all places of the web server.

use std::io::BufReader;

use super::Web;
use super::client::chunk;

/// Eight places.
const FEW: &str = "listen = \"127.0.0.1:0\"\n[limits]\nconnections = 2";

#[test]
fn streams_of_events_do_not_lock_the_page() {
    let web = Web::listening("easy", FEW);
    let operator = web.operator();
    let mut own = BufReader::new(operator.send("GET", "/api/v2/events", "", ""));
    assert!(read(&mut own).contains("200"), "a stream for somebody with a token");
    let streams: Vec<_> =
        (0..20).map(|_| web.client.send("GET", "/api/v2/events", "", "")).collect();
    for client in [&web.client, &operator, &web.client] {
        assert_eq!(client.get("/api/v2/status").status, 200);
    }
    // The stream of somebody with a token goes on.
    let mut heard = String::new();
    while !heard.contains("event: status") {
        heard += &chunk(&mut own).expect("it goes on");
    }
    // The last ones of the others do, too.
    let mut last = BufReader::new(streams.into_iter().next_back().unwrap());
    assert!(read(&mut last).contains("200"));
    let mut heard = String::new();
    while !heard.contains("event: status") {
        heard += &chunk(&mut last).expect("it goes on");
    }
}

/// The head of an answer.
fn read(reader: &mut impl std::io::BufRead) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    head
}

/// A policy that names a program is kept for the life of a process, and so must not come by a request.
#[test]
fn a_policy_in_a_forecast_leaves_nothing_behind() {
    let web = Web::new("easy");
    let ask = |policy: String| {
        web.client.send_json("POST", "/api/v2/forecast", &serde_json::json!({ "policy": policy }))
    };
    let long = ask(format!("external(./{})", "x".repeat(900_000)));
    assert_eq!((long.status, long.error().as_str()), (400, "malformed"));
    assert!(long.body.contains("at most 4096") && long.body.len() < 1000, "{}", long.body);
    let external = ask("external(./mine)".to_owned());
    assert_eq!(external.status, 400);
    assert!(external.body.contains("works only in simulations"), "{}", external.body);
    assert_eq!(ask("fcfs".to_owned()).status, 200);
}
