//! Nodes of a simulation that are switched off and on: the rule decides, and here is how long it takes.

use std::collections::VecDeque;

use crate::dispatch::Dispatch;
use crate::job::Job;
use crate::machine::{Machine, Off};
use crate::model::Model;
use crate::switching::{Directions, SwitchOff, Switcher, Turned};
use crate::units::Instant;

/// The switches of a machine while a simulation turns.
#[derive(Clone, Debug)]
pub(super) struct Switching {
    switcher: Switcher,
    off: Off,
    /// When nodes will be off, and how many.
    stopping: VecDeque<(Instant, u32)>,
    /// When nodes will be ready, and how many.
    starting: VecDeque<(Instant, u32)>,
    /// How often a node was switched off.
    pub(super) stops: u64,
}

/// What became of nodes that were on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// So many are off.
    Stopped(u32),
    /// So many are ready.
    Ready(u32),
}

impl Switching {
    pub(super) fn new(rule: SwitchOff, machine: &Machine) -> Self {
        Switching {
            switcher: Switcher::new(rule, machine),
            off: machine.off(),
            stopping: VecDeque::new(),
            starting: VecDeque::new(),
            stops: 0,
        }
    }

    /// When something happens next: nodes are off or ready, or have been idle for long enough.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let first = |list: &VecDeque<(Instant, u32)>| list.front().map(|entry| entry.0);
        let due = self.switcher.next(now);
        [first(&self.stopping), first(&self.starting), due].into_iter().flatten().min()
    }

    /// Nodes that are off or ready by now.
    pub(super) fn arrived(&mut self, now: Instant) -> Option<Arrival> {
        let due = |list: &mut VecDeque<(Instant, u32)>| {
            let is_due = list.front().is_some_and(|entry| entry.0 <= now);
            is_due.then(|| list.pop_front()).flatten().map(|entry| entry.1)
        };
        let stopped = due(&mut self.stopping).map(Arrival::Stopped);
        stopped.or_else(|| due(&mut self.starting).map(Arrival::Ready))
    }

    /// Starts and stops nodes, now that the policy has decided.
    pub(super) fn switch(&mut self, dispatch: &mut Dispatch, model: &dyn Model, jobs: &[Job]) {
        let now = dispatch.ledger().now();
        let Turned { started, stopped } =
            self.switcher.switch(dispatch, model, jobs, Directions::Both);
        if started > 0 {
            self.starting.push_back((now + self.off.start.time, started));
        }
        if stopped > 0 {
            self.stops += u64::from(stopped);
            self.stopping.push_back((now + self.off.stop.time, stopped));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::budget::Budget;
    use crate::job::Job;
    use crate::machine::{Details, Machine, Off, Transition};
    use crate::policy::Easy;
    use crate::sim::{EnergyByState, Outage, Outages, Run, Simulation};
    use crate::switching::SwitchOff;
    use crate::units::{Instant, Joules, NodeId, Span, Watts};
    use crate::workload::Workload;

    /// Nodes of 100 W, 20 W idle and 2 W off; they stop within 10 s at 30 W and start within 60 s at 80 W.
    fn machine(nodes: u32) -> Machine {
        let watts = Watts::from_watts;
        let off = Off {
            power: watts(2),
            stop: Transition { time: Span::from_secs(10), power: watts(30) },
            start: Transition { time: Span::from_secs(60), power: watts(80) },
        };
        let details = Details { idle: Some(watts(20)), off: Some(off), ..Details::default() };
        Machine { details, ..Machine::of_processors(nodes).unwrap() }
    }

    fn workload(jobs: &[(u32, u32, u32)]) -> Workload {
        let job = |(number, &(submit, nodes, seconds)): (u64, &(u32, u32, u32))| {
            let time = Span::from_secs(seconds);
            (Job::new(number, Instant::from_secs(submit), nodes, time), time)
        };
        Workload::new("switched", (1..).zip(jobs).map(job))
    }

    const RULE: SwitchOff = SwitchOff { after: Span::from_secs(100), spare: 1 };

    fn starts(run: &Run) -> Vec<u64> {
        run.records.iter().map(|record| record.start.millis() / 1000).collect()
    }

    /// Four nodes run a job until 50 s. After 100 s three of them are switched off; the fourth is kept. At 1000 s
    /// a job wants three: two are started, and the job begins when they are ready.
    #[test]
    fn energy_by_hand() {
        let (machine, workload) = (machine(4), workload(&[(0, 4, 50), (1000, 3, 100)]));
        let run =
            Simulation::new(&machine, &workload).switch_off(Some(RULE)).run(&mut Easy::default());
        assert_eq!((starts(&run), run.end), (vec![0, 1060], Instant::from_secs(1160)));
        let joules = Joules::from_joules;
        let expected = EnergyByState {
            running: joules(4 * 50 * 100 + 3 * 100 * 100),
            // All four until 150 s, then one until it is needed.
            idle: joules(20 * (4 * 100 + 10 + 840 + 60)),
            stopping: joules(3 * 10 * 30),
            off: joules(2 * (3 * 840 + 60 + 100)),
            starting: joules(2 * 60 * 80),
            base: Joules::ZERO,
        };
        assert_eq!(run.energy_by_state, expected);
        assert_eq!(run.energy, joules(92_060));
        assert_eq!(run.node_stops, Some(3));
    }

    /// Without a rule nodes stay on.
    #[test]
    fn nothing_is_switched_unasked() {
        let (machine, workload) = (machine(4), workload(&[(0, 4, 50), (1000, 3, 100)]));
        let run = Simulation::new(&machine, &workload).run(&mut Easy::default());
        assert_eq!((starts(&run), run.node_stops), (vec![0, 1000], None));
        assert_eq!(run.energy_by_state.total(), run.energy);
    }

    /// Of 460 W, ten idle nodes leave 260 W: three busy ones. When those that cannot be fed are off, they leave
    /// room for a fourth.
    #[test]
    fn what_is_saved_feeds_others() {
        let (machine, workload) = (machine(10), workload(&[(0, 1, 9000); 5]));
        let budget = Budget::constant(Watts::from_watts(460));
        let simulation = Simulation::new(&machine, &workload).budget(budget);
        assert_eq!(starts(&simulation.run(&mut Easy::default())), [0, 0, 0, 9000, 9000]);
        let run = simulation.switch_off(Some(RULE)).run(&mut Easy::default());
        let starts = starts(&run);
        assert!(starts[3] < 1000, "{starts:?}");
        assert_eq!((run.excursions.count, run.violations), (0, 0));
    }

    proptest! {
        /// Whatever happens, the parts of the energy are the whole, and the limit is kept. Unless that falls, every
        /// job runs that would run with all nodes on.
        #[test]
        fn nothing_is_lost(
            jobs in prop::collection::vec((0u32..5000, 1u32..=8, 1u32..900), 1..40),
            limit in 240u32..900,
            later in 240u32..900,
            fails in any::<bool>(),
        ) {
            let (machine, workload) = (machine(8), workload(&jobs));
            let steps = vec![
                (Instant::ZERO, Watts::from_watts(limit)),
                (Instant::from_secs(2500), Watts::from_watts(later)),
            ];
            let budget = Budget::from_steps(steps).unwrap();
            let (down, up) = (Instant::from_secs(1000), Instant::from_secs(3000));
            let outage = Outage { node: NodeId(2), down, up };
            let outages = Outages::new(if fails { vec![outage] } else { Vec::new() });
            let simulation = Simulation::new(&machine, &workload).budget(budget).outages(outages);
            let on = simulation.run(&mut Easy::default());
            let run = simulation.switch_off(Some(RULE)).run(&mut Easy::default());
            prop_assert_eq!(run.energy_by_state.total(), run.energy);
            prop_assert_eq!(on.energy_by_state.total(), on.energy);
            prop_assert_eq!(run.excursions.count, 0);
            prop_assert_eq!(run.violations, 0);
            // Who starts later may find a limit under which there is no power for it at all, and with nodes off
            // there may be power for a job for which there is none with all of them on.
            if later >= limit {
                let ran = |run: &Run| run.records.iter().filter(|record| record.nodes > 0).count();
                prop_assert!(ran(&run) >= ran(&on) && run.unfinished <= on.unfinished);
            }
        }
    }
}
