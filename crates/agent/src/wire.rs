//! The protocol of controllers and agents: one JSON object per line.
//!
//! A client begins with [`Request::Hello`], and the agent answers with its inventory, or refuses a protocol
//! of another major version. After that a client asks what it wants, each request with an `id` that the
//! answer repeats. Answers come in the order of the requests; events and samples, for those who
//! [watch](Request::Watch), come between them. Powers are whole milliwatts, energies whole microjoules and
//! times whole milliseconds. No request holds a path or a command.

use std::fmt;

use busbar_core::units::{Joules, Watts};
use serde::{Deserialize, Serialize};

use crate::domain::{Basis, CapRange, DomainKind, DomainName, Effective};
use crate::instance::Instance;
use crate::reading::Reading;

mod event;

pub use event::Event;

/// The version of this protocol, as major and minor number. Peers with the same major number understand
/// each other.
pub(crate) const PROTOCOL: (u32, u32) = (1, 1);

/// The longest request in bytes, without the newline. An agent closes a connection that sends more.
pub(crate) const LONGEST_REQUEST: usize = 64 * 1024;

/// The longest message of an agent in bytes, without the newline. A client closes a connection that sends
/// more.
pub(crate) const LONGEST_ANSWER: usize = 1024 * 1024;

/// The longest name of a job or a client, in bytes.
pub(crate) const LONGEST_NAME: usize = 128;

/// A request with its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Numbered {
    /// The number, which the answer repeats.
    pub(crate) id: u64,
    /// The request.
    pub(crate) request: Request,
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The first request of each connection. The answer is [`Answer::Welcome`].
    Hello {
        /// The client's protocol version, as `major.minor`.
        protocol: String,
        /// The client's name, for the log of changes.
        client: String,
        /// Whether the client means to set caps. A new controller takes the place of an older connection of
        /// the same controller, so that a request that was delayed there cannot act any more. While another
        /// controller holds the lease, it is refused.
        control: bool,
        /// Which of several controllers of the same user or certificate it is. Since version 1.1; an older agent
        /// refuses the field.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instance: Option<Instance>,
    },
    /// What the node has, and what holds now. The answer is [`Answer::Inventory`].
    Inventory,
    /// Set caps. The answer is [`Answer::Set`], when every domain is confirmed or failed. This takes or
    /// renews the lease.
    Set(Caps),
    /// Measure now. The answer is [`Answer::Sample`].
    Read,
    /// Send a sample every this many milliseconds, rounded up to the agent's own period, and every event. The
    /// answer is [`Answer::Done`].
    Watch {
        /// The period in milliseconds.
        period: u64,
    },
    /// Renew the lease. The answer is [`Answer::Lease`].
    Renew {
        /// How long the agent is to wait for the next sign of life, in milliseconds. The agent may
        /// grant less.
        lease: u64,
    },
    /// Give the node back: the controller no longer counts on any cap. The agent restores the limits that
    /// the site had, and ends the lease. The answer is [`Answer::Set`].
    Release,
    /// Begin to add up the energy of a job. The answer is [`Answer::Done`].
    Begin {
        /// The job's name, unique on this node.
        job: String,
    },
    /// End that, and tell what the job consumed. The answer is [`Answer::Energy`].
    End {
        /// The job's name.
        job: String,
    },
}

/// The caps that a client asks for. What is lowered is written and confirmed first. If something that should be
/// lowered is not confirmed, nothing is raised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Caps {
    /// A cap for the capped part of the whole node, which the agent divides ([`crate::split`]).
    Node {
        /// The cap.
        cap: Watts,
    },
    /// A cap for each of these domains; others stay as they are.
    Domains {
        /// The domains with their caps.
        caps: Vec<(DomainName, Watts)>,
    },
}

/// What an agent sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// An answer to a request.
    Answer {
        /// The number of the request.
        id: u64,
        /// The answer.
        answer: Box<Answer>,
    },
    /// Something happened.
    Event {
        /// When, in milliseconds since 1970 by the agent's clock.
        at: u64,
        /// The event.
        event: Event,
    },
    /// A measurement.
    Sample(Sample),
}

/// An answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The client is admitted.
    Welcome {
        /// The agent's protocol version, as `major.minor`.
        protocol: String,
        /// The agent's program version.
        program: String,
        /// What the node has.
        inventory: Inventory,
    },
    /// What the node has.
    Inventory(Inventory),
    /// What became of caps.
    Set(SetReport),
    /// A measurement.
    Sample(Sample),
    /// The lease.
    Lease {
        /// How long the agent waits for the next sign of life, in milliseconds.
        lease: u64,
    },
    /// The energy that a job consumed.
    Energy(JobEnergy),
    /// It is done, and there is nothing to tell.
    Done,
    /// It was refused, and nothing changed.
    Refused(Refusal),
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What kind of reason.
    pub kind: RefusalKind,
    /// The reason and what to do, for people.
    pub message: String,
}

