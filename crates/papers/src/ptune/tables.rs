//! The paper's results for one job beside ours.

use super::one_job::{Case, Draw, MIXES, SIZES, WATTS};
use crate::Finding;
use crate::sample::{Published, Rows, Sample};
use busbar_core::units::Share;
use busbar_core::variation::catalyst::Shape;

/// The error of the speeds that the greedy is tried on: what measuring may well have.
pub(super) const NOISE: Share = Share::percent(1);

/// What one processor may draw in the paper's experiments with one job.
const PUBLISHED_WATTS: u32 = WATTS[0];

/// Slower on worse quartiles, at 51 W each: least and most, over its figures.
const SLOWDOWN: [f64; 2] = [2.0, 18.0];
/// Less time than equal parts: at most on 16 processors; at least and at most on up to 128.
const REDUCTION_ON_16: f64 = 22.0;
const REDUCTION: [f64; 2] = [1.0, 29.0];
/// Processors that stay free: at most on 16, and at most in the summary.
const FREED_ON_16: f64 = 38.0;
const FREED: f64 = 40.0;
/// How far a job's power is from its budget, at most.
const UNUSED: f64 = 2.0;

/// The mix that the paper scales up.
const SCALED: &str = "Q1+Q4";

/// The machines of one shape.
struct Place<'d> {
    shape: Shape,
    draws: Vec<&'d Draw>,
}

impl Place<'_> {
    /// A figure of each machine, from those of its cases that are meant.
    fn sample(
        &self,
        is_meant: impl Fn(&Case) -> bool,
        figure: impl Fn(&Case) -> f64,
        together: impl Fn(&Sample) -> f64,
    ) -> Sample {
        let of = |draw: &&Draw| {
            together(&draw.cases.iter().filter(|case| is_meant(case)).map(&figure).collect())
        };
        self.draws.iter().map(of).collect()
    }

    fn rows(&self, experiment: &'static str, size: usize) -> Rows {
        Rows::new(experiment, format!("{}, {size} processors", self.shape))
    }

    fn codes(&self) -> Vec<String> {
        let mut codes = Vec::new();
        for case in self.draws.iter().flat_map(|draw| &draw.cases) {
            if !codes.contains(&case.code) {
                codes.push(case.code.clone());
            }
        }
        codes
    }
}

/// The rows of all experiments, each with both shapes.
pub(super) fn findings(draws: &[Draw]) -> Vec<Finding> {
    let place =
        |shape| Place { shape, draws: draws.iter().filter(|draw| draw.shape == shape).collect() };
    let places = Shape::ALL.map(place);
    let experiments = [slowdowns, gains, powers, greedies];
    let rows = experiments.iter().flat_map(|experiment| places.iter().flat_map(experiment));
    rows.flat_map(|rows| rows.findings).collect()
}

/// How much longer a job takes than on as many processors of the first quartile, in per cent.
fn slowdown(draw: &Draw, case: &Case) -> f64 {
    let is_first = |other: &&Case| {
        (other.mix, other.size, other.watts) == (0, case.size, case.watts)
            && other.code == case.code
    };
    let first = draw.cases.iter().find(is_first).map_or(f64::NAN, |first| first.even);
    100.0 * (first / case.even - 1.0)
}

fn slowdowns(place: &Place<'_>) -> Vec<Rows> {
    let of_size = |size: usize| {
        let title = "Figures 11 and 12: 51 W each, longer than on Q1 by";
        let mut rows = place.rows(title, size);
        let is_meant =
            |case: &Case| case.size == size && case.watts == PUBLISHED_WATTS && case.mix > 0;
        let sample = |is_one: &dyn Fn(&Case) -> bool, together: fn(&Sample) -> f64| -> Sample {
            let of = |draw: &&Draw| {
                let cases = draw.cases.iter().filter(|case| is_meant(case) && is_one(case));
                together(&cases.map(|case| slowdown(draw, case)).collect())
            };
            place.draws.iter().map(of).collect()
        };
        let [least, most] = SLOWDOWN.map(Published::Number);
        rows.add("least of all codes and mixes", least, &sample(&|_| true, Sample::least), "%");
        rows.add("most of all codes and mixes", most, &sample(&|_| true, Sample::largest), "%");
        for code in place.codes() {
            for (mix, named) in MIXES.iter().enumerate().skip(1) {
                let is_one = |case: &Case| case.code == code && case.mix == mix;
                let sample = sample(&is_one, Sample::mean);
                rows.add(format!("{code} on {}", named.name), Published::Nothing, &sample, "%");
            }
        }
        rows
    };
    SIZES[..3].iter().map(|size| of_size(*size)).collect()
}

