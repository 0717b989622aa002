//! What is free when, for a schedule in which most reservations move a little all the time.
//!
//! In a long queue a job that ends early lets hundreds of reservations slide forward, each into time
//! that the one before it has just left. So what counts is what a small move costs. The steps of the
//! function are a list in which each reservation knows the steps at which it begins and ends: a slide
//! touches the steps it passes over and no others. Whoever begins at the end of a stretch that came
//! free is woken by it; whoever else could use it is found through [`Openings`].
//!
//! This needs a limit that stays as it is. While limits are to come, the policy plans with
//! [`Availability`](crate::availability::Availability), to which limits are no steps.

use crate::availability::Claim;
use crate::ledger::{Holding, Ledger};
use crate::policy::conservative::openings::{Opening, Openings, class};
use crate::policy::conservative::steps::{Earlier, NONE, Place, Steps, signed};
use crate::units::{Instant, JobId, Span};

/// A job's reservation, or what it holds while it runs.
#[derive(Clone, Copy, Debug)]
struct Booking {
    claim: Claim,
    begin: Place,
    end: Place,
    /// Waiting jobs that begin at the same instant.
    before: Place,
    after: Place,
}

/// A waiting job, as it is looked at to find out whether it is worth more.
#[derive(Clone, Copy, Debug)]
struct Row {
    job: JobId,
    /// Its class, unless it does not wait any more.
    class: Option<u8>,
    time: Span,
    /// How many openings it has seen.
    seen: u64,
}

/// Free nodes and free power from now on, and who takes what of it when.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    steps: Steps,
    bookings: Vec<Option<Booking>>,
    /// The waiting jobs in the order of the queue, and some that have started.
    rows: Vec<Row>,
    /// How many of them have started.
    started: usize,
    /// The jobs, one bit each, that something came free for directly before their reservations since
    /// they were last considered.
    woken: Vec<u64>,
    openings: Openings,
    /// Room for openings that are of no use any more.
    spent: Vec<Opening>,
}

impl Timeline {
    /// So much is free from now on, for ever.
    fn new(now: Instant, nodes: i64, power: i64) -> Self {
        Timeline {
            steps: Steps::new(now, nodes, power),
            bookings: Vec::new(),
            rows: Vec::new(),
            started: 0,
            woken: Vec::new(),
            openings: Openings::new(now),
            spent: Vec::new(),
        }
    }

    /// What the ledger knows, under the limit in force: today's holders give back when they are
    /// expected to.
    pub(super) fn of(ledger: &Ledger) -> Self {
        let power = signed(ledger.for_jobs(ledger.limit())) - signed(ledger.held());
        let mut timeline = Timeline::new(ledger.now(), i64::from(ledger.free_nodes()), power);
        let mut last = timeline.steps.head;
        for holding in ledger.running().iter() {
            let end = timeline.steps.boundary_after(last, holding.until.max(ledger.now()));
            let step = &mut timeline.steps[end];
            step.uses += 1;
            step.nodes += i64::from(holding.nodes);
            step.power += signed(holding.power);
            let claim = Claim {
                nodes: holding.nodes,
                power: holding.power,
                time: holding.until.since(ledger.now()),
            };
            timeline.book(holding.job, Booking { begin: NONE, end, ..Booking::of(claim) });
            last = end;
        }
        timeline
    }

    /// Forgets what lies before `now`.
    pub(super) fn advance(&mut self, now: Instant) {
        // Who could not start at his time goes on waiting at the first step.
        let mut late = self.steps.head;
        while self.steps.from(self.steps[late].after) <= now {
            let next = self.steps[late].after;
            while let Some(job) = self.first(late) {
                let end = self.booking(job).map_or(NONE, |booking| booking.end);
                self.unlink(job);
                self.steps.using(next);
                self.link(job, next, end);
            }
            late = next;
        }
        self.steps.advance(now);
    }

    /// The first of the waiting jobs that begin with a step.
    fn first(&self, step: Place) -> Option<JobId> {
        Some(self.steps[step].first).filter(|first| *first != NONE).map(JobId)
    }

