//! Sharing all watts out anew below feeds, and where jobs ask for certain nodes.
//!
//! Rule: the same as without feeds and kinds, with the ledger as the judge of each step. On a copy of it all that run and may be changed go
//! down to their floors; then whoever fits starts; then watts are given out one step at a time, in the same order, as far as the
//! copy grants them: below every feed, and under every limit that is known to come.
//!
//! If jobs at their floors would meet a limit to come, because they last longer there, nobody is changed, unless too much is held
//! already.

use super::ladders::Climb;
use super::recaps::{AtFloor, Recapped, Sharer, granted, sharers, starting};
use crate::policy::rehearsal::{keep_possible, try_out};
use crate::policy::{Decision, Order, Policy, View};
use crate::units::Span;

/// The setting that a sharer is to have, as a decision.
fn change(sharer: &Sharer<'_>, view: &View<'_>) -> Decision {
    let (point, left) = (*sharer.point(), sharer.left(view.now));
    Decision::Change { job: sharer.job, point, pause: Span::ZERO, left }
}

/// Those that are above their floors go down to them.
fn to_floors(chooser: &AtFloor, view: &View<'_>) -> Vec<Decision> {
    let sharers = sharers(chooser, view, &[]);
    let above = sharers.iter().filter(|sharer| sharer.held_power() != sharer.point().power);
    above.map(|sharer| change(sharer, view)).collect()
}

impl<O: Order + Clone + Send + 'static> Recapped<O> {
    /// A turn on a machine whose feeds have limits, or whose nodes are of several kinds or shared.
    pub(super) fn decide_below_feeds(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        self.backfill.chooser_mut().look_up(view);
        let floors = to_floors(self.backfill.chooser(), view);
        let mut lowered = view.ledger.clone();
        floors.iter().for_each(|floor| _ = try_out(&mut lowered, floor));
        if view.ledger.is_within_limits() && !lowered.stays_within_limits() {
            return self.backfill.decide(view, decisions);
        }
        let mut starts = Vec::new();
        self.backfill.decide(&View { ledger: &lowered, ..*view }, &mut starts);
        starts.retain(|start| try_out(&mut lowered, start));
        let starting = starting(view, &starts);
        let ladders = &self.backfill.chooser().ladders;
        let mut sharers = sharers(self.backfill.chooser(), view, &starting);
        let mut new: Vec<Climb> =
            starting.iter().flat_map(|(job, ladder)| ladder.climbs(*job)).collect();
        new.sort_unstable();
        let place_of = &mut self.sharer_of;
        place_of.resize(view.jobs.len().max(place_of.len()), u32::MAX);
        (0..).zip(&sharers).for_each(|(place, sharer)| place_of[sharer.job.index()] = place);
        let least = new.iter().map(|climb| climb.more).fold(ladders.least_climb(), Ord::min);
        for climb in ladders.climbs_with(&new) {
            if lowered.free_power() < least {
                break;
            }
            let place = place_of[climb.job.index()] as usize;
            let Some(sharer) = sharers.get_mut(place).filter(|one| one.job == climb.job) else {
                continue;
            };
            if !sharer.is_stuck {
                sharer.place -= 1;
                if !try_out(&mut lowered, &change(sharer, view)) {
                    sharer.place += 1;
                    sharer.is_stuck = true;
                }
            }
        }
        let granted = granted(&sharers, view.now);
        let mut list = Vec::new();
        self.write(view, &granted, &mut starts.clone(), &mut list);
        // On the way from what is to what is to be, others have not got theirs yet, and may last longer.
        let wanted = list.len();
        keep_possible(view.ledger, &mut list);
        let is_start = |decision: &&Decision| !matches!(decision, Decision::Change { .. });
        if list.len() < wanted && list.iter().filter(is_start).count() < starts.len() {
            list = floors;
            list.append(&mut starts);
            keep_possible(view.ledger, &mut list);
        }
        decisions.append(&mut list);
    }
}
