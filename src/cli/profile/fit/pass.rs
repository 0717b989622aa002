//! `busbar profile fit --model pass`: the parameters and the error of PASS.
//!
//! PASS does not model cores, so the fit uses rows with one number of cores.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use serde::Serialize;

use super::answer::{Quartiles, spread, table};
use super::{Arguments, measured};
use crate::cli::print;
use crate::cli::profile::counted;
use crate::model::pass::{Certainty, Estimate, Estimates, PassFit, Sample, fit};
use crate::profile::fit::{Spread, choose};
use crate::profile::{Profile, Row};
use crate::report::{Facts, Side, boxes, columns};

/// The result of a fit.
struct PassReport<'a> {
    arguments: &'a Arguments,
    application: &'a str,
    cores: u32,
    /// How many measured rows have this many cores.
    measured: usize,
    fit: PassFit,
    /// The relative errors on rows that the model was not trained on.
    deviations: Vec<f64>,
}

pub(super) fn run(arguments: &Arguments, profile: &Profile) -> anyhow::Result<()> {
    if arguments.save {
        bail!(
            "--save stores time and power, and PASS does not model power; save with --model polynomial"
        );
    }
    let cores = cores(arguments.cores, profile)?;
    let rows: Vec<Row> =
        measured(profile).filter(|row| row.configuration.cores == cores).copied().collect();
    let chosen = choose(&rows, &arguments.training());
    let samples: Vec<Sample> = chosen.iter().map(|&place| sample(&rows[place])).collect();
    let fit = fit(&samples).with_context(|| {
        let (share, count, cores) =
            (arguments.train(), rows.len(), counted(cores as usize, "core"));
        format!(
            "{}: cannot fit PASS to {share} of the {count} measured rows with {cores} (--train)",
            profile.application
        )
    })?;
    let others = (0..rows.len()).filter(|place| chosen.binary_search(place).is_err());
    // It says nothing about caps that are lower than those it was trained on.
    let deviation = |place: usize| {
        let Sample { nodes, cap_watts, seconds } = sample(&rows[place]);
        Some(fit.pass.seconds(nodes, cap_watts)? / seconds - 1.0)
    };
    let deviations = others.filter_map(deviation).collect();
    let application = &profile.application;
    let outcome =
        PassReport { arguments, application, cores, measured: rows.len(), fit, deviations };
    print(&if arguments.json { outcome.json()? } else { outcome.text() })
}

/// The number of cores asked for, or the largest there is.
fn cores(asked: Option<u32>, profile: &Profile) -> anyhow::Result<u32> {
    let all: BTreeSet<u32> = measured(profile).map(|row| row.configuration.cores).collect();
    let Some(&most) = all.last() else {
        bail!("{}: no row is measured; import some", profile.application);
    };
    match asked {
        Some(cores) if !all.contains(&cores) => {
            let all: Vec<String> = all.iter().map(u32::to_string).collect();
            bail!("no measured row has {cores} cores; there are rows with {}", all.join(", "))
        }
        asked => Ok(asked.unwrap_or(most)),
    }
}

fn sample(row: &Row) -> Sample {
    Sample {
        nodes: row.configuration.nodes,
        cap_watts: row.configuration.cap.as_f64(),
        seconds: row.time.secs_f64(),
    }
}

/// The result of a fit, in JSON. Errors are shares of what was measured.
#[derive(Serialize)]
struct Answer<'a> {
    application: &'a str,
    model: &'static str,
    cores: u32,
    train: String,
    choose: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    measured: usize,
    trained_on: usize,
    lowest_cap_w: f64,
    parameters: Parameters,
    residual: Option<Quartiles>,
    compared: usize,
    time_error: Option<Quartiles>,
}

#[derive(Serialize)]
struct Parameters {
    one_node_s: Parameter,
    average_parallelism: Parameter,
    variation: Parameter,
    highest_cap_w: Parameter,
    constant_w: Parameter,
    sensitivity: Parameter,
}

#[derive(Serialize)]
struct Parameter {
    value: f64,
    /// Nothing, if it is at an end of its range or unknown.
    standard_error: Option<f64>,
    certainty: &'static str,
}

