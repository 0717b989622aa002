//! Mode `admit` on a real Slurm: what the plug-in refuses, counts again, and what accounting makes of watts.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Command;

use busbar::slurm::cluster::Cluster;
use busbar::slurm::lab::CONTROLLER;
use busbar::slurm::model::{JobRef, JobState};
use busbar_needs::needs;

use super::{NOBODY, Running, SOMEBODY, text};
use crate::patience::{wait_for, wait_or};

/// A second partition of Busbar's whose nodes draw less, one that is not Busbar's, and further lines of `slurm.conf`.
fn with_partitions(running: &Running, more: &str) {
    let conf = running.lab.conf();
    let lines = format!(
        "{more}PartitionName=cheap Nodes=ALL MaxTime=INFINITE OverSubscribe=EXCLUSIVE State=UP\n\
         PartitionName=free Nodes=ALL MaxTime=INFINITE State=UP\n"
    );
    fs::File::options().append(true).open(&conf).unwrap().write_all(lines.as_bytes()).unwrap();
    let mut setup = Command::new(env!("CARGO_BIN_EXE_busbar"));
    setup.args(["slurm", "setup", "--mode", "admit", "--watts", "800W", "--node-cpus", "4"]);
    setup.args(["--partition", "main", "--partition", "cheap", "--partition-watts", "cheap=100W"]);
    setup.arg("--conf").arg(&conf).arg("--write").arg(running.place());
    let output = setup.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    // One that is killed does not start again on 26.05, if it has not saved yet what associations have used.
    running.lab.stop(CONTROLLER).unwrap();
    running.lab.start(CONTROLLER).unwrap();
    running.lab.await_nodes().unwrap();
}

fn watts(running: &Running, job: u32) -> u64 {
    running.job(job).licences["power"]
}

#[needs(slurm)]
#[test]
fn what_cannot_be_counted_is_refused() {
    let running = Running::start("4", "admit", &[]);
    with_partitions(&running, "");
    let cases: [(&[&str], &str); 3] = [
        (&["-N1", "-L", "foo:1|bar:1", "--wrap", "true"], "a choice of licences"),
        (&["-N1", "-p", "main,free", "--wrap", "true"], "name only the ones or the others"),
        (&["-N1", "--wrap", "true", ":", "-N1"], "heterogeneous jobs are not supported"),
    ];
    for (arguments, expected) in cases {
        let said = running.try_submit(arguments, Some(NOBODY)).unwrap_err();
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    // A waiting job moves also where there is no accounting.
    let job = running.submit(&["-H", "-N2", "--wrap", "true"], Some(NOBODY));
    let target = format!("jobid={job}");
    let change = ["update", &target, "partition=cheap"];
    // Slurm 26.05 refuses some of these without a reason there, also without a plug-in.
    wait_for("a job that moves", || {
        let printed = running.lab.programs().run_as("scontrol", &change, Some(NOBODY)).unwrap();
        printed.status.success().then_some(())
    });
    assert_eq!(watts(&running, job), 200);
    // Slurm would start jobs of this partition on nodes of Busbar's.
    let mut check = Command::new(env!("CARGO_BIN_EXE_busbar"));
    check.args(["slurm", "check", "--mode", "admit", "--watts", "800W"]);
    check.args(["--partition", "main", "--partition", "cheap", "--conf"]).arg(running.lab.conf());
    let output = check.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(
        text(&output).contains("MISSING partitions: free shares nodes with"),
        "{}",
        text(&output)
    );
    running.down();
}

/// `sacct` has a column of watts. An account that may draw 500 W runs two jobs of 200 W at a time, and another account goes on.
/// Tried on 22.05 here.
#[needs(slurm, accounting)]
#[test]
fn accounts_have_budgets_in_watts() {
    let running = Running::start("4", "admit", &["--accounting"]);
    with_partitions(&running, "AccountingStorageEnforce=limits\n");
    let programs = running.lab.programs();
    let manage = |line: &str| {
        let arguments: Vec<&str> = ["-i"].into_iter().chain(line.split(' ')).collect();
        running.ask("sacctmgr", &arguments).unwrap();
    };
    manage("add account blue");
    manage("add account green");
    manage("add user daemon account=blue,green");
    manage("modify account blue set GrpTRES=license/power=500");
    let submit = |account: &str| {
        running.submit(&["-A", account, "-N1", "-t300", "--wrap", "sleep infinity"], Some(SOMEBODY))
    };
    let blue: Vec<u32> = wait_for("an account that Slurm knows", || {
        let known =
            running.try_submit(&["-A", "blue", "-H", "-N1", "--wrap", "true"], Some(SOMEBODY));
        known.is_ok().then(|| (0..3).map(|_| submit("blue")).collect())
    });
    let states = || {
        let mut count: BTreeMap<String, u32> = BTreeMap::new();
        for job in &blue {
            *count.entry(format!("{:?}", running.job(*job).state)).or_default() += 1;
        }
        count
    };
    let expected = BTreeMap::from([("Running".to_owned(), 2), ("Pending".to_owned(), 1)]);
    wait_or(|| (states() == expected).then_some(()), || format!("two that run: {:?}", states()));
    let waiting = blue.iter().find(|job| running.job(**job).state == JobState::Pending).unwrap();
    running.await_job(*waiting, "held to the watts of its account", |job| {
        job.reason.as_deref().is_some_and(|reason| reason == "AssocGrpLicense")
    });
    let green = submit("green");
    running.await_job(green, "running", |job| job.state == JobState::Running);
    assert_eq!(running.job(*waiting).state, JobState::Pending);

    // A job that moves to another partition counts with the watts of that one, whoever moves it.
    let target = format!("jobid={waiting}");
    for (partition, user, expected) in [("cheap", Some(SOMEBODY), 100), ("main", None, 200)] {
        let change = ["update", &target, &format!("partition={partition}")];
        let printed = programs.run_as("scontrol", &change, user).unwrap();
        assert!(printed.status.success(), "{printed:?}");
        assert_eq!(watts(&running, *waiting), expected);
    }
    let mixed = ["update", &target, "partition=main,free"];
    assert!(!programs.run_as("scontrol", &mixed, Some(SOMEBODY)).unwrap().status.success());

    running.cluster.cancel(JobRef::whole(green)).unwrap();
    wait_for("a column of watts", || {
        let job = green.to_string();
        let told = running.ask("sacct", &["-X", "-n", "-P", "-j", &job, "-o", "State,AllocTRES"]);
        let told = told.ok()?;
        (told.starts_with("CANCELLED") && told.contains("license/power=200")).then_some(())
    });
    running.down();
}
