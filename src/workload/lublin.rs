//! The workload model of Lublin and Feitelson ("The workload on parallel supercomputers: modeling
//! the characteristics of rigid jobs", JPDC 2003), with user estimates from [`estimates`].
//!
//! A job's **size** is one processor, or a power of two, or any number, drawn so that small jobs
//! are common; its **run time** is the exponential of a mixture of two gamma variables, in which
//! large jobs lean to the longer one; **submissions** follow the hours of the day, with gaps that
//! are the exponential of a gamma variable. Users and applications are not part of the model.
//!
//! The load is set by scaling the gaps *before* they are laid over the day: a busier workload has
//! more jobs in a day, and a day still has 24 hours. The clock starts at midnight with the first
//! job, and the last job is submitted at the very second that gives the load asked for.
//!
//! Choices made here:
//!
//! - The border between the lower and the upper range of sizes is 2.5 below the machine's logarithm
//!   to base 2, the middle of the published 1.5 to 3.5.
//! - Sizes on machines that are no power of two: a power of two that would not fit becomes the
//!   largest one that does.
//! - Sizes on machines so small that the range of common small jobs is empty: one range instead of
//!   two. On a single processor every job is serial.
//! - Times are whole seconds, which is what the Standard Workload Format can hold; a job runs for
//!   at least one.
//!
//! Sizes, run times, submissions and estimates each have their own random numbers: another load
//! moves the submissions and nothing else, and the first jobs of a longer workload are those of
//! the shorter one.
//!
//! [`estimates`]: super::estimates

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Gamma};
use rand_pcg::Pcg64Dxsm;
use statrs::function::gamma::gamma_lr;

use super::Workload;
use super::estimates::Estimates;
use crate::job::Job;
use crate::units::{Instant, Span};

/// How many jobs can be asked for. With the least load this is also what keeps the last submission
/// within the clock.
const VALID_JOBS: RangeInclusive<u32> = 1..=100_000_000;
/// Which loads can be asked for.
const VALID_LOADS: RangeInclusive<f64> = 0.001..=1000.0;

/// A workload to generate: the model's parameters.
///
/// ```
/// use busbar::workload::lublin::Lublin;
///
/// let workload = Lublin { jobs: 500, processors: 128, ..Lublin::default() }.generate()?;
/// assert_eq!(workload.name(), "lublin(jobs=500, load=0.85, processors=128)");
/// assert_eq!(workload.jobs().len(), 500);
/// # Ok::<(), busbar::workload::lublin::LublinError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lublin {
    /// How many jobs.
    pub jobs: u32,
    /// Processors of the machine: the limit of sizes and what the load refers to.
    pub processors: u32,
    /// Work submitted over what the machine could do between the first and the last submission.
    pub load: f64,
    /// Where the random numbers start: the same seed gives the same workload.
    pub seed: u64,
    /// Which of the model's sets of figures to use.
    pub kind: JobKind,
    /// Which parallel jobs have a power of two as their size.
    pub sizes: Sizes,
}

impl Default for Lublin {
    fn default() -> Self {
        Lublin {
            jobs: 10_000,
            processors: 1024,
            load: 0.85,
            seed: 1,
            kind: JobKind::default(),
            sizes: Sizes::default(),
        }
    }
}

/// Which jobs the model's figures were fitted to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobKind {
    /// Batch jobs alone.
    Batch,
    /// Interactive jobs alone.
    Interactive,
    /// All jobs together.
    #[default]
    Typeless,
}

/// Which parallel jobs have a power of two as their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sizes {
    /// As many as the model says.
    #[default]
    Mixed,
    /// All of them.
    PowersOfTwo,
    /// None but by chance.
    Any,
}

/// Why a workload cannot be generated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LublinError {
    /// The number of jobs is out of range.
    #[error(
        "jobs={0} is out of range; valid: {first} to {last}",
        first = VALID_JOBS.start(),
        last = VALID_JOBS.end()
    )]
    Jobs(u32),
    /// There is no machine.
    #[error("processors=0 is out of range; valid: 1 or more")]
    NoProcessors,
    /// The load is out of range or not a number.
    #[error(
        "load={0} is out of range; valid: {least} to {most}",
        least = VALID_LOADS.start(),
        most = VALID_LOADS.end()
    )]
    Load(f64),
    /// A kind of jobs that the model does not have.
    #[error("kind={0} is unknown; valid: batch, interactive, typeless")]
    UnknownKind(String),
    /// A choice of sizes that the model does not have.
    #[error("sizes={0} is unknown; valid: mixed, powers-of-two, any")]
    UnknownSizes(String),
}

impl fmt::Display for JobKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JobKind::Batch => "batch",
            JobKind::Interactive => "interactive",
            JobKind::Typeless => "typeless",
        })
    }
}

impl FromStr for JobKind {
    type Err = LublinError;

