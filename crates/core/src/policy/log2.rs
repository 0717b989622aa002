//! Logarithms that are the same on all machines.

/// The binary logarithm of a number of at least one, rounded down to 2⁻¹⁶. Integers alone: it is the same
/// on all machines.
pub(super) fn log2(number: u64) -> i64 {
    let number = number.max(1);
    let whole = number.ilog2();
    // The number as 1.f, with 31 bits after the point; its square doubles the logarithm.
    let mut rest = (u128::from(number) << 31 >> whole) as u64;
    let mut log = i64::from(whole);
    for _ in 0..16 {
        rest = ((u128::from(rest) * u128::from(rest)) >> 31) as u64;
        log <<= 1;
        if rest >= 1 << 32 {
            rest >>= 1;
            log |= 1;
        }
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_the_library() {
        for number in (1..5000).chain([1 << 20, (1 << 40) + 12345, u64::MAX]) {
            let exact = (number as f64).log2() * 65536.0;
            let ours = log2(number) as f64;
            assert!((exact - ours).abs() < 2.0, "{number}: {ours} instead of {exact}");
        }
    }
}
