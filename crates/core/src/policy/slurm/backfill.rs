//! A backfill pass: jobs by priority, each of which starts now or is promised nodes from a time to come.
//!
//! A job is tried on the nodes that are promised to nobody from now until it would end. If it can start on them only when
//! others have ended, or not at all, it is tried again from the end of the next slot of the map at which other nodes are there,
//! and so on. It starts if that is now, and else it is promised the nodes that it would get from the time at which it would.

use std::collections::HashMap;
use std::hash::Hash;

use super::ahead::{self, Start};
use super::floor::{Ask, Floor};
use super::nodes::NodeSet;
use super::power::Power;
use super::slots::Slots;
use crate::job::UserId;
use crate::policy::{Decision, Order, View};
use crate::priority::Scheduler;
use crate::units::{Instant, Span};

const SECOND: Span = Span::from_secs(1);

/// A pass while it goes on.
struct Pass<'a> {
    now: Instant,
    rules: &'a Scheduler,
    floor: &'a mut Floor,
    power: &'a mut Power,
    slots: Slots,
    /// By what came of it, the same pass would do the same up to this time.
    holds_until: Instant,
    tried: u32,
}

/// What becomes of a job.
enum Fate {
    /// It starts now.
    Starts(Start),
    /// It is promised nodes.
    Promised(Start),
    /// It goes on waiting, and is promised nothing.
    Waits,
}

/// Who was tried how often.
#[derive(Default)]
struct Counts {
    users: HashMap<Option<UserId>, u32>,
    partitions: HashMap<usize, u32>,
    both: HashMap<(Option<UserId>, usize), u32>,
    promised: HashMap<usize, u32>,
}

/// Whether there are as many as there may be; 0 is no limit.
fn is_full<K: Eq + Hash>(counts: &HashMap<K, u32>, key: &K, limit: u32) -> bool {
    limit > 0 && counts.get(key).is_some_and(|count| *count >= limit)
}

impl Counts {
    /// Whether enough jobs like this one were tried. If not, it is counted.
    fn is_tried_enough(&mut self, rules: &Scheduler, user: Option<UserId>, ask: &Ask) -> bool {
        let partition = ask.partition;
        if is_full(&self.both, &(user, partition), rules.bf_max_job_user_part)
            || is_full(&self.partitions, &partition, rules.bf_max_job_part)
            || is_full(&self.users, &user, rules.bf_max_job_user)
        {
            return true;
        }
        *self.both.entry((user, partition)).or_default() += 1;
        *self.partitions.entry(partition).or_default() += 1;
        *self.users.entry(user).or_default() += 1;
        false
    }

    /// Whether enough jobs of its partition were promised nodes.
    fn is_promised_enough(&self, rules: &Scheduler, ask: &Ask) -> bool {
        is_full(&self.promised, &ask.partition, rules.bf_job_part_count_reserve)
    }

    fn note_promise(&mut self, ask: &Ask) {
        *self.promised.entry(ask.partition).or_default() += 1;
    }
}

/// What came of a pass: until when it would come to the same if nothing happened.
pub(super) fn run<O: Order>(
    view: &View<'_>,
    rules: &Scheduler,
    order: &O,
    floor: &mut Floor,
    power: &mut Power,
    decisions: &mut Vec<Decision>,
) -> Instant {
    let now = view.now;
    let slots = Slots::new(now, rules.bf_window, rules.bf_resolution, floor.up().clone());
    let holds_until = floor.running().map(|running| running.0).find(|end| *end > now);
    let holds_until = match floor.running().next() {
        // It is not known when a job ends that should have ended.
        Some((end, _)) if end <= now => now,
        _ => holds_until.unwrap_or(Instant::NEVER),
    };
    let mut pass = Pass { now, rules, floor, power, slots, holds_until, tried: 0 };
    let mut counts = Counts::default();
    let room = match rules.bf_node_space_size {
        0 => rules.bf_max_job_test,
        size => size,
    };
    let (mut started, mut next) = (0, order.first(view));
    while let Some(job) = next {
        if pass.tried >= rules.bf_max_job_test {
            break;
        }
        next = order.next(view, job);
        let Some(ask) = pass.floor.ask(view, job) else { continue };
        let old_enough = view.job(job).submit + rules.bf_min_age_reserve;
        let is_old_enough = old_enough <= now;
        if !is_old_enough {
            pass.holds_until = pass.holds_until.min(old_enough);
        }
        let has_points = rules.bf_min_prio_reserve == 0
            || order.has_points(view, job, rules.bf_min_prio_reserve);
        let may_promise = is_old_enough && has_points && !counts.is_promised_enough(rules, &ask);
        if counts.is_tried_enough(rules, view.job(job).user, &ask) {
            continue;
        }
        match pass.fate(&ask, may_promise) {
            Fate::Waits => {}
            Fate::Starts(start) => {
                pass.power.take(now, &ask.point);
                let set = NodeSet::of(pass.floor.nodes(), start.nodes.iter().map(|node| node.0));
                decisions.push(pass.floor.start(now, &ask, start.nodes));
                if ask.is_alone {
                    let end = pass.slots.floor(now + ask.limit);
                    pass.slots.promise(&set, Instant::ZERO, end);
                }
                started += 1;
                if rules.bf_max_job_start > 0 && started >= rules.bf_max_job_start {
                    break;
                }
            }
            Fate::Promised(start) => {
                counts.note_promise(&ask);
                if pass.slots.len() as u32 >= room {
                    break;
                }
                pass.promise(&ask, &start);
            }
        }
    }
    let slot_ends = pass.slots.iter().map(|slot| slot.end);
    let first = slot_ends.filter(|end| *end > now).min();
    first.map_or(pass.holds_until, |first| first.min(pass.holds_until))
}

