//! A figure that changes over time, condensed.
//!
//! A run of 100 000 jobs changes its power several hundred thousand times, and no screen shows that
//! many. Where there are too many, time is cut into equal parts, and of each part the lowest value,
//! the highest and the mean are kept. So no peak is ever lost, and neither is what lies below the line.

use serde::{Deserialize, Serialize};

use crate::report::digest::Column;
use crate::units::Instant;

/// The most parts that are kept.
pub(crate) const MOST_PARTS: usize = 4096;

/// Values over time: in each part, which lasts until the next one begins, the lowest, the highest and
/// the mean.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// When each part begins, in milliseconds.
    pub(crate) from: Column,
    /// The lowest value in it.
    pub(crate) low: Column,
    /// The highest value of each interval.
    pub(crate) high: Column,
    /// The mean, to the nearest whole number.
    pub(crate) mean: Column,
}

/// A value, or a range of values with its mean, that holds for some time.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: u64,
    until: u64,
    low: u64,
    high: u64,
    mean: u64,
}

impl Piece {
    /// A value that holds from one time until another.
    fn of((from, value): (u64, u64), until: u64) -> Self {
        Piece { from, until, low: value, high: value, mean: value }
    }
}

/// One part while it is filled.
#[derive(Clone, Copy, Debug)]
struct Part {
    from: u64,
    until: u64,
    low: u64,
    high: u64,
    /// Value times milliseconds.
    sum: u128,
}

impl Part {
    fn beginning(from: u64) -> Self {
        Part { from, until: from, low: u64::MAX, high: 0, sum: 0 }
    }

    /// To the nearest whole number.
    fn mean(&self) -> u64 {
        let millis = u128::from(self.until - self.from).max(1);
        ((self.sum + millis / 2) / millis) as u64
    }

    /// A part that is one piece, as that piece.
    fn piece(&self) -> Piece {
        let Part { from, until, low, high, .. } = *self;
        Piece { from, until, low, high, mean: self.mean() }
    }

    /// Adds what a piece has between the end of this part so far and a later time.
    fn add(&mut self, piece: &Piece, until: u64) {
        self.low = self.low.min(piece.low);
        self.high = self.high.max(piece.high);
        self.sum += u128::from(piece.mean) * u128::from(until - self.until);
        self.until = until;
    }
}

impl Envelope {
    /// Condenses steps, each a value from an instant on, to what they say between two instants.
    /// Steps are in order of time; of several at one instant the last one holds.
    pub(crate) fn of(
        steps: impl IntoIterator<Item = (Instant, u64)>,
        begin: Instant,
        end: Instant,
    ) -> Self {
        let mut all = Steps::between(begin, end);
        for (at, value) in steps {
            all.step(at, value);
        }
        all.envelope()
    }

    /// The same in no more parts than so many; `end` is where the last one ends, in milliseconds.
    pub(crate) fn coarser(&self, end: u64, most: usize) -> Self {
        let from = self.from.values();
        let ends = from.iter().skip(1).copied().chain([end]);
        let values = self.low.values().iter().zip(self.high.values()).zip(self.mean.values());
        let mut pieces = Pieces::until(end, most);
        for ((&from, until), ((&low, &high), &mean)) in from.iter().zip(ends).zip(values) {
            pieces.add(Piece { from, until: until.max(from), low, high, mean });
        }
        pieces.envelope()
    }
}

/// Steps on their way into an envelope, one after the other. Those that are past are condensed at once, so that a
/// million of them take no room.
#[derive(Debug)]
pub(super) struct Steps {
    begin: u64,
    end: u64,
    /// What held before the last step: from when, and which value.
    held: Option<(u64, u64)>,
    /// The last step, which another one at the same instant may replace.
    last: Option<(u64, u64)>,
    pieces: Pieces,
}

impl Steps {
    /// For what holds between two instants.
    pub(super) fn between(begin: Instant, end: Instant) -> Self {
        let (begin, end) = (begin.millis(), end.millis());
        Steps { begin, end, held: None, last: None, pieces: Pieces::until(end, MOST_PARTS) }
    }

    /// A value from an instant on, which is no earlier than the one before.
    #[inline]
    pub(super) fn step(&mut self, at: Instant, value: u64) {
        let at = at.millis().max(self.begin);
        if at >= self.end {
            return;
        }
        if let Some(last) = self.last.replace((at, value))
            && last.0 != at
        {
            self.settle(last);
        }
    }

    /// Nothing replaces this step any more: if it changed the value, what held before is over.
    fn settle(&mut self, step: (u64, u64)) {
        if self.held.is_some_and(|held| held.1 == step.1) {
            return;
        }
        if let Some(held) = self.held.replace(step) {
            self.pieces.add(Piece::of(held, step.0));
        }
    }

    pub(super) fn envelope(mut self) -> Envelope {
        if let Some(last) = self.last.take() {
            self.settle(last);
        }
        if let Some(held) = self.held {
            self.pieces.add(Piece::of(held, self.end));
        }
        self.pieces.envelope()
    }
}

/// Pieces that follow each other without a gap: as they are while they are few, else in equal parts of time.
#[derive(Debug)]
struct Pieces {
    end: u64,
    most: usize,
    /// Each a part of its own, until there are too many of them.
    parts: Vec<Part>,
    /// How long equal parts are, once there are too many.
    width: Option<u64>,
}

