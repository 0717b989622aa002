//! The daemon's jobs as a policy sees them: a numbered list, with the queue, the ledger, the policy and
//! the model that belong to it.
//!
//! A scheduler can be rebuilt from the stored jobs at any time. This happens when a daemon starts, when
//! a waiting job is withdrawn from a policy that cannot forget it, when the policy changes, and when
//! most jobs in the list are over. So a policy need not handle anything that does not occur in a
//! simulation, and the list does not grow for ever.

use std::collections::HashMap;

use super::limited::Limited;
use super::setup::Setup;
use crate::job::{Allotment, Part, Run};
use busbar_core::budget::Budget;
use busbar_core::dispatch::{Applied, Dispatch, Nodes, Rejection};
use busbar_core::job::Job;
use busbar_core::ledger::{BelowFeed, Ledger, SwitchState, Violation};
use busbar_core::machine::NodeSize;
use busbar_core::model::{Caps, Model, NodeCap, OperatingPoint};
use busbar_core::policy::{Adopted, Decision, Held, PastJob, Policy, Predictions};
use busbar_core::priority::Standing;
use busbar_core::seats::{Missing, Seat};
use busbar_core::switching::{Directions, Switcher};
use busbar_core::units::{Instant, JobId, NodeId, Span, Watts};

/// The jobs as a policy sees them.
pub(super) struct Scheduler {
    dispatch: Dispatch,
    policy: Box<dyn Policy>,
    model: Box<dyn Model>,
    jobs: Vec<Job>,
    ids: HashMap<u64, JobId>,
    /// When the policy asked to be woken.
    wake: Option<Instant>,
    /// The number of jobs in the list that are over.
    over: usize,
}

/// A copy of a scheduler that can be sent to another thread.
pub(super) struct Snapshot {
    dispatch: Dispatch,
    policy: Box<dyn Policy + Send>,
    jobs: Vec<Job>,
    ids: HashMap<u64, JobId>,
    wake: Option<Instant>,
    over: usize,
}

impl Scheduler {
    /// A scheduler without jobs.
    pub(super) fn new(setup: &Setup, budget: Budget, now: Instant) -> Self {
        let model = setup.decider.model();
        let mut dispatch = Dispatch::new(&setup.machine, budget, Nodes::Named, model.as_ref(), &[]);
        if let (Some(kinds), Some(layout)) = (&setup.machine.kinds, setup.decider.layout()) {
            dispatch = dispatch.seated_one_by_one(kinds, layout);
        }
        dispatch.advance(now);
        let policy = setup.decider.policy();
        Scheduler {
            dispatch,
            policy,
            model,
            jobs: Vec::new(),
            ids: HashMap::new(),
            wake: None,
            over: 0,
        }
    }

    /// Tells the policy of jobs that ended before it was made.
    pub(super) fn recall(&mut self, past: &[PastJob]) {
        self.policy.recall(past);
    }

    /// Enters what jobs held before there was a scheduler.
    pub(super) fn has_held(&mut self, past: &[Held]) {
        let now = self.ledger().now();
        if let Some(order) = self.policy.by_priority() {
            order.has_held(past, now);
        }
    }

    /// Whether it matters what jobs held.
    pub(super) fn keeps_use(&mut self) -> bool {
        self.policy.by_priority().is_some()
    }

    /// Goes on with what users have used by another scheduler. Says whether that is all that matters.
    pub(super) fn go_on_from(&mut self, before: &mut Scheduler) -> bool {
        let now = self.ledger().now();
        match (self.policy.by_priority(), before.policy.by_priority()) {
            (Some(order), Some(before)) => order.go_on_from(before, now),
            (order, _) => order.is_none(),
        }
    }

    /// The priority of a waiting job, by what gives it, if the policy has such an order.
    pub(super) fn standing(&mut self, number: u64, now: Instant) -> Option<Standing> {
        let id = *self.ids.get(&number)?;
        let nodes = self.ledger().total_nodes();
        let job = &self.jobs[id.index()];
        self.policy.by_priority().map(|order| order.standing(job, job.submit, now, nodes))
    }

