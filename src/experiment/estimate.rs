//! How long the runs that are left will take.
//!
//! Policies differ by orders of magnitude in what a run costs, so counting runs says little. A run is
//! expected to take what runs of the same policy on the same workload took so far, under whatever
//! budgets. As long as a policy is left of which no run is done, the estimate is a lower bound.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::experiment::{Cell, Tried};
use crate::report::human_time;

/// Runs that are expected to take equally long: those of one workload on one number of nodes under
/// one policy.
type Kind = (usize, usize, usize);

fn kind(cell: &Cell) -> Kind {
    (cell.workload, cell.size, cell.policy)
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Runs that have not begun.
    left: u32,
    /// Runs that were measured, and what they took together.
    done: u32,
    took: Duration,
}

impl Known {
    fn mean(&self) -> Option<Duration> {
        (self.done > 0).then(|| self.took / self.done)
    }
}

/// What is known of the runs of an experiment. Times are since it began.
#[derive(Debug)]
pub struct Estimate {
    threads: u32,
    kinds: BTreeMap<Kind, Known>,
    underway: Vec<(Cell, Duration)>,
}

/// How long it will take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// A run of everything that is left was measured.
    About(Duration),
    /// Something is left of which nobody knows what it costs.
    AtLeast(Duration),
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, time) = match self {
            Left::About(time) => ("about", time),
            Left::AtLeast(time) => ("at least", time),
        };
        write!(f, "{word} {} left", human_time(time.as_secs_f64()))
    }
}

