//! The simulator: a machine, a workload, a policy, and the clock between them.
//!
//! A discrete-event loop. What happens at one instant happens in a fixed order: jobs end, the
//! budget changes, nodes go down and come up, jobs arrive; then the policy is asked
//! ([`Events::Instant`]), or it is asked after each single event ([`Events::Each`]). A job that
//! starts with no work to do ends at the same instant, which gives the policy another turn.
//!
//! A job ends after its real run time, or at its limit (the time of its operating point) if that
//! comes first: then it was killed. Logs whose limits were not enforced are to be prepared with
//! [`Workload::raise_estimates`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{ControlFlow, Range};

use crate::budget::{Budget, EnergyBudget};
use crate::calendar::Windows;
use crate::dispatch::{Applied, Dispatch, Gate, Nodes, Rejection};
use crate::job::Job;
use crate::ledger::Ledger;
use crate::limits::{Asks, JobRules, Limits, Reservation, Tres};
use crate::machine::Machine;
use crate::model::{Caps, Model, OperatingPoint, Rigid};
use crate::policy::Policy;
use crate::switching::SwitchOff;
use crate::tariff::{Curve, Tariff};
use crate::units::{Celsius, Instant, JobId, Joules, NodeId, Span, Watts};
use crate::workload::Workload;
use crate::world::World;

mod course;
mod eligibility;
mod feeds;
mod meter;
mod outage;
mod record;
mod recorded;
mod run;
mod site;
mod states;
mod switching;
mod tally;
mod truth;

pub use course::{Change, Total};
pub use feeds::{FeedSample, FeedUse, Placed};
pub use meter::Excursions;
pub use outage::{Outage, Outages};
pub use record::{Record, State};
pub use recorded::Recorded;
pub use run::{Capping, PowerSample, Run, Stopped};
pub use site::SiteFigures;
pub use states::EnergyByState;
pub use tally::{Charges, WindowCharges};

use course::Courses;
use eligibility::{Eligibility, Fate, Verdict};
use feeds::FeedMeters;
use meter::Meter;
use site::SiteMeter;
use states::{NodeStates, NodeTimes};
use switching::{Arrival, Switching};
use tally::Tally;
use truth::Truth;

/// When the policy is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Events {
    /// Once per instant, after all that happened at it.
    #[default]
    Instant,
    /// After every single event.
    Each,
}

/// A simulation to be run: everything but the policy.
pub struct Simulation<'a> {
    machine: &'a Machine,
    workload: &'a Workload,
    budget: Budget,
    bound: Option<Budget>,
    outages: Outages,
    switch_off: Option<SwitchOff>,
    energy: Option<EnergyBudget>,
    horizon: Instant,
    events: Events,
    model: Option<&'a dyn Model>,
    truth: Option<Truth<'a>>,
    keeps_power: bool,
    tariff: Option<(&'a Tariff, Option<&'a Windows>)>,
    outdoor: Option<&'a Curve<Celsius>>,
    limits: Option<&'a Limits>,
}

/// A policy may ask to be woken this many times in a row without anything coming of it; then it
/// sleeps until something happens by itself.
const IDLE_WAKES: u32 = 10_000;

/// Hears how many jobs are over, and says whether the run goes on.
pub type Progress<'a> = dyn FnMut(usize) -> ControlFlow<()> + 'a;

/// How many instants pass between two reports of progress.
const PROGRESS_EVERY: u32 = 1 << 10;

impl<'a> Simulation<'a> {
    /// `workload` on `machine`: no budget, no outages, rigid jobs, asked once per instant.
    pub fn new(machine: &'a Machine, workload: &'a Workload) -> Self {
        Simulation {
            machine,
            workload,
            budget: Budget::unlimited(),
            bound: None,
            outages: Outages::default(),
            switch_off: None,
            energy: None,
            horizon: Instant::NEVER,
            events: Events::default(),
            model: None,
            truth: None,
            keeps_power: false,
            tariff: None,
            outdoor: None,
            limits: None,
        }
    }

    /// Under this power budget.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Held against this budget, where the one that is handed out is another: lower, so that what
    /// jobs draw beyond what is believed does not pass it.
    pub fn bound(mut self, bound: Budget) -> Self {
        self.bound = Some(bound);
        self
    }

    /// With these nodes down at these times.
    pub fn outages(mut self, outages: Outages) -> Self {
        self.outages = outages;
        self
    }

    /// Switching idle nodes off, by this rule.
    pub fn switch_off(mut self, rule: Option<SwitchOff>) -> Self {
        self.switch_off = rule;
        self
    }

