//! Policies on the same ground: the same jobs, nodes and watts for all of them, and beliefs that may be
//! wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use busbar::belief::fit::{self, Clock};
use busbar::belief::{Admission, Belief, Choices, Holds, Knowledge, OnNamed};
use busbar::budget::Budget;
use busbar::freedom::{Freedom, Freedoms};
use busbar::machine::Machine;
use busbar::model::{Model, Varied};
use busbar::policy::{PolicySpec, Setting};
use busbar::sim::{Record, Run, Simulation, State};
use busbar::units::{Instant, JobId, Share, Span, Watts};
use busbar::workload::Workload;
use busbar::workload::demo::demo;
use busbar::world::assignment::Mix;
use busbar::world::{Assignment, Law, Node, Parts, World, catalogue};

const NODES: u32 = 256;

/// What a policy is told of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// What it was published with.
    Published,
    /// What holds.
    Exact,
}

/// Jobs of all built-in applications on nodes that are mildly unlike.
struct Ground {
    workload: Workload,
    machine: Machine,
    world: Arc<World>,
    node: Node,
    levels: Vec<Watts>,
    assigned: Assignment,
}

impl Ground {
    fn new(jobs: usize) -> Self {
        let mut workload = demo();
        workload.slice(0..jobs);
        workload.raise_estimates();
        let watts = Watts::from_watts;
        let node = Node { rest: watts(20), highest: watts(80), idle: watts(15) };
        let levels = [40, 48, 56, 64, 72, 80].map(watts).to_vec();
        // What a node draws anyway is drawn by the machine.
        let machine = Machine {
            node_power: node.added(node.highest),
            base_power: node.idle * NODES,
            ..Machine::of_processors(NODES).unwrap()
        };
        let applications = catalogue::applications();
        let weights = (0..applications.len()).map(|number| (number, 1)).collect();
        let mix = Mix::new(weights, applications.len()).unwrap();
        let assigned = Assignment::drawn(workload.jobs(), &mix, 1);
        let parts = Parts::Unlike { spread: 0.08, seed: 1 };
        let world = Arc::new(World::new(node, parts, applications, assigned.clone()));
        Ground { workload, machine, world, node, levels, assigned }
    }

    fn choices(&self, freedoms: &[Freedom]) -> Choices {
        Choices {
            node: self.node,
            levels: self.levels.clone(),
            nodes: NODES,
            cores: 1,
            freedoms: Freedoms::of(freedoms),
        }
    }

    /// What a policy believes.
    fn belief(&self, policy: &PolicySpec, told: Told) -> Box<dyn Model> {
        use Freedom::{Caps, Sizes};
        let (clock, name) = (Clock::of(&self.machine.gearbox), policy.name());
        let freedoms: &[Freedom] = match name {
            "fcfs" | "easy" | "conservative" => &[],
            "easy-power" | "pb-guided" => &[Caps],
            "rmap-traditional" => &[Sizes],
            _ => &[Caps, Sizes],
        };
        let choices = self.choices(freedoms);
        // What was fitted is wrong by a few per cent, either way.
        let is_fitted = matches!(name, "parm" | "rmap-adaptive") && told == Told::Published;
        let margin = if is_fitted { 133 } else { 100 };
        let of = |laws: Vec<Arc<dyn Law>>, holds| {
            let (margin, admission) = (Share::percent(margin), Admission::AnyWay);
            let knowledge = Knowledge { laws, holds, margin, admission };
            let jobs = self.workload.jobs();
            Box::new(Belief::new(Arc::new(knowledge), choices.clone(), self.assigned.clone(), jobs))
        };
        match (name, told) {
            ("ppartition" | "uniform", _) => {
                let processors = fit::curves(&self.world, &choices).unwrap();
                let jobs = 0..self.workload.jobs().len() as u32;
                let of_jobs = jobs.map(|job| self.assigned.application(JobId(job)) as u32);
                let rated = self.node.added(self.node.highest);
                let curves = Varied::assigned(Arc::new(processors), rated, of_jobs.collect());
                match told {
                    Told::Published => Box::new(OnNamed::curves(curves)),
                    Told::Exact => Box::new(OnNamed::in_world(curves, self.world.clone())),
                }
            }
            (_, Told::Exact) => of(fit::exact(&self.world), Holds::Draw),
            ("easy-power" | "pb-guided", _) => {
                of(fit::clock(&self.world, &clock), Holds::WholeCaps)
            }
            ("parm", _) => of(fit::pass(&self.world, &choices).unwrap(), Holds::WholeCaps),
            ("rmap-traditional" | "rmap-naive", _) => of(fit::measured(&self.world), Holds::Draw),
            ("rmap-adaptive", _) => {
                let share = Share::percent(10);
                let laws = fit::regression(&self.world, &choices, share, 1);
                of(laws.unwrap(), Holds::Draw)
            }
            _ => of(fit::rated(&self.world), Holds::WholeCaps),
        }
    }

