//! The parts of the page that are there before any script runs: headings, cards and tables.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Aside;
use super::figures::FIGURES;
use crate::metrics::Summary;
use crate::policy::Accuracy;
use crate::report::cases::{Case, budget};
use crate::report::markup::escaped;
use crate::report::ranking::{comparable, undone};
use crate::report::{human_energy, human_mass, human_power, human_time};

/// What the runs of a case have in common, in one sentence.
pub(super) fn heading(case: &Case<'_>) -> String {
    let Some(first) = case.first() else { return String::new() };
    let summary = &first.summary;
    let policies = match case.ranked().len() {
        1 => format!("Policy <strong>{}</strong>", escaped(&summary.policy)),
        count => format!("{count} policies"),
    };
    let mut text = format!(
        "{policies} on <strong>{}</strong> ({} jobs), {} nodes, <strong>{}</strong>",
        escaped(&summary.workload),
        summary.jobs,
        summary.nodes,
        escaped(&budget(first)),
    );
    if !first.variant.is_empty() {
        text += &format!(", {}", escaped(&first.variant));
    }
    if summary.power_is_assumed {
        text += ". The power of a node is assumed";
    }
    format!("<p class=\"about\">{text}.</p>\n")
}

/// A few figures in large letters: those of a single run, or who is best at what.
pub(super) fn cards(case: &Case<'_>) -> String {
    match case.ranked() {
        [] => String::new(),
        [run] => cards_of_one(run[0]),
        ranked => cards_of_many(ranked),
    }
}

fn card(name: &str, value: &str, more: &str) -> String {
    let (name, value, more) = (escaped(name), escaped(value), escaped(more));
    format!("<div class=\"card\"><dt>{name}</dt><dd>{value}<small>{more}</small></dd></div>\n")
}

fn cards_of_one(summary: &Summary) -> String {
    let s = summary;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let others = match undone(s) {
        0 => "all of them".to_owned(),
        missing => format!("{missing} did not complete"),
    };
    let mut cards = card("Jobs completed", &s.completed.to_string(), &others);
    cards += &card(
        "Mean wait",
        &or_dash(s.mean_wait_s.map(human_time)),
        &or_dash(s.median_wait_s.map(|wait| format!("median {}", human_time(wait)))),
    );
    cards += &card(
        "Mean slowdown",
        &or_dash(s.mean_bsld.map(|slowdown| format!("{slowdown:.2}"))),
        &or_dash(s.max_bsld.map(|slowdown| format!("worst {slowdown:.2}"))),
    );
    cards += &card("Makespan", &human_time(s.makespan_s), "");
    cards += &card(
        "Utilisation",
        &or_dash(s.utilisation.map(|share| format!("{:.1} %", share * 100.0))),
        "of all node time",
    );
    let limit = s.budget_w.map(|watts| format!("budget {}", human_power(watts)));
    cards += &card("Peak power", &human_power(s.peak_power_w), &limit.unwrap_or_default());
    let used = s.budget_used.map(|share| format!("{:.1} % of the budget's", share * 100.0));
    cards += &card("Energy", &human_energy(s.energy_j), &used.unwrap_or_default());
    cards += &cards_of_costs(s);
    let made = s.predictions.unwrap_or_default();
    for (name, accuracy) in [("Predicted run times", made.time), ("Predicted power", made.power)] {
        let Some(Accuracy { predicted, baseline, .. }) = accuracy else { continue };
        let more = format!(
            "off by this factor (median); 90th percentile {:.2}; without learning {:.2} and {:.2}",
            predicted.p90, baseline.median, baseline.p90
        );
        cards += &card(name, &format!("× {:.2}", predicted.median), &more);
    }
    format!("<dl class=\"cards\">\n{cards}</dl>\n")
}

