//! How long Slurm takes, and how long Busbar does.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::engine::{EnginePace, Latest};

/// A cluster, with the time that was spent in it.
pub(super) struct Timed<C> {
    cluster: C,
    spent: Cell<Duration>,
}

impl<C> Timed<C> {
    pub(super) fn new(cluster: C) -> Self {
        Timed { cluster, spent: Cell::default() }
    }

    /// Asks the cluster, and counts how long that takes.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&C) -> T) -> T {
        let begun = Instant::now();
        let answer = question(&self.cluster);
        self.spent.set(self.spent.get() + begun.elapsed());
        answer
    }

    /// The time spent in the cluster since the last call.
    pub(super) fn take_spent(&self) -> Duration {
        self.spent.take()
    }
}

/// How long something took that uses the cluster: all of it, and without Slurm.
#[derive(Default)]
pub(super) struct Effort {
    whole: Latest,
    own: Latest,
}

impl Effort {
    pub(super) fn note(&mut self, took: Duration, in_slurm: Duration) {
        self.whole.note(took);
        self.own.note(took.saturating_sub(in_slurm));
    }
}

/// The efforts of a worker.
#[derive(Default)]
pub(super) struct Efforts {
    pub(super) looks: Effort,
    pub(super) acts: Effort,
}

impl Efforts {
    pub(super) fn pace(&self) -> EnginePace {
        EnginePace {
            looks: self.looks.whole.count(),
            longest_look: self.looks.whole.longest(),
            longest_own_look: self.looks.own.longest(),
            longest_act: self.acts.whole.longest(),
            longest_own_act: self.acts.own.longest(),
        }
    }
}
