//! Entries that have the same moves are one class: which of them moves makes no difference, only
//! how many do.
//!
//! Without this, thirty jobs of one kind would be searched in every order.

use std::cmp::Ordering;
use std::ops::Range;

use super::loss::Move;

/// A move that any entry of a class can make.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kind {
    pub(super) class: u32,
    /// Which move of the class.
    pub(super) place: u32,
    pub(super) loss: f64,
    pub(super) takes: [i64; 2],
}

/// Moves by class.
#[derive(Default)]
pub(super) struct Classes {
    /// Where the moves of each entry that has some are; equal ones side by side.
    rows: Vec<Range<usize>>,
    /// The same with the least loss of each, to be sorted.
    by_loss: Vec<(f64, Range<usize>)>,
    /// The rows of each class.
    classes: Vec<Range<usize>>,
}

impl Classes {
    /// Finds the classes among moves that are sorted by entry.
    pub(super) fn find(&mut self, moves: &[Move]) {
        self.rows.clear();
        self.classes.clear();
        self.by_loss.clear();
        let mut begin = 0;
        for end in 1..=moves.len() {
            if end == moves.len() || moves[end].entry != moves[begin].entry {
                let losses = moves[begin..end].iter().map(|step| step.loss);
                self.by_loss.push((losses.fold(f64::INFINITY, f64::min), begin..end));
                begin = end;
            }
        }
        // By least loss first, so that classes come in the order in which they matter.
        self.by_loss.sort_unstable_by(|(least, a), (other, b)| {
            let content = || compare_content(&moves[a.clone()], &moves[b.clone()]);
            least.total_cmp(other).then_with(content).then(a.start.cmp(&b.start))
        });
        self.rows.extend(self.by_loss.drain(..).map(|(_, row)| row));
        let mut begin = 0;
        for end in 1..=self.rows.len() {
            let differs = |row: &Range<usize>| {
                compare_content(&moves[row.clone()], &moves[self.rows[begin].clone()])
            };
            if self.rows.get(end).is_none_or(|row| differs(row) != Ordering::Equal) {
                self.classes.push(begin..end);
                begin = end;
            }
        }
    }

    /// How many classes there are.
    pub(super) fn len(&self) -> usize {
        self.classes.len()
    }

    /// How many entries a class has.
    pub(super) fn size(&self, class: u32) -> u32 {
        self.classes[class as usize].len() as u32
    }

    /// The moves that any entry of the class can make.
    pub(super) fn kinds<'a>(
        &'a self,
        class: u32,
        moves: &'a [Move],
    ) -> impl Iterator<Item = Kind> + 'a {
        let first = self.rows[self.classes[class as usize].start].clone();
        moves[first].iter().enumerate().map(move |(place, step)| Kind {
            class,
            place: place as u32,
            loss: step.loss,
            takes: step.takes,
        })
    }

    /// The move of this kind by one of the class's entries.
    pub(super) fn step(&self, kind: Kind, member: usize, moves: &[Move]) -> Move {
        let row = &self.rows[self.classes[kind.class as usize].start + member];
        moves[row.start + kind.place as usize]
    }
}

fn compare_content(a: &[Move], b: &[Move]) -> Ordering {
    let pairs = a.iter().zip(b);
    let first_difference = pairs
        .map(|(a, b)| a.takes.cmp(&b.takes).then(a.loss.total_cmp(&b.loss)))
        .find(|order| order.is_ne());
    first_difference.unwrap_or(Ordering::Equal).then(a.len().cmp(&b.len()))
}
