//! The world: how long jobs really take and how much power they really draw, under any policy.
//!
//! It is a property of the workload and the machine, never of a policy, and is put together from
//!
//! - [`Application`]s, each of which follows a [`Law`]: how its time and its draw depend on the number
//!   of nodes and on the cap of each of them;
//! - [`Parts`]: how the nodes of the machine differ from each other;
//! - an [`Assignment`]: which application each job runs.
//!
//! What a policy *believes* about all this is another matter; the simulator asks the world what happens.
//!
//! **Caps.** A node has a part that can be capped. Beside what that draws, a busy node draws what everything
//! else in it draws ([`Node::rest`]), and an idle node draws something, too ([`Node::idle`]). The cap of a job's
//! nodes, wherever it is written, is what each of them may add to what it draws when it is idle: that is
//! what a ledger has to set aside ([`Node::added`] and [`Node::capped_part`] lead from one to the other).
//!
//! **The reference.** A job that gets what its user asks for, without a cap, takes the run time that the
//! workload says. Every other time is that one times a factor ([`Pace`]).

#[doc(hidden)]
mod application;
#[doc(hidden)]
pub(crate) mod assignment;
#[doc(hidden)]
pub(crate) mod catalogue;
#[doc(hidden)]
pub(crate) mod law;
mod names;
mod nodes;
#[doc(hidden)]
mod pace;
mod repertoire;
#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use application::{Application, Coupling};
#[doc(hidden)]
pub use assignment::{Assignment, Shape};
#[doc(hidden)]
pub use law::{Ask, Conditions, Law};
pub use names::Names;
pub(crate) use nodes::NodeTable;
#[doc(hidden)]
pub use pace::{Factor, Pace};
pub use repertoire::{Profiles, Repertoire, Unsuited};

pub(crate) use crate::machine::CLASSES;
pub use crate::machine::{Node, Parts};

use std::ops::Range;
use std::sync::Arc;

use law::{Curved, Table, Unknown};

use crate::job::Job;
use crate::model::{Beta, Caps, OperatingPoint, Outcome};
use crate::seats::Seats;
use crate::units::{JobId, NodeId, Span, Watts};
use crate::variation::Processors;

/// Which nodes a job has, and what each of them may draw.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Held<'a> {
    /// Any nodes: they are alike, or nobody knows which they are.
    Any,
    /// These stretches of nodes, all under the cap of the job's operating point; with the table of all nodes.
    These(&'a [Range<u32>], &'a NodeTable),
    /// These, each under a cap of its own.
    Capped(&'a Caps),
}

/// How jobs really run.
#[derive(Clone, Debug)]
pub struct World {
    node: Node,
    parts: Parts,
    applications: Vec<Application>,
    assigned: Assignment,
    /// By application: what its nodes do as they were asked for.
    as_asked: Vec<AsAsked>,
    /// By application: what each node was measured to do, where nodes were measured one by one. Then parts
    /// say nothing.
    measured: Vec<Curved>,
    /// By application: the configurations it was run in, where that is all that is known.
    tables: Arc<[Arc<Table>]>,
    /// By job: what its nodes were measured to draw together as it was asked for, with what they draw anyway.
    drawn: Vec<Option<Watts>>,
    /// The worlds of all kinds of nodes, where there are several. Then this one is that of the first kind.
    kinds: Option<Arc<OfKinds>>,
}

/// The same jobs on nodes of several kinds.
#[derive(Debug)]
struct OfKinds {
    /// By kind: what happens on one of its nodes, and how many processors that has.
    nodes: Vec<(World, u32)>,
    seats: Arc<Seats>,
}

