//! A deliberately plain scheduler and simulator: the oracle for the fast one.
//!
//! No index, no cache, no increments: whatever is asked is worked out from the lists of running
//! and waiting jobs. Time is in milliseconds, power in milliwatts.

use std::collections::BTreeMap;

/// One way to run a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// The nodes it holds: those of the job, unless the job is moldable.
    pub(crate) nodes: u32,
    /// Its limit; at least 1. Most rules know no other time.
    pub(crate) time_ms: u64,
    /// The time it is believed to take.
    pub(crate) believed_ms: u64,
    /// The time it really takes, unless the limit ends it.
    pub(crate) run_ms: u64,
    /// What all its nodes draw together.
    pub(crate) milliwatts: u64,
    /// Whether it has all cores of its nodes, at the highest cap.
    pub(crate) packed: bool,
}

impl Way {
    /// A way of a job that is not moldable, and believed to use up its limit.
    pub(crate) fn rigid(nodes: u32, time_ms: u64, run_ms: u64, milliwatts: u64) -> Self {
        Way { nodes, time_ms, believed_ms: time_ms, run_ms, milliwatts, packed: true }
    }
}

/// A job, in plain numbers.
#[derive(Clone, Debug)]
pub(crate) struct PlainJob {
    pub(crate) submit_ms: u64,
    /// Those of its nominal way.
    pub(crate) nodes: u32,
    /// How long its user says it will run.
    pub(crate) requested_ms: u64,
    /// The nominal way first; each is slower and draws less than the one before. A rigid job has
    /// one. Those of a moldable job come in any order.
    pub(crate) ways: Vec<Way>,
}

/// A machine, in plain numbers.
#[derive(Clone, Debug)]
pub(crate) struct PlainMachine {
    pub(crate) nodes: u32,
    /// From when (milliseconds), how many milliwatts; the first from 0.
    pub(crate) budget: Vec<(u64, u64)>,
}

/// How much slowdown is accepted for a lower power, by how much of the limit is in use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Guide {
    /// Below this share of the limit nothing is slowed down.
    pub(crate) lower_millionths: u64,
    /// From this share of the limit on, `bsld_upper` counts.
    pub(crate) upper_millionths: u64,
    /// What the predicted slowdown has to stay below between the two shares.
    pub(crate) bsld_lower: f64,
    pub(crate) bsld_upper: f64,
    /// Jobs shorter than this count as this long.
    pub(crate) bsld_threshold_ms: u64,
}

/// How a moldable job gets its configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlainRmap {
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// The nodes asked for, or as many as can be fed, unthrottled.
    Traditional,
    /// The fastest within the fair share.
    Naive,
    /// The same, or the fastest that can start now if it takes at most so much longer than asked
    /// for; `None` is however long.
    Adaptive { tolerance_millionths: Option<u64> },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rule {
    Fcfs,
    Easy,
    Conservative,
    /// EASY; a job that could never have its nominal power runs at the fastest way that could.
    EasyPower,
    /// EASY in which every job takes the slowest way that its predicted slowdown allows.
    PbGuided(Guide),
    /// EASY for moldable jobs.
    Rmap(PlainRmap),
}

/// Time in milliseconds.
type Ticks = u64;

/// Nodes and power held or promised over a stretch of time.
#[derive(Clone, Copy, Debug)]
struct Stay {
    from: Ticks,
    until: Ticks,
    nodes: u32,
    milliwatts: u64,
}

/// When each job started and at which of its ways.
pub(crate) type Starts = Vec<Option<(u64, usize)>>;

pub(crate) struct Plain<'a> {
    machine: &'a PlainMachine,
    jobs: &'a [PlainJob],
    rule: Rule,
    each: bool,
    now: Ticks,
    waiting: Vec<usize>,
    /// Job, real end, and the stay it is believed to have.
    running: Vec<(usize, Ticks, Stay)>,
    /// Conservative: what was promised to each waiting job.
    promised: BTreeMap<usize, Stay>,
    starts: Starts,
}

impl<'a> Plain<'a> {
    pub(crate) fn starts(
        machine: &'a PlainMachine,
        jobs: &'a [PlainJob],
        rule: Rule,
        each: bool,
    ) -> Starts {
        let mut plain = Plain {
            machine,
            jobs,
            rule,
            each,
            now: 0,
            waiting: Vec::new(),
            running: Vec::new(),
            promised: BTreeMap::new(),
            starts: vec![None; jobs.len()],
        };
        plain.run();
        plain.starts
    }

