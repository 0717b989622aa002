//! Feeds: which nodes draw their power through which line, and how much each line may carry.
//!
//! Feeds are a tree: rows below a transformer, racks below a row, or whatever the site calls them. What a node draws counts at
//! the deepest feed that names the node, and at every feed above that one. Nodes that no feed names are limited by the budget
//! alone.
//!
//! Nodes with the same deepest feed are a zone. Within a zone it makes no difference to any feed which nodes a job has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use crate::calendar::{Rules, Timetable, looks_like_rules};
use crate::spelling::hint;
use crate::units::limit::{Allowance, Limit};
use crate::units::{NodeId, Watts};

/// The feeds of a machine; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Feeds {
    /// Each after the one above it.
    all: Vec<Feed>,
    /// In the order of their first nodes.
    zones: Vec<Zone>,
    /// The first node of each stretch of neighbours in one zone, ascending, and that zone.
    stretches: Vec<(u32, usize)>,
}

/// A line through which nodes draw power.
#[derive(Clone, Debug, PartialEq)]
pub struct Feed {
    /// Its name.
    pub name: String,
    /// The most that the nodes below it may draw.
    pub limit: Timetable<Watts>,
    /// The place of the feed above it.
    pub parent: Option<usize>,
    /// How many nodes are below it.
    pub nodes: u32,
    /// What these draw together when they are idle, by the machine file or by what is assumed without it.
    pub idle: Watts,
    /// What these can draw together.
    busy: Watts,
}

impl Feed {
    /// What a limit of this feed comes to that is written as in a machine file, if its idle nodes draw so much. Limits below
    /// that are refused.
    pub(super) fn limited(&self, text: &str, idle: Watts) -> Result<Timetable<Watts>, String> {
        limit(text, "the limit", &Sum { nodes: self.nodes, busy: self.busy, idle })
    }
}

/// Nodes that have the same deepest feed, or none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Zone {
    feed: Option<usize>,
    /// The nodes, ascending.
    pub(crate) nodes: Vec<Range<u32>>,
}

/// A timetable cannot be hashed, but it can be written down.
impl Hash for Feeds {
    fn hash<H: Hasher>(&self, state: &mut H) {
        format!("{self:?}").hash(state);
    }
}

/// How many nodes of which zones a job gets.
pub(crate) type Placing = Vec<(usize, u32)>;

impl Feeds {
    /// All of them, each after the one above it.
    pub fn all(&self) -> &[Feed] {
        &self.all
    }

    /// The feed with this number.
    pub fn name(&self, feed: usize) -> &str {
        self.all.get(feed).map_or("", |feed| &feed.name)
    }

    /// The number of the feed of this name.
    pub fn named(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|feed| feed.name == name)
    }

    pub(crate) fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// The feeds through which a zone draws, from the deepest one up.
    pub(crate) fn above(&self, zone: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.zones[zone].feed, |feed| self.all[*feed].parent)
    }

    /// The feeds through which a node draws, from the deepest one up.
    pub fn feeds_of(&self, node: NodeId) -> impl Iterator<Item = usize> + '_ {
        self.zone_of(node).into_iter().flat_map(|zone| self.above(zone))
    }

    /// The zone of a node.
    #[inline]
    pub(crate) fn zone_of(&self, node: NodeId) -> Option<usize> {
        let after = self.stretches.partition_point(|(first, _)| *first <= node.0);
        let (_, zone) = self.stretches.get(after.checked_sub(1)?)?;
        Some(*zone)
    }

    /// Nodes that feeds can still take, if each can take so many.
    pub(crate) fn takes(&self, fed: Vec<u32>) -> Takes<'_> {
        Takes { tree: self, left: fed, short: None }
    }

    /// So many nodes in zones where `free` nodes are, each feed feeding at most `fed` of them: as many as can be had in one
    /// zone, then in the next. Zones come in ascending order, or the last one first. Otherwise, the number of a feed that cannot
    /// feed enough, if it is not just nodes that are missing.
    ///
    /// Limits of feeds and of zones contain each other or have nothing in common. So whoever takes as much as there is, in any
    /// order, ends with as many nodes as can be had at all.
    pub(crate) fn place(
        &self,
        nodes: u32,
        free: &[u32],
        mut fed: Vec<u32>,
        last_first: bool,
    ) -> Result<Placing, Option<usize>> {
        let (mut placing, mut left) = (Placing::new(), nodes);
        let mut short = None;
        for place in 0..self.zones.len() {
            let zone = if last_first { self.zones.len() - 1 - place } else { place };
            let wanted = free[zone].min(left);
            let count = self.above(zone).map(|feed| fed[feed]).fold(wanted, u32::min);
            if count > 0 {
                self.above(zone).for_each(|feed| fed[feed] -= count);
                placing.push((zone, count));
                left -= count;
            }
            if left == 0 {
                return Ok(placing);
            }
            if count < wanted {
                // Of several that are used up, one of the highest: what is below it could not draw more, whatever its limit.
                let used_up = self.above(zone).filter(|feed| fed[*feed] == 0);
                short = used_up.chain(short).min();
            }
        }
        Err(short)
    }
}

