//! A mean with its confidence interval.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The mean of a sample, and how far the true one may be from it: half of the 95 % confidence
/// interval by Student's t. Of one draw there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The mean of the values.
    pub mean: f64,
    /// Half the width of the interval; null for a single draw.
    pub half_width: Option<f64>,
}

impl FromIterator<f64> for Interval {
    fn from_iter<I: IntoIterator<Item = f64>>(figures: I) -> Self {
        let figures: Vec<f64> = figures.into_iter().collect();
        let count = figures.len() as f64;
        let mean = figures.iter().sum::<f64>() / count.max(1.0);
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        let half_width = StudentsT::new(0.0, 1.0, count - 1.0)
            .ok()
            .map(|t| t.inverse_cdf(0.975) * (squares / (count - 1.0) / count).sqrt());
        Interval { mean, half_width }
    }
}

impl Interval {
    /// The lowest mean that is plausible.
    pub fn low(&self) -> f64 {
        self.mean - self.half_width.unwrap_or(f64::INFINITY)
    }

    /// The highest mean that is plausible.
    pub fn high(&self) -> f64 {
        self.mean + self.half_width.unwrap_or(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The t value for four degrees of freedom is 2.776; the deviation of 1 … 5 is √2.5.
    #[test]
    fn by_hand() {
        let interval: Interval = [1.0, 2.0, 3.0, 4.0, 5.0].into_iter().collect();
        assert_eq!(interval.mean, 3.0);
        let expected = 2.776_445 * (2.5f64 / 5.0).sqrt();
        assert!((interval.half_width.unwrap() - expected).abs() < 1e-5);
        assert!((interval.low() - 1.0368).abs() < 1e-3 && (interval.high() - 4.9632).abs() < 1e-3);
        let single: Interval = [7.0].into_iter().collect();
        assert_eq!((single.mean, single.half_width), (7.0, None));
        assert_eq!(single.low(), f64::NEG_INFINITY);
    }
}
