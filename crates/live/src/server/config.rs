//! The daemon's configuration: a TOML file in which every key is optional.
//!
//! [`Config::template`] is such a file with every key explained; `busbar config init` writes it.
//! [`Config::load`] finds mistakes in the file itself. [`Config::resolve`] checks it against this
//! machine, for example whether the profiles exist. Errors of both name the file, the line and the
//! field.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use jiff::civil::Time;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::log::{Format, Level};
use crate::control::schedule::{Allowance, ScheduleSpec};
use crate::control::setup::{LastResort, Nightly};
use crate::engine::USUAL_DEADLINE;
use crate::engines::local::inheritance::{Bounds, Inheritance, Ulimit, Umask};
use busbar_core::policy::PolicySpec;
use busbar_core::switching::SwitchOff;
use busbar_core::text;
use busbar_core::tuning::USUAL_JOBS;
use busbar_core::units::{Span, Watts};
use busbar_slurm::rest::Address;
use busbar_slurm::setup::{Fail, Mode};

mod file;
mod lines;
mod places;
mod resolve;
mod show;
#[cfg(test)]
mod tests;
mod words;

pub use busbar_core::units::Length;
pub use busbar_core::units::LengthError;
pub use places::Environment;
pub use resolve::Resolved;

/// The daemon's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The state folder, with the database and the files of running jobs.
    pub state: PathBuf,
    /// The path of the socket.
    pub socket: PathBuf,
    /// The machine, as `--machine` takes it.
    pub machine: String,
    /// The policy.
    pub policy: PolicySpec,
    /// The site's file: who has which share.
    pub site: Option<PathBuf>,
    /// The power budget.
    pub budget: ScheduleSpec,
    /// The profiles of applications: a database, or the name of a synthetic set.
    pub profiles: Option<String>,
    /// How often the daemon checks for changes by itself.
    pub period: Span,
    /// How long the daemon may act without a sign of life to one that stands by.
    pub takeover: Span,
    /// What to do if jobs cannot be slowed down enough for the budget.
    pub last_resort: LastResort,
    /// When idle nodes are switched off; never if `None`.
    pub switch_off: Option<SwitchOff>,
    /// How long a job may take to end before it is killed.
    pub kill_after: Span,
    /// How long jobs that are over are kept.
    pub retention: Span,
    /// Users who may change all jobs and the budget, besides root and the daemon's own user.
    pub operators: Vec<u32>,
    /// Whether all users see names, command lines, folders and paths of all jobs.
    pub see_all: bool,
    /// Limits on the number and size of jobs, requests and connections.
    pub limits: Limits,
    /// The umask and resource limits of jobs.
    pub jobs: Jobs,
    /// The log on standard error.
    pub log: Log,
    /// What runs jobs.
    pub engine: EngineConfig,
    /// The agents of the nodes.
    pub agents: Agents,
    /// The Slurm cluster, for the engine `slurm`.
    pub slurm: Slurm,
    /// The engine that runs jobs as local processes.
    pub local: Local,
    /// The web page, its API and the metrics.
    pub web: Web,
    /// The daily replay of the daemon's past.
    pub tune: Tune,
    /// The file and the lines that set the values.
    pub source: Source,
}

/// The web page, its API and the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Web {
    /// Where they are served; nowhere if `None`.
    pub listen: Option<SocketAddr>,
    /// Whether programs on this machine may read without a token.
    pub open: bool,
    /// Whether the page may be served to other machines without TLS.
    pub plain: bool,
    /// The certificate and its key, for TLS.
    pub tls: Option<TlsFiles>,
    /// Names by which browsers may call the page, besides those of this machine's loopback.
    pub hosts: Vec<String>,
}

/// The files for TLS, in PEM format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those that lead to its authority.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
}

impl Web {
    /// Where the page is served if somebody asks for it without saying where.
    pub const USUAL: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411));
}

impl Web {
    /// Refuses to show tokens to everybody on the network.
    pub fn check(&self) -> Result<(), String> {
        match self.listen {
            Some(at) if !at.ip().is_loopback() && self.tls.is_none() && !self.plain => {
                Err(format!(
                    "{at} is reachable from other machines, and without TLS others could read tokens; set \
                    web.certificate and web.key, listen on 127.0.0.1, or set web.plain = true"
                ))
            }
            _ => Ok(()),
        }
    }
}

impl Default for Web {
    fn default() -> Self {
        Web { listen: None, open: true, plain: false, tls: None, hosts: Vec::new() }
    }
}

/// The daily replay of the daemon's past, which proposes other parameters of the policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Tune {
    /// At which time of the day, by local time; never if `None`.
    pub(crate) at: Option<Time>,
    /// How many of the last finished jobs are replayed.
    pub(crate) jobs: u32,
    /// The candidates; the usual ones if there are none.
    pub(crate) policies: Vec<PolicySpec>,
}

