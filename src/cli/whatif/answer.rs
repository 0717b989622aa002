//! The answer of `busbar whatif`: a table of what happened and what would have, and what it says in sentences.

use std::time::Instant as Clock;

use serde::Serialize;

use super::Arguments;
use crate::experiment::CheckedExperiment;
use crate::experiment::assumptions::assumptions;
use crate::experiment::recorded::{self, RecordedRun};
use crate::experiment::run::Results;
use crate::metrics::Summary;
use crate::report::html::{Aside, Beside};
use crate::report::{Absent, human_energy, human_mass, human_power, human_time, undone};

/// One way in which the past might have gone.
#[derive(Serialize)]
pub(super) struct Row {
    /// What it is about.
    what: String,
    #[serde(skip)]
    way: Way,
    #[serde(flatten)]
    summary: Summary,
}

/// What is different from what happened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Recorded,
    /// The site's own policy without a budget.
    Free,
    /// The site's own policy under the budget.
    Site,
    /// Another policy under the budget.
    Other,
}

/// All of it, for people and for programs.
pub(super) struct Answer {
    budget: String,
    workload: String,
    pub(super) recorded: Option<RecordedRun>,
    pub(super) rows: Vec<Row>,
    pub(super) cannot: Vec<Absent>,
    pub(super) notes: Vec<String>,
    pub(super) assumptions: Vec<String>,
}

impl Answer {
    pub(super) fn of(
        arguments: &Arguments,
        checked: &CheckedExperiment<'_>,
        recorded: Option<RecordedRun>,
        free: &Results,
        tried: &Results,
    ) -> Self {
        let site = arguments.site_policy;
        let row = |way, what, summary: &Summary| Row { what, way, summary: summary.clone() };
        let mut rows = Vec::new();
        let as_recorded =
            |run: &RecordedRun| row(Way::Recorded, recorded::NAME.to_owned(), &run.digest.summary);
        rows.extend(recorded.iter().map(as_recorded));
        let without = free.tried.iter().filter_map(|tried| tried.outcome.summary());
        rows.extend(without.map(|summary| row(Way::Free, format!("{site}, no budget"), summary)));
        let under = tried
            .tried
            .iter()
            .filter_map(|tried| Some((tried.cell.policy, tried.outcome.summary()?)));
        rows.extend(under.map(|(policy, summary)| {
            // The site's own comes first.
            let way = if policy == 0 { Way::Site } else { Way::Other };
            row(way, format!("{}, budget", summary.policy), summary)
        }));
        let mut notes = checked.notes();
        match &recorded {
            None => notes.push(
                "the log does not say when jobs started, so that there is nothing to compare the simulation with"
                    .to_owned(),
            ),
            Some(run) if run.late > 0 => notes.push(format!(
                "{} jobs start up to {} later here than in the records: their nodes are not free on this machine, \
                 whose nodes are given out whole",
                run.late,
                human_time(run.latest.secs_f64())
            )),
            Some(_) => {}
        }
        Answer {
            budget: checked.experiment.budget_name(0),
            workload: checked.experiment.workload_name(0),
            recorded,
            rows,
            cannot: checked.absent(tried),
            notes,
            assumptions: assumptions(checked),
        }
    }

