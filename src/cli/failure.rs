//! Reports errors of commands: as text, or as JSON with `--json`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::ArgMatches;
use serde::Serialize;

#[cfg(feature = "live")]
use crate::live::wire::{Refusal, RefusalKind};
use crate::profile::SqliteError;

/// The audience of error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    People,
    Programs,
}

impl Audience {
    /// The audience of a parsed command line: programs if it has `--json`.
    pub(super) fn of(matches: &ArgMatches) -> Self {
        let has_flag =
            |matches: &ArgMatches| matches!(matches.try_get_one::<bool>("json"), Ok(Some(true)));
        let mut matches = Some(matches);
        while let Some(here) = matches {
            if has_flag(here) {
                return Audience::Programs;
            }
            matches = here.subcommand().map(|(_, below)| below);
        }
        Audience::People
    }

    /// The audience of a command line that could not be parsed. Words after `--` do not count.
    pub(super) fn guess(line: impl Iterator<Item = OsString>) -> Self {
        match line.take_while(|word| word != "--").any(|word| word == "--json") {
            true => Audience::Programs,
            false => Audience::People,
        }
    }
}

/// An error for programs: one line of JSON.
#[derive(Serialize)]
struct Failure {
    error: Details,
}

#[derive(Serialize)]
struct Details {
    message: String,
    causes: Vec<String>,
    /// The daemon's kind of refusal, if it was one.
    #[cfg(feature = "live")]
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<RefusalKind>,
    exit_code: u8,
}

/// Whether something could not be read or written, as opposed to being invalid.
pub(super) fn is_of_the_system(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<io::Error>() || cause.is::<SqliteError>())
}

/// The error of a command line, without the usage, which only terminals show.
pub(super) fn usage_text(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let what = text.split("\n\nUsage:").next().unwrap_or(&text);
    let what = what.split("\n\nFor more information").next().unwrap_or(what);
    what.strip_prefix("error: ").unwrap_or(what).trim().to_owned()
}

/// Reports why a command failed on standard error, and returns its exit code.
pub(super) fn report(error: &anyhow::Error, audience: Audience) -> ExitCode {
    let exit_code = if is_of_the_system(error) { 1 } else { 2 };
    say(
        audience,
        exit_code,
        || format!("{error:#}"),
        || Details {
            message: error.to_string(),
            causes: error.chain().skip(1).map(ToString::to_string).collect(),
            #[cfg(feature = "live")]
            kind: error.downcast_ref::<Refusal>().map(|refusal| refusal.kind),
            exit_code,
        },
    )
}

/// Reports that a command did only part of its work, with the reasons. The exit code is 2.
#[cfg(feature = "live")]
pub(super) fn report_part(message: String, reasons: Vec<String>, audience: Audience) -> ExitCode {
    let words = || reasons.join("\nerror: ");
    let details =
        || Details { message: message.clone(), causes: reasons.clone(), kind: None, exit_code: 2 };
    say(audience, 2, words, details)
}

/// Reports an error in a command line. Help and version are no errors.
pub(super) fn report_usage(error: &clap::Error, audience: Audience) -> ExitCode {
    if audience == Audience::People || !error.use_stderr() {
        // A failure to print is ignored.
        let _ = error.print();
        return ExitCode::from(error.exit_code() as u8);
    }
    let message = usage_text(error);
    let exit_code = error.exit_code() as u8;
    say(audience, exit_code, String::new, || Details {
        message,
        causes: Vec::new(),
        #[cfg(feature = "live")]
        kind: None,
        exit_code,
    })
}

fn say(
    audience: Audience,
    exit_code: u8,
    words: impl FnOnce() -> String,
    details: impl FnOnce() -> Details,
) -> ExitCode {
    let text = match audience {
        Audience::People => format!("error: {}", words()),
        Audience::Programs => {
            let failure = Failure { error: details() };
            // Text and numbers can always be written as JSON.
            serde_json::to_string(&failure).unwrap_or_default()
        }
    };
    // A failure to print is ignored.
    let _ = writeln!(io::stderr(), "{text}");
    ExitCode::from(exit_code)
}
