//! Figures as Markdown.

/// A Markdown table: the first column to the left, the others to the right.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(head: &str) -> Self {
        Table { rows: vec![head.split(" | ").map(str::to_owned).collect()] }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.rows[0].len(), "a cell for every column");
        self.rows.push(cells);
    }

    pub(super) fn print(&self) {
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        for (i, row) in self.rows.iter().enumerate() {
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => print!("| {cell:<width$} |"),
                    _ => print!(" {cell:>width$} |"),
                }
            }
            println!();
            if i == 0 {
                print!("|{}|", "-".repeat(widths[0] + 2));
                widths[1..].iter().for_each(|width| print!("{}:|", "-".repeat(width + 1)));
                println!();
            }
        }
    }
}

pub(super) fn speed_goal(speed: f64, goal: f64) -> [String; 2] {
    [format!("≥ {} jobs/s", grouped(goal as u64)), met(speed >= goal)]
}

pub(super) fn met(is_met: bool) -> String {
    if is_met { "yes" } else { "NO" }.to_owned()
}

pub(super) fn nanos(seconds: f64, jobs: u32) -> String {
    format!("{:.1}", seconds * 1e9 / f64::from(jobs))
}

/// A number with a gap after every three digits.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8(groups.join(&b' ')).expect("digits")
}
