//! Carries out acts that have been written down.

use std::error::Error;

use super::Daemon;
use crate::array;
use crate::controller::Act;
use crate::engine::{Allotment, Attempt, EngineError, Launch, Signal};
use busbar_core::units::Instant;

impl Daemon {
    /// Carries out acts in their order.
    pub(super) fn act(&mut self, now: Instant, acts: &[Act]) {
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
                Act::Set { attempt, allotment, before, pause, .. } => {
                    self.engine.expect_pause(*attempt, *pause);
                    let Err(error) = self.set(*attempt, allotment) else {
                        self.controller.confirmed(*attempt, allotment);
                        continue;
                    };
                    let reason = error_text(&error);
                    tracing::error!(%attempt, error = reason, "cannot be changed");
                    self.controller.failed(now, *attempt);
                    let before = &before.allotment;
                    let frees = allotment.power < before.power
                        || allotment.nodes.len() < before.nodes.len();
                    let undone = if frees { &acts[place..] } else { &acts[place..=place] };
                    self.undo(now, undone, &reason);
                    if frees {
                        self.finish_safe(&acts[place + 1..]);
                        return;
                    }
                }
                Act::Signal { attempt, signal } => self.signal(*attempt, *signal),
                Act::Forget { attempt } => self.engine.forget(*attempt),
            }
        }
    }

    /// Changes the nodes or power of a job. A job that is over needs no change.
    fn set(&mut self, attempt: Attempt, allotment: &Allotment) -> Result<(), EngineError> {
        match self.engine.set(attempt, allotment) {
            // It is not known whether this job is over.
            Err(EngineError::Unknown { .. }) if !self.unresolved.contains(&attempt) => Ok(()),
            result => result,
        }
    }

    /// Reverts acts that were not carried out. An increase that may have been made before a restart
    /// is reverted only if the engine can take it back; otherwise it stays and is tried again.
    fn undo(&mut self, now: Instant, acts: &[Act], reason: &str) {
        let mut undone = Vec::new();
        for (place, act) in acts.iter().enumerate() {
            match act {
                Act::Set { attempt, allotment, before, again: true, .. }
                    if allotment.power > before.allotment.power
                        && self.set(*attempt, &before.allotment).is_err() =>
                {
                    // The failure of the first one is recorded already.
                    if place > 0 {
                        self.controller.failed(now, *attempt);
                    }
                }
                _ => undone.push(act),
            }
        }
        self.controller.undo(now, &undone, reason);
    }

    /// Carries out those of the skipped acts that can do no harm.
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

    /// Carries out those of the unwritten acts that reduce power or end jobs. The database says
    /// that these jobs hold more, so nothing is handed out twice; and a job that fills the disk can
    /// be ended.
    pub(super) fn lower(&mut self, acts: &[Act]) {
        for act in acts {
            match act {
                Act::Set { attempt, allotment, before, .. }
                    if allotment.power < before.allotment.power =>
                {
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
    fn launch(&self, attempt: Attempt, allotment: Allotment) -> Result<Launch, String> {
        let program = self.store.program(attempt.job).map_err(|error| error_text(&error))?;
        let program = program.ok_or_else(|| "its program is not known".to_owned())?;
        let entry = self.controller.jobs().get(&attempt.job);
        let entry = entry.ok_or_else(|| "it is over already".to_owned())?;
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
