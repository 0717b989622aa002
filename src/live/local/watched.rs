//! An attempt that is under way, as the daemon sees it.
//!
//! What is wanted of a job reaches its command at once, with all of the process group. Processes that
//! have left the group are met on an errand: at the next look at all processes, and again until
//! nobody new is met. So the cost of a look does not grow with the number of jobs of which something
//! is wanted.

use std::collections::BTreeSet;
use std::io;
use std::process::Child;

use super::folder::{CPUS, ENDED, Folder, REVOKED, SUSPENDED, Started, TICKET};
use super::process::Process;
use super::tree::{Marks, Processes};
use super::{cpus, speed};
use crate::live::engine::{End, Signal};

/// An attempt that is under way.
pub(super) struct Watched {
    pub(super) folder: Folder,
    /// The warden, if it is a child of this process; so that nothing is left of it when it ends.
    child: Option<Child>,
    /// The process that all others of the job are below, once it is known.
    warden: Option<Process>,
    command: Option<Process>,
    /// By what its ticket was revoked.
    revoked: Option<Signal>,
    /// What it is known to have.
    cpus: Option<Vec<u32>>,
    speed: Option<u32>,
    errand: Errand,
    /// Whether its warden is gone without a word, and nobody was left at the last look.
    is_quiet: bool,
}

/// What is still to be done to processes that have left the group.
#[derive(Default)]
struct Errand {
    signals: Vec<Signal>,
    is_to_pin: bool,
    /// Who was met already.
    met: BTreeSet<Process>,
}

impl Errand {
    fn is_done(&self) -> bool {
        self.signals.is_empty() && !self.is_to_pin
    }
}

/// How an attempt stands.
pub(super) enum Stand {
    /// Its warden is there.
    Watched,
    /// It is over.
    Over(End),
    /// Its warden is gone without a word. What is left of it is nobody's.
    Alone,
}

impl Watched {
    /// One that this process has started.
    pub(super) fn started(folder: Folder, child: Child, cpus: Vec<u32>, speed: u32) -> Self {
        // It is not waited for yet, so it is there, if only to be waited for.
        let warden = Process::of(child.id() as i32).unwrap_or_default();
        let found = Watched::found(folder);
        Watched { child: Some(child), warden, cpus: Some(cpus), speed: Some(speed), ..found }
    }

    /// One that another has.
    pub(super) fn found(folder: Folder) -> Self {
        Watched {
            folder,
            child: None,
            warden: None,
            command: None,
            revoked: None,
            cpus: None,
            speed: None,
            errand: Errand::default(),
            is_quiet: false,
        }
    }

    /// Learns who runs it, if that is known by now.
    fn meet(&mut self) -> io::Result<()> {
        if self.command.is_none()
            && let Some(Started { warden, command, .. }) = self.folder.started()?
        {
            (self.warden, self.command) = (Some(warden), Some(command));
        }
        Ok(())
    }

    /// Gives it other processors and another speed.
    pub(super) fn set(&mut self, cpus: Vec<u32>, speed: u32) -> io::Result<()> {
        if self.cpus.as_ref() != Some(&cpus) {
            // First for a warden that is about to begin, then for what has begun.
            self.folder.write(CPUS, &cpus)?;
            self.meet()?;
            for process in self.warden.into_iter().chain(self.command) {
                cpus::pin(process, &cpus)?;
            }
            self.cpus = Some(cpus);
            (self.errand.is_to_pin, self.errand.met) = (true, BTreeSet::new());
        }
        if self.speed != Some(speed) {
            speed::write(&speed::file_of(&self.folder.path), speed)?;
            self.speed = Some(speed);
        }
        Ok(())
    }

