//! The interface to what jobs run on: the daemon asks, an engine acts and reports.
//!
//! Nothing here waits. The daemon hands over [`Order`]s, several at once, each with a [`Ticket`], and goes on.
//! Whether an order was carried out, and whatever else happens, the engine tells by [`Report`]s. An order counts
//! as carried out only when its report says so: until then a job counts at its old, higher draw, since nothing
//! that takes more power is ordered before everything that frees power was confirmed
//! ([`pipeline`](crate::daemon)).
//!
//! A job may have to be started more than once; each time is an [`Attempt`]. An engine runs an attempt
//! once or not at all, whatever happens to the daemon meanwhile, and can tell after a restart what
//! happened to it.
//!
//! Engines whose acts are in force when a call returns implement [`Immediate`], and become an [`Engine`] in
//! [`AtOnce`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use busbar_core::model::{Caps, NodeCap, OperatingPoint};
use busbar_core::units::{Joules, NodeId, Span, Watts, json};

mod arrival;
mod at_once;
mod emulated_power;
mod recording;

pub use arrival::{Arrival, Underway};
pub use at_once::{AtOnce, Immediate};
pub use busbar_core::ledger::SwitchState;
pub use emulated_power::EmulatedPower;
pub use recording::{Call, Recording};

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
}

impl Allotment {
    /// The speed of a job on the nodes it asks for without a cap.
    pub const FULL_SPEED: u32 = 1_000_000;

    /// The numbers of the nodes, in order.
    pub fn node_numbers(&self) -> Vec<u32> {
        self.nodes.iter().map(|(node, _)| *node).collect()
    }

    /// The operating point that the job has.
    pub fn point(&self) -> OperatingPoint {
        let &Allotment { cores, cap, time, power, .. } = self;
        OperatingPoint { nodes: self.nodes.len() as u32, cores, cap, time, power }
    }

    /// The nodes with their caps; `None` if there are no nodes.
    pub fn caps(&self) -> Option<Caps> {
        let capped = |&(node, cap): &_| NodeCap { node: NodeId(node), cap };
        Caps::new(self.nodes.iter().map(capped).collect())
    }
}

/// Everything an engine needs to start an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The attempt to be started.
    pub attempt: Attempt,
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    /// The working directory.
    pub folder: PathBuf,
    /// The complete environment.
    pub environment: Vec<(String, String)>,
    /// The file for standard output; it may be the same as `errors`.
    pub output: PathBuf,
    /// The file for standard error.
    pub errors: PathBuf,
    /// The user and group to run as; `None` for those of the daemon.
    pub owner: Option<(u32, u32)>,
    /// The nodes and power it gets.
    pub allotment: Allotment,
    /// How the engine knows the job, if it came through the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// Whether the engine chooses the nodes. Then those of the allotment say how many there are to be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_free: bool,
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

/// A signal to a running job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Signal {
    /// Ask the job to end.
    Terminate,
    /// Kill the job.
    Kill,
    /// Suspend the job.
    Suspend,
    /// Let a suspended job go on.
    Resume,
}

/// What an engine knows about an attempt after a restart of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The attempt is running, and is watched again.
    Running,
    /// The attempt has ended meanwhile.
    Ended {
        /// How it ended.
        end: End,
        /// How long ago that was; no time at all if the engine does not know.
        ago: Span,
    },
    /// The attempt did not begin and never will.
    NeverStarted,
    /// The same, for a reason that somebody should know.
    NotBegun(String),
}

impl Found {
    /// Whether nothing runs, and nothing will.
    pub fn is_over(&self) -> bool {
        *self != Found::Running
    }
}

/// How long ago a time by the wall clock was. One that lies ahead, because the clock was set, was just now.
pub(crate) fn ago(then: SystemTime) -> Span {
    let passed = then.elapsed().unwrap_or_default();
    Span::from_millis(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX))
}

