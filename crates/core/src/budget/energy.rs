//! A budget of energy: this many joules in a period.

use crate::units::{Instant, Joules, Span, Watts};

/// How much energy may be consumed in a period, which has its first instant and not its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnergyBudget {
    /// How much; [`Joules::UNLIMITED`] if it does not matter.
    pub energy: Joules,
    /// When the period begins. What is consumed before is not counted.
    pub begin: Instant,
    /// When it ends.
    pub end: Instant,
}

impl EnergyBudget {
    /// What drawing so much costs between two instants: only the part within the period does.
    #[inline]
    pub fn charge(&self, power: Watts, from: Instant, until: Instant) -> Joules {
        power.over(until.min(self.end).since(from.max(self.begin)))
    }

    /// How long the period is.
    pub fn length(&self) -> Span {
        self.end.since(self.begin)
    }

    /// Whether there is any limit.
    pub fn is_limited(&self) -> bool {
        self.energy < Joules::UNLIMITED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_cut() {
        let (begin, end) = (Instant::from_secs(10), Instant::from_secs(20));
        let budget = EnergyBudget { energy: Joules::ZERO, begin, end };
        let charge = |from, until| {
            let (from, until) = (Instant::from_secs(from), Instant::from_secs(until));
            budget.charge(Watts::from_watts(3), from, until).as_f64()
        };
        assert_eq!(charge(0, 10), 0.0);
        assert_eq!(charge(0, 11), 3.0);
        assert_eq!(charge(12, 14), 6.0);
        assert_eq!(charge(0, 99), 30.0);
        assert_eq!(charge(20, 99), 0.0);
        assert_eq!(budget.length(), Span::from_secs(10));
    }
}
