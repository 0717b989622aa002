//! A socket: how fast it runs under a cap, and what it draws.
//!
//! Power is what is always drawn (the uncore, and the leakage of each core in use), plus what the
//! cores' switching draws, plus what moving data to and from memory draws. Switching costs
//! `heat · f · V²` a core; voltage rises with frequency in a straight line, so this is somewhat
//! less than cubic in `f`. Cores that wait, for memory or for others, switch less.
//!
//! A cap is met by the highest frequency that fits below it. Where even the lowest is too much, the
//! clock is stopped for part of the time.

use super::CORES;

/// Watts of a socket that does nothing, without its cores.
const UNCORE_WATTS: f64 = 15.0;
/// Watts that a core in use leaks.
const LEAKAGE_WATTS: f64 = 1.0;
/// Watts of a memory controller and cache that are busy all the time.
const MEMORY_WATTS: f64 = 10.0;
/// The lowest frequency.
const LOWEST_GHZ: f64 = 1.2;
/// The highest frequency without Turbo.
const NOMINAL_GHZ: f64 = 2.6;
/// The highest Turbo frequency with every core in use.
pub(super) const TURBO_GHZ: f64 = 3.0;
/// What Turbo adds to that when half of the cores rest; in between, in proportion.
const TURBO_GAIN_GHZ: f64 = 0.3;
/// The cap at which Turbo is on, in watts.
const TURBO_CAP: f64 = 115.0;
/// The share of a cap that a socket is held at, where the cap is what limits it.
const REGULATED: f64 = 0.97;
/// The least part of the time that the clock can run.
const LEAST_DUTY: f64 = 1.0 / 16.0;

/// How a socket's cores spend their time: shares that add up to 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Occupation {
    /// Waiting for memory.
    pub(super) stalled: f64,
    /// Waiting for other cores or nodes, in a loop that asks whether they are ready.
    pub(super) waiting: f64,
}

impl Occupation {
    /// How much cores switch, compared with cores that compute all the time.
    fn switching(self) -> f64 {
        1.0 - 0.3 * self.stalled - 0.35 * self.waiting
    }
}

/// Work on a socket, as far as power is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Cores in use.
    pub(super) cores: f64,
    /// Watts of a computing core for each GHz · V².
    pub(super) heat: f64,
}

/// How fast a socket runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Speed {
    /// Its frequency while the clock runs.
    pub(super) ghz: f64,
    /// The part of the time that it does.
    pub(super) duty: f64,
}

/// GHz · V² at a frequency: what switching is proportional to.
fn switching_cost(ghz: f64) -> f64 {
    let volts = 0.7 + 0.15 * ghz;
    ghz * volts * volts
}

/// Watts that are drawn even when the clock stands still.
fn resting_watts(cores: f64) -> f64 {
    UNCORE_WATTS + cores * LEAKAGE_WATTS
}

/// Watts of a socket at a frequency.
pub(super) fn watts(work: Work, ghz: f64, occupation: Occupation) -> f64 {
    resting_watts(work.cores)
        + work.cores * work.heat * switching_cost(ghz) * occupation.switching()
        + MEMORY_WATTS * occupation.stalled
}

/// The heat of work that makes a socket draw so much at a frequency: [`watts`], turned around.
pub(super) fn heat(total: f64, cores: f64, ghz: f64, occupation: Occupation) -> f64 {
    let switching = total - resting_watts(cores) - MEMORY_WATTS * occupation.stalled;
    switching / (cores * switching_cost(ghz) * occupation.switching())
}

/// The highest frequency under a cap, with this many cores of a node in use.
fn ceiling(cores: u32, cap: f64) -> f64 {
    if cap < TURBO_CAP {
        return NOMINAL_GHZ;
    }
    let resting = f64::from(CORES.saturating_sub(cores)) / f64::from(CORES);
    TURBO_GHZ + TURBO_GAIN_GHZ * (2.0 * resting).min(1.0)
}

