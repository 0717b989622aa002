//! `jobs.csv`: every job by what people call it, with its waits before and after.

use std::io::{self, Write};

use super::super::past::Past;
use super::{Row, Way};
use crate::report::{JobFacts, WaitColumn, write_job_waits};
use crate::units::JobId;
use crate::workload::Workload;

pub(in crate::cli::whatif) fn write(
    out: &mut dyn Write,
    jobs: &Workload,
    past: &Past,
    rows: &[Row],
) -> io::Result<()> {
    let of = |way: Way, name: &str| WaitColumn {
        name: name.to_owned(),
        digest: rows.iter().find(|row| row.way == way).map(|row| &row.digest),
    };
    let columns = [
        of(Way::Recorded, "wait_as_recorded"),
        of(Way::Free, "wait_no_budget"),
        of(Way::Site, "wait_budget"),
    ];
    let others: Vec<WaitColumn<'_>> = rows
        .iter()
        .filter(|row| row.way == Way::Other)
        .map(|row| WaitColumn {
            name: format!("wait_{}", row.summary.policy),
            digest: Some(&row.digest),
        })
        .collect();
    let facts = (0..).map(JobId).zip(jobs.jobs()).map(|(id, job)| JobFacts {
        job: past.job(job.number),
        user: job.user.map(|user| past.user(user.0.get())).unwrap_or_default(),
        account: job.group.map(|group| past.account(group.0.get())).unwrap_or_default(),
        partition: jobs.partition(id).map(|number| jobs.partition_name(number)).unwrap_or_default(),
        submitted: jobs.calendar().map(|calendar| calendar.zoned(job.submit)).unwrap_or_default(),
        submit: job.submit.millis(),
        nodes: job.nodes,
        run: jobs.run_time(id).millis(),
    });
    write_job_waits(out, facts, &columns, &others)
}
