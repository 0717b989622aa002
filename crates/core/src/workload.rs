//! Workloads: jobs in submit order, how long each really runs, and what else is known of them.
//!
//! Where they come from is no concern of the simulator: the crate `busbar-workloads` reads and generates them.

use std::ops::Range;

use crate::calendar::{Calendar, NoCalendar, RunDates};
use crate::job::{Job, Terms};
use crate::machine::Machine;
use crate::structure::{Structure, Structures, Ties};
use crate::units::{Instant, JobId, Span};

mod partitions;
mod placed;
mod power;
mod seats;

pub use partitions::{PartitionError, Partitions, Selection};
pub use placed::Placed;
pub use power::MeasuredPower;

use placed::AllPlaced;
use seats::Seated;

/// Jobs in submit order, with their real run times.
#[derive(Clone, Debug)]
pub struct Workload {
    name: String,
    jobs: Vec<Job>,
    run_times: Vec<Span>,
    /// How long each job really waited, in seconds, by the same index; empty if no log says so. −1 is unknown.
    waits: Vec<i32>,
    /// What each job drew, by the same index; empty if that was not measured.
    powers: Vec<Option<MeasuredPower>>,
    placed: AllPlaced,
    /// What ties jobs to each other and holds them back, where that is known.
    structures: Structures,
    /// What jobs ask of nodes, once they were [put](Workload::seat) on a machine that minds.
    seated: Option<Seated>,
    partitions: Partitions,
    /// The names of queues that are known, by their numbers.
    queues: Vec<(u32, String)>,
    selection: Option<Selection>,
    processors: Option<u32>,
    computer: Option<String>,
    machine: Option<Machine>,
    remarks: Vec<String>,
    calendar: Result<Calendar, NoCalendar>,
}

/// No jobs, of which nothing is known.
impl Default for Workload {
    fn default() -> Self {
        Workload::new(String::new(), [])
    }
}

impl Workload {
    /// A workload of these jobs, each with the time it really runs at the nominal operating
    /// point. Jobs that are not in submit order are put in order; jobs submitted at the same
    /// instant keep theirs.
    pub fn new(name: impl Into<String>, jobs: impl IntoIterator<Item = (Job, Span)>) -> Self {
        let (jobs, run_times) = jobs.into_iter().unzip();
        Workload::from_parts(name.into(), jobs, run_times, Vec::new(), Partitions::default())
    }

    /// [`Workload::new`] for a reader that already keeps jobs and run times apart, so that a long
    /// log is not copied once more. `waits` and `partitions` may be empty; where they are not, they are by the same index,
    /// and a wait is in seconds, −1 if it is not known.
    pub fn from_parts(
        name: String,
        mut jobs: Vec<Job>,
        mut run_times: Vec<Span>,
        mut waits: Vec<i32>,
        mut partitions: Partitions,
    ) -> Self {
        let fits = |of_jobs: usize| of_jobs == 0 || of_jobs == jobs.len();
        assert_eq!(jobs.len(), run_times.len(), "every job has a run time");
        assert!(fits(waits.len()), "every job has a wait, or none is known");
        assert!(fits(partitions.of_jobs.len()), "every job has a partition, or none is known");
        if !jobs.is_sorted_by_key(|job| job.submit) {
            let mut order: Vec<u32> = (0..jobs.len() as u32).collect();
            order.sort_by_key(|&i| jobs[i as usize].submit);
            jobs = order.iter().map(|&i| jobs[i as usize]).collect();
            run_times = order.iter().map(|&i| run_times[i as usize]).collect();
            waits = order.iter().filter_map(|&i| waits.get(i as usize).copied()).collect();
            let of_jobs = std::mem::take(&mut partitions.of_jobs);
            let sorted = order.iter().filter_map(|&i| of_jobs.get(i as usize).copied());
            partitions.of_jobs = sorted.collect();
        }
        let (powers, calendar) = (Vec::new(), Err(NoCalendar::NotSaid));
        Workload {
            name,
            jobs,
            run_times,
            waits,
            powers,
            placed: AllPlaced::default(),
            structures: Structures::default(),
            seated: None,
            partitions,
            queues: Vec::new(),
            selection: None,
            processors: None,
            computer: None,
            machine: None,
            remarks: Vec::new(),
            calendar,
        }
    }

