//! A policy together with what it believes about applications.

use std::num::NonZeroU32;
use std::sync::Arc;

use busbar_core::calendar::RunDates;
use busbar_core::freedom::Freedoms;
use busbar_core::job::{GroupId, UserId};
use busbar_core::machine::{Kind, Machine};
use busbar_core::model::Model;
use busbar_core::policy::{
    Believe, BuildContext, Contender, Field, OnAllKinds, Policy, PolicyError, PolicySpec, Unfit,
};
use busbar_core::priority::{LogNames, Priorities, SiteError, SiteFile};
use busbar_core::seats::Layout;
use busbar_core::world::{Repertoire, Unsuited};

/// A policy on a machine, with its beliefs about applications, which are worked out once.
#[derive(Clone, Debug)]
pub struct Decider {
    spec: PolicySpec,
    machine: Machine,
    beliefs: Beliefs,
    repertoire: Repertoire,
    /// The names of the applications, in the order of their numbers.
    applications: Arc<[String]>,
    /// Whether the site has described its applications.
    is_described: bool,
    /// Who has which share, where the site says it.
    site: Site,
}

/// What the policy believes.
#[derive(Clone, Debug)]
enum Beliefs {
    /// Of nodes that are alike.
    Alike(Contender),
    /// Of nodes of several kinds, or that jobs share.
    Kinds(OnAllKinds, Arc<Layout>),
}

/// Who has which share of the machine, and what puts jobs before others.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// What it is made of, where the site says anything.
    file: Option<Arc<SiteFile>>,
    priorities: Arc<Priorities>,
    /// The accounts that it names, in the order of their numbers.
    accounts: Arc<[String]>,
}

impl Site {
    /// A site's file, where users have these numbers.
    pub fn of(file: SiteFile, user: impl Fn(&str) -> Option<u32>) -> Result<Self, SiteError> {
        let mut accounts: Vec<String> = file.accounts().map(str::to_owned).collect();
        accounts.sort_unstable();
        accounts.dedup();
        let users: Vec<(u32, String)> = file
            .users()
            .filter_map(|name| Some((user_id(user(name)?)?.0.get(), name.to_owned())))
            .collect();
        let numbered: Vec<(u32, String)> = (1..).zip(accounts.iter().cloned()).collect();
        let names = LogNames { users: &users, accounts: &numbered, ..LogNames::default() };
        // The daemon's clock has no dates.
        let priorities = file.priorities(names, &RunDates::unknown())?;
        let priorities = Arc::new(priorities);
        Ok(Site { file: Some(Arc::new(file)), priorities, accounts: accounts.into() })
    }

    /// The one that was there before, if it says the same: what was used goes on.
    pub(crate) fn or_before(&self, before: &Site) -> Site {
        if self.file == before.file { before.clone() } else { self.clone() }
    }

    /// The number of an account that the site's file names.
    pub(crate) fn account(&self, name: &str) -> Option<GroupId> {
        let place = self.accounts.iter().position(|account| account == name)?;
        NonZeroU32::new(place as u32 + 1).map(GroupId)
    }
}

/// The user that policies know for a user of this system. Policies count from 1.
pub(crate) fn user_id(user: u32) -> Option<UserId> {
    NonZeroU32::new(user.saturating_add(1)).map(UserId)
}

