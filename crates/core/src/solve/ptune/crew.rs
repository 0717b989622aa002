//! The same as a [`Tuner`](super::Tuner) does, for processors that are given by how many there are of each run
//! ([`Kin`]) and not one by one. All of a run stand at the same corner of their hull, but those of one run at most, in
//! which some come before others. So a division is a cap for each run and one place in between.
//!
//! The result is that of the tuner to the milliwatt, which is its oracle in the tests.

use crate::units::Watts;
use crate::variation::Curve;
use crate::variation::kin::{Kin, Step};

#[cfg(test)]
mod tests;

/// Processors of some runs, in the order of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Crew {
    members: Vec<OfRun>,
}

/// This many processors of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OfRun {
    /// The number of the run.
    pub run: u32,
    /// How many; at least one.
    pub count: u32,
}

/// The caps of a crew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Levels {
    /// By the runs of the crew.
    pub(crate) caps: Vec<Watts>,
    /// The run in which not all have that cap.
    pub split: Option<Split>,
}

/// A run in which the first ones were fed and the others not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// Which of the crew's runs.
    pub(crate) place: usize,
    /// So many of the first ones have a higher cap,
    pub(crate) first: u32,
    /// which is this one.
    pub(crate) high: Watts,
    /// The one after them has this cap, and all others what the run has.
    pub(crate) between: Watts,
}

/// Power divided among the first processors of a crew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Divided {
    /// Those that get some.
    pub(crate) crew: Crew,
    /// Their caps.
    pub(crate) levels: Levels,
}

/// The steps that get power.
#[derive(Clone, Copy, Debug)]
enum Fed {
    All,
    None,
    /// Those before this one of the list; and of this one the first processors up to this number, which then stands at
    /// that power.
    UpTo {
        step: usize,
        number: u32,
        cap: Watts,
    },
}

/// A step of a crew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Own {
    place: u32,
    corner: u32,
    milliwatts: u64,
    ips: u64,
}

impl Crew {
    /// So many of each run, in the order of the runs.
    pub(crate) fn new(members: Vec<OfRun>) -> Self {
        debug_assert!(members.windows(2).all(|pair| pair[0].run < pair[1].run));
        Crew { members }
    }

    /// How many of which runs.
    pub(crate) fn members(&self) -> &[OfRun] {
        &self.members
    }

    /// How many processors.
    pub(crate) fn count(&self) -> u32 {
        self.members.iter().map(|of_run| of_run.count).sum()
    }

    /// The first so many of them, or all.
    pub(crate) fn first(&self, count: u32) -> Self {
        let mut left = count;
        let members = self.members.iter().map_while(|of_run| {
            let count = of_run.count.min(left);
            left -= count;
            (count > 0).then_some(OfRun { count, ..*of_run })
        });
        Crew { members: members.collect() }
    }

    fn sum(&self, kin: &Kin, of: impl Fn(&Curve) -> u64) -> u64 {
        let each = |one: &OfRun| of(&kin.run(one.run).curve) * u64::from(one.count);
        self.members.iter().map(each).sum()
    }

    /// The least that they can be held at together.
    pub(crate) fn least(&self, kin: &Kin) -> Watts {
        Watts::from_milliwatts(self.sum(kin, |curve| curve.least().milliwatts()))
    }

    /// What they draw together without caps.
    pub(crate) fn most(&self, kin: &Kin) -> Watts {
        Watts::from_milliwatts(self.sum(kin, |curve| curve.most().milliwatts()))
    }

    /// All at the lowest cap.
    pub(crate) fn at_least(&self, kin: &Kin) -> Levels {
        self.all_at(kin, Curve::least)
    }

    fn all_at(&self, kin: &Kin, cap: impl Fn(&Curve) -> Watts) -> Levels {
        let caps = self.members.iter().map(|one| cap(&kin.run(one.run).curve)).collect();
        Levels { caps, split: None }
    }

