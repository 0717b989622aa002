//! What there is to say about the utility policy.

use super::spec::{Environment, Heuristic, UtilitySpec};
use super::{Gangs, UtilityMapper};
use crate::call::{Call, CallError};
use crate::freedom::{Freedom, Freedoms};
use crate::heterogeneity::Site;
use crate::model::{Heterogeneous, Model};
use crate::policy::{BuildContext, Field, Parameter, Policy, PolicyKind, Published, Unfit};
use crate::units::Span;

impl PolicyKind for UtilitySpec {
    fn name(&self) -> &str {
        "utility"
    }

    fn about(&self) -> &str {
        "maximises utility: jobs of several nodes, or serial tasks on heterogeneous machines within an energy budget"
    }

    fn usual(&self) -> Self {
        UtilitySpec::default()
    }

    fn parameters(&self) -> Vec<Parameter<Self>> {
        vec![
            Parameter::of("heuristic", |spec| &mut spec.heuristic),
            Parameter::of("environment", |spec| &mut spec.environment),
            Parameter::switch("filter", |spec| &mut spec.filter),
            Parameter::of("drop", |spec| &mut spec.drop),
            Parameter::seconds("every", |spec| &mut spec.every),
            Parameter::number("seed", |spec| &mut spec.seed),
        ]
    }

    fn check(&self, call: &Call) -> Result<(), CallError> {
        match self.every < Span::from_secs(1) {
            true => {
                let why = "mapping events are at least a second apart, such as 60s".to_owned();
                Err(call.wrong("every", why))
            }
            false => Ok(()),
        }
    }

    fn build(&self, context: &BuildContext<'_>) -> Box<dyn Policy> {
        match context.site {
            Some(site) => Box::new(UtilityMapper::new(*self, site)),
            None => Box::new(Gangs::new(*self)),
        }
    }

    fn minds_limits(&self, _: Freedoms) -> bool {
        true
    }

    fn wants(&self) -> Freedoms {
        Freedoms::of(&[Freedom::Caps, Freedom::Drops])
    }

    fn minds_kinds(&self, _: Freedoms) -> bool {
        true
    }

    fn suits(&self, _: &Field<'_>) -> Result<(), Unfit> {
        let why = match (self.environment, self.heuristic) {
            (Environment::Queued, _) => {
                "jobs of several nodes cannot be queued at single machines; write environment=polled, or omit it"
            }
            (Environment::Polled, Heuristic::Priced) => {
                "heuristic=priced is for tasks on machines of several types (--workload essc, or a folder of \
                 tasks); write heuristic=max-upe, or leave that out"
            }
            (Environment::Polled, _) => return Ok(()),
        };
        Err(Unfit::Here(why.to_owned()))
    }

    fn believes(&self, _: Freedoms) -> Published {
        Published::Measured
    }

    fn on_site(&self, site: &Site) -> Option<Box<dyn Model>> {
        Some(Box::new(Heterogeneous::new(site.tables.clone())))
    }
}
