//! All policies under all bounds on the traces of one draw.

use crate::rmap::ReproduceError;
use crate::rmap::accuracy::random_rows;
use busbar_core::budget::Budget;
use busbar_core::job::Tolerance;
use busbar_core::machine::Machine;
use busbar_core::metrics::wait;
use busbar_core::model::{Beliefs, Profiled};
use busbar_core::policy::PolicySpec;
use busbar_core::policy::rmap::{RmapSpec, Rule};
use busbar_core::profile::Profile;
use busbar_core::profile::cab::Preset;
use busbar_core::profile::fit;
use busbar_core::scenario::Scenario;
use busbar_core::sim::{Run, State};
use busbar_core::units::{Share, Span, Watts};
use busbar_core::workload::Workload;
use busbar_workloads::rmap::{Kind, Trace, UsualTimes};

/// The bounds, in watts, ascending.
pub(crate) const BOUNDS: [u32; 5] = [6500, 8000, 10_000, 12_000, 14_000];
/// The place of the highest bound.
pub(super) const HIGHEST: usize = BOUNDS.len() - 1;
/// By how much gaps between arrivals are stretched.
pub(super) const STRETCHES: [f64; 3] = [1.0, 2.0, 4.0];

/// A policy in the comparison, with what it believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contender {
    /// Traditional, with measured tables.
    Traditional,
    /// Traditional that sets 230 W a node aside.
    WorstCase,
    /// Naive, with measured tables.
    Naive,
    /// Adaptive(0 %) with measured tables, as the others have them.
    Even,
    /// Adaptive with predicted tables: jobs that asked for less time than they would take wait.
    Adaptive0,
    /// The same for jobs that would take 10 % longer.
    Adaptive10,
    /// 20 % longer.
    Adaptive20,
    /// 30 % longer.
    Adaptive30,
    /// No job waits because it would take longer.
    Unbounded,
    /// Adaptive(0 %) with predicted tables and a guard band of 15 %.
    Guarded,
}

impl Contender {
    const COUNT: usize = 10;

    /// All of them, each at its own place.
    pub(super) const ALL: [Contender; Contender::COUNT] = [
        Contender::Traditional,
        Contender::WorstCase,
        Contender::Naive,
        Contender::Even,
        Contender::Adaptive0,
        Contender::Adaptive10,
        Contender::Adaptive20,
        Contender::Adaptive30,
        Contender::Unbounded,
        Contender::Guarded,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Contender::Traditional => "traditional",
            Contender::WorstCase => "traditional, 230 W a node",
            Contender::Naive => "naive",
            Contender::Even => "adaptive(0 %), even",
            Contender::Adaptive0 => "adaptive(0 %)",
            Contender::Adaptive10 => "adaptive(10 %)",
            Contender::Adaptive20 => "adaptive(20 %)",
            Contender::Adaptive30 => "adaptive(30 %)",
            Contender::Unbounded => "adaptive(unbounded)",
            Contender::Guarded => "adaptive(0 %), guard band of 15 %",
        }
    }

    fn policy(self) -> RmapSpec {
        let up_to =
            |percent| RmapSpec::of(Rule::Adaptive(Tolerance::Slowdown(Share::percent(percent))));
        match self {
            Contender::Traditional | Contender::WorstCase => RmapSpec::of(Rule::Traditional),
            Contender::Naive => RmapSpec::of(Rule::Naive),
            Contender::Even | Contender::Adaptive0 => up_to(0),
            Contender::Adaptive10 => up_to(10),
            Contender::Adaptive20 => up_to(20),
            Contender::Adaptive30 => up_to(30),
            Contender::Unbounded => RmapSpec::of(Rule::Adaptive(Tolerance::Unbounded)),
            Contender::Guarded => RmapSpec { guard: Share::percent(15), ..up_to(0) },
        }
    }
}

/// The result of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunFigures {
    /// From submission to end, mean over the jobs, in seconds.
    pub(super) turnaround: f64,
    /// Jobs killed at their limit, in per cent of all.
    pub(super) killed: f64,
    /// Jobs that have a shorter turnaround than under traditional.
    pub(super) bettered: f64,
    /// Jobs that do not wait.
    pub(super) unhindered: f64,
    /// Watts drawn from the first submission to the last end, mean over time.
    pub(super) drawn: f64,
    /// Whether the true power passed the bound.
    pub(super) has_excursions: bool,
    /// Jobs that never ran, in per cent of all. With any of them the others look better than they are.
    pub(super) left_out: f64,
}

