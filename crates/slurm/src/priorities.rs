//! Priorities of a cluster as its site describes them: settings, partitions, accounts, users and qualities of service.
//!
//! They are read from what `scontrol show config`, `scontrol show partition`, `scontrol show reservation`, `sacctmgr show assoc
//! -P`, `sacctmgr show qos -P` and `sshare -a -l -P` print. Which of them a text is can be seen from the text, so files may come in any order.
//! What is found and has no counterpart is listed, not dropped.

use std::collections::{BTreeMap, BTreeSet};

mod limits;

pub use limits::{Limit, Value};

/// Settings as Slurm has them, without those that are about neither priorities nor the scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config(BTreeMap<String, String>);

impl Config {
    /// A value; nothing for those that are not set.
    pub fn get(&self, key: &str) -> Option<&str> {
        let value = self.0.get(key)?.as_str();
        (!matches!(value, "" | "(null)" | "N/A")).then_some(value)
    }

    /// Whether the answer has a line for it.
    pub fn has_line(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// A whole number; a unit may follow it.
    pub fn number(&self, key: &str) -> Option<u32> {
        self.get(key)?.split_whitespace().next()?.parse().ok()
    }

    /// A length of time, in seconds.
    pub fn seconds(&self, key: &str) -> Option<u64> {
        seconds(self.get(key)?)
    }
}

/// Reads `7-00:00:00` and `00:05:00`.
fn seconds(text: &str) -> Option<u64> {
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let mut seconds = days.parse::<u64>().ok()?;
    let mut parts = 0;
    for (part, most) in clock.split(':').zip([24, 60, 60]) {
        let part: u64 = part.parse().ok().filter(|part| *part < most)?;
        seconds = seconds.checked_mul(most)?.checked_add(part)?;
        parts += 1;
    }
    (parts == 3).then_some(seconds)
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// `PriorityJobFactor`.
    pub priority: u32,
    /// `PriorityTier`.
    pub tier: u32,
    /// `TRESBillingWeights`, if there are any.
    pub billing: Option<String>,
    /// `MaxTime`, `MinNodes` and `MaxNodes`.
    pub limits: Vec<Limit>,
    /// The quality of service whose limits count there, if there is one.
    pub qos: Option<String>,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// The account above; nothing below the root.
    pub parent: Option<String>,
    /// How many shares it has; nothing where it shares as its parent does.
    pub shares: Option<u32>,
    /// Its limits.
    pub limits: Vec<Limit>,
}

/// A user of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The account.
    pub account: String,
    /// How many shares the user has; nothing where the user shares as the account does.
    pub shares: Option<u32>,
    /// The priority of the association.
    pub priority: u32,
    /// What was used, in billed units times seconds.
    pub usage: u64,
    /// Its limits.
    pub limits: Vec<Limit>,
}

/// A quality of service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qos {
    /// Its name.
    pub name: String,
    /// Its priority.
    pub priority: u32,
    /// Its limits.
    pub limits: Vec<Limit>,
}

/// A reservation of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    /// Its name.
    pub name: String,
    /// When it begins, as a clock at the site shows it.
    pub start: String,
    /// When it ends.
    pub end: String,
    /// How many nodes it has.
    pub nodes: u64,
    /// Their names, as Slurm writes them together.
    pub hosts: String,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Priorities {
    /// The settings.
    pub config: Config,
    /// Partitions in the order in which they were found.
    pub partitions: Vec<Partition>,
    /// Accounts, none of them the root.
    pub accounts: Vec<Account>,
    /// Users.
    pub users: Vec<User>,
    /// Qualities of service.
    pub qos: Vec<Qos>,
    /// Reservations of nodes.
    pub reservations: Vec<Reservation>,
    /// Whether an answer says which account is below which.
    pub knows_parents: bool,
    /// Other things that were found, and have no counterpart: a sentence for each.
    pub left_out: BTreeSet<String>,
}

