//! Reads answers in JSON: those of commands with `--json`, and those of slurmrestd.
//!
//! The shapes differ between versions and data parsers: a number may be plain, or `{"set": …, "infinite":
//! …, "number": …}`, or null; a state may be a word or a list of words. One tolerant reader takes all of
//! them and makes the same types of them as [`text`](crate::text) does, so that nobody else has to know
//! which version a site has. Keys that are not needed are passed over.

use serde_json::Value;

use crate::error::SlurmError;
use crate::hosts::HostList;
use crate::model::{
    ArrayPart, Exit, HetPart, Job, JobState, Licence, Node, NodeState, Partition, Reservation,
    read_amounts,
};
use crate::tasks::Tasks;
use crate::version::Version;

/// An answer that was read, with what it is the answer to.
#[derive(Clone, Debug)]
pub struct Answer {
    what: String,
    value: Value,
}

/// A number of Slurm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Unset,
    Infinite,
    Is(u64),
}

impl Answer {
    /// Reads the text of an answer. One that reports errors is an error itself.
    pub fn read(what: &str, text: &str) -> Result<Self, SlurmError> {
        let answer = Answer::read_whatever(what, text)?;
        match answer.complaint() {
            Some(complaint) => Err(SlurmError::from_text(what, &complaint)),
            None => Ok(answer),
        }
    }

    /// The same without a look at the errors it reports.
    pub fn read_whatever(what: &str, text: &str) -> Result<Self, SlurmError> {
        let value: Value = serde_json::from_str(text).map_err(|error| SlurmError::Unreadable {
            what: what.to_owned(),
            reason: format!("it is no JSON: {error}"),
        })?;
        Ok(Answer { what: what.to_owned(), value })
    }

