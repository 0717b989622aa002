//! Reads what `squeue` and `scontrol -o` print.
//!
//! This is the usual way to read a cluster: all versions from 22.05 on print the same fields, and 1000
//! jobs take about 20 ms, a seventh of what `squeue --json` takes. Two things make it reliable:
//!
//! - A job's name and comment are the user's and may hold anything, also line breaks and separators. So
//!   `squeue` is asked for fields of unlimited width (`-O NAME:0…`) with a separator that holds a random
//!   word of this call ([`JobFormat`]): nobody can have known it when the job was submitted, and a record
//!   that does not have the right number of fields is refused. `scontrol -o show job` has no such safe
//!   form; only what jobs have of single nodes is read there, with care ([`parts`]).
//! - Times are asked for in seconds since 1970 (`SLURM_TIME_FORMAT`), and long lists in full
//!   (`SLURM_BITSTR_LEN`).
//!
//! Nodes, partitions, licences and reservations are read from `scontrol -o`: only administrators write
//! what stands there.

use std::collections::BTreeMap;
use std::io::Read;
use std::str::FromStr;

use crate::error::SlurmError;
use crate::hosts::HostList;
use crate::listing::Listing;
use crate::model::{
    ArrayPart, Exit, HetPart, Job, JobState, Licence, Node, NodeState, Partition, Reservation,
    read_amounts,
};
use crate::parts::{self, Asked};
use crate::tasks::Tasks;
use crate::unread::{UNKNOWN, Unread};

/// The fields of a job, as `squeue -O` names them.
pub(crate) const FIELDS: [&str; 31] = [
    "JobID",
    "ArrayJobID",
    "ArrayTaskID",
    "HetJobID",
    "HetJobOffset",
    "UserName",
    "UserID",
    "Account",
    "Partition",
    "State",
    "Reason",
    "PriorityLong",
    "NumNodes",
    "MaxNodes",
    "NumCPUs",
    "NodeList",
    "ReqNodes",
    "Dependency",
    "SubmitTime",
    "EligibleTime",
    "StartTime",
    "EndTime",
    "TimeLimit",
    "Licenses",
    "exit_code",
    "RestartCnt",
    "Requeue",
    "Reservation",
    "admin_comment",
    "Name",
    "Comment",
];

/// The fields that say what a job asks for of nodes that jobs share.
pub(crate) const PART_FIELDS: [&str; 8] = [
    "NumTasks",
    "MinMemory",
    "tres-alloc",
    "tres-per-node",
    "tres-per-job",
    "tres-per-task",
    "tres-per-socket",
    "OverSubscribe",
];

/// How `squeue` is asked to separate fields and jobs in one call.
#[derive(Clone, Debug)]
pub struct JobFormat {
    separator: String,
    end: String,
}

impl JobFormat {
    /// A form that nobody can guess.
    pub(crate) fn new() -> Result<Self, SlurmError> {
        let mut bytes = [0; 6];
        let read =
            std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
        read.map_err(|source| SlurmError::Program { program: "/dev/urandom".to_owned(), source })?;
        let word: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(JobFormat::with_word(&word))
    }

    /// The form with a given word.
    pub(crate) fn with_word(word: &str) -> Self {
        JobFormat { separator: format!("|{word}|"), end: format!("|{word}!") }
    }

    /// What stands between two fields, and behind a job.
    pub(crate) fn marks(&self) -> (&str, &str) {
        (&self.separator, &self.end)
    }

    /// What `squeue -O` is given.
    pub(crate) fn argument(&self) -> String {
        self.argument_of(&FIELDS)
    }

    /// The same where jobs share nodes.
    pub(crate) fn argument_with_parts(&self) -> String {
        self.argument_of(&[&PART_FIELDS[..], &FIELDS].concat())
    }

    fn argument_of(&self, fields: &[&str]) -> String {
        let (last, others) = fields.split_last().unwrap_or((&"", &[]));
        let mut text = String::new();
        for field in others {
            text += &format!("{field}:0{},", self.separator);
        }
        text + &format!("{last}:0{}", self.end)
    }

    /// Reads what `squeue` printed.
    pub fn read(&self, printed: &str) -> Listing<Job> {
        self.read_of(printed, false)
    }

