//! What options gain at given prices: the innermost loops, written so that a compiler can do
//! several options at once.

/// What each option gains: its value less the price of what it takes.
#[inline]
pub(super) fn gains(
    value: &[f64],
    nodes: &[f64],
    power: &[f64],
    prices: [f64; 2],
    out: &mut Vec<f64>,
) {
    out.clear();
    let options = value.iter().zip(nodes).zip(power);
    out.extend(
        options.map(|((value, nodes), power)| value - prices[0] * nodes - prices[1] * power),
    );
}

/// The place of the largest gain, the first of several, and the gain; of none, minus infinity.
#[inline]
pub(super) fn largest(gains: &[f64]) -> (usize, f64) {
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let mut lanes = [f64::NEG_INFINITY; 4];
    let chunks = gains.chunks_exact(4);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, gain) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, *gain);
        }
    }
    let most = lanes.iter().chain(rest).copied().fold(f64::NEG_INFINITY, larger);
    (gains.iter().position(|gain| *gain == most).unwrap_or(0), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_largest() {
        assert_eq!(largest(&[1.0, 3.0, 2.0, 0.0, 3.0, -1.0]), (1, 3.0));
        assert_eq!(largest(&[f64::NEG_INFINITY]), (0, f64::NEG_INFINITY));
        assert_eq!(largest(&[0.0, 0.0, 0.0, 0.0, 0.0, 7.0]), (5, 7.0));
        let mut out = Vec::new();
        gains(&[10.0, 8.0], &[2.0, 1.0], &[5.0, 1.0], [0.5, 0.25], &mut out);
        assert_eq!(out, [7.75, 7.25]);
    }
}
