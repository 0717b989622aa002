//! How tests wait: for a condition, and never for a number of seconds. A machine may be as busy as it likes.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// After so long nobody expects any more that a condition comes true. This ends tests that would fail anyway, and says
/// nothing about how fast anything is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(900);

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "in vain: {what}");
        sleep(Duration::from_millis(2));
    }
}
