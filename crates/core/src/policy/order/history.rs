//! Order by what jobs are expected to take, given what their users' jobs took before.
//!
//! The expectation is over the run times of the last jobs of the same user that ended. Those with the same
//! request and size count four times, those with the same request twice. To these come the shares of their
//! requests that the jobs of all users used lately. No run time counts for more than the job itself asks
//! for. Where the system decides about reservations and limits, it keeps what the user asked for.
//!
//! What jobs draw is predicted in the same way, where it is measured: as a share of what the model says of
//! them. No decision rests on that. How far off predictions were is kept, and what users' requests and the
//! model would have been off on the same jobs ([`Predictions`]).

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::str::FromStr;

use super::cost::Cost;
use crate::job::{Job, UserId};
use crate::ledger::Holding;
use crate::model::OperatingPoint;
use crate::policy::log2::log2;
use crate::policy::predictions::Collected;
use crate::policy::{Drawn, PastJob, Predictions, View};
use crate::units::{Instant, JobId, Span};

/// How many of a user's last jobs are remembered.
const OF_A_USER: usize = 48;
/// How many of the last jobs of all users are.
const OF_ALL: usize = 32;
/// What the jobs of all users count for together.
const WEIGHT_OF_ALL: u64 = 2;
/// Shorter run times count as this long: nobody minds the difference.
const THRESHOLD_MS: u64 = 600_000;
/// In errors, shorter run times count as this long: logs are written in seconds.
const SHORTEST_MS: u64 = 1000;
/// Times of this many bits, in milliseconds, are 34 years. With all examples and their weights, their sum fits 64 bits.
const SHORT_BITS: u32 = 40;
/// What is drawn as the model says, as a share in 2⁻¹⁶.
const AS_BELIEVED: u64 = 1 << 16;

/// What is learned from jobs that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Predict {
    /// How long jobs run, and what they draw.
    #[default]
    All,
    /// How long jobs run.
    Time,
    /// Nothing: users are believed.
    Off,
}

impl Predict {
    /// All of them.
    pub(crate) const ALL: [Predict; 3] = [Predict::All, Predict::Time, Predict::Off];
}

impl fmt::Display for Predict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Predict::All => "all",
            Predict::Time => "time",
            Predict::Off => "off",
        })
    }
}

impl FromStr for Predict {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Predict::ALL.into_iter().find(|predict| predict.to_string() == text);
        named.ok_or("write all, time or off")
    }
}

/// A job costs √nodes · √(E(time) / E(1 / time)), by what jobs of its user took.
#[derive(Clone, Debug, Default)]
pub struct History {
    predict: Predict,
    users: HashMap<Option<UserId>, VecDeque<Ended>>,
    /// The last jobs of all users: which share of the time they asked for they took, in 2⁻¹⁶.
    shares: VecDeque<u64>,
    /// The last jobs of all users whose draw was measured: which share of what the model says they drew, in
    /// 2⁻¹⁶.
    draws: VecDeque<u64>,
    /// What those that wait are expected to take at nominal speed, in milliseconds.
    waiting: HashMap<JobId, u64>,
    /// Those that run.
    running: HashMap<JobId, Running>,
    times: Collected,
    powers: Collected,
}

/// A job that ended.
#[derive(Clone, Copy, Debug)]
struct Ended {
    nodes: u32,
    requested: Span,
    /// What it would have taken at nominal speed, in milliseconds.
    run_ms: u64,
    /// Which share of what the model says it drew, in 2⁻¹⁶, if it was measured.
    draw: Option<u64>,
}

impl Ended {
    /// How much it counts for a job of so many nodes that asks for so much time.
    fn weight(&self, nodes: u32, requested: Span) -> u64 {
        match (self.requested == requested, self.nodes == nodes) {
            (true, true) => 4,
            (true, false) => 2,
            (false, _) => 1,
        }
    }
}

