//! An engine for tests that runs nothing and records what it was asked to do.
//!
//! Clones share the same engine, so a test can keep one, and give others to one daemon after another.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{EngineError, Found, Immediate, Launch, Signal};
use crate::job::{Allotment, Attempt, End};
use busbar_core::units::Span;

/// A call to the engine, whether or not it succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Start an attempt.
    Start(Box<Launch>),
    /// Change the nodes or power of a job.
    Set(Attempt, Allotment),
    /// Send a signal.
    Signal(Attempt, Signal),
    /// Find an attempt.
    Find(Attempt),
    /// Forget an attempt.
    Forget(Attempt),
}

/// An engine that records calls.
#[derive(Clone, Debug, Default)]
pub struct Recording(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    calls: Vec<Call>,
    /// Attempts that began and were not forgotten, with their ends.
    attempts: BTreeMap<Attempt, Option<End>>,
    /// Attempts whose ends were not reported yet, in order.
    news: VecDeque<Attempt>,
    failing_starts: VecDeque<String>,
    failing_sets: VecDeque<String>,
    failing_signals: VecDeque<String>,
}

impl Recording {
    /// An engine on which nothing runs.
    pub fn new() -> Self {
        Recording::default()
    }

    // A failed test must fail with its own message, not with a poisoned lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calls since the last time, in order.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.state().calls)
    }

    /// The running attempts.
    pub fn running(&self) -> Vec<Attempt> {
        let state = self.state();
        let running = state.attempts.iter().filter(|(_, end)| end.is_none());
        running.map(|(attempt, _)| *attempt).collect()
    }

    /// Ends an attempt; returns whether it was running.
    pub fn end(&self, attempt: Attempt, end: End) -> bool {
        let mut state = self.state();
        match state.attempts.get_mut(&attempt) {
            Some(running @ None) => *running = Some(end),
            _ => return false,
        }
        state.news.push_back(attempt);
        true
    }

    /// Lets the next start fail with this reason; called twice, the next two.
    pub fn fail_start(&self, reason: &str) {
        self.state().failing_starts.push_back(reason.to_owned());
    }

    /// Lets the next change fail with this reason.
    pub fn fail_set(&self, reason: &str) {
        self.state().failing_sets.push_back(reason.to_owned());
    }

    /// Lets the next signal fail with this reason.
    pub fn fail_signal(&self, reason: &str) {
        self.state().failing_signals.push_back(reason.to_owned());
    }
}

impl State {
    fn check_runs(&self, attempt: Attempt) -> Result<(), EngineError> {
        match self.attempts.get(&attempt) {
            Some(None) => Ok(()),
            _ => Err(EngineError::Unknown { attempt }),
        }
    }
}

fn failure(attempt: Attempt, what: &'static str, reason: String) -> EngineError {
    let (path, source) = (PathBuf::from("a recording"), io::Error::other(reason));
    EngineError::File { attempt, what, path, source }
}