/// Why an engine could not do something.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An operation on a file or folder of the attempt failed.
    #[error("job {attempt}: cannot {what} {}", path.display())]
    File {
        /// The attempt.
        attempt: Attempt,
        /// The operation, to be read after "cannot".
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The attempt was started before.
    #[error("job {attempt} has been started before; an attempt runs once")]
    Again {
        /// The attempt.
        attempt: Attempt,
    },
    /// The engine does not know the attempt.
    #[error("job {attempt} does not run")]
    Unknown {
        /// The attempt.
        attempt: Attempt,
    },
    /// The engine cannot tell yet what became of the attempt.
    #[error("job {attempt}: its result is not known yet")]
    Unclear {
        /// The attempt.
        attempt: Attempt,
    },
    /// A node did not do what it was asked to.
    #[error("job {attempt}: node {node}: {reason}")]
    Node {
        /// The attempt.
        attempt: Attempt,
        /// The node's name.
        node: String,
        /// What went wrong.
        reason: String,
    },
    /// There was no answer in time, so that nobody knows whether it was done.
    #[error("job {attempt}: there was no answer within {} s", within.secs_f64())]
    Late {
        /// The attempt.
        attempt: Attempt,
        /// How long the daemon waited.
        within: Span,
    },
}

/// The number of an order, unique as long as a daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Something that the daemon asks an engine to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Start an attempt. It is confirmed when the attempt runs under its caps; a failure after that is an
    /// [`End`].
    Start(Box<Launch>),
    /// Change the caps or nodes of a running job. It is confirmed when the job draws no more than the allotment
    /// says.
    Set {
        /// The attempt.
        attempt: Attempt,
        /// Its new allocation.
        allotment: Allotment,
        /// How long the job is expected to stand still while it moves to other nodes.
        pause: Span,
    },
    /// Send a signal to all processes of a job. A job that is just beginning may miss a request to end, so
    /// the daemon repeats it until the job has ended. A suspended job gets it when it is resumed, unless it
    /// is killed.
    Signal {
        /// The attempt.
        attempt: Attempt,
        /// The signal.
        signal: Signal,
    },
}

impl Order {
    /// The attempt that it is about.
    pub fn attempt(&self) -> Attempt {
        match self {
            Order::Start(launch) => launch.attempt,
            Order::Set { attempt, .. } | Order::Signal { attempt, .. } => *attempt,
        }
    }
}

/// What an engine reports, in the order in which it happened.
#[derive(Debug)]
pub enum Report {
    /// An order was carried out.
    Confirmed {
        /// The order.
        ticket: Ticket,
    },
    /// An order was not carried out, and will not be.
    Failed {
        /// The order.
        ticket: Ticket,
        /// What went wrong.
        error: EngineError,
    },
    /// The engine has chosen the nodes of an attempt, which runs there from now on. This may come again, also for attempts whose
    /// nodes are known.
    Placed {
        /// The attempt.
        attempt: Attempt,
        /// Its nodes, in order.
        nodes: Vec<u32>,
    },
    /// An attempt that was to be [placed](Report::Placed) has not begun, because there are no nodes for it now, and never will.
    /// The job is not to start before the engine [offers](Report::Offered) it again.
    SetAside {
        /// The attempt.
        attempt: Attempt,
        /// The reason, in words.
        reason: String,
    },
    /// There may be nodes now for a job that was [set aside](Report::SetAside).
    Offered {
        /// How the engine knows it.
        handle: String,
    },
    /// Something that operators should know: it goes into the log and the history.
    Notice {
        /// What it is, in words.
        text: String,
    },
    /// The engine has ended an attempt at the time limit that it knows. Its end follows.
    OutOfTime {
        /// The attempt.
        attempt: Attempt,
    },
    /// An attempt has ended.
    Ended {
        /// The attempt.
        attempt: Attempt,
        /// How it ended.
        end: End,
        /// How long ago that was; no time at all if the engine does not know.
        ago: Span,
    },
    /// An attempt whose start was confirmed has not begun after all, and never will. The job is not to blame: it may
    /// begin another time.
    NotBegun {
        /// The attempt.
        attempt: Attempt,
        /// The reason, in words.
        reason: String,
    },
    /// A job has come through the engine.
    Arrived(Box<Arrival>),
    /// A job that came through the engine, and waited, is gone.
    Gone {
        /// How the engine knows it.
        handle: String,
    },
    /// The state of a node has changed.
    Node {
        /// The node's number.
        node: u32,
        /// Its state now.
        state: NodeState,
    },
    /// The power of a node was measured.
    Measured {
        /// The node's number.
        node: u32,
        /// Its power.
        power: Measurement,
    },
    /// A node that was being [switched](Engine::switch) is there.
    Switched {
        /// The node's number.
        node: u32,
        /// Its present state.
        to: Power,
    },
    /// What a job consumed is known. This comes after its end, if at all.
    Consumed {
        /// The attempt.
        attempt: Attempt,
        /// The energy that it consumed.
        consumption: Consumption,
    },
}

