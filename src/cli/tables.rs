//! The profiles of applications: from the database, or synthetic.

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
pub(super) struct Arguments {
    /// Application profiles: a database (see busbar profile), or the synthetic cab or cab-contended [default:
    /// profiles.db, or cab if there is none]
    ///
    /// Policies that choose configurations need them, and so do workloads made of applications.
    #[arg(long, value_name = "FILE", help_heading = "Application profiles")]
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

    /// Which profiles: those named, or else the usual database, or else synthetic ones.
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
                        "there is no {DATABASE}: the synthetic profiles of 'busbar profile generate {preset}' are used"
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
