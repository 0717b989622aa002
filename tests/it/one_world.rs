//! Policies in the same world: the same jobs, nodes and watts for all of them, and beliefs that may be
//! wrong.

use std::collections::BTreeMap;

use busbar::budget::Budget;
use busbar::freedom::{Freedom, Freedoms};
use busbar::job::Job;
use busbar::machine::{Details, Machine};
use busbar::model::Model;
use busbar::policy::{
    Believe, BuildContext, Decision, Easy, Level, Policy, PolicySpec, Unfit, View,
};
use busbar::prepared::{Rules, SharedWorld};
use busbar::profile::cab::{self, Preset};
use busbar::profile::{Configuration, Profile};
use busbar::scenario::Scenario;
use busbar::sim::{Record, Run, Simulation, State};
use busbar::units::{Instant, JobId, Share, Span, Watts};
use busbar::workload::demo::demo;
use busbar::workload::rmap::{Kind, Trace, UsualTimes};
use busbar::workload::{MeasuredPower, Source, SourceDefaults, Workload};
use busbar::world::{Repertoire, Shape};

const NODES: u32 = 256;

/// Jobs of all built-in applications on nodes that are mildly unlike.
struct Demo {
    workload: Workload,
    machine: Machine,
    repertoire: Repertoire,
}

impl Demo {
    fn new(jobs: usize) -> Self {
        let mut workload = demo();
        workload.slice(0..jobs);
        workload.raise_estimates();
        let machine = Machine::of_processors(NODES).unwrap().filled_in(1);
        Demo { workload, machine, repertoire: Repertoire::BuiltIn }
    }

    fn shared(&self, allow: Freedoms, believe: Believe) -> SharedWorld {
        let rules = Rules { allow, believe: Some(believe), ..Rules::default() };
        SharedWorld::new(&self.machine, &self.workload, &self.repertoire, &rules, 1).unwrap()
    }

    fn belief(&self, shared: &SharedWorld, policy: &PolicySpec) -> Result<Box<dyn Model>, Unfit> {
        shared.belief(policy, &self.machine, self.workload.jobs())
    }

    fn limit(&self, percent: u32) -> Watts {
        Share::percent(percent).of(self.machine.max_power())
    }

    fn run(&self, policy: &PolicySpec, believe: Believe, limit: Watts) -> Run {
        let shared = self.shared(Rules::default().allow, believe);
        let belief = self.belief(&shared, policy).unwrap();
        let scenario = Scenario {
            budget: Budget::constant(limit),
            world: Some(shared.world()),
            keep_power: true,
            ..Scenario::new(&self.machine, &self.workload, policy.clone(), belief.as_ref())
        };
        let run = scenario.run().run;
        assert_eq!(run.violations, 0, "{policy}: {:?}", run.first_violations);
        run
    }
}

/// The most that is drawn at any instant, added up again from what became of the jobs: from their starts, changes
/// and ends.
fn peak(run: &Run, base: Watts) -> Watts {
    let mut steps = BTreeMap::<Instant, i64>::new();
    let mut drawn = BTreeMap::<JobId, i64>::new();
    let milliwatts = |power: Watts| power.milliwatts() as i64;
    for (_, change) in run.steps() {
        let power = milliwatts(change.power);
        let before = drawn.insert(change.job, power).unwrap_or(0);
        *steps.entry(change.at).or_default() += power - before;
    }
    for (id, record) in (0..).map(JobId).zip(&run.records) {
        if record.state.has_run() {
            let power = milliwatts(record.power);
            match drawn.get(&id) {
                Some(last) => assert_eq!(*last, power, "its last step is what it ends with"),
                // Under a policy that changes nobody only records are kept.
                None => *steps.entry(record.start).or_default() += power,
            }
            *steps.entry(record.end).or_default() -= power;
        }
    }
    let mut drawn = milliwatts(base);
    let sums = steps.values().map(|step| {
        drawn += step;
        drawn
    });
    Watts::from_milliwatts(sums.max().unwrap_or(drawn) as u64)
}