impl Pass<'_> {
    /// Promises a job its nodes.
    fn promise(&mut self, ask: &Ask, start: &Start) {
        let set = NodeSet::of(self.floor.nodes(), start.nodes.iter().map(|node| node.0));
        let (begin, end) = (self.slots.floor(start.at), self.slots.floor(start.at + ask.limit));
        self.slots.promise(&set, begin, end);
        self.power.take(start.at, &ask.point);
        // As time passes, more of the promise comes into the map.
        let last = self.slots.end();
        for time in [begin, end].into_iter().filter(|time| *time >= last) {
            self.holds_for(time, self.rules.bf_window);
        }
    }

    /// What came of the pass holds until so long before a time.
    fn holds_for(&mut self, time: Instant, before: Span) {
        let at = Instant::from_millis(time.millis().saturating_sub(before.millis()));
        self.holds_until = self.holds_until.min(at);
    }

    /// Finds out what becomes of a job.
    fn fate(&mut self, ask: &Ask, may_promise: bool) -> Fate {
        let mut from = self.now;
        let mut is_counted = false;
        loop {
            let (usable, later) = self.usable(ask, from);
            let again = later.filter(|_| may_promise);
            if usable.count() < ask.nodes {
                match again {
                    Some(later) => {
                        from = later;
                        continue;
                    }
                    None => return Fate::Waits,
                }
            }
            if !is_counted {
                self.tried += 1;
                is_counted = true;
            }
            let found = ahead::start(self.floor, self.rules, ask, &usable, self.now, !may_promise);
            let found = found.and_then(|found| {
                let at = self.power.earliest(found.at.max(from), &ask.point)?;
                Some(Start { at, ..found })
            });
            let Some(found) = found else {
                match again {
                    Some(later) => {
                        from = later;
                        continue;
                    }
                    None => return Fate::Waits,
                }
            };
            if found.at <= self.now {
                return Fate::Starts(found);
            }
            if !may_promise {
                return Fate::Waits;
            }
            if let Some(later) = later.filter(|later| found.at > *later) {
                from = later;
                continue;
            }
            if found.at > self.now + self.rules.bf_window {
                self.holds_for(found.at, self.rules.bf_window);
                return Fate::Waits;
            }
            let set = NodeSet::of(self.floor.nodes(), found.nodes.iter().map(|node| node.0));
            let (begin, end) = (self.slots.floor(found.at), self.slots.floor(found.at + ask.limit));
            if self.slots.overlaps(&set, begin, end) {
                debug_assert!(found.at > from, "what is promised from {from:?} on is not usable");
                from = found.at;
                continue;
            }
            return Fate::Promised(found);
        }
    }

    /// The nodes that nobody is promised from then on until the job would end, and when others may be there.
    fn usable(&mut self, ask: &Ask, from: Instant) -> (NodeSet, Option<Instant>) {
        let mut usable = self.floor.up().clone();
        usable.keep(self.floor.partition_nodes(ask.partition));
        usable.keep(self.floor.places(ask));
        let until = from + ask.limit;
        self.floor.leave_out_reserved(&mut usable, from, until);
        let all = usable.clone();
        let mut later = None;
        let mut slots = self.slots.iter().peekable();
        while let Some(slot) = slots.next() {
            if slot.end <= from {
                continue;
            }
            if let Some(next) = slots.peek().filter(|_| later.is_none()) {
                let (mut here, mut there) = (usable.clone(), all.clone());
                here.keep(&slot.nodes);
                there.keep(&next.nodes);
                if !there.is_within(&here) {
                    later = Some(slot.end);
                }
            }
            if slot.begin > until {
                if from == self.now {
                    let at = slot.begin.millis().saturating_sub(ask.limit.millis());
                    self.holds_until = self.holds_until.min(Instant::from_millis(at));
                }
                break;
            }
            usable.keep(&slot.nodes);
        }
        let reserved = self.floor.reserved_until(from, until).map(|end| end + SECOND);
        (usable, later.into_iter().chain(reserved).min())
    }
}
