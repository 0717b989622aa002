//! Real sockets, and clients of all kinds: each is answered or turned away, and none is in another's way.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, sleep};
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::job::{Event, EventKind};
use crate::patience::{PATIENCE, wait_until};
use crate::wire::{HistoryLine, Message, RefusalKind, Reply, Request};
use busbar_core::units::Instant;

/// Longer than anything here takes, on the slowest of machines.
const LONG: Duration = PATIENCE;

/// A server and the loop behind it.
struct Fake {
    server: Server,
    folder: TempDir,
}

/// What the loop answers: a job's number to whoever asks for it, and a long history.
fn answer(message: &Message) -> Reply {
    let user = rustix::process::getuid().as_raw();
    assert_eq!(message.peer.user(), Some(user), "the kernel says who asks");
    match &message.request {
        Request::Show { job } => Reply::Submitted { job: *job, remark: None },
        Request::History { .. } => {
            let what = EventKind::notice("x".repeat(1000));
            let event = Event { at: Instant::ZERO, kind: what };
            let line = |line| HistoryLine { line, wall: 0, event: event.clone(), by_name: None };
            Reply::History((0..3000).map(line).collect())
        }
        _ => Reply::Stopping,
    }
}

fn run_loop(messages: Receiver<Message>) {
    for message in messages {
        let _ = message.reply.send(answer(&message));
    }
}

impl Fake {
    fn new(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || run_loop(messages));
        let server = Server::bind(&folder.path().join("deep/socket"), limits, sender).unwrap();
        Fake { server, folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("deep/socket")
    }

    fn connect(&self) -> Raw {
        Raw::new(UnixStream::connect(self.path()).unwrap())
    }

    fn until_open(&self, count: usize) {
        wait_until(&format!("{count} connections"), || self.server.connections() == count);
    }
}

/// A request without a parameter.
const QUEUE: &[u8] = b"{\"protocol\":\"2.0\",\"queue\":null}\n";

/// A request for a job.
fn asking(job: u64) -> String {
    format!("{{\"protocol\":\"2.0\",\"show\":{{\"job\":{job}}}}}")
}

/// A client that may say anything.
struct Raw(BufReader<UnixStream>);

impl Raw {
    fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        Raw(BufReader::new(stream))
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// The next answer; none if the connection is closed.
    fn hear(&mut self) -> Option<Reply> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap()),
            // Closed with something unread.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn hear_refusal(&mut self) -> RefusalKind {
        match self.hear() {
            Some(Reply::Error(refusal)) => refusal.kind,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Asks for a job and gets its number.
    fn is_served(&mut self, job: u64) {
        self.send(format!("{}\n", asking(job)).as_bytes());
        assert_eq!(self.hear(), Some(Reply::Submitted { job, remark: None }));
    }
}

#[test]
fn several_requests_at_once_are_answered_in_order() {
    let fake = Fake::new(Limits::default());
    let mut client = fake.connect();
    let lines: String = (0..500).map(|job| asking(job) + "\n").collect();
    client.send(lines.as_bytes());
    for job in 0..500 {
        assert_eq!(client.hear(), Some(Reply::Submitted { job, remark: None }));
    }
    let mut client = Client::connect(&fake.path()).unwrap();
    for job in [7, u64::MAX] {
        assert_eq!(
            client.ask(&Request::Show { job }).unwrap(),
            Reply::Submitted { job, remark: None }
        );
    }
}

