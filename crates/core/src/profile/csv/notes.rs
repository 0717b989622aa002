//! What people should know of a table that was read: what was summed up, filled in, passed over.

use super::gathering::Gathered;
use super::layout::{Cells, Layout};
use crate::profile::counted;
use crate::profile::measured::{Measured, Summed};

/// Runs that differ by more than this many per cent are hardly runs of one problem.
const SUSPICIOUS: f64 = 50.0;

/// One sentence for each thing.
pub(super) fn notes(gathered: &Gathered, cells: &Cells, layout: &Layout) -> Vec<String> {
    let known = [
        sizes(gathered),
        repeats(gathered),
        no_caps(gathered, layout),
        no_power(gathered, cells),
        above_cap(gathered, cells),
        divisions(gathered),
        others(cells, layout),
    ];
    known.into_iter().flatten().collect()
}

fn sizes(gathered: &Gathered) -> Option<String> {
    let names: Vec<&str> = gathered.sized.iter().map(String::as_str).collect();
    let more = names.len().saturating_sub(4);
    let first = names.iter().take(4).copied().collect::<Vec<_>>().join(", ");
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    (!names.is_empty())
        .then(|| format!("each problem size is a separate application: {first}{more}"))
}

fn repeats(gathered: &Gathered) -> Option<String> {
    let all = gathered.measured.iter().flat_map(summed);
    let repeated: Vec<(&str, Summed)> = all.filter(|(_, summed)| summed.spread.runs > 1).collect();
    let by_spread = |one: &&(&str, Summed), other: &&(&str, Summed)| {
        one.1.spread.percent().total_cmp(&other.1.spread.percent())
    };
    let (application, widest) = repeated.iter().max_by(by_spread)?;
    let runs: usize = repeated.iter().map(|(_, summed)| summed.spread.runs).sum();
    let percent = widest.spread.percent();
    let hint = match percent > SUSPICIOUS {
        true => {
            "; if these are different problems, name the column that distinguishes them (--column size=NAME)"
        }
        false => "",
    };
    Some(format!(
        "{runs} runs of {} are summarised by the median time and the largest power; times of one configuration \
        differ by \
         up to {percent:.1} % ({application} on {}){hint}",
        counted(repeated.len(), "configuration"),
        widest.setting.whole()
    ))
}

fn summed(measured: &Measured) -> Vec<(&str, Summed)> {
    let name = measured.application.as_str();
    measured.settings.iter().filter_map(|sampled| Some((name, sampled.summed()?))).collect()
}

fn no_caps(gathered: &Gathered, layout: &Layout) -> Option<String> {
    let said = |place: usize| match (place, layout.highest_cap) {
        (0, Some(_)) => "--highest-cap",
        _ => "the highest in the table",
    };
    let parts = ["cap", "memory cap", "GPU cap"].into_iter().zip(&gathered.highest).enumerate();
    let filled = parts.filter_map(|(place, (what, highest))| {
        let cap = highest.cap.filter(|_| highest.lines > 0)?;
        let count = if highest.lines == 1 { "counts" } else { "count" };
        let rows = counted(highest.lines, "row");
        Some(format!("{rows} without a {what} {count} as {cap} a socket, {}", said(place)))
    });
    let filled: Vec<String> = filled.collect();
    (!filled.is_empty()).then(|| filled.join("; "))
}

fn no_power(gathered: &Gathered, cells: &Cells) -> Option<String> {
    let sockets = counted(cells.sockets?.get() as usize, "socket");
    (gathered.unmeasured > 0).then(|| {
        format!(
            "power was not measured: {} have the upper bound nodes × {sockets} × cap, with the origin 'bound'",
            counted(gathered.unmeasured, "row")
        )
    })
}

fn above_cap(gathered: &Gathered, cells: &Cells) -> Option<String> {
    let sockets = counted(cells.sockets?.get() as usize, "socket");
    let worst = gathered.above_cap.iter().max_by(|a, b| a.percent.total_cmp(&b.percent))?;
    Some(format!(
        "{} more than nodes × {sockets} × cap, at worst {:.1} % (line {})",
        match gathered.above_cap.len() {
            1 => "1 row draws".to_owned(),
            count => format!("{count} rows draw"),
        },
        worst.percent,
        worst.line
    ))
}

fn divisions(gathered: &Gathered) -> Option<String> {
    let divided = gathered.measured.iter().filter(|measured| measured.has_other_caps());
    let (tried, kept) = divided.fold((0, 0), |(tried, kept), measured| {
        (tried + measured.settings.len(), kept + measured.chosen().len())
    });
    (tried > 0).then(|| {
        format!(
            "memory or GPUs have caps, too: a cap is that of all parts of a socket together, and of {tried} \
             settings the {kept} that are fastest with their total are rows; 'busbar profile best' shows all"
        )
    })
}

fn others(cells: &Cells, layout: &Layout) -> Option<String> {
    let is_said = !cells.others.is_empty() && !layout.ignore_other_columns;
    is_said.then(|| format!("unknown columns are ignored: {}", cells.others.join(", ")))
}
