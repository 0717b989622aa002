//! Times of records: local, with an offset of their own, or as Unix time.

use jiff::civil;
use jiff::tz::{AmbiguousOffset, TimeZone};

/// What was found about the times of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeCounts {
    /// Local times, which need a zone.
    pub(super) local: u64,
    /// Times with an offset of their own.
    pub(super) with_offset: u64,
    /// Local times that the clocks showed twice.
    pub(super) twice: u64,
    /// Local times that the clocks never showed.
    pub(super) never: u64,
}

/// A time of a record, in Unix time: one, or two of which one is meant, where clocks that were set back show both alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    first: i64,
    second: i64,
}

impl Moment {
    /// A time that comes once.
    pub(super) fn once(at: i64) -> Self {
        Moment { first: at, second: at }
    }

    /// A time that clocks show twice.
    pub(super) fn twice(first: i64, second: i64) -> Self {
        Moment { first, second }
    }

    /// The first time, or the only one.
    pub(super) fn first(self) -> i64 {
        self.first
    }

    pub(super) fn is_twice(self) -> bool {
        self.first != self.second
    }

    /// All times that may be meant, each once.
    pub(super) fn times(self) -> impl Iterator<Item = i64> {
        [self.first].into_iter().chain(self.is_twice().then_some(self.second))
    }
}

/// Reads times, as Unix time in seconds.
pub(super) struct Clock {
    zone: TimeZone,
    counts: TimeCounts,
    /// The offset in quarters of an hour that were looked up before.
    remembered: Box<[Option<(i64, i64)>; REMEMBERED]>,
}

/// In all zones since 1970, an offset holds from one quarter of an hour to another.
const QUARTER: i64 = 900;

/// Enough quarters of an hour for the times of jobs that stand close to each other.
const REMEMBERED: usize = 4096;

impl Clock {
    /// A clock that takes local times for those of a zone.
    pub(super) fn new(zone: TimeZone) -> Self {
        Clock { zone, counts: TimeCounts::default(), remembered: Box::new([None; REMEMBERED]) }
    }

    pub(super) fn counts(&self) -> TimeCounts {
        self.counts
    }

    /// A time. Nothing if the record says that it does not know; an error if it is no time.
    pub(super) fn read(&mut self, text: &[u8]) -> Result<Option<Moment>, NotATime> {
        match text {
            b"" | b"Unknown" | b"None" | b"N/A" | b"NaT" | b"nan" | b"NaN" | b"null" => Ok(None),
            _ if text.get(4) == Some(&b'-') => self.read_civil(text).map(Some),
            _ => read_unix(text).map(|at| Some(Moment::once(at))),
        }
    }

    /// `2024-03-31T02:30:00`, perhaps with a fraction and an offset.
    fn read_civil(&mut self, text: &[u8]) -> Result<Moment, NotATime> {
        let local = local_seconds(text.first_chunk().ok_or(NotATime)?)?;
        let mut rest = &text[19..];
        if let Some(fraction) = rest.strip_prefix(b".") {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            rest = &fraction[digits..];
        }
        if rest.is_empty() {
            self.counts.local += 1;
            return Ok(self.moment(local));
        }
        let offset = read_offset(rest)?;
        self.counts.with_offset += 1;
        Ok(Moment::once(local - offset))
    }

    /// When clocks show this. Where they never do, as if they had not been set yet.
    fn moment(&mut self, local: i64) -> Moment {
        let quarter = local.div_euclid(QUARTER);
        let place = quarter.rem_euclid(REMEMBERED as i64) as usize;
        if let Some((remembered, offset)) = self.remembered[place]
            && remembered == quarter
        {
            return Moment::once(local - offset);
        }
        match lookup(&self.zone, local) {
            AmbiguousOffset::Unambiguous { offset } => {
                let offset = i64::from(offset.seconds());
                self.remembered[place] = Some((quarter, offset));
                Moment::once(local - offset)
            }
            AmbiguousOffset::Gap { before, .. } => {
                self.counts.never += 1;
                Moment::once(local - i64::from(before.seconds()))
            }
            AmbiguousOffset::Fold { before, after } => {
                self.counts.twice += 1;
                let [first, second] =
                    [before, after].map(|offset| local - i64::from(offset.seconds()));
                Moment::twice(first, second)
            }
        }
    }
}

/// A text that should be a time and is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotATime;

fn lookup(zone: &TimeZone, local: i64) -> AmbiguousOffset {
    let epoch = civil::date(1970, 1, 1).at(0, 0, 0, 0);
    // Years have four digits here, so this is always a date that there is.
    let date = epoch.saturating_add(jiff::SignedDuration::from_secs(local));
    zone.to_ambiguous_timestamp(date).offset()
}

/// Seconds from the beginning of 1970 to what a clock shows, as if clocks were never set.
fn local_seconds(text: &[u8; 19]) -> Result<i64, NotATime> {
    let digits = |places: &[usize]| {
        places.iter().try_fold(0i64, |number, place| {
            let digit = text[*place].wrapping_sub(b'0');
            if digit < 10 { Ok(number * 10 + i64::from(digit)) } else { Err(NotATime) }
        })
    };
    let separators = (text[4], text[7], text[13], text[16]);
    if separators != (b'-', b'-', b':', b':') || !matches!(text[10], b'T' | b' ') {
        return Err(NotATime);
    }
    let (year, month, day) = (digits(&[0, 1, 2, 3])?, digits(&[5, 6])?, digits(&[8, 9])?);
    let (hour, minute, second) = (digits(&[11, 12])?, digits(&[14, 15])?, digits(&[17, 18])?);
    let is_date = (1970..=9990).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day);
    // A leap second is written as 60.
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return Err(NotATime);
    }
    Ok(days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Years are counted from March here, so that the day that some of them lack is the last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before_month = (153 * month + 2) / 5;
    365 * year + year / 4 - year / 100 + year / 400 + before_month + day - 1 - 719_468
}

