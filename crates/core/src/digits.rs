//! Text lines of numbers, written fast.
//!
//! A line is filled from its end, as the digits of a number come last digit first. Formatting
//! macros would take several times as long, and reports have a line a job.

/// Longer than any line written here.
const LENGTH: usize = 512;

/// A line that grows to the left.
#[derive(Debug)]
pub struct Line {
    bytes: [u8; LENGTH],
    start: usize,
}

impl Default for Line {
    fn default() -> Self {
        Line::new()
    }
}

impl Line {
    /// An empty line.
    pub fn new() -> Self {
        Line { bytes: [b' '; LENGTH], start: LENGTH }
    }

    /// Begins again with nothing.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.start = LENGTH;
    }

    /// The text as written.
    #[inline(always)]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Puts a byte in front.
    #[inline(always)]
    pub fn byte(&mut self, byte: u8) {
        self.start -= 1;
        self.bytes[self.start] = byte;
    }

    /// Puts a text in front.
    #[inline(always)]
    pub fn text(&mut self, text: &str) {
        let end = self.start;
        self.start -= text.len();
        self.bytes[self.start..end].copy_from_slice(text.as_bytes());
    }

    /// Puts an integer in front.
    #[inline(always)]
    pub fn integer(&mut self, value: i64) {
        if value == -1 {
            return self.text("-1");
        }
        self.unsigned(value.unsigned_abs());
        if value < 0 {
            self.byte(b'-');
        }
    }

    /// Puts a number in front.
    #[inline(always)]
    pub fn unsigned(&mut self, value: u64) {
        let mut rest = value;
        while rest >= 100_000_000 {
            self.put_eight(eight_digits(rest % 100_000_000));
            self.start -= 8;
            rest /= 100_000_000;
        }
        let digits = eight_digits(rest);
        self.put_eight(digits);
        // The first digit is the lowest byte; the last one is kept even if it is zero.
        let leading_zeros = (digits | 1 << 56).trailing_zeros() / 8;
        self.start -= 8 - leading_zeros as usize;
    }

    /// Puts a number of thousandths in front, as units with up to three decimals: milliseconds as
    /// seconds, milliwatts as watts.
    #[inline(always)]
    pub fn thousandths(&mut self, value: u64) {
        let (units, rest) = (value / 1000, value % 1000);
        if rest != 0 {
            let (hundreds, tens, ones) = (rest / 100, rest / 10 % 10, rest % 10);
            if ones != 0 {
                self.byte(b'0' + ones as u8);
            }
            if ones != 0 || tens != 0 {
                self.byte(b'0' + tens as u8);
            }
            self.byte(b'0' + hundreds as u8);
            self.byte(b'.');
        }
        self.unsigned(units);
    }

    /// Puts a number in front with exactly four decimals.
    #[inline(always)]
    pub fn four_decimals(&mut self, ten_thousandths: u64) {
        let (units, rest) = (ten_thousandths / 10_000, ten_thousandths % 10_000);
        self.put_eight(eight_digits(rest));
        self.start -= 4;
        self.byte(b'.');
        self.unsigned(units);
    }

    #[inline(always)]
    fn put_eight(&mut self, digits: u64) {
        let text = digits | u64::from_le_bytes([b'0'; 8]);
        self.bytes[self.start - 8..self.start].copy_from_slice(&text.to_le_bytes());
    }
}

/// The decimal digits of a number below 100 000 000, the first in the lowest byte. The number is
/// split in halves three times, all parts at once: going digit by digit costs a mispredicted
/// branch at the end of most numbers. In the parts, a division is a multiplication and a shift
/// that are exact for as many digits as there are.
#[inline(always)]
fn eight_digits(number: u64) -> u64 {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let pairs = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000F_000F_000F_000F;
    tens | (pairs - 10 * tens) << 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut Line)) -> String {
        let mut line = Line::new();
        write(&mut line);
        String::from_utf8(line.as_bytes().to_vec()).unwrap()
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_format_writes_them(
            value in prop_oneof![any::<i64>(), -20i64..200, 99_999_990i64..100_000_010],
            unsigned in any::<u64>(),
        ) {
            prop_assert_eq!(written(|line| line.integer(value)), value.to_string());
            prop_assert_eq!(written(|line| line.unsigned(unsigned)), unsigned.to_string());
        }

        #[test]
        fn decimals_are_exact(value in prop_oneof![any::<u64>(), 0u64..20_000]) {
            let text = format!("{}.{:03}", value / 1000, value % 1000);
            let text = text.trim_end_matches('0').trim_end_matches('.');
            prop_assert_eq!(written(|line| line.thousandths(value)), text);
            let text = format!("{}.{:04}", value / 10_000, value % 10_000);
            prop_assert_eq!(written(|line| line.four_decimals(value)), text);
        }
    }

    #[test]
    fn a_line_grows_to_the_left() {
        let text = written(|line| {
            line.byte(b'\n');
            line.text("end");
            line.byte(b',');
            line.unsigned(0);
        });
        assert_eq!(text, "0,end\n");
    }
}
