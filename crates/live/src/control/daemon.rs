//! The daemon's loop: it observes, decides, writes its decisions down, and only then acts.
//!
//! A [cycle](Daemon::cycle) takes in what has happened and what clients ask for, lets the
//! [`Controller`] decide, and commits the result to the [`Store`]. Then the engine acts and clients are
//! answered. If the commit fails, only acts that reduce power are carried out, clients are told, and
//! the controller is rebuilt from the database, which is the truth.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant as Moment};

use super::active_budget::ActiveBudget;
use super::clock::Clock;
use super::controller::{Controller, ControllerError, Turn};
use super::forecast::RunningForecasts;
use super::lookups::{Lookup, LookupThread, Question};
use super::setup::Setup;
use super::tuning::Tuner;
use crate::engine::{Consumption, Engine, EngineError, Found, Measurement, Report};
use crate::host::service::Service;
use crate::job::{Attempt, End, Entry, Phase};
use crate::store::{Boot, Saved, Store, StoreError};
use crate::wire::{Message, Refusal, RefusalKind, Reply, Request};
use busbar_core::units::{Instant, Span};

mod acts;
mod clients;
mod consumed;
mod measured;
mod pace;
mod pipeline;
mod proposals;

use clients::Pending;
use consumed::Recorder;
use pace::Pace;
use pipeline::Pipeline;

/// What wakes the loop up.
pub(crate) enum Wake {
    /// A client asks for something.
    Request(Message),
    /// A job may have ended.
    Nudge,
    /// The configuration is to be read again.
    Reload,
    /// The daemon is to stop.
    Stop,
}

impl From<Message> for Wake {
    fn from(message: Message) -> Self {
        Wake::Request(message)
    }
}

/// Why a daemon cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The jobs cannot be managed.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// Nodes are to be switched off by an engine that cannot do that.
    #[error("{}", CANNOT_SWITCH)]
    CannotSwitch,
}

/// Why nodes cannot be switched off.
const CANNOT_SWITCH: &str = "switch_off: this engine cannot switch nodes; leave the key out, or restart the \
daemon with another engine";

/// Reads the configuration again, and returns the new setup and budget, where so many nodes that are not the daemon's draw from
/// the same budget.
pub type Reload = Box<dyn Fn(u32) -> Result<(Setup, super::schedule::Schedule), String>>;

/// A daemon.
pub struct Daemon {
    controller: Controller,
    store: Store,
    engine: Box<dyn Engine>,
    /// Acts that were written down and are not confirmed.
    pipeline: Pipeline,
    /// How many nodes that are not the daemon's the setup counts with.
    others: u32,
    /// The last measured power of each node.
    measured: BTreeMap<u32, Measurement>,
    /// What the engine reported while a cycle acted.
    heard: Vec<Report>,
    /// What jobs consumed, until their ends are written.
    consumed: Vec<(Attempt, Consumption)>,
    recorder: Option<Recorder>,
    clock: Clock,
    budget: ActiveBudget,
    options: LoopOptions,
    /// Attempts about which the engine could not tell anything yet.
    unresolved: Vec<Attempt>,
    lookups: LookupThread,
    forecasts: RunningForecasts,
    tuner: Tuner,
    pace: Pace,
    service: Service,
    /// The address of the web page, if there is one.
    page: Option<String>,
    is_stopping: bool,
    /// Since when the database could not be written.
    unwritten_since: Option<Instant>,
    /// Whether the loss of the state folder has been reported.
    is_gone: bool,
}

/// Why the surroundings of a daemon are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The regular check.
    Usual,
    /// An operator asked for a reload.
    Asked,
}

/// Options of the loop that do not change while the daemon runs.
pub struct LoopOptions {
    /// The longest sleep.
    pub period: Span,
    /// How long an engine may take to answer an order.
    pub deadline: Span,
    /// How long jobs that are over are kept.
    pub retention: Span,
    /// What people call the cluster, if that is not the name of its machine.
    pub cluster: Option<String>,
    /// The profile database that measured runs are added to, if any.
    pub runs: Option<PathBuf>,
    /// Reads the configuration again.
    pub reload: Reload,
}

/// The largest number of requests in one cycle.
const MOST_REQUESTS: usize = 250;

/// The largest number of requests for all jobs in one cycle; they take longest.
const MOST_LISTS: usize = 4;

/// The largest number of jobs that come through the engine in one cycle.
const MOST_ARRIVALS: usize = 100;

/// The number of rows of old jobs that are removed at once.
const MOST_PRUNED: u32 = 200;

/// The number of 4 KiB pages that are given back to the disk at once.
const MOST_PAGES: u32 = 256;

