//! A job as a daemon keeps it: what its user asked for, and what has become of it.
//!
//! Everything here can be written down and read back. Times are milliseconds of the daemon's own
//! clock ([`Instant`]), power is in milliwatts, energy in microjoules.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::array::{ArraySpec, Element};
use super::engine::{Allotment, End};
use busbar_core::model::Work;
use busbar_core::units::{Instant, Joules, Span};

/// Whose a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The user's number.
    pub user: u32,
    /// The number of the group.
    pub group: u32,
}

/// What is submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// What the job is to have.
    pub wish: Wish,
    /// What it is to do.
    pub program: Program,
    /// The indices of an array, if it is to become many jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArraySpec>,
}

/// What a job is to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// What its user calls it.
    pub name: String,
    /// How many nodes; at least one.
    pub nodes: u32,
    /// Fewest and most nodes it could do with, if it is moldable.
    #[serde(default)]
    pub moldable: Option<(u32, u32)>,
    /// How long it may run on these nodes, unthrottled.
    pub time: Span,
    /// Which application it is, by name.
    #[serde(default)]
    pub application: Option<String>,
    /// How much longer it may take so that it need not wait: `10%` or `unbounded`.
    #[serde(default)]
    pub slowdown: Option<String>,
    /// Jobs that have to end first.
    #[serde(default)]
    pub after: Vec<After>,
    /// Whether it is to wait until it is released.
    #[serde(default)]
    pub held: bool,
}

/// A job that has to end before another starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// Which.
    pub job: u64,
    /// Whether any end will do. Otherwise it must end well, and if it does not, whoever waits for it is
    /// dropped.
    #[serde(default)]
    pub any: bool,
}

/// What a job is to do. It is kept in the database alone, as it may be large.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The program and its arguments; at least the program.
    pub command: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Its environment; the daemon adds variables of its own.
    pub environment: Vec<(String, String)>,
    /// Where its output goes; `%j` is the job's number, `%A` that of its array, and `%a` its index.
    pub output: PathBuf,
    /// Where its errors go; the same place if that is not said.
    #[serde(default)]
    pub errors: Option<PathBuf>,
}

impl Submission {
    /// How many bytes are kept of it: as many as it has as JSON.
    pub fn bytes(&self) -> u64 {
        self.wish.bytes() + json_bytes(&self.program)
    }
}

impl Wish {
    /// How many bytes it has as JSON.
    pub fn bytes(&self) -> u64 {
        json_bytes(self)
    }
}

/// How many bytes something has as JSON.
fn json_bytes(value: &impl Serialize) -> u64 {
    /// Counts what is written.
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
    // Counting does not fail; of a path that is not UTF-8, which cannot be written, what comes before it
    // counts.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

impl Program {
    /// Where output and errors of a job go.
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

/// A job as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// By which its user knows it. Numbers rise in the order of submission, from 1, and are never used
    /// again.
    pub number: u64,
    /// Whose it is.
    pub owner: Owner,
    /// What it is to have.
    pub wish: Wish,
    /// When it was submitted.
    pub submit: Instant,
    /// How many times it has been tried.
    pub attempts: u32,
    /// How far it has got.
    pub phase: Phase,
    /// Which element of an array it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Element>,
}

/// How far a job has got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It waits: for nodes and power, for others, or to be released, as its wish says.
    Waiting,
    /// It was decided that it runs.
    Running(Course),
    /// It is over.
    Over(Outcome),
}

/// A job that runs, or is about to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// When it started.
    pub start: Instant,
    /// What it has now.
    pub allotment: Allotment,
    /// What is left of its work, in steps of 2⁻⁶² of all of it, at `since`.
    pub work: u64,
    /// Up to when `work` and `energy` were reckoned.
    pub since: Instant,
    /// What it has drawn until then, as far as is believed.
    pub energy: Joules,
    /// It stands still until then, because it moves from nodes to nodes.
    pub moves_until: Instant,
    /// When its number of nodes changed last, if it ever did.
    pub moved: Option<Instant>,
    /// When its time is over.
    pub until: Instant,
    /// What it had before its last change, as long as nobody has confirmed that change. Whoever begins
    /// again says it again, and lowers before it raises.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<Before>>,
    /// Whether it stands still because there is no power for it.
    pub suspended: bool,
    /// What its policy gave it, if a falling budget left it with less.
    pub squeezed_from: Option<Allotment>,
    /// Whether it has been asked to end, and why.
    pub ending: Option<Ending>,
}

