//! Waiting jobs in an order of their own, indexed so that a policy never scans them.
//!
//! A job stands where its key says; the key does not change while the job waits. The jobs are a sorted
//! list in leaves, and the leaves in groups. Each leaf and each group knows, for each size class, the
//! shortest time any of its jobs asks for, so that a search for somebody who fits steps over all leaves
//! and groups in which nobody does.
//!
//! As in [`Queue`](super::Queue), the index may promise too much, never too little.

use super::classes::{CLASSES, SizeClasses};
use super::code::{NOBODY, bound, code, watts};
use super::{Fit, Footprint};
use crate::units::JobId;

/// A leaf or a group is split in two when it grows past this.
const MOST: usize = 64;

/// Where a job stands: by its key, and of equal keys by submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The key: smaller ones come first.
    pub key: i64,
    /// The job.
    pub job: JobId,
}

#[derive(Clone, Copy)]
struct Entry {
    place: Place,
    nodes: i16,
    seconds: i16,
    watts: i16,
    class: usize,
}

/// For each class, the shortest time.
type Shortest = [i16; CLASSES];

/// What some jobs ask for at least.
#[derive(Clone)]
pub(super) struct Least {
    shortest: Shortest,
    watts: i16,
}

impl Least {
    pub(super) const NOBODY: Least = Least { shortest: [NOBODY; CLASSES], watts: NOBODY };

    fn add(&mut self, entry: &Entry) {
        let shortest = &mut self.shortest[entry.class];
        *shortest = entry.seconds.min(*shortest);
        self.watts = entry.watts.min(self.watts);
    }

    pub(super) fn add_all(&mut self, others: &Least) {
        for (shortest, other) in self.shortest.iter_mut().zip(&others.shortest) {
            *shortest = (*shortest).min(*other);
        }
        self.watts = self.watts.min(others.watts);
    }
}

#[derive(Clone)]
struct Leaf {
    entries: Vec<Entry>,
    least: Least,
}

#[derive(Clone)]
struct Group {
    leaves: Vec<Leaf>,
    least: Least,
}

/// Waiting jobs, ordered by their keys.
#[derive(Clone)]
pub struct Ordered {
    classes: SizeClasses,
    /// No empty group, and no empty leaf in one.
    groups: Vec<Group>,
}

/// A room in codes: what is below these fits.
pub(super) struct Limits {
    /// The ways to use the room.
    ways: Vec<Way>,
    /// For each class, what is below this fits somehow, if the job is as small as the class can be.
    by_class: Shortest,
}

/// A way to use the room, in codes: what is below these fits.
struct Way {
    free: i16,
    unreserved: i16,
    window: i16,
    /// Power, and the part of it without a reservation.
    watts: [i16; 2],
}

impl Limits {
    pub(super) fn new(ways: &[Fit], classes: &SizeClasses) -> Self {
        let ways = ways.iter().filter(|way| way.free > 0).map(|way| Way {
            free: bound(u64::from(way.free)),
            unreserved: bound(u64::from(way.free.min(way.extra))),
            window: bound(way.window.millis() / 1000),
            watts: [way.power, way.power.min(way.extra_power)].map(watts).map(bound),
        });
        let ways: Vec<Way> = ways.collect();
        let mut by_class = [0; CLASSES];
        let smallest = classes.smallest().iter().flat_map(|part| part.to_array());
        for (limit, smallest) in by_class.iter_mut().zip(smallest) {
            for Way { free, unreserved, window, .. } in &ways {
                let fits = if smallest < *unreserved { NOBODY } else { *window };
                *limit = (*limit).max(if smallest < *free { fits } else { 0 });
            }
        }
        Limits { ways, by_class }
    }

    /// Whether nobody fits.
    pub(super) fn admit_nobody(&self) -> bool {
        self.ways.is_empty()
    }

    #[inline]
    pub(super) fn may_fit_in(&self, least: &Least) -> bool {
        // All at once: a loop that ends early is slower than one that can be vectorised.
        let times = least.shortest.iter().zip(&self.by_class);
        times.fold(false, |any, (time, limit)| any | (time < limit))
            && self.ways.iter().any(|way| least.watts < way.watts[0])
    }