/// Feeds that take one node after the other.
///
/// Limits of feeds contain each other or have nothing in common. So whoever takes each node that can be had, in any order, ends
/// with as many as can be had at all.
pub(crate) struct Takes<'a> {
    tree: &'a Feeds,
    /// By feed: how many nodes it can take.
    left: Vec<u32>,
    /// A feed that could not take a node, one of the highest.
    short: Option<usize>,
}

impl Takes<'_> {
    /// Takes a node, if the feeds it draws through can.
    #[inline]
    pub(crate) fn takes(&mut self, node: NodeId) -> bool {
        let Takes { tree, left, short } = self;
        let Some(zone) = tree.zone_of(node) else { return true };
        let used_up = tree.above(zone).filter(|feed| left[*feed] == 0).min();
        if used_up.is_some() {
            *short = used_up.into_iter().chain(*short).min();
            return false;
        }
        tree.above(zone).for_each(|feed| left[feed] -= 1);
        true
    }

    /// A feed that could not take a node, if that happened.
    pub(crate) fn short(&self) -> Option<usize> {
        self.short
    }
}

impl Zone {
    /// How many nodes it has.
    pub(crate) fn count(&self) -> u32 {
        self.nodes.iter().map(|nodes| nodes.end - nodes.start).sum()
    }

    /// How many of these nodes are in it.
    pub(crate) fn count_in(&self, nodes: &Range<u32>) -> u32 {
        let first = self.nodes.partition_point(|own| own.end <= nodes.start);
        let own = self.nodes[first..].iter().take_while(|own| own.start < nodes.end);
        own.map(|own| own.end.min(nodes.end) - own.start.max(nodes.start)).sum()
    }

    /// Those of these nodes that are in it, ascending.
    pub(crate) fn shared(&self, nodes: &[Range<u32>]) -> Vec<Range<u32>> {
        let shared = nodes.iter().flat_map(|nodes| {
            let first = self.nodes.partition_point(|own| own.end <= nodes.start);
            let own = self.nodes[first..].iter().take_while(|own| own.start < nodes.end);
            own.map(|own| own.start.max(nodes.start)..own.end.min(nodes.end))
        });
        let mut shared: Vec<Range<u32>> = shared.collect();
        shared.sort_unstable_by_key(|stretch| stretch.start);
        shared
    }

    /// Whether a node is in it.
    pub(crate) fn has(&self, node: NodeId) -> bool {
        self.count_in(&(node.0..node.0 + 1)) == 1
    }
}

/// A feed as it is written.
#[derive(Clone, Debug)]
pub(super) struct Written {
    /// The line on which it begins, from 1.
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) limit: String,
    pub(super) parent: Option<String>,
    pub(super) nodes: String,
}

/// What is wrong with a feed, and where it begins.
#[derive(Debug, thiserror::Error)]
#[error("line {line}, feed '{name}': {why}")]
pub(super) struct FeedProblem {
    /// The line, from 1.
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) why: String,
}

/// Neighbouring nodes that are alike, as feeds name them. Those of a machine have no gaps between them.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    /// The partition whose nodes they are, on a machine that has partitions.
    pub(super) partition: Option<String>,
    pub(super) numbers: Range<u32>,
    /// What a busy one draws, and an idle one.
    pub(super) busy: Watts,
    pub(super) idle: Watts,
}

/// Nodes below a feed.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    nodes: u32,
    /// What they draw when they are busy, and when they are idle.
    busy: Watts,
    idle: Watts,
}

