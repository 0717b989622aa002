//! A real daemon with real processes.
//!
//! Processes do not end to the millisecond: they take a moment to begin, and the machine has other things
//! to do. That is all that differs from a simulation. So the simulator is given the same jobs, submitted
//! at the instants and running for the times that the daemon's clock has seen, and then it has to take the
//! same decisions in the same order at the same instants, without any tolerance. How far the run times are
//! from those that the jobs were to have is the noise. It is measured and printed, and so is how many pairs
//! of starts are swapped against a simulation without noise, and in simulations with as much noise as that.
//!
//! What cannot be told from a history is which of two turns of the loop within one millisecond came with
//! which event. A run in which there were such turns is made again.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use busbar::budget::BudgetSpec;
use busbar::freedom::Freedom;
use busbar::job::Job;
use busbar::live::control::setup::Setup;
use busbar::live::job::{ChangeReason, EventKind, Owner};
use busbar::live::wire::HistoryLine;
use busbar::machine::Machine;
use busbar::model::{Menu, Model, OperatingPoint, Outcome, Rigid, Rung};
use busbar::policy::parm::Flexibility;
use busbar::policy::{ParmSpec, PolicySpec};
use busbar::units::{Instant, JobId, Span};
use busbar::variation::catalyst::Catalyst;
use busbar::variation::csv;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use super::expected::{simulated, workload};
use super::served::Daemon;
use super::workload::{Planned, Times, jobs};
use super::{Told, assert_same, cases, is_in_full};

/// Jobs of tenths of a second, which ask for so much more that none is ended at its limit.
const MOMENTS: Times = Times { gap: 0, run: (50, 400), slack: (60_000, 180_000) };

/// The share of the machine's power that jobs may draw.
const BUDGET: &str = "70%";

/// How often a run is made again in which two turns came in a millisecond.
const TRIES: usize = 20;

/// How often the noise is dealt out anew.
const DEALS: u64 = 20;

/// The machine of a case, as the command line names it: with fewer nodes, so that jobs have to wait.
fn machine(setup: &Setup, folder: &Path) -> String {
    if setup.decider.spec().name().starts_with("rmap") {
        return "cab".to_owned();
    }
    if setup.decider.spec().wants().has(Freedom::Nodes) {
        let path = folder.join("curves.csv");
        let measured = Catalyst { processors: 8, ..Catalyst::default() }.measure();
        csv::write(&mut File::create(&path).unwrap(), measured.rows()).unwrap();
        return path.display().to_string();
    }
    "8".to_owned()
}

/// Jobs that are as fast as is believed of them, which is what `busbar work` does.
struct Emulated(Box<dyn Model>);

impl Emulated {
    fn new(setup: &Setup, jobs: &[Job]) -> Self {
        let mut model = setup.decider.model();
        for (id, job) in (0..).map(JobId).zip(jobs) {
            model.learn(id, job);
        }
        Emulated(model)
    }
}

impl Model for Emulated {
    fn nominal(&self, id: JobId, job: &Job) -> OperatingPoint {
        self.0.nominal(id, job)
    }

    fn menu(&self, id: JobId, job: &Job) -> Menu {
        self.0.menu(id, job)
    }

    fn outcome(&self, id: JobId, job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        let nominal = self.nominal(id, job).time.millis();
        let millis = (run_time.millis() * point.time.millis()).div_ceil(nominal);
        Outcome { run_time: Span::from_millis(millis), power: point.power }
    }

    fn rungs(&self) -> &[Rung] {
        self.0.rungs()
    }
}

/// Whether the loop turned twice within a millisecond, as far as can be told: something happened after
/// something was decided. Where Slurm placed a job is not decided here: one look may find it, and that the job has ended.
pub(crate) fn turned_twice(history: &[HistoryLine]) -> bool {
    let decides = |line: &HistoryLine| match line.event.kind {
        EventKind::Changed { reason, .. } => reason != ChangeReason::Placed,
        EventKind::Started { .. } => true,
        _ => false,
    };
    history
        .windows(2)
        .any(|pair| pair[0].event.at == pair[1].event.at && decides(&pair[0]) && !decides(&pair[1]))
}

/// The jobs as the daemon has seen them: when they were submitted, and for how long they ran.
pub(crate) fn seen(planned: &[Planned], history: &[HistoryLine]) -> Vec<Planned> {
    let mut seen = planned.to_vec();
    let mut starts: BTreeMap<u64, Instant> = BTreeMap::new();
    for HistoryLine { event, .. } in history {
        let place = |job: u64| job as usize - 1;
        match &event.kind {
            EventKind::Submitted { job, .. } => seen[place(*job)].submit = event.at,
            EventKind::Started { job, .. } => {
                starts.insert(*job, event.at);
            }
            EventKind::Ended { job, outcome } => {
                seen[place(*job)].run_time = outcome.end.since(starts[job]);
            }
            _ => (),
        }
    }
    seen
}

/// By how many milliseconds jobs that never changed ran longer than they were to, in order.
fn lateness(planned: &[Planned], history: &[HistoryLine]) -> Vec<i64> {
    let mut expected: BTreeMap<u64, Option<(Instant, u64)>> = BTreeMap::new();
    let mut late = Vec::new();
    for HistoryLine { event, .. } in history {
        match &event.kind {
            EventKind::Started { job, allotment, .. } => {
                let asked = planned[*job as usize - 1].run_time.millis();
                let time = (asked * 1_000_000).div_ceil(u64::from(allotment.speed));
                expected.insert(*job, Some((event.at, time)));
            }
            EventKind::Changed { job, .. } => {
                expected.insert(*job, None);
            }
            EventKind::Ended { job, outcome } => {
                if let Some((start, time)) = expected[job] {
                    late.push(outcome.end.since(start).millis() as i64 - time as i64);
                }
            }
            _ => (),
        }
    }
    late.sort_unstable();
    late
}

