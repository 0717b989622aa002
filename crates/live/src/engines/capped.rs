//! An engine whose nodes have agents: another engine runs the jobs, and the agents hold their nodes to the caps.
//!
//! An order that starts or changes a job is carried out in steps, and none of them is waited for:
//!
//! 1. those nodes of the job that get a lower cap get it, and every agent has to confirm its own;
//! 2. so do those that get a higher one;
//! 3. the engine within starts or changes the job.
//!
//! Only then is the order confirmed. If a node does not confirm, the order fails, and the daemon counts what it
//! counted before. Nodes without a job are kept at their lowest cap. They are lowered when a job leaves
//! them, and nobody is given what they had before their agents have confirmed that.
//!
//! If the engine within [chooses the nodes](Engine::chooses_nodes) of a job, the job is started first: until its nodes are known
//! they stand at the lowest cap, and the order that gives it what it has on these nodes raises them.
//!
//! An agent that cannot be reached is [down](NodeState::Down): no job starts there, and what runs there counts as
//! before. When it is back, it is told its cap again before it is in service. Agents that hear nothing of the
//! daemon for a lease fall to their safe cap by themselves, which is no higher than the lowest that jobs get.
//!
//! After a restart of the daemon nobody knows which caps hold. Nodes with a job are told the cap that the job
//! [has](Engine::adopted), all others the lowest one, and until their agents have answered they count as nodes that
//! are to be lowered.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use busbar_agent::emulate;
use busbar_agent::fleet::{self, AgentId, Fleet, Options, Target};
use busbar_agent::wire::{self, Answer, Caps, Outcome, SetReport};

use crate::engine::{
    Engine, EngineError, EnginePace, Found, Lowered, NodeInfo, Order, Report, Ticket, Wait,
};
use crate::job::{Allotment, Attempt, NodeState};
use busbar_core::machine;
use busbar_core::units::Watts;

mod heard;
mod lowerings;
mod meters;
mod orders;
mod steps;
mod unplaced;

use lowerings::Lowerings;
use meters::Meters;
use steps::Steps;
use unplaced::Unplaced;

/// A node with an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Where its agent is.
    pub(crate) target: Target,
    /// The file in which an emulated node is told what its job would draw; none for real ones.
    pub(crate) demand: Option<PathBuf>,
}

/// How agents are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// How long agents wait for a sign of life before they fall to their safe cap.
    pub(crate) lease: Duration,
    /// How long an agent may take to answer.
    pub(crate) within: Duration,
    /// The lowest cap that jobs get: nodes without a job have it.
    pub(crate) lowest: Watts,
    /// How the caps of agents relate to what policies count, which is what a node adds to its idle power; its highest
    /// cap is the highest that jobs get.
    pub(crate) node: machine::Node,
}

impl Terms {
    /// After how long an agent that does not answer has fallen to its safe cap: a sign of life that was sent before may
    /// have taken as long as an answer, and the agent looks at its lease now and then.
    fn silence(&self) -> Duration {
        self.lease + 2 * self.within
    }
}

/// The cap of a node, and what its agent says of it.
struct Kept {
    node: Node,
    /// The cap that it is to have.
    cap: Watts,
    info: NodeInfo,
    state: NodeState,
    /// Since when its agent has been sent nothing; `None` while it is connected.
    silent_since: Option<Instant>,
    /// The request to set the cap again after the agent was away, which has to be confirmed before the node is
    /// in service.
    welcome: Option<fleet::Ticket>,
}

/// An engine whose nodes have agents.
pub(crate) struct Capped {
    inner: Box<dyn Engine>,
    fleet: Fleet,
    incoming: Receiver<fleet::Report>,
    terms: Terms,
    nodes: Vec<Kept>,
    /// The nodes of each job that was started, with their caps.
    jobs: BTreeMap<Attempt, Vec<(u32, Watts)>>,
    /// Jobs whose nodes the engine within chooses.
    unplaced: Unplaced,
    /// Nodes that must not have more than they are to have, and may.
    lowerings: Lowerings,
    /// Orders for nodes whose agents have not answered yet, until when they wait for that.
    awaiting: Vec<(Ticket, Order, Instant)>,
    steps: Steps,
    meters: Meters,
    reports: Vec<Report>,
    renewed: Option<Instant>,
    /// The shortest lease that an agent grants.
    shortest_lease: Duration,
    /// Whether it has been asked for reports: by then it knows the jobs that run.
    has_begun: bool,
}

