//! The warden of an attempt: starts the command, waits for it, and writes down how it ended.
//!
//! The warden is a process with a session of its own, and outlives the daemon. Whatever processes the
//! command leaves behind become children of the warden, which ends them before it reports the end of
//! the job, so that the next job has the processors to itself.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, set_child_subreaper, setsid, wait};

use super::folder::{
    CLAIMED, CPUS, ENDED, Folder, GROUP, Lock, STARTED, SUSPENDED, Started, TICKET, Ticket,
};
use super::group::Group;
use super::inheritance::close_descriptors;
use super::over::Over;
use super::tree::Processes;
use super::{cpus, speed};
use crate::engine::Signal;
use crate::host::process::{Process, boot};
use crate::job::End;

/// How long leftover processes may take to end before they are killed.
const GRACE: Duration = Duration::from_secs(2);

/// The pause before writing the end is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// The longest kept message about a command that could not be run, in bytes.
const LONGEST_MESSAGE: u64 = 64 << 10;

/// Runs the attempt in this folder, unless another warden does or it was revoked.
pub fn watch(folder: &Path) -> io::Result<()> {
    let folder = Folder::at(folder);
    close_descriptors()?;
    // This fails if the process leads a session already, which is fine.
    let _ = setsid();
    let Lock::Own(_held) = folder.lock(TICKET)? else { return Ok(()) };
    if !folder.rename(TICKET, CLAIMED)? {
        return Ok(());
    }
    let over = run(&folder);
    // Nobody reads the ticket again. On a full disk its space is enough to write the end.
    let _ = folder.empty(CLAIMED);
    // A full disk may have space again. Until then the job counts as running.
    while let Err(error) = folder.write(ENDED, &over) {
        if !folder.has(CLAIMED).unwrap_or(true) {
            return Err(error);
        }
        sleep(AGAIN);
    }
    Ok(())
}

/// Runs the command to its end. Whatever goes wrong before it was let go is not the job's fault.
fn run(folder: &Folder) -> Over {
    let (ticket, warden) = match settle(folder) {
        Ok(ready) => ready,
        Err(error) => return Over::not_begun(error),
    };
    let mut child = match spawn_exec(folder) {
        Ok(child) => child,
        Err(error) => return Over::not_begun(error),
    };
    if let Err(error) = announce(folder, warden, &child) {
        end(&mut child);
        return Over::not_begun(error);
    }
    let let_go = let_go(&ticket, &mut child);
    if let_go.is_err() {
        // The command may have started, and must not run on unobserved.
        end(&mut child);
    }
    let ended = child.wait().and_then(|status| clean_up(warden).map(|()| status));
    match (let_go, ended) {
        (Ok(Some(over)), _) => over,
        (Err(error), _) | (_, Err(error)) => Over::Ended(End::Failed(error.to_string())),
        (Ok(None), Ok(status)) => Over::Ended(match (status.code(), status.signal()) {
            (Some(code), _) => End::Exited(code),
            (None, Some(signal)) => End::Signalled(signal),
            (None, None) => End::Lost,
        }),
    }
}

/// Ends a child that was not waited for.
fn end(child: &mut Child) {
    // It exists at least as a zombie, and so can be signalled and waited for.
    let _ = child.kill();
    let _ = child.wait();
}

/// Makes this process the warden of the attempt. Returns what to run, and the process.
fn settle(folder: &Folder) -> io::Result<(Ticket, Process)> {
    folder.sync()?;
    set_child_subreaper(Pid::from_raw(std::process::id() as i32))?;
    let this = Process::this()?;
    let ticket = folder.read::<Ticket>(CLAIMED)?;
    let mut ticket = ticket.ok_or_else(|| io::Error::other("its ticket is missing"))?;
    ticket.group = folder.read_whole::<Group>(GROUP)?;
    let cannot_enter = |group: &mut Group| group.make().and_then(|()| group.enter()).is_err();
    if let Some(group) = ticket.group.take_if(cannot_enter) {
        // Without a control group, processes are found one by one.
        folder.remove(GROUP)?;
        let _ = group.remove();
    }
    if let Some(cpus) = folder.read::<Vec<u32>>(CPUS)? {
        cpus::pin(this, &cpus)?;
    }
    Ok((ticket, this))
}

/// Starts the process that will become the command once it is told which.
fn spawn_exec(folder: &Folder) -> io::Result<Child> {
    // This name works for any user, and even if another version was installed meanwhile.
    Command::new("/proc/self/exe")
        .arg("job-exec")
        .env_clear()
        .env(speed::VARIABLE, speed::file_of(&folder.path))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

/// Tells the daemon which process will be the command.
fn announce(folder: &Folder, warden: Process, child: &Child) -> io::Result<()> {
    let number = child.id() as i32;
    // The child was not waited for yet, so it exists at least as a zombie.
    let command = Process::of(number)?.unwrap_or(Process { number, began: 0 });
    folder.write(STARTED, &Started { boot: boot()?, warden, command })?;
    // From now on the daemon finds the command. What it wanted before is done here.
    catch_up(folder, warden, command)
}

/// Lets the command start, and waits until it has. Returns how the attempt is over if it could not.
fn let_go(ticket: &Ticket, child: &mut Child) -> io::Result<Option<Over>> {
    if let Some(mut input) = child.stdin.take() {
        // If the child does not listen, it reports why, or its exit status does.
        let _ = input.write_all(&serde_json::to_vec(ticket)?);
    }
    let mut message = Vec::new();
    if let Some(output) = child.stdout.take() {
        output.take(LONGEST_MESSAGE).read_to_end(&mut message)?;
    }
    let told = |message: &[u8]| {
        let reason = || String::from_utf8_lossy(message).into_owned();
        serde_json::from_slice(message).unwrap_or_else(|_| Over::Ended(End::Failed(reason())))
    };
    Ok((!message.is_empty()).then(|| told(&message)))
}

/// Applies what the daemon asked for before the command could be found. The daemon may change its
/// mind meanwhile and reach the command itself, perhaps before an older request is applied here, so
/// this checks again.
fn catch_up(folder: &Folder, warden: Process, command: Process) -> io::Result<()> {
    let mut done = None;
    loop {
        let wanted = folder.read::<Vec<u32>>(CPUS)?;
        if wanted == done {
            break;
        }
        for process in [warden, command] {
            cpus::pin(process, wanted.as_deref().unwrap_or_default())?;
        }
        done = wanted;
    }
    if folder.has(SUSPENDED)? {
        command.signal(Signal::Suspend)?;
        if !folder.has(SUSPENDED)? {
            command.signal(Signal::Resume)?;
        }
    }
    Ok(())
}

/// Ends all processes that the command has left behind.
fn clean_up(warden: Process) -> io::Result<()> {
    let since = Instant::now();
    let mut asked = BTreeSet::new();
    let mut rest = Duration::from_millis(1);
    loop {
        // Reap zombies; without children, all are gone.
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => continue,
                Ok(None) => break,
                Err(rustix::io::Errno::CHILD) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        let is_over = since.elapsed() > GRACE;
        for stat in Processes::now()?.below(warden) {
            // Processes that it may not signal are waited for.
            let _ = match (is_over, asked.insert(stat.process)) {
                (true, _) => stat.process.signal(Signal::Kill),
                (false, true) => stat.process.signal(Signal::Terminate),
                (false, false) => Ok(()),
            };
        }
        sleep(rest);
        rest = (rest * 2).min(Duration::from_millis(100));
    }
}
