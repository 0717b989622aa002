//! The power of jobs from a log: the measured values, and the predictions that a site could have made.

use super::{PreparedWorkload, Rules};
use crate::policy::{Accuracy, Believe, Draws, Level, PastDraw, PowerForecast, Predictions};
use crate::units::{JobId, Watts};
use crate::workload::{MeasuredPower, Workload};

/// What a policy knows of the power of jobs that were measured.
#[derive(Clone, Debug)]
pub(super) struct KnownPower {
    /// What it knows of each job.
    pub(super) draws: Draws,
    /// How far off that is, if it is a prediction.
    pub(super) accuracy: Option<Accuracy>,
}

impl KnownPower {
    /// What a policy that believes this knows of jobs on such nodes; nothing if none of them was measured.
    pub(super) fn of(workload: &Workload, rated: Watts, believe: Believe) -> Option<Self> {
        if workload.powers_known() == 0 {
            return None;
        }
        let past = || past_draws(workload);
        Some(match believe {
            Believe::Published | Believe::Rated => {
                KnownPower { draws: Draws::ByLaw, accuracy: None }
            }
            Believe::Exact => {
                let drawn = past().map(|job| job.node_power).collect();
                KnownPower { draws: Draws::AtMost(drawn), accuracy: None }
            }
            Believe::Predicted(level) => {
                let past: Vec<PastDraw> = past().collect();
                let PowerForecast { node_powers, accuracy } =
                    PowerForecast::of(&past, rated, level);
                let expected = node_powers.into_iter().map(Some).collect();
                let draws = match level {
                    Level::Mean => Draws::Predicted(expected),
                    Level::Share(_) => Draws::AtMost(expected),
                };
                KnownPower { draws, accuracy }
            }
        })
    }
}

/// What was measured of the power of jobs and what of it is assumed all the same, in words. Nothing if nothing was
/// measured.
pub fn measured_power(prepared: &PreparedWorkload) -> Option<String> {
    let PreparedWorkload { workload, machine, .. } = prepared;
    let (known, jobs) = (workload.powers_known(), workload.jobs().len());
    if known == 0 {
        return None;
    }
    let mut text = match jobs - known {
        0 => "what jobs draw was measured, and their applications determine how it changes under caps"
            .to_owned(),
        others => format!(
            "what {others} of {jobs} jobs draw was not measured, and is that of their applications"
        ),
    };
    let (idle, rated) = (machine.node().idle, machine.node_power);
    let drawn = || past_draws(workload).filter_map(|job| job.node_power);
    let above = drawn().filter(|power| *power > rated).count();
    let below = drawn().filter(|power| *power < idle).count();
    if above > 0 {
        text += &format!("; {above} jobs drew more than {rated} a node, and count with that power");
    }
    if below > 0 {
        text += &format!(
            "; {below} jobs drew less than idle nodes ({idle}), and count with that power"
        );
    }
    Some(text)
}

/// How far off what policies expect of the power of measured jobs is, in words. Nothing if nothing was measured, or
/// if policies expect something else.
pub fn predicted_power(prepared: &PreparedWorkload, rules: &Rules) -> Option<String> {
    let PreparedWorkload { workload, machine, .. } = prepared;
    let power = KnownPower::of(workload, machine.node_power, rules.believed(workload))?.accuracy;
    let error = Predictions { time: None, power }.sentences().pop()?;
    Some(format!("policies use predictions from earlier jobs: {error}"))
}

/// The jobs of a log with what their nodes drew. A job whose wait is not recorded is taken to have started at once.
fn past_draws(workload: &Workload) -> impl Iterator<Item = PastDraw> {
    let jobs = workload.jobs().iter().zip(workload.run_times());
    (0..).map(JobId).zip(jobs).map(|(id, (job, run_time))| {
        let mean = workload.power(id).and_then(MeasuredPower::mean);
        PastDraw {
            submit: job.submit,
            end: job.submit + workload.recorded_wait(id).unwrap_or_default() + *run_time,
            user: job.user,
            application: job.application,
            node_power: mean.map(|mean| per_node(mean, job.nodes)),
        }
    })
}

/// What each of this many nodes draws, rounded up.
fn per_node(power: Watts, nodes: u32) -> Watts {
    Watts::from_milliwatts(power.milliwatts().div_ceil(u64::from(nodes.max(1))))
}
