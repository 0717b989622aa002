//! Known parameters are found again, and what cannot be found is said.

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use super::*;
use crate::model::pass::Application;
use crate::model::pass::testbed::NODE_COUNTS;

const CAPS: [f64; 9] = [30.0, 32.0, 34.0, 37.0, 40.0, 44.0, 48.0, 52.0, 58.0];

/// An application on all combinations, each time off by up to `noise` in either direction.
fn samples(pass: &Pass, caps: &[f64], noise: f64, seed: u64) -> Vec<Sample> {
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed);
    let mut samples = Vec::new();
    for nodes in NODE_COUNTS {
        for &cap_watts in caps {
            let off = f64::from(numbers.next_u32()) / 2_147_483_648.0 - 1.0;
            if let Some(seconds) = pass.seconds(nodes, cap_watts) {
                samples.push(Sample { nodes, cap_watts, seconds: seconds * (1.0 + noise * off) });
            }
        }
    }
    samples
}

fn known(application: Application) -> Pass {
    let scaling = Scaling::new(4000.0, 22.0, 0.6).unwrap();
    Pass { scaling, throttling: application.throttling() }
}

/// The largest share by which times under a model differ from the true ones.
fn worst(model: &Pass, truth: &[Sample]) -> f64 {
    let off = |it: &Sample| model.seconds(it.nodes, it.cap_watts).unwrap() / it.seconds - 1.0;
    truth.iter().map(|sample| off(sample).abs()).fold(0.0, f64::max)
}

/// The applications have linear shares of 0.36 to 0.71. What is lost by taking 0.5 for all is small.
#[test]
fn exact_times_are_met_whatever_the_linear_share() {
    for application in Application::ALL {
        let pass = known(application);
        let exact = samples(&pass, &CAPS, 0.0, 1);
        let found = fit(&exact).unwrap();
        let name = application.name;
        assert!(worst(&found.pass, &exact) < 1e-3, "{name}: {}", worst(&found.pass, &exact));
        assert!(found.residuals.iter().all(|residual| residual.abs() < 1e-3), "{name}");
        let Estimates { one_node_seconds, average_parallelism, variation, .. } = found.estimates;
        assert!((one_node_seconds.value - 4000.0).abs() < 1.0, "{name}: {one_node_seconds:?}");
        assert!((average_parallelism.value - 22.0).abs() < 0.01, "{name}: {average_parallelism:?}");
        assert!((variation.value - 0.6).abs() < 0.01, "{name}: {variation:?}");
        let Estimates { highest_watts, sensitivity, .. } = found.estimates;
        let expected = pass.throttling;
        let off = (highest_watts.value - expected.highest_watts()).abs();
        assert!(off < 0.2, "{name}: {highest_watts:?}");
        let off = (sensitivity.value - expected.sensitivity()).abs();
        assert!(off < 1e-3, "{name}: {sensitivity:?}");
    }
}

#[test]
fn noisy_times_lead_back_to_what_they_came_from() {
    for application in Application::ALL {
        let pass = known(application);
        let exact = samples(&pass, &CAPS, 0.0, 0);
        for seed in 1..=5 {
            let found = fit(&samples(&pass, &CAPS, 0.03, seed)).unwrap();
            let what = format!("{}, seed {seed}: {:?}", application.name, found.estimates);
            assert!(worst(&found.pass, &exact) < 0.015, "{what}");
            let near = |estimate: Estimate, expected: f64, tolerance: f64| {
                assert!((estimate.value - expected).abs() < tolerance, "{expected}, {what}");
                // Not one in a thousand is off by more than four standard errors; none of 125 is.
                if let Certainty::Error(error) = estimate.certainty {
                    assert!((estimate.value - expected).abs() < 4.0 * error, "{expected}, {what}");
                }
            };
            near(found.estimates.one_node_seconds, 4000.0, 80.0);
            near(found.estimates.average_parallelism, 22.0, 0.7);
            near(found.estimates.variation, 0.6, 0.07);
            near(found.estimates.highest_watts, pass.throttling.highest_watts(), 3.0);
            near(found.estimates.sensitivity, pass.throttling.sensitivity(), 0.02);
        }
    }
}

#[test]
fn what_lies_beyond_the_samples_is_said_to() {
    // 100 nodes could be used, and 38 were; 54 W could be used, and 45 W were given.
    let scaling = Scaling::new(4000.0, 100.0, 1.0).unwrap();
    let pass = Pass { scaling, throttling: Application::LULESH.throttling() };
    let exact = samples(&pass, &[32.0, 34.0, 36.0, 39.0, 42.0, 45.0], 0.0, 1);
    let found = fit(&exact).unwrap();
    assert!(worst(&found.pass, &exact) < 1e-3);
    let Estimates { average_parallelism, highest_watts, .. } = found.estimates;
    assert_eq!(average_parallelism.certainty, Certainty::Most, "{average_parallelism:?}");
    assert!((average_parallelism.value - 38.0).abs() < 0.01);
    assert_eq!(highest_watts.certainty, Certainty::Most, "{highest_watts:?}");
    assert!((highest_watts.value - 45.0).abs() < 0.01);
}

