//! Which nodes a job gets, of those that have enough for it: the rules of `select/cons_tres`.
//!
//! Nodes of a low weight come before those of a higher one. By default, neighbours of one weight make a row. A row that is
//! enough for the job is better than one that is not; of rows that are enough the one with the fewest processors is best, and
//! of those that are not the one with the most. Nodes of the best row are taken in order, and then those of the next best one,
//! until there are enough. If only one node is missing, it is the one of the row with the fewest processors that are enough.
//!
//! With `lln`, each node is the one with the largest part of its processors free. With `pack_serial_at_end`, a job of one
//! processor is on the last node.

use std::ops::Range;

use super::floor::{Ask, Floor};
use super::nodes::NodeSet;
use crate::ledger::SeatNodes;
use crate::machine::NodeSize;
use crate::priority::Scheduler;
use crate::units::NodeId;

/// What is free of nodes, at some time.
pub(super) struct Free<'a> {
    pub(super) floor: &'a Floor,
    pub(super) left: &'a [NodeSize],
    /// Whether busy nodes come first.
    pub(super) prefers_busy: bool,
}

/// Neighbours of one weight.
struct Row {
    nodes: Range<u32>,
    processors: i64,
    count: i64,
    weight: u32,
}

impl Free<'_> {
    /// The processors that a job could have of a node.
    fn processors(&self, ask: &Ask, node: u32) -> i64 {
        match ask.is_alone {
            true => i64::from(self.floor.size(node).processors),
            false => i64::from(self.left[node as usize].processors),
        }
    }

    /// The nodes for a job, of some that have enough for it; nothing if there are too few.
    pub(super) fn choose(
        &self,
        rules: &Scheduler,
        ask: &Ask,
        enough: &NodeSet,
    ) -> Option<SeatNodes> {
        if enough.count() < ask.nodes {
            return None;
        }
        let is_serial = ask.nodes == 1 && ask.each.processors == 1 && !ask.is_alone;
        let mut nodes = if self.prefers_busy {
            self.busy_first(ask, enough)
        } else if rules.lln {
            self.least_loaded(ask, enough)
        } else if rules.pack_serial_at_end && is_serial {
            self.by_weight(enough, std::cmp::Reverse).take(1).collect()
        } else {
            self.best_rows(ask, enough)
        };
        nodes.sort_unstable();
        (nodes.len() == ask.nodes as usize).then_some(nodes)
    }

    /// Nodes by weight, and by something else where that is the same.
    fn by_weight<K: Ord, F: Fn(u32) -> K>(
        &self,
        enough: &NodeSet,
        key: F,
    ) -> impl Iterator<Item = NodeId> + use<K, F> {
        let mut nodes: Vec<u32> = enough.iter().collect();
        nodes.sort_by_cached_key(|node| (self.floor.weight(*node), key(*node)));
        nodes.into_iter().map(NodeId)
    }

    fn busy_first(&self, ask: &Ask, enough: &NodeSet) -> SeatNodes {
        let idle = self.floor.idle();
        self.by_weight(enough, |node| (idle.has(node), node)).take(ask.nodes as usize).collect()
    }

    fn least_loaded(&self, ask: &Ask, enough: &NodeSet) -> SeatNodes {
        // In parts of 2³², rounded down: nodes do not have as many processors.
        let load = |node: u32| {
            let all = i64::from(self.floor.size(node).processors).max(1);
            (std::cmp::Reverse((self.processors(ask, node) << 32) / all), node)
        };
        self.by_weight(enough, load).take(ask.nodes as usize).collect()
    }

    fn rows(&self, ask: &Ask, enough: &NodeSet) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for run in enough.runs() {
            let mut joins = false;
            for node in run {
                let (weight, processors) = (self.floor.weight(node), self.processors(ask, node));
                match rows.last_mut().filter(|row| joins && row.weight == weight) {
                    Some(row) => {
                        row.nodes.end = node + 1;
                        row.processors += processors;
                        row.count += 1;
                    }
                    None => rows.push(Row { nodes: node..node + 1, processors, count: 1, weight }),
                }
                joins = true;
            }
        }
        rows
    }

    fn best_rows(&self, ask: &Ask, enough: &NodeSet) -> SeatNodes {
        let mut rows = self.rows(ask, enough);
        let mut found = SeatNodes::new();
        let mut missing = i64::from(ask.nodes);
        // Slurm fills the first nodes, and leaves a processor for each of the others.
        let mut processors = missing * i64::from(ask.each.processors);
        while missing > 0 {
            let Some(best) = best(&rows, missing, processors) else { break };
            let row = rows.remove(best);
            let has_all = |node: &u32| self.processors(ask, *node) >= processors;
            let single = row.nodes.clone().filter(|_| missing <= 1).filter(has_all);
            // The first of those with the fewest.
            let single = single.min_by_key(|node| self.processors(ask, *node));
            let nodes = single.map_or(row.nodes, |node| node..node + 1);
            for node in nodes {
                let has = self.processors(ask, node);
                if missing == 0 || (missing == 1 && has < processors) {
                    continue;
                }
                let used = if ask.is_alone { has } else { has.min(processors - (missing - 1)) };
                processors -= used;
                missing -= 1;
                found.push(NodeId(node));
            }
        }
        found
    }
}

/// The best row for so many nodes and processors.
fn best(rows: &[Row], missing: i64, processors: i64) -> Option<usize> {
    let is_enough = |row: &Row| row.processors >= processors && row.count >= missing;
    let mut best: Option<(usize, bool)> = None;
    for (place, row) in rows.iter().enumerate() {
        let enough = is_enough(row);
        let is_better = match best {
            None => true,
            Some((best, best_is_enough)) => {
                let best = &rows[best];
                row.weight < best.weight
                    || (row.weight == best.weight
                        && match enough {
                            true => !best_is_enough || row.processors < best.processors,
                            false => row.processors > best.processors,
                        })
            }
        };
        if is_better {
            best = Some((place, enough));
        }
    }
    best.map(|(place, _)| place)
}
