//! The power of a processor at a frequency, and its frequency under a cap.
//!
//! p = a·f³ + b·f + c, with f in GHz: c is drawn at any frequency, b·f is dynamic power at constant
//! voltage, a·f³ that of a voltage that rises with frequency. The power left for speed is q = p − c.
//!
//! The inverse is a root of a cubic in closed form, a difference of two cube roots:
//! with u = q/(2a) and v = b/(3a), it is α − β, where α = ∛(√(u² + v³) + u) and
//! β = ∛(√(u² + v³) − u). Taken as it stands, everything is lost where q or a is small: both roots
//! become √v. So it is written without a difference. As α³ − β³ = 2u and αβ = v,
//!
//! f = (α³ − β³)/(α² + αβ + β²) = 2u/(α² + v + v²/α²).
//!
//! Frequencies are first measured against the lesser of q/b and ∛(q/a), which the answer never
//! exceeds. Then nothing overflows, and neither a = 0 nor b = 0 is a special case.

use super::{OutOfRange, checked};

/// What a processor draws at a frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerLaw {
    cubic: f64,
    linear: f64,
    constant: f64,
}

impl PowerLaw {
    /// a in W/GHz³, b in W/GHz and c in W.
    ///
    /// # Errors
    ///
    /// If one of them is negative, or a and b are both zero.
    pub fn new(cubic: f64, linear: f64, constant: f64) -> Result<Self, OutOfRange> {
        let (a, b, c) = (cubic, linear, constant);
        checked("the cubic coefficient of power", a, a >= 0.0, "at least zero")?;
        let rises = b > 0.0 || (b == 0.0 && a > 0.0);
        let must = "at least zero, and above it where the cubic one is zero";
        checked("the linear coefficient of power", b, rises, must)?;
        checked("the power that is always drawn", c, c >= 0.0, "at least zero")?;
        Ok(PowerLaw::of(a, b, c))
    }

    /// A law that is known to be right.
    pub(super) const fn of(cubic: f64, linear: f64, constant: f64) -> Self {
        PowerLaw { cubic, linear, constant }
    }

    /// c, in W.
    pub(crate) fn constant(&self) -> f64 {
        self.constant
    }

    /// The watts at a frequency.
    pub fn watts(&self, ghz: f64) -> f64 {
        self.cubic * ghz.powi(3) + self.linear * ghz + self.constant
    }

    /// The frequency at which this many watts are drawn. Nothing, if that is less than what is always
    /// drawn, or no number.
    pub(crate) fn ghz(&self, watts: f64) -> Option<f64> {
        let left = watts - self.constant;
        (left >= 0.0 && left.is_finite()).then(|| root(self.cubic, self.linear, left))
    }
}

