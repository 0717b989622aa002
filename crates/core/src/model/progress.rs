//! How far a running job has got, and when it will end.
//!
//! A job is a fixed amount of work; so is the time it is allowed. Both go on as fast as its present
//! point lets them, and stand still while the job moves from one point to another, or is suspended.
//! What is simulated and what is replayed reckon with this, so they agree to the millisecond.

use super::Work;
use crate::units::{Instant, Span};

/// How far a running job has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pace: Pace,
    /// How long all of the work takes at the present point.
    whole: Span,
    /// All the time it is allowed there.
    limit: Span,
    work: Work,
    allowance: Work,
}

/// Whether it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// Since then; in the future while it moves.
    Going(Instant),
    /// It is suspended, and has to move for so long when it goes on.
    Still(Span),
}

impl Progress {
    /// A job starts, at a point at which all of it takes `whole` and may take `limit`.
    pub fn start(now: Instant, whole: Span, limit: Span) -> Self {
        Progress { pace: Pace::Going(now), whole, limit, work: Work::ALL, allowance: Work::ALL }
    }

    /// It goes on at another point after a pause. One who is still moving finishes that first; whose
    /// work is done need not move any more.
    pub fn change(&mut self, now: Instant, whole: Span, limit: Span, pause: Span) {
        self.reckon(now);
        let pause = if self.work.is_done() { Span::ZERO } else { pause };
        self.pace = match self.pace {
            Pace::Going(since) => Pace::Going(since + pause),
            Pace::Still(moving) => Pace::Still(moving + pause),
        };
        (self.whole, self.limit) = (whole, limit);
    }

    /// It stands still from now on.
    pub fn suspend(&mut self, now: Instant) {
        self.reckon(now);
        if let Pace::Going(since) = self.pace {
            self.pace = Pace::Still(since.since(now));
        }
    }

    /// It goes on.
    pub fn resume(&mut self, now: Instant) {
        if let Pace::Still(moving) = self.pace {
            self.pace = Pace::Going(now + moving);
        }
    }

    /// When its work is done if nothing changes.
    pub fn done(&self) -> Instant {
        self.after(self.work.time(self.whole))
    }

    /// When its time is up if nothing changes.
    pub fn up(&self) -> Instant {
        self.after(self.allowance.time(self.limit))
    }

    fn after(&self, time: Span) -> Instant {
        match self.pace {
            Pace::Going(since) => since + time,
            Pace::Still(_) => Instant::NEVER,
        }
    }

    /// The remaining work now.
    fn reckon(&mut self, now: Instant) {
        if let Pace::Going(since) = self.pace {
            let elapsed = now.since(since);
            self.work = self.work.after(elapsed, self.whole);
            self.allowance = self.allowance.after(elapsed, self.limit);
            self.pace = Pace::Going(since.max(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u32) -> Instant = Instant::from_secs;
    const SECONDS: fn(u32) -> Span = Span::from_secs;

    /// 100 s of work, 200 s allowed. After 40 s, 60 s of work and 160 s of the allowance are left; it
    /// stands still for 1000 s.
    #[test]
    fn who_stands_still_loses_nothing() {
        let mut job = Progress::start(AT(0), SECONDS(100), SECONDS(200));
        job.suspend(AT(40));
        assert_eq!((job.done(), job.up()), (Instant::NEVER, Instant::NEVER));
        job.suspend(AT(500));
        job.resume(AT(1040));
        assert_eq!((job.done(), job.up()), (AT(1100), AT(1200)));
        job.resume(AT(1050));
        assert_eq!(job.done(), AT(1100), "it goes on already");
    }

    /// Suspended 4 s into a move of 10 s, and given a point that is twice as fast meanwhile, to which it
    /// moves for 3 s: 6 + 3 s of moving are left when it goes on, and 30 s of work.
    #[test]
    fn who_is_suspended_moves_later() {
        let mut job = Progress::start(AT(0), SECONDS(200), SECONDS(400));
        job.change(AT(80), SECONDS(100), SECONDS(200), SECONDS(10));
        assert_eq!(job.done(), AT(80 + 10 + 60));
        job.suspend(AT(84));
        job.change(AT(90), SECONDS(50), SECONDS(100), SECONDS(3));
        job.resume(AT(100));
        assert_eq!(job.done(), AT(100 + 6 + 3 + 30));
    }

    #[test]
    fn whose_work_is_done_does_not_move() {
        let mut job = Progress::start(AT(0), SECONDS(10), SECONDS(20));
        job.change(AT(10), SECONDS(5), SECONDS(10), SECONDS(99));
        assert_eq!(job.done(), AT(10));
    }
}
