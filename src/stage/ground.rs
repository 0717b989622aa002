//! The ground that all policies share: the world of a stage's jobs.
//!
//! Which application a job runs, what its user puts up with, and how nodes differ is mostly not known. What
//! nobody says is assumed, once, for all policies alike, and [said](Ground::assumed).

use std::sync::Arc;

use crate::belief::Choices;
use crate::budget::Budget;
use crate::freedom::{Freedom, Freedoms};
use crate::job::Job;
use crate::machine::{Details, Machine};
use crate::model::{Beta, Model};
use crate::policy::{self, Believe, PolicySpec, Unfit};
use crate::units::{Instant, JobId, Share, Span, Watts};
use crate::workload::Workload;
use crate::world::assignment::Mix;
use crate::world::{Ask, Assignment, CLASSES, Conditions, Names, Parts, World, catalogue};

/// What the site says about policies and jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// What policies may do to jobs.
    pub allow: Freedoms,
    /// What policies believe.
    pub believe: Believe,
    /// The share of every limit that is kept back from policies, because jobs may draw more than is believed.
    pub guard: Share,
    /// Which applications executables are.
    pub names: Option<Arc<Names>>,
}

/// Everything is allowed but giving jobs up and switching nodes off.
impl Default for Rules {
    fn default() -> Self {
        Rules {
            allow: Freedoms::ALL - Freedoms::of(&[Freedom::Drops, Freedom::Switches]),
            believe: Believe::default(),
            guard: Share::percent(0),
            names: None,
        }
    }
}

impl Rules {
    /// That the file of applications names none of these jobs, if it is so.
    pub fn names_nobody(&self, jobs: &[Job]) -> Option<String> {
        let names = self.names.as_ref()?;
        let is_named = jobs.iter().any(|job| names.of(job).is_some());
        (!is_named).then(|| "--applications names no executable of these jobs".to_owned())
    }
}

/// That a budget leaves nothing for jobs beside what a machine draws anyway, if it never does.
pub fn leaves_nothing(budget: &Budget, machine: &Machine) -> Option<String> {
    let most = budget.largest_for(Instant::ZERO, Span::ZERO);
    let (nodes, floor) = (machine.nodes, machine.floor());
    (most <= floor).then(|| {
        format!("the budget leaves nothing for jobs: {nodes} nodes that run nothing draw {floor} of {most}")
    })
}

/// Why jobs cannot run in a world on this machine.
#[derive(Debug, thiserror::Error)]
#[error(
    "nobody knows what '{application}' does under a cap of {cap}: give the machine higher 'caps.levels'"
)]
pub struct OutOfRange {
    application: String,
    cap: Watts,
}

/// A world, and what there is to choose from in it.
#[derive(Clone, Debug)]
pub struct Ground {
    world: Arc<World>,
    choices: Choices,
    rules: Rules,
    seed: u64,
}

impl Ground {
    /// The ground of these jobs on a machine of which all is [said](Machine::filled_in).
    pub fn new(
        machine: &Machine,
        workload: &Workload,
        rules: &Rules,
        seed: u64,
    ) -> Result<Self, OutOfRange> {
        let (node, jobs) = (machine.node(), workload.jobs());
        let Details { levels, parts, .. } = &machine.details;
        let levels = levels.clone().unwrap_or_else(|| vec![node.highest]);
        let world = match &machine.variation {
            Some(processors) => {
                let assigned = numbered(jobs, processors.applications().len(), seed);
                World::measured(node, processors, assigned.with_drawn_shapes(jobs, seed))
            }
            None => {
                let mut assigned = Assignment::drawn(jobs, &catalogue::mix(), seed);
                if let Some(names) = &rules.names {
                    assigned = assigned.with_names(jobs, names);
                }
                let assigned = assigned.with_drawn_shapes(jobs, seed);
                let parts = parts.unwrap_or(Parts::Alike);
                World::new(node, parts, catalogue::applications(), assigned)
            }
        };
        let greediest = world.parts().greed(CLASSES - 1).max(1.0);
        let lowest = levels[0].as_f64() / node.highest.as_f64() / greediest;
        for application in world.applications() {
            let (ask, at) =
                (Ask { nodes: 1, beta: Beta::FULL }, Conditions { nodes: 1, share: lowest });
            if application.law.pace(ask, at).is_none() {
                let application = application.name.clone();
                return Err(OutOfRange { application, cap: levels[0] });
            }
        }
        let choices = Choices {
            node,
            levels,
            nodes: machine.nodes,
            cores: machine.processors_per_node,
            freedoms: rules.allow,
        };
        Ok(Ground { world: Arc::new(world), choices, rules: rules.clone(), seed })
    }

