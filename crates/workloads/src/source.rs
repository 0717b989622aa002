//! Where a workload comes from, as the command line names it.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::demo;
use crate::essc::{Essc, EsscError, Tasks};
use crate::kind::FileKind;
use crate::lublin::{Lublin, LublinError};
use crate::records::{Import, ImportError, Importer, Options};
use crate::rmap::{Trace, TraceError, UsualTimes};
use crate::swf::{self, BadRecords, Intake, SwfError};
use busbar_core::call::{Call, CallError};
use busbar_core::heterogeneity::Site;
use busbar_core::rows::TableError;
use busbar_core::spelling::hint;
use busbar_core::units::Instant;
use busbar_core::workload::{PartitionError, Workload};

/// A workload's source: a log, a generator or the built-in demo.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The built-in workload.
    Demo,
    /// A log in a file, or on standard input if the path is `-`.
    Log(PathBuf),
    /// Records of a site's own batch system.
    Records(RecordsCall),
    /// The Lublin–Feitelson model.
    Lublin(LublinCall),
    /// A trace of moldable jobs.
    Rmap(TraceCall),
    /// Tasks of several types, with the machines they run on.
    Essc(EsscCall),
    /// A folder of tasks with the machines they run on.
    Tasks(PathBuf),
}

/// A trace as it was called: what was left out may be filled in by the seed of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceCall {
    given: Trace,
    has_seed: bool,
}

/// A file of records, and the time zone of its local times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordsCall {
    /// The file.
    pub file: PathBuf,
    /// The time zone by its name; UTC if it is not said.
    pub zone: Option<String>,
    /// Whether jobs get numbers that tell nothing.
    pub is_anonymous: bool,
}

/// Tasks as they were called for: the seed may be filled in by that of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EsscCall {
    given: Essc,
    has_seed: bool,
}

/// What a run knows that a source may use, where its call does not say.
#[derive(Clone, Copy, Debug)]
pub struct SourceDefaults<'a> {
    /// The machine's processors.
    pub processors: Option<u32>,
    /// How many of them a node has.
    pub processors_per_node: u32,
    /// Where random numbers start.
    pub seed: Option<u64>,
    /// How long applications take, for traces of them.
    pub usual: Option<&'a UsualTimes>,
    /// What becomes of lines of a log that are no records.
    pub bad: BadRecords,
    /// The partitions whose jobs are wanted, by their names; all if none is named.
    pub partitions: &'a [String],
}

/// Nothing is known, and a bad record stops the reading.
impl Default for SourceDefaults<'_> {
    fn default() -> Self {
        let bad = BadRecords::Stop;
        SourceDefaults {
            processors: None,
            processors_per_node: 1,
            seed: None,
            usual: None,
            bad,
            partitions: &[],
        }
    }
}

/// The generator as it was called: what was left out may be filled in by the machine and the
/// seed of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct LublinCall {
    given: Lublin,
    has_processors: bool,
    has_seed: bool,
}

/// A workload that was read or made.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The workload.
    pub workload: Workload,
    /// What became of the records, if it is a log.
    pub intake: Option<Intake>,
    /// The machines the workload is for and what its tasks are worth, if it comes with them.
    pub site: Option<Site>,
    /// When counting begins and ends, if that is known.
    pub period: Option<(Instant, Instant)>,
}

