//! `busbar config`: the daemon's configuration.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, Subcommand};
use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;

use crate::cli::live::words;
use crate::cli::print;
use crate::live::control::clock::Clock;
use crate::live::server::config::{Config, Length, Resolved};
use crate::report::{Versioned, human_power, write_whole};
use crate::units::{Span, Watts, json};

/// Write, check and show the configuration of busbar serve
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Init(Init),
    Check(Check),
    Show(Show),
}

/// Write a configuration file with all defaults and explanations
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar config init
  busbar config init ~/.config/busbar/busbar.toml")]
pub(super) struct Init {
    /// File to write
    #[arg(value_name = "PATH", default_value = "busbar.toml")]
    path: PathBuf,

    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// Check a configuration, and show what it means on this machine
///
/// Without a path, this checks the file that busbar serve would read: $BUSBAR_CONFIG, or else
/// ~/.config/busbar/busbar.toml (for root /etc/busbar.toml) if it exists, or else the defaults. Nothing is written,
/// and no daemon is contacted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar config check
  busbar config check busbar.toml --json")]
pub(super) struct Check {
    /// File [default: the one that busbar serve would read]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Print the whole configuration, including defaults
#[derive(Debug, Args)]
pub(super) struct Show {
    /// File [default: the one that busbar serve would read]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
}

pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Init(arguments) => init(arguments),
        Command::Check(arguments) => check(arguments),
        Command::Show(arguments) => print(&Config::find(arguments.path.as_deref())?.to_toml()),
    }
}

fn init(arguments: &Init) -> anyhow::Result<()> {
    let path = &arguments.path;
    // A broken symbolic link counts as existing.
    if !arguments.force && path.symlink_metadata().is_ok() {
        bail!("{} already exists; overwrite it with --force", path.display());
    }
    write_whole(path, &|out| out.write_all(Config::template().as_bytes()))?;
    print(&format!("wrote {}\n", path.display()))
}

/// The meaning of a configuration, for scripts.
#[derive(Serialize)]
struct Answer {
    file: Option<PathBuf>,
    state: PathBuf,
    socket: PathBuf,
    machine: String,
    nodes: u32,
    max_power_w: f64,
    power_is_assumed: bool,
    policy: String,
    /// `None` if there is no limit.
    limit_w: Option<f64>,
    to_come: Vec<Change>,
    profiles: usize,
    #[serde(rename = "period_s", with = "json")]
    period: Span,
    last_resort: String,
    /// `None` if nodes stay on.
    switch_off: Option<String>,
    #[serde(rename = "kill_after_s", with = "json")]
    kill_after: Span,
    #[serde(rename = "retention_s", with = "json")]
    retention: Span,
    operators: Vec<u32>,
    remarks: Vec<String>,
}

/// A later limit.
#[derive(Serialize)]
struct Change {
    /// Seconds since 1970.
    #[serde(rename = "at_s")]
    at: i64,
    limit_w: Option<f64>,
}

fn check(arguments: &Check) -> anyhow::Result<()> {
    let config = Config::find(arguments.path.as_deref())?;
    let resolved = config.resolve()?;
    let answer = answer(&config, resolved);
    if arguments.json {
        return print(&(serde_json::to_string_pretty(&Versioned::new(&answer))? + "\n"));
    }
    print(&describe(&config, &answer))
}

fn answer(config: &Config, resolved: Resolved) -> Answer {
    let Resolved { setup, schedule, profiles, remarks, .. } = resolved;
    let machine = &setup.machine;
    let clock = Clock::begin(None);
    let (now, budget) = (clock.now(), schedule.map(&clock).budget);
    let watts = |limit: Watts| limit.limited().map(Watts::as_f64);
    let change = |&(at, limit): &(_, Watts)| {
        // Rounded, because the clocks are read one after another.
        Change { at: (clock.wall(at) + 500).div_euclid(1000), limit_w: watts(limit) }
    };
    Answer {
        file: config.source.file.clone(),
        state: config.state.clone(),
        socket: config.socket.clone(),
        nodes: machine.nodes,
        max_power_w: machine.max_power().as_f64(),
        power_is_assumed: machine.power_is_assumed,
        machine: machine.name.clone(),
        policy: config.policy.to_string(),
        limit_w: watts(budget.at(now)),
        to_come: budget.changes_after(now).iter().map(change).collect(),
        profiles,
        period: config.period,
        last_resort: config.last_resort.to_string(),
        switch_off: config.switch_off.map(|rule| rule.to_string()),
        kill_after: config.kill_after,
        retention: config.retention,
        operators: config.operators.clone(),
        remarks,
    }
}

fn describe(config: &Config, answer: &Answer) -> String {
    let path = |path: &Path| path.display().to_string();
    let (nodes, most) = (answer.nodes, human_power(answer.max_power_w));
    let limit = |watts: Option<f64>| watts.map_or("no limit".to_owned(), human_power);
    let none = || "none: all values are defaults".to_owned();
    let mut rows = vec![
        ("file", answer.file.as_deref().map_or_else(none, path)),
        ("state", path(&answer.state)),
        ("socket", path(&answer.socket)),
        ("machine", format!("{}: {nodes} nodes, {most} at most", answer.machine)),
        ("policy", answer.policy.clone()),
        ("budget", format!("{} now", limit(answer.limit_w))),
    ];
    let zone = TimeZone::system();
    for change in &answer.to_come {
        let at = Timestamp::from_second(change.at).unwrap_or(Timestamp::MAX);
        let at = zone.to_datetime(at).strftime("%a %Y-%m-%d %H:%M:%S").to_string();
        rows.push(("", format!("{} from {at} on", limit(change.limit_w))));
    }
    if let Some(name) = &config.profiles {
        rows.push(("profiles", format!("{name}: {} applications", answer.profiles)));
    }
    let others: String = config.operators.iter().map(|user| format!(", {user}")).collect();
    rows.extend([
        ("period", Length(config.period).to_string()),
        ("last resort", answer.last_resort.clone()),
    ]);
    rows.extend(answer.switch_off.clone().map(|rule| ("switch off", rule)));
    rows.extend([
        ("kill after", Length(config.kill_after).to_string()),
        ("retention", Length(config.retention).to_string()),
        ("operators", format!("root, the daemon's own user{others}")),
    ]);
    let notes = answer.remarks.iter().map(|remark| format!("note: {remark}\n"));
    words::rows(&rows) + &notes.collect::<String>()
}
