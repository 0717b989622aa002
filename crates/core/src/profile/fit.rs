//! A model of one application: time and power for configurations it was never run in.
//!
//! The regression of the RMAP paper (Patki and others, HPDC 2015): the logarithm of time, and that
//! of power, is a polynomial of degree two in the logarithms of nodes, cores and cap, products of
//! two of them included, and its coefficients are those of least squares. A power law with a bend:
//! a product of effects becomes a sum, and an error of 10 % counts the same at any size.
//!
//! [`choose`] says which measured rows to train on, [`fit`] finds the coefficients, `errors` says
//! how far off they are on the other rows, [`complete`] fills the gaps of a profile.
//!
//! Choices made here:
//!
//! - Rows that were themselves predicted teach nothing and prove nothing: they are passed over.
//! - What never varies among the training rows is not in the polynomial, and the model says nothing
//!   about other values of it. What has two values only has no bend.
//! - A model has fewer coefficients than training rows, and rows that tell its terms apart: else it
//!   would repeat the rows and their errors, and say anything in between.
//! - Predictions are not held within the caps: a profile does not know the number of sockets.
//!   Neither is there a margin for being wrong: that is for those who spend the power.
//!
//! What it deliberately does not do: look at how applications work. Where a processor stops being
//! limited by its cap, time and power have a kink, and a polynomial cuts the corner. [`Errors`] is
//! there to show by how much.

use std::collections::BTreeMap;

use super::{Configuration, LONGEST, Origin, Profile, Row, counted};
use crate::linear::{Symmetric, dot};
use crate::units::{Span, Watts};

mod basis;
mod errors;
#[cfg(test)]
mod tests;
mod training;

use basis::Basis;
pub use errors::{Errors, Silence, Spread, errors, silence};
use training::choose_some;
pub use training::{Training, choose};

/// Why there is no model of an application.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// There are no more rows than coefficients: whatever was measured, the model would meet it.
    #[error(
        "{application}: {} too few for a model of {}; give at least {needed}",
        are(*rows, "measured row"), counted(needed.saturating_sub(1), "coefficient")
    )]
    TooFew {
        /// Whose rows they are.
        application: String,
        /// Their number.
        rows: usize,
        /// How many there must be.
        needed: usize,
    },
    /// A figure is zero, which has no logarithm.
    #[error("{application} on {configuration}: {what} is zero; correct the row or leave it out")]
    Zero {
        /// The application of the row.
        application: String,
        /// The configuration that the row describes.
        configuration: Configuration,
        /// The figure, by its name.
        what: &'static str,
    },
    /// The rows vary in too few ways to tell the effects apart.
    #[error(
        "{application}: nodes, cores and cap vary together in {}, or nearly so, and their effects \
         cannot be told apart; add rows in which they vary independently",
        counted(*rows, "row")
    )]
    Entangled {
        /// Whose rows they are.
        application: String,
        /// Their number.
        rows: usize,
    },
    /// The model does not say something about every row it was asked for.
    #[error(
        "{application}: a model of {} does not cover {left_out} of {}; train it on more rows \
         (--train)",
        counted(*trained_on, "row"), counted(*rows, "row")
    )]
    Silent {
        /// Whose rows they are.
        application: String,
        /// How many rows it was trained on.
        trained_on: usize,
        /// How many rows have no prediction.
        left_out: usize,
        /// Of how many.
        rows: usize,
    },
}

/// `1 row is`, `2 rows are`.
fn are(number: usize, what: &str) -> String {
    format!("{} {}", counted(number, what), if number == 1 { "is" } else { "are" })
}

/// A model of one application.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    application: String,
    /// The configurations it was trained on, ascending.
    trained_on: Vec<Configuration>,
    basis: Basis,
    /// Of the logarithm of seconds.
    time: Vec<f64>,
    /// Of the logarithm of watts.
    power: Vec<f64>,
}

/// What a model says about a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// How long the application takes; never zero.
    pub time: Span,
    /// What it draws, rounded up; never zero.
    pub power: Watts,
}

