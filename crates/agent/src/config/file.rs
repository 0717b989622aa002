//! Reads a configuration file so that every error names its file, line and field.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use busbar_core::units::{Length, Share, Span, Watts};
use serde::Deserialize;
use toml::Spanned;

use super::{Config, ConfigError, RangeSpec, TcpSpec, UnixSpec};
use crate::domain::{DomainKind, DomainName};
use crate::tls::KeyFiles;

/// A value with its place in the file.
type Text = Option<Spanned<String>>;

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    node: Text,
    state: Text,
    period: Text,
    #[serde(default)]
    caps: CapsTable,
    #[serde(default)]
    hardware: HardwareTable,
    #[serde(default)]
    gpu: GpuTable,
    #[serde(default)]
    range: BTreeMap<String, RangeTable>,
    #[serde(default)]
    listen: ListenTable,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CapsTable {
    domains: Option<Vec<DomainKind>>,
    safe: Text,
    lease: Text,
    tolerance: Text,
    reassert: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HardwareTable {
    powercap: Text,
    hwmon: Text,
    emulate: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GpuTable {
    nvml: Option<bool>,
    set: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeTable {
    lowest: Text,
    highest: Text,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListenTable {
    socket: Text,
    controllers: Option<Vec<Spanned<Who>>>,
    observers: Option<Vec<Spanned<Who>>>,
    group: Option<Spanned<Who>>,
    connections: Option<Spanned<u32>>,
    tcp: Text,
    authority: Text,
    certificate: Text,
    key: Text,
}

/// A user or a group.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a name or a number")]
enum Who {
    Number(u32),
    Name(String),
}

/// Reads a configuration; `path` is that of the file.
pub(super) fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
    let reader = Reader { text, path };
    let wrong = |error: toml::de::Error, field: String| {
        // A value with its place is a table of its own to the parser.
        let field = field.replace(".$__serde_spanned_private_value", "");
        let field = (field != ".").then_some(field);
        reader.error(error.span().unwrap_or(0..0), field, error.message())
    };
    let deserializer =
        toml::Deserializer::parse(text).map_err(|error| wrong(error, ".".to_owned()))?;
    let file: File = serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let field = error.path().to_string();
        wrong(error.into_inner(), field)
    })?;
    reader.config(file)
}

/// Interprets the values of a file.
struct Reader<'a> {
    text: &'a str,
    path: &'a Path,
}

