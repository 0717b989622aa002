//! How combinations were made: each is another one and what came on top of it.

use super::runs::{Combination, NOTHING, reserve};

/// Traces of combinations; they are counted from one.
#[derive(Default)]
pub(super) struct Traces {
    all: Vec<Trace>,
    /// So many are in use.
    len: usize,
}

#[derive(Clone, Copy, Default)]
struct Trace {
    before: u32,
    then: u32,
}

impl Traces {
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Gives a new trace to those that something has just come on top of.
    pub(super) fn note(&mut self, list: &mut [Combination]) {
        reserve(&mut self.all, self.len + list.len());
        for combination in list {
            // Without branches: which ones are new cannot be guessed.
            let is_new = combination.on_top != NOTHING;
            self.all[self.len] = Trace { before: combination.trace, then: combination.on_top };
            self.len += usize::from(is_new);
            combination.trace = if is_new { self.len as u32 } else { combination.trace };
            combination.on_top = NOTHING;
        }
    }

    /// What came on top, from the last to the first.
    pub(super) fn back(&self, mut at: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::from_fn(move || {
            let trace = self.all[(at as usize).checked_sub(1)?];
            at = trace.before;
            Some(trace.then)
        })
    }
}
