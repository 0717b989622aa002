//! The profiles of applications: from the database, or made up.

use std::path::Path;

use clap::Args;

use crate::cli::warn;
use crate::experiment::Experiment;
use crate::profile::cab::{self, Preset};
use crate::profile::{Profile, Store, StoreError};
use crate::workload::rmap::UsualTimes;

/// The database that is looked for if none is named.
const DATABASE: &str = "profiles.db";

/// The options that name profiles.
#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Applications")]
pub(super) struct Arguments {
    /// The profile database (see busbar profile), for policies that choose configurations and for
    /// workloads made of applications; or cab, cab-contended: made up [default: profiles.db, or
    /// cab if there is none]
    #[arg(long, value_name = "FILE")]
    profiles: Option<String>,
}

impl Arguments {
    /// Whether profiles were named.
    pub(super) fn were_given(&self) -> bool {
        self.profiles.is_some()
    }

    /// The profiles that were named.
    pub(super) fn given(&self) -> Option<&str> {
        self.profiles.as_deref()
    }

    /// Which profiles: what was named, or else the usual database, or else what is made up.
    pub(super) fn name(&self) -> &str {
        match &self.profiles {
            Some(name) => name,
            None if Path::new(DATABASE).exists() => DATABASE,
            None => "cab",
        }
    }

    /// The profiles, by the number of the application.
    pub(super) fn load(&self) -> Result<Vec<Profile>, StoreError> {
        let name = self.name();
        match name.parse::<Preset>() {
            Ok(preset) if !Path::new(name).exists() => {
                if self.profiles.is_none() {
                    warn(&format!(
                        "there is no {DATABASE}: applications are those of 'busbar profile \
                         generate {preset}', which are made up"
                    ));
                }
                Ok(cab::generate(preset, 1))
            }
            _ => open(Path::new(name)),
        }
    }
}

/// The profiles of an experiment, which is told their name, so that it says all it depends on.
pub(super) fn of_experiment(experiment: &mut Experiment) -> Result<Vec<Profile>, StoreError> {
    if !experiment.needs_profiles() {
        return Ok(Vec::new());
    }
    let named = Arguments { profiles: experiment.profiles.clone() };
    let profiles = named.load()?;
    if experiment.profiles.is_none() {
        experiment.usual_profiles = Some(named.name().to_owned());
    }
    Ok(profiles)
}

/// The profiles of a database by the number of the application, less one. A number that no
/// application has any more has an empty one.
pub(super) fn open(path: &Path) -> Result<Vec<Profile>, StoreError> {
    Store::open(path)?.by_number()
}

/// How long applications take that have these profiles.
pub(super) fn usual_times(profiles: &[Profile]) -> UsualTimes {
    UsualTimes(profiles.iter().map(Profile::usual_times).collect())
}
