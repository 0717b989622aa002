//! Settings at the start: free watts are shared equally among free nodes.
//!
//! Rule: backfilling with one reservation. A job that starts gets the fastest setting whose watts per node are
//! at most free watts over free nodes, with a margin of 2 %: every free node could get as much. It never gets a
//! slower setting than the fastest that could feed the whole machine. If the room does not admit that setting,
//! slower ones are tried down to this floor, and then faster ones, the slowest of them first. The head of the
//! queue gets its reservation at the setting with which it is expected to end first.
//!
//! While it is `calm`, a job gets the fastest setting that the room admits.
//!
//! What it deliberately does not do: predict how sensitive a job is to its cap.

use super::settings::{Places, is_within, settings};
use crate::ledger::Vacancy;
use crate::model::OperatingPoint;
use crate::policy::calm::is_calm;
use crate::policy::{Ahead, Chooser, Order, Room, View};
use crate::units::{JobId, Watts};

/// Settings by each job's share of the free watts.
///
/// Which setting a job gets depends on what is free; whether it starts does not depend on what its share is, as all
/// settings down to the floor are tried. So what was refused stays refused while nothing comes free.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByShare {
    /// Where jobs may start.
    places: Places,
}

/// Free watts, and 2 % more: settings come in steps, and the next one up is often just beyond.
#[inline]
fn with_margin(power: Watts) -> Watts {
    power.saturating_add(Watts::from_milliwatts(power.milliwatts() / 50))
}

impl Chooser for ByShare {
    fn choose(&mut self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint> {
        if view.job(job).nodes > room.nodes() {
            return None;
        }
        let settings = settings(view, job);
        if is_calm(view) {
            return settings.iter().find(|point| room.admits(point)).copied();
        }
        let power = with_margin(room.power());
        let fair = |point: &OperatingPoint| is_within(point, power, room.nodes().max(point.nodes));
        let fair = settings.iter().position(fair).unwrap_or(settings.len() - 1);
        let (faster, slower) = settings.split_at(fair);
        slower.iter().chain(faster.iter().rev()).find(|point| room.admits(point)).copied()
    }

    fn reserve(
        &mut self,
        view: &View<'_>,
        job: JobId,
        ahead: &Ahead<'_>,
    ) -> Option<(OperatingPoint, Vacancy)> {
        let settings = settings(view, job);
        let places = settings.iter().rev();
        let places = places.filter_map(|point| Some((*point, ahead.vacancy(point)?)));
        places.min_by_key(|(point, then)| then.at + point.time)
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

    fn begin<O: Order>(&mut self, view: &View<'_>, _order: &O) {
        self.places.welcome(view);
    }
}
