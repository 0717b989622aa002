//! A table of numbers as colours: the higher, the darker.

use super::svg::{Anchor, Svg};

/// Values by row and column.
#[derive(Clone, Debug)]
pub(crate) struct HeatMap<'a> {
    /// What it shows.
    pub(crate) title: &'a str,
    /// What changes from left to right.
    pub(crate) across: &'a str,
    /// What changes from the bottom up.
    pub(crate) up: &'a str,
    /// The names of the columns.
    pub(crate) columns: &'a [String],
    /// The names of the rows, the lowest first.
    pub(crate) rows: &'a [String],
    /// The values, by row and column.
    pub(crate) values: Vec<Vec<Option<f64>>>,
    /// A mark beside each value, if any.
    pub(crate) marks: Vec<Vec<String>>,
    /// What the marks mean.
    pub(crate) key: &'a str,
}

const LEFT: f64 = 90.0;
const TOP: f64 = 64.0;
const CELL: (f64, f64) = (110.0, 36.0);
/// From the lowest value to the highest, in red, green and blue.
const COLOURS: [[f64; 3]; 2] = [[235.0, 243.0, 250.0], [0.0, 114.0, 178.0]];

/// A picture of it.
pub(crate) fn heat_map(map: &HeatMap<'_>) -> String {
    let (columns, rows) = (map.columns.len() as f64, map.rows.len() as f64);
    let (width, height) = (LEFT + columns * CELL.0 + 30.0, TOP + rows * CELL.1 + 76.0);
    let mut svg = Svg::new(width.max(560.0), height);
    svg.text((20.0, 26.0), Anchor::Start, "title", map.title);
    svg.text((20.0, 46.0), Anchor::Start, "soft", map.key);
    let values = || map.values.iter().flatten().flatten().copied();
    let (low, high) =
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let bottom = TOP + rows * CELL.1;
    for (row, name) in map.rows.iter().enumerate() {
        let y = bottom - (row as f64 + 1.0) * CELL.1;
        svg.text((LEFT - 10.0, y + CELL.1 / 2.0 + 4.0), Anchor::End, "", name);
        for (column, value) in map.values[row].iter().enumerate() {
            let x = LEFT + column as f64 * CELL.0;
            let share =
                value.map(|value| if high > low { (value - low) / (high - low) } else { 1.0 });
            let (fill, class) = match share {
                Some(share) => (mixed(share), if share > 0.55 { "light" } else { "" }),
                None => ("#f2f2f2".to_owned(), "soft"),
            };
            svg.rectangle((x, y), (CELL.0 - 2.0, CELL.1 - 2.0), &fill);
            let number = value.map_or("–".to_owned(), |value| format!("{value:.1}"));
            let text = format!("{number} {}", map.marks[row][column]);
            svg.text(
                (x + CELL.0 / 2.0, y + CELL.1 / 2.0 + 4.0),
                Anchor::Middle,
                class,
                text.trim(),
            );
        }
    }
    for (column, name) in map.columns.iter().enumerate() {
        let x = LEFT + (column as f64 + 0.5) * CELL.0;
        svg.text((x, bottom + 18.0), Anchor::Middle, "", name);
    }
    svg.text((LEFT + columns * CELL.0 / 2.0, bottom + 44.0), Anchor::Middle, "soft", map.across);
    svg.upright((24.0, (TOP + bottom) / 2.0), map.up);
    svg.finish(map.title)
}

/// A colour between the two ends.
fn mixed(share: f64) -> String {
    let part =
        |at: usize| (COLOURS[0][at] + share * (COLOURS[1][at] - COLOURS[0][at])).round() as u8;
    format!("#{:02x}{:02x}{:02x}", part(0), part(1), part(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_cell_and_the_highest_is_the_darkest() {
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let svg = heat_map(&HeatMap {
            title: "work",
            across: "budget",
            up: "nodes",
            columns: &names(&["1 kW", "2 kW"]),
            rows: &names(&["10", "20"]),
            values: vec![vec![Some(1.0), Some(2.0)], vec![None, Some(3.0)]],
            marks: vec![names(&["", "◆"]), names(&["", "★"])],
            key: "",
        });
        // The background, and four cells.
        assert_eq!(svg.matches("<rect").count(), 5);
        assert!(
            svg.contains("#0072b2") && svg.contains("#ebf3fa") && svg.contains("3.0 ★"),
            "{svg}"
        );
    }
}
