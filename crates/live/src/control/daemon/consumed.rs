//! What jobs were measured to consume: in the history, and as runs in the profile database.

use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::Daemon;
use crate::engine::Consumption;
use crate::job::{Attempt, Phase};
use busbar_core::profile::{Configuration, Origin, Row};
use busbar_core::units::{Instant, Watts};
use busbar_profiles::Store as Profiles;

/// The number of runs that may wait to be written.
const MOST_WAITING: usize = 1000;

/// A thread that adds runs to the profile database, so that the loop does not wait for it.
pub(super) struct Recorder {
    runs: SyncSender<(String, Row)>,
    thread: JoinHandle<()>,
}

impl Recorder {
    pub(super) fn begin(path: PathBuf) -> Self {
        let (runs, inbox) = sync_channel::<(String, Row)>(MOST_WAITING);
        let thread = thread::spawn(move || {
            for (application, row) in inbox {
                let stored = Profiles::open_or_create(&path)
                    .and_then(|mut profiles| profiles.record(&application, row));
                if let Err(error) = stored {
                    tracing::warn!(application, %error, "a measured run is not stored");
                }
            }
        });
        Recorder { runs, thread }
    }

    /// Waits until all runs are written.
    pub(super) fn close(self) {
        drop(self.runs);
        // A panic has been reported already.
        let _ = self.thread.join();
    }
}

impl Daemon {
    /// Takes in what a job consumed. Its end may not be written yet, so this is looked at later.
    pub(super) fn consumed(&mut self, now: Instant, attempt: Attempt, consumption: Consumption) {
        self.controller.consumed(now, attempt.job, &consumption);
        if self.recorder.is_some() {
            self.consumed.push((attempt, consumption));
        }
    }

    /// Stores runs of applications that are known to have succeeded under one cap.
    pub(super) fn record_runs(&mut self) {
        for (attempt, consumption) in std::mem::take(&mut self.consumed) {
            let run = self.run_of(attempt, consumption);
            if let (Some(run), Some(recorder)) = (run, &self.recorder)
                && recorder.runs.try_send(run).is_err()
            {
                tracing::warn!(%attempt, "a measured run is not stored: too many are waiting for the database");
            }
        }
    }

    /// The run that an attempt was, with the name of its application; `None` if it says nothing about one.
    fn run_of(&self, attempt: Attempt, consumption: Consumption) -> Option<(String, Row)> {
        let under = consumption.under?;
        let job = self.store.job(attempt.job).ok()??;
        let application = job.entry.request.application.clone()?;
        let Phase::Over(outcome) = &job.entry.phase else { return None };
        if job.entry.attempts != attempt.number || !outcome.succeeded() {
            return None;
        }
        // A profile's cap is for each socket.
        let sockets = u64::from(self.controller.setup().machine.sockets_per_node.max(1));
        let cap = Watts::from_milliwatts(under.cap.milliwatts() / sockets);
        let nodes = under.nodes.len() as u32;
        let configuration = Configuration { nodes, cores: under.cores, cap };
        let origin = if consumption.is_emulated { Origin::Emulated } else { Origin::Measured };
        let time = outcome.end.since(outcome.start?);
        Some((application, Row { configuration, time, power: consumption.power, origin }))
    }
}
