//! The experiments with one job on processors that were measured.
//!
//! Quartiles are by efficiency, which is what tells processors apart that all stand at one limit: the paper's are by
//! power drawn without a cap, where all are equally fast. What caps could gain is only known where a processor was
//! measured under several.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use super::ReproduceError;
use crate::sample::{Published, Rows, Sample};
use crate::{Finding, Reproduction};
use busbar_core::solve::ptune::Tuner;
use busbar_core::units::Watts;
use busbar_core::variation::{Application, Curve, Processors};

/// The sizes of a job, in processors.
const SIZES: [usize; 4] = [16, 32, 64, 128];

/// Slower on worse quartiles, least and most, in the paper.
const SLOWDOWN: [f64; 2] = [2.0, 18.0];

/// Measured processors, and how many draws of a job's processors.
#[derive(Clone, Debug)]
pub struct OnCurves {
    /// The processors.
    pub processors: Processors,
    /// Their name.
    pub name: String,
    /// Draws of each job.
    pub seeds: u64,
    /// The first seed; the others follow.
    pub first_seed: u64,
}

/// Runs what the curves support, and says what they do not.
pub fn reproduce_on(options: &OnCurves) -> Result<Reproduction, ReproduceError> {
    let count = options.processors.names().len();
    let sizes: Vec<usize> = SIZES.into_iter().filter(|size| 4 * size <= count).collect();
    let Some(largest) = sizes.last() else {
        return Err(ReproduceError::TooFew { processors: count, needed: 4 * SIZES[0] });
    };
    let mut findings = Vec::new();
    let mut notes = vec![
        format!(
            "{}: {count} measured processors; {} draws of each job; measured is their mean, ± their standard \
             deviation, agree the share of them with the published sign",
            options.name, options.seeds
        ),
        "Q1 to Q4: quartiles by efficiency, Q1 the most efficient; the paper's are by power without a cap"
            .to_owned(),
        format!("jobs of up to {largest} processors, a quarter of those there are at most"),
    ];
    for application in options.processors.applications() {
        findings.extend(slowdowns(options, application, &sizes));
        match application.curves.iter().all(|curve| curve.least() == curve.most()) {
            true => notes.push(format!(
                "{}: every processor was measured under one cap, so nothing is known of what tuning caps gains; \
                 measure each under at least two",
                application.name
            )),
            false => findings.extend(gains(options, application, &sizes)?),
        }
    }
    Ok(Reproduction { findings, notes })
}

/// A processor of a quartile, at random, as often as asked, each once.
fn pick(numbers: &mut Pcg64Dxsm, order: &[usize], quartile: usize, size: usize) -> Vec<usize> {
    let ends = [order.len() * quartile / 4, order.len() * (quartile + 1) / 4];
    let mut there = order[ends[0]..ends[1]].to_vec();
    let pick =
        |_| (!there.is_empty()).then(|| there.swap_remove(numbers.random_range(0..there.len())));
    (0..size).map_while(pick).collect()
}

fn draws(options: &OnCurves) -> impl Iterator<Item = Pcg64Dxsm> {
    let seeds = (0..options.seeds).map(|draw| options.first_seed.wrapping_add(draw));
    seeds.map(|seed| Pcg64Dxsm::seed_from_u64(seed ^ 0x7074_756e_6563_7572))
}

/// How much longer a job takes than on as many processors of the first quartile, all at their highest cap: by the
/// sum of speeds, and by the slowest alone, for jobs that wait for each other.
fn slowdowns(options: &OnCurves, application: &Application, sizes: &[usize]) -> Vec<Finding> {
    let order = application.by_efficiency();
    let peak = |place: &usize| application.curves[*place].peak().billions();
    let mut findings = Vec::new();
    for &size in sizes {
        let place = format!("{}, {}, {size} processors", options.name, application.name);
        let mut rows = Rows::new("One cap: slower than on the first quartile", place);
        for quartile in 1..4 {
            let (mut together, mut slowest) = (Vec::new(), Vec::new());
            for mut numbers in draws(options) {
                let [best, worse] = [0, quartile].map(|q| pick(&mut numbers, &order, q, size));
                let sum = |chosen: &[usize]| chosen.iter().map(peak).sum::<f64>();
                let least =
                    |chosen: &[usize]| chosen.iter().map(peak).fold(f64::INFINITY, f64::min);
                together.push(100.0 * (sum(&best) / sum(&worse) - 1.0));
                slowest.push(100.0 * (least(&best) / least(&worse) - 1.0));
            }
            let name = format!("Q{}", quartile + 1);
            let published = match quartile {
                1 => Published::Change(SLOWDOWN[0]),
                3 => Published::Change(SLOWDOWN[1]),
                _ => Published::Nothing,
            };
            rows.add(
                format!("{name}, sum of speeds"),
                published,
                &Sample::from_iter(together),
                "%",
            );
            let alone = Sample::from_iter(slowest);
            rows.add(format!("{name}, slowest processor"), Published::Nothing, &alone, "%");
        }
        findings.extend(rows.findings);
    }
    findings
}