    fn run(&mut self) {
        let mut next = 0;
        loop {
            let mut times: Vec<Ticks> = self.running.iter().map(|job| job.1).collect();
            times.extend(self.jobs.get(next).map(|job| job.submit_ms));
            if times.is_empty() && self.waiting.is_empty() {
                return;
            }
            times.extend(self.machine.budget.iter().map(|b| b.0).filter(|t| *t > self.now));
            times.extend(self.promised.values().map(|stay| stay.from).filter(|t| *t > self.now));
            let Some(&now) = times.iter().min() else { return };
            let first = next == 0;
            let before = self.now;
            self.now = now;

            let mut asked = false;
            loop {
                // Jobs that end together end in the order of the queue.
                let ended = self.running.iter().filter(|job| job.1 <= now).min_by_key(|job| job.0);
                let Some(&(ended, ..)) = ended else { break };
                self.running.retain(|job| job.0 != ended);
                self.happened(true, false, &[], &mut asked);
            }
            let changed = !first && self.machine.budget.iter().any(|b| before < b.0 && b.0 <= now);
            if changed {
                self.happened(true, true, &[], &mut asked);
            }
            let mut arrived = Vec::new();
            while next < self.jobs.len() && self.jobs[next].submit_ms <= now {
                if self.may_enter(next) {
                    self.waiting.push(next);
                    arrived.push(next);
                    self.happened(false, false, &[next], &mut asked);
                }
                next += 1;
            }
            // A job that is turned away at the door is nothing to ask the rule about.
            let due = self.promised.values().any(|stay| stay.from <= now);
            if !self.each && (asked || !arrived.is_empty() || due) {
                self.pass(asked, changed, &arrived);
            } else if self.each && !asked && due {
                self.pass(false, false, &[]);
            }
        }
    }

    /// One event: with `each` the rule is asked at once.
    fn happened(&mut self, freed: bool, machine: bool, arrived: &[usize], asked: &mut bool) {
        if self.each {
            self.pass(freed, machine, arrived);
            *asked = true;
        } else {
            *asked |= freed;
        }
    }

    fn pass(&mut self, freed: bool, machine: bool, arrived: &[usize]) {
        match self.rule {
            Rule::Fcfs => self.start_heads(),
            Rule::Easy | Rule::EasyPower => self.easy(),
            Rule::Conservative => self.conservative(freed, machine, arrived),
            Rule::PbGuided(guide) => self.pb_guided(&guide),
            Rule::Rmap(rmap) => self.rmap(&rmap),
        }
    }

    /// Whether a job that arrives now could ever run.
    fn may_enter(&self, job: usize) -> bool {
        let PlainJob { nodes, ways, .. } = &self.jobs[job];
        if let Rule::Rmap(_) = self.rule {
            let fewest = ways.iter().map(|way| way.nodes).min().unwrap();
            return fewest <= self.machine.nodes
                && self.earliest(job, self.thriftiest(job), &[]).is_some();
        }
        let ways = match self.rule {
            Rule::Fcfs | Rule::Easy | Rule::Conservative => 0..1,
            Rule::EasyPower | Rule::PbGuided(_) | Rule::Rmap(_) => 0..ways.len(),
        };
        *nodes <= self.machine.nodes
            && ways.into_iter().any(|way| self.earliest(job, way, &[]).is_some())
    }

    /// The limit in force at a time.
    fn limit_at(&self, at: Ticks) -> u64 {
        self.machine.budget.iter().rfind(|b| b.0 <= at).unwrap().1
    }

    /// The fastest way that could ever run from now on if nobody else did; none once the limits
    /// have fallen below all of them.
    fn fastest_possible(&self, job: usize) -> Option<usize> {
        (0..self.jobs[job].ways.len()).find(|way| self.earliest(job, *way, &[]).is_some())
    }

    /// The way of a job under the rules that leave no choice.
    fn only_way(&self, job: usize) -> Option<usize> {
        match self.rule {
            Rule::EasyPower => self.fastest_possible(job),
            _ => Some(0),
        }
    }

    fn stay(&self, job: usize, way: usize, from: Ticks) -> Stay {
        let Way { nodes, time_ms, milliwatts, .. } = self.jobs[job].ways[way];
        Stay { from, until: from + time_ms, nodes, milliwatts }
    }

    /// Whether a stay fits beside all others, nodes and watts, at every instant of it.
    fn fits(&self, stay: &Stay, others: &[Stay]) -> bool {
        let mut instants = vec![stay.from];
        instants.extend(others.iter().map(|other| other.from));
        instants.extend(self.machine.budget.iter().map(|b| b.0));
        instants.retain(|t| stay.from <= *t && *t < stay.until);
        instants.iter().all(|t| {
            let present = || others.iter().filter(|o| o.from <= *t && *t < o.until);
            let nodes: u32 = present().map(|o| o.nodes).sum();
            let milliwatts: u64 = present().map(|o| o.milliwatts).sum();
            nodes + stay.nodes <= self.machine.nodes
                && milliwatts + stay.milliwatts <= self.limit_at(*t)
        })
    }

