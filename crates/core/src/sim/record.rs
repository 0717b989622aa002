//! What became of a job.

use crate::dispatch::Rejection;
use crate::model::OperatingPoint;
use crate::policy::DropReason;
use crate::units::{Instant, Watts};

/// What became of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it started; for a job that never ran, when that was decided.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
    /// What its nodes drew together.
    pub power: Watts,
    /// What each of its nodes could draw at most.
    pub cap: Watts,
    /// How many nodes it had; none if it never ran.
    pub nodes: u32,
    /// How many cores it used in each of them.
    pub cores: u32,
    /// How often a failing node threw it out, so that it had to start again.
    pub restarts: u16,
    /// How often its operating point changed while it ran. What it had at its end is what stands
    /// here.
    pub changes: u32,
    /// How it ended.
    pub state: State,
    /// Whether it started while a job ahead of it in the queue still waited.
    pub backfilled: bool,
}

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits, or never got to run.
    Waiting,
    /// The job runs.
    Running,
    /// It ran to its end.
    Completed,
    /// It was ended at its limit.
    Killed,
    /// It was turned away: it could never run.
    Rejected(Rejection),
    /// The policy gave it up.
    Dropped(DropReason),
}

impl State {
    /// The state in one word.
    pub fn name(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Running => "running",
            State::Completed => "completed",
            State::Killed => "killed",
            State::Rejected(_) => "rejected",
            State::Dropped(_) => "dropped",
        }
    }

    /// Whether the job ran to some end.
    #[inline]
    pub fn has_run(self) -> bool {
        matches!(self, State::Completed | State::Killed)
    }
}

impl Record {
    /// Which of its ends to come is the last one: it goes up whenever another one counts.
    #[inline]
    pub(super) fn generation(&self) -> u32 {
        self.changes.wrapping_add(u32::from(self.restarts)) & 0x7fff_ffff
    }

    /// What is left of it when the job does not run: how often it began and changed before.
    pub(super) fn waiting_again(&self) -> Record {
        let Record { restarts, changes, .. } = *self;
        Record { restarts, changes, ..Record::WAITING }
    }

    /// The job runs at a point from now until an end that is expected.
    #[inline]
    pub(super) fn started(
        &self,
        start: Instant,
        end: Instant,
        point: &OperatingPoint,
        power: Watts,
        backfilled: bool,
    ) -> Record {
        Record {
            start,
            end,
            nodes: point.nodes,
            cores: point.cores,
            cap: point.cap,
            power,
            state: State::Running,
            backfilled,
            ..self.waiting_again()
        }
    }

    pub(super) const WAITING: Record = Record {
        start: Instant::NEVER,
        end: Instant::NEVER,
        power: Watts::ZERO,
        cap: Watts::ZERO,
        nodes: 0,
        cores: 0,
        restarts: 0,
        changes: 0,
        state: State::Waiting,
        backfilled: false,
    };
}