    /// The same where jobs share nodes.
    pub fn read_with_parts(&self, printed: &str) -> Listing<Job> {
        self.read_of(printed, true)
    }

    fn read_of(&self, printed: &str, has_parts: bool) -> Listing<Job> {
        let mut records: Vec<&str> = printed.split(self.end.as_str()).collect();
        let rest = records.pop().unwrap_or_default().trim();
        let mut jobs =
            Listing::of(records, |record, unread| self.read_job(record, has_parts, unread));
        if !rest.is_empty() {
            let reason = format!("it ends in the middle of a job: '{}'", brief(rest));
            jobs.unread.push(Unread::new("squeue", reason));
            jobs.lost += 1;
        }
        jobs
    }

    fn read_job(&self, record: &str, has_parts: bool, unread: &mut Vec<Unread>) -> Option<Job> {
        let record = record.trim_start_matches('\n');
        let mut fields: Vec<&str> = record.split(self.separator.as_str()).collect();
        let parts = has_parts.then(|| fields.drain(..PART_FIELDS.len().min(fields.len())));
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        let what = format!("job {}", brief(fields.first().unwrap_or(&"")));
        let Ok(fields) = <[&str; FIELDS.len()]>::try_from(fields.as_slice()) else {
            let reason = format!("it has {} fields instead of {}", fields.len(), FIELDS.len());
            unread.push(Unread::new(what, reason));
            return None;
        };
        let mut doubts = Doubts::default();
        let job =
            job(&fields, &mut doubts).map(|job| {
                match <[&str; PART_FIELDS.len()]>::try_from(parts) {
                    Ok(parts) => Job { part: Some(asked(&job, parts).part()), ..job },
                    Err(_) => job,
                }
            });
        unread.extend(doubts.0.iter().map(|(field, value)| {
            Unread::new(what.as_str(), format!("{field} is '{}'", brief(value)))
        }));
        job
    }
}

