//! Carries out acts that have been written down, and takes in what the engine reports.

use std::error::Error;

use super::{Daemon, MOST_ARRIVALS};
use crate::control::controller::Act;
use crate::engine::{Arrival, EngineError, Launch, Order, Report, Signal, Ticket};
use crate::job::{Allotment, Attempt, array};
use busbar_core::units::Instant;

impl Daemon {
    /// Orders whatever may be ordered, until nothing more can be before the engine answers.
    pub(super) fn act(&mut self, now: Instant) {
        loop {
            let ready = self.pipeline.ready(self.engine.lowered().over);
            if ready.is_empty() {
                return;
            }
            let until = now + self.options.deadline;
            let mut orders = Vec::new();
            for act in ready {
                if let Some(order) = self.order(now, &act) {
                    orders.push((self.pipeline.ordered(act, until), order));
                }
            }
            if !orders.is_empty() {
                // Writing them down may have taken long.
                self.store.lease().ensure();
                self.engine.request(orders);
                self.hear_answers(now);
            }
        }
    }

    /// The order that carries an act out; `None` if there is nothing to wait for.
    fn order(&mut self, now: Instant, act: &Act) -> Option<Order> {
        match act {
            Act::Start { attempt, allotment } => match self.launch(*attempt, allotment.clone()) {
                Ok(launch) => Some(Order::Start(Box::new(launch))),
                Err(error) => {
                    self.not_started(now, *attempt, &error);
                    None
                }
            },
            Act::Set { attempt, allotment, pause, .. } => {
                let (attempt, allotment, pause) = (*attempt, allotment.clone(), *pause);
                Some(Order::Set { attempt, allotment, pause })
            }
            Act::Signal { attempt, signal } => {
                Some(Order::Signal { attempt: *attempt, signal: *signal })
            }
            Act::ResumeAgain { attempt } => {
                Some(Order::Signal { attempt: *attempt, signal: Signal::Resume })
            }
            Act::Forget { attempt } => {
                self.engine.forget(*attempt);
                None
            }
            Act::Dismiss { handle, .. } => {
                self.engine.dismiss(handle);
                None
            }
            // It takes longer than an order may, and until the engine reports it the node counts as on its way.
            &Act::Switch { node, to, expected, .. } => {
                if self.controller.is_to_be(node, to) {
                    tracing::info!(node, ?to, expected_s = expected.secs_f64(), "switching a node");
                    self.engine.switch(node, to, expected);
                }
                None
            }
        }
    }

    /// Takes in what the engine answers to orders. Whatever else it reports has happened after the cycle began, and is
    /// the next one's.
    fn hear_answers(&mut self, now: Instant) {
        for report in self.engine.reports() {
            match report {
                Report::Confirmed { ticket } => self.confirmed(ticket),
                Report::Failed { ticket, error } => self.failed(now, ticket, &error),
                other => self.heard.push(other),
            }
        }
    }

    /// Takes in what the engine reports, and gives up on answers that are overdue.
    pub(super) fn observe(&mut self, now: Instant) {
        let mut reports = std::mem::take(&mut self.heard);
        reports.extend(self.engine.reports());
        let mut arrivals = 0;
        for report in reports {
            arrivals += usize::from(matches!(report, Report::Arrived(_)));
            match report {
                // A long queue is taken in little by little, so that no cycle takes long. Who leaves it has come first.
                Report::Arrived(_) | Report::Gone { .. } if arrivals > MOST_ARRIVALS => {
                    self.heard.push(report);
                }
                Report::Confirmed { ticket } => self.confirmed(ticket),
                Report::Failed { ticket, error } => self.failed(now, ticket, &error),
                Report::Ended { attempt, end, ago } => {
                    tracing::info!(%attempt, ?end, "ended");
                    self.controller.has_ended(now, attempt, end, ago);
                }
                Report::Placed { attempt, nodes } => {
                    if self.controller.placed(now, attempt, &nodes) {
                        self.pipeline.relocate(attempt, &nodes);
                    }
                }
                Report::SetAside { attempt, reason } => {
                    tracing::warn!(%attempt, reason, "has no nodes; it waits");
                    self.controller.set_aside(now, attempt, reason);
                }
                Report::Offered { handle } => self.controller.offered(&handle),
                Report::Notice { text } => {
                    tracing::warn!("{text}");
                    self.controller.notice(now, text);
                }
                Report::OutOfTime { attempt } => self.controller.out_of_time(now, attempt),
                Report::NotBegun { attempt, reason } => self.not_started(now, attempt, &reason),
                Report::Arrived(arrival) => self.arrived(now, *arrival),
                Report::Gone { handle } => self.controller.gone(now, &handle),
                Report::Node { node, state } => {
                    self.unmeasured(node, &state);
                    let name = self.engine.node_name(node);
                    self.controller.node_changed(now, node, name, state);
                }
                Report::Switched { node, to } => {
                    tracing::info!(node, ?to, "a node was switched");
                    let name = self.engine.node_name(node);
                    self.controller.switched(now, node, name, to);
                }
                Report::Measured { node, power } => self.measured(node, power),
                Report::Consumed { attempt, consumption } => {
                    self.consumed(now, attempt, consumption);
                }
            }
        }
        for ticket in self.pipeline.late(now) {
            let Some(act) = self.pipeline.answered(ticket) else { continue };
            // Whoever is waited for is a job.
            let Some(attempt) = act.attempt() else { continue };
            let within = self.options.deadline;
            self.give_up(now, act, &EngineError::Late { attempt, within });
        }
    }

