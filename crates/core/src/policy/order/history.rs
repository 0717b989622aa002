//! Order by what jobs are expected to take, given what their users' jobs took before.
//!
//! The expectation is over the run times of the last jobs of the same user that ended. Those with the same
//! request and size count four times, those with the same request twice. To these come the shares of their
//! requests that the jobs of all users used lately. No run time counts for more than the job itself asks
//! for. Where the system decides about reservations and limits, it keeps what the user asked for.

use std::collections::{HashMap, VecDeque};

use super::cost::{Cost, log2};
use crate::job::{Job, UserId};
use crate::model::OperatingPoint;
use crate::policy::{PastJob, View};
use crate::units::{Instant, JobId, Span};

/// How many of a user's last jobs are remembered.
const OF_A_USER: usize = 48;
/// How many of the last jobs of all users are.
const OF_ALL: usize = 32;
/// What the jobs of all users count for together.
const WEIGHT_OF_ALL: u64 = 2;
/// Shorter run times count as this long: nobody minds the difference.
const THRESHOLD_MS: u64 = 600_000;

/// A job costs √nodes · √(E(time) / E(1 / time)), by what jobs of its user took.
#[derive(Clone, Debug, Default)]
pub struct History {
    users: HashMap<Option<UserId>, VecDeque<Ended>>,
    /// The last jobs of all users: which share of the time they asked for they took, in 2⁻¹⁶.
    shares: VecDeque<u64>,
    /// Those that run.
    running: HashMap<JobId, Running>,
}

/// A job that ended.
#[derive(Clone, Copy, Debug)]
struct Ended {
    nodes: u32,
    requested: Span,
    /// What it would have taken at nominal speed, in milliseconds.
    run_ms: u64,
}

/// A job that runs.
#[derive(Clone, Copy, Debug)]
struct Running {
    /// When it is expected to have done all of its work, at the point it runs at.
    until: Instant,
    /// How long all of its work takes at that point, and at the nominal one.
    limit: Span,
    nominal: Span,
}

impl Running {
    /// How long it would have run at nominal speed, if it ends now.
    fn run_ms(&self, now: Instant) -> u64 {
        let limit = u128::from(self.limit.millis().max(1));
        let left = u128::from(self.until.since(now).millis()).min(limit);
        ((limit - left) * u128::from(self.nominal.millis()) / limit) as u64
    }
}

impl History {
    /// After how much waiting a job usually counts half as much.
    pub const HALVING: Span = Span::from_secs(16 * 3600);

    /// Takes in a job that ended.
    fn remember(&mut self, user: Option<UserId>, ended: Ended) {
        let requested = ended.requested.millis().max(1);
        push(&mut self.shares, (ended.run_ms.min(requested) << 16) / requested, OF_ALL);
        push(self.users.entry(user).or_default(), ended, OF_A_USER);
    }

    /// What jobs like this one took, each with its weight.
    fn examples(
        &self,
        user: Option<UserId>,
        nodes: u32,
        requested: Span,
    ) -> impl Iterator<Item = (u64, u64)> {
        let request = requested.millis().max(1);
        // Weights are in parts of this, so that those of all users can be shared out among them.
        let unit = self.shares.len().max(1) as u64;
        let own = self.users.get(&user).into_iter().flatten().map(move |ended| {
            let weight = match (ended.requested == requested, ended.nodes == nodes) {
                (true, true) => 4,
                (true, false) => 2,
                (false, _) => 1,
            };
            (ended.run_ms.min(request), weight * unit)
        });
        let of_all = self.shares.iter().map(move |share| {
            (((u128::from(request) * u128::from(*share)) >> 16) as u64, WEIGHT_OF_ALL)
        });
        // Until somebody has ended, users are believed.
        let believed = self.shares.is_empty().then_some((request, WEIGHT_OF_ALL));
        own.chain(of_all).chain(believed)
    }

    /// How long a job is expected to go on that ran for so long, at nominal speed: the mean of what is left of
    /// those examples that ran longer, or all that it may still take if there are none.
    pub fn left(&self, job: &Job, done: Span) -> Span {
        let (mut sum, mut weights) = (0u128, 0u128);
        for (run_ms, weight) in self.examples(job.user, job.nodes, job.requested) {
            if let Some(left) = run_ms.checked_sub(done.millis()).filter(|left| *left > 0) {
                sum += u128::from(weight) * u128::from(left);
                weights += u128::from(weight);
            }
        }
        match weights {
            0 => job.requested.saturating_sub(done),
            _ => Span::from_millis((sum / weights) as u64),
        }
    }

