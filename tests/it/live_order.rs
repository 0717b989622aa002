//! The daemon decides as the simulator does: the same jobs start in the same order, at the same instants,
//! with the same nodes and watts, under every policy that a daemon can have.
//!
//! `workload` makes jobs up, `expected` is what the simulator does with them. `replayed` sends them
//! through a whole daemon with simulated jobs, where everything must be equal to the millisecond, also if
//! the daemon dies now and then. `real` does so with processes, of a daemon that `served` speaks to. With
//! BUSBAR_LIVE_ORDER=1 there are more workloads, and every policy has processes.

pub(crate) mod expected;
pub(crate) mod real;
mod replayed;
mod served;
pub(crate) mod workload;

use busbar::live::control::setup::Setup;
use busbar::live::job::{Allotment, ChangeReason, EventKind};
use busbar::live::wire::HistoryLine;
use busbar::machine::Machine;
use busbar::model::{Caps, OperatingPoint};
use busbar::policy::PolicySpec;
use busbar::profile::Profile;
use busbar::profile::cab::{self, Preset};
use busbar::units::{Instant, Watts};
use busbar::world::Repertoire;

/// Whether all of it is to be tried, which takes minutes.
fn is_in_full() -> bool {
    std::env::var_os("BUSBAR_LIVE_ORDER").is_some_and(|value| value == "1")
}

/// The policies that a daemon can have, each with a machine that it can work on.
fn cases() -> Vec<Setup> {
    let on = |machine: &Machine, profiles: &[Profile], policy: &str| {
        let repertoire = Repertoire::of(profiles);
        Setup::new(machine, repertoire, policy.parse().unwrap()).unwrap()
    };
    let plain = Machine::of_processors(16).unwrap();
    let varied = Machine::catalyst(12, 1).unwrap();
    let mut cases: Vec<Setup> = [
        "fcfs",
        "easy",
        "conservative",
        "slurm",
        "easy-power",
        "pb-guided(bsld_lower=5)",
        "parm(flex=none)",
        "parm(flex=moldable)",
        "parm(flex=malleable)",
        "utility",
        "share",
        "share(use=caps)",
        "share(use=caps, order=aged)",
        "share(use=caps, order=history)",
        "share(use=sizes)",
        "share(use=recaps)",
        "share(use=recaps, order=history)",
        "share(use=resizes, order=history)",
    ]
    .map(|policy| on(&plain, &[], policy))
    .into();
    cases.extend(["ppartition", "uniform"].map(|policy| on(&varied, &[], policy)));
    let profiles = cab::generate(Preset::Cab, 1);
    cases.extend(
        ["rmap-traditional", "rmap-naive", "rmap-adaptive"]
            .map(|policy| on(&Machine::cab(), &profiles, policy)),
    );
    let known: Vec<&str> = cases.iter().map(|case| case.decider.spec().name()).collect();
    for policy in PolicySpec::all() {
        assert!(known.contains(&policy.name()), "{policy} is not tried");
    }
    cases
}

/// What a job has.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Has {
    /// Any nodes, so many.
    Point(OperatingPoint),
    /// Nodes by name, with their caps.
    Nodes(Vec<(u32, Watts)>),
}

impl Has {
    fn caps(caps: &Caps) -> Self {
        Has::Nodes(caps.iter().map(|capped| (capped.node.0, capped.cap)).collect())
    }

    fn allotment(allotment: &Allotment, names_nodes: bool) -> Self {
        match names_nodes {
            true => Has::Nodes(allotment.nodes.clone()),
            false => Has::Point(allotment.point()),
        }
    }
}

/// A decision about a job, by its number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    at: Instant,
    job: u64,
    /// Whether it starts; otherwise it changes.
    starts: bool,
    has: Has,
}

/// All that was decided, in order, and when jobs ended, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    steps: Vec<Step>,
    ends: Vec<(u64, Instant)>,
}

impl Told {
    /// What a daemon wrote down.
    pub(crate) fn of(history: &[HistoryLine], names_nodes: bool) -> Self {
        let mut told = Told::default();
        for HistoryLine { event, .. } in history {
            let at = event.at;
            match &event.kind {
                EventKind::Started { job, allotment, .. } => {
                    let has = Has::allotment(allotment, names_nodes);
                    told.steps.push(Step { at, job: *job, starts: true, has });
                }
                // Nobody decided that: it says which nodes an engine has chosen.
                EventKind::Changed { reason: ChangeReason::Placed, .. } => (),
                EventKind::Changed { job, allotment, .. } => {
                    let has = Has::allotment(allotment, names_nodes);
                    told.steps.push(Step { at, job: *job, starts: false, has });
                }
                EventKind::Ended { job, outcome } => {
                    assert!(outcome.succeeded(), "job {job}: {outcome:?}");
                    told.ends.push((*job, outcome.end));
                }
                EventKind::Notice { text, .. } => panic!("{text}"),
                _ => (),
            }
        }
        told.ends.sort_unstable();
        told
    }

    pub(crate) fn changes(&self) -> usize {
        self.steps.iter().filter(|step| !step.starts).count()
    }

    /// The numbers of the jobs, in the order of their starts.
    pub(crate) fn order(&self) -> Vec<u64> {
        self.steps.iter().filter(|step| step.starts).map(|step| step.job).collect()
    }
}

/// Asserts that all was as expected, and says what differs first.
#[track_caller]
pub(crate) fn assert_same(told: &Told, expected: &Told, what: &str) {
    let steps = told.steps.iter().zip(&expected.steps);
    if let Some((place, (step, other))) = steps.enumerate().find(|(_, (one, other))| one != other) {
        panic!("{what}: decision {place} is {step:#?}, and in the simulation {other:#?}");
    }
    assert_eq!(told.steps.len(), expected.steps.len(), "{what}: how many decisions");
    assert_eq!(told.ends, expected.ends, "{what}: ends");
}
