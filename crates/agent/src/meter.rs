//! Turns what a domain's meter shows into power and energy, and into "unknown" where that would be a guess.
//!
//! A counter of energy wraps at its own range. A difference is believed only if a domain could have consumed
//! so much in that time: otherwise the counter jumped, was reset, or may have wrapped more than once.
//! A counter that does not move at all is broken, since no domain draws nothing.

use std::time::{Duration, Instant};

use busbar_core::units::{Joules, Watts};

use crate::control::{ControlError, Measure};
use crate::reading::Reading;

/// The shortest time over which power is worked out from a counter.
const WINDOW: Duration = Duration::from_millis(100);

/// How coarse a counter may be in time.
const COARSENESS: Duration = Duration::from_millis(50);

/// How long a counter may stand still.
const STANDSTILL: Duration = Duration::from_secs(1);

/// The power and energy of one domain.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    source: String,
    is_emulated: bool,
    /// More than the domain can ever draw.
    implausible: Watts,
    last: Option<Last>,
    /// All energy that was counted, in microjoules.
    energy: u128,
    /// Whether energy is integrated from power, for lack of a counter.
    is_integrated: bool,
    /// How often energy was lost, and why it was the last time.
    gaps: u64,
    gap_reason: String,
    /// The energy and time at which the present window of power began.
    window: Option<(u128, Instant)>,
    power: Reading<Watts>,
}

/// What was seen last.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Instant,
    counter: u64,
    /// When the counter moved last.
    moved: Instant,
    /// Whether it was said that it stands still.
    is_still: bool,
}

/// A mark at which a job began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    energy: u128,
    gaps: u64,
}

impl Meter {
    /// A meter of a domain that draws at most `highest`.
    pub(crate) fn new(source: &str, is_emulated: bool, highest: Watts) -> Self {
        Meter {
            source: source.to_owned(),
            is_emulated,
            // Processors exceed their rating for moments, but not by a factor.
            implausible: highest.saturating_add(highest),
            last: None,
            energy: 0,
            is_integrated: false,
            gaps: 0,
            gap_reason: String::new(),
            window: None,
            power: Reading::unknown("no measurement yet", source),
        }
    }

    /// Takes in what the meter shows now.
    pub(crate) fn observe(&mut self, now: Instant, shown: Result<Measure, ControlError>) {
        match shown {
            Ok(Measure::Counter { microjoules, largest }) => {
                self.count(now, microjoules, largest);
                self.judge_window(now);
            }
            Ok(Measure::Both { power, microjoules }) => {
                self.count(now, microjoules, u64::MAX);
                self.show_power(power);
            }
            Ok(Measure::Power(power)) => {
                self.integrate(now, power);
                self.show_power(power);
                // What was not power is no energy either.
                if let Reading::Unknown { reason, .. } = &self.power {
                    self.lose(reason.clone());
                }
            }
            // The counter goes on, so energy may still be known when it can be read again.
            Err(error) => {
                self.window = None;
                self.power = Reading::unknown(error.to_string(), &self.source);
            }
        }
    }

    /// The power since the last observation that was long enough ago.
    pub(crate) fn power(&self) -> &Reading<Watts> {
        &self.power
    }

    /// The energy since the first observation.
    pub(crate) fn energy(&self) -> Reading<Joules> {
        self.energy_since(Mark { energy: 0, gaps: 0 })
    }

    /// A mark for [`energy_since`](Self::energy_since).
    pub(crate) fn mark(&self) -> Mark {
        Mark { energy: self.energy, gaps: self.gaps }
    }

    /// The energy since a mark.
    pub(crate) fn energy_since(&self, mark: Mark) -> Reading<Joules> {
        let source = self.source.as_str();
        let value = Joules::from_microjoules(self.energy - mark.energy);
        match self.last {
            None => Reading::unknown("no measurement yet", source),
            Some(_) if self.gaps != mark.gaps => Reading::unknown(self.gap_reason.clone(), source),
            Some(last) if last.is_still => Reading::unknown("the counter does not advance", source),
            Some(_) if self.is_integrated && !self.is_emulated => {
                Reading::Estimated { value, source: format!("{source}, integrated") }
            }
            Some(_) => Reading::read(value, self.is_emulated, source),
        }
    }

    fn lose(&mut self, reason: String) {
        self.gaps += 1;
        self.window = None;
        self.power = Reading::unknown(reason.clone(), &self.source);
        self.gap_reason = reason;
    }

