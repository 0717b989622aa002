//! A daemon on a real Slurm with agents: jobs come by `sbatch`, Busbar keeps the cluster within its budget, and daemon,
//! slurmctld and agents are killed meanwhile.
//!
//! With BUSBAR_SLURM=1 labs are larger and more policies are tried, which takes some minutes.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use busbar::slurm::cluster::Cluster;
use busbar::slurm::lab::CONTROLLER;
use busbar_needs::needs;
use rustix::process::{Pid, Signal, kill_process};

use super::{Running, text};
use crate::patience::{PATIENCE, wait_until};

mod admitted;
mod alone;
mod explained;
mod feeds;
mod measured;
mod order;
mod placing;
mod queue;
mod rest;
mod served;
mod shortage;
mod standby;
mod trial;

use served::{Served, jobs};

fn is_in_full() -> bool {
    std::env::var_os("BUSBAR_SLURM").is_some_and(|value| value == "1")
}

/// Something that happens while jobs run.
#[derive(Clone, Copy)]
enum Event {
    /// The budget falls to 60 % of what it was.
    LowBudget,
    /// The daemon is killed and begins again.
    Daemon,
    /// A process of the lab is killed and begins again.
    Process(&'static str),
}

/// Runs jobs while things happen, one at each of these looks: what jobs and idle nodes draw is within the limit at every look,
/// and every job runs once.
fn run(served: &mut Served, what: &str, count: u32, events: &[(u32, Event)]) {
    let full = u64::from(served.nodes) * 200 * 70 / 100;
    let numbers = served.submit(&jobs(count, 1));
    let (mut limit, mut looks, begun) = (full, 0, Instant::now());
    let (mut ended, mut since) = (0, Instant::now());
    let mut most: f64 = 0.0;
    let last = events.last().map_or(0, |(look, _)| *look);
    for look in 1.. {
        match events.iter().find(|(at, _)| *at == look).map(|(_, event)| *event) {
            Some(Event::LowBudget) => {
                limit = full * 60 / 100;
                served.lower_budget(limit);
            }
            Some(Event::Daemon) => {
                served.kill();
                served.begin();
            }
            Some(Event::Process(name)) => served.disturb(name),
            None => (),
        }
        if let Some(drawn) = served.drawn() {
            looks += 1;
            most = most.max(drawn as f64 / limit as f64);
            let nodes = served.nodes();
            assert!(drawn <= limit, "{drawn} W of {limit} W: {nodes:?}\n{}", served.log());
        }
        if look > last && served.ended() >= numbers.len() {
            break;
        }
        // Many jobs may take long; that none of them comes to its end is a fault.
        if served.ended() > ended {
            (ended, since) = (served.ended(), Instant::now());
        }
        assert!(since.elapsed() < PATIENCE, "{:?}\n{}", served.queue(), served.log());
        sleep(Duration::from_millis(100));
    }
    served.wait("an empty queue", || served.queue().is_empty().then_some(()));
    served.assert_once(&numbers);
    let status = served.status();
    let pace = status.engine_pace.unwrap();
    let ms = |micros: u64| micros as f64 / 1000.0;
    println!(
        "{what}: {count} jobs on {} nodes in {:.0} s, within the limit at {looks} looks, {:.0} % of it at most; longest \
         cycle {:.1} ms, look {:.0} ms ({:.1} ms of them in Busbar), acts {:.0} ms ({:.1} ms)",
        served.nodes,
        begun.elapsed().as_secs_f64(),
        100.0 * most,
        ms(status.longest_cycle),
        ms(pace.longest_look),
        ms(pace.longest_own_look),
        ms(pace.longest_act),
        ms(pace.longest_own_act)
    );
    assert!(looks > 5, "{looks}");
}

/// Also after the budget fell to 60 %, and while daemon, slurmctld and an agent were killed.
#[needs(slurm)]
#[test]
fn policies_steer_slurm() {
    let (nodes, count, policies) = match is_in_full() {
        true => (64, 500, &["rmap-adaptive", "pb-guided", "parm", "ppartition", "share"][..]),
        false => (16, 40, &["share"][..]),
    };
    let events = [
        (20, Event::LowBudget),
        (30, Event::Daemon),
        (40, Event::Process(CONTROLLER)),
        (50, Event::Process("agent.n2")),
    ];
    for policy in policies {
        let mut served = Served::new(nodes, "steer", policy);
        run(&mut served, policy, count, &events);
    }
}

/// Slurm starts jobs by itself, with as many licences as watts: the budget is moved by a reservation, caps follow, and no
/// job is queued again.
#[needs(slurm)]
#[test]
fn slurm_admits_within_a_budget_that_falls() {
    let (nodes, count) = if is_in_full() { (64, 500) } else { (16, 40) };
    let mut served = Served::new(nodes, "admit", "easy-power");
    // The reservation is there before the first job is.
    served.wait("a reservation", || {
        let licences = served.running.cluster.licences().unwrap();
        licences.iter().any(|one| one.name == "power" && one.reserved > 0).then_some(())
    });
    run(&mut served, "admit", count, &[(10, Event::LowBudget), (20, Event::Daemon)]);
    let all = served.running.cluster.jobs().unwrap();
    assert!(all.iter().all(|job| job.restarts == 0), "no job is queued again for lack of power");
}

/// The dry run: what Slurm did, and what each policy would have made of it, with nothing changed on the cluster.
#[needs(slurm)]
#[test]
fn a_cluster_is_watched() {
    let running = Running::start("8", "watch", &[]);
    // None of them ends before somebody watches.
    let go = running.place().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.1; done; sleep 1.1", go.display());
    let submit = |number: u32| {
        let nodes = format!("-N{}", 1 + number % 3);
        running.submit(&[&nodes, "-t300", "--wrap", &script], None)
    };
    let jobs: Vec<u32> = (0..24).map(submit).collect();
    let watching = Command::new(env!("CARGO_BIN_EXE_busbar"))
        .args(["slurm", "watch", "--budget", "60%", "--every", "500ms", "--json"])
        .args(["--policy", "easy-power,share", "--machine"])
        .arg(running.place().join("machine.toml"))
        .arg("--conf")
        .arg(running.place().join("slurm.conf"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let process = Pid::from_child(&watching);
    wait_until("that somebody watches", || listens_to_ctrl_c(process));
    fs::write(go, "").unwrap();
    for job in jobs {
        running.await_job(job, "over", |job| job.state.has_ended());
    }
    kill_process(process, Signal::INT).unwrap();
    let watched = watching.wait_with_output().unwrap();
    assert!(watched.status.success(), "{}", text(&watched));
    let answer: serde_json::Value = serde_json::from_slice(&watched.stdout).unwrap();
    assert_eq!(answer["jobs"], 24, "{answer}");
    let happened = &answer["happened"];
    assert!((1..=8).contains(&happened["peak_nodes"].as_u64().unwrap()), "{answer}");
    let policies: Vec<&str> = answer["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["policy"].as_str().unwrap())
        .collect();
    assert_eq!(policies.len(), 2, "{answer}");
    assert!(policies.contains(&"share") && policies.contains(&"easy-power"), "{answer}");
    running.down();
}

/// Whether a process handles Ctrl-C by itself.
fn listens_to_ctrl_c(process: Pid) -> bool {
    let status = format!("/proc/{}/status", process.as_raw_nonzero());
    let status = fs::read_to_string(status).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & 1 << (Signal::INT.as_raw() - 1) != 0)
}

/// The same comparison here and as a job array: the same files, byte for byte.
#[needs(slurm)]
#[test]
fn a_sweep_on_slurm_gives_the_same_bytes() {
    let running = Running::start("4", "watch", &[]);
    let folder = tempfile::tempdir().unwrap();
    let compare = |name: &str, more: &[&str]| {
        let made = Command::new(env!("CARGO_BIN_EXE_busbar"))
            .args(["compare", "--policy", "easy,easy-power", "--budget", "60%,80%", "--seeds", "2"])
            .args(["--brief", "--workload", "lublin(jobs=200)", "--machine", "64"])
            .args(["--out", &format!("out-{name}"), "--cache", &format!("cache-{name}")])
            .args(more)
            .env("SLURM_CONF", running.place().join("slurm.conf"))
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", text(&made));
        text(&made)
    };
    compare("here", &[]);
    let said = compare("there", &["--slurm", "--tasks", "3"]);
    assert!(said.contains("makes the runs on Slurm"), "{said}");
    assert!(!said.contains("failed"), "{said}");
    for file in ["results.csv", "report.html", "experiment.toml"] {
        let read = |name: &str| fs::read(folder.path().join(format!("out-{name}/{file}"))).unwrap();
        assert!(read("here") == read("there"), "{file}");
    }
    // All of them were made there: two policies under two budgets, twice.
    let again = compare("there", &["--json"]);
    assert!(again.contains("\"reused\": 8"), "{again}");
    running.down();
}