    #[inline]
    fn may_fit(&self, entry: &Entry) -> bool {
        self.ways.iter().any(|Way { free, unreserved, window, watts }| {
            let is_small = entry.nodes < *unreserved && entry.watts < watts[1];
            let is_short = entry.nodes < *free && entry.seconds < *window;
            is_small || is_short && entry.watts < watts[0]
        })
    }
}

impl Leaf {
    fn of(entries: Vec<Entry>) -> Self {
        let mut leaf = Leaf { entries, least: Least::NOBODY };
        leaf.sum_up();
        leaf
    }

    fn sum_up(&mut self) {
        self.least = Least::NOBODY;
        self.entries.iter().for_each(|entry| self.least.add(entry));
    }

    fn last(&self) -> Option<Place> {
        self.entries.last().map(|entry| entry.place)
    }
}

impl Group {
    fn of(leaves: Vec<Leaf>) -> Self {
        let mut group = Group { leaves, least: Least::NOBODY };
        group.sum_up();
        group
    }

    fn sum_up(&mut self) {
        self.least = Least::NOBODY;
        self.leaves.iter().for_each(|leaf| self.least.add_all(&leaf.least));
    }

    fn last(&self) -> Option<Place> {
        self.leaves.last().and_then(Leaf::last)
    }
}

impl Ordered {
    /// Nobody waits yet.
    pub fn new(classes: SizeClasses) -> Self {
        Ordered { classes, groups: Vec::new() }
    }

    /// How many jobs wait.
    pub fn len(&self) -> usize {
        let leaves = self.groups.iter().flat_map(|group| &group.leaves);
        leaves.map(|leaf| leaf.entries.len()).sum()
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The group and the leaf in which a place is, or would be put.
    fn leaf_of(&self, place: Place) -> Option<(usize, usize)> {
        let last = self.groups.len().checked_sub(1)?;
        let group = self.groups.partition_point(|group| group.last() < Some(place)).min(last);
        let leaves = &self.groups[group].leaves;
        let leaf = leaves.partition_point(|leaf| leaf.last() < Some(place));
        Some((group, leaf.min(leaves.len() - 1)))
    }

    /// Puts a job in its place. Nobody else may have the same one.
    pub fn insert(&mut self, place: Place, footprint: &Footprint) {
        let (nodes, seconds) =
            (code(u64::from(footprint.nodes)), code(footprint.time.millis() / 1000));
        let watts = code(watts(footprint.power));
        let entry = Entry { place, nodes, seconds, watts, class: self.classes.of(nodes) };
        let Some((at, within)) = self.leaf_of(place) else {
            self.groups.push(Group::of(vec![Leaf::of(vec![entry])]));
            return;
        };
        let group = &mut self.groups[at];
        let leaf = &mut group.leaves[within];
        let before = leaf.entries.partition_point(|other| other.place < place);
        debug_assert!(leaf.entries.get(before).is_none_or(|other| other.place != place));
        leaf.entries.insert(before, entry);
        leaf.least.add(&entry);
        group.least.add(&entry);
        if leaf.entries.len() > MOST {
            let upper = leaf.entries.split_off(MOST / 2);
            leaf.sum_up();
            group.leaves.insert(within + 1, Leaf::of(upper));
        }
        if group.leaves.len() > MOST {
            let upper = group.leaves.split_off(MOST / 2);
            group.sum_up();
            self.groups.insert(at + 1, Group::of(upper));
        }
    }

    /// Takes a job out; says whether it was there.
    pub fn remove(&mut self, place: Place) -> bool {
        let Some((at, within)) = self.leaf_of(place) else { return false };
        let group = &mut self.groups[at];
        let leaf = &mut group.leaves[within];
        let Ok(found) = leaf.entries.binary_search_by_key(&place, |entry| entry.place) else {
            return false;
        };
        leaf.entries.remove(found);
        match leaf.entries.is_empty() {
            true => drop(group.leaves.remove(within)),
            false => leaf.sum_up(),
        }
        match group.leaves.is_empty() {
            true => drop(self.groups.remove(at)),
            false => group.sum_up(),
        }
        true
    }

    /// The first job.
    pub fn first(&self) -> Option<Place> {
        Some(self.groups.first()?.leaves.first()?.entries.first()?.place)
    }

    /// The first job after a place, whether or not somebody stands at that.
    pub fn after(&self, place: Place) -> Option<Place> {
        self.find(Some(place), |_| true, |_| true)
    }

    /// The first job after a place that may fit the room in one of these ways; whether it does is for the
    /// caller to test.
    pub fn next_fit_of(&self, after: Place, ways: &[Fit]) -> Option<Place> {
        let limits = Limits::new(ways, &self.classes);
        if limits.admit_nobody() {
            return None;
        }
        self.next_within(after, &limits)
    }

    /// The same for a room in codes.
    #[inline]
    pub(super) fn next_within(&self, after: Place, limits: &Limits) -> Option<Place> {
        self.find(Some(after), |least| limits.may_fit_in(least), |entry| limits.may_fit(entry))
    }

    /// What its jobs ask for at least.
    pub(super) fn least(&self) -> Least {
        let mut least = Least::NOBODY;
        self.groups.iter().for_each(|group| least.add_all(&group.least));
        least
    }

    /// The jobs in order.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = Place> + '_ {
        let leaves = self.groups.iter().flat_map(|group| &group.leaves);
        leaves.flat_map(|leaf| leaf.entries.iter().map(|entry| entry.place))
    }

