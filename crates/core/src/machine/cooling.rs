//! The power of a site, with cooling, as a function of the power of the machine.
//!
//! The ratio of the two is called PUE. It is one number, a curve over the load of the machine, since chillers and
//! pumps do not shrink with it, or a curve over the temperature outdoors, since in cold weather no chiller runs. The site never
//! draws less when the machine draws more, so that a limit at the site's meter is a limit of the machine.

use serde::{Deserialize, Deserializer, de};

use crate::units::{Celsius, Watts};

/// How much a site draws for each watt of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cooling {
    pue: Pue,
    /// Whether budgets are limits at the site's meter, or of the machine alone.
    pub in_budget: bool,
}

/// What the PUE depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Pue {
    /// The load, in millionths of the machine's maximum.
    ByLoad(Line),
    /// The temperature outdoors, in thousandths of a degree.
    ByOutdoor(Line),
}

/// The PUE, in millionths, over what it depends on, which rises from point to point.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Line(Vec<(i64, u64)>);

const MILLION: u64 = 1_000_000;

/// As it is written in a machine file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    pue: Option<Written>,
    pue_by_temperature: Option<Vec<(f64, f64)>>,
    #[serde(default)]
    in_budget: bool,
}

/// One number, or pairs of load and PUE.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Same(f64),
    ByLoad(Vec<(f64, f64)>),
}

impl<'de> Deserialize<'de> for Cooling {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let File { pue, pue_by_temperature, in_budget } = File::deserialize(deserializer)?;
        let cooling = match (pue, pue_by_temperature) {
            (Some(Written::Same(pue)), None) => Cooling::by_load(&[(1.0, pue)], in_budget),
            (Some(Written::ByLoad(points)), None) => Cooling::by_load(&points, in_budget),
            (None, Some(points)) => Cooling::by_temperature(&points, in_budget),
            (None, None) => {
                Err("the PUE is missing; write 'pue' or 'pue_by_temperature'".to_owned())
            }
            (Some(_), Some(_)) => {
                Err("'cooling.pue' and 'cooling.pue_by_temperature' both give the PUE; keep one"
                    .to_owned())
            }
        };
        cooling.map_err(de::Error::custom)
    }
}

impl Line {
    /// Pairs of some `what` and a PUE. `place` reads the former, or nothing if there is no such thing.
    fn new(
        key: &str,
        (what, range, form): (&str, &str, &str),
        points: &[(f64, f64)],
        place: impl Fn(f64) -> Option<i64>,
    ) -> Result<Self, String> {
        if points.is_empty() {
            return Err(format!("'{key}' is empty; {form}"));
        }
        let mut line: Vec<(i64, u64)> = Vec::with_capacity(points.len());
        for (number, &(at, pue)) in points.iter().enumerate() {
            if !(1.0..=10.0).contains(&pue) {
                return Err(format!("'{key}': {pue} is not a PUE from 1 to 10; {form}"));
            }
            let place = place(at).ok_or_else(|| {
                format!("'{key}': {at} is not a {what}, which is {range}; {form}")
            })?;
            if line.last().is_some_and(|before| before.0 >= place) {
                let before = points[number - 1].0;
                return Err(format!("'{key}': {what} {at} follows {before}; write rising {what}s"));
            }
            line.push((place, (pue * MILLION as f64).round() as u64));
        }
        Ok(Line(line))
    }

    /// The PUE at a place, rounded up.
    fn at(&self, place: i64) -> u64 {
        let after = self.0.partition_point(|point| point.0 <= place);
        let (Some(&(from, low)), Some(&(to, high))) =
            (after.checked_sub(1).map(|before| &self.0[before]), self.0.get(after))
        else {
            let end = if after == 0 { self.0.first() } else { self.0.last() };
            return end.map_or(MILLION, |point| point.1);
        };
        let (width, way) = (from.abs_diff(to), from.abs_diff(place));
        match high.checked_sub(low) {
            Some(rise) => low + (rise * way).div_ceil(width),
            None => low - (low - high) * way / width,
        }
    }

