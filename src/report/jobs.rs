//! `jobs.csv`: one row a job.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::digits::Line;
use crate::metrics::{RunContext, bounded_slowdown, energy_totals, wait};
use crate::policy::DropReason;
use crate::priority::Standing;
use crate::report::feeds::feed_name;
use crate::rows::quote;
use crate::sim::{Run, State};
use crate::units::{Instant, JobId, Joules};

const HEADING: &[u8] =
    b"id,submit,start,end,nodes,cap,power,wait,bsld,backfilled,state,reason,ghz,\
    requested,processors,cores,user,application,energy,restarts,changes,runs,shape,energy_total";

/// Energy to the nearest thousandth of a joule; more than can be written counts as the most that can.
pub(super) fn thousandths_of_joules(energy: Joules) -> u64 {
    u64::try_from((energy.microjoules() + 500) / 1000).unwrap_or(u64::MAX)
}

/// Why a job did not run.
pub(super) fn reason<'a>(state: State, subject: &RunContext<'a>) -> Option<Cow<'a, str>> {
    match state {
        State::Rejected(rejection) => Some(match rejection.feed() {
            Some(feed) => {
                let (feed, why) =
                    (feed_name(subject, feed), "needs more power on its nodes than feed");
                format!("{why} '{feed}' carries for so long from its submission on").into()
            }
            None => rejection.reason().into(),
        }),
        State::Waiting => Some("never had enough nodes and power".into()),
        State::Dropped(reason) if reason != DropReason::Unsaid => Some(reason.reason().into()),
        _ => None,
    }
}

/// The names of the columns: those of priorities and of when jobs became eligible only where jobs have them.
fn write_heading(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    out.write_all(HEADING)?;
    if !run.standings.is_empty() {
        Standing::PARTS.iter().try_for_each(|part| write!(out, ",{part}"))?;
    }
    if !run.eligible.is_empty() {
        out.write_all(b",eligible")?;
    }
    out.write_all(b"\n")
}

