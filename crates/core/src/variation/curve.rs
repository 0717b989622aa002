//! How fast one processor runs one application, over the power it gets.
//!
//! The knots are what was measured: power that was drawn, and instructions per second. Between two
//! knots speed rises in a straight line. The curve begins at the lowest cap that can be set and
//! ends where more power makes nothing faster. Beside it stands its concave hull, the lowest curve
//! above it whose slope never rises: power can be shared out exactly along hulls, and at the knots
//! of a hull the processor really is that fast.
//!
//! Power and speed are whole numbers, and so is every comparison of slopes by which a hull is made.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::units::Watts;

/// Instructions retired per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ips(u64);

impl Ips {
    /// None at all.
    pub(crate) const ZERO: Ips = Ips(0);
    /// More than any processor: sums of it stay far from overflow.
    pub(crate) const LARGEST: Ips = Ips(10_000_000_000_000);

    /// So many instructions per second.
    pub const fn from_ips(ips: u64) -> Self {
        Ips(ips)
    }

    /// Instructions per second.
    pub const fn ips(self) -> u64 {
        self.0
    }

    /// Billions of instructions per second, for display and for ratios.
    pub fn billions(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// Billions, to the nearest million.
impl fmt::Display for Ips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} GIPS", self.billions())
    }
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Knot {
    /// What the processor draws.
    pub power: Watts,
    /// How fast it then is.
    pub ips: Ips,
}

impl Knot {
    /// More than any processor draws, a megawatt: sums of it stay far from overflow.
    pub(crate) const MOST_POWER: Watts = Watts::from_watts(1_000_000);
}

/// A stretch of a hull.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Where it begins: a knot of the curve.
    pub from: Knot,
    /// Where it ends: another.
    pub to: Knot,
    /// Instructions per second for each milliwatt, rounded as floats are.
    pub slope: f64,
}

impl Segment {
    fn new(from: Knot, to: Knot) -> Self {
        // Both differences are far below 2⁵³, so this is rounded once: a steeper segment never has
        // the smaller number.
        let slope = (to.ips.0 - from.ips.0) as f64 / (to.power - from.power).milliwatts() as f64;
        Segment { from, to, slope }
    }

    /// The power it takes.
    pub fn power(&self) -> Watts {
        self.to.power - self.from.power
    }

    /// The speed it brings.
    pub(crate) fn gain(&self) -> Ips {
        Ips(self.to.ips.0 - self.from.ips.0)
    }
}

/// Speed over power. Thousands of nodes may have the same curve, so copies are cheap and share what they hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Power and speed both rise from each to the next; there is at least one.
    knots: Arc<[Knot]>,
    /// From the first knot to the last, ever flatter; none if there is one knot.
    hull: Arc<[Segment]>,
    /// The knot at which it does most for each watt.
    most_efficient: Knot,
}

/// By the knots alone: all else follows from them.
impl Hash for Curve {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.knots.hash(state);
    }
}

/// Why points are no curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CurveError {
    /// There are none.
    #[error("a curve needs at least one point")]
    Empty,
    /// A processor that draws nothing or does nothing is not measured.
    #[error("power and speed must be above zero")]
    Zero,
    /// A number that no processor has.
    #[error("a processor draws at most {} and does at most {}", Knot::MOST_POWER, Ips::LARGEST)]
    TooLarge,
}

impl Curve {
    /// The curve through these points, in any order, from the lowest cap that can be set. A point
    /// that is no faster than another with no more power is left out: it is noise, or above what
    /// the processor can use. What is drawn below the lowest cap cannot be asked for; a processor that
    /// never draws so much is reckoned to hold it all the same.
    pub fn new(floor: Watts, mut points: Vec<Knot>) -> Result<Self, CurveError> {
        for Knot { power, ips } in &points {
            if *power == Watts::ZERO || *ips == Ips::ZERO {
                return Err(CurveError::Zero);
            }
            if *power > Knot::MOST_POWER || *ips > Ips::LARGEST {
                return Err(CurveError::TooLarge);
            }
        }
        if floor > Knot::MOST_POWER {
            return Err(CurveError::TooLarge);
        }
        points.sort_by_key(|knot| (knot.power, std::cmp::Reverse(knot.ips)));
        let mut knots: Vec<Knot> = Vec::with_capacity(points.len());
        for point in points {
            if knots.last().is_none_or(|last| point.ips > last.ips) {
                knots.push(point);
            }
        }
        if knots.is_empty() {
            return Err(CurveError::Empty);
        }
        let below = knots.partition_point(|knot| knot.power < floor);
        if let Some(last_below) = below.checked_sub(1) {
            knots[last_below] = Knot { power: floor, ips: interpolated(&knots, floor) };
            knots.drain(..last_below);
            // Where a knot lies at the lowest cap already, that is the first one.
            if knots.get(1).is_some_and(|next| next.power == floor) {
                knots.remove(0);
            }
        }
        let hull = hull(&knots);
        let better = |best: Knot, knot: &Knot| {
            let more = times(knot.ips, best.power) > times(best.ips, knot.power);
            if more { *knot } else { best }
        };
        let most_efficient = knots.iter().fold(knots[0], better);
        Ok(Curve { knots: knots.into(), hull: hull.into(), most_efficient })
    }

