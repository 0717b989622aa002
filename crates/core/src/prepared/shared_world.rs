//! The shared that all policies share: the world of a prepared's jobs.
//!
//! Which application a job runs, what its user puts up with, and how nodes differ is mostly not known. What
//! nobody says is assumed, once, for all policies alike, and [said](SharedWorld::assumed).

use std::sync::Arc;

use super::known_power::KnownPower;
use super::rules::Rules;
use crate::belief::Joined;
use crate::budget::Budget;
use crate::freedom::Freedoms;
use crate::job::Job;
use crate::limits::Limits;
use crate::machine::{Cooling, Details, Machine};
use crate::model::Model;
use crate::policy::{Accuracy, Believe, Field, OnAllKinds, OnKinds, PolicySpec, Unfit};
use crate::priority::{LogNames, Priorities};
use crate::seats::Seats;
use crate::switching::SwitchOff;
use crate::tariff::Tariff;
use crate::units::{Instant, Length, Share, Span, Watts};
use crate::workload::{MeasuredPower, Workload};
use crate::world::{Parts, Repertoire, Unsuited, World};

/// That a budget leaves nothing for jobs beside what a machine draws anyway, if it never does.
pub fn leaves_nothing(budget: &Budget, machine: &Machine) -> Option<String> {
    let most = budget.largest_for(Instant::ZERO, Span::ZERO);
    let (nodes, floor) = (machine.nodes, machine.floor());
    (most <= floor).then(|| {
        format!("the budget leaves no power for jobs: {nodes} idle nodes draw {floor} of {most}")
    })
}

/// That the cooling of a machine depends on a temperature that nobody says, or that one is given on which nothing depends.
pub fn outdoor_mistake(machine: &Machine, tariff: &Tariff) -> Option<&'static str> {
    let is_needed = machine.cooling.as_ref().is_some_and(Cooling::needs_outdoor);
    match (is_needed, tariff.outdoor.is_some()) {
        (true, false) => Some(
            "the machine file has cooling.pue_by_temperature; give the temperature with --outdoor, as in --outdoor \
             weather.csv or --outdoor 15C",
        ),
        (false, true) => Some(
            "--outdoor has no effect, because the machine file has no cooling.pue_by_temperature; add it, or \
            leave --outdoor out",
        ),
        _ => None,
    }
}

/// A world, and what policies may do and believe in it.
#[derive(Clone, Debug)]
pub struct SharedWorld {
    world: Arc<World>,
    rules: Rules,
    /// What policies believe here.
    believe: Believe,
    seed: u64,
    /// What is known of the power of single jobs.
    power: Option<KnownPower>,
    /// The kinds of nodes, each as a machine of its processors and what holds there, where there are several.
    parts: Vec<(Machine, Arc<World>)>,
    /// What jobs ask of nodes there.
    seats: Option<Arc<Seats>>,
    /// What puts jobs before others, where the site says it.
    priorities: Option<Arc<Priorities>>,
    /// What users and others may have, where the site says it.
    limits: Option<Arc<Limits>>,
    /// Whether jobs may be kept out of the queue by limits.
    has_limits: bool,
}