/// Writes one row a job, in submit order: seconds since the start of the log, watts, and nothing
/// where there is nothing to say.
pub fn write_jobs(out: &mut dyn Write, subject: &RunContext<'_>, run: &Run) -> io::Result<()> {
    write_heading(out, run)?;
    let machine = subject.machine;
    let mut gears = machine.gearbox.node_powers(machine.added_power());
    gears.retain(|_| subject.has_gears);
    let energy_totals = energy_totals(subject, run);
    let mut line = Line::new();
    let rows = subject.workload.jobs().iter().zip(&run.records);
    for (id, (job, record)) in (0..).map(JobId).zip(rows) {
        // From the last column to the first: the line grows to the left.
        line.clear();
        line.byte(b'\n');
        if !run.eligible.is_empty() {
            let known = run.eligible.get(id.index()).copied();
            match known.filter(|at| *at != Instant::NEVER) {
                Some(at) => line.thousandths(at.millis()),
                // Whoever is held back to the end is never eligible.
                None if record.state.has_run() => line.thousandths(job.submit.millis()),
                None => {}
            }
            line.byte(b',');
        }
        if !run.standings.is_empty() {
            // Whoever has not started has no priority.
            let standing = run.standings.get(&id);
            for part in (0..Standing::PARTS.len()).rev() {
                if let Some(standing) = standing {
                    line.thousandths(standing.points()[part].thousandths());
                }
                line.byte(b',');
            }
        }
        if let Some(energy) = energy_totals[id.index()] {
            line.thousandths(thousandths_of_joules(energy));
        }
        line.byte(b',');
        if let Some(world) = subject.world {
            line.text(world.assigned().shape(id).name());
            line.byte(b',');
            line.text(&quote(&world.application(id).name));
        } else {
            line.byte(b',');
        }
        line.byte(b',');
        line.unsigned(u64::from(record.changes));
        line.byte(b',');
        line.unsigned(u64::from(record.restarts));
        line.byte(b',');
        if record.state.has_run() {
            line.thousandths(thousandths_of_joules(run.total(id).energy));
        }
        line.byte(b',');
        if let Some(application) = job.application {
            line.unsigned(u64::from(application.0.get()));
        }
        line.byte(b',');
        if let Some(user) = job.user {
            line.unsigned(u64::from(user.0.get()));
        }
        line.byte(b',');
        if record.state.has_run() {
            line.unsigned(u64::from(record.cores));
        }
        line.byte(b',');
        line.unsigned(u64::from(job.processors));
        line.byte(b',');
        line.thousandths(job.requested.millis());
        line.byte(b',');
        if let Some((gear, _)) = gears.iter().find(|(_, power)| *power == record.cap) {
            line.thousandths((gear.ghz * 1000.0).round() as u64);
        }
        line.byte(b',');
        line.text(&reason(record.state, subject).unwrap_or_default());
        line.byte(b',');
        line.text(record.state.name());
        line.byte(b',');
        if record.state.has_run() {
            line.text(if record.backfilled { "true" } else { "false" });
            line.byte(b',');
            let bsld = bounded_slowdown(job, record, subject.bsld_threshold);
            line.four_decimals((bsld * 10_000.0).round() as u64);
            line.byte(b',');
            line.thousandths(wait(job, record).millis());
            line.byte(b',');
            line.thousandths(record.power.milliwatts());
            line.byte(b',');
            line.thousandths(record.cap.milliwatts());
            line.byte(b',');
            line.unsigned(u64::from(record.nodes));
            line.byte(b',');
            line.thousandths(record.end.millis());
            line.byte(b',');
            line.thousandths(record.start.millis());
        } else {
            line.text(",,,,,");
            line.unsigned(u64::from(job.nodes));
            line.text(",,");
        }
        line.byte(b',');
        line.thousandths(job.submit.millis());
        line.byte(b',');
        line.unsigned(job.number);
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    use crate::budget::Budget;
    use crate::job::{ApplicationId, Job, UserId};
    use crate::machine::Machine;
    use crate::policy::Easy;
    use crate::sim::Simulation;
    use crate::units::Span;
    use crate::workload::Workload;

    #[test]
    fn every_row_has_every_column() {
        let machine = Machine::of_processors(2).unwrap();
        let job = |number, submit, nodes| {
            let requested = Span::from_millis(1500);
            let submit = Instant::from_secs(submit);
            let user = NonZeroU32::new(3).map(UserId);
            let application = NonZeroU32::new(4).filter(|_| number == 8).map(ApplicationId);
            let job = Job::new(number, submit, nodes, requested);
            (Job { user, application, ..job }, requested)
        };
        let workload = Workload::new("rows", [job(7, 0, 2), job(8, 1, 1), job(9, 1, 5)]);
        let budget = Budget::unlimited();
        let run = Simulation::new(&machine, &workload).run(&mut Easy::default());
        let subject = RunContext {
            policy: "easy",
            machine: &machine,
            workload: &workload,
            budget: &budget,
            bsld_threshold: Span::from_secs(1),
            has_gears: true,
            has_reference: true,
            freedoms: None,
            world: None,
            windows: None,
        };
        let mut csv = Vec::new();
        write_jobs(&mut csv, &subject, &run).unwrap();
        assert_eq!(
            String::from_utf8(csv).unwrap(),
            "id,submit,start,end,nodes,cap,power,wait,bsld,backfilled,state,reason,ghz,\
             requested,processors,cores,user,application,energy,restarts,changes,runs,shape,energy_total\n\
             7,0,0,1.5,2,100,200,0,1.0000,false,completed,,2.3,1.5,2,1,3,,300,0,0,,,300\n\
             8,1,1.5,3,1,100,100,0.5,1.3333,false,completed,,2.3,1.5,1,1,3,4,150,0,0,,,150\n\
             9,1,,,5,,,,,,rejected,needs more nodes than the machine has,,1.5,5,,3,,,0,0,,,\n"
        );
    }
}
