//! The settings of running jobs as ladders, and the order in which they are climbed.
//!
//! Watts are given out one step at a time, to the job whose speed grows most per watt; a job's next step can be had only
//! after the one before. Which step comes next does not depend on how many watts there are, so the order of all steps is
//! kept from turn to turn: by the least growth of a job's steps up to this one, since a better step behind a poor one
//! comes right after it.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::settings::Settings;
use crate::model::OperatingPoint;
use crate::units::{JobId, Watts};

/// The settings of a job.
#[derive(Clone, Debug)]
pub(super) struct Ladder {
    /// The fastest first.
    settings: Settings,
}

impl Ladder {
    /// These settings, of which there is at least one.
    pub(super) fn of(settings: Settings) -> Self {
        Ladder { settings }
    }

    pub(super) fn settings(&self) -> &[OperatingPoint] {
        &self.settings
    }

    pub(super) fn setting(&self, place: usize) -> &OperatingPoint {
        &self.settings[place]
    }

    /// The slowest setting.
    pub(super) fn floor(&self) -> &OperatingPoint {
        &self.settings[self.settings.len() - 1]
    }

    /// How much faster the job gets per watt by the step from this place to the next faster one.
    fn gain(&self, place: usize) -> f64 {
        let (faster, slower) = (&self.settings[place - 1], &self.settings[place]);
        let fastest = self.settings[0].time.secs_f64();
        let speeds = fastest / faster.time.secs_f64() - fastest / slower.time.secs_f64();
        let watts = faster.power.saturating_sub(slower.power).as_f64();
        speeds / watts.max(f64::MIN_POSITIVE)
    }

    /// All steps from the floor up.
    pub(super) fn climbs(&self, job: JobId) -> impl Iterator<Item = Climb> + '_ {
        let mut least = f64::INFINITY;
        (1..self.settings.len()).rev().map(move |from| {
            least = std::cmp::min_by(least, self.gain(from), f64::total_cmp);
            let more = self.settings[from - 1].power.saturating_sub(self.settings[from].power);
            Climb { gain: least, job, from: from as u32, more }
        })
    }
}

/// A step of a job to the next faster setting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Climb {
    /// The least that its speed grows per watt by this step and those before it.
    gain: f64,
    pub(super) job: JobId,
    /// The setting it leads away from, counted from the fastest.
    from: u32,
    /// The watts it takes.
    pub(super) more: Watts,
}

/// The largest gain comes first, of equals the job that was submitted first, and of its steps the lowest.
impl Ord for Climb {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_gain = other.gain.total_cmp(&self.gain);
        by_gain.then(self.job.cmp(&other.job)).then(other.from.cmp(&self.from))
    }
}

impl PartialOrd for Climb {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Climb {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Climb {}

/// What is known of a running job.
#[derive(Clone, Debug)]
enum Known {
    /// It may not be changed, ever.
    LeftOut,
    Ladder(Box<Ladder>),
}

/// The ladders of running jobs.
#[derive(Clone, Debug)]
pub(super) struct Ladders {
    /// By job.
    known: Vec<Option<Known>>,
    /// The steps of all of them.
    climbs: BTreeSet<Climb>,
    /// No step takes less.
    least_climb: Watts,
}

impl Default for Ladders {
    fn default() -> Self {
        let (known, climbs) = (Vec::new(), BTreeSet::new());
        Ladders { known, climbs, least_climb: Watts::UNLIMITED }
    }
}

impl Ladders {
    /// The ladder of a job that has one.
    pub(super) fn of(&self, job: JobId) -> Option<&Ladder> {
        match self.known.get(job.index())? {
            Some(Known::Ladder(ladder)) => Some(ladder),
            _ => None,
        }
    }

    /// Whether it is known what may be done to a job.
    pub(super) fn is_known(&self, job: JobId) -> bool {
        self.known.get(job.index()).is_some_and(|known| known.is_some())
    }

    fn set(&mut self, job: JobId, known: Known) {
        self.remove(job);
        if self.known.len() <= job.index() {
            self.known.resize(job.index() + 1, None);
        }
        self.known[job.index()] = Some(known);
    }

    /// A job that must not be changed.
    pub(super) fn leave_out(&mut self, job: JobId) {
        self.set(job, Known::LeftOut);
    }

    /// A job that has these settings.
    pub(super) fn insert(&mut self, job: JobId, settings: Settings) {
        let ladder = Ladder::of(settings);
        self.least_climb =
            ladder.climbs(job).map(|climb| climb.more).fold(self.least_climb, Watts::min);
        self.set(job, Known::LeftOut);
        self.climbs.extend(ladder.climbs(job));
        self.known[job.index()] = Some(Known::Ladder(Box::new(ladder)));
    }

