//! The results of runs, as tables, files and pages.
//!
//! `digest` is what is kept of a run for pictures; it can be stored as JSON and stands alone. `html` makes the page, whose scripts stand beside it,
//! one idea each; `pictures` draws the same in SVG. `ranking`, `palette` and `cases` say in which order, in which colours and which runs are shown
//! together. `tables` is tables by columns, `parquet` writes them. Nothing is worked out here that [`metrics`](crate::metrics) could.

mod caps;
mod cases;
mod changes;
mod columns;
pub mod digest;
mod facts;
mod feeds;
mod files;
pub mod html;
mod job_waits;
mod jobs;
mod markup;
mod over_seeds;
mod palette;
#[cfg(feature = "parquet")]
mod parquet;
pub(crate) mod pictures;
mod plot;
mod power;
mod ranking;
mod schedule;
mod summary;
mod tables;
mod tasks;
mod units;
mod versioned;

pub(crate) use caps::write_caps;
pub(crate) use cases::Absent;
pub(crate) use changes::write_changes;
pub(crate) use columns::{Side, columns};
pub use facts::Facts;
pub(crate) use feeds::{write_feeds, write_nodes};
pub(crate) use files::{Format, make_folder, write_folder, write_pictures};
pub use files::{ReportError, write_whole};
pub(crate) use job_waits::{JobFacts, WaitColumn, write_job_waits};
pub use jobs::write_jobs;
pub(crate) use over_seeds::OverSeeds;
pub(crate) use palette::Palette;
#[cfg(feature = "parquet")]
pub(crate) use parquet::write_parquet;
pub(crate) use pictures::{Course, HeatMap, Picture, course, heat_map};
pub(crate) use plot::{Point, Spread, boxes, plot};
pub(crate) use power::write_power;
pub(crate) use ranking::RankedBy;
pub(crate) use ranking::undone;
pub(crate) use schedule::write_schedule;
pub(crate) use summary::none_ran;
pub use summary::summary_facts;
pub use tables::{Cells, Table};
pub(crate) use tables::{caps_table, changes_table, jobs_table, power_table, workload_table};
#[cfg(feature = "parquet")]
pub(crate) use tables::{feeds_table, nodes_table};
pub(crate) use tasks::write_tasks;
pub(crate) use units::{human_energy, human_mass, human_power, human_time, prefix, time_unit};
pub(crate) use versioned::{FORMAT, Versioned};
