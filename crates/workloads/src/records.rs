//! Records of a site's own batch system: from its accounting to a workload.
//!
//! [`Importer`] reads records of one of the [`Format`]s, line by line and as bytes, so that a year of them needs
//! neither much time nor much memory. What comes out is an [`Import`]: the runs that happened, in submit order,
//! from which a [log](super::swf) is written, with the [power](super::power) of jobs where the records have it.
//!
//! - `line` hands out lines, `time` and `quantity` read what stands in them, `name` and `node_list` number names;
//! - `sacct`, `pbs`, `lsf` and `dataset` know one layout each and turn a line into an `Entry`; `sacct::json` does so
//!   with a job of a dump in JSON;
//! - `collector` makes runs of entries, by rules that are the same for all layouts; `twice` tells times apart that clocks
//!   show twice, `label` is what a batch system calls a job;
//! - `intake` says what became of each record, and what was repaired or assumed;
//! - `import` is the result: numbered runs, and how they are written; `nodes` is what they tell of the machine.

mod collector;
mod dataset;
mod entry;
mod error;
mod format;
mod id;
mod import;
mod importer;
mod intake;
mod label;
mod layouts;
mod line;
mod lsf;
mod name;
mod node_list;
mod nodes;
mod options;
mod pbs;
mod quantity;
mod reader;
mod run;
mod sacct;
mod submit_line;
#[cfg(test)]
mod tests;
mod ties;
mod time;
mod twice;

pub use error::{Defect, ImportError};
pub use format::Format;
pub use import::Import;
pub use importer::Importer;
pub use intake::RecordIntake;
pub use name::{Kind, NameTable};
pub use nodes::{NodeDoubt, NodesSeen};
pub use options::Options;
pub use run::{Ending, Run};
#[doc(hidden)]
pub use submit_line::SubmitLine;
