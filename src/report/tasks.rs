//! `tasks.csv`: what became of each task with a utility, where machines are of several types.

use std::io::{self, Write};

use crate::budget::EnergyBudget;
use crate::heterogeneity::Site;
use crate::metrics::counts;
use crate::model::task_type;
use crate::sim::{Run, State};
use crate::units::NodeId;
use crate::workload::Workload;

/// Writes one row a task, in the order of arrival. Seconds, watts, joules charged in the period; and
/// the utility that was earned in it.
pub(crate) fn write_tasks(
    out: &mut dyn Write,
    workload: &Workload,
    site: &Site,
    budget: &EnergyBudget,
    run: &Run,
) -> io::Result<()> {
    out.write_all(
        b"task,type,utility_function,arrival,state,reason,machine,node,pstate,start,end,power,energy,utility\n",
    )?;
    let mut nodes: Vec<Option<NodeId>> = vec![None; run.records.len()];
    for capping in &run.cappings {
        nodes[capping.job.index()] = capping.caps.nodes().next();
    }
    for ((job, record), node) in workload.jobs().iter().zip(&run.records).zip(nodes) {
        let kind = task_type(job);
        let name = kind.and_then(|kind| site.tables.task_types().get(kind.0 as usize));
        let function = job.terms.utility.and_then(|id| site.utilities.get(id));
        write!(
            out,
            "{},{},{},{},{},",
            job.number,
            name.map_or("", String::as_str),
            job.terms.utility.map_or("", |id| site.utilities.name(id)),
            job.submit.secs_f64(),
            record.state.name()
        )?;
        let reason = match record.state {
            State::Dropped(reason) => reason.reason(),
            _ => "",
        };
        let ran = matches!(record.state, State::Completed | State::Running | State::Killed);
        let Some((node, machine)) =
            node.filter(|_| ran).and_then(|node| Some((node, site.tables.type_of(node)?)))
        else {
            writeln!(out, "{reason},,,,,,,,0")?;
            continue;
        };
        let states = kind.map_or(&[][..], |kind| site.tables.states(kind, machine));
        let state = states.iter().find(|state| state.power == record.power);
        let utility = match (counts(record, budget), function) {
            (true, Some(function)) => function.at(record.end.since(job.submit)).to_string(),
            _ => "0".to_owned(),
        };
        let energy = budget.charge(record.power, record.start, record.end);
        writeln!(
            out,
            "{reason},{},{},{},{},{},{},{},{utility}",
            site.tables.machine_types()[machine].name,
            node.0,
            state.map_or(String::new(), |state| state.number.to_string()),
            record.start.secs_f64(),
            record.end.secs_f64(),
            record.power.as_f64(),
            energy.as_f64(),
        )?;
    }
    Ok(())
}
