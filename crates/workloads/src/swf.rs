//! The Standard Workload Format of the Parallel Workloads Archive: reading and writing logs.
//!
//! A log is text: header comments (`; MaxProcs: 128`), then one line of [18 numbers](Record) a
//! job, with −1 for what is not known. [`read_path`] turns a file into a
//! [`Workload`](busbar_core::workload::Workload) and says in an [`Intake`] what it had to repair or
//! leave out; [`clean_path`] keeps every field of what is usable, for conversions; [`records`] hands out
//! every field of every line; [`Writer`] writes a log.
//!
//! # What is taken
//!
//! - Fields are separated by any number of blanks or tabs; a line may start with them and end in
//!   LF or CRLF; the last line may lack its end; a UTF-8 byte order mark is ignored.
//! - Blank lines and comments stand anywhere. The standard's comments begin with `;`; `#`, which
//!   other tools write, is taken too. A comment after a record on the same line is not.
//! - The standard allows fractions in time fields, and archive logs have them in the average CPU
//!   time. A decimal fraction is taken in any field and cut off, toward zero: `7.98` is 7. So
//!   times are whole seconds. Exponents, signs other than a leading `-`, `NaN` and the like are
//!   not numbers here.
//! - A line has exactly 18 fields. The standard is closed to extensions, so a line with more of
//!   them is more likely two lines run together, or another format, than a record; it is
//!   malformed, as is one with fewer.
//! - Times and processor counts that a job is built from, and the numbers of users and
//!   applications, must fit in 32 bits; every other field in 64.
//!
//! # What a job is made of
//!
//! | of the job | from the record | else |
//! |---|---|---|
//! | number | job number (1), if not negative | the record's place in the log, from 1 |
//! | submit time | submit time (2) | skipped |
//! | run time | run time (4), 0 included | skipped |
//! | size | requested processors (8), if above 0 | allocated processors (5), if above 0; else skipped |
//! | requested time | requested time (9), if above 0 | the run time |
//! | user, group, application | user (12), group (13), application (14), if above 0 | none |
//!
//! Jobs larger than the machine are kept: whether they fit is for the machine to say. Records out
//! of submit order are counted and put in order.
//!
//! ```
//! use busbar_workloads::swf::{self, BadRecords};
//!
//! let log = b"; MaxProcs: 64\n\
//!     1  0 -1  90  8 -1 -1 -1 600 -1 1 3 -1 -1 -1 -1 -1 -1\n\
//!     2 30 -1 600 16 -1 -1 16  -1 -1 1 3 -1 -1 -1 -1 -1 -1\n";
//! let log = swf::read(log, "tiny.swf", BadRecords::Stop)?;
//! assert_eq!(log.workload.jobs().len(), 2);
//! assert_eq!(log.workload.processors(), Some(64));
//! assert_eq!((log.intake.size_from_allocated, log.intake.estimate_from_run_time), (1, 1));
//! # Ok::<(), swf::SwfError>(())
//! ```

mod clean;
mod error;
mod file;
mod header;
mod intake;
mod line;
mod reader;
mod record;
#[cfg(test)]
mod tests;
mod writer;

pub use clean::CleanLog;
pub use error::{Problem, SwfError};
pub use file::{add_power, clean_path, read_path};
pub use header::{Header, POWER_KEY};
pub use intake::Intake;
pub(crate) use intake::left_out;
pub use reader::{BadRecords, Log, Records, read, records};
pub use record::{Record, Status};
pub use writer::{Writer, describe, write};
