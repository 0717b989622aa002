//! What is known of some nodes for a while: forgotten at once, however many they are.

use crate::machine::NodeSize;
use crate::units::NodeId;

/// An amount for each of some nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByNode {
    /// What is of another round is forgotten.
    round: u32,
    of_nodes: Vec<(u32, NodeSize)>,
}

impl ByNode {
    /// Forgets all nodes.
    pub(crate) fn clear(&mut self) {
        self.round = match self.round.checked_add(1) {
            Some(round) => round,
            None => {
                self.of_nodes.clear();
                0
            }
        };
    }

    /// The amount of a node, if there is one.
    #[inline]
    pub(crate) fn get(&self, node: NodeId) -> Option<&NodeSize> {
        let (round, amount) = self.of_nodes.get(node.0 as usize)?;
        (*round == self.round).then_some(amount)
    }

    /// Sets the amount of a node.
    #[inline]
    pub(crate) fn set(&mut self, node: NodeId, amount: NodeSize) {
        let place = node.0 as usize;
        if place >= self.of_nodes.len() {
            // What was never set is of no round.
            let never = (self.round.wrapping_sub(1), NodeSize::default());
            self.of_nodes.resize((place + 1).next_power_of_two(), never);
        }
        self.of_nodes[place] = (self.round, amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forgotten_does_not_come_back() {
        let amount = |processors| NodeSize { processors, memory_mib: 0, gpus: 0 };
        let mut known = ByNode::default();
        for round in 0..3 {
            assert_eq!(known.get(NodeId(5)), None);
            known.set(NodeId(5), amount(round));
            known.set(NodeId(100 * round), amount(round + 10));
            assert_eq!(known.get(NodeId(5)), Some(&amount(round)));
            assert_eq!(known.get(NodeId(100 * round)), Some(&amount(round + 10)));
            assert_eq!(known.get(NodeId(6)), None);
            known.clear();
        }
    }
}