    /// Sends it a signal.
    pub(super) fn signal(&mut self, signal: Signal) -> io::Result<()> {
        match signal {
            // One that has not begun need not begin in order to end.
            Signal::Terminate | Signal::Kill => {
                if self.revoked.is_none() && self.folder.rename(TICKET, REVOKED)? {
                    self.revoked = Some(signal);
                }
            }
            // For a warden that is about to begin. Of one that has begun, the command is known.
            Signal::Suspend => match self.folder.put(SUSPENDED) {
                Err(error) if self.command.is_none() => return Err(error),
                _ => {}
            },
            Signal::Resume => {
                self.folder.remove(SUSPENDED)?;
                self.errand.signals.retain(|signal| *signal != Signal::Suspend);
            }
        }
        self.meet()?;
        self.errand.signals.retain(|earlier| *earlier != signal);
        self.errand.signals.push(signal);
        self.errand.met.clear();
        self.command.map_or(Ok(()), |command| command.signal_group(signal))
    }

    /// Whether something is still to be done to processes that have left the group.
    pub(super) fn has_errand(&self) -> bool {
        !self.errand.is_done()
    }

    /// Does it to those that are there. When nobody new is met, it is done.
    pub(super) fn go_on_errand(&mut self, present: &Processes) -> io::Result<()> {
        let was_known = self.command.is_some();
        self.meet()?;
        let Some(warden) = self.warden else { return Ok(()) };
        let group = self.command.map(|command| command.number);
        let Errand { signals, is_to_pin, met } = &mut self.errand;
        let mut result = Ok(());
        if let Some(command) = self.command.filter(|_| !was_known) {
            for signal in &*signals {
                result = result.and(command.signal_group(*signal));
            }
        }
        let mut is_anybody_new = false;
        for stat in present.below(warden) {
            if !met.insert(stat.process) {
                continue;
            }
            is_anybody_new = true;
            if *is_to_pin && let Some(cpus) = &self.cpus {
                result = result.and(cpus::pin(stat.process, cpus));
            }
            if Some(stat.group) != group {
                for signal in &*signals {
                    result = result.and(stat.process.signal(*signal));
                }
            }
        }
        // One that is about to begin is still to be met.
        if !is_anybody_new && was_known {
            self.errand = Errand::default();
        }
        result
    }

    /// Whether the warden, which is no child of this process, has gone. Its lock says so; if somebody has
    /// removed the folder with it, the kernel does.
    fn is_abandoned(&mut self) -> io::Result<bool> {
        // Without a warden that is known, the lock has to do.
        let _ = self.meet();
        match (self.warden, self.folder.path.try_exists()?) {
            (Some(warden), false) => Ok(!warden.is_there()?),
            _ => self.folder.is_over(),
        }
    }

    /// How it stands.
    pub(super) fn look(&mut self) -> io::Result<Stand> {
        let is_alone = match &mut self.child {
            Some(child) => child.try_wait()?.is_some(),
            None => self.is_abandoned()?,
        };
        if !is_alone {
            return Ok(Stand::Watched);
        }
        if let Some(signal) = self.revoked {
            let number = rustix::process::Signal::from(signal).as_raw();
            return Ok(Stand::Over(End::Signalled(number)));
        }
        match self.folder.read(ENDED) {
            Ok(Some(end)) => return Ok(Stand::Over(end)),
            Ok(None) => {}
            // A machine that went down may have left half of it.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
            Err(error) => return Err(error),
        }
        Ok(match self.folder.rename(TICKET, REVOKED)? {
            true => {
                let why = "what was to watch over it ended before it began";
                Stand::Over(End::Failed(why.to_owned()))
            }
            false => Stand::Alone,
        })
    }

    /// Ends what is left of it without its warden. It is lost when nobody is left, twice: a process
    /// that is just becoming another program has no environment for a moment.
    pub(super) fn bury(&mut self, present: &Processes, marks: &Marks) -> io::Result<Option<End>> {
        self.meet()?;
        let mark = speed::file_of(&self.folder.path);
        let left = present.left(marks, mark.as_os_str(), self.command);
        for process in &left {
            process.signal(Signal::Kill)?;
        }
        let was_quiet = std::mem::replace(&mut self.is_quiet, left.is_empty());
        Ok((was_quiet && left.is_empty()).then_some(End::Lost))
    }
}
