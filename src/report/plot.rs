//! Plots in text, which fit a terminal, a pipe and an e-mail.

use std::fmt::Write;

mod axis;
mod boxes;

use axis::is_plottable;
pub(super) use axis::{Axis, Ends};
pub(crate) use boxes::{Spread, boxes};

/// The columns a plot takes at most; a terminal has 80.
const WIDTH: usize = 72;
/// The lines its values are spread over.
const HEIGHT: usize = 11;

/// A point of a plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// How far to the right.
    pub(crate) x: f64,
    /// How far up.
    pub(crate) y: f64,
    /// What it looks like.
    pub(crate) mark: char,
}

/// Draws lines through points, each line's points from left to right. What goes up is named above
/// the plot, what goes to the right below it. Points that are no numbers are left out.
pub(crate) fn plot(up: &str, right: &str, lines: &[Vec<Point>]) -> String {
    let is_shown = |point: &&Point| is_plottable(point.x) && is_plottable(point.y);
    let points = || lines.iter().flatten().filter(is_shown);
    let x_axis = Axis::over(points().map(|point| point.x), 8, Ends::Values);
    let y_axis = Axis::over(points().map(|point| point.y), 4, Ends::Round);
    let (Some(x_axis), Some(y_axis)) = (x_axis, y_axis) else {
        return format!("{up}: nothing to plot\n");
    };
    let ticks = y_axis.ticks();
    let margin = ticks.iter().map(|(_, text)| text.len()).max().unwrap_or(0) + 2;
    let columns = WIDTH.saturating_sub(margin + 2).max(8);

    let mut canvas = Canvas::new(columns, HEIGHT);
    let place =
        |point: &Point| (x_axis.cell(point.x, columns), HEIGHT - 1 - y_axis.cell(point.y, HEIGHT));
    for line in lines {
        let mut shown: Vec<&Point> = line.iter().filter(is_shown).collect();
        shown.sort_by(|a, b| a.x.total_cmp(&b.x));
        for pair in shown.windows(2) {
            canvas.join(place(pair[0]), place(pair[1]));
        }
    }
    // Marks come last, so that no line runs over them.
    for point in points() {
        canvas.put(place(point), point.mark);
    }

    let mut text = format!("{:margin$}{up}\n", "");
    for (number, row) in canvas.rows().enumerate() {
        let at = |tick: &&(f64, String)| HEIGHT - 1 - y_axis.cell(tick.0, HEIGHT) == number;
        let (label, edge) = match ticks.iter().find(at) {
            Some((_, label)) => (label.as_str(), '┤'),
            None => ("", '│'),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{label:>margin$} {edge}{row}");
    }
    text += &baseline(&x_axis, margin, columns, right);
    trimmed(&text)
}

/// The axis below a plot, its numbers, and what they are.
fn baseline(axis: &Axis, margin: usize, columns: usize, name: &str) -> String {
    let mut edge = vec!['─'; columns];
    let mut numbers = vec![' '; margin + columns + 8];
    let mut free_from = 0;
    for (tick, label) in axis.ticks() {
        let cell = axis.cell(tick, columns);
        edge[cell] = '┬';
        // Below its tick, unless the number before it is in the way.
        let start = (margin + 2 + cell).saturating_sub(label.len() / 2);
        if start >= free_from && start + label.len() <= numbers.len() {
            for (offset, digit) in label.chars().enumerate() {
                numbers[start + offset] = digit;
            }
            free_from = start + label.len() + 1;
        }
    }
    let (edge, numbers) = (String::from_iter(edge), String::from_iter(numbers));
    let below = margin + 2 + columns / 2 + name.chars().count() / 2;
    format!("{:margin$} └{edge}\n{numbers}\n{name:>below$}\n", "")
}

/// Without the blanks at the ends of its lines.
fn trimmed(text: &str) -> String {
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Cells to draw on, from the top left.
struct Canvas {
    columns: usize,
    cells: Vec<char>,
}

impl Canvas {
    fn new(columns: usize, rows: usize) -> Self {
        Canvas { columns, cells: vec![' '; columns * rows] }
    }

    fn put(&mut self, (column, row): (usize, usize), mark: char) {
        if let Some(cell) = self.cells.get_mut(row * self.columns + column) {
            *cell = mark;
        }
    }

    /// Dots from one cell to another.
    fn join(&mut self, from: (usize, usize), to: (usize, usize)) {
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1));
        for step in 1..steps {
            let between =
                |from: usize, to: usize| (from * (steps - step) + to * step + steps / 2) / steps;
            self.put((between(from.0, to.0), between(from.1, to.1)), '·');
        }
    }

    fn rows(&self) -> impl Iterator<Item = String> {
        self.cells.chunks(self.columns).map(String::from_iter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[(f64, f64)]) -> Vec<Point> {
        values.iter().map(|&(x, y)| Point { x, y, mark: '●' }).collect()
    }

    #[test]
    fn a_plot_is_drawn() {
        let mut line = points(&[(115.0, 30.0), (51.0, 60.0), (80.0, 42.0), (95.0, f64::NAN)]);
        line[0].mark = '○';
        let text = plot("time (s)", "cap (W)", &[line]);
        assert_eq!(
            text,
            "    time (s)
  60 ┤●··
     │   ·····
     │        ·····
  50 ┤             ····
     │                 ·····
     │                      ·····
     │                           ··●····
  40 ┤                                  ·········
     │                                           ·········
     │                                                    ·········
  30 ┤                                                             ····○
     └─────────┬─────────┬─────────┬──────────┬─────────┬─────────┬─────
              60        70        80         90        100       110
                                   cap (W)
",
            "{text}"
        );
    }

    #[test]
    fn any_plot_fits() {
        let wide = points(&[(-1e14, -1e9), (1e14, 1e9), (0.0, 1e-9)]);
        for lines in [vec![wide], vec![points(&[(1.0, 1.0)])], vec![points(&[(0.1, 1e-12); 3])]] {
            let text = plot("up", "right", &lines);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(text.contains('●'), "{text}");
        }
        assert_eq!(plot("up", "right", &[]), "up: nothing to plot\n");
        assert_eq!(plot("up", "right", &[points(&[(f64::NAN, 1.0)])]), "up: nothing to plot\n");
    }
}
