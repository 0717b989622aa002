//! The budget falls: below what caps can reach the last resort acts, and jobs that can change their size do.

use std::fs;

use busbar::live::wire::Request;
use busbar::slurm::model::JobState;

use busbar::units::Watts;
use busbar_needs::needs;

use super::served::Served;

impl Served {
    fn set_budget(&self, text: &str) {
        self.ask(&Request::Budget { set: Some(text.to_owned()) });
    }
}

/// Four nodes draw 80 W when they are idle, and each that has a job at least 60 W more: two jobs of two nodes need 320 W at
/// their lowest caps, and one of them 200 W.
#[needs(slurm)]
#[test]
fn the_last_resort_suspends_resumes_and_cancels_on_slurm() {
    let mut served = Served::idle(4, "steer", "share", &[]);
    served.configure("see_all", "last_resort = \"suspend\"\nsee_all");
    served.begin();
    let submit = || served.running.submit(&["-N2", "-t300", "--wrap", "sleep infinity"], None);
    let is_in = |job: u32, state: JobState| {
        served.running.await_job(job, &format!("{state:?}"), |job| job.state == state)
    };
    let first = submit();
    is_in(first, JobState::Running);
    let second = submit();
    is_in(second, JobState::Running);
    served.set_budget("250W");
    is_in(second, JobState::Suspended);
    assert_eq!(served.running.job(first).state, JobState::Running, "the older one goes on");
    served.set_budget("800W");
    is_in(second, JobState::Running);
    // The daemon reads another last resort without a restart.
    served.configure("last_resort = \"suspend\"", "last_resort = \"cancel\"");
    served.reload();
    served.wait("the new configuration", || {
        served.log().contains("configuration reloaded").then_some(())
    });
    served.set_budget("250W");
    is_in(second, JobState::Cancelled);
    assert_eq!(served.running.job(first).state, JobState::Running);
    served.wait("one job", || (served.queue().len() == 1).then_some(()));
}

/// Two of six nodes are not Busbar's: 200 W of the budget are set aside for each.
#[needs(slurm)]
#[test]
fn nodes_that_are_not_busbars_are_set_aside() {
    let mut served = Served::idle(6, "steer", "share", &[]);
    served.configure("nodes = \"n[1-6]\"", "nodes = \"n[1-4]\"");
    for node in [5, 6] {
        let line = format!("  {{ name = \"n{node}\", address = \"nodes/n{node}/socket\" }},\n");
        served.configure(&line, "");
    }
    let machine = served.running.place().join("machine.toml");
    let text = fs::read_to_string(&machine).unwrap().replace("nodes = 6", "nodes = 4");
    fs::write(&machine, text).unwrap();
    served.begin();
    // 70 % of what all six may draw; the four draw 20 W each when they are idle.
    let power = served.status().power;
    assert_eq!(power.limit, Some(Watts::from_watts(840)), "{power:?}");
    assert_eq!(power.base, Watts::from_watts(480), "{power:?}");
    let job = served.running.submit(&["-N4", "-t300", "--wrap", "sleep infinity"], None);
    let job = served.running.await_job(job, "running", |job| job.state == JobState::Running);
    assert_eq!(job.nodes, "n[1-4]".parse().unwrap());
    let held = served.status().power.held;
    assert!(held <= Watts::from_watts(360), "{held}");
}

/// A malleable job gets more nodes than it asks for while nobody else wants them, and gives them up for another job.
#[needs(slurm, accounting)]
#[test]
fn malleable_jobs_change_their_size_through_the_daemon() {
    let mut served = Served::idle(4, "steer", "parm", &["--accounting"]);
    served.configure("budget = \"70%\"", "budget = \"100%\"");
    served.begin();
    let malleable = served.running.submit(
        &[
            "-N2",
            "-t300",
            "--comment=busbar app=EP malleable nodes=1-4",
            "--wrap",
            "sleep infinity",
        ],
        None,
    );
    let running = &served.running;
    running.await_job(malleable, "on all nodes", |job| {
        job.state == JobState::Running && job.nodes.len() == 4
    });
    let rigid = running.submit(&["-N2", "-t300", "--wrap", "sleep infinity"], None);
    running.await_job(rigid, "running", |job| job.state == JobState::Running);
    let (left, taken) = (running.job(malleable), running.job(rigid));
    assert_eq!((left.nodes.len(), taken.nodes.len()), (2, 2), "{left:?} {taken:?}");
    assert_eq!((left.state, left.restarts), (JobState::Running, 0));
}
