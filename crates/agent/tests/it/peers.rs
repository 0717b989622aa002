//! Peers that are slow, half-open, of another version, or not what they seem.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use busbar_agent::wire::{Answer, Message, Request};

use crate::node::{Node, PATIENCE};

const HELLO: &str =
    r#"{"id":0,"request":{"hello":{"protocol":"1.0","client":"raw","control":false}}}"#;

fn raw(node: &Node) -> UnixStream {
    let stream = UnixStream::connect(node.socket()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// What an agent answers to these bytes, up to the end of the connection or of the first line.
fn answer(node: &Node, bytes: &[u8]) -> String {
    let mut stream = raw(node);
    // An agent may close before it has read all.
    let _ = stream.write_all(bytes);
    let mut line = String::new();
    let _ = BufReader::new(stream).read_line(&mut line);
    line
}

#[test]
fn bad_requests_are_answered_and_end_the_connection() {
    let node = Node::start("n1");
    let long = format!("{{\"id\":1,\"request\":{{\"begin\":{{\"job\":\"{}", "x".repeat(100_000));
    for (bytes, expected) in [
        ("nonsense\n", "cannot be read"),
        ("{\"id\":1,\"request\":\"inventory\"}\n", "the first request must be hello"),
        ("{\"id\":1,\"request\":{\"exec\":\"sh\"}}\n", "unknown variant `exec`"),
        ("{\"id\":1,\"request\":\"read\",\"path\":\"/etc\"}\n", "unknown field `path`"),
        (long.as_str(), "more than 65536 bytes"),
        ("\0\0\0\n", "cannot be read"),
    ] {
        let answer = answer(&node, bytes.as_bytes());
        assert!(
            answer.contains("refused") && answer.contains(expected),
            "{answer}, not {expected}"
        );
    }
    // The agent is none the worse for it.
    assert!(node.connect(false).is_ok());
}

#[test]
fn a_client_of_another_version_is_told_so() {
    let node = Node::start("n1");
    let answer = answer(&node, (HELLO.replace("1.0", "2.0") + "\n").as_bytes());
    assert!(answer.contains("speaks protocol 2.0, and this agent"), "{answer}");
    assert!(answer.contains("speaks 1.1"), "{answer}");
    // A newer minor version is understood.
    let welcome = super::peers::answer(&node, (HELLO.replace("1.0", "1.7") + "\n").as_bytes());
    assert!(welcome.contains("welcome"), "{welcome}");
}

#[test]
fn a_peer_that_sends_nothing_keeps_nobody_waiting() {
    let node = Node::start("n1");
    let silent: Vec<UnixStream> = (0..80).map(|_| raw(&node)).collect();
    let mut half = raw(&node);
    half.write_all(b"{\"id\":0,").unwrap();
    assert!(node.connect(true).unwrap().ask(Request::Read).is_ok());
    // The agent ends what does not introduce itself: at once if there are many, or in a few seconds.
    let mut rest = Vec::new();
    (&silent[0]).read_to_end(&mut rest).unwrap();
    half.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"");
}

#[test]
fn a_request_in_pieces_is_a_request() {
    let node = Node::start("n1");
    let mut stream = raw(&node);
    for byte in HELLO.as_bytes().iter().chain(b"\n") {
        stream.write_all(&[*byte]).unwrap();
    }
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    let message: Message = serde_json::from_str(&line).unwrap();
    let Message::Answer { id: 0, answer } = message else { panic!("{line}") };
    assert!(matches!(*answer, Answer::Welcome { .. }));
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let node = Node::start("n1");
    let mut stream = raw(&node);
    writeln!(stream, "{HELLO}").unwrap();
    // More answers than the buffers hold, which nobody reads.
    let line = b"{\"id\":1,\"request\":\"inventory\"}\n";
    let mut sent = 0;
    while stream.write_all(line).is_ok() {
        sent += 1;
        assert!(sent < 1_000_000, "the agent would keep answers without end");
    }
    assert!(node.connect(false).is_ok());
}
