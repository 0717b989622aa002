//! Single runs of an application, and what they say together.

use std::collections::BTreeMap;

use busbar_core::profile::measured::{Run, Spread, summed_up};
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
    let all = all.query_map(key, |found| {
        let (time, power) = (found.get(0)?, found.get(1)?);
        Ok(Run { time: Span::from_millis(time), power: Watts::from_milliwatts(power) })
    })?;
    let all = all.collect::<rusqlite::Result<Vec<Run>>>()?;
    Ok(match summed_up(&all) {
        Some(Run { time, power }) => Row { time, power, ..run },
        None => run,
    })
}

/// Puts runs in the place of all that are there of a row's configuration.
pub(super) fn replace(
    connection: &Connection,
    application: u32,
    row: &Row,
    runs: &[Run],
) -> rusqlite::Result<()> {
    let Configuration { nodes, cores, cap } = row.configuration;
    let (cap, origin) = (cap.milliwatts(), row.origin.name());
    connection
        .prepare(
            "DELETE FROM run WHERE application = ?1 AND nodes = ?2 AND cores = ?3 AND cap_mw = ?4",
        )?
        .execute((application, nodes, cores, cap))?;
    // Predictions have no runs.
    if runs.is_empty() || !row.origin.was_run() {
        return Ok(());
    }
    let mut put = connection.prepare(
        "INSERT INTO run (application, nodes, cores, cap_mw, origin, time_ms, power_mw)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for run in runs.iter().skip(runs.len().saturating_sub(MOST)) {
        let (time, power) = (run.time.millis(), run.power.milliwatts());
        put.execute((application, nodes, cores, cap, origin, time, power))?;
    }
    Ok(())
}

/// How far apart the runs of each configuration are, where there are several.
pub(super) fn spreads(
    connection: &Connection,
    application: &str,
) -> rusqlite::Result<BTreeMap<Configuration, Spread>> {
    let mut question = connection.prepare(
        "SELECT nodes, cores, cap_mw, count(*), min(time_ms), max(time_ms) FROM run
         WHERE application = (SELECT number FROM application WHERE name = ?1)
         GROUP BY nodes, cores, cap_mw HAVING count(*) > 1",
    )?;
    let found = question.query_map((application,), |row| {
        let cap = Watts::from_milliwatts(row.get(2)?);
        let configuration = Configuration { nodes: row.get(0)?, cores: row.get(1)?, cap };
        let [shortest, longest] = [row.get(4)?, row.get(5)?].map(Span::from_millis);
        Ok((configuration, Spread { runs: row.get(3)?, shortest, longest }))
    })?;
    found.collect()
}
