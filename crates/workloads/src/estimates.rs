//! How long users say their jobs will run: the estimate model of Tsafrir, Etsion and Feitelson
//! ("Modeling User Runtime Estimates", JSSPP 2005).
//!
//! Users pick from few values, most of them round, and rarely close to the truth. Twenty popular
//! estimates hold 89 % of the jobs, their shares falling exponentially with rank; the rest is a
//! long tail of odd values whose shares fall as a power of rank. A job gets one of these values at
//! random among those that are no shorter than its run time, so estimates say little about run
//! times, as in the logs.
//!
//! Choices made here:
//!
//! - **The longest estimate** is 48 hours, the first whole number of days that covers the longest
//!   run time the Lublin–Feitelson model gives (e¹² s, just over 45 hours). A job that still
//!   outlasts it asks for exactly its run time.
//! - **How many different estimates** there are: 200, the number for which the shortest value of
//!   the curve is five minutes, the shortest popular one. (The cleaned logs of the KTH and SDSC
//!   SP2s have 271 and 561.)
//! - **Which round value has which rank**: the order in the cleaned log of the SDSC SP2, with this
//!   model's longest estimate in the place of 18 hours, the longest that is common there. Four
//!   values fill the published list up to twenty: 45 minutes, 2½ and 7 hours, which that log has
//!   among its own twenty, and a day, between 18 hours and the longest.
//! - **The odd values** lie on the published curve, to the minute, except that each popular value
//!   takes the place of the curve's nearest. Their ranks are scattered evenly over the curve.
//! - **The tail's shares** follow the published power law, scaled to the 11 % that are left.
//! - **Assignment is job by job**: popular or odd is decided first, then the value, by the shares
//!   above among the values that are long enough. So the 89 % hold whatever the run times are, and
//!   a job's estimate depends on no other job; where run times are long, the long values have more
//!   than their published shares.

use rand::{Rng, RngExt};

use busbar_core::units::Span;

/// The longest estimate, in minutes.
const LONGEST_MINUTES: u32 = 48 * 60;
/// How many different estimates there are.
const DISTINCT: usize = 200;
/// The popular estimates in minutes, the most popular first.
const POPULAR_MINUTES: [u32; 20] = [
    5,
    60,
    LONGEST_MINUTES,
    10,
    4 * 60,
    2 * 60,
    30,
    20,
    12 * 60,
    8 * 60,
    10 * 60,
    3 * 60,
    15,
    6 * 60,
    5 * 60,
    150,
    45,
    7 * 60,
    18 * 60,
    24 * 60,
];
/// The share of jobs that use a popular estimate.
const POPULAR_SHARE: f64 = 0.89;
/// From one odd value to the next less popular one, in places on the curve. It is near the golden
/// section of their number, which leaves no part of the curve to the more or the less popular, and
/// shares no factor with it, so that every value has its turn.
const ODD_STRIDE: usize = 113;

/// The distribution of user estimates: which values there are, and how many jobs use each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Estimates {
    popular: Values,
    odd: Values,
}

impl Estimates {
    /// The published distribution.
    pub(crate) fn new() -> Self {
        let mut odd = curve();
        for popular in POPULAR_MINUTES {
            remove_nearest(&mut odd, popular);
        }
        Estimates {
            popular: Values::new(POPULAR_MINUTES.into_iter().zip(popular_shares())),
            odd: Values::new(scattered(&odd).zip(odd_shares())),
        }
    }

    /// An estimate for a job that really runs for `run_time`: at least that, otherwise at random.
    /// Takes one number from `random`, whatever the run time.
    pub(crate) fn draw(&self, run_time: Span, random: &mut impl Rng) -> Span {
        let place: f64 = random.random();
        // What is left of the number once it has decided between popular and odd is as random as
        // the whole was.
        let (values, place) = if place < POPULAR_SHARE {
            (&self.popular, place / POPULAR_SHARE)
        } else {
            (&self.odd, (place - POPULAR_SHARE) / (1.0 - POPULAR_SHARE))
        };
        values
            .draw(run_time, place)
            // The longest value is a popular one: a job may be too long for all odd ones.
            .or_else(|| self.popular.draw(run_time, place))
            .unwrap_or(run_time)
    }
}

