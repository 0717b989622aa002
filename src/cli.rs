//! The command line: what was typed, then what it means. One file per subcommand.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

mod bar;
mod belief;
mod compare;
mod curves;
mod energy;
mod keeping;
mod load;
mod machine;
mod manual;
mod plan;
mod profile;
mod reproduce;
mod simulate;
mod solve;
mod tables;
mod tune;
mod workload;

/// Shares a fixed feed of watts among the jobs of an HPC machine.
#[derive(Debug, Parser)]
#[command(version, about, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Examples:
  busbar compare                  which policy is best, under three budgets
  busbar plan                     how many nodes for these watts
  busbar simulate --budget 80%    one run in full

Exit codes: 0 all went well; 1 something could not be read or written; 2 what was asked, or what a
file holds, cannot be used. NO_COLOR switches colours off.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Compare(Box<compare::Arguments>),
    Plan(Box<plan::Arguments>),
    Simulate(Box<simulate::Arguments>),
    #[command(subcommand)]
    Machine(machine::Command),
    #[command(subcommand)]
    Profile(profile::Command),
    #[command(subcommand)]
    Reproduce(reproduce::Command),
    Solve(solve::Arguments),
    Tune(tune::Arguments),
    #[command(subcommand)]
    Workload(workload::Command),
    Completions(manual::Completions),
    Man(manual::Man),
}

/// Runs the program with the arguments it was given. The exit code is 0 if all went well, 1 if
/// something could not be read or written, and 2 if what was asked makes no sense.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Machine(command) => machine::run(&command),
        Command::Profile(command) => profile::run(&command),
        Command::Reproduce(command) => reproduce::run(&command),
        Command::Solve(arguments) => solve::run(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::Workload(command) => workload::run(&command),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // With the reasons behind the error; that it cannot be told changes nothing.
            let _ = writeln!(io::stderr(), "error: {error:#}");
            let cannot =
                error.chain().any(|cause| cause.is::<io::Error>() || cause.is::<rusqlite::Error>());
            ExitCode::from(if cannot { 1 } else { 2 })
        }
    }
}

/// Whoever reads our output may stop when they have seen enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Says something on standard error that a person may want to know. The run goes on.
fn warn(text: &str) {
    // That it cannot be said changes nothing.
    let _ = writeln!(io::stderr(), "warning: {text}");
}

/// Prints to standard output.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.context("cannot write to standard output")
}