#[test]
fn submissions_that_come_together_are_passed_on_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let (sender, messages) = mpsc::channel::<Message>();
    let server = Server::bind(&path, Limits::default(), sender).unwrap();
    let looping = thread::spawn(move || {
        // Nobody is answered before all are there.
        let together: Vec<Message> = (0..3).map(|_| messages.recv_timeout(LONG).unwrap()).collect();
        for (job, message) in (0..).zip(&together) {
            assert!(matches!(message.request, Request::Submit(_)));
            message.reply.send(Reply::Submitted { job, remark: None }).unwrap();
        }
        let last = messages.recv_timeout(LONG).unwrap();
        assert_eq!(last.request, Request::Status);
        last.reply.send(Reply::Stopping).unwrap();
    });
    let submission = "{\"protocol\":\"2.0\",\"submit\":{\"wish\":{\"name\":\"a\",\"nodes\":1,\"time_s\":1},\"program\":\
                      {\"command\":[\"a\"],\"folder\":\"/\",\"environment\":[],\"output\":\"a\"}}}\n";
    let mut client = Raw::new(UnixStream::connect(&path).unwrap());
    let status = "{\"protocol\":\"2.0\",\"status\":null}";
    client.send(format!("{}fly\n{status}\n", submission.repeat(3)).as_bytes());
    for job in 0..3 {
        assert_eq!(client.hear(), Some(Reply::Submitted { job, remark: None }));
    }
    assert_eq!(client.hear_refusal(), RefusalKind::Malformed);
    assert_eq!(client.hear(), Some(Reply::Stopping));
    looping.join().unwrap();
    server.stop();
}

#[test]
fn garbage_is_answered_and_the_next_line_is_read() {
    let fake = Fake::new(Limits::default());
    let mut client = fake.connect();
    let deep = "[".repeat(5000) + "\n";
    for garbage in [
        "\n",
        "{}\n",
        "\"fly\"\n",
        "\0\0\n",
        deep.as_str(),
        "{\"protocol\":\"2.0\",\"show\":{\"job\":1,\"x\":1}}\n",
    ] {
        client.send(garbage.as_bytes());
        assert_eq!(client.hear_refusal(), RefusalKind::Malformed, "{garbage:?}");
    }
    client.send(b"\xff\xfe\n");
    assert_eq!(client.hear_refusal(), RefusalKind::Malformed);
    client.is_served(3);
}

#[test]
fn an_oversized_request_is_not_read_to_its_end() {
    let fake = Fake::new(Limits { request: 10_000, ..Limits::default() });
    let mut client = fake.connect();
    let mut sent = 0;
    // For ever, if it were not stopped.
    while client.0.get_mut().write_all(&[b'x'; 4096]).is_ok() {
        sent += 4096;
        assert!(sent < 64 << 20, "it reads without end");
    }
    assert_eq!(client.hear_refusal(), RefusalKind::TooMuch);
    assert_eq!(client.hear(), None);
    // One byte less is well, and only malformed.
    let mut client = fake.connect();
    client.send(&[&[b'x'; 10_000][..], b"\n"].concat());
    assert_eq!(client.hear_refusal(), RefusalKind::Malformed);
    client.is_served(1);
}

#[test]
fn whoever_is_slow_is_closed_and_others_do_not_wait() {
    let limits = Limits { line: Duration::from_millis(300), idle: LONG, ..Limits::default() };
    let fake = Fake::new(limits);
    let mut silent = fake.connect();
    silent.send(b"{\"show\"");
    let mut dribbling = fake.connect();
    // A byte now and then does not buy more time.
    for _ in 0..40 {
        if dribbling.0.get_mut().write_all(b" ").is_err() {
            break;
        }
        sleep(Duration::from_millis(25));
    }
    assert_eq!(dribbling.hear_refusal(), RefusalKind::TooMuch);
    assert_eq!(dribbling.hear(), None);
    assert_eq!(silent.hear_refusal(), RefusalKind::TooMuch);
    assert_eq!(silent.hear(), None);
    fake.connect().is_served(1);
}

#[test]
fn whoever_says_nothing_is_closed() {
    let fake = Fake::new(Limits { idle: Duration::from_millis(300), ..Limits::default() });
    assert_eq!(fake.connect().hear(), None);
}

#[test]
fn whoever_does_not_read_is_closed_and_others_do_not_wait() {
    let fake = Fake::new(Limits { answer: Duration::from_millis(300), ..Limits::default() });
    let mut deaf = fake.connect();
    fake.until_open(1);
    // Three megabytes are on their way to somebody who does not read them.
    deaf.send(b"{\"protocol\":\"2.0\",\"history\":{}}\n");
    fake.connect().is_served(1);
    fake.until_open(0);
    let mut rest = Vec::new();
    let _ = deaf.0.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"\n"), "it cannot have got all of it");
}