impl Capped {
    /// Jobs run on `inner`, on these nodes. `wake` is called when there is something to report, from another
    /// thread.
    pub(crate) fn new(
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
        let now = Instant::now();
        let kept = nodes.into_iter().map(|node| Kept {
            cap: terms.lowest,
            info: NodeInfo { name: node.target.node.clone(), caps: None },
            state: NodeState::Awaited,
            silent_since: Some(now),
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
            unplaced: Unplaced::default(),
            lowerings: Lowerings::default(),
            awaiting: Vec::new(),
            steps: Steps::default(),
            meters: Meters::default(),
            reports: Vec::new(),
            renewed: None,
            shortest_lease: terms.lease,
            has_begun: false,
        };
        // Whoever used the nodes before may have left them with any cap.
        for node in 0..engine.nodes.len() as u32 {
            let state = engine.nodes[node as usize].state.clone();
            engine.reports.push(Report::Node { node, state });
            engine.lowerings.begin(node, now + terms.silence());
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
        let asked = self.fleet.ask_all(requests, self.terms.within);
        for (ticket, agent) in &asked {
            self.lowerings.asked(agent.0 as u32, *ticket);
        }
        asked.into_keys().collect()
    }

    /// Asks the agents of nodes for caps that are lower than those they may have, with nobody waiting for the answers.
    fn lower(&mut self, caps: &[(u32, Watts)]) {
        for (node, _) in caps {
            let kept = self.nodes.get(*node as usize);
            let since = kept.and_then(|kept| kept.silent_since).unwrap_or_else(Instant::now);
            self.lowerings.begin(*node, since + self.terms.silence());
        }
        self.ask(caps);
    }

    /// The caps that the agents of a job's nodes are asked for.
    fn caps(&self, allotment: &Allotment) -> Vec<(u32, Watts)> {
        let node = &self.terms.node;
        let cap = |added: Watts| node.capped_part(added).clamp(self.terms.lowest, node.highest);
        allotment.nodes.iter().map(|(node, added)| (*node, cap(*added))).collect()
    }

    fn ask_each(&mut self, nodes: &BTreeSet<u32>, request: &wire::Request) -> Vec<fleet::Ticket> {
        let requests = nodes.iter().map(|node| (AgentId(*node as usize), request.clone()));
        self.fleet.ask_all(requests.collect::<Vec<_>>(), self.terms.within).into_keys().collect()
    }

    /// Nodes have no job any more.
    fn leave(&mut self, nodes: &BTreeSet<u32>) {
        self.demand(nodes, Watts::ZERO);
        let lowest = self.terms.lowest;
        let caps: Vec<(u32, Watts)> = nodes.iter().map(|node| (*node, lowest)).collect();
        self.lower(&caps);
    }

    /// A job is over, or never began.
    fn is_over(&mut self, attempt: Attempt) {
        self.unplaced.forget(attempt);
        let nodes = self.jobs.remove(&attempt).unwrap_or_default();
        self.leave(&nodes.into_iter().map(|(node, _)| node).collect());
    }

    /// Emulated nodes without a job draw nothing for one that ended while no daemon was running.
    fn quieten(&self) {
        let used: BTreeSet<u32> = self.jobs.values().flatten().map(|(node, _)| *node).collect();
        let all = 0..self.nodes.len() as u32;
        self.demand(&all.filter(|node| !used.contains(node)).collect(), Watts::ZERO);
    }

    /// Tells emulated nodes what their job would draw.
    fn demand(&self, nodes: &BTreeSet<u32>, power: Watts) {
        for kept in nodes.iter().filter_map(|node| self.nodes.get(*node as usize)) {
            if let Some(path) = &kept.node.demand
                && let Err(error) = emulate::write_demand(path, power)
            {
                tracing::warn!(node = kept.info.name, %error, "the power of a job cannot be set on an emulated node");
            }
        }
    }

    fn set_state(&mut self, node: u32, state: NodeState) {
        let kept = &mut self.nodes[node as usize];
        if kept.state != state {
            if let NodeState::Down { reason } | NodeState::Drained { reason } = &state {
                tracing::warn!(node = kept.info.name, reason, "a node is out of service");
            }
            kept.state = state.clone();
            self.reports.push(Report::Node { node, state });
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
        let until = Instant::now() + self.terms.within;
        for (ticket, order) in orders {
            self.begin(ticket, order, until);
        }
    }

    fn reports(&mut self) -> Vec<Report> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.quieten();
        }
        self.hear();
        self.take_up();
        for node in self.lowerings.due(Instant::now()) {
            let cap = self.nodes[node as usize].cap;
            self.ask(&[(node, cap)]);
        }
        for node in self.lowerings.expire(Instant::now()) {
            let kept = &self.nodes[node as usize];
            tracing::warn!(
                node = kept.info.name,
                cap = %kept.cap,
                "its agent has not confirmed its cap for longer than a lease; the cap counts as set"
            );
        }
        for report in self.inner.reports() {
            match report {
                Report::Confirmed { ticket } => self.done_within(ticket),
                Report::Failed { ticket, error } => {
                    if let Some(order) = self.steps.done_within(ticket) {
                        self.give_up(&order);
                        if let Order::Start(launch) = order {
                            self.unplaced.forget(launch.attempt);
                        }
                    }
                    self.reports.push(Report::Failed { ticket, error });
                }
                Report::Placed { attempt, ref nodes } => {
                    if self.unplaced.placed(attempt, nodes) {
                        let lowest = nodes.iter().map(|node| (*node, self.terms.lowest));
                        self.jobs.insert(attempt, lowest.collect());
                        self.demand(&nodes.iter().copied().collect(), self.terms.node.highest);
                    }
                    self.reports.push(report);
                }
                Report::Ended { attempt, .. }
                | Report::NotBegun { attempt, .. }
                | Report::SetAside { attempt, .. } => {
                    let metered = self.meters.ended(attempt);
                    let job = meters::name(attempt);
                    let asked = self.ask_each(&metered, &wire::Request::End { job });
                    self.meters.asked(attempt, asked.into_iter());
                    self.is_over(attempt);
                    self.reports.push(report);
                }
                other => self.reports.push(other),
            }
        }
        std::mem::take(&mut self.reports)
    }

    fn find(&mut self, attempt: Attempt) -> Result<Found, EngineError> {
        // It may still begin.
        if self.steps.is_under_way(attempt) {
            return Err(EngineError::Unclear { attempt });
        }
        let found = self.inner.find(attempt);
        if found.as_ref().is_ok_and(Found::is_over) {
            self.is_over(attempt);
        }
        found
    }

    fn adopted(&mut self, attempt: Attempt, may_have: &[Allotment]) {
        let is_known = self.jobs.contains_key(&attempt) || self.unplaced.has(attempt);
        if is_known || self.steps.is_under_way(attempt) {
            return;
        }
        if may_have.is_empty() {
            return self.unplaced.adopt(attempt);
        }
        // While a change is not confirmed, the lower of both caps of a node is safe.
        let all: Vec<Vec<(u32, Watts)>> = may_have.iter().map(|one| self.caps(one)).collect();
        let mut caps: BTreeMap<u32, Watts> = all.iter().flatten().copied().collect();
        for (node, cap) in &mut caps {
            let in_each = all.iter().map(|one| one.iter().find(|(other, _)| other == node));
            *cap = in_each
                .map(|found| found.map_or(self.terms.lowest, |(_, cap)| *cap))
                .fold(*cap, Watts::min);
        }
        for (node, cap) in &caps {
            if let Some(kept) = self.nodes.get_mut(*node as usize) {
                kept.cap = *cap;
            }
        }
        self.jobs.insert(attempt, caps.into_iter().collect());
    }

    fn lowered(&self) -> Lowered {
        let is_away =
            |state: &NodeState| matches!(state, NodeState::Awaited | NodeState::Down { .. });
        self.lowerings.lowered(|node| !is_away(&self.nodes[node as usize].state))
    }

    fn chooses_nodes(&self) -> bool {
        self.inner.chooses_nodes()
    }

    fn forget(&mut self, attempt: Attempt) {
        self.unplaced.forget(attempt);
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

    fn explain(&mut self, waits: BTreeMap<String, Wait>) {
        self.inner.explain(waits);
    }

    fn dismiss(&mut self, handle: &str) {
        self.inner.dismiss(handle);
    }

    fn limit(&mut self, limit: Option<Watts>) {
        self.inner.limit(limit);
    }

    fn refuses_jobs(&self) -> Option<&'static str> {
        self.inner.refuses_jobs()
    }

    fn others(&self) -> u32 {
        self.inner.others()
    }

    fn pace(&self) -> Option<EnginePace> {
        self.inner.pace()
    }

    fn renew(&mut self) {
        // Three times in a lease, so that one that is lost does no harm.
        if self.renewed.is_none_or(|last| last.elapsed() * 3 >= self.shortest_lease) {
            self.renewed = Some(Instant::now());
            self.fleet.renew(self.terms.lease, self.terms.within);
        }
    }
}