    /// The times at which a stay may have to begin, in order: now, and whenever others end or
    /// the budget changes.
    fn candidates(&self, others: &[Stay]) -> Vec<Ticks> {
        let mut times = vec![self.now];
        times.extend(others.iter().map(|other| other.until));
        times.extend(self.machine.budget.iter().map(|b| b.0));
        times.retain(|t| *t >= self.now);
        times.sort_unstable();
        times
    }

    /// The earliest stay of a job beside others.
    fn earliest(&self, job: usize, way: usize, others: &[Stay]) -> Option<Stay> {
        let mut stays = self.candidates(others).into_iter().map(|from| self.stay(job, way, from));
        stays.find(|stay| self.fits(stay, others))
    }

    fn running_stays(&self) -> Vec<Stay> {
        self.running.iter().map(|job| job.2).collect()
    }

    /// Whether the nodes and the watts are really there now; a job of this very instant may
    /// still have to end.
    fn is_there(&self, job: usize, way: usize) -> bool {
        let wanted = self.stay(job, way, self.now);
        let held: u32 = self.running.iter().map(|job| job.2.nodes).sum();
        held + wanted.nodes <= self.machine.nodes
            && self.drawn() + wanted.milliwatts <= self.limit_at(self.now)
    }

    /// The power of all running jobs, those of this very instant that still have to end included.
    fn drawn(&self) -> u64 {
        self.running.iter().map(|job| job.2.milliwatts).sum()
    }

    fn start(&mut self, job: usize, way: usize) {
        self.waiting.retain(|other| *other != job);
        self.starts[job] = Some((self.now, way));
        let Way { time_ms, run_ms, .. } = self.jobs[job].ways[way];
        self.running.push((job, self.now + run_ms.min(time_ms), self.stay(job, way, self.now)));
    }

    /// Whether a job can start now at a way, beside others.
    fn can_start(&self, job: usize, way: usize, others: &[Stay]) -> bool {
        self.is_there(job, way) && self.fits(&self.stay(job, way, self.now), others)
    }

    fn start_heads(&mut self) {
        while let Some(&head) = self.waiting.first() {
            let way = self.only_way(head);
            let Some(way) = way.filter(|way| self.can_start(head, *way, &self.running_stays()))
            else {
                break;
            };
            self.start(head, way);
        }
    }

    fn easy(&mut self) {
        self.start_heads();
        let Some(&head) = self.waiting.first() else { return };
        let way = self.only_way(head);
        let promise = way.and_then(|way| self.earliest(head, way, &self.running_stays()));
        for job in self.waiting.clone().into_iter().skip(1) {
            let mut others = self.running_stays();
            others.extend(promise);
            let way = self.only_way(job).filter(|way| self.can_start(job, *way, &others));
            if let Some(way) = way {
                self.start(job, way);
            }
        }
    }

    /// The slowdown of a job that starts at a time, if it takes all the time it is believed to
    /// take; set against its nominal time.
    fn predicted_slowdown(&self, guide: &Guide, job: usize, way: usize, from: Ticks) -> f64 {
        let PlainJob { submit_ms, ref ways, .. } = self.jobs[job];
        let there = from - submit_ms + ways[way].time_ms;
        let nominal = ways[0].time_ms.max(guide.bsld_threshold_ms);
        (there as f64 / nominal as f64).max(1.0)
    }

    /// What the predicted slowdown has to stay below. What is drawn now counts, and the limit of
    /// now, also for a start in the future.
    fn slowdown_threshold(&self, guide: &Guide, job: usize, way: usize) -> f64 {
        let power = u128::from(self.drawn() + self.jobs[job].ways[way].milliwatts) * 1_000_000;
        let limit = u128::from(self.limit_at(self.now));
        if power < u128::from(guide.lower_millionths) * limit {
            0.0
        } else if power < u128::from(guide.upper_millionths) * limit {
            guide.bsld_lower
        } else {
            guide.bsld_upper
        }
    }

    /// The slowest way at which a job may start at a time beside others. The fastest possible way
    /// only has to fit; a slower one must not slow the job down too much.
    fn slowest_way(
        &self,
        guide: &Guide,
        job: usize,
        from: Ticks,
        others: &[Stay],
    ) -> Option<usize> {
        let fastest = self.fastest_possible(job)?;
        (fastest..self.jobs[job].ways.len()).rev().find(|&way| {
            let slowdown = self.predicted_slowdown(guide, job, way, from);
            let allowed = way == fastest || slowdown < self.slowdown_threshold(guide, job, way);
            allowed && self.fits(&self.stay(job, way, from), others)
        })
    }

