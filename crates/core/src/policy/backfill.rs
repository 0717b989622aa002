//! The backfilling engine: EASY's loop, written once for every policy that has one reservation.
//!
//! What differs between such policies is how a job's operating point is chosen, which is a
//! [`Chooser`], and in which order jobs are looked at, which is an [`Order`]. The engine owns the rest:
//! heads start while they fit, the first that does not gets the reservation, later jobs may pass without
//! delaying it, by nodes or by watts.
//!
//! Candidates come from the queue's index, so that a pass costs what it tries, not what waits. How
//! much it tries in vain depends on how well a chooser's candidates match its choices.

mod seats;
mod widths;

use smallvec::SmallVec;

use crate::availability::{Availability, Below, Claim, Tenure};
use crate::ledger::{Holding, Vacancy};
use crate::model::{OperatingPoint, Rung};
use crate::policy::order::{self, Aged, History, Keyed};
use crate::policy::{
    BuildContext, Decision, Multifactor, Order, OrderSpec, OrderedBy, PastJob, Policy, Predictions,
    Submission, View,
};
use crate::priority::Standing;
use crate::queue::Fit;
use crate::units::{Instant, JobId, Span, Watts};
use seats::{Notes, Places};

/// How a backfilling policy picks a job's operating point.
///
/// A choice must not grant later, in a smaller room, what it refused before, unless jobs were
/// started meanwhile and it says so ([`Chooser::refusals_outlive_starts`]): between completions free nodes and power only fall; a job that backfills ends
/// before the reservation or uses what is left over at it, so the reservation stays where it is;
/// the window until it closes; and what is left over at it only falls. So instants at which jobs
/// only arrive need to test the arrivals alone.
pub trait Chooser {
    /// The point at which the job is to start now, which the room must admit; `None` to wait.
    fn choose(&mut self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint>;

    /// The point for which the blocked head of the queue gets its reservation, and when that is
    /// expected to fit; `None` if it never does.
    fn reserve(
        &mut self,
        view: &View<'_>,
        job: JobId,
        ahead: &Ahead<'_>,
    ) -> Option<(OperatingPoint, Vacancy)>;

    /// The first waiting job after this one, in the order of the queue, that may be worth asking
    /// [`Chooser::choose`] about. It may name too many, never too few.
    #[inline]
    fn candidate<O: Order>(
        &mut self,
        view: &View<'_>,
        order: &O,
        after: JobId,
        room: &Room,
    ) -> Option<JobId> {
        let nominal = &view.model.rungs()[0];
        match room.is_changing() {
            false => order.next_fit(view, after, &[room.fit(nominal)]),
            true => order.next_fit(view, after, &room.fits(std::iter::once(nominal))),
        }
    }

    /// Whether what was refused in a turn, which began with jobs holding so much, stays refused
    /// although jobs were started in it. It does if a choice depends on the room alone.
    #[inline]
    fn refusals_outlive_starts(&self, _view: &View<'_>, _held: Watts) -> bool {
        true
    }

    /// Whether what was refused stays refused when jobs only arrive. It does if a choice does not depend on
    /// who else waits.
    #[inline]
    fn refusals_outlive_arrivals(&self) -> bool {
        true
    }

    /// Whether the promise to the head of the queue stays as it is when jobs end that were expected to end before it. It does if
    /// the head gets its promise for the same point whoever else runs or waits.
    #[inline]
    fn promises_outlive_ends(&self) -> bool {
        false
    }

    /// Whether every job starts at its nominal point or not at all.
    #[inline]
    fn starts_as_asked(&self) -> bool {
        false
    }

    /// Watts that running jobs would give up for one that starts.
    #[inline]
    fn reclaimable(&self, _view: &View<'_>) -> Watts {
        Watts::ZERO
    }

    /// The same over time, while limits are to come: adds to what is free what running jobs would give up.
    #[inline]
    fn reclaim(&self, _view: &View<'_>, _free: &mut Availability) {}

    /// A turn begins. The order knows of all jobs that arrived.
    #[inline]
    fn begin<O: Order>(&mut self, _view: &View<'_>, _order: &O) {}

    /// A job does not wait any more: it was chosen and starts, or it is withdrawn.
    #[inline]
    fn left(&mut self, _job: JobId) {}
}

/// What a job may use if it starts now.
#[derive(Clone, Debug)]
pub struct Room {
    now: Instant,
    nodes: u32,
    power: Watts,
    /// What jobs hold, with those that are about to start.
    held: Watts,
    /// Time until the reservation.
    window: Span,
    /// What stays free when the reservation begins.
    extra_nodes: u32,
    extra_power: Watts,
    /// Where the budget is going to change, or feeds have limits: what comes of that.
    outlook: Option<Box<Outlook>>,
    /// Where nodes are of several kinds, or jobs share them: which ones the job can have that is asked about.
    places: Option<Box<Places>>,
}

/// What is free while limits are to come, or below feeds, the reservation taken out.
#[derive(Clone, Debug)]
struct Outlook {
    /// Free nodes and power over time.
    free: Availability,
    /// From now on, by how long.
    tenure: Tenure,
    /// The same below feeds, where these have limits.
    below: Option<Below>,
}

impl Outlook {
    fn of(view: &View<'_>) -> Box<Self> {
        let free = Availability::of(view.ledger);
        // Where jobs ask for certain nodes, their places know what feeds have left.
        let below = view.ledger.seating().is_none().then(|| Below::of(view.ledger)).flatten();
        Box::new(Outlook { tenure: free.tenure(), below, free })
    }

    /// Whether a claim fits that begins now.
    fn admits(&self, now: Instant, claim: &Claim) -> bool {
        let admits = self.tenure.admits(now, claim);
        debug_assert_eq!(admits, self.free.fits(now, claim));
        admits && self.below.as_ref().is_none_or(|below| below.admits(now, claim))
    }

    fn take(&mut self, now: Instant, claim: &Claim) {
        self.free.take(now, claim);
        self.tenure.take(now, claim);
        if let Some(below) = &mut self.below {
            below.take(now, claim);
        }
    }

    fn promise(&mut self, then: Instant, claim: &Claim) {
        self.free.take(then, claim);
        self.tenure = self.free.tenure();
        if let Some(below) = &mut self.below {
            below.promise(then, claim);
        }
    }

    /// The first instant from which a claim fits.
    fn earliest(&self, now: Instant, claim: &Claim) -> Option<Instant> {
        match &self.below {
            Some(below) => below.earliest(&self.free, now, claim),
            None => self.free.earliest(now, claim),
        }
    }
}

/// More steps of what can be held for how long are not told apart in the terms of the queue's index.
const MOST_STEPS: usize = 4;

impl Room {
    /// All that is free now, with no reservation to respect.
    pub fn of(view: &View<'_>) -> Self {
        Room { places: Places::of(view, None), ..Room::of_machine(view) }
    }

    /// Whichever nodes are free.
    #[inline]
    pub(super) fn of_machine(view: &View<'_>) -> Self {
        Room {
            now: view.now,
            nodes: view.ledger.free_nodes(),
            power: view.ledger.free_power(),
            held: view.ledger.held(),
            window: Span::FOREVER,
            extra_nodes: 0,
            extra_power: Watts::ZERO,
            outlook: (!view.ledger.is_steady()).then(|| Outlook::of(view)),
            places: None,
        }
    }

    /// The same, with what was found out about nodes in the turn before.
    fn knowing(view: &View<'_>, notes: &mut Option<Box<Notes>>) -> Self {
        match notes.take() {
            None => Room::of(view),
            notes => Room { places: Places::of(view, notes), ..Room::of_machine(view) },
        }
    }

    /// From now on, this job is asked about. It matters only where jobs cannot have any nodes.
    #[inline]
    pub fn ask_about(&mut self, job: JobId) {
        if let Some(places) = &mut self.places {
            places.ask_about(job);
        }
    }

    /// Finds out when the job that is asked about will find its nodes, if nobody else starts.
    #[inline]
    pub(super) fn look_ahead(&mut self, view: &View<'_>) {
        if let Some(places) = &mut self.places {
            places.look_ahead(view);
        }
    }

    /// Something is new since the turn before, of which it knows something.
    #[inline]
    fn go_on(&mut self, view: &View<'_>) {
        if let Some(places) = &mut self.places {
            places.go_on(&view.changes);
        }
    }

    /// Whatever was refused in turns before may be there.
    #[inline]
    fn forget(&mut self) {
        if let Some(places) = &mut self.places {
            places.forget();
        }
    }

    /// Begins to look at those behind the head of the queue who start at their nominal points or not at all; says whether it can.
    #[inline]
    fn look_by_width(&mut self, view: &View<'_>, head: JobId) -> bool {
        if self.places.is_none() || self.is_changing() {
            return false;
        }
        let fit = self.fit(&view.model.rungs()[0]);
        // Watts come free with nodes of any kind.
        let all = view.ledger.limit().limited().is_some();
        self.places.as_mut().is_some_and(|places| places.look(view, head, all, &fit))
    }

    /// The next of them that may fit.
    #[inline]
    fn next_by_width(&mut self, view: &View<'_>) -> Option<JobId> {
        let fit = self.fit(&view.model.rungs()[0]);
        self.places.as_mut()?.next(view, &fit)
    }

    /// The promise to the head of the queue, if it stands although jobs ended: where watts have no limit, those on nodes of other
    /// kinds change nothing but what is left over.
    #[inline(always)]
    fn still_promised(
        &self,
        view: &View<'_>,
        head: JobId,
        promise: Reservation,
    ) -> Option<Reservation> {
        let Some(places) = self.places.as_ref().filter(|_| view.ledger.limit().limited().is_none())
        else {
            return promise.outlives(view, |_| false).then_some(promise);
        };
        if !promise.outlives(view, |job| places.are_apart(job, head)) {
            return None;
        }
        let later = view.changes.released.iter().filter(|holding| holding.until > promise.at);
        Some(later.fold(promise, |promise, holding| Reservation {
            extra_nodes: promise.extra_nodes + holding.nodes,
            extra_power: promise.extra_power + holding.power,
            ..promise
        }))
    }

    /// Whether it is known that there are no nodes for a job, whatever it draws.
    #[inline]
    fn is_refused(&self, job: JobId) -> bool {
        self.places.as_ref().is_some_and(|places| places.is_refused(job))
    }

    /// The same, with watts that running jobs would give up.
    fn with(mut self, view: &View<'_>, chooser: &impl Chooser) -> Self {
        let reclaimable = chooser.reclaimable(view);
        if let Some(outlook) = self.outlook.as_mut().filter(|_| reclaimable > Watts::ZERO) {
            chooser.reclaim(view, &mut outlook.free);
            outlook.tenure = outlook.free.tenure();
        }
        // Where jobs hold more than the limit, what they give up goes to that first.
        let over = view.ledger.power().saturating_sub(view.ledger.limit());
        Room {
            power: self.power.saturating_add(reclaimable.saturating_sub(over)),
            held: self.held.saturating_sub(reclaimable),
            ..self
        }
    }

    /// Free nodes.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Nodes that are free now, and that stay free when the reservation begins, whatever power
    /// there is for them.
    #[inline]
    pub(super) fn most_nodes(&self) -> (u32, u32) {
        (self.nodes, self.extra_nodes)
    }

    /// Free power.
    pub fn power(&self) -> Watts {
        self.power
    }

    /// Of the free nodes and the free power, what stays free when the reservation begins; all of
    /// it while there is none to respect.
    #[inline]
    pub fn unreserved(&self) -> (u32, Watts) {
        if self.window == Span::FOREVER {
            return (self.nodes, self.power);
        }
        (self.nodes.min(self.extra_nodes), self.power.min(self.extra_power))
    }

    /// Power held by all jobs that run or are about to start.
    #[inline]
    pub fn held(&self) -> Watts {
        self.held
    }

    /// Whether a job may start now at `point`.
    #[inline(always)]
    pub fn admits(&self, point: &OperatingPoint) -> bool {
        self.longest(point.nodes, point.power).is_some_and(|longest| point.time <= longest)
            && self
                .outlook
                .as_ref()
                .is_none_or(|outlook| outlook.admits(self.now, &Claim::of(point)))
            && self
                .places
                .as_ref()
                .is_none_or(|places| places.has_nodes(self.now, point, point.time > self.window))
    }

    /// For how long so much may be held from now on, as far as the reservation goes; `None` if
    /// it is not free. If [more is to be looked at](Room::is_changing), not even for so long.
    #[inline]
    pub fn longest(&self, nodes: u32, power: Watts) -> Option<Span> {
        if nodes > self.nodes || power > self.power {
            return None;
        }
        let is_left_over = nodes <= self.extra_nodes && power <= self.extra_power;
        Some(if is_left_over { Span::FOREVER } else { self.window })
    }

    /// Whether nodes, power and the reservation do not say all, because the budget is going to change or feeds have limits.
    #[inline]
    pub fn is_changing(&self) -> bool {
        self.outlook.is_some()
    }

    /// Takes out what a job that was admitted will hold, whichever nodes it gets.
    #[inline]
    pub fn take(&mut self, point: &OperatingPoint) {
        if point.time > self.window {
            self.extra_nodes -= point.nodes;
            self.extra_power -= point.power;
        }
        self.nodes -= point.nodes;
        self.power -= point.power;
        self.held += point.power;
        if let Some(outlook) = &mut self.outlook {
            outlook.take(self.now, &Claim::of(point));
        }
    }

    /// Takes out what a job that was asked about and admitted will hold, and says so.
    #[inline]
    pub fn start(&mut self, job: JobId, point: OperatingPoint) -> Decision {
        self.take(&point);
        match &mut self.places {
            None => Decision::Start { job, point },
            Some(places) => {
                let nodes = places.take(self.now, &point, point.time > self.window);
                Decision::StartIn { job, point, nodes: nodes.into_iter().collect() }
            }
        }
    }

    /// Keeps room for a point from then on, for somebody who is promised that; nothing, where nobody can
    /// delay it.
    pub(super) fn promise(
        &mut self,
        view: &View<'_>,
        promised: Option<(OperatingPoint, Vacancy)>,
    ) -> Reservation {
        if let Some(places) = &mut self.places {
            match &promised {
                Some((point, then)) => places.promise(view, then.at, point),
                None => places.promise_nothing(),
            }
        }
        let reservation = match promised {
            Some((point, then)) => {
                if let Some(outlook) = &mut self.outlook {
                    outlook.promise(then.at, &Claim::of(&point));
                }
                Reservation {
                    at: then.at,
                    extra_nodes: then.nodes - point.nodes,
                    extra_power: then.power - point.power,
                }
            }
            None => Reservation { at: Instant::NEVER, extra_nodes: 0, extra_power: Watts::ZERO },
        };
        self.respect(&reservation);
        reservation
    }

    fn respect(&mut self, reservation: &Reservation) {
        self.window = reservation.at.since(self.now);
        self.extra_nodes = reservation.extra_nodes;
        self.extra_power = reservation.extra_power;
    }

    /// The room in the terms of the queue's index, for jobs at one place of their menus, as far as the reservation
    /// goes. The index knows nodes, nominal times and, where nodes draw unlike amounts, nominal power: watts count as the
    /// nodes they can feed at least, and the window as the nominal time that fits it.
    #[inline]
    pub fn fit(&self, rung: &Rung) -> Fit {
        Fit {
            free: fed(rung, self.nodes, self.power),
            extra: fed(rung, self.extra_nodes, self.extra_power),
            window: rung.stretch.undone(self.window),
            power: nominal(rung, self.power),
            extra_power: nominal(rung, self.extra_power),
        }
    }

    /// The same for jobs that may be at any of these places: all ways to use the room that let in somebody whom no
    /// other lets in. Where limits are to come, they say what can be held for how long.
    pub(super) fn fits<'a>(&self, rungs: impl Iterator<Item = &'a Rung>) -> SmallVec<[Fit; 8]> {
        let mut fits: SmallVec<[Fit; 8]> = SmallVec::new();
        let mut add = |fit: Fit| {
            if !fits.iter().any(|other| fit.is_within(other)) {
                fits.push(fit);
            }
        };
        for rung in rungs {
            let Some(outlook) = self.outlook.as_ref().filter(|_| rung.is_shortest) else {
                add(self.fit(rung));
                continue;
            };
            for (place, (end, nodes, power)) in outlook.tenure.steps().take(MOST_STEPS).enumerate()
            {
                let (nodes, power) = (nodes.min(self.nodes), power.min(self.power));
                let (free, power) = (fed(rung, nodes, power), nominal(rung, power));
                // The last one stands for all that follow, which have less.
                let is_last = end == Instant::NEVER || place + 1 == MOST_STEPS;
                let extra = if is_last { free } else { 0 };
                let window = rung.stretch.undone(end.since(self.now));
                add(Fit { free, extra, window, power, extra_power: power });
            }
        }
        fits
    }
}

/// Of this many nodes, those that so much power can feed.
#[inline]
fn fed(rung: &Rung, nodes: u32, power: Watts) -> u32 {
    if rung.node_power.checked_mul(nodes).is_some_and(|needed| needed <= power) {
        nodes
    } else {
        (power.milliwatts() / rung.node_power.milliwatts()).min(u64::from(nodes)) as u32
    }
}

/// The most that a job may draw at its nominal point so that it draws no more than this at one of its places.
#[inline]
fn nominal(rung: &Rung, power: Watts) -> Watts {
    match rung.part.millionths() {
        0 => Watts::UNLIMITED,
        part => {
            let most =
                power.milliwatts().checked_mul(1_000_000).map(|millionths| millionths / part);
            most.map_or(Watts::UNLIMITED, Watts::from_milliwatts)
        }
    }
}

/// What is expected to come free, to find the head of the queue its place in.
pub struct Ahead<'a> {
    view: &'a View<'a>,
    room: &'a Room,
    started: &'a [Holding],
}

impl<'a> Ahead<'a> {
    /// What comes free in this room, with those that are about to start, soonest back first.
    pub(super) fn of(view: &'a View<'a>, room: &'a Room, started: &'a [Holding]) -> Self {
        Ahead { view, room, started }
    }
    /// The first instant from which a point fits for its whole time, and what is free then.
    pub fn vacancy(&self, point: &OperatingPoint) -> Option<Vacancy> {
        let Ahead { view, room, started } = self;
        if let Some(outlook) = &room.outlook {
            let at = match &room.places {
                Some(places) => places.earliest(view, outlook, point)?,
                None => outlook.earliest(view.now, &Claim::of(point))?,
            };
            let (nodes, power) = outlook.free.at(at);
            return Some(Vacancy { at, nodes, power });
        }
        let seated = match &room.places {
            Some(places) => places.ahead()?,
            None => view.now,
        };
        let now = Vacancy { at: view.now, nodes: room.nodes, power: room.power };
        let vacancy = view.ledger.running().vacancy(now, started, point.nodes, point.power)?;
        if vacancy.at >= seated {
            return Some(vacancy);
        }
        let back = view.ledger.running().iter().chain(*started);
        let back = back.filter(|holding| holding.until <= seated);
        Some(back.fold(Vacancy { at: seated, ..now }, |free, holding| Vacancy {
            nodes: free.nodes + holding.nodes,
            power: free.power + holding.power,
            ..free
        }))
    }