impl Daemon {
    /// A daemon that continues from the state in the store.
    pub fn begin(
        setup: Setup,
        mut budget: ActiveBudget,
        store: Store,
        engine: Box<dyn Engine>,
        options: LoopOptions,
        clock: Clock,
    ) -> Result<Self, DaemonError> {
        if setup.switch_off.is_some() && !engine.can_switch() {
            return Err(DaemonError::CannotSwitch);
        }
        let saved = store.load()?;
        let done = done(&saved);
        let now = clock.now();
        budget.restore_override(saved.budget.as_deref(), &saved.part_budgets, &setup.machine);
        let limits = budget.budget(&clock);
        let lookups = LookupThread::begin(store.reader()?);
        let mut controller = Controller::new(setup, limits, saved, now)?;
        controller.let_engine_choose(engine.chooses_nodes());
        let mut daemon = Daemon {
            controller,
            store,
            others: engine.others(),
            engine,
            pipeline: Pipeline::default(),
            measured: BTreeMap::new(),
            heard: Vec::new(),
            consumed: Vec::new(),
            recorder: options.runs.clone().map(Recorder::begin),
            pace: Pace::new(clock.wall_now()),
            clock,
            budget,
            options,
            unresolved: Vec::new(),
            lookups,
            forecasts: RunningForecasts::default(),
            tuner: Tuner::default(),
            service: Service::nobody(),
            page: None,
            is_stopping: false,
            unwritten_since: None,
            is_gone: false,
        };
        daemon.recall_use(now)?;
        daemon.controller.began(now);
        daemon.find_jobs(now, done);
        daemon.find_nodes(now);
        daemon.controller.resend_settings();
        Ok(daemon)
    }

    /// Tells a policy with shares what users have used. All of it follows from the jobs that are kept.
    fn recall_use(&mut self, now: Instant) -> Result<(), StoreError> {
        if self.controller.wants_use() {
            self.controller.recall_use(now, &self.store.all_finished()?);
        }
        Ok(())
    }

    /// Asks the engine about the jobs that were running.
    fn find_jobs(&mut self, now: Instant, done: Vec<String>) {
        self.engine.recall(self.controller.handles(), done);
        self.unresolved = self.controller.attempts();
        self.find_unresolved(now);
    }

    /// Nodes were switched off by an engine that could do that. Where this one cannot, they are on: nobody knows of
    /// anything else.
    fn find_nodes(&mut self, now: Instant) {
        if !self.engine.can_switch() {
            self.controller.all_nodes_are_on(now);
        }
    }

    fn find_unresolved(&mut self, now: Instant) {
        for attempt in std::mem::take(&mut self.unresolved) {
            // It may have ended meanwhile.
            if !self.controller.is_running_attempt(attempt) {
                continue;
            }
            let found = self.engine.find(attempt);
            if !found.as_ref().is_ok_and(Found::is_over) {
                self.engine.adopted(attempt, &self.controller.may_have(attempt));
            }
            match found {
                Ok(found) => {
                    match found {
                        // While the database cannot be written this is repeated all the time.
                        Found::Running => tracing::debug!(%attempt, "found running"),
                        _ => tracing::info!(%attempt, ?found, "found"),
                    }
                    self.controller.found(now, attempt, found);
                }
                Err(EngineError::Unclear { .. }) => self.unresolved.push(attempt),
                Err(error) => {
                    // It counts as running until the engine can tell.
                    tracing::error!(%attempt, %error, "not found; it counts as running");
                    self.unresolved.push(attempt);
                }
            }
        }
    }

    /// Says from now on where the web page is.
    pub(crate) fn has_page_at(&mut self, address: Option<String>) {
        self.page = address;
    }

    /// Reports to a service manager from now on.
    pub(crate) fn announce_to(&mut self, service: Service) {
        self.service = service;
        self.service.ready();
    }

