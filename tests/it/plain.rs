//! A deliberately plain scheduler and simulator: the oracle for the fast one.
//!
//! No index, no cache, no increments: whatever is asked is worked out from the lists of running
//! and waiting jobs. Time is in milliseconds, power in milliwatts.

use std::collections::BTreeMap;

mod guided;
pub(crate) mod kinds;
mod rmap;
mod share;
mod sizes;
pub(crate) mod slurm;
mod tests;

use share::Ended;
pub(crate) use share::PlainOrder;

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
    /// Those its user asks for.
    pub(crate) asked: u32,
    /// Those of its nominal way.
    pub(crate) nodes: u32,
    /// How long its user says it will run.
    pub(crate) requested_ms: u64,
    /// Its priority, in thousandths.
    pub(crate) weight_thousandths: u64,
    /// How much longer it may take, if it says so itself; `Some(None)` is however long.
    pub(crate) tolerance_millionths: Option<Option<u64>>,
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
    pub(crate) order: PlainOrder,
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
    /// EASY in which free watts are shared among free nodes.
    Share(PlainOrder),
    /// EASY for moldable jobs, by what a choice costs everybody who waits.
    Sizes {
        fair: bool,
    },
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
    /// Those that ended, in this order.
    ended: Vec<Ended>,
    /// Where the rule has another order than that of submission: the key of each job.
    keys: Vec<f64>,
    /// Whether keys were too close to say which job comes first.
    too_close: bool,
    /// When somebody had to wait last.
    waited: Option<Ticks>,
}

impl<'a> Plain<'a> {
    pub(crate) fn starts(
        machine: &'a PlainMachine,
        jobs: &'a [PlainJob],
        rule: Rule,
        each: bool,
    ) -> Starts {
        Plain::clear_starts(machine, jobs, rule, each).expect("submission leaves no doubt")
    }

    /// The same, unless two jobs are so close that it cannot be said which of them comes first.
    pub(crate) fn clear_starts(
        machine: &'a PlainMachine,
        jobs: &'a [PlainJob],
        rule: Rule,
        each: bool,
    ) -> Option<Starts> {
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
            ended: Vec::new(),
            keys: vec![0.0; jobs.len()],
            too_close: false,
            waited: None,
        };
        plain.run();
        (!plain.too_close).then_some(plain.starts)
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
                self.remember(ended);
                self.happened(true, false, &[], &mut asked);
            }
            let changed = !first && self.machine.budget.iter().any(|b| before < b.0 && b.0 <= now);
            if changed {
                self.happened(true, true, &[], &mut asked);
            }
            let mut arrived = Vec::new();
            while next < self.jobs.len() && self.jobs[next].submit_ms <= now {
                if self.may_enter(next) {
                    if let Rule::Share(order) | Rule::Rmap(PlainRmap { order, .. }) = self.rule {
                        self.give_key(next, order);
                    }
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
        if self.waiting.iter().any(|job| self.now - self.jobs[*job].submit_ms > 600_000) {
            self.waited = Some(self.now);
        }
        match self.rule {
            Rule::Fcfs => self.start_heads(),
            Rule::Easy | Rule::EasyPower => self.easy(),
            Rule::Conservative => self.conservative(freed, machine, arrived),
            Rule::PbGuided(guide) => self.pb_guided(&guide),
            Rule::Rmap(rmap) => self.rmap(&rmap),
            Rule::Share(order) => self.share(order),
            Rule::Sizes { fair } => self.sizes(fair),
        }
    }

    /// Whether a job that arrives now could ever run.
    fn may_enter(&self, job: usize) -> bool {
        let PlainJob { nodes, ways, .. } = &self.jobs[job];
        if let Rule::Rmap(_) | Rule::Sizes { .. } = self.rule {
            let fewest = ways.iter().map(|way| way.nodes).min().unwrap();
            return fewest <= self.machine.nodes
                && self.earliest(job, self.thriftiest(job), &[]).is_some();
        }
        let ways = match self.rule {
            Rule::Fcfs | Rule::Easy | Rule::Conservative => 0..1,
            Rule::EasyPower
            | Rule::PbGuided(_)
            | Rule::Rmap(_)
            | Rule::Share(_)
            | Rule::Sizes { .. } => 0..ways.len(),
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