    /// Adds the waiting jobs whose time has come; says when that of the next comes.
    pub(super) fn due(&self, due: &mut Vec<JobId>) -> Option<Instant> {
        let head = self.steps.head;
        let next = |job: &JobId| self.booking(*job).map(|booking| JobId(booking.after));
        due.extend(std::iter::successors(self.first(head), |job| {
            next(job).filter(|job| job.0 != NONE)
        }));
        let mut place = self.steps[head].after;
        while place != NONE && self.steps[place].first == NONE {
            place = self.steps[place].after;
        }
        (place != NONE).then(|| self.steps[place].from)
    }

    fn booking(&self, job: JobId) -> Option<&Booking> {
        self.bookings.get(job.index())?.as_ref()
    }

    fn book(&mut self, job: JobId, booking: Booking) {
        if self.bookings.len() <= job.index() {
            self.bookings.resize(job.index() + 1, None);
            self.woken.resize(job.index() / 64 + 1, 0);
        }
        self.bookings[job.index()] = Some(booking);
    }

    /// A running job gave back, before it was expected to.
    pub(super) fn release(&mut self, back: &Holding) {
        let known = self.booking(back.job).map_or(NONE, |booking| booking.end);
        let end = match known != NONE && self.steps.from(known) == back.until {
            true => known,
            false => {
                let end = self.steps.boundary_after(self.steps.head, back.until);
                self.steps.using(end)
            }
        };
        self.steps.add(self.steps.head, end, i64::from(back.nodes), signed(back.power));
        self.freed(self.steps.head, end);
        self.steps.leave(end);
    }

    /// Reserves the earliest time for a job that has none.
    pub(super) fn reserve(&mut self, job: JobId, claim: &Claim) {
        let earliest = self.steps.earliest(self.steps.head, Instant::NEVER, Instant::NEVER, claim);
        self.book(job, Booking::of(*claim));
        self.enter(job, claim);
        if let Some(earlier) = earliest {
            self.place(job, claim, &earlier);
        }
        self.openings.welcome(claim, earliest.map_or(Instant::NEVER, |earlier| earlier.at));
    }

    fn enter(&mut self, job: JobId, claim: &Claim) {
        let (class, seen) = (Some(class(claim.nodes) as u8), self.openings.made());
        let row = Row { job, class, time: claim.time, seen };
        // Nearly all come in order; not so who was thrown out by a failing node.
        let place = match self.rows.last() {
            Some(last) if last.job >= job => self.rows.partition_point(|row| row.job < job),
            _ => self.rows.len(),
        };
        match self.rows.get_mut(place).filter(|known| known.job == job) {
            Some(known) => {
                self.started -= usize::from(known.class.is_none());
                *known = row;
            }
            None => self.rows.insert(place, row),
        }
    }

    /// A job starts: what is reserved for it is what it holds.
    pub(super) fn start(&mut self, job: JobId) {
        self.unlink(job);
        let place = self.rows.partition_point(|row| row.job < job);
        if let Some(row) = self.rows.get_mut(place).filter(|row| row.job == job) {
            self.started += usize::from(row.class.take().is_some());
        }
        if self.started > self.rows.len() / 4 + 16 {
            self.rows.retain(|row| row.class.is_some());
            self.started = 0;
        }
    }

    /// How many jobs have a reservation, or would have one if there were room.
    pub(super) fn waiting(&self) -> usize {
        self.rows.len() - self.started
    }

    /// Takes what a job claims out of what is free.
    fn place(&mut self, job: JobId, claim: &Claim, earlier: &Earlier) {
        let begin = self.steps.using(earlier.step);
        let end = self.steps.boundary_after(begin, earlier.at + claim.time);
        self.steps.using(end);
        self.steps.add(begin, end, -i64::from(claim.nodes), -signed(claim.power));
        self.link(job, begin, end);
    }

    fn link(&mut self, job: JobId, begin: Place, end: Place) {
        let first = std::mem::replace(&mut self.steps[begin].first, job.0);
        if let Some(Some(booking)) = self.bookings.get_mut(job.index()) {
            (booking.begin, booking.end, booking.before, booking.after) = (begin, end, NONE, first);
        }
        if let Some(Some(next)) = self.bookings.get_mut(first as usize) {
            next.before = job.0;
        }
    }

