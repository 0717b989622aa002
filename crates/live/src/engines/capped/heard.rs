//! What agents say: that they are there, what happens on their nodes, and what these draw.

use std::time::{Duration, Instant};

use busbar_agent::fleet::{self, AgentId};
use busbar_agent::wire::{self, Answer, Event};

use super::{Capped, judged};
use crate::engine::{MeasuredDomain, Measurement, Report};
use crate::job::NodeState;

impl Capped {
    /// Takes in what the agents report.
    pub(super) fn hear(&mut self) {
        while let Ok(report) = self.incoming.try_recv() {
            match report {
                fleet::Report::Up { agent, inventory } => self.is_up(agent, &inventory),
                fleet::Report::Down { agent, reason } => {
                    let kept = &mut self.nodes[agent.0];
                    kept.welcome = None;
                    if kept.silent_since.is_none() {
                        let now = Instant::now();
                        kept.silent_since = Some(now);
                        self.lowerings.silent_from(agent.0 as u32, now + self.terms.silence());
                    }
                    self.set_state(agent.0 as u32, NodeState::Down { reason });
                }
                fleet::Report::Answered { agent, ticket, answer } => {
                    self.billed(ticket, Some(&answer));
                    self.answered(agent, ticket, judged(answer));
                }
                fleet::Report::Failed { agent, ticket, reason, .. } => {
                    self.billed(ticket, None);
                    self.answered(agent, ticket, Err(reason));
                }
                fleet::Report::Unleased { agent, reason } => {
                    self.set_state(agent.0 as u32, NodeState::Drained { reason });
                }
                fleet::Report::Event { agent, event, .. } => self.happened(agent, &event),
                fleet::Report::Sample { agent, sample } => self.sampled(agent, &sample),
            }
        }
    }

    /// An agent may have said what a job consumed.
    pub(super) fn billed(&mut self, ticket: fleet::Ticket, answer: Option<&Answer>) {
        if let Some((attempt, consumption)) = self.meters.answered(ticket, answer) {
            self.reports.push(Report::Consumed { attempt, consumption });
        }
    }

    /// An agent is there, perhaps again: its node is in service when it has confirmed the cap that it is to
    /// have.
    pub(super) fn is_up(&mut self, agent: AgentId, inventory: &wire::Inventory) {
        let node = agent.0 as u32;
        let range = inventory.caps.map(|range| (range.lowest, range.highest));
        self.nodes[agent.0].info.caps = range;
        self.nodes[agent.0].silent_since = None;
        let longest = Duration::from_millis(inventory.longest_lease);
        self.shortest_lease = self.shortest_lease.min(longest);
        let (lowest, highest) = (self.terms.lowest, self.terms.node.highest);
        let hindrance = match range {
            None => Some("it cannot be capped; see 'busbar agent probe' there".to_owned()),
            Some((least, _)) if least > lowest => Some(format!(
                "its lowest cap is {least}, and the machine allows {lowest}; raise the lowest cap of the machine"
            )),
            Some(_) if inventory.safe.is_some_and(|safe| safe > lowest) => Some(format!(
                "its safe cap is above {lowest}, the cap with which idle nodes count; lower 'caps.safe' there, or \
                raise the lowest cap of the machine"
            )),
            Some((_, most)) if most < highest => Some(format!(
                "its highest cap is {most}, and the machine allows {highest}; lower the highest cap of the machine"
            )),
            Some(_) => None,
        };
        if let Some(reason) = hindrance {
            // It is asked for nothing, so that there is nothing to wait for.
            self.lowerings.forget(node);
            return self.set_state(node, NodeState::Drained { reason });
        }
        let cap = self.nodes[agent.0].cap;
        self.nodes[agent.0].welcome = self.ask(&[(node, cap)]).into_iter().next();
    }

    /// Something happened on a node without being asked for.
    pub(super) fn happened(&mut self, agent: AgentId, event: &Event) {
        let node = agent.0 as u32;
        let name = &self.nodes[agent.0].info.name;
        match event {
            Event::Verified { .. } => tracing::debug!(node = name, ?event, "an agent reports"),
            _ => tracing::warn!(node = name, ?event, "an agent reports"),
        }
        match event {
            Event::Exceeded { name, cap, .. } => {
                let reason = format!("{name} draws more than its cap of {cap}");
                self.set_state(node, NodeState::Drained { reason });
            }
            Event::Lost { name, reason } => {
                let reason = format!("{name} cannot be read: {reason}");
                self.set_state(node, NodeState::Drained { reason });
            }
            Event::Verified { .. } | Event::Found { .. } => {
                if matches!(self.nodes[agent.0].state, NodeState::Drained { .. }) {
                    self.set_state(node, NodeState::Up);
                }
            }
            // The daemon is back, since it hears of this: the cap is to be as it was.
            Event::LeaseEnded { .. } => {
                let cap = self.nodes[agent.0].cap;
                self.nodes[agent.0].welcome = self.ask(&[(node, cap)]).into_iter().next();
            }
            Event::Unverified { .. }
            | Event::Changed { .. }
            | Event::Unrecorded { .. }
            | Event::Stopping => (),
        }
    }

    pub(super) fn sampled(&mut self, agent: AgentId, sample: &wire::Sample) {
        // What is not known is not reported: nobody takes it for nothing.
        if let Some(power) = sample.power.value() {
            let is_emulated = sample.power.origin() == "emulated";
            let domains = sample.domains.iter();
            let domains = domains.filter_map(|domain| {
                let power = *domain.power.value()?;
                Some(MeasuredDomain { name: domain.name.to_string(), power })
            });
            let domains = domains.collect();
            let power = Measurement { power: *power, is_emulated, at: sample.at, domains };
            self.reports.push(Report::Measured { node: agent.0 as u32, power });
        }
    }
}
