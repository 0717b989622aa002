//! The power of a node: idle, busy, and under a cap.

use super::{Gearbox, Off, Parts};
use crate::units::{Share, Watts};

/// What is common to all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// What a node draws beside its capped part while it runs a job.
    pub rest: Watts,
    /// The highest cap, which is as good as none.
    pub highest: Watts,
    /// What a node draws that runs nothing. It is drawn anyway: a job adds only what its nodes draw
    /// beyond that.
    pub idle: Watts,
}

impl Node {
    /// What a busy node adds to what is drawn, if its capped part draws so much.
    pub fn added(&self, capped_part: Watts) -> Watts {
        (self.rest + capped_part).saturating_sub(self.idle)
    }

    /// What the capped part of a node may draw, if the node may add so much.
    pub fn capped_part(&self, added: Watts) -> Watts {
        added.saturating_add(self.idle).saturating_sub(self.rest)
    }
}

/// What an idle node is taken to draw by default: 15 % of what a busy one is rated at, and no more than
/// a busy one ever draws.
pub(crate) fn assumed_idle(rated: Watts, least_busy: Watts) -> Watts {
    Share::percent(15).of(rated).min(least_busy)
}

/// How much nodes differ by default.
const ASSUMED_SPREAD: Share = Share::percent(8);

/// No cap is assumed below this share of the highest: nobody has measured what jobs do there.
const LOWEST_SHARE: Share = Share::percent(30);

/// What somebody says of the nodes, beyond what a busy one draws at most. Papers leave all of it out: there
/// an idle node draws nothing, and all nodes are alike. Before jobs run in a world, what is left out is
/// [assumed](Details::filled_in).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Details {
    /// What a node draws that runs nothing.
    pub idle: Option<Watts>,
    /// What a busy node draws that no cap reaches.
    pub rest: Option<Watts>,
    /// The caps that can be set, ascending.
    pub levels: Option<Vec<Watts>>,
    /// How nodes differ.
    pub parts: Option<Parts>,
    /// What nodes draw that are off, and what it takes to stop and start them.
    pub off: Option<Off>,
}

impl Details {
    /// Nodes as papers have them: a cap reaches all that they draw, they are alike, and idle ones draw nothing.
    pub fn ideal() -> Self {
        let nothing = Some(Watts::ZERO);
        Details { idle: nothing, rest: nothing, levels: None, parts: Some(Parts::Alike), off: None }
    }

    /// What is said, of nodes that draw so much when they are busy. What is not said of that is nothing.
    pub(crate) fn node(&self, rated: Watts) -> Node {
        let rest = self.rest.unwrap_or_default().min(rated);
        Node { rest, highest: rated.saturating_sub(rest), idle: self.idle.unwrap_or_default() }
    }

    /// The same, with what nobody says assumed of nodes that draw so much when they are busy: an idle node
    /// draws 15 % of that, a cap reaches 80 % of it, in the gears of the machine or in six steps down to half
    /// of that, and nodes differ by up to 8 %, starting from the seed.
    pub fn filled_in(&self, rated: Watts, gearbox: &Gearbox, seed: u64) -> Self {
        let rest = self.rest.unwrap_or_else(|| Share::percent(20).of(rated));
        // An idle node draws less than a busy one, whatever a cap does to it.
        let idle = self.idle.unwrap_or_else(|| assumed_idle(rated, rest));
        let highest = rated.saturating_sub(rest);
        let levels = self.levels.clone().unwrap_or_else(|| match gearbox.is_assumed() {
            true => (5..=10).map(|tenths| Share::percent(10 * tenths).of(highest)).collect(),
            false => levels_of(gearbox, highest),
        });
        let parts = self.parts.unwrap_or(Parts::Unlike { spread: ASSUMED_SPREAD, seed });
        let (levels, parts) = (Some(levels), Some(parts));
        Details { idle: Some(idle), rest: Some(rest), levels, parts, off: self.off }
    }
}

impl Details {
    /// The same for nodes that were measured one by one, from this cap on: nothing is beyond the reach of a cap,
    /// and an idle node draws 15 % of what a busy one does.
    pub(crate) fn measured(&self, rated: Watts, least: Watts) -> Self {
        let least = least.min(rated);
        let idle = self.idle.map_or_else(|| assumed_idle(rated, least), |idle| idle.min(least));
        let beyond = rated.saturating_sub(least);
        let level = |fifths: u32| least + Share::percent(20 * fifths).of(beyond);
        let mut levels: Vec<Watts> = (0..5).map(level).chain([rated]).collect();
        levels.dedup();
        Details {
            idle: Some(idle),
            rest: Some(Watts::ZERO),
            levels: Some(levels),
            parts: Some(Parts::Alike),
            off: self.off,
        }
    }
}

/// The caps under which nodes have the speeds of their gears, ascending.
fn levels_of(gearbox: &Gearbox, highest: Watts) -> Vec<Watts> {
    let gears = gearbox.node_powers(highest).into_iter().map(|(_, power)| power);
    let mut levels: Vec<Watts> = gears.filter(|power| *power >= LOWEST_SHARE.of(highest)).collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}
