//! PARM: optimal nodes and watts for moldable and malleable jobs (Sarood and others 2014).
//!
//! Rule: whenever a job arrives or ends, who runs on how many nodes under which caps is decided anew
//! for all jobs that wait or run, so that the sum of their weighted speed-ups is as large as it can
//! be within the nodes and the power there are. A running job goes on; its cap may change at any
//! time, and if it is malleable its number of nodes, too. The speed-up of a point is against the
//! slowest the job may have. Its weight is (what is left of its time there + the time since it
//! arrived) to the power α: zero favours throughput, more favours fairness.
//!
//! Of the waiting jobs those enter the program that could start at all, and of these as many as fill what
//! there is a few times over (`window`).
//!
//! The program knows nothing of what a move costs. So two things are not offered that could only be
//! a loss: to expand if the job ends later for it, and to move if it ends before the move is over.
//!
//! What changes is lowered first and raised second. A job whose nodes change stands still meanwhile,
//! and so do all others that change with it, for twice the longest time that any of them takes to
//! move; then it keeps its nodes for a while.
//!
//! If the running jobs alone are too much (the budget fell), all go down to what draws least, nobody
//! starts, and what is still too much is seen by the meter. If they are too much only for a limit to
//! come, nobody starts and nothing changes: who is slowed down only stays longer.
//!
//! Below feeds, and where jobs ask for certain nodes, the program knows only the sums of the machine. What it chooses is tried
//! on a copy of the ledger (`admitted`), and solved again without the jobs that find no nodes or no feed.
//!
//! What it deliberately does not do: reserve. With α = 0 a job that takes much for little speed-up
//! may wait forever.

mod admitted;
mod jobs;
mod program;
mod spec;
mod window;
mod worth;

pub use spec::{Flexibility, ParmSpec, Window};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::freedom::Freedom;
use crate::model::OperatingPoint;
use crate::model::pass::Resizing;
use crate::policy::order::Cost as _;
use crate::policy::{Decision, PastJob, Policy, Predictions, View, rehearsal};
use crate::solve::knapsack::{Instance, Limits, Need, Prices, Solver};
use crate::units::{Instant, JobId, NodeId, Span, Watts};

use jobs::{Offered, Options, Running};
use program::Program;
use window::{Room, Waiting};
pub(in crate::policy) use worth::{Rest, Worth};

/// What a job has already is worth a little more than the same elsewhere: a change that gains
/// nothing is not made.
const PREFERENCE: f64 = 1.0 + 1e-9;

/// The integer program at every turn.
pub struct Parm {
    spec: ParmSpec,
    worth: Worth,
    solver: Solver,
    /// Prices of the last turn, near which those of this one are looked for.
    prices: Option<Prices>,
    /// What each job that waits or runs may have.
    options: BTreeMap<JobId, Arc<Options>>,
    running: BTreeMap<JobId, Running>,
    /// By job: the nodes and the power that it was last seen to hold.
    held: Vec<(u32, Watts)>,
    waiting: Waiting,
    /// Of the last turn, and memory for that of the next one.
    program: Program,
    spare: Program,
    instance: Instance,
    settled: Option<Settled>,
    steps: u64,
    /// Waiting jobs for which there are no nodes now, or no feed can take, as was found out in this turn.
    left_out: BTreeSet<JobId>,
}

/// What the last program was solved for and came to.
struct Settled {
    now: Instant,
    nodes: u64,
    power: Watts,
    chosen: Vec<(JobId, OperatingPoint)>,
}

impl Parm {
    /// The policy with these parameters.
    pub fn with(spec: ParmSpec) -> Self {
        Parm::weighing(spec, Worth::Aged(spec.alpha))
    }

    /// The same program with other weights.
    pub(super) fn weighing(spec: ParmSpec, worth: Worth) -> Self {
        Parm {
            spec,
            worth,
            solver: Solver::default(),
            prices: None,
            options: BTreeMap::new(),
            running: BTreeMap::new(),
            held: Vec::new(),
            waiting: Waiting::default(),
            program: Program::default(),
            spare: Program::default(),
            instance: Instance::default(),
            settled: None,
            steps: 0,
            left_out: BTreeSet::new(),
        }
    }

