//! The waits of jobs by their size, their length, their user and their group.
//!
//! A class is a matter of what was asked for and of what the workload says, never of what a policy
//! made of it. So the same jobs are in the same class under every policy.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::{RunContext, wait};
use crate::sim::Run;
use crate::units::Span;

/// By what jobs are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The nodes that they ask for.
    Size,
    /// Their run time as the workload has it, at most what they ask for.
    Length,
    /// Who submitted them.
    User,
    /// The group or the account that they belong to.
    Group,
}

/// The waits of all jobs, told apart by one thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitsBy {
    /// By what.
    pub by: By,
    /// The classes that have a job.
    pub classes: Vec<WaitClass>,
}

/// Jobs that belong together, and how long they waited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitClass {
    /// What they have in common, such as `17 to 64 nodes`.
    pub name: String,
    /// Their number.
    pub jobs: u64,
    /// The waits of those that ran.
    pub waits: WaitFigures,
}

/// How long some jobs waited, in seconds. There is nothing but the count where none ran.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitFigures {
    /// How many jobs ran.
    pub ran: u64,
    /// The mean wait.
    pub mean_s: Option<f64>,
    /// The shortest wait that no more than five jobs of a hundred exceed.
    pub p95_s: Option<f64>,
    /// The shortest wait that no more than one job of a hundred exceeds.
    pub p99_s: Option<f64>,
}

impl WaitFigures {
    /// Of some waits in milliseconds, in any order.
    pub fn of(waits: &mut [u64]) -> Self {
        let sum: u128 = waits.iter().map(|wait| u128::from(*wait)).sum();
        let count = waits.len();
        let seconds = |millis: u64| millis as f64 / 1000.0;
        WaitFigures {
            ran: count as u64,
            mean_s: (count > 0).then(|| sum as f64 / count as f64 / 1000.0),
            p95_s: percentile(waits, 95).map(seconds),
            p99_s: percentile(waits, 99).map(seconds),
        }
    }
}

/// The smallest of some values that no more than the rest of a hundred exceed.
pub(super) fn percentile(values: &mut [u64], hundredths: usize) -> Option<u64> {
    let place = (values.len() * hundredths).div_ceil(100).checked_sub(1)?;
    let (_, &mut value, _) = values.select_nth_unstable(place);
    Some(value)
}

/// This many users, and this many groups, have a class of their own: those with the most jobs.
const MOST_NAMED: usize = 10;

/// The upper ends of the classes of lengths, and their names; the last one has no end.
const LENGTHS: [(Span, &str); 4] = [
    (Span::from_secs(600), "under 10 min"),
    (Span::from_secs(3600), "10 min to 1 h"),
    (Span::from_secs(6 * 3600), "1 to 6 h"),
    (Span::from_secs(24 * 3600), "6 to 24 h"),
];
const LONGER: &str = "24 h and longer";

/// The waits of a run by size, by length and, where the workload says who submitted jobs, by user and by group.
pub fn waits_by(context: &RunContext<'_>, run: &Run) -> Vec<WaitsBy> {
    let jobs = context.workload.jobs();
    let length = |place: usize| context.workload.run_times()[place].min(jobs[place].requested);
    let mut all = vec![
        WaitsBy {
            by: By::Size,
            classes: classes(context, run, |place| size(jobs[place].nodes), name_of_size),
        },
        WaitsBy {
            by: By::Length,
            classes: classes(context, run, |place| length_of(length(place)), name_of_length),
        },
    ];
    let users = Named::of("user", jobs.iter().map(|job| job.user.map(|user| user.0)));
    let groups = Named::of("group", jobs.iter().map(|job| job.group.map(|group| group.0)));
    for (by, named) in [(By::User, users), (By::Group, groups)] {
        if let Some(named) = named {
            let classes =
                classes(context, run, |place| named.class(place), |class| named.name(class));
            all.push(WaitsBy { by, classes });
        }
    }
    all.retain(|by| !by.classes.is_empty());
    all
}

