//! PTune: which of the processors on offer a job runs on, and which cap each of them gets, so that
//! the job is fastest within its power (Gholkar, Mueller and Rountree: Power tuning for HPC jobs
//! under manufacturing variations).
//!
//! A job is as fast as its processors together. Those that do most for each watt are taken first
//! (in the paper those that draw least without a cap, which is the same where all are equally fast);
//! how many is what is to be found, since on few processors each can run fast, and on many
//! each has to be held low. The paper moves small portions of power from the processor that loses
//! least to the one that gains most. Along concave hulls that ends in one division, and `filling`
//! goes there directly: the steepest stretches of all hulls are fed first. For one processor more,
//! what was fed last gives way, and nothing that gave way ever comes back; so all numbers of
//! processors are tried in the time of one sort.
//!
//! In such a division every processor but one stands at a corner of its hull, where curve and hull
//! are the same. So the result is the best there is for concave curves, to less than one
//! instruction per second, and for others it falls short by no more than what one processor's curve
//! lies below its hull; [`Tuning::bound`] says how much that may be. What is returned is never
//! slower than the same power in equal parts.
//!
//! [`Tuner::choose`] picks among more processors than the job may have, with a bound that holds for
//! any choice of them. [`plain`] is the greedy of the paper, for comparison.

use crate::units::Watts;
use crate::variation::{Curve, Ips};

mod choice;
pub(crate) mod crew;
mod even;
mod filling;
pub mod plain;
#[cfg(test)]
mod tests;

use choice::Market;
pub use even::Even;
use filling::{Division, Filling};

/// A processor that the job gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Which, by its place among those on offer.
    pub candidate: usize,
    /// The cap of the processor.
    pub cap: Watts,
}

/// How a job's power is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning<'t> {
    /// The processors it gets, from the most efficient on.
    pub grants: &'t [Grant],
    /// How fast it is on them.
    pub ips: Ips,
    /// No division among the most efficient processors, however many, makes it faster than this;
    /// where the set was given, none among those.
    pub bound: Ips,
    /// The same power in equal parts, on as many processors as it feeds; none where processors of a
    /// given set need more than equal parts.
    pub uniform: Option<Even>,
    /// Whether the division is that in equal parts, because no better one was found.
    pub is_uniform: bool,
}

/// Processors that were picked for a job, and how its power is divided among them.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// The processors that were on offer, by their place among the candidates, from the most efficient
    /// on.
    pub offered: Vec<usize>,
    /// Those it gets, in the same order; each by its place among the candidates.
    pub grants: Vec<Grant>,
    /// How fast it is on them.
    pub ips: Ips,
    /// No choice among the candidates, of as many as were asked for or fewer, with any caps, makes it
    /// faster than this.
    pub bound: Ips,
    /// The same power in equal parts, on as many of the offered processors as it feeds.
    pub uniform: Option<Even>,
    /// Whether the division is that in equal parts, because no better one was found.
    pub is_uniform: bool,
}

/// Why power cannot be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TuneError {
    /// There is no processor.
    #[error("there are no processors to choose from")]
    Nobody,
    /// It does not feed anybody, or not everybody it has to.
    #[error("{budget} is too little; {} at least {needed}", who_needs(*processors))]
    TooLittle {
        /// The power there is.
        budget: Watts,
        /// The processors that must get power: one, or all of a given set.
        processors: usize,
        /// What this needs.
        needed: Watts,
    },
}

fn who_needs(processors: usize) -> String {
    match processors {
        1 => "a processor needs".to_owned(),
        all => format!("all {all} processors together need"),
    }
}

impl Tuning<'_> {
    /// What the processors may draw together.
    pub fn power(&self) -> Watts {
        self.grants.iter().map(|grant| grant.cap).sum()
    }
}

/// How the number of processors is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Free,
    Given,
}

/// Divides power. It keeps its memory from one call to the next: a tuner that is kept allocates
/// nothing once it has seen as many processors as it will see.
#[derive(Debug, Default)]
pub struct Tuner {
    /// The places of the candidates in the order of their efficiency.
    order: Vec<u32>,
    filling: Filling,
    grants: Vec<Grant>,
}

impl Tuner {
    /// A tuner.
    pub fn new() -> Self {
        Tuner::default()
    }

