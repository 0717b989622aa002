//! What came out of records: runs in submit order, each with a number of its own.

use std::collections::HashMap;
use std::io::{self, Write};

use super::collector::Collector;
use super::error::ImportError;
use super::format::Format;
use super::id::Id;
use super::intake::RecordIntake;
use super::name::{Kind, NameTable};
use super::node_list::NodeLists;
use super::options::Options;
use super::run::Run;
use super::ties::AllTies;
use crate::power::write_power;
use crate::swf;
use busbar_core::spelling::hint;
use busbar_core::workload::{MeasuredPower, Placed};

/// Runs that happened, made of a site's records.
#[derive(Clone, Debug)]
pub struct Import {
    runs: Vec<Run>,
    names: NameTable,
    node_lists: NodeLists,
    intake: RecordIntake,
    formats: Vec<Format>,
    files: Vec<String>,
    zone: String,
    is_anonymous: bool,
    most_processors: u64,
    most_nodes: Option<u64>,
    ties: AllTies,
}

impl Import {
    /// Makes an import of what was gathered. Duplicates go, steps that stand alone find their jobs, and runs get
    /// numbers.
    pub(super) fn new(
        mut collector: Collector,
        formats: Vec<Format>,
        files: Vec<String>,
        zone: String,
        options: &Options,
    ) -> Result<Self, ImportError> {
        collector.finish_steps();
        if u32::try_from(collector.runs.len()).is_err() {
            return Err(ImportError::TooManyRuns);
        }
        // From here on no more of them come, and what is worked out about them needs room.
        collector.runs.shrink_to_fit();
        drop_duplicates(&mut collector);
        leave_out_partitions(&mut collector, &options.partitions)?;
        let count = collector.intake.skipped_duplicate;
        if options.is_strict && count > 0 {
            return Err(ImportError::Duplicates { count });
        }
        let Collector { mut runs, mut names, node_lists, mut intake, clock, ties, .. } = collector;
        let times = clock.counts();
        (intake.local_times, intake.offset_times) = (times.local, times.with_offset);
        intake.twice_times = times.twice.saturating_sub(intake.twice_told);
        intake.never_times = times.never;
        tell_shared(&mut runs, &mut intake);
        count_marks(&runs, &mut intake);
        if runs.is_empty() {
            let counts: Vec<String> = intake.lines().collect();
            let counts =
                if counts.is_empty() { "there are none".to_owned() } else { counts.join("; ") };
            return Err(ImportError::NothingUsable { counts });
        }
        // Without a copy of all of them, which sorting that keeps the order of equals would need.
        runs.sort_unstable_by_key(|run| (run.submit, run.wait, run.key));
        // The order of the records is nobody's business, so that the same runs always give the same log.
        for kind in Kind::ALL {
            names.renumber(kind, runs.iter_mut().map(|run| &mut run.names[kind as usize]));
        }
        let ties = AllTies::of(ties);
        let before: Vec<u64> = match ties.is_empty() {
            true => Vec::new(),
            false => runs.iter().map(Run::number).collect(),
        };
        number(&mut runs, &mut intake, options.is_anonymous);
        let ties = ties.numbered(&before, &runs);
        let most_processors = most_at_once(runs.iter(), |run| run.processors);
        // On shared nodes, jobs count the same node twice.
        let are_whole = intake.shared == 0 && runs.iter().all(|run| run.nodes > 0);
        let most_nodes = are_whole.then(|| most_at_once(runs.iter(), |run| run.nodes));
        let is_anonymous = options.is_anonymous;
        Ok(Import {
            runs,
            names,
            node_lists,
            intake,
            formats,
            files,
            zone,
            is_anonymous,
            most_processors,
            most_nodes,
            ties,
        })
    }

    /// The runs, in submit order.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The names of all nodes that the records name, by their numbers.
    pub fn node_names(&self) -> Vec<String> {
        self.node_lists.names()
    }

    /// Which nodes a run was on, by their numbers; nothing if the records do not name them.
    pub fn node_list(&self, run: &Run) -> Option<&[u32]> {
        let list = run.placed().list?;
        self.node_lists.all().get(list as usize).map(|nodes| &**nodes)
    }

    /// What became of the records.
    pub fn intake(&self) -> &RecordIntake {
        &self.intake
    }

