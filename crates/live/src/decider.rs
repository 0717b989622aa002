//! Who decides: a policy with what it believes of the applications that jobs may run.

use std::sync::Arc;

use busbar_core::freedom::Freedoms;
use busbar_core::machine::Machine;
use busbar_core::model::Model;
use busbar_core::policy::{Believe, BuildContext, Contender, Field, Policy, PolicySpec, Unfit};
use busbar_core::world::{Repertoire, Unsuited};

/// A policy on a machine. What it believes of applications was worked out once.
#[derive(Clone, Debug)]
pub struct Decider {
    spec: PolicySpec,
    contender: Contender,
    repertoire: Repertoire,
    /// The names of the applications, in the order of their numbers.
    applications: Arc<[String]>,
    /// Whether somebody has described them.
    is_described: bool,
}

/// Why a machine, applications and a policy do not go together.
#[derive(Debug, thiserror::Error)]
pub enum DeciderError {
    /// The applications do not run on the machine.
    #[error(transparent)]
    Unsuited(#[from] Unsuited),
    /// The policy cannot decide there.
    #[error("'{policy}' cannot decide here: {why}")]
    Unfit {
        /// Which policy.
        policy: PolicySpec,
        /// Why.
        why: Unfit,
    },
}

impl Decider {
    /// A policy on a machine of which [all is said](Repertoire::filled_in), and where jobs run these applications.
    pub fn new(
        machine: &Machine,
        repertoire: Repertoire,
        spec: PolicySpec,
    ) -> Result<Self, DeciderError> {
        let world = Arc::new(repertoire.open_world(machine)?);
        let field = Field::new(machine, world, Freedoms::USUAL, 1);
        let entered = spec.enter(&field, Believe::Published);
        let contender = entered.map_err(|why| DeciderError::Unfit { policy: spec, why })?;
        Ok(Decider {
            spec,
            contender,
            applications: repertoire.names(machine).into(),
            is_described: machine.variation.is_some()
                || matches!(repertoire, Repertoire::Profiled(_)),
            repertoire,
        })
    }

    /// Another policy on the same machine.
    pub fn with(&self, machine: &Machine, spec: PolicySpec) -> Result<Self, DeciderError> {
        Decider::new(machine, self.repertoire.clone(), spec)
    }

    /// Which applications jobs may run.
    pub fn repertoire(&self) -> &Repertoire {
        &self.repertoire
    }

    /// The policy by its name.
    pub fn spec(&self) -> PolicySpec {
        self.spec
    }

    /// The policy, ready to decide.
    pub fn policy(&self) -> Box<dyn Policy> {
        self.spec.build(&BuildContext::default())
    }

    /// What is believed of jobs; none is known yet.
    pub fn model(&self) -> Box<dyn Model> {
        self.contender.belief(&[])
    }

    /// The names of the applications of which anything is known, in the order of their numbers.
    pub fn applications(&self) -> &[String] {
        &self.applications
    }

    /// Whether a site has described its applications, so that another name is a slip of the pen.
    pub fn is_described(&self) -> bool {
        self.is_described
    }
}
