//! The belief about jobs on named nodes, each with a separate cap.

use std::sync::Arc;

use crate::belief::Choices;
use crate::freedom::{Freedom, Freedoms};
use crate::job::Job;
use crate::model::{Caps, Footprint, Menu, Model, OperatingPoint, Outcome, Rung, Varied};
use crate::units::{JobId, Share, Span};
use crate::world::{Assignment, Held, World};

/// A curve for each node. Speeds add up, as if work went to whoever is ready for it and scaled perfectly;
/// if the world is known, what it says of a choice of nodes and caps counts instead.
#[derive(Clone, Debug)]
pub(crate) struct OnNamed {
    curves: Varied,
    /// How much of the believed time a job gets as its limit.
    margin: Share,
    known: Option<Arc<World>>,
    /// What is allowed.
    freedoms: Freedoms,
    /// The cores of a node.
    cores: u32,
    assigned: Assignment,
}

impl OnNamed {
    /// Curves, and nothing else.
    pub(crate) fn new(curves: Varied, choices: &Choices, assigned: Assignment) -> Self {
        let (margin, freedoms, cores) = (Share::percent(100), choices.freedoms, choices.cores);
        OnNamed { curves, margin, known: None, freedoms, cores, assigned }
    }

    /// The same, where a job gets so much of its believed time as its limit.
    pub(crate) fn with_margin(self, margin: Share) -> Self {
        OnNamed { margin, ..self }
    }

    /// Curves to choose by, and the world to say what comes of a choice.
    pub(crate) fn in_world(self, world: Arc<World>) -> Self {
        OnNamed { known: Some(world), ..self }
    }
}

impl Model for OnNamed {
    fn nominal(&self, id: JobId, job: &Job) -> OperatingPoint {
        OperatingPoint { cores: self.cores, ..self.curves.nominal(id, job) }
    }

    fn learn(&mut self, id: JobId, job: &Job) {
        let application = self.assigned.learn(id, job);
        self.curves.assign(id, application);
    }

    fn menu(&self, id: JobId, job: &Job) -> Menu {
        Menu::new(self.nominal(id, job), [])
    }

    fn outcome(&self, id: JobId, job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        self.curves.outcome(id, job, run_time, point)
    }

    fn rungs(&self) -> &[Rung] {
        self.curves.rungs()
    }

    fn footprint(&self, id: JobId, job: &Job) -> Footprint {
        let least = self.curves.footprint(id, job);
        match self.freedoms(id, job).has(Freedom::Sizes) {
            true => least,
            false => Footprint { nodes: job.nodes, ..least },
        }
    }

    fn freedoms(&self, id: JobId, _job: &Job) -> Freedoms {
        self.freedoms & self.assigned.shape(id).allows()
    }

    fn may_enter(&self, id: JobId, job: &Job, is_fed: &dyn Fn(&OperatingPoint) -> bool) -> bool {
        self.curves.may_enter(id, job, is_fed)
    }

    fn on(&self, id: JobId, job: &Job, caps: &Caps) -> Option<OperatingPoint> {
        if caps.iter().count() != job.nodes as usize && !self.freedoms(id, job).has(Freedom::Sizes)
        {
            return None;
        }
        let point = OperatingPoint { cores: self.cores, ..self.curves.on(id, job, caps)? };
        let time = match &self.known {
            None => self.margin.of_span(point.time),
            Some(world) => {
                world.outcome(id, job, job.requested, &point, Held::Capped(caps)).run_time
            }
        };
        let time = time.max(OperatingPoint::SHORTEST);
        (time < Span::FOREVER).then_some(OperatingPoint { time, ..point })
    }

    fn outcome_on(
        &self,
        id: JobId,
        job: &Job,
        run_time: Span,
        point: &OperatingPoint,
        caps: &Caps,
    ) -> Outcome {
        self.curves.outcome_on(id, job, run_time, point, caps)
    }

    fn believed(&self, _id: JobId, _job: &Job, point: &OperatingPoint) -> Span {
        self.margin.whole(point.time)
    }

    fn varied(&self) -> Option<&Varied> {
        Some(&self.curves)
    }
}
