//! How long the latest of many things took.

use std::collections::VecDeque;
use std::time::Duration;

/// How many are remembered.
const REMEMBERED: usize = 1000;

/// The number of things so far, and how long each of the last thousand took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latest {
    count: u64,
    /// In microseconds.
    took: VecDeque<u64>,
}

impl Latest {
    pub(crate) fn note(&mut self, took: Duration) {
        self.count += 1;
        if self.took.len() == REMEMBERED {
            self.took.pop_front();
        }
        self.took.push_back(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The longest of them, in microseconds.
    pub(crate) fn longest(&self) -> u64 {
        self.took.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_is_forgotten_after_a_thousand() {
        let mut latest = Latest::default();
        assert_eq!((latest.count(), latest.longest()), (0, 0));
        latest.note(Duration::from_micros(70));
        for _ in 0..REMEMBERED - 1 {
            latest.note(Duration::from_micros(5));
        }
        assert_eq!((latest.count(), latest.longest()), (1000, 70));
        latest.note(Duration::from_micros(6));
        assert_eq!((latest.count(), latest.longest()), (1001, 6));
    }
}
