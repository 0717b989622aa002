//! Jobs that wait say why where their users look.

use busbar::live::wire::{Reply, Request};
use busbar::slurm::model::JobState;
use busbar::slurm::release_all::release_all;
use busbar_needs::needs;

use super::served::Served;

/// Two jobs for all nodes: the second says why it waits and, since somebody asks for a forecast, until when; then it runs, and
/// does not say so any more. `release-all` leaves nothing of the kind behind either.
#[needs(slurm)]
#[test]
fn a_job_that_waits_says_why_in_squeue() {
    let mut served = Served::idle(2, "steer", "easy-power", &[]);
    let submit = || served.running.submit(&["-N2", "-t300", "--wrap", "sleep infinity"], None);
    let (runs, waits, last) = (submit(), submit(), submit());
    served.begin();
    let in_squeue = |job: u32| {
        let columns = ["-h", "-j", &job.to_string(), "-O", "admin_comment:60"];
        let told = served.running.lab.programs().run("squeue", &columns).unwrap();
        told.out.trim().to_owned()
    };
    served.wait("the first job", || {
        (served.running.job(runs).state == JobState::Running).then_some(())
    });
    assert_eq!(in_squeue(runs), "busbar");
    served.wait("why the second one waits", || {
        in_squeue(waits).starts_with("busbar: waits for nodes").then_some(())
    });
    served.wait("when it is expected", || {
        match served.ask(&Request::Forecast(Box::default())) {
            Reply::Forecast(_) => (),
            other => panic!("{other:?}"),
        }
        in_squeue(waits).starts_with("busbar: waits for nodes, expected ").then_some(())
    });
    let programs = served.running.lab.programs();
    assert!(programs.run("scancel", &[&runs.to_string()]).unwrap().status.success());
    served.wait("that it runs", || {
        (served.running.job(waits).state == JobState::Running).then_some(())
    });
    assert_eq!(in_squeue(waits), "busbar");
    served.wait("why the last one waits", || {
        in_squeue(last).starts_with("busbar: waits").then_some(())
    });
    served.kill();
    let released = release_all(&served.running.cluster).unwrap();
    assert_eq!((released.jobs, released.failures), (vec![last.to_string()], Vec::new()));
    let comment = served.running.job(last).admin_comment;
    assert_eq!(comment.as_deref(), Some("busbar"));
}
