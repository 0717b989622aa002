//! Switches nodes off that nobody needs, and on again when somebody could be fed on them.
//!
//! It is a rule of the site, and knows nothing of the policy: to that, a node that is off is out of service, and
//! what the other nodes may draw grows by what it no longer draws. After the policy has decided, nodes are
//! started for the jobs that still wait, in the order of the queue, as far as there is power to run something on
//! them; the job at the head gets the nodes that it needs in any case, or it would never start. What has been idle
//! for longer than the rule says, and is neither needed so nor kept in reserve, is switched off.

use std::collections::VecDeque;

use crate::dispatch::Dispatch;
use crate::job::Job;
use crate::machine::{Machine, Off};
use crate::model::Model;
use crate::switching::SwitchOff;
use crate::units::{Instant, JobId, Watts};

/// The switches of a machine while a simulation turns.
#[derive(Clone, Debug)]
pub(super) struct Switching {
    rule: SwitchOff,
    off: Off,
    idle_power: Watts,
    /// Nodes that are idle, since when, the longest idle first. Who needs nodes takes those that are idle for
    /// the shortest time: it is their number that counts, not which they are.
    idle: VecDeque<(Instant, u32)>,
    /// How many they are.
    idle_nodes: u32,
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
            rule,
            off: machine.off(),
            idle_power: machine.node().idle,
            idle: VecDeque::new(),
            idle_nodes: 0,
            stopping: VecDeque::new(),
            starting: VecDeque::new(),
            stops: 0,
        }
    }

    /// When something happens next: nodes are off or ready, or have been idle for long enough.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let first = |list: &VecDeque<(Instant, u32)>| list.front().map(|entry| entry.0);
        // Those that have been idle for longer are kept on for a reason.
        let kept = self.idle.partition_point(|(since, _)| *since + self.rule.after <= now);
        let due = self.idle.get(kept).map(|(since, _)| *since + self.rule.after);
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
        self.note_idle(now, dispatch.ledger().free_nodes());
        let long_idle = self.long_idle(now);
        let off = dispatch.ledger().switched().off;
        if off == 0 && long_idle <= self.rule.spare {
            return;
        }
        let need = Need::of(dispatch, jobs);
        let lowest = model.rungs().last().map_or(Watts::ZERO, |rung| rung.node_power);
        let wanted =
            need.to_start(dispatch, lowest, self.idle_power.saturating_sub(self.off.power));
        let started = dispatch.start_nodes(wanted);
        if started > 0 {
            self.starting.push_back((now + self.off.start.time, started));
        }
        let kept = self.rule.spare.saturating_add(need.to_keep(dispatch, lowest));
        let free = dispatch.ledger().free_nodes();
        let stopped = dispatch.stop_nodes(long_idle.min(free.saturating_sub(kept)));
        if stopped > 0 {
            self.stops += u64::from(stopped);
            self.stopping.push_back((now + self.off.stop.time, stopped));
            self.forget_longest(stopped);
        }
    }

    /// So many nodes are idle now.
    fn note_idle(&mut self, now: Instant, free: u32) {
        if free > self.idle_nodes {
            self.idle.push_back((now, free - self.idle_nodes));
        }
        let mut taken = self.idle_nodes.saturating_sub(free);
        while let Some(last) = self.idle.back_mut().filter(|_| taken > 0) {
            let from_it = last.1.min(taken);
            last.1 -= from_it;
            taken -= from_it;
            if last.1 == 0 {
                self.idle.pop_back();
            }
        }
        self.idle_nodes = free;
    }

    /// How many nodes have been idle for long enough.
    fn long_idle(&self, now: Instant) -> u32 {
        let long = self.idle.iter().take_while(|(since, _)| *since + self.rule.after <= now);
        long.map(|(_, nodes)| nodes).sum()
    }

    fn forget_longest(&mut self, mut count: u32) {
        self.idle_nodes -= count;
        while let Some(first) = self.idle.front_mut().filter(|_| count > 0) {
            let from_it = first.1.min(count);
            first.1 -= from_it;
            count -= from_it;
            if first.1 == 0 {
                self.idle.pop_front();
            }
        }
    }
}

/// How many nodes those who wait could use.
struct Need {
    /// The job at the head of the queue.
    head: u32,
    /// All, as far as there are nodes.
    all: u32,
}

impl Need {
    /// Goes through the queue only until there is no node left to ask for.
    fn of(dispatch: &Dispatch, jobs: &[Job]) -> Self {
        let (queue, total) = (dispatch.queue(), dispatch.ledger().total_nodes());
        let asked = |job: JobId| jobs[job.index()].nodes.min(total);
        let Some(first) = queue.head() else { return Need { head: 0, all: 0 } };
        let (head, mut all, mut last) = (asked(first), asked(first), first);
        while all < total
            && let Some(job) = queue.at_or_after(JobId(last.0 + 1))
        {
            all = all.saturating_add(asked(job)).min(total);
            last = job;
        }
        Need { head, all }
    }

    /// How many nodes are to be started: those that can be fed, if a busy one adds so much at least and one that
    /// is idle draws so much more than one that is off, and those without which the head cannot start.
    fn to_start(&self, dispatch: &Dispatch, lowest: Watts, on: Watts) -> u32 {
        let ledger = dispatch.ledger();
        let starting = ledger.switched().starting;
        let coming = ledger.free_nodes() + starting;
        let for_head = self.head.saturating_sub(ledger.nodes_in_service() + starting);
        let left = ledger
            .free_power()
            .saturating_sub(lowest.checked_mul(coming).unwrap_or(Watts::UNLIMITED));
        let fed = left.milliwatts() / (lowest + on).milliwatts().max(1);
        let short = self.all.saturating_sub(coming);
        for_head.max(short.min(u32::try_from(fed).unwrap_or(u32::MAX)))
    }

    /// How many idle nodes are not to be switched off: those that the head needs, and those that can be fed.
    fn to_keep(&self, dispatch: &Dispatch, lowest: Watts) -> u32 {
        let fed = dispatch.ledger().free_power().milliwatts() / lowest.milliwatts().max(1);
        self.head.max(self.all.min(u32::try_from(fed).unwrap_or(u32::MAX)))
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