/// Seconds since 1970, with or without a fraction.
fn read_unix(text: &[u8]) -> Result<i64, NotATime> {
    let point = memchr::memchr(b'.', text).unwrap_or(text.len());
    let (seconds, fraction) = text.split_at(point);
    let is_fraction = fraction.iter().skip(1).all(u8::is_ascii_digit);
    let seconds = super::quantity::whole(seconds).filter(|_| is_fraction).ok_or(NotATime)?;
    // Beyond the year 9990 it is rather something else.
    i64::try_from(seconds).ok().filter(|seconds| *seconds < 253_000_000_000).ok_or(NotATime)
}

/// `Z`, `+02`, `+0200` or `+02:00`, in seconds.
fn read_offset(text: &[u8]) -> Result<i64, NotATime> {
    let (sign, digits) = match text {
        b"Z" | b"z" => return Ok(0),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return Err(NotATime),
    };
    let number = |text: [u8; 2]| super::quantity::whole(&text).ok_or(NotATime);
    let (hours, minutes) = match *digits {
        [a, b] => (number([a, b])?, 0),
        [a, b, c, d] | [a, b, b':', c, d] => (number([a, b])?, number([c, d])?),
        _ => return Err(NotATime),
    };
    if hours > 14 || minutes > 59 {
        return Err(NotATime);
    }
    Ok(sign * (hours * 3600 + minutes * 60) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clock(zone: &str) -> Clock {
        Clock::new(TimeZone::get(zone).unwrap())
    }

    fn read(zone: &str, text: &str) -> Option<i64> {
        clock(zone).read(text.as_bytes()).unwrap().map(Moment::first)
    }

    #[test]
    fn times_in_all_their_forms() {
        let noon = 1_710_504_000;
        for text in [
            "2024-03-15T12:00:00",
            "2024-03-15 12:00:00",
            "2024-03-15T12:00:00.5",
            "2024-03-15T12:00:00Z",
            "2024-03-15T13:00:00+0100",
            "2024-03-15 07:30:00.123456-04:30",
            "1710504000",
            "1710504000.75",
        ] {
            assert_eq!(read("UTC", text), Some(noon), "{text}");
        }
        assert_eq!(read("Europe/Berlin", "2024-03-15T13:00:00"), Some(noon));
        for unknown in ["Unknown", "None", "", "N/A", "NaT"] {
            assert_eq!(read("UTC", unknown), None);
        }
    }

    #[test]
    fn what_is_no_time_is_not_taken_for_one() {
        for wrong in [
            "yesterday",
            "2024-13-01T00:00:00",
            "2023-02-29T00:00:00",
            "2024-03-15T24:00:00",
            "2024-03-15",
            "2024-03-15T12:00:00+2",
            "2024-03-15T12:00:00CET",
            "1710504000x",
            "-5",
            "17:04",
        ] {
            assert_eq!(clock("UTC").read(wrong.as_bytes()), Err(NotATime), "{wrong}");
        }
    }

    /// By hand: in Berlin, on 27 October 2024 the hour from two to three came twice, first at +2; on 31 March
    /// it never came, and the clocks before it were at +1.
    #[test]
    fn hours_that_come_twice_or_never() {
        let mut clock = clock("Europe/Berlin");
        let both = |clock: &mut Clock, text: &str| -> Vec<i64> {
            clock.read(text.as_bytes()).unwrap().unwrap().times().collect()
        };
        let at = |clock: &mut Clock, text: &str| {
            let [time] = both(clock, text)[..] else { panic!("{text}") };
            time
        };
        let first = 1_729_987_200;
        assert_eq!(both(&mut clock, "2024-10-27T02:00:00"), [first, first + 3600]);
        assert_eq!(at(&mut clock, "2024-10-27T02:00:00+0100"), first + 3600);
        assert_eq!(at(&mut clock, "2024-10-27T03:00:00"), first + 7200);
        assert_eq!(at(&mut clock, "2024-10-27T01:59:59"), first - 1);
        let skipped = 1_711_848_600;
        assert_eq!(at(&mut clock, "2024-03-31T02:30:00"), skipped);
        assert_eq!(at(&mut clock, "2024-03-31T03:30:00"), skipped);
        let expected = TimeCounts { local: 5, with_offset: 1, twice: 1, never: 1 };
        assert_eq!(clock.counts(), expected);
    }

    proptest! {
        /// The same as the library says, however many are read one after another.
        #[test]
        fn times_are_those_of_the_calendar(seconds in 0i64..8_000_000_000, zone in 0usize..4) {
            let name = ["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"][zone];
            let zone = TimeZone::get(name).unwrap();
            let mut clock = Clock::new(zone.clone());
            for seconds in [seconds, seconds + 1000, seconds] {
                let stamp = jiff::Timestamp::from_second(seconds).unwrap();
                let civil = stamp.to_zoned(zone.clone()).datetime();
                let expected = zone.to_ambiguous_timestamp(civil).compatible().unwrap().as_second();
                let text = civil.to_string();
                let read = clock.read(text.as_bytes()).map(|time| time.map(Moment::first));
                prop_assert_eq!(read, Ok(Some(expected)));
            }
        }
    }
}