/// How much less time a tuned job takes than with equal parts of the same power, in the middle between the least
/// and the most that its processors can draw.
fn gains(
    options: &OnCurves,
    application: &Application,
    sizes: &[usize],
) -> Result<Vec<Finding>, ReproduceError> {
    let order: Vec<usize> = (0..application.curves.len()).collect();
    let mut tuner = Tuner::new();
    let mut findings = Vec::new();
    for &size in sizes {
        let place = format!("{}, {}, {size} processors", options.name, application.name);
        let mut rows = Rows::new("Tuned: takes less time than equal parts", place);
        let mut reductions = Vec::new();
        for mut numbers in draws(options) {
            let mut there = order.clone();
            let chosen: Vec<&Curve> = (0..size)
                .map(|_| there.swap_remove(numbers.random_range(0..there.len())))
                .map(|place| &application.curves[place])
                .collect();
            let least: Watts = chosen.iter().map(|curve| curve.least()).sum();
            let most: Watts = chosen.iter().map(|curve| curve.most()).sum();
            let middle = least + Watts::from_milliwatts((most - least).milliwatts() / 2);
            let tuned = tuner.tune(&chosen, middle)?;
            let even = tuned.uniform.map_or(0.0, |even| even.ips.billions());
            reductions.push(100.0 * (1.0 - even / tuned.ips.billions()));
        }
        let published = Published::Change(29.0);
        rows.add(
            "all quartiles, half-way between least and most power",
            published,
            &Sample::from_iter(reductions),
            "%",
        );
        findings.extend(rows.findings);
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use busbar_core::variation::catalyst::Catalyst;
    use busbar_core::variation::{Ips, Knot};

    fn on(processors: Processors) -> OnCurves {
        OnCurves { processors, name: "curves".to_owned(), seeds: 3, first_seed: 1 }
    }

    #[test]
    fn made_up_curves_support_all_of_it() {
        let done = reproduce_on(&on(Catalyst::processors_of(128, 1))).unwrap();
        let tuned: Vec<&Finding> =
            done.findings.iter().filter(|f| f.experiment.starts_with("Tuned")).collect();
        // Four codes on 16 and 32 processors; tuning is never slower.
        assert_eq!(tuned.len(), 8);
        assert!(tuned.iter().all(|finding| finding.measured.unwrap() >= 0.0));
    }

    /// 64 processors at one limit: the fourth quartile is 10 % slower than the first, and nothing is said of caps.
    #[test]
    fn one_cap_tells_quartiles_apart_and_no_more() {
        let limit = Watts::from_watts(300);
        let curve = |place: u64| {
            let ips = Ips::from_ips(if place < 48 { 1_100_000_000 } else { 1_000_000_000 });
            Curve::new(limit, vec![Knot { power: limit, ips }]).unwrap()
        };
        let application =
            Application { name: "SGEMM".to_owned(), curves: (0..64).map(curve).collect() };
        let names = (0..64).map(|place| format!("g{place}")).collect();
        let processors = Processors::new(names, limit, vec![application]).unwrap();
        let done = reproduce_on(&on(processors)).unwrap();
        let of = |metric: &str| {
            let found = done.findings.iter().find(|finding| finding.metric == metric);
            (found.unwrap().measured.unwrap() * 1e6).round() / 1e6
        };
        assert_eq!((of("Q2, sum of speeds"), of("Q4, sum of speeds")), (0.0, 10.0));
        assert!(done.notes.iter().any(|note| note.contains("under one cap")), "{:?}", done.notes);
        assert!(done.findings.iter().all(|finding| !finding.experiment.starts_with("Tuned")));
        let few = reproduce_on(&on(Catalyst::processors_of(63, 1))).unwrap_err().to_string();
        assert!(few.contains("63 processors are too few"), "{few}");
    }
}
