//! Where few moves can be part of a better choice, they are tried one by one.
//!
//! With some ten jobs, as on most machines at most times, lists and grids cost more than they save. So entries stand
//! in a row, and at each of them either nothing moves or one of its moves is made. A branch ends as soon as what
//! follows cannot beat the best choice known, by three things that are known of the rest of the row:
//!
//! - how much of either resource it can give back at most: a choice that takes too much for that never fits;
//! - the least loss for each unit of price that it takes more, or gives back: what is left over is paid for or filled
//!   at that rate at least, and what is too much is given back at that rate at least.
//!
//! Entries that move at the lowest rate come first, so that the rates of what follows are high.

use super::incumbent::Incumbent;
use super::loss::{Losses, Move};
use super::meter::Meter;

/// More than this many moves are not tried one by one.
const MOST_MOVES: usize = 400;
/// After this many steps the lists are quicker.
const MOST_STEPS: u64 = 4000;

/// What is needed to try; kept so that memory is asked for once.
pub(super) struct Branch {
    /// Steps at most.
    pub(super) most_steps: u64,
    /// Entry after entry, those of each by their loss.
    moves: Vec<Move>,
    rows: Vec<Row>,
    /// What is known of the rows from each one on, and of none behind the last.
    rests: Vec<Rest>,
    /// The places of the moves made, and those of the best choice.
    path: Vec<u32>,
    best: Vec<u32>,
    is_better: bool,
    shortfall: f64,
    steps: u64,
}

impl Default for Branch {
    fn default() -> Self {
        Branch {
            most_steps: MOST_STEPS,
            moves: Vec::new(),
            rows: Vec::new(),
            rests: Vec::new(),
            path: Vec::new(),
            best: Vec::new(),
            is_better: false,
            shortfall: 0.0,
            steps: 0,
        }
    }
}

/// The moves of one entry.
#[derive(Clone, Copy)]
struct Row {
    begin: usize,
    end: usize,
    /// The least that it loses for a unit of price, either way.
    rate: f64,
}

/// What some rows can do.
#[derive(Clone, Copy)]
struct Rest {
    /// How much of both they can give back at most.
    relief: [i64; 2],
    /// What they lose for a unit of price at least: by taking more, or giving back.
    taking: f64,
    giving: f64,
}

impl Rest {
    const NOTHING: Rest = Rest { relief: [0; 2], taking: f64::INFINITY, giving: f64::INFINITY };

    /// By how much every choice that fits loses and leaves more from here on, at least.
    #[inline]
    fn least(&self, left: [i64; 2], priced: f64) -> f64 {
        if left[0] + self.relief[0] < 0 || left[1] + self.relief[1] < 0 {
            return f64::INFINITY;
        }
        if priced > 0.0 {
            priced * self.taking.min(1.0)
        } else {
            -priced * self.giving.min(f64::MAX)
        }
    }
}

impl Branch {
    /// Finds a choice that beats the incumbent, until none does by more than `allowed`. Returns what every choice falls
    /// short by at least, or nothing if that would take too long; the incumbent may be a better one in either case.
    pub(super) fn search(
        &mut self,
        losses: &Losses,
        incumbent: &mut Incumbent,
        allowed: f64,
        meter: &mut Meter<'_, '_>,
    ) -> Option<f64> {
        // Moves beyond the reach are not at hand.
        if losses.moves.len() > MOST_MOVES || losses.reach < incumbent.shortfall {
            return None;
        }
        self.order(losses);
        (self.shortfall, self.steps, self.is_better) = (incumbent.shortfall, 0, false);
        self.path.clear();
        let is_done = self.descend(0, losses.left, 0.0, allowed, losses.prices);
        meter.spend(self.steps);
        if self.is_better {
            let moves = self.best.iter().map(|place| self.moves[*place as usize]);
            incumbent.replace(losses, moves, self.shortfall);
        }
        is_done.then_some((self.shortfall - allowed).max(0.0))
    }

    /// Puts the moves into their rows, and works out what is known of the rest of them.
    fn order(&mut self, losses: &Losses) {
        let [node, milliwatt] = losses.prices;
        let priced = |step: &Move| node * step.takes[0] as f64 + milliwatt * step.takes[1] as f64;
        self.moves.clear();
        self.moves.extend_from_slice(&losses.moves);
        self.rows.clear();
        let mut begin = 0;
        for end in 1..=self.moves.len() {
            if self.moves.get(end).is_none_or(|step| step.entry != self.moves[begin].entry) {
                let row = &mut self.moves[begin..end];
                row.sort_unstable_by(|a, b| {
                    a.loss.total_cmp(&b.loss).then(a.option.cmp(&b.option))
                });
                let rates = row.iter().map(|step| step.loss / priced(step).abs());
                let rate = rates.fold(f64::INFINITY, f64::min);
                self.rows.push(Row { begin, end, rate });
                begin = end;
            }
        }
        self.rows.sort_unstable_by(|a, b| a.rate.total_cmp(&b.rate).then(a.begin.cmp(&b.begin)));
        self.rests.clear();
        self.rests.resize(self.rows.len() + 1, Rest::NOTHING);
        for (place, row) in self.rows.iter().enumerate().rev() {
            let mut rest = self.rests[place + 1];
            let mut relief = [0; 2];
            for step in &self.moves[row.begin..row.end] {
                relief = [0, 1].map(|i| relief[i].max(-step.takes[i]));
                let amount = priced(step);
                if amount > 0.0 {
                    rest.taking = rest.taking.min(step.loss / amount);
                } else if amount < 0.0 {
                    rest.giving = rest.giving.min(step.loss / -amount);
                }
            }
            rest.relief = [0, 1].map(|i| rest.relief[i] + relief[i]);
            self.rests[place] = rest;
        }
    }

    /// Tries all moves of the rows from this one on, with so much left and so much lost. Returns whether it got to the
    /// end.
    fn descend(
        &mut self,
        first: usize,
        left: [i64; 2],
        lost: f64,
        allowed: f64,
        prices: [f64; 2],
    ) -> bool {
        let priced = prices[0] * left[0] as f64 + prices[1] * left[1] as f64;
        let limit = |branch: &Self| branch.shortfall - allowed;
        if left[0] >= 0 && left[1] >= 0 && lost + priced < self.shortfall {
            self.shortfall = lost + priced;
            self.best.clone_from(&self.path);
            self.is_better = true;
        }
        for place in first..self.rows.len() {
            self.steps += 1;
            if self.steps > self.most_steps {
                return false;
            }
            // Whatever follows loses no less: neither relief nor rates get better.
            if lost + self.rests[place].least(left, priced) >= limit(self) {
                return true;
            }
            let Row { begin, end, .. } = self.rows[place];
            for at in begin..end {
                let Move { loss, takes, .. } = self.moves[at];
                if lost + loss >= limit(self) {
                    break;
                }
                let left = [left[0] - takes[0], left[1] - takes[1]];
                self.path.push(at as u32);
                let is_done = self.descend(place + 1, left, lost + loss, allowed, prices);
                self.path.pop();
                if !is_done {
                    return false;
                }
            }
        }
        true
    }
}
