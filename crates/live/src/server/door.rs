//! A door beside the socket: how another server in the daemon's process, such as that of the web page, passes
//! requests to the loop.
//!
//! The kernel says who is behind a socket. Behind a door, its server has to know: it says in whose name a request is
//! made, and with which rights.

use std::sync::mpsc::Sender;

use crate::control::daemon::Wake;
use crate::job::Requester;
use crate::wire::{Answers, ClientGone, Message, Request, answers};

/// Passes requests to the loop. Clones lead to the same loop.
#[derive(Clone)]
pub struct Door {
    wakes: Sender<Wake>,
}

impl Door {
    /// A door to the loop at the other end of a channel.
    pub(crate) fn new(wakes: Sender<Wake>) -> Self {
        Door { wakes }
    }

    /// Passes a request on. The answer comes on the channel, which is closed without one
    /// if the daemon stops. Whoever no longer waits for it says so by `gone`.
    pub fn ask(&self, request: Request, who: Requester, gone: ClientGone) -> Answers {
        let (reply, answer) = answers();
        // Without a loop, the channel is closed.
        let _ = self.wakes.send(Wake::Request(Message { request, peer: who, reply, gone }));
        answer
    }
}