    /// As many of the candidates as make the job fastest, the most efficient ones first; the fewest
    /// of them where several numbers do.
    pub fn tune(&mut self, candidates: &[&Curve], budget: Watts) -> Result<Tuning<'_>, TuneError> {
        self.sort(candidates)?;
        let order = &self.order;
        let processor = |place: usize| candidates[order[place] as usize];
        let most = self.filling.begin(budget, (0..order.len()).map(processor));
        let mut best: Option<(Division, usize)> = None;
        let mut bound = Ips::ZERO;
        for place in 0..most {
            self.filling.add();
            let division = self.filling.settle(processor);
            bound = bound.max(division.bound);
            if best.is_none_or(|(best, _)| division.ips > best.ips) {
                best = Some((division, place + 1));
            }
        }
        match best {
            Some(best) => Ok(self.conclude(candidates, budget, Choice::Free, best, bound)),
            None => {
                let needed = candidates[self.order[0] as usize].least();
                Err(TuneError::TooLittle { budget, processors: 1, needed })
            }
        }
    }

    /// The fastest that is found on at most so many of the candidates: of those that are worth most at
    /// the price of power at which they just fit into it, and of the most efficient ones. Where two
    /// are equally fast, the one with fewer processors.
    pub fn choose(
        &mut self,
        candidates: &[&Curve],
        count: usize,
        budget: Watts,
    ) -> Result<Chosen, TuneError> {
        let least = candidates.iter().map(|curve| curve.least()).min().ok_or(TuneError::Nobody)?;
        let runs = |place: &usize| candidates[*place].least() <= budget;
        let mut by_efficiency: Vec<usize> = (0..candidates.len()).filter(runs).collect();
        by_efficiency.sort_by(|a, b| candidates[*a].by_efficiency(candidates[*b]));
        let curves: Vec<&Curve> = by_efficiency.iter().map(|place| candidates[*place]).collect();
        let market = Market::new(&curves, count, budget);
        let (bound, [low, high]) = market.clear();
        let most_efficient = (0..curves.len()).collect();
        let mut best: Option<Chosen> = None;
        for mut ranks in [most_efficient, market.order(low), market.order(high)] {
            ranks.truncate(count);
            ranks.sort_unstable();
            let offered: Vec<&Curve> = ranks.iter().map(|rank| curves[*rank]).collect();
            let Ok(tuning) = self.tune(&offered, budget) else { continue };
            let is_better =
                |best: &Chosen| (tuning.ips, best.grants.len()) > (best.ips, tuning.grants.len());
            if best.as_ref().is_none_or(is_better) {
                let place = |rank: &usize| by_efficiency[*rank];
                let grant = |grant: &Grant| Grant {
                    candidate: place(&ranks[grant.candidate]),
                    cap: grant.cap,
                };
                best = Some(Chosen {
                    offered: ranks.iter().map(place).collect(),
                    grants: tuning.grants.iter().map(grant).collect(),
                    ips: tuning.ips,
                    bound: Ips::from_ips(bound),
                    uniform: tuning.uniform,
                    is_uniform: tuning.is_uniform,
                });
            }
        }
        best.ok_or(TuneError::TooLittle { budget, processors: 1, needed: least })
    }

    /// The same processors with another budget: all of them run, and each gets a new cap.
    pub fn retune(
        &mut self,
        processors: &[&Curve],
        budget: Watts,
    ) -> Result<Tuning<'_>, TuneError> {
        self.sort(processors)?;
        let order = &self.order;
        let processor = |place: usize| processors[order[place] as usize];
        let all = processors.len();
        if self.filling.begin(budget, (0..all).map(processor)) < all {
            let needed = processors.iter().map(|curve| curve.least()).sum();
            return Err(TuneError::TooLittle { budget, processors: all, needed });
        }
        (0..all).for_each(|_| self.filling.add());
        let division = self.filling.settle(processor);
        let all = (division, all);
        Ok(self.conclude(processors, budget, Choice::Given, all, division.bound))
    }

    fn sort(&mut self, candidates: &[&Curve]) -> Result<(), TuneError> {
        self.order.clear();
        self.order.extend((0..).take(candidates.len()));
        self.order.sort_unstable_by(|a, b| {
            let [first, second] = [a, b].map(|place| candidates[*place as usize]);
            first.by_efficiency(second).then(a.cmp(b))
        });
        if self.order.is_empty() { Err(TuneError::Nobody) } else { Ok(()) }
    }

    /// The caps of a division, unless equal parts do better.
    fn conclude(
        &mut self,
        candidates: &[&Curve],
        budget: Watts,
        choice: Choice,
        (division, count): (Division, usize),
        bound: Ips,
    ) -> Tuning<'_> {
        let in_order = |place: usize| candidates[self.order[place] as usize];
        let even = Even::of(self.order.len(), budget, in_order);
        let even = even.filter(|even| choice == Choice::Free || even.processors == count);
        let better = even.filter(|even| even.ips > division.ips);
        let count = better.map_or(count, |even| even.processors);
        self.grants.clear();
        for place in 0..count {
            let curve = in_order(place);
            let cap = match better {
                Some(even) => even.cap.min(curve.most()),
                None => self.filling.cap(&division, place, curve),
            };
            self.grants.push(Grant { candidate: self.order[place] as usize, cap });
        }
        Tuning {
            grants: &self.grants,
            ips: better.map_or(division.ips, |even| even.ips),
            bound,
            uniform: even,
            is_uniform: better.is_some(),
        }
    }
}
