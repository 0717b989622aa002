//! What records or a log contain besides jobs: excluded records, names of users and jobs, and the machine.

use std::collections::HashMap;

use anyhow::bail;
use serde::Serialize;

use crate::experiment::Load;
use crate::workload::records::{Import, Kind, NodesSeen, RecordIntake};
use crate::workload::swf::Intake;
use crate::workload::{Source, SourceDefaults, SourceError};

/// What a past contains besides its jobs.
#[derive(Default)]
pub(super) struct Past {
    pub(super) taken: Option<Taken>,
    users: Vec<String>,
    accounts: Vec<String>,
    labels: HashMap<u64, String>,
    /// Whether groups are accounts of a batch system.
    has_accounts: bool,
    /// What the records say about the nodes, if no machine was named.
    seen: Option<NodesSeen>,
}

/// How many records or lines were used or left out.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Taken {
    Records(Box<RecordIntake>),
    Log(Intake),
}

impl Past {
    /// What a load says, and what its records tell of the nodes of these partitions where nobody named a machine.
    pub(super) fn of(load: &Load, partitions: Option<&[String]>) -> Result<Self, SourceError> {
        match &load.source {
            Source::Records(call) => Ok(Past::of_records(&call.import()?, partitions)),
            Source::Log(_) => {
                let loaded = load.source.load(&SourceDefaults::default())?;
                Ok(Past { taken: loaded.intake.map(Taken::Log), ..Past::default() })
            }
            _ => Ok(Past::default()),
        }
    }

    fn of_records(import: &Import, partitions: Option<&[String]>) -> Self {
        let names = |kind| match import.is_anonymous() {
            true => Vec::new(),
            false => import.names().of(kind).iter().map(|name| visible(name)).collect(),
        };
        Past {
            taken: Some(Taken::Records(Box::new(import.intake().clone()))),
            users: names(Kind::User),
            accounts: names(Kind::Group),
            labels: import.labels().collect(),
            has_accounts: true,
            seen: partitions.map(|partitions| import.nodes_seen(partitions)),
        }
    }

    /// The name of a user, or the user's number in the log.
    pub(super) fn user(&self, number: u32) -> String {
        named(&self.users, number, "user")
    }

    /// The name of an account, or of a group in a log.
    pub(super) fn account(&self, number: u32) -> String {
        named(&self.accounts, number, self.account_word())
    }

    /// The word for accounts: 'account' or 'group'.
    pub(super) fn account_word(&self) -> &'static str {
        if self.has_accounts { "account" } else { "group" }
    }

    /// The job's number in the records.
    pub(super) fn job(&self, number: u64) -> String {
        self.labels.get(&number).cloned().unwrap_or_else(|| number.to_string())
    }

    /// The original numbers of renumbered jobs.
    pub(super) fn labels(&self) -> Vec<(u64, String)> {
        let mut labels: Vec<(u64, String)> =
            self.labels.iter().map(|(number, label)| (*number, label.clone())).collect();
        labels.sort_unstable();
        labels
    }

    /// Whether the machine was derived from the records, because none was named.
    pub(super) fn knows_machine(&self) -> anyhow::Result<bool> {
        let Some(seen) = &self.seen else { return Ok(false) };
        if let Some(doubt) = &seen.doubt {
            bail!(
                "the records do not describe the machine: {doubt}. A budget needs one; write a machine file with \
                your own values, and name it:\n  busbar machine init{} --out cluster.toml\n  busbar \
                 whatif --machine cluster.toml …",
                said(seen)
            );
        }
        Ok(seen.nodes.is_some())
    }
}

/// The options of `busbar machine init` for what is known.
fn said(seen: &NodesSeen) -> String {
    let nodes =
        seen.nodes.map_or_else(|| " --nodes …".to_owned(), |nodes| format!(" --nodes {nodes}"));
    let processors = seen.processors_per_node.map(|count| format!(" --processors {count}"));
    let power = seen.node_power.map_or_else(|| "…W".to_owned(), |power| power.to_string());
    format!("{nodes}{} --node-power {power}", processors.unwrap_or_default())
}

/// A name in which control characters and other characters that break tables are made visible.
fn visible(name: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
    name.chars().map(shown).collect()
}

fn named(names: &[String], number: u32, what: &str) -> String {
    let place = (number as usize).checked_sub(1);
    place.and_then(|place| names.get(place)).cloned().unwrap_or_else(|| format!("{what} {number}"))
}

impl Taken {
    /// How many records were left out and why, if nobody else says so.
    pub(super) fn left_out(&self) -> Option<String> {
        match self {
            // The workload itself says so.
            Taken::Records(_) => None,
            Taken::Log(intake) => intake.left_out(),
        }
    }
}
