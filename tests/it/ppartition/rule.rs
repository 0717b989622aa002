//! PPartition, plainly: the whole of a turn worked out from lists.
//!
//! Nothing is remembered from one turn to the next but who was refused, nobody is indexed, and power is
//! plain milliwatts. Only PTune itself is borrowed, which has oracles of its own.

use std::cmp::Ordering;

use busbar::solve::ptune::Tuner;
use busbar::units::Watts;
use busbar::variation::{Curve, Knot};

/// Processors, each with its cap in milliwatts, by number.
pub(super) type Capped = Vec<(u32, u64)>;

/// Milliwatts that are left to each of several jobs.
type Budgets = Vec<(u32, u64)>;

/// What becomes of the others if a job does not fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Refusal {
    Skip,
    Close,
    Stop,
}

/// How power is shared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sharing {
    Busbar,
    /// To the letter of the paper.
    Paper,
    /// Jobs are let in to the letter of the paper, and others who make all jobs together no slower. What a job is let
    /// in with is what it is entitled to; what it gets is another matter.
    Gain,
}

/// The parameters of the policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The largest small job and the smallest large one.
    pub(super) sizes: (u32, u32),
    pub(super) refusal: Refusal,
    /// Whether a job is given all it can use while power is free.
    pub(super) is_uncapped: bool,
    /// The fewest processors a job starts on, of those it asks for, in per cent.
    pub(super) fewest: u32,
    pub(super) sharing: Sharing,
}

/// Who was refused since something came free last.
#[derive(Clone, Debug, Default)]
pub(super) struct Refused {
    kinds: Vec<(u32, usize)>,
    classes: Vec<u32>,
    is_stopped: bool,
}

impl Rules {
    fn class(&self, nodes: u32) -> u32 {
        match nodes {
            nodes if nodes >= self.sizes.1 => 2,
            nodes if nodes <= self.sizes.0 => 0,
            _ => 1,
        }
    }

    /// Looks at everybody who waits: large jobs first, then in the order in which they came. What was
    /// refused to a job since something came free is refused to all that ask for as many nodes for the
    /// same application. Returns who still waits.
    pub(super) fn in_turn(
        &self,
        waiting: &[Waiting],
        refused: &mut Refused,
        mut lets_in: impl FnMut(Waiting) -> bool,
    ) -> Vec<u32> {
        let mut order = waiting.to_vec();
        order.sort_by_key(|waiting| (self.class(waiting.nodes) != 2, waiting.job));
        let mut deferred = Vec::new();
        for waiting in order {
            let kind = (waiting.nodes, waiting.application);
            let class = self.class(waiting.nodes);
            let is_out = refused.is_stopped
                || refused.kinds.contains(&kind)
                || self.refusal == Refusal::Close && refused.classes.contains(&class);
            if !is_out && lets_in(waiting) {
                continue;
            }
            deferred.push(waiting.job);
            if !is_out {
                refused.kinds.push(kind);
                refused.classes.push(class);
                refused.is_stopped = self.refusal == Refusal::Stop;
            }
        }
        deferred.sort_unstable();
        deferred
    }

    /// The fewest processors that a job of so many starts on, with so much power for all: a part of what
    /// it asks for, or of what can run at all.
    pub(super) fn fewest_of(&self, nodes: u32, curves: &[Curve], power: u64) -> usize {
        (nodes.min(fed(curves, power)) * self.fewest).div_ceil(100).max(1) as usize
    }

    /// As text that names the policy.
    pub(super) fn text(&self) -> String {
        let (small, large) = self.sizes;
        let dispatch = format!("{:?}", self.refusal).to_lowercase();
        let first = if self.is_uncapped { "uncapped" } else { "share" };
        let fewest = self.fewest;
        let sharing = format!("{:?}", self.sharing).to_lowercase();
        format!(
            "ppartition(queues={small}/{large}, dispatch={dispatch}, first={first}, \
             fewest={fewest}%, sharing={sharing})"
        )
    }
}

