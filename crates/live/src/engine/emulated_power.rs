//! Nodes that are parts of one computer, switched off and on in emulation: nothing happens but that the time passes
//! which it would take.
//!
//! It remembers nothing beyond the life of the daemon, and need not: the daemon has written down which nodes are off,
//! and asks again for whatever was under way, which then takes the whole time once more.

use std::collections::BTreeMap;
use std::time::Instant as Moment;

use super::{Engine, EngineError, EnginePace, Found, NodeInfo, Order, Power, Report, Ticket, Wait};
use crate::job::Attempt;
use busbar_core::units::{Instant, Span, Watts};

/// An engine whose nodes are switched in emulation.
pub struct EmulatedPower {
    inner: Box<dyn Engine>,
    clock: Box<dyn Fn() -> Instant + Send>,
    /// What nodes are switched to, and when they are there.
    under_way: BTreeMap<u32, (Power, Instant)>,
}

impl EmulatedPower {
    /// The same engine, with nodes that can be switched.
    pub(crate) fn of(inner: Box<dyn Engine>) -> Self {
        let begin = Moment::now();
        let clock = move || {
            let passed = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
            Instant::from_millis(passed)
        };
        EmulatedPower::by_clock(inner, clock)
    }

    /// The same by another clock, which does not go back.
    pub fn by_clock(inner: Box<dyn Engine>, clock: impl Fn() -> Instant + Send + 'static) -> Self {
        EmulatedPower { inner, clock: Box::new(clock), under_way: BTreeMap::new() }
    }

    fn arrived(&mut self) -> Vec<Report> {
        let now = (self.clock)();
        let mut reports = Vec::new();
        self.under_way.retain(|&node, &mut (to, at)| {
            let is_there = at <= now;
            reports.extend(is_there.then_some(Report::Switched { node, to }));
            !is_there
        });
        reports
    }
}

impl Engine for EmulatedPower {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn nodes(&self) -> Vec<NodeInfo> {
        self.inner.nodes()
    }

    fn node_name(&self, node: u32) -> Option<String> {
        self.inner.node_name(node)
    }

    fn chooses_nodes(&self) -> bool {
        self.inner.chooses_nodes()
    }

    fn request(&mut self, orders: Vec<(Ticket, Order)>) {
        self.inner.request(orders);
    }

    fn reports(&mut self) -> Vec<Report> {
        let mut reports = self.inner.reports();
        reports.extend(self.arrived());
        reports
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

    fn explain(&mut self, waits: BTreeMap<String, Wait>) {
        self.inner.explain(waits);
    }

    fn dismiss(&mut self, handle: &str) {
        self.inner.dismiss(handle);
    }

    fn limit(&mut self, limit: Option<Watts>) {
        self.inner.limit(limit);
    }

    fn can_switch(&self) -> bool {
        true
    }

    fn switch(&mut self, node: u32, to: Power, expected: Span) {
        let at = (self.clock)() + expected;
        match self.under_way.get(&node) {
            // It was asked for already.
            Some((before, _)) if *before == to => (),
            _ => _ = self.under_way.insert(node, (to, at)),
        }
    }

    fn next_report(&self) -> Option<Span> {
        let first = self.under_way.values().map(|(_, at)| *at).min();
        let first = first.map(|at| at.since((self.clock)()));
        first.into_iter().chain(self.inner.next_report()).min()
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
        self.inner.renew();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::engine::{AtOnce, Recording};

    #[test]
    fn a_node_is_there_when_the_time_has_passed_and_not_before() {
        let seconds = Arc::new(AtomicU64::new(1000));
        let clock = seconds.clone();
        let clock = move || Instant::from_millis(1000 * clock.load(Ordering::Relaxed));
        let mut engine = EmulatedPower::by_clock(AtOnce::boxed(Recording::new()), clock);
        assert!(engine.can_switch());
        assert_eq!(engine.next_report(), None);
        engine.switch(3, Power::Off, Span::from_secs(60));
        engine.switch(5, Power::On, Span::from_secs(600));
        // Asked again, it does not take longer.
        engine.switch(3, Power::Off, Span::from_secs(6000));
        let mut after = |passed: u64| {
            seconds.store(1000 + passed, Ordering::Relaxed);
            let switched = engine.reports().into_iter().map(|report| match report {
                Report::Switched { node, to } => (node, to),
                other => panic!("{other:?}"),
            });
            (switched.collect::<Vec<_>>(), engine.next_report())
        };
        assert_eq!(after(59), (vec![], Some(Span::from_secs(1))));
        assert_eq!(after(60), (vec![(3, Power::Off)], Some(Span::from_secs(540))));
        assert_eq!(after(700), (vec![(5, Power::On)], None));
        assert_eq!(after(7000), (vec![], None), "each is reported once");
    }
}
