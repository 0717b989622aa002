//! An engine whose nodes have agents: another engine runs the jobs, and the agents hold their nodes to the caps.
//!
//! An order that starts or changes a job is carried out in steps, and none of them is waited for:
//!
//! 1. the nodes of the job get their caps, and every agent has to confirm its own;
//! 2. the engine within starts or changes the job;
//! 3. nodes that the job leaves go down to their lowest cap, which their agents have to confirm, too.
//!
//! Only then is the order confirmed. If a node does not confirm, the order fails, and the daemon counts what it
//! counted before. Nodes without a job are kept at their lowest cap.
//!
//! An agent that cannot be reached is [down](NodeState::Down): no job starts there, and what runs there counts as
//! before. When it is back, it is told its cap again before it is in service. Agents that hear nothing of the
//! daemon for a lease fall to their safe cap by themselves, which is no higher than the lowest that jobs get.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use busbar_agent::fleet::{self, AgentId, Fleet, Options, Target};
use busbar_agent::wire::{self, Answer, Caps, Event, Outcome, SetReport};

use super::engine::{
    Allotment, Attempt, Engine, EngineError, EnginePace, Found, Measurement, NodeInfo, NodeState,
    Order, Report, Ticket,
};
use busbar_core::machine;
use busbar_core::units::Watts;

mod meters;
mod steps;

use meters::Meters;
use steps::{Step, Steps};

/// A node with an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Where its agent is.
    pub target: Target,
    /// The file in which an emulated node is told what its job would draw; none for real ones.
    pub demand: Option<PathBuf>,
}

/// How agents are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long agents wait for a sign of life before they fall to their safe cap.
    pub lease: Duration,
    /// How long an agent may take to answer.
    pub within: Duration,
    /// The lowest cap that jobs get: nodes without a job have it.
    pub lowest: Watts,
    /// How the caps of agents relate to what policies count, which is what a node adds to its idle power; its highest
    /// cap is the highest that jobs get.
    pub node: machine::Node,
}

/// The cap of a node, and what its agent says of it.
struct Kept {
    node: Node,
    /// The cap that it is to have.
    cap: Watts,
    info: NodeInfo,
    state: NodeState,
    /// The request to set the cap again after the agent was away, which has to be confirmed before the node is
    /// in service.
    welcome: Option<fleet::Ticket>,
}

/// An engine whose nodes have agents.
pub struct Capped {
    inner: Box<dyn Engine>,
    fleet: Fleet,
    incoming: Receiver<fleet::Report>,
    terms: Terms,
    nodes: Vec<Kept>,
    /// The nodes of each job that was started, with their caps.
    jobs: BTreeMap<Attempt, Vec<(u32, Watts)>>,
    steps: Steps,
    meters: Meters,
    reports: Vec<Report>,
    renewed: Option<Instant>,
}

