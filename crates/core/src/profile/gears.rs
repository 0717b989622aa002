//! Caps as gears: what a node draws under each cap, how much longer jobs take, and how sensitive applications are.
//!
//! Policies that know gears alone are told of measured caps in this form. The gear of a cap is the most that any
//! application's node draws under it, and the time of the application that minds it most. That one has a β of 1; the β
//! of another is the share of that slowdown which fits its own best over all caps, by least squares. Each
//! application counts as it runs on the most nodes and cores it was measured on.

use std::collections::BTreeSet;

use super::{Profile, Row};
use crate::units::Watts;

/// A cap as a gear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapGear {
    /// The cap of a socket.
    pub cap: Watts,
    /// The most that the sockets of a node draw under it.
    pub drawn: Watts,
    /// How many times as long the most sensitive application takes as under the highest cap.
    pub slowdown: f64,
}

/// What gears and sensitivities applications have.
#[derive(Clone, Debug, PartialEq)]
pub struct Gears {
    /// From the lowest cap to the highest.
    pub gears: Vec<CapGear>,
    /// The β of each application, by its name.
    pub betas: Vec<(String, f64)>,
    /// Applications that were not measured under several caps, or not under those of the others.
    pub left_out: Vec<String>,
}

/// Why there are no gears.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GearsError {
    /// Nobody was measured under several caps.
    #[error(
        "no application was measured under several caps on the same nodes and cores; measure at least two"
    )]
    OneCap,
    /// Caps make no difference.
    #[error("no cap makes any of these applications slower and draws less; measure lower caps")]
    NoEffect,
}

/// An application under each of its caps, ascending.
struct Course<'a> {
    name: &'a str,
    rows: Vec<Row>,
}

impl<'a> Course<'a> {
    /// On the most nodes and cores that it was run on.
    fn of(profile: &'a Profile) -> Self {
        let run = || profile.rows.iter().filter(|row| row.origin.was_run());
        let shape = |row: &Row| (row.configuration.nodes, row.configuration.cores);
        let most = run().map(shape).max();
        let rows = run().filter(|row| Some(shape(row)) == most).copied().collect();
        Course { name: &profile.application, rows }
    }

    fn caps(&self) -> BTreeSet<Watts> {
        self.rows.iter().map(|row| row.configuration.cap).collect()
    }

    /// How many times as long it takes under each of some caps as under the highest; no lower cap is faster.
    fn slowdowns(&self, caps: &BTreeSet<Watts>) -> Vec<f64> {
        let times: Vec<f64> = self.at(caps).map(|row| row.time.secs_f64()).collect();
        let best = times.last().copied().unwrap_or(1.0).max(1e-3);
        let mut slowest: f64 = 1.0;
        let mut slowdowns: Vec<f64> = Vec::with_capacity(times.len());
        for time in times.iter().rev() {
            slowest = slowest.max(time / best);
            slowdowns.push(slowest);
        }
        slowdowns.reverse();
        slowdowns
    }

    fn at<'s>(&'s self, caps: &'s BTreeSet<Watts>) -> impl Iterator<Item = &'s Row> {
        self.rows.iter().filter(|row| caps.contains(&row.configuration.cap))
    }
}

/// The gears of some applications.
pub fn gears(profiles: &[Profile]) -> Result<Gears, GearsError> {
    let courses: Vec<Course<'_>> = profiles.iter().map(Course::of).collect();
    let several: Vec<&Course<'_>> = courses.iter().filter(|course| course.rows.len() > 1).collect();
    // The caps that most applications have in common, by the one with most of them.
    let widest = several.iter().max_by_key(|course| course.rows.len()).ok_or(GearsError::OneCap)?;
    let caps = widest.caps();
    let (known, other): (Vec<&Course<'_>>, Vec<&Course<'_>>) =
        courses.iter().partition(|course| course.caps().is_superset(&caps));
    let slowdowns: Vec<Vec<f64>> = known.iter().map(|course| course.slowdowns(&caps)).collect();
    let most = |place: usize| slowdowns.iter().map(|each| each[place]).fold(1.0, f64::max);
    let drawn = |cap: &Watts| {
        let rows = known.iter().flat_map(|course| &course.rows);
        let rows = rows.filter(|row| row.configuration.cap == *cap);
        let of_node =
            |row: &Row| row.power.milliwatts().div_ceil(u64::from(row.configuration.nodes.max(1)));
        Watts::from_milliwatts(rows.map(of_node).max().unwrap_or(1))
    };
    let all: Vec<CapGear> = caps
        .iter()
        .enumerate()
        .map(|(place, cap)| CapGear { cap: *cap, drawn: drawn(cap), slowdown: most(place) })
        .collect();
    let gears = useful(&all);
    if gears.len() < 2 {
        return Err(GearsError::NoEffect);
    }
    let whole: Vec<f64> = (0..caps.len()).map(|place| most(place) - 1.0).collect();
    let squares: f64 = whole.iter().map(|added| added * added).sum();
    let beta = |slowdowns: &Vec<f64>| {
        let products = slowdowns.iter().zip(&whole).map(|(own, most)| (own - 1.0) * most);
        (products.sum::<f64>() / squares).clamp(0.0, 1.0)
    };
    let betas = known.iter().zip(&slowdowns);
    Ok(Gears {
        gears,
        betas: betas.map(|(course, own)| (course.name.to_owned(), beta(own))).collect(),
        left_out: other.iter().map(|course| course.name.to_owned()).collect(),
    })
}

