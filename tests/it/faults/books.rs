//! The history of a daemon, added up again: who held which nodes and how much power after each line.
//!
//! The rule for power: after every line, what is drawn is within the limit in force. The only exception
//! begins with a line that lowers the limit below what is drawn. From there on what is drawn never rises,
//! until it is within the limit again.
//!
//! The same holds below each feed, whose limits are in messages.
//!
//! The rules for jobs: each is submitted once and before all else that is said of it; an attempt starts
//! while the job waits, and its number is the next one; it ends once, and then nothing more is said of it.
//! No node is anybody's who is not the only one.

use std::collections::BTreeMap;
use std::ops::Range;

use busbar::live::job::{Allotment, EventKind, JobOutcome, Scope, ScopedLimit};
use busbar::live::wire::HistoryLine;
use busbar::units::{Instant, Watts};

/// What a history comes to.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) jobs: BTreeMap<u64, Account>,
    /// In milliwatts; none if there is no limit.
    limit: Option<u64>,
    base: u64,
    /// What was drawn after the last line, if that is more than may be.
    ceiling: Option<u64>,
    feeds: Vec<FeedBooks>,
    /// The highest power within the limit, in milliwatts.
    pub(super) peak: u64,
    /// How many lines lowered the limit below what was drawn.
    pub(super) shortages: u32,
    /// The same of limits of feeds.
    pub(super) shortages_below: u32,
    pub(super) withdrawn: u32,
    pub(super) changed: u32,
    pub(super) suspended: u32,
}

/// What is known of a feed. Its nodes draw nothing when they are idle.
#[derive(Debug)]
struct FeedBooks {
    name: String,
    nodes: Range<u32>,
    /// In milliwatts; none if there is no limit.
    limit: Option<u64>,
    ceiling: Option<u64>,
}

/// What is known of a job.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) attempts: u32,
    held: Option<Held>,
    pub(super) outcome: Option<JobOutcome>,
}

#[derive(Debug)]
struct Held {
    allotment: Allotment,
    is_suspended: bool,
}

impl Books {
    /// Adds up a history from its first line, or says which line breaks which rule.
    pub(super) fn add_up(lines: &[HistoryLine], nodes: u32) -> Result<Books, String> {
        Books::add_up_below(&[], lines, nodes)
    }

    /// The same on a machine with these feeds.
    pub(super) fn add_up_below(
        feeds: &[(&str, Range<u32>)],
        lines: &[HistoryLine],
        nodes: u32,
    ) -> Result<Books, String> {
        let of_feed = |(name, nodes): &(&str, Range<u32>)| FeedBooks {
            name: (*name).to_owned(),
            nodes: nodes.clone(),
            limit: None,
            ceiling: None,
        };
        let feeds = feeds.iter().map(of_feed).collect();
        let mut books = Books { feeds, ..Books::default() };
        let (mut next, mut now) = (1, Instant::ZERO);
        for line in lines {
            let checked = books.take(&line.event.kind).and_then(|()| {
                if line.line != next {
                    return Err(format!("line {next} is missing"));
                }
                if line.event.at < now {
                    return Err("time goes back".to_owned());
                }
                books.check_nodes(nodes)?;
                books.check_feeds(&line.event.kind)?;
                books.check_power(&line.event.kind)
            });
            checked.map_err(|why| format!("{why}, after {line:?}"))?;
            (next, now) = (line.line + 1, line.event.at);
        }
        Ok(books)
    }

    fn take(&mut self, what: &EventKind) -> Result<(), String> {
        if let EventKind::Submitted { job, .. } = what {
            return match self.jobs.insert(*job, Account::default()) {
                None => Ok(()),
                Some(_) => Err("a number is used twice".to_owned()),
            };
        }
        if let EventKind::Limit { power, base } = what {
            (self.limit, self.base) = (power.map(Watts::milliwatts), base.milliwatts());
            return Ok(());
        }
        if let EventKind::Notice {
            limit: Some(ScopedLimit { of: Scope::Feed(name), power }), ..
        } = what
            && let Some(feed) = self.feeds.iter_mut().find(|feed| feed.name == *name)
        {
            feed.limit = power.map(Watts::milliwatts);
        }
        let Some(number) = what.job() else { return Ok(()) };
        let account = self.jobs.get_mut(&number).ok_or("nobody submitted it")?;
        if account.outcome.is_some() {
            return Err("it is over".to_owned());
        }
        match (what, &mut account.held) {
            (EventKind::Started { attempt, allotment, .. }, held @ None) => {
                account.attempts += 1;
                if *attempt != account.attempts {
                    return Err(format!("attempt {} would be the next", account.attempts));
                }
                *held = Some(Held { allotment: allotment.clone(), is_suspended: false });
            }
            (EventKind::Changed { allotment, .. }, Some(held)) => {
                held.allotment.clone_from(allotment);
                self.changed += 1;
            }
            (EventKind::Withdrawn { .. }, held @ Some(_)) => {
                *held = None;
                self.withdrawn += 1;
            }
            (EventKind::Suspended { .. }, Some(held)) if !held.is_suspended => {
                held.is_suspended = true;
                self.suspended += 1;
            }
            (EventKind::Resumed { .. }, Some(held)) if held.is_suspended => {
                held.is_suspended = false;
            }
            (EventKind::Ended { outcome, .. }, held) => {
                *held = None;
                account.outcome = Some(outcome.clone());
            }
            (EventKind::Held { .. } | EventKind::Ending { .. }, _) => (),
            (_, held) => return Err(format!("it has {held:?}")),
        }
        Ok(())
    }

