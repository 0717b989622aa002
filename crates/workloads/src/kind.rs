//! What kind of file a file is, by what it holds.
//!
//! People name a file where they think of it, and call it what they like. Whoever is given one asks here what it is:
//! to read a log or records as what they are, and to say which command or option wants anything else. Only the
//! beginning of the file is read. Whether the rest is right is for the reader of that kind to say.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use crate::records::Format;
use crate::unpacked;

mod tables;
mod toml;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A log in the Standard Workload Format.
    Log,
    /// Records of a batch system, or a published data set of jobs.
    Records(Format),
    /// An experiment, which `busbar compare` runs.
    Experiment,
    /// A machine file.
    Machine,
    /// The configuration of the daemon.
    Daemon,
    /// The configuration of the node agent.
    Agent,
    /// TOML of none of these kinds.
    Toml,
    /// A program for `busbar solve`.
    Program,
    /// Something else that is known: what it is, and what is to be done with it.
    Other(&'static str, &'static str),
    /// Nothing that is known. It may be a log with a mistake in its first line.
    Unknown,
}

/// How much of a file is looked at.
const BEGINNING: u64 = 64 << 10;

/// How files begin that are not text, what they are, and what is to be done with them.
const MAGIC: &[(&[u8], &str, &str)] = &[
    (b"PAR1", "a Parquet file", "write it as CSV for 'busbar workload import'"),
    (b"SQLite format 3\0", "an SQLite database", "a profile database is named by --profiles"),
    (b"PK\x03\x04", "a ZIP archive", UNPACK),
    (b"\xfd7zXZ\0", "packed with xz", UNPACK),
    (b"BZh", "packed with bzip2", UNPACK),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", UNPACK),
    (b"<!DOCTYPE", "a web page", "download the file itself"),
    (b"<!doctype", "a web page", "download the file itself"),
    (b"<html", "a web page", "download the file itself"),
    (b"%PDF", "a PDF document", "a log or records are text"),
    (b"#!", "a script", "a log or records are text"),
];

const UNPACK: &str = "unpack it; gzip alone is unpacked by Busbar";

/// Where the word stands by which a tar archive is known.
const TAR: (usize, &[u8]) = (257, b"ustar");

impl FileKind {
    /// What a file holds. Nothing is known of what can be read only once, such as a pipe.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        if !fs::metadata(path)?.is_file() {
            return Ok(None);
        }
        let mut beginning = Vec::new();
        let unpacked = unpacked::open(path)?;
        let read = unpacked.input.take(BEGINNING).read_to_end(&mut beginning);
        match read {
            Ok(_) => Ok(Some(FileKind::of_beginning(&beginning))),
            // Whoever reads all of it says what is wrong with it.
            Err(_) if unpacked.is_packed => Ok(Some(FileKind::Unknown)),
            Err(error) => Err(error),
        }
    }

    /// What a file holds that begins with this.
    fn of_beginning(beginning: &[u8]) -> Self {
        let known = MAGIC.iter().find(|(magic, ..)| beginning.starts_with(magic));
        if let Some((_, what, advice)) = known {
            return FileKind::Other(what, advice);
        }
        if beginning.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1)) {
            return FileKind::Other("a tar archive", "unpack it, and name one of its files");
        }
        let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
        if text.trim_ascii_start().starts_with(b"{") {
            return json(text);
        }
        let mut lines = text.split(|byte| *byte == b'\n').map(|line| line.trim_ascii());
        // Blank lines and comments with # stand in front of anything.
        let Some(first) = lines.find(|line| !line.is_empty() && !line.starts_with(b"#")) else {
            return FileKind::Unknown;
        };
        if first.starts_with(b";") || is_numbers(first) {
            return FileKind::Log;
        }
        if let Some(format) = Format::of_first_line(first) {
            return FileKind::Records(format);
        }
        if is_cut_sacct(first, lines.next().unwrap_or_default()) {
            return FileKind::Other(
                "what sacct prints in columns of fixed width, which truncate values",
                "print it with 'sacct -P'",
            );
        }
        toml::kind(text).or_else(|| tables::kind(first)).unwrap_or(FileKind::Unknown)
    }

    /// Which command or option such a file is for, to be said after its name where it cannot be used.
    pub fn advice(self) -> String {
        let (what, advice) = match self {
            FileKind::Log => (
                "a log",
                "'busbar simulate', 'compare', 'plan', 'whatif' and 'workload info' read it",
            ),
            FileKind::Records(format) => {
                return format!(
                    "holds records ({}); 'busbar simulate', 'compare', 'plan', 'whatif' and 'workload import' read them",
                    format.title()
                );
            }
            FileKind::Experiment => ("an experiment", "'busbar compare' runs it"),
            FileKind::Machine => {
                ("a machine file", "name it with --machine, or show it with 'busbar machine show'")
            }
            FileKind::Daemon => {
                ("a configuration of the daemon", "'busbar config' and 'busbar serve' read it")
            }
            FileKind::Agent => ("a configuration of the node agent", "'busbar agent run' reads it"),
            FileKind::Toml => {
                ("TOML, but neither an experiment nor a machine file", "see docs/reference")
            }
            FileKind::Program => ("a program of jobs that share watts", "'busbar solve' solves it"),
            FileKind::Other(what, advice) => (what, advice),
            FileKind::Unknown => {
                ("not of a known kind", "a log, records or a .toml file is needed")
            }
        };
        format!("is {what}; {advice}")
    }
}

