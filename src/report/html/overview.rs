//! Policies and budgets at a glance: what runs are ranked by, for each policy under each budget.

use std::fmt::Write;

use super::figures::{Better, Figure};
use super::swatch;
use crate::metrics::Summary;
use crate::report::Palette;
use crate::report::cases::{Case, budget};
use crate::report::markup::escaped;
use crate::report::ranking::{comparable, mean_undone};

/// A table for each workload that ran under several budgets.
pub(super) fn overview(cases: &[Case<'_>], palette: &Palette) -> String {
    let mut groups: Vec<Vec<&Case<'_>>> = Vec::new();
    for case in cases {
        let belongs = |group: &&mut Vec<&Case<'_>>| {
            group.first().is_some_and(|first| world(first) == world(case))
        };
        match groups.iter_mut().find(belongs) {
            Some(group) => group.push(case),
            None => groups.push(vec![case]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups.iter().map(|group| table(group, groups.len() > 1, palette)).collect()
}

/// What cases have in common that differ in nothing but the budget.
fn world<'a>(case: &Case<'a>) -> Option<(&'a str, &'a str, u32, &'a str)> {
    let run = *case.runs.first()?;
    let Summary { workload, machine, nodes, .. } = &run.summary;
    Some((workload, machine, *nodes, &run.variant))
}

fn table(group: &[&Case<'_>], are_many: bool, palette: &Palette) -> String {
    let Some(figure) = group.first().and_then(|case| Figure::ranked_by(case.ranked_by.name)) else {
        return String::new();
    };
    let columns: Vec<Vec<(&str, String)>> = group.iter().map(|case| column(case, figure)).collect();
    let mut rows = String::new();
    for (place, policy) in palette.policies().iter().enumerate() {
        let cells = columns.iter().map(|column| {
            let found = column.iter().find(|(name, _)| name == policy);
            // Who could not run has a reason among those of the case.
            found.map_or("<td class=\"rank\">–</td>", |(_, cell)| cell.as_str())
        });
        let cells = cells.collect::<String>();
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{}{}</th>{cells}</tr>",
            swatch(place),
            escaped(policy)
        );
    }
    let headings = group.iter().filter_map(|case| case.runs.first()).fold(
        String::new(),
        |mut headings, run| {
            let _ = write!(headings, "<th scope=\"col\">{}</th>", escaped(&budget(run)));
            headings
        },
    );
    let of = match (are_many, group.first().and_then(|case| case.runs.first())) {
        (true, Some(run)) => format!(" on {}", escaped(&run.summary.workload)),
        _ => String::new(),
    };
    format!(
        "<section>\n<h2>Policies and budgets{of}</h2>\n<p>{}. A stronger colour is further from the best under \
        the same budget, which is <span class=\"best\"><span>marked</span></span>. \
         Policies that did not complete every job have no colour.</p>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Policies and budgets{of}\">\
         <table class=\"overview\">\n<thead><tr><th scope=\"col\">Policy</th>{headings}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n</section>\n",
        figure.name
    )
}

/// The cells of a case, by policy.
fn column<'a>(case: &Case<'a>, figure: &Figure) -> Vec<(&'a str, String)> {
    let may = comparable(&case.seeds);
    let compared: Vec<&Vec<&Summary>> =
        case.seeds.iter().zip(&may).filter(|(_, may)| **may).map(|(run, _)| run).collect();
    let best = figure.best(&compared);
    let cell = |(seeds, may): (&Vec<&'a Summary>, &bool)| {
        let text = escaped(&figure.text(seeds));
        let value = figure.of(seeds).map(|value| value.mean);
        let cell = match (may, value, best) {
            (false, ..) => {
                let missing = mean_undone(seeds).ceil();
                format!("<td class=\"rank\">{text} <small>{missing:.0} not</small></td>")
            }
            (_, Some(value), Some(best)) if value == best => {
                format!("<td class=\"best\"><span>{text}</span></td>")
            }
            (_, Some(value), Some(best)) => {
                let behind = behind(figure.better, value, best);
                format!("<td style=\"--behind: {behind:.2}\">{text}</td>")
            }
            _ => format!("<td>{text}</td>"),
        };
        (seeds[0].policy.as_str(), cell)
    };
    case.seeds.iter().zip(&may).map(cell).collect()
}

/// How far a value is from the best: nothing at the best, half where it is twice as much, and never one.
fn behind(better: Better, value: f64, best: f64) -> f64 {
    let part = if better == Better::Higher { value / best } else { best / value };
    (1.0 - part).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_say_how_far_a_value_is_from_the_best() {
        assert_eq!(behind(Better::Lower, 2.0, 1.0), 0.5);
        assert_eq!(behind(Better::Higher, 3.0, 4.0), 0.25);
        assert_eq!(behind(Better::Lower, 1.0, 1.0), 0.0);
    }
}
