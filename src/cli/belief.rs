//! What is believed about how jobs run, and what is true: tables from the profile database.

use clap::{Args, ValueEnum};

use crate::machine::Machine;
use crate::model::{Beliefs, Profiled};
use crate::policy::PolicySpec;
use crate::profile::Profile;
use crate::profile::fit::{self, Training};
use crate::units::Share;
use crate::workload::Workload;

/// Which tables.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// What a policy that chooses configurations believes: the rows of the database, or what a model says that was
    /// fitted to some of them
    #[arg(long, value_name = "TABLE", value_enum, default_value_t)]
    believe: Table,

    /// What then happens
    #[arg(long, value_name = "TABLE", value_enum, default_value_t)]
    truth: Table,

    /// The share of the rows a model is fitted to
    #[arg(long, value_name = "SHARE", default_value = "10%")]
    train: Share,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Table {
    #[default]
    Measured,
    Predicted,
}

/// Belief and truth.
pub(super) struct Models {
    pub(super) believed: Profiled,
    pub(super) truth: Profiled,
}

impl Arguments {
    /// Both models, if the policy needs them; `measured` is what the database has.
    pub(super) fn models(
        &self,
        policy: &PolicySpec,
        machine: &Machine,
        workload: &Workload,
        measured: &[Profile],
        seed: u64,
    ) -> anyhow::Result<Option<Models>> {
        let PolicySpec::Rmap(spec) = policy else { return Ok(None) };
        let table = |table: Table| match table {
            Table::Measured => Ok(measured.to_vec()),
            Table::Predicted => {
                let training = Training::Random { share: self.train, seed };
                measured.iter().map(|profile| fit::predicted(profile, &training)).collect()
            }
        };
        let beliefs = Beliefs { node_power: spec.node_power, ..Beliefs::default() };
        let jobs = workload.jobs();
        Ok(Some(Models {
            believed: Profiled::new(machine, &table(self.believe)?, jobs, beliefs)?,
            truth: Profiled::new(machine, &table(self.truth)?, jobs, Beliefs::default())?,
        }))
    }
}
