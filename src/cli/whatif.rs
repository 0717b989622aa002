//! `busbar whatif`: what a budget would have done to a site's own past.

use std::path::PathBuf;
use std::time::Instant as Clock;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;

use crate::budget::{Allowance, BudgetSpec};
use crate::calendar::Calendar;
use crate::cli::compare::equipment;
use crate::cli::listed::Listed;
use crate::cli::{keeping, print, rules, tables, tariff, warn};
use crate::experiment::{CheckedExperiment, Experiment, Load, Named, Place};
use crate::policy::PolicySpec;
use crate::report::digest::Digest;
use crate::report::html::page_with;
use crate::report::{FORMAT, make_folder, write_whole};
use crate::workload::{RecordsCall, Source};

mod answer;

use answer::Answer;

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