/// A job that has processors.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub(super) job: u32,
    pub(super) application: usize,
    pub(super) caps: Capped,
}

/// A job that has none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Waiting {
    pub(super) job: u32,
    pub(super) nodes: u32,
    pub(super) application: usize,
}

/// All that a turn depends on.
#[derive(Clone, Debug)]
pub(super) struct Situation<'a> {
    /// The curve of each processor, for each application.
    pub(super) curves: &'a [&'a [Curve]],
    /// What all jobs together can rely on.
    pub(super) power: u64,
    /// What everybody is entitled to, in the order of the jobs.
    pub(super) running: Vec<Member>,
    /// In any order.
    pub(super) waiting: Vec<Waiting>,
    /// Processors in service that nobody has.
    pub(super) free: Vec<u32>,
}

/// What a turn leads to: who has which caps then, what he is entitled to, and who still waits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settled {
    pub(super) members: Vec<Member>,
    /// The same members, with the caps by which others are let in.
    pub(super) entitled: Vec<Member>,
    pub(super) deferred: Vec<u32>,
    /// How many were let in only because all jobs together are then no slower.
    pub(super) gainful: u64,
}

pub(super) fn total(caps: &Capped) -> u64 {
    caps.iter().map(|cap| cap.1).sum()
}

/// How many processors can run at once, the most efficient ones.
fn fed(curves: &[Curve], power: u64) -> u32 {
    let mut order: Vec<&Curve> = curves.iter().collect();
    order.sort_by(|a, b| more_efficient(a, b));
    let least = |count: usize| -> u64 {
        order[..count].iter().map(|curve| curve.least().milliwatts()).sum()
    };
    (1..=order.len()).filter(|count| least(*count) <= power).count() as u32
}

/// Which of two curves has the point that does most for each watt; if both do, which one is faster at
/// its end.
pub(super) fn more_efficient(first: &Curve, second: &Curve) -> Ordering {
    let knots = |curve: &Curve| -> Vec<(u128, u128)> {
        let plain = |knot: &Knot| (u128::from(knot.power.milliwatts()), knot.ips.ips().into());
        curve.knots().iter().map(plain).collect()
    };
    // Whether some point of one is above the line from the origin through each point of the other.
    let beats = |one: &Curve, other: &Curve| {
        let (one, other) = (knots(one), knots(other));
        one.iter().any(|own| other.iter().all(|theirs| own.1 * theirs.0 > theirs.1 * own.0))
    };
    match (beats(first, second), beats(second, first)) {
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Greater,
        _ => second.peak().cmp(&first.peak()),
    }
}

/// `amount · part / whole`, rounded down.
fn part_of(amount: u64, part: u64, whole: u64) -> u64 {
    (u128::from(amount) * u128::from(part) / u128::from(whole)) as u64
}

/// An amount in whole parts that add up, in proportion to weights.
fn parts(amount: u64, weights: &[u64]) -> Vec<u64> {
    let all = weights.iter().sum::<u64>().max(1);
    let up_to = |count: usize| part_of(amount, weights[..count].iter().sum(), all);
    (0..weights.len()).map(|place| up_to(place + 1) - up_to(place)).collect()
}

/// A job while the turn is worked out: its caps, and the power it may use.
#[derive(Clone)]
struct Budgeted {
    member: Member,
    budget: u64,
}

struct Partition<'a> {
    curves: &'a [&'a [Curve]],
    power: u64,
    members: Vec<Budgeted>,
    free: Vec<u32>,
    gainful: u64,
}

impl Situation<'_> {
    /// The turn.
    pub(super) fn settle(&self, rules: &Rules, refused: &mut Refused) -> Settled {
        let budgeted = |member: &Member| {
            let budget = total(&member.caps);
            Budgeted { member: member.clone(), budget }
        };
        let mut partition = Partition {
            curves: self.curves,
            power: self.power,
            members: self.running.iter().map(budgeted).collect(),
            free: self.free.clone(),
            gainful: 0,
        };
        let deferred =
            rules.in_turn(&self.waiting, refused, |waiting| partition.lets_in(rules, waiting));
        partition.tune_all();
        let entitled = partition.members();
        if rules.sharing == Sharing::Gain {
            partition.divide_anew();
        }
        Settled { members: partition.members(), entitled, deferred, gainful: partition.gainful }
    }
}

