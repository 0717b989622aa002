//! The loss of a choice other than the one that the prices suggest.
//!
//! At given prices each entry has a best option. Any other one has a **loss**: by how much it gains
//! less. For every choice that fits,
//!
//! D − value = Σ losses + λ·(unused nodes) + μ·(unused watts),
//!
//! so the best choice is one with little loss that leaves little unused. All search is for a few
//! **moves** away from the loss-free choice, and an option whose loss alone is more than the best
//! choice known falls short by is out for good.

use super::gain::{gains, largest};
use super::instance::Instance;

/// A step away from the loss-free choice: one entry takes another option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Move {
    pub(super) entry: u32,
    /// Which of the entry's options, counted in its row.
    pub(super) option: u32,
    pub(super) loss: f64,
    /// How many more nodes, and how many more milliwatts, it takes.
    pub(super) takes: [i64; 2],
}

/// The loss-free choice and what is near it.
#[derive(Default)]
pub(super) struct Losses {
    /// Prices of a node and of a milliwatt.
    pub(super) prices: [f64; 2],
    /// D: no choice is worth more.
    pub(super) bound: f64,
    /// The loss-free option of each entry, counted in its row.
    pub(super) taken: Vec<u32>,
    /// Nodes and milliwatts that the loss-free choice leaves; negative where it takes too much.
    pub(super) left: [i64; 2],
    /// All moves worth making whose loss is at most `reach`, by entry.
    pub(super) moves: Vec<Move>,
    pub(super) reach: f64,
    gains: Vec<f64>,
}

impl Losses {
    /// Works everything out at these prices, with about this many moves, none of which loses more than `most`. Returns
    /// how many options were looked at.
    pub(super) fn weigh(
        &mut self,
        instance: &Instance,
        prices: [f64; 2],
        moves: usize,
        most: f64,
    ) -> u64 {
        self.prices = prices;
        let looks = self.reach_for(instance, moves);
        self.reach = self.reach.min(most);
        looks + self.collect(instance)
    }

    /// What every entry takes at these prices, if that fits.
    pub(super) fn choice_at(&mut self, instance: &Instance, prices: [f64; 2]) -> Option<Vec<u32>> {
        self.prices = prices;
        let choice = (0..instance.entries()).map(|entry| self.gain(instance, entry).0 as u32);
        let choice: Vec<u32> = choice.collect();
        instance.fits(&choice).then_some(choice)
    }

    /// Takes in moves that lose more, about so many in all.
    pub(super) fn widen(&mut self, instance: &Instance, moves: usize) -> u64 {
        let before = self.reach;
        let looks = self.reach_for(instance, moves);
        self.reach = self.reach.max(before * 2.0);
        looks + self.collect(instance)
    }

    /// Sets the reach so that about this many moves are within it, judged by a sample of entries.
    fn reach_for(&mut self, instance: &Instance, moves: usize) -> u64 {
        const SAMPLE: usize = 200;
        if instance.columns.value.len() <= moves {
            self.reach = f64::INFINITY;
            return 0;
        }
        let stride = instance.entries().div_ceil(SAMPLE);
        let (mut sampled, mut sample) = (0, Vec::new());
        for entry in (0..instance.entries()).step_by(stride) {
            let (_, most) = self.gain(instance, entry);
            sampled += 1;
            sample.extend(self.gains.iter().map(|gain| most - gain).filter(|loss| *loss > 0.0));
        }
        let wanted = moves * sampled / instance.entries();
        self.reach = if sample.len() <= wanted {
            f64::INFINITY
        } else {
            *sample.select_nth_unstable_by(wanted, f64::total_cmp).1
        };
        sample.len() as u64
    }

    fn collect(&mut self, instance: &Instance) -> u64 {
        let [node, milliwatt] = self.prices;
        let columns = &instance.columns;
        self.taken.clear();
        self.moves.clear();
        let (mut gained, mut used) = (0.0, [0i64; 2]);
        for entry in 0..instance.entries() {
            let row = instance.row(entry);
            let (taken, most) = self.gain(instance, entry);
            gained += most;
            let amounts = |i: usize| {
                [columns.nodes[row.start + i] as i64, columns.power[row.start + i] as i64]
            };
            let own = amounts(taken);
            used = [used[0] + own[0], used[1] + own[1]];
            self.taken.push(taken as u32);
            let least = (most - self.reach).max(f64::MIN);
            let near =
                self.gains.iter().enumerate().filter(|(i, gain)| **gain >= least && *i != taken);
            let first = self.moves.len();
            self.moves.extend(near.map(|(i, gain)| {
                let other = amounts(i);
                Move {
                    entry: entry as u32,
                    option: i as u32,
                    loss: most - gain,
                    takes: [other[0] - own[0], other[1] - own[1]],
                }
            }));
            if self.moves.len() > first {
                let value = |i: u32| columns.value[row.start + i as usize];
                drop_dominated(&mut self.moves, first, taken as u32, value);
            }
        }
        self.bound = gained + node * instance.capacity()[0] + milliwatt * instance.capacity()[1];
        self.left =
            [instance.nodes() as i64 - used[0], instance.power().milliwatts() as i64 - used[1]];
        columns.value.len() as u64
    }

    /// What each option of an entry gains, and which gains most (the first of several) and how
    /// much.
    fn gain(&mut self, instance: &Instance, entry: usize) -> (usize, f64) {
        let row = instance.row(entry);
        let columns = &instance.columns;
        let (value, nodes) = (&columns.value[row.clone()], &columns.nodes[row.clone()]);
        gains(value, nodes, &columns.power[row], self.prices, &mut self.gains);
        largest(&self.gains)
    }
}

/// Of more moves than this of one entry, none is dropped: it costs their square.
const MOST_COMPARED: usize = 1000;

/// Of one entry's moves, those from `first` on, drops each to an option that takes no less and is
/// worth no more than another one. Of equals the first option stays.
fn drop_dominated(moves: &mut Vec<Move>, first: usize, taken: u32, value: impl Fn(u32) -> f64) {
    if moves.len() - first > MOST_COMPARED {
        return;
    }
    let own = Move { entry: 0, option: taken, loss: 0.0, takes: [0; 2] };
    let beats = |a: &Move, b: &Move| {
        let no_more = a.takes[0] <= b.takes[0] && a.takes[1] <= b.takes[1];
        let equal = a.takes == b.takes && value(a.option) == value(b.option);
        no_more && value(a.option) >= value(b.option) && !(equal && a.option > b.option)
    };
    let mut kept = first;
    for i in first..moves.len() {
        // The option that is taken beats most of them.
        let others = || [&own].into_iter().chain(&moves[first..kept]).chain(&moves[i + 1..]);
        let move_ = moves[i];
        if !others().any(|other| beats(other, &move_)) {
            moves[kept] = move_;
            kept += 1;
        }
    }
    moves.truncate(kept);
}