/// Why there is no workload.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The text names no source.
    #[error(
        "workload '{text}': no such file{hint} valid: a log (.swf, .swf.gz), - for standard input, records (sacct.txt, or records(file=sacct.txt, zone=Europe/Berlin)), demo, a folder of tasks, or a generator: lublin(jobs=10000, load=0.85), rmap(trace=random), essc(tasks=32000)"
    )]
    Unknown {
        /// The text as written.
        text: String,
        /// What may have been meant, in words.
        hint: String,
    },
    /// The file is of a kind that has no jobs.
    #[error("{} {}", path.display(), kind.advice())]
    Kind {
        /// The file.
        path: PathBuf,
        /// The quantity in question.
        kind: FileKind,
    },
    /// The generator's call is wrong.
    #[error("workload {0}")]
    Call(CallError),
    /// The generator's parameters are wrong.
    #[error("workload 'lublin': {0}")]
    Lublin(LublinError),
    /// The trace's parameters are wrong.
    #[error("workload 'rmap': {0}")]
    Rmap(TraceError),
    /// A trace of applications nobody knows.
    #[error("workload 'rmap': it needs applications with profiles, and there are none")]
    NoApplications,
    /// The tasks' parameters are wrong.
    #[error("workload 'essc': {0}")]
    Essc(EsscError),
    /// The folder of tasks cannot be used.
    #[error(transparent)]
    Tasks(#[from] TableError),
    /// The log cannot be used.
    #[error(transparent)]
    Log(#[from] SwfError),
    /// The records cannot be used.
    #[error(transparent)]
    Records(#[from] ImportError),
    /// Jobs of these partitions cannot be taken out.
    #[error(transparent)]
    Partition(#[from] PartitionError),
}

const LUBLIN_PARAMETERS: [&str; 6] = ["jobs", "load", "processors", "seed", "kind", "sizes"];
const ESSC_PARAMETERS: [&str; 14] = [
    "tasks",
    "machines",
    "hours",
    "warm_up",
    "seed",
    "general_minutes",
    "special_minutes",
    "dynamic_watts",
    "static_watts",
    "task_cv",
    "machine_cv",
    "task_power_cv",
    "machine_power_cv",
    "pstate_cv",
];
const RECORDS_PARAMETERS: [&str; 2] = ["file", "zone"];
const TRACE_PARAMETERS: [&str; 4] = ["trace", "jobs", "gaps", "seed"];

impl FromStr for Source {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let text = text.trim();
        // A file of this name is what is meant, whatever else the name may look like.
        let path = Path::new(text);
        if text == "-" || (path.exists() && !path.is_dir()) {
            return Source::of_file(path);
        }
        if path.is_dir() {
            return Ok(Source::Tasks(text.into()));
        }
        if text == "demo" {
            return Ok(Source::Demo);
        }
        match text.split('(').next() {
            Some("lublin") => {
                let call = text.parse().and_then(|call| LublinCall::from_call(&call));
                call.map(Source::Lublin).map_err(SourceError::Call)
            }
            Some("records") => {
                let call = text.parse().and_then(|call| RecordsCall::from_call(&call));
                call.map(Source::Records).map_err(SourceError::Call)
            }
            Some("rmap") => {
                let call = text.parse().and_then(|call| TraceCall::from_call(&call));
                call.map(Source::Rmap).map_err(SourceError::Call)
            }
            Some("essc") => {
                let call = text.parse().and_then(|call| EsscCall::from_call(&call));
                call.map(Source::Essc).map_err(SourceError::Call)
            }
            name => {
                let hint =
                    hint(name.unwrap_or_default(), ["demo", "lublin", "records", "rmap", "essc"]);
                Err(SourceError::Unknown { text: text.to_owned(), hint })
            }
        }
    }
}

impl RecordsCall {
    fn from_call(call: &Call) -> Result<Self, CallError> {
        let (mut file, mut zone) = (None, None);
        for (key, value) in call.parameters(&RECORDS_PARAMETERS)? {
            match key.as_str() {
                "file" => file = Some(PathBuf::from(value)),
                _ => zone = Some(value.clone()),
            }
        }
        let file = file.ok_or_else(|| CallError::Value {
            name: call.name.clone(),
            key: "file".to_owned(),
            why: "it is missing; write records(file=sacct.txt)".to_owned(),
        })?;
        Ok(RecordsCall { file, zone, is_anonymous: false })
    }

    /// Reads the records, with what they say beside their jobs.
    pub fn import(&self) -> Result<Import, ImportError> {
        let RecordsCall { zone, is_anonymous, .. } = self.clone();
        let mut importer = Importer::new(Options { zone, is_anonymous, ..Options::default() })?;
        importer.read_path(&self.file)?;
        importer.finish()
    }

    fn read(&self, partitions: &[String]) -> Result<Loaded, SourceError> {
        let import = self.import()?;
        let swf::Log { workload, .. } = import.workload(&self.file.to_string_lossy())?;
        let processors = workload.processors().unwrap_or_else(|| workload.largest_job());
        let machine = import.nodes_seen(partitions).machine(processors);
        let is_assumed = self.zone.is_none() && import.intake().local_times > 0;
        let zone = is_assumed.then(|| {
            let file = self.file.display();
            format!("the local times of the records are UTC; --workload 'records(file={file}, zone=…)' names a time zone")
        });
        let remarks = import.intake().left_out().into_iter().chain(zone).collect();
        // Records without any job, and more processors than any machine has, are mistakes that are told elsewhere.
        let workload = workload.on_machine(machine.ok()).with_remarks(remarks);
        Ok(Loaded { workload, intake: None, site: None, period: None })
    }
}

impl EsscCall {
    fn from_call(call: &Call) -> Result<Self, CallError> {
        let mut given = Essc::default();
        let mut has_seed = false;
        for (key, value) in call.parameters(&ESSC_PARAMETERS)? {
            let machines = &mut given.machines;
            match key.as_str() {
                "tasks" => given.tasks = call.number(key, value)?,
                "hours" => given.hours = call.number(key, value)?,
                "warm_up" => given.warm_up = call.number(key, value)?,
                "machines" => machines.machines = call.number(key, value)?,
                "general_minutes" => machines.general_minutes = call.number(key, value)?,
                "special_minutes" => machines.special_minutes = call.number(key, value)?,
                "dynamic_watts" => machines.dynamic_watts = call.number(key, value)?,
                "static_watts" => machines.static_watts = call.number(key, value)?,
                "task_cv" => machines.time_variation[0] = call.number(key, value)?,
                "machine_cv" => machines.time_variation[1] = call.number(key, value)?,
                "task_power_cv" => machines.power_variation[0] = call.number(key, value)?,
                "machine_power_cv" => machines.power_variation[1] = call.number(key, value)?,
                "pstate_cv" => machines.state_variation = call.number(key, value)?,
                _ => (given.seed, has_seed) = (call.number(key, value)?, true),
            }
        }
        Ok(EsscCall { given, has_seed })
    }

    fn draw(&self, seed: Option<u64>) -> Result<Tasks, SourceError> {
        let mut essc = self.given;
        if let Some(seed) = seed.filter(|_| !self.has_seed) {
            essc.seed = seed;
        }
        essc.draw().map_err(SourceError::Essc)
    }
}

impl TraceCall {
    fn from_call(call: &Call) -> Result<Self, CallError> {
        let mut given = Trace::default();
        let mut has_seed = false;
        for (key, value) in call.parameters(&TRACE_PARAMETERS)? {
            match key.as_str() {
                "trace" => given.kind = call.value(key, value)?,
                "jobs" => given.jobs = call.number(key, value)?,
                "gaps" => given.gaps = call.number(key, value)?,
                _ => (given.seed, has_seed) = (call.number(key, value)?, true),
            }
        }
        Ok(TraceCall { given, has_seed })
    }

    fn draw(&self, given: &SourceDefaults<'_>) -> Result<Workload, SourceError> {
        let usual = given.usual.ok_or(SourceError::NoApplications)?;
        let mut trace = self.given;
        if let Some(seed) = given.seed.filter(|_| !self.has_seed) {
            trace.seed = seed;
        }
        trace.draw(usual, given.processors_per_node).map_err(SourceError::Rmap)
    }
}

impl LublinCall {
    fn from_call(call: &Call) -> Result<Self, CallError> {
        let mut given = Lublin::default();
        for (key, value) in call.parameters(&LUBLIN_PARAMETERS)? {
            match key.as_str() {
                "jobs" => given.jobs = call.number(key, value)?,
                "load" => given.load = call.number(key, value)?,
                "processors" => given.processors = call.number(key, value)?,
                "seed" => given.seed = call.number(key, value)?,
                "kind" => given.kind = call.value(key, value)?,
                _ => given.sizes = call.value(key, value)?,
            }
        }
        let has = |name: &str| call.arguments.iter().any(|(key, _)| key == name);
        Ok(LublinCall { given, has_processors: has("processors"), has_seed: has("seed") })
    }

    /// The parameters in full: the machine's processors and the run's seed stand in for what the
    /// call leaves out.
    fn complete(&self, processors: Option<u32>, seed: Option<u64>) -> Lublin {
        let mut lublin = self.given;
        if let Some(processors) = processors.filter(|_| !self.has_processors) {
            lublin.processors = processors;
        }
        if let Some(seed) = seed.filter(|_| !self.has_seed) {
            lublin.seed = seed;
        }
        lublin
    }
}

impl Source {
    /// The log or the records in a file, by what it holds.
    fn of_file(path: &Path) -> Result<Self, SourceError> {
        // What cannot be looked at now, its reader will tell about.
        match FileKind::of(path).ok().flatten() {
            None | Some(FileKind::Log | FileKind::Unknown) => Ok(Source::Log(path.to_owned())),
            Some(FileKind::Records(_)) => {
                let file = path.to_owned();
                Ok(Source::Records(RecordsCall { file, zone: None, is_anonymous: false }))
            }
            Some(kind) => Err(SourceError::Kind { path: path.to_owned(), kind }),
        }
    }

    /// Whether the seed of a run makes any difference.
    pub fn heeds_seed(&self) -> bool {
        match self {
            Source::Lublin(call) => !call.has_seed,
            Source::Rmap(call) => !call.has_seed,
            Source::Essc(call) => !call.has_seed,
            Source::Demo | Source::Log(_) | Source::Records(_) | Source::Tasks(_) => false,
        }
    }

    /// Whether the workload is made of applications, so that it has to be told of them.
    pub fn needs_applications(&self) -> bool {
        matches!(self, Source::Rmap(_))
    }

    /// Reads or makes the workload, as far as its jobs are wanted.
    pub fn load(&self, given: &SourceDefaults<'_>) -> Result<Loaded, SourceError> {
        let loaded = self.load_all(given)?;
        let workload = loaded.workload.in_partitions(given.partitions)?;
        Ok(Loaded { workload, ..loaded })
    }

    fn load_all(&self, given: &SourceDefaults<'_>) -> Result<Loaded, SourceError> {
        let made = |workload| Loaded { workload, intake: None, site: None, period: None };
        let with_site = |Tasks { workload, site, period }| Loaded {
            site: Some(site),
            period,
            ..made(workload)
        };
        match self {
            Source::Demo => Ok(made(demo::demo())),
            Source::Lublin(call) => {
                let lublin = call.complete(given.processors, given.seed);
                lublin.generate().map(made).map_err(SourceError::Lublin)
            }
            Source::Rmap(call) => {
                // A trace may be written as a log, and is then to be read as what it was.
                let trace = call.draw(given)?.in_whole_seconds();
                Ok(made(trace.on_processors(given.processors)))
            }
            Source::Log(path) => {
                let log = swf::read_path(path, given.bad)?;
                Ok(Loaded { intake: Some(log.intake), ..made(log.workload) })
            }
            Source::Records(call) => call.read(given.partitions),
            Source::Essc(call) => call.draw(given.seed).map(with_site),
            Source::Tasks(folder) => Ok(with_site(Tasks::read(folder)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generated(text: &str, processors: Option<u32>, seed: Option<u64>) -> Lublin {
        match text.parse().unwrap() {
            Source::Lublin(call) => call.complete(processors, seed),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_call_comes_before_the_run() {
        let lublin = generated("lublin(jobs=7, load=0.5, seed=3)", Some(64), Some(9));
        assert_eq!(
            lublin,
            Lublin { jobs: 7, load: 0.5, seed: 3, processors: 64, ..Lublin::default() }
        );
        assert_eq!(generated("lublin", None, Some(9)).seed, 9);
        assert_eq!(generated("lublin(processors=32)", Some(64), None).processors, 32);
    }

    #[test]
    fn mistakes_list_what_is_valid() {
        let error = |text: &str| text.parse::<Source>().unwrap_err().to_string();
        assert!(error("nothere.swf").contains("no such file; valid: a log"));
        assert!(error("dmeo").contains("no such file; did you mean 'demo'? valid: a log"));
        assert!(error("lubin(jobs=3)").contains("did you mean 'lublin'?"));
        assert!(error("lublin(lod=3)").contains("did you mean 'load'? it takes jobs"));
        assert!(error("downey(jobs=3)").contains("lublin(jobs=10000, load=0.85)"));
        assert!(error("lublin(job=3)").contains("takes jobs, load, processors, seed"));
        assert!(error("lublin(jobs=-3)").contains("parameter 'jobs': '-3'"));
        assert!(error("lublin(kind=x)").contains("valid: batch, interactive, typeless"));
        assert!(error("rmap(kind=large)").contains("takes trace, jobs, gaps, seed"));
        assert!(error("essc(task=3)").contains("takes tasks, machines, hours, warm_up, seed"));
        assert!(error("rmap(trace=huge)").contains("valid: random-early, random, large, small"));
    }
}
