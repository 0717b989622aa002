//! One scheduler on one set of jobs.

use super::Options;
use super::jobs::{self, INTREPID_NODES, TESTBED_NODES};
use busbar_core::budget::Budget;
use busbar_core::machine::Machine;
use busbar_core::model::elastic::NodeCaps;
use busbar_core::model::pass::{Application, Resizing};
use busbar_core::model::{Elastic, Model};
use busbar_core::policy::parm::{Flexibility, ParmSpec, Window};
use busbar_core::policy::{BuildContext, Parm, Policy, PolicySpec, ShareSpec};
use busbar_core::sim::{Run, Simulation};
use busbar_core::units::{Instant, JobId, Span, Watts};
use busbar_core::workload::Workload;

/// How much sooner or later arrivals are: the γ of the paper.
pub(crate) const GAMMAS: [f64; 7] = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8];
/// Weights' powers that are tried.
pub(super) const ALPHAS: [f64; 5] = [0.0, 0.25, 0.5, 1.0, 2.0];
/// Times that are tried for which a job keeps its nodes, in seconds; the paper does not say which it
/// used.
pub(super) const GUARDS: [u32; 4] = [0, 600, 1800, 3600];
/// Numbers of caps that are tried.
pub(super) const LEVELS: [u32; 6] = [1, 2, 3, 4, 6, 8];
/// Caps that all jobs have, and the nodes that can then be fed, as published.
pub(super) const UNIFORM: [(u32, u32); 4] =
    [(30, 55_248), (40, 49_493), (50, 44_824), (60, 40_960)];

/// What everything but the processor of a node draws in the projection.
const BASE: u32 = 56;
/// What the processor draws at most.
const FULL: u32 = 60;
/// 40 960 nodes at 116 W.
const PROJECTION_BUDGET: u32 = 4_751_360;
/// Nodes that the budget feeds at the lowest cap.
const PROJECTION_NODES: u32 = 55_248;

const TESTBED_BUDGET: u32 = 3300;
const TESTBED_CAPS: [u32; 6] = [30, 32, 34, 39, 45, 55];
/// So that a node under the highest cap draws 116 W.
const TESTBED_BASE: u32 = 61;

/// The applications of a set of jobs, all equally likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    /// A mean β of 0.10: three of four are Jacobi2D.
    Low,
    /// A mean β of 0.27.
    High,
}

impl Mix {
    fn applications(self) -> &'static [Application] {
        const LOW: [Application; 4] = [
            Application::JACOBI2D,
            Application::JACOBI2D,
            Application::JACOBI2D,
            Application::WAVE2D,
        ];
        const HIGH: [Application; 6] = [
            Application::LEAN_MD,
            Application::LULESH,
            Application::AMR,
            Application::AMR,
            Application::WAVE2D,
            Application::JACOBI2D,
        ];
        match self {
            Mix::Low => &LOW,
            Mix::High => &HIGH,
        }
    }
}

/// The scheduler of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scheduler {
    /// EASY on the nodes the budget feeds without caps.
    Baseline,
    /// EASY on as many nodes as it feeds under one cap for all, in watts.
    Uniform {
        cap: u32,
        nodes: u32,
    },
    Parm(ParmSpec),
    /// Busbar's own.
    Share(ShareSpec),
}

impl Scheduler {
    /// The policy behind it.
    pub(crate) fn policy(self) -> Box<dyn Policy> {
        match self {
            Scheduler::Parm(spec) => Box::new(Parm::with(spec)),
            Scheduler::Share(spec) => PolicySpec::of(spec).build(&BuildContext::default()),
            Scheduler::Baseline | Scheduler::Uniform { .. } => {
                PolicySpec::easy().build(&BuildContext::default())
            }
        }
    }
}

/// One run of the experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Task {
    Testbed { seed: u64, mix: Mix, scheduler: Scheduler },
    Projection { set: usize, gamma: f64, scheduler: Scheduler },
}