/// Jobs that run as much longer as others did, each as long as some other.
fn noisy(jobs: &[Planned], late: &[i64], seed: u64) -> Vec<Planned> {
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed);
    let mut longer = |job: &Planned| {
        let late = late[numbers.random_range(0..late.len())].max(0).unsigned_abs();
        Planned { run_time: job.run_time + Span::from_millis(late), ..job.clone() }
    };
    jobs.iter().map(&mut longer).collect()
}

/// How many pairs of jobs start in another order.
pub(crate) fn swapped(order: &[u64], other: &[u64]) -> usize {
    let place: BTreeMap<u64, usize> = other.iter().copied().zip(0..).collect();
    let places: Vec<usize> = order.iter().map(|job| place[job]).collect();
    (0..places.len())
        .map(|one| places[one + 1..].iter().filter(|next| **next < places[one]).count())
        .sum()
}

/// Runs jobs under a policy, really and in simulations.
fn assert_runs(case: &Setup, count: usize) {
    for _ in 0..TRIES {
        let folder = tempfile::tempdir().unwrap();
        let name = machine(case, folder.path());
        let machine = Machine::from_text(&name).unwrap();
        let setup = case.on(&machine).unwrap();
        let budget = BUDGET.parse::<BudgetSpec>().unwrap().resolve(&setup.machine).unwrap();
        let planned = jobs(&setup, count, MOMENTS, 7);
        let history = Daemon::begin(&setup, &name, BUDGET, folder).run(&planned);
        if turned_twice(&history) {
            println!("{}: two turns within a millisecond; once more", setup.decider.spec());
            continue;
        }
        let owner = Owner {
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
        };
        let told = Told::of(&history, setup.decider.policy().names_nodes());

        // With the run times that were seen, whatever a job has.
        let seen = seen(&planned, &history);
        let known = workload(&seen, owner, &setup);
        let expected = simulated(&setup, &budget, &known, &Rigid::on(&setup.machine));
        assert_same(&told, &expected, &setup.decider.spec().to_string());
        assert_eq!(told.order().len(), count);

        // With the run times that jobs were to have.
        let exact = planned.iter().zip(&seen);
        let exact: Vec<Planned> =
            exact.map(|(job, seen)| Planned { submit: seen.submit, ..job.clone() }).collect();
        let order = |jobs: &[Planned]| {
            let known = workload(jobs, owner, &setup);
            let truth = Emulated::new(&setup, known.jobs());
            simulated(&setup, &budget, &known, &truth).order()
        };
        let (live, exact_order) = (told.order(), order(&exact));
        let late = lateness(&planned, &history);
        let (middle, most) = (late[late.len() / 2], late[late.len() - 1]);
        // The same noise, dealt out to the jobs in other ways.
        let dealt =
            (1..=DEALS).map(|seed| swapped(&order(&noisy(&exact, &late, seed)), &exact_order));
        let dealt: Vec<usize> = dealt.collect();
        let submitted: Vec<u64> = (1..=count as u64).collect();
        let seconds = told.ends.iter().map(|end| end.1).max().unwrap().secs_f64();
        println!(
            "{}: {count} jobs in {seconds:.1} s, {} changes, {} of {} pairs not in the order of \
             submission; order and instants as in the simulation with the run times that were seen; jobs \
             end {middle} ms late, at most {most} ms; against a simulation without that {} pairs are \
             swapped, and in simulations with the same noise dealt out anew {} to {}",
            setup.decider.spec(),
            told.changes(),
            swapped(&live, &submitted),
            count * (count - 1) / 2,
            swapped(&live, &exact_order),
            dealt.iter().min().unwrap(),
            dealt.iter().max().unwrap(),
        );
        // Clocks are read in whole milliseconds, at both ends.
        assert!(late[0] >= -2, "a job ends {} ms too early", -late[0]);
        return;
    }
    panic!("{}: two turns within a millisecond in each of {TRIES} runs", case.decider.spec());
}

/// With BUSBAR_LIVE_ORDER=1, every policy but one: jobs that grow and shrink stand still meanwhile in
/// a simulation, which `busbar work` does not.
#[test]
fn processes_start_in_the_order_of_the_simulation() {
    for setup in cases() {
        match is_in_full() {
            _ if moves_jobs(setup.decider.spec()) => (),
            true => assert_runs(&setup, 200),
            false if ["easy", "easy-power"].contains(&setup.decider.spec().name()) => {
                assert_runs(&setup, 60)
            }
            false => (),
        }
    }
}

fn moves_jobs(policy: &PolicySpec) -> bool {
    let parm = policy.downcast::<ParmSpec>();
    parm.is_some_and(|spec| spec.flexibility == Flexibility::Malleable)
}

#[test]
fn swapped_pairs_by_hand() {
    assert_eq!(swapped(&[1, 2, 3], &[1, 2, 3]), 0);
    assert_eq!(swapped(&[3, 1, 2], &[1, 2, 3]), 2);
    assert_eq!(swapped(&[3, 2, 1], &[1, 2, 3]), 3);
}
