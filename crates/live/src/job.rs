//! A job as the daemon keeps it: what its user asked for and what has happened to it since.
//!
//! These types are also what the [`store`](super::store) keeps as JSON. Their JSON names are fixed by `serde` attributes
//! where they differ from the names used here; the module documentation of `store` says what may change and how. Times are
//! milliseconds of the daemon's own clock ([`Instant`]), power is in milliwatts, energy in microjoules. Those that travel
//! over the [`wire`](super::wire), too, have another form there, in watts, seconds and joules.

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::array::{ArraySpec, Element};
use super::engine::{Allotment, Attempt, End, NodeState, SwitchState};
use super::wire::forms::JobRequestForm;
use busbar_core::model::Work;
use busbar_core::units::{Instant, Joules, Span, Watts};

/// The user and the group that a job belongs to, and runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Owner {
    /// The user ID.
    pub user: u32,
    /// The group ID.
    pub group: u32,
}

/// A job, or an array of jobs, as a client submits it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The resources and conditions that the job asks for.
    #[cfg_attr(feature = "schema", schema(value_type = JobRequestForm))]
    #[serde(rename = "wish", with = "JobRequestForm")]
    pub request: JobRequest,
    /// The command to run, with its environment and files.
    pub program: Program,
    /// The indices, if this is an array of jobs.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArraySpec>,
}

/// The resources and conditions that a job asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobRequest {
    /// A name chosen by the user. Names need not be unique.
    pub name: String,
    /// The number of nodes, at least one.
    pub nodes: u32,
    /// The smallest and the largest number of nodes, if the job is moldable.
    #[serde(default)]
    pub moldable: Option<(u32, u32)>,
    /// The time limit on `nodes` nodes without a power cap.
    pub time: Span,
    /// The name of the application, by which its profile is found.
    #[serde(default)]
    pub application: Option<String>,
    /// Extra run time accepted in exchange for starting sooner: `10%` or `unbounded`.
    #[serde(default)]
    pub slowdown: Option<String>,
    /// Jobs that must end before this one starts.
    #[serde(default)]
    pub after: Vec<After>,
    /// Whether the job waits until it is released.
    #[serde(default)]
    pub held: bool,
    /// The account that the job's energy is counted for, as its user names it. Nothing depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// A dependency: a job that must end before another one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct After {
    /// The number of the job, or of an array, that must end first.
    pub job: u64,
    /// Whether failure is acceptable, too. If not, the dependent job is dropped when this one fails.
    #[serde(default)]
    pub any: bool,
}

/// The command of a job with its environment and files. It may be large, so it is kept in the database
/// only, and not in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    /// The working directory.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub folder: PathBuf,
    /// The environment; the daemon adds its own variables.
    pub environment: Vec<(String, String)>,
    /// The file for standard output. `%j` stands for the job's number, `%A` for that of its array, and
    /// `%a` for the index in it.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub output: PathBuf,
    /// The file for standard error; `output` if it is absent.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    #[serde(default)]
    pub errors: Option<PathBuf>,
}

impl Submission {
    /// The size of the submission as JSON, which counts against the user's quota.
    pub fn bytes(&self) -> u64 {
        self.request.bytes() + json_bytes(&self.program)
    }
}

impl JobRequest {
    /// The size of the request as JSON.
    pub fn bytes(&self) -> u64 {
        json_bytes(self)
    }
}

/// The size of a value as JSON.
fn json_bytes(value: &impl Serialize) -> u64 {
    /// A writer that counts bytes.
    struct Count(u64);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting does not fail. A path that is not UTF-8 cannot be written as JSON; then the bytes before
    // it are counted.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

impl Program {
    /// The files for standard output and standard error of a job.
    pub fn files(&self, entry: &Entry) -> (PathBuf, PathBuf) {
        let place = |pattern: &PathBuf| {
            let mut name = pattern.to_string_lossy().replace("%j", &entry.number.to_string());
            if let Some(Element { array, index, .. }) = entry.array {
                name = name.replace("%A", &array.to_string()).replace("%a", &index.to_string());
            }
            self.folder.join(name)
        };
        let output = place(&self.output);
        let errors = self.errors.as_ref().map_or_else(|| output.clone(), place);
        (output, errors)
    }
}

/// A job as the daemon keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The number by which users refer to the job. Numbers start at 1, increase in the order of
    /// submission, and are never reused.
    pub number: u64,
    /// The user and group the job belongs to.
    pub owner: Owner,
    /// The resources and conditions the job asks for.
    #[serde(rename = "wish")]
    pub request: JobRequest,
    /// The time of submission.
    pub submit: Instant,
    /// How many attempts to run the job were made so far.
    pub attempts: u32,
    /// Whether the job waits, runs or is over.
    pub phase: Phase,
    /// The element of an array that the job is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Element>,
    /// How the engine knows the job, if it came through the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
}

