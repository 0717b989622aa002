//! Slurm on a machine that has none: the packages of Debian.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::process;
use super::{CONTROLLER, Extras, LabError};
use crate::program::Programs;
use crate::version::Version;

/// What a lab needs of Slurm, as programs, and the packages of Debian that hold them.
const SLURM: (&[&str], &[&str]) = (
    &["munged", "slurmctld", "slurmd", "scontrol", "squeue", "sbatch", "scancel"],
    &["slurm-wlm", "munge"],
);

/// What a lab with slurmrestd needs besides.
const REST: (&[&str], &[&str]) = (&["slurmrestd"], &["slurmrestd", "slurm-wlm-jwt-plugin"]);

/// What a lab with accounting needs besides.
const ACCOUNTING: (&[&str], &[&str]) =
    (&["slurmdbd", "mariadbd", "mariadb-install-db"], &["slurmdbd", "mariadb-server"]);

/// The programs that are missing for a lab with the Slurm of this machine.
pub fn missing(extras: Extras) -> Vec<&'static str> {
    missing_in(&process::path(None), extras)
}

fn missing_in(path: &OsStr, extras: Extras) -> Vec<&'static str> {
    let is_there =
        |program: &str| std::env::split_paths(path).any(|folder| folder.join(program).is_file());
    let programs = needed(extras).into_iter().flat_map(|(programs, _)| programs.iter().copied());
    programs.filter(|program| !is_there(program)).collect()
}

fn needed(extras: Extras) -> Vec<(&'static [&'static str], &'static [&'static str])> {
    let mut needed = vec![SLURM];
    needed.extend(extras.rest.then_some(REST));
    needed.extend(extras.accounting.then_some(ACCOUNTING));
    needed
}

/// The version of Slurm in these folders. Commands do not say it before there is a configuration.
pub fn version(path: &OsStr) -> Result<Version, LabError> {
    let printed = Programs::default().with_variable("PATH", path).run(CONTROLLER, &["-V"])?;
    printed.out.parse().map_err(|error| LabError::Unsuitable(format!("{CONTROLLER} -V: {error}")))
}

/// Whether another Slurm than that of the machine is complete.
pub fn check(folder: &Path, extras: Extras) -> Result<(), LabError> {
    let missing = missing_in(&process::path(Some(folder)), extras);
    match missing.is_empty() {
        true => Ok(()),
        false => Err(LabError::Unsuitable(format!(
            "{} is neither in bin and sbin of {} nor in the path",
            missing.join(", "),
            folder.display()
        ))),
    }
}

/// Installs what is missing. It is tried twice, since package caches fail at times.
pub fn ensure(extras: Extras) -> Result<(), LabError> {
    if missing(extras).is_empty() {
        return Ok(());
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        let text =
            "there is no apt-get; install slurmctld, slurmd, Slurm's commands and munge yourself";
        return Err(LabError::Packages(text.to_owned()));
    }
    // Several threads of one program do not get into each other's way; others wait for apt's own lock.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if missing(extras).is_empty() {
        return Ok(());
    }
    let mut last = install(extras);
    if last.is_err() {
        last = install(extras);
    }
    match (last, missing(extras).as_slice()) {
        (_, []) => Ok(()),
        (Err(text), _) => Err(LabError::Packages(text)),
        (Ok(()), left) => {
            Err(LabError::Packages(format!("after apt-get there is still no {}", left.join(", "))))
        }
    }
}

fn install(extras: Extras) -> Result<(), String> {
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .args(["-o", "DPkg::Lock::Timeout=300"])
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null());
        let output = command.output().map_err(|error| format!("apt-get: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
                Err(format!("'apt-get {}' failed: {last}", arguments.join(" ")))
            }
        }
    };
    apt(&["update", "-qq"])?;
    let mut arguments = vec!["install", "-y", "-qq", "--no-install-recommends"];
    arguments.extend(needed(extras).into_iter().flat_map(|(_, packages)| packages.iter().copied()));
    apt(&arguments)
}