impl Partition<'_> {
    fn curve(&self, application: usize, processor: u32) -> &Curve {
        &self.curves[application][processor as usize]
    }

    fn members(&self) -> Vec<Member> {
        self.members.iter().map(|budgeted| budgeted.member.clone()).collect()
    }

    fn held(&self) -> u64 {
        self.members.iter().map(|budgeted| budgeted.budget).sum()
    }

    fn least(&self, application: usize, processors: &[u32]) -> u64 {
        let least = |processor: &u32| self.curve(application, *processor).least().milliwatts();
        processors.iter().map(least).sum()
    }

    /// What PTune makes of these processors, and if that is too few, of the fewest it may be; `None` if
    /// the power does not feed them.
    fn tuned(
        &self,
        application: usize,
        processors: &[u32],
        power: u64,
        fewest: usize,
    ) -> Option<Capped> {
        let offered: Vec<&Curve> = processors.iter().map(|p| self.curve(application, *p)).collect();
        let (mut tuner, mut again) = (Tuner::new(), Tuner::new());
        let power = Watts::from_milliwatts(power);
        let mut tuning = tuner.tune(&offered, power).ok()?;
        if tuning.grants.len() < fewest {
            tuning = again.retune(&offered[..fewest], power).ok()?;
        }
        let grants = tuning.grants.iter();
        let mut caps: Capped =
            grants.map(|grant| (processors[grant.candidate], grant.cap.milliwatts())).collect();
        caps.sort_unstable();
        Some(caps)
    }

    /// Lets a job in, if there is a way.
    fn lets_in(&mut self, rules: &Rules, waiting: Waiting) -> bool {
        let mut way = self.way_in(rules, waiting);
        if way.is_none() && rules.sharing == Sharing::Gain {
            way = self.gainful_way_in(rules, waiting);
            self.gainful += u64::from(way.is_some());
        }
        let Some((caps, budgets)) = way else { return false };
        for (job, budget) in budgets {
            let robbed = self.members.iter_mut().find(|budgeted| budgeted.member.job == job);
            robbed.unwrap().budget = budget;
        }
        self.free.retain(|processor| caps.iter().all(|cap| cap.0 != *processor));
        let Waiting { job, application, .. } = waiting;
        let budget = total(&caps);
        self.members.push(Budgeted { member: Member { job, application, caps }, budget });
        self.members.sort_by_key(|budgeted| budgeted.member.job);
        true
    }

    /// Processors from the most efficient on.
    fn best_first(&self, application: usize, processors: &[u32]) -> Vec<u32> {
        let mut best = processors.to_vec();
        best.sort_by(|a, b| {
            let [first, second] = [a, b].map(|processor| self.curve(application, *processor));
            more_efficient(first, second).then(a.cmp(b))
        });
        best
    }

    /// A job's part of all the power. In the paper it is what it asks for, of all processors. But where
    /// the power does not feed all of these, it is of as many as it does feed; and it is never more
    /// than the job can use, or less than it needs.
    fn share(&self, rules: &Rules, waiting: Waiting, best: &[u32], needed: u64) -> u64 {
        let Waiting { nodes, application, .. } = waiting;
        let everybody = self.curves[application].len() as u64;
        if rules.sharing != Sharing::Busbar {
            return part_of(self.power, u64::from(nodes), everybody).max(needed);
        }
        let fed = u64::from(fed(self.curves[application], self.power));
        let share = if fed == 0 { 0 } else { part_of(self.power, fed.min(nodes.into()), fed) };
        share.max(needed).min(self.most(application, best))
    }

    fn most(&self, application: usize, processors: &[u32]) -> u64 {
        let most = |processor: &u32| self.curve(application, *processor).most().milliwatts();
        processors.iter().map(most).sum()
    }

    fn way_in(&self, rules: &Rules, waiting: Waiting) -> Option<(Capped, Budgets)> {
        let Waiting { nodes, application, .. } = waiting;
        let mut best = self.best_first(application, &self.free);
        if best.len() < nodes as usize {
            return None;
        }
        best.truncate(nodes as usize);
        let offered = best.clone();
        let free = self.power.saturating_sub(self.held());
        let fewest = rules.fewest_of(nodes, self.curves[application], self.power);
        let needed = self.least(application, &best[..fewest]);
        let share = self.share(rules, waiting, &best, needed);
        let first = if rules.is_uncapped { self.most(application, &best) } else { share };
        if first <= free {
            return Some((self.tuned(application, &best, first, fewest)?, Vec::new()));
        }
        let busy: u64 = self.members.iter().map(|other| other.member.caps.len() as u64).sum();
        let mut wanted = share;
        loop {
            let count = self.tuned(application, &best, wanted, fewest)?.len();
            if count == best.len() {
                break;
            }
            best.truncate(count);
            wanted = part_of(self.power, count as u64, busy + count as u64).max(needed);
        }
        if rules.sharing == Sharing::Busbar && wanted <= free {
            return Some((self.tuned(application, &offered, free, fewest)?, Vec::new()));
        }
        let missing = wanted.saturating_sub(free);
        let spare = self.spare();
        let given = if rules.sharing != Sharing::Busbar {
            let weights: Vec<u64> = self.members.iter().map(|other| other.budget).collect();
            parts(missing, &weights).into_iter().zip(&spare).map(|(a, b)| a.min(*b)).collect()
        } else {
            self.levelled(missing, &spare)
        };
        let gathered = wanted.min(free) + given.iter().sum::<u64>();
        if gathered < self.least(application, &best) {
            return None;
        }
        Some((self.tuned(application, &best, gathered, fewest)?, self.without(&given)))
    }

    /// What everybody is left with who gives so much.
    fn without(&self, given: &[u64]) -> Budgets {
        let budgets = self.members.iter().zip(given);
        budgets.map(|(other, given)| (other.member.job, other.budget - given)).collect()
    }

    /// A way in after which all jobs together are no slower, if all power goes where it gains most: on those of the
    /// best free processors that do more with their power than the last milliwatt does now, under their lowest caps.
    fn gainful_way_in(&self, rules: &Rules, waiting: Waiting) -> Option<(Capped, Budgets)> {
        let Waiting { nodes, application, .. } = waiting;
        let mut best = self.best_first(application, &self.free);
        if best.len() < nodes as usize {
            return None;
        }
        best.truncate(nodes as usize);
        let busy: Vec<&Curve> =
            self.members.iter().flat_map(|other| self.curves_of(other)).collect();
        let (speed, price) = poured(&busy, self.power)?;
        let does_more = |processor: &&u32| {
            let knots = self.curve(application, **processor).knots().iter();
            let ratios =
                knots.map(|knot| Ratio(knot.ips.ips().into(), knot.power.milliwatts().into()));
            ratios.max().unwrap() > price
        };
        let worth = best.iter().take_while(does_more).count();
        best.truncate(worth.max(rules.fewest_of(nodes, self.curves[application], self.power)));
        let with = best.iter().map(|processor| self.curve(application, *processor));
        let (speed_with, _) =
            poured(&busy.into_iter().chain(with).collect::<Vec<_>>(), self.power)?;
        if speed_with < speed {
            return None;
        }
        let free = self.power.saturating_sub(self.held());
        let missing = self.least(application, &best).saturating_sub(free);
        let given = self.levelled(missing, &self.spare());
        if given.iter().sum::<u64>() < missing {
            return None;
        }
        let lowest = |processor: &u32| (*processor, self.least(application, &[*processor]));
        let mut caps: Capped = best.iter().map(lowest).collect();
        caps.sort_unstable();
        Some((caps, self.without(&given)))
    }

    fn curves_of(&self, budgeted: &Budgeted) -> Vec<&Curve> {
        let Budgeted { member, .. } = budgeted;
        member.caps.iter().map(|cap| self.curve(member.application, cap.0)).collect()
    }

    /// All power given anew, from the lowest caps on.
    fn divide_anew(&mut self) {
        for place in 0..self.members.len() {
            let application = self.members[place].member.application;
            let mut caps = self.members[place].member.caps.clone();
            for (processor, cap) in &mut caps {
                *cap = self.least(application, &[*processor]);
            }
            self.members[place].budget = total(&caps);
            self.members[place].member.caps = caps;
        }
        self.pour(self.power.saturating_sub(self.held()));
    }

    /// What each job could do without.
    fn spare(&self) -> Vec<u64> {
        let spare = |other: &Budgeted| {
            let processors: Vec<u32> = other.member.caps.iter().map(|cap| cap.0).collect();
            other.budget - self.least(other.member.application, &processors)
        };
        self.members.iter().map(spare).collect()
    }

    /// What each job gives so that so much comes together. Everybody is asked for a part in proportion
    /// to what he has. Those for whom that is too much give what they can, and the others are asked
    /// again, for what is missing then; until nobody is asked for too much.
    fn levelled(&self, missing: u64, spare: &[u64]) -> Vec<u64> {
        let mut is_empty = vec![false; spare.len()];
        loop {
            let all_of = |of: &dyn Fn(usize) -> u64, empty: bool| -> u64 {
                (0..spare.len()).filter(|place| is_empty[*place] == empty).map(of).sum()
            };
            let budget = |place: usize| self.members[place].budget;
            let asked = missing.saturating_sub(all_of(&|place| spare[place], true));
            let whole = all_of(&budget, false);
            let is_too_much = |place: &usize| {
                let part = u128::from(asked) * u128::from(budget(*place));
                !is_empty[*place] && part > u128::from(spare[*place]) * u128::from(whole)
            };
            let beyond: Vec<usize> = (0..spare.len()).filter(is_too_much).collect();
            if beyond.is_empty() {
                let weight = |place| if is_empty[place] { 0 } else { budget(place) };
                let weights: Vec<u64> = (0..spare.len()).map(weight).collect();
                let given = parts(asked, &weights).into_iter().enumerate();
                let given =
                    given.map(|(place, part)| if is_empty[place] { spare[place] } else { part });
                return given.collect();
            }
            beyond.into_iter().for_each(|place| is_empty[place] = true);
        }
    }

    /// Everybody makes the best of what is left to him; a watt or more that nobody holds goes to who
    /// gains most.
    fn tune_all(&mut self) {
        for place in 0..self.members.len() {
            if self.members[place].budget < total(&self.members[place].member.caps) {
                self.retune(place);
            }
        }
        let free = self.power.saturating_sub(self.held());
        if free >= 1000 {
            self.pour(free);
        }
    }

    /// Gives so much away, to who gains most.
    fn pour(&mut self, mut free: u64) {
        let mut stretches = self.stretches();
        let mut gains = vec![0; self.members.len()];
        while free > 0 && !stretches.is_empty() {
            let steepest = steepest(&stretches);
            let Stretch { place, milliwatts, .. } = stretches.remove(steepest);
            gains[place] += milliwatts.min(free);
            free -= milliwatts.min(free);
        }
        for (place, gain) in gains.into_iter().enumerate() {
            if gain > 0 {
                self.members[place].budget += gain;
                self.retune(place);
            }
        }
    }

    /// What more power could be put to: the stretches of all hulls above the caps.
    fn stretches(&self) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        for (place, Budgeted { member, .. }) in self.members.iter().enumerate() {
            for (processor, cap) in &member.caps {
                for (from, to) in hull(self.curve(member.application, *processor)) {
                    if to.0 > *cap {
                        let milliwatts = to.0 - from.0.max(*cap);
                        let slope = (to.1 - from.1, to.0 - from.0);
                        stretches.push(Stretch { place, milliwatts, slope });
                    }
                }
            }
        }
        stretches
    }

    fn retune(&mut self, place: usize) {
        let Budgeted { member, budget } = &self.members[place];
        let own: Vec<&Curve> =
            member.caps.iter().map(|cap| self.curve(member.application, cap.0)).collect();
        let mut tuner = Tuner::new();
        let tuning = tuner.retune(&own, Watts::from_milliwatts(*budget)).unwrap();
        assert_eq!(tuning.grants.len(), own.len(), "it keeps its processors");
        let mut caps = member.caps.clone();
        for grant in tuning.grants {
            caps[grant.candidate].1 = grant.cap.milliwatts();
        }
        let budgeted = &mut self.members[place];
        budgeted.budget = total(&caps);
        budgeted.member.caps = caps;
    }
}

