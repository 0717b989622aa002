//! How much users, accounts, qualities of service and partitions may have at a time, as a site limits it.
//!
//! Names and meanings are Slurm's. A limit of a quality of service counts before the same limit of an association: that of the
//! partition's first, then that of the job's, then those of the user's association and of all accounts above it.

use std::collections::HashMap;
use std::ops::Range;

use crate::job::{GroupId, Job, UserId};
use crate::units::{Instant, Span};

mod class;
mod tres;

pub(crate) use class::{Bound, Class, Subject};
pub use tres::{Tres, TresError, TresLimit};

/// All limits of a site, by the numbers that a log has for names.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Rules for all jobs.
    pub rules: JobRules,
    /// Qualities of service.
    pub(crate) qos: HashMap<u16, QosLimits>,
    /// Partitions.
    pub(crate) partitions: HashMap<u16, PartitionLimits>,
    /// Accounts, each behind its parent; the first is the root.
    pub(crate) accounts: Vec<AccountLimits>,
    /// Places of accounts.
    pub(crate) by_group: HashMap<GroupId, usize>,
    /// Users of accounts; without an account, the first one that the site names.
    pub(crate) users: HashMap<(Option<GroupId>, Option<UserId>), UserLimits>,
    /// Nodes that are kept free for a while.
    pub reservations: Vec<Reservation>,
}

/// What holds for all jobs of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct JobRules {
    /// By so much jobs may run on beyond their limit before they are ended: `OverTimeLimit`.
    pub over_time_limit: Span,
    /// Whether a job is cancelled whose dependency can never be fulfilled. Otherwise it waits for ever.
    pub kill_invalid_depend: bool,
}

/// Nodes that are kept free for a while: for maintenance, or for jobs that name the reservation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reservation {
    /// The log's number of its name; 0 if no job names it.
    pub number: u32,
    /// From when.
    pub start: Instant,
    /// Until when.
    pub end: Instant,
    /// How many nodes; more than there are is all.
    pub nodes: u64,
    /// Which nodes, by their numbers; nothing if that is not said.
    pub numbers: Vec<Range<u32>>,
}

/// Limits that each level has for what is below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupLimits {
    /// How many jobs run at a time: `GrpJobs`.
    pub jobs: Option<u32>,
    /// How many jobs wait or run: `GrpSubmitJobs`.
    pub submit: Option<u32>,
    /// What running jobs have together: `GrpTRES`.
    pub tres: TresLimit,
}

/// Limits for each user or account. Those of associations have no resources: these are a [single job's](JobLimits::most).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EachLimits {
    /// How many jobs run at a time.
    pub jobs: Option<u32>,
    /// How many jobs wait or run.
    pub submit: Option<u32>,
    /// What running jobs have together.
    pub tres: TresLimit,
}

/// Limits of a single job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct JobLimits {
    /// What it may ask for at most.
    pub most: TresLimit,
    /// For how long, at most.
    pub wall: Option<Span>,
    /// What it has to ask for at least.
    pub least: Tres,
}

/// The limits of a quality of service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QosLimits {
    /// Of all its jobs together.
    pub group: GroupLimits,
    /// Of each user's jobs in it.
    pub user: EachLimits,
    /// Of each account's jobs in it.
    pub account: EachLimits,
    /// Of each job.
    pub job: JobLimits,
    /// Whether a job is refused that could never run within the limits. Otherwise it counts as submitted for ever.
    pub denies: bool,
}

/// The limits of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PartitionLimits {
    /// Of each job.
    pub job: JobLimits,
    /// The quality of service whose limits count here before all others.
    pub qos: Option<u16>,
}

/// The limits of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccountLimits {
    /// The account above.
    pub parent: Option<usize>,
    /// Of all jobs of the account and of those below it.
    pub group: GroupLimits,
    /// Of each of its users, where nothing is said below.
    pub each: EachLimits,
    /// Of each job, where nothing is said below.
    pub job: JobLimits,
}

/// The limits of a user of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UserLimits {
    /// The account.
    pub account: usize,
    /// Of the user's jobs in the account, and of each of them.
    pub group: GroupLimits,
    /// The same, as it is called for users.
    pub each: EachLimits,
    /// Of each job.
    pub job: JobLimits,
}

/// What a job counts for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asks<'a> {
    pub(crate) job: &'a Job,
    /// What it holds while it runs.
    pub(crate) tres: Tres,
    /// The array that it is a task of, and how many of its tasks may run at a time.
    pub(crate) array: Option<(u64, u32)>,
    /// What else tells it from others that ask for the same.
    pub(crate) nice: i32,
    /// The reservation that it names.
    pub(crate) reservation: Option<u32>,
}

/// Which limit a job could never meet, or would break by being submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exceeded {
    /// Too many jobs of its user, account or quality of service wait or run.
    Submitted,
    /// It asks for more than one job may have, or for more than all may have together.
    Size,
    /// It asks for more time than a job may.
    Wall,
    /// It asks for less than a job has to.
    Least,
}

impl Exceeded {
    /// All of them.
    pub const ALL: [Exceeded; 4] =
        [Exceeded::Submitted, Exceeded::Size, Exceeded::Wall, Exceeded::Least];

    /// The reason in a few words.
    pub fn reason(self) -> &'static str {
        match self {
            Exceeded::Submitted => "too many jobs of its user, account or QOS are submitted",
            Exceeded::Size => {
                "asks for more than the limits of its user, account, QOS or partition"
            }
            Exceeded::Wall => "asks for more time than its user, account, QOS or partition may",
            Exceeded::Least => "asks for less than its QOS or partition requires",
        }
    }
}

impl Limits {
    /// Whether anything is otherwise than without them.
    pub fn have_effect(&self) -> bool {
        !self.is_empty() || self.rules != JobRules::default()
    }

    /// Whether no job is ever held back or refused by them.
    pub fn is_empty(&self) -> bool {
        let Limits { rules: _, qos, partitions, accounts, by_group: _, users, reservations } = self;
        let none = GroupLimits::default();
        let nobody = EachLimits::default();
        let any = JobLimits::default();
        reservations.is_empty()
            && qos
                .values()
                .all(|qos| *qos == QosLimits { denies: qos.denies, ..QosLimits::default() })
            && partitions.values().all(|one| *one == PartitionLimits::default())
            && accounts.iter().all(|one| (one.group, one.each, one.job) == (none, nobody, any))
            && users.values().all(|one| (one.group, one.each, one.job) == (none, nobody, any))
    }
}