    fn from_str(text: &str) -> Result<Self, LublinError> {
        match text {
            "batch" => Ok(JobKind::Batch),
            "interactive" => Ok(JobKind::Interactive),
            "typeless" => Ok(JobKind::Typeless),
            _ => Err(LublinError::UnknownKind(text.to_owned())),
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sizes::Mixed => "mixed",
            Sizes::PowersOfTwo => "powers-of-two",
            Sizes::Any => "any",
        })
    }
}

impl FromStr for Sizes {
    type Err = LublinError;

    fn from_str(text: &str) -> Result<Self, LublinError> {
        match text {
            "mixed" => Ok(Sizes::Mixed),
            "powers-of-two" => Ok(Sizes::PowersOfTwo),
            "any" => Ok(Sizes::Any),
            _ => Err(LublinError::UnknownSizes(text.to_owned())),
        }
    }
}

/// The call that generates the workload: the jobs, the load and whatever is not the default.
impl fmt::Display for Lublin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Lublin::default();
        write!(f, "lublin(jobs={}, load={}", self.jobs, self.load)?;
        if self.processors != default.processors {
            write!(f, ", processors={}", self.processors)?;
        }
        if self.seed != default.seed {
            write!(f, ", seed={}", self.seed)?;
        }
        if self.kind != default.kind {
            write!(f, ", kind={}", self.kind)?;
        }
        if self.sizes != default.sizes {
            write!(f, ", sizes={}", self.sizes)?;
        }
        f.write_str(")")
    }
}

impl Lublin {
    /// Generates the workload. Its name is the call that generates it again.
    ///
    /// The load is met exactly but for the rounding of the last submission to a whole second; a
    /// single job offers no load at all.
    ///
    /// # Errors
    ///
    /// If a parameter is out of its range.
    pub fn generate(&self) -> Result<Workload, LublinError> {
        if !VALID_JOBS.contains(&self.jobs) {
            return Err(LublinError::Jobs(self.jobs));
        }
        if self.processors == 0 {
            return Err(LublinError::NoProcessors);
        }
        if !VALID_LOADS.contains(&self.load) {
            return Err(LublinError::Load(self.load));
        }
        Ok(self.draw(&self.to_string()))
    }

    /// Generates the workload from parameters that are known to be valid.
    pub(super) fn draw(&self, name: &str) -> Workload {
        let (mut jobs, run_times) = self.requests();
        self.submit(&mut jobs, &run_times);
        Workload::from_parts(name.to_owned(), jobs, run_times).on_processors(Some(self.processors))
    }

    /// What is asked for and how long it really takes; when is left open.
    fn requests(&self) -> (Vec<Job>, Vec<Span>) {
        let mut sizes = SizeModel::new(self);
        let mut run_times = RunTimeModel::new(self);
        let estimates = Estimates::new();
        let mut estimate_numbers = Stream::Estimates.numbers(self.seed);
        (1..=u64::from(self.jobs))
            .map(|number| {
                let nodes = sizes.draw();
                let run_time = run_times.draw(nodes);
                let requested = estimates.draw(run_time, &mut estimate_numbers);
                let submit = Instant::ZERO;
                (Job { number, submit, requested, nodes, user: None, application: None }, run_time)
            })
            .unzip()
    }

    /// Submits the jobs over the time in which they offer the load asked for.
    fn submit(&self, jobs: &mut [Job], run_times: &[Span]) {
        let work: u128 = jobs
            .iter()
            .zip(run_times)
            .map(|(job, run_time)| u128::from(job.nodes) * u128::from(run_time.millis()))
            .sum();
        let seconds = work as f64 / 1000.0 / (f64::from(self.processors) * self.load);
        let seconds = seconds.round().max(1.0);

        let day = DailyCycle::new(self.kind);
        let Some((_, later)) = jobs.split_first_mut() else { return };
        // All gaps must be known before the first can be scaled. Drawing them twice spares
        // keeping them.
        let unscaled: f64 = Gaps::new(self).take(later.len()).sum();
        let scale = day.activity_until(seconds) / unscaled;
        let mut activity = 0.0;
        for (job, gap) in later.iter_mut().zip(Gaps::new(self)) {
            activity += gap;
            let second = day.second_of(activity * scale).round() as u64;
            job.submit = Instant::from_millis(second * 1000);
        }
    }
}

/// The random numbers of one aspect of the workload.
#[derive(Clone, Copy)]
enum Stream {
    Sizes = 1,
    RunTimes,
    Gaps,
    Estimates,
}

impl Stream {
    fn numbers(self, seed: u64) -> Pcg64Dxsm {
        // An odd constant without a pattern keeps the streams of one seed from being those of the
        // seeds next to it.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        Pcg64Dxsm::seed_from_u64(seed ^ SPREAD.wrapping_mul(self as u64))
    }
}

