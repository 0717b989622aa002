//! What held runs back, as far as their records say it: dependencies, begin times, holds, and arrays.
//!
//! Where the relation to other jobs is known and these are in the records, it counts. Otherwise a job is not started before it
//! became eligible, whatever the reason was.

use std::collections::{HashMap, HashSet};

use super::id::Id;
use super::name::Kind;
use super::run::{Ending, Run};
use busbar_core::structure::{ArrayTask, Dependency, Needs, On, Structure};
use busbar_core::units::Instant;

/// What a record says of what held its job back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tie {
    /// What had to happen to other jobs, by the numbers of the batch system.
    pub(super) needs: Needs,
    /// When it became eligible, in Unix time, if that was later than its submission.
    pub(super) eligible: Option<i64>,
    /// Whether somebody held it, or it was not to start before a time.
    pub(super) is_held: bool,
    /// The array that it is a task of, and which one.
    pub(super) array: Option<(u32, u32)>,
    pub(super) at_most: Option<u32>,
    pub(super) nice: i32,
}

/// The numbers of arrays begin here, where no job has its number.
const ARRAYS: u64 = 1 << 32;

/// What is known of all runs, to be looked up by the numbers of a log.
#[derive(Clone, Debug, Default)]
pub(super) struct AllTies {
    of_runs: Vec<Tie>,
    /// By the number of the batch system, the number in the log.
    numbers: HashMap<u64, u64>,
    /// Arrays and jobs on which others depend, by the numbers of the batch system.
    targets: HashSet<u64>,
    /// The same jobs, by those of the log.
    awaited: HashSet<u64>,
    arrays: HashSet<u32>,
    has_singletons: bool,
}

impl AllTies {
    /// Of runs that have not been numbered yet.
    pub(super) fn of(of_runs: Vec<Tie>) -> Self {
        let mut list = of_runs.iter().flat_map(|tie| tie.needs.list());
        let has_singletons = list.any(|need| *need == Dependency::Singleton);
        let arrays = of_runs.iter().filter_map(|tie| Some(tie.array?.0)).collect();
        AllTies { of_runs, arrays, has_singletons, ..AllTies::default() }
    }

    /// Runs get the numbers of the log.
    pub(super) fn numbered(mut self, before: &[u64], runs: &[Run]) -> Self {
        let needs = self.of_runs.iter().any(|tie| !tie.needs.is_empty());
        if needs {
            for (key, run) in before.iter().zip(runs) {
                if let Some(number) = Id(*key).number() {
                    self.numbers.entry(number.into()).or_insert(run.number());
                }
            }
            let list = self.of_runs.iter().flat_map(|tie| tie.needs.list());
            let of_jobs = list.filter_map(|need| match need {
                Dependency::After { on, .. } => Some(on.number),
                Dependency::Singleton => None,
            });
            self.targets = of_jobs.collect();
            let numbers = self.targets.iter().filter_map(|number| self.numbers.get(number));
            self.awaited = numbers.copied().collect();
        }
        self
    }

    /// Whether nothing is known of any run.
    pub(super) fn is_empty(&self) -> bool {
        self.of_runs.is_empty()
    }

    fn on(&self, on: On) -> On {
        let array = u32::try_from(on.number).ok().filter(|number| self.arrays.contains(number));
        let number = match array {
            Some(array) => ARRAYS + u64::from(array),
            None => self.numbers.get(&on.number).copied().unwrap_or(u64::MAX),
        };
        On { number, ..on }
    }

    /// What is known of a run of a log that begins at `start`.
    pub(super) fn structure(&self, run: &Run, start: i64) -> Structure {
        let tie = (run.tie as usize).checked_sub(1).and_then(|place| self.of_runs.get(place));
        let array = tie.and_then(|tie| tie.array);
        let is_target = self.awaited.contains(&run.number())
            || array.is_some_and(|(array, _)| self.targets.contains(&array.into()));
        let failed = is_target && run.ending() != Ending::Completed;
        let name = (self.has_singletons && run.job_name > 0).then_some(run.job_name);
        let reservation = run.name_of(Kind::Reservation).map(|place| place as u32 + 1);
        let nothing = Structure { failed, name, reservation, ..Structure::default() };
        let Some(tie) = tie else { return nothing };
        let list = tie.needs.list().iter().map(|need| match *need {
            Dependency::After { when, delay, on } => {
                Dependency::After { when, delay, on: self.on(on) }
            }
            Dependency::Singleton => Dependency::Singleton,
        });
        let needs = Needs::new(list.collect(), tie.needs.is_any());
        let eligible = tie.eligible.and_then(|at| u64::try_from(at - start).ok());
        let eligible = eligible.map(|at| Instant::from_millis(at.saturating_mul(1000)));
        let begin = eligible.filter(|_| needs.is_empty() || tie.is_held);
        let array = array.map(|(array, task)| ArrayTask {
            array: ARRAYS + u64::from(array),
            task,
            at_most: tie.at_most,
        });
        Structure { needs, array, begin, eligible, nice: tie.nice, ..nothing }
    }
}
