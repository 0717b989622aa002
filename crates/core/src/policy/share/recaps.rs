//! Settings may be changed while jobs run: at each event all watts are shared out anew.
//!
//! Rule: backfilling as if every job ran at its floor, the fastest setting that could feed the whole machine.
//! Then the watts that are left are given out one step at a time, to the job whose speed grows most per watt,
//! until no step fits. So whoever starts takes watts from those that run fast, and whoever ends leaves them to
//! others. What becomes less is lowered first, then jobs start, and then the others are raised.
//!
//! What it deliberately does not do: go below the floor. A job that may not be changed keeps what it has.

use std::cmp::Ordering;

use super::ladders::{Climb, Ladder, Ladders};
use super::settings::{Places, lowest, settings};
use super::spare::Spare;
use crate::availability::Availability;
use crate::freedom::Freedom;
use crate::ledger::{Holding, Vacancy};
use crate::model::OperatingPoint;
use crate::policy::{
    Ahead, Backfill, Chooser, Decision, Multifactor, Order, PastJob, Policy, Predictions, Room,
    View, rehearsal,
};
use crate::priority::Standing;
use crate::units::{Instant, JobId, Span, Watts};

/// Backfilling with settings that change while jobs run.
#[derive(Clone)]
pub(crate) struct Recapped<O> {
    pub(super) backfill: Backfill<AtFloor, O>,
    /// By job: its place among those that shared when it last did.
    pub(super) sharer_of: Vec<u32>,
}

/// Starts jobs at their floor, and counts what running jobs have beyond theirs as free.
#[derive(Clone, Default)]
pub(super) struct AtFloor {
    /// The settings of running jobs that may be changed, under this limit.
    pub(super) ladders: Ladders,
    limit: Option<Watts>,
    /// Where jobs may start.
    places: Places,
    /// Whether all of them can be at their floors. They last longer there, and so more of them may meet a limit to come.
    may_lower: bool,
}

impl AtFloor {
    /// The running jobs that may be changed, each with what it holds and its settings.
    fn changeable<'a>(
        &'a self,
        view: &'a View<'_>,
    ) -> impl Iterator<Item = (&'a Holding, &'a Ladder)> {
        let running = view.ledger.running().iter();
        running.filter_map(|holding| Some((holding, self.ladders.of(holding.job)?)))
    }

    /// Looks up the settings of those that run, where they are not known.
    pub(super) fn look_up(&mut self, view: &View<'_>) {
        let limit = lowest(view);
        if self.limit != Some(limit) || view.changes.machine {
            (self.ladders, self.limit) = (Ladders::default(), Some(limit));
        }
        for holding in view.changes.released {
            self.ladders.remove(holding.job);
        }
        for holding in view.ledger.running().iter() {
            let job = holding.job;
            if self.ladders.is_known(job) {
                continue;
            }
            if !view.model.freedoms(job, view.job(job)).has(Freedom::Recaps) {
                self.ladders.leave_out(job);
            } else if view.ledger.suspended(job).is_none() {
                let settings = settings(view, job);
                // Somebody else may have started it on other nodes than it asks for.
                if settings[0].nodes == holding.nodes {
                    self.ladders.insert(job, settings);
                }
            }
        }
    }
}