impl Pieces {
    fn until(end: u64, most: usize) -> Self {
        Pieces { end, most, parts: Vec::new(), width: None }
    }

    #[inline]
    fn add(&mut self, piece: Piece) {
        match self.width {
            Some(width) => self.condense(piece, width),
            None if self.parts.len() < self.most => {
                let mut part = Part::beginning(piece.from);
                part.add(&piece, piece.until);
                self.parts.push(part);
            }
            None => self.add_to_equal_parts(piece),
        }
    }

    /// The first piece that is one too many: all before it go into equal parts, too.
    fn add_to_equal_parts(&mut self, piece: Piece) {
        let begin = self.parts.first().map_or(piece.from, |first| first.from);
        let width = self.end.saturating_sub(begin).div_ceil(self.most as u64).max(1);
        self.width = Some(width);
        let few = std::mem::take(&mut self.parts);
        self.parts.reserve(self.most);
        for part in few {
            self.condense(part.piece(), width);
        }
        self.condense(piece, width);
    }

    fn condense(&mut self, piece: Piece, width: u64) {
        let begin = self.parts.first().map_or(piece.from, |first| first.from);
        let mut from = piece.from;
        while from < piece.until {
            // Where the last part is to end; there is no gap, so the next one begins just there.
            let mut edge = begin.saturating_add((self.parts.len() as u64).saturating_mul(width));
            if from >= edge {
                self.parts.push(Part::beginning(from));
                edge = edge.saturating_add(width);
            }
            let until = piece.until.min(edge);
            if let Some(part) = self.parts.last_mut() {
                part.add(&piece, until);
            }
            from = until;
        }
    }

    fn envelope(&self) -> Envelope {
        let column = |figure: &dyn Fn(&Part) -> u64| self.parts.iter().map(figure).collect();
        Envelope {
            from: column(&|part| part.from),
            low: column(&|part| part.low),
            high: column(&|part| part.high),
            mean: column(&Part::mean),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn few_steps_are_kept_as_they_are() {
        let steps = [(0, 5), (10, 7), (10, 8), (20, 8), (30, 2), (40, 9)];
        let steps = steps.map(|(time, value)| (at(time), value));
        let envelope = Envelope::of(steps.iter().copied(), at(4), at(40));
        assert_eq!(envelope.from.values(), [4, 10, 30]);
        assert_eq!(envelope.mean.values(), [5, 8, 2]);
        assert_eq!(envelope.low, envelope.high);
        assert_eq!(Envelope::of([], at(4), at(40)), Envelope::default());
    }

    /// Parts of 4 ms from 100 on: in the first, 10 for 1 ms, 30 for 2 ms, 0 for 1 ms; the mean is
    /// 17.5.
    #[test]
    fn parts_by_hand() {
        let steps = [(100, 10), (101, 30), (103, 0), (107, 6), (109, 8)];
        let steps = steps.map(|(time, value)| (at(time), value));
        let coarse = Envelope::of(steps.iter().copied(), at(0), at(110)).coarser(110, 3);
        assert_eq!(coarse.from.values(), [100, 104, 108]);
        assert_eq!(coarse.low.values(), [0, 0, 6]);
        assert_eq!(coarse.high.values(), [30, 6, 8]);
        // 70 / 4, 6 / 4 and 14 / 2, to the nearest.
        assert_eq!(coarse.mean.values(), [18, 2, 7]);
    }

    /// What is condensed twice has the same extremes, and the same mean but for rounding.
    #[test]
    fn a_long_last_part_counts_for_as_long_as_it_lasts() {
        let steps: Vec<_> = (0..100).map(|time| (at(time), time % 2)).collect();
        let envelope = Envelope::of([&steps[..], &[(at(100), 50)]].concat(), at(0), at(1000));
        let coarse = envelope.coarser(1000, 10);
        assert_eq!(coarse.from.values().len(), 10);
        assert_eq!(coarse.high.values()[0], 1);
        assert!(coarse.mean.values()[1..].iter().all(|mean| *mean == 50));
    }

    proptest! {
        /// Against every millisecond written out.
        #[test]
        fn nothing_is_lost(
            values in prop::collection::vec((1u64..4, 0u64..1000), MOST_PARTS..3 * MOST_PARTS),
            skipped in 0u64..50,
        ) {
            let mut plain: Vec<u64> = Vec::new();
            let mut steps = Vec::new();
            for (length, value) in values {
                steps.push((at(plain.len() as u64), value));
                plain.extend((0..length).map(|_| value));
            }
            let end = plain.len() as u64;
            let envelope = Envelope::of(steps.iter().copied(), at(skipped), at(end));
            let from = envelope.from.values();
            prop_assert!(from.len() <= MOST_PARTS && from[0] == skipped);
            for (part, &begin) in from.iter().enumerate() {
                let until = from.get(part + 1).copied().unwrap_or(end);
                let inside = &plain[begin as usize..until as usize];
                prop_assert_eq!(inside.iter().min(), envelope.low.values().get(part));
                prop_assert_eq!(inside.iter().max(), envelope.high.values().get(part));
                let mean = inside.iter().sum::<u64>() as f64 / inside.len() as f64;
                prop_assert!((mean - envelope.mean.values()[part] as f64).abs() <= 0.5);
            }
        }
    }
}
