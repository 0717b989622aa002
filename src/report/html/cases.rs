//! Runs that are shown together: the same workload on the same machine under the same budget.

use crate::metrics::Summary;
use crate::report::digest::Digest;
use crate::report::human_power;

/// Runs that differ in nothing but the policy.
pub(super) struct Case<'a> {
    pub(super) runs: Vec<&'a Digest>,
    /// Where they are among all runs.
    pub(super) places: Vec<usize>,
}

impl Case<'_> {
    pub(super) fn summaries(&self) -> Vec<&Summary> {
        self.runs.iter().map(|run| &run.summary).collect()
    }

    /// What its runs have in common, in a few words.
    pub(super) fn name(&self) -> String {
        let Some(first) = self.runs.first() else { return String::new() };
        let mut name = format!("{}, {}", first.summary.workload, budget(first));
        if !first.variant.is_empty() {
            name += &format!(", {}", first.variant);
        }
        name
    }
}

/// A budget in words: as it was asked for, with its watts.
pub(super) fn budget(run: &Digest) -> String {
    match (run.summary.budget_w, run.budget.as_str()) {
        (None, _) => "no budget".to_owned(),
        (Some(watts), "") => human_power(watts),
        (Some(watts), asked) if asked.ends_with('%') => {
            format!("{} ({})", asked.replace('%', " %"), human_power(watts))
        }
        (Some(_), asked) => asked.to_owned(),
    }
}

/// The cases, in the order in which their first runs come.
pub(super) fn cases(digests: &[Digest]) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for (place, run) in digests.iter().enumerate() {
        let is_alike =
            |case: &&mut Case<'_>| case.runs.first().is_some_and(|other| alike(other, run));
        match cases.iter_mut().find(is_alike) {
            Some(case) => {
                case.runs.push(run);
                case.places.push(place);
            }
            None => cases.push(Case { runs: vec![run], places: vec![place] }),
        }
    }
    cases
}

/// The budget is compared as it was asked for where that is known: its mean over a run depends on how
/// long the run takes.
fn alike(a: &Digest, b: &Digest) -> bool {
    let (one, other) = (&a.summary, &b.summary);
    one.workload == other.workload
        && one.machine == other.machine
        && one.nodes == other.nodes
        && one.jobs == other.jobs
        && a.variant == b.variant
        && a.budget == b.budget
        && (!a.budget.is_empty() || one.budget_w == other.budget_w)
}