/// The published figures for one kind of jobs.
struct Figures {
    /// The share of serial jobs.
    serial: f64,
    /// The share of parallel jobs rounded to a power of two, of all jobs.
    power_of_two: f64,
    /// The smallest parallel job, as a logarithm to base 2.
    smallest: f64,
    /// The share of parallel jobs that are in the lower range of sizes.
    lower_sizes: f64,
    /// Shape and scale of the shorter run times' logarithm.
    shorter: (f64, f64),
    /// Shape and scale of the longer run times' logarithm.
    longer: (f64, f64),
    /// The share of shorter run times: slope over the size, and offset.
    shorter_share: (f64, f64),
    /// Shape and scale of the gaps' logarithm.
    gap: (f64, f64),
    /// The factor on the gaps' shape that leads from rush hours to the whole day (ARAR).
    gap_correction: f64,
    /// Shape and scale of the day's submissions over its half hours.
    day: (f64, f64),
}

impl JobKind {
    fn figures(self) -> &'static Figures {
        match self {
            JobKind::Batch => &Figures {
                serial: 0.2927,
                power_of_two: 0.6686,
                smallest: 1.2,
                lower_sizes: 0.875,
                shorter: (6.57, 0.823),
                longer: (639.1, 0.0156),
                shorter_share: (-0.003, 0.6986),
                gap: (6.0415, 0.8531),
                gap_correction: 1.0519,
                day: (6.1271, 5.2740),
            },
            JobKind::Interactive => &Figures {
                serial: 0.1541,
                power_of_two: 0.625,
                smallest: 1.0,
                lower_sizes: 0.705,
                shorter: (3.8351, 0.6605),
                longer: (7.073, 0.6856),
                shorter_share: (-0.0118, 0.9156),
                gap: (6.5510, 0.6621),
                gap_correction: 0.9797,
                day: (8.9186, 3.6680),
            },
            JobKind::Typeless => &Figures {
                serial: 0.244,
                power_of_two: 0.576,
                smallest: 0.8,
                lower_sizes: 0.86,
                shorter: (4.2, 0.94),
                longer: (312.0, 0.03),
                shorter_share: (-0.0054, 0.78),
                gap: (10.2303, 0.4871),
                gap_correction: 1.0225,
                day: (8.1737, 3.9631),
            },
        }
    }
}

fn gamma((shape, scale): (f64, f64)) -> Gamma<f64> {
    Gamma::new(shape, scale).expect("every published shape and scale is positive")
}

/// Draws sizes.
struct SizeModel {
    numbers: Pcg64Dxsm,
    processors: u32,
    serial: f64,
    /// Serial jobs and powers of two together.
    serial_or_power_of_two: f64,
    /// Logarithms to base 2 of the smallest size, of the border between the two ranges and of the
    /// largest size.
    smallest: f64,
    border: f64,
    largest: f64,
    lower_sizes: f64,
}

impl SizeModel {
    fn new(parameters: &Lublin) -> Self {
        let figures = parameters.kind.figures();
        let parallel = 1.0 - figures.serial;
        let (serial, power_of_two) = match (parameters.processors, parameters.sizes) {
            (1, _) => (1.0, 0.0),
            (_, Sizes::Mixed) => (figures.serial, figures.power_of_two),
            (_, Sizes::PowersOfTwo) => (figures.serial, parallel),
            (_, Sizes::Any) => (figures.serial, 0.0),
        };
        let largest = f64::from(parameters.processors).log2();
        let smallest = figures.smallest.min(largest);
        let border = largest - 2.5;
        let (border, lower_sizes) =
            if border > smallest { (border, figures.lower_sizes) } else { (smallest, 0.0) };
        SizeModel {
            numbers: Stream::Sizes.numbers(parameters.seed),
            processors: parameters.processors,
            serial,
            serial_or_power_of_two: serial + power_of_two,
            smallest,
            border,
            largest,
            lower_sizes,
        }
    }

    /// The next job's size. Every size takes three numbers, so that a job keeps its luck when a
    /// parameter changes.
    fn draw(&mut self) -> u32 {
        let class: f64 = self.numbers.random();
        let range: f64 = self.numbers.random();
        let place: f64 = self.numbers.random();
        if class < self.serial {
            return 1;
        }
        let (low, high) = if range < self.lower_sizes {
            (self.smallest, self.border)
        } else {
            (self.border, self.largest)
        };
        let logarithm = low + place * (high - low);
        if class < self.serial_or_power_of_two {
            1 << (logarithm.round() as u32).min(self.processors.ilog2())
        } else {
            (logarithm.exp2().round() as u32).min(self.processors)
        }
    }
}

/// Draws run times.
struct RunTimeModel {
    numbers: Pcg64Dxsm,
    shorter: Gamma<f64>,
    longer: Gamma<f64>,
    slope: f64,
    offset: f64,
}

