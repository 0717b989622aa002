//! Divisions worked out by hand, and against a dynamic program that tries every milliwatt.

use proptest::prelude::*;

use super::ceiling::ceiling;
use super::*;
use crate::variation::Knot;

fn curve(points: &[(u64, u64)]) -> Curve {
    let knot = |(power, ips): &(u64, u64)| Knot {
        power: Watts::from_milliwatts(*power),
        ips: Ips::from_ips(*ips),
    };
    Curve::new(Watts::from_milliwatts(1), points.iter().map(knot).collect()).unwrap()
}

fn milliwatts(power: u64) -> Watts {
    Watts::from_milliwatts(power)
}

fn caps(grants: &[Grant]) -> Vec<(usize, u64)> {
    grants.iter().map(|grant| (grant.candidate, grant.cap.milliwatts())).collect()
}

#[test]
fn steep_stretches_are_fed_first() {
    // Slopes 4 and 1; 3 and 2. The second draws less without a cap and comes first.
    let slow = curve(&[(10, 100), (20, 140), (40, 160)]);
    let thrifty = curve(&[(10, 100), (20, 130), (30, 150)]);
    let curves = [&slow, &thrifty];
    let mut tuner = Tuner::new();
    // 20 feed both at their least. Of 25 more, 10 bring 40, 10 bring 30, and 5 bring 10.
    let tuning = tuner.tune(&curves, milliwatts(45)).unwrap();
    assert_eq!(caps(tuning.grants), [(1, 25), (0, 20)]);
    assert_eq!((tuning.ips.ips(), tuning.bound.ips()), (280, 280));
    assert!(!tuning.is_uniform);
    // 22 each: the first is at 142 after the stretch of slope 4, the other at 134.
    assert_eq!(
        tuning.uniform,
        Some(Even { processors: 2, cap: milliwatts(22), ips: Ips::from_ips(276) })
    );
    assert_eq!(tuning.power(), milliwatts(45));
    // More than anybody can use is not handed out.
    let tuning = tuner.tune(&curves, milliwatts(500)).unwrap();
    assert_eq!(caps(tuning.grants), [(1, 30), (0, 40)]);
    // As few as run: one, and then all it can use.
    let tuning = tuner.tune(&curves, milliwatts(19)).unwrap();
    assert_eq!(caps(tuning.grants), [(1, 19)]);
    assert_eq!(tuning.ips.ips(), 127);
}

#[test]
fn processors_that_do_not_help_stay_free() {
    // On its least a processor does nothing to speak of: better two at full speed than four.
    let part = curve(&[(50, 1), (100, 100)]);
    let curves = [&part; 4];
    let mut tuner = Tuner::new();
    let tuning = tuner.tune(&curves, milliwatts(200)).unwrap();
    assert_eq!(caps(tuning.grants), [(0, 100), (1, 100)]);
    assert_eq!(tuning.uniform.unwrap().ips.ips(), 4);
    // A line from the origin: all divisions are equal, and the fewest are taken.
    let line = curve(&[(50, 50), (100, 100)]);
    let tuning = tuner.tune(&[&line; 4], milliwatts(200)).unwrap();
    assert_eq!((tuning.grants.len(), tuning.ips.ips()), (2, 200));
    // Those that run go on running, all of them.
    let tuning = tuner.retune(&curves, milliwatts(250)).unwrap();
    assert_eq!(caps(tuning.grants), [(0, 100), (1, 50), (2, 50), (3, 50)]);
}

#[test]
fn equal_parts_are_kept_where_nothing_better_is_found() {
    // The hull goes straight from 10 to 30, at 4.5 for each milliwatt. Of 24 above the least, 20 take
    // one processor to its end and 4 leave another in the dent: 100 + 10 + 10. At 18 each all stand
    // just below the hull.
    let dented = curve(&[(10, 10), (17, 11), (18, 45), (30, 100)]);
    let mut tuner = Tuner::new();
    let tuning = tuner.retune(&[&dented; 3], milliwatts(54)).unwrap();
    assert!(tuning.is_uniform);
    assert_eq!(caps(tuning.grants), [(0, 18), (1, 18), (2, 18)]);
    assert_eq!((tuning.ips.ips(), tuning.bound.ips()), (135, 138));
    let dented = curve(&[(10, 10), (15, 11), (20, 100)]);
    let tuning = tuner.retune(&[&dented], milliwatts(15)).unwrap();
    assert_eq!((tuning.ips.ips(), tuning.bound.ips()), (11, 55));
}

