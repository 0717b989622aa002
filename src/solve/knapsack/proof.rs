//! Searching deeper and deeper until nothing better can exist.
//!
//! At depth g all combinations of moves that lose at most g together are tried: the classes are
//! dealt out to two halves, the combinations of each half are listed, and the lists are joined. When
//! that is done, whatever was not tried falls short of D by more than g, so D − g bounds it. When g
//! has reached what the best choice known falls short by, that choice is the best there is.

use super::classes::Classes;
use super::combinations::Combinations;
use super::incumbent::Incumbent;
use super::join::{Aim, Grid};
use super::loss::Losses;
use super::meter::Meter;

/// What is needed to search; kept so that memory is asked for once.
#[derive(Default)]
pub(super) struct Proof {
    classes: Classes,
    halves: [Combinations; 2],
    grid: Grid,
}

/// Moves of the first depth.
const FIRST_MOVES: usize = 24;
/// Moves that each depth has more than the one before, at least.
const FURTHER_MOVES: usize = 4;

impl Proof {
    /// Takes the moves of these losses, to be searched from now on.
    pub(super) fn begin(&mut self, losses: &Losses) {
        self.classes.find(&losses.moves);
    }

    pub(super) fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Searches until `is_enough(depth, incumbent)`, until all moves within reach are used up, or
    /// until the effort is spent. Begins below depth `from`; returns the depth that is done.
    pub(super) fn deepen(
        &mut self,
        losses: &Losses,
        incumbent: &mut Incumbent,
        from: f64,
        tolerance: f64,
        is_enough: &dyn Fn(f64, &Incumbent) -> bool,
        meter: &mut Meter<'_, '_>,
    ) -> f64 {
        let mut done = from;
        let mut by_loss: Vec<f64> = losses.moves.iter().map(|step| step.loss).collect();
        by_loss.sort_unstable_by(f64::total_cmp);
        let loss_of = |place: usize| by_loss.get(place).copied().unwrap_or(f64::INFINITY);
        let mut depth = if from > 0.0 { from * 1.4 } else { loss_of(FIRST_MOVES) };
        let mut last_size = 0;
        while !is_enough(done, incumbent) && done < losses.reach {
            depth = depth.min(incumbent.shortfall).min(losses.reach);
            if !self.search(losses, incumbent, depth, tolerance, meter) {
                break;
            }
            done = depth;
            let size = self.halves.iter().map(|half| half.list().len()).sum();
            let further = by_loss.partition_point(|loss| *loss <= depth) + FURTHER_MOVES;
            depth *= if size < 2 * last_size || size < 500 { 1.8 } else { 1.4 };
            depth = depth.max(loss_of(further));
            last_size = size;
        }
        done
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
        let classes = &self.classes;
        for half in &mut self.halves {
            half.begin();
        }
        // Those that lose most come first, each into the half that is shorter so far.
        for class in (0..classes.len() as u32).rev() {
            let [one, other] = &mut self.halves;
            let half = if one.list().len() <= other.list().len() { one } else { other };
            let kinds = classes.kinds(class, &losses.moves);
            if !half.extend(kinds, classes.size(class), depth, meter) {
                return false;
            }
        }
        let [one, other] = &self.halves;
        let aim = Aim {
            prices: losses.prices,
            left: losses.left,
            shortfall: incumbent.shortfall,
            tolerance,
        };
        let found = self.grid.join(one.list(), other.list(), aim, meter);
        if let Some(pair) = found {
            let kinds = one.moves(pair.places[0]).chain(other.moves(pair.places[1]));
            let mut members = vec![0; classes.len()];
            let moves = kinds.map(|kind| {
                let member = &mut members[kind.class as usize];
                *member += 1;
                classes.step(kind, *member - 1, &losses.moves)
            });
            incumbent.replace(losses, moves, pair.shortfall);
        }
        !meter.is_spent()
    }
}
