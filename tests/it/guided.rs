//! The power-aware policies agree with the plain ones, start for start and gear for gear.

use busbar::budget::Budget;
use busbar::machine::Machine;
use busbar::model::{Beta, Dvfs, Knowledge, Model, Oversized};
use busbar::policy::pb_guided::Bounds;
use busbar::policy::{BuildContext, EasyPower, PbGuided, Policy, PolicySpec};
use busbar::reproduce::papers;
use busbar::scenario::Scenario;
use busbar::sim::{Events, Outage, Outages, Simulation};
use busbar::units::{Instant, JobId, NodeId, Share, Span, Watts};
use proptest::prelude::*;

use crate::agreement::{
    assert_within_bounds, budget, budgets, cases, jobs, machine, rigid, workload,
};
use crate::plain::{Guide, Plain, PlainJob, PlainMachine, PlainOrder, Rule, Starts, Way};

/// What all jobs of a test are run with.
#[derive(Clone, Debug)]
struct Story {
    machine: PlainMachine,
    watts: u32,
    jobs: Vec<PlainJob>,
    betas: Vec<f64>,
    knowledge: Knowledge,
    guide: Guide,
    /// What the machine draws anyway, on top of the budget for jobs.
    base: u32,
}

impl Story {
    /// The model, and the jobs with all their ways as the model has them. That the model is right
    /// is tested elsewhere; here both schedulers have the same.
    fn model(&self) -> (Dvfs, Vec<PlainJob>) {
        let machine = machine(&self.machine, self.watts);
        let betas = (0..self.jobs.len()).map(|job| self.betas[job % self.betas.len()]);
        let betas = betas.map(Beta::new).collect();
        let model = Dvfs::with_betas(&machine, betas, self.knowledge, Oversized::Slow);
        let workload = workload(&self.jobs);
        let ids = (0..).map(JobId);
        let jobs = self.jobs.iter().zip(workload.jobs()).zip(ids).map(|((plain, job), id)| {
            let menu = model.menu(id, job);
            let ways = menu.iter().map(|point| {
                let outcome = model.outcome(id, job, workload.run_time(id), point);
                let (time, run_time) = (point.time.millis(), outcome.run_time.millis());
                Way::rigid(plain.nodes, time, run_time, point.power.milliwatts())
            });
            PlainJob { ways: ways.collect(), ..plain.clone() }
        });
        let jobs = jobs.collect();
        (model, jobs)
    }

    fn bounds(&self) -> Bounds {
        let share = |millionths: u64| {
            format!("{}.{:04}%", millionths / 10_000, millionths % 10_000).parse::<Share>().unwrap()
        };
        Bounds {
            lower: share(self.guide.lower_millionths),
            upper: share(self.guide.upper_millionths),
            bsld_lower: self.guide.bsld_lower,
            bsld_upper: self.guide.bsld_upper,
            bsld_threshold: Span::from_millis(self.guide.bsld_threshold_ms),
        }
    }

    fn assert_agreement(&self) {
        let (model, jobs) = self.model();
        let workload = workload(&self.jobs);
        let base_power = Watts::from_watts(self.base);
        let machine = Machine { base_power, ..machine(&self.machine, self.watts) };
        // The plain scheduler knows what is left for jobs; the other one has to work it out.
        let mut with_base = self.machine.clone();
        for (_, limit) in &mut with_base.budget {
            *limit += base_power.milliwatts();
        }
        for (events, each) in [(Events::Instant, false), (Events::Each, true)] {
            let share =
                |text: &str| text.parse::<PolicySpec>().unwrap().build(&BuildContext::default());
            let policies: [(Box<dyn Policy>, Rule); 5] = [
                (Box::new(EasyPower::default()), Rule::EasyPower),
                (Box::new(PbGuided::with(self.bounds())), Rule::PbGuided(self.guide)),
                (share("share"), Rule::Share(PlainOrder::Fcfs)),
                (share("share(order=aged, halving=7s)"), Rule::Share(PlainOrder::Aged(7000))),
                (share("share(order=history, halving=9s)"), Rule::Share(PlainOrder::History(9000))),
            ];
            for (mut policy, rule) in policies {
                let run = Simulation::new(&machine, &workload)
                    .budget(budget(&with_base))
                    .model(&model)
                    .events(events)
                    .keep_power(true)
                    .run(policy.as_mut());
                let starts: Starts = run
                    .records
                    .iter()
                    .zip(&jobs)
                    .map(|(record, job)| {
                        let draws = |way: &Way| way.milliwatts == record.power.milliwatts();
                        let way = job.ways.iter().position(draws);
                        record.state.has_run().then(|| (record.start.millis(), way.unwrap()))
                    })
                    .collect();
                // Now and then two jobs have nearly the same key.
                if let Some(expected) = Plain::clear_starts(&self.machine, &jobs, rule, each) {
                    assert_eq!(starts, expected, "{rule:?}, {events:?}");
                }
                assert_eq!(run.violations, 0, "{rule:?}: {:?}", run.first_violations);
                assert_within_bounds(&self.machine, &run);
            }
        }
    }
}

