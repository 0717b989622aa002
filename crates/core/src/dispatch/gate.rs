//! Who may wait in the policy's queue at all: the limits of a site, for any policy.
//!
//! Rule: of jobs of one user, account, quality of service and partition that ask for the same, those submitted first wait in the
//! queue, and no more of them than could start now within all limits. All others are set aside. When a job starts, others
//! that have no room any more are set aside at once; when one ends, those come back that have room again.
//!
//! Jobs that ask for the same are of one *kind*, and a limit knows the kinds of the jobs that it counts, so what a start or an end
//! costs does not grow with the queue. While a limit has room for all that wait, nobody looks at it.

use std::collections::{BTreeSet, HashMap};

use crate::job::{ApplicationId, Terms};
use crate::limits::{Asks, Bound, Class, Exceeded, Limits, Subject, Tres, TresLimit};
use crate::units::{Instant, JobId, Span};

mod bookings;

use bookings::{Bookings, Stay};

/// What is counted of somebody's jobs.
#[derive(Clone, Debug)]
struct Counter {
    /// How many run, and what they have together.
    running: u32,
    used: Tres,
    /// How many wait or run.
    submitted: u32,
    /// Of those that wait: how many, what they ask for together, and of which kinds they are.
    waiting: u32,
    wanted: Tres,
    kinds: BTreeSet<u32>,
    /// The tightest limits that anybody has to keep here.
    jobs: u32,
    tres: TresLimit,
}

impl Counter {
    const NEW: Counter = Counter {
        running: 0,
        used: Tres([0; 4]),
        submitted: 0,
        waiting: 0,
        wanted: Tres([0; 4]),
        kinds: BTreeSet::new(),
        jobs: u32::MAX,
        tres: TresLimit::NONE,
    };

    /// Whether all that wait could start.
    fn is_loose(&self) -> bool {
        let mut all = self.used;
        all.add(&self.wanted);
        self.jobs.saturating_sub(self.running) >= self.waiting && self.tres.allows(&all)
    }
}

/// A limit on a counter.
#[derive(Clone, Copy, Debug)]
struct Check {
    counter: u32,
    jobs: u32,
    tres: TresLimit,
}

/// Jobs for which the same limits hold.
#[derive(Clone, Debug)]
struct Holder {
    checks: Vec<Check>,
    submits: Vec<(u32, u32)>,
    rules: Class,
}

/// Jobs that ask for the same under the same limits.
#[derive(Clone, Debug)]
struct Kind {
    holder: u32,
    tres: Tres,
    time: Span,
    /// The reservation that they name.
    named: Option<u32>,
    /// Those that wait in the policy's queue, or are about to.
    shown: BTreeSet<JobId>,
    /// The others that wait.
    aside: BTreeSet<JobId>,
}

impl Kind {
    /// What they ask of reservations.
    fn stay(&self) -> Stay {
        Stay { nodes: self.tres.0[1], time: self.time, named: self.named }
    }
}

/// What jobs of a kind have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Alike {
    holder: u32,
    tres: Tres,
    time: Span,
    nodes: u32,
    application: Option<ApplicationId>,
    terms: Terms,
    nice: i32,
    reservation: Option<u32>,
}

/// The limits that jobs have to keep, and those that wait for room under them.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    kind_of: Vec<u32>,
    kinds: Vec<Kind>,
    holders: Vec<Holder>,
    counters: Vec<Counter>,
    /// Those that come back into the queue before the policy is asked again.
    coming: BTreeSet<JobId>,
    /// Those that leave the queue.
    leaving: Vec<JobId>,
    aside: usize,
    bookings: Bookings,
    /// The kinds of all that wait, where there are reservations.
    waiting: BTreeSet<u32>,
}

/// Numbers things in the order in which they come.
fn number<T: std::hash::Hash + Eq>(known: &mut HashMap<T, u32>, one: T) -> (u32, bool) {
    let next = known.len() as u32;
    let place = *known.entry(one).or_insert(next);
    (place, place == next)
}

