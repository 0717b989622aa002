//! A convex polygon in the plane, to be cut down.

/// A convex polygon: its corners in order, counter-clockwise; without corners if nothing is left.
#[derive(Clone, Debug, Default)]
pub(super) struct Polygon {
    corners: Vec<[f64; 2]>,
    cut: Vec<[f64; 2]>,
}

impl Polygon {
    /// The box between two corners.
    pub(super) fn set_box(&mut self, low: [f64; 2], high: [f64; 2]) {
        self.corners.clear();
        self.corners.extend([low, [high[0], low[1]], high, [low[0], high[1]]]);
    }

    pub(super) fn corners(&self) -> &[[f64; 2]] {
        &self.corners
    }

    /// The centre of gravity; of a polygon without area the mean of its corners.
    pub(super) fn centre(&self) -> [f64; 2] {
        let [first, rest @ ..] = &self.corners[..] else { return [0.0; 2] };
        let (mut area, mut sum) = (0.0, [0.0; 2]);
        // Relative to the first corner: far from zero a small polygon would lose its digits.
        for pair in rest.windows(2) {
            let a = [pair[0][0] - first[0], pair[0][1] - first[1]];
            let b = [pair[1][0] - first[0], pair[1][1] - first[1]];
            let cross = a[0] * b[1] - a[1] * b[0];
            area += cross;
            sum[0] += cross * (a[0] + b[0]);
            sum[1] += cross * (a[1] + b[1]);
        }
        let centre = [first[0] + sum[0] / (3.0 * area), first[1] + sum[1] / (3.0 * area)];
        if area > 0.0 && centre.iter().all(|x| x.is_finite()) {
            return centre;
        }
        let count = self.corners.len() as f64;
        [0, 1].map(|i| self.corners.iter().map(|corner| corner[i]).sum::<f64>() / count)
    }

    /// Keeps the part where `slope · (x − through)` is at most `most`.
    pub(super) fn cut(&mut self, slope: [f64; 2], through: [f64; 2], most: f64) {
        let height =
            |x: &[f64; 2]| slope[0] * (x[0] - through[0]) + slope[1] * (x[1] - through[1]) - most;
        self.cut.clear();
        let Some(mut last) = self.corners.last().copied() else { return };
        let mut last_height = height(&last);
        for corner in &self.corners {
            let corner_height = height(corner);
            if (corner_height > 0.0) != (last_height > 0.0) {
                let share = last_height / (last_height - corner_height);
                let on_way = |i: usize| last[i] + share * (corner[i] - last[i]);
                self.cut.push([on_way(0), on_way(1)]);
            }
            if corner_height <= 0.0 {
                self.cut.push(*corner);
            }
            (last, last_height) = (*corner, corner_height);
        }
        std::mem::swap(&mut self.corners, &mut self.cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_is_halved() {
        let mut polygon = Polygon::default();
        polygon.set_box([1.0, 2.0], [3.0, 4.0]);
        assert_eq!(polygon.centre(), [2.0, 3.0]);
        // What is left of its middle: a box from 1 to 2 and 2 to 4.
        polygon.cut([1.0, 0.0], [2.0, 3.0], 0.0);
        assert_eq!(polygon.centre(), [1.5, 3.0]);
        // Below the diagonal of that: the triangle (1,2), (2,2), (2,4).
        polygon.cut([-2.0, 1.0], [1.0, 2.0], 0.0);
        let centre = polygon.centre();
        assert!((centre[0] - 5.0 / 3.0).abs() < 1e-12 && (centre[1] - 8.0 / 3.0).abs() < 1e-12);
        polygon.cut([1.0, 0.0], [0.0, 0.0], 0.0);
        assert!(polygon.corners().is_empty());
    }

    #[test]
    fn a_polygon_without_area_has_a_centre() {
        let mut polygon = Polygon::default();
        polygon.set_box([0.0, 1.0], [0.0, 3.0]);
        assert_eq!(polygon.centre(), [0.0, 2.0]);
    }
}
