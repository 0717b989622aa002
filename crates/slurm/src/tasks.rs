//! Elements of a job array as Slurm writes them: `7`, `1-5`, `0-9:2`, `1,3,7-9%2`.

use std::fmt;
use std::str::FromStr;

/// The most elements that an array may have; Slurm's own limit is below (`MaxArraySize`).
const MOST: u64 = 4_000_001;

/// Elements of an array, and how many may run at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tasks {
    /// The ranges: first, last, and the step.
    ranges: Vec<(u32, u32, u32)>,
    /// How many may run at a time; `None` if that is not limited.
    at_a_time: Option<u32>,
}

/// The text is no list of elements.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' does not name elements of a job array; expected for example '1-5,9%2'")]
pub struct TasksError(pub String);

impl Tasks {
    /// One element.
    pub(crate) fn one(number: u32) -> Self {
        Tasks { ranges: vec![(number, number, 1)], at_a_time: None }
    }

    /// The number of elements.
    pub(crate) fn count(&self) -> u64 {
        self.ranges.iter().map(|(first, last, step)| u64::from((last - first) / step) + 1).sum()
    }

    /// The only element, if there is one alone.
    pub fn only(&self) -> Option<u32> {
        (self.count() == 1).then(|| self.ranges[0].0)
    }

    /// The elements in the order in which they were written.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|&(first, last, step)| (first..=last).step_by(step as usize))
    }
}

impl FromStr for Tasks {
    type Err = TasksError;

    fn from_str(text: &str) -> Result<Self, TasksError> {
        let wrong = || TasksError(text.chars().take(80).collect());
        let number = |digits: &str| digits.parse::<u32>().map_err(|_| wrong());
        let (list, at_a_time) = match text.split_once('%') {
            Some((list, limit)) => (list, Some(number(limit)?)),
            None => (text, None),
        };
        let list = list.trim_start_matches('[').trim_end_matches(']');
        let mut tasks = Tasks { ranges: Vec::new(), at_a_time };
        for part in list.split(',') {
            let (range, step) = match part.split_once(':') {
                Some((range, step)) => (range, number(step)?.max(1)),
                None => (part, 1),
            };
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return Err(wrong());
            }
            tasks.ranges.push((first, last, step));
        }
        if tasks.count() > MOST { Err(wrong()) } else { Ok(tasks) }
    }
}

impl fmt::Display for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (first, last, step)) in self.ranges.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            match (first == last, *step) {
                (true, _) => write!(f, "{comma}{first}")?,
                (false, 1) => write!(f, "{comma}{first}-{last}")?,
                (false, step) => write!(f, "{comma}{first}-{last}:{step}")?,
            }
        }
        self.at_a_time.map_or(Ok(()), |limit| write!(f, "%{limit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_and_written() {
        for (text, count) in
            [("7", 1), ("1-5", 5), ("0-9:2", 5), ("1,3,7-9%2", 5), ("0-1000000", 1_000_001)]
        {
            let tasks: Tasks = text.parse().unwrap();
            assert_eq!((tasks.count(), tasks.to_string().as_str()), (count, text));
        }
        let tasks: Tasks = "[1-2,0-9:4]".parse().unwrap();
        assert_eq!(tasks.numbers().collect::<Vec<_>>(), [1, 2, 0, 4, 8]);
        assert_eq!((tasks.only(), Tasks::one(4).only()), (None, Some(4)));
        for text in ["", "x", "3-1", "1-", "1%", "0-4294967295", "1,,2", "1..."] {
            assert!(text.parse::<Tasks>().is_err(), "{text}");
        }
    }
}
