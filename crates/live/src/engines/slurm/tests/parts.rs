//! Jobs whose nodes the daemon chooses, whole ones or parts of them.

use busbar_slurm::parts::{Held, Part};

use super::*;

/// A job asks for three processors on each of two nodes.
fn asks(job: &mut Job) {
    job.cpus = 5;
    job.part = Some(Part { cpus: 3, memory_mib: 300, gpus: 0, is_exclusive: false });
}

fn held(job: &mut Job, cpus: [u32; 2]) {
    let of =
        |(node, cpus): (&str, u32)| Held { node: node.to_owned(), cpus, memory_mib: 300, gpus: 0 };
    job.held = Some(["n1", "n2"].into_iter().zip(cpus).map(of).collect());
}

/// A start of an allotment with so many processors of each node.
fn start_with(cores: u32) -> Work {
    let Work::Orders(mut orders) = start(1, 3, "7@1", &[0, 1]) else { unreachable!() };
    let Order::Start(launch) = &mut orders[0].1 else { unreachable!() };
    launch.allotment.cores = cores;
    Work::Orders(orders)
}

/// Slurm is asked for the same on each node, since it may give what a job asks for unevenly.
#[test]
fn a_job_gets_the_same_part_of_each_of_its_nodes() {
    let (made, mut worker) = begin_placing(Mode::Steer, false, Placing::InParts);
    made.job(7, asks);
    look(&mut worker);
    made.acts();
    worker.handle([start_with(3)]);
    assert_eq!(
        made.acts(),
        ["7 gets 3 of 6 processors", "update 7 Some((2, 2)) n[1-2] Some(10) ", "release 7"]
    );
    made.job(7, |job| {
        runs(job, "n[1-2]");
        held(job, [3, 3]);
    });
    assert_eq!(look(&mut worker), ["1 confirmed"]);
    assert_eq!(made.acts(), [""; 0]);
}

/// One that has more of a node than the daemon counts with is taken back.
#[test]
fn who_has_more_than_it_was_given_does_not_stay() {
    let (made, mut worker) = begin_placing(Mode::Steer, false, Placing::InParts);
    made.job(7, asks);
    look(&mut worker);
    worker.handle([start_with(3)]);
    made.acts();
    made.job(7, |job| {
        runs(job, "n[1-2]");
        held(job, [4, 1]);
    });
    let said = look(&mut worker);
    assert!(
        said[0].starts_with("1 failed: job 3.1: node slurm: Slurm has started it on n[1-2]"),
        "{said:?}"
    );
    assert_eq!(made.acts(), ["requeue 7"]);
}

/// A job that has its nodes for itself has all processors of them, however many the daemon says.
#[test]
fn whole_nodes_among_shared_ones() {
    let (made, mut worker) = begin_placing(Mode::Steer, false, Placing::InParts);
    made.job(7, |job| {
        asks(job);
        job.part = job.part.map(|part| Part { is_exclusive: true, ..part });
    });
    look(&mut worker);
    made.acts();
    worker.handle([start_with(1)]);
    assert_eq!(made.acts(), ["update 7 Some((2, 2)) n[1-2] Some(10) ", "release 7"]);
    made.job(7, |job| {
        runs(job, "n[1-2]");
        held(job, [4, 4]);
    });
    assert_eq!(look(&mut worker), ["1 confirmed"]);
}

/// Slurm may know of a reason that the daemon does not. Others go on meanwhile.
#[test]
fn a_job_that_cannot_be_on_its_nodes_is_set_aside() {
    let (made, mut worker) = begin_placing(Mode::Steer, false, Placing::Whole);
    made.job(7, |_| ());
    look(&mut worker);
    worker.handle([start(1, 3, "7@1", &[0, 1])]);
    made.acts();
    made.job(7, |job| job.reason = Some("BadConstraints".to_owned()));
    let said = look(&mut worker);
    let aside = "3.1 is set aside: Slurm did not place it: BadConstraints";
    // These tests have no patience, so the pause before it is offered again is over at once.
    assert_eq!(said, ["1 confirmed", aside, "7@1 is offered"]);
    assert_eq!(made.acts(), ["hold 7"]);
}
