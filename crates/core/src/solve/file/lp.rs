//! The program in CPLEX's LP format, which most solvers read.

use std::io::{self, Write};

use super::{Configuration, Program};

/// Writes the program: `x_J_C` is 1 if job J runs in configuration C, both counted from 0. Power is
/// in watts. Configurations that alone take more than there is are left out.
pub fn write(out: &mut dyn Write, program: &Program) -> io::Result<()> {
    writeln!(
        out,
        "\\ {} jobs share {} nodes and {}",
        program.jobs.len(),
        program.nodes,
        program.power
    )?;
    let fits =
        |way: &&Configuration| u64::from(way.nodes) <= program.nodes && way.power <= program.power;
    let ways = |job: usize| {
        let ways = program.jobs[job].configurations.iter().enumerate();
        ways.filter(move |(_, way)| fits(way)).map(move |(place, way)| (job, place, way))
    };
    let terms = || (0..program.jobs.len()).flat_map(ways);
    writeln!(out, "Maximize\n value:")?;
    for (job, place, way) in terms() {
        // With an exponent where there would be hundreds of zeros.
        writeln!(out, " + {:?} x_{job}_{place}", way.value)?;
    }
    writeln!(out, "Subject To")?;
    // The format has no row without a variable.
    if terms().next().is_some() {
        writeln!(out, " nodes:")?;
        for (job, place, way) in terms() {
            writeln!(out, " + {} x_{job}_{place}", way.nodes)?;
        }
        writeln!(out, " <= {}\n power:", program.nodes)?;
        for (job, place, way) in terms() {
            writeln!(out, " + {} x_{job}_{place}", way.power.as_f64())?;
        }
        writeln!(out, " <= {}", program.power.as_f64())?;
    }
    for (job, entry) in program.jobs.iter().enumerate() {
        let mut own = ways(job).peekable();
        if own.peek().is_none() && !entry.running {
            continue;
        }
        writeln!(out, " job_{job}:")?;
        if own.peek().is_none() {
            // It runs but fits nowhere: nothing times anything is never one.
            writeln!(out, " 0 x_{job}_none")?;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_program_by_hand() {
        let text = r#"{"nodes": 10, "power": "1.5kW", "jobs": [
            {"running": true, "configurations": [{"nodes": 4, "power": "464W", "value": 1.5},
                                                 {"nodes": 11, "power": 1, "value": 9}]},
            {"configurations": [{"nodes": 2, "power": "0.5W", "value": 0.25}]}]}"#;
        let program = Program::from_json(text).unwrap();
        let mut out = Vec::new();
        write(&mut out, &program).unwrap();
        let expected = "\\ 2 jobs share 10 nodes and 1500W
Maximize
 value:
 + 1.5 x_0_0
 + 0.25 x_1_0
Subject To
 nodes:
 + 4 x_0_0
 + 2 x_1_0
 <= 10
 power:
 + 464 x_0_0
 + 0.5 x_1_0
 <= 1500
 job_0:
 + x_0_0
 = 1
 job_1:
 + x_1_0
 <= 1
Binary
 x_0_0
 x_1_0
End
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
