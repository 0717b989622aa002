//! `jobs`, `power`, `changes`, `caps`, `feeds` and `nodes` column by column, with the same names and values as the CSV files: for
//! Parquet files and for other programs.

use std::borrow::Cow;

use crate::job::Job;
use crate::metrics::{RunContext, bounded_slowdown, energy_totals, wait};
use crate::priority::Standing;
use crate::report::changes::event;
#[cfg(feature = "parquet")]
use crate::report::feeds::{feed_name, stretches};
use crate::report::jobs::{reason, thousandths_of_joules};
use crate::sim::{Capping, Record, Run};
use crate::units::{Instant, JobId, Joules, Span, Watts};
use crate::workload::Workload;

/// The cells of a column, from the first row to the last.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells<'a> {
    /// Counts and identities.
    Whole(Vec<Option<u64>>),
    /// Seconds, watts, and other quantities.
    Number(Vec<Option<f64>>),
    /// Yes or no.
    Truth(Vec<Option<bool>>),
    /// Words of which there are few.
    Word(Vec<Option<Cow<'a, str>>>),
}

/// Columns with their names.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<'a> {
    /// The columns, from left to right; all have as many cells.
    pub columns: Vec<(Cow<'static, str>, Cells<'a>)>,
}

impl<'a> Table<'a> {
    fn of(columns: Vec<(&'static str, Cells<'a>)>) -> Self {
        Table { columns: columns.into_iter().map(|(name, cells)| (name.into(), cells)).collect() }
    }
}

// The nearest number to a count of thousandths is what the decimals of a CSV file are read as.

fn thousandths(count: u64) -> f64 {
    count as f64 / 1000.0
}

fn seconds_at(instant: Instant) -> f64 {
    thousandths(instant.millis())
}

fn seconds(span: Span) -> f64 {
    thousandths(span.millis())
}

fn watts(power: Watts) -> f64 {
    thousandths(power.milliwatts())
}

impl Table<'_> {
    /// The same table, with words of its own.
    pub(crate) fn into_owned(self) -> Table<'static> {
        let owned = |cells: Cells<'_>| match cells {
            Cells::Whole(cells) => Cells::Whole(cells),
            Cells::Number(cells) => Cells::Number(cells),
            Cells::Truth(cells) => Cells::Truth(cells),
            Cells::Word(cells) => {
                let word = |word: Cow<'_, str>| Cow::Owned(word.into_owned());
                Cells::Word(cells.into_iter().map(|cell| cell.map(word)).collect())
            }
        };
        let columns = self.columns.into_iter().map(|(name, cells)| (name, owned(cells)));
        Table { columns: columns.collect() }
    }
}

