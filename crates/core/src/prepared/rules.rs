//! What a site says about policies and jobs.

use std::sync::Arc;

use crate::freedom::Freedoms;
use crate::job::Job;
use crate::policy::{Believe, Level};
use crate::priority::SiteFile;
use crate::switching::SwitchOff;
use crate::units::Share;
use crate::workload::Workload;
use crate::world::Names;

/// What the site says about policies and jobs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// What policies may do to jobs.
    pub allow: Freedoms,
    /// What policies believe. If that is not said: what they were published with, and of jobs that were measured
    /// what can be predicted from those before them.
    pub believe: Option<Believe>,
    /// The share of every limit that is kept back from policies, because jobs may draw more than is believed.
    pub guard: Share,
    /// Which applications executables are.
    pub names: Option<Arc<Names>>,
    /// When idle nodes are switched off, if they are.
    pub switch_off: Option<SwitchOff>,
    /// Who has which share, and what puts jobs before others, where that is described.
    pub site: Option<Arc<SiteFile>>,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            allow: Freedoms::USUAL,
            believe: None,
            guard: Share::percent(0),
            names: None,
            switch_off: None,
            site: None,
        }
    }
}

impl Rules {
    /// What policies believe of these jobs.
    pub(super) fn believed(&self, workload: &Workload) -> Believe {
        self.believe.unwrap_or(match workload.powers_known() {
            0 => Believe::Published,
            _ => Believe::Predicted(Level::default()),
        })
    }

    /// That the file of applications names none of these jobs, if it is so.
    pub fn names_nobody(&self, jobs: &[Job]) -> Option<String> {
        let names = self.names.as_ref()?;
        let is_named = jobs.iter().any(|job| names.of(job).is_some());
        (!is_named).then(|| "--applications names no executable of these jobs".to_owned())
    }
}
