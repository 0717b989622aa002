//! Order by priority, as Slurm's multifactor plugin has it.
//!
//! Rule: the job with the highest priority comes first, and of equal ones the one that was submitted first. A priority is a
//! sum of points ([`priority`](crate::priority)): for age, up to a highest age; for the fair share of the user, which
//! is worked out anew once in each period; and for what the job asks for and is entitled to, which stays the same.
//!
//! Nobody sorts the queue. All jobs grow older equally fast, so while a job is not as old as jobs become, it keeps its place
//! among others like it and of the same user; and so it does afterwards. Each user has a lane for both
//! ([`Lanes`]). When fair shares are worked out anew, lanes move; as time passes, all jobs that do not become older
//! fall back behind those that do, by one number.
//!
//! What it deliberately does not do: look at priorities when nothing happens. They count whenever a job arrives or ends.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use crate::fairshare::{AssociationId, FairShare};
use crate::job::Job;
use crate::model::OperatingPoint;
use crate::policy::View;
use crate::policy::order::Order;
use crate::priority::{Members, Points, Priorities, Standing, Totals};
use crate::queue::{Fit, Lanes, Place};
use crate::units::{Instant, JobId, Span};

/// What a job held while the order was not there to see it; nothing if it begins and ends at once.
#[derive(Clone, Debug)]
pub struct Held {
    /// The job.
    pub job: Job,
    /// How many nodes it had.
    pub nodes: u32,
    /// From when.
    pub from: Instant,
    /// Until when.
    pub until: Instant,
}

/// What happened to a job that held something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ends,
    Arrives,
    Begins,
}

/// Waiting jobs by priority.
#[derive(Clone)]
pub struct Multifactor {
    priorities: Arc<Priorities>,
    /// The processors of the machine, where that is known.
    processors: Option<u32>,
    shares: FairShare,
    members: Members,
    waiting: Option<Waiting>,
    /// What running jobs are charged, in thousandths of units.
    charges: HashMap<JobId, Charge>,
    /// What jobs had when they started, if anybody wants to know.
    standings: Option<Vec<(JobId, Standing)>>,
}

#[derive(Clone, Copy)]
struct Charge {
    association: AssociationId,
    thousandths: u64,
}

/// The jobs that wait. A place in a lane is in points, turned round: the highest priority comes first.
#[derive(Clone)]
struct Waiting {
    /// Jobs that become older. Their places are as if that did not count.
    growing: Lanes,
    /// Jobs that are as old as they become, and fall back behind the others.
    oldest: Lanes,
    /// By how much they have fallen back.
    fallen: i64,
    /// When those that become older stop.
    stops: BinaryHeap<Reverse<(Instant, JobId)>>,
    /// Where each job stands that ever waited.
    stands: Vec<Stand>,
}

#[derive(Clone, Copy)]
struct Stand {
    lane: u32,
    is_oldest: bool,
    /// Without the offset of the lane.
    key: i64,
}

const NOWHERE: Stand = Stand { lane: u32::MAX, is_oldest: false, key: i64::MAX };

impl Waiting {
    fn place(&self, job: JobId) -> Place {
        let stand = self.stands.get(job.index()).copied().unwrap_or(NOWHERE);
        let place = Place { key: stand.key, job };
        match stand.is_oldest {
            true => self.fall(self.oldest.place_in(stand.lane, place)),
            false => self.growing.place_in(stand.lane, place),
        }
    }

    /// Where somebody stands now who has this place among the oldest.
    fn fall(&self, place: Place) -> Place {
        Place { key: place.key.saturating_add(self.fallen), ..place }
    }

    /// The place among the oldest of somebody who stands here now.
    fn among_oldest(&self, place: Place) -> Place {
        Place { key: place.key.saturating_sub(self.fallen), ..place }
    }

