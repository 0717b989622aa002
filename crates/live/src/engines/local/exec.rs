//! The process that becomes the command of a job.
//!
//! It reads from standard input what to run, and takes on the identity of the job's owner before
//! anything else. So files are opened and folders entered with that user's rights. As long as its
//! standard output is open it has not become the command; what it writes there is how the attempt is
//! over because it could not.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::folder::Ticket;
use super::inheritance::{become_owner, close_descriptors};
use super::over::Over;
use crate::engine::Launch;

/// Becomes the command described on standard input. Returns only if that fails.
pub fn enter() -> io::Error {
    let (said, over) = match settle() {
        Ok(launch) => match io::stdout().as_fd().try_clone_to_owned() {
            // The kernel closes it at the moment this process becomes the command.
            Ok(said) => (Some(said), become_command(&launch)),
            Err(error) => (None, Over::from(error)),
        },
        Err(over) => (None, over),
    };
    let text = serde_json::to_vec(&over).unwrap_or_default();
    // If this fails, the warden still sees that nothing ran.
    let _ = match said {
        Some(said) => File::from(said).write_all(&text),
        None => io::stdout().write_all(&text).and_then(|()| io::stdout().flush()),
    };
    io::Error::other(over.reason().unwrap_or_default().to_owned())
}

/// Applies the settings of the job: limits first, since its owner may not raise them.
fn settle() -> Result<Launch, Over> {
    let mut text = Vec::new();
    io::stdin().read_to_end(&mut text)?;
    // Empty or incomplete input means that the warden is gone.
    let ticket = serde_json::from_slice(&text).map_err(io::Error::from)?;
    let Ticket { launch, inheritance, group } = ticket;
    if let Some(group) = group {
        let entered = group.enter_job();
        entered
            .map_err(|error| Over::not_begun(format!("cannot enter its control group: {error}")))?;
    }
    inheritance.apply()?;
    if let Some((user, group)) = launch.owner {
        become_owner(user, group)?;
    }
    // Inherited descriptors, and those opened by the name service.
    close_descriptors()?;
    Ok(launch)
}

fn become_command(launch: &Launch) -> Over {
    match prepare(launch) {
        Ok((mut command, program)) => about("run", program)(command.exec()),
        Err(over) => over,
    }
}

fn prepare(launch: &Launch) -> Result<(Command, &str), Over> {
    let Some((program, arguments)) = launch.command.split_first() else {
        return Err(Over::from(io::Error::other("there is no command")));
    };
    std::env::set_current_dir(&launch.folder)
        .map_err(about("enter", &launch.folder.display().to_string()))?;
    let output = open(&launch.output)?;
    let errors = match launch.errors == launch.output {
        true => output.try_clone()?,
        false => open(&launch.errors)?,
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(launch.environment.iter().map(|(key, value)| (key, value)))
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    Ok((command, program))
}

/// Opens a file for appending.
fn open(path: &Path) -> Result<File, Over> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map_err(about("write to", &path.display().to_string()))
}

/// Tells an error together with what could not be done.
fn about<'a>(what: &'static str, whom: &'a str) -> impl FnOnce(io::Error) -> Over + 'a {
    move |error| Over::failed(&error, format!("cannot {what} {whom}: {error}"))
}