impl Default for Tune {
    fn default() -> Self {
        Tune { at: None, jobs: USUAL_JOBS as u32, policies: Vec::new() }
    }
}

impl Tune {
    /// The replay as the daemon does it, if it does.
    pub(crate) fn nightly(&self) -> Option<Nightly> {
        let Tune { at, jobs, policies } = self;
        let (jobs, policies, zone) = (*jobs as usize, policies.clone(), TimeZone::system());
        at.map(|at| Nightly { at, zone, jobs, policies })
    }
}

/// Limits on the number and size of jobs, requests and connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of jobs that wait or run.
    pub jobs: u32,
    /// The number of jobs of one user that wait or run.
    pub jobs_per_user: u32,
    /// The number of elements of an array.
    pub array: u32,
    /// The total size of the jobs of one user that wait or run, in bytes.
    pub bytes_per_user: u32,
    /// The size of a request in bytes.
    pub request_bytes: u32,
    /// The number of simultaneous connections.
    pub connections: u32,
    /// The time limit for working out a forecast.
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
            // Clients wait for 60 s.
            forecast_time: Span::from_secs(45),
        }
    }
}

/// The umask and resource limits of jobs, however the daemon was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jobs {
    /// Permissions that new files do not get.
    pub(crate) umask: Umask,
    /// Resource limits that differ from the defaults.
    pub(crate) ulimits: BTreeMap<Ulimit, Bounds>,
}

impl Jobs {
    /// The complete settings, with defaults for the other limits.
    pub(crate) fn inheritance(&self) -> Inheritance {
        Inheritance::new(self.umask, &self.ulimits)
    }
}

/// The log on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The lowest level that is logged.
    pub level: Level,
    /// The format of lines.
    pub format: Format,
}

/// The engine that runs jobs as local processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// Whether jobs are pinned to the processors of their nodes.
    pub(crate) pin: bool,
    /// The processors of each node; if the list is empty, each node gets one in turn.
    pub(crate) cpus: Vec<Vec<u32>>,
    /// Whether jobs get control groups of their own, where possible.
    pub(crate) cgroups: bool,
}

impl Default for Local {
    fn default() -> Self {
        Local { pin: true, cpus: Vec::new(), cgroups: true }
    }
}

/// What runs jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Which engine it is.
    pub(crate) kind: EngineKind,
    /// How long it may take to confirm an order.
    pub(crate) deadline: Span,
}

/// An engine that the daemon can use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EngineKind {
    /// Jobs are processes of this machine.
    #[default]
    Local,
    /// Slurm starts jobs on its nodes.
    Slurm,
}

/// The Slurm cluster that the engine `slurm` uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slurm {
    /// Whether the daemon or Slurm starts jobs.
    pub(crate) mode: Mode,
    /// What happens while no daemon is there, in mode `steer`.
    pub(crate) fail: Fail,
    /// After how long without a sign of life no daemon is there.
    pub(crate) fail_after: Span,
    /// The names of the nodes, in the order of their numbers; all of the partitions, as Slurm lists them, if there are none.
    pub(crate) nodes: Vec<String>,
    /// The partitions that are Busbar's; all if none is named.
    pub(crate) partitions: Vec<String>,
    /// The highest draw of a node that Slurm has and Busbar does not manage; that of the machine's nodes if nothing is said.
    pub(crate) others: Option<Watts>,
    /// The licence that stands for watts, in mode `admit`.
    pub(crate) licence: String,
    /// How often Slurm is asked what happens.
    pub(crate) period: Span,
    /// How long a command of Slurm may take.
    pub(crate) within: Span,
    /// Slurm's configuration, if it is not where Slurm looks for it.
    pub(crate) conf: Option<PathBuf>,
    /// The folder of Slurm's programs, if they are not in the path.
    pub(crate) programs: Option<PathBuf>,
    /// Where slurmrestd is, if the cluster is to be read and jobs are to be changed through it.
    pub(crate) rest: Option<RestConfig>,
}

/// How slurmrestd is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RestConfig {
    /// Where it listens.
    pub(crate) address: Address,
    /// In whose name it is asked.
    pub(crate) user: String,
    /// The file of the token, which others may renew. Without one, tokens are made by `scontrol token`.
    pub(crate) token: Option<PathBuf>,
    /// Whether requests and tokens may leave this machine unencrypted.
    pub(crate) plain: bool,
}

impl Default for Slurm {
    fn default() -> Self {
        Slurm {
            mode: Mode::Steer,
            fail: Fail::Wait,
            fail_after: Span::from_secs(300),
            nodes: Vec::new(),
            partitions: Vec::new(),
            others: None,
            licence: "power".to_owned(),
            period: Span::from_secs(1),
            within: Span::from_secs(10),
            conf: None,
            programs: None,
            rest: None,
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EngineKind::Local => "local",
            EngineKind::Slurm => "slurm",
        })
    }
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig { kind: EngineKind::default(), deadline: USUAL_DEADLINE }
    }
}

