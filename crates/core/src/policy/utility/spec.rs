//! The parameters of the utility policy, as text that round-trips.

use std::fmt;
use std::str::FromStr;

use crate::units::Span;
use crate::utility::Utility;

/// The utility policy with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtilitySpec {
    /// How tasks are mapped.
    pub heuristic: Heuristic,
    /// What a mapping event may touch.
    pub environment: Environment,
    /// Whether choices are left out that take more than their share of the energy.
    pub filter: bool,
    /// A task that cannot earn this much any more is dropped.
    pub drop: Utility,
    /// How long it is from one mapping event to the next.
    pub every: Span,
    /// Where random numbers start.
    pub seed: u64,
}

/// What a mapping event may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Environment {
    /// Each machine has a task that runs, one that is next, and a queue that is planned anew.
    Queued,
    /// Only machines that are idle get a task, and one each.
    Polled,
}

/// How tasks are mapped to machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Heuristic {
    /// Any task to any machine in any P-state.
    Random,
    /// One task after the other, each to the machine that is ready first.
    Ordered {
        /// The order of tasks.
        order: Order,
        /// Whether tasks of a higher starting utility go first.
        prioritized: bool,
        /// In which P-states.
        states: States,
    },
    /// The task and the choice that earn most, again and again.
    Greedy(Measure),
    /// The same by what is earned less the price of the energy; not in the paper.
    Priced,
}

/// The order of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// The one that arrived first.
    FirstCome,
    /// The one that arrived last.
    LastCome,
}

/// Which P-states may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum States {
    /// The fastest alone.
    Fastest,
    /// The fastest that passes the filter.
    All,
}

/// What is to be as large as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// The utility that a choice earns.
    Utility,
    /// Utility for each second of execution.
    PerTime,
    /// Utility for each joule.
    PerEnergy,
}

impl Heuristic {
    /// Those of the paper, in the order of its figure.
    pub const ALL: [Heuristic; 12] = {
        const fn ordered(order: Order, prioritized: bool, states: States) -> Heuristic {
            Heuristic::Ordered { order, prioritized, states }
        }
        [
            Heuristic::Random,
            ordered(Order::FirstCome, false, States::Fastest),
            ordered(Order::FirstCome, false, States::All),
            ordered(Order::FirstCome, true, States::Fastest),
            ordered(Order::FirstCome, true, States::All),
            ordered(Order::LastCome, false, States::Fastest),
            ordered(Order::LastCome, false, States::All),
            ordered(Order::LastCome, true, States::Fastest),
            ordered(Order::LastCome, true, States::All),
            Heuristic::Greedy(Measure::Utility),
            Heuristic::Greedy(Measure::PerTime),
            Heuristic::Greedy(Measure::PerEnergy),
        ]
    };

    /// The name by which it is written.
    pub fn name(self) -> &'static str {
        use {Order::*, States::*};
        match self {
            Heuristic::Random => "random",
            Heuristic::Greedy(Measure::Utility) => "max-utility",
            Heuristic::Greedy(Measure::PerTime) => "max-upt",
            Heuristic::Greedy(Measure::PerEnergy) => "max-upe",
            Heuristic::Priced => "priced",
            Heuristic::Ordered { order, prioritized, states } => {
                match (order, prioritized, states) {
                    (FirstCome, false, Fastest) => "fcfs-p0",
                    (FirstCome, false, All) => "fcfs-all",
                    (FirstCome, true, Fastest) => "prioritized-fcfs-p0",
                    (FirstCome, true, All) => "prioritized-fcfs-all",
                    (LastCome, false, Fastest) => "lcfs-p0",
                    (LastCome, false, All) => "lcfs-all",
                    (LastCome, true, Fastest) => "prioritized-lcfs-p0",
                    (LastCome, true, All) => "prioritized-lcfs-all",
                }
            }
        }
    }
}

impl FromStr for Heuristic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = || Heuristic::ALL.into_iter().chain([Heuristic::Priced]);
        all().find(|heuristic| heuristic.name() == text).ok_or_else(|| {
            let names: Vec<&str> = all().map(Heuristic::name).collect();
            format!("valid: {}", names.join(", "))
        })
    }
}

impl fmt::Display for Heuristic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Environment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "queued" => Ok(Environment::Queued),
            "polled" => Ok(Environment::Polled),
            _ => Err("write queued or polled"),
        }
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Environment::Queued => "queued",
            Environment::Polled => "polled",
        })
    }
}

impl Default for UtilitySpec {
    fn default() -> Self {
        UtilitySpec {
            heuristic: Heuristic::Greedy(Measure::PerEnergy),
            environment: Environment::Polled,
            filter: true,
            drop: Utility::from_millionths(500_000),
            every: Span::from_secs(60),
            seed: 1,
        }
    }
}