    /// Power held by all jobs that run or are about to start.
    pub fn held(&self) -> Watts {
        self.room.held
    }
}

/// The one promise of EASY: when the head of the queue will start, and what is left over then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reservation {
    at: Instant,
    extra_nodes: u32,
    extra_power: Watts,
}

impl Reservation {
    /// Whether it is still the earliest: what came back was to come back before it, so that no more is there then, nor at any
    /// time before.
    fn outlives(&self, view: &View<'_>, is_elsewhere: impl Fn(JobId) -> bool) -> bool {
        let changes = &view.changes;
        let is_back = |holding: &Holding| holding.until < self.at || is_elsewhere(holding.job);
        self.at > view.now
            && changes.released.iter().all(is_back)
            && changes.changed.is_empty()
            && changes.adopted.is_empty()
    }
}

/// EASY backfilling with a plugged-in choice of operating points.
#[derive(Clone, Debug, Default)]
pub struct Backfill<C, O = Submission> {
    chooser: C,
    order: O,
    /// The blocked head of the queue and the promise to it, if whatever was refused beside it is still
    /// refused.
    promised: Option<(JobId, Reservation)>,
    /// What was found out about nodes of several kinds, or shared ones, when that was promised.
    notes: Option<Box<Notes>>,
    /// What jobs started in this pass will hold, soonest back first.
    started: Vec<Holding>,
}

