//! One domain with what the agent knows of it: its range, its cap, and the limit that holds.

use std::time::{Duration, Instant};

use busbar_core::units::Watts;

use crate::config::Config;
use crate::control::{Control, ControlError, Limit};
use crate::domain::{Basis, CapRange, DomainName, Effective};
use crate::meter::Meter;
use crate::wire::{DomainReport, Outcome};

/// Whether a domain obeys its cap, as far as its meter shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verification {
    /// There is no cap.
    None,
    /// That can be told from then on.
    Due(Instant),
    /// It does.
    Verified,
    /// It does not.
    Exceeded,
    /// Its meter shows nothing.
    Blind,
}

/// What a domain is taken to draw at most by default.
const UNRATED: Watts = Watts::from_watts(2000);

/// The share of the highest cap that is taken for the lowest one by default, in percent.
const ASSUMED_LOWEST: u64 = 30;

/// A domain with what the agent knows of it.
pub(crate) struct Domain {
    pub(crate) name: DomainName,
    pub(super) control: Box<dyn Control>,
    pub(super) caps: Option<CapRange>,
    pub(super) lowest_basis: Option<Basis>,
    pub(super) notes: Vec<String>,
    pub(super) in_node_cap: bool,
    /// What a budget must count if no limit is known to hold.
    pub(super) rated: Watts,
    /// The limit that the site had, once it is known.
    pub(super) site: Option<Limit>,
    /// The cap that the agent holds the domain to.
    pub(super) cap: Option<Watts>,
    /// The limit that held when the agent looked last.
    pub(super) seen: Effective,
    pub(super) meter: Meter,
    /// Why its meter could not be read the last time.
    pub(super) unreadable: Option<String>,
    /// Why it is known to be lost.
    pub(super) lost: Option<String>,
    pub(super) verification: Verification,
}

impl Domain {
    /// A domain as the hardware shows it, with what the configuration says about it, and the limit that the
    /// site is known to have had.
    pub(super) fn new(
        name: DomainName,
        control: Box<dyn Control>,
        config: &Config,
        site: Option<Limit>,
    ) -> Self {
        let found = control.limit();
        let site = site.or_else(|| found.as_ref().ok().copied());
        let seen = found.as_ref().map_or(Effective::Unknown, |limit| limit.effective());
        let mut notes = Vec::new();
        let spec = config.ranges.get(&name).copied().unwrap_or_default();
        let hardware = control.range();
        let of_site = site.map(|limit| Limit { enabled: true, ..limit }.effective());
        let known = hardware.as_ref().ok().and_then(|range| range.highest);
        // Some firmware writes a limit of kilowatts to mean none.
        let most = known.map_or(Watts::UNLIMITED, |known| known.saturating_add(known));
        let of_site = match of_site {
            Some(Effective::Limit(limit)) => Some(limit.min(most)),
            _ => None,
        };
        let rated = known.max(of_site).max(spec.highest);
        let (mut caps, mut lowest_basis) = (None, None);
        match (hardware, spec.highest.or(known).or(of_site)) {
            (Err(error), _) => notes.push(error.to_string()),
            (Ok(_), None) => notes.push(format!(
                "the hardware does not report its highest limit; write 'highest' under [range.{name}]"
            )),
            (Ok(range), Some(highest)) => {
                let assumed = Watts::from_milliwatts(highest.milliwatts() * ASSUMED_LOWEST / 100);
                let (lowest, basis) = match (spec.lowest, range.lowest) {
                    (Some(lowest), _) => (lowest, Basis::Configured),
                    (None, Some(lowest)) => (lowest, Basis::Read),
                    (None, None) => (assumed, Basis::Assumed),
                };
                if basis == Basis::Assumed {
                    notes.push(format!(
                        "the lowest cap is assumed to be {lowest}; write 'lowest' under [range.{name}] if you know it"
                    ));
                }
                caps = Some(CapRange { lowest: lowest.min(highest), highest });
                lowest_basis = Some(basis);
            }
        }
        let rated = rated.unwrap_or(UNRATED);
        let meter = Meter::new(control.source(), control.is_emulated(), rated);
        let in_node_cap = caps.is_some() && config.caps.domains.contains(&control.kind());
        Domain {
            name,
            control,
            caps,
            lowest_basis,
            notes,
            in_node_cap,
            rated,
            site,
            cap: None,
            seen,
            meter,
            unreadable: None,
            lost: None,
            verification: Verification::None,
        }
    }

    /// The limit that holds now.
    pub(super) fn look(&self) -> Effective {
        self.control.limit().map_or(Effective::Unknown, Limit::effective)
    }

    /// The limit that the site had, with the hardware that it belongs to.
    pub(crate) fn site(&self) -> Option<(&str, Limit)> {
        self.site.map(|limit| (self.control.source(), limit))
    }

    /// Why its limit could not be changed, as far as that can be told without a try.
    pub(crate) fn lacks_rights(&self) -> Option<ControlError> {
        self.control.check_rights().err()
    }

    /// The cap that the agent holds the domain to.
    pub(crate) fn cap(&self) -> Option<Watts> {
        self.cap
    }

    /// Writes a limit, and reads back what holds then.
    pub(super) fn write(&mut self, limit: Limit) -> (Result<(), ControlError>, Effective) {
        let written = self.control.set_limit(limit);
        self.seen = self.look();
        (written, self.seen)
    }

    /// Sets a cap within the domain's range, and says what became of it.
    pub(super) fn apply(
        &mut self,
        requested: Watts,
        now: Instant,
        period: Duration,
    ) -> DomainReport {
        let before = self.seen;
        let target = self.caps.map_or(requested, |caps| caps.clamp(requested));
        let (written, effective) = self.write(Limit::of(target));
        let outcome = match (written, effective) {
            (Err(error), _) => Outcome::Failed { reason: error.to_string() },
            (Ok(()), Effective::Limit(limit)) if limit <= requested => Outcome::Confirmed,
            (Ok(()), Effective::Limit(limit)) => {
                let reason = match target > requested {
                    true => format!("the lowest cap of this domain is {target}"),
                    false => format!("{target} was written, and {limit} was read back"),
                };
                Outcome::Clamped { reason }
            }
            (Ok(()), Effective::Unlimited) => Outcome::Failed {
                reason: "the limit was written, but the zone stays switched off".to_owned(),
            },
            (Ok(()), Effective::Unknown) => Outcome::Failed {
                reason: "the limit was written, but cannot be read back".to_owned(),
            },
        };
        if let Effective::Limit(limit) = effective {
            self.cap = Some(limit.min(target));
            // Meters show an average over the last period.
            let settled = now + self.control.settling_time() + period * 2;
            self.verification = Verification::Due(settled);
        }
        DomainReport { name: self.name.clone(), requested, outcome, before, effective }
    }

    pub(super) fn counted(&self, effective: Effective) -> Watts {
        effective.counted(self.rated)
    }
}
