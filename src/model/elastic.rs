//! Elastic jobs: any of several numbers of nodes under any of several caps, as PASS says.
//!
//! A job runs one of PARM's applications. Its time grows under a [cap](super::pass::Throttling) and
//! falls with [nodes](super::pass::Scaling), each against the nodes its user asks for without a cap:
//! there it takes as long as the log says. A node draws its cap and what everything but the
//! processor draws. Which of the points a job may have at its start, and whether it may change while
//! it runs, is the policy's business.
//!
//! Logs do not say how their jobs scale. [`Kind`]s are drawn from a seed: the application, the average
//! parallelism as a multiple of the nodes asked for, and its variation.

use std::collections::HashMap;
use std::num::NonZeroU32;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use crate::job::Job;
use crate::machine::Machine;
use crate::model::pass::{Application, Resizing};
use crate::model::{Footprint, Menu, Model, OperatingPoint, Outcome, Rung, Stretch, Way};
use crate::units::{JobId, Span};

mod feed;
mod grid;

pub use feed::Feed;
use grid::Grid;
pub use grid::Kind;

/// The numbers of nodes a job may run on, as multiples of what it asks for, in quarters: from half
/// to twice of it.
const QUARTERS: [u32; 6] = [2, 3, 4, 5, 6, 8];

/// Data of a job that has to move when its number of nodes changes, for each node asked for.
const MEGABYTES_PER_NODE: f64 = 512.0;

/// Links of the network, in megabytes a second: those of a Blue Gene/P.
const LINK_MEGABYTES_PER_SECOND: f64 = 425.0;

/// Average parallelisms that are drawn, as multiples of the nodes asked for, and variations.
const PARALLELISMS: [f64; 4] = [1.0, 1.5, 2.0, 3.0];
const VARIATIONS: [f64; 3] = [0.0, 0.5, 1.0];

/// Jobs that run on several numbers of nodes under several caps.
#[derive(Clone, Debug)]
pub struct Elastic {
    feed: Feed,
    cores: u32,
    /// Nodes of the machine: nobody runs on more.
    most: u32,
    grids: Vec<Grid>,
    /// The grid of each job.
    grid_of: Vec<u32>,
    resizing: Resizing,
    rungs: [Rung; 1],
}

impl Elastic {
    /// Jobs on a machine whose nodes are fed like this. Their applications are drawn from `mix`,
    /// all of them equally likely, and how they scale is drawn, too.
    pub fn new(
        machine: &Machine,
        feed: Feed,
        mix: &[Application],
        jobs: &[Job],
        seed: u64,
    ) -> Self {
        let mut numbers = Pcg64Dxsm::seed_from_u64(seed ^ 0x656c_6173_7469_6321);
        let mut draw = |most: usize| numbers.random_range(0..most.max(1));
        let kinds = jobs.iter().map(|_| Kind {
            application: mix.get(draw(mix.len())).copied().unwrap_or(Application::LEAN_MD),
            parallelism: PARALLELISMS[draw(PARALLELISMS.len())],
            variation: VARIATIONS[draw(VARIATIONS.len())],
        });
        Elastic::of_kinds(machine, feed, &kinds.collect::<Vec<_>>(), jobs)
    }

    /// Jobs of these kinds.
    pub fn of_kinds(machine: &Machine, feed: Feed, kinds: &[Kind], jobs: &[Job]) -> Self {
        let most = machine.nodes;
        let mut grids = Vec::new();
        let mut places: HashMap<(&str, u64, u64, u32), u32> = HashMap::new();
        let mut grid_of = Vec::with_capacity(jobs.len());
        for (kind, job) in kinds.iter().zip(jobs) {
            let Kind { application, parallelism, variation } = kind;
            let key = (application.name, parallelism.to_bits(), variation.to_bits(), job.nodes);
            let place = *places.entry(key).or_insert_with(|| {
                let asked = NonZeroU32::new(job.nodes).unwrap_or(NonZeroU32::MIN);
                grids.push(Grid::new(kind, &feed, asked.get(), &counts(asked, most)));
                grids.len() as u32 - 1
            });
            grid_of.push(place);
        }
        let resizing = Resizing::over_links(LINK_MEGABYTES_PER_SECOND);
        Elastic {
            cores: machine.processors_per_node,
            most,
            grids,
            grid_of,
            // The constant is a bandwidth.
            resizing: resizing.expect("links carry something"),
            rungs: [Rung { node_power: feed.node_power(0), stretch: Stretch::NONE }],
            feed,
        }
    }

    /// The same jobs, on the nodes they ask for alone; their caps may still be any.
    pub fn as_asked(mut self) -> Self {
        for grid in &mut self.grids {
            *grid = grid.as_asked(&self.feed);
        }
        self
    }