impl OfKinds {
    /// What happens to a job on the nodes that it has: what it would do on a whole one, by its part of the processors.
    fn outcome(&self, id: JobId, job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        let kind = self.seats.of(id).map_or(0, |seat| usize::from(seat.kind));
        let (world, processors) = &self.nodes[kind];
        let cap = point.cap.checked_mul(*processors).unwrap_or(Watts::LARGEST);
        let held = point.nodes;
        let (job, point) = (Job { nodes: 1, ..*job }, OperatingPoint { nodes: 1, cap, ..*point });
        let outcome = world.outcome(id, &job, run_time, &point, Held::Any);
        let power = u128::from(outcome.power.milliwatts()) * u128::from(held);
        let power = power.div_ceil(u128::from(*processors));
        let power = Watts::from_milliwatts(u64::try_from(power).unwrap_or(u64::MAX));
        Outcome { power: power.min(Watts::LARGEST), ..outcome }
    }
}

/// What the nodes of a job do if it has those it asks for, without a cap. Most jobs run like that, and
/// nothing has to be worked out for them.
#[derive(Clone, Debug)]
struct AsAsked {
    /// By class: what a node adds to what is drawn.
    added: [Watts; CLASSES],
    /// Whether the job takes what the workload says. An absolute law says something else.
    is_reference: bool,
}

impl World {
    /// Jobs that run these applications, as assigned, on nodes that differ like this.
    pub fn new(
        node: Node,
        parts: Parts,
        applications: Vec<Application>,
        assigned: Assignment,
    ) -> Self {
        let (as_asked, measured, tables) = (Vec::new(), Vec::new(), Arc::new([]));
        let drawn = Vec::new();
        let kinds = None;
        let mut world =
            World { node, parts, applications, assigned, as_asked, measured, tables, drawn, kinds };
        world.as_asked = world.applications.iter().map(|each| world.as_asked(each)).collect();
        world
    }

    /// Jobs that run the applications of processors that were measured one by one: each node is one of them.
    pub(crate) fn measured(node: Node, processors: &Arc<Processors>, assigned: Assignment) -> Self {
        let curved = |place| Curved::new(processors.clone(), place, node.highest);
        let measured: Vec<Curved> = (0..processors.applications().len()).map(curved).collect();
        let named = processors.applications().iter().zip(&measured);
        let applications = named.map(|(application, law)| {
            Application::new(application.name.clone(), law.clone(), Coupling::Balanced)
        });
        let world = World::new(node, Parts::Alike, applications.collect(), assigned);
        World { measured, ..world }
    }

    /// Jobs that run applications with tables of what they did.
    pub(crate) fn profiled(
        node: Node,
        parts: Parts,
        tables: Arc<[Arc<Table>]>,
        assigned: Assignment,
    ) -> Self {
        let applications = tables.iter().map(|table| Application {
            name: table.profile().application.clone(),
            law: table.clone(),
            coupling: Coupling::Lockstep,
        });
        let world = World::new(node, parts, applications.collect(), assigned);
        World { tables, ..world }
    }

    /// The same with one application more, of which nothing is known.
    fn with_unknown(mut self) -> Self {
        let unknown = Application::new("unknown", Unknown, Coupling::Lockstep);
        self.as_asked.push(self.as_asked(&unknown));
        self.applications.push(unknown);
        self
    }

    /// The same with other jobs.
    fn with_assigned(self, assigned: Assignment) -> Self {
        World { assigned, ..self }
    }

    /// The same, where it was measured what the nodes of some jobs drew together, by job: that is what they draw
    /// as they are asked for. The laws say how it changes with caps and sizes.
    pub(crate) fn with_drawn(self, drawn: Vec<Option<Watts>>) -> Self {
        World { drawn, ..self }
    }

    /// The same jobs on nodes of several kinds: a world for a node of each, with its processors.
    pub fn of_kinds(nodes: Vec<(World, u32)>, seats: Arc<Seats>) -> Option<Self> {
        let first = nodes.first()?.0.clone();
        Some(World { kinds: Some(Arc::new(OfKinds { nodes, seats })), ..first })
    }

    /// The configurations that each application was run in, where that is all that is known.
    pub(crate) fn tables(&self) -> &Arc<[Arc<Table>]> {
        &self.tables
    }

