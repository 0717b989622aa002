//! Reads a configuration file so that every error names its file, line and field.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::lines::{line, lines};
use super::words::{ClockFace, CpuList, Hosts, ListenAt, Name, Text};
use super::{
    AgentNode, Agents, Config, ConfigError, EngineConfig, EngineKind, Environment, Jobs, Length,
    Limits, Local, Log, Place, RestConfig, Slurm, Source, TlsFiles, Tune, Web,
};
use crate::control::schedule::{Allowance, ScheduleSpec};
use crate::control::setup::LastResort;
use crate::engines::local::inheritance::{Ulimit, Umask};
use crate::server::log::{Format, Level};
use busbar_core::policy::PolicySpec;
use busbar_core::profile::cab::Preset;
use busbar_core::switching::SwitchOff;
use busbar_core::units::{Span, Watts};
use busbar_slurm::rest::Address;
use busbar_slurm::setup::{Fail, Mode};

/// The file as it is written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    state: Option<PathBuf>,
    socket: Option<PathBuf>,
    machine: Option<Name>,
    policy: Option<Text<PolicySpec>>,
    site: Option<PathBuf>,
    budget: Option<Text<String>>,
    daily: Option<Vec<Step>>,
    profiles: Option<String>,
    period: Option<Text<Length>>,
    takeover: Option<Text<Length>>,
    last_resort: Option<LastResort>,
    switch_off: Option<Text<SwitchOff>>,
    kill_after: Option<Text<Length>>,
    retention: Option<Text<Length>>,
    operators: Option<Vec<Name>>,
    see_all: Option<bool>,
    #[serde(default)]
    limits: LimitsTable,
    #[serde(default)]
    jobs: JobsTable,
    #[serde(default)]
    log: LogTable,
    #[serde(default)]
    engine: EngineTable,
    #[serde(default)]
    agents: AgentsTable,
    #[serde(default)]
    slurm: SlurmTable,
    #[serde(default)]
    local: LocalTable,
    #[serde(default)]
    web: WebTable,
    #[serde(default)]
    tune: TuneTable,
}

/// A step of the daily budget.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    from: Text<ClockFace>,
    budget: Text<Allowance>,
}

#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    jobs: Option<u32>,
    jobs_per_user: Option<u32>,
    array: Option<u32>,
    bytes_per_user: Option<u32>,
    request_bytes: Option<u32>,
    connections: Option<u32>,
    forecast_time: Option<Text<Length>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct JobsTable {
    umask: Option<Text<Umask>>,
    #[serde(default)]
    ulimits: BTreeMap<Ulimit, Name>,
}

#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct LogTable {
    level: Option<Level>,
    format: Option<Format>,
}

#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct EngineTable {
    kind: Option<EngineKind>,
    deadline: Option<Text<Length>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentsTable {
    nodes: Option<Vec<NodeTable>>,
    keys: Option<PathBuf>,
    lease: Option<Text<Length>>,
    within: Option<Text<Length>>,
}

/// A node with its agent.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeTable {
    name: Name,
    address: Name,
    demand: Option<PathBuf>,
}

#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct SlurmTable {
    mode: Option<Mode>,
    fail: Option<Fail>,
    fail_after: Option<Text<Length>>,
    nodes: Option<Text<Hosts>>,
    partitions: Option<Vec<Name>>,
    others: Option<Text<Watts>>,
    licence: Option<Name>,
    period: Option<Text<Length>>,
    within: Option<Text<Length>>,
    conf: Option<PathBuf>,
    programs: Option<PathBuf>,
    rest: Option<Text<Address>>,
    rest_user: Option<Name>,
    rest_token: Option<PathBuf>,
    rest_plain: Option<bool>,
}

#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct LocalTable {
    pin: Option<bool>,
    cpus: Option<Vec<Text<CpuList>>>,
    cgroups: Option<bool>,
}

