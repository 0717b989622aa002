//! What `sacct` prints in its parsable form: a heading, then a line for each job and each step of it.
//!
//! Columns may be any, in any order, as long as job, times and size are among them. A job that was put back into
//! the queue has a line for each of its runs (`sacct --duplicates`). [`json`] reads the other form, by the same rules.
//!
//! Lines are split here and not by the crate `csv`: the format has no quotes, a field of a name may contain anything, and of a
//! dump of a year only the columns that are needed are looked at.

mod heading;
pub(super) mod json;

pub(super) use heading::{Column, Heading};

use super::collector::{Collector, Step};
use super::entry::{Entry, Measured, State};
use super::error::{Defect, shown};
use super::id::Id;
use super::label::{Label, Notation};
use super::quantity::{among, count, mebibytes, scaled, seconds, whole};
use super::reader::{Read, Reader, Trouble};
use super::run::Ending;
use super::submit_line::SubmitLine;
use super::ties::Tie;
use heading::COLUMNS;

/// Reads lines of `sacct`.
#[derive(Debug, Default)]
pub(super) struct Sacct {
    heading: Option<Heading>,
}

impl Reader for Sacct {
    fn take(&mut self, line: &[u8], into: &mut Collector) -> Result<Read, Trouble> {
        // Dumps are put together, and each has its heading. A record begins with a digit most of the time.
        if (self.heading.is_none() || line.first().is_some_and(u8::is_ascii_alphabetic))
            && let Some(heading) = Heading::read(line)
        {
            heading.check().map_err(Trouble::Heading)?;
            self.heading = Some(heading);
            return Ok(Read::Heading);
        }
        let Some(heading) = &self.heading else {
            let why = "there is no heading; dump with 'sacct --parsable2' and without --noheader";
            return Err(Trouble::Heading(why.to_owned()));
        };
        let fields = heading.split(line)?;
        Record { fields }.take(into)?;
        Ok(Read::Record)
    }
}

/// The fields of a line that matter, by their columns; empty where there is no such column.
struct Record<'a> {
    fields: [&'a [u8]; COLUMNS],
}

/// What a line is about.
enum Subject {
    Job(Id),
    /// Tasks of an array that have not been told apart, since none of them has started.
    Tasks,
    Step(Id, Step),
}

