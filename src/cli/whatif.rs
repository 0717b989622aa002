//! `busbar whatif`: what a budget would have done to a site's own past.

use std::path::PathBuf;
use std::time::Instant as Clock;

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::budget::{Allowance, BudgetSpec};
use crate::calendar::Calendar;
use crate::cli::compare::equipment;
use crate::cli::listed::Listed;
use crate::cli::{keeping, print, rules, tables, tariff, warn};
use crate::experiment::assumptions::assumptions;
use crate::experiment::recorded::{self, RecordedRun};
use crate::experiment::run::Results;
use crate::experiment::{CheckedExperiment, Experiment, Load, Named, Place};
use crate::metrics::Summary;
use crate::policy::PolicySpec;
use crate::report::digest::Digest;
use crate::report::html::{Aside, Beside, page_with};
use crate::report::{
    Absent, FORMAT, human_energy, human_mass, human_power, human_time, make_folder, undone,
    write_whole,
};
use crate::workload::{RecordsCall, Source};

/// What a budget would have done to your own past
///
/// Reads a site's own records, and says what happened, what a budget would have done to the same jobs under the
/// site's own policy, and what each policy would have made of it. Without arguments: the built-in workload under 80 %.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar whatif --sacct january.txt --zone Europe/Berlin --machine cluster.toml --budget 1.2MW
  busbar whatif --sacct january.txt --machine cluster.toml --price 0.25EUR/kWh --out whatif/ \\
      --budget 'weekdays 14:00-18:00 nov..feb: 80%, else 100%'
  busbar whatif --workload log.swf.gz --budget 70% --switch-off 'idle for 10min, keep 5 spare'")]
pub(super) struct Arguments {
    /// Records as sacct writes them with -P or --json; those of PBS and LSF are recognised, too
    #[arg(long, value_name = "FILE", conflicts_with = "workload")]
    sacct: Option<PathBuf>,

    /// The time zone of the records' local times, such as Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE", requires = "sacct")]
    zone: Option<String>,

    /// A log instead of records (.swf, .swf.gz), or a generator [default: demo]
    #[arg(short, long, value_name = "SRC")]
    workload: Option<String>,

    /// Watts (6500W, 4.2MW), a share of the machine's maximum (80%), rules by the calendar ('weekdays 14:00-18:00
    /// nov..feb: 80%, else 100%'), or a .csv file of time,budget rows
    #[arg(short, long, value_name = "B", default_value = "80%", allow_hyphen_values = true)]
    budget: BudgetSpec,

    /// The site's own policy
    #[arg(long, value_name = "P", default_value = "easy")]
    site_policy: PolicySpec,

    /// A policy to try, or several with commas between them; may be repeated [default: easy-power, pb-guided,
    /// share(use=caps), share(use=recaps)]
    #[arg(short, long, value_name = "P")]
    policy: Vec<Listed<PolicySpec>>,

    /// A number of processors, or a .toml machine file [default: what the log says, or as many as were busy at once]
    #[arg(short, long, value_name = "M", allow_hyphen_values = true)]
    machine: Option<String>,

    /// Only jobs of this partition of the records, or of several with commas between them; of a machine file with
    /// partitions, that part is the machine
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    partition: Vec<String>,

    /// The date, time and time zone at which a log starts that does not say it
    #[arg(long, value_name = "WHEN")]
    start: Option<Calendar>,

    #[command(flatten)]
    rules: rules::Arguments,

    #[command(flatten)]
    tables: tables::Arguments,

    #[command(flatten)]
    tariff: tariff::Arguments,

    #[command(flatten)]
    keeping: keeping::Arguments,

    /// One JSON object on standard output
    #[arg(long)]
    json: bool,