impl Entry {
    /// The current attempt to run the job.
    pub fn attempt(&self) -> Attempt {
        Attempt { job: self.number, number: self.attempts }
    }

    /// The current attempt, and how the engine knows the job, if the job came through the engine.
    pub fn in_engine(&self) -> Option<(Attempt, String)> {
        Some((self.attempt(), self.handle.clone()?))
    }

    /// When the job was over, if it is.
    pub fn end(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Over(outcome) => Some(outcome.end),
            _ => None,
        }
    }

    /// The state of the job's run, if the job is running.
    pub fn run(&self) -> Option<&Run> {
        match &self.phase {
            Phase::Running(run) => Some(run),
            _ => None,
        }
    }

    /// The state of the job's run, if the job is running, to be changed.
    pub fn run_mut(&mut self) -> Option<&mut Run> {
        match &mut self.phase {
            Phase::Running(run) => Some(run),
            _ => None,
        }
    }
}

/// Whether a job waits, runs or is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The job waits: for nodes and power, for other jobs, or to be released, as its request says.
    Waiting,
    /// The daemon has decided that the job runs.
    Running(Run),
    /// The job is over.
    Over(JobOutcome),
}

/// The state of a job that runs, or is about to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// When the job started.
    pub start: Instant,
    /// The nodes and power the job has now.
    pub allotment: Allotment,
    /// The remaining work at `since`, in steps of 2⁻⁶² of the whole job.
    pub work: u64,
    /// The time up to which `work` and `energy` were computed.
    pub since: Instant,
    /// The energy drawn until `since`, as predicted by the model.
    pub energy: Joules,
    /// The end of the pause in which the job moves to other nodes; no work is done until then.
    pub moves_until: Instant,
    /// When the number of nodes last changed, if it ever did.
    pub moved: Option<Instant>,
    /// When the time limit is reached.
    pub until: Instant,
    /// What the job had before its last change, as long as the engine has not confirmed that change. A
    /// daemon that restarts repeats such changes, and lowers before it raises.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<Previous>>,
    /// Whether the job is suspended because there is no power for it.
    pub suspended: bool,
    /// What the policy gave the job, if a lower budget left it with less.
    pub squeezed_from: Option<Allotment>,
    /// Set when the job has been asked to end.
    pub ending: Option<Ending>,
    /// Whether the engine is still to choose the nodes. Until then, those of the allotment only say how many there are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unplaced: bool,
    /// Whether it is work of others, which the daemon neither starts nor ends: it counts with what its nodes may draw.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_others: bool,
}

impl Run {
    /// A job that starts now.
    pub fn new(now: Instant, allotment: Allotment) -> Self {
        Run {
            start: now,
            work: Work::ALL.to_bits(),
            since: now,
            energy: Joules::ZERO,
            moves_until: now,
            moved: None,
            until: now + allotment.time,
            before: None,
            suspended: false,
            squeezed_from: None,
            ending: None,
            unplaced: false,
            of_others: false,
            allotment,
        }
    }

    /// The remaining work at `since`. A stored value above the whole is taken for the whole.
    pub fn work(&self) -> Work {
        Work::from_bits(self.work).unwrap_or(Work::ALL)
    }

    /// The remaining work at a later time.
    pub fn work_at(&self, now: Instant) -> Work {
        match self.suspended {
            true => self.work(),
            false => {
                self.work().after(now.since(self.since.max(self.moves_until)), self.allotment.time)
            }
        }
    }

    /// How long the job would have run until a later time at full speed, on the nodes it asks for, as predicted
    /// by the model; `asked` is the time limit it asked for, which is that at full speed.
    pub fn full_speed_at(&self, now: Instant, asked: Span) -> Span {
        let left = self.work_at(now).time(asked);
        Span::from_millis(asked.millis().saturating_sub(left.millis()))
    }

    /// The energy drawn until a later time, as predicted by the model.
    pub fn energy_at(&self, now: Instant) -> Joules {
        match self.suspended {
            true => self.energy,
            false => self.energy + self.allotment.power.over(now.since(self.since)),
        }
    }

    /// Brings remaining work and energy up to date.
    fn update(&mut self, now: Instant) {
        (self.work, self.energy) = (self.work_at(now).to_bits(), self.energy_at(now));
        self.since = self.since.max(now);
    }

