//! The one processor whose figures are published, between and below them.

use super::Shape;

/// Cap and draw in watts, and billions of instructions per second: Table 2 of the paper.
const ROWS: [(f64, f64, f64); 4] =
    [(60.0, 59.99, 46.43), (80.0, 79.88, 64.83), (100.0, 99.43, 76.33), (120.0, 104.66, 79.13)];

/// What it draws without a cap.
pub(super) const UNCAPPED_WATTS: f64 = ROWS[ROWS.len() - 1].1;
/// How fast it then is.
pub(super) const PEAK_GIPS: f64 = ROWS[ROWS.len() - 1].2;

/// What it draws under a cap: between two rows in a straight line, below the first in proportion.
pub(super) fn drawn(cap: f64) -> f64 {
    let (lowest, drawn, _) = ROWS[0];
    let points = ROWS.map(|(cap, drawn, _)| (cap, drawn));
    if cap < lowest { drawn * (cap / lowest) } else { between(&points, cap) }
}

/// How fast it is when it draws so much.
pub(super) fn gips(watts: f64, shape: Shape) -> f64 {
    let points = ROWS.map(|(_, watts, gips)| (watts, gips));
    let [(lowest, slowest), (next, faster), ..] = points;
    if watts >= lowest {
        return between(&points, watts);
    }
    let share = watts / lowest;
    match shape {
        Shape::Continued => slowest + (faster - slowest) / (next - lowest) * (watts - lowest),
        Shape::Cubic => slowest * share * share * share,
    }
}

/// The straight line between the points around `x`; beyond the last, its height.
fn between(points: &[(f64, f64)], x: f64) -> f64 {
    let mut pairs = points.windows(2).map(|pair| (pair[0], pair[1]));
    match pairs.find(|(_, to)| x < to.0) {
        Some((from, to)) => from.1 + (to.1 - from.1) * ((x - from.0) / (to.0 - from.0)),
        None => points[points.len() - 1].1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_out_by_hand() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        for (cap, watts, gips_there) in ROWS {
            assert!(near(drawn(cap), watts));
            assert!(Shape::ALL.iter().all(|shape| near(gips(watts, *shape), gips_there)));
        }
        // Half-way between two rows; half the lowest cap; a cap that limits nothing.
        assert!(near(drawn(70.0), (59.99 + 79.88) / 2.0));
        assert!(near(drawn(30.0), 59.99 / 2.0));
        assert!(near(drawn(500.0), 104.66));
        assert!(near(gips((79.88 + 99.43) / 2.0, Shape::Cubic), (64.83 + 76.33) / 2.0));
        // Half the watts: an eighth. Continued: 19.89 W lower the table falls by 18.4 once more.
        assert!(near(gips(59.99 / 2.0, Shape::Cubic), 46.43 / 8.0));
        assert!(near(gips(40.10, Shape::Continued), 28.03));
    }
}