    /// The first of both.
    fn earlier(&self, growing: Option<Place>, oldest: Option<Place>) -> Option<JobId> {
        let oldest = oldest.map(|place| self.fall(place));
        growing.into_iter().chain(oldest).min().map(|place| place.job)
    }

    fn remove(&mut self, job: JobId) {
        let Some(stand) = self.stands.get(job.index()).copied() else { return };
        let lanes = if stand.is_oldest { &mut self.oldest } else { &mut self.growing };
        lanes.remove(stand.lane, Place { key: stand.key, job });
    }
}

impl Multifactor {
    /// The order of a site with so many processors, if that is known.
    pub(crate) fn of(priorities: Arc<Priorities>, processors: Option<u32>) -> Self {
        Multifactor {
            processors,
            shares: priorities.fair_share(),
            members: Members::of(&priorities),
            priorities,
            waiting: None,
            charges: HashMap::new(),
            standings: None,
        }
    }

    /// The same order, which keeps what jobs had when they started.
    pub(crate) fn that_keeps_standings(self) -> Self {
        Multifactor { standings: Some(Vec::new()), ..self }
    }

    /// Enters what jobs held before this order was made, up to `now`, with those that wait and held nothing. What was held is
    /// entered by whole periods from the start of the clock on, so that it does not matter how often somebody has begun anew.
    pub fn has_held(&mut self, past: &[Held], now: Instant) {
        self.shares.pass(Instant::ZERO);
        let event = |place: usize| {
            let Held { job, from, until, .. } = &past[place];
            let (from, until) = ((*from).min(now), (*until).min(now));
            let held = [(from, Event::Begins, place), (until, Event::Ends, place)];
            let arrives = (job.submit.min(now), Event::Arrives, place);
            held.into_iter().filter(move |_| from < until).chain([arrives])
        };
        let mut events: Vec<(Instant, Event, usize)> = (0..past.len()).flat_map(event).collect();
        events.sort_unstable();
        // Who came since the present period began has no factor yet.
        let began = self.priorities.settings().decay.began(now);
        let since = events.partition_point(|event| event.0 < began);
        for (of_this_period, events) in [(false, &events[..since]), (true, &events[since..])] {
            if of_this_period {
                self.shares.advance(began);
            }
            for &(at, event, place) in events {
                self.shares.pass(at);
                let Held { job, nodes, .. } = &past[place];
                let association = self.members.association(&mut self.shares, job);
                let thousandths = self.priorities.settings().billing.of(job, *nodes);
                match event {
                    Event::Begins => self.shares.begins(association, thousandths),
                    Event::Ends => self.shares.ends(association, thousandths),
                    Event::Arrives => (),
                }
            }
        }
        self.shares.pass(now);
    }

    /// Goes on with what users have used by another order, if it is of the same site and knows what they used. Whatever runs is to
    /// be adopted.
    pub fn go_on_from(&mut self, before: &Multifactor, now: Instant) -> bool {
        if !Arc::ptr_eq(&self.priorities, &before.priorities) || !before.shares.has_begun() {
            return false;
        }
        (self.shares, self.members) = (before.shares.clone(), before.members.clone());
        self.shares.pass(now);
        for charge in before.charges.values() {
            self.shares.ends(charge.association, charge.thousandths);
        }
        true
    }

    /// The priority that a waiting job has, by what gives it. Fair shares are those that the last decision was made by.
    /// Its age counts from an instant on.
    pub fn standing(&mut self, job: &Job, since: Instant, now: Instant, nodes: u32) -> Standing {
        let association = self.members.association(&mut self.shares, job);
        self.standing_of(association, job, self.priorities.age(since, now), nodes)
    }

    fn standing_of(
        &self,
        association: AssociationId,
        job: &Job,
        age: Points,
        nodes: u32,
    ) -> Standing {
        let totals = Totals { nodes, processors: self.processors.unwrap_or(nodes) };
        Standing {
            age,
            fair_share: Points(-self.offset(association)),
            fixed: self.priorities.fixed(job, association, totals),
        }
    }

