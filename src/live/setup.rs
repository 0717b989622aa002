//! What a daemon works with: the machine, the policy, and the rules of the house.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::config::LastResort;
use super::job::{Entry, Owner, Wish};
use super::wire::{Refusal, RefusalKind};
use crate::budget::Budget;
use crate::job::{ApplicationId, Job, NodeRange, Terms, UserId};
use crate::machine::Machine;
use crate::model::pass::Application;
use crate::model::{Beliefs, Model, Profiled, ProfiledError};
use crate::policy::{Policy, PolicySpec, Setting};
use crate::profile::Profile;
use crate::spelling::closest;
use crate::units::Span;

/// The machine, the policy, and the rules of the house.
#[derive(Clone)]
pub struct Setup {
    /// The machine.
    pub machine: Arc<Machine>,
    /// Who decides.
    pub policy: PolicySpec,
    /// Applications with their profiles, in the order of their numbers, for policies that choose
    /// configurations.
    pub profiles: Arc<[Profile]>,
    /// How long a job may take to end when it is asked to.
    pub kill_after: Span,
    /// What is done if nothing else helps.
    pub last_resort: LastResort,
    /// The only user whose jobs can be run, if the daemon cannot run them as anybody else.
    pub only_user: Option<u32>,
    /// Users who may do everything.
    pub operators: Vec<u32>,
    /// Whether everybody is told everything about everybody's jobs.
    pub see_all: bool,
    /// The most jobs that may wait and run.
    pub most_jobs: usize,
    /// The most of them that one user may have.
    pub most_jobs_per_user: usize,
    /// The most elements of an array.
    pub most_elements: usize,
    /// The most bytes that may be kept of one user's jobs that wait and run.
    pub most_bytes_per_user: u64,
    /// How long a forecast may take to be worked out.
    pub forecast_time: Span,
}

/// Somebody who asks about jobs, and whose command lines, folders, paths and names they may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Viewer {
    user: u32,
    sees_all: bool,
}

impl Viewer {
    /// Whether they may see everything about a job of this owner.
    pub fn sees(self, owner: Owner) -> bool {
        self.sees_all || owner.user == self.user
    }
}

impl Setup {
    /// A machine with a policy and the usual rules.
    pub fn new(machine: Machine, policy: PolicySpec) -> Self {
        Setup {
            machine: Arc::new(machine),
            policy,
            profiles: Arc::new([]),
            kill_after: Span::from_secs(30),
            last_resort: LastResort::default(),
            only_user: None,
            operators: vec![0],
            see_all: false,
            most_jobs: 100_000,
            most_jobs_per_user: 100_000,
            most_elements: 1000,
            most_bytes_per_user: u64::MAX,
            forecast_time: Span::from_secs(45),
        }
    }

    /// What is believed of jobs; none is known yet.
    pub fn model(&self) -> Result<Box<dyn Model>, ProfiledError> {
        match self.policy {
            PolicySpec::Rmap(spec) => {
                let beliefs = Beliefs { node_power: spec.node_power, ..Beliefs::default() };
                Ok(Box::new(Profiled::of_all(&self.machine, &self.profiles, beliefs)?))
            }
            // Only `utility` has no model without more, and no configuration can name it.
            policy => policy.model(&self.machine, &[], 1).map_err(|_| ProfiledError::None),
        }
    }

    /// The policy, ready to decide.
    pub fn policy(&self) -> Box<dyn Policy> {
        self.policy.build(&Setting::default())
    }

    /// What the policy may hand out of a budget.
    pub fn handed_out(&self, budget: &Budget) -> Budget {
        budget.lowered(self.policy.guard())
    }

    /// The names of the applications of which anything is known, in the order of their numbers.
    pub fn applications(&self) -> Vec<&str> {
        match (&self.policy, &self.machine.variation) {
            (PolicySpec::Rmap(_), _) => {
                self.profiles.iter().map(|profile| profile.application.as_str()).collect()
            }
            (PolicySpec::Ppartition(_) | PolicySpec::Uniform(_), Some(processors)) => {
                processors.applications().iter().map(|known| known.name.as_str()).collect()
            }
            (PolicySpec::Parm(_), _) => Application::ALL.iter().map(|known| known.name).collect(),
            _ => Vec::new(),
        }
    }