impl<C: Chooser> Backfill<C> {
    /// The engine with this choice, first come, first served.
    pub fn new(chooser: C) -> Self {
        Backfill::ordered(chooser, Submission)
    }
}

impl OrderSpec {
    /// Backfilling with this order.
    pub(super) fn backfill<C>(&self, chooser: C, context: &BuildContext<'_>) -> Box<dyn Policy>
    where
        C: Chooser + Clone + Send + 'static,
    {
        let ageing = self.ageing();
        match self.by {
            OrderedBy::Fcfs => Box::new(Backfill::new(chooser)),
            OrderedBy::Aged => Box::new(Backfill::ordered(chooser, Keyed::new(Aged, ageing))),
            OrderedBy::History => {
                let history = History::that_predicts(self.predict);
                Box::new(Backfill::ordered(chooser, Keyed::new(history, ageing)))
            }
            OrderedBy::Multifactor => Box::new(Backfill::ordered(chooser, context.multifactor())),
        }
    }
}

impl<C: Chooser, O: Order> Backfill<C, O> {
    /// The engine with this choice and this order.
    pub fn ordered(chooser: C, order: O) -> Self {
        Backfill { chooser, order, promised: None, notes: None, started: Vec::new() }
    }

    /// How it picks operating points.
    pub(super) fn chooser(&self) -> &C {
        &self.chooser
    }

