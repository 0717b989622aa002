//! The backfilling engine: EASY's loop, written once for every policy that has one reservation.
//!
//! What differs between such policies is how a job's operating point is chosen; that is a
//! [`Chooser`]. The engine owns the order: heads start while they fit, the first that does not
//! gets the reservation, later jobs may pass without delaying it, by nodes or by watts.
//!
//! Candidates come from the queue's index, so a pass costs what it starts, not what waits.

use crate::availability::{Availability, Claim};
use crate::ledger::{Holding, Vacancy};
use crate::model::OperatingPoint;
use crate::policy::{Decision, Policy, View};
use crate::queue::Fit;
use crate::units::{Instant, JobId, Span, Watts};

/// How a backfilling policy picks a job's operating point.
pub trait Chooser {
    /// Whether a job that was refused stays refused until a job ends or the machine changes.
    /// Then instants at which jobs only arrive need to test the arrivals alone.
    ///
    /// It holds for a choice that depends on the room alone and never grants in a smaller room
    /// what it refused in a larger one: between completions free nodes and power only
    /// fall; a job that backfills ends before the reservation or uses what is left over at it,
    /// so the reservation stays where it is; the window until it closes; and what is left over
    /// at it only falls.
    const REFUSED_STAYS_REFUSED: bool;