/// JSON is what `sacct` prints, a program for the solver, or an answer of Busbar.
fn json(text: &[u8]) -> FileKind {
    let has = |key: &[u8]| memchr::memmem::find(text, key).is_some();
    if has(b"\"configurations\"") {
        FileKind::Program
    } else if has(b"\"format\"") && !has_list_of_jobs(text) {
        FileKind::Other(
            "an answer of Busbar in JSON",
            "name the log or the experiment it was made from",
        )
    } else {
        FileKind::Records(Format::Sacct)
    }
}

/// Whether there is a list `jobs`, as in what `sacct` prints.
fn has_list_of_jobs(text: &[u8]) -> bool {
    const KEY: &[u8] = b"\"jobs\"";
    memchr::memmem::find_iter(text, KEY).any(|at| {
        let value = text[at + KEY.len()..].trim_ascii_start().strip_prefix(b":");
        value.is_some_and(|value| value.trim_ascii_start().starts_with(b"["))
    })
}

/// Whether a line is numbers alone, as the records of a log are.
fn is_numbers(line: &[u8]) -> bool {
    let is_number = |field: &&[u8]| {
        let digits = field.strip_prefix(b"-").unwrap_or(field);
        digits.first().is_some_and(u8::is_ascii_digit)
            && digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
    };
    let fields: Vec<&[u8]> = words(line).collect();
    fields.len() > 1 && fields.iter().all(is_number)
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// Whether this is the heading of `sacct` without `--parsable2`, with the line of hyphens below it.
fn is_cut_sacct(heading: &[u8], below: &[u8]) -> bool {
    words(heading).any(|word| word.starts_with(b"JobID"))
        && !below.is_empty()
        && below.iter().all(|byte| b"- ".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> FileKind {
        FileKind::of_beginning(text.as_bytes())
    }

    #[test]
    fn workloads_are_known_by_what_they_hold() {
        assert_eq!(kind("; MaxProcs: 128\n1 0 -1"), FileKind::Log);
        assert_eq!(kind("# a comment\n\n  1 0 -1 90.5 8 -1\n"), FileKind::Log);
        let sacct = FileKind::Records(Format::Sacct);
        assert_eq!(kind("JobID|State|Submit|Start|End\n"), sacct);
        assert_eq!(kind("\u{feff}JobIDRaw,State\r\n1,COMPLETED\r\n"), sacct);
        assert_eq!(kind("{\n \"meta\": {}, \"jobs\": []}"), sacct);
        assert_eq!(kind("{\"jobs\": [{\"account\": \"x\""), sacct);
        let pbs = "01/31/2024 23:59:59;E;123.server;user=a group=b\n";
        assert_eq!(kind(pbs), FileKind::Records(Format::Pbs));
        let data = "job_id,user_id,submit_time,start_time,end_time,num_nodes_alloc,job_state,node_power_consumption\n";
        assert_eq!(kind(data), FileKind::Records(Format::Pm100));
    }

    #[test]
    fn other_files_say_who_wants_them() {
        let cases = [
            ("JobID    State\n-------- ------\n1 COMPLETED\n", "print it with 'sacct -P'"),
            ("PAR1\u{15}", "a Parquet file"),
            ("<!DOCTYPE html>", "a web page"),
            ("#!/bin/bash\n", "a script"),
            ("{\"nodes\": 1, \"jobs\": [{\"configurations\": []}]}", "'busbar solve'"),
            ("{\"format\": 1, \"jobs\": 2000}", "an answer of Busbar"),
            ("time,budget\n0,10kW\n", "--budget"),
        ];
        for (text, expected) in cases {
            let advice = kind(text).advice();
            assert!(advice.contains(expected), "{text:?}: {advice}");
        }
        for text in ["", "\n\n# nothing\n", "words in a line\n", "1\n", "a;b\n"] {
            assert_eq!(kind(text), FileKind::Unknown, "{text:?}");
        }
    }
}
