//! Answers that many readers share for a moment.
//!
//! The daemon's loop has better things to do than to list ten thousand jobs for each of a hundred browsers. So the
//! same question is asked once in a while, however many want to know, and whoever comes meanwhile waits for the
//! same answer. After a change the old answers are not given any more: whoever made it sees it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;

/// Answers by question. Clones share them.
pub(crate) struct Reads<Q, A> {
    answers: Mutex<HashMap<Q, Answer<A>>>,
}

struct Answer<A> {
    asked: Instant,
    cell: Arc<OnceCell<Arc<A>>>,
}

impl<Q: Clone + Eq + Hash, A> Reads<Q, A> {
    /// No answer yet.
    pub(crate) fn new() -> Self {
        Reads { answers: Mutex::default() }
    }

    /// The answer to a question, which is asked by `ask` unless that was done within this time. Errors are not kept.
    pub(crate) async fn get<E>(
        &self,
        question: Q,
        age: Duration,
        ask: impl AsyncFnOnce() -> Result<A, E>,
    ) -> Result<Arc<A>, E> {
        let cell = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            // Nobody asks for these any more, or they would have been replaced.
            answers.retain(|_, answer| now - answer.asked < age.max(LONGEST));
            match answers.get(&question) {
                Some(answer) if now - answer.asked < age => Arc::clone(&answer.cell),
                _ => {
                    let cell = Arc::default();
                    let answer = Answer { asked: now, cell: Arc::clone(&cell) };
                    answers.insert(question, answer);
                    cell
                }
            }
        };
        cell.get_or_try_init(async || ask().await.map(Arc::new)).await.cloned()
    }

    /// Forgets all answers, because something has changed.
    pub(crate) fn forget(&self) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// How long an answer is kept that nobody asks for again.
const LONGEST: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const LONG: Duration = Duration::from_secs(1000);

    #[tokio::test]
    async fn many_readers_ask_once() {
        let (reads, asked) = (Reads::new(), AtomicU32::new(0));
        let ask = async || {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok::<_, ()>(asked.fetch_add(1, Ordering::Relaxed))
        };
        let (a, b, other) = tokio::join!(
            reads.get("queue", LONG, ask),
            reads.get("queue", LONG, ask),
            reads.get("nodes", LONG, ask)
        );
        assert_eq!(
            (asked.load(Ordering::Relaxed), a.clone(), b),
            (2, a, reads.get("queue", LONG, ask).await)
        );
        assert!(other.is_ok());
        reads.forget();
        reads.get("queue", LONG, ask).await.unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 3);
        // An answer that is too old is asked for again.
        reads.get("queue", Duration::ZERO, ask).await.unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 4);
    }

    #[tokio::test]
    async fn errors_are_not_kept() {
        let reads: Reads<u8, u8> = Reads::new();
        assert_eq!(reads.get(1, LONG, async || Err("busy")).await, Err("busy"));
        assert_eq!(reads.get(1, LONG, async || Ok::<_, ()>(7)).await, Ok(Arc::new(7)));
    }
}