    fn pb_guided(&mut self, guide: &Guide) {
        let mut promise = None;
        while let Some(&head) = self.waiting.first() {
            let running = self.running_stays();
            let found = self.candidates(&running).into_iter().find_map(|from| {
                self.slowest_way(guide, head, from, &running).map(|way| (from, way))
            });
            match found {
                Some((from, way)) if from == self.now && self.is_there(head, way) => {
                    self.start(head, way);
                }
                _ => {
                    promise = found.map(|(from, way)| self.stay(head, way, from));
                    break;
                }
            }
        }
        for job in self.waiting.clone().into_iter().skip(1) {
            let mut others = self.running_stays();
            others.extend(promise);
            let way = self.slowest_way(guide, job, self.now, &others);
            // The ways left are faster and draw more: what is not there for this one is not
            // there for them.
            if let Some(way) = way.filter(|way| self.is_there(job, *way)) {
                self.start(job, way);
            }
        }
    }

    /// The way that draws least; of several, the one that takes least time.
    fn thriftiest(&self, job: usize) -> usize {
        let ways = &self.jobs[job].ways;
        (0..ways.len()).min_by_key(|way| (ways[*way].milliwatts, ways[*way].believed_ms)).unwrap()
    }

    /// The fastest way on at most so many nodes within so much power; of several, the one that
    /// draws least.
    fn fastest_within(&self, job: usize, nodes: u32, milliwatts: u64) -> Option<usize> {
        let ways = &self.jobs[job].ways;
        (0..ways.len())
            .filter(|way| ways[*way].nodes <= nodes && ways[*way].milliwatts <= milliwatts)
            .min_by_key(|way| (ways[*way].believed_ms, ways[*way].milliwatts))
    }

    /// What a job may draw by the nodes it asks for.
    fn fair_share(&self, job: usize) -> u64 {
        let whole = u128::from(self.limit_at(self.now));
        (whole * u128::from(self.jobs[job].nodes) / u128::from(self.machine.nodes)) as u64
    }

    /// The way a job waits for.
    fn wanted(&self, rmap: &PlainRmap, job: usize) -> usize {
        let ways = &self.jobs[job].ways;
        let whole = self.limit_at(self.now);
        let wanted = match rmap.kind {
            Kind::Traditional => (0..ways.len())
                .filter(|way| ways[*way].packed && ways[*way].nodes <= self.jobs[job].nodes)
                .filter(|way| ways[*way].milliwatts <= whole)
                .max_by_key(|way| ways[*way].nodes),
            Kind::Naive | Kind::Adaptive { .. } => {
                self.fastest_within(job, self.machine.nodes, self.fair_share(job))
            }
        };
        wanted.unwrap_or_else(|| self.thriftiest(job))
    }

    /// The nodes and the watts that are there now.
    fn free(&self) -> (u32, u64) {
        let held: u32 = self.running.iter().map(|job| job.2.nodes).sum();
        let free = self.limit_at(self.now).saturating_sub(self.drawn());
        (self.machine.nodes - held, free)
    }

    /// The nodes and the watts that a reservation leaves over where it begins.
    fn left_over(&self, promise: &Stay) -> (u32, u64) {
        let running = self.running_stays();
        let there = || running.iter().filter(|stay| promise.from < stay.until);
        let nodes: u32 = there().map(|stay| stay.nodes).sum();
        let milliwatts: u64 = there().map(|stay| stay.milliwatts).sum();
        (
            self.machine.nodes.saturating_sub(nodes + promise.nodes),
            self.limit_at(promise.from).saturating_sub(milliwatts + promise.milliwatts),
        )
    }

    /// The way at which a job starts now, if it does.
    fn startable(&self, rmap: &PlainRmap, job: usize, promise: Option<Stay>) -> Option<usize> {
        let mut others = self.running_stays();
        others.extend(promise);
        let (nodes, milliwatts) = self.free();
        let ways = &self.jobs[job].ways;
        let may_start = |way: &usize| {
            ways[*way].nodes <= nodes
                && ways[*way].milliwatts <= milliwatts
                && self.fits(&self.stay(job, *way, self.now), &others)
        };
        let wanted = self.wanted(rmap, job);
        if may_start(&wanted) {
            return Some(wanted);
        }
        let Kind::Adaptive { tolerance_millionths } = rmap.kind else { return None };
        let is_fast_enough = |way: &usize| {
            tolerance_millionths.is_none_or(|tolerance| {
                u128::from(ways[*way].believed_ms) * 1_000_000
                    <= u128::from(self.jobs[job].requested_ms) * u128::from(1_000_000 + tolerance)
            })
        };
        let milliwatts = milliwatts.min(self.fair_share(job));
        let now = self.fastest_within(job, nodes, milliwatts).filter(may_start);
        let beside = || {
            let (left_nodes, left_milliwatts) = self.left_over(&promise?);
            let (nodes, milliwatts) = (nodes.min(left_nodes), milliwatts.min(left_milliwatts));
            self.fastest_within(job, nodes, milliwatts).filter(may_start)
        };
        now.or_else(beside).filter(is_fast_enough)
    }

