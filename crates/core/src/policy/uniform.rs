//! Uniform capping: what a site does that does not know its processors. It is what PPartition is
//! measured against (Gholkar, Mueller and Rountree: Power tuning for HPC jobs under manufacturing
//! variations).
//!
//! Rule: every processor has the same cap, and so many of them are in use, picked at random, as the
//! budget feeds at that cap. A job gets as many of those as it asks for, or waits. What a processor
//! leaves of its cap nobody gets.
//!
//! On nodes of several kinds, those of a kind are alike, and it does not matter which are picked (`by_kind`).
//!
//! A job that could not start even alone under the largest limit to come is given up: it asks for more
//! processors than that feeds, or the cap is below what can be set.

use std::fmt;
use std::str::FromStr;

use crate::freedom::{Freedom, Freedoms};
use crate::model::{Caps, Varied};
use crate::policy::ppartition::{kind, reliable};
use crate::policy::three_queues::{Queueing, ThreeQueues};
use crate::policy::{
    BuildContext, Decision, DropReason, Field, Parameter, Policy, PolicyKind, Published, Unfit,
    View,
};
use crate::units::{JobId, Span, Watts};

mod by_kind;
mod picked;

use by_kind::ByKind;
use picked::{Alone, Picked};

/// The cap of every processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UniformCap {
    /// The lowest that can be set.
    #[default]
    Min,
    /// The machine's power in equal parts, or the lowest cap if that is more.
    Share,
    /// What a processor is rated at.
    Tdp,
    /// A limit in watts.
    Power(Watts),
}

impl FromStr for UniformCap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "min" => Ok(UniformCap::Min),
            "share" => Ok(UniformCap::Share),
            "tdp" => Ok(UniformCap::Tdp),
            power => match power.parse() {
                Ok(Watts::ZERO) => Err("a processor needs power".to_owned()),
                Ok(power) => Ok(UniformCap::Power(power)),
                Err(error) => Err(format!("{error}, or min, share, tdp")),
            },
        }
    }
}

impl fmt::Display for UniformCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UniformCap::Min => f.write_str("min"),
            UniformCap::Share => f.write_str("share"),
            UniformCap::Tdp => f.write_str("tdp"),
            UniformCap::Power(power) => power.fmt(f),
        }
    }
}

/// Uniform capping with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniformSpec {
    /// The cap of every processor.
    pub cap: UniformCap,
    /// The queues.
    pub queueing: Queueing,
    /// Where the random numbers start by which processors are picked.
    pub seed: u64,
}

impl Default for UniformSpec {
    fn default() -> Self {
        UniformSpec { cap: UniformCap::default(), queueing: Queueing::default(), seed: 1 }
    }
}

impl PolicyKind for UniformSpec {
    fn name(&self) -> &str {
        "uniform"
    }

    fn about(&self) -> &str {
        "the same cap for every processor"
    }

    fn usual(&self) -> Self {
        UniformSpec::default()
    }

    fn parameters(&self) -> Vec<Parameter<Self>> {
        vec![
            Parameter::of("cap", |spec| &mut spec.cap),
            Parameter::of("queues", |spec| &mut spec.queueing.sizes),
            Parameter::of("dispatch", |spec| &mut spec.queueing.rule),
            Parameter::number("seed", |spec| &mut spec.seed),
        ]
    }

    fn build(&self, context: &BuildContext<'_>) -> Box<dyn Policy> {
        match context.machine.is_some_and(|machine| machine.kinds.is_some()) {
            true => Box::new(ByKind::with(*self)),
            false => Box::new(Uniform::with(*self)),
        }
    }

    fn minds_kinds(&self, _: Freedoms) -> bool {
        true
    }

    fn wants(&self) -> Freedoms {
        Freedoms::of(&[Freedom::Caps, Freedom::Nodes])
    }

    fn needs(&self) -> Freedoms {
        self.wants()
    }

    fn minds_feeds(&self, _: Freedoms) -> bool {
        true
    }

