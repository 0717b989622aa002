//! Policies: who runs next, and how.
//!
//! A [`Policy`] looks at a [`View`] of the cluster and writes down [`Decision`]s. It does no I/O
//! and cannot fail; what it decides wrongly the ledger refuses. The same policy runs in the
//! simulator and live. The one exception is `external`, which asks a program, may give up, and is for
//! simulations alone.
//!
//! To add one: write a file under `policy/` that opens with its paper and its rule, implement
//! [`Policy`] (or plug a [`Chooser`] into [`Backfill`]), say in the same place all there is to say about it
//! ([`PolicyKind`]), and add a line to `registry`. Outside the crate, a [registered](register) one is as good.

use crate::job::{Job, UserId};
use crate::ledger::{Holding, Ledger, Violation};
use crate::model::{Caps, Menu, Model, OperatingPoint, Work};
use crate::priority::Standing;
use crate::queue::Queue;
use crate::units::{Instant, JobId, NodeId, Span, Watts};

mod backfill;
mod calm;
#[doc(hidden)]
mod conservative;
pub mod contender;
mod easy;
#[doc(hidden)]
mod easy_power;
#[doc(hidden)]
pub mod external;
mod fcfs;
mod field;
mod kind;
mod log2;
pub mod order;
#[doc(hidden)]
pub mod parm;
#[doc(hidden)]
pub(crate) mod past_power;
#[doc(hidden)]
pub mod pb_guided;
#[doc(hidden)]
pub mod ppartition;
mod predictions;
mod published;
mod registry;
mod rehearsal;
#[doc(hidden)]
pub mod rmap;
#[doc(hidden)]
pub mod share;
mod slowable;
#[doc(hidden)]
pub mod slurm;
mod spec;
#[doc(hidden)]
pub mod three_queues;
#[doc(hidden)]
pub mod uniform;
#[doc(hidden)]
pub mod utility;

pub use backfill::{Ahead, Backfill, Chooser, Room};
#[doc(hidden)]
pub use conservative::ConservativeSpec;
pub use contender::{Believe, Contender, OnAllKinds};
pub use easy::{Easy, Nominal, plain};
#[doc(hidden)]
pub use easy_power::{EasyPower, EasyPowerSpec, Fastest};
#[doc(hidden)]
pub use external::ExternalSpec;
pub use fcfs::Fcfs;
pub use field::{Draws, Field, OnKinds, Unfit};
pub use kind::{BuildContext, Parameter, PolicyError, PolicyKind};
#[doc(hidden)]
pub use order::{Held, Multifactor};
pub use order::{Order, OrderSpec, OrderedBy, Predict, Submission};
#[doc(hidden)]
pub use parm::{Parm, ParmSpec};
pub(crate) use past_power::PowerForecast;
#[doc(hidden)]
pub use past_power::{Level, PastDraw};
#[doc(hidden)]
pub use pb_guided::{Guide, PbGuided, PbGuidedSpec};
#[doc(hidden)]
pub use ppartition::{Ppartition, PpartitionSpec};
pub use predictions::{Accuracy, Errors, Predictions};
pub use published::Published;
pub use registry::{RegisterError, register};
#[doc(hidden)]
pub use rmap::{Rmap, RmapSpec};
#[doc(hidden)]
pub use share::ShareSpec;
pub use spec::PolicySpec;
#[doc(hidden)]
pub use uniform::UniformSpec;
#[doc(hidden)]
pub use utility::{Gangs, UtilityMapper, UtilitySpec};

