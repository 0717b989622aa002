//! How a figure changes along one quantity, and where more of it stops paying.
//!
//! The **knee** of a curve is its point farthest from the straight line between its ends, with both
//! axes scaled to the same length (the idea of V. Satopää and others, "Finding a 'Kneedle' in a
//! Haystack", ICDCS Workshops 2011, without its smoothing: there are few points, and each was computed).
//! A curve that stays close to the line has none. What is **enough** is the least of the quantity with
//! which the figure is as good as it gets, but for a small share. Points at which fewer jobs are completed
//! than elsewhere are shown and never chosen.

use serde::Serialize;

use crate::experiment::ranking::Spread;

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct CurvePoint {
    /// How much of the quantity.
    pub(crate) at: f64,
    /// What the figure is there; the lower the better. None if no job ran.
    pub(crate) figure: Option<Spread>,
    /// Jobs that were not completed.
    pub(crate) undone: f64,
}

/// A figure along a quantity, in growing order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// The points of the curve, in the order of their budgets.
    pub(crate) points: Vec<CurvePoint>,
    /// The place of its knee, if it has one.
    pub(crate) knee: Option<usize>,
    /// The place of the first point that is good enough, if there is any to choose.
    pub(crate) enough: Option<usize>,
}

/// So far from the straight line, as a share of the axis, a knee has to be.
const BEND: f64 = 0.1;

/// So much worse than the best, as a share of it, is still good enough.
pub(crate) const TOLERANCE: f64 = 0.05;

impl Curve {
    /// A curve through these points.
    pub(crate) fn through(mut points: Vec<CurvePoint>) -> Self {
        points.sort_by(|one, other| one.at.total_cmp(&other.at));
        let mut curve = Curve { points, knee: None, enough: None };
        let comparable = curve.comparable();
        curve.knee = knee(&comparable);
        let best = comparable.iter().map(|(_, _, figure)| *figure).min_by(f64::total_cmp);
        let is_enough =
            |figure: f64| best.is_some_and(|best| figure <= best + TOLERANCE * best.abs());
        let enough = comparable.iter().find(|(_, _, figure)| is_enough(*figure));
        curve.enough = enough.map(|(place, _, _)| *place);
        curve
    }

    /// The same curve up to this much of the quantity: the places of its points stay the same.
    pub(crate) fn up_to(&self, most: f64) -> Self {
        Curve::through(self.points.iter().filter(|point| point.at <= most).copied().collect())
    }

    /// The place to choose: the knee, or what is enough if that is less or there is no knee.
    pub(crate) fn recommended(&self) -> Option<usize> {
        self.knee.into_iter().chain(self.enough).min()
    }

    /// The fewest jobs that are left undone anywhere.
    fn fewest_undone(&self) -> f64 {
        self.points.iter().map(|point| point.undone).fold(f64::INFINITY, f64::min)
    }

    /// Whether a point completes as many jobs as any.
    pub(crate) fn is_comparable(&self, place: usize) -> bool {
        let point = &self.points[place];
        point.figure.is_some() && point.undone <= self.fewest_undone()
    }

    /// Whether the figure is better at any point after this one that can be compared.
    pub(crate) fn gains_after(&self, place: usize) -> bool {
        let comparable = self.comparable();
        let here = comparable.iter().find(|point| point.0 == place).map(|point| point.2);
        let after = comparable.iter().filter(|point| point.0 > place);
        here.is_none_or(|here| after.map(|point| point.2).any(|figure| figure < here))
    }

    /// The points that can be compared: place, quantity and figure.
    fn comparable(&self) -> Vec<(usize, f64, f64)> {
        let shown = |place: usize| {
            let point = self.points[place];
            let figure = point.figure.filter(|_| self.is_comparable(place))?;
            Some((place, point.at, figure.mean))
        };
        (0..self.points.len()).filter_map(shown).collect()
    }
}

fn knee(points: &[(usize, f64, f64)]) -> Option<usize> {
    let (&(_, left, first), &(_, right, last)) = (points.first()?, points.last()?);
    let figures = || points.iter().map(|(_, _, figure)| *figure);
    let high = figures().fold(f64::NEG_INFINITY, f64::max);
    let low = figures().fold(f64::INFINITY, f64::min);
    if high <= low || right <= left {
        return None;
    }
    // How far below the line: a curve that falls steeply and then flattens is below it.
    let bend = |&(_, at, figure): &(usize, f64, f64)| {
        let line = first + (last - first) * (at - left) / (right - left);
        (line - figure) / (high - low)
    };
    let farthest = points.iter().max_by(|one, other| bend(one).total_cmp(&bend(other)))?;
    (bend(farthest) >= BEND).then_some(farthest.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(values: &[(f64, f64, f64)]) -> Curve {
        let point = |&(at, mean, undone): &(f64, f64, f64)| {
            let figure = Some(Spread { mean, deviation: None });
            CurvePoint { at, figure, undone }
        };
        Curve::through(values.iter().map(point).collect())
    }

    /// From 100 to 20 in a straight line; at 2 the curve is at 30 instead of 73.
    #[test]
    fn the_knee_is_where_it_bends() {
        let bent =
            curve(&[(4.0, 20.0, 0.0), (1.0, 100.0, 0.0), (2.0, 30.0, 0.0), (3.0, 20.5, 0.0)]);
        let places: Vec<f64> = bent.points.iter().map(|point| point.at).collect();
        assert_eq!(places, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!((bent.knee, bent.recommended()), (Some(1), Some(1)));
        // 20.5 is within 5 % of the best, which is 20.
        assert_eq!(bent.enough, Some(2));
    }

    #[test]
    fn a_line_has_no_knee() {
        let line = curve(&[(1.0, 30.0, 0.0), (2.0, 20.0, 0.0), (3.0, 10.0, 0.0)]);
        assert_eq!((line.knee, line.enough, line.recommended()), (None, Some(2), Some(2)));
        let flat = curve(&[(1.0, 10.0, 0.0), (2.0, 10.0, 0.0)]);
        assert_eq!((flat.knee, flat.enough), (None, Some(0)));
        assert_eq!((curve(&[]).knee, curve(&[]).enough), (None, None));
        // One that bends the other way has none either: there is no point from which on it pays less.
        let bulge = curve(&[(1.0, 30.0, 0.0), (2.0, 29.0, 0.0), (3.0, 10.0, 0.0)]);
        assert_eq!(bulge.knee, None);
    }

    /// The first point is the best of all, but leaves a job undone.
    #[test]
    fn who_leaves_jobs_undone_is_not_chosen() {
        let curve = curve(&[(1.0, 5.0, 1.0), (2.0, 30.0, 0.0), (3.0, 20.0, 0.0)]);
        assert_eq!(curve.enough, Some(2));
        assert!(!curve.is_comparable(0) && curve.is_comparable(1));
        let nobody = CurvePoint { at: 1.0, figure: None, undone: 3.0 };
        assert_eq!(Curve::through(vec![nobody]).enough, None);
    }
}
