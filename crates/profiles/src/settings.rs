//! Settings in which memory or GPUs had caps of their own: all that were tried.

use busbar_core::profile::measured::{OtherCaps, Setting, Spread, Summed};
use busbar_core::profile::{Configuration, Origin};
use busbar_core::units::{Span, Watts};
use rusqlite::Connection;

/// Puts settings in the place of those with the same caps.
pub(super) fn replace(
    connection: &Connection,
    application: u32,
    settings: &[Summed],
) -> rusqlite::Result<()> {
    if settings.is_empty() {
        return Ok(());
    }
    let mut remove = connection.prepare(
        "DELETE FROM setting WHERE application = ?1 AND nodes = ?2 AND cores = ?3 AND cap_mw = ?4
             AND memory_cap_mw IS ?5 AND gpu_cap_mw IS ?6",
    )?;
    let mut put = connection.prepare(
        "INSERT INTO setting (application, nodes, cores, cap_mw, memory_cap_mw, gpu_cap_mw, time_ms, power_mw,
             origin, runs, shortest_ms, longest_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    for Summed { setting, time, power, origin, spread } in settings {
        let Configuration { nodes, cores, cap } = setting.configuration;
        let [memory, gpu] =
            [setting.others.memory, setting.others.gpu].map(|cap| cap.map(Watts::milliwatts));
        let cap = cap.milliwatts();
        remove.execute((application, nodes, cores, cap, memory, gpu))?;
        put.execute((
            application,
            nodes,
            cores,
            cap,
            memory,
            gpu,
            time.millis(),
            power.milliwatts(),
            origin.name(),
            spread.runs,
            spread.shortest.millis(),
            spread.longest.millis(),
        ))?;
    }
    Ok(())
}

/// All settings of an application, by their caps.
pub(super) fn of(connection: &Connection, application: &str) -> rusqlite::Result<Vec<Summed>> {
    let mut question = connection.prepare(
        "SELECT nodes, cores, cap_mw, memory_cap_mw, gpu_cap_mw, time_ms, power_mw, origin, runs,
                shortest_ms, longest_ms
         FROM setting WHERE application = (SELECT number FROM application WHERE name = ?1)
         ORDER BY nodes, cores, cap_mw, memory_cap_mw, gpu_cap_mw",
    )?;
    let found = question.query_map((application,), |row| {
        let cap = Watts::from_milliwatts(row.get(2)?);
        let [memory, gpu] =
            [row.get(3)?, row.get(4)?].map(|cap: Option<u64>| cap.map(Watts::from_milliwatts));
        let [time, shortest, longest] =
            [row.get(5)?, row.get(9)?, row.get(10)?].map(Span::from_millis);
        Ok(Summed {
            setting: Setting {
                configuration: Configuration { nodes: row.get(0)?, cores: row.get(1)?, cap },
                others: OtherCaps { memory, gpu },
            },
            time,
            power: Watts::from_milliwatts(row.get(6)?),
            // The table holds nothing but these.
            origin: Origin::named(row.get_ref(7)?.as_str()?).unwrap_or(Origin::Predicted),
            spread: Spread { runs: row.get(8)?, shortest, longest },
        })
    })?;
    found.collect()
}