    /// What moves the lane of a user.
    fn offset(&self, association: AssociationId) -> i64 {
        let weight = self.priorities.settings().weights.fair_share;
        -Points::factor(weight, self.shares.factor(association)).0
    }

    fn insert(&mut self, view: &View<'_>, id: JobId) {
        let job = view.job(id);
        let association = self.members.association(&mut self.shares, job);
        let fixed = self.priorities.fixed(job, association, self.totals(view)).sum().0;
        let since = view.waits_since(id);
        let stops = self.priorities.is_oldest_at(since);
        let is_oldest = stops <= view.now;
        let key = match is_oldest {
            true => -self.priorities.oldest().0,
            false => self.priorities.growth(since).0,
        };
        let stand = Stand { lane: association.index() as u32, is_oldest, key: key - fixed };
        let offset = self.offset(association);
        let Some(waiting) = &mut self.waiting else { return };
        if waiting.stands.len() <= id.index() {
            waiting.stands.resize(view.jobs.len().max(id.index() + 1), NOWHERE);
        }
        // It may have waited before: a node it ran on has failed.
        waiting.remove(id);
        waiting.stands[id.index()] = stand;
        let (place, footprint) = (Place { key: stand.key, job: id }, view.model.footprint(id, job));
        match is_oldest {
            true => waiting.oldest.insert(stand.lane, offset, place, &footprint),
            false => {
                waiting.stops.push(Reverse((stops, id)));
                waiting.growing.insert(stand.lane, offset, place, &footprint);
            }
        }
    }

    fn totals(&self, view: &View<'_>) -> Totals {
        let nodes = view.ledger.total_nodes();
        Totals { nodes, processors: self.processors.unwrap_or(nodes) }
    }

    /// A job starts that had waited.
    fn note_standing(&mut self, view: &View<'_>, id: JobId) {
        let Some(mut standings) = self.standings.take() else { return };
        let since = view.waits_since(id);
        let standing = self.standing(view.job(id), since, view.now, view.ledger.total_nodes());
        standings.push((id, standing));
        self.standings = Some(standings);
    }

    /// Time has passed.
    fn grow_old(&mut self, view: &View<'_>) {
        let Some(waiting) = &mut self.waiting else { return };
        waiting.fallen = self.priorities.growth(view.now).0;
        let mut stopped = Vec::new();
        while let Some(Reverse((_, job))) =
            waiting.stops.peek().filter(|next| next.0.0 <= view.now).copied()
        {
            waiting.stops.pop();
            let stand = waiting.stands[job.index()];
            if !stand.is_oldest && waiting.growing.remove(stand.lane, Place { key: stand.key, job })
            {
                stopped.push(job);
            }
        }
        stopped.into_iter().for_each(|job| self.insert(view, job));
    }

    /// Jobs ended, or go on that somebody else started.
    fn take_note(&mut self, view: &View<'_>) {
        for holding in view.changes.released {
            if let Some(charge) = self.charges.remove(&holding.job) {
                self.shares.ends(charge.association, charge.thousandths);
            }
        }
        // Who ended in the turn in which others were told of it is charged for nothing.
        for adopted in view.changes.adopted.iter().filter(|one| view.ledger.holds(one.job)) {
            self.charge(view, adopted.job, adopted.point.nodes);
        }
    }

    /// From now on a job is charged for so many nodes.
    fn charge(&mut self, view: &View<'_>, id: JobId, nodes: u32) {
        let job = view.job(id);
        let association = self.members.association(&mut self.shares, job);
        let thousandths = self.priorities.settings().billing.of(job, nodes);
        if let Some(before) = self.charges.insert(id, Charge { association, thousandths }) {
            self.shares.ends(before.association, before.thousandths);
        }
        self.shares.begins(association, thousandths);
    }
}

