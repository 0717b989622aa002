//! One line of a log, as written.

use busbar_core::job::Job;
use busbar_core::units::Span;

/// How many fields a record has.
pub(super) const FIELDS: usize = 18;

/// What the fields are called in messages, in the order of the line.
pub(super) const FIELD_NAMES: [&str; FIELDS] = [
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time used",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "application",
    "queue",
    "partition",
    "preceding job",
    "think time",
];

/// The largest value of each field. Those a job is built from are held to 32 bits; the others only
/// to what a [`Record`] can carry, since a strange value there does no harm.
pub(super) const LARGEST: [i64; FIELDS] = {
    let mut largest = [i64::MAX; FIELDS];
    // Submit, run and requested time; allocated and requested processors; user and application.
    let narrow = [1, 3, 8, 4, 7, 11, 13];
    let mut i = 0;
    while i < narrow.len() {
        largest[narrow[i]] = u32::MAX as i64;
        i += 1;
    }
    largest
};

/// The 18 fields of a line, as written; −1 stands for what is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Field 1: the job's number, usually counted from 1.
    pub number: i64,
    /// Field 2: when it was submitted, in seconds since the start of the log.
    pub submit: i64,
    /// Field 3: how long it waited, in seconds.
    pub wait: i64,
    /// Field 4: how long it ran, in seconds.
    pub run_time: i64,
    /// Field 5: processors it got.
    pub allocated_processors: i64,
    /// Field 6: CPU time used, in seconds, the mean over its processors.
    pub average_cpu_time: i64,
    /// Field 7: memory used, in kilobytes a processor.
    pub used_memory: i64,
    /// Field 8: processors it asked for.
    pub requested_processors: i64,
    /// Field 9: how long it asked to run, in seconds.
    pub requested_time: i64,
    /// Field 10: memory it asked for, in kilobytes a processor.
    pub requested_memory: i64,
    /// Field 11: how it ended, a [`Status`].
    pub status: i64,
    /// Field 12: who submitted it.
    pub user: i64,
    /// Field 13: that user's group.
    pub group: i64,
    /// Field 14: the application it ran.
    pub application: i64,
    /// Field 15: the queue it was submitted to.
    pub queue: i64,
    /// Field 16: the part of the machine it ran on.
    pub partition: i64,
    /// Field 17: the job it waited for before it was submitted.
    pub preceding_job: i64,
    /// Field 18: seconds between the end of that job and this one's submission.
    pub think_time: i64,
}

/// How a job ended, as field 11 writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It failed, or was killed.
    Failed = 0,
    /// It ran to its end.
    Completed = 1,
    /// It was cancelled, before or after it started.
    Cancelled = 5,
}

impl Record {
    /// A record of which nothing is known.
    pub(crate) const UNKNOWN: Record = Record::from_fields([-1; FIELDS]);

    /// The record of a job that runs for `run_time`, with what a workload knows of it; its size is
    /// written as requested and as allocated, for there are readers of either.
    ///
    /// The format counts in seconds: the requested time is rounded up, so that it stays a limit,
    /// and the others to the nearest second. A requested time of zero cannot be told from a
    /// missing one and is read back as the run time.
    pub fn new(job: &Job, run_time: Span) -> Self {
        let nodes = i64::from(job.nodes);
        Record {
            number: i64::try_from(job.number).unwrap_or(i64::MAX),
            submit: nearest_second(job.submit.millis()),
            run_time: nearest_second(run_time.millis()),
            allocated_processors: nodes,
            requested_processors: nodes,
            requested_time: job.requested.millis().div_ceil(1000) as i64,
            user: job.user.map_or(-1, |user| user.0.get().into()),
            group: job.group.map_or(-1, |group| group.0.get().into()),
            application: job.application.map_or(-1, |application| application.0.get().into()),
            ..Record::UNKNOWN
        }
    }

    /// The same record of a job that waited this long.
    pub fn waited(mut self, wait: Span) -> Self {
        self.wait = nearest_second(wait.millis());
        self
    }

    /// The same record of a job that ended like this.
    pub fn ended(mut self, status: Status) -> Self {
        self.status = status as i64;
        self
    }

    /// The record with these fields, in the order of the line.
    #[inline]
    pub(crate) const fn from_fields(fields: [i64; FIELDS]) -> Self {
        let [
            number,
            submit,
            wait,
            run_time,
            allocated_processors,
            average_cpu_time,
            used_memory,
            requested_processors,
            requested_time,
            requested_memory,
            status,
            user,
            group,
            application,
            queue,
            partition,
            preceding_job,
            think_time,
        ] = fields;
        Record {
            number,
            submit,
            wait,
            run_time,
            allocated_processors,
            average_cpu_time,
            used_memory,
            requested_processors,
            requested_time,
            requested_memory,
            status,
            user,
            group,
            application,
            queue,
            partition,
            preceding_job,
            think_time,
        }
    }

    /// The fields, in the order of the line.
    #[inline]
    pub(crate) const fn fields(&self) -> [i64; FIELDS] {
        [
            self.number,
            self.submit,
            self.wait,
            self.run_time,
            self.allocated_processors,
            self.average_cpu_time,
            self.used_memory,
            self.requested_processors,
            self.requested_time,
            self.requested_memory,
            self.status,
            self.user,
            self.group,
            self.application,
            self.queue,
            self.partition,
            self.preceding_job,
            self.think_time,
        ]
    }
}

/// Milliseconds as seconds; the division keeps the result far inside an `i64`.
fn nearest_second(millis: u64) -> i64 {
    (millis / 1000 + u64::from(millis % 1000 >= 500)) as i64
}
