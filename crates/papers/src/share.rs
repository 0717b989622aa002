//! Share, Busbar's own policy, against the published ones on their own ground.
//!
//! `logs` is PB-guided's ground: logs of the Parallel Workloads Archive on machines with frequency levels. Each
//! log in a folder is cut into consecutive windows, all of which count but for the first fifth of them: on those
//! the halving times of the orders were chosen. `rmap` and `parm` are those papers' own experiments, `ptune` is
//! PPartition's ground, and `utility` that of the twelve heuristics for tasks under an energy budget. `safety` is
//! whether it is anywhere worse than another policy, on logs in the world that all policies share. Where a
//! published policy has a goal to be beaten, the goal stands beside what was reached.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use busbar_core::machine::MachineError;
use busbar_core::policy::PolicyError;
use busbar_workloads::essc::EsscError;
use busbar_workloads::lublin::LublinError;
use busbar_workloads::swf::{BadRecords, SwfError};

use crate::Reproduction;

mod logs;
mod parm;
mod ptune;
mod rmap;
mod safety;
mod utility;

/// How much to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// A folder of logs; without it generated workloads stand in.
    pub traces: Option<PathBuf>,
    /// What to do about lines of a log that are not records.
    pub bad_records: BadRecords,
    /// Jobs in a window.
    pub window: usize,
    /// Which windows are taken.
    pub part: Part,
    /// Whose experiments are run; all, if nothing is said.
    pub ground: Option<Ground>,
    /// Draws of what the other papers' experiments draw.
    pub seeds: u64,
    /// Jobs in each set of PARM's projection.
    pub projection: u32,
    /// Where random numbers start.
    pub seed: u64,
}

/// Which windows of a log are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// All but the first fifth of each log.
    #[default]
    Judging,
    /// The first fifth of each log, on which parameters were chosen: here several of them are tried.
    Choosing,
}

/// Whose experiments are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// PB-guided's: logs under a power limit.
    Logs,
    /// RMAP's traces.
    Rmap,
    /// PARM's testbed and projection.
    Parm,
    /// PPartition's queues.
    Ptune,
    /// The utility days.
    Utility,
    /// Logs in the world that all policies share: whether ours is anywhere worse than another.
    Safety,
}

impl Ground {
    /// All of them.
    pub const ALL: [Ground; 6] =
        [Ground::Logs, Ground::Rmap, Ground::Parm, Ground::Ptune, Ground::Utility, Ground::Safety];
}

impl fmt::Display for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ground::Logs => "logs",
            Ground::Rmap => "rmap",
            Ground::Parm => "parm",
            Ground::Ptune => "ptune",
            Ground::Utility => "utility",
            Ground::Safety => "safety",
        })
    }
}

impl FromStr for Ground {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Ground::ALL.into_iter().find(|ground| ground.to_string() == text);
        let valid = || Ground::ALL.map(|ground| ground.to_string()).join(", ");
        named.ok_or_else(|| format!("valid: {}", valid()))
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            traces: None,
            bad_records: BadRecords::default(),
            window: 5000,
            part: Part::default(),
            ground: None,
            seeds: 10,
            projection: 500,
            seed: 1,
        }
    }
}

/// Why the experiments could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// The folder cannot be read.
    #[error("cannot read the folder of logs {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason that the system gives.
        source: std::io::Error,
    },
    /// There is not one whole window.
    #[error(
        "{} has no log with {wanted} usable jobs; give a folder of .swf or .swf.gz files, or a smaller \
         --window", path.display()
    )]
    NoWindows {
        /// The folder.
        path: PathBuf,
        /// How many jobs are needed.
        wanted: usize,
    },
    /// A log cannot be read.
    #[error(transparent)]
    Log(#[from] SwfError),
    /// A contender is not a policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A machine cannot be made.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A stand-in cannot be made.
    #[error(transparent)]
    Lublin(#[from] LublinError),
    /// RMAP's traces cannot be made.
    #[error(transparent)]
    Rmap(#[from] crate::rmap::ReproduceError),
    /// PARM's jobs cannot be had.
    #[error(transparent)]
    Parm(#[from] crate::parm::ReproduceError),
    /// A machine with manufacturing variation cannot be made.
    #[error(transparent)]
    Ptune(#[from] crate::ptune::ReproduceError),
    /// A day of tasks cannot be made.
    #[error(transparent)]
    Day(#[from] EsscError),
}

/// Hears how many runs are done, of how many.
type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

fn geometric(values: impl Iterator<Item = f64>) -> f64 {
    libm::exp(mean(values.map(libm::log)))
}

/// Runs the experiments; `progress` hears how many runs are done, of how many.
pub fn reproduce(
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Reproduction, ShareError> {
    let grounds: Vec<Ground> = match (options.ground, options.part) {
        (Some(ground), _) => vec![ground],
        (None, Part::Choosing) => vec![Ground::Logs],
        (None, Part::Judging) => Ground::ALL.to_vec(),
    };
    let mut whole = Reproduction { findings: Vec::new(), notes: Vec::new() };
    for ground in grounds {
        let Reproduction { findings, notes } = match ground {
            Ground::Logs => logs::reproduce(options, progress)?,
            Ground::Rmap => rmap::reproduce(options, progress)?,
            Ground::Parm => parm::reproduce(options, progress)?,
            Ground::Ptune => ptune::reproduce(options, progress)?,
            Ground::Utility => utility::reproduce(options, progress)?,
            Ground::Safety => safety::reproduce(options, progress)?,
        };
        whole.findings.extend(findings);
        whole.notes.extend(notes);
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_by_hand() {
        assert_eq!(mean([1.0, 3.0].into_iter()), 2.0);
        assert!((geometric([1.0, 4.0].into_iter()) - 2.0).abs() < 1e-12);
    }
}