    /// What a domain can have consumed in this time at most, in microjoules.
    fn most(&self, elapsed: Duration) -> u128 {
        u128::from(self.implausible.milliwatts()) * (elapsed + COARSENESS).as_micros() / 1000
    }

    /// Adds up a counter.
    fn count(&mut self, now: Instant, counter: u64, largest: u64) {
        let Some(last) = self.last else {
            let last = Last { at: now, counter, moved: now, is_still: false };
            self.last = Some(last);
            self.window = Some((self.energy, now));
            return;
        };
        let elapsed = now.saturating_duration_since(last.at);
        let most = self.most(elapsed);
        let has_wrapped = counter < last.counter;
        let difference = match has_wrapped {
            false => u128::from(counter - last.counter),
            true => u128::from(largest.saturating_sub(last.counter)) + u128::from(counter) + 1,
        };
        let moved = if difference == 0 { last.moved } else { now };
        let stood = now.saturating_duration_since(moved);
        let is_still = difference == 0 && stood >= STANDSTILL;
        self.last = Some(Last {
            at: now,
            counter,
            moved,
            is_still: is_still || (last.is_still && difference == 0),
        });
        if counter > largest {
            self.lose(format!("the counter shows {counter} µJ, beyond its range of {largest} µJ"));
        } else if most >= u128::from(largest) && elapsed > STANDSTILL {
            let seconds = elapsed.as_secs();
            self.lose(format!("after {seconds} s the counter may have wrapped more than once"));
        } else if difference > most {
            let what = if has_wrapped { "went back" } else { "jumped" };
            self.lose(format!(
                "the counter {what} from {} to {counter} µJ within {} ms",
                last.counter,
                elapsed.as_millis()
            ));
        } else if is_still {
            if !last.is_still {
                self.lose("the counter does not advance".to_owned());
            }
            self.power = Reading::unknown("the counter does not advance", &self.source);
        } else {
            self.energy += difference;
        }
    }

    /// Works out the power if the window is long enough.
    fn judge_window(&mut self, now: Instant) {
        let Some(last) = self.last else { return };
        if last.is_still {
            return;
        }
        let Some((energy, begun)) = self.window else {
            self.window = Some((self.energy, now));
            return;
        };
        let elapsed = now.saturating_duration_since(begun);
        let consumed = self.energy - energy;
        if elapsed < WINDOW || consumed == 0 {
            return;
        }
        // Microjoules per nanosecond are kilowatts.
        let milliwatts = (consumed * 1_000_000).div_ceil(elapsed.as_nanos().max(1));
        let power = Watts::from_milliwatts(u64::try_from(milliwatts).unwrap_or(u64::MAX));
        self.window = Some((self.energy, now));
        self.show_power(power);
    }

    /// Adds up power over time, for lack of a counter.
    fn integrate(&mut self, now: Instant, power: Watts) {
        self.is_integrated = true;
        if let Some(last) = self.last {
            let micros = now.saturating_duration_since(last.at).as_micros();
            self.energy += u128::from(power.milliwatts()) * micros / 1000;
        }
        self.last = Some(Last { at: now, counter: 0, moved: now, is_still: false });
    }