/// Finds the model that is nearest to the measured rows.
///
/// # Errors
///
/// If there are too few rows, one has no logarithm, or they vary in too few ways.
pub fn fit(application: &str, rows: &[Row]) -> Result<Fit, FitError> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.origin.was_run()).collect();
    for row in &rows {
        check(application, row)?;
    }
    let mut trained_on: Vec<Configuration> = rows.iter().map(|row| row.configuration).collect();
    let basis = Basis::of(&trained_on);
    let needed = basis.len() + 1;
    if rows.len() < needed {
        let application = application.to_owned();
        return Err(FitError::TooFew { application, rows: rows.len(), needed });
    }
    let terms: Vec<Vec<f64>> = trained_on.iter().map(|at| basis.terms(at)).collect();
    let column = |place: usize| terms.iter().map(|terms| terms[place]).collect();
    let columns: Vec<Vec<f64>> = (0..basis.len()).map(column).collect();
    let entangled =
        || FitError::Entangled { application: application.to_owned(), rows: rows.len() };
    let products = independent(&columns).ok_or_else(entangled)?;
    // The coefficients whose predictions are nearest to the logarithms of a figure.
    let coefficients = |figure: fn(&Row) -> f64| {
        let logarithms: Vec<f64> = rows.iter().map(|row| libm::log(figure(row))).collect();
        let with: Vec<f64> = columns.iter().map(|column| dot(column, &logarithms)).collect();
        products.solve(&with).ok_or_else(entangled)
    };
    let time = coefficients(|row| row.time.secs_f64())?;
    let power = coefficients(|row| row.power.as_f64())?;
    trained_on.sort_unstable();
    Ok(Fit { application: application.to_owned(), trained_on, basis, time, power })
}

/// Whether every figure of a row has a logarithm.
fn check(application: &str, row: &Row) -> Result<(), FitError> {
    let configuration = row.configuration;
    let figures = [
        ("the number of nodes", configuration.nodes == 0),
        ("the number of cores", configuration.cores == 0),
        ("the cap", configuration.cap == Watts::ZERO),
        ("the time", row.time == Span::ZERO),
        ("the power", row.power == Watts::ZERO),
    ];
    match figures.into_iter().find(|figure| figure.1) {
        None => Ok(()),
        Some((what, _)) => {
            Err(FitError::Zero { application: application.to_owned(), configuration, what })
        }
    }
}

/// The products of columns of terms with each other; `None` if the terms of these rows can hardly be told apart.
fn independent(columns: &[Vec<f64>]) -> Option<Symmetric> {
    /// The most by which an error of what was measured may grow in the coefficients, at worst: of
    /// 1 %, which is good measurement, to 100 %, which is no model. With it, products lose four digits of sixteen.
    const WORST_CONDITION: f64 = 100.0;
    let products = Symmetric::products(columns);
    // Terms are between −1 and 1, so that none is small for its unit's sake.
    let squared_sizes = products.eigen().values;
    let largest = squared_sizes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = squared_sizes.iter().copied().fold(f64::INFINITY, f64::min);
    (largest <= WORST_CONDITION * WORST_CONDITION * smallest).then_some(products)
}

impl Fit {
    /// The configurations it was trained on, ascending.
    pub fn trained_on(&self) -> &[Configuration] {
        &self.trained_on
    }

    /// How many coefficients it has, for time and for power each.
    pub fn coefficients(&self) -> usize {
        self.basis.len()
    }

    /// What the application takes and draws in a configuration. Nothing, if the configuration
    /// differs from the training rows in what was the same in all of them, if it has a zero, or if
    /// it is so far from them that the prediction is beyond all measure.
    pub fn predict(&self, configuration: &Configuration) -> Option<Prediction> {
        if !self.basis.covers(configuration) {
            return None;
        }
        let terms = self.basis.terms(configuration);
        let value = |coefficients: &[f64]| {
            let sum: f64 = terms.iter().zip(coefficients).map(|(term, factor)| term * factor).sum();
            libm::exp(sum)
        };
        let millis = (value(&self.time) * 1000.0).round();
        let time = (0.0..=LONGEST.millis() as f64).contains(&millis).then_some(millis as u64)?;
        let power = Watts::from_f64_rounded_up(value(&self.power))?;
        Some(Prediction {
            time: Span::from_millis(time.max(1)),
            power: power.max(Watts::from_milliwatts(1)),
        })
    }
}

