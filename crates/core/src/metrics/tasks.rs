//! What tasks earned in a period, within which energy. The definitions stand in `docs/reference/metrics.md`.

use serde::{Deserialize, Serialize};

use crate::budget::EnergyBudget;
use crate::policy::DropReason;
use crate::sim::{Record, Run, State};
use crate::units::Instant;
use crate::utility::{Utilities, Utility};
use crate::workload::Workload;

/// The figures of tasks with utilities, of those that count in the period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskFigures {
    /// Utility of tasks completed in the period.
    pub utility: f64,
    /// What the tasks that arrived in the period were worth at first.
    pub utility_offered: f64,
    /// Tasks completed in the period.
    pub completed_in_period: u64,
    /// By starting utility, the largest first: what the tasks that arrived in the period earned of
    /// what they were worth at first.
    pub portions: Vec<Portion>,
    /// The energy budget; null if there is no limit.
    pub energy_budget_j: Option<f64>,
    /// Energy consumed in the period.
    pub energy_consumed_j: f64,
    /// When the period begins, in seconds.
    pub period_begin_s: f64,
    /// When it ends.
    pub period_end_s: f64,
    /// Tasks dropped because they were worth too little.
    pub dropped_utility: u64,
    /// Tasks dropped because no machine can run them.
    pub dropped_machine: u64,
    /// Tasks dropped because there is no energy at all.
    pub dropped_energy: u64,
    /// Tasks that still ran at the end of the period.
    pub left_running: u64,
    /// Tasks that still waited then.
    pub left_waiting: u64,
}

/// What tasks of one starting utility earned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Portion {
    /// What such a task is worth at first.
    pub start: f64,
    /// What those that arrived in the period were worth at first, in all.
    pub offered: f64,
    /// What they earned in it.
    pub earned: f64,
}

impl Portion {
    /// The share of the offer that was earned.
    pub fn share(&self) -> f64 {
        if self.offered > 0.0 { self.earned / self.offered } else { 0.0 }
    }
}

/// Whether a completion counts: who is complete just when the period begins has consumed nothing in
/// it, and earns nothing.
#[inline]
pub fn counts(record: &Record, budget: &EnergyBudget) -> bool {
    let completed = record.state == State::Completed;
    completed && record.end > budget.begin && record.end <= budget.end
}

