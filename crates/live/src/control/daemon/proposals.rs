//! Proposals of other parameters: when the past is replayed, and what is said about it.

use super::Daemon;
use busbar_core::units::Instant;

impl Daemon {
    /// Records what came of a replay of the past, and begins the next one if it is due.
    pub(super) fn tune(&mut self, now: Instant) {
        if let Some(text) = self.tuner.finished() {
            tracing::info!("{text}");
            self.controller.notice(now, text);
        }
        let wall = self.clock.wall_now();
        let setup = self.controller.setup();
        if !self.tuner.is_due(setup.tune.as_ref(), wall) {
            return;
        }
        match self.store.reader() {
            Ok(reader) => self.tuner.begin(reader, setup.clone(), self.budget.clone(), wall),
            Err(error) => {
                let text = format!("tuning failed, so there is no proposal: {error}");
                tracing::warn!("{text}");
                self.controller.notice(now, text);
            }
        }
    }
}