    fn highest(&self) -> u64 {
        self.0.iter().map(|point| point.1).max().unwrap_or(MILLION)
    }
}

impl Cooling {
    /// Pairs of load (1 is the machine's maximum) and PUE, ascending in load. Below the first and above the last
    /// the PUE is theirs; between two it lies on the line between them.
    fn by_load(points: &[(f64, f64)], in_budget: bool) -> Result<Self, String> {
        let said = (
            "load",
            "from 0 to 1",
            "write a number such as 1.3, or pairs of load and PUE such as [[0.3, 1.5], [1.0, 1.2]]",
        );
        let millionths =
            |load: f64| (0.0..=1.0).contains(&load).then(|| (load * MILLION as f64).round() as i64);
        let line = Line::new("cooling.pue", said, points, millionths)?;
        match falling(&line) {
            Some(load) => Err(format!(
                "'cooling.pue': at a load of {load} the site would draw less the more the machine draws; \
                 the PUE falls too steeply there"
            )),
            None => Ok(Cooling { pue: Pue::ByLoad(line), in_budget }),
        }
    }

    /// The same with pairs of a temperature outdoors, in degrees Celsius, and PUE.
    pub fn by_temperature(points: &[(f64, f64)], in_budget: bool) -> Result<Self, String> {
        let said = (
            "temperature",
            "in degrees Celsius, from -100 to 100",
            "write pairs of temperature and PUE such as [[10, 1.1], [30, 1.4]]",
        );
        let thousandths = |degrees: f64| {
            (-100.0..=100.0).contains(&degrees).then(|| (degrees * 1000.0).round() as i64)
        };
        let line = Line::new("cooling.pue_by_temperature", said, points, thousandths)?;
        Ok(Cooling { pue: Pue::ByOutdoor(line), in_budget })
    }

    /// Whether it depends on the temperature outdoors.
    pub(crate) fn needs_outdoor(&self) -> bool {
        matches!(self.pue, Pue::ByOutdoor(_))
    }

    /// What the site draws, rounded up, when a machine of this maximum draws so much at such a temperature outdoors.
    /// If that matters and is not known, the highest PUE counts.
    pub fn of_site(&self, machine: Watts, most: Watts, outdoor: Option<Celsius>) -> Watts {
        let pue = match (&self.pue, outdoor) {
            (Pue::ByLoad(line), _) => {
                let load = u128::from(machine.milliwatts()) * u128::from(MILLION)
                    / u128::from(most.milliwatts().max(1));
                line.at(i64::try_from(load).unwrap_or(i64::MAX))
            }
            (Pue::ByOutdoor(line), Some(outdoor)) => line.at(outdoor.thousandths()),
            (Pue::ByOutdoor(line), None) => line.highest(),
        };
        let drawn = (u128::from(machine.milliwatts()) * u128::from(pue)).div_ceil(MILLION.into());
        Watts::from_milliwatts(u64::try_from(drawn).unwrap_or(u64::MAX)).min(Watts::UNLIMITED)
    }

    /// The most that a machine of this maximum may draw, so that the site draws no more than this limit in any weather.
    pub(crate) fn of_machine(&self, site: Watts, most: Watts) -> Watts {
        if site >= Watts::UNLIMITED {
            return site;
        }
        // The site draws at least what the machine does, and more when that draws more.
        let (mut fits, mut too_much) = (0, site.milliwatts() + 1);
        while too_much - fits > 1 {
            let middle = fits + (too_much - fits) / 2;
            match self.of_site(Watts::from_milliwatts(middle), most, None) <= site {
                true => fits = middle,
                false => too_much = middle,
            }
        }
        Watts::from_milliwatts(fits)
    }
}

