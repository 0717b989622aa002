//! How each policy takes part in a world: what it wants to do to jobs, what it cannot do without, and what
//! it believes.
//!
//! This is the one place that knows which belief each policy was published with. Everybody else asks for a
//! policy's [belief](PolicySpec::belief) and does not mind which policy it is.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::belief::fit::{self, Clock, NoFit};
use crate::belief::{Admission, Belief, Choices, Holds, Knowledge, OnNamed};
use crate::freedom::{Freedom, Freedoms};
use crate::job::Job;
use crate::machine::Gearbox;
use crate::model::{Knowledge as OfBeta, Model, Oversized, Varied};
use crate::policy::rmap::Rule;
use crate::policy::uniform::UniformCap;
use crate::policy::utility::Environment;
use crate::policy::{PolicySpec, UniformSpec};
use crate::units::{JobId, Share, Watts};
use crate::variation::CurveError;
use crate::world::{Law, World};

/// What fitted laws are wrong by is rarely more than a third.
const MARGIN_OF_FITS: Share = Share::percent(133);

/// What was measured on one node is wrong by up to a tenth on another.
const MARGIN_OF_MEASUREMENTS: Share = Share::percent(110);

/// How much of what can be measured RMAP's regression is trained on.
const TRAINED_ON: Share = Share::percent(10);

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
}

impl Believe {
    /// All of them.
    pub const ALL: [Believe; 3] = [Believe::Published, Believe::Exact, Believe::Rated];
}

impl fmt::Display for Believe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Believe::Published => "published",
            Believe::Exact => "exact",
            Believe::Rated => "rated",
        })
    }
}

impl FromStr for Believe {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Believe::ALL.into_iter().find(|believe| believe.to_string() == text);
        named.ok_or("write published, exact or rated")
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
    /// What that comes to in a world.
    fn fitted(
        self,
        ground: &Ground<'_>,
        choices: &Choices,
        admission: Admission,
    ) -> Result<Knowledge, Unfit> {
        let (world, clock) = (&ground.world, Clock::of(ground.gearbox));
        let no_fit = |why| Unfit::NoFit(Box::new(why));
        let with = |margin, laws, holds| Knowledge { laws, holds, margin, admission };
        let whole = Share::percent(100);
        Ok(match self {
            Published::Rated => with(whole, fit::rated(world), Holds::WholeCaps),
            Published::Clock => with(whole, fit::clock(world, &clock), Holds::WholeCaps),
            Published::FittedClock => {
                let laws = fit::clock_fitted(world, choices, &clock);
                with(MARGIN_OF_FITS, laws, Holds::WholeCaps)
            }
            Published::Measured => with(MARGIN_OF_MEASUREMENTS, fit::measured(world), Holds::Draw),
            Published::Regression => {
                let laws = fit::regression(world, choices, TRAINED_ON, ground.seed);
                with(MARGIN_OF_FITS, laws.map_err(no_fit)?, Holds::Draw)
            }
            Published::Pass => {
                let laws = fit::pass(world, choices).map_err(no_fit)?;
                with(MARGIN_OF_FITS, laws, Holds::WholeCaps)
            }
        })
    }
}

/// Why a policy cannot take part.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// It cannot do without what is not allowed.
    #[error("it cannot do without {missing}; allow that (--allow), or leave the policy out")]
    NotAllowed {
        /// What it needs.
        missing: Freedoms,
    },
    /// It wants a queue for each machine.
    #[error(
        "jobs of several nodes cannot be queued at single machines; write environment=polled, or leave \
         that out"
    )]
    NoQueues,
    /// Its belief cannot be made.
    #[error("its belief cannot be fitted to these jobs: {0}")]
    NoFit(Box<NoFit>),
    /// No node can be held at its cap.
    #[error("a node of this machine cannot be held below {lowest}; give a higher cap")]
    CapTooLow {
        /// The lowest cap.
        lowest: Watts,
    },
    /// No curves can be made.
    #[error("the curves of nodes: {0}")]
    NoCurves(CurveError),
}

/// Where policies meet: a world, what there is to choose from, and the jobs.
#[derive(Clone, Debug)]
pub struct Ground<'a> {
    /// How jobs really run.
    pub world: Arc<World>,
    /// What there is to choose from, and what the site allows.
    pub choices: Choices,
    /// The speeds of nodes under caps.
    pub gearbox: &'a Gearbox,
    /// All jobs.
    pub jobs: &'a [Job],
    /// Where random numbers about beliefs start.
    pub seed: u64,
}

