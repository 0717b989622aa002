//! The laws together.

use proptest::prelude::*;

use super::*;

fn any_pass() -> impl Strategy<Value = Pass> {
    let scaling = (1.0..100.0f64, 0.0..=1.0f64);
    let law = (0.0..10.0f64, 0.01..20.0f64, 0.0..40.0f64);
    let throttling = (0.1..30.0f64, 0.1..60.0f64, 0.0..0.95f64);
    (scaling, law, throttling).prop_map(|((a, part), (cubic, linear, c), (low, more, beta))| {
        let law = PowerLaw::new(cubic, linear, c).unwrap();
        Pass {
            scaling: Scaling::new(3600.0, a, 2.0 * a * part).unwrap(),
            throttling: Throttling::new(law, c + low, c + low + more, beta).unwrap(),
        }
    })
}

#[test]
fn a_time_worked_out_by_hand() {
    // 237.5 s on 4 nodes and 10/9 times that under 34.75 W; see the tests of the two laws.
    let pass = Pass {
        scaling: Scaling::new(800.0, 4.0, 0.5).unwrap(),
        throttling: Throttling::new(PowerLaw::new(2.0, 10.0, 13.0).unwrap(), 25.0, 49.0, 0.25)
            .unwrap(),
    };
    assert!((pass.seconds(4, 34.75).unwrap() - 2375.0 / 9.0).abs() < 1e-9);
    assert_eq!(pass.seconds(0, 34.75), None);
    assert_eq!(pass.seconds(4, 24.0), None);

    let caps = [24, 25, 49].map(Watts::from_watts);
    let timings = pass.timings(&[0, 1, 4], &caps);
    let combinations: Vec<(u32, f64)> =
        timings.iter().map(|timing| (timing.nodes, timing.cap.as_f64())).collect();
    // Not on no node, and not under 24 W.
    assert_eq!(combinations, [(1, 25.0), (1, 49.0), (4, 25.0), (4, 49.0)]);
    assert!((timings[0].seconds - 3200.0 / 3.0).abs() < 1e-9, "{timings:?}");
    assert!((timings[3].seconds - 237.5).abs() < 1e-9, "{timings:?}");
}

proptest! {
    #[test]
    fn neither_nodes_nor_watts_do_harm(pass in any_pass(), nodes in 1..200u32, watts in 0.0..1.0f64) {
        let (low, high) = (pass.throttling.lowest_watts(), pass.throttling.highest_watts());
        let cap = low + watts * (high - low);
        let seconds = |nodes, cap| pass.seconds(nodes, cap).unwrap();
        let here = seconds(nodes, cap);
        let rounding = 1e-9 * here;
        prop_assert!(seconds(nodes + 1, cap) <= here + rounding);
        prop_assert!(seconds(nodes, cap + 0.5) <= here + rounding);
        prop_assert!(seconds(nodes, high) <= here + rounding);
        prop_assert!(here <= seconds(nodes, low) + rounding);
    }

    #[test]
    fn the_ends_of_the_range_of_caps(pass in any_pass(), nodes in 1..200u32) {
        let (low, high) = (pass.throttling.lowest_watts(), pass.throttling.highest_watts());
        let seconds = |cap| pass.seconds(nodes, cap).unwrap();
        let full = pass.scaling.seconds(nodes).unwrap();
        let slowest = full / (1.0 - pass.throttling.sensitivity());
        prop_assert!((seconds(low) / slowest - 1.0).abs() < 1e-9, "{} s", seconds(low));
        prop_assert_eq!(seconds(high), full);
        // No jump where throttling ends.
        prop_assert!((seconds(high - 1e-9 * (high - low)) / full - 1.0).abs() < 1e-6);
        prop_assert_eq!(pass.seconds(nodes, low - 1e-6), None);
    }
}
