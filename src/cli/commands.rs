//! Commands for other programs: they take words, return values, and print nothing.
//!
//! The words are those of the command line, so defaults, checks and error texts exist once. A command returns its
//! output and its warnings. The Python module uses these.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use clap::builder::ArgAction;
use clap::{CommandFactory, Parser};
use serde_json::Value;

use super::failure::{is_of_the_system, usage_text};
use super::host::{GoesOn, Said};
use super::{Cli, Command, compare, hosted, keeping, left_out, machine, simulate, workload};
use crate::calendar::Calendar;
use crate::report::{Table, caps_table, changes_table, jobs_table, power_table, workload_table};

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the program prints after `error: `.
    pub text: String,
    /// Whether something could not be read or written, rather than not be used.
    pub is_of_the_system: bool,
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure { text: format!("{error:#}"), is_of_the_system: is_of_the_system(&error) }
    }
}

/// The result of a command.
#[derive(Clone, Debug)]
pub struct Answer<T> {
    /// The answer as `--json` prints it.
    pub json: String,
    /// The warnings.
    pub warnings: Vec<String>,
    /// Tables and texts besides the answer.
    pub more: T,
}

/// An option of a command, or one of its arguments without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name: that of the option without its hyphens.
    pub name: String,
    /// Whether it is positional.
    pub by_place: bool,
    /// Whether a value follows.
    pub has_value: bool,
    /// Its help text.
    pub help: String,
}

/// The parameters of a command, such as `["machine", "show"]`; nothing if there is no such command.
pub fn parameters(command: &[&str]) -> Option<Vec<Parameter>> {
    let mut found = Cli::command();
    for name in command {
        found = found.find_subcommand(name)?.clone();
    }
    found.build();
    // A file without an option is what --workload takes, and has no name of its own.
    let left_out = ["help", "version", "file"];
    let shown = found.get_arguments().filter(|each| !left_out.contains(&each.get_id().as_str()));
    let parameter = |argument: &clap::Arg| Parameter {
        name: argument.get_long().unwrap_or(argument.get_id().as_str()).to_owned(),
        by_place: argument.is_positional(),
        has_value: !matches!(argument.get_action(), ArgAction::SetTrue),
        help: argument.get_help().map(ToString::to_string).unwrap_or_default(),
    };
    Some(shown.map(parameter).collect())
}

/// Runs a command that has one answer: `plan`, `solve`, `tune`, `tune-policy`, `whatif`, `machine show` or `workload
/// import`.
///
/// # Errors
///
/// The same errors as the program.
pub fn ask(words: &[String], goes_on: GoesOn) -> Result<Answer<()>, Failure> {
    let command = parsed(words, true)?;
    let is_answer = matches!(
        command,
        Command::Plan(_)
            | Command::Solve(_)
            | Command::Tune(_)
            | Command::TunePolicy(_)
            | Command::WhatIf(_)
            | Command::Machine(machine::Command::Show(_))
            | Command::Workload(workload::Command::Import(_))
    );
    if !is_answer {
        let text = format!("'{}' is not a command with one answer", words.join(" "));
        return Err(Failure { text, is_of_the_system: false });
    }
    let (done, said) = hosted(goes_on, || super::run(command));
    done?;
    Ok(answered(said, ()))
}

/// A finished simulation. Its tables are made on demand.
pub struct Simulation {
    done: simulate::Done,
    text: String,
}

impl Simulation {
    /// The text that the command prints.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The calendar that gives its instants dates, if known.
    pub fn calendar(&self) -> Option<&Calendar> {
        self.done.calendar()
    }

    /// The outcome of each job: the columns of `jobs.csv`.
    pub fn jobs(&self) -> Table<'static> {
        self.done.with_run(jobs_table)
    }

    /// Power over time: the columns of `power.csv`.
    pub fn power(&self) -> Table<'static> {
        self.done.with_run(|_, run| power_table(run))
    }

    /// How jobs changed while they ran: the columns of `changes.csv`.
    pub fn changes(&self) -> Table<'static> {
        self.done.with_run(changes_table)
    }

    /// The caps of single processors: the columns of `caps.csv`.
    pub fn caps(&self) -> Table<'static> {
        self.done.with_run(|context, run| caps_table(context, run).into_owned())
    }
}

/// Runs `simulate` with these words after it.
///
/// # Errors
///
/// The same errors as the program.
pub fn simulate(words: &[String], goes_on: GoesOn) -> Result<Answer<Simulation>, Failure> {
    let Command::Simulate(arguments) = parsed(&named("simulate", words), true)? else {
        return Err(wrong_command());
    };
    let (done, said) = hosted(goes_on, || simulate::Done::new(&arguments, true));
    let done = done?;
    let (json, text) = (done.json()?, done.describe(&arguments));
    // There is an answer, so that it is no failure here.
    let warnings = said.warnings.into_iter().chain(done.none_ran()).collect();
    let more = Simulation { done, text };
    Ok(Answer { json, warnings, more })
}

/// A finished comparison.
pub struct Comparison {
    /// The text that the command prints.
    pub text: String,
    /// A row for each run: the columns of `results.csv`.
    pub results: Table<'static>,
}

