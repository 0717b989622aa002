//! An attempt that is under way, as the daemon sees it.
//!
//! What is wanted of a job reaches its command at once, with all of the process group. Processes that
//! have left the group are met on an errand: at the next look at all processes, and again until
//! nobody new is met. So the cost of a look does not grow with the number of jobs of which something
//! is wanted.
//!
//! Somebody has to see to the warden, too: it may be told to stand still, or be killed. So every now and
//! then a daemon [tends](Watched::tend) an attempt, lets its warden go on, and notes who is below it. What
//! is left without a warden is then known by that, or by its control group.

use std::collections::BTreeSet;
use std::io;
use std::process::Child;
use std::time::{Duration, Instant};

use super::folder::{CPUS, ENDED, Folder, GROUP, REVOKED, SEEN, SUSPENDED, Started, TICKET};
use super::group::Group;
use super::process::{Process, Stat};
use super::tree::{Marks, Processes};
use super::{cpus, speed};
use crate::engine::{End, Signal};

/// How long a warden may take to say that a job has ended that was ended by force.
const GRACE: Duration = Duration::from_secs(5);

/// An attempt that is under way.
pub(super) struct Watched {
    pub(super) folder: Folder,
    /// The warden, if it is a child of this process; so that nothing is left of it when it ends.
    child: Option<Child>,
    /// The process that all others of the job are below, once it is known.
    warden: Option<Process>,
    command: Option<Process>,
    /// Its control group, if it has one of its own.
    group: Option<Group>,
    /// Who was below its warden at the last look, and whether that is in its folder.
    seen: BTreeSet<Process>,
    is_noted: bool,
    /// Since when it is to be ended by force.
    is_to_die: Option<Instant>,
    /// By what its ticket was revoked.
    revoked: Option<Signal>,
    /// What it is known to have.
    cpus: Option<Vec<u32>>,
    speed: Option<u32>,
    follow_up: FollowUp,
    /// Whether its warden is gone without a word, and nobody was left at the last look.
    is_quiet: bool,
}

/// What is still to be done to processes that have left the group.
#[derive(Default)]
struct FollowUp {
    signals: Vec<Signal>,
    is_to_pin: bool,
    /// Who was met already.
    met: BTreeSet<Process>,
}

impl FollowUp {
    fn is_done(&self) -> bool {
        self.signals.is_empty() && !self.is_to_pin
    }
}

/// How an attempt stands.
pub(super) enum AttemptState {
    /// Its warden is there.
    Watched,
    /// It is over.
    Over(End),
    /// Its warden is gone without a word. What is left of it is nobody's.
    Alone,
}

impl Watched {
    /// One that this process has started.
    pub(super) fn started(
        folder: Folder,
        group: Option<Group>,
        child: Child,
        cpus: Vec<u32>,
        speed: u32,
    ) -> Self {
        // It is not waited for yet, so it is there, if only to be waited for.
        let warden = Process::of(child.id() as i32).unwrap_or_default();
        let (child, cpus, speed) = (Some(child), Some(cpus), Some(speed));
        Watched { child, warden, cpus, speed, ..Watched::with(folder, group) }
    }

    /// One that another has.
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