impl Default for Estimates {
    fn default() -> Self {
        Estimates::new()
    }
}

/// Values to choose from, with how often each is chosen.
#[derive(Clone, Debug, PartialEq)]
struct Values {
    /// The values in seconds, ascending.
    seconds: Vec<u32>,
    /// How often a value before the one at this index is chosen; the last entry, one past the
    /// values, is how often any is.
    before: Vec<f64>,
}

impl Values {
    /// Values in minutes, each with how often it is chosen.
    fn new(values: impl Iterator<Item = (u32, f64)>) -> Self {
        let mut values: Vec<(u32, f64)> = values.collect();
        values.sort_by_key(|&(minutes, _)| minutes);
        let mut before = vec![0.0];
        let mut total = 0.0;
        for &(_, share) in &values {
            total += share;
            before.push(total);
        }
        Values { seconds: values.into_iter().map(|(minutes, _)| minutes * 60).collect(), before }
    }

    /// The value at `place`, between 0 and 1, among those that are not below `run_time`, if any.
    fn draw(&self, run_time: Span, place: f64) -> Option<Span> {
        let first = self.seconds.partition_point(|&value| Span::from_secs(value) < run_time);
        let longest = self.seconds.len().checked_sub(1).filter(|&longest| first <= longest)?;
        let too_short = self.before[first];
        let place = too_short + place * (self.before[longest + 1] - too_short);
        let after = &self.before[first + 1..=longest];
        let chosen = first + after.partition_point(|&share| share <= place);
        Some(Span::from_secs(self.seconds[chosen]))
    }
}

/// The published curve of values in minutes, ascending up to the longest.
fn curve() -> Vec<u32> {
    let distinct = DISTINCT as f64;
    let bend = 1.0 + 12.1039 * libm::pow(distinct, -0.6026);
    (1..=DISTINCT)
        .map(|rank| {
            let x = rank as f64 / distinct;
            (f64::from(LONGEST_MINUTES) * (bend - 1.0) * x / (bend - x)).round() as u32
        })
        .collect()
}

/// Removes the value nearest to `minutes`, the shorter one of two that are equally near.
fn remove_nearest(values: &mut Vec<u32>, minutes: u32) {
    let nearest = (0..values.len()).min_by_key(|&index| values[index].abs_diff(minutes));
    if let Some(index) = nearest {
        values.remove(index);
    }
}

/// The values in an order that jumps about evenly, each once.
fn scattered(values: &[u32]) -> impl Iterator<Item = u32> {
    (0..values.len()).map(|rank| values[rank * ODD_STRIDE % values.len()])
}

/// The share of each popular value, the most popular first.
fn popular_shares() -> Vec<f64> {
    let mut shares: Vec<f64> = (1..=POPULAR_MINUTES.len())
        .map(|rank| (14.0491 * libm::exp(-0.177531 * rank as f64) + 0.462513) / 100.0)
        .collect();
    let others: f64 = shares[1..].iter().sum();
    shares[0] = POPULAR_SHARE - others;
    shares
}

