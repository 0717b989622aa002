//! Rigid jobs: the nodes asked for, at full power, for the time asked for.

use crate::job::Job;
use crate::machine::Machine;
use crate::model::{Footprint, Menu, Model, OperatingPoint, Outcome};
use crate::units::{Span, Watts};

/// Every job has one operating point, the one it asks for.
#[derive(Clone, Copy, Debug)]
pub struct Rigid {
    node_power: Watts,
}

impl Rigid {
    /// Jobs whose nodes draw what the machine's nodes draw when busy.
    pub fn on(machine: &Machine) -> Self {
        Rigid { node_power: machine.node_power }
    }
}

impl Model for Rigid {
    #[inline]
    fn nominal(&self, job: &Job) -> OperatingPoint {
        OperatingPoint {
            nodes: job.nodes,
            cap: self.node_power,
            time: job.requested.max(OperatingPoint::SHORTEST),
            // A job larger than any machine is turned away by its nodes before its power counts.
            power: self.node_power.checked_mul(job.nodes).unwrap_or(Watts::LARGEST),
        }
    }

    fn menu(&self, job: &Job) -> Menu<'_> {
        Menu::One(self.nominal(job))
    }

    #[inline]
    fn outcome(&self, _job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        Outcome { run_time, power: point.power }
    }

    #[inline]
    fn footprint(&self, job: &Job) -> Footprint {
        let OperatingPoint { nodes, time, power, .. } = self.nominal(job);
        Footprint { nodes, time, power }
    }

    #[inline]
    fn least_node_power(&self) -> Watts {
        self.node_power
    }

    #[inline]
    fn offers(&self, job: &Job, point: &OperatingPoint) -> bool {
        *point == self.nominal(job)
    }
}
