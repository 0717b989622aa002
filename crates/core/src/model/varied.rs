//! Jobs on processors that are not alike.
//!
//! Every node is one processor with a curve of its own for each application. A job is a fixed amount
//! of work; it is as fast as its processors together, on the power each of them may draw. The time
//! a user asks for is the time on as many processors as asked for, all without a cap.
//!
//! A processor holds its cap, or what it draws at the lowest one if measuring found that to be more.
//! It draws no more than it does without a cap.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use crate::job::Job;
use crate::machine::{Machine, Node};
use crate::model::{Caps, Footprint, Menu, Model, OperatingPoint, Outcome, Rung, Stretch};
use crate::units::{JobId, Span, Watts};
use crate::variation::catalyst::Catalyst;
use crate::variation::kin::Kin;
use crate::variation::{Application, Curve, Ips, Processors};

/// Jobs on processors that are not alike.
#[derive(Clone, Debug)]
pub struct Varied {
    processors: Arc<Processors>,
    /// What a processor is rated at: the most it may ever draw.
    rated: Watts,
    applications: Vec<OnAll>,
    /// The application of each job, by its place.
    of_jobs: Vec<u32>,
    /// Where the numbers start by which applications are drawn.
    seed: u64,
    /// What its nodes draw, where the power in curves is what they add to that when they are busy.
    node: Option<Node>,
    rungs: [Rung; 1],
}

/// Of this many runs of processors it is kept what one of them does under the cap that was asked about last. Machines have
/// hardly more kinds of nodes.
const KNOWN: usize = 64;

/// Fewer nodes than this are faster looked at than remembered.
const MANY: u32 = 8;

/// What a processor does under a cap.
#[derive(Clone, Copy)]
struct OnOne {
    ips: u64,
    held: Watts,
    drawn: Watts,
}

impl OnOne {
    fn of(curve: &Curve, cap: Watts) -> Self {
        let held = Varied::held(curve, cap);
        OnOne { ips: curve.at(held).ips(), held, drawn: held.min(curve.most()) }
    }
}

/// What is known of an application over all processors.
#[derive(Clone, Debug)]
struct OnAll {
    /// The processors from the most to the least efficient.
    kin: Kin,
    /// The least that the first so many of them can be held at together.
    least_of_first: Vec<Watts>,
    /// The speed of all of them without a cap.
    peak: u128,
    /// The most and the least that one of them can be held at.
    most: Watts,
    least: Watts,
    /// How fast a processor is that can be held at the least.
    slowest: Ips,
}

impl OnAll {
    fn of(application: &Application) -> Self {
        let curves = &application.curves;
        let thriftiest = curves.iter().min_by_key(|curve| curve.least());
        let kin = Kin::of(application);
        let least_of_first = kin.order().iter().scan(Watts::ZERO, |sum, place| {
            *sum += curves[*place as usize].least();
            Some(*sum)
        });
        OnAll {
            least_of_first: least_of_first.collect(),
            kin,
            peak: curves.iter().map(|curve| u128::from(curve.peak().ips())).sum(),
            most: curves.iter().map(Curve::most).fold(Watts::ZERO, Watts::max),
            least: thriftiest.map_or(Watts::ZERO, Curve::least),
            slowest: thriftiest.map_or(Ips::ZERO, Curve::slowest),
        }
    }
}

impl Varied {
    /// The processors of a machine; if it has no curves of its own, it gets synthetic ones. A job runs the
    /// application whose number its log gives. Where that says nothing the machine knows of, one is drawn, the same
    /// for the same number.
    pub fn on(machine: &Machine, jobs: &[Job], seed: u64) -> Self {
        let processors = match &machine.variation {
            Some(processors) => processors.clone(),
            None => Arc::new(Catalyst::processors_of(machine.nodes, seed)),
        };
        let count = processors.applications().len() as u32;
        let of_jobs = (0u64..).zip(jobs).map(|(place, job)| {
            named(job, count, seed).unwrap_or(draw(seed, 1 << 32 | place, count))
        });
        let of_jobs = of_jobs.collect();
        Varied { seed, ..Varied::assigned(processors, machine.node_power, of_jobs) }
    }

