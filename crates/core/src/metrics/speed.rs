//! How fast jobs ran on a machine with gears, and what that saved.

use crate::budget::Budget;
use crate::job::Job;
use crate::machine::Machine;
use crate::sim::Record;
use crate::units::{Joules, Span, Watts};

/// How fast jobs ran, and what that saved.
pub(super) struct Speed<'a> {
    machine: &'a Machine,
    /// Each gear with the node time spent in it.
    gears: Vec<(f64, Watts, u128)>,
    energy: Joules,
    /// What the same jobs would have drawn at nominal speed.
    nominal_energy: Joules,
    /// Jobs that the budget never feeds at nominal speed.
    pub(super) oversized: u64,
}

impl<'a> Speed<'a> {
    pub(super) fn on(machine: &'a Machine) -> Self {
        let gears = machine.gearbox.node_powers(machine.added_power());
        Speed {
            machine,
            gears: gears.into_iter().map(|(gear, power)| (gear.ghz, power, 0)).collect(),
            energy: Joules::ZERO,
            nominal_energy: Joules::ZERO,
            oversized: 0,
        }
    }

    #[inline]
    pub(super) fn note(
        &mut self,
        job: &Job,
        nominal_run_time: Span,
        record: &Record,
        budget: &Budget,
    ) {
        let run_time = record.end.since(record.start);
        let node_time = u128::from(record.nodes) * u128::from(run_time.millis());
        if let Some(gear) = self.gears.iter_mut().find(|gear| gear.1 == record.cap) {
            gear.2 += node_time;
        }
        let nominal_power = self.machine.added_power() * job.nodes;
        self.energy += record.power.over(run_time);
        self.nominal_energy += nominal_power.over(nominal_run_time);
        if record.cap < self.machine.added_power() {
            let most = budget.largest_for(record.start, job.requested);
            self.oversized += u64::from(nominal_power + self.machine.floor() > most);
        }
    }

    pub(super) fn mean_frequency(&self) -> Option<f64> {
        let whole: u128 = self.gears.iter().map(|gear| gear.2).sum();
        let sum: f64 = self.gears.iter().map(|(ghz, _, time)| ghz * *time as f64).sum();
        (whole > 0).then(|| sum / whole as f64)
    }

    /// What jobs drew, as a share of what they would have drawn at nominal speed.
    pub(super) fn energy_vs_nominal(&self) -> Option<f64> {
        let nominal = self.nominal_energy.as_f64();
        (nominal > 0.0).then(|| self.energy.as_f64() / nominal)
    }
}
