//! The paper's statements, one by one, and whether they hold here.
//!
//! Every statement comes down to comparisons of one cell with another in the same trials. A
//! comparison is confirmed if the 95 % confidence interval of the difference lies on the side that
//! the paper says, contradicted if it lies on the other, and open if it has zero in it.

use serde::Serialize;

use super::trial::TrialFigures;
use super::{Cell, Interval, Results};
use busbar_core::policy::utility::Environment;
use busbar_core::policy::utility::spec::{Heuristic, Measure, Order, States};

/// Whether something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Our figures confirm the statement.
    Confirmed,
    /// The opposite does.
    Contradicted,
    /// Some of it does, or there is no telling.
    Open,
}

impl Verdict {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Confirmed => "confirmed",
            Verdict::Contradicted => "contradicted",
            Verdict::Open => "open",
        }
    }
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// What is compared.
    pub what: String,
    /// The difference, and its unit.
    pub difference: Interval,
    /// In which unit.
    pub unit: &'static str,
    /// Whether it is on the side that the paper says.
    pub verdict: Verdict,
}

/// A statement of the paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statement {
    /// What it says.
    pub statement: &'static str,
    /// How many comparisons are confirmed, contradicted and open.
    pub counts: [usize; 3],
    /// Whether it holds on the whole: all comparisons are confirmed, or most, where it says 'most'.
    pub verdict: Verdict,
    /// The comparisons.
    pub parts: Vec<Part>,
}

/// How many comparisons have to be confirmed.
#[derive(Clone, Copy, PartialEq)]
enum Needs {
    All,
    Most,
}

impl Statement {
    fn of(statement: &'static str, needs: Needs, parts: Vec<Part>) -> Self {
        let count = |verdict| parts.iter().filter(|part| part.verdict == verdict).count();
        let verdicts = [Verdict::Confirmed, Verdict::Contradicted, Verdict::Open];
        let counts = verdicts.map(count);
        let enough = |count: usize| match needs {
            Needs::All => count == parts.len(),
            Needs::Most => 2 * count > parts.len(),
        };
        let verdict = match (enough(counts[0]), enough(counts[1])) {
            (true, _) => Verdict::Confirmed,
            (_, true) => Verdict::Contradicted,
            _ => Verdict::Open,
        };
        Statement { statement, counts, verdict, parts }
    }
}

const ENVIRONMENTS: [Environment; 2] = [Environment::Queued, Environment::Polled];
const STATES: [States; 2] = [States::Fastest, States::All];

fn ordered(order: Order, prioritized: bool, states: States) -> Heuristic {
    Heuristic::Ordered { order, prioritized, states }
}

fn name(cell: Cell) -> String {
    let filter = if cell.filter { "filter" } else { "no filter" };
    format!("{}, {}, {filter}", cell.heuristic, cell.environment)
}

/// What the paper expects of a difference.
#[derive(Clone, Copy)]
enum Expected {
    More,
    NoMore,
}

fn judged(what: String, difference: Interval, unit: &'static str, expected: Expected) -> Part {
    let verdict = match expected {
        Expected::More if difference.low() > 0.0 => Verdict::Confirmed,
        Expected::More if difference.high() < 0.0 => Verdict::Contradicted,
        Expected::NoMore if difference.high() <= 0.0 => Verdict::Confirmed,
        Expected::NoMore if difference.low() > 0.0 => Verdict::Contradicted,
        _ => Verdict::Open,
    };
    Part { what, difference, unit, verdict }
}

impl Results<'_> {
    /// By how much one cell earns more than another, in per cent of the latter, trial by trial.
    fn gain(&self, of: Cell, over: Cell) -> Interval {
        let utility = |outcome: &TrialFigures| outcome.utility;
        let pairs = self.each(of, utility).zip(self.each(over, utility));
        pairs.map(|(of, over)| 100.0 * (of / over.max(1e-9) - 1.0)).collect()
    }

    fn earns_more(&self, of: Cell, over: Cell) -> Part {
        let what = format!("{} over {}", name(of), over.heuristic);
        judged(what, self.gain(of, over), "%", Expected::More)
    }
}

/// Every environment with and without the filter, for a comparison of two heuristics.
fn everywhere(results: &Results<'_>, of: Heuristic, over: Heuristic) -> Vec<Part> {
    let mut parts = Vec::new();
    for environment in ENVIRONMENTS {
        for filter in [false, true] {
            let cell = |heuristic| Cell { heuristic, environment, filter };
            parts.push(results.earns_more(cell(of), cell(over)));
        }
    }
    parts
}

