//! Frequency scaling: jobs that run slower in a lower gear and draw less.
//!
//! A job's menu has a point for each gear of the machine's [`Gearbox`], the top gear first. How
//! much longer it takes in a lower gear depends on its β, which is drawn once per job; what a
//! scheduler believes about it is [`Knowledge`]. The limit of a slowed job is its requested time,
//! stretched: no job is killed because its frequency was lowered.
//!
//! [`Gearbox`]: crate::machine::Gearbox

use std::fmt;
use std::str::FromStr;

use rand::SeedableRng;
use rand_distr::{Distribution, Normal};
use rand_pcg::Pcg64Dxsm;

use crate::job::Job;
use crate::machine::{Machine, Sensitivity};
use crate::model::{Footprint, Menu, Model, OperatingPoint, Outcome, Rung, Stretch};
use crate::units::{JobId, Span, Watts};

/// How much a job's time depends on frequency, from none at all to all of it. Kept in steps of
/// 2⁻³¹.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Beta(u32);

impl Beta {
    /// Half the clock, twice the time.
    pub(crate) const FULL: Beta = Beta(1 << 31);

    /// A β as near to a number as it can be; below 0 counts as 0, above 1 as 1.
    pub fn new(beta: f64) -> Self {
        Beta((beta.clamp(0.0, 1.0) * f64::from(1u32 << 31)).round() as u32)
    }

    /// In steps of 2⁻³¹.
    pub(crate) fn to_bits(self) -> u32 {
        self.0
    }

    fn draw(sensitivity: Sensitivity, numbers: &mut Pcg64Dxsm) -> Self {
        // A gearbox has no variance that is negative or not a number.
        let normal = Normal::new(sensitivity.mean, sensitivity.variance.sqrt());
        Beta::new(normal.map_or(sensitivity.mean, |normal| normal.sample(numbers)))
    }
}

/// What a scheduler knows about β.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Knowledge {
    /// The job's own: requested time and run time are stretched alike.
    Known,
    /// Nothing: the requested time is stretched as if β were 1, the run time by the real β.
    #[default]
    Unknown,
}

/// What becomes of a job that no budget could ever feed at nominal speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Oversized {
    /// It may run slower, if that fits.
    #[default]
    Slow,
    /// It is turned away when it arrives.
    Reject,
}

impl FromStr for Knowledge {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "known" => Ok(Knowledge::Known),
            "unknown" => Ok(Knowledge::Unknown),
            _ => Err("write known or unknown"),
        }
    }
}

impl fmt::Display for Knowledge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Knowledge::Known => "known",
            Knowledge::Unknown => "unknown",
        })
    }
}

impl FromStr for Oversized {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "slow" => Ok(Oversized::Slow),
            "reject" => Ok(Oversized::Reject),
            _ => Err("write slow or reject"),
        }
    }
}

impl fmt::Display for Oversized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Oversized::Slow => "slow",
            Oversized::Reject => "reject",
        })
    }
}

/// A gear as the model uses it.
#[derive(Clone, Copy, Debug)]
struct Step {
    node_power: Watts,
    /// How much longer a job of β = 1 takes, beyond once; in steps of 2⁻³².
    slowness: u64,
}

impl Step {
    #[inline]
    fn stretch(&self, beta: Beta) -> Stretch {
        let added = (u128::from(self.slowness) * u128::from(beta.0)) >> 31;
        Stretch(Stretch::NONE.0.saturating_add(added as u64))
    }
}

/// Jobs on a machine with gears.
#[derive(Clone, Debug)]
pub struct Dvfs {
    /// The gears, the fastest first.
    steps: Vec<Step>,
    rungs: Vec<Rung>,
    /// The β of each job, by its identity.
    betas: Vec<Beta>,
    knowledge: Knowledge,
    oversized: Oversized,
    /// Of a node.
    cores: u32,
}

impl Dvfs {
    /// These jobs on this machine, each with a β drawn for it. The same seed gives the same
    /// jobs the same β.
    pub fn new(
        machine: &Machine,
        jobs: &[Job],
        knowledge: Knowledge,
        oversized: Oversized,
        seed: u64,
    ) -> Self {
        // A stream of its own, so that a workload drawn from the same seed knows nothing of it.
        let mut numbers = Pcg64Dxsm::seed_from_u64(seed ^ 0x6265_7461_5f64_7666);
        let betas = jobs
            .iter()
            .map(|job| Beta::draw(machine.gearbox.sensitivity_of(job.processors), &mut numbers));
        Dvfs::with_betas(machine, betas.collect(), knowledge, oversized)
    }