    /// What is drawn, in milliwatts.
    fn drawn(&self) -> u64 {
        let held = self.jobs.values().filter_map(|account| account.held.as_ref());
        let awake = held.filter(|held| !held.is_suspended);
        self.base + awake.map(|held| held.allotment.power.milliwatts()).sum::<u64>()
    }

    fn check_power(&mut self, what: &EventKind) -> Result<(), String> {
        let (drawn, limit) = (self.drawn(), self.limit.unwrap_or(u64::MAX));
        if drawn <= limit {
            self.ceiling = None;
            self.peak = self.peak.max(drawn);
            return Ok(());
        }
        match self.ceiling {
            None if matches!(what, EventKind::Limit { .. }) => self.shortages += 1,
            Some(before) if drawn <= before => (),
            before => return Err(format!("{drawn} mW of {limit}, before it {before:?}")),
        }
        self.ceiling = Some(drawn);
        Ok(())
    }

    /// What is drawn by these nodes, in milliwatts: their parts of what jobs hold, each rounded up.
    fn drawn_by(&self, nodes: &Range<u32>) -> u64 {
        let held = self.jobs.values().filter_map(|account| account.held.as_ref());
        let part = |held: &Held| {
            let all = &held.allotment.nodes;
            let each = held.allotment.power.milliwatts().div_ceil(all.len() as u64);
            each * all.iter().filter(|(node, _)| nodes.contains(node)).count() as u64
        };
        held.filter(|held| !held.is_suspended).map(part).sum()
    }

    fn check_feeds(&mut self, what: &EventKind) -> Result<(), String> {
        let mut feeds = std::mem::take(&mut self.feeds);
        for feed in &mut feeds {
            let (drawn, limit) = (self.drawn_by(&feed.nodes), feed.limit.unwrap_or(u64::MAX));
            let falls = matches!(what, EventKind::Notice { limit: Some(limit), .. }
                if limit.of.name() == feed.name);
            feed.ceiling = match feed.ceiling {
                _ if drawn <= limit => None,
                None if falls => {
                    self.shortages_below += 1;
                    Some(drawn)
                }
                Some(before) if drawn <= before => Some(drawn),
                before => {
                    let name = &feed.name;
                    return Err(format!(
                        "{drawn} mW of {limit} below {name}, before it {before:?}"
                    ));
                }
            };
        }
        self.feeds = feeds;
        Ok(())
    }