pub(super) fn all(results: &Results<'_>) -> Vec<Statement> {
    vec![
        random_is_worst(results),
        prioritized_over_plain(results),
        last_over_first(results),
        utility_aware_is_best(results),
        per_energy_is_far_ahead(results),
        polled_over_queued(results),
        high_priorities_gain(results),
        filter_helps(results),
        filter_does_not_help_per_energy(results),
        energy_runs_out(results),
        fastest_gains_more(results),
        all_states_gain_more(results),
    ]
}

fn random_is_worst(results: &Results<'_>) -> Statement {
    let first = ordered(Order::FirstCome, false, States::Fastest);
    let parts = everywhere(results, first, Heuristic::Random);
    Statement::of("FCFS earns more than Random", Needs::All, parts)
}

fn prioritized_over_plain(results: &Results<'_>) -> Statement {
    let mut parts = Vec::new();
    for order in [Order::FirstCome, Order::LastCome] {
        for states in STATES {
            let (of, over) = (ordered(order, true, states), ordered(order, false, states));
            parts.extend(everywhere(results, of, over));
        }
    }
    Statement::of("prioritised FCFS and LCFS earn more than plain ones", Needs::All, parts)
}

fn last_over_first(results: &Results<'_>) -> Statement {
    let mut parts = Vec::new();
    for prioritized in [false, true] {
        for states in STATES {
            let of = ordered(Order::LastCome, prioritized, states);
            let over = ordered(Order::FirstCome, prioritized, states);
            parts.extend(everywhere(results, of, over));
        }
    }
    Statement::of("LCFS usually earns more than FCFS", Needs::Most, parts)
}

fn utility_aware_is_best(results: &Results<'_>) -> Statement {
    let is_aware = |heuristic: &Heuristic| matches!(heuristic, Heuristic::Greedy(_));
    let mut parts = Vec::new();
    for environment in ENVIRONMENTS {
        for filter in [false, true] {
            let cell = |heuristic| Cell { heuristic, environment, filter };
            let mean = |heuristic: &Heuristic| {
                results.each(cell(*heuristic), |outcome| outcome.utility).sum::<f64>()
            };
            let others = Heuristic::ALL.into_iter().filter(|heuristic| !is_aware(heuristic));
            let best = others.max_by(|a, b| mean(a).total_cmp(&mean(b)));
            for heuristic in Heuristic::ALL.into_iter().filter(is_aware) {
                let over = best.map(|best| results.earns_more(cell(heuristic), cell(best)));
                parts.extend(over);
            }
        }
    }
    let statement = "each utility-aware heuristic earns more than the best of the others";
    Statement::of(statement, Needs::All, parts)
}

fn per_energy_is_far_ahead(results: &Results<'_>) -> Statement {
    let mut parts = Vec::new();
    for environment in ENVIRONMENTS {
        for over in [Measure::Utility, Measure::PerTime] {
            let cell = |measure| Cell {
                heuristic: Heuristic::Greedy(measure),
                environment,
                filter: false,
            };
            parts.push(results.earns_more(cell(Measure::PerEnergy), cell(over)));
        }
    }
    let statement = "without the filter Max UPE earns more than the other utility-aware ones";
    Statement::of(statement, Needs::All, parts)
}

fn polled_over_queued(results: &Results<'_>) -> Statement {
    let mut parts = Vec::new();
    for heuristic in Heuristic::ALL {
        for filter in [false, true] {
            let cell = |environment| Cell { heuristic, environment, filter };
            let (polled, queued) = (cell(Environment::Polled), cell(Environment::Queued));
            let what = format!("{} over queued", name(polled));
            parts.push(judged(what, results.gain(polled, queued), "%", Expected::More));
        }
    }
    Statement::of("most heuristics earn more polled than queued", Needs::Most, parts)
}

fn high_priorities_gain(results: &Results<'_>) -> Statement {
    let mut parts = Vec::new();
    for heuristic in Heuristic::ALL {
        let cell = |environment| Cell { heuristic, environment, filter: true };
        let portion = |outcome: &TrialFigures| 100.0 * outcome.portions[0];
        let polled = results.each(cell(Environment::Polled), portion);
        let queued = results.each(cell(Environment::Queued), portion);
        let difference = polled.zip(queued).map(|(polled, queued)| polled - queued).collect();
        let what = format!("{}, polled over queued", name(cell(Environment::Polled)));
        parts.push(judged(what, difference, "points", Expected::More));
    }
    let statement = "with the filter, tasks worth 8 earn a larger portion polled than queued";
    Statement::of(statement, Needs::Most, parts)
}

