//! Uniform capping: what a site does that does not know its processors. It is what PPartition is
//! measured against (Gholkar, Mueller and Rountree: Power tuning for HPC jobs under manufacturing
//! variations).
//!
//! Rule: every processor has the same cap, and so many of them are in use, picked at random, as the
//! budget feeds at that cap. A job gets as many of those as it asks for, or waits. What a processor
//! leaves of its cap nobody gets.
//!
//! A job that could not start even alone under the largest limit to come is given up: it asks for more
//! processors than that feeds, or the cap is below what can be set.

use std::fmt;
use std::str::FromStr;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use crate::call::{Call, CallError};
use crate::model::{Caps, NodeCap, Varied};
use crate::policy::ppartition::{kind, reliable};
use crate::policy::three_queues::{Kind, Queueing, ThreeQueues};
use crate::policy::{Decision, DropReason, Policy, View};
use crate::units::{JobId, NodeId, Span, Watts};

/// The cap of every processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UniformCap {
    /// The lowest that can be set.
    #[default]
    Min,
    /// The machine's power in equal parts, or the lowest cap if that is more.
    Share,
    /// What a processor is rated at.
    Tdp,
    /// A limit in watts.
    Power(Watts),
}

impl FromStr for UniformCap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "min" => Ok(UniformCap::Min),
            "share" => Ok(UniformCap::Share),
            "tdp" => Ok(UniformCap::Tdp),
            power => match power.parse() {
                Ok(Watts::ZERO) => Err("no processor runs on nothing".to_owned()),
                Ok(power) => Ok(UniformCap::Power(power)),
                Err(error) => Err(format!("{error}, or min, share, tdp")),
            },
        }
    }
}

impl fmt::Display for UniformCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UniformCap::Min => f.write_str("min"),
            UniformCap::Share => f.write_str("share"),
            UniformCap::Tdp => f.write_str("tdp"),
            UniformCap::Power(power) => power.fmt(f),
        }
    }
}

/// Uniform capping with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniformSpec {
    /// The cap of every processor.
    pub cap: UniformCap,
    /// The queues.
    pub queueing: Queueing,
    /// Where the random numbers start by which processors are picked.
    pub seed: u64,
}

impl Default for UniformSpec {
    fn default() -> Self {
        UniformSpec { cap: UniformCap::default(), queueing: Queueing::default(), seed: 1 }
    }
}

impl UniformSpec {
    pub(super) fn from_call(call: &Call) -> Result<Self, CallError> {
        let mut spec = UniformSpec::default();
        for (key, value) in call.parameters(&["cap", "queues", "dispatch", "seed"])? {
            match key.as_str() {
                "cap" => spec.cap = call.value(key, value)?,
                "seed" => spec.seed = call.number(key, value)?,
                _ => {
                    spec.queueing.take(call, key, value)?;
                }
            }
        }
        Ok(spec)
    }

    /// Parameters that are not as usual, each as `key=value`.
    pub(super) fn unusual(&self) -> Vec<String> {
        let usual = UniformSpec::default();
        let mut parameters = Vec::new();
        if self.cap != usual.cap {
            parameters.push(format!("cap={}", self.cap));
        }
        parameters.extend(self.queueing.unusual());
        if self.seed != usual.seed {
            parameters.push(format!("seed={}", self.seed));
        }
        parameters
    }
}

/// The same cap for everybody.
pub struct Uniform {
    spec: UniformSpec,
    queues: ThreeQueues,
    /// All processors in the order in which they are picked.
    picked: Vec<NodeId>,
}

impl Uniform {
    /// The policy with these parameters.
    pub fn with(spec: UniformSpec) -> Self {
        Uniform { spec, queues: ThreeQueues::new(spec.queueing), picked: Vec::new() }
    }

