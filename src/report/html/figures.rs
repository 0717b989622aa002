//! The figures by which runs are compared, and how each is written.

use crate::metrics::Summary;
use crate::report::ranking::over_seeds;
use crate::report::{OverSeeds, prefix, time_unit};

/// Which of two values is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    Lower,
    Higher,
    /// Neither: it depends on what one wants.
    Neither,
}

/// A figure of a run.
pub(super) struct Figure {
    pub(super) name: &'static str,
    /// What it is called where runs are ranked by it; nothing if they never are.
    key: &'static str,
    /// What it means, for those who ask.
    pub(super) meaning: &'static str,
    pub(super) better: Better,
    pub(super) value: fn(&Summary) -> Option<f64>,
    quantity: Quantity,
}

/// What kind of thing a figure is, which says how it is written.
#[derive(Clone, Copy, Debug)]
enum Quantity {
    Time,
    Power,
    Energy,
    Mass,
    Share,
    Money,
    Ratio,
    Count,
}

impl Quantity {
    /// The unit that suits a value, the unit's size, and how many digits stand behind the point.
    fn unit(self, value: f64) -> (String, f64, usize) {
        let prefixed = |unit: &str| {
            let (prefix, size) = prefix(value);
            (format!(" {prefix}{unit}"), size, if prefix.is_empty() { 1 } else { 2 })
        };
        match self {
            Quantity::Time => {
                let (unit, size) = time_unit(value);
                (format!(" {unit}"), size, 1)
            }
            Quantity::Power => prefixed("W"),
            Quantity::Energy => prefixed("J"),
            Quantity::Mass if value.abs() >= 1000.0 => (" t".to_owned(), 1000.0, 2),
            Quantity::Mass => (" kg".to_owned(), 1.0, 2),
            Quantity::Share => (" %".to_owned(), 0.01, 1),
            Quantity::Money | Quantity::Ratio => (String::new(), 1.0, 2),
            Quantity::Count => (String::new(), 1.0, 0),
        }
    }

    fn written(self, value: OverSeeds) -> String {
        let (unit, size, digits) = self.unit(value.mean);
        let deviation = value.deviation.map(|by| format!(" ±{:.digits$}", by / size));
        format!("{:.digits$}{}{unit}", value.mean / size, deviation.unwrap_or_default())
    }
}

impl Figure {
    /// The figure that runs are ranked by, if it is one of these.
    pub(super) fn ranked_by(name: &str) -> Option<&'static Figure> {
        FIGURES.iter().find(|figure| figure.key == name)
    }

    /// The figure over seeds, if the run has it.
    pub(super) fn of(&self, seeds: &[&Summary]) -> Option<OverSeeds> {
        over_seeds(seeds, self.value)
    }

    /// In words: the mean, and how far seeds differ where there are several.
    pub(super) fn text(&self, seeds: &[&Summary]) -> String {
        let text =
            self.of(seeds).map_or_else(|| "–".to_owned(), |value| self.quantity.written(value));
        match seeds.first().and_then(|summary| summary.currency.as_ref()) {
            Some(currency) if matches!(self.quantity, Quantity::Money) => {
                format!("{text} {currency}")
            }
            _ => text,
        }
    }

    /// The best value of some runs, if there is a better and a worse among them.
    pub(super) fn best(&self, runs: &[&Vec<&Summary>]) -> Option<f64> {
        let values = || runs.iter().filter_map(|run| Some(self.of(run)?.mean));
        let (low, high) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
        match self.better {
            _ if low == high => None,
            Better::Lower => Some(low),
            Better::Higher => Some(high),
            Better::Neither => None,
        }
    }
}