/// The columns of `jobs.csv`.
pub(crate) fn jobs_table(subject: &RunContext<'_>, run: &Run) -> Table<'static> {
    let rows: Vec<(JobId, &Job, &Record)> = (0..)
        .map(JobId)
        .zip(subject.workload.jobs().iter().zip(&run.records))
        .map(|(id, (job, record))| (id, job, record))
        .collect();
    type Row<'a> = (JobId, &'a Job, &'a Record);
    let always_number = |figure: &dyn Fn(&Row<'_>) -> f64| {
        Cells::Number(rows.iter().map(|row| Some(figure(row))).collect())
    };
    let number = |figure: &dyn Fn(&Row<'_>) -> f64| {
        Cells::Number(rows.iter().map(|row| row.2.state.has_run().then(|| figure(row))).collect())
    };
    let whole =
        |figure: &dyn Fn(&Row<'_>) -> Option<u64>| Cells::Whole(rows.iter().map(figure).collect());
    let machine = subject.machine;
    let mut gears = machine.gearbox.node_powers(machine.added_power());
    gears.retain(|_| subject.has_gears);
    let ghz = |(_, _, record): &Row<'_>| {
        let gear = gears.iter().find(|(_, power)| *power == record.cap);
        gear.map(|(gear, _)| thousandths((gear.ghz * 1000.0).round() as u64))
    };
    let slowdown = |job: &Job, record: &Record| {
        let slowdown = bounded_slowdown(job, record, subject.bsld_threshold);
        (slowdown * 10_000.0).round() / 10_000.0
    };
    let backfilled = |(_, _, record): &Row<'_>| record.state.has_run().then_some(record.backfilled);
    let nodes = |job: &Job, record: &Record| match record.state.has_run() {
        true => record.nodes,
        false => job.nodes,
    };
    let runs = |row: &Row<'_>| subject.world.map(|world| world.application(row.0).name.clone());
    let shape = |row: &Row<'_>| subject.world.map(|world| world.assigned().shape(row.0).name());
    let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
    let energy = |energy: Option<Joules>| Some(thousandths(thousandths_of_joules(energy?)));
    let energy_totals = energy_totals(subject, run).into_iter().map(energy);
    let mut columns = vec![
        ("id", whole(&|(_, job, _)| Some(job.number))),
        ("submit", always_number(&|(_, job, _)| seconds_at(job.submit))),
        ("start", number(&|(_, _, record)| seconds_at(record.start))),
        ("end", number(&|(_, _, record)| seconds_at(record.end))),
        ("nodes", whole(&|(_, job, record)| Some(nodes(job, record).into()))),
        ("cap", number(&|(_, _, record)| watts(record.cap))),
        ("power", number(&|(_, _, record)| watts(record.power))),
        ("wait", number(&|(_, job, record)| seconds(wait(job, record)))),
        ("bsld", number(&|(_, job, record)| slowdown(job, record))),
        ("backfilled", Cells::Truth(rows.iter().map(backfilled).collect())),
        ("state", Cells::Word(rows.iter().map(|row| Some(row.2.state.name().into())).collect())),
        (
            "reason",
            Cells::Word(rows.iter().map(|row| reason(row.2.state, subject).map(owned)).collect()),
        ),
        ("ghz", Cells::Number(rows.iter().map(ghz).collect())),
        ("requested", always_number(&|(_, job, _)| seconds(job.requested))),
        ("processors", whole(&|(_, job, _)| Some(job.processors.into()))),
        ("cores", whole(&|(_, _, record)| record.state.has_run().then_some(record.cores.into()))),
        ("user", whole(&|(_, job, _)| job.user.map(|user| user.0.get().into()))),
        ("application", whole(&|(_, job, _)| job.application.map(|known| known.0.get().into()))),
        ("energy", number(&|(id, _, _)| thousandths(thousandths_of_joules(run.total(*id).energy)))),
        ("restarts", whole(&|(_, _, record)| Some(record.restarts.into()))),
        ("changes", whole(&|(_, _, record)| Some(record.changes.into()))),
        ("runs", Cells::Word(rows.iter().map(|row| runs(row).map(Cow::from)).collect())),
        ("shape", Cells::Word(rows.iter().map(|row| shape(row).map(Cow::from)).collect())),
        ("energy_total", Cells::Number(energy_totals.collect())),
    ];
    if !run.standings.is_empty() {
        columns.extend(Standing::PARTS.into_iter().enumerate().map(|(part, name)| {
            let points = |(id, ..): &Row<'_>| {
                let standing = run.standings.get(id)?;
                Some(thousandths(standing.points()[part].thousandths()))
            };
            (name, Cells::Number(rows.iter().map(points).collect()))
        }));
    }
    Table::of(columns)
}

/// The columns of `power.csv`.
pub(crate) fn power_table(run: &Run) -> Table<'static> {
    let limit = |limit: Watts| (limit != Watts::UNLIMITED).then(|| watts(limit));
    let columns = vec![
        ("time", run.power.iter().map(|sample| Some(seconds_at(sample.at))).collect()),
        ("watts", run.power.iter().map(|sample| Some(watts(sample.power))).collect()),
        ("budget", run.power.iter().map(|sample| limit(sample.limit)).collect()),
    ];
    Table::of(columns.into_iter().map(|(name, cells)| (name, Cells::Number(cells))).collect())
}

