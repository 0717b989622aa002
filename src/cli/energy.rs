//! The energy budget and its period, for the policy `utility`.

use anyhow::{Context, bail};
use clap::Args;

use crate::budget::EnergyBudget;
use crate::cli::load::Loaded;
use crate::policy::PolicySpec;
use crate::units::{Instant, Joules, parse_decimal};

/// An energy budget.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// Energy that tasks may consume in the period: 1.11GJ [default: 1.11 GJ a day for each hundred machines with
    /// essc, otherwise no limit]
    #[arg(
        long,
        value_name = "E",
        allow_hyphen_values = true,
        help_heading = "Energy budget (policy utility)"
    )]
    energy: Option<Joules>,

    /// Hours in which energy and utility are counted: 2..26 [default: that of essc; otherwise until the hour after
    /// the last arrival]
    ///
    /// The run ends with the period.
    #[arg(long, value_name = "A..B", value_parser = parse_period, help_heading = "Energy budget (policy utility)")]
    period: Option<(Instant, Instant)>,
}

/// The paper's energy for a day of a hundred machines.
const A_DAY: Joules = Joules::from_joules(1_110_000_000);
const HOUR: u64 = 3_600_000;

fn parse_period(text: &str) -> anyhow::Result<(Instant, Instant)> {
    let (begin, end) = text.split_once("..").context("write hours, such as 2..26")?;
    let hours = |text: &str| -> anyhow::Result<Instant> {
        let millionths = parse_decimal(text.trim(), 1_000_000)?;
        Ok(Instant::from_millis((u128::from(millionths) * u128::from(HOUR) / 1_000_000) as u64))
    };
    let (begin, end) = (hours(begin)?, hours(end)?);
    if begin >= end {
        bail!("the period is empty; its end must be after its begin");
    }
    Ok((begin, end))
}

/// An energy budget, and whether it was assumed.
pub(super) struct Chosen {
    pub(super) budget: EnergyBudget,
    pub(super) is_assumed: bool,
}

impl Arguments {
    /// Whether any of these options was given.
    pub(super) fn were_given(&self) -> bool {
        self.energy.is_some() || self.period.is_some()
    }

    /// The budget of a run in which tasks are mapped to the machines of a site; none if nothing is mapped.
    pub(super) fn budget(
        &self,
        policy: &PolicySpec,
        loaded: &Loaded,
    ) -> anyhow::Result<Option<Chosen>> {
        let site = loaded.site.as_ref().filter(|site| policy.on_site(site).is_some());
        let Some(site) = site else {
            if self.were_given() {
                bail!(
                    "--energy and --period are for tasks that a policy maps to the machines they come with: \
                     use essc or a folder of tasks, and --policy utility (docs/reference/utility.md)"
                );
            }
            return Ok(None);
        };
        let last = loaded.workload.jobs().last().map_or(0, |job| job.submit.millis());
        let hour_after = Instant::from_millis((last / HOUR + 1) * HOUR);
        let (begin, end) = self.period.or(loaded.period).unwrap_or((Instant::ZERO, hour_after));
        let (energy, is_assumed) = match (self.energy, loaded.period) {
            (Some(energy), _) => (energy, false),
            (None, None) => (Joules::UNLIMITED, false),
            (None, Some(_)) => {
                let share =
                    u128::from(site.tables.machines()) * u128::from(end.since(begin).millis());
                let microjoules = A_DAY.microjoules() * share / (100 * 24 * u128::from(HOUR));
                (Joules::from_microjoules(microjoules), true)
            }
        };
        Ok(Some(Chosen { budget: EnergyBudget { energy, begin, end }, is_assumed }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_in_hours() {
        let (begin, end) = parse_period("2..26").unwrap();
        assert_eq!((begin, end), (Instant::from_secs(7200), Instant::from_secs(93_600)));
        assert_eq!(parse_period("0..0.5").unwrap().1, Instant::from_secs(1800));
        for wrong in ["5", "5..5", "9..5", "-1..5", "a..b"] {
            assert!(parse_period(wrong).is_err(), "{wrong}");
        }
    }
}