    /// The same, to be changed.
    pub(super) fn chooser_mut(&mut self) -> &mut C {
        &mut self.chooser
    }

    /// The order in which it goes through the queue.
    pub(super) fn order_mut(&mut self) -> &mut O {
        &mut self.order
    }

    /// Tests only the jobs that just arrived; all others were refused and still are.
    fn admit_arrivals(
        &mut self,
        view: &View<'_>,
        room: &mut Room,
        reservation: &Reservation,
        decisions: &mut Vec<Decision>,
    ) {
        room.respect(reservation);
        // Most of the time one job arrives, and there is nothing to put in order.
        if let [only] = view.changes.arrived {
            self.consider(view, *only, room, decisions);
            return;
        }
        let mut arrived: SmallVec<[JobId; 8]> = view.changes.arrived.iter().copied().collect();
        order::sort(&mut arrived, &self.order);
        for job in arrived {
            self.consider(view, job, room, decisions);
        }
    }

    /// Starts a job if the chooser finds it a point.
    #[inline(always)]
    fn consider(
        &mut self,
        view: &View<'_>,
        job: JobId,
        room: &mut Room,
        decisions: &mut Vec<Decision>,
    ) -> Option<OperatingPoint> {
        room.ask_about(job);
        let point = self.chooser.choose(view, job, room)?;
        decisions.push(room.start(job, point));
        self.chooser.left(job);
        self.order.goes_on(view, job, &point, point.time);
        Some(point)
    }

