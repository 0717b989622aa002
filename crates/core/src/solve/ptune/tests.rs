//! Divisions worked out by hand, and against a dynamic program that tries every milliwatt.

use std::cmp::Reverse;

use proptest::prelude::*;

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
    // Slopes 4 and 1; 3 and 2. Both do most for each milliwatt at their least, and equally much; the
    // first is faster without a cap and comes first.
    let slow = curve(&[(10, 100), (20, 140), (40, 160)]);
    let thrifty = curve(&[(10, 100), (20, 130), (30, 150)]);
    let curves = [&slow, &thrifty];
    let mut tuner = Tuner::new();
    // 20 feed both at their least. Of 25 more, 10 bring 40, 10 bring 30, and 5 bring 10.
    let tuning = tuner.tune(&curves, milliwatts(45)).unwrap();
    assert_eq!(caps(tuning.grants), [(0, 20), (1, 25)]);
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
    assert_eq!(caps(tuning.grants), [(0, 40), (1, 30)]);
    // As few as run: one, and then all it can use.
    let tuning = tuner.tune(&curves, milliwatts(19)).unwrap();
    assert_eq!(caps(tuning.grants), [(0, 19)]);
    assert_eq!(tuning.ips.ips(), 136);
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

/// All draw the same and cannot draw less, and some are faster: those are taken, and that is known to be
/// the best. Where power is plenty, the fastest are taken although others do more for each milliwatt;
/// where it is short, those are.
#[test]
fn the_processors_that_are_right_are_taken() {
    let fixed = [12, 14, 11, 13, 14].map(|ips| curve(&[(300, ips)]));
    let fixed: Vec<&Curve> = fixed.iter().collect();
    let mut tuner = Tuner::new();
    let chosen = tuner.choose(&fixed, 5, milliwatts(1000)).unwrap();
    assert_eq!(caps(&chosen.grants), [(1, 300), (4, 300), (3, 300)]);
    assert_eq!((chosen.ips.ips(), chosen.bound.ips(), chosen.offered.len()), (41, 41, 5));
    let chosen = tuner.choose(&fixed, 2, milliwatts(1000)).unwrap();
    assert_eq!(chosen.offered, [1, 4]);
    assert_eq!((chosen.ips.ips(), chosen.bound.ips()), (28, 28));

    let thrifty = curve(&[(10, 100)]);
    let fast = curve(&[(20, 150), (50, 300)]);
    let two = [&thrifty, &fast];
    for (budget, offered, ips) in [(60, 1, 300), (15, 0, 100)] {
        let chosen = tuner.choose(&two, 1, milliwatts(budget)).unwrap();
        assert_eq!((&chosen.offered[..], chosen.ips.ips()), (&[offered][..], ips));
        assert_eq!(chosen.bound.ips(), ips);
    }
    // Who is most efficient needs more than there is.
    let large = curve(&[(30, 900)]);
    let chosen = tuner.choose(&[&large, &thrifty], 2, milliwatts(29)).unwrap();
    assert_eq!(caps(&chosen.grants), [(1, 10)]);
    assert_eq!(chosen.bound.ips(), 100);
    assert_eq!(
        tuner.choose(&[&large, &thrifty], 2, milliwatts(9)),
        Err(TuneError::TooLittle { budget: milliwatts(9), processors: 1, needed: milliwatts(10) })
    );
    assert_eq!(tuner.choose(&[], 2, milliwatts(9)), Err(TuneError::Nobody));
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

/// The most that a processor does for each milliwatt, in parts so small that no two fractions of these
/// curves are taken for one.
fn most_for_each(curve: &Curve) -> u64 {
    let knots = curve.knots().iter();
    knots.map(|knot| (knot.ips.ips() << 30) / knot.power.milliwatts()).max().unwrap()
}

/// From the one that does most for each milliwatt on.
fn by_efficiency<'c>(curves: &[&'c Curve]) -> Vec<&'c Curve> {
    let mut order = curves.to_vec();
    order.sort_by_key(|curve| (Reverse(most_for_each(curve)), Reverse(curve.peak())));
    order
}

