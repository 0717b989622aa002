//! The site file as text, and what Slurm says that has no place in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};
use std::path::Path;

use crate::slurm::hosts::HostList;
use crate::slurm::priorities::{Config, Limit, Partition, Priorities, Value};
use crate::units::{Length, Span};

/// The file, and a sentence for each thing that is not in it.
pub(super) struct SiteText {
    pub(super) text: String,
    pub(super) left_out: BTreeSet<String>,
}

/// Keys of `PriorityFlags` that the file has a counterpart for.
const KNOWN_FLAGS: [&str; 3] = ["NO_FAIR_TREE", "FAIR_TREE", "ACCRUE_ALWAYS"];

pub(super) fn text(found: &Priorities, numbers: &[String], names: Option<&Path>) -> SiteText {
    let mut site = SiteText { text: String::new(), left_out: found.left_out.clone() };
    site.line("# Accounts, shares and priorities of a site, as Slurm has them: made by 'busbar site import'.");
    if let Some(name) = names.and_then(Path::file_name) {
        site.value("names", quoted(&name.to_string_lossy()));
    }
    site.priority(&found.config);
    site.weights(&found.config);
    site.billing(&found.partitions);
    site.scheduler(&found.config);
    site.jobs(&found.config);
    site.associations(found);
    for qos in &found.qos {
        site.line("\n[[qos]]");
        site.value("name", quoted(&qos.name));
        site.value("priority", qos.priority);
        site.limits(&qos.limits);
    }
    for partition in &found.partitions {
        site.line("\n[[partition]]");
        site.value("name", quoted(&partition.name));
        site.value("priority", partition.priority);
        site.value("tier", partition.tier);
        site.limits(&partition.limits);
        match &partition.qos {
            Some(name) if found.qos.iter().any(|qos| qos.name == *name) => {
                site.value("qos", quoted(name));
            }
            Some(name) => {
                site.left_out.insert(format!(
                    "the limits of the qos '{name}' in the partition '{}': save 'sacctmgr show qos -P', too",
                    partition.name
                ));
            }
            None => {}
        }
    }
    for reservation in &found.reservations {
        site.line("\n[[reservation]]");
        site.value("name", quoted(&reservation.name));
        site.value("start", quoted(&reservation.start));
        site.value("end", quoted(&reservation.end));
        match reserved(&reservation.hosts, numbers) {
            Some(which) => site.value("nodes", quoted(&which)),
            None => site.value("nodes", reservation.nodes),
        }
    }
    if !found.accounts.is_empty() && !found.knows_parents {
        site.left_out.insert(
            "which account is below which, since no answer says it: save 'sacctmgr show assoc tree -P' or 'sshare -a \
             -l -P'"
                .to_owned(),
        );
    }
    site
}

/// The numbers of a reservation's nodes, such as `0-7,48`, where it is known which number each has.
fn reserved(hosts: &str, numbers: &[String]) -> Option<String> {
    let hosts: HostList = hosts.parse().ok()?;
    let number = |name: &String| numbers.iter().position(|known| known == name);
    let mut all = hosts.names().iter().map(number).collect::<Option<Vec<usize>>>()?;
    all.sort_unstable();
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for number in all {
        match stretches.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => stretches.push((number, number)),
        }
    }
    let written = stretches.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    let written: Vec<String> = written.collect();
    (!written.is_empty()).then(|| written.join(","))
}

/// A text between quotation marks, as TOML has it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

impl SiteText {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn value(&mut self, key: &str, value: impl Display) {
        // Writing to a text cannot fail.
        _ = writeln!(self.text, "{key} = {value}");
    }

    /// A length of time, if it is said; nothing is written as that.
    fn length(&mut self, key: &str, config: &Config, of: &str) {
        let Some(written) = config.get(of) else { return };
        match config.seconds(of) {
            Some(0) => self.value(key, "\"none\""),
            Some(seconds) => {
                let length = Length(Span::from_millis(seconds.saturating_mul(1000)));
                self.value(key, quoted(&length.to_string()));
            }
            None => {
                _ = self.left_out.insert(format!("{of} = {written}, which is no length of time"))
            }
        }
    }