    /// What the policy sees of a job.
    pub fn job(&self, entry: &Entry) -> Result<Job, Refusal> {
        let Wish { nodes, moldable, time, application, slowdown, .. } = &entry.wish;
        let malformed = |message: String| Refusal { kind: RefusalKind::Malformed, message };
        // Who does not say that it can do with other numbers of nodes cannot.
        let (fewest, most) = moldable.unwrap_or((*nodes, *nodes));
        let range = NodeRange::new(fewest, most).ok_or_else(|| {
            malformed(format!("--moldable {fewest}-{most}: write fewest-most, such as 2-8"))
        })?;
        let tolerance = match slowdown {
            None => None,
            Some(text) => {
                Some(text.parse().map_err(|why| malformed(format!("--slowdown {text}: {why}")))?)
            }
        };
        let processors = nodes.saturating_mul(self.machine.processors_per_node);
        Ok(Job {
            processors,
            user: NonZeroU32::new(entry.owner.user.saturating_add(1)).map(UserId),
            application: self.application(application.as_deref(), range)?,
            terms: Terms { tolerance, nodes: Some(range), ..Terms::default() },
            ..Job::new(entry.number, entry.submit, *nodes, *time)
        })
    }

    /// A job that runs under a policy that cannot know it: it keeps what it has until it ends.
    pub fn stand_in(&self, entry: &Entry) -> Job {
        // Policies ask models about all jobs, and models answer for applications that they know.
        let application =
            (!self.applications().is_empty()).then_some(ApplicationId(NonZeroU32::MIN));
        Job {
            application,
            ..Job::new(entry.number, entry.submit, entry.wish.nodes, entry.wish.time)
        }
    }

    /// Whether the application that a job names is one of those of which something is known. A policy
    /// that makes no difference between applications knows none, and takes any name.
    pub fn check_application(&self, wish: &Wish) -> Result<(), Refusal> {
        let known = self.applications();
        let Some(name) = wish.application.as_deref() else { return Ok(()) };
        if known.is_empty() || known.contains(&name) {
            return Ok(());
        }
        let meant = closest(name, known.iter().copied());
        let meant = meant.map(|meant| format!("; did you mean '{meant}'?"));
        let meant = meant.unwrap_or_else(|| ".".to_owned());
        let (policy, known) = (self.policy.name(), known.join(", "));
        let message =
            format!("--app '{name}': {policy} knows no such application{meant} Known are: {known}");
        Err(Refusal { kind: RefusalKind::Impossible, message })
    }

    /// That it makes no difference which application a job names, if that is so.
    pub fn ignores_application(&self, wish: &Wish) -> Option<String> {
        let name = wish.application.as_deref().filter(|_| self.applications().is_empty())?;
        let policy = self.policy.name();
        Some(format!(
            "names the application '{name}', which makes no difference to policy {policy}"
        ))
    }

    /// The number of an application. Where the policy has to know it, it must be one of those of which
    /// something is known.
    fn application(
        &self,
        name: Option<&str>,
        range: NodeRange,
    ) -> Result<Option<ApplicationId>, Refusal> {
        let known = self.applications();
        let place = name.and_then(|name| known.iter().position(|other| *other == name));
        let number = place.and_then(|place| NonZeroU32::new(place as u32 + 1));
        let needs_one = self.policy.uses_profiles() || self.policy.uses_curves();
        if number.is_none() && needs_one {
            let said = name.map_or("says nothing".to_owned(), |name| format!("is '{name}'"));
            let message = format!(
                "{} has to know which application a job runs, and --app {said}; known: {}",
                self.policy.name(),
                known.join(", ")
            );
            return Err(Refusal { kind: RefusalKind::Impossible, message });
        }
        let profile = place.filter(|_| self.policy.uses_profiles()).map(|at| &self.profiles[at]);
        let mut counts = profile.into_iter().flat_map(|profile| profile.unthrottled());
        if profile.is_some() && !counts.any(|row| range.contains(row.configuration.nodes)) {
            let message = format!(
                "the profile of '{}' says nothing of {range} nodes; ask for a number that 'busbar \
                 profile show' has, or for a range of them with --moldable",
                name.unwrap_or_default()
            );
            return Err(Refusal { kind: RefusalKind::Impossible, message });
        }
        Ok(number.map(ApplicationId))
    }

    /// Whether somebody may do everything.
    pub fn is_operator(&self, who: Owner) -> bool {
        self.operators.contains(&who.user)
    }

    /// What somebody may see of others' jobs.
    pub fn viewer(&self, who: Owner) -> Viewer {
        Viewer { user: who.user, sees_all: self.see_all || self.is_operator(who) }
    }
}
