//! Gives unused pages back to the disk. SQLite moves pages from the end of the file into the gaps; this
//! is done in small steps, so that nobody waits for it.

use rusqlite::Connection;

/// The number of free 4 KiB pages that are kept for new data,
const SPARE: u64 = 256;

/// or, if that is more, the number of used pages divided by this.
const SPARE_SHARE: u64 = 4;

/// Allows the file to shrink, if it was created without that. This copies the file once.
pub(super) fn enable(connection: &Connection) -> rusqlite::Result<()> {
    match is_enabled(connection)? {
        true => Ok(()),
        false => connection.execute_batch("VACUUM"),
    }
}

/// Whether the file can shrink.
pub(super) fn is_enabled(connection: &Connection) -> rusqlite::Result<bool> {
    // 2 is `INCREMENTAL`.
    Ok(number(connection, "auto_vacuum")? == 2)
}

/// Gives back free pages beyond the reserve: at most `at_most`. Returns whether there are more.
pub(super) fn shrink(connection: &Connection, at_most: u32) -> rusqlite::Result<bool> {
    let (all, free) = (number(connection, "page_count")?, number(connection, "freelist_count")?);
    let spare = SPARE.max((all - free.min(all)) / SPARE_SHARE);
    let too_many = free.saturating_sub(spare);
    let now = too_many.min(u64::from(at_most));
    if now > 0 {
        let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({now})"))?;
        // Each step gives one page back.
        let mut steps = statement.query(())?;
        while steps.next()?.is_some() {}
    }
    Ok(too_many > now)
}

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<u64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}
