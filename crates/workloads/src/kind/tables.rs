//! Small tables in CSV, by their headings: what options and other commands read.

use super::FileKind;

/// Columns that a heading has, what such a table is, and who wants it.
const TABLES: &[(&[&str], &str, &str)] = &[
    (&["time", "budget"], "limits over time", "name it with --budget"),
    (&["node", "down", "up"], "outages of nodes", "name it with --outages"),
    (&["executable", "application"], "applications of executables", "name it with --applications"),
    (&["job", "weight"], "terms of jobs", "name it with --terms"),
    (&["task", "arrival_s"], "tasks of a folder", "name the folder"),
    (&["id", "submit", "start", "end"], "the jobs of a simulation", NOT_READ),
    (&["seed", "policy", "budget"], "the results of a comparison", NOT_READ),
    (&["application", "nodes"], "profiles of applications", "read it with 'busbar profile import'"),
];

const NOT_READ: &str = "use the log that it was made from";

/// The table with this heading.
pub(super) fn kind(heading: &[u8]) -> Option<FileKind> {
    let heading = String::from_utf8_lossy(heading);
    let columns: Vec<&str> = heading.split(',').map(str::trim).collect();
    let has = |wanted: &&str| columns.iter().any(|column| column.eq_ignore_ascii_case(wanted));
    let known = TABLES.iter().find(|(wanted, ..)| wanted.iter().all(&has))?;
    Some(FileKind::Other(known.1, known.2))
}
