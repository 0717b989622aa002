//! Where the workloads of Busbar come from.
//!
//! A [`Workload`](busbar_core::workload::Workload) is read from a log ([`swf`]) or a folder of [`tasks`], drawn from a
//! model ([`lublin`], [`rmap`], [`essc`]) or built in ([`demo`]); [`Source`] is how the command line names one, and
//! [`FileKind`] says what a file is by what it holds. A log is made of the [`records`] of a site's batch system. It may come with the [`power`] that jobs drew, and users may have
//! agreed on [`terms`] for single jobs.
//!
//! The built-in workload under EASY backfilling:
//!
//! ```
//! use busbar_core::machine::Machine;
//! use busbar_core::model::Rigid;
//! use busbar_core::policy::PolicySpec;
//! use busbar_core::scenario::Scenario;
//! use busbar_workloads::{Source, SourceDefaults};
//!
//! let workload = "demo".parse::<Source>()?.load(&SourceDefaults::default())?.workload;
//! let machine = Machine::of_processors(256)?;
//! let easy = Scenario::new(&machine, &workload, PolicySpec::easy(), &Rigid::on(&machine)).run();
//! assert_eq!(easy.summary.completed, 2000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here knows machines or policies: who reads a log does not ask what it is for.

// What tests expect is near enough with any mathematical library.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod demo;
pub mod essc;
pub mod estimates;
mod kind;
pub mod lublin;
mod places;
pub mod power;
pub mod records;
pub mod rmap;
mod source;
pub mod swf;
pub mod tasks;
pub mod terms;
mod unpacked;

pub use kind::FileKind;
pub use places::{PlacesError, parse_places};
pub use source::{Loaded, RecordsCall, Source, SourceDefaults, SourceError};