    /// Whether it is the same curve, which copies are known to be without a look at their points.
    pub(crate) fn is_same(&self, other: &Curve) -> bool {
        Arc::ptr_eq(&self.knots, &other.knots) || self.knots == other.knots
    }

    #[inline]
    fn first(&self) -> Knot {
        self.knots[0]
    }

    #[inline]
    fn last(&self) -> Knot {
        self.knots[self.knots.len() - 1]
    }

    /// The least power it can be held at.
    #[inline]
    pub fn least(&self) -> Watts {
        self.first().power
    }

    /// What it draws without a cap: more makes nothing faster.
    #[inline]
    pub fn most(&self) -> Watts {
        self.last().power
    }

    /// How fast it is on the least power.
    #[inline]
    pub fn slowest(&self) -> Ips {
        self.first().ips
    }

    /// How fast it is without a cap.
    #[inline]
    pub fn peak(&self) -> Ips {
        self.last().ips
    }

    /// The points it goes through.
    pub fn knots(&self) -> &[Knot] {
        &self.knots
    }

    /// The stretches of its concave hull, from the steepest, which is the first, to the flattest.
    pub(crate) fn hull(&self) -> &[Segment] {
        &self.hull
    }

    /// How far the curve lies below its hull, at most, as a share of the hull: nothing if every watt
    /// more brings no more than the one before.
    pub fn deepest_dent(&self) -> f64 {
        let dent = |segment: &Segment| {
            let inside =
                |knot: &&Knot| (segment.from.power..segment.to.power).contains(&knot.power);
            let share = |knot: &Knot| {
                let along = (knot.power - segment.from.power).milliwatts() as f64;
                let hull = segment.from.ips.0 as f64 + along * segment.slope;
                (1.0 - knot.ips.0 as f64 / hull).max(0.0)
            };
            self.knots.iter().filter(inside).map(share).fold(0.0, f64::max)
        };
        self.hull.iter().map(dent).fold(0.0, f64::max)
    }

    /// How fast the processor is on so much power, rounded down; on less than the least it does not
    /// run.
    pub fn at(&self, power: Watts) -> Ips {
        if power < self.least() { Ips::ZERO } else { interpolated(&self.knots, power) }
    }

    /// The knot at which it does most for each watt; the first of several.
    pub fn most_efficient(&self) -> Knot {
        self.most_efficient
    }

    /// Which of two processors comes first: the one that does more for each watt, each where it does
    /// most; if that is the same, the one that is faster without a cap.
    pub(crate) fn by_efficiency(&self, other: &Curve) -> Ordering {
        let (own, others) = (self.most_efficient, other.most_efficient);
        let efficiency = times(others.ips, own.power).cmp(&times(own.ips, others.power));
        efficiency.then(other.peak().cmp(&self.peak()))
    }
}

/// Speed at a power that is no less than the first knot's, rounded down.
fn interpolated(knots: &[Knot], power: Watts) -> Ips {
    let after = knots.partition_point(|knot| knot.power <= power);
    match (knots.get(after.wrapping_sub(1)), knots.get(after)) {
        (Some(from), Some(to)) => {
            let (gain, along) = (to.ips.0 - from.ips.0, power - from.power);
            let whole = (to.power - from.power).milliwatts();
            // A division of 128 bits takes many times as long, and is hardly ever needed.
            let share = match gain.checked_mul(along.milliwatts()) {
                Some(product) => product / whole,
                // A part of the difference, so it fits.
                None => (times(Ips(gain), along) / u128::from(whole)) as u64,
            };
            Ips(from.ips.0 + share)
        }
        (Some(last), None) => last.ips,
        (None, _) => Ips::ZERO,
    }
}

fn times(ips: Ips, power: Watts) -> u128 {
    u128::from(ips.0) * u128::from(power.milliwatts())
}

/// The concave hull: a knot stays if the curve bends down at it.
fn hull(knots: &[Knot]) -> Vec<Segment> {
    let mut corners: Vec<Knot> = Vec::with_capacity(knots.len());
    for knot in knots {
        while let [.., before, last] = corners[..]
            && !bends_down(before, last, *knot)
        {
            corners.pop();
        }
        corners.push(*knot);
    }
    corners.windows(2).map(|pair| Segment::new(pair[0], pair[1])).collect()
}