    /// All caps together.
    pub(crate) fn total(&self, levels: &Levels) -> Watts {
        let caps = self.members.iter().zip(&levels.caps);
        let all: u64 = caps.map(|(one, cap)| cap.milliwatts() * u64::from(one.count)).sum();
        let more = levels.split.map_or(0, |split| {
            let low = levels.caps[split.place];
            let first = (split.high - low).milliwatts() * u64::from(split.first);
            first + (split.between - low).milliwatts()
        });
        Watts::from_milliwatts(all + more)
    }

    /// Its steps, the steepest first.
    fn steps(&self, kin: &Kin) -> Vec<Own> {
        let own = |place: usize, step: Step| {
            let (milliwatts, ips) = kin.run(step.run).step(step.corner);
            Own { place: place as u32, corner: step.corner, milliwatts, ips }
        };
        // Few runs of many are sorted by themselves, many are picked from the list of all.
        let mut found: Vec<Own> = Vec::with_capacity(self.members.len() * 16);
        if self.members.len() * 8 < kin.runs().len() {
            let mut ranked: Vec<(u64, Own)> = Vec::with_capacity(self.members.len() * 16);
            for (place, one) in self.members.iter().enumerate() {
                let falling = kin.run(one.run).falling.iter().zip(1..);
                ranked.extend(
                    falling
                        .map(|(bits, corner)| (*bits, own(place, Step { run: one.run, corner }))),
                );
            }
            ranked.sort_unstable_by_key(|(bits, own)| (*bits, own.place, own.corner));
            found.extend(ranked.into_iter().map(|(_, own)| own));
        } else {
            let mut places = vec![u32::MAX; kin.runs().len()];
            for (place, one) in (0..).zip(&self.members) {
                places[one.run as usize] = place;
            }
            for step in kin.steps() {
                let place = places[step.run as usize];
                if place != u32::MAX {
                    found.push(own(place as usize, *step));
                }
            }
        }
        found
    }

    fn levels(&self, kin: &Kin, steps: &[Own], fed: Fed) -> Levels {
        let (step, number, between) = match fed {
            Fed::All => return self.all_at(kin, Curve::most),
            Fed::None => return self.all_at(kin, Curve::least),
            Fed::UpTo { step, number, cap } => (step, number, cap),
        };
        let mut levels = self.all_at(kin, Curve::least);
        let power = |own: &Own| {
            let run = self.members[own.place as usize].run;
            kin.run(run).corners[own.corner as usize].power
        };
        for own in &steps[..step] {
            // Steps of those who get nothing are in the list, too.
            if let Some(cap) = levels.caps.get_mut(own.place as usize) {
                *cap = power(own);
            }
        }
        let last = &steps[step];
        let (place, high) = (last.place as usize, power(last));
        levels.split = Some(Split { place, first: number - 1, high, between });
        levels
    }

    fn speed(&self, kin: &Kin, cap: Watts) -> u64 {
        self.sum(kin, |curve| curve.at(cap).ips())
    }

    /// All of them run, and each gets a cap; none if there is too little for that.
    pub(crate) fn retune(&self, kin: &Kin, budget: Watts) -> Option<Levels> {
        Feed::new(self.clone(), kin).retune(kin, budget)
    }

    /// As many of them as are fastest together, the first ones.
    pub(crate) fn tune(&self, kin: &Kin, budget: Watts) -> Option<Divided> {
        let mut left = budget.milliwatts();
        let mut running = Vec::with_capacity(self.members.len());
        for one in &self.members {
            let least = kin.run(one.run).curve.least().milliwatts();
            let fits = left / least.max(1);
            let count = u64::from(one.count).min(fits) as u32;
            left -= least * u64::from(count);
            if count > 0 {
                running.push(OfRun { count, ..*one });
            }
            if count < one.count {
                break;
            }
        }
        let running = Crew { members: running };
        let steps = running.steps(kin);
        let (ips, count, fed) = Filling::new(&running, kin, &steps, budget).best()?;
        if let Some((processors, cap, even)) = self.even(kin, budget)
            && even > ips
        {
            let crew = self.first(processors);
            let levels = crew.all_at(kin, |curve| cap.min(curve.most()));
            return Some(Divided { crew, levels });
        }
        let crew = running.first(count);
        let levels = crew.levels(kin, &steps, fed);
        Some(Divided { crew, levels })
    }

