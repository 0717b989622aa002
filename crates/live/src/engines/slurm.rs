//! The engine `slurm`: users submit to Slurm, the daemon decides, and Slurm launches, accounts and cleans up.
//!
//! In mode *steer*, jobs wait in Slurm's queue under a hold that `job_submit.lua` sets. The engine reports each of them
//! when it could start, makes the hold an administrator's, and releases it when the daemon says so, on as many nodes as the
//! daemon says. Slurm chooses the nodes, and the engine reports which they are. A job for which Slurm has none is held again, and
//! offered to the daemon when there may be some (`setbacks`). Only if the policy names the nodes, the job gets exactly these. In
//! mode *admit*, Slurm's own scheduler starts jobs, each with as many licences as it may draw watts; the engine reports what runs,
//! and reserves the licences that the limit does not allow. In both, a job that runs without having been started by the daemon is adopted as it is, and so is work of others on
//! nodes of ours (`others`).
//!
//! A thread asks Slurm every period and carries out orders (`worker`), so that the daemon's loop never
//! waits for Slurm. While slurmctld does not answer, no job starts, and nothing is taken for ended.
//!
//! While no daemon is there at all, somebody may stand in for it in mode steer, and let Slurm go on by itself (`stand_in`).

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use busbar_core::units::Watts;
use busbar_slurm::cluster::Cluster;
use busbar_slurm::model::Node;
use busbar_slurm::setup::Mode;

use crate::engine::{
    Engine, EngineError, EnginePace, Found, NodeInfo, Order, Report, Ticket, Wait,
};
use crate::job::Attempt;

mod dependencies;
mod explained;
mod fenced;
mod known;
mod others;
mod past;
mod requests;
mod reserved;
mod setbacks;
mod stand_in;
mod timed;
mod worker;

#[cfg(test)]
mod tests;

pub(crate) use fenced::Fenced;
pub(crate) use stand_in::{StandIn, StandInTerms};
use worker::Worker;

/// How the engine uses a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Whether the daemon or Slurm starts jobs.
    pub(crate) mode: Mode,
    /// The partitions that are Busbar's; all if none is named.
    pub(crate) partitions: Vec<String>,
    /// The names of the nodes, in the order of their numbers.
    pub(crate) nodes: Vec<String>,
    /// How many nodes Slurm has besides those.
    pub(crate) others: u32,
    /// The licence that stands for watts, in mode `admit`.
    pub(crate) licence: String,
    /// Whether Slurm goes on by itself while no daemon is there, in mode `steer`: the licences are kept as they are to be then, and
    /// jobs that Slurm may start by itself are held first of all.
    pub(crate) fails_to_admit: bool,
    /// How often Slurm is asked what happens.
    pub(crate) period: Duration,
    /// How long Slurm may take to start a job that was released.
    pub(crate) patience: Duration,
    /// Who chooses the nodes of jobs, where the policy does not.
    pub(crate) placing: Placing,
    /// Whether the policy may change the nodes of running jobs. Then jobs that did not announce that they can do that run
    /// on the nodes they ask for.
    pub(crate) resizes: bool,
}

/// Who chooses the nodes of jobs, where the policy does not name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placing {
    /// Slurm, whole ones: it knows best what else a job asks for.
    BySlurm,
    /// The daemon, whole ones: which they are makes a difference to feeds, or they are of several kinds.
    Whole,
    /// The daemon, and jobs have parts of them.
    InParts,
}

impl Placing {
    /// Whether jobs have parts of nodes.
    pub(crate) fn is_in_parts(self) -> bool {
        self == Placing::InParts
    }
}

/// Something for the thread that speaks to Slurm.
enum Work {
    Orders(Vec<(Ticket, Order)>),
    Recall { jobs: Vec<(Attempt, String)>, done: Vec<String> },
    Accepted { handle: String, attempt: Attempt },
    Refuse { handle: String, reason: String },
    Dismiss { handle: String },
    Forget { attempt: Attempt },
    Limit(Option<Watts>),
}

/// What the daemon may ask for at any time.
#[derive(Default)]
struct Shared {
    /// What became of attempts, as far as Slurm has said.
    found: BTreeMap<Attempt, Found>,
    pace: EnginePace,
    others: u32,
    /// Why jobs wait, until the thread that speaks to Slurm takes it in. It is no work, so that it brings no look forward.
    waits: Option<BTreeMap<String, Wait>>,
}

/// Jobs on a Slurm cluster.
pub struct Slurm {
    terms: Terms,
    work: Option<Sender<Work>>,
    reports: Receiver<Report>,
    shared: Arc<Mutex<Shared>>,
    limit: Option<Option<Watts>>,
    thread: Option<JoinHandle<()>>,
}

impl Slurm {
    /// Begins to watch a cluster. `wake` is called when there is something to report, from another thread.
    pub(crate) fn start(
        cluster: impl Cluster + 'static,
        terms: Terms,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let (work, inbox) = channel();
        let (sender, reports) = channel();
        let others = terms.others;
        let shared = Arc::new(Mutex::new(Shared { others, ..Shared::default() }));
        let worker = Worker::new(cluster, terms.clone());
        let (period, told) = (terms.period, shared.clone());
        let thread = thread::Builder::new().name("slurm".to_owned()).spawn(move || {
            serve(worker, &inbox, &sender, &told, period, &wake);
        })?;
        let (work, thread) = (Some(work), Some(thread));
        Ok(Slurm { terms, work, reports, shared, limit: None, thread })
    }