/// Runs `compare` with these words after it.
///
/// # Errors
///
/// The same errors as the program; if no policy could run, with the reasons.
pub fn compare(words: &[String], goes_on: GoesOn) -> Result<Answer<Comparison>, Failure> {
    let Command::Compare(arguments) = parsed(&named("compare", words), false)? else {
        return Err(wrong_command());
    };
    let (done, said) = hosted(goes_on, || {
        let compared = compare::Compared::new(&arguments)?;
        if compared.checked().is_err() {
            bail!("no policy could run; {}", reasons(&compared.answer).join("; "));
        }
        Ok(compared)
    });
    let compared = done?;
    let json = compared.json()?;
    let none_ran = compared.none_ran().map(str::to_owned);
    let warnings = said.warnings.into_iter().chain(none_ran).collect();
    let more = Comparison { text: said.printed, results: compared.results };
    Ok(Answer { json, warnings, more })
}

/// Why policies could not run, each reason once.
fn reasons(answer: &Value) -> Vec<String> {
    let rankings = answer["rankings"].as_array().into_iter().flatten();
    let cannot =
        rankings.flat_map(|ranking| ranking["cannot_run"].as_array().into_iter().flatten());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut reasons: Vec<String> = cannot
        .map(|each| format!("{}: {}", text(&each["policy"]), text(&each["reason"])))
        .collect();
    reasons.dedup();
    reasons
}

/// The jobs of a workload.
pub struct Jobs {
    /// A row for each job.
    pub jobs: Table<'static>,
    /// The calendar that gives their instants dates, if known.
    pub calendar: Option<Calendar>,
}

/// Runs `workload info` with these words after it.
///
/// # Errors
///
/// The same errors as the program.
pub fn workload(words: &[String], goes_on: GoesOn) -> Result<Answer<Jobs>, Failure> {
    let named = [&["workload".to_owned()], named("info", words).as_slice()].concat();
    let Command::Workload(workload::Command::Info(arguments)) = parsed(&named, true)? else {
        return Err(wrong_command());
    };
    let (done, said) = hosted(goes_on, || workload::look(&arguments));
    let workload = done?;
    let calendar = workload.calendar().ok().cloned();
    Ok(answered(said, Jobs { jobs: workload_table(&workload), calendar }))
}

/// Sets the file of this program, if it is not the running executable but, for example, a Python module. Cached
/// results are valid only for the same file.
pub fn program_is(path: PathBuf) {
    keeping::program_is(path);
}

/// A host that never stops a command.
pub fn always() -> GoesOn {
    Arc::new(|| std::ops::ControlFlow::Continue(()))
}

fn answered<T>(said: Said, more: T) -> Answer<T> {
    Answer { json: said.printed, warnings: said.warnings, more }
}

fn named(command: &str, words: &[String]) -> Vec<String> {
    std::iter::once(command.to_owned()).chain(words.iter().cloned()).collect()
}

/// A command line, with `--json` if its answer is to be read by a program.
fn parsed(words: &[String], json: bool) -> Result<Command, Failure> {
    // What is given by place may follow `--`, so the option comes before it.
    let place = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (before, after) = words.split_at(place);
    let json = json.then(|| "--json".to_owned());
    let line = std::iter::once("busbar".to_owned())
        .chain(before.iter().cloned())
        .chain(json)
        .chain(after.iter().cloned());
    let parsed = Cli::try_parse_from(line).map_err(|error| {
        let text = left_out::advice(&error).unwrap_or_else(|| usage_text(&error));
        Failure { text, is_of_the_system: false }
    });
    Ok(parsed?.command)
}

fn wrong_command() -> Failure {
    Failure { text: "this is another command".to_owned(), is_of_the_system: false }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    /// The answer is that of the program, and its tables are about the same run.
    #[test]
    fn a_simulation_answers_with_figures_and_tables() {
        let line = words("--policy share --budget 60% --jobs ..200");
        let Answer { json, warnings, more } = simulate(&line, always()).unwrap();
        let answer: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(answer["jobs"], 200);
        assert!(warnings.is_empty());
        let jobs = more.jobs();
        assert_eq!(jobs.columns[0].0, "id");
        let crate::report::Cells::Whole(ids) = &jobs.columns[0].1 else { panic!() };
        assert_eq!(ids.len(), 200);
        assert!(more.text().contains("share"));
        let crate::report::Cells::Number(times) = &more.power().columns[0].1 else { panic!() };
        assert!(times.len() > 200);
    }

    #[test]
    fn errors_are_those_of_the_program() {
        let failed = |line| simulate(&words(line), always()).err().unwrap();
        let usage = failed("--policy nobody");
        assert!(usage.text.starts_with("invalid value 'nobody' for '--policy"), "{}", usage.text);
        assert!(!usage.is_of_the_system);
        let missing = failed("--outages=none-such.csv");
        assert!(missing.text.contains("none-such.csv"), "{}", missing.text);
        assert!(missing.is_of_the_system);
        assert!(ask(&words("serve"), always()).is_err());
    }

    #[test]
    fn a_command_can_be_broken_off() {
        let stop = || -> GoesOn { Arc::new(|| ControlFlow::Break(())) };
        let failed = simulate(&words("--jobs ..4000"), stop()).err().unwrap();
        assert_eq!(failed.text, "easy: interrupted");
        let failed = compare(&words("--seeds 1 --no-cache"), stop()).err().unwrap();
        assert!(failed.text.starts_with("stopped before"), "{}", failed.text);
    }

    #[test]
    fn parameters_are_the_options() {
        let names: Vec<String> =
            parameters(&["machine", "show"]).unwrap().into_iter().map(|each| each.name).collect();
        assert_eq!(names, ["machine", "partition", "app", "json"]);
        assert_eq!(parameters(&["nothing"]), None);
    }
}