fn story(most: usize, nodes: u32, largest: u32, watts: u32) -> impl Strategy<Value = Story> {
    let guide = (0u64..=100, 0u64..=100, 10u32..60, 10u32..40, 1u64..40).prop_map(
        |(one, other, bsld_lower, times, threshold)| Guide {
            lower_millionths: one.min(other) * 10_000,
            upper_millionths: one.max(other) * 10_000,
            bsld_lower: f64::from(bsld_lower) / 10.0,
            bsld_upper: f64::from(bsld_lower * times) / 100.0,
            bsld_threshold_ms: threshold * 1000,
        },
    );
    let betas = prop::collection::vec(0.0f64..=1.0, 1..9);
    let knowledge = prop_oneof![Just(Knowledge::Known), Just(Knowledge::Unknown)];
    let machine = (jobs(most, largest, watts), budgets(nodes, watts));
    let base = prop_oneof![Just(0), Just(100)];
    (machine, betas, knowledge, guide, base).prop_map(
        move |((jobs, budget), betas, knowledge, guide, base)| {
            let machine = PlainMachine { nodes, budget };
            Story { machine, watts, jobs, betas, knowledge, guide, base }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn small_workloads(story in story(24, 10, 11, 7)) {
        story.assert_agreement();
    }

    #[test]
    fn deeper_queues(story in story(80, 33, 40, 3)) {
        story.assert_agreement();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases() / 50 + 1, ..ProptestConfig::default() })]

    /// Long enough for the tree of the queue's index.
    #[test]
    fn long_queues(story in story(400, 33, 40, 3)) {
        story.assert_agreement();
    }
}

/// Plain EASY under a budget and the baseline differ in nothing but jobs that are too large for it.
#[test]
fn the_baseline_is_easy_for_jobs_that_fit() {
    let machine = Machine::of_processors(256).unwrap();
    let limit = Share::percent(60).of(machine.max_power());
    let fits = |job: &busbar::job::Job| machine.node_power * job.nodes <= limit;
    let demo = busbar::workload::demo::demo();
    let jobs = demo.jobs().iter().copied().zip(demo.run_times().iter().copied());
    let workload = busbar::workload::Workload::new("fits", jobs.filter(|(job, _)| fits(job)));
    assert!(workload.jobs().len() > 1900);
    let model = Dvfs::new(&machine, workload.jobs(), Knowledge::Unknown, Oversized::Slow, 1);
    let run = |policy: &mut dyn Policy| {
        let simulation = Simulation::new(&machine, &workload).budget(Budget::constant(limit));
        simulation.model(&model).run(policy).records
    };
    assert_eq!(run(&mut EasyPower::default()), run(&mut busbar::policy::Easy::default()));
}

/// A job that was let in, slowed by a budget that fell, and thrown out by a failing node is turned
/// away when it comes back, if that is what is asked for; it is not lost.
#[test]
fn a_job_that_comes_back_too_large_is_accounted_for() {
    let machine = Machine::of_processors(2).unwrap();
    let workload = workload(&[rigid(0, 2, 100, 100)]);
    let steps = vec![
        (Instant::ZERO, Watts::from_watts(200)),
        (Instant::from_secs(10), Watts::from_watts(120)),
    ];
    let outages = Outages::new(vec![Outage {
        node: NodeId(0),
        down: Instant::from_secs(20),
        up: Instant::from_secs(30),
    }]);
    for (policy, completed, rejected) in
        [("easy-power", 1, 0), ("easy-power(oversized=reject)", 0, 1), ("pb-guided", 1, 0)]
    {
        let spec = policy.parse().unwrap();
        let model = papers::model(&spec, &machine, workload.jobs(), 1).unwrap();
        let summary = Scenario {
            budget: Budget::from_steps(steps.clone()).unwrap(),
            outages: outages.clone(),
            ..Scenario::new(&machine, &workload, spec, model.as_ref())
        }
        .run()
        .summary;
        assert_eq!((summary.completed, summary.rejected), (completed, rejected), "{policy}");
    }
}

/// A limit that is high only for a moment does not let a long job wait for it: it could not run
/// through it at nominal speed anyway.
#[test]
fn a_short_peak_of_the_budget_is_of_no_use_to_a_long_job() {
    let machine = Machine::of_processors(2).unwrap();
    let workload = workload(&[rigid(0, 2, 100, 100)]);
    let limit = |at, watts| (Instant::from_secs(at), Watts::from_watts(watts));
    let steps = vec![limit(0, 120), limit(1000, 200), limit(1010, 120)];
    let budget = Budget::from_steps(steps).unwrap();
    for policy in ["easy-power", "pb-guided"] {
        let spec = policy.parse().unwrap();
        let model = papers::model(&spec, &machine, workload.jobs(), 1).unwrap();
        let scenario = Scenario::new(&machine, &workload, spec, model.as_ref());
        let trial = Scenario { budget: budget.clone(), ..scenario }.run();
        assert_eq!(trial.run.records[0].start, Instant::ZERO, "{policy}");
        assert_eq!(trial.summary.oversized, 1, "{policy}");
    }
}