impl Chooser for AtFloor {
    fn choose(&mut self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint> {
        if view.job(job).nodes > room.nodes() {
            return None;
        }
        // Where the floor takes too long to pass the head of the queue, a faster setting may not.
        settings(view, job).iter().rev().find(|point| room.admits(point)).copied()
    }

    fn reserve(
        &mut self,
        view: &View<'_>,
        job: JobId,
        ahead: &Ahead<'_>,
    ) -> Option<(OperatingPoint, Vacancy)> {
        let settings = settings(view, job);
        let point = settings[settings.len() - 1];
        Some((point, ahead.vacancy(&point)?))
    }

    #[inline]
    fn candidate<O: Order>(
        &mut self,
        view: &View<'_>,
        order: &O,
        after: JobId,
        room: &Room,
    ) -> Option<JobId> {
        order.next_fit(view, after, &self.places.fits(view, room))
    }

    /// When running jobs are expected to end changes with the watts they get.
    #[inline]
    fn refusals_outlive_arrivals(&self) -> bool {
        false
    }

    fn begin<O: Order>(&mut self, view: &View<'_>, _order: &O) {
        self.look_up(view);
        // Where decisions are tried, those who can be lowered are lowered already.
        self.may_lower = !rehearsal::is_needed(view)
            && (view.ledger.limits_to_come().is_empty()
                || spare(self, view, &sharers(self, view, &[])).suffices());
        self.places.welcome(view);
    }

    fn reclaimable(&self, view: &View<'_>) -> Watts {
        if !self.may_lower {
            return Watts::ZERO;
        }
        let beyond = |(holding, ladder): (&Holding, &Ladder)| {
            holding.power.saturating_sub(ladder.floor().power)
        };
        self.changeable(view).map(beyond).sum()
    }

    fn reclaim(&self, view: &View<'_>, free: &mut Availability) {
        let sharers = sharers(self, view, &[]);
        let running = view.ledger.running().iter();
        let others = running.filter(|holding| self.ladders.of(holding.job).is_none());
        let others = others.map(|other| (other.until, other.nodes, other.power));
        // Their nodes come back when they would as things are: most get more than their floors.
        let nodes = sharers.iter().filter_map(|sharer| sharer.held);
        let nodes = nodes.map(|(held, _)| (held.until, held.nodes, Watts::ZERO));
        let watts = sharers
            .iter()
            .map(|sharer| (view.now + sharer.left(view.now), 0, sharer.point().power));
        let mut ends: Vec<(Instant, u32, Watts)> = others.chain(nodes).chain(watts).collect();
        ends.sort_unstable();
        let held = ends.iter().map(|end| end.2).sum();
        *free = Availability::with_holders(view.ledger, held, ends.into_iter());
    }
}

/// A job in the sharing out.
pub(super) struct Sharer<'a> {
    pub(super) job: JobId,
    /// What it holds now, and the time of that setting; nothing if it is about to start.
    held: Option<(Holding, Span)>,
    ladder: &'a Ladder,
    /// Which of its settings it is to have.
    pub(super) place: usize,
    /// Whether a step was too much for what was left. Then it cannot have the one after it.
    pub(super) is_stuck: bool,
}

impl Sharer<'_> {
    pub(super) fn point(&self) -> &OperatingPoint {
        self.ladder.setting(self.place)
    }

    /// How long it is expected to hold its setting from now on: what is left of its time, at its new speed.
    pub(super) fn left(&self, now: Instant) -> Span {
        let point = self.point();
        let Some((held, before)) = &self.held else { return point.time };
        let (left, before) = (held.until.since(now).millis(), before.millis().max(1));
        // A division of 128 bits takes many times as long.
        if let Some(product) = left.checked_mul(point.time.millis()) {
            return Span::from_millis(product.div_ceil(before));
        }
        let left = u128::from(left) * u128::from(point.time.millis());
        let left = left.div_ceil(u128::from(before));
        Span::from_millis(u64::try_from(left).unwrap_or(u64::MAX))
    }

    /// The power that it holds now.
    pub(super) fn held_power(&self) -> Watts {
        self.held.map_or(Watts::ZERO, |(held, _)| held.power)
    }
}

/// The time of the setting that a running job has.
fn present_time(view: &View<'_>, holding: &Holding, ladder: &Ladder) -> Span {
    let is_it =
        |point: &&OperatingPoint| (point.nodes, point.power) == (holding.nodes, holding.power);
    let found = ladder.settings().iter().find(is_it).copied();
    // It may be slower than what is the floor now.
    let found = found.or_else(|| view.menu(holding.job).iter().find(is_it).copied());
    found.map_or(ladder.floor().time, |point| point.time)
}

/// The jobs that are about to start, each with the settings it may get: none slower than what was admitted.
pub(super) fn starting(view: &View<'_>, starts: &[Decision]) -> Vec<(JobId, Ladder)> {
    let ladder = |decision: &Decision| match decision {
        Decision::Start { job, point } | Decision::StartIn { job, point, .. } => {
            let mut settings = settings(view, *job);
            let place = settings.iter().position(|other| other == point)?;
            settings.truncate(place + 1);
            Some((*job, Ladder::of(settings)))
        }
        _ => None,
    };
    starts.iter().filter_map(ladder).collect()
}