    /// Jobs whose β is known to the experimenter, by [`JobId`].
    pub fn with_betas(
        machine: &Machine,
        betas: Vec<Beta>,
        knowledge: Knowledge,
        oversized: Oversized,
    ) -> Self {
        let gearbox = &machine.gearbox;
        let gears = gearbox.node_powers(machine.added_power());
        let steps: Vec<Step> = gears
            .iter()
            .map(|(gear, node_power)| Step {
                node_power: *node_power,
                slowness: ((gearbox.slowdown(*gear) - 1.0) * Stretch::NONE.0 as f64).round() as u64,
            })
            .collect();
        let least = match knowledge {
            Knowledge::Known => betas.iter().min().copied().unwrap_or(Beta::FULL),
            Knowledge::Unknown => Beta::FULL,
        };
        let rung = |step: &Step| Rung::alike(step.node_power, step.stretch(least));
        let rungs = steps.iter().map(rung).collect();
        let cores = machine.processors_per_node;
        Dvfs { steps, rungs, betas, knowledge, oversized, cores }
    }

    /// The β of a job; one that was not drawn is as sensitive as can be.
    #[inline]
    fn beta(&self, id: JobId) -> Beta {
        self.betas.get(id.index()).copied().unwrap_or(Beta::FULL)
    }

    /// The β a scheduler reckons with.
    #[inline]
    fn believed(&self, id: JobId) -> Beta {
        match self.knowledge {
            Knowledge::Known => self.beta(id),
            Knowledge::Unknown => Beta::FULL,
        }
    }

    #[inline]
    fn point(&self, job: &Job, step: &Step, beta: Beta) -> OperatingPoint {
        let time = step.stretch(beta).of(job.requested);
        OperatingPoint::new(job.nodes, self.cores, step.node_power, time)
    }

    /// The gear whose nodes draw just so much.
    #[inline]
    fn step_of(&self, cap: Watts) -> Option<&Step> {
        self.steps.iter().find(|step| step.node_power == cap)
    }
}

impl Model for Dvfs {
    #[inline]
    fn nominal(&self, _id: JobId, job: &Job) -> OperatingPoint {
        OperatingPoint::new(job.nodes, self.cores, self.steps[0].node_power, job.requested)
    }

    #[inline]
    fn menu(&self, id: JobId, job: &Job) -> Menu {
        let beta = self.believed(id);
        let slower = self.steps[1..].iter().map(|step| self.point(job, step, beta));
        Menu::new(self.nominal(id, job), slower)
    }

    #[inline]
    fn outcome(&self, id: JobId, _job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        let stretch = self.step_of(point.cap).map(|step| step.stretch(self.beta(id)));
        let run_time = stretch.unwrap_or(Stretch::NONE).of(run_time);
        Outcome { run_time, power: point.power }
    }

    #[inline]
    fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    #[inline]
    fn footprint(&self, id: JobId, job: &Job) -> Footprint {
        let OperatingPoint { nodes, time, .. } = self.nominal(id, job);
        Footprint { nodes, time, power: Watts::ZERO }
    }

    #[inline]
    fn may_enter(&self, id: JobId, job: &Job, is_fed: &dyn Fn(&OperatingPoint) -> bool) -> bool {
        is_fed(&self.nominal(id, job))
            || (self.oversized == Oversized::Slow && self.menu(id, job).iter().any(is_fed))
    }

