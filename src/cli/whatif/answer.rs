//! The answer of `busbar whatif`: the recorded past and the simulations, as tables, as a page and as JSON.

mod jobs;
pub(super) mod sentences;

use sentences::Basis;

use std::time::Instant as Clock;

use serde::Serialize;
use serde_json::{Value, json};

use super::Arguments;
use super::cuts::{Cuts, Period, window_table};
use super::past::Past;
use super::who::{IN_TEXT, ON_PAGE, Who};
use crate::budget::WindowSpec;
use crate::experiment::CheckedExperiment;
use crate::experiment::assumptions::assumptions;
use crate::experiment::compared::Runs;
use crate::experiment::recorded::{self, RecordedRun};
use crate::experiment::run::Results;
use crate::machine::Machine;
use crate::metrics::{By, Summary};
use crate::report::digest::Digest;
use crate::report::html::{Aside, Beside, page_with};
use crate::report::{Absent, FORMAT, human_energy, human_mass, human_power, human_time, undone};
use crate::units::Instant;
use crate::workload::Workload;

/// A row of the table: the past as recorded, or a simulation.
#[derive(Serialize)]
pub(super) struct Row {
    /// Its kind.
    pub(super) what: String,
    #[serde(skip)]
    pub(super) way: Way,
    #[serde(flatten)]
    pub(super) summary: Summary,
    #[serde(skip)]
    pub(super) digest: Digest,
}

/// How a row differs from what was recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Recorded,
    /// The site's own policy without a budget.
    Free,
    /// The site's own policy under the budget.
    Site,
    /// Another policy under the budget.
    Other,
}

impl Way {
    /// Whether the run had to keep the budget.
    pub(super) fn is_limited(self) -> bool {
        matches!(self, Way::Site | Way::Other)
    }
}

/// What is known of the recorded jobs beside their figures.
#[derive(Clone, Copy)]
pub(super) struct Recorded {
    /// Jobs whose starts are known.
    pub(super) jobs: u64,
    pub(super) start_unknown: u64,
    /// Jobs that did not have all processors of their nodes.
    pub(super) on_parts: u64,
    /// Jobs whose nodes are not named.
    unnamed: u64,
    /// The most nodes that were busy at once.
    most_nodes: u64,
    /// Whether simulated jobs have parts of nodes, too.
    are_shared: bool,
}

impl Recorded {
    /// How many jobs ran on parts of nodes, in words, if that is enough to make simulated waits on whole nodes too long.
    pub(super) fn parts_in_words(self) -> Option<String> {
        let share = self.on_parts as f64 / self.jobs.max(1) as f64;
        (share >= 0.01 && !self.are_shared)
            .then(|| format!("{:.0} % of the jobs ran on parts of nodes", share * 100.0))
    }

    /// How the recorded past of this many jobs is added up, and what of it does not fit the machine.
    fn notes(self, machine: &Machine, jobs: usize) -> Vec<String> {
        let Recorded { jobs: known, start_unknown, on_parts, unnamed, most_nodes, are_shared } =
            self;
        let counted = match unnamed {
            0 => String::new(),
            _ if unnamed == known => {
                "; the nodes have no names in the log, so as few are busy as have the processors that jobs held"
                    .to_owned()
            }
            some => format!(
                "; the nodes of {some} jobs have no names in the log, so as few are busy for these jobs as have the \
                 processors that they held"
            ),
        };
        let mut notes = vec![format!(
            "'as recorded' is added up from the log and not simulated: a node draws its idle power once, and each job adds \
             its measured power beyond that or, if it was not measured, its processors' part of what its application \
             adds on whole nodes{counted}"
        )];
        if start_unknown > 0 {
            notes.push(format!(
                "jobs without a recorded start: {start_unknown} of {jobs}; 'as recorded' excludes them and their energy"
            ));
        }
        if on_parts > 0 && !are_shared {
            notes.push(format!(
                "{on_parts} of {jobs} jobs ran on parts of nodes, which they could share; the simulated policies give each \
                 job whole nodes, and so overstate waits; a machine file whose partitions are 'shared' gives them parts"
            ));
        }
        let nodes = machine.kinds.as_ref().map_or(machine.nodes, |kinds| kinds.nodes());
        if most_nodes > nodes.into() {
            notes.push(format!(
                "{most_nodes} nodes were busy at once, but the machine has {}; --machine names one that has them, and \
                 --partition takes the jobs of a part",
                nodes
            ));
        }
        notes
    }
}