    /// The same workload, knowing how many processors the machine it comes from has.
    pub fn on_processors(mut self, processors: Option<u32>) -> Self {
        self.processors = processors;
        self
    }

    /// The same workload, knowing what the machine it comes from is called.
    pub fn on_computer(mut self, computer: Option<String>) -> Self {
        self.computer = computer;
        self
    }

    /// The same workload, knowing what is known of the machine it comes from.
    pub fn on_machine(mut self, machine: Option<Machine>) -> Self {
        self.machine = machine;
        self
    }

    /// The same workload, with what a reader of its figures should know of where it comes from.
    pub fn with_remarks(mut self, remarks: Vec<String>) -> Self {
        self.remarks = remarks;
        self
    }

    /// The same workload, knowing what queues are called, by their numbers.
    pub fn with_queues(mut self, queues: Vec<(u32, String)>) -> Self {
        self.queues = queues;
        self
    }

    /// What queues are called, by their numbers.
    pub fn queue_names(&self) -> &[(u32, String)] {
        &self.queues
    }

    /// What partitions are called, by their numbers.
    pub fn partition_names(&self) -> &[(u32, String)] {
        self.partitions.names()
    }

    /// The same workload, knowing which dates its instants have, or why nobody knows.
    pub fn dated(mut self, calendar: Result<Calendar, NoCalendar>) -> Self {
        self.calendar = calendar;
        self
    }

    /// The same workload, knowing what jobs drew when they really ran, by their index.
    pub fn with_powers(mut self, powers: Vec<Option<MeasuredPower>>) -> Self {
        assert_eq!(powers.len(), self.jobs.len(), "every job has a power, or none is known");
        self.powers = powers;
        self
    }

    /// Gives each job the power that was measured for it, if it was.
    pub fn set_powers(&mut self, measured: impl Fn(&Job) -> Option<MeasuredPower>) {
        self.powers = self.jobs.iter().map(measured).collect();
    }

    /// Gives jobs other terms. Those for which there are none keep theirs.
    pub fn set_terms(&mut self, terms: impl Fn(&Job) -> Option<Terms>) {
        for job in &mut self.jobs {
            if let Some(terms) = terms(job) {
                job.terms = terms;
            }
        }
    }

    /// The same workload in whole seconds, as a log counts them: requested times rounded up, the others to
    /// the nearest. So it stays the same when it is written and read again.
    pub fn in_whole_seconds(mut self) -> Self {
        let nearest = |millis: u64| millis.saturating_add(500) / 1000 * 1000;
        for (job, run_time) in self.jobs.iter_mut().zip(&mut self.run_times) {
            job.submit = Instant::from_millis(nearest(job.submit.millis()));
            job.requested = Span::from_millis(job.requested.millis().div_ceil(1000) * 1000);
            *run_time = Span::from_millis(nearest(run_time.millis()));
        }
        self
    }

    /// What the workload is called: a file's name or a generator's call.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The jobs, in submit order; a [`JobId`] is an index into them.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// How long each job really runs, by the same index.
    pub fn run_times(&self) -> &[Span] {
        &self.run_times
    }

    /// How long `job` really runs.
    pub fn run_time(&self, job: JobId) -> Span {
        self.run_times[job.index()]
    }

    /// How long `job` waited when it really ran, if its log says so.
    pub fn recorded_wait(&self, job: JobId) -> Option<Span> {
        let wait = self.waits.get(job.index()).copied().and_then(|wait| u32::try_from(wait).ok());
        wait.map(Span::from_secs)
    }

