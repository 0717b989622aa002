//! Follows the daemon: once a second, its power for the metrics and the chart, and what has happened since.
//!
//! The daemon is asked in the name of nobody, so that nothing private goes to those who watch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use busbar_live::job::EventKind;
use busbar_live::wire::{HistoryLine, Request};
use tokio::time::{MissedTickBehavior, interval};

use crate::access::Caller;
use crate::answers;
use crate::app::{App, Question};
use crate::error::ApiError;
use crate::token::now;

/// How often the daemon is looked at.
const EVERY: Duration = Duration::from_secs(1);

/// How many lines of the history are read at once.
const LINES: u32 = 1000;

/// Watches until the runtime ends.
pub(crate) async fn run(app: Arc<App>) {
    let nobody = Caller::nobody();
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = Instant::now();
    let mut seen = None;
    loop {
        ticks.tick().await;
        app.access.forget_the_past();
        let now = Instant::now();
        let looked = look(&app, &nobody, now - before, &mut seen).await;
        if let Err(error) = looked {
            tracing::debug!(?error, "the daemon cannot be watched");
        }
        before = now;
    }
}

async fn look(
    app: &App,
    nobody: &Caller,
    since: Duration,
    seen: &mut Option<u64>,
) -> Result<(), ApiError> {
    let rendered = app.read(Question::Status, nobody).await?;
    let power = &answers::status(&rendered)?.power;
    app.metrics.add(power, since);
    app.samples.note(now(), since, power);
    // Nobody may be watching.
    let _ = app.happenings.send(("status", rendered.text().to_owned()));
    let query = Request::History { job: None, after: *seen, limit: Some(LINES) };
    let lines = answers::history(app.ask(query, nobody.who).await?)?;
    // What happened before this daemon is not counted.
    let began = |line: &HistoryLine| matches!(line.event.kind, EventKind::Began { .. });
    let first = match seen {
        None => lines.iter().rposition(began).unwrap_or(0),
        Some(_) => 0,
    };
    for line in &lines[first..] {
        happened(app, line);
    }
    let last = lines.last().map(|line| line.line);
    *seen = Some(last.or(*seen).unwrap_or(0));
    Ok(())
}

fn happened(app: &App, line: &HistoryLine) {
    app.metrics.note(&line.event);
    if let Ok(text) = serde_json::to_string(line) {
        // Nobody may be watching.
        let _ = app.happenings.send(("history", text));
    }
}
