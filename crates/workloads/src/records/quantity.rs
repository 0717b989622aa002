//! Numbers, lengths of time and lists as batch systems write them, read from bytes.

/// A whole number. Nothing if that is not what stands there, or if it is larger than any count.
pub(super) fn whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    text.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| number * 10 + u64::from(digit))
    })
}

/// A whole number of at most 32 bits that is above zero: zero stands for 'not known' in records.
pub(super) fn count(text: &[u8]) -> Option<u32> {
    let number = whole(text).and_then(|number| u32::try_from(number).ok());
    number.filter(|number| *number > 0)
}

/// A number that may have decimals and end in a prefix of a thousand, a million, …: `1.2M`. What is left of a
/// unit after the decimals is cut off.
pub(super) fn scaled(text: &[u8]) -> Option<u64> {
    let (digits, factor) = match text.split_last()? {
        (b'K' | b'k', digits) => (digits, 1_000u64),
        (b'M', digits) => (digits, 1_000_000),
        (b'G', digits) => (digits, 1_000_000_000),
        (b'T', digits) => (digits, 1_000_000_000_000),
        (b'P', digits) => (digits, 1_000_000_000_000_000),
        _ => (text, 1),
    };
    let point = memchr::memchr(b'.', digits).unwrap_or(digits.len());
    let mut number = whole(&digits[..point])?.checked_mul(factor)?;
    let mut place = factor;
    for byte in digits.get(point + 1..).unwrap_or_default() {
        let digit = byte.wrapping_sub(b'0');
        if digit >= 10 {
            return None;
        }
        place /= 10;
        number = number.checked_add(u64::from(digit) * place)?;
    }
    Some(number)
}

/// Memory as Slurm writes it, in MiB, rounded down: `8000M`, `1.5G`, where a thousand is 1024. Without a unit it is in MiB.
pub(super) fn mebibytes(text: &[u8]) -> Option<u64> {
    let (digits, factor, divisor) = match text.split_last()? {
        (b'K', digits) => (digits, 1, 1024),
        (b'M', digits) => (digits, 1, 1),
        (b'G', digits) => (digits, 1024, 1),
        (b'T', digits) => (digits, 1024 * 1024, 1),
        (b'P', digits) => (digits, 1024 * 1024 * 1024, 1),
        _ => (text, 1, 1),
    };
    // In millionths, so that decimals count.
    let millionths = scaled(&[digits, b"M"].concat())?;
    let all = u128::from(millionths) * factor / (1_000_000 * divisor);
    u64::try_from(all).ok()
}

/// A length of time in seconds: `[days-][hours:]minutes:seconds[.fraction]`, or seconds alone. A fraction is cut
/// off.
pub(super) fn seconds(text: &[u8]) -> Option<u32> {
    let text = &text[..memchr::memchr(b'.', text).unwrap_or(text.len())];
    let (days, clock) = match memchr::memchr(b'-', text) {
        Some(dash) => (whole(&text[..dash])?, &text[dash + 1..]),
        None => (0, text),
    };
    let has_days = clock.len() != text.len();
    let mut parts = clock.split(|byte| *byte == b':');
    let (mut total, mut count) = (0u64, 0);
    for part in parts.by_ref() {
        total = total.checked_mul(60)?.checked_add(whole(part)?)?;
        count += 1;
    }
    // After days come hours first, and there may be nothing else.
    if has_days {
        total = (count..3).try_fold(total, |total, _| total.checked_mul(60))?;
    }
    let total = days.checked_mul(86_400)?.checked_add(total)?;
    if count > 3 { None } else { u32::try_from(total).ok() }
}

/// The value of a key in a list of `key=value`, separated by commas.
pub(super) fn among<'a>(list: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut rest = list;
    while !rest.is_empty() {
        let end = memchr::memchr(b',', rest).unwrap_or(rest.len());
        if let Some(value) = rest[..end].strip_prefix(key).and_then(|rest| rest.strip_prefix(b"="))
        {
            return Some(value);
        }
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_prefixes() {
        let read = |text: &str| scaled(text.as_bytes());
        assert_eq!(read("123"), Some(123));
        assert_eq!(read("1.2M"), Some(1_200_000));
        assert_eq!(read("0.57K"), Some(570));
        assert_eq!(read("2.4G"), Some(2_400_000_000));
        assert_eq!(read("7.9"), Some(7));
        for wrong in ["", "K", "M1", "-3", "1.2.3M", "1,2M", "99999999999999999999", "9999P9"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(read("9223372036854775807P"), None);
        assert_eq!((count(b"0"), count(b"4294967296"), count(b"7")), (None, None, Some(7)));
    }

    #[test]
    fn memory_in_mebibytes() {
        let read = |text: &str| mebibytes(text.as_bytes());
        assert_eq!([read("8000M"), read("8G"), read("1.5G")], [Some(8000), Some(8192), Some(1536)]);
        assert_eq!([read("2T"), read("2048K"), read("7")], [Some(2 << 20), Some(2), Some(7)]);
        assert_eq!([read(""), read("M"), read("-1G"), read("99999999999999999P")], [None; 4]);
    }

    #[test]
    fn lengths_of_time() {
        let read = |text: &str| seconds(text.as_bytes());
        assert_eq!(read("1-00:00:00"), Some(86_400));
        assert_eq!(read("2-03:04:05"), Some(2 * 86_400 + 3 * 3600 + 4 * 60 + 5));
        assert_eq!(read("1-02"), Some(86_400 + 7200));
        assert_eq!(read("1-02:30"), Some(86_400 + 9000));
        assert_eq!(read("10:00"), Some(600));
        assert_eq!(read("00:00:07.250"), Some(7));
        assert_eq!(read("90"), Some(90));
        for wrong in ["", "UNLIMITED", "Partition_Limit", "1:2:3:4", "-5", "1-", "49711-00:00:00"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn values_among_others() {
        let list = b"billing=4,cpu=48,energy=1200,gres/gpu=2,mem=8G,node=2";
        assert_eq!(among(list, b"cpu"), Some(b"48".as_slice()));
        assert_eq!(among(list, b"node"), Some(b"2".as_slice()));
        assert_eq!(among(list, b"gpu"), None);
        assert_eq!(among(b"", b"cpu"), None);
    }
}