    fn unlink(&mut self, job: JobId) {
        let Some(&booking) = self.booking(job) else { return };
        if booking.begin == NONE {
            return;
        }
        match self.bookings.get_mut(booking.before as usize) {
            Some(Some(before)) => before.after = booking.after,
            _ => self.steps[booking.begin].first = booking.after,
        }
        if let Some(Some(after)) = self.bookings.get_mut(booking.after as usize) {
            after.before = booking.before;
        }
        if let Some(Some(booking)) = self.bookings.get_mut(job.index()) {
            booking.begin = NONE;
        }
    }

    /// Moves each waiting job, in the order of the queue, to the earliest time that is free for it.
    pub(super) fn compress(&mut self) {
        self.begin();
        let mut next = 0;
        while let Some(place) = self.candidate(next) {
            next = place + 1;
            if let Some(earlier) = self.earlier(place) {
                self.advance_to(self.rows[place].job, &earlier);
            }
        }
        self.finish();
    }

    /// The jobs are about to be considered, one after the other in the order of the queue.
    fn begin(&mut self) {
        let Timeline { steps, bookings, rows, openings, .. } = self;
        let start = |job: JobId| {
            let booking = bookings.get(job.index()).copied().flatten();
            booking.map_or(Instant::NEVER, |booking| steps.from(booking.begin))
        };
        let waiting = rows.iter().filter_map(|row| Some((usize::from(row.class?), row)));
        let waiting = waiting.map(|(class, row)| (class, row.time, start(row.job)));
        openings.begin(steps.now(), waiting);
    }

    /// The next job that may move, from a place in the list of the waiting jobs on.
    fn candidate(&self, from: usize) -> Option<usize> {
        let may_move = |row: &Row| {
            let JobId(job) = row.job;
            let is_woken = || self.woken[job as usize / 64] >> (job % 64) & 1 == 1;
            let has_any = |class: u8| self.openings.has_any(class.into(), row.time, row.seen);
            row.class.is_some_and(|class| has_any(class) || is_woken())
        };
        Some(from + self.rows[from..].iter().position(may_move)?)
    }

    /// All jobs were considered.
    fn finish(&mut self) {
        let mut spent = std::mem::take(&mut self.spent);
        self.openings.finish(&mut spent);
        for opening in spent.drain(..) {
            let is_past = opening.from <= self.steps.now();
            if !is_past && self.steps.from(opening.step) == opening.from {
                self.steps.leave(opening.step);
            } else if is_past && opening.step == self.steps.head {
                let head = self.steps.head;
                self.steps[head].uses = self.steps[head].uses.saturating_sub(1);
            }
        }
        self.spent = spent;
    }

    /// An earlier time for a waiting job than its reservation, the earliest there is.
    fn earlier(&mut self, row: usize) -> Option<Earlier> {
        let Row { job, seen, .. } = self.rows[row];
        let &Booking { claim, begin, .. } = self.booking(job)?;
        let start = self.steps.from(begin);
        let word = self.woken.get_mut(job.index() / 64)?;
        let woken = *word >> (job.0 % 64) & 1 == 1;
        *word &= !(1 << (job.0 % 64));
        let mut earliest = None;
        if woken && begin != NONE {
            let mut place = begin;
            loop {
                let before = self.steps[place].before;
                if before == NONE || !self.steps[before].admits(&claim) {
                    break;
                }
                place = before;
            }
            if place != begin {
                earliest = Some(Earlier { at: self.steps[place].from, step: place });
            }
        }
        let now = self.steps.now();
        let mut asked = self.openings.ask(&claim, seen);
        loop {
            let latest = earliest.map_or(start, |earlier| earlier.at);
            let Some(opening) = self.openings.next(&mut asked, latest) else { break };
            let place = if opening.from <= now { self.steps.head } else { opening.step };
            match self.steps.earliest(place, latest.min(opening.until), start, &claim) {
                Some(earlier) => earliest = Some(earlier),
                None => {
                    // More than it was is not left, so there is no need to look for more.
                    let mut level = self.openings.level_of(&asked);
                    level.longest = level.longest.min(opening.time);
                    let time = self.steps.longest(place, opening.until, &level);
                    self.openings.refuse(&asked, latest, time.min(opening.time));
                }
            }
        }
        self.rows[row].seen = self.openings.made();
        earliest
    }