fn filtered(heuristic: Heuristic, environment: Environment) -> [Cell; 2] {
    [true, false].map(|filter| Cell { heuristic, environment, filter })
}

fn filter_helps(results: &Results<'_>) -> Statement {
    let mut parts = Vec::new();
    for heuristic in Heuristic::ALL {
        if heuristic == Heuristic::Greedy(Measure::PerEnergy) {
            continue;
        }
        for environment in ENVIRONMENTS {
            let [with, without] = filtered(heuristic, environment);
            let what = format!("{heuristic}, {environment}, with over without");
            parts.push(judged(what, results.gain(with, without), "%", Expected::More));
        }
    }
    Statement::of("the filter helps every heuristic but Max UPE", Needs::All, parts)
}

fn filter_does_not_help_per_energy(results: &Results<'_>) -> Statement {
    let heuristic = Heuristic::Greedy(Measure::PerEnergy);
    let parts = ENVIRONMENTS
        .map(|environment| {
            let [with, without] = filtered(heuristic, environment);
            let what = format!("{heuristic}, {environment}, with over without");
            judged(what, results.gain(with, without), "%", Expected::NoMore)
        })
        .to_vec();
    Statement::of("the filter does not help Max UPE", Needs::All, parts)
}

/// The difference is that of the trials in which energy ran out and those in which it did not.
fn energy_runs_out(results: &Results<'_>) -> Statement {
    let mut parts = Vec::new();
    for heuristic in Heuristic::ALL {
        for environment in ENVIRONMENTS {
            let cell = Cell { heuristic, environment, filter: false };
            let lasts = heuristic == Heuristic::Greedy(Measure::PerEnergy);
            let ran_out: Interval = results
                .each(cell, |it| if it.ran_out_after_h.is_some() { 100.0 } else { 0.0 })
                .collect();
            let is_so = if lasts { ran_out.mean < 50.0 } else { ran_out.mean > 50.0 };
            let what = match lasts {
                true => format!("{}, ran out, which it should not", name(cell)),
                false => format!("{}, ran out", name(cell)),
            };
            let verdict = if is_so { Verdict::Confirmed } else { Verdict::Contradicted };
            parts.push(Part { what, difference: ran_out, unit: "% of trials", verdict });
        }
    }
    let statement = "without the filter all but Max UPE run out of energy before the day ends";
    Statement::of(statement, Needs::All, parts)
}

/// By how much more the filter gains with the fastest P-state alone than with all of them, in
/// percentage points.
fn fastest_against_all(results: &Results<'_>, prioritized: bool, fastest: bool) -> Vec<Part> {
    let mut parts = Vec::new();
    for order in [Order::FirstCome, Order::LastCome] {
        for environment in ENVIRONMENTS {
            let gains = |states| {
                let [with, without] = filtered(ordered(order, prioritized, states), environment);
                let utility = |outcome: &TrialFigures| outcome.utility;
                let pairs = results.each(with, utility).zip(results.each(without, utility));
                pairs.map(|(with, without)| 100.0 * (with / without.max(1e-9) - 1.0)).collect()
            };
            let (first, second): (Vec<f64>, Vec<f64>) = match fastest {
                true => (gains(States::Fastest), gains(States::All)),
                false => (gains(States::All), gains(States::Fastest)),
            };
            let difference = first.iter().zip(second).map(|(of, over)| of - over).collect();
            let names = match fastest {
                true => "P-state 0 over all P-states",
                false => "all P-states over P-state 0",
            };
            let heuristic = ordered(order, prioritized, States::Fastest);
            let heuristic = heuristic.name().trim_end_matches("-p0");
            let what = format!("gain by the filter: {heuristic}, {environment}, {names}");
            parts.push(judged(what, difference, "points", Expected::More));
        }
    }
    parts
}

fn fastest_gains_more(results: &Results<'_>) -> Statement {
    let parts = fastest_against_all(results, false, true);
    let statement = "the filter gains more with P-state 0 than with all P-states for FCFS and LCFS";
    Statement::of(statement, Needs::All, parts)
}

fn all_states_gain_more(results: &Results<'_>) -> Statement {
    let parts = fastest_against_all(results, true, false);
    let statement = "the filter gains slightly more with all P-states for the prioritised ones";
    Statement::of(statement, Needs::All, parts)
}
