//! PPartition's queues: jobs on processors with manufacturing variation under a power limit, dispatched as in the
//! paper and in our ways.
//!
//! Compared is what the paper looks at, the state in which nobody else can start: how many jobs run, and how many
//! instructions they get done in a second. The time that the whole queue takes stands beside it.

use busbar_core::policy::ppartition::{First, Sharing};
use busbar_core::policy::three_queues::Rule;
use busbar_core::variation::catalyst::Shape;

use super::{Options, Progress, ShareError};
use crate::parallel::in_parallel;
use crate::ptune::many_jobs::{Field, KILOWATTS, RULES, Scheme, SchemeFigures};
use crate::ptune::many_jobs_on;
use crate::sample::Sample;
use crate::{Finding, Reproduction};

/// Machines of each shape.
const MACHINES: u64 = 20;

const PUBLISHED: Scheme = Scheme::Ppartition(First::Share);

/// Who is compared with PPartition as published; the goal is that of the first.
const OURS: [Scheme; 2] = [Scheme::Own(Sharing::Gain, 0), Scheme::Busbar];

/// Runs the queues; `progress` hears how many machines are done, of how many.
pub(super) fn reproduce(
    options: &Options,
    progress: Progress<'_>,
) -> Result<Reproduction, ShareError> {
    let (findings, notes) = on_machines(MACHINES, options.seed, progress)?;
    Ok(Reproduction { findings, notes })
}

fn on_machines(
    machines: u64,
    first_seed: u64,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<(Vec<Finding>, Vec<String>), ShareError> {
    let seeds = |shape| (0..machines).map(move |draw| (shape, first_seed.wrapping_add(draw)));
    let draws: Vec<(Shape, u64)> = Shape::ALL.into_iter().flat_map(seeds).collect();
    let schemes: Vec<Scheme> = [PUBLISHED].into_iter().chain(OURS).collect();
    let run = |(shape, seed): &(Shape, u64)| many_jobs_on(*shape, *seed, &schemes);
    let fields = in_parallel(&draws, run, progress);
    let fields: Vec<Field> = fields.into_iter().collect::<Result<_, _>>()?;
    let mut findings = Vec::new();
    for ours in OURS {
        let cells: Vec<Cell<'_>> = cells(&fields, ours);
        cells.iter().for_each(|cell| cell.add_to(&mut findings));
        add_totals(&cells, &mut findings);
    }
    let note = format!(
        "queues: {machines} machines of each shape; a cell is a shape, a rule for jobs that do not fit and a limit; a \
         machine is won where ours is no worse than PPartition as published"
    );
    Ok((findings, vec![note]))
}

/// One scheme against PPartition, in one cell.
struct Cell<'f> {
    scheme: Scheme,
    shape: Shape,
    rule: Rule,
    kilowatts: u32,
    /// PPartition's figures and ours, by machine.
    pairs: Vec<[&'f SchemeFigures; 2]>,
}

/// All cells in which there are both.
fn cells<'f>(fields: &'f [Field], scheme: Scheme) -> Vec<Cell<'f>> {
    let mut cells = Vec::new();
    for shape in Shape::ALL {
        for rule in RULES {
            for kilowatts in KILOWATTS {
                let both = |field: &'f Field| {
                    let theirs = field.of(PUBLISHED, rule, kilowatts)?;
                    Some([theirs, field.of(scheme, rule, kilowatts)?])
                };
                let alike = fields.iter().filter(|field| field.shape == shape);
                let pairs = alike.filter_map(both).collect();
                cells.push(Cell { scheme, shape, rule, kilowatts, pairs });
            }
        }
    }
    cells
}