/// The fields of a job that cannot be read, with what stands there.
#[derive(Default)]
struct Doubts(Vec<(&'static str, String)>);

impl Doubts {
    /// A value, if it could be read, and a doubt otherwise.
    fn or_note<T>(&mut self, field: &'static str, text: &str, read: Option<T>) -> Option<T> {
        if read.is_none() {
            self.0.push((field, text.to_owned()));
        }
        read
    }

    fn number(&mut self, field: &'static str, text: &str) -> u32 {
        self.or_note(field, text, text.trim().parse().ok()).unwrap_or(UNKNOWN)
    }

    fn hosts(&mut self, field: &'static str, text: &str) -> HostList {
        self.or_note(field, text, text_of(text).unwrap_or("").parse().ok()).unwrap_or_default()
    }
}

/// The beginning of a text, for a message.
fn brief(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// A job of its fields. `None` if not even its number is known, or if it waits and it is not known which elements of an
/// array it is: whoever acted on it might act on all of them.
fn job(fields: &[&str; FIELDS.len()], doubts: &mut Doubts) -> Option<Job> {
    let [
        id,
        array_job,
        task,
        het_job,
        het_offset,
        user,
        uid,
        account,
        partition,
        state,
        reason,
        priority,
        nodes_min,
        nodes_max,
        cpus,
        nodes,
        required,
        dependency,
        submitted,
        eligible,
        started,
        ended,
        limit,
        licences,
        exit,
        restarts,
        requeue,
        reservation,
        admin_comment,
        name,
        comment,
    ] = *fields;
    let id = doubts.or_note("JobID", id, id.trim().parse().ok())?;
    let state = doubts.or_note("State", state, text_of(state).map(JobState::of_word));
    let state = state.unwrap_or(JobState::Other(String::new()));
    let array = match text_of(task) {
        Some(tasks) => {
            let part = tasks.parse::<Tasks>().ok().zip(array_job.trim().parse().ok());
            let part = doubts.or_note("ArrayTaskID", task, part);
            if part.is_none() && state.is_waiting() {
                return None;
            }
            part.map(|(tasks, job)| ArrayPart { job, tasks })
        }
        None => None,
    };
    let het = match (text_of(het_job).map(str::parse), text_of(het_offset).map(str::parse)) {
        (Some(Ok(job)), Some(Ok(offset))) if job != 0 => Some(HetPart { job, offset }),
        (None | Some(Ok(0)), _) => None,
        _ => doubts.or_note("HetJobID", het_job, None),
    };
    let priority = doubts.number("PriorityLong", priority);
    let nodes = doubts.hosts("NodeList", nodes);
    let nodes_min = match (nodes_min.trim().parse(), nodes.len()) {
        (Ok(number), _) => number,
        (Err(_), 0) => doubts.number("NumNodes", nodes_min),
        (Err(_), has) => has as u32,
    };
    let nodes_max = match (state.is_waiting(), text_of(nodes_max)) {
        (false, _) | (true, None) => nodes_min,
        (true, Some(text)) => doubts.number("MaxNodes", text).max(nodes_min),
    };
    let has_begun = !state.is_waiting();
    let uid = doubts.number("UserID", uid);
    let cpus = doubts.number("NumCPUs", cpus);
    let submitted = doubts.or_note("SubmitTime", submitted, time(submitted));
    let required = doubts.hosts("ReqNodes", required);
    let restarts = doubts.number("RestartCnt", restarts);
    let limit_minutes = match text_of(limit) {
        Some("UNLIMITED" | "Partition_Limit" | "NOT_SET" | "INVALID") | None => None,
        Some(text) => doubts.or_note("TimeLimit", text, minutes(text)),
    };
    let amounts = read_amounts(text_of(licences).unwrap_or(""));
    let licences = doubts.or_note("Licenses", licences, amounts).unwrap_or_default();
    Some(Job {
        id,
        array,
        het,
        name: name.to_owned(),
        user: user.to_owned(),
        uid,
        account: text_of(account).map(str::to_owned),
        partitions: words(partition),
        hold: Job::held_by(&state, reason, priority),
        state,
        reason: text_of(reason).filter(|reason| *reason != "None").map(str::to_owned),
        priority,
        nodes_min,
        nodes_max,
        cpus,
        part: None,
        held: None,
        nodes,
        required,
        dependency: text_of(dependency).map(str::to_owned),
        submitted,
        eligible: time(eligible),
        started: time(started).filter(|_| has_begun),
        ended: time(ended).filter(|_| has_begun),
        limit_minutes,
        licences,
        // Nothing is decided by it, so one that cannot be read is no reason for a doubt.
        exit: Exit::of_text(exit),
        restarts,
        may_requeue: requeue.trim() == "1",
        reservation: text_of(reservation).map(str::to_owned),
        comment: text_of(comment).map(str::to_owned),
        admin_comment: text_of(admin_comment).map(str::to_owned),
        unread: doubts.0.iter().map(|(field, _)| (*field).to_owned()).collect(),
    })
}

/// What a job asks for of nodes that jobs share.
fn asked<'a>(job: &Job, fields: [&'a str; PART_FIELDS.len()]) -> Asked<'a> {
    let [tasks, memory, tracked, of_node, of_job, of_task, of_socket, shares] = fields;
    Asked {
        nodes: job.nodes_min,
        cpus: job.cpus,
        tasks: tasks.trim().parse().ok(),
        memory: parts::memory(memory, tracked, job.cpus),
        gres: [of_node, of_job, of_task, of_socket],
        // Nodes for one user, or whatever else there may be, are nodes that others do not share.
        is_exclusive: !["OK", "YES"].contains(&shares.trim()),
    }
}

/// A value, unless it is one of Slurm's words for nothing.
fn text_of(text: &str) -> Option<&str> {
    let nothing = ["", "(null)", "N/A", "n/a", "NONE", "Unknown", "None assigned"];
    let text = text.trim();
    (!nothing.contains(&text)).then_some(text)
}

/// Words between commas.
fn words(text: &str) -> Vec<String> {
    text_of(text).map(|text| text.split(',').map(str::to_owned).collect()).unwrap_or_default()
}

/// Seconds since 1970.
fn time(text: &str) -> Option<u64> {
    text_of(text)?.parse().ok().filter(|seconds| *seconds > 0)
}