    /// When a job had to wait last.
    pub(super) fn waited(&self) -> Option<Instant> {
        self.dispatch.waited()
    }

    /// A job had to wait, at this time last, before this scheduler was made.
    pub(super) fn remember_wait(&mut self, at: Option<Instant>) {
        self.dispatch.remember_wait(at);
    }

    /// How far off the policy's predictions were, if it makes any.
    pub(super) fn predictions(&self) -> Option<Predictions> {
        self.policy.predictions()
    }

    /// A copy for another thread; `None` if the policy cannot be copied. The model is left out,
    /// since it can be built again.
    pub(super) fn snapshot(&self) -> Option<Snapshot> {
        let policy = self.policy.copy()?;
        let Scheduler { dispatch, jobs, ids, wake, over, .. } = self;
        let (dispatch, jobs, ids) = (dispatch.clone(), jobs.clone(), ids.clone());
        Some(Snapshot { dispatch, policy, jobs, ids, wake: *wake, over: *over })
    }

    /// A scheduler that continues from a copy.
    pub(super) fn from_snapshot(setup: &Setup, snapshot: Snapshot) -> Self {
        let Snapshot { dispatch, policy, jobs, ids, wake, over } = snapshot;
        let mut model = setup.decider.model();
        for (id, job) in (0..).map(JobId).zip(&jobs) {
            if let Some(seating) = dispatch.ledger().seating() {
                model.take_seat(seating.asked(id));
            }
            model.learn(id, job);
        }
        Scheduler { dispatch, policy, model, jobs, ids, wake, over }
    }

    /// Adds a job to the list; it is neither waiting nor running yet.
    pub(super) fn add(&mut self, job: Job, seat: Option<Result<Seat, Missing>>) {
        let id = JobId(self.jobs.len() as u32);
        if let Some(seat) = seat {
            self.model.take_seat(seat);
            self.dispatch.take_seat(seat);
        }
        self.model.learn(id, &job);
        self.ids.insert(job.number, id);
        self.jobs.push(job);
    }

    /// Takes a node out of service, if no job holds it.
    pub(super) fn take_out(&mut self, node: u32) {
        if self.ledger().is_free(NodeId(node)) {
            self.dispatch.node_down(NodeId(node));
        }
    }

    /// Puts a node back into service.
    pub(super) fn put_back(&mut self, node: u32) {
        self.dispatch.node_up(NodeId(node));
    }

    /// A node is in this state; if it is in none, it is on. Says whether that can be: a node that a job holds is on.
    pub(super) fn note_switched(&mut self, node: u32, state: Option<SwitchState>) -> bool {
        self.dispatch.note_switched(NodeId(node), state)
    }

    /// Switches nodes by the rule of the site.
    pub(super) fn switch(&mut self, switcher: &mut Switcher, directions: Directions) {
        switcher.switch(&mut self.dispatch, self.model.as_ref(), &self.jobs, directions);
    }

    /// Begins to start all nodes that are off, as far as there is room for them.
    pub(super) fn start_nodes(&mut self) {
        let off = self.ledger().switched().off;
        self.dispatch.start_nodes(off);
    }

    /// Queues a job, unless it could not run even on an empty machine.
    pub(super) fn arrive(&mut self, number: u64) -> Result<(), Rejection> {
        let Some(&id) = self.ids.get(&number) else { return Ok(()) };
        self.dispatch.arrive(self.model.as_ref(), id, &self.jobs[id.index()])?;
        // Policies assume that a new job is the last in the queue. A job that was held is not.
        if self.dispatch.queue().at_or_after(JobId(id.0 + 1)).is_some() {
            self.dispatch.look_at_all();
        }
        Ok(())
    }