/// Why a text cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrioritiesError {
    /// It is none of the answers.
    #[error(
        "{file}: this is no answer of 'scontrol show config', 'scontrol show partition', 'sacctmgr show assoc -P', \
         'sacctmgr show qos -P', 'sshare -a -l -P' or 'scontrol show reservation'; save one of these in the file"
    )]
    Unknown {
        /// Which file.
        file: String,
    },
    /// A line has another number of fields than the first.
    #[error(
        "{file}, line {line}: {found} fields, where the heading has {expected}; save the whole answer, with -P"
    )]
    Fields {
        /// Which file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// How many fields it has.
        found: usize,
        /// How many there are to be.
        expected: usize,
    },
    /// A field is no number.
    #[error("{file}, line {line}: {field} is '{text}'; it should be a whole number")]
    Number {
        /// Which file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The field.
        field: &'static str,
        /// What stands there.
        text: String,
    },
}

/// A row of a table with fields between `|`.
struct Row<'a> {
    file: &'a str,
    line: usize,
    heading: &'a [&'a str],
    fields: Vec<&'a str>,
}

impl Row<'_> {
    /// A field by one of the names that it has in some version.
    fn get(&self, names: &[&str]) -> Option<&str> {
        let place = self.heading.iter().position(|name| names.contains(&name.trim()))?;
        self.fields.get(place).copied()
    }

    /// The number in a field that may be empty.
    fn number<T: std::str::FromStr>(
        &self,
        field: &'static str,
        names: &[&str],
    ) -> Result<Option<T>, PrioritiesError> {
        let Some(text) = self.get(names).map(str::trim).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| PrioritiesError::Number {
            file: self.file.to_owned(),
            line: self.line,
            field,
            text: text.to_owned(),
        })
    }

    /// Shares; nothing where they are those of the parent.
    fn shares(&self, names: &[&str]) -> Result<Option<u32>, PrioritiesError> {
        match self.get(names).map(str::trim) {
            Some("parent") => Ok(None),
            _ => Ok(Some(self.number("the number of shares", names)?.unwrap_or(1))),
        }
    }
}

/// The rows of a table, and its heading.
fn rows<'a>(
    file: &'a str,
    heading: &'a [&'a str],
    text: &'a str,
) -> impl Iterator<Item = Result<Row<'a>, PrioritiesError>> {
    let lines = text.lines().zip(1..).skip_while(|(line, _)| !line.contains('|')).skip(1);
    lines.filter(|(line, _)| !line.trim().is_empty()).map(move |(text, line)| {
        let fields: Vec<&str> = text.split('|').collect();
        match fields.len() == heading.len() {
            true => Ok(Row { file, line, heading, fields }),
            false => Err(PrioritiesError::Fields {
                file: file.to_owned(),
                line,
                found: fields.len(),
                expected: heading.len(),
            }),
        }
    })
}

/// The accounts that a row stands below, where answers show that by spaces before the name.
#[derive(Default)]
struct Depths(Vec<(usize, String)>);

impl Depths {
    /// The account above one that is written with these spaces. Where nothing is indented, nobody knows.
    fn enter(&mut self, account: &str) -> Option<String> {
        let name = account.trim_start();
        let depth = account.len() - name.len();
        self.0.retain(|above| above.0 < depth);
        let parent = self.0.last().map(|above| above.1.clone());
        self.0.push((depth, name.to_owned()));
        parent
    }
}

const ROOT: &str = "root";

/// What is kept of the settings beside those of priorities.
const OTHER_KEYS: [&str; 9] = [
    "BOOT_TIME",
    "DependencyParameters",
    "Epilog",
    "FairShareDampeningFactor",
    "KillWait",
    "OverTimeLimit",
    "SchedulerParameters",
    "SchedulerType",
    "SelectTypeParameters",
];

/// Flags of reservations that come again and again.
const REPEATED: [&str; 5] = ["HOURLY", "DAILY", "WEEKDAY", "WEEKEND", "WEEKLY"];

impl Priorities {
    /// Takes in an answer.
    ///
    /// # Errors
    ///
    /// If it is none that says something about priorities, or is damaged.
    pub fn read(&mut self, file: &str, text: &str) -> Result<(), PrioritiesError> {
        let heading = text.lines().find(|line| line.contains('|')).unwrap_or("");
        let heading: Vec<&str> = heading.split('|').map(str::trim).collect();
        let has = |name: &str| heading.contains(&name);
        if has("RawShares") && has("Account") {
            self.read_shares(file, &heading, text)
        } else if has("Account") && (has("Share") || has("Fairshare")) {
            self.read_associations(file, &heading, text)
        } else if has("Name") && has("Priority") {
            self.read_qos(file, &heading, text)
        } else if text.contains("ReservationName=") {
            self.read_reservations(file, text)
        } else if text.starts_with("No reservations in the system") {
            Ok(())
        } else if text.contains("PartitionName=") {
            self.read_partitions(file, text)
        } else if text.lines().any(|line| line.starts_with("PriorityType ")) {
            self.read_config(text);
            Ok(())
        } else {
            Err(PrioritiesError::Unknown { file: file.to_owned() })
        }
    }

