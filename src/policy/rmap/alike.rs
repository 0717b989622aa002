//! Waiting jobs that ask for the same.
//!
//! What a job may do depends on its application, the nodes and the time it asks for, its terms, and
//! the room.
//! Jobs that are alike in these get the same answer, so it is worked out once for all of them: a
//! pass costs what differs in the queue, not what waits.

use std::collections::{BTreeSet, HashMap};

use crate::job::{ApplicationId, Job, Terms};
use crate::policy::View;
use crate::units::{JobId, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Request {
    application: Option<ApplicationId>,
    nodes: u32,
    requested: Span,
    terms: Terms,
}

impl Request {
    fn of(job: &Job) -> Self {
        let Job { application, nodes, requested, terms, .. } = *job;
        Request { application, nodes, requested, terms }
    }
}

/// The waiting jobs, by what they ask for.
#[derive(Default)]
pub(super) struct Alike {
    groups: Vec<Group>,
    /// Where the group of a request is.
    places: HashMap<Request, usize>,
    /// The group of each job that ever waited, by its place.
    group_of: Vec<usize>,
}

struct Group {
    jobs: BTreeSet<JobId>,
    /// Whether it was refused in this turn. There is only less room as a turn goes on.
    is_refused: bool,
}

impl Alike {
    /// A turn begins: jobs may have arrived, and there is room again.
    pub(super) fn begin(&mut self, view: &View<'_>) {
        for group in &mut self.groups {
            group.is_refused = false;
        }
        for &job in view.changes.arrived {
            let request = Request::of(view.job(job));
            let place = *self.places.entry(request).or_insert_with(|| {
                self.groups.push(Group { jobs: BTreeSet::new(), is_refused: false });
                self.groups.len() - 1
            });
            self.groups[place].jobs.insert(job);
            if job.index() >= self.group_of.len() {
                self.group_of.resize(job.index() + 1, 0);
            }
            self.group_of[job.index()] = place;
        }
    }

    pub(super) fn remove(&mut self, job: JobId) {
        let group = self.group_of.get(job.index()).and_then(|place| self.groups.get_mut(*place));
        if let Some(group) = group {
            group.jobs.remove(&job);
        }
    }

    /// The first job at or after a place for which `accepts` holds.
    pub(super) fn first(
        &mut self,
        from: JobId,
        mut accepts: impl FnMut(JobId) -> bool,
    ) -> Option<JobId> {
        let mut first: Option<JobId> = None;
        for group in self.groups.iter_mut().filter(|group| !group.is_refused) {
            let Some(&job) = group.jobs.range(from..).next() else { continue };
            if first.is_some_and(|earlier| earlier < job) {
                continue;
            }
            if accepts(job) {
                first = Some(job);
            } else {
                group.is_refused = true;
            }
        }
        first
    }
}