/// Whether the second of two stretches is no steeper than the first.
fn bends_down(a: Knot, b: Knot, c: Knot) -> bool {
    let rise = |from: Knot, to: Knot| Ips(to.ips.0 - from.ips.0);
    times(rise(a, b), c.power - b.power) >= times(rise(b, c), b.power - a.power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knot(milliwatts: u64, ips: u64) -> Knot {
        Knot { power: Watts::from_milliwatts(milliwatts), ips: Ips::from_ips(ips) }
    }

    fn curve(points: &[(u64, u64)]) -> Curve {
        let points = points.iter().map(|(power, ips)| knot(*power, *ips)).collect();
        Curve::new(Watts::from_milliwatts(50), points).unwrap()
    }

    fn corners(curve: &Curve) -> Vec<(u64, u64)> {
        let first = curve.first();
        let ends = curve.hull().iter().map(|segment| segment.to);
        std::iter::once(first)
            .chain(ends)
            .map(|knot| (knot.power.milliwatts(), knot.ips.0))
            .collect()
    }

    #[test]
    fn speed_rises_in_straight_lines() {
        let curve = curve(&[(60, 100), (50, 10), (80, 140)]);
        let at = |milliwatts| curve.at(Watts::from_milliwatts(milliwatts)).ips();
        assert_eq!([49, 50, 55, 60, 65, 80, 500].map(at), [0, 10, 55, 100, 110, 140, 140]);
        // 40 in 20 milliwatts, so 2 in one; a third of a step is rounded down.
        assert_eq!(at(61), 102);
        assert_eq!(curve.deepest_dent(), 0.0);
        assert_eq!([curve.hull()[0].slope, curve.hull()[1].slope], [9.0, 2.0]);
    }

    #[test]
    fn what_brings_nothing_is_left_out() {
        let curve = curve(&[(50, 10), (60, 30), (65, 29), (70, 40), (75, 40), (70, 38)]);
        assert_eq!(curve.knots(), [knot(50, 10), knot(60, 30), knot(70, 40)]);
        assert_eq!((curve.most().milliwatts(), curve.peak().ips()), (70, 40));
    }

    #[test]
    fn a_curve_begins_at_the_lowest_cap() {
        // At 50: a quarter of the way from 45 to 65.
        assert_eq!(curve(&[(40, 1), (45, 20), (65, 100)]).knots(), [knot(50, 40), knot(65, 100)]);
        assert_eq!(curve(&[(45, 20), (50, 30), (65, 100)]).knots(), [knot(50, 30), knot(65, 100)]);
        // Never as much as the lowest cap: it holds it and runs as fast as it can.
        assert_eq!(curve(&[(40, 20), (45, 30)]).knots(), [knot(50, 30)]);
        // Drawn above the cap: what is drawn counts.
        assert_eq!(curve(&[(52, 20), (60, 30)]).least().milliwatts(), 52);
    }

    #[test]
    fn a_hull_goes_over_dents() {
        // From 50 to 70 in a straight line the middle is 25, above 20.
        let dented = curve(&[(50, 10), (60, 20), (70, 40), (80, 45)]);
        assert!((dented.deepest_dent() - 5.0 / 25.0).abs() < 1e-9);
        assert_eq!(corners(&dented), [(50, 10), (70, 40), (80, 45)]);
        // Points on one line are corners, too: at each the processor is that fast.
        let straight = curve(&[(50, 10), (60, 20), (70, 30)]);
        assert_eq!(corners(&straight).len(), 3);
        assert_eq!(corners(&curve(&[(50, 7)])), [(50, 7)]);
    }

    #[test]
    fn the_most_efficient_knot() {
        // 0.2, 0.5 and 0.5 for each milliwatt: the first of the two.
        let curve = curve(&[(50, 10), (60, 30), (80, 40)]);
        assert_eq!(curve.most_efficient(), knot(60, 30));
    }

    #[test]
    fn points_that_are_no_curve() {
        let floor = Watts::from_milliwatts(50);
        assert_eq!(Curve::new(floor, vec![]), Err(CurveError::Empty));
        assert_eq!(Curve::new(floor, vec![knot(0, 1)]), Err(CurveError::Zero));
        assert_eq!(Curve::new(floor, vec![knot(1, 0)]), Err(CurveError::Zero));
        assert_eq!(Curve::new(floor, vec![knot(2_000_000_000, 1)]), Err(CurveError::TooLarge));
        assert_eq!(Curve::new(floor, vec![knot(1, u64::MAX)]), Err(CurveError::TooLarge));
        assert_eq!(Curve::new(Watts::UNLIMITED, vec![knot(1, 1)]), Err(CurveError::TooLarge));
    }
}
