//! Stories with a daemon that has no processes.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;

mod arrays;
mod feeds;
mod lifecycle;
mod limits;
mod parts;
mod placing;
mod power;
mod random;
mod switching;

use super::*;
use crate::control::setup::LastResort;
use crate::engine::{Found, Power, Signal};
use crate::job::Requester::{Anybody, Full, Ordinary};
use crate::job::{After, Attempt, End, JobRequest, Owner, Program};
use crate::store::Batch;
use crate::wire::{RefusalKind, State, Submission};
use busbar_core::freedom::Freedom;
use busbar_core::machine::{Details, Machine, NodeSize};
use busbar_core::policy::PolicySpec;
use busbar_core::profile::cab;
use busbar_core::units::{Joules, NodeId, Span};
use busbar_core::world::Repertoire;

const ALICE: Owner = Owner { user: 1000, group: 1000 };
const BOB: Owner = Owner { user: 1001, group: 1001 };
const ROOT: Owner = Owner { user: 0, group: 0 };

fn at(seconds: u32) -> Instant {
    Instant::from_secs(seconds)
}

fn watts(watts: u32) -> Watts {
    Watts::from_watts(watts)
}

fn submission(nodes: u32, seconds: u32) -> Submission {
    Submission {
        request: JobRequest {
            name: "test".to_owned(),
            nodes,
            moldable: None,
            time: Span::from_secs(seconds),
            application: None,
            slowdown: None,
            after: Vec::new(),
            held: false,
            account: None,
            part: Default::default(),
        },
        program: Program {
            command: vec!["true".to_owned()],
            folder: "/".into(),
            environment: Vec::new(),
            output: "out".into(),
            errors: None,
        },
        array: None,
    }
}

/// Four nodes of 100 W, or a machine that suits the policy. What the policy believes takes longest to work out, and is
/// the same in every story.
fn setup(policy: &str) -> Setup {
    thread_local!(static KNOWN: RefCell<BTreeMap<String, Setup>> = RefCell::default());
    KNOWN.with_borrow_mut(|known| {
        known.entry(policy.to_owned()).or_insert_with(|| new_setup(policy)).clone()
    })
}

fn new_setup(policy: &str) -> Setup {
    let policy: PolicySpec = policy.parse().unwrap();
    let (machine, profiles) = match (policy.name(), policy.wants().has(Freedom::Nodes)) {
        (name, _) if name.starts_with("rmap") => {
            (Machine::cab(), cab::generate(cab::Preset::Cab, 1))
        }
        (_, true) => (Machine::catalyst(4, 1).unwrap(), Vec::new()),
        (_, false) => (Machine::of_processors(4).unwrap(), Vec::new()),
    };
    let machine = Machine { details: Details::ideal(), ..machine };
    Setup::new(&machine, Repertoire::of(&profiles), policy).unwrap()
}

/// A controller with a file and a world that do what they are told.
struct World {
    controller: Controller,
    /// What is written down.
    file: BTreeMap<u64, Entry>,
    next: u64,
    /// What runs, what it draws if it is not stopped, and whether it is.
    running: BTreeMap<Attempt, (Watts, bool)>,
    /// On which nodes.
    on: BTreeMap<Attempt, Vec<u32>>,
    /// Who was ever started.
    started: BTreeMap<Attempt, u32>,
    /// Nodes that are not on, as is written down.
    nodes_in_file: BTreeMap<u32, SwitchState>,
    /// Nodes that are not on, and when they will be where they are going.
    nodes: BTreeMap<u32, (SwitchState, Instant)>,
    events: Vec<EventKind>,
}

