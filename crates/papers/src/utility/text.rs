//! The report as tables for people.

use std::fmt::Write;

use super::{Figures, Interval, Report};
use busbar_core::policy::utility::Heuristic;

/// The columns of the grid: environment, and whether there is a filter.
const COLUMNS: [(&str, bool); 4] =
    [("queued", false), ("queued", true), ("polled", false), ("polled", true)];

impl Report {
    fn figures(
        &self,
        heuristic: Heuristic,
        (environment, filter): (&str, bool),
    ) -> Option<&Figures> {
        self.grid.iter().find(|figures| {
            (figures.heuristic, &*figures.environment, figures.filter)
                == (heuristic.name(), environment, filter)
        })
    }
}

fn with_width(interval: &Interval, decimals: usize) -> String {
    match interval.half_width {
        Some(half) => format!("{:.decimals$} ±{half:.decimals$}", interval.mean),
        None => format!("{:.decimals$}", interval.mean),
    }
}

/// A table with a row for each heuristic and a column for each environment and filter.
fn grid(text: &mut String, report: &Report, title: &str, cell: &dyn Fn(&Figures) -> String) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{title}");
    let _ = write!(text, "  {:<22}", "");
    for (environment, filter) in COLUMNS {
        let heading = format!("{environment}{}", if filter { ", filter" } else { "" });
        let _ = write!(text, "{heading:>19}");
    }
    text.push('\n');
    for heuristic in Heuristic::ALL {
        let _ = write!(text, "  {:<22}", heuristic.name());
        for column in COLUMNS {
            let value = report.figures(heuristic, column).map_or("-".to_owned(), cell);
            let _ = write!(text, "{value:>19}");
        }
        text.push('\n');
    }
    text.push('\n');
}

/// Every fourth hour of the day, for two heuristics.
fn by_hour(
    text: &mut String,
    report: &Report,
    title: &str,
    values: &dyn Fn(&Figures) -> Vec<Interval>,
    decimals: usize,
) {
    let _ = writeln!(text, "{title}");
    for name in ["max-utility", "max-upe"] {
        let Ok(heuristic) = name.parse::<Heuristic>() else { continue };
        for column in COLUMNS {
            let Some(figures) = report.figures(heuristic, column) else { continue };
            let filter = if column.1 { ", filter" } else { "" };
            let _ = write!(text, "  {:<30}", format!("{name}, {}{filter}", column.0));
            for (hour, value) in values(figures).iter().enumerate() {
                if (hour + 1).is_multiple_of(4) {
                    let _ = write!(text, "{:>18}", with_width(value, decimals));
                }
            }
            text.push('\n');
        }
    }
    text.push('\n');
}

/// The whole report.
pub fn describe(report: &Report) -> String {
    let mut text = format!(
        "{} trials. Max UPT, queued, without a limit: {} GJ; the budget is 70 % of it: {:.3} GJ \
         (the paper: 1.11 GJ)\n\n",
        report.trials,
        with_width(&report.unlimited_gj, 3),
        report.energy_gj
    );
    let text_of = &mut text;
    grid(text_of, report, "Utility earned (Fig. 4), with 95 % confidence intervals", &|figures| {
        with_width(&figures.utility, 0)
    });
    for (place, start) in [(3, 1), (0, 8)] {
        let title = format!("Portion of what tasks worth {start} offered (Fig. 5), in per cent");
        grid(text_of, report, &title, &|figures| {
            let Interval { mean, half_width } = figures.portions[place];
            let half_width = half_width.map(|half| 100.0 * half);
            with_width(&Interval { mean: 100.0 * mean, half_width }, 1)
        });
    }
    by_hour(
        text_of,
        report,
        "Utility earned after 4, 8, … hours (Fig. 6)",
        &|figures| figures.utility_by_hour.clone(),
        0,
    );
    by_hour(
        text_of,
        report,
        "Energy consumed after 4, 8, … hours, in GJ",
        &|figures| figures.energy_by_hour_gj.clone(),
        3,
    );
    grid(text_of, report, "Hours until 99 % of the energy was consumed; trials", &|figures| {
        match &figures.ran_out_after_h {
            Some(hours) => format!("{:.1}; {:.0} %", hours.mean, figures.ran_out),
            None => "not; 0 %".to_owned(),
        }
    });
    grid(text_of, report, "Tasks completed / dropped / left, on average", &|figures| {
        format!("{:.0}/{:.0}/{:.0}", figures.completed, figures.dropped, figures.left)
    });
    grid(
        text_of,
        report,
        "Mapping events: mean and longest, in µs (the paper: about 100, and 3000)",
        &|figures| format!("{:.0}, {:.0}", figures.event_mean_us, figures.event_worst_us),
    );
    statements(text_of, report);
    text
}

fn statements(text: &mut String, report: &Report) {
    let _ = writeln!(text, "What the paper states");
    for statement in &report.statements {
        let [confirmed, contradicted, open] = statement.counts;
        let _ = writeln!(
            text,
            "  {}: {} ({confirmed} comparisons confirmed, {contradicted} contradicted, {open} open)",
            statement.statement,
            statement.verdict.name()
        );
        for part in &statement.parts {
            let Interval { mean, half_width } = part.difference;
            let half = half_width.map_or(String::new(), |half| format!(" ±{half:.1}"));
            let (verdict, unit) = (part.verdict.name(), part.unit);
            let _ = writeln!(text, "    {verdict:<13} {mean:>+7.1}{half} {unit}  {}", part.what);
        }
    }
}