impl Immediate for Recording {
    fn name(&self) -> &'static str {
        "a recording"
    }

    fn start(&mut self, launch: &Launch) -> Result<(), EngineError> {
        let (attempt, mut state) = (launch.attempt, self.state());
        state.calls.push(Call::Start(Box::new(launch.clone())));
        if let Some(reason) = state.failing_starts.pop_front() {
            return Err(failure(attempt, "start on", reason));
        }
        if state.attempts.contains_key(&attempt) {
            return Err(EngineError::Again { attempt });
        }
        state.attempts.insert(attempt, None);
        Ok(())
    }

    fn set(
        &mut self,
        attempt: Attempt,
        allotment: &Allotment,
        _pause: Span,
    ) -> Result<(), EngineError> {
        let mut state = self.state();
        state.calls.push(Call::Set(attempt, allotment.clone()));
        if let Some(reason) = state.failing_sets.pop_front() {
            return Err(failure(attempt, "change on", reason));
        }
        state.check_runs(attempt)
    }

    fn signal(&mut self, attempt: Attempt, signal: Signal) -> Result<(), EngineError> {
        let mut state = self.state();
        state.calls.push(Call::Signal(attempt, signal));
        if let Some(reason) = state.failing_signals.pop_front() {
            return Err(failure(attempt, "signal on", reason));
        }
        state.check_runs(attempt)
    }

    fn ended(&mut self) -> Vec<(Attempt, End)> {
        let mut state = self.state();
        let news = std::mem::take(&mut state.news);
        let end = |attempt| Some((attempt, state.attempts.get(&attempt)?.clone()?));
        news.into_iter().filter_map(end).collect()
    }

    fn find(&mut self, attempt: Attempt) -> Result<Found, EngineError> {
        let mut state = self.state();
        state.calls.push(Call::Find(attempt));
        Ok(match state.attempts.get(&attempt) {
            None => Found::NeverStarted,
            Some(None) => Found::Running,
            Some(Some(end)) => Found::Ended { end: end.clone(), ago: Span::ZERO },
        })
    }

    fn forget(&mut self, attempt: Attempt) {
        let mut state = self.state();
        state.calls.push(Call::Forget(attempt));
        state.attempts.remove(&attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use busbar_core::units::Watts;

    fn launch(job: u64) -> Launch {
        Launch {
            attempt: Attempt { job, number: 1 },
            command: vec!["true".to_owned()],
            folder: PathBuf::from("/"),
            environment: Vec::new(),
            output: PathBuf::from("/dev/null"),
            errors: PathBuf::from("/dev/null"),
            owner: None,
            handle: None,
            is_free: false,
            allotment: Allotment {
                nodes: vec![(0, Watts::from_watts(100))],
                cores: 1,
                cap: Watts::from_watts(100),
                time: Span::from_secs(60),
                power: Watts::from_watts(100),
                speed: 1_000_000,
                part: None,
            },
        }
    }

    #[test]
    fn it_does_as_it_is_told_and_remembers() {
        let test = Recording::new();
        let mut engine: Box<dyn Immediate> = Box::new(test.clone());
        let (one, two) = (launch(1), launch(2));
        test.fail_start("no room");
        let failed = engine.start(&one).unwrap_err();
        assert!(std::error::Error::source(&failed).unwrap().to_string().contains("no room"));
        assert_eq!(engine.find(one.attempt).unwrap(), Found::NeverStarted);
        engine.start(&one).unwrap();
        engine.start(&two).unwrap();
        assert!(matches!(engine.start(&two), Err(EngineError::Again { .. })));
        assert_eq!(test.running(), [one.attempt, two.attempt]);
        test.fail_set("stuck");
        engine.set(two.attempt, &two.allotment, Span::ZERO).unwrap_err();
        engine.set(two.attempt, &two.allotment, Span::ZERO).unwrap();
        assert_eq!(test.take_calls().len(), 7);

        assert!(test.end(two.attempt, End::Exited(3)));
        assert!(!test.end(two.attempt, End::Lost), "once is enough");
        assert!(matches!(
            engine.signal(two.attempt, Signal::Kill),
            Err(EngineError::Unknown { .. })
        ));
        assert_eq!(engine.ended(), [(two.attempt, End::Exited(3))]);
        assert_eq!(engine.ended(), []);
        // Another daemon, which did not hear it.
        let mut next = test.clone();
        assert_eq!(
            next.find(two.attempt).unwrap(),
            Found::Ended { end: End::Exited(3), ago: Span::ZERO }
        );
        assert_eq!(next.find(one.attempt).unwrap(), Found::Running);
        next.forget(two.attempt);
        assert_eq!(next.find(two.attempt).unwrap(), Found::NeverStarted);
        assert_eq!(
            test.take_calls(),
            [
                Call::Signal(two.attempt, Signal::Kill),
                Call::Find(two.attempt),
                Call::Find(one.attempt),
                Call::Forget(two.attempt),
                Call::Find(two.attempt),
            ]
        );
    }
}
