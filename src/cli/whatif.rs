//! `busbar whatif`: replays a site's past jobs under a budget.

use std::path::PathBuf;
use std::time::Instant as Clock;

use anyhow::{Context, bail};
use clap::Args;

use crate::budget::{Allowance, BudgetSpec};
use crate::calendar::Calendar;
use crate::cli::compare::equipment;
use crate::cli::listed::Listed;
use crate::cli::{keeping, load, print, rules, tables, tariff, warn};
use crate::experiment::{CheckedExperiment, Experiment, Load, Named};
use crate::policy::PolicySpec;
use crate::report::{make_folder, write_whole};
use crate::workload::{RecordsCall, Source};

mod answer;
mod choice;
mod cuts;
mod past;
mod who;

use answer::sentences::Basis;
use answer::{Answer, Made};
use cuts::names_watts;
use past::Past;

/// Replay past jobs under a budget
///
/// It reads a site's records and compares what happened with simulations of the same jobs under the budget: by the
/// site's own policy, and by other policies. Without arguments, it replays the built-in workload under 80 %.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar whatif january.txt --zone Europe/Berlin --machine cluster.toml --budget 1.2MW
  busbar whatif january.txt --machine cluster.toml --price 0.25EUR/kWh --out whatif/ \\
      --budget 'weekdays 14:00-18:00 nov..feb: 80%, else 100%'
  busbar whatif log.swf.gz --budget 70% --switch-off 'idle for 10min, keep 5 spare'")]
pub(super) struct Arguments {
    /// Accounting records (sacct with -P or --json, PBS, LSF), or a log (.swf, .swf.gz)
    #[arg(value_name = "FILE", conflicts_with_all = ["sacct", "workload"])]
    file: Option<String>,

    /// Like FILE, but read only as accounting records
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "workload",
        help_heading = "Records and logs"
    )]
    sacct: Option<PathBuf>,

    /// The time zone of the records' local times, such as Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE", help_heading = "Records and logs")]
    zone: Option<String>,

    /// A log instead of records (.swf, .swf.gz), or a generator [default: demo]
    #[arg(short, long, value_name = "SRC", help_heading = "Records and logs")]
    workload: Option<String>,

    /// Power budget: watts (6500W, 4.2MW), a share of the machine's maximum (80%), rules, or a file
    ///
    /// Rules are by the calendar, such as 'weekdays 14:00-18:00 nov..feb: 80%, else 100%'. A file has time,budget
    /// rows (.csv).
    #[arg(short, long, value_name = "B", default_value = "80%", allow_hyphen_values = true)]
    budget: BudgetSpec,

    /// The site's own policy [default: easy, or slurm with --site]
    #[arg(long, value_name = "P")]
    site_policy: Option<PolicySpec>,

    /// Policies to try, separated by commas; may be repeated [default: easy-power, pb-guided, share(use=caps),
    /// share(use=recaps)]
    #[arg(short, long, value_name = "P")]
    policy: Vec<Listed<PolicySpec>>,

    /// A number of processors, or a .toml machine file [default: from the log's header, or from the nodes and the
    /// measured power in the records]
    #[arg(short, long, value_name = "M", allow_hyphen_values = true)]
    machine: Option<String>,

    /// Only jobs of this partition of the records, or of several, separated by commas
    ///
    /// If the machine file has partitions, only this one is simulated.
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = "Records and logs")]
    partition: Vec<String>,

    /// Replace names of users and accounts and job numbers by other numbers
    #[arg(long, conflicts_with = "partition", help_heading = "Records and logs")]
    anonymise: bool,

    /// Date and time zone at which a log starts, if its header does not say
    #[arg(long, value_name = "WHEN", help_heading = "Records and logs")]
    start: Option<Calendar>,

    #[command(flatten)]
    rules: rules::Arguments,

    #[command(flatten)]
    tables: tables::Arguments,

    #[command(flatten)]
    tariff: tariff::Arguments,

    #[command(flatten)]
    keeping: keeping::Arguments,

    /// Print one JSON object
    #[arg(long, help_heading = "Results")]
    json: bool,

    /// Write report.html, whatif.json and jobs.csv into this folder
    ///
    /// report.html is one page for the person who decides; jobs.csv has the waits of every job.
    #[arg(short, long, value_name = "DIR", help_heading = "Results")]
    out: Option<PathBuf>,
}

