//! Power where it gains most: every busy processor has its lowest cap, and what is above that goes to those that get
//! most done with it, whose job they are. Along hulls no other division on the same processors gets more done.

use super::{Member, Partition};
use crate::model::{Caps, NodeCap, Varied};
use crate::solve::ptune::Tuner;
use crate::units::{NodeId, Watts};
use crate::variation::{Curve, Ips};

/// What jobs get done where power goes to those who gain most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::policy::ppartition) struct Poured {
    /// Instructions per second.
    pub(in crate::policy::ppartition) ips: f64,
    /// What the last milliwatt brings; nothing if there is more than anybody can use.
    price: f64,
}

impl Poured {
    /// All power on these processors; none if it is not enough for all of them.
    fn of<'c>(processors: impl Iterator<Item = &'c Curve>, power: Watts) -> Option<Self> {
        let (mut least, mut ips) = (Watts::ZERO, 0.0);
        let mut stretches: Vec<(u64, u64)> = Vec::new();
        for curve in processors {
            least += curve.least();
            ips += curve.at(curve.least()).ips() as f64;
            for segment in curve.hull() {
                // The bits of numbers above zero are in the order of the numbers.
                stretches.push((segment.slope.to_bits(), segment.power().milliwatts()));
            }
        }
        let mut free = power.milliwatts().checked_sub(least.milliwatts())?;
        stretches.sort_unstable_by(|one, other| other.cmp(one));
        let mut price = 0.0;
        for (slope, power) in stretches {
            if free == 0 {
                return Some(Poured { ips, price });
            }
            price = f64::from_bits(slope);
            let given = power.min(free);
            ips += price * given as f64;
            free -= given;
        }
        Some(Poured { ips, price: if free > 0 { 0.0 } else { price } })
    }

    /// Whether a processor gets more done with some power than those who have it now.
    pub(in crate::policy::ppartition) fn is_worth(&self, curve: &Curve) -> bool {
        let gains =
            |power: Watts, ips: Ips| ips.ips() as f64 > self.price * power.milliwatts() as f64;
        gains(curve.least(), curve.at(curve.least()))
            || curve.hull().iter().any(|segment| gains(segment.to.power, segment.to.ips))
    }
}

impl Partition {
    /// What all jobs get done with so much power, and one on these processors as well.
    pub(in crate::policy::ppartition) fn poured(
        &self,
        varied: &Varied,
        power: Watts,
        others: &[&Curve],
    ) -> Option<Poured> {
        let busy = self.members.values().flat_map(|member| {
            let curves = varied.curves(member.application);
            member.wanted.nodes().map(|node| &curves[node.0 as usize])
        });
        Poured::of(busy.chain(others.iter().copied()), power)
    }

    /// Divides all power anew on the processors that are busy. What each job is entitled to stays as it is: by that
    /// others are let in.
    pub(in crate::policy::ppartition) fn divide_anew(
        &mut self,
        varied: &Varied,
        tuner: &mut Tuner,
        power: Watts,
    ) {
        let mut anew = self.clone();
        anew.members.values_mut().for_each(|member| member.go_to_least(varied));
        let free = power.saturating_sub(anew.power());
        anew.pour(varied, tuner, free);
        for (own, divided) in self.members.values_mut().zip(anew.members.into_values()) {
            own.instead = Some(divided.wanted);
        }
    }
}

impl Member {
    fn go_to_least(&mut self, varied: &Varied) {
        let curves = varied.curves(self.application);
        let lowest = |node: NodeId| NodeCap { node, cap: curves[node.0 as usize].least() };
        if let Some(caps) = Caps::new(self.wanted.nodes().map(lowest).collect()) {
            self.budget = caps.total();
            self.wanted = caps;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variation::Knot;

    /// From 50 W on, with so many instructions per second at each power.
    fn curve(knots: &[(u32, u64)]) -> Curve {
        let knot =
            |&(watts, ips)| Knot { power: Watts::from_watts(watts), ips: Ips::from_ips(ips) };
        Curve::new(Watts::from_watts(50), knots.iter().map(knot).collect()).unwrap()
    }

    #[test]
    fn power_goes_where_it_gains_most() {
        // The first gains 2 for each watt up to 60 W, then 1; the second gains 3 for each up to 60 W.
        let first = curve(&[(50, 100), (60, 120), (70, 130)]);
        let second = curve(&[(50, 80), (60, 110)]);
        let poured = |watts: u32| {
            let both = [&first, &second].into_iter();
            Poured::of(both, Watts::from_watts(watts)).map(|it| (it.ips.round(), it.price * 1000.0))
        };
        assert_eq!(poured(99), None);
        // Ten watts for the second, then ten for the first at two, then ten at one; then nobody has a use for more.
        assert_eq!(poured(105), Some((195.0, 3.0)));
        assert_eq!(poured(115), Some((220.0, 2.0)));
        assert_eq!(poured(125), Some((235.0, 1.0)));
        assert_eq!(poured(140), Some((240.0, 0.0)));
    }

    #[test]
    fn a_processor_is_worth_its_power_or_not() {
        // At two for each watt, 50 W have to bring more than 100, and 60 W more than 120.
        let at_two = Poured { ips: 0.0, price: 0.002 };
        assert!(at_two.is_worth(&curve(&[(50, 101)])));
        assert!(!at_two.is_worth(&curve(&[(50, 100)])));
        assert!(at_two.is_worth(&curve(&[(50, 90), (60, 121)])));
        assert!(!at_two.is_worth(&curve(&[(50, 90), (60, 120)])));
    }
}
