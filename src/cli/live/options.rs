//! Options that describe a job: for `submit`, in the `#BUSBAR` lines of a script, and for the assumed
//! job of a `forecast`.

use std::path::PathBuf;

use clap::Args;

use super::names::JobName;
use super::span;
use crate::job::Tolerance;
use crate::live::job::{After, JobRequest, PartRequest};
use crate::units::Span;

/// The default time limit.
const USUAL_TIME: Span = Span::from_secs(3600);

/// The resources and conditions of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[group(skip)]
pub(super) struct JobOptions {
    /// Number of nodes [default: 1]
    #[arg(short = 'N', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) nodes: Option<u32>,

    /// Partition whose nodes the job may have, on a machine with nodes of several kinds or shared nodes [default: any]
    #[arg(short, long, value_name = "NAME")]
    pub(super) partition: Option<String>,

    /// Processors on all nodes together, on such a machine; without it, the job has whole nodes
    #[arg(short = 'n', long = "tasks", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) processors: Option<u32>,

    /// GPUs on all nodes together, on such a machine
    #[arg(long, value_name = "N")]
    pub(super) gpus: Option<u32>,

    /// Memory on each node, on such a machine: 500MiB, 4GiB
    #[arg(long = "mem", value_name = "SIZE", value_parser = crate::machine::memory)]
    pub(super) memory_mib: Option<u32>,

    /// Have the nodes alone, where jobs share them
    #[arg(long)]
    pub(super) exclusive: bool,

    /// Time limit on these nodes without a power cap: 90s, 30m, 2h, minutes, HH:MM:SS, D-HH:MM
    /// [default: 1h]
    #[arg(short, long, value_name = "TIME", value_parser = span::parse)]
    pub(super) time: Option<Span>,

    /// Name of the job [default: the name of the script or the command]
    #[arg(short = 'J', long, value_name = "NAME")]
    pub(super) name: Option<String>,

    /// Application that the job runs, by its profile's name, for policies that distinguish
    /// applications
    #[arg(long = "app", value_name = "APP")]
    pub(super) application: Option<String>,

    /// Extra run time that the job accepts in exchange for starting sooner: 10%, or unbounded
    #[arg(long, value_name = "SHARE")]
    pub(super) slowdown: Option<Tolerance>,

    /// Smallest and largest number of nodes the job can use; without -N, it requests the smallest
    #[arg(long, value_name = "MIN-MAX", value_parser = parse_range)]
    pub(super) moldable: Option<(u32, u32)>,

    /// Start after this job or array has succeeded, and never if it fails; may be repeated
    #[arg(long, value_name = "JOB")]
    pub(super) after: Vec<JobName>,

    /// Start after this job or array has ended, whether or not it succeeded; may be repeated
    #[arg(long, value_name = "JOB")]
    pub(super) after_any: Vec<JobName>,

    /// Account that the job's energy is counted for in 'busbar history accounts'
    #[arg(short = 'A', long, value_name = "ACCOUNT")]
    pub(super) account: Option<String>,

    /// Do not start until 'busbar release'
    #[arg(long)]
    pub(super) hold: bool,
}

/// The working directory and output files of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[group(skip)]
pub(super) struct Places {
    /// File for standard output, relative to the working directory; %j is the job's number, %A that
    /// of its array and %a its index in it [default: busbar-%j.out, or busbar-%A_%a.out for an
    /// array]
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// File for standard error [default: the file for standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(super) errors: Option<PathBuf>,

    /// Working directory [default: the current folder]
    #[arg(short = 'D', long, value_name = "FOLDER")]
    pub(super) folder: Option<PathBuf>,
}

fn parse_range(text: &str) -> Result<(u32, u32), String> {
    let ends = text
        .split_once('-')
        .and_then(|(fewest, most)| Some((fewest.trim().parse().ok()?, most.trim().parse().ok()?)));
    match ends {
        Some((fewest, most)) if 1 <= fewest && fewest <= most => Ok((fewest, most)),
        _ => Err(format!(
            "'{text}' is not a range of nodes; write the smallest and the largest number as 2-8"
        )),
    }
}

