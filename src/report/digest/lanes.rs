//! Lanes for a picture of the schedule.
//!
//! Most policies count nodes and do not say which. For a picture each job needs a place: it gets the
//! first lanes in a row that are free, or, where there is no such row, the largest rows there are, until it
//! has enough. A job that gets more nodes keeps its lanes, and one that gives some back gives its last.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::stretches::Stretch;
use crate::units::{Instant, JobId};

/// A rectangle: a job on some lanes in a row for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bar {
    pub(super) job: JobId,
    pub(super) from: Instant,
    pub(super) until: Instant,
    pub(super) lane: u32,
    pub(super) lanes: u32,
}

/// Lanes in a row, and since when somebody has them.
#[derive(Clone, Copy, Debug)]
struct Held {
    lane: u32,
    lanes: u32,
    since: Instant,
}

/// Who has which lanes, while time goes by. What does not fit is left out; on the machine that the jobs ran on
/// everything fits.
pub(super) struct Lanes {
    free: Free,
    /// Stretches that have begun, by when they end, and the lanes they have.
    begun: BTreeMap<(Instant, JobId), (Stretch, Vec<Held>)>,
    /// What jobs keep from one stretch to the next, which begins at the same instant.
    kept: HashMap<JobId, Vec<Held>>,
}

impl Lanes {
    pub(super) fn new(nodes: u32) -> Self {
        Lanes { free: Free::all(nodes), begun: BTreeMap::new(), kept: HashMap::new() }
    }

    /// When the next stretch ends.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.begun.first_key_value().map(|((until, _), _)| *until)
    }

    /// Gives a stretch its lanes. At one instant lanes are first given back, then taken.
    pub(super) fn begin(&mut self, stretch: Stretch) {
        let mut held = match self.kept.is_empty() {
            true => Vec::new(),
            false => self.kept.remove(&stretch.job).unwrap_or_default(),
        };
        let have = total(&held);
        if have < stretch.nodes {
            self.free.take(stretch.nodes - have, |lane, lanes| {
                held.push(Held { lane, lanes, since: stretch.from });
            });
        }
        self.begun.insert((stretch.until, stretch.job), (stretch, held));
    }

    /// Takes back the lanes of the stretch that ends next, but for those that its job goes on with, and hands on
    /// the rectangles that are complete with that. Says how many nodes the stretch had.
    pub(super) fn end(&mut self, mut drawn: impl FnMut(Bar)) -> u32 {
        let Some((_, (stretch, mut held))) = self.begun.pop_first() else { return 0 };
        let mut have = total(&held);
        while have > stretch.then
            && let Some(last) = held.last_mut()
        {
            let given = last.lanes.min(have - stretch.then);
            let bar = Bar {
                job: stretch.job,
                from: last.since,
                until: stretch.until,
                lane: last.lane + last.lanes - given,
                lanes: given,
            };
            self.free.give(bar.lane, bar.lanes);
            drawn(bar);
            last.lanes -= given;
            have -= given;
            if last.lanes == 0 {
                held.pop();
            }
        }
        if !held.is_empty() {
            self.kept.insert(stretch.job, held);
        }
        stretch.nodes
    }
}

fn total(held: &[Held]) -> u32 {
    held.iter().map(|held| held.lanes).sum()
}

/// The lanes nobody has, as rows: the first lane of each, and how many there are. There are never many, and they
/// are looked through from the first on, so a plain list is the quickest.
struct Free(Vec<(u32, u32)>);

impl Free {
    fn all(lanes: u32) -> Self {
        Free(Vec::from_iter((lanes > 0).then_some((0, lanes))))
    }

    /// Takes so many lanes, or as many as there are, in as few rows as is simple.
    fn take(&mut self, lanes: u32, mut taken: impl FnMut(u32, u32)) {
        let mut wanted = lanes;
        while wanted > 0 {
            let rows = || self.0.iter().enumerate();
            let long_enough = self.0.iter().position(|row| row.1 >= wanted);
            let longest = || rows().max_by_key(|(_, row)| (row.1, Reverse(row.0)));
            let Some(place) = long_enough.or_else(|| Some(longest()?.0)) else { break };
            let (lane, length) = self.0[place];
            let part = length.min(wanted);
            match part < length {
                true => self.0[place] = (lane + part, length - part),
                false => drop(self.0.remove(place)),
            }
            taken(lane, part);
            wanted -= part;
        }
    }

