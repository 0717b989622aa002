//! The agent without its sockets: answers requests, keeps leases, and records what it does.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use busbar_core::units::Watts;
use busbar_trust::Durability;

use crate::changes::{Changes, unix_millis};
use crate::config::Config;
use crate::control::{Control, Limit};
use crate::domain::{DomainName, Effective};
use crate::hardware::Hardware;
use crate::instance::Instance;
use crate::node::Node;
use crate::record::{Record, RecordError, RecordFile, SiteLimit, this_boot};
use crate::wire::{
    Answer, Caps, DomainReport, Event, Inventory, Refusal, RefusalKind, Request, SetReport,
};

mod jobs;
mod lease;
#[cfg(test)]
mod tests;

use jobs::Jobs;
pub(crate) use lease::Holder;
use lease::Lease;

/// What a peer may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Look only.
    Observer,
    /// Set caps as well.
    Controller,
}

/// The identity of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The user or certificate, which holds leases.
    pub(crate) identity: String,
    /// Which of several controllers with that identity.
    pub(crate) instance: Option<Instance>,
    /// What it calls itself, for the log.
    pub(crate) client: String,
    pub(crate) role: Role,
}

impl Peer {
    /// Whose lease it would be.
    pub(crate) fn holder(&self) -> Holder {
        Holder { name: self.identity.clone(), instance: self.instance.clone() }
    }
}

/// The agent of one node.
pub(crate) struct Agent {
    config: Config,
    node: Node,
    file: RecordFile,
    record: Record,
    changes: Changes,
    lease: Option<Lease>,
    jobs: Jobs,
    /// What happened outside of a look at the domains.
    events: Vec<Event>,
    /// Who was refused last because another controller holds the lease, and what it was told.
    refused: Option<(Holder, String)>,
    /// What the agent's own log is to say.
    notices: Vec<String>,
}

impl Agent {
    /// Takes over a node: saves the limits that the site has, or knows them from before a restart, and lowers
    /// what is above a cap that was set then.
    pub(crate) fn start(
        config: Config,
        hardware: Hardware,
        now: Instant,
    ) -> Result<Self, RecordError> {
        let (file, known) = RecordFile::open(&config.state)?;
        Agent::resumed(config, hardware, now, file, known.unwrap_or_else(Record::new))
    }

    /// The same for a node whose limits an agent has saved.
    pub(crate) fn of_saved(
        config: Config,
        hardware: Hardware,
        now: Instant,
    ) -> Result<Self, RecordError> {
        let (file, known) = RecordFile::existing(&config.state)?;
        Agent::resumed(config, hardware, now, file, known)
    }

    fn resumed(
        config: Config,
        hardware: Hardware,
        now: Instant,
        file: RecordFile,
        known: Record,
    ) -> Result<Self, RecordError> {
        let is_same_boot = known.boot == this_boot();
        let site = |name: &DomainName, control: &dyn Control| -> Option<Limit> {
            let saved = known.limits.get(name).filter(|saved| saved.source == control.source())?;
            let found = control.limit().ok().map(Limit::effective);
            let is_ours = known.caps.get(name).map(|cap| Effective::Limit(*cap)) == found;
            // After a reboot the hardware has the limits that the site has now, unless it kept ours.
            (is_same_boot || is_ours || found.is_none()).then_some(saved.limit)
        };
        let node = Node::new(&config, hardware.controls, site);
        let mut record = Record::new();
        for domain in node.domains() {
            if let Some((source, limit)) = domain.site() {
                let saved = SiteLimit { source: source.to_owned(), limit };
                record.limits.insert(domain.name.clone(), saved);
            }
        }
        record.caps = known.caps;
        record.controller = known.controller;
        file.write(&record, Durability::Now)?;
        let lease = record.controller.as_ref().map(|kept| Lease::resumed(kept, now));
        let changes = Changes::new(file.folder().clone());
        let jobs = Jobs::default();
        let (events, refused, notices) = (Vec::new(), None, Vec::new());
        let mut agent =
            Agent { config, node, file, record, changes, lease, jobs, events, refused, notices };
        agent.resume(now);
        agent.node.measure(now);
        Ok(agent)
    }

