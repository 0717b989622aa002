//! Power poured along hulls, the steepest stretches first, while processors are added.
//!
//! Every processor holds its least power. What is left feeds stretches of hulls in one order over
//! all of them: by slope, then by the place of the processor. The stretches that are fed are the
//! first ones in that order, and the last of them may be fed in part. When a processor is added,
//! less is left and there are more stretches to feed; so the last one fed moves forward in the order
//! and never back. One sort and one walk through it therefore serve every number of processors.

use crate::units::Watts;
use crate::variation::{Curve, Ips};

/// A stretch of a hull, as far as it is needed here: what it takes, what it brings, and how much
/// that is for each milliwatt.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    slope: f64,
    milliwatts: u64,
    ips: u64,
}

/// Where a stretch stands in the order: by falling slope, then by its number. Numbers follow the
/// places of the processors, and along each hull.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    falling_slope: u64,
    number: u32,
}

impl Rank {
    fn new(slope: f64, number: u32) -> Self {
        // The bits of numbers above zero are in the order of the numbers.
        Rank { falling_slope: !slope.to_bits(), number }
    }
}

impl Stretch {
    fn rank(&self, number: u32) -> Rank {
        Rank::new(self.slope, number)
    }
}

/// Power divided among the processors that were added so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    /// How fast they are, on their curves.
    pub(super) ips: Ips,
    /// How fast they would be on their hulls, rounded up.
    pub(super) bound: Ips,
    fed: Fed,
}

/// Which stretches are fed.
#[derive(Clone, Copy, Debug)]
enum Fed {
    /// All steps: no processor needs a cap.
    All,
    /// None: everybody stands at the least.
    None,
    /// Those up to this one, and its processor then stands at this power.
    UpTo(Rank, Watts),
}

/// Processors in their order, and what they are fed.
#[derive(Debug, Default)]
pub(super) struct Filling {
    /// The stretches of all processors that could be added, by number.
    stretches: Vec<Stretch>,
    /// The number of each processor's first stretch, and the one after the last of all.
    firsts: Vec<u32>,
    /// The least power of each, and how fast it is on it.
    leasts: Vec<(u64, u64)>,
    order: Vec<Rank>,
    budget: u64,
    /// How many processors were added; the least power of all of them, and how fast they are on it.
    added: usize,
    least_power: u64,
    least_ips: u64,
    /// Those that are fed are among the first so many of the order.
    reach: usize,
    /// The power of all stretches that are fed, the last one whole, and the speed they bring.
    fed_power: u64,
    fed_ips: u64,
}

impl Filling {
    /// Forgets the processors there were, and takes these in their order, as many as can all run.
    /// Says how many.
    pub(super) fn begin<'c>(
        &mut self,
        budget: Watts,
        processors: impl Iterator<Item = &'c Curve>,
    ) -> usize {
        self.stretches.clear();
        self.firsts.clear();
        self.leasts.clear();
        self.order.clear();
        self.budget = budget.milliwatts();
        (self.added, self.least_power, self.least_ips) = (0, 0, 0);
        (self.fed_power, self.fed_ips) = (0, 0);
        self.firsts.push(0);
        let mut left = self.budget;
        for curve in processors {
            let least = curve.least().milliwatts();
            let Some(rest) = left.checked_sub(least) else { break };
            left = rest;
            self.leasts.push((least, curve.slowest().ips()));
            for segment in curve.hull() {
                let (milliwatts, ips) = (segment.power().milliwatts(), segment.gain().ips());
                let stretch = Stretch { slope: segment.slope, milliwatts, ips };
                self.order.push(stretch.rank(self.stretches.len() as u32));
                self.stretches.push(stretch);
            }
            self.firsts.push(self.stretches.len() as u32);
        }
        self.order.sort_unstable();
        self.reach = self.order.len();
        self.firsts.len() - 1
    }

    /// What is left for stretches.
    fn room(&self) -> u64 {
        self.budget - self.least_power
    }

    /// How many stretches of a processor come before this one in the order.
    fn before(&self, place: usize, rank: Rank) -> usize {
        let [first, next] = [self.firsts[place], self.firsts[place + 1]];
        let own = &self.stretches[first as usize..next as usize];
        let ranks = own.iter().zip(first..).map(|(stretch, number)| stretch.rank(number));
        ranks.take_while(|own| *own < rank).count()
    }

    /// Adds the next processor, one of those that can all run.
    pub(super) fn add(&mut self) {
        let place = self.added;
        let first = self.firsts[place] as usize;
        // What lies beyond reach gave way to processors before this one.
        let fed = match self.order.get(self.reach) {
            Some(beyond) => self.before(place, *beyond),
            None => self.firsts[place + 1] as usize - first,
        };
        for stretch in &self.stretches[first..first + fed] {
            self.fed_power += stretch.milliwatts;
            self.fed_ips += stretch.ips;
        }
        let (least_power, least_ips) = self.leasts[place];
        self.added += 1;
        self.least_power += least_power;
        self.least_ips += least_ips;
    }

    /// Takes power from the last stretches until no more is held than there is. `curve` gives the
    /// processor of a place.
    pub(super) fn settle<'c>(&mut self, curve: impl Fn(usize) -> &'c Curve) -> Division {
        let room = self.room();
        let here = self.firsts[self.added];
        let mut last = None;
        // While power is not short, stretches of processors to come may still be fed.
        while self.fed_power >= room && self.reach > 0 {
            let rank = self.order[self.reach - 1];
            if rank.number < here {
                let stretch = self.stretches[rank.number as usize];
                let without = self.fed_power - stretch.milliwatts;
                if without < room {
                    last = Some(rank);
                    break;
                }
                self.fed_power = without;
                self.fed_ips -= stretch.ips;
            }
            self.reach -= 1;
        }
        let whole = self.least_ips + self.fed_ips;
        let Some(last) = last else {
            let fed = if self.fed_power < room { Fed::All } else { Fed::None };
            return Division { ips: Ips::from_ips(whole), bound: Ips::from_ips(whole), fed };
        };
        let place = self.place(last);
        let curve = curve(place);
        let segment = &curve.hull()[(last.number - self.firsts[place]) as usize];
        let missing = self.fed_power - room;
        let cap = segment.to.power - Watts::from_milliwatts(missing);
        let (gain, power) = (segment.gain().ips(), segment.power().milliwatts());
        // A part of the gain, so it fits; rounded down, so that what stays is rounded up.
        let lost = u128::from(gain) * u128::from(missing) / u128::from(power);
        Division {
            ips: Ips::from_ips(whole - segment.to.ips.ips() + curve.at(cap).ips()),
            bound: Ips::from_ips(whole - lost as u64),
            fed: Fed::UpTo(last, cap),
        }
    }

    /// Whose stretch this is.
    fn place(&self, rank: Rank) -> usize {
        self.firsts.partition_point(|first| *first <= rank.number) - 1
    }

    /// The cap of a processor in a division.
    pub(super) fn cap(&self, division: &Division, place: usize, curve: &Curve) -> Watts {
        match division.fed {
            Fed::All => curve.most(),
            Fed::None => curve.least(),
            Fed::UpTo(last, cap) if self.place(last) == place => cap,
            Fed::UpTo(last, _) => match self.before(place, last) {
                0 => curve.least(),
                fed => curve.hull()[fed - 1].to.power,
            },
        }
    }
}
