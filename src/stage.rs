//! A workload on the machine it is to run on, made ready for a policy.
//!
//! A [`Scenario`] takes machine, workload and models as they are. A stage puts them together from
//! what a user named: the machine that a log comes from where none was given, requests packed onto
//! its nodes, estimates raised to run times, and the models of jobs whose applications have profiles.

use crate::budget::Budget;
use crate::heterogeneity::Site;
use crate::machine::{Machine, MachineError};
use crate::model::{Beliefs, Model, Profiled, ProfiledError};
use crate::policy::uniform::UniformCap;
use crate::policy::{PolicySpec, UniformSpec};
use crate::profile::Profile;
use crate::scenario::Scenario;
use crate::units::{Instant, Span, Watts};
use crate::workload::Workload;

mod ground;
mod sanity;

pub use ground::{Ground, OutOfRange, Rules, assumed, leaves_nothing};
pub use sanity::Demand;

/// A workload and its machine.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The machine that jobs run on.
    pub machine: Machine,
    /// The same machine without nodes that were added to it, on which plain EASY is measured.
    pub plain_machine: Machine,
    /// The jobs, with requests for whole nodes of the machine.
    pub workload: Workload,
    /// How many estimates were raised to the run time.
    pub estimates_raised: usize,
    /// The machine types and what tasks are worth, if the workload comes with them.
    pub site: Option<Site>,
}

/// Why a policy cannot run on a stage.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// Profiles and jobs do not go together.
    #[error(transparent)]
    Profiled(#[from] ProfiledError),
    /// A policy that caps processors one by one, on a machine of which no curves are known.
    #[error(
        "it needs the curves of processors that are not alike, and the machine has none; name one \
         that has, such as --machine catalyst or a .csv file of curves"
    )]
    NoCurves,
    /// A policy that maps tasks to machines, and a workload without such.
    #[error(
        "it maps tasks to machines of several types within an energy budget, which busbar simulate \
         alone does, with essc or a folder of tasks (docs/utility.md)"
    )]
    NoTasks,
    /// A budget that feeds no processor.
    #[error("the budget leaves {most} for jobs, and a processor needs at least {floor}")]
    NothingFed {
        /// What is left for jobs.
        most: Watts,
        /// What a processor needs.
        floor: Watts,
    },
    /// A cap that no processor can be held at.
    #[error("{policy}: a processor of this machine cannot be held below {floor}")]
    CapTooLow {
        /// Who asks for it.
        policy: PolicySpec,
        /// What a processor needs.
        floor: Watts,
    },
    /// A budget under which no job could ever run is a mistake, not an experiment.
    #[error(
        "the budget leaves {most} for jobs, and no configuration draws as little: the thriftiest \
         is one of '{application}', at {least}"
    )]
    NothingRuns {
        /// What is left for jobs.
        most: Watts,
        /// What the thriftiest configuration draws.
        least: Watts,
        /// Whose that is.
        application: String,
    },
}

/// What is believed of jobs that choose configurations, and what is true.
#[derive(Clone, Debug)]
pub struct Models {
    /// What the policy believes.
    pub believed: Profiled,
    /// If it is another.
    truth: Option<Profiled>,
}

impl Models {
    /// What then happens.
    pub fn truth(&self) -> &Profiled {
        self.truth.as_ref().unwrap_or(&self.believed)
    }
}

/// The machine a workload comes from; if it does not say, one its largest job just fits on.
pub fn machine_of(workload: &Workload) -> Result<Machine, MachineError> {
    match workload.processors() {
        // The machine of traces of applications, which logs of them name.
        _ if workload.computer() == Some("cab") => Ok(Machine::cab()),
        Some(processors) => Machine::of_processors(processors),
        None => {
            let mut machine =
                Machine::of_processors(workload.largest_job().min(Machine::MOST_NODES))?;
            machine.name += " (as many as the largest job asks for; see --machine)";
            Ok(machine)
        }
    }
}

impl Stage {
    /// Puts a workload on a machine. With `raises`, estimates below the run time are raised to it;
    /// otherwise such jobs are ended at the time they asked for.
    pub fn new(machine: Machine, mut workload: Workload, raises: bool) -> Self {
        workload.pack_processors(machine.processors_per_node);
        let estimates_raised = if raises { workload.raise_estimates() } else { 0 };
        let plain_machine = machine.clone();
        Stage { plain_machine, machine, workload, estimates_raised, site: None }
    }

    /// The same jobs on another number of the same nodes.
    pub fn on(self, machine: Machine) -> Self {
        Stage { machine, ..self }
    }