    fn confirmed(&mut self, ticket: Ticket) {
        match self.pipeline.answered(ticket) {
            Some(Act::Start { attempt, allotment }) => {
                tracing::info!(%attempt, power = %allotment.power, "started");
                // It may have got less than it was decided to start with.
                self.controller.confirmed(attempt, &allotment);
            }
            Some(Act::Set { attempt, allotment, .. }) => {
                self.controller.confirmed(attempt, &allotment);
            }
            Some(
                Act::Signal { attempt, signal: Signal::Resume } | Act::ResumeAgain { attempt },
            ) => self.controller.resumed(attempt),
            Some(
                Act::Signal { .. } | Act::Forget { .. } | Act::Dismiss { .. } | Act::Switch { .. },
            )
            | None => (),
        }
    }

    fn failed(&mut self, now: Instant, ticket: Ticket, error: &EngineError) {
        let Some(act) = self.pipeline.answered(ticket) else { return };
        // A job that is over needs no change, unless it is not known whether it is over.
        if let (Act::Set { attempt, allotment, .. }, EngineError::Unknown { .. }) = (&act, error)
            && !self.unresolved.contains(attempt)
        {
            return self.controller.confirmed(*attempt, allotment);
        }
        self.give_up(now, act, error);
    }

    /// An act was not carried out, as far as is known.
    fn give_up(&mut self, now: Instant, act: Act, error: &EngineError) {
        let reason = error_text(error);
        match &act {
            // It may have begun. Until the engine can tell, it counts as running.
            Act::Start { attempt, .. } if matches!(error, EngineError::Late { .. }) => {
                tracing::error!(%attempt, error = reason, "may not have started");
                self.unresolved.push(*attempt);
            }
            // The job is not to blame: it waits for other nodes.
            Act::Start { attempt, .. } if matches!(error, EngineError::Node { .. }) => {
                tracing::warn!(%attempt, error = reason, "not started; it waits again");
                self.controller.never_started(now, *attempt, &reason, false);
            }
            Act::Start { attempt, .. } => self.not_started(now, *attempt, &reason),
            Act::Set { attempt, again, .. } => {
                let is_unclear = matches!(error, EngineError::Late { .. });
                tracing::error!(%attempt, error = reason, "cannot be changed");
                self.controller.failed(now, *attempt, is_unclear || *again);
                let mut undone = vec![act.clone()];
                undone.extend(self.pipeline.withdraw_changes(*attempt));
                if act.frees() {
                    // What it should have freed was promised to those.
                    undone.extend(self.pipeline.withdraw_takers());
                }
                self.undo(now, &undone, &reason, is_unclear);
            }
            Act::Signal { .. } | Act::ResumeAgain { .. }
                if matches!(error, EngineError::Unknown { .. }) => {}
            Act::ResumeAgain { attempt } => {
                tracing::error!(%attempt, error = reason, "may stand still");
                self.controller.not_resumed(now, *attempt);
            }
            Act::Signal { attempt, signal } => {
                tracing::error!(%attempt, ?signal, error = reason, "no signal");
                match signal {
                    Signal::Suspend => {
                        self.controller.not_suspended(now, *attempt);
                        let takers = self.pipeline.withdraw_takers();
                        self.undo(now, &takers, &reason, false);
                    }
                    Signal::Resume => self.controller.not_resumed(now, *attempt),
                    // The daemon repeats it until the job has ended.
                    Signal::Terminate | Signal::Kill => (),
                }
            }
            Act::Forget { .. } | Act::Dismiss { .. } | Act::Switch { .. } => (),
        }
    }

