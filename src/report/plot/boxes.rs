//! Boxes: how values are spread, one line for each set of them.

use std::fmt::Write;

use super::axis::{Axis, Ends};
use super::{WIDTH, baseline, trimmed};

/// How the values of a set are spread.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spread {
    /// What they are.
    pub(crate) name: String,
    /// The smallest, the lower quartile, the median, the upper quartile and the largest.
    pub(crate) values: [f64; 5],
}

/// Draws a line for each set: whiskers from the smallest value to the largest, a box between the
/// quartiles, a bar at the median. What the values are is named below. Where zero is not at an
/// edge, a thin line marks it.
pub(crate) fn boxes(right: &str, sets: &[Spread]) -> String {
    let values = sets.iter().flat_map(|set| set.values);
    let Some(axis) = Axis::over(values, 8, Ends::Round) else {
        return format!("{right}: nothing to plot\n");
    };
    let margin = sets.iter().map(|set| set.name.chars().count()).max().unwrap_or(0) + 2;
    let columns = WIDTH.saturating_sub(margin + 2).max(8);
    let mut text = String::new();
    for set in sets {
        let mut cells = vec![' '; columns];
        if axis.covers(0.0) {
            cells[axis.cell(0.0, columns)] = '┆';
        }
        let [least, lower, median, upper, most] = set.values.map(|value| axis.cell(value, columns));
        // From the outside in: what matters more is drawn over what matters less.
        cells[least..=most.max(least)].fill('─');
        cells[least] = '├';
        cells[most] = '┤';
        cells[lower..=upper.max(lower)].fill('▒');
        cells[median] = '┃';
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:>margin$} │{}", set.name, String::from_iter(cells));
    }
    text += &baseline(&axis, margin, columns, right);
    trimmed(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_drawn() {
        let set = |name: &str, values| Spread { name: name.to_owned(), values };
        let sets = [
            set("time", [-20.0, -5.0, 1.0, 6.0, 35.0]),
            set("power", [0.0, 0.0, 0.0, 0.0, 0.0]),
            set("slack", [10.0, 11.0, 12.0, 13.0, 14.0]),
        ];
        let text = boxes("error (%)", &sets);
        assert_eq!(
            text,
            "   time │├───────────────▒▒▒▒▒▒┃▒▒▒▒▒─────────────────────────────┤
  power │                     ┃
  slack │                     ┆         ├▒┃▒┤
        └┬─────────┬──────────┬─────────┬─────────┬──────────┬─────────┬
        -20       -10         0        10        20         30        40
                                   error (%)
",
            "{text}"
        );
    }

    #[test]
    fn values_that_are_none_do_no_harm() {
        assert_eq!(boxes("error", &[]), "error: nothing to plot\n");
        let odd = Spread { name: "odd".to_owned(), values: [f64::NAN, 3.0, 2.0, 1.0, f64::NAN] };
        assert!(boxes("error", &[odd]).contains('┃'));
    }
}
