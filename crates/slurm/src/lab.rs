//! A private Slurm on this machine: munge, slurmctld and some slurmds on loopback, each node with an
//! emulated meter and an agent. For tests, demonstrations and documentation; nothing here is for production.
//!
//! Everything is in one folder: [`layout`] says what is where, [`process`] starts and stops processes by
//! their identity, and `packages` installs Slurm where it is missing. The folder knows what was started
//! (`processes.json`), so that a later call stops exactly that. Two labs in two folders do not meet: each
//! has its own key and ports that were free.
//!
//! Root is needed: slurmd starts jobs as their users.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::calls::Act;
use crate::cluster::{Cluster, JOBS_AT_ONCE};
use crate::commands::Commands;
use crate::error::SlurmError;
use crate::model::{Job, JobRef, Node};
use crate::program::Programs;
use crate::rest::Address;
use crate::setup::{self, Mode, Site};
use crate::version::Version;

mod files;
pub mod layout;
pub(crate) mod packages;
pub mod process;

use layout::Layout;
use process::{Processes, Wanted};

/// The name of the controller's process.
pub const CONTROLLER: &str = "slurmctld";

/// What a lab may have besides the usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extras {
    /// slurmrestd, by TCP with tokens.
    pub rest: bool,
    /// MariaDB and slurmdbd, with which a job can change its size more than once.
    pub accounting: bool,
}

/// What a lab is to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The number of nodes without GPUs; with the others, 1 to 1000.
    pub nodes: u32,
    /// The number of nodes with GPUs, which come after them.
    #[serde(default)]
    pub gpu_nodes: u32,
    /// Whether jobs get processors, memory and GPUs of nodes instead of whole nodes.
    #[serde(default)]
    pub is_shared: bool,
    /// How Busbar will work there; decides about `job_submit.lua`.
    pub mode: Mode,
    /// The program `busbar`, which runs the agents; `None` for a lab without agents.
    pub busbar: Option<PathBuf>,
    /// What it has besides.
    pub extras: Extras,
    /// Where another Slurm is installed: a folder with `bin` and `sbin`. `None` for the one of this machine.
    #[serde(default)]
    pub programs: Option<PathBuf>,
}

impl Plan {
    /// All nodes.
    pub fn all_nodes(&self) -> u32 {
        self.nodes.saturating_add(self.gpu_nodes)
    }

    /// Whether a node, counted from 1, has GPUs.
    pub(crate) fn has_gpus(&self, node: u32) -> bool {
        node > self.nodes
    }

    /// Whether nodes are of several kinds, or jobs have parts of them.
    fn has_parts(&self) -> bool {
        self.is_shared || self.gpu_nodes > 0
    }

    /// What its nodes can draw together.
    fn watts(&self) -> u64 {
        (1..=self.all_nodes()).map(|node| u64::from(layout::kind(self, node).watts())).sum()
    }
}

/// What is kept of a lab between calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    plan: Plan,
    /// The port of slurmctld; those of the nodes follow it.
    port: u16,
    /// The version of its Slurm. Labs that were made by older versions of Busbar do not say it, and have Debian's.
    #[serde(default = "debian")]
    version: Version,
}

fn debian() -> Version {
    Version::OLDEST
}

/// Why a lab cannot be started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Who asks is not root.
    #[error(
        "a lab needs root, because slurmd starts jobs as their users; run it with sudo or in a container"
    )]
    NotRoot,
    /// Slurm is not there and cannot be installed.
    #[error("Slurm is not installed and cannot be installed here: {0}")]
    Packages(String),
    /// The lab cannot be as it was asked for.
    #[error("{0}")]
    Unsuitable(String),
    /// A file cannot be read or written.
    #[error("cannot {what} {}", path.display())]
    File {
        /// The attempted action, in words that follow "cannot".
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A process ended or did not become ready.
    #[error("{name} {what}; its log {} ends with:\n{tail}", log.display())]
    Process {
        /// The process.
        name: String,
        /// What happened.
        what: String,
        /// Its log.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
    /// Slurm did not answer as it should.
    #[error(transparent)]
    Slurm(#[from] SlurmError),
}

/// A lab in a folder.
#[derive(Debug)]
pub struct Lab {
    layout: Layout,
    record: Record,
}

/// What a call of [`Lab::up`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Up {
    /// The lab was not there and runs now.
    Started,
    /// Some of it did not run, and does now.
    Repaired,
    /// It ran already.
    Already,
}

/// One process of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Member {
    /// Its name, such as `slurmctld` or `slurmd.n1`.
    pub name: String,
    /// Its number, while it runs.
    pub pid: Option<u32>,
}

