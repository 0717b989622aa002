//! Tasks like those that the Extreme Scale Systems Center planned with (Khemka and others 2015),
//! synthetic together with the machines they run on ([`heterogeneity::essc`](busbar_core::heterogeneity::essc)).
//!
//! As many tasks of each of a hundred types arrive over a day: general ones along a sinusoid of the
//! type's own, special ones in bursts. Priority, urgency and utility class of a task are drawn by
//! themselves. The paper leaves most numbers to the site; those here are the constants below.

use std::num::NonZeroU32;
use std::sync::Arc;

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64Dxsm;

use busbar_core::heterogeneity::{NotTables, Site, TaskType, essc};
use busbar_core::job::{ApplicationId, Job};
use busbar_core::units::{Instant, Span};
use busbar_core::utility::{Decay, Utilities, Utility, UtilityFunction, UtilityId};
use busbar_core::workload::Workload;

/// What tasks are worth at first, and how many of a hundred are of this priority.
const PRIORITIES: [(u32, u32); 4] = [(8, 10), (4, 20), (2, 30), (1, 40)];
/// How fast utility falls, in millionths a minute.
const URGENCIES: [u64; 4] = [100_000, 50_000, 20_000, 10_000];
/// For how many minutes it does not fall at first.
const FLAT_MINUTES: [u32; 4] = [0, 5, 10, 20];
/// How it falls then.
const SHAPES: [&str; 5] = ["steady", "late", "early", "halved", "ended"];
/// Days have milliseconds.
const DAY: f64 = 86_400_000.0;
/// By how much the rate of general tasks swings around its mean.
const AMPLITUDE: f64 = 0.5;
/// How many times as many special tasks arrive in a burst.
const BURST: f64 = 10.0;

/// Tasks and machines to be drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Essc {
    /// Tasks in 24 hours, on average.
    pub tasks: u32,
    /// Hours that are simulated.
    pub hours: u32,
    /// Hours at the beginning that are not counted.
    pub warm_up: u32,
    /// The machines.
    pub machines: essc::Essc,
    /// Where random numbers start.
    pub seed: u64,
}

/// The paper's day.
impl Default for Essc {
    fn default() -> Self {
        let machines = essc::Essc::default();
        Essc { tasks: 32_000, hours: 26, warm_up: 2, machines, seed: 1 }
    }
}

/// Tasks with the site they are for.
#[derive(Clone, Debug)]
pub struct Tasks {
    /// The tasks.
    pub workload: Workload,
    /// The machines and utilities.
    pub site: Site,
    /// When counting begins and ends, if that is known.
    pub period: Option<(Instant, Instant)>,
}

/// Why there are no tasks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EsscError {
    /// A parameter is wrong.
    #[error("parameter '{key}': {why}")]
    Parameter {
        /// The parameter.
        key: &'static str,
        /// The reason.
        why: String,
    },
    /// The machines make no sense.
    #[error(transparent)]
    Tables(#[from] NotTables),
}

impl Essc {
    /// Draws the machines and the tasks.
    pub fn draw(&self) -> Result<Tasks, EsscError> {
        self.check()?;
        let tables = self.machines.draw(self.seed)?;
        let utilities = utilities();
        // Tasks have random numbers of their own: the same whatever the machines are.
        let mut rng = Pcg64Dxsm::seed_from_u64(self.seed ^ 0x7461_736b_735f_6573);
        let types = essc::GENERAL_TASKS + essc::SPECIAL_TASKS;
        let mut arrivals: Vec<(u64, u32)> = Vec::new();
        for kind in 0..types {
            let times = match kind < essc::GENERAL_TASKS {
                true => self.sinusoid(f64::from(self.tasks) / f64::from(types), &mut rng),
                false => self.bursts(f64::from(self.tasks) / f64::from(types), &mut rng),
            };
            arrivals.extend(times.into_iter().map(|time| (time, kind)));
        }
        arrivals.sort_unstable();
        let jobs = arrivals.into_iter().zip(1u64..).map(|((millis, kind), number)| {
            let utility = draw_utility(&mut rng);
            let time = tables.longest_at_full_speed(TaskType(kind)).unwrap_or(Span::ZERO);
            let mut job = Job::new(number, Instant::from_millis(millis), 1, time);
            job.application = Some(ApplicationId(NonZeroU32::MIN.saturating_add(kind)));
            job.terms.utility = Some(utility);
            (job, time)
        });
        let workload = Workload::new("essc", jobs).on_processors(Some(tables.machines()));
        let site = Site { tables: Arc::new(tables), utilities: Arc::new(utilities) };
        let hour = |hours: u32| Instant::from_millis(u64::from(hours) * 3_600_000);
        Ok(Tasks { workload, site, period: Some((hour(self.warm_up), hour(self.hours))) })
    }

