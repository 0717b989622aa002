//! Jobs that come through the engine: its users submit them there, and it keeps them until the daemon starts them.

use std::collections::BTreeSet;

use super::Controller;
use crate::engine::{Arrival, Underway};
use crate::job::{Allotment, Attempt, EndReason, Entry, EventKind, Phase, Program, Run};
use crate::wire::{Refusal, RefusalKind};
use busbar_core::model::OperatingPoint;
use busbar_core::units::{Instant, Watts};

impl Controller {
    /// Takes in a job that has come through the engine, and returns its number. One that runs already counts from now on,
    /// whatever the budget says.
    pub(crate) fn arrived(&mut self, now: Instant, arrival: Arrival) -> Result<u64, Refusal> {
        let Arrival { handle, owner, request, running } = arrival;
        if let Some(known) = self.by_handle.get(&handle) {
            return Ok(*known);
        }
        if running.is_none() {
            self.check_request(&request)?;
        }
        let number = self.next;
        let (submit, phase) = (now, Phase::Waiting);
        let handle = Some(handle);
        let mut entry =
            Entry { number, owner, request, submit, attempts: 0, phase, array: None, handle };
        let job = match (self.setup.job(&entry), &running) {
            // It counts, whatever it is.
            (Err(_), Some(_)) => self.setup.stand_in(&entry),
            (job, _) => job?,
        };
        self.scheduler.add(job, self.setup.seat_of(&entry));
        let start = match running {
            None => None,
            Some(underway) => match self.underway(now, number, &underway) {
                Ok(allotment) => Some((allotment, underway)),
                Err(refusal) => {
                    self.scheduler.remove(number);
                    return Err(refusal);
                }
            },
        };
        self.next = number + 1;
        self.note(now, EventKind::Submitted { job: number, element: None });
        if let Some((allotment, underway)) = start {
            let mut run = Run::new(now, allotment.clone());
            run.until = now + allotment.time.saturating_sub(underway.ran);
            run.of_others = underway.of_others;
            entry.attempts = 1;
            // Its nodes may be held at the cap of idle ones.
            self.uncapped.push(number);
            if underway.of_others {
                let (name, count) = (&entry.request.name, allotment.nodes.len());
                let nodes = if count == 1 { "a node" } else { "nodes" };
                let text = format!(
                    "{name}, which Busbar does not manage, runs on {nodes} of Busbar's nodes ({count}): its \
                    maximum power there counts"
                );
                self.note(now, EventKind::notice(text));
            }
            entry.phase = Phase::Running(run);
            self.note(now, EventKind::Started { job: number, attempt: 1, allotment });
            self.running.insert(number);
            // The ledger is made anew with everything that runs, so that this counts even beyond the limit.
            self.must_rebuild = true;
            self.must_ask = true;
        }
        self.bytes.insert(number, entry.request.bytes());
        let own = self.of_user.entry(owner.user).or_default();
        own.jobs += 1;
        own.bytes += entry.request.bytes();
        self.jobs.insert(number, entry.clone());
        self.by_handle.extend(entry.handle.clone().map(|handle| (handle, number)));
        self.unwritten.submitted.push((entry.clone(), program()));
        if entry.phase == Phase::Waiting {
            self.enqueue(number);
        }
        Ok(number)
    }

    /// What a job has that runs already: the watts that it was promised, or as much as it can draw. Jobs that were to get its
    /// nodes, and are not placed, get others.
    fn underway(
        &mut self,
        now: Instant,
        number: u64,
        underway: &Underway,
    ) -> Result<Allotment, Refusal> {
        let nodes: BTreeSet<u32> = underway.nodes.iter().copied().collect();
        let nominal = self.scheduler.nominal(number).filter(|_| !nodes.is_empty());
        let room = self.room_for(number, &nodes, &BTreeSet::new());
        let (Some(nominal), Some(room)) = (nominal, room) else {
            let message =
                "it runs on nodes that this daemon does not have, or that another job has";
            return Err(Refusal { kind: RefusalKind::Impossible, message: message.to_owned() });
        };
        self.make(now, room);
        let OperatingPoint { cores, time, .. } = nominal;
        let each = |total: Watts| {
            Watts::from_milliwatts(total.milliwatts().div_ceil(nominal.nodes.into()))
        };
        let (cap, node_power) = match underway.node_power {
            Some(promised) => (promised, promised),
            None => (nominal.cap, each(nominal.power)),
        };
        let power = node_power * nodes.len() as u32;
        let nodes = nodes.iter().map(|node| (*node, cap)).collect();
        Ok(Allotment { nodes, cores, cap, time, power, speed: Allotment::FULL_SPEED, part: None })
    }

    /// A job that waited is gone from the engine's queue.
    pub(crate) fn gone(&mut self, now: Instant, handle: &str) {
        let Some(&number) = self.by_handle.get(handle) else { return };
        if self.jobs.get(&number).is_some_and(|entry| entry.phase == Phase::Waiting) {
            self.never_runs(now, number, EndReason::Cancelled, None);
        }
    }

    /// The present jobs that came through the engine, with how it knows them, and the attempts of those that run.
    pub(crate) fn handles(&self) -> Vec<(Attempt, String)> {
        let known = |entry: &Entry| {
            let (attempt, handle) = entry.in_engine()?;
            let number = if entry.run().is_some() { attempt.number } else { 0 };
            Some((Attempt { number, ..attempt }, handle))
        };
        self.jobs.values().filter_map(known).collect()
    }
}

/// The engine has the program.
fn program() -> Program {
    Program {
        command: vec!["submitted to the engine".to_owned()],
        folder: "/".into(),
        environment: Vec::new(),
        output: "none".into(),
        errors: None,
    }
}