    /// Takes in what happened: who came, who is gone, and how far the others have got.
    fn note(&mut self, view: &View<'_>) {
        self.worth.learn(view);
        for adopted in view.changes.adopted {
            let mut options = Options::of(view, adopted.job, self.spec.flexibility);
            options.admit(adopted.point);
            let options = Arc::new(options);
            self.options.insert(adopted.job, options.clone());
            let is_suspended = view.ledger.suspended(adopted.job).is_some();
            self.running.insert(adopted.job, Running::adopted(options, adopted, is_suspended));
        }
        for holding in view.changes.released {
            self.running.remove(&holding.job);
            self.options.remove(&holding.job);
        }
        for &job in view.changes.arrived {
            let options = Arc::new(Options::of(view, job, self.spec.flexibility));
            self.waiting.insert(view, &self.worth, job, &options);
            self.options.insert(job, options);
        }
        // What was decided but refused never came to be.
        self.running.retain(|job, _| {
            let holds = view.ledger.holds(*job);
            if !holds && view.queue.contains(*job) {
                self.waiting.insert(view, &self.worth, *job, &self.options[job]);
            }
            holds
        });
        for holding in view.ledger.running().iter() {
            let place = holding.job.index();
            if place >= self.held.len() {
                self.held.resize(view.jobs.len().max(place + 1), (0, Watts::ZERO));
            }
            self.held[place] = (holding.nodes, holding.power);
        }
        for (job, running) in &mut self.running {
            // Until somebody else changed it just now, it ran as was decided.
            if view.changes.changed.contains(job) {
                running.advance(view.now);
            }
            let (nodes, power) = self.held[job.index()];
            running.correct(nodes, power);
            running.advance(view.now);
            running.is_suspended = view.ledger.suspended(*job).is_some();
        }
    }

    /// The running jobs that are not suspended.
    fn going(&self) -> impl Iterator<Item = (&JobId, &Running)> {
        self.running.iter().filter(|(_, running)| !running.is_suspended)
    }

    /// Nodes and power of jobs that are not in the program: those that are suspended, and any that
    /// nobody told of.
    fn held_by_others(&self, view: &View<'_>) -> (u32, Watts) {
        let all = view.ledger.running();
        if all.len() == self.running.len() && !view.ledger.has_suspended() {
            return (0, Watts::ZERO);
        }
        let is_other = |job| self.running.get(job).is_none_or(|running| running.is_suspended);
        let others = all.iter().filter(|holding| is_other(&holding.job));
        others.fold((0, Watts::ZERO), |(nodes, power), holding| {
            (nodes + holding.nodes, power + holding.power)
        })
    }

    /// Whether the number of nodes of a running job may change now.
    fn may_move(&self, running: &Running, now: Instant) -> bool {
        may_ever_move(&self.spec, &running.options) && running.may_move(now, self.spec.guard)
    }

    /// The power that can be relied on for as long as any job of the program may take, moving included:
    /// who starts or gets more now must not be too much when a limit falls. `pause` is the longest that jobs may stand
    /// still because of what is decided now.
    fn power(&self, view: &View<'_>, pause: Span) -> Watts {
        if view.ledger.limits_to_come().is_empty() {
            return view.ledger.for_jobs(view.ledger.limit());
        }
        let left = self.going().map(|(_, running)| {
            let may_move = self.may_move(running, view.now);
            running.longest(view.now) + if may_move { pause } else { Span::ZERO }
        });
        let running = self.going().count();
        let new = self.program.jobs()[running..].iter().map(|job| self.options[job].longest);
        let longest = left.chain(new).max().unwrap_or(Span::ZERO);
        view.ledger.for_jobs(view.ledger.lowest_limit(view.now + longest))
    }

    /// Writes the running jobs into the program, each with what it is offered. Returns what they leave if each goes on
    /// with the least of that, and the longest that jobs may stand still because of what is decided now.
    fn gather_running(
        &mut self,
        view: &View<'_>,
        others: (u32, Watts),
        least: Least,
        program: &mut Program,
    ) -> (Room, Span) {
        let power = view.ledger.for_jobs(view.ledger.limit()).saturating_sub(others.1);
        let nodes = u64::from(view.ledger.nodes_in_service().saturating_sub(others.0));
        let (mut room, mut pause) = (Room { nodes, power }, Span::ZERO);
        let ParmSpec { window, guard, .. } = self.spec;
        let going = self.running.iter_mut().filter(|(_, running)| !running.is_suspended);
        for (&job, running) in going {
            let may_ever_move = may_ever_move(&self.spec, &running.options);
            running.work_out_offers(|options, point| {
                Offered::to(view, job, options, point, window, may_ever_move)
            });
            let Some(offered) = running.offered() else { continue };
            let options = &*running.options;
            let may = |place: &usize| {
                least.allows(options, *place) || options.points[*place] == running.point
            };
            let (nodes, power) = if may_ever_move && running.may_move(view.now, guard) {
                let places = offered.moving(options, running).map(|(place, delay)| {
                    pause = pause.max(delay);
                    place as usize
                });
                program.add(job, places.filter(may));
                jobs::least(options, program.last_places())
            } else {
                pause = pause.max(offered.delay());
                let places = offered.staying().iter().map(|place| *place as usize);
                program.add(job, places.filter(may));
                offered.least()
            };
            room.nodes = room.nodes.saturating_sub(u64::from(nodes));
            room.power = room.power.saturating_sub(power);
        }
        (room, pause)
    }

