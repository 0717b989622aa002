//! Slurm chooses the nodes: what users ask for, reservations and others' jobs are respected, and what is drawn counts wherever it
//! is.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use busbar::live::job::EventKind;
use busbar::live::wire::{JobLine, State};
use busbar::slurm::model::{Job, JobState};
use busbar::units::Watts;
use busbar_needs::needs;

use super::served::Served;

/// The lowest cap of a node of the lab, in watts.
const LOWEST: u64 = 80;

impl Served {
    /// A lab whose jobs are taken back soon that Slurm does not place.
    fn placing(nodes: u32) -> Self {
        let served = Served::idle(nodes, "steer", "easy-power", &[]);
        served.configure("deadline = \"15min\"", "deadline = \"15s\"");
        served
    }

    fn control(&self, arguments: &[&str]) {
        let done = self.running.lab.programs().run("scontrol", arguments).unwrap();
        assert!(done.status.success(), "{arguments:?}: {}", done.error);
    }

    /// A job that runs until somebody ends it.
    fn submit_one(&self, arguments: &[&str]) -> u32 {
        let all = [arguments, &["-t300", "--wrap", "sleep infinity"]].concat();
        self.running.submit(&all, None)
    }

    fn await_running(&self, job: u32) -> Job {
        self.wait(&format!("that job {job} runs"), || {
            Some(self.running.job(job)).filter(|job| job.state == JobState::Running)
        })
    }

    /// What the daemon says of a job of Slurm.
    fn line(&self, job: u32) -> Option<JobLine> {
        let is_meant = |line: &JobLine| {
            line.handle.as_ref().is_some_and(|handle| handle.starts_with(&format!("{job}@")))
        };
        self.queue().into_iter().find(is_meant)
    }

    /// The nodes of a job and no others have more than the lowest cap, as far as the daemon and the nodes say.
    fn await_caps(&self, job: u32) {
        let nodes = self.running.job(job).nodes;
        self.wait(&format!("caps of job {job}"), || {
            let line = self.line(job)?;
            let on: Vec<String> = line.on.iter().map(|node| format!("n{}", node + 1)).collect();
            let caps = self.nodes();
            let has_more = line.on.iter().all(|node| caps[*node as usize].0 > LOWEST);
            (line.state == State::Running && on == nodes.names() && has_more).then_some(())
        });
    }
}

/// Nodes that must and must not be used, a feature, a reservation of one's own and one of somebody else's.
#[needs(slurm)]
#[test]
fn slurm_places_jobs_within_what_their_users_ask_for() {
    let mut served = Served::placing(8);
    served.control(&["update", "nodename=n5", "availablefeatures=big", "activefeatures=big"]);
    let reserve = |name: &str, node: &str, flags: &str| {
        let name = format!("reservationname={name}");
        let (nodes, flags) = (format!("nodes={node}"), format!("flags={flags}"));
        served.control(&[
            "create",
            "reservation",
            &name,
            &nodes,
            &flags,
            "users=root",
            "starttime=now",
            "duration=60",
        ]);
    };
    reserve("mine", "n6", "ignore_jobs");
    reserve("service", "n7", "maint,ignore_jobs");
    served.begin();
    let there = served.submit_one(&["-N1", "-w", "n8"]);
    let big = served.submit_one(&["-N1", "-C", "big"]);
    let reserved = served.submit_one(&["-N1", "--reservation=mine"]);
    let waits = served.submit_one(&["-N1", "-w", "n7"]);
    let elsewhere = served.submit_one(&["-N1", "-x", "n1,n2"]);
    for (job, node) in [(there, "n8"), (big, "n5"), (reserved, "n6"), (elsewhere, "n3")] {
        assert_eq!(served.await_running(job).nodes.to_string(), node, "{}", served.log());
        served.await_caps(job);
    }
    // It holds nothing meanwhile, and says why.
    let line = served.wait("a job that is set aside", || {
        served.line(waits).filter(|line| {
            let reason = line.reason.as_deref().unwrap_or("");
            line.state == State::Waiting && reason.starts_with("Slurm did not place it")
        })
    });
    assert_eq!(line.power, None);
    served.control(&["delete", "reservation=service"]);
    assert_eq!(served.await_running(waits).nodes.to_string(), "n7");
    served.await_caps(waits);
}

/// Jobs keep their caps over a restart of the daemon, and get others afterwards.
#[needs(slurm)]
#[test]
fn running_jobs_have_their_caps_after_a_restart() {
    let mut served = Served::placing(6);
    served.begin();
    let jobs = [served.submit_one(&["-N2"]), served.submit_one(&["-N1", "-w", "n4"])];
    for job in jobs {
        served.await_running(job);
        served.await_caps(job);
    }
    let before = served.nodes();
    served.kill();
    served.begin();
    let looks = served.looks();
    served.wait("the same caps", || {
        (served.looks() > looks + 2 && served.nodes() == before).then_some(())
    });
    jobs.iter().for_each(|job| served.await_caps(*job));
    served.lower_budget(500);
    assert_ne!(served.nodes(), before);
}

