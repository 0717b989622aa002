//! Profiles of the five applications on a machine like the one of the PARM paper: 38 nodes, each
//! with one processor of six cores, under the six caps of its experiments.
//!
//! How the applications respond to a cap is published ([`Application`]). How they scale is not:
//! T₁, A and σ are synthetic, so that the five reach from codes that gain little beyond a dozen nodes
//! to codes that use nearly all of them. Each time is off by up to 2 % in either direction, as
//! measured ones are. The draw is that of the processors alone, as everywhere in profiles; what the
//! rest of a node draws (56 W there) is for who plans with it. It is exact: the cap, or what the
//! application has use for.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use super::{Application, Pass, Scaling, Throttling};
use crate::profile::{Configuration, Origin, Profile, Row};
use crate::units::{Span, Watts};

/// The numbers of nodes the applications were run on.
pub(crate) const NODE_COUNTS: [u32; 12] = [1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32, 38];
/// The caps of a processor, in watts. Under the first LeanMD alone can run.
pub(crate) const CAPS: [u32; 6] = [30, 32, 34, 39, 45, 55];
/// The cores of a node.
pub(crate) const CORES: u32 = 6;

/// The largest error of a time, as a share.
const LARGEST_ERROR: f64 = 0.02;

/// The applications with T₁ in seconds, A and σ, which are synthetic.
const SCALINGS: [(Application, f64, f64, f64); 5] = [
    (Application::LEAN_MD, 5400.0, 30.0, 0.4),
    (Application::WAVE2D, 3000.0, 24.0, 0.8),
    (Application::LULESH, 4200.0, 18.0, 0.7),
    (Application::AMR, 3600.0, 12.0, 0.9),
    (Application::JACOBI2D, 2400.0, 34.0, 0.3),
];

/// The profiles of the five applications, in all combinations in which they can run.
pub fn generate(seed: u64) -> Vec<Profile> {
    // A stream of its own, so that a workload drawn from the same seed knows nothing of it.
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed ^ 0x7061_7373_5f74_6162);
    let caps = CAPS.map(Watts::from_watts);
    let profile = |(application, t1, a, sigma): (Application, f64, f64, f64)| {
        let throttling = application.throttling();
        let pass = Pass { scaling: Scaling::of(t1, a, sigma), throttling };
        let timings = pass.timings(&NODE_COUNTS, &caps).into_iter();
        let rows = timings.filter_map(|timing| {
            let configuration =
                Configuration { nodes: timing.nodes, cores: CORES, cap: timing.cap };
            let millis = timing.seconds * measuring_error(&mut numbers) * 1000.0;
            Some(Row {
                configuration,
                time: Span::from_millis(millis.round() as u64),
                power: drawn(&throttling, &configuration)?,
                origin: Origin::Measured,
            })
        });
        Profile { application: application.name.to_owned(), rows: rows.collect() }
    };
    SCALINGS.map(profile).into()
}

/// What all processors draw together.
fn drawn(throttling: &Throttling, configuration: &Configuration) -> Option<Watts> {
    let each = throttling.drawn_watts(configuration.cap.as_f64())?;
    Watts::from_f64_rounded_up(each)?.checked_mul(configuration.nodes)
}

/// What a time is multiplied by. The sum of two even errors: small ones are more common than large
/// ones, and all are within bounds.
fn measuring_error(numbers: &mut impl Rng) -> f64 {
    let number = numbers.next_u64();
    let even = |bits: u64| (bits & 0xffff_ffff) as f64 / 4_294_967_296.0 - 0.5;
    1.0 + LARGEST_ERROR * (even(number) + even(number >> 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_made_up_are_valid() {
        for (application, t1, a, sigma) in SCALINGS {
            let checked = Scaling::new(t1, a, sigma);
            assert_eq!(checked, Ok(Scaling::of(t1, a, sigma)), "{}", application.name);
        }
    }

    #[test]
    fn rows_are_near_the_laws() {
        let profiles = generate(1);
        let names: Vec<&str> = profiles.iter().map(|it| it.application.as_str()).collect();
        assert_eq!(names, Application::ALL.map(|it| it.name));
        // 12 numbers of nodes; LeanMD under six caps, the others under five.
        let counts: Vec<usize> = profiles.iter().map(|profile| profile.rows.len()).collect();
        assert_eq!(counts, [72, 60, 60, 60, 60]);
        for (profile, (_, t1, a, sigma)) in profiles.iter().zip(SCALINGS) {
            let scaling = Scaling::new(t1, a, sigma).unwrap();
            for row in profile.rows.iter().filter(|row| row.configuration.cap.as_f64() == 55.0) {
                // Under 55 W none of them is slowed.
                let off = row.time.secs_f64() / scaling.seconds(row.configuration.nodes).unwrap();
                assert!((off - 1.0).abs() < LARGEST_ERROR + 1e-4, "{row:?}");
            }
        }
        // Jacobi2D has no use for more than 37 W: 38 · 37 W.
        assert_eq!(profiles[4].rows[59].power, Watts::from_watts(1406));
        assert_eq!(profiles[4].rows[0].power, Watts::from_watts(32));
        assert_eq!(generate(1), profiles);
        assert_ne!(generate(2), profiles);
    }
}