/// The whole answer.
pub(super) struct Answer {
    budget: String,
    workload: String,
    pub(super) basis: Basis,
    /// What is known of the recorded jobs, if the log says when they started.
    pub(super) recorded: Option<Recorded>,
    /// Whether the site's priorities are known.
    pub(super) knows_priorities: bool,
    pub(super) rows: Vec<Row>,
    cannot: Vec<Absent>,
    pub(super) who: Option<Who>,
    pub(super) period: String,
    pub(super) cuts: Cuts,
    window: Option<Aside>,
    machine: Value,
    past: Past,
    jobs: Workload,
    notes: Vec<String>,
    assumptions: Vec<String>,
}

/// The input of an answer.
pub(super) struct Made<'a> {
    pub(super) checked: &'a CheckedExperiment<'a>,
    pub(super) without: &'a CheckedExperiment<'a>,
    pub(super) recorded: Option<RecordedRun>,
    pub(super) free: &'a Results,
    pub(super) tried: &'a Results,
    pub(super) past: Past,
    pub(super) basis: Basis,
}

impl Answer {
    pub(super) fn of(arguments: &Arguments, made: Made<'_>) -> Result<Self, String> {
        let Made { checked, without, recorded, free, tried, past, basis } = made;
        let row = |way, what: String, digest: Digest| Row {
            what,
            way,
            summary: digest.summary.clone(),
            digest,
        };
        let known = recorded.as_ref().map(|run| Recorded {
            jobs: run.jobs(),
            start_unknown: run.start_unknown,
            on_parts: run.on_parts,
            unnamed: run.unnamed,
            most_nodes: run.most_nodes,
            are_shared: checked.machine(0, 0).kinds.is_some(),
        });
        let mut rows: Vec<Row> = recorded
            .into_iter()
            .map(|run| row(Way::Recorded, recorded::NAME.to_owned(), run.digest))
            .collect();
        let site = arguments.site_policy().to_string();
        let of_free = without.digests(free).into_iter();
        rows.extend(of_free.map(|digest| row(Way::Free, format!("{site}, no budget"), digest)));
        rows.extend(checked.digests(tried).into_iter().map(|digest| {
            let policy = digest.summary.policy.clone();
            let way = if policy == site { Way::Site } else { Way::Other };
            row(way, format!("{policy}, budget"), digest)
        }));
        // Cuts may fall into the time in which the last jobs still run; the records are of an earlier one.
        let begin = rows.iter().map(|row| row.digest.begin).min().unwrap_or(0);
        let end = |rows: &[Row]| rows.iter().map(|row| row.digest.end).max().unwrap_or(0);
        let until = |end: u64| Period {
            from: Instant::from_millis(begin),
            until: Instant::from_millis(end),
        };
        let period = until(end(&rows));
        let words = until(end(rows.get(..1).unwrap_or_default())).words(checked.dates(0));
        let jobs = checked.jobs(0)?;
        let who = runs(&rows).map(|runs| Who::of(&jobs, &past, &runs));
        let window = arguments.tariff.window.as_ref();
        let of_rows = || rows.iter().map(|row| (row.what.as_str(), &row.summary));
        let cuts = Cuts::of(&arguments.budget, checked, period, &words);
        let nothing_cut = cuts.is_constant || cuts.none.is_some();
        let window = match window {
            Some(WindowSpec::Cuts) if nothing_cut => None,
            window => window.and_then(|window| window_table(window, of_rows())),
        };
        let machine = checked.machine(0, 0);
        let machine = json!({
            "name": machine.name,
            "nodes": machine.nodes,
            "processors_per_node": machine.processors_per_node,
            "node_power_w": machine.node_power.as_f64(),
            "known_by": basis,
        });
        let mut answer = Answer {
            budget: checked.experiment.budget_name(0),
            workload: checked.experiment.workload_name(0),
            basis,
            recorded: known,
            knows_priorities: arguments.rules.site.is_some(),
            rows,
            cannot: checked.absent(tried),
            who,
            period: words,
            cuts,
            window,
            machine,
            past,
            jobs,
            notes: Vec::new(),
            assumptions: assumptions(checked),
        };
        answer.notes = answer.found(arguments, checked);
        Ok(answer)
    }

