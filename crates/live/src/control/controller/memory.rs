//! The state of a controller besides its jobs, above all the plans of its policy. With it a forecast
//! continues exactly as the daemon would; a policy that starts afresh may plan differently.

use std::collections::{BTreeMap, BTreeSet};

use super::Controller;
use crate::control::scheduler::{Scheduler, Snapshot};
use crate::job::Entry;
use crate::wire::Refusal;
use busbar_core::switching::Switcher;
use busbar_core::units::{Instant, Watts};

/// The state of a controller besides its jobs.
pub(crate) struct Memory {
    scheduler: Snapshot,
    stuck: BTreeMap<u64, &'static str>,
    aside: BTreeMap<u64, String>,
    unmanaged: BTreeSet<u64>,
    must_ask: bool,
    put_off: Option<Instant>,
    limit: Option<(Watts, Watts)>,
    feed_limits: Option<Vec<Watts>>,
    switcher: Option<Switcher>,
}

impl Controller {
    /// The current state; `None` if the policy cannot be copied or is about to be replaced.
    pub(crate) fn memory(&self) -> Option<Memory> {
        if self.must_rebuild {
            return None;
        }
        Some(Memory {
            scheduler: self.scheduler.snapshot()?,
            stuck: self.stuck.clone(),
            aside: self.aside.clone(),
            unmanaged: self.unmanaged.clone(),
            must_ask: self.must_ask,
            put_off: self.put_off,
            limit: self.limit,
            feed_limits: self.feed_limits.clone(),
            switcher: self.switcher.clone(),
        })
    }

    /// Continues from the state of another controller with the same jobs.
    pub(crate) fn recall(&mut self, memory: Memory) {
        let Memory { scheduler, stuck, aside, unmanaged, must_ask, put_off, limit, .. } = memory;
        let Memory { feed_limits, switcher, .. } = memory;
        self.scheduler = Scheduler::from_snapshot(&self.setup, scheduler);
        (self.stuck, self.aside, self.unmanaged) = (stuck, aside, unmanaged);
        (self.must_ask, self.put_off, self.limit) = (must_ask, put_off, limit);
        (self.switcher, self.feed_limits) = (switcher, feed_limits);
        self.must_rebuild = false;
    }

    /// Adds a job as if it had just been submitted.
    pub(crate) fn enter(&mut self, entry: Entry) -> Result<(), Refusal> {
        let number = entry.number;
        self.scheduler.add(self.setup.job(&entry)?, self.setup.seat_of(&entry));
        self.jobs.insert(number, entry);
        self.enqueue(number);
        Ok(())
    }
}