impl Course {
    /// A job that starts now.
    pub fn new(now: Instant, allotment: Allotment) -> Self {
        Course {
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
            allotment,
        }
    }

    /// What was left of its work when that was last reckoned. More than all of it is all of it.
    pub fn work(&self) -> Work {
        Work::from_bits(self.work).unwrap_or(Work::ALL)
    }

    /// What is left of its work now.
    pub fn work_at(&self, now: Instant) -> Work {
        match self.suspended {
            true => self.work(),
            false => {
                self.work().after(now.since(self.since.max(self.moves_until)), self.allotment.time)
            }
        }
    }

    /// What it has drawn until now, as far as is believed.
    pub fn energy_at(&self, now: Instant) -> Joules {
        match self.suspended {
            true => self.energy,
            false => self.energy + self.allotment.power.over(now.since(self.since)),
        }
    }

    /// Brings what is left and what was drawn up to now.
    pub fn reckon(&mut self, now: Instant) {
        (self.work, self.energy) = (self.work_at(now).to_bits(), self.energy_at(now));
        self.since = self.since.max(now);
    }

    /// It has something else from now on, after a pause in which it moves.
    pub fn change(&mut self, now: Instant, allotment: Allotment, pause: Span) {
        self.reckon(now);
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

    /// What it has now.
    pub fn present(&self) -> Before {
        let (allotment, squeezed_from) = (self.allotment.clone(), self.squeezed_from.clone());
        Before { allotment, squeezed_from }
    }

    /// It stands still from now on.
    pub fn suspend(&mut self, now: Instant) {
        self.reckon(now);
        self.suspended = true;
        self.until = Instant::NEVER;
    }

    /// It goes on.
    pub fn resume(&mut self, now: Instant) {
        self.suspended = false;
        self.since = now;
        self.moves_until = self.moves_until.max(now);
        self.until = self.moves_until + self.work().time(self.allotment.time);
    }
}

/// What a job had before a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// What it had.
    pub allotment: Allotment,
    /// What its policy had given it, if a falling budget had left it with that.
    pub squeezed_from: Option<Allotment>,
}

/// That a job has been asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Why.
    pub why: Why,
    /// When it was asked.
    pub asked: Instant,
    /// Whether it was ended by force since.
    pub forced: bool,
    /// The user who wanted that, if somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<u32>,
}

/// Why a job ends that does not end by itself, or does not run at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Somebody cancelled it.
    Cancelled,
    /// Its time was over.
    TimeLimit,
    /// There was no power for it any more.
    Budget,
    /// A job that had to end well before it did not.
    Dependency,
    /// The policy gave it up.
    Dropped,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// When it started, if it ever did.
    pub start: Option<Instant>,
    /// When it was over.
    pub end: Instant,
    /// How its process ended, if it had one.
    pub how: Option<End>,
    /// Why, if it did not end by itself.
    pub why: Option<Why>,
    /// What it has drawn in all, as far as is believed.
    pub energy: Joules,
    /// The nodes it had at the end.
    pub nodes: Vec<u32>,
    /// The user who wanted that, if somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<u32>,
}

impl Outcome {
    /// Whether it ended by itself and said that all went well.
    pub fn is_good(&self) -> bool {
        self.why.is_none() && self.how == Some(End::Exited(0))
    }
}

/// Something that was decided or that happened. In the order in which they are written, events tell who
/// held how much power when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// What.
    pub what: Happening,
}

