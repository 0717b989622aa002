//! Names of jobs: the number of a job or an array, or `12_3` for an element of array 12.

use std::fmt;
use std::str::FromStr;

use anyhow::bail;

use super::{Daemon, unexpected};
use crate::live::wire::{ArrayDetails, Reply, Request};

/// A job, a whole array, or an element of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobName {
    /// The number of the job or the array.
    job: u64,
    /// The index of the element, if one is meant.
    index: Option<u32>,
}

impl FromStr for JobName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("'{text}' is not a job; write its number, or 12_3 for element 3 of array 12")
        };
        let (job, index) = match text.split_once('_') {
            Some((job, index)) => (job, Some(index.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        Ok(JobName { job: job.parse().map_err(|_| wrong())?, index })
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "{}_{index}", self.job),
            None => self.job.fmt(f),
        }
    }
}

impl From<u64> for JobName {
    fn from(job: u64) -> Self {
        JobName { job, index: None }
    }
}

impl Daemon {
    /// The daemon's number of a job. For an element the daemon is asked.
    pub(super) fn number_of(&self, name: JobName) -> anyhow::Result<u64> {
        let Some(index) = name.index else { return Ok(name.job) };
        let array = match self.ask(&Request::Show { job: name.job })? {
            Reply::Array(array) => array,
            Reply::Show(_) => bail!("job {} is not an array, and has no element {index}", name.job),
            reply => return Err(unexpected(&reply)),
        };
        match element(&array, index) {
            Some(job) => Ok(job),
            None => bail!("array {} has no element {index}", name.job),
        }
    }
}

/// The number of an element.
fn element(array: &ArrayDetails, index: u32) -> Option<u64> {
    let has_index = |element: &crate::live::job::Element| element.index == index;
    let found = array.elements.iter().find(|line| line.array.as_ref().is_some_and(has_index));
    found.map(|line| line.job)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for text in ["7", "12_3", "12_0"] {
            assert_eq!(text.parse::<JobName>().unwrap().to_string(), text);
        }
        for text in ["", "x", "-1", "12_", "_3", "12_x", "1_2_3", "12_4294967296"] {
            assert!(text.parse::<JobName>().is_err(), "{text}");
        }
    }
}
