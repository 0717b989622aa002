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
pub mod pictures;
mod plot;
mod power;
mod ranking;
mod schedule;
mod summary;
mod tables;
mod tasks;
mod units;
mod versioned;

pub use caps::write_caps;
pub use cases::Absent;
pub use changes::write_changes;
pub use columns::{Side, columns};
pub use facts::Facts;
pub use feeds::{write_feeds, write_nodes};
pub use files::{Format, ReportError, make_folder, write_folder, write_pictures, write_whole};
pub use job_waits::{JobFacts, WaitColumn, write_job_waits};
pub use jobs::write_jobs;
pub use over_seeds::OverSeeds;
pub use palette::Palette;
#[cfg(feature = "parquet")]
pub use parquet::write_parquet;
pub use pictures::{Course, HeatMap, Picture, course, heat_map};
pub use plot::{Point, Spread, boxes, plot};
pub use power::write_power;
pub(crate) use ranking::undone;
pub use ranking::{RankedBy, ranking};
pub use schedule::write_schedule;
pub use summary::{none_ran, summary_facts};
pub use tables::{
    Cells, Table, caps_table, changes_table, feeds_table, jobs_table, nodes_table, power_table,
    workload_table,
};
pub use tasks::write_tasks;
pub use units::{human_energy, human_mass, human_power, human_time, prefix, time_unit};
pub use versioned::{FORMAT, Versioned};
