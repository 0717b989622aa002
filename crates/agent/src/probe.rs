//! What this node can do, and what is missing, in words that an operator can act on. Nothing is changed.

use std::fmt::Write;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use busbar_trust::{TrustError, TrustedFolder};

use crate::config::Config;
use crate::control::ControlError;
use crate::domain::Effective;
use crate::hardware;
use crate::node::Node;
use crate::record::STATE;
use crate::wire::{Domain, DomainSample};

/// How long power is measured.
const MOMENT: Duration = Duration::from_millis(250);

/// What a node can do.
#[derive(Debug)]
pub struct Probe {
    /// The node's name.
    pub node: String,
    /// The caps that the whole node can be given, if any.
    pub caps: Option<crate::domain::CapRange>,
    /// Its domains.
    pub domains: Vec<ProbedDomain>,
    /// What was found and is not used, with the reason.
    pub left_out: Vec<(String, String)>,
    /// What is missing, and what to do about it.
    pub advice: Vec<String>,
}

/// A domain, what it draws, and whether its limit could be changed.
#[derive(Debug)]
pub struct ProbedDomain {
    /// The domain.
    pub domain: Domain,
    /// Its power.
    pub sample: DomainSample,
    /// Why its limit could not be changed, as far as that can be told without a try.
    pub obstacle: Option<String>,
}

/// Looks at this node.
pub fn probe(config: &Config) -> io::Result<Probe> {
    let hardware = hardware::discover(&config.hardware)?;
    let mut node = Node::new(config, hardware.controls, |_, _| None);
    node.measure(Instant::now());
    std::thread::sleep(MOMENT);
    node.measure(Instant::now());
    let obstacles: Vec<Option<ControlError>> =
        node.domains().iter().map(|domain| domain.lacks_rights()).collect();
    let samples = node.sample(0).domains;
    let parts = node.inventory().into_iter().zip(samples).zip(&obstacles);
    let domains: Vec<ProbedDomain> = parts
        .map(|((domain, sample), obstacle)| ProbedDomain {
            domain,
            sample,
            obstacle: obstacle.as_ref().map(ToString::to_string),
        })
        .collect();
    let mut advice = Vec::new();
    advise_on_hardware(config, &domains, &mut advice);
    advise_on_rights(&domains, &obstacles, &mut advice);
    advise_on_setup(config, &mut advice);
    let (caps, left_out) = (node.caps(), hardware.left_out);
    Ok(Probe { node: config.node.clone(), caps, domains, left_out, advice })
}

fn advise_on_hardware(config: &Config, domains: &[ProbedDomain], advice: &mut Vec<String>) {
    let root = &config.hardware.powercap;
    if !root.is_dir() {
        advice.push(format!(
            "There is no folder {}. On a server of your own, load the kernel's driver: modprobe intel_rapl_msr \
             (Intel and AMD). A virtual machine or a container usually has none: run the agent on its host. To try \
             the agent without power hardware: busbar agent emulate create tree",
            root.display()
        ));
    } else if domains.is_empty() {
        advice.push(format!(
            "{} shows no package. Load the kernel's driver: modprobe intel_rapl_msr (Intel and AMD)",
            root.display()
        ));
    }
    let is_capped = domains.iter().any(|probed| probed.domain.caps.is_some());
    if !domains.is_empty() && !is_capped {
        advice.push(
            "No domain can be capped, so the agent can only measure. AMD processors are capped by their \
             firmware's own tools; GPUs need 'set = true' under [gpu]"
                .to_owned(),
        );
    }
}

fn advise_on_rights(
    domains: &[ProbedDomain],
    obstacles: &[Option<ControlError>],
    advice: &mut Vec<String>,
) {
    let is_blind = |probed: &&ProbedDomain| probed.sample.power.value().is_none();
    for probed in domains.iter().filter(is_blind) {
        let (name, power) = (&probed.domain.name, &probed.sample.power);
        advice.push(format!(
            "The power of {name} is {power}. Energy counters are readable by root only; the service in \
             packaging/busbar-agent.service has the capability that is needed"
        ));
    }
    for (probed, obstacle) in domains.iter().zip(obstacles) {
        if let (Some(_), Some(ControlError::Denied { place, .. })) = (probed.domain.caps, obstacle)
        {
            advice.push(format!(
                "{place} may not be written by this user. Run the agent as root, or as the service in \
                 packaging/busbar-agent.service, or give its group the right by a udev rule"
            ));
        }
        if probed.domain.effective == Effective::Unlimited {
            let name = &probed.domain.name;
            advice.push(format!(
                "{name} has no limit in force now; the agent switches it on with the first cap"
            ));
        }
    }
}

fn advise_on_setup(config: &Config, advice: &mut Vec<String>) {
    if let Some(tcp) = &config.tcp
        && let Err(error) = tcp.keys.server(&config.node)
    {
        advice.push(format!("Other machines cannot connect: {error}"));
    }
    match TrustedFolder::existing(&config.state, STATE).and_then(|folder| folder.check_all()) {
        // That it is not there, or cannot be opened, is said below if it matters.
        Ok(()) | Err(TrustError::File { .. }) => (),
        Err(error) => advice.push(error.to_string()),
    }
    let mut folder: Option<&Path> = Some(&config.state);
    while let Some(here) = folder.filter(|here| !here.exists()) {
        folder = here.parent();
    }
    let may_write =
        folder.is_some_and(|here| rustix::fs::access(here, rustix::fs::Access::WRITE_OK).is_ok());
    if !may_write {
        advice.push(format!(
            "{} cannot be written, so the agent changes no limit; name another folder with 'state'",
            config.state.display()
        ));
    }
}

impl Probe {
    /// The same for people.
    pub fn in_words(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = match self.caps {
            Some(caps) => {
                writeln!(text, "node {}: caps from {} to {}", self.node, caps.lowest, caps.highest)
            }
            None => writeln!(text, "node {}: cannot be capped", self.node),
        };
        for probed in &self.domains {
            let domain = &probed.domain;
            let _ = writeln!(text, "\n{}  ({})", domain.name, domain.source);
            let _ = writeln!(text, "  draws   {}", probed.sample.power);
            let _ = writeln!(text, "  limit   {}", domain.effective);
            let _ = match domain.caps {
                Some(caps) => writeln!(text, "  caps    {} to {}", caps.lowest, caps.highest),
                None => writeln!(text, "  caps    none: power is only measured"),
            };
            let obstacle = probed.obstacle.as_ref().filter(|text| !domain.notes.contains(text));
            for note in domain.notes.iter().chain(obstacle) {
                let _ = writeln!(text, "  note    {note}");
            }
        }
        if !self.left_out.is_empty() {
            let _ = writeln!(text, "\nnot used:");
        }
        for (what, reason) in &self.left_out {
            let _ = writeln!(text, "  {what}: {reason}");
        }
        match self.advice.is_empty() {
            true => text.push_str("\nnothing is missing\n"),
            false => text.push_str("\nto do:\n"),
        }
        for advice in &self.advice {
            let _ = writeln!(text, "  - {advice}.");
        }
        text
    }
}