/// What a job was measured to consume, on all of its nodes and from its start to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumption {
    /// The energy.
    pub energy: Joules,
    /// The mean power, rounded up.
    pub power: Watts,
    /// Whether an emulator made some of it up.
    pub is_emulated: bool,
    /// What the job had all the time; nothing if that changed.
    pub under: Option<Allotment>,
}

/// What a node is switched to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// It runs, and jobs can start there.
    On,
    /// It draws only what a node does that is off.
    Off,
}

/// Whether jobs can run on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// Jobs can start there.
    #[default]
    Up,
    /// Nobody has heard of it yet. No job starts there.
    Awaited,
    /// No job starts there, and those that run go on.
    Drained {
        /// The reason, in words.
        reason: String,
    },
    /// Nobody knows what happens there. What runs there counts as running, with the power that it had.
    Down {
        /// The reason, in words.
        reason: String,
    },
}

impl NodeState {
    /// The state of a node that the daemon has switched: no job starts there.
    pub fn of_switched(switched: SwitchState) -> Self {
        let reason = match switched {
            SwitchState::Stopping => "it is being switched off",
            SwitchState::Off => "it is off",
            SwitchState::Starting => "it is being started",
        };
        NodeState::Drained { reason: reason.to_owned() }
    }
}

/// A measured power, and where it is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Measurement {
    /// The power.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "power_w", with = "json")]
    pub power: Watts,
    /// Whether an emulator made it up.
    pub is_emulated: bool,
    /// When it was measured, since 1970.
    // In milliseconds here.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "at_s", with = "json::thousandths")]
    pub at: u64,
    /// The parts of it that have meters of their own, such as a package or its memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<MeasuredDomain>,
}

/// The measured power of a part of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MeasuredDomain {
    /// The name of the part, such as `package-0`.
    pub name: String,
    /// The power.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "power_w", with = "json")]
    pub power: Watts,
}

/// A node as an engine knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// The name by which people know it.
    pub name: String,
    /// The lowest and the highest cap that it can be given, if it can be capped.
    pub caps: Option<(Watts, Watts)>,
}

/// How long an engine takes for what it does beside the daemon's cycles, in a thread of its own: the longest of the last
/// thousand times. What it spends in other programs is not its own.
// In microseconds here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EnginePace {
    /// How often it has looked at what jobs run on.
    pub looks: u64,
    /// The longest look.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "longest_look_s", with = "json::millionths")]
    pub longest_look: u64,
    /// The longest part of a look that was its own.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "longest_own_look_s", with = "json::millionths")]
    pub longest_own_look: u64,
    /// The longest time in which orders were carried out together.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "longest_act_s", with = "json::millionths")]
    pub longest_act: u64,
    /// The longest part of that which was its own.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "longest_own_act_s", with = "json::millionths")]
    pub longest_own_act: u64,
}

/// How far an engine has got with what it lowers by itself, such as nodes that a job has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lowered {
    /// How many times it has begun to lower something.
    pub begun: u64,
    /// How many of these, from the first on, are over, so that what was freed is free.
    pub over: u64,
    /// Whether one of the others may take long, because its node cannot be reached.
    pub is_stuck: bool,
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The reason in words, as `busbar queue` has it.
    pub reason: String,
    /// When it is expected to start, in seconds since 1970, if somebody has worked that out.
    pub expected: Option<i64>,
}

