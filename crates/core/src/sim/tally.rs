//! The cost and the emissions of a run, and its power in time windows.
//!
//! It is told how much is drawn until when, like the [meter](super::meter), and keeps sums alone: no samples.

use crate::calendar::Windows;
use crate::tariff::{Amount, Currency, Curve, Peaks, Reading, Tariff};
use crate::units::{Instant, Joules, Span, Watts};

/// What a run costs and emits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charges {
    /// The currency.
    pub currency: Option<Currency>,
    /// What the energy costs, in millionths of the currency; none if it has no price, or none that is known for all
    /// of the time.
    pub energy: Option<i128>,
    /// What the highest quarters of an hour cost, in millionths of the currency.
    pub demand: Option<i128>,
    /// The highest quarter of an hour, where it costs anything.
    pub highest_quarter: Option<Watts>,
    /// How many months have a highest quarter; the first and the last may be there in part.
    pub months: u32,
    /// Millionths of a gram of carbon dioxide; none if it is not known for all of the time.
    pub carbon: Option<i128>,
    /// For how long the price was not known.
    pub unpriced: Span,
    /// For how long it was not known what is emitted.
    pub uncounted: Span,
    /// What happened in the windows, if there are any.
    pub window: Option<WindowCharges>,
}

/// What was drawn in parts of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowCharges {
    /// How long they are together.
    pub time: Span,
    /// The energy.
    pub energy: Joules,
    /// The most that was drawn for any time.
    pub peak: Watts,
    /// What the energy costs, in millionths of the currency.
    pub cost: Option<i128>,
    /// Millionths of a gram of carbon dioxide.
    pub carbon: Option<i128>,
}

/// Sums so far. They are small, so that those at the last end of a job can be kept.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    cost: Sum,
    carbon: Sum,
    peaks: Option<Peaks>,
    time: Span,
    energy: Joules,
    peak: Watts,
}

/// An amount, in all and in the windows.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    all: Amount,
    in_windows: Amount,
    /// Milliseconds without a rate.
    unknown: u64,
}

impl Sum {
    fn add(
        &mut self,
        curve: &Curve,
        reading: &mut Reading,
        (from, until): (Instant, Instant),
        power: Watts,
        is_open: bool,
    ) {
        curve.stretches(reading, from, until, |millis, rate| match rate {
            Some(rate) => {
                let energy = power.over(Span::from_millis(millis)).microjoules();
                self.all.add(rate, energy);
                if is_open {
                    self.in_windows.add(rate, energy);
                }
            }
            None => self.unknown += millis,
        });
    }

    fn known(&self, amount: Amount) -> Option<i128> {
        (self.unknown == 0).then(|| amount.micros())
    }
}

/// Adds up what a run costs and emits.
pub(super) struct Tally<'a> {
    tariff: &'a Tariff,
    windows: Option<&'a Windows>,
    now: Instant,
    price: Reading,
    carbon: Reading,
    /// Which window is the next.
    window: usize,
    sums: Sums,
    at_end: Sums,
}

impl<'a> Tally<'a> {
    pub(super) fn new(tariff: &'a Tariff, windows: Option<&'a Windows>, begin: Instant) -> Self {
        let peaks = tariff.demand.as_ref().map(|(_, months)| Peaks::begin(months, begin));
        let sums = Sums { peaks, ..Sums::default() };
        let (price, carbon) = (Reading::default(), Reading::default());
        Tally { tariff, windows, now: begin, price, carbon, window: 0, sums, at_end: sums }
    }

    /// So much was drawn until now.
    pub(super) fn advance(&mut self, now: Instant, power: Watts) {
        while self.now < now {
            let (is_open, until) = match self.windows {
                Some(windows) => windows.state(&mut self.window, self.now),
                None => (false, Instant::NEVER),
            };
            let part = (self.now, until.min(now));
            let sums = &mut self.sums;
            if let Some(price) = &self.tariff.price {
                sums.cost.add(price, &mut self.price, part, power, is_open);
            }
            if let Some(carbon) = &self.tariff.carbon {
                sums.carbon.add(carbon, &mut self.carbon, part, power, is_open);
            }
            if let (Some(peaks), Some((_, months))) = (&mut sums.peaks, &self.tariff.demand) {
                peaks.advance(months, part.1, power);
            }
            if is_open {
                let time = part.1.since(part.0);
                sums.time = sums.time + time;
                sums.energy += power.over(time);
                sums.peak = sums.peak.max(power);
            }
            self.now = part.1;
        }
    }

    /// A job ends: what comes later counts only if another one ends later.
    pub(super) fn note_end(&mut self) {
        self.at_end = self.sums;
    }

    pub(super) fn charges(&self) -> Charges {
        let Sums { cost, carbon, peaks, time, energy, peak } = self.at_end;
        let Tariff { price, carbon: curve, demand, .. } = self.tariff;
        let priced = price.as_ref();
        let counted = curve.as_ref();
        Charges {
            currency: self.tariff.currency(),
            energy: priced.and_then(|_| cost.known(cost.all)),
            demand: demand.as_ref().zip(peaks).map(|((charge, _), peaks)| {
                i128::try_from(charge.micros(peaks.total())).unwrap_or(i128::MAX)
            }),
            highest_quarter: peaks.map(Peaks::highest),
            months: peaks.map_or(0, |peaks| peaks.months()),
            carbon: counted.and_then(|_| carbon.known(carbon.all)),
            unpriced: Span::from_millis(cost.unknown),
            uncounted: Span::from_millis(carbon.unknown),
            window: self.windows.map(|_| WindowCharges {
                time,
                energy,
                peak,
                cost: priced.and_then(|_| cost.known(cost.in_windows)),
                carbon: counted.and_then(|_| carbon.known(carbon.in_windows)),
            }),
        }
    }
}
