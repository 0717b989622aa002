//! Profiles: how long an application takes and what it draws, for each configuration it was run in.
//!
//! A configuration is a number of nodes, of cores in each, and a power cap for each socket. Times and
//! powers were measured, or predicted by a [`fit`] of the measured ones. [`csv`] is how they come and go,
//! [`measured`] sums up repeated runs, [`gears`] makes gears of caps, [`cab`] makes some up.

use std::collections::BTreeMap;
use std::fmt;

use crate::units::{Span, Watts};

#[doc(hidden)]
pub mod cab;
#[doc(hidden)]
pub mod csv;
#[doc(hidden)]
pub mod fit;
pub mod gears;
pub mod measured;

/// The longest time a profile may hold, thirty thousand years: sums of it stay far from overflow.
pub const LONGEST: Span = Span::from_millis(1_000_000_000_000_000);

/// How an application is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Configuration {
    /// The number of nodes.
    pub nodes: u32,
    /// Cores used in each node.
    pub cores: u32,
    /// The most each socket may draw.
    pub cap: Watts,
}

/// Where a row comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// It was run.
    Measured,
    /// It was run where an emulator makes the power up.
    Emulated,
    /// It was run, but its power was not measured: it is the most that its caps allow.
    Bound,
    /// A model says so.
    Predicted,
}

/// What is known of one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// How the application is run.
    pub configuration: Configuration,
    /// How long it takes.
    pub time: Span,
    /// The total power of all sockets of all its nodes.
    pub power: Watts,
    /// The origin of the values.
    pub origin: Origin,
}

/// All that is known of one application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Profile {
    /// Its name.
    pub application: String,
    /// By configuration, ascending, each configuration once.
    pub rows: Vec<Row>,
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [nodes, cores] = [(self.nodes, "node"), (self.cores, "core")]
            .map(|(count, what)| counted(count as usize, what));
        write!(f, "{nodes} × {cores} at {}", self.cap)
    }
}

impl Origin {
    /// All of them, from what is worth most to what is worth least.
    pub const ALL: [Origin; 4] =
        [Origin::Measured, Origin::Emulated, Origin::Bound, Origin::Predicted];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Measured => "measured",
            Origin::Emulated => "emulated",
            Origin::Bound => "bound",
            Origin::Predicted => "predicted",
        }
    }

    /// The origin of this name.
    pub fn named(name: &str) -> Option<Self> {
        Origin::ALL.into_iter().find(|origin| origin.name() == name)
    }

    /// Whether the application was run, so that its time is known.
    pub fn was_run(self) -> bool {
        self != Origin::Predicted
    }
}

impl Profile {
    /// The rows worth choosing, from little power to much: no other row takes at most as much time
    /// *and* at most as much power.
    pub fn best(&self) -> Vec<Row> {
        let mut rows = self.rows.clone();
        rows.sort_by_key(|row| (row.power, row.time, row.configuration));
        let mut fastest = None;
        rows.retain(|row| {
            let is_faster = fastest.is_none_or(|time| row.time < time);
            fastest = if is_faster { Some(row.time) } else { fastest };
            is_faster
        });
        rows
    }
}

impl Profile {
    /// For each number of nodes, ascending, the row with most cores and the highest cap.
    pub(crate) fn unthrottled(&self) -> impl Iterator<Item = &Row> {
        // Rows are sorted: the last of a number of nodes it is.
        let same = |one: &Row, other: &Row| one.configuration.nodes == other.configuration.nodes;
        self.rows.chunk_by(same).filter_map(|rows| rows.last())
    }

    /// How long the application takes by the number of nodes, unthrottled.
    pub fn usual_times(&self) -> BTreeMap<u32, Span> {
        self.unthrottled().map(|row| (row.configuration.nodes, row.time)).collect()
    }
}

/// `1 row`, `2 rows`.
pub fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Whether an application may be called this: something to read, on one line.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_rows_are_beaten_by_none() {
        let row = |nodes, millis, watts| Row {
            configuration: Configuration { nodes, cores: 1, cap: Watts::from_watts(50) },
            time: Span::from_millis(millis),
            power: Watts::from_watts(watts),
            origin: Origin::Measured,
        };
        let rows = vec![row(1, 90, 10), row(2, 50, 20), row(3, 50, 30), row(4, 40, 20)];
        let profile = Profile { application: "SP-MZ".to_owned(), rows };
        let best: Vec<u32> = profile.best().iter().map(|row| row.configuration.nodes).collect();
        assert_eq!(best, [1, 4]);
    }

    #[test]
    fn a_name_is_something_to_read() {
        assert!(is_name("SP-MZ, class D"));
        for wrong in ["", " ", "a ", "a\nb", "\u{7f}"] {
            assert!(!is_name(wrong), "{wrong:?}");
        }
    }
}
