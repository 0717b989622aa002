//! What came of a run, for people and for other programs: files and tables.

mod caps;
mod changes;
mod columns;
mod files;
mod jobs;
mod plot;
mod power;
mod schedule;
mod table;
mod tasks;

pub use caps::write_caps;
pub use changes::write_changes;
pub use columns::{Side, columns};
pub use files::{ReportError, make_folder, write_folder, write_whole};
pub use jobs::write_jobs;
pub use plot::{Point, Spread, boxes, plot};
pub use power::write_power;
pub use schedule::write_schedule;
pub use table::{human_energy, human_power, human_time, summary_table};
pub use tasks::write_tasks;