impl RunTimeModel {
    /// The longest run time's logarithm; longer ones are drawn again.
    const LONGEST: f64 = 12.0;

    fn new(parameters: &Lublin) -> Self {
        let figures = parameters.kind.figures();
        let (slope, offset) = figures.shorter_share;
        RunTimeModel {
            numbers: Stream::RunTimes.numbers(parameters.seed),
            shorter: gamma(figures.shorter),
            longer: gamma(figures.longer),
            slope,
            offset,
        }
    }

    /// How long the next job runs, which has this size.
    fn draw(&mut self, nodes: u32) -> Span {
        Span::from_secs((self.draw_logarithm(nodes).exp().round() as u32).max(1))
    }

    fn draw_logarithm(&mut self, nodes: u32) -> f64 {
        let shorter_share = self.slope * f64::from(nodes) + self.offset;
        loop {
            // A share beyond 0 or 1 decides like 0 or 1.
            let shorter = self.numbers.random::<f64>() < shorter_share;
            let component = if shorter { &self.shorter } else { &self.longer };
            let logarithm = component.sample(&mut self.numbers);
            if logarithm <= Self::LONGEST {
                return logarithm;
            }
        }
    }
}

/// The gaps between submissions, counted in half hours of average activity: without end.
struct Gaps {
    numbers: Pcg64Dxsm,
    logarithm: Gamma<f64>,
}

impl Gaps {
    /// The longest gap's logarithm; longer ones are drawn again.
    const LONGEST: f64 = 13.0;

    fn new(parameters: &Lublin) -> Self {
        let figures = parameters.kind.figures();
        let (shape, scale) = figures.gap;
        Gaps {
            numbers: Stream::Gaps.numbers(parameters.seed),
            logarithm: gamma((shape * figures.gap_correction, scale)),
        }
    }
}

impl Iterator for Gaps {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        loop {
            let logarithm = self.logarithm.sample(&mut self.numbers);
            if logarithm <= Self::LONGEST {
                return Some(logarithm.exp() / DailyCycle::HALF_HOUR);
            }
        }
    }
}

/// How busy users are over the day, from midnight on.
///
/// Time is measured in activity: a half hour is worth more of it when users are busy, and 48 over
/// a whole day. Gaps that are laid over activity are short in the afternoon and long at night.
struct DailyCycle {
    /// The activity of the day before each half hour, and of the whole day.
    before: [f64; Self::HALF_HOURS + 1],
}

impl DailyCycle {
    const HALF_HOURS: usize = 48;
    const HALF_HOUR: f64 = 1800.0;
    const DAY: f64 = Self::HALF_HOUR * Self::HALF_HOURS as f64;
    /// The model counts half hours from 1, and starts its day when fewest jobs are submitted.
    const FIRST: usize = 11;

    fn new(kind: JobKind) -> Self {
        let (shape, scale) = kind.figures().day;
        let mut weights = [0.0; Self::HALF_HOURS];
        for half_hour in Self::FIRST..Self::FIRST + Self::HALF_HOURS {
            let middle = half_hour as f64;
            weights[(half_hour - 1) % Self::HALF_HOURS] =
                gamma_lr(shape, (middle + 0.5) / scale) - gamma_lr(shape, (middle - 0.5) / scale);
        }
        let mean = weights.iter().sum::<f64>() / Self::HALF_HOURS as f64;
        let mut before = [0.0; Self::HALF_HOURS + 1];
        for (index, weight) in weights.into_iter().enumerate() {
            before[index + 1] = before[index] + weight / mean;
        }
        DailyCycle { before }
    }

    /// How much activity there is in a whole day.
    fn whole_day(&self) -> f64 {
        self.before[Self::HALF_HOURS]
    }

    /// How much activity there is in the first `seconds` of the clock.
    fn activity_until(&self, seconds: f64) -> f64 {
        let days = (seconds / Self::DAY).floor();
        let half_hours = (seconds - days * Self::DAY) / Self::HALF_HOUR;
        let index = (half_hours as usize).min(Self::HALF_HOURS - 1);
        let weight = self.before[index + 1] - self.before[index];
        days * self.whole_day() + self.before[index] + (half_hours - index as f64) * weight
    }

