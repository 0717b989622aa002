//! Who waited how long: tables of waits by size, length, user and group, with the policies side by side.

use std::fmt::Write;

use super::swatch;
use crate::metrics::{By, WaitClass, WaitsBy};
use crate::report::cases::Case;
use crate::report::digest::Digest;
use crate::report::markup::escaped;
use crate::report::{Palette, human_time};

/// What stands above the classes.
fn heading(by: By) -> &'static str {
    match by {
        By::Size => "Size",
        By::Length => "Length",
        By::User => "User",
        By::Group => "Group",
    }
}

/// The tables of a case. Its runs have the same classes, as a class is a matter of the workload.
pub(super) fn waits(case: &Case<'_>, palette: &Palette) -> String {
    let runs: Vec<&Digest> = case.order().into_iter().map(|place| case.runs[place]).collect();
    let Some(first) = runs.first().filter(|run| !run.waits_by.is_empty()) else {
        return String::new();
    };
    let tables: String = first.waits_by.iter().map(|by| table(by, &runs, palette)).collect();
    let named: Vec<String> =
        first.waits_by.iter().map(|by| heading(by.by).to_lowercase()).collect();
    let names = match &named[..] {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => named.join(""),
    };
    // Several policies need the whole width.
    let class = if runs.len() > 1 { "breakdown" } else { "breakdown narrow" };
    format!(
        "<h2>Waits by {names}</h2>\n<p>The mean wait, and the 95th and 99th percentile: the waits that at most five \
         and one of a hundred jobs exceed. Sizes are the nodes that jobs ask for, lengths their run times in the \
         workload.</p>\n<div class=\"{class}\">\n{tables}</div>\n"
    )
}

fn table(by: &WaitsBy, runs: &[&Digest], palette: &Palette) -> String {
    let name = heading(by.by);
    let mut rows = String::new();
    for class in &by.classes {
        let (title, jobs) = (escaped(&class.name), class.jobs);
        let _ = write!(rows, "<tr><th scope=\"row\">{title}</th><td>{jobs}</td>");
        for run in runs {
            let same = run.waits_by.iter().filter(|other| other.by == by.by);
            let found =
                same.flat_map(|other| &other.classes).find(|other| other.name == class.name);
            rows += &cells(found);
        }
        rows += "</tr>\n";
    }
    let figures = "<th scope=\"col\">Mean</th><th scope=\"col\" title=\"95th percentile\">95th</th>\
                   <th scope=\"col\" title=\"99th percentile\">99th</th>";
    let head = match runs {
        [_] => {
            format!("<tr><th scope=\"col\">{name}</th><th scope=\"col\">Jobs</th>{figures}</tr>")
        }
        _ => {
            let policies = runs.iter().fold(String::new(), |mut policies, run| {
                let policy = &run.summary.policy;
                let _ = write!(
                    policies,
                    "<th scope=\"colgroup\" colspan=\"3\">{}{}</th>",
                    swatch(palette.place(policy)),
                    escaped(policy)
                );
                policies
            });
            format!(
                "<tr><th scope=\"col\" rowspan=\"2\">{name}</th><th scope=\"col\" rowspan=\"2\">Jobs</th>{policies}</tr>\n\
                 <tr>{}</tr>",
                figures.repeat(runs.len())
            )
        }
    };
    let label = format!("Waits by {}", name.to_lowercase());
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table class=\"waits\">\n\
         <caption>{label}</caption>\n<thead>{head}</thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// The figures of a class under a policy. Where some of its jobs did not run, it is said how many did.
fn cells(class: Option<&WaitClass>) -> String {
    let Some(WaitClass { jobs, waits, .. }) = class else { return "<td>–</td>".repeat(3) };
    let written = |seconds: Option<f64>| seconds.map_or_else(|| "–".to_owned(), human_time);
    let some = match waits.ran < *jobs {
        true => format!(" <small>{} ran</small>", waits.ran),
        false => String::new(),
    };
    let [mean, p95, p99] = [waits.mean_s, waits.p95_s, waits.p99_s].map(written);
    format!("<td class=\"first\">{mean}{some}</td><td>{p95}</td><td>{p99}</td>")
}