    /// Equal parts for as many as can all run on them: how many, their cap, and their speed.
    fn even(&self, kin: &Kin, budget: Watts) -> Option<(u32, Watts, u64)> {
        let (mut neediest, mut before) = (1, 0u64);
        for one in &self.members {
            neediest = kin.run(one.run).curve.least().milliwatts().max(neediest);
            let all = before + u64::from(one.count);
            // A part is no less than what the neediest needs if they are no more than this.
            let fed = (budget.milliwatts() / neediest).clamp(before, all);
            before = fed;
            if fed < all {
                break;
            }
        }
        let processors = u32::try_from(before).ok().filter(|processors| *processors > 0)?;
        let cap = Watts::from_milliwatts(budget.milliwatts() / before);
        Some((processors, cap, self.first(processors).speed(kin, cap)))
    }
}

/// What is needed to divide power among a given crew again and again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Feed {
    crew: Crew,
    least: u64,
    /// How fast they are at the lowest caps.
    slowest: u64,
    /// What the neediest of them needs, and how many there are.
    neediest: Watts,
    count: u64,
    steps: Vec<Own>,
    /// By step: the power of all steps up to and with it, and the speed.
    up_to: Vec<(u64, u64)>,
}

impl Feed {
    /// For this crew.
    pub(crate) fn new(crew: Crew, kin: &Kin) -> Self {
        let steps = crew.steps(kin);
        let (mut power, mut speed) = (0, 0);
        let up_to = steps.iter().map(|own| {
            let count = u64::from(crew.members[own.place as usize].count);
            power += own.milliwatts * count;
            speed += own.ips * count;
            (power, speed)
        });
        let up_to = up_to.collect();
        let leasts = crew.members.iter().map(|one| kin.run(one.run).curve.least());
        Feed {
            least: crew.least(kin).milliwatts(),
            slowest: crew.sum(kin, |curve| curve.slowest().ips()),
            neediest: leasts.fold(Watts::ZERO, Watts::max),
            count: u64::from(crew.count()),
            steps,
            up_to,
            crew,
        }
    }

    /// The processors.
    pub(crate) fn crew(&self) -> &Crew {
        &self.crew
    }

    /// All of them run, and each gets a cap; none if there is too little for that.
    pub(crate) fn retune(&self, kin: &Kin, budget: Watts) -> Option<Levels> {
        let room = budget.milliwatts().checked_sub(self.least).filter(|_| self.count > 0)?;
        let all = self.up_to.last().copied().unwrap_or((0, 0));
        let (fed, ips) = if all.0 < room {
            (Fed::All, self.slowest + all.1)
        } else if room == 0 {
            (Fed::None, self.slowest)
        } else {
            let step = self.up_to.partition_point(|(power, _)| *power < room);
            let (power, speed) = step.checked_sub(1).map_or((0, 0), |before| self.up_to[before]);
            let own = &self.steps[step];
            let number = (room - power).div_ceil(own.milliwatts);
            let missing = power + number * own.milliwatts - room;
            let run = kin.run(self.crew.members[own.place as usize].run);
            let to = run.corners[own.corner as usize];
            let cap = to.power - Watts::from_milliwatts(missing);
            let whole = self.slowest + speed + own.ips * number;
            let ips = whole - to.ips.ips() + run.curve.at(cap).ips();
            // They are among those of one run, so they are no more than 32 bits hold.
            (Fed::UpTo { step, number: number as u32, cap }, ips)
        };
        let part = Watts::from_milliwatts(budget.milliwatts() / self.count);
        if part >= self.neediest && self.crew.speed(kin, part) > ips {
            return Some(self.crew.all_at(kin, |curve| part.min(curve.most())));
        }
        Some(self.crew.levels(kin, &self.steps, fed))
    }
}

