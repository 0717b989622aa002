//! Work, speed and power of jobs on processors that are not alike, in plain integers.

use busbar::variation::Curve;

use super::rule::Capped;

/// All of a job's work. What is left of it is counted in steps of 2⁻⁶² of the whole.
pub(super) const ALL: u128 = 1 << 62;

/// What is left after so many milliseconds at a speed at which all of it takes `whole`. What has
/// been done is rounded up.
pub(super) fn after(work: u128, elapsed: u64, whole: u64) -> u128 {
    match whole {
        0 => 0,
        whole => work.saturating_sub((u128::from(elapsed) * ALL).div_ceil(u128::from(whole))),
    }
}

/// How many milliseconds are left, rounded up.
pub(super) fn left(work: u128, whole: u64) -> u64 {
    (work * u128::from(whole)).div_ceil(ALL) as u64
}

/// How fast processors are together.
pub(super) fn ips(curves: &[Curve], caps: &Capped) -> u64 {
    caps.iter().map(|(node, cap)| speed(&curves[*node as usize], *cap)).sum()
}

/// The speed of a processor, along straight lines between knots, rounded down.
fn speed(curve: &Curve, cap: u64) -> u64 {
    let knots: Vec<(u64, u64)> =
        curve.knots().iter().map(|knot| (knot.power.milliwatts(), knot.ips.ips())).collect();
    let cap = cap.clamp(knots[0].0, knots[knots.len() - 1].0);
    let reached = knots.windows(2).find(|pair| cap <= pair[1].0);
    reached.map_or(knots[0].1, |pair| {
        let [(from, slow), (to, fast)] = [pair[0], pair[1]];
        let gain = u128::from(fast - slow) * u128::from(cap - from) / u128::from(to - from);
        slow + gain as u64
    })
}

/// What processors draw together: their caps, but none more than it does without one.
pub(super) fn drawn(curves: &[Curve], caps: &Capped) -> u64 {
    let drawn = |(node, cap): &(u32, u64)| {
        let curve = &curves[*node as usize];
        (*cap).clamp(curve.least().milliwatts(), curve.most().milliwatts())
    };
    caps.iter().map(drawn).sum()
}

/// How long work takes at a speed that takes so long on the nodes asked for, each as fast as the mean
/// of all processors without a cap; in milliseconds, rounded up.
pub(super) fn whole(millis: u64, nodes: u32, curves: &[Curve], ips: u64) -> u64 {
    let peaks: u128 = curves.iter().map(|curve| u128::from(curve.peak().ips())).sum();
    let work = u128::from(millis) * u128::from(nodes) * peaks;
    work.div_ceil(u128::from(ips) * curves.len() as u128) as u64
}