    fn check(&self) -> Result<(), EsscError> {
        let wrong = |key, why| Err(EsscError::Parameter { key, why });
        if !(1..=100_000_000).contains(&self.tasks) {
            return wrong("tasks", format!("{} is not from 1 to 100000000", self.tasks));
        }
        if !(1..=1000).contains(&self.hours) {
            return wrong("hours", format!("{} is not from 1 to 1000", self.hours));
        }
        if self.warm_up >= self.hours {
            let why = format!("{} hours leave nothing of {}", self.warm_up, self.hours);
            return wrong("warm_up", why);
        }
        match self.machines.mistake() {
            Some((key, why)) => wrong(key, why),
            None => Ok(()),
        }
    }

    fn length(&self) -> f64 {
        f64::from(self.hours) * 3_600_000.0
    }

    /// Arrivals of a general type: so many in a day, more and fewer along a sinusoid.
    fn sinusoid(&self, a_day: f64, rng: &mut impl Rng) -> Vec<u64> {
        let cycles = f64::from(rng.random_range(1..=4u32));
        let phase = rng.random_range(0.0..1.0);
        let wave = |millis: f64| {
            let turns = cycles * millis / DAY + phase;
            1.0 + AMPLITUDE * libm::sin(turns * std::f64::consts::TAU)
        };
        self.thinned(a_day / DAY, 1.0 + AMPLITUDE, wave, rng)
    }

    /// Arrivals of a special type: so many in a day, most of them in bursts of 5 to 20 minutes, of
    /// which one begins 30 to 90 minutes after the other.
    fn bursts(&self, a_day: f64, rng: &mut impl Rng) -> Vec<u64> {
        let minutes = |rng: &mut dyn FnMut() -> f64, from: f64, to: f64| {
            60_000.0 * (from + (to - from) * rng())
        };
        let mut uniform = || rng.random_range(0.0..1.0);
        let mut bursts: Vec<(f64, f64)> = Vec::new();
        // The first comes as if there had been others before.
        let mut begin = minutes(&mut uniform, 30.0, 90.0) * uniform();
        while begin < self.length() {
            bursts.push((begin, begin + minutes(&mut uniform, 5.0, 20.0)));
            begin += minutes(&mut uniform, 30.0, 90.0);
        }
        let length = self.length();
        let bursting: f64 = bursts.iter().map(|(begin, end)| end.min(length) - begin).sum();
        let quiet = a_day / DAY * length / (length + (BURST - 1.0) * bursting);
        let mut next = 0;
        let factor = |millis: f64| {
            while bursts.get(next).is_some_and(|(_, end)| *end <= millis) {
                next += 1;
            }
            if bursts.get(next).is_some_and(|(begin, _)| *begin <= millis) { BURST } else { 1.0 }
        };
        self.thinned(quiet, BURST, factor, rng)
    }

    /// Arrivals at a rate that changes: candidates come at the highest rate, and each is taken with
    /// the chance that is the rate at its time over the highest.
    fn thinned(
        &self,
        rate: f64,
        highest: f64,
        mut factor: impl FnMut(f64) -> f64,
        rng: &mut impl Rng,
    ) -> Vec<u64> {
        let mut arrivals = Vec::new();
        let mut millis = 0.0;
        loop {
            let gap: f64 = Exp1.sample(rng);
            millis += gap / (rate * highest);
            if millis >= self.length() {
                return arrivals;
            }
            if rng.random_range(0.0..highest) < factor(millis) {
                arrivals.push(millis as u64);
            }
        }
    }
}

/// Every utility function there is: by priority, urgency, flat time and shape.
fn utilities() -> Utilities {
    let mut utilities = Utilities::default();
    for (priority, _) in PRIORITIES {
        for urgency in URGENCIES {
            for flat in FLAT_MINUTES {
                for shape in SHAPES {
                    let decay = Decay::per_minute_millionths(urgency);
                    let name = format!("{priority}-{decay}-{flat}-{shape}");
                    utilities.push(name, function(priority, decay, flat, shape));
                }
            }
        }
    }
    utilities
}

/// Flat at first; then steadily, at half and later at twice the rate, at twice and later at half the
/// rate, halved after 20 minutes, or nothing after an hour.
fn function(priority: u32, decay: Decay, flat: u32, shape: &str) -> UtilityFunction {
    let minutes = |minutes: u32| Span::from_secs(60 * (flat + minutes));
    let (half, twice) = (decay.quarters(2), decay.quarters(8));
    let start = |decay| UtilityFunction::flat_then(Utility::whole(priority), minutes(0), decay);
    match shape {
        "late" => start(half).then(minutes(30), 1000, twice),
        "early" => start(twice).then(minutes(15), 1000, half),
        "halved" => start(decay).then(minutes(20), 500, decay),
        "ended" => start(decay).then(minutes(60), 0, Decay::NONE),
        _ => start(decay),
    }
}