/// A log of the archive, or part of it, if there is one.
fn log(name: &str, jobs: std::ops::Range<usize>) -> Option<Workload> {
    let path = std::path::Path::new(&std::env::var_os("BUSBAR_TRACES")?).join(name);
    let source: Source = path.to_str()?.parse().ok()?;
    let mut workload = source.load(&SourceDefaults::default()).unwrap().workload;
    workload.slice(jobs);
    workload.raise_estimates();
    Some(workload)
}

/// Every policy on jobs and a machine of one's own, with exact beliefs: nothing is refused, and what is drawn, added
/// up again from what became of the jobs, is within the limit at every instant.
fn all_stay_within(machine: Machine, mut workload: Workload, repertoire: Repertoire, percent: u32) {
    workload.pack_processors(machine.processors_per_node);
    let demo = Demo { workload, machine: repertoire.filled_in(&machine).unwrap(), repertoire };
    let limit = demo.limit(percent);
    for policy in policies() {
        let run = demo.run(&policy, Believe::Exact, limit);
        assert_eq!(run.excursions.time, Span::ZERO, "{policy}");
        assert!(run.power.iter().all(|sample| sample.power <= sample.limit), "{policy}");
        assert!(peak(&run, demo.machine.floor()) <= limit, "{policy}");
        let completed = run.records.iter().filter(|record| record.state == State::Completed);
        assert!(completed.count() * 10 >= run.records.len() * 8, "{policy}");
    }
}

#[test]
fn all_policies_run_on_a_log() {
    // Without logs there is nothing to see; ./check says so.
    if let Some(workload) = log("KTH-SP2-1996-2.1-cln.swf.gz", 3000..3400) {
        all_stay_within(Machine::of_processors(100).unwrap(), workload, Repertoire::BuiltIn, 60);
    }
}

#[test]
fn all_policies_run_on_nodes_of_several_processors() {
    let mut workload = demo();
    workload.slice(0..300);
    workload.raise_estimates();
    all_stay_within(Machine { nodes: 16, ..Machine::cab() }, workload, Repertoire::BuiltIn, 60);
}

/// Applications of which there are tables alone: in configurations of nodes, cores and caps.
#[test]
fn all_policies_run_applications_that_have_profiles() {
    let profiles = cab::generate(Preset::Cab, 1);
    let usual = UsualTimes(profiles.iter().map(Profile::usual_times).collect());
    let trace = Trace { jobs: 120, gaps: 0.2, kind: Kind::Small, ..Trace::default() };
    let workload = trace.draw(&usual, 16).unwrap();
    all_stay_within(Machine::cab(), workload, Repertoire::of(&profiles), 60);
    // Jobs of a log, of any size, run them, too.
    let mut workload = demo();
    workload.slice(0..300);
    workload.raise_estimates();
    let machine = Machine { nodes: 24, ..Machine::cab() };
    all_stay_within(machine, workload, Repertoire::of(&profiles), 60);
}