/// The f ≥ 0 at which a·f³ + b·f = q, for a, b and q that are not negative, and a or b above zero.
pub(super) fn root(a: f64, b: f64, q: f64) -> f64 {
    if q <= 0.0 {
        return 0.0;
    }
    let most = (q / b).min(libm::cbrt(q / a));
    // With f as a share of that: a·f³ + b·f = 1, where a and b are at most 1 and one of them is.
    let (a, b) = (a * most / q * most * most, b * most / q);
    if a.is_nan() || a < f64::EPSILON {
        // The cubic part is lost in rounding, or the frequency is beyond all numbers.
        return most;
    }
    let (u, v) = (0.5 / a, b / (3.0 * a));
    let square = libm::cbrt((u * u + v.powi(3)).sqrt() + u).powi(2);
    most * 2.0 * u / (square + v + v * v / square)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same root by halving an interval, 200 times.
    fn by_halving(a: f64, b: f64, q: f64) -> f64 {
        let (mut low, mut high) = (0.0, (q / b).min((q / a).cbrt()));
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if a * middle * middle * middle + b * middle < q { low = middle } else { high = middle }
        }
        high
    }

    #[test]
    fn watts_and_frequencies_worked_out_by_hand() {
        // 2·1.5³ + 10·1.5 + 13 = 6.75 + 15 + 13.
        let law = PowerLaw::new(2.0, 10.0, 13.0).unwrap();
        assert!((law.watts(1.5) - 34.75).abs() < 1e-12);
        assert!((law.ghz(34.75).unwrap() - 1.5).abs() < 1e-12);
        // 2·2³ + 10·2 + 13 = 16 + 20 + 13.
        assert!((law.ghz(49.0).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(law.ghz(13.0), Some(0.0));
        assert_eq!(law.ghz(12.9), None);
        assert_eq!(law.ghz(f64::NAN), None);
        assert_eq!(law.ghz(f64::INFINITY), None);
    }

    #[test]
    fn either_coefficient_may_be_zero() {
        // ∛(54/2) and 54/2.
        let cubic = PowerLaw::new(2.0, 0.0, 0.0).unwrap();
        assert!((cubic.ghz(54.0).unwrap() - 3.0).abs() < 1e-12);
        let linear = PowerLaw::new(0.0, 2.0, 0.0).unwrap();
        assert_eq!(linear.ghz(54.0), Some(27.0));
    }

    #[test]
    fn nothing_is_lost_where_the_cube_roots_nearly_cancel() {
        // A millionth of a watt above c: q/b = 10⁻⁷ GHz, less 2·10⁻²¹/10 of it.
        let near = PowerLaw::new(2.0, 10.0, 0.0).unwrap().ghz(1e-6).unwrap();
        assert!((near / 1e-7 - 1.0).abs() < 1e-13, "{near}");
        // Hardly any cubic part: f = q/b · (1 − a·f²/b) to first order, 3 · (1 − 9·10⁻¹³).
        let tiny = PowerLaw::new(1e-12, 10.0, 0.0).unwrap().ghz(30.0).unwrap();
        assert!((tiny - 3.0 * (1.0 - 9e-13)).abs() < 1e-14, "{:e}", tiny - 3.0);
        // The form with a difference of cube roots loses half of its digits near c.
        let (u, v): (f64, f64) = (1e-6 / 4.0, 10.0 / 6.0);
        let s = (u * u + v.powi(3)).sqrt();
        let difference = (s + u).cbrt() - (s - u).cbrt();
        assert!((difference / 1e-7 - 1.0).abs() > 1e-12, "{difference}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |a, b, c| PowerLaw::new(a, b, c).unwrap_err().what;
        assert_eq!(error(-1.0, 1.0, 0.0), "the cubic coefficient of power");
        assert_eq!(error(1.0, -1.0, 0.0), "the linear coefficient of power");
        assert_eq!(error(0.0, 0.0, 0.0), "the linear coefficient of power");
        assert_eq!(error(1.0, f64::NAN, 0.0), "the linear coefficient of power");
        assert_eq!(error(1.0, 1.0, -0.5), "the power that is always drawn");
    }

    proptest! {
        #[test]
        fn the_closed_form_is_the_root(
            a in -15.0..6.0f64, b in -15.0..6.0f64, q in -9.0..9.0f64,
        ) {
            let [a, b, q] = [a, b, q].map(|exponent| 10f64.powf(exponent));
            let (said, plain) = (root(a, b, q), by_halving(a, b, q));
            prop_assert!((said / plain - 1.0).abs() < 1e-12, "{said:e} instead of {plain:e}");
        }

        #[test]
        fn frequencies_come_back(
            a in 0.0..10.0f64, b in 0.01..20.0f64, c in 0.0..50.0f64, ghz in 0.01..5.0f64,
        ) {
            let law = PowerLaw::new(a, b, c).unwrap();
            // What adding c costs in digits is not the inverse's fault.
            let tolerance = 1e-12 * (1.0 + law.watts(ghz) / (b * ghz));
            let back = law.ghz(law.watts(ghz)).unwrap();
            prop_assert!((back / ghz - 1.0).abs() < tolerance, "{back} instead of {ghz}");
        }

        #[test]
        fn absurd_laws_give_numbers(
            a in 0.0..=f64::MAX, b in f64::MIN_POSITIVE..=f64::MAX, watts in 0.0..=f64::MAX,
        ) {
            let ghz = PowerLaw::new(a, b, 0.0).unwrap().ghz(watts).unwrap();
            prop_assert!(ghz >= 0.0 && !ghz.is_nan());
        }
    }
}