    /// Adds a job that is running already, and is expected to end at `until`.
    pub(super) fn restore(
        &mut self,
        number: u64,
        run: &Run,
        until: Instant,
        now: Instant,
    ) -> Result<(), Violation> {
        let Some(&id) = self.ids.get(&number) else { return Ok(()) };
        let allotment = &run.allotment;
        let nodes: Vec<NodeId> = allotment.nodes.iter().map(|(node, _)| NodeId(*node)).collect();
        let found = Adopted {
            job: id,
            point: allotment.point(),
            caps: if self.policy.names_nodes() { allotment.caps() } else { None },
            work: run.work(),
            since: run.since.max(run.moves_until),
            moved: run.moved,
        };
        let until = until.max(now + OperatingPoint::SHORTEST);
        self.dispatch.restore(found, Some(&nodes), until)?;
        if run.suspended {
            self.dispatch.suspend(id)?;
        }
        Ok(())
    }

    /// Running jobs are on these nodes, in order, as many as they were given.
    pub(super) fn relocate(&mut self, moves: &[(u64, Vec<u32>)]) -> Result<(), Violation> {
        let known = moves.iter().filter_map(|(number, nodes)| {
            let nodes = nodes.iter().copied().map(NodeId).collect();
            Some((*self.ids.get(number)?, nodes))
        });
        self.dispatch.relocate(&known.collect::<Vec<_>>())
    }

    /// Records that a running job has ended.
    pub(super) fn end(&mut self, number: u64) {
        if let Some(id) = self.ids.remove(&number) {
            // Every restored or started job holds something, so this does not fail.
            let _ = self.dispatch.end(id);
            self.over += 1;
        }
    }

    /// A violation in words, with the job's number instead of its place in the list.
    pub(super) fn describe(&self, violation: &Violation) -> String {
        let text = violation.to_string();
        let job = violation.job().and_then(|id| Some((id, self.jobs.get(id.index())?)));
        match job {
            Some((id, job)) => text.replacen(&id.to_string(), &format!("job {}", job.number), 1),
            None => text,
        }
    }

    /// Removes a job from the queue. Returns whether the policy can forget it; if not, the
    /// scheduler must be rebuilt.
    pub(super) fn withdraw(&mut self, number: u64) -> bool {
        let waiting = self.ids.get(&number).filter(|id| self.dispatch.queue().contains(**id));
        let Some(&id) = waiting else { return true };
        let can_go_on = self.policy.forget(id);
        self.dispatch.withdraw(id);
        can_go_on
    }

    /// Records that a job is over which does not run.
    pub(super) fn remove(&mut self, number: u64) {
        self.over += usize::from(self.ids.remove(&number).is_some());
    }

    /// Whether a job is in the queue.
    pub(super) fn waits(&self, number: u64) -> bool {
        self.ids.get(&number).is_some_and(|id| self.dispatch.queue().contains(*id))
    }

    /// Whether this many jobs in the list are over that it should be rebuilt.
    pub(super) fn is_stale(&self) -> bool {
        self.over > 1000 && self.over > self.jobs.len() / 2
    }

    /// The ledger.
    pub(super) fn ledger(&self) -> &Ledger {
        self.dispatch.ledger()
    }

    /// By node: the numbers of the jobs that hold it, or parts of it.
    pub(super) fn holders(&self) -> Vec<Vec<u64>> {
        let number = |id: JobId| self.jobs[id.index()].number;
        match self.ledger().seating() {
            None => {
                let holders = self.ledger().holders().into_iter();
                holders.map(|holder| holder.map(number).into_iter().collect()).collect()
            }
            Some(seating) => {
                let jobs = seating.jobs_of_nodes().into_iter();
                jobs.map(|jobs| jobs.into_iter().map(number).collect()).collect()
            }
        }
    }

    /// How many nodes there are, and how many of them nobody has anything of.
    pub(super) fn nodes(&self) -> (u32, u32) {
        match self.ledger().seating() {
            None => (self.ledger().total_nodes(), self.ledger().free_nodes()),
            Some(seating) => (seating.free_of_nodes().count() as u32, seating.idle_nodes()),
        }
    }

    /// What is free of each node, where nodes are of several kinds or jobs share them.
    pub(super) fn free_parts(&self) -> Option<Vec<NodeSize>> {
        Some(self.ledger().seating()?.free_of_nodes().collect())
    }

