//! The result.

use super::instance::{Instance, Need};
use crate::units::Watts;

/// What a node and what a watt are worth where all of them are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// Value for one node more.
    pub node: f64,
    /// Value for one watt more.
    pub watt: f64,
}

impl Prices {
    pub(super) fn per_milliwatt(self) -> [f64; 2] {
        [self.node.max(0.0), self.watt.max(0.0) / 1000.0]
    }

    pub(super) fn from_milliwatts([node, milliwatt]: [f64; 2]) -> Self {
        Prices { node, watt: milliwatt * 1000.0 }
    }
}

/// A choice that fits, with what is known of it. There are no others: making one checks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    pub(super) chosen: Vec<Option<usize>>,
    pub(super) objective: f64,
    pub(super) bound: f64,
    pub(super) nodes_used: u64,
    pub(super) power_used: Watts,
    pub(super) prices: Prices,
    pub(super) effort: u64,
}

impl Solution {
    /// Adds a choice up, exactly. No choice is worth more than `bound`, or than this one.
    pub(super) fn of(
        instance: &Instance,
        choice: &[u32],
        bound: f64,
        prices: Prices,
        effort: u64,
    ) -> Self {
        let columns = &instance.columns;
        let (mut objective, mut used) = (0.0, [0, 0]);
        let mut chosen = Vec::with_capacity(choice.len());
        for (entry, option) in choice.iter().enumerate() {
            let row = instance.row(entry);
            let place = row.start + *option as usize;
            objective += columns.value[place];
            used[0] += columns.nodes[place] as u64;
            used[1] += columns.power[place] as u64;
            let left_out = instance.need(entry) == Need::Optional && place + 1 == row.end;
            chosen.push((!left_out).then_some(*option as usize));
        }
        let power_used = Watts::from_milliwatts(used[1]);
        assert!(
            used[0] <= instance.nodes() && power_used <= instance.power(),
            "a choice that exceeds the nodes or the power"
        );
        Solution {
            chosen,
            objective,
            bound: bound.max(objective),
            nodes_used: used[0],
            power_used,
            prices,
            effort,
        }
    }

    /// The option chosen for each entry, in the order given; none for an entry left out.
    pub fn chosen(&self) -> &[Option<usize>] {
        &self.chosen
    }

    /// What the choice is worth.
    pub fn objective(&self) -> f64 {
        self.objective
    }

    /// No choice is worth more than this. It is never below the objective.
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// How far the bound is above the objective, as a share of the objective; infinite if that is
    /// zero and the bound is not.
    pub fn gap(&self) -> f64 {
        if self.optimal() { 0.0 } else { (self.bound - self.objective) / self.objective }
    }

    /// Whether no choice is worth more.
    pub fn optimal(&self) -> bool {
        self.bound == self.objective
    }

    /// Nodes the choice takes.
    pub fn nodes_used(&self) -> u64 {
        self.nodes_used
    }

    /// Power the choice takes.
    pub fn power_used(&self) -> Watts {
        self.power_used
    }

    /// What nodes and watts are worth; to begin with next time.
    pub fn prices(&self) -> Prices {
        self.prices
    }

    /// Steps it took.
    pub fn effort(&self) -> u64 {
        self.effort
    }
}

/// Why there is no choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoChoice {
    /// The required entries at their smallest take more than there is of one resource, or of each.
    #[error("the required entries alone take at least {}", excess(*nodes, *power))]
    Exceeded {
        /// Nodes beyond what there is; zero if there are enough.
        nodes: u64,
        /// Power beyond what there is; zero if there is enough.
        power: Watts,
    },
    /// The required entries would fit the nodes alone and the power alone, but not both.
    #[error(
        "the required entries fit the nodes alone and the power alone but not both: on the available nodes, they \
        need at least {power} more than available"
    )]
    Together {
        /// Power beyond what there is, at least, on the nodes there are.
        power: Watts,
    },
    /// No choice was found that fits, and none was shown not to exist.
    #[error("no solution was found within the limits; there may be one")]
    Undecided,
}

fn excess(nodes: u64, power: Watts) -> String {
    match (nodes, power) {
        (_, Watts::ZERO) => format!("{nodes} nodes more than there are"),
        (0, _) => format!("{power} more than there is"),
        _ => format!("{nodes} nodes and {power} more than there are"),
    }
}
