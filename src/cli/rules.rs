//! What policies may do and what they believe: options that several commands have.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;

use crate::experiment::{Experiment, Named, file};
use crate::freedom::Freedoms;
use crate::policy::Believe;
use crate::prepared::Rules;
use crate::priority::SiteFile;
use crate::switching::SwitchOff;
use crate::units::Share;
use crate::world::Names;

/// What the site allows.
#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Rules of the site")]
pub(super) struct Arguments {
    /// Freedoms of policies: all, none, or a list of caps, sizes, recaps, resizes, nodes, drops [default: all but
    /// drops]
    ///
    /// A freedom is what a policy may do to a job besides starting it as requested: set a power cap, choose its size,
    /// change either while the job runs, choose nodes, or drop the job.
    #[arg(long, value_name = "FREEDOMS")]
    pub(super) allow: Option<Freedoms>,

    /// What policies know about jobs: published, exact, rated, or predicted [default: predicted if the workload has
    /// measured power, else published]
    ///
    /// published: the model of the policy's paper, fitted to these jobs. exact: the true run time and power under
    /// every cap. rated: every node draws its rated power. predicted: expected power from earlier jobs of the same
    /// user and application; 5 % of jobs exceed 'predicted(level=95%)', and 'predicted(level=mean)' is the mean.
    #[arg(long, value_name = "BELIEF")]
    pub(super) believe: Option<Believe>,

    /// Share of the budget to keep in reserve, because jobs may draw more than predicted: 5%
    #[arg(long, value_name = "SHARE", value_parser = file::parse_guard, allow_hyphen_values = true)]
    pub(super) guard: Option<Share>,

    /// The application of each executable in the log: a .csv file of executable,application rows
    #[arg(long, value_name = "FILE")]
    pub(super) applications: Option<PathBuf>,

    /// Switch idle nodes off by this rule: 'idle for 10min, keep 5 spare' [default: never]
    #[arg(long, value_name = "RULE")]
    pub(super) switch_off: Option<SwitchOff>,

    /// Limits and reservations, and accounts, shares and weights for order=multifactor: a .toml site file [default: one share
    /// for each user]
    #[arg(long, value_name = "FILE")]
    pub(super) site: Option<PathBuf>,
}

impl Arguments {
    /// Whether any of these options was given.
    pub(super) fn were_given(&self) -> bool {
        self.allow.is_some()
            || self.believe.is_some()
            || self.guard.is_some()
            || self.applications.is_some()
            || self.switch_off.is_some()
            || self.site.is_some()
    }

    /// The rules of these options; `known` lists the applications that exist.
    pub(super) fn rules(&self, known: &[String]) -> anyhow::Result<Rules> {
        let names = self.applications.as_ref();
        let names =
            names.map(|path| Names::read(path, known).map(Arc::new).context("--applications"));
        let usual = Rules::default();
        Ok(Rules {
            allow: self.allow.unwrap_or(usual.allow),
            believe: self.believe,
            guard: self.guard.unwrap_or(usual.guard),
            names: names.transpose()?,
            switch_off: self.switch_off,
            site: self.site()?,
        })
    }

    fn site(&self) -> anyhow::Result<Option<Arc<SiteFile>>> {
        let site = self.site.as_ref().map(|path| SiteFile::read(path).map(Arc::new));
        site.transpose().context("--site")
    }

    /// These options override what the experiment says.
    pub(super) fn apply_to(&self, experiment: &mut Experiment) -> anyhow::Result<()> {
        let site = self.site()?;
        let rules = &mut experiment.rules;
        rules.allow = self.allow.unwrap_or(rules.allow);
        rules.believe = self.believe.or(rules.believe);
        rules.guard = self.guard.unwrap_or(rules.guard);
        rules.switch_off = self.switch_off.or(rules.switch_off);
        rules.site = site.or(rules.site.take());
        if let Some(path) = &self.applications {
            experiment.applications = Some(Named::by_option("--applications", path.clone()));
        }
        Ok(())
    }
}