    /// Whether too few nodes are free for a job that waits and asks for so many.
    pub(super) fn lacks_nodes(&self, number: u64, nodes: u32) -> bool {
        match (self.ledger().seating(), self.ids.get(&number)) {
            (Some(seating), Some(id)) => !seating.has_room(*id),
            _ => nodes > self.ledger().free_nodes(),
        }
    }

    /// The power of a job on the nodes it asks for, without a cap.
    pub(super) fn nominal_power(&self, number: u64) -> Option<Watts> {
        self.nominal(number).map(|point| point.power)
    }

    /// What a job takes and draws on the nodes it asks for without a cap.
    pub(super) fn nominal(&self, number: u64) -> Option<OperatingPoint> {
        let id = *self.ids.get(&number)?;
        Some(self.model.nominal(id, &self.jobs[id.index()]))
    }

    /// What has a limit that jobs hold more than: feeds before those above them, and the machine last.
    pub(super) fn over(&self) -> Vec<Limited> {
        let ledger = self.ledger();
        let count = ledger.feeds().map_or(0, |feeds| feeds.all().len());
        let feeds = (0..count).rev().map(Limited::Feed);
        feeds.chain([Limited::Machine]).filter(|at| self.excess(*at) > Watts::ZERO).collect()
    }

    /// The power that is held in excess of a limit.
    pub(super) fn excess(&self, at: Limited) -> Watts {
        let ledger = self.ledger();
        match at {
            Limited::Machine => ledger.power().saturating_sub(ledger.limit()),
            Limited::Feed(feed) => self.below(feed).map_or(Watts::ZERO, |below| below.excess()),
        }
    }

    /// What a feed carries.
    pub(super) fn below(&self, feed: usize) -> Option<BelowFeed> {
        self.ledger().below(feed)
    }

    /// What a running job holds of what is limited.
    pub(super) fn held_at(&self, number: u64, at: Limited) -> Watts {
        let Some(&id) = self.ids.get(&number) else { return Watts::ZERO };
        match at {
            Limited::Machine => self.ledger().held_by(id).map_or(Watts::ZERO, |held| held.power),
            Limited::Feed(feed) => self.ledger().held_below(id, feed),
        }
    }

    /// How many nodes of a running job are there where power is limited, of how many.
    pub(super) fn share(&self, number: u64, at: Limited) -> Option<(u32, u32)> {
        let id = *self.ids.get(&number)?;
        let held = self.ledger().held_by(id)?.nodes;
        // Where nodes are of several kinds, processors are held.
        let all = self.ledger().seating().map_or(held, |seating| seating.nodes_of(id).len() as u32);
        Some(match at {
            Limited::Machine => (all, all),
            Limited::Feed(feed) => (self.ledger().nodes_below(id, feed), all),
        })
    }

    /// Whether jobs are suspended for which the machine has too little power. Where a feed has too little, it keeps what they will
    /// claim, and others may start below other feeds.
    pub(super) fn has_suspended_for_machine(&self) -> bool {
        let ledger = self.ledger();
        ledger.has_suspended() && (!ledger.has_feeds() || ledger.claimed() > ledger.free_power())
    }

    /// Whether feeds keep a job from starting that would fit otherwise.
    pub(super) fn is_unfed(&self, number: u64) -> bool {
        let nominal = self.ids.get(&number).zip(self.nominal(number));
        self.ledger().has_feeds()
            && nominal.is_some_and(|(id, point)| !self.ledger().is_fed(*id, &point))
    }

    /// Moves the clock.
    pub(super) fn advance(&mut self, now: Instant) {
        let changes = self.ledger().next_limit();
        self.dispatch.advance(now);
        if changes.is_some_and(|at| at <= now) {
            self.dispatch.budget_changed();
        }
    }

    /// Sets another budget.
    pub(super) fn set_budget(&mut self, budget: Budget) {
        self.dispatch.set_budget(budget);
    }

    /// When the policy asked to be woken.
    pub(super) fn wake(&self) -> Option<Instant> {
        self.wake
    }

