//! Arrivals: when jobs are submitted.
//!
//! The logarithm of a gap between submissions is a gamma variable; a gap of more than e¹³ seconds
//! is drawn again. How busy users are follows another gamma variable over the half hours of the
//! day. All gaps are scaled by one factor, so that the last submission comes when the load is the
//! one asked for, and then laid over the day: long at night, short in the afternoon.

use rand_distr::{Distribution, Gamma};
use rand_pcg::Pcg64Dxsm;
use statrs::function::gamma::gamma_lr;

use super::{JobKind, Lublin, Stream, gamma};
use busbar_core::job::Job;
use busbar_core::units::{Instant, Span};

/// The published figures for one kind of jobs.
struct Figures {
    /// Shape and scale of the gaps' logarithm.
    gap: (f64, f64),
    /// The factor on the gaps' shape that leads from rush hours to the whole day (ARAR).
    gap_correction: f64,
    /// Shape and scale of the day's submissions over its half hours.
    day: (f64, f64),
}

impl Figures {
    fn of(kind: JobKind) -> &'static Figures {
        match kind {
            JobKind::Batch => {
                &Figures { gap: (6.0415, 0.8531), gap_correction: 1.0519, day: (6.1271, 5.2740) }
            }
            JobKind::Interactive => {
                &Figures { gap: (6.5510, 0.6621), gap_correction: 0.9797, day: (8.9186, 3.6680) }
            }
            JobKind::Typeless => {
                &Figures { gap: (10.2303, 0.4871), gap_correction: 1.0225, day: (8.1737, 3.9631) }
            }
        }
    }
}

/// Submits the jobs over the time in which they offer the load asked for.
pub(super) fn submit(parameters: &Lublin, jobs: &mut [Job], run_times: &[Span]) {
    let work: u128 = jobs
        .iter()
        .zip(run_times)
        .map(|(job, run_time)| u128::from(job.nodes) * u128::from(run_time.millis()))
        .sum();
    let seconds = work as f64 / 1000.0 / (f64::from(parameters.processors) * parameters.load);
    let seconds = seconds.round().max(1.0);

    let day = DailyCycle::new(parameters.kind);
    let Some((_, later)) = jobs.split_first_mut() else { return };
    // All gaps must be known before the first can be scaled. Drawing them twice spares
    // keeping them.
    let unscaled: f64 = Gaps::new(parameters).take(later.len()).sum();
    let scale = day.activity_until(seconds) / unscaled;
    let mut activity = 0.0;
    for (job, gap) in later.iter_mut().zip(Gaps::new(parameters)) {
        activity += gap;
        let second = day.second_of(activity * scale).round() as u64;
        job.submit = Instant::from_millis(second * 1000);
    }
}

/// The gaps between submissions, counted in half hours of average activity: without end.
struct Gaps {
    numbers: Pcg64Dxsm,
    logarithm: Gamma<f64>,
}

impl Gaps {
    /// The longest gap's logarithm; longer ones are drawn again.
    const LONGEST: f64 = 13.0;

    fn new(parameters: &Lublin) -> Self {
        let figures = Figures::of(parameters.kind);
        let (shape, scale) = figures.gap;
        Gaps {
            numbers: Stream::Gaps.numbers(parameters.seed),
            logarithm: gamma((shape * figures.gap_correction, scale)),
        }
    }
}

impl Iterator for Gaps {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        loop {
            let logarithm = self.logarithm.sample(&mut self.numbers);
            if logarithm <= Self::LONGEST {
                return Some(libm::exp(logarithm) / DailyCycle::HALF_HOUR);
            }
        }
    }
}

/// How busy users are over the day, from midnight on.
///
/// Time is measured in activity: a half hour is worth more of it when users are busy, and 48 over
/// a whole day. Gaps that are laid over activity are short in the afternoon and long at night.
struct DailyCycle {
    /// The activity of the day before each half hour, and of the whole day.
    before: [f64; Self::HALF_HOURS + 1],
}

impl DailyCycle {
    const HALF_HOURS: usize = 48;
    const HALF_HOUR: f64 = 1800.0;
    const DAY: f64 = Self::HALF_HOUR * Self::HALF_HOURS as f64;
    /// The model counts half hours from 1, and starts its day when fewest jobs are submitted.
    const FIRST: usize = 11;

