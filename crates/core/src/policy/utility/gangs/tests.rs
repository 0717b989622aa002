//! Gangs by hand: who starts when, and at which level.

use super::*;
use crate::budget::{Budget, EnergyBudget};
use crate::freedom::{Freedom, Freedoms};
use crate::job::Job;
use crate::machine::Machine;
use crate::model::{Menu, Model, Outcome, Rung, Stretch};
use crate::policy::utility::spec::Heuristic;
use crate::sim::{Run, Simulation, State};
use crate::units::{Joules, Span, Watts};
use crate::workload::Workload;

const HOUR: u32 = 3600;

/// Nodes draw 100 W, or 50 W for half as long again.
struct TwoLevels {
    drops: bool,
    rungs: [Rung; 1],
}

impl TwoLevels {
    fn new(drops: bool) -> Self {
        let rung = Rung::alike(Watts::from_watts(50), Stretch::NONE);
        TwoLevels { drops, rungs: [rung] }
    }

    fn slowed(time: Span, watts: u32) -> Span {
        match watts {
            100 => time,
            _ => Span::from_millis(time.millis() * 3 / 2),
        }
    }

    fn point(job: &Job, watts: u32) -> OperatingPoint {
        OperatingPoint {
            nodes: job.nodes,
            cores: 1,
            cap: Watts::from_watts(watts),
            time: Self::slowed(job.requested, watts).max(OperatingPoint::SHORTEST),
            power: Watts::from_watts(watts) * job.nodes,
        }
    }
}

impl Model for TwoLevels {
    fn nominal(&self, _: JobId, job: &Job) -> OperatingPoint {
        Self::point(job, 100)
    }

    fn menu(&self, _: JobId, job: &Job) -> Menu {
        Menu::new(Self::point(job, 100), [Self::point(job, 50)])
    }

    fn freedoms(&self, _: JobId, _: &Job) -> Freedoms {
        if self.drops { Freedoms::ALL } else { Freedoms::ALL - Freedoms::of(&[Freedom::Drops]) }
    }

    fn outcome(&self, _: JobId, _: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        let watts = (point.cap.milliwatts() / 1000) as u32;
        Outcome { run_time: Self::slowed(run_time, watts), power: point.power }
    }

    fn rungs(&self) -> &[Rung] {
        &self.rungs
    }
}

/// Submission, nodes, requested time (all in seconds) and weight.
type Asked = (u32, u32, u32, &'static str);

struct Case<'a> {
    nodes: u32,
    limit: Watts,
    energy: Option<EnergyBudget>,
    drops: bool,
    jobs: &'a [Asked],
}

impl<'a> Case<'a> {
    fn new(nodes: u32, jobs: &'a [Asked]) -> Self {
        Case { nodes, limit: Watts::UNLIMITED, energy: None, drops: false, jobs }
    }

    fn run(&self, spec: UtilitySpec) -> Run {
        let machine = Machine::of_processors(self.nodes).unwrap();
        let jobs = self.jobs.iter().zip(1..).map(|(asked, number)| {
            let (submit, nodes, requested, weight) = *asked;
            let requested = Span::from_secs(requested);
            let mut job = Job::new(number, Instant::from_secs(submit), nodes, requested);
            job.terms.weight = weight.parse().unwrap();
            (job, requested)
        });
        let workload = Workload::new("test", jobs);
        let model = TwoLevels::new(self.drops);
        let simulation = Simulation::new(&machine, &workload);
        let simulation = simulation.budget(Budget::constant(self.limit)).model(&model);
        let simulation = match self.energy {
            Some(energy) => simulation.energy(energy),
            None => simulation,
        };
        let run = simulation.truth(&model).run(&mut Gangs::new(spec));
        assert_eq!(run.violations, 0, "{:?}", run.first_violations);
        run
    }

