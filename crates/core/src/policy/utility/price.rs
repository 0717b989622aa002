//! A price on energy, for the heuristic `priced`, which is not in the paper.
//!
//! A choice is worth its utility less the price of its energy, for each millisecond in which it keeps the
//! machine from other tasks. Nobody is mapped at a loss, nor for a completion after the end of the period, which
//! earns nothing. The price is right if the energy lasts exactly until then. So after each mapping event it
//! follows what was spent: it rises if machine time was filled with more energy than what is left allows for each
//! millisecond that is left, and falls if it was less. Machines that stay idle count as filled with nothing.

use super::choices::Choice;
use crate::units::{Instant, Joules, Span};
use crate::utility::Utility;

/// The first price, in what the mean task would earn at once with the mean energy. Days with other seeds than those
/// that are judged showed no difference from 0.3 to 1.
const FIRST: f64 = 0.5;
/// How much the price rises if twice as much is spent as should be, from one event to the next. From 0.01 to 0.1 the
/// same days showed none either.
const STEP: f64 = 0.03;
/// The price never changes by a larger part of itself at once.
const LARGEST_STEP: f64 = 0.5;

/// Millionths of utility for each microjoule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Price(f64);

/// What was decided on at a mapping event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spent {
    /// In microjoules.
    pub(super) energy: f64,
    /// Machine time that is filled by it, or by nothing, in milliseconds.
    pub(super) time: f64,
}

impl Price {
    /// The price before anything is known but what tasks may be worth, in millionths, and what entries of the tables
    /// consume on average, in microjoules.
    pub(super) fn first(starts: impl Iterator<Item = Utility>, mean_energy: f64) -> Self {
        let (sum, count) = starts
            .fold((0.0, 0.0), |(sum, count), start| (sum + start.millionths() as f64, count + 1.0));
        Price(FIRST * sum / f64::max(count, 1.0) / mean_energy.max(1.0))
    }

    /// Follows what was spent where so much energy is left for so much machine time, in milliseconds. `usual` is how
    /// much machine time passes from one event to the next.
    pub(super) fn follow(&mut self, spent: Spent, left: Joules, remaining: u128, usual: f64) {
        if left == Joules::ZERO || remaining == 0 {
            return;
        }
        let allowed = left.microjoules() as f64 / remaining as f64;
        // In the machine time for which it should have lasted.
        let excess = (spent.energy / allowed - spent.time) / usual;
        self.0 *= 1.0 + (STEP * excess).clamp(-LARGEST_STEP, LARGEST_STEP);
    }
}

/// What choices are measured by at a mapping event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Market {
    /// Nothing where energy is not limited.
    pub(super) price: Option<Price>,
    /// How long it is from one event to the next, where a machine waits for one when its task is complete.
    pub(super) every: Option<Span>,
    /// When the period ends.
    pub(super) end: Instant,
}

impl Market {
    /// What a choice brings for each millisecond, where it starts at one time and is complete at another and then
    /// earns so much; none if that is a loss.
    #[inline]
    pub(super) fn worth(
        &self,
        choice: &Choice,
        start: Instant,
        completion: Instant,
        earned: Utility,
    ) -> Option<f64> {
        let cost = self.price.map_or(0.0, |Price(price)| price * choice.energy as f64);
        let surplus = earned.millionths() as f64 - cost;
        (surplus > 0.0 && completion <= self.end).then(|| surplus / self.taken(start, completion))
    }

    /// How long a machine is taken, in milliseconds: until the next event, if it waits for that.
    #[inline]
    pub(super) fn taken(&self, start: Instant, completion: Instant) -> f64 {
        let until = match self.every.map(|every| every.millis().max(1)) {
            Some(every) => completion.millis().div_ceil(every).saturating_mul(every),
            None => completion.millis(),
        };
        until.saturating_sub(start.millis()).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Watts;

    /// Two machines and events every 60 s: 120 s of machine time pass in between. 600 J are left for 1200 s of
    /// machine time, half a watt. By how much the price changes after this many joules in this many seconds.
    fn change(joules: f64, seconds: f64) -> f64 {
        let mut price = Price(2.0);
        let spent = Spent { energy: joules * 1e6, time: seconds * 1e3 };
        price.follow(spent, Joules::from_joules(600), 1_200_000, 120e3);
        price.0 / 2.0 - 1.0
    }

    #[test]
    fn the_price_by_hand() {
        let is =
            |change: f64, expected: f64| assert!((change - expected).abs() < 1e-12, "{change}");
        // 60 J in 120 s are half a watt.
        is(change(60.0, 120.0), 0.0);
        // Twice as much, and nothing at all: idle machines.
        is(change(120.0, 120.0), 0.03);
        is(change(0.0, 120.0), -0.03);
        // 120 J should last 240 s. They do: a long task, or two.
        is(change(120.0, 240.0), 0.0);
        // 60 J more than should be in so much time as passes between five events.
        is(change(360.0, 600.0), 0.03);
        // A whole machine room that starts at once does not turn the price upside down.
        is(change(1e6, 120.0), 0.5);
        is(change(0.0, 1e6), -0.5);
        // Nothing is left, or no time: nobody is mapped, and there is no price to find.
        let mut price = Price(2.0);
        price.follow(Spent::default(), Joules::ZERO, 1000, 1.0);
        price.follow(Spent::default(), Joules::from_joules(1), 0, 1.0);
        assert_eq!(price, Price(2.0));
    }

    /// Tasks worth 8 and 2, so 5 on average, and 10 J: half a unit for a joule, and half of that.
    #[test]
    fn the_first_price_by_hand() {
        let price = Price::first([8, 2].map(Utility::whole).into_iter(), 10e6);
        assert_eq!(price, Price(0.25));
        assert_eq!(Price::first(std::iter::empty(), 0.0), Price(0.0));
    }

    fn choice(seconds: u32, watts: u32) -> Choice {
        let (time, power) = (Span::from_secs(seconds), Watts::from_watts(watts));
        let energy = power.over(time).microjoules() as u64;
        Choice { kind: 0, state: 0, time, power, energy, cost: 1.0 }
    }

    #[test]
    fn nobody_is_mapped_at_a_loss() {
        // A tenth of a unit for a joule.
        let price = Some(Price(0.1));
        let end = Instant::from_secs(1000);
        let queued = Market { price, every: None, end };
        let polled = Market { every: Some(Span::from_secs(60)), ..queued };
        let worth = |market: Market, start: u32, choice: &Choice, earned: u32| {
            let start = Instant::from_secs(start);
            market.worth(choice, start, start + choice.time, Utility::whole(earned))
        };
        // 80 s at 1 W cost 8: earning 10 leaves 2 in 80 s, or in 120 s up to the next event.
        let slow = choice(80, 1);
        assert_eq!(worth(queued, 0, &slow, 10), Some(2e6 / 80e3));
        assert_eq!(worth(polled, 0, &slow, 10), Some(2e6 / 120e3));
        // 60 s at 1 W are complete just at an event.
        assert_eq!(worth(polled, 60, &choice(60, 1), 10), Some(4e6 / 60e3));
        // No gain and a loss; but at no price anything is a gain.
        assert_eq!(worth(queued, 0, &slow, 8), None);
        assert_eq!(worth(queued, 0, &slow, 7), None);
        assert_eq!(worth(Market { price: None, ..queued }, 0, &slow, 7), Some(7e6 / 80e3));
        // Complete at the end, and after it.
        assert_eq!(worth(queued, 920, &slow, 10), Some(2e6 / 80e3));
        assert_eq!(worth(queued, 921, &slow, 10), None);
    }
}
