//! What turns cost, in steps of the solver, which are the same on every machine.

use busbar::model::elastic::Kind;
use busbar::policy::{Decision, Parm, Policy, View};

use super::*;

/// Runs so many jobs that all arrive at once on a machine that has room for few of them, and counts the
/// steps of all turns.
fn steps(jobs: u32, window: Window, alpha: f64) -> u64 {
    let machine = Machine::of_processors(64).unwrap();
    let jobs = (0..jobs).map(|number| {
        let time = Span::from_secs(600 + number % 7 * 100);
        (Job::new(u64::from(number) + 1, Instant::ZERO, 16 + number * 11 % 31, time), time)
    });
    let workload = Workload::new("all at once", jobs);
    let feed = NodeCaps::of(&machine, 6);
    let model = Elastic::new(&machine, feed, &Application::ALL, workload.jobs(), 1);
    let mut policy = Parm::with(ParmSpec { window, alpha, ..ParmSpec::default() });
    let run = Simulation::new(&machine, &workload)
        .model(&model)
        .budget(Budget::constant(Watts::from_watts(4000)))
        .events(Events::Each)
        .run(&mut policy);
    assert_eq!(run.unfinished, 0);
    policy.steps()
}

/// Twice as many jobs are twice as many turns. If each turn looked at all that wait, that would be four
/// times the work, and so it is without a window.
#[test]
fn a_turn_costs_no_more_with_a_longer_queue() {
    let ratio = |window, alpha| {
        let (few, many) = (steps(100, window, alpha), steps(200, window, alpha));
        many as f64 / few as f64
    };
    let usual = ParmSpec::default().window;
    for alpha in [0.0, 1.0] {
        let windowed = ratio(usual, alpha);
        assert!(windowed < 2.5, "α = {alpha}: {windowed}");
    }
    let full = ratio(Window::All, 0.0);
    assert!(full > 3.0, "{full}");
}

/// The policy, and how many steps it had taken after each turn.
struct Counted {
    inner: Parm,
    steps: Vec<(Instant, u64)>,
}

impl Policy for Counted {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        self.inner.decide(view, decisions);
        self.steps.push((view.now, self.inner.steps()));
    }

    fn adjusts(&self) -> bool {
        self.inner.adjusts()
    }
}

/// The first job has all 8 nodes and keeps them. Those that arrive while it runs cannot start, so the
/// program stays as it is and is not solved again.
#[test]
fn a_program_that_is_the_same_is_not_solved_again() {
    let machine = Machine::of_processors(8).unwrap();
    let jobs = (1..=50).map(|number| {
        let time = Span::from_secs(1000);
        (Job::new(number, Instant::from_secs(number as u32 / 10), 8, time), time)
    });
    let workload = Workload::new("full", jobs);
    let kind = Kind { application: Application::JACOBI2D, parallelism: 3.0, variation: 0.0 };
    let kinds = vec![kind; workload.jobs().len()];
    let model = Elastic::of_kinds(&machine, NodeCaps::of(&machine, 2), &kinds, workload.jobs());
    let spec = ParmSpec { flexibility: Flexibility::Moldable, ..ParmSpec::default() };
    let mut policy = Counted { inner: Parm::with(spec), steps: Vec::new() };
    Simulation::new(&machine, &workload).model(&model).events(Events::Each).run(&mut policy);
    // The first two turns are the first arrival, and the second, beside a job that now runs.
    let before_any_end = policy.steps.iter().filter(|(at, _)| *at < Instant::from_secs(10));
    let steps: Vec<u64> = before_any_end.map(|(_, steps)| *steps).collect();
    assert_eq!(steps.len(), 50);
    assert!(
        steps[0] > 0 && steps[1..].iter().all(|steps| *steps == policy.steps[1].1),
        "{steps:?}"
    );
}
