//! Slurm on a machine that has none: the packages of Debian.

use std::path::Path;
use std::process::{Command, Stdio};

use super::LabError;
use super::process;

/// What a lab needs of Slurm, as programs.
const PROGRAMS: [&str; 7] =
    ["munged", "slurmctld", "slurmd", "scontrol", "squeue", "sbatch", "scancel"];

/// The packages of Debian that hold them.
const PACKAGES: [&str; 2] = ["slurm-wlm", "munge"];

/// The programs that are missing.
pub fn missing() -> Vec<&'static str> {
    let path = process::path();
    let is_there =
        |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    PROGRAMS.into_iter().filter(|program| !is_there(program)).collect()
}

/// Installs what is missing. It is tried twice, since package caches fail at times.
pub fn ensure() -> Result<(), LabError> {
    if missing().is_empty() {
        return Ok(());
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        let text =
            "there is no apt-get; install slurmctld, slurmd, Slurm's commands and munge yourself";
        return Err(LabError::Packages(text.to_owned()));
    }
    let mut last = install();
    if last.is_err() {
        last = install();
    }
    match (last, missing().as_slice()) {
        (_, []) => Ok(()),
        (Err(text), _) => Err(LabError::Packages(text)),
        (Ok(()), left) => {
            Err(LabError::Packages(format!("after apt-get there is still no {}", left.join(", "))))
        }
    }
}

fn install() -> Result<(), String> {
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
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
    arguments.extend(PACKAGES);
    apt(&arguments)
}
