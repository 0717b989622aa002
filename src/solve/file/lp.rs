//! The program in CPLEX's LP format, which most solvers read.

use std::io::{self, Write};

use super::Program;

/// Writes the program: `x_J_C` is 1 if job J runs in configuration C, both counted from 0. Power is
/// in watts. Configurations that alone take more than there is are left out.
pub fn write(out: &mut dyn Write, program: &Program) -> io::Result<()> {
    writeln!(out, "\\ {} jobs share {} nodes and {}", program.jobs.len(), program.nodes, program.power)?;
    let terms = || {
        program.jobs.iter().enumerate().flat_map(|(job, entry)| {
            let ways = entry.configurations.iter().enumerate();
            ways.filter(|(_, way)| {
                u64::from(way.nodes) <= program.nodes && way.power <= program.power
            })
            .map(move |(place, way)| (job, place, way))
        })
    };
    writeln!(out, "Maximize\n value:")?;
    for (job, place, way) in terms() {
        writeln!(out, " + {} x_{job}_{place}", way.value)?;
    }
    writeln!(out, "Subject To\n nodes:")?;
    for (job, place, way) in terms() {
        writeln!(out, " + {} x_{job}_{place}", way.nodes)?;
    }
    writeln!(out, " <= {}\n power:", program.nodes)?;
    for (job, place, way) in terms() {
        writeln!(out, " + {} x_{job}_{place}", way.power.as_f64())?;
    }
    writeln!(out, " <= {}", program.power.as_f64())?;
    for (job, entry) in program.jobs.iter().enumerate() {
        let mut own = terms().skip_while(|term| term.0 < job).take_while(|term| term.0 == job).peekable();
        if own.peek().is_none() {
            continue;
        }
        writeln!(out, " job_{job}:")?;
        for (_, place, _) in own {
            writeln!(out, " + x_{job}_{place}")?;
        }
        writeln!(out, " {} 1", if entry.running { "=" } else { "<=" })?;
    }
    writeln!(out, "Binary")?;
    for (job, place, _) in terms() {
        writeln!(out, " x_{job}_{place}")?;
    }
    writeln!(out, "End")
}
