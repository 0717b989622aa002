//! Tasks on machines of several types: how long a task takes and what it draws is what the tables
//! say of its type, the type of its machine and the P-state.
//!
//! A cap chooses the P-state: the fastest one that draws no more. As no P-state in the tables is
//! dominated by another, each can be chosen so.

use std::sync::Arc;

use super::{Caps, Footprint, Menu, Model, OperatingPoint, Outcome, Rung, Stretch};
use crate::heterogeneity::{PState, Tables, TaskType};
use crate::job::Job;
use crate::machine::Machine;
use crate::units::{JobId, Span, Watts};

/// Tasks as the tables say.
#[derive(Clone, Debug)]
pub struct Heterogeneous {
    tables: Arc<Tables>,
    /// By task type: on the machine that takes longest, at full speed.
    nominal: Vec<Option<OperatingPoint>>,
    rungs: [Rung; 1],
}

impl Heterogeneous {
    /// Tasks whose application is their type.
    pub fn new(tables: Arc<Tables>) -> Self {
        let least = tables.entries().map(|(_, _, state)| state.power).min();
        let node_power = least.unwrap_or(Watts::from_milliwatts(1));
        let nominal = (0..tables.task_types().len() as u32).map(|task| {
            let kinds = 0..tables.machine_types().len();
            let fastest = kinds.filter_map(|kind| tables.states(TaskType(task), kind).first());
            fastest.max_by_key(|state| state.time).map(Heterogeneous::point)
        });
        let nominal = nominal.collect();
        Heterogeneous { tables, nominal, rungs: [Rung::alike(node_power, Stretch::NONE)] }
    }

    /// A machine of as many nodes as the tables have machines.
    pub fn machine(tables: &Tables) -> Machine {
        let kinds = tables.machine_types().iter().filter(|kind| kind.machines > 0).count();
        let most = tables.entries().map(|(_, _, state)| state.power).max();
        Machine {
            name: format!("{kinds} machine types"),
            nodes: tables.machines(),
            node_power: most.unwrap_or(Machine::ASSUMED_NODE_POWER),
            processors_per_node: 1,
            sockets_per_node: 1,
            // Nothing else is known of it; Cab draws no base power and has the usual gears.
            ..Machine::cab()
        }
    }

    fn point(state: &PState) -> OperatingPoint {
        OperatingPoint::new(1, 1, state.power, state.time)
    }

    fn states(&self, job: &Job, machine_type: usize) -> &[PState] {
        task_type(job).map_or(&[], |task| self.tables.states(task, machine_type))
    }
}

/// The type of a task: its application, counted from 0.
#[inline]
pub fn task_type(job: &Job) -> Option<TaskType> {
    job.application.map(|application| TaskType(application.0.get() - 1))
}

impl Model for Heterogeneous {
    /// On the machine that takes longest, at full speed.
    fn nominal(&self, _id: JobId, job: &Job) -> OperatingPoint {
        let known = task_type(job).and_then(|task| *self.nominal.get(task.0 as usize)?);
        let unknown = || OperatingPoint::new(1, 1, self.rungs[0].node_power, job.requested);
        known.unwrap_or_else(unknown)
    }

    fn menu(&self, id: JobId, job: &Job) -> Menu {
        Menu::new(self.nominal(id, job), [])
    }

    fn outcome(&self, _id: JobId, _job: &Job, _run_time: Span, point: &OperatingPoint) -> Outcome {
        Outcome { run_time: point.time, power: point.power }
    }

    fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    fn footprint(&self, id: JobId, job: &Job) -> Footprint {
        Footprint { nodes: 1, time: self.nominal(id, job).time, power: Watts::ZERO }
    }

    fn may_enter(&self, id: JobId, job: &Job, is_fed: &dyn Fn(&OperatingPoint) -> bool) -> bool {
        is_fed(&self.nominal(id, job))
    }

    /// On one machine, in the fastest P-state that draws no more than the cap.
    fn on(&self, _id: JobId, job: &Job, caps: &Caps) -> Option<OperatingPoint> {
        let mut named = caps.iter();
        let (only, None) = (named.next()?, named.next()) else { return None };
        let states = self.states(job, self.tables.type_of(only.node)?);
        states.iter().find(|state| state.power <= only.cap).map(Heterogeneous::point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heterogeneity::{MachineType, Purpose};
    use crate::job::ApplicationId;
    use crate::units::{Instant, NodeId};
    use std::num::NonZeroU32;

    #[test]
    fn a_cap_chooses_the_state() {
        let state = |number, seconds, watts| PState {
            number,
            time: Span::from_secs(seconds),
            power: Watts::from_watts(watts),
        };
        let kind = |name: &str, purpose| MachineType { name: name.into(), machines: 1, purpose };
        let kinds = vec![kind("gpu", Purpose::Special), kind("cpu", Purpose::General)];
        let states = vec![vec![], vec![state(0, 10, 200), state(1, 12, 150)]];
        let tables = Tables::new(kinds, vec!["a".into()], states).unwrap();
        let model = Heterogeneous::new(Arc::new(tables));
        let application = Some(ApplicationId(NonZeroU32::MIN));
        let job = Job { application, ..Job::new(1, Instant::ZERO, 1, Span::from_secs(1)) };
        let on = |node, watts| {
            let caps = Caps::one(NodeId(node), Watts::from_watts(watts));
            model.on(JobId(0), &job, &caps).map(|point| point.time.millis() / 1000)
        };
        assert_eq!(
            (on(1, 500), on(1, 200), on(1, 199), on(1, 149)),
            (Some(10), Some(10), Some(12), None)
        );
        assert_eq!((on(0, 500), on(2, 500)), (None, None), "it refuses; there is no such node");
        assert_eq!(model.nominal(JobId(0), &job).time, Span::from_secs(10));
        let machine = Heterogeneous::machine(&model.tables);
        assert_eq!((machine.nodes, machine.node_power), (2, Watts::from_watts(200)));
    }
}
