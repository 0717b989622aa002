//! A policy together with what it believes about applications.

use std::sync::Arc;

use busbar_core::freedom::Freedoms;
use busbar_core::machine::Machine;
use busbar_core::model::Model;
use busbar_core::policy::{
    Believe, BuildContext, Contender, Field, Policy, PolicyError, PolicySpec, Unfit,
};
use busbar_core::world::{Repertoire, Unsuited};

/// A policy on a machine, with its beliefs about applications, which are worked out once.
#[derive(Clone, Debug)]
pub struct Decider {
    spec: PolicySpec,
    machine: Machine,
    contender: Contender,
    repertoire: Repertoire,
    /// The names of the applications, in the order of their numbers.
    applications: Arc<[String]>,
    /// Whether the site has described its applications.
    is_described: bool,
}

/// Why a policy cannot be used on a machine with these applications.
#[derive(Debug, thiserror::Error)]
pub enum DeciderError {
    /// The applications do not run on the machine.
    #[error(transparent)]
    Unsuited(#[from] Unsuited),
    /// The policy is for simulations alone.
    #[error("'{policy}' {}", PolicyError::Simulated)]
    Simulated {
        /// The policy.
        policy: PolicySpec,
    },
    /// The policy cannot decide on this machine.
    #[error("the policy '{policy}' cannot be used here: {why}")]
    Unfit {
        /// The policy.
        policy: PolicySpec,
        /// Why it cannot.
        why: Unfit,
    },
}

impl Decider {
    /// A policy on a machine whose missing figures were [filled in](Repertoire::filled_in), where
    /// jobs run these applications.
    pub fn new(
        machine: &Machine,
        repertoire: Repertoire,
        spec: PolicySpec,
    ) -> Result<Self, DeciderError> {
        if spec.is_for_simulations() {
            return Err(DeciderError::Simulated { policy: spec });
        }
        let world = Arc::new(repertoire.open_world(machine)?);
        let field = Field::new(machine, world, Freedoms::USUAL, 1);
        let entered = spec.enter(&field, Believe::Published);
        let contender = entered.map_err(|why| DeciderError::Unfit { policy: spec.clone(), why })?;
        Ok(Decider {
            spec,
            machine: machine.clone(),
            contender,
            applications: repertoire.names(machine).into(),
            is_described: machine.variation.is_some()
                || matches!(repertoire, Repertoire::Profiled(_)),
            repertoire,
        })
    }

    /// Another policy on the same machine.
    pub(crate) fn with(&self, machine: &Machine, spec: PolicySpec) -> Result<Self, DeciderError> {
        Decider::new(machine, self.repertoire.clone(), spec)
    }

    /// The applications that jobs may run.
    pub(crate) fn repertoire(&self) -> &Repertoire {
        &self.repertoire
    }

    /// The policy's name and parameters.
    pub fn spec(&self) -> &PolicySpec {
        &self.spec
    }

    /// A new instance of the policy.
    pub fn policy(&self) -> Box<dyn Policy> {
        let freedoms = Some(self.spec.wants() & Freedoms::USUAL);
        let machine = Some(&self.machine);
        self.spec.build(&BuildContext { machine, freedoms, ..BuildContext::default() })
    }

    /// A new model of jobs, which does not know any job yet.
    pub fn model(&self) -> Box<dyn Model> {
        self.contender.belief(&[])
    }

    /// The names of the known applications, in the order of their numbers.
    pub fn applications(&self) -> &[String] {
        &self.applications
    }

    /// Whether the site has described its applications, so that an unknown name is a mistake.
    pub(crate) fn is_described(&self) -> bool {
        self.is_described
    }
}