    /// Changes the allotment from now on, after a pause in which the job moves.
    pub fn change(&mut self, now: Instant, allotment: Allotment, pause: Span) {
        self.update(now);
        if self.before.is_none() {
            self.before = Some(Box::new(self.present()));
        }
        if allotment.nodes.len() != self.allotment.nodes.len() {
            self.moved = Some(now);
        }
        self.moves_until = self.moves_until.max(now) + pause;
        self.until = self.moves_until + self.work().time(allotment.time);
        self.allotment = allotment;
    }

    /// The job is on these nodes, each under the cap that was meant for those it was given.
    pub fn relocate(&mut self, nodes: &[u32]) {
        let before = self.before.iter_mut().map(|before| &mut before.allotment);
        for allotment in before.chain(&mut self.squeezed_from).chain([&mut self.allotment]) {
            if allotment.nodes.len() == nodes.len() {
                allotment.nodes = nodes.iter().map(|node| (*node, allotment.cap)).collect();
            }
        }
    }

    /// The job begins only now, although it was to begin before.
    pub fn begin_later(&mut self, now: Instant) {
        self.energy = self.energy_at(now);
        (self.since, self.moves_until) = (now, now);
        self.until = now + self.work().time(self.allotment.time);
    }

    /// What the job has now, to be remembered before a change.
    pub fn present(&self) -> Previous {
        let (allotment, squeezed_from) = (self.allotment.clone(), self.squeezed_from.clone());
        Previous { allotment, squeezed_from }
    }

    /// Suspends the job: neither work nor energy goes on from now on.
    pub fn suspend(&mut self, now: Instant) {
        self.update(now);
        self.suspended = true;
        self.until = Instant::NEVER;
    }

    /// Resumes a suspended job.
    pub fn resume(&mut self, now: Instant) {
        self.suspended = false;
        self.since = now;
        self.moves_until = self.moves_until.max(now);
        self.until = self.moves_until + self.work().time(self.allotment.time);
    }
}

/// What a job had before a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    /// Its nodes and power.
    pub allotment: Allotment,
    /// What the policy had given it, if a lower budget had left it with less.
    pub squeezed_from: Option<Allotment>,
}

/// A request to a running job to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Why the job must end.
    #[serde(rename = "why")]
    pub reason: EndReason,
    /// When the job was asked.
    pub asked: Instant,
    /// Whether it was killed since.
    pub forced: bool,
    /// The user who asked for it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<u32>,
}

/// Why a job does not run to its own end, or does not run at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// A user cancelled it.
    Cancelled,
    /// Its time limit was reached.
    TimeLimit,
    /// The budget left no power for it, and the last resort is to cancel.
    Budget,
    /// A job that it depends on failed.
    Dependency,
    /// The policy dropped it.
    Dropped,
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EndReason::Cancelled => "cancelled",
            EndReason::TimeLimit => "time limit reached",
            EndReason::Budget => "no power left for it",
            EndReason::Dependency => "a job it depends on failed",
            EndReason::Dropped => "dropped by the policy",
        })
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOutcome {
    /// When the job started, if it ever did.
    pub start: Option<Instant>,
    /// When the job was over.
    pub end: Instant,
    /// How its process ended, if it had one.
    pub how: Option<End>,
    /// Why the job was ended, if it did not end by itself.
    #[serde(rename = "why")]
    pub reason: Option<EndReason>,
    /// The energy it drew in all, as predicted by the model.
    pub energy: Joules,
    /// The nodes it had at the end.
    pub nodes: Vec<u32>,
    /// The user who ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<u32>,
    /// How long it would have run at full speed, as predicted by the model, if that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_speed: Option<Span>,
}

impl JobOutcome {
    /// How long the job would have run at full speed, as far as that is known; `None` if it never ran.
    pub fn full_speed_time(&self) -> Option<Span> {
        // A job that could not be started had no nodes.
        let start = self.start.filter(|_| !self.nodes.is_empty())?;
        Some(self.full_speed.unwrap_or(self.end.since(start)))
    }

    /// Whether the job ended by itself, with exit code 0.
    pub fn succeeded(&self) -> bool {
        self.reason.is_none() && self.how == Some(End::Exited(0))
    }
}

/// A decision, or something that happened. In the order in which they are written, events tell which job
/// held how much power when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When it happened, by the daemon's clock.
    pub at: Instant,
    /// What happened.
    #[serde(rename = "what")]
    pub kind: EventKind,
}