#[test]
fn too_little_power_is_said() {
    let part = curve(&[(50, 1), (100, 100)]);
    let mut tuner = Tuner::new();
    assert_eq!(tuner.tune(&[], milliwatts(200)), Err(TuneError::Nobody));
    assert_eq!(
        tuner.tune(&[&part, &part], milliwatts(49)),
        Err(TuneError::TooLittle { budget: milliwatts(49), processors: 1, needed: milliwatts(50) })
    );
    assert_eq!(
        tuner.retune(&[&part, &part], milliwatts(99)),
        Err(TuneError::TooLittle {
            budget: milliwatts(99),
            processors: 2,
            needed: milliwatts(100)
        })
    );
    assert!(plain::tune(&[&part], milliwatts(49), milliwatts(1)).is_err());
    assert!(plain::tune(&[], milliwatts(49), milliwatts(1)).is_err());
}

#[test]
fn the_plain_greedy_by_hand() {
    let slow = curve(&[(10, 100), (20, 140), (40, 160)]);
    let thrifty = curve(&[(10, 100), (20, 130), (30, 150)]);
    let tuned = plain::tune(&[&slow, &thrifty], milliwatts(45), milliwatts(1)).unwrap();
    assert_eq!(caps(&tuned.grants), [(1, 25), (0, 20)]);
    // In portions of 10 nobody takes half a stretch until the end.
    let tuned = plain::tune(&[&slow, &thrifty], milliwatts(45), milliwatts(10)).unwrap();
    assert_eq!(caps(&tuned.grants), [(1, 25), (0, 20)]);
    // A portion brings nothing, two would: it does not see that far, and equal parts do better.
    let step = curve(&[(10, 1), (14, 2), (15, 100), (20, 101)]);
    let tuned = plain::tune(&[&step; 4], milliwatts(60), milliwatts(1)).unwrap();
    let even = Even::of(4, milliwatts(60), |_| &step).unwrap();
    assert_eq!(even.ips.ips(), 400);
    assert!(tuned.ips < even.ips, "{tuned:?}");
}

/// The best division of a budget among the first processors in their order, for each number of them:
/// every milliwatt is tried.
fn exact(curves: &[&Curve], budget: u64) -> Vec<Option<u64>> {
    let mut order: Vec<&Curve> = curves.to_vec();
    order.sort_by_key(|curve| curve.most());
    // What is reached with so much power at most.
    let mut reached: Vec<Option<u64>> = vec![Some(0); budget as usize + 1];
    let mut answers = Vec::new();
    for curve in order {
        let (least, most) = (curve.least().milliwatts(), curve.most().milliwatts());
        let with = |power: u64| {
            let ways = (least..=most.min(power)).filter_map(|own| {
                let rest = reached[(power - own) as usize]?;
                Some(rest + curve.at(milliwatts(own)).ips())
            });
            ways.max()
        };
        reached = (0..=budget).map(with).collect();
        answers.push(reached[budget as usize]);
    }
    answers
}

/// The corners of a curve's hull: a concave curve.
fn concave(curve: &Curve) -> Curve {
    let ends = curve.hull().iter().map(|segment| segment.to);
    let knots = std::iter::once(curve.knots()[0]).chain(ends).collect();
    Curve::new(curve.least(), knots).unwrap()
}

fn any_curve() -> impl Strategy<Value = Curve> {
    prop::collection::vec((5u64..30, 1u64..2000), 1..6).prop_map(|points| curve(&points))
}

fn any_curves() -> impl Strategy<Value = Vec<Curve>> {
    prop::collection::vec(any_curve(), 1..6)
}

