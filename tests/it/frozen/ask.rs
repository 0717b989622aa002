//! Asking today's code: the one place of these tests that knows models and policies.
//!
//! Samples and runs go in as data, and whole numbers come out. Whoever replaces the models rewrites this
//! file and nothing else of these tests.

use std::cell::RefCell;

use busbar::dispatch::Rejection;
use busbar::heterogeneity::Site;
use busbar::job::Job;
use busbar::machine::Machine;
use busbar::model::elastic::Kind;
use busbar::model::pass::{Application, Resizing};
use busbar::model::{
    Beliefs, Beta, Caps, Dvfs, Elastic, Heterogeneous, Knowledge, Model, NodeCap, OperatingPoint,
    Outcome, Oversized, Profiled, Rigid, Rung, TimedPoint, Varied,
};
use busbar::policy::{DropReason, PolicySpec};
use busbar::reproduce::papers;
use busbar::scenario::Scenario;
use busbar::sim::State;
use busbar::units::{Instant, JobId, NodeId, Span, Watts};

use super::runs::{Setup, SharedWorld};
use super::worlds::{Asked, Betas, Feed, Kinds, Named, Pass, Sample, World};

/// A way to run a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) nodes: u32,
    pub(super) cores: u32,
    pub(super) cap_mw: u64,
    /// For how long the job may run.
    pub(super) limit_ms: u64,
    /// How long it is believed to run.
    pub(super) believed_ms: u64,
    /// What its nodes are believed to draw together.
    pub(super) power_mw: u64,
}

/// What really happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Truth {
    pub(super) run_ms: u64,
    pub(super) power_mw: u64,
}

impl From<TimedPoint> for Point {
    fn from(way: TimedPoint) -> Self {
        let OperatingPoint { nodes, cores, cap, time, power } = way.point;
        Point {
            nodes,
            cores,
            cap_mw: cap.milliwatts(),
            limit_ms: time.millis(),
            believed_ms: way.believed.millis(),
            power_mw: power.milliwatts(),
        }
    }
}

impl From<Outcome> for Truth {
    fn from(outcome: Outcome) -> Self {
        Truth { run_ms: outcome.run_time.millis(), power_mw: outcome.power.milliwatts() }
    }
}

/// What a machine and a world say of jobs.
pub(super) struct Answers {
    jobs: Vec<Asked>,
    believed: Box<dyn Model>,
    truth: Option<Box<dyn Model>>,
}

impl Answers {
    pub(super) fn of(sample: &Sample) -> Self {
        let jobs: Vec<Job> = sample.jobs.iter().map(|asked| asked.job).collect();
        let (believed, truth) = models(&sample.machine, &sample.world, &jobs);
        Answers { jobs: sample.jobs.clone(), believed, truth }
    }

    fn truth(&self) -> &dyn Model {
        self.truth.as_ref().unwrap_or(&self.believed).as_ref()
    }

    fn job(&self, place: usize) -> (JobId, &Job) {
        (JobId(place as u32), &self.jobs[place].job)
    }

    /// Every way to run a job, the nominal one first.
    pub(super) fn ask_menu(&self, place: usize) -> Vec<(Point, Truth)> {
        let (id, job) = self.job(place);
        let ways = RefCell::new(Vec::new());
        let none = self.believed.fastest_of(id, job, &|way| {
            ways.borrow_mut().push(*way);
            false
        });
        assert_eq!(none, None);
        let ways = ways.into_inner();
        let menu = self.believed.menu(id, job);
        assert_eq!(menu[0], self.believed.nominal(id, job));
        let answer = |point: &OperatingPoint| {
            assert!(self.believed.offers(id, job, point));
            let way = ways.iter().find(|way| way.point == *point);
            let way = way.copied().unwrap_or(TimedPoint { point: *point, believed: point.time });
            (way.into(), self.truth().outcome(id, job, self.jobs[place].run, point).into())
        };
        menu.iter().map(answer).collect()
    }

