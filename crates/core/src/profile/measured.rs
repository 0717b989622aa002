//! Measurements as they were made: every setting of an application with all of its runs.
//!
//! Runs of one setting differ by some per cent. Of their times the median counts, which no single bad run
//! moves; of their powers the largest, since a budget has to hold for each of them. How far apart they are
//! is kept as a [`Spread`].
//!
//! Memory and GPUs may have caps of their own. Then the same watts can be divided in several ways, and policies,
//! which decide on watts alone, are told of the fastest of those that were tried ([`Measured::chosen`]).

use std::collections::BTreeMap;

use super::{Configuration, Origin, Profile, Row};
use crate::units::{Span, Watts};

/// The caps of what is in a node beside its processors, for each socket. A part without one has nothing here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OtherCaps {
    /// The most that the memory of a socket may draw.
    pub memory: Option<Watts>,
    /// The most that the GPUs of a socket may draw.
    pub gpu: Option<Watts>,
}

impl OtherCaps {
    /// All of them together.
    pub(crate) fn sum(self) -> Watts {
        self.memory.unwrap_or_default().saturating_add(self.gpu.unwrap_or_default())
    }

    /// Whether any part has one.
    pub fn are_set(self) -> bool {
        self != OtherCaps::default()
    }
}

/// How an application was run, with the cap of each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Setting {
    /// Nodes, cores, and the cap of the processors alone.
    pub configuration: Configuration,
    /// The caps of other parts.
    pub others: OtherCaps,
}

impl Setting {
    /// The configuration as policies see it: its cap is that of all parts of a socket together.
    pub fn whole(&self) -> Configuration {
        let cap = self.configuration.cap.saturating_add(self.others.sum());
        Configuration { cap, ..self.configuration }
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// How long it took.
    pub time: Span,
    /// The mean power of all nodes during the run.
    pub power: Watts,
}

/// How far apart the runs of a setting are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The number of runs.
    pub runs: usize,
    /// The shortest time.
    pub shortest: Span,
    /// The longest time.
    pub longest: Span,
}

impl Spread {
    /// That of several runs; `None` if there is none.
    pub fn of(runs: &[Run]) -> Option<Self> {
        let times = || runs.iter().map(|run| run.time);
        Some(Spread { runs: runs.len(), shortest: times().min()?, longest: times().max()? })
    }

    /// By how much the longest run is longer than the shortest, in per cent.
    pub fn percent(&self) -> f64 {
        100.0 * (self.longest.secs_f64() / self.shortest.secs_f64().max(1e-3) - 1.0)
    }
}

/// What several runs of one setting say together; `None` if there is none.
pub fn summed_up(runs: &[Run]) -> Option<Run> {
    let mut times: Vec<Span> = runs.iter().map(|run| run.time).collect();
    times.sort_unstable();
    // Of an even number the slower one of the two in the middle.
    let time = times.get(times.len() / 2).copied()?;
    let power = runs.iter().map(|run| run.power).max()?;
    Some(Run { time, power })
}

/// A setting with all of its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// How the application was run.
    pub setting: Setting,
    /// The origin of the values of all runs.
    pub origin: Origin,
    /// At least one.
    pub runs: Vec<Run>,
}

/// A setting with what its runs say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summed {
    /// How the application was run.
    pub setting: Setting,
    /// The median time.
    pub time: Span,
    /// The largest power.
    pub power: Watts,
    /// The origin of the values.
    pub origin: Origin,
    /// How far apart the runs are.
    pub spread: Spread,
}

impl Sampled {
    /// What the runs say together; `None` if there are none.
    pub fn summed(&self) -> Option<Summed> {
        let Run { time, power } = summed_up(&self.runs)?;
        let spread = Spread::of(&self.runs)?;
        Some(Summed { setting: self.setting, time, power, origin: self.origin, spread })
    }
}

impl Summed {
    /// The row that policies see.
    pub fn row(&self) -> Row {
        let Summed { setting, time, power, origin, .. } = *self;
        Row { configuration: setting.whole(), time, power, origin }
    }
}

/// All that was measured of one application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Its name.
    pub application: String,
    /// By setting, ascending, each setting once.
    pub settings: Vec<Sampled>,
}

impl Measured {
    /// Whether any setting has a cap for memory or for GPUs.
    pub fn has_other_caps(&self) -> bool {
        self.settings.iter().any(|sampled| sampled.setting.others.are_set())
    }

    /// For each configuration as policies see it the fastest setting, and of several the one that draws least.
    pub fn chosen(&self) -> Vec<(Summed, &Sampled)> {
        let mut chosen: BTreeMap<Configuration, (Summed, &Sampled)> = BTreeMap::new();
        for sampled in &self.settings {
            let Some(summed) = sampled.summed() else { continue };
            let rank = |summed: &Summed| (summed.time, summed.power, summed.setting);
            let place = chosen.entry(summed.setting.whole()).or_insert((summed, sampled));
            if rank(&summed) < rank(&place.0) {
                *place = (summed, sampled);
            }
        }
        chosen.into_values().collect()
    }

    /// The profile that policies see.
    pub(crate) fn profile(&self) -> Profile {
        let rows = self.chosen().iter().map(|(summed, _)| summed.row()).collect();
        Profile { application: self.application.clone(), rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(millis: u64, watts: u32) -> Run {
        Run { time: Span::from_millis(millis), power: Watts::from_watts(watts) }
    }

    fn sampled(cap: u32, gpu: Option<u32>, runs: &[Run]) -> Sampled {
        let configuration = Configuration { nodes: 1, cores: 8, cap: Watts::from_watts(cap) };
        let others = OtherCaps { memory: None, gpu: gpu.map(Watts::from_watts) };
        let setting = Setting { configuration, others };
        Sampled { setting, origin: Origin::Measured, runs: runs.to_vec() }
    }

    #[test]
    fn times_count_by_their_median_and_powers_by_their_largest() {
        let runs = [run(30, 100), run(10, 120), run(20, 110)];
        assert_eq!(summed_up(&runs), Some(run(20, 120)));
        assert_eq!(summed_up(&runs[..2]), Some(run(30, 120)), "the slower of the two");
        assert_eq!(summed_up(&[]), None);
        let spread = Spread::of(&runs).unwrap();
        assert_eq!((spread.runs, spread.percent().round()), (3, 200.0));
    }

    /// 100 W can be 60 + 40 or 40 + 60; a GPU without a cap of its own is another total.
    #[test]
    fn of_one_total_the_fastest_division_counts() {
        let settings = vec![
            sampled(40, Some(60), &[run(500, 90), run(700, 95), run(600, 80)]),
            sampled(60, Some(40), &[run(800, 85)]),
            sampled(60, Some(60), &[run(400, 99)]),
            sampled(100, None, &[run(600, 94)]),
        ];
        let measured = Measured { application: "a".to_owned(), settings };
        assert!(measured.has_other_caps());
        let rows: Vec<(u64, u64, f64)> = measured
            .profile()
            .rows
            .iter()
            .map(|row| (row.configuration.cap.milliwatts(), row.time.millis(), row.power.as_f64()))
            .collect();
        // At 600 ms each, the one that draws less.
        assert_eq!(rows, [(100_000, 600, 94.0), (120_000, 400, 99.0)]);
    }
}
