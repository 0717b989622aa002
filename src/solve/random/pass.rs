//! How long a job takes on so many nodes under such a cap: strong scaling after Downey ("A model
//! for speedup of parallel programs", 1997) and the answer to frequency and power after the PASS
//! model of PARM.

/// How an application answers to power: `p = a·f³ + b·f + c`, and how its time answers to frequency
/// between the caps at which that begins and ends to matter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Application {
    pub(super) name: &'static str,
    cubic: f64,
    linear: f64,
    low_cap: f64,
    high_cap: f64,
    sensitivity: f64,
}

/// Watts that a processor draws at no frequency at all.
const STILL: f64 = 13.5;

/// The applications of the PARM paper.
pub(super) const APPLICATIONS: [Application; 5] = [
    application("leanmd", 1.65, 7.74, 30.0, 52.0, 0.40),
    application("wave2d", 3.00, 10.23, 32.0, 40.0, 0.16),
    application("lulesh", 2.63, 8.36, 32.0, 54.0, 0.30),
    application("amr", 2.45, 6.57, 32.0, 54.0, 0.33),
    application("jacobi2d", 1.54, 10.13, 32.0, 37.0, 0.08),
];

const fn application(
    name: &'static str,
    cubic: f64,
    linear: f64,
    low_cap: f64,
    high_cap: f64,
    sensitivity: f64,
) -> Application {
    Application { name, cubic, linear, low_cap, high_cap, sensitivity }
}

impl Application {
    /// The frequency at a power: the one real root of the cubic.
    fn frequency(&self, power: f64) -> f64 {
        let half = (power - STILL) / (2.0 * self.cubic);
        let third = self.linear / (3.0 * self.cubic);
        let root = (half * half + third * third * third).sqrt();
        (half + root).cbrt() - (root - half).cbrt()
    }

    /// How many times as long the job takes under a cap as without one.
    pub(super) fn stretch(&self, cap: f64) -> f64 {
        let (low, high) = (self.frequency(self.low_cap), self.frequency(self.high_cap));
        let frequency = self.frequency(cap).min(high);
        // Work that scales with frequency, and time that does not, for one second at the top.
        let scale = self.sensitivity * low / ((1.0 - self.sensitivity) * (high - low));
        1.0 + scale * (high / frequency - 1.0)
    }
}

/// How an application scales: its average parallelism, and how much that varies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scaling {
    pub(super) parallelism: f64,
    pub(super) variation: f64,
}

impl Scaling {
    /// The time on so many nodes, as a share of that on one.
    pub(super) fn time(&self, nodes: u32) -> f64 {
        let (a, n) = (self.parallelism, f64::from(nodes));
        let spread = self.variation / (2.0 * a);
        if n <= a {
            (1.0 - spread) / n + spread
        } else if n <= 2.0 * a - 1.0 {
            self.variation * (1.0 - 1.0 / (2.0 * a)) / n + 1.0 / a - spread
        } else {
            1.0 / a
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequency_solves_the_cubic() {
        for application in APPLICATIONS {
            for power in [30.0, 45.0, 60.0] {
                let f = application.frequency(power);
                let again = application.cubic * f.powi(3) + application.linear * f + STILL;
                assert!((again - power).abs() < 1e-9, "{application:?}: {again} for {power}");
            }
        }
    }

    #[test]
    fn the_low_cap_costs_what_the_sensitivity_says() {
        for application in APPLICATIONS {
            // (T_low − T_high) / T_low = β.
            let low = application.stretch(application.low_cap);
            assert!(((low - 1.0) / low - application.sensitivity).abs() < 1e-12);
            assert_eq!(application.stretch(60.0), 1.0);
        }
    }

    #[test]
    fn scaling_begins_at_one_and_ends_at_the_parallelism() {
        let scaling = Scaling { parallelism: 10.0, variation: 0.5 };
        assert_eq!(scaling.time(1), 1.0);
        assert_eq!(scaling.time(100), 0.1);
        // At n = A both branches agree: (1 − 0.025)/10 + 0.025.
        assert!((scaling.time(10) - 0.1225).abs() < 1e-12);
        // At n = 19, the end of the middle branch: 0.5·0.95/19 + 0.1 − 0.025 = 0.1.
        assert!((scaling.time(19) - 0.1).abs() < 1e-12);
    }
}
