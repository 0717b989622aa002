//! A real Slurm: a lab of a few nodes is started, read, acted on in every way, disturbed and taken down.
//!
//! Only root can start one, so these tests are ignored where others run them or where there is no Slurm.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use busbar::slurm::cluster::{Cluster, JobUpdate};
use busbar::slurm::commands::Commands;
use busbar::slurm::error::SlurmError;
use busbar::slurm::hosts::HostList;
use busbar::slurm::lab::{CONTROLLER, Lab};
use busbar::slurm::model::{Hold, Job, JobRef, JobState};
use busbar::slurm::rest::{Credentials, Rest};
use busbar::slurm::setup;
use busbar_needs::needs;

use crate::patience::{PATIENCE, wait_for, wait_or, wait_until};

mod accounting;
mod admit;
mod daemon;
mod fidelity;
mod shared;

/// Somebody who is not root.
const NOBODY: (u32, u32) = (65_534, 65_534);

/// The user `daemon`, who is not root either. Slurm 26.05 makes no reservation for `nobody`, and knows no associations of that user.
const SOMEBODY: (u32, u32) = (1, 1);

/// A lab in a folder of its own, taken down at the end of a test however it ends.
struct Running {
    folder: tempfile::TempDir,
    lab: Lab,
    cluster: Commands,
}

/// The folder of another Slurm than the one that is installed, if BUSBAR_SLURM_PROGRAMS names it: all of these tests can be tried on it.
fn other_slurm() -> Option<PathBuf> {
    std::env::var_os("BUSBAR_SLURM_PROGRAMS").map(PathBuf::from)
}

fn busbar(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
    if let (Some(programs), ["lab", "up", ..]) = (other_slurm(), arguments) {
        let (act, rest) = arguments.split_at(2);
        return command
            .args(act)
            .arg("--programs")
            .arg(programs)
            .args(rest)
            .arg("--folder")
            .arg(folder)
            .output()
            .unwrap();
    }
    command.args(arguments).arg("--folder").arg(folder).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

impl Running {
    fn start(nodes: &str, mode: &str, extras: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Munge wants everybody to be able to enter.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let place = folder.path().join("lab");
        let up =
            busbar(&[&["lab", "up", "--nodes", nodes, "--mode", mode], extras].concat(), &place);
        assert!(up.status.success(), "{}", text(&up));
        assert!(text(&up).contains("is up in"), "{}", text(&up));
        let lab = Lab::find(&place).unwrap().unwrap();
        let cluster = Commands::new(lab.programs().with_patience(PATIENCE));
        Running { folder, lab, cluster }
    }

    fn place(&self) -> PathBuf {
        self.folder.path().join("lab")
    }

    /// Submits a job as somebody, and returns its number.
    fn submit(&self, arguments: &[&str], user: Option<(u32, u32)>) -> u32 {
        let printed = self.try_submit(arguments, user).unwrap();
        printed.trim().parse().unwrap()
    }

    fn try_submit(&self, arguments: &[&str], user: Option<(u32, u32)>) -> Result<String, String> {
        let all = [&["--parsable", "-o", "/dev/null", "-D", "/"], arguments].concat();
        let printed = self.cluster.programs().run_as("sbatch", &all, user).unwrap();
        match printed.status.success() {
            true => Ok(printed.out),
            false => Err(printed.error),
        }
    }

    /// What a program of Slurm prints, if it succeeds.
    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let printed = self.lab.programs().run(program, arguments).unwrap();
        match printed.status.success() {
            true => Ok(printed.out),
            false => Err(printed.error),
        }
    }

    /// What Slurm says of a job. Its programs fail without a word if they are held up while they wait for an answer.
    fn job(&self, job: u32) -> Job {
        let look = || Some(self.cluster.job(JobRef::whole(job)).ok()?.remove(0));
        wait_or(look, || format!("job {job}: {:?}", self.cluster.job(JobRef::whole(job))))
    }

    /// Waits until a job is as expected.
    fn await_job(&self, job: u32, what: &str, is_so: impl Fn(&Job) -> bool) -> Job {
        let look = || Some(self.job(job)).filter(&is_so);
        wait_or(look, || format!("that job {job} is {what}: {:?}", self.job(job)))
    }

    fn down(self) {
        let ids: Vec<u32> =
            self.lab.members().unwrap().iter().filter_map(|member| member.pid).collect();
        assert!(!ids.is_empty());
        let down = busbar(&["lab", "down"], &self.place());
        assert!(down.status.success(), "{}", text(&down));
        assert!(!self.place().exists());
        let runs = |id: &&u32| {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        assert_eq!(ids.iter().find(runs), None);
        let again = busbar(&["lab", "down"], &self.place());
        assert!(text(&again).contains("there is no lab"), "{}", text(&again));
    }
}

/// The addresses on which a process listens, as the kernel writes them.
fn listens_on(pid: u32) -> Vec<String> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let links: Vec<PathBuf> = files.filter_map(|file| fs::read_link(file.path()).ok()).collect();
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        let table = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        for line in table.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let socket = PathBuf::from(format!("socket:[{}]", words[9]));
            // A socket in this state takes connections.
            if words[3] == "0A" && links.contains(&socket) {
                found.push(words[1].split(':').next().unwrap().to_owned());
            }
        }
    }
    found
}

