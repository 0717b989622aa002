//! What a controller has in mind beside the jobs, above all the plans of its policy: so that a forecast goes
//! on exactly as the daemon would. A policy that hears of everybody from the beginning may plan otherwise.

use std::collections::{BTreeMap, BTreeSet};

use super::Controller;
use crate::job::Entry;
use crate::scheduler::{Scheduler, Snapshot};
use crate::wire::Refusal;
use busbar_core::units::{Instant, Watts};

/// What a controller has in mind beside the jobs.
pub(crate) struct Memory {
    scheduler: Snapshot,
    stuck: BTreeMap<u64, &'static str>,
    strangers: BTreeSet<u64>,
    must_ask: bool,
    put_off: Option<Instant>,
    limit: Option<Watts>,
}

impl Controller {
    /// What it has in mind; nothing if its policy cannot be copied, or is about to be replaced.
    pub(crate) fn memory(&self) -> Option<Memory> {
        if self.must_rebuild {
            return None;
        }
        Some(Memory {
            scheduler: self.scheduler.draft()?,
            stuck: self.stuck.clone(),
            strangers: self.strangers.clone(),
            must_ask: self.must_ask,
            put_off: self.put_off,
            limit: self.limit,
        })
    }

    /// Goes on as the one would whose memory this is and who has the same jobs.
    pub(crate) fn recall(&mut self, memory: Memory) {
        let Memory { scheduler, stuck, strangers, must_ask, put_off, limit } = memory;
        self.scheduler = Scheduler::from_draft(&self.setup, scheduler);
        (self.stuck, self.strangers) = (stuck, strangers);
        (self.must_ask, self.put_off, self.limit) = (must_ask, put_off, limit);
        self.must_rebuild = false;
    }

    /// Takes in a job as if it had just been submitted.
    pub(crate) fn enter(&mut self, entry: Entry) -> Result<(), Refusal> {
        let number = entry.number;
        self.scheduler.add(self.setup.job(&entry)?);
        self.jobs.insert(number, entry);
        self.line_up(number);
        Ok(())
    }
}
