//! A ranking as people read it.

use crate::experiment::ranking::{Ranking, Row, Spread};
use crate::experiment::{CheckedExperiment, Figure};
use crate::freedom::Freedoms;
use crate::report::{Side, columns, human_power, prefix, time_unit};

/// The figures that are shown; the one that is ranked by comes first.
const SHOWN: [Figure; 6] = [
    Figure::Turnaround,
    Figure::Slowdown,
    Figure::P99Wait,
    Figure::MaxWait,
    Figure::Makespan,
    Figure::Energy,
];

/// What stands behind the best value of a column.
const BEST: char = '*';

/// A ranking as a table under what it is about. With `emphasis`, the line of whoever leads is passed
/// through it.
pub(crate) fn whole(
    checked: &CheckedExperiment<'_>,
    ranking: &Ranking,
    emphasis: &dyn Fn(&str) -> String,
) -> String {
    let mut text = heading(checked, ranking);
    text += &table(checked, &ranking.rows, emphasis);
    text.push('\n');
    text
}

fn heading(checked: &CheckedExperiment<'_>, ranking: &Ranking) -> String {
    let cell = ranking.cell;
    let machine = checked.machine(cell.workload, cell.size);
    let budget = &checked.experiment.budget_name(cell.budget);
    let limit = checked.limit(cell.workload, cell.budget).map(|limit| human_power(limit.as_f64()));
    let budget = match limit {
        None if budget == "none" => "no power limit".to_owned(),
        None => format!("budget {budget}"),
        Some(limit) => format!("budget {budget}: {limit}"),
    };
    format!("{} on {}, {budget}\n", checked.experiment.workload_name(cell.workload), machine.name)
}

/// What happens where beliefs are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extra {
    Killed,
    OverBudget,
}

impl Extra {
    const ALL: [Extra; 2] = [Extra::Killed, Extra::OverBudget];

    fn heading(self) -> &'static str {
        match self {
            Extra::Killed => "killed",
            Extra::OverBudget => "over",
        }
    }

    fn is_there(self, row: &Row) -> bool {
        match self {
            Extra::Killed => row.killed_by_belief > 0.0,
            Extra::OverBudget => row.over_budget > 0.0,
        }
    }

    fn value(self, row: &Row) -> String {
        match self {
            _ if !self.is_there(row) => "-".to_owned(),
            Extra::Killed => format!("{:.0}", row.killed_by_belief.ceil()),
            Extra::OverBudget => format!("{:.1} %", row.over_budget * 100.0),
        }
    }
}

fn table(
    checked: &CheckedExperiment<'_>,
    rows: &[Row],
    emphasis: &dyn Fn(&str) -> String,
) -> String {
    let by = checked.experiment.rank_by;
    let tariff = &checked.experiment.tariff;
    let priced = (tariff.price.is_some() || tariff.demand.is_some()).then_some(Figure::Cost);
    let counted = tariff.carbon.as_ref().map(|_| Figure::Carbon);
    let others = SHOWN.into_iter().chain(priced).chain(counted).filter(|figure| *figure != by);
    let figures: Vec<Figure> = [by].into_iter().chain(others).collect();
    let mut headings = vec![("", Side::Right), ("policy", Side::Left), ("completed", Side::Right)];
    let currency = checked.currency().map(|currency| format!("cost ({currency})"));
    let heading = |figure: &Figure| match (figure, &currency) {
        (Figure::Cost, Some(currency)) => currency.as_str(),
        (figure, _) => heading_of(*figure),
    };
    headings.extend(figures.iter().map(|figure| (heading(figure), Side::Right)));
    // Rare enough to have no column where it did not happen.
    let extra: Vec<Extra> =
        Extra::ALL.into_iter().filter(|extra| rows.iter().any(|row| extra.is_there(row))).collect();
    headings.extend(extra.iter().map(|extra| (extra.heading(), Side::Right)));
    let rows: Vec<Vec<String>> = rows
        .iter()
        .enumerate()
        .map(|(place, row)| {
            let name = checked.experiment.policies[row.policy].to_string();
            let mut cells = vec![(place + 1).to_string(), name, completed(row)];
            cells.extend(figures.iter().map(|figure| value(row, *figure, by)));
            cells.extend(extra.iter().map(|extra| extra.value(row)));
            cells
        })
        .collect();
    if rows.is_empty() {
        return "  no policy ran\n".to_owned();
    }
    let lines = columns(&headings, &rows);
    lines
        .lines()
        .enumerate()
        .map(|(number, line)| if number == 1 { emphasis(line) } else { line.to_owned() } + "\n")
        .collect()
}

/// How many jobs were completed, of how many.
fn completed(row: &Row) -> String {
    // Rounded down: half a job that is undone over two seeds is not all of them.
    let done = (row.jobs.mean - row.undone.mean).floor();
    match row.undone.mean == 0.0 {
        true => "all".to_owned(),
        false => format!("{done}/{:.0}", row.jobs.mean),
    }
}

