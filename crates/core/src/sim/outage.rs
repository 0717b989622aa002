//! Nodes that go down and come up again.

use std::path::Path;

use crate::rows::{Form, TableError};
use crate::units::{Instant, NodeId, parse_decimal};

/// One node out of service for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outage {
    /// The node.
    pub node: NodeId,
    /// From when; a job on the node is thrown out and waits again in its old place.
    pub down: Instant,
    /// Until when; [`Instant::NEVER`] if it does not come back.
    pub up: Instant,
}

/// All outages of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Outages(Vec<Outage>);

const OUTAGES: Form = Form {
    what: "the outage file",
    columns: &["node", "down", "up"],
    form: "write node,down,up with times in seconds",
};

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    Down(NodeId),
    Up(NodeId),
}

/// The changes still to come, soonest first.
#[derive(Clone, Debug)]
pub(super) struct Timetable(std::vec::IntoIter<(Instant, Change)>);

impl Timetable {
    #[inline]
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.as_slice().first().map(|change| change.0)
    }

    #[inline]
    pub(super) fn due(&mut self, now: Instant) -> Option<Change> {
        self.next().filter(|at| *at <= now)?;
        self.0.next().map(|change| change.1)
    }
}

impl Outages {
    /// These outages; those of one node that overlap or touch become one.
    pub fn new(mut outages: Vec<Outage>) -> Self {
        outages.sort_unstable();
        let mut merged: Vec<Outage> = Vec::with_capacity(outages.len());
        for outage in outages {
            match merged.last_mut() {
                Some(last) if last.node == outage.node && outage.down <= last.up => {
                    last.up = last.up.max(outage.up);
                }
                _ => merged.push(outage),
            }
        }
        Outages(merged)
    }

    /// Whether nothing ever fails.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn timetable(&self) -> Timetable {
        let mut changes: Vec<(Instant, Change)> = self
            .0
            .iter()
            .flat_map(|outage| {
                [(outage.down, Change::Down(outage.node)), (outage.up, Change::Up(outage.node))]
            })
            .filter(|change| change.0 != Instant::NEVER)
            .collect();
        changes.sort_unstable();
        Timetable(changes.into_iter())
    }

    /// Reads a CSV file of `node,down,up` rows, times in seconds since the start of the log; an
    /// empty `up` means that the node does not come back.
    pub fn from_file(path: &Path, nodes: u32) -> Result<Self, TableError> {
        Outages::from_csv(&OUTAGES.read(path)?, path, nodes)
    }

    fn from_csv(text: &str, path: &Path, nodes: u32) -> Result<Self, TableError> {
        let mut outages = Vec::new();
        for cells in OUTAGES.rows(text, path) {
            let cells = cells?;
            let [node, down, up] = cells.all();
            let wrong = |field, why: String| cells.unreadable(field, why);
            let node: u32 =
                node.parse().ok().filter(|node| *node < nodes).ok_or_else(|| {
                    wrong("node", format!("'{node}' is not a node of 0..{nodes}"))
                })?;
            let time = |field, text: &str| {
                parse_decimal(text, 1000)
                    .map(Instant::from_millis)
                    .map_err(|error| wrong(field, error.to_string()))
            };
            let down = time("down", down)?;
            let up = if up.is_empty() { Instant::NEVER } else { time("up", up)? };
            if up <= down {
                return Err(wrong("up", format!("{up} is not after {down}")));
            }
            outages.push(Outage { node: NodeId(node), down, up });
        }
        Ok(Outages::new(outages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Outages, String> {
        Outages::from_csv(text, Path::new("out.csv"), 4).map_err(|error| error.to_string())
    }

    #[test]
    fn overlapping_outages_become_one() {
        let outages = read("node,down,up\n1,10,20\n1,15,30\n1,30,40\n2,5,\n").unwrap();
        let mut timetable = outages.timetable();
        let mut changes = Vec::new();
        while let Some(change) = timetable.due(Instant::from_secs(1000)) {
            changes.push(change);
        }
        use Change::{Down, Up};
        assert_eq!(changes, [Down(NodeId(2)), Down(NodeId(1)), Up(NodeId(1))]);
    }

    #[test]
    fn mistakes_are_named() {
        assert!(read("4,1,2").unwrap_err().starts_with("out.csv, line 1, field 'node': '4'"));
        assert!(read("\n0,2,1").unwrap_err().starts_with("out.csv, line 2, field 'up'"));
        assert!(read("0,x,1").unwrap_err().contains("field 'down'"));
        assert!(read("0,1").unwrap_err().contains("field 'up': '0,1' is not 3 fields"));
    }
}
