//! A knapsack with choices and two resources: for each entry at most one of its options (exactly
//! one if it is required), nodes and watts within what there is, the total value as large as it
//! can be.
//!
//! [`solve`] finds the best choice and shows that it is, or comes as near as was asked for. It does
//! so in four steps, one file each: prices at which sharing regulates itself (`dual`), what it
//! costs to choose otherwise (`loss`), a first good choice (`incumbent`), and a search through all
//! that could be better: one by one where there is little to try (`branch`), by lists that are joined
//! otherwise (`proof`). Prices are floats, but what fits is decided in integers.
//!
//! ```
//! use busbar_core::solve::knapsack::{Instance, Limits, Need, Offer, solve};
//! use busbar_core::units::Watts;
//!
//! let offer = |nodes, watts, value| Offer { nodes, power: Watts::from_watts(watts), value };
//! let mut instance = Instance::new(10, Watts::from_watts(1000))?;
//! instance.add(Need::Required, &[offer(4, 300, 1.0), offer(4, 400, 1.3)])?;
//! instance.add(Need::Optional, &[offer(4, 350, 1.0), offer(8, 650, 1.8)])?;
//! instance.add(Need::Optional, &[offer(2, 250, 1.2)])?;
//! let solution = solve(&instance, Limits::default(), None)?;
//! // 400 W, 350 W and 250 W are all there is.
//! assert_eq!(solution.chosen(), [Some(1), Some(0), Some(0)]);
//! assert!(solution.optimal());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod branch;
mod classes;
mod combinations;
mod dual;
mod feasible;
mod fill;
mod gain;
mod groups;
mod incumbent;
mod instance;
mod join;
mod loss;
mod meter;
mod polygon;
mod proof;
mod runs;
mod solution;
#[cfg(test)]
mod tests;
mod traces;

use branch::Branch;
use dual::Dual;
use incumbent::Incumbent;
pub use instance::{Instance, InstanceError, Need, Offer};
use loss::Losses;
use meter::Meter;
use proof::Proof;
pub use solution::{NoChoice, Prices, Solution};

/// When to be content.
pub struct Limits<'a> {
    /// How far the choice may be from the best, as a share of its value. Zero asks for the best.
    pub gap: f64,
    /// Steps at most. They are counted the same everywhere, so that the answer is the same
    /// everywhere. The prices and a first choice are worked out in any case.
    pub effort: u64,
    /// Asked every few thousand steps whether to stop; for those who have a clock.
    pub stop: Option<&'a mut dyn FnMut() -> bool>,
}

impl Default for Limits<'_> {
    /// The best, and a few seconds at most.
    fn default() -> Self {
        Limits { gap: 0.0, effort: 1_000_000_000, stop: None }
    }
}

/// Finds the best choice. `warm` are the prices of a similar instance, to begin near them.
pub fn solve(
    instance: &Instance,
    limits: Limits<'_>,
    warm: Option<Prices>,
) -> Result<Solution, NoChoice> {
    Solver::default().solve(instance, limits, warm)
}

/// A solver that keeps its memory from one instance to the next.
#[derive(Default)]
pub struct Solver {
    dual: Dual,
    losses: Losses,
    incumbent: Incumbent,
    branch: Branch,
    proof: Proof,
}

/// What a search is for.
struct Search {
    gap: f64,
    /// A value with which the search may end at once.
    enough: f64,
    warm: Option<Prices>,
}

/// Differences below this share of the value are taken for rounding.
const TOLERANCE: f64 = 1e-12;
/// Sums that were added up in different orders differ by less than this share of them.
const ROUNDING: f64 = 1e-9;
/// About how many moves the search begins with.
const FIRST_MOVES: usize = 1200;

/// A first choice that falls short of the bound by more than this share is tried to be made better
/// in another way.
const POOR: f64 = 0.005;

