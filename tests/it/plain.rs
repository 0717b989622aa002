//! A deliberately plain scheduler and simulator: the oracle for the fast one.
//!
//! No index, no cache, no increments: whatever is asked is worked out from the lists of running
//! and waiting jobs. Time is in seconds; power is a number of watts a node.

use std::collections::BTreeMap;

/// A job, in plain numbers.
#[derive(Clone, Debug)]
pub(crate) struct PlainJob {
    pub(crate) submit: u64,
    pub(crate) nodes: u32,
    pub(crate) requested: u64,
    pub(crate) run_time: u64,
}

/// A machine, in plain numbers.
#[derive(Clone, Debug)]
pub(crate) struct PlainMachine {
    pub(crate) nodes: u32,
    pub(crate) watts_per_node: u32,
    /// From when, how many watts; the first from 0.
    pub(crate) budget: Vec<(u64, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Fcfs,
    Easy,
    Conservative,
}

/// Time in milliseconds: a job without any length stays for one.
type Ticks = u64;
const SECOND: Ticks = 1000;

/// Nodes held or promised over a stretch of time.
#[derive(Clone, Copy, Debug)]
struct Stay {
    from: Ticks,
    until: Ticks,
    nodes: u32,
}

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
    starts: Vec<Option<u64>>,
}

impl<'a> Plain<'a> {
    pub(crate) fn starts(
        machine: &'a PlainMachine,
        jobs: &'a [PlainJob],
        rule: Rule,
        each: bool,
    ) -> Vec<Option<u64>> {
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
            times.extend(self.jobs.get(next).map(|job| job.submit * SECOND));
            if times.is_empty() && self.waiting.is_empty() {
                return;
            }
            times
                .extend(self.machine.budget.iter().map(|b| b.0 * SECOND).filter(|t| *t > self.now));
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
            let changed = !first
                && self.machine.budget.iter().any(|b| before < b.0 * SECOND && b.0 * SECOND <= now);
            if changed {
                self.happened(true, true, &[], &mut asked);
            }
            let mut arrived = Vec::new();
            while next < self.jobs.len() && self.jobs[next].submit * SECOND <= now {
                let in_force = self.machine.budget.iter().rfind(|b| b.0 * SECOND <= now).unwrap().1;
                let to_come = self.machine.budget.iter().filter(|b| b.0 * SECOND > now);
                let most = to_come.map(|b| b.1).fold(in_force, u32::max);
                let job = &self.jobs[next];
                if job.nodes <= self.machine.nodes
                    && job.nodes * self.machine.watts_per_node <= most
                {
                    self.waiting.push(next);
                    arrived.push(next);
                    self.happened(false, false, &[next], &mut asked);
                }
                next += 1;
            }
            if !self.each {
                self.pass(asked, changed, &arrived);
            } else if !asked {
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
            Rule::Easy => self.easy(),
            Rule::Conservative => self.conservative(freed, machine, arrived),
        }
    }

    fn stay(&self, job: usize, from: Ticks) -> Stay {
        let length = (self.jobs[job].requested * SECOND).max(1);
        Stay { from, until: from + length, nodes: self.jobs[job].nodes }
    }

    /// Whether a stay fits beside all others, nodes and watts, at every instant of it.
    fn fits(&self, stay: &Stay, others: &[Stay]) -> bool {
        let mut instants = vec![stay.from];
        instants.extend(others.iter().map(|other| other.from));
        instants.extend(self.machine.budget.iter().map(|b| b.0 * SECOND));
        instants.retain(|t| stay.from <= *t && *t < stay.until);
        instants.iter().all(|t| {
            let taken: u32 =
                others.iter().filter(|o| o.from <= *t && *t < o.until).map(|o| o.nodes).sum();
            let budget = self.machine.budget.iter().rfind(|b| b.0 * SECOND <= *t).unwrap().1;
            taken + stay.nodes <= self.machine.nodes
                && (taken + stay.nodes) * self.machine.watts_per_node <= budget
        })
    }

    /// The earliest stay of a job beside others.
    fn earliest(&self, job: usize, others: &[Stay]) -> Option<Stay> {
        let mut times = vec![self.now];
        times.extend(others.iter().map(|other| other.until));
        times.extend(self.machine.budget.iter().map(|b| b.0 * SECOND));
        times.retain(|t| *t >= self.now);
        times.sort_unstable();
        times.into_iter().map(|from| self.stay(job, from)).find(|stay| self.fits(stay, others))
    }

    fn running_stays(&self) -> Vec<Stay> {
        self.running.iter().map(|job| job.2).collect()
    }

    /// Whether the nodes and the watts are really there now; a job of this very instant may
    /// still have to end.
    fn is_there(&self, job: usize) -> bool {
        let held: u32 = self.running.iter().map(|job| job.2.nodes).sum();
        let budget = self.machine.budget.iter().rfind(|b| b.0 * SECOND <= self.now).unwrap().1;
        let all = held + self.jobs[job].nodes;
        all <= self.machine.nodes && all * self.machine.watts_per_node <= budget
    }

    fn start(&mut self, job: usize) {
        self.waiting.retain(|other| *other != job);
        self.starts[job] = Some(self.now / SECOND);
        let limit = (self.jobs[job].requested * SECOND).max(1);
        let end = self.now + (self.jobs[job].run_time * SECOND).min(limit);
        self.running.push((job, end, self.stay(job, self.now)));
    }

    fn start_heads(&mut self) {
        while let Some(&head) = self.waiting.first() {
            let stay = self.stay(head, self.now);
            if !self.is_there(head) || !self.fits(&stay, &self.running_stays()) {
                break;
            }
            self.start(head);
        }
    }

    fn easy(&mut self) {
        self.start_heads();
        let Some(&head) = self.waiting.first() else { return };
        let promise = self.earliest(head, &self.running_stays());
        for job in self.waiting.clone().into_iter().skip(1) {
            let mut others = self.running_stays();
            others.extend(promise);
            if self.is_there(job) && self.fits(&self.stay(job, self.now), &others) {
                self.start(job);
            }
        }
    }

    fn others(&self, job: usize) -> Vec<Stay> {
        let promised = self.promised.iter().filter(|p| *p.0 != job).map(|p| *p.1);
        self.running_stays().into_iter().chain(promised).collect()
    }

    fn promise(&mut self, job: usize) {
        match self.earliest(job, &self.others(job)) {
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
            if due && self.is_there(job) {
                self.promised.remove(&job);
                self.start(job);
            }
        }
    }
}
