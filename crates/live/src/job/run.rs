//! A job that runs: how far it has got, what it draws, and what it had before a change.

use serde::{Deserialize, Serialize};

use super::allotment::Allotment;
use super::outcome::EndReason;
use busbar_core::model::Work;
use busbar_core::units::{Instant, Joules, Span};

/// The state of a job that runs, or is about to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// When the job started.
    pub(crate) start: Instant,
    /// The nodes and power the job has now.
    pub(crate) allotment: Allotment,
    /// The remaining work at `since`, in steps of 2⁻⁶² of the whole job.
    pub(crate) work: u64,
    /// The time up to which `work` and `energy` were computed.
    pub(crate) since: Instant,
    /// The energy drawn until `since`, as predicted by the model.
    pub(crate) energy: Joules,
    /// The end of the pause in which the job moves to other nodes; no work is done until then.
    pub(crate) moves_until: Instant,
    /// When the number of nodes last changed, if it ever did.
    pub(crate) moved: Option<Instant>,
    /// When the time limit is reached.
    pub(crate) until: Instant,
    /// What the job had before its last change, as long as the engine has not confirmed that change. A
    /// daemon that restarts repeats such changes, and lowers before it raises.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<Box<Previous>>,
    /// Whether the job is suspended because there is no power for it.
    pub(crate) suspended: bool,
    /// What the policy gave the job, if a lower budget left it with less.
    pub(crate) squeezed_from: Option<Allotment>,
    /// Set when the job has been asked to end.
    pub(crate) ending: Option<Ending>,
    /// Whether the engine is still to choose the nodes. Until then, those of the allotment only say how many there are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unplaced: bool,
    /// Whether it is work of others, which the daemon neither starts nor ends: it counts with what its nodes may draw.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) of_others: bool,
}

impl Run {
    /// A job that starts now.
    pub(crate) fn new(now: Instant, allotment: Allotment) -> Self {
        Run {
            start: now,
            work: Work::ALL.to_bits(),
            since: now,
            energy: Joules::ZERO,
            moves_until: now,
            moved: None,
            until: now + allotment.time,
            before: None,
            suspended: false,
            squeezed_from: None,
            ending: None,
            unplaced: false,
            of_others: false,
            allotment,
        }
    }

    /// The remaining work at `since`. A stored value above the whole is taken for the whole.
    pub(crate) fn work(&self) -> Work {
        Work::from_bits(self.work).unwrap_or(Work::ALL)
    }

    /// The remaining work at a later time.
    pub(crate) fn work_at(&self, now: Instant) -> Work {
        match self.suspended {
            true => self.work(),
            false => {
                self.work().after(now.since(self.since.max(self.moves_until)), self.allotment.time)
            }
        }
    }

    /// How long the job would have run until a later time at full speed, on the nodes it asks for, as predicted
    /// by the model; `asked` is the time limit it asked for, which is that at full speed.
    pub(crate) fn full_speed_at(&self, now: Instant, asked: Span) -> Span {
        let left = self.work_at(now).time(asked);
        Span::from_millis(asked.millis().saturating_sub(left.millis()))
    }

    /// The energy drawn until a later time, as predicted by the model.
    pub(crate) fn energy_at(&self, now: Instant) -> Joules {
        match self.suspended {
            true => self.energy,
            false => self.energy + self.allotment.power.over(now.since(self.since)),
        }
    }

    /// Brings remaining work and energy up to date.
    fn update(&mut self, now: Instant) {
        (self.work, self.energy) = (self.work_at(now).to_bits(), self.energy_at(now));
        self.since = self.since.max(now);
    }

    /// Changes the allotment from now on, after a pause in which the job moves.
    pub(crate) fn change(&mut self, now: Instant, allotment: Allotment, pause: Span) {
        self.update(now);
        if self.before.is_none() {
            self.before = Some(Box::new(self.present()));
        }
        if allotment.nodes.len() != self.allotment.nodes.len() {
            self.moved = Some(now);
        }
        self.moves_until = self.moves_until.max(now) + pause;
        self.until = self.moves_until + self.work().time(allotment.time);
        self.allotment = allotment;
    }

    /// The job is on these nodes, each under the cap that was meant for those it was given.
    pub(crate) fn relocate(&mut self, nodes: &[u32]) {
        let before = self.before.iter_mut().map(|before| &mut before.allotment);
        for allotment in before.chain(&mut self.squeezed_from).chain([&mut self.allotment]) {
            if allotment.nodes.len() == nodes.len() {
                allotment.nodes = nodes.iter().map(|node| (*node, allotment.cap)).collect();
            }
        }
    }

    /// The job begins only now, although it was to begin before.
    pub(crate) fn begin_later(&mut self, now: Instant) {
        self.energy = self.energy_at(now);
        (self.since, self.moves_until) = (now, now);
        self.until = now + self.work().time(self.allotment.time);
    }

    /// What the job has now, to be remembered before a change.
    pub(crate) fn present(&self) -> Previous {
        let (allotment, squeezed_from) = (self.allotment.clone(), self.squeezed_from.clone());
        Previous { allotment, squeezed_from }
    }

    /// Suspends the job: neither work nor energy goes on from now on.
    pub(crate) fn suspend(&mut self, now: Instant) {
        self.update(now);
        self.suspended = true;
        self.until = Instant::NEVER;
    }

    /// Resumes a suspended job.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.suspended = false;
        self.since = now;
        self.moves_until = self.moves_until.max(now);
        self.until = self.moves_until + self.work().time(self.allotment.time);
    }
}

/// What a job had before a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    /// Its nodes and power.
    pub(crate) allotment: Allotment,
    /// What the policy had given it, if a lower budget had left it with less.
    pub(crate) squeezed_from: Option<Allotment>,
}

/// A request to a running job to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Why the job must end.
    #[serde(rename = "why")]
    pub(crate) reason: EndReason,
    /// When the job was asked.
    pub(crate) asked: Instant,
    /// Whether it was killed since.
    pub(crate) forced: bool,
    /// The user who asked for it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<u32>,
}
