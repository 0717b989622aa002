//! `busbar budget`: shows the power budget and its use, or sets another limit.

use anyhow::anyhow;
use clap::Args;

use super::table::{fitted, terminal_width};
use super::{Daemon, unexpected, words};
use crate::budget::{Limit, parse_rules};
use crate::calendar::looks_like_rules;
use crate::live::job::Scope;
use crate::live::wire::{FeedPower, MeasuredPower, PowerState, Reply, Request};
use crate::profile::counted;
use crate::report::{Side, human_power};
use crate::units::Watts;

/// The width of the bar, in characters.
const BAR: u64 = 40;

/// Show the power budget and its use, or set another limit
///
/// A lower limit takes effect within a control period: running jobs are slowed first. With --feed it is the limit of a
/// feed, and only jobs on its nodes are slowed. Only operators may set limits.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar budget
  busbar budget 5kW
  busbar budget 60%
  busbar budget 'weekdays 14:00-18:00 nov..feb: 80%, else 100%'
  busbar budget configured        back to what the configuration says
  busbar budget --feed row2 300kW
  busbar budget --feed row2 configured")]
pub(in crate::cli) struct Arguments {
    /// Watts (6500W, 4.2MW), a share of the machine's maximum (80%), rules by the calendar of the daemon's
    /// machine ('weekdays 14:00-18:00: 80%, else 100%'), none, or configured
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: Option<String>,

    /// The limit of this feed of the machine instead; shares (80%) are of what its nodes can draw
    #[arg(long, value_name = "NAME", requires = "value")]
    feed: Option<String>,

    #[command(flatten)]
    daemon: Daemon,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let set = arguments.value.as_deref().map(meant).transpose()?;
    let request = match (set, &arguments.feed) {
        (Some(to), Some(feed)) => Request::Limit { of: Scope::Feed(feed.clone()), to },
        (set, _) => Request::Budget { set },
    };
    match arguments.daemon.ask(&request)? {
        Reply::Budget(power) => arguments.daemon.show(&power, describe),
        reply => Err(unexpected(&reply)),
    }
}

/// The limit in a form that does not depend on the current folder.
pub(super) fn meant(text: &str) -> anyhow::Result<String> {
    if ["configured", "none"].contains(&text) {
        return Ok(text.to_owned());
    }
    if looks_like_rules(text) {
        let rules = parse_rules(text).map_err(|error| anyhow!("budget '{text}': {error}"))?;
        return Ok(rules.to_string());
    }
    let limit = text.parse::<Limit>().map_err(|error| {
        anyhow!(
            "budget '{text}': {error}; write watts (6500W, 4.2MW), a share of the machine's maximum \
             (80%), rules ('weekdays 14:00-18:00: 80%, else 100%'), none, or configured; files of limits belong \
             into the daemon's configuration"
        )
    });
    limit.map(|_| text.to_owned())
}

/// The state of power in a few rows.
pub(super) fn describe(power: &PowerState) -> String {
    let mut text = words::rows(&rows(power));
    if !power.feeds.is_empty() {
        text.push('\n');
        text.push_str(&feeds(&power.feeds));
    }
    text
}

/// A row for each feed, below the one above it.
fn feeds(feeds: &[FeedPower]) -> String {
    let watts = |power: Watts| human_power(power.as_f64());
    let limit = |power: Option<Watts>| power.map_or_else(|| "none".to_owned(), &watts);
    let mut rows = Vec::new();
    for (depth, feed) in in_a_tree(feeds) {
        let drawn = feed.base.saturating_add(feed.held);
        let share = feed.limit.filter(|limit| *limit > Watts::ZERO);
        let share = share.map(|limit| format!("{:.1} %", drawn.as_f64() * 100.0 / limit.as_f64()));
        let by = feed.set_by_operator.then(|| "set by an operator".to_owned());
        let next = feed
            .to_come
            .first()
            .map(|next| format!("{} from {} on", limit(next.limit), words::local_time(next.at)));
        let notice = feed.notice.as_deref().map(words::visible);
        let remarks: Vec<String> = by.into_iter().chain(next).chain(notice).collect();
        rows.push(vec![
            format!("{}{}", "  ".repeat(depth), words::visible(&feed.name)),
            feed.nodes.to_string(),
            limit(feed.limit),
            watts(drawn),
            feed.free.map(watts).unwrap_or_default(),
            share.unwrap_or_default(),
            remarks.join("; "),
        ]);
    }
    let (left, right) = (Side::Left, Side::Right);
    let headings = [
        ("FEED", left),
        ("NODES", right),
        ("LIMIT", right),
        ("IN USE", right),
        ("FREE", right),
        ("USED", right),
        ("REMARK", left),
    ];
    fitted(&headings, rows, terminal_width())
}

/// The feeds right below one, or below none, the last one first.
fn below<'a>(
    feeds: &'a [FeedPower],
    parent: Option<&str>,
    depth: usize,
) -> Vec<(usize, &'a FeedPower)> {
    let found = feeds.iter().rev().filter(|feed| feed.parent.as_deref() == parent);
    found.map(|feed| (depth, feed)).collect()
}