/// A rule that decides which waiting jobs start, and at which operating point.
pub trait Policy {
    /// Looks at what is and writes down what shall be done about it. Decisions are carried out
    /// in the order in which they are written.
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>);

    /// A decision of the last turn was refused, and why.
    fn refused(&mut self, _violation: &Violation) {}

    /// Whether it changes jobs that run. If so, how far each has got is kept track of.
    fn adjusts(&self) -> bool {
        false
    }

    /// Whether it gives jobs nodes by name. If so, who is on which node is kept track of.
    fn names_nodes(&self) -> bool {
        false
    }

    /// Jobs that ended before the policy was made, in the order of their ends: what it could have learned from
    /// them it may learn now.
    fn recall(&mut self, _past: &[PastJob]) {}

    /// How far off its predictions were so far, if it makes any.
    fn predictions(&self) -> Option<Predictions> {
        None
    }

    /// The priorities that jobs had when they started, since it was last asked, if it has an order by priority and
    /// [was told](BuildContext::keeps_standings) to keep them.
    fn standings(&mut self) -> Vec<(JobId, Standing)> {
        Vec::new()
    }

    /// Its order by priority, if it has one: who lives longer than a policy keeps what users have used.
    #[doc(hidden)]
    fn by_priority(&mut self) -> Option<&mut Multifactor> {
        None
    }

    /// A waiting job leaves the queue, although the policy did not decide that: live, somebody withdraws it; where a site has
    /// limits, it has no room any more under one of them, and may arrive again later. If the policy decided in its last
    /// turn to start it, it did not start. Says whether the policy can go on without it. If not, live a new one takes
    /// its place and hears of all that wait and run from the beginning, and in simulations it cannot be had with limits.
    fn forget(&mut self, _job: JobId) -> bool {
        false
    }

    /// The same policy with all that it has in mind, for somebody who wants to know what it would decide.
    /// If there is no copy, a new one has to do, which hears of all that wait and run from the beginning.
    fn copy(&self) -> Option<Box<dyn Policy + Send>> {
        None
    }
}

/// A job that has ended, as far as one can learn from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastJob {
    /// The user who submitted it.
    pub user: Option<UserId>,
    /// How many nodes it asked for.
    pub nodes: u32,
    /// The time it asked for.
    pub requested: Span,
    /// How long it ran.
    pub run_time: Span,
    /// When it was submitted.
    pub submit: Instant,
    /// When it ended.
    pub end: Instant,
}

/// What a policy decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Start a waiting job.
    Start {
        /// The job.
        job: JobId,
        /// How; a point of its menu.
        point: OperatingPoint,
    },
    /// Start a waiting job on these nodes, of which it has what it asks for and others may have the rest.
    StartIn {
        /// The job.
        job: JobId,
        /// How; a point of its menu.
        point: OperatingPoint,
        /// On which nodes.
        nodes: Box<[NodeId]>,
    },
    /// Start a waiting job on named nodes.
    StartOn {
        /// The job.
        job: JobId,
        /// On which nodes, and under which caps.
        caps: Caps,
    },
    /// Let a job that runs on named nodes go on under other caps.
    Recap {
        /// The job.
        job: JobId,
        /// The caps of its nodes.
        caps: Caps,
        /// How long it is expected to hold all this.
        left: Span,
    },
    /// Let a job that runs go on at another point.
    Change {
        /// The job.
        job: JobId,
        /// How; a point of its menu.
        point: OperatingPoint,
        /// For how long it does not go on, because it has to move.
        pause: Span,
        /// How long it is expected to hold all this, the pause included.
        left: Span,
    },
    /// Promise a waiting job the energy of running on named nodes from then on.
    Promise {
        /// The job.
        job: JobId,
        /// On which nodes, and under which caps.
        caps: Caps,
        /// The instant from which the nodes are reserved.
        from: Instant,
    },
    /// Give a waiting job up: it will never run.
    Drop {
        /// The job.
        job: JobId,
        /// Why the job is dropped.
        reason: DropReason,
    },
    /// Ask again at this time, even if nothing happens before.
    WakeAt(Instant),
    /// The policy cannot decide any more, which happens to those that are programs of their own: a simulation ends
    /// here.
    GiveUp {
        /// Why it cannot.
        why: String,
    },
}

impl Decision {
    /// The job that it is about, if it is about one.
    pub fn job(&self) -> Option<JobId> {
        match *self {
            Decision::Start { job, .. }
            | Decision::StartIn { job, .. }
            | Decision::StartOn { job, .. }
            | Decision::Recap { job, .. }
            | Decision::Change { job, .. }
            | Decision::Promise { job, .. }
            | Decision::Drop { job, .. } => Some(job),
            Decision::WakeAt(_) | Decision::GiveUp { .. } => None,
        }
    }
}

