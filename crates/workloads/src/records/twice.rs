//! Which of two times is meant, where clocks were set back while a job waited or ran.
//!
//! In autumn the clocks of many places show an hour twice. A record that has local times does not say which of the
//! two it means, but its other times and the length of the run often do.

use super::time::Moment;

/// The times of a run, each of them one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) submit: i64,
    pub(super) start: i64,
    pub(super) end: i64,
    /// How many of them the clocks showed twice, and the record tells which is meant.
    pub(super) told: u64,
}

/// What speaks against a pair of times, the gravest first.
type Doubt = (bool, u64, bool);

/// The times of a run that is said to have taken `elapsed` seconds, where that is said. Where nothing tells two times
/// apart, the first is taken. Nothing if it is not known when the run ended.
pub(super) fn tell(
    submit: Moment,
    start: Moment,
    end: Option<Moment>,
    elapsed: Option<u32>,
) -> Option<Times> {
    let elapsed = elapsed.map(i64::from);
    // Most times come once, and need no thought.
    if !start.is_twice() && end.is_none_or(|end| !end.is_twice()) {
        let start = start.first();
        let end = end.map(Moment::first).or_else(|| Some(start + elapsed?))?;
        return Some(Times { submit: submit.first(), start, end, told: 0 });
    }
    let doubt = |start: i64, end: i64| -> Doubt {
        let off = elapsed.map_or(0, |elapsed| (end - start).abs_diff(elapsed));
        (end < start, off, start < submit.first())
    };
    let mut pairs: Vec<(Doubt, i64, i64)> = Vec::with_capacity(4);
    for start in start.times() {
        match end {
            Some(end) => {
                pairs.extend(end.times().map(|end| (doubt(start, end), start, end)));
            }
            None => {
                let end = start + elapsed?;
                pairs.push((doubt(start, end), start, end));
            }
        }
    }
    let &(least, from, until) = pairs.iter().min()?;
    let best = || pairs.iter().filter(|pair| pair.0 == least);
    let is_start_told = start.is_twice() && best().all(|pair| pair.1 == from);
    let is_end_told = end.is_some_and(Moment::is_twice) && best().all(|pair| pair.2 == until);
    let told = u64::from(is_start_told) + u64::from(is_end_told);
    Some(Times { submit: submit.first(), start: from, end: until, told })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An hour that comes twice begins at 0; what is counted here is minutes.
    fn clock(minute: i64) -> Moment {
        match (0..60).contains(&minute) {
            true => Moment::twice(minute * 60, (minute + 60) * 60),
            false => Moment::once(minute * 60),
        }
    }

    fn told(
        submit: Moment,
        start: Moment,
        end: Option<Moment>,
        minutes: Option<u32>,
    ) -> (i64, i64, u64) {
        let times = tell(submit, start, end, minutes.map(|minutes| minutes * 60)).unwrap();
        (times.start / 60, times.end / 60, times.told)
    }

    #[test]
    fn the_length_of_a_run_tells_which_time_is_meant() {
        let before = clock(-30);
        // From ten to two, the first time, to ten past two, the second time.
        assert_eq!(told(before, clock(50), Some(clock(10)), Some(20)), (50, 70, 2));
        // The same without a length: a run does not end before it starts.
        assert_eq!(told(before, clock(50), Some(clock(10)), None), (50, 70, 2));
        // Into the hour that comes twice, and out of it.
        assert_eq!(told(before, clock(-10), Some(clock(20)), Some(90)), (-10, 80, 1));
        assert_eq!(told(before, clock(-10), Some(clock(20)), Some(30)), (-10, 20, 1));
        assert_eq!(told(before, clock(20), Some(clock(150)), Some(130)), (20, 150, 1));
        assert_eq!(told(before, clock(20), Some(clock(150)), Some(70)), (80, 150, 1));
        // An end that is not written follows from the start, which is not before the submission.
        let between = Moment::once(70 * 60);
        assert_eq!(told(between, clock(20), None, Some(5)), (80, 85, 1));
    }

    /// Twenty minutes within the hour may have been within the first or within the second.
    #[test]
    fn what_nothing_tells_apart_is_the_first() {
        assert_eq!(told(clock(-30), clock(20), Some(clock(40)), Some(20)), (20, 40, 0));
        // Whoever was submitted after the hour did not start in the first of the two.
        let after = Moment::once(70 * 60);
        assert_eq!(told(after, clock(20), Some(clock(40)), Some(20)), (80, 100, 2));
        assert_eq!(tell(after, clock(20), None, None), None);
    }
}