impl Estimate {
    /// Nothing is done yet of these runs, on this many threads.
    pub(crate) fn new<'a>(cells: impl IntoIterator<Item = &'a Cell>, threads: usize) -> Self {
        let mut kinds = BTreeMap::<Kind, Known>::new();
        for cell in cells {
            kinds.entry(kind(cell)).or_default().left += 1;
        }
        let threads = u32::try_from(threads.max(1)).unwrap_or(u32::MAX);
        Estimate { threads, kinds, underway: Vec::new() }
    }

    /// A run begins.
    pub(crate) fn begun(&mut self, cell: &Cell, now: Duration) {
        let known = self.kinds.entry(kind(cell)).or_default();
        known.left = known.left.saturating_sub(1);
        self.underway.push((*cell, now));
    }

    /// A run is done. One whose result was known says nothing of what the others take.
    pub(crate) fn done(&mut self, tried: &Tried, now: Duration) {
        let Some(place) = self.underway.iter().position(|(cell, _)| *cell == tried.cell) else {
            return;
        };
        let (cell, begun) = self.underway.swap_remove(place);
        if !tried.reused {
            let known = self.kinds.entry(kind(&cell)).or_default();
            known.done += 1;
            known.took += now.saturating_sub(begun);
        }
    }

    /// What runs of a kind took that was never measured: what others took, those on the same
    /// workload before all others.
    fn mean_of_others(&self, (workload, ..): Kind) -> Option<Duration> {
        let mean = |same_workload: bool| {
            let wanted = |kind: &Kind| !same_workload || kind.0 == workload;
            let others = self.kinds.iter().filter(|(kind, _)| wanted(kind)).map(|(_, known)| known);
            let sum = others.fold(Known::default(), |sum, known| Known {
                left: 0,
                done: sum.done + known.done,
                took: sum.took + known.took,
            });
            sum.mean()
        };
        mean(true).or_else(|| mean(false))
    }

    /// How long all that is left takes; nobody knows before the first run is done.
    pub(crate) fn left(&self, now: Duration) -> Option<Left> {
        let expected = |kind: Kind| {
            let measured = self.kinds.get(&kind).and_then(Known::mean);
            Some((measured.or_else(|| self.mean_of_others(kind))?, measured.is_some()))
        };
        let (mut all, mut longest, mut is_sure) = (Duration::ZERO, Duration::ZERO, true);
        for (&kind, known) in self.kinds.iter().filter(|(_, known)| known.left > 0) {
            let (time, is_measured) = expected(kind)?;
            all += time.saturating_mul(known.left);
            longest = longest.max(time);
            is_sure &= is_measured;
        }
        for (cell, begun) in &self.underway {
            let (time, is_measured) = expected(kind(cell))?;
            let so_far = now.saturating_sub(*begun);
            // Of what was never measured it is as likely as not that half of it is over.
            let time = if is_measured { time } else { time.max(2 * so_far) };
            let time = time.saturating_sub(so_far);
            all += time;
            longest = longest.max(time);
            is_sure &= is_measured;
        }
        let left = longest.max(all / self.threads);
        Some(if is_sure { Left::About(left) } else { Left::AtLeast(left) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::CellOutcome;

    const SECOND: Duration = Duration::from_secs(1);

    fn cell(policy: usize, budget: usize) -> Cell {
        Cell { workload: 0, size: 0, budget, policy, seed: 1 }
    }

    fn run(estimate: &mut Estimate, cell: Cell, from: u32, until: u32) {
        estimate.begun(&cell, from * SECOND);
        let outcome = CellOutcome::CannotRun(String::new());
        estimate.done(&Tried { cell, outcome, reused: false }, until * SECOND);
    }

    /// Three budgets; a policy of 1 s and one of 100 s.
    #[test]
    fn a_slow_policy_counts_as_what_it_took() {
        let cells: Vec<Cell> =
            (0..3).flat_map(|budget| [cell(0, budget), cell(1, budget)]).collect();
        let mut estimate = Estimate::new(&cells, 1);
        assert_eq!(estimate.left(Duration::ZERO), None);
        run(&mut estimate, cells[0], 0, 1);
        // Nobody knows yet what the second one takes: five more like the first, at least.
        assert_eq!(estimate.left(SECOND), Some(Left::AtLeast(5 * SECOND)));
        estimate.begun(&cells[1], SECOND);
        // It runs for 40 s already; then as long again, and two more of its kind.
        assert_eq!(estimate.left(41 * SECOND), Some(Left::AtLeast((40 + 2 + 2) * SECOND)));
        let outcome = CellOutcome::CannotRun(String::new());
        let tried = Tried { cell: cells[1], outcome, reused: false };
        estimate.done(&tried, 101 * SECOND);
        // One of six runs took a second, two took 101 s: by number of runs it would be 202 s.
        assert_eq!(estimate.left(101 * SECOND), Some(Left::About(202 * SECOND)));
        assert_eq!(estimate.left(101 * SECOND).unwrap().to_string(), "about 3.4 min left");
        run(&mut estimate, cells[2], 101, 102);
        estimate.begun(&cells[3], 102 * SECOND);
        assert_eq!(estimate.left(152 * SECOND), Some(Left::About((50 + 1 + 100) * SECOND)));
        assert_eq!(estimate.left(302 * SECOND), Some(Left::About((1 + 100) * SECOND)));
    }

    #[test]
    fn cores_share_the_work_but_not_one_run() {
        let cells: Vec<Cell> = (0..5).map(|budget| cell(0, budget)).collect();
        let mut estimate = Estimate::new(&cells, 2);
        run(&mut estimate, cells[0], 0, 10);
        assert_eq!(estimate.left(10 * SECOND), Some(Left::About(20 * SECOND)));
        let mut alone = Estimate::new(&cells[..2], 8);
        run(&mut alone, cells[0], 0, 10);
        assert_eq!(alone.left(10 * SECOND), Some(Left::About(10 * SECOND)));
    }

    #[test]
    fn what_was_known_before_says_nothing_of_the_rest() {
        let cells = [cell(0, 0), cell(0, 1)];
        let mut estimate = Estimate::new(&cells, 1);
        estimate.begun(&cells[0], Duration::ZERO);
        let outcome = CellOutcome::CannotRun(String::new());
        estimate.done(&Tried { cell: cells[0], outcome, reused: true }, Duration::ZERO);
        assert_eq!(estimate.left(Duration::ZERO), None);
    }
}
