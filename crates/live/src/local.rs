//! The local engine: jobs are processes of this machine.
//!
//! Each attempt has a folder (`local/folder.rs`) and a [warden]: a small process of its own that starts the
//! command, waits for it, and writes down how it ended. So a job lives on when the daemon dies, and a
//! daemon that comes back learns how it ended although it was not there. The command itself begins as
//! a [stage] that is already whoever the job belongs to.
//!
//! Nodes are virtual: each stands for some processors, to which the processes of a job are
//! kept. No power is measured or capped here. A job can read how fast it is believed to be
//! ([speed]), and an emulated application is just as fast as that.

mod cpus;
pub mod exec;
mod folder;
pub mod group;
pub mod inheritance;
pub mod process;
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

use super::engine::{Allotment, Attempt, End, Engine, EngineError, Found, Launch, Signal};
use cpus::Cpus;
use folder::{CLAIMED, CPUS, Folder, GROUP, REVOKED, TICKET, Ticket};
use group::Groups;
use inheritance::Inheritance;
use process::Process;
use removal::Removal;
use tree::Processes;
use watched::{AttemptState, Watched};

/// How often wardens are seen to.
const BETWEEN_TENDING: Duration = Duration::from_secs(1);

/// Jobs as processes.
pub struct Local {
    /// Where the folders of attempts are.
    folder: PathBuf,
    /// The program that is its own warden.
    program: PathBuf,
    cpus: Cpus,
    inheritance: Inheritance,
    /// Where attempts have control groups of their own.
    groups: Option<Groups>,
    /// Whether orphans of wardens become children of this process.
    is_reaper: bool,
    /// When wardens were last seen to.
    tended: Option<Instant>,
    notices: Vec<String>,
    running: BTreeMap<Attempt, Watched>,
    removal: Removal,
}

impl Local {
    /// An engine that keeps its files in a folder; `program` is Busbar itself. `cpus` are the processors
    /// that each node stands for. Where there are more nodes, the list begins again; without a list,
    /// jobs run wherever they like.
    ///
    /// If jobs run as other users, those must be able to enter the folders above, though not to list
    /// them: else they cannot read how fast they are to be.
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
            removal,
        })
    }

    /// Attempts that are started from now on have control groups of their own.
    pub fn use_groups(&mut self, groups: Groups) {
        self.groups = Some(groups);
    }

    /// Who loses a warden that this process has started becomes a child of this process, and is ended. Only
    /// for a process that has no other children.
    pub fn adopt_orphans(&mut self) -> io::Result<()> {
        set_child_subreaper(Pid::from_raw(std::process::id() as i32))?;
        self.is_reaper = true;
        Ok(())
    }

    /// Jobs begin with this instead of what is usual.
    pub fn hand_down(&mut self, inheritance: Inheritance) {
        self.inheritance = inheritance;
    }

    /// What an operator should know: processors that are not there.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Forgets every attempt but these and those that run: a daemon that died may have left some that it
    /// had no time to forget. Says which ones run although they are none of these.
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

    fn folder_of(&self, attempt: Attempt) -> PathBuf {
        self.folder.join(attempt.to_string())
    }

    /// Starts the warden of an attempt whose folder is there.
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

    /// Looks at all processes once, if anybody wants something of them: those on errands, attempts that
    /// are alone, and those that are to be tended. Which of the lone ones have ended now.
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
            // Whoever could not be reached is tried again when somebody asks again.
            if let Some(present) = present.as_ref().filter(|_| watched.has_follow_up()) {
                let _ = watched.follow_up(present);
            }
            if is_tending && let Err(error) = watched.tend(present.as_ref()) {
                tracing::debug!(%error, "a warden could not be seen to");
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
                // What cannot be ended now is tried again.
                let end = watched.bury(&present, &marks, &orphans).unwrap_or(None);
                ended.extend(end.map(|end| (*attempt, end)));
            }
        }
        Ok(ended)
    }

    /// Ends the children of this process that are no wardens: each has lost its own.
    fn end_orphans(&self, present: &Processes) -> Vec<Process> {
        let wardens: BTreeSet<i32> = self.running.values().filter_map(Watched::child).collect();
        let mut orphans = Vec::new();
        for stat in present.own_children().filter(|stat| !wardens.contains(&stat.process.number)) {
            if stat.is_over {
                // Nobody else waits for it.
                let _ = waitpid(Pid::from_raw(stat.process.number), WaitOptions::NOHANG);
            } else {
                let _ = stat.process.signal(Signal::Kill);
                orphans.push(stat.process);
            }
        }
        orphans
    }
}

/// What a job is told in its environment.
fn variables(folder: &Folder, launch: &Launch) -> Vec<(String, String)> {
    let Launch { attempt, allotment, .. } = launch;
    let nodes: Vec<u32> = allotment.nodes.iter().map(|(node, _)| *node).collect();
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
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

impl Engine for Local {
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
                // Nobody has a ticket, and nobody will.
                self.forget(attempt);
                Err(error)
            }
        }
    }

    /// Nothing here can be held at a cap: what jobs draw is what their model says.
    fn set(&mut self, attempt: Attempt, allotment: &Allotment) -> Result<(), EngineError> {
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
        let mut ended = Vec::new();
        let mut alone = Vec::new();
        let mut has_follow_ups = false;
        for (attempt, watched) in &mut self.running {
            match watched.look() {
                Ok(AttemptState::Over(end)) => ended.push((*attempt, end)),
                Ok(AttemptState::Alone) => alone.push(*attempt),
                Ok(AttemptState::Watched) => has_follow_ups |= watched.has_follow_up(),
                // What cannot be read now may be readable later.
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
        for (attempt, _) in &ended {
            self.running.remove(attempt);
        }
        ended
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
            Ok(Some((_, AttemptState::Over(end)))) => Ok(Found::Ended(end)),
            // Whoever is alone has ended when nobody is left, and not before.
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