/// The best division of a budget among the first of these processors, for each number of them: every
/// milliwatt is tried.
fn exact(curves: &[&Curve], budget: u64) -> Vec<Option<u64>> {
    // What is reached with so much power at most.
    let mut reached: Vec<Option<u64>> = vec![Some(0); budget as usize + 1];
    let mut answers = Vec::new();
    for curve in curves {
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
        let exact = exact(&by_efficiency(&curves), budget);
        let mut tuner = Tuner::new();
        match tuner.tune(&curves, milliwatts(budget)) {
            Ok(tuning) => {
                check(&tuning, &curves, budget);
                let best = exact.iter().flatten().max().copied();
                prop_assert_eq!(Some(tuning.ips.ips()), best);
                // The fewest processors that do it.
                let fewest = exact.iter().position(|ips| *ips == best).unwrap() + 1;
                prop_assert_eq!(tuning.grants.len(), fewest);
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
        let exact = exact(&by_efficiency(&curves), budget);
        let mut tuner = Tuner::new();
        if let Ok(tuning) = tuner.tune(&curves, milliwatts(budget)) {
            check(&tuning, &curves, budget);
            let best = exact.iter().flatten().max().copied().unwrap();
            prop_assert!((tuning.ips.ips()..=tuning.bound.ips()).contains(&best));
        }
        if let Ok(tuning) = tuner.retune(&curves, milliwatts(budget)) {
            check(&tuning, &curves, budget);
            prop_assert_eq!(tuning.grants.len(), curves.len());
            prop_assert!(exact[curves.len() - 1].unwrap() <= tuning.bound.ips());
        }
    }

    /// The greedy needs no hull where there is no dent: in the smallest portions it is the best, too,
    /// but for what rounding hides.
    #[test]
    fn the_plain_greedy_is_good_on_concave_curves(curves in any_curves(), budget in 5u64..150) {
        let curves: Vec<Curve> = curves.iter().map(concave).collect();
        let curves: Vec<&Curve> = curves.iter().collect();
        if let Ok(plain) = plain::tune(&curves, milliwatts(budget), milliwatts(1)) {
            let mut by_draw = curves.clone();
            by_draw.sort_by_key(|curve| curve.most());
            let best = exact(&by_draw, budget).iter().flatten().max().copied().unwrap();
            prop_assert!(plain.ips.ips() + 40 >= best, "{} {}", plain.ips, best);
        }
    }
}

/// The fastest that any choice of so many of these processors is, or of fewer: every choice is tried, and
/// for each every milliwatt.
fn best_of_any(curves: &[&Curve], count: usize, budget: u64) -> Option<u64> {
    let choices = (1u32..1 << curves.len()).filter(|choice| choice.count_ones() as usize <= count);
    let speed = |choice: u32| {
        let is_in = |place: &usize| choice & 1 << place != 0;
        let some: Vec<&Curve> =
            (0..curves.len()).filter(is_in).map(|place| curves[place]).collect();
        exact(&some, budget)[some.len() - 1]
    };
    choices.filter_map(speed).max()
}

fn any_fixed() -> impl Strategy<Value = Vec<Curve>> {
    let ips = prop::collection::vec(1u64..50, 1..6);
    (5u64..30, ips).prop_map(|(power, ips)| ips.iter().map(|ips| curve(&[(power, *ips)])).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever the paper's greedy makes of a curve, it stays within its power and below the best.
    #[test]
    fn the_plain_greedy_is_sound(curves in any_curves(), budget in 5u64..150) {
        let curves: Vec<&Curve> = curves.iter().collect();
        if let Ok(plain) = plain::tune(&curves, milliwatts(budget), milliwatts(1)) {
            let held: Watts = plain.grants.iter().map(|grant| grant.cap).sum();
            prop_assert!(held <= milliwatts(budget));
            let best = best_of_any(&curves, curves.len(), budget);
            prop_assert!(Some(plain.ips.ips()) <= best);
        }
    }

    /// No choice is faster than the bound, however many processors it may have.
    #[test]
    fn nobody_breaks_the_bound(curves in any_curves(), budget in 5u64..150, count in 1usize..6) {
        let curves: Vec<&Curve> = curves.iter().collect();
        let best = best_of_any(&curves, count, budget);
        match Tuner::new().choose(&curves, count, milliwatts(budget)) {
            Ok(chosen) => {
                let best = best.unwrap();
                prop_assert!(chosen.ips.ips() <= best && best <= chosen.bound.ips());
                prop_assert!(chosen.grants.len() <= chosen.offered.len().min(count));
                let held: Watts = chosen.grants.iter().map(|grant| grant.cap).sum();
                prop_assert!(held <= milliwatts(budget));
                let speed = |grant: &Grant| curves[grant.candidate].at(grant.cap).ips();
                prop_assert_eq!(chosen.grants.iter().map(speed).sum::<u64>(), chosen.ips.ips());
                prop_assert!(chosen.grants.iter().all(|g| chosen.offered.contains(&g.candidate)));
            }
            Err(_) => prop_assert_eq!(best, None),
        }
    }

    /// Processors that draw the same and nothing else: the choice is the best one, and the bound says so.
    #[test]
    fn the_fastest_of_equals_are_taken(
        curves in any_fixed(), budget in 5u64..150, count in 1usize..6
    ) {
        let curves: Vec<&Curve> = curves.iter().collect();
        let best = best_of_any(&curves, count, budget);
        if let Ok(chosen) = Tuner::new().choose(&curves, count, milliwatts(budget)) {
            prop_assert_eq!(Some(chosen.ips.ips()), best);
            prop_assert_eq!(chosen.bound, chosen.ips);
        }
    }
}