    /// When jobs really started, as far as the log says it; nothing if it says it of none of them.
    pub fn recorded_starts(&self) -> Option<Vec<(Instant, JobId)>> {
        let jobs = (0..).map(JobId).zip(&self.jobs);
        let known = jobs.filter_map(|(id, job)| Some((job.submit + self.recorded_wait(id)?, id)));
        Some(known.collect()).filter(|starts: &Vec<_>| !starts.is_empty())
    }

    /// What `job` drew when it really ran, if that was measured.
    pub fn power(&self, job: JobId) -> Option<MeasuredPower> {
        self.powers.get(job.index()).copied().flatten()
    }

    /// What each job drew when it really ran, by its index; empty if nothing was measured.
    pub fn measured_powers(&self) -> &[Option<MeasuredPower>] {
        &self.powers
    }

    /// How long each job really waited in seconds, by its index, −1 for unknown; empty if no log says so.
    pub fn recorded_waits(&self) -> &[i32] {
        &self.waits
    }

    /// The jobs of which it is known what they drew, with that.
    pub fn powers(&self) -> impl Iterator<Item = (&Job, MeasuredPower)> {
        self.jobs.iter().zip(&self.powers).filter_map(|(job, power)| Some((job, (*power)?)))
    }

    /// Of how many jobs it is known what they drew.
    pub fn powers_known(&self) -> usize {
        self.powers.iter().flatten().count()
    }

    /// Says what ties jobs to each other and holds them back.
    pub fn set_structure(&mut self, known: impl FnMut(&Job) -> Option<Structure>) {
        self.structures = Structures::new(&self.jobs, known);
    }

    /// What ties jobs to each other and holds them back; empty if nothing is known of it.
    pub fn structures(&self) -> &Structures {
        &self.structures
    }

    /// Who waits for whom, if anybody does.
    pub(crate) fn ties(&self) -> Option<Ties> {
        self.structures.ties(&self.jobs)
    }

    /// Processors of the machine the workload comes from, if it says so.
    pub fn processors(&self) -> Option<u32> {
        self.processors
    }

    /// What the machine the workload comes from is called, if it says so.
    pub fn computer(&self) -> Option<&str> {
        self.computer.as_deref()
    }

    /// What is known of the machine it comes from, beside its processors.
    pub fn machine(&self) -> Option<&Machine> {
        self.machine.as_ref()
    }

    /// What a reader of its figures should know of where it comes from, a sentence for each thing.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Which dates its instants have, or why nobody knows.
    pub fn calendar(&self) -> Result<&Calendar, &NoCalendar> {
        self.calendar.as_ref()
    }

    /// The dates of a run of it.
    pub fn dates(&self) -> RunDates {
        let jobs = self.jobs.iter().zip(&self.run_times);
        let end = jobs.map(|(job, run_time)| job.submit + job.requested.max(*run_time)).max();
        RunDates::of_log(self.calendar.clone(), end.unwrap_or(Instant::ZERO))
    }

    /// Nodes the largest job asks for.
    pub fn largest_job(&self) -> u32 {
        self.jobs.iter().map(|job| job.nodes).max().unwrap_or(0)
    }

    /// Keeps only the jobs at these places in submit order; places past the end are not an error.
    pub fn slice(&mut self, range: Range<usize>) {
        let end = range.end.min(self.jobs.len());
        let start = range.start.min(end);
        if let Some(seated) = &mut self.seated {
            seated.retain(|place| (start..end).contains(&place));
        }
        self.structures.retain(|place| (start..end).contains(&place));
        self.jobs.truncate(end);
        self.jobs.drain(..start);
        self.run_times.truncate(end);
        self.run_times.drain(..start);
        // These are as long as the others, or empty.
        self.waits.truncate(end);
        self.waits.drain(..start.min(self.waits.len()));
        self.powers.truncate(end);
        self.powers.drain(..start.min(self.powers.len()));
        let placed = &mut self.placed.of_jobs;
        placed.truncate(end);
        placed.drain(..start.min(placed.len()));
        let partitions = &mut self.partitions.of_jobs;
        partitions.truncate(end);
        partitions.drain(..start.min(partitions.len()));
    }

