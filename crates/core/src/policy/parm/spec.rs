//! The parameters of PARM, as text that round-trips.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::call::{Call, CallError};
use crate::freedom::{Freedom, Freedoms};
use crate::policy::{BuildContext, Parameter, Parm, Policy, PolicyKind, Published};
use crate::units::{Share, Span};

/// PARM with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParmSpec {
    /// What may differ from what the user asks for.
    pub flexibility: Flexibility,
    /// How much fairness counts: the power of the weights.
    pub alpha: f64,
    /// How many caps a processor may have.
    pub levels: u32,
    /// For how long a job keeps its nodes after they changed.
    pub guard: Span,
    /// How far the choice may be from the best.
    pub gap: Share,
    /// Steps of the solver at most, at each turn; fewer with very many jobs.
    pub effort: u64,
    /// Which waiting jobs enter the program.
    pub window: Window,
}

/// What may differ from what the user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flexibility {
    /// Nothing but the caps.
    None,
    /// The number of nodes at the start.
    Moldable,
    /// The number of nodes at any time.
    Malleable,
}

impl Flexibility {
    const ALL: [Flexibility; 3] =
        [Flexibility::None, Flexibility::Moldable, Flexibility::Malleable];

    fn name(self) -> &'static str {
        match self {
            Flexibility::None => "none",
            Flexibility::Moldable => "moldable",
            Flexibility::Malleable => "malleable",
        }
    }
}

impl FromStr for Flexibility {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Flexibility::ALL.into_iter().find(|flexibility| flexibility.name() == text);
        let valid = || Flexibility::ALL.map(Flexibility::name).join(", ");
        found.ok_or_else(|| format!("valid: {}", valid()))
    }
}

impl fmt::Display for Flexibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which of the jobs that could start enter the program of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Every job that waits, as in the paper.
    All,
    /// The first ones, until at their smallest they take so many times what is free or can be freed.
    Times(NonZeroU32),
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(times) => Ok(Window::Times(times)),
            Err(_) if text == "all" => Ok(Window::All),
            Err(_) => Err("valid: all, or a whole number from 1".to_owned()),
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Window::All => f.write_str("all"),
            Window::Times(times) => times.fmt(f),
        }
    }
}

impl Default for ParmSpec {
    fn default() -> Self {
        ParmSpec {
            flexibility: Flexibility::Malleable,
            alpha: 0.0,
            levels: 6,
            guard: Span::from_secs(600),
            gap: Share::from_millionths(100),
            effort: 2_000_000,
            window: Window::Times(NonZeroU32::new(2).unwrap_or(NonZeroU32::MIN)),
        }
    }
}

/// With more jobs than this in the program, fewer steps are worth it, ...
const MANY_JOBS: f64 = 100.0;
/// ... but so many always are.
const ENOUGH_STEPS: u64 = 20_000;

impl ParmSpec {
    /// How far the choice may be from the best, as a number.
    pub(super) fn gap(&self) -> f64 {
        self.gap.millionths() as f64 / 1e6
    }

    /// Steps of the solver at most for a program of this many jobs. The more jobs there are, the less it matters who of them
    /// gets the last watts, and the more a step costs: with twice as many jobs an eighth of the steps is enough. The full
    /// program of the paper gets all steps.
    pub(super) fn steps_for(&self, jobs: usize) -> u64 {
        let crowd = jobs as f64 / MANY_JOBS;
        if self.window == Window::All || crowd <= 1.0 {
            return self.effort;
        }
        let fewer = (self.effort as f64 / (crowd * crowd * crowd)) as u64;
        fewer.max(ENOUGH_STEPS).min(self.effort)
    }
}

impl PolicyKind for ParmSpec {
    fn name(&self) -> &str {
        "parm"
    }

    fn about(&self) -> &str {
        "an integer program at every decision: nodes and caps of all jobs"
    }

    fn usual(&self) -> Self {
        ParmSpec::default()
    }

    fn parameters(&self) -> Vec<Parameter<Self>> {
        vec![
            Parameter::of("flex", |spec: &mut Self| &mut spec.flexibility),
            Parameter::number("alpha", |spec| &mut spec.alpha),
            Parameter::number("levels", |spec| &mut spec.levels),
            Parameter::seconds("guard", |spec| &mut spec.guard),
            Parameter::of("gap", |spec| &mut spec.gap),
            Parameter::number("effort", |spec| &mut spec.effort),
            Parameter::of("window", |spec| &mut spec.window),
        ]
    }

    fn check(&self, call: &Call) -> Result<(), CallError> {
        if !(0.0..=10.0).contains(&self.alpha) {
            return Err(call.wrong("alpha", format!("{} is not from 0 to 10", self.alpha)));
        }
        if !(1..=64).contains(&self.levels) {
            return Err(call.wrong("levels", format!("{} is not from 1 to 64", self.levels)));
        }
        if self.gap >= Share::WHOLE {
            return Err(call.wrong("gap", "it must be below 100%".to_owned()));
        }
        Ok(())
    }

    fn build(&self, _: &BuildContext<'_>) -> Box<dyn Policy> {
        Box::new(Parm::with(*self))
    }

    fn wants(&self) -> Freedoms {
        use Freedom::{Caps, Recaps, Resizes, Sizes};
        Freedoms::of(match self.flexibility {
            Flexibility::None => &[Caps, Recaps],
            Flexibility::Moldable => &[Caps, Sizes, Recaps],
            Flexibility::Malleable => &[Caps, Sizes, Recaps, Resizes],
        })
    }

    fn minds_feeds(&self, _: Freedoms) -> bool {
        true
    }

    fn minds_kinds(&self, _: Freedoms) -> bool {
        true
    }

    fn believes(&self, _: Freedoms) -> Published {
        Published::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twice as many jobs get an eighth of the steps, and very many get enough of them.
    #[test]
    fn steps_by_jobs() {
        let spec = ParmSpec::default();
        let steps = [0, 100, 200, 400, 100_000].map(|jobs| spec.steps_for(jobs));
        assert_eq!(steps, [2_000_000, 2_000_000, 250_000, 31_250, 20_000]);
        assert_eq!(ParmSpec { effort: 5, ..spec }.steps_for(1000), 5);
        assert_eq!(ParmSpec { window: Window::All, ..spec }.steps_for(1000), 2_000_000);
    }
}
