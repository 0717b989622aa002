//! Run times: how long a job really takes.
//!
//! A run time's logarithm is a gamma variable, of a shorter or of a longer kind. The share of
//! shorter ones falls in a straight line with the job's size. What would run longer than e¹²
//! seconds, just over 45 hours, is drawn again.

use rand::RngExt;
use rand_distr::{Distribution, Gamma};
use rand_pcg::Pcg64Dxsm;

use super::{JobKind, Lublin, Stream, gamma};
use busbar_core::units::Span;

/// The published figures for one kind of jobs.
struct Figures {
    /// Shape and scale of the shorter run times' logarithm.
    shorter: (f64, f64),
    /// Shape and scale of the longer run times' logarithm.
    longer: (f64, f64),
    /// The share of shorter run times: slope over the size, and offset.
    shorter_share: (f64, f64),
}

impl Figures {
    fn of(kind: JobKind) -> &'static Figures {
        match kind {
            JobKind::Batch => &Figures {
                shorter: (6.57, 0.823),
                longer: (639.1, 0.0156),
                shorter_share: (-0.003, 0.6986),
            },
            JobKind::Interactive => &Figures {
                shorter: (3.8351, 0.6605),
                longer: (7.073, 0.6856),
                shorter_share: (-0.0118, 0.9156),
            },
            JobKind::Typeless => &Figures {
                shorter: (4.2, 0.94),
                longer: (312.0, 0.03),
                shorter_share: (-0.0054, 0.78),
            },
        }
    }
}

/// Draws run times.
pub(super) struct RunTimeModel {
    numbers: Pcg64Dxsm,
    shorter: Gamma<f64>,
    longer: Gamma<f64>,
    slope: f64,
    offset: f64,
}

impl RunTimeModel {
    /// The longest run time's logarithm; longer ones are drawn again.
    const LONGEST: f64 = 12.0;

    pub(super) fn new(parameters: &Lublin) -> Self {
        let figures = Figures::of(parameters.kind);
        let (slope, offset) = figures.shorter_share;
        RunTimeModel {
            numbers: Stream::RunTimes.numbers(parameters.seed),
            shorter: gamma(figures.shorter),
            longer: gamma(figures.longer),
            slope,
            offset,
        }
    }

    /// How long the next job runs, which has this size.
    pub(super) fn draw(&mut self, nodes: u32) -> Span {
        Span::from_secs((libm::exp(self.draw_logarithm(nodes)).round() as u32).max(1))
    }

    fn draw_logarithm(&mut self, nodes: u32) -> f64 {
        let shorter_share = self.slope * f64::from(nodes) + self.offset;
        loop {
            // A share beyond 0 or 1 decides like 0 or 1.
            let shorter = self.numbers.random::<f64>() < shorter_share;
            let component = if shorter { &self.shorter } else { &self.longer };
            let logarithm = component.sample(&mut self.numbers);
            if logarithm <= Self::LONGEST {
                return logarithm;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{KINDS, truncated_gamma};
    use super::*;

    /// The mean logarithm of the run time of a job of this size.
    fn mean_logarithm(kind: JobKind, nodes: u32) -> f64 {
        let figures = Figures::of(kind);
        let (slope, offset) = figures.shorter_share;
        let share = (slope * f64::from(nodes) + offset).clamp(0.0, 1.0);
        let (shorter, shorter_weight) = truncated_gamma(figures.shorter, 12.0);
        let (longer, longer_weight) = truncated_gamma(figures.longer, 12.0);
        (share * shorter + (1.0 - share) * longer)
            / (share * shorter_weight + (1.0 - share) * longer_weight)
    }

    #[test]
    fn run_times_have_the_mean_of_the_hyper_gamma() {
        for kind in KINDS {
            for nodes in [1, 16, 64, 128, 256, 1024] {
                let mut model = RunTimeModel::new(&Lublin { kind, ..Lublin::default() });
                let jobs = 20_000;
                let drawn: Vec<f64> = (0..jobs).map(|_| model.draw_logarithm(nodes)).collect();
                let mean = drawn.iter().sum::<f64>() / f64::from(jobs);
                let variance =
                    drawn.iter().map(|h| (h - mean).powi(2)).sum::<f64>() / f64::from(jobs);
                let expected = mean_logarithm(kind, nodes);
                let tolerance = 4.0 * (variance / f64::from(jobs)).sqrt();
                assert!((mean - expected).abs() < tolerance, "{kind} {nodes}: {mean}, {expected}");
            }
        }
    }

    #[test]
    fn mean_logarithms_worked_out_by_hand() {
        // share of shorter · a1·b1 + share of longer · a2·b2, leaving out that the longest are
        // drawn again, which takes less than a hundredth off these.
        let by_hand = [
            (JobKind::Typeless, 1, 0.7746 * 3.948 + 0.2254 * 9.36),
            (JobKind::Typeless, 1024, 9.36),
            (JobKind::Batch, 100, 0.3986 * 5.40711 + 0.6014 * 9.96996),
            (JobKind::Interactive, 1, 0.9038 * 2.533084 + 0.0962 * 4.849249),
        ];
        for (kind, nodes, expected) in by_hand {
            let mean = mean_logarithm(kind, nodes);
            assert!((expected - 0.02..=expected).contains(&mean), "{kind} {nodes}: {mean}");
        }
    }

    #[test]
    fn a_workloads_run_times_follow_from_its_sizes() {
        let workload = Lublin { jobs: 50_000, ..Lublin::default() }.generate().unwrap();
        for nodes in [1, 2, 8, 256] {
            let logarithms: Vec<f64> = (workload.jobs().iter().zip(workload.run_times()))
                .filter(|(job, _)| job.nodes == nodes)
                .map(|(_, run_time)| run_time.secs_f64().ln())
                .collect();
            let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
            let expected = mean_logarithm(JobKind::Typeless, nodes);
            // A logarithm's standard deviation is about 3, and whole seconds move the shortest.
            let tolerance = 12.0 / (logarithms.len() as f64).sqrt() + 0.01;
            assert!((mean - expected).abs() < tolerance, "{nodes}: {mean}, {expected}");
        }
    }

    #[test]
    fn run_times_are_whole_seconds_from_one_to_e_to_the_twelfth() {
        for kind in KINDS {
            let workload = Lublin { jobs: 50_000, kind, ..Lublin::default() }.generate().unwrap();
            for run_time in workload.run_times() {
                assert!((1_000..=162_755_000).contains(&run_time.millis()), "{run_time}");
                assert_eq!(run_time.millis() % 1000, 0);
            }
        }
    }
}
