//! What becomes of rows that come into a store.

use rusqlite::{Connection, OptionalExtension};

use super::StoreError;
use busbar_core::profile::{Configuration, LONGEST, Origin, Profile, is_name};
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

/// Whether all of a profile can be stored.
pub(super) fn check(profile: &Profile) -> Result<(), StoreError> {
    let application = &profile.application;
    if !is_name(application) {
        return Err(StoreError::BadName { application: application.clone() });
    }
    for row in &profile.rows {
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
            let (application, configuration) = (application.clone(), row.configuration);
            return Err(StoreError::BadRow { application, configuration, field });
        }
    }
    Ok(())
}

/// Puts rows where they belong, or says which measured one is in the way.
pub(super) fn import(
    connection: &Connection,
    profiles: &[Profile],
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
    for profile in profiles.iter().filter(|profile| !profile.rows.is_empty()) {
        let name = (&profile.application,);
        let known = number.query_row(name, |row| row.get(0)).optional()?;
        let application: u32 = match known {
            Some(number) => number,
            None => {
                imported.new_applications += 1;
                enter.query_row(name, |row| row.get(0))?
            }
        };
        for row in &profile.rows {
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
                        application: profile.application.clone(),
                        configuration: row.configuration,
                    }));
                }
                (Some(_), _) => imported.replaced += 1,
                (None, _) => imported.added += 1,
            }
            let (time, power) = (row.time.millis(), row.power.milliwatts());
            put.execute((key.0, key.1, key.2, key.3, time, power, row.origin.name()))?;
        }
    }
    Ok(Ok(imported))
}
