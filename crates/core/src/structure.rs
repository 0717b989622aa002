//! What ties jobs to each other, and what holds them back before they may start at all.
//!
//! A job becomes eligible when its dependencies are fulfilled, its begin time has come and nobody holds it. Until then no
//! policy hears of it. Most logs say nothing of this: it is a table beside the jobs, and empty for them.

use std::collections::HashMap;
use std::ops::Range;

use crate::job::{Job, UserId};
use crate::units::{Instant, JobId, Span};

mod dependency;

pub use dependency::{Dependency, DependencyError, Needs, On, When};

/// What is known of a job beside what it asks for. Most jobs have nothing of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Structure {
    /// What has to happen to other jobs first.
    pub needs: Needs,
    /// The array that it is a task of.
    pub array: Option<ArrayTask>,
    /// It does not start before.
    pub begin: Option<Instant>,
    /// It was held from then until then; an end of [`Instant::NEVER`] is never.
    pub holds: Vec<Range<Instant>>,
    /// When it became eligible, by its log. It counts as a begin time where jobs that it depends on are not in the workload.
    pub eligible: Option<Instant>,
    /// The reservation that it is to run in, by the log's numbers.
    pub reservation: Option<u32>,
    /// What it is called, by a number that all jobs of the name have: what `singleton` compares.
    pub name: Option<u32>,
    /// By so much its priority is lower, in points.
    pub nice: i32,
    /// Whether it failed when it really ran: whoever needs it to end well waits in vain.
    pub failed: bool,
}

/// A task of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArrayTask {
    /// The number of the array in the log.
    pub array: u64,
    /// Which task of it.
    pub task: u32,
    /// How many tasks may run at a time, if somebody said so.
    pub at_most: Option<u32>,
}

impl Structure {
    /// Whether there is nothing to be said.
    pub fn is_empty(&self) -> bool {
        *self == Structure::default()
    }

    /// Whether it may become eligible later than it is submitted.
    fn holds_back(&self) -> bool {
        !self.needs.is_empty() || self.begin.is_some() || !self.holds.is_empty()
    }
}

/// The structure of all jobs of a workload.
#[derive(Clone, Debug, Default)]
pub struct Structures {
    /// By job: a place in `known` and 1; 0 if nothing is known. Empty if nothing is known of any.
    of_jobs: Vec<u32>,
    known: Vec<Structure>,
}

impl Structures {
    /// What is known of each of these jobs.
    pub fn new(jobs: &[Job], mut known: impl FnMut(&Job) -> Option<Structure>) -> Self {
        let mut all = Structures::default();
        let mut of_jobs = Vec::with_capacity(jobs.len());
        for job in jobs {
            let structure = known(job).filter(|structure| !structure.is_empty());
            of_jobs.push(structure.map_or(0, |structure| {
                all.known.push(structure);
                all.known.len() as u32
            }));
        }
        if !all.known.is_empty() {
            all.of_jobs = of_jobs;
        }
        all
    }

    /// Whether nothing is known of any job.
    pub fn is_empty(&self) -> bool {
        self.of_jobs.is_empty()
    }

    /// What is known of a job.
    pub fn of(&self, job: JobId) -> Option<&Structure> {
        let place = self.of_jobs.get(job.index())?.checked_sub(1)?;
        self.known.get(place as usize)
    }

    /// Whether there are arrays of which only some tasks may run at a time.
    pub fn limit_arrays(&self) -> bool {
        self.known.iter().any(|known| known.array.is_some_and(|array| array.at_most.is_some()))
    }

    /// Keeps those of some jobs, by their places.
    pub(crate) fn retain(&mut self, mut is_kept: impl FnMut(usize) -> bool) {
        let mut place = 0;
        self.of_jobs.retain(|_| {
            place += 1;
            is_kept(place - 1)
        });
        if self.of_jobs.iter().all(|place| *place == 0) {
            *self = Structures::default();
        }
    }

