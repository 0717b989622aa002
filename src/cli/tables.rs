//! The profiles of applications: from the database, or made up.

use std::path::Path;

use clap::Args;

use crate::cli::warn;
use crate::profile::cab::{self, Preset};
use crate::profile::{Profile, Store, StoreError};
use crate::workload::rmap::UsualTimes;

/// The database that is looked for if none is named.
const DATABASE: &str = "profiles.db";

/// Which profiles.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// The profile database (see busbar profile), for policies that choose configurations and for
    /// workloads made of applications; or cab, cab-contended: made up [default: profiles.db, or
    /// cab if there is none]
    #[arg(long, value_name = "FILE")]
    profiles: Option<String>,
}

impl Arguments {
    /// The profiles, by the number of the application.
    pub(super) fn load(&self) -> Result<Vec<Profile>, StoreError> {
        let named = self.profiles.as_deref().unwrap_or(DATABASE);
        let is_there = Path::new(named).exists();
        match named.parse::<Preset>() {
            Ok(preset) if !is_there => Ok(cab::generate(preset, 1)),
            _ if self.profiles.is_none() && !is_there => {
                warn(&format!(
                    "there is no {DATABASE}: applications are those of 'busbar profile generate \
                     cab', which are made up"
                ));
                Ok(cab::generate(Preset::Cab, 1))
            }
            _ => {
                let profiles = Store::open(Path::new(named))?.profiles()?;
                Ok(profiles.into_iter().map(|(_, profile)| profile).collect())
            }
        }
    }
}

/// How long applications take that have these profiles.
pub(super) fn usual_times(profiles: &[Profile]) -> UsualTimes {
    UsualTimes(profiles.iter().map(Profile::usual_times).collect())
}
