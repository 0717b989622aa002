//! All combinations of moves that lose no more than so much together, of those that take the same
//! nodes and watts only the one that loses least.
//!
//! The list grows by one class after the other. Classes whose moves lose much come first, while the
//! list is short and few of its combinations can bear them; so the work is not much more than the
//! length of the list in the end. Where node counts and caps are few, hundreds of combinations take
//! the same, and keeping one of them is what makes large instances possible.

use super::classes::Kind;
use super::meter::Meter;

/// Some moves together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combination {
    /// What they lose; infinite if another combination takes the same and loses less.
    pub(super) loss: f64,
    pub(super) takes: [i64; 2],
    /// The combination with one move less, and that move.
    parent: u32,
    kind: u32,
}

/// A list of combinations; the first is to move nothing.
#[derive(Default)]
pub(super) struct Combinations {
    kinds: Vec<Kind>,
    list: Vec<Combination>,
    /// A hash table of places in the list, by what a combination takes.
    table: Vec<u32>,
    /// Places of combinations that turned out to lose more than another.
    beaten: Vec<u32>,
}

/// More are not kept in memory.
const MOST: usize = 1 << 21;
/// A slot of the table that holds nothing.
const EMPTY: u32 = u32::MAX;

/// Nodes and watts as one number in which neighbours are far apart. They come in lattices, which
/// plain multiplication would leave as lattices: so what is above is folded into what is below.
#[inline]
pub(super) fn mix(pair: [i64; 2]) -> u64 {
    let fold = |x: u64| (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let both = (pair[0] as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ pair[1] as u64;
    let folded = fold(fold(both));
    folded ^ (folded >> 32)
}

impl Combinations {
    /// Begins anew, with nothing but to move nothing.
    pub(super) fn begin(&mut self) {
        // A table as large as it was last needed will do for a while.
        let slots = (2 * self.list.len()).next_power_of_two().max(1 << 10);
        self.kinds.clear();
        self.list.clear();
        // Not empty if the effort was spent in the midst of a class.
        self.beaten.clear();
        self.table.clear();
        self.table.resize(slots, EMPTY);
        self.add(Combination { loss: 0.0, takes: [0; 2], parent: 0, kind: 0 });
    }

    pub(super) fn list(&self) -> &[Combination] {
        &self.list
    }

    /// Extends the list by the moves of one class of `size` entries, as far as nothing loses more
    /// than `most`. Returns whether there was enough effort and room.
    pub(super) fn extend(
        &mut self,
        kinds: impl Iterator<Item = Kind>,
        size: u32,
        most: f64,
        meter: &mut Meter<'_, '_>,
    ) -> bool {
        let first = self.kinds.len();
        self.kinds.extend(kinds.filter(|kind| kind.loss <= most));
        // Another entry of the class moves in each round, and only what the last round brought
        // needs to be looked at. What is beaten is still extended in its turn: what beats it may
        // have used the class up.
        let mut fresh = 0..self.list.len();
        for _ in 0..size {
            let before = self.list.len();
            for place in first..self.kinds.len() {
                let kind = self.kinds[place];
                let bearable = most - kind.loss;
                for at in fresh.clone() {
                    let here = self.list[at];
                    if here.loss <= bearable {
                        self.add(Combination {
                            loss: here.loss + kind.loss,
                            takes: [here.takes[0] + kind.takes[0], here.takes[1] + kind.takes[1]],
                            parent: at as u32,
                            kind: place as u32,
                        });
                    }
                }
                if !meter.spend(fresh.len() as u64) || self.list.len() > MOST {
                    return false;
                }
            }
            fresh = before..self.list.len();
            if fresh.is_empty() {
                break;
            }
        }
        for place in self.beaten.drain(..) {
            self.list[place as usize].loss = f64::INFINITY;
        }
        true
    }

    /// Adds a combination unless another takes the same and loses no more.
    fn add(&mut self, combination: Combination) {
        if 2 * self.list.len() >= self.table.len() {
            self.grow();
        }
        let place = self.list.len() as u32;
        let slot = self.slot(combination.takes);
        let other = self.table[slot];
        if other != EMPTY {
            if self.list[other as usize].loss <= combination.loss {
                return;
            }
            self.beaten.push(other);
        }
        self.table[slot] = place;
        self.list.push(combination);
    }

    /// Where something that takes so much is in the table, or would be.
    #[inline]
    fn slot(&self, takes: [i64; 2]) -> usize {
        let mask = self.table.len() - 1;
        let mixed = mix(takes);
        let mut slot = mixed as usize & mask;
        while self.table[slot] != EMPTY && self.list[self.table[slot] as usize].takes != takes {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        let slots = 4 * self.table.len();
        self.table.clear();
        self.table.resize(slots, EMPTY);
        for place in 0..self.list.len() {
            // Later ones lose less.
            let slot = self.slot(self.list[place].takes);
            self.table[slot] = place as u32;
        }
    }

    /// The moves of a combination.
    pub(super) fn moves(&self, mut at: usize) -> impl Iterator<Item = Kind> + '_ {
        std::iter::from_fn(move || {
            (at != 0).then(|| {
                let combination = self.list[at];
                at = combination.parent as usize;
                self.kinds[combination.kind as usize]
            })
        })
    }
}