    /// What each node was measured to do, by application, where nodes were measured one by one.
    pub(crate) fn curved(&self) -> &[Curved] {
        &self.measured
    }

    /// Whether it matters which nodes a job has.
    pub(crate) fn minds_nodes(&self) -> bool {
        self.parts.are_unlike() || !self.measured.is_empty()
    }

    /// The table of this many nodes.
    pub(crate) fn node_table(&self, nodes: u32) -> NodeTable {
        NodeTable::new(&self.parts, nodes, self.applications.len())
    }

    fn as_asked(&self, application: &Application) -> AsAsked {
        let (ask, highest) = (Ask { nodes: 1, beta: Beta::FULL }, self.node.highest);
        let at = |class: usize| self.conditions(1, None, class, highest);
        let added =
            |class: usize| self.node.added(self.drawn(application, ask, at(class), class, highest));
        let pace = application.law.pace(ask, at(self.parts.middle()));
        AsAsked {
            added: std::array::from_fn(added),
            is_reference: matches!(pace, Some(Pace::Times(_))),
        }
    }

    /// The nodes.
    pub(crate) fn node(&self) -> Node {
        self.node
    }

    /// How the nodes differ.
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The applications, in the order of their numbers.
    pub fn applications(&self) -> &[Application] {
        &self.applications
    }

    /// Which application each job runs.
    pub fn assigned(&self) -> &Assignment {
        &self.assigned
    }

    /// The application of a job.
    pub fn application(&self, job: JobId) -> &Application {
        &self.applications[self.assigned.application(job)]
    }

    /// What happens to a job, which runs for `run_time` as it was asked for, when it runs like this.
    pub(crate) fn outcome(
        &self,
        id: JobId,
        job: &Job,
        run_time: Span,
        point: &OperatingPoint,
        held: Held<'_>,
    ) -> Outcome {
        if let Some(kinds) = &self.kinds {
            return kinds.outcome(id, job, run_time, point);
        }
        let outcome = self.by_law(id, job, run_time, point, held);
        match self.drawn.get(id.index()).copied().flatten() {
            None => outcome,
            Some(drawn) => {
                let power = self.as_measured(id, job, point, held, drawn, outcome.power);
                Outcome { power, ..outcome }
            }
        }
    }

    /// What a job draws that was measured to draw so much as it was asked for, and would draw `by_law` like this.
    /// It never draws more than its nodes can, or than their caps let it.
    fn as_measured(
        &self,
        id: JobId,
        job: &Job,
        point: &OperatingPoint,
        held: Held<'_>,
        drawn: Watts,
        by_law: Watts,
    ) -> Watts {
        let whole = self.node.added(self.node.highest);
        let times = |power: Watts, nodes: u32| power.checked_mul(nodes).unwrap_or(Watts::LARGEST);
        let added = drawn.saturating_sub(times(self.node.idle, job.nodes));
        let added = added.min(times(whole, job.nodes)).max(Watts::from_milliwatts(1));
        let cores = self.tables.get(self.assigned.application(id));
        let cores = cores.map_or(point.cores, |table| table.full_cores(job.nodes));
        let asked = OperatingPoint { nodes: job.nodes, cores, cap: whole, ..*point };
        // On the nodes that it has, so that these do not matter.
        let uncapped: Caps;
        let (held_as_asked, count) = match held {
            Held::Any => (Held::Any, job.nodes),
            Held::These(nodes, _) => (held, nodes.iter().map(|one| one.end - one.start).sum()),
            Held::Capped(caps) => {
                uncapped = caps.with_all_at(whole);
                (Held::Capped(&uncapped), uncapped.count())
            }
        };
        let nominal = self.by_law(id, job, Span::ZERO, &asked, held_as_asked).power;
        // What a node adds as it was asked for, times what the law makes of it.
        let whole_job = u128::from(nominal.milliwatts().max(1)) * u128::from(job.nodes.max(1));
        let scaled = u128::from(by_law.milliwatts()) * u128::from(added.milliwatts());
        let scaled = (scaled * u128::from(count)).div_ceil(whole_job);
        let scaled = Watts::from_milliwatts(u64::try_from(scaled).unwrap_or(u64::MAX));
        let allowed = match held {
            Held::Capped(caps) => caps
                .iter()
                .fold(Watts::ZERO, |sum, capped| sum.saturating_add(capped.cap.min(whole))),
            _ => times(point.cap.min(whole), point.nodes),
        };
        scaled.min(allowed).min(Watts::LARGEST)
    }

