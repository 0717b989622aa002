//! Why profiles cannot be used.

use crate::job::NodeRange;
use crate::units::Watts;

/// Why profiles cannot be used for a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfiledError {
    /// There are no profiles.
    #[error("there are no profiles; import or generate some (busbar profile)")]
    None,
    /// A profile has no rows.
    #[error("the profile of '{0}' has no rows on as few nodes as the machine has")]
    Empty(String),
    /// A profile is of nodes with more cores.
    #[error(
        "the profile of '{application}' has rows with {cores} cores a node, and a node of the \
         machine has {processors}; is it another machine (--machine)?"
    )]
    Cores {
        /// The application whose profile it is.
        application: String,
        /// Cores of one of its rows.
        cores: u32,
        /// Processors of a node of the machine.
        processors: u32,
    },
    /// A profile is of nodes that draw more.
    #[error(
        "the profile of '{application}' has rows under {cap} a socket, and a node of the machine \
         has {sockets} and draws {node_power} at most; is it another machine (--machine)?"
    )]
    Cap {
        /// The application whose profile it is.
        application: String,
        /// The cap of one of its rows.
        cap: Watts,
        /// Sockets of a node of the machine.
        sockets: u32,
        /// The highest power of a node.
        node_power: Watts,
    },
    /// A job does not say which application it runs.
    #[error(
        "job {job} does not say which application it runs; its executable number must be one \
         that 'busbar profile list' shows"
    )]
    NoApplication {
        /// The job's number.
        job: u64,
    },
    /// A job's application has no profile.
    #[error(
        "job {job} runs application {application}, which has no profile; there are {profiles}: \
         see 'busbar profile list'"
    )]
    Unknown {
        /// The job's number.
        job: u64,
        /// The application's.
        application: u32,
        /// How many profiles there are.
        profiles: usize,
    },
    /// A job can run on no number of nodes that there is a row for.
    #[error(
        "job {job} can run on {range} nodes, and the profile of its application, {application}, has \
         no row there; see 'busbar profile list'"
    )]
    Range {
        /// The job's number.
        job: u64,
        /// The application's.
        application: u32,
        /// The nodes it can run on.
        range: NodeRange,
    },
}
