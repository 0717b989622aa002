//! `busbar status` and `busbar stop`.

use clap::Args;

use super::{Daemon, again, budget, unexpected, words};
use crate::live::engine::EnginePace;
use crate::live::wire::{self, Reply, Request};
use crate::policy::Predictions;

/// Show the daemon's status
#[derive(Debug, Args)]
pub(in crate::cli) struct Status {
    #[command(flatten)]
    daemon: Daemon,
}

/// Stop the daemon and wait until it has ended; jobs continue, and the next daemon takes them over
#[derive(Debug, Args)]
pub(in crate::cli) struct Stop {
    #[command(flatten)]
    daemon: Daemon,
}

pub(super) fn run(arguments: &Status) -> anyhow::Result<()> {
    match arguments.daemon.ask(&Request::Status)? {
        Reply::Status(status) => arguments.daemon.show(&status, |status| describe(status)),
        reply => Err(unexpected(&reply)),
    }
}

pub(super) fn stop(arguments: &Stop) -> anyhow::Result<()> {
    let daemon = &arguments.daemon;
    // The connection stays open until the daemon is gone.
    let mut heard = None;
    let reply = again::while_busy(|| {
        let mut client = daemon.connect()?;
        let reply = daemon.ask_on(&mut client, &Request::Stop)?;
        heard = Some(client);
        Ok(reply)
    })?;
    match reply {
        Reply::Stopping => {
            if let Some(client) = heard {
                client.wait_for_end()?;
            }
            daemon.show(&Reply::Stopping, |_| "the daemon has stopped; jobs continue\n".to_owned())
        }
        reply => Err(unexpected(&reply)),
    }
}

fn describe(status: &wire::Status) -> String {
    let (nodes, idle) = status.nodes;
    let off = match status.switched {
        0 => String::new(),
        off => format!(", {off} off, stopping or starting"),
    };
    let (version, process) = (&status.version, status.process);
    let on_host = Some(&status.host).filter(|host| !host.is_empty());
    let on_host = on_host.map(|host| format!(" on {host}")).unwrap_or_default();
    let since = words::local_time(status.since);
    let (cycles, longest) = (status.cycles, status.longest_cycle as f64 / 1000.0);
    let mut rows = vec![
        ("daemon", format!("version {version}, process {process}{on_host}, since {since}")),
        ("policy", status.policy.clone()),
        ("engine", status.engine.clone()),
        ("machine", format!("{}, {nodes} nodes, {idle} of them idle{off}", status.machine)),
        ("jobs", format!("{} running, {} waiting", status.running, status.waiting)),
    ];
    rows.extend(status.page.iter().map(|page| ("page", page.clone())));
    rows.extend(budget::rows(&status.power));
    let predictions = status.predictions.iter().flat_map(Predictions::sentences);
    rows.extend(predictions.map(|sentence| ("predictions", sentence)));
    rows.extend(status.proposal.iter().map(|proposal| ("proposal", proposal.to_string())));
    rows.push(("cycles", format!("{cycles}; the longest recent one took {longest:.1} ms")));
    rows.extend(status.engine_pace.iter().map(|pace| ("looks", looks(pace))));
    rows.extend(status.notices.iter().map(|notice| ("notice", words::visible(notice))));
    words::rows(&rows)
}

/// How long the engine takes beside the cycles.
fn looks(pace: &EnginePace) -> String {
    let ms = |micros: u64| micros as f64 / 1000.0;
    format!(
        "{} of the engine; the longest recent one took {:.1} ms, {:.1} ms of it in Busbar; actions {:.1} ms, \
        {:.1} ms of it in Busbar",
        pace.looks,
        ms(pace.longest_look),
        ms(pace.longest_own_look),
        ms(pace.longest_act),
        ms(pace.longest_own_act)
    )
}