/// Asserts that nobody outside this machine can reach a lab.
fn assert_on_loopback(lab: &Lab) {
    const LOOPBACK: &str = "0100007F";
    let mut listening = 0;
    for member in lab.members().unwrap() {
        let addresses = listens_on(member.pid.unwrap());
        assert!(
            addresses.iter().all(|address| address == LOOPBACK),
            "{}: {addresses:?}",
            member.name
        );
        listening += addresses.len();
    }
    assert!(listening > lab.nodes() as usize, "slurmctld and the nodes listen");
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = busbar(&["lab", "down"], &self.place());
    }
}

fn hosts(text: &str) -> HostList {
    text.parse().unwrap()
}

#[needs(slurm)]
#[test]
fn jobs_are_steered_on_a_real_slurm() {
    let running = Running::start("4", "steer", &[]);
    let cluster = &running.cluster;
    let up = busbar(&["lab", "up", "--nodes", "4", "--mode", "steer"], &running.place());
    assert!(text(&up).contains("is up already"), "{}", text(&up));
    assert!(cluster.version().unwrap().is_supported());

    // A comment that cannot be understood is refused at submission, with a reason.
    let refused = running.try_submit(&["--comment=busbar app=", "--wrap", "sleep 9"], Some(NOBODY));
    assert!(refused.unwrap_err().contains("'app=' in the comment does not name an application"));

    let parts = ["-N1", "--wrap", "sleep 9", ":", "-N1"];
    let refused = running.try_submit(&parts, Some(NOBODY)).unwrap_err();
    assert!(refused.contains("heterogeneous jobs are not supported"), "{refused}");

    // A user's job is held for Busbar, and its user cannot release it past that.
    let comment = "busbar app=lulesh slowdown=10% nodes=1-3;\nState=RUNNING|x";
    let wish = format!("--comment={comment}");
    let first =
        running.submit(&["-N1-3", "-t300", &wish, "--wrap", "sleep infinity"], Some(NOBODY));
    let job = running.job(first);
    assert_eq!((job.hold, job.nodes_min, job.nodes_max), (Some(Hold::User), 1, 3));
    assert_eq!((job.comment.as_deref(), job.uid), (Some(comment), NOBODY.0));
    assert!(setup::is_ready(&job));
    let name = first.to_string();
    for (act, is_ready) in [("release", true), ("hold", false), ("release", true)] {
        let printed =
            running.lab.programs().run_as("scontrol", &[act, &name], Some(NOBODY)).unwrap();
        assert!(printed.status.success(), "{printed:?}");
        let job = running.job(first);
        assert!(job.hold.is_some() && setup::is_marked(&job));
        assert_eq!(setup::is_ready(&job), is_ready, "{act}: {job:?}");
    }
    let others = [
        running.submit(&["-H", "-N1", "--wrap", "sleep infinity"], Some(NOBODY)),
        running.submit(&["-N2", "--array=1-4%2", "--wrap", "sleep infinity"], None),
        running.submit(&["-N1", &format!("--dependency=afterok:{first}"), "--wrap", "true"], None),
    ];
    assert!(setup::is_kept_back(&running.job(others[0])));
    cluster.hold(&[JobRef::whole(first), JobRef::whole(others[1])]).unwrap();
    assert_eq!(running.job(first).hold, Some(Hold::Admin));
    // Text and JSON say the same.
    assert_eq!(sorted(cluster.jobs().unwrap().read), sorted(cluster.jobs_by_json().unwrap().read));

    // It starts on exactly the nodes that it is given, and draws there.
    let update = JobUpdate {
        nodes: Some((2, 2)),
        required: Some(hosts("n[2-3]")),
        limit_minutes: Some(70),
        ..JobUpdate::default()
    };
    cluster.start(JobRef::whole(first), &update).unwrap();
    let job = running.await_job(first, "running", |job| job.state == JobState::Running);
    assert_eq!(
        (job.nodes.names(), job.limit_minutes),
        (&["n2".to_owned(), "n3".to_owned()][..], Some(70))
    );
    let demand = |node: u32| fs::read_to_string(running.lab.tree(node).join("demand_uw")).unwrap();
    // Slurm calls a job running while its prologs still are.
    wait_until("what it would draw", || {
        (demand(2).trim(), demand(3).trim()) == ("180000000", "180000000")
    });
    assert_eq!(demand(1).trim(), "0");

    // One element of an array starts alone.
    let element = JobRef { job: others[1], task: Some(3) };
    cluster
        .start(element, &JobUpdate { required: Some(hosts("n1,n4")), ..JobUpdate::default() })
        .unwrap();
    wait_until("a running element", || cluster.job(element).unwrap()[0].state == JobState::Running);
    let entries = cluster.job(JobRef::whole(others[1])).unwrap();
    assert_eq!(entries.iter().filter(|entry| entry.hold.is_some()).count(), 1);

    // Suspended and resumed, shrunk, and its time limit changed.
    let job = JobRef::whole(first);
    cluster.suspend(job).unwrap();
    cluster.suspend(job).unwrap();
    assert_eq!(running.job(first).state, JobState::Suspended);
    cluster.resume(job).unwrap();
    assert_eq!(running.job(first).state, JobState::Running);
    cluster.update(job, &JobUpdate { limit_minutes: Some(90), ..JobUpdate::default() }).unwrap();
    let refused = cluster.shrink(job, &hosts("n1")).unwrap_err();
    assert!(refused.to_string().contains("does not have node n1"), "{refused}");
    cluster.shrink(job, &hosts("n2")).unwrap();
    assert_eq!(running.job(first).nodes.names(), ["n2"]);

    // The controller is killed, and comes back with everything that it had saved, which it does now and then. When the
    // latest job is in the file, everything is.
    let said = "this is the latest job";
    running.submit(&["-N1", &format!("--comment={said}"), "--wrap", "true"], Some(NOBODY));
    wait_until("saved jobs", || {
        let saved = fs::read(running.place().join("state/job_state")).unwrap_or_default();
        saved.windows(said.len()).any(|part| part == said.as_bytes())
    });
    let before = sorted(cluster.jobs().unwrap().read);
    running.lab.kill(CONTROLLER).unwrap();
    let quick = Commands::new(running.lab.programs().with_patience(Duration::from_secs(3)));
    let error = quick.jobs().unwrap_err();
    assert!(error.is_uncertain(), "{error}");
    running.lab.start(CONTROLLER).unwrap();
    running.lab.await_nodes().unwrap();
    let after = sorted(cluster.jobs().unwrap().read);
    let brief = |jobs: &[Job]| {
        jobs.iter().map(|job| (job.id, job.hold, job.nodes.clone())).collect::<Vec<_>>()
    };
    assert_eq!(brief(&before), brief(&after));

    // Requeued it waits under an admin hold; cancelled it ends. What does not exist is named.
    cluster.cancel(element).unwrap();
    cluster.requeue_hold(job).unwrap();
    let found = running.job(first);
    assert_eq!(
        (found.state, found.hold, found.restarts),
        (JobState::Pending, Some(Hold::Slurm), 1)
    );
    let own = running.lab.programs().run_as("scontrol", &["release", &name], Some(NOBODY)).unwrap();
    assert!(own.status.success() && running.job(first).hold.is_some(), "it is a wish");
    cluster.start(job, &JobUpdate::default()).unwrap();
    running.await_job(first, "running again", |job| job.state == JobState::Running);
    cluster.cancel(job).unwrap();
    running.await_job(first, "cancelled", |job| job.state == JobState::Cancelled);
    let missing = JobRef::whole(999_999);
    for done in [
        cluster.cancel(missing),
        cluster.hold(&[missing]),
        cluster.release(&[missing]),
        cluster.update(missing, &update),
        cluster.suspend(missing),
        cluster.requeue_hold(missing),
    ] {
        assert!(matches!(done, Err(SlurmError::NoSuchJob { .. })), "{done:?}");
    }
    let held = JobRef::whole(others[0]);
    let nowhere = JobUpdate { required: Some(hosts("n9")), ..JobUpdate::default() };
    assert!(matches!(cluster.update(held, &nowhere), Err(SlurmError::NotFound { .. })));

    // Nodes are drained with a reason and put into service again.
    cluster.drain(&hosts("n[3-4]"), "busbar: no agent").unwrap();
    let node = cluster.nodes().unwrap().into_iter().find(|node| node.name == "n4").unwrap();
    assert_eq!((node.state.is_usable(), node.reason.as_deref()), (false, Some("busbar: no agent")));
    cluster.undrain(&hosts("n3")).unwrap();
    assert!(matches!(cluster.drain(&hosts("n9"), "x"), Err(SlurmError::NotFound { .. })));

    // Everything is given back to Slurm, with one command.
    let watts = BTreeMap::from([("power".to_owned(), 500)]);
    cluster.reserve("busbar", &watts).unwrap();
    let conf = running.lab.conf();
    let mut release = Command::new(env!("CARGO_BIN_EXE_busbar"));
    let output = release.args(["slurm", "release-all", "--conf"]).arg(&conf).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("the reservation of watts is removed"), "{}", text(&output));
    let snapshot = cluster.snapshot().unwrap();
    assert!(snapshot.reservations.is_empty());
    // A node that comes back is asked whether it is there before it counts.
    let is_usable = || cluster.nodes().unwrap().iter().all(|node| node.state.is_usable());
    wait_or(|| is_usable().then_some(()), || format!("usable nodes: {:?}", cluster.nodes()));
    let is_held = |job: &&Job| job.hold.is_some();
    assert_eq!(
        snapshot.jobs.iter().filter(is_held).map(|job| job.id).collect::<Vec<_>>(),
        [others[0]]
    );
    let last = running.submit(&["-N1", "--wrap", "true"], Some(NOBODY));
    assert_eq!(running.job(last).hold, None);
    running.down();
}