    /// The same jobs, where it costs this to change their numbers of nodes.
    pub fn resizing(self, resizing: Resizing) -> Self {
        Elastic { resizing, ..self }
    }

    fn grid(&self, id: JobId) -> &Grid {
        &self.grids[self.grid_of[id.index()] as usize]
    }

    /// A job on one of its numbers of nodes under one of the caps.
    fn point(&self, id: JobId, requested: Span, place: (usize, usize)) -> OperatingPoint {
        let grid = self.grid(id);
        let nodes = grid.nodes()[place.0];
        let time = grid.time(place, requested);
        OperatingPoint::new(nodes, self.cores, self.feed.node_power(place.1), time)
    }

    /// Which number of nodes and which cap a point has.
    fn place(&self, id: JobId, point: &OperatingPoint) -> Option<(usize, usize)> {
        let nodes = self.grid(id).nodes().binary_search(&point.nodes).ok()?;
        Some((nodes, self.feed.place(point.cap)?))
    }

    fn points(&self, id: JobId, requested: Span) -> impl Iterator<Item = OperatingPoint> {
        let caps = self.feed.caps().len();
        let places = (0..self.grid(id).nodes().len())
            .flat_map(move |nodes| (0..caps).map(move |cap| (nodes, cap)));
        places.map(move |place| self.point(id, requested, place))
    }
}

/// The numbers of nodes a job that asks for so many may run on, ascending. One that asks for more
/// than there are, and could not run on half of it, keeps what it asks for.
fn counts(asked: NonZeroU32, most: u32) -> Vec<u32> {
    let asked = asked.get();
    let multiples = QUARTERS.map(|quarters| {
        u32::try_from((u64::from(asked) * u64::from(quarters)).div_ceil(4)).unwrap_or(u32::MAX)
    });
    let mut counts: Vec<u32> = multiples.into_iter().filter(|count| *count <= most).collect();
    counts.dedup();
    if counts.is_empty() { vec![asked] } else { counts }
}

impl Model for Elastic {
    fn nominal(&self, id: JobId, job: &Job) -> OperatingPoint {
        let nodes = self.grid(id).nodes();
        let asked = nodes.partition_point(|count| *count < job.nodes).min(nodes.len() - 1);
        self.point(id, job.requested, (asked, self.feed.caps().len() - 1))
    }

    fn menu(&self, id: JobId, job: &Job) -> Menu {
        let nominal = self.nominal(id, job);
        Menu::new(nominal, self.points(id, job.requested).filter(|point| *point != nominal))
    }

    fn outcome(&self, id: JobId, _job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        let run_time = match self.place(id, point) {
            Some(place) => self.grid(id).time(place, run_time),
            None => run_time,
        };
        Outcome { run_time, power: point.power }
    }

    fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    fn footprint(&self, id: JobId, job: &Job) -> Footprint {
        let shortest = self.points(id, job.requested).map(|point| point.time).min();
        let nodes = self.grid(id).nodes()[0];
        Footprint { nodes, time: shortest.unwrap_or(OperatingPoint::SHORTEST) }
    }

    fn may_enter(&self, id: JobId, job: &Job, is_fed: &dyn Fn(&OperatingPoint) -> bool) -> bool {
        is_fed(&self.thriftiest(id, job).point)
    }

    fn thriftiest(&self, id: JobId, job: &Job) -> Way {
        Way::at(self.point(id, job.requested, (0, 0)))
    }

    fn offers(&self, id: JobId, job: &Job, point: &OperatingPoint) -> bool {
        let place = self.place(id, point);
        place.is_some_and(|place| self.point(id, job.requested, place) == *point)
    }

