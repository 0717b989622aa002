//! The published results of the policies beside ours.

use crate::Finding;
use crate::rmap::experiment::{BOUNDS, Contender, Draw, HIGHEST, RunFigures, STRETCHES};
use crate::sample::{Published, Rows, Sample};
use busbar_core::profile::cab::Preset;
use busbar_workloads::rmap::Kind;

/// A kind of trace, as the paper counts them.
pub(super) struct Traces {
    pub(super) name: &'static str,
    pub(super) kinds: &'static [Kind],
    pub(super) over_traditional: Claims,
    pub(super) over_naive: Claims,
}

/// What adaptive(0 %) gains, in per cent.
pub(super) struct Claims {
    /// Mean over the bounds.
    pub(super) mean: Published,
    /// At the bound where it is most, or least if the mean is a loss.
    extreme: Published,
    at_lowest: Published,
    at_highest: Published,
}

impl Claims {
    const NONE: Claims = Claims {
        mean: Published::Nothing,
        extreme: Published::Nothing,
        at_lowest: Published::Nothing,
        at_highest: Published::Nothing,
    };

    fn at(&self, bound: usize) -> Published {
        match bound {
            0 => self.at_lowest,
            HIGHEST => self.at_highest,
            _ => Published::Nothing,
        }
    }
}

/// Mean turnarounds of the large trace at 6 500 W, in seconds.
const TRADITIONAL_S: f64 = 684.0;
const NAIVE_S: f64 = 990.0;
const ADAPTIVE_0_S: f64 = 636.0;
const ADAPTIVE_10_S: f64 = 613.0;
const ADAPTIVE_20_S: f64 = 536.0;
const ADAPTIVE_30_S: f64 = 536.0;

/// How much less the second is, in per cent of the first.
const fn less(before: f64, after: f64) -> Published {
    Published::Change(100.0 * (1.0 - after / before))
}

pub(super) const TRACES: [Traces; 3] = [
    Traces {
        name: "random",
        kinds: &[Kind::RandomEarly, Kind::Random],
        over_traditional: Claims {
            mean: Published::Change(18.5),
            extreme: Published::Change(31.2),
            ..Claims::NONE
        },
        over_naive: Claims {
            mean: Published::Change(36.1),
            extreme: Published::Change(53.8),
            ..Claims::NONE
        },
    },
    Traces {
        name: "large",
        kinds: &[Kind::Large],
        over_traditional: Claims {
            mean: Published::Change(14.3),
            extreme: Published::Change(24.6),
            at_lowest: less(TRADITIONAL_S, ADAPTIVE_0_S),
            ..Claims::NONE
        },
        over_naive: Claims {
            mean: Published::Change(21.7),
            extreme: Published::Change(47.3),
            at_lowest: less(NAIVE_S, ADAPTIVE_0_S),
            ..Claims::NONE
        },
    },
    Traces {
        name: "small",
        kinds: &[Kind::Small],
        over_traditional: Claims {
            mean: Published::Change(-16.6),
            extreme: Published::Change(-21.1),
            at_highest: Published::Change(17.1),
            ..Claims::NONE
        },
        over_naive: Claims::NONE,
    },
];

/// One machine under one load.
struct Place<'d> {
    name: String,
    draws: Vec<&'d Draw>,
}

impl Place<'_> {
    /// A figure of each trace of these kinds.
    fn sample(&self, kinds: &[Kind], figure: impl Fn(&Draw) -> f64) -> Sample {
        let draws = self.draws.iter().filter(|draw| kinds.contains(&draw.kind));
        draws.map(|draw| figure(draw)).collect()
    }

    fn rows(&self, experiment: &'static str) -> Rows {
        Rows::new(experiment, self.name.clone())
    }
}

