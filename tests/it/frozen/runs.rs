//! The runs whose starts are frozen: every policy, with the parameters that the papers' experiments use, on
//! small generated workloads under budgets that bind and budgets that change.

use std::num::NonZeroU32;

use busbar::budget::{Budget, EnergyBudget};
use busbar::heterogeneity::Site;
use busbar::job::{ApplicationId, Job, NodeRange};
use busbar::machine::Machine;
use busbar::profile::Profile;
use busbar::profile::cab::{self, Preset};
use busbar::sim::Events;
use busbar::units::{Instant, Joules, Share, Span, Watts};
use busbar::workload::Workload;
use busbar::workload::essc::{Essc, Tasks};
use busbar::workload::lublin::Lublin;
use busbar::workload::rmap::{Kind, Trace, UsualTimes};

use super::ask::ask_machine;
use super::worlds::{Feed, Kinds, Pass, World};
use super::worlds::{parm_machine, random_rows, regressed, testbed_feed};

/// How jobs run in a run.
#[derive(Clone, Debug)]
pub(super) enum SharedWorld {
    /// As the policy's name says, with what is random drawn from the run's seed.
    Own,
    /// As given, whatever the policy.
    SourceDefaults(World),
    /// Tasks on machines of several types.
    Site(Site),
}

/// One run.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) name: String,
    /// As on the command line.
    pub(super) policy: String,
    pub(super) ground: SharedWorld,
    pub(super) machine: Machine,
    /// The machine on which plain EASY is measured, if it is another one.
    pub(super) plain_machine: Option<Machine>,
    pub(super) workload: Workload,
    pub(super) budget: Budget,
    pub(super) energy: Option<EnergyBudget>,
    pub(super) events: Events,
    pub(super) seed: u64,
    /// Whether every change of a running job is frozen, too.
    pub(super) in_detail: bool,
}

/// Runs of one kind, numbered.
struct Series {
    name: &'static str,
    first: Setup,
    setups: Vec<Setup>,
}

impl Series {
    fn new(name: &'static str, machine: Machine, workload: Workload, ground: SharedWorld) -> Self {
        let first = Setup {
            name: String::new(),
            policy: String::new(),
            ground,
            machine,
            plain_machine: None,
            workload,
            budget: Budget::unlimited(),
            energy: None,
            events: Events::Instant,
            seed: 1,
            in_detail: false,
        };
        Series { name, first, setups: Vec::new() }
    }

    fn add(&mut self, policy: &str, budget: &Budget, change: impl FnOnce(&mut Setup)) {
        let mut setup = self.first.clone();
        setup.name = format!("{}-{:02}", self.name, self.setups.len() + 1);
        setup.policy = policy.to_owned();
        setup.budget = budget.clone();
        change(&mut setup);
        self.setups.push(setup);
    }

    fn add_each(&mut self, policies: &[&str], budget: &Budget) {
        policies.iter().for_each(|policy| self.add(policy, budget, |_| {}));
    }
}

fn watts(watts: u32) -> Budget {
    Budget::constant(Watts::from_watts(watts))
}

/// So much of what the machine draws with every node busy.
fn share(percent: u32, machine: &Machine) -> Budget {
    Budget::constant(Share::percent(percent).of(machine.max_power()))
}

/// Three limits, in per cent of what the machine draws: from the beginning, and after a third and two
/// thirds of the time in which jobs are submitted.
fn stepped(percents: [u32; 3], machine: &Machine, workload: &Workload) -> Budget {
    let last = workload.jobs().last().map_or(0, |job| job.submit.millis());
    let steps = percents.iter().zip(0..).map(|(percent, third)| {
        let limit = Share::percent(*percent).of(machine.max_power());
        (Instant::from_millis(last * third / 3), limit)
    });
    Budget::from_steps(steps.collect()).unwrap()
}