    fn priority(&mut self, config: &Config) {
        let flags = config.get("PriorityFlags").unwrap_or_default();
        let has = |flag: &str| flags.split(',').any(|known| known.trim() == flag);
        self.line("\n[priority]");
        match has("NO_FAIR_TREE") {
            true => {
                self.value("fair_share", "\"classic\"");
                if let Some(dampening) = config.number("FairShareDampeningFactor") {
                    self.value("dampening", dampening.max(1));
                }
            }
            false => self.value("fair_share", "\"fair-tree\""),
        }
        for flag in flags.split(',').map(str::trim).filter(|flag| !flag.is_empty()) {
            if !KNOWN_FLAGS.contains(&flag) {
                self.left_out.insert(format!("the flag {flag} of PriorityFlags"));
            }
        }
        self.length("calc_period", config, "PriorityCalcPeriod");
        if let Some(boot) = config.get("BOOT_TIME") {
            self.value("period_start", quoted(boot));
        }
        self.length("half_life", config, "PriorityDecayHalfLife");
        self.length("max_age", config, "PriorityMaxAge");
        let reset = config.get("PriorityUsageResetPeriod").unwrap_or("NONE").to_ascii_lowercase();
        match reset.as_str() {
            "none" | "daily" | "weekly" | "monthly" | "quarterly" | "yearly" => {
                self.value("reset", quoted(&reset));
            }
            // Now is before the first job.
            _ => _ = self.left_out.insert(format!("PriorityUsageResetPeriod = {reset}")),
        }
        let favours = config.get("PriorityFavorSmall").unwrap_or("No");
        self.value("favor_small", favours.eq_ignore_ascii_case("yes"));
    }

    /// What holds for all jobs.
    fn jobs(&mut self, config: &Config) {
        let over = config.number("OverTimeLimit").map(u64::from);
        let unlimited = config.get("OverTimeLimit") == Some("UNLIMITED");
        let parameters = config.get("DependencyParameters").unwrap_or_default();
        let kills = parameters.contains("kill_invalid_depend");
        if unlimited {
            self.left_out.insert("OverTimeLimit = UNLIMITED".to_owned());
        }
        if over.is_none_or(|minutes| minutes == 0) && !kills {
            return;
        }
        self.line("\n[jobs]");
        if let Some(minutes) = over.filter(|minutes| *minutes > 0) {
            let length = Length(Span::from_millis(minutes.saturating_mul(60_000)));
            self.value("over_time_limit", quoted(&length.to_string()));
        }
        if kills {
            self.value("kill_invalid_depend", true);
        }
    }

    fn limits(&mut self, limits: &[Limit]) {
        for Limit { key, value } in limits {
            match value {
                Value::Count(count) => self.value(key, count),
                Value::Tres(tres) => self.value(key, quoted(tres)),
                Value::Seconds(0) => {}
                Value::Seconds(seconds) => {
                    let length = Length(Span::from_millis(seconds.saturating_mul(1000)));
                    self.value(key, quoted(&length.to_string()));
                }
                Value::Yes => self.value(key, true),
            }
        }
    }

    fn weights(&mut self, config: &Config) {
        self.line("\n[priority.weights]");
        for (key, of) in [
            ("age", "PriorityWeightAge"),
            ("fair_share", "PriorityWeightFairShare"),
            ("job_size", "PriorityWeightJobSize"),
            ("partition", "PriorityWeightPartition"),
            ("qos", "PriorityWeightQOS"),
            ("association", "PriorityWeightAssoc"),
        ] {
            if let Some(weight) = config.number(of) {
                self.value(key, weight);
            }
        }
        for written in config.get("PriorityWeightTRES").into_iter().flat_map(|all| all.split(',')) {
            let (name, weight) = written.split_once('=').unwrap_or((written, ""));
            match (name.to_ascii_lowercase().as_str(), weight.parse::<u32>()) {
                ("cpu", Ok(weight)) => self.value("cpus", weight),
                ("node", Ok(weight)) => self.value("nodes", weight),
                _ => _ = self.left_out.insert(format!("{written} of PriorityWeightTRES")),
            }
        }
    }

    /// Jobs are charged alike in all partitions.
    fn billing(&mut self, partitions: &[Partition]) {
        let mut all = partitions.iter().map(|partition| partition.billing.as_deref());
        let Some(first) = all.next() else { return };
        if !all.all(|other| other == first) {
            self.left_out.insert(
                "TRESBillingWeights, which differ between partitions: a processor counts as 1"
                    .to_owned(),
            );
            return;
        }
        let Some(billing) = first else { return };
        self.line("\n[priority.billing]");
        let mut charges = [("cpu", 0.0), ("node", 0.0)];
        for written in billing.split(',') {
            let (name, charge) = written.split_once('=').unwrap_or((written, ""));
            let known = charges.iter_mut().find(|(known, _)| name.eq_ignore_ascii_case(known));
            match (known, charge.parse::<f64>()) {
                (Some((_, kept)), Ok(charge)) => *kept = charge,
                _ => _ = self.left_out.insert(format!("{written} of TRESBillingWeights")),
            }
        }
        charges.iter().for_each(|(key, charge)| self.value(key, format!("{charge:?}")));
    }