    fn rmap(&mut self, rmap: &PlainRmap) {
        while let Some(&head) = self.waiting.first() {
            let Some(way) = self.startable(rmap, head, None) else { break };
            self.start(head, way);
        }
        let Some(&head) = self.waiting.first() else { return };
        let way = self.wanted(rmap, head);
        let running = self.running_stays();
        let promise = self.earliest(head, way, &running);
        for job in self.waiting.clone().into_iter().skip(1) {
            if let Some(way) = self.startable(rmap, job, promise) {
                self.start(job, way);
            }
        }
    }

    fn others(&self, job: usize) -> Vec<Stay> {
        let promised = self.promised.iter().filter(|p| *p.0 != job).map(|p| *p.1);
        self.running_stays().into_iter().chain(promised).collect()
    }

    fn promise(&mut self, job: usize) {
        match self.earliest(job, 0, &self.others(job)) {
            Some(stay) => self.promised.insert(job, stay),
            None => self.promised.remove(&job),
        };
    }

    fn conservative(&mut self, freed: bool, machine: bool, arrived: &[usize]) {
        if machine {
            self.promised.clear();
        }
        if freed {
            for job in self.waiting.clone() {
                if machine || self.promised.contains_key(&job) || !arrived.contains(&job) {
                    self.promise(job);
                }
            }
        }
        for &job in arrived {
            if !(machine && freed) {
                self.promise(job);
            }
        }
        for job in self.waiting.clone() {
            let due = self.promised.get(&job).is_some_and(|stay| stay.from <= self.now);
            if due && self.is_there(job, 0) {
                self.promised.remove(&job);
                self.start(job, 0);
            }
        }
    }
}

mod tests {
    use super::*;

    /// Between 60 % and 90 % of the limit a job may be slowed down to less than twice its time,
    /// above that to less than four times.
    const GUIDE: Guide = Guide {
        lower_millionths: 600_000,
        upper_millionths: 900_000,
        bsld_lower: 2.0,
        bsld_upper: 4.0,
        bsld_threshold_ms: 1,
    };

    /// A job that arrives at 0 and takes exactly the time it asked for. Each way: time, power.
    fn job<const WAYS: usize>(nodes: u32, ways: [(u64, u64); WAYS]) -> PlainJob {
        let way = |(time_ms, milliwatts)| Way::rigid(nodes, time_ms, time_ms, milliwatts);
        PlainJob { submit_ms: 0, nodes, requested_ms: ways[0].0, ways: ways.map(way).to_vec() }
    }

    /// A machine with one limit of 100 milliwatts: a milliwatt is a percent.
    fn machine(nodes: u32) -> PlainMachine {
        PlainMachine { nodes, budget: vec![(0, 100)] }
    }

    /// What a rule makes of a story; asked after every event or once an instant, it is the same
    /// in all stories here.
    fn starts(machine: &PlainMachine, jobs: &[PlainJob], rule: Rule) -> Starts {
        let starts = Plain::starts(machine, jobs, rule, false);
        assert_eq!(Plain::starts(machine, jobs, rule, true), starts, "{rule:?}");
        starts
    }

    #[test]
    fn nothing_is_slowed_down_below_the_lower_share() {
        // Job 0: at way 1 the power would be 20: below 60, the threshold is 0. Way 0.
        // Job 1: at way 1 it would be 39 + 20 = 59: still below. Way 0. Now 78 are drawn.
        // Without a lower share both are slowed down: 1.5 is less than 2.
        let jobs = vec![job(1, [(100, 39), (150, 20)]); 2];
        let guided = Rule::PbGuided(GUIDE);
        assert_eq!(starts(&machine(4), &jobs, guided), [Some((0, 0)), Some((0, 0))]);
        let guided = Rule::PbGuided(Guide { lower_millionths: 0, ..GUIDE });
        assert_eq!(starts(&machine(4), &jobs, guided), [Some((0, 1)), Some((0, 1))]);
        // One milliwatt more is 60 and no longer below it: the second is slowed down.
        let jobs = vec![job(1, [(100, 40), (150, 20)]); 2];
        let guided = Rule::PbGuided(GUIDE);
        assert_eq!(starts(&machine(4), &jobs, guided), [Some((0, 0)), Some((0, 1))]);
    }

