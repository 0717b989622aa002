//! What energy costs and what is emitted for it, over time, and how warm it is outdoors.
//!
//! Prices and carbon intensities are [rates](Rate): so much for each kilowatt hour. They are constant, by rules of the
//! [calendar](crate::calendar), or a series in a file ([`RateSpec`]). For a run they become a [`Curve`], which says for
//! every instant what is known, and from when on nothing is: what is not known is never zero. A [`DemandCharge`] is for
//! the highest quarter of an hour of each month.

use crate::calendar::{NoCalendar, RulesError, RunDates};
use crate::rows::TableError;
use crate::units::{Celsius, Instant};

mod demand;
mod rate;
mod series;
mod spec;
#[cfg(test)]
mod tests;

pub use demand::DemandCharge;
pub(crate) use demand::{Months, Peaks};
pub(crate) use rate::Amount;
pub use rate::{Currency, Measure, Rate, RateError};
pub use series::SeriesValue;
pub use spec::{RateSpec, SeriesSpec, parse_carbon, parse_outdoor, parse_price};

/// Why a tariff cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TariffError {
    /// The text is none of the forms.
    #[error(
        "'{text}' is not a valid {what}; write it with its unit ({example}), as rules ('weekdays 07:00-20:00: \
        {example}, else \
         {example}'), or as the path of a .csv file, with FILE:COLUMN for one of its columns{why}"
    )]
    Unknown {
        /// The text as written.
        text: String,
        /// The expected form.
        what: &'static str,
        /// How that is written.
        example: &'static str,
        /// More of what is wrong.
        why: String,
    },
    /// The rate is of something else.
    #[error("'{text}' is not a valid {what}; write for example {example}")]
    OtherMeasure {
        /// The wanted quantity.
        what: &'static str,
        /// The text as written.
        text: String,
        /// How it is written.
        example: &'static str,
    },
    /// Rates of several kinds.
    #[error("{one} and {other} have different units; use one unit for all")]
    Mixed {
        /// One of them.
        one: Rate,
        /// The other.
        other: Rate,
    },
    /// A rule is wrong.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The file is wrong.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Dates are needed, but unknown.
    #[error("dates are needed, and {0}")]
    NoCalendar(NoCalendar),
    /// Something is wrong with one part of it.
    #[error("{of}")]
    Of {
        /// The part.
        of: &'static str,
        /// The reason.
        #[source]
        why: Box<TariffError>,
    },
    /// Two currencies.
    #[error("the price is {price} and the demand charge {charge}; write both in one currency")]
    Currencies {
        /// The price.
        price: Rate,
        /// The demand charge.
        charge: DemandCharge,
    },
    /// The series does not cover the log.
    #[error(
        "the series covers {series}, and the log {log}; give a series that covers it, move the log with --start, or add \
         'repeat' to use the series again and again ('{text} repeat')"
    )]
    NotCovered {
        /// The period of the series.
        series: String,
        /// The period of the log.
        log: String,
        /// The text as written.
        text: String,
    },
}

// It is told in full, so it is no source, which would be told again.
impl From<NoCalendar> for TariffError {
    fn from(why: NoCalendar) -> Self {
        TariffError::NoCalendar(why)
    }
}

/// A value over the time of a run, mostly a rate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Curve<V = Rate> {
    /// From these instants on; the first holds from its instant on, and times increase.
    steps: Vec<(Instant, V)>,
    /// From this instant on nothing is known.
    until: Instant,
}

impl Curve {
    /// What it counts.
    pub fn of(&self) -> Measure {
        self.steps[0].1.of
    }
}

impl<V: Copy> Curve<V> {
    /// One value for all time.
    pub(crate) fn constant(value: V) -> Self {
        Curve { steps: vec![(Instant::ZERO, value)], until: Instant::NEVER }
    }

    /// From when on nothing is known.
    #[cfg(test)]
    pub(crate) fn until(&self) -> Instant {
        self.until
    }
}

/// Reads a curve from one instant to the next, without looking for the place each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    place: usize,
}

