//! A site of 64 nodes on a real Slurm for half an hour, and what the simulation makes of its records.
//!
//! The site ([`site`]) has three kinds of nodes, six users in three accounts with shares, four QOS with limits and preemption,
//! and a reservation; a script ([`drive`]) submits 1 500 jobs that are drawn from a seed ([`workload`]). What Slurm then says of
//! itself and of the jobs is kept in `recorded/`. [`compare`] holds the simulation of the same jobs against that, job by job.
//!
//! A run is recorded by `BUSBAR_SLURM_FIDELITY=fair-tree cargo test --all-features --test it fidelity::a_site_is_recorded`, into the
//! folder `BUSBAR_SLURM_FIDELITY_OUT`.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use busbar::policy::PolicySpec;
use busbar_needs::needs;
use flate2::read::GzDecoder;

use super::{CONTROLLER, Running, busbar, text};
use compare::Compared;
use drive::Cluster;
use site::{RUNS, Settings};
use workload::Submission;

mod compare;
mod draw;
mod drive;
mod shares;
mod site;
mod workload;

/// What is submitted in a run.
fn workload(run: &Settings) -> Vec<Submission> {
    let drawn = workload::draw(run.seed, run.jobs, run.during);
    match run.teaching {
        Some(_) => drawn,
        None => drawn.into_iter().map(Submission::plain).collect(),
    }
}

/// Makes a lab the site of a run.
fn set_up(running: &Running, settings: &Settings) {
    let folder = running.place();
    let of_lab = fs::read_to_string(running.lab.conf()).unwrap();
    for member in running.lab.members().unwrap() {
        if member.name == CONTROLLER || member.name.starts_with("slurmd.") {
            running.lab.stop(&member.name).unwrap();
        }
    }
    fs::write(running.lab.conf(), site::conf(&of_lab, settings)).unwrap();
    fs::write(folder.join("gres.conf"), site::gres(&folder.display().to_string())).unwrap();
    for gpu in 0..site::GPUS {
        fs::write(folder.join(format!("gpu{gpu}")), "").unwrap();
    }
    let arguments =
        ["lab", "up", "--nodes", "64", "--mode", "watch", "--no-agents", "--accounting"];
    let up = busbar(&arguments, &folder);
    assert!(up.status.success(), "{}", text(&up));
}

#[needs(slurm, accounting, fidelity)]
#[test]
fn a_site_is_recorded() {
    let wanted = std::env::var("BUSBAR_SLURM_FIDELITY").unwrap();
    let settings = RUNS.iter().find(|run| run.name == wanted);
    let settings = settings.unwrap_or_else(|| panic!("'{wanted}' is none of {RUNS:?}"));
    let running = Running::start("64", "watch", &["--no-agents", "--accounting"]);
    set_up(&running, settings);
    let conf = running.lab.conf();
    let cluster = Cluster { conf: &conf };
    cluster.account(settings);
    let out = std::env::var_os("BUSBAR_SLURM_FIDELITY_OUT");
    let folder = out.map_or_else(|| PathBuf::from("fidelity").join(settings.name), PathBuf::from);
    let workload = workload(settings);
    drive::drive(&cluster, settings, &workload, &folder);
    running.down();
    let packed = Command::new("gzip").arg("-9n").args(drive::KEPT).current_dir(&folder).status();
    assert!(packed.unwrap().success());
    println!("recorded in {}", folder.display());
}

/// What the records of a run, and what Slurm says of itself, become; without the file `what` draws, nothing is said of power.
fn imported(run: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in drive::KEPT {
        let packed = recorded(run).join(format!("{name}.gz"));
        let mut text = String::new();
        let file = fs::File::open(&packed).unwrap_or_else(|why| panic!("{packed:?}: {why}"));
        GzDecoder::new(file).read_to_string(&mut text).unwrap();
        fs::write(folder.path().join(name), text).unwrap();
    }
    let of_cluster = ["nodes.txt", "partitions.txt"];
    said(
        &[&["machine", "import", "--slurm"][..], &of_cluster, &["--out", "machine.toml"]].concat(),
        &folder,
    );
    said(&["workload", "import", "sacct.txt", "--names", "names.csv", "--out", "log.swf"], &folder);
    // The reservation has some of the nodes, which policies other than slurm do not know where nodes are of several kinds.
    let of_site = ["config.txt", "partitions.txt", "associations.txt", "qos.txt"];
    let reserved = ["nodes.txt", "reservations.txt"];
    for (out, of_more) in [("site.toml", &reserved[..]), ("unreserved.toml", &[])] {
        let (import, out) = (["site", "import"], ["--names", "names.csv", "--out", out]);
        said(&[&import[..], &of_site, of_more, &out].concat(), &folder);
    }
    folder
}