impl Cell<'_> {
    fn mean(&self, figure: impl Fn(&SchemeFigures, &SchemeFigures) -> f64) -> f64 {
        self.pairs.iter().map(|[theirs, ours]| figure(theirs, ours)).collect::<Sample>().mean()
    }

    /// In relation to PPartition's, on the mean of the machines.
    fn ratio(&self, figure: fn(&SchemeFigures) -> f64) -> f64 {
        self.mean(|theirs, ours| figure(ours) / figure(theirs))
    }

    /// On how many of a hundred machines ours is no less.
    fn won(&self, figure: fn(&SchemeFigures) -> f64) -> f64 {
        self.mean(|theirs, ours| if figure(ours) >= figure(theirs) { 100.0 } else { 0.0 })
    }

    fn add_to(&self, findings: &mut Vec<Finding>) {
        let (shape, rule, kilowatts) = (self.shape, self.rule, self.kilowatts);
        let workload = format!("{}: {shape}, {rule}, {kilowatts} kW", self.scheme.name());
        let granted = |figures: &SchemeFigures| {
            100.0 * f64::from(figures.granted) / f64::from(figures.asked.max(1))
        };
        let rows = [
            ("jobs at once, PPartition", self.mean(|theirs, _| theirs.jobs()), "jobs"),
            ("jobs at once", self.mean(|_, ours| ours.jobs()), "jobs"),
            ("machines won: jobs at once", self.won(SchemeFigures::jobs), "%"),
            ("throughput / PPartition's", self.ratio(SchemeFigures::throughput), ""),
            ("machines won: throughput", self.won(SchemeFigures::throughput), "%"),
            ("processors had, of those asked for", self.mean(|_, ours| granted(ours)), "%"),
            ("time of the whole queue / PPartition's", self.ratio(|figures| figures.makespan), ""),
        ];
        let row = |(metric, measured, unit)| finding(&workload, metric, None, measured, unit);
        findings.extend(rows.map(row));
    }
}

/// Over all cells: the least, and the mean.
fn add_totals(cells: &[Cell<'_>], findings: &mut Vec<Finding>) {
    let Some(scheme) = cells.first().map(|cell| cell.scheme) else { return };
    let goal = (scheme == OURS[0]).then_some(1.0);
    let workload = format!("{}: all cells", scheme.name());
    for (name, figure) in [
        ("jobs at once", SchemeFigures::jobs as fn(&SchemeFigures) -> f64),
        ("throughput", SchemeFigures::throughput),
    ] {
        let ratios: Sample = cells.iter().map(|cell| cell.ratio(figure)).collect();
        let won: Sample = cells.iter().map(|cell| cell.won(figure)).collect();
        let mut row = |metric: String, goal, measured, unit| {
            findings.push(finding(&workload, &metric, goal, measured, unit));
        };
        row(format!("{name} / PPartition's, mean"), goal, ratios.mean(), "");
        row(format!("{name} / PPartition's, in the worst cell"), goal, ratios.least(), "");
        row(format!("machines won: {name}"), None, won.mean(), "%");
    }
}

fn finding(
    workload: &str,
    metric: &str,
    goal: Option<f64>,
    measured: f64,
    unit: &'static str,
) -> Finding {
    Finding {
        experiment: "PPartition's queues",
        workload: workload.to_owned(),
        metric: metric.to_owned(),
        published: goal,
        measured: Some(measured),
        unit,
        variation: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every cell is there with all its figures, and the worst cell is no better than the mean.
    #[test]
    fn every_cell_is_compared() {
        let (findings, _) = on_machines(1, 3, &|_, _| {}).unwrap();
        assert_eq!(findings.len(), OURS.len() * (2 * 2 * 5 * 7 + 6));
        let of = |metric: &str| {
            let is_it = |finding: &&Finding| finding.metric == metric;
            findings.iter().find(is_it).and_then(|finding| finding.measured).unwrap()
        };
        for name in ["jobs at once", "throughput"] {
            let [mean, worst] = ["mean", "in the worst cell"]
                .map(|which| of(&format!("{name} / PPartition's, {which}")));
            assert!(worst <= mean && worst > 0.0);
        }
        assert!(findings.iter().all(|finding| finding.measured.unwrap().is_finite()));
        // Where nobody passes a job that does not fit, `sharing=gain` has the paper's jobs on the paper's processors,
        // and others only if all get no less done; and on these processors no division gets more done.
        let stop = format!("{}: {}, stop", OURS[0].name(), Shape::Continued);
        let compared = findings.iter().filter(|finding| finding.workload.starts_with(&stop));
        let won: Vec<_> =
            compared.filter(|finding| finding.metric.starts_with("machines won")).collect();
        assert_eq!(won.len(), 5 * 2);
        assert!(won.iter().all(|finding| finding.measured == Some(100.0)), "{won:?}");
    }
}