/// The default policies: those that need no application profiles and keep each job's number of nodes. Records do not
/// say which jobs are moldable, and a month of a large site has to take seconds.
const USUAL: &str = "easy-power,pb-guided,share(use=caps),share(use=recaps)";

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let began = Clock::now();
    let mut experiment = arguments.experiment()?;
    let load = &experiment.workloads[0];
    if let Source::Records(call) = &load.value.source
        && call.file.as_os_str() == "-"
    {
        // Every run reads the jobs again.
        let why = "standard input can be read only once; write the records to a file and name it";
        return Err(load.place.error(why).into());
    }
    let wanted = experiment.machine.is_none().then_some(arguments.partition.as_slice());
    let past = Past::of(&load.value, wanted).map_err(|why| load.place.error(why))?;
    let is_of_records = past.knows_machine().context("--machine")?;
    let profiles = tables::of_experiment(&mut experiment)?;
    if let Some(named) = &experiment.machine {
        named.value.machine.remarks.iter().for_each(|remark| warn(remark));
    }
    let checked = CheckedExperiment::new(&experiment, &profiles)?;
    let basis = match checked.machine(0, 0).power_is_assumed {
        _ if is_of_records => Basis::Records,
        true => Basis::Assumption,
        false => Basis::MachineFile,
    };
    if basis == Basis::Assumption && names_watts(&arguments.budget) {
        bail!(
            "--budget: a limit in watts needs a machine whose power is known; write a machine file ('busbar \
            machine init --nodes … --node-power …W --out cluster.toml') and give it with --machine, or write a share, such as 80%"
        );
    }
    if let Some(folder) = &arguments.out {
        // Now rather than after a long run.
        make_folder(folder)?;
    }
    let unlimited = Experiment {
        policies: vec![arguments.site_policy()],
        budgets: vec![Named::by_option("--budget", BudgetSpec::Constant(Allowance::Unlimited))],
        ..experiment.clone()
    };
    let without = CheckedExperiment::new(&unlimited, &profiles)?;
    let without = without.measured_with(&checked).map_err(anyhow::Error::msg)?;
    // What each job waits is kept of every run: by that they are compared.
    let free = arguments.keeping.run(&without, true, &|_| ())?;
    let tried = arguments.keeping.run(&checked, true, &|_| ())?;
    let recorded = checked.recorded(0, 0).map_err(anyhow::Error::msg)?;
    let made = Made {
        checked: &checked,
        without: &without,
        recorded,
        free: &free,
        tried: &tried,
        past,
        basis,
    };
    let answer = Answer::of(arguments, made).map_err(anyhow::Error::msg)?;
    let json = serde_json::to_string_pretty(&answer.json(began))? + "\n";
    if let Some(folder) = &arguments.out {
        let (page, jobs) = (answer.page(), answer.jobs_csv()?);
        write_whole(&folder.join("report.html"), &|out| out.write_all(page.as_bytes()))?;
        write_whole(&folder.join("whatif.json"), &|out| out.write_all(json.as_bytes()))?;
        write_whole(&folder.join("jobs.csv"), &|out| out.write_all(&jobs))?;
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
    /// The jobs: records, or a log.
    fn load(&self) -> anyhow::Result<Named<Load>> {
        let mut load = match &self.sacct {
            Some(file) => {
                let text = file.display().to_string();
                let call = RecordsCall { file: file.clone(), zone: None, is_anonymous: false };
                let source = Source::Records(call);
                Named::by_option("--sacct", Load { text, source })
            }
            None => load::named_load(self.file.as_deref(), self.workload.as_deref())?,
        };
        if let Source::Records(call) = &mut load.value.source {
            call.is_anonymous = self.anonymise;
        }
        match (&mut load.value.source, &self.zone) {
            (_, None) => {}
            (Source::Records(RecordsCall { zone: zone @ None, .. }), Some(said)) => {
                *zone = Some(said.clone());
            }
            (Source::Records(_), Some(_)) => {
                bail!("--zone: {} already names its time zone; leave --zone out", load.value.text)
            }
            (_, Some(_)) => bail!(
                "--zone is for accounting records, and {} is a log: its start is in its header, or in --start",
                load.value.text
            ),
        }
        Ok(load)
    }

    /// The site's own policy: who gives the site's file has a scheduler of that kind.
    fn site_policy(&self) -> PolicySpec {
        let usual = || match self.rules.site {
            Some(_) => PolicySpec::of_site(),
            None => PolicySpec::easy(),
        };
        self.site_policy.clone().unwrap_or_else(usual)
    }

    fn experiment(&self) -> anyhow::Result<Experiment> {
        let load = self.load()?;
        let others = match self.policy.is_empty() {
            true => USUAL.parse::<Listed<PolicySpec>>().context("--policy")?.0,
            false => Listed::joined(&self.policy).collect(),
        };
        let site_policy = self.site_policy();
        let mut policies = vec![site_policy.clone()];
        policies.extend(others.into_iter().filter(|policy| *policy != site_policy));
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
        self.rules.apply_to(&mut experiment)?;
        experiment.tariff = self.tariff.tariff(&experiment.tariff);
        Ok(experiment)
    }
}
