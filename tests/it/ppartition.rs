//! PPartition and uniform capping in the simulator, turn by turn and as a whole.
//!
//! `rule` is PPartition from plain lists, `watched` holds every turn against it and looks at every
//! single cap as it is set, `replay` adds the run up again from the caps alone (`work` is its
//! arithmetic), `deferral` leaves jobs out that had to wait, `stories` has been worked out by hand,
//! `uniform` is about the other policy, and `hostile` about policies that mean harm.

use std::num::NonZeroU32;

use busbar::budget::Budget;
use busbar::job::{ApplicationId, Job};
use busbar::machine::Machine;
use busbar::model::Varied;
use busbar::sim::{Events, Outage, Outages, Run, Simulation, State};
use busbar::units::{Instant, NodeId, Span, Watts};
use busbar::variation::{Application, Curve, Ips, Knot, Processors};
use busbar::workload::Workload;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::agreement::cases;

mod deferral;
mod hostile;
mod replay;
mod rule;
mod stories;
mod uniform;
mod watched;
mod work;

use replay::Replay;
use rule::{Refusal, Rules, Sharing};
use watched::{Tally, Watched};

/// The lowest cap of all these machines.
const FLOOR: u64 = 50_000;

/// A job: gap to the one before, nodes asked for, run time, requested time, all in seconds; and the
/// application.
type Asked = (u32, u32, u32, u32, u32);

/// Knots of a curve: milliwatts and instructions per second.
type Knots = Vec<(u64, u64)>;

/// All that a run depends on.
#[derive(Clone, Debug)]
struct Story {
    /// The curve of each processor, for each application.
    curves: Vec<Vec<Knots>>,
    base_watts: u32,
    jobs: Vec<Asked>,
    /// From when, and so many hundredths of the lowest caps of all processors.
    budget: Vec<(u32, u32)>,
    /// Which node, from when, and for how long.
    outages: Vec<(u32, u32, u32)>,
    rules: Rules,
    events: Events,
}

/// A machine of these curves, one list for each application.
fn machine(curves: &[Vec<Knots>], base_watts: u32) -> Machine {
    let floor = Watts::from_milliwatts(FLOOR);
    let knot = |&(power, ips): &(u64, u64)| Knot {
        power: Watts::from_milliwatts(power),
        ips: Ips::from_ips(ips),
    };
    let curve = |knots: &Knots| Curve::new(floor, knots.iter().map(knot).collect()).unwrap();
    let applications = curves.iter().zip(1..).map(|(curves, number)| Application {
        name: format!("application {number}"),
        curves: curves.iter().map(curve).collect(),
    });
    let names = (0..curves[0].len()).map(|number| format!("p{number}")).collect();
    let processors = Processors::new(names, floor, applications.collect()).unwrap();
    let machine = Machine::of_varied(processors, "story").unwrap();
    Machine { base_power: Watts::from_watts(base_watts), ..machine }
}

fn workload(jobs: &[Asked]) -> Workload {
    let mut submit = 0;
    let jobs = jobs.iter().zip(1..).map(|(&(gap, nodes, run_time, requested, number), place)| {
        submit += gap;
        let application = NonZeroU32::new(number).map(ApplicationId);
        let job = Job::new(place, Instant::from_secs(submit), nodes, Span::from_secs(requested));
        (Job { application, ..job }, Span::from_secs(run_time))
    });
    Workload::new("story", jobs)
}

impl Story {
    fn nodes(&self) -> u32 {
        self.curves[0].len() as u32
    }

    fn budget(&self) -> Budget {
        let base = Watts::from_watts(self.base_watts);
        let floors = u64::from(self.nodes()) * FLOOR;
        let limit =
            |hundredths: u32| base + Watts::from_milliwatts(floors * u64::from(hundredths) / 100);
        let steps = self.budget.iter().map(|(at, share)| (Instant::from_secs(*at), limit(*share)));
        Budget::from_steps(steps.collect()).unwrap()
    }

    fn outages(&self) -> Outages {
        let outage = |&(node, down, length): &(u32, u32, u32)| Outage {
            node: NodeId(node % self.nodes()),
            down: Instant::from_secs(down),
            up: Instant::from_secs(down + length),
        };
        Outages::new(self.outages.iter().map(outage).collect())
    }