/// RMAP chooses among configurations that were tried, and their times are as many times those of the log as
/// the table says.
#[test]
fn jobs_run_as_their_profiles_say() {
    let profiles = cab::generate(Preset::Cab, 1);
    let usual = UsualTimes(profiles.iter().map(Profile::usual_times).collect());
    let mut workload = Trace { jobs: 60, ..Trace::default() }.draw(&usual, 16).unwrap();
    workload.pack_processors(16);
    let machine = Machine { details: Details::ideal(), ..Machine::cab() };
    let repertoire = Repertoire::of(&profiles);
    let machine = repertoire.filled_in(&machine).unwrap();
    let demo = Demo { workload, machine, repertoire };
    let run = demo.run(&"rmap-naive".parse().unwrap(), Believe::Exact, demo.limit(50));
    let jobs = demo.workload.jobs().iter().zip(&run.records);
    let mut chosen = 0;
    for (job, record) in jobs {
        assert_eq!(record.state, State::Completed);
        let profile = &profiles[job.application.unwrap().0.get() as usize - 1];
        // Drawn as rigid, moldable or malleable: who keeps its nodes has a row as well.
        let row = profile.rows.iter().find(|row| {
            let Configuration { nodes, cores, cap } = row.configuration;
            (nodes, cores, cap * 2) == (record.nodes, record.cores, record.cap)
        });
        let row = row.expect("a configuration that was tried");
        let (took, says) = (record.end.since(record.start).millis(), row.time.millis());
        assert!(took.abs_diff(says) <= 2, "{took} ms instead of {says} ms");
        assert!(record.power.milliwatts().abs_diff(row.power.milliwatts()) <= 64 * 2);
        chosen += u32::from(record.nodes != job.nodes || record.cores < 16);
    }
    assert!(chosen > 10, "{chosen} of them have another size than they asked for");
}

#[test]
fn all_policies_run_on_processors_that_were_measured_one_by_one() {
    let mut workload = demo();
    workload.slice(0..300);
    workload.raise_estimates();
    all_stay_within(Machine::catalyst(256, 1).unwrap(), workload, Repertoire::BuiltIn, 60);
}

fn policies() -> Vec<PolicySpec> {
    PolicySpec::all()
}

/// With exact beliefs nobody draws more than was set aside, whatever nodes it got, and nobody is killed.
#[test]
fn who_knows_the_world_stays_within_the_limit() {
    let demo = Demo::new(400);
    for percent in [60, 80] {
        let limit = demo.limit(percent);
        for policy in policies() {
            let run = demo.run(&policy, Believe::Exact, limit);
            assert_eq!(run.excursions.time, Span::ZERO, "{policy} under {percent} %");
            assert!(run.power.iter().all(|sample| sample.power <= sample.limit), "{policy}");
            let killed = run.records.iter().filter(|record| record.state == State::Killed).count();
            assert_eq!(killed, 0, "{policy}");
            let is_completed = |record: &&Record| record.state == State::Completed;
            let completed = run.records.iter().filter(is_completed).count();
            assert!(completed >= 380, "{policy}: {completed}");
            assert!(peak(&run, demo.machine.floor()) <= limit, "{policy}");
        }
    }
}