impl Sum {
    /// Adds those of a zone.
    fn add(&mut self, zone: &Zone, machine: &[Nodes]) {
        for alike in machine {
            let count = zone.count_in(&alike.numbers);
            self.nodes += count;
            self.busy += alike.busy * count;
            self.idle += alike.idle * count;
        }
    }
}

/// No site has more.
const MOST_FEEDS: usize = 10_000;

impl Feeds {
    /// The feeds of a machine of these nodes, as they are written.
    pub(super) fn of(written: &[Written], machine: &[Nodes]) -> Result<Self, FeedProblem> {
        let count = machine.last().map_or(0, |nodes| nodes.numbers.end);
        let problem = |at: usize, why: String| {
            let Written { line, ref name, .. } = written[at];
            FeedProblem { line, name: name.clone(), why }
        };
        if written.len() > MOST_FEEDS {
            let why = format!("there are {} feeds; at most {MOST_FEEDS}", written.len());
            return Err(problem(MOST_FEEDS, why));
        }
        let (order, parents) = in_order(written).map_err(|(at, why)| problem(at, why))?;
        let mut stretches: Vec<Vec<Range<u32>>> = Vec::new();
        for &at in &order {
            let stretch = stretches_of(&written[at].nodes, machine);
            stretches.push(stretch.map_err(|why| problem(at, why))?);
        }
        let name = |feed: usize| &written[order[feed]].name;
        let zones = zones(&stretches, &parents, count).map_err(|shared| {
            let (one, other) = (shared.feeds.0, shared.feeds.1);
            let why = format!(
                "node {} is also in feed '{}', which is neither above nor below it; a node draws through one line of feeds",
                name_of(shared.node, machine),
                name(one)
            );
            problem(order[other], why)
        })?;
        let mut below = vec![Sum::default(); order.len()];
        for zone in &zones {
            let mut above = zone.feed;
            while let Some(feed) = above {
                below[feed].add(zone, machine);
                above = parents[feed];
            }
        }
        let mut all = Vec::new();
        for (place, at) in order.into_iter().enumerate() {
            let (Sum { nodes, idle, busy }, parent) = (below[place], parents[place]);
            let limit = limit(&written[at].limit, "'limit'", &below[place]);
            let limit = limit.map_err(|why| problem(at, why))?;
            all.push(Feed { name: written[at].name.clone(), limit, parent, nodes, idle, busy });
        }
        let in_zone = |(place, zone): (usize, &Zone)| {
            zone.nodes.iter().map(move |nodes| (nodes.start, place)).collect::<Vec<_>>()
        };
        let mut stretches: Vec<(u32, usize)> = zones.iter().enumerate().flat_map(in_zone).collect();
        stretches.sort_unstable();
        Ok(Feeds { all, zones, stretches })
    }
}

/// The places of feeds as they are written, each after the one above it; and by feed the one above it, in that order.
type InOrder = (Vec<usize>, Vec<Option<usize>>);

fn in_order(written: &[Written]) -> Result<InOrder, (usize, String)> {
    let names = || written.iter().map(|feed| feed.name.as_str());
    // Of several with the same name, the first.
    let places: BTreeMap<&str, usize> = names().zip(0..written.len()).rev().collect();
    let mut above: Vec<Option<usize>> = Vec::new();
    for (at, feed) in written.iter().enumerate() {
        if places[feed.name.as_str()] != at {
            return Err((at, "another feed has this name".to_owned()));
        }
        let is_odd = |sign: char| sign == ',' || sign == '"' || sign.is_control();
        if feed.name.is_empty() || feed.name.contains(is_odd) {
            let why = "a feed needs a name without commas and quotation marks, because tables have a column for each name";
            return Err((at, why.to_owned()));
        }
        above.push(match &feed.parent {
            None => None,
            Some(parent) => match places.get(parent.as_str()) {
                Some(place) => Some(*place),
                None => {
                    let hint = hint(parent, names());
                    let all: Vec<&str> = names().collect();
                    let why = format!(
                        "there is no feed '{parent}' ('parent'){hint} there are {}",
                        all.join(", ")
                    );
                    return Err((at, why));
                }
            },
        });
    }
    let line_of = |at: usize| std::iter::successors(Some(at), |at| above[*at]);
    let mut order: Vec<(usize, usize)> = Vec::new();
    for at in 0..written.len() {
        let depth = line_of(at).take(written.len() + 1).count();
        if depth > written.len() {
            // Whoever hangs below a circle is not in it.
            let start = line_of(at).nth(written.len()).unwrap_or(at);
            let end = line_of(start).skip(1).position(|other| other == start).unwrap_or(0);
            let circle: Vec<&str> =
                line_of(start).take(end + 2).map(|at| written[at].name.as_str()).collect();
            let why =
                format!("its feeds are above each other in a circle: {}", circle.join(" below "));
            return Err((at, why));
        }
        order.push((depth, at));
    }
    order.sort_unstable();
    let order: Vec<usize> = order.into_iter().map(|(_, at)| at).collect();
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(new, at)| place[*at] = new);
    let parents = order.iter().map(|at| above[*at].map(|above| place[above])).collect();
    Ok((order, parents))
}

