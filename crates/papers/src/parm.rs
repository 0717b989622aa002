//! PARM (Sarood, Langer, Gupta and Kalé: Maximizing throughput of overprovisioned HPC data centers
//! under a strict power budget, SC 2014): who gets how many nodes and watts, as an integer program.
//!
//! The paper's jobs were not published, neither those of its testbed nor which of Intrepid's log it
//! took. `jobs` draws stand-ins: of a testbed of 38 nodes many, and for the projection sets with the
//! mean size and run time that the paper's tables show, unless the log is at hand. `runs` runs one
//! scheduler on one set, `tables` sets what comes out beside what was published.

use std::path::{Path, PathBuf};

use crate::Reproduction;
use crate::parallel::in_parallel;
use busbar_core::workload::Workload;
use busbar_workloads::swf::{self, BadRecords, SwfError};

mod jobs;
mod runs;
mod tables;

pub(crate) use runs::{GAMMAS, Mix, RunFigures, Scheduler, Task, parm};

/// How much to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// A folder that may have Intrepid's log.
    pub traces: Option<PathBuf>,
    /// Jobs in each set of the projection.
    pub jobs: u32,
    /// Draws of the testbed's jobs.
    pub seeds: u64,
    /// Where random numbers start.
    pub first_seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { traces: None, jobs: 1000, seeds: 30, first_seed: 1 }
    }
}

/// Why the experiments could not be repeated.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The folder of logs cannot be read.
    #[error("cannot read the folder {}", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// The reason that the system or the library gives.
        source: std::io::Error,
    },
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] SwfError),
    /// The log has too few jobs.
    #[error("{} has {found} usable jobs; three sets of {wanted} are needed (--jobs)", path.display())]
    Short {
        /// The log.
        path: PathBuf,
        /// Usable jobs.
        found: usize,
        /// Jobs in a set.
        wanted: u32,
    },
}

/// Runs the paper's experiments; `progress` hears how many runs are done, of how many.
pub fn reproduce(
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Reproduction, ReproduceError> {
    let (sets, source) = sets(options)?;
    let tasks = Task::all(options);
    let outcomes = in_parallel(&tasks, |task| task.run(&sets, options), progress);
    let findings = tables::findings(&tasks, &outcomes, options);
    let notes = vec![
        format!("projection: three sets of {} from {source}", options.jobs),
        format!("testbed: {} draws of {} generated jobs", options.seeds, jobs::TESTBED_JOBS),
        "response: from submission to start; completion: from submission to end; speed-up: of the \
         mean completion time, against the baseline"
            .to_owned(),
    ];
    Ok(Reproduction { findings, notes })
}

/// The three sets of the projection, and where they are from.
pub(crate) fn sets(options: &Options) -> Result<([Workload; 3], String), ReproduceError> {
    let log = options.traces.as_deref().map(intrepid).transpose()?.flatten();
    Ok(match log {
        Some(path) => {
            let sets = jobs::of_log(&read(&path)?, &path, options.jobs)?;
            (sets, "Intrepid's log".to_owned())
        }
        None => {
            let made = "generated jobs, of the mean size and run time in the paper's tables";
            let missing = options
                .traces
                .as_ref()
                .map(|folder| format!("; {} has no ANL-Intrepid-2009-*.swf", folder.display()));
            let sets = std::array::from_fn(|set| jobs::like_intrepid(options, set as u64));
            (sets, made.to_owned() + &missing.unwrap_or_default())
        }
    })
}

/// Intrepid's log, if the folder has it.
fn intrepid(folder: &Path) -> Result<Option<PathBuf>, ReproduceError> {
    let unreadable = |source| ReproduceError::Folder { path: folder.to_owned(), source };
    let mut found = None;
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let is_log = name.ends_with(".swf") || name.ends_with(".swf.gz");
        if is_log && name.starts_with("anl-intrepid-2009") {
            found = found.max(Some(path));
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<Workload, ReproduceError> {
    Ok(swf::read_path(path, BadRecords::Skip)?.workload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe;

    /// A small form of everything: each table is there, and nothing is missing in it.
    #[test]
    fn every_experiment_is_run() {
        let options = Options { jobs: 30, seeds: 2, ..Options::default() };
        let reproduction = reproduce(&options, &|_, _| {}).unwrap();
        let text = describe(&reproduction, "published");
        for table in ["Testbed", "Table V", "Table VI", "Fig. 5", "Fig. 6", "Fig. 7"] {
            assert!(text.contains(table), "{table}: {text}");
        }
        for finding in &reproduction.findings {
            assert!(finding.measured.is_some_and(f64::is_finite), "{finding:?}");
        }
        let again = reproduce(&options, &|_, _| {}).unwrap();
        assert_eq!(reproduction.findings, again.findings);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let options = Options { traces: Some("/nowhere/at/all".into()), ..Options::default() };
        let error = reproduce(&options, &|_, _| {}).unwrap_err();
        assert_eq!(error.to_string(), "cannot read the folder /nowhere/at/all");
    }
}
