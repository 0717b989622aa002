//! How far above the mean of the past a prediction has to be, so that only few jobs draw more.
//!
//! For each job that has ended it is known what it drew, as a [`Ratio`] of the mean that was known when it was submitted.
//! The next job is expected to draw the mean times a high quantile of these ratios. Means of jobs that are more alike are
//! less far off, so that each [`Kind`] of mean has ratios of its own. Of n ratios the one at place (n + 1) · level is
//! taken, which is exceeded by no more than the rest if jobs to come are like those before them; as long as there are not so many,
//! nothing is known.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use super::Kind;
use crate::units::Share;

/// Which share of jobs is to draw no more than is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The mean itself is predicted, whatever share that is.
    Mean,
    /// This share, which is above 0 % and below 100 %.
    Share(Share),
}

/// Chosen on made-up records that are used for nothing else; the tutorial for sites shows what it costs on others.
impl Default for Level {
    fn default() -> Self {
        Level::Share(Share::percent(90))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::Mean => f.write_str("mean"),
            Level::Share(share) => share.fmt(f),
        }
    }
}

impl FromStr for Level {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_part = |share: &Share| Share::percent(0) < *share && *share < Share::WHOLE;
        match text {
            "mean" => Ok(Level::Mean),
            text => text
                .parse()
                .ok()
                .filter(is_part)
                .map(Level::Share)
                .ok_or("write mean, or a share of jobs between 0% and 100%, such as 90%"),
        }
    }
}

/// What a job drew over what jobs like it had drawn in the mean, in steps of 2⁻¹⁶, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ratio(u64);

impl Ratio {
    const ONE: u128 = 1 << 16;

    pub(super) fn of(drawn: u64, mean: u64) -> Self {
        let ratio = (u128::from(drawn) * Ratio::ONE).div_ceil(u128::from(mean.max(1)));
        Ratio(u64::try_from(ratio).unwrap_or(u64::MAX))
    }

    /// So many times this power, rounded up.
    fn times(self, power: u64) -> u64 {
        let product = (u128::from(power) * u128::from(self.0)).div_ceil(Ratio::ONE);
        u64::try_from(product).unwrap_or(u64::MAX)
    }
}

/// How many of the last ratios of a kind are remembered.
const REMEMBERED: usize = 200;

/// The last ratios of a kind, as they came and in order of size.
#[derive(Clone, Debug, Default)]
struct Ratios {
    latest: VecDeque<Ratio>,
    sorted: Vec<Ratio>,
}

impl Ratios {
    fn add(&mut self, ratio: Ratio) {
        if self.latest.len() == REMEMBERED
            && let Some(oldest) = self.latest.pop_front()
        {
            let place = self.sorted.partition_point(|known| *known < oldest);
            self.sorted.remove(place);
        }
        self.latest.push_back(ratio);
        let place = self.sorted.partition_point(|known| *known < ratio);
        self.sorted.insert(place, ratio);
    }

    /// The ratio that the next one exceeds in no more than the rest of the cases, if that is known.
    fn quantile(&self, share: Share) -> Option<Ratio> {
        let place = share.of_count(self.sorted.len() as u32 + 1).checked_sub(1)?;
        self.sorted.get(usize::try_from(place).ok()?).copied()
    }
}

/// What is added to means.
#[derive(Clone, Debug)]
pub(super) struct Margins {
    level: Level,
    ratios: [Ratios; Kind::COUNT],
}

impl Margins {
    pub(super) fn new(level: Level) -> Self {
        Margins { level, ratios: Default::default() }
    }

    /// A job has ended whose mean was of this kind.
    pub(super) fn learn(&mut self, kind: Kind, ratio: Ratio) {
        self.ratios[kind as usize].add(ratio);
    }

    /// What to predict where the mean of this kind is so much; nothing if too little is known of such means.
    pub(super) fn above(&self, kind: Kind, mean: u64) -> Option<u64> {
        match self.level {
            Level::Mean => Some(mean),
            Level::Share(share) => {
                let ratio = self.ratios[kind as usize].quantile(share)?;
                Some(ratio.times(mean))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_and_written() {
        for text in ["mean", "90%", "99.5%"] {
            assert_eq!(text.parse::<Level>().unwrap().to_string(), text);
        }
        for text in ["0%", "100%", "120%", "0.9", "median"] {
            assert!(text.parse::<Level>().unwrap_err().contains("such as 90%"), "{text}");
        }
    }

    /// Of the ratios 1, 2, …, 9 the ninth is at 90 %, and the fifth at 50 %; 95 % are not known.
    #[test]
    fn quantiles_by_hand() {
        let mut ratios = Ratios::default();
        let ratio = |ratio: u64| Ratio::of(ratio, 1);
        (1..=9).rev().for_each(|place| ratios.add(ratio(place)));
        let quantile = |percent| ratios.quantile(Share::percent(percent));
        assert_eq!(quantile(90), Some(ratio(9)));
        assert_eq!(quantile(50), Some(ratio(5)));
        assert_eq!((quantile(95), Ratios::default().quantile(Share::percent(50))), (None, None));
    }

    #[test]
    fn only_the_last_ratios_count() {
        let mut ratios = Ratios::default();
        (0..2 * REMEMBERED as u64).for_each(|drawn| ratios.add(Ratio::of(drawn % 300, 1)));
        // From 0 to 99, and from 200 to 299: the place 101 is the first of the upper half.
        assert_eq!(ratios.quantile(Share::percent(50)), Some(Ratio::of(200, 1)));
        assert_eq!(ratios.sorted.len(), REMEMBERED);
        assert!(ratios.sorted.is_sorted());
    }

    #[test]
    fn each_kind_of_mean_has_its_own_margin() {
        let mut margins = Margins::new(Level::Share(Share::percent(50)));
        margins.learn(Kind::User, Ratio::of(3, 2));
        assert_eq!(margins.above(Kind::User, 1000), Some(1500));
        assert_eq!(margins.above(Kind::All, 1000), None);
        assert_eq!(Margins::new(Level::Mean).above(Kind::All, 1000), Some(1000));
    }
}
