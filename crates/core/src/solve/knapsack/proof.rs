//! Searching deeper and deeper until nothing better can exist.
//!
//! At depth g all combinations of moves that lose at most g together are tried: the moves are dealt
//! out to three parts, the combinations of each are listed, and the lists are joined. When that is
//! done, whatever was not tried falls short of D by more than g, so D − g bounds it. When g has
//! reached what the best choice known falls short by, that choice is the best there is.

use super::classes::Classes;
use super::combinations::Combinations;
use super::groups::Groups;
use super::incumbent::Incumbent;
use super::join::{Aim, Grid, Triple};
use super::loss::Losses;
use super::meter::Meter;

/// What is needed to search; kept so that memory is asked for once.
#[derive(Default)]
pub(super) struct Proof {
    classes: Classes,
    groups: Groups,
    /// A few combinations, and two long lists of them.
    parts: [Combinations; 3],
    grid: Grid,
}

/// Moves of the first depth.
const FIRST_MOVES: usize = 24;
/// Moves that each depth has more than the one before, at least.
const FURTHER_MOVES: usize = 4;
/// A depth that is more than this share of what the best choice known falls short by may as well be
/// the last one.
const NEAR_THE_END: f64 = 0.75;
/// Choices that fall short by more than so many times the depth need not be found yet: they would
/// not end the search.
const LOOK_AHEAD: f64 = 3.0;
/// How many pairs are tried for each combination to come upon one of them.
const TRIES: u64 = 4;

/// The losses of moves in order. Few of many are ever asked for, and only those are sorted.
struct ByLoss {
    all: Vec<f64>,
    /// So many are in their place.
    sorted: usize,
}

impl ByLoss {
    fn of(losses: &Losses) -> Self {
        ByLoss { all: losses.moves.iter().map(|step| step.loss).collect(), sorted: 0 }
    }

    /// Puts at least so many into their place.
    fn sort(&mut self, count: usize) {
        let count = count.min(self.all.len());
        if count > self.sorted {
            let count = count.max(2 * self.sorted).max(4 * FIRST_MOVES).min(self.all.len());
            let rest = &mut self.all[self.sorted..];
            let wanted = count - self.sorted;
            if wanted < rest.len() {
                rest.select_nth_unstable_by(wanted, f64::total_cmp);
            }
            rest[..wanted].sort_unstable_by(f64::total_cmp);
            self.sorted = count;
        }
    }

    /// The loss at a place; infinite behind the last one.
    fn at(&mut self, place: usize) -> f64 {
        self.sort(place + 1);
        self.all.get(place).copied().unwrap_or(f64::INFINITY)
    }

    /// How many lose at most so much.
    fn within(&mut self, most: f64) -> usize {
        loop {
            let count = self.all[..self.sorted].partition_point(|loss| *loss <= most);
            if count < self.sorted || self.sorted == self.all.len() {
                return count;
            }
            self.sort(self.sorted + 1);
        }
    }
}

impl Proof {
    /// Takes the moves of these losses, to be searched from now on.
    pub(super) fn begin(&mut self, losses: &Losses) {
        self.classes.find(&losses.moves);
    }

    pub(super) fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Searches until `is_enough(depth, incumbent)`, until the next depth is out of the losses'
    /// reach, or until effort or room is spent. Begins below depth `from`; returns the depth that is
    /// done, and whether more moves are needed to go on.
    pub(super) fn deepen(
        &mut self,
        losses: &Losses,
        incumbent: &mut Incumbent,
        from: f64,
        tolerance: f64,
        is_enough: &dyn Fn(f64, &Incumbent) -> bool,
        meter: &mut Meter<'_, '_>,
    ) -> (f64, bool) {
        let mut done = from;
        let mut by_loss = ByLoss::of(losses);
        let mut depth = if from > 0.0 { from * 1.4 } else { by_loss.at(FIRST_MOVES) };
        let mut last_size = 0;
        while !is_enough(done, incumbent) {
            if depth > NEAR_THE_END * incumbent.shortfall {
                depth = incumbent.shortfall;
            }
            if depth > losses.reach {
                return (done, true);
            }
            if !self.search(losses, incumbent, depth, tolerance, meter) {
                break;
            }
            done = depth;
            let size = self.parts.iter().map(|part| part.list().len()).sum();
            let further = by_loss.within(depth) + FURTHER_MOVES;
            depth *= if size < 2 * last_size || size < 500 { 1.8 } else { 1.4 };
            depth = depth.max(by_loss.at(further));
            last_size = size;
        }
        (done, false)
    }

    /// Tries everything that loses at most `depth`; false if effort or room ran out.
    fn search(
        &mut self,
        losses: &Losses,
        incumbent: &mut Incumbent,
        depth: f64,
        tolerance: f64,
        meter: &mut Meter<'_, '_>,
    ) -> bool {
        for part in &mut self.parts {
            part.begin();
        }
        self.groups.find(&self.classes, &losses.moves, depth);
        for (part, groups) in self.parts.iter_mut().zip(self.groups.deal()) {
            // Those that lose most come first.
            for group in groups.into_iter().rev() {
                if !part.extend(self.groups.classes(group), depth, meter) {
                    return false;
                }
            }
        }
        // The longer one goes on the grid.
        let [_, one, other] = &mut self.parts;
        if one.list().len() > other.list().len() {
            std::mem::swap(one, other);
        }
        let found = self.join(losses, incumbent.shortfall, depth, tolerance, meter);
        if let Some(triple) = found {
            let kinds = self.parts.iter().zip(triple.places).flat_map(|(part, at)| part.moves(at));
            let classes = &self.classes;
            let mut members = vec![0; classes.len()];
            let moves = kinds.map(|kind| {
                let member = &mut members[kind.class as usize];
                *member += 1;
                classes.step(kind, *member - 1, &losses.moves)
            });
            incumbent.replace(losses, moves, triple.shortfall);
        }
        !meter.is_spent()
    }

    /// Joins the lists: finds the best of all choices that fall short by little more than `depth`,
    /// or else, by chance, one that falls short by less than `shortfall`.
    fn join(
        &mut self,
        losses: &Losses,
        shortfall: f64,
        depth: f64,
        tolerance: f64,
        meter: &mut Meter<'_, '_>,
    ) -> Option<Triple> {
        let lists = self.parts.each_ref().map(|part| part.list());
        let (prices, left) = (losses.prices, losses.left);
        let near = shortfall.min(LOOK_AHEAD * depth);
        let aim = Aim { prices, left, shortfall: near, tolerance };
        let found = self.grid.join(lists, aim, u64::MAX, meter);
        if found.is_some() || near == shortfall {
            return found;
        }
        // A window this wide holds many pairs, and most of them take too much.
        let tries = TRIES * (lists[1].len() + lists[2].len()) as u64;
        self.grid.join(lists, Aim { shortfall, ..aim }, tries, meter)
    }
}
