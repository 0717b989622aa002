//! Limits of qualities of service, associations and partitions, by their names in the file that is made of them.

use std::collections::BTreeSet;

use super::{Row, seconds};

/// A limit as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its name in a site file.
    pub key: &'static str,
    /// How much.
    pub value: Value,
}

/// What a limit is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// So many jobs or nodes.
    Count(u64),
    /// Resources, `cpu=4,node=1`.
    Tres(String),
    /// A length of time, in seconds.
    Seconds(u64),
    /// That something is so.
    Yes,
}

#[derive(Clone, Copy)]
enum Form {
    Count,
    Tres,
    Wall,
}

/// What is read of a kind of row: the names of a column, and what it is called in a site file; nothing where it has no
/// counterpart.
type Columns = &'static [(&'static [&'static str], Option<&'static str>, Form)];

const GROUP: Columns = &[
    (&["GrpJobs"], Some("grp_jobs"), Form::Count),
    (&["GrpSubmit", "GrpSubmitJobs"], Some("grp_submit"), Form::Count),
    (&["GrpTRES"], Some("grp_tres"), Form::Tres),
    (&["MaxTRES", "MaxTRESPerJob"], Some("max_tres_per_job"), Form::Tres),
    (&["MaxWall", "MaxWallDurationPerJob"], Some("max_wall"), Form::Wall),
    (&["GrpTRESMins"], None, Form::Tres),
    (&["GrpTRESRunMins"], None, Form::Tres),
    (&["GrpWall"], None, Form::Wall),
    (&["MaxTRESMins", "MaxTRESMinsPerJob"], None, Form::Tres),
    (&["MaxTRESPerNode"], None, Form::Tres),
];

const OF_ASSOCIATIONS: Columns = &[
    (&["MaxJobs"], Some("max_jobs"), Form::Count),
    (&["MaxSubmit", "MaxSubmitJobs"], Some("max_submit"), Form::Count),
];

const OF_QOS: Columns = &[
    (&["MaxJobsPU", "MaxJobsPerUser"], Some("max_jobs_per_user"), Form::Count),
    (&["MaxJobsPA", "MaxJobsPerAccount"], Some("max_jobs_per_account"), Form::Count),
    (&["MaxSubmitPU", "MaxSubmitJobsPerUser"], Some("max_submit_per_user"), Form::Count),
    (&["MaxSubmitPA", "MaxSubmitJobsPerAccount"], Some("max_submit_per_account"), Form::Count),
    (&["MaxTRESPU", "MaxTRESPerUser"], Some("max_tres_per_user"), Form::Tres),
    (&["MaxTRESPA", "MaxTRESPerAccount"], Some("max_tres_per_account"), Form::Tres),
    (&["MinTRES", "MinTRESPerJob"], Some("min_tres_per_job"), Form::Tres),
    (&["MaxTRESRunMinsPU"], None, Form::Tres),
    (&["MaxTRESRunMinsPA"], None, Form::Tres),
];

/// The limits of a row of `sacctmgr show qos`.
pub(super) fn of_qos(row: &Row<'_>, whose: &str, left_out: &mut BTreeSet<String>) -> Vec<Limit> {
    let mut limits = read(row, &[GROUP, OF_QOS], whose, left_out);
    for flag in row.get(&["Flags"]).unwrap_or_default().split(',').filter(|flag| !flag.is_empty()) {
        match flag {
            "DenyOnLimit" => limits.push(Limit { key: "deny_on_limit", value: Value::Yes }),
            flag => _ = left_out.insert(format!("the flag {flag} of {whose}")),
        }
    }
    limits
}

/// The limits of a row of `sacctmgr show assoc`.
pub(super) fn of_association(
    row: &Row<'_>,
    whose: &str,
    left_out: &mut BTreeSet<String>,
) -> Vec<Limit> {
    read(row, &[GROUP, OF_ASSOCIATIONS], whose, left_out)
}

fn read(
    row: &Row<'_>,
    columns: &[Columns],
    whose: &str,
    left_out: &mut BTreeSet<String>,
) -> Vec<Limit> {
    let mut limits = Vec::new();
    for (names, key, form) in columns.iter().copied().flatten() {
        let text = row.get(names).map(str::trim).filter(|text| !text.is_empty());
        let Some(text) = text else { continue };
        let value = match form {
            Form::Count => text.parse().ok().map(Value::Count),
            Form::Tres if key.is_none() => None,
            Form::Tres => Some(Value::Tres(known_tres(text, names[0], whose, left_out))),
            Form::Wall => wall(text).map(Value::Seconds),
        };
        match (*key, value) {
            // Each of its resources has been reported.
            (Some(_), Some(Value::Tres(tres))) if tres.is_empty() => {}
            (Some(key), Some(value)) => limits.push(Limit { key, value }),
            _ => _ = left_out.insert(format!("{} of {whose}", names[0])),
        }
    }
    limits
}

/// Those resources of a list that are counted.
fn known_tres(text: &str, key: &str, whose: &str, left_out: &mut BTreeSet<String>) -> String {
    let mut kept = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some(("cpu" | "node" | "mem" | "gres/gpu", _)) => kept.push(part),
            _ => _ = left_out.insert(format!("{part} in {key} of {whose}")),
        }
    }
    kept.join(",")
}

/// Reads `1-00:00:00`, `02:00:00` and minutes.
pub(super) fn wall(text: &str) -> Option<u64> {
    seconds(text).or_else(|| text.parse::<u64>().ok()?.checked_mul(60))
}
