//! Where policies meet, and why one of them cannot take part there.

use std::sync::Arc;

use crate::belief::Choices;
pub use crate::belief::Draws;
use crate::freedom::Freedoms;
use crate::machine::{Gearbox, Machine};
use crate::variation::CurveError;
use crate::world::World;

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
    /// Whether feeds of the machine have limits.
    pub has_feeds: bool,
    /// Where its nodes are of several kinds or shared by jobs: which jobs this is about.
    pub kinds: Option<OnKinds>,
    /// Whether jobs leave the queue that are over a limit of the site.
    pub has_limits: bool,
    /// Whether certain nodes are reserved, where nodes are of several kinds or shared by jobs.
    pub has_reserved_nodes: bool,
}

/// Jobs on nodes of one of several kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnKinds {
    /// They have whole nodes.
    Whole,
    /// They share nodes with others. No cap is theirs alone, so they run as they were asked for.
    Shared,
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
        let (gearbox, has_feeds) = (&machine.gearbox, machine.feeds.is_some());
        let draws = Draws::ByLaw;
        Field {
            world,
            choices,
            gearbox,
            seed,
            draws,
            has_feeds,
            kinds: None,
            has_limits: false,
            has_reserved_nodes: false,
        }
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
    /// It cannot deal with feeds.
    #[error(
        "it does not know feeds, because it uses {used}; leave [[feed]] out of the machine file, or do not allow that \
        (--allow)"
    )]
    Feeds {
        /// What it would do to jobs beyond starting them.
        used: Freedoms,
    },
    /// It cannot deal with nodes of several kinds.
    #[error(
        "it does not know nodes of several kinds or nodes that jobs share; name one partition whose nodes are not shared \
        (--partition), or choose a built-in policy"
    )]
    Kinds,
    /// It cannot deal with limits of a site.
    #[error(
        "it cannot keep limits of jobs; leave them out of the site file, and '%' out of arrays, or choose fcfs, easy, easy-power, \
        conservative, pb-guided, rmap-*, utility or share(use=caps or recaps)"
    )]
    Limits,
    /// It cannot keep certain nodes free.
    #[error(
        "it cannot keep certain nodes free for a [[reservation]] where nodes are of several kinds or shared; leave it out of the \
        site file, or choose slurm"
    )]
    ReservedNodes,
    /// It cannot do here what it was asked to: why, and what to do.
    #[error("{0}")]
    Here(String),
    /// Nobody has measured what jobs draw.
    #[error(
        "power cannot be predicted, because the workload has no measured power; leave --believe out"
    )]
    NoPast,
    /// No curves can be made.
    #[error("the curves of nodes: {0}")]
    NoCurves(CurveError),
}