    #[inline]
    fn offers(&self, id: JobId, job: &Job, point: &OperatingPoint) -> bool {
        let step = self.step_of(point.cap);
        step.is_some_and(|step| self.point(job, step, self.believed(id)) == *point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Instant;

    fn job(nodes: u32, seconds: u32) -> Job {
        Job::new(1, Instant::ZERO, nodes, Span::from_secs(seconds))
    }

    fn model(beta: f64, knowledge: Knowledge) -> Dvfs {
        let machine = Machine::of_processors(10).unwrap();
        Dvfs::with_betas(&machine, vec![Beta::new(beta)], knowledge, Oversized::Slow)
    }

    /// β = 0.4 at 1.4 GHz: 0.4·(2.3/1.4 − 1) + 1 = 1.257 142 857…; at 0.8 GHz 1.75 times as long.
    #[test]
    fn time_follows_the_formula() {
        let job = job(2, 1000);
        let known = model(0.4, Knowledge::Known);
        let menu = known.menu(JobId(0), &job);
        assert_eq!(menu.len(), 6);
        assert_eq!(menu[0], known.nominal(JobId(0), &job));
        assert_eq!((menu[0].time, menu[0].power), (Span::from_secs(1000), Watts::from_watts(200)));
        assert_eq!(menu[3].time, Span::from_millis(1_257_143));
        assert_eq!(menu[5].time, Span::from_secs(1750));
        // Twice 28.261 W.
        assert_eq!(menu[5].power, Watts::from_milliwatts(56_522));

        let outcome = known.outcome(JobId(0), &job, Span::from_secs(100), &menu[5]);
        assert_eq!((outcome.run_time, outcome.power), (Span::from_secs(175), menu[5].power));
        let nominal = known.outcome(JobId(0), &job, Span::from_secs(100), &menu[0]);
        assert_eq!(nominal.run_time, Span::from_secs(100));
    }

    /// A scheduler that does not know β reckons with 2.3/0.8 = 2.875; the job takes 1.75.
    #[test]
    fn what_is_not_known_is_taken_for_the_worst() {
        let job = job(2, 1000);
        let unknown = model(0.4, Knowledge::Unknown);
        let slowest = unknown.menu(JobId(0), &job)[5];
        assert_eq!(slowest.time, Span::from_secs(2875));
        let outcome = unknown.outcome(JobId(0), &job, Span::from_secs(1000), &slowest);
        assert_eq!(outcome.run_time, Span::from_secs(1750));
    }

    /// A job that needs all the time it asked for is not killed in any gear.
    #[test]
    fn a_slowed_job_keeps_within_its_limit() {
        for knowledge in [Knowledge::Known, Knowledge::Unknown] {
            for beta in [0.0, 0.123_456_789, 0.5, 1.0] {
                let model = model(beta, knowledge);
                for millis in [0, 1, 999, 86_400_001, 1 << 50] {
                    let mut job = job(1, 1);
                    job.requested = Span::from_millis(millis);
                    for point in model.menu(JobId(0), &job).iter() {
                        let outcome = model.outcome(JobId(0), &job, job.requested, point);
                        assert!(outcome.run_time <= point.time, "{beta} {millis} {point:?}");
                        assert!(model.offers(JobId(0), &job, point));
                    }
                }
            }
        }
    }

    #[test]
    fn rungs_are_bounds_of_every_menu() {
        let machine = Machine::of_processors(100).unwrap();
        let jobs: Vec<Job> = (1..=100).map(|nodes| job(nodes, 60 * nodes)).collect();
        for knowledge in [Knowledge::Known, Knowledge::Unknown] {
            let model = Dvfs::new(&machine, &jobs, knowledge, Oversized::Slow, 7);
            for (id, job) in (0..).map(JobId).zip(&jobs) {
                let menu = model.menu(id, job);
                assert_eq!(menu.len(), model.rungs().len());
                for (point, rung) in menu.iter().zip(model.rungs()) {
                    assert!(point.power >= rung.node_power * job.nodes);
                    assert!(point.time >= rung.stretch.of(menu[0].time));
                    assert!(rung.stretch.undone(point.time) >= menu[0].time);
                }
            }
        }
    }

    /// Mean and spread of the draws, by size; the same seed gives the same draws.
    #[test]
    fn betas_are_drawn_as_configured() {
        let machine = Machine::of_processors(100).unwrap();
        let draw = |nodes, seed| {
            let jobs = vec![job(nodes, 1); 20_000];
            Dvfs::new(&machine, &jobs, Knowledge::Known, Oversized::Slow, seed).betas
        };
        for (nodes, mean, variance) in [(4, 0.5, 0.01), (32, 0.4, 0.01), (33, 0.3, 0.0064)] {
            let betas = draw(nodes, 1);
            let value = |beta: &Beta| f64::from(beta.0) / f64::from(Beta::FULL.0);
            let measured = betas.iter().map(value).sum::<f64>() / 20_000.0;
            let spread = betas.iter().map(|b| (value(b) - measured).powi(2)).sum::<f64>();
            // Five standard errors of the mean, and of the variance.
            assert!((measured - mean).abs() < 5.0 * (variance / 20_000.0f64).sqrt(), "{measured}");
            assert!((spread / 20_000.0 / variance - 1.0).abs() < 0.05, "{nodes}");
            assert!(betas.iter().all(|beta| *beta <= Beta::FULL));
        }
        assert_eq!(draw(4, 3), draw(4, 3));
        assert_ne!(draw(4, 3), draw(4, 4));
    }

    #[test]
    fn jobs_larger_than_the_budget_may_be_let_in_slower() {
        let machine = Machine::of_processors(10).unwrap();
        let enters = |oversized, milliwatts| {
            let model = Dvfs::with_betas(&machine, Vec::new(), Knowledge::Known, oversized);
            let limit = Watts::from_milliwatts(milliwatts);
            model.may_enter(JobId(0), &job(10, 1), &|point| point.power <= limit)
        };
        // Ten nodes draw 1000 W in the top gear and ten times 28.261 W in the lowest.
        for (milliwatts, slow, reject) in [
            (1_000_000, true, true),
            (999_999, true, false),
            (282_610, true, false),
            (282_609, false, false),
        ] {
            assert_eq!(enters(Oversized::Slow, milliwatts), slow);
            assert_eq!(enters(Oversized::Reject, milliwatts), reject);
        }
    }
}