    /// What the laws say happens to a job.
    fn by_law(
        &self,
        id: JobId,
        job: &Job,
        run_time: Span,
        point: &OperatingPoint,
        held: Held<'_>,
    ) -> Outcome {
        let place = self.assigned.application(id);
        let application = &self.applications[place];
        let ask = Ask { nodes: job.nodes, beta: self.assigned.beta(id) };
        if let Some(curved) = self.measured.get(place) {
            let sum = self.on_measured(curved, ask, point, held);
            let run_time = sum.pace(application.coupling).of(run_time);
            return Outcome { run_time, power: sum.power };
        }
        let table = self.tables.get(place);
        let is_asked_for = self.as_asked[place].is_reference
            && point.nodes == job.nodes
            && table.is_none_or(|table| point.cores >= table.full_cores(point.nodes));
        if let Held::These(nodes, all) = held
            && is_asked_for
            && table.is_none()
            && self.node.capped_part(point.cap) >= self.node.highest
            && let Some(power) = all.added(place, &self.as_asked[place].added, nodes)
        {
            return Outcome {
                run_time: Pace::AS_ASKED.of(run_time),
                power: power.min(Watts::LARGEST),
            };
        }
        let mut sum = Sum::default();
        let on_one = |class: usize, cap: Watts| {
            let is_asked_for = is_asked_for && cap >= self.node.highest;
            if is_asked_for && table.is_none() {
                return OnOne::new(Pace::AS_ASKED, self.as_asked[place].added[class]);
            }
            let at = self.conditions(point.nodes, Some(point.cores), class, cap);
            let pace = match is_asked_for {
                true => Pace::AS_ASKED,
                false => application.law.pace(ask, at).unwrap_or(Pace::NEVER),
            };
            let drawn = self.drawn(application, ask, at, class, cap);
            OnOne::new(pace, self.node.added(drawn))
        };
        match held {
            Held::Any => {
                let cap = self.node.capped_part(point.cap);
                sum.add(&on_one(self.parts.middle(), cap), point.nodes);
            }
            Held::These(nodes, all) => {
                let cap = self.node.capped_part(point.cap);
                let counts = all.counts(nodes);
                let present = counts.iter().enumerate().filter(|(_, count)| **count > 0);
                present.for_each(|(class, count)| sum.add(&on_one(class, cap), *count));
            }
            // A few nodes are faster looked at than remembered.
            Held::Capped(caps) if caps.count() < 8 => {
                for capped in caps.iter() {
                    let cap = self.node.capped_part(capped.cap);
                    sum.add(&on_one(self.parts.class(capped.node), cap), 1);
                }
            }
            Held::Capped(caps) => {
                // Many nodes of a class are under the same cap. They are still added one by one: sums of speeds are rounded.
                let mut known = [None; CLASSES];
                for capped in caps.iter() {
                    let class = self.parts.class(capped.node);
                    let one = match &known[class] {
                        Some((cap, one)) if *cap == capped.cap => one,
                        _ => {
                            let one = on_one(class, self.node.capped_part(capped.cap));
                            &known[class].insert((capped.cap, one)).1
                        }
                    };
                    sum.add(one, 1);
                }
            }
        }
        Outcome { run_time: sum.pace(application.coupling).of(run_time), power: sum.power }
    }