impl World {
    fn new(setup: Setup, budget: Budget) -> Self {
        let controller = Controller::new(setup, budget, Saved::default(), at(0)).unwrap();
        World {
            controller,
            file: BTreeMap::new(),
            next: 1,
            running: BTreeMap::new(),
            on: BTreeMap::new(),
            started: BTreeMap::new(),
            nodes_in_file: BTreeMap::new(),
            nodes: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    fn submit(&mut self, now: Instant, submission: Submission) -> u64 {
        self.controller.submit(now, ALICE, submission, &|_| None).unwrap()
    }

    fn write(&mut self, batch: Batch) {
        for (entry, _) in batch.submitted {
            assert!(!self.file.contains_key(&entry.number), "a number is used once");
            self.next = self.next.max(entry.number + 1);
            self.file.insert(entry.number, entry);
        }
        for entry in batch.elements {
            assert!(!self.file.contains_key(&entry.number), "a number is used once");
            self.next = self.next.max(entry.number + 1);
            self.file.insert(entry.number, entry);
        }
        for entry in batch.changed {
            assert!(self.file.contains_key(&entry.number), "what changes is known");
            self.file.insert(entry.number, entry);
        }
        for (node, state) in batch.nodes {
            match state {
                Some(state) => _ = self.nodes_in_file.insert(node, state),
                None => _ = self.nodes_in_file.remove(&node),
            }
        }
        self.events.extend(batch.events.into_iter().map(|event| event.kind));
    }

    /// Does the first so many acts; returns who is gone because of a signal.
    fn act(&mut self, acts: &[Act], most: usize, limit: Watts) {
        for act in acts.iter().take(most) {
            let (before, below_before) = (self.drawn(), self.below_feeds());
            match act {
                Act::Start { attempt, allotment } => {
                    *self.started.entry(*attempt).or_default() += 1;
                    self.running.insert(*attempt, (allotment.power, false));
                    self.on.insert(*attempt, allotment.node_numbers());
                }
                Act::Set { attempt, allotment, .. } => {
                    if let Some((power, _)) = self.running.get_mut(attempt) {
                        *power = allotment.power;
                        self.on.insert(*attempt, allotment.node_numbers());
                    }
                    self.controller.confirmed(*attempt, allotment);
                }
                Act::Signal { attempt, signal: signal @ (Signal::Suspend | Signal::Resume) } => {
                    if let Some((_, is_stopped)) = self.running.get_mut(attempt) {
                        *is_stopped = *signal == Signal::Suspend;
                    }
                }
                Act::ResumeAgain { attempt } => {
                    if let Some((_, is_stopped)) = self.running.get_mut(attempt) {
                        *is_stopped = false;
                    }
                }
                Act::Switch { node, to, expected, .. } => {
                    let state = match to {
                        Power::Off => SwitchState::Stopping,
                        Power::On => SwitchState::Starting,
                    };
                    let now = self.controller.scheduler.ledger().now();
                    self.nodes.insert(*node, (state, now + *expected));
                }
                Act::Signal { .. } | Act::Forget { .. } | Act::Dismiss { .. } => (),
            }
            let power = self.drawn();
            assert!(power <= limit || power <= before, "{act:?} leads to {power}, over {limit}");
            let limits = self.feed_limits();
            for (feed, power) in self.below_feeds().into_iter().enumerate() {
                let (limit, before) = (limits[feed], below_before[feed]);
                assert!(
                    power <= limit || power <= before,
                    "{act:?} leads to {power} below feed {feed}, over {limit}"
                );
            }
        }
    }

    /// By feed: its limit now.
    fn feed_limits(&self) -> Vec<Watts> {
        let now = self.controller.scheduler.ledger().now();
        let feeds = self.controller.budget.feeds().into_iter().flat_map(|feeds| feeds.iter());
        feeds.map(|limit| limit.at(now)).collect()
    }

    /// By feed: what the nodes draw that it names, or that a feed below it names.
    fn below_feeds(&self) -> Vec<Watts> {
        let machine = &self.controller.setup.machine;
        let Some(tree) = &machine.feeds else { return Vec::new() };
        let mut below = vec![Watts::ZERO; tree.all().len()];
        if machine.kinds.is_some() {
            below = machine.idle_of_feeds();
        }
        let mut draws = |node: u32, power: Watts| {
            tree.feeds_of(NodeId(node)).for_each(|feed| below[feed] += power);
        };
        if machine.kinds.is_none() {
            (0..machine.nodes).for_each(|node| draws(node, machine.node().idle));
        }
        for (attempt, (power, _)) in self.running.iter().filter(|(_, (_, is_stopped))| !is_stopped)
        {
            let nodes = &self.on[attempt];
            let each = power.milliwatts().div_ceil(nodes.len() as u64);
            nodes.iter().for_each(|node| draws(*node, Watts::from_milliwatts(each)));
        }
        below
    }

    /// What nodes draw without jobs.
    fn base(&self) -> Watts {
        let machine = &self.controller.setup.machine;
        if machine.kinds.is_some() {
            return machine.floor();
        }
        let (idle, off) = (machine.node().idle, machine.off());
        let node = |node: u32| match self.nodes.get(&node) {
            None => idle,
            Some((SwitchState::Stopping, _)) => off.stop.power,
            Some((SwitchState::Off, _)) => off.power,
            Some((SwitchState::Starting, _)) => off.start.power,
        };
        (0..machine.nodes).map(node).sum()
    }

    /// What the whole machine draws.
    fn drawn(&self) -> Watts {
        self.base() + self.power()
    }

    /// Nodes that have been switched for long enough are there, and the daemon hears of it.
    fn arrive(&mut self, now: Instant) {
        for (node, (state, at)) in self.nodes.clone() {
            let to = match state {
                SwitchState::Stopping if at <= now => {
                    self.nodes.insert(node, (SwitchState::Off, Instant::NEVER));
                    Power::Off
                }
                SwitchState::Starting if at <= now => {
                    self.nodes.remove(&node);
                    Power::On
                }
                _ => continue,
            };
            self.controller.switched(now, node, None, to);
        }
    }

    fn power(&self) -> Watts {
        self.running.values().filter(|(_, is_stopped)| !is_stopped).map(|(power, _)| *power).sum()
    }

    /// A whole cycle.
    fn cycle(&mut self, now: Instant) -> Vec<Act> {
        self.arrive(now);
        self.controller.turn(now).unwrap();
        let Turn { batch, acts } = self.controller.take(now, 0);
        self.write(batch);
        let limit = self.controller.budget.at(now);
        self.act(&acts, usize::MAX, limit);
        acts
    }

    fn end(&mut self, now: Instant, attempt: Attempt, end: End) {
        self.running.remove(&attempt);
        self.controller.ended(now, attempt, end);
    }

    /// A new daemon finds what the last one wrote down and what runs.
    fn restart(&mut self, now: Instant) {
        let alive = self.file.values().filter(|entry| !matches!(entry.phase, Phase::Over(_)));
        let (jobs, nodes) = (alive.cloned().collect(), self.nodes_in_file.clone());
        let saved = Saved { jobs, nodes, next: self.next, ..Saved::default() };
        let setup = self.controller.setup.clone();
        let budget = self.controller.budget.clone();
        self.controller = Controller::new(setup, budget, saved, now).unwrap();
        for attempt in self.controller.attempts() {
            let found = match self.running.contains_key(&attempt) {
                true => Found::Running,
                false if self.started.contains_key(&attempt) => {
                    Found::Ended { end: End::Exited(0), ago: Span::ZERO }
                }
                false => Found::NeverStarted,
            };
            self.controller.found(now, attempt, found);
        }
        self.controller.resend_settings();
    }

    fn state(&self, job: u64, now: Instant) -> (State, Option<String>) {
        let line = match self.controller.jobs.get(&job) {
            Some(entry) => self.controller.line(entry, now, &|_| 0),
            None => crate::control::answers::line(&self.file[&job], now, &|_| 0),
        };
        (line.state, line.reason)
    }
}

fn first(job: u64) -> Attempt {
    Attempt { job, number: 1 }
}
