//! Waits until no daemon gives a sign of life, and lets Slurm go on by itself then (`slurm.fail = "admit"`).
//!
//! Signs of life are read from the state folder, as a daemon that stands by does, which is much faster. While Slurm is told
//! something, the lock of the daemon is held, so that no daemon begins in between; afterwards it is given back, and a daemon that
//! comes takes over.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use busbar_slurm::setup::OFF_FILE;
use busbar_trust::TrustedFolder;

use super::config::Config;
use super::serve::{ServeError, cluster, state_folder};
use crate::engines::slurm::{Fenced, StandIn, StandInTerms};
use crate::host::service::Service;
use crate::store::{Store, StoreError};

/// How often signs of life are looked for.
const REST: Duration = Duration::from_millis(500);

/// How often jobs are looked at while no daemon is there.
const PAUSE: Duration = Duration::from_secs(10);

/// Guards a cluster until the process ends.
pub fn guard(config: &Config) -> Result<(), ServeError> {
    config.check_guard()?;
    let terms = terms(config)?;
    let state = state_folder(&config.state)?;
    let mut service = Service::from_environment();
    service.ready();
    let patience = Duration::from_millis(config.slurm.fail_after.millis());
    let takeover = Duration::from_millis(config.takeover.millis());
    let mut signs = Signs::of(&state)?;
    let mut stand_in: Option<StandIn> = None;
    let mut next = Instant::now();
    // What was said last, which is not said again at each pass.
    let mut said: Vec<String> = Vec::new();
    tracing::info!(state = %state.path().display(), "guards the cluster");
    loop {
        if signs.are_new(&state)? && stand_in.take().is_some() {
            tracing::info!("a daemon is there again");
        }
        let is_due = match stand_in {
            Some(_) => Instant::now() >= next,
            None => signs.are_missing_for(patience),
        };
        // Whoever holds the lock although Slurm goes on by itself has just begun.
        let lease = match is_due {
            true => Store::take_after(&state, takeover, &signs.last, stand_in.is_none())?,
            false => None,
        };
        if let Some(lease) = lease {
            let cluster = Fenced::new(cluster(config), lease);
            if stand_in.is_none() {
                tracing::warn!("no daemon gives a sign of life; Slurm goes on by itself");
            }
            let stand_in = stand_in.get_or_insert_with(|| StandIn::new(terms.clone()));
            match stand_in.pass(&cluster) {
                Ok(passed) => {
                    if passed.counted + passed.released > 0 {
                        let (counted, released) = (passed.counted, passed.released);
                        tracing::info!(counted, released, "Slurm starts jobs");
                    }
                    let news = passed.notices.iter().filter(|notice| !said.contains(*notice));
                    news.for_each(|notice| tracing::warn!("{notice}"));
                    said = passed.notices;
                }
                Err(error) => {
                    let text = format!("Slurm cannot go on; it is tried again: {error}");
                    if !said.contains(&text) {
                        tracing::error!("{text}");
                    }
                    said = vec![text];
                }
            }
            // Before the lock is given back, so that this is known for its own sign.
            signs = Signs::of(&state)?;
            drop(cluster);
            next = Instant::now() + PAUSE;
        }
        let stands_in = stand_in.is_some();
        service.turned(|| match stands_in {
            true => "Slurm goes on by itself".to_owned(),
            false => "a daemon is there, or was lately".to_owned(),
        });
        sleep(REST);
    }
}

/// What Slurm has to know.
fn terms(config: &Config) -> Result<StandInTerms, ServeError> {
    let machine = config.resolve()?.setup.machine;
    let conf = config.slurm.conf.as_ref().and_then(|conf| conf.parent()).unwrap_or(Path::new("/"));
    Ok(StandInTerms {
        partitions: config.slurm.partitions.clone(),
        licence: config.slurm.licence.clone(),
        node_watts: machine.node().highest.milliwatts().div_ceil(1000),
        switch: conf.join(OFF_FILE),
    })
}

/// The last sign of life of whoever leads.
struct Signs {
    last: String,
    since: Instant,
}

impl Signs {
    fn of(state: &TrustedFolder) -> Result<Self, StoreError> {
        Ok(Signs { last: Store::last_sign(state)?, since: Instant::now() })
    }

    /// Whether somebody has given another sign since the last look.
    fn are_new(&mut self, state: &TrustedFolder) -> Result<bool, StoreError> {
        let now = Signs::of(state)?;
        let is_new = now.last != self.last;
        if is_new {
            *self = now;
        }
        Ok(is_new)
    }

    /// Whether nobody has given a sign for so long. Where nobody ever has, no daemon has ever been there.
    fn are_missing_for(&self, patience: Duration) -> bool {
        !self.last.is_empty() && self.since.elapsed() >= patience
    }
}
