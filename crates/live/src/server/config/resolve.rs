//! A configuration checked against this machine, with machine, budget and profiles ready for use.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

use super::{Config, ConfigError, EngineKind, Length};
use crate::control::decider::{DeciderError, Site};
use crate::control::schedule::{Allowance, Schedule, ScheduleError, ScheduleSpec};
use crate::control::setup::Setup;
use crate::engines::local::usable_cpus;
use crate::server::users::number_of;
use busbar_core::machine::Machine;
use busbar_core::policy::PolicySpec;
use busbar_core::priority::{SiteError, SiteFile};
use busbar_core::profile::Profile;
use busbar_core::profile::cab::{self, Preset};
use busbar_core::world::Repertoire;
use busbar_profiles::Store;
use busbar_slurm::setup::{Fail, Mode};

/// The longest path of a Unix socket, in bytes.
const LONGEST_SOCKET: usize = 107;

/// A configuration checked against this machine: everything a daemon needs to start.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The machine, the applications and the policy, with default rules.
    pub setup: Setup,
    /// The power budget over time.
    pub schedule: Schedule,
    /// The number of applications with profiles.
    pub profiles: usize,
    /// The processors of each node; `None` if jobs are not pinned.
    pub cpus: Option<Vec<Vec<u32>>>,
    /// Remarks for the operator.
    pub remarks: Vec<String>,
}

impl Config {
    /// Checks the configuration against this machine. Nothing is written.
    pub fn resolve(&self) -> Result<Resolved, ConfigError> {
        self.resolve_beside(0)
    }

    /// The same where the budget also feeds nodes that are not the daemon's, so many. They count with their highest draw
    /// at all times.
    pub(crate) fn resolve_beside(&self, others: u32) -> Result<Resolved, ConfigError> {
        let mut said = Machine::part_of(&self.machine, &[])
            .map_err(|why| self.source.error("machine", why))?;
        self.check_kinds(&said)?;
        if said.feeds.is_some() {
            self.check_feeds()?;
        }
        let each = self.slurm.others.unwrap_or(said.node_power);
        said.base_power = said.base_power.saturating_add(each * others);
        let profiles = self.open_profiles()?;
        let setup = Setup::new(&said, Repertoire::of(&profiles), self.policy.clone());
        let setup = setup.map_err(|why| {
            let field = match why {
                DeciderError::Unfit { .. } | DeciderError::Simulated { .. } => "policy",
                DeciderError::Unsuited(_) if self.profiles.is_some() => "profiles",
                DeciderError::Unsuited(_) => "machine",
            };
            self.source.error(field, why)
        })?;
        let setup = Setup { decider: setup.decider.clone().at_site(self.open_site()?), ..setup };
        let machine = &setup.machine;
        let schedule = self.budget.resolve(machine, &TimeZone::system());
        let schedule = schedule.map_err(|why| {
            let field = match self.budget {
                ScheduleSpec::Daily(_) => "daily",
                _ => "budget",
            };
            match why {
                ScheduleError::Limit(why) => self.source.error(field, why),
                why => self.source.error(field, why),
            }
        })?;
        self.check_socket()?;
        self.check_tune()?;
        self.check_agents(machine)?;
        self.check_switch_off(machine)?;
        let cpus = self.cpus(machine)?;
        let mut remarks = self.remarks(&said, machine);
        if others > 0 {
            remarks.push(format!(
                "{others} nodes of Slurm are not Busbar's; {each} of the budget are reserved for each (slurm.others)"
            ));
        }
        let profiles = profiles.iter().filter(|profile| !profile.rows.is_empty()).count();
        Ok(Resolved { setup, schedule, profiles, cpus, remarks })
    }

    /// Refuses to take over from a daemon of which a command may still be carried out afterwards. Who leads looks before each
    /// command whether it does, and another daemon waits for half as long again as it may go without looking.
    pub(crate) fn check_takeover(&self) -> Result<(), ConfigError> {
        let (within, takeover) = (self.slurm.within, self.takeover);
        if self.engine.kind != EngineKind::Slurm || 2 * within.millis() <= takeover.millis() {
            return Ok(());
        }
        let why = format!(
            "{} is more than half of takeover ({}): a command of a daemon that stands still might be carried out after another one \
             has taken over",
            Length(within),
            Length(takeover)
        );
        Err(self.source.error("slurm.within", why))
    }

    /// Refuses to guard a cluster whose jobs are to wait.
    pub(crate) fn check_guard(&self) -> Result<(), ConfigError> {
        if self.engine.kind == EngineKind::Slurm && self.slurm.fail == Fail::Admit {
            return self.check_takeover();
        }
        let why = "there is nothing to guard, since jobs wait while no daemon is there; say slurm.fail = \"admit\"";
        Err(self.source.error("slurm.fail", why))
    }

