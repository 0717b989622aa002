//! Many jobs on one machine: which of them start under a budget, and how fast they are.
//!
//! All jobs are in the queue from the beginning: one that is large, then small and medium ones in equal
//! parts. They are dispatched one at a time. What the paper looks at is the state in which nobody else
//! can start. After that our runs go on until the last job has ended.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use busbar_core::budget::Budget;
use busbar_core::job::{ApplicationId, Job};
use busbar_core::machine::{Machine, MachineError};
use busbar_core::model::{Caps, Varied};
use busbar_core::policy::PolicySpec;
use busbar_core::policy::ppartition::{First, PpartitionSpec, Sharing};
use busbar_core::policy::three_queues::{Queueing, Rule};
use busbar_core::policy::uniform::{UniformCap, UniformSpec};
use busbar_core::scenario::Scenario;
use busbar_core::sim::{Events, Run};
use busbar_core::units::{Instant, JobId, Share, Span, Watts};
use busbar_core::variation::catalyst::{RATED, Shape};
use busbar_core::variation::{Curve, Processors};
use busbar_core::workload::Workload;

/// The processors of the paper's simulation.
pub(crate) const PROCESSORS: u32 = 550;
/// The machine's power, in kilowatts.
pub(crate) const KILOWATTS: [u32; 5] = [28, 30, 33, 36, 39];
/// Both rules for jobs that do not fit.
pub(crate) const RULES: [Rule; 2] = [Rule::Stop, Rule::Skip];
/// Jobs in the queue: more than ever run at once.
const JOBS: u32 = 200;

/// A way to share the machine's power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Ppartition(First),
    /// With at least half of the processors that a job asks for.
    Half,
    /// With our defaults, which are not the paper's.
    Busbar,
    /// With another way to share, and at least so many per cent of the processors that a job asks for.
    Own(Sharing, u32),
    Uniform(UniformCap),
}

/// The schemes that are compared, PPartition first.
pub(crate) const SCHEMES: [Scheme; 8] = [
    Scheme::Ppartition(First::Share),
    Scheme::Ppartition(First::Uncapped),
    Scheme::Half,
    Scheme::Busbar,
    Scheme::Uniform(UniformCap::Share),
    Scheme::Uniform(UniformCap::Min),
    Scheme::Uniform(UniformCap::Power(Watts::from_watts(75))),
    Scheme::Uniform(UniformCap::Tdp),
];

impl Scheme {
    fn policy(self, rule: Rule, seed: u64) -> PolicySpec {
        let queueing = Queueing { rule, ..Queueing::default() };
        let first = First::Share;
        let (fewest, sharing) = (Share::percent(0), Sharing::Paper);
        let published = PpartitionSpec { queueing, first, fewest, sharing };
        match self {
            Scheme::Ppartition(first) => PolicySpec::of(PpartitionSpec { first, ..published }),
            Scheme::Half => {
                let fewest = Share::percent(50);
                PolicySpec::of(PpartitionSpec { fewest, ..published })
            }
            Scheme::Busbar => {
                PolicySpec::of(PpartitionSpec { queueing, ..PpartitionSpec::default() })
            }
            Scheme::Own(sharing, fewest) => {
                let fewest = Share::percent(fewest);
                PolicySpec::of(PpartitionSpec { sharing, fewest, ..published })
            }
            Scheme::Uniform(cap) => PolicySpec::of(UniformSpec { cap, queueing, seed }),
        }
    }

    pub(crate) fn name(self) -> String {
        match self {
            Scheme::Ppartition(First::Share) => "PPartition".to_owned(),
            Scheme::Ppartition(first) => format!("PPartition, first {first}"),
            Scheme::Half => "PPartition, fewest 50%".to_owned(),
            Scheme::Busbar => "PPartition, our defaults".to_owned(),
            Scheme::Own(sharing, fewest) => format!("sharing={sharing}, fewest={fewest}%"),
            Scheme::Uniform(cap) => format!("uniform {cap}"),
        }
    }
}

/// The result of one scheme.
#[derive(Clone, Debug)]
pub(crate) struct SchemeFigures {
    pub(crate) scheme: Scheme,
    pub(crate) rule: Rule,
    pub(crate) kilowatts: u32,
    /// When nobody else can start, the speed of each job, in billions of instructions per second.
    pub(crate) speeds: BTreeMap<JobId, f64>,
    /// Processors that those jobs asked for, and that they have.
    pub(crate) asked: u32,
    pub(crate) granted: u32,
    /// Processors that the first job asked for who did not fit.
    pub(crate) refused: Option<u32>,
    /// How long the whole queue takes, in seconds.
    pub(crate) makespan: f64,
}

impl SchemeFigures {
    pub(crate) fn jobs(&self) -> f64 {
        self.speeds.len() as f64
    }

    /// Billions of instructions per second of all jobs.
    pub(crate) fn throughput(&self) -> f64 {
        self.speeds.values().sum()
    }
}

/// All schemes on one machine.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) shape: Shape,
    pub(crate) outcomes: Vec<SchemeFigures>,
}

impl Field {
    pub(crate) fn of(&self, scheme: Scheme, rule: Rule, kilowatts: u32) -> Option<&SchemeFigures> {
        let is_it = |outcome: &&SchemeFigures| {
            (outcome.scheme, outcome.rule, outcome.kilowatts) == (scheme, rule, kilowatts)
        };
        self.outcomes.iter().find(is_it)
    }
}