    /// Learns who runs it, if that is known by now.
    fn meet(&mut self) -> io::Result<()> {
        if self.command.is_none()
            && let Some(Started { warden, command, .. }) = self.folder.started()?
        {
            (self.warden, self.command) = (Some(warden), Some(command));
            // Unless its warden could not enter it.
            self.group = self.folder.read_whole(GROUP)?;
            // Another daemon may have seen some.
            let seen = self.folder.read_whole::<Vec<Process>>(SEEN)?;
            self.seen.extend(seen.unwrap_or_default());
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
            (self.follow_up.is_to_pin, self.follow_up.met) = (true, BTreeSet::new());
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

    /// The warden's number, if it is a child of this process.
    pub(super) fn child(&self) -> Option<i32> {
        self.child.as_ref().map(|child| child.id() as i32)
    }

    /// Whether nobody but who looks at all processes knows which of them belong to it.
    pub(super) fn is_ungrouped(&self) -> bool {
        self.group.is_none()
    }

    /// Lets a warden go on that stands still, notes who is below it, and ends it if the job was ended by
    /// force and it does not say so.
    pub(super) fn tend(&mut self, present: Option<&Processes>) -> io::Result<()> {
        self.meet()?;
        let Some(warden) = self.warden else { return Ok(()) };
        let stat = Stat::of(warden.number)?.filter(|stat| stat.process == warden && !stat.is_over);
        let Some(stat) = stat else { return Ok(()) };
        if stat.is_stopped {
            tracing::warn!(warden = warden.number, "a warden was stopped; it is told to go on");
            warden.signal(Signal::Resume)?;
        }
        if let Some(present) = present.filter(|_| self.is_ungrouped()) {
            self.note(present.below(warden))?;
        }
        let is_overdue = self.is_to_die.is_some_and(|since| since.elapsed() > GRACE);
        if is_overdue && !self.has_job()? {
            tracing::warn!(warden = warden.number, "a warden does not answer; it is ended");
            warden.signal(Signal::Kill)?;
        }
        Ok(())
    }

    /// Whether anything of the job was alive when somebody looked.
    fn has_job(&self) -> io::Result<bool> {
        self.group.as_ref().map_or(Ok(!self.seen.is_empty()), Group::has_job)
    }

    /// Notes who is below the warden, also for daemons to come.
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

    /// Does it to those that are there. When nobody new is met, it is done.
    ///
    /// Until its warden has said who the command is, nobody is touched: the warden sees to it as soon as it
    /// has. A stage that was stopped before that could only be told to go on by a daemon that has started the
    /// warden itself; one that came later would wait for a word that never comes.
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
        // One that is about to begin is still to be met.
        if !is_anybody_new && was_known {
            self.follow_up = FollowUp::default();
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
            return Ok(AttemptState::Over(End::Signalled(number)));
        }
        if let Some(end) = self.folder.read_whole(ENDED)? {
            return Ok(AttemptState::Over(end));
        }
        Ok(match self.folder.rename(TICKET, REVOKED)? {
            true => {
                let why = "what was to watch over it ended before it began";
                AttemptState::Over(End::Failed(why.to_owned()))
            }
            false => AttemptState::Alone,
        })
    }

    /// Ends what is left of it without its warden, and those of whom nobody knows whose they are. It is
    /// over when nobody is left, twice: a process that is just becoming another program has no environment
    /// for a moment. Until then it holds what it has.
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
        // Their children are known even if they end first.
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
    use crate::local::folder::{CLAIMED, STARTED};
    use crate::local::process::boot;

    /// The one process below a warden.
    fn below(warden: Process) -> Stat {
        let began = Instant::now();
        loop {
            let below = Processes::now().unwrap().below(warden);
            // It has a group of its own soon, but not before it is there.
            if let [stat] = below[..]
                && stat.group == stat.process.number
            {
                return stat;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{below:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn is_stopped(process: Process) -> bool {
        Stat::of(process.number).unwrap().is_some_and(|stat| stat.is_stopped)
    }

    fn wait_until(what: impl Fn() -> bool) {
        let began = Instant::now();
        while !what() {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// A daemon that comes back knows no warden before that has said who its command is. Whoever was stopped
    /// earlier would stand still for ever.
    #[test]
    fn nobody_is_stopped_before_its_warden_says_who_it_is() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::create(place.path().join("1.1")).unwrap();
        folder.put(CLAIMED).unwrap();
        let shell = ["-c", "setsid sleep 60 & exec sleep 60"];
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
        wait_until(|| is_stopped(command));
        watched.signal(Signal::Resume).unwrap();
        wait_until(|| !is_stopped(command));

        watched.signal(Signal::Kill).unwrap();
        let warden = watched.child.as_mut().unwrap();
        warden.kill().unwrap();
        warden.wait().unwrap();
    }
}
