//! What a daemon works with: the machine, the policy, and the site's rules.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

use super::decider::{Decider, DeciderError, user_id};
use crate::job::{Entry, JobRequest, Owner, Phase, Requester};
use crate::wire::{Refusal, RefusalKind};
use busbar_core::budget::Budget;
use busbar_core::job::{ApplicationId, Job, NodeRange, Terms};
use busbar_core::machine::Machine;
use busbar_core::policy::{Held, PastJob, PolicySpec};
use busbar_core::seats::{Asked, Lack, Missing, Seat};
use busbar_core::spelling::closest;
use busbar_core::switching::SwitchOff;
use busbar_core::tuning::USUAL_JOBS;
use busbar_core::units::{Instant, Span};
use busbar_core::world::Repertoire;

/// The machine, the policy, and the site's rules.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The machine, with assumptions where its description has no figures. A node that is on its way off or back counts
    /// with no less than it draws at either end, because nobody knows how far it is.
    pub machine: Arc<Machine>,
    /// The policy with its beliefs.
    pub decider: Decider,
    /// How long a job may take to end before it is killed.
    pub kill_after: Span,
    /// When idle nodes are switched off, if they are.
    pub switch_off: Option<SwitchOff>,
    /// What to do if jobs cannot be slowed down enough.
    pub last_resort: LastResort,
    /// The only user whose jobs can be run, if the daemon does not run as root.
    pub only_user: Option<u32>,
    /// Users who may change all jobs and the budget.
    pub operators: Vec<u32>,
    /// Whether all users see everything about all jobs.
    pub see_all: bool,
    /// The largest number of jobs that wait or run.
    pub most_jobs: usize,
    /// The largest number of such jobs of one user.
    pub most_jobs_per_user: usize,
    /// The largest number of elements of an array.
    pub most_elements: usize,
    /// The largest total size of one user's jobs that wait or run.
    pub most_bytes_per_user: u64,
    /// The time limit for working out a forecast.
    pub forecast_time: Span,
    /// When the daemon replays its past to propose other parameters, if it does.
    pub tune: Option<Nightly>,
}

/// What to do if jobs cannot be slowed down enough for the budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastResort {
    /// No job starts until power is sufficient again.
    #[default]
    Hold,
    /// Jobs are suspended, the youngest first.
    Suspend,
    /// Jobs are cancelled, the youngest first.
    Cancel,
}

impl fmt::Display for LastResort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LastResort::Hold => "hold",
            LastResort::Suspend => "suspend",
            LastResort::Cancel => "cancel",
        })
    }
}

/// When the daemon replays its past, and what it tries.
#[derive(Clone, Debug, PartialEq)]
pub struct Nightly {
    /// At which time of the day.
    pub at: Time,
    /// In which time zone.
    pub zone: TimeZone,
    /// How many of the last finished jobs are replayed.
    pub jobs: usize,
    /// The candidates; the usual ones if there are none.
    pub policies: Vec<PolicySpec>,
}

impl Nightly {
    /// The usual number of jobs and candidates, at this time.
    pub fn at(at: Time, zone: TimeZone) -> Self {
        Nightly { at, zone, jobs: USUAL_JOBS, policies: Vec::new() }
    }

    /// Whether the time of the day has come after one time by the wall clock, and not later than another, in
    /// milliseconds since 1970. If it is skipped because the offset changes, the next instant counts.
    pub(super) fn has_come(&self, after: i64, until: i64) -> bool {
        let [Ok(after), Ok(until)] = [after, until].map(Timestamp::from_millisecond) else {
            return false;
        };
        let last = self.zone.to_datetime(until).date();
        [last.checked_sub(1.day()), Ok(last)].into_iter().flatten().any(|day| {
            let moment = self.zone.to_ambiguous_timestamp(DateTime::from_parts(day, self.at));
            moment.compatible().is_ok_and(|moment| after < moment && moment <= until)
        })
    }
}

/// Somebody who asks about jobs, and whether they may see command lines, folders, paths and names of
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Viewer {
    user: Option<u32>,
    sees_all: bool,
}

impl Viewer {
    /// Whether they may see everything about a job of this owner.
    pub(crate) fn sees(self, owner: Owner) -> bool {
        self.sees_user(owner.user)
    }

    /// Whether they may see everything about the jobs of a user.
    pub(crate) fn sees_user(self, user: u32) -> bool {
        self.sees_all || self.user == Some(user)
    }

