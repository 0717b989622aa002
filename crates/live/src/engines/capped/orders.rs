//! Orders for the engine within, and the caps that go before or after them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use busbar_agent::fleet::{self, AgentId};
use busbar_agent::wire;

use super::steps::Step;
use super::{Capped, meters};
use crate::engine::{EngineError, Order, Report, Signal, Ticket};
use crate::job::{Allotment, Attempt, NodeState};
use busbar_core::units::Watts;

/// The pause before an agent that refused a lower cap is asked again.
const BETWEEN_TRIES: Duration = Duration::from_secs(1);

impl Capped {
    /// Takes the first step of an order, or keeps it until the agents of its nodes have answered for the first time.
    pub(super) fn begin(&mut self, ticket: Ticket, order: Order, until: Instant) {
        if self.unplaced.takes(&order) {
            return self.order_within(ticket, order);
        }
        let caps = match &order {
            Order::Signal { .. } => return self.order_within(ticket, order),
            Order::Start(launch) => self.caps(&launch.allotment),
            Order::Set { allotment, .. } => self.caps(allotment),
        };
        let state = |node: &u32| self.nodes.get(*node as usize).map(|kept| &kept.state);
        let is_awaited = caps.iter().any(|(node, _)| state(node) == Some(&NodeState::Awaited));
        if is_awaited && Instant::now() < until {
            return self.awaiting.push((ticket, order, until));
        }
        if let Some((node, reason)) = caps.iter().find_map(|(node, _)| self.hindrance(*node)) {
            let attempt = order.attempt();
            let error = EngineError::Node { attempt, node, reason };
            return self.reports.push(Report::Failed { ticket, error });
        }
        // Nobody gets more before the others have less.
        let has = |node: &u32| self.nodes.get(*node as usize).map(|kept| kept.cap);
        let (raised, lowered): (Vec<_>, Vec<_>) =
            caps.into_iter().partition(|(node, cap)| has(node) < Some(*cap));
        self.cap(ticket, order, lowered, raised);
    }

    /// Gives nodes of an order their caps, and others after them.
    pub(super) fn cap(
        &mut self,
        ticket: Ticket,
        order: Order,
        now: Vec<(u32, Watts)>,
        then: Vec<(u32, Watts)>,
    ) {
        match (now.is_empty(), then.is_empty()) {
            (true, true) => self.order_within(ticket, order),
            (true, false) => self.cap(ticket, order, then, now),
            (false, _) => {
                let asked = self.ask(&now);
                self.steps.begin(ticket, Step { order, then }, asked);
            }
        }
    }

    /// Lets the engine within carry an order out.
    pub(super) fn order_within(&mut self, ticket: Ticket, order: Order) {
        self.steps.within(ticket, order.clone());
        self.inner.request(vec![(ticket, order)]);
    }

    /// Takes up orders whose nodes' agents have answered, or have not in time.
    pub(super) fn take_up(&mut self) {
        for (ticket, order, until) in std::mem::take(&mut self.awaiting) {
            self.begin(ticket, order, until);
        }
    }

    /// Why a node cannot be given a cap now: its name, and the reason.
    pub(super) fn hindrance(&self, node: u32) -> Option<(String, String)> {
        let Some(kept) = self.nodes.get(node as usize) else {
            return Some((node.to_string(), "there is no such node".to_owned()));
        };
        match &kept.state {
            NodeState::Down { reason } => Some((kept.info.name.clone(), reason.clone())),
            NodeState::Awaited => {
                Some((kept.info.name.clone(), "its agent has not answered yet".to_owned()))
            }
            NodeState::Up | NodeState::Drained { .. } => None,
        }
    }

