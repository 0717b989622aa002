//! The warden of an attempt: starts the command, waits for it, and writes down how it ended.
//!
//! It is a process of its own, with a session of its own, and outlives the daemon. Whatever the command
//! leaves behind, wherever it has put itself, becomes a child of the warden, which ends it before it
//! says that the job has ended: what comes next on these processors has them to itself.

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
use super::process::{Process, boot};
use super::tree::Processes;
use super::{cpus, speed};
use crate::engine::{End, Signal};

/// How long what a command leaves behind may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);

/// How long one waits before one tries again to write down an end.
const AGAIN: Duration = Duration::from_millis(200);

/// The most that is kept of why a command could not be run.
const LONGEST_REASON: u64 = 4096;

/// Runs the attempt in this folder, unless somebody else does or it was revoked.
pub fn watch(folder: &Path) -> io::Result<()> {
    let folder = Folder::at(folder);
    close_descriptors()?;
    // A leader of a session already has what it wants.
    let _ = setsid();
    let Lock::Own(_held) = folder.lock(TICKET)? else { return Ok(()) };
    if !folder.rename(TICKET, CLAIMED)? {
        return Ok(());
    }
    let end = run(&folder).unwrap_or_else(|error| End::Failed(error.to_string()));
    // A full disk may have room again. Until then the job counts as running; nobody is told what may
    // be forgotten.
    while let Err(error) = folder.write(ENDED, &end) {
        if !folder.has(CLAIMED).unwrap_or(true) {
            return Err(error);
        }
        sleep(AGAIN);
    }
    Ok(())
}

fn run(folder: &Folder) -> io::Result<End> {
    folder.sync()?;
    set_child_subreaper(Pid::from_raw(std::process::id() as i32))?;
    let this = Process::this()?;
    let Some(mut ticket) = folder.read::<Ticket>(CLAIMED)? else {
        return Ok(End::Failed("it does not say what is to be run".to_owned()));
    };
    ticket.group = folder.read_whole::<Group>(GROUP)?;
    let cannot_enter = |group: &mut Group| group.make().and_then(|()| group.enter()).is_err();
    if let Some(group) = ticket.group.take_if(cannot_enter) {
        // Then its processes are found one by one.
        folder.remove(GROUP)?;
        let _ = group.remove();
    }
    if let Some(cpus) = folder.read::<Vec<u32>>(CPUS)? {
        cpus::pin(this, &cpus)?;
    }
    let mut child = spawn_exec(folder)?;
    let began = begin(folder, &ticket, this, &mut child);
    if began.is_err() {
        // It may have begun all the same, and must not run on where nobody knows of it.
        child.kill()?;
    }
    let status = child.wait()?;
    clean_up(this)?;
    Ok(match (began?, status.code(), status.signal()) {
        (Some(reason), ..) => End::Failed(reason),
        (None, Some(code), _) => End::Exited(code),
        (None, None, Some(signal)) => End::Signalled(signal),
        (None, None, None) => End::Lost,
    })
}

/// The process that will become the command, when it is told which.
fn spawn_exec(folder: &Folder) -> io::Result<Child> {
    // By this name it is found whoever the process is, and though another version was installed since.
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

/// Lets the command begin, and waits until it has. Why it could not, if it could not.
fn begin(
    folder: &Folder,
    ticket: &Ticket,
    warden: Process,
    child: &mut Child,
) -> io::Result<Option<String>> {
    let number = child.id() as i32;
    // It is not waited for yet, so it is there, if only to be waited for.
    let command = Process::of(number)?.unwrap_or(Process { number, began: 0 });
    folder.write(STARTED, &Started { boot: boot()?, warden, command })?;
    // From now on whoever wants something of the command finds it. What was wanted before is here.
    catch_up(folder, warden, command)?;
    if let Some(mut input) = child.stdin.take() {
        // If it does not listen, it says why, or its end does.
        let _ = input.write_all(&serde_json::to_vec(ticket)?);
    }
    let mut reason = Vec::new();
    if let Some(output) = child.stdout.take() {
        output.take(LONGEST_REASON).read_to_end(&mut reason)?;
    }
    Ok((!reason.is_empty()).then(|| String::from_utf8_lossy(&reason).into_owned()))
}

/// Does what the daemon wanted while nobody could be found. It may change its mind meanwhile: then it
/// finds the command itself, but perhaps before this does what it wanted first. So one looks again.
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

/// Ends everything that the command has left behind: children, and theirs.
fn clean_up(warden: Process) -> io::Result<()> {
    let since = Instant::now();
    let mut asked = BTreeSet::new();
    let mut rest = Duration::from_millis(1);
    loop {
        // Reap who has ended; without children there is nobody left.
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
            // Whom it may not end it waits for.
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