/// What was decided, or happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A daemon started.
    Began {
        /// The daemon's version.
        version: String,
        /// The policy it uses.
        policy: String,
    },
    /// The daemon stopped properly. Its jobs run on.
    Stopped,
    /// The limit in force changed, or what the machine draws without any job, or both were determined at the start.
    Limit {
        /// The limit, the machine's own draw included; `None` if there is no limit.
        power: Option<Watts>,
        /// The power of the machine without jobs.
        base: Watts,
    },
    /// A job was submitted.
    Submitted {
        /// The job's number.
        job: u64,
        /// The number of its array and its index, if it is an element of one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        element: Option<(u64, u32)>,
    },
    /// A job was held, or released.
    Held {
        /// The job's number.
        job: u64,
        /// Whether the job is held now.
        held: bool,
        /// The user who did that, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<u32>,
    },
    /// A job starts.
    Started {
        /// The job's number.
        job: u64,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The nodes and power it gets.
        allotment: Allotment,
    },
    /// A job could not be started, and waits again.
    Withdrawn {
        /// The job's number.
        job: u64,
        /// Why it could not be started.
        reason: String,
    },
    /// A running job gets other nodes or power.
    Changed {
        /// The job's number.
        job: u64,
        /// The nodes and power it has from now on.
        allotment: Allotment,
        /// Why it was changed.
        #[serde(rename = "because")]
        reason: ChangeReason,
    },
    /// The state of a node has changed.
    Node {
        /// The node's number.
        node: u32,
        /// The name by which people know it, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Its state from now on.
        state: NodeState,
        /// Where it is if the daemon has switched it off, or is switching it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        switched: Option<SwitchState>,
    },
    /// What a job that is over was measured to consume.
    Consumed {
        /// The job's number.
        job: u64,
        /// The energy.
        energy: Joules,
        /// The mean power.
        power: Watts,
        /// Whether an emulator made some of it up.
        emulated: bool,
    },
    /// A running job was suspended; it draws nothing meanwhile.
    Suspended {
        /// The job's number.
        job: u64,
    },
    /// A suspended job goes on with what it had.
    Resumed {
        /// The job's number.
        job: u64,
    },
    /// A job was asked to end, or was killed.
    Ending {
        /// The job's number.
        job: u64,
        /// Why the job must end.
        #[serde(rename = "why")]
        reason: EndReason,
        /// Whether it was killed.
        forced: bool,
        /// The user who asked for it, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<u32>,
    },
    /// A job is over.
    Ended {
        /// The job's number.
        job: u64,
        /// How the job ended.
        outcome: JobOutcome,
    },
    /// A message to the operator.
    Notice {
        /// The message.
        text: String,
    },
}

impl EventKind {
    /// The job that the event is about, if it is about one.
    pub fn job(&self) -> Option<u64> {
        match self {
            EventKind::Submitted { job, .. }
            | EventKind::Held { job, .. }
            | EventKind::Started { job, .. }
            | EventKind::Withdrawn { job, .. }
            | EventKind::Changed { job, .. }
            | EventKind::Consumed { job, .. }
            | EventKind::Suspended { job }
            | EventKind::Resumed { job }
            | EventKind::Ending { job, .. }
            | EventKind::Ended { job, .. } => Some(*job),
            EventKind::Began { .. }
            | EventKind::Stopped
            | EventKind::Limit { .. }
            | EventKind::Node { .. }
            | EventKind::Notice { .. } => None,
        }
    }
}

/// Why a running job was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeReason {
    /// The policy decided so.
    Policy,
    /// The budget fell, and the job was given less.
    Squeezed,
    /// The budget rose, and the job got back what it had.
    Restored,
    /// The engine has chosen its nodes.
    Placed,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of a daemon that did not yet record which user asked for something.
    #[test]
    fn older_files_can_be_read() {
        let event = |text: &str| serde_json::from_str::<Event>(text).unwrap().kind;
        let held = event(r#"{"at":1,"what":{"held":{"job":7,"held":true}}}"#);
        assert_eq!(held, EventKind::Held { job: 7, held: true, by: None });
        let ending =
            event(r#"{"at":1,"what":{"ending":{"job":7,"why":"cancelled","forced":false}}}"#);
        let expected =
            EventKind::Ending { job: 7, reason: EndReason::Cancelled, forced: false, by: None };
        assert_eq!(ending, expected);
        let outcome =
            r#"{"start":null,"end":5,"how":null,"why":"cancelled","energy":0,"nodes":[]}"#;
        let outcome: JobOutcome = serde_json::from_str(outcome).unwrap();
        assert_eq!((outcome.reason, outcome.by), (Some(EndReason::Cancelled), None));
        // Without a user, the form is the same as before.
        let text = serde_json::to_string(&Event { at: Instant::from_millis(1), kind: held });
        assert_eq!(text.unwrap(), r#"{"at":1,"what":{"held":{"job":7,"held":true}}}"#);
    }
}