    /// An agent confirmed a cap, or did not.
    pub(super) fn answered(
        &mut self,
        agent: AgentId,
        asked: fleet::Ticket,
        result: Result<(), String>,
    ) {
        let node = agent.0 as u32;
        let is_lowering = match &result {
            Ok(()) => self.lowerings.confirmed(node, asked),
            Err(_) => self.lowerings.refused(node, asked, Instant::now() + BETWEEN_TRIES),
        };
        if self.nodes[agent.0].welcome == Some(asked) {
            self.nodes[agent.0].welcome = None;
            let state = match result {
                Ok(()) => NodeState::Up,
                Err(reason) => NodeState::Drained { reason },
            };
            return self.set_state(node, state);
        }
        let Some((ticket, Step { order, then })) = self.steps.answered(asked, &result) else {
            // Nobody else is to use a node that does not do as it is told.
            if let (true, Err(reason), NodeState::Up) =
                (is_lowering, result, &self.nodes[agent.0].state)
            {
                self.set_state(node, NodeState::Drained { reason });
            }
            return;
        };
        match result {
            Err(reason) => {
                // Nobody else is to try the same there before something changes.
                if self.nodes[agent.0].state == NodeState::Up {
                    self.set_state(node, NodeState::Drained { reason: reason.clone() });
                }
                let node = self.nodes[agent.0].info.name.clone();
                let attempt = order.attempt();
                let error = EngineError::Node { attempt, node, reason };
                self.give_up(&order);
                self.reports.push(Report::Failed { ticket, error });
            }
            Ok(()) => self.cap(ticket, order, then, Vec::new()),
        }
    }

    /// An order fails whose nodes may have got new caps: they get back what they had.
    pub(super) fn give_up(&mut self, order: &Order) {
        if self.unplaced.has(order.attempt()) {
            return;
        }
        let nodes: Vec<u32> = match order {
            Order::Start(launch) => launch.allotment.node_numbers(),
            Order::Set { allotment, .. } => allotment.node_numbers(),
            Order::Signal { .. } => Vec::new(),
        };
        let held: BTreeMap<u32, Watts> = self.jobs.values().flatten().copied().collect();
        let before = |node: &u32| held.get(node).copied().unwrap_or(self.terms.lowest);
        let caps = nodes.iter().map(|node| (*node, before(node)));
        let may_have = |node: &u32| self.nodes.get(*node as usize).map(|kept| kept.cap);
        let (raised, others): (Vec<_>, Vec<_>) =
            caps.partition(|(node, cap)| may_have(node) > Some(*cap));
        self.lower(&raised);
        self.ask(&others);
    }

    /// The engine within has carried an order out.
    pub(super) fn done_within(&mut self, ticket: Ticket) {
        let order = self.steps.done_within(ticket);
        self.reports.push(Report::Confirmed { ticket });
        let Some(order) = order.filter(|order| !self.unplaced.is_about(order)) else { return };
        let (attempt, nodes) = match &order {
            Order::Start(launch) => (launch.attempt, self.caps(&launch.allotment)),
            Order::Set { attempt, allotment, .. } => (*attempt, self.caps(allotment)),
            Order::Signal { attempt, signal } => return self.signalled(*attempt, *signal),
        };
        self.meter(&order);
        let now: BTreeSet<u32> = nodes.iter().map(|(node, _)| *node).collect();
        self.demand(&now, self.terms.node.highest);
        let before = self.jobs.insert(attempt, nodes).unwrap_or_default();
        let left = before.into_iter().map(|(node, _)| node).filter(|node| !now.contains(node));
        self.leave(&left.collect());
    }

    /// A job was sent a signal. One that is suspended draws nothing.
    pub(super) fn signalled(&self, attempt: Attempt, signal: Signal) {
        let power = match signal {
            Signal::Suspend => Watts::ZERO,
            Signal::Resume => self.terms.node.highest,
            Signal::Terminate | Signal::Kill => return,
        };
        let nodes = self.jobs.get(&attempt).into_iter().flatten();
        self.demand(&nodes.map(|(node, _)| *node).collect(), power);
    }

    /// Lets nodes add up what a job consumes.
    pub(super) fn meter(&mut self, order: &Order) {
        match order {
            Order::Start(launch) => self.began(launch.attempt, &launch.allotment),
            Order::Set { attempt, allotment, .. } if self.unplaced.has_just_begun(*attempt) => {
                self.began(*attempt, allotment);
            }
            Order::Set { attempt, allotment, .. } => {
                let left = self.meters.changed(*attempt, allotment);
                let job = meters::name(*attempt);
                self.ask_each(&left, &wire::Request::End { job });
            }
            Order::Signal { .. } => (),
        }
    }

    pub(super) fn began(&mut self, attempt: Attempt, allotment: &Allotment) {
        self.meters.began(attempt, allotment);
        let nodes = allotment.node_numbers().into_iter().collect();
        self.ask_each(&nodes, &wire::Request::Begin { job: meters::name(attempt) });
    }
}
