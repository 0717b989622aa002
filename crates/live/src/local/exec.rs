//! The process that becomes the command of a job.
//!
//! It reads from standard input what to run, and takes on the identity of the job's owner before
//! anything else. So files are opened and folders entered with that user's rights. As long as its
//! standard output is open it has not become the command; what it writes there is the reason why it
//! could not.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::folder::Ticket;
use super::inheritance::{become_owner, close_descriptors};
use crate::engine::Launch;

/// Becomes the command described on standard input. Returns only if that fails.
pub fn enter() -> io::Error {
    let launch = match settle() {
        Ok(launch) => launch,
        Err(error) => {
            // If this fails, the warden still sees that nothing ran.
            let mut output = io::stdout();
            let _ = output.write_all(error.to_string().as_bytes()).and_then(|()| output.flush());
            return error;
        }
    };
    // The kernel closes it at the moment this process becomes the command.
    let said = match io::stdout().as_fd().try_clone_to_owned() {
        Ok(said) => said,
        Err(error) => return error,
    };
    let error = become_command(&launch);
    let _ = File::from(said).write_all(error.to_string().as_bytes());
    error
}

/// Applies the settings of the job: limits first, since its owner may not raise them.
fn settle() -> io::Result<Launch> {
    let mut text = Vec::new();
    io::stdin().read_to_end(&mut text)?;
    // Empty or incomplete input means that the warden is gone.
    let Ticket { launch, inheritance, group } = serde_json::from_slice(&text)?;
    if let Some(group) = group {
        group.enter_job().map_err(about("enter", "its control group"))?;
    }
    inheritance.apply()?;
    if let Some((user, group)) = launch.owner {
        become_owner(user, group)?;
    }
    // Inherited descriptors, and those opened by the name service.
    close_descriptors()?;
    Ok(launch)
}

fn become_command(launch: &Launch) -> io::Error {
    match prepare(launch) {
        Ok((mut command, program)) => about("run", program)(command.exec()),
        Err(error) => error,
    }
}

fn prepare(launch: &Launch) -> io::Result<(Command, &str)> {
    let Some((program, arguments)) = launch.command.split_first() else {
        return Err(io::Error::other("there is no command"));
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
fn open(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map_err(about("write to", &path.display().to_string()))
}

/// Adds to an error what could not be done.
fn about<'a>(what: &'static str, whom: &'a str) -> impl FnOnce(io::Error) -> io::Error + 'a {
    move |error| io::Error::new(error.kind(), format!("cannot {what} {whom}: {error}"))
}