    fn limit(&self, percent: u32) -> Watts {
        Share::percent(percent).of(self.machine.max_power())
    }

    fn run(&self, policy: &PolicySpec, told: Told, limit: Watts) -> Run {
        let belief = self.belief(policy, told);
        let mut built = policy.build(&Setting::default());
        let run = Simulation::new(&self.machine, &self.workload)
            .budget(Budget::constant(limit))
            .model(belief.as_ref())
            .world(&self.world)
            .keep_power(true)
            .run(built.as_mut());
        assert_eq!(run.violations, 0, "{policy}: {:?}", run.first_violations);
        run
    }
}

/// The most that is drawn at any instant, added up again from what became of the jobs; for policies that
/// do not change jobs while they run.
fn peak(run: &Run, base: Watts) -> Watts {
    let mut steps = BTreeMap::<Instant, i64>::new();
    for record in run.records.iter().filter(|record| record.state.has_run()) {
        let power = record.power.milliwatts() as i64;
        *steps.entry(record.start).or_default() += power;
        *steps.entry(record.end).or_default() -= power;
    }
    let mut drawn = base.milliwatts() as i64;
    let sums = steps.values().map(|step| {
        drawn += step;
        drawn
    });
    Watts::from_milliwatts(sums.max().unwrap_or(drawn) as u64)
}

fn policies() -> Vec<PolicySpec> {
    let all = PolicySpec::all().into_iter();
    all.filter(|policy| policy.name() != "utility").collect()
}

/// With exact beliefs nobody draws more than was set aside, whatever nodes it got, and nobody is killed.
#[test]
fn who_knows_the_world_stays_within_the_limit() {
    let ground = Ground::new(400);
    for percent in [60, 80] {
        let limit = ground.limit(percent);
        for policy in policies() {
            let run = ground.run(&policy, Told::Exact, limit);
            assert_eq!(run.excursions.time, Span::ZERO, "{policy} under {percent} %");
            assert!(run.power.iter().all(|sample| sample.power <= sample.limit), "{policy}");
            let killed = run.records.iter().filter(|record| record.state == State::Killed).count();
            assert_eq!(killed, 0, "{policy}");
            let is_completed = |record: &&Record| record.state == State::Completed;
            let completed = run.records.iter().filter(is_completed).count();
            assert!(completed >= 380, "{policy}: {completed}");
            if run.changes.is_empty() {
                assert!(peak(&run, ground.machine.base_power) <= limit, "{policy}");
            }
        }
    }
}

/// Who sets whole caps aside never draws more, however wrong his belief about time is. RMAP's policies set
/// aside what was measured on the reference node, which greedy nodes pass. Where beliefs about time are
/// too short, jobs are killed.
#[test]
fn published_beliefs_run_in_the_same_world() {
    let ground = Ground::new(400);
    let limit = ground.limit(60);
    for policy in policies() {
        let run = ground.run(&policy, Told::Published, limit);
        let sets_draws_aside = policy.name().starts_with("rmap-");
        let exceeds = run.power.iter().any(|sample| sample.power > sample.limit);
        assert_eq!(run.excursions.time > Span::ZERO, exceeds, "{policy}: what is drawn is counted");
        assert!(!exceeds || sets_draws_aside, "{policy}");
        if run.changes.is_empty() {
            assert_eq!(peak(&run, ground.machine.base_power) > limit, exceeds, "{policy}");
        }
        let ended =
            |state: State| run.records.iter().filter(|record| record.state == state).count();
        let (killed, completed) = (ended(State::Killed), ended(State::Completed));
        let knows_bounds =
            ["fcfs", "easy", "conservative", "easy-power", "pb-guided"].contains(&policy.name());
        assert!(killed == 0 || !knows_bounds, "{policy}: {killed} killed");
        assert!(killed + completed >= 380, "{policy}: {completed} completed, {killed} killed");
    }
}

/// A rigid job takes the time in the log, on whichever nodes; it draws less than it is rated at.
#[test]
fn as_asked_times_are_those_of_the_log() {
    let ground = Ground::new(200);
    let run = ground.run(&"easy".parse().unwrap(), Told::Published, Watts::UNLIMITED);
    for (place, record) in run.records.iter().enumerate() {
        let id = JobId(place as u32);
        assert_eq!(record.end.since(record.start), ground.workload.run_time(id));
        let rated = ground.machine.node_power * record.nodes;
        assert!(record.power < rated, "{} of {rated}", record.power);
    }
}
