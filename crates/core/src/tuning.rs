//! Which parameters of a policy suit a site: the site's recent past, replayed under each candidate.
//!
//! A [`Past`] is replayed three times under every candidate: all of it, and each half by itself. The
//! [`Tuning`] ranks the candidates by what became of all jobs, and checks the way of choosing on jobs that had
//! no part in it: the candidate that is best on the first half is compared with the present policy on the
//! second. A gain that is not there in both halves may be chance.

use std::cmp::Ordering;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::machine::Machine;
use crate::metrics::{BSLD_THRESHOLD, Summary};
use crate::parallel::on_threads;
use crate::policy::{OrderSpec, OrderedBy, PolicySpec};
use crate::prepared::{PreparedWorkload, Rules, SharedWorld, leaves_nothing};
use crate::scenario::Scenario;
use crate::units::Span;
use crate::workload::Workload;
use crate::world::{Repertoire, Unsuited};

/// How many of the last finished jobs are usually replayed.
pub const USUAL_JOBS: usize = 5000;

/// A smaller gain may be chance.
const NOTABLE: f64 = 0.05;

/// So few jobs that their number is worth a word.
const FEW_JOBS: u64 = 500;

/// The halving times that are usually tried.
const HALVINGS_H: [u32; 6] = [2, 4, 8, 16, 32, 64];

/// What is usually tried beside the present policy: the recommended one with each order and each of several halving times,
/// and the present policy with them, if it takes an order.
pub fn usual_candidates(present: &PolicySpec) -> Vec<PolicySpec> {
    let mut candidates = ordered(&PolicySpec::recommended());
    candidates.extend(ordered(present));
    candidates
}

/// A policy with each order and each of several halving times; nothing for a policy without orders.
fn ordered(base: &PolicySpec) -> Vec<PolicySpec> {
    let Some(order) = base.order() else { return Vec::new() };
    let halvings = |by: OrderedBy| {
        let spans = HALVINGS_H.map(|hours| Span::from_secs(hours * 3600));
        spans.map(|halving| OrderSpec { by, halving: Some(halving), ..order }.plainly())
    };
    let fcfs = OrderSpec { by: OrderedBy::Fcfs, halving: None, ..order };
    let ageing = [OrderedBy::Aged, OrderedBy::History].map(halvings);
    let orders = std::iter::once(fcfs).chain(ageing.into_iter().flatten());
    orders.filter_map(|order| base.with_order(order)).collect()
}

/// The jobs that are replayed, and all that they are replayed with.
#[derive(Clone, Debug)]
pub struct Past {
    /// The jobs, with how long each ran at nominal speed.
    pub prepared: PreparedWorkload,
    /// Which applications jobs run.
    pub repertoire: Repertoire,
    /// What policies may do and believe.
    pub rules: Rules,
    /// The power budget of the machine.
    pub budget: Budget,
    /// Where random numbers start.
    pub seed: u64,
    /// The threshold of the bounded slowdown.
    pub bsld_threshold: Span,
}

/// What became of some jobs under a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Figures {
    /// Jobs that were replayed.
    pub jobs: u64,
    /// Jobs that ran to their end.
    pub completed: u64,
    /// Jobs that were ended at their limit.
    pub killed: u64,
    /// Mean bounded slowdown.
    pub mean_bsld: f64,
    /// Mean wait.
    pub mean_wait_s: f64,
    /// How long 99 of 100 jobs waited at most.
    pub p99_wait_s: f64,
    /// The longest wait.
    pub max_wait_s: f64,
}

/// Figures are never NaN: there are none if no job ran.
impl Eq for Figures {}

impl Figures {
    /// Nothing, if no job ran.
    fn of(summary: &Summary) -> Option<Self> {
        Some(Figures {
            jobs: summary.jobs,
            completed: summary.completed,
            killed: summary.killed,
            mean_bsld: summary.mean_bsld?,
            mean_wait_s: summary.mean_wait_s?,
            p99_wait_s: summary.p99_wait_s?,
            max_wait_s: summary.max_wait_s?,
        })
    }