    /// The errors that the answer reports.
    pub fn complaint(&self) -> Option<String> {
        let errors = self.value.get("errors")?.as_array()?;
        let text = |error: &Value| {
            let part =
                |key: &str| error.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
            let parts: Vec<&str> = ["error", "description"].into_iter().filter_map(part).collect();
            match parts.is_empty() {
                true => error.to_string(),
                false => parts.join(": "),
            }
        };
        let all: Vec<String> = errors.iter().map(text).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// The numbers of the errors that the answer reports.
    pub fn error_numbers(&self) -> Vec<u64> {
        let errors = self.value.get("errors").and_then(Value::as_array);
        let number = |error: &Value| error.get("error_number").and_then(Value::as_u64);
        errors.into_iter().flatten().filter_map(number).collect()
    }

    /// The version of Slurm that gave the answer.
    pub fn version(&self) -> Option<Version> {
        let meta = self.value.get("meta")?;
        let slurm = meta.get("slurm").or_else(|| meta.get("Slurm"))?;
        slurm.get("release")?.as_str()?.parse().ok()
    }

    /// The jobs of `squeue --json`, `scontrol show job --json` or `/jobs`.
    pub fn jobs(&self) -> Result<Vec<Job>, SlurmError> {
        self.list("jobs")?.iter().map(|value| self.job(value)).collect()
    }

    /// The nodes of `scontrol show node --json` or `/nodes`.
    pub fn nodes(&self) -> Result<Vec<Node>, SlurmError> {
        self.list("nodes")?.iter().map(|value| self.node(value)).collect()
    }

    /// The partitions of `scontrol show partition --json` or `/partitions`.
    pub fn partitions(&self) -> Result<Vec<Partition>, SlurmError> {
        self.list("partitions")?.iter().map(|value| self.partition(value)).collect()
    }

    /// The licences of `scontrol show licenses --json` or `/licenses`.
    pub fn licences(&self) -> Result<Vec<Licence>, SlurmError> {
        let read = |value: &Value| {
            let count = |key: &str| amount(value.get(key)).unwrap_or(0);
            Ok(Licence {
                name: self.word(value, "LicenseName")?.to_owned(),
                total: count("Total"),
                used: count("Used"),
                reserved: count("Reserved"),
                nodes: self.hosts(value.get("Nodes"))?,
            })
        };
        self.list("licenses")?.iter().map(read).collect()
    }

    /// The reservations of `scontrol show reservation --json` or `/reservations`.
    pub fn reservations(&self) -> Result<Vec<Reservation>, SlurmError> {
        let read = |value: &Value| {
            Ok(Reservation {
                name: self.word(value, "name")?.to_owned(),
                nodes: self.hosts(value.get("node_list"))?,
                licences: read_amounts(text(value.get("licenses")).unwrap_or("")),
                users: words(value.get("users")),
                begins: time(value.get("start_time")),
                ends: time(value.get("end_time")),
            })
        };
        self.list("reservations")?.iter().map(read).collect()
    }

    /// The nodes of `sinfo --json`: groups of nodes that are alike, once for each partition.
    pub fn sinfo_nodes(&self) -> Result<Vec<Node>, SlurmError> {
        let mut nodes: Vec<Node> = Vec::new();
        for group in self.list("sinfo")? {
            let partition = group.pointer("/partition/name").and_then(Value::as_str);
            let names = words(group.pointer("/nodes/nodes"));
            let per_node = |pointer: &str| {
                amount(group.pointer(pointer)).unwrap_or(0) / names.len().max(1) as u64
            };
            for name in &names {
                if let Some(known) = nodes.iter_mut().find(|node| node.name == *name) {
                    known.partitions.extend(partition.map(str::to_owned));
                    continue;
                }
                let state = words(group.pointer("/node/state"));
                nodes.push(Node {
                    name: name.clone(),
                    state: NodeState::of_words(state.iter().map(String::as_str)),
                    reason: text(group.pointer("/reason/description")).map(str::to_owned),
                    cpus: per_node("/cpus/total") as u32,
                    cpus_in_use: per_node("/cpus/allocated") as u32,
                    partitions: partition.map(str::to_owned).into_iter().collect(),
                    address: String::new(),
                });
            }
        }
        Ok(nodes)
    }

    fn unreadable(&self, reason: String) -> SlurmError {
        SlurmError::Unreadable { what: self.what.clone(), reason }
    }

    fn list(&self, key: &str) -> Result<&Vec<Value>, SlurmError> {
        let list = self.value.get(key).and_then(Value::as_array);
        list.ok_or_else(|| self.unreadable(format!("it has no list '{key}'")))
    }

    fn word<'a>(&self, value: &'a Value, key: &str) -> Result<&'a str, SlurmError> {
        let word = value.get(key).and_then(Value::as_str);
        word.ok_or_else(|| self.unreadable(format!("something has no '{key}'")))
    }

    fn hosts(&self, value: Option<&Value>) -> Result<HostList, SlurmError> {
        match value {
            Some(Value::Array(names)) => Ok(HostList::new(names.iter().filter_map(Value::as_str))),
            value => text(value)
                .unwrap_or("")
                .parse()
                .map_err(|error| self.unreadable(format!("{error}"))),
        }
    }

    fn job(&self, value: &Value) -> Result<Job, SlurmError> {
        let at = |key: &str| value.get(key);
        let small = |key: &str| amount(at(key)).and_then(|number| u32::try_from(number).ok());
        let id =
            small("job_id").ok_or_else(|| self.unreadable("a job has no number".to_owned()))?;
        let state = words(at("job_state"));
        let state = JobState::of_words(&state.iter().map(String::as_str).collect::<Vec<_>>());
        // What Slurm explains in words stands in place of the reason, as in `squeue`.
        let reason = text(at("state_description")).or(text(at("state_reason"))).unwrap_or("");
        // A priority above what fits is a high one.
        let priority = small("priority").unwrap_or(u32::MAX);
        let waiting_tasks =
            text(at("array_task_string")).and_then(|text| text.parse::<Tasks>().ok());
        let tasks = waiting_tasks.or_else(|| small("array_task_id").map(Tasks::one));
        let array_job = small("array_job_id").filter(|number| *number != 0);
        let array = array_job.zip(tasks).map(|(job, tasks)| ArrayPart { job, tasks });
        let het = small("het_job_id").filter(|number| *number != 0);
        let nodes_min = small("node_count").unwrap_or(0);
        let nodes_max = match state.is_waiting() {
            true => small("max_nodes").unwrap_or(0).max(nodes_min),
            false => nodes_min,
        };
        let named = |key: &str| text(at(key)).map(str::to_owned);
        let has_begun = !state.is_waiting();
        Ok(Job {
            id,
            array,
            het: het.map(|job| HetPart { job, offset: small("het_job_offset").unwrap_or(0) }),
            name: named("name").unwrap_or_default(),
            user: named("user_name").unwrap_or_default(),
            uid: small("user_id").unwrap_or(u32::MAX),
            account: named("account"),
            partitions: words(at("partition")),
            hold: Job::held_by(&state, reason, priority),
            state,
            reason: Some(reason).filter(|reason| !["", "None"].contains(reason)).map(str::to_owned),
            priority,
            nodes_min,
            nodes_max,
            cpus: small("cpus").unwrap_or(0),
            nodes: self.hosts(at("nodes"))?,
            required: self.hosts(at("required_nodes"))?,
            dependency: named("dependency"),
            submitted: time(at("submit_time")),
            eligible: time(at("eligible_time")),
            started: time(at("start_time")).filter(|_| has_begun),
            ended: time(at("end_time")).filter(|_| has_begun),
            limit_minutes: small("time_limit"),
            licences: read_amounts(text(at("licenses")).unwrap_or("")),
            exit: exit(at("exit_code")),
            restarts: small("restart_cnt").unwrap_or(0),
            may_requeue: at("requeue").and_then(Value::as_bool).unwrap_or(false),
            reservation: named("resv_name"),
            comment: named("comment"),
            admin_comment: named("admin_comment"),
        })
    }

    fn node(&self, value: &Value) -> Result<Node, SlurmError> {
        let count =
            |key: &str| amount(value.get(key)).and_then(|number| u32::try_from(number).ok());
        let mut state = words(value.get("state"));
        state.extend(words(value.get("state_flags")));
        Ok(Node {
            name: self.word(value, "name")?.to_owned(),
            state: NodeState::of_words(state.iter().map(String::as_str)),
            reason: text(value.get("reason")).map(str::to_owned),
            cpus: count("cpus").unwrap_or(0),
            cpus_in_use: count("alloc_cpus").unwrap_or(0),
            partitions: words(value.get("partitions")),
            address: text(value.get("address")).unwrap_or("").to_owned(),
        })
    }

    fn partition(&self, value: &Value) -> Result<Partition, SlurmError> {
        let at = |pointer: &str, plain: &str| value.pointer(pointer).or_else(|| value.get(plain));
        let flags = words(value.get("flags"));
        Ok(Partition {
            name: self.word(value, "name")?.to_owned(),
            nodes: self.hosts(at("/nodes/configured", "nodes"))?,
            is_up: words(at("/partition/state", "state")).iter().any(|word| word == "UP"),
            is_default: flags.iter().any(|flag| flag.eq_ignore_ascii_case("default")),
            most_minutes: amount(at("/maximums/time", "max_time_limit"))
                .and_then(|number| u32::try_from(number).ok()),
        })
    }
}

