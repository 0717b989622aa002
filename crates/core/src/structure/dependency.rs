//! Dependencies, as they are written behind `--dependency`: `afterok:123:124_5+10,singleton`.

use std::fmt;
use std::str::FromStr;

use crate::units::Span;

/// What has to happen to other jobs before a job is eligible.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Needs {
    list: Vec<Dependency>,
    any: bool,
}

impl Needs {
    /// All of these; or one of them, if `any` is said.
    pub fn new(list: Vec<Dependency>, any: bool) -> Self {
        Needs { list, any }
    }

    /// What has to happen.
    pub fn list(&self) -> &[Dependency] {
        &self.list
    }

    /// Whether one of them is enough.
    pub fn is_any(&self) -> bool {
        self.any
    }

    /// Whether nothing has to happen.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// One thing that has to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dependency {
    /// Something has to happen to another job, or to all tasks of an array.
    After {
        /// What.
        when: When,
        /// How much later than that.
        delay: Span,
        /// To whom.
        on: On,
    },
    /// No other job of the same user and name runs, or waits and was submitted earlier.
    Singleton,
}

/// What has to happen to another job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// It has started, or was cancelled.
    Started,
    /// It has ended, and well.
    EndedWell,
    /// It has ended in any way.
    Ended,
    /// It has ended, and not well.
    Failed,
    /// The task of the same number has ended, and well.
    Corresponding,
}

/// A job, or an array, by the number it has in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct On {
    /// The number of the job or of the array.
    pub number: u64,
    /// Which task of the array; all of them if that is not said.
    pub task: Option<u32>,
}

impl When {
    const NAMES: [(&'static str, When); 5] = [
        ("after", When::Started),
        ("afterok", When::EndedWell),
        ("afterany", When::Ended),
        ("afternotok", When::Failed),
        ("aftercorr", When::Corresponding),
    ];
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = When::NAMES.iter().find(|known| known.1 == *self);
        f.write_str(known.map_or("", |known| known.0))
    }
}

/// Why a dependency cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DependencyError {
    /// There is no such kind of dependency.
    #[error(
        "'{0}' is no dependency; write after, afterok, afterany, afternotok, aftercorr or singleton"
    )]
    Unknown(String),
    /// What follows the kind is no job.
    #[error("'{0}' is no job; write its number, as in afterok:123 or afterok:123_4")]
    NoJob(String),
    /// Both all and any are asked for.
    #[error("'{0}' has ',' for all of them and '?' for any; write one of both")]
    Mixed(String),
}

/// Reads `afterok:1:2,singleton` (all of these) or `afterok:1?afterany:2` (any). A number alone is `afterany`, as in Slurm.
impl FromStr for Needs {
    type Err = DependencyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let any = text.contains('?');
        if any && text.contains(',') {
            return Err(DependencyError::Mixed(text.to_owned()));
        }
        let mut list = Vec::new();
        for part in text.split([',', '?']).map(str::trim).filter(|part| !part.is_empty()) {
            // What Slurm itself has added: '(unfulfilled)' and the like.
            let part = part.split('(').next().unwrap_or(part);
            if part == "singleton" {
                list.push(Dependency::Singleton);
                continue;
            }
            let (kind, jobs) = match part.split_once(':') {
                Some((kind, jobs)) => (kind, jobs),
                None if part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') => {
                    ("afterany", part)
                }
                None => return Err(DependencyError::Unknown(part.to_owned())),
            };
            let known = When::NAMES.iter().find(|known| known.0 == kind);
            let when = known.ok_or_else(|| DependencyError::Unknown(kind.to_owned()))?.1;
            for job in jobs.split(':') {
                list.push(after(when, job).ok_or_else(|| DependencyError::NoJob(job.to_owned()))?);
            }
        }
        Ok(Needs { any: any && list.len() > 1, list })
    }
}

/// Reads `123`, `123_4`, `123_*` and, with minutes, `123+10`.
fn after(when: When, text: &str) -> Option<Dependency> {
    let (text, minutes) = match text.split_once('+') {
        Some((text, minutes)) => (text, minutes.parse::<u32>().ok()?),
        None => (text, 0),
    };
    let (number, task) = match text.split_once('_') {
        Some((number, "*")) => (number, None),
        Some((number, task)) => (number, Some(task.parse().ok()?)),
        None => (text, None),
    };
    let number = number.parse().ok()?;
    let delay = Span::from_millis(u64::from(minutes) * 60_000);
    Some(Dependency::After { when, delay, on: On { number, task } })
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, dependency) in self.list.iter().enumerate() {
            if place > 0 {
                f.write_str(if self.any { "?" } else { "," })?;
            }
            match dependency {
                Dependency::Singleton => f.write_str("singleton")?,
                Dependency::After { when, delay, on: On { number, task } } => {
                    write!(f, "{when}:{number}")?;
                    if let Some(task) = task {
                        write!(f, "_{task}")?;
                    }
                    if *delay > Span::ZERO {
                        write!(f, "+{}", delay.millis() / 60_000)?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_read_what_they_print() {
        for text in [
            "afterok:1",
            "after:7+10",
            "afterany:1,afterok:2_5,singleton",
            "afternotok:3?afterok:4",
            "aftercorr:12",
        ] {
            assert_eq!(text.parse::<Needs>().unwrap().to_string(), text);
        }
        let several: Needs = "afterok:1:2_*:3_4".parse().unwrap();
        assert_eq!(several.to_string(), "afterok:1,afterok:2,afterok:3_4");
        assert_eq!("12".parse::<Needs>().unwrap().to_string(), "afterany:12");
        let answered: Needs = "afterok:20(unfulfilled),afterany:21(failed)".parse().unwrap();
        assert_eq!(answered.to_string(), "afterok:20,afterany:21");
        assert!("".parse::<Needs>().unwrap().is_empty());
        assert!(!"afterok:1?".parse::<Needs>().unwrap().is_any());
    }

    #[test]
    fn mistakes_are_named() {
        let why = |text: &str| text.parse::<Needs>().unwrap_err().to_string();
        assert!(why("afterwards:1").starts_with("'afterwards' is no dependency"));
        assert!(why("afterok:x").starts_with("'x' is no job"));
        assert!(why("afterok").starts_with("'afterok' is no dependency"));
        assert!(why("afterok:1,after:2?after:3").contains("',' for all"));
    }
}
