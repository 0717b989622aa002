//! An experiment: policies × budgets × workloads × seeds as data, and what came of trying them all.
//!
//! What is to be compared is written on the command line or in a file that can be kept under version control
//! ([`file`](mod@file)). It is checked as a whole before anything runs ([`checked`]). Then each [`Cell`] is one run,
//! on whatever core is free, or none if its result is in the `cache`; a policy that cannot run on a workload
//! becomes a cell with the reason. `ranking` ranks the policies.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::budget::{Allowance, BudgetSpec, Limit, WindowSpec};
use crate::calendar::Calendar;
use crate::machine::Machine;
use crate::metrics::BSLD_THRESHOLD;
use crate::policy::PolicySpec;
use crate::prepared::Rules;
use crate::tariff::TariffSpec;
use crate::units::{Share, Span};
use crate::workload::{RecordsCall, Source};

pub(crate) mod assumptions;
pub(crate) mod cache;
pub mod checked;
pub(crate) mod compared;
pub mod curve;
pub mod estimate;
pub mod file;
pub mod gains;
pub mod plan;
pub(crate) mod ranking;
pub mod recorded;
pub mod results;
pub mod run;
pub mod stream;
pub mod table;

pub(crate) use checked::CheckedExperiment;
pub use ranking::Figure;
pub(crate) use run::CellOutcome;
pub use run::Tried;

pub(crate) use crate::parallel::all_cores;

/// What is to be compared.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its title, if it has one.
    pub title: Option<String>,
    /// The policies to compare.
    pub policies: Vec<PolicySpec>,
    /// The power budget of the machine.
    pub budgets: Vec<Named<BudgetSpec>>,
    /// The jobs.
    pub workloads: Vec<Named<Load>>,
    /// The random seeds of generators and job properties.
    pub seeds: Vec<u64>,
    /// The machine, if it is not the one the workload comes from.
    pub machine: Option<Named<Equipment>>,
    /// Numbers of nodes to try under the same watts; as many as the machine has if it is empty.
    pub nodes: Vec<Named<u32>>,
    /// The profiles of applications, by the name of a database or of a synthetic set.
    pub profiles: Option<String>,
    /// The profiles of workloads that are made of applications, where none are named.
    pub usual_profiles: Option<String>,
    /// The freedoms and the beliefs of policies.
    pub rules: Rules,
    /// Which applications executables are: a file of `executable,application` rows.
    pub applications: Option<Named<PathBuf>>,
    /// Nodes that fail: a file of `node,down,up` rows.
    pub outages: Option<Named<PathBuf>>,
    /// What energy costs, and what is emitted for it.
    pub tariff: TariffSpec,
    /// Time windows to report separately.
    pub window: Option<WindowSpec>,
    /// At which date the workloads start, if it is not what their headers say.
    pub start: Option<Calendar>,
    /// Only the jobs of these partitions of each workload, by their names; all if none is named.
    pub partitions: Vec<String>,
    /// Only these jobs of each workload, by their place in submit order.
    pub jobs: Option<Range<usize>>,
    /// Whether all jobs come at once, so that somebody waits at all times.
    pub at_once: bool,
    /// Whether jobs are ended at the time they asked for.
    pub enforce_limits: bool,
    /// The threshold of the bounded slowdown.
    pub bsld_threshold: Span,
    /// By which figure policies are ranked.
    pub rank_by: Figure,
}

/// A requested value, and where it was requested.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T> {
    /// The value of the text.
    pub(crate) value: T,
    /// Where it was written.
    pub(crate) place: Place,
}

impl<T> Named<T> {
    /// What an option of the command line says.
    pub(crate) fn by_option(option: &'static str, value: T) -> Self {
        Named { value, place: Place::Option(option) }
    }
}

/// Where a value was requested, for error messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is the default.
    Default,
    /// By an option of the command line.
    Option(&'static str),
    /// By the name of an experiment file.
    File(PathBuf),
    /// In a line of a file, counted from 1.
    Line {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Default => f.write_str("by default"),
            Place::Option(option) => f.write_str(option),
            Place::File(file) => write!(f, "the experiment {}", file.display()),
            Place::Line { file, line } => write!(f, "{}, line {line}", file.display()),
        }
    }
}

/// Why an experiment cannot be carried out. What is wrong is the error's source.
#[derive(Debug, thiserror::Error)]
#[error("{place}")]
pub struct ExperimentError {
    /// Where the value was requested.
    pub(crate) place: Place,
    /// The reason.
    #[source]
    pub(crate) why: Box<dyn std::error::Error + Send + Sync>,
}

impl Place {
    /// What is wrong here.
    pub(crate) fn error(
        &self,
        why: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> ExperimentError {
        ExperimentError { place: self.clone(), why: why.into() }
    }
}

/// A workload as it was named, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The text as written.
    pub(crate) text: String,
    /// Its value.
    pub(crate) source: Source,
}

impl FromStr for Load {
    type Err = Box<dyn std::error::Error + Send + Sync>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "-" {
            return Err("standard input can be read only once; name a file".into());
        }
        Ok(Load { text: text.to_owned(), source: text.parse()? })
    }
}

/// A machine as it was named.
#[derive(Clone, Debug, PartialEq)]
pub struct Equipment {
    /// The text as written.
    pub(crate) text: String,
    /// Its value.
    pub(crate) machine: Machine,
}