    /// Forgets a job.
    pub(super) fn remove(&mut self, job: JobId) {
        let known = self.known.get_mut(job.index()).and_then(Option::take);
        if let Some(Known::Ladder(ladder)) = known {
            for climb in ladder.climbs(job) {
                self.climbs.remove(&climb);
            }
        }
    }

    /// The fewest watts that a step takes; some may take more.
    pub(super) fn least_climb(&self) -> Watts {
        self.least_climb
    }

    /// All steps, and with them those of others, which are in order, too.
    pub(super) fn climbs_with<'a>(
        &'a self,
        others: &'a [Climb],
    ) -> impl Iterator<Item = &'a Climb> + 'a {
        let (mut own, mut others) = (self.climbs.iter().peekable(), others.iter().peekable());
        std::iter::from_fn(move || match (own.peek(), others.peek()) {
            (Some(one), Some(other)) if other < one => others.next(),
            (Some(_), _) => own.next(),
            (None, _) => others.next(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BinaryHeap;

    use proptest::prelude::*;

    use super::*;
    use crate::units::Span;

    /// A step that can be had, as the rule says: the largest gain, and of equals the first job.
    #[derive(PartialEq)]
    struct Next(f64, JobId, usize);

    impl Eq for Next {}

    impl Ord for Next {
        fn cmp(&self, other: &Self) -> Ordering {
            self.0.total_cmp(&other.0).then(other.1.cmp(&self.1))
        }
    }

    impl PartialOrd for Next {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    /// Which setting each job gets, by taking the best step that can be had, again and again.
    fn plain(ladders: &[Ladder], mut spare: u64) -> Vec<usize> {
        let mut places: Vec<usize> =
            ladders.iter().map(|ladder| ladder.settings.len() - 1).collect();
        let next = |job: usize, place: usize| {
            (place > 0).then(|| Next(ladders[job].gain(place), JobId(job as u32), place))
        };
        let mut heap: BinaryHeap<Next> =
            (0..ladders.len()).filter_map(|job| next(job, places[job])).collect();
        while let Some(Next(_, job, place)) = heap.pop() {
            let job = job.index();
            let power = |place: usize| ladders[job].settings[place].power.milliwatts();
            let more = power(place - 1).saturating_sub(power(place));
            if more <= spare {
                spare -= more;
                places[job] -= 1;
                heap.extend(next(job, places[job]));
            }
        }
        places
    }

    /// Settings from the fastest on: each takes longer by something and draws less or more by something. Few numbers, so
    /// that gains tie, and rise as well as fall.
    fn ladder() -> impl Strategy<Value = Ladder> {
        prop::collection::vec((0u64..4, 0u64..4), 1..6).prop_map(|steps| {
            let (mut time, mut power) = (4, 30);
            let settings = steps.into_iter().map(|(longer, less)| {
                time += longer;
                power -= less;
                OperatingPoint {
                    cores: 1,
                    nodes: 1,
                    cap: Watts::ZERO,
                    time: Span::from_millis(time * 1000),
                    power: Watts::from_milliwatts(power),
                }
            });
            Ladder::of(settings.collect())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// The order that is kept gives everybody what taking the best step again and again does, whoever came and went
        /// before, and whoever is about to start.
        #[test]
        fn the_order_kept_is_the_order_of_the_rule(
            all in prop::collection::vec((ladder(), any::<bool>()), 0..12),
            gone in prop::collection::vec(ladder(), 0..4),
            spare in 0u64..60,
        ) {
            let (mut ladders, mut new) = (Ladders::default(), Vec::new());
            for (job, ladder) in (100..).map(JobId).zip(&gone) {
                ladders.insert(job, ladder.settings.clone());
            }
            for (job, (ladder, starts)) in (0..).map(JobId).zip(&all) {
                match starts {
                    true => new.extend(ladder.climbs(job)),
                    false => ladders.insert(job, ladder.settings.clone()),
                }
            }
            (100..).map(JobId).zip(&gone).for_each(|(job, _)| ladders.remove(job));
            new.sort_unstable();
            let mut places: Vec<usize> = all.iter().map(|(ladder, _)| ladder.settings.len() - 1).collect();
            let (mut stuck, mut left) = (vec![false; all.len()], spare);
            for climb in ladders.climbs_with(&new) {
                let (job, more) = (climb.job.index(), climb.more.milliwatts());
                if !stuck[job] && more <= left {
                    left -= more;
                    prop_assert_eq!(places[job], climb.from as usize, "one step after the other");
                    places[job] -= 1;
                } else {
                    stuck[job] = true;
                }
            }
            let only: Vec<Ladder> = all.into_iter().map(|(ladder, _)| ladder).collect();
            prop_assert_eq!(places, plain(&only, spare));
        }
    }
}
