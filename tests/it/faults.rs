//! The daemon and all that may happen to it: killed at any moment, a full disk, clocks that are set, a
//! machine that goes down, a file that is damaged, another daemon, and a long day.
//!
//! `killed`, `arrays`, `switched` and `soak` run the real program with real jobs ([`served`]); what it has written down is added
//! up again, line by line ([`books`]). `disk`, `clock` and `unheeded` drive a daemon by hand, cycle by cycle, with an
//! engine that runs nothing ([`by_hand`]). `full` is about the real program on a full disk, `inherited` is about what a job gets from whoever started the
//! daemon, `managed` about service managers and control groups, `refused` about daemons that must not begin,
//! `vanished` about files that are removed under a daemon, `stopped` about what follows a stop, `stands_by` about a second daemon.
//!
//! All of it is short. `BUSBAR_FAULTS=N` asks for the long form: N kills under each policy, and 25 times as
//! many jobs in one daemon's life. The figures in `docs/reference/live-faults.md` are what it prints with
//! `--nocapture`. With `BUSBAR_KEEP=1` the folder of a test that fails is kept, to look for the cause of what
//! is rare.

use std::path::Path;

#[cfg(feature = "agent")]
mod agents;
mod arrays;
mod books;
mod by_hand;
mod clock;
mod disk;
mod full;
mod inherited;
mod killed;
mod managed;
pub(crate) mod refused;
pub(crate) mod served;
mod soak;
mod stands_by;
mod stopped;
mod switched;
mod tuned;
mod unheeded;
mod vanished;

/// How many times a daemon is killed under each policy, if the long form is asked for.
fn kills_asked_for() -> Option<u32> {
    let text = std::env::var("BUSBAR_FAULTS").ok()?;
    Some(text.parse().expect("BUSBAR_FAULTS is a number of kills, such as 200"))
}

/// The bytes of a file and of those that SQLite keeps beside it.
fn bytes_of_state(database: &Path) -> u64 {
    let sizes = ["", "-wal"].map(|ending| {
        let path = format!("{}{ending}", database.display());
        std::fs::metadata(path).map_or(0, |file| file.len())
    });
    sizes.iter().sum()
}