    /// Whether the policy changes running jobs itself.
    pub(super) fn adjusts(&self) -> bool {
        self.policy.adjusts()
    }

    /// Asks the policy, and reports the effect or the refusal of each decision to `done`.
    pub(super) fn decide(&mut self, mut done: impl FnMut(Result<Effect, Violation>)) {
        let now = self.ledger().now();
        self.wake = self.wake.filter(|at| *at > now);
        let Scheduler { dispatch, policy, model, jobs, wake, .. } = self;
        let model = model.as_ref();
        dispatch.decide(policy.as_mut(), model, jobs, |result, ledger| match result {
            Ok(Applied::Wake(at)) => *wake = Some(wake.map_or(at, |earlier| earlier.min(at))),
            Ok(applied) => {
                if let Some(what) = effect_of(applied, model, jobs, ledger) {
                    done(Ok(what));
                }
            }
            Err(violation) => done(Err(violation)),
        });
    }

    /// Changes the power of a running job because the daemon, not the policy, decided so. Later
    /// limits are not checked, as for a job that is resumed.
    pub(super) fn change(
        &mut self,
        number: u64,
        to: &Alternative,
        left: Span,
    ) -> Result<Option<Effect>, Violation> {
        let Some(&job) = self.ids.get(&number) else { return Ok(None) };
        let soon = OperatingPoint::SHORTEST;
        let decision = match &to.caps {
            Some(caps) => Decision::Recap { job, caps: caps.clone(), left: soon },
            None => Decision::Change { job, point: to.point, pause: Span::ZERO, left: soon },
        };
        let applied = self.dispatch.carry_out(decision, self.model.as_ref(), &self.jobs)?;
        self.dispatch.extend(job, self.ledger().now() + left)?;
        Ok(effect_of(applied, self.model.as_ref(), &self.jobs, self.ledger()))
    }

    /// Running jobs that were expected to have ended by now.
    pub(super) fn overdue(&self) -> Vec<u64> {
        let now = self.ledger().now();
        let overdue = self.ledger().running().iter().take_while(|holding| holding.until <= now);
        overdue.map(|holding| self.jobs[holding.job.index()].number).collect()
    }

    /// Expects a running job to end later than it was to.
    pub(super) fn extend(&mut self, number: u64, until: Instant) {
        if let Some(&id) = self.ids.get(&number) {
            // Running jobs can always be extended.
            let _ = self.dispatch.extend(id, until);
        }
    }

    /// Suspends a job.
    pub(super) fn suspend(&mut self, number: u64) -> Result<(), Violation> {
        self.ids.get(&number).map_or(Ok(()), |id| self.dispatch.suspend(*id))
    }

    /// Resumes a job if there is power for it now. Later limits are not checked: otherwise a job
    /// could stay suspended until the last of them.
    pub(super) fn resume(&mut self, number: u64, until: Instant) -> Result<(), Violation> {
        let Some(&id) = self.ids.get(&number) else { return Ok(()) };
        let soon = self.ledger().now() + OperatingPoint::SHORTEST;
        self.dispatch.resume(id, soon)?;
        self.dispatch.extend(id, until)
    }

    /// Whether the policy chooses nodes by name.
    pub(super) fn names_nodes(&self) -> bool {
        self.policy.names_nodes()
    }

    /// The operating points at which a running job could continue on its nodes, without those that
    /// are dominated: each takes less time than all that draw no more power.
    pub(super) fn alternatives(&self, number: u64, allotment: &Allotment) -> Vec<Alternative> {
        let Some(&id) = self.ids.get(&number) else { return Vec::new() };
        let job = &self.jobs[id.index()];
        let mut ways: Vec<Alternative> = match self.policy.names_nodes() {
            true => self.floor(id, job, allotment).into_iter().collect(),
            false => {
                let points = self.model.menu(id, job);
                let nodes = allotment.point().nodes;
                let same = points.iter().filter(|point| point.nodes == nodes);
                same.map(|point| Alternative { point: *point, caps: None }).collect()
            }
        };
        ways.sort_by_key(|way| (way.point.power, way.point.time));
        let mut fastest: Option<Span> = None;
        ways.retain(|way| {
            let is_faster = fastest.is_none_or(|time| way.point.time < time);
            fastest = if is_faster { Some(way.point.time) } else { fastest };
            is_faster
        });
        ways
    }

