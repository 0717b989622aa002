//! Loading a workload and taking a slice of it: what several commands do first.

use std::ops::Range;

use anyhow::bail;
use clap::Args;

use crate::calendar::Calendar;
use crate::cli::warn;
use crate::experiment::{Load, Named, Place};
use crate::heterogeneity::Site;
use crate::machine::Machine;
use crate::units::Instant;
use crate::workload::rmap::UsualTimes;
use crate::workload::swf::{BadRecords, Intake};
use crate::workload::{Source, SourceDefaults, SourceError, Workload, parse_places};

/// The options that name a workload.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// A log (.swf, .swf.gz), accounting records of a batch system, or anything else that --workload takes
    ///
    /// Records are the output of sacct with -P or --json, or files of PBS or LSF. The format is recognised from the
    /// content.
    #[arg(value_name = "FILE", conflicts_with = "workload")]
    file: Option<String>,

    /// A log, records of a batch system, a generator, a folder of tasks, or demo [default: demo; essc with --energy]
    ///
    /// A log is an .swf or .swf.gz file, or - for standard input. Generators are 'lublin(jobs=10000, load=0.85)',
    /// 'rmap(trace=random)' and 'essc(tasks=32000)'.
    #[arg(short, long, value_name = "SRC")]
    workload: Option<String>,

    /// Only jobs of this partition of the log, or of several, separated by commas
    ///
    /// If the machine file has partitions, only this one is simulated.
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = "Workload")]
    pub(super) partition: Vec<String>,

    /// Only these jobs, by position in submit order: 20000..25000, 5000.., ..100
    #[arg(long, value_name = "A..B", value_parser = parse_places, help_heading = "Workload")]
    pub(super) jobs: Option<Range<usize>>,

    /// Random seed for generated workloads and job properties [default: 1]
    #[arg(long, value_name = "N", help_heading = "Workload")]
    pub(super) seed: Option<u64>,

    /// Date and time zone at which the log starts, such as '2026-01-01 00:00 Europe/Berlin' [default: from the log's
    /// header]
    ///
    /// Budgets and prices by the calendar need it.
    #[arg(long, value_name = "WHEN", help_heading = "Workload")]
    pub(super) start: Option<Calendar>,

    /// Skip and count lines that are not records, instead of stopping at the first
    #[arg(long, help_heading = "Workload")]
    pub(super) skip_bad_records: bool,
}

/// The workload of an experiment: a file that stands on the command line without an option, or what --workload says.
pub(super) fn named_load(
    file: Option<&str>,
    workload: Option<&str>,
) -> anyhow::Result<Named<Load>> {
    if let Some(file) = file {
        let load = file.parse().map_err(anyhow::Error::from_boxed)?;
        return Ok(Named::by_option("FILE", load));
    }
    let load = workload.unwrap_or("demo").parse::<Load>();
    let load = load.map_err(|why| Place::Option("--workload").error(why))?;
    Ok(Named::by_option("--workload", load))
}

/// A workload as asked for.
pub(super) struct Loaded {
    pub(super) workload: Workload,
    pub(super) intake: Option<Intake>,
    /// The machines it is for and what tasks are worth, if it comes with them.
    pub(super) site: Option<Site>,
    /// Begin and end of the measured period, if known.
    pub(super) period: Option<(Instant, Instant)>,
}

impl Arguments {
    pub(super) fn bad_records(&self) -> BadRecords {
        if self.skip_bad_records { BadRecords::Skip } else { BadRecords::Stop }
    }

    /// Where the workload comes from; if that was not said, it is `usual`.
    pub(super) fn source(&self, usual: &str) -> Result<Source, SourceError> {
        self.named().unwrap_or(usual).parse()
    }

    /// What the workload is called, if that was said.
    fn named(&self) -> Option<&str> {
        self.file.as_deref().or(self.workload.as_deref())
    }

    /// Reads or makes the workload, for this machine if one was named, and takes the slice. Warns about a seed that
    /// has no effect.
    pub(super) fn load(
        &self,
        source: &Source,
        machine: Option<&Machine>,
        usual: Option<&UsualTimes>,
        seed_is_used: bool,
    ) -> anyhow::Result<Loaded> {
        if self.seed.is_some() && !seed_is_used && !source.heeds_seed() {
            warn(&format!("--seed has no effect on {}", self.named().unwrap_or("it")));
        }
        let loaded = source.load(&SourceDefaults {
            processors: machine.map(|machine| machine.processors()),
            processors_per_node: machine.map_or(1, |machine| machine.processors_per_node),
            seed: self.seed,
            usual,
            bad: self.bad_records(),
            partitions: &self.partition,
        })?;
        let mut workload = loaded.workload;
        let places = self.places(workload.jobs().len())?;
        workload.slice(places);
        if let Some(start) = &self.start {
            workload = workload.dated(Ok(start.clone()));
        }
        let (intake, site, period) = (loaded.intake, loaded.site, loaded.period);
        Ok(Loaded { workload, intake, site, period })
    }
}

impl Arguments {
    /// The places that --jobs takes of so many usable jobs.
    pub(super) fn places(&self, usable: usize) -> anyhow::Result<Range<usize>> {
        let asked = self.jobs.clone().unwrap_or(0..usable);
        if asked.start >= usable {
            bail!("--jobs {}.. selects no job: the workload has {usable} usable jobs", asked.start);
        }
        Ok(asked.start..asked.end.min(usable))
    }
}
