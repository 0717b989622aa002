//! The daemon's commands: each sends one request over the socket, and shows the answer to users, or as
//! JSON to programs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cli::{note, print};
use crate::live::server::config::{Config, Environment};
use crate::live::server::socket::Client;
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
#[cfg(feature = "top")]
mod top;
mod users;
mod wait;
pub(super) mod words;

/// The commands that start or ask a daemon.
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
    #[cfg(feature = "top")]
    Top(top::Arguments),
    Stop(status::Stop),
}

/// Runs a command. A command that waits for a job exits with the job's code.
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
        #[cfg(feature = "top")]
        Command::Top(arguments) => done(top::run(arguments)),
        Command::Stop(arguments) => done(status::stop(arguments)),
    }
}

/// Options of all commands that ask a daemon.
#[derive(Debug, Args)]
#[group(skip)]
struct Daemon {
    /// The daemon's socket [default: $BUSBAR_SOCKET, or the default socket of 'busbar serve']
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

impl Daemon {
    /// Sends a request on a new connection, and repeats it while the daemon is busy. A refusal is
    /// an error.
    fn ask(&self, request: &Request) -> anyhow::Result<Reply> {
        again::while_busy(|| self.ask_on(&mut self.connect()?, request))
    }

    fn connect(&self) -> anyhow::Result<Client> {
        let socket = self.socket.clone().unwrap_or_else(default_socket);
        note(|| format!("connecting to the daemon at {}", socket.display()));
        Ok(Client::connect(&socket)?)
    }

    /// Sends a request on an existing connection.
    fn ask_on(&self, client: &mut Client, request: &Request) -> anyhow::Result<Reply> {
        match client.ask(request)? {
            Reply::Error(refusal) => Err(refusal.into()),
            reply => Ok(reply),
        }
    }

    /// Prints an answer: as JSON for programs, in words for users.
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

/// The error for an answer that does not fit the request.
fn unexpected(reply: &Reply) -> anyhow::Error {
    let text = format!("{reply:?}");
    let start: String = text.chars().take(60).collect();
    anyhow!("the daemon's answer does not fit the request: {start}; is it another version?")
}

/// The default socket: `$BUSBAR_SOCKET`, or that of the default configuration; if there is none,
/// that of the system's daemon.
fn default_socket() -> PathBuf {
    let around = Environment::here();
    if let Some(named) = around.socket {
        return named;
    }
    // Errors in the configuration are reported by the daemon.
    let own = Config::find(None).unwrap_or_default().socket;
    let system = Path::new("/run/busbar/socket");
    if !own.exists() && system.exists() { system.to_owned() } else { own }
}
