//! Whose forecast is worked out next.
//!
//! The daemon works out one forecast of a user at a time, and all who are no user share one. So forecasts wait here:
//! first for others of their group, and then, one of each group, in the order in which they come. However many one
//! group asks for, another waits for one of them.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

use crate::access::Caller;
use crate::error::{ApiError, ErrorKind};
use crate::group::Group;

/// How many forecasts of a group may be worked out or wait.
const MOST: usize = 8;

/// Waiting forecasts.
#[derive(Default)]
pub(crate) struct Turns {
    groups: Queues<Group>,
    users: Queues<Option<u32>>,
}

/// Somebody's turn, until this is dropped.
pub(crate) struct Turn {
    // The next of the group waits for the user only when the user is free again.
    _user: OwnedMutexGuard<()>,
    _group: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Waits for a caller's turn, unless too many of the same group do.
    pub(crate) async fn of(&self, caller: &Caller) -> Result<Turn, ApiError> {
        let group = self.groups.queue(caller.group.clone(), MOST).ok_or_else(|| {
            let message = format!("{MOST} of your forecasts are not ready yet; try again later");
            ApiError::new(ErrorKind::Busy, message)
        })?;
        let group = group.lock_owned().await;
        Ok(Turn { _group: Some(group), ..self.shared(caller).await })
    }

    /// Waits for the turn of a question that all groups of a user share, so that none of them holds it up.
    pub(crate) async fn shared(&self, caller: &Caller) -> Turn {
        let user = self.users.queue(caller.who.user(), usize::MAX).unwrap_or_default();
        Turn { _user: user.lock_owned().await, _group: None }
    }
}

/// A queue for each key that somebody waits for.
struct Queues<K>(Mutex<HashMap<K, Arc<tokio::sync::Mutex<()>>>>);

impl<K> Default for Queues<K> {
    fn default() -> Self {
        Queues(Mutex::default())
    }
}

impl<K: Eq + Hash> Queues<K> {
    /// The queue for a key, unless so many are in it already.
    fn queue(&self, key: K, most: usize) -> Option<Arc<tokio::sync::Mutex<()>>> {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Everybody in a queue holds it, and so does the table.
        queues.retain(|_, queue| Arc::strong_count(queue) > 1);
        let queue = queues.entry(key).or_default();
        (Arc::strong_count(queue) <= most).then(|| Arc::clone(queue))
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use futures_util::FutureExt as _;
    use futures_util::future::BoxFuture;

    use super::*;

    type Waiting<'a> = BoxFuture<'a, Result<Turn, ApiError>>;

    fn bearer(token: &str) -> Caller {
        Caller { group: Group::Token(token.to_owned()), ..Caller::nobody() }
    }

    fn poll(waiting: &mut Waiting<'_>) -> Poll<Result<Turn, ApiError>> {
        waiting.poll_unpin(&mut Context::from_waker(Waker::noop()))
    }

    /// Somebody's turn, which has come.
    fn now(waiting: &mut Waiting<'_>) -> Turn {
        match poll(waiting) {
            Poll::Ready(Ok(turn)) => turn,
            Poll::Ready(Err(error)) => panic!("{error:?}"),
            Poll::Pending => panic!("it is not their turn"),
        }
    }

    #[test]
    fn who_asks_for_many_forecasts_keeps_others_waiting_for_one() {
        let (turns, stranger, viewer) = (Turns::default(), Caller::nobody(), bearer("viewer"));
        let mut many: Vec<Waiting<'_>> = (0..MOST).map(|_| turns.of(&stranger).boxed()).collect();
        let first = now(&mut many[0]);
        assert!(many[1..].iter_mut().all(|waiting| poll(waiting).is_pending()));
        let mut other = turns.of(&viewer).boxed();
        assert!(poll(&mut other).is_pending());
        let refused = turns.of(&stranger).now_or_never().and_then(Result::err);
        assert!(format!("{refused:?}").contains("Busy"), "{refused:?}");
        drop(first);
        assert!(many[1..].iter_mut().all(|waiting| poll(waiting).is_pending()));
        drop(now(&mut other));
        drop(now(&mut many[1]));
        // Whoever does not wait any more leaves nothing behind.
        drop((many, other));
        turns.groups.queue(stranger.group, 0);
        assert_eq!(turns.groups.0.lock().unwrap().len(), 1);
    }

    #[test]
    fn what_many_share_does_not_wait_for_a_group() {
        let (turns, stranger, viewer) = (Turns::default(), Caller::nobody(), bearer("viewer"));
        let mut many: Vec<Waiting<'_>> = (0..MOST).map(|_| turns.of(&stranger).boxed()).collect();
        let first = now(&mut many[0]);
        assert!(many[1..].iter_mut().all(|waiting| poll(waiting).is_pending()));
        let mut shared = turns.shared(&viewer).map(Ok).boxed();
        assert!(poll(&mut shared).is_pending());
        drop(first);
        assert!(poll(&mut many[1]).is_pending());
        now(&mut shared);
    }
}
