//! Who may pass the head of the queue where jobs share nodes: a turn looks only at jobs for which something came free.
//!
//! Jobs that ask as many processors of a node have one width. How many nodes have as many left is known for each width, and how
//! many of these the head does not need: whoever asks for more nodes than that is not looked at.

use crate::ledger::{ByNode, Seating, Taken};
use crate::policy::View;
use crate::queue::Fit;
use crate::units::{JobId, NodeId};

/// What is known of jobs by their widths.
#[derive(Clone, Debug, Default)]
pub(super) struct ByWidth {
    /// Whether everybody of a width was refused who waits behind the head, and nothing has come free since.
    refused: Vec<bool>,
    /// By group of nodes.
    reach: Vec<Reach>,
    /// The next job of each width that is looked at in this turn.
    next: Vec<(JobId, u32)>,
    /// Of these, whose turn it is.
    current: Option<usize>,
}

/// How many nodes of a group are at each level: for jobs that are gone by the time of the promise, and for those that stay.
#[derive(Clone, Debug, Default)]
struct Reach {
    going: Vec<u32>,
    staying: Vec<u32>,
    is_known: bool,
    is_staying_known: bool,
}

/// What jobs take in this turn, and what the head leaves of its nodes.
#[derive(Clone, Copy)]
pub(super) struct Claims<'a> {
    pub(super) seating: &'a Seating,
    pub(super) taken: &'a Taken,
    pub(super) kept: &'a ByNode,
    pub(super) kept_nodes: &'a [NodeId],
}

impl Claims<'_> {
    fn processors(&self, node: NodeId) -> u32 {
        self.taken.left(node, self.seating.free(node)).processors
    }
}

impl ByWidth {
    /// Whatever was refused may be there.
    pub(super) fn forget(&mut self) {
        self.refused.clear();
    }

    /// Something came free of the nodes of a kind.
    pub(super) fn free(&mut self, seating: &Seating, kind: u16) {
        for (width, refused) in seating.seats().widths().iter().zip(&mut self.refused) {
            *refused &= width.kind != kind;
        }
    }

    /// A turn begins, in which nobody has taken anything yet.
    pub(super) fn begin(&mut self, groups: usize) {
        self.reach.resize_with(groups, Reach::default);
        for reach in &mut self.reach {
            (reach.is_known, reach.is_staying_known) = (false, false);
        }
    }

    /// The head needs other nodes.
    pub(super) fn promise(&mut self) {
        self.reach.iter_mut().for_each(|reach| reach.is_staying_known = false);
    }

    /// A job takes so many processors of each of these nodes, and `stays` beyond the time of the promise or not; nothing of that is
    /// among the claims yet.
    pub(super) fn take(
        &mut self,
        claims: Claims<'_>,
        nodes: &[NodeId],
        processors: u32,
        stays: bool,
    ) {
        if self.reach.iter().all(|reach| !reach.is_known) {
            return;
        }
        for node in nodes {
            let group = claims.seating.group_of(*node);
            let reach = &mut self.reach[usize::from(group)];
            if !reach.is_known {
                continue;
            }
            let levels = claims.seating.levels(group);
            let free = claims.processors(*node);
            let left = free - processors;
            let move_one = |counts: &mut [u32], from: u32, to: u32| {
                counts[levels.level(from)] -= 1;
                counts[levels.level(to)] += 1;
            };
            move_one(&mut reach.going, free, left);
            if reach.is_staying_known {
                let kept = claims.kept.get(*node).map_or(u32::MAX, |kept| kept.processors);
                let kept_then = if stays { kept.saturating_sub(processors) } else { kept };
                move_one(&mut reach.staying, free.min(kept), left.min(kept_then));
            }
        }
    }

