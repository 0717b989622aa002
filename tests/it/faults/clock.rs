//! The clock on the wall is set by a day, forward and back, and the machine goes down. Jobs are timed by the
//! daemon's own clock, and a profile of the day follows the wall.

use busbar::live::engine::{Immediate, Signal};
use busbar::live::job::{Attempt, End};
use busbar::live::wire::{Reply, Request, State};
use busbar::units::{Instant, Watts};

use super::books::Books;
use super::by_hand::{ByHand, DAY, Done, daily, first, o_clock};

#[test]
fn the_wall_is_set_and_nobody_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let schedule = daily(&[(6, "400W"), (22, "240W")]);
    let mut day = ByHand::new(folder.path(), "easy", &schedule);
    day.hand.set_wall(10 * DAY + o_clock(12));
    day.begin();
    day.submit(1, 3600).unwrap();
    day.submit(3, 7200).unwrap();
    let mut done = Done::default();
    done.take(&day.engine);
    assert_eq!(done.starts, 2);

    // A day forward, two back, and one forward again; and once into the evening.
    for (days, hour, limit) in
        [(11, 12, 400), (9, 12, 400), (10, 12, 400), (9, 23, 240), (10, 12, 400)]
    {
        day.hand.set_wall(days * DAY + o_clock(hour));
        day.pass(60);
        let status = day.status();
        assert_eq!(status.power.limit, Some(Watts::from_watts(limit)), "day {days}, {hour}:00");
        assert_eq!(status.power.notice.is_some(), limit < 400, "{:?}", status.power.notice);
        done.take(&day.engine);
        assert_eq!((status.running, &done.signals[..], done.starts), (2, &[][..], 0));
    }
    assert_eq!(day.status().now, Instant::from_secs(5 * 60));

    // The first has an hour by the daemon's clock, then 30 s to end by itself.
    day.pass(3600 - 5 * 60 - 1);
    done.take(&day.engine);
    assert_eq!(done.signals, []);
    day.pass(1);
    done.take(&day.engine);
    assert_eq!(done.signals, [(first(1), Signal::Terminate)]);
    day.hand.set_wall(20 * DAY + o_clock(12));
    day.pass(29);
    done.take(&day.engine);
    assert_eq!(done.signals, []);
    day.pass(1);
    done.take(&day.engine);
    assert_eq!(done.signals, [(first(1), Signal::Kill)]);
    assert!(day.engine.end(first(1), End::Signalled(9)));
    assert!(day.engine.end(first(2), End::Exited(0)));
    day.pass(1);
    let Reply::Show(shown) = day.ask(Request::Show { job: 1 }) else { panic!("it is kept") };
    assert_eq!(shown.line.state, State::TimedOut);
    Books::add_up(&day.history(), 4).unwrap();
    day.end();
}

/// A machine that goes down takes its jobs with it. What became of them is what the engine says, and the
/// daemon's time goes on, whatever the wall says then.
#[test]
fn the_machine_goes_down() {
    let folder = tempfile::tempdir().unwrap();
    let mut day = ByHand::new(folder.path(), "easy", &daily(&[(0, "400W")]));
    day.hand.set_wall(10 * DAY);
    day.begin();
    for nodes in [1, 2, 4] {
        day.submit(nodes, 3600).unwrap();
    }
    day.pass(600);
    let mut done = Done::default();
    done.take(&day.engine);
    assert_eq!(done.starts, 2);

    // The first had begun. Of the second nothing had reached the disk. The third waited.
    day.end();
    assert!(day.engine.end(first(1), End::Lost));
    day.engine.forget(first(2));
    day.hand.reboot(busbar::units::Span::from_secs(300));
    day.begin();
    done.take(&day.engine);
    assert_eq!(day.status().now, Instant::from_secs(900));
    let again = Attempt { job: 2, number: 2 };
    assert_eq!((day.engine.running(), done.starts), (vec![again], 1));
    let Reply::Show(shown) = day.ask(Request::Show { job: 1 }) else { panic!("it is kept") };
    assert_eq!((shown.line.state, shown.end), (State::Lost, Some(End::Lost)));

    // It has all of its time from then on.
    day.pass(3599);
    done.take(&day.engine);
    assert_eq!(done.signals, []);
    day.pass(1);
    done.take(&day.engine);
    assert_eq!(done.signals, [(again, Signal::Terminate)]);

    // Down again, and the clock on the wall comes back a day behind.
    day.end();
    assert!(day.engine.end(again, End::Lost));
    day.hand.reboot(busbar::units::Span::from_secs(300));
    day.hand.set_wall(9 * DAY);
    day.begin();
    assert_eq!(day.status().now, Instant::from_secs(4500), "it goes on, and not back");
    assert_eq!(day.engine.running(), [first(3)]);
    assert!(day.engine.end(first(3), End::Exited(0)));
    day.pass(1);
    let books = Books::add_up(&day.history(), 4).unwrap();
    let attempts: Vec<_> = books.jobs.values().map(|job| job.attempts).collect();
    assert_eq!((attempts, books.withdrawn), (vec![1, 2, 1], 1));
    day.end();
}
