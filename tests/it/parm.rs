//! PARM in the simulator, turn by turn and as a whole, against the paper.
//!
//! `watched` checks every decision as it is taken, `program` is the integer program solved by trying
//! everything, `replay` adds the run up again, `stories` has been worked out by hand, and `cost` counts
//! the steps of the solver.

use busbar::budget::Budget;
use busbar::job::Job;
use busbar::machine::Machine;
use busbar::model::pass::Application;
use busbar::model::{Elastic, NodeCaps};
use busbar::policy::ParmSpec;
use busbar::policy::parm::{Flexibility, Window};
use busbar::sim::{Events, Outage, Outages, Run, Simulation, State};
use busbar::units::{Instant, JobId, NodeId, Share, Span, Watts};
use busbar::workload::Workload;
use proptest::prelude::*;

use crate::agreement::cases;

mod cost;
mod program;
mod replay;
mod stories;
mod watched;

use replay::Replay;
use watched::Watched;

/// All that a run depends on.
#[derive(Clone, Debug)]
struct Story {
    nodes: u32,
    base_watts: u32,
    /// Gap to the one before, nodes asked for, run time, and what is asked for beyond it; in seconds.
    jobs: Vec<(u32, u32, u32, u32)>,
    /// From when, and so many hundredths of what all nodes draw.
    budget: Vec<(u32, u32)>,
    /// Which node, from when, and for how long.
    outages: Vec<(u32, u32, u32)>,
    flexibility: Flexibility,
    alpha: f64,
    guard: u32,
    window: Window,
    events: Events,
    seed: u64,
}

/// A policy that always finds the best of everything, with two caps.
fn spec(flexibility: Flexibility, alpha: f64, guard: u32) -> ParmSpec {
    let gap = Share::percent(0);
    let (guard, window) = (Span::from_secs(guard), Window::All);
    ParmSpec { flexibility, alpha, levels: 2, guard, gap, effort: 1 << 40, window }
}

/// So many times what is free or can be freed.
fn times(times: u32) -> Window {
    Window::Times(times.try_into().unwrap())
}

impl Story {
    fn machine(&self) -> Machine {
        let base_power = Watts::from_watts(self.base_watts);
        Machine { base_power, ..Machine::of_processors(self.nodes).unwrap() }
    }

    fn workload(&self) -> Workload {
        let mut submit = 0;
        let jobs = self.jobs.iter().zip(1..).map(|(&(gap, nodes, run_time, slack), number)| {
            submit += gap;
            let requested = Span::from_secs(run_time + slack);
            let job = Job::new(number, Instant::from_secs(submit), nodes, requested);
            (job, Span::from_secs(run_time))
        });
        Workload::new("story", jobs)
    }

    fn budget(&self, machine: &Machine) -> Budget {
        let all = u64::from(machine.nodes) * machine.node_power.milliwatts();
        let limit = |hundredths: u32| {
            machine.base_power + Watts::from_milliwatts(all * u64::from(hundredths) / 100)
        };
        let steps = self.budget.iter().map(|(at, share)| (Instant::from_secs(*at), limit(*share)));
        Budget::from_steps(steps.collect()).unwrap()
    }

    fn outages(&self) -> Outages {
        let outage = |&(node, down, length): &(u32, u32, u32)| Outage {
            node: NodeId(node % self.nodes),
            down: Instant::from_secs(down),
            up: Instant::from_secs(down + length),
        };
        Outages::new(self.outages.iter().map(outage).collect())
    }

    /// Runs it, checking every turn and then the whole.
    fn check(&self) -> Run {
        let (machine, workload) = (self.machine(), self.workload());
        let budget = self.budget(&machine);
        let feed = NodeCaps::of(&machine, 2);
        let model = Elastic::new(&machine, feed, &Application::ALL, workload.jobs(), self.seed);
        let model = if self.flexibility == Flexibility::None { model.as_asked() } else { model };
        let spec =
            ParmSpec { window: self.window, ..spec(self.flexibility, self.alpha, self.guard) };
        let mut policy = Watched::new(spec, &machine, &budget);
        let run = Simulation::new(&machine, &workload)
            .model(&model)
            .budget(budget.clone())
            .outages(self.outages())
            .events(self.events)
            .run(&mut policy);
        let journal = &policy.journal;
        let replay = Replay {
            machine: &machine,
            workload: &workload,
            budget: &budget,
            model: &model,
            journal,
        };
        replay.check(&run);
        assert_eq!(run.unfinished, 0, "{:?}", run.records);
        run
    }
}

fn budgets() -> impl Strategy<Value = Vec<(u32, u32)>> {
    let constant = (30u32..=110).prop_map(|share| vec![(0, share)]);
    let falls_and_rises = (50u32..=110, 1u32..2000, 0u32..=50, 1u32..3000)
        .prop_map(|(high, at, low, length)| vec![(0, high), (at, low), (at + length, high)]);
    prop_oneof![constant, falls_and_rises]
}

fn stories(most_outages: usize) -> impl Strategy<Value = Story> {
    let gap = prop_oneof![Just(0u32), 1u32..400];
    let slack = prop_oneof![Just(0u32), 1u32..1000];
    (4u32..=12).prop_flat_map(move |nodes| {
        let job = (gap.clone(), 1..=nodes + 2, 1u32..2500, slack.clone());
        (
            (Just(nodes), prop_oneof![Just(0u32), Just(70)]),
            prop::collection::vec(job, 1..=8),
            budgets(),
            prop::collection::vec((0..nodes, 0u32..3000, 1u32..2000), 0..=most_outages),
            prop::sample::select(vec![
                Flexibility::None,
                Flexibility::Moldable,
                Flexibility::Malleable,
                Flexibility::Malleable,
            ]),
            prop::sample::select(vec![0.0, 0.5, 2.0]),
            (
                prop_oneof![Just(0u32), Just(100)],
                prop::sample::select(vec![Window::All, times(1), times(2)]),
            ),
            prop_oneof![Just(Events::Instant), Just(Events::Each)],
            any::<u64>(),
        )
            .prop_map(
                |(
                    (nodes, base_watts),
                    jobs,
                    budget,
                    outages,
                    flexibility,
                    alpha,
                    (guard, window),
                    events,
                    seed,
                )| {
                    Story {
                        nodes,
                        base_watts,
                        jobs,
                        budget,
                        outages,
                        flexibility,
                        alpha,
                        guard,
                        window,
                        events,
                        seed,
                    }
                },
            )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn every_turn_is_the_best_there_is(story in stories(0)) {
        story.check();
    }

    #[test]
    fn nodes_may_fail(story in stories(3)) {
        story.check();
    }
}

/// A limit that falls after the longest that anybody may take, but before he would have moved in vain:
/// moves that are not offered do not count.
#[test]
fn moves_that_are_not_offered_take_no_time() {
    let story = Story {
        nodes: 11,
        base_watts: 0,
        jobs: vec![(0, 3, 652, 0), (0, 1, 1, 0)],
        budget: vec![(0, 50), (1194, 0), (1195, 50)],
        outages: Vec::new(),
        flexibility: Flexibility::Malleable,
        alpha: 0.0,
        guard: 0,
        window: Window::All,
        events: Events::Each,
        seed: 2648687958364717234,
    };
    story.check();
}
