//! `schedule.swf`: the run as a log, for other tools of the trade.

use std::io::{self, Write};

use crate::metrics::{RunContext, wait};
use crate::sim::{Run, State};
use crate::workload::swf::{self, Record, Status};

/// Writes the run in the Standard Workload Format: the jobs as they were simulated (requested times
/// raised to the run time where that was asked for, sizes in whole nodes), with the waits and run
/// times of this run. Nodes are written as processors, which is what the format counts.
pub(crate) fn write_schedule(
    out: &mut dyn Write,
    subject: &RunContext<'_>,
    run: &Run,
) -> io::Result<()> {
    let RunContext { machine, workload, policy, .. } = *subject;
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
        row = match record.state {
            State::Completed => row.waited(wait(job, record)).ended(Status::Completed),
            State::Killed => row.waited(wait(job, record)).ended(Status::Failed),
            _ => Record { run_time: -1, allocated_processors: -1, ..row }.ended(Status::Cancelled),
        };
        writer.record(&row)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::BudgetSpec;
    use crate::machine::Machine;
    use crate::reproduce::papers;
    use crate::scenario::Scenario;
    use crate::workload::demo::demo;
    use crate::workload::swf::BadRecords;

    /// A job that is slowed runs for longer than it asked for, and that is what the log says: the request
    /// is what the user wrote, whatever became of the job.
    #[test]
    fn requests_are_what_users_asked_for() {
        let (machine, workload) = (Machine::of_processors(256).unwrap(), demo());
        let budget = "50%".parse::<BudgetSpec>().unwrap().resolve(&machine).unwrap();
        let policy = "pb-guided".parse().unwrap();
        let model = papers::model(&policy, &machine, workload.jobs(), 1).unwrap();
        let new = Scenario::new(&machine, &workload, policy, model.as_ref());
        let scenario = Scenario { budget, ..new };
        let run = scenario.simulate().run;
        let mut log = Vec::new();
        write_schedule(&mut log, &scenario.context("pb-guided"), &run).unwrap();
        let rows = swf::records(&log, "schedule.swf", BadRecords::Stop).map(Result::unwrap);
        let mut beyond = 0;
        for (row, job) in rows.zip(workload.jobs()) {
            assert_eq!(row.requested_time as u64, job.requested.millis().div_ceil(1000));
            beyond += u32::from(row.run_time > row.requested_time);
        }
        assert!(beyond > 0, "no job was slowed beyond its request");
    }
}
