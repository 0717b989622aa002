//! Figures of parts of a run's time, such as the hours in which power is short.

use serde::{Deserialize, Serialize};

use super::wait;
use crate::calendar::Windows;
use crate::job::Job;
use crate::sim::{Record, Run, State, WindowCharges};
use crate::workload::Workload;

/// Figures of parts of a run's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowFigures {
    /// Which parts, as they were asked for.
    pub when: String,
    /// How long they are together, within the run.
    pub time_s: f64,
    /// Energy drawn in them.
    pub energy_j: f64,
    /// Mean power in them.
    pub mean_power_w: Option<f64>,
    /// The most power drawn in them.
    pub peak_power_w: f64,
    /// Jobs that were submitted in them.
    pub submitted: u64,
    /// Jobs that started in them.
    pub started: u64,
    /// Jobs that ended in them.
    pub ended: u64,
    /// Mean wait of the jobs that were submitted in them and ran.
    pub mean_wait_s: Option<f64>,
    /// What their energy costs, where it has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Kilograms of carbon dioxide, where they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carbon_kg: Option<f64>,
}

impl WindowFigures {
    /// The figures of a run.
    pub(super) fn of(
        windows: &Windows,
        charges: &WindowCharges,
        workload: &Workload,
        run: &Run,
    ) -> Self {
        let jobs = || workload.jobs().iter().zip(&run.records);
        let ran = |record: &Record| matches!(record.state, State::Completed | State::Killed);
        let is_submitted = |(job, _): &(&Job, &Record)| windows.has(job.submit);
        let waits: Vec<u64> = jobs()
            .filter(|pair| is_submitted(pair) && ran(pair.1))
            .map(|(job, record)| wait(job, record).millis())
            .collect();
        let total: u128 = waits.iter().map(|wait| u128::from(*wait)).sum();
        let seconds = charges.time.secs_f64();
        WindowFigures {
            when: windows.name().to_owned(),
            time_s: seconds,
            energy_j: charges.energy.as_f64(),
            mean_power_w: (seconds > 0.0).then(|| charges.energy.as_f64() / seconds),
            peak_power_w: charges.peak.as_f64(),
            submitted: jobs().filter(is_submitted).count() as u64,
            started: jobs().filter(|(_, r)| ran(r) && windows.has(r.start)).count() as u64,
            ended: jobs().filter(|(_, r)| ran(r) && windows.has(r.end)).count() as u64,
            mean_wait_s: (!waits.is_empty()).then(|| total as f64 / 1000.0 / waits.len() as f64),
            cost: charges.cost.map(|micros| micros as f64 / 1e6),
            carbon_kg: charges.carbon.map(|micros| micros as f64 / 1e9),
        }
    }
}
