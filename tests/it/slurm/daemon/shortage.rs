//! The budget falls: below what caps can reach the last resort acts, and jobs that can change their size do.

use busbar::live::wire::Request;
use busbar::slurm::cluster::Cluster;
use busbar::slurm::lab::{Extras, packages};
use busbar::slurm::model::{JobRef, JobState};

use super::served::Served;

impl Served {
    fn set_budget(&self, text: &str) {
        self.ask(&Request::Budget { set: Some(text.to_owned()) });
    }
}

/// Four nodes draw 80 W when they are idle, and each that has a job at least 60 W more: two jobs of two nodes need 320 W at
/// their lowest caps, and one of them 200 W.
#[test]
fn the_last_resort_suspends_resumes_and_cancels_on_slurm() {
    let Some(mut served) = Served::idle(4, "steer", "share", &[]) else { return };
    served.configure("see_all", "last_resort = \"suspend\"\nsee_all");
    served.begin();
    let submit = || served.running.submit(&["-N2", "-t5", "--wrap", "sleep 300"], None);
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
        served.log().contains("configuration read again").then_some(())
    });
    served.set_budget("250W");
    is_in(second, JobState::Cancelled);
    assert_eq!(served.running.job(first).state, JobState::Running);
    let queue = served.queue();
    assert_eq!(queue.len(), 1, "{queue:?}");
}

/// A malleable job gets more nodes while nobody else wants them, and gives them up for another job; one that did not say
/// that it can keeps its nodes.
#[test]
fn malleable_jobs_change_their_size_through_the_daemon() {
    let extras = Extras { rest: false, accounting: true };
    if !packages::missing(extras).is_empty() && std::env::var_os("BUSBAR_LAB_ACCOUNTING").is_none()
    {
        println!(
            "skipped: malleable jobs on Slurm (BUSBAR_LAB_ACCOUNTING=1 installs MariaDB and slurmdbd for it)"
        );
        return;
    }
    let Some(mut served) = Served::idle(4, "steer", "parm", &["--accounting"]) else { return };
    served.configure("budget = \"70%\"", "budget = \"100%\"");
    served.begin();
    let malleable = served.running.submit(
        &["-N2", "-t5", "--comment=busbar malleable nodes=1-4", "--wrap", "sleep 300"],
        None,
    );
    let running = &served.running;
    running.await_job(malleable, "on all nodes", |job| {
        job.state == JobState::Running && job.nodes.len() == 4
    });
    let rigid = running.submit(&["-N2", "-t5", "--wrap", "sleep 300"], None);
    running.await_job(rigid, "running", |job| job.state == JobState::Running);
    let (left, taken) = (running.job(malleable), running.job(rigid));
    assert_eq!((left.nodes.len(), taken.nodes.len()), (2, 2), "{left:?} {taken:?}");
    assert_eq!((left.state, left.restarts), (JobState::Running, 0));
    running.cluster.cancel(JobRef::whole(rigid)).unwrap();
    running.await_job(malleable, "on all nodes again", |job| job.nodes.len() == 4);
}
