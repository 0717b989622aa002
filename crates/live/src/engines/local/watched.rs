//! A running attempt as the daemon sees it.
//!
//! Changes and signals reach the command and its process group at once. Processes that have left the
//! group are reached in a follow-up: at the next snapshots of all processes, until no new one is found.
//! So the cost does not grow with the number of jobs concerned.
//!
//! The warden itself may be stopped or killed. So the daemon regularly [tends](Watched::tend) each
//! attempt: it lets its warden go on, and records the processes below it. If the warden is gone, its
//! processes are found by that record or by their control group.

use std::collections::BTreeSet;
use std::io;
use std::process::Child;
use std::time::{Duration, Instant};

use super::folder::{CPUS, ENDED, Folder, GROUP, REVOKED, SEEN, SUSPENDED, Started, TICKET};
use super::group::Group;
use super::over::Over;
use super::tree::{Marks, Processes};
use super::{cpus, speed};
use crate::engine::Signal;
use crate::host::process::{Process, Stat};
use crate::job::End;

/// How long a warden may take to report the end of a killed job.
const GRACE: Duration = Duration::from_secs(5);

/// A running attempt.
pub(super) struct Watched {
    pub(super) folder: Folder,
    /// The warden, if it is a child of this process, so that it can be waited for.
    child: Option<Child>,
    /// The warden, once it is known.
    warden: Option<Process>,
    command: Option<Process>,
    /// Its control group, if it has one of its own.
    group: Option<Group>,
    /// The processes below the warden at the last snapshot, and whether they are recorded in the
    /// folder.
    seen: BTreeSet<Process>,
    is_noted: bool,
    /// When the job was killed.
    is_to_die: Option<Instant>,
    /// The signal that revoked the ticket.
    revoked: Option<Signal>,
    /// The processors and speed that were last set.
    cpus: Option<Vec<u32>>,
    speed: Option<u32>,
    follow_up: FollowUp,
    /// Whether the warden is gone without a report, and no process was left at the last snapshot.
    is_quiet: bool,
}

/// What is still to be done to processes that have left the process group.
#[derive(Default)]
struct FollowUp {
    signals: Vec<Signal>,
    is_to_pin: bool,
    /// Processes that were reached already.
    met: BTreeSet<Process>,
}

impl FollowUp {
    fn is_done(&self) -> bool {
        self.signals.is_empty() && !self.is_to_pin
    }
}

/// The state of an attempt.
pub(super) enum AttemptState {
    /// Its warden is alive.
    Watched,
    /// It is over.
    Over(Over),
    /// Its warden is gone without a report, and its processes must be ended.
    Alone,
}

impl Watched {
    /// An attempt that this process has started.
    pub(super) fn started(
        folder: Folder,
        group: Option<Group>,
        child: Child,
        cpus: Vec<u32>,
        speed: u32,
    ) -> Self {
        // The child was not waited for yet, so it exists at least as a zombie.
        let warden = Process::of(child.id() as i32).unwrap_or_default();
        let (child, cpus, speed) = (Some(child), Some(cpus), Some(speed));
        Watched { child, warden, cpus, speed, ..Watched::with(folder, group) }
    }

    /// An attempt that another daemon has started.
    pub(super) fn found(folder: Folder) -> io::Result<Self> {
        let group = folder.read_whole(GROUP)?;
        Ok(Watched::with(folder, group))
    }

    fn with(folder: Folder, group: Option<Group>) -> Self {
        Watched {
            folder,
            group,
            seen: BTreeSet::new(),
            is_noted: false,
            is_to_die: None,
            child: None,
            warden: None,
            command: None,
            revoked: None,
            cpus: None,
            speed: None,
            follow_up: FollowUp::default(),
            is_quiet: false,
        }
    }

    /// Reads which processes run the attempt, if that is known by now.
    fn meet(&mut self) -> io::Result<()> {
        if self.command.is_none()
            && let Some(Started { warden, command, .. }) = self.folder.started()?
        {
            (self.warden, self.command) = (Some(warden), Some(command));
            // The warden may have been unable to enter the group.
            self.group = self.folder.read_whole(GROUP)?;
            // Another daemon may have recorded processes.
            let seen = self.folder.read_whole::<Vec<Process>>(SEEN)?;
            self.seen.extend(seen.unwrap_or_default());
        }
        Ok(())
    }

    /// Changes the processors and the speed.
    pub(super) fn set(&mut self, cpus: Vec<u32>, speed: u32) -> io::Result<()> {
        if self.cpus.as_ref() != Some(&cpus) {
            // First for a warden that is just starting, then for running processes.
            self.folder.write(CPUS, &cpus)?;
            self.meet()?;
            for process in self.warden.into_iter().chain(self.command) {
                cpus::pin(process, &cpus)?;
            }
            self.cpus = Some(cpus);
            (self.follow_up.is_to_pin, self.follow_up.met) = (true, BTreeSet::new());
        }
        if self.speed != Some(speed) {
            speed::write(&speed::file_of(&self.folder.path), speed)?;
            self.speed = Some(speed);
        }
        Ok(())
    }

