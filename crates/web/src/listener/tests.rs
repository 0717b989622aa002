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

/// Waits for the head of an answer.
fn head(stream: &mut net::TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

#[test]
fn a_newcomer_that_asks_at_once_is_heard_beside_slow_requests_and_a_flood() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let at = listener.local_addr().unwrap();
    let router = Router::new()
        .route("/hello", get(async || "hello"))
        .route("/length", post(async |body: Bytes| body.len().to_string()));
    runtime.spawn(serve(listener, None, Limits { connections: 32, ..PATIENT }, router));
    // The server asks for the body of a request that it has begun to answer.
    let slow =
        "POST /length HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n";
    let _slow: Vec<_> = (0..23)
        .map(|_| {
            let mut stream = sent(at, slow);
            runtime.block_on(async {
                let read = tokio::task::spawn_blocking(move || (head(&mut stream), stream));
                let (head, stream) = read.await.unwrap();
                assert!(head.contains("100"), "{head}");
                stream
            })
        })
        .collect();
    // The server stands still until all of these wait for it.
    let mut honest = sent(at, HELLO);
    let _flood: Vec<_> = (0..100).map(|_| sent(at, "")).collect();
    let read = runtime.block_on(async {
        let read = tokio::task::spawn_blocking(move || {
            let mut answer = String::new();
            honest.read_to_string(&mut answer).map(|_| answer)
        });
        read.await.unwrap()
    });
    assert!(read.unwrap().ends_with("hello"));
}

#[test]
fn an_answer_that_is_being_read_is_not_cut_for_idle_connections() {
    // More than all buffers between the server and its client hold, and in one piece.
    const LARGE: usize = 64 << 20;
    let router = Router::new()
        .route("/hello", get(async || "hello"))
        .route("/large", get(async || vec![b'x'; LARGE]));
    let (_runtime, at) = started(PATIENT, router);
    let mut large = sent(at, "GET /large HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    head(&mut large);
    let _idle: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = sent(at, "GET /hello HTTP/1.1\r\nHost: here\r\n\r\n");
            head(&mut stream);
            stream
        })
        .collect();
    let read = std::io::copy(&mut large, &mut std::io::sink());
    assert!(matches!(read, Ok(read) if read == LARGE as u64), "{read:?}");
}
