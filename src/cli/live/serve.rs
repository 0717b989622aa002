//! `busbar serve`: the daemon.

use std::fs;
#[cfg(feature = "web")]
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use rustix::fs::OFlags;

use crate::cli::{print, warn};
use crate::live::engines::local::inheritance::close_descriptors;
use crate::live::server::config::Config;
#[cfg(feature = "web")]
use crate::live::server::config::Web;
use crate::live::server::door::Door;
use crate::live::server::log;
use crate::live::server::serve::{Beside, TrustedFolder, serve, stand_by, state_folder};
use crate::live::server::socket::Client;
use crate::live::wire::{Reply, Request};
use crate::policy::PolicySpec;
#[cfg(feature = "web")]
use crate::report::html::{SHARED, STYLE};
#[cfg(feature = "web")]
use crate::web::{Assets, Options, Server};

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// The maximum start time of a daemon in the background.
const PATIENCE: Duration = Duration::from_secs(60);

/// Run the daemon, which shares nodes and power among submitted jobs
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  busbar serve --background                  as many nodes as this computer has processors
  busbar serve --machine 8 --budget 500W     eight nodes, and power for five of them
  busbar serve --web                         with the web page, at http://127.0.0.1:7411/
  busbar submit --wait -- echo hello         a first job, from another terminal
  busbar stop                                jobs continue; the next daemon finds them

Options override the configuration file (busbar config init). TERM and INT stop the daemon, HUP
makes it read its configuration again.")]
pub(in crate::cli) struct Arguments {
    /// Configuration file [default: see busbar config show]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Run in the background, and return when the daemon accepts requests
    #[arg(long)]
    background: bool,

    /// Wait until the daemon with the same state folder has ended, and take over
    #[arg(long, conflicts_with = "background")]
    standby: bool,

    /// Machine: a number of nodes, the name of a built-in machine, or a machine file
    #[arg(long, value_name = "MACHINE")]
    machine: Option<String>,

    /// Scheduling policy
    #[arg(long, value_name = "POLICY")]
    policy: Option<PolicySpec>,

    /// Power budget: 6500W, 80%, rules by the calendar ('weekdays 14:00-18:00: 80%, else 100%'), or a file
    #[arg(long, value_name = "BUDGET")]
    budget: Option<String>,

    /// Application profiles, for policies that choose configurations
    #[arg(long, value_name = "FILE")]
    profiles: Option<String>,

    /// Folder for the daemon's state
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,

    /// Serve the web page, its API and metrics at this address [default address: 127.0.0.1:7411]
    #[cfg(feature = "web")]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true)]
    web: Option<Option<SocketAddr>>,

    /// Path of the socket for clients
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl Arguments {
    /// The configuration, overridden by options.
    fn configuration(&self) -> anyhow::Result<Config> {
        let mut config = Config::find(self.config.as_deref())?;
        if let Some(machine) = &self.machine {
            config.machine.clone_from(machine);
        }
        if let Some(policy) = &self.policy {
            config.policy = policy.clone();
        }
        if let Some(budget) = &self.budget {
            config.budget = budget.parse()?;
        }
        if self.profiles.is_some() {
            config.profiles.clone_from(&self.profiles);
        }
        if let Some(state) = &self.state {
            config.state = absolute(state);
            if self.socket.is_none() && self.config.is_none() && self.takes_sockets_place() {
                config.socket = config.state.join("socket");
            }
        }
        if let Some(socket) = &self.socket {
            config.socket = absolute(socket);
        }
        #[cfg(feature = "web")]
        if let Some(web) = self.web {
            config.web.listen = Some(web.unwrap_or(Web::USUAL));
            config.web.check().map_err(anyhow::Error::msg)?;
        }
        Ok(config)
    }

    /// A daemon with its own state folder has its socket there, too, unless the environment names
    /// one.
    fn takes_sockets_place(&self) -> bool {
        std::env::var_os("BUSBAR_SOCKET").is_none()
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    // Nothing was opened yet, so all open descriptors were inherited by accident.
    close_descriptors()?;
    let config = arguments.configuration()?;
    if arguments.background {
        return in_background(&config);
    }
    log::begin(config.log.level, config.log.format)?;
    let (config, lease) = match arguments.standby {
        true => {
            config.resolve()?;
            let lease = stand_by(&config)?;
            // It may have been changed meanwhile.
            (arguments.configuration()?, Some(lease))
        }
        false => (config, None),
    };
    let arguments = arguments.clone();
    let again = move || arguments.configuration().map_err(|error| format!("{error:#}"));
    serve(&config, lease, again, |door, state| web(&config, door, state))?;
    Ok(())
}

/// Serves the web page, if the configuration says so.
#[cfg(feature = "web")]
fn web(
    config: &Config,
    door: Door,
    state: TrustedFolder,
) -> Result<Beside<Option<Server>>, AnyError> {
    let Some(listen) = config.web.listen else { return Ok(Beside { server: None, page: None }) };
    let options = Options {
        listen,
        open: config.web.open,
        tls: config.web.tls.clone(),
        hosts: config.web.hosts.clone(),
        state,
        request: config.limits.request_bytes as usize,
        connections: config.limits.connections as usize * 4,
        assets: Assets { style: STYLE, scripts: SHARED },
    };
    let server = Server::start(options, door)?;
    let page = Some(server.page().to_owned());
    Ok(Beside { server: Some(server), page })
}

#[cfg(not(feature = "web"))]
fn web(config: &Config, _: Door, _: TrustedFolder) -> Result<Beside<()>, AnyError> {
    match config.web.listen {
        None => Ok(Beside { server: (), page: None }),
        Some(_) => {
            Err("this program was built without the web page; build it with --features full, \
                        or set web.listen = \"none\""
                .into())
        }
    }
}

/// Starts the same daemon in the background and waits until it answers.
fn in_background(config: &Config) -> anyhow::Result<()> {
    // Errors in the configuration are shown here rather than in the log file.
    config.resolve()?;
    if Client::connect(&config.socket).is_ok() {
        bail!("a daemon already listens on {}", config.socket.display());
    }
    let state = state_folder(&config.state)?;
    let log = state.file("log", OFlags::WRONLY | OFlags::APPEND)?;
    let path = state.path().join("log");
    let begun = log.metadata()?.len();
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--background");
    let mut daemon = Command::new(std::env::current_exe()?)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .process_group(0)
        .spawn()
        .context("cannot run the daemon")?;
    let asked = Instant::now();
    let mut page = None;
    loop {
        let answer =
            Client::connect(&config.socket).and_then(|mut client| client.ask(&Request::Status));
        if let Ok(Reply::Status(status)) = answer
            && status.process == daemon.id()
        {
            page = status.page;
            break;
        }
        if let Some(status) = daemon.try_wait()? {
            bail!("the daemon did not start ({status}): {}", said(&path, begun));
        }
        if asked.elapsed() > PATIENCE {
            warn(&format!("the daemon (process {}) does not answer yet", daemon.id()));
            break;
        }
        sleep(Duration::from_millis(20));
    }
    let page = page.map(|page| format!("the web page is at {page}\n")).unwrap_or_default();
    print(&format!(
        "busbar serves on {} as process {}\nit writes to {}\n{page}",
        config.socket.display(),
        daemon.id(),
        path.display()
    ))
}

/// The log lines of a daemon that has ended.
fn said(log: &Path, from: u64) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let from = usize::try_from(from).unwrap_or(0).min(bytes.len());
    let text = String::from_utf8_lossy(&bytes[from..]).trim().to_owned();
    if text.is_empty() { format!("see {}", log.display()) } else { text }
}
