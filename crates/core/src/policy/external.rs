//! External policies: programs in any language that decide by lines of JSON.
//!
//! `external(./mine)` starts the program once for each run. At every turn it is told what happened since the turn
//! before, on one line, and answers with one line: which jobs start, at which of their operating points. Only what
//! has happened is told, so that a turn costs as much as it has news, however many jobs wait. A turn in which
//! nobody waits is left out, unless the program may change running jobs; its news come with the next one.
//!
//! The ledger stays in charge: what it refuses changes nothing, and the program is told with the next turn. A
//! program that ends, does not answer in time or answers nonsense makes the policy [give up](Decision::GiveUp).
//!
//! This is the one policy with input and output, and it is for simulations alone: a program may take as long as it
//! likes, and nobody can copy it to ask what it would decide.

mod courses;
mod group;
mod process;
mod protocol;
mod spec;

pub use spec::ExternalSpec;

use crate::freedom::Freedoms;
use crate::ledger::Violation;
use crate::machine::Machine;
use crate::model::OperatingPoint;
use crate::policy::{BuildContext, Decision, DropReason, Policy, View};
use crate::units::{JobId, Span, Watts};

use courses::Courses;
use process::{Fault, Program};
use protocol::{Answer, Named, News, Refused};

/// A point for a job that cannot start whatever its point: nobody knows it, or it does not wait.
const NO_POINT: OperatingPoint = OperatingPoint {
    nodes: 0,
    cores: 0,
    cap: Watts::ZERO,
    time: OperatingPoint::SHORTEST,
    power: Watts::ZERO,
};

/// A policy that asks a program.
pub(crate) struct External {
    spec: ExternalSpec,
    machine: Option<Machine>,
    may: Freedoms,
    talk: Talk,
    news: News,
    /// Kept for a program that may change running jobs.
    courses: Option<Courses>,
}

/// How far things have gone with the program.
enum Talk {
    /// It is not started before there is something to decide.
    NotYet,
    Running(Program),
    /// It could not go on.
    Over,
}

impl External {
    /// The policy with these parameters, for a run.
    pub(crate) fn new(spec: ExternalSpec, context: &BuildContext<'_>) -> Self {
        External {
            machine: context.machine.cloned(),
            may: context.freedoms.map_or(spec.wants, |allowed| allowed & spec.wants),
            talk: Talk::NotYet,
            news: News::default(),
            courses: spec.adjusts().then(Courses::default),
            spec,
        }
    }

    /// Whether there is anything that the program could decide.
    fn has_a_choice(&self, view: &View<'_>) -> bool {
        !view.queue.is_empty() || (self.spec.adjusts() && !view.ledger.running().is_empty())
    }

    /// Starts the program and greets it, unless it runs already.
    fn greet(&mut self, view: &View<'_>) -> Result<(), Fault> {
        let Talk::NotYet = self.talk else { return Ok(()) };
        self.talk = Talk::Running(Program::start(&self.spec.command)?);
        let hello = protocol::hello(view, self.machine.as_ref(), self.may, self.spec.limit);
        let line = self.ask(hello)?;
        let ours = protocol::VERSION;
        let theirs = protocol::greeting(&line).map_err(|why| {
            let why =
                format!("{why}; the answer to the first line must be {{\"protocol\": {ours}}}");
            Fault::answer(&line, why)
        })?;
        if theirs != ours {
            return Err(Fault::Version { theirs, ours });
        }
        Ok(())
    }

    fn ask(&mut self, question: Vec<u8>) -> Result<String, Fault> {
        match &mut self.talk {
            Talk::Running(program) => program.ask(question, self.spec.limit),
            // Nobody asks then.
            Talk::NotYet | Talk::Over => Err(Fault::Ended { how: "it does not run".to_owned() }),
        }
    }

    /// Tells the program the news and turns its answer into decisions.
    fn turn(&mut self, view: &View<'_>) -> Result<Vec<Decision>, Fault> {
        self.greet(view)?;
        let question = protocol::turn(view, &mut self.news);
        let line = self.ask(question)?;
        let answer = Answer::parse(&line).map_err(|why| Fault::answer(&line, why))?;
        self.decisions(view, &answer).map_err(|why| Fault::answer(&line, why))
    }

    /// What an answer comes to: first changes, which may free power, then who is dropped, then who starts.
    fn decisions(&mut self, view: &View<'_>, answer: &Answer) -> Result<Vec<Decision>, String> {
        let mut decisions = Vec::new();
        for named in &answer.change {
            let point = point(view, named)?;
            let change = match &mut self.courses {
                Some(courses) => courses.change(view, named.job, point),
                None => None,
            };
            // One that does not run, or that may not be changed, is refused by its name.
            decisions.push(change.unwrap_or(Decision::Change {
                job: named.job,
                point,
                pause: Span::ZERO,
                left: Span::ZERO,
            }));
        }
        for &job in &answer.drop {
            decisions.push(Decision::Drop { job: JobId(job), reason: DropReason::Unsaid });
        }
        for named in &answer.start {
            let point = point(view, named)?;
            if let Some(courses) = &mut self.courses {
                courses.start(view, named.job, point);
            }
            decisions.push(Decision::Start { job: named.job, point });
        }
        decisions.extend(answer.wake().map(Decision::WakeAt));
        Ok(decisions)
    }

    /// Why it gives up: what happened, and what the program had to say about it.
    fn give_up(&mut self, fault: &Fault) -> Decision {
        let last_words = match std::mem::replace(&mut self.talk, Talk::Over) {
            Talk::Running(program) => program.end(),
            Talk::NotYet | Talk::Over => String::new(),
        };
        let why = match last_words.is_empty() {
            true => fault.to_string(),
            false => format!("{fault}; its last output on standard error:\n{last_words}"),
        };
        Decision::GiveUp { why }
    }
}

/// The point that a job is named with. A job that was never submitted, or does not wait or run any more, has none to
/// be looked up: the ledger refuses it by its name.
fn point(view: &View<'_>, named: &Named) -> Result<OperatingPoint, String> {
    let job = named.job;
    if !view.queue.contains(job) && !view.ledger.holds(job) {
        return Ok(NO_POINT);
    }
    let menu = view.menu(job);
    menu.get(named.point).copied().ok_or_else(|| {
        format!("job {} has the points 0 to {}, and no {}", job.0, menu.len() - 1, named.point)
    })
}

impl Policy for External {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        if let Talk::Over = self.talk {
            return;
        }
        self.news.note(view);
        if let Some(courses) = &mut self.courses {
            courses.note(view);
        }
        if !self.has_a_choice(view) {
            return;
        }
        match self.turn(view) {
            Ok(decided) => decisions.extend(decided),
            Err(fault) => decisions.push(self.give_up(&fault)),
        }
    }

    fn refused(&mut self, violation: &Violation) {
        let job = violation.job().map(|job| job.0);
        self.news.refused.push(Refused { job, why: violation.to_string() });
        if let Some(courses) = &mut self.courses {
            courses.refused(violation);
        }
    }

    fn adjusts(&self) -> bool {
        self.spec.adjusts()
    }
}