/// What a run came to; times in minutes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunFigures {
    pub(crate) response: f64,
    pub(super) execution: f64,
    pub(crate) completion: f64,
    pub(crate) longest_completion: f64,
    /// From the first submission to the last end.
    pub(crate) makespan: f64,
    /// Jobs that did not run to their end.
    pub(crate) undone: f64,
    /// Nodes a job has, mean over its time, mean over the jobs.
    pub(super) nodes: f64,
    /// How often nodes changed while a job ran.
    pub(super) moves: f64,
}

/// PARM as usual, but with every waiting job in the program, as in the paper.
pub(super) fn usual() -> ParmSpec {
    ParmSpec { window: Window::All, ..ParmSpec::default() }
}

/// PARM of a flexibility, otherwise as in the paper.
pub(crate) fn parm(flexibility: Flexibility) -> Scheduler {
    Scheduler::Parm(ParmSpec { flexibility, ..usual() })
}

impl Task {
    /// All runs of all experiments.
    pub(super) fn all(options: &Options) -> Vec<Task> {
        let mut tasks = Vec::new();
        let versions = [Flexibility::None, Flexibility::Moldable, Flexibility::Malleable];
        for draw in 0..options.seeds {
            for mix in [Mix::Low, Mix::High] {
                let schedulers = [Scheduler::Baseline].into_iter().chain(versions.map(parm));
                let seed = options.first_seed.wrapping_add(draw);
                tasks.extend(schedulers.map(|scheduler| Task::Testbed { seed, mix, scheduler }));
            }
        }
        for set in 0..3 {
            for gamma in GAMMAS {
                let schedulers = [
                    Scheduler::Baseline,
                    parm(Flexibility::Moldable),
                    parm(Flexibility::Malleable),
                ];
                tasks.extend(schedulers.map(|scheduler| Task::Projection {
                    set,
                    gamma,
                    scheduler,
                }));
            }
        }
        let uniform = UNIFORM.map(|(cap, nodes)| Scheduler::Uniform { cap, nodes });
        tasks.extend(uniform.map(|scheduler| Task::Projection { set: 1, gamma: 0.5, scheduler }));
        let usual = usual();
        let fair = ALPHAS.map(|alpha| ParmSpec { alpha, ..usual });
        let levels = LEVELS.map(|levels| ParmSpec { levels, ..usual });
        let guards = GUARDS.map(|guard| ParmSpec { guard: Span::from_secs(guard), ..usual });
        for spec in fair.into_iter().chain(levels).chain(guards).filter(|spec| *spec != usual) {
            let scheduler = Scheduler::Parm(spec);
            tasks.push(Task::Projection { set: 0, gamma: 0.5, scheduler });
        }
        tasks
    }

    pub(crate) fn run(&self, sets: &[Workload; 3], options: &Options) -> RunFigures {
        match *self {
            Task::Testbed { seed, mix, scheduler } => {
                let workload = jobs::testbed(seed);
                let place = Place {
                    nodes: 38,
                    conventional: TESTBED_NODES,
                    base: TESTBED_BASE,
                    caps: TESTBED_CAPS.to_vec(),
                    budget: TESTBED_BUDGET,
                    // Nodes that are there need not boot; data goes over gigabit Ethernet.
                    resizing: Resizing::new(117.0, 0.0, 0.0).ok(),
                };
                place.run(&workload, scheduler, mix.applications(), seed)
            }
            Task::Projection { set, gamma, scheduler } => {
                let workload = jobs::denser(&sets[set], gamma);
                let levels = match scheduler {
                    Scheduler::Parm(spec) => spec.levels,
                    Scheduler::Share(_) => usual().levels,
                    _ => 1,
                };
                let place = Place {
                    nodes: PROJECTION_NODES,
                    conventional: INTREPID_NODES,
                    base: BASE,
                    caps: even_caps(levels),
                    budget: PROJECTION_BUDGET,
                    resizing: None,
                };
                let seed = options.first_seed.wrapping_add(set as u64);
                place.run(&workload, scheduler, &Application::ALL, seed)
            }
        }
    }
}

