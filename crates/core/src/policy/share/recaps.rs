//! Settings may be changed while jobs run: at each event all watts are shared out anew.
//!
//! Rule: backfilling as if every job ran at its floor, the fastest setting that could feed the whole machine.
//! Then the watts that are left are given out one step at a time, to the job whose speed grows most per watt,
//! until no step fits. So whoever starts takes watts from those that run fast, and whoever ends leaves them to
//! others. What becomes less is lowered first, then jobs start, and then the others are raised.
//!
//! What it deliberately does not do: go below the floor. A job that may not be changed keeps what it has.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use super::settings::{Places, Settings, settings};
use crate::freedom::Freedom;
use crate::ledger::{Holding, Vacancy};
use crate::model::OperatingPoint;
use crate::policy::{
    Ahead, Backfill, Chooser, Decision, Order, PastJob, Policy, Predictions, Room, View,
};
use crate::units::{Instant, JobId, Span, Watts};

/// Backfilling with settings that change while jobs run.
#[derive(Clone)]
pub struct Recapped<O> {
    backfill: Backfill<AtFloor, O>,
}

/// Starts jobs at their floor, and counts what running jobs have beyond theirs as free.
#[derive(Clone, Default)]
pub struct AtFloor {
    /// The settings of running jobs that may be changed, under this limit.
    settings: HashMap<JobId, Settings>,
    limit: Option<Watts>,
    /// Where jobs may start.
    places: Places,
}

impl AtFloor {
    /// The running jobs that may be changed, each with what it holds and its settings.
    fn changeable<'a>(
        &'a self,
        view: &'a View<'_>,
    ) -> impl Iterator<Item = (&'a Holding, &'a Settings)> {
        let running = view.ledger.running().iter();
        running.filter_map(|holding| Some((holding, self.settings.get(&holding.job)?)))
    }

    /// Looks up the settings of those that run, where they are not known.
    fn look_up(&mut self, view: &View<'_>) {
        let limit = view.ledger.lowest_limit(Instant::NEVER).min(view.ledger.limit());
        if self.limit != Some(limit) || view.changes.machine {
            (self.settings, self.limit) = (HashMap::new(), Some(limit));
        }
        for holding in view.changes.released {
            self.settings.remove(&holding.job);
        }
        let is_changeable = |job: JobId| {
            view.model.freedoms(job, view.job(job)).has(Freedom::Recaps)
                && view.ledger.suspended(job).is_none()
        };
        for holding in view.ledger.running().iter() {
            if !self.settings.contains_key(&holding.job) && is_changeable(holding.job) {
                let settings = settings(view, holding.job);
                // Somebody else may have started it on other nodes than it asks for.
                if settings[0].nodes == holding.nodes {
                    self.settings.insert(holding.job, settings);
                }
            }
        }
    }
}

fn floor(settings: &Settings) -> &OperatingPoint {
    &settings[settings.len() - 1]
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
        let point = *floor(&settings(view, job));
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
        self.places.welcome(view);
    }

    fn reclaimable(&self, view: &View<'_>) -> Watts {
        let beyond = |(holding, settings): (&Holding, &Settings)| {
            holding.power.saturating_sub(floor(settings).power)
        };
        self.changeable(view).map(beyond).sum()
    }
}

/// A job in the sharing out.
struct Sharer {
    job: JobId,
    /// What it holds now, and the time of that setting; nothing if it is about to start.
    held: Option<(Holding, Span)>,
    settings: Settings,
    /// Which of its settings it is to have.
    place: usize,
}

/// A step to the next faster setting, by how much faster the job gets per watt.
struct Step {
    gain: f64,
    sharer: usize,
    job: JobId,
}

impl Sharer {
    fn point(&self) -> &OperatingPoint {
        &self.settings[self.place]
    }

    /// The next step up, if there is one.
    fn step(&self, sharer: usize) -> Option<Step> {
        let faster = &self.settings[self.place.checked_sub(1)?];
        let slower = self.point();
        let fastest = self.settings[0].time.secs_f64();
        let speeds = fastest / faster.time.secs_f64() - fastest / slower.time.secs_f64();
        let watts = faster.power.saturating_sub(slower.power).as_f64();
        Some(Step { gain: speeds / watts.max(f64::MIN_POSITIVE), sharer, job: self.job })
    }

    /// How long it is expected to hold its setting from now on: what is left of its time, at its new speed.
    fn left(&self, now: Instant) -> Span {
        let point = self.point();
        let Some((held, before)) = &self.held else { return point.time };
        let left = u128::from(held.until.since(now).millis()) * u128::from(point.time.millis());
        let left = left.div_ceil(u128::from(before.millis().max(1)));
        Span::from_millis(u64::try_from(left).unwrap_or(u64::MAX))
    }

    /// The power that it holds now.
    fn held_power(&self) -> Watts {
        self.held.map_or(Watts::ZERO, |(held, _)| held.power)
    }
}

