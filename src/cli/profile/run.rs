//! `busbar profile run`: measures the run time and power of a program under several caps.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::{Database, show};
use crate::agent::client::{Address, Client};
use crate::agent::config::Config;
use crate::agent::domain::{DomainKind, DomainName};
use crate::agent::reading::Reading;
use crate::agent::wire::{Answer, Caps, Outcome, Request};
use crate::profile::fit::{Prediction, fit};
use crate::profile::{Configuration, Origin, Profile, Row, Store, counted, is_name};
use crate::units::{Joules, Span, Watts};

/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the agent waits for a renewal from this command before it applies its safe cap.
const LEASE: Duration = Duration::from_secs(30);

/// How often it is looked whether the program has ended. Shorter runs are not measured well anyway.
const LOOK: Duration = Duration::from_millis(5);

/// Measure a program's run time and power under several caps
///
/// The node's agent sets each cap on every processor package and measures. The program runs once for each cap, on
/// this node; it should run for some seconds at least. The database stores its run time and mean power. Simulations
/// use them at once, a daemon after a reload (SIGHUP). If a configuration was measured before, the median of all
/// times and the largest of all powers count. Afterwards, the site's own limits are restored.
///
/// The variable BUSBAR_CAP_WATTS tells the program its cap. The program's output goes to standard error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar profile run --app lulesh --caps 60,80,100 -- ./lulesh2.0 -s 50
  busbar profile run --app lulesh --caps 60,70,80,90,100 --repeat 3 -- ./lulesh2.0 -s 50")]
pub(in crate::cli) struct Arguments {
    /// Name of the application in the database
    #[arg(long, value_name = "APP")]
    app: String,

    /// Caps per processor package in watts, separated by commas
    #[arg(long, value_name = "WATTS,…", value_delimiter = ',', required = true, value_parser = parse_cap)]
    caps: Vec<Watts>,

    /// Runs under each cap
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,

    /// Number of cores that the program uses [default: all that this command may use]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    cores: Option<u32>,

    /// The agent's socket [default: that of the agent's configuration]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Print one JSON object, with every row
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    database: Database,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Reads a cap; a bare number is in watts, as in tables of profiles.
fn parse_cap(text: &str) -> anyhow::Result<Watts> {
    let cap: Watts = match text.trim().parse::<f64>() {
        Ok(_) => format!("{}W", text.trim()).parse()?,
        Err(_) => text.parse()?,
    };
    if cap == Watts::ZERO {
        bail!("a cap must be above zero");
    }
    Ok(cap)
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if !is_name(&arguments.app) {
        bail!("'{}' is not a name of an application", arguments.app);
    }
    let cores = match arguments.cores {
        Some(cores) => cores,
        None => thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
    };
    // A database that cannot be written is noticed before hours of runs.
    let mut store = Store::open_or_create(&arguments.database.profiles)?;
    let mut node = Node::reach(arguments.socket.as_ref())?;
    node.check(&arguments.caps)?;
    let is_stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, is_stopped.clone()).context("cannot watch signals")?;
    }
    let mut measured = || {
        for cap in &arguments.caps {
            for _ in 0..arguments.repeat {
                let run = node.run(arguments, *cap, &is_stopped)?;
                let configuration = Configuration { nodes: 1, cores, cap: *cap };
                let Run { time, power, origin } = run;
                let row = Row { configuration, time, power, origin };
                store.record(&arguments.app, row)?;
                eprintln!("{cap}: {:.1} s, {power} {}", time.secs_f64(), origin.name());
            }
        }
        anyhow::Ok(())
    };
    let done = measured();
    // Whatever happened, the node is not left capped.
    let released = node.release();
    done?;
    released?;
    let (number, profile) = store.numbered(&arguments.app)?;
    let spreads = store.spreads(&arguments.app)?;
    show::print_runs(&with_model(profile), number, &spreads, cores, arguments.json)
}

/// A profile with what a model says of caps between those that were run, if there are enough for one.
fn with_model(mut profile: Profile) -> (Profile, String) {
    let model = match fit(&profile.application, &profile.rows) {
        Ok(model) => model,
        Err(error) => return (profile, format!("no model: {error}\n")),
    };
    let runs: Vec<Configuration> = profile
        .rows
        .iter()
        .filter(|row| row.origin.was_run())
        .map(|row| row.configuration)
        .collect();
    let between = runs.windows(2).filter(|pair| pair[0].cores == pair[1].cores).map(|pair| {
        let cap = (pair[0].cap.milliwatts() + pair[1].cap.milliwatts()) / 2;
        Configuration { cap: Watts::from_milliwatts(cap), ..pair[0] }
    });
    let predicted = between.filter_map(|configuration| {
        let Prediction { time, power } = model.predict(&configuration)?;
        Some(Row { configuration, time, power, origin: Origin::Predicted })
    });
    profile.rows.extend(predicted.collect::<Vec<_>>());
    profile.rows.sort_by_key(|row| row.configuration);
    profile.rows.dedup_by_key(|row| row.configuration);
    let rows = counted(runs.len(), "row");
    let text = format!(
        "The plot shows a model of these {rows} between them; 'busbar profile fit' shows its error.\n"
    );
    (profile, text)
}

/// The run time and energy of one run.
struct Run {
    time: Span,
    power: Watts,
    origin: Origin,
}

/// The agent of this node, and the packages that it can cap.
struct Node {
    client: Client,
    packages: Vec<DomainName>,
    runs: u32,
}

