//! The parameters of the policy: what the site's file says of its scheduler, and what is set beside it.

use std::collections::BTreeMap;

use super::Slurm;
use crate::freedom::Freedoms;
use crate::policy::field::{Field, Unfit};
use crate::policy::{BuildContext, Parameter, Policy, PolicyKind, Submission};
use crate::priority::{Scheduler, Setting};

/// Slurm's scheduler with its settings. Those that are not given are as the site's file has them, or as Slurm has them by
/// itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SlurmSpec {
    given: BTreeMap<&'static str, String>,
}

impl SlurmSpec {
    /// All settings, beside those of a site.
    fn settings(&self, site: Option<&Scheduler>) -> Scheduler {
        let mut settings = site.cloned().unwrap_or_default();
        for setting in Setting::ALL {
            if let Some(text) = self.given.get(setting.key) {
                // It was read before.
                _ = setting.set(&mut settings, text);
            }
        }
        settings
    }
}

impl PolicyKind for SlurmSpec {
    fn name(&self) -> &str {
        "slurm"
    }

    fn about(&self) -> &str {
        "Slurm's main loop and backfill"
    }

    fn usual(&self) -> Self {
        SlurmSpec::default()
    }

    fn parameters(&self) -> Vec<Parameter<Self>> {
        let parameter = |setting: &'static Setting| {
            let text = |kind: &Self| kind.given.get(setting.key).cloned().unwrap_or_default();
            Parameter::new(setting.key, text, |kind: &mut Self, written| {
                let mut settings = Scheduler::default();
                setting.set(&mut settings, written.text).map_err(|why| written.wrong(why))?;
                kind.given.insert(setting.key, setting.text(&settings));
                Ok(())
            })
        };
        Setting::ALL.iter().map(parameter).collect()
    }

    fn build(&self, context: &BuildContext<'_>) -> Box<dyn Policy> {
        let settings = self.settings(context.priorities.and_then(|site| site.scheduler()));
        let reserved = context.reservations;
        match context.priorities {
            Some(_) => Box::new(Slurm::new(settings, context.multifactor(), reserved)),
            None => Box::new(Slurm::new(settings, Submission, reserved)),
        }
    }

    fn suits(&self, field: &Field<'_>) -> Result<(), Unfit> {
        match field.has_feeds {
            true => Err(Unfit::Here(
                "it does not know feeds; leave [[feed]] out of the machine file, or choose \
                 easy(order=multifactor)"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }

    fn is_of_site(&self) -> bool {
        true
    }

    fn minds_kinds(&self, _: Freedoms) -> bool {
        true
    }

    fn minds_limits(&self, _: Freedoms) -> bool {
        true
    }

    fn minds_reserved_nodes(&self) -> bool {
        true
    }
}
