//! The local engine: jobs run as processes of this machine.
//!
//! Each attempt has a folder (`local/folder.rs`) and a [warden]: a small process that starts the
//! command, waits for it, and records how it ended. So a job survives the daemon, and the next daemon
//! learns how it ended. The command starts as [`exec`], which takes on the identity of the job's owner
//! first.
//!
//! Nodes are virtual: each stands for some processors, to which the processes of a job are pinned.
//! Power is neither measured nor capped. A job can read its predicted [speed], and emulated
//! applications run at that speed.

mod cpus;
pub mod exec;
mod folder;
pub mod group;
pub mod inheritance;
mod over;
mod removal;
pub mod speed;
mod tree;
pub mod warden;
mod watched;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, set_child_subreaper, waitpid};

use crate::engine::{EngineError, Found, Immediate, Launch, Signal, ago};
use crate::host::process::Process;
use crate::job::{Allotment, Attempt, End, Place};
use busbar_core::units::Span;
use cpus::Cpus;
pub(crate) use cpus::usable_cpus;
use folder::{CLAIMED, CPUS, Folder, GROUP, REVOKED, TICKET, Ticket};
use group::Groups;
use inheritance::Inheritance;
use over::Over;
use removal::Removal;
use tree::Processes;
use watched::{AttemptState, Watched};

/// How often wardens are tended.
const BETWEEN_TENDING: Duration = Duration::from_secs(1);

/// An engine that runs jobs as local processes.
pub struct Local {
    /// The folder with the folders of attempts.
    folder: PathBuf,
    /// Busbar's own program, which also serves as the warden.
    program: PathBuf,
    cpus: Cpus,
    inheritance: Inheritance,
    /// Where the control groups of attempts are created, if they are used.
    groups: Option<Groups>,
    /// Whether orphans of wardens become children of this process.
    is_reaper: bool,
    /// When wardens were last tended.
    tended: Option<Instant>,
    notices: Vec<String>,
    running: BTreeMap<Attempt, Watched>,
    /// Attempts that turned out not to have begun, and why.
    not_begun: Vec<(Attempt, String)>,
    removal: Removal,
}