    fn new(kind: JobKind) -> Self {
        let (shape, scale) = Figures::of(kind).day;
        let mut weights = [0.0; Self::HALF_HOURS];
        for half_hour in Self::FIRST..Self::FIRST + Self::HALF_HOURS {
            let middle = half_hour as f64;
            weights[(half_hour - 1) % Self::HALF_HOURS] =
                gamma_lr(shape, (middle + 0.5) / scale) - gamma_lr(shape, (middle - 0.5) / scale);
        }
        let mean = weights.iter().sum::<f64>() / Self::HALF_HOURS as f64;
        let mut before = [0.0; Self::HALF_HOURS + 1];
        for (index, weight) in weights.into_iter().enumerate() {
            before[index + 1] = before[index] + weight / mean;
        }
        DailyCycle { before }
    }

    /// How much activity there is in a whole day.
    fn whole_day(&self) -> f64 {
        self.before[Self::HALF_HOURS]
    }

    /// How much activity there is in the first `seconds` of the clock.
    fn activity_until(&self, seconds: f64) -> f64 {
        let days = (seconds / Self::DAY).floor();
        let half_hours = (seconds - days * Self::DAY) / Self::HALF_HOUR;
        let index = (half_hours as usize).min(Self::HALF_HOURS - 1);
        let weight = self.before[index + 1] - self.before[index];
        days * self.whole_day() + self.before[index] + (half_hours - index as f64) * weight
    }

    /// The second of the clock by which there has been this much activity.
    fn second_of(&self, activity: f64) -> f64 {
        let days = (activity / self.whole_day()).floor();
        let rest = activity - days * self.whole_day();
        let index = self.before[1..Self::HALF_HOURS].partition_point(|&before| before <= rest);
        let weight = self.before[index + 1] - self.before[index];
        days * Self::DAY + (index as f64 + (rest - self.before[index]) / weight) * Self::HALF_HOUR
    }
}

#[cfg(test)]
mod tests {
    use statrs::function::gamma::ln_gamma;

    use super::super::tests::{KINDS, tolerance, truncated_gamma};
    use super::*;

    /// The share of a day's submissions in each half hour from midnight on, by integrating the
    /// gamma density.
    fn integrated_weights(kind: JobKind) -> [f64; 48] {
        let (shape, scale) = Figures::of(kind).day;
        let density = |x: f64| {
            ((shape - 1.0) * x.ln() - x / scale - ln_gamma(shape) - shape * scale.ln()).exp()
        };
        let mut weights = [0.0; 48];
        for i in 11..=58 {
            let steps = 200;
            weights[(i - 1) % 48] = (0..steps)
                .map(|step| density(i as f64 - 0.5 + (f64::from(step) + 0.5) / f64::from(steps)))
                .sum::<f64>();
        }
        let total: f64 = weights.iter().sum();
        weights.map(|weight| weight / total)
    }

    /// The share of submissions in each half hour of the day.
    fn submissions_by_half_hour(parameters: Lublin) -> [f64; 48] {
        let workload = parameters.generate().unwrap();
        let mut counts = [0.0; 48];
        for job in workload.jobs() {
            counts[(job.submit.millis() / 1_800_000 % 48) as usize] += 1.0;
        }
        counts.map(|count| count / f64::from(parameters.jobs))
    }

    fn busiest(shares: &[f64; 48]) -> usize {
        (0..48).max_by(|&a, &b| shares[a].total_cmp(&shares[b])).unwrap()
    }

    #[test]
    fn submissions_follow_the_hours_of_the_day() {
        for kind in KINDS {
            let weights = integrated_weights(kind);
            let peak = busiest(&weights);
            assert!((9 * 2..18 * 2).contains(&peak), "{kind}: half hour {peak}");
            // At the least load submissions are days apart, and so each falls into its half hour
            // regardless of the last: the error of a share is a plain sampling error.
            let jobs = 50_000;
            let drawn =
                submissions_by_half_hour(Lublin { jobs, load: 0.001, kind, ..Lublin::default() });
            for (half_hour, (share, weight)) in drawn.into_iter().zip(weights).enumerate() {
                let tolerance = 1.5 * tolerance(weight, jobs);
                assert!(
                    (share - weight).abs() < tolerance,
                    "{kind} {half_hour}: {share}, {weight}"
                );
            }
            assert!(busiest(&drawn).abs_diff(peak) <= 3, "{kind}: {}", busiest(&drawn));
        }
    }

