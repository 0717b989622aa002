//! Classes whose moves take the same nodes and watts, and differ in what they lose, are one group.
//!
//! Jobs that may run on the same node counts under the same caps make such groups. Which of them
//! move is decided within the group, by loss alone: its combinations are far fewer than those of
//! its classes one by one. Groups are then dealt out to the lists that are joined in the end.

use std::cmp::Ordering;
use std::ops::Range;

use super::classes::{Classes, Kind};
use super::loss::Move;

/// Classes by what their moves take.
#[derive(Default)]
pub(super) struct Groups {
    kinds: Vec<Kind>,
    /// The kinds of each class, and how many entries it has. Those of a group are side by side.
    classes: Vec<(Range<usize>, u32)>,
    groups: Vec<Group>,
}

/// Classes, and what is known of their combinations beforehand.
struct Group {
    classes: Range<usize>,
    least_loss: f64,
    /// About how many times as long it makes a list.
    breadth: f64,
    /// How often all the watts that it takes can be halved.
    coarseness: u32,
}

/// The first list is to have about this many combinations at least, ...
const FEW: f64 = 4.0;
/// ... and no group that makes it longer than so many times.
const NOT_FEW: f64 = 40.0;
/// Of combinations that lose all they may, about one in e to the power of this is within the loss
/// that the rest of its list leaves to it.
const STEEPNESS: f64 = 4.0;

impl Groups {
    /// Finds the groups of the moves that lose at most `most`.
    pub(super) fn find(&mut self, classes: &Classes, moves: &[Move], most: f64) {
        self.kinds.clear();
        self.classes.clear();
        self.groups.clear();
        for class in 0..classes.len() as u32 {
            let begin = self.kinds.len();
            self.kinds.extend(classes.kinds(class, moves).filter(|kind| kind.loss <= most));
            if self.kinds.len() > begin {
                self.classes.push((begin..self.kinds.len(), classes.size(class)));
            }
        }
        let takes = |row: &Range<usize>| self.kinds[row.clone()].iter().map(|kind| kind.takes);
        // Classes come by their least loss, and a stable sort leaves them so within a group.
        self.classes.sort_by(|(a, _), (b, _)| takes(a).cmp(takes(b)));
        let mut begin = 0;
        for end in 1..=self.classes.len() {
            let first = &self.classes[begin].0;
            let is_other = |row: &Range<usize>| takes(row).cmp(takes(first)) != Ordering::Equal;
            if self.classes.get(end).is_none_or(|(row, _)| is_other(row)) {
                let group = self.weigh(begin..end, most);
                self.groups.push(group);
                begin = end;
            }
        }
        self.groups.sort_by(|a, b| a.least_loss.total_cmp(&b.least_loss));
    }

    fn weigh(&self, classes: Range<usize>, most: f64) -> Group {
        let kinds = |class: usize| &self.kinds[self.classes[class].0.clone()];
        let least_loss =
            |class: usize| kinds(class).iter().map(|kind| kind.loss).fold(f64::INFINITY, f64::min);
        let (mut lost, mut further) = (0.0, 0.0);
        for class in classes.clone() {
            let loss = least_loss(class);
            for _ in 0..self.classes[class].1 {
                lost += loss;
                if lost > most {
                    break;
                }
                further += libm::exp(-STEEPNESS * lost / most.max(f64::MIN_POSITIVE));
            }
        }
        let first = kinds(classes.start);
        let halvings = first.iter().map(|kind| kind.takes[1].trailing_zeros());
        Group {
            least_loss: least_loss(classes.start),
            breadth: 1.0 + further * first.len() as f64,
            coarseness: halvings.min().unwrap_or(0),
            classes,
        }
    }

    /// Deals the groups out to three lists: a short one of moves that lose little, and two that
    /// are about as long as each other. The groups of each come by their least loss.
    ///
    /// Of the two, one gets what takes watts in small steps and the other what takes them in large
    /// ones, so that many combinations of a list take the same. Node counts are often powers of
    /// two.
    pub(super) fn deal(&self) -> [Vec<usize>; 3] {
        let (mut few, mut rest) = (Vec::new(), Vec::new());
        let mut length = 1.0;
        for (place, group) in self.groups.iter().enumerate() {
            if length < FEW && group.breadth <= NOT_FEW {
                length *= group.breadth;
                few.push(place);
            } else {
                rest.push(place);
            }
        }
        rest.sort_by_key(|place| self.groups[*place].coarseness);
        let weight = |place: &usize| libm::log(self.groups[*place].breadth);
        let half = rest.iter().map(weight).sum::<f64>() / 2.0;
        let mut sum = 0.0;
        let fine = rest.iter().take_while(|place| {
            sum += weight(place);
            sum - weight(place) / 2.0 <= half
        });
        let fine = fine.count();
        let mut coarse = rest.split_off(fine);
        rest.sort_unstable();
        coarse.sort_unstable();
        [few, rest, coarse]
    }

    /// The classes of a group: their moves, and how many entries they have.
    pub(super) fn classes(&self, group: usize) -> impl Iterator<Item = (&[Kind], u32)> {
        let classes = &self.classes[self.groups[group].classes.clone()];
        classes.iter().map(|(row, size)| (&self.kinds[row.clone()], *size))
    }
}