impl Local {
    /// An engine that keeps its files in a folder; `program` is Busbar itself. `cpus` are the
    /// processors of each node. If there are more nodes than entries, the list is repeated; without
    /// entries, jobs are not pinned.
    ///
    /// If jobs run as other users, these must be able to enter the folders above, though not to
    /// list them, to read their speed.
    pub fn new(folder: PathBuf, program: PathBuf, cpus: Vec<Vec<u32>>) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o711))?;
        let folder = folder.canonicalize()?;
        let (cpus, notices) = Cpus::new(cpus)?;
        let (running, removal) = (BTreeMap::new(), Removal::default());
        Ok(Local {
            folder,
            program,
            cpus,
            inheritance: Inheritance::default(),
            groups: None,
            is_reaper: false,
            tended: None,
            notices,
            running,
            not_begun: Vec::new(),
            removal,
        })
    }

    /// Gives attempts that start from now on control groups of their own.
    pub(crate) fn use_groups(&mut self, groups: Groups) {
        self.groups = Some(groups);
    }

    /// Makes processes that lose their warden children of this process, which ends them. Only for a
    /// process without other children.
    pub(crate) fn adopt_orphans(&mut self) -> io::Result<()> {
        set_child_subreaper(Pid::from_raw(std::process::id() as i32))?;
        self.is_reaper = true;
        Ok(())
    }

    /// Sets the umask and resource limits of jobs.
    pub(crate) fn hand_down(&mut self, inheritance: Inheritance) {
        self.inheritance = inheritance;
    }

    /// Messages to the operator about missing processors.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Removes the files of all attempts except these and running ones; a daemon that died may have
    /// left some. Returns attempts that are running but are not among these.
    pub fn forget_others(&mut self, kept: &BTreeSet<Attempt>) -> io::Result<Vec<Attempt>> {
        let mut strays = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let attempt = name.to_str().and_then(|name| {
                let (job, number) = speed::folder_of(name).split_once('.')?;
                Some(Attempt { job: job.parse().ok()?, number: number.parse().ok()? })
            });
            if let Some(attempt) = attempt
                && !kept.contains(&attempt)
                && !self.running.contains_key(&attempt)
            {
                let folder = self.folder_of(attempt);
                match Folder::at(&folder).is_over()? {
                    true => self.removal.remove(folder),
                    false => strays.push(attempt),
                }
            }
        }
        strays.sort_unstable();
        strays.dedup();
        Ok(strays)
    }

    /// Removes empty control groups that belong to none of the attempts of which there are files.
    pub(crate) fn forget_other_groups(&self) -> io::Result<()> {
        let Some(groups) = &self.groups else { return Ok(()) };
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                kept.extend(Folder::at(&entry.path()).read_whole(GROUP)?);
            }
        }
        groups.remove_others(&kept)
    }

    fn folder_of(&self, attempt: Attempt) -> PathBuf {
        self.folder.join(attempt.to_string())
    }

    /// Starts the warden of an attempt whose folder exists.
    fn begin(&self, folder: &Folder, launch: &Launch) -> io::Result<Watched> {
        let cpus = self.cpus.of(&launch.allotment);
        let speed = launch.allotment.speed;
        let mut launch = launch.clone();
        launch.environment.extend(variables(folder, &launch));
        speed::write(&speed::file_of(&folder.path), speed)?;
        if !cpus.is_empty() {
            folder.write(CPUS, &cpus)?;
        }
        let group = self.groups.as_ref().map(|groups| groups.of(launch.attempt));
        if let Some(group) = &group {
            folder.write(GROUP, group)?;
        }
        let inheritance = self.inheritance.clone();
        folder.write(TICKET, &Ticket { launch, inheritance, group: None })?;
        let child = Command::new(&self.program)
            .arg("warden")
            .arg(&folder.path)
            .current_dir("/")
            .env_clear()
            .env(speed::VARIABLE, speed::file_of(&folder.path))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Watched::started(folder.clone(), group, child, cpus, speed))
    }

    /// Takes a snapshot of all processes if anything needs it: pending follow-ups, attempts without
    /// a warden, or tending. Returns the attempts without a warden that have ended now.
    fn look_around(
        &mut self,
        alone: &[Attempt],
        is_tending: bool,
    ) -> io::Result<Vec<(Attempt, End)>> {
        let must_look =
            |watched: &Watched| watched.has_follow_up() || (is_tending && watched.is_ungrouped());
        let must_look = !alone.is_empty() || self.running.values().any(must_look);
        let present = must_look.then(Processes::now).transpose()?;
        for watched in self.running.values_mut() {
            // Processes that could not be reached are tried again.
            if let Some(present) = present.as_ref().filter(|_| watched.has_follow_up()) {
                let _ = watched.follow_up(present);
            }
            if is_tending && let Err(error) = watched.tend(present.as_ref()) {
                tracing::debug!(%error, "a warden could not be checked");
            }
        }
        let Some(present) = present else { return Ok(Vec::new()) };
        let orphans = if self.is_reaper { self.end_orphans(&present) } else { Vec::new() };
        if alone.is_empty() {
            return Ok(Vec::new());
        }
        let marks = present.marks();
        let mut ended = Vec::new();
        for attempt in alone {
            if let Some(watched) = self.running.get_mut(attempt) {
                // Failures are tried again.
                let end = watched.bury(&present, &marks, &orphans).unwrap_or(None);
                ended.extend(end.map(|end| (*attempt, end)));
            }
        }
        Ok(ended)
    }

    /// Ends the children of this process that are not wardens: their warden is gone.
    fn end_orphans(&self, present: &Processes) -> Vec<Process> {
        let wardens: BTreeSet<i32> = self.running.values().filter_map(Watched::child).collect();
        let mut orphans = Vec::new();
        for stat in present.own_children().filter(|stat| !wardens.contains(&stat.process.number)) {
            if stat.is_over {
                // No other process reaps it.
                let _ = waitpid(Pid::from_raw(stat.process.number), WaitOptions::NOHANG);
            } else {
                let _ = stat.process.signal(Signal::Kill);
                orphans.push(stat.process);
            }
        }
        orphans
    }
}

