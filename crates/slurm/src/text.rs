//! Reads what `squeue` and `scontrol -o` print.
//!
//! This is the usual way to read a cluster: all versions from 22.05 on print the same fields, and 1000
//! jobs take about 20 ms, a seventh of what `squeue --json` takes. Two things make it reliable:
//!
//! - A job's name and comment are the user's and may hold anything, also line breaks and separators. So
//!   `squeue` is asked for fields of unlimited width (`-O NAME:0…`) with a separator that holds a random
//!   word of this call ([`JobFormat`]): nobody can have known it when the job was submitted, and a record
//!   that does not have the right number of fields is refused. `scontrol -o show job` has no such safe
//!   form and is not used.
//! - Times are asked for in seconds since 1970 (`SLURM_TIME_FORMAT`), and long lists in full
//!   (`SLURM_BITSTR_LEN`).
//!
//! Nodes, partitions, licences and reservations are read from `scontrol -o`: only administrators write
//! what stands there.

use std::collections::BTreeMap;
use std::io::Read;

use crate::error::SlurmError;
use crate::hosts::HostList;
use crate::model::{
    ArrayPart, Exit, HetPart, Job, JobState, Licence, Node, NodeState, Partition, Reservation,
    read_amounts,
};
use crate::tasks::Tasks;

/// The fields of a job, as `squeue -O` names them.
const FIELDS: [&str; 31] = [
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

/// How `squeue` is asked to separate fields and jobs in one call.
#[derive(Clone, Debug)]
pub struct JobFormat {
    separator: String,
    end: String,
}

impl JobFormat {
    /// A form that nobody can guess.
    pub fn new() -> Result<Self, SlurmError> {
        let mut bytes = [0; 6];
        let read =
            std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
        read.map_err(|error| {
            unreadable("squeue", format!("there are no random numbers: {error}"))
        })?;
        let word: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(JobFormat::with_word(&word))
    }

    /// The form with a given word.
    pub fn with_word(word: &str) -> Self {
        JobFormat { separator: format!("|{word}|"), end: format!("|{word}!") }
    }

    /// What `squeue -O` is given.
    pub fn argument(&self) -> String {
        let (last, others) = FIELDS.split_last().unwrap_or((&"", &[]));
        let mut text = String::new();
        for field in others {
            text += &format!("{field}:0{},", self.separator);
        }
        text + &format!("{last}:0{}", self.end)
    }

    /// Reads what `squeue` printed.
    pub fn read(&self, printed: &str) -> Result<Vec<Job>, SlurmError> {
        let mut records: Vec<&str> = printed.split(self.end.as_str()).collect();
        let rest = records.pop().unwrap_or_default().trim();
        if !rest.is_empty() {
            let rest: String = rest.chars().take(80).collect();
            return Err(unreadable("squeue", format!("it ends in the middle of a job: '{rest}'")));
        }
        records.into_iter().map(|record| self.read_job(record)).collect()
    }

    fn read_job(&self, record: &str) -> Result<Job, SlurmError> {
        let record = record.trim_start_matches('\n');
        let fields: Vec<&str> = record.split(self.separator.as_str()).collect();
        let Ok(fields) = <[&str; FIELDS.len()]>::try_from(fields.as_slice()) else {
            let reason = format!("a job has {} fields instead of {}", fields.len(), FIELDS.len());
            return Err(unreadable("squeue", reason));
        };
        job(&fields).map_err(|(field, value)| {
            let value: String = value.chars().take(80).collect();
            unreadable("squeue", format!("job {}: {field} is '{value}'", fields[0]))
        })
    }
}

fn unreadable(what: &str, reason: String) -> SlurmError {
    SlurmError::Unreadable { what: what.to_owned(), reason }
}

/// A job of its fields, or the name and value of a field that cannot be read.
fn job<'a>(fields: &[&'a str; FIELDS.len()]) -> Result<Job, (&'static str, &'a str)> {
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
    let number =
        |field: &'static str, text: &'a str| text.trim().parse::<u32>().map_err(|_| (field, text));
    let hosts = |field: &'static str, text: &'a str| {
        text_of(text).unwrap_or("").parse::<HostList>().map_err(|_| (field, text))
    };
    let id = number("JobID", id)?;
    let array = match text_of(task) {
        Some(tasks) => {
            let tasks = tasks.parse::<Tasks>().map_err(|_| ("ArrayTaskID", task))?;
            Some(ArrayPart { job: number("ArrayJobID", array_job)?, tasks })
        }
        None => None,
    };
    let het = match (text_of(het_job).map(str::parse), text_of(het_offset).map(str::parse)) {
        (Some(Ok(job)), Some(Ok(offset))) if job != 0 => Some(HetPart { job, offset }),
        _ => None,
    };
    let state = JobState::of_word(state);
    let priority = number("PriorityLong", priority)?;
    let nodes_min = number("NumNodes", nodes_min)?;
    let nodes_max = match state.is_waiting() {
        true => text_of(nodes_max).and_then(|text| text.parse().ok()).unwrap_or(0).max(nodes_min),
        false => nodes_min,
    };
    let has_begun = !state.is_waiting();
    Ok(Job {
        id,
        array,
        het,
        name: name.to_owned(),
        user: user.to_owned(),
        uid: number("UserID", uid)?,
        account: text_of(account).map(str::to_owned),
        partitions: words(partition),
        hold: Job::held_by(&state, reason, priority),
        state,
        reason: text_of(reason).filter(|reason| *reason != "None").map(str::to_owned),
        priority,
        nodes_min,
        nodes_max,
        cpus: number("NumCPUs", cpus)?,
        nodes: hosts("NodeList", nodes)?,
        required: hosts("ReqNodes", required)?,
        dependency: text_of(dependency).map(str::to_owned),
        submitted: time(submitted),
        eligible: time(eligible),
        started: time(started).filter(|_| has_begun),
        ended: time(ended).filter(|_| has_begun),
        limit_minutes: minutes(limit),
        licences: read_amounts(text_of(licences).unwrap_or("")),
        exit: Exit::of_status(number("exit_code", exit)?),
        restarts: number("RestartCnt", restarts)?,
        may_requeue: requeue.trim() == "1",
        reservation: text_of(reservation).map(str::to_owned),
        comment: text_of(comment).map(str::to_owned),
        admin_comment: text_of(admin_comment).map(str::to_owned),
    })
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
fn is_key(word: &str) -> bool {
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

/// A value that must be there.
fn needed<'a>(
    pairs: &BTreeMap<&'static str, &'a str>,
    key: &str,
    what: &str,
) -> Result<&'a str, SlurmError> {
    pairs.get(key).copied().ok_or_else(|| unreadable(what, format!("there is no {key}")))
}

