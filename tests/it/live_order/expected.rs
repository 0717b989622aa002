//! What the simulator does with the same jobs.

use std::sync::Arc;

use busbar::budget::Budget;
use busbar::job::Job;
use busbar::live::control::setup::Setup;
use busbar::live::job::Owner;
use busbar::model::Model;
use busbar::policy::{Decision, Policy, View};
use busbar::sim::{Simulation, State};
use busbar::units::{Instant, JobId};
use busbar::workload::Workload;

use super::workload::Planned;
use super::{Has, Step, Told};

/// A policy, and what it decides when.
struct Journal {
    inner: Box<dyn Policy>,
    decisions: Vec<(Instant, Decision)>,
}

impl Policy for Journal {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        self.inner.decide(view, decisions);
        self.decisions.extend(decisions.iter().map(|decision| (view.now, decision.clone())));
    }

    fn adjusts(&self) -> bool {
        self.inner.adjusts()
    }

    fn names_nodes(&self) -> bool {
        self.inner.names_nodes()
    }
}

/// The jobs as the simulator knows them: the first has number 1.
pub(crate) fn workload(jobs: &[Planned], owner: Owner, setup: &Setup) -> Workload {
    let known = (1..).zip(jobs).map(|(number, job)| (job.job(number, owner, setup), job.run_time));
    Workload::new("order", known)
}

/// How jobs run in truth: as is believed of them.
pub(crate) fn truth(setup: &Setup, jobs: &[Job]) -> Arc<dyn Model> {
    let mut model = setup.decider.model();
    for (id, job) in (0..).map(JobId).zip(jobs) {
        model.learn(id, job);
    }
    model.into()
}

/// What the simulator does with jobs, which run as `truth` says.
pub(crate) fn simulated(
    setup: &Setup,
    budget: &Budget,
    workload: &Workload,
    truth: &dyn Model,
) -> Told {
    let mut model = setup.decider.model();
    for (id, job) in (0..).map(JobId).zip(workload.jobs()) {
        model.learn(id, job);
    }
    let mut journal = Journal { inner: setup.decider.policy(), decisions: Vec::new() };
    let run = Simulation::new(&setup.machine, workload)
        .budget(setup.handed_out(budget))
        .model(model.as_ref())
        .truth(truth)
        .switch_off(setup.switch_off)
        .run(&mut journal);
    assert_eq!(run.violations, 0, "{}: {:?}", setup.decider.spec(), run.first_violations);
    let number = |job: JobId| workload.jobs()[job.index()].number;
    let mut told = Told::default();
    for (at, decision) in journal.decisions {
        let (job, starts, has) = match decision {
            Decision::Start { job, point } | Decision::StartIn { job, point, .. } => {
                (job, true, Has::Point(point))
            }
            Decision::StartOn { job, caps } => (job, true, Has::caps(&caps)),
            Decision::Change { job, point, .. } => (job, false, Has::Point(point)),
            Decision::Recap { job, caps, .. } => (job, false, Has::caps(&caps)),
            Decision::WakeAt(_) | Decision::Promise { .. } => continue,
            Decision::Drop { job, reason } => panic!("job {} is dropped: {reason:?}", number(job)),
            Decision::GiveUp { why } => panic!("{why}"),
        };
        told.steps.push(Step { at, job: number(job), starts, has });
    }
    for (job, record) in workload.jobs().iter().zip(&run.records) {
        assert_eq!(record.state, State::Completed, "{}: job {}", setup.decider.spec(), job.number);
        told.ends.push((job.number, record.end));
    }
    told.ends.sort_unstable();
    told
}