impl Solver {
    /// Finds the best choice, as [`solve`] does.
    pub fn solve(
        &mut self,
        instance: &Instance,
        limits: Limits<'_>,
        warm: Option<Prices>,
    ) -> Result<Solution, NoChoice> {
        let mut meter = Meter::new(limits.effort, limits.stop);
        let search = Search { gap: limits.gap, enough: f64::INFINITY, warm };
        self.search(instance, &search, &mut meter)
    }

    fn search(
        &mut self,
        instance: &Instance,
        search: &Search,
        meter: &mut Meter<'_, '_>,
    ) -> Result<Solution, NoChoice> {
        let Solver { dual, losses, incumbent, branch, proof } = self;
        incumbent.choice = feasible::witness(instance, meter)?;
        if instance.entries() == 0 {
            return Ok(Solution::of(instance, &[], 0.0, Prices::default(), meter.spent()));
        }
        let found = dual.prices(instance, search.warm.map(Prices::per_milliwatt));
        meter.spend(found.looks);
        let mut value = Incumbent::value(instance, &incumbent.choice);
        let fitting = found.fitting.and_then(|fitting| losses.choice_at(instance, fitting.prices));
        if let Some(choice) = fitting {
            let worth = Incumbent::value(instance, &choice);
            if worth > value {
                (incumbent.choice, value) = (choice, worth);
            }
        }
        // What loses more than the best choice known falls short by is in none that is better.
        let most = found.bound - value + ROUNDING * found.bound.abs();
        meter.spend(losses.weigh(instance, found.prices, FIRST_MOVES, most));
        let bound = losses.bound;
        let tolerance = TOLERANCE * bound.abs();
        incumbent.shortfall = bound - value;

        let allowed = (search.gap * value).max(tolerance);
        let tried = branch.search(losses, incumbent, allowed, meter);
        let depth = match tried {
            Some(depth) => depth,
            None => {
                let mut lists = Lists { instance, losses, incumbent, proof, tolerance };
                lists.search(search, meter)
            }
        };
        if search.gap > 0.0 {
            meter.spend(incumbent.take_what_fits(instance, bound));
        }
        let bound = if incumbent.shortfall - tolerance <= depth { 0.0 } else { bound - depth };
        let prices = Prices::from_milliwatts(found.prices);
        Ok(Solution::of(instance, &incumbent.choice, bound, prices, meter.spent()))
    }
}

/// The search by lists that are joined.
struct Lists<'a> {
    instance: &'a Instance,
    losses: &'a mut Losses,
    incumbent: &'a mut Incumbent,
    proof: &'a mut Proof,
    /// Differences below this are taken for rounding.
    tolerance: f64,
}

impl Lists<'_> {
    /// Makes the incumbent better until it is good enough or the effort is spent. Returns what every other choice falls
    /// short by at least.
    fn search(&mut self, search: &Search, meter: &mut Meter<'_, '_>) -> f64 {
        let Lists { instance, losses, incumbent, proof, tolerance } = self;
        let (bound, tolerance) = (losses.bound, *tolerance);
        let is_enough = |depth: f64, incumbent: &Incumbent| {
            let shortfall = (incumbent.shortfall - depth).max(0.0);
            let value = bound - incumbent.shortfall;
            incumbent.shortfall - tolerance <= depth
                || shortfall <= search.gap * value
                || value >= search.enough
        };
        proof.begin(losses);
        meter.spend(incumbent.improve_greedily(instance, losses, proof.classes()));
        if incumbent.shortfall > POOR * bound.abs() {
            meter.spend(fill::fill(incumbent, instance, losses));
        }
        let (mut depth, mut moves) = (0.0, FIRST_MOVES);
        loop {
            let needs_more;
            (depth, needs_more) =
                proof.deepen(losses, incumbent, depth, tolerance, &is_enough, meter);
            if !needs_more || meter.is_spent() {
                return depth;
            }
            moves *= 4;
            meter.spend(losses.widen(instance, moves));
            proof.begin(losses);
        }
    }
}
