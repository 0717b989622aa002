//! The daemon: one loop that observes, decides, writes down, and only then acts.
//!
//! A [cycle](Daemon::cycle) takes in what has happened and what clients ask for, lets the [`Controller`]
//! work out what follows, and commits that to the [`Store`]. Then the engine acts, and clients are
//! answered. If it cannot be written, nothing is done but what makes jobs draw less, clients are told,
//! and what is in memory is made again from the file: the file is the truth.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant as Moment};

use super::answers;
use super::clerk::{Clerk, Errand};
use super::clock::Clock;
use super::controller::{Act, Controller, ControllerError, Turn, WasGood};
use super::engine::{Attempt, Engine, EngineError, Found, Launch, Signal};
use super::feed::Feed;
use super::forecast::Outlook;
use super::job::Owner;
use super::setup::Setup;
use super::socket::Message;
use super::store::{Boot, Query, Store, StoreError};
use super::wire::{Answer, Refusal, RefusalKind, Reply, Request, Status};
use crate::units::{Instant, Span};

mod pace;

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
    feed: Feed,
    rules: Rules,
    /// Attempts of which the engine could not say what became of them.
    unsure: Vec<Attempt>,
    clerk: Clerk,
    pace: Pace,
    is_stopping: bool,
    /// That nothing can be written, since when.
    unwritten_since: Option<Instant>,
}

/// What does not change while a daemon runs.
pub struct Rules {
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

/// The most lines of history that are told at once.
const MOST_LINES: u32 = 10_000;

/// How many old jobs are removed at once.
const MOST_PRUNED: u32 = 200;

/// An answer that has to wait.
enum Pending {
    /// Until what it says is written down.
    Written(Reply),
    /// Until that is written down, and then it says how things are.
    WrittenAndSeen(Request),
    /// Until what happened in this cycle can be seen in it.
    Seen(Request),
}

impl Daemon {
    /// A daemon that goes on with what was written down.
    pub fn begin(
        setup: Setup,
        mut feed: Feed,
        store: Store,
        engine: (&'static str, Box<dyn Engine>),
        rules: Rules,
        clock: Clock,
    ) -> Result<Self, DaemonError> {
        let saved = store.load()?;
        let now = clock.now();
        feed.set_operators(saved.budget.as_deref(), &setup.machine);
        let budget = feed.budget(&clock);
        let clerk = Clerk::begin(store.reader()?);
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
            clerk,
            is_stopping: false,
            unwritten_since: None,
        };
        daemon.controller.began(now);
        daemon.find_jobs(now);
        daemon.controller.say_again();
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

    /// Works until it is told to stop.
    pub fn run(&mut self, inbox: &Receiver<Wake>) -> Result<(), DaemonError> {
        while !self.is_stopping {
            let (mut requests, mut lists) = (Vec::new(), 0);
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
                    Wake::Reload => self.reload(),
                    Wake::Stop => self.is_stopping = true,
                }
                let has_room = requests.len() < MOST_REQUESTS && lists < MOST_LISTS;
                next = match has_room && !self.is_stopping {
                    true => inbox.try_recv().ok(),
                    false => None,
                };
            }
            self.cycle(requests)?;
        }
        Ok(())
    }

