//! The domains of a node: sets their limits one after another, and looks after them.

use std::time::{Duration, Instant};

use busbar_core::units::{Joules, Watts};

use crate::config::Config;
use crate::control::{Control, Limit};
use crate::domain::{CapRange, DomainName};
use crate::meter::Mark;
use crate::reading::Reading;
use crate::split::{split, whole};
use crate::wire::{self, DomainReport, DomainSample, Event, Outcome, SetReport};

mod domain;
mod watch;

pub(crate) use domain::Domain;
use domain::Verification;

/// A node.
pub(crate) struct Node {
    domains: Vec<Domain>,
    /// How much a domain may draw above its cap, in percent.
    tolerance: u32,
    reassert: bool,
    period: Duration,
}

impl Node {
    /// The node with these domains. `site` says what limit the site is known to have had.
    pub(crate) fn new(
        config: &Config,
        controls: Vec<Box<dyn Control>>,
        site: impl Fn(&DomainName, &dyn Control) -> Option<Limit>,
    ) -> Self {
        let mut numbers = std::collections::BTreeMap::new();
        let domain = |control: Box<dyn Control>| {
            let number = numbers.entry(control.kind()).or_insert(0);
            let name = DomainName::new(control.kind(), *number);
            *number += 1;
            let site = site(&name, control.as_ref());
            Domain::new(name, control, config, site)
        };
        Node {
            domains: controls.into_iter().map(domain).collect(),
            tolerance: config.caps.tolerance,
            reassert: config.caps.reassert,
            period: config.period,
        }
    }

    /// The domains.
    pub(crate) fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// The number of a domain that can be capped.
    pub(crate) fn find(&self, name: &DomainName) -> Result<usize, String> {
        let place = self.domains.iter().position(|domain| domain.name == *name);
        let place = place.ok_or_else(|| {
            let names: Vec<&str> = self.domains.iter().map(|domain| domain.name.as_str()).collect();
            format!("this node has no domain '{name}'; it has: {}", names.join(", "))
        })?;
        let domain = &self.domains[place];
        match domain.caps {
            Some(_) => Ok(place),
            None => Err(format!("'{name}' cannot be capped: {}", domain.notes.join("; "))),
        }
    }

    /// The range of the node's cap; `None` if no domain is part of it.
    pub(crate) fn caps(&self) -> Option<CapRange> {
        let ranges = self.ranges();
        (!ranges.is_empty()).then(|| whole(&ranges))
    }

    fn ranges(&self) -> Vec<CapRange> {
        let parts = self.domains.iter().filter(|domain| domain.in_node_cap);
        parts.filter_map(|domain| domain.caps).collect()
    }

    /// The caps of domains under a cap of the node.
    pub(crate) fn split(&self, cap: Watts) -> Vec<(usize, Watts)> {
        let parts = self.domains.iter().enumerate();
        let parts = parts.filter(|(_, domain)| domain.in_node_cap && domain.caps.is_some());
        parts.map(|(place, _)| place).zip(split(cap, &self.ranges())).collect()
    }

    /// The same, but no domain gets more than it has.
    pub(crate) fn split_without_raising(&self, cap: Watts) -> Vec<(usize, Watts)> {
        let lower = |(place, share): (usize, Watts)| {
            let domain = &self.domains[place];
            (place, share.min(domain.counted(domain.look())))
        };
        self.split(cap).into_iter().map(lower).collect()
    }

    /// What a budget must count for the capped part of the node now.
    pub(crate) fn counted(&self) -> Watts {
        let parts = self.domains.iter().filter(|domain| domain.in_node_cap);
        parts.map(|domain| domain.counted(domain.seen)).sum()
    }

    /// Sets caps: first what is lowered, and then, if all of that was confirmed, what is raised. With
    /// `no_raise` nothing is raised, for that reason.
    pub(crate) fn set(
        &mut self,
        plan: &[(usize, Watts)],
        no_raise: Option<&str>,
        now: Instant,
    ) -> SetReport {
        let mut reports: Vec<(usize, DomainReport)> = Vec::new();
        let (mut raised, mut lowered) = (Vec::new(), Vec::new());
        for (place, cap) in plan.iter().copied() {
            let domain = &mut self.domains[place];
            domain.seen = domain.look();
            match cap > domain.counted(domain.seen) {
                true => raised.push((place, cap)),
                false => lowered.push((place, cap)),
            }
        }
        let mut is_blocked = false;
        for (place, cap) in lowered {
            let report = self.domains[place].apply(cap, now, self.period);
            is_blocked |= report.outcome != Outcome::Confirmed;
            reports.push((place, report));
        }
        for (place, requested) in raised {
            let domain = &mut self.domains[place];
            let stays = |outcome| {
                let (name, before) = (domain.name.clone(), domain.seen);
                DomainReport { name, requested, outcome, before, effective: before }
            };
            let report = match no_raise {
                _ if is_blocked => stays(Outcome::Withheld),
                Some(reason) => stays(Outcome::Failed { reason: reason.to_owned() }),
                None => domain.apply(requested, now, self.period),
            };
            reports.push((place, report));
        }
        reports.sort_by_key(|(place, _)| *place);
        let domains = reports.into_iter().map(|(_, report)| report).collect();
        SetReport { requested: None, domains, counted: self.counted() }
    }

