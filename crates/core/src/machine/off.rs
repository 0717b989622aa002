//! Nodes that are switched off: what they draw then, and what it takes to stop and to start them.

use crate::units::{Share, Span, Watts};

/// What a node draws that is off, and how it gets there and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Off {
    /// What a node draws that is off: its management controller is still fed.
    pub power: Watts,
    /// From idle to off.
    pub stop: Transition,
    /// From off to idle.
    pub start: Transition,
}

/// What it takes to get from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transition {
    /// How long it takes.
    pub time: Span,
    /// The power of a node meanwhile.
    pub power: Watts,
}

/// What a node that is off draws by default, of what a busy one is rated at.
const ASSUMED_SHARE: Share = Share::percent(5);

impl Off {
    /// What is assumed of nodes that draw so much when they are busy and when they are idle: off, a node draws
    /// 5 % of the one and no more than the other; it starts within five minutes like a busy node, and stops
    /// within one minute like an idle one.
    pub(crate) fn assumed(rated: Watts, idle: Watts) -> Self {
        Off {
            power: ASSUMED_SHARE.of(rated).min(idle),
            stop: Transition { time: Span::from_secs(60), power: idle },
            start: Transition { time: Span::from_secs(300), power: rated },
        }
    }

    /// The same where it is not known how far a node is on its way: meanwhile it counts with no less than it draws at
    /// either end. An idle node draws so much.
    pub fn counted(self, idle: Watts) -> Self {
        let least = self.power.max(idle);
        let at_least = |way: Transition| Transition { power: way.power.max(least), ..way };
        Off { stop: at_least(self.stop), start: at_least(self.start), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node that is asked to stop may still be idle, and one that is asked to start may still be off.
    #[test]
    fn on_its_way_a_node_counts_with_no_less_than_at_either_end() {
        let watts = Watts::from_watts;
        let way = |power| Transition { time: Span::from_secs(9), power: watts(power) };
        let off = Off { power: watts(2), stop: way(5), start: way(80) };
        assert_eq!(off.counted(watts(20)), Off { stop: way(20), ..off });
        let off = Off { power: watts(30), stop: way(5), start: way(7) };
        assert_eq!(off.counted(watts(20)), Off { stop: way(30), start: way(30), ..off });
    }
}
