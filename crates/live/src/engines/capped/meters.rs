//! What jobs consume, as the meters of their nodes say.

use std::collections::{BTreeMap, BTreeSet};

use busbar_agent::fleet;
use busbar_agent::reading::Reading;
use busbar_agent::wire::{Answer, JobEnergy};
use busbar_core::units::{Joules, Watts};

use crate::engine::Consumption;
use crate::job::{Allotment, Attempt};

/// The name of an attempt for the agents.
pub(super) fn name(attempt: Attempt) -> String {
    attempt.to_string()
}

/// The jobs whose energy is added up.
#[derive(Default)]
pub(super) struct Meters {
    running: BTreeMap<Attempt, Metered>,
    /// Requests for what a job consumed.
    asked: BTreeMap<fleet::Ticket, Attempt>,
    bills: BTreeMap<Attempt, Bill>,
}

/// A job whose energy is added up on its nodes.
struct Metered {
    nodes: BTreeSet<u32>,
    /// What it has had since its start; nothing if that changed.
    under: Option<Allotment>,
}

/// What the nodes of a job have said until now.
struct Bill {
    under: Option<Allotment>,
    open: usize,
    energy: Joules,
    power: Watts,
    is_emulated: bool,
}

impl Meters {
    /// A job runs from now on, and its nodes add up what it consumes.
    pub(super) fn began(&mut self, attempt: Attempt, allotment: &Allotment) {
        let nodes = allotment.node_numbers().into_iter().collect();
        self.running.insert(attempt, Metered { nodes, under: Some(allotment.clone()) });
    }

    /// A job has something else now. Returns the nodes that are to forget it, because it has moved, so that none
    /// of them knows all that it consumed.
    pub(super) fn changed(&mut self, attempt: Attempt, allotment: &Allotment) -> BTreeSet<u32> {
        let nodes: BTreeSet<u32> = allotment.node_numbers().into_iter().collect();
        match self.running.get_mut(&attempt) {
            // It ran before this daemon, which does not know what it had since its start.
            None => {
                self.running.insert(attempt, Metered { nodes, under: None });
                BTreeSet::new()
            }
            Some(metered) if metered.nodes == nodes => {
                if metered.under.as_ref() != Some(allotment) {
                    metered.under = None;
                }
                BTreeSet::new()
            }
            Some(_) => self.running.remove(&attempt).map(|it| it.nodes).unwrap_or_default(),
        }
    }

    /// A job has ended. Returns the nodes that are to say what it consumed.
    pub(super) fn ended(&mut self, attempt: Attempt) -> BTreeSet<u32> {
        let Some(Metered { nodes, under }) = self.running.remove(&attempt) else {
            return BTreeSet::new();
        };
        let (energy, power, is_emulated) = (Joules::ZERO, Watts::ZERO, false);
        let bill = Bill { under, open: nodes.len(), energy, power, is_emulated };
        self.bills.insert(attempt, bill);
        nodes
    }

    /// Nodes were asked what a job consumed.
    pub(super) fn asked(&mut self, attempt: Attempt, tickets: impl Iterator<Item = fleet::Ticket>) {
        self.asked.extend(tickets.map(|ticket| (ticket, attempt)));
    }

    /// A node has answered, or not. Returns what the job consumed when every node has said so.
    pub(super) fn answered(
        &mut self,
        ticket: fleet::Ticket,
        answer: Option<&Answer>,
    ) -> Option<(Attempt, Consumption)> {
        let attempt = self.asked.remove(&ticket)?;
        let bill = self.bills.get_mut(&attempt)?;
        let is_known = match answer {
            Some(Answer::Energy(energy)) => bill.add(energy),
            _ => false,
        };
        if !is_known {
            // What is not known of one node is not known of the job.
            self.bills.remove(&attempt);
            return None;
        }
        if bill.open > 0 {
            return None;
        }
        let Bill { under, energy, power, is_emulated, .. } = self.bills.remove(&attempt)?;
        Some((attempt, Consumption { energy, power, is_emulated, under }))
    }
}