    /// With so much energy for a period. The run ends with the period: whoever runs or waits then is
    /// left.
    pub fn energy(mut self, energy: EnergyBudget) -> Self {
        self.energy = Some(energy);
        self.horizon = energy.end;
        self
    }

    /// Asking the policy then.
    pub fn events(mut self, events: Events) -> Self {
        self.events = events;
        self
    }

    /// With jobs that run like this; [`Rigid`] if it is not given.
    pub fn model(mut self, model: &'a dyn Model) -> Self {
        self.model = Some(model);
        self
    }

    /// With jobs that really run like this, whatever the model believes; the model itself if it is
    /// not given.
    pub fn truth(mut self, truth: &'a dyn Model) -> Self {
        self.truth = Some(Truth::Model(truth));
        self
    }

    /// In this world, whatever the model believes.
    pub fn world(mut self, world: &'a World) -> Self {
        self.truth = Some(Truth::World(world));
        self
    }

    /// Keeping the power drawn over time, and the caps of nodes that are given by name.
    pub fn keep_power(mut self, keep: bool) -> Self {
        self.keeps_power = keep;
        self
    }

    /// Counting what energy costs and what is emitted for it, and what is drawn in parts of the time.
    pub fn tariff(mut self, tariff: &'a Tariff, windows: Option<&'a Windows>) -> Self {
        self.tariff = (!tariff.is_empty() || windows.is_some()).then_some((tariff, windows));
        self.outdoor = tariff.outdoor.as_ref();
        self
    }

    /// Within the limits of a site.
    pub fn limits(mut self, limits: Option<&'a Limits>) -> Self {
        self.limits = limits;
        self
    }

    /// Simulates the workload under a policy.
    pub fn run(&self, policy: &mut dyn Policy) -> Run {
        self.run_with_progress(policy, &mut |_| ControlFlow::Continue(()))
    }

    /// Runs it, reporting now and then how many jobs have ended or were turned away. Whoever hears that may break it
    /// off.
    pub(crate) fn run_with_progress(
        &self,
        policy: &mut dyn Policy,
        progress: &mut Progress<'_>,
    ) -> Run {
        let rigid = Rigid::on(self.machine);
        let model = self.model.unwrap_or(&rigid);
        let truth = self.truth.unwrap_or(Truth::Model(model));
        let table = truth.node_table(self.machine.nodes);
        // Where jobs ask for certain nodes, the ledger knows whose they are anyway.
        let has_feeds = self.machine.feeds.is_some() && self.machine.kinds.is_none();
        let named =
            policy.names_nodes() || !self.outages.is_empty() || table.is_some() || has_feeds;
        let nodes = if named { Nodes::Named } else { Nodes::Counted };
        let mut engine = Engine::new(self, nodes, model, truth.on(table.as_ref()));
        engine.run(policy, progress);
        let standings = policy.standings().into_iter().collect();
        Run { predictions: policy.predictions(), standings, ..engine.finish() }
    }
}

/// What keeps the jobs of a workload within limits, if there is any that one of them could reach.
fn gate(machine: &Machine, workload: &Workload, limits: Option<&Limits>) -> Option<Box<Gate>> {
    let structures = workload.structures();
    let ids = || (0..workload.jobs().len() as u32).map(JobId);
    let array = |id: JobId| {
        let array = structures.of(id)?.array?;
        Some((array.array, array.at_most?))
    };
    let is_limited = limits.is_some_and(|limits| !limits.is_empty());
    if !is_limited && !structures.limit_arrays() {
        return None;
    }
    let asks = |id: JobId| {
        let job = &workload.jobs()[id.index()];
        let placed = workload.placed(id);
        let seat = workload.seats().and_then(|seats| seats.of(id).ok());
        let (nodes, processors) = match seat {
            Some(seat) => (seat.nodes, seat.nodes.saturating_mul(seat.each.processors)),
            None => (job.nodes, job.processors),
        };
        let (memory, gpus) = (placed.memory_mib, placed.gpus.into());
        let tres = Tres::new(processors.into(), nodes.into(), memory, gpus);
        let nice = structures.of(id).map_or(0, |known| known.nice);
        let reservation = structures.of(id).and_then(|known| known.reservation);
        Asks { job, tres, array: array(id), nice, reservation }
    };
    let mut limits = limits.cloned().unwrap_or_default();
    let nodes = machine.kinds.as_ref().map_or(machine.nodes, |kinds| kinds.nodes());
    if machine.kinds.is_some() {
        // A count of nodes says nothing where several jobs are on one. Who keeps certain nodes free there is the policy.
        let is_of_all = |one: &Reservation| one.nodes >= nodes.into();
        limits.reservations.retain(is_of_all);
    }
    Some(Box::new(Gate::new(&limits, nodes, ids().map(asks))))
}

