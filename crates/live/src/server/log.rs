//! The daemon's log on standard error: one line per message, for people or for programs.
//!
//! A text line has the local time, the level, the message, and `key=value` pairs. A JSON line is an
//! object with the same fields and the time in UTC. Control characters in names and messages are
//! escaped, so that nobody can forge a line through a job's name.

use std::fmt;
use std::io;

use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};
use tracing::Subscriber;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{MakeWriter, Subscriber as Formatter};

/// The environment variable that overrides the configured level.
pub(crate) const VARIABLE: &str = "BUSBAR_LOG";

/// The lowest level that is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Failures.
    Error,
    /// Warnings as well.
    Warn,
    /// Events of jobs and the budget as well.
    #[default]
    Info,
    /// Requests and decisions as well.
    Debug,
    /// Each control cycle as well.
    Trace,
}

impl Level {
    const ALL: [(Level, &'static str); 5] = [
        (Level::Error, "error"),
        (Level::Warn, "warn"),
        (Level::Info, "info"),
        (Level::Debug, "debug"),
        (Level::Trace, "trace"),
    ];

    fn filter(self) -> tracing::Level {
        match self {
            Level::Error => tracing::Level::ERROR,
            Level::Warn => tracing::Level::WARN,
            Level::Info => tracing::Level::INFO,
            Level::Debug => tracing::Level::DEBUG,
            Level::Trace => tracing::Level::TRACE,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Level::ALL.iter().find(|(level, _)| level == self).map(|(_, name)| *name);
        f.write_str(name.unwrap_or_default())
    }
}

/// The format of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// A line of text.
    #[default]
    Text,
    /// A JSON object on a line.
    Json,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Text => "text",
            Format::Json => "json",
        })
    }
}

/// The level in the environment is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{VARIABLE} is '{0}'; write error, warn, info, debug or trace")]
pub struct UnknownLevel(String);

/// Sends the messages of this process from this level up to standard error; the variable
/// `VARIABLE` overrides the level. Only the first call in a process has an effect; returns
/// whether this was the first.
pub fn begin(level: Level, format: Format) -> Result<bool, UnknownLevel> {
    let said = std::env::var(VARIABLE).unwrap_or_default();
    let level = named(&said)?.unwrap_or(level);
    let subscriber = subscriber(level, format, io::stderr);
    Ok(tracing::subscriber::set_global_default(subscriber).is_ok())
}

/// The level of this name; `None` if the text is empty.
fn named(text: &str) -> Result<Option<Level>, UnknownLevel> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let found = Level::ALL.iter().find(|(_, name)| name.eq_ignore_ascii_case(text));
    found.map(|(level, _)| Some(*level)).ok_or_else(|| UnknownLevel(text.to_owned()))
}

fn subscriber<W>(level: Level, format: Format, to: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines =
        Formatter::builder().with_max_level(level.filter()).with_writer(to).with_target(false);
    match format {
        Format::Text => {
            let fields = debug_fn(write_field).delimited(" ");
            Box::new(lines.with_timer(LocalTime).with_ansi(false).fmt_fields(fields).finish())
        }
        Format::Json => Box::new(lines.with_timer(UtcTime).json().flatten_event(true).finish()),
    }
}

/// Writes the message as it is, and other fields as `key=value`, quoted where necessary.
fn write_field(to: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let text = format!("{value:?}");
    if field.name() == "message" {
        for character in text.chars() {
            match character.is_control() {
                true => write!(to, "{}", character.escape_default())?,
                false => to.write_char(character)?,
            }
        }
        return Ok(());
    }
    let is_quoted = text.len() > 1 && text.starts_with('"') && text.ends_with('"');
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace() && c != '"' && c != '=';
    match is_quoted || (!text.is_empty() && text.chars().all(is_plain)) {
        // The debug format has quoted and escaped it already.
        true if !text.contains(char::is_control) => write!(to, "{}={text}", field.name()),
        _ => write!(to, "{}={text:?}", field.name()),
    }
}

struct LocalTime;

impl FormatTime for LocalTime {
    fn format_time(&self, to: &mut Writer<'_>) -> fmt::Result {
        write!(to, "{}", Zoned::now().strftime("%Y-%m-%d %H:%M:%S%.3f"))
    }
}

struct UtcTime;

impl FormatTime for UtcTime {
    fn format_time(&self, to: &mut Writer<'_>) -> fmt::Result {
        write!(to, "{:.3}", Timestamp::now())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn said(level: Level, format: Format, say: impl FnOnce()) -> Vec<String> {
        let kept = Kept::default();
        let to = kept.clone();
        tracing::subscriber::with_default(subscriber(level, format, move || to.clone()), say);
        let bytes = kept.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_line_has_time_level_message_and_pairs() {
        let lines = said(Level::Info, Format::Text, || {
            tracing::info!(job = 7, name = "a b", "started");
            tracing::debug!("not said");
            tracing::warn!(user = %"ann", why = %"x = \"y\"\nz", "odd\nERROR forged \u{1b}[31m");
        });
        let [first, second] = &lines[..] else { panic!("{lines:?}") };
        let (time, rest) = first.split_at("2026-11-15 19:00:00.123".len());
        let form: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(form, "0000-00-00 00:00:00.000");
        assert_eq!(rest, "  INFO started job=7 name=\"a b\"");
        let expected = r#" odd\nERROR forged \u{1b}[31m user=ann why="x = \"y\"\nz""#;
        assert!(second.ends_with(&format!(" WARN{expected}")), "{second}");
    }

    #[test]
    fn a_line_of_json_is_an_object() {
        let lines = said(Level::Trace, Format::Json, || {
            tracing::trace!(job = 7, name = "a\nb", "looked");
        });
        assert_eq!(lines.len(), 1);
        let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!((&line["level"], &line["message"]), (&"TRACE".into(), &"looked".into()));
        assert_eq!((&line["job"], &line["name"]), (&7.into(), &"a\nb".into()));
        let time = line["timestamp"].as_str().unwrap();
        assert!(time.len() == 24 && time.parse::<Timestamp>().is_ok(), "{time}");
    }

    #[test]
    fn levels_have_names() {
        assert_eq!(named(" Debug "), Ok(Some(Level::Debug)));
        assert_eq!(named(""), Ok(None));
        let error = named("loud").unwrap_err().to_string();
        assert_eq!(error, "BUSBAR_LOG is 'loud'; write error, warn, info, debug or trace");
        for (level, name) in Level::ALL {
            assert_eq!(level.to_string(), name);
            assert_eq!(serde_json::to_value(level).unwrap(), name);
        }
    }
}
