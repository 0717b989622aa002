//! Traces like those of the RMAP paper (Patki and others 2015): moldable jobs, sparse arrivals.
//!
//! A job runs one of the applications there are, on one of the numbers of nodes that one was
//! measured on, and asks for the time it takes on this many nodes, unthrottled: what a user knows who
//! has run it before.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64Dxsm;

use busbar_core::job::{ApplicationId, Job};
use busbar_core::units::{Instant, Span};
use busbar_core::workload::Workload;

/// Mean seconds between arrivals, before they are stretched: about half of the jobs of a random
/// trace then do not wait on a machine that is fed well, which is all the paper says of its load.
const GAP: f64 = 450.0;

/// The median of what the made-up applications of Cab usually take, over all sizes, in seconds. Gaps are for jobs
/// like these.
pub const USUAL: f64 = 410.0;

/// Where the median is up to this many times as long or as short, gaps are as on Cab: measurements differ by much
/// less, and two made-up machines that stand for one have the same traces.
const ALIKE: f64 = 2.0;

/// How long each application takes by the number of nodes, unthrottled; by its number, less one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsualTimes(pub Vec<BTreeMap<u32, Span>>);

impl UsualTimes {
    /// By how much gaps are longer than on Cab: as much as jobs usually take longer.
    fn pace(&self) -> f64 {
        let mut times: Vec<Span> = self.0.iter().flat_map(BTreeMap::values).copied().collect();
        times.sort_unstable();
        let median = times.get(times.len() / 2).map_or(USUAL, |time| time.secs_f64());
        let ratio = median / USUAL;
        if (1.0 / ALIKE..=ALIKE).contains(&ratio) { 1.0 } else { ratio }
    }
}

/// What jobs a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Jobs of any size, most of which arrive early.
    RandomEarly,
    /// Jobs of any size.
    #[default]
    Random,
    /// Jobs of at least five eighths of the largest size: 40 nodes of 64.
    Large,
    /// Jobs of at most three eighths of the largest size: 24 nodes of 64.
    Small,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::RandomEarly, Kind::Random, Kind::Large, Kind::Small];

    fn has(self, nodes: u32, largest: u32) -> bool {
        let (nodes, largest) = (u64::from(nodes), u64::from(largest));
        match self {
            Kind::RandomEarly | Kind::Random => true,
            Kind::Large => 8 * nodes >= 5 * largest,
            Kind::Small => 8 * nodes <= 3 * largest,
        }
    }

    /// Where the random numbers of its traces are, so that two kinds of traces of one seed have
    /// nothing to do with each other.
    fn stream(self) -> u64 {
        match self {
            Kind::RandomEarly => 0x7365_6172_6c79_0001,
            Kind::Random => 0,
            Kind::Large => 0x736c_6172_6765_0002,
            Kind::Small => 0x7373_6d61_6c6c_0003,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::RandomEarly => "random-early",
            Kind::Random => "random",
            Kind::Large => "large",
            Kind::Small => "small",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| format!("'{text}'; valid: {}", Kind::ALL.map(Kind::name).join(", ")))
    }
}

/// A trace to be drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trace {
    /// The kind of jobs that are drawn.
    pub kind: Kind,
    /// The number of jobs.
    pub jobs: u32,
    /// By how much the gaps between arrivals are stretched, beyond what jobs take longer than on Cab.
    pub gaps: f64,
    /// Where random numbers start.
    pub seed: u64,
}

/// The paper's: thirty jobs.
impl Default for Trace {
    fn default() -> Self {
        Trace { kind: Kind::Random, jobs: 30, gaps: 1.0, seed: 1 }
    }
}

/// Why there is no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// Nothing can be run.
    #[error("no application has a profile on a number of nodes of a '{0}' trace")]
    NoApplications(Kind),
    /// It would have no jobs.
    #[error("parameter 'jobs': a trace needs at least one job")]
    NoJobs,
    /// Gaps are not stretched by this.
    #[error("parameter 'gaps': it must be a number from 0 to 1000000")]
    Gaps,
}

impl Trace {
    /// Draws the trace; a node counts for this many processors.
    pub fn draw(
        &self,
        usual: &UsualTimes,
        processors_per_node: u32,
    ) -> Result<Workload, TraceError> {
        if self.jobs == 0 {
            return Err(TraceError::NoJobs);
        }
        if !(0.0..=1e6).contains(&self.gaps) {
            return Err(TraceError::Gaps);
        }
        let largest = usual.0.iter().flat_map(|times| times.keys()).copied().max().unwrap_or(0);
        let choices: Vec<(u32, Vec<(u32, Span)>)> = (1..)
            .zip(&usual.0)
            .map(|(number, times)| {
                let sizes = times.iter().map(|(nodes, time)| (*nodes, *time));
                (number, sizes.filter(|(nodes, _)| self.kind.has(*nodes, largest)).collect())
            })
            .filter(|(_, sizes): &(u32, Vec<_>)| !sizes.is_empty())
            .collect();
        if choices.is_empty() {
            return Err(TraceError::NoApplications(self.kind));
        }
        let start = self.seed ^ 0x726d_6170_7472_6163 ^ self.kind.stream();
        let mut numbers = Pcg64Dxsm::seed_from_u64(start);
        let mut at = 0.0;
        let stretch = self.gaps * usual.pace();
        let jobs = (1..=u64::from(self.jobs)).map(|number| {
            let (application, sizes) = &choices[numbers.random_range(0..choices.len())];
            let (nodes, time) = sizes[numbers.random_range(0..sizes.len())];
            let job = Job {
                processors: nodes.saturating_mul(processors_per_node),
                application: NonZeroU32::new(*application).map(ApplicationId),
                ..Job::new(number, Instant::from_millis((at * 1000.0) as u64), nodes, time)
            };
            at += self.gap(number, &mut numbers) * stretch;
            (job, time)
        });
        let Trace { kind, gaps, seed, .. } = self;
        let name = format!("rmap(trace={kind}, jobs={}, gaps={gaps}, seed={seed})", self.jobs);
        Ok(Workload::new(name, jobs))
    }