/// Generated jobs for so many processors, with requests of at least the run time.
fn lublin(jobs: u32, processors: u32, load: f64, seed: u64) -> Workload {
    let lublin = Lublin { jobs, processors, load, seed, ..Lublin::default() };
    let mut workload = lublin.generate().unwrap();
    workload.raise_estimates();
    workload
}

/// The same jobs, with something about each of them changed by its place.
fn changed(workload: &Workload, change: impl Fn(usize, &mut Job)) -> Workload {
    let jobs = workload.jobs().iter().zip(workload.run_times()).enumerate();
    let jobs = jobs.map(|(place, (job, run))| {
        let mut job = *job;
        change(place, &mut job);
        (job, *run)
    });
    Workload::new(workload.name(), jobs.collect::<Vec<_>>()).on_processors(workload.processors())
}

pub(super) fn plain() -> Vec<Setup> {
    let machine = Machine::of_processors(64).unwrap();
    let workload = lublin(50, 64, 1.2, 1);
    let workload = changed(&workload, |place, job| {
        if place == 20 {
            job.nodes = 65;
        }
    });
    let falling = stepped([90, 35, 60], &machine, &workload);
    let budget = share(45, &machine);
    // Requests that are shorter than the jobs, so that some are killed.
    let short = changed(&workload, |place, job| {
        if place % 5 == 0 {
            job.requested = Span::from_millis(job.requested.millis() / 3);
        }
    });
    let mut series = Series::new("plain", machine, workload, SharedWorld::Own);
    for budget in [&budget, &falling] {
        series.add_each(&["fcfs", "easy", "conservative"], budget);
    }
    // Nodes of four processors and a machine that draws something at all times.
    series.add("easy", &watts(1700), |setup| {
        setup.machine.processors_per_node = 4;
        setup.machine.nodes = 16;
        setup.machine.node_power = Watts::from_watts(150);
        setup.machine.base_power = Watts::from_watts(200);
        setup.workload.pack_processors(4);
    });
    series.add("easy", &budget, |setup| setup.workload = short);
    series.setups
}

pub(super) fn gears() -> Vec<Setup> {
    let machine = Machine::of_processors(64).unwrap();
    let workload = lublin(50, 64, 1.0, 2);
    let falling = stepped([80, 40, 60], &machine, &workload);
    let budget = share(60, &machine);
    let limit = share(80, &machine);
    let larger = [20, 75].map(|percent| machine.enlarged(Share::percent(percent)).unwrap());
    let mut series = Series::new("gears", machine.clone(), workload, SharedWorld::Own);
    series.add_each(
        &[
            "easy-power",
            "easy-power(oversized=reject)",
            "pb-guided",
            "pb-guided(beta=known)",
            "pb-guided(lower=50%, upper=80%, bsld_lower=3, bsld_upper=1.5x, oversized=reject)",
        ],
        &budget,
    );
    series.add_each(&["easy-power", "pb-guided", "pb-guided(beta=known)"], &falling);
    for (enlarged, policy) in larger.iter().zip(["pb-guided(beta=known)", "pb-guided"]) {
        series.add(policy, &limit, |setup| {
            setup.machine = enlarged.clone();
            setup.plain_machine = Some(machine.clone());
        });
    }
    series.add("pb-guided", &budget, |setup| setup.seed = 7);
    series.setups
}

