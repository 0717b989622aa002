//! What energy costs and what is emitted for it: options that several commands have.

use clap::Args;

use crate::budget::WindowSpec;
use crate::tariff::{
    DemandCharge, RateSpec, SeriesSpec, TariffSpec, parse_carbon, parse_outdoor, parse_price,
};
use crate::units::Celsius;

/// A tariff, and parts of the time.
#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Prices, carbon and cooling")]
pub(super) struct Arguments {
    /// What energy costs: 0.32EUR/kWh, rules by the calendar ('weekdays 07:00-20:00: 0.32EUR/kWh, else
    /// 0.24EUR/kWh'), or a series in a .csv file (FILE, FILE:COLUMN, or 'FILE:COLUMN repeat' to use it again and
    /// again)
    #[arg(long, value_name = "P", value_parser = parse_price, allow_hyphen_values = true)]
    price: Option<RateSpec>,

    /// What is emitted for energy: 450g/kWh, rules by the calendar, or a series in a .csv file
    #[arg(long, value_name = "C", value_parser = parse_carbon, allow_hyphen_values = true)]
    pub(super) carbon: Option<RateSpec>,

    /// What the highest quarter of an hour of each month costs: 12EUR/kW
    #[arg(long, value_name = "D")]
    demand_charge: Option<DemandCharge>,

    /// The temperature outdoors, for a machine file with cooling.pue_by_temperature: 15C, rules by the calendar, or a
    /// series in a .csv file
    #[arg(long, value_name = "T", value_parser = parse_outdoor, allow_hyphen_values = true)]
    outdoor: Option<SeriesSpec<Celsius>>,

    /// Parts of the time with figures of their own: 'weekdays 14:00-18:00 nov..feb', or cuts, which is
    /// whenever the limit is below its highest
    #[arg(long, value_name = "WHEN")]
    pub(super) window: Option<WindowSpec>,
}

impl Arguments {
    /// What is said here, and what `usual` says of the rest.
    pub(super) fn tariff(&self, usual: &TariffSpec) -> TariffSpec {
        TariffSpec {
            price: self.price.clone().or_else(|| usual.price.clone()),
            carbon: self.carbon.clone().or_else(|| usual.carbon.clone()),
            demand: self.demand_charge.or(usual.demand),
            outdoor: self.outdoor.clone().or_else(|| usual.outdoor.clone()),
        }
    }
}
