//! Random numbers from a seed (SplitMix64), so that a seed names a run.

/// A source of random numbers.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66_D1CE_4E5B)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    /// From 0 up to, but not including, 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From 0 up to, but not including, `count`.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }

    pub(crate) fn chance(&mut self, of: f64) -> bool {
        self.unit() < of
    }

    /// One of these, each as likely as its weight says.
    pub(crate) fn one_of<T: Copy>(&mut self, weighted: &[(T, f64)]) -> T {
        let all: f64 = weighted.iter().map(|(_, weight)| weight).sum();
        let mut left = self.unit() * all;
        for (value, weight) in weighted {
            left -= weight;
            if left < 0.0 {
                return *value;
            }
        }
        weighted[weighted.len() - 1].0
    }

    /// Spread over a factor of about `spread` both ways around a middle (the sum of uniform numbers is nearly normal).
    pub(crate) fn around(&mut self, middle: f64, spread: f64) -> f64 {
        let sum: f64 = (0..6).map(|_| self.unit()).sum();
        middle * spread.powf((sum - 3.0) / 1.5)
    }
}
