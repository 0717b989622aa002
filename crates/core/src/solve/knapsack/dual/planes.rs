//! The best prices for few options, by planes below D.
//!
//! D is convex: its value and slope at any prices make a plane that is nowhere above it. The highest of the planes known
//! is lowest at some prices; D is worked out there, which gives the next plane, until D is as low as the planes say that it
//! can be. With two prices that takes a handful of planes, and the last prices are exactly the best ones. Each plane
//! asks all options, so this is for programs in which there are few.

use super::super::instance::Instance;
use super::super::polygon::Polygon;
use super::{Fitting, Found};

/// Programs with more options cost less where options are dropped on the way.
const MOST_OPTIONS: usize = 600;
/// How near to the lowest place D is near enough, relatively: the planes meet there but for rounding.
const NEAR_ENOUGH: f64 = 1e-9;
/// More planes than this are the sign of numbers that rounding spoils.
const MOST_PLANES: usize = 60;
/// A box that holds the best prices grows by so much until it does.
const GROWTH: f64 = 16.0;
/// Beyond this growth prices come from required entries that barely fit. Any prices will do.
const MOST_GROWTH: f64 = 1e6;

/// Planes below D; kept so that memory is asked for once.
pub(in super::super) struct Planes {
    /// Options at most.
    pub(in super::super) most_options: usize,
    all: Vec<Plane>,
    polygon: Polygon,
}

impl Default for Planes {
    fn default() -> Self {
        Planes { most_options: MOST_OPTIONS, all: Vec::new(), polygon: Polygon::default() }
    }
}

/// A plane: its height where nothing costs anything, and its slope.
#[derive(Clone, Copy)]
struct Plane {
    height: f64,
    slope: [f64; 2],
}

impl Plane {
    fn at(&self, prices: [f64; 2]) -> f64 {
        self.height + self.slope[0] * prices[0] + self.slope[1] * prices[1]
    }
}

impl Planes {
    /// The best prices; nothing if there are too many options, or rounding spoils them.
    pub(super) fn lowest(
        &mut self,
        instance: &Instance,
        mut warm: Option<[f64; 2]>,
    ) -> Option<Found> {
        let options = instance.columns.value.len();
        if options > self.most_options {
            return None;
        }
        let capacity = instance.capacity().map(|amount| amount.max(1.0));
        let worth = super::most_worth(instance, instance.entries());
        let mut found = Found { prices: [0.0; 2], bound: f64::INFINITY, fitting: None, looks: 0 };
        let (mut growth, mut next) = (1.0, [0.0; 2]);
        // The lowest place lies on a plane that was made where the others are lowest. Before there are such ones, it may
        // lie on any.
        let mut first = 0;
        self.all.clear();
        while self.all.len() < MOST_PLANES {
            let plane = tangent(instance, next);
            found.looks += options as u64;
            found.note(next, plane.at(next), plane.slope);
            self.all.push(plane);
            if next == [0.0; 2] && plane.slope[0] >= 0.0 && plane.slope[1] >= 0.0 {
                return Some(found);
            }
            if let Some(prices) = warm.take() {
                next = prices;
                continue;
            }
            loop {
                let high = capacity.map(|amount| growth * worth / amount);
                let (prices, least) = self.bottom(first, high)?;
                let is_near = found.bound - least <= NEAR_ENOUGH * found.bound.abs();
                let is_inside = |at: [f64; 2]| at[0] < high[0] && at[1] < high[1];
                if is_near && (growth > MOST_GROWTH || is_inside(prices)) {
                    return Some(found);
                }
                if !is_near {
                    (next, first) = (prices, self.all.len());
                    break;
                }
                (growth, first) = (growth * GROWTH, 0);
            }
        }
        None
    }

    /// Where the highest of the planes is lowest, and how low, for prices up to these; known to be on one of the planes
    /// from the first one on.
    fn bottom(&mut self, first: usize, high: [f64; 2]) -> Option<([f64; 2], f64)> {
        let mut bottom: Option<([f64; 2], f64)> = None;
        for own in &self.all[first..] {
            // Where this plane is the highest one.
            self.polygon.set_box([0.0; 2], high);
            for other in &self.all {
                let slope = [0, 1].map(|i| other.slope[i] - own.slope[i]);
                self.polygon.cut(slope, [0.0; 2], own.height - other.height);
            }
            for &corner in self.polygon.corners() {
                let height = own.at(corner);
                if bottom.is_none_or(|(_, least)| height < least) {
                    bottom = Some((corner, height));
                }
            }
        }
        bottom
    }
}

impl Found {
    /// Takes in D and its slope at some prices.
    pub(super) fn note(&mut self, at: [f64; 2], bound: f64, slope: [f64; 2]) {
        if bound < self.bound {
            (self.bound, self.prices) = (bound, at);
        }
        self.fitting = Fitting::better(self.fitting, Fitting::of(at, bound, slope));
    }
}

/// The plane that touches D at these prices.
fn tangent(instance: &Instance, at: [f64; 2]) -> Plane {
    let columns = &instance.columns;
    let (mut height, mut slope) = (0.0, instance.capacity());
    for entry in 0..instance.entries() {
        let row = instance.row(entry);
        let (value, nodes) = (&columns.value[row.clone()], &columns.nodes[row.clone()]);
        let best = row.start + super::live::best_of(value, nodes, &columns.power[row], at);
        height += columns.value[best];
        slope = [slope[0] - columns.nodes[best], slope[1] - columns.power[best]];
    }
    Plane { height, slope }
}
