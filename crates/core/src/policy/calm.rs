//! Whether there is any reason to give a job less than it asks for, or more.
//!
//! As long as nobody has to wait, all that other choices could bring is a queue where there was none. So jobs get
//! what they ask for until somebody has to wait, and again once nobody has waited for a week. Where everything fits
//! as it is asked for, nobody ever waits, and nobody is slowed down.
//!
//! Ten minutes are no wait: those that jobs wait for others to make room would end the calm that they were made for.
//! The week is there for machines that are busy by day and empty by night: what starts in a calm night at full power
//! is in the way of the next morning's queue.

use crate::policy::View;
use crate::units::Span;

/// After so long without anybody who waits it is calm again.
const A_WEEK: Span = Span::from_secs(7 * 24 * 3600);

/// Whether nobody had to wait for a week, or ever.
#[inline]
pub(super) fn is_calm(view: &View<'_>) -> bool {
    view.waited.is_none_or(|waited| view.now.since(waited) > A_WEEK)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::budget::Budget;
    use crate::job::Job;
    use crate::machine::Machine;
    use crate::model::{Dvfs, Knowledge, Oversized};
    use crate::policy::share::{ShareSpec, Use};
    use crate::policy::{BuildContext, PolicyKind as _};
    use crate::sim::Simulation;
    use crate::units::{Instant, Share, Span};
    use crate::workload::Workload;

    /// The most nodes that are busy at once if every job runs from its submission on.
    fn most_busy(jobs: &[(Job, Span)]) -> u32 {
        let ends = |(job, run): &(Job, Span)| job.submit + *run;
        let busy_at = |now: Instant| {
            let runs = jobs.iter().filter(|one| one.0.submit <= now && now <= ends(one));
            runs.map(|(job, _)| job.nodes).sum()
        };
        jobs.iter().map(|(job, _)| busy_at(job.submit)).max().unwrap_or(0)
    }

    proptest! {
        /// Half of the machine is enough for all jobs, and 60 % of its power is enough for half of it.
        #[test]
        fn where_everything_fits_nobody_waits_or_is_slowed(
            asked in prop::collection::vec((0u32..2000, 1u32..5, 1u32..5000, 0.0f64..=1.0), 1..40),
        ) {
            let mut submit = 0;
            let jobs: Vec<(Job, Span)> = asked.iter().zip(1..).map(|(&(gap, nodes, requested, used), number)| {
                submit += 1000 * u64::from(gap);
                let run = Span::from_secs(((f64::from(requested) * used) as u32).max(1));
                (Job::new(number, Instant::from_millis(submit), nodes, Span::from_secs(requested)), run)
            }).collect();
            let machine = Machine::of_processors(2 * most_busy(&jobs)).unwrap();
            let workload = Workload::new("calm", jobs.clone());
            let model = Dvfs::new(&machine, workload.jobs(), Knowledge::Unknown, Oversized::Slow, 1);
            for uses in Use::ALL {
                let policy = ShareSpec { uses: Some(uses), ..ShareSpec::default() };
                let run = Simulation::new(&machine, &workload)
                    .budget(Budget::constant(Share::percent(60).of(machine.max_power())))
                    .model(&model)
                    .run(policy.build(&BuildContext::default()).as_mut());
                prop_assert_eq!(run.violations, 0);
                for ((job, time), record) in jobs.iter().zip(&run.records) {
                    prop_assert_eq!((record.start, record.end), (job.submit, job.submit + *time), "{}", uses);
                }
            }
        }
    }
}
