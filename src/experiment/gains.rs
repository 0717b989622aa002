//! What a freedom buys, and what knowledge buys.
//!
//! The same jobs under the same budget, first as they were asked for and then with one freedom more at a
//! time: what each policy makes of it. Beliefs are exact there, since otherwise the table would tell
//! knowledge and freedom in one. Then the same with everything that is allowed, and beliefs from the
//! plainest to the exact one. Both are experiments like any other, under the tightest budget and with the first
//! seed.

use crate::experiment::ranking::Figure;
use crate::experiment::table::amount;
use crate::experiment::{CheckedExperiment, Experiment, Tried};
use crate::freedom::{Freedom, Freedoms};
use crate::policy::Believe;
use crate::prepared::Rules;
use crate::report::html::Aside;

/// Beliefs from the plainest to the exact one.
pub(crate) const BELIEFS: [Believe; 3] = [Believe::Rated, Believe::Published, Believe::Exact];

/// What freedoms and knowledge buy on one workload.
#[derive(Clone, Debug)]
pub(crate) struct Gains {
    /// Which workload,
    pub(crate) workload: usize,
    /// and which budget.
    pub(crate) budget: usize,
    /// What is allowed, one freedom more at a time; nothing at first.
    pub(crate) steps: Vec<Freedoms>,
    /// One row for each policy.
    pub(crate) rows: Vec<Gain>,
}

/// What one policy makes of it.
#[derive(Clone, Debug)]
pub(crate) struct Gain {
    /// The place of the policy in the experiment's list.
    pub(crate) policy: usize,
    /// With each freedom more.
    pub(crate) by_freedom: Vec<Step>,
    /// With each belief.
    pub(crate) by_belief: [Option<Value>; BELIEFS.len()],
}

/// What one freedom more is to a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    /// It cannot run yet.
    NotYet,
    /// It has no use for it.
    NoUse,
    /// The policy has a use for the freedom.
    Comes(Value),
}

/// What came of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Value {
    /// The figure that policies are ranked by.
    pub(crate) figure: Option<f64>,
    /// How many jobs did not complete.
    pub(crate) undone: u64,
}

impl Gain {
    /// The figures over the freedoms, as far as it runs; what it has no use for changes nothing.
    pub(crate) fn course(&self) -> Vec<Option<Value>> {
        let mut last = None;
        let each = self.by_freedom.iter().map(|step| {
            if let Step::Comes(value) = step {
                last = Some(*value);
            }
            last
        });
        each.collect()
    }
}

/// Works them out for every workload that has a budget. `run` runs an
/// experiment.
pub(crate) fn gains<E>(
    checked: &CheckedExperiment<'_>,
    mut run: impl FnMut(&Experiment) -> Result<Vec<Tried>, E>,
) -> Result<Vec<Gains>, E> {
    let experiment = checked.experiment;
    let mut all = Vec::new();
    for workload in 0..experiment.workloads.len() {
        let limits = (0..experiment.budgets.len())
            .filter_map(|budget| Some((checked.limit(workload, budget)?, budget)));
        if let Some((_, budget)) = limits.min() {
            all.push(on_workload(experiment, workload, budget, &mut run)?);
        }
    }
    Ok(all)
}

fn on_workload<E>(
    experiment: &Experiment,
    workload: usize,
    budget: usize,
    run: &mut impl FnMut(&Experiment) -> Result<Vec<Tried>, E>,
) -> Result<Gains, E> {
    let policies = &experiment.policies;
    // Each of these policies with what it makes of such rules.
    let mut tried = |places: &[usize], allow: Freedoms, believe: Believe| {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let derived = Experiment {
            policies: places.iter().map(|place| policies[*place].clone()).collect(),
            workloads: vec![experiment.workloads[workload].clone()],
            budgets: vec![experiment.budgets[budget].clone()],
            seeds: experiment.seeds[..1].to_vec(),
            nodes: Vec::new(),
            rules: Rules { allow, believe: Some(believe), ..experiment.rules.clone() },
            ..experiment.clone()
        };
        let tried = run(&derived)?;
        let value = |tried: &Tried| {
            let summary = tried.outcome.summary()?;
            let undone = summary.jobs - summary.completed;
            let value = Value { figure: experiment.rank_by.of(summary), undone };
            Some((places[tried.cell.policy], value))
        };
        Ok::<Vec<(usize, Value)>, E>(tried.iter().filter_map(value).collect())
    };
    let of = |values: &[(usize, Value)], policy: usize| {
        values.iter().find(|(place, _)| *place == policy).map(|(_, value)| *value)
    };
    let steps = steps(experiment.rules.allow);
    let mut rows: Vec<Gain> = (0..policies.len())
        .map(|policy| Gain { policy, by_freedom: Vec::new(), by_belief: [None; BELIEFS.len()] })
        .collect();
    let mut before: Option<Freedoms> = None;
    for allow in &steps {
        let can = |policy: &usize| (policies[*policy].needs() - *allow).is_empty();
        let is_news = |policy: &usize| {
            let wants = policies[*policy].wants();
            let could = before.filter(|before| (policies[*policy].needs() - *before).is_empty());
            could.is_none_or(|before| wants & before != wants & *allow)
        };
        let news: Vec<usize> = (0..policies.len()).filter(can).filter(is_news).collect();
        let values = tried(&news, *allow, Believe::Exact)?;
        for row in &mut rows {
            row.by_freedom.push(match of(&values, row.policy) {
                Some(value) => Step::Comes(value),
                None if can(&row.policy) && !news.contains(&row.policy) => Step::NoUse,
                None => Step::NotYet,
            });
        }
        before = Some(*allow);
    }
    let everybody: Vec<usize> = (0..policies.len()).collect();
    for (place, believe) in BELIEFS.into_iter().enumerate() {
        let values = match believe {
            Believe::Exact => Vec::new(),
            believe => tried(&everybody, experiment.rules.allow, believe)?,
        };
        for row in &mut rows {
            row.by_belief[place] = match believe {
                // With all freedoms it has run already.
                Believe::Exact => row.course().last().copied().flatten(),
                _ => of(&values, row.policy),
            };
        }
    }
    Ok(Gains { workload, budget, steps, rows })
}