/// Those that are slower than the next one and draw less, from the highest down.
fn useful(all: &[CapGear]) -> Vec<CapGear> {
    let mut useful: Vec<CapGear> = Vec::new();
    for gear in all.iter().rev() {
        let is_useful = useful
            .last()
            .is_none_or(|faster| gear.slowdown > faster.slowdown && gear.drawn < faster.drawn);
        if is_useful {
            useful.push(*gear);
        }
    }
    useful.reverse();
    useful
}

impl Gears {
    /// The mean and the variance of β over the applications.
    pub fn sensitivity(&self) -> (f64, f64) {
        let count = self.betas.len().max(1) as f64;
        let mean = self.betas.iter().map(|(_, beta)| beta).sum::<f64>() / count;
        let square = |(_, beta): &(String, f64)| (beta - mean).powi(2);
        (mean, self.betas.iter().map(square).sum::<f64>() / count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Configuration, Origin};
    use crate::units::Span;

    fn profile(name: &str, rows: &[(u32, u32, u32)]) -> Profile {
        let row = |(cap, seconds, watts): &(u32, u32, u32)| Row {
            configuration: Configuration { nodes: 2, cores: 4, cap: Watts::from_watts(*cap) },
            time: Span::from_secs(*seconds),
            power: Watts::from_watts(*watts),
            origin: Origin::Measured,
        };
        Profile { application: name.to_owned(), rows: rows.iter().map(row).collect() }
    }

    /// One takes twice as long at 50 W and the other 1.5 times: half as sensitive.
    #[test]
    fn the_most_sensitive_sets_the_gears() {
        let fast = profile("fast", &[(50, 200, 160), (80, 120, 240), (100, 100, 300)]);
        let slow = profile("slow", &[(50, 150, 180), (80, 110, 230), (100, 100, 280)]);
        let one = profile("one", &[(100, 100, 280)]);
        let gears = gears(&[fast, slow, one]).unwrap();
        let seen: Vec<(u64, u64, f64)> = gears
            .gears
            .iter()
            .map(|gear| (gear.cap.milliwatts(), gear.drawn.milliwatts(), gear.slowdown))
            .collect();
        assert_eq!(seen, [(50_000, 90_000, 2.0), (80_000, 120_000, 1.2), (100_000, 150_000, 1.0)]);
        let betas: Vec<f64> = gears.betas.iter().map(|(_, beta)| *beta).collect();
        assert_eq!((betas[0], (betas[1] * 1e6).round() / 1e6), (1.0, 0.5));
        assert_eq!(gears.left_out, ["one"]);
        let (mean, variance) = gears.sensitivity();
        assert!((mean - 0.75).abs() < 1e-9 && (variance - 0.0625).abs() < 1e-9);
    }

    #[test]
    fn without_a_difference_there_are_none() {
        assert_eq!(gears(&[profile("one", &[(100, 9, 9)])]), Err(GearsError::OneCap));
        let flat = profile("flat", &[(50, 100, 200), (100, 100, 200)]);
        assert_eq!(gears(&[flat]), Err(GearsError::NoEffect));
        // A lower cap that happened to be faster is noise, and no gear.
        let noisy = profile("noisy", &[(50, 150, 100), (80, 99, 150), (100, 100, 200)]);
        let caps: Vec<u64> =
            gears(&[noisy]).unwrap().gears.iter().map(|gear| gear.cap.milliwatts()).collect();
        assert_eq!(caps, [50_000, 100_000]);
    }
}
