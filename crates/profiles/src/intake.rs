//! What becomes of rows that come into a store.

use rusqlite::{Connection, OptionalExtension};

use super::{StoreError, runs, settings};
use busbar_core::profile::measured::{Measured, Run, Summed};
use busbar_core::profile::{Configuration, LONGEST, Origin, Profile, Row, is_name};
use busbar_core::units::Watts;

/// What becomes of a measured row that is there when another one comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and nothing at all is stored.
    Refuse,
    /// It is replaced.
    Replace,
}

/// What became of the rows that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Applications nothing was known of before.
    pub new_applications: usize,
    /// Rows for configurations nothing was known of before.
    pub added: usize,
    /// Rows that took the place of others.
    pub replaced: usize,
    /// Rows left out, as more is known of their configurations: they are measured, or at least emulated.
    pub left_out: usize,
}

/// What comes of one application.
pub(super) struct Incoming<'a> {
    application: &'a str,
    rows: Vec<IncomingRow<'a>>,
    /// Settings with caps of several parts.
    settings: Vec<Summed>,
}

/// A row that comes.
struct IncomingRow<'a> {
    row: Row,
    /// Its single runs, which take the place of those that are there; `None` leaves them alone.
    runs: Option<&'a [Run]>,
}

impl<'a> Incoming<'a> {
    /// One row, whose runs are there already.
    pub(super) fn alone(application: &'a str, row: Row) -> Self {
        let rows = vec![IncomingRow { row, runs: None }];
        Incoming { application, rows, settings: Vec::new() }
    }
}

impl<'a> From<&'a Profile> for Incoming<'a> {
    fn from(profile: &'a Profile) -> Self {
        let row = |row: &Row| IncomingRow { row: *row, runs: Some(&[]) };
        let rows = profile.rows.iter().map(row).collect();
        Incoming { application: &profile.application, rows, settings: Vec::new() }
    }
}

impl<'a> From<&'a Measured> for Incoming<'a> {
    fn from(measured: &'a Measured) -> Self {
        let chosen = measured.chosen().into_iter();
        let rows = chosen.map(|(summed, sampled)| IncomingRow {
            row: summed.row(),
            // A single run is its row.
            runs: Some(if sampled.runs.len() > 1 { &sampled.runs } else { &[] }),
        });
        let settings = match measured.has_other_caps() {
            true => measured.settings.iter().filter_map(|sampled| sampled.summed()).collect(),
            false => Vec::new(),
        };
        Incoming { application: &measured.application, rows: rows.collect(), settings }
    }
}

/// Whether all of an application can be stored.
pub(super) fn check(incoming: &Incoming<'_>) -> Result<(), StoreError> {
    let application = incoming.application;
    if !is_name(application) {
        return Err(StoreError::BadName { application: application.to_owned() });
    }
    for IncomingRow { row, .. } in &incoming.rows {
        let Configuration { nodes, cores, cap } = row.configuration;
        let within = |value: u64, most: u64| (1..=most).contains(&value);
        let (most_watts, most_time) = (Watts::LARGEST.milliwatts(), LONGEST.millis());
        let fields = [
            ("nodes", within(nodes.into(), u32::MAX.into())),
            ("cores", within(cores.into(), u32::MAX.into())),
            ("cap", within(cap.milliwatts(), most_watts)),
            ("time", within(row.time.millis(), most_time)),
            ("power", within(row.power.milliwatts(), most_watts)),
        ];
        if let Some((field, _)) = fields.iter().find(|(_, is_good)| !is_good) {
            let (application, configuration) = (application.to_owned(), row.configuration);
            return Err(StoreError::BadRow { application, configuration, field });
        }
    }
    Ok(())
}

/// Puts rows where they belong, or says which measured one is in the way.
pub(super) fn import(
    connection: &Connection,
    incoming: &[Incoming<'_>],
    existing: Existing,
) -> rusqlite::Result<Result<Imported, StoreError>> {
    let mut number = connection.prepare("SELECT number FROM application WHERE name = ?1")?;
    let mut enter =
        connection.prepare("INSERT INTO application (name) VALUES (?1) RETURNING number")?;
    let mut present = connection.prepare(
        "SELECT origin FROM profile
         WHERE application = ?1 AND nodes = ?2 AND cores = ?3 AND cap_mw = ?4",
    )?;
    let mut put = connection.prepare(
        "INSERT OR REPLACE INTO profile
             (application, nodes, cores, cap_mw, time_ms, power_mw, origin)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut imported = Imported::default();
    for Incoming { application: name, rows, settings } in incoming {
        if rows.is_empty() {
            continue;
        }
        let known = number.query_row((name,), |row| row.get(0)).optional()?;
        let application: u32 = match known {
            Some(number) => number,
            None => {
                imported.new_applications += 1;
                enter.query_row((name,), |row| row.get(0))?
            }
        };
        for IncomingRow { row, runs } in rows {
            let Configuration { nodes, cores, cap } = row.configuration;
            let key = (application, nodes, cores, cap.milliwatts());
            let before = present.query_row(key, |row| row.get::<_, String>(0)).optional()?;
            match (before.as_deref().and_then(Origin::named), row.origin) {
                // Origins are ordered by what they are worth.
                (Some(before), now) if before < now => {
                    imported.left_out += 1;
                    continue;
                }
                (Some(Origin::Measured), Origin::Measured) if existing == Existing::Refuse => {
                    return Ok(Err(StoreError::AlreadyMeasured {
                        application: (*name).to_owned(),
                        configuration: row.configuration,
                    }));
                }
                (Some(_), _) => imported.replaced += 1,
                (None, _) => imported.added += 1,
            }
            let (time, power) = (row.time.millis(), row.power.milliwatts());
            put.execute((key.0, key.1, key.2, key.3, time, power, row.origin.name()))?;
            if let Some(runs) = runs {
                runs::replace(connection, application, row, runs)?;
            }
        }
        settings::replace(connection, application, settings)?;
    }
    Ok(Ok(imported))
}