/// A job that runs.
#[derive(Clone, Copy, Debug)]
struct Running {
    /// When it is expected to have done all of its work, at the point it runs at.
    until: Instant,
    /// How long all of its work takes at that point, and at the nominal one.
    limit: Span,
    nominal: Span,
    /// What it was expected to take at nominal speed when it was submitted, in milliseconds.
    expected_ms: Option<u64>,
    /// Which share of what the model says it is expected to draw, in 2⁻¹⁶.
    draw: u64,
}

/// What a job is expected to take.
#[derive(Clone, Copy, Debug)]
struct Expected {
    /// The mean, in milliseconds.
    time_ms: u64,
    /// The logarithm of E[time] / E[1 / max(time, threshold)], with 16 bits after the point.
    log_square: i64,
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
    pub(crate) const HALVING: Span = Span::from_secs(16 * 3600);

    /// An empty memory that learns this.
    pub(crate) fn that_predicts(predict: Predict) -> Self {
        History { predict, ..History::default() }
    }

    /// Takes in a job that ended.
    fn remember(&mut self, user: Option<UserId>, ended: Ended) {
        if self.predict == Predict::Off {
            return;
        }
        if let Some(draw) = ended.draw {
            push(&mut self.draws, draw, OF_ALL);
        }
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
        let own =
            self.users.get(&user).into_iter().flatten().map(move |ended| {
                (ended.run_ms.min(request), ended.weight(nodes, requested) * unit)
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
    pub(crate) fn left(&self, job: &Job, done: Span) -> Span {
        let request = job.requested.millis().max(1);
        if request >> SHORT_BITS != 0 {
            return self.left_of_any(job, done);
        }
        let unit = self.shares.len().max(1) as u64;
        let (mut sum, mut weights) = (0u64, 0u64);
        // Without branches: which examples ran longer cannot be guessed.
        let mut add = |run_ms: u64, weight: u64| {
            let left = run_ms.saturating_sub(done.millis());
            sum += weight * left;
            weights += if left > 0 { weight } else { 0 };
        };
        for ended in self.users.get(&job.user).into_iter().flatten() {
            let weight = ended.weight(job.nodes, job.requested) * unit;
            add(ended.run_ms.min(request), weight);
        }
        self.shares.iter().for_each(|share| add((request * share) >> 16, WEIGHT_OF_ALL));
        if self.shares.is_empty() {
            add(request, WEIGHT_OF_ALL);
        }
        match weights {
            0 => job.requested.saturating_sub(done),
            _ => Span::from_millis(sum / weights),
        }
    }

    /// The same, however long the time is that the job asks for.
    fn left_of_any(&self, job: &Job, done: Span) -> Span {
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

    /// What a job is expected to take.
    fn expected(&self, user: Option<UserId>, nodes: u32, requested: Span) -> Expected {
        // Both means have the same weights below the line, so that their ratio does without.
        let (mut times, mut inverses, mut weights) = (0u64, 0u64, 0u64);
        for (run_ms, weight) in self.examples(user, nodes, requested) {
            times = times.saturating_add(weight.saturating_mul(run_ms.max(1)));
            inverses += weight * ((1 << 60) / run_ms.max(THRESHOLD_MS));
            weights += weight;
        }
        let log_square = log2(times) + (60 << 16) - log2(inverses);
        Expected { time_ms: times / weights.max(1), log_square }
    }

    /// Which share of what the model says a job is expected to draw, in 2⁻¹⁶.
    fn expected_draw(&self, job: &Job) -> u64 {
        let unit = self.draws.len() as u64;
        if unit == 0 {
            return AS_BELIEVED;
        }
        let of_all: u64 = self.draws.iter().sum();
        let (mut draws, mut weights) = (u128::from(of_all * WEIGHT_OF_ALL), WEIGHT_OF_ALL * unit);
        for ended in self.users.get(&job.user).into_iter().flatten() {
            let Some(draw) = ended.draw else { continue };
            let weight = ended.weight(job.nodes, job.requested) * unit;
            draws += u128::from(draw) * u128::from(weight);
            weights += weight;
        }
        u64::try_from(draws / u128::from(weights)).unwrap_or(u64::MAX)
    }

    /// A job ended that had been expected to take so long.
    fn note_time(&mut self, expected_ms: u64, ended: &Ended) {
        let at_least = |millis: u64| millis.max(SHORTEST_MS);
        let requested = at_least(ended.requested.millis());
        self.times.note(at_least(expected_ms), requested, at_least(ended.run_ms));
    }

    /// Which share of what was believed a job drew, in 2⁻¹⁶, if that is to be learned.
    fn draw(&self, holding: &Holding, drawn: Option<&Drawn>) -> Option<u64> {
        let drawn = drawn.filter(|_| self.predict == Predict::All)?.power.milliwatts();
        let believed = u128::from(holding.power.milliwatts());
        let share = (u128::from(drawn) << 16).checked_div(believed)?;
        u32::try_from(share).ok().map(u64::from)
    }
}

fn push<T>(list: &mut VecDeque<T>, item: T, most: usize) {
    if list.len() == most {
        list.pop_front();
    }
    list.push_back(item);
}

impl Cost for History {
    fn log(&mut self, view: &View<'_>, id: JobId) -> i64 {
        let job = view.job(id);
        let expected = self.expected(job.user, job.nodes, job.requested);
        self.waiting.insert(id, expected.time_ms);
        (log2(u64::from(job.nodes)) + expected.log_square) / 2
    }

    fn recall(&mut self, past: &[PastJob]) {
        // In the order in which it happened: nothing is expected of a job that only later ones could tell.
        let ends = past.iter().enumerate().map(|(place, job)| (job.end, false, place));
        let submissions = past.iter().enumerate().map(|(place, job)| (job.submit, true, place));
        let mut events: Vec<(Instant, bool, usize)> = ends.chain(submissions).collect();
        events.sort_unstable();
        let mut expected = vec![None; past.len()];
        for (_, is_submission, place) in events {
            let PastJob { user, nodes, requested, run_time, .. } = past[place];
            if is_submission {
                expected[place] = Some(self.expected(user, nodes, requested).time_ms);
                continue;
            }
            let ended = Ended { nodes, requested, run_ms: run_time.millis(), draw: None };
            if let Some(expected_ms) = expected[place] {
                self.note_time(expected_ms, &ended);
            }
            self.remember(user, ended);
        }
    }

    fn learn(&mut self, view: &View<'_>) {
        let mut drawn = view.changes.drawn.iter().peekable();
        for holding in view.changes.released {
            let drawn = drawn.next_if(|drawn| drawn.job == holding.job);
            let Some(running) = self.running.remove(&holding.job) else { continue };
            // A node failed: the job has not ended, but waits again.
            if view.queue.contains(holding.job) {
                continue;
            }
            let run_ms = running.run_ms(view.now);
            let job = view.job(holding.job);
            let draw = self.draw(holding, drawn);
            let ended = Ended { nodes: job.nodes, requested: job.requested, run_ms, draw };
            if let Some(expected_ms) = running.expected_ms {
                self.note_time(expected_ms, &ended);
            }
            if let Some(draw) = draw {
                self.powers.note(running.draw, AS_BELIEVED, draw);
            }
            self.remember(job.user, ended);
        }
    }

    fn goes_on(&mut self, view: &View<'_>, job: JobId, point: &OperatingPoint, left: Span) {
        let (until, nominal) = (view.now + left, view.nominal(job).time);
        // What was expected stays so when it is changed.
        let (expected_ms, draw) = match self.running.get(&job) {
            Some(running) => (running.expected_ms, running.draw),
            None => (self.waiting.remove(&job), self.expected_draw(view.job(job))),
        };
        let running = Running { until, limit: point.time, nominal, expected_ms, draw };
        self.running.insert(job, running);
    }

    fn left(&mut self, job: JobId) {
        self.waiting.remove(&job);
    }

    fn withdrawn(&mut self, job: JobId) {
        self.running.remove(&job);
    }

    fn predictions(&self) -> Option<Predictions> {
        let made = Predictions { time: self.times.accuracy(), power: self.powers.accuracy() };
        (self.predict != Predict::Off).then_some(made)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;

    use super::*;

    fn ended(nodes: u32, requested: u32, run_s: u64) -> Ended {
        let requested = Span::from_secs(requested);
        Ended { nodes, requested, run_ms: run_s * 1000, draw: None }
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
        let found = history.expected(None, 4, Span::from_secs(7200));
        let (found, time_ms) = (found.log_square as f64 / 65536.0, found.time_ms as f64);
        assert!((found - expected).abs() < 1e-3, "{found} instead of {expected}");
        // The weights: 4 + 2 + 1, and 2 for those of all.
        assert!((time_ms - mean * 1e3 / 9.0).abs() < 100.0, "{time_ms} instead of {mean}");
    }

    proptest! {
        /// What is left in 64 bits and without branches is what the definition says.
        #[test]
        fn what_is_left_agrees_with_the_definition(
            past in prop::collection::vec((1u32..4, 1u32..4, 1u32..50, 0u64..60), 0..120),
            (nodes, requested) in (1u32..4, 1u32..50),
            done in 0u32..60,
        ) {
            let mut history = History::default();
            let user = |number| NonZeroU32::new(number).map(UserId);
            for (number, nodes, requested, run_s) in past {
                history.remember(user(number), ended(nodes, requested, run_s));
            }
            let mut job = Job::new(1, Instant::ZERO, nodes, Span::from_secs(requested));
            job.user = user(1);
            let done = Span::from_secs(done);
            prop_assert_eq!(history.left(&job, done), history.left_of_any(&job, done));
        }
    }

    #[test]
    fn users_are_believed_until_somebody_has_ended() {
        let history = History::default();
        let expected = history.expected(None, 1, Span::from_secs(7200));
        assert!((expected.log_square - 2 * log2(7_200_000)).abs() < 8);
        assert_eq!(expected.time_ms, 7_200_000);
    }

    /// By hand: what is recalled is predicted from what had ended when it was submitted. Two jobs come together
    /// and ask for ten hours; they take one and two. The third comes when the first has ended, and the fourth when
    /// all have.
    #[test]
    fn what_is_recalled_is_predicted_in_its_order() {
        let hour = |hours: u64| Instant::from_millis(hours * 3_600_000);
        let past = |submit, end, hours: u32| PastJob {
            user: None,
            nodes: 1,
            requested: Span::from_secs(36_000),
            run_time: Span::from_secs(hours * 3600),
            submit: hour(submit),
            end: hour(end),
        };
        let of = |jobs: &[PastJob]| {
            let mut history = History::default();
            history.recall(jobs);
            history.predictions().unwrap().time.unwrap()
        };
        let jobs = [past(0, 1, 1), past(0, 2, 2), past(1, 3, 1), past(4, 9, 1)];
        let close = |found: f64, expected: f64| (found - expected).abs() < 1e-3;
        // Users are believed: ten instead of one, and of two.
        let two = of(&jobs[..2]);
        assert!(close(two.predicted.median, 5.0) && close(two.predicted.p90, 10.0), "{two:?}");
        // The third is expected to take what the first took: the errors are 1, 5 and 10.
        let three = of(&jobs[..3]);
        assert!(close(three.predicted.median, 5.0), "{three:?}");
        // The fourth, the mean of one, two and one hours.
        let four = of(&jobs);
        assert!(close(four.predicted.median, 4.0 / 3.0), "{four:?}");
    }

    #[test]
    fn nothing_is_learned_where_that_is_switched_off() {
        let mut history = History::that_predicts(Predict::Off);
        history.remember(None, ended(4, 7200, 10));
        let expected = history.expected(None, 4, Span::from_secs(7200));
        assert_eq!((expected.time_ms, history.predictions()), (7_200_000, None));
    }
}
