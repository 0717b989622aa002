//! Sizes: how many processors a job asks for.
//!
//! A share of the jobs is serial. A parallel job's logarithm to base 2 is uniform over one of two
//! ranges that meet at a border, for most jobs the lower one. For some of them the logarithm is
//! rounded, which makes the size a power of two; for the others the size itself is.

use rand::RngExt;
use rand_pcg::Pcg64Dxsm;

use super::{JobKind, Lublin, Sizes, Stream};

/// How long the upper range of sizes is, in logarithms to base 2: the border is this far below the
/// machine. Published: 1.5 to 3.5.
const UPPER_RANGE: f64 = 2.5;

/// The published figures for one kind of jobs.
struct Figures {
    /// The share of serial jobs.
    serial: f64,
    /// The share of parallel jobs rounded to a power of two, of all jobs.
    power_of_two: f64,
    /// The smallest parallel job, as a logarithm to base 2.
    smallest: f64,
    /// The share of parallel jobs that are in the lower range of sizes.
    lower_sizes: f64,
}

impl Figures {
    fn of(kind: JobKind) -> &'static Figures {
        match kind {
            JobKind::Batch => {
                &Figures { serial: 0.2927, power_of_two: 0.6686, smallest: 1.2, lower_sizes: 0.875 }
            }
            JobKind::Interactive => {
                &Figures { serial: 0.1541, power_of_two: 0.625, smallest: 1.0, lower_sizes: 0.705 }
            }
            JobKind::Typeless => {
                &Figures { serial: 0.244, power_of_two: 0.576, smallest: 0.8, lower_sizes: 0.86 }
            }
        }
    }
}

/// Draws sizes.
pub(super) struct SizeModel {
    numbers: Pcg64Dxsm,
    processors: u32,
    serial: f64,
    /// Serial jobs and powers of two together.
    serial_or_power_of_two: f64,
    /// Logarithms to base 2 of the smallest size, of the border between the two ranges and of the
    /// largest size.
    smallest: f64,
    border: f64,
    largest: f64,
    lower_sizes: f64,
}

impl SizeModel {
    pub(super) fn new(parameters: &Lublin) -> Self {
        let figures = Figures::of(parameters.kind);
        let parallel = 1.0 - figures.serial;
        let (serial, power_of_two) = match (parameters.processors, parameters.sizes) {
            (1, _) => (1.0, 0.0),
            (_, Sizes::Mixed) => (figures.serial, figures.power_of_two),
            (_, Sizes::PowersOfTwo) => (figures.serial, parallel),
            (_, Sizes::Any) => (figures.serial, 0.0),
        };
        let largest = libm::log2(f64::from(parameters.processors));
        let smallest = figures.smallest.min(largest);
        let border = largest - UPPER_RANGE;
        let (border, lower_sizes) =
            if border > smallest { (border, figures.lower_sizes) } else { (smallest, 0.0) };
        SizeModel {
            numbers: Stream::Sizes.numbers(parameters.seed),
            processors: parameters.processors,
            serial,
            serial_or_power_of_two: serial + power_of_two,
            smallest,
            border,
            largest,
            lower_sizes,
        }
    }

