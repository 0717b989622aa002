//! The daemon: one loop that observes, decides, writes down, and only then acts.
//!
//! A [cycle](Daemon::cycle) takes in what has happened and what clients ask for, lets the [`Controller`]
//! work out what follows, and commits that to the [`Store`]. Then the engine acts, and clients are
//! answered. If it cannot be written, nothing is done but what makes jobs draw less, clients are told,
//! and what is in memory is made again from the file: the file is the truth.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant as Moment};

use super::active_budget::ActiveBudget;
use super::clock::Clock;
use super::controller::{Controller, ControllerError, Turn};
use super::engine::{Attempt, Engine, Found};
use super::forecast::RunningForecasts;
use super::lookups::{Lookup, LookupThread};
use super::service::Service;
use super::setup::Setup;
use super::socket::Message;
use super::store::{Boot, Store, StoreError};
use super::wire::{Refusal, RefusalKind, Reply, Request};
use busbar_core::units::{Instant, Span};

mod acts;
mod clients;
mod pace;

use clients::Pending;
use pace::Pace;

/// What wakes the loop up.
pub enum Wake {
    /// A client asks for something.
    Request(Message),
    /// A job may have ended.
    Nudge,
    /// The configuration is to be read again.
    Reload,
    /// Somebody wants it to stop.
    Stop,
}

impl From<Message> for Wake {
    fn from(message: Message) -> Self {
        Wake::Request(message)
    }
}

/// Why a daemon cannot begin, or go on.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The file.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The jobs.
    #[error(transparent)]
    Controller(#[from] ControllerError),
}

/// Reads the configuration again: other rules, and what may be drawn.
pub type Reload = Box<dyn Fn() -> Result<(Setup, super::schedule::Schedule), String>>;

/// A daemon.
pub struct Daemon {
    controller: Controller,
    store: Store,
    engine: Box<dyn Engine>,
    /// What jobs run on, for people.
    engine_name: &'static str,
    clock: Clock,
    feed: ActiveBudget,
    rules: LoopOptions,
    /// Attempts of which the engine could not say what became of them.
    unsure: Vec<Attempt>,
    lookups: LookupThread,
    forecasts: RunningForecasts,
    pace: Pace,
    service: Service,
    is_stopping: bool,
    /// That nothing can be written, since when.
    unwritten_since: Option<Instant>,
    /// That the state was removed or replaced, as far as was said.
    is_gone: bool,
}

/// Why a daemon looks around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It does so now and then.
    Usual,
    /// An operator wants it to.
    Asked,
}

/// What does not change while a daemon runs.
pub struct LoopOptions {
    /// How long it sleeps at most.
    pub period: Span,
    /// For how long jobs are kept that are over.
    pub retention: Span,
    /// How the configuration is read again.
    pub reload: Reload,
}

/// The most requests that are taken into one cycle,
const MOST_REQUESTS: usize = 250;

/// and the most of them that ask for all jobs, which takes longer than anything else.
const MOST_LISTS: usize = 4;

/// How many rows of old jobs are removed at once,
const MOST_PRUNED: u32 = 200;

/// and how many pages of 4 KiB are given back to the disk at once.
const MOST_PAGES: u32 = 256;

