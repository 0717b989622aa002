//! Lines of a log and the numbers on them, read in place.

use super::record::{FIELDS, LARGEST, Record};

/// A line that is not blank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// What follows a comment's mark.
    Comment(&'a [u8]),
    /// A record.
    Record(Record),
    /// What ought to be a record and is not.
    Malformed(Fault<'a>),
}

/// Why a line is not a record: the first field, counted from 0, that is not as it should be. It
/// borrows the text, so a line that is skipped costs no more than one that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault<'a> {
    pub(super) field: usize,
    pub(super) text: &'a [u8],
    pub(super) kind: FaultKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    NotANumber,
    OutOfRange,
    Missing,
    Extra,
}

/// The lines of a log that are not blank.
#[derive(Clone, Debug)]
pub(super) struct Lines<'a> {
    /// The number of the first line.
    first: usize,
    bytes: &'a [u8],
    /// From the start of the latest line on.
    latest: &'a [u8],
    /// What is still to be read.
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    /// The lines of a whole log.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Lines::from(1, bytes)
    }

    /// Lines of a log from the one with this number on.
    pub(super) fn from(first: usize, bytes: &'a [u8]) -> Self {
        let marked = bytes.strip_prefix(b"\xEF\xBB\xBF").filter(|_| first == 1);
        let rest = marked.unwrap_or(bytes);
        Lines { first, bytes, latest: rest, rest }
    }

    /// The number of the latest line, from 1. It is only wanted for a message, so it is counted
    /// when asked for and costs nothing while reading.
    pub(super) fn number(&self) -> usize {
        let before = self.bytes.len() - self.latest.len();
        self.first + memchr::memchr_iter(b'\n', &self.bytes[..before]).count()
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Line<'a>> {
        loop {
            let start = skip_blanks(self.rest);
            self.latest = start;
            match start {
                [] => return None,
                [b'\n', after @ ..] => self.rest = after,
                [b';' | b'#', comment @ ..] => {
                    let (comment, rest) = split_line(comment);
                    self.rest = rest;
                    return Some(Line::Comment(comment));
                }
                _ => {
                    // A record is read up to its last field without looking for the end of the
                    // line first: that is one pass over the bytes instead of two.
                    let mut rest = start;
                    let line = match parse(&mut rest) {
                        Ok(record) => Line::Record(record),
                        Err(fault) => Line::Malformed(fault),
                    };
                    self.rest = match rest {
                        [b'\n', after @ ..] => after,
                        rest => split_line(rest).1,
                    };
                    return Some(line);
                }
            }
        }
    }
}

/// Reads the 18 fields of a record and leaves `rest` at the end of the line or at the field that
/// is not right.
#[inline(always)]
fn parse<'a>(rest: &mut &'a [u8]) -> Result<Record, Fault<'a>> {
    let record = Record {
        number: field::<0>(rest)?,
        submit: field::<1>(rest)?,
        wait: field::<2>(rest)?,
        run_time: field::<3>(rest)?,
        allocated_processors: field::<4>(rest)?,
        average_cpu_time: field::<5>(rest)?,
        used_memory: field::<6>(rest)?,
        requested_processors: field::<7>(rest)?,
        requested_time: field::<8>(rest)?,
        requested_memory: field::<9>(rest)?,
        status: field::<10>(rest)?,
        user: field::<11>(rest)?,
        group: field::<12>(rest)?,
        application: field::<13>(rest)?,
        queue: field::<14>(rest)?,
        partition: field::<15>(rest)?,
        preceding_job: field::<16>(rest)?,
        think_time: field::<17>(rest)?,
    };
    *rest = skip_blanks(rest);
    match rest {
        [] | [b'\n', ..] => Ok(record),
        extra => Err(fault(FIELDS, extra, FaultKind::Extra)),
    }
}

/// Reads one field. The number of the field is a parameter of the function so that every field
/// has code of its own: a log's columns are each much the same all the way down, which is what
/// lets the processor guess its branches right.
#[inline(always)]
fn field<'a, const FIELD: usize>(rest: &mut &'a [u8]) -> Result<i64, Fault<'a>> {
    let text = skip_blanks(rest);
    let (number, after) = match plain_number(text) {
        Some(found) => found,
        None => any_number(text, LARGEST[FIELD]).map_err(|kind| fault(FIELD, text, kind))?,
    };
    *rest = after;
    Ok(number)
}

