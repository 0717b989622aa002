//! Waiting jobs that ask for the same.
//!
//! What a job may do depends on its application, the nodes it asks for, its terms, the room, and on
//! the time it asks for. Jobs that are alike in all but the last are in one group: for which times
//! they may start now is worked out once for all of them, and the first that asks for such a time is
//! found without looking at each. So a pass costs what differs in the queue, not what waits.

use std::collections::HashMap;

use crate::job::Terms;
use crate::model::{OperatingPoint, TimedPoint};
use crate::policy::rmap::size;
use crate::policy::{Order, Room, View};
use crate::queue::Place;
use crate::units::{JobId, Span, Watts};

mod members;

use members::Members;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    alike: u32,
    nodes: u32,
    terms: Terms,
}

/// The times that jobs of a group may have asked for so that they start: a few ranges.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    ranges: [Option<(Span, Span)>; 3],
}

impl Requests {
    /// These, too.
    pub(super) fn accept(&mut self, least: Span, most: Span) {
        if let Some(place) = self.ranges.iter_mut().find(|range| range.is_none()) {
            *place = Some((least, most));
        }
    }

    /// Whether every time is accepted.
    pub(super) fn has_all(&self) -> bool {
        self.ranges.contains(&Some((Span::ZERO, Span::FOREVER)))
    }

    /// Whether some time between these is accepted.
    fn has_any(&self, least: Span, most: Span) -> bool {
        self.ranges.iter().flatten().any(|range| range.0 <= most && least <= range.1)
    }
}

/// What the jobs of a group wait for under a limit of the budget that does not change.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) limit: Watts,
    /// The fair share of each.
    pub(super) share: Watts,
    /// The configuration, with the limit of a job that asks for no time.
    pub(super) way: TimedPoint,
}

/// What a job of a group wants while limits are to come.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    /// What jobs may hold in all for as long as it asks for, ...
    pub(super) bound: Watts,
    /// ... of a machine of this many nodes.
    pub(super) nodes: u32,
    /// The time it asks for.
    pub(super) requested: Span,
    /// Its fair share of that.
    pub(super) share: Watts,
    /// The configuration it waits for.
    pub(super) point: OperatingPoint,
}

/// What is known of a group's wants, from when somebody last asked.
#[derive(Clone, Copy, Default)]
pub(super) struct Known {
    /// Under a limit that stays.
    pub(super) wanted: Option<Wanted>,
    /// While limits are to come: what the last of them wanted about whom somebody asked.
    pub(super) wish: Option<Wish>,
    /// The fewest nodes and the least power of the ways that they put up with.
    pub(super) least_tolerated: Option<(u32, Watts)>,
}

/// What becomes of a job, as far as others of its group may learn from it.
pub(super) enum Answer {
    /// Jobs of its group that asked for these times may start.
    Requests(Requests),
    /// It may start or not; nothing is said of others, but that those who ask for the same time
    /// may as well.
    Job(bool),
}

/// The waiting jobs, by what they ask for.
#[derive(Clone, Default)]
pub(super) struct Alike {
    groups: Vec<Group>,
    /// The groups of which somebody waits, in no order: a log may have thousands of kinds.
    live: Vec<usize>,
    /// Where the group of a kind is.
    places: HashMap<Kind, usize>,
    /// By job: its group, and where it stood in it when it last waited.
    group_of: Vec<Option<(usize, Place)>>,
}

#[derive(Clone)]
struct Group {
    members: Members,
    /// None of them runs on fewer nodes or less power.
    least: (u32, Watts),
    /// What they wait for, once somebody asked.
    known: Known,
    /// Whether all were refused in this turn. There is only less room as a turn goes on.
    is_refused: bool,
    /// Or those who asked for these times.
    refused: Vec<Span>,
}

impl Alike {
    /// A turn begins: jobs may have arrived, and there is room again.
    pub(super) fn begin(&mut self, view: &View<'_>, order: &impl Order) {
        for &place in &self.live {
            self.groups[place].is_refused = false;
            self.groups[place].refused.clear();
        }
        for &id in view.changes.arrived {
            let job = view.job(id);
            let kind =
                Kind { alike: view.model.alike(id, job), nodes: size(view, id), terms: job.terms };
            let place = *self.places.entry(kind).or_insert_with(|| {
                let nodes = view.model.footprint(id, job).nodes;
                let power = view.model.thriftiest(id, job).point.power;
                self.groups.push(Group {
                    members: Members::default(),
                    least: (nodes, power),
                    known: Known::default(),
                    is_refused: false,
                    refused: Vec::new(),
                });
                self.groups.len() - 1
            });
            let group = &mut self.groups[place];
            if group.members.is_empty() {
                group.is_refused = false;
                group.refused.clear();
                self.live.push(place);
            }
            let stands = order.place(id);
            group.members.insert(stands, job.requested);
            if id.index() >= self.group_of.len() {
                self.group_of.resize(id.index() + 1, None);
            }
            self.group_of[id.index()] = Some((place, stands));
        }
    }

    pub(super) fn remove(&mut self, job: JobId) {
        let Some(&Some((place, stands))) = self.group_of.get(job.index()) else { return };
        let group = &mut self.groups[place];
        let waited = !group.members.is_empty();
        group.members.remove(stands);
        if waited && group.members.is_empty() {
            self.live.retain(|other| *other != place);
        }
    }

    /// The first job after a place that may start in this room, by what `ask` says of jobs.
    /// What it learns of a group's wants it may keep.
    pub(super) fn first(
        &mut self,
        after: Place,
        room: &Room,
        mut ask: impl FnMut(JobId, &mut Known) -> Answer,
    ) -> Option<JobId> {
        let mut first: Option<Place> = None;
        for &place in &self.live {
            let group = &mut self.groups[place];
            if group.is_refused {
                continue;
            }
            if group.least.0 > room.nodes() || group.least.1 > room.power() {
                group.is_refused = true;
                continue;
            }
            first = group.first(after, first, &mut ask).or(first);
        }
        first.map(|place| place.job)
    }
}

impl Group {
    /// The first job after a place, and before another if there is one, that may start.
    fn first(
        &mut self,
        mut after: Place,
        before: Option<Place>,
        ask: &mut impl FnMut(JobId, &mut Known) -> Answer,
    ) -> Option<Place> {
        let any = |_: Span, _: Span| true;
        let is_before = |place: Place| before.is_none_or(|before| place < before);
        while let Some((place, requested)) = self.members.first(after, any) {
            if !is_before(place) {
                return None;
            }
            if !self.refused.contains(&requested) {
                match ask(place.job, &mut self.known) {
                    Answer::Job(true) => return Some(place),
                    Answer::Job(false) => self.refused.push(requested),
                    Answer::Requests(requests) => {
                        let wanted = |least, most| requests.has_any(least, most);
                        let found = self.members.first(after, wanted);
                        self.is_refused = found.is_none();
                        return found.map(|(place, _)| place).filter(|place| is_before(*place));
                    }
                }
            }
            after = place;
        }
        // All that follow were refused, and whoever comes before was passed for this turn.
        self.is_refused = true;
        None
    }
}
