//! Limits in a file: rows of `time,budget`, or rules line by line.

use std::path::Path;

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;

use super::{Allowance, BudgetError, parse_rules};
use crate::calendar::{
    NoCalendar, Timetable, When, WhenError, clock_face, local_after, rule_value,
};
use crate::machine::Machine;
use crate::rows::{self, Cells, Form};
use crate::units::{Instant, Watts};

/// Tables of limits.
const LIMITS: Form =
    Form { what: "the budget file", columns: &["time", "budget"], form: "write time,budget" };

/// Limits as a file gives them.
#[derive(Clone, Debug, PartialEq)]
pub enum Limits {
    /// From so long after the start of the log on. There is at least one, and times increase.
    After(Vec<(Instant, Watts)>),
    /// By the clock on the wall.
    Timed(Timetable<Watts>),
}

/// What the times in a file count from.
#[derive(Clone, Copy, Debug)]
pub enum TimeBase<'a> {
    /// Seconds from the start of a log; dates without a zone are in the zone of the log, if that is known.
    Log(Result<&'a TimeZone, &'a NoCalendar>),
    /// There is no start: all times are dates or times of the day, in this zone.
    Wall(&'a TimeZone),
}

const OF_THE_WALL: &str =
    "a time of the day (22:00), or a date and time (2026-11-15 22:00, or 2026-11-15T22:00:00Z)";

impl Limits {
    /// Reads a file.
    pub fn read(path: &Path, machine: &Machine, base: &TimeBase<'_>) -> Result<Self, BudgetError> {
        Limits::parse(&LIMITS.read(path)?, path, machine, base)
    }

    /// Reads the text of a file.
    pub fn parse(
        text: &str,
        path: &Path,
        machine: &Machine,
        base: &TimeBase<'_>,
    ) -> Result<Self, BudgetError> {
        match holds_rules(text) {
            true => rules(text, path, machine),
            false => table(text, path, machine, base),
        }
    }
}

/// Whether a file holds rules: its first line begins with one, and not with a time and a comma.
fn holds_rules(text: &str) -> bool {
    let Some((_, line)) = rows::lines(text).next() else { return false };
    let first = line.split([',', ';']).next().unwrap_or_default().trim();
    let begins_with_letter = first.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_value = |value: &str| begins_with_letter || value.parse::<Allowance>().is_ok();
    When::parse(first).is_err() && rule_value(first).is_some_and(is_value)
}

fn rules(text: &str, path: &Path, machine: &Machine) -> Result<Limits, BudgetError> {
    let lines: Vec<(usize, &str)> = rows::lines(text).collect();
    let joined: Vec<&str> = lines.iter().map(|(_, line)| *line).collect();
    let rules = parse_rules(&joined.join("\n")).map_err(|why| {
        let rule = why.rule();
        let line = rule.and_then(|rule| lines.iter().find(|(_, line)| line.contains(rule)));
        BudgetError::FileRules {
            path: path.to_owned(),
            line: line.map(|(line, _)| *line),
            why: Box::new(why),
        }
    })?;
    Ok(Limits::Timed(Timetable::Rules(rules.try_map(|limit| limit.on(machine))?)))
}

/// Rows as far as they were read: all of one kind.
#[derive(Default)]
struct Rows {
    after: Vec<(Instant, Watts)>,
    daily: Vec<(Time, Watts)>,
    dated: Vec<(Timestamp, Watts)>,
}

fn table(
    text: &str,
    path: &Path,
    machine: &Machine,
    base: &TimeBase<'_>,
) -> Result<Limits, BudgetError> {
    let mut rows = Rows::default();
    for cells in LIMITS.rows(text, path) {
        let cells = cells?;
        let [time, limit] = cells.all();
        let wrong = |field, why: String| BudgetError::Table(cells.unreadable(field, why));
        let when = when(time, base).map_err(|why| wrong("time", why))?;
        let limit = limit
            .parse::<Allowance>()
            .map_err(|error| wrong("budget", error.to_string()))?
            .on(machine)
            .map_err(|error| wrong("budget", error.to_string()))?;
        rows.add(&cells, time, when, limit, base)?;
    }
    match (rows.after.is_empty(), rows.daily.is_empty(), rows.dated.is_empty()) {
        (false, ..) => Ok(Limits::After(rows.after)),
        (_, false, _) => Ok(Limits::Timed(Timetable::Daily(rows.daily))),
        (_, _, false) => Ok(Limits::Timed(Timetable::Dated(rows.dated))),
        _ => Err(BudgetError::NoRows { path: path.to_owned() }),
    }
}

fn when(text: &str, base: &TimeBase<'_>) -> Result<When, String> {
    let counts = matches!(base, TimeBase::Log(_));
    match When::parse(text) {
        Ok(When::After(_)) if !counts => {
            Err(format!("'{text}' cannot count seconds from a start; write {OF_THE_WALL}"))
        }
        Ok(when) => Ok(when),
        Err(WhenError::TimeOfDay(why)) => Err(why),
        Err(WhenError::Unknown) if counts => Err(format!(
            "'{text}' is not a time; write seconds since the start of the log (3600), {OF_THE_WALL}"
        )),
        Err(WhenError::Unknown) => Err(format!("'{text}' is not a time; write {OF_THE_WALL}")),
    }
}

