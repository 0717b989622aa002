//! Sweeps: the runs of a comparison, made by several processes. They share results through the cache.
//!
//! With `--shard 3/16` a process writes every 16th run into the shared cache and prints no table, so any workflow
//! manager or scheduler can make a sweep. With `--slurm` Busbar itself submits the shards as a job array. Either way
//! a comparison without `--shard` finds the results in the cache, so that what it prints and writes does not depend
//! on where the runs were made, and makes the runs that are missing.

use std::path::Path;
use std::str::FromStr;

use anyhow::Context;
use clap::Args;

use crate::experiment::run::Part;

#[cfg(feature = "slurm")]
mod array;

/// The options that divide a comparison among processes.
#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Several processes")]
pub(super) struct Arguments {
    /// Make only the runs of shard I of N, into the cache: 1/4 to 4/4, or slurm
    ///
    /// No table is printed; the same comparison without --shard reads the results. 'slurm' takes the shard from the
    /// element of the Slurm job array that this process is.
    #[arg(long, value_name = "I/N", conflicts_with = "no_cache")]
    shard: Option<Shard>,

    /// Make the runs as a job array on the Slurm cluster; all nodes must share the folder of the cache
    #[cfg(feature = "slurm")]
    #[arg(long, conflicts_with_all = ["no_cache", "shard"])]
    slurm: bool,

    /// Number of elements of the job array
    #[cfg(feature = "slurm")]
    #[arg(long, value_name = "N", default_value_t = 16, requires = "slurm",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    tasks: u32,
}

/// A shard as it is written: `3/16`, or `slurm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shard {
    /// The shard with this number.
    Of(Part),
    /// The shard that Slurm's job array assigns to this process.
    Slurm,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "slurm" {
            return Ok(Shard::Slurm);
        }
        let numbers = text.split_once('/').and_then(|(number, of)| {
            let (number, of): (usize, usize) = (number.parse().ok()?, of.parse().ok()?);
            Some(Part { place: number.checked_sub(1)?, of })
        });
        let is_one = |part: &Part| part.place < part.of;
        numbers.filter(is_one).map(Shard::Of).ok_or_else(|| {
            format!(
                "'{text}' is not a shard; write I/N, from 1/4 to 4/4 for four of them, or slurm"
            )
        })
    }
}

impl Shard {
    /// The part of the runs that it is. `variable` is what the environment says.
    fn part(self, variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Part> {
        if let Shard::Of(part) = self {
            return Ok(part);
        }
        let number = |name: &str| -> anyhow::Result<Option<usize>> {
            let Some(text) = variable(name) else { return Ok(None) };
            let read = text.trim().parse();
            read.map(Some).with_context(|| format!("--shard slurm: {name} is '{text}'"))
        };
        let id = number("SLURM_ARRAY_TASK_ID")?;
        let count = number("SLURM_ARRAY_TASK_COUNT")?;
        let (Some(id), Some(of)) = (id, count) else {
            anyhow::bail!(
                "--shard slurm: this is not an element of a job array, as SLURM_ARRAY_TASK_ID and \
                 SLURM_ARRAY_TASK_COUNT are not set; submit it with sbatch --array=1-N, or write --shard I/N"
            )
        };
        let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(1);
        let place = id.checked_sub(first).filter(|place| *place < of);
        let place = place.with_context(|| {
            format!(
                "--shard slurm: index {id} of an array of {of} elements from {first} on leaves gaps; submit it with \
                 sbatch --array=1-{of}, or write --shard I/N"
            )
        })?;
        Ok(Part { place, of })
    }
}

impl Arguments {
    /// The part of the runs that is made here, if it is not all of them.
    pub(super) fn part(&self) -> anyhow::Result<Option<Part>> {
        self.shard.map(|shard| shard.part(|name| std::env::var(name).ok())).transpose()
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

    /// Makes the runs on the cluster. Failed elements are retried once; this process makes the runs that are still
    /// missing.
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
    fn shards_are_counted_from_one() {
        assert_eq!("3/16".parse(), Ok(Shard::Of(Part { place: 2, of: 16 })));
        assert_eq!("1/1".parse(), Ok(Shard::Of(Part { place: 0, of: 1 })));
        assert_eq!("slurm".parse(), Ok(Shard::Slurm));
        for wrong in ["", "3", "0/4", "5/4", "1/0", "a/b", "-1/2", "SLURM"] {
            let error = wrong.parse::<Shard>().unwrap_err();
            assert!(error.contains("write I/N, from 1/4 to 4/4"), "{wrong}: {error}");
        }
    }

    #[test]
    fn an_element_of_an_array_is_a_shard() {
        let part = |variables: &[(&str, &str)]| {
            let found = |name: &str| {
                let mut variables = variables.iter();
                variables.find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            let part = Shard::Slurm.part(found);
            part.map(|part| (part.place, part.of)).map_err(|error| format!("{error:#}"))
        };
        let [id, count, min] =
            ["SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"];
        assert_eq!(part(&[(id, "4"), (count, "4"), (min, "1")]), Ok((3, 4)));
        assert_eq!(part(&[(id, "0"), (count, "4"), (min, "0")]), Ok((0, 4)));
        assert_eq!(part(&[(id, "7"), (count, "2"), (min, "6")]), Ok((1, 2)));
        assert_eq!(part(&[(id, "1"), (count, "4")]), Ok((0, 4)));
        for (variables, why) in [
            (&[][..], "not an element of a job array"),
            (&[(id, "4")], "not an element of a job array"),
            (&[(id, "x"), (count, "4")], "SLURM_ARRAY_TASK_ID is 'x'"),
            (&[(id, "9"), (count, "4"), (min, "1")], "leaves gaps"),
            (&[(id, "0"), (count, "4"), (min, "1")], "leaves gaps"),
        ] {
            let error = part(variables).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