/// Nodes in stretches of neighbours, ascending.
fn stretches(nodes: &[NodeId]) -> Vec<Range<u32>> {
    let mut numbers: Vec<u32> = nodes.iter().map(|node| node.0).collect();
    numbers.sort_unstable();
    let neighbours = numbers.chunk_by(|one, next| one + 1 == *next);
    neighbours.map(|stretch| stretch[0]..stretch[0] + stretch.len() as u32).collect()
}

/// Splits a power evenly among so many nodes: what the division leaves over goes to those that are asked about first, so that
/// none has more than its part rounded up.
fn evenly(power: Watts, nodes: u32) -> impl FnMut(&[Range<u32>]) -> Watts {
    let nodes = u64::from(nodes.max(1));
    let (each, mut over) = (power.milliwatts() / nodes, power.milliwatts() % nodes);
    move |some| {
        let count: u64 = some.iter().map(|one| u64::from(one.end - one.start)).sum();
        let more = over.min(count);
        over -= more;
        Watts::from_milliwatts(each * count + more)
    }
}

/// A job's end to come, by time and then by the job's place. One number, so that ordering ends
/// is one comparison.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End(u128);

impl End {
    #[inline]
    fn new(at: Instant, job: JobId, generation: u32, killed: bool) -> Self {
        let details = u128::from(job.0) << 32 | u128::from(generation) << 1 | u128::from(killed);
        End(u128::from(at.millis()) << 64 | details)
    }

    #[inline]
    fn at(self) -> Instant {
        Instant::from_millis((self.0 >> 64) as u64)
    }

    #[inline]
    fn job(self) -> JobId {
        JobId((self.0 >> 32) as u32)
    }

    /// Which end of the job this is; it is stale if the job was thrown out or changed since.
    #[inline]
    fn generation(self) -> u32 {
        (self.0 as u32) >> 1
    }

    /// Whether it is the job's limit that ends it.
    #[inline]
    fn killed(self) -> bool {
        self.0 & 1 == 1
    }
}

/// The simulated engine while it turns.
struct Engine<'a> {
    events: Events,
    workload: &'a Workload,
    model: &'a dyn Model,
    truth: Truth<'a>,
    dispatch: Dispatch,
    /// What the meter is held against, if that is not what is handed out.
    bound: Option<Budget>,
    meter: Meter,
    states: NodeStates,
    /// The times in them when the last job ended, and what jobs had added by then.
    at_end: (NodeTimes, Joules),
    /// What the site draws, if it is said what cooling takes.
    site: Option<SiteMeter<'a>>,
    /// What feeds carry, where they have limits.
    feeds: Option<Box<FeedMeters>>,
    /// The rule that switches nodes off, if any.
    switching: Option<Switching>,
    /// What it costs, if anybody asks.
    tally: Option<Box<Tally<'a>>>,
    records: Vec<Record>,
    /// How far running jobs have got, if the policy changes them.
    courses: Courses,
    ends: BinaryHeap<Reverse<End>>,
    /// The next job to be submitted.
    next_arrival: usize,
    /// Changes of the budget that are still to come.
    budget_changes: std::vec::IntoIter<Instant>,
    outages: outage::Timetable,
    wake: Option<Instant>,
    /// Nothing happens after this.
    horizon: Instant,
    over: usize,
    keeps_power: bool,
    rules: JobRules,
    /// Who is held back before anybody may start it, if anybody is.
    eligibility: Option<Box<Eligibility>>,
    /// When running jobs reach their limits that may go on beyond them.
    overdue: BinaryHeap<Reverse<End>>,
    /// Whether jobs are held back or refused by rules of the site or of their own.
    has_rules: bool,
    run: Run,
}