    /// Starts jobs from the head of the queue while they fit; returns the first that does not.
    fn start_heads(
        &mut self,
        view: &View<'_>,
        room: &mut Room,
        decisions: &mut Vec<Decision>,
    ) -> Option<JobId> {
        self.started.clear();
        let mut head = self.order.first(view);
        while let Some(job) = head {
            let Some(point) = self.consider(view, job, room, decisions) else { break };
            let until = view.now + point.time;
            self.started.push(Holding { until, job, nodes: point.nodes, power: point.power });
            head = self.order.next(view, job);
        }
        Holding::sort(&mut self.started);
        head
    }

    /// Promises the head of the queue the earliest time at which it is expected to fit. If it
    /// fits at none (nodes are down), nobody can delay it.
    fn reserve(&mut self, view: &View<'_>, room: &mut Room, head: JobId) -> Reservation {
        room.ask_about(head);
        room.look_ahead(view);
        let ahead = Ahead::of(view, room, &self.started);
        let promised = self.chooser.reserve(view, head, &ahead);
        room.promise(view, promised)
    }

    /// Starts whoever may pass the blocked head.
    fn backfill(
        &mut self,
        view: &View<'_>,
        room: &mut Room,
        head: JobId,
        decisions: &mut Vec<Decision>,
    ) {
        let by_width = self.order.is_submission() && self.chooser.starts_as_asked();
        let by_width = by_width && room.look_by_width(view, head);
        let mut from = head;
        while let Some(job) = match by_width {
            true => room.next_by_width(view),
            false => self.chooser.candidate(view, &self.order, from, room),
        } {
            if !room.is_refused(job) {
                self.consider(view, job, room, decisions);
            }
            from = job;
        }
    }