/// What was decided, or happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happening {
    /// A daemon began its work.
    Began {
        /// Its version.
        version: String,
        /// By which policy it decides.
        policy: String,
    },
    /// It ended its work properly. Jobs run on.
    Stopped,
    /// The limit in force changed, or was found at the beginning.
    Limit {
        /// What may be drawn, the machine's own draw included; nothing if there is no limit.
        power: Option<u64>,
        /// What the machine draws without any job.
        base: u64,
    },
    /// Somebody submitted a job.
    Submitted {
        /// Which.
        job: u64,
        /// Which element of which array, if it is one: the number of the array, and the index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        element: Option<(u64, u32)>,
    },
    /// A job was held, or released.
    Held {
        /// Which.
        job: u64,
        /// Whether it is held now.
        held: bool,
        /// The user who wanted that, if somebody did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<u32>,
    },
    /// A job starts.
    Started {
        /// Which.
        job: u64,
        /// For the how many-th time.
        attempt: u32,
        /// What it has.
        allotment: Allotment,
    },
    /// A job that was to start did not, and waits again.
    Withdrawn {
        /// Which.
        job: u64,
        /// What was in the way.
        reason: String,
    },
    /// A running job has something else from now on.
    Changed {
        /// Which.
        job: u64,
        /// What it has.
        allotment: Allotment,
        /// What made it change.
        because: Because,
    },
    /// A running job stands still; it draws nothing meanwhile.
    Suspended {
        /// Which.
        job: u64,
    },
    /// It goes on with what it had.
    Resumed {
        /// Which.
        job: u64,
    },
    /// A job was asked to end, or ended by force.
    Ending {
        /// Which.
        job: u64,
        /// Why.
        why: Why,
        /// Whether by force.
        forced: bool,
        /// The user who wanted that, if somebody did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<u32>,
    },
    /// A job is over.
    Ended {
        /// Which.
        job: u64,
        /// How.
        outcome: Outcome,
    },
    /// Something that an operator should know.
    Notice {
        /// What.
        text: String,
    },
}

impl Happening {
    /// The job that this is about.
    pub fn job(&self) -> Option<u64> {
        match self {
            Happening::Submitted { job, .. }
            | Happening::Held { job, .. }
            | Happening::Started { job, .. }
            | Happening::Withdrawn { job, .. }
            | Happening::Changed { job, .. }
            | Happening::Suspended { job }
            | Happening::Resumed { job }
            | Happening::Ending { job, .. }
            | Happening::Ended { job, .. } => Some(*job),
            Happening::Began { .. }
            | Happening::Stopped
            | Happening::Limit { .. }
            | Happening::Notice { .. } => None,
        }
    }
}

/// What made a running job change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// The policy decided so.
    Policy,
    /// The budget fell.
    Squeezed,
    /// The budget rose again.
    Restored,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a daemon wrote that did not yet note who wanted something.
    #[test]
    fn older_files_can_be_read() {
        let event = |text: &str| serde_json::from_str::<Event>(text).unwrap().what;
        let held = event(r#"{"at":1,"what":{"held":{"job":7,"held":true}}}"#);
        assert_eq!(held, Happening::Held { job: 7, held: true, by: None });
        let ending =
            event(r#"{"at":1,"what":{"ending":{"job":7,"why":"cancelled","forced":false}}}"#);
        let expected = Happening::Ending { job: 7, why: Why::Cancelled, forced: false, by: None };
        assert_eq!(ending, expected);
        let outcome =
            r#"{"start":null,"end":5,"how":null,"why":"cancelled","energy":0,"nodes":[]}"#;
        let outcome: Outcome = serde_json::from_str(outcome).unwrap();
        assert_eq!((outcome.why, outcome.by), (Some(Why::Cancelled), None));
        // And what nobody wanted is written as it was.
        let text = serde_json::to_string(&Event { at: Instant::from_millis(1), what: held });
        assert_eq!(text.unwrap(), r#"{"at":1,"what":{"held":{"job":7,"held":true}}}"#);
    }
}
