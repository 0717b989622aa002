//! From what records say to runs that happened, by rules that are the same for every layout.

use std::collections::HashMap;

use super::entry::{Entry, Measured, State};
use super::error::{Defect, shown};
use super::id::Id;
use super::intake::RecordIntake;
use super::name::{Kind, NameTable, application};
use super::node_list::NodeLists;
use super::run::{Ending, Marks, Run};
use super::ties::Tie;
use super::time::{Clock, Moment};
use super::twice::{Times, tell};

/// The part of a job that a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// All nodes, from the beginning to the end (`.extern`).
    External,
    /// The script (`.batch`).
    Batch,
    /// What the script started (`.0`, `.1`, …), or what was typed (`.interactive`).
    Numbered,
}

/// The steps of one job, and their energy in joules.
///
/// Slurm measures nodes, not processes: each step has the energy of its nodes while it ran. So steps of different
/// kinds measure the same nodes again, and are not added up. Of what each kind says, the largest is the job's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    count: u64,
    external: u64,
    batch: u64,
    numbered: u64,
}

impl Steps {
    /// Their number.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// One more of them.
    pub(super) fn add(&mut self, step: Step, joules: u64) {
        let mut one = Steps { count: 1, ..Steps::default() };
        match step {
            Step::External => one.external = joules,
            Step::Batch => one.batch = joules,
            Step::Numbered => one.numbered = joules,
        }
        self.join(one);
    }

    /// These and others of the same job.
    fn join(&mut self, others: Steps) {
        self.count += others.count;
        self.external = self.external.max(others.external);
        self.batch = self.batch.max(others.batch);
        self.numbered = self.numbered.saturating_add(others.numbered);
    }

    fn energy(self) -> u64 {
        self.external.max(self.batch).max(self.numbered)
    }
}

/// Steps of a job that do not stand below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LooseSteps {
    id: Id,
    steps: Steps,
}

/// The job whose record came last, for the steps that stand below it.
#[derive(Clone, Copy, Debug)]
struct Latest {
    id: Id,
    /// Its run, if it was one.
    run: Option<usize>,
    steps: Steps,
}

/// Gathers runs.
pub(super) struct Collector {
    pub(super) runs: Vec<Run>,
    pub(super) loose: Vec<LooseSteps>,
    pub(super) names: NameTable,
    pub(super) node_lists: NodeLists,
    pub(super) intake: RecordIntake,
    pub(super) clock: Clock,
    /// What held runs back, where something did.
    pub(super) ties: Vec<Tie>,
    /// Numbers of whole names of jobs.
    job_names: HashMap<Box<[u8]>, u32>,
    latest: Option<Latest>,
}

impl Collector {
    pub(super) fn new(clock: Clock) -> Self {
        Collector {
            runs: Vec::new(),
            loose: Vec::new(),
            names: NameTable::default(),
            node_lists: NodeLists::default(),
            intake: RecordIntake::default(),
            clock,
            ties: Vec::new(),
            job_names: HashMap::new(),
            latest: None,
        }
    }

    /// A time, or the defect that it is none.
    pub(super) fn time(
        &mut self,
        field: &'static str,
        text: &[u8],
    ) -> Result<Option<Moment>, Defect> {
        self.clock.read(text).map_err(|_| Defect::NotATime { field, text: shown(text) })
    }

    /// Takes what a record says of a job. Whoever never ran is counted, and is no defect.
    pub(super) fn take(&mut self, entry: &Entry<'_>) -> Result<(), Defect> {
        self.take_tied(entry, Tie::default())
    }