pub(super) fn pass() -> Vec<Setup> {
    let machine = Machine::of_processors(64).unwrap();
    let workload = lublin(40, 64, 1.2, 3);
    let falling = stepped([90, 50, 70], &machine, &workload);
    let budget = share(60, &machine);
    let ranged = changed(&workload, |place, job| {
        if place % 3 == 0 {
            job.terms.nodes = NodeRange::new(job.nodes.div_ceil(3), job.nodes + 5);
        }
    });
    let mut series = Series::new("pass", machine, workload, SharedWorld::Own);
    series.add_each(
        &[
            "parm",
            "parm(flex=none)",
            "parm(flex=moldable)",
            "parm(alpha=2, window=all)",
            "parm(alpha=0.5)",
            "parm(levels=3)",
            "parm(levels=1, guard=0s)",
        ],
        &budget,
    );
    series.add("parm", &falling, |setup| setup.in_detail = true);
    series.add("parm(flex=none)", &falling, |_| {});
    series.add("parm", &budget, |setup| setup.workload = ranged);
    // As in the paper's testbed: 38 nodes with caps, or 28 without, on the same watts.
    let testbed = |feed: Feed, is_as_asked| {
        let kinds = Kinds::Drawn { mix: vec![1, 3, 4, 4, 2, 5], seed: 4 };
        SharedWorld::SourceDefaults(World::Pass(Pass {
            feed,
            kinds,
            is_as_asked,
            links: Some(117.0),
        }))
    };
    let jobs = lublin(36, 28, 3.0, 6);
    let uncapped = Feed::Watts { rest: 61, caps: vec![55], full: 60 };
    let uniform = Feed::Watts { rest: 61, caps: vec![39], full: 60 };
    let grounds = [
        ("easy", 28, testbed(uncapped, true)),
        ("easy", 33, testbed(uniform, true)),
        ("parm(flex=none, window=all)", 38, testbed(testbed_feed(), true)),
        ("parm(flex=moldable, window=all)", 38, testbed(testbed_feed(), false)),
        ("parm(window=all)", 38, testbed(testbed_feed(), false)),
    ];
    for (policy, nodes, ground) in grounds {
        series.add(policy, &watts(3300), |setup| {
            setup.machine = parm_machine(nodes, 116);
            setup.workload = jobs.clone();
            setup.ground = ground;
        });
    }
    series.setups
}

pub(super) fn tables() -> Vec<Setup> {
    let machine = Machine::cab();
    let measured = cab::generate(Preset::Cab, 1);
    let predicted = regressed(&measured, random_rows(1));
    let usual = UsualTimes(measured.iter().map(Profile::usual_times).collect());
    let draw = |kind, gaps| Trace { kind, gaps, ..Trace::default() }.draw(&usual, 1).unwrap();
    let workload = draw(Kind::Random, 1.0);
    let falling = stepped([75, 45, 60], &machine, &workload);
    let terms = changed(&workload, |place, job| {
        job.terms.weight = ["1", "2", "0.5"][place % 3].parse().unwrap();
        job.terms.tolerance = (place % 2 == 0).then(|| "20%".parse().unwrap());
        job.terms.nodes = NodeRange::new(8, 32).filter(|_| place % 5 == 0);
    });
    let ground = |believed: &[Profile], per_node| {
        let (believed, truth) = (believed.to_vec(), measured.clone());
        SharedWorld::SourceDefaults(World::Tables { believed, truth, per_node })
    };
    let exact = ground(&measured, None);
    let fitted = ground(&predicted, None);
    let worst = ground(&measured, Some(Watts::from_watts(230)));
    let mut series = Series::new("tables", machine, workload, exact.clone());
    let contenders = [
        ("rmap-traditional", &exact),
        ("rmap-traditional(node_power=230W)", &worst),
        ("rmap-naive", &exact),
        ("rmap-adaptive", &exact),
        ("rmap-adaptive", &fitted),
        ("rmap-adaptive(slowdown=10%)", &fitted),
        ("rmap-adaptive(slowdown=20%)", &fitted),
        ("rmap-adaptive(slowdown=30%)", &fitted),
        ("rmap-adaptive(slowdown=unbounded)", &fitted),
        ("rmap-adaptive(guard=15%)", &fitted),
    ];
    for (policy, ground) in contenders {
        series.add(policy, &watts(6500), |setup| setup.ground = ground.clone());
    }
    for (policy, ground) in [("rmap-traditional", &exact), ("rmap-adaptive", &fitted)] {
        series.add(policy, &watts(12_000), |setup| {
            setup.ground = ground.clone();
            setup.workload = draw(Kind::Large, 2.0);
        });
    }
    for policy in ["rmap-traditional", "rmap-naive", "rmap-adaptive(slowdown=unbounded)"] {
        series.add(policy, &falling, |setup| setup.ground = fitted.clone());
    }
    // Predictions so wrong that jobs are killed at their limits.
    let contended = cab::generate(Preset::CabContended, 48);
    let usual = UsualTimes(contended.iter().map(Profile::usual_times).collect());
    let large = Trace { kind: Kind::Large, seed: 48, ..Trace::default() };
    series.add("rmap-adaptive(slowdown=unbounded)", &watts(6500), |setup| {
        setup.workload = large.draw(&usual, 1).unwrap();
        let believed = regressed(&contended, random_rows(48));
        let world = World::Tables { believed, truth: contended, per_node: None };
        setup.ground = SharedWorld::SourceDefaults(world);
    });
    series.add("rmap-adaptive", &watts(8000), |setup| {
        setup.workload = terms;
        setup.ground = fitted.clone();
    });
    series.setups
}