impl Bill {
    /// Adds what a node says; `false` if it does not know.
    fn add(&mut self, said: &JobEnergy) -> bool {
        let (energy, is_emulated) = match &said.energy {
            Reading::Measured { value, .. } => (*value, false),
            Reading::Emulated { value, .. } => (*value, true),
            Reading::Estimated { .. } | Reading::Unknown { .. } => return false,
        };
        let milliwatts = energy.microjoules().div_ceil(u128::from(said.elapsed.max(1)));
        let power = Watts::from_milliwatts(u64::try_from(milliwatts).unwrap_or(u64::MAX));
        self.energy += energy;
        self.power = self.power.saturating_add(power);
        self.is_emulated |= is_emulated;
        self.open -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use busbar_core::units::Span;

    const JOB: Attempt = Attempt { job: 1, number: 1 };

    fn allotment(nodes: &[u32], watts: u32) -> Allotment {
        let cap = Watts::from_watts(watts);
        let nodes: Vec<(u32, Watts)> = nodes.iter().map(|node| (*node, cap)).collect();
        let (time, power) = (Span::from_secs(60), cap * nodes.len() as u32);
        Allotment { nodes, cores: 1, cap, time, power, speed: Allotment::FULL_SPEED, part: None }
    }

    fn said(joules: Option<u64>) -> Answer {
        let source = "powercap intel-rapl:0";
        let energy = match joules {
            Some(joules) => Reading::read(Joules::from_joules(joules), false, source),
            None => Reading::unknown("it cannot be read", source),
        };
        let (job, from, elapsed) = (name(JOB), 0, 2000);
        Answer::Energy(JobEnergy { job, from, elapsed, energy, domains: Vec::new() })
    }

    /// 300 J and 500 J in two seconds are 400 W.
    #[test]
    fn what_all_nodes_say_is_what_a_job_consumed() {
        let mut meters = Meters::default();
        let has = allotment(&[3, 4], 90);
        meters.began(JOB, &has);
        assert_eq!(meters.ended(JOB), BTreeSet::from([3, 4]));
        meters.asked(JOB, [fleet::Ticket(1), fleet::Ticket(2)].into_iter());
        assert_eq!(meters.answered(fleet::Ticket(1), Some(&said(Some(300)))), None);
        let (energy, power) = (Joules::from_joules(800), Watts::from_watts(400));
        let consumption = Consumption { energy, power, is_emulated: false, under: Some(has) };
        let whole = meters.answered(fleet::Ticket(2), Some(&said(Some(500))));
        assert_eq!(whole, Some((JOB, consumption)));
        assert_eq!(meters.ended(JOB), BTreeSet::new());
    }

    #[test]
    fn what_one_node_does_not_know_is_not_known() {
        let mut meters = Meters::default();
        meters.began(JOB, &allotment(&[3, 4], 90));
        meters.ended(JOB);
        meters.asked(JOB, [fleet::Ticket(1), fleet::Ticket(2)].into_iter());
        assert_eq!(meters.answered(fleet::Ticket(1), Some(&said(None))), None);
        assert_eq!(meters.answered(fleet::Ticket(2), Some(&said(Some(500)))), None);
    }

    /// Another cap: its energy is known, but it is no run under one cap. Other nodes: nothing is known.
    #[test]
    fn a_job_that_changes_is_no_run_under_one_cap() {
        let mut meters = Meters::default();
        meters.began(JOB, &allotment(&[3], 90));
        assert!(meters.changed(JOB, &allotment(&[3], 80)).is_empty());
        meters.ended(JOB);
        meters.asked(JOB, std::iter::once(fleet::Ticket(1)));
        let (_, consumption) = meters.answered(fleet::Ticket(1), Some(&said(Some(300)))).unwrap();
        assert_eq!((consumption.under, consumption.power), (None, Watts::from_watts(150)));

        meters.began(JOB, &allotment(&[3], 90));
        assert_eq!(meters.changed(JOB, &allotment(&[5], 90)), BTreeSet::from([3]));
        assert!(meters.ended(JOB).is_empty());
    }
}
