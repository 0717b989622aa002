//! A decimal number as it is written, `1234.5678` or `1.2e3`, and what it is in whole numbers of some
//! thousandths. It does not go through a float: what fits is exact, and what does not is rounded once.

/// A number of zero or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<'a> {
    /// The digits before and after the point.
    parts: [&'a str; 2],
    /// By how many places the point is farther to the right than it is written.
    exponent: i32,
}

impl<'a> Number<'a> {
    /// Reads digits with at most one point, and an exponent if there is need.
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, read_exponent(exponent)?),
            None => (text, 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = !(whole.is_empty() && fraction.is_empty());
        let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let is_good = is_number && are_digits(whole) && are_digits(fraction);
        is_good.then_some(Number { parts: [whole, fraction], exponent })
    }

    /// All digits, without the point.
    fn digits(&self) -> impl Iterator<Item = u64> {
        self.parts.into_iter().flat_map(str::bytes).map(|byte| u64::from(byte - b'0'))
    }

    /// How many digits stand before the point once it is moved to the right by this many places; what
    /// is below zero are zeros after the point.
    fn digits_before(&self, places: u32) -> i64 {
        self.parts[0].len() as i64 + i64::from(self.exponent) + i64::from(places)
    }

    /// Whether it is nothing.
    pub(crate) fn is_zero(&self) -> bool {
        self.digits().all(|digit| digit == 0)
    }

    /// Whether nothing but zeros stands after the point.
    pub(crate) fn is_whole(&self) -> bool {
        self.rest(0).all(|digit| digit == 0)
    }

    /// The number times 10 to the power of `places`, rounded down; `None` if it is too large.
    fn down(&self, places: u32) -> Option<u64> {
        let before = self.digits_before(places);
        let mut value: u64 = 0;
        let mut taken: i64 = 0;
        for digit in self.digits().take(usize::try_from(before).unwrap_or(0)) {
            value = value.checked_mul(10)?.checked_add(digit)?;
            taken += 1;
        }
        // Zeros that are not written. Nothing but zero can have many.
        while taken < before && value > 0 {
            value = value.checked_mul(10)?;
            taken += 1;
        }
        Some(value)
    }

    /// The digits that rounding down leaves out, from the first that is written.
    fn rest(&self, places: u32) -> impl Iterator<Item = u64> {
        self.digits().skip(usize::try_from(self.digits_before(places)).unwrap_or(0))
    }

    /// As [`down`](Self::down), but rounded up.
    pub(crate) fn up(&self, places: u32) -> Option<u64> {
        let is_exact = self.rest(places).all(|digit| digit == 0);
        self.down(places)?.checked_add(u64::from(!is_exact))
    }

    /// As [`down`](Self::down), but rounded to the nearest, a half up.
    pub(crate) fn nearest(&self, places: u32) -> Option<u64> {
        let first = match self.digits_before(places) {
            // There are zeros before it.
            before if before < 0 => 0,
            _ => self.rest(places).next().unwrap_or(0),
        };
        self.down(places)?.checked_add(u64::from(first >= 5))
    }
}

fn read_exponent(text: &str) -> Option<i32> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // One that is farther away is as large or as small as any.
    let size: i32 = digits.parse().unwrap_or(i32::MAX);
    Some(if is_negative { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_out_by_hand() {
        let thousandths = |text: &str| {
            let number = Number::read(text).unwrap();
            (number.down(3), number.nearest(3), number.up(3))
        };
        let same = |value| (Some(value), Some(value), Some(value));
        assert_eq!(thousandths("415.3"), same(415_300));
        assert_eq!(thousandths("1e3"), same(1_000_000));
        assert_eq!(thousandths("1.5E+1"), same(15_000));
        assert_eq!(thousandths("2500e-3"), same(2500));
        assert_eq!(thousandths(".5"), same(500));
        assert_eq!(thousandths("5."), same(5000));
        assert_eq!(thousandths("1.2344"), (Some(1234), Some(1234), Some(1235)));
        assert_eq!(thousandths("1.2345"), (Some(1234), Some(1235), Some(1235)));
        assert_eq!(thousandths("9e-5"), (Some(0), Some(0), Some(1)));
        assert_eq!(thousandths("9e-4"), (Some(0), Some(1), Some(1)));
        assert_eq!(thousandths("0e2147483647"), same(0));
        assert_eq!(thousandths("1e-99999999999"), (Some(0), Some(0), Some(1)));
        assert_eq!(thousandths("1e99999999999"), (None, None, None));
        assert_eq!(thousandths("18446744073709551.615"), same(u64::MAX));
        assert_eq!(thousandths("18446744073709551.6151"), (Some(u64::MAX), Some(u64::MAX), None));
        for wrong in
            ["", ".", "e3", "1e", "1e+", "1e1.5", "1e-+5", "+1", "1,5", "0x1", "inf", "1 0"]
        {
            assert_eq!(Number::read(wrong), None, "{wrong}");
        }
        assert!(Number::read("1.50e1").unwrap().is_whole());
        assert!(!Number::read("1.50").unwrap().is_whole());
    }

    proptest! {
        /// Against a fraction of 128 bits.
        #[test]
        fn rounding_is_that_of_fractions(digits in 0..1_000_000_000u64, exponent in -12..6i32) {
            let text = format!("{digits}e{exponent}");
            let number = Number::read(&text).unwrap();
            let (above, below) = if exponent < 0 { (0, -exponent) } else { (exponent, 0) };
            let value = u128::from(digits) * 1000 * 10u128.pow(above as u32);
            let unit = 10u128.pow(below as u32);
            let expect = |value: u128| u64::try_from(value).ok();
            prop_assert_eq!(number.down(3), expect(value / unit));
            prop_assert_eq!(number.up(3), expect(value.div_ceil(unit)));
            prop_assert_eq!(number.nearest(3), expect((value + unit / 2) / unit));
            prop_assert_eq!(number.is_whole(), (value / 1000).is_multiple_of(unit));
        }
    }
}
