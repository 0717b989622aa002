//! `busbar profile fit`: fits a model of an application, and shows its error.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use super::Database;
use crate::cli::print;
use crate::profile::fit::{
    Errors, Fit, Silence, Training, complete, errors, fit, silence, train, train_on_enough,
};
use crate::profile::{Configuration, Existing, Imported, Origin, Profile, Row, Store, counted};
use crate::units::{Share, Watts};

mod answer;
mod pass;

/// Fit a model to some measured rows of an application, and test it on the others
///
/// The polynomial, in the logarithms of nodes, cores and cap, models time and power. PASS, whose parameters have a
/// physical meaning, models only time, for one number of cores.
///
/// With --save, all combinations of the measured nodes, cores and caps are predicted that were not measured
/// themselves. These rows are marked as predicted and never replace measured ones.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// The application
    #[arg(value_name = "APP")]
    application: String,

    /// Model to fit
    #[arg(long, value_name = "MODEL", value_enum, default_value_t)]
    model: Kind,

    /// For --model pass: use the rows with this number of cores per node [default: the largest]
    #[arg(long, value_name = "N")]
    cores: Option<u32>,

    /// Share of the measured rows to train on [default: 10%, or more if a model needs more; 100% for --model pass]
    #[arg(long, value_name = "SHARE", value_parser = parse_share, allow_hyphen_values = true)]
    train: Option<Share>,

    /// How to choose training rows: at random, or spread out over the configurations
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    choose: Choice,

    /// Random seed, for --choose random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Store predictions for configurations that were not measured, by a model of all measured rows
    #[arg(long)]
    save: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    database: Database,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Kind {
    #[default]
    Polynomial,
    Pass,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Choice {
    #[default]
    Random,
    Designed,
}

impl Choice {
    fn name(self) -> &'static str {
        match self {
            Choice::Random => "random",
            Choice::Designed => "designed",
        }
    }
}

impl Arguments {
    /// The share of the rows to train on. PASS has few parameters, and uses all rows.
    fn train(&self) -> Share {
        self.train.unwrap_or(match self.model {
            Kind::Polynomial => Share::percent(10),
            Kind::Pass => Share::WHOLE,
        })
    }

    fn training(&self) -> Training {
        match self.choose {
            Choice::Random => Training::Random { share: self.train(), seed: self.seed },
            Choice::Designed => Training::Designed { share: self.train() },
        }
    }

    /// How rows are chosen, for people.
    fn chosen(&self) -> String {
        match self.choose {
            Choice::Random => format!("random, seed {}", self.seed),
            Choice::Designed => "designed".to_owned(),
        }
    }

    /// The random seed, if one was used.
    fn seed_used(&self) -> Option<u64> {
        (self.choose == Choice::Random).then_some(self.seed)
    }
}

fn parse_share(text: &str) -> anyhow::Result<Share> {
    let share: Share = text.parse()?;
    if share == Share::default() || share > Share::WHOLE {
        bail!("--train must be from 0.1% to 100%");
    }
    Ok(share)
}

/// The result of a fit.
struct FitReport<'a> {
    arguments: &'a Arguments,
    profile: &'a Profile,
    /// Of some rows.
    model: Fit,
    /// The errors on the other rows, if the model covers any.
    errors: Option<Errors>,
    /// The other rows, which the model does not cover.
    silence: Silence,
    /// How many predictions were stored.
    saved: Option<Imported>,
}

impl FitReport<'_> {
    /// How many rows there are to train on and to compare with.
    fn measured(&self) -> usize {
        measured(self.profile).count()
    }

    /// How many rows were asked for to train on.
    fn asked(&self) -> usize {
        let measured = u32::try_from(self.measured()).unwrap_or(u32::MAX);
        usize::try_from(self.arguments.train().of_count(measured)).unwrap_or(usize::MAX)
    }
}

fn measured(profile: &Profile) -> impl Iterator<Item = &Row> {
    profile.rows.iter().filter(|row| row.origin.was_run())
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let path = &arguments.database.profiles;
    let mut store = match arguments.save {
        true => Store::open_to_change(path)?,
        false => Store::open(path)?,
    };
    let profile = store.profile(&arguments.application)?;
    if arguments.model == Kind::Pass {
        return pass::run(arguments, &profile);
    }
    if arguments.cores.is_some() {
        bail!("--cores needs --model pass");
    }
    let training = arguments.training();
    let model = match arguments.train {
        Some(share) => train(&profile, &training).with_context(|| {
            let rows = counted(measured(&profile).count(), "measured row");
            format!("cannot train a model on {share} of {rows} (--train)")
        })?,
        None => train_on_enough(&profile, &training, 0)?,
    };
    let outcome = FitReport {
        arguments,
        profile: &profile,
        errors: errors(&model, &profile.rows),
        silence: silence(&model, &profile.rows),
        model,
        saved: match arguments.save {
            true => Some(save(&mut store, &profile)?),
            false => None,
        },
    };
    print(&if arguments.json { outcome.json()? } else { outcome.text() })
}

/// Predicts what was not measured from all that was.
fn save(store: &mut Store, profile: &Profile) -> anyhow::Result<Imported> {
    let model = fit(&profile.application, &profile.rows)?;
    let mut rows = complete(profile, &model, combinations(profile)?);
    rows.retain(|row| row.origin == Origin::Predicted);
    let predicted = Profile { application: profile.application.clone(), rows };
    Ok(store.import(&[predicted], Existing::Refuse)?)
}

/// The most combinations that are predicted.
const MOST_COMBINATIONS: usize = 1_000_000;

/// All combinations of the nodes, cores and caps that were measured.
fn combinations(profile: &Profile) -> anyhow::Result<Vec<Configuration>> {
    let measured = || measured(profile).map(|row| row.configuration);
    let nodes: BTreeSet<u32> = measured().map(|configuration| configuration.nodes).collect();
    let cores: BTreeSet<u32> = measured().map(|configuration| configuration.cores).collect();
    let caps: BTreeSet<Watts> = measured().map(|configuration| configuration.cap).collect();
    let count = nodes.len().saturating_mul(cores.len()).saturating_mul(caps.len());
    if count > MOST_COMBINATIONS {
        bail!(
            "{} numbers of nodes, {} of cores and {} caps have {count} combinations; at most \
             {MOST_COMBINATIONS} are predicted, so measure on a coarser grid",
            nodes.len(),
            cores.len(),
            caps.len()
        );
    }
    let mut all = Vec::with_capacity(count);
    for &nodes in &nodes {
        for &cores in &cores {
            all.extend(caps.iter().map(|&cap| Configuration { nodes, cores, cap }));
        }
    }
    Ok(all)
}