impl Lab {
    /// The lab in a folder; `None` if there is none.
    pub fn find(folder: &Path) -> Result<Option<Lab>, LabError> {
        let layout = Layout::new(folder)?;
        let path = layout.record();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => {
                text.map_err(|source| LabError::File { what: "read", path: path.clone(), source })?
            }
        };
        let record = serde_json::from_str(&text).map_err(|error| {
            LabError::Unsuitable(format!(
                "{} cannot be read ({error}); if no process of the lab runs, remove its folder",
                path.display()
            ))
        })?;
        Ok(Some(Lab { layout, record }))
    }

    /// Starts a lab, or what does not run of it, and waits until all nodes are in service. Slurm is
    /// installed if it is missing.
    pub fn up(folder: &Path, plan: &Plan) -> Result<(Lab, Up), LabError> {
        if !rustix::process::geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        if !(1..=1000).contains(&plan.all_nodes()) || plan.nodes == 0 {
            return Err(LabError::Unsuitable(
                "a lab has 1 to 1000 nodes, one of them without GPUs".to_owned(),
            ));
        }
        if plan.is_shared && plan.mode == Mode::Admit {
            return Err(LabError::Unsuitable(
                "in mode admit jobs have whole nodes; leave --shared out, or take mode steer"
                    .to_owned(),
            ));
        }
        match &plan.programs {
            Some(folder) => packages::check(folder, plan.extras)?,
            None => packages::ensure(plan.extras)?,
        }
        let (lab, is_new) = match Lab::find(folder)? {
            Some(lab) => (lab, false),
            None => (Lab::make(folder, plan)?, true),
        };
        let kind = |plan: &Plan| Plan { busbar: None, ..plan.clone() };
        if kind(&lab.record.plan) != kind(plan) {
            let present = &lab.record.plan;
            return Err(LabError::Unsuitable(format!(
                "the lab in {folder} was made with {} nodes, mode {} and its own extras and programs; take it down first: busbar lab down --folder {folder}",
                present.all_nodes(),
                present.mode,
                folder = folder.display()
            )));
        }
        let begun = match lab.start_missing().and_then(|begun| lab.await_nodes().map(|()| begun)) {
            Ok(begun) => begun,
            Err(error) => {
                // Half a new lab is of no use to anybody; the error has the end of the log.
                if is_new {
                    lab.down(false)?;
                }
                return Err(error);
            }
        };
        let up = match (is_new, begun) {
            (true, _) => Up::Started,
            (false, 0) => Up::Already,
            (false, _) => Up::Repaired,
        };
        Ok((lab, up))
    }

    /// Makes the folder of a lab, with everything but the processes.
    fn make(folder: &Path, plan: &Plan) -> Result<Lab, LabError> {
        let layout = Layout::new(folder)?;
        let version = packages::version(&process::path(plan.programs.as_deref()))?;
        let port = layout::free_ports(layout::ports(plan.all_nodes()))?;
        let record = Record { plan: plan.clone(), port, version };
        let site = Site {
            watts: plan.watts(),
            is_shared: plan.is_shared && plan.mode == Mode::Steer,
            off_file: layout.folder().join(setup::OFF_FILE),
            node_cpus: layout::CPUS,
            ..Site::new(plan.mode)
        };
        layout.write(&record, &site)?;
        files::write_file(&site.off_file, setup::SWITCHED_ON, 0o644)?;
        // Last, so that a folder that was begun is no lab.
        let text = serde_json::to_string_pretty(&record).unwrap_or_default();
        files::write_file(&layout.record(), &text, 0o644)?;
        Ok(Lab { layout, record })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.layout.folder()
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u32 {
        self.record.plan.all_nodes()
    }

    /// The configuration of the cluster, for `SLURM_CONF`.
    pub fn conf(&self) -> PathBuf {
        self.layout.conf()
    }

    /// A file to be sourced by a shell: it sets `SLURM_CONF`.
    pub fn environment_file(&self) -> PathBuf {
        self.layout.environment()
    }

    /// The emulated meter of a node, counted from 1.
    pub fn tree(&self, node: u32) -> PathBuf {
        self.layout.node(node).join("tree")
    }

    /// Where slurmrestd listens, if the lab has one.
    pub fn rest_address(&self) -> Option<Address> {
        let port = layout::rest_port(self.record.port, self.record.plan.all_nodes());
        self.record.plan.extras.rest.then(|| Address::Tcp(format!("127.0.0.1:{port}")))
    }

    /// The cluster, through its commands.
    pub fn commands(&self) -> Commands {
        Commands::new(self.programs())
    }

    /// Slurm's programs, for this cluster.
    pub fn programs(&self) -> Programs {
        Programs::default().with_conf(&self.conf()).with_variable("PATH", self.path())
    }

    /// Where programs are looked for.
    fn path(&self) -> OsString {
        process::path(self.record.plan.programs.as_deref())
    }

    /// The processes, whether they run or not.
    pub fn members(&self) -> Result<Vec<Member>, LabError> {
        let processes = Processes::read(&self.layout.processes())?;
        let member = |wanted: Wanted| {
            let pid = processes.running(&wanted.name);
            Member { name: wanted.name, pid }
        };
        Ok(self.wanted().into_iter().map(member).collect())
    }

    /// Starts one process that does not run.
    pub fn start(&self, name: &str) -> Result<(), LabError> {
        let mut processes = Processes::read(&self.layout.processes())?;
        match self.wanted().into_iter().find(|wanted| wanted.name == name) {
            Some(wanted) if processes.running(name).is_none() => processes.start(&wanted),
            Some(_) => Ok(()),
            None => Err(LabError::Unsuitable(format!("the lab has no process '{name}'"))),
        }
    }

    /// Asks one process to end, so that it saves what it has to, and waits until it is gone.
    pub fn stop(&self, name: &str) -> Result<(), LabError> {
        Processes::read(&self.layout.processes())?.stop(&[name.to_owned()])
    }

    /// Kills one process at once, as a crash would, and waits until it is gone.
    pub fn kill(&self, name: &str) -> Result<(), LabError> {
        Processes::read(&self.layout.processes())?.kill(name)
    }

    /// Waits until slurmctld answers and all nodes are in service.
    pub fn await_nodes(&self) -> Result<(), LabError> {
        let patience = Duration::from_secs(600);
        let deadline = Instant::now() + patience;
        let commands = Commands::new(self.programs().with_patience(Duration::from_secs(60)));
        loop {
            let answer = commands.nodes();
            let is_ready = |node: &Node| {
                ["IDLE", "MIXED", "ALLOCATED"].contains(&node.state.base.as_str())
                    && !node.state.has("NOT_RESPONDING")
            };
            let found = match answer {
                Ok(nodes) if nodes.len() as u32 == self.nodes() && nodes.iter().all(is_ready) => {
                    return Ok(());
                }
                Ok(nodes) => nodes
                    .iter()
                    .find(|node| !is_ready(node))
                    .map_or("there are too few nodes".to_owned(), |node| {
                        format!("node {} is {}", node.name, node.state)
                    }),
                Err(error) => error.to_string(),
            };
            let processes = Processes::read(&self.layout.processes())?;
            let dead =
                self.wanted().into_iter().find(|wanted| processes.running(&wanted.name).is_none());
            if let Some(dead) = dead {
                return Err(process::failed(&dead, "has ended"));
            }
            if Instant::now() >= deadline {
                let controller = self.wanted().into_iter().find(|wanted| wanted.name == CONTROLLER);
                let what = format!("is not ready after {} s ({found})", patience.as_secs());
                return Err(match controller {
                    Some(controller) => process::failed(&controller, &what),
                    None => LabError::Unsuitable(what),
                });
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Ends all jobs, stops every process of the lab, and removes its folder unless it is kept.
    pub fn down(self, keep: bool) -> Result<(), LabError> {
        let mut processes = Processes::read(&self.layout.processes())?;
        if processes.running(CONTROLLER).is_some() {
            self.end_jobs();
        }
        // The controller first, so that it does not see its nodes die; munge last, as all others need it.
        let (agents, others): (Vec<Wanted>, Vec<Wanted>) =
            self.wanted().into_iter().partition(|wanted| wanted.name.starts_with("agent."));
        let names = |wanted: &[Wanted], prefix: &str| -> Vec<String> {
            wanted
                .iter()
                .map(|wanted| wanted.name.clone())
                .filter(|name| name.starts_with(prefix))
                .collect()
        };
        processes.stop(&names(&others, CONTROLLER))?;
        processes.stop(&names(&others, "slurmd."))?;
        processes.stop(&names(&agents, ""))?;
        for last in ["slurmrestd", "slurmdbd", "mariadbd", "munged"] {
            processes.stop(&names(&others, last))?;
        }
        process::end_strays(self.folder());
        if keep {
            // What stays is for reading; the next lab here is a new one.
            return files::remove_file(&self.layout.record());
        }
        self.layout.remove()
    }

    /// Cancels all jobs, and waits a while until nothing of them runs. What stays is killed afterwards.
    fn end_jobs(&self) {
        let commands = Commands::new(self.programs().with_patience(Duration::from_secs(5)));
        let deadline = Instant::now() + Duration::from_secs(15);
        while Instant::now() < deadline {
            let Ok(jobs) = commands.jobs() else { return };
            let live = jobs.iter().filter(|job| !job.state.has_ended());
            let live: Vec<JobRef> = live.map(Job::reference).collect();
            if live.is_empty() {
                return;
            }
            for some in live.chunks(JOBS_AT_ONCE) {
                // Whether it worked, the next look shows.
                let _ = commands.programs().try_to(&Act::Cancel(some).call());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// All processes that the lab should have, in the order in which they are started.
    fn wanted(&self) -> Vec<Wanted> {
        self.layout.wanted(&self.record)
    }

    /// Starts what does not run, and returns how many were started.
    fn start_missing(&self) -> Result<usize, LabError> {
        let mut processes = Processes::read(&self.layout.processes())?;
        let mut count = 0;
        for wanted in self.wanted() {
            if processes.running(&wanted.name).is_some() {
                continue;
            }
            count += 1;
            processes.start(&wanted)?;
        }
        Ok(count)
    }
}
