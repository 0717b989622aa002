//! `busbar compare --slurm`: the runs of a comparison as a job array on a Slurm cluster.
//!
//! Each element of the array works out every Nth run into the cache, which all of them share. Then the
//! comparison goes on here as always, and finds its results in the cache, so that what it prints and writes does not
//! depend on where the runs were made.

use std::path::Path;
use std::str::FromStr;

use clap::Args;

use crate::experiment::run::Part;

#[cfg(feature = "slurm")]
mod array;

/// Where the runs are made.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// Make the runs as a job array on the Slurm cluster; the cache must be in a folder that all nodes share
    #[cfg(feature = "slurm")]
    #[arg(long, conflicts_with = "no_cache")]
    slurm: bool,

    /// With --slurm: how many elements the array has
    #[cfg(feature = "slurm")]
    #[arg(long, value_name = "N", default_value_t = 16, requires = "slurm",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    tasks: u32,

    /// Only every Nth run, for an element of the array
    #[arg(long, hide = true, value_name = "I/N", conflicts_with = "no_cache")]
    part: Option<PartText>,
}

/// A part as it is written: `3/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PartText(Part);

impl FromStr for PartText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(place, of)| {
            Some(Part { place: place.parse().ok()?, of: of.parse().ok()? })
        });
        let is_one = |part: &Part| part.place < part.of;
        numbers
            .filter(is_one)
            .map(PartText)
            .ok_or_else(|| format!("'{text}' is no part such as 3/16"))
    }
}

impl Arguments {
    /// The part of the runs that is made here, if it is not all of them.
    pub(super) fn part(&self) -> Option<Part> {
        self.part.map(|part| part.0)
    }

    /// Whether the runs are made on a cluster.
    pub(super) fn is_on_slurm(&self) -> bool {
        cfg!(feature = "slurm") && self.slurm()
    }

    #[cfg(feature = "slurm")]
    fn slurm(&self) -> bool {
        self.slurm
    }

    #[cfg(not(feature = "slurm"))]
    fn slurm(&self) -> bool {
        false
    }

    /// Makes the runs on the cluster. Elements that fail are tried once more; what is missing then is worked out here.
    #[cfg(feature = "slurm")]
    pub(super) fn run(&self, cache: &Path) -> anyhow::Result<()> {
        array::run(self.tasks, cache)
    }

    #[cfg(not(feature = "slurm"))]
    pub(super) fn run(&self, _cache: &Path) -> anyhow::Result<()> {
        anyhow::bail!("this program was built without the feature slurm")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read() {
        assert_eq!("3/16".parse::<PartText>().unwrap().0, Part { place: 3, of: 16 });
        for wrong in ["", "3", "16/16", "a/b", "-1/2"] {
            assert!(wrong.parse::<PartText>().is_err(), "{wrong}");
        }
    }
}
