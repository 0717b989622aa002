//! How each policy takes part in a world: what it wants to do to jobs, what it cannot do without, and what
//! it believes.
//!
//! This is the one place that knows which belief each policy was published with. Everybody else lets a
//! policy [enter](PolicySpec::enter), asks what it believes, and does not mind which policy it is.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

pub use crate::belief::Draws;
use crate::belief::fit::{self, Clock};
use crate::belief::{Admission, Belief, Choices, Holds, Knowledge, OnNamed};
use crate::call::{Call, CallError};
use crate::freedom::{Freedom, Freedoms};
use crate::job::Job;
use crate::machine::{Gearbox, Machine};
use crate::model::{Knowledge as OfBeta, Model, Oversized, Varied};
use crate::policy::parm::Flexibility;
use crate::policy::rmap::Rule;
use crate::policy::uniform::UniformCap;
use crate::policy::utility::{Environment, Heuristic, UtilitySpec};
use crate::policy::{EasyPowerSpec, Level, PolicySpec, UniformSpec};
use crate::units::{JobId, Share, Watts};
use crate::variation::{CurveError, Processors};
use crate::world::{Law, World};

/// What fitted laws are wrong by is rarely more than a third.
const MARGIN_OF_FITS: Share = Share::percent(133);

/// What was measured on one node is wrong by up to a tenth on another.
const MARGIN_OF_MEASUREMENTS: Share = Share::percent(110);

/// What policies believe of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Believe {
    /// What each was published with, fitted to the world it runs in.
    #[default]
    Published,
    /// What holds, as far as it can be known before a job has its nodes.
    Exact,
    /// That jobs run as they were asked for, and nodes draw what they are rated at.
    Rated,
    /// What each was published with, and that jobs draw what can be predicted from those of their users and
    /// applications before them, at this level.
    Predicted(Level),
}

impl fmt::Display for Believe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Believe::Published => "published",
            Believe::Exact => "exact",
            Believe::Rated => "rated",
            Believe::Predicted(level) if *level == Level::default() => "predicted",
            Believe::Predicted(level) => return write!(f, "predicted(level={level})"),
        })
    }
}

impl FromStr for Believe {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let call: Call = text.parse().map_err(|why: CallError| why.to_string())?;
        let (plain, takes) = match call.name.as_str() {
            "published" => (Believe::Published, &[][..]),
            "exact" => (Believe::Exact, &[][..]),
            "rated" => (Believe::Rated, &[][..]),
            "predicted" => (Believe::Predicted(Level::default()), &["level"][..]),
            _ => return Err("write published, exact, rated or predicted".to_owned()),
        };
        let level = match call.parameters(takes).map_err(|why| why.to_string())? {
            [(key, level)] => call.value(key, level).map_err(|why| why.to_string())?,
            _ => return Ok(plain),
        };
        Ok(Believe::Predicted(level))
    }
}

/// What a policy was published with: how it expects caps and sizes to matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// Jobs run as they were asked for, and nodes draw what they are rated at.
    Rated,
    /// A job's time grows as the clock slows down, for all jobs alike.
    Clock,
    /// The same, with how much it does so measured for each application.
    FittedClock,
    /// A table that was measured on the reference node.
    Measured,
    /// A regression that is fitted to part of that table.
    Regression,
    /// PASS, fitted to it.
    Pass,
}

impl Published {
    /// All of them.
    pub const ALL: [Published; 6] = [
        Published::Rated,
        Published::Clock,
        Published::FittedClock,
        Published::Measured,
        Published::Regression,
        Published::Pass,
    ];

    /// What that comes to in a world: laws, what is set aside by them, and how far they may be wrong.
    fn fitted(self, field: &Field<'_>, choices: &Choices) -> (Vec<Arc<dyn Law>>, Holds, Share) {
        let (world, clock) = (&field.world, Clock::of(field.gearbox, field.world.node().highest));
        let (whole, caps, draw) = (Share::percent(100), Holds::WholeCaps, Holds::Draw);
        match self {
            Published::Rated => (fit::rated(world), caps, whole),
            Published::Clock => (fit::clock(world, &clock), caps, whole),
            Published::FittedClock => {
                (fit::clock_fitted(world, choices, &clock), caps, MARGIN_OF_FITS)
            }
            Published::Measured => (fit::measured(world), draw, MARGIN_OF_MEASUREMENTS),
            Published::Regression => {
                (fit::regression(world, choices, field.seed), draw, MARGIN_OF_FITS)
            }
            Published::Pass => (fit::pass(world, choices), caps, MARGIN_OF_FITS),
        }
    }
}

impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Published::Rated => "rated",
            Published::Clock => "clock",
            Published::FittedClock => "fitted-clock",
            Published::Measured => "measured",
            Published::Regression => "regression",
            Published::Pass => "pass",
        })
    }
}

impl FromStr for Published {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Published::ALL.into_iter().find(|published| published.to_string() == text);
        named.ok_or("write rated, clock, fitted-clock, measured, regression or pass")
    }
}