    /// The point at which the job is to start now, which the room must admit; `None` to wait.
    fn choose(&mut self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint>;

    /// The point for which the blocked head of the queue gets its reservation.
    fn reserve(&mut self, view: &View<'_>, job: JobId) -> OperatingPoint;
}

/// What a job may use if it starts now.
#[derive(Clone, Debug)]
pub struct Room {
    now: Instant,
    nodes: u32,
    power: Watts,
    /// Time until the reservation.
    window: Span,
    /// What stays free when the reservation begins.
    extra_nodes: u32,
    extra_power: Watts,
    /// Where the budget is going to change: what will be free when, the reservation taken out.
    outlook: Option<Box<Availability>>,
}

impl Room {
    /// All that is free now, with no reservation to respect.
    pub fn of(view: &View<'_>) -> Self {
        let changes = !view.ledger.limits_to_come().is_empty();
        Room {
            now: view.now,
            nodes: view.ledger.free_nodes(),
            power: view.ledger.free_power(),
            window: Span::FOREVER,
            extra_nodes: 0,
            extra_power: Watts::ZERO,
            outlook: changes.then(|| Box::new(Availability::of(view.ledger))),
        }
    }

    /// Free nodes.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Free power.
    pub fn power(&self) -> Watts {
        self.power
    }

    /// Whether a job may start now at `point`.
    #[inline]
    pub fn admits(&self, point: &OperatingPoint) -> bool {
        point.nodes <= self.nodes
            && point.power <= self.power
            && (point.time <= self.window
                || (point.nodes <= self.extra_nodes && point.power <= self.extra_power))
            && self.outlook.as_ref().is_none_or(|free| free.fits(self.now, &Claim::of(point)))
    }

    /// Takes out what a job that was admitted will hold.
    #[inline]
    pub fn take(&mut self, point: &OperatingPoint) {
        if point.time > self.window {
            self.extra_nodes -= point.nodes;
            self.extra_power -= point.power;
        }
        self.nodes -= point.nodes;
        self.power -= point.power;
        if let Some(outlook) = &mut self.outlook {
            outlook.take(self.now, &Claim::of(point));
        }
    }

    fn respect(&mut self, reservation: &Reservation) {
        self.window = reservation.at.since(self.now);
        self.extra_nodes = reservation.extra_nodes;
        self.extra_power = reservation.extra_power;
    }

    /// The room in the terms of the queue's index, which knows nodes only: watts count as the
    /// nodes they can feed.
    #[inline]
    fn fit(&self, least_node_power: Watts) -> Fit {
        let fed = |nodes: u32, power: Watts| {
            if least_node_power.checked_mul(nodes).is_some_and(|needed| needed <= power) {
                nodes
            } else {
                (power.milliwatts() / least_node_power.milliwatts()).min(u64::from(nodes)) as u32
            }
        };
        Fit {
            free: fed(self.nodes, self.power),
            extra: fed(self.extra_nodes, self.extra_power),
            window: self.window,
        }
    }
}

/// The one promise of EASY: when the head of the queue will start, and what is left over then.
#[derive(Clone, Copy, Debug)]
struct Reservation {
    at: Instant,
    extra_nodes: u32,
    extra_power: Watts,
}

/// EASY backfilling with a plugged-in choice of operating points.
#[derive(Clone, Debug, Default)]
pub struct Backfill<C> {
    chooser: C,
    /// The promise to the present head of the queue, if it is blocked.
    reservation: Option<Reservation>,
    /// What jobs started in this pass will hold, soonest back first.
    started: Vec<Holding>,
}

impl<C: Chooser> Backfill<C> {
    /// The engine with this choice.
    pub fn new(chooser: C) -> Self {
        Backfill { chooser, reservation: None, started: Vec::new() }
    }

    /// Tests only the jobs that just arrived; all others were refused and still are.
    fn admit_arrivals(
        &mut self,
        view: &View<'_>,
        mut room: Room,
        mut reservation: Reservation,
        decisions: &mut Vec<Decision>,
    ) {
        room.respect(&reservation);
        for &job in view.changes.arrived {
            if let Some(point) = self.chooser.choose(view, job, &room) {
                room.take(&point);
                decisions.push(Decision::Start { job, point });
            }
        }
        reservation.extra_nodes = room.extra_nodes;
        reservation.extra_power = room.extra_power;
        self.reservation = Some(reservation);
    }

    /// Starts jobs from the head of the queue while they fit; returns the first that does not.
    fn start_heads(
        &mut self,
        view: &View<'_>,
        room: &mut Room,
        decisions: &mut Vec<Decision>,
    ) -> Option<JobId> {
        self.started.clear();
        let mut head = view.queue.head();
        while let Some(job) = head {
            let Some(point) = self.chooser.choose(view, job, room) else { break };
            room.take(&point);
            decisions.push(Decision::Start { job, point });
            let until = view.now + point.time;
            self.started.push(Holding { until, job, nodes: point.nodes, power: point.power });
            head = view.queue.at_or_after(JobId(job.0 + 1));
        }
        self.started.sort_unstable_by_key(|holding| (holding.until, holding.job));
        head
    }

    /// Promises the head of the queue the earliest time at which it is expected to fit. If it
    /// fits at none (nodes are down), nobody can delay it.
    fn reserve(&mut self, view: &View<'_>, room: &mut Room, head: JobId) {
        let point = self.chooser.reserve(view, head);
        let mut reservation =
            Reservation { at: Instant::NEVER, extra_nodes: 0, extra_power: Watts::ZERO };
        if let Some(outlook) = &mut room.outlook {
            let claim = Claim::of(&point);
            if let Some(at) = outlook.earliest(view.now, &claim) {
                outlook.take(at, &claim);
                let (extra_nodes, extra_power) = outlook.at(at);
                reservation = Reservation { at, extra_nodes, extra_power };
            }
        } else {
            let now = Vacancy { at: view.now, nodes: room.nodes, power: room.power };
            let running = view.ledger.running();
            if let Some(then) = running.vacancy(now, &self.started, point.nodes, point.power) {
                reservation = Reservation {
                    at: then.at,
                    extra_nodes: then.nodes - point.nodes,
                    extra_power: then.power - point.power,
                };
            }
        }
        room.respect(&reservation);
        self.reservation = Some(reservation);
    }

    /// Starts whoever may pass the blocked head.
    fn backfill(
        &mut self,
        view: &View<'_>,
        room: &mut Room,
        head: JobId,
        decisions: &mut Vec<Decision>,
    ) {
        let least_node_power = view.model.least_node_power();
        let mut from = head;
        while let Some(job) = view.queue.next_fit(JobId(from.0 + 1), &room.fit(least_node_power)) {
            if let Some(point) = self.chooser.choose(view, job, room) {
                room.take(&point);
                decisions.push(Decision::Start { job, point });
            }
            from = job;
        }
    }
}

impl<C: Chooser> Policy for Backfill<C> {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let mut room = Room::of(view);
        let only_arrivals =
            C::REFUSED_STAYS_REFUSED && view.changes.nothing_freed() && room.outlook.is_none();
        if let Some(reservation) = self.reservation.take_if(|_| only_arrivals) {
            return self.admit_arrivals(view, room, reservation, decisions);
        }
        self.reservation = None;
        let Some(head) = self.start_heads(view, &mut room, decisions) else { return };
        self.reserve(view, &mut room, head);
        self.backfill(view, &mut room, head, decisions);
        if let Some(reservation) = &mut self.reservation {
            reservation.extra_nodes = room.extra_nodes;
            reservation.extra_power = room.extra_power;
        }
    }
}
