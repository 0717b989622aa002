//! Which of the waiting jobs enter the program of a turn.
//!
//! What a job gains for what it takes is most on its fewest nodes, since nobody speeds up more than in
//! proportion. So with α = 0, where all weigh the same, the program serves jobs that can do with little
//! first, and of many such jobs only as many as there is room for. The others only cost time. With
//! α above zero old and long jobs weigh more, and a job enters by its weight for what it takes.
//!
//! Two rules keep the window from changing who is ever served. Jobs that could not start however the
//! running ones shrink do not count: they cannot fill the window and keep others out of it. And the
//! smallest jobs that fill the room once are always in it: nobody waits beside nodes and watts that
//! would do for it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::num::NonZeroU32;
use std::sync::Arc;

use super::jobs::Options;
use super::worth::Worth;
use crate::policy::View;
use crate::units::{JobId, Watts};

/// Nodes and power that are free, or that running jobs can free without being stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) nodes: u64,
    pub(super) power: Watts,
}

/// The waiting jobs, those that can do with least first. Of jobs that take the same, those come first
/// that gain most by a watt, and of these the one that arrived first.
#[derive(Default)]
pub(super) struct Waiting {
    jobs: BTreeSet<(u32, Reverse<u32>, JobId)>,
    /// The same by rank, the highest first, where jobs keep their order as long as they wait; each with its fewest nodes.
    by_rank: BTreeSet<(Reverse<i64>, JobId, u32)>,
}

/// Ranks that keep their order, in steps of 2⁻³² of their binary logarithm. Those that are no further apart than this may be
/// the other way round when they are worked out at the present instant.
const CLOSE: i64 = 8;

/// What has entered so far takes so much, if each job is at its smallest.
#[derive(Default)]
struct Sum {
    nodes: u64,
    milliwatts: u64,
}

impl Sum {
    fn add(&mut self, options: &Options) {
        let least = options.least();
        self.nodes += u64::from(least.nodes);
        self.milliwatts += least.power.milliwatts();
    }

    /// Whether this is so many times the room, in nodes or in power.
    fn fills(&self, room: &Room, times: u64) -> bool {
        self.nodes >= times.saturating_mul(room.nodes)
            || self.milliwatts >= times.saturating_mul(room.power.milliwatts())
    }
}

impl Room {
    pub(super) fn has(&self, options: &Options) -> bool {
        let least = options.least();
        u64::from(least.nodes) <= self.nodes && least.power <= self.power
    }
}

/// A job's place among those that wait.
fn place(job: JobId, options: &Options) -> (u32, Reverse<u32>, JobId) {
    // In thousandths: what differs by less is rounding of times, and the first to arrive is first.
    let thousandths = (options.best_per_watt * 1000.0).round() as u32;
    (options.least().nodes, Reverse(thousandths), job)
}

/// A job's place among those that wait, by its rank.
fn ranked(
    view: &View<'_>,
    worth: &Worth,
    job: JobId,
    options: &Options,
) -> Option<(Reverse<i64>, JobId, u32)> {
    let log = worth.standing(view, job, options)? + libm::log2(rank(1.0, options));
    Some((Reverse((log * 2f64.powi(32)).round() as i64), job, options.least().nodes))
}

impl Waiting {
    pub(super) fn insert(&mut self, view: &View<'_>, worth: &Worth, job: JobId, options: &Options) {
        self.jobs.insert(place(job, options));
        self.by_rank.extend(ranked(view, worth, job, options));
    }

    pub(super) fn remove(&mut self, view: &View<'_>, worth: &Worth, job: JobId, options: &Options) {
        self.jobs.remove(&place(job, options));
        if let Some(place) = ranked(view, worth, job, options) {
            self.by_rank.remove(&place);
        }
    }

    /// The jobs that enter the program, in the order of the queue.
    pub(super) fn entering(
        &self,
        view: &View<'_>,
        all: &BTreeMap<JobId, Arc<Options>>,
        room: &Room,
        times: NonZeroU32,
        worth: &Worth,
        left_out: &BTreeSet<JobId>,
    ) -> Vec<JobId> {
        let times = u64::from(times.get());
        let mut entering = self.smallest(view, all, room, if worth.is_equal() { times } else { 1 });
        if !worth.is_equal() {
            entering.extend(self.weightiest(view, all, room, times, worth));
        }
        entering.retain(|job| !left_out.contains(job));
        entering.sort_unstable();
        entering.dedup();
        entering
    }