/// Why a policy gives a job up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// It does not say.
    #[default]
    Unsaid,
    /// It cannot earn enough any more.
    LowUtility,
    /// No machine can run it.
    NoMachine,
    /// There is no energy at all.
    NoEnergy,
    /// It could not be fed even alone.
    NeverFed,
}

impl DropReason {
    /// The reason in a few words.
    pub fn reason(self) -> &'static str {
        match self {
            DropReason::Unsaid => "dropped by the policy",
            DropReason::LowUtility => "dropped: their utility at completion would be too low",
            DropReason::NoMachine => "dropped: no machine can run them",
            DropReason::NoEnergy => "dropped: the energy budget is used up",
            DropReason::NeverFed => "dropped: they exceed every limit of the budget",
        }
    }
}

/// What a policy sees: the cluster as it is now. Everything is borrowed, nothing is copied.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The time.
    pub now: Instant,
    /// All jobs that were submitted so far; a [`JobId`] is an index into them.
    pub jobs: &'a [Job],
    /// The jobs that wait.
    pub queue: &'a Queue,
    /// What is held and what is free.
    pub ledger: &'a Ledger,
    /// What is believed about how jobs run.
    pub model: &'a dyn Model,
    /// What happened since the policy was last asked.
    pub changes: Changes<'a>,
    /// When somebody had to wait last, this time included. Ten minutes are no wait.
    pub waited: Option<Instant>,
    /// When each job became eligible, by its place; empty if all do when they are submitted.
    pub eligible: &'a [Instant],
}

impl View<'_> {
    /// Since when a job waits: since its submission, or since it is eligible if that came later.
    #[inline]
    pub fn waits_since(&self, job: JobId) -> Instant {
        let known = self.eligible.get(job.index()).copied();
        known.filter(|at| *at != Instant::NEVER).unwrap_or(self.job(job).submit)
    }

    /// What the user asked for.
    #[inline]
    pub fn job(&self, job: JobId) -> &Job {
        &self.jobs[job.index()]
    }

    /// The job at the nodes it asks for, unthrottled.
    #[inline]
    pub fn nominal(&self, job: JobId) -> OperatingPoint {
        self.model.nominal(job, self.job(job))
    }

    /// What is left of the work of a job that runs: how long it will go on with what it has, as far as is
    /// believed. Nothing, if it does not run.
    pub fn left(&self, job: JobId) -> Option<Span> {
        self.ledger.held_by(job).map(|holding| holding.until.since(self.now))
    }

    /// Every way the job may run, nominal first.
    #[inline]
    pub fn menu(&self, job: JobId) -> Menu {
        self.model.menu(job, self.job(job))
    }
}

/// What happened since a policy was last asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes<'a> {
    /// Jobs that joined the queue, in order.
    pub arrived: &'a [JobId],
    /// What was given back by jobs that ended.
    pub released: &'a [Holding],
    /// What some of these jobs really drew, where somebody measured it, in the same order.
    pub drawn: &'a [Drawn],
    /// Jobs that ran already when the policy was first asked.
    pub adopted: &'a [Adopted],
    /// Jobs that run and were changed just now, but not by the policy.
    pub changed: &'a [JobId],
    /// Whether the machine itself changed: the budget, nodes going down or up, or what running jobs
    /// hold, where no policy decided that.
    pub machine: bool,
}

/// What a job that ended really drew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// The job.
    pub job: JobId,
    /// What it drew with what it held at its end.
    pub power: Watts,
}

/// A job that runs already when a policy first hears of it: somebody else started it, such as a policy
/// that decided before this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// The job.
    pub job: JobId,
    /// How it runs.
    pub point: OperatingPoint,
    /// On which nodes under which caps, if it was given nodes by name.
    pub caps: Option<Caps>,
    /// What was left of its work at `since`, as far as is believed: all of it takes the time of its
    /// point.
    pub work: Work,
    /// Since when it goes on like this: its start or its last change; in the future while it moves. If
    /// it is suspended, any instant: it has not gone on since.
    pub since: Instant,
    /// When its number of nodes changed last, if it ever did.
    pub moved: Option<Instant>,
}

impl Changes<'_> {
    /// Whether nothing came free, so that there can be no more room than before.
    #[inline]
    pub fn nothing_freed(&self) -> bool {
        self.released.is_empty() && !self.machine
    }
}