    /// The layouts that were found.
    pub fn formats(&self) -> &[Format] {
        &self.formats
    }

    /// The names behind numbers.
    pub fn names(&self) -> &NameTable {
        &self.names
    }

    /// What the batch system calls the runs whose number in the log is another, by that number. Nothing if numbers are to
    /// tell nothing.
    pub fn labels(&self) -> impl Iterator<Item = (u64, String)> {
        let runs = self.runs.iter().filter(|_| !self.is_anonymous);
        let labels = runs.filter_map(|run| Some((run.number(), run.label()?)));
        labels.filter(|(number, label)| number.to_string() != *label)
    }

    /// Whether numbers are to tell nothing about who or what they stand for.
    pub fn is_anonymous(&self) -> bool {
        self.is_anonymous
    }

    /// The time zone of the site, by its name.
    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// When the clock of the log begins, in Unix time.
    pub fn start(&self) -> i64 {
        self.runs.first().map_or(0, |run| run.submit)
    }

    /// The most processors that were busy at once: the machine has at least so many.
    pub fn most_processors(&self) -> u64 {
        self.most_processors
    }

    /// The most nodes that were busy at once, if no two jobs were on one node.
    pub fn most_nodes(&self) -> Option<u64> {
        self.most_nodes
    }

    /// The records of a log.
    pub fn records(&self) -> impl Iterator<Item = swf::Record> {
        let start = self.start();
        self.runs.iter().map(move |run| run.record(start))
    }

    /// The opening comments of a log whose jobs have their power in the file of this name.
    pub fn comments(&self, power_file: Option<&str>) -> Vec<String> {
        let jobs = self.runs.len();
        let mut comments = vec!["Version: 2.2".to_owned()];
        let formats: Vec<&str> = self.formats.iter().map(|format| format.title()).collect();
        let made_of = format!("Conversion: busbar workload import, from {}", formats.join(", "));
        comments.push(made_of);
        if !self.is_anonymous {
            comments.extend(self.files.iter().map(|file| format!("Note: made of {file}")));
        }
        comments.extend([
            format!("MaxJobs: {jobs}"),
            format!("MaxRecords: {jobs}"),
            format!("UnixStartTime: {}", self.start()),
            format!("TimeZoneString: {}", self.zone),
            format!("MaxProcs: {}", self.most_processors),
        ]);
        comments.extend(self.most_nodes.map(|nodes| format!("MaxNodes: {nodes}")));
        let most = if self.most_nodes.is_some() { "MaxProcs and MaxNodes" } else { "MaxProcs" };
        comments.push(format!(
            "Note: {most}: the most that were busy at once; the machine may have more"
        ));
        let unit = if self.intake.size_from_nodes > 0 {
            "nodes, for want of processors"
        } else {
            "processors held"
        };
        comments
            .push(format!("Note: sizes are {unit}; requested times are limits; -1 is not known"));
        if !self.is_anonymous {
            comments.extend(self.listed(Kind::Queue, "Queue"));
            comments.extend(self.listed(Kind::Partition, "Partition"));
        }
        comments.extend(power_file.map(|name| format!("{}: {name}", swf::POWER_KEY)));
        comments
    }

    fn listed(&self, kind: Kind, key: &str) -> Vec<String> {
        let names = self.names.of(kind);
        (1..).zip(names).map(|(number, name)| format!("{key}: {number} {name}")).collect()
    }

    /// The power of the runs that have one, by their numbers.
    pub(crate) fn powers(&self) -> impl Iterator<Item = (u64, MeasuredPower)> {
        self.runs.iter().filter_map(|run| Some((run.number(), run.power()?)))
    }