#[test]
fn long_answers_reach_whoever_reads_them() {
    let fake = Fake::new(Limits::default());
    let mut client = Client::connect(&fake.path()).unwrap();
    let asked = Request::History { job: None, after: None, limit: None };
    match client.ask(&asked).unwrap() {
        Reply::History(lines) => assert_eq!(lines.len(), 3000),
        other => panic!("{other:?}"),
    }
}

#[test]
fn of_200_connections_64_come_in() {
    let fake = Fake::new(Limits::default());
    let mut clients: Vec<Raw> = (0..200).map(|_| fake.connect()).collect();
    fake.until_open(64);
    let (mut served, mut turned_away) = (0, 0);
    for client in &mut clients {
        // Those who were turned away may be told before they ask.
        let _ = client.0.get_mut().write_all(format!("{}\n", asking(5)).as_bytes());
        match client.hear() {
            Some(Reply::Submitted { job: 5, .. }) => served += 1,
            Some(Reply::Error(refusal)) if refusal.kind == RefusalKind::Busy => turned_away += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((served, turned_away), (64, 136));
    let refusal = Client::connect(&fake.path()).unwrap().ask(&Request::Queue).unwrap();
    assert!(matches!(refusal, Reply::Error(refusal) if refusal.kind == RefusalKind::Busy));
    drop(clients);
    fake.until_open(0);
    fake.connect().is_served(1);
}

#[test]
fn clients_may_go_at_any_time() {
    let fake = Fake::new(Limits::default());
    for turn in 0..60 {
        let mut client = fake.connect();
        match turn % 4 {
            0 => client.send(b"{\"show\":{\"jo"),
            1 => client.send(b"{\"protocol\":\"2.0\",\"history\":{}}\n"),
            2 => client.send([QUEUE, QUEUE, b"{"].concat().as_slice()),
            _ => {}
        }
    }
    fake.until_open(0);
    // Whoever only stops speaking hears what was wrong.
    let mut client = fake.connect();
    client.send(format!("{}\n\"queue\"", asking(1)).as_bytes());
    client.0.get_mut().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.hear(), Some(Reply::Submitted { job: 1, remark: None }));
    assert_eq!(client.hear_refusal(), RefusalKind::Malformed);
    assert_eq!(client.hear(), None);
}

/// An answer that takes long is not wanted any more when the client is gone; one that only says no more
/// still waits for it.
#[test]
fn whoever_works_on_an_answer_hears_that_the_client_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let (sender, messages) = mpsc::channel::<Message>();
    let _server = Server::bind(&path, Limits::default(), sender).unwrap();
    let ask = || {
        let mut client = Raw::new(UnixStream::connect(&path).unwrap());
        client.send(b"{\"protocol\":\"2.0\",\"forecast\":{}}\n");
        (client, messages.recv_timeout(LONG).unwrap())
    };
    let (mut quiet, asked) = ask();
    quiet.0.get_mut().shutdown(Shutdown::Write).unwrap();
    let (client, message) = ask();
    assert!(!message.gone.is_set());
    drop(client);
    wait_until("that somebody notices", || message.gone.is_set());
    assert!(!asked.gone.is_set());
    asked.reply.send(Reply::Stopping).unwrap();
    assert_eq!(quiet.hear(), Some(Reply::Stopping));
}

#[test]
fn a_socket_has_one_daemon_and_a_dead_one_makes_way() {
    let fake = Fake::new(Limits::default());
    let mode = fs::metadata(fake.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666, "everybody may ask");
    let bind = |path: &PathBuf| Server::bind(path, Limits::default(), mpsc::channel::<Message>().0);
    let error = bind(&fake.path()).unwrap_err();
    assert!(error.to_string().starts_with("another daemon listens on "), "{error}");
    fake.connect().is_served(1);

    // Somebody listens there who is no daemon of ours.
    let other = fake.folder.path().join("other");
    let listener = UnixListener::bind(&other).unwrap();
    assert!(matches!(bind(&other), Err(BindError::Another { .. })));
    // Their socket stays when they are gone.
    drop(listener);
    assert!(other.exists());
    assert!(matches!(Client::connect(&other), Err(ClientError::NoDaemon { .. })));
    let server = bind(&other).unwrap();
    server.stop();
    assert!(!other.exists(), "whoever ends properly leaves nothing");

    let file = fake.folder.path().join("file");
    fs::write(&file, "precious").unwrap();
    assert!(matches!(bind(&file), Err(BindError::NotASocket { .. })));
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    let long = fake.folder.path().join("x".repeat(120));
    let error = bind(&long).unwrap_err();
    assert!(matches!(error, BindError::TooLong { .. }), "{error}");
}

