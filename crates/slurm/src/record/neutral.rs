//! Neutral words in place of what is private in an answer.
//!
//! The same word always becomes the same neutral one, so that it still shows which jobs are one user's. What Busbar does
//! not read is replaced wherever it could be anything, so that keys of versions that nobody has seen yet give nothing away.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::calls::Reading;
use crate::setup::WAIT;
use crate::text::{self, FIELDS, PART_FIELDS};
use crate::words::Words;

/// Words that say nothing about anybody.
const NOTHING: [&str; 11] =
    ["", "(null)", "N/A", "n/a", "none", "None", "NONE", "ALL", "root", "YES", "NO"];

/// Words by which Slurm's answers in JSON are understood, or that name what is not private.
const PLAIN_KEYS: [&str; 26] = [
    "job_state",
    "state",
    "next_state_after_reboot",
    "state_flags",
    "state_reason",
    "state_description",
    "partition",
    "partitions",
    "nodes",
    "node_list",
    "required_nodes",
    "excluded_nodes",
    "configured",
    "dependency",
    "array_task_string",
    "licenses",
    "licenses_allocated",
    "resv_name",
    "reservation",
    "admin_comment",
    "LicenseName",
    "Nodes",
    "release",
    "flags",
    "features",
    "number",
];

/// What was replaced by what.
#[derive(Default)]
pub(super) struct Neutral {
    words: BTreeMap<(&'static str, String), String>,
}

impl Neutral {
    /// What a call printed, with neutral words.
    pub(super) fn answer(&mut self, reading: Reading, printed: &str) -> String {
        match reading {
            Reading::Version | Reading::Licences => printed.to_owned(),
            Reading::Configuration => self.lines(printed, Neutral::setting),
            Reading::Jobs | Reading::Elements => self.jobs(printed, &FIELDS),
            Reading::JobsWithParts => self.jobs(printed, &[&PART_FIELDS[..], &FIELDS].concat()),
            Reading::PartsOfJobs => self.lines(printed, Neutral::held),
            Reading::Nodes => self.lines(printed, Neutral::node),
            Reading::Partitions | Reading::Reservations => self.lines(printed, Neutral::pairs),
            Reading::JobsInJson
            | Reading::NodesInJson
            | Reading::PartitionsInJson
            | Reading::LicencesInJson
            | Reading::ReservationsInJson => self.json(printed),
        }
    }

    /// What a call wrote to its standard error: of a known kind of error the kind, and of others that there was one.
    pub(super) fn error(&mut self, said: &str) -> String {
        let known = [
            "Invalid job format",
            "Invalid job id",
            "nable to contact",
            "unrecognized option",
            "nvalid option",
        ];
        match known.iter().find(|known| said.contains(**known)) {
            Some(known) => (*known).to_owned(),
            None => self.word("error", said),
        }
    }

    fn lines(&mut self, printed: &str, line: impl Fn(&mut Self, &str) -> String) -> String {
        printed.lines().map(|text| line(self, text) + "\n").collect()
    }

    /// The neutral word for a word of a kind.
    fn word(&mut self, kind: &'static str, text: &str) -> String {
        if NOTHING.contains(&text.trim()) {
            return text.to_owned();
        }
        let next = self.words.keys().filter(|(other, _)| *other == kind).count() + 1;
        let word = self.words.entry((kind, text.to_owned())).or_insert(format!("{kind}{next}"));
        word.clone()
    }

    fn list(&mut self, kind: &'static str, text: &str) -> String {
        text.split(',').map(|word| self.word(kind, word)).collect::<Vec<_>>().join(",")
    }

    /// A comment: of what it says to Busbar everything, of the rest nothing.
    fn comment(&mut self, text: &str) -> String {
        let part = |part: &str| match Words::read(part) {
            Ok(Some(words)) => words.to_string(),
            _ if part.trim() == WAIT => WAIT.to_owned(),
            _ => self.word("comment", part),
        };
        text.split(';').map(part).collect::<Vec<_>>().join(";")
    }

    /// A path: its last part.
    fn path(&mut self, text: &str) -> String {
        format!("/folder/{}", text.rsplit('/').next().unwrap_or_default())
    }

    fn jobs(&mut self, printed: &str, known: &[&str]) -> String {
        let format = super::format();
        let (separator, end) = format.marks();
        let record = |record: &str| {
            let fields: Vec<&str> = record.split(separator).collect();
            let is_whole = fields.len() == known.len();
            let field = |(place, text): (usize, &str)| match known.get(place).filter(|_| is_whole) {
                Some(&"UserName") => self.word("user", text),
                Some(&"Account") => self.word("account", text),
                Some(&"Name") => self.word("job", text),
                Some(&"Comment") => self.comment(text),
                Some(_) => text.to_owned(),
                // Which field it is, is not known.
                None if is_plain(text) => text.to_owned(),
                None => self.word("text", text),
            };
            fields.into_iter().enumerate().map(field).collect::<Vec<_>>().join(separator)
        };
        printed.split(end).map(record).collect::<Vec<_>>().join(end)
    }

    /// A line about a job, of which only stays what it has of its nodes.
    fn held(&mut self, line: &str) -> String {
        let number = line.strip_prefix("JobId=").and_then(|rest| rest.split(' ').next());
        let Some(number) = number.filter(|number| number.chars().all(|c| c.is_ascii_digit()))
        else {
            return self.word("text", line);
        };
        let end = line.find(" MinCPUsNode=").unwrap_or(line.len());
        let begin = line[..end].rfind(" JOB_GRES=").unwrap_or(end);
        let is_ended = end < line.len();
        format!(
            "JobId={number}{}{}",
            &line[begin..end],
            if is_ended { " MinCPUsNode=1" } else { "" }
        )
    }

