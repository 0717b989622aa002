//! A figure that changes over time, condensed.
//!
//! A run of 100 000 jobs changes its power several hundred thousand times, and no screen shows that
//! many. Where there are too many, time is cut into equal parts, and of each part the lowest value,
//! the highest and the mean are kept. So no peak is ever lost, and neither is what lies below the line.

use serde::{Deserialize, Serialize};

use crate::report::digest::Column;
use crate::units::Instant;

/// The most parts that are kept.
pub const MOST_PARTS: usize = 4096;

/// Values over time: in each part, which lasts until the next one begins, the lowest, the highest and
/// the mean.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// When each part begins, in milliseconds.
    pub from: Column,
    /// The lowest value in it.
    pub low: Column,
    /// The highest.
    pub high: Column,
    /// The mean, to the nearest whole number.
    pub mean: Column,
}

/// One part while it is filled.
#[derive(Clone, Copy, Debug)]
struct Part {
    from: u64,
    low: u64,
    high: u64,
    /// Value times milliseconds.
    sum: u128,
}

impl Part {
    fn beginning(from: u64) -> Self {
        Part { from, low: u64::MAX, high: 0, sum: 0 }
    }

    fn add(&mut self, value: u64, millis: u64) {
        self.low = self.low.min(value);
        self.high = self.high.max(value);
        self.sum += u128::from(value) * u128::from(millis);
    }
}

impl Envelope {
    /// Condenses steps, each a value from an instant on, to what they say between two instants.
    /// Steps are in order of time; of several at one instant the last one holds.
    pub fn of(steps: &[(Instant, u64)], begin: Instant, end: Instant) -> Self {
        let steps = in_force(steps, begin.millis(), end.millis());
        let length = end.since(begin).millis();
        let parts = if steps.len() <= MOST_PARTS {
            exact(&steps, end.millis())
        } else {
            condensed(&steps, length.div_ceil(MOST_PARTS as u64), end.millis())
        };
        let column = |figure: &dyn Fn(&Part) -> u64| parts.iter().map(figure).collect();
        let ends = parts.iter().skip(1).map(|part| part.from).chain([end.millis()]);
        let mean = parts.iter().zip(ends).map(|(part, end)| {
            let millis = u128::from(end - part.from);
            ((part.sum + millis / 2) / millis) as u64
        });
        Envelope {
            from: column(&|part| part.from),
            low: column(&|part| part.low),
            high: column(&|part| part.high),
            mean: mean.collect(),
        }
    }
}

/// The steps that hold for some time between two instants, the first of them from the first instant
/// on, each with another value than the one before.
fn in_force(steps: &[(Instant, u64)], begin: u64, end: u64) -> Vec<(u64, u64)> {
    let mut kept: Vec<(u64, u64)> = Vec::new();
    for &(at, value) in steps {
        let at = at.millis().max(begin);
        if at >= end {
            break;
        }
        if kept.last().is_some_and(|last| last.0 == at) {
            kept.pop();
        }
        if kept.last().is_none_or(|last| last.1 != value) {
            kept.push((at, value));
        }
    }
    kept
}

fn exact(steps: &[(u64, u64)], end: u64) -> Vec<Part> {
    let ends = steps.iter().skip(1).map(|step| step.0).chain([end]);
    let part = |(&(from, value), end): (&(u64, u64), u64)| {
        let mut part = Part::beginning(from);
        part.add(value, end - from);
        part
    };
    steps.iter().zip(ends).map(part).collect()
}

fn condensed(steps: &[(u64, u64)], width: u64, end: u64) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::with_capacity(MOST_PARTS);
    let begin = steps.first().map_or(end, |step| step.0);
    let ends = steps.iter().skip(1).map(|step| step.0).chain([end]);
    for (&(from, value), until) in steps.iter().zip(ends) {
        let mut from = from;
        while from < until {
            let place = (from - begin) / width;
            // Steps follow each other without a gap, so a part is entered at its beginning.
            if place as usize == parts.len() {
                parts.push(Part::beginning(from));
            }
            let to = until.min(begin.saturating_add((place + 1).saturating_mul(width)));
            if let Some(part) = parts.last_mut() {
                part.add(value, to - from);
            }
            from = to;
        }
    }
    parts
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
        let envelope = Envelope::of(&steps, at(4), at(40));
        assert_eq!(envelope.from.values(), [4, 10, 30]);
        assert_eq!(envelope.mean.values(), [5, 8, 2]);
        assert_eq!(envelope.low, envelope.high);
        assert_eq!(Envelope::of(&[], at(4), at(40)), Envelope::default());
    }

    /// Parts of 4 ms from 100 on: in the first, 10 for 1 ms, 30 for 2 ms, 0 for 1 ms; the mean is
    /// 17.5.
    #[test]
    fn parts_by_hand() {
        let steps = [(100, 10), (101, 30), (103, 0), (107, 6), (109, 8)];
        let parts = condensed(&steps, 4, 110);
        let seen: Vec<_> = parts.iter().map(|p| (p.from, p.low, p.high, p.sum)).collect();
        assert_eq!(seen, [(100, 0, 30, 70), (104, 0, 6, 6), (108, 6, 8, 14)]);
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
            let envelope = Envelope::of(&steps, at(skipped), at(end));
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
