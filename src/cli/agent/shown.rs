//! What `--json` prints of a node: what its agent says, in watts, seconds and joules.
//!
//! The agent's own protocol counts milliwatts, milliseconds and microjoules.

use serde::Serialize;

use crate::agent::domain::{Basis, CapRange, DomainKind, Effective};
use crate::agent::probe::Probe;
use crate::agent::reading::Reading;
use crate::agent::wire::{Domain, DomainSample, Inventory, Sample};
use crate::units::json::{self, InJson};
use crate::units::{Joules, Watts};

/// A node and what it draws.
#[derive(Serialize)]
pub(super) struct ShownStatus<'a> {
    inventory: ShownInventory<'a>,
    sample: ShownSample<'a>,
}

impl<'a> ShownStatus<'a> {
    pub(super) fn of(inventory: &'a Inventory, sample: &'a Sample) -> Self {
        let domains = inventory.domains.iter().map(ShownDomain::of).collect();
        let sampled = sample.domains.iter().map(ShownDomainSample::of).collect();
        ShownStatus {
            inventory: ShownInventory {
                node: &inventory.node,
                caps: inventory.caps.map(ShownCaps::of),
                counted: inventory.counted,
                safe: inventory.safe,
                longest_lease: inventory.longest_lease,
                controller: inventory.controller.as_deref(),
                emulated: inventory.emulated,
                domains,
            },
            sample: ShownSample {
                at: sample.at,
                power: Power::of(&sample.power),
                domains: sampled,
            },
        }
    }
}

/// What a node can do, and what is missing.
#[derive(Serialize)]
pub(super) struct ShownProbe<'a> {
    node: &'a str,
    caps: Option<ShownCaps>,
    domains: Vec<ShownProbedDomain<'a>>,
    left_out: &'a [(String, String)],
    advice: &'a [String],
}

impl<'a> ShownProbe<'a> {
    pub(super) fn of(probe: &'a Probe) -> Self {
        let domains = probe.domains.iter().map(|probed| ShownProbedDomain {
            domain: ShownDomain::of(&probed.domain),
            sample: ShownDomainSample::of(&probed.sample),
            obstacle: probed.obstacle.as_deref(),
        });
        ShownProbe {
            node: &probe.node,
            caps: probe.caps.map(ShownCaps::of),
            domains: domains.collect(),
            left_out: &probe.left_out,
            advice: &probe.advice,
        }
    }
}

#[derive(Serialize)]
struct ShownInventory<'a> {
    node: &'a str,
    caps: Option<ShownCaps>,
    #[serde(rename = "counted_w", with = "json")]
    counted: Watts,
    #[serde(rename = "safe_w", with = "json")]
    safe: Option<Watts>,
    #[serde(rename = "longest_lease_s", with = "json::thousandths")]
    longest_lease: u64,
    controller: Option<&'a str>,
    emulated: bool,
    domains: Vec<ShownDomain<'a>>,
}

#[derive(Serialize)]
struct ShownCaps {
    #[serde(rename = "lowest_w", with = "json")]
    lowest: Watts,
    #[serde(rename = "highest_w", with = "json")]
    highest: Watts,
}

impl ShownCaps {
    fn of(CapRange { lowest, highest }: CapRange) -> Self {
        ShownCaps { lowest, highest }
    }
}

#[derive(Serialize)]
struct ShownDomain<'a> {
    name: &'a str,
    kind: DomainKind,
    source: &'a str,
    emulated: bool,
    caps: Option<ShownCaps>,
    lowest_basis: Option<Basis>,
    #[serde(rename = "rated_w", with = "json")]
    rated: Watts,
    notes: &'a [String],
    in_node_cap: bool,
    effective: ShownLimit,
    #[serde(rename = "cap_w", with = "json")]
    cap: Option<Watts>,
}