/// A node as the file would name it.
fn name_of(node: u32, machine: &[Nodes]) -> String {
    let named = machine.iter().find(|alike| alike.numbers.contains(&node));
    match named.and_then(|alike| Some((alike.partition.as_ref()?, alike.numbers.start))) {
        Some((partition, first)) => format!("{partition}[{}]", node - first),
        None => node.to_string(),
    }
}

/// Reads stretches of node numbers, ascending, none of which touch: `0-63,128-191`, or on a machine with partitions
/// `cpu[0-63],gpu`, whose numbers begin anew in each.
fn stretches_of(text: &str, machine: &[Nodes]) -> Result<Vec<Range<u32>>, String> {
    let mut stretches: Vec<Range<u32>> = Vec::new();
    match machine {
        [Nodes { partition: None, numbers, .. }] => {
            numbered(text, numbers, "the machine", &mut stretches)?
        }
        _ => in_partitions(text, machine, &mut stretches)?,
    }
    stretches.sort_unstable_by_key(|stretch| stretch.start);
    let mut joined: Vec<Range<u32>> = Vec::new();
    for stretch in stretches {
        match joined.last_mut() {
            Some(last) if last.end >= stretch.start => last.end = last.end.max(stretch.end),
            _ => joined.push(stretch),
        }
    }
    Ok(joined)
}

/// Reads `cpu[0-63],gpu`.
fn in_partitions(
    text: &str,
    machine: &[Nodes],
    stretches: &mut Vec<Range<u32>>,
) -> Result<(), String> {
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, numbers, after) = match rest.find(['[', ',']) {
            Some(at) if rest[at..].starts_with('[') => {
                let Some(end) = rest[at..].find(']') else {
                    return Err(format!("'nodes' has '{rest}', which has no ']'"));
                };
                (&rest[..at], Some(&rest[at + 1..at + end]), &rest[at + end + 1..])
            }
            Some(at) => (&rest[..at], None, &rest[at..]),
            None => (rest, None, ""),
        };
        let name = name.trim();
        let Some(nodes) = machine.iter().find(|alike| alike.partition.as_deref() == Some(name))
        else {
            let names: Vec<&str> =
                machine.iter().filter_map(|one| one.partition.as_deref()).collect();
            let hint = hint(name, names.iter().copied());
            return Err(format!(
                "'nodes' has '{name}', which is no partition with nodes of its own{hint} there are {}; write all nodes of some \
                 ({first}), or their numbers in it ({first}[0-3])",
                names.join(", "),
                first = names.first().unwrap_or(&"cpu"),
            ));
        };
        match numbers {
            Some(numbers) => {
                numbered(numbers, &nodes.numbers, &format!("partition '{name}'"), stretches)?
            }
            None => stretches.push(nodes.numbers.clone()),
        }
        rest = after.trim_start();
        rest = match rest.strip_prefix(',') {
            Some(next) => next.trim_start(),
            None if rest.is_empty() => rest,
            None => {
                return Err(format!(
                    "'nodes' has '{rest}' after '{name}'; write a comma between them"
                ));
            }
        };
    }
    Ok(())
}

