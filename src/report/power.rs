//! `power.csv`: the power drawn over time.

use std::io::{self, Write};

use crate::digits::Line;
use crate::sim::Run;
use crate::units::Watts;

/// Writes a row for every change: from when, watts drawn, and the budget if there is one.
pub(crate) fn write_power(out: &mut dyn Write, run: &Run) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use crate::machine::Machine;
    use crate::policy::Easy;
    use crate::sim::Simulation;
    use crate::units::{Instant, Span};
    use crate::workload::Workload;

    /// A job of one node for 10 s, and beside it one of three nodes that has nothing to do: it is handed its
    /// watts and gives them back at the same instant, and no row shows them.
    #[test]
    fn the_peak_is_the_largest_row() {
        let machine = Machine::of_processors(4).unwrap();
        let job = |submit, nodes, run_time| {
            let submit = Instant::from_secs(submit);
            (Job::new(1, submit, nodes, Span::from_secs(10)), Span::from_secs(run_time))
        };
        let workload = Workload::new("short", [job(0, 1, 10), job(5, 3, 0)]);
        let run = Simulation::new(&machine, &workload).keep_power(true).run(&mut Easy::default());
        let mut csv = Vec::new();
        write_power(&mut csv, &run).unwrap();
        assert_eq!(String::from_utf8(csv).unwrap(), "time,watts,budget\n0,100,\n10,0,\n");
        assert_eq!(run.peak, Watts::from_watts(100));
        assert_eq!(run.peak_held, Watts::from_watts(400));
    }

    /// A first job that no machine could run is turned away, and nobody is asked before the next comes.
    #[test]
    fn the_first_row_is_of_the_beginning() {
        let machine = Machine::of_processors(4).unwrap();
        let job = |submit, nodes| {
            let submit = Instant::from_secs(submit);
            (Job::new(1, submit, nodes, Span::from_secs(10)), Span::from_secs(10))
        };
        let workload = Workload::new("large", [job(5, 9), job(7, 1)]);
        let run = Simulation::new(&machine, &workload).keep_power(true).run(&mut Easy::default());
        let mut csv = Vec::new();
        write_power(&mut csv, &run).unwrap();
        assert_eq!(String::from_utf8(csv).unwrap(), "time,watts,budget\n5,0,\n7,100,\n17,0,\n");
    }
}
