//! Reservations: nodes that are kept free for a while, for jobs that name the reservation or for nobody.
//!
//! Which nodes these are does not matter: others may hold as many as the machine has beside them. Whoever is expected to run
//! into a reservation counts as on its nodes, or beside them, from the start.

use std::collections::{BTreeSet, HashMap};

use crate::limits::Reservation;
use crate::units::{Instant, JobId, Span};

/// A reservation, and who is in it or beside it.
#[derive(Clone, Debug)]
struct Booking {
    reservation: Reservation,
    /// Nodes of its own jobs that run.
    own: u64,
    /// Nodes of other jobs that run, and are expected to run into it.
    others: u64,
}

/// All reservations.
#[derive(Clone, Debug, Default)]
pub(super) struct Bookings {
    all: Vec<Booking>,
    /// The nodes of the machine.
    nodes: u64,
    /// What each running job is counted in.
    counted: HashMap<JobId, Vec<usize>>,
    now: Instant,
    /// When somebody who waits begins to be expected to run into one.
    turns: BTreeSet<(Instant, u32)>,
}

/// What a job asks of reservations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay {
    pub(super) nodes: u64,
    pub(super) time: Span,
    /// The reservation that it names.
    pub(super) named: Option<u32>,
}

impl Booking {
    fn is_own(&self, stay: &Stay) -> bool {
        stay.named == Some(self.reservation.number)
    }

    /// Whether a job would be there while it lasts.
    fn meets(&self, stay: &Stay, now: Instant) -> bool {
        now < self.reservation.end && now + stay.time > self.reservation.start
    }
}

impl Bookings {
    pub(super) fn new(reservations: &[Reservation], nodes: u64) -> Self {
        let all = reservations.iter().map(|reservation| Booking {
            reservation: Reservation { nodes: reservation.nodes.min(nodes), ..reservation.clone() },
            own: 0,
            others: 0,
        });
        Bookings { all: all.collect(), nodes, ..Bookings::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many such jobs could start now.
    pub(super) fn room(&self, stay: &Stay) -> u64 {
        let nodes = stay.nodes.max(1);
        let of = |booking: &Booking| {
            let Reservation { start, end, nodes: booked, .. } = booking.reservation;
            match booking.is_own(stay) {
                true if self.now < start || self.now + stay.time > end => 0,
                true => booked.saturating_sub(booking.own) / nodes,
                false if !booking.meets(stay, self.now) => u64::MAX,
                false => (self.nodes - booked).saturating_sub(booking.others) / nodes,
            }
        };
        self.all.iter().map(of).min().unwrap_or(u64::MAX)
    }

    /// A job starts.
    pub(super) fn started(&mut self, job: JobId, stay: &Stay) {
        let mut counted = Vec::new();
        for (place, booking) in self.all.iter_mut().enumerate() {
            if booking.is_own(stay) {
                booking.own += stay.nodes;
                counted.push(place);
            } else if booking.meets(stay, self.now) {
                booking.others += stay.nodes;
                counted.push(place);
            }
        }
        if !counted.is_empty() {
            self.counted.insert(job, counted);
        }
    }

    /// A job ends; says whether it was in the way of others.
    pub(super) fn ended(&mut self, job: JobId, stay: &Stay) -> bool {
        let Some(counted) = self.counted.remove(&job) else { return false };
        for place in counted {
            let booking = &mut self.all[place];
            let nodes = match booking.is_own(stay) {
                true => &mut booking.own,
                false => &mut booking.others,
            };
            *nodes = nodes.saturating_sub(stay.nodes);
        }
        true
    }

    /// Jobs of a kind begin to wait.
    pub(super) fn wait(&mut self, kind: u32, stay: &Stay) {
        for booking in &self.all {
            let Reservation { start, end, .. } = booking.reservation;
            // From then on, it would run into it, or beyond its end.
            let edge = if booking.is_own(stay) { end } else { start };
            let before = edge.millis().checked_sub(stay.time.millis());
            let turn = before.map(|at| Instant::from_millis(at.saturating_add(1)));
            let turns = [turn, Some(start), Some(end)].into_iter().flatten();
            self.turns.extend(turns.filter(|at| *at > self.now).map(|at| (at, kind)));
        }
    }

    /// The kinds that something changes for when time passes.
    pub(super) fn advance(&mut self, now: Instant) -> Vec<u32> {
        self.now = now;
        let later = self.turns.split_off(&(Instant::from_millis(now.millis() + 1), 0));
        std::mem::replace(&mut self.turns, later).into_iter().map(|turn| turn.1).collect()
    }

    /// When one begins or ends next.
    pub(super) fn next(&self) -> Option<Instant> {
        let times = self
            .all
            .iter()
            .flat_map(|booking| [booking.reservation.start, booking.reservation.end]);
        times.filter(|at| *at > self.now && *at != Instant::NEVER).min()
    }
}
