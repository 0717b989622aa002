//! How a policy takes part in a world: what it may do to jobs there, and what it believes of them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::belief::fit;
use crate::belief::{Admission, Belief, Choices, Holds, Joined, Knowledge, OnNamed};
use crate::call::{Call, CallError};
use crate::freedom::{Freedom, Freedoms};
use crate::job::Job;
use crate::machine::Machine;
use crate::model::{Model, Oversized, Varied};
use crate::policy::Level;
use crate::policy::field::{Draws, Field, OnKinds, Unfit};
use crate::policy::published::MARGIN_OF_MEASUREMENTS;
use crate::policy::spec::PolicySpec;
use crate::seats::{Layout, Seats};
use crate::units::{JobId, Share};
use crate::variation::Processors;
use crate::world::World;

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

/// A policy on nodes of several kinds, or that jobs share, where jobs come that nobody knows beforehand.
#[derive(Clone, Debug)]
pub struct OnAllKinds {
    /// By kind: of jobs that have whole nodes, and of those that share them.
    whole: Vec<Contender>,
    shared: Vec<Contender>,
    layout: Arc<Layout>,
}

impl OnAllKinds {
    /// What may be done to jobs there: they keep their numbers of nodes, because nobody knows how they would run on others, and
    /// those may be nodes of other jobs.
    pub const MAY: &[Freedom] = &[Freedom::Caps, Freedom::Recaps, Freedom::Nodes, Freedom::Drops];

    /// A policy on the nodes of a machine, with the kinds of these as machines of their processors, and what holds there.
    ///
    /// # Errors
    ///
    /// If it cannot do here what it was asked to.
    pub fn enter(
        policy: &PolicySpec,
        machine: &Machine,
        (layout, parts): (Arc<Layout>, &[(Machine, Arc<World>)]),
        may: Freedoms,
        believe: Believe,
    ) -> Result<Self, Unfit> {
        let each = |kinds: OnKinds| {
            let on = |(part, world): &(Machine, Arc<World>)| {
                let field = Field::new(part, world.clone(), may & Freedoms::of(Self::MAY), 1);
                let has_feeds = machine.feeds.is_some();
                policy.enter(&Field { kinds: Some(kinds), has_feeds, ..field }, believe)
            };
            parts.iter().map(on).collect::<Result<Vec<_>, Unfit>>()
        };
        Ok(OnAllKinds { whole: each(OnKinds::Whole)?, shared: each(OnKinds::Shared)?, layout })
    }

    /// What it believes of jobs, none of which it knows as yet.
    pub fn belief(&self) -> Box<dyn Model> {
        let of = |all: &[Contender]| all.iter().map(|one| one.belief(&[])).collect();
        let seats = Arc::new(Seats::open(&self.layout));
        Box::new(Joined::new(of(&self.whole), of(&self.shared), seats))
    }
}

impl PolicySpec {
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
        if matches!(believe, Believe::Predicted(_)) && field.draws == Draws::ByLaw {
            return Err(Unfit::NoPast);
        }
        self.suits(field)?;
        let mut freedoms = field.choices.freedoms & self.wants();
        if field.has_feeds && self.minds_feeds(freedoms) {
            // Which feeds more nodes of a running job would be below is not known beforehand.
            freedoms = freedoms - Freedoms::of(&[Freedom::Resizes]);
        }
        if field.has_feeds && !self.minds_feeds(freedoms) {
            return Err(Unfit::Feeds { used: freedoms });
        }
        if field.kinds.is_some() && !self.minds_kinds(freedoms) {
            return Err(Unfit::Kinds);
        }
        if field.has_limits && !self.minds_limits(freedoms) {
            return Err(Unfit::Limits);
        }
        if field.has_reserved_nodes && !self.minds_reserved_nodes() {
            return Err(Unfit::ReservedNodes);
        }
        if field.kinds == Some(OnKinds::Shared) {
            freedoms = freedoms & Freedoms::of(&[Freedom::Drops]);
        }
        let choices = Choices { freedoms, ..field.choices.clone() };
        let world = field.world.clone();
        let knows = match self.knows_nodes(field) {
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
        let published = || self.believes(choices.freedoms).fitted(field, choices);
        let (laws, holds, margin) = match believe {
            Believe::Published => published(),
            Believe::Exact => (fit::exact(&field.world), Holds::Draw, whole),
            Believe::Rated => (fit::rated(&field.world), Holds::WholeCaps, whole),
            Believe::Predicted(_) => {
                let (laws, _, margin) = published();
                (laws, Holds::Draw, margin)
            }
        };
        let holds = self.holds(holds);
        // What is set aside for whole nodes does not depend on what is expected.
        let draws = if holds == Holds::Draw { field.draws.clone() } else { Draws::ByLaw };
        let admission = match self.oversized() {
            Oversized::Slow => Admission::AnyWay,
            Oversized::Reject => Admission::AsAsked,
        };
        Knowledge { laws, holds, margin, admission, draws }
    }
}
