//! Between policy and cluster: the waiting and the running jobs, and what a decision does to them.
//!
//! Simulated or live, a driver tells the dispatch what happened, lets the policy decide, and gets
//! back what was really done. A decision that is wrong in any way changes nothing.
//!
//! The model belongs to the driver and is lent for each call: a live driver meets jobs that were unknown when it
//! began, and its model learns of them in between.

use std::cell::Cell;
use std::sync::Arc;

use crate::budget::{Budget, EnergyBudget};
use crate::freedom::Freedom;
use crate::job::Job;
use crate::ledger::{Holding, Ledger, Violation};
use crate::limits::Exceeded;
use crate::machine::{Kinds, Machine};
use crate::model::{Caps, Model, OperatingPoint};
use crate::policy::{Adopted, Changes, Decision, Drawn, DropReason, Policy, View};
use crate::queue::{Queue, SizeClasses};
use crate::seats::{Layout, Missing, Seat, Seats};
use crate::units::{Instant, JobId, NodeId, Span, Watts};

mod gate;
mod live;

pub(crate) use gate::Gate;

/// Whoever waits no longer than this has not had to wait, as the bounded slowdown sees it.
pub const NO_WAIT: Span = Span::from_secs(600);

/// The waiting and the running jobs of one machine.
#[derive(Clone)]
pub struct Dispatch {
    queue: Queue,
    ledger: Ledger,
    arrived: Vec<JobId>,
    released: Vec<Holding>,
    drawn: Vec<Drawn>,
    adopted: Vec<Adopted>,
    /// Running jobs that the driver itself changed.
    changed: Vec<JobId>,
    machine_changed: bool,
    /// When somebody had to wait last.
    waited: Option<Instant>,
    decisions: Vec<Decision>,
    /// What keeps jobs out of the queue that are over a limit.
    gate: Option<Box<Gate>>,
    /// When each job became eligible, if that can be later than its submission.
    eligible: Vec<Instant>,
    /// Whether jobs left the queue that the policy did not ask about.
    asks_again: bool,
}

/// What a decision led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// A job started; it passed others if it was not at the head of the queue.
    Started {
        /// The job.
        job: JobId,
        /// The operating point from now on.
        point: OperatingPoint,
        /// On which nodes, if they were named.
        caps: Option<Caps>,
        /// Whether a job ahead of it still waits.
        backfilled: bool,
    },
    /// A job goes on at another point.
    Changed {
        /// The job.
        job: JobId,
        /// The operating point from now on.
        point: OperatingPoint,
        /// Under which caps, if its nodes were named.
        caps: Option<Caps>,
        /// After a pause.
        pause: Span,
    },
    /// A job that waits was promised energy.
    Promised {
        /// The job.
        job: JobId,
    },
    /// A job left the queue for good.
    Dropped {
        /// The job.
        job: JobId,
        /// Why the job is dropped.
        reason: DropReason,
    },
    /// The policy wants to be asked again.
    Wake(Instant),
    /// The policy cannot decide any more.
    GaveUp {
        /// Why it cannot.
        why: String,
    },
}

/// Why a job is turned away at the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It needs more nodes than the machine has.
    TooManyNodes,
    /// It needs more power than the budget ever allows for as long as it takes.
    TooMuchPower,
    /// No node can hold it.
    NoNode(Missing),
    /// The feeds of its nodes never carry as much power for as long as it takes.
    FeedTooSmall {
        /// The place of one of them in [`Feeds::all`](crate::machine::Feeds::all).
        feed: u16,
    },
    /// It breaks a limit of the site, or could never be within it.
    OverLimit(Exceeded),
    /// What it depends on cannot happen any more.
    NeverEligible,
}

impl Rejection {
    /// The feed that is too small, by its place in [`Feeds::all`](crate::machine::Feeds::all), if it is one.
    pub fn feed(self) -> Option<usize> {
        match self {
            Rejection::FeedTooSmall { feed } => Some(usize::from(feed)),
            _ => None,
        }
    }

