//! The feeds of a machine: their limits, and what is below them.

use serde::Serialize;

use crate::machine::{Feed, Feeds};
use crate::profile::counted;
use crate::report::{Facts, human_power};
use crate::units::Watts;

/// A feed in JSON.
#[derive(Serialize)]
pub(super) struct AnswerFeed {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    nodes: u32,
    /// The lowest, where it changes.
    lowest_limit_w: Option<f64>,
    changes: bool,
    idle_w: f64,
}

/// All feeds, each after the one above it.
pub(super) fn answers(feeds: &Feeds) -> Vec<AnswerFeed> {
    let feed = |feed: &Feed| AnswerFeed {
        name: feed.name.clone(),
        parent: feed.parent.map(|parent| feeds.name(parent).to_owned()),
        nodes: feed.nodes,
        lowest_limit_w: feed
            .limit
            .values()
            .min()
            .and_then(|lowest| lowest.limited())
            .map(Watts::as_f64),
        changes: feed.limit.values().count() > 1,
        idle_w: feed.idle.as_f64(),
    };
    feeds.all().iter().map(feed).collect()
}

/// Adds a line for each feed.
pub(super) fn add(feeds: &Feeds, facts: &mut Facts) {
    for (place, feed) in answers(feeds).iter().enumerate() {
        let lowest = feed.lowest_limit_w.map_or("no limit".to_owned(), human_power);
        let most = if feed.changes { " at times" } else { "" };
        let above = feed.parent.as_ref().map_or(String::new(), |above| format!(", below {above}"));
        let (name, idle) = (&feed.name, human_power(feed.idle_w));
        let nodes = counted(feed.nodes as usize, "node");
        let line = format!("{name}: {lowest}{most} for {nodes} ({idle} idle){above}");
        facts.add(if place == 0 { "feeds" } else { "" }, line);
    }
}
