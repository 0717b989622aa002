//! A table of what an application took and drew in each configuration it was run in (Patki and others,
//! RMAP, HPDC 2015): nodes, cores in each of them, and a cap.
//!
//! Between configurations it is read off in straight lines: the time over the cap, and over the number of
//! nodes the node-hours, which are nearly the same for all. Above the highest cap that was tried a job is as
//! fast as there; below the lowest one its time grows as the cap falls. What drew more than its cap counts as under
//! the cap that it drew. Of numbers of nodes beyond those that
//! were tried nothing is known but how a cap matters there, which is taken from the nearest.
//!
//! Times are shares of what the table says for the nodes asked for, on most cores under the highest cap: a
//! job of the same application may be a larger problem.

use std::fmt;

use crate::profile::{Configuration, Profile};
use crate::units::Watts;
use crate::world::{Ask, Conditions, Factor, Law, Pace};

/// What an application did in the configurations it was run in.
#[derive(Clone, PartialEq)]
pub struct Table {
    profile: Profile,
    sockets: u32,
    highest: Watts,
    /// Every number of nodes it was run on, ascending.
    nodes: Vec<u32>,
    /// By the cores of a node, ascending.
    columns: Vec<Column>,
}

/// What it did on this many cores of each node.
#[derive(Clone, Debug, PartialEq)]
struct Column {
    cores: u32,
    /// By the number of nodes, ascending; there is at least one.
    lines: Vec<Line>,
}

/// The same on this many nodes.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    nodes: u32,
    /// By the cap, ascending; there is at least one.
    points: Vec<Point>,
}

/// The same under a cap.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    /// The cap of a node, as a share of the highest one.
    share: f64,
    seconds: f64,
    /// What a node draws, as a share of the highest cap.
    draw: f64,
}

/// Thousands of numbers say nothing to anybody.
impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("application", &self.profile.application)
            .finish_non_exhaustive()
    }
}

impl Table {
    /// The rows of a profile, on nodes of this many sockets whose highest cap is this.
    pub fn new(profile: &Profile, sockets: u32, highest: Watts) -> Self {
        let mut rows = profile.rows.clone();
        rows.sort_by_key(|row| {
            let Configuration { nodes, cores, cap } = row.configuration;
            (cores, nodes, cap)
        });
        let mut columns: Vec<Column> = Vec::new();
        for row in &rows {
            let Configuration { nodes, cores, cap } = row.configuration;
            let share = (cap * sockets).as_f64() / highest.as_f64();
            let draw = row.power.as_f64() / f64::from(nodes) / highest.as_f64();
            // A time of zero would make everything else infinitely long.
            let seconds = row.time.secs_f64().max(1e-3);
            let point = Point { share: share.max(draw), seconds, draw };
            if columns.last().is_none_or(|column| column.cores != cores) {
                columns.push(Column { cores, lines: Vec::new() });
            }
            let Some(column) = columns.last_mut() else { continue };
            match column.lines.last_mut() {
                Some(line) if line.nodes == nodes => line.points.push(point),
                _ => column.lines.push(Line { nodes, points: vec![point] }),
            }
        }
        for line in columns.iter_mut().flat_map(|column| &mut column.lines) {
            line.points.sort_by(|one, other| one.share.total_cmp(&other.share));
        }
        let mut nodes: Vec<u32> = rows.iter().map(|row| row.configuration.nodes).collect();
        nodes.sort_unstable();
        nodes.dedup();
        Table { profile: profile.clone(), sockets, highest, nodes, columns }
    }

    /// The same nodes with what another profile says of them.
    pub fn with(&self, profile: &Profile) -> Self {
        Table::new(profile, self.sockets, self.highest)
    }

    /// The profile it was made from.
    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The numbers of nodes it was run on, ascending.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// The numbers of cores that are known on this many nodes, from the most to the fewest; the first is what a
    /// job uses that may use all of them.
    pub(crate) fn cores(&self, nodes: u32) -> Vec<u32> {
        let spanning = |nodes: u32| {
            let columns = self.columns.iter().rev().filter(move |column| column.spans(nodes));
            columns.map(|column| column.cores).collect::<Vec<u32>>()
        };
        let known = spanning(nodes);
        if known.is_empty() { spanning(self.nearest(nodes)) } else { known }
    }

    /// The cores that a job uses on so many nodes that may use all of them.
    pub(crate) fn full_cores(&self, nodes: u32) -> u32 {
        // Asked for at every start: nothing is allocated.
        let most = |nodes: u32| self.columns.iter().rev().find(|column| column.spans(nodes));
        let column = most(nodes).or_else(|| most(self.nearest(nodes)));
        column.map_or(0, |column| column.cores)
    }

    /// The next larger number of nodes it was run on, or the largest.
    fn nearest(&self, nodes: u32) -> u32 {
        let next = self.nodes.partition_point(|tried| *tried < nodes);
        self.nodes.get(next).or(self.nodes.last()).copied().unwrap_or(nodes)
    }

    /// What it does on this many nodes; outside of those that were tried only if it `is_asked`.
    fn at(&self, nodes: u32, cores: u32, share: f64, is_asked: bool) -> Option<Point> {
        let column = self.columns.iter().find(|column| column.cores == cores)?;
        (is_asked || column.spans(nodes)).then(|| column.at(nodes, share))
    }

    fn under(&self, ask: Ask, at: Conditions) -> Option<Point> {
        let full = self.full_cores(at.nodes);
        let cores = at.cores.map_or(full, |cores| cores.min(full));
        self.at(at.nodes, cores, at.share, at.nodes == ask.nodes)
    }
}