/// Why a policy cannot take part.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// It cannot do without what is not allowed.
    #[error("it requires {missing}; allow that (--allow), or leave the policy out")]
    NotAllowed {
        /// What it needs.
        missing: Freedoms,
    },
    /// It wants a queue for each machine.
    #[error(
        "jobs of several nodes cannot be queued at single machines; write environment=polled, or omit it"
    )]
    NoQueues,
    /// It wants a price on energy.
    #[error(
        "heuristic=priced is for tasks on machines of several types (--workload essc, or a folder of tasks); write \
         heuristic=max-upe, or leave that out"
    )]
    NoPrice,
    /// No node can be held at its cap.
    #[error("a node of this machine cannot be capped below {lowest}; give a higher cap")]
    CapTooLow {
        /// The lowest cap.
        lowest: Watts,
    },
    /// No node runs so slowly.
    #[error(
        "the slowest frequency of this machine is {slowest} GHz; write gear={slowest}GHz or more"
    )]
    GearTooSlow {
        /// In gigahertz.
        slowest: f64,
    },
    /// Nobody has measured what jobs draw.
    #[error(
        "power cannot be predicted, because the workload has no measured power; leave --believe out"
    )]
    NoPast,
    /// No curves can be made.
    #[error("the curves of nodes: {0}")]
    NoCurves(CurveError),
}

/// Where policies meet: a world, and what there is to choose from.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    /// How jobs really run.
    pub world: Arc<World>,
    /// What there is to choose from, and what the site allows.
    pub choices: Choices,
    /// The speeds of nodes under caps.
    pub gearbox: &'a Gearbox,
    /// Where random numbers about beliefs start.
    pub seed: u64,
    /// What is known of what single jobs draw.
    pub draws: Draws,
}

impl<'a> Field<'a> {
    /// A world on a machine of which [all is said](crate::world::Repertoire::filled_in), where policies may do
    /// this to jobs.
    pub fn new(machine: &'a Machine, world: Arc<World>, allow: Freedoms, seed: u64) -> Self {
        let node = machine.node();
        let choices = Choices {
            node,
            levels: machine.details.levels.clone().unwrap_or_else(|| vec![node.highest]),
            nodes: machine.nodes,
            cores: machine.processors_per_node,
            freedoms: allow,
            tables: world.tables().clone(),
        };
        Field { world, choices, gearbox: &machine.gearbox, seed, draws: Draws::ByLaw }
    }
}

/// A policy that takes part. What it believes of applications was worked out once, for whichever jobs.
#[derive(Clone, Debug)]
pub struct Contender {
    world: Arc<World>,
    choices: Choices,
    knows: Knows,
}

/// What is known of applications.
#[derive(Clone, Debug)]
enum Knows {
    /// How they run on any nodes.
    Anywhere(Arc<Knowledge>),
    /// How they run on each node.
    OnEach {
        curves: Arc<Processors>,
        /// Whether the world is known, too.
        exactly: bool,
    },
}

impl Contender {
    /// What it believes of these jobs.
    pub fn belief(&self, jobs: &[Job]) -> Box<dyn Model> {
        let (choices, assigned) = (&self.choices, self.world.assigned());
        match &self.knows {
            Knows::Anywhere(knowledge) => {
                Box::new(Belief::new(knowledge.clone(), choices.clone(), assigned.clone(), jobs))
            }
            Knows::OnEach { curves, exactly } => {
                let ids = (0..jobs.len() as u32).map(JobId);
                let of_jobs = ids.map(|id| assigned.application(id) as u32).collect();
                let rated = choices.node.added(choices.node.highest);
                let curves =
                    Varied::assigned(curves.clone(), rated, of_jobs).on_nodes(choices.node);
                let on_named = OnNamed::new(curves, choices, assigned.clone());
                Box::new(match exactly {
                    true => on_named.in_world(self.world.clone()),
                    false => on_named.with_margin(MARGIN_OF_MEASUREMENTS),
                })
            }
        }
    }
}

impl PolicySpec {
    /// What it would do to jobs if it may.
    pub fn wants(&self) -> Freedoms {
        use Freedom::{Caps, Drops, Nodes, Recaps, Resizes, Sizes};
        Freedoms::of(match self {
            PolicySpec::Own(own) => return own.wants,
            PolicySpec::External(spec) => return spec.wants,
            PolicySpec::Fcfs | PolicySpec::Easy(_) | PolicySpec::Conservative => &[],
            PolicySpec::EasyPower(_) | PolicySpec::PbGuided(_) => &[Caps],
            PolicySpec::Share(spec) => return spec.wants(),
            PolicySpec::Rmap(spec) if spec.rule == Rule::Traditional => &[Sizes],
            PolicySpec::Rmap(_) => &[Caps, Sizes],
            PolicySpec::Parm(spec) => match spec.flexibility {
                Flexibility::None => &[Caps, Recaps],
                Flexibility::Moldable => &[Caps, Sizes, Recaps],
                Flexibility::Malleable => &[Caps, Sizes, Recaps, Resizes],
            },
            PolicySpec::Ppartition(_) => &[Caps, Sizes, Recaps, Nodes],
            PolicySpec::Uniform(_) => &[Caps, Nodes],
            PolicySpec::Utility(_) => &[Caps, Drops],
        })
    }

