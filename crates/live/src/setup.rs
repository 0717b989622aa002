//! What a daemon works with: the machine, the policy, and the rules of the house.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::config::LastResort;
use super::decider::{Decider, DeciderError};
use super::job::{Entry, JobRequest, Owner};
use super::wire::{Refusal, RefusalKind};
use busbar_core::budget::Budget;
use busbar_core::job::{ApplicationId, Job, NodeRange, Terms, UserId};
use busbar_core::machine::Machine;
use busbar_core::policy::PolicySpec;
use busbar_core::spelling::closest;
use busbar_core::units::Span;
use busbar_core::world::Repertoire;

/// The machine, the policy, and the rules of the house.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The machine, with what nobody says of its nodes assumed.
    pub machine: Arc<Machine>,
    /// Who decides.
    pub decider: Decider,
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
    /// A machine on which jobs run these applications, with a policy and the usual rules.
    pub fn new(
        machine: &Machine,
        repertoire: Repertoire,
        policy: PolicySpec,
    ) -> Result<Self, DeciderError> {
        let machine = Arc::new(repertoire.filled_in(machine)?);
        Ok(Setup {
            decider: Decider::new(&machine, repertoire, policy)?,
            machine,
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
        })
    }

    /// The same on another machine.
    pub fn on(&self, machine: &Machine) -> Result<Self, DeciderError> {
        let repertoire = self.decider.repertoire().clone();
        let other = Setup::new(machine, repertoire, self.decider.spec())?;
        Ok(Setup { machine: other.machine, decider: other.decider, ..self.clone() })
    }

    /// The same with another policy.
    pub fn decided_by(self, policy: PolicySpec) -> Result<Self, DeciderError> {
        Ok(Setup { decider: self.decider.with(&self.machine, policy)?, ..self })
    }

    /// What the policy may hand out of a budget.
    pub fn handed_out(&self, budget: &Budget) -> Budget {
        budget.lowered(self.decider.spec().guard())
    }

    /// What the policy sees of a job.
    pub fn job(&self, entry: &Entry) -> Result<Job, Refusal> {
        let JobRequest { nodes, moldable, time, application, slowdown, .. } = &entry.request;
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
            application: self.application(application.as_deref())?,
            terms: Terms { tolerance, nodes: Some(range), ..Terms::default() },
            ..Job::new(entry.number, entry.submit, *nodes, *time)
        })
    }

    /// A job that runs and cannot be known any more: it keeps what it has until it ends.
    pub fn stand_in(&self, entry: &Entry) -> Job {
        Job::new(entry.number, entry.submit, entry.request.nodes, entry.request.time)
    }

    /// Whether the application that a job names is one of those of which something is known. Where a site has
    /// described its applications, another name is a slip of the pen.
    pub fn check_application(&self, request: &JobRequest) -> Result<(), Refusal> {
        self.application(request.application.as_deref()).map(|_| ())
    }

    /// That it makes no difference which application a job names, if that is so.
    pub fn ignores_application(&self, request: &JobRequest) -> Option<String> {
        let name = request.application.as_deref()?;
        let is_known = self.decider.applications().iter().any(|known| known == name);
        (!is_known).then(|| {
            format!(
                "names the application '{name}', of which nothing is known: no profile describes it"
            )
        })
    }

    /// The number of an application; none if nothing is known of it.
    fn application(&self, name: Option<&str>) -> Result<Option<ApplicationId>, Refusal> {
        let known = self.decider.applications();
        let Some(name) = name else { return Ok(None) };
        let place = known.iter().position(|other| other == name);
        let number = place.and_then(|place| NonZeroU32::new(place as u32 + 1));
        if number.is_none() && self.decider.is_described() {
            let meant = closest(name, known.iter().map(String::as_str));
            let meant = meant.map(|meant| format!("; did you mean '{meant}'?"));
            let meant = meant.unwrap_or_else(|| ".".to_owned());
            let known = known.join(", ");
            let message =
                format!("--app '{name}': there is no such application{meant} Known are: {known}");
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