    /// Both models, if the policy chooses configurations: what it believes, and what is true, which
    /// is the same if no other profiles are given.
    pub fn models(
        &self,
        policy: &PolicySpec,
        believed: &[Profile],
        truth: Option<&[Profile]>,
    ) -> Result<Option<Models>, ProfiledError> {
        let PolicySpec::Rmap(spec) = policy else { return Ok(None) };
        let jobs = self.workload.jobs();
        let beliefs = Beliefs { node_power: spec.node_power, ..Beliefs::default() };
        let model = Profiled::new(&self.machine, believed, jobs, beliefs)?;
        let is_same = truth.is_none() && beliefs == Beliefs::default();
        let truth = match is_same {
            true => None,
            false => {
                let profiles = truth.unwrap_or(believed);
                Some(Profiled::new(&self.machine, profiles, jobs, Beliefs::default())?)
            }
        };
        if let Some(truth) = &truth {
            model.check_truth(truth, believed)?;
        }
        Ok(Some(Models { believed: model, truth }))
    }

    /// A policy on this stage, with the models it needs; `profiles` are those that applications are
    /// named by.
    pub fn scenario<'a>(
        &'a self,
        policy: PolicySpec,
        budget: Budget,
        models: Option<&'a Models>,
        profiles: &[Profile],
    ) -> Result<Scenario<'a>, StageError> {
        if policy.maps_tasks() && self.site.is_none() {
            return Err(StageError::NoTasks);
        }
        if policy.uses_curves() {
            self.check_floor(&budget, &policy)?;
        }
        if let Some(models) = models {
            self.check_budget(&budget, &policy, &models.believed, profiles)?;
        }
        Ok(Scenario {
            model: models.map(|models| &models.believed as &dyn Model),
            truth: models.map(|models| models.truth() as &dyn Model),
            plain_machine: &self.plain_machine,
            budget,
            site: self.site.as_ref(),
            ..Scenario::new(&self.machine, &self.workload, policy)
        })
    }

    /// A policy on this stage, in the world that all policies share.
    pub fn on_ground<'a>(
        &'a self,
        policy: PolicySpec,
        budget: Budget,
        ground: &'a Ground,
        belief: &'a dyn Model,
    ) -> Scenario<'a> {
        Scenario {
            model: Some(belief),
            world: Some(ground.world()),
            freedoms: Some(policy.wants() & ground.allowed()),
            plain_machine: &self.plain_machine,
            budget,
            guard: ground.guard(),
            ..Scenario::new(&self.machine, &self.workload, policy)
        }
    }

    fn check_budget(
        &self,
        budget: &Budget,
        policy: &PolicySpec,
        believed: &Profiled,
        profiles: &[Profile],
    ) -> Result<(), StageError> {
        let Some((least, application)) = believed.least_power(self.workload.jobs()) else {
            return Ok(());
        };
        let most = self.left_for_jobs(&budget.lowered(policy.guard()));
        if most < least {
            let application = profiles[application as usize - 1].application.clone();
            return Err(StageError::NothingRuns { most, least, application });
        }
        Ok(())
    }
}

impl Stage {
    /// The most that a budget ever leaves for jobs.
    fn left_for_jobs(&self, budget: &Budget) -> Watts {
        budget.largest_for(Instant::ZERO, Span::ZERO).saturating_sub(self.machine.floor())
    }

    /// Whether processors that are not alike can be held at their caps.
    fn check_floor(&self, budget: &Budget, policy: &PolicySpec) -> Result<(), StageError> {
        let processors = self.machine.variation.as_ref().ok_or(StageError::NoCurves)?;
        let (floor, most) = (processors.floor(), self.left_for_jobs(budget));
        if most < floor {
            return Err(StageError::NothingFed { most, floor });
        }
        match policy {
            PolicySpec::Uniform(UniformSpec { cap: UniformCap::Power(cap), .. })
                if *cap < floor =>
            {
                Err(StageError::CapTooLow { policy: *policy, floor })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;

    fn workload(nodes: u32) -> Workload {
        let job = Job::new(1, Instant::ZERO, nodes, Span::from_secs(5));
        Workload::new("one", [(job, Span::from_secs(8))])
    }

    #[test]
    fn a_workload_that_does_not_say_gets_a_machine_it_fits() {
        let machine = machine_of(&workload(6)).unwrap();
        assert_eq!(machine.nodes, 6);
        let said = machine_of(&workload(6).on_processors(Some(32))).unwrap();
        assert_eq!((said.nodes, said.name.as_str()), (32, "32 processors"));
    }

    #[test]
    fn requests_become_whole_nodes_and_estimates_run_times() {
        let machine = Machine { processors_per_node: 4, ..Machine::of_processors(8).unwrap() };
        let stage = Stage::new(machine.clone(), workload(6), true);
        let job = stage.workload.jobs()[0];
        assert_eq!((job.nodes, job.requested, stage.estimates_raised), (2, Span::from_secs(8), 1));
        let enforced = Stage::new(machine.clone(), workload(6), false);
        assert_eq!(enforced.workload.jobs()[0].requested, Span::from_secs(5));
        let larger = stage.on(Machine { nodes: 16, ..machine });
        assert_eq!((larger.machine.nodes, larger.plain_machine.nodes), (16, 8));
    }
}
