//! Lists of combinations in the order of what they take, merged into one.
//!
//! These are the innermost loops of the search. Which of two lists is next, and what loses too much,
//! is as good as random, so they are written without branches on it. Buffers are never made
//! shorter, so that nothing is cleared that is written over anyway.

use super::meter::Meter;

/// Some moves together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Combination {
    /// What they lose.
    pub(super) loss: f64,
    /// Nodes and milliwatts they take.
    pub(super) takes: [i64; 2],
    /// By which it is known how it was made, ...
    pub(super) trace: u32,
    /// ... and what has just come on top of that.
    pub(super) on_top: u32,
}

/// No trace, or nothing on top.
pub(super) const NOTHING: u32 = 0;

impl Combination {
    /// Nodes first, then watts, as one number.
    #[inline]
    fn key(&self) -> i128 {
        (i128::from(self.takes[0]) << 64) + i128::from(self.takes[1])
    }

    /// The same with another one on top.
    #[inline]
    fn with(&self, shift: &Combination) -> Combination {
        Combination {
            loss: self.loss + shift.loss,
            takes: [0, 1].map(|i| self.takes[i] + shift.takes[i]),
            trace: self.trace,
            on_top: shift.on_top,
        }
    }
}

/// Makes a buffer at least so long.
pub(super) fn reserve<T: Clone + Default>(buffer: &mut Vec<T>, length: usize) {
    if buffer.len() < length {
        buffer.resize(length.next_power_of_two(), T::default());
    }
}

/// Lists in order, one behind the other.
#[derive(Default)]
pub(super) struct Runs {
    all: Vec<Combination>,
    /// Where each list ends.
    ends: Vec<usize>,
    spare: Vec<Combination>,
}

impl Runs {
    /// How many combinations there are.
    pub(super) fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    pub(super) fn clear(&mut self) {
        self.ends.clear();
    }

    /// Adds a run.
    pub(super) fn push(&mut self, list: &[Combination]) {
        let begin = self.len();
        let end = begin + list.len();
        reserve(&mut self.all, end);
        self.all[begin..end].copy_from_slice(list);
        self.ends.push(end);
    }

    /// Makes one run for each shift: the list with that on top, as far as it loses no more than
    /// `most`. Returns whether there was enough effort, and room for `room` combinations.
    pub(super) fn shift(
        &mut self,
        list: &[Combination],
        shifts: &mut [Combination],
        most: f64,
        room: usize,
        meter: &mut Meter<'_, '_>,
    ) -> bool {
        self.ends.clear();
        // What cannot bear one shift cannot bear those that lose more.
        shifts.sort_by(|a, b| a.loss.total_cmp(&b.loss));
        let (mut end, mut near) = (0, list.len());
        let Some((last, others)) = shifts.split_last() else { return true };
        if !others.is_empty() {
            reserve(&mut self.spare, near);
            self.spare[..near].copy_from_slice(list);
        }
        for shift in others.iter().chain([last]) {
            reserve(&mut self.all, end + near);
            let out = &mut self.all[end..end + near];
            let bearable = most - shift.loss;
            let mut kept = 0;
            if std::ptr::eq(shift, last) {
                // Nobody looks at what can bear the last one, and a list with a single shift need not be copied.
                let left = if others.is_empty() { list } else { &self.spare[..near] };
                for combination in left {
                    out[kept] = combination.with(shift);
                    kept += usize::from(combination.loss <= bearable);
                }
            } else {
                for at in 0..near {
                    let combination = self.spare[at];
                    self.spare[kept] = combination;
                    out[kept] = combination.with(shift);
                    kept += usize::from(combination.loss <= bearable);
                }
            }
            if !meter.spend(near as u64) || end > room {
                return false;
            }
            near = kept;
            end += kept;
            self.ends.push(end);
        }
        true
    }

    /// Merges a list with all runs.
    pub(super) fn merge_into(&mut self, list: &mut Vec<Combination>) {
        let length = self.len();
        reserve(&mut self.spare, length);
        while self.ends.len() > 1 {
            let (mut begin, mut merged) = (0, 0);
            for pair in 0..self.ends.len().div_ceil(2) {
                let middle = self.ends[2 * pair];
                let end = self.ends.get(2 * pair + 1).copied().unwrap_or(middle);
                let (one, other) = (&self.all[begin..middle], &self.all[middle..end]);
                merged += merge(one, other, &mut self.spare[merged..]);
                self.ends[pair] = merged;
                begin = end;
            }
            self.ends.truncate(self.ends.len().div_ceil(2));
            std::mem::swap(&mut self.all, &mut self.spare);
        }
        let end = self.len();
        reserve(&mut self.spare, list.len() + end);
        let merged = merge(list, &self.all[..end], &mut self.spare);
        list.clear();
        list.extend_from_slice(&self.spare[..merged]);
    }
}

/// Merges two lists into one, of which the length is returned. Of two combinations that take the
/// same, the one that loses less is kept, or that of the first list.
fn merge(one: &[Combination], other: &[Combination], out: &mut [Combination]) -> usize {
    let (mut i, mut j, mut end) = (0, 0, 0);
    while i < one.len() && j < other.len() {
        let (a, b) = (&one[i], &other[j]);
        let (key_a, key_b) = (a.key(), b.key());
        let first = (key_a < key_b) | ((key_a == key_b) & (a.loss <= b.loss));
        out[end] = *if first { a } else { b };
        i += usize::from(key_a <= key_b);
        j += usize::from(key_b <= key_a);
        end += 1;
    }
    for rest in [&one[i..], &other[j..]] {
        out[end..end + rest.len()].copy_from_slice(rest);
        end += rest.len();
    }
    end
}
