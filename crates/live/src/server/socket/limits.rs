//! How much clients of the socket may take: connections, bytes and time.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Users for whom connections are reserved. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct Operators(Arc<RwLock<Vec<u32>>>);

impl Operators {
    /// Replaces the list.
    pub(crate) fn set(&self, users: Vec<u32>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = users;
    }

    /// Whether a user is one of them.
    pub(super) fn contains(&self, user: u32) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&user)
    }
}

/// The limits of a server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest request, in bytes.
    pub request: usize,
    /// The largest number of connections.
    pub connections: usize,
    /// The largest number of connections of one user, except the daemon's own.
    pub connections_of_user: usize,
    /// Additional connections for operators only.
    pub kept_for_operators: usize,
    /// The operators.
    pub operators: Operators,
    /// The time limit from the first to the last byte of a request.
    pub line: Duration,
    /// How long a connection may be silent.
    pub idle: Duration,
    /// How long a client may take to read an answer.
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            request: 1 << 20,
            connections: 64,
            connections_of_user: 16,
            kept_for_operators: 8,
            operators: Operators::default(),
            line: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            answer: Duration::from_secs(10),
        }
    }
}
