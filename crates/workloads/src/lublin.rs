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

use rand::SeedableRng;
use rand_distr::Gamma;
use rand_pcg::Pcg64Dxsm;

use crate::estimates::Estimates;
use busbar_core::job::Job;
use busbar_core::units::{Instant, Span};
use busbar_core::workload::{Partitions, Workload};

mod arrivals;
mod run_times;
mod sizes;
#[cfg(test)]
mod tests;

use run_times::RunTimeModel;
use sizes::SizeModel;

/// How many jobs can be asked for. With the least load this is also what keeps the last submission
/// within the clock.
const VALID_JOBS: RangeInclusive<u32> = 1..=100_000_000;
/// Which loads can be asked for.
const VALID_LOADS: RangeInclusive<f64> = 0.001..=1000.0;

/// A workload to generate: the model's parameters.
///
/// ```
/// use busbar_workloads::lublin::Lublin;
///
/// let workload = Lublin { jobs: 500, processors: 128, ..Lublin::default() }.generate()?;
/// assert_eq!(workload.name(), "lublin(jobs=500, load=0.85, processors=128)");
/// assert_eq!(workload.jobs().len(), 500);
/// # Ok::<(), busbar_workloads::lublin::LublinError>(())
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
        arrivals::submit(self, &mut jobs, &run_times);
        Workload::from_parts(name.to_owned(), jobs, run_times, Vec::new(), Partitions::default())
            .on_processors(Some(self.processors))
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
                (Job::new(number, submit, nodes, requested), run_time)
            })
            .unzip()
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

fn gamma((shape, scale): (f64, f64)) -> Gamma<f64> {
    Gamma::new(shape, scale).expect("every published shape and scale is positive")
}
