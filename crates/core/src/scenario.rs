//! A policy tried on a workload: all that one run takes, from a policy's name to its figures.
//!
//! [`Simulation`] runs any policy under any model. A scenario makes the policy from a [`PolicySpec`], and
//! whatever that needs to know beforehand is worked out first.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::budget::{Budget, EnergyBudget};
use crate::calendar::Windows;
use crate::freedom::{Freedom, Freedoms};
use crate::heterogeneity::Site;
use crate::limits::Limits;
use crate::machine::Machine;
use crate::metrics::{BSLD_THRESHOLD, RunContext, Summary, TaskFigures};
use crate::model::Model;
use crate::policy::{Accuracy, BuildContext, Policy, PolicySpec, plain};
use crate::priority::Priorities;
use crate::sim::{Events, Outages, Progress, Recorded, Run, Simulation};
use crate::switching::SwitchOff;
use crate::tariff::Tariff;
use crate::units::{JobId, Share, Span};
use crate::workload::Workload;
use crate::world::{Held, World};

/// One policy on one workload.
#[derive(Clone)]
pub struct Scenario<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The machine on which plain EASY is measured, where the policy wants that.
    pub plain_machine: &'a Machine,
    /// The workload.
    pub workload: &'a Workload,
    /// The policy.
    pub policy: PolicySpec,
    /// What the policy believes about how jobs run.
    pub model: &'a dyn Model,
    /// How jobs really run; as believed if it is not given.
    pub truth: Option<&'a dyn Model>,
    /// The world they run in, which counts before any other truth.
    pub world: Option<&'a World>,
    /// What the policy makes use of beyond starting jobs as they were asked for, where that is said.
    pub freedoms: Option<Freedoms>,
    /// The power budget of the machine.
    pub budget: Budget,
    /// The share of every limit that is kept back from the policy, because jobs may draw more than is
    /// believed. The policy may ask for more.
    pub guard: Share,
    /// The machines and what tasks are worth, for policies that map tasks to machines.
    pub site: Option<&'a Site>,
    /// How priorities are made, where the site says it.
    pub priorities: Option<Arc<Priorities>>,
    /// What users, accounts and others may have, where the site says it.
    pub limits: Option<Arc<Limits>>,
    /// How much energy may be consumed in which period, at the end of which the run ends.
    pub energy: Option<EnergyBudget>,
    /// Which nodes fail when.
    pub outages: Outages,
    /// When idle nodes are switched off, if they are.
    pub switch_off: Option<SwitchOff>,
    /// When the policy is asked.
    pub events: Events,
    /// The threshold of the bounded slowdown.
    pub bsld_threshold: Span,
    /// Whether the power drawn over time is kept.
    pub keep_power: bool,
    /// How far off what the policy believes of the power of jobs is, where that was predicted from their past.
    pub power_accuracy: Option<Accuracy>,
    /// What energy costs and what is emitted for it.
    pub tariff: Tariff,
    /// Parts of the time that have figures of their own.
    pub windows: Option<Windows>,
}

/// A scenario that was run, before its figures are worked out.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The run itself.
    pub run: Run,
    /// The mean bounded slowdown under plain EASY without a power limit, if the policy wanted it.
    pub plain_bsld: Option<f64>,
}

/// The result of a scenario.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The run itself.
    pub run: Run,
    /// The figures of the run.
    pub summary: Summary,
    /// The mean bounded slowdown under plain EASY without a power limit, if the policy wanted it.
    pub plain_bsld: Option<f64>,
}

impl<'a> Scenario<'a> {
    /// A policy on a workload, without a budget and without outages.
    pub fn new(
        machine: &'a Machine,
        workload: &'a Workload,
        policy: PolicySpec,
        model: &'a dyn Model,
    ) -> Self {
        Scenario {
            machine,
            plain_machine: machine,
            workload,
            policy,
            model,
            truth: None,
            world: None,
            freedoms: None,
            budget: Budget::unlimited(),
            guard: Share::percent(0),
            site: None,
            priorities: None,
            limits: None,
            energy: None,
            outages: Outages::default(),
            switch_off: None,
            events: Events::default(),
            bsld_threshold: BSLD_THRESHOLD,
            keep_power: false,
            power_accuracy: None,
            tariff: Tariff::default(),
            windows: None,
        }
    }

    /// Runs it and works out its figures.
    pub fn run(&self) -> Trial {
        let Simulated { run, plain_bsld } = self.simulate();
        Trial { summary: self.summary(&run), run, plain_bsld }
    }

    /// Runs it.
    pub fn simulate(&self) -> Simulated {
        self.simulate_with(&mut |_| ControlFlow::Continue(()))
    }

    /// Runs it, reporting now and then how many jobs have ended or were turned away. Whoever hears that may break it
    /// off.
    pub fn simulate_with(&self, progress: &mut Progress<'_>) -> Simulated {
        let measured = Cell::new(None);
        let plain_bsld = || {
            let bsld = self.plain_bsld();
            measured.set(Some(bsld));
            bsld
        };
        let setting = BuildContext {
            bsld_threshold: self.bsld_threshold,
            plain_bsld: &plain_bsld,
            site: self.site,
            machine: Some(self.machine),
            freedoms: self.freedoms,
            priorities: self.priorities.as_ref(),
            keeps_standings: self.keep_power,
            reservations: self.limits.as_deref().map_or(&[], |limits| &limits.reservations),
        };
        let mut policy = self.policy.build(&setting);
        let guard = self.policy.guard().max(self.guard);
        let mut simulation = self.simulation_on(self.machine).budget(self.budget.lowered(guard));
        if guard != Share::percent(0) {
            simulation = simulation.bound(self.budget.clone());
        }
        let simulation = simulation.switch_off(self.switch_off).limits(self.limits.as_deref());
        let mut run = self.run_under(simulation, policy.as_mut(), progress);
        if let Some(accuracy) = self.power_accuracy {
            run.predictions.get_or_insert_default().power = Some(accuracy);
        }
        Simulated { run, plain_bsld: measured.get() }
    }

