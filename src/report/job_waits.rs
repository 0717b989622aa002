//! `jobs.csv` of several runs of the same jobs: one row a job, with its waits in each of them.

use std::io::{self, Write};

use crate::report::digest::{Digest, RAN, STATES};
use crate::rows::quote;

/// What is known of a job whatever the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobFacts {
    /// What people call it.
    pub(crate) job: String,
    /// Who submitted it, if that is known.
    pub(crate) user: String,
    /// What it was charged to, if that is known.
    pub(crate) account: String,
    /// Where it ran, if that is known.
    pub(crate) partition: String,
    /// The date at which it was submitted, if that is known.
    pub(crate) submitted: String,
    /// When it was submitted, in milliseconds since the start of the log.
    pub(crate) submit: u64,
    /// The nodes it asks for.
    pub(crate) nodes: u32,
    /// How long it really ran, in milliseconds.
    pub(crate) run: u64,
}

/// A run with the name of its column.
pub(crate) struct WaitColumn<'a> {
    /// What the column is called, before the unit.
    pub(crate) name: String,
    /// The run, if it was made.
    pub(crate) digest: Option<&'a Digest>,
}

/// Writes one row a job, in submit order: what happened, what would have without a budget and with it, how much longer that
/// is, and what would have under other policies. Times are in seconds; a job that did not run has none.
pub(crate) fn write_job_waits(
    out: &mut dyn Write,
    jobs: impl Iterator<Item = JobFacts>,
    [recorded, before, after]: &[WaitColumn<'_>; 3],
    others: &[WaitColumn<'_>],
) -> io::Result<()> {
    write!(out, "job,user,account,partition,submitted,submit_s,nodes,run_s")?;
    for column in [recorded, before, after] {
        write!(out, ",{}_s", quote(&column.name))?;
    }
    write!(out, ",difference_s,state")?;
    for column in others {
        write!(out, ",{}", quote(&format!("{}_s", column.name)))?;
    }
    writeln!(out)?;
    for (place, facts) in jobs.enumerate() {
        let JobFacts { job, user, account, partition, submitted, .. } = &facts;
        let [job, user, account, partition] =
            [job, user, account, partition].map(|text| quote(text));
        write!(
            out,
            "{job},{user},{account},{partition},{submitted},{},{},{}",
            seconds(facts.submit.into()),
            facts.nodes,
            seconds(facts.run.into())
        )?;
        let wait = |column: &WaitColumn<'_>| {
            let jobs = &column.digest?.jobs;
            let has_run = RAN.contains(jobs.state.values().get(place)?);
            has_run.then(|| i128::from(jobs.wait.values()[place]))
        };
        let written = |wait: Option<i128>| wait.map(seconds).unwrap_or_default();
        for column in [recorded, before, after] {
            write!(out, ",{}", written(wait(column)))?;
        }
        let difference = wait(before).zip(wait(after)).map(|(before, after)| after - before);
        let state = after.digest.and_then(|digest| digest.jobs.state.values().get(place));
        let state = state.and_then(|state| STATES.get(*state as usize)).copied();
        write!(out, ",{},{}", written(difference), state.unwrap_or_default())?;
        for column in others {
            write!(out, ",{}", written(wait(column)))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Milliseconds as seconds, exactly.
fn seconds(millis: i128) -> String {
    let (sign, size) = (if millis < 0 { "-" } else { "" }, millis.unsigned_abs());
    match size % 1000 {
        0 => format!("{sign}{}", size / 1000),
        rest => format!("{sign}{}.{rest:03}", size / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        assert_eq!([0, 1500, -90_000, -1].map(seconds), ["0", "1.500", "-90", "-0.001"]);
    }
}