/// Power poured along hulls while processors are added, as in the `filling` of a tuner.
struct Filling<'c> {
    crew: &'c Crew,
    kin: &'c Kin,
    steps: &'c [Own],
    budget: u64,
    /// Steps before this one are within reach for everybody, and this one for so many of its processors.
    reach: usize,
    within: u32,
    /// By place: the corner that all steps before `reach` lead to.
    corners: Vec<u32>,
    /// By place: how many were added.
    added: Vec<u32>,
    least_power: u64,
    least_ips: u64,
    fed_power: u64,
    fed_ips: u64,
}

impl<'c> Filling<'c> {
    fn new(crew: &'c Crew, kin: &'c Kin, steps: &'c [Own], budget: Watts) -> Self {
        let last = |one: &OfRun| kin.run(one.run).corners.len() as u32 - 1;
        let mut filling = Filling {
            crew,
            kin,
            steps,
            budget: budget.milliwatts(),
            reach: steps.len(),
            within: 0,
            corners: crew.members.iter().map(last).collect(),
            added: vec![0; crew.members.len()],
            least_power: 0,
            least_ips: 0,
            fed_power: 0,
            fed_ips: 0,
        };
        filling.go_back();
        filling
    }

    /// Comes to the step before, which is then the one that is within reach for some; says whether there is one.
    fn go_back(&mut self) -> bool {
        let Some(before) = self.reach.checked_sub(1) else {
            self.within = 0;
            return false;
        };
        let place = self.steps[before].place as usize;
        self.reach = before;
        self.within = self.crew.members[place].count;
        self.corners[place] -= 1;
        true
    }

    /// The number of processors, of those that all run, that are fastest together; the fewest of several.
    fn best(mut self) -> Option<(u64, u32, Fed)> {
        let mut best: Option<(u64, u32, Fed)> = None;
        let mut count = 0;
        let crew = self.crew;
        for (place, one) in crew.members.iter().enumerate() {
            for _ in 0..one.count {
                self.add(place);
                count += 1;
                let (ips, fed) = self.settle();
                if best.is_none_or(|(best, ..)| ips > best) {
                    best = Some((ips, count, fed));
                }
            }
        }
        best
    }

    fn add(&mut self, place: usize) {
        let run = self.kin.run(self.crew.members[place].run);
        self.added[place] += 1;
        let is_within = |own: &Own| own.place as usize == place && self.added[place] <= self.within;
        let one_more = self.steps.get(self.reach).is_some_and(is_within);
        let corner = run.corners[(self.corners[place] + u32::from(one_more)) as usize];
        let first = run.corners[0];
        self.least_power += first.power.milliwatts();
        self.least_ips += first.ips.ips();
        self.fed_power += (corner.power - first.power).milliwatts();
        self.fed_ips += corner.ips.ips() - first.ips.ips();
    }

    fn settle(&mut self) -> (u64, Fed) {
        let room = self.budget - self.least_power;
        while self.fed_power >= room {
            let Some(own) = self.steps.get(self.reach) else { break };
            let place = own.place as usize;
            let fed = self.within.min(self.added[place]);
            // So many give way before less than all power would be used.
            let given = ((self.fed_power - room) / own.milliwatts).min(u64::from(fed));
            self.fed_power -= given * own.milliwatts;
            self.fed_ips -= given * own.ips;
            let number = fed - given as u32;
            if number > 0 {
                self.within = number;
                let run = self.kin.run(self.crew.members[place].run);
                let to = run.corners[own.corner as usize];
                let cap = to.power - Watts::from_milliwatts(self.fed_power - room);
                let whole = self.least_ips + self.fed_ips;
                let ips = whole - to.ips.ips() + run.curve.at(cap).ips();
                return (ips, Fed::UpTo { step: self.reach, number, cap });
            }
            if !self.go_back() {
                break;
            }
        }
        let fed = if self.fed_power < room { Fed::All } else { Fed::None };
        (self.least_ips + self.fed_ips, fed)
    }
}