    /// The reason in a few words.
    pub fn reason(self) -> &'static str {
        match self {
            Rejection::TooManyNodes => "needs more nodes than the machine has",
            Rejection::NoNode(missing) => missing.reason(),
            Rejection::TooMuchPower => {
                "needs more power than the budget allows for so long from its submission on"
            }
            Rejection::OverLimit(exceeded) => exceeded.reason(),
            Rejection::NeverEligible => "depends on what cannot happen any more",
            Rejection::FeedTooSmall { .. } => {
                "needs more power on its nodes than their feeds carry for so long from its submission on"
            }
        }
    }
}

/// How well the dispatch has to know the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// Their number is enough.
    Counted,
    /// Each by itself, because nodes can fail or are given out by name.
    Named,
}

impl Dispatch {
    /// An empty machine that expects `jobs`.
    pub fn new(
        machine: &Machine,
        budget: Budget,
        nodes: Nodes,
        model: &dyn Model,
        jobs: &[Job],
    ) -> Self {
        let classes = SizeClasses::of_sizes(
            (0..).map(JobId).zip(jobs).map(|(id, job)| model.fewest_nodes(id, job)),
        );
        let queue = Queue::new(classes, jobs.len());
        Dispatch {
            queue: if model.draws_differ() { queue.that_knows_power() } else { queue },
            ledger: match nodes {
                Nodes::Counted => Ledger::new(machine, budget),
                Nodes::Named => Ledger::with_placement(machine, budget),
            },
            arrived: Vec::new(),
            released: Vec::new(),
            drawn: Vec::new(),
            adopted: Vec::new(),
            changed: Vec::new(),
            machine_changed: false,
            waited: None,
            decisions: Vec::new(),
            gate: None,
            eligible: Vec::new(),
            asks_again: false,
        }
    }

    /// The same empty machine, whose jobs keep the limits of a site.
    pub(crate) fn gated(self, gate: Option<Box<Gate>>) -> Self {
        Dispatch { gate, ..self }
    }

    /// The same empty machine, whose jobs are on nodes that have what they ask for.
    pub fn seated(self, kinds: &Arc<Kinds>, seats: &Arc<Seats>) -> Self {
        let widths: Vec<Option<(u32, u32)>> =
            seats.all().map(|seat| seat.map(|seat| (seat.width, seat.nodes))).collect();
        let (queue, ledger) = (self.queue.by_width(&widths), self.ledger.seated(kinds, seats));
        Dispatch { queue, ledger, ..self }
    }

    /// The same empty machine, to which jobs come that nobody knows beforehand: what each asks for is said when it
    /// [comes](Self::take_seat).
    pub fn seated_one_by_one(self, kinds: &Arc<Kinds>, layout: &Layout) -> Self {
        let ledger = self.ledger.seated(kinds, &Arc::new(Seats::open(layout)));
        Dispatch { ledger, ..self }
    }

    /// The next job that comes asks this of nodes.
    pub fn take_seat(&mut self, seat: Result<Seat, Missing>) {
        self.ledger.take_seat(seat);
    }

    /// The ledger, to read.
    #[inline]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The waiting jobs.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// From now on energy is counted, within a budget.
    pub(crate) fn open_account(&mut self, budget: EnergyBudget) {
        self.ledger.open_account(budget);
    }

    /// Moves the clock.
    #[inline]
    pub fn advance(&mut self, now: Instant) {
        self.ledger.advance(now);
        if let Some(gate) = &mut self.gate {
            gate.advance(now);
        }
    }

