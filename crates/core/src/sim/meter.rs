//! The meter: what is really drawn, as opposed to what the ledger has handed out.
//!
//! A scheduler hands out the power it believes a job to draw. Where belief and truth differ, the
//! machine may draw more than its budget although nobody was given too much: an excursion.

use crate::units::{Instant, Joules, Span, Watts};

/// Power drawn, integrated over time.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    now: Instant,
    /// What the machine draws without jobs.
    base: Watts,
    power: Watts,
    limit: Watts,
    energy: Joules,
    /// Of that, what jobs added.
    by_jobs: Joules,
    peak: Watts,
    excursions: Excursions,
}

/// Times at which more was drawn than the budget allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excursions {
    /// How many, each from the first instant above the limit to the first that is not.
    pub count: u64,
    /// How long in all.
    pub time: Span,
    /// The most that was drawn above the limit in force.
    pub worst: Watts,
    /// Whether there is one going on.
    lasts: bool,
}

impl Meter {
    /// A machine that draws `base` whatever runs.
    pub(super) fn new(base: Watts, begin: Instant, limit: Watts) -> Self {
        Meter {
            now: begin,
            base,
            power: base,
            limit,
            energy: Joules::ZERO,
            by_jobs: Joules::ZERO,
            peak: base,
            excursions: Excursions::default(),
        }
    }

    /// Moves the clock: what was drawn until now is charged. The limit is the one in force from
    /// now on. What is drawn only within one instant, between two decisions, does not count as drawn.
    #[inline]
    pub(super) fn advance(&mut self, now: Instant, limit: Watts) {
        let elapsed = now.since(self.now);
        if elapsed > Span::ZERO {
            self.energy += self.power.over(elapsed);
            self.by_jobs += (self.power - self.base).over(elapsed);
            self.peak = self.peak.max(self.power);
            if self.power > self.limit {
                self.note_excursion(elapsed);
            } else {
                self.excursions.lasts = false;
            }
            self.now = now;
        }
        self.limit = limit;
    }

    #[cold]
    fn note_excursion(&mut self, elapsed: Span) {
        let excursions = &mut self.excursions;
        excursions.count += u64::from(!excursions.lasts);
        excursions.lasts = true;
        excursions.time = excursions.time + elapsed;
        excursions.worst = excursions.worst.max(self.power - self.limit);
    }

    /// From now on the machine draws so much without jobs.
    #[inline]
    pub(super) fn rebase(&mut self, base: Watts) {
        self.power = self.power - self.base + base;
        self.base = base;
    }

    /// A job begins to draw.
    #[inline]
    pub(super) fn add(&mut self, power: Watts) {
        self.power += power;
    }

    /// A job stops.
    #[inline]
    pub(super) fn remove(&mut self, power: Watts) {
        self.power -= power;
    }

    pub(super) fn power(&self) -> Watts {
        self.power
    }

    pub(super) fn energy(&self) -> Joules {
        self.energy
    }

    /// The energy that jobs added to what the machine draws anyway.
    pub(super) fn by_jobs(&self) -> Joules {
        self.by_jobs
    }

    pub(super) fn peak(&self) -> Watts {
        self.peak
    }

    pub(super) fn excursions(&self) -> Excursions {
        self.excursions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 50 W of base; 100 W for 10 s, then 150 W more for 5 s under a limit of 250 W that then
    /// falls to 120 W for 2 s and rises again.
    #[test]
    fn energy_peak_and_excursions_by_hand() {
        let watts = Watts::from_watts;
        let at = Instant::from_secs;
        let mut meter = Meter::new(watts(50), at(100), watts(250));
        meter.add(watts(100));
        meter.advance(at(110), watts(250));
        meter.add(watts(150));
        meter.advance(at(115), watts(250));
        meter.remove(watts(150));
        meter.advance(at(115), watts(120));
        meter.advance(at(117), watts(250));
        meter.advance(at(120), watts(250));
        // 10·150 + 5·300 + 2·150 + 3·150.
        assert_eq!(meter.energy().as_f64(), 3750.0);
        assert_eq!((meter.peak(), meter.power()), (watts(300), watts(150)));
        let excursions = meter.excursions();
        assert_eq!(excursions.time, Span::from_secs(7));
        assert_eq!(excursions.worst, watts(50));
        assert_eq!(excursions.count, 1);
    }

    /// A job starts before another one ends at the same instant: for no time at all both are there.
    #[test]
    fn what_lasts_for_no_time_is_no_peak() {
        let (watts, at) = (Watts::from_watts, Instant::from_secs);
        let mut meter = Meter::new(watts(50), at(0), watts(1000));
        meter.add(watts(100));
        meter.advance(at(10), watts(1000));
        meter.add(watts(300));
        meter.remove(watts(100));
        meter.advance(at(10), watts(1000));
        meter.remove(watts(200));
        meter.advance(at(20), watts(1000));
        meter.add(watts(900));
        assert_eq!(meter.peak(), watts(150));
        meter.advance(at(21), watts(1000));
        assert_eq!(meter.peak(), watts(1050));
    }
}
