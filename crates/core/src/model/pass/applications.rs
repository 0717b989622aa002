//! The five applications of the PARM paper, as its authors fitted them.
//!
//! The figures are configuration: they agree with the ranges that the paper's text gives, and are no
//! more exact than that. For what a processor always draws there is only such a range, 13 to 14 W,
//! and its middle is taken for all. How far the applications scale was not published.

use super::{PowerLaw, Throttling};

/// What a processor always draws, in watts.
pub(crate) const STATIC_WATTS: f64 = 13.5;

/// How one application responds to a cap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Application {
    /// Its name.
    pub name: &'static str,
    cubic: f64,
    linear: f64,
    lowest_watts: f64,
    highest_watts: f64,
    sensitivity: f64,
}

impl Application {
    /// Molecular dynamics.
    pub const LEAN_MD: Application = Application::new("LeanMD", 1.65, 7.74, 30.0, 52.0, 0.40);
    /// A finite-difference wave, a stencil.
    pub const WAVE2D: Application = Application::new("Wave2D", 3.00, 10.23, 32.0, 40.0, 0.16);
    /// Shock hydrodynamics.
    pub const LULESH: Application = Application::new("Lulesh", 2.63, 8.36, 32.0, 54.0, 0.30);
    /// Adaptive mesh refinement.
    pub const AMR: Application = Application::new("AMR", 2.45, 6.57, 32.0, 54.0, 0.33);
    /// Jacobi iteration, a stencil.
    pub const JACOBI2D: Application = Application::new("Jacobi2D", 1.54, 10.13, 32.0, 37.0, 0.08);

    /// The five applications of the paper.
    pub const ALL: [Application; 5] = [
        Application::LEAN_MD,
        Application::WAVE2D,
        Application::LULESH,
        Application::AMR,
        Application::JACOBI2D,
    ];

    const fn new(
        name: &'static str,
        cubic: f64,
        linear: f64,
        lowest_watts: f64,
        highest_watts: f64,
        sensitivity: f64,
    ) -> Self {
        Application { name, cubic, linear, lowest_watts, highest_watts, sensitivity }
    }

    /// How its time grows under a cap.
    pub(crate) fn throttling(&self) -> Throttling {
        let law = PowerLaw::of(self.cubic, self.linear, STATIC_WATTS);
        Throttling::of(law, self.lowest_watts, self.highest_watts, self.sensitivity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_figures_are_valid() {
        for application in Application::ALL {
            let Application { cubic, linear, lowest_watts, highest_watts, sensitivity, .. } =
                application;
            let law = PowerLaw::new(cubic, linear, STATIC_WATTS).unwrap();
            let checked = Throttling::new(law, lowest_watts, highest_watts, sensitivity);
            assert_eq!(checked, Ok(application.throttling()), "{}", application.name);
        }
    }

    /// Sandy Bridge processors of 2 GHz, with turbo up to 2.5 GHz.
    #[test]
    fn frequencies_are_those_of_the_processors() {
        for application in Application::ALL {
            let throttling = application.throttling();
            let ghz = |watts| throttling.law().ghz(watts).unwrap();
            let [low, high] = [throttling.lowest_watts(), throttling.highest_watts()].map(ghz);
            assert!((1.2..1.6).contains(&low), "{}: {low} GHz", application.name);
            assert!((1.5..2.5).contains(&high), "{}: {high} GHz", application.name);
        }
    }

    /// LeanMD at 30 W: 1.65·1.46³ + 7.74·1.46 = 5.135 + 11.300 = 16.435 W, and 16.5 W are left for
    /// speed, so it runs at a little over 1.46 GHz. At 52 W: 1.65·2.32³ + 7.74·2.32 = 20.604 +
    /// 17.957 = 38.561 W of 38.5 W, so a little below 2.32 GHz. 1 − 1.46/2.32 = 0.37 is less than
    /// its sensitivity of 0.40. So it is with AMR: 0.31 and 0.33.
    #[test]
    fn two_of_them_gain_more_than_the_frequency_does() {
        let lean_md = Application::LEAN_MD.throttling().law();
        assert!((lean_md.ghz(30.0).unwrap() - 1.4635).abs() < 1e-3, "{lean_md:?}");
        assert!((lean_md.ghz(52.0).unwrap() - 2.318).abs() < 1e-3, "{lean_md:?}");
        let gains_more = |application: &Application| {
            let throttling = application.throttling();
            let ghz = |watts| throttling.law().ghz(watts).unwrap();
            let ratio = ghz(throttling.lowest_watts()) / ghz(throttling.highest_watts());
            throttling.sensitivity() > 1.0 - ratio
        };
        let all = Application::ALL;
        let names: Vec<&str> = all.iter().filter(|it| gains_more(it)).map(|it| it.name).collect();
        assert_eq!(names, ["LeanMD", "AMR"]);
    }
}