fn draw_utility(rng: &mut impl Rng) -> UtilityId {
    let mut percent = rng.random_range(0..100u32);
    let mut priority = 0;
    while percent >= PRIORITIES[priority].1 {
        percent -= PRIORITIES[priority].1;
        priority += 1;
    }
    let others = URGENCIES.len() * FLAT_MINUTES.len() * SHAPES.len();
    UtilityId::at((priority * others + rng.random_range(0..others)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the paper states of its tasks.
    #[test]
    fn the_published_facts_hold() {
        let Tasks { workload, site, period } = Essc::default().draw().unwrap();
        let hours = |instant: Instant| instant.millis() / 3_600_000;
        assert_eq!(period.map(|(begin, end)| (hours(begin), hours(end))), Some((2, 26)));
        let a_day = workload.jobs().len() as f64 * 24.0 / 26.0;
        assert!((a_day - 32_000.0).abs() < 600.0, "{a_day}");
        assert_eq!(site.utilities.len(), 4 * 4 * 20);
        let mut by_type = [0u32; 100];
        let mut by_priority = [0u32; 9];
        for job in workload.jobs() {
            by_type[job.application.unwrap().0.get() as usize - 1] += 1;
            let function = site.utilities.get(job.terms.utility.unwrap()).unwrap();
            by_priority[function.start().as_f64() as usize] += 1;
            assert!(hours(job.submit) < 26 && job.requested > Span::ZERO);
        }
        // About the same number of each type: 347, give or take four deviations.
        assert!(by_type.iter().all(|count| (270..430).contains(count)), "{by_type:?}");
        for (priority, percent) in PRIORITIES {
            let share = 100.0 * f64::from(by_priority[priority as usize]) / a_day * 24.0 / 26.0;
            assert!((share - f64::from(percent)).abs() < 1.0, "{priority}: {share}");
        }
    }

    /// Special tasks come in bursts: in the busiest tenth of all minutes, of one type, far more than
    /// a tenth of its tasks arrive. Of a general type, hardly more.
    #[test]
    fn special_tasks_are_bursty() {
        let workload = Essc { tasks: 3_200_000, ..Essc::default() }.draw().unwrap().workload;
        let busiest = |kind: u32| {
            let mut minutes = vec![0u32; 26 * 60];
            for job in workload.jobs() {
                if job.application.unwrap().0.get() == kind {
                    minutes[(job.submit.millis() / 60_000) as usize] += 1;
                }
            }
            minutes.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
            let all: u32 = minutes.iter().sum();
            f64::from(minutes[..156].iter().sum::<u32>()) / f64::from(all)
        };
        assert!(busiest(1) < 0.2, "{}", busiest(1));
        assert!(busiest(100) > 0.25, "{}", busiest(100));
    }

    #[test]
    fn shapes_by_hand() {
        let decay = Decay::per_minute_millionths(20_000);
        let at =
            |shape, minutes: u32| function(8, decay, 10, shape).at(Span::from_secs(60 * minutes));
        let near = |amount: Utility, expected: f64| (amount.as_f64() - expected).abs() < 1e-5;
        for shape in SHAPES {
            assert_eq!(at(shape, 10), Utility::whole(8), "{shape}");
        }
        assert!(near(at("steady", 60), 8.0 * (-1.0f64).exp()));
        assert!(near(at("late", 40), 8.0 * (-0.3f64).exp()));
        assert!(near(at("late", 50), 8.0 * (-0.7f64).exp()));
        assert!(near(at("early", 25), 8.0 * (-0.6f64).exp()));
        assert!(near(at("early", 35), 8.0 * (-0.7f64).exp()));
        assert!(near(at("halved", 30), 4.0 * (-0.4f64).exp()));
        assert!(near(at("ended", 69), 8.0 * (-1.18f64).exp()));
        assert_eq!(at("ended", 70), Utility::ZERO);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |essc: Essc| essc.draw().unwrap_err().to_string();
        let usual = Essc::default();
        assert!(error(Essc { tasks: 0, ..usual }).starts_with("parameter 'tasks': 0 is not"));
        assert!(error(Essc { hours: 0, ..usual }).contains("'hours'"));
        assert!(error(Essc { warm_up: 26, ..usual }).contains("leave nothing of 26"));
        let machines = essc::Essc { machines: 0, ..usual.machines };
        assert!(error(Essc { machines, ..usual }).contains("'machines'"));
    }
}
