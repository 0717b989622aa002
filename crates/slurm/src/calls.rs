//! Every call of one of Slurm's programs that Busbar makes, in one list.
//!
//! A [`Reading`] asks what is so and changes nothing. Its answers are recorded for the versions that Busbar was tried with
//! ([`record`](crate::record)), and tests read them all. An `Act` changes something, and the cluster is read afterwards
//! to see whether it did. Whoever needs another call adds it here: a test finds programs of Slurm that are called
//! elsewhere.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cluster::JobUpdate;
use crate::hosts::HostList;
use crate::model::{Amounts, Job, JobRef, write_amounts};
use crate::text::JobFormat;
use crate::version::Version;

/// A program of Slurm with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call {
    /// The program.
    pub(crate) program: String,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
}

impl Call {
    fn new(program: &str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Call { program: program.to_owned(), arguments }
    }

    /// The same with one argument more.
    fn and(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        f.write_str(&describe(&self.program, &arguments))
    }
}

/// The beginning of a command line, for messages.
pub(crate) fn describe(program: &str, arguments: &[&str]) -> String {
    let mut text = program.to_owned();
    for argument in arguments {
        text.push(' ');
        // A long argument is a format or a list, which tells nobody anything.
        text.push_str(if argument.len() > 80 { "…" } else { argument });
    }
    let is_long = text.chars().count() > 120;
    let mut text: String = text.chars().filter(|c| !c.is_control()).take(120).collect();
    text.push_str(if is_long { "…" } else { "" });
    text
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// The version of the programs.
    Version,
    /// The cluster's configuration, as slurmctld knows it.
    Configuration,
    /// All jobs; elements of an array that wait are one entry.
    Jobs,
    /// All jobs, with an entry for each element of an array.
    Elements,
    /// All jobs, with what they ask for of nodes that jobs share.
    JobsWithParts,
    /// What running jobs have of their nodes.
    PartsOfJobs,
    /// All nodes.
    Nodes,
    /// All partitions.
    Partitions,
    /// All licences.
    Licences,
    /// All reservations.
    Reservations,
    /// All jobs in JSON.
    JobsInJson,
    /// All nodes in JSON.
    NodesInJson,
    /// All partitions in JSON.
    PartitionsInJson,
    /// All licences in JSON.
    LicencesInJson,
    /// All reservations in JSON.
    ReservationsInJson,
}

impl Reading {
    /// All of them.
    pub(crate) const ALL: [Reading; 13] = [
        Reading::Version,
        Reading::Configuration,
        Reading::Jobs,
        Reading::Elements,
        Reading::Nodes,
        Reading::Partitions,
        Reading::Licences,
        Reading::Reservations,
        Reading::JobsInJson,
        Reading::NodesInJson,
        Reading::PartitionsInJson,
        Reading::LicencesInJson,
        Reading::ReservationsInJson,
    ];

    /// Those that are made where jobs share nodes.
    pub(crate) const OF_PARTS: [Reading; 2] = [Reading::JobsWithParts, Reading::PartsOfJobs];

    /// The call that asks it, with the form in which jobs are printed.
    pub(crate) fn call(self, format: &JobFormat) -> Call {
        let jobs = || Call::new("squeue", &["-h", "-a", "-t", "all", "-O"]).and(format.argument());
        match self {
            Reading::Version => Call::new("scontrol", &["--version"]),
            Reading::Configuration => Call::new("scontrol", &["show", "config"]),
            Reading::Jobs => jobs(),
            Reading::Elements => jobs().and("-r"),
            // Memory is to be in MiB, whatever it is.
            Reading::JobsWithParts => {
                Call::new("squeue", &["-h", "-a", "-t", "all", "--noconvert", "-O"])
                    .and(format.argument_with_parts())
            }
            Reading::PartsOfJobs => Call::new("scontrol", &["-a", "-o", "-d", "show", "job"]),
            // Without details it does not say how many GPUs are in use.
            Reading::Nodes => Call::new("scontrol", &["-a", "-o", "-d", "show", "node"]),
            Reading::Partitions => Call::new("scontrol", &["-a", "-o", "show", "partition"]),
            Reading::Licences => Call::new("scontrol", &["-o", "show", "licenses"]),
            Reading::Reservations => Call::new("scontrol", &["-o", "show", "reservation"]),
            Reading::JobsInJson => Call::new("squeue", &["--json", "-a", "-t", "all"]),
            Reading::NodesInJson => Call::new("scontrol", &["--json", "-a", "show", "node"]),
            Reading::PartitionsInJson => {
                Call::new("scontrol", &["--json", "-a", "show", "partition"])
            }
            Reading::LicencesInJson => Call::new("scontrol", &["--json", "show", "licenses"]),
            Reading::ReservationsInJson => {
                Call::new("scontrol", &["--json", "show", "reservation"])
            }
        }
    }