/// The number in a value, of whichever shape.
fn number(value: Option<&Value>) -> Number {
    match value {
        Some(Value::Number(plain)) => {
            // Numbers with a fraction are whole ones that went through Lua or a data parser.
            let whole = plain
                .as_u64()
                .or_else(|| plain.as_f64().filter(|float| *float >= 0.0).map(|float| float as u64));
            // Older versions write what is not set as the largest numbers.
            match whole {
                Some(0xffff_fffe | 0xffff_ffff_ffff_fffe) | None => Number::Unset,
                Some(0xffff_ffff | 0xffff_ffff_ffff_ffff) => Number::Infinite,
                Some(number) => Number::Is(number),
            }
        }
        Some(Value::Object(parts)) => {
            let is = |key: &str| parts.get(key).and_then(Value::as_bool).unwrap_or(false);
            match (is("infinite"), is("set")) {
                (true, _) => Number::Infinite,
                (false, false) => Number::Unset,
                (false, true) => number(parts.get("number").filter(|inner| inner.is_number())),
            }
        }
        Some(Value::String(text)) => text.trim().parse().map_or(Number::Unset, Number::Is),
        _ => Number::Unset,
    }
}

/// A number that is neither missing nor infinite.
fn amount(value: Option<&Value>) -> Option<u64> {
    match number(value) {
        Number::Is(number) => Some(number),
        Number::Unset | Number::Infinite => None,
    }
}

/// Seconds since 1970; 0 is not known.
fn time(value: Option<&Value>) -> Option<u64> {
    amount(value).filter(|seconds| *seconds > 0)
}

/// A text that says something.
fn text(value: Option<&Value>) -> Option<&str> {
    value?.as_str().map(str::trim).filter(|text| !["", "(null)", "N/A"].contains(text))
}

/// Words of a list, or of a text with commas.
fn words(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(list)) => {
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        value => {
            text(value).map(|text| text.split(',').map(str::to_owned).collect()).unwrap_or_default()
        }
    }
}

/// An exit code: the status that `wait` returned, or its parts.
fn exit(value: Option<&Value>) -> Exit {
    let small = |value: Option<&Value>| {
        amount(value).and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
    };
    match value {
        Some(Value::Object(parts)) if parts.contains_key("return_code") => {
            let signal = parts.get("signal");
            let id = signal.and_then(|signal| signal.get("id").or_else(|| signal.get("signal_id")));
            Exit { code: small(parts.get("return_code")), signal: small(id) }
        }
        value => Exit::of_status(small(value)),
    }
}

#[cfg(test)]
mod tests;
