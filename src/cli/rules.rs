//! What policies may do and what they believe: options that several commands have.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;

use crate::experiment::{Experiment, Named, file};
use crate::freedom::Freedoms;
use crate::policy::Believe;
use crate::prepared::Rules;
use crate::switching::SwitchOff;
use crate::units::Share;
use crate::world::Names;

/// What the site allows.
#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Rules of the site")]
pub(super) struct Arguments {
    /// What policies may do to jobs beyond starting them as asked: all, none, or some of caps, sizes,
    /// recaps, resizes, nodes, drops, with commas between them [default: all but drops]
    #[arg(long, value_name = "FREEDOMS")]
    pub(super) allow: Option<Freedoms>,

    /// What policies believe of jobs: published (what each was published with, fitted to these jobs), exact
    /// (what holds), rated (every node draws what it is rated at), or predicted (jobs draw no more than those of
    /// their user and application let expect; 'predicted(level=95%)' is exceeded by 5 % of jobs, 'predicted(level=mean)'
    /// is the mean) [default: predicted if the workload has measured power, else published]
    #[arg(long, value_name = "BELIEF")]
    pub(super) believe: Option<Believe>,

    /// The share of the budget that is kept back, because jobs may draw more than a policy believes: 5%
    #[arg(long, value_name = "SHARE", value_parser = file::parse_guard, allow_hyphen_values = true)]
    pub(super) guard: Option<Share>,

    /// Which application each executable of a log is: a .csv file of executable,application rows
    #[arg(long, value_name = "FILE")]
    pub(super) applications: Option<PathBuf>,

    /// When nodes that nobody needs are switched off: 'idle for 10min, keep 5 spare' [default: never]
    #[arg(long, value_name = "RULE")]
    pub(super) switch_off: Option<SwitchOff>,
}

impl Arguments {
    /// Whether anything was said.
    pub(super) fn were_given(&self) -> bool {
        self.allow.is_some()
            || self.believe.is_some()
            || self.guard.is_some()
            || self.applications.is_some()
            || self.switch_off.is_some()
    }

    /// What is said here; `known` are the applications there are.
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
        })
    }

    /// What is said here counts before what an experiment says.
    pub(super) fn apply_to(&self, experiment: &mut Experiment) {
        let rules = &mut experiment.rules;
        rules.allow = self.allow.unwrap_or(rules.allow);
        rules.believe = self.believe.or(rules.believe);
        rules.guard = self.guard.unwrap_or(rules.guard);
        rules.switch_off = self.switch_off.or(rules.switch_off);
        if let Some(path) = &self.applications {
            experiment.applications = Some(Named::by_option("--applications", path.clone()));
        }
    }
}