/// Nothing at first, and then one freedom more at a time until all that is allowed.
fn steps(allow: Freedoms) -> Vec<Freedoms> {
    let mut steps = vec![Freedoms::NONE];
    // In the order in which sites give them most easily.
    for freedom in Freedom::ALL.into_iter().filter(|freedom| allow.has(*freedom)) {
        let last = steps.last().copied().unwrap_or_default();
        steps.push(last | Freedoms::of(&[freedom]));
    }
    steps
}

impl Gains {
    /// Where it was tried, and what is shown, in words.
    fn place(&self, checked: &CheckedExperiment<'_>) -> String {
        let experiment = checked.experiment;
        format!(
            "{}, budget {}, seed {}",
            experiment.workload_name(self.workload),
            experiment.budget_name(self.budget),
            experiment.seeds[0]
        )
    }

    /// What a freedom buys.
    pub(crate) fn freedoms(&self, checked: &CheckedExperiment<'_>) -> Aside {
        let mut headings = vec!["policy".to_owned(), "as asked".to_owned()];
        headings.extend(self.steps.windows(2).map(|two| format!("+{}", two[1] - two[0])));
        Aside {
            title: "What each freedom gains".to_owned(),
            about: format!(
                "The {} of the same jobs with one more freedom at a time and exact beliefs; {}; '=': the policy \
                does not use it, '-': the policy needs more freedoms, (n): n jobs not completed, so the value \
                cannot be compared",
                checked.experiment.rank_by,
                self.place(checked)
            ),
            headings,
            rows: self.rows(checked, |gain| {
                let shown = |step: &Step| match step {
                    Step::NotYet => "-".to_owned(),
                    Step::NoUse => "=".to_owned(),
                    Step::Comes(value) => value.shown(checked.experiment.rank_by),
                };
                gain.by_freedom.iter().map(shown).collect()
            }),
            picture: None,
        }
    }

    /// What knowledge buys.
    pub(crate) fn beliefs(&self, checked: &CheckedExperiment<'_>) -> Aside {
        let mut headings = vec!["policy".to_owned()];
        headings.extend(BELIEFS.map(|believe| believe.to_string()));
        let by = checked.experiment.rank_by;
        Aside {
            title: "What better knowledge gains".to_owned(),
            about: format!(
                "The {by} with all allowed freedoms, by what policies know about jobs; {}; (n): n jobs not completed",
                self.place(checked)
            ),
            headings,
            rows: self.rows(checked, |gain| {
                let shown = |value: &Option<Value>| {
                    value.map_or_else(|| "-".to_owned(), |value| value.shown(by))
                };
                gain.by_belief.iter().map(shown).collect()
            }),
            picture: None,
        }
    }

    fn rows(
        &self,
        checked: &CheckedExperiment<'_>,
        cells: impl Fn(&Gain) -> Vec<String>,
    ) -> Vec<Vec<String>> {
        let row = |gain: &Gain| {
            let mut row = vec![checked.experiment.policies[gain.policy].to_string()];
            row.extend(cells(gain));
            row
        };
        self.rows.iter().map(row).collect()
    }
}

impl Value {
    fn shown(self, figure: Figure) -> String {
        let text = self.figure.map_or_else(|| "-".to_owned(), |value| amount(figure, value));
        if self.undone == 0 { text } else { format!("{text} ({})", self.undone) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_freedom_more_at_a_time() {
        let names = |allow: &str| -> Vec<String> {
            steps(allow.parse().unwrap()).iter().map(Freedoms::to_string).collect()
        };
        assert_eq!(names("none"), ["none"]);
        assert_eq!(names("nodes,caps"), ["none", "caps", "caps,nodes"]);
        assert_eq!(steps(Rules::default().allow).len(), 6);
    }

    #[test]
    fn what_is_of_no_use_changes_nothing() {
        let value = |figure| Value { figure: Some(figure), undone: 0 };
        let gain = Gain {
            policy: 0,
            by_freedom: vec![Step::NotYet, Step::Comes(value(3.0)), Step::NoUse],
            by_belief: [None; 3],
        };
        assert_eq!(gain.course(), [None, Some(value(3.0)), Some(value(3.0))]);
        assert_eq!(value(7200.0).shown(Figure::Turnaround), "2.0 h");
        let some = Value { figure: Some(2.5), undone: 4 };
        assert_eq!(some.shown(Figure::Slowdown), "2.5 (4)");
    }
}