    /// The nodes of a job added up, where each was measured by itself.
    fn on_measured(
        &self,
        curved: &Curved,
        ask: Ask,
        point: &OperatingPoint,
        held: Held<'_>,
    ) -> Sum {
        let mut sum = Sum::default();
        let mut add = |pace: Pace, drawn: Watts, cap: Watts, count: u32| {
            // As it was asked for, a job takes what the workload says, on whichever nodes.
            let is_asked_for = cap >= self.node.highest && point.nodes == ask.nodes;
            let pace = if is_asked_for { Pace::AS_ASKED } else { pace };
            sum.add(&OnOne::new(pace, self.node.added(drawn)), count);
        };
        let mut on_node = |node: NodeId, added: Watts| {
            let cap = self.node.capped_part(added);
            let most = cap.min(self.node.highest);
            let (pace, drawn) = curved.on_one(node.0 as usize, ask, point.nodes, most);
            add(pace, drawn, cap, 1);
        };
        match held {
            Held::These(nodes, _) => {
                nodes.iter().cloned().flatten().for_each(|node| on_node(NodeId(node), point.cap));
            }
            Held::Capped(caps) => caps.iter().for_each(|capped| on_node(capped.node, capped.cap)),
            Held::Any => {
                let cap = self.node.capped_part(point.cap);
                let share = cap.as_f64() / self.node.highest.as_f64();
                let at = Conditions { nodes: point.nodes, cores: None, share };
                let drawn = curved.draw(ask, at) * self.node.highest.as_f64();
                let drawn = Watts::from_f64_rounded_up(drawn).unwrap_or(cap);
                add(curved.pace(ask, at).unwrap_or(Pace::NEVER), drawn, cap, point.nodes);
            }
        }
        sum
    }

    /// What a node of a class amounts to under a cap: a node that draws more for the same work does what
    /// the reference node does under a lower cap.
    fn conditions(&self, nodes: u32, cores: Option<u32>, class: usize, cap: Watts) -> Conditions {
        let share = cap.min(self.node.highest).as_f64() / self.node.highest.as_f64();
        Conditions { nodes, cores, share: share / self.parts.greed(class) }
    }

    /// What the capped part of a node draws, rounded up: never more than its cap.
    fn drawn(
        &self,
        application: &Application,
        ask: Ask,
        at: Conditions,
        class: usize,
        cap: Watts,
    ) -> Watts {
        let share = application.law.draw(ask, at).min(at.share) * self.parts.greed(class);
        let watts = Watts::from_f64_rounded_up(share * self.node.highest.as_f64());
        watts.map_or(cap, |watts| watts.min(cap))
    }
}

/// What one node does.
#[derive(Clone, Copy)]
struct OnOne {
    pace: Pace,
    speed: f64,
    power: Watts,
}

impl OnOne {
    fn new(pace: Pace, power: Watts) -> Self {
        OnOne { pace, speed: pace.speed(), power }
    }
}

/// Nodes added up.
#[derive(Default)]
struct Sum {
    slowest: Option<Pace>,
    /// The sum of their speeds, and how many they are.
    speed: f64,
    nodes: u32,
    power: Watts,
}

impl Sum {
    fn add(&mut self, one: &OnOne, count: u32) {
        self.slowest = self.slowest.max(Some(one.pace));
        self.speed += f64::from(count) * one.speed;
        self.nodes += count;
        let power = one.power.checked_mul(count).unwrap_or(Watts::LARGEST);
        self.power = self.power.saturating_add(power).min(Watts::LARGEST);
    }

    /// The pace of all of them together.
    fn pace(&self, coupling: Coupling) -> Pace {
        let slowest = self.slowest.unwrap_or(Pace::NEVER);
        match coupling {
            Coupling::Lockstep => slowest,
            Coupling::Balanced if slowest == Pace::AS_ASKED => slowest,
            Coupling::Balanced => Pace::of_speed(self.speed / f64::from(self.nodes.max(1))),
        }
    }
}