impl Node {
    fn reach(socket: Option<&PathBuf>) -> anyhow::Result<Self> {
        let path = match socket {
            Some(path) => path.clone(),
            None => {
                let unix = Config::find(None)?.unix;
                unix.ok_or_else(|| anyhow!("the agent's configuration names no socket"))?.path
            }
        };
        let name = "busbar profile run";
        let client = Client::connect(&Address::Unix(path), "", None, name, true, PATIENCE)?;
        let domains = client.inventory().domains.iter();
        let packages = domains
            .filter(|domain| domain.kind == DomainKind::Package && domain.caps.is_some())
            .map(|domain| domain.name.clone());
        let packages: Vec<DomainName> = packages.collect();
        if packages.is_empty() {
            bail!("no processor package of this node can be capped; 'busbar agent probe' says why");
        }
        Ok(Node { client, packages, runs: 0 })
    }

    /// Every cap has to lie within the range of every package.
    fn check(&self, caps: &[Watts]) -> anyhow::Result<()> {
        for domain in &self.client.inventory().domains {
            let Some(range) = domain.caps.filter(|_| self.packages.contains(&domain.name)) else {
                continue;
            };
            let is_outside = |cap: &&Watts| **cap < range.lowest || **cap > range.highest;
            if let Some(cap) = caps.iter().find(is_outside) {
                let (name, lowest, highest) = (domain.name.as_str(), range.lowest, range.highest);
                bail!("--caps: {cap} is outside the range of {name}, {lowest} to {highest}");
            }
        }
        Ok(())
    }

    /// Runs the program once under a cap.
    fn run(&mut self, arguments: &Arguments, cap: Watts, stop: &AtomicBool) -> anyhow::Result<Run> {
        self.cap(cap)?;
        self.runs += 1;
        let job = format!("profile-{}-{}", std::process::id(), self.runs);
        self.client.ask(Request::Begin { job: job.clone() })?;
        let begin = Instant::now();
        let child = Command::new(&arguments.command[0])
            .args(&arguments.command[1..])
            .env("BUSBAR_CAP_WATTS", format!("{}", cap.as_f64()))
            .stdin(Stdio::null())
            .stdout(io::stderr().as_fd().try_clone_to_owned()?)
            .spawn()
            .with_context(|| format!("cannot run {}", arguments.command[0]))?;
        let status = self.wait(child, stop)?;
        let time = Span::from_millis(begin.elapsed().as_millis().max(1) as u64);
        let Answer::Energy(energy) = self.client.ask(Request::End { job })? else {
            bail!("the agent's answer has an unknown form; is it another version?");
        };
        if stop.load(Ordering::Relaxed) {
            bail!("stopped; the finished runs are stored");
        }
        if !status.success() {
            bail!(
                "{} ended with {status} under {cap}; this run is not stored",
                arguments.command[0]
            );
        }
        let mut power = Drawn { joules: Joules::ZERO, is_emulated: false };
        for (name, reading) in &energy.domains {
            if self.packages.contains(name) {
                power.add(name, reading)?;
            }
        }
        // Over the agent's own time, which began a little earlier and ended a little later.
        let micros = power.joules.microjoules();
        let millis = u128::from(energy.elapsed.max(1));
        let milliwatts = u64::try_from(micros.div_ceil(millis)).unwrap_or(u64::MAX).max(1);
        let origin = if power.is_emulated { Origin::Emulated } else { Origin::Measured };
        Ok(Run { time, power: Watts::from_milliwatts(milliwatts), origin })
    }

    /// Sets the cap of every package, and fails unless each is confirmed.
    fn cap(&mut self, cap: Watts) -> anyhow::Result<()> {
        let caps = self.packages.iter().map(|name| (name.clone(), cap)).collect();
        let Answer::Set(report) = self.client.ask(Request::Set(Caps::Domains { caps }))? else {
            bail!("the agent's answer has an unknown form; is it another version?");
        };
        let lease = Request::Renew { lease: LEASE.as_millis() as u64 };
        self.client.ask(lease)?;
        match report.domains.iter().find(|domain| domain.outcome != Outcome::Confirmed) {
            Some(wrong) => {
                bail!("{} was not capped at {cap}: {}", wrong.name.as_str(), wrong.outcome)
            }
            None => Ok(()),
        }
    }

    /// Waits for the program, and renews the lease at the agent meanwhile.
    fn wait(&mut self, mut child: Child, stop: &AtomicBool) -> anyhow::Result<ExitStatus> {
        let mut renewed = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            let mut failure = None;
            if renewed.elapsed() * 3 >= LEASE {
                renewed = Instant::now();
                failure = self.client.ask(Request::Renew { lease: LEASE.as_millis() as u64 }).err();
            }
            if failure.is_some() || stop.load(Ordering::Relaxed) {
                // It is ours, and nobody waits for what it does without its cap.
                let _ = child.kill();
                let status = child.wait()?;
                return failure.map_or(Ok(status), |error| Err(error.into()));
            }
            thread::sleep(LOOK);
        }
    }

    /// Releases the node and restores the site's limits.
    fn release(&mut self) -> anyhow::Result<()> {
        self.client.ask(Request::Release).context("the limits of this node were not restored")?;
        Ok(io::stderr().flush()?)
    }
}

/// The energy of the packages.
struct Drawn {
    joules: Joules,
    is_emulated: bool,
}

impl Drawn {
    /// Adds the energy of a package, which has to be known.
    fn add(&mut self, name: &DomainName, reading: &Reading<Joules>) -> anyhow::Result<()> {
        match reading {
            Reading::Measured { value, .. } => self.joules += *value,
            Reading::Emulated { value, .. } => {
                self.joules += *value;
                self.is_emulated = true;
            }
            Reading::Estimated { source, .. } => bail!(
                "the energy of {} is estimated ({source}), not measured; this run is not stored",
                name.as_str()
            ),
            Reading::Unknown { reason, .. } => bail!(
                "the energy of {} is unknown: {reason}; this run is not stored",
                name.as_str()
            ),
        }
        Ok(())
    }
}