    /// Lowers again what is above a cap from before the restart.
    fn resume(&mut self, now: Instant) {
        let caps = self.record.caps.iter();
        let caps: Vec<(usize, Watts)> =
            caps.filter_map(|(name, cap)| Some((self.node.find(name).ok()?, *cap))).collect();
        let report = self.node.resume(&caps, now);
        self.log("the agent", "resume", &report.domains);
    }

    /// How often the agent must be asked to [watch](Self::watch).
    pub(crate) fn period(&self) -> Duration {
        self.config.period
    }

    /// Answers a request.
    pub(crate) fn answer(&mut self, peer: &Peer, request: Request, now: Instant) -> Answer {
        self.try_answer(peer, request, now).unwrap_or_else(Answer::Refused)
    }

    fn try_answer(
        &mut self,
        peer: &Peer,
        request: Request,
        now: Instant,
    ) -> Result<Answer, Refusal> {
        match request {
            Request::Hello { .. } => Err(refusal(RefusalKind::Malformed, "hello was said before")),
            Request::Inventory => Ok(Answer::Inventory(self.inventory())),
            Request::Read => {
                self.node.measure(now);
                Ok(Answer::Sample(self.node.sample(unix_millis())))
            }
            // Those who watch are known to the server.
            Request::Watch { .. } => Ok(Answer::Done),
            Request::Set(caps) => {
                self.check_controller(peer, now)?;
                let plan = self.plan(&caps)?;
                self.take_lease(peer, None, now);
                let mut report = self.set(peer, &plan, now);
                if let Caps::Node { cap } = caps {
                    report.requested = Some(cap);
                }
                Ok(Answer::Set(report))
            }
            Request::Renew { lease } => {
                self.check_controller(peer, now)?;
                let length = Duration::from_millis(lease);
                let length = self.take_lease(peer, Some(length), now);
                let lease = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
                Ok(Answer::Lease { lease })
            }
            Request::Release => {
                self.check_controller(peer, now)?;
                Ok(Answer::Set(self.release(&who(peer))))
            }
            Request::Begin { job } => {
                self.check_controller(peer, now)?;
                self.jobs.begin(job, &mut self.node, now)?;
                Ok(Answer::Done)
            }
            Request::End { job } => {
                self.check_controller(peer, now)?;
                Ok(Answer::Energy(self.jobs.end(&job, &mut self.node, now)?))
            }
        }
    }

    /// Whether a peer may change something now.
    fn check_controller(&mut self, peer: &Peer, now: Instant) -> Result<(), Refusal> {
        if peer.role != Role::Controller {
            let identity = &peer.identity;
            let text = format!("{identity} has read-only access to this node");
            return Err(refusal(RefusalKind::Forbidden, text));
        }
        self.check_lease(peer, now)
    }

    /// Refuses a controller while another one holds the lease, and has the log say so once.
    pub(crate) fn check_lease(&mut self, peer: &Peer, now: Instant) -> Result<(), Refusal> {
        let holder = peer.holder();
        let held = self.lease.as_ref().filter(|lease| !lease.is_of(&holder) && lease.until > now);
        let Some(text) = held.map(Lease::refusal) else { return Ok(()) };
        let refused = (holder, text.clone());
        if self.refused.as_ref() != Some(&refused) {
            self.notices.push(format!("{} ({}) is refused: {text}", refused.0, peer.client));
            self.refused = Some(refused);
        }
        Err(refusal(RefusalKind::Leased, text))
    }