    fn moving_time(&self, _id: JobId, job: &Job, from: u32, to: u32) -> Span {
        let megabytes = f64::from(job.nodes.min(self.most)) * MEGABYTES_PER_NODE;
        // Numbers of nodes are above zero, and no machine is so large that this fails.
        self.resizing.time(megabytes, from, to).unwrap_or(Span::FOREVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Instant, Watts};

    fn machine(nodes: u32) -> Machine {
        Machine::of_processors(nodes).unwrap()
    }

    fn job(nodes: u32, seconds: u32) -> Job {
        Job::new(1, Instant::ZERO, nodes, Span::from_secs(seconds))
    }

    fn testbed() -> Feed {
        let caps = [30, 32, 34, 39, 45, 55].map(Watts::from_watts);
        Feed::new(Watts::from_watts(56), caps.to_vec(), Watts::from_watts(60)).unwrap()
    }

    fn model(nodes: u32, kind: Kind, jobs: &[Job]) -> Elastic {
        Elastic::of_kinds(&machine(nodes), testbed(), &vec![kind; jobs.len()], jobs)
    }

    const KIND: Kind =
        Kind { application: Application::JACOBI2D, parallelism: 2.0, variation: 0.0 };

    /// At the nodes it asks for and a cap that costs nothing, a job takes what its user says and
    /// draws its cap and the base on each node. With a parallelism of twice the nodes and no
    /// variation it is twice as fast on twice the nodes. Under 32 W Jacobi2D takes 1 / (1 − 0.08)
    /// times as long.
    #[test]
    fn points_by_hand() {
        let jobs = [job(8, 920)];
        let model = model(38, KIND, &jobs);
        let nominal = model.nominal(JobId(0), &jobs[0]);
        assert_eq!((nominal.nodes, nominal.time), (8, Span::from_secs(920)));
        assert_eq!(nominal.cap, Watts::from_watts(111));
        assert_eq!(nominal.power, Watts::from_watts(888));
        let menu = model.menu(JobId(0), &jobs[0]);
        let at = |nodes: u32, watts: u32| {
            let cap = Watts::from_watts(watts + 56);
            *menu.iter().find(|point| point.nodes == nodes && point.cap == cap).unwrap()
        };
        assert_eq!(at(16, 55).time, Span::from_secs(460));
        assert_eq!(at(4, 45).time, Span::from_secs(1840));
        assert_eq!(at(8, 32).time, Span::from_secs(1000));
        assert_eq!(menu.len(), 36);
        let all = |nodes: u32| menu.iter().filter(move |point| point.nodes == nodes).count();
        assert_eq!([4, 6, 8, 10, 12, 16].map(all), [6; 6]);
        for point in menu.iter() {
            assert!(model.offers(JobId(0), &jobs[0], point));
            let run_time = Span::from_secs(92);
            let outcome = model.outcome(JobId(0), &jobs[0], run_time, point);
            assert_eq!(outcome.power, point.power);
            // A tenth of the time asked for, at every point.
            assert!(outcome.run_time.millis().abs_diff(point.time.millis() / 10) <= 1);
        }
        let other = OperatingPoint { time: Span::from_secs(1), ..nominal };
        assert!(!model.offers(JobId(0), &jobs[0], &other));
    }

    /// More nodes or a higher cap never take longer.
    #[test]
    fn more_is_never_slower() {
        for application in Application::ALL {
            for parallelism in PARALLELISMS {
                for variation in VARIATIONS {
                    let jobs = [job(10, 1000)];
                    let model = model(38, Kind { application, parallelism, variation }, &jobs);
                    let menu = model.menu(JobId(0), &jobs[0]);
                    for one in menu.iter() {
                        for other in menu.iter() {
                            let is_more = one.nodes <= other.nodes && one.cap <= other.cap;
                            assert!(!is_more || one.time >= other.time, "{one:?} {other:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn nobody_runs_on_more_nodes_than_there_are() {
        assert_eq!(counts(NonZeroU32::new(30).unwrap(), 38), [15, 23, 30, 38]);
        assert_eq!(counts(NonZeroU32::new(1).unwrap(), 38), [1, 2]);
        assert_eq!(counts(NonZeroU32::new(60).unwrap(), 38), [30]);
        assert_eq!(counts(NonZeroU32::new(100).unwrap(), 38), [100]);
        let jobs = [job(60, 100), job(100, 100)];
        let model = model(38, KIND, &jobs);
        assert_eq!(model.nominal(JobId(0), &jobs[0]).nodes, 30);
        assert_eq!(model.footprint(JobId(1), &jobs[1]).nodes, 100);
    }

    #[test]
    fn as_asked_means_as_asked() {
        let jobs = [job(8, 920), job(60, 100)];
        let model = model(38, KIND, &jobs).as_asked();
        let menu = model.menu(JobId(0), &jobs[0]);
        assert!(menu.iter().all(|point| point.nodes == 8));
        assert_eq!(menu.len(), 6);
        assert_eq!(model.footprint(JobId(1), &jobs[1]).nodes, 60, "more than there are");
    }

    #[test]
    fn moving_takes_time_only_if_nodes_change() {
        let jobs = [job(8, 920)];
        let model = model(38, KIND, &jobs);
        assert_eq!(model.moving_time(JobId(0), &jobs[0], 8, 8), Span::ZERO);
        // 72.73 s and 8 × 0.01904 s to boot; half of 4096 MB over 2 × 4 links of 425 MB/s.
        let expected = 72.73 + 8.0 * 0.01904 + 2048.0 / (8.0 * 425.0);
        let time = model.moving_time(JobId(0), &jobs[0], 8, 16).secs_f64();
        assert!((time - expected).abs() < 0.002, "{time} {expected}");
        assert!(model.moving_time(JobId(0), &jobs[0], 16, 8) < Span::from_secs(1), "no boot");
    }
}
