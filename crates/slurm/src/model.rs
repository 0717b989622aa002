//! A cluster as it is at one moment, whichever way it was read.
//!
//! Times are whole seconds: instants since 1970, and spans. What Slurm does not say, or does not know yet,
//! is `None`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::hosts::HostList;
use crate::parts::{Held, Part};
use crate::tasks::Tasks;
use crate::unread::{UNKNOWN, Unread, known};

/// Everything that was read of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// The nodes, in the order of their names as Slurm lists them.
    pub nodes: Vec<Node>,
    /// The partitions.
    pub partitions: Vec<Partition>,
    /// The jobs: those that wait and run, and those that ended a short while ago (Slurm's `MinJobAge`).
    pub jobs: Vec<Job>,
    /// The licences of the cluster.
    pub licences: Vec<Licence>,
    /// The reservations.
    pub reservations: Vec<Reservation>,
    /// What of all this could not be read.
    pub unread: Vec<Unread>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What it does: its state and the flags of it.
    pub state: NodeState,
    /// Why it is out of service, without who said so.
    pub reason: Option<String>,
    /// Its processors, or [`UNKNOWN`].
    #[serde(serialize_with = "known")]
    pub cpus: u32,
    /// The processors that jobs have, or `UNKNOWN`.
    #[serde(serialize_with = "known")]
    pub cpus_in_use: u32,
    /// Its memory in MiB, or `UNKNOWN`.
    #[serde(serialize_with = "known")]
    pub memory_mib: u32,
    /// The memory that jobs have, or `UNKNOWN`.
    #[serde(serialize_with = "known")]
    pub memory_in_use_mib: u32,
    /// Its GPUs, or `UNKNOWN`.
    #[serde(serialize_with = "known")]
    pub gpus: u32,
    /// The GPUs that jobs have, or `UNKNOWN`.
    #[serde(serialize_with = "known")]
    pub gpus_in_use: u32,
    /// The partitions it belongs to.
    pub partitions: Vec<String>,
    /// Where it is reached.
    pub address: String,
}

/// The state of a node: a base state and flags, in capitals as Slurm writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeState {
    /// The base state, such as `IDLE`, `MIXED`, `ALLOCATED`, `DOWN`.
    pub base: String,
    /// The flags, such as `DRAIN`, `NOT_RESPONDING`, sorted.
    pub flags: Vec<String>,
}

impl NodeState {
    /// Whether the node can take a job as far as its state says.
    pub fn is_usable(&self) -> bool {
        let is_usable_base = ["IDLE", "MIXED", "ALLOCATED"].contains(&self.base.as_str());
        let hinders = |flag: &String| {
            let known = [
                "DRAIN",
                "FAIL",
                "MAINTENANCE",
                "NOT_RESPONDING",
                "POWERED_DOWN",
                "POWERING_DOWN",
                "POWERING_UP",
                "POWER_DOWN",
                "REBOOT_ISSUED",
                "REBOOT_REQUESTED",
                "INVALID_REG",
                "BLOCKED",
            ];
            known.contains(&flag.as_str())
        };
        is_usable_base && !self.flags.iter().any(hinders)
    }

    /// Whether jobs are on the node.
    pub fn is_busy(&self) -> bool {
        ["ALLOCATED", "MIXED"].contains(&self.base.as_str()) || self.has("COMPLETING")
    }

    /// Whether the node has a flag.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|other| other == flag)
    }

    /// A state of its words: the base state first.
    pub fn of_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let mut words = words.into_iter().map(|word| word.trim().to_uppercase());
        let mut base = words.next().unwrap_or_default();
        let mut flags: Vec<String> = Vec::new();
        // Marks behind a state, by which commands shorten flags.
        while let Some(mark) = base.chars().last().filter(|c| !c.is_alphanumeric()) {
            base.pop();
            flags.extend((mark == '*').then(|| "NOT_RESPONDING".to_owned()));
        }
        for flag in words {
            flags.push(match flag.as_str() {
                "NO_RESPOND" => "NOT_RESPONDING".to_owned(),
                "MAINT" => "MAINTENANCE".to_owned(),
                _ => flag,
            });
        }
        flags.sort();
        flags.dedup();
        NodeState { base, flags }
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)?;
        self.flags.iter().try_for_each(|flag| write!(f, "+{flag}"))
    }
}

/// A partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// Its nodes.
    #[serde(serialize_with = "as_text")]
    pub nodes: HostList,
    /// Whether jobs start in it.
    pub is_up: bool,
    /// The longest time limit, in minutes; `None` if there is no limit.
    #[serde(rename = "most_s", serialize_with = "in_seconds")]
    pub most_minutes: Option<u32>,
}

/// The number by which Slurm is told which job is meant: a job, or one element of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobRef {
    /// The number of the job or of the array.
    pub job: u32,
    /// The element of the array.
    pub task: Option<u32>,
}

