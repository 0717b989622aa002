//! The partitions that the jobs of a log ran in: parts of a machine, often with nodes of their own kind.
//!
//! A log has a number for each, and its header may name them. Jobs of some partitions can be taken out of a log, which
//! says then how many others were left out.

use std::fmt;

use super::Workload;
use crate::job::Job;
use crate::spelling::hint;
use crate::units::JobId;

/// Which partition each job ran in.
#[derive(Clone, Debug, Default)]
pub struct Partitions {
    /// By the place of the job; 0 is unknown. Empty if it is known of no job.
    pub(super) of_jobs: Vec<u32>,
    /// The names that are known, by their numbers.
    names: Vec<(u32, String)>,
}

impl Partitions {
    /// The number of each job's partition by the place of the job, 0 if it is unknown, or nothing at all if it is known
    /// of no job; and the names that are known, by their numbers.
    pub fn new(of_jobs: Vec<u32>, names: Vec<(u32, String)>) -> Self {
        Partitions { of_jobs, names }
    }

    /// The names that are known, by their numbers.
    pub(super) fn names(&self) -> &[(u32, String)] {
        &self.names
    }
}

/// What was taken out of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    names: Vec<String>,
    kept: usize,
    left_out: usize,
}

impl Selection {
    /// How many jobs of other partitions, or of none, were left out.
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Selection { names, kept, left_out } = self;
        let of = if names.len() == 1 { "partition" } else { "partitions" };
        let names = names.join(", ");
        write!(f, "only the {kept} jobs of {of} {names}; {left_out} others are left out")
    }
}

/// Why jobs of a partition cannot be taken out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// No job has one.
    #[error(
        "--partition: the workload does not name the partitions of its jobs; leave the option out, and name a \
        machine file for one kind of nodes"
    )]
    NotSaid,
    /// There is none of this name.
    #[error("--partition: the workload has no partition '{wanted}'{hint} there are {names}")]
    Unknown {
        /// The requested value.
        wanted: String,
        /// What may have been meant, in words.
        hint: String,
        /// All partitions that jobs ran in.
        names: String,
    },
}

impl Workload {
    /// The partitions that jobs ran in, by their names or numbers, each with the number of its jobs. Jobs of which it is
    /// not known count nowhere.
    pub fn partitions(&self) -> Vec<(String, usize)> {
        let mut numbers = self.partitions.of_jobs.clone();
        numbers.sort_unstable();
        let of_one = numbers.chunk_by(|one, next| one == next);
        let known = of_one.filter(|jobs| jobs[0] > 0);
        known.map(|jobs| (self.partition_name(jobs[0]), jobs.len())).collect()
    }

    /// The numbers of the partitions that jobs ran in, ascending, with their names.
    pub(super) fn partition_numbers(&self) -> Vec<(u32, String)> {
        let mut numbers = self.partitions.of_jobs.clone();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(|number| (number, self.partition_name(number))).collect()
    }

    /// The number of the partition that `job` ran in, if its log says so.
    pub fn partition(&self, job: JobId) -> Option<u32> {
        self.partitions.of_jobs.get(job.index()).copied().filter(|number| *number > 0)
    }

    /// What the partition of a number is called: by its name, or by the number if it has none.
    pub fn partition_name(&self, number: u32) -> String {
        let named = self.partitions.names.iter().find(|(known, _)| *known == number);
        named.map_or_else(|| number.to_string(), |(_, name)| name.clone())
    }

    /// What was taken out of the log, if it was not all of it.
    pub fn selection(&self) -> Option<&Selection> {
        self.selection.as_ref()
    }

    /// What is to be known of the partitions of its jobs, where it has some: that these are not all jobs, or that jobs of
    /// several partitions are together.
    pub fn about_partitions(&self) -> Option<String> {
        if let Some(selection) = &self.selection {
            return Some(selection.to_string());
        }
        if let Some(strangers) = self.strangers() {
            return (strangers > 0).then(|| {
                format!(
                    "{strangers} of {} jobs are of no partition of the machine file, and run on any nodes that can hold them",
                    self.jobs.len()
                )
            });
        }
        let names: Vec<String> = self.partitions().into_iter().map(|(name, _)| name).collect();
        (names.len() > 1).then(|| {
            let names = names.join(", ");
            format!("the jobs of the partitions {names} run on nodes of one kind; --partition takes those of one")
        })
    }