/// The columns of `changes.csv`.
pub(crate) fn changes_table(subject: &RunContext<'_>, run: &Run) -> Table<'static> {
    let number = |job: JobId| subject.workload.jobs()[job.index()].number;
    let changes = || run.steps().map(|(_, change)| change);
    let word = |is_start| Some(Cow::from(event(is_start)));
    let columns = vec![
        ("time", Cells::Number(changes().map(|change| Some(seconds_at(change.at))).collect())),
        ("job", Cells::Whole(changes().map(|change| Some(number(change.job))).collect())),
        ("nodes", Cells::Whole(changes().map(|change| Some(change.nodes.into())).collect())),
        ("cap", Cells::Number(changes().map(|change| Some(watts(change.cap))).collect())),
        ("power", Cells::Number(changes().map(|change| Some(watts(change.power))).collect())),
        ("pause", Cells::Number(changes().map(|change| Some(seconds(change.pause))).collect())),
        ("event", Cells::Word(run.steps().map(|(is_start, _)| word(is_start)).collect())),
    ];
    Table::of(columns)
}

/// The columns of `caps.csv`.
pub(crate) fn caps_table<'a>(subject: &RunContext<'a>, run: &Run) -> Table<'a> {
    let names = subject.machine.variation.as_ref().map(|processors| processors.names());
    let name = |node: u32| match names.and_then(|names| names.get(node as usize)) {
        Some(name) => Cow::from(name.as_str()),
        None => Cow::from(node.to_string()),
    };
    let number = |job: JobId| subject.workload.jobs()[job.index()].number;
    let rows = || {
        let capped = |capping: &'_ Capping| {
            let (at, job) = (capping.at, capping.job);
            capping
                .caps
                .iter()
                .map(move |capped| (at, job, capped.node.0, capped.cap))
                .collect::<Vec<_>>()
        };
        run.cappings.iter().flat_map(capped)
    };
    let columns = vec![
        ("time", Cells::Number(rows().map(|(at, ..)| Some(seconds_at(at))).collect())),
        ("job", Cells::Whole(rows().map(|(_, job, ..)| Some(number(job))).collect())),
        ("processor", Cells::Word(rows().map(|(_, _, node, _)| Some(name(node))).collect())),
        ("cap", Cells::Number(rows().map(|(.., cap)| Some(watts(cap))).collect())),
    ];
    Table::of(columns)
}

/// The columns of `feeds.csv`.
#[cfg(feature = "parquet")]
pub(crate) fn feeds_table<'a>(subject: &RunContext<'a>, run: &Run) -> Table<'a> {
    let samples = || run.feed_power.iter();
    let name = |feed: usize| Some(Cow::from(feed_name(subject, feed)));
    Table::of(vec![
        ("time", Cells::Number(samples().map(|sample| Some(seconds_at(sample.at))).collect())),
        ("feed", Cells::Word(samples().map(|sample| name(sample.feed)).collect())),
        ("watts", Cells::Number(samples().map(|sample| Some(watts(sample.power))).collect())),
        (
            "limit",
            Cells::Number(samples().map(|sample| sample.limit.limited().map(watts)).collect()),
        ),
    ])
}

/// The columns of `nodes.csv`.
#[cfg(feature = "parquet")]
pub(crate) fn nodes_table(subject: &RunContext<'_>, run: &Run) -> Table<'static> {
    let placed = || run.placed.iter();
    let number = |job: JobId| Some(subject.workload.jobs()[job.index()].number);
    Table::of(vec![
        ("time", Cells::Number(placed().map(|placed| Some(seconds_at(placed.at))).collect())),
        ("job", Cells::Whole(placed().map(|placed| number(placed.job)).collect())),
        (
            "nodes",
            Cells::Word(placed().map(|placed| Some(stretches(&placed.nodes).into())).collect()),
        ),
    ])
}

/// The jobs of a workload before anything becomes of them: a row for each, in submit order.
pub(crate) fn workload_table(workload: &Workload) -> Table<'static> {
    let jobs = workload.jobs();
    let whole =
        |figure: &dyn Fn(&Job) -> Option<u64>| Cells::Whole(jobs.iter().map(figure).collect());
    let number = |figure: &dyn Fn(&Job) -> f64| {
        Cells::Number(jobs.iter().map(|job| Some(figure(job))).collect())
    };
    let run_times = workload.run_times().iter().map(|time| Some(seconds(*time)));
    let measured = workload.measured_powers();
    let power = |place: usize| measured.get(place).copied().flatten()?.mean().map(watts);
    let ids = || (0..).map(JobId).take(jobs.len());
    let partition =
        |id: JobId| workload.partition(id).map(|number| Cow::from(workload.partition_name(number)));
    Table::of(vec![
        ("id", whole(&|job| Some(job.number))),
        ("submit", number(&|job| seconds_at(job.submit))),
        ("processors", whole(&|job| Some(job.processors.into()))),
        ("requested", number(&|job| seconds(job.requested))),
        ("run_time", Cells::Number(run_times.collect())),
        ("user", whole(&|job| job.user.map(|user| user.0.get().into()))),
        ("application", whole(&|job| job.application.map(|known| known.0.get().into()))),
        ("power", Cells::Number((0..jobs.len()).map(power).collect())),
        ("wait", Cells::Number(ids().map(|id| workload.recorded_wait(id).map(seconds)).collect())),
        ("group", whole(&|job| job.group.map(|group| group.0.get().into()))),
        ("partition", Cells::Word(ids().map(partition).collect())),
    ])
}