impl Capped {
    /// Jobs run on `inner`, on these nodes. `wake` is called when there is something to report, from another
    /// thread.
    pub fn new(
        inner: Box<dyn Engine>,
        nodes: Vec<Node>,
        terms: Terms,
        options: Options,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, incoming) = channel();
        let targets = nodes.iter().map(|node| node.target.clone()).collect();
        let fleet = Fleet::start(targets, options, move |report| {
            // The engine may be gone already.
            let _ = sender.send(report);
            wake();
        })?;
        let kept = nodes.into_iter().map(|node| Kept {
            cap: terms.lowest,
            info: NodeInfo { name: node.target.node.clone(), caps: None },
            state: NodeState::Awaited,
            welcome: None,
            node,
        });
        let mut engine = Capped {
            inner,
            fleet,
            incoming,
            terms,
            nodes: kept.collect(),
            jobs: BTreeMap::new(),
            steps: Steps::default(),
            meters: Meters::default(),
            reports: Vec::new(),
            renewed: None,
        };
        for node in 0..engine.nodes.len() as u32 {
            let state = engine.nodes[node as usize].state.clone();
            engine.reports.push(Report::Node { node, state });
        }
        Ok(engine)
    }

    /// Asks the agents of nodes for caps.
    fn ask(&mut self, caps: &[(u32, Watts)]) -> BTreeSet<fleet::Ticket> {
        let requests = caps.iter().filter_map(|(node, cap)| {
            let kept = self.nodes.get_mut(*node as usize)?;
            kept.cap = *cap;
            let request = wire::Request::Set(Caps::Node { cap: *cap });
            Some((AgentId(*node as usize), request))
        });
        let requests: Vec<_> = requests.collect();
        self.fleet.ask_all(requests, self.terms.within).into_keys().collect()
    }

    /// The caps that the agents of a job's nodes are asked for.
    fn caps(&self, allotment: &Allotment) -> Vec<(u32, Watts)> {
        let node = &self.terms.node;
        let cap = |added: Watts| node.capped_part(added).clamp(self.terms.lowest, node.highest);
        allotment.nodes.iter().map(|(node, added)| (*node, cap(*added))).collect()
    }

    /// Takes the first step of an order.
    fn begin(&mut self, ticket: Ticket, order: Order) {
        let caps = match &order {
            Order::Signal { .. } => return self.inner.request(vec![(ticket, order)]),
            Order::Start(launch) => self.caps(&launch.allotment),
            Order::Set { allotment, .. } => self.caps(allotment),
        };
        if let Some((node, reason)) = caps.iter().find_map(|(node, _)| self.hindrance(*node)) {
            let attempt = order.attempt();
            let error = EngineError::Node { attempt, node, reason };
            return self.reports.push(Report::Failed { ticket, error });
        }
        let asked = self.ask(&caps);
        self.steps.begin(ticket, Step::Capping(order), asked);
    }

    /// Why a node cannot be given a cap now: its name, and the reason.
    fn hindrance(&self, node: u32) -> Option<(String, String)> {
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
    fn answered(&mut self, agent: AgentId, asked: fleet::Ticket, result: Result<(), String>) {
        let node = agent.0 as u32;
        if self.nodes[agent.0].welcome == Some(asked) {
            self.nodes[agent.0].welcome = None;
            let state = match result {
                Ok(()) => NodeState::Up,
                Err(reason) => NodeState::Drained { reason },
            };
            return self.set_state(node, state);
        }
        let Some((ticket, step)) = self.steps.answered(asked, &result) else { return };
        match (step, result) {
            (Step::Capping(order), Err(reason)) => {
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
            (Step::Capping(order), Ok(())) => {
                self.steps.within(ticket, order.clone());
                self.inner.request(vec![(ticket, order)]);
            }
            // What was left behind is not free until it is known to be low.
            (Step::Leaving(attempt), Err(reason)) => {
                let node = self.nodes[agent.0].info.name.clone();
                let error = EngineError::Node { attempt, node, reason };
                self.reports.push(Report::Failed { ticket, error });
            }
            (Step::Leaving(_), Ok(())) => self.reports.push(Report::Confirmed { ticket }),
        }
    }

    /// An order fails whose nodes may have got new caps: they get back what they had.
    fn give_up(&mut self, order: &Order) {
        let nodes: Vec<u32> = match order {
            Order::Start(launch) => launch.allotment.node_numbers(),
            Order::Set { allotment, .. } => allotment.node_numbers(),
            Order::Signal { .. } => Vec::new(),
        };
        let held: BTreeMap<u32, Watts> = self.jobs.values().flatten().copied().collect();
        let before = |node: &u32| held.get(node).copied().unwrap_or(self.terms.lowest);
        let caps: Vec<(u32, Watts)> = nodes.iter().map(|node| (*node, before(node))).collect();
        self.ask(&caps);
    }

    /// The engine within has carried an order out.
    fn done_within(&mut self, ticket: Ticket) {
        let Some(order) = self.steps.done_within(ticket) else {
            return self.reports.push(Report::Confirmed { ticket });
        };
        let (attempt, nodes) = match &order {
            Order::Start(launch) => (launch.attempt, self.caps(&launch.allotment)),
            Order::Set { attempt, allotment, .. } => (*attempt, self.caps(allotment)),
            Order::Signal { .. } => return self.reports.push(Report::Confirmed { ticket }),
        };
        self.meter(&order);
        let now: BTreeSet<u32> = nodes.iter().map(|(node, _)| *node).collect();
        self.demand(&now, self.terms.node.highest);
        let before = self.jobs.insert(attempt, nodes).unwrap_or_default();
        let left = before.into_iter().map(|(node, _)| node).filter(|node| !now.contains(node));
        let left: BTreeSet<u32> = left.collect();
        if left.is_empty() {
            return self.reports.push(Report::Confirmed { ticket });
        }
        let asked = self.leave(&left);
        self.steps.begin(ticket, Step::Leaving(attempt), asked);
    }

    /// Lets nodes add up what a job consumes.
    fn meter(&mut self, order: &Order) {
        match order {
            Order::Start(launch) => {
                self.meters.began(launch.attempt, &launch.allotment);
                let nodes = launch.allotment.node_numbers().into_iter().collect();
                let job = meters::name(launch.attempt);
                self.ask_each(&nodes, &wire::Request::Begin { job });
            }
            Order::Set { attempt, allotment, .. } => {
                let left = self.meters.changed(*attempt, allotment);
                let job = meters::name(*attempt);
                self.ask_each(&left, &wire::Request::End { job });
            }
            Order::Signal { .. } => (),
        }
    }

    fn ask_each(&mut self, nodes: &BTreeSet<u32>, request: &wire::Request) -> Vec<fleet::Ticket> {
        let requests = nodes.iter().map(|node| (AgentId(*node as usize), request.clone()));
        self.fleet.ask_all(requests.collect::<Vec<_>>(), self.terms.within).into_keys().collect()
    }

    /// Nodes have no job any more.
    fn leave(&mut self, nodes: &BTreeSet<u32>) -> BTreeSet<fleet::Ticket> {
        self.demand(nodes, Watts::ZERO);
        let lowest = self.terms.lowest;
        let caps: Vec<(u32, Watts)> = nodes.iter().map(|node| (*node, lowest)).collect();
        self.ask(&caps)
    }

    /// Tells emulated nodes what their job would draw.
    fn demand(&self, nodes: &BTreeSet<u32>, power: Watts) {
        for kept in nodes.iter().filter_map(|node| self.nodes.get(*node as usize)) {
            if let Some(path) = &kept.node.demand
                && let Err(error) = fs::write(path, format!("{}\n", power.milliwatts() * 1000))
            {
                tracing::warn!(node = kept.info.name, %error, "an emulated node cannot be told what its job draws");
            }
        }
    }

    fn set_state(&mut self, node: u32, state: NodeState) {
        let kept = &mut self.nodes[node as usize];
        if kept.state != state {
            kept.state = state.clone();
            self.reports.push(Report::Node { node, state });
        }
    }

    /// Takes in what the agents report.
    fn hear(&mut self) {
        while let Ok(report) = self.incoming.try_recv() {
            match report {
                fleet::Report::Up { agent, inventory } => self.is_up(agent, &inventory),
                fleet::Report::Down { agent, reason } => {
                    self.nodes[agent.0].welcome = None;
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
    fn billed(&mut self, ticket: fleet::Ticket, answer: Option<&Answer>) {
        if let Some((attempt, consumption)) = self.meters.answered(ticket, answer) {
            self.reports.push(Report::Consumed { attempt, consumption });
        }
    }

    /// An agent is there, perhaps again: its node is in service when it has confirmed the cap that it is to
    /// have.
    fn is_up(&mut self, agent: AgentId, inventory: &wire::Inventory) {
        let node = agent.0 as u32;
        let range = inventory.caps.map(|range| (range.lowest, range.highest));
        self.nodes[agent.0].info.caps = range;
        let (lowest, highest) = (self.terms.lowest, self.terms.node.highest);
        let hindrance = match range {
            None => Some("it cannot be capped; see 'busbar agent probe' there".to_owned()),
            Some((least, _)) if least > lowest => Some(format!(
                "its lowest cap is {least}, and jobs may be given {lowest}; raise the lowest cap of the machine"
            )),
            Some((_, most)) if most < highest => Some(format!(
                "its highest cap is {most}, and jobs may be given {highest}; lower the highest cap of the machine"
            )),
            Some(_) => None,
        };
        if let Some(reason) = hindrance {
            return self.set_state(node, NodeState::Drained { reason });
        }
        // A job may have ended there while no daemon was running.
        if !self.jobs.values().flatten().any(|(other, _)| *other == node) {
            self.demand(&BTreeSet::from([node]), Watts::ZERO);
        }
        let cap = self.nodes[agent.0].cap;
        self.nodes[agent.0].welcome = self.ask(&[(node, cap)]).into_iter().next();
    }

    /// Something happened on a node without being asked for.
    fn happened(&mut self, agent: AgentId, event: &Event) {
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

    fn sampled(&mut self, agent: AgentId, sample: &wire::Sample) {
        // What is not known is not reported: nobody takes it for nothing.
        if let Some(power) = sample.power.value() {
            let is_emulated = sample.power.origin() == "emulated";
            let domains = sample.domains.iter();
            let domains = domains
                .filter_map(|domain| Some((domain.name.to_string(), *domain.power.value()?)));
            let domains = domains.collect();
            let power = Measurement { power: *power, is_emulated, at: sample.at, domains };
            self.reports.push(Report::Measured { node: agent.0 as u32, power });
        }
    }
}

/// Whether an answer confirms a cap, or why it does not.
fn judged(answer: Answer) -> Result<(), String> {
    match answer {
        Answer::Set(report) if report.is_confirmed() => Ok(()),
        Answer::Set(SetReport { domains, counted, .. }) => {
            let wrong = domains.into_iter().find(|domain| domain.outcome != Outcome::Confirmed);
            Err(wrong.map_or(format!("its limits add up to {counted}"), |domain| {
                format!("{}: {}", domain.name, domain.outcome)
            }))
        }
        Answer::Refused(refusal) => Err(refusal.message),
        _ => Err("its agent answered something else".to_owned()),
    }
}

impl Engine for Capped {
    fn name(&self) -> &'static str {
        match self.inner.name() {
            "local" => "local, with node agents",
            _ => "slurm, with node agents",
        }
    }

    fn nodes(&self) -> Vec<NodeInfo> {
        self.nodes.iter().map(|kept| kept.info.clone()).collect()
    }

    fn node_name(&self, node: u32) -> Option<String> {
        self.nodes.get(node as usize).map(|kept| kept.info.name.clone())
    }

    fn request(&mut self, orders: Vec<(Ticket, Order)>) {
        for (ticket, order) in orders {
            self.begin(ticket, order);
        }
    }

    fn reports(&mut self) -> Vec<Report> {
        self.hear();
        for report in self.inner.reports() {
            match report {
                Report::Confirmed { ticket } => self.done_within(ticket),
                Report::Failed { ticket, error } => {
                    if let Some(order) = self.steps.done_within(ticket) {
                        self.give_up(&order);
                    }
                    self.reports.push(Report::Failed { ticket, error });
                }
                Report::Ended { attempt, end, at } => {
                    let metered = self.meters.ended(attempt);
                    let job = meters::name(attempt);
                    let asked = self.ask_each(&metered, &wire::Request::End { job });
                    self.meters.asked(attempt, asked.into_iter());
                    let nodes = self.jobs.remove(&attempt).unwrap_or_default();
                    self.leave(&nodes.into_iter().map(|(node, _)| node).collect());
                    self.reports.push(Report::Ended { attempt, end, at });
                }
                other => self.reports.push(other),
            }
        }
        std::mem::take(&mut self.reports)
    }

    fn find(&mut self, attempt: Attempt) -> Result<Found, EngineError> {
        self.inner.find(attempt)
    }

    fn forget(&mut self, attempt: Attempt) {
        self.inner.forget(attempt);
    }

    fn recall(&mut self, jobs: Vec<(Attempt, String)>, done: Vec<String>) {
        self.inner.recall(jobs, done);
    }

    fn accepted(&mut self, handle: &str, attempt: Attempt) {
        self.inner.accepted(handle, attempt);
    }

    fn refuse(&mut self, handle: &str, reason: &str) {
        self.inner.refuse(handle, reason);
    }

    fn dismiss(&mut self, handle: &str) {
        self.inner.dismiss(handle);
    }

    fn limit(&mut self, limit: Option<Watts>) {
        self.inner.limit(limit);
    }

    fn others(&self) -> u32 {
        self.inner.others()
    }

    fn pace(&self) -> Option<EnginePace> {
        self.inner.pace()
    }

    fn renew(&mut self) {
        // Three times in a lease, so that one that is lost does no harm.
        if self.renewed.is_none_or(|last| last.elapsed() * 3 >= self.terms.lease) {
            self.renewed = Some(Instant::now());
            self.fleet.renew(self.terms.lease, self.terms.within);
        }
    }
}