    /// Writes down who is in the program: the running jobs first, and then those that may start. Returns the longest that
    /// jobs may stand still because of what is decided now.
    fn gather(
        &mut self,
        view: &View<'_>,
        others: (u32, Watts),
        least: Least,
        program: &mut Program,
    ) -> Span {
        program.clear();
        let (room, pause) = self.gather_running(view, others, least, program);
        if least != Least::Any {
            for job in view.queue.iter() {
                if self.left_out.contains(&job) {
                    continue;
                }
                let options = &self.options[&job];
                // Who cannot give nodes back does not get more than it asks for.
                let least = if may_ever_move(&self.spec, options) { least } else { Least::Asked };
                let thrifty = options.thrifty.iter().map(|place| *place as usize);
                program.add(job, thrifty.filter(|place| least.allows(options, *place)));
            }
            return pause;
        }
        match self.spec.window {
            Window::All => {
                for job in view.queue.iter() {
                    if let Some(options) =
                        self.options.get(&job).filter(|_| !self.left_out.contains(&job))
                    {
                        program.add(job, 0..options.points.len());
                    }
                }
            }
            Window::Times(times) => {
                for job in self.waiting.entering(
                    view,
                    &self.options,
                    &room,
                    times,
                    &self.worth,
                    &self.left_out,
                ) {
                    let thrifty = &self.options[&job].thrifty;
                    program.add(job, thrifty.iter().map(|place| *place as usize));
                }
            }
        }
        pause
    }

    /// Steps of the solver in all turns until now: what the turns cost, the same on every machine.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether the last choice is still the best: the program is that of the last turn, and what it
    /// said is what runs.
    fn is_settled(&self, now: Instant, nodes: u64, power: Watts) -> bool {
        let Some(settled) = &self.settled else { return false };
        // With weights that grow, values change with time.
        (self.worth.is_equal() || settled.now == now)
            && (settled.nodes, settled.power) == (nodes, power)
            && self.program == self.spare
            && self.going().count() == settled.chosen.len()
            && settled.chosen.iter().all(|(job, point)| {
                self.running.get(job).is_some_and(|running| running.point == *point)
            })
    }

    /// The point each job is to have, unless it has it already; `None` if the running ones cannot all
    /// go on within what there is.
    fn solve(&mut self, view: &View<'_>, least: Least) -> Option<Vec<(JobId, OperatingPoint)>> {
        let others = self.held_by_others(view);
        std::mem::swap(&mut self.program, &mut self.spare);
        let mut program = std::mem::take(&mut self.program);
        let pause = self.gather(view, others, least, &mut program);
        self.program = program;
        let nodes = u64::from(view.ledger.nodes_in_service().saturating_sub(others.0));
        let power = self.power(view, pause).saturating_sub(others.1).min(Watts::LARGEST);
        if self.is_settled(view.now, nodes, power) {
            return Some(Vec::new());
        }
        let chosen = self.choose(view, nodes, power, least);
        self.settled = chosen.clone().map(|chosen| Settled { now: view.now, nodes, power, chosen });
        chosen
    }