/// A span as Slurm prints it (`5:00`, `1-12:00:00`), in whole minutes, rounded up.
fn minutes(text: &str) -> Option<u32> {
    let (days, clock) = text.trim().split_once('-').unwrap_or(("0", text.trim()));
    let mut seconds: u64 = 0;
    for part in clock.split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    let days: u64 = days.parse().ok()?;
    u32::try_from((days.checked_mul(86_400)?.checked_add(seconds)?).div_ceil(60)).ok()
}

/// The `KEY=VALUE` pairs of a line of `scontrol -o`. A value goes on until the next word that is one of
/// `keys` with an equals sign, since some values hold blanks.
fn pairs<'a>(line: &'a str, keys: &[&'static str]) -> BTreeMap<&'static str, &'a str> {
    let mut found: Vec<(usize, usize, &'static str)> = Vec::new();
    let mut at = 0;
    for word in line.split(' ') {
        let is_next = |(key, _): &(&str, &str)| !found.iter().any(|(_, _, other)| other == key);
        if let Some((key, _)) = word.split_once('=').filter(is_next)
            && let Some(key) = keys.iter().find(|known| **known == key)
        {
            found.push((at, at + key.len() + 1, key));
        } else if word.split_once('=').is_some_and(|(key, _)| is_key(key)) {
            // The value before ends here, whatever this is.
            found.push((at, at, ""));
        }
        at += word.len() + 1;
    }
    let ends = found.iter().skip(1).map(|(begin, _, _)| *begin).chain([line.len()]);
    let mut pairs = BTreeMap::new();
    for ((_, value, key), end) in found.iter().zip(ends) {
        if !key.is_empty() {
            pairs.insert(*key, line[*value..end].trim());
        }
    }
    pairs
}

/// Whether a word looks like one of Slurm's keys: letters, beginning with a capital.
pub(crate) fn is_key(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_:/".contains(c))
}

/// The records of `scontrol -o`: lines that begin with a key.
fn records<'a>(
    printed: &'a str,
    first: &str,
    keys: &'a [&'static str],
) -> impl Iterator<Item = BTreeMap<&'static str, &'a str>> {
    let begin = format!("{first}=");
    let lines = printed.lines().filter(move |line| line.starts_with(begin.as_str()));
    lines.map(move |line| pairs(line, keys))
}

/// A value under a key, or that there is none.
fn needed<'a, T>(
    pairs: &BTreeMap<&'static str, &'a str>,
    (kind, key): (&str, &str),
    unread: &mut Vec<Unread>,
    read: impl FnOnce(&'a str) -> Option<T>,
) -> Option<T> {
    let found = pairs.get(key).copied();
    let value = found.and_then(read);
    if value.is_none() {
        let name = pairs.iter().find(|(key, _)| key.ends_with("Name"));
        let name = name.map_or("", |(_, name)| *name);
        let reason = match found {
            Some(text) => format!("{key} is '{}'", brief(text)),
            None => format!("there is no {key}"),
        };
        unread.push(Unread::new(format!("{kind} {}", brief(name)).trim_end(), reason));
    }
    value
}

fn hosts(text: &str) -> Option<HostList> {
    text_of(text).unwrap_or("").parse().ok()
}

