//! Share: Busbar's own policy. It uses whatever freedom the site allows.
//!
//! - *caps*: a job that starts gets its share of the free watts ([`caps`]);
//! - *sizes*: a job that starts gets the nodes and watts that cost it and everybody who waits least ([`sizes`]);
//! - *recaps*: at each event the watts are shared out anew among all jobs that run (`recaps`);
//! - *resizes*: at each event nodes and watts are, by [PARM](super::parm)'s program, in which a job counts
//!   for more the less is left of it.
//!
//! In which [order](super::order) jobs are looked at is a parameter of its own: with `use=caps` and
//! `order=fcfs` the policy answers the question of power alone. The program of *resizes* has weights in place of
//! an order: with `order=history` what is left of a job is what is expected, otherwise what was asked for.
//! There, whoever has waited for eight halving times is not passed by anybody who would delay it (`resizes`).
//!
//! Until somebody has to wait, and again once nobody has waited for a week, jobs run as they were asked for, whatever may
//! be done to them (`calm`).

use std::fmt;
use std::str::FromStr;

use crate::freedom::{Freedom, Freedoms};
use crate::policy::order::{Aged, History, Keyed};
use crate::policy::parm::{Rest, Worth};
use crate::policy::{
    BuildContext, OrderSpec, OrderedBy, Parameter, Parm, ParmSpec, Policy, PolicyKind, Published,
    Submission,
};

mod below;
pub mod caps;
mod ladders;
pub(crate) mod recaps;
mod resizes;
mod settings;
pub mod sizes;
mod spare;

pub(crate) use caps::ByShare;
pub(crate) use recaps::Recapped;
use resizes::Resized;
pub(crate) use sizes::BySize;

/// The parameters of the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareSpec {
    /// In which order jobs are looked at.
    pub order: OrderSpec,
    /// What it makes use of; nothing for all that the site allows.
    pub uses: Option<Use>,
    /// Whether a job whose size is chosen keeps within its share of the power.
    pub fair: bool,
}

/// What the policy makes use of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Caps at the start.
    Caps,
    /// Caps and sizes at the start.
    Sizes,
    /// Caps at any time.
    Recaps,
    /// Caps and sizes at any time.
    Resizes,
}

impl Use {
    /// All of them.
    pub const ALL: [Use; 4] = [Use::Caps, Use::Sizes, Use::Recaps, Use::Resizes];

    /// The most that these freedoms allow.
    fn most(allowed: Freedoms) -> Self {
        let changes = allowed.has(Freedom::Recaps) || allowed.has(Freedom::Resizes);
        match (allowed.has(Freedom::Sizes), changes) {
            (true, true) => Use::Resizes,
            (true, false) => Use::Sizes,
            (false, true) => Use::Recaps,
            (false, false) => Use::Caps,
        }
    }

    /// What this needs.
    fn freedoms(self) -> Freedoms {
        use Freedom::{Caps, Recaps, Resizes, Sizes};
        Freedoms::of(match self {
            Use::Caps => &[Caps],
            Use::Sizes => &[Caps, Sizes],
            Use::Recaps => &[Caps, Recaps],
            Use::Resizes => &[Caps, Sizes, Recaps, Resizes],
        })
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Use::Caps => "caps",
            Use::Sizes => "sizes",
            Use::Recaps => "recaps",
            Use::Resizes => "resizes",
        })
    }
}

impl FromStr for Use {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Use::ALL.into_iter().find(|uses| uses.to_string() == text);
        named.ok_or("write caps, sizes, recaps or resizes")
    }
}

impl PolicyKind for ShareSpec {
    fn name(&self) -> &str {
        "share"
    }

    fn about(&self) -> &str {
        "EASY backfilling; free power is shared among free nodes"
    }

    fn usual(&self) -> Self {
        ShareSpec::default()
    }

    fn parameters(&self) -> Vec<Parameter<Self>> {
        let uses = Parameter::optional("use", |spec: &mut Self| &mut spec.uses);
        let fair = Parameter::switch("fair", |spec: &mut Self| &mut spec.fair);
        Parameter::of_order().into_iter().chain([uses, fair]).collect()
    }

    /// Where nobody says what is allowed, it chooses caps alone.
    fn build(&self, context: &BuildContext<'_>) -> Box<dyn Policy> {
        let allowed = context.freedoms.unwrap_or(Use::Caps.freedoms());
        match self.uses.unwrap_or(Use::most(allowed)) {
            Use::Caps => self.order.backfill(ByShare::default(), context),
            Use::Sizes => self.order.backfill(BySize::new(self.fair), context),
            Use::Recaps => self.recapped(context),
            Use::Resizes => {
                let learns = self.order.by == OrderedBy::History;
                let history = learns.then(|| History::that_predicts(self.order.predict));
                let halving = self.order.halving();
                let worth = Worth::Rest(Box::new(Rest { history, halving }));
                Box::new(Resized::by(Parm::weighing(ParmSpec::default(), worth)))
            }
        }
    }

    fn wants(&self) -> Freedoms {
        self.uses.unwrap_or(Use::Resizes).freedoms()
    }

    /// Jobs that mind a cap more than the clock says would be ended at limits that are too short.
    fn believes(&self, _may: Freedoms) -> Published {
        Published::Pass
    }

    fn minds_feeds(&self, _: Freedoms) -> bool {
        true
    }

    fn minds_kinds(&self, _: Freedoms) -> bool {
        true
    }

    fn minds_limits(&self, may: Freedoms) -> bool {
        matches!(self.uses.unwrap_or(Use::most(may)), Use::Caps | Use::Recaps)
    }

    fn order_mut(&mut self) -> Option<&mut OrderSpec> {
        Some(&mut self.order)
    }
}

impl ShareSpec {
    /// Backfilling in its order, with settings that change while jobs run.
    fn recapped(&self, context: &BuildContext<'_>) -> Box<dyn Policy> {
        let ageing = self.order.ageing();
        match self.order.by {
            OrderedBy::Fcfs => Box::new(Recapped::ordered(Submission)),
            OrderedBy::Aged => Box::new(Recapped::ordered(Keyed::new(Aged, ageing))),
            OrderedBy::History => {
                let history = History::that_predicts(self.order.predict);
                Box::new(Recapped::ordered(Keyed::new(history, ageing)))
            }
            OrderedBy::Multifactor => Box::new(Recapped::ordered(context.multifactor())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_as_is_allowed() {
        use Freedom::{Caps, Nodes, Recaps, Resizes, Sizes};
        for (allowed, uses) in [
            (&[Caps][..], Use::Caps),
            (&[Caps, Nodes], Use::Caps),
            (&[Caps, Sizes], Use::Sizes),
            (&[Caps, Recaps], Use::Recaps),
            (&[Caps, Sizes, Recaps], Use::Resizes),
            (&[Caps, Sizes, Recaps, Resizes], Use::Resizes),
        ] {
            assert_eq!(Use::most(Freedoms::of(allowed)), uses);
        }
    }
}