    fn going(&mut self, claims: Claims<'_>, group: u16) -> &mut Reach {
        let reach = &mut self.reach[usize::from(group)];
        if !reach.is_known {
            let levels = claims.seating.levels(group);
            reach.going.clear();
            reach.going.extend(levels.counts());
            for node in claims.taken.nodes().iter().filter(|node| levels.has(**node)) {
                let free = claims.seating.free(*node).processors;
                reach.going[levels.level(free)] -= 1;
                reach.going[levels.level(claims.processors(*node))] += 1;
            }
            (reach.is_known, reach.is_staying_known) = (true, false);
        }
        reach
    }

    fn staying(&mut self, claims: Claims<'_>, group: u16) -> &Reach {
        let reach = self.going(claims, group);
        if !reach.is_staying_known {
            reach.is_staying_known = true;
            reach.staying.clone_from(&reach.going);
            let levels = claims.seating.levels(group);
            for node in claims.kept_nodes.iter().filter(|node| levels.has(**node)) {
                let free = claims.processors(*node);
                let level = levels.level(free);
                // Most of them are busy as yet, so that nobody may have them, anyway.
                if let Some(kept) = claims.kept.get(*node).filter(|_| level > 0) {
                    reach.staying[level] -= 1;
                    reach.staying[levels.level(free.min(kept.processors))] += 1;
                }
            }
        }
        reach
    }

    /// The first job of a width after this one that may fit.
    fn find(
        &mut self,
        view: &View<'_>,
        claims: Claims<'_>,
        at: u32,
        after: JobId,
        fit: &Fit,
    ) -> Option<JobId> {
        let (waiting, seats) = (view.queue.widths()?, claims.seating.seats());
        let width = &seats.widths()[at as usize];
        let level = |group: u16| claims.seating.levels(group).level(width.processors);
        let nodes = |processors: u32| processors / width.processors.max(1);
        let mut going = 0;
        for group in seats.groups_of(width) {
            going += self.going(claims, *group).going[level(*group)..].iter().sum::<u32>();
        }
        let free = going.min(nodes(fit.free));
        let fit = Fit { free, extra: free.min(nodes(fit.extra)), ..*fit };
        let found = waiting.next_fit(at, after, &fit)?;
        // What the head leaves is asked for only if it matters.
        let mut staying = 0;
        for group in seats.groups_of(width) {
            staying += self.staying(claims, *group).staying[level(*group)..].iter().sum::<u32>();
        }
        match staying >= fit.extra {
            true => Some(found),
            false => waiting.next_fit(at, after, &Fit { extra: staying, ..fit }),
        }
    }

    /// Begins to look at those behind the head: at all of them, or only where something came free.
    pub(super) fn look(
        &mut self,
        view: &View<'_>,
        claims: Claims<'_>,
        head: JobId,
        all: bool,
        fit: &Fit,
    ) {
        let Some(waiting) = view.queue.widths() else { return };
        let widths = claims.seating.seats().widths();
        self.refused.resize(widths.len(), false);
        for job in view.changes.arrived {
            if let Some(seat) = claims.seating.seat(*job) {
                self.refused[seat.width as usize] = false;
            }
        }
        self.next.clear();
        self.current = None;
        for at in 0..widths.len() as u32 {
            let was_refused = std::mem::replace(&mut self.refused[at as usize], true);
            if (all || !was_refused) && !waiting.is_empty(at) {
                let found = self.find(view, claims, at, head, fit);
                self.next.extend(found.map(|job| (job, at)));
            }
        }
    }

    /// The next job that may fit, in the order of the queue.
    pub(super) fn next(&mut self, view: &View<'_>, claims: Claims<'_>, fit: &Fit) -> Option<JobId> {
        if let Some(current) = self.current.take() {
            let (job, at) = self.next[current];
            match self.find(view, claims, at, job, fit) {
                Some(next) => self.next[current].0 = next,
                None => drop(self.next.swap_remove(current)),
            }
        }
        let places = self.next.iter().enumerate().min_by_key(|(_, next)| next.0);
        self.current = places.map(|(place, _)| place);
        Some(self.next[self.current?].0)
    }
}
