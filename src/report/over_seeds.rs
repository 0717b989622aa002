//! A figure over several seeds.

use serde::Serialize;

/// A value over several seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct OverSeeds {
    /// The mean over seeds.
    pub(crate) mean: f64,
    /// Its standard deviation, if there is more than one value.
    pub(crate) deviation: Option<f64>,
}

impl OverSeeds {
    /// Of some values; none if there are none.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
        Some(OverSeeds { mean, deviation })
    }
}
