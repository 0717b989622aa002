//! What a running job has: an attempt to run it, on particular nodes and with power, until it ends.

use serde::{Deserialize, Serialize};

use super::part::{Part, Place};
use busbar_core::model::{Caps, NodeCap, OperatingPoint};
use busbar_core::units::{NodeId, Span, Watts};

/// An attempt to run a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// The job's number.
    pub job: u64,
    /// The number of the attempt, from 1.
    pub number: u32,
}

impl std::fmt::Display for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.job, self.number)
    }
}

/// The nodes and power that a job has: an operating point on particular nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allotment {
    /// The nodes in order, each with its cap.
    pub nodes: Vec<(u32, Watts)>,
    /// Cores used on each node.
    pub cores: u32,
    /// The cap of the operating point, for every node.
    pub cap: Watts,
    /// The time limit of the whole job at this point.
    pub time: Span,
    /// The power of the job on all nodes.
    pub power: Watts,
    /// The predicted speed, in millionths of the speed on the nodes asked for without a cap
    /// ([`FULL_SPEED`](Self::FULL_SPEED)).
    pub speed: u32,
    /// What the job has of each node, where nodes are of several kinds or jobs share them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Box<Part>>,
}

impl Allotment {
    /// The speed of a job on the nodes it asks for without a cap.
    pub const FULL_SPEED: u32 = 1_000_000;

    /// The numbers of the nodes, in order.
    pub(crate) fn node_numbers(&self) -> Vec<u32> {
        self.nodes.iter().map(|(node, _)| *node).collect()
    }

    /// The operating point that the job has. Where nodes are of several kinds, that of their processors.
    pub fn point(&self) -> OperatingPoint {
        let &Allotment { cores, cap, time, power, .. } = self;
        let nodes = self.nodes.len() as u32;
        match self.part.as_ref().map(|part| part.processors.max(1)) {
            None => OperatingPoint { nodes, cores, cap, time, power },
            Some(each) => {
                let cap = Watts::from_milliwatts(cap.milliwatts() / u64::from(each));
                let (nodes, cores) = (nodes.saturating_mul(each), cores / each);
                OperatingPoint { nodes, cores, cap, time, power }
            }
        }
    }

    /// Which processors and GPUs of a node the job has, if it has only some.
    pub(crate) fn place_on(&self, node: u32) -> Option<&Place> {
        let place = self.nodes.iter().position(|(other, _)| *other == node)?;
        self.part.as_ref()?.places.get(place)
    }

    /// The nodes with their caps; `None` if there are no nodes.
    pub(crate) fn caps(&self) -> Option<Caps> {
        let capped = |&(node, cap): &_| NodeCap { node: NodeId(node), cap };
        Caps::new(self.nodes.iter().map(capped).collect())
    }
}

/// How the process of a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The process exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// The command could not be run, for this reason.
    Failed(String),
    /// The end is not known, because the process that watched the job is gone.
    Lost,
}