/// A partition that Busbar does not manage has nodes that it does: what its jobs may draw there counts.
#[needs(slurm)]
#[test]
fn work_of_others_on_nodes_of_busbar_counts() {
    let mut served = Served::placing(6);
    let script = served.running.place().join("job_submit.lua");
    let text = fs::read_to_string(&script).unwrap();
    let ours = text
        .replace("local ALL = true", "local ALL = false")
        .replace("local PARTITIONS = {  }", "local PARTITIONS = { [\"main\"] = true }");
    assert!(ours.matches("main").count() > text.matches("main").count(), "{text}");
    fs::write(&script, ours).unwrap();
    // Slurm reads a script again if its time has changed, in whole seconds.
    let file = fs::File::options().append(true).open(&script).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    served.control(&["reconfigure"]);
    served.control(&[
        "create",
        "partitionname=free",
        "nodes=n1,n2,n3",
        "oversubscribe=exclusive",
        "state=up",
    ]);
    served.configure("mode = \"steer\"", "mode = \"steer\"\npartitions = [\"main\"]");
    served.begin();
    let own = served.submit_one(&["-N2", "-p", "main"]);
    served.await_running(own);
    served.await_caps(own);
    let held = served.status().power.held;
    let free = served.submit_one(&["-N1", "-p", "free"]);
    let node = served.await_running(free).nodes;
    let is_free =
        |line: &JobLine| line.handle.as_ref().is_some_and(|handle| handle.contains("others:"));
    let line = served.wait("the work of others", || served.queue().into_iter().find(is_free));
    assert_eq!(line.state, State::Running);
    let on: Vec<String> = line.on.iter().map(|node| format!("n{}", node + 1)).collect();
    assert_eq!(on, node.names());
    assert!(served.status().power.held > held);
    served.wait("its cap", || (served.nodes()[line.on[0] as usize].0 > LOWEST).then_some(()));
    let is_said = |kind: &EventKind| matches!(kind, EventKind::Notice { text, .. } if text.contains("which Busbar does not manage"));
    assert!(served.history().iter().any(|line| is_said(&line.event.kind)));
    // It is capped with the others, and nobody ends it.
    served.lower_budget(500);
    let power = served.status().power;
    assert!(power.base + power.held <= Watts::from_watts(500), "{power:?}");
    assert_eq!(served.running.job(free).state, JobState::Running);
    assert!(
        served
            .running
            .lab
            .programs()
            .run("scancel", &[&free.to_string()])
            .unwrap()
            .status
            .success()
    );
    served
        .wait("that it is gone", || served.queue().iter().all(|line| !is_free(line)).then_some(()));
}

/// Slurm looks at what a held job waits for about once a minute.
#[needs(slurm)]
#[test]
fn links_of_a_dependency_do_not_take_a_minute_each() {
    const LINKS: u32 = 4;
    let mut served = Served::placing(2);
    served.begin();
    let begun = Instant::now();
    let mut last = served.running.submit(&["-N1", "-t5", "--wrap", "true"], None);
    for _ in 0..LINKS {
        let after = format!("--dependency=afterok:{last}");
        last = served.running.submit(&["-N1", "-t5", &after, "--wrap", "true"], None);
    }
    served.wait("the last link", || {
        (served.running.job(last).state == JobState::Completed).then_some(())
    });
    let took = begun.elapsed();
    println!("{LINKS} links of a dependency took {:.1} s", took.as_secs_f64());
    assert!(took < Duration::from_secs(30) * LINKS, "{took:?}");
}

/// How often an idle daemon asks slurmctld is counted by slurmctld itself.
#[needs(slurm)]
#[test]
fn an_idle_daemon_asks_slurmctld_at_most_twice_a_second() {
    let mut served = Served::placing(2);
    served.begin();
    let waits = served.submit_one(&["-N2", "-w", "n1,n2", "--begin=now+1hour"]);
    served.wait("a look", || (served.looks() > 3).then_some(()));
    let requests = || -> u64 {
        let told = served.running.lab.programs().run("sdiag", &[]).unwrap().out;
        let by_type = told.split("by message type").nth(1).unwrap();
        let by_type = by_type.split("by user").next().unwrap();
        let asks = [
            "REQUEST_JOB_INFO",
            "REQUEST_NODE_INFO",
            "REQUEST_PARTITION_INFO",
            "REQUEST_JOB_INFO_SINGLE",
        ];
        let lines =
            by_type.lines().filter(|line| asks.iter().any(|ask| line.trim().starts_with(ask)));
        let count = |line: &str| {
            line.split("count:").nth(1)?.split_whitespace().next()?.parse::<u64>().ok()
        };
        lines.filter_map(count).sum()
    };
    let (before, looks, begun) = (requests(), served.looks(), Instant::now());
    served.wait("more looks", || (served.looks() >= looks + 8).then_some(()));
    let (asked, took) = (requests() - before, begun.elapsed().as_secs_f64());
    println!("an idle daemon asks slurmctld {:.1} times a second", asked as f64 / took);
    // A look that begins with the count or ends after it.
    assert!(asked as f64 <= 2.0 * took + 4.0, "{asked} in {took} s");
    assert_eq!(served.running.job(waits).state, JobState::Pending);
}