impl Reader<'_> {
    fn error(&self, at: Range<usize>, field: Option<String>, reason: impl Display) -> ConfigError {
        let before = self.text.bytes().take(at.start);
        let line = before.filter(|byte| *byte == b'\n').count() + 1;
        ConfigError::Wrong { path: self.path.to_owned(), line, field, reason: reason.to_string() }
    }

    fn wrong<T>(&self, value: &Spanned<T>, field: &str, reason: impl Display) -> ConfigError {
        self.error(value.span(), Some(field.to_owned()), reason)
    }

    /// A value that is written as text.
    fn parsed<T: FromStr<Err: Display>>(
        &self,
        field: &str,
        value: &Text,
    ) -> Result<Option<T>, ConfigError> {
        let Some(value) = value else { return Ok(None) };
        value.get_ref().parse().map(Some).map_err(|error| self.wrong(value, field, error))
    }

    fn length(
        &self,
        field: &str,
        value: &Text,
        range: RangeInclusive<Span>,
    ) -> Result<Option<Duration>, ConfigError> {
        match (self.parsed::<Length>(field, value)?, value) {
            (Some(Length(span)), Some(value)) if !range.contains(&span) => {
                let (least, most) = (Length(*range.start()), Length(*range.end()));
                let reason = format!("'{}' is not between {least} and {most}", value.get_ref());
                Err(self.wrong(value, field, reason))
            }
            (found, _) => Ok(found.map(|Length(span)| Duration::from_millis(span.millis()))),
        }
    }

    /// A path, which counts from the folder of the file.
    fn file_path(&self, field: &str, value: &Text) -> Result<Option<PathBuf>, ConfigError> {
        let Some(value) = value else { return Ok(None) };
        if value.get_ref().is_empty() {
            return Err(self.wrong(value, field, "the path is empty"));
        }
        let whole = std::path::absolute(self.path).unwrap_or_else(|_| self.path.to_owned());
        Ok(Some(whole.parent().unwrap_or(Path::new("/")).join(value.get_ref())))
    }

    fn users(
        &self,
        field: &str,
        value: Option<Vec<Spanned<Who>>>,
    ) -> Result<Vec<u32>, ConfigError> {
        let user = |who: Spanned<Who>| match who.get_ref() {
            Who::Number(number) => Ok(*number),
            Who::Name(name) => match nix::unistd::User::from_name(name) {
                Ok(Some(user)) => Ok(user.uid.as_raw()),
                _ => Err(self.wrong(&who, field, format!("there is no user '{name}'"))),
            },
        };
        value.unwrap_or_default().into_iter().map(user).collect()
    }

    fn group(&self, value: Option<Spanned<Who>>) -> Result<Option<u32>, ConfigError> {
        let Some(who) = value else { return Ok(None) };
        match who.get_ref() {
            Who::Number(number) => Ok(Some(*number)),
            Who::Name(name) => match nix::unistd::Group::from_name(name) {
                Ok(Some(group)) => Ok(Some(group.gid.as_raw())),
                _ => Err(self.wrong(&who, "listen.group", format!("there is no group '{name}'"))),
            },
        }
    }

    fn config(&self, file: File) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        let (second, minute) = (Span::from_secs(1), Span::from_secs(60));
        if let Some(node) = &file.node {
            if node.get_ref().is_empty() || node.get_ref().len() > 253 {
                return Err(self.wrong(node, "node", "a name has 1 to 253 characters"));
            }
            config.node.clone_from(node.get_ref());
        }
        set(&mut config.state, self.file_path("state", &file.state)?);
        let periods = Span::from_millis(100)..=minute;
        set(&mut config.period, self.length("period", &file.period, periods)?);
        self.caps(&mut config, file.caps, second..=Span::from_secs(3600))?;
        set(
            &mut config.hardware.powercap,
            self.file_path("hardware.powercap", &file.hardware.powercap)?,
        );
        set(&mut config.hardware.hwmon, self.file_path("hardware.hwmon", &file.hardware.hwmon)?);
        set(&mut config.hardware.emulate, file.hardware.emulate);
        set(&mut config.hardware.nvml, file.gpu.nvml);
        set(&mut config.hardware.set_gpus, file.gpu.set);
        for (name, range) in file.range {
            let spec = self.range(&name, &range)?;
            config.ranges.insert(DomainName::written(&name), spec);
        }
        self.listen(&mut config, file.listen)?;
        Ok(config)
    }

    fn caps(
        &self,
        config: &mut Config,
        caps: CapsTable,
        leases: RangeInclusive<Span>,
    ) -> Result<(), ConfigError> {
        set(&mut config.caps.domains, caps.domains);
        config.caps.safe = self.parsed::<Watts>("caps.safe", &caps.safe)?;
        set(&mut config.caps.lease, self.length("caps.lease", &caps.lease, leases)?);
        set(&mut config.caps.reassert, caps.reassert);
        if let (Some(share), Some(value)) =
            (self.parsed::<Share>("caps.tolerance", &caps.tolerance)?, &caps.tolerance)
        {
            let percent = share.millionths().div_ceil(10_000);
            if percent > 100 {
                return Err(self.wrong(value, "caps.tolerance", "it is at most 100%"));
            }
            config.caps.tolerance = u32::try_from(percent).unwrap_or(100);
        }
        Ok(())
    }

    fn range(&self, name: &str, range: &RangeTable) -> Result<RangeSpec, ConfigError> {
        let field = |what: &str| format!("range.{name}.{what}");
        let lowest = self.parsed(&field("lowest"), &range.lowest)?;
        let highest = self.parsed(&field("highest"), &range.highest)?;
        match (lowest, highest, &range.highest) {
            (Some(lowest), Some(highest), Some(value)) if lowest > highest => {
                let reason = format!("the highest cap {highest} is below the lowest, {lowest}");
                Err(self.wrong(value, &field("highest"), reason))
            }
            _ => Ok(RangeSpec { lowest, highest }),
        }
    }

    fn listen(&self, config: &mut Config, listen: ListenTable) -> Result<(), ConfigError> {
        if let Some(value) = listen.connections {
            let count = *value.get_ref();
            if !(1..=1000).contains(&count) {
                return Err(self.wrong(&value, "listen.connections", "it is 1 to 1000"));
            }
            config.connections = count as usize;
        }
        let controllers = self.users("listen.controllers", listen.controllers)?;
        let observers = self.users("listen.observers", listen.observers)?;
        let group = self.group(listen.group)?;
        let is_off = listen.socket.as_ref().is_some_and(|socket| socket.get_ref().is_empty());
        let usual = config.unix.take().map(|usual| usual.path).unwrap_or_default();
        if !is_off {
            let path = self.file_path("listen.socket", &listen.socket)?.unwrap_or(usual);
            config.unix = Some(UnixSpec { path, controllers, observers, group });
        }
        let Some(tcp) = &listen.tcp else {
            return match is_off {
                true => Err(self.error(
                    listen.socket.map_or(0..0, |socket| socket.span()),
                    Some("listen.socket".to_owned()),
                    "the agent has no address to listen on; name a socket, or an address with 'tcp'",
                )),
                false => Ok(()),
            };
        };
        let address = tcp.get_ref().parse().map_err(|_| {
            self.wrong(tcp, "listen.tcp", "write an address with its port, such as 0.0.0.0:7117")
        })?;
        let file = |field: &str, value: &Text| {
            let path = self.file_path(field, value)?;
            path.ok_or_else(|| self.wrong(tcp, "listen.tcp", format!("it needs '{field}', too")))
        };
        let keys = KeyFiles {
            authority: file("listen.authority", &listen.authority)?,
            certificate: file("listen.certificate", &listen.certificate)?,
            key: file("listen.key", &listen.key)?,
        };
        config.tcp = Some(TcpSpec { address, keys });
        Ok(())
    }
}

/// Replaces a default if there is something to replace it with.
fn set<T>(value: &mut T, by: Option<T>) {
    if let Some(by) = by {
        *value = by;
    }
}
