//! What was worked out a moment ago.
//!
//! A step downhill moves one parameter at a time, and the residuals are a sum of a part that depends on some parameters and
//! a part that depends on the others. So most parts are those of an evaluation just before.

/// The last values of a function of this many numbers, which takes long.
#[derive(Clone, Debug, Default)]
pub(super) struct Memo<const N: usize> {
    known: Vec<([f64; N], Vec<f64>)>,
    /// The place that is overwritten next.
    oldest: usize,
}

/// A walk moves three parameters of a part to both sides of where it stands: these are seven evaluations, and the next step.
const KEPT: usize = 8;

impl<const N: usize> Memo<N> {
    /// The values at these numbers, bit by bit those that `work_out` gives.
    pub(super) fn at(&mut self, key: [f64; N], work_out: impl FnOnce() -> Vec<f64>) -> &[f64] {
        let is_same = |known: &[f64; N]| known.map(f64::to_bits) == key.map(f64::to_bits);
        let place = match self.known.iter().position(|(known, _)| is_same(known)) {
            Some(place) => place,
            None if self.known.len() < KEPT => {
                self.known.push((key, work_out()));
                self.known.len() - 1
            }
            None => {
                let place = self.oldest;
                self.oldest = (place + 1) % KEPT;
                self.known[place] = (key, work_out());
                place
            }
        };
        &self.known[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_not_worked_out_again() {
        let mut memo = Memo::<2>::default();
        let mut calls = 0;
        for round in 0..3 {
            for number in 0..KEPT {
                let key = [number as f64, 0.5];
                let values = memo.at(key, || {
                    calls += 1;
                    vec![key[0] + key[1]]
                });
                assert_eq!(values, [number as f64 + 0.5], "{round}");
            }
        }
        assert_eq!(calls, KEPT);
        assert_eq!(memo.at([99.0, 0.0], || vec![1.0]), [1.0]);
        assert_eq!(memo.at([0.0, 0.5], || vec![2.0]), [2.0], "the oldest had to go");
    }
}