/// This many caps from 30 to 60 W; the highest alone if it is one.
fn even_caps(levels: u32) -> Vec<u32> {
    match levels {
        1 => vec![FULL],
        _ => (0..levels).map(|step| 30 + 30 * step / (levels - 1)).collect(),
    }
}

/// A machine and what feeds it, in watts.
struct Place {
    nodes: u32,
    conventional: u32,
    base: u32,
    caps: Vec<u32>,
    budget: u32,
    /// What a change of nodes costs, if not what it does on a Blue Gene/P.
    resizing: Option<Resizing>,
}

impl Place {
    fn run(
        &self,
        workload: &Workload,
        scheduler: Scheduler,
        mix: &[Application],
        seed: u64,
    ) -> RunFigures {
        let highest = self.caps.last().copied().unwrap_or(FULL);
        let (nodes, caps) = match scheduler {
            Scheduler::Baseline => (self.conventional, vec![highest]),
            Scheduler::Uniform { cap, nodes } => (nodes, vec![cap]),
            Scheduler::Parm(_) | Scheduler::Share(_) => (self.nodes, self.caps.clone()),
        };
        let machine = Machine {
            name: "PARM's".to_owned(),
            nodes,
            processors_per_node: 1,
            sockets_per_node: 1,
            node_power: Watts::from_watts(self.base + highest),
            power_is_assumed: false,
            ..Machine::cab()
        };
        let caps = caps.into_iter().map(Watts::from_watts).collect();
        // Caps are constants that rise.
        let feed = NodeCaps::new(Watts::from_watts(self.base), caps, Watts::from_watts(FULL));
        let feed = feed.expect("caps that rise");
        let model = Elastic::new(&machine, feed, mix, workload.jobs(), seed);
        let model = match self.resizing {
            Some(resizing) => model.resizing(resizing),
            None => model,
        };
        let is_rigid = match scheduler {
            Scheduler::Baseline | Scheduler::Uniform { .. } => true,
            Scheduler::Parm(spec) => spec.flexibility == Flexibility::None,
            Scheduler::Share(_) => false,
        };
        let model = if is_rigid { model.as_asked() } else { model };
        let mut policy = scheduler.policy();
        let run = Simulation::new(&machine, workload)
            .budget(Budget::constant(Watts::from_watts(self.budget)))
            .model(&model as &dyn Model)
            .run(policy.as_mut());
        RunFigures::of(workload, &run)
    }
}

impl RunFigures {
    pub(crate) fn of(workload: &Workload, run: &Run) -> Self {
        let jobs = (0..).map(JobId).zip(workload.jobs()).zip(&run.records);
        let ran: Vec<_> = jobs.filter(|(_, record)| record.state.has_run()).collect();
        let mean = |figure: &dyn Fn(usize) -> f64| {
            (0..ran.len()).map(figure).sum::<f64>() / ran.len().max(1) as f64
        };
        let minutes = |at: usize, from: Instant| ran[at].1.end.since(from).secs_f64() / 60.0;
        let completion = |at: usize| minutes(at, ran[at].0.1.submit);
        let execution = |at: usize| minutes(at, ran[at].1.start);
        let nodes = |at: usize| {
            let total = run.total(ran[at].0.0).node_millis as f64;
            total / (execution(at) * 60_000.0).max(1.0)
        };
        RunFigures {
            response: mean(&|at| completion(at) - execution(at)),
            execution: mean(&execution),
            completion: mean(&completion),
            undone: (run.records.len() - ran.len()) as f64,
            makespan: run.end.since(run.begin).secs_f64() / 60.0,
            longest_completion: (0..ran.len()).map(completion).fold(0.0, f64::max),
            nodes: mean(&nodes),
            // Whoever gets other nodes has to pause.
            moves: run.changes.iter().filter(|change| change.pause.millis() > 0).count() as f64,
        }
    }
}
