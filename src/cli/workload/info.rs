//! `busbar workload info`: the statistics of a workload.

use clap::Args;
use serde::Serialize;

use super::usual;
use crate::cli::{load, print, tables, wrong_kind};
use crate::job::Job;
use crate::profile::counted;
use crate::report::human_time;
use crate::workload::swf::Intake;
use crate::workload::{MeasuredPower, Selection, Workload};

#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    load: load::Arguments,
    #[command(flatten)]
    tables: tables::Arguments,
    /// A number of processors, or a .toml machine file [default: from the log's header]
    #[arg(short, long, value_name = "M")]
    machine: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The statistics of a workload.
#[derive(Serialize)]
struct Portrait<'a> {
    workload: &'a str,
    jobs: usize,
    processors: u32,
    #[serde(skip)]
    processors_per_node: u32,
    span_s: f64,
    offered_load: Option<f64>,
    serial_share: f64,
    power_of_two_share: f64,
    larger_than_machine: usize,
    size: Spread,
    run_time_s: Spread,
    requested_s: Spread,
    estimates_below_run_time: usize,
    jobs_with_power: usize,
    /// The measured mean power of a job, by nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    power_w_per_node: Option<Spread>,
    /// The partitions that jobs ran in, where the log says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    partitions: Vec<PartitionJobs>,
    /// How many jobs of other partitions, or of none, are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs_left_out: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intake: Option<&'a Intake>,
    /// How many accounting records were used or left out, if the workload was made from records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// How many jobs ran in a partition.
#[derive(Serialize)]
struct PartitionJobs {
    name: String,
    jobs: usize,
}

/// The smallest, the quartiles, the largest and the mean.
#[derive(Serialize)]
struct Spread {
    min: f64,
    lower_quartile: f64,
    median: f64,
    upper_quartile: f64,
    max: f64,
    mean: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
        Spread {
            min: at(0.0),
            lower_quartile: at(0.25),
            median: at(0.5),
            upper_quartile: at(0.75),
            max: at(1.0),
            mean: values.iter().sum::<f64>() / values.len() as f64,
        }
    }

    fn row(&self, show: impl Fn(f64) -> String) -> String {
        let [min, lower, median, upper, max, mean] =
            [self.min, self.lower_quartile, self.median, self.upper_quartile, self.max, self.mean]
                .map(show);
        format!("{min:>9} {lower:>9} {median:>9} {upper:>9} {max:>9} {mean:>10}")
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    look(arguments).map(|_| ())
}

/// Prints the statistics of a workload, and returns them.
pub(in crate::cli) fn look(arguments: &Arguments) -> anyhow::Result<Workload> {
    let part_of = |text| wrong_kind::machine(text, &arguments.load.partition);
    let machine = arguments.machine.as_deref().map(part_of).transpose()?;
    let source = arguments.load.source("demo")?;
    let usual = usual(&source, &arguments.tables)?;
    let loaded = arguments.load.load(&source, machine.as_ref(), usual.as_ref(), false)?;
    let workload = &loaded.workload;
    let per_node = machine.as_ref().map_or(1, |machine| machine.processors_per_node);
    let processors = machine
        .map(|machine| machine.processors())
        .or(workload.processors())
        .unwrap_or(workload.largest_job());
    let jobs = workload.jobs();
    let powers = powers_per_node(workload, per_node);
    let partitions = workload.partitions().into_iter();
    let count = |wanted: &dyn Fn(u32) -> bool| jobs.iter().filter(|job| wanted(job.nodes)).count();
    let share = |part: usize| part as f64 / jobs.len() as f64;
    let times = jobs.iter().zip(workload.run_times());
    let portrait = Portrait {
        workload: workload.name(),
        jobs: jobs.len(),
        processors,
        processors_per_node: per_node,
        span_s: match (jobs.first(), jobs.last()) {
            (Some(first), Some(last)) => last.submit.since(first.submit).secs_f64(),
            _ => 0.0,
        },
        offered_load: workload.offered_load(processors),
        serial_share: share(count(&|size| size == 1)),
        power_of_two_share: share(count(&|size| size > 1 && size.is_power_of_two())),
        larger_than_machine: count(&|size| size > processors),
        size: Spread::of(jobs.iter().map(|job| f64::from(job.nodes)).collect()),
        run_time_s: Spread::of(workload.run_times().iter().map(|run| run.secs_f64()).collect()),
        requested_s: Spread::of(jobs.iter().map(|job| job.requested.secs_f64()).collect()),
        estimates_below_run_time: times.filter(|(job, run)| job.requested < **run).count(),
        jobs_with_power: workload.powers_known(),
        power_w_per_node: (!powers.is_empty()).then(|| Spread::of(powers)),
        partitions: partitions.map(|(name, jobs)| PartitionJobs { name, jobs }).collect(),
        jobs_left_out: workload.selection().map(Selection::left_out),
        intake: loaded.intake.as_ref(),
        notes: workload.remarks().to_vec(),
    };
    match arguments.json {
        true => print(&(serde_json::to_string_pretty(&portrait)? + "\n"))?,
        false => print(&describe(&portrait))?,
    }
    Ok(loaded.workload)
}

