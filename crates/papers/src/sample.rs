//! One figure of many draws, and what they amount to.

use crate::{Finding, Variation};

/// The figure of each draw.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample(Vec<f64>);

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(figures: I) -> Self {
        Sample(figures.into_iter().collect())
    }
}

impl Sample {
    /// Zero, if there are no draws.
    pub(super) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len().max(1) as f64
    }

    /// The standard deviation.
    pub(super) fn deviation(&self) -> f64 {
        let mean = self.mean();
        self.0.iter().map(|figure| (figure - mean).powi(2)).collect::<Sample>().mean().sqrt()
    }

    /// How many of the draws are so, in per cent.
    pub(super) fn share(&self, is_so: impl Fn(f64) -> bool) -> f64 {
        let so = |figure: &f64| if is_so(*figure) { 100.0 } else { 0.0 };
        self.0.iter().map(so).collect::<Sample>().mean()
    }

    pub(super) fn largest(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    pub(super) fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The figure below which so many quarters of the sample lie; between two of them, as far
    /// between them as it falls.
    pub(super) fn quartile(&self, quarters: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
        let place = last * quarters.min(4);
        let (whole, part) = (place / 4, (place % 4) as f64 / 4.0);
        let next = sorted[(whole + 1).min(last)];
        sorted[whole] + part * (next - sorted[whole])
    }
}

/// What the paper says of a figure, and so when a draw agrees with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Published {
    /// The paper says nothing about it.
    Nothing,
    /// A number that no single draw is held against.
    Number(f64),
    /// A change: a draw agrees that has the same sign.
    Change(f64),
    /// That it is more than nothing, but not how much.
    Rise,
    /// A limit: a draw agrees that is below.
    Below(f64),
}

impl Published {
    fn number(self) -> Option<f64> {
        match self {
            Published::Nothing | Published::Rise => None,
            Published::Number(number) | Published::Change(number) | Published::Below(number) => {
                Some(number)
            }
        }
    }

    fn agreeing(self, sample: &Sample) -> Option<f64> {
        match self {
            Published::Nothing | Published::Number(_) => None,
            Published::Change(change) => Some(sample.share(|figure| figure * change > 0.0)),
            Published::Rise => Some(sample.share(|figure| figure > 0.0)),
            Published::Below(limit) => Some(sample.share(|figure| figure < limit)),
        }
    }
}

/// The rows of one experiment at one place.
pub(super) struct Rows {
    pub(super) experiment: &'static str,
    pub(super) place: String,
    pub(super) findings: Vec<Finding>,
}

impl Rows {
    pub(super) fn new(experiment: &'static str, place: String) -> Self {
        Rows { experiment, place, findings: Vec::new() }
    }

    pub(super) fn add(
        &mut self,
        metric: impl Into<String>,
        published: Published,
        sample: &Sample,
        unit: &'static str,
    ) {
        self.findings.push(Finding {
            experiment: self.experiment,
            workload: self.place.clone(),
            metric: metric.into(),
            published: published.number(),
            measured: Some(sample.mean()),
            unit,
            variation: Some(Variation {
                deviation: sample.deviation(),
                agreeing: published.agreeing(sample),
            }),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_by_hand() {
        let sample: Sample = [4.0, -2.0, 0.0, 2.0].into_iter().collect();
        assert_eq!(sample.mean(), 1.0);
        // Squares of 3, −3, −1 and 1: 20 / 4.
        assert_eq!(sample.deviation(), 5.0f64.sqrt());
        assert_eq!((sample.least(), sample.largest()), (-2.0, 4.0));
        assert_eq!(sample.share(|figure| figure > 0.0), 50.0);
        // Of −2, 0, 2, 4: ¾ of the way from −2 to 0, half from 0 to 2, a quarter from 2 to 4.
        assert_eq!([1, 2, 3, 4].map(|quarters| sample.quartile(quarters)), [-0.5, 1.0, 2.5, 4.0]);
    }

    #[test]
    fn a_draw_agrees_by_sign_or_by_limit() {
        let sample: Sample = [4.0, -2.0, 0.0, 2.0].into_iter().collect();
        assert_eq!(Published::Nothing.agreeing(&sample), None);
        assert_eq!(Published::Number(7.0).agreeing(&sample), None);
        // Zero has neither sign.
        assert_eq!(Published::Change(18.5).agreeing(&sample), Some(50.0));
        assert_eq!(Published::Change(-18.5).agreeing(&sample), Some(25.0));
        assert_eq!(Published::Rise.agreeing(&sample), Some(50.0));
        assert_eq!(Published::Below(4.0).agreeing(&sample), Some(75.0));
    }
}