fn name(text: &str) -> Option<String> {
    text_of(text).map(str::to_owned)
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// Reads `scontrol -o show node`. A node whose state is not known is not one that can be used.
pub fn nodes(printed: &str) -> Listing<Node> {
    let keys = [
        "NodeName",
        "CPUAlloc",
        "CPUTot",
        "Gres",
        "GresUsed",
        "NodeAddr",
        "RealMemory",
        "AllocMem",
        "State",
        "Partitions",
    ];
    let lines = printed.lines().filter(|line| line.starts_with("NodeName="));
    Listing::of(lines, |line, unread| {
        // An administrator's reason may hold anything, and stands near the end.
        let (line, reason) = match line.split_once(" Reason=") {
            Some((line, reason)) => (line, reason_of(reason)),
            None => (line, None),
        };
        let pairs = pairs(line, &keys);
        let name = needed(&pairs, ("node", "NodeName"), unread, name)?;
        let of_node =
            |key: &str| Unread::new(format!("node {name}"), format!("{key} cannot be read"));
        let mut count = |key: &str| {
            let count = pairs.get(key).and_then(|text| number(text));
            unread.extend(count.is_none().then(|| of_node(key)));
            count.unwrap_or(UNKNOWN)
        };
        let (cpus, cpus_in_use) = (count("CPUTot"), count("CPUAlloc"));
        // Older answers do not say all of that, and nothing is decided by it where jobs have whole nodes.
        let mebibytes =
            |key: &str| pairs.get(key).and_then(|text| parts::mebibytes(text)).unwrap_or(UNKNOWN);
        let gpus = |key: &str| pairs.get(key).and_then(|text| parts::gpus(text)).unwrap_or(UNKNOWN);
        let state = pairs.get("State").and_then(|text| text_of(text));
        let state = state.map(|text| NodeState::of_words(text.split('+')));
        unread.extend(state.is_none().then(|| of_node("State")));
        Some(Node {
            state: state.unwrap_or_default(),
            reason,
            cpus,
            cpus_in_use,
            memory_mib: mebibytes("RealMemory"),
            memory_in_use_mib: mebibytes("AllocMem"),
            gpus: gpus("Gres"),
            gpus_in_use: if gpus("Gres") == 0 { 0 } else { gpus("GresUsed") },
            partitions: words(pairs.get("Partitions").unwrap_or(&"")),
            address: pairs.get("NodeAddr").map(|text| (*text).to_owned()).unwrap_or_default(),
            name,
        })
    })
}

/// A reason without who gave it when: `no agent [root@1794879586]`.
fn reason_of(text: &str) -> Option<String> {
    let end = text.rfind(" [").filter(|_| text.contains('@')).unwrap_or(text.len());
    text_of(&text[..end]).map(str::to_owned)
}

/// Reads `scontrol -o show partition`.
pub fn partitions(printed: &str) -> Listing<Partition> {
    let keys = ["PartitionName", "MaxTime", "Nodes", "State"];
    Listing::of(records(printed, "PartitionName", &keys), |pairs, unread| {
        Some(Partition {
            name: needed(&pairs, ("partition", "PartitionName"), unread, name)?,
            nodes: needed(&pairs, ("partition", "Nodes"), unread, hosts)?,
            is_up: needed(&pairs, ("partition", "State"), unread, name)? == "UP",
            most_minutes: pairs.get("MaxTime").and_then(|text| minutes(text)),
        })
    })
}

/// Reads `scontrol -o show licenses`. Of a licence nothing may be unknown, since its numbers are the budget.
pub fn licences(printed: &str) -> Listing<Licence> {
    let keys = ["LicenseName", "Total", "Used", "Reserved", "Nodes"];
    Listing::of(records(printed, "LicenseName", &keys), |pairs, unread| {
        Some(Licence {
            name: needed(&pairs, ("licence", "LicenseName"), unread, name)?,
            total: needed(&pairs, ("licence", "Total"), unread, number)?,
            used: needed(&pairs, ("licence", "Used"), unread, number)?,
            reserved: needed(&pairs, ("licence", "Reserved"), unread, number)?,
            nodes: hosts(pairs.get("Nodes").unwrap_or(&""))?,
        })
    })
}

/// Reads `scontrol -o show reservation`.
pub fn reservations(printed: &str) -> Listing<Reservation> {
    let keys = ["ReservationName", "StartTime", "EndTime", "Nodes", "Users", "Licenses"];
    let amounts = |text: &str| read_amounts(text_of(text).unwrap_or(""));
    Listing::of(records(printed, "ReservationName", &keys), |pairs, unread| {
        Some(Reservation {
            name: needed(&pairs, ("reservation", "ReservationName"), unread, name)?,
            nodes: needed(&pairs, ("reservation", "Nodes"), unread, hosts)?,
            licences: needed(&pairs, ("reservation", "Licenses"), unread, amounts)?,
            users: words(pairs.get("Users").unwrap_or(&"")),
            begins: pairs.get("StartTime").and_then(|text| time(text)),
            ends: pairs.get("EndTime").and_then(|text| time(text)),
        })
    })
}

#[cfg(test)]
mod tests;