/// Those that share: the running jobs that may be changed, and those that are about to start, all at their
/// floors.
pub(super) fn sharers<'a>(
    chooser: &'a AtFloor,
    view: &'a View<'_>,
    starting: &'a [(JobId, Ladder)],
) -> Vec<Sharer<'a>> {
    let at_floor = |job: JobId, held: Option<(Holding, Span)>, ladder: &'a Ladder| Sharer {
        job,
        held,
        ladder,
        place: ladder.settings().len() - 1,
        is_stuck: false,
    };
    let running = chooser.changeable(view).map(|(holding, ladder)| {
        at_floor(holding.job, Some((*holding, present_time(view, holding, ladder))), ladder)
    });
    let new = starting.iter().map(|(job, ladder)| at_floor(*job, None, ladder));
    running.chain(new).collect()
}

/// What there is to be shared out beyond the floors of all sharers and what others hold.
fn spare(chooser: &AtFloor, view: &View<'_>, sharers: &[Sharer<'_>]) -> Spare {
    let end = |sharer: &Sharer<'_>| view.now + sharer.left(view.now);
    if view.ledger.limits_to_come().is_empty() {
        let held = sharers.iter().map(Sharer::held_power).sum();
        let others = view.ledger.held().saturating_sub(held);
        let floors: Watts = sharers.iter().map(|sharer| sharer.point().power).sum();
        let mut spare = Spare::of_limits(view, view.now);
        spare.take(Instant::NEVER, others.saturating_add(floors));
        return spare;
    }
    let last = sharers.iter().map(end).max();
    let mut spare = Spare::of_limits(view, last.unwrap_or(view.now));
    let running = view.ledger.running().iter();
    for other in running.filter(|holding| chooser.ladders.of(holding.job).is_none()) {
        spare.take(other.until, other.power);
    }
    for sharer in sharers {
        spare.take(end(sharer), sharer.point().power);
    }
    spare
}

/// Gives out watts, one step at a time, in the order of `climbs`.
fn share_out<'a>(
    climbs: impl Iterator<Item = &'a Climb>,
    sharers: &mut [Sharer<'_>],
    sharer_of: &[u32],
    least: Watts,
    now: Instant,
    mut spare: Spare,
) {
    for climb in climbs {
        // From here on no step fits.
        if spare.is_below(least) {
            return;
        }
        let Some(sharer) = sharers.get_mut(sharer_of[climb.job.index()] as usize) else { continue };
        if sharer.job == climb.job && !sharer.is_stuck {
            sharer.place -= 1;
            // That it then ends sooner counts for nothing: others may get theirs before it has its own.
            let until = match spare.changes() {
                true => now + sharer.left(now),
                false => Instant::NEVER,
            };
            if !spare.take_if_there(until, climb.more) {
                sharer.place += 1;
                sharer.is_stuck = true;
            }
        }
    }
}

/// What a job gets that shared, if that is not what it has.
pub(super) struct Granted {
    job: JobId,
    /// The power that it holds now; nothing if it starts.
    held: Option<Watts>,
    point: OperatingPoint,
    left: Span,
}

/// What sharers get that have something else, in the order of jobs.
pub(super) fn granted(sharers: &[Sharer<'_>], now: Instant) -> Vec<Granted> {
    let becomes = |sharer: &Sharer<'_>| {
        let (held, point) = (sharer.held.map(|(held, _)| held.power), *sharer.point());
        let left = || sharer.left(now);
        (held != Some(point.power)).then(|| Granted { job: sharer.job, held, point, left: left() })
    };
    let mut granted: Vec<Granted> = sharers.iter().filter_map(becomes).collect();
    granted.sort_unstable_by_key(|one| one.job);
    granted
}

