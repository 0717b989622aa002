//! Against trying everything, and by hand.

use proptest::prelude::*;

use super::*;
use crate::units::Watts;

fn offer(nodes: u32, watts: u32, value: f64) -> Offer {
    Offer { nodes, power: Watts::from_watts(watts), value }
}

/// An instance as data, so that it can be drawn, tried out and printed.
#[derive(Clone, Debug)]
struct Plain {
    nodes: u64,
    watts: u32,
    entries: Vec<(Need, Vec<Offer>)>,
}

impl Plain {
    fn instance(&self) -> Instance {
        let mut instance = Instance::new(self.nodes, Watts::from_watts(self.watts)).unwrap();
        for (need, offers) in &self.entries {
            instance.add(*need, offers).unwrap();
        }
        instance
    }

    /// The largest value, by trying everything.
    fn best(&self) -> Option<f64> {
        fn try_all(entries: &[(Need, Vec<Offer>)], nodes: i64, power: i64) -> Option<f64> {
            if nodes < 0 || power < 0 {
                return None;
            }
            let Some(((need, offers), rest)) = entries.split_first() else { return Some(0.0) };
            let with = offers.iter().filter_map(|offer| {
                let power = power - offer.power.milliwatts() as i64;
                Some(offer.value + try_all(rest, nodes - i64::from(offer.nodes), power)?)
            });
            let without = (*need == Need::Optional).then(|| try_all(rest, nodes, power)).flatten();
            with.chain(without).max_by(f64::total_cmp)
        }
        try_all(&self.entries, self.nodes as i64, i64::from(self.watts) * 1000)
    }

    /// The least power of the required entries on the nodes there are.
    fn least_power(&self) -> Option<u64> {
        fn try_all(entries: &[&Vec<Offer>], nodes: i64) -> Option<u64> {
            if nodes < 0 {
                return None;
            }
            let Some((offers, rest)) = entries.split_first() else { return Some(0) };
            let powers = offers.iter().filter_map(|offer| {
                let others = try_all(rest, nodes - i64::from(offer.nodes))?;
                Some(offer.power.milliwatts() + others)
            });
            powers.min()
        }
        let required = self.entries.iter().filter(|entry| entry.0 == Need::Required);
        try_all(&required.map(|entry| &entry.1).collect::<Vec<_>>(), self.nodes as i64)
    }

    /// Each way to search finds the best choice: one by one, by lists, and by lists after a few steps one by one; with
    /// prices by planes or by polygons.
    fn check_every_way(&self) {
        self.check(&mut Solver::default(), None);
        for (most_steps, most_options) in [(0, usize::MAX), (3, 0), (u64::MAX, 0)] {
            let mut solver = Solver::default();
            solver.branch.most_steps = most_steps;
            solver.dual.planes.most_options = most_options;
            self.check(&mut solver, None);
        }
    }

    fn check(&self, solver: &mut Solver, warm: Option<Prices>) {
        let instance = self.instance();
        match (solver.solve(&instance, Limits::default(), warm), self.best()) {
            (Ok(solution), Some(best)) => {
                assert!(solution.optimal(), "{self:?}\n{solution:?}");
                let error = (solution.objective() - best).abs();
                assert!(error <= 1e-9 * best.abs(), "{best} in truth: {self:?}\n{solution:?}");
                self.check_choice(&solution);
            }
            (Err(NoChoice::Exceeded { nodes, power }), None) => {
                let required = || self.entries.iter().filter(|entry| entry.0 == Need::Required);
                let least = |amount: fn(&Offer) -> u64| -> u64 {
                    required().map(|entry| entry.1.iter().map(amount).min().unwrap()).sum()
                };
                let fewest = least(|offer| offer.nodes.into());
                let thriftiest = least(|offer| offer.power.milliwatts());
                assert_eq!(nodes, fewest.saturating_sub(self.nodes), "{self:?}");
                let watts = u64::from(self.watts) * 1000;
                assert_eq!(power.milliwatts(), thriftiest.saturating_sub(watts), "{self:?}");
                assert!(nodes > 0 || power > Watts::ZERO);
            }
            (Err(NoChoice::Together { power }), None) => {
                let least = self.least_power().unwrap() - u64::from(self.watts) * 1000;
                assert_eq!(power.milliwatts(), least, "{self:?}");
            }
            (ours, truth) => panic!("{ours:?} but {truth:?} in truth: {self:?}"),
        }
    }