    /// What a job does on named nodes; `None` if it cannot run there.
    pub(super) fn ask_on(&self, place: usize, named: &Named) -> Option<(Point, Truth)> {
        let (id, job) = self.job(place);
        let capped = named
            .iter()
            .map(|(node, cap)| NodeCap { node: NodeId(*node), cap: Watts::from_milliwatts(*cap) });
        let caps = Caps::new(capped.collect()).unwrap();
        let point = self.believed.on(id, job, &caps)?;
        let run = self.jobs[place].run;
        let truth = self.truth().outcome_on(id, job, run, &point, &caps);
        Some((TimedPoint { point, believed: point.time }.into(), truth.into()))
    }

    /// The fastest way on at most so many nodes within so much power.
    pub(super) fn ask_fastest(&self, place: usize, nodes: u32, power_mw: u64) -> Option<Point> {
        let (id, job) = self.job(place);
        self.believed.fastest(id, job, nodes, Watts::from_milliwatts(power_mw)).map(Point::from)
    }

    /// The way that draws least.
    pub(super) fn ask_thriftiest(&self, place: usize) -> Point {
        let (id, job) = self.job(place);
        self.believed.thriftiest(id, job).into()
    }

    /// Without a cap on the nodes asked for, or on as many as so much power feeds.
    pub(super) fn ask_unthrottled(&self, place: usize, power_mw: u64) -> Option<Point> {
        let (id, job) = self.job(place);
        self.believed.unthrottled(id, job, Watts::from_milliwatts(power_mw)).map(Point::from)
    }

    /// The fewest nodes and the shortest time of all ways.
    pub(super) fn ask_least(&self, place: usize) -> (u32, u64) {
        let (id, job) = self.job(place);
        let least = self.believed.footprint(id, job);
        (least.nodes, least.time.millis())
    }

    /// The least power, in milliwatts, with which a job is let in.
    pub(super) fn ask_entry(&self, place: usize) -> u64 {
        let (id, job) = self.job(place);
        let enters = |power: u64| {
            let power = Watts::from_milliwatts(power);
            self.believed.may_enter(id, job, &|point| point.power <= power)
        };
        let (mut below, mut above) = (0, Watts::LARGEST.milliwatts());
        assert!(enters(above) && !enters(below));
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if enters(middle) { above = middle } else { below = middle }
        }
        above
    }

    /// How long a running job takes to go from one number of nodes to another.
    pub(super) fn ask_moving(&self, place: usize, from: u32, to: u32) -> u64 {
        let (id, job) = self.job(place);
        self.believed.moving_time(id, job, from, to).millis()
    }

    /// At each place of the menus: the least that a node draws, and how many times 2⁻³² of the nominal
    /// time jobs take at least.
    pub(super) fn ask_bounds(&self) -> Vec<(u64, u64)> {
        let bound = |rung: &Rung| {
            (rung.node_power.milliwatts(), rung.stretch.of(Span::from_millis(1 << 32)).millis())
        };
        self.believed.rungs().iter().map(bound).collect()
    }

    /// Which application a job runs on processors that differ, from 0; the processors from the most to the
    /// least efficient for it; and how many of these can run at once on each of these powers.
    pub(super) fn ask_processors(
        &self,
        place: usize,
        powers_mw: &[u64],
    ) -> Option<(usize, Vec<u32>, Vec<u64>)> {
        let varied = self.believed.varied()?;
        let application = varied.application(self.job(place).0);
        let fed = |power: &u64| varied.fed(application, Watts::from_milliwatts(*power));
        let order = varied.by_efficiency(application).to_vec();
        Some((application, order, powers_mw.iter().map(fed).collect()))
    }
}

