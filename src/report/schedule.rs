//! `schedule.swf`: the run as a log, for other tools of the trade.

use std::io::{self, Write};

use crate::metrics::{Subject, wait};
use crate::sim::{Run, State};
use crate::workload::swf::{self, Record, Status};

/// Writes the run in the Standard Workload Format: the jobs as they were simulated (requested times
/// raised to the run time where that was asked for, sizes in whole nodes), with the waits and run
/// times of this run. Nodes are written as processors, which is what the format counts.
pub fn write_schedule(out: &mut dyn Write, subject: &Subject<'_>, run: &Run) -> io::Result<()> {
    let Subject { machine, workload, policy, .. } = *subject;
    let processors = |nodes: u32| i64::from(nodes) * i64::from(machine.processors_per_node);
    let mut writer = swf::Writer::new(out);
    for comment in swf::describe(workload) {
        if !comment.starts_with("MaxProcs:") {
            writer.comment(&comment)?;
        }
    }
    writer.comment(&format!("MaxProcs: {}", processors(machine.nodes)))?;
    writer.comment(&format!("Note: simulated with policy {policy}"))?;
    for (job, record) in workload.jobs().iter().zip(&run.records) {
        let mut row = Record::new(job, record.end.since(record.start));
        row.requested_processors = processors(job.nodes);
        row.allocated_processors = processors(record.nodes);
        if record.state == State::Completed {
            // A job that was slowed had more time than it asked for.
            row.requested_time = row.requested_time.max(row.run_time);
        }
        row = match record.state {
            State::Completed => row.waited(wait(job, record)).ended(Status::Completed),
            State::Killed => row.waited(wait(job, record)).ended(Status::Failed),
            _ => Record { run_time: -1, allocated_processors: -1, ..row }.ended(Status::Cancelled),
        };
        writer.record(&row)?;
    }
    Ok(())
}