    /// How long there is nothing to do, unless something happens.
    fn rest(&self) -> Duration {
        let now = self.clock.now();
        let rest = self.controller.next_deadline().map_or(self.rules.period, |at| at.since(now));
        Duration::from_millis(rest.min(self.rules.period).millis().max(1))
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
            self.controller.set_budget(budget, self.feed.is_an_operators());
        }
        self.controller.advance(now);
        self.find_unsure(now);
        for (attempt, end) in self.engine.ended() {
            tracing::info!(%attempt, ?end, "ended");
            self.controller.ended(now, attempt, end);
        }
        let mut pending = Vec::new();
        for Message { request, peer, reply } in requests {
            if let Some(what) = self.handle(now, request, peer, &reply) {
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
                (Pending::Written(_) | Pending::WrittenAndSeen(_), Err(refusal)) => {
                    Reply::Error(refusal.clone())
                }
                (Pending::Written(answer), Ok(())) => answer,
                // It has ended in this very cycle, and is in the file now.
                (Pending::Seen(Request::Show { job }), _)
                    if !self.controller.jobs().contains_key(&job) =>
                {
                    self.clerk.run(Errand::Show { job, reply });
                    continue;
                }
                (Pending::WrittenAndSeen(request), Ok(())) | (Pending::Seen(request), _) => {
                    self.seen(&request)
                }
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
                    self.controller.say_again();
                }
                Ok(Ok(()))
            }
            Err(error) => {
                if self.unwritten_since.is_none() {
                    tracing::error!(%error, "state cannot be written; nothing is started meanwhile");
                    self.unwritten_since = Some(now);
                }
                self.lower(&acts);
                let message = format!("it could not be written down: {error}; try again later");
                self.start_over(now)?;
                Ok(Err(Refusal { kind: RefusalKind::Unwritten, message }))
            }
        }
    }

    /// Makes the controller anew from what is written down.
    fn start_over(&mut self, now: Instant) -> Result<(), DaemonError> {
        let saved = self.store.load()?;
        let setup = self.controller.setup().clone();
        self.feed.set_operators(saved.budget.as_deref(), &setup.machine);
        let budget = self.feed.budget(&self.clock);
        self.controller = Controller::new(setup, budget, saved, now)?;
        self.find_jobs(now);
        // What could not be written is tried again, but not at once.
        std::thread::sleep(Duration::from_millis(100));
        Ok(())
    }

    /// Does what was written down, in its order.
    fn act(&mut self, now: Instant, acts: &[Act]) {
        for (place, act) in acts.iter().enumerate() {
            match act {
                Act::Start { attempt, allotment } => {
                    let started = self.launch(*attempt, allotment.clone());
                    let started = started.and_then(|launch| {
                        self.engine.start(&launch).map_err(|error| error_text(&error))
                    });
                    match started {
                        Ok(()) => tracing::info!(%attempt, power = %allotment.power, "started"),
                        Err(error) => {
                            tracing::error!(%attempt, error, "cannot be started; it is held");
                            self.controller.never_started(now, *attempt, &error, true);
                        }
                    }
                }
                Act::Set { attempt, allotment, before, pause } => {
                    self.engine.expect_pause(*attempt, *pause);
                    if let Err(error) = self.engine.set(*attempt, allotment)
                        && !matches!(error, EngineError::Unknown { .. })
                    {
                        let reason = error_text(&error);
                        tracing::error!(%attempt, error = reason, "cannot be changed");
                        let frees = allotment.power < before.power
                            || allotment.nodes.len() < before.nodes.len();
                        let undone = if frees { &acts[place..] } else { &acts[place..=place] };
                        self.controller.undo(now, undone, &reason);
                        if frees {
                            self.finish_safe(&acts[place + 1..]);
                            return;
                        }
                    }
                }
                Act::Signal { attempt, signal } => self.signal(*attempt, *signal),
                Act::Forget { attempt } => self.engine.forget(*attempt),
            }
        }
    }

    /// Of acts that are not carried out, those that can do no harm are.
    fn finish_safe(&mut self, acts: &[Act]) {
        for act in acts {
            match act {
                Act::Signal { attempt, signal } if *signal != Signal::Resume => {
                    self.signal(*attempt, *signal);
                }
                Act::Forget { attempt } => self.engine.forget(*attempt),
                _ => (),
            }
        }
    }

    /// Of acts that could not be written down, those that make jobs draw less, or end. The file says that
    /// they draw more, so nobody else gets what they give back; and whoever fills the disk can be ended.
    fn lower(&mut self, acts: &[Act]) {
        for act in acts {
            match act {
                Act::Set { attempt, allotment, before, .. } if allotment.power < before.power => {
                    if let Err(error) = self.engine.set(*attempt, allotment) {
                        tracing::error!(%attempt, %error, "cannot be changed");
                    }
                }
                Act::Signal { attempt, signal } if *signal != Signal::Resume => {
                    self.signal(*attempt, *signal);
                }
                _ => (),
            }
        }
    }

    fn signal(&mut self, attempt: Attempt, signal: Signal) {
        match self.engine.signal(attempt, signal) {
            Ok(()) | Err(EngineError::Unknown { .. }) => (),
            Err(error) => tracing::error!(%attempt, ?signal, %error, "no signal"),
        }
    }

    /// All that an engine needs to start a job.
    fn launch(
        &self,
        attempt: Attempt,
        allotment: super::engine::Allotment,
    ) -> Result<Launch, String> {
        let program = self.store.program(attempt.job).map_err(|error| error_text(&error))?;
        let program = program.ok_or_else(|| "nobody knows what it is to do".to_owned())?;
        let owner = self.controller.jobs().get(&attempt.job).map(|entry| entry.owner);
        // Only root can be somebody else.
        let owner = owner.filter(|_| self.controller.setup().only_user.is_none());
        let (output, errors) = program.files(attempt.job);
        Ok(Launch {
            attempt,
            command: program.command,
            folder: program.folder,
            environment: program.environment,
            output,
            errors,
            owner: owner.map(|owner| (owner.user, owner.group)),
            allotment,
        })
    }

    /// Does what a client asks for, or says what the answer waits for.
    fn handle(
        &mut self,
        now: Instant,
        request: Request,
        peer: Owner,
        reply: &Sender<Reply>,
    ) -> Option<Pending> {
        let controller = &mut self.controller;
        let each = |jobs: Vec<u64>, mut does: Box<dyn FnMut(u64) -> Result<(), Refusal> + '_>| {
            let answer = |job| Answer { job, refusal: does(job).err() };
            Some(Pending::Written(Reply::Done(jobs.into_iter().map(answer).collect())))
        };
        match request {
            Request::Submit(submission) => {
                let store = &self.store;
                let over = |job| {
                    store.outcome(job).ok().flatten().map(|outcome| WasGood(outcome.is_good()))
                };
                let answer = match controller.submit(now, peer, *submission, &over) {
                    Ok(job) => {
                        let remark = controller.remark(job).map(str::to_owned);
                        Reply::Submitted { job, remark }
                    }
                    Err(refusal) => Reply::Error(refusal),
                };
                Some(Pending::Written(answer))
            }
            Request::Cancel { jobs } => {
                each(jobs, Box::new(|job| controller.cancel(now, peer, job)))
            }
            Request::Hold { jobs } => each(jobs, Box::new(|job| controller.hold(now, peer, job))),
            Request::Release { jobs } => {
                each(jobs, Box::new(|job| controller.release(now, peer, job)))
            }
            Request::Budget { set: Some(text) } => Some(match self.set_budget(peer, &text) {
                Ok(()) => Pending::WrittenAndSeen(Request::Budget { set: None }),
                Err(refusal) => Pending::Written(Reply::Error(refusal)),
            }),
            Request::Show { job } if !controller.jobs().contains_key(&job) => {
                self.clerk.run(Errand::Show { job, reply: reply.clone() });
                None
            }
            Request::History { job, after, limit } => {
                let limit = limit.unwrap_or(MOST_LINES).min(MOST_LINES);
                let query = Query { job, after, limit };
                self.clerk.run(Errand::History { query, reply: reply.clone() });
                None
            }
            Request::Forecast(question)
                if question.job.as_ref().is_some_and(|job| controller.check_wish(job).is_err()) =>
            {
                let refused =
                    question.job.as_ref().and_then(|job| controller.check_wish(job).err());
                refused.map(|refusal| Pending::Written(Reply::Error(refusal)))
            }
            Request::Forecast(question) => {
                let outlook = Outlook::of(controller, now, self.clock.wall_now());
                let outlook = Box::new(outlook);
                self.clerk.run(Errand::Forecast { outlook, question, reply: reply.clone() });
                None
            }
            Request::Stop if !controller.setup().is_operator(peer) => {
                Some(Pending::Written(Reply::Error(forbidden("stop the daemon"))))
            }
            Request::Stop => {
                self.is_stopping = true;
                Some(Pending::Written(Reply::Stopping))
            }
            request => Some(Pending::Seen(request)),
        }
    }

    fn set_budget(&mut self, peer: Owner, text: &str) -> Result<(), Refusal> {
        if !self.controller.setup().is_operator(peer) {
            return Err(forbidden("set the budget"));
        }
        let written = (text != "configured").then(|| text.to_owned());
        let machine = &self.controller.setup().machine;
        let budget = self.feed.operators(written.as_deref(), machine, &self.clock);
        let budget = budget.map_err(|message| Refusal { kind: RefusalKind::Malformed, message })?;
        tracing::info!(budget = text, user = peer.user, "budget set");
        self.controller.set_budget(budget, written.is_some());
        self.controller.write_budget(written);
        Ok(())
    }

    /// An answer about how things are now.
    fn seen(&self, request: &Request) -> Reply {
        let now = self.clock.now();
        let millis = self.clock.walls();
        let wall = |at: Instant| millis(at).div_euclid(1000);
        match request {
            Request::Queue => Reply::Queue(self.controller.queue(now, &wall)),
            Request::Nodes => Reply::Nodes(self.controller.nodes()),
            Request::Budget { .. } => Reply::Budget(self.controller.power(&wall)),
            Request::Show { job } => self.show(*job, now, &wall),
            _ => Reply::Status(Box::new(self.status(now, &wall))),
        }
    }

    fn show(&self, job: u64, now: Instant, wall: answers::Wall<'_>) -> Reply {
        let Some(entry) = self.controller.jobs().get(&job) else {
            let message = format!("there is no job {job}, or it is over");
            return Reply::Error(Refusal { kind: RefusalKind::Unknown, message });
        };
        match self.store.program(job) {
            Ok(Some(program)) => {
                let line = self.controller.line(entry, now, wall);
                Reply::Show(Box::new(answers::details(entry, line, program, now, wall)))
            }
            Ok(None) | Err(_) => {
                let message = format!("job {job} cannot be read from the file");
                Reply::Error(Refusal { kind: RefusalKind::Unknown, message })
            }
        }
    }

    fn status(&self, now: Instant, wall: answers::Wall<'_>) -> Status {
        let setup = self.controller.setup();
        let mut notices: Vec<String> =
            self.controller.shortage().map(str::to_owned).into_iter().collect();
        if self.unwritten_since.is_some() {
            notices.push("state cannot be written; nothing is started meanwhile".to_owned());
        }
        for attempt in &self.unsure {
            notices
                .push(format!("nobody knows what became of job {attempt}; it counts as running"));
        }
        let ledger = self.controller.roster().ledger();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            process: std::process::id(),
            policy: setup.policy.to_string(),
            engine: self.engine_name.to_owned(),
            machine: setup.machine.name.clone(),
            nodes: (ledger.total_nodes(), ledger.free_nodes()),
            waiting: self.controller.waiting(),
            running: self.controller.running(),
            power: self.controller.power(wall),
            since: self.pace.since().div_euclid(1000),
            now,
            cycles: self.pace.cycles(),
            longest_cycle: self.pace.longest(),
            notices,
        }
    }

    /// Reads the configuration again. What is wrong with it changes nothing.
    fn reload(&mut self) {
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
                tracing::info!(policy = %self.controller.setup().policy, "configuration read again");
            }
            Err(error) => {
                tracing::error!(error, "the new configuration cannot be used; the old one stays");
                self.controller.notice(now, format!("configuration not reloaded: {error}"));
            }
        }
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
            Ok(_) => (),
            Err(error) => tracing::warn!(%error, "old jobs cannot be removed"),
        }
    }

    /// Gives everything back in good order. Jobs run on.
    pub fn close(self) -> Result<(), DaemonError> {
        let Daemon { store, clerk, .. } = self;
        clerk.close();
        Ok(store.close()?)
    }
}

fn forbidden(what: &str) -> Refusal {
    let message = format!("only operators may {what}; see 'operators' in the configuration");
    Refusal { kind: RefusalKind::Forbidden, message }
}

/// An error with the reasons behind it.
fn error_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
