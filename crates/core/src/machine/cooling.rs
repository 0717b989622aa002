//! What a site draws for a machine and its cooling, by what the machine alone draws.
//!
//! The ratio of the two is called PUE. It is one number, or a curve over the load of the machine: chillers and
//! pumps do not shrink with it. The site never draws less when the machine draws more, so that a limit at the
//! site's meter is a limit of the machine.

use serde::{Deserialize, Deserializer, de};

use crate::units::Watts;

/// How much a site draws for each watt of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cooling {
    /// The load, in millionths of the machine's maximum, and the PUE there, in millionths; ascending in load.
    curve: Vec<(u64, u64)>,
    /// Whether budgets are limits at the site's meter, or of the machine alone.
    pub in_budget: bool,
}

const MILLION: u64 = 1_000_000;

/// As it is written in a machine file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    pue: Pue,
    #[serde(default)]
    in_budget: bool,
}

/// One number, or pairs of load and PUE.
#[derive(Deserialize)]
#[serde(untagged)]
enum Pue {
    Same(f64),
    ByLoad(Vec<(f64, f64)>),
}

impl<'de> Deserialize<'de> for Cooling {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let File { pue, in_budget } = File::deserialize(deserializer)?;
        let points = match pue {
            Pue::Same(pue) => vec![(1.0, pue)],
            Pue::ByLoad(points) => points,
        };
        Cooling::new(&points, in_budget).map_err(de::Error::custom)
    }
}

impl Cooling {
    /// Pairs of load (1 is the machine's maximum) and PUE, ascending in load. Below the first and above the last
    /// the PUE is theirs; between two it lies on the line between them.
    pub fn new(points: &[(f64, f64)], in_budget: bool) -> Result<Self, String> {
        let form =
            "write a number such as 1.3, or pairs of load and PUE such as [[0.3, 1.5], [1.0, 1.2]]";
        if points.is_empty() {
            return Err(format!("'cooling.pue' is empty; {form}"));
        }
        let millionths = |value: f64| (value * MILLION as f64).round() as u64;
        let mut curve: Vec<(u64, u64)> = Vec::with_capacity(points.len());
        for &(load, pue) in points {
            if !(1.0..=10.0).contains(&pue) {
                return Err(format!(
                    "'cooling.pue': {pue} is no PUE, which is from 1 to 10; {form}"
                ));
            }
            if !(0.0..=1.0).contains(&load) {
                return Err(format!(
                    "'cooling.pue': {load} is no load, which is from 0 to 1; {form}"
                ));
            }
            let point = (millionths(load), millionths(pue));
            if let Some(&(before, _)) = curve.last().filter(|before| before.0 >= point.0) {
                let before = before as f64 / MILLION as f64;
                return Err(format!(
                    "'cooling.pue': load {load} follows {before}; write rising loads"
                ));
            }
            curve.push(point);
        }
        let cooling = Cooling { curve, in_budget };
        match cooling.falling() {
            Some(load) => Err(format!(
                "'cooling.pue': at a load of {load} the site would draw less the more the machine draws; \
                 the PUE falls too steeply there"
            )),
            None => Ok(cooling),
        }
    }

    /// The PUE at a load, both in millionths, rounded up.
    fn pue(&self, load: u64) -> u64 {
        let after = self.curve.partition_point(|point| point.0 <= load);
        let (Some(&(from, low)), Some(&(to, high))) =
            (after.checked_sub(1).map(|before| &self.curve[before]), self.curve.get(after))
        else {
            let end = if after == 0 { self.curve.first() } else { self.curve.last() };
            return end.map_or(MILLION, |point| point.1);
        };
        let (width, way) = (to - from, load - from);
        match high.checked_sub(low) {
            Some(rise) => low + (rise * way).div_ceil(width),
            None => low - (low - high) * way / width,
        }
    }

    /// The first load, in steps of a hundredth, at which the site draws less than at a lower one.
    fn falling(&self) -> Option<f64> {
        let drawn = |load: u64| u128::from(load) * u128::from(self.pue(load));
        let step = MILLION / 100;
        (1..=100)
            .map(|place| place * step)
            .find(|load| drawn(*load) < drawn(load - step))
            .map(|load| load as f64 / MILLION as f64)
    }

    /// What the site draws, rounded up, when a machine of this maximum draws so much.
    pub fn of_site(&self, machine: Watts, most: Watts) -> Watts {
        let load = u128::from(machine.milliwatts()) * u128::from(MILLION)
            / u128::from(most.milliwatts().max(1));
        let pue = self.pue(u64::try_from(load).unwrap_or(MILLION));
        let drawn = (u128::from(machine.milliwatts()) * u128::from(pue)).div_ceil(MILLION.into());
        Watts::from_milliwatts(u64::try_from(drawn).unwrap_or(u64::MAX)).min(Watts::UNLIMITED)
    }

    /// The most that a machine of this maximum may draw, so that the site draws no more than this limit.
    pub fn of_machine(&self, site: Watts, most: Watts) -> Watts {
        if site >= Watts::UNLIMITED {
            return site;
        }
        // The site draws at least what the machine does, and more when that draws more.
        let (mut fits, mut too_much) = (0, site.milliwatts() + 1);
        while too_much - fits > 1 {
            let middle = fits + (too_much - fits) / 2;
            match self.of_site(Watts::from_milliwatts(middle), most) <= site {
                true => fits = middle,
                false => too_much = middle,
            }
        }
        Watts::from_milliwatts(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Watts = Watts::from_watts(1000);

    #[test]
    fn a_factor_is_the_same_at_every_load() {
        let cooling = Cooling::new(&[(1.0, 1.3)], false).unwrap();
        let site = |watts| cooling.of_site(Watts::from_watts(watts), MOST);
        assert_eq!((site(100), site(1000)), (Watts::from_watts(130), Watts::from_watts(1300)));
        assert_eq!(cooling.of_site(Watts::from_milliwatts(1), MOST), Watts::from_milliwatts(2));
        assert_eq!(cooling.of_machine(Watts::from_watts(650), MOST), Watts::from_watts(500));
        assert_eq!(cooling.of_machine(Watts::UNLIMITED, MOST), Watts::UNLIMITED);
    }

    /// From 1.6 at a fifth of the load to 1.2 at full load: 1.4 halfway between.
    #[test]
    fn a_curve_lies_on_lines_between_its_points() {
        let cooling = Cooling::new(&[(0.2, 1.6), (1.0, 1.2)], true).unwrap();
        let site = |watts| cooling.of_site(Watts::from_watts(watts), MOST);
        assert_eq!(site(100), Watts::from_watts(160));
        assert_eq!(site(600), Watts::from_watts(840));
        assert_eq!(site(1000), Watts::from_watts(1200));
        assert_eq!(cooling.of_machine(Watts::from_watts(840), MOST), Watts::from_watts(600));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |points: &[(f64, f64)]| Cooling::new(points, false).unwrap_err();
        assert!(error(&[]).contains("is empty; write a number such as 1.3"));
        assert!(error(&[(1.0, 0.9)]).contains("0.9 is no PUE"));
        assert!(error(&[(30.0, 1.2)]).contains("30 is no load"));
        assert!(error(&[(0.5, 1.2), (0.5, 1.1)]).contains("load 0.5 follows 0.5"));
        assert!(error(&[(0.5, 4.0), (0.6, 1.1)]).contains("falls too steeply"));
    }
}