/// The jobs that are about to start, as they were admitted, with nobody else changed.
fn as_admitted(starting: &[(JobId, Ladder)]) -> Vec<Granted> {
    let granted = |(job, ladder): &(JobId, Ladder)| {
        let point = *ladder.floor();
        Granted { job: *job, held: None, point, left: point.time }
    };
    let mut granted: Vec<Granted> = starting.iter().map(granted).collect();
    granted.sort_unstable_by_key(|one| one.job);
    granted
}

impl<O: Order> Recapped<O> {
    /// The policy, going through the queue in this order.
    pub(crate) fn ordered(order: O) -> Self {
        Recapped { backfill: Backfill::ordered(AtFloor::default(), order), sharer_of: Vec::new() }
    }

    /// Shares all watts out: who starts, and who gets another setting than it has, in the order of jobs.
    fn share(&mut self, view: &View<'_>, starts: &[Decision]) -> Vec<Granted> {
        let Recapped { backfill, sharer_of } = self;
        let starting = starting(view, starts);
        let is_over = view.ledger.power() > view.ledger.limit();
        if !backfill.chooser().may_lower && !is_over {
            return as_admitted(&starting);
        }
        let mut sharers = sharers(backfill.chooser(), view, &starting);
        sharer_of.resize(view.jobs.len().max(sharer_of.len()), u32::MAX);
        for (place, sharer) in (0..).zip(&sharers) {
            sharer_of[sharer.job.index()] = place;
        }
        let mut new: Vec<Climb> =
            starting.iter().flat_map(|(job, ladder)| ladder.climbs(*job)).collect();
        new.sort_unstable();
        let ladders = &backfill.chooser().ladders;
        let least = new.iter().map(|climb| climb.more).fold(ladders.least_climb(), Watts::min);
        let spare = spare(backfill.chooser(), view, &sharers);
        share_out(ladders.climbs_with(&new), &mut sharers, sharer_of, least, view.now, spare);
        granted(&sharers, view.now)
    }

    /// Writes down what changes: what becomes less, then who starts, then what becomes more. Whoever was to start on
    /// certain nodes does.
    pub(super) fn write(
        &mut self,
        view: &View<'_>,
        granted: &[Granted],
        admitted: &mut [Decision],
        decisions: &mut Vec<Decision>,
    ) {
        let (mut starts, mut raises) = (Vec::new(), Vec::new());
        let mut start = |started: JobId, point: OperatingPoint| {
            let chosen = admitted.iter_mut().find_map(|decision| match decision {
                Decision::StartIn { job, nodes, .. } if *job == started => {
                    Some(std::mem::take(nodes))
                }
                _ => None,
            });
            match chosen {
                Some(nodes) => Decision::StartIn { job: started, point, nodes },
                None => Decision::Start { job: started, point },
            }
        };
        for &Granted { job, held, point, left } in granted {
            let change = Decision::Change { job, point, pause: Span::ZERO, left };
            match held.map(|held| held.cmp(&point.power)) {
                None => starts.push(start(job, point)),
                Some(Ordering::Greater) => decisions.push(change),
                Some(Ordering::Less | Ordering::Equal) => raises.push(change),
            }
            self.backfill.order_mut().goes_on(view, job, &point, left);
        }
        decisions.append(&mut starts);
        decisions.append(&mut raises);
    }
}

impl<O: Order + Clone + Send + 'static> Policy for Recapped<O> {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        if rehearsal::is_needed(view) {
            return self.decide_below_feeds(view, decisions);
        }
        let mut starts = Vec::new();
        self.backfill.decide(view, &mut starts);
        let granted = self.share(view, &starts);
        self.write(view, &granted, &mut starts, decisions);
    }

    fn adjusts(&self) -> bool {
        true
    }

    fn recall(&mut self, past: &[PastJob]) {
        self.backfill.recall(past);
    }

    fn predictions(&self) -> Option<Predictions> {
        self.backfill.predictions()
    }

    fn by_priority(&mut self) -> Option<&mut Multifactor> {
        self.backfill.by_priority()
    }

    fn standings(&mut self) -> Vec<(JobId, Standing)> {
        self.backfill.standings()
    }

    fn forget(&mut self, job: JobId) -> bool {
        self.backfill.forget(job)
    }

    fn copy(&self) -> Option<Box<dyn Policy + Send>> {
        Some(Box::new(self.clone()))
    }
}
