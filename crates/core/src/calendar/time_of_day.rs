//! Times of day as a clock on the wall shows them.

use jiff::civil::{Date, DateTime, Time};

/// A time of day as it is written: `22:00`.
pub fn clock_face(time: Time) -> String {
    let format = if time.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
    time.strftime(format).to_string()
}

/// Reads a time of day, in hours and minutes: `22:00`, or to the second.
pub fn parse_clock_face(text: &str) -> Result<Time, String> {
    let wrong = || format!("'{text}' is not a time of day; write 00:00 to 23:59, such as 22:00");
    let mut parts = [0; 3];
    let fields: Vec<&str> = text.trim().split(':').collect();
    if !(2..=3).contains(&fields.len()) {
        return Err(wrong());
    }
    for (part, field) in parts.iter_mut().zip(&fields) {
        let is_number = (1..=2).contains(&field.len()) && field.bytes().all(|b| b.is_ascii_digit());
        *part = field.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
    }
    Time::new(parts[0], parts[1], parts[2], 0).map_err(|_| wrong())
}

/// A part of the day, from a time on to before another. One that ends at or before the time at which it
/// begins passes midnight; midnight as the end is written `24:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Window {
    pub(super) from: Time,
    pub(super) to: Time,
}

impl Window {
    /// Reads `14:00-18:00`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once('-').ok_or_else(|| {
            format!("'{text}' is a single time; write a range, such as 14:00-18:00")
        })?;
        let from = parse_clock_face(from)?;
        let to = match to.trim() {
            "24:00" => Time::midnight(),
            to => parse_clock_face(to)?,
        };
        if from == to {
            return Err(format!(
                "'{text}' begins and ends at the same time; for whole days, leave the time out"
            ));
        }
        Ok(Window { from, to })
    }

    /// The day to which the window belongs that is open then, if one is: the day on which it began.
    pub(super) fn began(&self, now: DateTime) -> Option<Date> {
        let (date, time) = (now.date(), now.time());
        match self.from < self.to {
            true => (self.from <= time && time < self.to).then_some(date),
            false if time >= self.from => Some(date),
            false if time < self.to => date.yesterday().ok(),
            false => None,
        }
    }
}

impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let to = match self.to == Time::midnight() {
            true => "24:00".to_owned(),
            false => clock_face(self.to),
        };
        write!(f, "{}-{to}", clock_face(self.from))
    }
}