/// A fraction, compared without rounding.
#[derive(Clone, Copy, Debug)]
struct Ratio(u128, u128);

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0 * other.1).cmp(&(other.0 * self.1))
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ratio {}

/// How fast these processors are together if all power goes where it gains most, and what the last milliwatt brings:
/// nothing if nobody can use it. None if the power does not feed them all.
fn poured(processors: &[&Curve], power: u64) -> Option<(Ratio, Ratio)> {
    let least: u64 = processors.iter().map(|curve| curve.least().milliwatts()).sum();
    let mut free = u128::from(power.checked_sub(least)?);
    let mut speed: u128 = processors.iter().map(|curve| u128::from(curve.slowest().ips())).sum();
    let mut stretches: Vec<Ratio> = processors
        .iter()
        .flat_map(|curve| hull(curve))
        .map(|(from, to)| Ratio((to.1 - from.1).into(), (to.0 - from.0).into()))
        .collect();
    stretches.sort();
    let mut last = Ratio(0, 1);
    while let Some(Ratio(gain, milliwatts)) = stretches.pop() {
        if free == 0 {
            return Some((Ratio(speed, 1), last));
        }
        last = Ratio(gain, milliwatts);
        if free < milliwatts {
            return Some((Ratio(speed * milliwatts + gain * free, milliwatts), last));
        }
        free -= milliwatts;
        speed += gain;
    }
    Some((Ratio(speed, 1), if free > 0 { Ratio(0, 1) } else { last }))
}