/// The folder of a recorded run.
fn recorded(run: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/slurm/fidelity/recorded").join(run)
}

fn said(arguments: &[&str], folder: &tempfile::TempDir) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
    let output = command.args(arguments).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    text(&output)
}

/// What a policy makes of a recorded run.
fn replayed(run: &Settings, folder: &tempfile::TempDir, policy: &str) -> Compared {
    // All policies of a comparison have the same site.
    let (site, other) = match policy {
        "slurm" => ("site.toml", "slurm(backfill=off)"),
        _ => ("unreserved.toml", "fcfs"),
    };
    let arguments = [
        "whatif",
        "sacct.txt",
        "--machine",
        "machine.toml",
        "--site",
        site,
        "--site-policy",
        policy,
        "--policy",
        other,
        "--budget",
        "100%",
        "--out",
        "out",
    ];
    said(&arguments, folder);
    let jobs = fs::read_to_string(folder.path().join("out/jobs.csv")).unwrap();
    let (pairs, alone) = compare::read(&jobs, "wait_no_budget_s");
    compare::compare(&pairs, alone, run.interval() as f64)
}

/// The table of `docs/reference/slurm-fidelity.md` is what the recorded runs say. After a change that is meant,
/// `BUSBAR_BLESS=1 cargo test --all-features --test it slurm::fidelity` writes it anew.
#[test]
fn the_table_is_what_the_recorded_runs_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/slurm-fidelity.md");
    let page = fs::read_to_string(&path).unwrap();
    let mut table = format!("{}\n", Compared::HEADINGS);
    for run in RUNS.iter().filter(|run| recorded(run.name).exists()) {
        let folder = imported(run.name);
        // Slurm's own policy, and what a simulation without it comes to.
        for policy in ["slurm", "easy(order=multifactor)", "easy"] {
            if policy.parse::<PolicySpec>().is_ok() {
                table += &replayed(run, &folder, policy).row(run.name, policy);
                table.push('\n');
            }
        }
    }
    println!("{table}");
    let begin = page.find("| run | policy |").expect("the page has the table");
    let end = begin + page[begin..].find("\n\n").expect("the table ends") + 1;
    if std::env::var_os("BUSBAR_BLESS").is_some() {
        fs::write(&path, format!("{}{table}{}", &page[..begin], &page[end..])).unwrap();
        return;
    }
    assert_eq!(page[begin..end], table, "write it anew: BUSBAR_BLESS=1 cargo test slurm::fidelity");
}

/// The same seed makes the same jobs, as many as there are to be, and of every kind.
#[test]
fn a_seed_names_a_workload() {
    const PARTITIONS: [&str; 4] = ["-pbatch", "-pshort", "-pshared", "-pgpu"];
    const QOS: [&str; 4] = ["--qos=normal", "--qos=high", "--qos=urgent", "--qos=scavenger"];
    const WAITS: [&str; 6] =
        ["--array=", "--begin=", "singleton", "afterok", "afterany", "afternotok"];
    for run in &RUNS {
        let jobs = workload(run);
        assert_eq!(format!("{jobs:?}"), format!("{:?}", workload(run)));
        let line = |job: &Submission| format!("{} {:?}", job.arguments.join(" "), job.after);
        let said: Vec<String> = jobs.iter().map(line).collect();
        let is_said = |word: &str| said.iter().any(|line| line.contains(word));
        for word in PARTITIONS.iter().chain(&QOS) {
            assert!(is_said(word), "{}: no {word}", run.name);
        }
        for word in WAITS {
            assert_eq!(is_said(word), run.teaching.is_some(), "{}: {word}", run.name);
        }
        let made: u32 = jobs.iter().map(|submission| submission.jobs).sum();
        if run.teaching.is_some() {
            assert!((run.jobs..run.jobs + 25).contains(&made), "{}: {made} jobs", run.name);
        }
    }
}