/// Who sets whole caps aside never draws more, however wrong his belief about time is. RMAP's policies and
/// `utility` set aside what was measured on the reference node, which greedy nodes pass. Where beliefs about time are
/// too short, jobs are killed.
#[test]
fn published_beliefs_run_in_the_same_world() {
    let demo = Demo::new(400);
    let limit = demo.limit(60);
    for policy in policies() {
        let run = demo.run(&policy, Believe::Published, limit);
        let sets_draws_aside = policy.name().starts_with("rmap-") || policy.name() == "utility";
        let exceeds = run.power.iter().any(|sample| sample.power > sample.limit);
        assert_eq!(run.excursions.time > Span::ZERO, exceeds, "{policy}: what is drawn is counted");
        assert!(!exceeds || sets_draws_aside, "{policy}");
        assert_eq!(peak(&run, demo.machine.floor()) > limit, exceeds, "{policy}");
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
    let demo = Demo::new(200);
    let run = demo.run(&"easy".parse().unwrap(), Believe::Published, Watts::UNLIMITED);
    for (place, record) in run.records.iter().enumerate() {
        let id = JobId(place as u32);
        assert_eq!(record.end.since(record.start), demo.workload.run_time(id));
        let rated = demo.machine.added_power() * record.nodes;
        assert!(record.power < rated, "{} of {rated}", record.power);
    }
}

/// Without a freedom, nobody makes use of it: who may choose neither caps nor sizes starts jobs as they were
/// asked for, and who cannot do without says so.
#[test]
fn freedoms_that_are_not_allowed_are_not_taken() {
    let demo = Demo::new(150);
    let shared = demo.shared(Freedoms::NONE, Believe::Exact);
    let mut unfit = Vec::new();
    for policy in policies() {
        let belief = match demo.belief(&shared, &policy) {
            Ok(belief) => belief,
            Err(why) => {
                unfit.push(why.to_string());
                continue;
            }
        };
        let run = Simulation::new(&demo.machine, &demo.workload)
            .budget(Budget::constant(demo.limit(80)))
            .model(belief.as_ref())
            .world(shared.world())
            .run(policy.build(&BuildContext::default()).as_mut());
        for (record, job) in run.records.iter().zip(demo.workload.jobs()) {
            let as_asked = (record.nodes, record.cap) == (job.nodes, demo.machine.added_power());
            assert!(!record.state.has_run() || as_asked, "{policy}: {record:?}");
        }
        assert!(run.changes.is_empty(), "{policy}");
    }
    assert_eq!(
        unfit,
        ["caps,recaps,nodes", "caps,nodes"].map(|missing| {
            format!("it requires {missing}; allow that (--allow), or leave the policy out")
        })
    );
}

/// Starts jobs as they were asked for, and notes what is left of the first one.
#[derive(Default)]
struct Watching {
    inner: Easy,
    left: Vec<(Instant, Option<Span>)>,
}

impl Policy for Watching {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        self.left.push((view.now, view.left(JobId(0))));
        self.inner.decide(view, decisions);
    }
}

/// The first of two jobs asks for 100 s and takes 60; the second comes after 10 s.
#[test]
fn a_policy_sees_what_is_left_of_running_jobs() {
    let seconds = Span::from_secs;
    let job = |at, requested| Job::new(1, Instant::from_secs(at), 1, seconds(requested));
    let jobs = [(job(0, 100), seconds(60)), (job(10, 5), seconds(5))];
    let workload = Workload::new("two", jobs);
    let machine = Machine::of_processors(2).unwrap();
    let mut policy = Watching::default();
    Simulation::new(&machine, &workload).run(&mut policy);
    let at = |second| Instant::from_secs(second);
    assert_eq!(
        policy.left,
        [(at(0), None), (at(10), Some(seconds(90))), (at(15), Some(seconds(85))), (at(60), None)]
    );
}

/// One freedom more at a time: nobody goes beyond what is allowed, nor beyond what a job puts up with.
#[test]
fn each_freedom_is_taken_by_itself() {
    use Freedom::{Caps, Nodes, Recaps, Resizes, Sizes};
    let demo = Demo::new(250);
    let sets: [&[Freedom]; 6] = [
        &[Caps],
        &[Sizes],
        &[Caps, Sizes],
        &[Caps, Sizes, Recaps],
        &[Caps, Sizes, Resizes],
        &[Caps, Sizes, Recaps, Nodes],
    ];
    for set in sets {
        let allow = Freedoms::of(set);
        let shared = demo.shared(allow, Believe::Exact);
        let mut have_run = 0;
        for policy in policies() {
            let Ok(belief) = demo.belief(&shared, &policy) else { continue };
            have_run += 1;
            let run = Simulation::new(&demo.machine, &demo.workload)
                .budget(Budget::constant(demo.limit(60)))
                .model(belief.as_ref())
                .world(shared.world())
                .run(policy.build(&BuildContext::default()).as_mut());
            assert_eq!(run.violations, 0, "{policy} with {allow}: {:?}", run.first_violations);
            let assigned = shared.world().assigned();
            let jobs = (0..).map(JobId).zip(demo.workload.jobs());
            for ((id, job), record) in jobs.zip(&run.records) {
                let is_rigid = assigned.shape(id) == Shape::Rigid;
                let has_own = record.nodes == job.nodes || !record.state.has_run();
                assert!(has_own || allow.has(Sizes) && !is_rigid, "{policy}, {allow}: {record:?}");
            }
            let moves = run.changes.iter().filter(|change| change.pause > Span::ZERO);
            assert!(allow.has(Resizes) || moves.count() == 0, "{policy} with {allow}");
            assert!(
                run.changes.is_empty() || allow.has(Recaps) || allow.has(Resizes),
                "{policy} with {allow}"
            );
        }
        assert!(have_run >= 9, "{allow}");
    }
}

