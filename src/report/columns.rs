//! Rows in columns, each as wide as it needs to be.

/// On which side of its column a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Words stand at the left of their column.
    Left,
    /// Numbers stand at the right of their column.
    Right,
}

/// Rows under their headings.
pub(crate) fn columns(headings: &[(&str, Side)], rows: &[Vec<String>]) -> String {
    let width = |place: usize, heading: &str| {
        let cells = rows.iter().filter_map(|row| row.get(place));
        let widest = cells.map(|cell| cell.chars().count()).max();
        widest.unwrap_or(0).max(heading.chars().count())
    };
    let widths: Vec<usize> =
        headings.iter().enumerate().map(|(place, (heading, _))| width(place, heading)).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for ((cell, (_, side)), width) in cells.zip(headings).zip(&widths) {
            line += &match side {
                Side::Left => format!("  {cell:<width$}"),
                Side::Right => format!("  {cell:>width$}"),
            };
        }
        line.trim_end().to_owned() + "\n"
    };
    let mut text = line(&mut headings.iter().map(|(heading, _)| *heading));
    for row in rows {
        text += &line(&mut row.iter().map(String::as_str));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let rows = [["β", "1"], ["SP-MZ", "1000"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(
            columns(&[("name", Side::Left), ("rows", Side::Right), ("more", Side::Left)], &rows),
            "  name   rows  more\n  β         1\n  SP-MZ  1000\n"
        );
    }
}