    /// Runs it, checking every turn and then the whole.
    fn check(&self) -> (Run, Tally) {
        let (machine, workload) = (machine(&self.curves, self.base_watts), workload(&self.jobs));
        let budget = self.budget();
        let model = Varied::on(&machine, workload.jobs(), 1);
        let mut policy = Watched::new(self.rules, &machine, &budget);
        let run = Simulation::new(&machine, &workload)
            .model(&model)
            .budget(budget.clone())
            .outages(self.outages())
            .events(self.events)
            .keep_power(true)
            .run(&mut policy);
        Replay { machine: &machine, workload: &workload }.check(&run);
        if self.rules.refusal == Refusal::Skip {
            self.check_who_waits(&run, &machine, &budget);
        }
        (run, policy.tally)
    }

    /// Whoever never started is too much for the machine: in the end all of it was his, and not even
    /// the most efficient processors can be fed, as many as he must have.
    fn check_who_waits(&self, run: &Run, machine: &Machine, budget: &Budget) {
        let power = budget.at(Instant::NEVER).saturating_sub(machine.base_power);
        let curves = watched::curves(machine);
        for (record, job) in run.records.iter().zip(&self.jobs) {
            let mut best: Vec<&Curve> = curves[job.4 as usize - 1].iter().collect();
            best.sort_by(|a, b| rule::more_efficient(a, b));
            let curves = curves[job.4 as usize - 1];
            best.truncate(self.rules.fewest_of(job.1, curves, power.milliwatts()));
            let needed = best.iter().map(|curve| curve.least()).sum::<Watts>();
            assert!(record.state != State::Waiting || power < needed, "{job:?}: {power}");
        }
    }
}

/// A curve: what is drawn at the lowest cap beyond it, the speed there, and what each stretch takes
/// and brings. Some are concave, some are not; a few end below the lowest cap.
fn knots() -> impl Strategy<Value = Knots> {
    let beyond = prop_oneof![6 => Just(0u64), 2 => 1u64..9_000, 1 => Just(5_000)];
    let below = prop_oneof![4 => Just(0u64), 1 => 1_000u64..20_000];
    let milliwatts = prop_oneof![(1u64..20).prop_map(|watts| watts * 1000), 1u64..25_000];
    let stretch = (milliwatts, prop_oneof![1u64..40, 1_000_000u64..50_000_000]);
    let stretches = prop::collection::vec(stretch, 0..=4);
    let first = prop_oneof![1u64..100, 10_000_000u64..60_000_000];
    (beyond, below, first, stretches, any::<bool>()).prop_map(
        |(beyond, below, first, mut stretches, is_concave)| {
            if is_concave {
                stretches.sort_by(|a, b| (b.1 * a.0).cmp(&(a.1 * b.0)));
            }
            let mut knots = vec![(FLOOR + beyond - below, first)];
            for (milliwatts, ips) in stretches {
                let (power, speed) = knots[knots.len() - 1];
                knots.push((power + milliwatts, speed + ips));
            }
            knots
        },
    )
}

/// Curves for each application, from few that are different, so that many processors are alike.
fn curves(most_nodes: usize) -> impl Strategy<Value = Vec<Vec<Knots>>> {
    let pool = prop::collection::vec(knots(), 1..=4);
    (pool, 2..=most_nodes, 1usize..=3).prop_flat_map(|(pool, nodes, applications)| {
        let one = prop::collection::vec(prop::sample::select(pool), nodes);
        prop::collection::vec(one, applications)
    })
}

fn budgets() -> impl Strategy<Value = Vec<(u32, u32)>> {
    let constant = (20u32..=220).prop_map(|share| vec![(0, share)]);
    let changing = prop::collection::vec((1u32..900, 0u32..=220), 1..=3);
    let changing = (20u32..=220, changing).prop_map(|(first, steps)| {
        let mut at = 0;
        let steps = steps.into_iter().map(|(gap, share)| {
            at += gap;
            (at, share)
        });
        [(0, first)].into_iter().chain(steps).collect()
    });
    prop_oneof![2 => constant, 1 => changing]
}

fn jobs(nodes: u32, applications: u32, most: usize) -> impl Strategy<Value = Vec<Asked>> {
    let gap = prop_oneof![3 => Just(0u32), 1 => 1u32..300, 1 => Just(100)];
    let run_time = prop_oneof![8 => 1u32..800, 2 => Just(100), 1 => Just(0)];
    let slack = prop_oneof![3 => Just(0i32), 3 => 1i32..500, 1 => -60i32..0];
    let job = (gap, 1..=nodes + 1, run_time, slack, 1..=applications);
    let job = job.prop_map(|(gap, nodes, run_time, slack, application)| {
        let requested = run_time.saturating_add_signed(slack);
        (gap, nodes, run_time, requested, application)
    });
    prop::collection::vec(job, 1..=most)
}