impl JobOptions {
    /// These options, completed by others.
    pub(super) fn over(self, others: JobOptions) -> JobOptions {
        let list = |own: Vec<JobName>, other| if own.is_empty() { other } else { own };
        JobOptions {
            nodes: self.nodes.or(others.nodes),
            time: self.time.or(others.time),
            name: self.name.or(others.name),
            application: self.application.or(others.application),
            slowdown: self.slowdown.or(others.slowdown),
            moldable: self.moldable.or(others.moldable),
            after: list(self.after, others.after),
            after_any: list(self.after_any, others.after_any),
            account: self.account.or(others.account),
            hold: self.hold || others.hold,
            partition: self.partition.or(others.partition),
            processors: self.processors.or(others.processors),
            gpus: self.gpus.or(others.gpus),
            memory_mib: self.memory_mib.or(others.memory_mib),
            exclusive: self.exclusive || others.exclusive,
        }
    }

    /// Whether any option was given.
    pub(super) fn were_given(&self) -> bool {
        *self != JobOptions::default()
    }

    /// The request, with defaults where no option was given. `number` finds the number of a named
    /// job.
    pub(super) fn request(
        &self,
        usual_name: &str,
        number: impl Fn(JobName) -> anyhow::Result<u64>,
    ) -> anyhow::Result<JobRequest> {
        let after = self.after.iter().map(|job| (job, false));
        let after = after.chain(self.after_any.iter().map(|job| (job, true)));
        let after = after.map(|(job, any)| Ok(After { job: number(*job)?, any }));
        Ok(JobRequest {
            name: self.name.clone().unwrap_or_else(|| usual_name.to_owned()),
            nodes: self.nodes.or(self.moldable.map(|range| range.0)).unwrap_or(1),
            moldable: self.moldable,
            time: self.time.unwrap_or(USUAL_TIME),
            application: self.application.clone(),
            slowdown: self.slowdown.map(|slowdown| slowdown.to_string()),
            after: after.collect::<anyhow::Result<_>>()?,
            held: self.hold,
            account: self.account.clone(),
            part: PartRequest {
                partition: self.partition.clone(),
                processors: self.processors,
                gpus: self.gpus,
                memory_mib: self.memory_mib,
                exclusive: self.exclusive,
            },
        })
    }
}

impl Places {
    /// These options, completed by others.
    pub(super) fn over(self, others: Places) -> Places {
        Places {
            output: self.output.or(others.output),
            errors: self.errors.or(others.errors),
            folder: self.folder.or(others.folder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_in_order_and_of_something() {
        assert_eq!(parse_range("2-8"), Ok((2, 8)));
        assert_eq!(parse_range("3-3"), Ok((3, 3)));
        for text in ["8-2", "0-4", "4", "-4", "4-", "a-b", "1-2-3", "1-99999999999"] {
            assert!(parse_range(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_wish_has_what_was_said_and_else_what_is_usual() {
        let request = |options: &JobOptions, name| options.request(name, |_| Ok(9)).unwrap();
        let usual = request(&JobOptions::default(), "sleep");
        assert_eq!((usual.name.as_str(), usual.nodes, usual.time), ("sleep", 1, USUAL_TIME));
        let moldable = JobOptions { moldable: Some((2, 8)), ..JobOptions::default() };
        assert_eq!(request(&moldable, "x").nodes, 2);
        let both = JobOptions { nodes: Some(4), ..moldable };
        assert_eq!((request(&both, "x").nodes, request(&both, "x").moldable), (4, Some((2, 8))));
        let (after, after_any) = (vec![3.into()], vec![1.into()]);
        let options = JobOptions { after, after_any, ..JobOptions::default() };
        let expected = [After { job: 9, any: false }, After { job: 9, any: true }];
        assert_eq!(request(&options, "x").after, expected);
        assert!(options.request("x", |job| anyhow::bail!("there is no {job}")).is_err());
    }
}