/// How often each odd value is chosen, compared with the others; the most popular first.
fn odd_shares() -> impl Iterator<Item = f64> {
    (POPULAR_MINUTES.len() + 1..=DISTINCT).map(|rank| 795.6 * libm::pow(rank as f64, -2.267))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rand::SeedableRng;
    use rand_pcg::Pcg64Dxsm;

    use super::*;

    const DRAWS: u32 = 200_000;

    /// The estimates of jobs that all run for `run_time`, with how many jobs use each, the most
    /// used first.
    fn most_used(run_time: Span) -> Vec<(Span, u32)> {
        let estimates = Estimates::new();
        let mut random = Pcg64Dxsm::seed_from_u64(7);
        let mut counts = HashMap::new();
        for _ in 0..DRAWS {
            *counts.entry(estimates.draw(run_time, &mut random)).or_insert(0) += 1;
        }
        let mut counts: Vec<(Span, u32)> = counts.into_iter().collect();
        counts.sort_by_key(|&(value, count)| (std::cmp::Reverse(count), value));
        counts
    }

    #[test]
    fn twenty_values_hold_89_percent_where_run_times_do_not_matter() {
        let used = most_used(Span::ZERO);
        let popular: u32 = used[..20].iter().map(|&(_, count)| count).sum();
        // A binomial share of 200 000 draws has a standard error of 0.0007.
        let share = f64::from(popular) / f64::from(DRAWS);
        assert!((share - 0.89).abs() < 0.003, "{share}");
        // Published: 21.73 % (89 less the others), 14.0491·e^(−0.355062) + 0.462513 = 10.31 %, ….
        for (rank, published) in [(1, 0.2173), (2, 0.1031), (3, 0.0871), (10, 0.0284)] {
            let share = f64::from(used[rank - 1].1) / f64::from(DRAWS);
            assert!((share - published).abs() < 0.003, "rank {rank}: {share}");
        }
        // The tail's power law: (60 / 21)^(−2.267) = 0.0926. Some 1360 and 130 draws are compared,
        // which is good for a standard error of a tenth.
        let ratio = f64::from(used[59].1) / f64::from(used[20].1);
        assert!((ratio / 0.0926 - 1.0).abs() < 0.4, "{ratio}");
    }

    #[test]
    fn popular_values_keep_their_share_whatever_the_run_time() {
        let popular = POPULAR_MINUTES.map(|minutes| Span::from_secs(minutes * 60));
        for hours in [0, 1, 3, 9, 20, 40] {
            let used = most_used(Span::from_secs(hours * 3600));
            let hits: u32 =
                used.iter().filter(|(value, _)| popular.contains(value)).map(|&(_, n)| n).sum();
            let share = f64::from(hits) / f64::from(DRAWS);
            assert!((share - 0.89).abs() < 0.003, "{hours} h: {share}");
        }
    }

    /// All values in seconds, ascending.
    fn all_values() -> Vec<u32> {
        let estimates = Estimates::new();
        let mut values = [estimates.popular.seconds, estimates.odd.seconds].concat();
        values.sort_unstable();
        values
    }

    #[test]
    fn there_are_200_values_from_five_minutes_to_two_days() {
        let values = all_values();
        assert_eq!(values.len(), 200);
        assert!(values.is_sorted_by(|a, b| a < b), "all different");
        assert_eq!((values[0], values[199]), (300, 48 * 3600));
    }

    #[test]
    fn half_of_the_values_are_below_a_quarter_of_the_longest() {
        // With 200 values the curve's bend is 1.497; at x = ½ it is 0.497·½ / 0.997 = 0.249.
        let middle = f64::from(all_values()[99]);
        assert!((middle / (48.0 * 3600.0) - 0.249).abs() < 0.01, "{middle}");
    }

    #[test]
    fn odd_values_are_scattered_over_the_whole_range() {
        let odd: Vec<u32> = (0..180).collect();
        let mut order: Vec<u32> = scattered(&odd).collect();
        // The most popular tenth is spread over all thirds of the range.
        for third in [0..60, 60..120, 120..180] {
            let inside = order[..18].iter().filter(|&value| third.contains(value)).count();
            assert!((5..=7).contains(&inside), "{inside} in {third:?}");
        }
        order.sort_unstable();
        assert_eq!(order, odd, "each value once");
    }

    #[test]
    fn an_estimate_is_never_below_the_run_time() {
        let estimates = Estimates::new();
        let mut random = Pcg64Dxsm::seed_from_u64(3);
        let run_times = (0..180_000).map(Span::from_secs);
        for run_time in run_times {
            assert!(estimates.draw(run_time, &mut random) >= run_time);
        }
    }

    #[test]
    fn a_run_time_that_is_a_value_may_be_estimated_exactly() {
        let hour = Span::from_secs(3600);
        assert!(most_used(hour).iter().any(|&(value, _)| value == hour));
        let just_longer = Span::from_millis(3_600_001);
        assert!(most_used(just_longer).iter().all(|&(value, _)| value > hour));
    }

    #[test]
    fn a_job_that_outlasts_every_value_asks_for_its_run_time() {
        let two_days = Span::from_secs(48 * 3600);
        assert_eq!(most_used(two_days), [(two_days, DRAWS)]);
        let week = Span::from_secs(7 * 24 * 3600);
        assert_eq!(most_used(week), [(week, DRAWS)]);
    }
}