/// The rows of all experiments, each on both machines under all loads.
pub(super) fn findings(draws: &[Draw]) -> Vec<Finding> {
    let places: Vec<Place<'_>> = Preset::ALL
        .into_iter()
        .flat_map(|preset| (0..STRETCHES.len()).map(move |stretch| (preset, stretch)))
        .map(|(preset, stretch)| {
            let is_here = |draw: &&Draw| draw.preset == Some(preset) && draw.stretch == stretch;
            Place {
                name: format!("{preset}, gaps × {}", STRETCHES[stretch]),
                draws: draws.iter().filter(is_here).collect(),
            }
        })
        .collect();
    let experiments = [gains, turnarounds, thresholds, kills, statements];
    experiments
        .iter()
        .flat_map(|rows| places.iter().flat_map(|place| rows(place).findings))
        .collect()
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().copied().collect::<Sample>().mean()
}

fn watts(bound: usize) -> String {
    format!("{} {:03} W", BOUNDS[bound] / 1000, BOUNDS[bound] % 1000)
}

fn gains(place: &Place<'_>) -> Rows {
    let mut rows = place.rows("Turnaround: adaptive(0 %) against the others, better by");
    for Traces { name, kinds, over_traditional, over_naive } in &TRACES {
        let against = [(Contender::Traditional, over_traditional), (Contender::Naive, over_naive)];
        for (other, claims) in against {
            let title = format!("{name}, over {}", other.name());
            let gains = |draw: &Draw| draw.gains(Contender::Adaptive0, other);
            let average = place.sample(kinds, |draw| mean(&gains(draw)));
            rows.add(format!("{title}: mean of the bounds"), claims.mean, &average, "%");
            let is_loss = matches!(claims.mean, Published::Change(change) if change < 0.0);
            let extreme = place.sample(kinds, |draw| {
                let gains: Sample = gains(draw).into_iter().collect();
                if is_loss { gains.least() } else { gains.largest() }
            });
            let which = if is_loss { "worst" } else { "best" };
            rows.add(format!("{title}: at the {which} bound"), claims.extreme, &extreme, "%");
            for bound in 0..BOUNDS.len() {
                let sample = place.sample(kinds, |draw| gains(draw)[bound]);
                let title = format!("{title}: at {}", watts(bound));
                rows.add(title, claims.at(bound), &sample, "%");
            }
        }
        // The paper has neither.
        for (of, over) in [
            (Contender::Even, Contender::Traditional),
            (Contender::Even, Contender::Naive),
            (Contender::Adaptive0, Contender::WorstCase),
        ] {
            let even = if of == Contender::Even { ", even" } else { "" };
            let title = format!("{name}, over {}{even}: mean of the bounds", over.name());
            let sample = place.sample(kinds, |draw| mean(&draw.gains(of, over)));
            rows.add(title, Published::Nothing, &sample, "%");
        }
    }
    rows
}

fn turnarounds(place: &Place<'_>) -> Rows {
    let mut rows = place.rows("Large trace: mean turnaround");
    for bound in 0..BOUNDS.len() {
        for contender in Contender::ALL {
            let published = match (bound, contender) {
                (0, Contender::Traditional) => Published::Number(TRADITIONAL_S),
                (0, Contender::Naive) => Published::Number(NAIVE_S),
                (0, Contender::Adaptive0) => Published::Number(ADAPTIVE_0_S),
                (0, Contender::Adaptive10) => Published::Number(ADAPTIVE_10_S),
                (0, Contender::Adaptive20) => Published::Number(ADAPTIVE_20_S),
                (0, Contender::Adaptive30) => Published::Number(ADAPTIVE_30_S),
                _ => Published::Nothing,
            };
            let sample =
                place.sample(&[Kind::Large], |draw| draw.outcome(bound, contender).turnaround);
            rows.add(format!("{}: {}", watts(bound), contender.name()), published, &sample, "s");
        }
    }
    rows
}