impl Daemon {
    /// A daemon that goes on with what was written down.
    pub fn begin(
        setup: Setup,
        mut feed: ActiveBudget,
        store: Store,
        engine: (&'static str, Box<dyn Engine>),
        rules: LoopOptions,
        clock: Clock,
    ) -> Result<Self, DaemonError> {
        let saved = store.load()?;
        let now = clock.now();
        feed.restore_override(saved.budget.as_deref(), &setup.machine);
        let budget = feed.budget(&clock);
        let lookups = LookupThread::begin(store.reader()?);
        let controller = Controller::new(setup, budget, saved, now)?;
        let mut daemon = Daemon {
            controller,
            store,
            engine_name: engine.0,
            engine: engine.1,
            pace: Pace::new(clock.wall_now()),
            clock,
            feed,
            rules,
            unsure: Vec::new(),
            lookups,
            forecasts: RunningForecasts::default(),
            service: Service::nobody(),
            is_stopping: false,
            unwritten_since: None,
            is_gone: false,
        };
        daemon.controller.began(now);
        daemon.find_jobs(now);
        daemon.controller.resend_settings();
        Ok(daemon)
    }

    /// Asks the engine what became of jobs that were under way.
    fn find_jobs(&mut self, now: Instant) {
        self.unsure = self.controller.attempts();
        self.find_unsure(now);
    }

    fn find_unsure(&mut self, now: Instant) {
        for attempt in std::mem::take(&mut self.unsure) {
            match self.engine.find(attempt) {
                Ok(found) => {
                    match found {
                        // While nothing can be written they are found again all the time.
                        Found::Running => tracing::debug!(%attempt, "found running"),
                        _ => tracing::info!(%attempt, ?found, "found"),
                    }
                    self.controller.found(now, attempt, found);
                }
                Err(error) => {
                    // It may draw what it holds until somebody knows better.
                    tracing::error!(%attempt, %error, "cannot be found; it counts as running");
                    self.unsure.push(attempt);
                }
            }
        }
    }

    /// From now on a service manager is told how it is.
    pub fn announce_to(&mut self, service: Service) {
        self.service = service;
        self.service.ready();
    }

    /// Works until it is told to stop. `look` is called now and then, to see whether all is still there
    /// that is around a daemon, and whenever an operator has the configuration read again.
    pub fn run(
        &mut self,
        inbox: &Receiver<Wake>,
        mut look: impl FnMut(Look),
    ) -> Result<(), DaemonError> {
        while !self.is_stopping {
            let (mut requests, mut lists, mut is_asked) = (Vec::new(), 0, false);
            let mut next = match self.controller.is_clean() {
                true => match inbox.recv_timeout(self.rest()) {
                    Ok(wake) => Some(wake),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => Some(Wake::Stop),
                },
                false => inbox.try_recv().ok(),
            };
            while let Some(wake) = next {
                match wake {
                    Wake::Request(message) => {
                        let asks = &message.request;
                        lists += usize::from(matches!(asks, Request::Queue | Request::Forecast(_)));
                        requests.push(message);
                    }
                    Wake::Nudge => (),
                    Wake::Reload => {
                        self.reload();
                        is_asked = true;
                    }
                    Wake::Stop => self.is_stopping = true,
                }
                let has_room = requests.len() < MOST_REQUESTS && lists < MOST_LISTS;
                next = match has_room && !self.is_stopping {
                    true => inbox.try_recv().ok(),
                    false => None,
                };
            }
            self.cycle(requests)?;
            if self.pace.is_time_to_look(self.clock.now()) || is_asked {
                self.look_at_state();
                look(if is_asked { Look::Asked } else { Look::Usual });
            }
            let (running, waiting) = (self.controller.running(), self.controller.waiting());
            self.service.turned(|| format!("{running} jobs run, {waiting} wait"));
        }
        self.service.stopping();
        // Nobody is to wait for what is still being worked out.
        self.forecasts.give_up();
        Ok(())
    }

    /// Says so if the state was removed, although there is nothing to be written at the moment.
    fn look_at_state(&mut self) {
        let gone = self.store.is_in_place().err();
        if let Some(error) = gone.as_ref().filter(|_| !self.is_gone) {
            tracing::error!(%error, "nothing is started or accepted");
        }
        self.is_gone = gone.is_some();
    }

    /// How long there is nothing to do, unless something happens.
    fn rest(&self) -> Duration {
        let now = self.clock.now();
        let rest = self.controller.next_deadline().map_or(self.rules.period, |at| at.since(now));
        let rest = Duration::from_millis(rest.min(self.rules.period).millis().max(1));
        self.service.longest_rest().map_or(rest, |longest| rest.min(longest))
    }

    /// When there will be something to do although nothing happens: for whoever calls for each
    /// [cycle](Daemon::cycle) instead of letting it [run](Daemon::run).
    pub fn next_deadline(&self) -> Option<Instant> {
        self.controller.next_deadline()
    }

    /// Observes, decides, writes down, acts, and answers.
    pub fn cycle(&mut self, requests: Vec<Message>) -> Result<(), DaemonError> {
        let begun = Moment::now();
        let now = self.clock.now();
        if let Some(budget) = self.feed.renewed(&self.clock) {
            self.controller.set_budget(budget, self.feed.is_overridden());
        }
        self.controller.advance(now);
        self.find_unsure(now);
        for (attempt, end) in self.engine.ended() {
            tracing::info!(%attempt, ?end, "ended");
            self.controller.ended(now, attempt, end);
        }
        let mut pending = Vec::new();
        for Message { request, peer, reply, gone } in requests {
            if let Some(what) = self.handle(now, request, peer, &reply, &gone) {
                pending.push((reply, what));
            }
        }
        self.controller.turn(now)?;
        if self.is_stopping {
            self.controller.stopped(now);
        }
        let written = self.write_and_act(now)?;
        for (reply, what) in pending {
            let answer = match (what, &written) {
                // It does, although that could not be written down.
                (Pending::Written(Reply::Stopping), _) => Reply::Stopping,
                (Pending::Written(_) | Pending::WrittenAndSeen(..), Err(refusal)) => {
                    Reply::Error(refusal.clone())
                }
                (Pending::Written(answer), Ok(())) => answer,
                // It has ended in this very cycle, and is in the file now; or it is an array, of which
                // some are there.
                (Pending::Seen(Request::Show { job }, viewer), _)
                    if !self.controller.jobs().contains_key(&job) =>
                {
                    let present = self.present_elements(job, viewer);
                    self.lookups.run(Lookup::Show { job, viewer, present, reply });
                    continue;
                }
                (Pending::WrittenAndSeen(request, viewer), Ok(()))
                | (Pending::Seen(request, viewer), _) => self.seen(&request, viewer),
            };
            // Who does not wait for the answer need not get it.
            let _ = reply.send(answer);
        }
        self.prune(now);
        self.pace.note(begun.elapsed());
        Ok(())
    }

    /// Writes down what the controller worked out, and does it. If it cannot be written, the controller
    /// is made anew from what was.
    fn write_and_act(&mut self, now: Instant) -> Result<Result<(), Refusal>, DaemonError> {
        if self.controller.is_clean() {
            return Ok(Ok(()));
        }
        let stamp = self.clock.stamp();
        let Turn { mut batch, acts } = self.controller.take(now, stamp.wall);
        batch.boot = Some(Boot { id: stamp.boot, origin: stamp.origin });
        match self.store.commit(&batch) {
            Ok(()) => {
                self.act(now, &acts);
                if let Some(since) = self.unwritten_since.take() {
                    tracing::warn!(
                        for_ms = now.since(since).millis(),
                        "state can be written again"
                    );
                    // Some were made to draw less than the file says.
                    self.controller.resend_settings();
                }
                Ok(Ok(()))
            }
            Err(error) => {
                if self.unwritten_since.is_none() {
                    tracing::error!(%error, "state cannot be written; nothing is started meanwhile");
                    self.unwritten_since = Some(now);
                }
                self.lower(&acts);
                let message = match error {
                    StoreError::Gone { .. } => format!("it could not be written down: {error}"),
                    _ => format!("it could not be written down: {error}; try again later"),
                };
                self.start_over(now)?;
                Ok(Err(Refusal { kind: RefusalKind::Unwritten, message }))
            }
        }
    }

    /// Makes the controller anew from what is written down.
    fn start_over(&mut self, now: Instant) -> Result<(), DaemonError> {
        let saved = self.store.load()?;
        let setup = self.controller.setup().clone();
        self.feed.restore_override(saved.budget.as_deref(), &setup.machine);
        let budget = self.feed.budget(&self.clock);
        self.controller = Controller::new(setup, budget, saved, now)?;
        self.find_jobs(now);
        // What could not be written is tried again, but not at once.
        std::thread::sleep(Duration::from_millis(100));
        Ok(())
    }

    /// Reads the configuration again. What is wrong with it changes nothing.
    fn reload(&mut self) {
        self.service.reloading();
        let now = self.clock.now();
        let done = (self.rules.reload)().and_then(|(setup, schedule)| {
            let mut feed = self.feed.with(schedule);
            let budget = feed.budget(&self.clock);
            self.controller.set_up(setup, budget, now).map_err(|error| error.to_string())?;
            self.feed = feed;
            Ok(())
        });
        match done {
            Ok(()) => {
                tracing::info!(policy = %self.controller.setup().decider.spec(), "configuration read again");
            }
            Err(error) => {
                tracing::error!(error, "the new configuration cannot be used; the old one stays");
                self.controller.notice(now, format!("configuration not reloaded: {error}"));
            }
        }
        self.service.ready();
    }

    /// Removes a few of the jobs that have been over for long.
    fn prune(&mut self, now: Instant) {
        if !self.pace.is_time_to_prune(now) || self.unwritten_since.is_some() {
            return;
        }
        let before =
            Instant::from_millis(now.millis().saturating_sub(self.rules.retention.millis()));
        match self.store.prune(before, MOST_PRUNED) {
            Ok(removed) if removed == MOST_PRUNED => self.pace.prune_again(),
            Ok(_) => self.shrink(),
            Err(error) => tracing::warn!(%error, "old jobs cannot be removed"),
        }
    }

    /// Gives back some of the room that old jobs took.
    fn shrink(&mut self) {
        match self.store.shrink(MOST_PAGES) {
            Ok(true) => self.pace.prune_again(),
            Ok(false) => (),
            Err(error) => tracing::warn!(%error, "the state cannot be made smaller"),
        }
    }

    /// Gives everything back in good order. Jobs run on.
    pub fn close(self) -> Result<(), DaemonError> {
        let Daemon { store, lookups, forecasts, .. } = self;
        forecasts.give_up();
        lookups.close();
        Ok(store.close()?)
    }
}