impl<'a> Engine<'a> {
    fn new(
        simulation: &'a Simulation<'_>,
        nodes: Nodes,
        model: &'a dyn Model,
        truth: Truth<'a>,
    ) -> Self {
        let workload = simulation.workload;
        let begin = workload.jobs().first().map_or(Instant::ZERO, |job| job.submit);
        let budget = simulation.budget.clone();
        let of_feeds = budget.feeds().into_iter().flat_map(|feeds| feeds.iter());
        let limits = std::iter::once(&budget).chain(of_feeds);
        let changes = limits.flat_map(|limit| limit.changes_after(begin));
        let mut changes: Vec<Instant> = changes.map(|change| change.0).collect();
        if budget.feeds().is_some() {
            changes.sort_unstable();
            changes.dedup();
        }
        let bound = simulation.bound.as_ref().unwrap_or(&budget);
        let feeds = FeedMeters::of(simulation.machine, bound, begin);
        let mut dispatch = Dispatch::new(simulation.machine, budget, nodes, model, workload.jobs());
        if let (Some(kinds), Some(seats)) = (&simulation.machine.kinds, workload.seats()) {
            dispatch = dispatch.seated(kinds, seats);
        }
        let gate = gate(simulation.machine, workload, simulation.limits);
        let rules = simulation.limits.map_or(JobRules::default(), |limits| limits.rules);
        let eligibility =
            workload.ties().map(|ties| Box::new(Eligibility::of(ties, rules.kill_invalid_depend)));
        let has_rules = gate.is_some() || eligibility.is_some();
        dispatch = dispatch.gated(gate);
        dispatch.advance(begin);
        if let Some(energy) = simulation.energy {
            dispatch.open_account(energy);
        }
        Engine {
            events: simulation.events,
            workload,
            model,
            truth,
            meter: Meter::new(simulation.machine.floor(), begin, Watts::UNLIMITED),
            states: NodeStates::new(simulation.machine),
            at_end: (NodeTimes::default(), Joules::ZERO),
            site: SiteMeter::of(simulation.machine, simulation.outdoor, begin),
            feeds,
            switching: simulation.switch_off.map(|rule| Switching::new(rule, simulation.machine)),
            tally: simulation
                .tariff
                .map(|(tariff, windows)| Box::new(Tally::new(tariff, windows, begin))),
            bound: simulation.bound.clone(),
            dispatch,
            records: Vec::with_capacity(workload.jobs().len()),
            courses: Courses::default(),
            ends: BinaryHeap::new(),
            next_arrival: 0,
            budget_changes: changes.into_iter(),
            outages: simulation.outages.timetable(),
            wake: None,
            horizon: simulation.horizon,
            over: 0,
            keeps_power: simulation.keeps_power,
            rules,
            eligibility,
            overdue: BinaryHeap::new(),
            has_rules,
            run: Run {
                node_stops: simulation.switch_off.map(|_| 0),
                // Mostly a change where a job starts and one where it ends. A list that has the room from the
                // beginning is not copied on its way, and room that is not used takes no memory.
                power: Vec::with_capacity(match simulation.keeps_power {
                    true => 2 * workload.jobs().len(),
                    false => 0,
                }),
                ..Run::beginning(begin)
            },
        }
    }

    fn run(&mut self, policy: &mut dyn Policy, progress: &mut Progress<'_>) {
        let mut idle_wakes = 0;
        let mut instants = 0u32;
        if self.keeps_power {
            // If the first job is turned away, nobody is asked for a while.
            self.sample_power(self.run.begin);
        }
        while let Some(now) = self.next_instant() {
            self.advance(now);
            let woken = self.wake.take_if(|at| *at <= now).is_some();
            if self.happen(now, policy) {
                idle_wakes = 0;
            } else if woken {
                let waiting = self.dispatch.queue().len();
                self.ask(policy);
                let idle = self.dispatch.queue().len() == waiting;
                idle_wakes = if idle { idle_wakes + 1 } else { 0 };
                if idle_wakes > IDLE_WAKES {
                    self.wake = None;
                }
            }
            self.switch_nodes();
            self.states.set(self.dispatch.ledger());
            if self.feeds.is_some() {
                self.look_at_feeds();
            }
            instants += 1;
            if instants.is_multiple_of(PROGRESS_EVERY) && progress(self.over).is_break() {
                self.run.stopped = Some(Stopped::Interrupted);
            }
            if self.run.stopped.is_some() {
                return;
            }
        }
        // All has happened: there is nothing left to break off.
        let _ = progress(self.over);
    }

    /// Moves the clock: what was drawn until now is charged.
    #[inline]
    fn advance(&mut self, now: Instant) {
        let elapsed = now.since(self.dispatch.ledger().now());
        self.states.advance(elapsed);
        if self.site.is_some() || self.tally.is_some() {
            self.charge(now, elapsed);
        }
        self.dispatch.advance(now);
        self.meter.advance(now, self.limit());
        if let Some(feeds) = &mut self.feeds {
            feeds.advance(now);
        }
    }