    /// Takes caps over from before a restart: a limit above its cap is lowered again.
    pub(crate) fn resume(&mut self, caps: &[(usize, Watts)], now: Instant) -> SetReport {
        let mut domains = Vec::new();
        for (place, cap) in caps {
            let domain = &mut self.domains[*place];
            domain.cap = Some(*cap);
            domain.verification = Verification::Due(now + domain.control.settling_time());
            domain.seen = domain.look();
            if domain.counted(domain.seen) > *cap {
                domains.push(domain.apply(*cap, now, self.period));
            }
        }
        SetReport { requested: None, domains, counted: self.counted() }
    }

    /// Restores the limits that the site had, one by one: if one fails, the others are restored all the same.
    pub(crate) fn restore(&mut self) -> SetReport {
        let mut domains = Vec::new();
        for domain in &mut self.domains {
            let (Some(site), Some(_)) = (domain.site, domain.cap) else { continue };
            let before = domain.look();
            let (written, effective) = domain.write(site);
            let requested = domain.counted(site.effective());
            let outcome = match written {
                Err(error) => Outcome::Failed { reason: error.to_string() },
                Ok(()) if effective == site.effective() => Outcome::Confirmed,
                Ok(()) => Outcome::Clamped { reason: format!("{effective} was read back") },
            };
            if outcome == Outcome::Confirmed {
                domain.cap = None;
                domain.verification = Verification::None;
            }
            let name = domain.name.clone();
            domains.push(DomainReport { name, requested, outcome, before, effective });
        }
        SetReport { requested: None, domains, counted: self.counted() }
    }

    /// Measures all domains, without looking after their limits.
    pub(crate) fn measure(&mut self, now: Instant) {
        for domain in &mut self.domains {
            let shown = domain.control.measure();
            domain.unreadable = shown.as_ref().err().map(ToString::to_string);
            domain.meter.observe(now, shown);
        }
    }

    /// What was measured last, of the whole node and of each domain.
    pub(crate) fn sample(&self, at: u64) -> wire::Sample {
        let domain = |domain: &Domain| DomainSample {
            name: domain.name.clone(),
            power: domain.meter.power().clone(),
            energy: domain.meter.energy(),
            effective: domain.seen,
        };
        let domains: Vec<DomainSample> = self.domains.iter().map(domain).collect();
        let power = Reading::sum(domains.iter().map(|part| (part.name.as_str(), &part.power)));
        wire::Sample { at, power, domains }
    }

    /// Marks from which the energy of a job counts.
    pub(crate) fn marks(&self) -> Vec<Mark> {
        self.domains.iter().map(|domain| domain.meter.mark()).collect()
    }

    /// The energy of each domain since the marks.
    pub(crate) fn energy_since(&self, marks: &[Mark]) -> Vec<(DomainName, Reading<Joules>)> {
        let parts = self.domains.iter().zip(marks);
        parts
            .map(|(domain, mark)| (domain.name.clone(), domain.meter.energy_since(*mark)))
            .collect()
    }

    /// The domains as an inventory shows them.
    pub(crate) fn inventory(&self) -> Vec<wire::Domain> {
        let domain = |domain: &Domain| wire::Domain {
            name: domain.name.clone(),
            kind: domain.control.kind(),
            source: domain.control.source().to_owned(),
            emulated: domain.control.is_emulated(),
            caps: domain.caps,
            lowest_basis: domain.lowest_basis,
            rated: domain.rated,
            notes: domain.notes.clone(),
            in_node_cap: domain.in_node_cap,
            effective: domain.seen,
            cap: domain.cap,
        };
        self.domains.iter().map(domain).collect()
    }

    /// Measures, looks after all limits, and says what happened.
    pub(crate) fn watch(&mut self, now: Instant) -> Vec<Event> {
        self.measure(now);
        let mut events = Vec::new();
        for domain in &mut self.domains {
            domain.notice_loss(&mut events);
            domain.keep_cap(self.reassert, now, self.period, &mut events);
            domain.verify(self.tolerance, now, &mut events);
        }
        events
    }
}