    /// A job was submitted, or was thrown out by a failing node and waits again. It is turned
    /// away if it could not run even alone, now or under the limits to come.
    #[inline]
    pub fn arrive(&mut self, model: &dyn Model, id: JobId, job: &Job) -> Result<(), Rejection> {
        if let Some(missing) = self.ledger.seating().and_then(|seating| seating.missing(id)) {
            return Err(Rejection::NoNode(missing));
        }
        let least = model.footprint(id, job);
        if least.nodes > self.ledger.total_nodes() {
            return Err(Rejection::TooManyNodes);
        }
        if !model.may_enter(id, job, &|point| self.ledger.fits_alone(id, point)) {
            return Err(self.why_rejected(model, id, job));
        }
        match &mut self.gate {
            None => {
                self.queue.insert(id, &least);
                // Those who were held back come with those who are submitted just now.
                match self.arrived.last().is_some_and(|last| *last > id) {
                    false => self.arrived.push(id),
                    true => self.arrived.insert(self.arrived.partition_point(|job| *job < id), id),
                }
            }
            Some(gate) => gate.enter(id),
        }
        Ok(())
    }

    /// A job is submitted: whether limits of the site allow that.
    #[inline]
    pub(crate) fn submit(&mut self, id: JobId) -> Result<(), Rejection> {
        match &mut self.gate {
            None => Ok(()),
            Some(gate) => gate.submit(id).map_err(Rejection::OverLimit),
        }
    }

    /// A job that was submitted is over, and does not count as submitted any more.
    #[inline]
    pub(crate) fn is_over(&mut self, id: JobId) {
        if let Some(gate) = &mut self.gate {
            gate.is_over(id);
        }
    }

    /// A job becomes eligible now, which may be later than its submission.
    pub(crate) fn note_eligible(&mut self, id: JobId) {
        if self.eligible.len() <= id.index() {
            self.eligible.resize(id.index() + 1, Instant::NEVER);
        }
        self.eligible[id.index()] = self.ledger.now();
    }

    /// When each job became eligible, by its place; empty if all do when they are submitted.
    pub(crate) fn eligible(&self) -> &[Instant] {
        &self.eligible
    }

    /// How many jobs wait for room under a limit, outside of the queue.
    pub(crate) fn aside(&self) -> usize {
        self.gate.as_ref().map_or(0, |gate| gate.aside())
    }

    /// When those may come back next who wait outside of the queue, although nobody ends.
    pub(crate) fn next_room(&self) -> Option<Instant> {
        self.gate.as_ref()?.next()
    }

