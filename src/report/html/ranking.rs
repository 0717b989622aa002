//! The runs of a case in order, with their figures, and who could not run.

use std::fmt::Write;

use super::figures::{Figure, shown};
use super::swatch;
use crate::metrics::Summary;
use crate::report::Palette;
use crate::report::cases::{Absent, Case};
use crate::report::markup::escaped;
use crate::report::ranking::{comparable, mean_undone};

/// Every run with its figures, the best run first and the best values marked; below, folded away, the
/// policies that could not run.
pub(super) fn ranking(case: &Case<'_>, palette: &Palette) -> String {
    if case.runs.len() < 2 {
        return cannot_run(&case.absent);
    }
    // What others are compared with did not have to keep the budget, and cannot be best.
    let mut may = vec![false; case.references];
    may.extend(comparable(case.ranked()));
    let compared: Vec<&Vec<&Summary>> =
        case.seeds.iter().zip(&may).filter(|(_, may)| **may).map(|(run, _)| run).collect();
    let figures = shown(&case.seeds);
    let has_freedoms = case.seeds.iter().any(|seeds| seeds[0].freedoms.is_some());
    let mut rows = String::new();
    for (order, place) in case.order().into_iter().enumerate() {
        let seeds = &case.seeds[place];
        // Those without a rank stay at the top in their own order.
        let order = (order + 1).saturating_sub(case.references);
        rows += &first_cells(order, seeds, may[place], palette);
        for figure in &figures {
            let best = figure.best(&compared).filter(|_| may[place]);
            rows += &cell(figure, seeds, best);
        }
        if has_freedoms {
            let freedoms = seeds[0].freedoms.as_deref().unwrap_or_default().replace(',', ", ");
            let _ = write!(rows, "<td class=\"freedoms\">{}</td>", escaped(&freedoms));
        }
        rows += "</tr>\n";
    }
    let about = about(case, may[case.references..].iter().all(|may| *may));
    let headings = headings(&figures, has_freedoms);
    format!(
        "<h2>Ranking</h2>\n<p>{about}</p>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Ranking\"><table class=\"ranking\">\n\
         <thead><tr><th scope=\"col\">#</th><th scope=\"col\">Policy</th>\
         <th scope=\"col\" title=\"Jobs that ran to their end\">Completed</th>{headings}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n{}",
        cannot_run(&case.absent)
    )
}

/// What the order is by, and what the marks mean.
fn about(case: &Case<'_>, all_may: bool) -> String {
    let by = case.ranked_by.name;
    let mut text = format!(
        "By jobs completed, then {by}. The best value of each column is \
         <span class=\"best\"><span>marked</span></span>."
    );
    if case.references > 0 {
        text += " Rows without a rank are runs without the budget.";
    }
    let count = case.seeds.iter().map(Vec::len).max().unwrap_or(0);
    if count > 1 {
        text += &format!(" Values are means over {count} seeds, ± the standard deviation.");
    }
    if !all_may {
        text += " Policies that did not complete every job come last and are unranked: skipping jobs \
                 shortens everyone else's wait.";
    }
    text
}

/// The beginning of a row: the rank, the policy, and how many jobs it completed.
fn first_cells(order: usize, seeds: &[&Summary], may: bool, palette: &Palette) -> String {
    let completed = seeds.iter().map(|summary| summary.completed as f64).sum::<f64>();
    let completed = completed / seeds.len().max(1) as f64;
    let jobs = match mean_undone(seeds) {
        0.0 => "all".to_owned(),
        // What is missing is rounded up: a job that is missing in one seed of five is not none.
        missing => {
            format!("{:.0} <small>{:.0} not</small>", completed.floor(), missing.ceil())
        }
    };
    let (class, rank) = match may {
        true => ("", order.to_string()),
        false => (" class=\"aside\"", "–".to_owned()),
    };
    let policy = &seeds[0].policy;
    format!(
        "<tr{class}><td class=\"rank\" data-value=\"{order}\">{rank}</td><th scope=\"row\">{}{}</th>\
         <td data-value=\"{completed}\">{jobs}</td>",
        swatch(palette.place(policy)),
        escaped(policy)
    )
}

/// A figure of a run, marked if it is the best.
pub(super) fn cell(figure: &Figure, seeds: &[&Summary], best: Option<f64>) -> String {
    let text = escaped(&figure.text(seeds));
    let value = figure.of(seeds).map(|value| value.mean);
    let number = value.map_or_else(String::new, |value| value.to_string());
    match value.is_some() && value == best {
        true => format!("<td class=\"best\" data-value=\"{number}\"><span>{text}</span></td>"),
        false => format!("<td data-value=\"{number}\">{text}</td>"),
    }
}

fn headings(figures: &[&Figure], has_freedoms: bool) -> String {
    let mut headings = String::new();
    for figure in figures {
        let (name, meaning) = (figure.name, escaped(figure.meaning));
        let _ = write!(headings, "<th scope=\"col\" title=\"{meaning}\">{name}</th>");
    }
    if has_freedoms {
        headings += "<th scope=\"col\" class=\"freedoms\" title=\"What the policy may do to jobs besides starting \
        them as requested\">Freedoms</th>";
    }
    headings
}

/// Policies that could not run in a case, folded away, with their reasons.
fn cannot_run(absent: &[&Absent]) -> String {
    folded(absent, |Absent { policy, reason, .. }| {
        format!("<strong>{}</strong>: {}", escaped(policy), escaped(reason))
    })
}

/// Policies that could not run where nobody else ran either.
pub(super) fn homeless(absent: &[&Absent]) -> String {
    folded(absent, |absent| {
        let Absent { policy, workload, budget, reason, .. } = absent;
        let [policy, workload, budget, reason] =
            [policy, workload, budget, reason].map(|text| escaped(text));
        format!("<strong>{policy}</strong> on {workload} under {budget}: {reason}")
    })
}

fn folded(absent: &[&Absent], item: impl Fn(&Absent) -> String) -> String {
    if absent.is_empty() {
        return String::new();
    }
    let items = absent.iter().fold(String::new(), |mut items, absent| {
        let _ = writeln!(items, "<li>{}</li>", item(absent));
        items
    });
    let title = match absent.len() {
        1 => "1 policy cannot run".to_owned(),
        count => format!("{count} policies cannot run"),
    };
    format!(
        "<details class=\"cannot\"><summary>{title}</summary>\n<ul class=\"note\">\n{items}</ul>\n</details>\n"
    )
}