/// The time of the setting that a running job has.
fn present_time(view: &View<'_>, holding: &Holding, settings: &Settings) -> Span {
    let is_it =
        |point: &&OperatingPoint| (point.nodes, point.power) == (holding.nodes, holding.power);
    let found = settings.iter().find(is_it).copied();
    // It may be slower than what is the floor now.
    let found = found.or_else(|| view.menu(holding.job).iter().find(is_it).copied());
    found.map_or(floor(settings).time, |point| point.time)
}

impl<O: Order> Recapped<O> {
    /// The policy, going through the queue in this order.
    pub fn ordered(order: O) -> Self {
        Recapped { backfill: Backfill::ordered(AtFloor::default(), order) }
    }

    /// Those that share: the running jobs that may be changed, and those that are about to start, all at their
    /// floors.
    fn sharers(&self, view: &View<'_>, starts: &[Decision]) -> Vec<Sharer> {
        let running = self.backfill.chooser().changeable(view).map(|(holding, settings)| Sharer {
            job: holding.job,
            held: Some((*holding, present_time(view, holding, settings))),
            place: settings.len() - 1,
            settings: settings.clone(),
        });
        let starting = starts.iter().filter_map(|decision| match decision {
            Decision::Start { job, point } => {
                let mut settings = settings(view, *job);
                // It does not get slower than what was admitted.
                let place = settings.iter().position(|other| other == point)?;
                settings.truncate(place + 1);
                Some(Sharer { job: *job, held: None, settings, place })
            }
            _ => None,
        });
        let mut sharers: Vec<Sharer> = running.chain(starting).collect();
        sharers.sort_unstable_by_key(|sharer| sharer.job);
        sharers
    }

    /// What there is to be shared out beyond the floors of all sharers.
    fn spare(view: &View<'_>, sharers: &[Sharer]) -> Watts {
        let longest = sharers.iter().map(|sharer| sharer.left(view.now)).max();
        let until = view.now + longest.unwrap_or(Span::ZERO);
        let limit = view.ledger.lowest_limit(until).min(view.ledger.limit());
        let held = sharers.iter().map(Sharer::held_power).sum();
        let others = view.ledger.held().saturating_sub(held);
        let floors: Watts = sharers.iter().map(|sharer| sharer.point().power).sum();
        view.ledger.for_jobs(limit).saturating_sub(others).saturating_sub(floors)
    }

    /// Gives out watts, one step at a time.
    fn share_out(sharers: &mut [Sharer], mut spare: Watts) {
        let steps = sharers.iter().enumerate().filter_map(|(place, sharer)| sharer.step(place));
        let mut steps: BinaryHeap<Step> = steps.collect();
        while let Some(step) = steps.pop() {
            let sharer = &mut sharers[step.sharer];
            let faster = sharer.settings[sharer.place - 1].power;
            let more = faster.saturating_sub(sharer.point().power);
            // Who cannot have this step cannot have the one after it.
            if more <= spare {
                spare -= more;
                sharer.place -= 1;
                steps.extend(sharer.step(step.sharer));
            }
        }
    }

    /// Writes down what changes: what becomes less, then who starts, then what becomes more.
    fn write(&mut self, view: &View<'_>, sharers: &[Sharer], decisions: &mut Vec<Decision>) {
        let (mut starts, mut raises) = (Vec::new(), Vec::new());
        for sharer in sharers {
            let (job, point, left) = (sharer.job, *sharer.point(), sharer.left(view.now));
            let change = Decision::Change { job, point, pause: Span::ZERO, left };
            match (sharer.held, sharer.held_power().cmp(&point.power)) {
                (None, _) => starts.push(Decision::Start { job, point }),
                (Some(_), Ordering::Equal) => continue,
                (Some(_), Ordering::Greater) => decisions.push(change),
                (Some(_), Ordering::Less) => raises.push(change),
            }
            self.backfill.order_mut().goes_on(view, job, &point, left);
        }
        decisions.append(&mut starts);
        decisions.append(&mut raises);
    }
}

impl<O: Order + Clone + Send + 'static> Policy for Recapped<O> {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let mut starts = Vec::new();
        self.backfill.decide(view, &mut starts);
        let mut sharers = self.sharers(view, &starts);
        let spare = Self::spare(view, &sharers);
        Self::share_out(&mut sharers, spare);
        self.write(view, &sharers, decisions);
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

    fn forget(&mut self, job: JobId) -> bool {
        self.backfill.forget(job)
    }

    fn copy(&self) -> Option<Box<dyn Policy + Send>> {
        Some(Box::new(self.clone()))
    }
}

/// The largest gain comes first, and of equals the job that was submitted first.
impl Ord for Step {
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.job.cmp(&self.job))
    }
}

impl PartialOrd for Step {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Step {}
