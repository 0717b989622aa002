//! What a machine costs in a year, judged by a run of some days.
//!
//! Energy goes with time. A demand charge does not: it is due once in each month, for the highest quarter of an hour of
//! that month, however short or long the run was and however many months it touched.

use crate::metrics::Summary;
use crate::tariff::TariffSpec;

/// Seconds in a year.
const YEAR: f64 = 365.25 * 86_400.0;

/// Months in a year.
const MONTHS: f64 = 12.0;

/// What a node costs, and for how long it is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NodePrice {
    /// What one node costs, with its share of all that comes with it.
    pub(crate) price: f64,
    /// Years until it is replaced.
    pub(crate) years: f64,
}

impl NodePrice {
    /// What this many nodes cost for a year.
    pub(crate) fn of_year(self, nodes: u32) -> f64 {
        f64::from(nodes) * self.price / self.years
    }
}

/// What power costs for a year in which all goes as in this run: energy, and the highest quarter of an hour in each
/// month. Nothing if it has no price, or none that is known for all of the run.
pub(crate) fn power_of_year(run: &Summary, tariff: &TariffSpec) -> Option<f64> {
    let energy = tariff.price.as_ref().map(|_| {
        let cost = run.energy_cost.filter(|_| run.makespan_s > 0.0)?;
        Some(cost / run.makespan_s * YEAR)
    });
    let demand = tariff.demand.map(|charge| {
        let highest = (run.peak_quarter_w? * 1000.0).round() as u128;
        Some(MONTHS * charge.micros(highest) as f64 / 1e6)
    });
    match (energy, demand) {
        (None, None) => None,
        (energy, demand) => Some(energy.unwrap_or(Some(0.0))? + demand.unwrap_or(Some(0.0))?),
    }
}

/// The mean of these, if all of them are known and there are any.
pub(super) fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values = values.collect::<Option<Vec<f64>>>()?;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::run::Manner;
    use crate::experiment::{CellOutcome, CheckedExperiment, Experiment};

    /// The figures of the built-in workload with this tariff, from this date on.
    fn summary(tariff: &TariffSpec, start: &str) -> Summary {
        let experiment = Experiment {
            policies: vec!["easy".parse().unwrap()],
            budgets: Experiment::default().budgets.into_iter().take(1).collect(),
            seeds: vec![1],
            start: Some(start.parse().unwrap()),
            tariff: tariff.clone(),
            ..Experiment::default()
        };
        let checked = CheckedExperiment::new(&experiment, &[]).unwrap();
        let manner = Manner {
            threads: std::num::NonZeroUsize::MIN,
            cache: None,
            pictures: false,
            part: None,
            watch: &(),
        };
        let CellOutcome::Ran(finished) = checked.run(&manner).tried.remove(0).outcome else {
            panic!("it runs")
        };
        finished.summary().clone()
    }

    /// A run that touches more months pays more of them; a year has twelve in any case.
    #[test]
    fn a_month_is_paid_once_wherever_the_run_begins() {
        let tariff = TariffSpec {
            price: Some(crate::tariff::parse_price("0.5EUR/kWh").unwrap()),
            demand: Some("12EUR/kW".parse().unwrap()),
            ..TariffSpec::default()
        };
        let within = summary(&tariff, "2026-01-02 00:00 UTC");
        let across = summary(&tariff, "2026-01-30 00:00 UTC");
        assert!(across.demand_cost > within.demand_cost, "the second run touches one month more");
        let year = |run: &Summary| power_of_year(run, &tariff).unwrap();
        assert!((year(&within) - year(&across)).abs() < 1e-6 * year(&within));
        // By hand: the energy of the run in a year's time, and twelve times 12 EUR for each kilowatt.
        let energy_kwh = within.energy_j / 3.6e6 * (365.25 * 86_400.0) / within.makespan_s;
        let by_hand = 0.5 * energy_kwh + 12.0 * 12.0 * within.peak_quarter_w.unwrap() / 1000.0;
        assert!((year(&within) - by_hand).abs() < 1e-3 * by_hand, "{} {by_hand}", year(&within));
        assert_eq!(power_of_year(&within, &TariffSpec::default()), None);
    }

    #[test]
    fn a_price_that_is_not_known_makes_the_whole_unknown() {
        let tariff =
            TariffSpec { demand: Some("12EUR/kW".parse().unwrap()), ..TariffSpec::default() };
        let run = summary(&tariff, "2026-01-02 00:00 UTC");
        assert!(power_of_year(&run, &tariff).is_some());
        let priced =
            TariffSpec { price: Some(crate::tariff::parse_price("0.5EUR/kWh").unwrap()), ..tariff };
        // The run does not say what its energy cost.
        assert_eq!(power_of_year(&run, &priced), None);
    }

    #[test]
    fn nodes_are_paid_over_their_years() {
        assert_eq!(NodePrice { price: 9000.0, years: 5.0 }.of_year(10), 18_000.0);
        assert_eq!(mean([Some(1.0), Some(3.0)].into_iter()), Some(2.0));
        assert_eq!(mean([Some(1.0), None].into_iter()), None);
        assert_eq!(mean(std::iter::empty()), None);
    }
}