impl SharedWorld {
    /// The shared of these jobs on a machine of which all is [said](Repertoire::filled_in).
    pub fn new(
        machine: &Machine,
        workload: &Workload,
        repertoire: &Repertoire,
        rules: &Rules,
        seed: u64,
    ) -> Result<Self, Unsuited> {
        if machine.feeds.is_some() && rules.switch_off.is_some() {
            return Err(Unsuited::SwitchedBehindFeeds);
        }
        let names = rules.names.as_deref();
        let assigned = repertoire.assigned(machine, workload.jobs(), names, seed);
        // What was measured of a job is of all its nodes, or of so many processors of its own.
        let made = |machine: &Machine, of_node: Option<u32>| -> Result<World, Unsuited> {
            let world = repertoire.world(machine, assigned.clone())?;
            let measured = workload.jobs().iter().zip(workload.measured_powers());
            let drawn = measured.map(|(job, power)| {
                let mean = power.and_then(MeasuredPower::mean)?;
                Some(of_node.map_or(mean, |processors| part(mean, processors, job.nodes)))
            });
            Ok(world.with_drawn(drawn.collect()))
        };
        let (mut parts, mut seats) = (Vec::new(), None);
        let world = match machine.kinds.as_deref().zip(workload.seats()) {
            None => made(machine, None)?,
            Some((kinds, asked)) => {
                if rules.switch_off.is_some() {
                    return Err(Unsuited::SwitchedKinds);
                }
                if !matches!(repertoire, Repertoire::BuiltIn) {
                    return Err(Unsuited::ProfilesOfKinds);
                }
                let mut nodes = Vec::new();
                for kind in kinds.kinds() {
                    let by_processor = kind.by_processor();
                    let world = made(&by_processor, None)?;
                    parts.push((by_processor, Arc::new(world)));
                    let details =
                        Details { parts: Some(Parts::Alike), ..kind.node().details.clone() };
                    let node = Machine { details, ..kind.node().clone() };
                    let processors = kind.size.processors;
                    nodes.push((made(&node, Some(processors))?, processors));
                }
                seats = Some(asked.clone());
                match World::of_kinds(nodes, asked.clone()) {
                    Some(world) => world,
                    None => made(machine, None)?,
                }
            }
        };
        let world = Arc::new(world);
        let believe = rules.believed(workload);
        let power = KnownPower::of(workload, machine.node_power, believe);
        let mut rules = rules.clone();
        if seats.is_some() {
            rules.allow = rules.allow & Freedoms::of(OnAllKinds::MAY);
        }
        let (queues, partitions) = (workload.queue_names(), workload.partition_names());
        let names = LogNames { queues, partitions, ..LogNames::default() };
        let limits = rules.site.as_ref().map(|site| site.limits(names, &workload.dates()));
        let limits = limits.transpose().map_err(|why| Unsuited::Site(why.to_string()))?;
        if let Some(kinds) = &machine.kinds
            && let Some(limits) = &limits
            && let is_of_some = (limits.reservations.iter())
                .any(|one| one.nodes < u64::from(kinds.nodes()) && one.numbers.is_empty())
            && is_of_some
        {
            return Err(Unsuited::Site(
                "a [[reservation]] of some of the nodes cannot be simulated where nodes are of several kinds or shared; leave \
                 'nodes' out for all of them, say which nodes for policy slurm (nodes = \"0-7,48\"), or name one partition \
                 whose nodes are not shared (--partition)"
                    .to_owned(),
            ));
        }
        let limits = limits.map(Arc::new);
        let has_limits = limits.as_ref().is_some_and(|limits| !limits.is_empty())
            || workload.structures().limit_arrays();
        let priorities = rules.site.as_ref().map(|site| site.priorities(names, &workload.dates()));
        let priorities = priorities.transpose().map_err(|why| Unsuited::Site(why.to_string()))?;
        let priorities = priorities.map(Arc::new);
        Ok(SharedWorld {
            world,
            rules,
            believe,
            seed,
            power,
            parts,
            seats,
            priorities,
            limits,
            has_limits,
        })
    }

    /// How far off predictions of power are, if that is what policies believe.
    pub fn power_accuracy(&self) -> Option<Accuracy> {
        self.power.as_ref().and_then(|power| power.accuracy)
    }

    /// What puts jobs before others, where the site says it.
    pub fn priorities(&self) -> Option<&Arc<Priorities>> {
        self.priorities.as_ref()
    }

    /// What users and others may have, where the site says it.
    pub fn limits(&self) -> Option<&Arc<Limits>> {
        self.limits.as_ref()
    }

    /// How jobs really run.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// What policies may do to jobs.
    pub(crate) fn allowed(&self) -> Freedoms {
        self.rules.allow
    }

    /// What is kept back of every limit.
    pub(crate) fn guard(&self) -> Share {
        self.rules.guard
    }

    /// When idle nodes are switched off, if they are.
    pub(crate) fn switch_off(&self) -> Option<SwitchOff> {
        self.rules.switch_off
    }

    /// What a policy believes of these jobs.
    pub fn belief(
        &self,
        policy: &PolicySpec,
        machine: &Machine,
        jobs: &[Job],
    ) -> Result<Box<dyn Model>, Unfit> {
        let draws = self.power.as_ref().map(|power| power.draws.clone()).unwrap_or_default();
        let on = |part: &Machine, world: &Arc<World>, kinds: Option<OnKinds>| {
            let field = Field::new(part, world.clone(), self.rules.allow, self.seed);
            let (has_feeds, has_limits) = (machine.feeds.is_some(), self.has_limits);
            let reservations = self.limits.iter().flat_map(|limits| &limits.reservations);
            let has_reserved_nodes = machine.kinds.as_ref().is_some_and(|all| {
                reservations.into_iter().any(|one| one.nodes < u64::from(all.nodes()))
            });
            let field = Field { draws: draws.clone(), has_reserved_nodes, ..field };
            let field = Field { kinds, has_feeds, has_limits, ..field };
            Ok(policy.enter(&field, self.believe)?.belief(jobs))
        };
        let Some(seats) = &self.seats else {
            return on(machine, &self.world, None);
        };
        let each = |kinds: OnKinds| {
            let parts = self.parts.iter().map(|(part, world)| on(part, world, Some(kinds)));
            parts.collect::<Result<Vec<_>, Unfit>>()
        };
        let (whole, shared) = (each(OnKinds::Whole)?, each(OnKinds::Shared)?);
        Ok(Box::new(Joined::new(whole, shared, seats.clone())))
    }
}

