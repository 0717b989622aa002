//! Whether a machine suits a workload: what is allowed, and is more likely a mistake than a plan.

use crate::budget::Budget;
use crate::job::Job;
use crate::machine::Machine;
use crate::units::{Instant, Span, Watts};
use crate::workload::Workload;

/// So many times the processors of its own machine, and a workload is on another one than it was made for.
const FAR_LARGER: u64 = 2;

/// What a workload asks of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Processors of the machine the workload comes from, if it says so.
    pub processors: Option<u32>,
    /// The most nodes that are busy at once if no job ever waits.
    pub nodes: u64,
    /// What all jobs use of nodes as they were asked for, in node milliseconds.
    pub work: u128,
    /// The time from the first to the last submission.
    pub span: Span,
}

impl Demand {
    /// That of a workload whose jobs get whole nodes of this machine.
    pub fn of(workload: &Workload, machine: &Machine) -> Self {
        let per_node = machine.processors_per_node;
        let jobs = workload.jobs();
        let work = |(job, run_time): (&Job, &Span)| {
            u128::from(job.processors.div_ceil(per_node.max(1))) * u128::from(run_time.millis())
        };
        let span =
            jobs.first().zip(jobs.last()).map(|(first, last)| last.submit.since(first.submit));
        Demand {
            processors: workload.processors(),
            nodes: workload.most_at_once(per_node),
            work: jobs.iter().zip(workload.run_times()).map(work).sum(),
            span: span.unwrap_or_default(),
        }
    }

    /// How many nodes the jobs keep busy in the mean, as they were asked for; `None` if all come at once.
    pub fn mean_nodes(&self) -> Option<f64> {
        let span = self.span.millis();
        (span > 0).then(|| self.work as f64 / span as f64)
    }

    /// That the machine is far larger than the one the workload comes from, if it is.
    pub fn larger_machine(&self, machine: &Machine) -> Option<String> {
        let (has, own) = (u64::from(machine.processors()), u64::from(self.processors?));
        (own > 0 && has > FAR_LARGER * own).then(|| {
            format!(
                "the machine has {has} processors, {:.0} times the {own} of the workload's own machine; leave \
                --machine out to use that",
                has as f64 / own as f64
            )
        })
    }

    /// Whether no job can ever wait: nodes and watts are enough for all that could run at once.
    pub fn is_always_met(&self, machine: &Machine, budget: &Budget) -> bool {
        fed(machine, budget) >= self.nodes
    }

    /// The same in a sentence; `under` says where, and ends in a blank if it says anything.
    pub fn never_waits(&self, under: &str) -> String {
        format!(
            "{under}no job ever has to wait: nodes and power suffice for {} nodes at full power, the most that \
            the jobs can use at once; policies hardly differ",
            self.nodes
        )
    }
}

/// The nodes that a budget feeds at full power at all times.
fn fed(machine: &Machine, budget: &Budget) -> u64 {
    let lowest = lowest(budget).saturating_sub(machine.floor());
    let fed = lowest.milliwatts() / machine.added_power().milliwatts().max(1);
    fed.min(u64::from(machine.nodes))
}

/// The lowest limit of all times.
fn lowest(budget: &Budget) -> Watts {
    let begin = Instant::ZERO;
    let later = budget.changes_after(begin).iter().map(|change| change.1);
    later.fold(budget.at(begin), Watts::min)
}

/// That a budget is above what the machine can draw, if it is so at all times: a mistake of the unit, or of a digit.
pub fn limits_nothing(machine: &Machine, budget: &Budget) -> Option<String> {
    let (lowest, most) = (lowest(budget), machine.max_power());
    (budget.is_limited() && lowest > most).then(|| {
        format!(
            "the budget of {lowest} has no effect: the machine draws {most} at most; write 100% for that, or none \
            for no limit"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use crate::units::Span;

    /// 3 processors from 0 s to 10 s, 2 from 5 s to 15 s, and 4 from 10 s on: 6 at once, or 3 nodes of two
    /// processors each, as 3 processors take two nodes: 2 + 1, then 1 + 2.
    fn workload() -> Workload {
        let job = |submit, nodes| {
            let time = Span::from_secs(10);
            (Job::new(1, Instant::from_secs(submit), nodes, time), time)
        };
        Workload::new("w", [job(0, 3), job(5, 2), job(10, 4)]).on_processors(Some(5))
    }

    #[test]
    fn the_most_at_once_is_what_would_run_if_nobody_waited() {
        assert_eq!(workload().most_at_once(1), 6);
        assert_eq!(workload().most_at_once(2), 3);
        assert_eq!(Workload::default().most_at_once(1), 0);
    }

    #[test]
    fn a_machine_is_too_large_or_just_large_enough() {
        let of = |nodes| Machine::of_processors(nodes).unwrap();
        let demand = Demand::of(&workload(), &of(6));
        let span = Span::from_secs(10);
        assert_eq!(demand, Demand { processors: Some(5), nodes: 6, work: 90_000, span });
        assert_eq!(demand.mean_nodes(), Some(9.0));
        assert_eq!(demand.larger_machine(&of(10)), None);
        let said = demand.larger_machine(&of(12_800)).unwrap();
        assert!(said.starts_with("the machine has 12800 processors, 2560 times the 5"), "{said}");
        let limit = |watts| Budget::constant(Watts::from_watts(watts));
        assert!(demand.is_always_met(&of(6), &Budget::unlimited()));
        assert!(!demand.is_always_met(&of(5), &Budget::unlimited()));
        assert!(demand.is_always_met(&of(9), &limit(600)));
        assert!(!demand.is_always_met(&of(9), &limit(599)));
        let falls = vec![
            (Instant::ZERO, Watts::from_watts(900)),
            (Instant::from_secs(9), Watts::from_watts(500)),
        ];
        assert!(!demand.is_always_met(&of(9), &Budget::from_steps(falls).unwrap()));
    }

    /// Ten nodes of 100 W draw 1000 W at most.
    #[test]
    fn a_budget_above_the_maximum_limits_nothing() {
        let machine = Machine::of_processors(10).unwrap();
        let said = |budget: &Budget| limits_nothing(&machine, budget);
        let limit = |watts| Budget::constant(Watts::from_watts(watts));
        assert_eq!(said(&limit(1000)), None);
        assert_eq!(said(&Budget::unlimited()), None);
        let text = said(&limit(1200)).unwrap();
        assert!(text.starts_with("the budget of 1200W has no effect: the machine draws 1000W"));
        let falls = vec![
            (Instant::ZERO, Watts::from_watts(1200)),
            (Instant::from_secs(9), Watts::from_watts(900)),
        ];
        assert_eq!(said(&Budget::from_steps(falls).unwrap()), None);
    }
}
