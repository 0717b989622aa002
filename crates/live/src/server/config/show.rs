//! Writes a configuration as a file that sets every key.

use std::fmt::Write as _;
use std::path::Path;

use super::{
    AgentNode, Agents, Config, EngineConfig, Length, Local, RestConfig, Slurm, TlsFiles, Web,
};
use crate::control::schedule::ScheduleSpec;
use busbar_core::calendar::clock_face;
use busbar_slurm::hosts::HostList;

impl Config {
    /// The whole configuration as a file, which means the same in any folder.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut line = |key: &str, value: String| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{key} = {value}");
        };
        line("state", path(&self.state));
        line("socket", path(&self.socket));
        line("machine", quoted(&self.machine));
        line("policy", quoted(&self.policy.to_string()));
        if let Some(site) = &self.site {
            line("site", path(site));
        }
        match &self.budget {
            ScheduleSpec::Always(allowance) => line("budget", quoted(&allowance.to_string())),
            ScheduleSpec::Rules(rules) => line("budget", quoted(&rules.to_string())),
            ScheduleSpec::File(file) => line("budget", path(file)),
            ScheduleSpec::Daily(_) => (),
        }
        if let Some(profiles) = &self.profiles {
            line("profiles", quoted(profiles));
        }
        line("period", quoted(&Length(self.period).to_string()));
        line("takeover", quoted(&Length(self.takeover).to_string()));
        line("last_resort", quoted(&self.last_resort.to_string()));
        if let Some(rule) = &self.switch_off {
            line("switch_off", quoted(&rule.to_string()));
        }
        line("kill_after", quoted(&Length(self.kill_after).to_string()));
        line("retention", quoted(&Length(self.retention).to_string()));
        line("operators", format!("{:?}", self.operators));
        line("see_all", self.see_all.to_string());
        if let ScheduleSpec::Daily(steps) = &self.budget {
            for (from, allowance) in steps {
                let (from, allowance) = (clock_face(*from), allowance.to_string());
                let (from, allowance) = (quoted(&from), quoted(&allowance));
                let _ = write!(text, "\n[[daily]]\nfrom = {from}\nbudget = {allowance}\n");
            }
        }
        let limits = &self.limits;
        let _ = write!(
            text,
            "\n[limits]\njobs = {}\njobs_per_user = {}\narray = {}\nbytes_per_user = {}\nrequest_bytes = {}\n\
             connections = {}\nforecast_time = {}\n",
            limits.jobs,
            limits.jobs_per_user,
            limits.array,
            limits.bytes_per_user,
            limits.request_bytes,
            limits.connections,
            quoted(&Length(limits.forecast_time).to_string())
        );
        let _ = write!(text, "\n[jobs]\numask = {}\n", quoted(&self.jobs.umask.to_string()));
        let ulimits: Vec<String> = self
            .jobs
            .ulimits
            .iter()
            .map(|(ulimit, bounds)| format!("{ulimit} = {}", quoted(&bounds.to_string())))
            .collect();
        if !ulimits.is_empty() {
            let _ = writeln!(text, "ulimits = {{ {} }}", ulimits.join(", "));
        }
        let (level, format) = (self.log.level.to_string(), self.log.format.to_string());
        let (level, format) = (quoted(&level), quoted(&format));
        let _ = write!(text, "\n[log]\nlevel = {level}\nformat = {format}\n");
        let EngineConfig { kind, deadline } = self.engine;
        let (kind, deadline) = (quoted(&kind.to_string()), quoted(&Length(deadline).to_string()));
        let _ = write!(text, "\n[engine]\nkind = {kind}\ndeadline = {deadline}\n");
        self.write_agents(&mut text);
        self.write_slurm(&mut text);
        let Local { pin, cgroups, .. } = self.local;
        let _ = write!(text, "\n[local]\npin = {pin}\ncgroups = {cgroups}\n");
        if !self.local.cpus.is_empty() {
            let list = |cpus: &Vec<u32>| {
                let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
                quoted(&cpus.join(","))
            };
            let lists: Vec<String> = self.local.cpus.iter().map(list).collect();
            let _ = writeln!(text, "cpus = [{}]", lists.join(", "));
        }
        self.write_web(&mut text);
        let _ = write!(text, "\n[tune]\njobs = {}\n", self.tune.jobs);
        if let Some(at) = self.tune.at {
            let _ = writeln!(text, "at = {}", quoted(&clock_face(at)));
        }
        if !self.tune.policies.is_empty() {
            let policies = self.tune.policies.iter().map(|policy| quoted(&policy.to_string()));
            let policies: Vec<String> = policies.collect();
            let _ = writeln!(text, "policies = [{}]", policies.join(", "));
        }
        text
    }

    fn write_web(&self, text: &mut String) {
        let Web { listen, open, plain, tls, hosts } = &self.web;
        let listen = quoted(&listen.map_or("none".to_owned(), |at| at.to_string()));
        let _ = write!(text, "\n[web]\nlisten = {listen}\nopen = {open}\nplain = {plain}\n");
        if let Some(TlsFiles { certificate, key }) = tls {
            let (certificate, key) = (path(certificate), path(key));
            let _ = write!(text, "certificate = {certificate}\nkey = {key}\n");
        }
        if !hosts.is_empty() {
            let names: Vec<String> = hosts.iter().map(|name| quoted(name)).collect();
            let _ = writeln!(text, "hosts = [{}]", names.join(", "));
        }
    }

    fn write_slurm(&self, text: &mut String) {
        let Slurm {
            mode,
            fail,
            fail_after,
            nodes,
            partitions,
            others,
            licence,
            period,
            within,
            conf,
            programs,
            rest,
        } = &self.slurm;
        let (mode, fail) = (quoted(&mode.to_string()), quoted(&fail.to_string()));
        let fail_after = quoted(&Length(*fail_after).to_string());
        let (period, within) =
            (quoted(&Length(*period).to_string()), quoted(&Length(*within).to_string()));
        let licence = quoted(licence);
        let _ = write!(
            text,
            "\n[slurm]\nmode = {mode}\nfail = {fail}\nfail_after = {fail_after}\nlicence = {licence}\nperiod = {period}\nwithin = {within}\n"
        );
        if !nodes.is_empty() {
            let nodes = HostList::new(nodes.iter().cloned());
            let _ = writeln!(text, "nodes = {}", quoted(&nodes.to_string()));
        }
        if !partitions.is_empty() {
            let names: Vec<String> = partitions.iter().map(|name| quoted(name)).collect();
            let _ = writeln!(text, "partitions = [{}]", names.join(", "));
        }
        if let Some(others) = others {
            let _ = writeln!(text, "others = {}", quoted(&others.to_string()));
        }
        for (key, path) in [("conf", conf), ("programs", programs)] {
            if let Some(path) = path {
                let _ = writeln!(text, "{key} = {}", quoted(&path.to_string_lossy()));
            }
        }
        if let Some(RestConfig { address, user, token, plain }) = rest {
            let (address, user) = (quoted(&address.written()), quoted(user));
            let _ = write!(text, "rest = {address}\nrest_user = {user}\nrest_plain = {plain}\n");
            if let Some(token) = token {
                let _ = writeln!(text, "rest_token = {}", path(token));
            }
        }
    }

    fn write_agents(&self, text: &mut String) {
        let Agents { nodes, keys, lease, within } = &self.agents;
        let length = |span| quoted(&Length(span).to_string());
        let (lease, within) = (length(*lease), length(*within));
        let _ = write!(text, "\n[agents]\nlease = {lease}\nwithin = {within}\n");
        if let Some(keys) = keys {
            let _ = writeln!(text, "keys = {}", path(keys));
        }
        let node = |node: &AgentNode| {
            let demand = node.demand.as_ref().map(|demand| format!(", demand = {}", path(demand)));
            let (name, address) = (quoted(&node.name), quoted(&node.address));
            format!("{{ name = {name}, address = {address}{} }}", demand.unwrap_or_default())
        };
        if !nodes.is_empty() {
            let nodes: Vec<String> = nodes.iter().map(node).collect();
            let _ = writeln!(text, "nodes = [{}]", nodes.join(", "));
        }
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}
