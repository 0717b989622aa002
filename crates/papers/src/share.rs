//! Share, Busbar's own policy, against the published ones on their own ground.
//!
//! `logs` is PB-guided's ground: logs of the Parallel Workloads Archive on machines with frequency levels. Each
//! log in a folder is cut into consecutive windows, all of which count but for the first fifth of them: on those
//! the halving times of the orders were chosen. Where a published policy has a goal to be beaten, the goal stands beside
//! what was reached. `ptune` is PPartition's ground, and `utility` that of the twelve heuristics for tasks under an
//! energy budget.

use std::path::PathBuf;

use busbar_core::machine::MachineError;
use busbar_core::policy::PolicyError;
use busbar_core::workload::essc::EsscError;
use busbar_core::workload::lublin::LublinError;
use busbar_core::workload::swf::{BadRecords, SwfError};

use crate::Reproduction;
use crate::ptune::ReproduceError;

mod logs;
mod ptune;
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

impl Default for Options {
    fn default() -> Self {
        Options {
            traces: None,
            bad_records: BadRecords::default(),
            window: 5000,
            part: Part::default(),
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
    /// A machine with manufacturing variation cannot be made.
    #[error(transparent)]
    Ptune(#[from] ReproduceError),
    /// A day of tasks cannot be made.
    #[error(transparent)]
    Day(#[from] EsscError),
}

/// Runs the experiments; `progress` hears how many runs are done, of how many.
pub fn reproduce(
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Reproduction, ShareError> {
    let mut reproduction = logs::reproduce(options, progress)?;
    if options.part == Part::Judging {
        for ground in [ptune::findings, utility::findings] {
            let (findings, notes) = ground(options, progress)?;
            reproduction.findings.extend(findings);
            reproduction.notes.extend(notes);
        }
    }
    Ok(reproduction)
}
