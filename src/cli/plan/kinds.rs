//! How many nodes of each kind, on a machine that has several.
//!
//! One kind after the other is tried with fewer and with more nodes, the others as they are. Of each, as many are recommended as
//! are enough: the fewest with which the mean turnaround is as good as it gets, but for a small share. Then all of them are
//! tried together with these numbers.

use anyhow::bail;
use serde::Serialize;

use super::Arguments;
use crate::cli::print;
use crate::experiment::assumptions::assumptions;
use crate::experiment::curve::Curve;
use crate::experiment::plan::{budget, curve};
use crate::experiment::{CheckedExperiment, Equipment, Experiment, Named, Place};
use crate::machine::Machine;
use crate::profile::Profile;
use crate::report::{Facts, Side, Versioned, columns, human_power, human_time};
use crate::units::Watts;

/// Numbers of nodes to try, in per cent of those of the machine.
const NODES: [u64; 7] = [50, 70, 85, 100, 120, 150, 200];

/// What is answered.
#[derive(Serialize)]
struct Answer<'a> {
    workload: &'a str,
    policy: String,
    machine: &'a str,
    budget_w: f64,
    kinds: Vec<OfKind>,
    /// The mean turnaround in seconds, and the jobs that were not completed, on the machine as it is.
    now: Whole,
    /// The same with the recommended nodes of every kind.
    recommended: Whole,
    recommendation: String,
    assumptions: Vec<String>,
    notes: Vec<String>,
}

/// The nodes of a kind.
#[derive(Serialize)]
struct OfKind {
    /// The partition whose own nodes they are.
    partition: String,
    nodes: u32,
    /// The mean turnaround over their number.
    by_nodes: Curve,
    recommended_nodes: u32,
}

/// A machine as a whole.
#[derive(Clone, Copy, Serialize)]
struct Whole {
    mean_turnaround_s: Option<f64>,
    undone: f64,
}

/// Runs experiments with machines like the one that is asked about.
struct Trials<'a> {
    arguments: &'a Arguments,
    jobs: &'a Experiment,
    profiles: &'a [Profile],
    limit: Watts,
}

impl Trials<'_> {
    /// A curve of one point, for a machine that has so many nodes of what is asked about.
    fn on(&self, machine: Machine, nodes: u32) -> anyhow::Result<(Curve, Option<String>)> {
        let text = machine.name.clone();
        let machine = Named::by_option("--machine", Equipment { text, machine });
        let (machine, budgets) = (Some(machine), vec![budget(self.limit)]);
        let experiment = Experiment { machine, budgets, ..self.jobs.clone() };
        let checked = CheckedExperiment::new(&experiment, self.profiles)?;
        let results = self.arguments.keeping.run(&checked, false, &|_| ())?;
        Ok(curve(&results, |_| f64::from(nodes)))
    }

    /// What comes of a machine as a whole.
    fn whole(&self, machine: Machine) -> anyhow::Result<Whole> {
        let (curve, reason) = self.on(machine, 1)?;
        let Some(point) = curve.points.first() else {
            bail!("{} cannot run: {}", self.arguments.policy, reason.unwrap_or_default());
        };
        let mean_turnaround_s = point.figure.map(|figure| figure.mean);
        Ok(Whole { mean_turnaround_s, undone: point.undone })
    }
}