    fn show_power(&mut self, power: Watts) {
        self.power = match power {
            Watts::ZERO => Reading::unknown("the meter shows 0 W", &self.source),
            power if power > self.implausible => Reading::unknown(
                format!("the meter shows {power}, more than the domain can draw"),
                &self.source,
            ),
            power => Reading::read(power, self.is_emulated, &self.source),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGEST: u64 = 262_143_328_850;

    struct Bench {
        meter: Meter,
        now: Instant,
    }

    impl Bench {
        /// A meter of a domain that draws up to 100 W, and shows this.
        fn new(counter: u64) -> Self {
            let meter = Meter::new("zone", false, Watts::from_watts(100));
            let mut bench = Bench { meter, now: Instant::now() };
            bench.show(0, counter);
            bench
        }

        fn show(&mut self, after_ms: u64, microjoules: u64) {
            self.now += Duration::from_millis(after_ms);
            let shown = Measure::Counter { microjoules, largest: LARGEST };
            self.meter.observe(self.now, Ok(shown));
        }

        fn watts(&self) -> Option<u64> {
            self.meter.power().value().map(|power| power.milliwatts() / 1000)
        }

        fn joules(&self) -> Option<u128> {
            self.meter.energy().value().map(|energy| energy.microjoules() / 1_000_000)
        }

        fn reason(&self) -> String {
            self.meter.power().to_string()
        }
    }

    #[test]
    fn power_is_energy_over_time() {
        let mut bench = Bench::new(5_000_000);
        assert_eq!(bench.watts(), None, "one look is no power");
        bench.show(1000, 65_000_000);
        assert_eq!(bench.watts(), Some(60));
        bench.show(2000, 225_000_000);
        assert_eq!(bench.watts(), Some(80));
        assert_eq!(bench.joules(), Some(220));
        // A look in between changes neither.
        bench.show(1, 225_000_000);
        assert_eq!(bench.watts(), Some(80));
    }

    #[test]
    fn a_counter_wraps_at_its_own_range() {
        let mut bench = Bench::new(LARGEST - 20_000_000);
        bench.show(1000, 39_999_999);
        assert_eq!(bench.watts(), Some(60));
        assert_eq!(bench.joules(), Some(60));
    }

    #[test]
    fn what_could_have_wrapped_twice_is_unknown() {
        let mut bench = Bench::new(0);
        // 200 W for 1400 s are more than the range.
        bench.show(1_400_000, 60_000_000);
        assert_eq!(bench.watts(), None);
        assert!(bench.reason().contains("wrapped more than once"), "{}", bench.reason());
        assert_eq!(bench.joules(), None);
    }

    #[test]
    fn a_jump_is_no_power() {
        let mut bench = Bench::new(0);
        bench.show(1000, 60_000_000);
        bench.show(1000, 500_000_000);
        assert!(bench.reason().contains("jumped from 60000000"), "{}", bench.reason());
        assert_eq!(bench.joules(), None, "energy with a gap is no energy");
        // Afterwards it counts again.
        let mark = bench.meter.mark();
        bench.show(1000, 560_000_000);
        bench.show(1000, 620_000_000);
        assert_eq!(bench.watts(), Some(60));
        let energy = bench.meter.energy_since(mark);
        assert_eq!(energy.value().map(|energy| energy.microjoules()), Some(120_000_000));
        // A reset looks like a wrap, but for so many joules nobody had the time.
        bench.show(1000, 10);
        assert!(bench.reason().contains("went back"), "{}", bench.reason());
    }

    #[test]
    fn a_counter_that_stands_still_is_not_0_watts() {
        let mut bench = Bench::new(0);
        bench.show(1000, 60_000_000);
        bench.show(500, 60_000_000);
        assert_eq!(bench.watts(), Some(60), "it may be coarse");
        bench.show(600, 60_000_000);
        assert_eq!(bench.watts(), None);
        assert_eq!(bench.joules(), None);
        bench.show(1000, 60_000_000);
        assert!(bench.reason().contains("does not advance"), "{}", bench.reason());
        bench.show(1000, 120_000_000);
        bench.show(1000, 180_000_000);
        assert_eq!(bench.watts(), Some(60));
        assert_eq!(bench.joules(), None, "what was not counted stays unknown");
    }

    #[test]
    fn what_cannot_be_read_is_unknown_and_not_lost() {
        let mut bench = Bench::new(0);
        bench.show(1000, 60_000_000);
        bench.now += Duration::from_secs(1);
        let gone = ControlError::Gone { place: "zone".to_owned() };
        bench.meter.observe(bench.now, Err(gone));
        assert_eq!(bench.reason(), "unknown (zone is gone)");
        bench.show(1000, 180_000_000);
        bench.show(1000, 240_000_000);
        assert_eq!((bench.watts(), bench.joules()), (Some(60), Some(240)));
    }

    #[test]
    fn direct_power_is_integrated_as_an_estimate() {
        let mut meter = Meter::new("gpu", false, Watts::from_watts(300));
        let begin = Instant::now();
        let power = Watts::from_watts(200);
        meter.observe(begin, Ok(Measure::Power(power)));
        meter.observe(begin + Duration::from_secs(2), Ok(Measure::Power(power)));
        assert_eq!(meter.power().value(), Some(&power));
        assert_eq!(meter.energy().origin(), "estimated");
        assert_eq!(meter.energy().value(), Some(&Joules::from_joules(400)));
        meter.observe(begin + Duration::from_secs(3), Ok(Measure::Power(Watts::ZERO)));
        assert_eq!(meter.power().value(), None);
    }
}