    fn check_nodes(&self, nodes: u32) -> Result<(), String> {
        let mut holders = BTreeMap::new();
        for (job, account) in &self.jobs {
            let held = account.held.iter().flat_map(|held| &held.allotment.nodes);
            for (node, _) in held {
                if let Some(other) = holders.insert(*node, *job) {
                    return Err(format!("node {node} is of {other} and of {job}"));
                }
                if *node >= nodes {
                    return Err(format!("there is no node {node}"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use busbar::live::job::Event;
    use busbar::units::{Joules, Span};

    use super::*;

    fn has(node: u32, watts: u32) -> Allotment {
        let power = Watts::from_watts(watts);
        let (time, speed) = (Span::from_secs(60), 1_000_000);
        Allotment {
            nodes: vec![(node, power)],
            cores: 1,
            cap: power,
            time,
            power,
            speed,
            part: None,
        }
    }

    fn started(job: u64, node: u32, watts: u32) -> EventKind {
        EventKind::Started { job, attempt: 1, allotment: has(node, watts) }
    }

    fn limit(watts: u64) -> EventKind {
        EventKind::Limit { power: Some(Watts::from_milliwatts(watts * 1000)), base: Watts::ZERO }
    }

    fn ended(job: u64) -> EventKind {
        let outcome = JobOutcome {
            start: None,
            end: Instant::ZERO,
            how: None,
            reason: None,
            energy: Joules::ZERO,
            nodes: Vec::new(),
            by: None,
            full_speed: None,
        };
        EventKind::Ended { job, outcome }
    }

    /// Two jobs of 100 W on two nodes, and then this.
    fn books(more: &[EventKind]) -> Result<Books, String> {
        let mut story = vec![limit(200)];
        story.extend((1..=3).map(|job| EventKind::Submitted { job, element: None }));
        story.extend([started(1, 0, 100), started(2, 1, 100)]);
        story.extend_from_slice(more);
        let line = |(line, what): (u64, EventKind)| HistoryLine {
            line,
            wall: 0,
            event: Event { at: Instant::ZERO, kind: what },
            by_name: None,
        };
        Books::add_up(&(1..).zip(story).map(line).collect::<Vec<_>>(), 4)
    }

    #[test]
    fn what_may_be_is_added_up() {
        let squeezed = EventKind::Changed {
            job: 2,
            allotment: has(1, 50),
            reason: busbar::live::job::ChangeReason::Squeezed,
        };
        let rest = [limit(150), squeezed, ended(1), started(3, 0, 100), ended(2), ended(3)];
        let books = books(&rest).unwrap();
        assert_eq!((books.peak, books.shortages, books.changed), (200_000, 1, 1));
    }

    /// Two nodes below a feed, each with a job of 100 W, and then this.
    fn books_below(more: &[EventKind]) -> Result<Books, String> {
        let mut story: Vec<EventKind> = vec![limit(1000), fed(250)];
        story.extend((1..=3).map(|job| EventKind::Submitted { job, element: None }));
        story.extend([started(1, 0, 100), started(2, 1, 100)]);
        story.extend_from_slice(more);
        let line = |(line, what): (u64, EventKind)| HistoryLine {
            line,
            wall: 0,
            event: Event { at: Instant::ZERO, kind: what },
            by_name: None,
        };
        let lines: Vec<HistoryLine> = (1..).zip(story).map(line).collect();
        Books::add_up_below(&[("row", 0..2)], &lines, 4)
    }

    fn fed(watts: u64) -> EventKind {
        let power = Some(Watts::from_milliwatts(watts * 1000));
        let limit = Some(ScopedLimit { of: Scope::Feed("row".to_owned()), power });
        EventKind::Notice { text: String::new(), limit }
    }

    #[test]
    fn what_is_below_a_feed_is_added_up() {
        let books = books_below(&[started(3, 2, 100), fed(150), ended(1), ended(3)]).unwrap();
        assert_eq!((books.shortages, books.shortages_below), (0, 1));
        let error = books_below(&[fed(150), started(3, 2, 100), ended(1), fed(99)]).unwrap();
        assert_eq!(error.shortages_below, 2);
        let error = books_below(&[fed(90), ended(1), started(3, 0, 20)]).unwrap_err();
        assert!(error.contains("120000 mW of 90000 below row, before it Some(100000)"), "{error}");
        let error = books_below(&[ended(1), fed(199), started(3, 0, 100)]).unwrap_err();
        assert!(error.contains("200000 mW of 199000 below row, before it None"), "{error}");
    }

    #[test]
    fn what_must_not_be_is_found() {
        let withdrawn = |job| EventKind::Withdrawn { job, reason: String::new() };
        for (more, why) in [
            (vec![started(3, 2, 1)], "201000 mW of 200000"),
            (vec![limit(99), ended(1), started(3, 2, 1)], "101000 mW of 99000"),
            (vec![limit(300), started(3, 1, 100)], "node 1 is of 2 and of 3"),
            (vec![limit(300), started(3, 4, 100)], "there is no node 4"),
            (vec![ended(1), ended(1)], "it is over"),
            (vec![ended(1), started(1, 0, 100)], "it is over"),
            (vec![started(1, 0, 100)], "it has"),
            (vec![withdrawn(1), started(1, 0, 100)], "attempt 2 would be the next"),
            (vec![withdrawn(3)], "it has"),
            (vec![started(4, 2, 100)], "nobody submitted it"),
            (vec![EventKind::Submitted { job: 1, element: None }], "a number is used twice"),
        ] {
            let error = books(&more).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }
}