    /// Processors that are rated at so much, and the application of each job by its place.
    pub fn assigned(processors: Arc<Processors>, rated: Watts, of_jobs: Vec<u32>) -> Self {
        let applications: Vec<OnAll> = processors.applications().iter().map(OnAll::of).collect();
        let least = applications.iter().map(|on_all| on_all.least);
        Varied {
            of_jobs,
            seed: 0,
            node: None,
            rated,
            rungs: [Rung::alike(least.fold(Watts::LARGEST, Watts::min), Stretch::NONE)],
            applications,
            processors,
        }
    }

    /// A job that was not known runs this application.
    pub(crate) fn assign(&mut self, job: JobId, application: usize) {
        if job.index() >= self.of_jobs.len() {
            self.of_jobs.resize(job.index() + 1, 0);
        }
        self.of_jobs[job.index()] = application as u32;
    }

    /// The same on nodes like this one: the power in curves is what a node adds to what it draws when it is idle.
    pub fn on_nodes(self, node: Node) -> Self {
        Varied { node: Some(node), ..self }
    }

    /// What a node may add to what it draws when it is idle, if it is held at a cap.
    pub fn added(&self, cap: Watts) -> Watts {
        self.node.map_or(cap, |node| node.added(cap))
    }

    /// The processors with all that was measured of them.
    pub fn processors(&self) -> &Processors {
        &self.processors
    }

    /// What a processor is rated at.
    pub fn rated(&self) -> Watts {
        self.rated
    }

    /// Which application a job runs, by its place.
    pub fn application(&self, job: JobId) -> usize {
        self.of_jobs.get(job.index()).map_or(0, |place| *place as usize)
    }

    /// The curve of each processor for an application.
    pub fn curves(&self, application: usize) -> &[Curve] {
        &self.processors.applications()[application].curves
    }

    /// The processors from the most to the least efficient for an application.
    pub fn by_efficiency(&self, application: usize) -> &[u32] {
        self.applications[application].kin.order()
    }

    /// The same with those together that have the same curve.
    pub fn kin(&self, application: usize) -> &Kin {
        &self.applications[application].kin
    }

    /// How many processors can run at once on so much power, the most efficient ones for an application.
    pub fn fed(&self, application: usize, power: Watts) -> u64 {
        let sums = &self.applications[application].least_of_first;
        sums.partition_point(|sum| *sum <= power) as u64
    }

    /// What a processor holds under a cap.
    pub fn held(curve: &Curve, cap: Watts) -> Watts {
        cap.max(curve.least())
    }

    /// How long something takes at this speed that takes so long as asked for.
    pub(crate) fn stretched(&self, id: JobId, job: &Job, time: Span, ips: u64) -> Span {
        if ips == 0 {
            return Span::FOREVER;
        }
        let peak = self.applications[self.application(id)].peak;
        let count = self.processors.names().len() as u128;
        // Speed as asked for: so many times the mean over all processors.
        let work = u128::from(time.millis()).checked_mul(peak * u128::from(job.nodes));
        let time = work.map_or(u128::MAX, |work| work.div_ceil(u128::from(ips) * count));
        Span::from_millis(u64::try_from(time).unwrap_or(u64::MAX))
    }

    /// How fast a job is on these nodes under these caps, and what they hold and draw together;
    /// `None` if there is no such node, or one with a cap below what can be set.
    fn together(&self, id: JobId, caps: &Caps) -> Option<(u64, Watts, Watts)> {
        let kin = self.kin(self.application(id));
        let (mut ips, mut held, mut drawn) = (0, Watts::ZERO, Watts::ZERO);
        let mut add = |one: OnOne| {
            ips += one.ips;
            held = held.saturating_add(one.held);
            drawn += one.drawn;
        };
        let on_one = |run: u32, cap: Watts| {
            let can_be_set = (self.processors.floor()..=Watts::LARGEST).contains(&cap);
            can_be_set.then(|| OnOne::of(&kin.run(run).curve, cap))
        };
        if caps.count() < MANY {
            for capped in caps.iter() {
                add(on_one(kin.run_of(capped.node.0)?, capped.cap)?);
            }
            return Some((ips, held, drawn));
        }
        let mut known = [None; KNOWN];
        for capped in caps.iter() {
            let run = kin.run_of(capped.node.0)?;
            let known = &mut known[run as usize % KNOWN];
            match *known {
                Some((of_run, under, one)) if of_run == run && under == capped.cap => add(one),
                _ => {
                    let one = on_one(run, capped.cap)?;
                    *known = Some((run, capped.cap, one));
                    add(one);
                }
            }
        }
        Some((ips, held, drawn))
    }
}