    /// The same workload with only the jobs that are wanted.
    pub fn keep(mut self, wanted: impl Fn(&Job) -> bool) -> Self {
        let is_kept: Vec<bool> = self.jobs.iter().map(wanted).collect();
        self.retain(&is_kept);
        self
    }

    /// Keeps only some jobs, by their places.
    fn retain(&mut self, is_kept: &[bool]) {
        if let Some(seated) = &mut self.seated {
            seated.retain(|place| is_kept[place]);
        }
        self.structures.retain(|place| is_kept[place]);
        let keep = || is_kept.iter().copied();
        retain(&mut self.jobs, keep());
        retain(&mut self.run_times, keep());
        retain(&mut self.waits, keep());
        retain(&mut self.powers, keep());
        retain(&mut self.placed.of_jobs, keep());
        retain(&mut self.partitions.of_jobs, keep());
    }

    /// The same jobs in the same order, all submitted when the first was: what a machine can do is seen when there
    /// is always somebody who waits.
    pub fn at_once(mut self) -> Self {
        let first = self.jobs.first().map_or(Instant::ZERO, |job| job.submit);
        self.jobs.iter_mut().for_each(|job| job.submit = first);
        self
    }

    /// Raises every requested time that is below the real run time to it, and says how many were.
    ///
    /// In a log the run time is what happened, so an estimate below it was not enforced then. A
    /// workload that was not raised has its limits enforced: the simulator ends such jobs at the
    /// requested time and counts them as killed.
    pub fn raise_estimates(&mut self) -> usize {
        let mut raised = 0;
        for (job, &run_time) in self.jobs.iter_mut().zip(&self.run_times) {
            if job.requested < run_time {
                job.requested = run_time;
                raised += 1;
            }
        }
        raised
    }

    /// Turns requests counted in processors into requests for whole nodes of `per_node`
    /// processors each.
    pub fn pack_processors(&mut self, per_node: u32) {
        if per_node > 1 {
            for job in &mut self.jobs {
                job.nodes = job.processors.div_ceil(per_node);
            }
        }
    }

    /// The most nodes of `per_node` processors each that are busy at once if no job ever waits.
    pub(crate) fn most_at_once(&self, per_node: u32) -> u64 {
        let mut changes = Vec::with_capacity(2 * self.jobs.len());
        for (job, &run_time) in self.jobs.iter().zip(&self.run_times) {
            let nodes = i64::from(job.processors.div_ceil(per_node.max(1)));
            changes.extend([(job.submit, nodes), (job.submit + run_time, -nodes)]);
        }
        // Whoever ends makes room for those who begin at the same instant.
        changes.sort_unstable();
        let mut busy = 0i64;
        let levels = changes.iter().map(|(_, change)| {
            busy += change;
            busy
        });
        levels.max().unwrap_or(0).max(0) as u64
    }

    /// The load offered to a machine of `nodes`: work submitted over what the machine could do
    /// between the first and the last submission. `None` when that is no time at all.
    pub fn offered_load(&self, nodes: u32) -> Option<f64> {
        let span = self.jobs.last()?.submit.since(self.jobs.first()?.submit);
        let work: u128 = self
            .jobs
            .iter()
            .zip(&self.run_times)
            .map(|(job, run)| u128::from(job.nodes) * u128::from(run.millis()))
            .sum();
        let capacity = u128::from(nodes) * u128::from(span.millis());
        (capacity > 0).then(|| work as f64 / capacity as f64)
    }
}

/// Keeps the items of a list that are to be kept, by their places.
fn retain<T>(list: &mut Vec<T>, mut is_kept: impl Iterator<Item = bool>) {
    list.retain(|_| is_kept.next().unwrap_or(false));
}