/// Jobs in the order of their numbers.
fn sorted(mut jobs: Vec<Job>) -> Vec<Job> {
    jobs.sort_by_key(|job| (job.id, job.array.as_ref().map(|array| array.tasks.to_string())));
    jobs
}

#[needs(slurm)]
#[test]
fn slurm_admits_jobs_within_a_budget_that_moves() {
    let running = Running::start("4", "admit", &[]);
    let cluster = &running.cluster;
    let reserve =
        |watts: u64| cluster.reserve("busbar", &BTreeMap::from([("power".to_owned(), watts)]));
    // Of 800 W, 300 W are left: one job of one node runs, whatever the number of nodes.
    reserve(500).unwrap();
    let jobs: Vec<u32> = (0..4)
        .map(|_| running.submit(&["-N1", "-t300", "--wrap", "sleep infinity"], Some(NOBODY)))
        .collect();
    assert_eq!(running.job(jobs[0]).licences["power"], 200);
    let count = || {
        let states = jobs.iter().map(|job| running.job(*job).state);
        states.filter(|state| *state == JobState::Running).count()
    };
    let await_count = |expected: usize| {
        let is_so = || (count() == expected).then_some(());
        wait_or(is_so, || format!("{expected} that run, not {}", count()));
    };
    await_count(1);
    // Slurm has looked at the others, and says what they lack.
    wait_for("a reason", || {
        let reasons = jobs.iter().filter_map(|job| running.job(*job).reason);
        let lacks = reasons.filter(|reason| reason == "Licenses").count();
        (lacks > 0).then_some(())
    });
    assert_eq!(count(), 1);
    // The budget rises, and nothing but that lets more start.
    reserve(200).unwrap();
    await_count(3);
    let licence = cluster.licences().unwrap().read.remove(0);
    assert_eq!((licence.total, licence.used, licence.reserved), (800, 600, 200));
    // A running job is given fewer watts, and another one fits.
    let fewer = BTreeMap::from([("power".to_owned(), 100)]);
    let update = |licences| JobUpdate { licences: Some(licences), ..JobUpdate::default() };
    cluster.update(JobRef::whole(jobs[0]), &update(fewer.clone())).unwrap();
    cluster.update(JobRef::whole(jobs[1]), &update(fewer)).unwrap();
    await_count(4);
    // It falls again: who runs is not touched. Users cannot change their watts.
    reserve(700).unwrap();
    assert_eq!(count(), 4);
    let target = format!("jobid={}", jobs[0]);
    let own = running.lab.programs().run_as(
        "scontrol",
        &["update", &target, "licenses=power:1"],
        Some(NOBODY),
    );
    assert!(!own.unwrap().status.success());
    cluster.remove_reservation("busbar").unwrap();
    cluster.remove_reservation("busbar").unwrap();
    running.down();
}