    /// The same workload with only the jobs of these partitions, by their names or numbers; all jobs if none is named.
    pub fn in_partitions(mut self, wanted: &[String]) -> Result<Self, PartitionError> {
        if wanted.is_empty() {
            return Ok(self);
        }
        let there = self.partitions();
        if there.is_empty() {
            return Err(PartitionError::NotSaid);
        }
        if let Some(wrong) =
            wanted.iter().find(|name| there.iter().all(|(known, _)| known != *name))
        {
            let names: Vec<&str> = there.iter().map(|(name, _)| name.as_str()).collect();
            return Err(PartitionError::Unknown {
                wanted: wrong.clone(),
                hint: hint(wrong, names.iter().copied()),
                names: names.join(", "),
            });
        }
        let numbers = self.partitions.of_jobs.iter();
        let is_kept: Vec<bool> = numbers
            .map(|number| *number > 0 && wanted.contains(&self.partition_name(*number)))
            .collect();
        let before = self.jobs.len();
        self.retain(&is_kept);
        let (kept, left_out) = (self.jobs.len(), before - self.jobs.len());
        if left_out > 0 {
            // What the header says is about the whole machine.
            (self.processors, self.computer) = (self.most_recorded(), None);
        }
        self.selection = Some(Selection { names: wanted.to_vec(), kept, left_out });
        Ok(self)
    }

    /// The most processors that were really busy at once, as far as it is known when jobs started.
    fn most_recorded(&self) -> Option<u32> {
        let starts = self.recorded_starts()?;
        let mut changes = Vec::with_capacity(2 * starts.len());
        for (start, id) in starts {
            let Job { processors, .. } = self.jobs[id.index()];
            let processors = i64::from(processors);
            changes
                .extend([(start, processors), (start + self.run_time(JobId(id.0)), -processors)]);
        }
        // Whoever ends makes room for those who begin at the same instant.
        changes.sort_unstable();
        let mut busy = 0i64;
        let levels = changes.iter().map(|(_, change)| {
            busy += change;
            busy
        });
        let most = levels.max().unwrap_or(0).max(self.largest_job().into());
        u32::try_from(most).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Instant, Span};

    /// Two partitions with names, one without, and a job of which nothing is said.
    fn workload() -> Workload {
        let time = Span::from_secs(100);
        let jobs = [(1, 0, 8), (2, 9, 4), (3, 5, 2), (4, 300, 1), (5, 300, 1)].map(
            |(number, submit, nodes)| Job::new(number, Instant::from_secs(submit), nodes, time),
        );
        let names = vec![(1, "cpu".to_owned()), (2, "gpu".to_owned())];
        let partitions = Partitions::new(vec![1, 2, 2, 7, 0], names);
        let (run_times, waits) = (vec![time; jobs.len()], vec![0, 1, 0, 0, 0]);
        Workload::from_parts("log".to_owned(), jobs.to_vec(), run_times, waits, partitions)
            .on_processors(Some(640))
    }

    fn numbers(workload: &Workload) -> Vec<u64> {
        workload.jobs().iter().map(|job| job.number).collect()
    }

    fn of(names: &[&str]) -> Result<Workload, PartitionError> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        workload().in_partitions(&names)
    }

    #[test]
    fn a_log_says_which_partitions_there_are() {
        let expected =
            [("cpu", 1), ("gpu", 2), ("7", 1)].map(|(name, jobs)| (name.to_owned(), jobs));
        assert_eq!(workload().partitions(), expected);
        assert_eq!(Workload::default().partitions(), []);
    }

    #[test]
    fn jobs_of_other_partitions_are_left_out_and_counted() {
        let gpu = of(&["gpu"]).unwrap();
        assert_eq!(numbers(&gpu), [3, 2]);
        assert_eq!(gpu.selection().unwrap().left_out(), 3);
        // From 10 to 105 both run, on 2 and 4 processors; the header is about the whole machine.
        assert_eq!((gpu.processors(), workload().processors()), (Some(6), Some(640)));
        let said = gpu.selection().unwrap().to_string();
        assert_eq!(said, "only the 2 jobs of partition gpu; 3 others are left out");
        let mixed = workload().about_partitions().unwrap();
        assert!(
            mixed.starts_with("the jobs of the partitions cpu, gpu, 7 run on nodes of one kind")
        );
        assert_eq!(numbers(&of(&["7", "cpu"]).unwrap()), [1, 4]);
        assert_eq!(of(&[]).unwrap().selection(), None);
    }

    #[test]
    fn a_part_of_a_log_keeps_its_partitions() {
        let mut later = workload();
        later.slice(1..4);
        assert_eq!(numbers(&later.in_partitions(&["7".to_owned()]).unwrap()), [4]);
    }

    #[test]
    fn mistakes_say_what_there_is() {
        let error = of(&["gpus"]).unwrap_err().to_string();
        assert!(
            error.ends_with("no partition 'gpus'; did you mean 'gpu'? there are cpu, gpu, 7"),
            "{error}"
        );
        let nothing = Workload::default().in_partitions(&["gpu".to_owned()]);
        assert_eq!(nothing.unwrap_err(), PartitionError::NotSaid);
    }
}