pub(super) fn run(
    arguments: &Arguments,
    jobs: &Experiment,
    known: &CheckedExperiment<'_>,
    profiles: &[Profile],
) -> anyhow::Result<()> {
    if arguments.map.is_wanted() || arguments.out.is_some() || arguments.plots.is_some() {
        bail!(
            "--map, --node-price, --out and --plots are for machines whose nodes are of one kind; leave them out, or name one \
             partition whose nodes are not shared (--partition)"
        );
    }
    let filled = known.machine(0, 0);
    let limit = arguments.budget.on(filled).map_err(|why| Place::Option("--budget").error(why))?;
    let (Some(kinds), Some(named)) = (&filled.kinds, &jobs.machine) else {
        bail!("a machine of several kinds is described in a machine file; name it with --machine");
    };
    let machine = &named.value.machine;
    let trials = Trials { arguments, jobs, profiles, limit };
    let now = trials.whole(machine.clone())?;
    let mut of_kinds = Vec::new();
    let mut recommended = machine.clone();
    for (place, group) in kinds.groups().iter().enumerate() {
        let nodes = group.nodes.len() as u32;
        let scaled = |part: u64| (u64::from(nodes) * part).div_ceil(100).max(1) as u32;
        let mut sizes: Vec<u32> = NODES.into_iter().map(scaled).collect();
        sizes.dedup();
        let mut points = Vec::new();
        for size in sizes {
            // Idle nodes must leave something for jobs.
            let is_some = |machine: &Machine| machine.floor() < limit;
            if filled.with_nodes_of(place, size).as_ref().is_ok_and(is_some) {
                points.extend(trials.on(machine.with_nodes_of(place, size)?, size)?.0.points);
            }
        }
        let by_nodes = Curve::through(points);
        let chosen = by_nodes.enough.map(|at| by_nodes.points[at].at as u32);
        let recommended_nodes = chosen.unwrap_or(nodes);
        recommended = recommended.with_nodes_of(place, recommended_nodes)?;
        let partition = group.name.clone();
        of_kinds.push(OfKind { partition, nodes, by_nodes, recommended_nodes });
    }
    let together = trials.whole(recommended)?;
    let mut assumed = assumptions(known);
    assumed.push(
        "the number of nodes of one kind changes at a time; the base power of the machine and the jobs do not change with it"
            .to_owned(),
    );
    let answer = Answer {
        workload: &jobs.workloads[0].value.text,
        policy: arguments.policy.to_string(),
        machine: &filled.name,
        budget_w: limit.as_f64(),
        recommendation: recommendation(&of_kinds, limit, now, together),
        kinds: of_kinds,
        now,
        recommended: together,
        assumptions: assumed,
        notes: known.remarks(0).to_vec(),
    };
    if arguments.json {
        return print(&(serde_json::to_string_pretty(&Versioned::new(&answer))? + "\n"));
    }
    print(&text(&answer))
}

/// A turnaround in words, with the jobs that were not completed.
fn said(whole: Whole) -> String {
    let mean = whole.mean_turnaround_s.map_or("unknown".to_owned(), human_time);
    match whole.undone {
        0.0 => mean,
        undone => format!("{mean} ({undone:.0} jobs unfinished)"),
    }
}

/// What to take.
fn recommendation(kinds: &[OfKind], limit: Watts, now: Whole, together: Whole) -> String {
    let nodes = kinds.iter().map(|kind| match kind.recommended_nodes == kind.nodes {
        true => format!("{} as they are ({})", kind.partition, kind.nodes),
        false => {
            format!("{} of {} instead of {}", kind.recommended_nodes, kind.partition, kind.nodes)
        }
    });
    let nodes: Vec<String> = nodes.collect();
    format!(
        "Under {}, take {}: together, the mean turnaround is {}, and {} as it is now.",
        human_power(limit.as_f64()),
        nodes.join(", "),
        said(together),
        said(now)
    )
}

/// The answer as text.
fn text(answer: &Answer<'_>) -> String {
    let mut facts = Facts::default();
    facts.add("workload", answer.workload);
    facts.add("policy", &answer.policy);
    facts.add("machine", answer.machine);
    facts.add("budget", human_power(answer.budget_w));
    let mut text = facts.text();
    for kind in &answer.kinds {
        let curve = &kind.by_nodes;
        text += &format!("\nMore or fewer nodes of {}, the others as they are\n\n", kind.partition);
        let row = |place: usize| {
            let point = &curve.points[place];
            let mark = match place {
                _ if point.at == f64::from(kind.recommended_nodes) => super::map::RECOMMENDED,
                place if curve.is_comparable(place) => "●",
                _ => "○",
            };
            let is_now = point.at == f64::from(kind.nodes);
            let notes = [(curve.enough == Some(place), "enough"), (is_now, "now")];
            let notes: Vec<&str> = notes.iter().filter(|note| note.0).map(|note| note.1).collect();
            vec![
                mark.to_owned(),
                format!("{:.0}", point.at),
                point.figure.map_or("-".to_owned(), |figure| human_time(figure.mean)),
                format!("{:.0}", point.undone),
                notes.join(", "),
            ]
        };
        let headings = [
            ("", Side::Left),
            ("nodes", Side::Right),
            ("turnaround", Side::Right),
            ("unfinished jobs", Side::Right),
            ("", Side::Left),
        ];
        let rows: Vec<Vec<String>> = (0..curve.points.len()).map(row).collect();
        text += &columns(&headings, &rows);
    }
    text += &format!("\n{}\n", answer.recommendation);
    text.extend(answer.notes.iter().map(|note| format!("note: {note}\n")));
    text.extend(answer.assumptions.iter().map(|each| format!("assumed: {each}\n")));
    text
}