    #[test]
    fn the_more_is_drawn_the_slower_a_way_is_accepted() {
        // Predicted slowdowns at 0: 1, 1.5 and 3.
        // Job 0: way 2 makes 20, way 1 makes 30: both below 60, threshold 0. Way 0.
        // Job 1: way 2 makes 60: threshold 2, and 3 is too much. Way 1 makes 70: 1.5 is less
        // than 2. Way 1.
        // Job 2: way 2 makes 90: no longer below 90, threshold 4, and 3 is less. Way 2.
        let jobs = vec![job(1, [(100, 40), (150, 30), (300, 20)]); 3];
        let guided = Rule::PbGuided(GUIDE);
        let expected = [Some((0, 0)), Some((0, 1)), Some((0, 2))];
        assert_eq!(starts(&machine(3), &jobs, guided), expected);
        // The other rule slows down nobody: 40, 80, and the third waits for 100.
        let expected = [Some((0, 0)), Some((0, 0)), Some((100, 0))];
        assert_eq!(starts(&machine(3), &jobs, Rule::EasyPower), expected);
    }

    #[test]
    fn a_slowdown_has_to_stay_below_its_threshold() {
        // Job 0: way 1 makes 20: threshold 0. Way 0, 60 drawn.
        // Job 1: way 1 makes 80: threshold `bsld_lower`; way 0 makes 120, which is too much.
        let jobs = vec![job(1, [(100, 60), (150, 20)]); 2];
        let second = |bsld_lower, bsld_threshold_ms| {
            let guide = Guide { bsld_lower, bsld_threshold_ms, ..GUIDE };
            let starts = starts(&machine(2), &jobs, Rule::PbGuided(guide));
            assert_eq!(starts[0], Some((0, 0)));
            starts[1].unwrap()
        };
        // A slowdown of 150 / 100 is not below 1.5. At 100, when nothing runs, way 1 makes 20:
        // threshold 0. Way 0.
        assert_eq!(second(1.5, 1), (100, 0));
        assert_eq!(second(1.51, 1), (0, 1));
        // Set against 150, it is 1, which is below 1.5. It is never less than 1, so that a
        // threshold of 1 slows down nobody, however short.
        assert_eq!(second(1.5, 150), (0, 1));
        assert_eq!(second(1.0, 1000), (100, 0));
    }

    #[test]
    fn the_wait_counts_as_slowdown() {
        // Two nodes. Job 0: both until 100, 10 milliwatts. Job 1: one node from 100 on, for 200,
        // 60 milliwatts. Job 2 waits for 100 as well; then way 1 makes 60 + 20 = 80: threshold 2.
        // Submitted at 50: (50 + 150) / 100 = 2 is not less. Way 0 fits: 60 + 40.
        // Submitted at 51: (49 + 150) / 100 = 1.99 is less. Way 1.
        for (submit_ms, way) in [(50, 0), (51, 1)] {
            let last = PlainJob { submit_ms, ..job(1, [(100, 40), (150, 20)]) };
            let jobs = [job(2, [(100, 10)]), job(1, [(200, 60)]), last];
            let expected = [Some((0, 0)), Some((100, 0)), Some((100, way))];
            assert_eq!(starts(&machine(2), &jobs, Rule::PbGuided(GUIDE)), expected);
        }
    }

    #[test]
    fn the_reservation_is_protected_by_watts() {
        // Nodes for all. Job 0 draws 60 until 100. Job 1, the head, needs 80: reserved at 100,
        // until 200.
        // Job 2: 60 + 30 are there now, but it is still here at 100, and 80 + 30 are not: waits.
        // Job 3: the same power, but gone at 100: starts. 90 drawn.
        // Job 4: 100 now, 80 + 10 beside the head: starts.
        // At 100: job 1 as reserved, 90 drawn. Job 2 waits for its end at 200.
        let jobs = [
            job(1, [(100, 60)]),
            job(1, [(100, 80)]),
            job(1, [(150, 30)]),
            job(1, [(100, 30)]),
            job(1, [(200, 10)]),
        ];
        let expected = [0, 100, 200, 0, 0].map(|start| Some((start, 0)));
        // With one way each, the rules do not differ.
        for rule in [Rule::Easy, Rule::EasyPower, Rule::PbGuided(GUIDE)] {
            assert_eq!(starts(&machine(10), &jobs, rule), expected, "{rule:?}");
        }
    }

    #[test]
    fn a_job_that_may_not_be_slow_beside_the_reservation_may_be_fast_before_it() {
        // As above: 60 until 100, then the head with 80.
        // Job 2: way 1 makes 85: threshold 2, and 1.5 is less; but it would last until 150, and
        // 80 + 25 are not there at 100. Way 0: 60 + 30 now, gone at 100.
        let (first, head, last) =
            (job(1, [(100, 60)]), job(1, [(100, 80)]), job(1, [(100, 30), (150, 25)]));
        let guided = Rule::PbGuided(GUIDE);
        let expected = [Some((0, 0)), Some((100, 0)), Some((0, 0))];
        assert_eq!(starts(&machine(4), &[first.clone(), head, last.clone()], guided), expected);
        // Without the head nothing stands against way 1.
        let expected = [Some((0, 0)), Some((0, 1))];
        assert_eq!(starts(&machine(4), &[first, last], guided), expected);
    }

