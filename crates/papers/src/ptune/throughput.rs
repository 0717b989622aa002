//! The paper's results for many jobs beside ours.

use super::many_jobs::{Field, KILOWATTS, PROCESSORS, RULES, SCHEMES, Scheme, SchemeFigures};
use crate::Finding;
use crate::sample::{Published, Rows, Sample};
use busbar_core::policy::three_queues::Rule;
use busbar_core::policy::uniform::UniformCap;
use busbar_core::variation::catalyst::Shape;

/// The budget of the figure in which jobs are counted, in kilowatts.
const COUNTED_KILOWATTS: u32 = 28;
/// Jobs that run at once there: under PPartition, and with the machine's power in equal parts.
const COUNTED: [f64; 2] = [58.0, 36.0];
/// How much less uniform capping gets done, over all budgets and caps: least and most.
const LESS: [f64; 2] = [5.0, 35.0];

const OURS: Scheme = SCHEMES[0];
const IN_EQUAL_PARTS: Scheme = Scheme::Uniform(UniformCap::Share);

/// The machines of one shape under one rule.
struct Place<'f> {
    shape: Shape,
    rule: Rule,
    fields: Vec<&'f Field>,
}

impl Place<'_> {
    fn rows(&self, experiment: &'static str, kilowatts: u32) -> Rows {
        Rows::new(experiment, format!("{}, {}, {kilowatts} kW", self.shape, self.rule))
    }

    /// A figure of each machine, from what two schemes make of it under one budget.
    fn compared(
        &self,
        schemes: [Scheme; 2],
        kilowatts: u32,
        figure: impl Fn(&SchemeFigures, &SchemeFigures) -> f64,
    ) -> Sample {
        let of = |field: &&Field| {
            let [one, other] = schemes.map(|scheme| field.of(scheme, self.rule, kilowatts));
            Some(figure(one?, other?))
        };
        self.fields.iter().filter_map(of).collect()
    }

    fn sample(
        &self,
        scheme: Scheme,
        kilowatts: u32,
        figure: impl Fn(&SchemeFigures) -> f64,
    ) -> Sample {
        self.compared([scheme; 2], kilowatts, |outcome, _| figure(outcome))
    }
}

/// The rows of all experiments, each with both shapes and both rules.
pub(super) fn findings(fields: &[Field]) -> Vec<Finding> {
    let place = |shape, rule| {
        let fields = fields.iter().filter(|field| field.shape == shape).collect();
        Place { shape, rule, fields }
    };
    let places: Vec<Place<'_>> =
        Shape::ALL.into_iter().flat_map(|shape| RULES.map(|rule| place(shape, rule))).collect();
    let experiments = [counts, stops, throughputs, single_jobs, whole_queues];
    let rows = experiments.iter().flat_map(|experiment| places.iter().flat_map(experiment));
    rows.flat_map(|rows| rows.findings).collect()
}

fn counts(place: &Place<'_>) -> Vec<Rows> {
    let under = |kilowatts: u32| {
        let mut rows = place.rows("Figures 15 and 16: jobs that run at once", kilowatts);
        for scheme in SCHEMES {
            let published = match scheme {
                OURS if kilowatts == COUNTED_KILOWATTS => Published::Number(COUNTED[0]),
                IN_EQUAL_PARTS if kilowatts == COUNTED_KILOWATTS => Published::Number(COUNTED[1]),
                _ => Published::Nothing,
            };
            let jobs = place.sample(scheme, kilowatts, SchemeFigures::jobs);
            rows.add(scheme.name(), published, &jobs, "jobs");
        }
        for scheme in SCHEMES.iter().filter(|scheme| !matches!(scheme, Scheme::Uniform(_))) {
            let share = |outcome: &SchemeFigures| {
                100.0 * f64::from(outcome.granted) / f64::from(outcome.asked.max(1))
            };
            let granted = place.sample(*scheme, kilowatts, share);
            let name = format!("{}: processors had, of those asked for", scheme.name());
            rows.add(name, Published::Nothing, &granted, "%");
        }
        rows
    };
    KILOWATTS.map(under).into()
}

/// Why the first job did not fit after which nobody else starts.
fn stops(place: &Place<'_>) -> Vec<Rows> {
    if place.rule != Rule::Stop {
        return Vec::new();
    }
    let under = |kilowatts: u32| {
        let title = "Not in the paper: the job that stops the queue";
        let mut rows = place.rows(title, kilowatts);
        for scheme in [OURS, Scheme::Busbar] {
            let free = |outcome: &SchemeFigures| PROCESSORS - outcome.granted;
            let lacks_power = |outcome: &SchemeFigures| {
                let is_it = outcome.refused.is_some_and(|asked| asked <= free(outcome));
                if is_it { 100.0 } else { 0.0 }
            };
            let name = scheme.name();
            let mut add = |what: &str, unit, figure: &dyn Fn(&SchemeFigures) -> f64| {
                let sample = place.sample(scheme, kilowatts, figure);
                rows.add(format!("{name}: {what}"), Published::Nothing, &sample, unit);
            };
            add("enough processors are free, power is short", "%", &lacks_power);
            add("processors it asks for", "processors", &|outcome| {
                outcome.refused.map_or(0.0, f64::from)
            });
            add("processors free", "processors", &|outcome| f64::from(free(outcome)));
        }
        rows
    };
    KILOWATTS.map(under).into()
}

