//! Which application each job runs.
//!
//! The numbers of executables in logs name nothing. Where nobody says what they stand for, an application
//! is drawn from a `Mix`, by the seed and the executable, or by the user and the size of the request
//! where there is no executable: the same program is always the same application.

use crate::freedom::{Freedom, Freedoms};
use crate::job::Job;
use crate::mixing::mixed;
use crate::model::Beta;
use crate::units::JobId;

/// How common applications are: each with a weight, by its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mix(Vec<(usize, u32)>);

/// Why weights are no mix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAMix {
    /// Nothing is ever drawn.
    #[error("a mix needs an application with a weight above 0")]
    Nothing,
    /// There is no such application.
    #[error("a mix has application {number}, but there are {count}")]
    Unknown {
        /// The number of the job that has no application.
        number: usize,
        /// Their number.
        count: usize,
    },
}

impl Mix {
    /// A mix of applications, of which there are `count`.
    ///
    /// # Errors
    ///
    /// If no weight is above zero, or an application does not exist.
    pub(crate) fn new(weights: Vec<(usize, u32)>, count: usize) -> Result<Self, NotAMix> {
        if let Some((number, _)) = weights.iter().find(|(number, _)| *number >= count) {
            return Err(NotAMix::Unknown { number: *number, count });
        }
        match weights.iter().any(|(_, weight)| *weight > 0) {
            true => Ok(Mix(weights)),
            false => Err(NotAMix::Nothing),
        }
    }

    /// The application that some random bits stand for.
    fn draw(&self, bits: u64) -> usize {
        let total: u64 = self.0.iter().map(|(_, weight)| u64::from(*weight)).sum();
        // The upper half of the product is even over the weights.
        let mut left = ((u128::from(bits) * u128::from(total)) >> 64) as u64;
        for (number, weight) in &self.0 {
            let weight = u64::from(*weight);
            if left < weight {
                return *number;
            }
            left -= weight;
        }
        self.0[0].0
    }
}

/// What a job puts up with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// It runs on the nodes it asks for.
    Rigid,
    /// It may start on others.
    Moldable,
    /// Its nodes may also change while it runs.
    #[default]
    Malleable,
}

impl Shape {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Rigid => "rigid",
            Shape::Moldable => "moldable",
            Shape::Malleable => "malleable",
        }
    }

    /// What may be done to such a job, if anything may be done to jobs.
    pub(crate) fn allows(self) -> Freedoms {
        use Freedom::{Caps, Drops, Nodes, Recaps, Resizes, Sizes};
        match self {
            Shape::Rigid => Freedoms::of(&[Caps, Recaps, Nodes, Drops]),
            Shape::Moldable => Freedoms::of(&[Caps, Recaps, Nodes, Drops, Sizes]),
            Shape::Malleable => Freedoms::of(&[Caps, Recaps, Nodes, Drops, Sizes, Resizes]),
        }
    }

    /// The shape that some random bits stand for: a quarter of all programs are rigid, and a quarter of
    /// the others are malleable.
    fn drawn(bits: u64) -> Self {
        match bits >> 60 {
            0..4 => Shape::Rigid,
            4..7 => Shape::Malleable,
            _ => Shape::Moldable,
        }
    }
}

/// Which application each job runs, and how much its time depends on frequency where its law leaves that
/// to the job, and what it puts up with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// By job; all run the first one if there are none.
    applications: Vec<u16>,
    /// By job; all depend on it fully if there are none.
    betas: Vec<Beta>,
    /// By job; all put up with anything if there are none.
    shapes: Vec<Shape>,
    /// Where jobs come that are not known yet.
    open: Option<Open>,
}

/// What jobs run that come later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    /// So many applications have numbers, from 1 on.
    count: u16,
    /// The place of the one that is run by who does not say a number.
    unknown: u16,
}

impl Assignment {
    /// No job is known yet. One that comes says by its number which of so many applications it runs, from 1 on,
    /// or runs the one in the place `unknown`. If it can run on one number of nodes alone, it is rigid.
    pub(crate) fn open(count: usize, unknown: usize) -> Self {
        let (count, unknown) = (count as u16, unknown as u16);
        Assignment { open: Some(Open { count, unknown }), ..Assignment::default() }
    }

    /// Takes in a job that was not known, and says which application it runs.
    pub(crate) fn learn(&mut self, id: JobId, job: &Job) -> usize {
        if let Some(Open { count, unknown }) = self.open {
            if id.index() >= self.applications.len() {
                self.applications.resize(id.index() + 1, unknown);
            }
            let place = job.application.map(|number| number.0.get() - 1);
            let known = place.filter(|place| *place < u32::from(count));
            self.applications[id.index()] = known.map_or(unknown, |place| place as u16);
            self.shapes.resize(self.applications.len(), Shape::default());
            self.shapes[id.index()] = match job.terms.nodes {
                Some(range) if range.fewest() == range.most() => Shape::Rigid,
                _ => Shape::Malleable,
            };
        }
        self.application(id)
    }

    /// Every job runs the first application.
    pub fn one() -> Self {
        Assignment::default()
    }

    /// Jobs run these applications, by their numbers.
    pub fn of(applications: Vec<u16>) -> Self {
        Assignment { applications, ..Assignment::default() }
    }

    /// Draws an application for each job.
    pub(crate) fn drawn(jobs: &[Job], mix: &Mix, seed: u64) -> Self {
        let applications = jobs.iter().map(|job| mix.draw(program(job, seed)) as u16);
        Assignment::of(applications.collect())
    }

    /// The same, with what each job puts up with drawn, too; a program always puts up with the same.
    pub(crate) fn with_drawn_shapes(self, jobs: &[Job], seed: u64) -> Self {
        let shapes = jobs.iter().map(|job| Shape::drawn(mixed(program(job, seed))));
        Assignment { shapes: shapes.collect(), ..self }
    }

    /// What a job puts up with.
    #[inline]
    pub fn shape(&self, job: JobId) -> Shape {
        self.shapes.get(job.index()).copied().unwrap_or_default()
    }

    /// The same, with how much the time of each job depends on frequency.
    #[cfg(test)]
    pub(crate) fn with_betas(self, betas: Vec<Beta>) -> Self {
        Assignment { betas, ..self }
    }

    /// The application of a job, by its number.
    #[inline]
    pub(crate) fn application(&self, job: JobId) -> usize {
        self.applications.get(job.index()).map_or(0, |number| usize::from(*number))
    }

    /// How much the time of a job depends on frequency.
    #[inline]
    pub(crate) fn beta(&self, job: JobId) -> Beta {
        self.betas.get(job.index()).copied().unwrap_or(Beta::FULL)
    }
}

/// Random bits that are the same for all runs of a program.
fn program(job: &Job, seed: u64) -> u64 {
    let name = match (job.application, job.user) {
        (Some(application), _) => [1, u64::from(application.0.get()), 0],
        (None, user) => [2, user.map_or(0, |user| u64::from(user.0.get())), u64::from(job.nodes)],
    };
    name.iter().fold(mixed(seed), |bits, part| mixed(bits ^ part))
}