    fn gap(&self, number: u64, numbers: &mut impl Rng) -> f64 {
        let gap: f64 = Exp1.sample(numbers);
        let is_early = self.kind == Kind::RandomEarly && number <= u64::from(self.jobs) / 2;
        GAP * gap * if is_early { 0.5 } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(sizes: &[u32]) -> UsualTimes {
        let times = sizes.iter().map(|nodes| (*nodes, Span::from_secs(6400 / nodes)));
        UsualTimes(vec![BTreeMap::new(), times.collect()])
    }

    #[test]
    fn jobs_are_of_the_kind_asked_for() {
        let all = usual(&[8, 24, 28, 36, 40, 64]);
        let sizes = |kind| {
            let trace = Trace { kind, jobs: 200, ..Trace::default() };
            let workload = trace.draw(&all, 16).unwrap();
            for (job, run_time) in workload.jobs().iter().zip(workload.run_times()) {
                assert_eq!(job.application.unwrap().0.get(), 2, "the other was never run");
                assert_eq!(job.processors, job.nodes * 16);
                assert_eq!(job.requested, Span::from_secs(6400 / job.nodes));
                assert_eq!(job.requested, *run_time);
            }
            let mut sizes: Vec<u32> = workload.jobs().iter().map(|job| job.nodes).collect();
            sizes.sort_unstable();
            sizes.dedup();
            sizes
        };
        assert_eq!(sizes(Kind::Random), [8, 24, 28, 36, 40, 64]);
        assert_eq!(sizes(Kind::Large), [40, 64]);
        assert_eq!(sizes(Kind::Small), [8, 24]);
    }

    #[test]
    fn early_traces_come_twice_as_fast_at_first() {
        let span = |kind| {
            let workload = Trace { kind, jobs: 40_000, ..Trace::default() }.draw(&usual(&[20]), 1);
            let workload = workload.unwrap();
            let at = |place: usize| workload.jobs()[place].submit.secs_f64();
            (at(20_000) / 20_000.0 / GAP, (at(39_999) - at(20_000)) / 19_999.0 / GAP)
        };
        // A mean of 20 000 gaps is off by 0.7 % of itself, typically.
        let (early, random) = (span(Kind::RandomEarly), span(Kind::Random));
        assert!((early.0 - 0.5).abs() < 0.02, "{early:?}");
        for gap in [early.1, random.0, random.1] {
            assert!((gap - 1.0).abs() < 0.04, "{early:?} {random:?}");
        }
    }

    /// Jobs of a twentieth of the time come twenty times as fast; jobs that take a little longer come as before.
    #[test]
    fn gaps_are_as_long_as_jobs() {
        let last = |millis| {
            let times = BTreeMap::from([(1, Span::from_millis(millis))]);
            let workload = Trace::default().draw(&UsualTimes(vec![times]), 1).unwrap();
            workload.jobs()[29].submit.secs_f64()
        };
        let usual = (USUAL * 1000.0) as u64;
        assert_eq!(last(usual), last(usual * 3 / 2));
        assert!((last(usual / 20) * 20.0 / last(usual) - 1.0).abs() < 1e-3);
        assert!((last(usual * 3) / last(usual) - 3.0).abs() < 1e-3);
    }

    #[test]
    fn kinds_have_random_numbers_of_their_own() {
        let sizes: Vec<u32> = (1..=64).collect();
        let asked = |kind| -> Vec<u32> {
            let workload = Trace { kind, ..Trace::default() }.draw(&usual(&sizes), 1).unwrap();
            workload.jobs().iter().map(|job| job.nodes).collect()
        };
        // Thirty sizes of sixty-four: the same by chance next to never.
        assert_ne!(asked(Kind::RandomEarly), asked(Kind::Random));
        assert_eq!(asked(Kind::Random), asked(Kind::Random));
    }

    #[test]
    fn what_cannot_be_drawn_is_said() {
        let draw = |trace: Trace, sizes: &[u32]| trace.draw(&usual(sizes), 1).unwrap_err();
        let trace = Trace::default();
        assert_eq!(draw(trace, &[]), TraceError::NoApplications(Kind::Random));
        let small = Trace { kind: Kind::Small, ..trace };
        assert_eq!(draw(small, &[64]), TraceError::NoApplications(Kind::Small));
        assert_eq!(draw(Trace { jobs: 0, ..trace }, &[1]), TraceError::NoJobs);
        for gaps in [-1.0, f64::NAN, f64::INFINITY, 1e7] {
            assert_eq!(draw(Trace { gaps, ..trace }, &[1]), TraceError::Gaps);
        }
    }
}