/// The agents of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agents {
    /// The nodes in order, each with its agent; without any, no cap is enforced and no power measured.
    pub nodes: Vec<AgentNode>,
    /// The folder with the site's keys, for agents on other machines.
    pub(crate) keys: Option<PathBuf>,
    /// How long agents wait for a sign of life of the daemon before they fall to their safe cap.
    pub(crate) lease: Span,
    /// How long an agent may take to answer.
    pub(crate) within: Span,
}

/// A node with its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentNode {
    /// The node's name.
    pub(crate) name: String,
    /// Where its agent listens: a path, or `host:port`.
    pub(crate) address: String,
    /// The file in which an emulated node is told what its job would draw.
    pub(crate) demand: Option<PathBuf>,
}

impl Default for Agents {
    fn default() -> Self {
        Agents {
            nodes: Vec::new(),
            keys: None,
            lease: Span::from_secs(30),
            within: Span::from_secs(5),
        }
    }
}

/// Where the values of a configuration come from: the file, and the lines of its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The file; `None` if all values are defaults.
    pub file: Option<PathBuf>,
    lines: BTreeMap<String, usize>,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}; busbar config init writes one", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A value is wrong.
    #[error("{place}")]
    Wrong {
        /// The place of the value.
        place: Place,
        /// What is wrong, and how to fix it.
        #[source]
        why: AnyError,
    },
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// A place in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file; `None` for defaults.
    pub(crate) file: Option<PathBuf>,
    /// The line, from 1, if the field is in the file.
    pub(crate) line: Option<usize>,
    /// The field, such as `limits.jobs`.
    pub(crate) field: Option<String>,
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
    /// The place of a field, whether or not the file sets it.
    pub(crate) fn place(&self, field: &str) -> Place {
        let line = self.lines.get(field).copied();
        Place { file: self.file.clone(), line, field: Some(field.to_owned()) }
    }

    fn error(&self, field: &str, why: impl Into<AnyError>) -> ConfigError {
        ConfigError::Wrong { place: self.place(field), why: why.into() }
    }
}

impl Config {
    /// The valid range of `period`.
    const PERIODS: RangeInclusive<Span> = Span::from_millis(100)..=Span::from_secs(60);
    /// The valid range of `takeover`.
    const TAKEOVERS: RangeInclusive<Span> = Span::from_secs(1)..=Span::from_secs(3600);
    /// The valid range of `kill_after`.
    const GRACES: RangeInclusive<Span> = Span::from_secs(1)..=Span::from_secs(3600);
    /// The valid range of `engine.deadline`, `agents.lease` and `agents.within`.
    const DEADLINES: RangeInclusive<Span> = Span::from_millis(100)..=Span::from_secs(3600);
    /// The valid range of `limits.forecast_time`.
    const FORECASTS: RangeInclusive<Span> = Span::from_secs(1)..=Span::from_secs(3600);
    /// The valid range of `retention`.
    const RETENTIONS: RangeInclusive<Span> =
        Span::from_secs(60)..=Span::from_secs(3650 * 24 * 3600);

    /// The valid range of `tune.jobs`.
    const REPLAYED: RangeInclusive<u32> = 20..=100_000;

    /// The defaults in an environment.
    fn default_in(around: &Environment) -> Self {
        let state = around.default_state();
        Config {
            socket: around.default_socket(&state),
            state,
            machine: around.processors.to_string(),
            policy: PolicySpec::default(),
            site: None,
            budget: ScheduleSpec::Always(Allowance::Unlimited),
            profiles: None,
            period: Span::from_secs(1),
            takeover: Span::from_secs(30),
            last_resort: LastResort::default(),
            switch_off: None,
            kill_after: Span::from_secs(30),
            retention: Span::from_secs(30 * 24 * 3600),
            operators: Vec::new(),
            see_all: false,
            limits: Limits::default(),
            jobs: Jobs::default(),
            log: Log::default(),
            engine: EngineConfig::default(),
            agents: Agents::default(),
            slurm: Slurm::default(),
            local: Local::default(),
            web: Web::default(),
            tune: Tune::default(),
            source: Source::default(),
        }
    }

    /// Reads a configuration file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
        let text = text::read_whole(path).map_err(unreadable)?;
        file::parse(&text, path, &Environment::here())
    }

    /// Reads the named file, or else the file in the default place; without any, the defaults
    /// apply.
    pub fn find(path: Option<&Path>) -> Result<Self, ConfigError> {
        match path.map(Path::to_owned).or_else(|| Environment::here().default_file()) {
            Some(path) => Config::load(&path),
            None => Ok(Config::default()),
        }
    }

    /// A file that sets every key to its default, with explanations.
    pub fn template() -> &'static str {
        include_str!("config/busbar.toml")
    }
}

impl Default for Config {
    fn default() -> Self {
        Config::default_in(&Environment::here())
    }
}
