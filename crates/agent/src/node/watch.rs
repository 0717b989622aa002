//! Looks after a domain between requests: whether its limit is still there, and whether it is obeyed.

use std::time::{Duration, Instant};

use busbar_core::units::Watts;

use super::domain::{Domain, Verification};
use crate::domain::Effective;
use crate::reading::Reading;
use crate::wire::Event;

/// How much a meter may show beyond the tolerance, since counters are coarse.
const COARSENESS: Watts = Watts::from_milliwatts(500);

impl Domain {
    /// Notices that the domain cannot be read any more, or can again.
    pub(super) fn notice_loss(&mut self, events: &mut Vec<Event>) {
        let name = self.name.clone();
        match (&self.unreadable, &self.lost) {
            (Some(reason), None) => {
                let reason = reason.clone();
                self.lost = Some(reason.clone());
                events.push(Event::Lost { name, reason });
            }
            (None, Some(_)) => {
                self.lost = None;
                events.push(Event::Found { name, effective: self.look() });
            }
            _ => (),
        }
    }

    /// Compares the limit with the one that held when the agent looked last, also without a cap. If it is above
    /// the cap, it is set again.
    pub(super) fn keep_cap(
        &mut self,
        reassert: bool,
        now: Instant,
        period: Duration,
        events: &mut Vec<Event>,
    ) {
        let (expected, found) = (self.seen, self.look());
        if found == expected {
            return;
        }
        self.seen = found;
        if let Some(cap) = self.cap
            && reassert
            && self.counted(found) > cap
        {
            // What came of it shows in `seen`; the cap stays what it was.
            self.apply(cap, now, period);
            self.cap = Some(cap);
        }
        let (name, effective) = (self.name.clone(), self.seen);
        events.push(Event::Changed { name, expected, found, effective });
    }

    /// Compares what the domain draws with its cap, and reports when that changes.
    pub(super) fn verify(&mut self, tolerance: u32, now: Instant, events: &mut Vec<Event>) {
        let (Some(_), Effective::Limit(cap)) = (self.cap, self.seen) else { return };
        match self.verification {
            Verification::None => return,
            Verification::Due(from) if now < from => return,
            _ => (),
        }
        let name = self.name.clone();
        let power = self.meter.power().clone();
        let more = cap.milliwatts().saturating_mul(tolerance.into()) / 100;
        let bound = cap + Watts::from_milliwatts(more) + COARSENESS;
        let (state, event) = match &power {
            Reading::Unknown { reason, .. } => {
                let reason = reason.clone();
                (Verification::Blind, Event::Unverified { name, cap, reason })
            }
            known if known.value().is_some_and(|power| *power > bound) => {
                (Verification::Exceeded, Event::Exceeded { name, cap, power })
            }
            _ => (Verification::Verified, Event::Verified { name, cap, power }),
        };
        if self.verification != state {
            self.verification = state;
            events.push(event);
        }
    }
}