    /// The ways beside each other.
    fn table(&self) -> Aside {
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let has_cost = self.rows.iter().any(|row| row.summary.cost.is_some());
        let has_carbon = self.rows.iter().any(|row| row.summary.carbon_kg.is_some());
        let mut headings: Vec<String> = [
            "",
            "mean wait",
            "99 % within",
            "longest",
            "slowdown",
            "peak",
            "energy",
            "over budget",
            "jobs undone",
        ]
        .map(str::to_owned)
        .to_vec();
        if has_cost {
            let currency = self.rows.iter().find_map(|row| row.summary.currency.clone());
            headings.push(format!("cost ({})", currency.unwrap_or_default()));
        }
        if has_carbon {
            headings.push("CO₂".to_owned());
        }
        let cells = |row: &Row| {
            let s = &row.summary;
            let mut cells = vec![
                row.what.clone(),
                or_dash(s.mean_wait_s.map(human_time)),
                or_dash(s.p99_wait_s.map(human_time)),
                or_dash(s.max_wait_s.map(human_time)),
                or_dash(s.mean_bsld.map(|bsld| format!("{bsld:.2}"))),
                human_power(s.site_peak_w.unwrap_or(s.peak_power_w)),
                human_energy(s.site_energy_j.unwrap_or(s.energy_j)),
                match s.over_budget_s > 0.0 {
                    true => human_time(s.over_budget_s),
                    false => "-".to_owned(),
                },
                undone(s).to_string(),
            ];
            if has_cost {
                cells.push(or_dash(s.cost.map(|cost| format!("{cost:.0}"))));
            }
            if has_carbon {
                cells.push(or_dash(s.carbon_kg.map(human_mass)));
            }
            cells
        };
        Aside {
            title: "What happened, and what would have".to_owned(),
            about: format!(
                "{} under {}; jobs without a budget draw what they like",
                self.workload, self.budget
            ),
            headings,
            rows: self.rows.iter().map(cells).collect(),
            picture: None,
        }
    }

    /// What the table says, in sentences.
    fn sentences(&self) -> Vec<String> {
        let of = |way: Way| self.rows.iter().find(|row| row.way == way).map(|row| &row.summary);
        let mut said = Vec::new();
        if let Some(RecordedRun { digest, .. }) = &self.recorded {
            let s = &digest.summary;
            said.push(match s.over_budget_s > 0.0 {
                true => format!(
                    "As it was, the machine would have drawn more than the budget for {} in {} stretches, by {} at most.",
                    human_time(s.over_budget_s),
                    s.excursions,
                    human_power(s.worst_excursion_w)
                ),
                false => "As it was, the machine stayed within the budget at all times.".to_owned(),
            });
        }
        if let (Some(recorded), Some(free)) = (&self.recorded, of(Way::Free))
            && let Some((was, is)) = recorded.digest.summary.mean_wait_s.zip(free.mean_wait_s)
        {
            said.push(format!(
                "Without a budget, the simulated mean wait is {} where the records have {}. That is how far the \
                 simulation is from this site, which has priorities, limits and failures of its own.",
                human_time(is),
                human_time(was)
            ));
        }
        let under = || self.rows.iter().filter(|row| matches!(row.way, Way::Site | Way::Other));
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
                "{} would have drawn more than the budget at times, by {} at most: some jobs draw more than was expected \
                 of them. --guard keeps a share of the budget in reserve for that.",
                names.join(", "),
                human_power(worst)
            ));
        }
        said
    }

    pub(super) fn beside(&self) -> Beside {
        let mut notes = self.sentences();
        notes.extend(self.notes.iter().map(|note| format!("Note: {note}.")));
        notes.extend(self.assumptions.iter().map(|assumed| format!("Assumed: {assumed}.")));
        let absent = self.cannot.clone();
        Beside { answer: Some(self.table()), notes, absent, ..Beside::default() }
    }

    pub(super) fn text(&self, arguments: &Arguments, began: Clock) -> String {
        let mut text = self.table().text();
        let lines = self.sentences().into_iter();
        let cannot = self.cannot.iter();
        let lines = lines.chain(
            cannot.map(|absent| format!("cannot run: {}: {}", absent.policy, absent.reason)),
        );
        let lines = lines.chain(self.notes.iter().map(|note| format!("note: {note}")));
        let lines =
            lines.chain(self.assumptions.iter().map(|assumed| format!("assumed: {assumed}")));
        lines.for_each(|line| {
            text += &line;
            text.push('\n');
        });
        text += &format!("took {}\n", human_time(began.elapsed().as_secs_f64()));
        if let Some(folder) = &arguments.out {
            text += &format!("written to {}\n", folder.display());
        }
        text
    }
}