/// Why a policy cannot be used on a machine with these applications.
#[derive(Debug, thiserror::Error)]
pub enum DeciderError {
    /// The applications do not run on the machine.
    #[error(transparent)]
    Unsuited(#[from] Unsuited),
    /// The policy is for simulations alone.
    #[error("'{policy}' {}", PolicyError::Simulated)]
    Simulated {
        /// The policy.
        policy: PolicySpec,
    },
    /// The policy cannot decide on this machine.
    #[error("the policy '{policy}' cannot be used here: {why}")]
    Unfit {
        /// The policy.
        policy: PolicySpec,
        /// Why it cannot.
        why: Unfit,
    },
}

impl Decider {
    /// A policy on a machine whose missing figures were [filled in](Repertoire::filled_in), where
    /// jobs run these applications.
    pub fn new(
        machine: &Machine,
        repertoire: Repertoire,
        spec: PolicySpec,
    ) -> Result<Self, DeciderError> {
        if spec.is_for_simulations() {
            return Err(DeciderError::Simulated { policy: spec });
        }
        let entered = match &machine.kinds {
            None => {
                let world = Arc::new(repertoire.open_world(machine)?);
                let field = Field::new(machine, world, Freedoms::USUAL, 1);
                spec.enter(&field, Believe::Published).map(Beliefs::Alike)
            }
            Some(_) if !matches!(repertoire, Repertoire::BuiltIn) => {
                return Err(Unsuited::ProfilesOfKinds.into());
            }
            Some(kinds) => {
                let part = |kind: &Kind| {
                    let node = kind.by_processor();
                    let world = Arc::new(repertoire.open_world(&node)?);
                    Ok((node, world))
                };
                let parts = kinds.kinds().iter().map(part).collect::<Result<Vec<_>, Unsuited>>()?;
                let layout = Arc::new(Layout::of(kinds));
                let (on, may) = ((layout.clone(), &*parts), Freedoms::USUAL);
                OnAllKinds::enter(&spec, machine, on, may, Believe::Published)
                    .map(|kinds| Beliefs::Kinds(kinds, layout))
            }
        };
        let beliefs = entered.map_err(|why| DeciderError::Unfit { policy: spec.clone(), why })?;
        Ok(Decider {
            spec,
            machine: machine.clone(),
            beliefs,
            applications: repertoire.names(machine).into(),
            is_described: machine.variation.is_some()
                || matches!(repertoire, Repertoire::Profiled(_)),
            repertoire,
            site: Site::default(),
        })
    }

    /// The same for a site with shares.
    pub fn at_site(self, site: Site) -> Self {
        Decider { site, ..self }
    }

    /// Another policy on the same machine.
    pub(crate) fn with(&self, machine: &Machine, spec: PolicySpec) -> Result<Self, DeciderError> {
        let decider = Decider::new(machine, self.repertoire.clone(), spec)?;
        Ok(decider.at_site(self.site.clone()))
    }

    /// Who has which share.
    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    /// The applications that jobs may run.
    pub(crate) fn repertoire(&self) -> &Repertoire {
        &self.repertoire
    }

    /// The policy's name and parameters.
    pub fn spec(&self) -> &PolicySpec {
        &self.spec
    }

    /// A new instance of the policy.
    pub fn policy(&self) -> Box<dyn Policy> {
        let may = match self.layout() {
            None => Freedoms::USUAL,
            Some(_) => Freedoms::USUAL & Freedoms::of(OnAllKinds::MAY),
        };
        let freedoms = Some(self.spec.wants() & may);
        let machine = Some(&self.machine);
        let priorities = Some(&self.site.priorities);
        self.spec.build(&BuildContext { machine, freedoms, priorities, ..BuildContext::default() })
    }

    /// A new model of jobs, which does not know any job yet.
    pub fn model(&self) -> Box<dyn Model> {
        match &self.beliefs {
            Beliefs::Alike(contender) => contender.belief(&[]),
            Beliefs::Kinds(kinds, _) => kinds.belief(),
        }
    }

    /// Where jobs can be, where nodes are of several kinds or jobs share them.
    pub(crate) fn layout(&self) -> Option<&Arc<Layout>> {
        match &self.beliefs {
            Beliefs::Alike(_) => None,
            Beliefs::Kinds(_, layout) => Some(layout),
        }
    }

    /// The names of the known applications, in the order of their numbers.
    pub fn applications(&self) -> &[String] {
        &self.applications
    }

    /// Whether the site has described its applications, so that an unknown name is a mistake.
    pub(crate) fn is_described(&self) -> bool {
        self.is_described
    }
}