    /// The second of the clock by which there has been this much activity.
    fn second_of(&self, activity: f64) -> f64 {
        let days = (activity / self.whole_day()).floor();
        let rest = activity - days * self.whole_day();
        let index = self.before[1..Self::HALF_HOURS].partition_point(|&before| before <= rest);
        let weight = self.before[index + 1] - self.before[index];
        days * Self::DAY + (index as f64 + (rest - self.before[index]) / weight) * Self::HALF_HOUR
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use statrs::function::gamma::ln_gamma;

    use super::*;

    const KINDS: [JobKind; 3] = [JobKind::Batch, JobKind::Interactive, JobKind::Typeless];
    const SIZES: [Sizes; 3] = [Sizes::Mixed, Sizes::PowersOfTwo, Sizes::Any];

    fn share(workload: &Workload, counts: impl Fn(u32) -> bool) -> f64 {
        let hits = workload.jobs().iter().filter(|job| counts(job.nodes)).count();
        hits as f64 / workload.jobs().len() as f64
    }

    /// Four standard errors of a share among `jobs`: a right model fails once in 16 000 times.
    fn tolerance(share: f64, jobs: u32) -> f64 {
        4.0 * (share * (1.0 - share) / f64::from(jobs)).sqrt()
    }

    /// How likely a size that is not rounded to a power of two is one by chance, on 1024
    /// processors.
    fn power_of_two_by_chance(kind: JobKind) -> f64 {
        let figures = kind.figures();
        let stage = |low: f64, high: f64| {
            let overlap = |k: i32| {
                let (from, to) = ((2f64.powi(k) - 0.5).log2(), (2f64.powi(k) + 0.5).log2());
                (to.min(high) - from.max(low)).max(0.0)
            };
            (1..=10).map(overlap).sum::<f64>() / (high - low)
        };
        let lower = figures.lower_sizes;
        lower * stage(figures.smallest, 7.5) + (1.0 - lower) * stage(7.5, 10.0)
    }

    #[test]
    fn shares_of_serial_jobs_and_powers_of_two_are_the_published_ones() {
        // The published table, again.
        let published = [
            (JobKind::Batch, 0.2927, 0.6686),
            (JobKind::Interactive, 0.1541, 0.625),
            (JobKind::Typeless, 0.244, 0.576),
        ];
        for (kind, serial, power_of_two) in published {
            let jobs = 20_000;
            let by_chance = power_of_two_by_chance(kind) * (1.0 - serial - power_of_two);
            let expected = power_of_two + by_chance;
            let workload = Lublin { jobs, kind, ..Lublin::default() }.generate().unwrap();
            let drawn = share(&workload, |nodes| nodes == 1);
            assert!((drawn - serial).abs() < tolerance(serial, jobs), "{kind}: serial {drawn}");
            let drawn = share(&workload, |nodes| nodes > 1 && nodes.is_power_of_two());
            assert!((drawn - expected).abs() < tolerance(expected, jobs), "{kind}: {drawn}");
        }
    }

    #[test]
    fn most_parallel_jobs_are_in_the_lower_range_of_sizes() {
        // 2^7.5 = 181 is the border on 1024 processors; powers of two from 2^7.5 on are 256.
        let jobs = 20_000;
        let workload = Lublin { jobs, ..Lublin::default() }.generate().unwrap();
        let expected = (1.0 - 0.244) * (1.0 - 0.86);
        let drawn = share(&workload, |nodes| nodes > 181);
        assert!((drawn - expected).abs() < tolerance(expected, jobs), "{drawn}");
    }

    #[test]
    fn sizes_can_be_all_powers_of_two_or_none_but_by_chance() {
        let jobs = 20_000;
        let parameters = Lublin { jobs, ..Lublin::default() };
        let powers = Lublin { sizes: Sizes::PowersOfTwo, ..parameters }.generate().unwrap();
        assert!(powers.jobs().iter().all(|job| job.nodes.is_power_of_two()));
        let any = Lublin { sizes: Sizes::Any, ..parameters }.generate().unwrap();
        let expected = power_of_two_by_chance(JobKind::Typeless) * (1.0 - 0.244);
        let drawn = share(&any, |nodes| nodes > 1 && nodes.is_power_of_two());
        assert!((drawn - expected).abs() < tolerance(expected, jobs), "{drawn}");
        // The same jobs are serial: only the rounding changed.
        for (rounded, free) in powers.jobs().iter().zip(any.jobs()) {
            assert_eq!(rounded.nodes == 1, free.nodes == 1);
        }
    }

    #[test]
    fn sizes_fit_every_machine() {
        for processors in [1, 2, 3, 4, 5, 7, 8, 12, 100, 1000, 1023, 1025, u32::MAX] {
            for kind in KINDS {
                for sizes in SIZES {
                    let parameters =
                        Lublin { jobs: 2_000, processors, kind, sizes, ..Lublin::default() };
                    let workload = parameters.generate().unwrap();
                    let fits =
                        workload.jobs().iter().all(|job| (1..=processors).contains(&job.nodes));
                    assert!(fits, "{parameters}");
                    assert_eq!(workload.processors(), Some(processors));
                    assert_eq!(workload.largest_job() > 1, processors > 1, "{parameters}");
                }
            }
        }
    }

    /// The mean of a gamma variable where it is at most `limit`, times how likely that is, and how
    /// likely that is.
    fn truncated_gamma((shape, scale): (f64, f64), limit: f64) -> (f64, f64) {
        let mean = shape * scale * gamma_lr(shape + 1.0, limit / scale);
        (mean, gamma_lr(shape, limit / scale))
    }

    /// The mean logarithm of the run time of a job of this size.
    fn mean_logarithm(kind: JobKind, nodes: u32) -> f64 {
        let figures = kind.figures();
        let (slope, offset) = figures.shorter_share;
        let share = (slope * f64::from(nodes) + offset).clamp(0.0, 1.0);
        let (shorter, shorter_weight) = truncated_gamma(figures.shorter, 12.0);
        let (longer, longer_weight) = truncated_gamma(figures.longer, 12.0);
        (share * shorter + (1.0 - share) * longer)
            / (share * shorter_weight + (1.0 - share) * longer_weight)
    }

    #[test]
    fn run_times_have_the_mean_of_the_hyper_gamma() {
        for kind in KINDS {
            for nodes in [1, 16, 64, 128, 256, 1024] {
                let mut model = RunTimeModel::new(&Lublin { kind, ..Lublin::default() });
                let jobs = 20_000;
                let drawn: Vec<f64> = (0..jobs).map(|_| model.draw_logarithm(nodes)).collect();
                let mean = drawn.iter().sum::<f64>() / f64::from(jobs);
                let variance =
                    drawn.iter().map(|h| (h - mean).powi(2)).sum::<f64>() / f64::from(jobs);
                let expected = mean_logarithm(kind, nodes);
                let tolerance = 4.0 * (variance / f64::from(jobs)).sqrt();
                assert!((mean - expected).abs() < tolerance, "{kind} {nodes}: {mean}, {expected}");
            }
        }
    }

    #[test]
    fn mean_logarithms_worked_out_by_hand() {
        // share of shorter · a1·b1 + share of longer · a2·b2, leaving out that the longest are
        // drawn again, which takes less than a hundredth off these.
        let by_hand = [
            (JobKind::Typeless, 1, 0.7746 * 3.948 + 0.2254 * 9.36),
            (JobKind::Typeless, 1024, 9.36),
            (JobKind::Batch, 100, 0.3986 * 5.40711 + 0.6014 * 9.96996),
            (JobKind::Interactive, 1, 0.9038 * 2.533084 + 0.0962 * 4.849249),
        ];
        for (kind, nodes, expected) in by_hand {
            let mean = mean_logarithm(kind, nodes);
            assert!((expected - 0.02..=expected).contains(&mean), "{kind} {nodes}: {mean}");
        }
    }

    #[test]
    fn a_workloads_run_times_follow_from_its_sizes() {
        let workload = Lublin { jobs: 50_000, ..Lublin::default() }.generate().unwrap();
        for nodes in [1, 2, 8, 256] {
            let logarithms: Vec<f64> = (workload.jobs().iter().zip(workload.run_times()))
                .filter(|(job, _)| job.nodes == nodes)
                .map(|(_, run_time)| run_time.secs_f64().ln())
                .collect();
            let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
            let expected = mean_logarithm(JobKind::Typeless, nodes);
            // A logarithm's standard deviation is about 3, and whole seconds move the shortest.
            let tolerance = 12.0 / (logarithms.len() as f64).sqrt() + 0.01;
            assert!((mean - expected).abs() < tolerance, "{nodes}: {mean}, {expected}");
        }
    }

    #[test]
    fn run_times_are_whole_seconds_from_one_to_e_to_the_twelfth() {
        for kind in KINDS {
            let workload = Lublin { jobs: 50_000, kind, ..Lublin::default() }.generate().unwrap();
            for run_time in workload.run_times() {
                assert!((1_000..=162_755_000).contains(&run_time.millis()), "{run_time}");
                assert_eq!(run_time.millis() % 1000, 0);
            }
        }
    }

    /// The share of a day's submissions in each half hour from midnight on, by integrating the
    /// gamma density.
    fn integrated_weights(kind: JobKind) -> [f64; 48] {
        let (shape, scale) = kind.figures().day;
        let density = |x: f64| {
            ((shape - 1.0) * x.ln() - x / scale - ln_gamma(shape) - shape * scale.ln()).exp()
        };
        let mut weights = [0.0; 48];
        for i in 11..=58 {
            let steps = 200;
            weights[(i - 1) % 48] = (0..steps)
                .map(|step| density(i as f64 - 0.5 + (f64::from(step) + 0.5) / f64::from(steps)))
                .sum::<f64>();
        }
        let total: f64 = weights.iter().sum();
        weights.map(|weight| weight / total)
    }

    /// The share of submissions in each half hour of the day.
    fn submissions_by_half_hour(parameters: Lublin) -> [f64; 48] {
        let workload = parameters.generate().unwrap();
        let mut counts = [0.0; 48];
        for job in workload.jobs() {
            counts[(job.submit.millis() / 1_800_000 % 48) as usize] += 1.0;
        }
        counts.map(|count| count / f64::from(parameters.jobs))
    }

    fn busiest(shares: &[f64; 48]) -> usize {
        (0..48).max_by(|&a, &b| shares[a].total_cmp(&shares[b])).unwrap()
    }

    #[test]
    fn submissions_follow_the_hours_of_the_day() {
        for kind in KINDS {
            let weights = integrated_weights(kind);
            let peak = busiest(&weights);
            assert!((9 * 2..18 * 2).contains(&peak), "{kind}: half hour {peak}");
            // At the least load submissions are days apart, and so each falls into its half hour
            // regardless of the last: the error of a share is a plain sampling error.
            let jobs = 50_000;
            let drawn =
                submissions_by_half_hour(Lublin { jobs, load: 0.001, kind, ..Lublin::default() });
            for (half_hour, (share, weight)) in drawn.into_iter().zip(weights).enumerate() {
                let tolerance = 1.5 * tolerance(weight, jobs);
                assert!(
                    (share - weight).abs() < tolerance,
                    "{kind} {half_hour}: {share}, {weight}"
                );
            }
            assert!(busiest(&drawn).abs_diff(peak) <= 3, "{kind}: {}", busiest(&drawn));
        }
    }

    #[test]
    fn the_day_keeps_24_hours_at_every_load() {
        // Submissions come in bursts at these loads, so only the working hours as a whole are
        // steady enough to compare. Were the day stretched or squeezed with the gaps, they would
        // have as many submissions as any other nine hours: 37 %.
        let working_hours = |shares: [f64; 48]| shares[18..36].iter().sum::<f64>();
        let expected = working_hours(integrated_weights(JobKind::Typeless));
        assert!(expected > 0.55, "{expected}");
        for load in [0.1, 0.5, 0.85, 1.5] {
            let drawn = working_hours(submissions_by_half_hour(Lublin {
                jobs: 50_000,
                load,
                ..Lublin::default()
            }));
            assert!((drawn - expected).abs() < 0.05, "load {load}: {drawn}, {expected}");
        }
    }

    #[test]
    fn the_daily_cycle_is_a_walk_over_the_half_hours() {
        // The walk as it is published: spend each half hour's weight, then the fractional rest.
        fn walk(weights: &[f64; 48], mut points: f64) -> f64 {
            let mut seconds = 0.0;
            let mut half_hour = 0;
            while points > weights[half_hour] {
                points -= weights[half_hour];
                half_hour = (half_hour + 1) % 48;
                seconds += 1800.0;
            }
            seconds + 1800.0 * points / weights[half_hour]
        }
        for kind in KINDS {
            let weights = integrated_weights(kind).map(|share| share * 48.0);
            let day = DailyCycle::new(kind);
            for step in 1..1000 {
                let points = f64::from(step) * 0.37;
                let second = day.second_of(points);
                assert!((second - walk(&weights, points)).abs() < 0.5, "{kind} {points}");
                assert!((day.activity_until(second) - points).abs() < 1e-9, "{kind} {points}");
            }
            assert!((day.second_of(48.0) - 86_400.0).abs() < 1e-6);
        }
    }

    #[test]
    fn gaps_have_the_mean_logarithm_of_their_gamma() {
        for kind in KINDS {
            let figures = kind.figures();
            let (shape, scale) = figures.gap;
            let (mean, weight) = truncated_gamma((shape * figures.gap_correction, scale), 13.0);
            let gaps = 50_000;
            let drawn: f64 = Gaps::new(&Lublin { kind, ..Lublin::default() })
                .take(gaps)
                .map(|gap| (gap * 1800.0).ln())
                .sum();
            let drawn = drawn / gaps as f64;
            // A standard deviation is at most 2.2.
            let tolerance = 4.0 * 2.2 / (gaps as f64).sqrt();
            assert!((drawn - mean / weight).abs() < tolerance, "{kind}: {drawn}, {mean}");
        }
    }

    #[test]
    fn the_load_is_the_one_asked_for() {
        for processors in [1, 64, 1000, 1024, 65_536] {
            for load in [0.05, 0.5, 0.85, 1.0, 1.5, 10.0] {
                let parameters = Lublin { jobs: 3_000, processors, load, ..Lublin::default() };
                let workload = parameters.generate().unwrap();
                let offered = workload.offered_load(processors).unwrap();
                // Within a hundredth as promised; rounding to a second is far less than that.
                assert!((offered / load - 1.0).abs() < 1e-4, "{parameters}: {offered}");
                assert!(workload.jobs().is_sorted_by_key(|job| job.submit), "{parameters}");
                assert_eq!(workload.jobs()[0].submit, Instant::ZERO);
            }
        }
    }

    #[test]
    fn few_jobs_are_no_trouble() {
        for jobs in 1..20 {
            for load in [0.001, 0.85, 1000.0] {
                let workload = Lublin { jobs, load, ..Lublin::default() }.generate().unwrap();
                assert_eq!(workload.jobs().len(), jobs as usize);
                assert_eq!(workload.offered_load(1024).is_some(), jobs > 1);
            }
        }
    }

    #[test]
    fn the_load_moves_submissions_and_nothing_else() {
        let light = Lublin { load: 0.5, ..Lublin::default() }.generate().unwrap();
        let heavy = Lublin { load: 1.5, ..Lublin::default() }.generate().unwrap();
        assert_eq!(light.run_times(), heavy.run_times());
        for (a, b) in light.jobs().iter().zip(heavy.jobs()) {
            assert_eq!(Job { submit: a.submit, ..*b }, *a);
        }
    }

    #[test]
    fn a_longer_workload_starts_with_the_jobs_of_the_shorter_one() {
        let short = Lublin { jobs: 100, ..Lublin::default() }.generate().unwrap();
        let long = Lublin { jobs: 1000, ..Lublin::default() }.generate().unwrap();
        assert_eq!(short.run_times(), &long.run_times()[..100]);
        for (a, b) in short.jobs().iter().zip(long.jobs()) {
            assert_eq!((a.number, a.nodes, a.requested), (b.number, b.nodes, b.requested));
        }
    }

    #[test]
    fn the_seed_decides() {
        let parameters = Lublin { jobs: 1000, ..Lublin::default() };
        let first = parameters.generate().unwrap();
        let again = parameters.generate().unwrap();
        assert_eq!((first.jobs(), first.run_times()), (again.jobs(), again.run_times()));
        for seed in [0, 2, u64::MAX] {
            let other = Lublin { seed, ..parameters }.generate().unwrap();
            assert_ne!(first.run_times(), other.run_times());
            let same = first.jobs().iter().zip(other.jobs()).filter(|(a, b)| a.nodes == b.nodes);
            // Two unrelated jobs often have the same small size, but not most of them.
            assert!(same.count() < 250, "seed {seed}");
        }
    }

    #[test]
    fn estimates_are_popular_values_and_never_too_short() {
        let jobs = 50_000;
        let workload = Lublin { jobs, ..Lublin::default() }.generate().unwrap();
        let mut counts = HashMap::new();
        for (job, &run_time) in workload.jobs().iter().zip(workload.run_times()) {
            assert!(job.requested >= run_time, "{job:?} runs {run_time}");
            *counts.entry(job.requested).or_insert(0u32) += 1;
        }
        let mut counts: Vec<u32> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let share = f64::from(counts[..20].iter().sum::<u32>()) / f64::from(jobs);
        // Sampling makes for 0.0014 at one standard error. Where run times are long some odd value
        // may be used more than the least popular round one, which adds to the twenty.
        assert!((share - 0.89).abs() < 0.01, "{share}");
    }

    #[test]
    fn the_name_is_the_call() {
        let name = |parameters: Lublin| parameters.to_string();
        assert_eq!(name(Lublin::default()), "lublin(jobs=10000, load=0.85)");
        let every = Lublin {
            jobs: 5,
            processors: 64,
            load: 2.0,
            seed: 9,
            kind: JobKind::Batch,
            sizes: Sizes::PowersOfTwo,
        };
        let call = "lublin(jobs=5, load=2, processors=64, seed=9, kind=batch, sizes=powers-of-two)";
        assert_eq!(name(every), call);
        assert_eq!(every.generate().unwrap().name(), call);
        for kind in KINDS {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for sizes in SIZES {
            assert_eq!(sizes.to_string().parse(), Ok(sizes));
        }
    }

    #[test]
    fn bad_parameters_are_named_with_what_is_valid() {
        let check = |parameters: Lublin, message: &str| {
            assert_eq!(parameters.generate().unwrap_err().to_string(), message);
        };
        let good = Lublin::default();
        check(Lublin { jobs: 0, ..good }, "jobs=0 is out of range; valid: 1 to 100000000");
        check(
            Lublin { jobs: u32::MAX, ..good },
            "jobs=4294967295 is out of range; valid: 1 to 100000000",
        );
        check(Lublin { processors: 0, ..good }, "processors=0 is out of range; valid: 1 or more");
        for (load, written) in [
            (0.0, "0"),
            (-1.0, "-1"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
            (0.0001, "0.0001"),
            (2000.0, "2000"),
        ] {
            let message = format!("load={written} is out of range; valid: 0.001 to 1000");
            check(Lublin { load, ..good }, &message);
        }
        assert_eq!(
            "night".parse::<JobKind>().unwrap_err().to_string(),
            "kind=night is unknown; valid: batch, interactive, typeless"
        );
        assert_eq!(
            "odd".parse::<Sizes>().unwrap_err().to_string(),
            "sizes=odd is unknown; valid: mixed, powers-of-two, any"
        );
    }
}