    /// What the agent's own log is to say.
    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Grants a lease, or renews it, and says for how long.
    fn take_lease(&mut self, peer: &Peer, length: Option<Duration>, now: Instant) -> Duration {
        let holder = peer.holder();
        let present = self.lease.take().filter(|lease| lease.holder == holder);
        let before = present.as_ref().map(|lease| lease.length);
        let length = length.or(before).unwrap_or(self.config.caps.lease);
        let length = length.clamp(Duration::from_millis(100), self.config.caps.lease);
        let since = present.map_or_else(unix_millis, |lease| lease.since());
        let lease = Lease::new(holder, length, now, since);
        let kept = Some(lease.kept());
        self.lease = Some(lease);
        if self.record.controller != kept {
            self.record.controller = kept;
            // If this cannot be written, the next set says so.
            let _ = self.file.write(&self.record, Durability::Later);
        }
        length
    }

    /// The domains that a request concerns, with their caps.
    fn plan(&self, caps: &Caps) -> Result<Vec<(usize, Watts)>, Refusal> {
        match caps {
            Caps::Node { cap } => {
                let plan = self.node.split(*cap);
                match plan.is_empty() {
                    false => Ok(plan),
                    true => Err(refusal(
                        RefusalKind::Unknown,
                        "no domain of this node can be capped; 'busbar agent probe' says why",
                    )),
                }
            }
            Caps::Domains { caps } => {
                let mut plan: BTreeMap<usize, Watts> = BTreeMap::new();
                for (name, cap) in caps {
                    let place = self
                        .node
                        .find(name)
                        .map_err(|reason| refusal(RefusalKind::Unknown, reason))?;
                    if plan.insert(place, *cap).is_some() {
                        let text = format!("'{name}' is named twice");
                        return Err(refusal(RefusalKind::Malformed, text));
                    }
                }
                Ok(plan.into_iter().collect())
            }
        }
    }

    fn set(&mut self, peer: &Peer, plan: &[(usize, Watts)], now: Instant) -> SetReport {
        // A cap that is lowered is safe without a record; one that is raised is not.
        let unrecorded = self.record_caps(plan).err().map(|error| {
            let reason = format!("{error}: {}", cause(&error));
            self.events.push(Event::Unrecorded { reason: reason.clone() });
            reason
        });
        let report = self.node.set(plan, unrecorded.as_deref(), now);
        self.settle_record();
        self.log(&who(peer), "set", &report.domains);
        report
    }

    /// Writes down which caps are about to be set: the lower of old and new ones, which is what must hold if the
    /// agent is killed now.
    fn record_caps(&mut self, plan: &[(usize, Watts)]) -> Result<(), RecordError> {
        for (place, cap) in plan {
            let domain = &self.node.domains()[*place];
            let cap = domain.cap().map_or(*cap, |old| old.min(*cap));
            self.record.caps.insert(domain.name.clone(), cap);
        }
        self.file.write(&self.record, Durability::Later)
    }

    /// Writes down the caps that were really set.
    fn settle_record(&mut self) {
        let domains = self.node.domains().iter();
        let caps =
            domains.filter_map(|domain| Some((domain.name.clone(), domain.cap()?))).collect();
        if self.record.caps != caps {
            self.record.caps = caps;
            if let Err(error) = self.file.write(&self.record, Durability::Later) {
                let reason = format!("{error}: {}", cause(&error));
                self.events.push(Event::Unrecorded { reason });
            }
        }
    }

    fn log(&mut self, who: &str, what: &str, reports: &[DomainReport]) {
        if reports.is_empty() {
            return;
        }
        if let Err(error) = self.changes.add(who, what, reports) {
            self.events.push(Event::Unrecorded { reason: error.to_string() });
        }
    }

    /// Restores the site's limits and ends the lease.
    fn release(&mut self, who: &str) -> SetReport {
        let report = self.node.restore();
        self.lease = None;
        self.record.controller = None;
        self.settle_record();
        // Also where no cap was set, since the controller is gone.
        let _ = self.file.write(&self.record, Durability::Later);
        self.log(who, "restore", &report.domains);
        report
    }

