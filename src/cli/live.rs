//! The commands around the daemon: each asks it one thing over its socket, and shows the answer to
//! people, or to programs as it came.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cli::print;
use crate::live::config::{Config, Environment};
use crate::live::socket::Client;
use crate::live::wire::{Reply, Request};

mod again;
mod budget;
mod change;
mod forecast;
mod history;
mod names;
mod nodes;
mod options;
mod queue;
mod script;
mod serve;
mod show;
mod span;
mod status;
mod submit;
mod table;
mod users;
mod wait;
mod words;

/// The commands that speak to a daemon.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Serve(serve::Arguments),
    Submit(Box<submit::Arguments>),
    Queue(queue::Arguments),
    Show(show::Arguments),
    Cancel(change::Cancel),
    Hold(change::Hold),
    Release(change::Release),
    Nodes(nodes::Arguments),
    Budget(budget::Arguments),
    History(history::Arguments),
    Forecast(Box<forecast::Arguments>),
    Status(status::Status),
    Stop(status::Stop),
}

/// Runs a command. The exit code is not always that of the command: one that waits for a job ends as
/// the job does.
pub(super) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let done = |result: anyhow::Result<()>| result.map(|()| ExitCode::SUCCESS);
    match command {
        Command::Serve(arguments) => done(serve::run(arguments)),
        Command::Submit(arguments) => submit::run(arguments),
        Command::Queue(arguments) => done(queue::run(arguments)),
        Command::Show(arguments) => done(show::run(arguments)),
        Command::Cancel(arguments) => change::cancel(arguments),
        Command::Hold(arguments) => change::hold(arguments),
        Command::Release(arguments) => change::release(arguments),
        Command::Nodes(arguments) => done(nodes::run(arguments)),
        Command::Budget(arguments) => done(budget::run(arguments)),
        Command::History(arguments) => done(history::run(arguments)),
        Command::Forecast(arguments) => done(forecast::run(arguments)),
        Command::Status(arguments) => done(status::run(arguments)),
        Command::Stop(arguments) => done(status::stop(arguments)),
    }
}

/// Which daemon is asked, and for whom the answer is.
#[derive(Debug, Args)]
#[group(skip)]
struct Daemon {
    /// The daemon's socket [default: $BUSBAR_SOCKET, or where 'busbar serve' puts it]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// The answer as JSON
    #[arg(long)]
    json: bool,
}

impl Daemon {
    /// Asks, on a connection of its own, as soon as the daemon is not too busy. A refusal is an error.
    fn ask(&self, request: &Request) -> anyhow::Result<Reply> {
        again::while_busy(|| self.ask_on(&mut self.connect()?, request))
    }

    fn connect(&self) -> anyhow::Result<Client> {
        Ok(Client::connect(&self.socket.clone().unwrap_or_else(default_socket))?)
    }

    /// The same on a connection that is there.
    fn ask_on(&self, client: &mut Client, request: &Request) -> anyhow::Result<Reply> {
        match client.ask(request)? {
            Reply::Error(refusal) => Err(refusal.into()),
            reply => Ok(reply),
        }
    }

    /// Prints an answer: as it came for programs, in words for people.
    fn show<T: Serialize>(
        &self,
        answer: &T,
        in_words: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        match self.json {
            true => print(&(serde_json::to_string_pretty(answer)? + "\n")),
            false => print(&in_words(answer)),
        }
    }
}

/// The daemon said something, but not what was asked.
fn unexpected(reply: &Reply) -> anyhow::Error {
    let text = format!("{reply:?}");
    let start: String = text.chars().take(60).collect();
    anyhow!("the daemon gave an answer to another question: {start}; is it of another version?")
}

/// The socket of the daemon that is meant if none is named: what `$BUSBAR_SOCKET` says, or the usual
/// configuration; where nothing is, that of the whole system.
fn default_socket() -> PathBuf {
    let around = Environment::here();
    if let Some(named) = around.socket {
        return named;
    }
    // What is wrong with a configuration is the daemon's business.
    let own = Config::find(None).unwrap_or_default().socket;
    let system = Path::new("/run/busbar/socket");
    if !own.exists() && system.exists() { system.to_owned() } else { own }
}
