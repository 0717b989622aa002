//! What can be held from now on without a break, by how long it is held.
//!
//! Whoever begins now can have the least that is free at any time until its end. What is free rises as running jobs
//! end, and falls only where a limit falls or a reservation begins. So this least is a function of few steps, however
//! many jobs run, and it stays so when claims are taken out of it that begin now.

use smallvec::SmallVec;

use super::{Availability, Claim, narrow, signed};
use crate::units::{Instant, Watts};

/// Nodes and power that can be had from now until some end: the later the end, the less.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tenure {
    nodes: Falling,
    power: Falling,
}

/// A function of the end that only falls.
///
/// For each step: the last end for which it holds, and its value. Ends rise, values fall, and the last step holds for
/// every end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Falling(SmallVec<[(Instant, i64); 4]>);

impl Falling {
    fn from(value: i64) -> Self {
        Falling(SmallVec::from_iter([(Instant::NEVER, value)]))
    }

    /// The value for the latest of all ends.
    #[inline]
    fn least(&self) -> i64 {
        self.0[self.0.len() - 1].1
    }

    /// For ends after an instant, which is after all that were named before, the value is this, if that is less.
    fn fall(&mut self, after: Instant, value: i64) {
        if value < self.least() {
            let last = self.0.len() - 1;
            self.0[last].0 = after;
            self.0.push((Instant::NEVER, value));
        }
    }

    /// The step that holds for an end.
    fn step(&self, end: Instant) -> usize {
        let last = self.0.len() - 1;
        self.0[..last].iter().position(|(until, _)| end <= *until).unwrap_or(last)
    }

    /// So much less is free until then. A later end cannot have more than an earlier one.
    fn take(&mut self, end: Instant, amount: i64) {
        let last = self.step(end);
        self.0[..=last].iter_mut().for_each(|step| step.1 -= amount);
        let value = self.0[last].1;
        let alike = self.0[last + 1..].iter().take_while(|step| step.1 >= value).count();
        self.0[last].0 = self.0[last + alike].0;
        self.0.drain(last + 1..=last + alike);
    }
}

impl Availability {
    /// What can be held from the first instant on.
    pub(crate) fn tenure(&self) -> Tenure {
        // Most steps are above the least so far, as running jobs end.
        let mut least = self.nodes[0];
        let mut nodes = Falling::from(i64::from(least));
        for (at, free) in self.from.iter().zip(&self.nodes) {
            if *free < least {
                least = *free;
                nodes.fall(*at, i64::from(least));
            }
        }
        Tenure { nodes, power: self.power_until() }
    }

    fn power_until(&self) -> Falling {
        let first = self.from[0];
        let granted = |at: Instant| self.limits.as_ref().map_or(0, |limits| limits.at(at));
        let mut power = Falling::from(granted(first) + self.power[0]);
        // Most steps are above the least so far whatever the limit is, and the limits need not be looked through.
        let lowest = self.limits.as_ref().map_or(0, |limits| limits.lowest(first));
        let mut along = self.limits.as_ref().map(|limits| (limits, limits.budget.along(first)));
        let mut least = power.least();
        for (step, free) in self.power.iter().enumerate() {
            if lowest + free >= least {
                continue;
            }
            let Some((limits, along)) = &mut along else {
                power.fall(self.from[step], *free);
                least = power.least();
                continue;
            };
            let until = self.from.get(step + 1).map_or(Instant::NEVER, |next| *next);
            let mut from = self.from[step];
            let mut below = |from: Instant, least: i64| {
                along.first_below(limits.granting(least - free), from, until)
            };
            while let Some(at) = below(from, power.least()) {
                power.fall(at, limits.at(at) + free);
                from = at;
            }
            least = power.least();
        }
        power
    }
}

impl Tenure {
    /// Whether a claim that begins now fits for its whole time.
    #[inline]
    pub(crate) fn admits(&self, now: Instant, claim: &Claim) -> bool {
        let end = now + claim.time;
        i64::from(narrow(claim.nodes)) <= self.nodes.0[self.nodes.step(end)].1
            && signed(claim.power) <= self.power.0[self.power.step(end)].1
    }

    /// Takes out a claim that begins now.
    pub(crate) fn take(&mut self, now: Instant, claim: &Claim) {
        let end = now + claim.time;
        self.nodes.take(end, i64::from(narrow(claim.nodes)));
        self.power.take(end, signed(claim.power));
    }

    /// The steps: nodes and power that can be had, and the last end for which they can.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (Instant, u32, Watts)> + '_ {
        let mut next = Some((0, 0));
        std::iter::from_fn(move || {
            let (node, watt) = next?;
            let ((nodes_end, nodes), (power_end, power)) = (self.nodes.0[node], self.power.0[watt]);
            let end = nodes_end.min(power_end);
            let after =
                (node + usize::from(nodes_end == end), watt + usize::from(power_end == end));
            next = (end != Instant::NEVER).then_some(after);
            let nodes = u32::try_from(nodes.max(0)).unwrap_or(u32::MAX);
            Some((end, nodes, Watts::from_milliwatts(power.max(0) as u64)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::ledger::Ledger;
    use crate::machine::Machine;
    use crate::model::OperatingPoint;
    use crate::units::{JobId, Span};
    use proptest::prelude::*;

    fn claim((nodes, watts, seconds): (u32, u32, u32)) -> Claim {
        Claim { nodes, power: Watts::from_watts(watts), time: Span::from_secs(seconds) }
    }

    proptest! {
        /// A tenure admits what fits for its whole time by the steps of what is free, whatever was taken before, now or
        /// later.
        #[test]
        fn it_agrees_with_what_is_free(
            limits in prop::collection::vec((1u32..20, 0u32..20), 1..12),
            running in prop::collection::vec((1u32..4, 0u32..4, 1u32..80), 0..6),
            promised in (1u32..12, 0u32..16, 1u32..60),
            asked in prop::collection::vec((1u32..8, 0u32..12, 1u32..120), 1..20),
        ) {
            let mut at = 0;
            let limits = limits.into_iter().map(|(gap, watts)| {
                at += gap;
                (Instant::from_secs(at), Watts::from_watts(watts))
            });
            let machine = Machine::of_processors(12).unwrap();
            let mut ledger = Ledger::new(&machine, Budget::from_steps(limits.collect()).unwrap());
            for (job, (nodes, watts, seconds)) in (0..).map(JobId).zip(running) {
                let Claim { nodes, power, time } = claim((nodes, watts, seconds));
                // Who does not fit does not run.
                let _ = ledger.start(job, &OperatingPoint { cores: 1, nodes, cap: power, time, power });
            }
            let (mut free, now, promised) = (Availability::of(&ledger), ledger.now(), claim(promised));
            if let Some(then) = free.earliest(now, &promised) {
                free.take(then, &promised);
            }
            let mut tenure = free.tenure();
            for claim in asked.into_iter().map(claim) {
                let fits = free.fits(now, &claim);
                prop_assert_eq!(tenure.admits(now, &claim), fits, "{:?} in {:?} of {:?}", claim, tenure, free);
                let end = now + claim.time;
                let (_, nodes, power) = tenure.steps().find(|step| end <= step.0).unwrap();
                prop_assert_eq!(claim.nodes <= nodes && claim.power <= power, fits || claim.power == Watts::ZERO && claim.nodes <= nodes);
                if fits {
                    free.take(now, &claim);
                    tenure.take(now, &claim);
                    prop_assert_eq!(&tenure, &free.tenure());
                }
            }
        }
    }
}
