//! Slurm on a machine that has none: the packages of Debian.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::process;
use super::{CONTROLLER, Extras, LabError};
use crate::program::Programs;
use crate::version::Version;

/// Programs that a lab needs, and the packages of Debian that hold them.
struct Needed {
    /// Those of Slurm itself.
    slurm: &'static [&'static str],
    /// What it needs of others.
    others: &'static [&'static str],
    packages: &'static [&'static str],
}

/// What any lab needs.
const USUAL: Needed = Needed {
    slurm: &["slurmctld", "slurmd", "scontrol", "squeue", "sbatch", "scancel"],
    others: &["munged"],
    packages: &["slurm-wlm", "munge"],
};

/// What a lab with slurmrestd needs besides.
const REST: Needed = Needed {
    slurm: &["slurmrestd"],
    others: &[],
    packages: &["slurmrestd", "slurm-wlm-jwt-plugin"],
};

/// What a lab with accounting needs besides.
const ACCOUNTING: Needed = Needed {
    slurm: &["slurmdbd", "sacct", "sacctmgr"],
    others: &["mariadbd", "mariadb-install-db"],
    packages: &["slurmdbd", "mariadb-server"],
};

/// The programs that are missing for a lab with the Slurm of this machine.
pub(crate) fn missing(extras: Extras) -> Vec<&'static str> {
    let path = process::path(None);
    let all = needed(extras).into_iter().flat_map(|needed| [needed.slurm, needed.others].concat());
    all.filter(|program| !is_in(&path, program)).collect()
}

fn is_in(path: &OsStr, program: &str) -> bool {
    std::env::split_paths(path).any(|folder| folder.join(program).is_file())
}

fn needed(extras: Extras) -> Vec<Needed> {
    let mut needed = vec![USUAL];
    needed.extend(extras.rest.then_some(REST));
    needed.extend(extras.accounting.then_some(ACCOUNTING));
    needed
}

/// The version of Slurm in these folders. Commands do not say it before there is a configuration.
pub(crate) fn version(path: &OsStr) -> Result<Version, LabError> {
    let printed = Programs::default().with_variable("PATH", path).run(CONTROLLER, &["-V"])?;
    printed.out.parse().map_err(|error| LabError::Unsuitable(format!("{CONTROLLER} -V: {error}")))
}

/// Whether another Slurm than that of the machine is complete. What is missing of it is not taken from the machine's, which may be
/// of another version; what is not of Slurm may be anywhere.
pub(crate) fn check(folder: &Path, extras: Extras) -> Result<(), LabError> {
    let own = process::folders(folder);
    let is_there = |program: &&str| own.iter().any(|folder| folder.join(program).is_file());
    let of_slurm = needed(extras).into_iter().flat_map(|needed| needed.slurm);
    let absent: Vec<&str> = of_slurm.copied().filter(|program| !is_there(program)).collect();
    if !absent.is_empty() {
        return Err(LabError::Unsuitable(format!(
            "there is no {} in bin and sbin of {}",
            absent.join(", "),
            folder.display()
        )));
    }
    let path = process::path(Some(folder));
    let others = needed(extras).into_iter().flat_map(|needed| needed.others);
    let absent: Vec<&str> = others.copied().filter(|program| !is_in(&path, program)).collect();
    match absent.is_empty() {
        true => Ok(()),
        false => Err(LabError::Unsuitable(format!(
            "{} is neither in bin and sbin of {} nor in the path",
            absent.join(", "),
            folder.display()
        ))),
    }
}

/// Installs what is missing. It is tried twice, since package caches fail at times.
pub(crate) fn ensure(extras: Extras) -> Result<(), LabError> {
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
    arguments.extend(needed(extras).into_iter().flat_map(|needed| needed.packages.iter().copied()));
    apt(&arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with some programs of Slurm does not get the others from this machine.
    #[test]
    fn another_slurm_is_complete_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        for program in USUAL.slurm.iter().filter(|program| **program != "squeue") {
            std::fs::write(folder.path().join("bin").join(program), "").unwrap();
        }
        let usual = Extras::default();
        let error = check(folder.path(), usual).unwrap_err().to_string();
        assert!(error.starts_with("there is no squeue in bin and sbin of"), "{error}");
        std::fs::write(folder.path().join("bin/squeue"), "").unwrap();
        std::fs::write(folder.path().join("bin/munged"), "").unwrap();
        check(folder.path(), usual).unwrap();
        let error = check(folder.path(), Extras { rest: true, ..usual }).unwrap_err().to_string();
        assert!(error.starts_with("there is no slurmrestd in bin and sbin of"), "{error}");
    }
}