#[cold]
fn fault(field: usize, text: &[u8], kind: FaultKind) -> Fault<'_> {
    Fault { field, text: split_word(text).0, kind }
}

/// Repeats a byte eight times.
const fn eightfold(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Reads −1 or a number of at most eight digits: nearly every field of every log. The digits are
/// looked at together, since going one by one costs a mispredicted branch at the end of most
/// numbers. No field is too narrow for such a number. Anything else is left to [`any_number`].
#[inline(always)]
fn plain_number(text: &[u8]) -> Option<(i64, &[u8])> {
    // Eight digits and what ends them.
    let ahead: &[u8; 9] = text.first_chunk()?;
    if ahead[0] == b'-' {
        return (ahead[1] == b'1' && ahead[2] <= b' ').then_some((-1, &text[2..]));
    }
    let [word @ .., _] = *ahead;
    let word = u64::from_le_bytes(word);
    // The bit 0x10 is set in all digits and in nothing that ends a field, so the first byte
    // without it ends the number, or else is something that only `any_number` understands. Of the
    // bytes up to the blank, those that do not end a field are refused as the next one.
    let length = (!word & eightfold(0x10)).trailing_zeros() as usize / 8;
    if length == 0 || ahead[length] > b' ' {
        return None;
    }
    // Digits as values, the last in the highest byte, with zeros for the places before the first.
    let digits = (word ^ eightfold(b'0')) << (64 - 8 * length);
    let beyond_nine = ((digits & eightfold(0x7F)) + eightfold(0x80 - 10)) | digits;
    if beyond_nine & eightfold(0x80) != 0 {
        return None;
    }
    // Neighbours are joined: digits to pairs, pairs to fours, fours to the number.
    let pairs = digits.wrapping_mul(10 << 8 | 1) >> 8 & 0x00FF_00FF_00FF_00FF;
    let fours = pairs.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_FFFF_0000_FFFF;
    let number = fours.wrapping_mul(10_000 << 32 | 1) >> 32;
    Some((number as i64, &text[length..]))
}

/// A number of any length, up to `largest`, with or without a fraction, which is cut off.
#[inline(never)]
fn any_number(text: &[u8], largest: i64) -> Result<(i64, &[u8]), FaultKind> {
    let (word, rest) = split_word(text);
    if word.is_empty() {
        return Err(FaultKind::Missing);
    }
    let (negative, unsigned) = match word {
        [b'-', unsigned @ ..] => (true, unsigned),
        unsigned => (false, unsigned),
    };
    let point = unsigned.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match point {
        Some(point) => (&unsigned[..point], &unsigned[point + 1..]),
        None => (unsigned, &unsigned[unsigned.len()..]),
    };
    let digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        return Err(FaultKind::NotANumber);
    }
    // Counted downward, where an `i64` reaches one further.
    let mut value: i64 = 0;
    for byte in whole {
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_sub(i64::from(byte - b'0')))
            .ok_or(FaultKind::OutOfRange)?;
    }
    if !negative {
        value = value.checked_neg().ok_or(FaultKind::OutOfRange)?;
    }
    if value > largest { Err(FaultKind::OutOfRange) } else { Ok((value, rest)) }
}

/// The text up to the end of the line, and the lines after it.
fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'\n', text) {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &[]),
    }
}

/// The text up to the end of the field, and what follows.
fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&byte| ends_field(byte)).unwrap_or(text.len());
    text.split_at(end)
}

#[inline(always)]
fn skip_blanks(mut text: &[u8]) -> &[u8] {
    while let [byte, after @ ..] = text {
        if !is_blank(*byte) {
            break;
        }
        text = after;
        // The archive's logs have padded columns: what is left of the padding goes in one step,
        // for the same reason as in `plain_number`.
        if let Some(word) = text.first_chunk()
            && text[0] == b' '
        {
            let spaces = (u64::from_le_bytes(*word) ^ eightfold(b' ')).trailing_zeros() / 8;
            text = &text[spaces as usize..];
        }
    }
    text
}

/// A carriage return counts as a blank, which is all that CRLF takes.
#[inline(always)]
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

#[inline(always)]
fn ends_field(byte: u8) -> bool {
    is_blank(byte) || byte == b'\n'
}
