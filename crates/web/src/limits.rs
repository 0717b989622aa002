//! The limits of a client: connections and time.

use std::time::Duration;

/// The limits of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How many connections there may be at once.
    pub connections: usize,
    /// How long the beginning of a connection and the head of a request may take. A connection that is kept open
    /// between requests is idle for at most as long.
    pub head: Duration,
    /// How long the whole body of a request may take. Requests are small, and a slow line sends a megabyte in that
    /// time.
    pub body: Duration,
    /// How long a client may read nothing of an answer. A page that is loaded slowly always reads something.
    pub stalled: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 256,
            head: Duration::from_secs(10),
            body: Duration::from_secs(20),
            stalled: Duration::from_secs(20),
        }
    }
}

/// How many places a kind of clients has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Connections, streams of events included.
    pub connections: usize,
    /// Streams of events, which last: fewer, so that there is always a place for a request.
    pub streams: usize,
    /// Requests that are being answered: fewer, too, where newcomers need places until it is known who they are.
    pub requests: usize,
}

impl Limits {
    /// The places of those who have shown a token: a quarter of all that nobody else can take. Few have one, and
    /// those must be able to act when others crowd the page.
    pub(crate) fn known(&self) -> Share {
        let connections = (self.connections / 4).max(1);
        Share { connections, streams: (connections / 2).max(1), requests: connections }
    }

    /// The places of all others. On the loopback all users of the machine look alike, and so do newcomers with a
    /// token: a third is left for those who have yet to say what they want.
    pub(crate) fn strangers(&self) -> Share {
        let connections = self.connections.saturating_sub(self.known().connections).max(1);
        let third = (connections / 3).max(1);
        Share { connections, streams: third, requests: third }
    }
}