    /// The workload that a log of these runs is read as.
    pub fn workload(&self, name: &str) -> Result<swf::Log, swf::SwfError> {
        let mut bytes = Vec::new();
        let mut writer = swf::Writer::new(&mut bytes);
        // Memory takes whatever is written to it.
        let written: io::Result<()> = (self.comments(None).iter())
            .try_for_each(|comment| writer.comment(comment))
            .and_then(|()| self.records().try_for_each(|record| writer.record(&record)));
        debug_assert!(written.is_ok(), "{written:?}");
        let mut log = swf::read(&bytes, name, swf::BadRecords::Stop)?;
        if self.intake.with_power > 0 {
            let powers: HashMap<u64, MeasuredPower> = self.powers().collect();
            log.workload.set_powers(|job| powers.get(&job.number).copied());
        }
        let on_nodes = self.runs.iter().filter(|run| run.nodes > 0);
        let placed: HashMap<u64, Placed> =
            on_nodes.map(|run| (run.number(), run.placed())).collect();
        if !placed.is_empty() {
            log.workload.set_placed(self.node_lists.all().to_vec(), |job| {
                placed.get(&job.number).copied().unwrap_or_default()
            });
        }
        if !self.ties.is_empty() || self.names.count(Kind::Reservation) > 0 {
            let start = self.start();
            let known: HashMap<u64, &Run> =
                self.runs.iter().map(|run| (run.number(), run)).collect();
            log.workload.set_structure(|job| {
                known.get(&job.number).map(|run| self.ties.structure(run, start))
            });
        }
        Ok(log)
    }

    /// Writes the power of the runs that have one.
    pub fn write_power(&self, out: &mut dyn Write) -> io::Result<()> {
        write_power(out, self.powers())
    }
}

/// Removes runs that stand in the records more than once, and lets steps that stand elsewhere find their jobs.
fn drop_duplicates(collector: &mut Collector) {
    let runs = &collector.runs;
    let mut by_key: Vec<u32> = (0..runs.len() as u32).collect();
    let what = |place: u32| {
        let run = &runs[place as usize];
        (run.key, run.start(), run.run_time)
    };
    by_key.sort_by_key(|place| what(*place));
    let mut is_twice = vec![false; runs.len()];
    for pair in by_key.windows(2) {
        // Whoever has no number is nobody's duplicate.
        let has_number = runs[pair[1] as usize].key != u64::MAX;
        is_twice[pair[1] as usize] = has_number && what(pair[0]) == what(pair[1]);
    }
    by_key.retain(|place| !is_twice[*place as usize]);
    collector.settle_loose_steps(&by_key);
    let before = collector.runs.len();
    let mut twice = is_twice.into_iter();
    collector.runs.retain(|_| !twice.next().unwrap_or(false));
    let dropped = (before - collector.runs.len()) as u64;
    collector.intake.usable -= dropped;
    collector.intake.skipped_duplicate += dropped;
}

/// Leaves out the runs in other partitions than these.
fn leave_out_partitions(collector: &mut Collector, wanted: &[String]) -> Result<(), ImportError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let names = collector.names.of(Kind::Partition);
    if let Some(wrong) = wanted.iter().find(|name| !names.contains(*name)) {
        return Err(ImportError::NoPartition {
            wanted: wrong.clone(),
            hint: hint(wrong, names.iter().map(String::as_str)),
            names: if names.is_empty() { "none".to_owned() } else { names.join(", ") },
        });
    }
    // Names are numbered from 1, and 0 is none.
    let is_wanted = |run: &Run| {
        let place = (run.names[Kind::Partition as usize] as usize).checked_sub(1);
        place.and_then(|place| names.get(place)).is_some_and(|name| wanted.contains(name))
    };
    let before = collector.runs.len();
    collector.runs.retain(is_wanted);
    let dropped = (before - collector.runs.len()) as u64;
    collector.intake.usable -= dropped;
    collector.intake.skipped_other_partition += dropped;
    Ok(())
}

/// Counts what was found and repaired, once all runs are known that stay.
fn count_marks(runs: &[Run], intake: &mut RecordIntake) {
    for run in runs {
        let marks = run.marks;
        intake.with_power += u64::from(run.power().is_some());
        intake.limit_unknown += u64::from(run.limit == 0);
        intake.submit_from_eligible += u64::from(marks.submit_from_eligible);
        intake.submit_moved += u64::from(marks.submit_moved);
        intake.elapsed_differs += u64::from(marks.elapsed_differs);
        intake.size_from_nodes += u64::from(marks.size_from_nodes);
        intake.reserved += u64::from(run.names[Kind::Reservation as usize] > 0);
        intake.with_node_names += u64::from(run.node_list > 0);
        intake.power_unreadable += u64::from(marks.power_unreadable);
    }
}

