//! Feeds bytes to what cuts and reads the requests of clients, in pieces of any size: every line has a
//! request or a refusal, no more is held than the limit, and nothing panics.
//!
//! Run with `cargo +nightly fuzz run wire`.

#![no_main]

use busbar::live::server::socket::frame::{Lines, line_of, parse};
use busbar::live::wire::{RefusalKind, Reply, Sent};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 4096;

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let mut lines = Lines::new(LIMIT);
    for piece in bytes.chunks(usize::from(piece) + 1) {
        lines.push(piece);
        loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(oversized) => {
                    assert_eq!(oversized.limit, LIMIT);
                    return;
                }
            };
            assert!(line.len() <= LIMIT && !line.contains(&b'\n'));
            match parse(&line) {
                Ok(request) => {
                    let written = serde_json::to_vec(&Sent::new(&request)).expect("a request can be written");
                    assert_eq!(parse(&written).expect("and read again"), request);
                }
                Err(refusal) => {
                    assert_eq!(refusal.kind, RefusalKind::Malformed);
                    assert!(!refusal.message.is_empty());
                    let answer = line_of(&Reply::Error(refusal));
                    assert_eq!(answer.iter().filter(|byte| **byte == b'\n').count(), 1);
                }
            }
        }
    }
});