/// The environment variables that describe the allotment to the job.
fn variables(folder: &Folder, launch: &Launch) -> Vec<(String, String)> {
    let Launch { attempt, allotment, .. } = launch;
    let nodes: Vec<u32> = allotment.node_numbers();
    let parts = allotment.part.iter().flat_map(|part| {
        let by_node = |numbers: &dyn Fn(&Place) -> Vec<u32>, all: u32| match part.places.is_empty()
        {
            true => vec![cpus::list(&(0..all).collect::<Vec<_>>()); nodes.len()].join(";"),
            false => {
                let lists = part.places.iter().map(|place| cpus::list(&numbers(place)));
                lists.collect::<Vec<_>>().join(";")
            }
        };
        [
            ("BUSBAR_CORE_LIST", by_node(&|place| place.cores.clone(), part.processors)),
            ("BUSBAR_GPU_LIST", by_node(&|place| place.gpus.clone(), part.gpus)),
            ("BUSBAR_MEMORY_MIB", part.memory_mib.to_string()),
        ]
    });
    let watts =
        |power: busbar_core::units::Watts| power.to_string().trim_end_matches('W').to_owned();
    [
        ("BUSBAR_JOB", attempt.job.to_string()),
        ("BUSBAR_ATTEMPT", attempt.number.to_string()),
        ("BUSBAR_NODES", nodes.len().to_string()),
        ("BUSBAR_NODE_LIST", cpus::list(&nodes)),
        ("BUSBAR_CORES", allotment.cores.to_string()),
        ("BUSBAR_CAP_WATTS", watts(allotment.cap)),
        ("BUSBAR_POWER_WATTS", watts(allotment.power)),
        (speed::VARIABLE, speed::file_of(&folder.path).to_string_lossy().into_owned()),
    ]
    .into_iter()
    .chain(parts)
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

impl Immediate for Local {
    fn name(&self) -> &'static str {
        "local, with emulated watts"
    }

    fn start(&mut self, launch: &Launch) -> Result<(), EngineError> {
        let attempt = launch.attempt;
        let path = self.folder_of(attempt);
        let failed =
            |source| EngineError::File { attempt, what: "begin in", path: path.clone(), source };
        let folder = match Folder::create(path.clone()) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(EngineError::Again { attempt });
            }
            Err(error) => return Err(failed(error)),
        };
        match self.begin(&folder, launch) {
            Ok(watched) => {
                self.running.insert(attempt, watched);
                Ok(())
            }
            Err(error) => {
                let error = failed(error);
                // No warden has a ticket, and none will.
                self.forget(attempt);
                Err(error)
            }
        }
    }

    /// Caps are not enforced: jobs draw what their model says.
    fn set(
        &mut self,
        attempt: Attempt,
        allotment: &Allotment,
        _pause: Span,
    ) -> Result<(), EngineError> {
        let cpus = self.cpus.of(allotment);
        let watched = self.running.get_mut(&attempt).ok_or(EngineError::Unknown { attempt })?;
        watched.set(cpus, allotment.speed).map_err(|source| {
            let path = watched.folder.path.clone();
            EngineError::File { attempt, what: "change what it has, in", path, source }
        })
    }

    fn signal(&mut self, attempt: Attempt, signal: Signal) -> Result<(), EngineError> {
        let watched = self.running.get_mut(&attempt).ok_or(EngineError::Unknown { attempt })?;
        watched.signal(signal).map_err(|source| {
            let path = watched.folder.path.clone();
            EngineError::File { attempt, what: "send a signal to what runs in", path, source }
        })
    }

    fn ended(&mut self) -> Vec<(Attempt, End)> {
        let (mut ended, mut over) = (Vec::new(), Vec::new());
        let mut alone = Vec::new();
        let mut has_follow_ups = false;
        for (attempt, watched) in &mut self.running {
            match watched.look() {
                Ok(AttemptState::Over(how)) => over.push((*attempt, how)),
                Ok(AttemptState::Alone) => alone.push(*attempt),
                Ok(AttemptState::Watched) => has_follow_ups |= watched.has_follow_up(),
                // A file that cannot be read now may be readable later.
                Err(_) => {}
            }
        }
        let is_tending = !self.running.is_empty()
            && self.tended.is_none_or(|tended| tended.elapsed() >= BETWEEN_TENDING);
        if is_tending {
            self.tended = Some(Instant::now());
        }
        if has_follow_ups || is_tending || !alone.is_empty() {
            ended.extend(self.look_around(&alone, is_tending).unwrap_or_default());
        }
        for (attempt, how) in over {
            match how {
                Over::Ended(end) => ended.push((attempt, end)),
                Over::NotBegun { not_begun } => {
                    self.running.remove(&attempt);
                    self.not_begun.push((attempt, not_begun));
                }
            }
        }
        for (attempt, _) in &ended {
            self.running.remove(attempt);
        }
        ended
    }

    fn not_begun(&mut self) -> Vec<(Attempt, String)> {
        std::mem::take(&mut self.not_begun)
    }

    fn find(&mut self, attempt: Attempt) -> Result<Found, EngineError> {
        if self.running.contains_key(&attempt) {
            return Ok(Found::Running);
        }
        let folder = Folder::at(&self.folder_of(attempt));
        let path = folder.path.clone();
        let failed = |source| EngineError::File { attempt, what: "look at", path, source };
        let look = || -> io::Result<Option<(Watched, AttemptState)>> {
            if folder.rename(TICKET, REVOKED)? || !folder.has(CLAIMED)? {
                return Ok(None);
            }
            let mut found = Watched::found(folder.clone())?;
            let stand = found.look()?;
            Ok(Some((found, stand)))
        };
        match look() {
            Err(error) => Err(failed(error)),
            Ok(None) => Ok(Found::NeverStarted),
            Ok(Some((_, AttemptState::Over(Over::Ended(end))))) => {
                let ago = folder.ended().map(ago).unwrap_or_default();
                Ok(Found::Ended { end, ago })
            }
            Ok(Some((_, AttemptState::Over(Over::NotBegun { not_begun })))) => {
                Ok(Found::NotBegun(not_begun))
            }
            // An attempt without a warden has ended only when no process is left.
            Ok(Some((found, AttemptState::Watched | AttemptState::Alone))) => {
                self.running.insert(attempt, found);
                Ok(Found::Running)
            }
        }
    }

    fn forget(&mut self, attempt: Attempt) {
        self.removal.remove(self.folder_of(attempt));
    }
}
