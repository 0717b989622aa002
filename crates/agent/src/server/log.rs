//! The agent's log on standard error.

use std::cmp::Ordering;
use std::io::{self, Write};

use crate::changes::unix_millis;

/// What the agent says on standard error, at most so much that nobody can fill a disk with it.
#[derive(Default)]
pub(super) struct Log {
    /// The minute that it is, and how many lines it had.
    minute: (u64, u32),
}

impl Log {
    const LINES_A_MINUTE: u32 = 60;

    /// Says a line.
    pub(super) fn say(&mut self, text: &str) {
        let minute = unix_millis() / 60_000;
        if self.minute.0 != minute {
            self.minute = (minute, 0);
        }
        self.minute.1 += 1;
        // That it cannot be said changes nothing.
        let _ = match self.minute.1.cmp(&Log::LINES_A_MINUTE) {
            Ordering::Less => writeln!(io::stderr(), "{text}"),
            Ordering::Equal => writeln!(io::stderr(), "more in the next minute"),
            Ordering::Greater => Ok(()),
        };
    }
}