    /// Whether somebody comes back who had no room before.
    pub(crate) fn has_room_again(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.has_coming())
    }

    /// Whether the policy is to be asked again at once: jobs left the queue that it counted on.
    #[inline]
    pub(crate) fn asks_again(&mut self) -> bool {
        std::mem::take(&mut self.asks_again)
    }

    /// Those that have no room under a limit leave the queue; says whether anybody did.
    #[inline(never)]
    fn set_aside(&mut self, policy: &mut dyn Policy) -> bool {
        let mut has_left = false;
        while let Some(job) = self.gate.as_mut().and_then(|gate| gate.take_leaving()) {
            self.queue.remove(job);
            self.ledger.withdraw(job);
            self.arrived.retain(|arrived| *arrived != job);
            policy.forget(job);
            has_left = true;
        }
        self.machine_changed |= has_left;
        has_left
    }

    /// Those that have room come into the queue.
    #[inline(never)]
    fn let_in(&mut self, policy: &mut dyn Policy, model: &dyn Model, jobs: &[Job]) {
        self.set_aside(policy);
        let Some(gate) = &mut self.gate else { return };
        for job in gate.take_coming() {
            self.queue.insert(job, &model.footprint(job, &jobs[job.index()]));
            self.arrived.push(job);
        }
        self.arrived.sort_unstable();
    }

    /// Why a job could never be fed: the budget, or else a feed.
    fn why_rejected(&self, model: &dyn Model, id: JobId, job: &Job) -> Rejection {
        let small = Cell::new(None);
        let by_budget = |point: &OperatingPoint| {
            let is_fed = point.power <= self.ledger.most_for_jobs(point.time);
            if is_fed && let Err(Some(feed)) = self.ledger.feeds_alone(id, point) {
                small.set(Some(feed));
            }
            is_fed
        };
        let is_fed = model.may_enter(id, job, &by_budget);
        match small.get().filter(|_| is_fed) {
            Some(feed) => Rejection::FeedTooSmall { feed: u16::try_from(feed).unwrap_or(u16::MAX) },
            None => Rejection::TooMuchPower,
        }
    }

    /// A job ended.
    #[inline]
    pub fn end(&mut self, job: JobId) -> Result<(), Violation> {
        self.released.push(self.ledger.release(job)?);
        if let Some(gate) = &mut self.gate {
            gate.ended(job);
        }
        Ok(())
    }

    /// A job ended, and it is known what it really drew with what it held at its end: the policy may learn
    /// from that.
    #[inline]
    pub(crate) fn end_measured(&mut self, job: JobId, power: Watts) -> Result<(), Violation> {
        self.end(job)?;
        self.drawn.push(Drawn { job, power });
        Ok(())
    }

    /// A new limit of the budget came into force.
    pub fn budget_changed(&mut self) {
        self.machine_changed = true;
    }

    /// A node failed. The job that was on it, if any, is released and returned: it has to be
    /// submitted again.
    pub fn node_down(&mut self, node: NodeId) -> Option<JobId> {
        let thrown_out = self.ledger.holder(node);
        if let Some(holding) = thrown_out.and_then(|job| self.ledger.release(job).ok()) {
            self.released.push(holding);
            if let Some(gate) = &mut self.gate {
                gate.ended(holding.job);
            }
        }
        self.machine_changed |= self.ledger.take_down(node);
        thrown_out
    }

    /// A node is back.
    pub fn node_up(&mut self, node: NodeId) {
        self.machine_changed |= self.ledger.bring_up(node);
    }

    /// Begins to switch free nodes off, as many as can be; says how many.
    pub(crate) fn stop_nodes(&mut self, most: u32) -> u32 {
        let count = self.ledger.stop_nodes(most);
        self.machine_changed |= count > 0;
        count
    }

    /// So many nodes that were being switched off are off.
    pub(crate) fn nodes_stopped(&mut self, count: u32) {
        self.ledger.nodes_stopped(count);
        self.machine_changed = true;
    }

    /// Begins to start nodes that are off, as many as can be; says how many.
    pub fn start_nodes(&mut self, most: u32) -> u32 {
        let count = self.ledger.start_nodes(most);
        self.machine_changed |= count > 0;
        count
    }

    /// So many nodes that were being started are idle.
    pub(crate) fn nodes_ready(&mut self, count: u32) {
        self.ledger.nodes_ready(count);
        self.machine_changed = true;
    }

    /// Asks the policy and carries its decisions out, in order. `done` hears what came of each, with the
    /// ledger as it is then: a later decision may be about the same job.
    #[inline]
    pub fn decide(
        &mut self,
        policy: &mut dyn Policy,
        model: &dyn Model,
        jobs: &[Job],
        mut done: impl FnMut(Result<Applied, Violation>, &Ledger),
    ) {
        if self.gate.is_some() {
            self.let_in(policy, model, jobs);
        }
        let Dispatch {
            queue, ledger, arrived, released, drawn, adopted, changed, eligible, ..
        } = self;
        let machine = self.machine_changed;
        let mut view = View {
            now: ledger.now(),
            jobs,
            queue,
            ledger,
            model,
            changes: Changes { arrived, released, drawn, adopted, changed, machine },
            waited: self.waited,
            eligible,
        };
        let has_waited = |job: JobId| view.now.since(view.waits_since(job)) > NO_WAIT;
        if queue.head().is_some_and(has_waited) {
            self.waited = Some(view.now);
            view.waited = self.waited;
        }
        policy.decide(&view, &mut self.decisions);
        arrived.clear();
        released.clear();
        drawn.clear();
        adopted.clear();
        changed.clear();
        self.machine_changed = false;
        let mut decisions = std::mem::take(&mut self.decisions);
        for decision in decisions.drain(..) {
            // A start may leave others without room under a limit: what was decided about these does not count.
            if self.gate.is_some() && self.is_aside(&decision) {
                continue;
            }
            let Dispatch { queue, ledger, .. } = self;
            let applied = checked(decision, policy, model, queue, ledger, jobs);
            if self.gate.is_some() {
                self.note_limits(&applied);
            }
            done(applied, &self.ledger);
            if self.gate.is_some() {
                self.asks_again |= self.set_aside(policy);
            }
        }
        self.decisions = decisions;
    }

    /// Whether a decision is about a job that has no room under a limit any more.
    #[inline(never)]
    fn is_aside(&self, decision: &Decision) -> bool {
        self.gate.as_ref().zip(decision.job()).is_some_and(|(gate, job)| gate.is_aside(job))
    }

    /// What was carried out counts under the limits of a site.
    #[inline(never)]
    fn note_limits(&mut self, applied: &Result<Applied, Violation>) {
        let Some(gate) = &mut self.gate else { return };
        match applied {
            Ok(Applied::Started { job, .. }) => gate.started(*job),
            Ok(Applied::Dropped { job, .. }) => {
                gate.dropped(*job);
                gate.is_over(*job);
                self.asks_again |= gate.has_coming();
            }
            _ => {}
        }
    }
}

