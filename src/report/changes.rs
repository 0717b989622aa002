//! `changes.csv`: how jobs changed while they ran.

use std::io::{self, Write};

use crate::digits::Line;
use crate::metrics::Subject;
use crate::sim::Run;

/// Writes a row for every change of a running job's nodes or cap: when, whose, what it has from then
/// on, and for how long it stood still.
pub fn write_changes(out: &mut dyn Write, subject: &Subject<'_>, run: &Run) -> io::Result<()> {
    out.write_all(b"time,job,nodes,cap,power,pause\n")?;
    let mut line = Line::new();
    for change in &run.changes {
        line.clear();
        line.byte(b'\n');
        line.thousandths(change.pause.millis());
        line.byte(b',');
        line.thousandths(change.power.milliwatts());
        line.byte(b',');
        line.thousandths(change.cap.milliwatts());
        line.byte(b',');
        line.unsigned(u64::from(change.nodes));
        line.byte(b',');
        line.unsigned(subject.workload.jobs()[change.job.index()].number);
        line.byte(b',');
        line.thousandths(change.at.millis());
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}