impl Order for Multifactor {
    fn begin(&mut self, view: &View<'_>) {
        let is_new = self.waiting.is_none();
        self.shares.pass(view.now);
        self.take_note(view);
        // While nobody waits, nobody asks who is before whom.
        let has_moved = !view.queue.is_empty() && self.shares.work_out();
        if is_new {
            let lanes = || Lanes::new(view.queue.classes().clone());
            self.waiting = Some(Waiting {
                growing: lanes(),
                oldest: lanes(),
                fallen: self.priorities.growth(view.now).0,
                stops: BinaryHeap::new(),
                stands: Vec::new(),
            });
            // Somebody else may have decided before.
            view.queue.iter().for_each(|job| self.insert(view, job));
            return;
        }
        if has_moved && let Some(mut waiting) = self.waiting.take() {
            let offset = |lane: u32| self.offset(AssociationId::of(lane));
            waiting.growing.move_lanes(offset);
            waiting.oldest.move_lanes(offset);
            self.waiting = Some(waiting);
        }
        self.grow_old(view);
        for &job in view.changes.arrived {
            // It may have come and gone within one turn.
            if view.queue.contains(job) {
                self.insert(view, job);
            }
        }
    }

    fn first(&self, _view: &View<'_>) -> Option<JobId> {
        let waiting = self.waiting.as_ref()?;
        waiting.earlier(waiting.growing.first(), waiting.oldest.first())
    }

    fn next(&self, _view: &View<'_>, after: JobId) -> Option<JobId> {
        let waiting = self.waiting.as_ref()?;
        let after = waiting.place(after);
        let oldest = waiting.oldest.after(waiting.among_oldest(after));
        waiting.earlier(waiting.growing.after(after), oldest)
    }

    fn next_fit(&self, _view: &View<'_>, after: JobId, ways: &[Fit]) -> Option<JobId> {
        let waiting = self.waiting.as_ref()?;
        let after = waiting.place(after);
        let oldest = waiting.oldest.next_fit_of(waiting.among_oldest(after), ways);
        waiting.earlier(waiting.growing.next_fit_of(after, ways), oldest)
    }

    fn moves(&self) -> bool {
        true
    }

    fn moves_at(&self) -> Option<Instant> {
        let waiting = self.waiting.as_ref()?;
        let oldest = waiting.stops.peek().map(|next| next.0.0);
        oldest.into_iter().chain(self.shares.next_period()).min()
    }

    fn has_points(&self, view: &View<'_>, id: JobId, least: u32) -> bool {
        let asked = view.job(id);
        let Some(stand) = self.waiting.as_ref().and_then(|waiting| waiting.stands.get(id.index()))
        else {
            return true;
        };
        let association = AssociationId::of(stand.lane);
        let nodes = view.ledger.total_nodes();
        let age = self.priorities.age(view.waits_since(id), view.now);
        let standing = self.standing_of(association, asked, age, nodes);
        standing.points()[0] >= Points::whole(least.into())
    }

    fn place(&self, job: JobId) -> Place {
        match &self.waiting {
            Some(waiting) => waiting.place(job),
            None => Place { key: i64::MAX, job },
        }
    }

    fn goes_on(&mut self, view: &View<'_>, job: JobId, point: &OperatingPoint, _left: Span) {
        if !self.charges.contains_key(&job) {
            self.note_standing(view, job);
        }
        self.charge(view, job, point.nodes);
    }

    fn by_priority(&mut self) -> Option<&mut Multifactor> {
        Some(self)
    }

    fn standings(&mut self) -> Vec<(JobId, Standing)> {
        self.standings.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn left(&mut self, job: JobId) {
        if let Some(waiting) = &mut self.waiting {
            waiting.remove(job);
        }
    }

    fn withdrawn(&mut self, job: JobId) {
        self.left(job);
        if let Some(charge) = self.charges.remove(&job) {
            self.shares.ends(charge.association, charge.thousandths);
        }
    }
}
