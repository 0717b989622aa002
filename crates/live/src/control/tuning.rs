//! The daemon's own past, replayed under other parameters of its policy: once a day, if the configuration says
//! so. What comes of it is a proposal. It changes nothing.
//!
//! The finished jobs are read and replayed in a thread of its own, so that the daemon's loop does not wait. If
//! that fails, or even panics, the daemon is told so and goes on.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::active_budget::ActiveBudget;
use super::past::replayed_past;
use super::setup::{Nightly, Setup};
use crate::store::Reader;
use crate::wire::Proposal;
use busbar_core::policy::PolicySpec;
use busbar_core::tuning::usual_candidates;

/// Replays of the daemon's past: when they are due, and what comes of them.
#[derive(Default)]
pub(crate) struct Tuner {
    /// When it was last asked whether it is time, by the wall clock.
    asked: Option<i64>,
    under_way: Option<UnderWay>,
    proposal: Option<Proposal>,
}

struct UnderWay {
    /// Until the jobs have been read.
    reader: Arc<Mutex<Option<Reader>>>,
    result: Receiver<Result<Proposal, String>>,
}

impl Tuner {
    /// Whether it is time to begin, by the wall clock.
    pub(crate) fn is_due(&mut self, nightly: Option<&Nightly>, wall: i64) -> bool {
        let before = self.asked.replace(wall).unwrap_or(wall);
        self.under_way.is_none() && nightly.is_some_and(|nightly| nightly.has_come(before, wall))
    }

    /// Begins to replay what this reader finds.
    pub(crate) fn begin(&mut self, reader: Reader, setup: Setup, budget: ActiveBudget, wall: i64) {
        let Some(nightly) = setup.tune.clone() else { return };
        let reader = Arc::new(Mutex::new(Some(reader)));
        let (sender, result) = channel();
        let own = reader.clone();
        let work = move || {
            let done = propose(&own, &setup, &budget, &nightly, wall.div_euclid(1000));
            // The daemon may have stopped.
            let _ = sender.send(done);
        };
        // Without a thread the sender is gone, and that is noticed.
        let _ = thread::Builder::new().name("tuning".to_owned()).spawn(work);
        self.under_way = Some(UnderWay { reader, result });
    }

    /// What has come of it, if that is known since the last time: a sentence.
    pub(crate) fn finished(&mut self) -> Option<String> {
        let result = match self.under_way.as_ref()?.result.try_recv() {
            Ok(result) => result,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err("the replay failed".to_owned()),
        };
        self.under_way = None;
        Some(match result {
            Ok(proposal) => {
                let text = format!("tuning proposes: {proposal}");
                self.proposal = Some(proposal);
                text
            }
            Err(why) => format!("tuning failed, so there is no proposal: {why}"),
        })
    }

    /// The last proposal, if it is about this policy.
    pub(crate) fn proposal(&self, present: &PolicySpec) -> Option<&Proposal> {
        self.proposal.as_ref().filter(|proposal| proposal.present == present.to_string())
    }

    /// Lets the database be closed: waits for what is being read, and reads nothing more.
    pub(crate) fn give_up(&self) {
        if let Some(under_way) = &self.under_way {
            under_way.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }
}

/// Reads and replays.
fn propose(
    reader: &Mutex<Option<Reader>>,
    setup: &Setup,
    budget: &ActiveBudget,
    nightly: &Nightly,
    at: i64,
) -> Result<Proposal, String> {
    let finished = {
        let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = reader.take().ok_or("the daemon stops")?;
        reader.finished(nightly.jobs).map_err(|error| error.to_string())?
    };
    let present = setup.decider.spec();
    let candidates = match &nightly.policies[..] {
        [] => usual_candidates(present),
        policies => policies.to_vec(),
    };
    let past = replayed_past(setup, budget, finished);
    // One thread: jobs of users may run on the others.
    let tuning =
        past.tune(present, &candidates, NonZeroUsize::MIN, &|_, _| ControlFlow::Continue(()));
    let tuning = tuning.map_err(|error| error.to_string())?;
    Ok(Proposal::of(&tuning, at))
}

#[cfg(test)]
mod tests;
