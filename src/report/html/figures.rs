//! The figures by which runs are compared, and how each is written.

use crate::metrics::Summary;
use crate::report::{human_energy, human_mass, human_power, human_time};

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
    /// What it means, for those who ask.
    pub(super) meaning: &'static str,
    pub(super) better: Better,
    pub(super) value: fn(&Summary) -> Option<f64>,
    pub(super) written: fn(f64) -> String,
}

impl Figure {
    pub(super) fn text(&self, summary: &Summary) -> String {
        let text = (self.value)(summary).map_or_else(|| "–".to_owned(), self.written);
        match &summary.currency {
            Some(currency) if self.name == COST => format!("{text} {currency}"),
            _ => text,
        }
    }

    /// The best value of some runs, if there is a better and a worse among them.
    pub(super) fn best(&self, runs: &[&Summary]) -> Option<f64> {
        let values = || runs.iter().filter_map(|run| (self.value)(run));
        let (low, high) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
        match self.better {
            _ if low == high => None,
            Better::Lower => Some(low),
            Better::Higher => Some(high),
            Better::Neither => None,
        }
    }
}

fn share(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

fn two_decimals(number: f64) -> String {
    format!("{number:.2}")
}

/// The figures of the ranking, from left to right.
pub(super) const FIGURES: [Figure; 15] = [
    Figure {
        name: "Mean turnaround",
        meaning: "From submission to end",
        better: Better::Lower,
        value: |summary| summary.mean_turnaround_s,
        written: human_time,
    },
    Figure {
        name: "Mean slowdown",
        meaning: "Bounded slowdown: wait and run time over the run time, short jobs counted as longer",
        better: Better::Lower,
        value: |summary| summary.mean_bsld,
        written: two_decimals,
    },
    Figure {
        name: "Mean wait",
        meaning: "From submission to start",
        better: Better::Lower,
        value: |summary| summary.mean_wait_s,
        written: human_time,
    },
    Figure {
        name: "99th percentile wait",
        meaning: "The shortest time that at most one job of a hundred waited longer than",
        better: Better::Lower,
        value: |summary| summary.p99_wait_s,
        written: human_time,
    },
    Figure {
        name: "Longest wait",
        meaning: "The longest time from submission to start",
        better: Better::Lower,
        value: |summary| summary.max_wait_s,
        written: human_time,
    },
    Figure {
        name: "Makespan",
        meaning: "From the first submission to the last end",
        better: Better::Lower,
        value: |summary| Some(summary.makespan_s),
        written: human_time,
    },
    Figure {
        name: "Utilisation",
        meaning: "Share of all node time that jobs used",
        better: Better::Higher,
        value: |summary| summary.utilisation,
        written: share,
    },
    Figure {
        name: "Peak power",
        meaning: "The most that was ever drawn",
        better: Better::Neither,
        value: |summary| Some(summary.peak_power_w),
        written: human_power,
    },
    Figure {
        name: "Mean power",
        meaning: "Energy over the makespan",
        better: Better::Neither,
        value: |summary| summary.mean_power_w,
        written: human_power,
    },
    Figure {
        name: "Budget used",
        meaning: "Share of the budget's energy that was drawn",
        better: Better::Neither,
        value: |summary| summary.budget_used,
        written: share,
    },
    Figure {
        name: "Energy",
        meaning: "Drawn over the makespan",
        better: Better::Lower,
        value: |summary| Some(summary.energy_j),
        written: human_energy,
    },
    Figure {
        name: "Killed by belief",
        meaning: "Jobs that took longer than the policy believed, and would have ended in time as asked",
        better: Better::Lower,
        value: |summary| Some(summary.killed_by_belief as f64).filter(|killed| *killed > 0.0),
        written: |killed| format!("{killed:.0}"),
    },
    Figure {
        name: "Over budget",
        meaning: "For how long more was drawn than the budget allows, because jobs drew more than was believed",
        better: Better::Lower,
        value: |summary| Some(summary.over_budget_s).filter(|seconds| *seconds > 0.0),
        written: human_time,
    },
    Figure {
        name: COST,
        meaning: "Of energy, and of the highest quarter of an hour of each month",
        better: Better::Lower,
        value: |summary| summary.cost,
        written: |cost| format!("{cost:.2}"),
    },
    Figure {
        name: "CO₂",
        meaning: "Emitted for the energy that was drawn",
        better: Better::Lower,
        value: |summary| summary.carbon_kg,
        written: human_mass,
    },
];

const COST: &str = "Cost";

/// How many figures at the end of the list are rare.
const RARE: usize = 4;

/// Those that some of these runs have. What is rare has no column where it did not happen.
pub(super) fn shown(runs: &[&Summary]) -> Vec<&'static Figure> {
    let is_there = |figure: &&Figure| runs.iter().any(|run| (figure.value)(run).is_some());
    let (usual, rare) = FIGURES.split_at(FIGURES.len() - RARE);
    usual.iter().chain(rare.iter().filter(is_there)).collect()
}