/// The queue: one job of 64 processors, then jobs of 1 to 4 and of 4 to 32 with equal chance. A quarter
/// of them runs each code, for 10 to 60 minutes on what it asks for.
fn queue(applications: u32, seed: u64) -> Workload {
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed ^ 0x7070_6172_7469_7469);
    let jobs = (0..JOBS).map(|place| {
        let nodes = match place {
            0 => 64,
            _ if numbers.random_bool(0.5) => numbers.random_range(1..=4),
            _ => numbers.random_range(4..=32),
        };
        let time = Span::from_secs(numbers.random_range(600..=3600));
        let application = NonZeroU32::new(place % applications.max(1) + 1).map(ApplicationId);
        let job = Job::new(u64::from(place) + 1, Instant::ZERO, nodes, time);
        (Job { application, ..job }, time)
    });
    Workload::new("queue", jobs.collect::<Vec<_>>()).on_processors(Some(PROCESSORS))
}

/// Runs these schemes under every budget with both rules.
pub(crate) fn field(
    shape: Shape,
    seed: u64,
    processors: Processors,
    schemes: &[Scheme],
) -> Result<Field, MachineError> {
    let applications = processors.applications().len() as u32;
    let machine = Machine::of_varied(processors, "like Catalyst")?;
    let machine = Machine { node_power: RATED, ..machine };
    let workload = queue(applications, seed);
    let varied = Varied::on(&machine, workload.jobs(), seed);
    let mut outcomes = Vec::new();
    for kilowatts in KILOWATTS {
        for rule in RULES {
            for &scheme in schemes {
                let policy = scheme.policy(rule, seed);
                let scenario = Scenario {
                    budget: Budget::constant(Watts::from_watts(1000 * kilowatts)),
                    events: Events::Each,
                    keep_power: true,
                    ..Scenario::new(&machine, &workload, policy, &varied)
                };
                let run = scenario.run().run;
                let standing = standing(&run);
                let asked = standing.keys().map(|job| workload.jobs()[job.index()].nodes).sum();
                let granted = standing.values().map(|caps| caps.count()).sum();
                // The only large job is the first, so they are looked at in their order.
                let mut jobs = (0..).map(JobId).zip(workload.jobs());
                let refused = jobs.find(|(job, _)| !standing.contains_key(job));
                let refused = refused.map(|(_, job)| job.nodes);
                let speed = |(job, caps): (&JobId, &&Caps)| (*job, speed(&varied, *job, caps));
                let speeds = standing.iter().map(speed).collect();
                let makespan = run.end.since(run.begin).secs_f64();
                outcomes.push(SchemeFigures {
                    scheme,
                    rule,
                    kilowatts,
                    speeds,
                    asked,
                    granted,
                    refused,
                    makespan,
                });
            }
        }
    }
    Ok(Field { shape, outcomes })
}

/// The caps of those who run when nobody else can start any more.
fn standing(run: &Run) -> BTreeMap<JobId, &Caps> {
    let at_once = run.cappings.iter().take_while(|capping| capping.at == run.begin);
    at_once.map(|capping| (capping.job, &capping.caps)).collect()
}

fn speed(varied: &Varied, job: JobId, caps: &Caps) -> f64 {
    let curves = varied.curves(varied.application(job));
    let on = |curve: &Curve, cap| curve.at(Varied::held(curve, cap)).billions();
    caps.iter().map(|capped| on(&curves[capped.node.0 as usize], capped.cap)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use busbar_core::variation::catalyst::Catalyst;

    #[test]
    fn the_queue_is_as_said() {
        let queue = queue(4, 1);
        let sizes: Vec<u32> = queue.jobs().iter().map(|job| job.nodes).collect();
        assert_eq!((sizes.len(), sizes[0]), (200, 64));
        assert!(sizes[1..].iter().all(|size| (1..=32).contains(size)));
        let small = sizes[1..].iter().filter(|size| **size <= 4).count();
        assert!((80..130).contains(&small), "{small}");
        let of = |number| move |job: &&Job| job.application.unwrap().0.get() == number;
        assert!((1..=4).all(|number| queue.jobs().iter().filter(of(number)).count() == 50));
    }

    /// What must hold whatever the curves are: no more processors than the power feeds or than there
    /// are, and nobody has more of them than he asked for.
    #[test]
    fn nobody_has_more_than_there_is() {
        let processors = Catalyst::processors_of(PROCESSORS, 3);
        let field = field(Shape::Continued, 3, processors, &SCHEMES).unwrap();
        assert_eq!(field.outcomes.len(), 5 * 2 * 8);
        for outcome in &field.outcomes {
            let fed = outcome.kilowatts * 1000 / 51;
            assert!(outcome.granted <= fed.min(PROCESSORS), "{outcome:?}");
            assert!(outcome.granted <= outcome.asked, "{outcome:?}");
            if let Scheme::Uniform(cap) = outcome.scheme {
                assert_eq!(outcome.granted, outcome.asked);
                let watts = match cap {
                    UniformCap::Power(watts) => watts,
                    UniformCap::Tdp => RATED,
                    _ => continue,
                };
                let most = u64::from(outcome.kilowatts) * 1_000_000 / watts.milliwatts();
                assert!(u64::from(outcome.granted) <= most, "{outcome:?}");
            }
        }
        let ours = field.of(SCHEMES[0], Rule::Skip, 28).unwrap();
        let naive = field.of(Scheme::Uniform(UniformCap::Min), Rule::Skip, 28).unwrap();
        assert!(ours.jobs() >= naive.jobs());
    }
}