/// A model of a profile, fitted to some of its measured rows.
pub fn train(profile: &Profile, training: &Training) -> Result<Fit, FitError> {
    let training = training.of(&profile.application);
    fit_to(profile, &choose(&profile.rows, &training)).map_err(|error| match error {
        // The rows that were chosen may show less than the others would.
        FitError::TooFew { application, rows, needed } => {
            FitError::TooFew { application, rows, needed: needed.max(coefficients(profile) + 1) }
        }
        other => other,
    })
}

/// As [`train`], but on this many rows at least, if there are that many, and on as many as it takes, if those asked for are
/// too few or all alike in something that varies among the others.
pub fn train_on_enough(
    profile: &Profile,
    training: &Training,
    at_least: usize,
) -> Result<Fit, FitError> {
    let training = training.of(&profile.application);
    let measured = profile.rows.iter().filter(|row| row.origin.was_run()).count();
    let coefficients = coefficients(profile);
    let mut count = choose(&profile.rows, &training).len().max(coefficients + 1).max(at_least);
    loop {
        let fit = fit_to(profile, &choose_some(&profile.rows, &training, count));
        let is_whole = fit.as_ref().is_ok_and(|fit| fit.coefficients() == coefficients);
        if is_whole || count >= measured {
            return fit;
        }
        count += count.div_ceil(4);
    }
}

/// A model of these rows of a profile.
fn fit_to(profile: &Profile, places: &[usize]) -> Result<Fit, FitError> {
    let rows: Vec<Row> = places.iter().map(|place| profile.rows[*place]).collect();
    fit(&profile.application, &rows)
}

/// How many coefficients a model of all measured rows has.
fn coefficients(profile: &Profile) -> usize {
    let measured = profile.rows.iter().filter(|row| row.origin.was_run());
    Basis::of(&measured.map(|row| row.configuration).collect::<Vec<_>>()).len()
}

/// A whole profile as a model says that was fitted to some of its measured rows: what a scheduler
/// believes that has seen no more than those.
///
/// # Errors
///
/// If there is no model, or it does not say something about every row.
pub fn predicted(profile: &Profile, training: &Training) -> Result<Profile, FitError> {
    let fit = train(profile, training)?;
    let predict = |row: &Row| {
        let Prediction { time, power } = fit.predict(&row.configuration)?;
        Some(Row { time, power, origin: Origin::Predicted, ..*row })
    };
    let rows: Vec<Row> = profile.rows.iter().filter_map(predict).collect();
    let application = profile.application.clone();
    match profile.rows.len() - rows.len() {
        0 => Ok(Profile { application, rows }),
        left_out => Err(FitError::Silent {
            application,
            trained_on: fit.trained_on.len(),
            left_out,
            rows: profile.rows.len(),
        }),
    }
}

/// The profile's rows, with a predicted one for each of the configurations that was not measured;
/// by configuration, ascending, each once. What the model says nothing about is left out.
pub fn complete(
    profile: &Profile,
    fit: &Fit,
    configurations: impl IntoIterator<Item = Configuration>,
) -> Vec<Row> {
    let mut rows: BTreeMap<Configuration, Row> =
        profile.rows.iter().map(|row| (row.configuration, *row)).collect();
    for configuration in configurations {
        let measured = rows.get(&configuration).is_some_and(|row| row.origin.was_run());
        let prediction = fit.predict(&configuration).filter(|_| !measured);
        if let Some(Prediction { time, power }) = prediction {
            let row = Row { configuration, time, power, origin: Origin::Predicted };
            rows.insert(configuration, row);
        }
    }
    rows.into_values().collect()
}
