//! `busbar config`: how a daemon is to work.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand};
use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;

use crate::cli::print;
use crate::live::clock::Clock;
use crate::live::config::{Config, Length, Resolved};
use crate::report::{human_power, write_whole};
use crate::units::Watts;

/// Write, check and show the configuration of busbar serve
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Init(Init),
    Check(Check),
    Show(Show),
}

/// Write a configuration that says every default, with explanations
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar config init
  busbar config init ~/.config/busbar/busbar.toml")]
pub(super) struct Init {
    /// The file
    #[arg(value_name = "PATH", default_value = "busbar.toml")]
    path: PathBuf,

    /// Write over a file that is there
    #[arg(long)]
    force: bool,
}

/// Look for mistakes, and say what a configuration means on this machine
///
/// Without a path the file is the one that busbar serve would read: what $BUSBAR_CONFIG says, or else
/// ~/.config/busbar/busbar.toml (for root /etc/busbar.toml) if it is there, or else the defaults.
/// Nothing is written, and no daemon is asked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar config check
  busbar config check busbar.toml --json")]
pub(super) struct Check {
    /// The file [default: what busbar serve would read]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,

    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// Print the whole configuration, what is left out as well
#[derive(Debug, Args)]
pub(super) struct Show {
    /// The file [default: what busbar serve would read]
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
    // A link that leads nowhere is there as well.
    if !arguments.force && path.symlink_metadata().is_ok() {
        bail!("{} is there already; --force writes over it", path.display());
    }
    write_whole(path, &|out| out.write_all(Config::template().as_bytes()))?;
    print(&format!("wrote {}\n", path.display()))
}

/// What a configuration means, for scripts.
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
    /// None if there is no limit.
    limit_w: Option<f64>,
    to_come: Vec<Change>,
    profiles: usize,
    period_ms: u64,
    last_resort: String,
    kill_after_ms: u64,
    retention_ms: u64,
    operators: Vec<u32>,
    remarks: Vec<String>,
}

/// A limit to come.
#[derive(Serialize)]
struct Change {
    /// Seconds since 1970.
    at: i64,
    limit_w: Option<f64>,
}

fn check(arguments: &Check) -> anyhow::Result<()> {
    let config = Config::find(arguments.path.as_deref())?;
    let resolved = config.resolve()?;
    let answer = answer(&config, resolved);
    if arguments.json {
        return print(&(serde_json::to_string_pretty(&answer)? + "\n"));
    }
    print(&describe(&config, &answer))
}

fn answer(config: &Config, resolved: Resolved) -> Answer {
    let Resolved { setup, schedule, profiles, remarks, .. } = resolved;
    let machine = &setup.machine;
    let clock = Clock::begin(None);
    let (now, budget) = (clock.now(), schedule.map(&clock).budget);
    let watts = |limit: Watts| (limit != Watts::UNLIMITED).then(|| limit.as_f64());
    let change = |&(at, limit): &(_, Watts)| {
        // To the next second: clocks are read one after another.
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
        period_ms: config.period.millis(),
        last_resort: config.last_resort.to_string(),
        kill_after_ms: config.kill_after.millis(),
        retention_ms: config.retention.millis(),
        operators: config.operators.clone(),
        remarks,
    }
}

fn describe(config: &Config, answer: &Answer) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| text += &format!("{name:>12}  {value}\n");
    match &answer.file {
        Some(file) => line("file", &file.display().to_string()),
        None => line("file", "none: all is as by default"),
    }
    line("state", &answer.state.display().to_string());
    line("socket", &answer.socket.display().to_string());
    let (nodes, most) = (answer.nodes, human_power(answer.max_power_w));
    line("machine", &format!("{}: {nodes} nodes, {most} at most", answer.machine));
    line("policy", &answer.policy);
    let limit = |watts: Option<f64>| watts.map_or("no limit".to_owned(), human_power);
    line("budget", &format!("{} now", limit(answer.limit_w)));
    let zone = TimeZone::system();
    for change in &answer.to_come {
        let at = Timestamp::from_second(change.at).unwrap_or(Timestamp::MAX);
        let at = zone.to_datetime(at).strftime("%a %Y-%m-%d %H:%M:%S").to_string();
        line("", &format!("{} from {at} on", limit(change.limit_w)));
    }
    if let Some(name) = &config.profiles {
        line("profiles", &format!("{name}: {} applications", answer.profiles));
    }
    line("period", &Length(config.period).to_string());
    line("last resort", &answer.last_resort);
    line("kill after", &Length(config.kill_after).to_string());
    line("retention", &Length(config.retention).to_string());
    let others: String = config.operators.iter().map(|user| format!(", {user}")).collect();
    line("operators", &format!("root, whoever runs the daemon{others}"));
    for remark in &answer.remarks {
        text += &format!("note: {remark}\n");
    }
    text
}
