//! How fast a job could be at most, whichever processors it ran on.
//!
//! Let every processor do part of a run and rest for the other part: then its curve may be replaced
//! by the hull of curve and origin, and power is shared out best by feeding the steepest stretches
//! first. Nothing real does better. A job that needs the most efficient processors and no others
//! comes near it.

use crate::units::Watts;
use crate::variation::{Curve, Ips};

/// No choice among these processors, with any caps, is faster on so much power. Rounded up.
pub fn ceiling(candidates: &[&Curve], budget: Watts) -> Ips {
    // Power and speed of each stretch.
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    for curve in candidates {
        let corner = curve.most_efficient();
        stretches.push((corner.power.milliwatts(), corner.ips.ips()));
        // The most efficient point is a corner of the hull; what comes before it is below the line
        // from the origin.
        let beyond = curve.hull().iter().filter(|segment| segment.from.power >= corner.power);
        stretches
            .extend(beyond.map(|segment| (segment.power().milliwatts(), segment.gain().ips())));
    }
    let slope = |(power, gain): &(u64, u64)| *gain as f64 / *power as f64;
    stretches.sort_by(|a, b| slope(b).total_cmp(&slope(a)));
    let mut left = budget.milliwatts();
    let mut total = 0;
    for (power, gain) in stretches {
        if power > left {
            let part = u128::from(gain) * u128::from(left);
            // A part of the gain, so it fits.
            total += part.div_ceil(u128::from(power)) as u64;
            break;
        }
        left -= power;
        total += gain;
    }
    Ips::from_ips(total)
}