/// What is believed, and what is true if that is something else.
fn models(
    machine: &Machine,
    world: &World,
    jobs: &[Job],
) -> (Box<dyn Model>, Option<Box<dyn Model>>) {
    let believed: Box<dyn Model> = match world {
        World::Plain => Box::new(Rigid::on(machine)),
        World::Gears { known, betas } => {
            let knowledge = if *known { Knowledge::Known } else { Knowledge::Unknown };
            let oversized = Oversized::Slow;
            Box::new(match betas {
                Betas::Told(betas) => {
                    let betas = betas.iter().map(|beta| Beta::new(*beta)).collect();
                    Dvfs::with_betas(machine, betas, knowledge, oversized)
                }
                Betas::Drawn { seed } => Dvfs::new(machine, jobs, knowledge, oversized, *seed),
            })
        }
        World::Pass(pass) => Box::new(elastic(machine, pass, jobs)),
        World::Tables { believed, truth, per_node } => {
            let beliefs = Beliefs { node_power: *per_node, ..Beliefs::default() };
            let model = Profiled::new(machine, believed, jobs, beliefs).unwrap();
            let truth = Profiled::new(machine, truth, jobs, Beliefs::default()).unwrap();
            return (Box::new(model), Some(Box::new(truth)));
        }
        World::Curves { seed } => Box::new(Varied::on(machine, jobs, *seed)),
        World::States(tables) => Box::new(Heterogeneous::new(tables.clone())),
    };
    (believed, None)
}

fn elastic(machine: &Machine, pass: &Pass, jobs: &[Job]) -> Elastic {
    let feed = match &pass.feed {
        Feed::Levels(levels) => busbar::model::NodeCaps::of(machine, *levels),
        Feed::Watts { rest, caps, full } => {
            let watts = |watts: &u32| Watts::from_watts(*watts);
            let caps = caps.iter().map(watts).collect();
            busbar::model::NodeCaps::new(watts(rest), caps, watts(full)).unwrap()
        }
    };
    let application = |number: &usize| Application::ALL[number - 1];
    let model = match &pass.kinds {
        Kinds::Told(kinds) => {
            let kind = |&(number, parallelism, variation): &_| Kind {
                application: application(&number),
                parallelism,
                variation,
            };
            let kinds: Vec<Kind> = kinds.iter().map(kind).collect();
            Elastic::of_kinds(machine, feed, &kinds, jobs)
        }
        Kinds::Drawn { mix, seed } => {
            let mix: Vec<Application> = mix.iter().map(application).collect();
            Elastic::new(machine, feed, &mix, jobs, *seed)
        }
        Kinds::Unknown => {
            let mut model = Elastic::of_kinds(machine, feed, &[], &[]);
            for (id, job) in (0..).map(JobId).zip(jobs) {
                model.learn(id, job);
            }
            model
        }
    };
    let model = if pass.is_as_asked { model.as_asked() } else { model };
    match pass.links {
        Some(megabytes) => model.resizing(Resizing::new(megabytes, 0.0, 0.0).unwrap()),
        None => model,
    }
}

/// What became of one job. Times are `None` if it never got so far.
#[derive(Clone, Debug)]
pub(super) struct Fate {
    pub(super) start_ms: Option<u64>,
    pub(super) end_ms: Option<u64>,
    pub(super) nodes: u32,
    pub(super) cores: u32,
    pub(super) cap_mw: u64,
    pub(super) power_mw: u64,
    pub(super) changes: u32,
    pub(super) is_backfilled: bool,
    pub(super) state: &'static str,
}

/// What a job had from an instant on.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) at_ms: u64,
    pub(super) job: u32,
    pub(super) is_start: bool,
    pub(super) nodes: u32,
    pub(super) cap_mw: u64,
    pub(super) power_mw: u64,
    pub(super) pause_ms: u64,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    pub(super) fates: Vec<Fate>,
    /// What jobs had that may change while they run.
    pub(super) steps: Vec<Step>,
    /// The caps of named nodes whenever they were set: instant in milliseconds, job, nodes.
    pub(super) cappings: Vec<(u64, u32, Named)>,
    pub(super) end_ms: u64,
    /// The most that was drawn, and that was set aside.
    pub(super) peak_mw: u64,
    pub(super) peak_held_mw: u64,
    pub(super) energy_uj: u128,
    /// How often, for how long and by how much at most the limit was passed.
    pub(super) excursions: u64,
    pub(super) excursion_ms: u64,
    pub(super) worst_mw: u64,
    /// What an energy budget was charged.
    pub(super) consumed_uj: Option<u128>,
}