/// One of so many applications.
fn draw(seed: u64, stream: u64, count: u32) -> u32 {
    let seed = seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Pcg64Dxsm::seed_from_u64(seed).random_range(0..count)
}

/// The application that a job names. If there is none of that number, one is drawn, the same for the
/// same number.
fn named(job: &Job, count: u32, seed: u64) -> Option<u32> {
    let number = job.application?.0.get();
    Some(if number <= count { number - 1 } else { draw(seed, u64::from(number), count) })
}

impl Model for Varied {
    /// Without an application of its own it is taken for the first: to draw one would make its
    /// behaviour depend on its place in a list that may be numbered anew.
    fn learn(&mut self, id: JobId, job: &Job) {
        if id.index() >= self.of_jobs.len() {
            self.of_jobs.resize(id.index() + 1, 0);
            let count = self.applications.len() as u32;
            self.of_jobs[id.index()] = named(job, count, self.seed).unwrap_or(0);
        }
    }

    fn nominal(&self, id: JobId, job: &Job) -> OperatingPoint {
        let on_all = &self.applications[self.application(id)];
        OperatingPoint::new(job.nodes, 1, on_all.most, job.requested)
    }

    fn menu(&self, id: JobId, job: &Job) -> Menu {
        Menu::new(self.nominal(id, job), [])
    }

    fn outcome(&self, _id: JobId, _job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        Outcome { run_time, power: point.power }
    }

    fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    fn footprint(&self, _id: JobId, job: &Job) -> Footprint {
        Footprint { nodes: job.nodes, time: OperatingPoint::SHORTEST, power: Watts::ZERO }
    }

    /// A job may run on fewer processors than it asks for: one that can be fed is enough.
    fn may_enter(&self, id: JobId, job: &Job, is_fed: &dyn Fn(&OperatingPoint) -> bool) -> bool {
        let on_all = &self.applications[self.application(id)];
        let time = self.stretched(id, job, job.requested, on_all.slowest.ips());
        is_fed(&OperatingPoint::new(1, 1, on_all.least, time))
    }

    fn on(&self, id: JobId, job: &Job, caps: &Caps) -> Option<OperatingPoint> {
        let (ips, power, _) = self.together(id, caps)?;
        let time = self.stretched(id, job, job.requested, ips).max(OperatingPoint::SHORTEST);
        Some(OperatingPoint { nodes: caps.count(), cores: 1, cap: caps.largest(), time, power })
    }

    fn outcome_on(
        &self,
        id: JobId,
        job: &Job,
        run_time: Span,
        point: &OperatingPoint,
        caps: &Caps,
    ) -> Outcome {
        match self.together(id, caps) {
            Some((ips, _, power)) => {
                Outcome { run_time: self.stretched(id, job, run_time, ips), power }
            }
            // What is believed to run there does not: it holds what it was given, and does not end.
            None => Outcome { run_time: Span::FOREVER, power: point.power },
        }
    }

    fn varied(&self) -> Option<&Varied> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::ApplicationId;
    use crate::model::NodeCap;
    use crate::units::{Instant, NodeId};
    use crate::variation::{Application, Knot};
    use std::num::NonZeroU32;

    /// Two processors with a peak of 100; the first gets there with 80 W, the second with 100 W, and
    /// draws 55 W under the lowest cap of 50 W.
    fn machine() -> Machine {
        let knot = |watts, ips| Knot { power: Watts::from_watts(watts), ips: Ips::from_ips(ips) };
        let floor = Watts::from_watts(50);
        let curves = vec![
            Curve::new(floor, vec![knot(50, 40), knot(80, 100)]).unwrap(),
            Curve::new(floor, vec![knot(55, 40), knot(100, 100)]).unwrap(),
        ];
        let names = vec!["a".to_owned(), "b".to_owned()];
        let applications = ["x", "y"]
            .map(|name| Application { name: name.to_owned(), curves: curves.clone() })
            .to_vec();
        Machine::of_varied(Processors::new(names, floor, applications).unwrap(), "two").unwrap()
    }

