//! Somebody opens connections to an agent as fast as possible: the controller gets through.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use busbar_agent::client::{Address, Client};
use busbar_agent::config::TcpSpec;
use busbar_agent::keys;
use busbar_agent::wire::Request;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use crate::node::{Node, PATIENCE};

/// A node that listens for other machines, and its address.
fn node(folder: &std::path::Path) -> (Node, SocketAddr) {
    keys::make(folder, &["n1".to_owned()], 30).unwrap();
    let node = Node::with("n1", |config| {
        let address = "127.0.0.1:0".parse().unwrap();
        config.tcp = Some(TcpSpec { address, keys: keys::files(folder, "n1") });
    });
    let address = node.config.tcp.as_ref().unwrap().address;
    (node, address)
}

/// Waits until the agent has closed a connection that never said anything.
fn wait_for_end(mut stream: &TcpStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    match stream.read(&mut [0]) {
        Ok(0) => (),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => (),
        other => panic!("{other:?}"),
    }
}

/// A controller is in the middle of its handshake when more come than there are places.
#[test]
fn a_handshake_outlasts_a_crowd() {
    let folder = tempfile::tempdir().unwrap();
    let (_node, address) = node(folder.path());
    let keys = keys::files(folder.path(), "controller").client().unwrap();
    let mut tls = ClientConnection::new(keys, ServerName::try_from("n1").unwrap()).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    tls.write_tls(&mut stream).unwrap();
    // The agent has answered; the controller takes its time to go on.
    assert!(tls.read_tls(&mut stream).unwrap() > 0);
    tls.process_new_packets().unwrap();
    let silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
    // Somebody had to go, and it was one of those.
    wait_for_end(&silent[0]);
    let hello = r#"{"id":0,"request":{"hello":{"protocol":"1.0","client":"raw","control":true}}}"#;
    writeln!(tls.writer(), "{hello}").unwrap();
    let mut answer = Vec::new();
    while !answer.contains(&b'\n') {
        tls.complete_io(&mut stream).unwrap();
        let mut piece = [0; 4096];
        match tls.reader().read(&mut piece) {
            Ok(count) => answer.extend(&piece[..count]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    assert!(String::from_utf8(answer).unwrap().contains("welcome"));
}

/// How many times a controller connects while others flood the port.
const ATTEMPTS: usize = 30;

#[test]
fn a_controller_is_admitted_while_others_flood_the_port() {
    let folder = tempfile::tempdir().unwrap();
    let (node, address) = node(folder.path());
    let keys = keys::files(folder.path(), "controller").client().unwrap();
    // It is there before the flood, and is not displaced.
    let place = Address::Tcp(address.to_string());
    let connect =
        |control| Client::connect(&place, "n1", Some(&keys), "controller", control, PATIENCE);
    let mut present = connect(false).unwrap();
    let (is_over, opened) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let flood = |first: &'static [u8]| {
        let (is_over, opened) = (Arc::clone(&is_over), Arc::clone(&opened));
        thread::spawn(move || {
            let mut open = VecDeque::new();
            while !is_over.load(Ordering::Relaxed) {
                let Ok(mut stream) = TcpStream::connect(address) else { continue };
                let _ = stream.write_all(first);
                open.push_back(stream);
                if open.len() > 100 {
                    open.pop_front();
                }
                opened.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    // One says nothing, and the other begins something that looks like a handshake.
    let floods = [flood(b""), flood(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")];
    while opened.load(Ordering::Relaxed) < 1000 {
        thread::yield_now();
    }
    let failed: Vec<String> = (0..ATTEMPTS)
        .filter_map(|_| {
            let read = connect(true).and_then(|mut client| client.ask(Request::Read));
            read.err().map(|error| error.to_string())
        })
        .collect();
    let is_present = present.ask(Request::Read).is_ok();
    is_over.store(true, Ordering::Relaxed);
    floods.into_iter().for_each(|flood| flood.join().unwrap());
    assert_eq!(failed, Vec::<String>::new(), "of {ATTEMPTS} attempts");
    assert!(is_present);
    drop(node);
}
