//! Elastic jobs: any of several numbers of nodes under any of several caps, as PASS says.
//!
//! A job runs one of PARM's applications. Its time grows under a [cap](super::pass::Throttling) and
//! falls with [nodes](super::pass::Scaling), each against the nodes its user asks for without a cap:
//! there it takes as long as the log says. A node draws its cap and what everything but the
//! processor draws. Which of the points a job may have at its start, and whether it may change while
//! it runs, is the policy's business.
//!
//! Logs do not say how their jobs scale. [`Kind`]s are drawn from a seed: the application, the average
//! parallelism as a multiple of the nodes asked for, and its variation. Of a job that nobody drew
//! anything for the most cautious is believed (`Kind::cautious`).

use std::borrow::Cow;
use std::collections::HashMap;
use std::num::NonZeroU32;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use crate::job::{Job, NodeRange};
use crate::machine::Machine;
use crate::model::pass::{Application, Resizing};
use crate::model::{Footprint, Menu, Model, OperatingPoint, Outcome, Rung, Stretch, TimedPoint};
use crate::units::{JobId, Span, Watts};

mod grid;
mod node_caps;
#[cfg(test)]
mod tests;

use grid::Grid;
pub use grid::Kind;
pub use node_caps::NodeCaps;

/// The numbers of nodes a job may run on, as multiples of what it asks for, in quarters: from half
/// to twice of it.
pub(crate) const QUARTERS: [u32; 6] = [2, 3, 4, 5, 6, 8];

/// Average parallelisms that are drawn, as multiples of the nodes asked for, and variations.
const PARALLELISMS: [f64; 4] = [1.0, 1.5, 2.0, 3.0];
const VARIATIONS: [f64; 3] = [0.0, 0.5, 1.0];

/// Jobs that run on several numbers of nodes under several caps.
#[derive(Clone, Debug)]
pub struct Elastic {
    feed: NodeCaps,
    cores: u32,
    /// Nodes of the machine: nobody runs on more.
    most: u32,
    grids: Vec<Grid>,
    /// The grid of each job.
    places: HashMap<Key, u32>,
    /// The grid of each job; [`UNKNOWN`] for those in between that nobody spoke of.
    grid_of: Vec<u32>,
    /// Whether jobs run on the nodes they ask for alone.
    is_as_asked: bool,
    resizing: Resizing,
    rungs: [Rung; 1],
}

/// A job without a grid.
const UNKNOWN: u32 = u32::MAX;

