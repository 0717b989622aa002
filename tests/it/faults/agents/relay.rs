//! A line between a daemon and an agent that can be cut.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A line that is cut, or not. What is on its way when it is cut arrives when it is mended, as on a network.
#[derive(Clone, Default)]
pub(super) struct Relay {
    is_cut: Arc<AtomicBool>,
}

impl Relay {
    /// Whoever connects to `from` is connected to `to`.
    pub(super) fn begin(from: &Path, to: PathBuf) -> Self {
        let (relay, listener) = (Relay::default(), UnixListener::bind(from).unwrap());
        let is_cut = relay.is_cut.clone();
        // These threads end with the test.
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                wait(&is_cut);
                let Ok(far) = UnixStream::connect(&to) else { continue };
                let ways = [(near.try_clone(), far.try_clone()), (Ok(far), Ok(near))];
                for (from, to) in ways {
                    let (Ok(from), Ok(to), is_cut) = (from, to, is_cut.clone()) else { continue };
                    thread::spawn(move || forward(from, to, &is_cut));
                }
            }
        });
        relay
    }

    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    pub(super) fn mend(&self) {
        self.is_cut.store(false, Ordering::Relaxed);
    }
}

/// Waits until a line is not cut.
fn wait(is_cut: &AtomicBool) {
    while is_cut.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Passes on what comes, until one end is closed.
fn forward(mut from: UnixStream, mut to: UnixStream, is_cut: &AtomicBool) {
    let mut bytes = [0; 4096];
    loop {
        let count = from.read(&mut bytes).unwrap_or(0);
        wait(is_cut);
        if count == 0 || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}