    fn give(&mut self, lane: u32, lanes: u32) {
        let place = self.0.partition_point(|row| row.0 < lane);
        let joins_next = self.0.get(place).is_some_and(|next| next.0 == lane + lanes);
        let joins_last = place > 0 && self.0[place - 1].0 + self.0[place - 1].1 == lane;
        match (joins_last, joins_next) {
            (true, true) => self.0[place - 1].1 += lanes + self.0.remove(place).1,
            (true, false) => self.0[place - 1].1 += lanes,
            (false, true) => self.0[place] = (lane, lanes + self.0[place].1),
            (false, false) => self.0.insert(place, (lane, lanes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stretch(job: u32, from: u32, until: u32, nodes: u32) -> Stretch {
        let (from, until) = (Instant::from_secs(from), Instant::from_secs(until));
        Stretch { from, until, job: JobId(job), nodes, then: 0 }
    }

    /// The rectangles of some stretches by job and time, on so many lanes.
    fn lanes(stretches: &[Stretch], nodes: u32) -> Vec<Bar> {
        let mut stretches = stretches.to_vec();
        stretches.sort_unstable_by_key(|stretch| (stretch.from, stretch.job));
        let (mut lanes, mut bars) = (Lanes::new(nodes), Vec::new());
        for stretch in stretches {
            while lanes.next_end().is_some_and(|end| end <= stretch.from) {
                lanes.end(|bar| bars.push(bar));
            }
            lanes.begin(stretch);
        }
        while lanes.next_end().is_some() {
            lanes.end(|bar| bars.push(bar));
        }
        bars.sort_unstable();
        bars
    }

    fn bar(job: u32, from: u32, until: u32, lane: u32, lanes: u32) -> Bar {
        let Stretch { job, from, until, .. } = stretch(job, from, until, 0);
        Bar { job, from, until, lane, lanes }
    }

    /// Four lanes. Jobs 0, 1 and 2 have one, two and one of them; when 0 and 2 are gone, 3 needs two
    /// and there are no two in a row. Job 4 starts at the instant at which 1 ends.
    #[test]
    fn jobs_are_split_only_where_they_must() {
        let stretches = [
            stretch(0, 0, 5, 1),
            stretch(1, 0, 9, 2),
            stretch(2, 0, 5, 1),
            stretch(3, 5, 20, 2),
            stretch(4, 9, 12, 2),
        ];
        let seen = lanes(&stretches, 4);
        let expected = [
            bar(0, 0, 5, 0, 1),
            bar(1, 0, 9, 1, 2),
            bar(2, 0, 5, 3, 1),
            bar(3, 5, 20, 0, 1),
            bar(3, 5, 20, 3, 1),
            bar(4, 9, 12, 1, 2),
        ];
        assert_eq!(seen, expected);
    }

    /// Job 0 goes from three lanes to one and back to two; job 1 takes a lane in between.
    #[test]
    fn a_job_that_changes_keeps_what_it_can() {
        let stretches = [
            Stretch { then: 1, ..stretch(0, 0, 10, 3) },
            Stretch { then: 2, ..stretch(0, 10, 20, 1) },
            stretch(0, 20, 30, 2),
            stretch(1, 10, 30, 1),
        ];
        let seen = lanes(&stretches, 3);
        let expected =
            [bar(0, 0, 10, 1, 2), bar(0, 0, 30, 0, 1), bar(0, 20, 30, 2, 1), bar(1, 10, 30, 1, 1)];
        assert_eq!(seen, expected);
    }

    proptest! {
        /// Whatever fits gets all its nodes, and no lane has two jobs at once.
        #[test]
        fn no_lane_is_given_twice(
            jobs in prop::collection::vec((0u32..60, 1u32..20, 1u32..7), 1..40),
            room in 0u32..8,
        ) {
            let stretches: Vec<Stretch> = (0..)
                .zip(&jobs)
                .map(|(job, &(from, time, nodes))| stretch(job, from, from + time, nodes))
                .collect();
            let at = |second| stretches.iter().filter(move |s| {
                s.from <= Instant::from_secs(second) && s.until > Instant::from_secs(second)
            });
            let most = (0..80).map(|second| at(second).map(|s| s.nodes).sum()).max().unwrap_or(0);
            let bars = lanes(&stretches, most + room);
            for second in 0..80 {
                let now = Instant::from_secs(second);
                let mut owners = vec![None; (most + room) as usize];
                for bar in bars.iter().filter(|bar| bar.from <= now && bar.until > now) {
                    for lane in bar.lane..bar.lane + bar.lanes {
                        let owner = owners[lane as usize].replace(bar.job);
                        prop_assert_eq!(owner, None, "lane {} at {}", lane, now);
                    }
                }
                for stretch in at(second) {
                    let lanes = owners.iter().filter(|owner| **owner == Some(stretch.job)).count();
                    prop_assert_eq!(lanes, stretch.nodes as usize);
                }
            }
        }
    }
}