    /// Notes about the records, the machine and the budget, one sentence each.
    fn found(&self, arguments: &Arguments, checked: &CheckedExperiment<'_>) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        notes.extend(self.past.taken.as_ref().and_then(|taken| taken.left_out()));
        let jobs = self.jobs.jobs().len();
        match self.recorded {
            None => notes.push(
                "the log does not say when jobs started, so the simulation cannot be compared with it"
                    .to_owned(),
            ),
            Some(recorded) => notes.extend(recorded.notes(checked.machine(0, 0), jobs)),
        }
        notes.extend(self.cuts.never.iter().cloned());
        if arguments.tariff.window == Some(WindowSpec::Cuts) && self.cuts.is_constant {
            notes.push(
                "--window cuts: the budget never changes, so there are no cuts to show".to_owned(),
            );
        }
        notes.extend(checked.notes());
        notes
    }

    /// The table of all rows.
    fn table(&self) -> Aside {
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let has_cost = self.rows.iter().any(|row| row.summary.cost.is_some());
        let has_carbon = self.rows.iter().any(|row| row.summary.carbon_kg.is_some());
        let mut headings: Vec<String> = [
            "",
            "mean wait",
            "99 % within",
            "longest",
            "slowdown",
            "peak",
            "energy",
            "over budget",
            "incomplete jobs",
        ]
        .map(str::to_owned)
        .to_vec();
        if has_cost {
            let currency = self.rows.iter().find_map(|row| row.summary.currency.clone());
            headings.push(format!("cost ({})", currency.unwrap_or_default()));
        }
        if has_carbon {
            headings.push("CO₂".to_owned());
        }
        let cells = |row: &Row| {
            let s = &row.summary;
            let mut cells = vec![
                row.what.clone(),
                or_dash(s.mean_wait_s.map(human_time)),
                or_dash(s.p99_wait_s.map(human_time)),
                or_dash(s.max_wait_s.map(human_time)),
                or_dash(s.mean_bsld.map(|bsld| format!("{bsld:.2}"))),
                human_power(s.site_peak_w.unwrap_or(s.peak_power_w)),
                human_energy(s.site_energy_j.unwrap_or(s.energy_j)),
                match s.over_budget_s > 0.0 {
                    // What was drawn is made up here, and is not held against anybody.
                    _ if row.way == Way::Recorded && self.basis == Basis::Assumption => {
                        "not known".to_owned()
                    }
                    true => human_time(s.over_budget_s),
                    false => "-".to_owned(),
                },
                undone(s).to_string(),
            ];
            if has_cost {
                cells.push(or_dash(s.cost.map(|cost| format!("{cost:.0}"))));
            }
            if has_carbon {
                cells.push(or_dash(s.carbon_kg.map(human_mass)));
            }
            cells
        };
        Aside {
            title: "As recorded, and under the budget".to_owned(),
            about: format!(
                "{} under {}; without a budget, power is not limited",
                self.workload, self.budget
            ),
            headings,
            rows: self.rows.iter().map(cells).collect(),
            picture: None,
        }
    }

    /// The name of a row.
    pub(super) fn row(&self, way: Way) -> Option<&Row> {
        self.rows.iter().find(|row| row.way == way)
    }

    /// The name of the budget.
    pub(super) fn budget(&self) -> &str {
        &self.budget
    }