impl<'a> Record<'a> {
    fn field(&self, column: Column) -> &'a [u8] {
        self.fields[column as usize]
    }

    /// The first of these columns that says something.
    fn first(&self, columns: &[Column]) -> &'a [u8] {
        let mut fields = columns.iter().map(|column| self.field(*column));
        fields.find(|field| !field.is_empty()).unwrap_or_default()
    }

    fn take(&self, into: &mut Collector) -> Result<(), Defect> {
        match self.subject()? {
            Subject::Tasks => {
                into.intake.skipped_never_started += 1;
                Ok(())
            }
            Subject::Step(id, step) => {
                into.take_step(id, step, self.energy().unwrap_or(0));
                Ok(())
            }
            Subject::Job(id) => {
                let mut entry = self.entry(id, into)?;
                let tie = self.tie(id, &mut entry);
                into.take_tied(&entry, tie)
            }
        }
    }

    fn subject(&self) -> Result<Subject, Defect> {
        let field = |text| Defect::Unreadable { field: "JobID", text: shown(text) };
        // The raw number tells the tasks of an array apart, and the components of a job.
        let text = self.first(&[Column::JobIdRaw, Column::JobId]);
        let (job, step) = match memchr::memchr(b'.', text) {
            Some(dot) => (&text[..dot], Some(&text[dot + 1..])),
            None => (text, None),
        };
        let Some(id) = read_id(job).map_err(|()| field(text))? else {
            return Ok(Subject::Tasks);
        };
        let Some(step) = step else { return Ok(Subject::Job(id)) };
        Ok(Subject::Step(id, step_of(step)))
    }

    fn entry(&self, id: Id, into: &mut Collector) -> Result<Entry<'a>, Defect> {
        let mut entry = Entry::new(Some(id), self.state()?);
        entry.label = Some(self.label(id));
        entry.start = into.time("Start", self.field(Column::Start))?;
        entry.end = into.time("End", self.field(Column::End))?;
        entry.submit = into.time("Submit", self.field(Column::Submit))?;
        if entry.submit.is_none() {
            entry.submit = into.time("Eligible", self.field(Column::Eligible))?;
            entry.is_submit_eligible = entry.submit.is_some();
        } else {
            // Nothing depends on it where it cannot be read.
            entry.eligible = into.time("Eligible", self.field(Column::Eligible)).unwrap_or(None);
        }
        if self.field(Column::NodeList) == b"None assigned" && entry.state != State::Running {
            entry.state = State::Waiting;
        }
        entry.elapsed = self.elapsed();
        entry.limit = self.limit();
        let allocated = self.field(Column::AllocTres);
        let requested = self.field(Column::ReqTres);
        let in_tres = |list, key| among(list, key).and_then(count);
        entry.processors = count(self.first(&[Column::AllocCpus, Column::NCpus]))
            .or_else(|| in_tres(allocated, b"cpu"))
            .or_else(|| count(self.field(Column::ReqCpus)))
            .or_else(|| in_tres(requested, b"cpu"));
        entry.nodes = count(self.field(Column::AllocNodes))
            .or_else(|| count(self.field(Column::NNodes)))
            .or_else(|| in_tres(allocated, b"node"))
            .or_else(|| in_tres(requested, b"node"));
        entry.user = self.field(Column::User);
        entry.group = self.first(&[Column::Account, Column::Group]);
        entry.job_name = self.field(Column::JobName);
        entry.queue = self.field(Column::Qos);
        entry.partition = self.field(Column::Partition);
        entry.node_list = self.field(Column::NodeList);
        entry.gpus = gpus(allocated).or_else(|| gpus(requested));
        entry.memory_mib = memory(allocated).or_else(|| memory(requested));
        entry.reservation = self.field(Column::Reservation);
        entry.measured = self.measured();
        Ok(entry)
    }

    /// What held the job back, as far as the command line says it that submitted it.
    fn tie(&self, id: Id, entry: &mut Entry<'a>) -> Tie {
        let array = self.label(id).task();
        let at_most = count(self.field(Column::ArrayLimit)).filter(|_| array.is_some());
        let mut tie = Tie { array, at_most, ..Tie::default() };
        let line = self.field(Column::SubmitLine);
        if let Ok(line) = std::str::from_utf8(line)
            && !line.is_empty()
        {
            let said = SubmitLine::read(line);
            tie.is_held = said.is_held || said.has_begin;
            tie.at_most = tie.at_most.or(said.at_most.filter(|_| array.is_some()));
            (tie.needs, tie.nice) = (said.needs, said.nice);
            entry.whole_name = self.field(Column::JobName);
        }
        tie
    }

    /// What people call the job: they know tasks of an array by that of the array.
    fn label(&self, id: Id) -> Label {
        let text = self.field(Column::JobId);
        let known = read_id(text).ok().flatten().unwrap_or(id);
        let notation = match memchr::memchr(b'+', text) {
            Some(_) => Notation::Component,
            None => Notation::Task,
        };
        Label::new(known, notation)
    }

    /// What became of the job, by the first word of its state: who cancelled it follows.
    fn state(&self) -> Result<State, Defect> {
        let text = self.field(Column::State);
        let word = text.split(|byte| matches!(byte, b' ' | b'+')).next().unwrap_or_default();
        Ok(match word {
            b"COMPLETED" => State::Ended(Ending::Completed),
            b"CANCELLED" | b"REVOKED" => State::Ended(Ending::Cancelled),
            b"FAILED" | b"TIMEOUT" | b"NODE_FAIL" | b"PREEMPTED" | b"OUT_OF_MEMORY"
            | b"BOOT_FAIL" | b"DEADLINE" | b"REQUEUED" | b"LAUNCH_FAILED" | b"RECONFIG_FAIL" => {
                State::Ended(Ending::Failed)
            }
            b"RUNNING" | b"COMPLETING" | b"SUSPENDED" | b"STOPPED" | b"SIGNALING"
            | b"STAGE_OUT" | b"RESIZING" => State::Running,
            b"PENDING" | b"CONFIGURING" | b"REQUEUE_HOLD" | b"REQUEUE_FED" | b"RESV_DEL_HOLD"
            | b"SPECIAL_EXIT" => State::Waiting,
            // Without a state, who has an end has ended.
            b"" if self.field(Column::End).is_empty() => State::Running,
            b"" => State::Ended(Ending::Completed),
            _ => return Err(Defect::Unreadable { field: "State", text: shown(text) }),
        })
    }

    fn elapsed(&self) -> Option<u32> {
        let raw = whole(self.field(Column::ElapsedRaw)).and_then(|raw| u32::try_from(raw).ok());
        raw.or_else(|| seconds(self.field(Column::Elapsed)))
    }

    fn limit(&self) -> Option<u32> {
        let minutes = count(self.field(Column::TimelimitRaw));
        let raw = minutes.and_then(|minutes| minutes.checked_mul(60));
        raw.or_else(|| seconds(self.field(Column::Timelimit))).filter(|limit| *limit > 0)
    }

    /// The energy in joules.
    fn energy(&self) -> Option<u64> {
        let in_tres = || among(self.field(Column::AllocTres), b"energy").and_then(scaled);
        let rounded = || scaled(self.field(Column::ConsumedEnergy));
        known_energy(self.field(Column::ConsumedEnergyRaw))
            .or_else(|| in_tres().filter(is_energy))
            .or_else(|| rounded().filter(is_energy))
    }

    fn measured(&self) -> Measured {
        let raw = self.field(Column::ConsumedEnergyRaw);
        match self.energy() {
            Some(joules) => Measured::NodeEnergy(joules),
            None if raw.is_empty() || whole(raw).is_some() => Measured::Nothing,
            None => Measured::Unreadable,
        }
    }
}

