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

/// Places the stretches of all jobs on so many lanes, by job and time. What does not fit is left out; on
/// the machine that the jobs ran on everything fits.
pub(super) fn lanes(stretches: &[Stretch], nodes: u32) -> Vec<Bar> {
    // At one instant lanes are first given back, then taken.
    let mut events: Vec<(Instant, bool, u32)> = Vec::with_capacity(2 * stretches.len());
    for (index, stretch) in (0..).zip(stretches) {
        events.push((stretch.until, false, index));
        events.push((stretch.from, true, index));
    }
    events.sort_unstable();

    let mut free = Free::all(nodes);
    let mut holdings: HashMap<JobId, Vec<Held>> = HashMap::new();
    let mut bars = Vec::with_capacity(stretches.len());
    for (now, begins, index) in events {
        let stretch = &stretches[index as usize];
        let holding = holdings.entry(stretch.job).or_default();
        // What the job is to have from now on, if this is where one stretch follows another.
        let next = stretches.get(index as usize + 1);
        let next = next.filter(|next| next.job == stretch.job && next.from == stretch.until);
        let wanted = if begins { stretch.nodes } else { next.map_or(0, |next| next.nodes) };
        let mut have: u32 = holding.iter().map(|held| held.lanes).sum();
        while have > wanted
            && let Some(last) = holding.last_mut()
        {
            let given = last.lanes.min(have - wanted);
            let bar = Bar {
                job: stretch.job,
                from: last.since,
                until: now,
                lane: last.lane + last.lanes - given,
                lanes: given,
            };
            free.give(bar.lane, bar.lanes);
            bars.push(bar);
            last.lanes -= given;
            have -= given;
            if last.lanes == 0 {
                holding.pop();
            }
        }
        if begins && have < wanted {
            let taken = free.take(wanted - have);
            holding.extend(taken.map(|(lane, lanes)| Held { lane, lanes, since: now }));
        }
        if holding.is_empty() {
            holdings.remove(&stretch.job);
        }
    }
    bars.sort_unstable();
    bars
}

/// The lanes nobody has, as rows: the first lane of each, and how many there are.
struct Free(BTreeMap<u32, u32>);

impl Free {
    fn all(lanes: u32) -> Self {
        Free(BTreeMap::from_iter((lanes > 0).then_some((0, lanes))))
    }

    /// Takes so many lanes, or as many as there are, in as few rows as is simple.
    fn take(&mut self, lanes: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
        let mut taken = Vec::with_capacity(1);
        let mut wanted = lanes;
        while wanted > 0 {
            let long_enough = self.0.iter().find(|row| *row.1 >= wanted);
            let row =
                long_enough.or_else(|| self.0.iter().max_by_key(|row| (row.1, Reverse(row.0))));
            let Some((&lane, &length)) = row else { break };
            let part = length.min(wanted);
            self.0.remove(&lane);
            if part < length {
                self.0.insert(lane + part, length - part);
            }
            taken.push((lane, part));
            wanted -= part;
        }
        taken.into_iter()
    }

    fn give(&mut self, lane: u32, lanes: u32) {
        let (mut lane, mut lanes) = (lane, lanes);
        if let Some((&before, &length)) = self.0.range(..lane).next_back()
            && before + length == lane
        {
            lane = before;
            lanes += length;
        }
        if let Some(length) = self.0.remove(&(lane + lanes)) {
            lanes += length;
        }
        self.0.insert(lane, lanes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stretch(job: u32, from: u32, until: u32, nodes: u32) -> Stretch {
        let (from, until) = (Instant::from_secs(from), Instant::from_secs(until));
        Stretch { job: JobId(job), from, until, nodes }
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
            stretch(0, 0, 10, 3),
            stretch(0, 10, 20, 1),
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