    fn read_config(&mut self, text: &str) {
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            let (key, value) = (key.trim(), value.trim());
            if key.starts_with("Priority") || OTHER_KEYS.contains(&key) {
                self.config.0.insert(key.to_owned(), value.to_owned());
            }
        }
    }

    fn read_partitions(&mut self, file: &str, text: &str) -> Result<(), PrioritiesError> {
        for (line, number) in text.lines().zip(1..) {
            for word in line.split_whitespace() {
                let Some((key, value)) = word.split_once('=') else { continue };
                if key == "PartitionName" {
                    let name = value.to_owned();
                    let (billing, limits, qos) = (None, Vec::new(), None);
                    let (priority, tier) = (1, 1);
                    self.partitions.push(Partition { name, priority, tier, billing, limits, qos });
                    continue;
                }
                let Some(partition) = self.partitions.last_mut() else { continue };
                let read = |field: &'static str| {
                    value.parse().map_err(|_| PrioritiesError::Number {
                        file: file.to_owned(),
                        line: number,
                        field,
                        text: value.to_owned(),
                    })
                };
                match key {
                    "PriorityJobFactor" => partition.priority = read("PriorityJobFactor")?,
                    "PriorityTier" => partition.tier = read("PriorityTier")?,
                    "TRESBillingWeights" => partition.billing = Some(value.to_owned()),
                    "MaxTime" => {
                        let wall = limits::wall(value).map(Value::Seconds);
                        let limit = wall.map(|value| Limit { key: "max_wall", value });
                        partition.limits.extend(limit);
                    }
                    "MinNodes" | "MaxNodes" => {
                        let key = if key == "MinNodes" { "min_nodes" } else { "max_nodes" };
                        // Everybody has one at least, and UNLIMITED is no number.
                        let count = value.parse().ok();
                        let count = count.filter(|count| key == "max_nodes" || *count > 1);
                        let limit = count.map(|count| Limit { key, value: Value::Count(count) });
                        partition.limits.extend(limit);
                    }
                    "QoS" => partition.qos = Some(value.to_owned()).filter(|name| name != "N/A"),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn read_reservations(&mut self, file: &str, text: &str) -> Result<(), PrioritiesError> {
        let mut found: Vec<Reservation> = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            for word in line.split_whitespace() {
                let Some((key, value)) = word.split_once('=') else { continue };
                if key == "ReservationName" {
                    found.push(Reservation { name: value.to_owned(), ..Reservation::default() });
                    continue;
                }
                let Some(reservation) = found.last_mut() else { continue };
                let name = &reservation.name;
                match key {
                    "StartTime" => reservation.start = value.to_owned(),
                    "EndTime" => reservation.end = value.to_owned(),
                    "Nodes" => reservation.hosts = value.to_owned(),
                    "NodeCnt" => {
                        let count = value.parse().map_err(|_| PrioritiesError::Number {
                            file: file.to_owned(),
                            line: number,
                            field: "NodeCnt",
                            text: value.to_owned(),
                        });
                        reservation.nodes = count?;
                    }
                    "Flags" => {
                        for flag in value.split(',').filter(|flag| REPEATED.contains(flag)) {
                            self.left_out.insert(format!(
                                "that the reservation '{name}' comes again ({flag}): it is there once"
                            ));
                        }
                    }
                    "Licenses" | "BurstBuffer" | "Watts" if !matches!(value, "(null)" | "n/a") => {
                        self.left_out.insert(format!("{word} of the reservation '{name}'"));
                    }
                    _ => {}
                }
            }
        }
        for reservation in found {
            match reservation.nodes {
                0 => {
                    let name = &reservation.name;
                    self.left_out.insert(format!("the reservation '{name}', which has no nodes"));
                }
                _ => self.reservations.push(reservation),
            }
        }
        Ok(())
    }

    fn read_qos(
        &mut self,
        file: &str,
        heading: &[&str],
        text: &str,
    ) -> Result<(), PrioritiesError> {
        for row in rows(file, heading, text) {
            let row = row?;
            let name = row.get(&["Name"]).unwrap_or_default().to_owned();
            let priority = row.number("the priority", &["Priority"])?.unwrap_or(0);
            let whose = format!("the qos '{name}'");
            let limits = limits::of_qos(&row, &whose, &mut self.left_out);
            if row.get(&["Preempt"]).is_some_and(|text| !text.is_empty()) {
                self.left_out.insert(format!("that {whose} preempts others"));
            }
            self.qos.push(Qos { name, priority, limits });
        }
        Ok(())
    }

    fn read_associations(
        &mut self,
        file: &str,
        heading: &[&str],
        text: &str,
    ) -> Result<(), PrioritiesError> {
        let mut depths = Depths::default();
        let mut clusters = BTreeSet::new();
        self.knows_parents |= ["ParentName", "Par Name"].iter().any(|name| heading.contains(name));
        for row in rows(file, heading, text) {
            let row = row?;
            clusters.extend(row.get(&["Cluster"]).map(str::to_owned));
            let written = row.get(&["Account"]).unwrap_or_default();
            let (account, user) = (written.trim(), row.get(&["User"]).unwrap_or_default().trim());
            let shares = row.shares(&["Share", "Fairshare"])?;
            if !user.is_empty() {
                if row.get(&["Partition"]).is_some_and(|name| !name.is_empty()) {
                    self.left_out.insert(format!("that the user '{user}' has shares by partition"));
                    continue;
                }
                let priority = row.number("the priority", &["Priority"])?.unwrap_or(0);
                let whose = format!("the user '{user}' in '{account}'");
                let limits = limits::of_association(&row, &whose, &mut self.left_out);
                let (name, account) = (user.to_owned(), account.to_owned());
                self.users.push(User { name, account, shares, priority, usage: 0, limits });
                continue;
            }
            let whose = format!("the account '{account}'");
            let limits = limits::of_association(&row, &whose, &mut self.left_out);
            let indented = depths.enter(written);
            self.knows_parents |= written.starts_with(' ');
            let named = row.get(&["ParentName", "Par Name"]).map(str::trim).map(str::to_owned);
            let parent = named.filter(|name| !name.is_empty()).or(indented);
            if account == ROOT && !limits.is_empty() {
                self.left_out.insert("the limits of the account 'root'".to_owned());
            }
            self.add_account(account, parent, shares, limits);
        }
        if clusters.len() > 1 {
            self.left_out.insert(format!(
                "that there are {} clusters: all their associations are in one tree",
                clusters.len()
            ));
        }
        Ok(())
    }

    fn add_account(
        &mut self,
        name: &str,
        parent: Option<String>,
        shares: Option<u32>,
        limits: Vec<Limit>,
    ) {
        let parent = parent.filter(|parent| parent != ROOT);
        if name == ROOT {
            return;
        }
        match self.accounts.iter_mut().find(|known| known.name == name) {
            // Another answer may know what stands above it.
            Some(known) => {
                known.parent = known.parent.take().or(parent);
                if known.limits.is_empty() {
                    known.limits = limits;
                }
            }
            None => self.accounts.push(Account { name: name.to_owned(), parent, shares, limits }),
        }
    }

    fn read_shares(
        &mut self,
        file: &str,
        heading: &[&str],
        text: &str,
    ) -> Result<(), PrioritiesError> {
        let mut depths = Depths::default();
        self.knows_parents = true;
        for row in rows(file, heading, text) {
            let row = row?;
            let written = row.get(&["Account"]).unwrap_or_default();
            let (account, name) = (written.trim(), row.get(&["User"]).unwrap_or_default().trim());
            let shares = row.shares(&["RawShares"])?;
            if name.is_empty() {
                let parent = depths.enter(written);
                self.add_account(account, parent, shares, Vec::new());
                continue;
            }
            let usage = row.number("the usage", &["RawUsage"])?.unwrap_or(0);
            let is_it = |user: &&mut User| user.name == name && user.account == account;
            match self.users.iter_mut().find(is_it) {
                Some(user) => user.usage = usage,
                None => {
                    let (name, account) = (name.to_owned(), account.to_owned());
                    let (priority, limits) = (0, Vec::new());
                    self.users.push(User { name, account, shares, priority, usage, limits });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_those_of_slurm() {
        assert_eq!(seconds("7-00:00:00"), Some(7 * 24 * 3600));
        assert_eq!(seconds("00:05:00"), Some(300));
        assert_eq!(seconds("1-02:03:04"), Some(24 * 3600 + 2 * 3600 + 3 * 60 + 4));
        for wrong in ["", "5", "05:00", "x", "00:60:00", "1-", "99999999999999999999-00:00:00"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_tree_is_that_of_either_answer() {
        let by_name = "Cluster|Account|User|Par Name|Share|Priority\n\
                       lab|root|||1|\nlab|root|root||1|\nlab|physics||root|40|\nlab|hep||physics|3|\n\
                       lab|hep|al||parent|7\n";
        let indented = "Account|User|RawShares|NormShares|RawUsage|NormUsage|EffectvUsage|FairShare\n\
                        root||0|0.0|120|1.0|1.0|\n root|root|1|0.1|0|0|0|1.0\n physics||40|0.5|120|1|1|\n  \
                        hep||3|1.0|120|1.0|1.0|\n   hep|al|parent|1.0|120|1.0|1.0|0.5\n";
        let account = |name: &str, parent: Option<&str>, shares| Account {
            name: name.to_owned(),
            parent: parent.map(str::to_owned),
            shares: Some(shares),
            limits: Vec::new(),
        };
        let accounts = vec![account("physics", None, 40), account("hep", Some("physics"), 3)];
        let read = |texts: &[&str]| {
            let mut found = Priorities::default();
            texts.iter().for_each(|text| found.read("saved", text).unwrap());
            assert_eq!(found.accounts, accounts, "{texts:?}");
            found.users.into_iter().map(|user| (user.name, user.shares, user.priority, user.usage))
        };
        let of = |name: &str, shares, priority, usage| (name.to_owned(), shares, priority, usage);
        let both: Vec<_> = read(&[by_name, indented]).collect();
        assert_eq!(both, [of("root", Some(1), 0, 0), of("al", None, 7, 120)]);
        let only: Vec<_> = read(&[indented]).collect();
        assert_eq!(only, [of("root", Some(1), 0, 0), of("al", None, 0, 120)]);
    }

    #[test]
    fn settings_partitions_and_qualities_of_service() {
        let mut found = Priorities::default();
        let config = "Configuration data as of 2026-01-01T00:00:00\nPriorityDecayHalfLife   = 7-00:00:00\n\
                      PriorityType            = priority/multifactor\nPriorityWeightTRES      = (null)\n\
                      PriorityWeightAge       = 1000\nSlurmUser = root(0)\n";
        found.read("config", config).unwrap();
        assert_eq!(found.config.seconds("PriorityDecayHalfLife"), Some(7 * 24 * 3600));
        assert_eq!(found.config.number("PriorityWeightAge"), Some(1000));
        assert_eq!(
            (found.config.get("PriorityWeightTRES"), found.config.get("SlurmUser")),
            (None, None)
        );
        let partitions = "PartitionName=batch\n   PriorityJobFactor=3 PriorityTier=2 State=UP\n   \
                          TRESBillingWeights=CPU=1.0,Mem=0.25G\n\nPartitionName=debug\n";
        found.read("partitions", partitions).unwrap();
        let billing = Some("CPU=1.0,Mem=0.25G".to_owned());
        let partition = |name: &str, priority, tier, billing| {
            let (name, limits, qos) = (name.to_owned(), Vec::new(), None);
            Partition { name, priority, tier, billing, limits, qos }
        };
        assert_eq!(
            found.partitions,
            [partition("batch", 3, 2, billing), partition("debug", 1, 1, None),]
        );
        let qos = "Name|Priority|Preempt|Flags|GrpTRES|GrpTRESMins|MaxWall|MaxJobsPU\nnormal|0||||||\n\
                   high|50|normal|DenyOnLimit,NoReserve|cpu=8,license/x=2|cpu=5|1-00:00:00|3\n";
        found.read("qos", qos).unwrap();
        let limit = |key, value| Limit { key, value };
        let limits = vec![
            limit("grp_tres", Value::Tres("cpu=8".to_owned())),
            limit("max_wall", Value::Seconds(86_400)),
            limit("max_jobs_per_user", Value::Count(3)),
            limit("deny_on_limit", Value::Yes),
        ];
        let qos = |name: &str, priority, limits| Qos { name: name.to_owned(), priority, limits };
        assert_eq!(found.qos, [qos("normal", 0, Vec::new()), qos("high", 50, limits)]);
        assert_eq!(
            found.left_out.into_iter().collect::<Vec<_>>(),
            [
                "GrpTRESMins of the qos 'high'",
                "license/x=2 in GrpTRES of the qos 'high'",
                "that the qos 'high' preempts others",
                "the flag NoReserve of the qos 'high'",
            ]
        );
    }

    #[test]
    fn limits_are_those_of_the_row() {
        let mut found = Priorities::default();
        let text = "Cluster|Account|User|Par Name|Share|Priority|GrpJobs|GrpTRES|MaxJobs|MaxSubmit|MaxWall\n\
                    lab|hep|||1||9|node=4|3||\nlab|hep|al||1|||||7|02:00:00\n";
        found.read("saved", text).unwrap();
        let keys = |limits: &[Limit]| limits.iter().map(|limit| limit.key).collect::<Vec<_>>();
        assert_eq!(keys(&found.accounts[0].limits), ["grp_jobs", "grp_tres", "max_jobs"]);
        assert_eq!(keys(&found.users[0].limits), ["max_wall", "max_submit"]);
        let text = "PartitionName=day\n   MaxTime=1-00:00:00 MinNodes=0 MaxNodes=16 QoS=N/A\n\nPartitionName=long\n   \
                    MaxTime=UNLIMITED MinNodes=2 MaxNodes=UNLIMITED QoS=long\n";
        found.read("partitions", text).unwrap();
        let of = |place: usize| {
            (keys(&found.partitions[place].limits), found.partitions[place].qos.clone())
        };
        assert_eq!(of(0), (vec!["max_wall", "max_nodes"], None));
        assert_eq!(of(1), (vec!["min_nodes"], Some("long".to_owned())));
    }

    #[test]
    fn reservations_of_nodes_are_read() {
        let mut found = Priorities::default();
        let text = "ReservationName=maint StartTime=2026-03-01T08:00:00 EndTime=2026-03-01T12:00:00 Duration=04:00:00\n   \
                    Nodes=n[1-4] NodeCnt=4 CoreCnt=16 Features=(null) PartitionName=main Flags=MAINT,DAILY,SPEC_NODES\n   \
                    TRES=cpu=16\n   Users=root Accounts=(null) Licenses=(null) State=INACTIVE\n\n\
                    ReservationName=power StartTime=2026-03-01T08:00:00 EndTime=2026-03-02T08:00:00\n   \
                    Nodes= NodeCnt=0 Licenses=power:900 Flags=ANY_NODES\n";
        found.read("saved", text).unwrap();
        let text = |text: &str| text.to_owned();
        let [start, end] = ["2026-03-01T08:00:00", "2026-03-01T12:00:00"].map(text);
        assert_eq!(
            found.reservations,
            [Reservation { name: text("maint"), start, end, nodes: 4, hosts: text("n[1-4]") }]
        );
        assert_eq!(
            found.left_out.into_iter().collect::<Vec<_>>(),
            [
                "Licenses=power:900 of the reservation 'power'",
                "that the reservation 'maint' comes again (DAILY): it is there once",
                "the reservation 'power', which has no nodes",
            ]
        );
    }

    #[test]
    fn mistakes_name_the_file_and_the_line() {
        let why = |text: &str| Priorities::default().read("x", text).unwrap_err().to_string();
        assert!(why("").starts_with("x: this is no answer of"));
        assert_eq!(
            why("Name|Priority\nnormal|ten\n"),
            "x, line 2: the priority is 'ten'; it should be a whole number"
        );
        assert!(
            why("Name|Priority\nnormal\n")
                .starts_with("x, line 2: 1 fields, where the heading has 2")
        );
    }
}