/// What jobs have in common that have the same grid: application, parallelism, variation, the nodes asked
/// for, and those they can run on.
type Key = (&'static str, u64, u64, u32, Option<NodeRange>);

fn key(kind: &Kind, job: &Job) -> Key {
    let Kind { application, parallelism, variation } = kind;
    (application.name, parallelism.to_bits(), variation.to_bits(), job.nodes, job.terms.nodes)
}

impl Elastic {
    /// Jobs on a machine whose nodes are fed like this. Their applications are drawn from `mix`,
    /// all of them equally likely, and how they scale is drawn, too.
    pub fn new(
        machine: &Machine,
        feed: NodeCaps,
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
    pub fn of_kinds(machine: &Machine, feed: NodeCaps, kinds: &[Kind], jobs: &[Job]) -> Self {
        let mut model = Elastic {
            cores: machine.processors_per_node,
            most: machine.nodes,
            grids: Vec::new(),
            places: HashMap::new(),
            grid_of: Vec::with_capacity(jobs.len()),
            is_as_asked: false,
            resizing: Resizing::ASSUMED,
            rungs: [Rung::alike(feed.node_power(0), Stretch::NONE)],
            feed,
        };
        for (kind, job) in kinds.iter().zip(jobs) {
            let place = model.place_of(kind, job);
            model.grid_of.push(place);
        }
        model
    }

    /// Where the grid of a job of this kind is.
    fn place_of(&mut self, kind: &Kind, job: &Job) -> u32 {
        let key = key(kind, job);
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        let place = self.grids.len() as u32;
        self.grids.push(self.grid_for(kind, job));
        self.places.insert(key, place);
        place
    }

    /// The grid of a job of this kind.
    fn grid_for(&self, kind: &Kind, job: &Job) -> Grid {
        let asked = NonZeroU32::new(job.nodes).unwrap_or(NonZeroU32::MIN);
        match self.is_as_asked {
            true => Grid::new(kind, &self.feed, asked.get(), &[asked.get()]),
            false => {
                let counts = counts(asked, self.most, job.terms.nodes);
                Grid::new(kind, &self.feed, asked.get(), &counts)
            }
        }
    }

    /// The same jobs, on the nodes they ask for alone; their caps may still be any.
    pub fn as_asked(mut self) -> Self {
        for grid in &mut self.grids {
            *grid = grid.as_asked(&self.feed);
        }
        self.is_as_asked = true;
        self
    }

    /// The same jobs, where it costs this to change their numbers of nodes.
    pub fn resizing(self, resizing: Resizing) -> Self {
        Elastic { resizing, ..self }
    }

    /// The grid of a job; that of an unknown job is synthetic, the same as if it were learned.
    fn grid(&self, id: JobId, job: &Job) -> Cow<'_, Grid> {
        let place = self.grid_of.get(id.index()).copied().unwrap_or(UNKNOWN);
        match self.grids.get(place as usize) {
            Some(grid) => Cow::Borrowed(grid),
            None => Cow::Owned(self.grid_for(&Kind::cautious(job), job)),
        }
    }

    /// A job on one of its numbers of nodes under one of the caps.
    fn point(&self, grid: &Grid, requested: Span, place: (usize, usize)) -> OperatingPoint {
        let nodes = grid.nodes()[place.0];
        let time = grid.time(place, requested);
        OperatingPoint::new(nodes, self.cores, self.feed.node_power(place.1), time)
    }

    /// Which number of nodes and which cap a point has.
    fn place(&self, grid: &Grid, point: &OperatingPoint) -> Option<(usize, usize)> {
        let nodes = grid.nodes().binary_search(&point.nodes).ok()?;
        Some((nodes, self.feed.place(point.cap)?))
    }

    fn points(&self, grid: &Grid, requested: Span) -> impl Iterator<Item = OperatingPoint> {
        let caps = self.feed.caps().len();
        let places =
            (0..grid.nodes().len()).flat_map(move |nodes| (0..caps).map(move |cap| (nodes, cap)));
        places.map(move |place| self.point(grid, requested, place))
    }

    /// The place of the nodes a job asks for: the next larger number it can have, or the largest.
    fn asked(grid: &Grid, job: &Job) -> usize {
        grid.nodes().partition_point(|count| *count < job.nodes).min(grid.nodes().len() - 1)
    }
}

/// The numbers of nodes a job that asks for so many may run on, ascending: of those in the range that its
/// user gives, if any, with both ends of the range. One that asks for more than there are, and could not
/// run on half of it, keeps what it asks for.
pub(crate) fn counts(asked: NonZeroU32, most: u32, range: Option<NodeRange>) -> Vec<u32> {
    let asked = asked.get();
    let multiples = QUARTERS.map(|quarters| {
        u32::try_from((u64::from(asked) * u64::from(quarters)).div_ceil(4)).unwrap_or(u32::MAX)
    });
    let is_within = |count: &u32| range.is_none_or(|range| range.contains(*count));
    let ends = range.map(|range| [range.fewest(), range.most().min(most).max(range.fewest())]);
    let all = multiples.into_iter().filter(is_within).chain(ends.into_iter().flatten());
    let mut counts: Vec<u32> = all.filter(|count| *count <= most).collect();
    counts.sort_unstable();
    counts.dedup();
    if counts.is_empty() { vec![range.map_or(asked, NodeRange::fewest)] } else { counts }
}

impl Model for Elastic {
    fn nominal(&self, id: JobId, job: &Job) -> OperatingPoint {
        let grid = self.grid(id, job);
        let place = (Elastic::asked(&grid, job), self.feed.caps().len() - 1);
        self.point(&grid, job.requested, place)
    }

    fn learn(&mut self, id: JobId, job: &Job) {
        if id.index() >= self.grid_of.len() {
            self.grid_of.resize(id.index() + 1, UNKNOWN);
        }
        if self.grid_of[id.index()] == UNKNOWN {
            self.grid_of[id.index()] = self.place_of(&Kind::cautious(job), job);
        }
    }

    fn menu(&self, id: JobId, job: &Job) -> Menu {
        let (grid, nominal) = (self.grid(id, job), self.nominal(id, job));
        Menu::new(nominal, self.points(&grid, job.requested).filter(|point| *point != nominal))
    }

    fn outcome(&self, id: JobId, job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        let grid = self.grid(id, job);
        let run_time = match self.place(&grid, point) {
            Some(place) => grid.time(place, run_time),
            None => run_time,
        };
        Outcome { run_time, power: point.power }
    }

    fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    fn footprint(&self, id: JobId, job: &Job) -> Footprint {
        let grid = self.grid(id, job);
        let shortest = self.points(&grid, job.requested).map(|point| point.time).min();
        let nodes = grid.nodes()[0];
        let time = shortest.unwrap_or(OperatingPoint::SHORTEST);
        Footprint { nodes, time, power: Watts::ZERO }
    }

    fn may_enter(&self, id: JobId, job: &Job, is_fed: &dyn Fn(&OperatingPoint) -> bool) -> bool {
        is_fed(&self.thriftiest(id, job).point)
    }

    fn thriftiest(&self, id: JobId, job: &Job) -> TimedPoint {
        TimedPoint::at(self.point(&self.grid(id, job), job.requested, (0, 0)))
    }

    fn offers(&self, id: JobId, job: &Job, point: &OperatingPoint) -> bool {
        let grid = self.grid(id, job);
        let place = self.place(&grid, point);
        place.is_some_and(|place| self.point(&grid, job.requested, place) == *point)
    }

    fn moving_time(&self, _id: JobId, job: &Job, from: u32, to: u32) -> Span {
        self.resizing.time_of_job(job.nodes.min(self.most), from, to)
    }
}
