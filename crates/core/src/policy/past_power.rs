//! What jobs will draw, by what jobs like them drew before.
//!
//! This is what a site can know when a job is submitted: what jobs had drawn that had ended by then. A prediction starts
//! from the mean, on each node, of the last jobs of the same user and application; if there are none, of the user; then
//! of the application; then of all. The first job of all is expected to draw what nodes are rated at. What is added to
//! the mean, so that few jobs draw more than is predicted, comes from how far off earlier means were (`margins`).
//!
//! Who had ended by when is taken from the log, so that what is known of a job does not depend on the policy.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::Hash;

mod margins;

pub use margins::Level;
use margins::{Margins, Ratio};

use super::predictions::{Accuracy, Collected};
use crate::job::{ApplicationId, UserId};
use crate::units::{Instant, Watts};

/// How many of the last jobs of a kind are remembered.
const REMEMBERED: usize = 8;

/// A job of a log, with what a node of it was measured to draw.
#[derive(Clone, Copy, Debug)]
pub struct PastDraw {
    /// When it was submitted.
    pub submit: Instant,
    /// When it had ended.
    pub end: Instant,
    /// The user who submitted it.
    pub user: Option<UserId>,
    /// What it ran.
    pub application: Option<ApplicationId>,
    /// What each of its nodes drew in the mean, if that was measured.
    pub node_power: Option<Watts>,
}

/// What nodes of jobs are expected to draw, by job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PowerForecast {
    /// In whole watts, rounded up, and never above what a node is rated at.
    pub(crate) node_powers: Vec<Watts>,
    /// How far off that was, beside the rated power. Nothing if no job was measured.
    pub(crate) accuracy: Option<Accuracy>,
}

/// Which jobs of the past a mean is of, the nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    UserAndApplication,
    User,
    Application,
    All,
}

impl Kind {
    const COUNT: usize = Kind::All as usize + 1;
}

/// A mean of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mean {
    of: Kind,
    milliwatts: u64,
}

/// The last few values of a kind.
#[derive(Clone, Debug, Default)]
struct Recent {
    values: VecDeque<u64>,
    sum: u64,
}

impl Recent {
    fn add(&mut self, value: u64) {
        if self.values.len() == REMEMBERED {
            self.sum -= self.values.pop_front().unwrap_or(0);
        }
        self.values.push_back(value);
        self.sum += value;
    }

    fn mean(&self) -> Option<u64> {
        let count = self.values.len() as u64;
        (count > 0).then(|| self.sum.div_ceil(count))
    }
}

/// What jobs drew that have ended, in milliwatts for each node.
#[derive(Clone, Debug, Default)]
struct Memory {
    both: HashMap<(UserId, ApplicationId), Recent>,
    users: HashMap<UserId, Recent>,
    applications: HashMap<ApplicationId, Recent>,
    all: Recent,
}

impl Memory {
    fn learn(&mut self, job: &PastDraw) {
        let Some(power) = job.node_power else { return };
        let power = power.milliwatts();
        fn add<K: Eq + Hash>(to: &mut HashMap<K, Recent>, key: Option<K>, power: u64) {
            if let Some(key) = key {
                to.entry(key).or_default().add(power);
            }
        }
        add(&mut self.both, job.user.zip(job.application), power);
        add(&mut self.users, job.user, power);
        add(&mut self.applications, job.application, power);
        self.all.add(power);
    }

    /// The mean of the jobs that are most like this one.
    fn mean(&self, job: &PastDraw) -> Option<Mean> {
        let both = || self.both.get(&job.user.zip(job.application)?)?.mean();
        let user = || self.users.get(&job.user?)?.mean();
        let application = || self.applications.get(&job.application?)?.mean();
        let of = |of: Kind| move |milliwatts: u64| Mean { of, milliwatts };
        both()
            .map(of(Kind::UserAndApplication))
            .or_else(|| user().map(of(Kind::User)))
            .or_else(|| application().map(of(Kind::Application)))
            .or_else(|| self.all.mean().map(of(Kind::All)))
    }
}

/// A measured job that has not ended.
struct Pending {
    /// The mean when it was submitted, if there was a past.
    mean: Option<Mean>,
    drawn: Watts,
}

impl PowerForecast {
    /// What jobs, in submit order, are expected to draw on nodes that are rated at so much.
    pub(crate) fn of(jobs: &[PastDraw], rated: Watts, level: Level) -> Self {
        let (mut memory, mut margins) = (Memory::default(), Margins::new(level));
        let mut pending: HashMap<usize, Pending> = HashMap::new();
        let mut ends: BinaryHeap<Reverse<(Instant, usize)>> = BinaryHeap::new();
        let mut errors = Collected::default();
        let mut node_powers = Vec::with_capacity(jobs.len());
        for (place, job) in jobs.iter().enumerate() {
            while let Some(Reverse((end, ended))) = ends.peek().copied()
                && end <= job.submit
            {
                ends.pop();
                memory.learn(&jobs[ended]);
                if let Some(Pending { mean: Some(mean), drawn }) = pending.remove(&ended) {
                    margins.learn(mean.of, Ratio::of(drawn.milliwatts(), mean.milliwatts));
                }
            }
            let mean = memory.mean(job);
            let expected = mean.and_then(|mean| margins.above(mean.of, mean.milliwatts));
            let expected = expected.map_or(rated, whole_watts).min(rated);
            if let Some(drawn) = job.node_power {
                let drawn = drawn.min(rated);
                errors.note(expected.milliwatts(), rated.milliwatts(), drawn.milliwatts());
                ends.push(Reverse((job.end, place)));
                pending.insert(place, Pending { mean, drawn });
            }
            node_powers.push(expected);
        }
        PowerForecast { node_powers, accuracy: errors.accuracy_with_shortfalls() }
    }
}