    /// The next job's size. Every size takes three numbers, so that a job keeps its luck when a
    /// parameter changes.
    pub(super) fn draw(&mut self) -> u32 {
        let class: f64 = self.numbers.random();
        let range: f64 = self.numbers.random();
        let place: f64 = self.numbers.random();
        if class < self.serial {
            return 1;
        }
        let (low, high) = if range < self.lower_sizes {
            (self.smallest, self.border)
        } else {
            (self.border, self.largest)
        };
        let logarithm = low + place * (high - low);
        if class < self.serial_or_power_of_two {
            1 << (logarithm.round() as u32).min(self.processors.ilog2())
        } else {
            (libm::exp2(logarithm).round() as u32).min(self.processors)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{KINDS, SIZES, tolerance};
    use super::*;
    use busbar_core::workload::Workload;

    fn share(workload: &Workload, counts: impl Fn(u32) -> bool) -> f64 {
        let hits = workload.jobs().iter().filter(|job| counts(job.nodes)).count();
        hits as f64 / workload.jobs().len() as f64
    }

    /// How likely a size that is not rounded to a power of two is one by chance, on 1024
    /// processors.
    fn power_of_two_by_chance(kind: JobKind) -> f64 {
        let figures = Figures::of(kind);
        let stage = |low: f64, high: f64| {
            let overlap = |k: i32| {
                let (from, to) = ((2f64.powi(k) - 0.5).log2(), (2f64.powi(k) + 0.5).log2());
                (to.min(high) - from.max(low)).max(0.0)
            };
            (1..=10).map(overlap).sum::<f64>() / (high - low)
        };
        let lower = figures.lower_sizes;
        lower * stage(figures.smallest, 7.5) + (1.0 - lower) * stage(7.5, 10.0)
    }

    #[test]
    fn shares_of_serial_jobs_and_powers_of_two_are_the_published_ones() {
        // The published table, again.
        let published = [
            (JobKind::Batch, 0.2927, 0.6686),
            (JobKind::Interactive, 0.1541, 0.625),
            (JobKind::Typeless, 0.244, 0.576),
        ];
        for (kind, serial, power_of_two) in published {
            let jobs = 20_000;
            let by_chance = power_of_two_by_chance(kind) * (1.0 - serial - power_of_two);
            let expected = power_of_two + by_chance;
            let workload = Lublin { jobs, kind, ..Lublin::default() }.generate().unwrap();
            let drawn = share(&workload, |nodes| nodes == 1);
            assert!((drawn - serial).abs() < tolerance(serial, jobs), "{kind}: serial {drawn}");
            let drawn = share(&workload, |nodes| nodes > 1 && nodes.is_power_of_two());
            assert!((drawn - expected).abs() < tolerance(expected, jobs), "{kind}: {drawn}");
        }
    }

    #[test]
    fn most_parallel_jobs_are_in_the_lower_range_of_sizes() {
        // 2^7.5 = 181 is the border on 1024 processors; powers of two from 2^7.5 on are 256.
        let jobs = 20_000;
        let workload = Lublin { jobs, ..Lublin::default() }.generate().unwrap();
        let expected = (1.0 - 0.244) * (1.0 - 0.86);
        let drawn = share(&workload, |nodes| nodes > 181);
        assert!((drawn - expected).abs() < tolerance(expected, jobs), "{drawn}");
    }

    #[test]
    fn sizes_can_be_all_powers_of_two_or_none_but_by_chance() {
        let jobs = 20_000;
        let parameters = Lublin { jobs, ..Lublin::default() };
        let powers = Lublin { sizes: Sizes::PowersOfTwo, ..parameters }.generate().unwrap();
        assert!(powers.jobs().iter().all(|job| job.nodes.is_power_of_two()));
        let any = Lublin { sizes: Sizes::Any, ..parameters }.generate().unwrap();
        let expected = power_of_two_by_chance(JobKind::Typeless) * (1.0 - 0.244);
        let drawn = share(&any, |nodes| nodes > 1 && nodes.is_power_of_two());
        assert!((drawn - expected).abs() < tolerance(expected, jobs), "{drawn}");
        // The same jobs are serial: only the rounding changed.
        for (rounded, free) in powers.jobs().iter().zip(any.jobs()) {
            assert_eq!(rounded.nodes == 1, free.nodes == 1);
        }
    }

    #[test]
    fn sizes_fit_every_machine() {
        for processors in [1, 2, 3, 4, 5, 7, 8, 12, 100, 1000, 1023, 1025, u32::MAX] {
            for kind in KINDS {
                for sizes in SIZES {
                    let parameters =
                        Lublin { jobs: 2_000, processors, kind, sizes, ..Lublin::default() };
                    let workload = parameters.generate().unwrap();
                    let fits =
                        workload.jobs().iter().all(|job| (1..=processors).contains(&job.nodes));
                    assert!(fits, "{parameters}");
                    assert_eq!(workload.processors(), Some(processors));
                    assert_eq!(workload.largest_job() > 1, processors > 1, "{parameters}");
                }
            }
        }
    }
}
