//! The waiting jobs once more, apart by how many processors they ask of a node: where jobs share nodes, so many nodes of a machine
//! can be free for some and none for others.
//!
//! Each width has a [`Queue`] of its own, of which the places are counted among its own jobs, and the sizes in nodes.

use super::{Fit, Footprint, Queue, SizeClasses};
use crate::units::JobId;

/// Waiting jobs by their widths.
#[derive(Clone)]
pub(crate) struct Widths {
    /// By job; nothing where no node can hold it.
    of_jobs: Vec<Option<Entry>>,
    widths: Vec<OfWidth>,
}

/// A job among those of its width.
#[derive(Clone, Copy)]
struct Entry {
    width: u32,
    place: JobId,
    nodes: u32,
}

#[derive(Clone)]
struct OfWidth {
    queue: Queue,
    /// All its jobs, whether or not they wait.
    jobs: Vec<JobId>,
}

impl Widths {
    /// Nobody waits yet. Of each job: its width and its nodes.
    pub(super) fn new(of_jobs: &[Option<(u32, u32)>], knows_power: bool) -> Self {
        let classes = SizeClasses::of_sizes(of_jobs.iter().flatten().map(|job| job.1));
        let many = of_jobs.iter().flatten().map(|job| job.0 as usize + 1).max().unwrap_or(0);
        let mut jobs = vec![Vec::new(); many];
        let entries = (0..).map(JobId).zip(of_jobs).map(|(job, known)| {
            let (width, nodes) = (*known)?;
            let jobs = &mut jobs[width as usize];
            jobs.push(job);
            Some(Entry { width, place: JobId(jobs.len() as u32 - 1), nodes })
        });
        let of_jobs = entries.collect();
        let widths = jobs.into_iter().map(|jobs| {
            let queue = Queue::new(classes.clone(), jobs.len());
            OfWidth { queue: if knows_power { queue.that_knows_power() } else { queue }, jobs }
        });
        Widths { of_jobs, widths: widths.collect() }
    }

    fn entry(&self, job: JobId) -> Option<Entry> {
        self.of_jobs.get(job.index()).copied().flatten()
    }

    pub(super) fn insert(&mut self, job: JobId, footprint: &Footprint) {
        if let Some(Entry { width, place, nodes }) = self.entry(job) {
            let footprint = Footprint { nodes, ..*footprint };
            self.widths[width as usize].queue.insert(place, &footprint);
        }
    }

    pub(super) fn remove(&mut self, job: JobId) {
        if let Some(Entry { width, place, .. }) = self.entry(job) {
            self.widths[width as usize].queue.remove(place);
        }
    }

    /// Whether no job of a width waits.
    #[inline]
    pub(crate) fn is_empty(&self, width: u32) -> bool {
        self.widths.get(width as usize).is_none_or(|of_width| of_width.queue.is_empty())
    }

    /// The first waiting job of a width after this one that may fit, if sizes are counted in nodes.
    pub(crate) fn next_fit(&self, width: u32, after: JobId, fit: &Fit) -> Option<JobId> {
        let OfWidth { queue, jobs } = self.widths.get(width as usize)?;
        let place = match self.entry(after).filter(|entry| entry.width == width) {
            Some(entry) => entry.place.0 + 1,
            None => jobs.partition_point(|job| *job <= after) as u32,
        };
        let found = queue.next_fit(JobId(place), fit)?;
        jobs.get(found.index()).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::{Span, Watts};

    proptest! {
        /// Each width has its own jobs, and the next one that fits is that of a scan.
        #[test]
        fn widths_agree_with_a_scan(
            jobs in prop::collection::vec((prop::option::weighted(0.9, (0u32..3, 1u32..50)), 0u32..100, any::<bool>()), 1..200),
            asked in prop::collection::vec((0u32..3, 0u32..200, 0u32..50, 0u32..50, 0u32..100), 1..20),
        ) {
            let of_jobs: Vec<Option<(u32, u32)>> = jobs.iter().map(|job| job.0).collect();
            let mut widths = Widths::new(&of_jobs, false);
            for (job, (known, seconds, _)) in (0..).map(JobId).zip(&jobs) {
                let nodes = known.map_or(1, |known| known.1 * 16);
                let time = Span::from_secs(*seconds);
                widths.insert(job, &Footprint { nodes, time, power: Watts::ZERO });
            }
            for (job, (.., leaves)) in (0..).map(JobId).zip(&jobs) {
                if *leaves {
                    widths.remove(job);
                }
            }
            for (width, after, free, extra, window) in asked {
                let fit = Fit { extra, window: Span::from_secs(window), ..Fit::nodes(free) };
                let waits = |job: &(Option<(u32, u32)>, u32, bool)| {
                    job.0.filter(|known| known.0 == width && !job.2).map(|known| (known.1, job.1))
                };
                let fits = |(nodes, seconds): (u32, u32)| {
                    nodes <= free && (seconds <= window || nodes <= extra)
                };
                let mut later = (0..).zip(&jobs).skip(after as usize + 1);
                let expected = later.find(|(_, job)| waits(job).is_some_and(fits));
                let expected = expected.map(|(job, _)| JobId(job));
                prop_assert_eq!(widths.next_fit(width, JobId(after), &fit), expected);
                prop_assert_eq!(widths.is_empty(width), !jobs.iter().any(|job| waits(job).is_some()));
            }
        }
    }
}
