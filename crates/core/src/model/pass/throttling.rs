//! How time grows as a cap lowers the frequency.
//!
//! A run is work that depends on frequency and work that does not, t(f) = W/f + M, up to the
//! frequency f_h beyond which the processor does not go. Caps from p_h on cost nothing; p_l is the
//! lowest cap under which the application can run at all. The sensitivity β = (T_l − T_h)/T_l says
//! what it loses there: under p_l it takes 1/(1 − β) times as long as under p_h. Between them, with
//! W and M from these two points, it takes
//!
//! 1 + β/(1 − β) · (f_h/f − 1)/(f_h/f_l − 1)
//!
//! times as long, where f, f_l and f_h are the frequencies under the caps. Only ratios of frequencies
//! count, so their unit does not matter.
//!
//! Below p_l the law has nothing to say, and [`Throttling::slowdown`] says nothing.
//!
//! M may come out negative, if β is above 1 − f_l/f_h: the application then gains more than the
//! frequency does. That is odd, but the published figures of LeanMD and AMR are such, and the
//! slowdown is still at least one and falls with the cap.

use super::{OutOfRange, PowerLaw, checked};

/// How the time of an application grows under a cap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throttling {
    law: PowerLaw,
    lowest_watts: f64,
    highest_watts: f64,
    sensitivity: f64,
    /// f_h.
    full_ghz: f64,
    /// β/(1 − β)/(f_h/f_l − 1): what each f_h/f beyond one costs.
    steepness: f64,
}

impl Throttling {
    /// The law of the processor, p_l and p_h in watts, and β.
    ///
    /// # Errors
    ///
    /// If p_l is not above what is always drawn, p_h is not above p_l, or β is not at least zero and
    /// below one.
    pub fn new(
        law: PowerLaw,
        lowest_watts: f64,
        highest_watts: f64,
        sensitivity: f64,
    ) -> Result<Self, OutOfRange> {
        let (low, high, beta) = (lowest_watts, highest_watts, sensitivity);
        let must = format!("above {} W, which are always drawn", law.constant());
        checked("the lowest cap", low, low > law.constant(), must)?;
        checked("the highest cap of use", high, high > low, format!("above the lowest, {low} W"))?;
        let must = "at least zero and below one";
        checked("the sensitivity", beta, (0.0..1.0).contains(&beta), must)?;
        let throttling = Throttling::of(law, low, high, beta);
        let must = format!("far enough above {low} W for the frequency to differ");
        let differs = (0.0..f64::INFINITY).contains(&throttling.steepness);
        checked("the highest cap of use", high, differs, must)?;
        Ok(throttling)
    }

    /// The same of what is known to be right.
    pub(super) fn of(
        law: PowerLaw,
        lowest_watts: f64,
        highest_watts: f64,
        sensitivity: f64,
    ) -> Self {
        let ghz = |watts| law.ghz(watts).unwrap_or(f64::NAN);
        let full_ghz = ghz(highest_watts);
        let loss = full_ghz / ghz(lowest_watts) - 1.0;
        let steepness = sensitivity / (1.0 - sensitivity) / loss;
        Throttling { law, lowest_watts, highest_watts, sensitivity, full_ghz, steepness }
    }

    /// What the processor draws at a frequency.
    #[cfg(test)]
    pub(crate) fn law(&self) -> PowerLaw {
        self.law
    }

    /// p_l: the lowest cap under which the application can run, in watts.
    pub fn lowest_watts(&self) -> f64 {
        self.lowest_watts
    }

    /// p_h: the cap from which on nothing is gained, in watts.
    pub(crate) fn highest_watts(&self) -> f64 {
        self.highest_watts
    }

    /// β: the share of the time under the lowest cap that a full feed saves.
    #[cfg(test)]
    pub(crate) fn sensitivity(&self) -> f64 {
        self.sensitivity
    }

    /// How many times as long the application takes under a cap as without one. Nothing, if the
    /// cap is below the lowest one or no number.
    pub(crate) fn slowdown(&self, cap_watts: f64) -> Option<f64> {
        if cap_watts >= self.highest_watts {
            return Some(1.0);
        }
        if cap_watts >= self.lowest_watts {
            let loss = self.full_ghz / self.law.ghz(cap_watts)? - 1.0;
            return Some(1.0 + self.steepness * loss.max(0.0));
        }
        None
    }