    /// What feeds carry and keep back from now on.
    #[inline(never)]
    fn look_at_feeds(&mut self) {
        if let Some(feeds) = &mut self.feeds {
            feeds.look(self.dispatch.ledger(), !self.dispatch.queue().is_empty());
            if self.keeps_power {
                feeds.sample(&mut self.run.feed_power);
            }
        }
    }

    /// What the site drew until now, and what that costs. Few runs ask for it, so the clock does without its code.
    #[inline(never)]
    fn charge(&mut self, now: Instant, elapsed: Span) {
        let (tally, power) = (&mut self.tally, self.meter.power());
        let mut charge = |until: Instant, drawn: Watts| {
            if let Some(tally) = tally {
                tally.advance(until, drawn);
            }
        };
        match &mut self.site {
            Some(site) if elapsed > Span::ZERO => site.advance(power, now, charge),
            Some(_) => {}
            None => charge(now, power),
        }
    }

    /// Switches idle nodes off, and others on, if there is a rule for that.
    #[inline]
    fn switch_nodes(&mut self) {
        if let Some(switching) = &mut self.switching {
            let jobs = &self.workload.jobs()[..self.next_arrival];
            switching.switch(&mut self.dispatch, self.model, jobs);
            self.run.node_stops = Some(switching.stops);
            self.meter.rebase(self.dispatch.ledger().base_power());
            if self.keeps_power {
                self.sample_power(self.dispatch.ledger().now());
            }
        }
    }

    /// The limit that is not to be passed now.
    #[inline]
    fn limit(&self) -> Watts {
        let ledger = self.dispatch.ledger();
        self.bound.as_ref().map_or(ledger.limit(), |bound| bound.at(ledger.now()))
    }

    /// When something happens next. A wake-up alone does not keep an empty machine going.
    #[inline]
    fn next_instant(&self) -> Option<Instant> {
        let end = self.ends.peek().map(|end| end.0.at());
        let arrival = self.workload.jobs().get(self.next_arrival);
        let arrival = arrival.map(|job| job.submit.max(self.run.begin));
        let eligible = if self.has_rules { self.next_eligible() } else { None };
        let nothing_left = end.is_none()
            && arrival.is_none()
            && eligible.is_none()
            && self.dispatch.queue().is_empty();
        if nothing_left {
            return None;
        }
        let never = Instant::NEVER;
        let change = self.budget_changes.as_slice().first().copied().unwrap_or(never);
        let next = end
            .unwrap_or(never)
            .min(arrival.unwrap_or(never))
            .min(change)
            .min(self.outages.next().unwrap_or(never))
            .min(self.next_switch().unwrap_or(never))
            .min(eligible.unwrap_or(never))
            .min(self.overdue.peek().map_or(never, |next| next.0.at()))
            .min(self.wake.unwrap_or(never));
        (next != never && next <= self.horizon).then_some(next)
    }

    /// When somebody who is held back may become eligible next.
    #[inline(never)]
    fn next_eligible(&self) -> Option<Instant> {
        let now = self.dispatch.ledger().now();
        let eligible = self.eligibility.as_ref().and_then(|held| held.next(now));
        eligible.into_iter().chain(self.dispatch.next_room()).min()
    }

    /// When nodes are off or ready next, or have been idle for long enough.
    #[inline]
    fn next_switch(&self) -> Option<Instant> {
        self.switching.as_ref()?.next(self.dispatch.ledger().now())
    }

    /// Lets everything happen that is due now, asking the policy in between or at the end; says
    /// whether anything did.
    fn happen(&mut self, now: Instant, policy: &mut dyn Policy) -> bool {
        let each = self.events == Events::Each;
        let mut happened = false;
        macro_rules! event {
            () => {
                happened = true;
                debug_assert_eq!(self.dispatch.ledger().check(), Ok(()));
                if each {
                    self.ask(policy);
                }
            };
        }
        while let Some(end) = self.ends.peek().map(|end| end.0).filter(|end| end.at() <= now) {
            self.ends.pop();
            if self.end(end) {
                event!();
            }
        }
        while let Some(end) = self.overdue.peek().map(|end| end.0).filter(|end| end.at() <= now) {
            self.overdue.pop();
            if self.goes_over(end) {
                event!();
            }
        }
        while self.budget_changes.as_slice().first().is_some_and(|at| *at <= now) {
            self.budget_changes.next();
            self.dispatch.budget_changed();
            event!();
        }
        while let Some(change) = self.outages.due(now) {
            self.change_node(change);
            event!();
        }
        while let Some(arrival) = self.switching.as_mut().and_then(|each| each.arrived(now)) {
            match arrival {
                Arrival::Stopped(count) => self.dispatch.nodes_stopped(count),
                Arrival::Ready(count) => self.dispatch.nodes_ready(count),
            }
            event!();
        }
        while let Some(job) = self.workload.jobs().get(self.next_arrival) {
            if job.submit > now {
                break;
            }
            let id = JobId(self.next_arrival as u32);
            self.next_arrival += 1;
            self.records.push(Record::WAITING);
            let is_in = match self.has_rules {
                false => self.admit(id, job, now),
                true => self.submit(id, job, now),
            };
            if is_in {
                event!();
            }
        }
        if self.has_rules && self.dispatch.has_room_again() {
            event!();
        }
        while self.has_rules
            && let Some(is_in) = self.settle_held(now)
        {
            if is_in {
                event!();
            }
        }
        if happened && !each {
            self.ask(policy);
        }
        happened
    }