/// What so many processors would draw, if others draw so much, rounded up.
fn part(drawn: Watts, processors: u32, of: u32) -> Watts {
    let product = u128::from(drawn.milliwatts()) * u128::from(processors);
    let part = product.div_ceil(u128::from(of.max(1)));
    Watts::from_milliwatts(u64::try_from(part).unwrap_or(u64::MAX)).min(Watts::LARGEST)
}

/// What is assumed of a machine and its jobs that nobody says, a sentence for each thing.
pub fn assumed(said: &Machine, repertoire: &Repertoire, rules: &Rules) -> Vec<String> {
    let mut text = Vec::new();
    match said.kinds.as_deref() {
        None => text.extend(assumed_of_nodes(said, repertoire, rules)),
        Some(kinds) => {
            for group in kinds.groups() {
                let node = kinds.kinds()[group.kind].node();
                let details = Details { parts: Some(Parts::Alike), ..node.details.clone() };
                let node = Machine { details, ..node.clone() };
                let of_nodes = assumed_of_nodes(&node, repertoire, rules);
                text.extend(of_nodes.map(|of_nodes| format!("{}: {of_nodes}", group.name)));
            }
            text.push(
                "nodes of a kind are alike; a job on shared nodes adds its processors' part of what a whole node adds, and has \
                 no cap of its own, because a cap is that of a whole node; jobs keep their numbers of nodes"
                    .to_owned(),
            );
        }
    }
    match repertoire.unmeasured() {
        0 => (),
        rows => text.push(format!(
            "the power of {rows} rows of the profiles was not measured: their caps stand in as an upper bound"
        )),
    }
    let which = match (repertoire, &rules.names) {
        _ if said.variation.is_some() => {
            "each job's measured application is chosen at random if the log does not name it"
        }
        (Repertoire::Profiled(_), _) => {
            "each job's profiled application is chosen at random if the log does not name it"
        }
        (Repertoire::BuiltIn, None) => {
            "each job's application is chosen at random from the 17 built-in ones"
        }
        (Repertoire::BuiltIn, Some(_)) => {
            "each job's application is chosen at random from the 17 built-in ones if --applications does not name it"
        }
    };
    text.push(format!(
        "{which}, the same for all jobs of an executable; one executable in four is rigid, and one in four of the \
        others is malleable"
    ));
    text
}

/// What is assumed of nodes that are alike.
fn assumed_of_nodes(said: &Machine, repertoire: &Repertoire, rules: &Rules) -> Option<String> {
    // A machine that does not suit is an error elsewhere.
    let filled = repertoire.filled_in(said).unwrap_or_else(|_| said.filled_in(1));
    let (node, details) = (filled.node(), &said.details);
    let is_profiled = matches!(repertoire, Repertoire::Profiled(_));
    let rated = match said.power_is_assumed && !is_profiled {
        true => format!("a busy node draws up to {}", said.node_power),
        false => String::new(),
    };
    let idle = match details.idle {
        None => format!("an idle node draws {}", node.idle),
        Some(_) => String::new(),
    };
    let caps = match (details.rest, &details.levels, &filled.details.levels) {
        _ if is_profiled => String::new(),
        (None, _, Some(levels)) | (_, None, Some(levels)) => {
            let (count, lowest) = (levels.len(), levels.first().copied().unwrap_or_default());
            let steps = if count == 1 { "step" } else { "steps" };
            format!("a cap reaches {} of a node, in {count} {steps} from {lowest} on", node.highest)
        }
        _ => String::new(),
    };
    let parts = match (details.parts, filled.details.parts) {
        (None, Some(Parts::Unlike { spread, .. })) => {
            format!("nodes need up to {spread} more or less power than the median node")
        }
        _ => String::new(),
    };
    let off = match (details.off, rules.switch_off) {
        (None, Some(_)) => {
            let off = filled.off();
            format!(
                "a node that is off draws {}, stops within {} and starts within {} at {}",
                off.power,
                Length(off.stop.time),
                Length(off.start.time),
                off.start.power
            )
        }
        _ => String::new(),
    };
    let of_nodes: Vec<String> =
        [rated, idle, caps, parts, off].into_iter().filter(|text| !text.is_empty()).collect();
    (!of_nodes.is_empty())
        .then(|| format!("{}; set your values in a machine file", of_nodes.join(", ")))
}
