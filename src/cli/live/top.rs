//! `busbar top`: the cluster's power, jobs and nodes in a terminal, refreshed continually.

use std::collections::VecDeque;
use std::io::{IsTerminal, stdout};
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde::Serialize;

use super::again::Watcher;
use super::users::Users;
use super::{Daemon, unexpected};
use crate::cli::print;
use crate::live::wire::{JobLine, NodeLine, Reply, Request, State, Status};

mod screen;

/// How many seconds of power are remembered for the curve.
const REMEMBERED: usize = 600;

/// Watch power, jobs and nodes in the terminal
#[derive(Debug, Args)]
#[command(
    after_help = "Keys: q quits, the arrow and page keys scroll, n shows nodes instead of jobs, space pauses.
With --json, it prints status, jobs and nodes once."
)]
pub(in crate::cli) struct Arguments {
    /// Refresh every S seconds
    #[arg(short, long, value_name = "S", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    delay: u64,

    #[command(flatten)]
    daemon: Daemon,
}

/// One look at the daemon, for programs.
#[derive(Serialize)]
struct Look<'a> {
    status: &'a Status,
    jobs: &'a [JobLine],
    nodes: &'a [NodeLine],
}

/// What is shown below the power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tab {
    Jobs,
    Nodes,
}

/// What is known of the daemon, and what of it is shown.
struct View {
    status: Box<Status>,
    jobs: Vec<JobLine>,
    nodes: Vec<NodeLine>,
    /// The power in watts, a value for each look.
    power: VecDeque<u64>,
    tab: Tab,
    scrolled: usize,
    is_paused: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if !arguments.daemon.json && !stdout().is_terminal() {
        bail!("busbar top needs a terminal; 'busbar top --json' prints the same data once");
    }
    let mut watcher = Watcher::of(&arguments.daemon);
    let mut view = View::look(&mut watcher)?;
    if arguments.daemon.json {
        let View { status, jobs, nodes, .. } = &view;
        return print(&(serde_json::to_string_pretty(&Look { status, jobs, nodes })? + "\n"));
    }
    let users = Users::default();
    let delay = Duration::from_secs(arguments.delay);
    let mut terminal = ratatui::try_init()?;
    let mut drawn = || -> anyhow::Result<()> {
        let mut next = Instant::now() + delay;
        loop {
            terminal.draw(|frame| screen::draw(frame, &view, &users))?;
            let rest = next.saturating_duration_since(Instant::now());
            if event::poll(rest)? {
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release && !view.press(key) => {
                        return Ok(());
                    }
                    _ => (),
                }
                continue;
            }
            if !view.is_paused {
                view.look_again(&mut watcher)?;
            }
            next = Instant::now() + delay;
        }
    };
    let result = drawn();
    ratatui::restore();
    result
}

impl View {
    fn look(watcher: &mut Watcher<'_>) -> anyhow::Result<Self> {
        let status = match watcher.ask(&Request::Status)? {
            Reply::Status(status) => status,
            reply => return Err(unexpected(&reply)),
        };
        let (jobs, nodes, power) = (Vec::new(), Vec::new(), VecDeque::new());
        let mut view =
            View { status, jobs, nodes, power, tab: Tab::Jobs, scrolled: 0, is_paused: false };
        view.look_again(watcher)?;
        Ok(view)
    }

    fn look_again(&mut self, watcher: &mut Watcher<'_>) -> anyhow::Result<()> {
        match watcher.ask(&Request::Status)? {
            Reply::Status(status) => self.status = status,
            reply => return Err(unexpected(&reply)),
        }
        match watcher.ask(&Request::Queue)? {
            Reply::Queue(jobs) => self.take(jobs),
            reply => return Err(unexpected(&reply)),
        }
        match watcher.ask(&Request::Nodes)? {
            Reply::Nodes(nodes) => self.nodes = nodes,
            reply => return Err(unexpected(&reply)),
        }
        let power = &self.status.power;
        let counted = power.base.saturating_add(power.held);
        let shown = power.measured.as_ref().map_or(counted, |measured| measured.power);
        if self.power.len() == REMEMBERED {
            self.power.pop_front();
        }
        self.power.push_back(shown.milliwatts().div_ceil(1000));
        Ok(())
    }

    /// Those that run stand before those that wait.
    fn take(&mut self, mut jobs: Vec<JobLine>) {
        jobs.sort_by_key(|job| match job.state {
            State::Starting | State::Running | State::Suspended | State::Ending => 0,
            _ => 1,
        });
        self.jobs = jobs;
    }

    /// The number of rows of what is shown.
    fn rows(&self) -> usize {
        match self.tab {
            Tab::Jobs => self.jobs.len(),
            Tab::Nodes => self.nodes.len(),
        }
    }

    /// Reacts to a key; `false` if it ends the program.
    fn press(&mut self, key: KeyEvent) -> bool {
        let last = self.rows().saturating_sub(1);
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('n') | KeyCode::Tab => {
                self.tab = if self.tab == Tab::Jobs { Tab::Nodes } else { Tab::Jobs };
                self.scrolled = 0;
            }
            KeyCode::Down | KeyCode::Char('j') => self.scrolled += 1,
            KeyCode::Up | KeyCode::Char('k') => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown => self.scrolled += 20,
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(20),
            KeyCode::Home => self.scrolled = 0,
            KeyCode::End => self.scrolled = last,
            _ => (),
        }
        self.scrolled = self.scrolled.min(last);
        true
    }
}

#[cfg(test)]
mod tests;
