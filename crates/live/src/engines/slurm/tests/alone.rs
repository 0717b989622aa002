//! Slurm goes on by itself while no daemon is there, and a daemon takes over again.

use busbar_slurm::setup::Switch;

use super::*;
use crate::engines::slurm::{StandIn, StandInTerms};

fn stand_in(folder: &tempfile::TempDir) -> StandIn {
    StandIn::new(StandInTerms {
        partitions: vec!["main".to_owned()],
        licence: "power".to_owned(),
        node_watts: 200,
        switch: folder.path().join("busbar.off"),
    })
}

fn watts(made: &Made, job: u32) -> Option<u64> {
    made.with(|inside| inside.jobs[&job].licences.get("power").copied())
}

/// A cluster whose daemon has died with 600 of 1000 W reserved: job 1 runs, 2 was released, 3 and 4 wait, 4 for its user too, and
/// 5 is none of Busbar's.
fn left_alone() -> Made {
    let (made, _) = begin(Mode::Steer);
    made.with(|inside| {
        inside.reservation = Some(Amounts::from([("power".to_owned(), 600)]));
        inside.counts = Some(400);
    });
    made.job(1, |job| runs(job, "n[1-2]"));
    made.job(2, |job| job.hold = None);
    made.job(3, |job| job.hold = Some(Hold::Admin));
    made.job(4, |job| {
        (job.hold, job.comment) = (Some(Hold::Admin), Some(WAIT.to_owned()));
    });
    made.job(5, |job| job.partitions = vec!["free".to_owned()]);
    made
}

/// What runs counts before anything else may start, and what was released without licences is held first.
#[test]
fn what_runs_counts_before_anything_starts() {
    let (made, folder) = (left_alone(), tempfile::tempdir().unwrap());
    let mut stand_in = stand_in(&folder);
    let passed = stand_in.pass(&made).unwrap();
    assert_eq!((passed.counted, passed.released), (1, 2));
    let acts = made.acts();
    let expected =
        ["1 has {\"power\": 400}", "hold 2", "hold 4 for its user", "release 2", "release 3"];
    assert_eq!(acts, expected);
    let all: Vec<Option<u64>> = (1..=5).map(|job| watts(&made, job)).collect();
    assert_eq!(all, [Some(400), Some(400), Some(400), None, None]);
    assert_eq!(Switch::read(&folder.path().join("busbar.off")), Switch::Admit);
    made.job(4, |job| job.hold = Some(Hold::User));
    assert_eq!(stand_in.pass(&made).unwrap(), Default::default(), "once");
    // An administrator deletes the reservation: nobody gets more than the last budget.
    made.with(|inside| inside.reservation = None);
    let notices = stand_in.pass(&made).unwrap().notices;
    assert!(notices[0].contains("600 of 1000 licences 'power' are reserved again"), "{notices:?}");
}

/// Where the cluster was given back to Slurm, there is no budget.
#[test]
fn a_cluster_that_was_given_back_is_left_alone() {
    let (made, folder) = (left_alone(), tempfile::tempdir().unwrap());
    Switch::Off.write(&folder.path().join("busbar.off")).unwrap();
    assert_eq!(stand_in(&folder).pass(&made).unwrap(), Default::default());
    assert_eq!(made.acts(), [""; 0]);
}

/// If what runs cannot be counted, nothing is released.
#[test]
fn nothing_starts_if_something_cannot_be_counted() {
    let (made, folder) = (left_alone(), tempfile::tempdir().unwrap());
    made.with(|inside| inside.fails = true);
    assert!(stand_in(&folder).pass(&made).is_err());
    assert!(made.acts().iter().all(|act| !act.starts_with("release")));
    assert_eq!(Switch::read(&folder.path().join("busbar.off")), Switch::On);
}

/// A daemon that comes back holds what Slurm could start, adopts what it has started with its licences, and starts nothing that was
/// decided before. What it starts then has no licences of watts, and keeps others.
#[test]
fn a_daemon_takes_over_from_slurm() {
    let (made, mut worker) = begin_with(Mode::Steer, true);
    made.job(7, |job| {
        job.hold = None;
        job.licences = Amounts::from([("power".to_owned(), 400), ("foo".to_owned(), 1)]);
    });
    made.job(8, |job| {
        runs(job, "n[3-4]");
        job.licences = Amounts::from([("power".to_owned(), 400)]);
    });
    // Job 9 has waited for the daemon before, and this was decided before it has looked.
    made.job(9, |job| job.hold = Some(Hold::Admin));
    let known = (Attempt { job: 3, number: 1 }, "9@1".to_owned());
    worker.handle([Work::Recall { jobs: vec![known], done: Vec::new() }]);
    worker.handle([start_anywhere(1, 3, "9@1", &[0, 1])]);
    let said = look(&mut worker);
    assert!(said.contains(&"7@1 arrived".to_owned()), "{said:?}");
    assert!(said.contains(&"8@1 runs on [2, 3] with Some(\"200W\")".to_owned()), "{said:?}");
    let acts = made.acts();
    assert_eq!(acts[0], "hold 7");
    worker.handle([start_anywhere(2, 1, "7@1", &[0, 1])]);
    let acts = made.acts();
    assert_eq!(acts[0], "7 has {\"foo\": 1}", "{acts:?}");
    assert_eq!(watts(&made, 7), None);
}
