//! Reads answers in JSON: those of commands with `--json`, and those of slurmrestd.
//!
//! The shapes differ between versions and data parsers: a number may be plain, or `{"set": …, "infinite":
//! …, "number": …}`, or null; a state may be a word or a list of words. One tolerant reader takes all of
//! them and makes the same types of them as [`text`](crate::text) does, so that nobody else has to know
//! which version a site has. Keys that are not needed are passed over.

use serde_json::Value;

use crate::error::SlurmError;
use crate::hosts::HostList;
use crate::listing::Listing;
use crate::model::{
    Amounts, ArrayPart, Exit, HetPart, Job, JobState, Licence, Node, NodeState, Partition,
    Reservation, read_amounts,
};
use crate::parts::{self, Asked, AskedMemory, Held, Part};
use crate::tasks::Tasks;
use crate::unread::{UNKNOWN, Unread};
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
    fn read_whatever(what: &str, text: &str) -> Result<Self, SlurmError> {
        let value: Value = serde_json::from_str(text).map_err(|error| SlurmError::Unreadable {
            what: what.to_owned(),
            reason: format!("it is not JSON: {error}"),
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
    pub fn jobs(&self) -> Result<Listing<Job>, SlurmError> {
        Ok(Listing::of(self.list("jobs")?, job))
    }

    /// The same with what they ask for, and have, of nodes that jobs share.
    pub fn jobs_with_parts(&self) -> Result<Listing<Job>, SlurmError> {
        let with_parts = |value: &Value, unread: &mut Vec<Unread>| {
            let job = job(value, unread)?;
            let held = held(value).filter(|_| job.has_nodes());
            Some(Job { part: Some(part(value, (job.nodes_min, job.cpus))), held, ..job })
        };
        Ok(Listing::of(self.list("jobs")?, with_parts))
    }

    /// The nodes of `scontrol show node --json` or `/nodes`.
    pub fn nodes(&self) -> Result<Listing<Node>, SlurmError> {
        Ok(Listing::of(self.list("nodes")?, node))
    }

    /// The partitions of `scontrol show partition --json` or `/partitions`.
    pub fn partitions(&self) -> Result<Listing<Partition>, SlurmError> {
        Ok(Listing::of(self.list("partitions")?, partition))
    }

    /// The licences of `scontrol show licenses --json` or `/licenses`. Of a licence nothing may be unknown.
    pub fn licences(&self) -> Result<Listing<Licence>, SlurmError> {
        let read = |value: &Value, unread: &mut Vec<Unread>| {
            let mut of = Doubtful { value, kind: "licence", name: "LicenseName", unread };
            Some(Licence {
                name: of.word("LicenseName")?,
                total: of.needed("Total", amount)?,
                used: of.needed("Used", amount)?,
                reserved: of.needed("Reserved", amount)?,
                nodes: of.needed("Nodes", hosts)?,
            })
        };
        Ok(Listing::of(self.list("licenses")?, read))
    }

    /// The reservations of `scontrol show reservation --json` or `/reservations`.
    pub fn reservations(&self) -> Result<Listing<Reservation>, SlurmError> {
        let read = |value: &Value, unread: &mut Vec<Unread>| {
            let mut of = Doubtful { value, kind: "reservation", name: "name", unread };
            Some(Reservation {
                name: of.word("name")?,
                nodes: of.needed("node_list", hosts)?,
                licences: of.needed("licenses", amounts)?,
                users: words(value.get("users")),
                begins: time(value.get("start_time")),
                ends: time(value.get("end_time")),
            })
        };
        Ok(Listing::of(self.list("reservations")?, read))
    }

    fn unreadable(&self, reason: String) -> SlurmError {
        SlurmError::Unreadable { what: self.what.clone(), reason }
    }

    fn list(&self, key: &str) -> Result<&Vec<Value>, SlurmError> {
        let list = self.value.get(key).and_then(Value::as_array);
        list.ok_or_else(|| self.unreadable(format!("it has no list '{key}'")))
    }
}

/// Something in a list, of which some keys may be missing or make no sense.
struct Doubtful<'a, 'b> {
    value: &'a Value,
    kind: &'static str,
    /// The key of what it is called.
    name: &'static str,
    unread: &'b mut Vec<Unread>,
}

impl Doubtful<'_, '_> {
    /// What is read of a key, or a note that it cannot be read.
    fn needed<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(Option<&Value>) -> Option<T>,
    ) -> Option<T> {
        let found = self.value.get(key);
        let value = read(found);
        if value.is_none() {
            let name = match self.value.get(self.name) {
                Some(Value::String(name)) => format!("{} {name}", self.kind),
                Some(Value::Number(number)) => format!("{} {number}", self.kind),
                _ => self.kind.to_owned(),
            };
            let reason = match found {
                Some(value) => {
                    format!("{key} is {}", value.to_string().chars().take(80).collect::<String>())
                }
                None => format!("there is no {key}"),
            };
            self.unread.push(Unread::new(name, reason));
        }
        value
    }

    fn word(&mut self, key: &str) -> Option<String> {
        self.needed(key, |value| text(value).map(str::to_owned))
    }
}

/// Nodes in a list, or as Slurm writes many. There are none where nothing is said.
fn hosts(value: Option<&Value>) -> Option<HostList> {
    match value {
        Some(Value::Array(names)) => Some(HostList::new(names.iter().filter_map(Value::as_str))),
        None | Some(Value::Null | Value::String(_)) => text(value).unwrap_or("").parse().ok(),
        _ => None,
    }
}

/// Amounts of licences. There are none where nothing is said.
fn amounts(value: Option<&Value>) -> Option<Amounts> {
    match value {
        None | Some(Value::Null | Value::String(_)) => read_amounts(text(value).unwrap_or("")),
        _ => None,
    }
}

/// A number that fits into fewer bits.
fn small(value: Option<&Value>) -> Option<u32> {
    amount(value).and_then(|number| u32::try_from(number).ok())
}

/// A job. `None` if not even its number is known, or if it waits and it is not known which elements of an array it is.
fn job(value: &Value, unread: &mut Vec<Unread>) -> Option<Job> {
    let at = |key: &str| value.get(key);
    let id = Doubtful { value, kind: "job", name: "job_id", unread }.needed("job_id", small)?;
    let before = unread.len();
    let mut doubts = Vec::new();
    let mut of = Doubtful { value, kind: "job", name: "job_id", unread };
    let mut needed = |key: &str| {
        let read = of.needed(key, small);
        doubts.extend(read.is_none().then(|| key.to_owned()));
        read.unwrap_or(UNKNOWN)
    };
    let (uid, node_count) = (needed("user_id"), needed("node_count"));
    let (cpus, restarts) = (needed("cpus"), needed("restart_cnt"));
    let state = words(at("job_state"));
    let state = match state.is_empty() {
        true => {
            doubts.extend(
                of.needed::<()>("job_state", |_| None).is_none().then(|| "job_state".to_owned()),
            );
            JobState::Other(String::new())
        }
        false => JobState::of_words(&state.iter().map(String::as_str).collect::<Vec<_>>()),
    };
    // What Slurm explains in words stands in place of the reason, as in `squeue`.
    let reason = text(at("state_description")).or(text(at("state_reason"))).unwrap_or("");
    // A priority above what fits is a high one.
    let priority = small(at("priority")).unwrap_or(UNKNOWN);
    let array_job = small(at("array_job_id")).filter(|number| *number != 0);
    let tasks = match text(at("array_task_string")) {
        Some(tasks) => tasks.parse::<Tasks>().ok(),
        None => small(at("array_task_id")).map(Tasks::one),
    };
    let array = match (array_job, tasks) {
        (None, _) => None,
        (Some(job), Some(tasks)) => Some(ArrayPart { job, tasks }),
        (Some(_), None) => {
            of.needed::<()>("array_task_string", |_| None);
            if state.is_waiting() {
                return None;
            }
            doubts.push("array_task_string".to_owned());
            None
        }
    };
    let het = small(at("het_job_id")).filter(|number| *number != 0);
    let mut list = |key: &str| {
        let read = of.needed(key, hosts);
        doubts.extend(read.is_none().then(|| key.to_owned()));
        read.unwrap_or_default()
    };
    let (nodes, required) = (list("nodes"), list("required_nodes"));
    let licences = of.needed("licenses", amounts);
    doubts.extend(licences.is_none().then(|| "licenses".to_owned()));
    let nodes_min = match node_count {
        UNKNOWN if !nodes.is_empty() => nodes.len() as u32,
        number => number,
    };
    let nodes_max = match state.is_waiting() {
        true => small(at("max_nodes")).unwrap_or(0).max(nodes_min),
        false => nodes_min,
    };
    let named = |key: &str| text(at(key)).map(str::to_owned);
    let has_begun = !state.is_waiting();
    debug_assert!(doubts.is_empty() == (of.unread.len() == before));
    Some(Job {
        id,
        array,
        het: het.map(|job| HetPart { job, offset: small(at("het_job_offset")).unwrap_or(0) }),
        name: named("name").unwrap_or_default(),
        user: named("user_name").unwrap_or_default(),
        uid,
        account: named("account"),
        partitions: words(at("partition")),
        hold: Job::held_by(&state, reason, priority),
        state,
        reason: Some(reason).filter(|reason| !["", "None"].contains(reason)).map(str::to_owned),
        priority,
        nodes_min,
        nodes_max,
        cpus,
        nodes,
        required,
        dependency: named("dependency"),
        submitted: time(at("submit_time")),
        eligible: time(at("eligible_time")),
        started: time(at("start_time")).filter(|_| has_begun),
        ended: time(at("end_time")).filter(|_| has_begun),
        limit_minutes: small(at("time_limit")),
        part: None,
        held: None,
        licences: licences.unwrap_or_default(),
        exit: exit(at("exit_code")),
        restarts,
        may_requeue: at("requeue").and_then(Value::as_bool).unwrap_or(false),
        reservation: named("resv_name"),
        comment: named("comment"),
        admin_comment: named("admin_comment"),
        unread: doubts,
    })
}

/// What a job of so many nodes and processors asks for of each of its nodes.
fn part(value: &Value, (nodes, cpus): (u32, u32)) -> Part {
    let at = |key: &str| value.get(key);
    let of = |key: &str| small(at(key)).filter(|mib| *mib > 0);
    let memory = match (of("memory_per_node"), of("memory_per_cpu")) {
        (Some(mib), _) => AskedMemory::OfNode(mib),
        (None, Some(mib)) => AskedMemory::OfProcessor(mib),
        (None, None) => AskedMemory::All,
    };
    let gres = ["tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket"];
    // A word for who may share the nodes, if it is not everybody.
    let shares = words(at("shared")).into_iter().chain(words(at("exclusive")));
    let is_exclusive = shares
        .into_iter()
        .any(|word| !["shared", "oversubscribe", "false"].contains(&word.as_str()));
    let asked = Asked {
        nodes,
        cpus,
        tasks: small(at("tasks")),
        memory,
        gres: gres.map(|key| text(at(key)).unwrap_or("")),
        is_exclusive,
    };
    asked.part()
}

/// What a job has of its nodes, as versions from 24.11 on say it.
fn held(value: &Value) -> Option<Vec<Held>> {
    let nodes = value.pointer("/job_resources/nodes/allocation")?.as_array()?;
    // GPUs stand beside that, those of each node in its place; nothing at all if nobody has any.
    let gres = value.get("gres_detail").and_then(Value::as_array)?;
    let held = nodes.iter().enumerate().map(|(place, node)| {
        let number = |pointer: &str| small(node.pointer(pointer)).unwrap_or(UNKNOWN);
        let of_gpus = match gres.is_empty() {
            true => Some(0),
            false => gres.get(place).and_then(Value::as_str).and_then(parts::gpus),
        };
        Some(Held {
            node: node.get("name")?.as_str()?.to_owned(),
            cpus: number("/cpus/count"),
            memory_mib: number("/memory/allocated"),
            gpus: of_gpus.unwrap_or(UNKNOWN),
        })
    });
    held.collect::<Option<Vec<Held>>>().filter(|held| !held.is_empty())
}

/// A node. One whose state is not known is not one that can be used.
fn node(value: &Value, unread: &mut Vec<Unread>) -> Option<Node> {
    let mut of = Doubtful { value, kind: "node", name: "name", unread };
    let name = of.word("name")?;
    let state = of.needed("state", |value| Some(words(value)).filter(|words| !words.is_empty()));
    let state = state.map(|mut words_of| {
        words_of.extend(words(value.get("state_flags")));
        NodeState::of_words(words_of.iter().map(String::as_str))
    });
    let gpus = |key: &str| {
        let list = value.get(key).and_then(Value::as_str);
        list.and_then(parts::gpus).unwrap_or(UNKNOWN)
    };
    Some(Node {
        name,
        state: state.unwrap_or_default(),
        reason: text(value.get("reason")).map(str::to_owned),
        cpus: of.needed("cpus", small).unwrap_or(UNKNOWN),
        cpus_in_use: of.needed("alloc_cpus", small).unwrap_or(UNKNOWN),
        memory_mib: small(value.get("real_memory")).unwrap_or(UNKNOWN),
        memory_in_use_mib: small(value.get("alloc_memory")).unwrap_or(UNKNOWN),
        gpus: gpus("gres"),
        gpus_in_use: if gpus("gres") == 0 { 0 } else { gpus("gres_used") },
        partitions: words(value.get("partitions")),
        address: text(value.get("address")).unwrap_or("").to_owned(),
    })
}

fn partition(value: &Value, unread: &mut Vec<Unread>) -> Option<Partition> {
    let at = |pointer: &str, plain: &str| value.pointer(pointer).or_else(|| value.get(plain));
    let state = words(at("/partition/state", "state"));
    let mut of = Doubtful { value, kind: "partition", name: "name", unread };
    Some(Partition {
        name: of.word("name")?,
        nodes: of.needed("nodes", |_| hosts(at("/nodes/configured", "nodes")))?,
        is_up: of.needed("state", |_| {
            (!state.is_empty()).then(|| state.iter().any(|word| word == "UP"))
        })?,
        most_minutes: small(at("/maximums/time", "max_time_limit")),
    })
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
fn exit(value: Option<&Value>) -> Option<Exit> {
    let small = |value: Option<&Value>| {
        amount(value).and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
    };
    match value {
        Some(Value::Object(parts)) if parts.contains_key("return_code") => {
            let signal = parts.get("signal");
            let id = signal.and_then(|signal| signal.get("id").or_else(|| signal.get("signal_id")));
            Some(Exit { code: small(parts.get("return_code")), signal: small(id) })
        }
        value => amount(value).and_then(|status| u32::try_from(status).ok()).map(Exit::of_status),
    }
}

#[cfg(test)]
mod tests;