/// Expectations that differ by less than a watt are alike: what is worked out for one job serves many.
fn whole_watts(milliwatts: u64) -> Watts {
    Watts::from_milliwatts(milliwatts.div_ceil(1000) * 1000)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::units::Share;

    fn job(submit: u32, end: u32, user: u32, application: u32, watts: u64) -> PastDraw {
        PastDraw {
            submit: Instant::from_secs(submit),
            end: Instant::from_secs(end),
            user: NonZeroU32::new(user).map(UserId),
            application: NonZeroU32::new(application).map(ApplicationId),
            node_power: (watts > 0).then(|| Watts::from_milliwatts(watts * 1000)),
        }
    }

    fn expected(jobs: &[PastDraw]) -> Vec<u64> {
        let forecast = PowerForecast::of(jobs, Watts::from_watts(500), Level::Mean);
        forecast.node_powers.iter().map(|power| power.milliwatts() / 1000).collect()
    }

    /// By hand: the first jobs know nothing; then what has ended counts, from the nearest kind on.
    #[test]
    fn expectations_by_hand() {
        let jobs = [
            job(0, 100, 1, 7, 200),
            // Nobody has ended.
            job(50, 300, 1, 8, 301),
            // The same user and application.
            job(100, 400, 1, 7, 100),
            // The user: 200 has ended, 301 has not.
            job(200, 500, 1, 9, 0),
            // The application of another user.
            job(300, 600, 2, 7, 400),
            // Nobody like it: all, of which 200 and 301 have ended; rounded up.
            job(300, 700, 3, 3, 400),
            // Its user's last jobs, but not the one that was not measured.
            job(500, 800, 1, 5, 400),
        ];
        assert_eq!(expected(&jobs), [500, 500, 200, 200, 200, 251, 201]);
    }

    #[test]
    fn only_the_last_jobs_count_and_no_node_draws_more_than_it_is_rated_at() {
        let mut jobs: Vec<PastDraw> =
            (0..20).map(|k| job(k * 10, k * 10 + 10, 1, 1, 100)).collect();
        jobs.extend((20..28).map(|k| job(k * 10, k * 10 + 10, 1, 1, 900)));
        jobs.push(job(1000, 1100, 1, 1, 900));
        let found = expected(&jobs);
        assert_eq!((found[19], found[21], found[28]), (100, 200, 500));
    }

    /// Of three jobs that drew 200 W, the first was expected to draw 500 W, the second 200 W, and one that drew
    /// 400 W was expected to draw 200 W, half of it.
    #[test]
    fn errors_by_hand() {
        let jobs = [job(0, 10, 1, 1, 200), job(10, 20, 1, 1, 200), job(20, 30, 1, 1, 400)];
        let accuracy =
            PowerForecast::of(&jobs, Watts::from_watts(500), Level::Mean).accuracy.unwrap();
        let close = |found: f64, expected: f64| (found - expected).abs() < 2e-4;
        assert_eq!(accuracy.jobs, 3);
        assert!(close(accuracy.predicted.median, 2.0) && close(accuracy.predicted.p90, 2.5));
        assert!(close(accuracy.baseline.median, 2.5) && close(accuracy.baseline.p90, 2.5));
        assert!(close(accuracy.under.unwrap(), 1.0 / 3.0), "{accuracy:?}");
    }

    /// Jobs of one user and application that draw 100 W, but for every fourth, which draws 150 W, one after the other. The
    /// mean of eight is then 112.5 W, and three of four jobs draw 100/112.5 of it, the fourth 150/112.5. So at 70 % the
    /// prediction is 100 W, which is too low for a quarter of the jobs, and at 80 % it is 150 W, which never is.
    #[test]
    fn a_level_is_the_share_of_jobs_that_draw_no_more() {
        let jobs: Vec<PastDraw> = (0..400)
            .map(|k| job(k * 10, k * 10 + 10, 1, 1, if k % 4 == 3 { 150 } else { 100 }))
            .collect();
        let settled = |percent| {
            let level = Level::Share(Share::percent(percent));
            let forecast = PowerForecast::of(&jobs, Watts::from_watts(500), level);
            forecast.node_powers[300..].to_vec()
        };
        let all = |watts: u64, found: Vec<Watts>| {
            let near = |power: &Watts| power.milliwatts().abs_diff(watts * 1000) <= 1000;
            assert!(found.iter().all(near), "{found:?}");
        };
        all(100, settled(70));
        all(150, settled(80));
    }

    /// With no other jobs before them that ended, nobody knows how far off a mean is: at 90 % nine of them are needed.
    #[test]
    fn a_level_is_not_claimed_before_it_can_be_known() {
        let jobs: Vec<PastDraw> = (0..12).map(|k| job(k * 10, k * 10 + 10, 1, 1, 100)).collect();
        let level = Level::Share(Share::percent(90));
        let forecast = PowerForecast::of(&jobs, Watts::from_watts(500), level);
        let watts: Vec<u64> =
            forecast.node_powers.iter().map(|power| power.milliwatts() / 1000).collect();
        // The first has no mean; the means of the next nine are known to be right when the eleventh comes.
        assert_eq!(watts, [500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 100, 100]);
    }
}