fn thresholds(place: &Place<'_>) -> Rows {
    let mut rows = place.rows("Large trace: one policy against another, better by");
    use Contender::{Adaptive0, Adaptive10, Adaptive20, Adaptive30, Naive, Traditional, Unbounded};
    let pairs = [
        (Naive, Traditional, Published::Nothing, less(TRADITIONAL_S, NAIVE_S)),
        (Adaptive10, Traditional, Published::Change(16.1), less(TRADITIONAL_S, ADAPTIVE_10_S)),
        (Adaptive10, Adaptive0, Published::Rise, less(ADAPTIVE_0_S, ADAPTIVE_10_S)),
        (Adaptive20, Adaptive0, Published::Rise, less(ADAPTIVE_0_S, ADAPTIVE_20_S)),
        (Adaptive30, Adaptive0, Published::Rise, less(ADAPTIVE_0_S, ADAPTIVE_30_S)),
        (Adaptive0, Unbounded, Published::Change(33.8), Published::Nothing),
    ];
    for (of, over, mean_published, at_lowest) in pairs {
        let title = format!("{} over {}", of.name(), over.name());
        let average = place.sample(&[Kind::Large], |draw| mean(&draw.gains(of, over)));
        rows.add(format!("{title}: mean of the bounds"), mean_published, &average, "%");
        for bound in 0..BOUNDS.len() {
            let published = if bound == 0 { at_lowest } else { Published::Nothing };
            let sample = place.sample(&[Kind::Large], |draw| draw.gains(of, over)[bound]);
            rows.add(format!("{title}: at {}", watts(bound)), published, &sample, "%");
        }
    }
    rows
}

fn kills(place: &Place<'_>) -> Rows {
    let mut rows = place.rows("Jobs killed at their limit, of all, mean of traces and bounds");
    for contender in Contender::ALL {
        let killed = |draw: &Draw| mean(&draw.each(contender, |outcome| outcome.killed));
        let sample = place.sample(&Kind::ALL, killed);
        rows.add(contender.name(), Published::Nothing, &sample, "%");
    }
    rows
}

fn statements(place: &Place<'_>) -> Rows {
    let mut rows = place.rows("Other statements");
    let bettered = |bound: usize, contender: Contender| {
        move |draw: &Draw| draw.outcome(bound, contender).bettered
    };
    for (contender, jobs) in
        [(Contender::Adaptive0, 17.0), (Contender::Adaptive10, 18.0), (Contender::Adaptive20, 22.0)]
    {
        let sample = place.sample(&[Kind::Large], bettered(0, contender));
        let name = contender.name();
        let what = format!("large at 6 500 W: jobs better off with {name} than traditional");
        rows.add(what, Published::Number(jobs), &sample, "jobs");
    }
    let mut random_two = |what: &str, published, figure: &dyn Fn(&Draw) -> f64, unit| {
        let sample = place.sample(&[Kind::Random], figure);
        rows.add(format!("random 2 at 14 000 W: {what}"), published, &sample, unit);
    };
    let what = "jobs better off with adaptive(0 %) than traditional";
    let figure = bettered(HIGHEST, Contender::Adaptive0);
    random_two(what, Published::Number(28.0), &figure, "jobs");
    let what = "jobs that do not wait under traditional";
    let unhindered = |draw: &Draw| draw.outcome(HIGHEST, Contender::Traditional).unhindered;
    random_two(what, Published::Number(14.0), &unhindered, "jobs");
    let what = "mean power drawn, adaptive(0 %) above traditional";
    let raised = |draw: &Draw| {
        let drawn = |contender| draw.outcome(HIGHEST, contender).drawn;
        100.0 * (drawn(Contender::Adaptive0) / drawn(Contender::Traditional) - 1.0)
    };
    random_two(what, Published::Rise, &raised, "%");
    for contender in [Contender::Adaptive0, Contender::Guarded] {
        let passed = |outcome: &RunFigures| if outcome.has_excursions { 100.0 } else { 0.0 };
        let sample = place.sample(&Kind::ALL, |draw| mean(&draw.each(contender, passed)));
        let what = format!("runs in which true power passes the bound: {}", contender.name());
        rows.add(what, Published::Nothing, &sample, "%");
    }
    rows
}
