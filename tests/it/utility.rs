//! Utility under an energy budget against a plain version of it: no heaps, no groups, no plans that
//! are made later. Every start, machine, P-state and drop must agree, ties included.

use std::num::NonZeroU32;
use std::sync::Arc;

use busbar::budget::EnergyBudget;
use busbar::heterogeneity::{MachineType, PState, Purpose, Site, Tables, TaskType};
use busbar::job::{ApplicationId, Job};
use busbar::model::Heterogeneous;
use busbar::policy::utility::spec::Heuristic;
use busbar::policy::utility::{Environment, UtilityMapper, UtilitySpec};
use busbar::sim::{Outage, Outages, Run, Simulation, State};
use busbar::units::{Instant, Joules, NodeId, Span, Watts};
use busbar::utility::{Decay, Utilities, Utility, UtilityFunction, UtilityId};
use busbar::workload::Workload;
use busbar::workload::essc::Essc;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use crate::agreement::cases;

mod plain;

use plain::{Fate, plain};

/// A site, tasks, a budget and a policy.
#[derive(Clone, Debug)]
struct Case {
    site: Site,
    workload: Workload,
    budget: EnergyBudget,
    spec: UtilitySpec,
}

impl Case {
    fn run(&self) -> Run {
        self.run_with(Outages::default())
    }

    fn run_with(&self, outages: Outages) -> Run {
        let machine = Heterogeneous::machine(&self.site.tables);
        let model = Heterogeneous::new(self.site.tables.clone());
        let mut policy = UtilityMapper::new(self.spec, &self.site);
        let simulation = Simulation::new(&machine, &self.workload);
        let simulation = simulation.model(&model).energy(self.budget).outages(outages);
        simulation.keep_power(true).run(&mut policy)
    }

    /// What became of each task under the real policy.
    fn fates(&self) -> Vec<Fate> {
        let run = self.run();
        assert_eq!(run.violations, 0, "{:?}", run.first_violations);
        let mut fates: Vec<Fate> = run
            .records
            .iter()
            .map(|record| match record.state {
                State::Waiting => Fate::Left,
                State::Dropped(_) => Fate::Dropped { at: record.start },
                _ => Fate::Started { at: record.start, node: u32::MAX, power: record.power },
            })
            .collect();
        for capping in &run.cappings {
            if let Fate::Started { node, .. } = &mut fates[capping.job.index()] {
                *node = capping.caps.nodes().next().unwrap().0;
            }
        }
        let consumed = run.consumed.unwrap();
        assert!(consumed <= self.budget.energy);
        assert_eq!(consumed, charged(&fates, self), "energy is charged to the microjoule");
        fates
    }
}

/// What the tasks that started were charged in the period.
fn charged(fates: &[Fate], case: &Case) -> Joules {
    let tables = &case.site.tables;
    let started = case.workload.jobs().iter().zip(fates).filter_map(|(job, fate)| match fate {
        Fate::Started { at, node, power } => Some((job, *at, *node, *power)),
        _ => None,
    });
    started
        .map(|(job, at, node, power)| {
            let kind = TaskType(job.application.unwrap().0.get() - 1);
            let machine = tables.type_of(NodeId(node)).unwrap();
            let states = tables.states(kind, machine);
            let time = states.iter().find(|state| state.power == power).unwrap().time;
            case.budget.charge(power, at, at + time)
        })
        .sum()
}