/// Carries a decision out, if the policy may take it.
#[inline(always)]
fn checked(
    decision: Decision,
    policy: &mut dyn Policy,
    model: &dyn Model,
    queue: &mut Queue,
    ledger: &mut Ledger,
    jobs: &[Job],
) -> Result<Applied, Violation> {
    let announced = announced(&decision, policy);
    let allowed = announced.and_then(|()| allowed(&decision, model, ledger, jobs));
    let applied = match allowed {
        Ok(()) => apply(decision, model, queue, ledger, jobs),
        Err(violation) => Err(violation),
    };
    if let Err(violation) = &applied {
        policy.refused(violation);
    }
    applied
}

/// Whether a policy said beforehand that it takes such decisions.
#[inline]
fn announced(decision: &Decision, policy: &dyn Policy) -> Result<(), Violation> {
    match *decision {
        Decision::Change { job, .. } | Decision::Recap { job, .. } if !policy.adjusts() => {
            Err(Violation::Unannounced { job })
        }
        Decision::StartOn { job, .. }
        | Decision::Recap { job, .. }
        | Decision::Promise { job, .. }
            if !policy.names_nodes() =>
        {
            Err(Violation::NodesUnannounced { job })
        }
        _ => Ok(()),
    }
}

/// Whether that may be done to the job: whoever runs the machine allows it, and its user agrees.
#[inline]
fn allowed(
    decision: &Decision,
    model: &dyn Model,
    ledger: &Ledger,
    jobs: &[Job],
) -> Result<(), Violation> {
    let (job, needed) = match decision {
        // What is on the menu is allowed.
        Decision::Start { .. }
        | Decision::StartIn { .. }
        | Decision::WakeAt(_)
        | Decision::GiveUp { .. } => return Ok(()),
        Decision::StartOn { job, .. } | Decision::Promise { job, .. } => (*job, Freedom::Nodes),
        Decision::Recap { job, .. } => (*job, Freedom::Recaps),
        Decision::Change { job, point, .. } => {
            let nodes = ledger.held_by(*job).map(|holding| holding.nodes);
            (*job, if nodes == Some(point.nodes) { Freedom::Recaps } else { Freedom::Resizes })
        }
        // Who could never run is turned away, which takes no freedom.
        Decision::Drop { reason: DropReason::NeverFed | DropReason::NoMachine, .. } => {
            return Ok(());
        }
        Decision::Drop { job, .. } => (*job, Freedom::Drops),
    };
    let Some(asked) = jobs.get(job.index()) else { return Ok(()) };
    match model.freedoms(job, asked).has(needed) {
        true => Ok(()),
        false => Err(Violation::NotAllowed { job, needed }),
    }
}