/// The classes in their order, which is that of their numbers.
fn classes(
    context: &RunContext<'_>,
    run: &Run,
    class: impl Fn(usize) -> usize,
    name: impl Fn(usize) -> String,
) -> Vec<WaitClass> {
    let mut found: Vec<(u64, Vec<u64>)> = Vec::new();
    for (place, (job, record)) in context.workload.jobs().iter().zip(&run.records).enumerate() {
        let class = class(place);
        if class >= found.len() {
            found.resize_with(class + 1, Default::default);
        }
        let (jobs, waits) = &mut found[class];
        *jobs += 1;
        if record.state.has_run() {
            waits.push(wait(job, record).millis());
        }
    }
    let class = |(class, (jobs, mut waits)): (usize, (u64, Vec<u64>))| WaitClass {
        name: name(class),
        jobs,
        waits: WaitFigures::of(&mut waits),
    };
    found.into_iter().enumerate().filter(|(_, (jobs, _))| *jobs > 0).map(class).collect()
}

/// Each class goes up to four times the size of the one before: 1, 2 to 4, 5 to 16, …
fn size(nodes: u32) -> usize {
    let (mut class, mut most) = (0, 1u64);
    while most < u64::from(nodes) {
        most *= 4;
        class += 1;
    }
    class
}

fn name_of_size(class: usize) -> String {
    let most = 1u64 << (2 * class);
    match class {
        0 => "1 node".to_owned(),
        _ => format!("{} to {most} nodes", most / 4 + 1),
    }
}

fn length_of(run_time: Span) -> usize {
    LENGTHS.iter().take_while(|(end, _)| run_time >= *end).count()
}

fn name_of_length(class: usize) -> String {
    LENGTHS.get(class).map_or(LONGER, |(_, name)| name).to_owned()
}

/// Users or groups, which have numbers.
struct Named {
    /// What they are called, before their number.
    what: &'static str,
    /// Those with a class of their own, the one with the most jobs first.
    most: Vec<NonZeroU32>,
    /// The user or group of each job.
    of_jobs: Vec<Option<NonZeroU32>>,
}

impl Named {
    /// By whose each job is; nothing if nobody knows that of any job.
    fn of(what: &'static str, jobs: impl Iterator<Item = Option<NonZeroU32>>) -> Option<Self> {
        let of_jobs: Vec<Option<NonZeroU32>> = jobs.collect();
        let mut counts: BTreeMap<NonZeroU32, u64> = BTreeMap::new();
        for number in of_jobs.iter().flatten() {
            *counts.entry(*number).or_default() += 1;
        }
        let mut counts: Vec<(NonZeroU32, u64)> = counts.into_iter().collect();
        // Of those with as many jobs the lower number comes first.
        counts.sort_by_key(|(_, jobs)| std::cmp::Reverse(*jobs));
        let most: Vec<NonZeroU32> =
            counts.into_iter().take(MOST_NAMED).map(|(number, _)| number).collect();
        (!most.is_empty()).then_some(Named { what, most, of_jobs })
    }

    /// The class of a job: one of those with a class of their own, others, or nobody knows whose it is.
    fn class(&self, place: usize) -> usize {
        let Some(number) = self.of_jobs[place] else { return self.most.len() + 1 };
        self.most.iter().position(|known| *known == number).unwrap_or(self.most.len())
    }

