//! What is believed of jobs on nodes of several kinds: each job is on nodes of one kind, and as long as it shares them with
//! others it has no caps of its own, because a cap is that of a whole node.

use std::sync::Arc;

use crate::freedom::Freedoms;
use crate::job::{Job, Tolerance};
use crate::model::{
    Caps, Footprint, Menu, Model, OperatingPoint, Outcome, Rung, TimedPoint, TimedPoints, Within,
};
use crate::seats::{Missing, Seat, Seats};
use crate::units::{JobId, Span, Watts};

/// The beliefs about all kinds of nodes.
pub(crate) struct Joined {
    /// By kind, of jobs that have whole nodes; and then the same of jobs that share them.
    parts: Vec<Box<dyn Model>>,
    seats: Arc<Seats>,
    rungs: Vec<Rung>,
}

impl Joined {
    /// What is believed of jobs that have whole nodes of each kind, and of jobs that share them.
    pub(crate) fn new(
        whole: Vec<Box<dyn Model>>,
        shared: Vec<Box<dyn Model>>,
        seats: Arc<Seats>,
    ) -> Self {
        let mut parts = whole;
        parts.extend(shared);
        let rungs = rungs(&parts);
        Joined { parts, seats, rungs }
    }

    /// What is believed of the nodes of a job. Who can be on none is turned away, whatever is believed of that.
    #[inline]
    fn of(&self, id: JobId) -> &dyn Model {
        let kinds = self.parts.len() / 2;
        let place = self
            .seats
            .of(id)
            .map_or(0, |seat| usize::from(seat.kind) + if seat.is_whole { 0 } else { kinds });
        &*self.parts[place]
    }
}

/// The least of what holds for any of them, at each place of the menus.
fn rungs(parts: &[Box<dyn Model>]) -> Vec<Rung> {
    let lesser = |one: Rung, other: Rung| Rung {
        node_power: one.node_power.min(other.node_power),
        stretch: one.stretch.min(other.stretch),
        // Whoever says nothing of the power of single jobs leaves open what a place of their menus takes of it.
        part: one.part.min(other.part),
        is_shortest: one.is_shortest && other.is_shortest,
    };
    let longest = parts.iter().map(|part| part.rungs().len()).max().unwrap_or(0);
    let least = |place: usize| {
        parts.iter().filter_map(|part| part.rungs().get(place).copied()).reduce(lesser)
    };
    (0..longest).filter_map(least).collect()
}

impl Model for Joined {
    fn take_seat(&mut self, seat: Result<Seat, Missing>) {
        Arc::make_mut(&mut self.seats).add(seat);
    }

    fn learn(&mut self, id: JobId, job: &Job) {
        self.parts.iter_mut().for_each(|part| part.learn(id, job));
        self.rungs = rungs(&self.parts);
    }

    fn nominal(&self, id: JobId, job: &Job) -> OperatingPoint {
        self.of(id).nominal(id, job)
    }

    fn menu(&self, id: JobId, job: &Job) -> Menu {
        self.of(id).menu(id, job)
    }

    fn ways(&self, id: JobId, job: &Job) -> TimedPoints {
        self.of(id).ways(id, job)
    }

    fn outcome(&self, id: JobId, job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        self.of(id).outcome(id, job, run_time, point)
    }

    fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    fn footprint(&self, id: JobId, job: &Job) -> Footprint {
        let least = self.of(id).footprint(id, job);
        match self.draws_differ() {
            true if least.power == Watts::ZERO => {
                Footprint { power: self.of(id).nominal(id, job).power, ..least }
            }
            true => least,
            false => Footprint { power: Watts::ZERO, ..least },
        }
    }

    fn fewest_nodes(&self, id: JobId, job: &Job) -> u32 {
        self.of(id).fewest_nodes(id, job)
    }

    fn may_enter(&self, id: JobId, job: &Job, is_fed: &dyn Fn(&OperatingPoint) -> bool) -> bool {
        self.of(id).may_enter(id, job, is_fed)
    }

    fn fastest(&self, id: JobId, job: &Job, nodes: u32, power: Watts) -> Option<TimedPoint> {
        self.of(id).fastest(id, job, nodes, power)
    }

    fn fastest_of(
        &self,
        id: JobId,
        job: &Job,
        accepts: &dyn Fn(&TimedPoint) -> bool,
    ) -> Option<OperatingPoint> {
        self.of(id).fastest_of(id, job, accepts)
    }

    fn fastest_within(
        &self,
        id: JobId,
        job: &Job,
        within: &Within,
        accepts: &dyn Fn(&TimedPoint) -> bool,
    ) -> Option<OperatingPoint> {
        self.of(id).fastest_within(id, job, within, accepts)
    }

    fn thriftiest(&self, id: JobId, job: &Job) -> TimedPoint {
        self.of(id).thriftiest(id, job)
    }

    fn unthrottled(&self, id: JobId, job: &Job, power: Watts) -> Option<TimedPoint> {
        self.of(id).unthrottled(id, job, power)
    }

    /// Jobs are alike only if they ask the same of the same nodes. Where numbers do not suffice for that, nobody is.
    fn alike(&self, id: JobId, job: &Job) -> u32 {
        let (shapes, shape) = (self.seats.shapes(), self.seats.of(id).map_or(0, |seat| seat.shape));
        let number = self.of(id).alike(id, job).checked_mul(shapes).filter(|_| shape < shapes);
        number.and_then(|number| number.checked_add(shape)).unwrap_or(u32::MAX - id.0)
    }

    fn longest_request(&self, id: JobId, job: &Job, way: &TimedPoint, limit: Span) -> Option<Span> {
        self.of(id).longest_request(id, job, way, limit)
    }

    fn least_request(
        &self,
        id: JobId,
        job: &Job,
        way: &TimedPoint,
        tolerance: Tolerance,
    ) -> Option<Span> {
        self.of(id).least_request(id, job, way, tolerance)
    }

    fn moving_time(&self, id: JobId, job: &Job, from: u32, to: u32) -> Span {
        self.of(id).moving_time(id, job, from, to)
    }

    fn on(&self, id: JobId, job: &Job, caps: &Caps) -> Option<OperatingPoint> {
        self.of(id).on(id, job, caps)
    }

    fn freedoms(&self, id: JobId, job: &Job) -> Freedoms {
        self.of(id).freedoms(id, job)
    }

    fn believed(&self, id: JobId, job: &Job, point: &OperatingPoint) -> Span {
        self.of(id).believed(id, job, point)
    }

    fn offers(&self, id: JobId, job: &Job, point: &OperatingPoint) -> bool {
        self.of(id).offers(id, job, point)
    }
}