    /// The logarithm of E[time] / E[1 / max(time, threshold)], with 16 bits after the point.
    fn log_square(&self, user: Option<UserId>, nodes: u32, requested: Span) -> i64 {
        // Both means have the same weights below the line, so that their ratio does without.
        let (mut times, mut inverses) = (0u64, 0u64);
        for (run_ms, weight) in self.examples(user, nodes, requested) {
            times = times.saturating_add(weight.saturating_mul(run_ms.max(1)));
            inverses += weight * ((1 << 60) / run_ms.max(THRESHOLD_MS));
        }
        log2(times) + (60 << 16) - log2(inverses)
    }
}

fn push<T>(list: &mut VecDeque<T>, item: T, most: usize) {
    if list.len() == most {
        list.pop_front();
    }
    list.push_back(item);
}

impl Cost for History {
    fn log(&self, view: &View<'_>, job: JobId) -> i64 {
        let job = view.job(job);
        let square = self.log_square(job.user, job.nodes, job.requested);
        (log2(u64::from(job.nodes)) + square) / 2
    }

    fn recall(&mut self, past: &[PastJob]) {
        for &PastJob { user, nodes, requested, run_time } in past {
            self.remember(user, Ended { nodes, requested, run_ms: run_time.millis() });
        }
    }

    fn learn(&mut self, view: &View<'_>) {
        for holding in view.changes.released {
            let Some(running) = self.running.remove(&holding.job) else { continue };
            let run_ms = running.run_ms(view.now);
            let job = view.job(holding.job);
            let ended = Ended { nodes: job.nodes, requested: job.requested, run_ms };
            self.remember(job.user, ended);
        }
    }

    fn goes_on(&mut self, view: &View<'_>, job: JobId, point: &OperatingPoint, left: Span) {
        let (until, nominal) = (view.now + left, view.nominal(job).time);
        self.running.insert(job, Running { until, limit: point.time, nominal });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(nodes: u32, requested: u32, run_s: u64) -> Ended {
        Ended { nodes, requested: Span::from_secs(requested), run_ms: run_s * 1000 }
    }

    /// By hand: one like it took 1000 s (weight 4), one with the same request 4000 s (weight 2), another
    /// 9000 s (weight 1, cut at the request of 7200 s); of all users, these three shares of their requests:
    /// 1000/7200, 4000/7200 and all, each with a third of the weight of two.
    #[test]
    fn expectations_by_hand() {
        let mut history = History::default();
        for one in [ended(4, 7200, 1000), ended(8, 7200, 4000), ended(4, 9000, 9000)] {
            history.remember(None, one);
        }
        let examples: Vec<(u64, u64)> = history.examples(None, 4, Span::from_secs(7200)).collect();
        // Weights are in thirds.
        let own = [(1_000_000, 12), (4_000_000, 6), (7_200_000, 3)];
        assert_eq!(examples[..3], own);
        assert_eq!(examples[5], (7_200_000, 2));
        let mean: f64 =
            (4.0 * 1000.0 + 2.0 * 4000.0 + 7200.0) + 2.0 / 3.0 * (1000.0 + 4000.0 + 7200.0);
        let inverse = (4.0 / 1000.0 + 2.0 / 4000.0 + 1.0 / 7200.0)
            + 2.0 / 3.0 * (1.0 / 1000.0 + 1.0 / 4000.0 + 1.0 / 7200.0);
        // In milliseconds both.
        let expected = (mean * 1e3 / (inverse / 1e3)).log2();
        let found = history.log_square(None, 4, Span::from_secs(7200)) as f64 / 65536.0;
        assert!((found - expected).abs() < 1e-3, "{found} instead of {expected}");
    }

    #[test]
    fn users_are_believed_until_somebody_has_ended() {
        let history = History::default();
        let square = history.log_square(None, 1, Span::from_secs(7200));
        assert!((square - 2 * log2(7_200_000)).abs() < 8);
    }
}