    /// Solves the program.
    fn choose(
        &mut self,
        view: &View<'_>,
        nodes: u64,
        power: Watts,
        least: Least,
    ) -> Option<Vec<(JobId, OperatingPoint)>> {
        // Options come from the model, which has some for each job; their power is bounded.
        let mut instance = std::mem::take(&mut self.instance);
        instance.renew(nodes, power).ok()?;
        let mut offers = Vec::new();
        for (job, running) in self.going() {
            let options = &*running.options;
            let weight = self.worth.of_running(view, *job, options, running);
            let value = |place: usize| {
                let is_same = options.points[place] == running.point;
                weight * options.speed_ups[place] * if is_same { PREFERENCE } else { 1.0 }
            };
            self.program.enter(&mut instance, &mut offers, Need::Required, options, value).ok()?;
        }
        while let Some(&job) = self.program.jobs().get(instance.entries()) {
            let options = &self.options[&job];
            let weight = self.worth.of_waiting(view, job, options);
            let value = |place: usize| weight * options.speed_ups[place];
            self.program.enter(&mut instance, &mut offers, least.need(), options, value).ok()?;
        }
        let effort = self.spec.steps_for(instance.entries());
        let limits = Limits { gap: self.spec.gap(), effort, stop: None };
        let solution = self.solver.solve(&instance, limits, self.prices);
        self.instance = instance;
        let solution = solution.ok()?;
        self.prices = Some(solution.prices());
        self.steps += solution.effort();
        // Running jobs are required and come first: their options are at hand.
        let mut going = self.going();
        let chosen = self.program.chosen(&solution).map(|(job, place)| {
            let running = going.next().filter(|(going, _)| **going == job);
            let options = running.map_or_else(|| &self.options[&job], |(_, found)| &found.options);
            (job, options.points[place])
        });
        Some(chosen.collect())
    }

    /// What to do if the running jobs cannot all go on within all limits: nothing while they are
    /// within the present one, else the least power each of them can go on with.
    fn hold_back(&self, view: &View<'_>) -> Vec<(JobId, OperatingPoint)> {
        if view.ledger.power() <= view.ledger.limit() {
            return Vec::new();
        }
        let least = |(job, running): (&JobId, &Running)| {
            let options = &running.options;
            let may_move = self.may_move(running, view.now);
            let points = options.points.iter();
            let may = |point: &&OperatingPoint| {
                let is_near = point.nodes == running.point.nodes
                    || may_move && point.nodes < running.point.nodes;
                is_near
                    && options.leads_to(&running.point, point)
                    && options.may_have_cap(&running.point, point)
            };
            let least = points.filter(may).min_by_key(|point| point.power);
            (*job, least.copied().unwrap_or(running.point))
        };
        self.going().map(least).collect()
    }

    /// Writes down how to get from what is to what is to be: first what becomes less, then what
    /// becomes more, then who starts.
    fn carry_out(
        &mut self,
        view: &View<'_>,
        wanted: &[(JobId, OperatingPoint)],
        mut nodes: BTreeMap<JobId, Box<[NodeId]>>,
        decisions: &mut Vec<Decision>,
    ) {
        let first = decisions.len();
        // The running jobs come first, in their order; most of them go on as they are.
        let mut starting = wanted.iter().peekable();
        let mut changing: Vec<(JobId, OperatingPoint)> = Vec::new();
        for (job, running) in &self.running {
            let next = starting.next_if(|(wanted, _)| wanted == job);
            changing.extend(next.copied().filter(|(_, point)| *point != running.point));
        }
        let moves = changing.iter().filter_map(|(job, point)| {
            let nodes = self.running.get(job)?.point.nodes;
            let time = view.model.moving_time(*job, view.job(*job), nodes, point.nodes);
            (nodes != point.nodes).then_some(time)
        });
        let pause = Resizing::delay(moves);
        for phase in [Phase::Lower, Phase::Raise] {
            for (job, point) in &changing {
                if let Some(running) = self.running.get_mut(job) {
                    let change = running.step(phase, *point, view.now, pause);
                    if let (Some((point, _, left)), Some(history)) = (&change, self.worth.history())
                    {
                        history.goes_on(view, *job, point, *left);
                    }
                    decisions.extend(change.map(|(point, pause, left)| Decision::Change {
                        job: *job,
                        point,
                        pause,
                        left,
                    }));
                }
            }
        }
        for &(job, point) in starting {
            let options = &self.options[&job];
            self.waiting.remove(view, &self.worth, job, options);
            if let Some(history) = self.worth.history() {
                history.goes_on(view, job, &point, point.time);
            }
            decisions.push(match nodes.remove(&job) {
                None => Decision::Start { job, point },
                Some(nodes) => Decision::StartIn { job, point, nodes },
            });
            let options = Options::with(options, point);
            self.running.insert(job, Running::new(options, point, view.now));
        }
        if rehearsal::is_needed(view) {
            // On the way from what is to what is to be, others may hold more or longer. Who was refused is known at the next turn.
            let mut possible = decisions.split_off(first);
            rehearsal::keep_possible(view.ledger, &mut possible);
            decisions.append(&mut possible);
        }
    }