    /// What the node has, and what holds now.
    pub(crate) fn inventory(&self) -> Inventory {
        let domains = self.node.inventory();
        let caps = self.node.caps();
        let lease = self.config.caps.lease.as_millis();
        Inventory {
            node: self.config.node.clone(),
            caps,
            counted: self.node.counted(),
            safe: caps.map(|caps| caps.clamp(self.safe_cap(caps.lowest))),
            longest_lease: u64::try_from(lease).unwrap_or(u64::MAX),
            controller: self.lease.as_ref().map(|lease| lease.holder.to_string()),
            emulated: domains.iter().any(|domain| domain.emulated),
            domains,
        }
    }

    fn safe_cap(&self, lowest: Watts) -> Watts {
        self.config.caps.safe.unwrap_or(lowest)
    }

    /// Looks after everything, and says what happened.
    pub(crate) fn watch(&mut self, now: Instant) -> Vec<Event> {
        let mut events = self.node.watch(now);
        for event in &events {
            if let Event::Changed { name, expected, found, effective } = event {
                let outcome = format!("{found} was found, {effective} holds");
                let report = DomainReport {
                    name: name.clone(),
                    requested: match expected {
                        Effective::Limit(limit) => *limit,
                        _ => Watts::ZERO,
                    },
                    outcome: crate::wire::Outcome::Clamped { reason: outcome },
                    before: *found,
                    effective: *effective,
                };
                if let Err(error) = self.changes.add("somebody else", "change", &[report]) {
                    self.events.push(Event::Unrecorded { reason: error.to_string() });
                }
            }
        }
        if let Some(lease) = self.lease.take_if(|lease| lease.until <= now) {
            events.push(self.fall(lease.holder.to_string(), now));
        }
        events.append(&mut self.events);
        events
    }

    /// Falls to the safe cap. Nothing is raised by that, since whoever set lower caps may still count on them.
    fn fall(&mut self, controller: String, now: Instant) -> Event {
        let lowest = self.node.caps().map_or(Watts::ZERO, |caps| caps.lowest);
        let plan = self.node.split_without_raising(self.safe_cap(lowest));
        let report = self.node.set(&plan, None, now);
        self.record.controller = None;
        self.settle_record();
        let _ = self.file.write(&self.record, Durability::Later);
        self.log(&format!("the agent, since {controller} was silent"), "safe", &report.domains);
        Event::LeaseEnded { controller, report }
    }

    /// The measurement of the last look.
    pub(crate) fn sample(&self) -> crate::wire::Sample {
        self.node.sample(unix_millis())
    }

    /// The controller that relies on the caps, if any.
    pub(crate) fn controller(&self) -> Option<&Holder> {
        self.lease.as_ref().map(|lease| &lease.holder)
    }

    /// Stops. The site's limits are restored, unless a controller counts on the caps: they stay then, and
    /// the next agent knows them.
    pub(crate) fn stop(&mut self) -> Stopped {
        match &self.lease {
            Some(lease) => Stopped::Kept { controller: lease.holder.to_string() },
            None => Stopped::Restored(self.release("the agent")),
        }
    }

    /// Restores the site's limits whoever counts on the caps.
    pub(crate) fn restore(&mut self, who: &str) -> SetReport {
        self.release(who)
    }
}

/// How an agent stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The limits that the site had were restored, as the report says.
    Restored(SetReport),
    /// The caps stay, because a controller counts on them.
    Kept {
        /// The identity of that client.
        controller: String,
    },
}

/// The user or certificate, and what it calls itself.
fn who(peer: &Peer) -> String {
    format!("{} ({})", peer.identity, peer.client)
}

fn cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(String::new, ToString::to_string)
}

pub(crate) fn refusal(kind: RefusalKind, message: impl Into<String>) -> Refusal {
    Refusal { kind, message: message.into() }
}
