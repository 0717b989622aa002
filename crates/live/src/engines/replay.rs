//! An engine that replays a simulation: jobs end when the simulator would end them.
//!
//! It knows how long each job really runs and how the job responds to caps and nodes, as the simulator
//! does, and computes with the same [`Progress`]. The driver sets its clock. So a daemon that drives it
//! must take the same decisions as the simulator; tests compare the two.
//!
//! It does not enforce time limits; the daemon does. Clones share the same engine, so a driver can keep
//! one to move the clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::{EngineError, Found, Immediate, Launch, Signal};
use crate::job::{Allotment, Attempt, End};
use busbar_core::job::Job;
use busbar_core::model::{Model, Progress};
use busbar_core::units::{Instant, JobId, Span};

/// A job with its real run time.
#[derive(Clone, Copy, Debug)]
pub struct Real {
    /// The job's ID in the model.
    pub id: JobId,
    /// The job's request.
    pub job: Job,
    /// The run time on the nodes it asks for without a cap.
    pub run_time: Span,
}

/// Whether it matters which nodes a job has
/// ([`names_nodes`](busbar_core::policy::Policy::names_nodes)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// The run time depends on the operating point only.
    Counted,
    /// The run time depends on the nodes and their caps.
    Named,
}

/// An engine that replays a simulation.
#[derive(Clone)]
pub struct Replay(Arc<Mutex<World>>);

struct World {
    truth: Arc<dyn Model>,
    naming: Naming,
    /// Jobs by the daemon's numbers.
    jobs: BTreeMap<u64, Real>,
    now: Instant,
    attempts: BTreeMap<Attempt, State>,
}

#[derive(Clone, Debug)]
enum State {
    Running { progress: Progress },
    Over { at: Instant, end: End, is_told: bool },
}

impl Replay {
    /// An engine at time zero on which jobs run as `truth` says, with jobs by the numbers the
    /// daemon will give them.
    pub fn new(
        truth: Arc<dyn Model>,
        naming: Naming,
        jobs: impl IntoIterator<Item = (u64, Real)>,
    ) -> Self {
        let (jobs, attempts) = (jobs.into_iter().collect(), BTreeMap::new());
        let world = World { truth, naming, jobs, now: Instant::ZERO, attempts };
        Replay(Arc::new(Mutex::new(world)))
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the clock forward, and ends the jobs whose work is done by then.
    pub fn advance(&self, now: Instant) {
        let mut world = self.world();
        world.now = world.now.max(now);
        let now = world.now;
        for state in world.attempts.values_mut() {
            if let State::Running { progress } = state
                && progress.done() <= now
            {
                let at = progress.done();
                *state = State::Over { at, end: End::Exited(0), is_told: false };
            }
        }
    }

    /// When the next job ends, if nothing changes.
    pub fn next_end(&self) -> Option<Instant> {
        let world = self.world();
        let ends = world.attempts.values().filter_map(|state| match state {
            State::Running { progress } => Some(progress.done()),
            State::Over { .. } => None,
        });
        ends.min().filter(|end| *end != Instant::NEVER)
    }
}

impl World {
    /// The run time of the whole job with an allotment, and its time limit.
    fn times(&self, attempt: Attempt, allotment: &Allotment) -> Result<(Span, Span), EngineError> {
        let Real { id, job, run_time } =
            self.jobs.get(&attempt.job).ok_or(EngineError::Unknown { attempt })?;
        let point = allotment.point();
        let caps = match self.naming {
            Naming::Counted => None,
            Naming::Named => allotment.caps(),
        };
        let outcome = match caps {
            None => self.truth.outcome(*id, job, *run_time, &point),
            Some(caps) => self.truth.outcome_on(*id, job, *run_time, &point, &caps),
        };
        Ok((outcome.run_time, point.time))
    }

    fn running(&mut self, attempt: Attempt) -> Result<&mut Progress, EngineError> {
        match self.attempts.get_mut(&attempt) {
            Some(State::Running { progress }) => Ok(progress),
            _ => Err(EngineError::Unknown { attempt }),
        }
    }
}

impl Immediate for Replay {
    fn name(&self) -> &'static str {
        "a replay"
    }

    fn start(&mut self, launch: &Launch) -> Result<(), EngineError> {
        let (attempt, mut world) = (launch.attempt, self.world());
        if world.attempts.contains_key(&attempt) {
            return Err(EngineError::Again { attempt });
        }
        let (whole, limit) = world.times(attempt, &launch.allotment)?;
        let progress = Progress::start(world.now, whole, limit);
        world.attempts.insert(attempt, State::Running { progress });
        Ok(())
    }

    fn set(
        &mut self,
        attempt: Attempt,
        allotment: &Allotment,
        pause: Span,
    ) -> Result<(), EngineError> {
        let mut world = self.world();
        let (now, (whole, limit)) = (world.now, world.times(attempt, allotment)?);
        world.running(attempt)?.change(now, whole, limit, pause);
        Ok(())
    }

    /// A job that is asked to end does so at once.
    fn signal(&mut self, attempt: Attempt, signal: Signal) -> Result<(), EngineError> {
        let mut world = self.world();
        let now = world.now;
        let progress = world.running(attempt)?;
        let number = match signal {
            Signal::Suspend => {
                progress.suspend(now);
                return Ok(());
            }
            Signal::Resume => {
                progress.resume(now);
                return Ok(());
            }
            Signal::Terminate => 15,
            Signal::Kill => 9,
        };
        let end = End::Signalled(number);
        world.attempts.insert(attempt, State::Over { at: now, end, is_told: false });
        Ok(())
    }

    /// Attempts in the order in which they ended, then by number.
    fn ended(&mut self) -> Vec<(Attempt, End)> {
        let mut news = Vec::new();
        for (attempt, state) in &mut self.world().attempts {
            if let State::Over { at, end, is_told } = state
                && !std::mem::replace(is_told, true)
            {
                news.push((*at, *attempt, end.clone()));
            }
        }
        news.sort_by_key(|(at, attempt, _)| (*at, *attempt));
        news.into_iter().map(|(_, attempt, end)| (attempt, end)).collect()
    }

    fn find(&mut self, attempt: Attempt) -> Result<Found, EngineError> {
        let world = self.world();
        Ok(match world.attempts.get(&attempt) {
            None => Found::NeverStarted,
            Some(State::Running { .. }) => Found::Running,
            Some(State::Over { at, end, .. }) => {
                Found::Ended { end: end.clone(), ago: world.now.since(*at) }
            }
        })
    }

    fn forget(&mut self, attempt: Attempt) {
        self.world().attempts.remove(&attempt);
    }
}

#[cfg(test)]
mod tests;
