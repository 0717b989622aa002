//! The result in sentences: one for quoting, and explanations.

use serde::Serialize;

use super::super::choice::{Candidate, choice};
use super::super::who::signed_time;
use super::{Answer, Recorded, Row, Way};
use crate::report::{human_energy, human_power, human_time, undone};

/// The source of the machine's power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::cli::whatif) enum Basis {
    /// A machine file.
    MachineFile,
    /// The measured power of jobs, which is a lower bound.
    Records,
    /// An assumption.
    Assumption,
}

/// The summary sentence at the top of the page, for quoting.
pub(in crate::cli::whatif) fn lead(answer: &Answer) -> Option<String> {
    let mut said: Vec<String> = answer.cuts.none.iter().cloned().collect();
    said.extend(difference(answer));
    (!said.is_empty()).then(|| said.join(" "))
}

/// The result of the site's own policy under the budget.
fn difference(answer: &Answer) -> Option<String> {
    let all = &answer.who.as_ref()?.all;
    let (free, site) = (answer.row(Way::Free)?, answer.row(Way::Site)?);
    let (before, after) = (all.before_mean_wait_s?, all.after_mean_wait_s?);
    let who = if all.not_run > 0 { "jobs that run with it and without" } else { "jobs" };
    let waits = match signed_time(after - before) {
        none if none == signed_time(0.0) => {
            format!("{who} would have waited {} on average, as without it", human_time(after))
        }
        difference => format!(
            "{who} would have waited {} on average instead of {} ({difference})",
            human_time(after),
            human_time(before)
        ),
    };
    let jobs = match (all.jobs, all.not_run) {
        (jobs, 0) if undone(&site.summary) == 0 => format!("all {jobs} would have run"),
        (jobs, 0) => {
            format!("{} of {jobs} would not have finished, as without it", undone(&site.summary))
        }
        (jobs, missing) => format!("{missing} of {jobs} that run without it would not have run"),
    };
    let energy = |row: &Row| row.summary.site_energy_j.unwrap_or(row.summary.energy_j);
    let energies = match (human_energy(energy(site)), human_energy(energy(free))) {
        (same, other) if same == other => format!("with the same energy ({same})"),
        (after, before) => format!("with {after} instead of {before}"),
    };
    let cost = site.summary.cost.zip(free.summary.cost).map(|(after, before)| {
        let currency = site.summary.currency.as_deref().unwrap_or_default();
        format!(" and for {after:.0} {currency} instead of {before:.0} {currency}")
    });
    let assumed = match answer.basis {
        Basis::MachineFile => "",
        Basis::Records => {
            " The power of the machine is known only from the measured energy of its jobs."
        }
        Basis::Assumption => {
            " The power of its nodes is assumed, so this says nothing about a limit in watts."
        }
    };
    let parts = answer.recorded.and_then(Recorded::parts_in_words).map(|parts| {
        format!(" These waits are simulated on whole nodes and too long, because {parts}.")
    });
    let parts = parts.unwrap_or_default();
    Some(format!(
        "{}, under a budget of {}, {waits}, under the site's own policy ({}): {jobs}, {energies}{}.{assumed}{parts}",
        capitalised(&answer.period),
        quoted(answer.budget()),
        site.summary.policy,
        cost.unwrap_or_default()
    ))
}

/// The name of a budget, quoted if it has several words.
fn quoted(budget: &str) -> String {
    if budget.contains(' ') { format!("'{budget}'") } else { budget.to_owned() }
}

/// A sentence begins like this.
fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The explanations of the table.
pub(in crate::cli::whatif) fn all(answer: &Answer) -> Vec<String> {
    let mut said = Vec::new();
    said.extend(answer.row(Way::Recorded).map(|row| kept(answer, row)));
    if let (Some(recorded), Some(free)) = (answer.row(Way::Recorded), answer.row(Way::Free))
        && let Some((was, is)) = recorded.summary.mean_wait_s.zip(free.summary.mean_wait_s)
    {
        let parts = answer.recorded.and_then(Recorded::parts_in_words);
        let why = match parts {
            Some(parts) => format!("which gives each job whole nodes, although {parts}"),
            None if answer.knows_priorities => {
                "which does not know the site's limits and failures".to_owned()
            }
            None => "which does not know the site's priorities, limits and failures".to_owned(),
        };
        said.push(format!(
            "Without a budget, the simulated mean wait is {}, and the recorded one is {}. The difference shows \
            the error of the simulation, {why}.",
            human_time(is),
            human_time(was)
        ));
    }
    let under = || answer.rows.iter().filter(|row| row.way.is_limited());
    let candidates = under().filter_map(|row| {
        Some(Candidate {
            policy: &row.summary.policy,
            is_site: row.way == Way::Site,
            undone: undone(&row.summary),
            mean_wait_s: row.summary.mean_wait_s?,
        })
    });
    said.extend(choice(candidates.collect()));
    let over: Vec<&Row> = under().filter(|row| row.summary.over_budget_s > 0.0).collect();
    let worst = over.iter().map(|row| row.summary.worst_excursion_w).reduce(f64::max);
    if let Some(worst) = worst {
        let names: Vec<&str> = over.iter().map(|row| row.summary.policy.as_str()).collect();
        said.push(format!(
            "{} would have exceeded the budget at times, by {} at most, because some jobs draw more than \
            expected. --guard keeps a share of the budget in reserve for that.",
            names.join(", "),
            human_power(worst)
        ));
    }
    said
}

/// Whether the recorded past was within the budget, if that is known.
fn kept(answer: &Answer, recorded: &Row) -> String {
    let s = &recorded.summary;
    if answer.basis == Basis::Assumption {
        return "It is unknown whether the machine was within the budget, because the power of its nodes is \
        assumed. A machine file (--machine) gives it."
            .to_owned();
    }
    let start_unknown = answer.recorded.map_or(0, |recorded| recorded.start_unknown);
    let is_floor = answer.basis == Basis::Records || start_unknown > 0;
    let why = match (answer.basis, start_unknown) {
        (Basis::Records, _) => {
            "the records do not contain the power of idle nodes and of the rest of the machine"
        }
        (_, 0) => "",
        _ => "jobs without a recorded start are not counted",
    };
    match (s.over_budget_s > 0.0, is_floor) {
        (true, false) => format!(
            "As recorded, the machine would have exceeded the budget for {} in {} stretch{}, by {} at most.",
            human_time(s.over_budget_s),
            s.excursions,
            if s.excursions == 1 { "" } else { "es" },
            human_power(s.worst_excursion_w)
        ),
        (true, true) => format!(
            "As recorded, the machine would have exceeded the budget for at least {}, by a peak of at least {}; {why}.",
            human_time(s.over_budget_s),
            human_power(s.worst_excursion_w)
        ),
        (false, false) => {
            "As recorded, the machine stayed within the budget at all times.".to_owned()
        }
        (false, true) => format!(
            "As recorded, the known power, {} at most, was within the budget; {why}, so the real power may have \
            been higher.",
            human_power(s.site_peak_w.unwrap_or(s.peak_power_w))
        ),
    }
}