/// Reads `0-63,128-191`, counted from the first of some nodes.
pub(crate) fn numbered(
    text: &str,
    of: &Range<u32>,
    whose: &str,
    stretches: &mut Vec<Range<u32>>,
) -> Result<(), String> {
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            let number = text.trim().parse::<u32>();
            number.map_err(|_| {
                format!("'nodes' has '{part}'; write node numbers, such as 0-63,128-191")
            })
        };
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(format!("'nodes' has '{part}', which ends before it begins"));
        }
        let count = of.end - of.start;
        if last >= count {
            return Err(format!(
                "node {last} ('nodes') is not in {whose}: its {count} nodes are 0-{}",
                count.saturating_sub(1)
            ));
        }
        stretches.push(of.start + first..of.start + last + 1);
    }
    Ok(())
}

/// A node in two feeds of which neither is above the other.
struct Shared {
    node: u32,
    feeds: (usize, usize),
}

/// The zones of so many nodes, in the order of their first nodes.
fn zones(
    stretches: &[Vec<Range<u32>>],
    parents: &[Option<usize>],
    nodes: u32,
) -> Result<Vec<Zone>, Shared> {
    let mut events: Vec<(u32, bool, usize)> = Vec::new();
    for (feed, stretches) in stretches.iter().enumerate() {
        let ends =
            stretches.iter().flat_map(|one| [(one.start, true, feed), (one.end, false, feed)]);
        events.extend(ends);
    }
    events.sort_unstable();
    let is_above = |high: usize, low: usize| {
        std::iter::successors(parents[low], |feed| parents[*feed]).any(|feed| feed == high)
    };
    let mut zones: Vec<Zone> = Vec::new();
    // Feeds come after those above them, so the last of those that name a node is the deepest.
    let mut naming: BTreeSet<usize> = BTreeSet::new();
    let mut known: BTreeMap<Option<usize>, usize> = BTreeMap::new();
    let mut add = |naming: &BTreeSet<usize>, nodes: Range<u32>| {
        if nodes.is_empty() {
            return;
        }
        let feed = naming.last().copied();
        let zone = *known.entry(feed).or_insert_with(|| {
            zones.push(Zone { feed, nodes: Vec::new() });
            zones.len() - 1
        });
        let stretches = &mut zones[zone].nodes;
        match stretches.last_mut() {
            Some(last) if last.end == nodes.start => last.end = nodes.end,
            _ => stretches.push(nodes),
        }
    };
    let mut from = 0;
    for (at, begins, feed) in events {
        add(&naming, from..at);
        from = at;
        if !begins {
            naming.remove(&feed);
            continue;
        }
        let stranger = |other: &&usize| !is_above(**other, feed) && !is_above(feed, **other);
        if let Some(other) = naming.iter().find(stranger) {
            return Err(Shared { node: at, feeds: (*other, feed) });
        }
        naming.insert(feed);
    }
    add(&naming, from..nodes);
    Ok(zones)
}

/// What a limit comes to for these nodes below it; `said` names it in messages.
fn limit(text: &str, said: &str, below: &Sum) -> Result<Timetable<Watts>, String> {
    let Sum { nodes, busy, idle } = *below;
    if nodes == 0 {
        return Err("no node is in it or below it; name some ('nodes'), or leave it out".to_owned());
    }
    let wrong = |why: &dyn fmt::Display| {
        format!(
            "{said}: {why}; write watts (250kW), a share of what its nodes can draw (80%), none, or rules (weekdays \
             08:00-20:00: 60%, else 100%)"
        )
    };
    let on = |allowance: &Allowance| match *allowance {
        Allowance::Unlimited => Watts::UNLIMITED,
        Allowance::Limited(Limit::Power(power)) => power,
        Allowance::Limited(Limit::Share(share)) => share.of(busy),
    };
    let limit = match text.parse::<Allowance>() {
        Ok(allowance) => Timetable::Always(on(&allowance)),
        Err(_) if looks_like_rules(text) => {
            let rules = Rules::parse(text, "100%", str::parse::<Allowance>);
            let rules = rules.map_err(|why| format!("{said}: {why}"))?;
            let made: Result<Rules<Watts>, String> = rules.try_map(|each| Ok(on(each)));
            Timetable::Rules(made?)
        }
        Err(why) => return Err(wrong(&why)),
    };
    let lowest = limit.values().min().copied().unwrap_or_default();
    match lowest < idle {
        true => Err(format!(
            "{said} is {lowest}, but the {nodes} nodes below it draw {idle} when they are idle"
        )),
        false => Ok(limit),
    }
}

#[cfg(test)]
mod tests;