pub(super) fn curves() -> Vec<Setup> {
    let machine = Machine::catalyst(48, 3).unwrap();
    // Every code in turn, and jobs that name none.
    let workload = changed(&lublin(36, 48, 1.5, 5), |place, job| {
        job.application = NonZeroU32::new(place as u32 % 5).map(ApplicationId);
    });
    let falling = stepped([60, 20, 40], &machine, &workload);
    let budget = share(50, &machine);
    let mut series = Series::new("curves", machine, workload, SharedWorld::Own);
    series.add_each(
        &[
            "ppartition",
            "ppartition(dispatch=stop)",
            "uniform",
            "uniform(cap=share, dispatch=stop)",
            "uniform(cap=75W, seed=7)",
            "uniform(cap=tdp)",
        ],
        &budget,
    );
    // As in the paper, one event at a time.
    let published = [
        "ppartition(fewest=0%, sharing=paper)",
        "ppartition(first=uncapped, fewest=0%, sharing=paper)",
        "ppartition(dispatch=stop, fewest=50%, sharing=paper)",
    ];
    for policy in published {
        series.add(policy, &budget, |setup| setup.events = Events::Each);
    }
    series.add("ppartition", &falling, |setup| setup.in_detail = true);
    series.add("uniform", &falling, |_| {});
    series.setups
}

pub(super) fn states() -> Vec<Setup> {
    let mut essc = Essc { tasks: 420, hours: 2, warm_up: 1, ..Essc::default() };
    essc.machines.machines = 4;
    let Tasks { workload, site, period } = essc.draw().unwrap();
    let machine = ask_machine(&site);
    let (begin, end) = period.unwrap();
    let energy = |kilojoules: u64| {
        Some(EnergyBudget { energy: Joules::from_joules(1000 * kilojoules), begin, end })
    };
    let mut series = Series::new("states", machine, workload, SharedWorld::Site(site));
    series.first.energy = energy(2000);
    let unlimited = Budget::unlimited();
    let heuristics = [
        "random",
        "fcfs-p0",
        "fcfs-all",
        "prioritized-fcfs-p0",
        "prioritized-fcfs-all",
        "lcfs-p0",
        "lcfs-all",
        "prioritized-lcfs-p0",
        "prioritized-lcfs-all",
        "max-utility",
        "max-upt",
        "max-upe",
    ];
    for heuristic in heuristics {
        series.add(&format!("utility(heuristic={heuristic})"), &unlimited, |_| {});
    }
    series.add_each(
        &[
            "utility(heuristic=max-upe, environment=queued)",
            "utility(heuristic=max-upe, filter=off)",
            "utility(heuristic=max-upt, environment=queued, filter=off)",
            "utility(heuristic=fcfs-p0, environment=queued, filter=off)",
            "utility(heuristic=random, environment=queued, seed=7)",
            "utility(drop=0.25, every=30s)",
        ],
        &unlimited,
    );
    series.add("utility(filter=off)", &unlimited, |setup| setup.energy = energy(700));
    series.setups
}
