//! The command line, with one file per subcommand.
//!
//! `tables` finds the profiles of applications, `host` keeps what a command prints for another program, `volume` is `--quiet` and `--verbose`,
//! `help` the groups of commands, `sweep` comparisons in shards. `commands` is the commands for other programs.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::Audience;

#[cfg(feature = "live")]
use crate::live::engines::local::{exec, warden};
use crate::policy::{PolicySpec, register};

#[cfg(feature = "agent")]
mod agent;
mod bar;
pub mod commands;
mod compare;
#[cfg(feature = "live")]
mod config;
mod curves;
mod energy;
mod failure;
mod help;
mod host;
mod keeping;
#[cfg(feature = "slurm")]
mod lab;
mod left_out;
mod listed;
#[cfg(feature = "live")]
mod live;
mod load;
mod machine;
mod manual;
mod plan;
mod profile;
mod reproduce;
mod rules;
mod simulate;
#[cfg(feature = "slurm")]
mod site;
#[cfg(feature = "slurm")]
mod slurm;
mod solve;
mod sweep;
mod tables;
mod tariff;
#[cfg(feature = "web")]
mod token;
mod tune;
mod tune_policy;
mod volume;
mod whatif;
#[cfg(feature = "live")]
mod work;
mod workload;
mod wrong_kind;

pub use host::GoesOn;
use host::hosted;
use volume::Volume;

/// Shares a fixed feed of watts among the jobs of an HPC machine.
#[derive(Debug, Parser)]
#[command(name = "busbar", version, about, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Examples:
  busbar compare                  which policy is best, under three budgets
  busbar plan                     how many nodes for these watts
  busbar simulate --budget 80%    one run in full

Exit codes: 0 success; 1 a file could not be read or written, or no daemon was reached;
2 invalid request or file, or no job of a simulation ran.
With --json, errors are JSON.
NO_COLOR switches colours off.")]
struct Cli {
    #[command(flatten)]
    volume: volume::Arguments,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "agent")]
    #[command(subcommand)]
    Agent(agent::Command),
    Compare(Box<compare::Arguments>),
    #[cfg(feature = "live")]
    #[command(subcommand)]
    Config(config::Command),
    Plan(Box<plan::Arguments>),
    Simulate(Box<simulate::Arguments>),
    #[command(name = "whatif")]
    WhatIf(Box<whatif::Arguments>),
    #[cfg(feature = "live")]
    #[command(flatten)]
    Live(live::Command),
    #[command(subcommand)]
    Machine(machine::Command),
    #[command(subcommand)]
    Profile(profile::Command),
    #[command(subcommand)]
    Reproduce(reproduce::Command),
    #[cfg(feature = "slurm")]
    #[command(subcommand)]
    Lab(lab::Command),
    #[cfg(feature = "slurm")]
    #[command(subcommand)]
    Site(site::Command),
    #[cfg(feature = "slurm")]
    #[command(subcommand)]
    Slurm(slurm::Command),
    Solve(solve::Arguments),
    #[cfg(feature = "web")]
    #[command(subcommand)]
    Token(token::Command),
    Tune(tune::Arguments),
    TunePolicy(Box<tune_policy::Arguments>),
    /// Supervise one job; `serve` starts one warden per job
    #[cfg(feature = "live")]
    #[command(hide = true)]
    Warden {
        /// The folder of the job
        folder: std::path::PathBuf,
    },
    /// Become the command of a job, as the job's user; a warden starts this
    #[cfg(feature = "live")]
    #[command(hide = true)]
    JobExec,
    #[cfg(feature = "live")]
    Work(work::Arguments),
    #[command(subcommand)]
    Workload(workload::Command),
    Completions(manual::Completions),
    Man(manual::Man),
}

/// Runs the program with your own policies, which every option for policies then accepts.
pub fn main_with(own: &[PolicySpec]) -> ExitCode {
    match register(own) {
        Ok(()) => main(),
        Err(error) => failure::report(&error.into(), Audience::guess(std::env::args_os().skip(1))),
    }
}

/// Runs the program with the arguments it was given. The exit code is 0 on success, 1 if something could not be read
/// or written, and 2 if the request is invalid. A command that waits for a job returns the job's exit code.
pub fn main() -> ExitCode {
    let line = || std::env::args_os().skip(1);
    let matches = match help::grouped(Cli::command()).try_get_matches() {
        Ok(matches) => matches,
        Err(error) if let Some(advice) = left_out::advice(&error) => {
            return failure::report(&anyhow::Error::msg(advice), Audience::guess(line()));
        }
        Err(error) => return failure::report_usage(&error, Audience::guess(line())),
    };
    let audience = Audience::of(&matches);
    let command = match Cli::from_arg_matches(&matches) {
        Ok(cli) => {
            cli.volume.apply();
            cli.command
        }
        Err(error) => return failure::report_usage(&error, audience),
    };
    match run(command) {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error, audience),
    }
}

/// Runs a command.
fn run(command: Command) -> anyhow::Result<ExitCode> {
    let done = match command {
        #[cfg(feature = "agent")]
        Command::Agent(command) => agent::run(&command),
        Command::Compare(arguments) => compare::run(&arguments),
        #[cfg(feature = "live")]
        Command::Config(command) => config::run(&command),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::WhatIf(arguments) => whatif::run(&arguments),
        Command::Machine(command) => machine::run(&command),
        Command::Profile(command) => profile::run(&command),
        Command::Reproduce(command) => reproduce::run(&command),
        #[cfg(feature = "slurm")]
        Command::Lab(command) => lab::run(&command),
        #[cfg(feature = "slurm")]
        Command::Site(command) => site::run(&command),
        #[cfg(feature = "slurm")]
        Command::Slurm(command) => slurm::run(&command),
        Command::Solve(arguments) => solve::run(&arguments),
        #[cfg(feature = "web")]
        Command::Token(command) => token::run(&command),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::TunePolicy(arguments) => tune_policy::run(&arguments),
        #[cfg(feature = "live")]
        Command::Warden { folder } => warden::watch(&folder).map_err(Into::into),
        #[cfg(feature = "live")]
        Command::JobExec => Err(exec::enter().into()),
        #[cfg(feature = "live")]
        Command::Work(arguments) => work::run(&arguments),
        Command::Workload(command) => workload::run(&command),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
        #[cfg(feature = "live")]
        Command::Live(command) => return live::run(&command),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// Whether the reader of our output closed the pipe.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints a warning on standard error. The run goes on.
fn warn(text: &str) {
    if host::hears(|said| said.warnings.push(text.to_owned())) {
        return;
    }
    if volume::asked() > Volume::Quiet {
        // A failure to print the warning changes nothing.
        let _ = writeln!(io::stderr(), "warning: {text}");
    }
}

/// Prints a note on standard error, with `--verbose` only.
fn note(text: impl FnOnce() -> String) {
    if volume::asked() == Volume::Verbose && !host::is_there() {
        let _ = writeln!(io::stderr(), "note: {}", text());
    }
}

/// Prints to standard output.
fn print(text: &str) -> anyhow::Result<()> {
    if host::hears(|said| said.printed.push_str(text)) {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.context("cannot write to standard output")
}