impl<'a> ShownDomain<'a> {
    fn of(domain: &'a Domain) -> Self {
        ShownDomain {
            name: domain.name.as_str(),
            kind: domain.kind,
            source: &domain.source,
            emulated: domain.emulated,
            caps: domain.caps.map(ShownCaps::of),
            lowest_basis: domain.lowest_basis,
            rated: domain.rated,
            notes: &domain.notes,
            in_node_cap: domain.in_node_cap,
            effective: ShownLimit::of(domain.effective),
            cap: domain.cap,
        }
    }
}

/// The limit that holds.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum ShownLimit {
    #[serde(rename = "limit_w", with = "json")]
    Limit(Watts),
    Unlimited,
    Unknown,
}

impl ShownLimit {
    fn of(effective: Effective) -> Self {
        match effective {
            Effective::Limit(limit) => ShownLimit::Limit(limit),
            Effective::Unlimited => ShownLimit::Unlimited,
            Effective::Unknown => ShownLimit::Unknown,
        }
    }
}

#[derive(Serialize)]
struct ShownProbedDomain<'a> {
    #[serde(flatten)]
    domain: ShownDomain<'a>,
    sample: ShownDomainSample<'a>,
    obstacle: Option<&'a str>,
}

#[derive(Serialize)]
struct ShownSample<'a> {
    /// Since 1970.
    #[serde(rename = "at_s", with = "json::thousandths")]
    at: u64,
    power: Power<'a>,
    domains: Vec<ShownDomainSample<'a>>,
}

#[derive(Serialize)]
struct ShownDomainSample<'a> {
    name: &'a str,
    power: Power<'a>,
    energy: Energy<'a>,
    effective: ShownLimit,
}

impl<'a> ShownDomainSample<'a> {
    fn of(sample: &'a DomainSample) -> Self {
        ShownDomainSample {
            name: sample.name.as_str(),
            power: Power::of(&sample.power),
            energy: Energy::of(&sample.energy),
            effective: ShownLimit::of(sample.effective),
        }
    }
}

/// A value with what it is worth, under a key with its unit; a reason instead if it is unknown.
macro_rules! reading {
    ($name:ident, $quantity:ty, $key:literal) => {
        #[derive(Serialize)]
        struct $name<'a> {
            origin: &'static str,
            #[serde(rename = $key, with = "json", skip_serializing_if = "Option::is_none")]
            value: Option<$quantity>,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<&'a str>,
            source: &'a str,
        }

        impl<'a> $name<'a> {
            fn of(reading: &'a Reading<$quantity>) -> Self {
                let (reason, source) = worth(reading);
                $name { origin: reading.origin(), value: reading.value().copied(), reason, source }
            }
        }
    };
}

reading!(Power, Watts, "power_w");
reading!(Energy, Joules, "energy_j");

/// Why a reading has no value, and what was read.
fn worth<Q: InJson>(reading: &Reading<Q>) -> (Option<&str>, &str) {
    match reading {
        Reading::Measured { source, .. }
        | Reading::Estimated { source, .. }
        | Reading::Emulated { source, .. } => (None, source),
        Reading::Unknown { reason, source } => (Some(reason), source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: &impl Serialize) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn readings_say_their_unit_or_why_there_is_none() {
        let power = Reading::read(Watts::from_milliwatts(61_250), true, "powercap 0");
        assert_eq!(
            json(&Power::of(&power)),
            r#"{"origin":"emulated","power_w":61.25,"source":"powercap 0"}"#
        );
        let energy = Reading::<Joules>::unknown("no meter", "powercap 0");
        assert_eq!(
            json(&Energy::of(&energy)),
            r#"{"origin":"unknown","reason":"no meter","source":"powercap 0"}"#
        );
        assert_eq!(json(&ShownLimit::of(Effective::Unlimited)), r#""unlimited""#);
        let limit = Effective::Limit(Watts::from_watts(90));
        assert_eq!(json(&ShownLimit::of(limit)), r#"{"limit_w":90}"#);
    }
}