    fn check_choice(&self, solution: &Solution) {
        let (mut value, mut nodes, mut power) = (0.0, 0, Watts::ZERO);
        assert_eq!(solution.chosen().len(), self.entries.len());
        for ((need, offers), chosen) in self.entries.iter().zip(solution.chosen()) {
            assert!(chosen.is_some() || *need == Need::Optional);
            if let Some(option) = chosen {
                value += offers[*option].value;
                nodes += u64::from(offers[*option].nodes);
                power += offers[*option].power;
            }
        }
        assert!(nodes <= self.nodes && power <= Watts::from_watts(self.watts));
        assert_eq!((nodes, power), (solution.nodes_used(), solution.power_used()));
        assert_eq!(value, solution.objective());
        assert!(solution.bound() >= value);
    }
}

/// Few and small numbers: ties, zeros and things that barely fit are common.
fn small() -> impl Strategy<Value = Plain> {
    let value = prop_oneof![(0u8..6).prop_map(f64::from), 0.0..5.0f64];
    let offer =
        (0u32..6, 0u32..20, value).prop_map(|(nodes, watts, value)| offer(nodes, watts, value));
    let entry = (any::<bool>(), prop::collection::vec(offer, 1..5))
        .prop_map(|(need, offers)| (if need { Need::Required } else { Need::Optional }, offers));
    (0u64..20, 0u32..60, prop::collection::vec(entry, 0..7))
        .prop_map(|(nodes, watts, entries)| Plain { nodes, watts, entries })
}

/// Entries that come several times over.
fn twins() -> impl Strategy<Value = Plain> {
    let offer = (0u32..5, 1u32..12, 1u8..9)
        .prop_map(|(nodes, watts, value)| offer(nodes, watts, f64::from(value)));
    let entry = (0u8..4, prop::collection::vec(offer, 1..4), 1usize..5);
    (4u64..16, 5u32..50, prop::collection::vec(entry, 1..3)).prop_map(|(nodes, watts, kinds)| {
        let need = |drawn| if drawn == 0 { Need::Required } else { Need::Optional };
        let entries =
            kinds.into_iter().flat_map(|(drawn, offers, times)| vec![(need(drawn), offers); times]);
        Plain { nodes, watts, entries: entries.collect() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn twins_agree_with_trying_everything(plain in twins()) {
        plain.check_every_way();
    }

    #[test]
    fn small_instances_agree_with_trying_everything(plain in small()) {
        plain.check_every_way();
    }

    /// Near enough is as near as was asked for, and nobody is left out for whom there is room.
    #[test]
    fn what_fits_is_taken(plain in small()) {
        let instance = plain.instance();
        let limits = Limits { gap: 0.2, ..Limits::default() };
        if let (Ok(solution), Some(best)) = (solve(&instance, limits, None), plain.best()) {
            plain.check_choice(&solution);
            prop_assert!(solution.objective() * 1.2 >= best * (1.0 - 1e-9));
            let nodes = plain.nodes - solution.nodes_used();
            let power = Watts::from_watts(plain.watts) - solution.power_used();
            for ((_, offers), chosen) in plain.entries.iter().zip(solution.chosen()) {
                let fits = |offer: &Offer| u64::from(offer.nodes) <= nodes && offer.power <= power;
                let gains = |offer: &Offer| offer.value > 0.0 && fits(offer);
                prop_assert!(chosen.is_some() || !offers.iter().any(gains), "{solution:?}");
            }
        }
    }

    /// The solver's memory and the prices of something else change nothing but the effort.
    #[test]
    fn what_came_before_does_not_matter(first in small(), second in small()) {
        let mut solver = Solver::default();
        let before = solver.solve(&first.instance(), Limits::default(), None);
        second.check(&mut solver, before.ok().map(|solution| solution.prices()));
    }
}

#[test]
fn nothing_to_choose() {
    let instance = Instance::new(0, Watts::ZERO).unwrap();
    let solution = solve(&instance, Limits::default(), None).unwrap();
    assert!(solution.optimal() && solution.objective() == 0.0 && solution.gap() == 0.0);
}

/// 500 jobs of 20 options, each of which takes 21 of nodes and milliwatts together and is worth the
/// same: at the prices all of them tie. 357 jobs fit by the sum of both; a plain fill that takes what
/// fits runs nearly as many.
#[test]
fn ties_everywhere_are_no_excuse() {
    let mut instance = Instance::new(3750, Watts::from_milliwatts(3750)).unwrap();
    let offers: Vec<Offer> = (0..20)
        .map(|i| Offer {
            nodes: i + 1,
            power: Watts::from_milliwatts(20 - u64::from(i)),
            value: 1.0,
        })
        .collect();
    for _ in 0..500 {
        instance.add(Need::Optional, &offers).unwrap();
    }
    let limits = Limits { gap: 0.0, effort: 5_000_000, stop: None };
    let solution = solve(&instance, limits, None).unwrap();
    assert!(solution.objective() >= 350.0, "{}", solution.objective());
    assert!(solution.bound() < 358.0);
}