    /// How jobs really run.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// What policies may do to jobs.
    pub fn allowed(&self) -> Freedoms {
        self.rules.allow
    }

    /// What is kept back of every limit.
    pub fn guard(&self) -> Share {
        self.rules.guard
    }

    /// What a policy believes of these jobs.
    pub fn belief(
        &self,
        policy: &PolicySpec,
        machine: &Machine,
        jobs: &[Job],
    ) -> Result<Box<dyn Model>, Unfit> {
        let ground = policy::Ground {
            world: self.world.clone(),
            choices: self.choices.clone(),
            gearbox: &machine.gearbox,
            jobs,
            seed: self.seed,
        };
        policy.belief(&ground, self.rules.believe)
    }
}

/// Applications that were measured on a machine: a log may give their numbers, from 1 on; others are drawn.
fn numbered(jobs: &[Job], count: usize, seed: u64) -> Assignment {
    let weights = (0..count).map(|number| (number, 1)).collect();
    let Ok(mix) = Mix::new(weights, count) else { return Assignment::one() };
    let drawn = Assignment::drawn(jobs, &mix, seed);
    let application = |(id, job): (JobId, &Job)| {
        let said = job.application.map(|number| number.0.get() as usize - 1);
        said.filter(|number| *number < count).unwrap_or(drawn.application(id)) as u16
    };
    Assignment::of((0..).map(JobId).zip(jobs).map(application).collect())
}

/// What is assumed of a machine and its jobs that nobody says, a sentence for each thing.
pub fn assumed(said: &Machine, rules: &Rules) -> Vec<String> {
    let filled = said.filled_in(1);
    let (node, details) = (filled.node(), &said.details);
    let mut text = Vec::new();
    let rated = match said.power_is_assumed {
        true => format!("a busy node draws up to {}", said.node_power),
        false => String::new(),
    };
    let idle = match details.idle {
        None => format!("an idle node draws {}", node.idle),
        Some(_) => String::new(),
    };
    let caps = match (details.rest, &details.levels, &filled.details.levels) {
        (None, _, Some(levels)) | (_, None, Some(levels)) => {
            let (count, lowest) = (levels.len(), levels.first().copied().unwrap_or_default());
            let steps = if count == 1 { "step" } else { "steps" };
            format!("a cap reaches {} of a node, in {count} {steps} from {lowest} on", node.highest)
        }
        _ => String::new(),
    };
    let parts = match (details.parts, filled.details.parts) {
        (None, Some(Parts::Unlike { spread, .. })) => {
            format!("nodes need up to {spread} more or less power than the middle one")
        }
        _ => String::new(),
    };
    let of_nodes: Vec<String> =
        [rated, idle, caps, parts].into_iter().filter(|text| !text.is_empty()).collect();
    if !of_nodes.is_empty() {
        text.push(format!("{}; a machine file says what yours do", of_nodes.join(", ")));
    }
    let which = match rules.names {
        _ if said.variation.is_some() => {
            "which of the measured applications a job runs is drawn from the seed where its log does not say"
        }
        None => "which of the 17 built-in applications a job runs is drawn from the seed",
        Some(_) => {
            "which of the 17 built-in applications a job runs is drawn from the seed where --applications \
             does not say"
        }
    };
    text.push(format!(
        "{which}, the same for all jobs of a program; of four programs one is rigid, and of the other three \
         one in four can change its nodes while it runs"
    ));
    text
}