/// A policy under the budget, by what one chooses it for.
#[derive(Clone, Copy, PartialEq)]
struct Candidate<'a> {
    policy: &'a str,
    is_site: bool,
    undone: u64,
    mean_wait_s: f64,
}

impl Candidate<'_> {
    fn name(&self) -> String {
        let own = if self.is_site { ", the site's own policy" } else { "" };
        format!("{}{own}", self.policy)
    }

    fn figures(&self) -> String {
        let wait = human_time(self.mean_wait_s);
        match self.undone {
            0 => format!("all jobs run and wait {wait} in the mean"),
            1 => format!("1 job is left undone, the others wait {wait} in the mean"),
            more => format!("{more} jobs are left undone, the others wait {wait} in the mean"),
        }
    }
}

/// What there is to choose under the budget. A policy that leaves jobs undone makes the others wait less, so that
/// every policy is named which no other beats in both; the site's own is always named.
fn choice(mut candidates: Vec<Candidate<'_>>) -> Option<String> {
    let site = candidates.iter().find(|one| one.is_site).copied();
    // The order is kept among equals: the site's own comes first, and nothing speaks for a change.
    candidates.sort_by(|one, other| {
        one.mean_wait_s.total_cmp(&other.mean_wait_s).then(one.undone.cmp(&other.undone))
    });
    let mut best: Vec<Candidate<'_>> = Vec::new();
    for one in candidates {
        if best.last().is_none_or(|last| one.undone < last.undone) {
            best.push(one);
        }
    }
    let described = |one: &Candidate<'_>| format!("{}: {}", one.name(), one.figures());
    let mut said = match best.as_slice() {
        [] => return None,
        [one] => format!("Under the budget, jobs wait least under {}.", described(one)),
        several => format!(
            "Under the budget, there is a choice between fewer jobs left undone and shorter waits. {}.",
            several.iter().map(described).collect::<Vec<_>>().join("; ")
        ),
    };
    if let Some(site) = site.filter(|site| !best.contains(site)) {
        said += &format!(" {}.", described(&site));
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(policy: &str, undone: u64, wait_min: f64) -> Candidate<'_> {
        let is_site = policy == "easy";
        Candidate { policy, is_site, undone, mean_wait_s: 60.0 * wait_min }
    }

    #[test]
    fn every_policy_is_named_that_no_other_beats_in_both() {
        let said = choice(vec![
            candidate("easy", 9, 10.0),
            candidate("worse", 9, 11.0),
            candidate("complete", 0, 50.0),
            candidate("between", 1, 20.0),
        ]);
        let expected = "Under the budget, there is a choice between fewer jobs left undone and shorter waits. \
            easy, the site's own policy: 9 jobs are left undone, the others wait 10.0 min in the mean; \
            between: 1 job is left undone, the others wait 20.0 min in the mean; \
            complete: all jobs run and wait 50.0 min in the mean.";
        assert_eq!(said.unwrap(), expected);
    }

    #[test]
    fn the_site_s_own_is_named_beside_the_best() {
        let said = choice(vec![candidate("easy", 9, 60.0), candidate("better", 0, 20.0)]);
        let expected = "Under the budget, jobs wait least under better: all jobs run and wait 20.0 min in the mean. \
            easy, the site's own policy: 9 jobs are left undone, the others wait 60.0 min in the mean.";
        assert_eq!(said.unwrap(), expected);
        // Nothing speaks for a change where they are alike.
        let alike = choice(vec![candidate("easy", 0, 20.0), candidate("other", 0, 20.0)]).unwrap();
        assert!(alike.contains("wait least under easy") && !alike.contains("other:"), "{alike}");
        assert_eq!(choice(Vec::new()), None);
    }
}