impl Gate {
    /// For these jobs, in the order of their places.
    pub(crate) fn new<'a>(
        limits: &Limits,
        nodes: u32,
        jobs: impl Iterator<Item = Asks<'a>>,
    ) -> Self {
        let mut gate = Gate {
            kind_of: Vec::new(),
            kinds: Vec::new(),
            holders: Vec::new(),
            counters: Vec::new(),
            coming: BTreeSet::new(),
            leaving: Vec::new(),
            aside: 0,
            bookings: Bookings::new(&limits.reservations, nodes.into()),
            waiting: BTreeSet::new(),
        };
        let mut subjects: HashMap<Subject, u32> = HashMap::new();
        let mut holders = HashMap::new();
        let mut kinds: HashMap<Alike, u32> = HashMap::new();
        for asks in jobs {
            let job = asks.job;
            let (holder, is_new) =
                number(&mut holders, (job.user, job.group, job.entry, asks.array));
            if is_new {
                gate.add_holder(limits.class(&asks), &mut subjects);
            }
            let (tres, time) = (asks.tres, job.requested);
            let (nodes, application, terms) = (job.nodes, job.application, job.terms);
            let (nice, reservation) = (asks.nice, asks.reservation);
            let alike = Alike { holder, tres, time, nodes, application, terms, nice, reservation };
            let (kind, is_new) = number(&mut kinds, alike);
            if is_new {
                let (shown, aside) = (BTreeSet::new(), BTreeSet::new());
                gate.kinds.push(Kind { holder, tres, time, named: reservation, shown, aside });
            }
            gate.kind_of.push(kind);
        }
        gate
    }

    fn add_holder(&mut self, rules: Class, subjects: &mut HashMap<Subject, u32>) {
        let counters = &mut self.counters;
        let mut counter = |of: Subject| {
            let (counter, is_new) = number(subjects, of);
            if is_new {
                counters.push(Counter::NEW);
            }
            counter
        };
        let submits = rules.submits.iter().map(|(of, most)| (counter(*of), *most)).collect();
        let checks: Vec<Check> = (rules.bounds.iter())
            .map(|Bound { of, jobs, tres }| Check {
                counter: counter(*of),
                jobs: jobs.unwrap_or(u32::MAX),
                tres: *tres,
            })
            .collect();
        for check in &checks {
            let counter = &mut self.counters[check.counter as usize];
            counter.jobs = counter.jobs.min(check.jobs);
            for (most, other) in counter.tres.0.iter_mut().zip(check.tres.0) {
                *most = (*most).min(other);
            }
        }
        self.holders.push(Holder { checks, submits, rules });
    }

    fn kind(&self, job: JobId) -> &Kind {
        &self.kinds[self.kind_of[job.index()] as usize]
    }

    fn holder(&self, job: JobId) -> &Holder {
        &self.holders[self.kind(job).holder as usize]
    }

    /// A job is submitted. It is refused if too many are, or if it could never run; and then it may count as submitted for
    /// ever.
    pub(crate) fn submit(&mut self, job: JobId) -> Result<(), Exceeded> {
        let Kind { tres, time, .. } = *self.kind(job);
        let holder = self.holder(job);
        let is_full =
            |(counter, most): &(u32, u32)| self.counters[*counter as usize].submitted >= *most;
        if holder.submits.iter().any(is_full) {
            return Err(Exceeded::Submitted);
        }
        let rules = &holder.rules;
        let never = if rules.job.wall.is_some_and(|wall| time > wall) {
            Some(Exceeded::Wall)
        } else if tres.0.iter().zip(rules.job.least.0).any(|(has, least)| *has < least) {
            Some(Exceeded::Least)
        } else {
            let fits = |bound: &Bound| bound.tres.allows(&tres) && bound.jobs != Some(0);
            let is_small = rules.job.most.allows(&tres) && rules.bounds.iter().all(fits);
            (!is_small).then_some(Exceeded::Size)
        };
        let counts = never.is_none() || !rules.denies;
        for place in 0..self.holder(job).submits.len() {
            let counter = self.holder(job).submits[place].0;
            self.counters[counter as usize].submitted += u32::from(counts);
        }
        never.map_or(Ok(()), Err)
    }

    /// A job that was submitted is over.
    pub(crate) fn is_over(&mut self, job: JobId) {
        let holder = self.kind(job).holder as usize;
        for (counter, _) in &self.holders[holder].submits {
            let submitted = &mut self.counters[*counter as usize].submitted;
            *submitted = submitted.saturating_sub(1);
        }
    }

    /// A job waits from now on. It comes into the queue if it has room.
    pub(crate) fn enter(&mut self, job: JobId) {
        let place = self.kind_of[job.index()];
        self.wait(place, job);
        self.refresh(place);
    }

    fn wait(&mut self, place: u32, job: JobId) {
        let kind = &mut self.kinds[place as usize];
        if !self.bookings.is_empty() && self.waiting.insert(place) {
            self.bookings.wait(place, &kind.stay());
        }
        kind.aside.insert(job);
        self.aside += 1;
        for check in &self.holders[kind.holder as usize].checks {
            let counter = &mut self.counters[check.counter as usize];
            counter.waiting += 1;
            counter.wanted.add(&kind.tres);
            counter.kinds.insert(place);
        }
    }

    /// A job does not wait any more: it starts, or is given up.
    fn leave(&mut self, place: u32, job: JobId) {
        let kind = &mut self.kinds[place as usize];
        let was_aside = kind.aside.remove(&job);
        self.aside -= usize::from(was_aside);
        if !was_aside && !kind.shown.remove(&job) {
            return;
        }
        self.coming.remove(&job);
        let is_last = kind.aside.is_empty() && kind.shown.is_empty();
        if is_last {
            self.waiting.remove(&place);
        }
        for check in &self.holders[kind.holder as usize].checks {
            let counter = &mut self.counters[check.counter as usize];
            counter.waiting -= 1;
            counter.wanted.take(&kind.tres);
            if is_last {
                counter.kinds.remove(&place);
            }
        }
    }

    /// A job that waits is given up.
    pub(crate) fn dropped(&mut self, job: JobId) {
        let place = self.kind_of[job.index()];
        self.leave(place, job);
        self.refresh(place);
    }

    /// A job that waited starts.
    pub(crate) fn started(&mut self, job: JobId) {
        let place = self.kind_of[job.index()];
        self.leave(place, job);
        if !self.bookings.is_empty() {
            self.bookings.started(job, &self.kinds[place as usize].stay());
            self.look_at_all();
        }
        self.count(place, |counter, tres| {
            counter.running += 1;
            counter.used.add(tres);
        });
    }

    /// A job that ran gives back what it has.
    pub(crate) fn ended(&mut self, job: JobId) {
        let place = self.kind_of[job.index()];
        if self.bookings.ended(job, &self.kinds[place as usize].stay()) {
            self.look_at_all();
        }
        self.count(place, |counter, tres| {
            counter.running -= 1;
            counter.used.take(tres);
        });
    }

    /// Looks at everybody who waits: a reservation has more room, or less.
    fn look_at_all(&mut self) {
        self.waiting.clone().into_iter().for_each(|place| self.refresh(place));
    }

    /// Time has passed.
    pub(crate) fn advance(&mut self, now: Instant) {
        for place in self.bookings.advance(now) {
            self.refresh(place);
        }
    }

    /// When a reservation begins or ends next, while anybody waits outside of the queue.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.bookings.next().filter(|_| self.aside > 0)
    }

    /// Changes the counters of a kind, and looks at whoever is concerned.
    fn count(&mut self, place: u32, change: impl Fn(&mut Counter, &Tres)) {
        let kind = &self.kinds[place as usize];
        let (tres, holder) = (kind.tres, kind.holder as usize);
        // Its own kind has one job less that waits, or more room.
        let mut concerned = BTreeSet::from([place]);
        for check in &self.holders[holder].checks {
            let counter = &mut self.counters[check.counter as usize];
            let was_loose = counter.is_loose();
            change(counter, &tres);
            if !was_loose || !counter.is_loose() {
                concerned.extend(&counter.kinds);
            }
        }
        concerned.into_iter().for_each(|place| self.refresh(place));
    }

    /// How many jobs of a kind could start now.
    fn room(&self, kind: &Kind) -> u64 {
        let of = |check: &Check| {
            let counter = &self.counters[check.counter as usize];
            let jobs = match check.jobs {
                u32::MAX => u64::MAX,
                most => most.saturating_sub(counter.running).into(),
            };
            jobs.min(check.tres.times(&counter.used, &kind.tres))
        };
        let within = self.holders[kind.holder as usize].checks.iter().map(of).min();
        within.unwrap_or(u64::MAX).min(self.bookings.room(&kind.stay()))
    }

    /// Shows as many jobs of a kind as have room.
    fn refresh(&mut self, place: u32) {
        let room = self.room(&self.kinds[place as usize]);
        let kind = &mut self.kinds[place as usize];
        let mut shown = kind.shown.len() as u64;
        while shown < room
            && let Some(job) = kind.aside.pop_first()
        {
            kind.shown.insert(job);
            self.coming.insert(job);
            self.aside -= 1;
            shown += 1;
        }
        // Whoever was submitted first waits in the queue.
        while let (Some(last), Some(first)) =
            (kind.shown.last().copied(), kind.aside.first().copied())
            && first < last
            && shown <= room
        {
            kind.aside.remove(&first);
            kind.shown.insert(first);
            self.coming.insert(first);
            hide(kind, last, &mut self.coming, &mut self.leaving);
        }
        while shown > room
            && let Some(last) = kind.shown.last().copied()
        {
            hide(kind, last, &mut self.coming, &mut self.leaving);
            self.aside += 1;
            shown -= 1;
        }
    }

    /// Whether a job waits outside of the queue.
    pub(crate) fn is_aside(&self, job: JobId) -> bool {
        self.kind(job).aside.contains(&job)
    }

    /// How many jobs wait outside of the queue.
    pub(crate) fn aside(&self) -> usize {
        self.aside + self.coming.len()
    }

    /// Whether anybody comes into the queue before the policy is asked again.
    pub(crate) fn has_coming(&self) -> bool {
        !self.coming.is_empty()
    }

    /// Those that come into the queue, in order.
    pub(crate) fn take_coming(&mut self) -> BTreeSet<JobId> {
        std::mem::take(&mut self.coming)
    }

    /// One that leaves the queue.
    pub(crate) fn take_leaving(&mut self) -> Option<JobId> {
        self.leaving.pop()
    }
}

/// Takes a job out of the queue, or out of those that come into it.
fn hide(kind: &mut Kind, job: JobId, coming: &mut BTreeSet<JobId>, leaving: &mut Vec<JobId>) {
    kind.shown.remove(&job);
    kind.aside.insert(job);
    if !coming.remove(&job) {
        leaving.push(job);
    }
}
