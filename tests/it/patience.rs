//! How tests wait: for a condition, and never for a number of seconds. A machine may be as busy as it likes.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// After so long nobody expects any more that a condition comes true. This ends tests that would fail anyway, and says
/// nothing about how fast anything is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(900);

/// The longest pause between two looks. The first ones are shorter.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Waits until there is something.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_or(look, || what.to_owned())
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}

/// Waits until there is something. What is missing, and what can be said about it, is asked for at the end.
#[track_caller]
pub(crate) fn wait_or<T>(
    mut look: impl FnMut() -> Option<T>,
    missing: impl FnOnce() -> String,
) -> T {
    let (began, mut pause) = (Instant::now(), Duration::from_millis(1));
    loop {
        if let Some(found) = look() {
            return found;
        }
        if began.elapsed() > PATIENCE {
            panic!("in vain: {}", missing());
        }
        sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