    /// The jobs that could start, the smallest first.
    fn within<'a>(
        &'a self,
        view: &'a View<'_>,
        all: &'a BTreeMap<JobId, Arc<Options>>,
        room: &'a Room,
    ) -> impl Iterator<Item = (JobId, &'a Options)> {
        let nodes = |place: &&(u32, Reverse<u32>, JobId)| u64::from(place.0) <= room.nodes;
        let waits = |place: &(u32, Reverse<u32>, JobId)| {
            let options = all.get(&place.2).filter(|_| view.queue.contains(place.2))?;
            room.has(options).then_some((place.2, &**options))
        };
        self.jobs.iter().take_while(nodes).filter_map(waits)
    }

    /// The smallest jobs that could start, until they fill the room so many times.
    fn smallest(
        &self,
        view: &View<'_>,
        all: &BTreeMap<JobId, Arc<Options>>,
        room: &Room,
        times: u64,
    ) -> Vec<JobId> {
        let mut sum = Sum::default();
        let first = self.within(view, all, room).take_while(|(_, options)| {
            let has_room = !sum.fills(room, times);
            sum.add(options);
            has_room
        });
        first.map(|(job, _)| job).collect()
    }

    /// Of the jobs that could start, those of the highest ranks that fill the room so many times, and those whose ranks
    /// are so close to them that only the present instant says which is higher.
    fn highest<'a>(
        &'a self,
        view: &'a View<'_>,
        all: &'a BTreeMap<JobId, Arc<Options>>,
        room: &'a Room,
        times: u64,
    ) -> impl Iterator<Item = (JobId, &'a Options)> {
        let (mut sum, mut lowest) = (Sum::default(), i64::MIN);
        let jobs = self.by_rank.iter().map_while(move |(Reverse(rank), job, nodes)| {
            if *rank < lowest {
                return None;
            }
            let may_fit = u64::from(*nodes) <= room.nodes && view.queue.contains(*job);
            let options = may_fit.then(|| all.get(job)).flatten();
            let options = options.filter(|options| room.has(options));
            if let Some(options) = options.filter(|_| lowest == i64::MIN) {
                sum.add(options);
                if sum.fills(room, times) {
                    lowest = rank.saturating_sub(CLOSE);
                }
            }
            Some(options.map(|options| (*job, &**options)))
        });
        jobs.flatten()
    }

    /// The jobs that could start with the largest weight for what they take, until they fill the room
    /// so many times.
    fn weightiest(
        &self,
        view: &View<'_>,
        all: &BTreeMap<JobId, Arc<Options>>,
        room: &Room,
        times: u64,
        worth: &Worth,
    ) -> Vec<JobId> {
        if Sum::default().fills(room, times) {
            return Vec::new();
        }
        let ranked = |(job, options): (JobId, &Options)| Ranked {
            rank: rank(worth.of_waiting(view, job, options), options),
            job,
        };
        let all_ranked = || self.within(view, all, room).map(ranked).collect();
        if self.by_rank.is_empty() || worth.is_at_its_end(view) {
            return filling(all_ranked(), all, room, times);
        }
        let highest = self.highest(view, all, room, times).map(ranked).collect();
        let entering = filling(highest, all, room, times);
        debug_assert_eq!(entering, filling(all_ranked(), all, room, times), "nobody is missed");
        entering
    }
}

/// The jobs of the highest ranks that fill the room so many times.
fn filling(
    mut ranked: BinaryHeap<Ranked>,
    all: &BTreeMap<JobId, Arc<Options>>,
    room: &Room,
    times: u64,
) -> Vec<JobId> {
    let (mut entering, mut sum) = (Vec::new(), Sum::default());
    while let Some(Ranked { job, .. }) = ranked.pop().filter(|_| !sum.fills(room, times)) {
        sum.add(&all[&job]);
        entering.push(job);
    }
    entering
}

/// What a waiting job of this weight is worth for a watt, at its best point.
fn rank(weight: f64, options: &Options) -> f64 {
    weight * options.best_per_watt / options.least().power.as_f64()
}

/// A job by its rank; of equals the one that arrived first is larger.
struct Ranked {
    rank: f64,
    job: JobId,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.total_cmp(&other.rank).then(other.job.cmp(&self.job))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}