    /// Jobs that never ran: they are in no mean, and delayed no other job.
    fn left_out(&self) -> u64 {
        self.jobs.saturating_sub(self.completed + self.killed)
    }

    /// The better of two comes first: the one that runs more jobs; then the one with the lower mean bounded
    /// slowdown.
    fn compare(&self, other: &Figures) -> Ordering {
        let left_out = self.left_out().cmp(&other.left_out());
        left_out.then(self.mean_bsld.total_cmp(&other.mean_bsld))
    }

    /// By which share the mean bounded slowdown is lower than another; negative if it is higher.
    pub fn gain_over(&self, other: &Figures) -> f64 {
        1.0 - self.mean_bsld / other.mean_bsld
    }

    /// Whether it is so much better than another that it need not be chance.
    fn is_notably_better(&self, other: &Figures) -> bool {
        self.left_out() <= other.left_out() && self.gain_over(other) >= NOTABLE
    }
}

/// A policy that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The policy.
    pub policy: PolicySpec,
    /// What became of all jobs.
    pub all: Figures,
    /// What became of the first half of them, replayed alone.
    pub first: Figures,
    /// What became of the second half of them, replayed alone.
    pub second: Figures,
}

/// The results of all candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// Those that could run, best first.
    pub candidates: Vec<Candidate>,
    /// The others, with the reason.
    pub unfit: Vec<(PolicySpec, String)>,
    /// The place of the present policy among the candidates.
    present: usize,
    /// The place of the one that is best on the first half.
    best_of_first: usize,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// No candidate is better than the present policy.
    Keep,
    /// One is better, and not by chance, as far as the halves tell.
    Adopt,
    /// One is better, but it may be chance.
    Unsure,
}

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum TuningError {
    /// There are too few jobs.
    #[error("{0} finished jobs are too few; at least {FEWEST_JOBS} are needed")]
    TooFew(usize),
    /// The applications do not run on the machine.
    #[error(transparent)]
    Unsuited(#[from] Unsuited),
    /// The present policy cannot be replayed, so that there is nothing to compare with.
    #[error("the present policy {policy} cannot be replayed: {why}")]
    Present {
        /// The policy.
        policy: PolicySpec,
        /// Why not.
        why: String,
    },
    /// The budget leaves nothing for jobs.
    #[error("{0}")]
    NoPower(String),
    /// The caller stopped it.
    #[error("interrupted")]
    BrokenOff,
}

/// The least number of jobs of which something can be said: two halves of ten.
const FEWEST_JOBS: usize = 20;

impl Past {
    /// The last of these jobs, on a machine of which all is [said](Repertoire::filled_in).
    pub fn new(
        machine: Machine,
        mut workload: Workload,
        last: usize,
        repertoire: Repertoire,
        budget: Budget,
    ) -> Self {
        let there = workload.jobs().len();
        workload.slice(there.saturating_sub(last)..there);
        Past {
            prepared: PreparedWorkload::new(machine, workload, true),
            repertoire,
            rules: Rules::default(),
            budget,
            seed: 1,
            bsld_threshold: BSLD_THRESHOLD,
        }
    }

    /// Replays the jobs under the present policy and all candidates. The answer does not depend on the number
    /// of threads. `progress` hears how many replays of how many are done, and may break it off.
    pub fn tune(
        &self,
        present: &PolicySpec,
        candidates: &[PolicySpec],
        threads: NonZeroUsize,
        progress: &(dyn Fn(u64, u64) -> ControlFlow<()> + Sync),
    ) -> Result<Tuning, TuningError> {
        let count = self.prepared.workload.jobs().len();
        if count < FEWEST_JOBS {
            return Err(TuningError::TooFew(count));
        }
        let guarded = self.budget.lowered(self.rules.guard);
        if let Some(why) = leaves_nothing(&guarded, &self.prepared.machine) {
            return Err(TuningError::NoPower(why));
        }
        let parts = [0..count, 0..count / 2, count / 2..count].map(|range| {
            let mut prepared = self.prepared.clone();
            prepared.workload.slice(range);
            prepared
        });
        let worlds = parts.each_ref().map(|part| self.world(part));
        let [all, first, second] = worlds;
        let worlds = [all?, first?, second?];
        let mut policies = vec![present.clone()];
        for policy in candidates {
            if !policies.contains(policy) {
                policies.push(policy.clone());
            }
        }
        let runs: Vec<(&PolicySpec, usize)> =
            policies.iter().flat_map(|policy| [0, 1, 2].map(|part| (policy, part))).collect();
        let is_over = AtomicBool::new(false);
        let replay = |&(policy, part): &(&PolicySpec, usize)| match is_over.load(Relaxed) {
            true => Err(TuningError::BrokenOff.to_string()),
            false => self.replay(policy, &parts[part], &worlds[part]),
        };
        let results = on_threads(threads, &runs, replay, &|done, all| {
            if progress(done, all).is_break() {
                is_over.store(true, Relaxed);
            }
        });
        if is_over.load(Relaxed) {
            return Err(TuningError::BrokenOff);
        }
        Tuning::of(&policies, results)
    }

    fn world(&self, part: &PreparedWorkload) -> Result<SharedWorld, Unsuited> {
        let PreparedWorkload { machine, workload, .. } = part;
        SharedWorld::new(machine, workload, &self.repertoire, &self.rules, self.seed)
    }

    fn replay(
        &self,
        policy: &PolicySpec,
        part: &PreparedWorkload,
        world: &SharedWorld,
    ) -> Result<Figures, String> {
        let belief = world.belief(policy, &part.machine, part.workload.jobs());
        let belief = belief.map_err(|why| why.to_string())?;
        let budget = self.budget.clone();
        let scenario = part.in_shared_world(policy.clone(), budget, world, belief.as_ref());
        let scenario = Scenario { bsld_threshold: self.bsld_threshold, ..scenario };
        let trial = scenario.run();
        if let Some(stopped) = trial.run.stopped {
            return Err(stopped.to_string());
        }
        let figures = Figures::of(&trial.summary);
        figures.ok_or_else(|| "no job could run".to_owned())
    }
}

impl Tuning {
    /// What came of the policies, of which the first is the present one; of each the figures of all jobs, of the
    /// first half and of the second.
    fn of(
        policies: &[PolicySpec],
        results: Vec<Result<Figures, String>>,
    ) -> Result<Self, TuningError> {
        let (mut candidates, mut unfit) = (Vec::new(), Vec::new());
        let mut results = results.into_iter();
        for policy in policies.iter().cloned() {
            let mut next = || results.next().unwrap_or_else(|| Err("it broke down".to_owned()));
            match (next(), next(), next()) {
                (Ok(all), Ok(first), Ok(second)) => {
                    candidates.push(Candidate { policy, all, first, second });
                }
                (Err(why), ..) | (_, Err(why), _) | (.., Err(why)) => unfit.push((policy, why)),
            }
        }
        let present = &policies[0];
        if let Some((policy, why)) = unfit.first().filter(|(policy, _)| policy == present) {
            return Err(TuningError::Present { policy: policy.clone(), why: why.clone() });
        }
        // Stable: of two that are alike the present one, and the one that was named first, stands first.
        candidates.sort_by(|one, other| one.all.compare(&other.all));
        let place = |policy: &PolicySpec| {
            candidates.iter().position(|candidate| candidate.policy == *policy).unwrap_or(0)
        };
        let mut by_first: Vec<&Candidate> = candidates.iter().collect();
        by_first.sort_by(|one, other| {
            let is_other = |candidate: &Candidate| candidate.policy != *present;
            one.first.compare(&other.first).then(is_other(one).cmp(&is_other(other)))
        });
        let best_of_first = place(&by_first[0].policy);
        Ok(Tuning { present: place(present), best_of_first, candidates, unfit })
    }

    /// The present policy.
    pub fn present(&self) -> &Candidate {
        &self.candidates[self.present]
    }

    /// The best of all.
    pub fn best(&self) -> &Candidate {
        &self.candidates[0]
    }

    /// The one that is best on the first half of the jobs: on the second half it shows what choosing by the past
    /// is worth.
    pub fn best_of_first_half(&self) -> &Candidate {
        &self.candidates[self.best_of_first]
    }

    /// What to do.
    pub fn advice(&self) -> Advice {
        let (present, best) = (self.present(), self.best());
        if self.present == 0 {
            return Advice::Keep;
        }
        let in_both = best.first.is_notably_better(&present.first)
            && best.second.is_notably_better(&present.second);
        let held = self.best_of_first_half().second.is_notably_better(&present.second);
        if in_both && held { Advice::Adopt } else { Advice::Unsure }
    }

    /// The proposal in a sentence.
    pub fn sentence(&self) -> String {
        let (present, best) = (self.present(), self.best());
        if self.advice() == Advice::Keep {
            return format!("keep {}: no candidate is better", present.policy);
        }
        format!(
            "{} instead of {}: {}",
            best.policy,
            present.policy,
            instead(&best.all, &present.all)
        )
    }

    /// How the way of choosing did on jobs that had no part in it, in a sentence.
    pub fn check(&self) -> String {
        let (chosen, present) = (self.best_of_first_half(), self.present());
        if self.best_of_first == self.present {
            return format!("the first half of the jobs alone would have kept {}", present.policy);
        }
        format!(
            "the first half of the jobs alone would have chosen {}; on the second half: {}",
            chosen.policy,
            instead(&chosen.second, &present.second)
        )
    }

    /// What to think of before the proposal is followed, a sentence for each thing.
    pub fn cautions(&self) -> Vec<String> {
        let (present, best) = (self.present(), self.best());
        let mut cautions = Vec::new();
        if self.advice() == Advice::Unsure {
            cautions.push(format!(
                "the gain may be chance: it is below {:.0} % in one half of the jobs, or for the choice of the \
                first half on the second",
                NOTABLE * 100.0
            ));
        }
        if best.all.jobs < FEW_JOBS {
            cautions.push(format!(
                "only {} jobs were replayed; more jobs give a more reliable answer",
                best.all.jobs
            ));
        }
        let (killed, before) = (best.all.killed, present.all.killed);
        if killed > before {
            cautions.push(format!(
                "{killed} jobs are ended at their limit instead of {before}: they take longer than the policy predicts"
            ));
        }
        let longer = |one: f64, other: f64| one > other * (1.0 + NOTABLE);
        if longer(best.all.p99_wait_s, present.all.p99_wait_s)
            || longer(best.all.max_wait_s, present.all.max_wait_s)
        {
            cautions.push("some jobs wait longer than before; see the longest waits".to_owned());
        }
        cautions
    }
}

/// A slowdown beside another.
fn instead(one: &Figures, other: &Figures) -> String {
    let gain = one.gain_over(other) * 100.0;
    let how = if gain < 0.0 { "higher" } else { "lower" };
    let mut text = format!(
        "mean bounded slowdown {:.2} instead of {:.2} ({:.0} % {how})",
        one.mean_bsld,
        other.mean_bsld,
        gain.abs()
    );
    if one.left_out() != other.left_out() {
        let [one, other] = [one, other].map(|figures| figures.jobs - figures.left_out());
        text += &format!(", {one} jobs run instead of {other}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(completed: u64, mean_bsld: f64) -> Result<Figures, String> {
        let [mean_wait_s, p99_wait_s, max_wait_s] = [1.0, 2.0, 3.0];
        let (jobs, killed) = (1000, 10);
        Ok(Figures { jobs, completed, killed, mean_bsld, mean_wait_s, p99_wait_s, max_wait_s })
    }

    fn policy(text: &str) -> PolicySpec {
        text.parse().unwrap()
    }

    /// The figures of policies, of which the first is the present one: of all jobs and of both halves.
    fn tuning(rows: &[(&str, [f64; 3])]) -> Tuning {
        let policies: Vec<PolicySpec> = rows.iter().map(|row| policy(row.0)).collect();
        let results = rows.iter().flat_map(|row| row.1.map(|bsld| figures(990, bsld)));
        Tuning::of(&policies, results.collect()).unwrap()
    }

    #[test]
    fn a_gain_in_both_halves_is_advised() {
        let aged = ("share(order=aged)", [2.0, 2.0, 2.0]);
        let found = tuning(&[("share", [4.0, 3.0, 5.0]), aged]);
        assert_eq!((found.advice(), &found.best().policy), (Advice::Adopt, &policy(aged.0)));
        assert_eq!(
            found.sentence(),
            "share(order=aged) instead of share: mean bounded slowdown 2.00 instead of 4.00 (50 % lower)"
        );
        assert!(found.check().ends_with("2.00 instead of 5.00 (60 % lower)"), "{}", found.check());
        assert!(found.cautions().is_empty());
    }

    #[test]
    fn a_gain_in_one_half_may_be_chance() {
        let found = tuning(&[("share", [4.0, 3.0, 5.0]), ("easy", [3.0, 3.1, 2.9])]);
        assert_eq!(found.advice(), Advice::Unsure);
        assert!(found.cautions()[0].starts_with("the gain may be chance"));
        assert_eq!(found.check(), "the first half of the jobs alone would have kept share");
        // The first half would have chosen what did worse on the second.
        let misled =
            [("share", [4.0, 4.0, 4.0]), ("easy", [3.0, 3.0, 3.0]), ("fcfs", [9.0, 1.0, 17.0])];
        let found = tuning(&misled);
        assert_eq!((&found.best().policy, found.advice()), (&policy("easy"), Advice::Unsure));
        assert!(found.check().contains("chosen fcfs"), "{}", found.check());
    }

    #[test]
    fn nothing_better_and_nothing_at_all() {
        let found = tuning(&[("share", [2.0, 2.0, 2.0]), ("easy", [2.0, 2.0, 2.0])]);
        assert_eq!((found.advice(), &found.present().policy), (Advice::Keep, &policy("share")));
        assert_eq!(found.sentence(), "keep share: no candidate is better");
        // Leaving jobs out is no gain.
        let (full, fewer) = (figures(990, 9.0), figures(989, 1.0));
        let results = vec![full.clone(), full.clone(), full, fewer.clone(), fewer.clone(), fewer];
        let found = Tuning::of(&[policy("share"), policy("easy")], results).unwrap();
        assert_eq!(found.advice(), Advice::Keep);
        let broken = vec![Err("no".to_owned()), figures(1, 1.0), figures(1, 1.0)];
        assert!(matches!(Tuning::of(&[policy("easy")], broken), Err(TuningError::Present { .. })));
    }

    #[test]
    fn the_usual_candidates_are_written_plainly() {
        let names: Vec<String> =
            usual_candidates(&policy("share")).iter().map(PolicySpec::to_string).collect();
        // The present policy's own are the same here.
        assert_eq!((names.len(), &names[..13]), (26, &names[13..]));
        assert_eq!(
            names[..3],
            ["share", "share(order=aged, halving=2h)", "share(order=aged, halving=4h)"]
        );
        assert!(names.contains(&"share(order=history)".to_owned()), "{names:?}");
        assert_eq!(usual_candidates(&policy("fcfs")).len(), 13);
        // What else the policy says stays.
        let slow = ordered(&policy("easy-power(gear=1.7GHz)"));
        assert!(slow.iter().all(|policy| policy.to_string().contains("gear=1.7GHz")), "{slow:?}");
    }
}