/// Clients connect, and the socket is removed and made again before all of them are accepted. Each is served.
#[test]
fn whoever_connected_before_the_socket_was_removed_is_served() {
    let mut fake = Fake::new(Limits::default());
    for round in 0..20 {
        let mut clients: Vec<Raw> = (0..10).map(|_| fake.connect()).collect();
        fs::remove_file(fake.path()).unwrap();
        assert!(fake.server.restore(false).unwrap(), "round {round}");
        clients.push(fake.connect());
        for (client, job) in clients.iter_mut().zip(1..) {
            client.send(format!("{}\n", asking(job)).as_bytes());
            let is_its_own =
                |reply| matches!(reply, Reply::Submitted { job: other, .. } if other == job);
            assert!(client.hear().is_some_and(is_its_own), "round {round}, client {job}");
        }
    }
}

#[test]
fn when_the_loop_is_gone_clients_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let (sender, messages) = mpsc::channel::<Message>();
    // Whoever had to be waited for would be waited for for ever.
    let (answer, idle) = (Duration::from_secs(1 << 20), Duration::from_secs(1 << 20));
    let limits = Limits { answer, idle, ..Limits::default() };
    let server = Server::bind(&path, limits, sender).unwrap();
    let mut waiting = Raw::new(UnixStream::connect(&path).unwrap());
    waiting.send(QUEUE);
    let mut idle = Raw::new(UnixStream::connect(&path).unwrap());
    // The loop takes one request and ends without an answer.
    drop(messages.recv_timeout(LONG).unwrap());
    drop(messages);
    assert_eq!(waiting.hear_refusal(), RefusalKind::Stopping);
    waiting.send(QUEUE);
    assert_eq!(waiting.hear_refusal(), RefusalKind::Stopping);
    server.stop();
    assert_eq!(idle.hear(), None);
    let error = Client::connect(&path).unwrap_err().to_string();
    assert!(error.ends_with("start one with: busbar serve --background"), "{error}");
}

/// A figure of `/proc/self/status`.
fn figure(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_ascii_whitespace().next().unwrap().parse().unwrap()
}

/// All connections are taken by clients that send as much as they may without coming to an end, and
/// hundreds more try. Threads and memory are counted for the whole process, so it wants to be alone.
#[test]
#[ignore = "alone: cargo test --lib a_siege -- --ignored --nocapture"]
fn a_siege_costs_a_bounded_number_of_threads_and_bytes() {
    let fake = Fake::new(Limits::default());
    let (threads, kilobytes) = (figure("Threads:"), figure("VmRSS:"));
    let mut after = Vec::new();
    for _round in 0..5 {
        let mut clients: Vec<Raw> = (0..64).map(|_| fake.connect()).collect();
        clients.iter_mut().for_each(|client| client.send(&vec![b' '; 1 << 20]));
        for _ in 0..300 {
            assert_eq!(fake.connect().hear_refusal(), RefusalKind::Busy);
        }
        let (more_threads, more) = (figure("Threads:") - threads, figure("VmRSS:") - kilobytes);
        println!("{more_threads} more threads, {} MiB more", more >> 10);
        assert!(more_threads <= 64);
        // Memory that grows has room for twice what it holds.
        assert!(more < (2 * 64 + 32) << 10, "{more} KiB");
        after.push(more);
        drop(clients);
        fake.until_open(0);
        fake.connect().is_served(1);
    }
    assert!(after[4] < after[1] + (32 << 10), "it grows from round to round: {after:?}");
}