    /// Whether this version can be asked so.
    pub(crate) fn is_known_to(self, version: Version) -> bool {
        match self {
            Reading::NodesInJson
            | Reading::PartitionsInJson
            | Reading::LicencesInJson
            | Reading::ReservationsInJson => version.has_scontrol_json(),
            _ => true,
        }
    }

    /// The file that a recorded answer is in.
    pub fn file(self) -> &'static str {
        match self {
            Reading::Version => "version.txt",
            Reading::Configuration => "configuration.txt",
            Reading::Jobs => "jobs.txt",
            Reading::Elements => "elements.txt",
            Reading::JobsWithParts => "jobs-with-parts.txt",
            Reading::PartsOfJobs => "parts.txt",
            Reading::Nodes => "nodes.txt",
            Reading::Partitions => "partitions.txt",
            Reading::Licences => "licences.txt",
            Reading::Reservations => "reservations.txt",
            Reading::JobsInJson => "jobs.json",
            Reading::NodesInJson => "nodes.json",
            Reading::PartitionsInJson => "partitions.json",
            Reading::LicencesInJson => "licences.json",
            Reading::ReservationsInJson => "reservations.json",
        }
    }
}

/// Some jobs by [`Reading::Jobs`]: Slurm tells of one job quickly, and of several only by way of all.
pub(crate) fn jobs_named(format: &JobFormat, jobs: &[JobRef]) -> Call {
    Reading::Jobs.call(format).and("-j").and(names(jobs))
}

