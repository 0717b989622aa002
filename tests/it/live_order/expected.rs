//! What the simulator does with the same jobs.

use std::sync::Arc;

use busbar::budget::Budget;
use busbar::job::Job;
use busbar::live::job::Owner;
use busbar::live::setup::Setup;
use busbar::model::pass::Application;
use busbar::model::{Beliefs, Dvfs, Elastic, Feed, Knowledge, Model, Profiled, Rigid, Varied};
use busbar::policy::parm::Flexibility;
use busbar::policy::{Decision, Policy, PolicySpec, View};
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
pub(super) fn workload(jobs: &[Planned], owner: Owner, setup: &Setup) -> Workload {
    let known = (1..).zip(jobs).map(|(number, job)| (job.job(number, owner, setup), job.run_time));
    Workload::new("order", known)
}

/// How jobs run in truth: made by itself, not by the daemon, but of the same kind.
pub(super) fn truth(setup: &Setup, jobs: &[Job]) -> Arc<dyn Model + Send + Sync> {
    fn learned<M: Model + Send + 'static>(
        mut model: M,
        jobs: &[Job],
    ) -> Arc<dyn Model + Send + Sync> {
        for (id, job) in (0..).map(JobId).zip(jobs) {
            model.learn(id, job);
        }
        Arc::new(model)
    }
    let machine = &setup.machine;
    match setup.policy {
        PolicySpec::EasyPower(oversized) => {
            learned(Dvfs::new(machine, &[], Knowledge::Unknown, oversized, 1), jobs)
        }
        PolicySpec::PbGuided(spec) => {
            learned(Dvfs::new(machine, &[], spec.beta, spec.oversized, 1), jobs)
        }
        PolicySpec::Rmap(spec) => {
            let beliefs = Beliefs { node_power: spec.node_power, ..Beliefs::default() };
            learned(Profiled::of_all(machine, &setup.profiles, beliefs).unwrap(), jobs)
        }
        PolicySpec::Parm(spec) => {
            let feed = Feed::of(machine, spec.levels);
            let model = Elastic::new(machine, feed, &Application::ALL, &[], 1);
            let is_rigid = spec.flexibility == Flexibility::None;
            learned(if is_rigid { model.as_asked() } else { model }, jobs)
        }
        PolicySpec::Ppartition(_) | PolicySpec::Uniform(_) => {
            learned(Varied::on(machine, &[], 1), jobs)
        }
        _ => learned(Rigid::on(machine), jobs),
    }
}

/// What the simulator does with jobs, which run as `truth` says.
pub(super) fn simulated(
    setup: &Setup,
    budget: &Budget,
    workload: &Workload,
    truth: &dyn Model,
) -> Told {
    let mut model = setup.model().unwrap();
    for (id, job) in (0..).map(JobId).zip(workload.jobs()) {
        model.learn(id, job);
    }
    let mut journal = Journal { inner: setup.policy(), decisions: Vec::new() };
    let run = Simulation::new(&setup.machine, workload)
        .budget(setup.handed_out(budget))
        .model(model.as_ref())
        .truth(truth)
        .run(&mut journal);
    assert_eq!(run.violations, 0, "{}: {:?}", setup.policy, run.first_violations);
    let number = |job: JobId| workload.jobs()[job.index()].number;
    let mut told = Told::default();
    for (at, decision) in journal.decisions {
        let (job, starts, has) = match decision {
            Decision::Start { job, point } => (job, true, Has::Point(point)),
            Decision::StartOn { job, caps } => (job, true, Has::caps(&caps)),
            Decision::Change { job, point, .. } => (job, false, Has::Point(point)),
            Decision::Recap { job, caps, .. } => (job, false, Has::caps(&caps)),
            Decision::WakeAt(_) | Decision::Promise { .. } => continue,
            Decision::Drop { job, reason } => panic!("job {} is dropped: {reason:?}", number(job)),
        };
        told.steps.push(Step { at, job: number(job), starts, has });
    }
    for (job, record) in workload.jobs().iter().zip(&run.records) {
        assert_eq!(record.state, State::Completed, "{}: job {}", setup.policy, job.number);
        told.ends.push((job.number, record.end));
    }
    told.ends.sort_unstable();
    told
}