    fn cap(&self, varied: &Varied, power: Watts) -> Watts {
        let floor = varied.processors().floor();
        match self.spec.cap {
            UniformCap::Min => floor,
            UniformCap::Share => {
                let count = varied.processors().names().len() as u64;
                Watts::from_milliwatts(power.milliwatts() / count.max(1)).max(floor)
            }
            UniformCap::Tdp => varied.rated(),
            UniformCap::Power(cap) => varied.added(cap),
        }
    }

    /// The processors that are in use under a budget.
    fn in_use(&self, varied: &Varied, power: Watts) -> &[NodeId] {
        let cap = self.cap(varied, power).max(Watts::from_milliwatts(1));
        let fed = power.milliwatts() / cap.milliwatts();
        &self.picked[..self.picked.len().min(usize::try_from(fed).unwrap_or(usize::MAX))]
    }

    /// Gives up who can never run; the others wait in their queues.
    fn note(&mut self, view: &View<'_>, varied: &Varied, decisions: &mut Vec<Decision>) {
        let count = varied.processors().names().len() as u32;
        if self.picked.is_empty() {
            let mut numbers = Pcg64Dxsm::seed_from_u64(self.spec.seed ^ 0x756e_6966_6f72_6d00);
            self.picked = (0..count).map(NodeId).collect();
            for place in (1..self.picked.len()).rev() {
                self.picked.swap(place, numbers.random_range(0..=place));
            }
        }
        if !view.changes.nothing_freed() {
            self.queues.reopen();
        }
        if view.changes.arrived.is_empty() {
            return;
        }
        let largest = view.ledger.most_for_jobs(Span::ZERO).min(Watts::LARGEST);
        let cap = self.cap(varied, largest);
        let all: Vec<NodeId> = self.in_use(varied, largest).iter().rev().copied().collect();
        for &job in view.changes.arrived {
            let kind = kind(view, varied, job);
            match start(view, varied, kind, job, &all, cap, largest) {
                Some(_) => self.queues.insert(job, kind),
                None => {
                    decisions.push(Decision::Drop { job, reason: DropReason::NeverFed });
                }
            }
        }
    }
}

impl Policy for Uniform {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let Some(varied) = view.model.varied() else { return };
        self.note(view, varied, decisions);
        let power = reliable(view);
        let cap = self.cap(varied, power);
        let mut left = power.saturating_sub(view.ledger.held());
        let in_use = self.in_use(varied, power).iter().copied();
        let mut free: Vec<NodeId> = in_use.filter(|node| view.ledger.is_free(*node)).collect();
        free.reverse();
        let mut turn = self.queues.turn();
        while let Some((job, kind)) = turn.next() {
            match start(view, varied, kind, job, &free, cap, left) {
                Some((caps, power)) => {
                    free.truncate(free.len() - kind.nodes as usize);
                    left -= power;
                    decisions.push(Decision::StartOn { job, caps });
                    turn.started(&mut self.queues, job, kind);
                }
                None => turn.refused(&mut self.queues, kind),
            }
        }
    }

    fn names_nodes(&self) -> bool {
        true
    }
}

/// The caps with which a job starts on the last of these processors, and what they hold, if there are
/// enough of both.
fn start(
    view: &View<'_>,
    varied: &Varied,
    kind: Kind,
    job: JobId,
    free: &[NodeId],
    cap: Watts,
    left: Watts,
) -> Option<(Caps, Watts)> {
    let first = free.len().checked_sub(kind.nodes as usize)?;
    let curves = varied.curves(kind.application);
    let held = free[first..].iter().map(|node| Varied::held(&curves[node.0 as usize], cap));
    let power = held.fold(Watts::ZERO, Watts::saturating_add);
    if power > left {
        return None;
    }
    let capped = free[first..].iter().map(|node| NodeCap { node: *node, cap });
    let caps = Caps::new(capped.collect())?;
    // A cap below what can be set is offered to nobody.
    view.model.on(job, view.job(job), &caps)?;
    Some((caps, power))
}