    /// The operating point with every node at its lowest cap.
    fn floor(&self, id: JobId, job: &Job, allotment: &Allotment) -> Option<Alternative> {
        let varied = self.model.varied()?;
        let curves = varied.curves(varied.application(id));
        let least = |node: u32| curves.get(node as usize).map(|curve| curve.least());
        let caps = allotment
            .nodes
            .iter()
            .map(|(node, _)| Some(NodeCap { node: NodeId(*node), cap: least(*node)? }));
        let caps = Caps::new(caps.collect::<Option<Vec<_>>>()?)?;
        let point = self.model.on(id, job, &caps)?;
        Some(Alternative { point, caps: Some(caps) })
    }
}

/// The effect of an applied decision, in terms of the job's number.
fn effect_of(applied: Applied, model: &dyn Model, jobs: &[Job], ledger: &Ledger) -> Option<Effect> {
    let allotted = |id: JobId, point: OperatingPoint, caps: Option<Caps>| {
        let job = &jobs[id.index()];
        let part = ledger.seating().and_then(|seating| seating.seat(id)).map(|seat| {
            let NodeSize { processors, memory_mib, gpus } = seat.each;
            let memory_mib = if memory_mib == u32::MAX { 0 } else { memory_mib };
            Box::new(Part { processors, memory_mib, gpus, places: Vec::new() })
        });
        let each = part.as_ref().map_or(1, |part| part.processors);
        let cap_of_node = point.cap.checked_mul(each).unwrap_or(Watts::LARGEST);
        let nodes = match caps {
            Some(caps) => caps.iter().map(|capped| (capped.node.0, capped.cap)).collect(),
            None => {
                let nodes = ledger.nodes_of(id);
                nodes.into_iter().map(|node| (node.0, cap_of_node)).collect()
            }
        };
        let nominal = model.believed(id, job, &model.nominal(id, job)).millis();
        let believed = model.believed(id, job, &point).millis();
        let speed = nominal.saturating_mul(u64::from(Allotment::FULL_SPEED)) / believed.max(1);
        let OperatingPoint { cores, time, power, .. } = point;
        let (cores, cap) = (cores.saturating_mul(each), cap_of_node);
        let speed = u32::try_from(speed).unwrap_or(u32::MAX);
        (job.number, Allotment { nodes, cores, cap, time, power, speed, part })
    };
    match applied {
        Applied::Started { job, point, caps, .. } => {
            let (number, allotment) = allotted(job, point, caps);
            Some(Effect::Started { number, allotment })
        }
        Applied::Changed { job, point, caps, pause } => {
            let (number, allotment) = allotted(job, point, caps);
            Some(Effect::Changed { number, allotment, pause })
        }
        Applied::Dropped { job, reason } => {
            Some(Effect::Dropped { number: jobs[job.index()].number, reason })
        }
        // No policy that a daemon takes gives up.
        Applied::Promised { .. } | Applied::Wake(_) | Applied::GaveUp { .. } => None,
    }
}

/// An operating point at which a running job could continue.
#[derive(Clone, Debug)]
pub(super) struct Alternative {
    pub(super) point: OperatingPoint,
    /// The caps of its nodes, if the policy chooses nodes by name.
    pub(super) caps: Option<Caps>,
}

impl Alternative {
    /// The operating point of an allotment.
    pub(super) fn of(allotment: &Allotment, names_nodes: bool) -> Self {
        let caps = if names_nodes { allotment.caps() } else { None };
        Alternative { point: allotment.point(), caps }
    }
}

/// The effect of a decision.
pub(super) enum Effect {
    Started { number: u64, allotment: Allotment },
    Changed { number: u64, allotment: Allotment, pause: Span },
    Dropped { number: u64, reason: busbar_core::policy::DropReason },
}
