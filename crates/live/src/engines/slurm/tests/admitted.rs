//! Mode `admit`: Slurm starts jobs by itself, within the licences of the budget.

use super::*;

/// In mode admit Slurm starts jobs: they are adopted with the watts that they were promised, and the rest of the licences
/// is reserved.
#[test]
fn what_slurm_admits_is_adopted() {
    let (made, mut worker) = begin(Mode::Admit);
    worker.handle([Work::Limit(Some(Watts::from_watts(700)))]);
    assert_eq!(
        made.with(|inside| inside.reservation.clone()),
        Some(Amounts::from([("power".to_owned(), 300)]))
    );
    made.job(1, |_| ());
    made.job(2, |job| {
        runs(job, "n[3-4]");
        job.licences = Amounts::from([("power".to_owned(), 301)]);
    });
    assert_eq!(look(&mut worker), ["2@1 runs on [2, 3] with Some(\"150.5W\")"]);
    assert_eq!(made.acts(), [""; 0], "what waits is Slurm's");
    let attempt = Attempt { job: 9, number: 1 };
    worker.handle([Work::Accepted { handle: "2@1".to_owned(), attempt }]);
    let cancel = Order::Signal { attempt, signal: Signal::Terminate };
    worker.handle([Work::Orders(vec![(Ticket(1), cancel)])]);
    assert_eq!(made.acts(), ["cancel 2"]);
    made.job(2, |job| job.state = JobState::Cancelled);
    assert_eq!(look(&mut worker), ["1 confirmed", "9.1 ended: Signalled(15)"]);
}

/// An administrator may delete or change the reservation, and Slurm may get other licences.
#[test]
fn the_licences_of_the_budget_are_put_right_at_every_look() {
    let (made, mut worker) = begin(Mode::Admit);
    let power = |licences: u64| Some(Amounts::from([("power".to_owned(), licences)]));
    worker.handle([Work::Limit(Some(Watts::from_watts(700)))]);
    assert_eq!(made.with(|inside| inside.reservation.clone()), power(300));
    let read = made.with(|inside| inside.reservations_read);
    assert_eq!(look(&mut worker), [""; 0], "nothing has changed");
    assert_eq!(made.with(|inside| inside.reservations_read), read, "one call tells that");

    made.with(|inside| inside.reservation = None);
    let notice = "the reservation 'busbar' of Slurm was removed; 300 of 1000 licences 'power' are reserved again";
    assert_eq!(look(&mut worker), [notice]);
    assert_eq!(made.with(|inside| inside.reservation.clone()), power(300));
    assert_eq!(look(&mut worker), [""; 0]);

    made.with(|inside| inside.reservation = power(10));
    let notice = "the reservation 'busbar' of Slurm had 10 licences instead of 300; 300 of 1000 licences 'power' are reserved again";
    assert_eq!(look(&mut worker), [notice]);

    made.with(|inside| inside.total = 4800);
    let notice = "Slurm has 4800 licences 'power' instead of 1000; 4100 of 4800 licences 'power' are reserved again";
    assert_eq!(look(&mut worker), [notice]);
    assert_eq!(made.with(|inside| inside.reservation.clone()), power(4100));

    // What the daemon changes itself is no news.
    worker.handle([Work::Limit(Some(Watts::from_watts(4800)))]);
    assert_eq!(look(&mut worker), [""; 0]);
    assert_eq!(made.with(|inside| inside.reservation.clone()), None);
    // Without licences Slurm starts no job that needs some, and what is reserved cannot be told.
    made.with(|inside| inside.total = 0);
    let notices = look(&mut worker);
    assert!(
        notices[0].contains("retrying: licence 'power': Slurm does not know it"),
        "{notices:?}"
    );
    assert_eq!(look(&mut worker), [""; 0], "once");
    made.with(|inside| inside.total = 4900);
    assert_eq!(look(&mut worker).len(), 1);
    assert_eq!(made.with(|inside| inside.reservation.clone()), power(100));
}