    #[test]
    fn the_reservation_is_protected_by_nodes() {
        // Three nodes. Job 0: two until 100, 60 milliwatts. Job 1, the head: all three at 100.
        // Job 2: at way 1 (80: threshold 2, slowdown 1.25) it would end at 100: starts.
        // With a way 1 that ends at 101 it would be in the way, as way 0 is not: it ends at 80.
        for (slow, way) in [(100, 1), (101, 0)] {
            let jobs = [job(2, [(100, 60)]), job(3, [(50, 5)]), job(1, [(80, 30), (slow, 20)])];
            let expected = [Some((0, 0)), Some((100, 0)), Some((0, way))];
            assert_eq!(starts(&machine(3), &jobs, Rule::PbGuided(GUIDE)), expected);
        }
    }

    #[test]
    fn the_head_takes_a_slower_way_where_that_is_earlier() {
        // Five nodes. Job 0: three until 100, 30 milliwatts. Job 1: one until 300, 50 milliwatts.
        // Job 2, the head, asks for two, and one is free. At 100 two are free. Way 1 makes
        // 80 + 40 = 120, with what is drawn now: threshold 4; slowdown (100 + 150) / 100 = 2.5;
        // beside job 1 it makes 90: reserved at 100 at way 1. (Way 0 would make 110, and have to
        // wait until 300.)
        // Job 3 has a node and 20 milliwatts now. At 100 it would make 50 + 40 + 20: waits.
        // At 100: way 1 of the head makes 50 + 40 = 90: threshold 4, slowdown 2.5. Way 1, until
        // 250. Job 3: then.
        let jobs = [
            job(3, [(100, 30)]),
            job(1, [(300, 50)]),
            job(2, [(100, 60), (150, 40)]),
            job(1, [(150, 20)]),
        ];
        let expected = [Some((0, 0)), Some((0, 0)), Some((100, 1)), Some((250, 0))];
        assert_eq!(starts(&machine(5), &jobs, Rule::PbGuided(GUIDE)), expected);
        // At nominal power the reservation is at 300: job 3 starts at once.
        let expected = [Some((0, 0)), Some((0, 0)), Some((300, 0)), Some((0, 0))];
        assert_eq!(starts(&machine(5), &jobs, Rule::EasyPower), expected);
    }

    #[test]
    fn the_threshold_of_a_later_start_counts_what_is_drawn_now() {
        // Four nodes. Job 0: three until 100, 70 milliwatts. Job 1, the head, asks for two. At
        // 100 way 1 makes 70 + 40 = 110, with what is drawn now: threshold 4, slowdown 2.5:
        // reserved at 100 at way 1. (By what is drawn at 100 the threshold would be 0.)
        // Job 2: 70 + 30 now; at 100 beside the head 40 + 30: starts. (Beside way 0: 80 + 30.)
        // At 100 the head is looked at anew: way 1 makes 30 + 40: threshold 2, slowdown 2.5: no.
        // Way 0 makes 30 + 80: no. At 240: way 1 is 3.9 by now, way 0 fits: reserved there.
        // At 240 nothing runs: way 0.
        let jobs = [job(3, [(100, 70)]), job(2, [(100, 80), (150, 40)]), job(1, [(240, 30)])];
        let expected = [Some((0, 0)), Some((240, 0)), Some((0, 0))];
        assert_eq!(starts(&machine(4), &jobs, Rule::PbGuided(GUIDE)), expected);
    }

    #[test]
    fn the_slowdown_of_a_later_start_counts_the_wait_until_then() {
        // As above, but job 0 stays until 250. For the head at 250 way 1 has threshold 4 again,
        // but (250 + 150) / 100 = 4 is not less: reserved at way 0, until 350.
        // Job 2 would still be here at 250: 80 + 30 are not there. It waits for the head's end.
        let jobs = [job(3, [(250, 70)]), job(2, [(100, 80), (150, 40)]), job(1, [(390, 30)])];
        let expected = [Some((0, 0)), Some((250, 0)), Some((350, 0))];
        assert_eq!(starts(&machine(4), &jobs, Rule::PbGuided(GUIDE)), expected);
    }