    /// Lets a job into the queue; says whether it is there, or waits for room under a limit.
    #[inline]
    fn admit(&mut self, id: JobId, job: &Job, now: Instant) -> bool {
        match self.dispatch.arrive(self.model, id, job) {
            Ok(()) => true,
            Err(rejection) => {
                self.reject(id, now, rejection);
                false
            }
        }
    }

    /// A job is submitted, where it may be refused or held back. Says whether it waits in the queue.
    #[inline(never)]
    fn submit(&mut self, id: JobId, job: &Job, now: Instant) -> bool {
        if let Err(rejection) = self.dispatch.submit(id) {
            self.reject(id, now, rejection);
            return false;
        }
        let is_eligible = self.eligibility.as_mut().is_none_or(|held| held.submit(id, now));
        is_eligible && self.admit(id, job, now)
    }

    /// Lets in the next job whose waiting for others is over, or refuses it. Says which of both, if there was one.
    #[inline(never)]
    fn settle_held(&mut self, now: Instant) -> Option<bool> {
        let (id, verdict) = self.eligibility.as_mut()?.due(now)?;
        let workload = self.workload;
        Some(self.judged(id, &workload.jobs()[id.index()], verdict, now))
    }

    fn judged(&mut self, id: JobId, job: &Job, verdict: Verdict, now: Instant) -> bool {
        match verdict {
            Verdict::Eligible => {
                self.dispatch.note_eligible(id);
                self.admit(id, job, now)
            }
            Verdict::Never => {
                self.reject(id, now, Rejection::NeverEligible);
                false
            }
        }
    }

    /// What happens to a job is told to those who wait for that.
    #[inline]
    fn tell(&mut self, job: JobId, fate: Fate) {
        if let Some(held) = &mut self.eligibility {
            held.tell(job, fate);
        }
    }

    /// A job reaches its limit and goes on: it is expected to be ended at the latest when it may not go on any more.
    fn goes_over(&mut self, end: End) -> bool {
        let record = &self.records[end.job().index()];
        let goes_on = record.state == State::Running && record.generation() == end.generation();
        let until = end.at() + self.rules.over_time_limit;
        goes_on && self.dispatch.extend(end.job(), until).is_ok()
    }

    /// Ends a job, unless it was thrown out or changed meanwhile.
    #[inline]
    fn end(&mut self, end: End) -> bool {
        let record = &mut self.records[end.job().index()];
        if record.state != State::Running || record.generation() != end.generation() {
            return false;
        }
        record.state = if end.killed() { State::Killed } else { State::Completed };
        let power = record.power;
        self.meter.remove(power);
        if let Some(feeds) = &mut self.feeds {
            feeds.end(end.job());
        }
        self.over += 1;
        if !self.courses.is_empty() {
            let total = self.courses.end(end.job(), end.at());
            self.run.totals.extend(total.map(|total| (end.job(), total)));
        }
        self.note_end(end.at());
        // It runs, so it holds something.
        let released = self.dispatch.end_measured(end.job(), power);
        debug_assert!(released.is_ok(), "{released:?}");
        if self.has_rules {
            self.note_over(end);
        }
        true
    }

    /// A job that ran is over.
    #[inline(never)]
    fn note_over(&mut self, end: End) {
        self.dispatch.is_over(end.job());
        if let Some(held) = &mut self.eligibility {
            let well = !end.killed() && held.ends_well(end.job());
            held.tell(end.job(), Fate::Ended { well });
        }
    }

