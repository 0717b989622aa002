//! A workload on the machine it is to run on, made ready for a policy.
//!
//! A [`Scenario`] takes machine, workload and world as they are. A prepared puts them together from
//! what a user named: the machine that a log comes from where none was given, requests packed onto
//! its nodes, estimates raised to run times, and the [ground](SharedWorld) that all policies share.

use crate::budget::Budget;
use crate::heterogeneity::Site;
use crate::machine::{Machine, MachineError};
use crate::model::Model;
use crate::policy::PolicySpec;
use crate::scenario::Scenario;
use crate::workload::Workload;

mod known_power;
mod rules;
mod sanity;
mod shared_world;

pub use known_power::{measured_power, predicted_power};
pub use rules::Rules;
pub use sanity::{Demand, limits_nothing};
pub use shared_world::{SharedWorld, assumed, leaves_nothing, outdoor_mistake};

/// A workload and its machine.
#[derive(Clone, Debug)]
pub struct PreparedWorkload {
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

/// The machine a workload comes from; if it does not say, one its largest job just fits on.
pub fn machine_of(workload: &Workload) -> Result<Machine, MachineError> {
    if let Some(machine) = workload.machine() {
        return Ok(machine.clone());
    }
    match workload.processors() {
        // The machine of traces of applications, which logs of them name.
        _ if workload.computer() == Some("cab") => Ok(Machine::cab()),
        Some(processors) => {
            let mut machine = Machine::of_processors(processors)?;
            if workload.selection().is_some_and(|selection| selection.left_out() > 0) {
                machine.name += " (the most that these jobs kept busy at once; see --machine)";
            }
            Ok(machine)
        }
        None => {
            let mut machine =
                Machine::of_processors(workload.largest_job().min(Machine::MOST_NODES))?;
            machine.name += " (as many as the largest job asks for; see --machine)";
            Ok(machine)
        }
    }
}

impl PreparedWorkload {
    /// Puts a workload on a machine. With `raises`, estimates below the run time are raised to it;
    /// otherwise such jobs are ended at the time they asked for.
    pub fn new(machine: Machine, mut workload: Workload, raises: bool) -> Self {
        match &machine.kinds {
            Some(kinds) => workload.seat(kinds),
            None => workload.pack_processors(machine.processors_per_node),
        }
        let estimates_raised = if raises { workload.raise_estimates() } else { 0 };
        let plain_machine = machine.clone();
        PreparedWorkload { plain_machine, machine, workload, estimates_raised, site: None }
    }

    /// The same jobs on another number of the same nodes.
    pub fn on(self, machine: Machine) -> Self {
        PreparedWorkload { machine, ..self }
    }

    /// A policy in a world of its own, such as the machines that tasks come with.
    pub fn in_own_world<'a>(
        &'a self,
        policy: PolicySpec,
        budget: Budget,
        model: &'a dyn Model,
    ) -> Scenario<'a> {
        Scenario {
            plain_machine: &self.plain_machine,
            budget,
            site: self.site.as_ref(),
            ..Scenario::new(&self.machine, &self.workload, policy, model)
        }
    }

    /// A policy on this prepared, in the world that all policies share.
    pub fn in_shared_world<'a>(
        &'a self,
        policy: PolicySpec,
        budget: Budget,
        shared: &'a SharedWorld,
        belief: &'a dyn Model,
    ) -> Scenario<'a> {
        Scenario {
            world: Some(shared.world()),
            freedoms: Some(policy.wants() & shared.allowed()),
            plain_machine: &self.plain_machine,
            budget,
            guard: shared.guard(),
            power_accuracy: shared.power_accuracy(),
            switch_off: shared.switch_off(),
            priorities: shared.priorities().cloned(),
            limits: shared.limits().cloned(),
            ..Scenario::new(&self.machine, &self.workload, policy, belief)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use crate::units::{Instant, Span};

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
        let prepared = PreparedWorkload::new(machine.clone(), workload(6), true);
        let job = prepared.workload.jobs()[0];
        assert_eq!(
            (job.nodes, job.requested, prepared.estimates_raised),
            (2, Span::from_secs(8), 1)
        );
        let enforced = PreparedWorkload::new(machine.clone(), workload(6), false);
        assert_eq!(enforced.workload.jobs()[0].requested, Span::from_secs(5));
        let larger = prepared.on(Machine { nodes: 16, ..machine });
        assert_eq!((larger.machine.nodes, larger.plain_machine.nodes), (16, 8));
    }
}