/// What nodes of a job drew in a past that was made up: users differ, and jobs of one user differ a little.
fn with_power(workload: Workload) -> Workload {
    let powers = (0u32..).zip(workload.jobs()).map(|(place, job)| {
        let user = job.number % 7;
        let per_node = 40_000 + 8_000 * user + u64::from(place * 37 % 5000);
        // One of nine was not measured.
        let mean =
            (place % 9 != 0).then(|| Watts::from_milliwatts(per_node * u64::from(job.nodes)));
        MeasuredPower::new(mean, mean.map(|mean| mean + Watts::from_watts(5) * job.nodes))
    });
    let powers: Vec<_> = powers.collect();
    workload.with_powers(powers)
}

/// Jobs that were measured draw that under every policy that runs them as asked: energy adds up to the last microjoule.
#[test]
fn measured_jobs_draw_what_they_drew() {
    let mut demo = Demo::new(400);
    demo.workload = with_power(demo.workload);
    let easy: PolicySpec = "easy".parse().unwrap();
    let run = demo.run(&easy, PREDICTED, demo.machine.max_power());
    let idle = demo.machine.node().idle;
    for (id, record) in (0..).map(JobId).zip(&run.records) {
        let Some(mean) = demo.workload.power(id).and_then(MeasuredPower::mean) else { continue };
        assert!(record.state.has_run());
        assert_eq!(record.power, mean.saturating_sub(idle * record.nodes), "{id}");
    }
    let makespan = run.end.since(run.begin);
    let jobs: u128 = run
        .records
        .iter()
        .map(|record| {
            u128::from(record.power.milliwatts())
                * u128::from(record.end.since(record.start).millis())
        })
        .sum();
    let floor = u128::from(demo.machine.floor().milliwatts()) * u128::from(makespan.millis());
    assert_eq!((run.energy.as_f64() * 1e6).round() as u128, jobs + floor);
}

const PREDICTED: Believe = Believe::Predicted(Level::Mean);

/// With exact beliefs nobody draws more than is believed, whatever was measured; predictions may be wrong, and say by
/// how much.
#[test]
fn measured_jobs_within_a_limit() {
    let mut demo = Demo::new(300);
    demo.workload = with_power(demo.workload);
    let limit = demo.limit(60);
    for policy in ["fcfs", "easy", "easy-power", "share", "rmap-adaptive", "parm", "conservative"] {
        let policy: PolicySpec = policy.parse().unwrap();
        let run = demo.run(&policy, Believe::Exact, limit);
        assert_eq!(run.excursions.count, 0, "{policy}");
        assert!(peak(&run, demo.machine.floor()) <= limit, "{policy}");
        demo.run(&policy, PREDICTED, limit);
    }
    let shared = demo.shared(Rules::default().allow, PREDICTED);
    let accuracy = shared.power_accuracy().unwrap();
    assert_eq!(accuracy.jobs as usize, demo.workload.powers_known());
    assert!(accuracy.predicted.median < accuracy.baseline.median, "{accuracy:?}");
    assert!((0.0..=1.0).contains(&accuracy.under.unwrap()));
    // Without a past there is nothing to predict from.
    let nothing = Demo::new(3);
    let shared = nothing.shared(Rules::default().allow, PREDICTED);
    let refused = nothing.belief(&shared, &"easy".parse().unwrap()).err().unwrap();
    assert!(refused.to_string().contains("no measured power"), "{refused}");
}