/// What jobs run on.
pub trait Engine: Send {
    /// A description for users.
    fn name(&self) -> &'static str;

    /// The nodes in the order of their numbers, as far as the engine knows more of them than their number.
    fn nodes(&self) -> Vec<NodeInfo> {
        Vec::new()
    }

    /// The name of a node, if it has one.
    fn node_name(&self, node: u32) -> Option<String> {
        let _ = node;
        None
    }

    /// Whether it chooses the nodes of jobs, where the policy does not: it [says](Report::Placed) which they are. An order to
    /// start is confirmed before, and what such a job draws counts from then on.
    fn chooses_nodes(&self) -> bool {
        false
    }

    /// Hands over orders, each of which is [confirmed](Report::Confirmed) or [fails](Report::Failed) later.
    /// Orders about different jobs may be carried out in any order.
    fn request(&mut self, orders: Vec<(Ticket, Order)>);

    /// What has happened since the last call.
    fn reports(&mut self) -> Vec<Report>;

    /// Finds out, after a restart, what happened to an attempt. One that did not begin never will.
    fn find(&mut self, attempt: Attempt) -> Result<Found, EngineError>;

    /// After a restart, an attempt runs as far as is known, and has this; or one of these, while a change is not
    /// confirmed.
    fn adopted(&mut self, attempt: Attempt, may_have: &[Allotment]) {
        let _ = (attempt, may_have);
    }

    /// How far it has got with what it lowers by itself. An order that takes power is given only when everything
    /// that was begun before is over.
    fn lowered(&self) -> Lowered {
        Lowered::default()
    }

    /// Removes what is kept of an attempt that is over and recorded; this may happen later.
    fn forget(&mut self, attempt: Attempt);

    /// The jobs that came through the engine and are not over, as the daemon has written them down, each with the attempt
    /// that runs, or with number 0 if it waits; and the latest of those that have run. Whatever else the engine has in its queue is news.
    fn recall(&mut self, jobs: Vec<(Attempt, String)>, done: Vec<String>) {
        let _ = (jobs, done);
    }

    /// A job that came through the engine was taken in; this is its last attempt, with number 0 if it has none.
    fn accepted(&mut self, handle: &str, attempt: Attempt) {
        let _ = (handle, attempt);
    }

    /// A job that came through the engine cannot be taken in.
    fn refuse(&mut self, handle: &str, reason: &str) {
        let _ = (handle, reason);
    }

    /// Why the jobs wait that came through the engine, all of them, by what it calls them: for users who look for them where
    /// they submitted them.
    fn explain(&mut self, waits: BTreeMap<String, Wait>) {
        let _ = waits;
    }

    /// A job that came through the engine was cancelled or dropped before it started.
    fn dismiss(&mut self, handle: &str) {
        let _ = handle;
    }

    /// The limit in force, for engines that admit jobs by themselves.
    fn limit(&mut self, limit: Option<Watts>) {
        let _ = limit;
    }

    /// Whether it can switch nodes off and on.
    fn can_switch(&self) -> bool {
        false
    }

    /// Begins to switch a node, which is expected to take so long. When it is [done](Report::Switched), that is reported,
    /// and not before. What was asked for already, before a restart perhaps, may be asked for again.
    fn switch(&mut self, node: u32, to: Power, expected: Span) {
        let _ = (node, to, expected);
    }

    /// In how long it will have something to report, if it knows.
    fn next_report(&self) -> Option<Span> {
        None
    }

    /// Why the daemon cannot accept jobs itself, if so: they come through the engine alone. A sentence for those who submit.
    fn refuses_jobs(&self) -> Option<&'static str> {
        None
    }

    /// How many nodes draw from the same budget and are not the daemon's.
    fn others(&self) -> u32 {
        0
    }

    /// How long it takes for what it does beside the daemon's cycles, if it does anything there.
    fn pace(&self) -> Option<EnginePace> {
        None
    }

    /// The daemon is alive: engines whose nodes need to hear that tell them.
    fn renew(&mut self) {}
}