/// Finds out who had whole nodes. A node has as many processors as the largest run in the same partition had on each
/// of its nodes. Records that say by themselves that nodes were exclusive are believed.
fn tell_shared(runs: &mut [Run], intake: &mut RecordIntake) {
    // By partition: the most processors on a node, rounded up.
    let mut per_node: Vec<u32> = Vec::new();
    for run in runs.iter().filter(|run| run.nodes > 0 && !run.marks.size_from_nodes) {
        let partition = partition_of(run);
        if per_node.len() <= partition {
            per_node.resize(partition + 1, 0);
        }
        let most = &mut per_node[partition];
        *most = (*most).max(run.processors.div_ceil(run.nodes));
    }
    let most_of_all = per_node.iter().copied().max().unwrap_or(0);
    for run in runs.iter_mut().filter(|run| run.nodes > 0) {
        let of_partition = per_node.get(partition_of(run)).copied().filter(|most| *most > 0);
        // Where nobody has processors, all are counted in nodes.
        let whole = run.nodes.saturating_mul(of_partition.unwrap_or(most_of_all).max(1));
        if run.marks.size_from_nodes && most_of_all > 0 {
            // Nodes and processors are not to be mixed in one log: a run of which only nodes are known had them whole.
            (run.processors, run.marks.size_from_nodes) = (whole, false);
            intake.size_of_whole_nodes += 1;
        }
        if run.is_exclusive && run.processors < whole {
            run.processors = whole;
            intake.size_raised += 1;
        }
        // A node more or less full is a matter of rounding.
        let is_shared = run.processors < whole && !run.is_exclusive;
        *(if is_shared { &mut intake.shared } else { &mut intake.exclusive }) += 1;
        if is_shared && run.is_of_nodes && run.mean_mw > 0 {
            run.mean_mw = 0;
            intake.power_of_others += 1;
        }
    }
}

/// Where the records name no partition, queues tell nodes apart.
fn partition_of(run: &Run) -> usize {
    match run.names[Kind::Partition as usize] {
        0 => run.names[Kind::Queue as usize] as usize,
        partition => partition as usize,
    }
}

/// Gives each run a number that no other has: that of its job if it is the first run of it. All others get the
/// numbers after the largest, in submit order. Without names, jobs are counted from 1.
fn number(runs: &mut [Run], intake: &mut RecordIntake, is_anonymous: bool) {
    let own = |run: &Run| Id(run.key).number().map(u64::from);
    let mut by_key: Vec<u32> = (0..runs.len() as u32).collect();
    by_key.sort_by_key(|place| runs[*place as usize].key);
    let is_further = |pair: &[u32]| {
        let [before, this] = [pair[0], pair[1]].map(|place| runs[place as usize].key);
        before == this && this != u64::MAX
    };
    let mut further: Vec<u32> =
        by_key.windows(2).filter(|pair| is_further(pair)).map(|pair| pair[1]).collect();
    drop(by_key);
    further.sort_unstable();
    intake.further_runs = further.len() as u64;
    let mut next = match is_anonymous {
        true => 1,
        false => runs.iter().filter_map(own).max().unwrap_or(0) + 1,
    };
    let mut further = further.into_iter().peekable();
    for (place, run) in runs.iter_mut().enumerate() {
        let is_further = further.next_if_eq(&(place as u32)).is_some();
        let kept = own(run).filter(|_| !is_further && !is_anonymous);
        run.key = kept.unwrap_or_else(|| {
            next += 1;
            next - 1
        });
        intake.renumbered += u64::from(kept.is_none());
    }
}

/// The most of something that all runs had at one time.
pub(super) fn most_at_once<'a>(
    runs: impl Iterator<Item = &'a Run> + Clone,
    count: impl Fn(&Run) -> u32,
) -> u64 {
    let mut changes = Vec::with_capacity(2 * runs.size_hint().0);
    for run in runs.clone() {
        let count = i64::from(count(run));
        changes.extend([(run.start(), count), (run.end(), -count)]);
    }
    // Whoever ends makes room for those who begin at the same instant.
    changes.sort_unstable();
    let mut busy = 0i64;
    let levels = changes.iter().map(|(_, change)| {
        busy += change;
        busy
    });
    // A job of no time at all ends as it begins, but was there.
    let largest = runs.map(|run| i64::from(count(run))).max().unwrap_or(0);
    levels.max().unwrap_or(0).max(largest) as u64
}