    fn caps(caps: &[(u32, u32)]) -> Caps {
        let capped = |&(node, w): &_| NodeCap { node: NodeId(node), cap: Watts::from_watts(w) };
        Caps::new(caps.iter().map(capped).collect()).unwrap()
    }

    #[test]
    fn a_job_is_as_fast_as_its_processors_together() {
        let machine = machine();
        assert_eq!((machine.nodes, machine.node_power), (2, Watts::from_watts(100)));
        let job = Job::new(1, Instant::ZERO, 2, Span::from_secs(700));
        let model = Varied::on(&machine, &[job], 1);
        let on = |at: &[(u32, u32)]| model.on(JobId(0), &job, &caps(at)).unwrap();
        // 70 + 60 of 200.
        let point = on(&[(0, 65), (1, 70)]);
        assert_eq!(point.time, Span::from_millis((700_000u64 * 200).div_ceil(130)));
        assert_eq!(
            (point.nodes, point.power, point.cap.milliwatts()),
            (2, Watts::from_watts(135), 70_000)
        );
        // The second draws 55 W, whatever its cap; the first no more than 80 W.
        let named = caps(&[(0, 120), (1, 50)]);
        let point = model.on(JobId(0), &job, &named).unwrap();
        assert_eq!(point.power, Watts::from_watts(175));
        let outcome = model.outcome_on(JobId(0), &job, Span::from_secs(70), &point, &named);
        assert_eq!(outcome.power, Watts::from_watts(135));
        assert_eq!(outcome.run_time, Span::from_secs(100), "140 of 200");
        assert_eq!(on(&[(0, 80)]).time, Span::from_secs(1400), "half of what was asked for");
        assert_eq!(model.on(JobId(0), &job, &caps(&[(0, 49)])), None, "below the lowest cap");
        assert_eq!(model.on(JobId(0), &job, &caps(&[(2, 60)])), None, "no such processor");
    }

    #[test]
    fn applications_are_those_of_the_log_or_drawn() {
        let job = |application| Job {
            application: NonZeroU32::new(application).map(ApplicationId),
            ..Job::new(1, Instant::ZERO, 1, Span::from_secs(1))
        };
        let jobs: Vec<Job> = [1, 2, 77, 77, 78, 0, 0, 0, 0, 0, 0, 0].map(job).to_vec();
        let model = Varied::on(&machine(), &jobs, 3);
        let of = |place: u32| model.application(JobId(place));
        assert_eq!((of(0), of(1)), (0, 1));
        assert_eq!(of(2), of(3), "the same number, the same application");
        assert!((5..12).any(|place| of(place) == 0) && (5..12).any(|place| of(place) == 1));
    }

    #[test]
    fn learned_jobs_run_what_they_name() {
        let job = |application| Job {
            application: NonZeroU32::new(application).map(ApplicationId),
            ..Job::new(1, Instant::ZERO, 1, Span::from_secs(1))
        };
        let jobs = [job(2), job(1), job(77)];
        let known = Varied::on(&machine(), &jobs, 3);
        let mut model = Varied::on(&machine(), &[], 3);
        for (id, job) in (0..).map(JobId).zip(&jobs) {
            model.learn(id, job);
            assert_eq!(model.application(id), known.application(id));
        }
        model.learn(JobId(9), &job(0));
        assert_eq!((model.application(JobId(9)), model.application(JobId(5))), (0, 0));
        model.learn(JobId(0), &job(1));
        assert_eq!(model.application(JobId(0)), 1, "it is known already");
    }

    #[test]
    fn who_can_be_fed_on_one_processor_may_enter() {
        let job = Job::new(1, Instant::ZERO, 2, Span::from_secs(100));
        let model = Varied::on(&machine(), &[job], 1);
        let fed = |watts| {
            let limit = Watts::from_watts(watts);
            model.may_enter(JobId(0), &job, &|point| point.power <= limit)
        };
        assert!(fed(50) && !fed(49));
    }
}