/// The kind of a refusal, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The request cannot be read.
    Malformed,
    /// The protocol has another major version.
    Version,
    /// The client may not do this.
    Forbidden,
    /// Another controller holds the lease.
    Leased,
    /// There is no such domain or job, or it cannot be capped.
    Unknown,
    /// There are too many connections or jobs, or names are too long.
    TooMuch,
}

/// What a node has, and what holds now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// The node's name.
    pub node: String,
    /// The caps that the whole node can be given; `None` if it cannot be capped.
    pub caps: Option<CapRange>,
    /// What a budget must count for the capped part of the node now: the limits that hold, and what domains
    /// without a known limit can draw.
    pub counted: Watts,
    /// The node's safe cap, to which it falls if a lease ends.
    pub safe: Option<Watts>,
    /// The longest lease that is granted, in milliseconds.
    pub longest_lease: u64,
    /// The holder of the lease, if any.
    pub controller: Option<String>,
    /// Whether an emulator stands behind some domain.
    pub emulated: bool,
    /// The domains.
    pub domains: Vec<Domain>,
}

/// A domain as an inventory shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Domain {
    /// Its name.
    pub name: DomainName,
    /// Its kind.
    pub kind: DomainKind,
    /// What is read and written, such as `powercap intel-rapl:0`.
    pub source: String,
    /// Whether an emulator stands behind it.
    pub emulated: bool,
    /// The caps that it can be given; `None` if it can only be measured.
    pub caps: Option<CapRange>,
    /// Where the lowest cap was found.
    pub lowest_basis: Option<Basis>,
    /// What a budget must count for it if no limit is known to hold.
    pub rated: Watts,
    /// Why it can only be measured, or what is to be known about it.
    pub notes: Vec<String>,
    /// Whether it is part of the node's cap.
    pub in_node_cap: bool,
    /// The limit that holds.
    pub effective: Effective,
    /// The cap that the agent holds it to, if a controller has set one.
    pub cap: Option<Watts>,
}

/// What became of a request to set caps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetReport {
    /// The cap of the whole node that was asked for, if it was one.
    pub requested: Option<Watts>,
    /// The domains that the request concerned.
    pub domains: Vec<DomainReport>,
    /// What a budget must count for the capped part of the node now: the limits that hold, and what domains
    /// without a known limit can draw.
    pub counted: Watts,
}

impl SetReport {
    /// Whether every domain, and the node, has the cap that was asked for, or a lower one. A node's cap below
    /// its range gives each domain its lowest cap, and is not confirmed.
    pub fn is_confirmed(&self) -> bool {
        let is_whole = self.requested.is_none_or(|cap| self.counted <= cap);
        is_whole && self.domains.iter().all(|domain| domain.outcome == Outcome::Confirmed)
    }
}

/// What became of the cap of one domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainReport {
    /// The domain.
    pub name: DomainName,
    /// The cap that was asked for.
    pub requested: Watts,
    /// What became of it.
    pub outcome: Outcome,
    /// The limit that held before.
    pub before: Effective,
    /// The limit that holds now.
    pub effective: Effective,
}

/// What became of a cap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A limit not above the cap was read back. Whether the domain obeys it, later events tell.
    Confirmed,
    /// A limit was read back that is above the cap.
    Clamped {
        /// The reason, in words.
        reason: String,
    },
    /// The limit could not be changed.
    Failed {
        /// The reason, in words.
        reason: String,
    },
    /// The cap was not raised, because another domain could not be lowered.
    Withheld,
}

/// A measurement of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When, in milliseconds since 1970 by the agent's clock.
    pub at: u64,
    /// The power of all domains together. A part of a node that has no meter is not in it.
    pub power: Reading<Watts>,
    /// Each domain.
    pub domains: Vec<DomainSample>,
}

/// A measurement of a domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DomainSample {
    /// The domain.
    pub name: DomainName,
    /// Its power since the last sample, rounded up.
    pub power: Reading<Watts>,
    /// The energy since the agent started.
    pub energy: Reading<Joules>,
    /// The limit that holds.
    pub effective: Effective,
}

/// What a job consumed between [`Request::Begin`] and [`Request::End`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobEnergy {
    /// The job.
    pub job: String,
    /// When it began, in milliseconds since 1970 by the agent's clock.
    pub from: u64,
    /// How long it took, in milliseconds, by a clock that nobody sets.
    pub elapsed: u64,
    /// The energy of all domains together.
    pub energy: Reading<Joules>,
    /// The energy of each domain.
    pub domains: Vec<(DomainName, Reading<Joules>)>,
}

/// A version as it is written on the wire.
pub(crate) fn version_text((major, minor): (u32, u32)) -> String {
    format!("{major}.{minor}")
}

/// Checks whether a peer's version is understood.
pub(crate) fn is_understood(version: &str) -> bool {
    let major = version.split_once('.').map_or(version, |(major, _)| major);
    major.parse() == Ok(PROTOCOL.0)
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Confirmed => f.write_str("confirmed"),
            Outcome::Clamped { reason } => write!(f, "clamped: {reason}"),
            Outcome::Failed { reason } => write!(f, "failed: {reason}"),
            Outcome::Withheld => f.write_str("withheld: another domain could not be lowered"),
        }
    }
}