impl JobRef {
    /// A job that is no element of an array, or a whole array.
    pub fn whole(job: u32) -> Self {
        JobRef { job, task: None }
    }
}

impl fmt::Display for JobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.job)?;
        self.task.map_or(Ok(()), |task| write!(f, "_{task}"))
    }
}

/// Which elements of an array an entry is: one, or several that wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArrayPart {
    /// The number of the array.
    pub job: u32,
    /// The elements.
    #[serde(serialize_with = "as_text")]
    pub tasks: Tasks,
}

/// Which component of a heterogeneous job an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HetPart {
    /// The number of the first component.
    pub job: u32,
    /// The number of the component, from 0.
    pub offset: u32,
}

/// Who keeps a job from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// Its user, who can release it.
    User,
    /// An administrator; the user cannot release it.
    Admin,
    /// Slurm itself, for example after a failed launch or a requeue in held state. An explanation stands
    /// in place of the kind of hold then, so that it is not known whether the user can release it.
    Slurm,
}

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It waits.
    Pending,
    /// Its nodes are being prepared.
    Configuring,
    /// It runs.
    Running,
    /// It stands still and keeps its nodes.
    Suspended,
    /// It has ended, and its nodes are being cleaned up.
    Completing,
    /// It ended with exit code 0.
    Completed,
    /// Somebody cancelled it.
    Cancelled,
    /// It ended with another exit code.
    Failed,
    /// It reached its time limit.
    TimedOut,
    /// A node of it failed.
    NodeFailed,
    /// It made room for another one.
    Preempted,
    /// It needed more memory than it had.
    OutOfMemory,
    /// Any other state, as Slurm writes it.
    Other(String),
}

impl JobState {
    /// A state of one word, as `squeue` prints it.
    pub(crate) fn of_word(word: &str) -> Self {
        match word.trim() {
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "SPECIAL_EXIT" | "RESV_DEL_HOLD" => {
                JobState::Pending
            }
            "CONFIGURING" => JobState::Configuring,
            "RUNNING" | "RESIZING" | "SIGNALING" | "STAGE_OUT" => JobState::Running,
            "SUSPENDED" | "STOPPED" => JobState::Suspended,
            "COMPLETING" => JobState::Completing,
            "COMPLETED" => JobState::Completed,
            "CANCELLED" => JobState::Cancelled,
            "FAILED" | "BOOT_FAIL" | "DEADLINE" | "LAUNCH_FAILED" => JobState::Failed,
            "TIMEOUT" => JobState::TimedOut,
            "NODE_FAIL" => JobState::NodeFailed,
            "PREEMPTED" => JobState::Preempted,
            "OUT_OF_MEMORY" => JobState::OutOfMemory,
            other => JobState::Other(other.to_owned()),
        }
    }

    /// A state of a base state and flags, as JSON has it: the flag that `squeue` would print comes first.
    pub(crate) fn of_words<'a>(words: &[&'a str]) -> Self {
        let has = |flag: &&'a str| words.contains(flag);
        let shown = ["COMPLETING", "CONFIGURING"].iter().find(|flag| has(flag));
        JobState::of_word(shown.or(words.first()).copied().unwrap_or_default())
    }

    /// Whether the job waits.
    pub fn is_waiting(&self) -> bool {
        *self == JobState::Pending
    }

    /// Whether the job has nodes.
    pub(crate) fn has_nodes(&self) -> bool {
        use JobState::{Completing, Configuring, Running, Suspended};
        matches!(self, Configuring | Running | Suspended | Completing)
    }

    /// Whether the job has ended and has no nodes any more.
    pub fn has_ended(&self) -> bool {
        !self.is_waiting() && !self.has_nodes() && !matches!(self, JobState::Other(_))
    }
}

/// How a job's script ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exit {
    /// The exit code.
    pub code: u32,
    /// The signal that ended it; 0 if none did.
    pub signal: u32,
}

impl Exit {
    /// Of the status that `wait` returns.
    pub(crate) fn of_status(status: u32) -> Self {
        Exit { code: (status >> 8) & 0xff, signal: status & 0x7f }
    }

    /// As Slurm prints it: `3:0`, a code and a signal, since 23.02, and the status as a number before.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        match text.trim().split_once(':') {
            Some((code, signal)) => {
                Some(Exit { code: code.parse().ok()?, signal: signal.parse().ok()? })
            }
            None => text.trim().parse().ok().map(Exit::of_status),
        }
    }
}

/// Amounts of licences by name.
pub type Amounts = BTreeMap<String, u64>;

/// Amounts as Slurm writes them: `power:750,fluent:2`.
pub(crate) fn write_amounts(amounts: &Amounts) -> String {
    amounts.iter().map(|(name, count)| format!("{name}:{count}")).collect::<Vec<_>>().join(",")
}

