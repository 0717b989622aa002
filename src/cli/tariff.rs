//! Prices, carbon and time windows: options that several commands share.

use clap::Args;

use crate::budget::WindowSpec;
use crate::tariff::{
    DemandCharge, RateSpec, SeriesSpec, TariffSpec, parse_carbon, parse_outdoor, parse_price,
};
use crate::units::Celsius;

/// A tariff, and time windows.
#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Prices, carbon and cooling")]
pub(super) struct Arguments {
    /// Price of energy: 0.32EUR/kWh, rules by the calendar, or a series in a .csv file
    ///
    /// Rules are such as 'weekdays 07:00-20:00: 0.32EUR/kWh, else 0.24EUR/kWh'. A series is FILE, FILE:COLUMN, or
    /// 'FILE:COLUMN repeat' to use it again when it ends.
    #[arg(long, value_name = "P", value_parser = parse_price, allow_hyphen_values = true)]
    price: Option<RateSpec>,

    /// Carbon intensity of energy: 450g/kWh, rules by the calendar, or a series in a .csv file
    #[arg(long, value_name = "C", value_parser = parse_carbon, allow_hyphen_values = true)]
    pub(super) carbon: Option<RateSpec>,

    /// Price of the highest 15-minute average of each month: 12EUR/kW
    #[arg(long, value_name = "D")]
    demand_charge: Option<DemandCharge>,

    /// Outdoor temperature: 15C, rules by the calendar, or a series in a .csv file
    ///
    /// Only machine files with cooling.pue_by_temperature use it.
    #[arg(long, value_name = "T", value_parser = parse_outdoor, allow_hyphen_values = true)]
    outdoor: Option<SeriesSpec<Celsius>>,

    /// Report these time windows separately: 'weekdays 14:00-18:00 nov..feb', or cuts
    ///
    /// 'cuts' are all times at which the limit is below its maximum.
    #[arg(long, value_name = "WHEN", help_heading = "Results")]
    pub(super) window: Option<WindowSpec>,
}

impl Arguments {
    /// The tariff of these options, completed by `usual`.
    pub(super) fn tariff(&self, usual: &TariffSpec) -> TariffSpec {
        TariffSpec {
            price: self.price.clone().or_else(|| usual.price.clone()),
            carbon: self.carbon.clone().or_else(|| usual.carbon.clone()),
            demand: self.demand_charge.or(usual.demand),
            outdoor: self.outdoor.clone().or_else(|| usual.outdoor.clone()),
        }
    }
}