#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct WebTable {
    listen: Option<Text<ListenAt>>,
    open: Option<bool>,
    plain: Option<bool>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    hosts: Option<Vec<Name>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct TuneTable {
    at: Option<Text<ClockFace>>,
    jobs: Option<u32>,
    policies: Option<Vec<Text<PolicySpec>>>,
}

/// Reads a configuration; `path` is that of the file.
pub(super) fn parse(text: &str, path: &Path, around: &Environment) -> Result<Config, ConfigError> {
    let source = Source { file: Some(path.to_owned()), lines: lines(text) };
    let wrong = |error: toml::de::Error, field: String| {
        let begin = error.span().map_or(0, |span| span.start);
        let field = (field != ".").then_some(field);
        let place = Place { file: source.file.clone(), line: Some(line(text, begin)), field };
        ConfigError::Wrong { place, why: error.message().into() }
    };
    let deserializer =
        toml::Deserializer::parse(text).map_err(|error| wrong(error, ".".to_owned()))?;
    let file: File = serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let field = error.path().to_string();
        wrong(error.into_inner(), field)
    })?;
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = whole.parent().unwrap_or(Path::new("")).to_owned();
    Reader { source, folder, around }.config(file)
}

/// Interprets the values of a file.
struct Reader<'a> {
    source: Source,
    folder: PathBuf,
    around: &'a Environment,
}

