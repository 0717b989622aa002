//! A policy that is replaced in the middle of a run.
//!
//! A live driver begins anew after a restart, when jobs are withdrawn and when it has another
//! configuration: new queue, new ledger, new policy, new model, and other numbers for the jobs. Whoever
//! runs is handed over, whoever waits arrives again. `world` is such a driver over simulated jobs. It
//! must never hear of a violation, every job must end, and nobody who runs may notice anything.

use std::num::NonZeroU32;

use busbar::budget::Budget;
use busbar::job::{ApplicationId, Job, NodeRange, Terms};
use busbar::live::control::decider::Decider;
use busbar::machine::{Details, Machine};
use busbar::model::elastic::Kind;
use busbar::model::pass::Application;
use busbar::model::{
    Beliefs, Beta, Dvfs, Elastic, Knowledge, Model, NodeCaps, Oversized, Profiled, Rigid, Varied,
};
use busbar::policy::parm::Flexibility;
use busbar::policy::share::{ShareSpec, Use};
use busbar::policy::{ParmSpec, PbGuidedSpec, PolicySpec};
use busbar::profile::{Configuration, Origin, Profile, Row};
use busbar::units::{Instant, JobId, Span, Watts};
use busbar::world::Repertoire;
use proptest::prelude::*;

use crate::agreement::cases;

mod world;

use world::{Told, Trouble, World};

/// All that a run depends on.
#[derive(Clone, Debug)]
struct Story {
    nodes: u32,
    /// Gap to the one before, nodes, requested time and run time in seconds, and the application.
    jobs: Vec<(u32, u32, u32, u32, u32)>,
    /// From when, and so many hundredths of what all nodes draw.
    budget: Vec<(u32, u32)>,
    /// When everything is made anew, in seconds.
    handovers: Vec<u32>,
    /// When, what, and to which job or how many hundredths.
    troubles: Vec<(u32, u8, u32)>,
    /// Whether jobs are let go on beyond their time.
    overstay: bool,
    /// Whether models learn of jobs one by one.
    learns: bool,
}

impl Story {
    fn machine(&self, policy: &PolicySpec) -> Machine {
        let machine = Machine::of_processors(self.nodes).unwrap();
        let machine = Machine { details: Details::ideal(), ..machine };
        repertoire(policy).filled_in(&machine).unwrap()
    }

    fn jobs(&self) -> Vec<(Job, Span)> {
        let mut submit = 0;
        let jobs =
            self.jobs.iter().zip(0..).map(|(&(gap, nodes, requested, run, name), number)| {
                submit += gap;
                let requested = Span::from_secs(requested);
                let job = Job::new(number, Instant::from_secs(submit), nodes, requested);
                let application = NonZeroU32::new(name).map(ApplicationId);
                let terms =
                    Terms { nodes: NodeRange::new(nodes.div_ceil(2), nodes + 2), ..job.terms };
                // Some say on how many nodes they can run; the profiles have a row for each of these.
                let terms = if nodes % 3 == 0 && nodes < 9 { terms } else { job.terms };
                (Job { application, terms, ..job }, Span::from_secs(run))
            });
        jobs.collect()
    }

    fn limit(&self, machine: &Machine, hundredths: u32) -> Watts {
        let all = u64::from(machine.nodes) * machine.node_power.milliwatts();
        machine.base_power + Watts::from_milliwatts(all * u64::from(hundredths) / 100)
    }

    fn budget(&self, machine: &Machine) -> Budget {
        let limit = |&(at, share): &_| (Instant::from_secs(at), self.limit(machine, share));
        Budget::from_steps(self.budget.iter().map(limit).collect()).unwrap()
    }

    /// Runs it, handed over or not.
    fn run(&self, policy: &PolicySpec, hands_over: bool) -> Told {
        let machine = self.machine(policy);
        let decider = self
            .learns
            .then(|| Decider::new(&machine, repertoire(policy), policy.clone()).unwrap());
        let models = |jobs: &[Job]| match &decider {
            Some(decider) => learned(decider, jobs),
            None => model(policy, &machine, jobs),
        };
        let mut world = World::new(policy, &machine, self.budget(&machine), &models, self.jobs());
        world.overstay = self.overstay;
        // Who changes jobs lets them go on although a limit to come will not feed them as they are.
        let changes = ["parm", "share"].contains(&policy.name());
        world.may_exceed = changes && self.budget.len() > 1;
        let troubles = self.troubles.iter().map(|&(at, kind, which)| {
            let trouble = match kind {
                0 => Trouble::Suspend(which),
                1 => Trouble::Resume,
                _ => Trouble::Budget(Budget::constant(self.limit(&machine, 20 + which % 80))),
            };
            (Instant::from_secs(at), trouble)
        });
        let all = Budget::constant(self.limit(&machine, 110));
        let end = (Instant::from_secs(5000), Trouble::Budget(all));
        world.trouble(troubles.chain((!self.troubles.is_empty()).then_some(end)).collect());
        let handovers = self.handovers.iter().map(|at| Instant::from_secs(*at)).collect();
        world.run(handovers, hands_over)
    }
}

