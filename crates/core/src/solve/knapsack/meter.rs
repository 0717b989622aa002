//! Effort, counted: the same steps on every machine, unless somebody says stop.

/// Counts steps against a limit, and asks now and then whether to stop.
pub(super) struct Meter<'a, 'b> {
    spent: u64,
    limit: u64,
    ask_at: u64,
    stop: Option<&'a mut (dyn FnMut() -> bool + 'b)>,
    stopped: bool,
}

/// How many steps pass between two questions whether to stop.
const STEPS_BETWEEN_QUESTIONS: u64 = 4096;

impl<'a, 'b> Meter<'a, 'b> {
    pub(super) fn new(limit: u64, stop: Option<&'a mut (dyn FnMut() -> bool + 'b)>) -> Self {
        Meter { spent: 0, limit, ask_at: 0, stop, stopped: false }
    }

    /// Counts steps; false if that was enough.
    #[inline]
    pub(super) fn spend(&mut self, steps: u64) -> bool {
        self.spent += steps;
        if self.spent >= self.ask_at {
            self.ask_at = self.spent + STEPS_BETWEEN_QUESTIONS;
            let told = self.stop.as_mut().is_some_and(|stop| stop());
            self.stopped = self.stopped || told || self.spent >= self.limit;
        }
        !self.stopped
    }

    /// Whether the search has to end.
    pub(super) fn is_spent(&self) -> bool {
        self.stopped
    }

    pub(super) fn spent(&self) -> u64 {
        self.spent
    }
}
