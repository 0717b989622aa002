//! How a daemon is to work: one TOML file, of which every key may be left out.
//!
//! [`Config::template`] is such a file with every key explained; `busbar config init` writes it.
//! Reading a file finds mistakes in what is written ([`Config::load`]); what only this machine can tell,
//! such as whether there are profiles where they should be, is found when everything is made ready
//! ([`Config::prepare`]). Both name the file, the line and the field.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::local::inheritance::{Bounds, Inheritance, Ulimit, Umask};
use super::log::{Format, Level};
use super::schedule::{Allowance, ScheduleSpec};
use busbar_core::policy::PolicySpec;
use busbar_core::text;
use busbar_core::units::Span;

mod file;
mod length;
mod lines;
mod places;
mod resolve;
mod show;
#[cfg(test)]
mod tests;
mod words;

pub use busbar_core::units::LengthError;
pub use length::Length;
pub use places::Environment;
pub use resolve::Resolved;

/// How a daemon is to work.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where state is kept: the database, and what is known of running jobs.
    pub state: PathBuf,
    /// Where clients reach the daemon.
    pub socket: PathBuf,
    /// The machine, as `--machine` takes it.
    pub machine: String,
    /// Who decides.
    pub policy: PolicySpec,
    /// What may be drawn.
    pub budget: ScheduleSpec,
    /// The profiles of applications: a database, or the name of some that are made up.
    pub profiles: Option<String>,
    /// How often the daemon looks at what has changed by itself.
    pub period: Span,
    /// What is done if jobs cannot be made to draw as little as the budget says.
    pub last_resort: LastResort,
    /// How long a job has to end by itself once it was asked to.
    pub kill_after: Span,
    /// For how long jobs are kept that are over.
    pub retention: Span,
    /// Who may touch anybody's jobs and the budget, beside root and whoever runs the daemon.
    pub operators: Vec<u32>,
    /// Whether everybody sees the names, command lines, folders and paths of everybody's jobs.
    pub see_all: bool,
    /// How much of anything there may be.
    pub limits: Limits,
    /// What jobs begin with.
    pub jobs: Jobs,
    /// What is said on standard error.
    pub log: Log,
    /// The engine of this machine.
    pub local: Local,
    /// The file and the lines that set the values.
    pub source: Source,
}

/// What is done if jobs cannot be made to draw as little as the budget says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastResort {
    /// Nobody starts until it fits again.
    #[default]
    Hold,
    /// Jobs stand still, the youngest first.
    Suspend,
    /// Jobs are ended, the youngest first.
    Cancel,
}

impl fmt::Display for LastResort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LastResort::Hold => "hold",
            LastResort::Suspend => "suspend",
            LastResort::Cancel => "cancel",
        })
    }
}

/// How much of anything there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Jobs that wait or run.
    pub jobs: u32,
    /// Jobs of one user that wait or run.
    pub jobs_per_user: u32,
    /// Elements of one array.
    pub array: u32,
    /// Bytes of commands, environments and the like of these.
    pub bytes_per_user: u32,
    /// Bytes of one request.
    pub request_bytes: u32,
    /// Clients at the same time.
    pub connections: u32,
    /// How long a forecast may take to be worked out.
    pub forecast_time: Span,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            jobs: 100_000,
            jobs_per_user: 20_000,
            array: 1000,
            bytes_per_user: 128 << 20,
            request_bytes: 1 << 20,
            connections: 64,
            // Clients wait for a minute.
            forecast_time: Span::from_secs(45),
        }
    }
}

/// What jobs begin with, whoever started the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jobs {
    /// Permissions that new files do not get.
    pub umask: Umask,
    /// Resource limits that are not the usual ones.
    pub ulimits: BTreeMap<Ulimit, Bounds>,
}

impl Jobs {
    /// All of it, with the usual limits.
    pub fn inheritance(&self) -> Inheritance {
        Inheritance::new(self.umask, &self.ulimits)
    }
}

/// What is said on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// How much.
    pub level: Level,
    /// In which form.
    pub format: Format,
}

