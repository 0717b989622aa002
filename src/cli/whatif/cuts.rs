//! Whether the cuts of a budget overlap the time of the records, and the figures within them.

use crate::budget::{Allowance, BudgetSpec, Limit, WindowSpec};
use crate::calendar::{RunDates, Windows};
use crate::experiment::CheckedExperiment;
use crate::metrics::{Summary, WindowFigures};
use crate::report::html::Aside;
use crate::report::{human_energy, human_power, human_time};
use crate::units::Instant;

/// From when until when jobs came, ran or waited, in any of the runs.
#[derive(Clone, Copy)]
pub(super) struct Period {
    pub(super) from: Instant,
    pub(super) until: Instant,
}

impl Period {
    /// In words: its dates, or its length if the dates are unknown.
    pub(super) fn words(self, dates: &RunDates) -> String {
        match &dates.calendar {
            Ok(calendar) => {
                let day = |at: Instant| calendar.wall(at).date().strftime("%-d %B %Y").to_string();
                match (day(self.from), day(self.until)) {
                    (first, last) if first == last => format!("on {first}"),
                    (first, last) => format!("from {first} to {last}"),
                }
            }
            Err(_) => format!("over {}", human_time(self.until.since(self.from).secs_f64())),
        }
    }
}

/// How a changing budget behaves in a period.
pub(super) struct Cuts {
    /// Whether the limit never changes.
    pub(super) is_constant: bool,
    /// A sentence if the period has no cut.
    pub(super) none: Option<String>,
    /// A sentence for each rule that never applies in the period, if others do.
    pub(super) never: Vec<String>,
}

impl Cuts {
    /// A budget in a period, which these words describe.
    pub(super) fn of(
        spec: &BudgetSpec,
        checked: &CheckedExperiment<'_>,
        period: Period,
        words: &str,
    ) -> Self {
        let (budget, dates) = (checked.budget(0, 0), checked.dates(0));
        let is_constant = matches!(spec, BudgetSpec::Constant(_));
        let mut never = Vec::new();
        if let BudgetSpec::Rules(rules) = spec {
            for (condition, value) in rules.iter() {
                let holds = Windows::of(condition, dates)
                    .is_ok_and(|windows| windows.touch(period.from, period.until));
                if !holds {
                    never.push(format!("'{condition}: {value}'"));
                }
            }
        }
        let is_cut = budget.cuts().touch(period.from, period.until);
        let none = (!is_constant && !is_cut).then(|| {
            let limit_now = budget.at(period.from);
            let limit = match budget.is_limited() && limit_now != crate::units::Watts::UNLIMITED {
                true => format!("the limit is {} all the time", human_power(limit_now.as_f64())),
                false => "there is no limit at any time".to_owned(),
            };
            let rules = match &never[..] {
                [] => String::new(),
                [one] => format!(": the rule {one} never applies then"),
                several => format!(": the rules {} never apply then", several.join(" and ")),
            };
            // A limit below what the machine can draw is felt, even if it never falls.
            match limit_now < checked.machine(0, 0).max_power() {
                true => format!(
                    "The limit does not change during these records, {words}{rules}, and {limit}."
                ),
                false => {
                    format!(
                        "The budget has no cut during these records, {words}{rules}, and {limit}."
                    )
                }
            }
        });
        let never = match none {
            Some(_) => Vec::new(),
            None => never
                .iter()
                .map(|rule| {
                    format!(
                        "the rule {rule} of the budget never applies during these records, {words}"
                    )
                })
                .collect(),
        };
        Cuts { is_constant, none, never }
    }
}

/// Whether a budget is given in watts, and not only as shares of the machine's maximum.
pub(super) fn names_watts(spec: &BudgetSpec) -> bool {
    let is_power = |allowance: &Allowance| matches!(allowance, Allowance::Limited(Limit::Power(_)));
    match spec {
        BudgetSpec::Constant(allowance) => is_power(allowance),
        BudgetSpec::Rules(rules) => rules.values().any(is_power),
        BudgetSpec::File(_) => false,
    }
}

/// A table of the requested time windows, with a row for each run.
pub(super) fn window_table<'a>(
    window: &WindowSpec,
    rows: impl Iterator<Item = (&'a str, &'a Summary)>,
) -> Option<Aside> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let row = |(what, summary): (&str, &Summary)| {
        let WindowFigures { time_s, energy_j, mean_power_w, peak_power_w, .. } =
            summary.window.as_ref()?;
        let figures = summary.window.as_ref()?;
        Some(vec![
            what.to_owned(),
            human_time(*time_s),
            or_dash(mean_power_w.map(human_power)),
            human_power(*peak_power_w),
            human_energy(*energy_j),
            figures.submitted.to_string(),
            figures.started.to_string(),
            or_dash(figures.mean_wait_s.map(human_time)),
        ])
    };
    let rows: Vec<Vec<String>> = rows.filter_map(row).collect();
    let headings =
        ["", "time", "mean power", "peak", "energy", "submitted", "started", "their mean wait"];
    let (title, about) = match window {
        WindowSpec::Cuts => (
            "In the cuts".to_owned(),
            "all times at which the limit is below its maximum; for runs without a budget, the same times"
                .to_owned(),
        ),
        WindowSpec::When(when) => {
            (format!("In the window '{when}'"), "all runs at the same times".to_owned())
        }
    };
    (!rows.is_empty()).then(|| Aside {
        title,
        about: format!("{about}. Their mean wait is that of the jobs that were submitted then"),
        headings: headings.map(str::to_owned).to_vec(),
        rows,
        picture: None,
    })
}
