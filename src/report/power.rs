//! `power.csv`: the power drawn over time.

use std::io::{self, Write};

use crate::digits::Line;
use crate::sim::Run;
use crate::units::Watts;

/// Writes a row for every change: from when, watts drawn, and the budget if there is one.
pub fn write_power(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    out.write_all(b"time,watts,budget\n")?;
    let mut line = Line::new();
    for sample in &run.power {
        line.clear();
        line.byte(b'\n');
        if sample.limit != Watts::UNLIMITED {
            line.thousandths(sample.limit.milliwatts());
        }
        line.byte(b',');
        line.thousandths(sample.power.milliwatts());
        line.byte(b',');
        line.thousandths(sample.at.millis());
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}