/// One run of an experiment, by the places of its parts in the lists of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The place of the workload in the experiment's list.
    pub(crate) workload: usize,
    /// Which number of nodes; 0 if only one is tried.
    pub(crate) size: usize,
    /// The place of the budget in the experiment's list.
    pub(crate) budget: usize,
    /// The place of the policy in the experiment's list.
    pub(crate) policy: usize,
    /// The seed of everything random.
    pub(crate) seed: u64,
}

/// The built-in workload under all policies and three budgets.
impl Default for Experiment {
    fn default() -> Self {
        let named = |value| Named { value, place: Place::Default };
        let budgets = [60, 80, 100].map(|percent| {
            let limit = Limit::Share(Share::percent(percent));
            named(BudgetSpec::Constant(Allowance::Limited(limit)))
        });
        let demo = Load { text: "demo".to_owned(), source: Source::Demo };
        Experiment {
            title: None,
            policies: PolicySpec::compared(),
            budgets: budgets.to_vec(),
            workloads: vec![Named { value: demo, place: Place::Default }],
            seeds: (1..=Experiment::USUAL_SEEDS).collect(),
            machine: None,
            nodes: Vec::new(),
            profiles: None,
            usual_profiles: None,
            rules: Rules::default(),
            applications: None,
            outages: None,
            tariff: TariffSpec::default(),
            window: None,
            start: None,
            partitions: Vec::new(),
            jobs: None,
            at_once: false,
            enforce_limits: false,
            bsld_threshold: BSLD_THRESHOLD,
            rank_by: Figure::default(),
        }
    }
}

impl Experiment {
    /// How many seeds are tried by default.
    pub(crate) const USUAL_SEEDS: u64 = 3;

    /// The most runs of an experiment; more are probably a mistake.
    const MOST_CELLS: usize = 10_000_000;

    /// All its runs.
    pub(crate) fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for workload in 0..self.workloads.len() {
            for &seed in &self.seeds {
                for size in 0..self.nodes.len().max(1) {
                    for budget in 0..self.budgets.len() {
                        for policy in 0..self.policies.len() {
                            cells.push(Cell { workload, size, budget, policy, seed });
                        }
                    }
                }
            }
        }
        cells
    }

    /// What a workload is called in results: as it was written, but a file by its name alone, unless
    /// another one has the same. So results do not depend on where an experiment was started.
    pub(crate) fn workload_name(&self, place: usize) -> String {
        let path = |load: &Named<Load>| match &load.value.source {
            Source::Log(path) => Some(path.clone()),
            // Unless it is written as a call, which says more.
            Source::Records(RecordsCall { file, .. }) if Path::new(&load.value.text) == file => {
                Some(file.clone())
            }
            _ => None,
        };
        let paths: Vec<Option<PathBuf>> = self.workloads.iter().map(path).collect();
        short_name(&paths, place).unwrap_or_else(|| self.workloads[place].value.text.clone())
    }

    /// What a budget is called in results, by the same rule.
    pub(crate) fn budget_name(&self, place: usize) -> String {
        let path = |budget: &Named<BudgetSpec>| match &budget.value {
            BudgetSpec::File(path) => Some(path.clone()),
            _ => None,
        };
        let paths: Vec<Option<PathBuf>> = self.budgets.iter().map(path).collect();
        short_name(&paths, place).unwrap_or_else(|| self.budgets[place].value.to_string())
    }

    /// Whether the jobs of a workload run applications that have profiles: if profiles were named, or if it is
    /// made of such applications.
    fn is_profiled(&self, workload: usize) -> bool {
        self.profiles.is_some() || self.workloads[workload].value.source.needs_applications()
    }

    /// What the profiles are called, if there are any.
    fn profiles_name(&self) -> &str {
        let named = self.profiles.as_deref().or(self.usual_profiles.as_deref());
        named.unwrap_or("profiles")
    }

    /// Whether profiles are asked for at all.
    pub(crate) fn needs_profiles(&self) -> bool {
        self.profiles.is_some()
            || self.workloads.iter().any(|load| load.value.source.needs_applications())
    }
}

/// The name of one of these files without its folder, if no other has the same.
fn short_name(paths: &[Option<PathBuf>], place: usize) -> Option<String> {
    let name = |path: &Option<PathBuf>| path.as_ref()?.file_name()?.to_str().map(str::to_owned);
    let short = name(&paths[place])?;
    let alike = paths.iter().filter(|path| name(path).as_ref() == Some(&short)).count();
    (alike == 1).then_some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_called_by_their_names_unless_two_are_alike() {
        let paths = ["a/x.swf", "b/x.swf", "b/y.swf"].map(|path| Some(PathBuf::from(path)));
        assert_eq!(short_name(&paths, 0), None);
        assert_eq!(short_name(&paths, 2).as_deref(), Some("y.swf"));
        assert_eq!(short_name(&[None], 0), None);
        assert_eq!(Experiment::default().workload_name(0), "demo");
        assert_eq!(Experiment::default().budget_name(0), "60%");
    }

    #[test]
    fn a_feed_may_have_no_limit() {
        assert_eq!(
            "none".parse::<BudgetSpec>().unwrap(),
            BudgetSpec::Constant(Allowance::Unlimited)
        );
        for text in ["none", "60%", "6500W"] {
            assert_eq!(text.parse::<BudgetSpec>().unwrap().to_string(), text);
        }
        assert!("80".parse::<BudgetSpec>().unwrap_err().to_string().contains("valid units"));
    }
}