    fn check_socket(&self) -> Result<(), ConfigError> {
        let length = self.socket.as_os_str().len();
        if length > LONGEST_SOCKET {
            let why = format!(
                "the path has {length} bytes, and the maximum for a socket is {LONGEST_SOCKET}: {}; set another \
                with socket = \"…\" or in BUSBAR_SOCKET",
                self.socket.display()
            );
            return Err(self.source.error("socket", why));
        }
        Ok(())
    }

    /// What the daemon tries at night, it may be told to use by day.
    fn check_tune(&self) -> Result<(), ConfigError> {
        for (place, policy) in self.tune.policies.iter().enumerate() {
            if policy.is_for_simulations() {
                let why = DeciderError::Simulated { policy: policy.clone() };
                return Err(self.source.error(&format!("tune.policies[{place}]"), why));
            }
        }
        Ok(())
    }

    /// Refuses feeds where Slurm starts jobs by itself: it does not know which licence is for which node, so what one feed may carry
    /// it would hand out below another.
    fn check_feeds(&self) -> Result<(), ConfigError> {
        if self.engine.kind != EngineKind::Slurm {
            return Ok(());
        }
        let (field, mode) = match (self.slurm.mode, self.slurm.fail) {
            (Mode::Steer, Fail::Wait) => return Ok(()),
            (Mode::Steer, Fail::Admit) => ("slurm.fail", "'wait'"),
            (Mode::Admit | Mode::Watch, _) => ("slurm.mode", "'steer'"),
        };
        let why = format!(
            "the machine file has [[feed]], and Slurm chooses nodes by itself without knowing what feeds may carry: its licences are \
             those of the whole cluster; write {mode}, or leave the feeds out"
        );
        Err(self.source.error(field, why))
    }

    /// Refuses what does not work where nodes are of several kinds, or jobs share them.
    fn check_kinds(&self, machine: &Machine) -> Result<(), ConfigError> {
        if machine.kinds.is_none() {
            return Ok(());
        }
        let (field, what) = if self.engine.kind == EngineKind::Slurm {
            (
                "engine.kind",
                "Slurm's jobs are not counted by parts of nodes as yet; write \"local\"",
            )
        } else if !self.agents.nodes.is_empty() {
            ("agents.nodes", "an agent caps whole nodes of one kind; leave this key out")
        } else if self.switch_off.is_some() {
            ("switch_off", "such nodes are not switched; leave this key out")
        } else if self.tune.nightly().is_some() {
            ("tune", "the past of such a machine is not replayed; leave this table out")
        } else {
            return Ok(());
        };
        let why =
            format!("the machine has nodes of several kinds, or nodes that jobs share: {what}");
        Err(self.source.error(field, why))
    }

    /// Refuses to switch nodes that the daemon cannot switch.
    fn check_switch_off(&self, machine: &Machine) -> Result<(), ConfigError> {
        let why = match (self.switch_off, self.engine.kind) {
            (None, _) => return Ok(()),
            (Some(_), _) if machine.feeds.is_some() => {
                "the machine has feeds, whose limits count idle nodes at all times; leave this key or [[feed]] out"
            }
            (Some(_), EngineKind::Slurm) => {
                "Busbar does not switch the nodes of a Slurm cluster; leave this key out"
            }
            (Some(_), EngineKind::Local) if !self.agents.nodes.is_empty() => {
                "Busbar does not switch nodes that have agents; leave this key or agents.nodes out"
            }
            (Some(_), EngineKind::Local) => return Ok(()),
        };
        Err(self.source.error("switch_off", why))
    }

    fn check_agents(&self, machine: &Machine) -> Result<(), ConfigError> {
        let (agents, nodes) = (self.agents.nodes.len(), machine.node_count() as usize);
        if agents != 0 && agents != nodes {
            let why = format!("there are {agents} agents for {nodes} nodes; write one for each");
            return Err(self.source.error("agents.nodes", why));
        }
        if self.engine.kind == EngineKind::Slurm && !self.slurm.nodes.is_empty() {
            self.check_nodes(&self.slurm.nodes, nodes)
                .map_err(|why| self.source.error("slurm.nodes", why))?;
        }
        Ok(())
    }

    /// Checks whether Slurm's nodes are those of the machine and those that have agents.
    pub(crate) fn check_nodes(&self, names: &[String], nodes: usize) -> Result<(), String> {
        if names.len() != nodes {
            return Err(format!(
                "Slurm has {} nodes, and the machine {nodes}; name the nodes (slurm.nodes), or describe their \
                machine (machine)",
                names.len()
            ));
        }
        let pairs = names.iter().zip(&self.agents.nodes);
        match pairs.into_iter().find(|(name, agent)| **name != agent.name) {
            Some((name, agent)) => Err(format!(
                "node '{name}' is followed by the agent of '{}' (agents.nodes); write them in the same order",
                agent.name
            )),
            None => Ok(()),
        }
    }