/// Feeds, each followed by those below it, and how many are above it.
fn in_a_tree(feeds: &[FeedPower]) -> Vec<(usize, &FeedPower)> {
    let mut found = Vec::new();
    let mut next = below(feeds, None, 0);
    while let Some((depth, feed)) = next.pop() {
        found.push((depth, feed));
        next.extend(below(feeds, Some(&feed.name), depth + 1));
    }
    found
}

pub(super) fn rows(power: &PowerState) -> Vec<(&'static str, String)> {
    let limit = |limit: Option<Watts>| {
        limit.map_or_else(|| "none".to_owned(), |limit| human_power(limit.as_f64()))
    };
    let by = if power.set_by_operator { "set by an operator" } else { "as configured" };
    let emulated =
        if power.emulated { ", emulated: power is neither measured nor capped" } else { "" };
    let held = human_power(power.held.as_f64());
    let base = human_power(power.base.as_f64());
    let mut rows = vec![
        ("limit", format!("{}, {by}", limit(power.limit))),
        ("held", format!("{held} by jobs, {base} by the machine itself{emulated}")),
    ];
    if let Some(MeasuredPower { power, nodes, emulated }) = &power.measured {
        let nodes = counted(*nodes as usize, "node");
        let whose = if *emulated { "; part of it is emulated" } else { "" };
        rows.push(("measured", format!("{} on {nodes}{whose}", human_power(power.as_f64()))));
    }
    rows.extend(power.free.map(|free| ("free", human_power(free.as_f64()))));
    if let Some(limit) = power.limit.filter(|limit| *limit > Watts::ZERO) {
        rows.push(("", bar(power.base.saturating_add(power.held), limit)));
    }
    for next in &power.to_come {
        rows.push(("to come", format!("{}  {}", words::local_time(next.at), limit(next.limit))));
    }
    rows.extend(power.notice.as_deref().map(|notice| ("notice", words::visible(notice))));
    rows
}

/// A bar that shows how much of the limit is used.
fn bar(held: Watts, limit: Watts) -> String {
    let (held, limit) = (u128::from(held.milliwatts()), u128::from(limit.milliwatts()));
    let full = (held * u128::from(BAR) / limit).min(u128::from(BAR)) as usize;
    let percent = held as f64 * 100.0 / limit as f64;
    format!("[{}{}] {percent:.1} %", "█".repeat(full), "·".repeat(BAR as usize - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_limit_is_held() {
        let bar = |held, limit| bar(Watts::from_watts(held), Watts::from_watts(limit));
        assert_eq!(bar(0, 100), format!("[{}] 0.0 %", "·".repeat(40)));
        assert_eq!(bar(50, 100), format!("[{}{}] 50.0 %", "█".repeat(20), "·".repeat(20)));
        assert_eq!(bar(150, 100), format!("[{}] 150.0 %", "█".repeat(40)));
    }

    #[test]
    fn feeds_stand_below_the_ones_above_them() {
        let feed = |name: &str, parent: Option<&str>| FeedPower {
            name: name.to_owned(),
            parent: parent.map(str::to_owned),
            nodes: 2,
            limit: Some(Watts::from_watts(200)),
            base: Watts::from_watts(40),
            held: Watts::from_watts(110),
            free: Some(Watts::from_watts(50)),
            measured: None,
            set_by_operator: name == "b",
            to_come: Vec::new(),
            notice: None,
        };
        let all = [feed("a", None), feed("b", None), feed("a2", Some("a")), feed("a1", Some("a"))];
        let tree: Vec<_> =
            in_a_tree(&all).into_iter().map(|(depth, feed)| (depth, feed.name.as_str())).collect();
        assert_eq!(tree, [(0, "a"), (1, "a2"), (1, "a1"), (0, "b")]);
        let text = feeds(&all);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        assert_eq!(lines[0], "FEED NODES LIMIT IN USE FREE USED REMARK");
        assert_eq!(lines[1], "a 2 200.0 W 150.0 W 50.0 W 75.0 %");
        assert_eq!(lines[4], "b 2 200.0 W 150.0 W 50.0 W 75.0 % set by an operator");
    }

    #[test]
    fn what_is_no_budget_says_what_is() {
        assert_eq!(meant("configured").unwrap(), "configured");
        assert_eq!(meant("5kW").unwrap(), "5kW");
        let error = format!("{:#}", meant("lots").unwrap_err());
        assert!(error.contains("write watts (6500W, 4.2MW)"), "{error}");
        assert_eq!(meant("none").unwrap(), "none");
        assert_eq!(meant("sat+sun: 5kW; else none").unwrap(), "weekends: 5000W, else none");
        assert!(meant("weekdays: 80%").unwrap_err().to_string().contains("else 100%"));
        assert!(meant("feed.csv").unwrap_err().to_string().contains("configuration"));
    }
}
