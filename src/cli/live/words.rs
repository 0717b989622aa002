//! Formats times, states, nodes and ends for users.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::live::job::End;
use crate::live::wire::{JobLine, State};
use crate::report::Facts;
use crate::units::Span;

/// A time in seconds since 1970, as local time.
pub(in crate::cli) fn local_time(seconds: i64) -> String {
    match Timestamp::from_second(seconds) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => format!("{seconds} s after 1970"),
    }
}

/// A duration as squeue writes it: `M:SS`, `H:MM:SS` or `D-HH:MM:SS`, rounded down to seconds.
pub(super) fn clock(span: Span) -> String {
    let seconds = span.millis() / 1000;
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days}-{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// A list of nodes with ranges: `0-3,7`.
pub(super) fn node_list(nodes: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &node in nodes {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(node) => *last = node,
            _ => ranges.push((node, node)),
        }
    }
    let text = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

/// The name of a state.
pub(super) fn state(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting",
        State::Blocked => "blocked",
        State::Held => "held",
        State::Starting => "starting",
        State::Running => "running",
        State::Suspended => "suspended",
        State::Ending => "ending",
        State::Completed => "completed",
        State::Failed => "failed",
        State::TimedOut => "timed out",
        State::Cancelled => "cancelled",
        State::Lost => "lost",
    }
}

/// The number of jobs in each state, in the order of first occurrence: `3 completed, 1 running`.
pub(super) fn states(lines: &[JobLine]) -> String {
    let mut counts: Vec<(State, usize)> = Vec::new();
    for line in lines {
        match counts.iter_mut().find(|(state, _)| *state == line.state) {
            Some((_, count)) => *count += 1,
            None => counts.push((line.state, 1)),
        }
    }
    let text = |(counted, count): &(State, usize)| format!("{count} {}", state(*counted));
    counts.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Whether a job is over.
pub(super) fn is_over(state: State) -> bool {
    match state {
        State::Waiting | State::Blocked | State::Held => false,
        State::Starting | State::Running | State::Suspended | State::Ending => false,
        State::Completed | State::Failed | State::TimedOut | State::Cancelled | State::Lost => true,
    }
}

/// How a process ended.
pub(super) fn end(end: &End) -> String {
    match end {
        End::Exited(code) => format!("exit code {code}"),
        End::Signalled(signal) => format!("ended by signal {signal}"),
        End::Failed(reason) => format!("could not be run: {}", visible(reason)),
        End::Lost => "its exit code is unknown".to_owned(),
    }
}

/// A text without control characters, which could change the terminal.
pub(super) fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// The text for values that the user may not see.
pub(super) const HIDDEN: &str = "-";

/// The name of a job, if the user may see it.
pub(super) fn name(name: Option<&str>) -> String {
    name.map_or_else(|| HIDDEN.to_owned(), visible)
}

/// A command, quoted as in a shell.
pub(super) fn command(words: &[String]) -> String {
    let quoted = |word: &String| {
        let is_plain = |c: char| c.is_alphanumeric() || "_-./:=,+@%".contains(c);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word.clone(),
            false => format!("'{}'", visible(word).replace('\'', "'\\''")),
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Formats rows of a name and a value.
pub(in crate::cli) fn rows(rows: &[(&str, String)]) -> String {
    let mut facts = Facts::default();
    rows.iter().for_each(|(name, value)| facts.add(name, value));
    facts.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_look_like_a_clock() {
        for (seconds, text) in [
            (0, "0:00"),
            (59, "0:59"),
            (60, "1:00"),
            (3599, "59:59"),
            (3600, "1:00:00"),
            (86_399, "23:59:59"),
            (90_061, "1-01:01:01"),
        ] {
            assert_eq!(clock(Span::from_secs(seconds)), text);
        }
        assert_eq!(clock(Span::from_millis(1999)), "0:01");
    }

    #[test]
    fn neighbours_stand_together() {
        assert_eq!(node_list(&[]), "");
        assert_eq!(node_list(&[4]), "4");
        assert_eq!(node_list(&[0, 1, 2, 3, 7, 9, 10]), "0-3,7,9-10");
        assert_eq!(node_list(&[u32::MAX, 0]), "4294967295,0");
    }

    #[test]
    fn commands_can_be_typed_and_steer_no_terminal() {
        let words = ["sh", "-c", "echo 'a b'; \u{1b}[2J", ""].map(str::to_owned);
        assert_eq!(command(&words), "sh -c 'echo '\\''a b'\\''; \u{fffd}[2J' ''");
    }
}