    fn name(&self, class: usize) -> String {
        match self.most.get(class) {
            Some(number) => format!("{} {number}", self.what),
            None if class == self.most.len() => "others".to_owned(),
            None => "not recorded".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::job::{GroupId, Job, UserId};
    use crate::machine::Machine;
    use crate::metrics::BSLD_THRESHOLD;
    use crate::policy::Easy;
    use crate::sim::Simulation;
    use crate::units::Instant;
    use crate::workload::Workload;

    fn figures(ran: u64, mean_s: f64, p95_s: f64, p99_s: f64) -> WaitFigures {
        WaitFigures { ran, mean_s: Some(mean_s), p95_s: Some(p95_s), p99_s: Some(p99_s) }
    }

    /// Of the waits 1 s to 200 s at most ten exceed 190 s, and at most two 198 s.
    #[test]
    fn percentiles_by_hand() {
        let mut waits: Vec<u64> = (1..=200).rev().map(|wait| wait * 1000).collect();
        assert_eq!(WaitFigures::of(&mut waits), figures(200, 100.5, 190.0, 198.0));
        assert_eq!(WaitFigures::of(&mut [7000]), figures(1, 7.0, 7.0, 7.0));
        let none = WaitFigures { ran: 0, mean_s: None, p95_s: None, p99_s: None };
        assert_eq!(WaitFigures::of(&mut []), none);
    }

    #[test]
    fn sizes_and_lengths_have_classes() {
        let name = |nodes| name_of_size(size(nodes));
        assert_eq!(
            [1, 2, 4, 5, 64, 65].map(name),
            [
                "1 node",
                "2 to 4 nodes",
                "2 to 4 nodes",
                "5 to 16 nodes",
                "17 to 64 nodes",
                "65 to 256 nodes"
            ]
        );
        assert!(name(u32::MAX).ends_with("to 4294967296 nodes"));
        let name = |seconds| name_of_length(length_of(Span::from_secs(seconds)));
        assert_eq!(
            [0, 599, 600, 86_399, 86_400].map(name),
            ["under 10 min", "under 10 min", "10 min to 1 h", "6 to 24 h", "24 h and longer"]
        );
    }

    /// Two nodes. Job 1 of user 5 has both for 1000 s. Job 2 of the same user waits 900 s for one; job
    /// 3 of nobody is too large and never runs. All are of group 2.
    #[test]
    fn a_small_run_by_hand() {
        let machine = Machine::of_processors(2).unwrap();
        let job = |number, submit, nodes, seconds, user| {
            let requested = Span::from_secs(seconds);
            let asked = Job::new(number, Instant::from_secs(submit), nodes, requested);
            let id = NonZeroU32::new;
            (Job { user: id(user).map(UserId), group: id(2).map(GroupId), ..asked }, requested)
        };
        let jobs = [job(1, 100, 2, 1000, 5), job(2, 200, 1, 100, 5), job(3, 300, 3, 1, 0)];
        let workload = Workload::new("hand", jobs);
        let budget = Budget::unlimited();
        let run = Simulation::new(&machine, &workload).run(&mut Easy::default());
        let context = RunContext {
            policy: "easy",
            machine: &machine,
            workload: &workload,
            budget: &budget,
            bsld_threshold: BSLD_THRESHOLD,
            has_gears: true,
            has_reference: true,
            freedoms: None,
            world: None,
            windows: None,
        };
        let class = |name: &str, jobs, waits| WaitClass { name: name.to_owned(), jobs, waits };
        let never = WaitFigures { ran: 0, mean_s: None, p95_s: None, p99_s: None };
        let [by_size, by_length, by_user, by_group] = &waits_by(&context, &run)[..] else {
            panic!("four things tell jobs apart")
        };
        assert_eq!(
            by_size.classes,
            [
                class("1 node", 1, figures(1, 900.0, 900.0, 900.0)),
                class("2 to 4 nodes", 2, figures(1, 0.0, 0.0, 0.0)),
            ]
        );
        assert_eq!(
            by_length.classes,
            [
                class("under 10 min", 2, figures(1, 900.0, 900.0, 900.0)),
                class("10 min to 1 h", 1, figures(1, 0.0, 0.0, 0.0)),
            ]
        );
        assert_eq!(
            by_user.classes,
            [class("user 5", 2, figures(2, 450.0, 900.0, 900.0)), class("not recorded", 1, never),]
        );
        assert_eq!(by_group.classes, [class("group 2", 3, figures(2, 450.0, 900.0, 900.0))]);
    }

    /// Twelve users; user 12 has two jobs, the others one each, and one job is nobody's. Ten have a class: 12, and 1 to 9.
    #[test]
    fn users_with_few_jobs_are_others() {
        let id = |number: u32| NonZeroU32::new(number);
        let users = Named::of("user", (1..=12).chain([12, 0]).map(id)).unwrap();
        assert_eq!(users.most.len(), MOST_NAMED);
        let class = |place: usize| (users.class(place), users.name(users.class(place)));
        assert_eq!((class(11), class(12)), ((0, "user 12".to_owned()), (0, "user 12".to_owned())));
        assert_eq!(class(8), (9, "user 9".to_owned()));
        assert_eq!(class(10), (10, "others".to_owned()));
        assert_eq!(class(13), (11, "not recorded".to_owned()));
        assert!(Named::of("group", [None, None].into_iter()).is_none());
    }
}