impl<V: Copy> Curve<V> {
    /// The stretches of one value from an instant to another, which are not before those of the last time: how long in
    /// milliseconds, and which value, if it is known.
    pub(crate) fn stretches(
        &self,
        reading: &mut Reading,
        from: Instant,
        until: Instant,
        mut each: impl FnMut(u64, Option<V>),
    ) {
        let mut now = from;
        if reading.place == 0 && self.steps[0].0 > now {
            let first = self.steps[0].0.min(until);
            each(first.since(now).millis(), None);
            now = first;
        }
        while now < until {
            if now >= self.until {
                each(until.since(now).millis(), None);
                return;
            }
            while self.steps.get(reading.place + 1).is_some_and(|next| next.0 <= now) {
                reading.place += 1;
            }
            let next = self.steps.get(reading.place + 1).map_or(self.until, |next| next.0);
            let end = next.min(self.until).min(until);
            each(end.since(now).millis(), Some(self.steps[reading.place].1));
            now = end;
        }
    }

    /// The value at an instant, if it is known.
    #[cfg(test)]
    pub(crate) fn at(&self, at: Instant) -> Option<V> {
        let place = self.steps.partition_point(|step| step.0 <= at).checked_sub(1)?;
        (at < self.until).then(|| self.steps[place].1)
    }
}

/// All that is counted of a run, beside its energy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tariff {
    /// The price of energy.
    pub(crate) price: Option<Curve>,
    /// The carbon intensity of energy.
    pub(crate) carbon: Option<Curve>,
    /// The price of the highest 15-minute average of each month.
    pub(crate) demand: Option<(DemandCharge, Months)>,
    /// The temperature outdoors, on which cooling may depend.
    pub(crate) outdoor: Option<Curve<Celsius>>,
}

impl Tariff {
    /// Whether nothing is counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.price.is_none() && self.carbon.is_none() && self.demand.is_none()
    }

    /// The currency of its prices, if there are any.
    pub fn currency(&self) -> Option<Currency> {
        let price = self.price.as_ref().and_then(|price| match price.of() {
            Measure::Money(currency) => Some(currency),
            Measure::Carbon => None,
        });
        price.or_else(|| self.demand.as_ref().map(|(charge, _)| charge.currency))
    }
}

/// A tariff as it is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TariffSpec {
    /// The price of energy.
    pub price: Option<RateSpec>,
    /// The carbon intensity of energy.
    pub carbon: Option<RateSpec>,
    /// The price of the highest 15-minute average of each month.
    pub demand: Option<DemandCharge>,
    /// The temperature outdoors.
    pub outdoor: Option<SeriesSpec<Celsius>>,
}

impl TariffSpec {
    /// What it means for a run of a workload whose jobs are submitted from `begin` to `end`.
    pub fn resolve(
        &self,
        dates: &RunDates,
        begin: Instant,
        end: Instant,
    ) -> Result<Tariff, TariffError> {
        let part = |of| move |why| TariffError::Of { of, why: Box::new(why) };
        let curve = |spec: &Option<RateSpec>, of| {
            let curve = spec.as_ref().map(|spec| spec.resolve(dates, begin, end)).transpose();
            curve.map_err(part(of))
        };
        let outdoor = self.outdoor.as_ref().map(|spec| spec.resolve(dates, begin, end));
        let months = |charge: DemandCharge| Ok((charge, Months::of(dates)?));
        let demand = self.demand.map(months).transpose();
        let of_demand = |why: NoCalendar| part("demand charge")(why.into());
        let tariff = Tariff {
            price: curve(&self.price, "price")?,
            carbon: curve(&self.carbon, "carbon")?,
            demand: demand.map_err(of_demand)?,
            outdoor: outdoor.transpose().map_err(part("outdoor temperature"))?,
        };
        tariff.checked()
    }
}

impl Tariff {
    /// That rates are of what they should be, and in one currency.
    fn checked(self) -> Result<Self, TariffError> {
        let first = |curve: &Option<Curve>| curve.as_ref().map(|curve| curve.steps[0].1);
        let wrong = |rate: Rate, what, example| TariffError::OtherMeasure {
            what,
            text: rate.to_string(),
            example,
        };
        if let Some(rate) = first(&self.price) {
            let Measure::Money(currency) = rate.of else {
                return Err(wrong(rate, "price", "0.32EUR/kWh"));
            };
            if let Some((charge, _)) =
                self.demand.as_ref().filter(|demand| demand.0.currency != currency)
            {
                return Err(TariffError::Currencies { price: rate, charge: *charge });
            }
        }
        match first(&self.carbon).filter(|rate| rate.of != Measure::Carbon) {
            Some(rate) => Err(wrong(rate, "carbon intensity", "450g/kWh")),
            None => Ok(self),
        }
    }
}