    #[test]
    fn a_slowed_job_ends_by_the_clock_of_its_way() {
        // Job 0 draws 60. Job 1: way 1 makes 90: threshold 4, slowdown 2. Way 1. Job 2 needs both
        // nodes: it waits for the real end of job 1, at most for its limit at this way, 200.
        for (run_ms, end) in [(110, 110), (200, 200), (300, 200)] {
            let mut slowed = job(1, [(100, 50), (200, 30)]);
            slowed.ways[1].run_ms = run_ms;
            let jobs = [job(1, [(100, 60)]), slowed, job(2, [(10, 10)])];
            let expected = [Some((0, 0)), Some((0, 1)), Some((end, 0))];
            assert_eq!(starts(&machine(2), &jobs, Rule::PbGuided(GUIDE)), expected);
        }
    }

    #[test]
    fn an_oversized_job_runs_at_the_fastest_way_that_fits() {
        // Ways 0 and 1 of job 0 draw more than there ever is. Way 2 is the fastest possible one.
        // Under the guided rule way 3 makes 50: threshold 0. Way 2 needs no threshold.
        // Job 1: 90 + 20 is too much until 150.
        // Job 2 draws too much at every way, job 3 asks for too many nodes.
        let jobs = [
            job(1, [(100, 150), (120, 110), (150, 90), (200, 50)]),
            job(1, [(100, 20)]),
            job(1, [(100, 150), (200, 101)]),
            job(5, [(100, 20)]),
        ];
        let expected = [Some((0, 2)), Some((150, 0)), None, None];
        for rule in [Rule::EasyPower, Rule::PbGuided(GUIDE)] {
            assert_eq!(starts(&machine(4), &jobs, rule), expected, "{rule:?}");
        }
        // The rules that know one way only turn it away.
        let expected = [None, Some((0, 0)), None, None];
        for rule in [Rule::Fcfs, Rule::Easy, Rule::Conservative] {
            assert_eq!(starts(&machine(4), &jobs, rule), expected, "{rule:?}");
        }
    }

    #[test]
    fn an_oversized_job_may_be_slowed_down_further() {
        // Job 0 draws 40. Job 1: way 3 makes 90: threshold 4, slowdown (0 + 200) / 100 = 2, set
        // against the nominal time although that way is out of reach. Way 3. Without slowing down
        // it waits for way 2 to fit, at 100.
        let jobs = [job(1, [(100, 40)]), job(1, [(100, 150), (120, 110), (150, 90), (200, 50)])];
        let expected = [Some((0, 0)), Some((0, 3))];
        assert_eq!(starts(&machine(4), &jobs, Rule::PbGuided(GUIDE)), expected);
        let expected = [Some((0, 0)), Some((100, 2))];
        assert_eq!(starts(&machine(4), &jobs, Rule::EasyPower), expected);
        let guided = Rule::PbGuided(Guide { bsld_upper: 2.0, ..GUIDE });
        assert_eq!(starts(&machine(4), &jobs, guided), expected);
    }

    #[test]
    fn a_limit_to_come_counts_for_the_fastest_possible_way() {
        // 50 now, 100 from 100 on: 80 are possible, so plain EASY waits for them.
        // Guided: way 1 makes 40, that is 80 % of the limit of now: threshold 2, and 1.5 is less.
        let machine = PlainMachine { nodes: 1, budget: vec![(0, 50), (100, 100)] };
        let jobs = [job(1, [(100, 80), (150, 40)])];
        assert_eq!(starts(&machine, &jobs, Rule::EasyPower), [Some((100, 0))]);
        assert_eq!(starts(&machine, &jobs, Rule::PbGuided(GUIDE)), [Some((0, 1))]);
        // With a threshold of 1.5 way 1 is too slow now, and slower still at 100. Then way 0 fits.
        let guided = Rule::PbGuided(Guide { bsld_lower: 1.5, ..GUIDE });
        assert_eq!(starts(&machine, &jobs, guided), [Some((100, 0))]);
    }

    #[test]
    fn a_limit_that_has_gone_no_longer_counts() {
        // 120 until 50, then 100. Job 0 has all of it until 50.
        // Job 1: at 0 its fastest possible way, 110, fits nowhere: no reservation. From 50 on the
        // fastest possible way is way 1, and it starts. (Guided: at 0 way 1 makes 210: threshold
        // 4, slowdown (50 + 150) / 100: reserved at 50. At 50 it is the fastest possible way.)
        // Job 2: at 0 it could have run; from 50 on it never can. It stands in nobody's way.
        // Job 3: 90 + 10 at 50.
        let machine = PlainMachine { nodes: 4, budget: vec![(0, 120), (50, 100)] };
        let jobs = [
            job(1, [(50, 120)]),
            job(1, [(100, 110), (150, 90)]),
            job(1, [(100, 105)]),
            job(1, [(100, 10)]),
        ];
        let expected = [Some((0, 0)), Some((50, 1)), None, Some((50, 0))];
        for rule in [Rule::EasyPower, Rule::PbGuided(GUIDE)] {
            assert_eq!(starts(&machine, &jobs, rule), expected, "{rule:?}");
        }
    }
}