/// What a run cost and emitted, and what happened in parts of its time.
fn cards_of_costs(s: &Summary) -> String {
    let mut cards = String::new();
    let currency = s.currency.as_deref().unwrap_or_default();
    if let Some(cost) = s.cost {
        let demand = s.demand_cost.zip(s.peak_quarter_w).map(|(demand, highest)| {
            let highest = human_power(highest);
            format!("{demand:.2} of it for the highest 15-minute averages, at most {highest}")
        });
        cards += &card("Cost", &format!("{cost:.2} {currency}"), &demand.unwrap_or_default());
    }
    if let Some(carbon) = s.carbon_kg {
        cards += &card("CO₂", &human_mass(carbon), "for the energy used");
    }
    if let Some(window) = &s.window {
        let mean = window.mean_power_w.map_or_else(|| "–".to_owned(), human_power);
        let more = format!(
            "mean power; peak {}, {} in {}, {} jobs started",
            human_power(window.peak_power_w),
            human_energy(window.energy_j),
            human_time(window.time_s),
            window.started
        );
        cards += &card(&format!("Window: {}", window.when), &mean, &more);
    }
    cards
}

fn cards_of_many(seeds: &[Vec<&Summary>]) -> String {
    let may = comparable(seeds);
    let runs: Vec<&Vec<&Summary>> =
        seeds.iter().zip(&may).filter(|(_, may)| **may).map(|(run, _)| run).collect();
    let mut cards = String::new();
    for name in ["Mean turnaround", "Mean slowdown", "Makespan", "Energy", "Cost", "CO₂"] {
        let Some(figure) = FIGURES.iter().find(|figure| figure.name == name) else { continue };
        let Some(best) = figure.best(&runs) else { continue };
        let is_best = |run: &&&Vec<&Summary>| figure.of(run).map(|value| value.mean) == Some(best);
        let winners: Vec<&Vec<&Summary>> = runs.iter().filter(is_best).copied().collect();
        let names: Vec<&str> = winners.iter().map(|run| run[0].policy.as_str()).collect();
        let value = winners.first().map(|run| figure.text(run)).unwrap_or_default();
        let name = if name == "CO₂" { name.to_owned() } else { name.to_lowercase() };
        cards += &card(&format!("Best {name}"), &names.join(", "), &value);
    }
    if cards.is_empty() {
        return String::new();
    }
    format!("<dl class=\"cards wide\">\n{cards}</dl>\n")
}

/// The sentence that a page opens with.
pub(super) fn lead(text: &str) -> String {
    format!("<p class=\"lead\">{}</p>\n", escaped(text))
}

/// What a reader has to know of all of it.
pub(super) fn notes(notes: &[String]) -> String {
    let items = notes.iter().fold(String::new(), |mut items, note| {
        let _ = writeln!(items, "<li>{}</li>", escaped(note));
        items
    });
    if items.is_empty() { String::new() } else { format!("<ul class=\"note\">\n{items}</ul>\n") }
}

/// A table beside those of the runs.
pub(super) fn aside(aside: &Aside) -> String {
    let title = escaped(&aside.title);
    let cell = |(place, text): (usize, &String)| match place {
        0 => format!("<th scope=\"row\">{}</th>", escaped(text)),
        _ => format!("<td>{}</td>", escaped(text)),
    };
    let row = |row: &Vec<String>| {
        format!("<tr>{}</tr>\n", row.iter().enumerate().map(cell).collect::<String>())
    };
    let headings =
        aside.headings.iter().map(|text| format!("<th scope=\"col\">{}</th>", escaped(text)));
    let picture = aside.picture.as_ref().map(|svg| {
        let data = STANDARD.encode(svg);
        format!(
            "<img class=\"picture\" alt=\"{title}\" src=\"data:image/svg+xml;base64,{data}\">\n"
        )
    });
    format!(
        "<section>\n<h2>{title}</h2>\n<p>{}.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"{title}\"><table class=\"beside\">\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n\
         {}</section>\n",
        escaped(&aside.about),
        headings.collect::<String>(),
        aside.rows.iter().map(row).collect::<String>(),
        picture.unwrap_or_default(),
    )
}