    /// By job: when it starts, in seconds, and the watts of a node.
    fn starts(&self, spec: UtilitySpec) -> Vec<(u64, u64)> {
        let run = self.run(spec);
        let start = |record: &crate::sim::Record| {
            (record.start.millis() / 1000, record.cap.milliwatts() / 1000)
        };
        run.records.iter().map(start).collect()
    }
}

fn by(heuristic: &str) -> UtilitySpec {
    UtilitySpec { heuristic: heuristic.parse().unwrap(), ..UtilitySpec::default() }
}

/// One node, taken until 100 s; then four jobs wait for it.
const FOUR: [Asked; 5] = [
    (0, 1, 100, "1"),
    (10, 1, 4000, "1"),
    (20, 1, 400, "4"),
    (30, 1, 10_000, "2"),
    (40, 1, 5000, "1"),
];

/// The order in which the four start, and the watts of each.
fn order(heuristic: &str) -> Vec<(usize, u64)> {
    let starts = Case::new(1, &FOUR).starts(by(heuristic));
    let mut order: Vec<usize> = (1..5).collect();
    order.sort_by_key(|job| starts[*job].0);
    order.into_iter().map(|job| (job, starts[job].1)).collect()
}

#[test]
fn orders_of_arrival_and_weight() {
    for (heuristic, expected) in [
        ("fcfs", [1, 2, 3, 4]),
        ("lcfs", [4, 3, 2, 1]),
        ("prioritized-fcfs", [2, 3, 1, 4]),
        ("prioritized-lcfs", [2, 3, 4, 1]),
    ] {
        for states in ["p0", "all"] {
            let heuristic = format!("{heuristic}-{states}");
            assert_eq!(order(&heuristic), expected.map(|job| (job, 100)), "{heuristic}");
        }
    }
}

/// Until their time is doubled all are worth what they start with: 16 of job 2, 8 of job 3. When these are
/// complete, at 10 500 s, job 1 would be complete at an age of 14 490 s, 1.62 halvings after 8000 s: 1.30.
/// Job 4 would be at 15 460 s, 1.09 halvings after 10 000 s: 1.88.
#[test]
fn the_largest_worth_when_complete() {
    assert_eq!(order("max-utility"), [2, 3, 4, 1].map(|job| (job, 100)));
}

/// 16 in 400 s, then 4 in 4000 s. Jobs 3 and 4 are worth 0.0008 a second both, until job 1 is complete as
/// well; job 4 is complete sooner.
#[test]
fn the_largest_worth_for_each_second() {
    assert_eq!(order("max-upt"), [2, 1, 4, 3].map(|job| (job, 100)));
}

/// At 50 W a job takes three quarters of the energy. Job 4, the last, starts at 21 700 s: at 50 W it would
/// be worth 4·2^−3.832 for 375 kJ, at 100 W 4·2^−3.332 for 500 kJ, which is more for each joule.
#[test]
fn the_largest_worth_for_each_joule() {
    assert_eq!(order("max-upe"), [(2, 50), (1, 50), (3, 50), (4, 100)]);
}

#[test]
fn random_orders_are_drawn_from_the_seed() {
    let case = Case::new(1, &FOUR);
    let drawn = |seed| case.starts(UtilitySpec { seed, ..by("random") });
    assert_eq!(drawn(1), drawn(1));
    assert!((2..20).any(|seed| drawn(seed) != drawn(1)));
    let watts: Vec<u64> = (1..20).flat_map(drawn).map(|(_, watts)| watts).collect();
    assert!(watts.contains(&50) && watts.contains(&100));
}

/// One of two nodes is free, which lets in a job of one node; the gang has to wait for the other one, too.
#[test]
fn a_gang_waits_for_its_last_node() {
    let jobs = [(0, 1, 100, "1"), (10, 2, 1000, "1"), (20, 1, 50, "1")];
    assert_eq!(Case::new(2, &jobs).starts(by("fcfs-all")), [(0, 100), (100, 100), (20, 100)]);
}

