//! What is believed about how jobs run, and what is true: tables of profiles.

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;

use crate::cli::tables;
use crate::job::Job;
use crate::policy::{Believe, PolicySpec};
use crate::profile::fit::{self, Training};
use crate::profile::{Origin, Profile};
use crate::stage::{Models, Stage};
use crate::units::Share;

/// Which tables.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// What the policy believes of jobs: published (what it was published with, fitted to these jobs), exact
    /// (what holds), or rated (every node draws what it is rated at) [default: published]. With
    /// --profiles, of policies that choose configurations: stored (the rows of the database),
    /// measured (those of them that were measured), predicted (what a model says that was fitted
    /// to some of them), or another database [default: stored]
    #[arg(long, value_name = "BELIEF")]
    believe: Option<Said>,

    /// With --profiles: which table says what then happens [default: stored]
    #[arg(long, value_name = "TABLE")]
    truth: Option<Table>,

    /// The share of the rows a model is fitted to [default: 10%]
    #[arg(long, value_name = "SHARE", value_parser = parse_part, allow_hyphen_values = true)]
    train: Option<Share>,
}

fn parse_part(text: &str) -> anyhow::Result<Share> {
    let share: Share = text.parse()?;
    if share == Share::percent(0) || share > Share::WHOLE {
        anyhow::bail!("a model is fitted to some of the rows: above 0%, at most 100%");
    }
    Ok(share)
}

/// What is believed, as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    /// In the world that all policies share.
    Of(Believe),
    /// Where profiles say how jobs run.
    Table(Table),
}

impl FromStr for Said {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.parse() {
            Ok(believe) => Said::Of(believe),
            Err(_) => Said::Table(text.parse()?),
        })
    }
}

/// A table of profiles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Table {
    #[default]
    Stored,
    Measured,
    Predicted,
    Database(PathBuf),
}

impl FromStr for Table {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "stored" => Table::Stored,
            "measured" => Table::Measured,
            "predicted" => Table::Predicted,
            path => Table::Database(path.into()),
        })
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Table::Stored => f.write_str("stored"),
            Table::Measured => f.write_str("measured"),
            Table::Predicted => f.write_str("predicted"),
            Table::Database(path) => path.display().fmt(f),
        }
    }
}

impl Arguments {
    /// Whether anything was said that only matters where profiles say how jobs run.
    pub(super) fn is_about_tables(&self) -> bool {
        self.truth.is_some() || self.train.is_some()
    }

    /// Whether anything was said that only matters in the world that all policies share.
    pub(super) fn is_about_world(&self) -> bool {
        matches!(self.believe, Some(Said::Of(_)))
    }

    /// What is believed of the world that all policies share.
    pub(super) fn of_world(&self) -> anyhow::Result<Option<Believe>> {
        match &self.believe {
            None => Ok(None),
            Some(Said::Of(believe)) => Ok(Some(*believe)),
            Some(Said::Table(table)) => anyhow::bail!(
                "--believe {table}: without --profiles there is no such table; write published, exact or rated"
            ),
        }
    }

    /// Belief and truth, if the policy needs them, and what both are, in words; `stored` is what the
    /// database has.
    pub(super) fn models(
        &self,
        policy: &PolicySpec,
        stage: &Stage,
        stored: &[Profile],
        seed: u64,
    ) -> anyhow::Result<Option<(Models, String)>> {
        if !policy.uses_profiles() {
            return Ok(None);
        }
        let believe = match &self.believe {
            Some(Said::Table(table)) => table.clone(),
            _ => Table::default(),
        };
        let truth = self.truth.clone().unwrap_or_default();
        let train = self.train.unwrap_or(Share::percent(10));
        let is_run = |place: usize| {
            let number = |place: usize| place as u32 + 1;
            let runs = |job: &Job| {
                job.application.is_some_and(|application| application.0.get() == number(place))
            };
            stage.workload.jobs().iter().any(runs)
        };
        let table = |table: &Table| -> anyhow::Result<Vec<Profile>> {
            let measured = |profile: &Profile| {
                let rows = profile.rows.iter().filter(|row| row.origin == Origin::Measured);
                Profile { application: profile.application.clone(), rows: rows.copied().collect() }
            };
            Ok(match table {
                Table::Stored => stored.to_vec(),
                Table::Measured => stored.iter().map(measured).collect(),
                Table::Predicted => {
                    let training = Training::Random { share: train, seed };
                    let predicted = |(place, profile): (usize, &Profile)| match is_run(place) {
                        true => fit::predicted(profile, &training),
                        false => Ok(profile.clone()),
                    };
                    stored.iter().enumerate().map(predicted).collect::<Result<_, _>>()?
                }
                Table::Database(path) => by_name(stored, tables::open(Path::new(path))?),
            })
        };
        let is_same = believe == truth;
        let believed = table(&believe)?;
        let real = if is_same { None } else { Some(table(&truth)?) };
        let models = stage.models(policy, &believed, real.as_deref())?;
        let said = match (&believe, &truth) {
            (Table::Predicted, _) | (_, Table::Predicted) => {
                format!("believed {believe}, true {truth}, trained on {train}")
            }
            _ if is_same => format!("{believe}"),
            _ => format!("believed {believe}, true {truth}"),
        };
        Ok(models.map(|models| (models, said)))
    }
}

/// The profiles of another database in the order of these, by their names: numbers are those of one
/// database.
fn by_name(stored: &[Profile], others: Vec<Profile>) -> Vec<Profile> {
    let found = |profile: &Profile| {
        let other = others.iter().find(|other| other.application == profile.application);
        let nothing = || Profile { application: profile.application.clone(), rows: Vec::new() };
        other.cloned().unwrap_or_else(nothing)
    };
    stored.iter().map(found).collect()
}
