//! The agent's configuration: a TOML file in which every key is optional.
//!
//! [`Config::template`] is such a file with every key explained. Errors name the file, the line and the field.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use busbar_core::units::Watts;

use crate::domain::{DomainKind, DomainName};
use crate::tls::KeyFiles;

mod file;
#[cfg(test)]
mod tests;

/// The configuration of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The node's name.
    pub node: String,
    /// The folder in which the site's limits, the caps and the log of changes are kept.
    pub state: PathBuf,
    /// How often the agent measures, and looks after the limits.
    pub period: Duration,
    /// How the node is capped.
    pub caps: Caps,
    /// Where the hardware is found.
    pub hardware: HardwarePlaces,
    /// Ranges that the hardware does not say, or that the site wants narrower.
    pub ranges: BTreeMap<DomainName, RangeSpec>,
    /// The socket on this node, if the agent listens on one.
    pub unix: Option<UnixSpec>,
    /// The address for other machines, if the agent listens on one.
    pub tcp: Option<TcpSpec>,
    /// The number of simultaneous connections.
    pub connections: usize,
}

/// How a node is capped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caps {
    /// The kinds of domains that a node's cap is divided among.
    pub domains: Vec<DomainKind>,
    /// The node's cap after a lease has ended; `None` is the lowest cap of the node.
    pub safe: Option<Watts>,
    /// The longest lease that a controller can have.
    pub lease: Duration,
    /// How much a domain may draw above its cap before that is reported, in percent of the cap.
    pub tolerance: u32,
    /// Whether the agent sets a limit again that somebody else has raised.
    pub reassert: bool,
}

/// Where the hardware is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardwarePlaces {
    /// The root of the powercap tree.
    pub powercap: PathBuf,
    /// The folder of hwmon devices.
    pub hwmon: PathBuf,
    /// Whether the agent drives the emulated tree at `powercap`.
    pub emulate: bool,
    /// Whether NVIDIA's library is looked for.
    pub nvml: bool,
    /// Whether limits of GPUs may be changed.
    pub set_gpus: bool,
}

/// A range of caps as the site writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeSpec {
    /// The lowest cap.
    pub(crate) lowest: Option<Watts>,
    /// The highest cap.
    pub(crate) highest: Option<Watts>,
}

/// The socket on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixSpec {
    /// Its path.
    pub path: PathBuf,
    /// The users who may set caps, besides root and the agent's own user.
    pub controllers: Vec<u32>,
    /// The users who may only look.
    pub observers: Vec<u32>,
    /// The group whose members may connect and look; without one everybody may connect, and only those named
    /// are admitted.
    pub group: Option<u32>,
}

/// The address for other machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSpec {
    /// The address.
    pub address: SocketAddr,
    /// The agent's keys.
    pub keys: KeyFiles,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error that caused it.
        source: std::io::Error,
    },
    /// A value is wrong.
    #[error("{}, line {line}{}: {reason}", path.display(), in_field(field))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The field, if one is to blame.
        field: Option<String>,
        /// What is wrong, and how to fix it.
        reason: String,
    },
}

fn in_field(field: &Option<String>) -> String {
    field.as_ref().map_or_else(String::new, |field| format!(", field '{field}'"))
}

impl Config {
    /// The configuration file in its usual place.
    const USUAL_FILE: &str = "/etc/busbar/agent.toml";

    /// Reads a configuration file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        file::parse(&text, path)
    }

    /// Reads the named file, or else the file in the usual place; without any, the defaults apply.
    pub fn find(path: Option<&Path>) -> Result<Self, ConfigError> {
        match path {
            Some(path) => Config::load(path),
            None if Path::new(Config::USUAL_FILE).exists() => {
                Config::load(Path::new(Config::USUAL_FILE))
            }
            None => Ok(Config::default()),
        }
    }

    /// A file that sets every key to its default, with explanations.
    pub fn template() -> &'static str {
        include_str!("config/agent.toml")
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            node: host_name(),
            state: "/var/lib/busbar-agent".into(),
            period: Duration::from_secs(1),
            caps: Caps {
                domains: vec![DomainKind::Package],
                safe: None,
                lease: Duration::from_secs(60),
                tolerance: 5,
                reassert: true,
            },
            hardware: HardwarePlaces {
                powercap: "/sys/class/powercap".into(),
                hwmon: "/sys/class/hwmon".into(),
                emulate: false,
                nvml: true,
                set_gpus: false,
            },
            ranges: BTreeMap::new(),
            unix: Some(UnixSpec {
                path: "/run/busbar-agent/socket".into(),
                controllers: Vec::new(),
                observers: Vec::new(),
                group: None,
            }),
            tcp: None,
            connections: 16,
        }
    }
}

/// The name of this machine, up to the first dot.
fn host_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}
