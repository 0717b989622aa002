//! Single runs of an application, and what they say together.
//!
//! Runs of one configuration differ by some per cent. Of their times the median counts, which no single bad run
//! moves; of their powers the largest, since a budget has to hold for each of them.

use busbar_core::profile::{Configuration, Row};
use busbar_core::units::{Span, Watts};
use rusqlite::Connection;

/// The number of runs of one configuration that are kept: the latest ones.
const MOST: usize = 100;

/// Adds a run, and returns what all runs of its configuration say together.
pub(super) fn record(
    connection: &Connection,
    application: &str,
    run: Row,
) -> rusqlite::Result<Row> {
    connection.execute("INSERT OR IGNORE INTO application (name) VALUES (?1)", (application,))?;
    let Configuration { nodes, cores, cap } = run.configuration;
    let key = (application, nodes, cores, cap.milliwatts(), run.origin.name());
    // A row that was imported counts as a run, too.
    connection.execute(
        "INSERT INTO run (application, nodes, cores, cap_mw, time_ms, power_mw, origin)
         SELECT application, nodes, cores, cap_mw, time_ms, power_mw, origin FROM profile
         WHERE application = (SELECT number FROM application WHERE name = ?1)
             AND nodes = ?2 AND cores = ?3 AND cap_mw = ?4 AND origin = ?5
             AND NOT EXISTS (
                 SELECT * FROM run WHERE run.application = profile.application
                     AND nodes = ?2 AND cores = ?3 AND cap_mw = ?4 AND origin = ?5)",
        key,
    )?;
    connection.execute(
        "INSERT INTO run (application, nodes, cores, cap_mw, origin, time_ms, power_mw)
         VALUES ((SELECT number FROM application WHERE name = ?1), ?2, ?3, ?4, ?5, ?6, ?7)",
        (key.0, key.1, key.2, key.3, key.4, run.time.millis(), run.power.milliwatts()),
    )?;
    let of = "application = (SELECT number FROM application WHERE name = ?1)
              AND nodes = ?2 AND cores = ?3 AND cap_mw = ?4 AND origin = ?5";
    connection.execute(
        &format!(
            "DELETE FROM run WHERE {of} AND rowid NOT IN
                 (SELECT rowid FROM run WHERE {of} ORDER BY rowid DESC LIMIT {MOST})"
        ),
        key,
    )?;
    let mut all = connection.prepare(&format!("SELECT time_ms, power_mw FROM run WHERE {of}"))?;
    let all = all.query_map(key, |row| Ok((row.get::<_, u64>(0)?, row.get::<_, u64>(1)?)))?;
    let (mut times, powers): (Vec<u64>, Vec<u64>) =
        all.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().unzip();
    times.sort_unstable();
    // Of an even number the slower one of the two in the middle.
    let time = times.get(times.len() / 2).copied().map_or(run.time, Span::from_millis);
    let power = powers.into_iter().max().map_or(run.power, Watts::from_milliwatts);
    Ok(Row { time, power, ..run })
}
