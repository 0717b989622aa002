//! What is worked out for runs is what a tuner works out for processors one by one.

use proptest::prelude::*;

use super::*;
use crate::solve::ptune::{Grant, Tuner};
use crate::variation::{Application, Ips, Knot};

/// Few points out of few numbers, so that slopes and efficiencies are often the same.
fn any_curve() -> impl Strategy<Value = Curve> {
    let even = (1u64..4, 1u64..4, 1u64..5).prop_map(|(power, ips, corners)| {
        (1..=corners).map(|corner| (power * corner * 4, ips * (corner + 2) * 100)).collect()
    });
    let odd = prop::collection::vec((5u64..30, 1u64..2000), 1..6);
    prop_oneof![even, odd].prop_map(|points: Vec<(u64, u64)>| {
        let knot = |(power, ips)| Knot { power: milliwatts(power), ips: Ips::from_ips(ips) };
        Curve::new(milliwatts(1), points.into_iter().map(knot).collect()).unwrap()
    })
}

fn milliwatts(power: u64) -> Watts {
    Watts::from_milliwatts(power)
}

/// The caps of a crew one by one, from the most efficient processor on.
fn one_by_one(divided: &Divided) -> Vec<Watts> {
    let mut caps = Vec::new();
    for (place, one) in divided.crew.members().iter().enumerate() {
        for number in 0..one.count {
            caps.push(match divided.levels.split {
                Some(split) if split.place == place && number < split.first => split.high,
                Some(split) if split.place == place && number == split.first => split.between,
                _ => divided.levels.caps[place],
            });
        }
    }
    caps
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn runs_agree_with_processors_one_by_one(
        distinct in prop::collection::vec(any_curve(), 1..5),
        which in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..24),
        budget in 1u64..700,
    ) {
        let curves: Vec<Curve> =
            which.iter().map(|(index, _)| index.get(&distinct).clone()).collect();
        let kin = Kin::of(&Application { name: "a".to_owned(), curves: curves.clone() });
        let offered: Vec<u32> =
            kin.order().iter().copied().filter(|place| which[*place as usize].1).collect();
        let mut members: Vec<OfRun> = Vec::new();
        for place in &offered {
            let run = kin.run_of(*place).unwrap();
            match members.last_mut().filter(|last| last.run == run) {
                Some(last) => last.count += 1,
                None => members.push(OfRun { run, count: 1 }),
            }
        }
        let crew = Crew::new(members);
        let curves: Vec<&Curve> = offered.iter().map(|place| &curves[*place as usize]).collect();
        prop_assert_eq!(crew.count() as usize, curves.len());
        prop_assert_eq!(crew.least(&kin), curves.iter().map(|curve| curve.least()).sum::<Watts>());
        prop_assert_eq!(crew.most(&kin), curves.iter().map(|curve| curve.most()).sum::<Watts>());
        let mut tuner = Tuner::new();
        let caps = |grants: &[Grant]| grants.iter().map(|grant| grant.cap).collect::<Vec<_>>();

        let tuned = crew.tune(&kin, milliwatts(budget));
        let expected = tuner.tune(&curves, milliwatts(budget)).ok();
        prop_assert_eq!(tuned.as_ref().map(one_by_one), expected.map(|all| caps(all.grants)));
        if let Some(divided) = tuned {
            let total: Watts = one_by_one(&divided).into_iter().sum();
            prop_assert_eq!(divided.crew.total(&divided.levels), total);
        }

        let levels = crew.retune(&kin, milliwatts(budget));
        let retuned = levels.map(|levels| one_by_one(&Divided { crew: crew.clone(), levels }));
        let expected = tuner.retune(&curves, milliwatts(budget)).ok();
        prop_assert_eq!(retuned, expected.map(|all| caps(all.grants)));
    }
}