#[needs(slurm, slurmrestd)]
#[test]
fn slurmrestd_says_and_does_the_same() {
    let running = Running::start("3", "steer", &["--rest"]);
    assert_on_loopback(&running.lab);
    let cluster = &running.cluster;
    let jobs = [
        running.submit(
            &["-N1-2", "-t300", "--comment=busbar app=x", "--wrap", "sleep infinity"],
            Some(NOBODY),
        ),
        running
            .submit(&["-N1", "--array=1-4%2", "-L", "power:5", "--wrap", "sleep infinity"], None),
        running.submit(&["-N1", "--wrap", "exit 3"], None),
    ];
    cluster.release(&[JobRef::whole(jobs[2])]).unwrap();
    running.await_job(jobs[2], "failed", |job| job.state == JobState::Failed);
    cluster.drain(&hosts("n3"), "busbar: no agent").unwrap();
    let address = running.lab.rest_address().unwrap();
    // There is no file with a token, so they are made.
    let credentials = Credentials::new("root", None);
    let rest = Rest::new(address.clone(), Some(credentials), cluster.clone());
    assert_eq!(rest.version().unwrap(), cluster.version().unwrap());
    assert_eq!(sorted(rest.jobs().unwrap().read), sorted(cluster.jobs().unwrap().read));
    assert_eq!(rest.nodes().unwrap(), cluster.nodes().unwrap());
    assert_eq!(rest.partitions().unwrap()[0].nodes, cluster.partitions().unwrap()[0].nodes);
    assert_eq!(rest.reservations().unwrap(), cluster.reservations().unwrap());
    assert_eq!(rest.licences().unwrap(), cluster.licences().unwrap());
    let job = JobRef::whole(jobs[0]);
    let update = JobUpdate {
        nodes: Some((2, 2)),
        required: Some(hosts("n[1-2]")),
        limit_minutes: Some(70),
        ..JobUpdate::default()
    };
    rest.start(job, &update).unwrap();
    let found = running.await_job(jobs[0], "running", |job| job.state == JobState::Running);
    assert_eq!((found.nodes.to_string().as_str(), found.limit_minutes), ("n[1-2]", Some(70)));
    rest.cancel(job).unwrap();
    running.await_job(jobs[0], "cancelled", |job| job.state == JobState::Cancelled);
    let missing = rest.update(JobRef::whole(999_999), &update);
    assert!(matches!(missing, Err(SlurmError::NoSuchJob { .. })), "{missing:?}");
    assert!(Rest::new(address, None, cluster.clone()).jobs().is_err());
    running.down();
}

#[needs(slurm, accounting)]
#[test]
fn jobs_change_their_size_again_and_again_with_accounting() {
    let running = Running::start("4", "steer", &["--accounting"]);
    assert_on_loopback(&running.lab);
    let cluster = &running.cluster;
    let number = running.submit(&["-N4", "-t300", "--wrap", "sleep infinity"], Some(NOBODY));
    let job = JobRef::whole(number);
    cluster.start(job, &JobUpdate::default()).unwrap();
    running
        .await_job(number, "running", |job| job.state == JobState::Running && job.nodes.len() == 4);
    for _ in 0..3 {
        cluster.shrink(job, &hosts("n[1-2]")).unwrap();
        assert_eq!(running.job(number).nodes, hosts("n[1-2]"));
        cluster.expand(job, &hosts("n[3-4]")).unwrap();
        assert_eq!(running.job(number).nodes, hosts("n[1-4]"));
    }
    running.down();
}
