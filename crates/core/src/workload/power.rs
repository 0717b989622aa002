//! The measured power of a job.

use crate::units::Watts;

/// What a job drew, all its nodes together: at least one of the two is known, and neither is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MeasuredPower {
    mean: Option<Watts>,
    peak: Option<Watts>,
}

impl MeasuredPower {
    /// What is known; nothing if that is nothing. A peak below the mean is no peak, and not known.
    pub fn new(mean: Option<Watts>, peak: Option<Watts>) -> Option<Self> {
        let above_zero = |watts: &Watts| *watts > Watts::ZERO;
        let mean = mean.filter(above_zero);
        let peak = peak.filter(|peak| above_zero(peak) && mean.is_none_or(|mean| mean <= *peak));
        (mean.is_some() || peak.is_some()).then_some(MeasuredPower { mean, peak })
    }

    /// The mean over its run.
    pub fn mean(self) -> Option<Watts> {
        self.mean
    }

    /// The most it drew at once.
    pub fn peak(self) -> Option<Watts> {
        self.peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power(mean: u64, peak: u64) -> Option<MeasuredPower> {
        let watts = |milliwatts| (milliwatts > 0).then(|| Watts::from_milliwatts(milliwatts));
        MeasuredPower::new(watts(mean), watts(peak))
    }

    #[test]
    fn a_peak_below_the_mean_says_nothing() {
        assert_eq!(power(5, 4), power(5, 0));
        assert_eq!(power(0, 0), None);
        let both = power(4, 5).unwrap();
        assert_eq!((both.mean().unwrap().milliwatts(), both.peak().unwrap().milliwatts()), (4, 5));
    }
}
