//! `changes.csv`: what jobs started with, and how they changed while they ran.

use std::io::{self, Write};

use crate::digits::Line;
use crate::metrics::RunContext;
use crate::sim::Run;

/// Writes a row for every start and for every change of a running job's nodes or cap: when, whose, what
/// it has from then on, for how long it stood still, and which of both it is.
pub(crate) fn write_changes(
    out: &mut dyn Write,
    subject: &RunContext<'_>,
    run: &Run,
) -> io::Result<()> {
    out.write_all(b"time,job,nodes,cap,power,pause,event\n")?;
    let mut line = Line::new();
    for (is_start, change) in run.steps() {
        line.clear();
        line.byte(b'\n');
        line.text(event(is_start));
        line.byte(b',');
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

/// What a step is called.
pub(super) fn event(is_start: bool) -> &'static str {
    if is_start { "start" } else { "change" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::BudgetSpec;
    use crate::machine::Machine;
    use crate::reproduce::papers;
    use crate::scenario::Scenario;
    use crate::workload::demo::demo;

    /// From the rows alone: what each job had when it started, and its energy, which must be what the run
    /// says of it. The first row of a job is its start, and later ones are changes.
    #[test]
    fn the_rows_tell_the_whole_course_of_a_job() {
        let machine = Machine::of_processors(256).unwrap();
        let mut workload = demo();
        workload.slice(0..400);
        let budget = "60%".parse::<BudgetSpec>().unwrap().resolve(&machine).unwrap();
        let policy = "parm".parse().unwrap();
        let model = papers::model(&policy, &machine, workload.jobs(), 1).unwrap();
        let new = Scenario::new(&machine, &workload, policy, model.as_ref());
        let scenario = Scenario { budget, ..new };
        let run = scenario.simulate().run;
        let mut csv = Vec::new();
        write_changes(&mut csv, &scenario.context("parm"), &run).unwrap();
        let text = String::from_utf8(csv).unwrap();
        let mut rows = text.lines();
        assert_eq!(rows.next(), Some("time,job,nodes,cap,power,pause,event"));
        let rows: Vec<Vec<&str>> = rows.map(|row| row.split(',').collect()).collect();
        let mut seconds = rows.iter().map(|row| row[0].parse::<f64>().unwrap());
        assert!(seconds.clone().zip(seconds.by_ref().skip(1)).all(|(one, next)| one <= next));
        let mut changes = 0;
        let ids = (0..).map(crate::units::JobId);
        for ((id, job), record) in ids.zip(workload.jobs()).zip(&run.records) {
            let number = job.number.to_string();
            let of_job: Vec<_> = rows.iter().filter(|row| row[1] == number).collect();
            let events: Vec<&str> = of_job.iter().map(|row| row[6]).collect();
            assert_eq!(events[0], "start");
            assert!(events[1..].iter().all(|event| *event == "change"));
            changes += events.len() - 1;
            let at = |row: &[&str]| (row[0].parse::<f64>().unwrap() * 1000.0).round() as u64;
            let milliwatts =
                |row: &[&str]| (row[4].parse::<f64>().unwrap() * 1000.0).round() as u64;
            let ends = of_job[1..].iter().map(|row| at(row)).chain([record.end.millis()]);
            let drawn: u64 =
                of_job.iter().zip(ends).map(|(r, end)| milliwatts(r) * (end - at(r))).sum();
            assert_eq!(u128::from(drawn), run.total(id).energy.microjoules(), "job {number}");
            assert_eq!(at(of_job[0]), record.start.millis());
        }
        assert_eq!(changes, run.changes.len());
        assert!(changes > 100, "{changes}");
    }
}