    /// The same, for any cap that is a number: below the lowest one the processor skips cycles, and
    /// its speed falls with what is left to it beyond what it always draws. That is not part of
    /// PASS, and at most a hundred times as long.
    pub(crate) fn stretched(&self, cap_watts: f64) -> f64 {
        self.slowdown(cap_watts).unwrap_or_else(|| {
            let still = self.law.constant();
            let full = self.lowest_watts - still;
            let left = (cap_watts - still).max(0.01 * full);
            full / left / (1.0 - self.sensitivity)
        })
    }

    /// What a processor draws under a cap: all of it, until it has no use for more. Nothing, if the
    /// application cannot run.
    pub(crate) fn drawn_watts(&self, cap_watts: f64) -> Option<f64> {
        (cap_watts >= self.lowest_watts).then(|| cap_watts.min(self.highest_watts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1.5 GHz at 34.75 W and 2 GHz at 49 W; see the tests of the power law.
    fn law() -> PowerLaw {
        PowerLaw::new(2.0, 10.0, 13.0).unwrap()
    }

    /// 13 W are always drawn and the lowest cap is 30 W, under which a job with β = 0.2 takes 1.25
    /// times as long. Under 21.5 W half of the 17 W are left: 2.5 times.
    #[test]
    fn below_the_lowest_cap_cycles_are_skipped() {
        let throttling = Throttling::new(law(), 30.0, 49.0, 0.2).unwrap();
        assert!((throttling.stretched(30.0) - 1.25).abs() < 1e-12);
        assert!((throttling.stretched(21.5) - 2.5).abs() < 1e-12);
        assert!((throttling.stretched(5.0) - 125.0).abs() < 1e-9);
        assert_eq!(throttling.stretched(49.0), 1.0);
    }

    #[test]
    fn slowdowns_worked_out_by_hand() {
        // 2·1³ + 10·1 + 13 = 25 W is 1 GHz.
        let throttling = Throttling::new(law(), 25.0, 49.0, 0.25).unwrap();
        for (watts, slowdown) in [
            (25.0, 4.0 / 3.0), // 1/(1 − β)
            // W = T_h·β·f_l·f_h/((1 − β)(f_h − f_l)) = 0.25·1·2/(0.75·1) = 2/3 and
            // M = 1 − 0.25·1/(0.75·1) = 2/3, so 2/3/1.5 + 2/3 = 10/9.
            (34.75, 10.0 / 9.0),
            (49.0, 1.0),
            (1000.0, 1.0),
        ] {
            let said = throttling.slowdown(watts).unwrap();
            assert!((said - slowdown).abs() < 1e-12, "{watts} W: {said}");
        }
        assert_eq!(throttling.slowdown(24.999), None);
        assert_eq!(throttling.slowdown(f64::NAN), None);
        assert_eq!(throttling.drawn_watts(24.9), None);
        assert_eq!(throttling.drawn_watts(30.0), Some(30.0));
        assert_eq!(throttling.drawn_watts(55.0), Some(49.0));
    }

    #[test]
    fn an_application_that_is_not_sensitive_does_not_care() {
        let throttling = Throttling::new(law(), 25.0, 49.0, 0.0).unwrap();
        assert_eq!(throttling.slowdown(25.0), Some(1.0));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |low, high, beta| Throttling::new(law(), low, high, beta).unwrap_err().what;
        assert_eq!(error(13.0, 49.0, 0.1), "the lowest cap");
        assert_eq!(error(f64::NAN, 49.0, 0.1), "the lowest cap");
        assert_eq!(error(30.0, 30.0, 0.1), "the highest cap of use");
        assert_eq!(error(30.0, f64::INFINITY, 0.1), "the highest cap of use");
        assert_eq!(error(30.0, 49.0, 1.0), "the sensitivity");
        assert_eq!(error(30.0, 49.0, -0.1), "the sensitivity");
        // A thirtieth of 31 and of the next number are the same number.
        let linear = PowerLaw::new(0.0, 30.0, 0.0).unwrap();
        let error = Throttling::new(linear, 31.0, 31.0_f64.next_up(), 0.1).unwrap_err();
        assert_eq!(error.must, "far enough above 31 W for the frequency to differ");
    }
}