    fn suits(&self, field: &Field<'_>) -> Result<(), Unfit> {
        let lowest = field.choices.levels[0];
        match self.cap {
            // Nodes of a kind that cannot be capped so low run under their lowest cap.
            UniformCap::Power(cap) if cap < lowest && field.kinds.is_none() => {
                Err(Unfit::Here(format!(
                    "a node of this machine cannot be capped below {lowest}; give a higher cap"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Each processor has a curve, which was measured.
    fn believes(&self, _: Freedoms) -> Published {
        Published::Measured
    }
}

/// The same cap for everybody.
pub(crate) struct Uniform {
    spec: UniformSpec,
    queues: ThreeQueues,
    processors: Picked,
    alone: Alone,
}

impl Uniform {
    /// The policy with these parameters.
    pub(crate) fn with(spec: UniformSpec) -> Self {
        Uniform {
            spec,
            queues: ThreeQueues::new(spec.queueing),
            processors: Picked::default(),
            alone: Alone::default(),
        }
    }

    fn cap(&self, varied: &Varied, power: Watts) -> Watts {
        let floor = varied.processors().floor();
        match self.spec.cap {
            UniformCap::Min => floor,
            UniformCap::Share => {
                let count = varied.processors().names().len() as u64;
                Watts::from_milliwatts(power.milliwatts() / count.max(1)).max(floor)
            }
            UniformCap::Tdp => varied.rated(),
            UniformCap::Power(cap) => varied.added(cap),
        }
    }

    /// How many processors a budget feeds at a cap; those that were picked first are in use.
    fn fed(&self, cap: Watts, power: Watts) -> u32 {
        let fed = power.milliwatts() / cap.milliwatts().max(1);
        u32::try_from(fed).unwrap_or(u32::MAX).min(self.processors.count())
    }

    /// Gives up who can never run; the others wait in their queues.
    fn note(&mut self, view: &View<'_>, varied: &Varied, decisions: &mut Vec<Decision>) {
        let count = varied.processors().names().len() as u32;
        if self.processors.count() != count {
            self.processors = Picked::at_random(count, self.spec.seed);
        }
        if !view.changes.nothing_freed() {
            self.queues.reopen();
        }
        if view.changes.arrived.is_empty() {
            return;
        }
        let largest = view.ledger.most_for_jobs(Span::ZERO).min(Watts::LARGEST);
        let cap = self.cap(varied, largest);
        let fed = self.fed(cap, largest);
        let fed = match view.ledger.has_feeds() {
            true => self.processors.fed_alone(view, fed, cap),
            false => fed,
        };
        for &job in view.changes.arrived {
            let kind = kind(view, varied, job);
            let alone =
                (kind.nodes <= fed).then(|| self.alone.on(&mut self.processors, kind.nodes, cap));
            match alone.flatten().and_then(|caps| held(view, job, caps, largest)) {
                Some(_) => self.queues.insert(job, kind),
                None => {
                    decisions.push(Decision::Drop { job, reason: DropReason::NeverFed });
                }
            }
        }
    }
}

impl Policy for Uniform {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let Some(varied) = view.model.varied() else { return };
        self.note(view, varied, decisions);
        let power = reliable(view);
        let cap = self.cap(varied, power);
        let mut left = power.saturating_sub(view.ledger.held());
        self.processors.follow(view);
        if view.ledger.has_feeds() {
            self.processors.leave_out_unfed(view, cap);
        }
        let mut free = self.processors.free_of_first(self.fed(cap, power));
        let mut turn = self.queues.turn(free);
        while let Some((job, kind)) = turn.next() {
            // Nobody holds less than the cap.
            let least = cap.checked_mul(kind.nodes);
            let start = if kind.nodes <= free && least.is_some_and(|least| least <= left) {
                let caps = self.processors.first_free(kind.nodes, cap);
                caps.and_then(|caps| Some((held(view, job, &caps, left)?, caps)))
            } else {
                None
            };
            match start {
                Some((power, caps)) => {
                    self.processors.take(&caps);
                    free -= kind.nodes;
                    left -= power;
                    decisions.push(Decision::StartOn { job, caps });
                    turn.started(&mut self.queues, job, kind);
                }
                None => turn.refused(&mut self.queues, kind),
            }
        }
    }

    fn names_nodes(&self) -> bool {
        true
    }
}

/// What a job holds under these caps, if it may have them and there is so much.
fn held(view: &View<'_>, job: JobId, caps: &Caps, left: Watts) -> Option<Watts> {
    // A cap below what can be set is offered to nobody.
    let point = view.model.on(job, view.job(job), caps)?;
    (point.power <= left).then_some(point.power)
}