/// With one cap alone between p_l and p_h, a later bend and a sharper one are the same.
#[test]
fn what_the_samples_do_not_tell_is_said_to_be_unknown() {
    let caps = [32.0, 34.0, 39.0, 45.0, 55.0];
    let mut samples = samples(&known(Application::JACOBI2D), &caps, 0.0, 1);
    // Off by half a per cent to either side, in the manner of a chessboard: no cap as a whole is.
    for (place, sample) in samples.iter_mut().enumerate() {
        let is_black = (place / caps.len() + place % caps.len()).is_multiple_of(2);
        sample.seconds *= if is_black { 1.005 } else { 0.995 };
    }
    let found = fit(&samples).unwrap();
    let Estimates { constant_watts, highest_watts, .. } = found.estimates;
    let is_error = |estimate: Estimate| matches!(estimate.certainty, Certainty::Error(_));
    assert!(!is_error(constant_watts) && !is_error(highest_watts), "{:?}", found.estimates);
    let Estimates { one_node_seconds, average_parallelism, variation, .. } = found.estimates;
    for (estimate, expected) in [
        (one_node_seconds, 4000.0),
        (average_parallelism, 22.0),
        (variation, 0.6),
        (found.estimates.sensitivity, 0.08),
    ] {
        let Certainty::Error(error) = estimate.certainty else { panic!("{estimate:?}") };
        assert!((estimate.value - expected).abs() < 4.0 * error, "{expected}: {estimate:?}");
    }
}

#[test]
fn an_application_that_ignores_its_cap_has_no_sensitivity() {
    let law = PowerLaw::new(2.0, 10.0, 13.0).unwrap();
    let throttling = Throttling::new(law, 30.0, 50.0, 0.0).unwrap();
    let pass = Pass { scaling: Scaling::new(500.0, 12.0, 0.4).unwrap(), throttling };
    let found = fit(&samples(&pass, &CAPS, 0.0, 1)).unwrap();
    assert!(found.estimates.sensitivity.value < 1e-4, "{:?}", found.estimates);
    assert!((found.estimates.average_parallelism.value - 12.0).abs() < 0.01);
}

#[test]
fn what_is_missing_is_named() {
    let pass = known(Application::LULESH);
    let all = samples(&pass, &CAPS, 0.0, 1);
    let only = |keep: &dyn Fn(&Sample) -> bool| -> PassFitError {
        let kept: Vec<Sample> = all.iter().filter(|sample| keep(sample)).copied().collect();
        fit(&kept).unwrap_err()
    };
    let error = only(&|_| false);
    assert_eq!(error, PassFitError::TooFew { samples: 0, needed: 6 });
    let error = only(&|it| it.nodes == 8);
    assert_eq!(error, PassFitError::TooFewNodeCounts { found: 1, needed: 3 });
    let error = only(&|it| it.cap_watts == 40.0 || it.cap_watts == 44.0);
    assert_eq!(error, PassFitError::TooFewCaps { found: 2, needed: 4 });
    assert_eq!(
        error.to_string(),
        "there are rows under 2 different caps only; add rows until there are 4"
    );
    // 1 node at 32 W, 2 at 34 W, and so on.
    let ladder = |it: &Sample| {
        let step = NODE_COUNTS.iter().position(|nodes| *nodes == it.nodes).unwrap();
        CAPS.get(step + 1) == Some(&it.cap_watts)
    };
    assert_eq!(only(&ladder), PassFitError::Entangled);
    let mut wrong = all.clone();
    wrong[3].seconds = f64::NAN;
    assert!(matches!(fit(&wrong), Err(PassFitError::Unusable { row: 4, .. })));
    wrong[3] = Sample { nodes: 0, ..all[3] };
    assert_eq!(
        fit(&wrong).unwrap_err().to_string(),
        "row 4: the number of nodes is 0; it must be a number above zero"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However absurd the samples: a model that gives numbers, or an error.
    #[test]
    fn nothing_breaks_it(
        figures in prop::collection::vec((1..6u32, 1..7u32, -20.0..20.0f64), 0..30),
        scale in -30.0..30.0f64,
    ) {
        let samples: Vec<Sample> = figures
            .into_iter()
            .map(|(nodes, cap, exponent)| Sample {
                nodes: nodes.pow(9),
                cap_watts: f64::from(cap) * 10f64.powf(scale),
                seconds: 10f64.powf(exponent),
            })
            .collect();
        if let Ok(found) = fit(&samples) {
            for sample in &samples {
                let seconds = found.pass.seconds(sample.nodes, sample.cap_watts);
                prop_assert!(seconds.is_some_and(|it| it > 0.0 && it.is_finite()), "{seconds:?}");
            }
        }
    }
}