    /// Write report.html, one page for the person who decides, and whatif.json into this folder
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The policies that are tried if none are named: those that need no profiles of applications, and leave jobs the nodes that they ask for.
/// Records do not say which jobs could run on others, and a month of a large site has to take seconds.
const USUAL: &str = "easy-power,pb-guided,share(use=caps),share(use=recaps)";

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let began = Clock::now();
    let mut experiment = arguments.experiment()?;
    let profiles = tables::of_experiment(&mut experiment)?;
    if let Some(named) = &experiment.machine {
        named.value.machine.remarks.iter().for_each(|remark| warn(remark));
    }
    let checked = CheckedExperiment::new(&experiment, &profiles)?;
    if let Some(folder) = &arguments.out {
        // Now rather than after a long run.
        make_folder(folder)?;
    }
    let unlimited = Experiment {
        policies: vec![arguments.site_policy],
        budgets: vec![Named::by_option("--budget", BudgetSpec::Constant(Allowance::Unlimited))],
        ..experiment.clone()
    };
    let draws = arguments.out.is_some();
    let without = CheckedExperiment::new(&unlimited, &profiles)?;
    let free = arguments.keeping.run(&without, draws, &|_| ())?;
    let tried = arguments.keeping.run(&checked, draws, &|_| ())?;
    let recorded = checked.recorded(0, 0).map_err(anyhow::Error::msg)?;
    let answer = Answer::of(arguments, &checked, recorded, &free, &tried);
    let json = serde_json::to_string_pretty(&json!({
        "format": FORMAT,
        "workload": experiment.workload_name(0),
        "budget": experiment.budget_name(0),
        "rows": answer.rows,
        "cannot_run": answer.cannot.iter().map(|absent| {
            json!({"policy": absent.policy, "reason": absent.reason})
        }).collect::<Vec<_>>(),
        "assumptions": answer.assumptions,
        "notes": answer.notes,
        "wall_s": began.elapsed().as_secs_f64(),
    }))? + "\n";
    if let Some(folder) = &arguments.out {
        let mut digests: Vec<Digest> = checked.digests(&tried);
        // What happened did not have to keep the budget: it stands beside those that had to, and is not ranked with them.
        digests.extend(answer.recorded.iter().map(|run| Digest {
            budget: experiment.budget_name(0),
            variant: "as it was".to_owned(),
            ..run.digest.clone()
        }));
        digests.extend(without.digests(&free));
        let page = page_with("What a budget would have done", &digests, &answer.beside());
        write_whole(&folder.join("report.html"), &|out| out.write_all(page.as_bytes()))?;
        write_whole(&folder.join("whatif.json"), &|out| out.write_all(json.as_bytes()))?;
    }
    match arguments.json {
        true => print(&json)?,
        false => print(&answer.text(arguments, began))?,
    }
    match tried.tried.iter().any(|tried| tried.outcome.summary().is_some()) {
        true => Ok(()),
        false => bail!("no policy could run; the reasons are above"),
    }
}

impl Arguments {
    fn experiment(&self) -> anyhow::Result<Experiment> {
        let load = match (&self.sacct, &self.workload) {
            (Some(file), _) => {
                let call = RecordsCall { file: file.clone(), zone: self.zone.clone() };
                let text = file.display().to_string();
                Named::by_option("--sacct", Load { text, source: Source::Records(call) })
            }
            (None, text) => {
                let load = text.as_deref().unwrap_or("demo").parse::<Load>();
                Named::by_option(
                    "--workload",
                    load.map_err(|why| Place::Option("--workload").error(why))?,
                )
            }
        };
        let others = match self.policy.is_empty() {
            true => USUAL.parse::<Listed<PolicySpec>>().context("--policy")?.0,
            false => Listed::joined(&self.policy).collect(),
        };
        let mut policies = vec![self.site_policy];
        policies.extend(others.into_iter().filter(|policy| *policy != self.site_policy));
        let mut experiment = Experiment {
            policies,
            budgets: vec![Named::by_option("--budget", self.budget.clone())],
            workloads: vec![load],
            seeds: vec![1],
            machine: match &self.machine {
                Some(text) => {
                    let machine = equipment(text, &self.partition)?;
                    Some(Named::by_option("--machine", machine))
                }
                None => None,
            },
            profiles: self.tables.given().map(str::to_owned),
            start: self.start.clone(),
            partitions: self.partition.clone(),
            window: self.tariff.window.clone(),
            ..Experiment::default()
        };
        self.rules.apply_to(&mut experiment);
        experiment.tariff = self.tariff.tariff(&experiment.tariff);
        Ok(experiment)
    }
}

/// One way in which the past might have gone.
#[derive(Serialize)]
struct Row {
    /// What it is about.
    what: String,
    #[serde(skip)]
    way: Way,
    #[serde(flatten)]
    summary: Summary,
}

/// What is different from what happened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Recorded,
    /// The site's own policy without a budget.
    Free,
    /// The site's own policy under the budget.
    Site,
    /// Another policy under the budget.
    Other,
}

/// All of it, for people and for programs.
struct Answer {
    budget: String,
    workload: String,
    recorded: Option<RecordedRun>,
    rows: Vec<Row>,
    cannot: Vec<Absent>,
    notes: Vec<String>,
    assumptions: Vec<String>,
}

impl Answer {
    fn of(
        arguments: &Arguments,
        checked: &CheckedExperiment<'_>,
        recorded: Option<RecordedRun>,
        free: &Results,
        tried: &Results,
    ) -> Self {
        let site = arguments.site_policy;
        let row = |way, what, summary: &Summary| Row { what, way, summary: summary.clone() };
        let mut rows = Vec::new();
        let as_recorded =
            |run: &RecordedRun| row(Way::Recorded, recorded::NAME.to_owned(), &run.digest.summary);
        rows.extend(recorded.iter().map(as_recorded));
        let without = free.tried.iter().filter_map(|tried| tried.outcome.summary());
        rows.extend(without.map(|summary| row(Way::Free, format!("{site}, no budget"), summary)));
        let under = tried
            .tried
            .iter()
            .filter_map(|tried| Some((tried.cell.policy, tried.outcome.summary()?)));
        rows.extend(under.map(|(policy, summary)| {
            // The site's own comes first.
            let way = if policy == 0 { Way::Site } else { Way::Other };
            row(way, format!("{}, budget", summary.policy), summary)
        }));
        let mut notes = checked.notes();
        match &recorded {
            None => notes.push(
                "the log does not say when jobs started, so that there is nothing to compare the simulation with"
                    .to_owned(),
            ),
            Some(run) if run.late > 0 => notes.push(format!(
                "{} jobs start up to {} later here than in the records: their nodes are not free on this machine, \
                 whose nodes are given out whole",
                run.late,
                human_time(run.latest.secs_f64())
            )),
            Some(_) => {}
        }
        Answer {
            budget: checked.experiment.budget_name(0),
            workload: checked.experiment.workload_name(0),
            recorded,
            rows,
            cannot: checked.absent(tried),
            notes,
            assumptions: assumptions(checked),
        }
    }