/// What stands above a figure's column.
fn heading_of(figure: Figure) -> &'static str {
    match figure {
        Figure::P99Wait => "p99 wait",
        Figure::MaxWait => "max wait",
        other => other.name(),
    }
}

/// A value with its spread, and a mark if it is the best. A place is kept for the mark, so that
/// numbers stand below each other. The tails go without their spread, which would make the table too
/// wide, unless policies are ranked by them.
fn value(row: &Row, figure: Figure, by: Figure) -> String {
    let Some((spread, is_best)) = row.figure(figure) else { return "- ".to_owned() };
    let is_tail = matches!(figure, Figure::P99Wait | Figure::MaxWait);
    let text =
        if is_tail && figure != by { amount(figure, spread.mean) } else { shown(figure, spread) };
    text + if is_best { "*" } else { " " }
}

/// A value with its unit.
pub(super) fn amount(figure: Figure, value: f64) -> String {
    shown(figure, Spread { mean: value, deviation: None })
}

/// The unit that suits a value, and its size.
pub(crate) fn unit(figure: Figure, value: f64) -> (String, f64) {
    match figure {
        Figure::Turnaround
        | Figure::Wait
        | Figure::P99Wait
        | Figure::MaxWait
        | Figure::Makespan => {
            let (unit, size) = time_unit(value);
            (unit.to_owned(), size)
        }
        Figure::Energy => {
            let (prefix, size) = prefix(value);
            (format!("{prefix}J"), size)
        }
        Figure::Utilisation => ("%".to_owned(), 0.01),
        Figure::Carbon if value >= 1000.0 => ("t".to_owned(), 1000.0),
        Figure::Carbon => ("kg".to_owned(), 1.0),
        Figure::Slowdown | Figure::Cost => (String::new(), 1.0),
    }
}

fn shown(figure: Figure, spread: Spread) -> String {
    let (unit, size) = unit(figure, spread.mean);
    let mut text = format!("{:.1}", spread.mean / size);
    if let Some(deviation) = spread.deviation {
        text += &format!(" ±{:.1}", deviation / size);
    }
    if !unit.is_empty() {
        text += &format!(" {unit}");
    }
    text
}

/// Why policies could not run, each reason once, with whom it concerns and where.
pub(crate) fn reasons(checked: &CheckedExperiment<'_>, rankings: &[Ranking]) -> String {
    // By workload and reason; the budgets and numbers of nodes are as many as there are.
    let mut known: Vec<(usize, &str, Vec<usize>)> = Vec::new();
    for ranking in rankings {
        for (policy, reason) in &ranking.cannot {
            let workload = ranking.cell.workload;
            match known.iter_mut().find(|known| (known.0, known.1) == (workload, reason)) {
                Some((_, _, policies)) if policies.contains(policy) => (),
                Some((_, _, policies)) => policies.push(*policy),
                None => known.push((workload, reason, vec![*policy])),
            }
        }
    }
    let mut text = String::new();
    for (workload, reason, policies) in known {
        let names = policies.iter().map(|policy| checked.experiment.policies[*policy].to_string());
        let names = names.collect::<Vec<_>>().join(", ");
        let workload = checked.experiment.workload_name(workload);
        text += &format!("cannot run on {workload}: {names}: {reason}\n");
    }
    text
}

/// What the marks mean, and what the figures rest on.
pub(crate) fn legend(checked: &CheckedExperiment<'_>) -> String {
    let experiment = checked.experiment;
    let mut text = format!(
        "{BEST} the best of the policies that completed the most jobs; ranked by jobs completed, then \
         {}",
        experiment.rank_by
    );
    if experiment.seeds.len() > 1 {
        text += "; ± the standard deviation over seeds, where they matter";
    }
    text += "\np99 wait: the shortest time that at most one job of a hundred waited longer than; max wait: the \
             longest wait; killed: jobs that took longer than the policy predicted; over: the share of time over \
             the budget, because jobs drew more than it predicted\n";
    text + &freedoms(checked)
}

/// What each policy may do to jobs, which is the same in all tables.
fn freedoms(checked: &CheckedExperiment<'_>) -> String {
    let mut sets: Vec<(Freedoms, Vec<String>)> = Vec::new();
    for (place, policy) in checked.experiment.policies.iter().enumerate() {
        let has = checked.freedoms(place);
        match sets.iter_mut().find(|(set, _)| *set == has) {
            Some((_, policies)) => policies.push(policy.to_string()),
            None => sets.push((has, vec![policy.to_string()])),
        }
    }
    let sets = sets.iter().map(|(set, policies)| format!("  {set}: {}\n", policies.join(", ")));
    "freedoms: what a policy may do to jobs besides starting them as requested\n".to_owned()
        + &sets.collect::<String>()
}