/// What a daemon believes: of nobody when it begins, and then of everybody who comes.
fn learned(decider: &Decider, jobs: &[Job]) -> Box<dyn Model> {
    let mut model = decider.model();
    for (id, job) in (0..).map(JobId).zip(jobs) {
        model.learn(id, job);
    }
    model
}

fn repertoire(policy: &PolicySpec) -> Repertoire {
    match policy.name().starts_with("rmap") {
        true => Repertoire::of(&profiles()),
        false => Repertoire::BuiltIn,
    }
}

/// How jobs run, from nothing but what is known of each of them: their places in the list change.
fn model(policy: &PolicySpec, machine: &Machine, jobs: &[Job]) -> Box<dyn Model> {
    let betas = || jobs.iter().map(|job| Beta::new((job.number % 5) as f64 / 4.0)).collect();
    let slowed = |known, oversized| Box::new(Dvfs::with_betas(machine, betas(), known, oversized));
    if let Some(spec) = policy.downcast::<PbGuidedSpec>() {
        return slowed(spec.beta, Oversized::Slow);
    }
    if let Some(spec) = policy.downcast::<ParmSpec>() {
        let model = elastic(machine, spec.levels, jobs);
        return match spec.flexibility {
            Flexibility::None => Box::new(model.as_asked()),
            _ => Box::new(model),
        };
    }
    if let Some(ShareSpec { uses: Some(Use::Sizes | Use::Resizes), .. }) = policy.downcast() {
        return Box::new(elastic(machine, ParmSpec::default().levels, jobs));
    }
    match policy.name() {
        "easy-power" | "share" => slowed(Knowledge::Unknown, policy.oversized()),
        "ppartition" | "uniform" => Box::new(Varied::on(machine, jobs, 1)),
        name if name.starts_with("rmap") => {
            let profiled = Profiled::new(machine, &profiles(), jobs, Beliefs::default());
            Box::new(profiled.unwrap())
        }
        _ => Box::new(Rigid::on(machine)),
    }
}

/// Jobs of PASS, each with an application and a parallelism by its number.
fn elastic(machine: &Machine, levels: u32, jobs: &[Job]) -> Elastic {
    let kind = |job: &Job| Kind {
        application: Application::ALL[job.number as usize % 5],
        parallelism: 1.0 + (job.number % 3) as f64,
        variation: 0.5,
    };
    let kinds: Vec<Kind> = jobs.iter().map(kind).collect();
    Elastic::of_kinds(machine, NodeCaps::of(machine, levels), &kinds, jobs)
}

/// Two applications on one to eight nodes under two caps; one scales well and one does not.
fn profiles() -> Vec<Profile> {
    let profile = |application: &str, serial: u64| {
        let row = |nodes: u32, cap: u32| Row {
            configuration: Configuration { nodes, cores: 1, cap: Watts::from_watts(cap) },
            time: Span::from_millis(serial + 1_600_000 / u64::from(nodes) * 100 / u64::from(cap)),
            power: Watts::from_watts(nodes * cap),
            origin: Origin::Measured,
        };
        let rows = [1, 2, 4, 8].into_iter().flat_map(|nodes| [50, 100].map(|cap| row(nodes, cap)));
        Profile { application: application.to_owned(), rows: rows.collect() }
    };
    vec![profile("A", 10_000), profile("B", 300_000)]
}

/// The policies, some of them in several ways.
fn policies() -> impl Strategy<Value = PolicySpec> {
    let texts = [
        "fcfs",
        "easy",
        "conservative",
        "easy-power",
        "pb-guided(lower=20%, upper=60%, bsld_lower=2, bsld_upper=4)",
        "pb-guided(lower=20%, upper=60%, bsld_lower=2, bsld_upper=4, beta=known)",
        "rmap-traditional",
        "rmap-naive",
        "rmap-adaptive(slowdown=unbounded)",
        "parm(guard=60s)",
        "parm(flex=moldable, alpha=0.5)",
        "parm(flex=none)",
        "ppartition",
        "ppartition(queues=2/6, dispatch=stop)",
        "uniform",
        "uniform(cap=tdp)",
        "utility",
        "share(use=caps)",
        "share(use=caps, order=history)",
        "share(use=recaps)",
        "share(use=sizes)",
        "share(use=resizes)",
    ];
    let parsed: Vec<PolicySpec> = texts.iter().map(|text| text.parse().unwrap()).collect();
    prop::sample::select(parsed)
}