/// The measured mean power of jobs, in watts for each of their nodes.
fn powers_per_node(workload: &Workload, processors_per_node: u32) -> Vec<f64> {
    let per_node = |(job, power): (&Job, MeasuredPower)| {
        let nodes = job.processors.div_ceil(processors_per_node.max(1)).max(1);
        Some(power.mean()?.as_f64() / f64::from(nodes))
    };
    workload.powers().filter_map(per_node).collect()
}

fn describe(portrait: &Portrait<'_>) -> String {
    let p = portrait;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut text = format!(
        "    workload  {}\n        jobs  {} over {}\n     machine  {} processors, offered load {}\n\
         \x20      sizes  {} serial, {} other powers of two, {} larger than the machine\n",
        p.workload,
        p.jobs,
        human_time(p.span_s),
        p.processors,
        p.offered_load.map_or("-".to_owned(), |load| format!("{load:.3}")),
        percent(p.serial_share),
        percent(p.power_of_two_share),
        p.larger_than_machine,
    );
    text += &format!(
        "   estimates  {} below the run time\n\n{:>12}  {:>9} {:>9} {:>9} {:>9} {:>9} {:>10}\n",
        p.estimates_below_run_time, "", "min", "quarter", "median", "quarter", "max", "mean"
    );
    text += &format!("{:>12}  {}\n", "processors", p.size.row(|size| format!("{size:.1}")));
    text += &format!("{:>12}  {}\n", "run time", p.run_time_s.row(human_time));
    text += &format!("{:>12}  {}\n", "requested", p.requested_s.row(human_time));
    if let Some(power) = &p.power_w_per_node {
        let what = if p.processors_per_node > 1 { "W/node" } else { "W/processor" };
        text += &format!("{what:>12}  {}\n", power.row(|watts| format!("{watts:.1}")));
        text +=
            &format!("{:>12}  measured for {} of {} jobs\n", "power", p.jobs_with_power, p.jobs);
    }
    // One partition is nothing to choose from.
    if p.partitions.len() > 1 || p.jobs_left_out.is_some() {
        let jobs = |part: &PartitionJobs| format!("{}: {}", part.name, counted(part.jobs, "job"));
        let parts: Vec<String> = p.partitions.iter().map(jobs).collect();
        let left_out = p.jobs_left_out.filter(|left_out| *left_out > 0);
        let others = left_out.map_or(String::new(), |left_out| {
            format!("; {} in others or none left out", counted(left_out, "job"))
        });
        text += &format!("{:>12}  {}{others}\n", "partitions", parts.join(", "));
    }
    for line in p.intake.iter().flat_map(|intake| intake.lines()) {
        text += &format!("{:>12}  {line}\n", "log");
    }
    for note in &p.notes {
        text += &format!("{:>12}  {note}\n", "note");
    }
    text
}