    /// Sends a signal to the job.
    pub(super) fn signal(&mut self, signal: Signal) -> io::Result<()> {
        match signal {
            // An attempt that has not begun is revoked.
            Signal::Terminate | Signal::Kill => {
                if self.revoked.is_none() && self.folder.rename(TICKET, REVOKED)? {
                    self.revoked = Some(signal);
                }
            }
            // For a warden that is just starting; otherwise the command is known.
            Signal::Suspend => match self.folder.put(SUSPENDED) {
                Err(error) if self.command.is_none() => return Err(error),
                _ => {}
            },
            Signal::Resume => {
                self.folder.remove(SUSPENDED)?;
                self.follow_up.signals.retain(|signal| *signal != Signal::Suspend);
            }
        }
        self.meet()?;
        self.follow_up.signals.retain(|earlier| *earlier != signal);
        self.follow_up.signals.push(signal);
        self.follow_up.met.clear();
        let mut sent = self.command.map_or(Ok(()), |command| command.signal_group(signal));
        if signal == Signal::Kill {
            self.is_to_die.get_or_insert_with(Instant::now);
            sent = sent.and(self.group.as_ref().map_or(Ok(()), Group::kill_job));
        }
        sent
    }

    /// The warden's process ID, if it is a child of this process.
    pub(super) fn child(&self) -> Option<i32> {
        self.child.as_ref().map(|child| child.id() as i32)
    }

    /// Whether its processes can only be found in a snapshot of all processes.
    pub(super) fn is_ungrouped(&self) -> bool {
        self.group.is_none()
    }

    /// Resumes a stopped warden, records the processes below it, and kills it if it does not report
    /// the end of a killed job.
    pub(super) fn tend(&mut self, present: Option<&Processes>) -> io::Result<()> {
        self.meet()?;
        let Some(warden) = self.warden else { return Ok(()) };
        let stat = Stat::of(warden.number)?.filter(|stat| stat.process == warden && !stat.is_over);
        let Some(stat) = stat else { return Ok(()) };
        if stat.is_stopped {
            tracing::warn!(warden = warden.number, "a warden was stopped; it is resumed");
            warden.signal(Signal::Resume)?;
        }
        if let Some(present) = present.filter(|_| self.is_ungrouped()) {
            self.note(present.below(warden))?;
        }
        let is_overdue = self.is_to_die.is_some_and(|since| since.elapsed() > GRACE);
        if is_overdue && !self.has_job()? {
            tracing::warn!(warden = warden.number, "a warden does not answer; it is killed");
            warden.signal(Signal::Kill)?;
        }
        Ok(())
    }

    /// Whether a process of the job was alive at the last snapshot.
    fn has_job(&self) -> io::Result<bool> {
        self.group.as_ref().map_or(Ok(!self.seen.is_empty()), Group::has_job)
    }

    /// Records the processes below the warden, for later daemons, too.
    fn note(&mut self, below: Vec<Stat>) -> io::Result<()> {
        let alive = below.iter().filter(|stat| !stat.is_over).map(|stat| stat.process);
        let seen: BTreeSet<Process> = alive.collect();
        if seen != self.seen || !self.is_noted {
            self.seen = seen;
            self.is_noted = false;
            self.folder.write(SEEN, &self.seen)?;
            self.is_noted = true;
        }
        Ok(())
    }

    /// Whether something is still to be done to processes that have left the group.
    pub(super) fn has_follow_up(&self) -> bool {
        !self.follow_up.is_done()
    }

    /// Reaches the processes in a snapshot. It is complete when no new one is found.
    ///
    /// Nothing is done before the warden has reported the command, since the warden then catches up
    /// itself. A process that was stopped earlier could only be resumed by the daemon that started
    /// the warden; for a later daemon the report would never come.
    pub(super) fn follow_up(&mut self, present: &Processes) -> io::Result<()> {
        let was_known = self.command.is_some();
        self.meet()?;
        let (Some(warden), Some(command)) = (self.warden, self.command) else { return Ok(()) };
        let FollowUp { signals, is_to_pin, met } = &mut self.follow_up;
        let mut result = Ok(());
        if !was_known {
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
            if stat.group != command.number {
                for signal in &*signals {
                    result = result.and(stat.process.signal(*signal));
                }
            }
        }
        // A process that is just starting must still be reached.
        if !is_anybody_new && was_known {
            self.follow_up = FollowUp::default();
        }
        result
    }

