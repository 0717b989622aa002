//! Power where it gains most: every busy processor has its lowest cap, and what is above that goes to those that get
//! most done with it, whose job they are. Along hulls no other division on the same processors gets more done.

use super::{Member, Partition, Wanted};
use crate::model::Varied;
use crate::units::Watts;
use crate::variation::curve::Segment;
use crate::variation::{Curve, Knot};

/// What jobs get done where power goes to those who gain most. It is compared exactly: where two divisions get
/// equally much done, no rounding decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::policy::ppartition) struct Poured {
    /// Instructions per second, without those of the last stretch.
    ips: u128,
    /// Milliwatts of the last stretch that are fed.
    fed: u64,
    price: Price,
}

/// What the last milliwatt brings: so many instructions per second for this many milliwatts.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Price {
    ips: u64,
    milliwatts: u64,
}

impl Price {
    /// There is more power than anybody can use.
    const NOTHING: Price = Price { ips: 0, milliwatts: 1 };

    fn of(segment: &Segment) -> Self {
        Price { ips: segment.gain().ips(), milliwatts: segment.power().milliwatts() }
    }
}

impl Poured {
    /// All power on these processors; none if it is not enough for all of them.
    fn of<'c>(processors: impl Iterator<Item = &'c Curve>, power: Watts) -> Option<Self> {
        let (mut least, mut stretches) = (Watts::ZERO, Vec::<&Segment>::new());
        let mut poured = Poured { ips: 0, fed: 0, price: Price::NOTHING };
        for curve in processors {
            least += curve.least();
            poured.ips += u128::from(curve.slowest().ips());
            stretches.extend(curve.hull());
        }
        let mut free = power.milliwatts().checked_sub(least.milliwatts())?;
        stretches.sort_unstable_by(|one, other| other.slope.total_cmp(&one.slope));
        for segment in stretches {
            if free == 0 {
                return Some(poured);
            }
            poured = poured.and(segment, free);
            free -= poured.fed;
        }
        // What is left over brings nothing.
        Some(if free > 0 {
            Poured { price: Price::NOTHING, fed: 0, ..poured.closed() }
        } else {
            poured
        })
    }

    /// One stretch more, as far as the power goes.
    fn and(self, segment: &Segment, power: u64) -> Self {
        let price = Price::of(segment);
        Poured { price, fed: price.milliwatts.min(power), ..self.closed() }
    }

    /// The same, with the last stretch counted, which is fed in full.
    fn closed(self) -> Self {
        Poured { ips: self.ips + u128::from(self.price.ips), ..self }
    }

    /// Instructions per second, as so many for this many milliwatts of the last stretch.
    fn ratio(&self) -> (u128, u128) {
        let all = u128::from(self.price.milliwatts);
        (self.ips * all + u128::from(self.price.ips) * u128::from(self.fed), all)
    }

    /// Whether jobs get less done than there.
    pub(in crate::policy::ppartition) fn is_less_than(&self, other: &Poured) -> bool {
        let ((own, own_whole), (theirs, their_whole)) = (self.ratio(), other.ratio());
        own * their_whole < theirs * own_whole
    }

    /// Whether a processor gets more done with some power than those who have it now.
    pub(in crate::policy::ppartition) fn is_worth(&self, curve: &Curve) -> bool {
        let gains = |knot: &Knot| {
            u128::from(knot.ips.ips()) * u128::from(self.price.milliwatts)
                > u128::from(self.price.ips) * u128::from(knot.power.milliwatts())
        };
        let slowest = Knot { power: curve.least(), ips: curve.slowest() };
        gains(&slowest) || curve.hull().iter().any(|segment| gains(&segment.to))
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
            member.team.nodes().iter().map(|node| &curves[node.0 as usize])
        });
        Poured::of(busy.chain(others.iter().copied()), power)
    }

    /// Divides all power anew on the processors that are busy. What each job is entitled to stays as it is: by that
    /// others are let in.
    pub(in crate::policy::ppartition) fn divide_anew(&mut self, varied: &Varied, power: Watts) {
        let mut anew = self.clone();
        anew.members.values_mut().for_each(|member| member.go_to_least(varied));
        let free = power.saturating_sub(anew.power());
        anew.pour(varied, free);
        for (own, divided) in self.members.values_mut().zip(anew.members.into_values()) {
            own.instead = Some(divided.wanted);
        }
    }
}

impl Member {
    fn go_to_least(&mut self, varied: &Varied) {
        let levels = self.team.crew().at_least(varied.kin(self.application));
        self.budget = self.team.crew().total(&levels);
        self.wanted = Wanted::by_run(levels, self.budget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variation::Ips;

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
            let poured = Poured::of(both, Watts::from_watts(watts))?;
            let (ips, whole) = poured.ratio();
            let price = poured.price.ips as f64 / (poured.price.milliwatts as f64 / 1000.0);
            Some((ips as f64 / whole as f64, price))
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
        let price = Price { ips: 20, milliwatts: 10_000 };
        let at_two = Poured { ips: 0, fed: 0, price };
        assert!(at_two.is_worth(&curve(&[(50, 101)])));
        assert!(!at_two.is_worth(&curve(&[(50, 100)])));
        assert!(at_two.is_worth(&curve(&[(50, 90), (60, 121)])));
        assert!(!at_two.is_worth(&curve(&[(50, 90), (60, 120)])));
    }

    /// One gains 1 for 3 W, and another the same twice. No rounding makes 30 of 90 W more or less than 10.
    #[test]
    fn equals_are_equal() {
        let short = curve(&[(50, 100), (53, 101)]);
        let long = curve(&[(50, 100), (140, 130)]);
        let of = |curves: &[&Curve], watts: u32| {
            Poured::of(curves.iter().copied(), Watts::from_watts(watts)).unwrap()
        };
        let (one, other) = (of(&[&long], 53), of(&[&short], 53));
        assert!(!one.is_less_than(&other) && !other.is_less_than(&one));
        assert!(of(&[&long], 52).is_less_than(&other));
        // At a third for each watt, 60 W have to bring more than 20.
        assert!(!one.is_worth(&curve(&[(60, 20)])));
        assert!(one.is_worth(&curve(&[(60, 21)])));
    }
}
