//! Models: how a job may run and what then happens.
//!
//! A model turns a job into a [`Menu`] of [`OperatingPoint`]s; a policy picks one. What the pick
//! leads to is the model's [`Outcome`].

use std::borrow::Cow;

use crate::job::Job;
use crate::units::{Span, Watts};

mod rigid;

pub use rigid::Rigid;

/// One way to run a job: what it holds, for how long at most, and what it draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatingPoint {
    /// Nodes it holds.
    pub nodes: u32,
    /// The most each of them may draw.
    pub cap: Watts,
    /// How long the job is believed to hold them; its limit. At least
    /// [`OperatingPoint::SHORTEST`].
    pub time: Span,
    /// What all of them draw together.
    pub power: Watts,
}

impl OperatingPoint {
    /// Even a job with nothing to do needs its nodes for a moment: a reservation of no length
    /// at all would keep nobody from taking them.
    pub const SHORTEST: Span = Span::from_millis(1);
}

/// What really happens to a job at an operating point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How long it would run if nothing stopped it.
    pub run_time: Span,
    /// What it draws.
    pub power: Watts,
}

/// The ways a job may run, nominal first; never empty.
#[derive(Clone, Debug)]
pub enum Menu<'m> {
    /// A rigid job: take it or leave it.
    One(OperatingPoint),
    /// A choice, kept by the model or worked out for the job.
    Many(Cow<'m, [OperatingPoint]>),
}

impl Menu<'_> {
    /// The points, nominal first.
    pub fn points(&self) -> &[OperatingPoint] {
        match self {
            Menu::One(point) => std::slice::from_ref(point),
            Menu::Many(points) => points,
        }
    }
}

/// How jobs respond to nodes, frequency and power.
pub trait Model: Sync {
    /// The point a user means by the request alone: the nodes asked for, unthrottled.
    fn nominal(&self, job: &Job) -> OperatingPoint;

    /// Every way `job` may run, the nominal one first.
    fn menu(&self, job: &Job) -> Menu<'_>;

    /// What happens to `job`, which runs for `run_time` at its nominal point, when it runs at
    /// `point` instead.
    fn outcome(&self, job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome;

    /// The least of each resource over the job's menu: whatever does not offer this much cannot
    /// run the job at any point.
    fn footprint(&self, job: &Job) -> Footprint {
        let menu = self.menu(job);
        let points = menu.points();
        let least = |f: fn(&OperatingPoint) -> u64| points.iter().map(f).min().unwrap_or(0);
        Footprint {
            nodes: points.iter().map(|point| point.nodes).min().unwrap_or(0),
            time: Span::from_millis(least(|point| point.time.millis())),
            power: Watts::from_milliwatts(least(|point| point.power.milliwatts())),
        }
    }

    /// No job draws less than this a node at any point of its menu; at least a milliwatt.
    fn least_node_power(&self) -> Watts {
        Watts::from_milliwatts(1)
    }

    /// Whether `point` is on the job's menu.
    fn offers(&self, job: &Job, point: &OperatingPoint) -> bool {
        self.menu(job).points().contains(point)
    }
}

/// The least of each resource a job can run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Fewest nodes.
    pub nodes: u32,
    /// Shortest believed time.
    pub time: Span,
    /// Least power.
    pub power: Watts,
}
