//! Goes through a dump along its shape, and fills one job after another.

use std::cell::Cell;
use std::rc::Rc;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess};

use super::super::super::collector::Collector;
use super::super::super::error::Defect;
use super::job::Job;
use super::shape::{JOB, Members, RESOURCE, STEP, Shape, Share};
use super::value::{Any, Key, Take, Text};

/// What a dump is read into.
pub(super) struct Dump<'a> {
    pub(super) into: &'a mut Collector,
    is_strict: bool,
    /// The line that is being read, from 1.
    pub(super) line: Rc<Cell<usize>>,
    /// Whether there was a list of jobs.
    pub(super) has_jobs: bool,
    /// The defect that ended the reading, and the line at which its job begins.
    pub(super) stopped: Option<(usize, Defect)>,
    job: Job,
}

impl<'a> Dump<'a> {
    pub(super) fn new(into: &'a mut Collector, is_strict: bool, line: Rc<Cell<usize>>) -> Self {
        Dump { into, is_strict, line, has_jobs: false, stopped: None, job: Job::default() }
    }

    /// Reads a whole dump.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        &mut self,
        json: D,
    ) -> Result<(), D::Error> {
        Any(&mut *self).deserialize(json)
    }
}

impl<'de> Take<'de> for &mut Dump<'_> {
    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(is_jobs) = object.next_key_seed(Key(|name: &str| name == "jobs"))? {
            match is_jobs {
                true => object.next_value_seed(Any(Jobs(&mut *self)))?,
                false => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The jobs of a dump.
struct Jobs<'a, 'b>(&'a mut Dump<'b>);

impl<'de> Take<'de> for Jobs<'_, '_> {
    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.0.has_jobs = true;
        while list.next_element_seed(NextJob(&mut *self.0))?.is_some() {}
        Ok(())
    }
}

/// The next job of a dump.
struct NextJob<'a, 'b>(&'a mut Dump<'b>);

impl<'de> DeserializeSeed<'de> for NextJob<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, job: D) -> Result<(), D::Error> {
        let Dump { into, is_strict, line, stopped, job: found, .. } = self.0;
        let line = line.get();
        found.clear();
        Any(Inside { members: JOB, job: found }).deserialize(job)?;
        match found.take(into) {
            Ok(()) => Ok(()),
            Err(defect) if *is_strict => {
                *stopped = Some((line, defect));
                // Nobody sees this: the defect is told instead.
                Err(D::Error::custom("the record cannot be used"))
            }
            Err(defect) => {
                into.intake.skip(&defect);
                Ok(())
            }
        }
    }
}

/// An object in a job, of which some members are used.
struct Inside<'a> {
    members: Members,
    job: &'a mut Job,
}

impl<'de> Take<'de> for Inside<'_> {
    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let Inside { members, job } = self;
        let find = |name: &str| {
            let found = members.iter().find(|(known, _)| *known == name);
            found.map(|(_, shape)| shape)
        };
        while let Some(shape) = object.next_key_seed(Key(find))? {
            let Some(shape) = shape else {
                object.next_value::<IgnoredAny>()?;
                continue;
            };
            match *shape {
                Shape::Object(members) => {
                    object.next_value_seed(Any(Inside { members, job: &mut *job }))?;
                }
                Shape::ArrayJob => object.next_value_seed(Any(Text(&mut job.array.job)))?,
                Shape::ArrayTask => object.next_value_seed(Any(Text(&mut job.array.task)))?,
                Shape::State => object.next_value_seed(Any(&mut job.state))?,
                Shape::Resources(share) => {
                    object.next_value_seed(Any(Resources { share, job: &mut *job }))?;
                }
                Shape::Steps => object.next_value_seed(Any(Steps(&mut *job)))?,
                Shape::Column(column) => {
                    object.next_value_seed(Any(Text(&mut job.columns[column as usize])))?;
                }
                Shape::ResourceKind => object.next_value_seed(Any(Text(&mut job.resource.kind)))?,
                Shape::ResourceName => object.next_value_seed(Any(Text(&mut job.resource.name)))?,
                Shape::ResourceCount => {
                    object.next_value_seed(Any(Text(&mut job.resource.count)))?;
                }
                Shape::StepId => object.next_value_seed(Any(Text(&mut job.step.id)))?,
                Shape::StepEnergy => object.next_value_seed(Any(Text(&mut job.step.energy)))?,
            }
        }
        Ok(())
    }
}

/// Resources of a job: a list of objects, or a text.
struct Resources<'a> {
    share: Share,
    job: &'a mut Job,
}

impl<'de> Take<'de> for Resources<'_> {
    fn text(self, text: &str) {
        self.job.keep_listed(self.share, text.as_bytes());
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Resources { share, job } = self;
        while list.next_element_seed(Part { members: RESOURCE, job: &mut *job })?.is_some() {
            job.end_resource(share);
        }
        Ok(())
    }
}

/// The steps of a job.
struct Steps<'a>(&'a mut Job);

impl<'de> Take<'de> for Steps<'_> {
    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Part { members: STEP, job: &mut *self.0 })?.is_some() {
            self.0.end_step();
        }
        Ok(())
    }
}

/// A part of a job of which there are several: a resource or a step.
struct Part<'a> {
    members: Members,
    job: &'a mut Job,
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, part: D) -> Result<(), D::Error> {
        let Part { members, job } = self;
        job.clear_part();
        Any(Inside { members, job }).deserialize(part)
    }
}