    #[test]
    fn the_day_keeps_24_hours_at_every_load() {
        // Submissions come in bursts at these loads, so only the working hours as a whole are
        // steady enough to compare. Were the day stretched or squeezed with the gaps, they would
        // have as many submissions as any other nine hours: 37 %.
        let working_hours = |shares: [f64; 48]| shares[18..36].iter().sum::<f64>();
        let expected = working_hours(integrated_weights(JobKind::Typeless));
        assert!(expected > 0.55, "{expected}");
        for load in [0.1, 0.5, 0.85, 1.5] {
            let drawn = working_hours(submissions_by_half_hour(Lublin {
                jobs: 50_000,
                load,
                ..Lublin::default()
            }));
            assert!((drawn - expected).abs() < 0.05, "load {load}: {drawn}, {expected}");
        }
    }

    #[test]
    fn the_daily_cycle_is_a_walk_over_the_half_hours() {
        // The walk as it is published: spend each half hour's weight, then the fractional rest.
        fn walk(weights: &[f64; 48], mut points: f64) -> f64 {
            let mut seconds = 0.0;
            let mut half_hour = 0;
            while points > weights[half_hour] {
                points -= weights[half_hour];
                half_hour = (half_hour + 1) % 48;
                seconds += 1800.0;
            }
            seconds + 1800.0 * points / weights[half_hour]
        }
        for kind in KINDS {
            let weights = integrated_weights(kind).map(|share| share * 48.0);
            let day = DailyCycle::new(kind);
            for step in 1..1000 {
                let points = f64::from(step) * 0.37;
                let second = day.second_of(points);
                assert!((second - walk(&weights, points)).abs() < 0.5, "{kind} {points}");
                assert!((day.activity_until(second) - points).abs() < 1e-9, "{kind} {points}");
            }
            assert!((day.second_of(48.0) - 86_400.0).abs() < 1e-6);
        }
    }

    #[test]
    fn gaps_have_the_mean_logarithm_of_their_gamma() {
        for kind in KINDS {
            let figures = Figures::of(kind);
            let (shape, scale) = figures.gap;
            let (mean, weight) = truncated_gamma((shape * figures.gap_correction, scale), 13.0);
            let gaps = 50_000;
            let drawn: f64 = Gaps::new(&Lublin { kind, ..Lublin::default() })
                .take(gaps)
                .map(|gap| (gap * 1800.0).ln())
                .sum();
            let drawn = drawn / gaps as f64;
            // A standard deviation is at most 2.2.
            let tolerance = 4.0 * 2.2 / (gaps as f64).sqrt();
            assert!((drawn - mean / weight).abs() < tolerance, "{kind}: {drawn}, {mean}");
        }
    }

    #[test]
    fn the_load_is_the_one_asked_for() {
        for processors in [1, 64, 1000, 1024, 65_536] {
            for load in [0.05, 0.5, 0.85, 1.0, 1.5, 10.0] {
                let parameters = Lublin { jobs: 3_000, processors, load, ..Lublin::default() };
                let workload = parameters.generate().unwrap();
                let offered = workload.offered_load(processors).unwrap();
                // Within a hundredth as promised; rounding to a second is far less than that.
                assert!((offered / load - 1.0).abs() < 1e-4, "{parameters}: {offered}");
                assert!(workload.jobs().is_sorted_by_key(|job| job.submit), "{parameters}");
                assert_eq!(workload.jobs()[0].submit, Instant::ZERO);
            }
        }
    }

    #[test]
    fn few_jobs_are_no_trouble() {
        for jobs in 1..20 {
            for load in [0.001, 0.85, 1000.0] {
                let workload = Lublin { jobs, load, ..Lublin::default() }.generate().unwrap();
                assert_eq!(workload.jobs().len(), jobs as usize);
                assert_eq!(workload.offered_load(1024).is_some(), jobs > 1);
            }
        }
    }
}