    #[inline]
    fn find(
        &self,
        after: Option<Place>,
        may_have: impl Fn(&Least) -> bool,
        fits: impl Fn(&Entry) -> bool,
    ) -> Option<Place> {
        let from = self.groups.partition_point(|group| group.last() <= after);
        for group in &self.groups[from..] {
            if !may_have(&group.least) {
                continue;
            }
            let from = group.leaves.partition_point(|leaf| leaf.last() <= after);
            for leaf in &group.leaves[from..] {
                if !may_have(&leaf.least) {
                    continue;
                }
                let from = leaf.entries.partition_point(|entry| Some(entry.place) <= after);
                if let Some(found) = leaf.entries[from..].iter().find(|entry| fits(entry)) {
                    return Some(found.place);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Span, Watts};
    use proptest::prelude::*;

    proptest! {
        /// The index finds exactly the job that a scan of a sorted list finds.
        #[test]
        fn the_index_agrees_with_a_scan(
            jobs in prop::collection::vec((0i64..40, 1u32..70, 0u32..100, 0u32..9, any::<bool>()), 1..400),
            asked in prop::collection::vec(((0i64..42, 0u32..400), 0u32..80, 0u32..80, 0u32..120, (0u32..400, 0u32..400)), 1..20),
        ) {
            let mut ordered = Ordered::new(SizeClasses::powers_of_two());
            let mut plain: Vec<(Place, u32, u32, u32)> = Vec::new();
            for (job, (key, nodes, seconds, each, leaves)) in (0..).map(JobId).zip(jobs) {
                let place = Place { key, job };
                let (time, power) = (Span::from_secs(seconds), Watts::from_watts(nodes * each));
                ordered.insert(place, &Footprint { nodes, time, power });
                plain.push((place, nodes, seconds, nodes * each));
                if leaves {
                    let gone = plain.remove(plain.len() / 2);
                    prop_assert!(ordered.remove(gone.0));
                    prop_assert!(!ordered.remove(gone.0));
                }
            }
            plain.sort_unstable();
            prop_assert_eq!(ordered.len(), plain.len());
            prop_assert_eq!(ordered.is_empty(), plain.is_empty());
            prop_assert_eq!(ordered.first(), plain.first().map(|job| job.0));
            prop_assert_eq!(ordered.iter().collect::<Vec<_>>(), plain.iter().map(|job| job.0).collect::<Vec<_>>());
            for ((key, job), free, extra, window, (most, unreserved)) in asked {
                let after = Place { key, job: JobId(job) };
                let (power, extra_power) = (Watts::from_watts(most), Watts::from_watts(unreserved));
                let fit = Fit { free, extra, window: Span::from_secs(window), power, extra_power };
                let fits = |nodes: u32, seconds: u32, watts: u32| {
                    let is_small = nodes <= extra && watts <= unreserved;
                    nodes <= free && watts <= most && (seconds <= window || is_small)
                };
                let expected = plain.iter().find(|(place, nodes, seconds, watts)| {
                    *place > after && fits(*nodes, *seconds, *watts)
                });
                prop_assert_eq!(ordered.next_fit_of(after, &[fit]), expected.map(|job| job.0));
                let next = plain.iter().find(|job| job.0 > after).map(|job| job.0);
                prop_assert_eq!(ordered.after(after), next);
            }
        }
    }
}