    /// The same of a job of which it is known what held it back.
    pub(super) fn take_tied(&mut self, entry: &Entry<'_>, mut tie: Tie) -> Result<(), Defect> {
        self.finish_steps();
        self.latest = entry.id.map(|id| Latest { id, run: None, steps: Steps::default() });
        let ending = match entry.state {
            State::Waiting => {
                self.intake.skipped_never_started += 1;
                return Ok(());
            }
            State::Running => {
                self.intake.skipped_still_running += 1;
                return Ok(());
            }
            State::Ended(ending) => ending,
        };
        let Some(start) = entry.start else {
            // Whoever is cancelled or refused before the start has none; whoever completed must have had one.
            if ending == Ending::Completed {
                return Err(Defect::UnknownTime("start"));
            }
            self.intake.skipped_never_started += 1;
            return Ok(());
        };
        let submit = entry.submit.ok_or(Defect::UnknownTime("submit"))?;
        let times = tell(submit, start, entry.end, entry.elapsed);
        let Times { submit, start, end, told } = times.ok_or(Defect::UnknownTime("end"))?;
        self.intake.twice_told += told;
        let run_time = u32::try_from(end - start).map_err(|_| Defect::NegativeTime)?;
        let wait = u32::try_from((start - submit).max(0)).map_err(|_| Defect::NegativeTime)?;
        let processors = entry.processors.or(entry.nodes).ok_or(Defect::NoSize)?;
        self.intake.usable += 1;
        let marks = Marks {
            submit_from_eligible: entry.is_submit_eligible,
            submit_moved: submit > start,
            // Seconds are rounded here and there.
            elapsed_differs: entry.elapsed.is_some_and(|elapsed| elapsed.abs_diff(run_time) > 1),
            size_from_nodes: entry.processors.is_none(),
            power_unreadable: entry.measured == Measured::Unreadable,
        };
        let (mean_mw, peak_mw, is_of_nodes) = power(entry.measured, run_time);
        let names = [
            (Kind::User, entry.user),
            (Kind::Group, entry.group),
            (Kind::Application, application(entry.job_name)),
            (Kind::Queue, entry.queue),
            (Kind::Partition, entry.partition),
            (Kind::Reservation, entry.reservation),
        ];
        let names = names.map(|(kind, name)| self.names.number(kind, name));
        if let Some(latest) = &mut self.latest {
            latest.run = Some(self.runs.len());
        }
        tie.eligible =
            entry.eligible.map(Moment::first).filter(|at| (submit + 1..=start).contains(at));
        let tie = match tie == Tie::default() {
            true => 0,
            false => {
                self.ties.push(tie);
                self.ties.len() as u32
            }
        };
        let job_name = match entry.whole_name {
            b"" => 0,
            name => {
                let next = self.job_names.len() as u32 + 1;
                *self.job_names.entry(name.into()).or_insert(next)
            }
        };
        self.runs.push(Run {
            key: entry.id.map_or(u64::MAX, |id| id.0),
            label: entry.label,
            submit: start - i64::from(wait),
            wait,
            run_time,
            limit: entry.limit.unwrap_or(0),
            processors,
            nodes: entry.nodes.unwrap_or(0),
            node_list: self.node_lists.number(entry.node_list, entry.nodes),
            gpus: entry.gpus.unwrap_or(0),
            memory_mib: entry.memory_mib.unwrap_or(0),
            names,
            mean_mw,
            peak_mw,
            ending,
            tie,
            job_name,
            is_exclusive: entry.is_exclusive,
            is_of_nodes,
            marks,
        });
        Ok(())
    }

    /// Takes a step of a job, with its energy if that was measured.
    pub(super) fn take_step(&mut self, id: Id, step: Step, joules: u64) {
        let mut steps = Steps::default();
        steps.add(step, joules);
        self.take_steps(id, steps);
    }

    /// Takes steps of a job.
    pub(super) fn take_steps(&mut self, id: Id, steps: Steps) {
        if steps.count == 0 {
            return;
        }
        self.intake.steps += steps.count;
        match (&mut self.latest, self.loose.last_mut()) {
            (Some(latest), _) if latest.id == id => latest.steps.join(steps),
            (_, Some(last)) if last.id == id => last.steps.join(steps),
            _ => self.loose.push(LooseSteps { id, steps }),
        }
    }

    /// Takes steps of a job that nobody knows.
    pub(super) fn take_lost_steps(&mut self, steps: Steps) {
        self.intake.steps += steps.count;
        self.intake.steps_without_job += steps.count;
    }

    /// Gives the job whose steps have been read their energy, if it has none of its own.
    pub(super) fn finish_steps(&mut self) {
        if let Some(Latest { run: Some(place), steps, .. }) = self.latest.take() {
            self.runs[place].add_energy(steps.energy());
        }
    }

    /// Gives steps that stand elsewhere to their jobs. `by_key` is the places of runs by their keys.
    pub(super) fn settle_loose_steps(&mut self, by_key: &[u32]) {
        let mut loose = std::mem::take(&mut self.loose);
        loose.sort_unstable_by_key(|steps| steps.id);
        for same in loose.chunk_by(|one, next| one.id == next.id) {
            let key = same[0].id.0;
            let mut steps = Steps::default();
            same.iter().for_each(|more| steps.join(more.steps));
            let first = by_key.partition_point(|place| self.runs[*place as usize].key < key);
            let is_job = |place: &&u32| self.runs[**place as usize].key == key;
            let mut jobs = by_key[first..].iter().take_while(is_job);
            // Of several runs nobody can tell whose step it is.
            let (Some(place), None) = (jobs.next(), jobs.next()) else {
                self.intake.steps_without_job += steps.count;
                continue;
            };
            self.runs[*place as usize].add_energy(steps.energy());
        }
    }
}

impl Run {
    fn add_energy(&mut self, joules: u64) {
        if self.mean_mw == 0 {
            self.mean_mw = mean_of(joules, self.run_time);
            self.is_of_nodes = true;
        }
    }
}

/// Mean and peak in milliwatts, and whether they are those of whole nodes.
fn power(measured: Measured, run_time: u32) -> (u64, u64, bool) {
    match measured {
        Measured::Nothing | Measured::Unreadable => (0, 0, false),
        Measured::NodeEnergy(joules) => (mean_of(joules, run_time), 0, true),
        Measured::Power { mean, peak } => {
            (mean.milliwatts(), peak.map_or(0, |peak| peak.milliwatts()), false)
        }
    }
}

/// The mean power in milliwatts, rounded up; zero is unknown.
fn mean_of(joules: u64, run_time: u32) -> u64 {
    let milliwatts = (u128::from(joules) * 1000).div_ceil(u128::from(run_time.max(1)));
    if run_time == 0 { 0 } else { u64::try_from(milliwatts).unwrap_or(0) }
}