fn rules() -> impl Strategy<Value = Rules> {
    let sizes = prop::sample::select(vec![(4, 64), (1, 2), (1, 3), (2, 4), (3, 6)]);
    let refusal = prop::sample::select(vec![Refusal::Skip, Refusal::Close, Refusal::Stop]);
    let fewest = prop_oneof![Just(0), Just(50), Just(100)];
    let sharing = prop::sample::select(vec![Sharing::Busbar, Sharing::Paper, Sharing::Gain]);
    (sizes, refusal, any::<bool>(), fewest, sharing).prop_map(
        |(sizes, refusal, is_uncapped, fewest, sharing)| Rules {
            sizes,
            refusal,
            is_uncapped,
            fewest,
            sharing,
        },
    )
}

fn stories(
    most_nodes: usize,
    most_jobs: usize,
    most_outages: usize,
) -> impl Strategy<Value = Story> {
    curves(most_nodes).prop_flat_map(move |curves| {
        let (nodes, applications) = (curves[0].len() as u32, curves.len() as u32);
        let outage = (0..nodes, 0u32..1500, 1u32..600);
        (
            Just(curves),
            prop_oneof![Just(0u32), Just(70)],
            jobs(nodes, applications, most_jobs),
            budgets(),
            prop::collection::vec(outage, 0..=most_outages),
            rules(),
            prop_oneof![Just(Events::Instant), Just(Events::Each)],
        )
            .prop_map(|(curves, base_watts, jobs, budget, outages, rules, events)| Story {
                curves,
                base_watts,
                jobs,
                budget,
                outages,
                rules,
                events,
            })
    })
}

/// Small jobs come one after the other and stay, on processors that the power just feeds: who was there first has more
/// than the lowest caps, and the paper's rule often refuses those who come later.
fn contested_stories() -> impl Strategy<Value = Story> {
    (stories(7, 14, 0), 0u32..40).prop_map(|(mut story, more)| {
        for (gap, nodes, run_time, requested, _) in &mut story.jobs {
            (*gap, *nodes) = (1 + *gap % 50, 1 + *nodes % 2);
            (*run_time, *requested) = (*run_time + 400, *requested + 400);
        }
        story.budget = vec![(0, 100 + more)];
        story.rules.sharing = Sharing::Gain;
        story
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn every_turn_is_that_of_the_plain_rule(story in stories(7, 14, 0)) {
        story.check();
    }

    #[test]
    fn power_goes_where_it_gains_most(story in contested_stories()) {
        story.check();
    }

    #[test]
    fn nodes_may_fail(story in stories(6, 10, 4)) {
        story.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases() / 30 + 1, ..ProptestConfig::default() })]

    #[test]
    fn more_processors_and_longer_queues(story in stories(24, 50, 2)) {
        story.check();
    }
}

/// A job runs when the limit falls below what it needs, and is thrown out by its node: it comes again,
/// and is given up once.
#[test]
fn a_job_that_comes_again_and_cannot_be_fed_is_given_up_once() {
    let story = Story {
        curves: vec![vec![
            vec![(58_108, 41_786_720), (77_108, 68_773_902)],
            vec![(50_000, 37_477_047)],
        ]],
        base_watts: 0,
        jobs: vec![(0, 1, 77, 77, 1), (0, 1, 85, 85, 1)],
        budget: vec![(0, 59), (1, 50)],
        outages: vec![(1, 1083, 1), (0, 854, 110)],
        rules: Rules {
            sizes: (4, 64),
            refusal: Refusal::Skip,
            is_uncapped: false,
            fewest: 0,
            sharing: Sharing::Busbar,
        },
        events: Events::Instant,
    };
    story.check();
}

/// What came of a hundred stories, all together.
fn tally_of(stories: &impl Strategy<Value = Story>) -> [u64; 7] {
    let mut runner = TestRunner::deterministic();
    let tallies: Vec<Tally> =
        (0..100).map(|_| stories.new_tree(&mut runner).unwrap().current().check().1).collect();
    let counts: [fn(&Tally) -> u64; 7] = [
        |tally| tally.turns,
        |tally| tally.starts,
        |tally| tally.squeezed,
        |tally| tally.lowered,
        |tally| tally.raised,
        |tally| tally.deferred,
        |tally| tally.gainful,
    ];
    counts.map(|count| tallies.iter().map(count).sum::<u64>())
}

/// A hundred of these stories have everything in them that is to be checked.
#[test]
fn the_stories_are_eventful() {
    let sums = tally_of(&stories(7, 14, 0));
    assert!(sums[..6].iter().all(|sum| *sum > 0), "{sums:?}");
    let contested = tally_of(&contested_stories());
    assert!(contested.iter().all(|sum| *sum > 0), "{contested:?}");
}