fn state(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting",
        State::Running => "running",
        State::Completed => "completed",
        State::Killed => "killed",
        State::Rejected(Rejection::TooManyNodes | Rejection::NoNode(_)) => "rejected: nodes",
        State::Rejected(Rejection::TooMuchPower | Rejection::FeedTooSmall { .. }) => {
            "rejected: power"
        }
        State::Rejected(Rejection::OverLimit(_)) => "rejected: limit",
        State::Rejected(Rejection::NeverEligible) => "rejected: never eligible",
        State::Dropped(DropReason::Unsaid) => "dropped",
        State::Dropped(DropReason::LowUtility) => "dropped: utility",
        State::Dropped(DropReason::NoMachine) => "dropped: machine",
        State::Dropped(DropReason::NoEnergy) => "dropped: energy",
        State::Dropped(DropReason::NeverFed) => "dropped: never fed",
    }
}

/// Runs a policy.
pub(super) fn ask_run(setup: &Setup) -> Ran {
    let policy: PolicySpec = setup.policy.parse().unwrap();
    let jobs = setup.workload.jobs();
    let (model, truth) = match &setup.ground {
        SharedWorld::SourceDefaults(world) => models(&setup.machine, world, jobs),
        SharedWorld::Own => {
            (papers::model(&policy, &setup.machine, jobs, setup.seed).unwrap(), None)
        }
        SharedWorld::Site(site) => (policy.on_site(site).unwrap(), None),
    };
    let site = match &setup.ground {
        SharedWorld::Site(site) => Some(site),
        SharedWorld::Own | SharedWorld::SourceDefaults(_) => None,
    };
    let scenario = Scenario {
        plain_machine: setup.plain_machine.as_ref().unwrap_or(&setup.machine),
        truth: truth.as_deref(),
        budget: setup.budget.clone(),
        site,
        energy: setup.energy,
        events: setup.events,
        keep_power: true,
        ..Scenario::new(&setup.machine, &setup.workload, policy, model.as_ref())
    };
    let run = scenario.simulate().run;
    assert_eq!(run.violations, 0, "{}: {:?}", setup.name, run.first_violations);
    let at = |instant: Instant| (instant != Instant::NEVER).then_some(instant.millis());
    let fates = run.records.iter().map(|record| Fate {
        start_ms: at(record.start),
        end_ms: at(record.end),
        nodes: record.nodes,
        cores: record.cores,
        cap_mw: record.cap.milliwatts(),
        power_mw: record.power.milliwatts(),
        changes: record.changes,
        is_backfilled: record.backfilled,
        state: state(record.state),
    });
    let steps = run.steps().map(|(is_start, change)| Step {
        at_ms: change.at.millis(),
        job: change.job.0,
        is_start,
        nodes: change.nodes,
        cap_mw: change.cap.milliwatts(),
        power_mw: change.power.milliwatts(),
        pause_ms: change.pause.millis(),
    });
    let cappings = run.cappings.iter().map(|capping| {
        let named = capping.caps.iter().map(|capped| (capped.node.0, capped.cap.milliwatts()));
        (capping.at.millis(), capping.job.0, named.collect())
    });
    Ran {
        fates: fates.collect(),
        steps: steps.collect(),
        cappings: cappings.collect(),
        end_ms: run.end.millis(),
        peak_mw: run.peak.milliwatts(),
        peak_held_mw: run.peak_held.milliwatts(),
        energy_uj: run.energy.microjoules(),
        excursions: run.excursions.count,
        excursion_ms: run.excursions.time.millis(),
        worst_mw: run.excursions.worst.milliwatts(),
        consumed_uj: run.consumed.map(|energy| energy.microjoules()),
    }
}

/// The names of all policies.
pub(super) fn ask_policies() -> Vec<String> {
    // Those that were there when the answers were written down.
    let names = PolicySpec::all().into_iter().map(|policy| policy.name().to_owned());
    names.filter(|name| !["share", "slurm"].contains(&name.as_str())).collect()
}

/// A machine with a node for each machine of a site.
pub(super) fn ask_machine(site: &Site) -> Machine {
    Heterogeneous::machine(&site.tables)
}