impl Reader<'_> {
    fn config(self, file: File) -> Result<Config, ConfigError> {
        let usual = Config::default_in(self.around);
        let state = self.path("state", file.state)?.unwrap_or(usual.state);
        let socket = self.path("socket", file.socket)?;
        let site = self.path("site", file.site)?;
        let takeover = self.length("takeover", file.takeover, usual.takeover, Config::TAKEOVERS)?;
        Ok(Config {
            socket: socket.unwrap_or_else(|| self.around.default_socket(&state)),
            state,
            machine: match file.machine {
                Some(Name(text)) => self.beside(&text, &[".toml", ".csv"]),
                None => usual.machine,
            },
            policy: file.policy.map_or(usual.policy, |policy| policy.0),
            site,
            budget: self.budget(file.budget, file.daily)?.unwrap_or(usual.budget),
            profiles: file.profiles.map(|text| match text.parse::<Preset>() {
                Ok(_) if !self.folder.join(&text).exists() => text,
                _ => self.folder.join(text).to_string_lossy().into_owned(),
            }),
            period: self.length("period", file.period, usual.period, Config::PERIODS)?,
            takeover,
            last_resort: file.last_resort.unwrap_or(usual.last_resort),
            switch_off: file.switch_off.map(|rule| rule.0),
            kill_after: self.length(
                "kill_after",
                file.kill_after,
                usual.kill_after,
                Config::GRACES,
            )?,
            retention: self.length(
                "retention",
                file.retention,
                usual.retention,
                Config::RETENTIONS,
            )?,
            operators: self.operators(file.operators.unwrap_or_default())?,
            see_all: file.see_all.unwrap_or(usual.see_all),
            limits: self.limits(file.limits)?,
            jobs: self.jobs(file.jobs)?,
            log: Log {
                level: file.log.level.unwrap_or(usual.log.level),
                format: file.log.format.unwrap_or(usual.log.format),
            },
            engine: EngineConfig {
                kind: file.engine.kind.unwrap_or(usual.engine.kind),
                deadline: self.length(
                    "engine.deadline",
                    file.engine.deadline,
                    usual.engine.deadline,
                    Config::DEADLINES,
                )?,
            },
            agents: self.agents(file.agents)?,
            slurm: self.slurm(file.slurm, takeover)?,
            local: self.local(file.local)?,
            web: self.web(file.web)?,
            tune: self.tune(file.tune)?,
            source: self.source,
        })
    }

    /// A path relative to the folder of the configuration.
    fn path(&self, field: &str, path: Option<PathBuf>) -> Result<Option<PathBuf>, ConfigError> {
        let Some(path) = path else { return Ok(None) };
        if path.as_os_str().is_empty() {
            let why = "the path is empty; write one, or leave the key out";
            return Err(self.source.error(field, why));
        }
        if path.starts_with("~") {
            let why = format!("'{}': write the full path; ~ is not expanded here", path.display());
            return Err(self.source.error(field, why));
        }
        Ok(Some(self.folder.join(path)))
    }

    /// The path of a file beside the configuration, if the text looks like one or such a file
    /// exists; otherwise the text itself.
    fn beside(&self, text: &str, endings: &[&str]) -> String {
        let path = self.folder.join(text);
        match path.is_file() || endings.iter().any(|ending| text.ends_with(ending)) {
            true => path.to_string_lossy().into_owned(),
            false => text.to_owned(),
        }
    }

    fn budget(
        &self,
        budget: Option<Text<String>>,
        daily: Option<Vec<Step>>,
    ) -> Result<Option<ScheduleSpec>, ConfigError> {
        match (budget, daily) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => {
                let why = "'budget' is given, too; keep one of them";
                Err(self.source.error("daily", why))
            }
            (Some(Text(text)), None) => {
                let spec = self.beside(&text, &[".csv"]).parse();
                spec.map(Some).map_err(|why| self.source.error("budget", why))
            }
            (None, Some(steps)) => {
                if steps.is_empty() {
                    let why = "the list is empty; give at least one, or leave the key out";
                    return Err(self.source.error("daily", why));
                }
                let steps = steps.into_iter().map(|step| (step.from.0.0, step.budget.0));
                Ok(Some(ScheduleSpec::Daily(steps.collect())))
            }
        }
    }

    fn length(
        &self,
        field: &str,
        written: Option<Text<Length>>,
        usual: Span,
        range: RangeInclusive<Span>,
    ) -> Result<Span, ConfigError> {
        let Some(Text(Length(span))) = written else { return Ok(usual) };
        if !range.contains(&span) {
            let (least, most) = (Length(*range.start()), Length(*range.end()));
            let why = format!("{} is out of range; write {least} to {most}", Length(span));
            return Err(self.source.error(field, why));
        }
        Ok(span)
    }

    fn operators(&self, names: Vec<Name>) -> Result<Vec<u32>, ConfigError> {
        let number = |(place, Name(name)): (usize, Name)| {
            let number = name.parse().ok().or_else(|| crate::server::users::number_of(&name));
            number.ok_or_else(|| {
                let why =
                    format!("there is no user '{name}' on this machine; write names or numbers");
                self.source.error(&format!("operators[{place}]"), why)
            })
        };
        names.into_iter().enumerate().map(number).collect()
    }

    fn limits(&self, written: LimitsTable) -> Result<Limits, ConfigError> {
        let within =
            |field: &str, written: Option<u32>, usual: u32, least: u32, most: u32| match written
                .unwrap_or(usual)
            {
                number if (least..=most).contains(&number) => Ok(number),
                number => {
                    let why = format!("{number} is out of range; write {least} to {most}");
                    Err(self.source.error(&format!("limits.{field}"), why))
                }
            };
        let usual = Limits::default();
        let jobs = within("jobs", written.jobs, usual.jobs, 1, 1_000_000)?;
        Ok(Limits {
            jobs,
            jobs_per_user: within(
                "jobs_per_user",
                written.jobs_per_user,
                usual.jobs_per_user,
                1,
                1_000_000,
            )?,
            array: within("array", written.array, usual.array, 1, 100_000)?,
            bytes_per_user: within(
                "bytes_per_user",
                written.bytes_per_user,
                usual.bytes_per_user,
                1 << 20,
                u32::MAX,
            )?,
            // Smaller requests would be useless, and larger ones do not occur.
            request_bytes: within(
                "request_bytes",
                written.request_bytes,
                usual.request_bytes,
                4096,
                1 << 26,
            )?,
            connections: within("connections", written.connections, usual.connections, 1, 1024)?,
            forecast_time: self.length(
                "limits.forecast_time",
                written.forecast_time,
                usual.forecast_time,
                Config::FORECASTS,
            )?,
        })
    }

    fn jobs(&self, written: JobsTable) -> Result<Jobs, ConfigError> {
        let bounds = |(ulimit, Name(text)): (Ulimit, Name)| match text.parse() {
            Ok(bounds) => Ok((ulimit, bounds)),
            Err(why) => Err(self.source.error(&format!("jobs.ulimits.{ulimit}"), why)),
        };
        Ok(Jobs {
            umask: written.umask.map_or(Umask::default(), |umask| umask.0),
            ulimits: written.ulimits.into_iter().map(bounds).collect::<Result<_, _>>()?,
        })
    }

    fn agents(&self, written: AgentsTable) -> Result<Agents, ConfigError> {
        let usual = Agents::default();
        let mut nodes: Vec<AgentNode> = Vec::new();
        for (place, node) in written.nodes.unwrap_or_default().into_iter().enumerate() {
            let field = format!("agents.nodes[{place}]");
            let NodeTable { name: Name(name), address: Name(address), demand } = node;
            if let Some(other) = nodes.iter().position(|other| other.name == name) {
                let why = format!("node {other} has this name, too; give each its own");
                return Err(self.source.error(&format!("{field}.name"), why));
            }
            let is_path = address.contains('/');
            if !is_path && !address.contains(':') {
                let why = format!(
                    "'{address}': write a path such as /run/busbar/agent.sock, or host:port"
                );
                return Err(self.source.error(&format!("{field}.address"), why));
            }
            if !is_path && written.keys.is_none() {
                let why = "an agent on another machine needs keys; set agents.keys = \"FOLDER\" (busbar agent \
                keys makes them)";
                return Err(self.source.error(&format!("{field}.address"), why));
            }
            let address = match is_path {
                true => self.folder.join(address).to_string_lossy().into_owned(),
                false => address,
            };
            let demand = self.path(&format!("{field}.demand"), demand)?;
            nodes.push(AgentNode { name, address, demand });
        }
        let span = |field: &str, written, usual| {
            self.length(&format!("agents.{field}"), written, usual, Config::DEADLINES)
        };
        Ok(Agents {
            nodes,
            keys: self.path("agents.keys", written.keys)?,
            lease: span("lease", written.lease, usual.lease)?,
            within: span("within", written.within, usual.within)?,
        })
    }

    fn slurm(&self, written: SlurmTable, takeover: Span) -> Result<Slurm, ConfigError> {
        let usual = Slurm::default();
        if written.mode == Some(Mode::Watch) {
            let why = "a daemon steers or admits; write steer or admit";
            return Err(self.source.error("slurm.mode", why));
        }
        let span = |field: &str, written, usual| {
            self.length(&format!("slurm.{field}"), written, usual, Config::DEADLINES)
        };
        let partitions = written.partitions.unwrap_or_default();
        let rest = match written.rest {
            Some(Text(address)) => Some(RestConfig {
                address,
                user: written.rest_user.map_or("root".to_owned(), |Name(name)| name),
                token: self.path("slurm.rest_token", written.rest_token)?,
                plain: written.rest_plain.unwrap_or(false),
            }),
            None => {
                let alone = [
                    ("slurm.rest_user", written.rest_user.is_some()),
                    ("slurm.rest_token", written.rest_token.is_some()),
                    ("slurm.rest_plain", written.rest_plain.is_some()),
                ];
                if let Some((key, _)) = alone.into_iter().find(|(_, is_there)| *is_there) {
                    let why = "it needs slurmrestd; set slurm.rest = \"http://localhost:6820\"";
                    return Err(self.source.error(key, why));
                }
                None
            }
        };
        if rest.as_ref().is_some_and(|rest| !rest.plain && !rest.address.is_local()) {
            let why = "requests and tokens would cross the network unencrypted; use a socket or an address of this machine \
                       (a proxy or a tunnel there), or set slurm.rest_plain = true";
            return Err(self.source.error("slurm.rest", why));
        }
        let mode = written.mode.unwrap_or(usual.mode);
        let fail = written.fail.unwrap_or(usual.fail);
        let fail_after = self.length(
            "slurm.fail_after",
            written.fail_after,
            usual.fail_after,
            Config::TAKEOVERS,
        )?;
        if fail == Fail::Admit && mode != Mode::Steer {
            let why = "it is for mode steer; in mode admit Slurm goes on by itself in any case";
            return Err(self.source.error("slurm.fail", why));
        }
        if fail == Fail::Admit && written.conf.is_none() {
            let why = "job_submit.lua is switched by the file busbar.off beside slurm.conf; say slurm.conf as well";
            return Err(self.source.error("slurm.fail", why));
        }
        // A second daemon comes first, which takes over after half as long again.
        if fail == Fail::Admit && fail_after.millis() < 2 * takeover.millis() {
            let why = format!(
                "{} is less than twice the time after which another daemon takes over (takeover, {})",
                Length(fail_after),
                Length(takeover)
            );
            return Err(self.source.error("slurm.fail_after", why));
        }
        Ok(Slurm {
            mode,
            fail,
            fail_after,
            nodes: written.nodes.map(|nodes| nodes.0.0).unwrap_or_default(),
            partitions: partitions.into_iter().map(|Name(name)| name).collect(),
            others: written.others.map(|others| others.0),
            licence: written.licence.map_or(usual.licence, |Name(name)| name),
            period: span("period", written.period, usual.period)?,
            within: span("within", written.within, usual.within)?,
            conf: self.path("slurm.conf", written.conf)?,
            programs: self.path("slurm.programs", written.programs)?,
            rest,
        })
    }

    fn web(&self, written: WebTable) -> Result<Web, ConfigError> {
        let usual = Web::default();
        let certificate = self.path("web.certificate", written.certificate)?;
        let key = self.path("web.key", written.key)?;
        let tls = match (certificate, key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
            (Some(_), None) => {
                let why = "a certificate needs its key; set web.key = \"FILE\"";
                return Err(self.source.error("web.certificate", why));
            }
            (None, Some(_)) => {
                let why = "a key needs its certificate; set web.certificate = \"FILE\"";
                return Err(self.source.error("web.key", why));
            }
        };
        let web = Web {
            listen: written.listen.and_then(|listen| listen.0.0),
            open: written.open.unwrap_or(usual.open),
            plain: written.plain.unwrap_or(usual.plain),
            tls,
            hosts: written.hosts.unwrap_or_default().into_iter().map(|Name(name)| name).collect(),
        };
        web.check().map_err(|why| self.source.error("web.listen", why))?;
        Ok(web)
    }

    fn tune(&self, written: TuneTable) -> Result<Tune, ConfigError> {
        let usual = Tune::default();
        let jobs = written.jobs.unwrap_or(usual.jobs);
        if !Config::REPLAYED.contains(&jobs) {
            let (least, most) = (Config::REPLAYED.start(), Config::REPLAYED.end());
            let why = format!("{jobs} is out of range; write {least} to {most}");
            return Err(self.source.error("tune.jobs", why));
        }
        let policies = written.policies.unwrap_or_default();
        Ok(Tune {
            at: written.at.map(|at| at.0.0),
            jobs,
            policies: policies.into_iter().map(|policy| policy.0).collect(),
        })
    }

    fn local(&self, written: LocalTable) -> Result<Local, ConfigError> {
        let pin = written.pin.unwrap_or(Local::default().pin);
        let cpus: Vec<_> =
            written.cpus.unwrap_or_default().into_iter().map(|list| list.0.0).collect();
        if !pin && !cpus.is_empty() {
            let why = "'local.pin' is false, so jobs are not pinned to these; keep one of them";
            return Err(self.source.error("local.cpus", why));
        }
        let cgroups = written.cgroups.unwrap_or(Local::default().cgroups);
        Ok(Local { pin, cpus, cgroups })
    }
}
