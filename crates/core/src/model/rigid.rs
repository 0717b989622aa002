//! Rigid jobs: the nodes asked for, at full power, for the time asked for.

use crate::job::Job;
use crate::machine::Machine;
use crate::model::{Footprint, Menu, Model, OperatingPoint, Outcome, Rung, Stretch};
use crate::units::{JobId, Span, Watts};

/// Every job has one operating point, the one it asks for.
#[derive(Clone, Copy, Debug)]
pub struct Rigid {
    rung: [Rung; 1],
    cores: u32,
}

impl Rigid {
    /// Jobs whose nodes draw what the machine's nodes draw when busy.
    pub fn on(machine: &Machine) -> Self {
        let rung = [Rung::alike(machine.added_power(), Stretch::NONE)];
        Rigid { rung, cores: machine.processors_per_node }
    }
}

impl Model for Rigid {
    #[inline]
    fn nominal(&self, _id: JobId, job: &Job) -> OperatingPoint {
        OperatingPoint::new(job.nodes, self.cores, self.rung[0].node_power, job.requested)
    }

    fn menu(&self, id: JobId, job: &Job) -> Menu {
        Menu::new(self.nominal(id, job), [])
    }

    #[inline]
    fn outcome(&self, _id: JobId, _job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        Outcome { run_time, power: point.power }
    }

    #[inline]
    fn rungs(&self) -> &[Rung] {
        &self.rung
    }

    #[inline]
    fn footprint(&self, id: JobId, job: &Job) -> Footprint {
        let OperatingPoint { nodes, time, .. } = self.nominal(id, job);
        Footprint { nodes, time, power: Watts::ZERO }
    }

    #[inline]
    fn may_enter(&self, id: JobId, job: &Job, is_fed: &dyn Fn(&OperatingPoint) -> bool) -> bool {
        is_fed(&self.nominal(id, job))
    }

    #[inline]
    fn offers(&self, id: JobId, job: &Job, point: &OperatingPoint) -> bool {
        *point == self.nominal(id, job)
    }
}
