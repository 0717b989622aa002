//! Runs that are shown together: the same workload on the same machine under the same budget.
//!
//! A policy that could not run there belongs to them too, with its reason.

use crate::metrics::Summary;
use crate::report::digest::Digest;
use crate::report::ranking::ranking_over_seeds;
use crate::report::{RankedBy, human_power};

/// A policy that could not run, and why: it is shown beside those that did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Absent {
    /// The policy.
    pub(crate) policy: String,
    /// The workload's name, as in the summaries of the others.
    pub(crate) workload: String,
    /// The budget, as in the digests of the others.
    pub(crate) budget: String,
    /// What else sets it apart, as in the digests of the others.
    pub(crate) variant: String,
    /// Why it could not run.
    pub(crate) reason: String,
}

/// Runs that differ in nothing but the policy, and what they are compared with.
pub(in crate::report) struct Case<'a> {
    pub(in crate::report) runs: Vec<&'a Digest>,
    /// So many of them, the first ones, did not have to keep the budget: the others are compared with them, and they
    /// have no rank.
    pub(in crate::report) references: usize,
    /// The figures of each over all seeds, those of the run itself first.
    pub(in crate::report) seeds: Vec<Vec<&'a Summary>>,
    /// Where they are among all runs.
    pub(in crate::report) places: Vec<usize>,
    /// Policies that could not run there.
    pub(in crate::report) absent: Vec<&'a Absent>,
    pub(in crate::report) ranked_by: RankedBy,
}

impl Case<'_> {
    pub(in crate::report) fn summaries(&self) -> Vec<&Summary> {
        self.runs.iter().map(|run| &run.summary).collect()
    }

    /// The places of its runs: what others are compared with, then the best first.
    pub(in crate::report) fn order(&self) -> Vec<usize> {
        let ranked = ranking_over_seeds(&self.seeds[self.references..], self.ranked_by);
        (0..self.references)
            .chain(ranked.into_iter().map(|place| self.references + place))
            .collect()
    }

    /// The figures of those that are ranked, over all seeds.
    pub(in crate::report) fn ranked(&self) -> &[Vec<&Summary>] {
        &self.seeds[self.references..]
    }

    /// The first run that has to keep the budget, or the first of all where none has to.
    pub(in crate::report) fn first(&self) -> Option<&Digest> {
        self.runs.get(self.references).or(self.runs.first()).copied()
    }

    /// What its runs have in common, in a few words.
    pub(in crate::report) fn name(&self) -> String {
        let Some(first) = self.first() else { return String::new() };
        let mut name = format!("{}, {}", first.summary.workload, budget(first));
        if !first.variant.is_empty() {
            name += &format!(", {}", first.variant);
        }
        name
    }
}

/// A budget in words: as it was asked for, with its watts.
pub(in crate::report) fn budget(run: &Digest) -> String {
    match (run.summary.budget_w, run.budget.as_str()) {
        (None, _) => "no budget".to_owned(),
        (Some(watts), "") => human_power(watts),
        (Some(watts), asked) if asked.ends_with('%') && !asked.contains(':') => {
            format!("{} ({})", asked.replace('%', " %"), human_power(watts))
        }
        (Some(_), asked) => asked.to_owned(),
    }
}

/// The cases, in the order in which their first runs come, and the policies that belong to none of them. The first runs,
/// so many as there are `references`, are in every case.
pub(in crate::report) fn cases<'a>(
    digests: &'a [Digest],
    references: usize,
    absent: &'a [Absent],
) -> (Vec<Case<'a>>, Vec<&'a Absent>) {
    // Where there is nothing to compare them with, they are runs like others.
    let references = if references < digests.len() { references } else { 0 };
    let mut cases: Vec<Case<'_>> = Vec::new();
    for (place, run) in digests.iter().enumerate().skip(references) {
        let is_alike =
            |case: &&mut Case<'_>| case.runs.first().is_some_and(|other| alike(other, run));
        match cases.iter_mut().find(is_alike) {
            Some(case) => {
                case.runs.push(run);
                case.seeds.push(vec![&run.summary]);
                case.places.push(place);
            }
            None => cases.push(Case {
                runs: vec![run],
                references: 0,
                seeds: vec![vec![&run.summary]],
                places: vec![place],
                absent: Vec::new(),
                ranked_by: RankedBy::default(),
            }),
        }
    }
    let mut homeless = Vec::new();
    for policy in absent {
        let belongs = |case: &&mut Case<'_>| {
            case.runs.first().is_some_and(|run| {
                run.summary.workload == policy.workload
                    && run.budget == policy.budget
                    && run.variant == policy.variant
            })
        };
        match cases.iter_mut().find(belongs) {
            Some(case) => case.absent.push(policy),
            None => homeless.push(policy),
        }
    }
    let shared = &digests[..references];
    for case in &mut cases {
        case.references = references;
        case.runs.splice(0..0, shared);
        case.seeds.splice(0..0, shared.iter().map(|run| vec![&run.summary]));
        case.places.splice(0..0, 0..references);
    }
    (cases, homeless)
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