    /// Who waits for whom, by places of these jobs; nothing if nobody is held back.
    pub(crate) fn ties(&self, jobs: &[Job]) -> Option<Ties> {
        let is_held = self.known.iter().any(Structure::holds_back);
        (is_held && !self.is_empty()).then(|| Ties::of(self, jobs))
    }
}

/// What has to happen before a job is eligible, by places of jobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ties {
    /// By job that is held back.
    pub(crate) of_jobs: HashMap<JobId, Held>,
    /// Jobs of one user and one name, of which those that are singletons run alone.
    pub(crate) names: HashMap<JobId, (Option<UserId>, u32)>,
    /// Jobs that failed when they really ran.
    pub(crate) failed: Vec<JobId>,
}

/// What holds a job back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// Not before.
    pub(crate) begin: Option<Instant>,
    /// Not in between, in order.
    pub(crate) holds: Vec<Range<Instant>>,
    /// What has to happen to other jobs.
    pub(crate) needs: Vec<Need>,
    /// Whether one of them is enough.
    pub(crate) any: bool,
}

/// One thing that has to happen to other jobs.
#[derive(Clone, Debug)]
pub(crate) enum Need {
    /// To all of these.
    Jobs { when: When, delay: Span, jobs: Vec<JobId> },
    /// No job of its user and name is before it.
    Alone,
}

impl Ties {
    fn of(structures: &Structures, jobs: &[Job]) -> Self {
        let ids = || (0..jobs.len() as u32).map(JobId);
        let mut by_number: HashMap<u64, JobId> = HashMap::new();
        let mut by_array: HashMap<u64, Vec<(u32, JobId)>> = HashMap::new();
        for (id, job) in ids().zip(jobs) {
            by_number.entry(job.number).or_insert(id);
            if let Some(array) = structures.of(id).and_then(|known| known.array) {
                by_array.entry(array.array).or_default().push((array.task, id));
            }
        }
        let find = |on: On| -> Vec<JobId> {
            let tasks = by_array.get(&on.number).map(Vec::as_slice).unwrap_or_default();
            match on.task {
                Some(task) => {
                    tasks.iter().filter(|known| known.0 == task).map(|known| known.1).collect()
                }
                None if tasks.is_empty() => {
                    by_number.get(&on.number).copied().into_iter().collect()
                }
                None => tasks.iter().map(|known| known.1).collect(),
            }
        };
        let mut ties = Ties::default();
        let mut are_singletons = false;
        for id in ids() {
            let Some(known) = structures.of(id) else { continue };
            if known.failed {
                ties.failed.push(id);
            }
            if !known.holds_back() {
                continue;
            }
            let mut begin = known.begin;
            let mut needs = Vec::new();
            let mut is_unknown = false;
            for dependency in known.needs.list() {
                let (when, delay, mut on) = match *dependency {
                    Dependency::Singleton => {
                        are_singletons = true;
                        needs.push(Need::Alone);
                        continue;
                    }
                    Dependency::After { when, delay, on } => (when, delay, on),
                };
                if let (When::Corresponding, Some(array)) = (when, known.array) {
                    on.task = Some(array.task);
                }
                let mut on = find(on);
                on.retain(|other| *other != id);
                match on.is_empty() {
                    // They were before the first job of the workload, or were left out of it.
                    true => is_unknown = true,
                    false => needs.push(Need::Jobs { when, delay, jobs: on }),
                }
            }
            if is_unknown {
                begin = begin.max(known.eligible);
                if known.needs.is_any() {
                    // It may have been that one.
                    needs.clear();
                }
            }
            let mut holds = known.holds.clone();
            holds.sort_unstable_by_key(|hold| (hold.start, hold.end));
            ties.of_jobs.insert(id, Held { begin, holds, needs, any: known.needs.is_any() });
        }
        if are_singletons {
            let named = ids().filter_map(|id| {
                let name = structures.of(id)?.name?;
                Some((id, (jobs[id.index()].user, name)))
            });
            ties.names = named.collect();
        }
        ties
    }
}