/// The first load, in steps of a hundredth, at which the site draws less than at a lower one.
fn falling(line: &Line) -> Option<f64> {
    let drawn = |load: u64| u128::from(load) * u128::from(line.at(load as i64));
    let step = MILLION / 100;
    (1..=100)
        .map(|place| place * step)
        .find(|load| drawn(*load) < drawn(load - step))
        .map(|load| load as f64 / MILLION as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Watts = Watts::from_watts(1000);

    #[test]
    fn a_factor_is_the_same_at_every_load() {
        let cooling = Cooling::by_load(&[(1.0, 1.3)], false).unwrap();
        let site = |watts| cooling.of_site(Watts::from_watts(watts), MOST, None);
        assert_eq!((site(100), site(1000)), (Watts::from_watts(130), Watts::from_watts(1300)));
        let least = Watts::from_milliwatts(1);
        assert_eq!(cooling.of_site(least, MOST, None), Watts::from_milliwatts(2));
        assert_eq!(cooling.of_machine(Watts::from_watts(650), MOST), Watts::from_watts(500));
        assert_eq!(cooling.of_machine(Watts::UNLIMITED, MOST), Watts::UNLIMITED);
    }

    /// From 1.6 at a fifth of the load to 1.2 at full load: 1.4 halfway between.
    #[test]
    fn a_curve_lies_on_lines_between_its_points() {
        let cooling = Cooling::by_load(&[(0.2, 1.6), (1.0, 1.2)], true).unwrap();
        let site = |watts| cooling.of_site(Watts::from_watts(watts), MOST, None);
        assert_eq!(site(100), Watts::from_watts(160));
        assert_eq!(site(600), Watts::from_watts(840));
        assert_eq!(site(1000), Watts::from_watts(1200));
        assert_eq!(cooling.of_machine(Watts::from_watts(840), MOST), Watts::from_watts(600));
    }

    /// 1.1 up to -5 °C, 1.5 from 35 °C on: 1.2 at 5 °C. A limit at the meter holds in any weather.
    #[test]
    fn a_curve_over_the_temperature_outdoors() {
        let cooling = Cooling::by_temperature(&[(-5.0, 1.1), (35.0, 1.5)], true).unwrap();
        assert!(cooling.needs_outdoor());
        let site = |degrees: i64| {
            let outdoor = Celsius::from_thousandths(1000 * degrees);
            cooling.of_site(Watts::from_watts(500), MOST, outdoor)
        };
        assert_eq!(
            [-20, -5, 5, 35, 40].map(site),
            [550, 550, 600, 750, 750].map(Watts::from_watts)
        );
        assert_eq!(cooling.of_site(MOST, MOST, None), Watts::from_watts(1500));
        assert_eq!(cooling.of_machine(Watts::from_watts(600), MOST), Watts::from_watts(400));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |points: &[(f64, f64)]| Cooling::by_load(points, false).unwrap_err();
        assert!(error(&[]).contains("is empty; write a number such as 1.3"));
        assert!(error(&[(1.0, 0.9)]).contains("0.9 is not a PUE"));
        assert!(error(&[(30.0, 1.2)]).contains("30 is not a load"));
        assert!(error(&[(0.5, 1.2), (0.5, 1.1)]).contains("load 0.5 follows 0.5"));
        assert!(error(&[(0.5, 4.0), (0.6, 1.1)]).contains("falls too steeply"));
        let error = |points: &[(f64, f64)]| Cooling::by_temperature(points, false).unwrap_err();
        assert!(error(&[]).contains("'cooling.pue_by_temperature' is empty; write pairs"));
        assert!(
            error(&[(200.0, 1.2)])
                .contains("200 is not a temperature, which is in degrees Celsius")
        );
        assert!(error(&[(20.0, 1.2), (10.0, 1.1)]).contains("temperature 10 follows 20"));
    }

    #[test]
    fn a_file_says_it_once() {
        let read = |text: &str| toml::from_str::<Cooling>(text).map_err(|why| why.to_string());
        assert!(!read("pue = 1.3").unwrap().needs_outdoor());
        assert!(read("pue_by_temperature = [[10, 1.1], [30, 1.4]]").unwrap().needs_outdoor());
        assert!(read("in_budget = true").unwrap_err().contains("the PUE is missing"));
        let both = read("pue = 1.3\npue_by_temperature = [[10, 1.1]]").unwrap_err();
        assert!(both.contains("keep one"), "{both}");
    }
}