    /// Whether they see no more of any job than everybody may see.
    pub(crate) fn is_nobody(self) -> bool {
        !self.sees_all && self.user.is_none()
    }
}

impl Setup {
    /// A setup with default rules for a machine on which jobs run these applications.
    pub fn new(
        machine: &Machine,
        repertoire: Repertoire,
        policy: PolicySpec,
    ) -> Result<Self, DeciderError> {
        let mut machine = repertoire.filled_in(machine)?;
        machine.details.off = Some(machine.off().counted(machine.node().idle));
        let machine = Arc::new(machine);
        Ok(Setup {
            decider: Decider::new(&machine, repertoire, policy)?,
            machine,
            kill_after: Span::from_secs(30),
            switch_off: None,
            last_resort: LastResort::default(),
            only_user: None,
            operators: vec![0],
            see_all: false,
            most_jobs: 100_000,
            most_jobs_per_user: 100_000,
            most_elements: 1000,
            most_bytes_per_user: u64::MAX,
            forecast_time: Span::from_secs(45),
            tune: None,
        })
    }

    /// The same setup on another machine.
    pub fn on(&self, machine: &Machine) -> Result<Self, DeciderError> {
        let repertoire = self.decider.repertoire().clone();
        let other = Setup::new(machine, repertoire, self.decider.spec().clone())?;
        let decider = other.decider.at_site(self.decider.site().clone());
        Ok(Setup { machine: other.machine, decider, ..self.clone() })
    }

    /// The same setup with another policy.
    pub(crate) fn decided_by(self, policy: PolicySpec) -> Result<Self, DeciderError> {
        Ok(Setup { decider: self.decider.with(&self.machine, policy)?, ..self })
    }

    /// The part of a budget that the policy may hand out.
    pub fn handed_out(&self, budget: &Budget) -> Budget {
        budget.lowered(self.decider.spec().guard())
    }

    /// A job as the policy sees it.
    pub fn job(&self, entry: &Entry) -> Result<Job, Refusal> {
        let JobRequest { nodes, moldable, time, application, slowdown, .. } = &entry.request;
        let malformed = |message: String| Refusal { kind: RefusalKind::Malformed, message };
        // A job that does not say otherwise runs on exactly the nodes it asks for.
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
        // On nodes of several kinds, a job counts with its processors, and keeps them.
        let (nodes, processors, range) = match self.seat(&entry.request)? {
            None => (*nodes, nodes.saturating_mul(self.machine.processors_per_node), Some(range)),
            Some(Ok(seat)) => {
                let held = seat.nodes.saturating_mul(seat.each.processors);
                let asked = entry.request.part.processors.unwrap_or(held);
                (held, asked, NodeRange::new(held, held))
            }
            Some(Err(_)) => (*nodes, *nodes, Some(range)),
        };
        Ok(Job {
            processors,
            user: user_id(entry.owner.user),
            group: entry
                .request
                .account
                .as_deref()
                .and_then(|name| self.decider.site().account(name)),
            application: self.application(application.as_deref())?,
            terms: Terms { tolerance, nodes: range, ..Terms::default() },
            ..Job::new(entry.number, entry.submit, nodes, *time)
        })
    }

    /// What a job asks of nodes, where these are of several kinds or jobs share them, or what none of them has.
    pub fn seat(&self, request: &JobRequest) -> Result<Option<Result<Seat, Lack>>, Refusal> {
        let part = &request.part;
        let impossible = |message: String| {
            let kind = RefusalKind::Impossible;
            Err(Refusal { kind, message })
        };
        let (Some(kinds), Some(layout)) = (&self.machine.kinds, self.decider.layout()) else {
            let named = [
                ("-p", part.partition.is_some()),
                ("-n", part.processors.is_some()),
                ("--gpus", part.gpus.is_some()),
                ("--mem", part.memory_mib.is_some()),
            ];
            return match named.into_iter().find(|(_, is_named)| *is_named) {
                None => Ok(None),
                Some((option, _)) => impossible(format!(
                    "{option}: this machine has nodes of one kind, which jobs have whole; ask for a number of nodes (-N)"
                )),
            };
        };
        let place = |name: &String| kinds.partitions().iter().position(|known| known.name == *name);
        let partition = part.partition.as_ref().map(|name| (name, place(name)));
        if let Some((name, None)) = partition {
            let names = || kinds.partitions().iter().map(|known| known.name.as_str());
            let meant = closest(name, names());
            let meant = meant.map(|meant| format!("; did you mean '{meant}'?"));
            return impossible(format!(
                "-p {name}: the machine has no such partition{} It has {}",
                meant.unwrap_or_else(|| ".".to_owned()),
                names().collect::<Vec<_>>().join(", ")
            ));
        }
        let asked = Asked {
            partition: partition.and_then(|(_, place)| place),
            nodes: request.nodes,
            memory_mib: 0,
            gpus: part.gpus.unwrap_or(0),
            each_memory_mib: part.memory_mib.unwrap_or(0),
            whole: part.exclusive || part.processors.is_none(),
        };
        Ok(Some(layout.seat(part.processors.unwrap_or(1), &asked)))
    }

