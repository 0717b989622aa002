//! A job of a dump, as the columns that the parsable form would have.

use super::super::super::collector::{Collector, Steps};
use super::super::super::error::Defect;
use super::super::super::quantity::among;
use super::super::heading::{COLUMNS, Column};
use super::super::{Record, known_energy, read_id, step_of};
use super::shape::Share;
use super::value::Words;

/// A job, with what has been read of it so far. It is used for one job after another.
#[derive(Default)]
pub(super) struct Job {
    pub(super) columns: [Vec<u8>; COLUMNS],
    pub(super) array: ArrayOfJob,
    pub(super) state: Words,
    /// The resource that is being read, and the step.
    pub(super) resource: Resource,
    pub(super) step: StepOfJob,
    /// The steps that have been read.
    steps: Steps,
}

/// The array that a job is a task of; the number is zero for a job of its own.
#[derive(Default)]
pub(super) struct ArrayOfJob {
    pub(super) job: Vec<u8>,
    pub(super) task: Vec<u8>,
}

/// A resource that was given to a job or asked for.
#[derive(Default)]
pub(super) struct Resource {
    pub(super) kind: Vec<u8>,
    pub(super) name: Vec<u8>,
    pub(super) count: Vec<u8>,
}

/// What is known of a step.
#[derive(Default)]
pub(super) struct StepOfJob {
    pub(super) id: Vec<u8>,
    pub(super) energy: Vec<u8>,
}

impl Job {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
        self.array.job.clear();
        self.array.task.clear();
        self.state.clear();
        self.steps = Steps::default();
        self.clear_part();
    }

    /// Forgets the resource and the step that were read last.
    pub(super) fn clear_part(&mut self) {
        let (resource, step) = (&mut self.resource, &mut self.step);
        let Resource { kind, name, count } = resource;
        let all = [kind, name, count, &mut step.id, &mut step.energy];
        all.into_iter().for_each(Vec::clear);
    }

    /// Keeps the resource that has been read.
    pub(super) fn end_resource(&mut self, share: Share) {
        let Resource { kind, name, count } = std::mem::take(&mut self.resource);
        match name.is_empty() {
            true => self.keep(share, &kind, &count),
            false => self.list(share, &[&kind, b"/".as_slice(), &name].concat(), &count),
        }
        self.resource = Resource { kind, name, count };
    }

    /// Keeps resources that are written as a text, `cpu=4,node=1`.
    pub(super) fn keep_listed(&mut self, share: Share, list: &[u8]) {
        for kind in [b"cpu".as_slice(), b"node", b"energy"] {
            if let Some(count) = among(list, kind) {
                self.keep(share, kind, count);
            }
        }
        let others = list.split(|byte| *byte == b',');
        for other in
            others.filter(|other| other.starts_with(b"gres/gpu") || other.starts_with(b"mem="))
        {
            if let Some(equals) = memchr::memchr(b'=', other) {
                self.list(share, &other[..equals], &other[equals + 1..]);
            }
        }
    }

    /// Adds a resource to those that are listed in one column.
    fn list(&mut self, share: Share, kind: &[u8], count: &[u8]) {
        let column = match share {
            Share::Allocated => Column::AllocTres,
            Share::Requested => Column::ReqTres,
        };
        let list = &mut self.columns[column as usize];
        [kind, b"=", count, b","].iter().for_each(|part| list.extend_from_slice(part));
    }

    fn keep(&mut self, share: Share, kind: &[u8], count: &[u8]) {
        let column = match (share, kind) {
            (Share::Allocated, b"cpu") => Column::AllocCpus,
            (Share::Allocated, b"node") => Column::NNodes,
            (Share::Allocated, b"energy") => Column::ConsumedEnergyRaw,
            (share, b"mem") => return self.list(share, kind, count),
            // What was asked for counts where nothing else is known.
            (Share::Requested, b"cpu") => return self.fill(Column::ReqCpus, count),
            _ => return,
        };
        let found = &mut self.columns[column as usize];
        found.clear();
        found.extend_from_slice(count);
    }

    fn fill(&mut self, column: Column, text: &[u8]) {
        let found = &mut self.columns[column as usize];
        if found.is_empty() {
            found.extend_from_slice(text);
        }
    }

    /// Keeps the step that has been read.
    pub(super) fn end_step(&mut self) {
        let StepOfJob { id, energy } = &self.step;
        // `17.batch` in newer versions of Slurm, `batch` in older ones.
        let name = memchr::memrchr(b'.', id).map_or(0, |dot| dot + 1);
        let joules = known_energy(energy).unwrap_or(0);
        self.steps.add(step_of(&id[name..]), joules);
    }

    /// Hands the job and its steps on. The answer is why the job cannot be used, if that is so.
    pub(super) fn take(&mut self, into: &mut Collector) -> Result<(), Defect> {
        into.intake.records += 1 + self.steps.count();
        self.columns[Column::State as usize].extend_from_slice(self.state.chosen());
        let ArrayOfJob { job, task } = &self.array;
        if !task.is_empty() && job != b"0" {
            self.columns[Column::JobId as usize] = [job, b"_".as_slice(), task].concat();
        }
        let times = [Column::Submit, Column::Eligible, Column::Start, Column::End];
        let has_times = times.iter().any(|column| !self.columns[*column as usize].is_empty());
        for column in times {
            let text = &mut self.columns[column as usize];
            // Where there is no such time, Slurm writes zero.
            if text == b"0" {
                text.clear();
            }
        }
        // Some versions write the name of a reservation as a number.
        let reservation = &mut self.columns[Column::Reservation as usize];
        if reservation == b"0" {
            reservation.clear();
        }
        let record = Record { fields: self.columns.each_ref().map(Vec::as_slice) };
        let taken = match has_times {
            true => record.take(into),
            // So it is with the jobs that other commands of Slurm print.
            false => {
                Err(Defect::Form("the job has no times: this is not what 'sacct --json' prints"))
            }
        };
        let id = read_id(record.field(Column::JobIdRaw)).ok().flatten();
        match id {
            Some(id) => into.take_steps(id, self.steps),
            None => into.take_lost_steps(self.steps),
        }
        taken
    }
}
