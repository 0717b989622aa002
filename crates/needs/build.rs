//! Looks for what tests can need, and tells the attribute what is missing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[path = "src/table.rs"]
mod table;

/// Where programs are that the path of an ordinary user may leave out.
const SYSTEM: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/usr/sbin", "/sbin"];

/// What the answers depend on, besides the folders of programs.
const VARIABLES: [&str; 15] = [
    "BUSBAR_AXE",
    "BUSBAR_CHROMIUM",
    "BUSBAR_LAB_ACCOUNTING",
    "BUSBAR_POWER",
    "BUSBAR_SCHEMATHESIS",
    "BUSBAR_SLURM_ANSWERS",
    "BUSBAR_SLURM_PROGRAMS",
    "BUSBAR_SLURM_FIDELITY",
    "BUSBAR_SLURM_TRIAL",
    "BUSBAR_TRACES",
    "HOME",
    "LOGNAME",
    "PATH",
    "SUDO_USER",
    "USER",
];

fn main() {
    for variable in VARIABLES {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    for folder in SYSTEM.iter().filter(|folder| Path::new(folder).is_dir()) {
        println!("cargo::rerun-if-changed={folder}");
    }
    for file in ["build.rs", "src/table.rs"] {
        println!("cargo::rerun-if-changed={file}");
    }
    let lacking: Vec<&str> =
        table::NEEDS.iter().map(|(name, _)| *name).filter(|name| !is_there(name)).collect();
    println!("cargo::rustc-env=BUSBAR_NEEDS_LACKING={}", lacking.join(" "));
}

fn is_there(name: &str) -> bool {
    match name {
        "accounting" => is_one("BUSBAR_LAB_ACCOUNTING"),
        "answers" => names_something("BUSBAR_SLURM_ANSWERS"),
        "axe" => names_something("BUSBAR_AXE"),
        "cgroups" => is_root() && can_group(),
        "chromium" => {
            names_something("BUSBAR_CHROMIUM")
                || ["chromium", "chromium-browser", "google-chrome"].iter().any(|name| has(name))
        }
        "logs" => names_something("BUSBAR_TRACES"),
        "lua" => ["lua", "lua5.4", "lua5.3", "lua5.1"].iter().any(|name| has(name)),
        "mounts" => {
            let folder = std::env::var("OUT_DIR").expect("cargo names a folder");
            is_root() && can("unshare", &["--mount", "mount", "-t", "tmpfs", "none", &folder])
        }
        "fidelity" => std::env::var_os("BUSBAR_SLURM_FIDELITY").is_some_and(|run| !run.is_empty()),
        // Who is not root can be root in a network of their own.
        "network" if is_root() => can("unshare", &["--net", "ip", "link"]),
        "network" => can("unshare", &["--net", "--map-root-user", "ip", "link"]),
        "ordinary" => !is_root(),
        "power" => names_something("BUSBAR_POWER"),
        "processors" => own("Cpus_allowed_list:").starts_with("0-"),
        "python" => can("python3", &["-c", ""]),
        "root" => is_root(),
        "schemathesis" => names_something("BUSBAR_SCHEMATHESIS"),
        // Another Slurm is complete, or starting it says what is missing.
        "slurm" | "slurmrestd" if names_something("BUSBAR_SLURM_PROGRAMS") => is_root(),
        "slurm" => {
            is_root() && ["munged", "slurmctld", "slurmd", "sbatch"].iter().all(|name| has(name))
        }
        "slurmrestd" => has("slurmrestd"),
        "trial" => is_one("BUSBAR_SLURM_TRIAL"),
        program => has(program),
    }
}

fn is_one(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

/// Whether a variable names a file or a folder, or a program in the path.
fn names_something(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|named| Path::new(&named).exists() || has(&named))
}

fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SYSTEM.iter().map(PathBuf::from));
    !program.is_empty() && folders.into_iter().any(|folder| folder.join(program).is_file())
}

/// Whether a program says that something can be done.
fn can(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A line of what the kernel says about this process.
fn own(name: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim().to_owned()
}

fn is_root() -> bool {
    own("Uid:").split_whitespace().nth(1) == Some("0")
}

/// Whether control groups can be made by hand, and marked as delegated.
fn can_group() -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let Some(top) = mount.and_then(|line| line.split(' ').nth(4)) else { return false };
    let group = Path::new(top).join(format!("busbar-needs-{}", std::process::id()));
    // Marks came to control groups with Linux 5.7.
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let numbers: Vec<u32> = release.split(['.', '-']).flat_map(str::parse).collect();
    numbers[..] >= [5, 7][..]
        && !Path::new("/run/systemd/system").exists()
        && std::fs::create_dir(&group).and_then(|()| std::fs::remove_dir(&group)).is_ok()
}
