//! `caps.csv`: the caps of single processors.

use std::io::{self, Write};

use crate::digits::Line;
use crate::metrics::RunContext;
use crate::sim::Run;

/// Writes a row for each processor of a job that starts or gets other caps: when, whose, which, and
/// the most it may draw from then on.
pub(crate) fn write_caps(
    out: &mut dyn Write,
    subject: &RunContext<'_>,
    run: &Run,
) -> io::Result<()> {
    out.write_all(b"time,job,processor,cap\n")?;
    let names = subject.machine.variation.as_ref().map(|processors| processors.names());
    let (mut beginning, mut ending) = (Line::new(), Line::new());
    for capping in &run.cappings {
        beginning.clear();
        beginning.byte(b',');
        beginning.unsigned(subject.workload.jobs()[capping.job.index()].number);
        beginning.byte(b',');
        beginning.thousandths(capping.at.millis());
        for capped in capping.caps.iter() {
            ending.clear();
            ending.byte(b'\n');
            ending.thousandths(capped.cap.milliwatts());
            ending.byte(b',');
            out.write_all(beginning.as_bytes())?;
            match names.and_then(|names| names.get(capped.node.0 as usize)) {
                Some(name) => out.write_all(name.as_bytes())?,
                None => write!(out, "{}", capped.node.0)?,
            }
            out.write_all(ending.as_bytes())?;
        }
    }
    Ok(())
}