/// What became of one trace: each contender under each bound.
pub(super) struct Draw {
    /// The made-up machine; none if tables were measured.
    pub(super) preset: Option<Preset>,
    pub(super) kind: Kind,
    /// By the place of the stretch.
    pub(super) stretch: usize,
    /// By bound and contender.
    outcomes: [[RunFigures; Contender::COUNT]; BOUNDS.len()],
}

impl Draw {
    /// What a contender came to under the bound at this place.
    pub(super) fn outcome(&self, bound: usize, contender: Contender) -> &RunFigures {
        &self.outcomes[bound][contender as usize]
    }

    /// A figure of a contender under each bound.
    pub(super) fn each(
        &self,
        contender: Contender,
        figure: impl Fn(&RunFigures) -> f64,
    ) -> [f64; BOUNDS.len()] {
        std::array::from_fn(|bound| figure(self.outcome(bound, contender)))
    }

    /// How much less the turnaround of one is than that of the other, in per cent of the latter,
    /// under each bound.
    pub(super) fn gains(&self, of: Contender, over: Contender) -> [f64; BOUNDS.len()] {
        let turnaround = |contender| self.each(contender, |outcome| outcome.turnaround);
        let (after, before) = (turnaround(of), turnaround(over));
        std::array::from_fn(|bound| 100.0 * (1.0 - after[bound] / before[bound]))
    }
}

/// All runs on the traces of one seed.
pub(super) fn draw(
    machine: &Machine,
    preset: Preset,
    measured: &[Profile],
    seed: u64,
) -> Result<Vec<Draw>, ReproduceError> {
    let of_trial = |trial: &Trial<'_>| trial.draw(Some(preset), BOUNDS);
    Ok(trials(machine, measured, seed)?.iter().map(of_trial).collect())
}

/// The traces of one seed, of each kind with each stretch.
pub(crate) fn trials<'a>(
    machine: &'a Machine,
    measured: &[Profile],
    seed: u64,
) -> Result<Vec<Trial<'a>>, ReproduceError> {
    let predicted: Vec<Profile> = measured
        .iter()
        .map(|profile| fit::predicted(profile, &random_rows(seed)))
        .collect::<Result<_, _>>()?;
    let worst_case = Watts::from_watts(230);
    let trial = |kind, stretch| {
        Trial::new(machine, kind, stretch, [measured, &predicted], worst_case, seed)
    };
    Kind::ALL
        .into_iter()
        .flat_map(|kind| (0..STRETCHES.len()).map(move |s| (kind, s)))
        .map(|(kind, stretch)| trial(kind, stretch))
        .collect()
}

/// A trace, and what may be believed of its jobs.
pub(crate) struct Trial<'a> {
    machine: &'a Machine,
    kind: Kind,
    stretch: usize,
    workload: Workload,
    measured: Profiled,
    predicted: Profiled,
    worst_case: Profiled,
}

impl<'a> Trial<'a> {
    /// The trace of a seed, with tables that are measured and tables that may be believed; one contender
    /// sets the worst case aside for each node.
    pub(super) fn new(
        machine: &'a Machine,
        kind: Kind,
        stretch: usize,
        [measured, predicted]: [&[Profile]; 2],
        worst_case: Watts,
        seed: u64,
    ) -> Result<Self, ReproduceError> {
        let usual = UsualTimes(measured.iter().map(Profile::usual_times).collect());
        let gaps = STRETCHES[stretch];
        let workload = Trace { kind, gaps, seed, ..Trace::default() }.draw(&usual, 1)?;
        let table = |profiles: &[Profile], node_power| {
            let beliefs = Beliefs { node_power, ..Beliefs::default() };
            Profiled::new(machine, profiles, workload.jobs(), beliefs)
        };
        Ok(Trial {
            machine,
            kind,
            stretch,
            measured: table(measured, None)?,
            predicted: table(predicted, None)?,
            worst_case: table(measured, Some(worst_case))?,
            workload,
        })
    }

    /// Each contender under each of these bounds, in watts.
    pub(super) fn draw(&self, preset: Option<Preset>, bounds: [u32; BOUNDS.len()]) -> Draw {
        let outcomes = bounds.map(|bound| self.outcomes(bound));
        Draw { preset, kind: self.kind, stretch: self.stretch, outcomes }
    }
}

