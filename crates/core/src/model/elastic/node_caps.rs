//! The power of a node: the caps of its processor, and the power of its other parts.

use crate::machine::Machine;
use crate::units::Watts;

/// The part of a node's power that is not its processor's, in the nodes of the PARM paper: 56 of
/// 116 W.
const BASE_PER_THOUSAND: u64 = 483;

/// The processor's power without a cap for which the laws of PASS were measured, in watts.
const LAW_WATTS: f64 = 60.0;

/// The caps a processor may have, and what its node draws besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCaps {
    base: Watts,
    /// The caps to choose from, ascending.
    caps: Vec<Watts>,
    /// What the processor draws at most, which stands for [`LAW_WATTS`].
    full: Watts,
}

/// Caps that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("caps must rise and be above zero, and there must be one")]
pub struct BadCaps;

impl NodeCaps {
    /// A node that draws `base` beside its processor, which has one of these caps and draws `full`
    /// without one.
    pub fn new(base: Watts, caps: Vec<Watts>, full: Watts) -> Result<Self, BadCaps> {
        let is_sorted = caps.is_sorted_by(|one, other| one < other);
        let is_fed = caps.first().is_some_and(|cap| *cap > Watts::ZERO) && full > Watts::ZERO;
        if is_sorted && is_fed { Ok(NodeCaps { base, caps, full }) } else { Err(BadCaps) }
    }

    /// The nodes of a machine, of which nobody said how they are fed: divided as in the PARM paper,
    /// with this many caps from half to all of the processor's power.
    pub fn of(machine: &Machine, levels: u32) -> Self {
        let node = machine.node_power.milliwatts().max(2);
        let base = node * BASE_PER_THOUSAND / 1000;
        let full = node - base;
        let steps = u64::from(levels.max(1));
        let cap = |step: u64| match steps {
            1 => full,
            _ => full - full / 2 * (steps - 1 - step) / (steps - 1),
        };
        let mut caps: Vec<Watts> = (0..steps).map(cap).map(Watts::from_milliwatts).collect();
        caps.dedup();
        NodeCaps { base: Watts::from_milliwatts(base), caps, full: Watts::from_milliwatts(full) }
    }

    /// The caps of the processor, ascending.
    pub(crate) fn caps(&self) -> &[Watts] {
        &self.caps
    }

    /// What a node draws at most under a cap, by the cap's place.
    pub(crate) fn node_power(&self, place: usize) -> Watts {
        self.base + self.caps[place]
    }

    /// The place of the cap under which a node draws so much at most.
    pub(super) fn place(&self, node_power: Watts) -> Option<usize> {
        let cap = node_power.milliwatts().checked_sub(self.base.milliwatts())?;
        self.caps.binary_search(&Watts::from_milliwatts(cap)).ok()
    }

    /// A cap in the watts of the processor for which the laws were measured.
    pub(super) fn law_watts(&self, cap: Watts) -> f64 {
        cap.as_f64() / self.full.as_f64() * LAW_WATTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_divided_as_in_the_paper() {
        let machine = Machine { node_power: Watts::from_watts(116), ..Machine::cab() };
        let feed = NodeCaps::of(&machine, 6);
        assert_eq!(feed.base, Watts::from_milliwatts(56_028));
        let watts: Vec<f64> = feed.caps.iter().map(|cap| cap.as_f64().round()).collect();
        assert_eq!(watts, [30.0, 36.0, 42.0, 48.0, 54.0, 60.0]);
        assert_eq!(feed.node_power(5), Watts::from_watts(116));
        assert_eq!(feed.place(Watts::from_watts(116)), Some(5));
        assert_eq!(feed.place(Watts::from_watts(115)), None);
        assert_eq!(feed.place(Watts::from_watts(1)), None);
        assert!((feed.law_watts(feed.caps[5]) - 60.0).abs() < 1e-9);
        assert_eq!(NodeCaps::of(&machine, 1).caps.len(), 1);
    }

    #[test]
    fn caps_must_rise() {
        let new = |caps: &[u32]| {
            let caps = caps.iter().map(|watts| Watts::from_watts(*watts)).collect();
            NodeCaps::new(Watts::from_watts(56), caps, Watts::from_watts(60))
        };
        assert!(new(&[30, 60]).is_ok());
        for wrong in [&[][..], &[0, 30], &[60, 30], &[30, 30]] {
            assert_eq!(new(wrong), Err(BadCaps));
        }
    }
}