impl PolicySpec {
    /// What it would do to jobs if it may.
    pub fn wants(&self) -> Freedoms {
        use Freedom::{Caps, Drops, Nodes, Recaps, Resizes, Sizes};
        Freedoms::of(match self {
            PolicySpec::Own(own) => return own.wants,
            PolicySpec::Fcfs | PolicySpec::Easy | PolicySpec::Conservative => &[],
            PolicySpec::EasyPower(_) | PolicySpec::PbGuided(_) => &[Caps],
            PolicySpec::Rmap(spec) if spec.rule == Rule::Traditional => &[Sizes],
            PolicySpec::Rmap(_) => &[Caps, Sizes],
            PolicySpec::Parm(_) => &[Caps, Sizes, Recaps, Resizes],
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

    /// What it believes of the jobs.
    ///
    /// # Errors
    ///
    /// If it needs more than is allowed, or its belief cannot be fitted to the world.
    pub fn belief(&self, ground: &Ground<'_>, believe: Believe) -> Result<Box<dyn Model>, Unfit> {
        let missing = self.needs() - ground.choices.freedoms;
        if !missing.is_empty() {
            return Err(Unfit::NotAllowed { missing });
        }
        if let PolicySpec::Utility(spec) = self
            && spec.environment == Environment::Queued
        {
            return Err(Unfit::NoQueues);
        }
        let lowest = ground.choices.levels[0];
        if let PolicySpec::Uniform(UniformSpec { cap: UniformCap::Power(cap), .. }) = self
            && *cap < lowest
        {
            return Err(Unfit::CapTooLow { lowest });
        }
        let freedoms = ground.choices.freedoms & self.wants();
        let choices = Choices { freedoms, ..ground.choices.clone() };
        if self.wants().has(Freedom::Nodes) {
            return self.on_named(ground, &choices, believe);
        }
        let knowledge = match believe {
            Believe::Published => self.published().fitted(ground, &choices, self.admission())?,
            Believe::Exact => self.knowing(fit::exact(&ground.world), Holds::Draw),
            Believe::Rated => self.knowing(fit::rated(&ground.world), Holds::WholeCaps),
        };
        let assigned = ground.world.assigned().clone();
        Ok(Box::new(Belief::new(Arc::new(knowledge), choices, assigned, ground.jobs)))
    }

    /// Laws that are believed to the letter.
    fn knowing(&self, laws: Vec<Arc<dyn Law>>, holds: Holds) -> Knowledge {
        Knowledge { laws, holds, margin: Share::percent(100), admission: self.admission() }
    }

    /// What it was published with.
    fn published(&self) -> Published {
        match self {
            PolicySpec::Fcfs | PolicySpec::Easy | PolicySpec::Conservative => Published::Rated,
            PolicySpec::PbGuided(spec) if spec.beta == OfBeta::Known => Published::FittedClock,
            PolicySpec::EasyPower(_) | PolicySpec::PbGuided(_) => Published::Clock,
            PolicySpec::Rmap(spec) if matches!(spec.rule, Rule::Adaptive(_)) => {
                Published::Regression
            }
            PolicySpec::Rmap(_) | PolicySpec::Utility(_) => Published::Measured,
            PolicySpec::Parm(_) => Published::Pass,
            // Those that choose nodes have a curve for each, which was measured.
            PolicySpec::Ppartition(_) | PolicySpec::Uniform(_) => Published::Measured,
            PolicySpec::Own(own) => own.believes,
        }
    }

    /// The same for policies that choose nodes: a curve for each of them.
    fn on_named(
        &self,
        ground: &Ground<'_>,
        choices: &Choices,
        believe: Believe,
    ) -> Result<Box<dyn Model>, Unfit> {
        let curves = fit::curves(&ground.world, choices);
        let curves = curves.map_err(Unfit::NoCurves)?;
        let assigned = ground.world.assigned();
        let jobs = (0..ground.jobs.len() as u32).map(JobId);
        let of_jobs = jobs.map(|job| assigned.application(job) as u32).collect();
        let rated = choices.node.added(choices.node.highest);
        let curves = Varied::assigned(Arc::new(curves), rated, of_jobs).on_nodes(choices.node);
        Ok(Box::new(match believe {
            Believe::Exact => OnNamed::in_world(curves, ground.world.clone(), choices.freedoms),
            Believe::Published | Believe::Rated => {
                OnNamed::curves(curves, MARGIN_OF_MEASUREMENTS, choices.freedoms, assigned.clone())
            }
        }))
    }

    /// Who is let in.
    fn admission(&self) -> Admission {
        let oversized = match self {
            PolicySpec::EasyPower(oversized) => *oversized,
            PolicySpec::PbGuided(spec) => spec.oversized,
            _ => Oversized::Slow,
        };
        match oversized {
            Oversized::Slow => Admission::AnyWay,
            Oversized::Reject => Admission::AsAsked,
        }
    }
}
