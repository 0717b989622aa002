//! A request on its way to the daemon's loop, with who asks and where the answer goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::reply::Reply;
use super::request::Request;
use crate::job::Requester;

/// A request for the daemon's loop, which sends one answer.
#[derive(Debug)]
pub struct Message {
    /// The request.
    pub request: Request,
    /// The client that sent it.
    pub peer: Requester,
    /// The channel for the answer. The client may be gone by then.
    pub reply: ReplyTo,
    /// Tells whether the client is gone, for answers that take long.
    pub gone: ClientGone,
}

/// Tells whether a client is gone, so that nobody waits for the answer. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct ClientGone(Arc<AtomicBool>);

impl ClientGone {
    /// Records that the client is gone.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the client is gone.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Where the daemon sends an answer, from any thread and without waiting.
pub type ReplyTo = UnboundedSender<Reply>;

/// Where an answer comes, to a task ([`recv`](UnboundedReceiver::recv)) or to a thread
/// ([`blocking_recv`](UnboundedReceiver::blocking_recv)); none comes if the daemon stops.
pub type Answers = UnboundedReceiver<Reply>;

/// The way of an answer.
pub fn answers() -> (ReplyTo, Answers) {
    unbounded_channel()
}

/// A client that waits for an answer, until this is dropped.
#[derive(Debug, Default)]
pub struct Waiting(ClientGone);

impl Waiting {
    /// Tells whether the client is gone.
    pub fn gone(&self) -> ClientGone {
        self.0.clone()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set();
    }
}
