//! Requests of clients and the answers to them.

use super::Daemon;
use crate::control::answers;
use crate::control::forecast::Outlook;
use crate::control::lookups::{Lookup, Question};
use crate::control::setup::Viewer;
use crate::job::{Requester, Scope};
use crate::store::Query;
use crate::wire::{
    Answer, ClientGone, JobLine, PROTOCOL, Refusal, RefusalKind, Reply, ReplyTo, Request, Status,
};
use busbar_core::units::Instant;

/// The largest number of lines of history in one answer.
const MOST_LINES: u32 = 10_000;

/// An answer that is sent at the end of the cycle.
pub(super) enum Pending {
    /// This reply, once the changes are written.
    Written(Reply),
    /// The state after the changes are written.
    WrittenAndSeen(Request, Viewer),
    /// The state at the end of the cycle.
    Seen(Request, Viewer),
}

impl Daemon {
    /// Handles a request. Returns what to answer at the end of the cycle, unless another thread
    /// answers.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        request: Request,
        peer: Requester,
        reply: &ReplyTo,
        gone: &ClientGone,
    ) -> Option<Pending> {
        let controller = &mut self.controller;
        let viewer = controller.setup().viewer(peer);
        let each = |jobs: Vec<u64>, mut does: Box<dyn FnMut(u64) -> Result<(), Refusal> + '_>| {
            let answer = |job| Answer { job, refusal: does(job).err(), asked: false };
            Some(Pending::Written(Reply::Done(jobs.into_iter().map(answer).collect())))
        };
        match request {
            Request::Submit(submission) => {
                let store = &self.store;
                let succeeded = |job| store.succeeded(job).ok().flatten();
                let submitted = match (self.engine.refuses_jobs(), peer.owner()) {
                    (Some(why), _) => {
                        let message = why.to_owned();
                        Err(Refusal { kind: RefusalKind::Impossible, message })
                    }
                    (None, Some(owner)) => controller.submit(now, owner, *submission, &succeeded),
                    (None, None) => Err(Refusal {
                        kind: RefusalKind::Forbidden,
                        message: "a job needs a user; authenticate with a token or the socket"
                            .to_owned(),
                    }),
                };
                let answer = match submitted {
                    Ok(job) => {
                        let remark = controller.advice(job);
                        Reply::Submitted { job, remark }
                    }
                    Err(refusal) => Reply::Error(refusal),
                };
                Some(Pending::Written(answer))
            }
            Request::Cancel { jobs } => {
                let answer = |job| {
                    let refusal = controller.cancel(now, peer, job).err();
                    let asked = refusal.is_none() && controller.is_running(job);
                    Answer { job, refusal, asked }
                };
                Some(Pending::Written(Reply::Done(jobs.into_iter().map(answer).collect())))
            }
            Request::Hold { jobs } => each(jobs, Box::new(|job| controller.hold(now, peer, job))),
            Request::Release { jobs } => {
                each(jobs, Box::new(|job| controller.release(now, peer, job)))
            }
            Request::Budget { set: Some(text) } => Some(match self.set_budget(peer, &text) {
                Ok(()) => Pending::WrittenAndSeen(Request::Budget { set: None }, viewer),
                Err(refusal) => Pending::Written(Reply::Error(refusal)),
            }),
            Request::Limit { of, to } => Some(match self.set_limit(peer, of, &to) {
                Ok(()) => Pending::WrittenAndSeen(Request::Budget { set: None }, viewer),
                Err(refusal) => Pending::Written(Reply::Error(refusal)),
            }),
            Request::Show { job } if !controller.is_present(job) => {
                let question = Question::Show { job, present: Vec::new() };
                self.lookups.run(Lookup { question, viewer, reply: reply.clone() });
                None
            }
            Request::History { job, after, limit } => {
                let limit = limit.unwrap_or(MOST_LINES).min(MOST_LINES);
                let question = Question::History(Query { job, after, limit });
                self.lookups.run(Lookup { question, viewer, reply: reply.clone() });
                None
            }
            Request::Finished(mut query) => {
                // Operators look at all jobs, and users at their own, unless they say otherwise.
                if query.user.is_none() && !query.all && !controller.setup().is_operator(peer) {
                    query.user = peer.user();
                }
                let question = Question::Finished(*query);
                self.lookups.run(Lookup { question, viewer, reply: reply.clone() });
                None
            }
            Request::Usage(query) => {
                let question = Question::Usage(query);
                self.lookups.run(Lookup { question, viewer, reply: reply.clone() });
                None
            }
            Request::Forecast(question) => {
                let request = question.job.as_ref();
                let asked = request.map_or(Ok(()), |job| controller.check_request(job));
                if let Err(refusal) = asked.and_then(|()| self.forecasts.check(peer.user())) {
                    return Some(Pending::Written(Reply::Error(refusal)));
                }
                let outlook = Outlook::of(controller, viewer, now, self.clock.wall_now());
                let most = controller.setup().forecast_time;
                self.forecasts.begin(
                    peer.user(),
                    reply.clone(),
                    gone.clone(),
                    most,
                    question.assumes_nothing(),
                    move |wanted| outlook.forecast(&question, wanted),
                );
                None
            }
            Request::Stop if !controller.setup().is_operator(peer) => {
                Some(Pending::Written(Reply::Error(forbidden("stop the daemon"))))
            }
            Request::Stop => {
                self.is_stopping = true;
                Some(Pending::Written(Reply::Stopping))
            }
            request => Some(Pending::Seen(request, viewer)),
        }
    }

    fn set_budget(&mut self, peer: Requester, text: &str) -> Result<(), Refusal> {
        if !self.controller.setup().is_operator(peer) {
            return Err(forbidden("set the budget"));
        }
        let written = (text != "configured").then(|| text.to_owned());
        let machine = &self.controller.setup().machine;
        let budget = self.budget.set_override(written.as_deref(), machine, &self.clock);
        let budget = budget.map_err(|message| Refusal { kind: RefusalKind::Malformed, message })?;
        tracing::info!(budget = text, user = peer.user(), "budget set");
        self.controller.set_budget(budget, written.is_some());
        self.controller.write_budget(written);
        Ok(())
    }

    /// The same for a part of the machine.
    fn set_limit(&mut self, peer: Requester, of: Scope, text: &str) -> Result<(), Refusal> {
        if !self.controller.setup().is_operator(peer) {
            return Err(forbidden(&format!("set the limit of {of}")));
        }
        let written = (text != "configured").then(|| text.to_owned());
        let machine = &self.controller.setup().machine;
        let budget = self.budget.set_part_override(&of, written.as_deref(), machine, &self.clock);
        let budget = budget.map_err(|message| Refusal { kind: RefusalKind::Malformed, message })?;
        tracing::info!(%of, limit = text, user = peer.user(), "limit set");
        self.controller.set_budget(budget, self.budget.is_overridden());
        self.controller.write_limit(of, written);
        Ok(())
    }

    /// Answers a request about the current state.
    pub(super) fn seen(&mut self, request: &Request, viewer: Viewer) -> Reply {
        let now = self.clock.now();
        let millis = self.clock.walls();
        let wall = |at: Instant| millis(at).div_euclid(1000);
        match request {
            Request::Queue => Reply::Queue(self.controller.queue(viewer, now, &wall)),
            Request::Nodes => Reply::Nodes(self.node_lines()),
            Request::Budget { .. } => Reply::Budget(self.power(&wall)),
            Request::Show { job } => self.show(*job, viewer, now, &wall),
            _ => Reply::Status(Box::new(self.status(now, &wall))),
        }
    }

    /// The lines of the elements of an array that are not over.
    pub(super) fn present_elements(&self, array: u64, viewer: Viewer) -> Vec<JobLine> {
        let (now, millis) = (self.clock.now(), self.clock.walls());
        let wall = |at: Instant| millis(at).div_euclid(1000);
        let line =
            |entry| answers::line_for(viewer, self.controller.line(entry, now, &wall), entry);
        self.controller.elements(array).map(line).collect()
    }

    fn show(&self, job: u64, viewer: Viewer, now: Instant, wall: answers::Wall<'_>) -> Reply {
        let Some(entry) = self.controller.jobs().get(&job) else {
            let message = format!("there is no job {job}, or it has ended");
            return Reply::Error(Refusal { kind: RefusalKind::Unknown, message });
        };
        match self.store.program(job) {
            Ok(Some(program)) => {
                let line = self.controller.line(entry, now, wall);
                Reply::Show(Box::new(answers::details(viewer, entry, line, program, now, wall)))
            }
            Ok(None) | Err(_) => {
                let message = format!("job {job} cannot be read from the file");
                Reply::Error(Refusal { kind: RefusalKind::Unknown, message })
            }
        }
    }

    fn status(&self, now: Instant, wall: answers::Wall<'_>) -> Status {
        let setup = self.controller.setup();
        let mut notices: Vec<String> = self.controller.shortages().map(str::to_owned).collect();
        match self.store.is_in_place() {
            Err(error) => notices.push(format!("no job is started or accepted: {error}")),
            Ok(()) if self.unwritten_since.is_some() => {
                notices.push("the state cannot be written; no job starts until it can".to_owned());
            }
            Ok(()) => (),
        }
        if self.engine.lowered().is_stuck {
            let text = "nothing starts until the nodes whose caps are being lowered have confirmed it, or their \
            leases have ended";
            notices.push(text.to_owned());
        }
        for attempt in &self.unresolved {
            notices.push(format!("the state of job {attempt} is unknown; it counts as running"));
        }
        let ledger = self.controller.scheduler().ledger();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL,
            process: std::process::id(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            policy: setup.decider.spec().to_string(),
            freedoms: setup.decider.spec().wants().iter().map(|it| it.to_string()).collect(),
            engine: self.engine.name().to_owned(),
            machine: setup.machine.name.clone(),
            cluster: self.options.cluster.clone().unwrap_or_else(|| setup.machine.name.clone()),
            nodes: self.controller.node_counts(),
            switched: ledger.switched().all(),
            waiting: self.controller.waiting(),
            running: self.controller.running(),
            unconfirmed: self.pipeline.unfinished(),
            power: self.power(wall),
            since: self.pace.since().div_euclid(1000),
            now,
            cycles: self.pace.cycles().count(),
            longest_cycle: self.pace.cycles().longest(),
            cycle_times: self.pace.cycle_times(),
            engine_pace: self.engine.pace(),
            page: self.page.clone(),
            notices,
            predictions: self.controller.scheduler().predictions(),
            proposal: self.tuner.proposal(setup.decider.spec()).cloned().map(Box::new),
        }
    }
}

fn forbidden(what: &str) -> Refusal {
    let message = format!("only operators may {what}; see 'operators' in the configuration");
    Refusal { kind: RefusalKind::Forbidden, message }
}