/// What is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act<'a> {
    /// Holds jobs, so that their users cannot release them.
    Hold(&'a [JobRef]),
    /// Makes the hold of a job its user's.
    HoldForUser(JobRef),
    /// Releases jobs.
    Release(&'a [JobRef]),
    /// Changes jobs, all in the same way.
    Update(&'a [JobRef], &'a JobUpdate),
    /// Ends a job and queues it again under a hold.
    RequeueHold(JobRef),
    /// Lets a job start two seconds from now, and not before.
    DelayStart(JobRef),
    /// Lets a job stand still.
    Suspend(JobRef),
    /// Lets a job go on.
    Resume(JobRef),
    /// Ends jobs.
    Cancel(&'a [JobRef]),
    /// Asks for nodes by which a job grows, for so long. They are another job of the same user until they are merged.
    Allocate(&'a Job, &'a HostList, Duration),
    /// Gives the nodes of such a job to the one that grows.
    Merge(JobRef),
    /// Submits a job, with the arguments of `sbatch`.
    Submit(&'a [&'a str]),
    /// Takes nodes out of service, with a reason.
    Drain(&'a HostList, &'a str),
    /// Puts nodes into service.
    Undrain(&'a HostList),
    /// Makes a reservation of licences alone.
    Reserve(&'a str, &'a Amounts),
    /// Makes a reservation what [`Act::Reserve`] would make, whether it has begun or not: the beginning of one that has cannot
    /// be changed.
    Renew(&'a str, &'a Amounts, bool),
    /// Removes a reservation.
    RemoveReservation(&'a str),
    /// Makes a token for a user that is good for so long.
    Token(&'a str, Duration),
}

impl Act<'_> {
    /// The call that does it.
    pub(crate) fn call(self) -> Call {
        let scontrol = |arguments: &[&str]| Call::new("scontrol", arguments);
        let update = |job: JobRef| scontrol(&["update"]).and(format!("jobid={job}"));
        match self {
            Act::Hold(jobs) => scontrol(&["hold"]).and(names(jobs)),
            Act::HoldForUser(job) => scontrol(&["uhold"]).and(job.to_string()),
            Act::Release(jobs) => scontrol(&["release"]).and(names(jobs)),
            Act::Update(jobs, wanted) => {
                let call = scontrol(&["update"]).and(format!("jobid={}", names(jobs)));
                changes(wanted).into_iter().fold(call, Call::and)
            }
            Act::RequeueHold(job) => scontrol(&["requeuehold"]).and(job.to_string()),
            Act::DelayStart(job) => update(job).and("StartTime=now+2"),
            Act::Suspend(job) => scontrol(&["suspend"]).and(job.to_string()),
            Act::Resume(job) => scontrol(&["resume"]).and(job.to_string()),
            Act::Cancel(jobs) => {
                jobs.iter().map(JobRef::to_string).fold(Call::new("scancel", &[]), Call::and)
            }
            Act::Allocate(job, nodes, within) => {
                Call::new("salloc", &["--no-shell", "--exclusive", "-J", "busbar-expand", "-w"])
                    .and(nodes.to_string())
                    .and(format!("-N{0}-{0}", nodes.len()))
                    .and(format!("--dependency=expand:{}", job.id))
                    .and(format!("--partition={}", job.partitions.join(",")))
                    .and(format!("--immediate={}", within.as_secs()))
                    .and(format!("--uid={}", job.uid))
            }
            Act::Merge(helper) => update(helper).and("NumNodes=0"),
            Act::Submit(arguments) => Call::new("sbatch", arguments),
            Act::Drain(nodes, reason) => scontrol(&["update"])
                .and(format!("nodename={nodes}"))
                .and("state=drain")
                .and(format!("reason={}", reason.replace(['\n', '['], " "))),
            Act::Undrain(nodes) => {
                scontrol(&["update"]).and(format!("nodename={nodes}")).and("state=undrain")
            }
            Act::Reserve(name, licences) => {
                let call = scontrol(&["create", "reservation", "flags=ANY_NODES,IGNORE_JOBS"]);
                reserved(call, name, licences).and("starttime=now")
            }
            Act::Renew(name, licences, has_begun) => {
                let call = reserved(scontrol(&["update"]), name, licences);
                if has_begun { call } else { call.and("starttime=now") }
            }
            Act::RemoveReservation(name) => {
                scontrol(&["delete"]).and(format!("reservationname={name}"))
            }
            Act::Token(user, span) => scontrol(&["token"])
                .and(format!("username={user}"))
                .and(format!("lifespan={}", span.as_secs())),
        }
    }
}

/// What a reservation of licences is to be. Its end is given as a time: a duration would count from when it began.
fn reserved(call: Call, name: &str, licences: &Amounts) -> Call {
    call.and(format!("reservationname={name}"))
        .and("users=root")
        .and(format!("licenses={}", write_amounts(licences)))
        .and("endtime=now+365days")
}

/// The changes of a job as `scontrol update` takes them.
fn changes(update: &JobUpdate) -> Vec<String> {
    let mut changes = Vec::new();
    if let Some((fewest, most)) = update.nodes {
        changes.push(format!("NumNodes={fewest}-{most}"));
    }
    if let Some((in_all, of_node)) = update.cpus {
        changes.push(format!("NumCPUs={in_all}"));
        changes.push(format!("MinCPUsNode={of_node}"));
    }
    if let Some(required) = &update.required {
        changes.push(format!("NodeList={required}"));
    }
    if let Some(minutes) = update.limit_minutes {
        changes.push(format!("TimeLimit={minutes}"));
    }
    if let Some(comment) = &update.comment {
        changes.push(format!("Comment={comment}"));
    }
    if let Some(comment) = &update.admin_comment {
        changes.push(format!("AdminComment={comment}"));
    }
    if let Some(licences) = &update.licences {
        changes.push(format!("Licenses={}", write_amounts(licences)));
    }
    changes
}

/// Jobs as the programs take them.
pub(crate) fn names(jobs: &[JobRef]) -> String {
    jobs.iter().map(JobRef::to_string).collect::<Vec<_>>().join(",")
}