    /// Runs until the daemon is told to stop. `look` is called regularly, to check the daemon's
    /// surroundings, and after each reload.
    pub(crate) fn run(
        &mut self,
        inbox: &Receiver<Wake>,
        mut look: impl FnMut(Look),
    ) -> Result<(), DaemonError> {
        while !self.is_stopping {
            let (mut requests, mut lists, mut is_asked) = (Vec::new(), 0, false);
            let mut next = match self.controller.is_clean() && self.heard.is_empty() {
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
        // No client waits for a forecast that will not come.
        self.forecasts.give_up();
        Ok(())
    }

    /// Reports if the state was removed, even if there is nothing to be written.
    fn look_at_state(&mut self) {
        let gone = self.store.is_in_place().err();
        if let Some(error) = gone.as_ref().filter(|_| !self.is_gone) {
            tracing::error!(%error, "nothing is started or accepted");
        }
        self.is_gone = gone.is_some();
    }

    /// How long to sleep unless something happens.
    fn rest(&self) -> Duration {
        let now = self.clock.now();
        let rest = self.next_deadline().map_or(self.options.period, |at| at.since(now));
        let rest = Duration::from_millis(rest.min(self.options.period).millis().max(1));
        let rest = rest.min(self.store.lease().longest_rest());
        self.service.longest_rest().map_or(rest, |longest| rest.min(longest))
    }

    /// The next time at which a cycle is due even if nothing happens, for callers that call
    /// [cycle](Daemon::cycle) themselves instead of run.
    pub fn next_deadline(&self) -> Option<Instant> {
        if !self.heard.is_empty() {
            return Some(self.clock.now());
        }
        let report = self.engine.next_report().map(|within| self.clock.now() + within);
        let deadlines = [self.controller.next_deadline(), self.pipeline.next_deadline(), report];
        deadlines.into_iter().flatten().min()
    }

    /// One cycle: observe, decide, write, act, and answer.
    pub fn cycle(&mut self, requests: Vec<Message>) -> Result<(), DaemonError> {
        let begun = Moment::now();
        self.store.lease().ensure();
        let now = self.clock.now();
        if let Some(budget) = self.budget.renewed(&self.clock) {
            self.controller.set_budget(budget, self.budget.is_overridden());
        }
        self.controller.advance(now);
        self.find_unresolved(now);
        self.engine.renew();
        let base = self.controller.base_power();
        let limit = self.controller.budget().at(now).limited();
        self.engine.limit(limit.map(|limit| limit.saturating_sub(base)));
        self.observe(now);
        self.count_others();
        self.act(now);
        self.tune(now);
        let mut pending = Vec::new();
        for Message { request, peer, reply, gone } in requests {
            if let Some(what) = self.handle(now, request, peer, &reply, &gone) {
                pending.push((reply, what));
            }
        }
        self.controller.set_engine_stuck(self.engine.lowered().is_stuck);
        self.controller.turn(now)?;
        if self.is_stopping {
            self.controller.stopped(now);
        }
        let written = self.write_and_act(now)?;
        for (reply, what) in pending {
            let answer = match (what, &written) {
                // The daemon stops even if that could not be recorded.
                (Pending::Written(Reply::Stopping), _) => Reply::Stopping,
                (Pending::Written(_) | Pending::WrittenAndSeen(..), Err(refusal)) => {
                    Reply::Error(refusal.clone())
                }
                (Pending::Written(answer), Ok(())) => answer,
                // The job has ended in this cycle and is in the database now, or it is an array
                // with elements there.
                (Pending::Seen(Request::Show { job }, viewer), _)
                    if !self.controller.jobs().contains_key(&job) =>
                {
                    let present = self.present_elements(job, viewer);
                    let question = Question::Show { job, present };
                    self.lookups.run(Lookup { question, viewer, reply });
                    continue;
                }
                (Pending::WrittenAndSeen(request, viewer), Ok(()))
                | (Pending::Seen(request, viewer), _) => self.seen(&request, viewer),
            };
            // The client may be gone.
            let _ = reply.send(answer);
        }
        self.record_runs();
        self.explain(now);
        self.prune(now);
        self.pace.note(begun.elapsed());
        Ok(())
    }

    /// Tells the engine now and then why jobs wait.
    fn explain(&mut self, now: Instant) {
        if self.pace.is_time_to_explain(now) {
            let wall = self.clock.wall_now().div_euclid(1000);
            let expected = self.forecasts.expected_starts();
            let is_to_come = |number: u64| expected.get(&number).copied().filter(|at| *at > wall);
            self.engine.explain(self.controller.waits_elsewhere(is_to_come));
        }
    }

    /// Writes the controller's changes and carries out its acts. If writing fails, the controller
    /// is rebuilt from the database.
    fn write_and_act(&mut self, now: Instant) -> Result<Result<(), Refusal>, DaemonError> {
        if self.controller.is_clean() {
            return Ok(Ok(()));
        }
        let stamp = self.clock.stamp();
        let Turn { mut batch, acts } = self.controller.take(now, stamp.wall);
        batch.boot = Some(Boot { id: stamp.boot, origin: stamp.origin });
        match self.store.commit(&batch) {
            Ok(()) => {
                let unstarted = self.pipeline.extend(acts, self.engine.lowered().begun);
                for attempt in unstarted {
                    let reason = "its power is no longer available";
                    self.controller.never_started(now, attempt, reason, false);
                }
                self.act(now);
                if let Some(since) = self.unwritten_since.take() {
                    tracing::warn!(
                        for_ms = now.since(since).millis(),
                        "the state can be written again"
                    );
                    // Some jobs were made to draw less than the database says.
                    self.controller.resend_settings();
                }
                Ok(Ok(()))
            }
            Err(error) => {
                if self.unwritten_since.is_none() {
                    tracing::error!(%error, "the state cannot be written; no job starts until it can");
                    self.unwritten_since = Some(now);
                }
                self.lower(&acts);
                let message = match error {
                    StoreError::Gone { .. } => format!("the state could not be written: {error}"),
                    _ => format!("the state could not be written: {error}; try again later"),
                };
                self.start_over(now)?;
                Ok(Err(Refusal { kind: RefusalKind::Unwritten, message }))
            }
        }
    }

    /// Rebuilds the controller from the database.
    fn start_over(&mut self, now: Instant) -> Result<(), DaemonError> {
        let saved = self.store.load()?;
        let done = done(&saved);
        let setup = self.controller.setup().clone();
        self.budget.restore_override(saved.budget.as_deref(), &saved.part_budgets, &setup.machine);
        let budget = self.budget.budget(&self.clock);
        self.controller = Controller::new(setup, budget, saved, now)?;
        self.controller.let_engine_choose(self.engine.chooses_nodes());
        self.recall_use(now)?;
        self.pipeline.clear();
        self.find_jobs(now, done);
        self.find_nodes(now);
        // Not tried again at once.
        std::thread::sleep(Duration::from_millis(100));
        Ok(())
    }

    /// Reads the configuration again. If it is wrong, nothing changes.
    fn reload(&mut self) {
        self.service.reloading();
        let now = self.clock.now();
        let done = (self.options.reload)(self.others).and_then(|(setup, schedule)| {
            if setup.switch_off.is_some() && !self.engine.can_switch() {
                return Err(CANNOT_SWITCH.to_owned());
            }
            let mut active = self.budget.with(schedule, &setup.machine);
            let budget = active.budget(&self.clock);
            self.controller.set_up(setup, budget, now).map_err(|error| error.to_string())?;
            self.recall_use(now).map_err(|error| error.to_string())?;
            self.budget = active;
            Ok(())
        });
        match done {
            Ok(()) => {
                tracing::info!(policy = %self.controller.setup().decider.spec(), "configuration reloaded");
            }
            Err(error) => {
                tracing::error!(
                    error,
                    "the new configuration is invalid; the old one stays in force"
                );
                self.controller.notice(now, format!("configuration not reloaded: {error}"));
            }
        }
        self.service.ready();
    }

    /// Sets aside what nodes may draw that are not the daemon's, if their number has changed.
    fn count_others(&mut self) {
        let others = self.engine.others();
        if others != self.others {
            tracing::warn!(others, "the number of nodes that are not Busbar's has changed");
            self.others = others;
            self.reload();
        }
    }

    /// Removes some of the jobs that have been over for long.
    fn prune(&mut self, now: Instant) {
        if !self.pace.is_time_to_prune(now) || self.unwritten_since.is_some() {
            return;
        }
        let before =
            Instant::from_millis(now.millis().saturating_sub(self.options.retention.millis()));
        match self.store.prune(before, MOST_PRUNED) {
            Ok(removed) if removed == MOST_PRUNED => self.pace.prune_again(),
            Ok(_) => self.shrink(),
            Err(error) => tracing::warn!(%error, "old jobs cannot be removed"),
        }
    }

    /// Gives back some of the space that old jobs took.
    fn shrink(&mut self) {
        match self.store.shrink(MOST_PAGES) {
            Ok(true) => self.pace.prune_again(),
            Ok(false) => (),
            Err(error) => tracing::warn!(%error, "the state file cannot be shrunk"),
        }
    }

    /// Closes the daemon properly. Jobs run on.
    pub fn close(self) -> Result<(), DaemonError> {
        let Daemon { store, lookups, forecasts, tuner, recorder, .. } = self;
        forecasts.give_up();
        tuner.give_up();
        lookups.close();
        if let Some(recorder) = recorder {
            recorder.close();
        }
        Ok(store.close()?)
    }
}

/// The jobs that came through the engine and have run to their ends, the latest ones.
fn done(saved: &Saved) -> Vec<String> {
    let has_run = |entry: &&Entry| match &entry.phase {
        Phase::Over(outcome) => matches!(outcome.how, Some(End::Exited(_))),
        Phase::Waiting | Phase::Running(_) => false,
    };
    saved.past.iter().filter(has_run).filter_map(|entry| entry.handle.clone()).collect()
}
