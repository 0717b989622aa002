//! What measuring adds: a run repeated takes a little longer or shorter, and draws a little more or
//! less.
//!
//! An error is the sum of two even ones, which makes small errors more common than large ones and
//! keeps all of them within bounds.

use rand::Rng;

/// The largest error of a time, as a share.
pub(super) const LARGEST_TIME_ERROR: f64 = 0.03;
/// The largest error of a power, as a share.
pub(super) const LARGEST_POWER_ERROR: f64 = 0.02;

/// What one run's true figures are multiplied by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    pub(super) time: f64,
    pub(super) power: f64,
}

impl Noise {
    /// Takes one number: its quarters are the four even errors.
    pub(super) fn draw(numbers: &mut impl Rng) -> Self {
        let number = numbers.next_u64();
        // Evenly spaced within −½ and ½, never at either end.
        let even = |quarter: u32| {
            let bits = (number >> (16 * quarter)) & 0xffff;
            (bits as f64 + 0.5) / 65_536.0 - 0.5
        };
        Noise {
            time: 1.0 + LARGEST_TIME_ERROR * (even(0) + even(1)),
            power: 1.0 + LARGEST_POWER_ERROR * (even(2) + even(3)),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Dxsm;

    use super::*;

    #[test]
    fn errors_are_small_unbiased_and_independent() {
        let mut numbers = Pcg64Dxsm::seed_from_u64(1);
        let draws = 100_000;
        let (mut time, mut power, mut time_squared, mut both) = (0.0, 0.0, 0.0, 0.0);
        for _ in 0..draws {
            let noise = Noise::draw(&mut numbers);
            // In units of the largest error.
            let t = (noise.time - 1.0) / LARGEST_TIME_ERROR;
            let p = (noise.power - 1.0) / LARGEST_POWER_ERROR;
            assert!(t.abs() <= 1.0 && p.abs() <= 1.0, "{noise:?}");
            time += t;
            power += p;
            time_squared += t * t;
            both += t * p;
        }
        // The sum of two even errors of half a unit has a variance of 1/6; a mean of 100 000 of
        // them a standard error of 0.0013.
        let mean = |sum: f64| sum / f64::from(draws);
        assert!(mean(time).abs() < 0.006 && mean(power).abs() < 0.006);
        assert!((mean(time_squared) - 1.0 / 6.0).abs() < 0.005);
        assert!(mean(both).abs() < 0.004);
    }
}