/// A small case full of ties: few different times, powers and utilities.
fn random_case(seed: u64) -> Case {
    let mut rng = Pcg64Dxsm::seed_from_u64(seed);
    let mut below = |count: u32| rng.random_range(0..count);
    let general = 1 + below(2);
    let special = below(2);
    let machine_types: Vec<MachineType> = (0..special + general)
        .map(|place| MachineType {
            name: format!("m{place}"),
            machines: 1 + below(3),
            purpose: if place < special { Purpose::Special } else { Purpose::General },
        })
        .collect();
    let types = 1 + below(3);
    let mut states = Vec::new();
    for _ in 0..types {
        for kind in &machine_types {
            let runs = kind.purpose == Purpose::General || below(2) == 0;
            let count = if runs { 1 + below(3) } else { 0 };
            let first = 20 * (1 + below(5));
            let entries = (0..count).map(|number| PState {
                number: number as u8,
                time: Span::from_secs(first + 10 * number * (1 + below(2))),
                power: Watts::from_watts(40 - 10 * number),
            });
            states.push(entries.collect());
        }
    }
    let names = (0..types).map(|place| format!("t{place}")).collect();
    let tables = Tables::new(machine_types, names, states).unwrap();
    let mut utilities = Utilities::default();
    for number in 0..1 + below(4) {
        let decay = Decay::per_minute_millionths([0, 100_000, 400_000][below(3) as usize]);
        let flat = Span::from_secs(60 * below(3));
        let start = Utility::whole([1, 2, 4][below(3) as usize]);
        let mut function = UtilityFunction::flat_then(start, flat, decay);
        if below(3) == 0 {
            let from = flat + Span::from_secs(60 * (1 + below(4)));
            function = function.then(from, [0, 500, 1000][below(3) as usize], decay);
        }
        utilities.push(format!("u{number}"), function);
    }
    let step = [1, 15, 60][below(3) as usize];
    let jobs: Vec<(Job, Span)> = (0..1 + below(40))
        .map(|number| {
            let submit = Instant::from_secs(below(900 / step) * step);
            let mut job = Job::new(u64::from(number), submit, 1, Span::from_secs(1));
            let kind = NonZeroU32::MIN.saturating_add(below(types));
            job.application = Some(ApplicationId(kind));
            job.terms.utility = Some(UtilityId::at(below(utilities.len() as u32)));
            (job, Span::from_secs(1))
        })
        .collect();
    let begin = Instant::from_secs([0, 100, 333][below(3) as usize]);
    let end = begin + Span::from_secs(200 + below(1200));
    let energy = match below(6) {
        0 => Joules::UNLIMITED,
        1 => Joules::from_joules(u64::from(below(3000))),
        _ => Joules::from_joules(u64::from(below(40_000))),
    };
    let spec = UtilitySpec {
        heuristic: Heuristic::ALL[below(12) as usize],
        environment: [Environment::Queued, Environment::Polled][below(2) as usize],
        filter: below(2) == 0,
        drop: Utility::from_millionths(u64::from(below(5)) * 250_000),
        every: Span::from_secs([30, 60][below(2) as usize]),
        seed: u64::from(below(100)),
    };
    Case {
        site: Site { tables: Arc::new(tables), utilities: Arc::new(utilities) },
        workload: Workload::new("random", jobs),
        budget: EnergyBudget { energy, begin, end },
        spec,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases() * 3, ..ProptestConfig::default() })]

    #[test]
    fn every_heuristic_agrees_with_the_plain_one(seed: u64) {
        let case = random_case(seed);
        let (real, mut expected) = (case.fates(), plain(&case));
        // Whoever would arrive after the end of the period never does.
        let late = expected.split_off(real.len());
        prop_assert!(late.iter().all(|fate| *fate == Fate::Left));
        prop_assert_eq!(real, expected, "{:?}", case.spec);
    }

    /// Our own heuristic, whose price is the sum of all that was decided before.
    #[test]
    fn a_price_on_energy_agrees_with_the_plain_one(seed: u64) {
        let mut case = random_case(seed);
        case.spec.heuristic = Heuristic::Priced;
        let (real, mut expected) = (case.fates(), plain(&case));
        expected.truncate(real.len());
        prop_assert_eq!(real, expected, "{:?}", case.spec);
    }

    /// Whatever fails when: no decision is refused, energy suffices, and every task is accounted for.
    #[test]
    fn nodes_that_fail_lose_nobody(
        seed: u64,
        outages in prop::collection::vec((0u32..9, 0u32..900, 1u32..400), 1..6),
    ) {
        let case = random_case(seed);
        let outage = |(node, down, long)| Outage {
            node: NodeId(node % case.site.tables.machines()),
            down: Instant::from_secs(down),
            up: Instant::from_secs(down + long),
        };
        let run = case.run_with(Outages::new(outages.into_iter().map(outage).collect()));
        prop_assert_eq!(run.violations, 0, "{:?}", run.first_violations);
        prop_assert!(run.consumed.unwrap() <= case.budget.energy);
        let count = |wanted: fn(&State) -> bool| {
            run.records.iter().filter(|record| wanted(&record.state)).count() as u64
        };
        let over = count(|state| matches!(state, State::Completed | State::Dropped(_)));
        prop_assert_eq!(over + run.unfinished, run.records.len() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    /// With a price on energy: no decision is refused, the energy suffices, every task is accounted for, and nobody
    /// who has started is complete after the period or worth nothing.
    #[test]
    fn a_price_keeps_within_the_energy(seed: u64) {
        let mut case = random_case(seed);
        case.spec.heuristic = Heuristic::Priced;
        let run = case.run();
        prop_assert_eq!(run.violations, 0, "{:?}", run.first_violations);
        prop_assert!(run.consumed.unwrap() <= case.budget.energy);
        let over = run.records.iter().filter(|record| {
            matches!(record.state, State::Completed | State::Dropped(_))
        });
        prop_assert_eq!(over.count() as u64 + run.unfinished, run.records.len() as u64);
        for (job, record) in case.workload.jobs().iter().zip(&run.records) {
            if record.state == State::Completed && record.nodes > 0 {
                let function = case.site.utilities.get(job.terms.utility.unwrap()).unwrap();
                let earned = function.at(record.end.since(job.submit));
                prop_assert!(earned > Utility::from_millionths(0), "{:?}", record);
                prop_assert!(record.end <= case.budget.end, "{:?}", record);
            }
        }
    }
}

/// A small day of the generator, with everything in it that small cases lack: many types, energy
/// that runs out, and queues that are long.
#[test]
fn generated_days_agree_with_the_plain_one() {
    let mut essc = Essc { tasks: 3600, hours: 3, warm_up: 1, ..Essc::default() };
    essc.machines.machines = 12;
    let tasks = essc.draw().unwrap();
    let (begin, end) = tasks.period.unwrap();
    for heuristic in Heuristic::ALL.into_iter().chain([Heuristic::Priced]) {
        for environment in [Environment::Queued, Environment::Polled] {
            for filter in [false, true] {
                let energy = Joules::from_joules(9_000_000);
                let case = Case {
                    site: tasks.site.clone(),
                    workload: tasks.workload.clone(),
                    budget: EnergyBudget { energy, begin, end },
                    spec: UtilitySpec { heuristic, environment, filter, ..UtilitySpec::default() },
                };
                let (real, expected) = (case.fates(), plain(&case));
                assert_eq!(real.len(), expected.len());
                let differs = real.iter().zip(&expected).position(|(real, plain)| real != plain);
                assert_eq!(differs, None, "{:?}", case.spec);
            }
        }
    }
}

/// No energy at all: every task is dropped, and the reason said.
#[test]
fn without_energy_everything_is_dropped() {
    let mut case = random_case(1);
    case.budget.energy = Joules::ZERO;
    let run = case.run();
    let reason = |state: &State| matches!(state, State::Dropped(reason) if reason.reason().contains("energy budget is used up"));
    assert!(!run.records.is_empty());
    assert!(run.records.iter().all(|record| reason(&record.state)), "{:?}", run.records);
    assert_eq!(run.consumed, Some(Joules::ZERO));
}

/// A task type that only a special machine type could run, and does not.
#[test]
fn what_no_machine_can_run_is_dropped() {
    let kinds = vec![MachineType { name: "gpu".into(), machines: 1, purpose: Purpose::Special }];
    let state = PState { number: 0, time: Span::from_secs(10), power: Watts::from_watts(10) };
    let tables =
        Tables::new(kinds, vec!["a".into(), "b".into()], vec![vec![state], vec![]]).unwrap();
    let mut utilities = Utilities::default();
    utilities.push("u", UtilityFunction::flat_then(Utility::whole(1), Span::ZERO, Decay::NONE));
    let job = |number: u32| {
        let mut job = Job::new(u64::from(number), Instant::ZERO, 1, Span::from_secs(1));
        job.application = NonZeroU32::new(number).map(ApplicationId);
        job.terms.utility = Some(UtilityId::at(0));
        (job, Span::from_secs(1))
    };
    let case = Case {
        site: Site { tables: Arc::new(tables), utilities: Arc::new(utilities) },
        workload: Workload::new("hand", [job(1), job(2)]),
        budget: EnergyBudget {
            energy: Joules::from_joules(1000),
            begin: Instant::ZERO,
            end: Instant::from_secs(100),
        },
        spec: UtilitySpec::default(),
    };
    let run = case.run();
    assert_eq!(run.records[0].state, State::Completed);
    assert!(
        matches!(run.records[1].state, State::Dropped(reason) if reason.reason().contains("no machine"))
    );
}