    /// A turn begins: takes in what happened. Says whether there is anything to be decided.
    pub(super) fn begin(&mut self, view: &View<'_>) -> bool {
        let is_woken = view.changes.arrived.is_empty() && view.changes.nothing_freed();
        self.note(view);
        let is_idle = view.queue.is_empty() && self.running.is_empty();
        !is_woken && !is_idle
    }

    /// Does what the program says.
    pub(super) fn go_on(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        if rehearsal::is_needed(view) {
            return self.go_on_within(view, decisions);
        }
        let wanted = self.solve(view, Least::Any).unwrap_or_else(|| self.hold_back(view));
        self.carry_out(view, &wanted, BTreeMap::new(), decisions);
    }

    /// The same, if all waiting jobs can start and nobody has to be slower than he asks for, unless he is already. Nobody gets
    /// more nodes than he asks for while that takes more than half of the machine. Says whether there was room.
    pub(super) fn go_on_as_asked(
        &mut self,
        view: &View<'_>,
        decisions: &mut Vec<Decision>,
    ) -> bool {
        let asked = self.options.values().map(|options| u64::from(options.asked_nodes));
        let is_half_full = 2 * asked.sum::<u64>() > u64::from(view.ledger.nodes_in_service());
        let least = if is_half_full { Least::Asked } else { Least::AsAsked };
        let wanted = self
            .solve(view, least)
            .filter(|wanted| !rehearsal::is_needed(view) || self.is_had(view, wanted));
        if let Some(wanted) = &wanted {
            self.carry_out(view, wanted, BTreeMap::new(), decisions);
        }
        wanted.is_some()
    }

    /// Starts waiting jobs as these decisions say, and changes nobody, whatever the program would say.
    pub(super) fn start(
        &mut self,
        view: &View<'_>,
        starting: Vec<Decision>,
        decisions: &mut Vec<Decision>,
    ) {
        let (mut starts, mut nodes_of) = (Vec::new(), BTreeMap::new());
        for decision in starting {
            match decision {
                Decision::Start { job, point } => starts.push((job, point)),
                Decision::StartIn { job, point, nodes } => {
                    starts.push((job, point));
                    nodes_of.insert(job, nodes);
                }
                _ => (),
            }
        }
        self.carry_out(view, &starts, nodes_of, decisions);
    }

    /// Whether the oldest job has waited for so long that it must not be passed any more.
    pub(super) fn is_somebody_impatient(&self, view: &View<'_>) -> bool {
        self.worth.is_impatient(view)
    }
}

/// Whether the number of nodes of a job may change while it runs, at some time.
fn may_ever_move(spec: &ParmSpec, options: &Options) -> bool {
    spec.flexibility == Flexibility::Malleable && options.freedoms.has(Freedom::Resizes)
}

/// What the program has to offer to each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Least {
    /// Anything; whoever waits may have to go on waiting.
    Any,
    /// No less speed than it asks for, and nobody waits.
    AsAsked,
    /// The same, on no more nodes than it asks for.
    Asked,
}

impl Least {
    fn allows(self, options: &Options, place: usize) -> bool {
        match self {
            Least::Any => true,
            Least::AsAsked => options.is_as_asked(place),
            Least::Asked => {
                options.is_as_asked(place) && options.points[place].nodes <= options.asked_nodes
            }
        }
    }

    /// Whether a job that waits has to start.
    fn need(self) -> Need {
        match self {
            Least::Any => Need::Optional,
            Least::AsAsked | Least::Asked => Need::Required,
        }
    }
}

/// The first half of a change, in which nothing becomes more, or the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Lower,
    Raise,
}

impl Policy for Parm {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        if self.begin(view) {
            self.go_on(view, decisions);
        }
    }

    fn adjusts(&self) -> bool {
        true
    }

    fn recall(&mut self, past: &[PastJob]) {
        self.worth.recall(past);
    }

    fn predictions(&self) -> Option<Predictions> {
        self.worth.predictions()
    }
}

/// When a job that moved may move again.
fn is_over(since: Option<Instant>, guard: Span, now: Instant) -> bool {
    since.is_none_or(|since| since + guard <= now)
}