    /// Figures of the whole run are taken up to the last end of a job; what else may come later
    /// does not count.
    #[inline]
    fn note_end(&mut self, at: Instant) {
        self.run.end = at;
        self.run.energy = self.meter.energy();
        self.at_end = (self.states.times(), self.meter.by_jobs());
        if let Some(site) = &self.site {
            self.run.site = Some(site.figures());
        }
        if let Some(feeds) = &self.feeds {
            self.run.feeds = feeds.so_far();
        }
        if let Some(tally) = &mut self.tally {
            tally.note_end();
        }
    }

    fn reject(&mut self, job: JobId, now: Instant, rejection: Rejection) {
        let record = &mut self.records[job.index()];
        record.state = State::Rejected(rejection);
        (record.start, record.end) = (now, now);
        self.over += 1;
        match rejection {
            // Whoever waits for it has been told. If it waits for ever, it counts as submitted for ever.
            Rejection::NeverEligible if self.rules.kill_invalid_depend => {
                self.dispatch.is_over(job);
            }
            Rejection::NeverEligible => {}
            // It does not count as submitted, or for ever.
            Rejection::OverLimit(_) => self.tell(job, Fate::Gone),
            _ => {
                self.dispatch.is_over(job);
                self.tell(job, Fate::Gone);
            }
        }
    }

    fn change_node(&mut self, change: outage::Change) {
        match change {
            outage::Change::Up(node) => self.dispatch.node_up(node),
            outage::Change::Down(node) => {
                if let Some(job) = self.dispatch.node_down(node) {
                    self.note_end(self.dispatch.ledger().now());
                    self.meter.remove(self.records[job.index()].power);
                    if let Some(feeds) = &mut self.feeds {
                        feeds.end(job);
                    }
                    let record = &mut self.records[job.index()];
                    let restarts = record.restarts.saturating_add(1);
                    *record = Record { restarts, ..record.waiting_again() };
                    self.tell(job, Fate::ThrownOut);
                    let now = self.dispatch.ledger().now();
                    // The budget may have fallen since it was let in.
                    let back =
                        self.dispatch.arrive(self.model, job, &self.workload.jobs()[job.index()]);
                    if let Err(rejection) = back {
                        self.reject(job, now, rejection);
                    }
                }
            }
        }
    }

