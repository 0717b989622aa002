//! Tables that fit the terminal: if necessary, columns of text are cut.

use std::io::{IsTerminal, stdout};

use crate::report::{Side, columns};

/// The smallest width of a column of text.
const NARROWEST: usize = 6;

/// The width of the terminal; `None` if standard output is not a terminal.
pub(super) fn terminal_width() -> Option<usize> {
    let out = stdout();
    if !out.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&out).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// Formats rows under their headings. If the table is too wide, the widest column of text is cut
/// until it fits, or all are at the smallest width.
pub(super) fn fitted(
    headings: &[(&str, Side)],
    mut rows: Vec<Vec<String>>,
    width: Option<usize>,
) -> String {
    let Some(width) = width else { return columns(headings, &rows) };
    let mut widths: Vec<usize> =
        headings.iter().map(|(heading, _)| heading.chars().count()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    // Two blanks before each column.
    let needed = |widths: &[usize]| widths.iter().map(|width| width + 2).sum::<usize>();
    while needed(&widths) > width {
        let words = (0..headings.len()).filter(|&place| headings[place].1 == Side::Left);
        // Of equally wide columns, the last is cut first.
        match words.max_by_key(|&place| widths[place]).filter(|&place| widths[place] > NARROWEST) {
            Some(widest) => widths[widest] -= 1,
            None => break,
        }
    }
    for row in &mut rows {
        for (cell, width) in row.iter_mut().zip(&widths) {
            *cell = cut(cell, *width);
        }
    }
    columns(headings, &rows)
}

/// Cuts a text to a width.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_give_way_and_numbers_do_not() {
        let headings = [("JOB", Side::Right), ("NAME", Side::Left), ("REASON", Side::Left)];
        let rows =
            vec![vec!["1000".to_owned(), "a_long_name".to_owned(), "for its turn".to_owned()]];
        let whole = fitted(&headings, rows.clone(), None);
        assert_eq!(whole, "   JOB  NAME         REASON\n  1000  a_long_name  for its turn\n");
        assert_eq!(fitted(&headings, rows.clone(), Some(33)), whole);
        // 2+4 + 2+9 + 2+8 = 27.
        assert_eq!(
            fitted(&headings, rows.clone(), Some(27)),
            "   JOB  NAME       REASON\n  1000  a_long_n…  for its…\n"
        );
        // Narrower than it can be: as narrow as it can be.
        assert_eq!(
            fitted(&headings, rows, Some(5)),
            "   JOB  NAME    REASON\n  1000  a_lon…  for i…\n"
        );
    }
}