impl Rows {
    fn add(
        &mut self,
        cells: &Cells<'_>,
        time: &str,
        when: When,
        limit: Watts,
        base: &TimeBase<'_>,
    ) -> Result<(), BudgetError> {
        let wrong = |why: String| BudgetError::Table(cells.unreadable("time", why));
        let kinds = [
            (!self.after.is_empty(), "a number of seconds", "numbers of seconds"),
            (!self.daily.is_empty(), "a time of the day", "times of the day"),
            (!self.dated.is_empty(), "a date", "dates"),
        ];
        let kind = match when {
            When::After(_) => 0,
            When::Daily(_) => 1,
            When::At(_) | When::Local(_) => 2,
        };
        if let Some((_, (.., others))) =
            kinds.iter().enumerate().find(|(place, (has, ..))| *has && *place != kind)
        {
            let is = kinds[kind].1;
            return Err(wrong(format!(
                "'{time}' is {is}, and the rows before it are {others}; write the same in all rows"
            )));
        }
        let not_after = |before: String| wrong(format!("'{time}' does not come after {before}"));
        match when {
            When::After(at) => {
                if let Some((before, _)) = self.after.last().filter(|step| step.0 >= at) {
                    return Err(not_after(before.to_string()));
                }
                self.after.push((at, limit));
            }
            When::Daily(from) => {
                if let Some((before, _)) = self.daily.last().filter(|step| step.0 >= from) {
                    return Err(not_after(clock_face(*before)));
                }
                self.daily.push((from, limit));
            }
            When::At(_) | When::Local(_) => {
                let zone = match base {
                    TimeBase::Wall(zone) => zone,
                    TimeBase::Log(zone) => (*zone).map_err(Clone::clone)?,
                };
                let last = self.dated.last().map(|step| step.0);
                let at = match when {
                    When::At(at) => Some(at),
                    When::Local(local) => local_after(zone, local, last),
                    When::After(_) | When::Daily(_) => None,
                };
                let at =
                    at.ok_or_else(|| wrong(format!("'{time}' is out of the range of calendars")))?;
                if let Some(before) = last.filter(|before| *before >= at) {
                    return Err(not_after(zone.to_datetime(before).to_string()));
                }
                self.dated.push((at, limit));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::units::Span;

    fn machine() -> Machine {
        Machine { base_power: Watts::from_watts(50), ..Machine::of_processors(10).unwrap() }
    }

    fn read(text: &str) -> Result<Limits, BudgetError> {
        let none = NoCalendar::NotSaid;
        Limits::parse(text, Path::new("feed.csv"), &machine(), &TimeBase::Log(Err(&none)))
    }

    fn budget(text: &str) -> Budget {
        match read(text).unwrap() {
            Limits::After(steps) => Budget::from_steps(steps).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rows_change_the_limit_and_wrong_rows_are_named() {
        let feed = budget("time,budget\n0,100%\n# night\n3600,500W\n");
        assert_eq!(feed.at(Instant::from_secs(3599)), Watts::from_watts(1050));
        assert_eq!(feed.at(Instant::from_secs(3600)), Watts::from_watts(500));
        assert_eq!(feed.changes_after(Instant::ZERO).len(), 1);
        // An hour from the start is just as long as the higher limit holds.
        let longest =
            |from, time| feed.largest_for(Instant::from_secs(from), Span::from_secs(time));
        assert_eq!(longest(0, 3600), Watts::from_watts(1050));
        assert_eq!(longest(0, 3601), Watts::from_watts(500));
        assert_eq!(longest(1, 3600), Watts::from_watts(500));
        assert_eq!(longest(1, 0), Watts::from_watts(1050));
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            error("0,1kW\n0,1kW"),
            "feed.csv, line 2, field 'time': '0' does not come after 0 s; write time,budget"
        );
        assert!(error("0,1kW\nx,1kW").starts_with("feed.csv, line 2, field 'time'"));
        assert!(error("0 1kW").starts_with("feed.csv, line 1, field 'budget': '0 1kW'"));
        assert!(error("0,12").contains("valid units"));
        assert_eq!(budget("0,60%\n3600,none\n").at(Instant::from_secs(3600)), Watts::UNLIMITED);
        assert!(error("").contains("feed.csv has no time,budget rows"));
        assert!(
            error("0,1kW\n12:00,1kW")
                .contains("a time of the day, and the rows before it are numbers")
        );
        assert!(error("2026-11-03 14:00,1kW").contains("needs dates"));
    }

    #[test]
    fn rules_stand_line_by_line() {
        let text =
            "# winter\nweekdays 14:00-18:00 nov..feb: 80%\n\n12-24..12-26: none,\nelse 50%\n";
        let zone = TimeZone::UTC;
        let parse = |text: &str| {
            Limits::parse(text, Path::new("feed.txt"), &machine(), &TimeBase::Wall(&zone))
        };
        let Limits::Timed(timetable) = parse(text).unwrap() else { panic!() };
        let at = |text: &str| *timetable.at(text.parse().unwrap(), &zone);
        assert_eq!(at("2026-11-03T14:00Z"), Watts::from_watts(840));
        assert_eq!(at("2026-11-03T18:00Z"), Watts::from_watts(525));
        assert_eq!(at("2026-12-26T23:00Z"), Watts::UNLIMITED);
        let error = parse("weekdays: 80%\nweekend: 90%\nsumer: 1kW").unwrap_err().to_string();
        assert!(
            error.starts_with("feed.txt, line 3: rule 'sumer: 1kW': 'sumer' is not a time"),
            "{error}"
        );
        let error = parse("14:00-18:00: 80%").unwrap_err().to_string();
        assert!(error.starts_with("feed.txt: no rule applies on"), "{error}");
    }
}