fn throughputs(place: &Place<'_>) -> Vec<Rows> {
    let under = |kilowatts: u32| {
        let title = "Figure 17: instructions per second of all jobs, against PPartition";
        let mut rows = place.rows(title, kilowatts);
        for scheme in &SCHEMES[1..] {
            let schemes = [OURS, *scheme];
            let less = place.compared(schemes, kilowatts, |ours, theirs| {
                100.0 * (1.0 - theirs.throughput() / ours.throughput())
            });
            let more = place.compared(schemes, kilowatts, |ours, theirs| {
                100.0 * (ours.throughput() / theirs.throughput() - 1.0)
            });
            let published = match scheme {
                Scheme::Uniform(_) => Published::Rise,
                Scheme::Ppartition(_) | Scheme::Half | Scheme::Busbar | Scheme::Own(..) => {
                    Published::Nothing
                }
            };
            rows.add(format!("{}: less by", scheme.name()), published, &less, "%");
            rows.add(format!("{}: ours more by", scheme.name()), Published::Nothing, &more, "%");
        }
        rows
    };
    let mut all: Vec<Rows> = KILOWATTS.map(under).into();
    all.push(range(place));
    all
}

/// The least and the most over all budgets and caps.
fn range(place: &Place<'_>) -> Rows {
    let title = "Figure 17: instructions per second of all jobs, against PPartition";
    let mut rows = Rows::new(title, format!("{}, {}, all", place.shape, place.rule));
    let less = |field: &&Field| -> Sample {
        let ours = |kilowatts| field.of(OURS, place.rule, kilowatts);
        let pairs = KILOWATTS.iter().flat_map(|kilowatts| {
            let is_uniform = |scheme: &Scheme| matches!(scheme, Scheme::Uniform(_));
            SCHEMES.into_iter().filter(is_uniform).filter_map(|scheme| {
                Some((ours(*kilowatts)?, field.of(scheme, place.rule, *kilowatts)?))
            })
        });
        pairs
            .map(|(ours, theirs)| 100.0 * (1.0 - theirs.throughput() / ours.throughput()))
            .collect()
    };
    let least: Sample = place.fields.iter().map(|field| less(field).least()).collect();
    let most: Sample = place.fields.iter().map(|field| less(field).largest()).collect();
    rows.add("uniform: less by, least", Published::Number(LESS[0]), &least, "%");
    rows.add("uniform: less by, most", Published::Number(LESS[1]), &most, "%");
    rows
}

fn single_jobs(place: &Place<'_>) -> Vec<Rows> {
    let under = |kilowatts: u32| {
        let title = "Figures 16 and 18: single jobs under PPartition and in equal parts";
        let mut rows = place.rows(title, kilowatts);
        let both =
            |ours: &SchemeFigures, theirs: &SchemeFigures, figure: &dyn Fn(f64) -> f64| -> f64 {
                let ratio = |(job, speed): (_, &f64)| Some(figure(ours.speeds.get(job)? / speed));
                theirs.speeds.iter().filter_map(ratio).collect::<Sample>().mean()
            };
        let schemes = [OURS, IN_EQUAL_PARTS];
        let as_fast = place.compared(schemes, kilowatts, |ours, theirs| {
            both(ours, theirs, &|ratio| if ratio >= 1.0 { 100.0 } else { 0.0 })
        });
        rows.add("of jobs in both, at least as fast", Published::Nothing, &as_fast, "%");
        let change = place.compared(schemes, kilowatts, |ours, theirs| {
            both(ours, theirs, &|ratio| 100.0 * (ratio - 1.0))
        });
        rows.add("of jobs in both, faster on average by", Published::Nothing, &change, "%");
        let slowest = place.compared(schemes, kilowatts, |ours, theirs| {
            let ratios = theirs
                .speeds
                .iter()
                .filter_map(|(job, speed)| Some(100.0 * (ours.speeds.get(job)? / speed - 1.0)));
            ratios.collect::<Sample>().least()
        });
        rows.add("of jobs in both, the worst off: faster by", Published::Nothing, &slowest, "%");
        rows
    };
    KILOWATTS.map(under).into()
}

fn whole_queues(place: &Place<'_>) -> Vec<Rows> {
    let under = |kilowatts: u32| {
        let title = "Not in the paper: the whole queue takes longer than under PPartition by";
        let mut rows = place.rows(title, kilowatts);
        for scheme in &SCHEMES[1..] {
            let longer = place.compared([OURS, *scheme], kilowatts, |ours, theirs| {
                100.0 * (theirs.makespan / ours.makespan - 1.0)
            });
            rows.add(scheme.name(), Published::Nothing, &longer, "%");
        }
        rows
    };
    KILOWATTS.map(under).into()
}