/// How fast a socket runs under a cap and what it draws, given what it would draw at each frequency.
pub(super) fn settle(cores: u32, cap: f64, watts: impl Fn(f64) -> f64) -> (Speed, f64) {
    let limit = REGULATED * cap;
    let ceiling = ceiling(cores, cap);
    if watts(ceiling) <= limit {
        return (Speed { ghz: ceiling, duty: 1.0 }, watts(ceiling));
    }
    let lowest = watts(LOWEST_GHZ);
    if lowest > limit {
        let resting = resting_watts(f64::from(cores) / f64::from(super::SOCKETS));
        let duty = ((limit - resting) / (lowest - resting)).clamp(LEAST_DUTY, 1.0);
        return (Speed { ghz: LOWEST_GHZ, duty }, resting + duty * (lowest - resting));
    }
    let ghz = highest_within(limit, LOWEST_GHZ, ceiling, &watts);
    (Speed { ghz, duty: 1.0 }, watts(ghz))
}

/// The highest frequency whose power is within a limit, by bisection: `fits` is one that is,
/// `exceeds` one that is not.
fn highest_within(limit: f64, mut fits: f64, mut exceeds: f64, watts: impl Fn(f64) -> f64) -> f64 {
    // Forty halvings of 2 GHz leave a fraction of a hertz.
    for _ in 0..40 {
        let middle = (fits + exceeds) / 2.0;
        if watts(middle) <= limit {
            fits = middle;
        } else {
            exceeds = middle;
        }
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPUTING: Occupation = Occupation { stalled: 0.0, waiting: 0.0 };
    const STALLED: Occupation = Occupation { stalled: 1.0, waiting: 0.0 };
    const WAITING: Occupation = Occupation { stalled: 0.0, waiting: 1.0 };

    #[test]
    fn power_worked_out_by_hand() {
        let work = Work { cores: 8.0, heat: 2.0 };
        // 15 + 8·1 + 8·2 · 2·(0.7 + 0.15·2)² = 55.
        assert!((watts(work, 2.0, COMPUTING) - 55.0).abs() < 1e-9);
        // 23 + 0.7·32 + 10, and 23 + 0.65·32.
        assert!((watts(work, 2.0, STALLED) - 55.4).abs() < 1e-9);
        assert!((watts(work, 2.0, WAITING) - 43.8).abs() < 1e-9);
        assert!((heat(55.4, 8.0, 2.0, STALLED) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn power_grows_faster_than_frequency() {
        let dynamic = |ghz| switching_cost(ghz);
        // Twice the frequency: 2.6·1.09² over 1.3·0.895² is 2.97, between linear and cubic.
        assert!((dynamic(2.6) / dynamic(1.3) - 2.97).abs() < 0.01);
    }

    #[test]
    fn turbo_is_on_without_a_cap_only() {
        let idle = |_| 20.0;
        let ghz = |cores, cap| settle(cores, cap, idle).0.ghz;
        assert_eq!([51.0, 65.0, 80.0, 95.0].map(|cap| ghz(16, cap)), [2.6; 4]);
        for (cores, expected) in [(16, 3.0), (12, 3.15), (8, 3.3), (2, 3.3)] {
            assert!((ghz(cores, 115.0) - expected).abs() < 1e-9, "{cores}");
        }
    }

    #[test]
    fn a_cap_is_met_by_the_highest_frequency_that_fits() {
        let work = Work { cores: 8.0, heat: 2.0 };
        // 55 W is what 2 GHz draw, and 97 % of the cap is the limit.
        let (speed, drawn) = settle(16, 55.0 / 0.97, |ghz| watts(work, ghz, COMPUTING));
        assert!((speed.ghz - 2.0).abs() < 1e-6 && speed.duty == 1.0, "{speed:?}");
        assert!(drawn <= 55.0 && drawn > 54.999, "{drawn}");
    }

    #[test]
    fn below_the_lowest_frequency_the_clock_stops_part_of_the_time() {
        let work = Work { cores: 8.0, heat: 2.0 };
        let power = |ghz| watts(work, ghz, COMPUTING);
        // At 1.2 GHz: 23 + 16 · 1.2·0.88² = 37.87 W, of which 23 W cannot be switched off.
        let (speed, drawn) = settle(16, 30.0 / 0.97, power);
        assert_eq!(speed.ghz, 1.2);
        assert!((speed.duty - 7.0 / 14.86848).abs() < 1e-6, "{speed:?}");
        assert!((drawn - 30.0).abs() < 1e-9, "{drawn}");
        // Less than the socket draws at rest cannot be had.
        let (speed, drawn) = settle(16, 10.0, power);
        assert_eq!(speed.duty, LEAST_DUTY);
        assert!(drawn > 23.0);
    }
}
