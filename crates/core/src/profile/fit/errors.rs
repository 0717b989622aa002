//! How far off a model is.

use super::{Fit, Row};

/// How far predictions are off, in either direction, as shares of what was measured.
///
/// A quartile that falls between two points is as far between them as it falls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// A quarter of the points is less far off.
    pub lower_quartile: f64,
    /// Half of them.
    pub median: f64,
    /// Three quarters of them.
    pub upper_quartile: f64,
    /// The mean of the values.
    pub mean: f64,
    /// The largest distance from the measured value.
    pub maximum: f64,
}

/// How far off a model is on rows it was not trained on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// How many rows were compared.
    pub points: usize,
    /// Errors of predicted times.
    pub time: Spread,
    /// Errors of predicted power.
    pub power: Spread,
    /// The share of points at which more than 10 % of the power drawn was not foreseen.
    pub power_far_too_low: f64,
    /// The largest share of a power drawn that was not foreseen.
    pub worst_power_too_low: f64,
}

/// How many rows a model says nothing about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// They differ from the training rows in what is the same in all of those.
    pub uncovered: usize,
    /// What the model says of them is beyond all measure.
    pub beyond_measure: usize,
}

impl Silence {
    /// All of them.
    pub fn rows(&self) -> usize {
        self.uncovered + self.beyond_measure
    }
}

/// The measured rows that a model was not trained on.
fn others<'a>(fit: &'a Fit, rows: &'a [Row]) -> impl Iterator<Item = &'a Row> {
    rows.iter().filter(|row| {
        let trained = fit.trained_on.binary_search(&row.configuration).is_ok();
        row.origin.was_run() && !trained
    })
}

/// How many of the measured rows that a model was not trained on have no prediction, and are not
/// among those of [`errors`].
pub fn silence(fit: &Fit, rows: &[Row]) -> Silence {
    let mut silence = Silence::default();
    for row in others(fit, rows) {
        match fit.predict(&row.configuration) {
            Some(_) => {}
            None if fit.basis.covers(&row.configuration) => silence.beyond_measure += 1,
            None => silence.uncovered += 1,
        }
    }
    silence
}

/// Compares a model with the measured rows that it was not trained on and has something to say
/// about; [`silence`] counts the others. `None` if there are none.
pub fn errors(fit: &Fit, rows: &[Row]) -> Option<Errors> {
    let (mut time, mut power) = (Vec::new(), Vec::new());
    for row in others(fit, rows) {
        let Some(prediction) = fit.predict(&row.configuration) else { continue };
        let time_error = too_low(prediction.time.secs_f64(), row.time.secs_f64());
        let power_error = too_low(prediction.power.as_f64(), row.power.as_f64());
        // A measured zero has no relative error.
        if let (Some(time_error), Some(power_error)) = (time_error, power_error) {
            time.push(time_error);
            power.push(power_error);
        }
    }
    let far = power.iter().filter(|&&share| share > 0.1).count();
    Some(Errors {
        points: power.len(),
        time: Spread::of(&time)?,
        power: Spread::of(&power)?,
        power_far_too_low: far as f64 / power.len() as f64,
        worst_power_too_low: power.iter().copied().fold(0.0, f64::max),
    })
}

/// How much of what was measured was not foreseen, as a share; negative if too much was.
fn too_low(predicted: f64, measured: f64) -> Option<f64> {
    (measured > 0.0).then(|| 1.0 - predicted / measured)
}

impl Spread {
    /// The spread of deviations, whatever their sign; `None` of no deviation.
    pub fn of(deviations: &[f64]) -> Option<Self> {
        let mut sizes: Vec<f64> = deviations.iter().map(|deviation| deviation.abs()).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        let maximum = *sizes.last()?;
        let quartile = |quarters: usize| {
            let place = (sizes.len() - 1) * quarters;
            let (whole, part) = (place / 4, (place % 4) as f64 / 4.0);
            let next = sizes.get(whole + 1).copied().unwrap_or(maximum);
            sizes[whole] + part * (next - sizes[whole])
        };
        Some(Spread {
            lower_quartile: quartile(1),
            median: quartile(2),
            upper_quartile: quartile(3),
            mean: sizes.iter().sum::<f64>() / sizes.len() as f64,
            maximum,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_worked_out_by_hand() {
        // Sizes 1, 2, 4, 8, 16: the quartiles are points.
        let spread = Spread::of(&[-4.0, 1.0, -16.0, 2.0, 8.0]).unwrap();
        let expected = Spread {
            lower_quartile: 2.0,
            median: 4.0,
            upper_quartile: 8.0,
            mean: 6.2,
            maximum: 16.0,
        };
        assert_eq!(spread, expected);
        // Sizes 1, 2, 4, 8: at ¾ of the way from 1 to 2, ½ from 2 to 4, ¼ from 4 to 8.
        let spread = Spread::of(&[8.0, 4.0, 2.0, 1.0]).unwrap();
        let expected = Spread {
            lower_quartile: 1.75,
            median: 3.0,
            upper_quartile: 5.0,
            mean: 3.75,
            maximum: 8.0,
        };
        assert_eq!(spread, expected);
        let one = Spread::of(&[-0.5]).unwrap();
        assert_eq!((one.lower_quartile, one.median, one.upper_quartile), (0.5, 0.5, 0.5));
        assert_eq!(Spread::of(&[]), None);
    }
}
