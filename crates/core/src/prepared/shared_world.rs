//! The shared that all policies share: the world of a prepared's jobs.
//!
//! Which application a job runs, what its user puts up with, and how nodes differ is mostly not known. What
//! nobody says is assumed, once, for all policies alike, and [said](SharedWorld::assumed).

use std::sync::Arc;

use super::known_power::KnownPower;
use super::rules::Rules;
use crate::budget::Budget;
use crate::freedom::Freedoms;
use crate::job::Job;
use crate::machine::{Cooling, Machine};
use crate::model::Model;
use crate::policy::{Accuracy, Believe, Field, PolicySpec, Unfit};
use crate::switching::SwitchOff;
use crate::tariff::Tariff;
use crate::units::{Instant, Length, Share, Span};
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
        let world = repertoire.world(machine, assigned)?;
        let means =
            workload.measured_powers().iter().map(|power| power.and_then(MeasuredPower::mean));
        let world = Arc::new(world.with_drawn(means.collect()));
        let believe = rules.believed(workload);
        let power = KnownPower::of(workload, machine.node_power, believe);
        Ok(SharedWorld { world, rules: rules.clone(), believe, seed, power })
    }

    /// How far off predictions of power are, if that is what policies believe.
    pub fn power_accuracy(&self) -> Option<Accuracy> {
        self.power.as_ref().and_then(|power| power.accuracy)
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
        let field = Field::new(machine, self.world.clone(), self.rules.allow, self.seed);
        let field = Field { draws, ..field };
        Ok(policy.enter(&field, self.believe)?.belief(jobs))
    }
}

/// What is assumed of a machine and its jobs that nobody says, a sentence for each thing.
pub fn assumed(said: &Machine, repertoire: &Repertoire, rules: &Rules) -> Vec<String> {
    // A machine that does not suit is an error elsewhere.
    let filled = repertoire.filled_in(said).unwrap_or_else(|_| said.filled_in(1));
    let (node, details) = (filled.node(), &said.details);
    let mut text = Vec::new();
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
    if !of_nodes.is_empty() {
        text.push(format!("{}; set your values in a machine file", of_nodes.join(", ")));
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