    /// The same as the policy hears it. A partition that is not there any more has no nodes.
    pub(crate) fn seat_of(&self, entry: &Entry) -> Option<Result<Seat, Missing>> {
        match self.seat(&entry.request) {
            Ok(seat) => seat.map(|seat| seat.map_err(|lack| lack.of)),
            Err(_) => self.machine.kinds.is_some().then_some(Err(Missing::Nodes)),
        }
    }

    /// What a policy may learn from a job that is over; `None` if it never ran.
    pub(crate) fn past(&self, entry: &Entry) -> Option<PastJob> {
        let Phase::Over(outcome) = &entry.phase else { return None };
        let (run_time, end) = (outcome.full_speed_time()?, outcome.end);
        let job = self.job(entry).ok()?;
        let Job { user, nodes, requested, submit, .. } = job;
        Some(PastJob { user, nodes, requested, run_time, submit, end })
    }

    /// What a job held until now, or until it was over.
    pub(crate) fn held(&self, entry: &Entry, now: Instant) -> Option<Held> {
        let (nodes, from, until) = match &entry.phase {
            Phase::Waiting => (0, now, now),
            Phase::Running(run) => (run.allotment.nodes.len(), run.start, now),
            Phase::Over(outcome) => (outcome.nodes.len(), outcome.start?, outcome.end),
        };
        let each = match self.seat_of(entry) {
            Some(Ok(seat)) => seat.each.processors,
            _ => 1,
        };
        let nodes = (nodes as u32).saturating_mul(each);
        Some(Held { job: self.job(entry).ok()?, nodes, from, until })
    }

    /// A substitute for a running job that the policy does not accept; it keeps what it has until
    /// it ends.
    pub(crate) fn stand_in(&self, entry: &Entry) -> Job {
        let nodes = match self.seat_of(entry) {
            Some(Ok(seat)) => seat.nodes.saturating_mul(seat.each.processors),
            _ => entry.request.nodes,
        };
        Job::new(entry.number, entry.submit, nodes, entry.request.time)
    }

    /// Checks the application that a job names. Where a site has described its applications, an
    /// unknown name is a mistake.
    pub(crate) fn check_application(&self, request: &JobRequest) -> Result<(), Refusal> {
        self.application(request.application.as_deref()).map(|_| ())
    }

    /// A remark if the application that a job names is not known.
    pub(crate) fn ignores_application(&self, request: &JobRequest) -> Option<String> {
        let name = request.application.as_deref()?;
        let is_known = self.decider.applications().iter().any(|known| known == name);
        (!is_known).then(|| {
            format!(
                "names the application '{name}', which has no profile, so the name has no effect"
            )
        })
    }

    /// The number of an application; `None` if it is not known.
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
            let message = format!(
                "--app '{name}': there is no such application{meant} Known applications: {known}"
            );
            return Err(Refusal { kind: RefusalKind::Impossible, message });
        }
        Ok(number.map(ApplicationId))
    }

    /// Whether somebody asks with the rights of an operator.
    pub(crate) fn is_operator(&self, who: Requester) -> bool {
        match who {
            Requester::Full(owner) => self.operators.contains(&owner.user),
            Requester::Ordinary(_) | Requester::Anybody => false,
        }
    }

    /// Who asks, as a viewer of jobs.
    pub(crate) fn viewer(&self, who: Requester) -> Viewer {
        Viewer { user: who.user(), sees_all: self.see_all || self.is_operator(who) }
    }
}