impl From<Estimate> for Parameter {
    fn from(Estimate { value, certainty }: Estimate) -> Self {
        let (standard_error, certainty) = match certainty {
            Certainty::Error(error) => (Some(error), "error"),
            Certainty::Least => (None, "least"),
            Certainty::Most => (None, "most"),
            Certainty::Unknown => (None, "unknown"),
        };
        Parameter { value, standard_error, certainty }
    }
}

impl From<Estimates> for Parameters {
    fn from(estimates: Estimates) -> Self {
        Parameters {
            one_node_s: estimates.one_node_seconds.into(),
            average_parallelism: estimates.average_parallelism.into(),
            variation: estimates.variation.into(),
            highest_cap_w: estimates.highest_watts.into(),
            constant_w: estimates.constant_watts.into(),
            sensitivity: estimates.sensitivity.into(),
        }
    }
}

impl PassReport<'_> {
    fn json(&self) -> anyhow::Result<String> {
        let quartiles = |shares: &[f64]| Spread::of(shares).as_ref().map(Quartiles::from);
        let answer = Answer {
            application: self.application,
            model: "pass",
            cores: self.cores,
            train: self.arguments.train().to_string(),
            choose: self.arguments.choose.name(),
            seed: self.arguments.seed_used(),
            measured: self.measured,
            trained_on: self.fit.residuals.len(),
            lowest_cap_w: self.fit.pass.throttling.lowest_watts(),
            parameters: self.fit.estimates.into(),
            residual: quartiles(&self.fit.residuals),
            compared: self.deviations.len(),
            time_error: quartiles(&self.deviations),
        };
        Ok(serde_json::to_string_pretty(&answer)? + "\n")
    }

    fn text(&self) -> String {
        let mut facts = Facts::default();
        let (trained_on, cores) = (self.fit.residuals.len(), counted(self.cores as usize, "core"));
        let chosen = match trained_on < self.measured {
            true => format!(" ({})", self.arguments.chosen()),
            false => String::new(),
        };
        facts.add("application", self.application.to_owned());
        facts.add("model", "PASS, for time only".to_owned());
        let rows = format!("{trained_on} of {} measured rows with {cores}{chosen}", self.measured);
        facts.add("trained on", rows);
        let lowest = self.fit.pass.throttling.lowest_watts();
        facts.add("lowest cap", format!("{lowest} W; the model does not cover lower caps"));
        let mut text = facts.text();
        text += &format!("\n{}\n", parameters(&self.fit.estimates));

        let sets = [("trained on", &self.fit.residuals), ("others", &self.deviations)];
        let sizes = sets.map(|(name, shares)| (name, Spread::of(shares)));
        let sizes: Vec<(&str, &Spread)> =
            sizes.iter().filter_map(|(name, sizes)| Some((*name, sizes.as_ref()?))).collect();
        let plotted = sets
            .iter()
            .filter(|(_, shares)| !shares.is_empty())
            .map(|(name, shares)| spread(name, shares.iter().map(|share| 100.0 * share).collect()));
        let what = "predicted less (below 0) or more than measured (%)";
        let plot = boxes(what, &plotted.collect::<Vec<_>>());
        text + &format!("{}\n{plot}", table("error of time (%)", &sizes))
    }
}

/// The parameters as text.
fn parameters(estimates: &Estimates) -> String {
    let lines = [
        ("time on one node, T1 (s)", estimates.one_node_seconds, 1),
        ("average parallelism, A", estimates.average_parallelism, 2),
        ("its variation, σ", estimates.variation, 3),
        ("cap without effect, p_h (W)", estimates.highest_watts, 1),
        ("power always drawn, c (W)", estimates.constant_watts, 1),
        ("sensitivity, β", estimates.sensitivity, 3),
    ];
    let row = |(name, Estimate { value, certainty }, decimals): (&str, Estimate, usize)| {
        let certainty = match certainty {
            Certainty::Error(error) => format!("{error:.decimals$}"),
            // What cannot be less than zero is not "zero or less".
            Certainty::Least if value < 1e-3 => "-".to_owned(),
            Certainty::Least => "or less".to_owned(),
            Certainty::Most => "or more".to_owned(),
            Certainty::Unknown => "unknown".to_owned(),
        };
        vec![name.to_owned(), format!("{value:.decimals$}"), certainty]
    };
    let headings =
        [("parameter", Side::Left), ("value", Side::Right), ("standard error", Side::Right)];
    columns(&headings, &lines.map(row))
}