    /// What really happened, whatever the policy and the budget: jobs start and end when their log says so, and what they
    /// draw is held against the budget. Nothing if the log does not say of any job when it started.
    pub fn recorded(&self) -> Option<Recorded> {
        let added = |id: JobId| {
            let (job, run_time) = (&self.workload.jobs()[id.index()], self.workload.run_time(id));
            let point = self.model.nominal(id, job);
            let outcome = match self.world {
                Some(world) => world.outcome(id, job, run_time, &point, Held::Any),
                None => self.truth.unwrap_or(self.model).outcome(id, job, run_time, &point),
            };
            outcome.power
        };
        let simulation = self.simulation_on(self.machine).bound(self.budget.clone());
        simulation
            .keep_power(self.keep_power)
            .tariff(&self.tariff, self.windows.as_ref())
            .recorded(&added)
    }

    /// Runs a simulation with what it has in common with all others of this scenario.
    fn run_under(
        &self,
        simulation: Simulation<'_>,
        policy: &mut dyn Policy,
        progress: &mut Progress<'_>,
    ) -> Run {
        let simulation = match self.world {
            Some(world) => simulation.world(world),
            None => simulation.truth(self.truth.unwrap_or(self.model)),
        };
        simulation
            .model(self.model)
            .keep_power(self.keep_power)
            .tariff(&self.tariff, self.windows.as_ref())
            .run_with_progress(policy, progress)
    }

    /// The figures of a run.
    pub fn summary(&self, run: &Run) -> Summary {
        let summary = Summary::of(&self.context(&self.policy.to_string()), run);
        let tasks = self
            .site
            .zip(self.energy)
            .map(|(site, energy)| TaskFigures::of(self.workload, &site.utilities, &energy, run));
        Summary { tasks, ..summary }
    }

    /// What figures and reports are about; `name` is the policy's.
    pub fn context<'b>(&'b self, name: &'b str) -> RunContext<'b> {
        // Jobs may take nodes and times of their own choosing: then there is no telling what they would have
        // drawn as they were asked for.
        let wants = self.freedoms.unwrap_or(self.policy.wants());
        let reshapes =
            [Freedom::Sizes, Freedom::Nodes, Freedom::Drops].iter().any(|one| wants.has(*one));
        RunContext {
            policy: name,
            machine: self.machine,
            workload: self.workload,
            budget: &self.budget,
            bsld_threshold: self.bsld_threshold,
            has_gears: self.world.is_none() && !reshapes,
            has_reference: self.world.is_some() || !reshapes,
            freedoms: self.freedoms,
            world: self.world,
            windows: self.windows.as_ref(),
        }
    }

    fn simulation_on(&self, machine: &'a Machine) -> Simulation<'a> {
        let simulation = Simulation::new(machine, self.workload)
            .outages(self.outages.clone())
            .events(self.events);
        match self.energy {
            Some(energy) => simulation.energy(energy),
            None => simulation,
        }
    }

    /// Plain EASY without a power limit delays nobody if nobody ever runs.
    fn plain_bsld(&self) -> f64 {
        let machine = self.plain_machine;
        let run = self.simulation_on(machine).run(plain().as_mut());
        let unlimited = Budget::unlimited();
        let subject = RunContext { machine, budget: &unlimited, ..self.context("easy") };
        Summary::of(&subject, &run).mean_bsld.unwrap_or(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use crate::model::{Dvfs, Knowledge, Oversized, Rigid};
    use crate::policy::PbGuidedSpec;
    use crate::units::Share;
    use crate::units::{Instant, Span};

    /// Jobs of many sizes and lengths, somewhat more than the machine of 256 can do: some of them wait.
    fn busy() -> Workload {
        let jobs = (0..500u32).map(|number| {
            let seconds = 60 + 977 * number % 7200;
            let (submit, asked) = (Instant::from_secs(300 * number), Span::from_secs(2 * seconds));
            let job = Job::new(number.into(), submit, 1 << (5 * number % 9), asked);
            (job, Span::from_secs(seconds))
        });
        Workload::new("busy", jobs)
    }

    /// The bounds are those of a run of plain EASY, whatever budget the policy itself has.
    #[test]
    fn auto_measures_plain_easy_first() {
        let machine = Machine::of_processors(256).unwrap();
        let workload = busy();
        let rigid = Rigid::on(&machine);
        let plain = Scenario::new(&machine, &workload, PolicySpec::easy(), &rigid).run();
        assert_eq!(plain.plain_bsld, None);
        let policy = PolicySpec::of(PbGuidedSpec::default());
        let budget = Budget::constant(Share::percent(50).of(machine.max_power()));
        let jobs = workload.jobs();
        let model = Dvfs::new(&machine, jobs, Knowledge::Unknown, Oversized::Slow, 1);
        let new = Scenario::new(&machine, &workload, policy, &model);
        let guided = Scenario { budget, ..new }.run();
        assert!(plain.summary.mean_bsld.unwrap() > 2.0, "some jobs wait");
        assert_eq!(guided.plain_bsld, plain.summary.mean_bsld);
        assert!(guided.summary.energy_vs_nominal.unwrap() < 1.0);
        assert_eq!(guided.summary.violations, 0);
    }
}