    /// How the queue is looked at.
    fn scheduler(&mut self, config: &Config) {
        let kind = config.get("SchedulerType");
        let parameters = config.get("SchedulerParameters");
        if kind.is_none() && parameters.is_none() {
            return;
        }
        let mut values = BTreeMap::new();
        match kind.unwrap_or("sched/backfill") {
            "sched/backfill" => {}
            "sched/builtin" => _ = values.insert("backfill".to_owned(), "false".to_owned()),
            other => _ = self.left_out.insert(format!("SchedulerType = {other}")),
        }
        let of_nodes = config.get("SelectTypeParameters").unwrap_or_default();
        if of_nodes.split(',').any(|word| word.trim().eq_ignore_ascii_case("CR_LLN")) {
            values.insert("lln".to_owned(), "true".to_owned());
        }
        // Without an epilog, nothing tells Slurm's main loop at once that a node is free.
        if config.has_line("Epilog") {
            values.insert("epilog".to_owned(), config.get("Epilog").is_some().to_string());
        }
        if let Some(seconds) = config.number("KillWait") {
            values.insert(
                "kill_wait".to_owned(),
                quoted(&Length(Span::from_secs(seconds)).to_string()),
            );
        }
        for written in parameters.into_iter().flat_map(|all| all.split(',')).map(str::trim) {
            match parameter(written) {
                Some((key, value)) => _ = values.insert(key, value),
                None if written.is_empty() => {}
                None => _ = self.left_out.insert(format!("{written} of SchedulerParameters")),
            }
        }
        self.line("\n[scheduler]");
        values.iter().for_each(|(key, value)| self.value(key, value));
    }

    fn associations(&mut self, found: &Priorities) {
        let mut with_parent = Vec::new();
        let mut shares = |site: &mut Self, name: &str, shares: Option<u32>| match shares {
            Some(shares) => site.value("shares", shares),
            None => with_parent.push(name.to_owned()),
        };
        for account in &found.accounts {
            self.line("\n[[account]]");
            self.value("name", quoted(&account.name));
            if let Some(parent) = &account.parent {
                self.value("parent", quoted(parent));
            }
            shares(self, &account.name, account.shares);
            self.limits(&account.limits);
        }
        for user in &found.users {
            self.line("\n[[user]]");
            self.value("name", quoted(&user.name));
            self.value("account", quoted(&user.account));
            shares(self, &user.name, user.shares);
            self.limits(&user.limits);
            if user.priority > 0 {
                self.value("priority", user.priority);
            }
            if user.usage > 0 {
                self.value("usage", format!("{:?}", user.usage as f64));
            }
        }
        if !with_parent.is_empty() {
            self.left_out.insert(format!(
                "Fairshare=parent, which becomes one share, of {}",
                with_parent.join(", ")
            ));
        }
    }
}

/// One of `SchedulerParameters` as the file has it, if it has a counterpart.
fn parameter(written: &str) -> Option<(String, String)> {
    let (key, value) = written.split_once('=').unwrap_or((written, ""));
    let key = key.to_ascii_lowercase();
    let number: Option<u32> = value.parse().ok();
    let length = |seconds: u32| quoted(&Length(Span::from_secs(seconds)).to_string());
    let value = match (key.as_str(), number) {
        ("defer" | "bf_busy_nodes" | "pack_serial_at_end", None) if value.is_empty() => {
            "true".to_owned()
        }
        // Slurm's own name of no backfill passes.
        ("bf_interval", None) if value == "-1" => {
            return Some(("backfill".to_owned(), "false".to_owned()));
        }
        ("bf_window", Some(minutes)) if minutes > 0 => length(minutes.saturating_mul(60)),
        ("sched_interval" | "bf_interval" | "bf_resolution", Some(seconds)) if seconds > 0 => {
            length(seconds)
        }
        ("batch_sched_delay" | "bf_min_age_reserve" | "bf_window_linear", Some(seconds)) => {
            length(seconds)
        }
        ("bf_max_job_test", Some(count)) if count > 0 => count.to_string(),
        (
            "default_queue_depth"
            | "partition_job_depth"
            | "sched_max_job_start"
            | "bf_max_job_start"
            | "bf_max_job_user"
            | "bf_max_job_part"
            | "bf_max_job_user_part"
            | "bf_job_part_count_reserve"
            | "bf_node_space_size"
            | "bf_min_prio_reserve",
            Some(count),
        ) => count.to_string(),
        _ => return None,
    };
    Some((key, value))
}