/// A part of a hull that somebody may be given.
struct Stretch {
    /// Whose, by his place among the members.
    place: usize,
    milliwatts: u64,
    /// Speed gained and power taken.
    slope: (u64, u64),
}

/// The first of the steepest, compared without rounding. They stand in the order of jobs.
fn steepest(stretches: &[Stretch]) -> usize {
    let is_steeper = |a: (u64, u64), b: (u64, u64)| {
        u128::from(a.0) * u128::from(b.1) > u128::from(b.0) * u128::from(a.1)
    };
    let better = |best: usize, other: usize| {
        if is_steeper(stretches[other].slope, stretches[best].slope) { other } else { best }
    };
    (1..stretches.len()).fold(0, better)
}

/// The hull of a curve: from each corner on to the knot to which the way is steepest, and of several
/// such to the last.
fn hull(curve: &Curve) -> Vec<((u64, u64), (u64, u64))> {
    let knots: Vec<(u64, u64)> =
        curve.knots().iter().map(|knot| (knot.power.milliwatts(), knot.ips.ips())).collect();
    let (mut at, mut segments) = (0, Vec::new());
    while at + 1 < knots.len() {
        let slope = |to: usize| {
            let (power, ips) = (knots[to].0 - knots[at].0, knots[to].1 - knots[at].1);
            (u128::from(ips), u128::from(power))
        };
        let next = (at + 2..knots.len()).fold(at + 1, |best, to| {
            let (a, b) = (slope(to), slope(best));
            if a.0 * b.1 >= b.0 * a.1 { to } else { best }
        });
        segments.push((knots[at], knots[next]));
        at = next;
    }
    segments
}
