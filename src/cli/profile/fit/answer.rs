//! The result of a fit, as text and as JSON.

use serde::Serialize;

use super::{FitReport, measured};
use crate::cli::profile::counted;
use crate::profile::fit::{Silence, Spread as Sizes};
use crate::report::{Facts, Side, Spread, boxes, columns};

/// The result of a fit, in JSON. Errors are shares of what was measured.
#[derive(Serialize)]
struct Answer<'a> {
    application: &'a str,
    train: String,
    choose: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    measured: usize,
    trained_on: usize,
    coefficients: usize,
    compared: usize,
    no_prediction: usize,
    time_error: Option<Quartiles>,
    power_error: Option<Quartiles>,
    power_not_foreseen: Option<NotForeseen>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<Saved>,
}

#[derive(Serialize)]
pub(super) struct Quartiles {
    lower_quartile: f64,
    median: f64,
    upper_quartile: f64,
    mean: f64,
    max: f64,
}

/// Power beyond the prediction.
#[derive(Serialize)]
struct NotForeseen {
    /// The share of rows at which it is more than a tenth of what was drawn.
    over_10_percent: f64,
    /// The largest share of what was drawn.
    max: f64,
}

#[derive(Serialize)]
struct Saved {
    added: usize,
    replaced: usize,
}

impl From<&Sizes> for Quartiles {
    fn from(sizes: &Sizes) -> Self {
        Quartiles {
            lower_quartile: sizes.lower_quartile,
            median: sizes.median,
            upper_quartile: sizes.upper_quartile,
            mean: sizes.mean,
            max: sizes.maximum,
        }
    }
}

impl FitReport<'_> {
    pub(super) fn json(&self) -> anyhow::Result<String> {
        let errors = self.errors.as_ref();
        let answer = Answer {
            application: &self.profile.application,
            train: self.arguments.train().to_string(),
            choose: self.arguments.choose.name(),
            seed: self.arguments.seed_used(),
            measured: self.measured(),
            trained_on: self.model.trained_on().len(),
            coefficients: self.model.coefficients(),
            compared: errors.map_or(0, |errors| errors.points),
            no_prediction: self.silence.rows(),
            time_error: errors.map(|errors| (&errors.time).into()),
            power_error: errors.map(|errors| (&errors.power).into()),
            power_not_foreseen: errors.map(|errors| NotForeseen {
                over_10_percent: errors.power_far_too_low,
                max: errors.worst_power_too_low,
            }),
            saved: self.saved.map(|saved| Saved { added: saved.added, replaced: saved.replaced }),
        };
        Ok(serde_json::to_string_pretty(&answer)? + "\n")
    }

    pub(super) fn text(&self) -> String {
        let mut facts = Facts::default();
        let (trained_on, measured) = (self.model.trained_on().len(), self.measured());
        let chosen = self.arguments.chosen();
        let coefficients = counted(self.model.coefficients(), "coefficient");
        facts.add("application", self.profile.application.clone());
        facts.add(
            "trained on",
            format!("{trained_on} of {measured} measured rows ({chosen}); {coefficients}"),
        );
        if self.arguments.train.is_none() && trained_on > self.asked() {
            facts.add("", format!("{} of them would be too few", self.arguments.train()));
        }
        let compared = match &self.errors {
            Some(errors) => format!("with {}", counted(errors.points, "other row")),
            None if trained_on == measured => "with nothing: no row is left".to_owned(),
            None => "with nothing".to_owned(),
        };
        facts.add("compared", compared);
        let Silence { uncovered, beyond_measure } = self.silence;
        for (count, why) in [
            (uncovered, "unlike all training rows; see --train"),
            (beyond_measure, "prediction too large"),
        ] {
            if count > 0 {
                facts.add("", format!("no prediction: {} ({why})", counted(count, "row")));
            }
        }
        if let Some(errors) = &self.errors {
            let [often, worst] =
                [errors.power_far_too_low, errors.worst_power_too_low].map(percent);
            let low = format!("over 10 % too low on {often} % of them, at worst {worst} %");
            facts.add("power", format!("predicted {low}"));
        }
        if let Some(saved) = self.saved {
            facts.add(
                "saved",
                match (saved.added + saved.replaced, saved.replaced) {
                    (0, _) => "nothing: all combinations were measured".to_owned(),
                    (count, 0) => counted(count, "predicted row"),
                    (count, earlier) => format!(
                        "{}, {earlier} of them replace earlier ones",
                        counted(count, "predicted row")
                    ),
                },
            );
        }
        let mut text = facts.text();
        if let Some(errors) = &self.errors {
            let what = "predicted less (below 0) or more than measured (%)";
            let table = table("error (%)", &[("time", &errors.time), ("power", &errors.power)]);
            text += &format!("\n{table}\n{}", boxes(what, &self.deviations()));
        }
        text
    }

    /// The errors of predictions, in per cent of the measured values.
    fn deviations(&self) -> [Spread; 2] {
        let trained_on = self.model.trained_on();
        let (mut times, mut powers) = (Vec::new(), Vec::new());
        for row in measured(self.profile) {
            let is_new = trained_on.binary_search(&row.configuration).is_err();
            if let Some(said) = self.model.predict(&row.configuration).filter(|_| is_new) {
                let off = |said: f64, measured: f64| 100.0 * (said / measured - 1.0);
                times.push(off(said.time.secs_f64(), row.time.secs_f64()));
                powers.push(off(said.power.as_f64(), row.power.as_f64()));
            }
        }
        [("time", times), ("power", powers)].map(|(name, values)| spread(name, values))
    }
}

/// How values are spread, for a plot.
pub(super) fn spread(name: &str, mut values: Vec<f64>) -> Spread {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    // Of two values equally near, the upper one: a cell of a plot is wider than that.
    let at = |quarter: usize| values.get((last * quarter + 2) / 4).copied();
    let values = [0, 1, 2, 3, 4].map(|quarter| at(quarter).unwrap_or(f64::NAN));
    Spread { name: name.to_owned(), values }
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// How far predictions are off in either direction, one line for each set of them.
pub(super) fn table(heading: &str, sets: &[(&str, &Sizes)]) -> String {
    let row = |(name, sizes): &(&str, &Sizes)| {
        let figures =
            [sizes.lower_quartile, sizes.median, sizes.upper_quartile, sizes.mean, sizes.maximum];
        let mut row = vec![(*name).to_owned()];
        row.extend(figures.map(percent));
        row
    };
    let headings = [
        (heading, Side::Left),
        ("lower quartile", Side::Right),
        ("median", Side::Right),
        ("upper quartile", Side::Right),
        ("mean", Side::Right),
        ("maximum", Side::Right),
    ];
    columns(&headings, &sets.iter().map(row).collect::<Vec<_>>())
}