/// The figures of the ranking, from left to right.
pub(super) const FIGURES: [Figure; 15] = [
    Figure {
        name: "Mean turnaround",
        key: "turnaround",
        meaning: "From submission to end",
        better: Better::Lower,
        value: |summary| summary.mean_turnaround_s,
        quantity: Quantity::Time,
    },
    Figure {
        name: "Mean slowdown",
        key: "slowdown",
        meaning: "Bounded slowdown: wait and run time over the run time, short jobs counted as longer",
        better: Better::Lower,
        value: |summary| summary.mean_bsld,
        quantity: Quantity::Ratio,
    },
    Figure {
        name: "Mean wait",
        key: "wait",
        meaning: "From submission to start",
        better: Better::Lower,
        value: |summary| summary.mean_wait_s,
        quantity: Quantity::Time,
    },
    Figure {
        name: "99th percentile wait",
        key: "p99_wait",
        meaning: "The shortest time that at most one job of a hundred waited longer than",
        better: Better::Lower,
        value: |summary| summary.p99_wait_s,
        quantity: Quantity::Time,
    },
    Figure {
        name: "Longest wait",
        key: "max_wait",
        meaning: "The longest time from submission to start",
        better: Better::Lower,
        value: |summary| summary.max_wait_s,
        quantity: Quantity::Time,
    },
    Figure {
        name: "Makespan",
        key: "makespan",
        meaning: "From the first submission to the last end",
        better: Better::Lower,
        value: |summary| Some(summary.makespan_s),
        quantity: Quantity::Time,
    },
    Figure {
        name: "Utilisation",
        key: "utilisation",
        meaning: "Share of all node time that jobs used",
        better: Better::Higher,
        value: |summary| summary.utilisation,
        quantity: Quantity::Share,
    },
    Figure {
        name: "Peak power",
        key: "",
        meaning: "The highest power",
        better: Better::Neither,
        value: |summary| Some(summary.peak_power_w),
        quantity: Quantity::Power,
    },
    Figure {
        name: "Mean power",
        key: "",
        meaning: "Energy over the makespan",
        better: Better::Neither,
        value: |summary| summary.mean_power_w,
        quantity: Quantity::Power,
    },
    Figure {
        name: "Budget used",
        key: "",
        meaning: "Share of the budget's energy that was used",
        better: Better::Neither,
        value: |summary| summary.budget_used,
        quantity: Quantity::Share,
    },
    Figure {
        name: "Energy",
        key: "energy",
        meaning: "Drawn over the makespan",
        better: Better::Lower,
        value: |summary| Some(summary.energy_j),
        quantity: Quantity::Energy,
    },
    Figure {
        name: "Killed by belief",
        key: "",
        meaning: "Jobs that took longer than the policy predicted, but would have met their requested time limit",
        better: Better::Lower,
        value: |summary| Some(summary.killed_by_belief as f64).filter(|killed| *killed > 0.0),
        quantity: Quantity::Count,
    },
    Figure {
        name: "Over budget",
        key: "",
        meaning: "Time over the budget, because jobs drew more than predicted",
        better: Better::Lower,
        value: |summary| Some(summary.over_budget_s).filter(|seconds| *seconds > 0.0),
        quantity: Quantity::Time,
    },
    Figure {
        name: "Cost",
        key: "cost",
        meaning: "Cost of energy, and of the highest 15-minute average of each month",
        better: Better::Lower,
        value: |summary| summary.cost,
        quantity: Quantity::Money,
    },
    Figure {
        name: "CO₂",
        key: "carbon",
        meaning: "Emissions of the energy used",
        better: Better::Lower,
        value: |summary| summary.carbon_kg,
        quantity: Quantity::Mass,
    },
];

/// How many figures at the end of the list are rare.
const RARE: usize = 4;

/// Those that some of these runs have. What is rare has no column where it did not happen.
pub(super) fn shown(runs: &[Vec<&Summary>]) -> Vec<&'static Figure> {
    let is_there = |figure: &&Figure| runs.iter().any(|run| figure.of(run).is_some());
    let (usual, rare) = FIGURES.split_at(FIGURES.len() - RARE);
    usual.iter().chain(rare.iter().filter(is_there)).collect()
}