/// Carries a decision out, or says why it cannot be.
#[inline]
fn apply(
    decision: Decision,
    model: &dyn Model,
    queue: &mut Queue,
    ledger: &mut Ledger,
    jobs: &[Job],
) -> Result<Applied, Violation> {
    match decision {
        Decision::Start { job, point } => {
            check_waits(job, queue, ledger)?;
            check_menu(job, &point, model, jobs)?;
            ledger.start(job, &point)?;
            let backfilled = leave(job, queue);
            Ok(Applied::Started { job, point, caps: None, backfilled })
        }
        Decision::StartIn { job, point, nodes } => {
            check_waits(job, queue, ledger)?;
            check_menu(job, &point, model, jobs)?;
            ledger.start_in(job, &point, Some(&nodes))?;
            let backfilled = leave(job, queue);
            Ok(Applied::Started { job, point, caps: None, backfilled })
        }
        Decision::StartOn { job, caps } => {
            check_waits(job, queue, ledger)?;
            let point = model.on(job, &jobs[job.index()], &caps);
            let point = point.ok_or(Violation::NotOffered { job })?;
            ledger.start_on(job, &point, &caps)?;
            let backfilled = leave(job, queue);
            Ok(Applied::Started { job, point, caps: Some(caps), backfilled })
        }
        Decision::Change { job, point, pause, left } => {
            check_runs(job, ledger)?;
            check_menu(job, &point, model, jobs)?;
            ledger.change(job, &point, left)?;
            Ok(Applied::Changed { job, point, caps: None, pause })
        }
        Decision::Recap { job, caps, left } => {
            check_runs(job, ledger)?;
            let point = model.on(job, &jobs[job.index()], &caps);
            let point = point.ok_or(Violation::NotOffered { job })?;
            ledger.recap(job, &point, &caps, left)?;
            Ok(Applied::Changed { job, point, caps: Some(caps), pause: Span::ZERO })
        }
        Decision::Promise { job, caps, from } => {
            check_waits(job, queue, ledger)?;
            let point = model.on(job, &jobs[job.index()], &caps);
            ledger.promise(job, &point.ok_or(Violation::NotOffered { job })?, from)?;
            Ok(Applied::Promised { job })
        }
        Decision::Drop { job, reason } => match queue.remove(job) {
            true => {
                ledger.withdraw(job);
                Ok(Applied::Dropped { job, reason })
            }
            false => Err(Violation::NotWaiting { job }),
        },
        Decision::WakeAt(at) => {
            let now = ledger.now();
            if at > now { Ok(Applied::Wake(at)) } else { Err(Violation::WakeInThePast { at, now }) }
        }
        Decision::GiveUp { why } => Ok(Applied::GaveUp { why }),
    }
}

#[inline]
fn check_waits(job: JobId, queue: &Queue, ledger: &Ledger) -> Result<(), Violation> {
    if queue.contains(job) {
        return Ok(());
    }
    Err(match ledger.holds(job) {
        true => Violation::AlreadyRunning { job },
        false => Violation::NotWaiting { job },
    })
}

#[inline]
fn check_runs(job: JobId, ledger: &Ledger) -> Result<(), Violation> {
    if ledger.holds(job) { Ok(()) } else { Err(Violation::HoldsNothing { job }) }
}

#[inline]
fn check_menu(
    job: JobId,
    point: &OperatingPoint,
    model: &dyn Model,
    jobs: &[Job],
) -> Result<(), Violation> {
    if model.offers(job, &jobs[job.index()], point) {
        return Ok(());
    }
    let OperatingPoint { nodes, power, .. } = *point;
    Err(Violation::NotOnMenu { job, nodes, power })
}

/// Takes a job that started out of the queue; says whether one ahead of it still waits.
#[inline]
fn leave(job: JobId, queue: &mut Queue) -> bool {
    let backfilled = queue.head() != Some(job);
    queue.remove(job);
    backfilled
}