    /// A line of a configuration.
    fn setting(&mut self, line: &str) -> String {
        let Some((key, value)) = line.split_once('=') else {
            return match line.contains(" at ") {
                true => "one of the controllers is UP or DOWN".to_owned(),
                false => line.to_owned(),
            };
        };
        let name = key.trim();
        let text = value.trim();
        let is_host = ["Host", "Addr", "ClusterName"].iter().any(|part| name.contains(part));
        let value = match text.split_once('(') {
            _ if is_host => self.word("host", text),
            Some((user, number)) if name.ends_with("User") => {
                format!("{}({number}", self.word("user", user))
            }
            _ if name.contains("Pass") || name.contains("Mail") => self.word("text", text),
            _ if text.starts_with('/') => self.path(text),
            _ if text.contains("=/") => self.word("text", text),
            _ => text.to_owned(),
        };
        format!("{key}= {value}")
    }

    /// A line about a node. What an administrator wrote stands near the end, and everything behind it goes.
    fn node(&mut self, line: &str) -> String {
        let free = [" Reason=", " Comment=", " Extra="];
        let begin = free.iter().filter_map(|key| line.find(key)).min().unwrap_or(line.len());
        let (pairs, rest) = line.split_at(begin);
        let mut text = self.pairs(pairs);
        if let Some((_, reason)) = rest.split_once(" Reason=") {
            text += &format!(" Reason={}", self.reason(reason));
        }
        text
    }

    /// Why a node is out of service, and when that was said.
    fn reason(&mut self, text: &str) -> String {
        let (why, who) = text.rsplit_once(" [").unwrap_or((text, ""));
        let why =
            if why.starts_with("busbar:") { why.to_owned() } else { self.word("reason", why) };
        let when = who.split_once('@').map(|(_, when)| {
            let digits: String = when.chars().take_while(char::is_ascii_digit).collect();
            format!(" [root@{digits}]")
        });
        why + &when.unwrap_or_default()
    }

    fn pairs(&mut self, line: &str) -> String {
        let mut kept = Vec::new();
        // A value with blanks is made of several words, of which the first tells whose they are.
        let mut is_dropped = false;
        for word in line.split(' ') {
            let Some((key, value)) = word.split_once('=').filter(|(key, _)| text::is_key(key))
            else {
                kept.extend((!is_dropped).then(|| word.to_owned()));
                continue;
            };
            is_dropped = false;
            let value = match key {
                "Users" | "Owner" => self.list("user", value),
                "Accounts" | "AllowAccounts" | "DenyAccounts" => self.list("account", value),
                "Groups" | "AllowGroups" => self.list("group", value),
                "NodeAddr" | "NodeHostName" | "BcastAddr" | "AllocNodes" => {
                    self.list("host", value)
                }
                "OS" | "Comment" | "Extra" | "InstanceId" | "InstanceType" | "MCS_label" => {
                    is_dropped = true;
                    self.word("text", value)
                }
                _ => value.to_owned(),
            };
            kept.push(format!("{key}={value}"));
        }
        kept.join(" ")
    }

    fn json(&mut self, printed: &str) -> String {
        match serde_json::from_str::<Value>(printed) {
            Ok(mut value) => {
                self.value("", "", &mut value);
                in_lines(&value)
            }
            // What is no JSON may be anything, and of that nothing is kept but what kind it is.
            Err(error) => format!("no JSON: {error}\n"),
        }
    }

    /// A value under a key of something in a list.
    fn value(&mut self, list: &str, key: &str, value: &mut Value) {
        match value {
            Value::Object(pairs) => {
                for (inner, value) in pairs {
                    let is_list = value.is_array() && list.is_empty();
                    let list = if is_list { inner.as_str() } else { list };
                    // A number in an object is known by what the object is.
                    self.value(list, if is_list { "" } else { inner }, value);
                }
            }
            Value::Array(values) => {
                for value in values {
                    self.value(list, key, value);
                }
            }
            Value::String(text) => *text = self.text(list, key, text),
            Value::Null | Value::Bool(_) | Value::Number(_) => (),
        }
    }

    fn text(&mut self, list: &str, key: &str, text: &str) -> String {
        match (list, key) {
            ("jobs", "name") => self.word("job", text),
            (_, "name") => text.to_owned(),
            (_, "user_name") => self.word("user", text),
            (_, "users") => self.list("user", text),
            (_, "account") => self.word("account", text),
            (_, "address" | "hostname") => self.word("host", text),
            ("jobs", "comment") => self.comment(text),
            ("nodes", "reason") => self.reason(text),
            _ if key.starts_with("tres") || PLAIN_KEYS.contains(&key) || is_plain(text) => {
                text.to_owned()
            }
            _ => self.word("text", text),
        }
    }
}

/// An answer with a line for each thing that it lists.
fn in_lines(answer: &Value) -> String {
    let Some(pairs) = answer.as_object() else { return format!("{answer}\n") };
    let pair = |(key, value): (&String, &Value)| match value.as_array() {
        Some(list) if !list.is_empty() => {
            let list: Vec<String> = list.iter().map(Value::to_string).collect();
            format!("\"{key}\":[\n{}\n]", list.join(",\n"))
        }
        _ => format!("\"{key}\":{value}"),
    };
    format!("{{{}}}\n", pairs.iter().map(pair).collect::<Vec<_>>().join(",\n"))
}

/// Whether a text is a number, a time or one of Slurm's words in capitals.
fn is_plain(text: &str) -> bool {
    let fits =
        |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "_-:.,+/[]()% ".contains(c);
    text.chars().all(fits)
}