/// No budget of these ends lower than it was: who was let in once is let in again.
fn budgets() -> impl Strategy<Value = Vec<(u32, u32)>> {
    let constant = (55u32..=110).prop_map(|share| vec![(0, share)]);
    let dips = (60u32..=110, 1u32..2000, 30u32..=60, 1u32..3000)
        .prop_map(|(high, at, low, length)| vec![(0, high), (at, low), (at + length, high)]);
    prop_oneof![3 => constant, 1 => dips]
}

fn stories() -> impl Strategy<Value = Story> {
    let gap = prop_oneof![Just(0u32), 1u32..300];
    (8u32..=12).prop_flat_map(move |nodes| {
        let times = (1u32..1500).prop_flat_map(|requested| (Just(requested), 0..=requested));
        let job = (gap.clone(), 1..=nodes, times, 1u32..=2)
            .prop_map(|(gap, nodes, (requested, run), name)| (gap, nodes, requested, run, name));
        (
            prop::collection::vec(job, 1..=14),
            budgets(),
            prop::collection::vec(0u32..4000, 1..=8),
            any::<bool>(),
        )
            .prop_map(move |(jobs, budget, handovers, learns)| Story {
                learns,
                nodes,
                jobs,
                budget,
                handovers,
                troubles: Vec::new(),
                overstay: false,
            })
    })
}

/// Jobs are suspended and resumed, go on beyond their time, and the budget is set anew; in the end there
/// is enough for everybody.
fn troubled() -> impl Strategy<Value = Story> {
    let troubles = prop::collection::vec((0u32..4000, 0u8..3, 0u32..100), 0..=8);
    (stories(), troubles, any::<bool>()).prop_map(|(story, troubles, overstay)| Story {
        budget: vec![(0, 110)],
        troubles,
        overstay,
        ..story
    })
}

/// Two jobs of four nodes share what feeds six of eight. The first has done its work after 100 s; then
/// there is power for the second, which a policy has to take over at 50 s to be able to give it.
#[test]
fn jobs_that_were_handed_over_get_what_comes_free() {
    let story = Story {
        nodes: 8,
        jobs: vec![(0, 4, 1000, 100, 1), (0, 4, 1000, 900, 1)],
        budget: vec![(0, 75)],
        handovers: vec![50],
        troubles: Vec::new(),
        overstay: false,
        learns: false,
    };
    for policy in ["parm(flex=none)", "ppartition"] {
        let told = story.run(&policy.parse().unwrap(), true);
        assert_eq!(told.starts, [Some(Instant::ZERO); 2], "{policy}");
        assert!(told.changes.iter().any(|(_, number)| *number == 1), "{policy}: {told:?}");
    }
}

/// The third job has nodes from 207 s on, when the first ends. It runs until after 1 076 s, when the budget feeds it alone. The
/// second ends before that even if it is lowered, so that nobody is in the way of the third. With all jobs at what they
/// would have if the lowest limit always held, it would have waited; lowered without a look at what is to come, it was refused.
#[test]
fn nobody_is_lowered_into_a_limit_to_come() {
    let story = Story {
        nodes: 9,
        jobs: vec![(54, 5, 649, 153, 2), (7, 1, 314, 208, 2), (0, 4, 1070, 367, 1)],
        budget: vec![(0, 84), (1076, 49), (1539, 84)],
        handovers: vec![1823, 1786, 2910],
        troubles: Vec::new(),
        overstay: false,
        learns: true,
    };
    let told = story.run(&"share(use=recaps)".parse().unwrap(), true);
    assert_eq!(told.starts[2], Some(Instant::from_secs(207)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases() / 3))]

    /// Every policy goes on with what it is handed.
    #[test]
    fn jobs_do_not_notice(policy in policies(), story in stories()) {
        story.run(&policy, true);
    }

    /// Policies that keep nothing but what follows from what is decide the same, start for start.
    #[test]
    fn who_keeps_nothing_loses_nothing(
        name in prop::sample::select(vec!["fcfs", "easy", "easy-power"]),
        story in stories(),
    ) {
        let policy: PolicySpec = name.parse().unwrap();
        let [handed_over, undisturbed] = [true, false].map(|is| story.run(&policy, is).starts);
        prop_assert_eq!(handed_over, undisturbed);
    }

    /// Nor is any policy confused by what happens on real machines.
    #[test]
    fn nor_does_trouble_matter(policy in policies(), story in troubled(), hands_over: bool) {
        story.run(&policy, hands_over);
    }
}