/// The engine of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// Whether jobs are kept on the processors of their nodes.
    pub pin: bool,
    /// The processors of each node; if none are named, the nodes have one each in turn.
    pub cpus: Vec<Vec<u32>>,
    /// Whether jobs have control groups of their own, where that is possible.
    pub cgroups: bool,
}

impl Default for Local {
    fn default() -> Self {
        Local { pin: true, cpus: Vec::new(), cgroups: true }
    }
}

/// Where a configuration was said: the file, and the lines of its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The file; none if all are defaults.
    pub file: Option<PathBuf>,
    lines: BTreeMap<String, usize>,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}; busbar config init writes one", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Something in it is wrong.
    #[error("{place}")]
    Wrong {
        /// Where.
        place: Place,
        /// What, and what to do about it.
        #[source]
        why: AnyError,
    },
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Where something stands in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file; none for defaults.
    pub file: Option<PathBuf>,
    /// The line, from 1, if the field is in the file.
    pub line: Option<usize>,
    /// The field, such as `limits.jobs`.
    pub field: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => file.display().fmt(f)?,
            None => f.write_str("the default configuration")?,
        }
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        match &self.field {
            Some(field) => write!(f, ", field '{field}'"),
            None => Ok(()),
        }
    }
}

impl Source {
    /// Where a field is said, or would be.
    pub fn place(&self, field: &str) -> Place {
        let line = self.lines.get(field).copied();
        Place { file: self.file.clone(), line, field: Some(field.to_owned()) }
    }

    /// Whether a field is said at all.
    pub fn says(&self, field: &str) -> bool {
        self.lines.contains_key(field)
    }

    fn error(&self, field: &str, why: impl Into<AnyError>) -> ConfigError {
        ConfigError::Wrong { place: self.place(field), why: why.into() }
    }
}

impl Config {
    /// How long a control period may be.
    pub const PERIODS: RangeInclusive<Span> = Span::from_millis(100)..=Span::from_secs(60);
    /// How long a job may have to end.
    pub const GRACES: RangeInclusive<Span> = Span::from_secs(1)..=Span::from_secs(3600);
    /// How long a forecast may take.
    pub const FORECASTS: RangeInclusive<Span> = Span::from_secs(1)..=Span::from_secs(3600);
    /// For how long jobs may be kept that are over.
    pub const RETENTIONS: RangeInclusive<Span> =
        Span::from_secs(60)..=Span::from_secs(3650 * 24 * 3600);

    /// What holds in these surroundings if nothing is said.
    pub fn usual(around: &Environment) -> Self {
        let state = around.usual_state();
        Config {
            socket: around.usual_socket(&state),
            state,
            machine: around.processors.to_string(),
            policy: PolicySpec::default(),
            budget: ScheduleSpec::Always(Allowance::Unlimited),
            profiles: None,
            period: Span::from_secs(1),
            last_resort: LastResort::default(),
            kill_after: Span::from_secs(30),
            retention: Span::from_secs(30 * 24 * 3600),
            operators: Vec::new(),
            see_all: false,
            limits: Limits::default(),
            jobs: Jobs::default(),
            log: Log::default(),
            local: Local::default(),
            source: Source::default(),
        }
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
        let text = text::read_whole(path).map_err(unreadable)?;
        file::parse(&text, path, &Environment::here())
    }

    /// The file that was named, or else the usual one; if there is none, the defaults.
    pub fn find(path: Option<&Path>) -> Result<Self, ConfigError> {
        match path.map(Path::to_owned).or_else(|| Environment::here().usual_file()) {
            Some(path) => Config::load(&path),
            None => Ok(Config::default()),
        }
    }

    /// A file that says every default, with explanations.
    pub fn template() -> &'static str {
        include_str!("config/busbar.toml")
    }

    /// Looks at all that this machine can tell, and returns what people should know.
    pub fn check(&self) -> Result<Vec<String>, ConfigError> {
        self.resolve().map(|resolved| resolved.remarks)
    }

    /// Whether a user may touch anybody's jobs and the budget.
    pub fn is_operator(&self, user: u32) -> bool {
        let daemon = rustix::process::geteuid().as_raw();
        user == 0 || user == daemon || self.operators.contains(&user)
    }
}

impl Default for Config {
    fn default() -> Self {
        Config::usual(&Environment::here())
    }
}