/// The GPUs in a list of resources: all of them, or else those of each type.
fn gpus(list: &[u8]) -> Option<u32> {
    let typed = || {
        let parts = list.split(|byte| *byte == b',');
        let counts = parts.filter_map(|part| {
            let part = part.strip_prefix(b"gres/gpu:")?;
            count(&part[memchr::memchr(b'=', part)? + 1..])
        });
        let sum = counts.fold(0, u32::saturating_add);
        (sum > 0).then_some(sum)
    };
    among(list, b"gres/gpu").and_then(count).or_else(typed)
}

/// The memory in a list of resources, in MiB.
fn memory(list: &[u8]) -> Option<u64> {
    among(list, b"mem").and_then(mebibytes).filter(|mebibytes| *mebibytes > 0)
}

/// The part of a job that a step is, by what stands behind the number of the job.
fn step_of(name: &[u8]) -> Step {
    match name {
        b"extern" => Step::External,
        b"batch" => Step::Batch,
        _ => Step::Numbered,
    }
}

/// An energy in joules, if it is one.
fn known_energy(text: &[u8]) -> Option<u64> {
    whole(text).filter(is_energy)
}

/// Slurm writes zero where nothing was measured, and numbers close to the largest for what it does not know.
fn is_energy(joules: &u64) -> bool {
    (1..1 << 60).contains(joules)
}

/// `123`, a task of an array (`123_4`) or a component of a job of several (`123+1`). Nothing for tasks of an array
/// that are still one (`123_[5-9]`).
fn read_id(text: &[u8]) -> Result<Option<Id>, ()> {
    let number = |text: &[u8]| whole(text).and_then(|number| u32::try_from(number).ok()).ok_or(());
    let Some(separator) = memchr::memchr2(b'_', b'+', text) else {
        return number(text).map(|number| Some(Id::plain(number)));
    };
    let (job, part) = (number(&text[..separator])?, &text[separator + 1..]);
    if part.starts_with(b"[") {
        return Ok(None);
    }
    Ok(Some(Id::part(job, number(part)?)))
}
