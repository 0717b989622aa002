//! Engines whose acts are in force when a call returns.

use super::{Engine, EngineError, Found, Launch, Order, Report, Signal, Ticket};
use crate::job::{Allotment, Attempt, End};
use busbar_core::units::Span;

/// An engine that acts while it is called.
pub trait Immediate: Send {
    /// A description for users.
    fn name(&self) -> &'static str;

    /// Starts an attempt. A failure after that is reported as an [`End`].
    fn start(&mut self, launch: &Launch) -> Result<(), EngineError>;

    /// Changes the caps or nodes of a running job, which is expected to stand still for the pause. When this
    /// returns, the job draws no more than `allotment` says.
    fn set(
        &mut self,
        attempt: Attempt,
        allotment: &Allotment,
        pause: Span,
    ) -> Result<(), EngineError>;

    /// Sends a signal to all processes of a job; processes that could not be reached get it when
    /// [`ended`](Immediate::ended) is called next.
    fn signal(&mut self, attempt: Attempt, signal: Signal) -> Result<(), EngineError>;

    /// Attempts that have ended since the last call.
    fn ended(&mut self) -> Vec<(Attempt, End)>;

    /// Attempts that were started and turned out not to have begun since the last call, for reasons that are not the
    /// jobs'. It is asked after [`ended`](Immediate::ended).
    fn not_begun(&mut self) -> Vec<(Attempt, String)> {
        Vec::new()
    }

    /// Finds out, after a restart, what happened to an attempt. One that did not begin never will.
    fn find(&mut self, attempt: Attempt) -> Result<Found, EngineError>;

    /// Removes what is kept of an attempt that is over and recorded; this may happen later.
    fn forget(&mut self, attempt: Attempt);
}

/// An immediate engine behind the interface of all engines.
pub struct AtOnce<E> {
    engine: E,
    reports: Vec<Report>,
}

impl<E: Immediate + 'static> AtOnce<E> {
    /// The engine for a daemon.
    pub fn boxed(engine: E) -> Box<dyn Engine> {
        Box::new(AtOnce { engine, reports: Vec::new() })
    }

    fn carry_out(&mut self, order: &Order) -> Result<(), EngineError> {
        match order {
            Order::Start(launch) => self.engine.start(launch),
            Order::Set { attempt, allotment, pause } => {
                self.engine.set(*attempt, allotment, *pause)
            }
            Order::Signal { attempt, signal } => self.engine.signal(*attempt, *signal),
        }
    }
}

impl<E: Immediate + 'static> Engine for AtOnce<E> {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn request(&mut self, orders: Vec<(Ticket, Order)>) {
        for (ticket, order) in orders {
            let report = match self.carry_out(&order) {
                Ok(()) => Report::Confirmed { ticket },
                Err(error) => Report::Failed { ticket, error },
            };
            self.reports.push(report);
        }
    }

    fn reports(&mut self) -> Vec<Report> {
        let mut reports = std::mem::take(&mut self.reports);
        let ended = self.engine.ended().into_iter();
        reports.extend(ended.map(|(attempt, end)| Report::Ended { attempt, end, ago: Span::ZERO }));
        let not_begun = self.engine.not_begun().into_iter();
        reports.extend(not_begun.map(|(attempt, reason)| Report::NotBegun { attempt, reason }));
        reports
    }

    fn find(&mut self, attempt: Attempt) -> Result<Found, EngineError> {
        self.engine.find(attempt)
    }

    fn forget(&mut self, attempt: Attempt) {
        self.engine.forget(attempt);
    }
}
