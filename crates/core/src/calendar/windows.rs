//! Parts of a run's time, by a condition.

use super::rules::Rules;
use super::{Condition, NoCalendar, RunDates, Timetable};
use crate::units::Instant;

/// Parts of a run's time, in order, apart from each other, each from an instant to before another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Windows {
    name: String,
    parts: Vec<(Instant, Instant)>,
}

impl Windows {
    /// When a condition holds.
    pub fn of(condition: &Condition, dates: &RunDates) -> Result<Self, NoCalendar> {
        let timetable = Timetable::Rules(Rules::either(condition.clone()));
        Ok(Windows::where_true(&dates.steps(&timetable, &false)?))
    }

    /// From the steps that are true to those that are not; the last goes on for ever.
    pub(crate) fn where_true(steps: &[(Instant, bool)]) -> Self {
        let mut windows: Vec<(Instant, Instant)> = Vec::new();
        for (place, &(at, is_open)) in steps.iter().enumerate() {
            let end = steps.get(place + 1).map_or(Instant::NEVER, |next| next.0);
            match windows.last_mut().filter(|last| last.1 == at) {
                _ if !is_open => (),
                Some(last) => last.1 = end,
                None => windows.push((at, end)),
            }
        }
        Windows { name: String::new(), parts: windows }
    }

    /// The same by a name.
    pub(crate) fn called(self, name: String) -> Self {
        Windows { name, ..self }
    }

    /// Their name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether an instant is in one of them.
    pub(crate) fn has(&self, at: Instant) -> bool {
        let begun = self.parts.partition_point(|window| window.0 <= at);
        begun.checked_sub(1).is_some_and(|place| at < self.parts[place].1)
    }

    /// Whether some of the time from an instant to before another is in one of them.
    pub fn touch(&self, from: Instant, until: Instant) -> bool {
        self.parts.iter().any(|&(begin, end)| begin < until && from < end)
    }

    /// Whether an instant is in one of them, and until when that stays so. Instants must not go back: `place` is where
    /// the last one was.
    #[inline]
    pub(crate) fn state(&self, place: &mut usize, at: Instant) -> (bool, Instant) {
        while self.parts.get(*place).is_some_and(|window| window.1 <= at) {
            *place += 1;
        }
        match self.parts.get(*place) {
            Some(&(from, until)) if from <= at => (true, until),
            Some(&(from, _)) => (false, from),
            None => (false, Instant::NEVER),
        }
    }
}