/// Reads amounts: `power:750`, `a@server:2,b` (one of `b`), `a:1|b:1` (any of them, which counts for each). `None` if
/// one of them is no number.
pub(crate) fn read_amounts(text: &str) -> Option<Amounts> {
    let mut amounts = Amounts::new();
    for part in text.split([',', ';', '|']).map(str::trim).filter(|part| !part.is_empty()) {
        let (name, count) = match part.rsplit_once([':', '=']) {
            Some((name, count)) => (name, count.parse().ok()?),
            None => (part, 1),
        };
        let amount: &mut u64 = amounts.entry(name.to_owned()).or_default();
        *amount = amount.saturating_add(count);
    }
    Some(amounts)
}

/// A job, or elements of an array that wait together.
///
/// What could not be read of it is named in [`unread`](Job::unread). Its place then holds nothing, or
/// [`UNKNOWN`] if it is a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Job {
    /// The number that Slurm gave it. An element of an array that waits has that of its array.
    pub id: u32,
    /// Its place in an array.
    pub array: Option<ArrayPart>,
    /// Its place in a heterogeneous job.
    pub het: Option<HetPart>,
    /// Its name.
    pub name: String,
    /// The name of its user.
    pub user: String,
    /// The number of its user.
    #[serde(serialize_with = "known")]
    pub uid: u32,
    /// The account that pays for it.
    pub account: Option<String>,
    /// Its partition, or those in any of which it may run while it waits.
    pub partitions: Vec<String>,
    /// Its state.
    pub state: JobState,
    /// Why it is in this state, in Slurm's word; `None` if there is no reason.
    pub reason: Option<String>,
    /// The holder of the job, if it is held.
    pub hold: Option<Hold>,
    /// Its priority.
    #[serde(serialize_with = "known")]
    pub priority: u32,
    /// The fewest nodes that it asks for; of a job that does not wait, the nodes it has.
    #[serde(serialize_with = "known")]
    pub nodes_min: u32,
    /// The most nodes that it asks for.
    #[serde(serialize_with = "known")]
    pub nodes_max: u32,
    /// Its processors.
    #[serde(serialize_with = "known")]
    pub cpus: u32,
    /// What it asks for of each of its nodes; `None` if nobody asked that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// What it has of each of its nodes; `None` if it has none, or nobody asked that or could read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Vec<Held>>,
    /// The nodes that it has or had.
    #[serde(serialize_with = "as_text")]
    pub nodes: HostList,
    /// The nodes that it must get.
    #[serde(serialize_with = "as_text")]
    pub required: HostList,
    /// The jobs that it waits for, in Slurm's words.
    pub dependency: Option<String>,
    /// When it was submitted.
    #[serde(rename = "submitted_s")]
    pub submitted: Option<u64>,
    /// When it could have started at the earliest.
    #[serde(rename = "eligible_s")]
    pub eligible: Option<u64>,
    /// When it started; `None` while it waits.
    #[serde(rename = "started_s")]
    pub started: Option<u64>,
    /// When it ended, or will at its time limit; `None` while it waits.
    #[serde(rename = "ended_s")]
    pub ended: Option<u64>,
    /// Its time limit in minutes; `None` if there is none.
    #[serde(rename = "limit_s", serialize_with = "in_seconds")]
    pub limit_minutes: Option<u32>,
    /// Its licences.
    pub licences: Amounts,
    /// How it ended.
    pub exit: Option<Exit>,
    /// How often it was requeued.
    #[serde(serialize_with = "known")]
    pub restarts: u32,
    /// Whether it may be requeued.
    pub may_requeue: bool,
    /// The reservation it runs in.
    pub reservation: Option<String>,
    /// The user's comment.
    pub comment: Option<String>,
    /// The administrator's comment, by which `job_submit.lua` marks jobs.
    pub admin_comment: Option<String>,
    /// Its fields that could not be read, as Slurm names them. A job that waits does not start before all of it is known.
    pub unread: Vec<String>,
}

impl Job {
    /// How Slurm is told that this job is meant. Several waiting elements of an array are meant together.
    pub fn reference(&self) -> JobRef {
        match &self.array {
            Some(array) => JobRef { job: array.job, task: array.tasks.only() },
            None => JobRef::whole(self.id),
        }
    }

    /// Whether the job has nodes, as far as is known. One in a state that nobody has heard of has those that it names.
    pub fn has_nodes(&self) -> bool {
        match self.state {
            JobState::Other(_) => !self.nodes.is_empty(),
            _ => self.state.has_nodes(),
        }
    }

