//! `busbar history` by itself: decisions and events.

use std::thread::sleep;
use std::time::Duration;

use clap::Args;

use crate::cli::live::again::Watcher;
use crate::cli::live::names::JobName;
use crate::cli::live::users::Users;
use crate::cli::live::{Daemon, unexpected, words};
use crate::cli::{print, warn};
use crate::live::job::{Allotment, ChangeReason, EventKind, NodeState};
use crate::live::wire::{HistoryLine, Reply, Request};
use crate::report::{human_energy, human_power};
use crate::units::Watts;
use busbar_core::ledger::SwitchState;

/// The pause between two requests.
const PAUSE: Duration = Duration::from_secs(1);

/// Which decisions and events to show.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// Only events of this job, or of the elements of this array
    #[arg(long, value_name = "JOB")]
    job: Option<JobName>,

    /// Number of lines: the last ones, or the first ones after the line given by --after
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..))]
    lines: u32,

    /// Only lines after this one; --json shows the numbers of lines
    #[arg(long, value_name = "LINE")]
    after: Option<u64>,

    /// Keep printing new lines, even if the daemon is restarted; with --json, one line of JSON each
    #[arg(short, long)]
    follow: bool,

    #[command(flatten)]
    daemon: Daemon,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let users = Users::default();
    let job = arguments.job.map(|name| arguments.daemon.number_of(name)).transpose()?;
    let mut watcher = Watcher::of(&arguments.daemon);
    let mut ask = |after: Option<u64>, limit: u32| -> anyhow::Result<Vec<HistoryLine>> {
        match watcher.ask(&Request::History { job, after, limit: Some(limit) })? {
            Reply::History(lines) => Ok(lines),
            reply => Err(unexpected(&reply)),
        }
    };
    let mut lines = ask(arguments.after, arguments.lines)?;
    let is_short = lines.len() < arguments.lines as usize;
    let first =
        lines.first().map(|line| line.line).filter(|_| is_short && arguments.after.is_none());
    if let Some(first) = first {
        // A daemon limits the number of lines in an answer.
        let earliest = ask(Some(0), 1)?.first().map_or(first, |line| line.line);
        if earliest < first {
            let shown = lines.len();
            warn(&format!(
                "only the last {shown} lines are shown, from line {first} on; 'busbar history --after {} -n \
                {shown}' shows earlier ones",
                earliest - 1
            ));
        }
    }
    if !arguments.follow {
        arguments
            .daemon
            .show(&lines, |lines| lines.iter().map(|line| describe(line, &users)).collect())?;
        let last = lines.last().map(|line| line.line).filter(|_| is_short);
        if let Some(last) = last.filter(|_| arguments.after.is_some())
            && !ask(Some(last), 1)?.is_empty()
        {
            warn(&format!("there are more lines; --after {last} shows them"));
        }
        return Ok(());
    }
    // In an empty history, every line is new.
    let mut last = arguments.after.unwrap_or(0);
    loop {
        for line in &lines {
            match arguments.daemon.json {
                true => print(&(serde_json::to_string(line)? + "\n"))?,
                false => print(&describe(line, &users))?,
            }
        }
        last = lines.last().map_or(last, |line| line.line);
        // There may be more lines than fit into one answer.
        if lines.is_empty() {
            sleep(PAUSE);
        }
        lines = ask(Some(last), arguments.lines)?;
    }
}

fn describe(line: &HistoryLine, users: &Users) -> String {
    let time = words::local_time(line.wall.div_euclid(1000));
    format!("{time}  {}\n", describe_event(&line.event.kind, users))
}