impl TaskFigures {
    /// The figures of a run.
    pub fn of(
        workload: &Workload,
        utilities: &Utilities,
        budget: &EnergyBudget,
        run: &Run,
    ) -> Self {
        let mut starts: Vec<Utility> =
            utilities.iter().map(|(_, function)| function.start()).collect();
        starts.sort_unstable_by_key(|start| std::cmp::Reverse(*start));
        starts.dedup();
        let mut sums = vec![(Utility::ZERO, Utility::ZERO); starts.len()];
        let (mut utility, mut completed) = (Utility::ZERO, 0);
        let in_period = |at: Instant| at >= budget.begin && at < budget.end;
        for (job, record) in workload.jobs().iter().zip(&run.records) {
            let function = job.terms.utility.and_then(|id| utilities.get(id));
            let Some(function) = function else { continue };
            let earned = match counts(record, budget) {
                true => function.at(record.end.since(job.submit)),
                false => Utility::ZERO,
            };
            completed += u64::from(counts(record, budget));
            utility += earned;
            let place = starts.iter().position(|start| *start == function.start());
            if let Some(place) = place.filter(|_| in_period(job.submit)) {
                sums[place].0 += function.start();
                sums[place].1 += earned;
            }
        }
        let count = |wanted: &dyn Fn(&State) -> bool| {
            run.records.iter().filter(|record| wanted(&record.state)).count() as u64
        };
        let dropped = |reason: DropReason| count(&move |state| *state == State::Dropped(reason));
        TaskFigures {
            utility: utility.as_f64(),
            utility_offered: sums.iter().map(|(offered, _)| offered.as_f64()).sum(),
            completed_in_period: completed,
            portions: starts
                .iter()
                .zip(&sums)
                .map(|(start, (offered, earned))| Portion {
                    start: start.as_f64(),
                    offered: offered.as_f64(),
                    earned: earned.as_f64(),
                })
                .collect(),
            energy_budget_j: budget.is_limited().then(|| budget.energy.as_f64()),
            energy_consumed_j: run.consumed.map_or(0.0, |consumed| consumed.as_f64()),
            period_begin_s: budget.begin.secs_f64(),
            period_end_s: budget.end.secs_f64(),
            dropped_utility: dropped(DropReason::LowUtility),
            dropped_machine: dropped(DropReason::NoMachine),
            dropped_energy: dropped(DropReason::NoEnergy),
            left_running: count(&|state| *state == State::Running),
            left_waiting: count(&|state| *state == State::Waiting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heterogeneity::{MachineType, PState, Purpose, Site, Tables};
    use crate::job::{ApplicationId, Job};
    use crate::model::Heterogeneous;
    use crate::policy::utility::{UtilityMapper, UtilitySpec};
    use crate::sim::Simulation;
    use crate::units::{Joules, Span, Watts};
    use crate::utility::{Decay, UtilityFunction, UtilityId};
    use std::num::NonZeroU32;
    use std::sync::Arc;

    /// One machine, tasks of 60 s at 100 W, mapping events at whole minutes, a period from 60 s to 200 s.
    /// The first task is complete at 60 s, before anything counts; the second at 120 s, at an age of
    /// 120 s, worth 2 still; the third, at 180 s; the fourth runs from 180 s on and is left, with 20 s of
    /// it charged.
    #[test]
    fn figures_by_hand() {
        let kind = MachineType { name: "cpu".into(), machines: 1, purpose: Purpose::General };
        let state = PState { number: 0, time: Span::from_secs(60), power: Watts::from_watts(100) };
        let tables = Tables::new(vec![kind], vec!["a".into()], vec![vec![state]]).unwrap();
        let mut utilities = Utilities::default();
        let flat =
            |start| UtilityFunction::flat_then(Utility::whole(start), Span::ZERO, Decay::NONE);
        utilities.push("gold", flat(4));
        utilities.push("lead", flat(2));
        let job = |number: u64, submit: u32, utility: u32| {
            let time = Span::from_secs(60);
            let mut job = Job::new(number, Instant::from_secs(submit), 1, time);
            job.application = Some(ApplicationId(NonZeroU32::MIN));
            job.terms.utility = Some(UtilityId::at(utility));
            (job, time)
        };
        let jobs = [job(1, 0, 0), job(2, 0, 1), job(3, 70, 0), job(4, 80, 0), job(5, 190, 0)];
        let workload = Workload::new("hand", jobs);
        let budget = EnergyBudget {
            energy: Joules::from_joules(20_000),
            begin: Instant::from_secs(60),
            end: Instant::from_secs(200),
        };
        let site = Site { tables: Arc::new(tables), utilities: Arc::new(utilities) };
        let spec = UtilitySpec { filter: false, ..UtilitySpec::default() };
        let (machine, model) =
            (Heterogeneous::machine(&site.tables), Heterogeneous::new(site.tables.clone()));
        let mut policy = UtilityMapper::new(spec, &site);
        let run =
            Simulation::new(&machine, &workload).model(&model).energy(budget).run(&mut policy);
        assert_eq!((run.violations, run.end), (0, budget.end));
        let figures = TaskFigures::of(&workload, &site.utilities, &budget, &run);
        assert_eq!((figures.utility, figures.completed_in_period), (6.0, 2));
        assert_eq!(figures.energy_consumed_j, 14_000.0);
        assert_eq!((figures.left_running, figures.left_waiting), (1, 1));
        assert_eq!(figures.utility_offered, 12.0);
        let gold = Portion { start: 4.0, offered: 12.0, earned: 4.0 };
        assert_eq!(figures.portions, [gold, Portion { start: 2.0, offered: 0.0, earned: 0.0 }]);
        assert_eq!(run.unfinished, 2);
    }
}