    /// A blocked head and the promise to it, if this turn leaves one.
    fn turn(
        &mut self,
        view: &View<'_>,
        room: &mut Room,
        decisions: &mut Vec<Decision>,
    ) -> Option<(JobId, Reservation)> {
        let (order, arrived) = (&self.order, view.changes.arrived);
        let is_head = |head: JobId| match order.moves() {
            true => order.first(view) == Some(head),
            false => arrived.iter().all(|job| order.compare(*job, head).is_gt()),
        };
        let is_steady = !view.changes.machine && room.outlook.is_none();
        let promised = self.promised.filter(|(head, _)| is_steady && is_head(*head));
        room.go_on(view);
        if let Some((head, reservation)) = promised.filter(|_| view.changes.nothing_freed()) {
            self.admit_arrivals(view, room, &reservation, decisions);
            return Some((head, reservation));
        }
        if promised.is_none() {
            room.forget();
        }
        let head = self.start_heads(view, room, decisions)?;
        let stands = self.started.is_empty() && self.chooser.promises_outlive_ends();
        let promised = promised
            .filter(|(first, _)| *first == head && stands)
            .and_then(|(_, promise)| room.still_promised(view, head, promise));
        let reservation = match promised {
            None => self.reserve(view, room, head),
            Some(reservation) => {
                room.respect(&reservation);
                reservation
            }
        };
        self.backfill(view, room, head, decisions);
        Some((head, reservation))
    }
}

impl<C, O> Policy for Backfill<C, O>
where
    C: Chooser + Clone + Send + 'static,
    O: Order + Clone + Send + 'static,
{
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        self.order.begin(view);
        self.chooser.begin(view, &self.order);
        if view.queue.is_empty() {
            self.promised = None;
            if let Some(notes) = &mut self.notes {
                notes.forget();
            }
            return;
        }
        let mut room = Room::knowing(view, &mut self.notes).with(view, &self.chooser);
        let held = room.held;
        let promised = self.turn(view, &mut room, decisions);
        // Not earlier: those that follow in the order are found by their places.
        for decision in decisions.iter() {
            if let Decision::Start { job, .. } | Decision::StartIn { job, .. } = decision {
                self.order.left(*job);
            }
        }
        self.notes = room.places.take().map(|places| places.into_notes());
        let (extra_nodes, extra_power) = (room.extra_nodes, room.extra_power);
        let holds = self.chooser.refusals_outlive_arrivals()
            && (decisions.is_empty() || self.chooser.refusals_outlive_starts(view, held));
        self.promised = promised
            .filter(|_| holds)
            .map(|(head, promise)| (head, Reservation { extra_nodes, extra_power, ..promise }));
    }

    fn recall(&mut self, past: &[PastJob]) {
        self.order.recall(past);
    }

    fn predictions(&self) -> Option<Predictions> {
        self.order.predictions()
    }

    fn by_priority(&mut self) -> Option<&mut Multifactor> {
        self.order.by_priority()
    }

    fn standings(&mut self) -> Vec<(JobId, Standing)> {
        self.order.standings()
    }

    fn forget(&mut self, job: JobId) -> bool {
        self.chooser.left(job);
        self.order.withdrawn(job);
        // It may have been the head's.
        self.promised = None;
        true
    }

    fn copy(&self) -> Option<Box<dyn Policy + Send>> {
        Some(Box::new(self.clone()))
    }
}