    /// Moves a reservation to an earlier time, and wakes whoever can use what it leaves.
    fn advance_to(&mut self, job: JobId, earlier: &Earlier) {
        let Some(&Booking { claim, begin, end, .. }) = self.booking(job) else { return };
        let (nodes, power) = (i64::from(claim.nodes), signed(claim.power));
        let at = earlier.at;
        if begin == NONE {
            return self.place(job, &claim, earlier);
        }
        self.unlink(job);
        if at + claim.time <= self.steps[begin].from {
            self.place(job, &claim, earlier);
            self.steps.add(begin, end, nodes, power);
            self.freed(begin, end);
        } else {
            // It slides: between the new begin and the old end it goes on holding what it held.
            let first = self.steps.using(earlier.step);
            self.steps.add(first, begin, -nodes, -power);
            let last = self.steps.boundary_before(end, at + claim.time);
            self.steps.using(last);
            self.steps.add(last, end, nodes, power);
            self.link(job, first, last);
            self.freed(last, end);
        }
        self.steps.leave(begin);
        self.steps.leave(end);
    }

    /// Something came free between two steps.
    fn freed(&mut self, from: Place, until: Place) {
        if from == until {
            return;
        }
        let (mut nodes, mut power) = (0, 0);
        let mut place = from;
        while place != until {
            let step = &self.steps[place];
            (nodes, power) = (step.nodes.max(nodes), step.power.max(power));
            place = step.after;
            // Whoever begins where some of it ends may begin earlier.
            if place != NONE {
                self.wake(self.steps[place].first);
            }
        }
        let hole = (self.steps[from].from, self.steps.from(until));
        // No start before this touches what came free, and no job needs more after it.
        let longest = self.openings.longest();
        let earliest = Instant::from_millis(hole.0.millis().saturating_sub(longest.millis()));
        let (mut first, mut last) = (from, until);
        let later = self.openings.later(hole.0);
        let mut highest = later.largest(self.openings.highest(nodes, power));
        // The fewer nodes, the longer the stretch: it grows where a step has enough for a smaller class.
        while let Some(class) = highest {
            let level = self.openings.level(class);
            let mut before = NONE;
            while self.steps[first].from > earliest {
                before = self.steps[first].before;
                if before == NONE || !self.steps[before].reaches(&level) {
                    break;
                }
                (first, before) = (before, NONE);
            }
            let begin = self.steps[first].from;
            let mut after = NONE;
            while last != NONE && self.steps[last].from.since(begin) < longest {
                after = last;
                if !self.steps[last].reaches(&level) {
                    break;
                }
                (last, after) = (self.steps[last].after, NONE);
            }
            let time = self.steps.from(last).since(begin);
            let smaller = self.reached(before).max(self.reached(after));
            for class in self.openings.suited(&later, smaller, class, time) {
                let (number, refused) = (0, None);
                let opening =
                    Opening { from: begin, until: hole.1, time, step: first, number, refused };
                if self.openings.add(class, opening) {
                    self.steps.using(first);
                }
            }
            highest = later.largest(smaller);
        }
    }

    /// The largest class that a step has enough for.
    fn reached(&self, step: Place) -> Option<usize> {
        if step == NONE {
            return None;
        }
        self.openings.highest(self.steps[step].nodes, self.steps[step].power)
    }

    /// From now on these waiting jobs are to be considered: one, and those that begin with it.
    fn wake(&mut self, mut job: Place) {
        while let Some(Some(booking)) = self.bookings.get(job as usize) {
            self.woken[job as usize / 64] |= 1 << (job % 64);
            job = booking.after;
        }
    }
}

impl Booking {
    fn of(claim: Claim) -> Self {
        Booking { claim, begin: NONE, end: NONE, before: NONE, after: NONE }
    }
}

#[cfg(test)]
mod tests;