    /// Whether the warden, which is not a child of this process, is gone. Its lock tells; if the
    /// folder was removed, the kernel does.
    fn is_abandoned(&mut self) -> io::Result<bool> {
        // If the warden is not known, the lock decides.
        let _ = self.meet();
        match (self.warden, self.folder.path.try_exists()?) {
            (Some(warden), false) => Ok(!warden.is_there()?),
            _ => self.folder.is_over(),
        }
    }

    /// The current state.
    pub(super) fn look(&mut self) -> io::Result<AttemptState> {
        let is_alone = match &mut self.child {
            Some(child) => child.try_wait()?.is_some(),
            None => self.is_abandoned()?,
        };
        if !is_alone {
            return Ok(AttemptState::Watched);
        }
        if let Some(signal) = self.revoked {
            let number = rustix::process::Signal::from(signal).as_raw();
            return Ok(AttemptState::Over(Over::Ended(End::Signalled(number))));
        }
        if let Some(over) = self.folder.read_whole(ENDED)? {
            return Ok(AttemptState::Over(over));
        }
        Ok(match self.folder.rename(TICKET, REVOKED)? {
            true => AttemptState::Over(Over::not_begun("its warden ended before it began")),
            false => AttemptState::Alone,
        })
    }

    /// Ends the remaining processes of an attempt without a warden, and orphans of unknown origin.
    /// It is over when none is left in two snapshots in a row, because a process has no environment
    /// for a moment while it becomes another program. Until then the attempt holds its nodes and
    /// power.
    pub(super) fn bury(
        &mut self,
        present: &Processes,
        marks: &Marks,
        orphans: &[Process],
    ) -> io::Result<Option<End>> {
        self.meet()?;
        let mark = speed::file_of(&self.folder.path);
        let known = self.command.into_iter().chain(self.seen.iter().copied());
        let mut left = present.left(marks, mark.as_os_str(), known.collect::<Vec<_>>());
        left.extend(orphans);
        let mut result = Ok(());
        for process in &left {
            result = result.and(process.signal(Signal::Kill));
        }
        let mut is_quiet = left.is_empty();
        // Their children can be found even if the parents end first.
        self.seen.extend(left);
        if let Some(group) = &self.group {
            result = result.and(group.kill_all());
            is_quiet &= !group.has_anybody()?;
        }
        let was_quiet = std::mem::replace(&mut self.is_quiet, is_quiet);
        result?;
        let end = match self.is_to_die {
            Some(_) => End::Signalled(rustix::process::Signal::KILL.as_raw()),
            None => End::Lost,
        };
        Ok((was_quiet && is_quiet).then_some(end))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::engines::local::folder::{CLAIMED, STARTED};
    use crate::host::process::boot;
    use crate::patience::wait_until;

    /// The one process below a warden.
    fn below(warden: Process) -> Stat {
        let mut found = None;
        wait_until("a process with a group of its own", || {
            let below = Processes::now().unwrap().below(warden);
            // It has a group of its own soon, but not before it is there.
            if let [stat] = below[..]
                && stat.group == stat.process.number
            {
                found = Some(stat);
            }
            found.is_some()
        });
        found.unwrap()
    }

    fn is_stopped(process: Process) -> bool {
        Stat::of(process.number).unwrap().is_some_and(|stat| stat.is_stopped)
    }

    /// A daemon that comes back knows no warden before that has said who its command is. Whoever was stopped
    /// earlier would stand still for ever.
    #[test]
    fn nobody_is_stopped_before_its_warden_says_who_it_is() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::create(place.path().join("1.1")).unwrap();
        folder.put(CLAIMED).unwrap();
        let shell = ["-c", "setsid sleep infinity & exec sleep infinity"];
        let child = Command::new("sh").args(shell).stdout(Stdio::null()).spawn().unwrap();
        let warden = Process::of(child.id() as i32).unwrap().unwrap();
        let mut watched = Watched::started(folder, None, child, Vec::new(), 1000);
        let command = below(warden).process;

        watched.signal(Signal::Suspend).unwrap();
        watched.follow_up(&Processes::now().unwrap()).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        assert!(!is_stopped(command), "its warden has not said who it is");
        assert!(watched.has_follow_up());

        let started = Started { boot: boot().unwrap(), warden, command };
        watched.folder.write(STARTED, &started).unwrap();
        watched.follow_up(&Processes::now().unwrap()).unwrap();
        wait_until("that it stands still", || is_stopped(command));
        watched.signal(Signal::Resume).unwrap();
        wait_until("that it goes on", || !is_stopped(command));

        watched.signal(Signal::Kill).unwrap();
        let warden = watched.child.as_mut().unwrap();
        warden.kill().unwrap();
        warden.wait().unwrap();
    }
}