    /// The ways beside each other.
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
            "jobs undone",
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
            title: "What happened, and what would have".to_owned(),
            about: format!(
                "{} under {}; jobs without a budget draw what they like",
                self.workload, self.budget
            ),
            headings,
            rows: self.rows.iter().map(cells).collect(),
            picture: None,
        }
    }

    /// What the table says, in sentences.
    fn sentences(&self) -> Vec<String> {
        let of = |way: Way| self.rows.iter().find(|row| row.way == way).map(|row| &row.summary);
        let mut said = Vec::new();
        if let Some(RecordedRun { digest, .. }) = &self.recorded {
            let s = &digest.summary;
            said.push(match s.over_budget_s > 0.0 {
                true => format!(
                    "As it was, the machine would have drawn more than the budget for {} in {} stretches, by {} at most.",
                    human_time(s.over_budget_s),
                    s.excursions,
                    human_power(s.worst_excursion_w)
                ),
                false => "As it was, the machine stayed within the budget at all times.".to_owned(),
            });
        }
        if let (Some(recorded), Some(free)) = (&self.recorded, of(Way::Free))
            && let Some((was, is)) = recorded.digest.summary.mean_wait_s.zip(free.mean_wait_s)
        {
            said.push(format!(
                "Without a budget, the simulated mean wait is {} where the records have {}: so far the simulation is \
                 from this site, which has priorities, limits and failures of its own.",
                human_time(is),
                human_time(was)
            ));
        }
        let under = || self.rows.iter().filter(|row| matches!(row.way, Way::Site | Way::Other));
        let fewest = under().map(|row| undone(&row.summary)).min();
        let complete = under().filter(|row| Some(undone(&row.summary)) == fewest);
        let best = complete
            .filter_map(|row| Some((row, row.summary.mean_wait_s?)))
            .min_by(|one, other| one.1.total_cmp(&other.1));
        if let (Some((row, wait)), Some(site)) = (best, of(Way::Site)) {
            let own = site.mean_wait_s.map_or("-".to_owned(), human_time);
            said.push(match row.way == Way::Site {
                true => format!("Under the budget, the site's own policy waits least: {own} in the mean."),
                false => format!(
                    "Under the budget, jobs wait {own} in the mean under the site's own policy, and {} under {}.",
                    human_time(wait),
                    row.summary.policy
                ),
            });
        }
        let over: Vec<&Row> = under().filter(|row| row.summary.over_budget_s > 0.0).collect();
        let worst = over.iter().map(|row| row.summary.worst_excursion_w).reduce(f64::max);
        if let Some(worst) = worst {
            let names: Vec<&str> = over.iter().map(|row| row.summary.policy.as_str()).collect();
            said.push(format!(
                "{} would have drawn more than the budget at times, by {} at most: some jobs draw more than was expected \
                 of them. --guard keeps a share of the budget in reserve for that.",
                names.join(", "),
                human_power(worst)
            ));
        }
        said
    }

    fn beside(&self) -> Beside {
        let mut notes = self.sentences();
        notes.extend(self.notes.iter().map(|note| format!("Note: {note}.")));
        notes.extend(self.assumptions.iter().map(|assumed| format!("Assumed: {assumed}.")));
        let absent = self.cannot.clone();
        Beside { notes, absent, tables: vec![self.table()], ..Beside::default() }
    }

    fn text(&self, arguments: &Arguments, began: Clock) -> String {
        let mut text = self.table().text();
        let lines = self.sentences().into_iter();
        let cannot = self.cannot.iter();
        let lines = lines.chain(
            cannot.map(|absent| format!("cannot run: {}: {}", absent.policy, absent.reason)),
        );
        let lines = lines.chain(self.notes.iter().map(|note| format!("note: {note}")));
        let lines =
            lines.chain(self.assumptions.iter().map(|assumed| format!("assumed: {assumed}")));
        lines.for_each(|line| {
            text += &line;
            text.push('\n');
        });
        text += &format!("took {}\n", human_time(began.elapsed().as_secs_f64()));
        if let Some(folder) = &arguments.out {
            text += &format!("written to {}\n", folder.display());
        }
        text
    }
}
