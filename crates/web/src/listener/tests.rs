use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::net;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use axum::body::Bytes;
use axum::routing::{get, post};
use futures_util::stream;
use tokio::runtime::{Builder, Runtime};

use super::*;

/// How long a test waits for what must come.
const LONG: Duration = Duration::from_secs(600);

/// No limit is reached unless a test says so.
const PATIENT: Limits = Limits {
    connections: 8,
    head: Duration::from_secs(100_000),
    body: Duration::from_secs(100_000),
    stalled: Duration::from_secs(100_000),
};

/// A server that answers within these limits, until the runtime is dropped.
fn started(limits: Limits, router: Router) -> (Runtime, SocketAddr) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(serve(listener, None, limits, router));
    (runtime, address)
}

/// Sends the beginning of a request, or all of it.
fn sent(to: SocketAddr, text: &str) -> net::TcpStream {
    let mut stream = net::TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

fn answer(to: SocketAddr, text: &str) -> String {
    let mut answer = String::new();
    sent(to, text).read_to_string(&mut answer).unwrap();
    answer
}

const HELLO: &str = "GET /hello HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
const ENDLESS: &str = "GET /endless HTTP/1.1\r\nHost: here\r\n\r\n";

/// Answers without end, and tells when nobody is answered any more.
fn endless(ended: Sender<()>) -> Body {
    struct Telling(Sender<()>);
    impl Drop for Telling {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let telling = Telling(ended);
    Body::from_stream(stream::repeat_with(move || {
        let _ = &telling;
        Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 64 * 1024]))
    }))
}

#[test]
fn who_holds_all_places_keeps_nobody_out() {
    let (ended, ends) = channel();
    let router = Router::new()
        .route("/hello", get(async || "hello"))
        .route("/endless", get(async move || endless(ended.clone())));
    let (_runtime, at) = started(PATIENT, router);
    for held in ["", "GET /hello HT", ENDLESS] {
        let _open: Vec<_> = (0..20).map(|_| sent(at, held)).collect();
        for _ in 0..10 {
            assert!(answer(at, HELLO).ends_with("hello"), "beside {held:?}");
        }
    }
    // Those who had to go are answered no more.
    assert!(ends.recv_timeout(LONG).is_ok());
}

#[test]
fn who_reads_nothing_is_let_go() {
    let (ended, ends) = channel();
    let router = Router::new().route("/endless", get(async move || endless(ended.clone())));
    let (_runtime, at) = started(Limits { stalled: Duration::from_millis(50), ..PATIENT }, router);
    let _unread = sent(at, ENDLESS);
    assert!(ends.recv_timeout(LONG).is_ok());
}

#[test]
fn a_body_has_a_time_as_a_whole() {
    let router = Router::new().route("/length", post(async |body: Bytes| body.len().to_string()));
    let (_runtime, at) = started(Limits { body: Duration::from_millis(200), ..PATIENT }, router);
    let head = "POST /length HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000\r\n\r\n";
    let mut slow = sent(at, head);
    let mut writer = slow.try_clone().unwrap();
    // It never pauses for as long as a body may take, and goes on until the server has had enough.
    let dribble = thread::spawn(move || {
        while writer.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
    });
    let mut answer = Vec::new();
    // A reset is an end, too.
    if let Err(error) = slow.read_to_end(&mut answer) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    dribble.join().unwrap();
}