    /// Takes in a job that has come through the engine, or tells the engine why that is not possible.
    fn arrived(&mut self, now: Instant, arrival: Arrival) {
        let handle = arrival.handle.clone();
        match self.controller.arrived(now, arrival) {
            Ok(number) => {
                tracing::info!(handle, number, "arrived");
                if let Some(entry) = self.controller.jobs().get(&number) {
                    self.engine.accepted(&handle, entry.attempt());
                }
            }
            Err(refusal) => {
                tracing::warn!(handle, reason = refusal.message, "cannot be taken in");
                self.engine.refuse(&handle, &refusal.message);
            }
        }
    }

    fn not_started(&mut self, now: Instant, attempt: Attempt, reason: &str) {
        tracing::error!(%attempt, error = reason, "cannot be started; it is held");
        self.controller.never_started(now, attempt, reason, true);
    }

    /// Reverts acts that were not carried out; the first may have been, if that is not clear. An increase that may have
    /// been made, also before a restart, stays, so that it is counted, and is tried again.
    fn undo(&mut self, now: Instant, acts: &[Act], reason: &str, is_first_unclear: bool) {
        let mut undone = Vec::new();
        for (place, act) in acts.iter().enumerate() {
            let is_unclear = place == 0 && is_first_unclear;
            match act {
                Act::Set { attempt, allotment, before, again, .. }
                    if (*again || is_unclear) && allotment.power > before.allotment.power =>
                {
                    // The failure of the first one is recorded already.
                    if place > 0 {
                        self.controller.failed(now, *attempt, false);
                    }
                }
                _ => undone.push(act),
            }
        }
        self.controller.undo(now, &undone, reason);
    }

    /// Carries out those of the unwritten acts that reduce power or end jobs. The database says
    /// that these jobs hold more, so nothing is handed out twice; and a job that fills the disk can
    /// be ended.
    pub(super) fn lower(&mut self, acts: &[Act]) {
        let mut orders = Vec::new();
        for act in acts {
            let order = match act {
                Act::Set { attempt, allotment, before, pause, .. }
                    if allotment.power < before.allotment.power =>
                {
                    let (attempt, allotment, pause) = (*attempt, allotment.clone(), *pause);
                    Order::Set { attempt, allotment, pause }
                }
                Act::Signal { attempt, signal } if *signal != Signal::Resume => {
                    Order::Signal { attempt: *attempt, signal: *signal }
                }
                _ => continue,
            };
            orders.push((self.pipeline.ticket(), order));
        }
        // The answers do not matter: the jobs count at what they had.
        self.engine.request(orders);
    }

    /// All that an engine needs to start a job.
    fn launch(&self, attempt: Attempt, allotment: Allotment) -> Result<Launch, String> {
        let program = self.store.program(attempt.job).map_err(|error| error_text(&error))?;
        let program = program.ok_or_else(|| "its program is unknown".to_owned())?;
        let entry = self.controller.jobs().get(&attempt.job);
        let entry = entry.ok_or_else(|| "it has already ended".to_owned())?;
        // Only root can run jobs as other users.
        let owner = Some(entry.owner).filter(|_| self.controller.setup().only_user.is_none());
        let (output, errors) = program.files(entry);
        let mut environment = program.environment;
        // A job submitted from within an element is not an element.
        environment.retain(|(name, _)| !name.starts_with(array::VARIABLES));
        environment.extend(entry.array.iter().flat_map(|element| element.variables()));
        Ok(Launch {
            attempt,
            command: program.command,
            folder: program.folder,
            environment,
            output,
            errors,
            owner: owner.map(|owner| (owner.user, owner.group)),
            allotment,
            handle: entry.handle.clone(),
            is_free: entry.run().is_some_and(|run| run.unplaced),
        })
    }
}

/// An error with its causes.
fn error_text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