    fn send(&self, work: Work) {
        // The thread ends only after this does.
        if let Some(sender) = &self.work {
            let _ = sender.send(work);
        }
    }
}

/// The shortest pause between two looks while no job runs or is about to. A look is four requests to slurmctld.
const IDLE: Duration = Duration::from_millis(2500);

/// How many nodes are not ours. Slurm may know names of nodes that are not there yet.
pub(crate) fn count_others(nodes: &[Node], is_ours: impl Fn(&str) -> bool) -> u32 {
    let is_other = |node: &&Node| !is_ours(&node.name) && node.state.base != "FUTURE";
    nodes.iter().filter(is_other).count() as u32
}

/// Carries out work as it comes, and looks at the cluster once in a period.
fn serve<C: Cluster>(
    mut worker: Worker<C>,
    inbox: &Receiver<Work>,
    reports: &Sender<Report>,
    shared: &Mutex<Shared>,
    period: Duration,
    wake: &dyn Fn(),
) {
    let mut next = Instant::now();
    loop {
        // Why jobs wait is written while there is nothing else to do, so that no order waits for more than one command.
        let rest = match worker.has_to_explain() {
            true => Duration::ZERO,
            false => next.saturating_duration_since(Instant::now()),
        };
        let work = match inbox.recv_timeout(rest) {
            Ok(work) => Some(work),
            Err(RecvTimeoutError::Timeout) if worker.has_to_explain() => {
                worker.explain();
                continue;
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        match work {
            // Orders come together with others; and what they changed is looked at soon.
            Some(work) => {
                worker.handle([work].into_iter().chain(inbox.try_iter()));
                next = next.min(Instant::now() + period);
            }
            None => {
                let waits = lock(shared).waits.take();
                worker.hear(waits);
                worker.look();
                next = Instant::now() + if worker.is_idle() { period.max(IDLE) } else { period };
            }
        }
        let (found, pace, others) = (worker.found(), worker.pace(), worker.others());
        let mut told = lock(shared);
        (told.found, told.pace, told.others) = (found, pace, others);
        drop(told);
        let heard = worker.take_reports();
        if !heard.is_empty() {
            for report in heard {
                // The engine may be gone already.
                let _ = reports.send(report);
            }
            wake();
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been reported already.
            let _ = thread.join();
        }
    }
}

impl Engine for Slurm {
    fn name(&self) -> &'static str {
        match self.terms.mode {
            Mode::Admit => "slurm, which starts jobs",
            Mode::Steer | Mode::Watch => "slurm",
        }
    }

    fn nodes(&self) -> Vec<NodeInfo> {
        let info = |name: &String| NodeInfo { name: name.clone(), caps: None };
        self.terms.nodes.iter().map(info).collect()
    }

    fn node_name(&self, node: u32) -> Option<String> {
        self.terms.nodes.get(node as usize).cloned()
    }

    fn chooses_nodes(&self) -> bool {
        self.terms.mode == Mode::Steer && self.terms.placing == Placing::BySlurm
    }

    fn request(&mut self, orders: Vec<(Ticket, Order)>) {
        self.send(Work::Orders(orders));
    }

    fn reports(&mut self) -> Vec<Report> {
        self.reports.try_iter().collect()
    }

    fn find(&mut self, attempt: Attempt) -> Result<Found, EngineError> {
        lock(&self.shared).found.get(&attempt).cloned().ok_or(EngineError::Unclear { attempt })
    }

    fn forget(&mut self, attempt: Attempt) {
        self.send(Work::Forget { attempt });
    }

    fn recall(&mut self, jobs: Vec<(Attempt, String)>, done: Vec<String>) {
        lock(&self.shared).found.clear();
        self.send(Work::Recall { jobs, done });
    }

    fn accepted(&mut self, handle: &str, attempt: Attempt) {
        self.send(Work::Accepted { handle: handle.to_owned(), attempt });
    }

    fn refuse(&mut self, handle: &str, reason: &str) {
        self.send(Work::Refuse { handle: handle.to_owned(), reason: reason.to_owned() });
    }

    fn explain(&mut self, waits: BTreeMap<String, Wait>) {
        if self.terms.mode == Mode::Steer {
            lock(&self.shared).waits = Some(waits);
        }
    }

    fn dismiss(&mut self, handle: &str) {
        self.send(Work::Dismiss { handle: handle.to_owned() });
    }

    fn refuses_jobs(&self) -> Option<&'static str> {
        Some(
            "jobs of this cluster are submitted to Slurm; use sbatch, and Busbar takes them from Slurm's queue",
        )
    }

    fn others(&self) -> u32 {
        lock(&self.shared).others
    }

    fn pace(&self) -> Option<EnginePace> {
        Some(lock(&self.shared).pace)
    }

    fn limit(&mut self, limit: Option<Watts>) {
        let has_licences = self.terms.mode == Mode::Admit || self.terms.fails_to_admit;
        if has_licences && self.limit != Some(limit) {
            self.limit = Some(limit);
            self.send(Work::Limit(limit));
        }
    }
}