impl Column {
    fn spans(&self, nodes: u32) -> bool {
        let (first, last) = (self.lines.first(), self.lines.last());
        first.is_some_and(|line| line.nodes <= nodes)
            && last.is_some_and(|line| line.nodes >= nodes)
    }

    fn at(&self, nodes: u32, share: f64) -> Point {
        let last = self.lines.len() - 1;
        let after = self.lines.partition_point(|line| line.nodes < nodes).min(last);
        let more = &self.lines[after];
        let of_more = more.at(share);
        if after == 0 || more.nodes <= nodes {
            return of_more;
        }
        let less = &self.lines[after - 1];
        let of_less = less.at(share);
        let beyond = f64::from(nodes - less.nodes) / f64::from(more.nodes - less.nodes);
        let node_seconds = |point: Point, line: &Line| point.seconds * f64::from(line.nodes);
        let all = between(node_seconds(of_less, less), node_seconds(of_more, more), beyond);
        Point {
            share,
            seconds: all / f64::from(nodes),
            draw: between(of_less.draw, of_more.draw, beyond),
        }
    }
}

impl Line {
    fn at(&self, share: f64) -> Point {
        let after = self.points.partition_point(|point| point.share < share);
        let Some(more) = self.points.get(after) else { return self.points[after - 1] };
        if more.share == share {
            return *more;
        }
        let Some(less) = after.checked_sub(1).map(|place| self.points[place]) else {
            // The clock stands still for part of the time.
            let seconds = more.seconds * more.share / share.max(f64::MIN_POSITIVE);
            return Point { share, seconds, draw: more.draw.min(share) };
        };
        let beyond = (share - less.share) / (more.share - less.share);
        let seconds = between(less.seconds, more.seconds, beyond);
        Point { share, seconds, draw: between(less.draw, more.draw, beyond) }
    }
}

fn between(less: f64, more: f64, beyond: f64) -> f64 {
    less + (more - less) * beyond
}

impl Law for Table {
    fn pace(&self, ask: Ask, at: Conditions) -> Option<Pace> {
        let as_asked = Conditions { nodes: ask.nodes, cores: None, share: 1.0 };
        let (there, reference) = (self.under(ask, at)?, self.under(ask, as_asked)?);
        Some(Pace::Times(Factor::new(there.seconds / reference.seconds)))
    }

    fn draw(&self, ask: Ask, at: Conditions) -> f64 {
        self.under(ask, at).map_or(at.share, |point| point.draw)
    }

    fn minds_cores(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Beta;
    use crate::profile::{Origin, Row};
    use crate::units::Span;

    /// 8 and 16 nodes, 4 and 8 cores, 50 W and 100 W a socket; with all cores twice as fast, twice the nodes
    /// take 60 % of the time, and half the cap twice as long.
    fn table() -> Table {
        let mut rows = Vec::new();
        for (nodes, seconds) in [(8, 1000), (16, 600)] {
            for (cores, slower) in [(4, 2), (8, 1)] {
                for (cap, longer) in [(50, 2), (100, 1)] {
                    rows.push(Row {
                        configuration: Configuration { nodes, cores, cap: Watts::from_watts(cap) },
                        time: Span::from_secs(seconds * slower * longer),
                        power: Watts::from_watts(2 * (cap - 10)) * nodes,
                        origin: Origin::Measured,
                    });
                }
            }
        }
        let profile = Profile { application: "a".to_owned(), rows };
        Table::new(&profile, 2, Watts::from_watts(200))
    }

    fn factor(ask: u32, nodes: u32, cores: Option<u32>, share: f64) -> Option<f64> {
        let ask = Ask { nodes: ask, beta: Beta::FULL };
        match table().pace(ask, Conditions { nodes, cores, share })? {
            Pace::Times(factor) => Some((factor.as_f64() * 1e6).round() / 1e6),
            Pace::Fixed(_) => None,
        }
    }

    #[test]
    fn rows_are_given_back() {
        assert_eq!(factor(8, 8, None, 1.0), Some(1.0));
        assert_eq!(factor(8, 8, Some(4), 1.0), Some(2.0));
        assert_eq!(factor(8, 16, Some(8), 0.5), Some(1.2));
        assert_eq!(factor(16, 8, None, 1.0), Some(1.666667));
        assert_eq!(factor(8, 8, Some(32), 1.0), Some(1.0), "as many as were tried");
        assert_eq!(factor(8, 8, Some(5), 1.0), None, "nobody tried so many cores");
    }

    #[test]
    fn between_rows_lines_are_straight() {
        assert_eq!(factor(8, 8, None, 0.75), Some(1.5));
        // 12 nodes: half-way between 8000 and 9600 node-seconds.
        assert_eq!(
            factor(8, 12, None, 1.0),
            Some((8800.0 / 12.0_f64).round() / 1000.0 + 0.000_333)
        );
        let draw = |share| {
            let ask = Ask { nodes: 8, beta: Beta::FULL };
            table().draw(ask, Conditions { nodes: 12, cores: None, share })
        };
        assert_eq!((draw(1.0), draw(0.5)), (0.9, 0.4));
        assert!((draw(0.75) - 0.65).abs() < 1e-9);
    }

    #[test]
    fn beyond_what_was_tried_only_caps_matter() {
        assert_eq!((factor(8, 4, None, 1.0), factor(8, 32, None, 1.0)), (None, None));
        assert_eq!((factor(4, 4, None, 1.0), factor(32, 32, None, 0.5)), (Some(1.0), Some(2.0)));
        assert_eq!(factor(8, 8, None, 1.2), Some(1.0), "no faster than without a cap");
        assert_eq!(factor(8, 8, None, 0.25), Some(4.0), "half the lowest cap, twice as long again");
    }
}