/// What holds for every division.
fn check(tuning: &Tuning<'_>, curves: &[&Curve], budget: u64) {
    assert!(tuning.power() <= milliwatts(budget));
    let mut seen = std::collections::BTreeSet::new();
    let mut total = 0;
    for Grant { candidate, cap } in tuning.grants {
        let curve = curves[*candidate];
        assert!((curve.least()..=curve.most()).contains(cap), "{cap} {curve:?}");
        assert!(seen.insert(*candidate));
        total += curve.at(*cap).ips();
    }
    assert_eq!(total, tuning.ips.ips());
    assert!(tuning.uniform.is_none_or(|even| even.ips <= tuning.ips));
    assert!(tuning.ips <= tuning.bound);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// On concave curves nothing is better, for any number of processors and for a given set.
    #[test]
    fn concave_curves_get_the_best(curves in any_curves(), budget in 5u64..150) {
        let curves: Vec<Curve> = curves.iter().map(concave).collect();
        let curves: Vec<&Curve> = curves.iter().collect();
        let exact = exact(&curves, budget);
        let mut tuner = Tuner::new();
        match tuner.tune(&curves, milliwatts(budget)) {
            Ok(tuning) => {
                check(&tuning, &curves, budget);
                let best = exact.iter().flatten().max().copied();
                prop_assert_eq!(Some(tuning.ips.ips()), best);
                // The fewest processors that do it.
                let fewest = exact.iter().position(|ips| *ips == best).unwrap() + 1;
                prop_assert_eq!(tuning.grants.len(), fewest);
                prop_assert!(ceiling(&curves, milliwatts(budget)) >= tuning.ips);
            }
            Err(_) => prop_assert_eq!(exact[0], None),
        }
        match tuner.retune(&curves, milliwatts(budget)) {
            Ok(tuning) => {
                check(&tuning, &curves, budget);
                prop_assert_eq!(Some(tuning.ips.ips()), exact[curves.len() - 1]);
            }
            Err(_) => prop_assert_eq!(exact[curves.len() - 1], None),
        }
    }

    /// On any curves it is no worse than equal parts, and the bound is one.
    #[test]
    fn other_curves_are_within_the_bound(curves in any_curves(), budget in 5u64..150) {
        let curves: Vec<&Curve> = curves.iter().collect();
        let exact = exact(&curves, budget);
        let mut tuner = Tuner::new();
        if let Ok(tuning) = tuner.tune(&curves, milliwatts(budget)) {
            check(&tuning, &curves, budget);
            let best = exact.iter().flatten().max().copied().unwrap();
            prop_assert!((tuning.ips.ips()..=tuning.bound.ips()).contains(&best));
            prop_assert!(ceiling(&curves, milliwatts(budget)).ips() >= best);
            let plain = plain::tune(&curves, milliwatts(budget), milliwatts(1)).unwrap();
            prop_assert!(plain.ips.ips() <= best);
            let held: Watts = plain.grants.iter().map(|grant| grant.cap).sum();
            prop_assert!(held <= milliwatts(budget));
        }
        if let Ok(tuning) = tuner.retune(&curves, milliwatts(budget)) {
            check(&tuning, &curves, budget);
            prop_assert_eq!(tuning.grants.len(), curves.len());
            prop_assert!(exact[curves.len() - 1].unwrap() <= tuning.bound.ips());
        }
    }

    /// Any choice of processors stays below the ceiling, not only the most efficient ones.
    #[test]
    fn nobody_breaks_the_ceiling(
        curves in any_curves(), budget in 5u64..150, chosen in prop::collection::vec(any::<bool>(), 6)
    ) {
        let all: Vec<&Curve> = curves.iter().collect();
        let some = all.iter().zip(chosen).filter(|(_, is_chosen)| *is_chosen);
        let some: Vec<&Curve> = some.map(|(curve, _)| *curve).collect();
        let ceiling = ceiling(&all, milliwatts(budget)).ips();
        prop_assert!(exact(&some, budget).iter().flatten().all(|ips| *ips <= ceiling));
    }

    /// The greedy needs no hull where there is no dent: in the smallest portions it is the best, too,
    /// but for what rounding hides.
    #[test]
    fn the_plain_greedy_is_good_on_concave_curves(curves in any_curves(), budget in 5u64..150) {
        let curves: Vec<Curve> = curves.iter().map(concave).collect();
        let curves: Vec<&Curve> = curves.iter().collect();
        if let Ok(plain) = plain::tune(&curves, milliwatts(budget), milliwatts(1)) {
            let best = exact(&curves, budget).iter().flatten().max().copied().unwrap();
            prop_assert!(plain.ips.ips() + 40 >= best, "{} {}", plain.ips, best);
        }
    }
}
