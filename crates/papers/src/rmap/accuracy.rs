//! How well a tenth of the rows predicts the others.
//!
//! The paper gives limits for its eight applications. Some are said to hold for each application,
//! others for all points together; where it is not clear which is meant, both are worth knowing.
//! So every figure is given for the worst of the applications and for all of them pooled.

use crate::Finding;
use crate::sample::{Published, Rows, Sample};
use busbar_core::profile::cab::Preset;
use busbar_core::profile::fit::{self, Fit, FitError, Training};
use busbar_core::profile::{Profile, Row};
use busbar_core::units::Share;

/// The figures, with what the paper says they are below, in per cent.
const LIMITS: [(&str, f64); 6] = [
    ("time, mean error", 10.0),
    ("time, median error", 7.7),
    ("time, third quartile", 13.2),
    ("time, largest error", 33.0),
    ("power more than 10 % too low, share of rows", 4.0),
    ("power, worst under-prediction", 15.0),
];

const TRAINED: Share = Share::percent(10);

/// Training as in the paper.
pub(super) fn random_rows(seed: u64) -> Training {
    Training::Random { share: TRAINED, seed }
}

type Figures = [f64; LIMITS.len()];

/// The figures of one draw of measurements.
pub(super) struct Accuracy {
    preset: Preset,
    random: Errors,
    designed: Errors,
}

/// In per cent.
struct Errors {
    worst: Figures,
    pooled: Figures,
}

impl Accuracy {
    pub(super) fn of(preset: Preset, measured: &[Profile], seed: u64) -> Result<Self, FitError> {
        Ok(Accuracy {
            preset,
            random: Errors::of(measured, &random_rows(seed))?,
            designed: Errors::of(measured, &Training::Designed { share: TRAINED })?,
        })
    }
}

impl Errors {
    fn of(measured: &[Profile], training: &Training) -> Result<Self, FitError> {
        let mut worst = [0.0f64; LIMITS.len()];
        let mut all = Vec::new();
        for profile in measured {
            let misses = misses(&fit::train(profile, training)?, &profile.rows);
            for (worst, figure) in worst.iter_mut().zip(figures(&misses)) {
                *worst = worst.max(figure);
            }
            all.extend(misses);
        }
        Ok(Errors { worst, pooled: figures(&all) })
    }
}

/// How far a prediction is too low, in per cent of what was measured; negative if too high.
struct Miss {
    time: f64,
    power: f64,
}

/// The rows that a model was not trained on.
fn misses(fit: &Fit, rows: &[Row]) -> Vec<Miss> {
    let is_new = |row: &&Row| fit.trained_on().binary_search(&row.configuration).is_err();
    let too_low = |predicted: f64, measured: f64| 100.0 * (1.0 - predicted / measured);
    let miss = |row: &Row| {
        let predicted = fit.predict(&row.configuration)?;
        Some(Miss {
            time: too_low(predicted.time.secs_f64(), row.time.secs_f64()),
            power: too_low(predicted.power.as_f64(), row.power.as_f64()),
        })
    };
    rows.iter().filter(is_new).filter_map(miss).collect()
}

/// In the order of the limits.
fn figures(misses: &[Miss]) -> Figures {
    let time: Sample = misses.iter().map(|miss| miss.time.abs()).collect();
    let power: Sample = misses.iter().map(|miss| miss.power).collect();
    [
        time.mean(),
        time.quartile(2),
        time.quartile(3),
        time.largest(),
        power.share(|too_low| too_low > 10.0),
        power.largest(),
    ]
}

/// The figures of all draws.
pub(super) fn findings(accuracies: &[Accuracy]) -> Vec<Finding> {
    type Part = fn(&Accuracy) -> &Figures;
    let parts: [(&str, Part); 4] = [
        ("random rows, worst application", |accuracy| &accuracy.random.worst),
        ("random rows, all applications", |accuracy| &accuracy.random.pooled),
        ("designed rows, worst application", |accuracy| &accuracy.designed.worst),
        ("designed rows, all applications", |accuracy| &accuracy.designed.pooled),
    ];
    let mut findings = Vec::new();
    for preset in Preset::ALL {
        for (name, part) in parts {
            let mut rows =
                Rows::new("Model errors (published: below)", format!("{preset}, {name}"));
            for (place, (metric, limit)) in LIMITS.into_iter().enumerate() {
                let of_preset = accuracies.iter().filter(|accuracy| accuracy.preset == preset);
                let sample: Sample = of_preset.map(|accuracy| part(accuracy)[place]).collect();
                rows.add(metric, Published::Below(limit), &sample, "%");
            }
            findings.extend(rows.findings);
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use busbar_core::profile::cab;

    /// The library's own account of one application says the same.
    #[test]
    fn one_application_as_the_library_has_it() {
        for profile in cab::generate(Preset::CabContended, 7) {
            let fit = fit::train(&profile, &random_rows(7)).unwrap();
            let errors = fit::errors(&fit, &profile.rows).unwrap();
            let expected = [
                errors.time.mean,
                errors.time.median,
                errors.time.upper_quartile,
                errors.time.maximum,
                errors.power_far_too_low,
                errors.worst_power_too_low,
            ];
            for (figure, expected) in figures(&misses(&fit, &profile.rows)).iter().zip(expected) {
                assert!((figure - 100.0 * expected).abs() < 1e-9, "{figure} {expected}");
            }
        }
    }

    /// Extremes are those of the worst application; a mean over all is not above the worst mean.
    #[test]
    fn the_worst_bounds_the_pool() {
        let errors = Errors::of(&cab::generate(Preset::Cab, 3), &random_rows(3)).unwrap();
        let Errors { worst, pooled } = errors;
        assert_eq!((worst[3], worst[5]), (pooled[3], pooled[5]));
        for (worst, pooled) in worst.iter().zip(pooled) {
            assert!(*worst >= pooled);
        }
    }
}
