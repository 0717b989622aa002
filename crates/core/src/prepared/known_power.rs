//! What the log of a workload tells about the power of its jobs: what they drew, and what could be expected of them.

use std::sync::Arc;

use crate::machine::Machine;
use crate::policy::{Accuracy, Believe, Draws, PastDraw, PowerForecast};
use crate::units::{JobId, Watts};
use crate::workload::{MeasuredPower, Workload};

/// What is known of the power of jobs that were measured.
#[derive(Clone, Debug)]
pub(super) struct KnownPower {
    /// By job: what each of its nodes drew.
    drawn: Arc<[Option<Watts>]>,
    /// By job: what each of its nodes was expected to draw when it was submitted.
    expected: Arc<[Option<Watts>]>,
    /// How far off that was.
    pub(super) accuracy: Option<Accuracy>,
}

impl KnownPower {
    /// What the log of a workload tells about its jobs on such nodes; nothing if none of them was measured.
    pub(super) fn of(workload: &Workload, rated: Watts) -> Option<Self> {
        if workload.powers_known() == 0 {
            return None;
        }
        let past: Vec<PastDraw> = past_draws(workload).collect();
        let forecast = PowerForecast::of(&past, rated);
        Some(KnownPower {
            drawn: past.iter().map(|job| job.node_power).collect(),
            expected: forecast.node_powers.into_iter().map(Some).collect(),
            accuracy: forecast.accuracy,
        })
    }

    /// What a policy that believes this knows of what single jobs draw.
    pub(super) fn draws(&self, believe: Believe) -> Draws {
        match believe {
            Believe::Exact => Draws::Measured(self.drawn.clone()),
            Believe::Predicted => Draws::Predicted(self.expected.clone()),
            Believe::Published | Believe::Rated => Draws::ByLaw,
        }
    }
}

/// What was measured of the power of jobs and what of it is assumed all the same, in words. Nothing if nothing was
/// measured.
pub fn measured_power(workload: &Workload, machine: &Machine) -> Option<String> {
    let (known, jobs) = (workload.powers_known(), workload.jobs().len());
    if known == 0 {
        return None;
    }
    let mut text = match jobs - known {
        0 => "what jobs draw was measured, and the applications say how it changes under caps"
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
        text += &format!(
            "; {above} jobs drew more than {rated} a node, and count as if they drew that"
        );
    }
    if below > 0 {
        text += &format!(
            "; {below} jobs drew less than idle nodes ({idle}), and count as if they drew that"
        );
    }
    Some(text)
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

/// What each of so many nodes draws, rounded up.
fn per_node(power: Watts, nodes: u32) -> Watts {
    Watts::from_milliwatts(power.milliwatts().div_ceil(u64::from(nodes.max(1))))
}