impl Trial<'_> {
    /// What each contender comes to.
    fn outcomes(&self, bound: u32) -> [RunFigures; Contender::COUNT] {
        let runs = Contender::ALL.map(|contender| self.run(contender, bound));
        let [traditional, ..] = runs.each_ref().map(|run| self.turnarounds(run));
        runs.map(|run| self.outcome(&run, &traditional))
    }

    fn run(&self, contender: Contender, bound: u32) -> Run {
        let believed = match contender {
            Contender::Traditional | Contender::Naive | Contender::Even => &self.measured,
            Contender::WorstCase => &self.worst_case,
            Contender::Adaptive0
            | Contender::Adaptive10
            | Contender::Adaptive20
            | Contender::Adaptive30
            | Contender::Unbounded
            | Contender::Guarded => &self.predicted,
        };
        self.simulate(PolicySpec::of(contender.policy()), believed, bound)
    }

    /// A policy that knows the measured tables, under a bound in watts.
    pub(crate) fn run_informed(&self, policy: PolicySpec, bound: u32) -> Run {
        self.simulate(policy, &self.measured, bound)
    }

    fn simulate(&self, policy: PolicySpec, believed: &Profiled, bound: u32) -> Run {
        let scenario = Scenario {
            truth: Some(&self.measured),
            budget: Budget::constant(Watts::from_watts(bound)),
            ..Scenario::new(self.machine, &self.workload, policy, believed)
        };
        scenario.simulate().run
    }

    /// How long each job took from its submission to its end.
    pub(crate) fn turnarounds(&self, run: &Run) -> Vec<Span> {
        let jobs = self.workload.jobs().iter().zip(&run.records);
        jobs.map(|(job, record)| record.end.since(job.submit)).collect()
    }

    fn outcome(&self, run: &Run, traditional: &[Span]) -> RunFigures {
        let turnarounds = self.turnarounds(run);
        let jobs = self.workload.jobs().iter().zip(&run.records);
        let killed = run.records.iter().filter(|record| record.state == State::Killed).count();
        let left_out = run.records.iter().filter(|record| !record.state.has_run()).count();
        let bettered = turnarounds.iter().zip(traditional).filter(|(now, then)| now < then);
        let unhindered = jobs.filter(|(job, record)| wait(job, record) == Span::ZERO);
        let count = turnarounds.len().max(1) as f64;
        RunFigures {
            turnaround: turnarounds.iter().map(|span| span.secs_f64()).sum::<f64>() / count,
            killed: 100.0 * killed as f64 / count,
            bettered: bettered.count() as f64,
            unhindered: unhindered.count() as f64,
            drawn: run.energy.as_f64() / run.end.since(run.begin).secs_f64().max(1e-3),
            has_excursions: run.excursions.count > 0,
            left_out: 100.0 * left_out as f64 / count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use busbar_core::profile::cab;

    #[test]
    fn each_contender_has_its_place() {
        for (place, contender) in Contender::ALL.into_iter().enumerate() {
            assert_eq!(contender as usize, place);
        }
    }

    /// What must hold whatever was drawn: with measured tables nobody is killed and no bound is
    /// passed; traditional is as good as itself; gains are by the turnarounds they are about.
    #[test]
    fn one_draw_is_sound() {
        let measured = cab::generate(Preset::Cab, 1);
        let draws = draw(&Machine::cab(), Preset::Cab, &measured, 1).unwrap();
        assert_eq!(draws.len(), Kind::ALL.len() * STRETCHES.len());
        for draw in &draws {
            for (bound, watts) in BOUNDS.into_iter().enumerate() {
                let outcome = |contender| *draw.outcome(bound, contender);
                for contender in [Contender::Traditional, Contender::Naive, Contender::Even] {
                    assert_eq!(outcome(contender).killed, 0.0);
                    assert!(!outcome(contender).has_excursions);
                    assert!(outcome(contender).drawn <= f64::from(watts));
                }
                assert_eq!(outcome(Contender::Traditional).bettered, 0.0);
                let (before, after) = (outcome(Contender::Naive), outcome(Contender::Adaptive0));
                let gain = draw.gains(Contender::Adaptive0, Contender::Naive)[bound];
                let expected = before.turnaround - gain / 100.0 * before.turnaround;
                assert!((after.turnaround - expected).abs() < 1e-6);
            }
        }
    }
}