/// An event in words.
fn describe_event(kind: &EventKind, users: &Users) -> String {
    let by_whom =
        |by: Option<u32>| by.map(|user| format!(" by {}", users.name(user))).unwrap_or_default();
    let power = |power: &Watts| human_power(power.as_f64());
    match kind {
        EventKind::Began { version, policy } => {
            format!("the daemon started, version {version}, policy {policy}")
        }
        EventKind::Stopped => "the daemon stopped; jobs continue".to_owned(),
        EventKind::Limit { power: None, .. } => "there is no limit".to_owned(),
        EventKind::Limit { power: Some(limit), base } => {
            format!(
                "the limit is {}, of which the machine itself draws {}",
                power(limit),
                power(base)
            )
        }
        EventKind::Submitted { job, element: None } => format!("job {job} was submitted"),
        EventKind::Submitted { job, element: Some((array, index)) } => {
            format!("job {job} was submitted, which is {array}_{index}")
        }
        EventKind::Held { job, held, by } => {
            let what = if *held { "held" } else { "released" };
            format!("job {job} is {what}{}", by_whom(*by))
        }
        EventKind::Started { job, attempt, allotment } => {
            let again = match attempt {
                0 | 1 => String::new(),
                number => format!(", attempt {number}"),
            };
            format!("job {job} starts{again} {}", has(allotment))
        }
        EventKind::Withdrawn { job, reason } => {
            format!("job {job} did not start and waits again: {}", words::visible(reason))
        }
        EventKind::Changed { job, allotment, reason } => {
            let reason = match reason {
                ChangeReason::Policy => "the policy",
                ChangeReason::Squeezed => "a lower budget",
                ChangeReason::Restored => "a higher budget",
                ChangeReason::Placed => "its nodes were chosen",
            };
            format!("job {job} now runs {} ({reason})", has(allotment))
        }
        EventKind::Node { node, name, switched: Some(switched), .. } => {
            let node = name.clone().unwrap_or_else(|| node.to_string());
            match switched {
                SwitchState::Stopping => format!("node {node} is being switched off"),
                SwitchState::Off => format!("node {node} is off"),
                SwitchState::Starting => format!("node {node} is being started"),
            }
        }
        EventKind::Node { node, name, state, switched: None } => {
            let node = name.clone().unwrap_or_else(|| node.to_string());
            match state {
                NodeState::Awaited => format!("node {node} is expected"),
                NodeState::Up => format!("node {node} is in service"),
                NodeState::Drained { reason } => format!("no job starts on node {node}: {reason}"),
                NodeState::Down { reason } => format!("node {node} is down: {reason}"),
            }
        }
        EventKind::Consumed { job, energy, power, emulated } => {
            let origin = if *emulated { "was emulated" } else { "was measured" };
            let (energy, power) = (human_energy(energy.as_f64()), human_power(power.as_f64()));
            format!("job {job} {origin} to consume {energy}, {power} on average")
        }
        EventKind::Suspended { job } => format!("job {job} is suspended"),
        EventKind::Resumed { job } => format!("job {job} is resumed"),
        EventKind::Ending { job, reason, forced, by } => {
            let how = if *forced { "is ended by force" } else { "is asked to end" };
            format!("job {job} {how}: {reason}{}", by_whom(*by))
        }
        EventKind::Ended { job, outcome } => {
            let reason = outcome.reason.map(|reason| reason.to_string() + &by_whom(outcome.by));
            let how = outcome.how.as_ref().map(words::end);
            let reasons: Vec<String> = reason.into_iter().chain(how).collect();
            match reasons.is_empty() {
                true => format!("job {job} is over"),
                false => format!("job {job} is over: {}", reasons.join(", ")),
            }
        }
        EventKind::Notice { text, .. } => format!("notice: {}", words::visible(text)),
    }
}

/// The nodes, power and speed of a job.
fn has(allotment: &Allotment) -> String {
    let nodes: Vec<u32> = allotment.nodes.iter().map(|(node, _)| *node).collect();
    let (list, power) = (words::node_list(&nodes), human_power(allotment.power.as_f64()));
    let speed = match allotment.speed {
        1_000_000 => String::new(),
        speed => format!(" at {:.1} % of its speed", f64::from(speed) / 1e4),
    };
    let word = if nodes.len() == 1 { "node" } else { "nodes" };
    format!("on {word} {list} with {power}{speed}")
}
