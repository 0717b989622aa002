//! The parameters of PPartition, as text that round-trips.

use std::fmt;
use std::str::FromStr;

use crate::call::{Call, CallError};
use crate::freedom::{Freedom, Freedoms};
use crate::machine::Machine;
use crate::policy::three_queues::Queueing;
use crate::policy::{BuildContext, Field, Parameter, Policy, PolicyKind, Published, ppartition};
use crate::units::Share;

/// PPartition with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PpartitionSpec {
    /// The queues.
    pub queueing: Queueing,
    /// What a job is given while power is free.
    pub first: First,
    /// The fewest processors a job starts on, of those it asks for or of those that the power feeds if
    /// these are fewer.
    pub fewest: Share,
    /// What a job's share is, and how others make room for it.
    pub sharing: Sharing,
}

/// What a job's share is, and how others make room for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// The share is of the processors that the power feeds. What a job at its floor cannot give,
    /// others give, and nobody is offered less than what is free.
    #[default]
    Busbar,
    /// As in the paper: the share is of all processors, and of each job its part is taken or what it
    /// can do without, if that is less.
    Paper,
    /// As in the paper, but power goes where it gains most among all busy processors, and who is not let in by the
    /// paper's rule is if all jobs together then get no less done.
    Gain,
}

impl FromStr for Sharing {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "busbar" => Ok(Sharing::Busbar),
            "paper" => Ok(Sharing::Paper),
            "gain" => Ok(Sharing::Gain),
            _ => Err("valid: busbar, paper, gain"),
        }
    }
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sharing::Busbar => "busbar",
            Sharing::Paper => "paper",
            Sharing::Gain => "gain",
        })
    }
}

/// What a job is given while power is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum First {
    /// Its share of the machine's power.
    #[default]
    Share,
    /// As much as its processors can use.
    Uncapped,
}

impl FromStr for First {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "share" => Ok(First::Share),
            "uncapped" => Ok(First::Uncapped),
            _ => Err("valid: share, uncapped"),
        }
    }
}

impl fmt::Display for First {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            First::Share => "share",
            First::Uncapped => "uncapped",
        })
    }
}

/// What is not in the paper keeps jobs from a life on few processors beside free ones.
impl Default for PpartitionSpec {
    fn default() -> Self {
        PpartitionSpec {
            queueing: Queueing::default(),
            first: First::default(),
            fewest: Share::percent(50),
            sharing: Sharing::default(),
        }
    }
}

impl PolicyKind for PpartitionSpec {
    fn name(&self) -> &str {
        "ppartition"
    }

    fn about(&self) -> &str {
        "power shared among jobs on processors with manufacturing variation; each processor has its own cap"
    }

    fn usual(&self) -> Self {
        PpartitionSpec::default()
    }

    fn parameters(&self) -> Vec<Parameter<Self>> {
        vec![
            Parameter::of("queues", |spec| &mut spec.queueing.sizes),
            Parameter::of("dispatch", |spec| &mut spec.queueing.rule),
            Parameter::of("first", |spec| &mut spec.first),
            Parameter::of("fewest", |spec| &mut spec.fewest),
            Parameter::of("sharing", |spec| &mut spec.sharing),
        ]
    }

    fn check(&self, call: &Call) -> Result<(), CallError> {
        match self.fewest > Share::WHOLE {
            true => {
                Err(call.wrong("fewest", format!("{} is more than a job asks for", self.fewest)))
            }
            false => Ok(()),
        }
    }

    fn build(&self, context: &BuildContext<'_>) -> Box<dyn Policy> {
        let is_by_job = |machine: &Machine| machine.kinds.is_some() || machine.feeds.is_some();
        ppartition::policy(*self, context.machine.is_some_and(is_by_job))
    }

    fn minds_feeds(&self, _: Freedoms) -> bool {
        true
    }

    fn minds_kinds(&self, _: Freedoms) -> bool {
        true
    }

    fn knows_nodes(&self, field: &Field<'_>) -> bool {
        field.kinds.is_none() && !field.has_feeds
    }

    fn wants(&self) -> Freedoms {
        self.needs() | Freedoms::of(&[Freedom::Sizes])
    }

    fn needs(&self) -> Freedoms {
        Freedoms::of(&[Freedom::Caps, Freedom::Recaps, Freedom::Nodes])
    }

    /// It has a curve for each processor, which was measured.
    fn believes(&self, _: Freedoms) -> Published {
        Published::Measured
    }
}