    /// Tables of waits by user, account and partition, and of time windows.
    fn details(&self, most: usize, with_others: bool) -> Vec<Aside> {
        let runs = runs(&self.rows);
        let who = self.who.iter().zip(&runs);
        let mut tables: Vec<Aside> =
            who.flat_map(|(who, runs)| who.tables(runs, most, with_others)).collect();
        tables.extend(self.window.clone());
        tables
    }

    /// The page.
    pub(super) fn page(&self) -> String {
        // One budget, so that all of them are shown together; tables of users have their names here.
        let digest = |row: &Row| {
            let mut digest = row.digest.clone();
            digest.summary.policy.clone_from(&row.what);
            digest.waits_by.retain(|by| !matches!(by.by, By::User | By::Group));
            digest
        };
        let digests: Vec<Digest> = self.rows.iter().map(digest).collect();
        let mut notes = sentences::all(self);
        notes.extend(self.notes.iter().map(|note| format!("Note: {note}.")));
        notes.extend(self.assumptions.iter().map(|assumed| format!("Assumed: {assumed}.")));
        let beside = Beside {
            lead: sentences::lead(self),
            answer: Some(self.table()),
            details: self.details(ON_PAGE, true),
            references: self.rows.iter().filter(|row| !row.way.is_limited()).count(),
            job_labels: self.past.labels(),
            notes,
            absent: self.cannot.clone(),
            ..Beside::default()
        };
        page_with("Past jobs under a budget", &digests, &beside)
    }

    /// One row a job.
    pub(super) fn jobs_csv(&self) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        jobs::write(&mut bytes, &self.jobs, &self.past, &self.rows)?;
        Ok(bytes)
    }

    pub(super) fn json(&self, began: Clock) -> Value {
        let cannot = self.cannot.iter();
        let runs = runs(&self.rows);
        let who = self.who.as_ref().zip(runs.as_ref());
        json!({
            "format": FORMAT,
            "workload": self.workload,
            "budget": self.budget,
            "lead": sentences::lead(self),
            "machine": self.machine,
            "records": self.past.taken,
            "start_unknown": self.recorded.map(|recorded| recorded.start_unknown),
            "jobs_on_parts_of_nodes": self.recorded.map(|recorded| recorded.on_parts),
            "no_cut": self.cuts.none,
            "rows": self.rows,
            "waits": who.map(|(who, runs)| who.json(runs)),
            "cannot_run": cannot.map(|absent| {
                json!({"policy": absent.policy, "reason": absent.reason})
            }).collect::<Vec<_>>(),
            "assumptions": self.assumptions,
            "notes": self.notes,
            "wall_s": began.elapsed().as_secs_f64(),
        })
    }

    pub(super) fn text(&self, arguments: &Arguments, began: Clock) -> String {
        let mut text = sentences::lead(self).map(|lead| lead + "\n\n").unwrap_or_default();
        text += &self.table().text();
        let mut line = |line: &str| {
            text += line;
            text.push('\n');
        };
        sentences::all(self).iter().for_each(|said| line(said));
        for absent in &self.cannot {
            line(&format!("cannot run: {}: {}", absent.policy, absent.reason));
        }
        for table in self.details(IN_TEXT, false) {
            line("");
            line(table.text().trim_end());
        }
        line("");
        self.notes.iter().for_each(|note| line(&format!("note: {note}")));
        self.assumptions.iter().for_each(|assumed| line(&format!("assumed: {assumed}")));
        line(&format!("took {}", human_time(began.elapsed().as_secs_f64())));
        if let Some(folder) = &arguments.out {
            line(&format!("written to {}", folder.display()));
        }
        text
    }
}

/// All runs, those without a budget first; `None` if nothing can be compared.
fn runs(rows: &[Row]) -> Option<Runs<'_>> {
    Some(Runs {
        all: rows.iter().map(|row| (row.what.as_str(), &row.digest)).collect(),
        before: rows.iter().position(|row| row.way == Way::Free)?,
        after: rows.iter().position(|row| row.way == Way::Site),
    })
}
