//! How far off a policy's predictions were.
//!
//! An error is a factor: 2 if a prediction was twice what came, and 2 if it was half of it. So predictions that
//! are too large and too small count alike, and jobs of seconds and of days can be put together.

use serde::{Deserialize, Serialize};

use super::log2::log2;

/// How far off the predictions of a policy were, for the jobs that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Predictions {
    /// Of run times. The baseline is the time that users asked for.
    #[serde(default)]
    pub time: Option<Accuracy>,
    /// Of the power that jobs drew. The baseline is what the model says of the job as it ran. Nothing if
    /// the policy learns nothing of power, or if nobody measures it.
    #[serde(default)]
    pub power: Option<Accuracy>,
}

/// The errors of one kind of predictions, and those of the baseline on the same jobs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Accuracy {
    /// How many jobs this is about.
    pub jobs: u64,
    /// The errors of the predictions.
    pub predicted: Errors,
    /// The errors of what would be taken for true if nothing were learned.
    pub baseline: Errors,
    /// The share of jobs for which too little was predicted, where that is what does harm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<f64>,
}

/// Shares are never NaN: they come from whole numbers.
impl Eq for Accuracy {}

impl Predictions {
    /// The errors in words, a sentence for each kind of predictions.
    pub fn sentences(&self) -> Vec<String> {
        let time = self.time.map(|time| time.sentence("run times", "the requested times"));
        // From the past of a log, or from what the policy learned itself.
        let instead = |power: &Accuracy| match power.under {
            Some(_) => "rated power",
            None => "the model",
        };
        let power = self.power.map(|power| power.sentence("power", instead(&power)));
        time.into_iter().chain(power).collect()
    }
}

impl Accuracy {
    fn sentence(&self, what: &str, instead: &str) -> String {
        let Accuracy { jobs, predicted, baseline, under } = self;
        let under = under
            .map_or(String::new(), |under| format!(", too low for {:.1} % of them", under * 100.0));
        format!(
            "{what} off by a factor of {:.2} (median) and {:.2} (90th percentile) for {jobs} jobs{under}; {instead}: \
             {:.2} and {:.2}",
            predicted.median, predicted.p90, baseline.median, baseline.p90
        )
    }
}

/// Errors as factors, of at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Errors {
    /// The error that half of the jobs do not exceed.
    pub median: f64,
    /// The error that nine of ten jobs do not exceed.
    pub p90: f64,
}

/// Errors are never NaN: they come from whole numbers.
impl Eq for Errors {}

/// Errors of predictions and of their baseline, collected while jobs end.
#[derive(Clone, Debug, Default)]
pub(super) struct Collected {
    /// The binary logarithms of the factors, in steps of 2⁻¹⁶.
    predicted: Vec<u32>,
    baseline: Vec<u32>,
    /// For how many jobs too little was predicted.
    under: u64,
}

impl Collected {
    /// A job ended: what had been predicted, what would have been taken for true, and what came.
    pub(super) fn note(&mut self, predicted: u64, baseline: u64, actual: u64) {
        self.under += u64::from(predicted < actual);
        let actual = log2(actual);
        let error = |expected: u64| log2(expected).abs_diff(actual) as u32;
        self.predicted.push(error(predicted));
        self.baseline.push(error(baseline));
    }

    /// All errors in a few figures; nothing if no job has ended.
    pub(super) fn accuracy(&self) -> Option<Accuracy> {
        Some(Accuracy {
            jobs: self.predicted.len() as u64,
            predicted: errors(&self.predicted)?,
            baseline: errors(&self.baseline)?,
            under: None,
        })
    }

    /// The same with the share of jobs for which too little was predicted.
    pub(super) fn accuracy_with_shortfalls(&self) -> Option<Accuracy> {
        let accuracy = self.accuracy()?;
        // To four decimals, like factors.
        let share = (self.under * 10_000 / accuracy.jobs) as f64 / 10_000.0;
        Some(Accuracy { under: Some(share), ..accuracy })
    }
}

fn errors(logs: &[u32]) -> Option<Errors> {
    let mut logs = logs.to_vec();
    Some(Errors { median: factor(&mut logs, 50)?, p90: factor(&mut logs, 90)? })
}

/// The smallest factor that so many percent of the jobs do not exceed, to four decimals: the same on all
/// machines, whatever the last bits of their exponential are.
fn factor(logs: &mut [u32], percent: usize) -> Option<f64> {
    let place = (logs.len() * percent).div_ceil(100).checked_sub(1)?;
    let (_, log, _) = logs.select_nth_unstable(place);
    Some((libm::exp2(f64::from(*log) / 65536.0) * 1e4).round() / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten jobs that take 100: predictions of 110, 120, …, 200; users ask for 400 each, but for one who asks
    /// for 25, which is as far off.
    #[test]
    fn errors_by_hand() {
        let mut collected = Collected::default();
        assert_eq!(collected.accuracy(), None);
        for job in 1..=10 {
            collected.note(100 + 10 * job, if job == 3 { 25 } else { 400 }, 100);
        }
        let Accuracy { jobs, predicted, baseline, .. } = collected.accuracy().unwrap();
        assert_eq!(jobs, 10);
        let close = |found: f64, expected: f64| (found - expected).abs() < 2e-4;
        assert!(close(predicted.median, 1.5) && close(predicted.p90, 1.9), "{predicted:?}");
        assert!(close(baseline.median, 4.0) && close(baseline.p90, 4.0), "{baseline:?}");
    }
}