fn hosts(text: &str, what: &str) -> Result<HostList, SlurmError> {
    text_of(text).unwrap_or("").parse().map_err(|error| unreadable(what, format!("{error}")))
}

/// Reads `scontrol -o show node`.
pub fn nodes(printed: &str) -> Result<Vec<Node>, SlurmError> {
    let what = "scontrol show node";
    let keys = ["NodeName", "CPUAlloc", "CPUTot", "NodeAddr", "State", "Partitions", "Reason"];
    let mut nodes = Vec::new();
    for line in printed.lines().filter(|line| line.starts_with("NodeName=")) {
        // An administrator's reason may hold anything, and stands near the end.
        let (line, reason) = match line.split_once(" Reason=") {
            Some((line, reason)) => (line, reason_of(reason)),
            None => (line, None),
        };
        let pairs = pairs(line, &keys);
        let count = |key: &str| pairs.get(key).and_then(|text| text.parse().ok()).unwrap_or(0);
        nodes.push(Node {
            name: needed(&pairs, "NodeName", what)?.to_owned(),
            state: NodeState::of_words(needed(&pairs, "State", what)?.split('+')),
            reason,
            cpus: count("CPUTot"),
            cpus_in_use: count("CPUAlloc"),
            partitions: words(pairs.get("Partitions").unwrap_or(&"")),
            address: pairs.get("NodeAddr").map(|text| (*text).to_owned()).unwrap_or_default(),
        });
    }
    Ok(nodes)
}

/// A reason without who gave it when: `no agent [root@1794879586]`.
fn reason_of(text: &str) -> Option<String> {
    let end = text.rfind(" [").filter(|_| text.contains('@')).unwrap_or(text.len());
    text_of(&text[..end]).map(str::to_owned)
}

/// Reads `scontrol -o show partition`.
pub fn partitions(printed: &str) -> Result<Vec<Partition>, SlurmError> {
    let what = "scontrol show partition";
    let keys = ["PartitionName", "Default", "MaxTime", "Nodes", "State"];
    let read = |pairs: BTreeMap<_, &str>| {
        Ok(Partition {
            name: needed(&pairs, "PartitionName", what)?.to_owned(),
            nodes: hosts(needed(&pairs, "Nodes", what)?, what)?,
            is_up: needed(&pairs, "State", what)? == "UP",
            is_default: pairs.get("Default") == Some(&"YES"),
            most_minutes: pairs.get("MaxTime").and_then(|text| minutes(text)),
        })
    };
    records(printed, "PartitionName", &keys).map(read).collect()
}

/// Reads `scontrol -o show licenses`.
pub fn licences(printed: &str) -> Result<Vec<Licence>, SlurmError> {
    let what = "scontrol show licenses";
    let keys = ["LicenseName", "Total", "Used", "Reserved", "Nodes"];
    let read = |pairs: BTreeMap<_, &str>| {
        let count =
            |key: &str| pairs.get(key).and_then(|text: &&str| text.parse().ok()).unwrap_or(0);
        Ok(Licence {
            name: needed(&pairs, "LicenseName", what)?.to_owned(),
            total: count("Total"),
            used: count("Used"),
            reserved: count("Reserved"),
            nodes: hosts(pairs.get("Nodes").unwrap_or(&""), what)?,
        })
    };
    records(printed, "LicenseName", &keys).map(read).collect()
}

/// Reads `scontrol -o show reservation`.
pub fn reservations(printed: &str) -> Result<Vec<Reservation>, SlurmError> {
    let what = "scontrol show reservation";
    let keys = ["ReservationName", "StartTime", "EndTime", "Nodes", "Users", "Licenses"];
    let read = |pairs: BTreeMap<_, &str>| {
        Ok(Reservation {
            name: needed(&pairs, "ReservationName", what)?.to_owned(),
            nodes: hosts(pairs.get("Nodes").unwrap_or(&""), what)?,
            licences: read_amounts(
                pairs.get("Licenses").and_then(|text| text_of(text)).unwrap_or(""),
            ),
            users: words(pairs.get("Users").unwrap_or(&"")),
            begins: pairs.get("StartTime").and_then(|text| time(text)),
            ends: pairs.get("EndTime").and_then(|text| time(text)),
        })
    };
    records(printed, "ReservationName", &keys).map(read).collect()
}

#[cfg(test)]
mod tests;