    /// What it cannot do without.
    pub fn needs(&self) -> Freedoms {
        use Freedom::{Caps, Nodes, Recaps};
        Freedoms::of(match self {
            PolicySpec::Own(own) => return own.needs,
            PolicySpec::Ppartition(_) => &[Caps, Recaps, Nodes],
            PolicySpec::Uniform(_) => &[Caps, Nodes],
            _ => &[],
        })
    }

    /// Takes part, with this belief.
    ///
    /// # Errors
    ///
    /// If it needs more than is allowed, or cannot do here what it was asked to.
    pub fn enter(&self, field: &Field<'_>, believe: Believe) -> Result<Contender, Unfit> {
        let missing = self.needs() - field.choices.freedoms;
        if !missing.is_empty() {
            return Err(Unfit::NotAllowed { missing });
        }
        if let PolicySpec::Utility(spec) = self
            && spec.environment == Environment::Queued
        {
            return Err(Unfit::NoQueues);
        }
        if let PolicySpec::Utility(UtilitySpec { heuristic: Heuristic::Priced, .. }) = self {
            return Err(Unfit::NoPrice);
        }
        if matches!(believe, Believe::Predicted(_)) && field.draws == Draws::ByLaw {
            return Err(Unfit::NoPast);
        }
        let lowest = field.choices.levels[0];
        if let PolicySpec::Uniform(UniformSpec { cap: UniformCap::Power(cap), .. }) = self
            && *cap < lowest
        {
            return Err(Unfit::CapTooLow { lowest });
        }
        if let PolicySpec::EasyPower(EasyPowerSpec { gear: Some(gear), .. }) = self
            && let Some(slowest) = field.gearbox.gears().first()
            && !gear.reaches(slowest.ghz)
        {
            return Err(Unfit::GearTooSlow { slowest: slowest.ghz });
        }
        let freedoms = field.choices.freedoms & self.wants();
        let choices = Choices { freedoms, ..field.choices.clone() };
        let world = field.world.clone();
        let knows = match self.wants().has(Freedom::Nodes) {
            true => {
                let curves = fit::curves(&world, &choices).map_err(Unfit::NoCurves)?;
                Knows::OnEach { curves: Arc::new(curves), exactly: believe == Believe::Exact }
            }
            false => Knows::Anywhere(Arc::new(self.knowledge(field, &choices, believe))),
        };
        Ok(Contender { world, choices, knows })
    }

    fn knowledge(&self, field: &Field<'_>, choices: &Choices, believe: Believe) -> Knowledge {
        let whole = Share::percent(100);
        let (laws, holds, margin) = match believe {
            Believe::Published => self.published(choices.freedoms).fitted(field, choices),
            Believe::Exact => (fit::exact(&field.world), Holds::Draw, whole),
            Believe::Rated => (fit::rated(&field.world), Holds::WholeCaps, whole),
            Believe::Predicted(_) => {
                let (laws, _, margin) = self.published(choices.freedoms).fitted(field, choices);
                (laws, Holds::Draw, margin)
            }
        };
        let holds = match self {
            PolicySpec::Rmap(spec) => spec.node_power.map_or(holds, Holds::Node),
            _ => holds,
        };
        // What is set aside for whole nodes does not depend on what is expected.
        let draws = if holds == Holds::Draw { field.draws.clone() } else { Draws::ByLaw };
        Knowledge { laws, holds, margin, admission: self.admission(), draws }
    }

    /// What it was published with, if it may do so much.
    fn published(&self, freedoms: Freedoms) -> Published {
        match self {
            PolicySpec::Fcfs | PolicySpec::Easy(_) | PolicySpec::Conservative => Published::Rated,
            PolicySpec::PbGuided(spec) if spec.beta == OfBeta::Known => Published::FittedClock,
            PolicySpec::EasyPower(_) | PolicySpec::PbGuided(_) => Published::Clock,
            PolicySpec::Share(_) if freedoms.has(Freedom::Sizes) => Published::Pass,
            PolicySpec::Share(_) => Published::Clock,
            PolicySpec::Rmap(spec) if matches!(spec.rule, Rule::Adaptive(_)) => {
                Published::Regression
            }
            PolicySpec::Rmap(_) | PolicySpec::Utility(_) => Published::Measured,
            PolicySpec::Parm(_) => Published::Pass,
            // Those that choose nodes have a curve for each, which was measured.
            PolicySpec::Ppartition(_) | PolicySpec::Uniform(_) => Published::Measured,
            PolicySpec::Own(own) => own.believes,
            PolicySpec::External(spec) => spec.believes,
        }
    }

    /// The rule that admits or rejects jobs.
    fn admission(&self) -> Admission {
        let oversized = match self {
            PolicySpec::EasyPower(spec) => spec.oversized,
            PolicySpec::PbGuided(spec) => spec.oversized,
            _ => Oversized::Slow,
        };
        match oversized {
            Oversized::Slow => Admission::AnyWay,
            Oversized::Reject => Admission::AsAsked,
        }
    }
}
