//! What tasks of each type may do: their choices, laid out for a mapping event to run through.

use crate::heterogeneity::{Purpose, Tables, TaskType};
use crate::units::{Joules, Span, Watts};

/// A machine type and a P-state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// The machine type.
    pub(super) kind: u16,
    /// The place of the P-state among those of the pair, the fastest first.
    pub(super) state: u16,
    pub(super) time: Span,
    pub(super) power: Watts,
    /// In microjoules; the tables have none that does not fit.
    pub(super) energy: u64,
    /// What the utility is divided by where it matters.
    pub(super) cost: f64,
}

/// The choices of every task type.
#[derive(Clone, Debug)]
pub(super) struct Choices {
    /// By task type, and in it by machine type and P-state.
    by_kind: Vec<Vec<Choice>>,
    /// The same, with the fastest P-states alone.
    fastest: Vec<Vec<Choice>>,
    /// By task type, and in it by cost; those of equal cost by machine type and P-state.
    by_cost: Vec<Vec<Choice>>,
    /// By machine type: the task types that it runs.
    by_machine: Vec<Vec<u32>>,
    /// Whether a machine type is a special-purpose one.
    pub(super) purposes: Vec<Purpose>,
    /// The largest energy of all.
    pub(super) largest: Joules,
}

impl Choices {
    /// The choices at a site, where a choice costs what is said.
    pub(super) fn of(tables: &Tables, cost: impl Fn(&Choice) -> f64) -> Self {
        let types = 0..tables.task_types().len() as u32;
        let by_kind: Vec<Vec<Choice>> = types
            .map(|task| {
                let kinds = tables.machine_types().iter().enumerate();
                let kinds = kinds.filter(|(_, kind)| kind.machines > 0);
                let choices = kinds.flat_map(|(place, _)| {
                    let states = tables.states(TaskType(task), place).iter().enumerate();
                    states.map(move |(state, entry)| Choice {
                        kind: place as u16,
                        state: state as u16,
                        time: entry.time,
                        power: entry.power,
                        energy: u64::try_from(entry.energy().microjoules()).unwrap_or(u64::MAX),
                        cost: 1.0,
                    })
                });
                choices.map(|choice| Choice { cost: cost(&choice), ..choice }).collect()
            })
            .collect();
        let mut by_cost = by_kind.clone();
        for choices in &mut by_cost {
            choices.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        }
        let fastest: Vec<Vec<Choice>> = by_kind
            .iter()
            .map(|choices| choices.iter().filter(|choice| choice.state == 0).copied().collect())
            .collect();
        let mut by_machine = vec![Vec::new(); tables.machine_types().len()];
        for (task, choices) in (0u32..).zip(&fastest) {
            for choice in choices {
                by_machine[usize::from(choice.kind)].push(task);
            }
        }
        let energies = by_kind.iter().flatten().map(|choice| choice.energy);
        Choices {
            largest: Joules::from_microjoules(u128::from(energies.max().unwrap_or(0))),
            purposes: tables.machine_types().iter().map(|kind| kind.purpose).collect(),
            by_kind,
            fastest,
            by_cost,
            by_machine,
        }
    }

    /// By machine type, and then from the fastest P-state on.
    #[inline]
    pub(super) fn by_kind(&self, task: TaskType) -> &[Choice] {
        self.by_kind.get(task.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// By machine type, in the fastest P-state.
    #[inline]
    pub(super) fn fastest(&self, task: TaskType) -> &[Choice] {
        self.fastest.get(task.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// From the cheapest on.
    #[inline]
    pub(super) fn by_cost(&self, task: TaskType) -> &[Choice] {
        self.by_cost.get(task.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// The task types that a machine type runs.
    pub(super) fn runs(&self, kind: usize) -> &[u32] {
        self.by_machine.get(kind).map_or(&[], Vec::as_slice)
    }

    /// How many task types there are.
    pub(super) fn types(&self) -> usize {
        self.by_kind.len()
    }
}