    fn open_profiles(&self) -> Result<Vec<Profile>, ConfigError> {
        let Some(name) = &self.profiles else { return Ok(Vec::new()) };
        if let Ok(preset) = name.parse::<Preset>() {
            return Ok(cab::generate(preset, 1));
        }
        let profiles = Store::open(Path::new(name)).and_then(|store| store.by_number());
        profiles.map_err(|why| self.source.error("profiles", why))
    }

    fn open_site(&self) -> Result<Site, ConfigError> {
        let Some(path) = &self.site else { return Ok(Site::default()) };
        let site = SiteFile::read(path)
            .and_then(|file| Site::of(file, |name| name.parse().ok().or_else(|| number_of(name))));
        site.map_err(|why| match why {
            SiteError::NoDates { path, reset, .. } => {
                let path = path.display();
                let why = format!("{path}: reset = \"{reset}\": a daemon forgets usage by its half-life alone; leave 'reset' out");
                self.source.error("site", why)
            }
            why => self.source.error("site", why),
        })
    }

    /// The database of profiles, if they are not those of a synthetic set.
    pub(crate) fn profile_database(&self) -> Option<PathBuf> {
        self.profiles.as_ref().filter(|name| name.parse::<Preset>().is_err()).map(PathBuf::from)
    }

    fn cpus(&self, machine: &Machine) -> Result<Option<Vec<Vec<u32>>>, ConfigError> {
        if !self.local.pin {
            return Ok(None);
        }
        let nodes = machine.node_count() as usize;
        let listed = &self.local.cpus;
        let usable = usable_cpus().unwrap_or_default();
        if listed.is_empty() {
            let one_each = usable.iter().cycle().take(nodes).map(|cpu| vec![*cpu]);
            return Ok((!usable.is_empty()).then(|| one_each.collect()));
        }
        if listed.len() != nodes {
            let why = format!(
                "there are {} lists of processors for {nodes} nodes; write one for each",
                listed.len()
            );
            return Err(self.source.error("local.cpus", why));
        }
        for (node, cpus) in listed.iter().enumerate() {
            if let Some(cpu) = cpus.iter().find(|cpu| !usable.contains(cpu)) {
                let why =
                    format!("processor {cpu} does not exist, or is not available to this process");
                return Err(self.source.error(&format!("local.cpus[{node}]"), why));
            }
        }
        Ok(Some(listed.clone()))
    }

    fn remarks(&self, said: &Machine, machine: &Machine) -> Vec<String> {
        let mut remarks = machine.remarks.clone();
        if said.power_is_assumed {
            remarks.push(format!(
                "the power of nodes is assumed, {} each; a machine file sets it (docs/reference/files.md)",
                machine.node_power
            ));
        }
        // Each kind of nodes has its own.
        if said.details.idle.is_none() && machine.kinds.is_none() {
            remarks.push(format!(
                "the power of idle nodes is assumed, {} each; a machine file sets it (power.idle)",
                machine.node().idle
            ));
        }
        if self.switch_off.is_some() {
            remarks.push(
                "nodes are switched off only in emulation, because they are parts of this computer"
                    .to_owned(),
            );
            if said.details.off.is_none() {
                let off = machine.off();
                remarks.push(format!(
                    "the power of nodes that are off is assumed, {} each, with {} to stop and {} to start; a \
                    machine file sets it (off)",
                    off.power,
                    Length(off.stop.time),
                    Length(off.start.time),
                ));
            }
        }
        let is_unlimited = self.budget == ScheduleSpec::Always(Allowance::Unlimited);
        let recommended = PolicySpec::recommended();
        if !is_unlimited && self.policy.name() != recommended.name() {
            remarks.push(format!(
                "under a budget, the policy {recommended} is recommended (docs/reference/reproduce-share.md); busbar \
                 tune-policy compares it with '{}' on your own jobs",
                self.policy.name()
            ));
        }
        remarks.extend(
            self.policy.caution().map(|caution| format!("policy '{}': {caution}", self.policy)),
        );
        let folders = [("state", Some(self.state.as_path())), ("socket", self.socket.parent())];
        for (key, folder) in folders {
            if let Some(folder) = folder.filter(|folder| !folder.exists()) {
                remarks.push(format!("{key}: the folder {} does not exist yet", folder.display()));
            }
        }
        remarks
    }
}