    /// Asks the policy and sets in motion what it decides.
    #[inline]
    fn ask(&mut self, policy: &mut dyn Policy) {
        self.run.turns += 1;
        let Engine {
            dispatch,
            meter,
            records,
            ends,
            wake,
            over,
            run,
            model,
            truth,
            workload,
            feeds,
            eligibility,
            overdue,
            rules,
            ..
        } = self;
        let (courses, adjusts) = (&mut self.courses, policy.adjusts());
        let has_feeds = feeds.is_some();
        let now = dispatch.ledger().now();
        let jobs = &workload.jobs()[..self.next_arrival];
        let outcome = |job: JobId, point: &OperatingPoint, caps: Option<&Caps>, ledger: &Ledger| {
            let (run_time, asked) = (workload.run_time(job), &jobs[job.index()]);
            truth.outcome(job, asked, run_time, point, caps, ledger)
        };
        let keeps = self.keeps_power;
        let mut feed =
            |job: JobId, point: &OperatingPoint, caps: Option<&Caps>, power, ledger: &Ledger| {
                let Some(feeds) = feeds.as_mut() else { return };
                if let Some(seating) = ledger.seating() {
                    let nodes = seating.nodes_of(job);
                    feeds.set(job, &stretches(nodes), power, evenly(power, nodes.len() as u32));
                    return;
                }
                let asked = &jobs[job.index()];
                let part = |nodes: &[Range<u32>]| truth.part(job, asked, point, caps, nodes, power);
                feeds.set(job, ledger.stretches_of(job), power, part);
            };
        dispatch.decide(policy, *model, jobs, |applied, ledger| {
            run.decisions += 1;
            match applied {
                Ok(Applied::Started { job, point, caps, backfilled }) => {
                    let outcome = outcome(job, &point, caps.as_ref(), ledger);
                    let longest = point.time + rules.over_time_limit;
                    let killed = outcome.run_time > longest;
                    let end = now + outcome.run_time.min(longest);
                    meter.add(outcome.power);
                    if has_feeds {
                        feed(job, &point, caps.as_ref(), outcome.power, ledger);
                    }
                    if keeps && has_feeds && ledger.seating().is_none() {
                        let mut nodes = ledger.stretches_of(job).to_vec();
                        nodes.sort_unstable_by_key(|stretch| stretch.start);
                        run.placed.push(Placed { at: now, job, nodes });
                    }
                    if let Some(seating) = ledger.seating().filter(|_| keeps) {
                        let nodes = stretches(seating.nodes_of(job));
                        run.placed.push(Placed { at: now, job, nodes });
                    }
                    let record = &mut records[job.index()];
                    *record = record.started(now, end, &point, outcome.power, backfilled);
                    ends.push(Reverse(End::new(end, job, record.generation(), killed)));
                    if end > now + point.time {
                        let limit = End::new(now + point.time, job, record.generation(), false);
                        overdue.push(Reverse(limit));
                    }
                    if let Some(held) = eligibility.as_mut().filter(|_| record.restarts == 0) {
                        held.tell(job, Fate::Started);
                    }
                    if adjusts {
                        courses.start(job, now, &point, outcome);
                        let (nodes, cap, power) = (point.nodes, point.cap, outcome.power);
                        let start = Change { at: now, job, nodes, cap, power, pause: Span::ZERO };
                        run.starts.push((run.changes.len(), start));
                    }
                    let kept = caps.filter(|_| keeps).map(|caps| Capping { at: now, job, caps });
                    run.cappings.extend(kept);
                }
                Ok(Applied::Changed { job, point, caps, pause }) => {
                    let outcome = outcome(job, &point, caps.as_ref(), ledger);
                    let record = &mut records[job.index()];
                    meter.remove(record.power);
                    meter.add(outcome.power);
                    if has_feeds {
                        feed(job, &point, caps.as_ref(), outcome.power, ledger);
                    }
                    // It runs, and its course has been kept since it started.
                    if let Some((end, killed)) = courses.change(job, now, &point, outcome, pause) {
                        record.changes = record.changes.wrapping_add(1);
                        (record.nodes, record.cap) = (point.nodes, point.cap);
                        record.cores = point.cores;
                        (record.end, record.power) = (end, outcome.power);
                        ends.push(Reverse(End::new(end, job, record.generation(), killed)));
                    }
                    let (nodes, cap, power) = (point.nodes, point.cap, outcome.power);
                    run.changes.push(Change { at: now, job, nodes, cap, power, pause });
                    let kept = caps.filter(|_| keeps).map(|caps| Capping { at: now, job, caps });
                    run.cappings.extend(kept);
                }
                Ok(Applied::Promised { .. }) => {}
                Ok(Applied::Dropped { job, reason }) => {
                    let state = State::Dropped(reason);
                    let record = &mut records[job.index()];
                    *record = Record { start: now, end: now, state, ..record.waiting_again() };
                    *over += 1;
                    if let Some(held) = eligibility {
                        held.tell(job, Fate::Gone);
                    }
                }
                Ok(Applied::GaveUp { why }) => {
                    run.stopped = Some(Stopped::GaveUp { at: now, why });
                }
                Ok(Applied::Wake(at)) => *wake = Some(wake.map_or(at, |other| other.min(at))),
                Err(violation) => run.note(now, violation),
            }
        });
        debug_assert_eq!(self.dispatch.ledger().check(), Ok(()));
        if self.keeps_power {
            self.sample_power(now);
        }
        if self.has_rules && self.dispatch.asks_again() && self.run.stopped.is_none() {
            self.ask(policy);
        }
    }

    fn sample_power(&mut self, at: Instant) {
        let sample = PowerSample { at, power: self.meter.power(), limit: self.limit() };
        let samples = &mut self.run.power;
        if samples.last().is_some_and(|last| last.at == at) {
            samples.pop();
        }
        let known = samples
            .last()
            .is_some_and(|last| (last.power, last.limit) == (sample.power, sample.limit));
        if !known {
            samples.push(sample);
        }
    }

    fn finish(mut self) -> Run {
        if self.horizon != Instant::NEVER {
            // Figures are taken up to the horizon, whatever happened last.
            self.advance(self.horizon);
            self.note_end(self.horizon);
        }
        let ledger = self.dispatch.ledger();
        let consumed = ledger.energy().map(|account| account.consumed());
        Run {
            energy_by_state: self.states.energy(&self.at_end.0, self.at_end.1),
            peak: self.meter.peak(),
            peak_held: ledger.peak(),
            excursions: self.meter.excursions(),
            unfinished: {
                // Who stands still forever does not end, either.
                let running = self.records.iter().filter(|record| record.state == State::Running);
                let held = self.eligibility.as_ref().map_or(0, |held| held.held());
                let waiting = self.dispatch.queue().len() + self.dispatch.aside() + held;
                (waiting + running.count()) as u64
            },
            eligible: self.dispatch.eligible().to_vec(),
            records: self.records,
            consumed,
            charges: self.tally.map(|tally| tally.charges()),
            ..self.run
        }
    }
}
