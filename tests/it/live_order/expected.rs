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
use busbar::workload::{Partitions, Placed, Workload};

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
    let Some(kinds) = &setup.machine.kinds else { return Workload::new("order", known) };
    // As the simulator reads it in a log.
    let (known, run_times): (Vec<Job>, Vec<_>) = known.unzip();
    let names = kinds.partitions().iter().map(|partition| partition.name.clone());
    let names: Vec<(u32, String)> = (1..).zip(names).collect();
    let number = |job: &Planned| {
        let named = job.request.part.partition.as_ref();
        names.iter().find(|(_, name)| Some(name) == named).map_or(0, |(number, _)| *number)
    };
    let partitions = Partitions::new(jobs.iter().map(number).collect(), names.clone());
    let mut workload =
        Workload::from_parts("order".to_owned(), known, run_times, Vec::new(), partitions);
    workload.set_placed(Vec::new(), |job| {
        let request = &jobs[job.number as usize - 1].request;
        let memory_mib = request.part.memory_mib.unwrap_or(0);
        Placed {
            nodes: request.nodes,
            memory_mib: u64::from(memory_mib) * u64::from(request.nodes),
            gpus: request.part.gpus.unwrap_or(0),
            ..Placed::default()
        }
    });
    workload.seat(kinds);
    workload
}

/// How jobs run in truth: as is believed of them.
pub(crate) fn truth(setup: &Setup, workload: &Workload) -> Arc<dyn Model> {
    believed(setup, workload).into()
}

/// What is believed of jobs.
fn believed(setup: &Setup, workload: &Workload) -> Box<dyn Model> {
    let mut model = setup.decider.model();
    for (id, job) in (0..).map(JobId).zip(workload.jobs()) {
        if let Some(seats) = workload.seats() {
            model.take_seat(seats.of(id).copied());
        }
        model.learn(id, job);
    }
    model
}

/// What the simulator does with jobs, which run as `truth` says.
pub(crate) fn simulated(
    setup: &Setup,
    budget: &Budget,
    workload: &Workload,
    truth: &dyn Model,
) -> Told {
    let model = believed(setup, workload);
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