    /// Who holds a job with this reason and priority. If the priority is unknown, the reason tells.
    pub(crate) fn held_by(state: &JobState, reason: &str, priority: u32) -> Option<Hold> {
        match (reason, priority) {
            _ if !state.is_waiting() => None,
            ("JobHeldUser", 0 | UNKNOWN) => Some(Hold::User),
            ("JobHeldAdmin", 0 | UNKNOWN) => Some(Hold::Admin),
            (_, 0) => Some(Hold::Slurm),
            _ => None,
        }
    }
}

/// A licence of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Licence {
    /// Its name.
    pub name: String,
    /// Their number.
    pub total: u64,
    /// How many are used by jobs.
    pub used: u64,
    /// How many are reserved.
    pub reserved: u64,
    /// The nodes that it counts for, of a hierarchical resource.
    #[serde(serialize_with = "as_text")]
    pub nodes: HostList,
}

/// A reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reservation {
    /// Its name.
    pub name: String,
    /// Its nodes.
    #[serde(serialize_with = "as_text")]
    pub nodes: HostList,
    /// Its licences.
    pub licences: Amounts,
    /// Who may use it.
    pub users: Vec<String>,
    /// When it begins.
    #[serde(rename = "begins_s")]
    pub begins: Option<u64>,
    /// When it ends.
    #[serde(rename = "ends_s")]
    pub ends: Option<u64>,
}

/// A reservation of licences is made for a year, as Slurm knows none without an end. It is moved on when less than this is left.
const LEAST_LEFT: u64 = 180 * 24 * 3600;

impl Reservation {
    /// Whether it keeps these licences from everybody but root, from now on and for long.
    pub(crate) fn keeps(&self, licences: &Amounts, now: u64) -> bool {
        self.licences == *licences
            && self.users == ["root"]
            && self.has_begun(now)
            && self.ends.is_some_and(|ends| ends >= now + LEAST_LEFT)
    }

    /// Whether it holds already.
    pub(crate) fn has_begun(&self, now: u64) -> bool {
        self.begins.is_some_and(|begins| begins <= now)
    }
}

fn as_text<T: fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Slurm counts minutes; Busbar's answers in JSON have seconds everywhere.
fn in_seconds<S: Serializer>(minutes: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
    match minutes {
        Some(minutes) => serializer.serialize_some(&(u64::from(*minutes) * 60)),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_nodes() {
        let state = |text: &str| NodeState::of_words(text.split('+'));
        assert!(state("IDLE").is_usable());
        assert!(state("MIXED+PLANNED").is_usable());
        assert!(!state("ALLOCATED+DRAIN").is_usable());
        assert!(state("ALLOCATED+DRAIN").is_busy());
        assert!(!state("DOWN*").is_usable());
        assert_eq!(state("DOWN*+DRAIN").to_string(), "DOWN+DRAIN+NOT_RESPONDING");
        assert!(!state("UNKNOWN").is_usable());
    }

    #[test]
    fn states_of_jobs() {
        assert_eq!(JobState::of_words(&["RUNNING", "COMPLETING"]), JobState::Completing);
        assert_eq!(JobState::of_words(&["PENDING", "REQUEUED"]), JobState::Pending);
        assert!(JobState::of_word("TIMEOUT").has_ended());
        assert!(!JobState::of_word("COMPLETING").has_ended());
        assert!(!JobState::of_word("UNHEARD_OF").has_ended());
        assert_eq!(Exit::of_status(768), Exit { code: 3, signal: 0 });
        assert_eq!(Exit::of_status(9), Exit { code: 0, signal: 9 });
    }

    #[test]
    fn amounts_are_read_and_written() {
        let amounts = read_amounts("power:750,fluent@lm:2,one").unwrap();
        assert_eq!(write_amounts(&amounts), "fluent@lm:2,one:1,power:750");
        assert!(read_amounts("").unwrap().is_empty());
        assert_eq!(read_amounts("power:many"), None);
    }

    #[test]
    fn a_reservation_keeps_licences_from_all_but_root_and_for_long() {
        let (now, year) = (1_000_000_000, 365 * 24 * 3600);
        let licences = read_amounts("power:750").unwrap();
        let sound = Reservation {
            licences: licences.clone(),
            users: vec!["root".to_owned()],
            begins: Some(now - 9),
            ends: Some(now + year),
            ..Reservation::default()
        };
        assert!(sound.keeps(&licences, now));
        assert!(!sound.keeps(&licences, now + year - 100), "its end is near");
        assert!(!sound.keeps(&read_amounts("power:751").unwrap(), now));
        let later = Reservation { begins: Some(now + 9), ..sound.clone() };
        assert!(!later.keeps(&licences, now));
        let users = vec!["root".to_owned(), "ada".to_owned()];
        assert!(!Reservation { users, ..sound.clone() }.keeps(&licences, now));
        assert!(!Reservation { ends: None, ..sound }.keeps(&licences, now));
    }
}
