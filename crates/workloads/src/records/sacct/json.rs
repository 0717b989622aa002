//! What `sacct --json` prints: an object with a list `jobs`, in which each job has its steps.
//!
//! A job is turned into the columns of the parsable form, so that both forms follow the same rules. The file is read as
//! a stream: what is held is one job, however long the list is. Versions of Slurm write numbers and states in several
//! ways, and leave out what others have; all of it is read, and nothing but broken JSON stops the reading.
//!
//! - `bounds` says how much of it may have to be held;
//! - `feed` hands the input to the parser, byte by byte, and counts lines;
//! - `shape` says which members are used, and of what;
//! - `value` reads a text, a number or a state, however it is written;
//! - `walk` goes through objects and lists along the shape, and fills a `Job`.

mod bounds;
mod feed;
mod job;
mod shape;
#[cfg(test)]
mod tests;
mod value;
mod walk;

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use serde_json::error::Category;

use super::super::collector::Collector;
use super::super::error::Defect;
use bounds::OutOfBounds;
use feed::Feed;
use walk::Dump;

/// How jobs can be dumped as JSON.
const COMMAND: &str = "dump with 'sacct -a -D --json'";

/// Why the reading stopped.
#[derive(Debug)]
pub(in super::super) enum Stop {
    /// The input could not be read.
    Input(io::Error),
    /// From here on it is no JSON.
    Syntax { line: usize, column: usize, why: String },
    /// It is JSON, but not what `sacct` prints.
    Foreign { line: usize, why: String },
    /// A record cannot be used, and that was not to happen.
    Defect { line: usize, defect: Defect },
}

/// Reads all jobs of an input, which may be several dumps one after another. If the input ends too early, what was cut
/// off counts as one record that cannot be used.
pub(in super::super) fn read(
    input: impl io::Read,
    into: &mut Collector,
    is_strict: bool,
) -> Result<(), Stop> {
    let line = Rc::new(Cell::new(1));
    let mut json = serde_json::Deserializer::from_reader(Feed::new(input, Rc::clone(&line)));
    let mut dump = Dump::new(into, is_strict, line);
    loop {
        let read = dump.deserialize(&mut json);
        if let Some((line, defect)) = dump.stopped.take() {
            return Err(Stop::Defect { line, defect });
        }
        match read {
            Err(error) if error.classify() == Category::Eof => {
                let defect = Defect::CutOff { column: error.column() };
                dump.into.intake.records += 1;
                if is_strict {
                    return Err(Stop::Defect { line: error.line(), defect });
                }
                dump.into.intake.skip(&defect);
                return Ok(());
            }
            Err(error) => return Err(stop(error, dump.line.get())),
            Ok(()) if !dump.has_jobs => {
                let why = format!("there is no list 'jobs'; {COMMAND}");
                return Err(Stop::Foreign { line: dump.line.get(), why });
            }
            Ok(()) if json.end().is_ok() => return Ok(()),
            // Another dump follows.
            Ok(()) => dump.has_jobs = false,
        }
    }
}

/// Why the reading stopped, where this line was being read.
fn stop(error: serde_json::Error, here: usize) -> Stop {
    let (line, column) = (error.line(), error.column());
    if error.classify() == Category::Io {
        let error = io::Error::from(error);
        let bounds = error.get_ref().and_then(|error| error.downcast_ref::<OutOfBounds>());
        return match bounds {
            Some(out) => {
                let why = format!("{out}, so this is not what sacct prints; {COMMAND}");
                Stop::Foreign { line: here, why }
            }
            None => Stop::Input(error),
        };
    }
    let text = error.to_string();
    // The place stands in front of the message, as in all others.
    let place = format!(" at line {line} column {column}");
    Stop::Syntax { line, column, why: text.strip_suffix(&place).unwrap_or(&text).to_owned() }
}