/// 50 W are left beside the first job. What may run at half of its watts does so at once, what may not waits.
/// Four nodes can be fed at half of their watts alone.
#[test]
fn watts_are_waited_for_like_nodes() {
    let jobs = [(0, 2, 100, "1"), (0, 1, 100, "1"), (200, 4, 100, "1")];
    let case = Case { limit: Watts::from_watts(250), ..Case::new(4, &jobs) };
    assert_eq!(case.starts(by("fcfs-all")), [(0, 100), (0, 50), (200, 50)]);
    assert_eq!(case.starts(by("fcfs-p0")), [(0, 100), (100, 100), (200, 50)]);
}

/// An hour's job is worth a half five hours after its submission.
#[test]
fn nobody_is_dropped_unless_that_is_allowed() {
    let jobs = [(0, 1, 100 * HOUR, "1"), (1, 1, HOUR, "1"), (1, 1, HOUR, "0.1")];
    for heuristic in Heuristic::ALL {
        let spec = UtilitySpec { heuristic, ..UtilitySpec::default() };
        let mut case = Case::new(1, &jobs);
        let states = |run: Run| run.records.iter().map(|record| record.state).collect::<Vec<_>>();
        // The order among the first two may be any.
        assert_eq!(states(case.run(spec)), [State::Completed; 3], "{heuristic}");
        case.drops = true;
        let dropped = State::Dropped(DropReason::LowUtility);
        let states = states(case.run(spec));
        assert_eq!(states[2], dropped, "worth 0.4 from the beginning");
        assert!(states[1] == dropped || case.run(spec).records[1].start < Instant::from_secs(HOUR));
    }
}

/// Small jobs keep at least one of two nodes busy all the time, and each is worth more. A day later the gang
/// is worth nothing, and is owed its start: the small job that is submitted half an hour before that waits.
#[test]
fn who_is_worth_nothing_any_more_is_owed_its_start() {
    let mut jobs: Vec<Asked> = vec![(60, 2, HOUR, "1")];
    jobs.extend((0..100).map(|number| (number * HOUR / 2, 1, HOUR, "1")));
    jobs.sort_unstable();
    let gang = jobs.iter().position(|job| job.1 == 2).unwrap();
    for heuristic in ["max-upt", "max-upe", "max-utility", "fcfs-p0", "random"] {
        let starts = Case::new(2, &jobs).starts(by(heuristic));
        let start = starts[gang].0 / u64::from(HOUR);
        assert!((24..27).contains(&start), "{heuristic}: after {start} hours");
    }
}

/// 50 W on average for 1000 s. At 0 s a job may have the mean of its menu, (20 + 15) / 2 kJ, which it is
/// below at 50 W. At 60 s nothing has been consumed yet, and there is no limit.
#[test]
fn energy_paces_and_does_not_end() {
    let energy = EnergyBudget {
        energy: Joules::from_joules(50_000),
        begin: Instant::ZERO,
        end: Instant::from_secs(1000),
    };
    let jobs = [(0, 1, 200, "1")];
    let case = Case { energy: Some(energy), ..Case::new(1, &jobs) };
    assert_eq!(case.starts(by("fcfs-all")), [(0, 50)]);
    assert_eq!(case.starts(UtilitySpec { filter: false, ..by("fcfs-all") }), [(0, 100)]);
    assert_eq!(case.starts(by("fcfs-p0")), [(60, 100)]);
    assert_eq!(Case::new(1, &jobs).starts(by("fcfs-all")), [(0, 100)]);
    // What cannot be paid is not tried: at 50 W only the last 200 s of the period can, and that is found out
    // at the next full minute.
    let poor = EnergyBudget { energy: Joules::from_joules(10_000), ..energy };
    let case = Case { energy: Some(poor), ..Case::new(1, &jobs) };
    assert_eq!(case.starts(by("fcfs-all")), [(840, 50)]);
}