fn gains(place: &Place<'_>) -> Vec<Rows> {
    let of_size = |size: usize| {
        let mut rows = place.rows("Figures 13 and 14: tuned against equal parts, 51 W each", size);
        let is_meant = |case: &Case| case.size == size && case.watts == PUBLISHED_WATTS;
        let is_scaled = |case: &Case| is_meant(case) && MIXES[case.mix].name == SCALED;
        let mut add =
            |what: &str, published, sample: &Sample| rows.add(what, published, sample, "%");
        let freed = |case: &Case| case.freed;
        if size == SIZES[0] {
            let most = place.sample(is_meant, Case::reduction, Sample::largest);
            add("takes less time: most", Published::Number(REDUCTION_ON_16), &most);
            let most = place.sample(is_meant, freed, Sample::largest);
            add("processors freed: most", Published::Number(FREED_ON_16), &most);
        }
        let least = place.sample(is_scaled, Case::reduction, Sample::least);
        add("takes less time on Q1+Q4: least", Published::Change(REDUCTION[0]), &least);
        let most = place.sample(is_scaled, Case::reduction, Sample::largest);
        add("takes less time on Q1+Q4: most", Published::Number(REDUCTION[1]), &most);
        let faster = place.sample(is_scaled, Case::speedup, Sample::largest);
        add("is faster on Q1+Q4: most", Published::Nothing, &faster);
        let most = place.sample(is_scaled, freed, Sample::largest);
        add("processors freed on Q1+Q4: most", Published::Number(FREED), &most);
        let unused = place.sample(is_meant, |case| case.unused, Sample::largest);
        add("power left unused: most", Published::Below(UNUSED), &unused);
        for code in place.codes() {
            for (mix, named) in MIXES.iter().enumerate() {
                let is_one = |case: &Case| is_meant(case) && case.code == code && case.mix == mix;
                let time = place.sample(is_one, Case::reduction, Sample::mean);
                let name = format!("{code} on {}", named.name);
                add(&format!("{name}: takes less time"), Published::Nothing, &time);
                let freed = place.sample(is_one, freed, Sample::mean);
                add(&format!("{name}: processors freed"), Published::Nothing, &freed);
            }
        }
        rows
    };
    SIZES.iter().map(|size| of_size(*size)).collect()
}

fn powers(place: &Place<'_>) -> Vec<Rows> {
    let of_size = |size: usize| {
        let mut rows = place.rows("More power: tuned against equal parts", size);
        for watts in WATTS {
            let is_meant = |case: &Case| case.size == size && case.watts == watts;
            let time = place.sample(is_meant, Case::reduction, Sample::mean);
            let name = format!("{watts} W each");
            rows.add(format!("{name}: takes less time, mean"), Published::Nothing, &time, "%");
            let freed = place.sample(is_meant, |case| case.freed, Sample::mean);
            rows.add(format!("{name}: processors freed, mean"), Published::Nothing, &freed, "%");
        }
        rows
    };
    SIZES.iter().map(|size| of_size(*size)).collect()
}

fn greedies(place: &Place<'_>) -> Vec<Rows> {
    let of_size = |size: usize| {
        let title = "The paper's greedy (portions of 1 W) and hulls, jobs slower than equal parts";
        let mut rows = place.rows(title, size);
        let is_meant = |case: &Case| case.size == size;
        let slower = |is: bool| if is { 100.0 } else { 0.0 };
        let mut add = |what: &str, figure: &dyn Fn(&Case) -> f64| {
            let sample = place.sample(is_meant, figure, Sample::mean);
            rows.add(what, Published::Nothing, &sample, "%");
        };
        add("greedy, no noise", &|case| slower(case.plain < case.even));
        add("greedy, 1 % noise", &|case| slower(case.noisy[2] < case.noisy[0]));
        add("tuned slower, no noise", &|case| slower(case.tuned < case.even));
        add("tuned slower, 1 % noise", &|case| slower(case.noisy[1] < case.noisy[0]));
        add("greedy behind hulls, 1 % noise", &|case| {
            100.0 * (1.0 - case.noisy[2] / case.noisy[1])
        });
        rows
    };
    SIZES.iter().map(|size| of_size(*size)).collect()
}
