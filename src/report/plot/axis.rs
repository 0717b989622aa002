//! A scale with round numbers on it.

/// A stretch of numbers, and the round ones to write beside it.
#[derive(Debug)]
pub(in crate::report) struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

/// Where an axis begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Ends {
    /// At the outermost values.
    Values,
    /// At the round numbers around them.
    Round,
}

/// Whether there is a place on an axis for a value.
pub(super) fn is_plottable(value: f64) -> bool {
    value.abs() < 1e15
}

impl Axis {
    /// An axis that covers these values with about `ticks` round numbers; none if there is no
    /// value to cover.
    pub(in crate::report) fn over(
        values: impl Iterator<Item = f64>,
        ticks: u32,
        ends: Ends,
    ) -> Option<Self> {
        let values = values.filter(|value| is_plottable(*value));
        let (low, high) = values.fold(None, |span: Option<(f64, f64)>, value| {
            let (low, high) = span.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        })?;
        // One value alone is put in the middle of something.
        let size = low.abs().max(high.abs());
        let (low, high) = match high - low > size * 1e-9 {
            true => (low, high),
            false => (low - (size * 0.1).max(1.0), high + (size * 0.1).max(1.0)),
        };
        let step = round_up((high - low) / f64::from(ticks.max(1)));
        Some(match ends {
            Ends::Values => Axis { low, high, step },
            Ends::Round => {
                let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
                Axis { low, high, step }
            }
        })
    }

    /// The round numbers on it, with how they are written.
    pub(in crate::report) fn ticks(&self) -> Vec<(f64, String)> {
        let mut decimals = 0;
        let mut unit = self.step;
        while unit < 0.999 {
            unit *= 10.0;
            decimals += 1;
        }
        let first = (self.low / self.step - 1e-6).ceil();
        let count = (self.high / self.step + 1e-6).floor() - first;
        let tick = |place: u32| (first + f64::from(place)) * self.step;
        // Adding zero makes a plain zero of a negative one.
        let written = |tick: f64| (tick, format!("{:.decimals$}", tick + 0.0));
        (0..=count.max(0.0) as u32).map(|place| written(tick(place))).collect()
    }

    /// Which of so many cells a value falls into.
    pub(super) fn cell(&self, value: f64, cells: usize) -> usize {
        let share = (value - self.low) / (self.high - self.low);
        let last = cells.saturating_sub(1);
        ((share * last as f64).round().max(0.0) as usize).min(last)
    }

    /// Whether a value is on it.
    pub(super) fn covers(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The next of 1, 2, 5, 10, 20, 50 … or 0.5, 0.2, 0.1 … that is no less.
fn round_up(number: f64) -> f64 {
    // By multiplication, not by logarithms: those differ in the last digit between machines.
    let mut ten = 1.0;
    while ten * 10.0 <= number {
        ten *= 10.0;
    }
    while ten > number {
        ten /= 10.0;
    }
    let found = [1.0, 2.0, 5.0].into_iter().map(|digit| digit * ten).find(|step| *step >= number);
    found.unwrap_or(10.0 * ten)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(values: &[f64], ticks: u32, ends: Ends) -> Vec<String> {
        let axis = Axis::over(values.iter().copied(), ticks, ends).unwrap();
        axis.ticks().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(written(&[51.0, 115.0], 5, Ends::Values), ["60", "80", "100"]);
        assert_eq!(written(&[51.0, 115.0], 5, Ends::Round), ["40", "60", "80", "100", "120"]);
        assert_eq!(written(&[-0.13, 0.2], 4, Ends::Round), ["-0.2", "-0.1", "0.0", "0.1", "0.2"]);
        assert_eq!(written(&[0.0, 1e6], 2, Ends::Round), ["0", "500000", "1000000"]);
        assert_eq!(written(&[7.0], 2, Ends::Values), ["6", "7", "8"]);
        assert_eq!(written(&[0.0, 0.03], 3, Ends::Values), ["0.00", "0.01", "0.02", "0.03"]);
    }

    #[test]
    fn every_value_has_its_cell() {
        let axis = Axis::over([10.0, 20.0].into_iter(), 2, Ends::Values).unwrap();
        assert_eq!([10.0, 14.9, 20.0, 99.0, -99.0].map(|v| axis.cell(v, 11)), [0, 5, 10, 10, 0]);
        assert!(Axis::over([f64::NAN, f64::INFINITY, 1e20].into_iter(), 2, Ends::Round).is_none());
        assert!(Axis::over([].into_iter(), 2, Ends::Round).is_none());
    }
}
